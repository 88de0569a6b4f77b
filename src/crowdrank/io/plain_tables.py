"""Plain tables: rows chosen, columns reached and turned as asked, and each given its role; what stays unclear stops."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from ..data import column_names, presented
from ..data import columns as table_columns
from ..data.columns import ColumnFacts, Understood, count_cells
from ..data.covariates import covariate_columns
from ..data.frames import refuse_ranks, survey_rows, unpivot
from ..data.intake import are_times, numbers_of, order_of
from ..data.words import as_float, bad_word, which_direction
from ..errors import JudgmentError, ParameterError
from ..protocols import Bools, Floats
from ..wording import counted, either, first_few, option
from . import number_text
from .delimited import first_cells, read_delimited, separator_of
from .exports import cells as foreign
from .notices import say
from .read_options import SIDES, ReadOptions, side_words
from .sources import NotUtf8Error, Source, blaming, show_value, title_note
from .tables import Mixed, has_lines, in_any_encoding, read_long_lines, read_source, table_format

# bytes of a file of JSON lines from which on it is read block by block
LONG_BYTES = 64 << 20

# words whose cells are ids
IDS = ("query", "item", "left", "right", "loser", "annotator", "ranking", "group")

_FEWEST_CLASSES, _MOST_CLASSES = 3, 12
_SOME_ROWS, _MOST_ITEMS = 10_000, 2_000
_LIST = re.compile(r"\[[^\[\]{}]*,[^\[\]{}]*\]")
_ANCHOR = re.compile(r"(.*_)?(anchor|reference|ref|probe|standard)(_.*)?")


class Plain(NamedTuple):
    """A plain table once its columns are understood."""

    # all columns that were looked at, rows that were left out not among them
    whole: pl.DataFrame
    understood: Understood
    # the columns that matter, under their house words
    frame: pl.DataFrame
    levels: list[str] | None
    notes: tuple[str, ...]
    # rows and columns of the file itself
    shape: tuple[int, int] = (0, 0)
    # reads the file once more with all its columns, where some were spared
    again: Callable[[], Plain] | None = None


def read_plain(source: Source, options: ReadOptions) -> Plain:
    """Return the columns that matter of a plain table, under their house words."""
    for name in ("keep", "baseline_model", "agreeing"):
        if getattr(options, name):
            problem = f"{option(name)} applies to exports of other tools, but this is a plain table"
            raise ParameterError(f"{problem}; leave it out")
    form = table_format(source)
    source = below_title(source, options)
    if form == "csv" and options.header is None:
        _check_header(source, options)
    if options.header is not None and form not in ("csv", "excel"):
        raise ParameterError(f"{option('header')} names the columns of CSV and Excel files; leave it out")
    turned = options.wide is not None or options.add_columns is not None or bool(options.covariates)
    if form == "jsonl" and len(source.data) >= LONG_BYTES and has_lines(source) and not turned:
        plain = in_any_encoding(source, partial(_read_long, options=options))
        if plain is not None:
            return plain
    if form != "parquet" or options.wide is not None:
        table, mixed = read_source(source, names=options.header, sheet=options.sheet, skip_rows=options.skip_rows)
        try:
            return plain_rows(table, mixed, options, source)
        except JudgmentError:
            if options.header is None and form in ("csv", "excel"):
                _check_first_row(table, options)
            raise
    spared: list[str] = []

    def choose(known: list[str]) -> list[str]:
        """The columns of a Parquet file whose cells are needed."""
        if options.add_columns is not None:
            return known
        likely = set(column_names.candidates(known, options.columns, filter(presented.may_tell_order, known)))
        likely |= {root[0] for path in _named_paths(options) if (root := _root_of(known, path)) is not None}
        likely |= {*covariate_columns(pl.DataFrame(schema=known), options.covariates)}
        spared.extend(name for name in known if likely and name not in likely)
        return [name for name in known if name not in spared]

    def wholly() -> Plain:
        """The same with all columns of the file."""
        return plain_rows(*read_source(source), options, source)

    table, mixed = read_source(source, choose=choose)
    try:
        plain = plain_rows(table, mixed, options, source)
    except JudgmentError:
        # what is unclear is said of all columns
        return wholly()
    understood = replace(plain.understood, ignored=(*plain.understood.ignored, *spared))
    return plain._replace(understood=understood, again=wholly if spared else None)


def chosen_rows(source: Source, options: ReadOptions) -> pl.DataFrame:
    """Return a table as it stands, only the rows that are wanted, columns that were named under our words."""
    source = below_title(source, options)
    table, _ = read_source(source, names=options.header, sheet=options.sheet, skip_rows=options.skip_rows)
    with blaming(source.name):
        table = _choose_rows(table, options)
        named = column_names.given_columns(table.columns, options.columns)
    lost = [word for word, name in named.items() if word in table.columns and word != name]
    return table.drop(lost).rename({name: word for word, name in named.items()})


def _read_long(source: Source, options: ReadOptions) -> Plain | None:
    """What is understood of a long file of JSON lines; ``None`` where it must be read in one go.

    Text is cut where it is not needed. Where it turns out to be needed, as ids, those columns are read once more.
    """
    asked = _named_paths(options)

    def is_needed(name: str) -> bool:
        return any(path == name or path.startswith((f"{name}.", f"{name}[")) for path in asked)

    for _ in range(2):
        table = read_long_lines(source, is_needed)
        if table is None:
            return None
        plain = plain_rows(table.frame, table.mixed, options, source)
        ids = table.cut.intersection(plain.understood.columns.values())
        if not ids:
            return plain
        asked = [*asked, *ids]
    return None


def _named_paths(options: ReadOptions) -> list[str]:
    """The columns, or paths, that are named in the options."""
    names = [*options.columns.values(), *options.where, *([options.strength[0]] if options.strength else [])]
    swapped = [] if options.swapped is None else [options.swapped, options.swapped.rpartition("=")[0]]
    return [*names, *filter(None, (options.answer, *swapped))]


# titles and header lines ---------------------------------------------------------------------------------------------


_FEW_GRADES, _LARGEST_GRADE, _FEWEST_COLUMNS = 12, 100.0, 2
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
        problem = f"{option('skip_rows', above)} passes over {source.name} as a whole"
        raise ParameterError(f"{problem}; give a smaller number")
    end = source.start + sum(map(len, lines[:above]))
    return Source(source.name, source.suffix, source.data[end:], None, source.encoding)


def _title_lines(lines: list[str]) -> int:
    """How many of the first lines have at most one cell, above two of several cells each."""
    if not lines or any(sum(bool(cell.strip(' "\r\n')) for cell in lines[0].split(mark)) > 1 for mark in ",\t;|"):
        return 0
    for mark in ",\t;|":
        rows = [[cell.strip(' "') for cell in line.rstrip("\r\n").split(mark)] for line in lines]
        first = next((number for number, row in enumerate(rows) if sum(map(bool, row)) > 1), None)
        if not first or first + 1 >= len(rows) or first > _MOST_TITLE_LINES:
            continue
        titles = [row[0].lower() for row in rows[:first] if any(row)]
        if titles and not titles[0].startswith("sep=") and len(rows[first]) == len(rows[first + 1]) >= _FEWEST_COLUMNS:
            return first
    return 0


def _check_header(source: Source, options: ReadOptions) -> None:
    """Refuse a text table whose first line holds numbers and no name that is known."""
    try:
        cells = first_cells(source)
    except NotUtf8Error:
        return
    asked = {*options.columns.values(), *(options.wide or ())}
    if asked & set(cells) or not any(as_float(cell) is not None for cell in cells):
        return
    # a letter alone is as likely an id
    if not any(column_names.is_known_name(cell) for cell in cells if len(cell) > 1):
        raise _no_header(cells, read_delimited(source, names=list(map(str, range(len(cells))))))


def _check_first_row(table: pl.DataFrame, options: ReadOptions) -> None:
    """Refuse a table that nothing is understood of and whose names stand in the rows below them again."""
    cells = table.columns
    asked = {*options.columns.values(), *(options.wide or ())}
    if asked & set(cells) or any(map(column_names.is_known_name, cells)) or len(cells) < _FEWEST_COLUMNS:
        return
    if any(table[cell].dtype == pl.String and (table[cell] == cell).any() for cell in cells):
        first = pl.DataFrame([cells], schema=dict.fromkeys(cells, pl.String), orient="row")
        raise _no_header(cells, pl.concat([first, table.cast(pl.String)]))


def _no_header(cells: list[str], table: pl.DataFrame) -> JudgmentError:
    """The error for a first line that is one of the rows."""
    table.columns = [f"column_{number}" for number in range(1, len(cells) + 1)]
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
    few = []
    for name, known in facts.items():
        values = [abs(value) for text in set(known.sample) if (value := as_float(text)) is not None]
        small = bool(values) and max(values) <= _LARGEST_GRADE
        if known.numbers and small and 1 < known.distinct <= _FEW_GRADES:
            few.append(name)
    few = few or [name for name in table.columns if facts[name].numbers and not facts[name].all_different]
    if not few:
        few = [min(reversed(table.columns), key=lambda name: facts[name].distinct)]
    grades = few[-2:]
    ids = [name for name in table.columns if name not in grades and not facts[name].times and facts[name].sample]
    if not ids:
        ids, grades = [name for name in table.columns if name != grades[-1]], grades[-1:]
    # the item is what a grade that is the same for all its rows must hang on, or what has more values
    sizes = {item: table[item].n_unique() for item in ids}
    pairs = [(name, item) for name in grades if len(grades) > 1 for item in ids if sizes[item] < len(table)]
    fixed = [(name, item) for name, item in pairs if count_cells([table[name], table[item]]) == sizes[item]]
    truth, item = fixed[-1] if fixed else (None, max(ids, key=lambda name: facts[name].distinct) if ids else None)
    grade = next((name for name in grades if name != truth), grades[0])
    who = next((name for name in ids if name != item and not facts[name].all_different), None)
    roles = {item: "item", truth: "truth", grade: "grade", who: "annotator"}
    return [roles.get(name, name) for name in table.columns]


# rows chosen, columns reached and turned ------------------------------------------------------------------------------


def _with_path(table: pl.DataFrame, path: str, said: str) -> pl.DataFrame:
    """The table with what a path leads to as a column of its own."""
    if path in table.columns:
        return table
    root = _root_of(table.columns, path)
    if root is None:
        names = first_few([repr(name[:60]) for name in table.columns], shown=100)
        raise JudgmentError(f"{said}, but the table's columns are {names}")
    cells = at_path(table[root[0]], root[1])
    if cells.null_count() == len(cells):
        raise JudgmentError(f"{said}, but there is nothing at that path; look at what {root[0]!r} holds")
    return table.with_columns(cells.alias(path))


def _with_entries(table: pl.DataFrame, paths: Iterable[str]) -> pl.DataFrame:
    """A row for each entry of the list that paths such as ``ratings[].score`` lead through."""
    roots = dict.fromkeys(path.partition("[]")[0] for path in paths if "[]" in path and path not in table.columns)
    if not roots:
        return table
    root, *more = roots
    if more:
        raise JudgmentError(f"paths lead through the lists {root!r} and {more[0]!r}; read one at a time")
    table = _with_path(table, root, f"{option('columns')} names the list {root!r}")
    if not isinstance(table[root].dtype, pl.List):
        raise JudgmentError(f"{option('columns')} names {root + '[]'!r}, and {root!r} holds no lists; leave [] out")
    table = table.filter(pl.col(root).list.len() > 0).explode(root)
    if not isinstance(table[root].dtype, pl.Struct):
        return table.with_columns(pl.col(root).alias(f"{root}[]"))
    fields = table[root].struct.fields
    return table.with_columns(pl.col(root).struct.field(name).alias(f"{root}[].{name}") for name in fields)


def _choose_rows(table: pl.DataFrame, options: ReadOptions) -> pl.DataFrame:
    """Only the rows that have the wanted values."""
    for path, value in options.where.items():
        table = _with_path(table, path, f"{option('where')} is about {path!r}")
        cells = table[path]
        if cells.dtype.is_nested():
            raise JudgmentError(f"{option('where')} is about {path!r}, which holds objects; write a path into it")
        texts = cells.cast(pl.String, strict=False).str.strip_chars()
        keep = texts == value.strip()
        number = as_float(value)
        if number is not None:
            keep = keep.fill_null(False) | (texts.cast(pl.Float64, strict=False) == number).fill_null(False)
        elif cells.dtype == pl.Boolean:
            keep = texts == value.strip().lower()
        if not keep.fill_null(False).any():
            known = texts.drop_nulls().unique().sort().to_list()
            hidden = any(table_columns.is_personal(path, text) for text in known)
            holds = "other values" if hidden else first_few(map(repr, known))
            raise JudgmentError(f"no row has {value!r} in {path!r}, as {option('where')} asks; it holds {holds}")
        table = table.filter(keep.fill_null(False))
    return table


# a table, and our word -> the column that was named for it, or made
Turned = tuple[pl.DataFrame, dict[str, str]]


def _lengthen(table: pl.DataFrame, columns: dict[str, str], options: ReadOptions, source: Source) -> Turned:
    """One row per filled cell of the columns that hold answers, of one annotator or of one item each."""
    wide = wide_columns(table.columns, options.wide or ())
    rest = [name for name in table.columns if name not in wide]
    table = table.with_columns(number_text.without_blanks(table[name]) for name in wide)
    keys = set(map(column_names.key_of, rest))
    if columns.keys() >= {*SIDES} or (keys & {"left", "model_a", "item_a"} and keys & {"right", "model_b", "item_b"}):
        return unpivot(table, wide, "winner"), {**columns, "annotator": "annotator", "winner": "winner"}
    # whether a row holds the answers of one person; whatever does not say so is asked
    people = "annotator" in columns
    if not people and "item" not in columns:
        person, thing = column_names.person_column(rest), column_names.thing_column(rest)
        items = column_names.are_people(wide) or (thing is not None and column_names.is_surely_item(thing))
        people = person is not None
        if people == items:
            name = thing or person or (rest[0] if rest else None)
            if name is None:
                problem = f"the rows of {source.name} have no id, since all columns hold answers"
                raise JudgmentError(f"{problem}; leave the column of ids out of {option('wide')}")
            ways = [option("columns", {word: name}) for word in ("item", "annotator")]
            raise JudgmentError(f"are the rows of {source.name} items or people? {either(ways)}")
    word = "rank" if options.kind == "ranking" else "grade"
    if options.kind is None:
        refuse_ranks([table[name] for name in wide], by="respondent" if people else "annotator", across=people)
    if people:
        kept = {named: name for named, name in columns.items() if named != "annotator"}
        rows = survey_rows(table, wide, columns).rename({"grade": word})
        return rows, {**kept, "item": "item", word: word, "annotator": "annotator"}
    clash: dict[str, str] = {name: f"{name} column" for name in ("annotator", word) if name in rest}
    item = columns.get("item") or column_names.thing_column([name for name in rest if name not in clash])
    named = {**columns, **({"item": item} if item else {}), word: word, "annotator": "annotator"}
    return unpivot(table.rename(clash), wide, word), named


def wide_columns(names: list[str], wanted: Iterable[str]) -> list[str]:
    """Return the columns that names or patterns such as ``Q1_*`` mean, in the order of the table.

    Examples
    --------
    >>> wide_columns(["id", "Q1_2", "Q1_1", "Q2"], ["Q1_*"])
    ['Q1_2', 'Q1_1']
    >>> wide_columns(["id", "tea, hot", "tea"], ["tea", "hot", "tea"])
    ['tea, hot', 'tea']
    """
    by_parts = {tuple(part.strip() for part in name.split(",")): name for name in names}
    parts, at, chosen = list(wanted), 0, set[str]()
    while at < len(parts):
        # names with commas are put together again where a list was cut at commas
        end = next((end for end in range(len(parts), at, -1) if tuple(parts[at:end]) in by_parts), at + 1)
        pattern = by_parts.get(tuple(parts[at:end]), parts[at])
        hits = [name for name in names if name == pattern] or [n for n in names if fnmatch.fnmatchcase(n, pattern)]
        if not hits:
            known = first_few([repr(name[:60]) for name in names], shown=100)
            raise JudgmentError(f"{option('wide')} names {pattern!r}, which is not a column; the columns are {known}")
        chosen.update(hits)
        at = end
    return [name for name in names if name in chosen]


def _sign_winners(table: pl.DataFrame, columns: dict[str, str], path: str, better: str) -> Turned:
    """Winners and strengths from a signed column, or a difference such as ``score_a-score_b`` or ``rating-4``."""
    number, parts, reached = None, [path], table
    for at in [at for at, mark in enumerate(path) if mark == "-"] if path not in table.columns else []:
        first, second = path[:at], path[at + 1 :]
        number = as_float(second) if second not in table.columns else None
        if first in table.columns and (second in table.columns or number is not None):
            parts = [first, second] if number is None else [first]
            break
    else:
        number, reached = None, _with_path(table, path, f"{option('strength')} names the column {path!r}")
    values, blank = _numbers(reached, parts[0])
    for name in parts[1:]:
        less, blank_too = _numbers(reached, name)
        values, blank = values - less, blank | blank_too
    values = values if number is None else values - number
    filled = values[~blank]
    if not (filled < 0).any():
        middle = f"{(filled.min() + filled.max()) / 2:g}" if len(filled) else "0"
        way = f"give the middle of its scale too, as in {option('strength', {f'{path}-{middle}': better})}"
        problem = f"{path!r} is never negative, so it does not say which side is better"
        raise JudgmentError(f"{problem}; {way}, or say what its numbers mean: {option('winner_codes')}")
    worse = "right" if better == "left" else "left"
    names = {"winner": f"sign of {path}", "strength": f"size of {path}"}
    signs, known = pl.lit(pl.Series(values)), pl.lit(pl.Series(~blank))
    side = pl.when(signs > 0).then(pl.lit(better)).when(signs < 0).then(pl.lit(worse)).otherwise(pl.lit("tie"))
    made = {names["winner"]: pl.when(known).then(side), names["strength"]: pl.when(known).then(signs.abs())}
    return table.with_columns(**made), columns | names


def _numbers(table: pl.DataFrame, name: str) -> tuple[Floats, Bools]:
    """The numbers of a column, and which cells are blank."""
    values, blank, text = numbers_of(number_text.without_blanks(table[name]))
    if text.any():
        row = int(text.argmax())
        problem = f"{option('strength')} needs numbers"
        raise JudgmentError(f"{problem}; row {row + 1} of {name!r} holds {show_value(table[name][row])}")
    return values, blank


_FORMS = ("winner_{}", "{}_wins", "{}_win", "{}_won", "{}_winner", "{}_is_better", "{}_better", "prefer_{}", "chose_{}")
_ENDS = {"left": ("left", "a", "1", "model_a", "model_1"), "right": ("right", "b", "2", "model_b", "model_2")}
_TIES = ("tie", "ties", "tied", "draw", "is_tie", "winner_tie", "equal", "same")
_YES, _NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")
_NAME = "the column with a 1"


def with_winner(table: pl.DataFrame, columns: dict[str, str]) -> Turned:
    """Return the table with a winner column made of one for each side, where it has such.

    Examples
    --------
    >>> table = pl.DataFrame({"left": ["x", "y"], "right": ["y", "z"], "left_wins": [1, 0], "right_wins": [0, 1]})
    >>> made, columns = with_winner(table, {})
    >>> made[columns["winner"]].to_list()
    ['left', 'right']
    """
    sides = table_columns.side_columns(table, columns)
    if "winner" in columns or sides is None:
        return table, columns
    free = {column_names.key_of(name): name for name in reversed(table.columns) if name not in sides}
    flags: dict[str, Bools | None] = {}
    for side, column in zip(SIDES, sides, strict=True):
        called = [form.format(end) for end in (column_names.key_of(column), *_ENDS[side]) for form in _FORMS]
        flags |= {free[name]: _flags(table[free[name]]) for name in [one for one in called if one in free][:1]}
    if len(flags) < 2 or any(one is None for one in flags.values()):
        return table, columns
    ties = {free[name]: _flags(table[free[name]]) for name in _TIES if name in free}
    flags |= dict([(name, flag) for name, flag in ties.items() if flag is not None][:1])
    yes = np.column_stack([one for one in flags.values() if one is not None])
    wrong = np.flatnonzero(yes.sum(axis=1) != 1)
    if len(wrong):
        row = int(wrong[0])
        said = "none" if not yes[row].any() else "several"
        problem = f"{said} of {either(map(repr, flags), 'and')} is 1 in row {row + 1}"
        raise JudgmentError(f"{problem}, so it is not clear who won ({len(wrong)} such rows); correct them")
    words = pl.Series(_NAME, ["left", "right", "tie"]).gather(yes.argmax(axis=1))
    return table.with_columns(words), {**columns, "winner": _NAME}


def _flags(cells: pl.Series) -> Bools | None:
    """Whether each cell says yes; ``None`` where one says neither yes nor no."""
    if cells.dtype.is_nested():
        return None
    texts = cells.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase().fill_null("")
    return texts.is_in(list(_YES)).to_numpy() if texts.is_in([*_YES, *_NO]).all() else None


# what the columns are ------------------------------------------------------------------------------------------------


def plain_rows(table: pl.DataFrame, mixed: Mixed, options: ReadOptions, source: Source) -> Plain:
    """Return the table with rows chosen and columns reached and turned, understood."""
    columns, notes, shape = dict(options.columns), list[str](), table.shape
    table = _choose_rows(_with_entries(table, [*columns.values(), *options.where]), options)
    for word, path in side_words(options).items():
        # the covariates of one side, whose fields the user names
        del columns[word]
        cells = _with_path(table, path, f"{option('columns')} says {word} is {path!r}")[path]
        if isinstance(cells.dtype, pl.Struct):
            # counts by kind, as of ordered and unordered lists
            cells = cells.struct.unnest().select(pl.sum_horizontal(pl.selectors.numeric())).to_series()
        table = table.with_columns(cells.alias(word))
    if options.add_columns is not None:
        table = options.add_columns(table)
    for word, path in columns.items():
        table = _with_path(table, path, f"{option('columns')} says {word} is {path!r}")
    if options.answer is not None:
        # the column that answer names is the winner of pairs, or else the grade
        table = _with_path(table, options.answer, f"{option('answer', options.answer)} names a column")
        kind = options.kind
        if kind is None:
            sides = {column_names.key_of(name) for name in table.columns if name != options.answer}
            kind = "preference" if {"left", "right"} <= sides or {"model_a", "model_b"} <= sides else "grade"
        columns[{"preference": "winner", "grade": "grade", "ranking": "rank"}[kind]] = options.answer
    if options.wide is not None:
        table, columns = _lengthen(table, columns, options, source)
    if options.strength is not None:
        table, columns = _sign_winners(table, columns, *options.strength)
    elif options.kind in (None, "preference"):
        table, columns = with_winner(*table_columns.with_loser(table, columns))
    if options.swapped is not None and options.swapped != presented.NOT_SWAPPED:
        shown = table_columns.side_columns(table, columns)
        if shown is None or options.kind not in (None, "preference"):
            problem = f"{option('swapped')} applies to tables with two sides and a winner, but there are none"
            raise ParameterError(f"{problem}; leave it out")
        # sides as they were shown, in rows in which the right item was shown first
        table, note = presented.as_shown(table, options.swapped, shown, covariate_columns(table, options.covariates))
        notes.append(note)
    of_words = options.nominal or options.levels is not None
    known = {"coded": options.winner_codes is not None, "swapped": options.swapped is not None}
    wishes = table_columns.Wishes(annotators=not options.no_annotators, nominal=of_words, **known)
    understood = _with_notes(table, table_columns.understand(table, options.kind, columns, wishes=wishes), columns)
    words = understood.columns
    ids = (*IDS, "winner") if "loser" in words else IDS
    for name in (name for word, name in words.items() if word in ids and name in mixed):
        value = show_value(table[name][min(mixed[name], len(table)) - 1])
        problem = f"column {show_value(name)} mixes numbers and text, first in row {mixed[name]} ({value})"
        raise JudgmentError(f"{problem}; write all ids as text")
    answers = [words[word] for word in ("grade", "winner", "rank") if word in words]
    table, left_out = number_text.without_missing(table, options.missing, answers)
    notes += [*left_out, *_spelling_notes(table, words)]
    if options.judge_version is not None:
        # each version of an annotator is an annotator of its own; those without a version stay
        said = f"{option('judge_version', options.judge_version)} names the version of an annotator"
        if "annotator" not in words:
            raise JudgmentError(f"{said}, and the table names no annotators; add an annotator column")
        who, version = pl.col(words["annotator"]).cast(pl.String), options.judge_version
        texts = _with_path(table, version, said)[version].cast(pl.String, strict=False).str.strip_chars()
        named = pl.format("{} ({})", who, texts.alias("version"))
        whole = pl.when(texts.fill_null("") == "").then(who).otherwise(named)
        table = table.with_columns(whole.alias(words["annotator"]))
    # what is graded, where another column than the grade's name says it: the only metric, or the one that is wanted
    metrics = (table[name] for name in table.columns if column_names.names_metric(name) is not False)
    only = [cells[0] for cells in metrics if cells.dtype == pl.String and cells.n_unique() == 1 and cells[0]]
    wide = list(options.wide or ())
    graded = [*options.metrics, *only, *(wide[:1] if all(map(bad_word, wide)) else [])]
    frame, levels, more = with_house_words(table, understood, options, source, graded)
    # these were used to tell who won, or are read beside the columns
    used = {options.columns.get("loser"), options.judge_version, *(options.swapped or "").rpartition("=")}
    used |= set(covariate_columns(table, options.covariates)) if options.covariates else set()
    understood = replace(understood, ignored=tuple(name for name in understood.ignored if name not in used))
    return Plain(table, understood, frame, levels, (*understood.notes, *notes, *more), shape)


def _with_notes(table: pl.DataFrame, understood: Understood, given: dict[str, str]) -> Understood:
    """The same without a time that cannot be read, and with a note on it, and on what two items were compared with."""
    words, ignored, notes = understood.columns, understood.ignored, list(understood.notes)
    time = words.get("time")
    if time is not None and "time" not in given and column_names.key_of(time) != "time" and not are_times(table[time]):
        # only its name makes it a time; methods do without
        words = {word: column for word, column in words.items() if word != "time"}
        ignored = (*ignored, time)
        notes.append(f"{time!r} is not used as the time: its cells are blank or in an unknown format")
    for name in ignored if understood.kind == "preference" and "query" not in words else ():
        key = column_names.key_of(name)
        if name not in table.columns or not _ANCHOR.fullmatch(key) or table[name].dtype.is_nested():
            continue
        # as triplets have one
        sides = [words[word] for word in (("left", "right") if "left" in words else ("loser", "winner"))]
        cells, *rest = (table[one].cast(pl.String, strict=False).unique() for one in (name, *sides))
        if "anchor" in key or cells.is_in(pl.concat(rest).implode()).any():
            way = f"if the question was which item is more like it: {option('columns', {'query': name})}"
            notes.append(f"{name!r} is not used, so items are ranked over all its values; {way}")
            break
    return replace(understood, columns=words, ignored=ignored, notes=tuple(notes))


def _spelling_notes(table: pl.DataFrame, named: dict[str, str]) -> list[str]:
    """The note on items whose ids differ in capital letters only; of a long table as some of its rows tell."""
    words = [word for word in ("item", "left", "right", "winner", "loser") if word in named]
    words = words if "loser" in words else [word for word in words if word != "winner"]
    step = max(len(table) // _SOME_ROWS, 1)
    cells = [table[named[word]].gather_every(step) for word in words]
    ids = [one.unique().drop_nulls() for one in cells if one.dtype == pl.String]
    if not ids or sum(map(len, ids)) > _MOST_ITEMS:
        return []
    known = pl.concat(ids).str.strip_chars().unique().sort()
    alike = pl.DataFrame({"id": known, "key": known.str.to_lowercase()}).group_by("key", maintain_order=True).agg("id")
    several = [names for names in alike["id"].to_list() if len(names) > 1]
    if not several:
        return []
    more = f", and {counted(len(several) - 1, 'other item')} likewise" if len(several) > 1 else ""
    found = f"{either(map(repr, several[0]), 'and')} differ in capital letters only"
    return [f"{found} and count as {len(several[0])} items{more}; write them alike if they are the same"]


def with_house_words(
    table: pl.DataFrame, understood: Understood, options: ReadOptions, source: Source, metrics: Iterable[str] = ()
) -> tuple[pl.DataFrame, list[str] | None, list[str]]:
    """Return the columns that matter, grades and ranks as numbers; the levels of words, and what is to be said."""
    frame = table.select(pl.col(name).alias(word) for word, name in understood.columns.items())
    if options.covariates:
        frame = frame.with_columns(table.select(covariate_columns(table, options.covariates)))
    if "rank" in understood.columns:
        frame = frame.with_columns(number_text.without_endings(frame["rank"]))
    if "grade" not in understood.columns:
        if options.small_is_good:
            raise ParameterError(f"{option('small_is_good', True)} applies to grades, but there are none; leave it out")
        return frame, None, []
    name, notes, levels = understood.columns["grade"], list[str](), None
    cells = frame["grade"]
    sample = ColumnFacts(name, cells).sample
    if sample and all(_LIST.fullmatch(text) for text in sample):
        problem = f"{name!r} holds lists such as {show_value(sample[0])}"
        raise JudgmentError(f"{problem}; write one row per entry, with who gave it")
    if options.nominal or options.levels is not None:
        # a level such as none is an answer
        named = pl.Series(list(map(str, options.levels or ())), dtype=pl.String)
        kept, blanked = cells, number_text.without_blanks(cells)
        cells = blanked if kept.dtype != pl.String else blanked.zip_with(~kept.is_in(named.implode()), kept)
    else:
        commas = table_format(source) != "csv" or separator_of(source) != ","
        numbers = number_text.numbers_in(name, cells, commas=commas)
        cells, levels, notes = numbers.cells, numbers.levels, [numbers.note] if numbers.note else []
        notes += [*_class_note(name, cells), *number_text.no_answer_note(name, cells)]
        if levels is None and (known := order_of(cells)) is not None and known.sure:
            levels = known.levels
            notes.append(number_text.order_note(f"{name!r} is", levels))
        numeric = cells.dtype != pl.String or not numbers_of(cells)[2].all()
        said = which_direction([name, *metrics], levels) if levels is not None or numeric else None
        if options.small_is_good is None and said is not None:
            raise JudgmentError(said)
    if options.small_is_good and levels is not None:
        levels = levels[::-1]
        notes.append(f"small is good: {levels[-1]!r} is the best grade")
    elif options.small_is_good:
        cells = number_text.negative_numbers(name, cells)
        notes.append("small is good: the sign of each grade is reversed")
    return frame.with_columns(cells.alias("grade")), levels, notes


def _class_note(name: str, cells: pl.Series) -> list[str]:
    """The note on numbers without a gap that may be classes."""
    if column_names.key_of(name) not in ("label", "class") or len(ColumnFacts(name, cells).values) > _MOST_CLASSES:
        return []
    numbers = cells.unique().drop_nulls().cast(pl.Float64, strict=False).sort()
    whole = not numbers.null_count() and numbers.to_list() == list(range(len(numbers)))
    if not whole or not _FEWEST_CLASSES <= len(numbers) <= _MOST_CLASSES:
        return []
    return [f"{name!r} is read as ordered grades 0 to {len(numbers) - 1}; for classes: {option('nominal', True)}"]


# values inside nested cells ------------------------------------------------------------------------------------------


_STEP = re.compile(r"\.|\[(\d+)\]")


def _root_of(names: Iterable[str], path: str) -> tuple[str, list[str]] | None:
    """Return the column that a path starts with and the steps behind it; ``None`` where there is no such column.

    Examples
    --------
    >>> _root_of(["data", "doc.id"], "data.meta[0].url"), _root_of(["data", "doc.id"], "doc.id"), _root_of(["x"], "y.z")
    (('data', ['meta', '0', 'url']), ('doc.id', []), None)
    >>> _root_of(["scores"], "scores[].name")
    ('scores', [])
    """
    known = set(names)
    if path in known:
        return path, []
    listed, _, rest = path.partition("[]")
    if rest and (root := _root_of(names, listed)) is not None:
        return root
    for cut in reversed([match.start() for match in _STEP.finditer(path)]):
        if path[:cut] in known:
            return path[:cut], [step for step in _STEP.split(path[cut:]) if step]
    return None


def at_path(cells: pl.Series, steps: list[str]) -> pl.Series:
    """Return the values behind the steps, null where there is nothing.

    Examples
    --------
    >>> at_path(pl.Series([{"a": [3, 4]}, {"a": None}]), ["a", "1"]).to_list()
    [4, None]
    >>> at_path(pl.Series(['{"a": 1}', "no JSON"]), ["a"]).to_list()
    [1, None]
    """
    for number, step in enumerate(steps):
        if isinstance(cells.dtype, pl.Struct) and step in [field.name for field in cells.dtype.fields]:
            cells = cells.struct.field(step)
        elif isinstance(cells.dtype, pl.List) and step.isdigit():
            cells = cells.list.get(int(step), null_on_oob=True)
        elif cells.dtype == pl.String:
            # cells of JSON text
            path, texts = ".".join(steps[number:]), cells.to_list()
            values = [None if cell is None else foreign.at_path(foreign.parse_json(cell), path) for cell in texts]
            kinds = {type(value) for value in values if value is not None}
            if (kinds and kinds <= {int, float}) or kinds == {bool}:
                return pl.Series(values, strict=False)
            texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
            return pl.Series(texts, dtype=pl.String)
        else:
            return pl.Series([None] * len(cells), dtype=pl.String)
    return cells
