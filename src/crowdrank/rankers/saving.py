"""Rankers as files: numbers and JSON in one archive with a checksum, nothing that could run code when it is read."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.files import PathLike, os_reason, plain, refusal, whole_file
from ..errors import DataWarning, JudgmentError, ParameterError
from .archive import NoArchive, seal, unseal
from .trees import Trees

FORMAT = 2
"""Number of the file format; a reader refuses files of a higher one."""

MAX_ABS_WEIGHT = 1e100
"""Weights, like features, are no larger, nor scales smaller than its inverse, so that no score is infinite."""

_CARD = "ranker.json"
_NAME = re.compile(r"[a-z][a-z_]{0,40}")
_HEADER = re.compile(
    rb"\{'descr': '([<>|][fiu][1248])', 'fortran_order': False, 'shape': \((\d{0,12}(?:, ?\d{1,12}){0,2}),?\), \} *\n"
)
_MAX_JSON_DEPTH, _MAX_JSON_ENTRIES = 40, 1_500_000
"""Nesting of the JSON and entries in it: more than any ranker needs, and little enough for any machine."""

_MAX_TEXT_LENGTH = 200


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
    parts
        Rankers that it is made of.
    """

    method: str
    params: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    parts: tuple[Saved, ...] = ()


def write_saved(saved: Saved, path: PathLike) -> None:
    """Write a ranker's file; it is there whole or not at all, and the same ranker gives the same bytes."""
    card = {"format": FORMAT, "crowdrank": _version(), **_card(saved)}
    text = json.dumps(card, indent=1, allow_nan=False, default=lambda number: number.item())
    data = seal({_CARD: text.encode(), **dict(_array_members(saved, ""))})
    target = Path(os.path.realpath(path))
    try:
        with whole_file(target) as handle:
            handle.write(data)
    except OSError as error:
        raise ParameterError(refusal(plain(str(path)), target, error)) from None


def _card(saved: Saved) -> dict[str, Any]:
    """What a file says of a ranker, besides its arrays; rankers within it likewise."""
    numbers = {name: [_little(values).dtype.str, *values.shape] for name, values in sorted(saved.numbers.items())}
    card = {"method": saved.method, "params": saved.params, "facts": saved.facts, "numbers": numbers}
    return card | ({"parts": [_card(part) for part in saved.parts]} if saved.parts else {})


def _array_members(saved: Saved, place: str) -> Iterator[tuple[str, bytes]]:
    """The arrays of a ranker and of those within it, whose names begin with their place."""
    for name, values in sorted(saved.numbers.items()):
        if np.isnan(values).any():
            raise ParameterError(f"{saved.method} has {name} that are no numbers (NaN); fit it again before saving it")
        memory = _Memory()
        np.save(memory, _little(values), allow_pickle=False)
        yield f"{place}{name}.npy", b"".join(memory.parts)
    for number, part in enumerate(saved.parts):
        yield from _array_members(part, f"{place}{number}/")


class _Memory:
    """What numpy writes to."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.parts.append(bytes(data))


def _little(values: NDArray[Any]) -> NDArray[Any]:
    """An array as files have it."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<"))


def read_saved(path: PathLike) -> Saved:
    """Read a ranker's file, or say in one sentence what is wrong with it."""
    name = plain(str(path))
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise JudgmentError(f"{name} is a pipe or a device; give the file that a ranker was saved to")
        with open(path, "rb") as handle:
            members, has_seal = unseal(handle)
        return _unpacked(members, has_seal, name)
    except FileNotFoundError:
        raise JudgmentError(f"there is no file {name}; check the path") from None
    except IsADirectoryError:
        raise JudgmentError(f"{name} is a folder; give the file that a ranker was saved to") from None
    except PermissionError:
        raise JudgmentError(f"{name} may not be read; check its permissions") from None
    except NoArchive as error:
        raise JudgmentError(f"{name} is no saved ranker: {error}; give the file that a ranker was saved to") from None
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        if isinstance(error, JudgmentError):
            raise
        raise damaged(name, error) from None
    except OSError as error:
        raise JudgmentError(f"{name} cannot be read: {plain(os_reason(error))}; check the path") from None


def damaged(name: str, error: Exception) -> JudgmentError:
    """Return the error for a file whose parts do not fit."""
    said = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
    reason = plain(said.split("\n", 1)[0][:_MAX_TEXT_LENGTH])
    return JudgmentError(f"{name} is damaged ({reason}); save the ranker again")


def _unpacked(members: dict[str, bytes], has_seal: bool, name: str) -> Saved:
    """The ranker that members of an archive hold."""
    if _CARD not in members:
        raise JudgmentError(f"{name} is an archive of something else; give the file that a ranker was saved to")
    card = _json(members.pop(_CARD))
    _expect_known(card, has_seal, name)
    saved = _ranker(members, card, "", old=card["format"] == 1)
    if members:
        raise ValueError(f"it has a part {next(iter(members))!r} that it does not name")
    if card["format"] == 1:
        warnings.warn(
            f"{name} was saved by an older version, without a checksum; save it anew, as by "
            "cr.load_ranker(path).save(path)",
            DataWarning,
            stacklevel=4,
        )
    return saved


def _ranker(members: dict[str, bytes], card: Any, place: str, *, old: bool) -> Saved:
    """A ranker and those within it, from its card and the members that begin with its place, which are taken out.

    An ``old`` one has no shapes of arrays on its card, and trees in LightGBM's text.
    """
    method, params, facts, numbers = card["method"], card["params"], card["facts"], card["numbers"]
    if not isinstance(method, str) or not isinstance(params, dict) or not isinstance(facts, dict):
        raise ValueError("its description is not that of a ranker")
    for key, value in params.items():
        if not isinstance(value, bool | int | float | str | None) or len(str(value)) > _MAX_TEXT_LENGTH:
            raise ValueError(f"its parameter {key[:_MAX_TEXT_LENGTH]!r} is not a number or a short text")
    if not isinstance(numbers, list if old else dict):
        raise ValueError("its arrays are not listed as they should be")
    shapes: dict[Any, Any] = dict.fromkeys(numbers) if old else dict(numbers)
    if len(shapes) != len(numbers) or not all(_NAME.fullmatch(key) for key in shapes):
        raise ValueError("it names an array twice, or by no name")
    arrays = {key: _array(_taken(members, f"{place}{key}.npy"), shape) for key, shape in shapes.items()}
    if card.get("texts"):
        if not old or card["texts"] != ["trees"]:
            raise ValueError("it holds texts that no ranker has")
        arrays |= Trees.from_lightgbm(_taken(members, f"{place}trees.txt")).numbers()
    parts = [_ranker(members, part, f"{place}{number}/", old=old) for number, part in enumerate(card.get("parts", ()))]
    return Saved(method, params, facts, arrays, tuple(parts))


def _taken(members: dict[str, bytes], name: str) -> bytes:
    """A member, which nobody else can take then."""
    if name not in members:
        raise ValueError(f"its part {name} is missing")
    return members.pop(name)


def _json(data: bytes) -> Any:
    """A JSON object that is neither deep nor has too many entries, which is looked at before it is parsed."""
    if sum(map(data.count, (b",", b"[", b"{"))) > _MAX_JSON_ENTRIES or _depth(data) > _MAX_JSON_DEPTH:
        raise ValueError("its description is too deep or too long")
    found = json.loads(data.decode(), parse_constant=_refuse_constant)
    if not isinstance(found, dict):
        raise ValueError("its description is not that of a ranker")
    return found


def _depth(data: bytes) -> int:
    """How deep the brackets are nested that are not in texts."""
    outline = re.sub(rb'"(?:[^"\\]++|\\.)*+"', b"", data, flags=re.DOTALL)
    brackets = np.frombuffer(re.sub(rb"[^][{}]+", b"", outline), np.uint8)
    steps = np.where(np.isin(brackets, [ord("["), ord("{")]), 1, -1)
    return int(np.cumsum(steps).max(initial=0))


def _refuse_constant(text: str) -> float:
    """NaN and infinity are no JSON."""
    raise ValueError(f"{text} in its description")


def _expect_known(card: dict[str, Any], has_seal: bool, name: str) -> None:
    """Refuse the file of a newer version, and one whose checksum was lost."""
    found = card["format"]
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise ValueError(f"its format is {str(found)[:_MAX_TEXT_LENGTH]!r}")
    if found > FORMAT:
        raise JudgmentError(
            f"{name} was saved by crowdrank {plain(str(card.get('crowdrank', '?'))[:20])} in format {found}, and this "
            f"is {_version()}, which reads formats up to {FORMAT}; install that version or a newer one"
        )
    if has_seal != (found > 1):
        raise ValueError("its checksum is missing")


def _version() -> str:
    """Version of the package; importing the package from within would turn its layers upside down."""
    return str(getattr(sys.modules[__name__.partition(".")[0]], "__version__", "?"))


def _array(data: bytes, wanted: Any) -> NDArray[Any]:
    """An array from its bytes; the header is compared with what is wanted and with the number of bytes."""
    length = int.from_bytes(data[8:10], "little")
    header = _HEADER.fullmatch(data[10 : 10 + length])
    if data[:8] != b"\x93NUMPY\x01\x00" or header is None:
        raise ValueError("the header of an array is not as numpy writes it")
    dtype, shape = np.dtype(header[1].decode()), tuple(int(part) for part in header[2].split(b",") if part.strip())
    if wanted is not None and wanted != [dtype.str, *shape]:
        raise ValueError(f"an array of shape {shape} is not the one described")
    if math.prod(shape) * dtype.itemsize != len(data) - 10 - length:
        raise ValueError(f"an array of shape {shape} has {len(data) - 10 - length} bytes")
    found = np.frombuffer(data, dtype, offset=10 + length).reshape(shape)
    if np.isnan(found).any():
        raise ValueError("an array has entries that are no numbers (NaN)")
    return found.astype(dtype.newbyteorder("="))


def whole_number(value: Any, least: int = 0) -> int:
    """Return a whole number that a file holds, or raise."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 62:
        raise ValueError(f"{str(value)[:30]!r} where a whole number from {least} on is wanted")
    return value


def real_number(value: Any) -> float:
    """Return a number that a file holds, or raise."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:30]!r} where a number is wanted")
    return float(value)


def weights_of(numbers: Mapping[str, NDArray[Any]], name: str, *shape: int) -> NDArray[np.float64]:
    """Return the weights of some name and shape that a file holds, or raise."""
    found = numbers[name]
    if found.dtype != np.float64 or found.shape != shape:
        raise ValueError(f"{name} of shape {found.shape} where {shape} is wanted")
    if not np.abs(found).max(initial=0.0) <= MAX_ABS_WEIGHT:
        raise ValueError(f"{name} beyond {MAX_ABS_WEIGHT:g}")
    return found
