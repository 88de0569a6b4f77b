"""Files without a header line: told by a first line that looks like the others, and names proposed for it."""

from __future__ import annotations

import polars as pl

from ..data.column_facts import ColumnFacts, as_float, count_cells
from ..data.column_names import is_known_name
from ..errors import JudgmentError, ParameterError
from ..wording import option
from .delimited import first_cells, read_delimited
from .notices import say
from .read_options import ReadOptions
from .sources import NotUtf8Error, Source, title_note
from .tables import table_format

_FEW_GRADES = 12
_LARGEST_GRADE = 100.0
_FEWEST_COLUMNS = 2


_TITLE_BYTES, _MOST_TITLE_LINES = 1 << 14, 10


def below_title(source: Source, options: ReadOptions) -> Source:
    """Return a text table without the lines above its header: as many as were said, or a title alone in its line.

    A title is found where the first lines have one cell each and the two below them several, of the same number.
    """
    if table_format(source) != "csv":
        return source
    lines = source.data[source.start : source.start + _TITLE_BYTES].splitlines(keepends=True)
    above = options.skip_rows
    if not above and options.header is None:
        above = _title_lines([line.decode("utf-8", "replace") for line in lines[: _MOST_TITLE_LINES + 2]])
        if above:
            title = next(line for line in lines if line.strip(b" ,;\t|\r\n"))
            say(title_note(source, title.decode("utf-8", "replace").strip(' ,;\t|\r\n"')))
    if not above:
        return source
    if above >= len(lines):
        raise ParameterError(
            f"{option('skip_rows', above)} passes over {source.name} as a whole; give a smaller number"
        )
    end = source.start + sum(map(len, lines[:above]))
    return Source(source.name, source.suffix, source.data[end:], None, source.encoding)


def _title_lines(lines: list[str]) -> int:
    """How many of the first lines have at most one cell, above two of several cells each."""
    if not lines or any(sum(bool(cell.strip(' "\r\n')) for cell in lines[0].split(mark)) > 1 for mark in ",\t;|"):
        return 0
    for mark in ",\t;|":
        rows = [[cell.strip(' "') for cell in line.rstrip("\r\n").split(mark)] for line in lines]
        filled = [sum(map(bool, row)) for row in rows]
        first = next((number for number, n in enumerate(filled) if n > 1), None)
        if not first or first + 1 >= len(rows) or first > _MOST_TITLE_LINES:
            continue
        titles = [row[0].lower() for row in rows[:first] if any(row)]
        if (
            titles
            and not titles[0].startswith(("sep=", "#"))
            and len(rows[first]) == len(rows[first + 1]) >= _FEWEST_COLUMNS
        ):
            return first
    return 0


def check_header(source: Source, options: ReadOptions) -> None:
    """Refuse a text table whose first line holds numbers and no name that is known."""
    try:
        cells = first_cells(source)
    except NotUtf8Error:
        return
    asked = {*options.columns.values(), *(options.wide or ())}
    if asked & set(cells) or not any(as_float(cell) is not None for cell in cells):
        return
    # a letter alone is as likely an id
    if any(is_known_name(cell) for cell in cells if len(cell) > 1):
        return
    table = read_delimited(source, names=[f"column_{number}" for number in range(1, len(cells) + 1)])
    raise _no_header(cells, table)


def check_first_row(table: pl.DataFrame, options: ReadOptions) -> None:
    """Refuse a table that nothing is understood of and whose names stand in the rows below them again."""
    cells = table.columns
    asked = {*options.columns.values(), *(options.wide or ())}
    if asked & set(cells) or any(is_known_name(cell) for cell in cells) or len(cells) < _FEWEST_COLUMNS:
        return
    if any(table[cell].dtype == pl.String and (table[cell] == cell).any() for cell in cells):
        first = pl.DataFrame([cells], schema=dict.fromkeys(cells, pl.String), orient="row")
        whole = pl.concat([first, table.cast(pl.String)])
        whole.columns = [f"column_{number}" for number in range(1, len(cells) + 1)]
        raise _no_header(cells, whole)


def _no_header(cells: list[str], table: pl.DataFrame) -> JudgmentError:
    """The error for a first line that is one of the rows."""
    first = ", ".join(cell if len(cell) <= 30 else f"{cell[:27]}..." for cell in cells[:10])
    names = option("header", likely_names(table))
    return JudgmentError(f"the first line ({first}) looks like data; name the columns: {names}")


def likely_names(table: pl.DataFrame) -> list[str]:
    """Return names for the columns of a table without any: annotator, item, grade and truth where they may be such.

    Examples
    --------
    >>> rows = {"column_1": ["a", "b", "a", "b"], "column_2": ["x", "x", "y", "z"], "column_3": ["1", "2", "0", "1"]}
    >>> likely_names(pl.DataFrame(rows))
    ['annotator', 'item', 'grade']
    """
    facts = {name: ColumnFacts(name, table[name]) for name in table.columns}
    few = [name for name in table.columns if _like_grades(facts[name])]
    few = few or [name for name in table.columns if facts[name].numbers and not facts[name].all_different]
    if not few:
        few = [min(reversed(table.columns), key=lambda name: facts[name].distinct)]
    grades = few[-2:]
    ids = [name for name in table.columns if name not in grades and not facts[name].times and facts[name].sample]
    if not ids:
        ids, grades = [name for name in table.columns if name != grades[-1]], grades[-1:]
    roles = dict.fromkeys(table.columns, "")
    # the item is what a grade that is the same for all must hang on, or what has more values
    fixed = [(name, item) for name in grades for item in ids if _hangs_on(table, name, item) and len(grades) > 1]
    truth, item = fixed[-1] if fixed else (None, max(ids, key=lambda name: facts[name].distinct) if ids else None)
    if item is not None:
        roles[item] = "item"
    if truth is not None:
        roles[truth] = "truth"
    roles[next((name for name in grades if name != truth), grades[0])] = "grade"
    others = [name for name in ids if name != item]
    who = next((name for name in others if not facts[name].all_different), None)
    if who is not None:
        roles[who] = "annotator"
    return [role or name for name, role in roles.items()]


def _like_grades(facts: ColumnFacts) -> bool:
    """Whether a column holds a few small numbers."""
    values = [value for text in set(facts.sample) if (value := as_float(text)) is not None]
    small = bool(values) and max(abs(value) for value in values) <= _LARGEST_GRADE
    return facts.numbers and small and 1 < facts.distinct <= _FEW_GRADES


def _hangs_on(table: pl.DataFrame, value: str, item: str) -> bool:
    """Whether a column has one value for each item, of which some have several rows."""
    n = table[item].n_unique()
    return n < len(table) and count_cells([table[value], table[item]]) == n
