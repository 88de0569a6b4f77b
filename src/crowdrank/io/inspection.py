"""What a file would be read as, column by column, and the command to read it with; nothing is aggregated."""

from __future__ import annotations

import datetime
import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..data.column_names import is_gold
from ..data.columns import ColumnFacts, Wishes, is_personal, role_candidates
from ..data.files import PathLike
from ..data.intake import numbers_of
from ..data.words import as_float
from ..errors import CrowdrankError, JudgmentError
from ..wording import counted, first_few, on_command_line, percent, recurring_items, shell_words
from .delimited import first_cells
from .judgments import Table, build, open_votes, read_files, read_one, source_name
from .notices import Notice, hear
from .plain_tables import below_title
from .preflib import SUFFIXES
from .read_options import ReadOptions
from .sources import ZIP, shown_name
from .tables import read_source, table_format

_MOST_VALUES = 12
_MOST_NAMED = 6
# a time beyond this, in the year 5138, is one in milliseconds
_LATEST_SECONDS = 1e11
_FEW_IDS_QUERIES = 5
_FORMATS = {"csv": "CSV", "json": "JSON", "jsonl": "JSON lines", "parquet": "Parquet", "excel": "Excel"}
_PERSON = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+|\b\d{1,3}(\.\d{1,3}){3}\b")
_OPTION = re.compile(r"--[a-z][a-z-]+(?: (?:'[^']*'(?:\"'\"'[^']*')*|[^\s;,)]+(?:,[^\s;,)]+)*))?")
_ALONE = ("--no-annotators", "--nominal", "--small-is-good", "--large-is-good", "--drop-invalid")


@dataclass(frozen=True)
class Role:
    """A column in the role it plays, or may play."""

    word: str
    column: str
    holds: str
    sure: bool = True


@dataclass(frozen=True)
class Inspection:
    """What a file is, what it would be read as, and what to type next."""

    file: str
    n_rows: int | None = None
    n_columns: int | None = None
    format: str = ""
    encoding: str = ""
    source: str = "table"
    """Name of the importer; ``"table"`` for a plain table."""
    title: str = "a plain table"
    """What kind of file it is, in words."""
    would_read: bool = False
    problem: str | None = None
    kind: str | None = None
    n_judgments: int | None = None
    n_annotators: int | None = None
    n_items: int | None = None
    n_queries: int | None = None
    roles: tuple[Role, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    not_used: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    next: str | None = None
    """The command to type next."""
    unit: str = "row"
    """What is counted by ``n_rows``."""

    def as_dict(self) -> dict[str, Any]:
        """Return the same as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the same as lines of text."""
        sizes = ((self.n_rows, self.unit), (self.n_columns, "column"))
        size = [counted(n, what) for n, what in sizes if n is not None]
        end = "" if self.would_read else "; it would not be read:"
        text = [f"{self.file}: {', '.join(filter(None, [*size, self.format, self.encoding]))}: {self.title}{end}"]
        if self.problem is not None:
            text.append(f"  {self.problem}")
        # a line for each role, then what was left out, not used and is to be known
        words = [role.word + ("" if role.sure else " ?") for role in self.roles]
        first, before = max([10, *map(len, words)]), ""
        second = max([0, *(len(role.column) for role in self.roles)])
        for word, role in zip(words, self.roles, strict=True):
            # further candidates of one role stand below the first
            shown = f"{'?':>{len(word)}}" if word == before and not role.sure else word
            text.append(f"  {shown:<{first}} {role.column:<{second}}  {role.holds}".rstrip())
            before = word
        left_out = ", ".join(f"{n:,} {reason}" for reason, n in self.left_out.items())
        not_used = first_few(self.not_used, shown=_MOST_NAMED) if self.not_used else ""
        said = [("left out", left_out), ("not used", not_used), *(("note", note) for note in self.notes)]
        text += [f"  {what:<{first}} {one}" for what, one in said if one]
        if self.would_read and self.kind is not None and self.n_judgments is not None:
            # how many judgments there are, by whom, on what
            by = f" by {counted(self.n_annotators, 'annotator')}" if self.n_annotators else ", no annotator is named"
            queries = f" of {counted(self.n_queries, 'query')}" if self.n_queries and self.n_queries > 1 else ""
            on = f" on {counted(self.n_items or 0, 'item')}{queries}"
            text.append(f"{counted(self.n_judgments, self.kind)}{by}{on}{'. Next:' if self.next else '.'}")
        elif self.next:
            text.append(f"Next{'' if self.would_read else ', most likely'}:")
        return [*text, f"  {self.next}"] if self.next else text


def inspect(path: PathLike, options: ReadOptions | None = None, *, given: Sequence[str] = ()) -> Inspection:
    """Return what a file would be read as, and the command to type next; e-mails and addresses are never in it.

    Parameters
    ----------
    path
        Name of the file.
    options
        How it is to be read, as for :func:`~crowdrank.read_judgments`.
    given
        The same options in words, for the command.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "votes.csv"
    >>> _ = path.write_text("worker,task,label\\nann,x,2\\nbob,x,1\\n")
    >>> found = inspect(path)
    >>> found.would_read, found.kind, [(role.word, role.column) for role in found.roles]
    (True, 'grade', [('grade', 'label'), ('item', 'task'), ('annotator', 'worker')])
    """
    options = options or ReadOptions()
    heard: list[Notice] = []
    with on_command_line(), hear(heard.append):
        inspection = _inspect(path, options, list(given))
    notices, warned = ([one.text for one in heard if (one.level == "warning") == is_warning] for is_warning in (0, 1))
    wanted = [*(notices if inspection.source == "table" else ()), *warned] if inspection.would_read else []
    said = [_without_people(_without_name(text, inspection.file)) for text in wanted]
    more = [text for text in dict.fromkeys(said) if not text.startswith("read as ") and text not in inspection.notes]
    coding = "Windows-1252" if any("read as Windows-1252" in text for text in notices) else inspection.encoding
    return replace(inspection, notes=(*inspection.notes, *more), encoding=coding)


def _inspect(path: PathLike, options: ReadOptions, given: list[str]) -> Inspection:
    """The same, without what is said on the way."""
    blank = Inspection(shown_name(path))
    table: Table | None = None
    try:
        source = open_votes(path, options.encoding)
        if source.suffix in SUFFIXES:
            return _of_judgments(replace(blank, format="PrefLib", title="rankings"), read_files([path], options), given)
        name = source_name(source, options)
        form = table_format(source) if name is None or source.data[:4] != ZIP else "zip"
        coding = source.encoding if form in ("csv", "json", "jsonl") else ""
        form = "json" if form == "jsonl" and source.suffix == ".json" else form
        if name is not None:
            columns = len(first_cells(source)) if form == "csv" else None
            blank = replace(blank, source=name, title=f"an export of {name}", n_columns=columns)
        blank = replace(blank, format=_FORMATS.get(form, form), encoding=coding)
        table = read_one(source, options)
        blank = _with_roles(blank, table)
        judgments = build([table], options)
    except CrowdrankError as error:
        problem = _without_people(_without_name(str(error), blank.file))
        inspection = replace(blank, problem=problem, next=_next_command(str(error), blank.file, given))
        return inspection if table is not None else _with_candidates(inspection, path, options)
    return _of_judgments(blank, judgments, given)


def _with_roles(inspection: Inspection, table: Table) -> Inspection:
    """The same with each column that is used, what it holds, and what is to be known, once columns are understood."""
    imported, plain = table.imported, table.plain
    if imported is not None:
        names, notes = imported.roles, imported.notes
        size: dict[str, Any] = {"n_rows": imported.n_read, "unit": imported.unit}
        inspection = replace(inspection, title=imported.title, left_out=dict(imported.dropped), **size)
    else:
        assert plain is not None
        names, notes, unused = plain.understood.columns, plain.notes, list[str]()
        for name in plain.understood.ignored:
            blank = name in plain.whole.columns and ColumnFacts(name, plain.whole[name]).empty
            unused.append(_without_people(name) + (" (blank)" if blank else ""))
        inspection = replace(inspection, n_rows=plain.shape[0], n_columns=plain.shape[1], not_used=tuple(unused))
    words = sorted(names, key=lambda word: _ORDER.index(word) if word in _ORDER else len(_ORDER))
    told = [(word, names[word], _holds(word, table.frame, table.kind)) for word in words]
    roles = tuple(Role(word, _without_people(name), _without_people(text)) for word, name, text in told)
    return replace(inspection, kind=table.kind, roles=roles, notes=tuple(map(_without_people, notes)))


def _without_name(text: str, name: str) -> str:
    """A message without the file's name before it."""
    return text.removeprefix(f"{name}: ").removeprefix(name).strip()


def _without_people(text: str) -> str:
    """Text without e-mails and addresses."""
    return _PERSON.sub("(not shown)", text)


_ORDER = ("grade", "rank", "left", "right", "winner", "loser", "tie", "strength", "item", "annotator", "query")


def _holds(word: str, frame: pl.DataFrame, kind: str) -> str:
    """What a column holds, in a few words."""
    if word not in frame.columns:
        return ""
    cells = frame[word]
    if word in ("grade", "strength", "rank"):
        return _values(cells)
    if word in ("winner", "tie") and "loser" not in frame.columns:
        # how often each winner occurs
        counts = cells.drop_nulls().cast(pl.String).value_counts(sort=True)
        if len(counts) > _MOST_NAMED:
            numbers = all(as_float(value) is not None for value in counts.to_series(0))
            return f"{len(counts):,} different{'' if numbers else ', ids of items'}"
        parts = [f"{value} {n:,}" for value, n in counts.rows()]
        parts[:1] = [f"{one} ({percent(counts['count'][0] / int(counts['count'].sum()))})" for one in parts[:1]]
        return ", ".join(parts)
    if word == "time":
        return _times(cells)
    if word in ("duration", "weight"):
        values, unit = numbers_of(cells)[0], " s" if word == "duration" else ""
        return f"{np.nanmin(values):g} to {np.nanmax(values):g}{unit}" if np.isfinite(values).any() else ""
    n = cells.drop_nulls().n_unique()
    if word == "item":
        keys = [name for name in ("query", "item") if name in frame.columns]
        return f"{n:,} different, {_each(frame, keys, kind)} each"
    named = cells.drop_nulls().cast(pl.String).unique().sort().to_list() if n <= 2 else []
    if named and word in ("left", "right", "annotator") and not any(is_personal(word, name) for name in named):
        return f"{n:,} different: {', '.join(name[:40] for name in named)}" if n > 1 else named[0][:60]
    return f"{n:,} different"


def _each(frame: pl.DataFrame, keys: Sequence[str], kind: str) -> str:
    """How many judgments each item has."""
    counts = frame.group_by(keys).len()["len"]
    low, high = int(counts.min() or 0), int(counts.max() or 0)  # type: ignore[arg-type]
    what = {"grade": "grade", "ranking": "place"}.get(kind, kind)
    return counted(low, what) if low == high else f"{low:,} to {counted(high, what)}"


def _values(cells: pl.Series) -> str:
    """The different values and how often each occurs, or their range."""
    counts = cells.drop_nulls().cast(pl.String).value_counts()
    facts = ColumnFacts("", cells)
    if len(counts) <= _MOST_VALUES:
        order = {value: place for place, value in enumerate(facts.values)}
        rows = sorted(counts.rows(), key=lambda row: order.get(str(row[0]).strip(), 0))
        # without needless digits
        numbers = [(text, as_float(text) if "." in text else None) for text, _ in rows]
        short = [text.removesuffix(".0")[:30] if number is None else f"{number:g}" for text, number in numbers]
        return f"{' '.join(short)} ({', '.join(f'{n:,}' for _, n in rows)} times)"
    values, _, text = numbers_of(cells)
    if text.any() or not np.isfinite(values).any():
        return f"{len(counts):,} different words"
    return f"{np.nanmin(values):g} to {np.nanmax(values):g}, {len(counts):,} different"


def _times(cells: pl.Series) -> str:
    """The first and the last day."""
    try:
        numbers, _, text = numbers_of(cells) if not cells.dtype.is_temporal() else (None, None, None)
        if numbers is not None and text is not None and not text.any():
            cells = pl.Series(numbers).drop_nans()
            cells = cells / 1000 if float(cells.max() or 0) > _LATEST_SECONDS else cells  # type: ignore[arg-type]
        if cells.dtype.is_numeric():
            low, high = (datetime.datetime.fromtimestamp(float(v), datetime.UTC) for v in (cells.min(), cells.max()))  # type: ignore[arg-type]
        else:
            parsed = cells.cast(pl.String).str.to_datetime(strict=False, time_unit="us").drop_nulls()
            low, high = parsed.min(), parsed.max()  # type: ignore[assignment]
        days = [f"{day.day} {day:%b %Y}" for day in (low, high)]
    except (pl.exceptions.PolarsError, ValueError, OverflowError, TypeError, AttributeError, OSError):
        return ""
    return days[0] if days[0] == days[1] else f"{days[0]} to {days[1]}"


def _of_judgments(inspection: Inspection, judgments: Any, given: list[str]) -> Inspection:
    """The counts, and the command that aggregates them."""
    items = judgments.items
    ids = items.ids.cast(pl.String).n_unique()
    recur = items.n_queries >= _FEW_IDS_QUERIES and len(items) >= _FEW_IDS_QUERIES * ids
    words = ("kind", "n_judgments", "n_annotators", "n_items", "n_queries")
    inspection = replace(inspection, would_read=True, **{word: getattr(judgments, word) for word in words})
    if inspection.source == "letor":
        train = shell_words(["crowdrank", "train", inspection.file, *given, "-o", _free_name("model", inspection.file)])
        return replace(inspection, format="LETOR", n_columns=None, next=train)
    command = ["crowdrank", "aggregate", inspection.file, *given]
    command += ["--across-queries"] if recur and "--across-queries" not in given else []
    if judgments.kind == "grade" and len(judgments.levels) <= _MOST_VALUES and judgments.n_annotators > 1:
        command += ["--want", "grade"]
    command += ["-o", _free_name("ranks.csv", inspection.file)]
    command += ["--annotators", _free_name("who.csv", inspection.file)] if judgments.n_annotators > 1 else []
    notes = (*inspection.notes, *([recurring_items(ids, items.n_queries)] if recur else []))
    return replace(inspection, notes=notes, next=shell_words(command))


def _free_name(name: str, file: str) -> str:
    """A name for what is written, which is not that of the file that is read."""
    return f"new-{name}" if Path(file).name == name else name


def _next_command(problem: str, name: str, given: list[str]) -> str | None:
    """The command with the first remedy that a message names."""
    if "the grades are text" in problem and "this is their order" not in problem:
        return shell_words(["crowdrank", "aggregate", name, *given, "--nominal"])
    text, options, end = _without_name(problem, name), list[str](), None
    for match in _OPTION.finditer(text):
        words = shlex.split(match[0])
        if options and text[end : match.start()] != " and ":
            break
        # NAME is a place to be filled in
        whole = len(words) > 1 and "NAME" not in re.split("[=,]", words[1])
        if whole or words[0] in _ALONE:
            options += words[:1] if words[0] in _ALONE else words
            end = match.end()
    return shell_words(["crowdrank", "aggregate", name, *given, *options]) if options else None


def _with_candidates(inspection: Inspection, path: PathLike, options: ReadOptions) -> Inspection:
    """The columns that may play a role in a plain table that would not be read."""
    if inspection.source != "table" or not inspection.format or inspection.format == "zip":
        return inspection
    try:
        source = below_title(open_votes(path, options.encoding), options)
        table, _ = read_source(source, names=options.header, sheet=options.sheet, skip_rows=options.skip_rows)
    except JudgmentError:
        return inspection
    wishes = Wishes(annotators=not options.no_annotators, coded=options.winner_codes is not None)
    given = {word: name for word, name in options.columns.items() if name in table.columns}
    candidates = role_candidates(table, given, wishes)
    roles: list[Role] = []
    for word, name in ((word, name) for word, names in candidates.items() for name in names):
        facts = ColumnFacts(name, table[name])
        holds = "objects" if facts.is_nested else f"{facts.distinct:,} different"
        if word in ("grade", "rank", "winner") and not facts.is_nested:
            holds = _values(table[name])
        elif word == "item" and not facts.is_nested:
            each = _each(table.select(pl.col(name).alias("item")), ["item"], "grade")
            holds += f", {each} each{' (long text)' if facts.long_text else ''}"
        roles.append(Role(word, _without_people(name), _without_people(holds), len(candidates[word]) == 1))
    gold = [name for name in table.columns if is_gold(name)]
    roles += [Role("truth", name, _without_people(_values(table[name])), False) for name in gold[:1]]
    return replace(inspection, n_rows=len(table), n_columns=table.width, roles=tuple(roles))
