"""Rankers as files: numbers and JSON in one archive with a checksum, nothing that could run code when it is read.

First a ranker and its card; then the zip archive that holds them, none of whose numbers is trusted.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import struct
import sys
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..data.features import Extractor
from ..data.files import PathLike, os_reason, plain, refusal, whole_file
from ..errors import DataWarning, JudgmentError, ParameterError

FORMAT = 2
"""Number of the file format; a reader refuses files of a higher one."""

TREES_AS_TEXT = "trees.txt"
"""Trees as LightGBM writes them, in files of format 1; no array of a file can have this name."""

MAX_ABS_WEIGHT = 1e100
"""Weights, like features, are no larger, nor scales smaller than its inverse, so no score is infinite."""

_CARD, _EXTRACTOR_CARD = "ranker.json", "extractor.json"
_NAME = re.compile(r"[a-z][a-z_]{0,40}")
_HEADER = re.compile(
    rb"\{'descr': '([<>|][fiu][1248])', 'fortran_order': False, 'shape': \((\d{0,12}(?:, ?\d{1,12}){0,2}),?\), \} *\n"
)
_MAX_JSON_DEPTH, _MAX_JSON_ENTRIES = 40, 1_500_000
"""Nesting of the JSON and entries in it: more than any ranker needs, and little enough for any machine."""

_MAX_TEXT_LENGTH = 200

_SEAL = b"crowdrank, sha256 of all before: "
_DIGEST_DIGITS = 64
_CHUNK_BYTES = 1 << 20
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)

_ENCRYPTED = 1
_MAX_MEMBERS = 200_000

_MAX_COMPRESSED_BYTES, _MAX_COMPRESSED_RATIO = 1 << 23, 10
"""Largest size of compressed parts: a fixed one plus this many times the file; numbers compress less."""


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
    extractor
        What makes its features of raw items.
    """

    method: str
    params: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    parts: tuple[Saved, ...] = ()
    extractor: Saved | None = None

    @classmethod
    def of_extractor(cls, extractor: Extractor) -> Self:
        """Return what a file holds of an extractor."""
        facts = {"version": extractor.version, "names": list(extractor.names), "fitted": dict(extractor.facts)}
        return cls(extractor.kind, extractor.params, facts, extractor.numbers)

    def to_extractor(self) -> Extractor:
        """Return the extractor that a file holds, or raise."""
        names, fitted = self.facts["names"], self.facts["fitted"]
        if not (isinstance(names, list) and isinstance(fitted, dict) and all(isinstance(name, str) for name in names)):
            raise ValueError("its extractor is not described as it should be")
        return Extractor(
            self.method, whole_number(self.facts["version"], 1), self.params, tuple(names), fitted, self.numbers
        )

    def write(self, path: PathLike, name: str = _CARD) -> None:
        """Write a ranker's file; it is there whole or not at all, and the same ranker gives the same bytes."""
        card = {"format": FORMAT, "crowdrank": _version(), **_card(self)}
        text = json.dumps(card, indent=1, allow_nan=False, default=lambda number: number.item())
        data = seal({name: text.encode(), **dict(_array_members(self, ""))})
        target = Path(os.path.realpath(path))
        try:
            with whole_file(target) as handle:
                handle.write(data)
        except OSError as error:
            raise ParameterError(refusal(plain(str(path)), target, error)) from None


def write_extractor(extractor: Extractor, path: PathLike) -> None:
    """Write the file of an extractor alone, in the same form."""
    Saved.of_extractor(extractor).write(path, _EXTRACTOR_CARD)


def read_extractor(path: PathLike) -> Extractor:
    """Read the file of an extractor alone, or of a ranker that has one, or say in one sentence what is wrong."""
    saved = read_saved(path, extractor=True)
    try:
        return saved.to_extractor()
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise damage_error(plain(str(path)), error) from None


def _card(saved: Saved) -> dict[str, Any]:
    """What a file says of a ranker, besides its arrays; rankers within it likewise."""
    numbers = {
        name: [_little_endian(values).dtype.str, *values.shape] for name, values in sorted(saved.numbers.items())
    }
    card: dict[str, Any] = {"method": saved.method, "params": saved.params, "facts": saved.facts, "numbers": numbers}
    if saved.parts:
        card["parts"] = [_card(part) for part in saved.parts]
    if saved.extractor is not None:
        card["extractor"] = _card(saved.extractor)
    return card


def _array_members(saved: Saved, place: str) -> Iterator[tuple[str, bytes]]:
    """The arrays of a ranker and of those within it, whose names begin with their place."""
    for name, values in sorted(saved.numbers.items()):
        if np.isnan(values).any():
            raise ParameterError(f"{saved.method} has {name} that are not numbers (NaN); fit it again before saving it")
        memory = io.BytesIO()
        np.save(memory, _little_endian(values), allow_pickle=False)
        yield f"{place}{name}.npy", memory.getvalue()
    for number, part in enumerate(saved.parts):
        yield from _array_members(part, f"{place}{number}/")
    if saved.extractor is not None:
        yield from _array_members(saved.extractor, f"{place}extractor/")


def _little_endian(values: NDArray[Any]) -> NDArray[Any]:
    """An array as files have it."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<"))


def read_saved(path: PathLike, *, extractor: bool = False) -> Saved:
    """Read a ranker's file, or its extractor only, or say in one sentence what is wrong with it."""
    name = plain(str(path))
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise JudgmentError(f"{name} is a pipe or a device; give the file that a ranker was saved to")
        with open(path, "rb") as handle:
            members, has_seal = unseal(handle)
        main = _EXTRACTOR_CARD if extractor and _EXTRACTOR_CARD in members else _CARD
        saved = _unpack(members, has_seal, name, main)
        if not extractor or main == _EXTRACTOR_CARD:
            return saved
        if saved.extractor is None:
            raise JudgmentError(
                f"{name} was trained on a table of features, so it makes none of raw items; give a table of features, "
                "or train on what cr.features or crowdrank features made"
            )
        return saved.extractor
    except FileNotFoundError:
        raise JudgmentError(f"there is no file {name}; check the path") from None
    except IsADirectoryError:
        raise JudgmentError(f"{name} is a folder; give the file that a ranker was saved to") from None
    except PermissionError:
        raise JudgmentError(f"{name} may not be read; check its permissions") from None
    except NoArchive as error:
        raise JudgmentError(
            f"{name} is not a saved ranker: {error}; give the file that a ranker was saved to"
        ) from None
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        if isinstance(error, JudgmentError):
            raise
        raise damage_error(name, error) from None
    except OSError as error:
        raise JudgmentError(f"{name} cannot be read: {plain(os_reason(error))}; check the path") from None


def damage_error(name: str, error: Exception) -> JudgmentError:
    """Return the error for a file whose parts do not fit."""
    said = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
    reason = plain(said.split("\n", 1)[0][:_MAX_TEXT_LENGTH])
    return JudgmentError(f"{name} is damaged ({reason}); save the ranker again")


def _unpack(members: dict[str, bytes], has_seal: bool, name: str, main: str) -> Saved:
    """The ranker that members of an archive hold, or the extractor."""
    if main not in members:
        raise JudgmentError(f"{name} is an archive of something else; give the file that a ranker was saved to")
    card = _json(members.pop(main))
    version = card["format"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ValueError(f"its format is {str(version)[:_MAX_TEXT_LENGTH]!r}")
    if version > FORMAT:
        raise JudgmentError(
            f"{name} was saved by crowdrank {plain(str(card.get('crowdrank', '?'))[:20])} in format {version}, and "
            f"this is {_version()}, which reads formats up to {FORMAT}; install that version or a newer one"
        )
    if has_seal != (version > 1):
        raise ValueError("its checksum is missing")
    saved = _ranker(members, card, "", old=version == 1)
    if members:
        raise ValueError(f"it has a part {next(iter(members))!r} that it does not name")
    if version == 1:
        warnings.warn(
            f"{name} was saved by an older version, without a checksum; save it again, with "
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
    arrays = {key: _array(_take_member(members, f"{place}{key}.npy"), shape) for key, shape in shapes.items()}
    if card.get("texts"):
        if not old or card["texts"] != ["trees"]:
            raise ValueError("it holds texts that no ranker has")
        arrays[TREES_AS_TEXT] = np.frombuffer(_take_member(members, f"{place}{TREES_AS_TEXT}"), np.uint8)
    parts = [_ranker(members, part, f"{place}{number}/", old=old) for number, part in enumerate(card.get("parts", ()))]
    extractor = card.get("extractor")
    maker = None if extractor is None else _ranker(members, extractor, f"{place}extractor/", old=False)
    return Saved(method, params, facts, arrays, tuple(parts), maker)


def _take_member(members: dict[str, bytes], name: str) -> bytes:
    """A member, which nobody else can take then."""
    if name not in members:
        raise ValueError(f"its part {name} is missing")
    return members.pop(name)


def _json(data: bytes) -> Any:
    """A JSON object that is neither deep nor has too many entries, which is looked at before it is parsed."""
    if sum(map(data.count, (b",", b"[", b"{"))) > _MAX_JSON_ENTRIES:
        raise ValueError("its description is too deep or too long")
    outline = re.sub(rb'"(?:[^"\\]++|\\.)*+"', b"", data, flags=re.DOTALL)
    brackets = np.frombuffer(re.sub(rb"[^][{}]+", b"", outline), np.uint8)
    if np.cumsum(np.where(np.isin(brackets, [ord("["), ord("{")]), 1, -1)).max(initial=0) > _MAX_JSON_DEPTH:
        raise ValueError("its description is too deep or too long")

    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} in its description")

    parsed = json.loads(data.decode(), parse_constant=refuse)
    if not isinstance(parsed, dict):
        raise ValueError("its description is not that of a ranker")
    return parsed


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
    array = np.frombuffer(data, dtype, offset=10 + length).reshape(shape)
    if np.isnan(array).any():
        raise ValueError("an array has entries that are not numbers (NaN)")
    return array.astype(dtype.newbyteorder("="))


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
    weights = numbers[name]
    if weights.dtype != np.float64 or weights.shape != shape:
        raise ValueError(f"{name} of shape {weights.shape} where {shape} is wanted")
    if not np.abs(weights).max(initial=0.0) <= MAX_ABS_WEIGHT:
        raise ValueError(f"{name} beyond {MAX_ABS_WEIGHT:g}")
    return weights


class NoArchive(ValueError):
    """The file is no archive at all."""


def seal(members: Mapping[str, bytes]) -> bytes:
    """Return the bytes of an archive that ends in the checksum of all that is before; nothing in it is compressed."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _FIXED_DATE), data)
        archive.comment = _SEAL + b"0" * _DIGEST_DIGITS
    body = memory.getvalue()[:-_DIGEST_DIGITS]
    return body + hashlib.sha256(body).hexdigest().encode()


def unseal(handle: IO[bytes]) -> tuple[dict[str, bytes], bool]:
    """Return the members of an archive and whether it had a checksum, or raise ValueError where anything is wrong.

    The checksum is compared before anything else is looked at.
    """
    size = handle.seek(0, io.SEEK_END)
    handle.seek(0)
    start = handle.read(4)
    handle.seek(max(0, size - _DIGEST_DIGITS - len(_SEAL)))
    tail = handle.read()
    if start != b"PK\3\4":
        raise NoArchive("it is empty" if not size else "it does not begin as one")
    has_seal = tail.startswith(_SEAL)
    if has_seal:
        digest, left = hashlib.sha256(), size - _DIGEST_DIGITS
        handle.seek(0)
        while left > 0 and (part := handle.read(min(_CHUNK_BYTES, left))):
            digest.update(part)
            left -= len(part)
        if digest.hexdigest().encode() != tail[-_DIGEST_DIGITS:]:
            raise ValueError("its checksum does not fit")
    if not zipfile.is_zipfile(handle):
        raise ValueError("its end is missing")
    try:
        with zipfile.ZipFile(handle) as archive:
            return _members(archive, size, has_seal), has_seal
    except (zipfile.BadZipFile, NotImplementedError, EOFError, struct.error) as error:
        raise ValueError(str(error)) from None


def _members(archive: zipfile.ZipFile, size: int, has_seal: bool) -> dict[str, bytes]:
    """The members by name, each as large as the list at the archive's end says; together they are bounded by the file.

    A seal is the comment of the archive.
    """
    entries = archive.infolist()
    if any(entry.flag_bits & _ENCRYPTED for entry in entries):
        raise ValueError("it is encrypted")
    if len(entries) > _MAX_MEMBERS or len(archive.namelist()) > len(set(archive.namelist())):
        raise ValueError("it has a part twice, or too many")
    if len(archive.comment) != (_DIGEST_DIGITS + len(_SEAL) if has_seal else 0):
        raise ValueError("its end is missing")
    if any(
        entry.compress_type not in (zipfile.ZIP_STORED, *([] if has_seal else [zipfile.ZIP_DEFLATED]))
        for entry in entries
    ):
        raise ValueError("a part is compressed")
    most = size if has_seal else _MAX_COMPRESSED_BYTES + _MAX_COMPRESSED_RATIO * size
    if sum(entry.file_size for entry in entries) > most:
        raise ValueError(f"its parts are larger than {most / 1e6:,.1f} MB, the most for a file of its size")
    members = {entry.filename: archive.read(entry) for entry in entries}
    for entry in entries:
        if len(members[entry.filename]) != entry.file_size:
            raise ValueError(f"its part {entry.filename[:_MAX_TEXT_LENGTH]!r} is shorter than it says")
    return members
