"""Sheets of Excel and OpenDocument files, as the text that the same sheet would have in CSV."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Sequence
from typing import Any

import polars as pl

from ..errors import JudgmentError, MissingExtraError
from ..wording import either, first_few, option
from .notices import say
from .sources import OLD_SPREADSHEET, ZIP, Source, not_unpacked, title_note

_SUFFIXES = {".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"}
_PARTS = ("xl/", "content.xml")


def is_spreadsheet(source: Source) -> bool:
    """Return whether a file is a spreadsheet; another zip archive is refused."""
    if source.data[:4] == OLD_SPREADSHEET:
        return True
    if source.data[:4] != ZIP:
        return False
    try:
        names = zipfile.ZipFile(io.BytesIO(source.data[:])).namelist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, LookupError):
        names = []
    if source.suffix in _SUFFIXES or any(name.startswith(_PARTS) for name in names):
        return True
    raise not_unpacked(source.name, ZIP)


def read_sheet(
    source: Source, sheet: str | None = None, names: Sequence[str] | None = None, *, skip_rows: int = 0
) -> pl.DataFrame:
    """Return the table of one sheet, the first unless it is named; a blank cell is null.

    Rows with one cell above a header of several, such as a title, are passed over, which is said.

    Parameters
    ----------
    source
        The opened file.
    sheet
        Name of the sheet.
    names
        Column names, for a sheet without a header line.
    skip_rows
        Rows above the header.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise MissingExtraError(
            f"{source.name} is an Excel file; pip install 'crowdrank[excel]', or save the sheet as CSV"
        ) from None
    damaged = JudgmentError(f"{source.name} is a truncated or damaged Excel file; save or copy it again")
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(source.data[:]))
    except (CalamineError, OSError, ValueError, zipfile.BadZipFile):
        raise damaged from None
    name = _sheet_name(source, book.sheet_names, sheet)
    try:
        page = book.get_sheet_by_name(name)
        merged = getattr(page, "merged_cell_ranges", None) or []
        rows = page.to_python(skip_empty_area=False)
    except (CalamineError, OSError, ValueError, zipfile.BadZipFile):
        raise damaged from None
    rows = rows[skip_rows:]
    merged = [one for one in merged if one[1][0] >= skip_rows + _title_rows(rows)]
    if merged:
        (first_row, first_column), (last_row, last_column) = merged[0]
        place = f"{_letters(first_column)}{first_row + 1}:{_letters(last_column)}{last_row + 1}"
        raise JudgmentError(f"{source.name}: cells {place} are merged; unmerge them, so that each row is one judgment")
    return _table(source, [[_text(cell) for cell in row] for row in rows], names)


def _title_rows(rows: list[list[Any]]) -> int:
    """How many rows with at most one filled cell stand above the first one of several, which is not the last."""
    filled = [sum(cell is not None and str(cell).strip() != "" for cell in row) for row in rows]
    first = next((number for number, n in enumerate(filled) if n > 1), 0)
    return first if any(filled[:first]) and sum(n > 1 for n in filled[first:]) > 1 else 0


def _sheet_name(source: Source, known: Sequence[str], wanted: str | None) -> str:
    """The sheet to read; the others are named."""
    if not known:
        raise source.no_rows()
    if wanted is None:
        rest = [repr(name) for name in known[1:]]
        if rest:
            which = option("sheet", known[1])
            say(f"{source.name}: sheet {known[0]!r} is read; there is also {first_few(rest)} ({which})")
        return known[0]
    if wanted not in known:
        raise JudgmentError(f"{source.name} has no sheet {wanted!r}; its sheets are {either(map(repr, known), 'and')}")
    return wanted


def _table(source: Source, rows: list[list[str | None]], names: Sequence[str] | None) -> pl.DataFrame:
    """The rows that are not blank below the header, which is the first of them."""
    if names is None and (above := _title_rows(rows)):
        title = next(cell for row in rows[:above] for cell in row if cell is not None)
        say(title_note(source, title))
        rows = rows[above:]
    filled = [row for row in rows if any(cell is not None for cell in row)]
    if not filled:
        raise source.no_rows()
    width = max(number + 1 for row in filled for number, cell in enumerate(row) if cell is not None)
    if names is None:
        header, filled = filled[0], filled[1:]
        cells = [*header, *[None] * width][:width]
        names = [cell or f"column_{number}" for number, cell in enumerate(cells, 1)]
    elif len(names) != width:
        raise JudgmentError(f"{source.name} has {width} columns where {len(names)} names were given")
    if not filled:
        raise source.no_rows()
    doubled = next((name for name in names if list(names).count(name) > 1), None)
    if doubled is not None:
        raise JudgmentError(f"{source.name}: column {doubled!r} appears twice in the header; rename one of them")
    full = [[*row, *[None] * width][:width] for row in filled]
    return pl.DataFrame(full, schema=dict.fromkeys(names, pl.String), orient="row")


def _text(cell: Any) -> str | None:
    """A cell as CSV has it: whole numbers without a point, dates as 2024-05-01, blanks as nothing."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1 << 53 else repr(cell)
    if isinstance(cell, datetime.datetime):
        midnight = cell.time() == datetime.time() and cell.tzinfo is None
        return cell.date().isoformat() if midnight else cell.isoformat()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, datetime.timedelta):
        return str(cell)
    return str(cell).strip() or None


def _letters(column: int) -> str:
    """A column as spreadsheets call it: A, B, ..., AA."""
    letters = ""
    while column >= 0:
        letters, column = chr(65 + column % 26) + letters, column // 26 - 1
    return letters
