"""Rankers as files: numbers, text and JSON in one zip archive, nothing that could run code when it is read."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.files import PathLike, os_reason, plain, refusal, whole_file
from ..errors import JudgmentError, ParameterError

FORMAT = 1
"""Number of the file format; a reader refuses files of a higher one."""

_CARD = "ranker.json"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Saved:
    """What a file holds of a ranker.

    Parameters
    ----------
    method
        Name of the ranker in the registry.
    params
        Its hyper-parameters.
    facts
        What else was learned, as JSON knows it.
    numbers
        Arrays by name.
    texts
        Texts by name, such as a model in another library's own format.
    parts
        Rankers that it is made of.
    """

    method: str
    params: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Saved, ...] = ()


def write_saved(saved: Saved, path: PathLike) -> None:
    """Write a ranker's file; it is there whole or not at all, and the same ranker gives the same bytes."""
    card = {"format": FORMAT, "crowdrank": _version(), **_card(saved)}
    target = Path(os.path.realpath(path))
    try:
        with whole_file(target) as handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED) as archive:
            _put(archive, _CARD, json.dumps(card, indent=1, allow_nan=False).encode())
            _put_all(archive, saved, "")
    except OSError as error:
        raise ParameterError(refusal(plain(str(path)), target, error)) from None


def _card(saved: Saved) -> dict[str, Any]:
    """What a file says of a ranker, besides its arrays and texts; rankers within it likewise."""
    card = {"method": saved.method, "params": saved.params, "facts": saved.facts}
    card |= {"numbers": sorted(saved.numbers), "texts": sorted(saved.texts)}
    return card | ({"parts": [_card(part) for part in saved.parts]} if saved.parts else {})


def _put_all(archive: zipfile.ZipFile, saved: Saved, place: str) -> None:
    """Add the arrays and texts of a ranker and of those within it, whose names begin with their place."""
    for name, values in sorted(saved.numbers.items()):
        memory = io.BytesIO()
        np.save(memory, np.ascontiguousarray(values), allow_pickle=False)
        _put(archive, f"{place}{name}.npy", memory.getvalue())
    for name, text in sorted(saved.texts.items()):
        _put(archive, f"{place}{name}.txt", text.encode())
    for number, part in enumerate(saved.parts):
        _put_all(archive, part, f"{place}{number}/")


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a member without the time of day."""
    member = zipfile.ZipInfo(name, _LONG_AGO)
    member.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(member, data)


def read_saved(path: PathLike) -> Saved:
    """Read a ranker's file, or say in one sentence what is wrong with it."""
    name = plain(str(path))
    try:
        with zipfile.ZipFile(path) as archive:
            card = json.loads(archive.read(_CARD))
            _expect_known(card, name)
            return _get_all(archive, card, "")
    except FileNotFoundError:
        raise JudgmentError(f"there is no file {name}; check the path") from None
    except IsADirectoryError:
        raise JudgmentError(f"{name} is a folder; give the file that a ranker was saved to") from None
    except PermissionError:
        raise JudgmentError(f"{name} may not be read; check its permissions") from None
    except zipfile.BadZipFile:
        raise JudgmentError(f"{name} is no saved ranker, or is damaged; save the ranker again") from None
    except (KeyError, TypeError, ValueError, EOFError, zlib.error, NotImplementedError) as error:
        if isinstance(error, JudgmentError):
            raise
        raise damaged(name, error) from None
    except OSError as error:
        raise JudgmentError(f"{name} cannot be read: {plain(os_reason(error))}; check the path") from None


def _get_all(archive: zipfile.ZipFile, card: Any, place: str) -> Saved:
    """A ranker and those within it, from its card and the members that begin with its place."""
    numbers = {key: _array(archive.read(f"{place}{key}.npy")) for key in card["numbers"]}
    texts = {key: archive.read(f"{place}{key}.txt").decode() for key in card["texts"]}
    parts = [_get_all(archive, part, f"{place}{number}/") for number, part in enumerate(card.get("parts", ()))]
    return Saved(str(card["method"]), dict(card["params"]), dict(card["facts"]), numbers, texts, tuple(parts))


def damaged(name: str, error: Exception) -> JudgmentError:
    """Return the error for a file whose parts do not fit."""
    reason = plain(str(error).split("\n", 1)[0][:120])
    return JudgmentError(f"{name} is damaged ({type(error).__name__}: {reason}); save the ranker again")


def _expect_known(card: Any, name: str) -> None:
    """Refuse the file of a newer version."""
    found = card["format"]
    if not isinstance(found, int) or found < 1:
        raise ValueError(f"format {found!r}")
    if found > FORMAT:
        raise JudgmentError(
            f"{name} was saved by crowdrank {plain(str(card.get('crowdrank', '?')))} in format {found}, and this is "
            f"{_version()}, which reads formats up to {FORMAT}; install that version or a newer one"
        )


def _version() -> str:
    """Version of the package; importing the package from within would turn its layers upside down."""
    return str(getattr(sys.modules[__name__.partition(".")[0]], "__version__", "?"))


def _array(data: bytes) -> NDArray[Any]:
    """An array from its bytes, objects refused."""
    found: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    return found
