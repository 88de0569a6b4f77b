"""Text files in a zip archive, in which some tools pack their exports."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import PurePosixPath

from ...errors import JudgmentError
from ..sources import OLD_SPREADSHEET, Source
from ..tables import read_sheet

_TEXTS = (".jsonl", ".json", ".csv")
_SHEET_PARTS = ("xl/", "content.xml")
_MOST_BYTES = 1 << 31
_SMALL_SHEET = 1 << 20
"""Bytes up to which a sheet is looked into unasked: it has to be read as a whole for that."""

_DAMAGED = (
    zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError, LookupError, zlib.error,
    struct.error,
)  # fmt: skip
"""What a damaged or strange archive may lead to."""


def member_names(source: Source) -> list[str]:
    """Return the names of all files in an archive, none where it is damaged."""
    try:
        with _open_archive(source) as archive:
            return archive.namelist()
    except _DAMAGED:
        return []


def text_members(source: Source, most: int = _MOST_BYTES, files: int | None = None) -> list[Source]:
    """Return the JSON and CSV files of an archive, or the first of them, each up to so many bytes of it."""
    members: list[Source] = []
    try:
        with _open_archive(source) as archive:
            for name in archive.namelist():
                suffix = PurePosixPath(name).suffix.lower()
                if suffix not in _TEXTS or name.startswith("__MACOSX") or len(members) == files:
                    continue
                with archive.open(name) as handle:
                    data = handle.read(most)
                if data.strip():
                    members.append(Source(name, suffix, data, None))
    except _DAMAGED:
        raise JudgmentError(f"{source.name} is a damaged zip archive; copy or download it again") from None
    return members


def is_sheet(source: Source) -> bool:
    """Return whether a file is a spreadsheet."""
    if source.data[:4] == OLD_SPREADSHEET:
        return True
    return any(name.startswith(_SHEET_PARTS) for name in member_names(source))


def sheet_as_text(source: Source, sheet: str | None) -> Source:
    """Return a sheet as the text table that it would be in CSV."""
    memory = io.BytesIO()
    read_sheet(source, sheet).write_csv(memory)
    return Source(source.name, ".csv", memory.getvalue(), None)


def first_sheet_rows(source: Source, rows: int) -> list[list[str]]:
    """Return the first rows of the first sheet; none where it is large, damaged or the package for it is missing."""
    if len(source.data) > _SMALL_SHEET:
        return []
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        return []
    try:
        page = CalamineWorkbook.from_filelike(io.BytesIO(source.data[:])).get_sheet_by_index(0)
        cells = page.to_python(skip_empty_area=False, nrows=rows)
    except (CalamineError, *_DAMAGED):
        return []
    return [[str(cell) for cell in row] for row in cells if any(cell != "" for cell in row)]


def _open_archive(source: Source) -> zipfile.ZipFile:
    """The archive, by its path where it has one, so that it is not held in memory."""
    return zipfile.ZipFile(io.BytesIO(source.data[:]) if source.path is None else source.path)
