"""CSV, TSV and semicolon-separated text: polars reads, and a careful second reader says what it tripped over."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.column_names import is_known_name
from ..errors import JudgmentError, ParameterError
from .sources import BLOCK, NotUtf8Error, Source, as_windows_text, show_value
from .trec import looks_like_qrels, looks_like_run

_SEPARATORS = ",\t;|"
# what is not blank; text up to a line end outside quotes
_CONTENT, _RECORD = re.compile(rb"\S"), re.compile(rb'(?:[^"\n]++|"[^"]*+"?)*+')
_TOLD = re.compile(r'"?sep=([,;|\t])"?', re.IGNORECASE)
# threshold (equal): rows of careful CSV turned into columns at once
_ROWS_AT_ONCE = 100_000
_GLANCE, _FEWEST_LINES, _FEWEST_WORDS, _FEWEST_NAMES = 1 << 16, 3, 3, 2
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


@dataclass(frozen=True)
class _Layout:
    """How the cells of a text table are laid out."""

    names: tuple[str, ...]
    separator: str
    # where the table begins: behind a byte-order mark and blank lines
    start: int
    has_header: bool
    quotes: bool
    # whether cells may have white space around them
    loose: bool
    # whether all quotes and line ends stand where polars and the csv module agree on their meaning
    plain: bool
    # number of blank names at the end of the header, which rows may have no cells for
    n_nameless: int = 0


def read_delimited(source: Source, *, names: Sequence[str] | None = None, separator: str | None = None) -> pl.DataFrame:
    """Return the table with every cell as text; a blank cell is null, and rows without any cell are left out."""
    source = _with_tabs(_with_newlines(source)) if separator is None else _with_newlines(source)
    layout = _layout(source, names, separator)
    frame = _fast(source, layout) if layout.plain else None
    if frame is None:
        frame = _careful(source, layout)
    if not frame.height:
        raise JudgmentError(f"{source.name} has a header but no rows; add the rows below it")
    escaped = pl.col(pl.String).str.replace(r"^'('*[=+\-@\t\r])", "$1")
    return frame.with_columns(escaped) if _may_have_escapes(source) else frame


def _may_have_escapes(source: Source) -> bool:
    """Whether a cell may begin with an apostrophe that keeps spreadsheets from running it as a formula."""
    return any(source.data.find(b"'" + mark) >= 0 for mark in (b"=", b"+", b"-", b"@", b"\t", b"\r"))


class Scan(NamedTuple):
    """A text table that is read lazily."""

    # every cell as text, with the white space around it; rows without any cell are not left out
    frame: pl.LazyFrame
    # name of the last column, whose cells are null where a row may be too short
    last: str
    # says whether a row is of another length than the header
    is_ragged: Callable[[], bool]


def scan_delimited(source: Source, *, names: Sequence[str] | None = None) -> Scan | None:
    """Return the table to be read lazily; ``None`` where only the careful reader will do."""
    if _with_tabs(source) is not source or _may_have_escapes(source):
        return None
    layout = _layout(source, names, None)
    if not layout.plain or source.path is None or layout.start != source.start or layout.n_nameless:
        return None
    form: dict[str, Any] = {"has_header": layout.has_header, "separator": layout.separator}
    form["with_column_names"] = lambda _: list(layout.names)
    frame = pl.scan_csv(source.path, infer_schema=False, glob=False, **form)
    return Scan(frame, layout.names[-1], partial(_is_ragged, source, layout))


def first_cells(source: Source) -> list[str]:
    """Return the cells of the first line of a text table."""
    source = _with_tabs(_with_newlines(source))
    first = _first_record(source, _first_content(source))
    return _split(source, first, separator_in(first, source.suffix)) if not _TOLD.fullmatch(first) else []


def separator_of(source: Source) -> str:
    """Return what stands between the cells of a text table."""
    try:
        return _first_line(_with_newlines(source))[2]
    except NotUtf8Error:
        return separator_of(as_windows_text(source)[0])


def _first_line(source: Source) -> tuple[int, str, str]:
    """Start and text of the first line of the table, below the one that Excel writes for itself, and its separator."""
    start = _first_content(source)
    first = _first_record(source, start)
    declaration = _TOLD.fullmatch(first)
    if declaration is None:
        return start, first, separator_in(first, source.suffix)
    start = _first_content(source, start + len(first.encode()))
    return start, _first_record(source, start), declaration[1]


def _with_newlines(source: Source) -> Source:
    """The source with lines ended by newlines, where they end in bare carriage returns."""
    if source.data.find(b"\n") >= 0 or source.data.find(b"\r") < 0:
        return source
    return Source(source.name, source.suffix, source.data[:].replace(b"\r", b"\n"), None)


def _with_tabs(source: Source) -> Source:
    """Return the source with tabs for the white space between cells, where nothing else separates them.

    That is so where each line looked at has as many words as the first one, three or more, and no quote. Files of TREC,
    which have no names of columns, are left alone.
    """
    end = source.data.find(b"\n", source.start)
    if end < 0 or any(mark in source.data[source.start : end] for mark in b',\t;|"'):
        return source
    if looks_like_qrels(source) or looks_like_run(source):
        return source
    lines = [line for line in source.data[source.start : source.start + _GLANCE].split(b"\n")[:-1] if line.strip()]
    widths = [len(line.split()) for line in lines]
    if len(lines) < _FEWEST_LINES or widths[0] < _FEWEST_WORDS or any(b'"' in line for line in lines):
        return source
    odd = next((place for place, width in enumerate(widths) if width != widths[0]), None)
    if odd is not None:
        if sum(map(is_known_name, lines[0].decode("utf-8", "replace").split())) < _FEWEST_NAMES:
            return source
        problem = f"{source.name}: line {odd + 1} has {widths[odd]} words where the first line has {widths[0]}"
        raise JudgmentError(f"{problem}; put tabs or commas between the cells")
    rows = source.data[source.start :].split(b"\n")
    return Source(source.name, source.suffix, b"\n".join(b"\t".join(row.split()) for row in rows), None)


def _layout(source: Source, names: Sequence[str] | None, separator: str | None) -> _Layout:
    """Look at the first record and once over all bytes."""
    start, first, likely = _first_line(source)
    if separator is None:
        separator = likely
    elif len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise ParameterError(f"separator={separator!r} is not a single character; give one such as ',' or a tab")
    cells = _split(source, first, separator)
    if names is not None and len(names) != len(cells):
        raise JudgmentError(f"{source.name} has {len(cells)} columns where {len(names)} names were given")
    header = tuple(names or (cell or f"column_{number}" for number, cell in enumerate(cells, 1)))
    if len(set(header)) < len(header):
        doubled = next(name for name in header if header.count(name) > 1)
        times = f"appears {header.count(doubled)} times in the header"
        raise JudgmentError(f"{source.name}: column {show_value(doubled)} {times}; rename one of them")
    quotes, loose, bare_return = _scan(source, separator)
    plain = not bare_return and (not quotes or _well_quoted(source, start, separator))
    nameless = sum(1 for _ in takewhile(lambda cell: not cell, reversed(cells))) if names is None else 0
    return _Layout(header, separator, start, names is None, quotes, loose, plain, nameless)


def _first_content(source: Source, start: int | None = None) -> int:
    """Start of the first line that is not blank."""
    start = source.start if start is None else start
    content = _CONTENT.search(source.data, start)
    if content is None:
        raise JudgmentError(f"{source.name} holds only blank lines; check that it was written in full")
    return max(start, source.data.rfind(b"\n", start, content.start()) + 1)


def _first_record(source: Source, start: int) -> str:
    """Text up to the first line end outside quotes."""
    end = _RECORD.match(source.data, start).end()  # type: ignore[union-attr]
    try:
        return source.data[start:end].decode("utf-8").rstrip("\r")
    except UnicodeDecodeError as error:
        raise source.not_utf8(start + error.start) from None


def separator_in(first: str, suffix: str) -> str:
    """Return the candidate that stands most often in the first record, outside quotes."""
    bare = re.sub(r'"[^"]*"', "", first)
    preferred = "\t" if suffix in (".tsv", ".tab") else ","
    return max(preferred + _SEPARATORS, key=lambda candidate: bare.count(candidate))


def _split(source: Source, first: str, separator: str) -> list[str]:
    """Stripped cells of the first record."""
    text = io.StringIO(first, newline="")
    with long_cells():
        try:
            cells = next(csv.reader(text, delimiter=separator, skipinitialspace=True, strict=True))
        except csv.Error:
            raise JudgmentError(f"{source.name}: {_quoting('the first line')}") from None
    return [cell.strip() for cell in cells]


def _scan(source: Source, separator: str) -> tuple[bool, bool, bool]:
    """Whether there are quotes, whether white space may surround cells, and whether a line ends in a bare return.

    NUL bytes are refused.
    """
    quotes, loose, n_returns, n_newlines_behind = False, False, 0, 0
    blanks = [blank for blank in (b" ", b"\t", b"\x0b", b"\x0c") if blank != separator.encode()]
    for start in range(0, len(source.data), BLOCK):
        block = source.data[start : start + BLOCK]
        if b"\0" in block:
            raise source.nul_byte()
        quotes = quotes or b'"' in block
        loose = loose or not block.isascii() or any(blank in block for blank in blanks)
        if b"\r" in block:
            n_returns += block.count(b"\r")
            n_newlines_behind += (block + source.data[start + BLOCK : start + BLOCK + 1]).count(b"\r\n")
        source.release(start + len(block))
    return quotes, loose or quotes, n_returns > n_newlines_behind


def _well_quoted(source: Source, start: int, separator: str) -> bool:
    """Whether every quote opens a cell, closes one or is doubled, so that polars reads the cells as they are meant."""
    view = np.frombuffer(source.data, np.uint8)[start:]
    before_open, after_close = np.zeros(256, bool), np.zeros(256, bool)
    before_open[[ord(separator), _NEWLINE, _QUOTE]] = True
    after_close[[ord(separator), _NEWLINE, _QUOTE, _RETURN]] = True
    n_quotes = 0
    for begin in range(0, len(view), BLOCK):
        found = np.flatnonzero(view[begin : begin + BLOCK] == _QUOTE) + begin
        opening, closing = (found[n_quotes % 2 :: 2], found[1 - n_quotes % 2 :: 2])
        opening = opening[opening > 0]
        closing = closing[closing < len(view) - 1]
        if not (before_open[view[opening - 1]].all() and after_close[view[closing + 1]].all()):
            return False
        n_quotes += len(found)
        source.release(start + begin)
    return n_quotes % 2 == 0


def _fast(source: Source, layout: _Layout) -> pl.DataFrame | None:
    """The table as polars reads it, or ``None`` where it fails or may have taken a row of the wrong length."""
    where = source.path if layout.start == source.start else None
    try:
        form: dict[str, Any] = {"has_header": layout.has_header, "separator": layout.separator}
        frame = pl.read_csv(where or source.data[layout.start :], infer_schema=False, glob=False, **form)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    if frame.width != len(layout.names):
        return None
    frame.columns = list(layout.names)
    gaps = frame.height > 0 and frame.to_series(-1).null_count() > 0
    # polars fills short rows with nulls, and forgives one separator too many at the very end
    doubtful = gaps or source.data[-1:] == layout.separator.encode()
    if doubtful and _is_ragged(source, layout):
        return None
    # cells stripped, blank ones null, and blank rows left out
    if layout.loose:
        frame = frame.with_columns(pl.all().str.strip_chars())
        empty = [column.name for column in frame.iter_columns() if (column == "").any()]
        frame = frame.with_columns(pl.when(pl.col(name) != "").then(name).alias(name) for name in empty)
        gaps = frame.height > 0 and frame.to_series(-1).null_count() > 0
    return frame.filter(~pl.all_horizontal(pl.all().is_null())) if gaps else frame


def _is_ragged(source: Source, layout: _Layout) -> bool:
    """Whether a row that is not blank has more or fewer separators than the header."""
    view = np.frombuffer(source.data, np.uint8)[layout.start :]
    wanted = len(layout.names) - 1
    inside, begun, last_end = 0, 0, -1
    for start in range(0, len(view), BLOCK):
        block = view[start : start + BLOCK]
        # positions of separators and line ends outside quotes
        wanted_marks = (block == ord(layout.separator)) | (block == _NEWLINE)
        if layout.quotes:
            parity = (np.cumsum(block == _QUOTE, dtype=np.uint8) & 1) ^ inside
            wanted_marks &= parity == 0
            inside = int(parity[-1])
        marks = np.flatnonzero(wanted_marks)
        ends = np.flatnonzero(block[marks] == _NEWLINE)
        counts = np.diff(ends, prepend=-1) - 1
        if len(ends):
            counts[0] += begun
        begun = len(marks) - 1 - int(ends[-1]) if len(ends) else begun + len(marks)
        positions = marks[ends] + start
        wrong = np.flatnonzero(counts != wanted)
        begins = np.concatenate([[last_end], positions])[wrong] + 1
        rows = (view[begin:end].tobytes() for begin, end in zip(begins, positions[wrong], strict=True))
        if any(row not in (b"", b"\r") for row in rows):
            return True
        last_end = int(positions[-1]) if len(positions) else last_end
        source.release(layout.start + start)
    return begun != wanted and view[last_end + 1 :].tobytes() not in (b"", b"\r")


def _careful(source: Source, layout: _Layout) -> pl.DataFrame:
    """The table read row by row, which is slow but can say in which row something is wrong."""
    raw = source.data[layout.start :]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise source.not_utf8(layout.start + error.start) from None
    schema, parts = dict.fromkeys(layout.names, pl.String), list[pl.DataFrame]()
    rows = _records(source.name, text, layout, source.line_at(layout.start))
    with long_cells():
        while not parts or len(parts[-1]) == _ROWS_AT_ONCE:
            parts.append(pl.DataFrame(list(islice(rows, _ROWS_AT_ONCE)), schema=schema, orient="row"))
    return pl.concat(parts)


def _records(name: str, text: str, layout: _Layout, first_line: int) -> Iterator[list[str | None]]:
    """Rows that are not blank, each as long as the header."""
    lines, mark = io.StringIO(text, newline=""), layout.separator
    reader = csv.reader(lines, delimiter=mark, skipinitialspace=mark != " ", strict=True)
    if layout.has_header:
        next(reader)
    number, wanted = 0, len(layout.names)
    while True:
        place = f"row {number + 1} (line {first_line + reader.line_num})"
        try:
            cells = [cell.strip() or None for cell in next(reader)]
        except StopIteration:
            return
        except csv.Error:
            raise JudgmentError(f"{name}: {_quoting(place)}") from None
        if not any(cells):
            continue
        number += 1
        if len(cells) > wanted and not any(cells[wanted:]):
            # separators without anything behind them
            cells = cells[:wanted]
        elif wanted - layout.n_nameless <= len(cells) < wanted:
            cells += [None] * (wanted - len(cells))
        if len(cells) != wanted:
            problem = f"{name}: {place} has {len(cells)} cells where the header has {wanted}"
            raise JudgmentError(f"{problem}; correct it, and put a cell that holds the separator in quotes")
        yield cells


def _quoting(place: str) -> str:
    """Sentence for a cell whose quotes do not fit together."""
    return f'{place} has a quote that is not closed or is followed by more text; write a quote within a cell as ""'


@contextmanager
def long_cells() -> Iterator[None]:
    """Let the csv module read cells of any length."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
