"""What a reader makes of another tool's file: the rows on their way, what is left out and why, and the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NoReturn

import polars as pl

from ...data.columns import is_personal
from ...data.covariates import covariate_columns, parse_covariates
from ...data.intake import order_of
from ...data.words import not_supported, unsupported_kind, which_direction
from ...errors import JudgmentError
from ...wording import counted, did_you_mean, either, first_few, option
from ..number_text import numbers_in, order_note, without_missing
from ..read_options import SIDES, ReadOptions, side_words
from ..sources import Source
from .cells import as_number, as_seconds, as_text, at_path, each_at_path, first_text, parse_json
from .streaming import text_columns

if TYPE_CHECKING:
    from . import Export

_NUMBERS = ("rank", "weight", "time", "duration", "strength")
# every column that a reader may write, in the order of the table
COLUMNS = (
    "query", "item", "left", "right", "winner", "loser", "grade", "rank", "ranking", "annotator", "weight", "time",
    "group", "strength", "duration", "judgment",
)  # fmt: skip

_ROWS_AT_ONCE = 50_000
_NOBODY = "unknown"
_MOST_CLASSES = 12  # so many different words are classes however few answers there are

Cells = dict[str, Any]
Judged = Iterable[Cells | list[Cells] | str]
Answer = tuple[Any, str | None, list[str], Cells]  # record, item, labels given, further cells


@dataclass(frozen=True)
class Imported:
    """Judgments of another tool's file under the house's words, and what was done to get them."""

    kind: str
    frame: pl.DataFrame
    """Columns of :data:`COLUMNS`; ids are text."""
    roles: Mapping[str, str]
    """Our word -> the tool's own field."""
    truth: pl.DataFrame | None = None
    """Gold answers of the file: item and grade, or left, right and winner [, query]."""
    nominal: bool = False
    levels: tuple[str, ...] | None = None
    """Order of grades in words where the file itself tells it, worst first."""
    recorded: bool = False
    """Whether left and right are an order of the file and not what annotators saw."""
    notes: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Reason -> how many answers were left out for it."""
    title: str = ""
    """What kind of file it is, in words."""
    unit: str = "answer"
    """What is counted: annotations, games, rows."""
    n_read: int = 0
    """How many of them there were, dropped ones included."""

    @property
    def n_judgments(self) -> int:
        """Number of judgments: rows, but rankings where there are some, and shares of one judgment together."""
        if "judgment" in self.frame.columns:
            return self.frame["judgment"].n_unique()
        if self.kind == "ranking":
            keys = [name for name in ("query", "annotator", "ranking") if name in self.frame.columns]
            return self.frame.select(keys).n_unique() if keys else 1
        return self.frame.height

    def sentences(self) -> list[str]:
        """Return what to tell the user: the tool, what was left out and kept, which field is what, and the rest."""
        annotators = self.frame["annotator"].n_unique() if "annotator" in self.frame.columns else 0
        by = f" by {counted(annotators, 'annotator')}" if annotators else ", no annotator is named"
        left_out = [f"{n:,} {reason} left out" for reason, n in self.dropped.items()]
        gold = [f"{counted(self.truth.height, 'gold answer')} taken as truth"] if self.truth is not None else []
        kept = f"{counted(self.n_judgments, self.kind)}{by}"
        roles = ", ".join(f"{word} = {name}" for word, name in self.roles.items())
        plainly = f"{option('source', 'table')} to read it plainly"
        title = f"{self.title.removesuffix(')')}; {plainly})" if "(" in self.title else f"{self.title} ({plainly})"
        return [title, f"{counted(self.n_read, self.unit)}: {', '.join([*left_out, *gold, kept])}", roles, *self.notes]


class Collector:
    """Rows that a reader finds in a file, with what it leaves out and why."""

    def __init__(self, source: Source, options: ReadOptions, export: Export) -> None:
        self.source, self.options, self.export = source, options, export
        self.title, self.unit = export.title, export.unit
        self.n_read = 0
        self.survey = False  # whether people were asked for grades, so that words of a known order are such
        self.dropped: Counter[str] = Counter()
        self.notes: list[str] = []
        self.roles = dict(export.roles)
        self.truth: list[Cells] = []
        self._fields = {word: names.split("|") for word, names in export.cells.items()}
        self._rows: list[Cells] = []
        self._parts: list[pl.DataFrame] = []
        self._where_hits = dict.fromkeys(options.where, False)
        self._column_hits = dict.fromkeys(options.columns, False)
        self._n_elsewhere = 0
        self._styles: dict[str, set[bool]] = {}
        side_words(options)

    def is_wanted(self, *records: Any) -> bool:
        """Whether a record, or what stands around it, is one that ``where`` asks for."""
        fits = True
        for path, value in self.options.where.items():
            values = [as_text(value) for record in records for value in each_at_path(record, path)]
            self._where_hits[path] |= any(one is not None for one in values)
            fits = fits and str(value).strip() in values
        self._n_elsewhere += not fits
        return fits

    def cells_of(self, record: Mapping[str, Any], number: int | None = None) -> Cells:
        """Return what the export's own fields of a record say; its number, if given, stands for a missing query."""
        cells: Cells = {word: first_text(record, *names) for word, names in self._fields.items()}
        if number is not None and cells["query"] is None:
            cells["query"] = str(number)
        return cells

    def hold(self, record: Any) -> Any:
        """Return a record that is added later, as far as the user's own choice of fields needs it."""
        return record if self.options.columns else None

    def refuse(self, key: str, **found: Any) -> NoReturn:
        """Refuse the file by a sentence of its export."""
        raise JudgmentError(self.export.says[key].format(**found))

    def note(self, key: str, **found: Any) -> None:
        """Note something by a sentence of the export."""
        self.notes.append(self.export.says[key].format(**found))

    def drop(self, reason: str, n: int = 1) -> None:
        """Count what is left out."""
        self.dropped[reason] += n

    def choose_rows(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of a table that ``where`` asks for, and count them."""
        for name in self.options.where:
            if name not in frame.columns:
                columns = first_few(map(repr, frame.columns), shown=40)
                raise JudgmentError(f"{option('where')} names {name!r}, and the columns are {columns}")
        if self.options.where:
            fits = [self.is_wanted(row) for row in frame.select(list(self.options.where)).iter_rows(named=True)]
            frame = frame.filter(pl.Series(fits, dtype=pl.Boolean))
        self.n_read += frame.height
        return frame

    def take(self, records: Iterable[Any], judgments: Callable[[Any, int], Judged]) -> None:
        """Add what each record that is wanted says: ``judgments(record, number)`` yields cells, or why there are none.

        A list of cells is one thing that was read and makes several rows.
        """
        for number, record in enumerate(records, 1):
            for judged in judgments(record, number) if self.is_wanted(record) else ():
                self.n_read += 1
                if isinstance(judged, str):
                    self.drop(judged)
                    continue
                for cells in judged if isinstance(judged, list) else [judged]:
                    self.add(record, **cells)

    def add(self, record: Any = None, **cells: Any) -> None:
        """Add a row; the user's own choice of a field for a word goes before the importer's."""
        for word, path in self.options.columns.items():
            cell = at_path(record, path)
            self._column_hits[word] |= cell is not None
            cells[word] = cell if word in ("grade", "winner") or word not in COLUMNS else as_text(cell)
        self._rows.append(cells)
        if len(self._rows) == _ROWS_AT_ONCE:
            self._flush()

    def add_unless(self, reason: str | None, record: Any, **cells: Any) -> None:
        """Add a row, or count it as left out where there is a reason."""
        self.add(record, **cells) if reason is None else self.drop(reason)

    def add_frame(self, frame: pl.DataFrame) -> None:
        """Add the rows of a table whose columns bear the house's words."""
        self._flush()
        self._column_hits |= dict.fromkeys(self._column_hits.keys() & set(frame.columns), True)
        self._parts.append(frame)

    def add_labels(self, answers: Sequence[Answer]) -> None:
        """Add multi-label answers: a query for each label seen, with grade 1 where it was given and 0 where not."""
        labels = list(dict.fromkeys(label for _, _, given, _ in answers for label in given))
        for (record, item, given, cells), label in product(answers, labels):
            self.add(record, query=label, item=item, grade=int(label in given), **cells)
        self.notes.append(label_note(labels))

    def add_classes(self, answers: Sequence[Answer]) -> bool:
        """Add the one class of each answer, or labels where some answer has several; return whether it is so."""
        several = any(len(labels) > 1 for _, _, labels, _ in answers)
        if several:
            self.add_labels(answers)
            self.roles["query"] = "the label"
        for record, item, labels, cells in [] if several else answers:
            self.add(record, item=item, grade=labels[0], **cells)
        return several

    def choose_question(self, names: Iterable[str], what: str = "answers to", field: str | None = None) -> str:
        """Return the question that is meant: the only one, or the one that ``answer`` names."""
        return choose_question(names, self.options.answer, what, field)

    def settle_direction(self, metric: str, small_is_good: bool | None) -> None:
        """Say in the options which way a metric counts: as the user says, else as the file tells; never assumed."""
        if self.options.small_is_good is None and small_is_good is None:
            ways = f"{option('small_is_good', False)} or {option('small_is_good', True)}"
            raise JudgmentError(f"the file does not say whether large values of {metric!r} are good; give {ways}")
        if self.options.small_is_good is None:
            self.options = replace(self.options, small_is_good=small_is_good)

    def _flush(self) -> None:
        """Turn the rows so far into a table, which takes a fraction of the memory."""
        if not self._rows:
            return
        names = dict.fromkeys(name for cells in self._rows for name in cells)
        part = pl.DataFrame([_series(name, [cells.get(name) for cells in self._rows]) for name in names])
        # covariates are those that the file counts, else counted in texts, which are let go of
        for name in parse_covariates(self.options.covariates):
            sides = [f"{name}_{side}" for side in SIDES]
            given = all(side in part.columns and part[side].null_count() < len(part) for side in sides)
            part = part if given else part.drop(sides, strict=False)
            self._styles.setdefault(name, set()).add(given)
        texts = [f"{side}_text" for side in SIDES]
        if set(texts) <= set(part.columns) and self.options.add_columns is not None:
            old, part = part.columns, self.options.add_columns(part)
            for name in (name for name in part.columns if name not in old):
                # an answer whose text is not known is not one of length 0
                known = pl.col(f"{name.rpartition('_')[2]}_text").is_not_null()
                part = part.with_columns(pl.when(known).then(name).alias(name))
        self._parts.append(part.drop(texts, strict=False))
        self._rows = []

    def finish(self, kind: str, recorded: bool = False, classes: bool = False, metric: str | None = None) -> Imported:
        """Return what was found; a file without a single judgment is refused.

        ``classes`` have no order. ``metric`` is what is graded, where the field of the grade does not say it: the name
        of the metric or question. A word for something bad in it, or in the field's name, makes the reader ask which
        way grades count.
        """
        self._flush()
        self.notes += self.export.notes
        for path, hit in self._where_hits.items():
            if not hit:
                raise JudgmentError(f"no record has {path!r}, which {option('where')} asks for; check its name")
        for word, hit in self._column_hits.items():
            if not hit and self._parts:
                named = option("columns", {word: self.options.columns[word]})
                raise JudgmentError(f"no record has what {named} names; check the path")
        if self._n_elsewhere:
            wanted = " and ".join(f"{path} is {value}" for path, value in self.options.where.items())
            self.notes.insert(0, f"only where {wanted}: {self._n_elsewhere:,} others not read")
        frame = pl.concat(self._parts, how="diagonal_relaxed") if self._parts else pl.DataFrame()
        if not frame.height:
            reasons = either([f"{n} {reason}" for reason, n in self.dropped.items() if n], "and")
            why = f" ({counted(self.n_read, self.unit)}, left out: {reasons})" if +self.dropped else ""
            raise JudgmentError(f"{self.title} without any answer{why}; export one with answers")
        turns = "turn" in frame.columns and "query" not in self.options.columns and not frame["turn"].null_count()
        if turns and frame.select("query", "turn").n_unique() > frame["query"].n_unique():
            # the same question is judged after several turns
            frame = frame.with_columns(query=pl.format("{}, turn {}", "query", "turn"))
            self.roles["query"] = "question_id, turn"
        for name, given in self._styles.items():
            sides = [f"{name}_{side}" for side in SIDES]
            if any(side not in frame.columns or frame[side].null_count() == len(frame) for side in sides):
                named = option("columns", dict.fromkeys(sides, ...))
                remedy = f"name the fields that hold it with {named}, or leave {option('control')} out"
                problem = f"the file holds neither {name!r} of both answers nor their texts to count it in"
                raise JudgmentError(f"{problem}; {remedy}")
            if len(given) > 1:
                problem = f"some records count {name!r} and others have texts only, which is another unit"
                raise JudgmentError(f"{problem}; read them apart")
        style = covariate_columns(frame, self.options.covariates) if self._styles else []
        frame, left_out = without_missing(frame, self.options.missing)
        self.notes += left_out
        frame = frame.select([*(name for name in COLUMNS if name in frame.columns), *style])
        if "duration" in frame.columns:
            frame = frame.with_columns(pl.when(pl.col("duration") >= 0).then("duration").alias("duration"))
        # without empty columns; times are kept where every row has one, and nobody is somebody
        frame = frame[[column.name for column in frame.iter_columns() if column.null_count() < len(column)]]
        blank = {column.name: n for column in frame.iter_columns() if (n := column.null_count())}
        for name in (name for name in ("time", "duration") if name in blank):
            self.notes.append(f"{counted(blank[name], 'row')} without a {name}, so it is not used")
            frame = frame.drop(name)
        if "annotator" in blank:
            found = f"{counted(blank['annotator'], 'judgment')} without a named annotator count as one annotator"
            self.notes.append(f"{found}, {_NOBODY!r}")
            frame = frame.with_columns(pl.col("annotator").fill_null(_NOBODY))
        needs_all = ("query", "item", "left", "right", "winner", "loser", "grade", "rank")
        for name in (name for name in needs_all if name in blank):
            row = int(frame[name].is_null().arg_max() or 0) + 1
            problem = f"{counted(blank[name], 'answer')} without {name}, the first is number {row}"
            raise JudgmentError(f"{problem}; name the field that holds it with {option('columns', {name: ...})}")
        needed = {"grade": ("item", "grade"), "preference": ("winner",), "ranking": ("item", "rank")}[kind]
        for name in needed:
            if name not in frame.columns:
                raise JudgmentError(f"no answer has a {name}; name the field that holds it with {option('columns')}")
        truth = text_columns(self.truth).unique(maintain_order=True) if self.truth else None
        told = self.roles | dict(self.options.columns)
        roles = {word: name for word, name in told.items() if word in frame.columns or word == "share"}
        nominal, levels = False, None
        if kind == "grade":
            graded = self.options.columns.get("grade") or metric or roles.get("grade")
            frame, truth, levels, nominal = self._with_scale(frame, truth, graded, classes=classes)
        said = (tuple(self.notes), dict(+self.dropped), self.title, self.unit, self.n_read)
        return Imported(kind, frame, roles, truth, nominal, levels, recorded, *said)

    def _with_scale(
        self, frame: pl.DataFrame, truth: pl.DataFrame | None, graded: str | None, *, classes: bool
    ) -> tuple[pl.DataFrame, pl.DataFrame | None, tuple[str, ...] | None, bool]:
        """Grades as numbers where all are, else words in their order where it is known, else classes.

        Return the table and the truth, the levels of words, and whether these have no order.
        """
        options, grade = self.options, frame["grade"]
        if options.nominal or options.levels is not None or classes:
            if not options.nominal and options.levels is None:
                self._note_classes(grade)
            return frame, truth, None, options.nominal or options.levels is None
        numbers = numbers_in("grade", grade, commas=False)
        levels, order = numbers.levels, order_of(grade) if numbers.levels is None else None
        if order is not None and (
            # yes and no, or good and bad, of a tool for labels are classes
            order.kind == "codes" or (order.sure and self.survey) or (order.kind == "grades" and len(order.levels) > 2)
        ):
            levels = order.levels
        if options.small_is_good is None and (levels is not None or numbers.cells.dtype.is_numeric()):
            names = [name for name in (graded, options.answer, *options.metrics) if name is not None]
            said = which_direction(names, levels)
            if said is not None:
                raise JudgmentError(said)
        if numbers.note is not None:
            self.notes.append(f"answers: {numbers.note.partition(': ')[2]}")
            grade = numbers.cells
        if levels is not None:
            self.notes += [order_note("the answers are", levels)] if order is not None else []
            if options.small_is_good:
                levels = levels[::-1]
                self.notes.append(f"small is good: {levels[-1]!r} is the best grade")
            return frame.with_columns(grade=grade), truth, tuple(levels), False
        grade = grade if grade.dtype.is_numeric() else grade.cast(pl.Float64, strict=False)
        if grade.null_count():
            if options.small_is_good:
                problem = f"{option('small_is_good', True)} applies to numbers, but the answers are words"
                raise JudgmentError(f"{problem}; leave it out")
            self._note_classes(frame["grade"])
            return frame, truth, None, True
        if not grade.is_finite().all():
            raise JudgmentError("a grade is NaN or infinite; leave such answers out")
        if options.small_is_good:
            grade = 0.0 - grade
            self.notes.append("small is good: the sign of each grade is reversed")
            if truth is not None and "grade" in truth.columns:
                truth = truth.with_columns(0.0 - pl.col("grade").cast(pl.Float64, strict=False))
        return frame.with_columns(grade=grade), truth, None, False

    def _note_classes(self, grade: pl.Series) -> None:
        """Say that words are classes; texts of which nearly each is another are refused."""
        words = grade.unique().drop_nulls().to_list()
        kind = unsupported_kind(grade.to_list())
        if kind is not None:
            raise JudgmentError(not_supported("the answers are", kind))
        if len(words) > max(_MOST_CLASSES, len(grade) / 2):
            shown = next((f", such as {word[:40]!r}," for word in sorted(words) if not is_personal("", word)), "")
            remedy = f"with {option('answer')}, or take them as classes with {option('nominal', True)}"
            problem = f"the answers are {len(words):,} different texts{shown} and not classes"
            raise JudgmentError(f"{problem}; choose another question {remedy}")
        known = order_of(grade)
        levels = option("levels", None if known is None else known.levels)
        shown = first_few(map(repr, sorted(words)), len(words))
        self.notes.append(f"the answers are classes without an order: {shown} ({levels} gives them one)")


def _series(name: str, values: list[Any]) -> pl.Series:
    """A column: numbers where it always holds them, else text."""
    if name == "judgment":
        return pl.Series(name, values, pl.Int64)
    if name in _NUMBERS or name.endswith(("_left", "_right")):
        return pl.Series(name, list(map(as_seconds if name == "time" else as_number, values)), pl.Float64)
    return pl.Series(name, list(map(as_text, values)), pl.String)


def choose_question(names: Iterable[str], asked: str | None, what: str = "answers to", field: str | None = None) -> str:
    """Return the question that is meant: the only one, or the one that ``asked`` names.

    Where ``field`` names them in each record, rows may be chosen by it too.
    """
    known = list(dict.fromkeys(names))
    if asked in known or (asked is None and len(known) == 1):
        return known[0] if asked is None else asked
    named = first_few(map(repr, known), shown=12)
    if asked is not None:
        raise JudgmentError(f"there is no {asked!r}; {did_you_mean(asked, known)}the file has {what} {named}")
    if not known and what == "answers to":
        raise JudgmentError("the file has no answers to any question; export it once somebody has answered")
    if not known:
        raise JudgmentError(f"the file has no {what.removeprefix('the ')}; write it with them")
    way = option("answer", known[0]) if field is None else option("where", {field: known[0]})
    raise JudgmentError(f"the file has {what} {named}; choose one with {way}")


def refuse_kind(said: str, values: Iterable[Any], kind: str = "spans", *, other: bool = False) -> NoReturn:
    """Refuse answers that are no judgments: most are of a kind, else of ``kind``; ``other`` questions may be named."""
    raise JudgmentError(not_supported(said, unsupported_kind(values) or kind, other=other))


def label_note(labels: Sequence[str]) -> str:
    """Return what is said of answers that name several labels each."""
    found = f"several labels per answer: one query for each of {first_few(map(repr, labels), len(labels))}"
    return f"{found}, the labels seen in the file; grade 1 where it was given, 0 where not"


def as_labels(value: object) -> list[str]:
    """Return the labels of an answer that may be one label or a list of them."""
    values = value if isinstance(value, list) else [value]
    return [label for one in values if (label := as_text(one)) is not None]


def labels_in(answers: pl.Series, separator: str | None = None) -> list[list[str]] | None:
    """Return the labels that each answer names where some name several: JSON lists, lines, or parts of a text.

    Parts count as labels only where each of them is an answer of its own somewhere, for a comma may be in a label too.

    Examples
    --------
    >>> labels_in(pl.Series(['["a", "b"]', '["b"]'])), labels_in(pl.Series(["a, b", "b", "a"]), ", ")
    ([['a', 'b'], ['b']], [['a', 'b'], ['b'], ['a']])
    >>> labels_in(pl.Series(["a, b", "c"]), ", ") is None
    True
    """
    texts = [str(text) for text in answers.to_list()]
    if texts and all(text[:1] == "[" and text[-1:] == "]" for text in texts):
        lists = [parse_json(text) for text in texts]
        return None if None in lists else [as_labels(one) for one in lists]
    separator = separator or "\n"
    parts = [[part.strip() for part in text.split(separator) if part.strip()] for text in texts]
    alone = {part[0] for part in parts if len(part) == 1}
    several = [part for part in parts if len(part) > 1]
    known = separator == "\n" or all(label in alone for part in several for label in part)
    return parts if several and known else None
