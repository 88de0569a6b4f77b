"""What an importer makes of a file, and the rows on their way there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from ...data.columns import is_personal
from ...data.covariates import covariate_columns, parse_covariates
from ...data.intake import order_of
from ...data.words import Order, not_supported, unsupported_kind, which_direction
from ...errors import JudgmentError
from ...wording import counted, either, first_few, option, plural
from ..number_text import numbers_in, order_note, without_missing
from ..read_options import SIDES, ReadOptions, side_words
from ..sources import Source
from .cells import as_number, as_seconds, as_text, at_path, each_at_path

_NUMBERS = ("rank", "weight", "time", "duration", "strength")
COLUMNS = (
    "query", "item", "left", "right", "winner", "loser", "grade", "rank", "ranking", "annotator", "weight", "time",
    "group", "strength", "duration", "judgment",
)  # fmt: skip
"""Every column that an importer may write, in the order of the table."""

_ROWS_AT_ONCE = 50_000
_NOBODY = "unknown"
_MOST_CLASSES = 12
"""So many different words are classes however few answers there are."""


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
        return [
            title,
            f"{counted(self.n_read, self.unit)}: {', '.join([*left_out, *gold, kept])}",
            roles,
            *self.notes,
        ]

    @property
    def mostly_dropped(self) -> bool:
        """Whether more than half of what the file holds was left out."""
        return 2 * sum(self.dropped.values()) > self.n_read > 0


class Collector:
    """Rows that an importer finds, with what it leaves out and why."""

    def __init__(self, source: Source, options: ReadOptions, *, unit: str = "answer") -> None:
        self.source = source
        self.options = options
        self.unit = unit
        self.n_read = 0
        self.survey = False
        """Whether people were asked for grades, so that words of a known order are such."""
        self.dropped: Counter[str] = Counter()
        self.notes: list[str] = []
        self.roles: dict[str, str] = {}
        self.truth: list[dict[str, Any]] = []
        self._columns: dict[str, list[Any]] = {}
        self._length = 0
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

    def drop(self, reason: str, n: int = 1) -> None:
        """Count what is left out."""
        self.dropped[reason] += n

    def add(self, record: Any = None, **cells: Any) -> None:
        """Add a row; the user's own choice of a field for a word goes before the importer's."""
        for word, path in self.options.columns.items():
            cell = at_path(record, path)
            self._column_hits[word] |= cell is not None
            cells[word] = cell if word in ("grade", "winner") or word not in COLUMNS else as_text(cell)
        for name in cells.keys() - self._columns.keys():
            self._columns[name] = [None] * self._length
        for name, values in self._columns.items():
            values.append(cells.get(name))
        self._length += 1
        if self._length == _ROWS_AT_ONCE:
            self._flush()

    def add_frame(self, frame: pl.DataFrame) -> None:
        """Add the rows of a table whose columns bear the house's words."""
        self._flush()
        self._column_hits |= dict.fromkeys(self._column_hits.keys() & set(frame.columns), True)
        self._parts.append(frame)

    def _flush(self) -> None:
        """Turn the rows so far into a table, which takes a fraction of the memory."""
        if not self._length:
            return
        part = pl.DataFrame([_series(name, values) for name, values in self._columns.items()])
        self._parts.append(self._with_style(part) if self.options.covariates else part)
        self._columns, self._length = {}, 0

    def _with_style(self, part: pl.DataFrame) -> pl.DataFrame:
        """The rows with covariates: those that the file counts, else counted in texts, which are let go of."""
        for name in parse_covariates(self.options.covariates):
            sides = [f"{name}_{side}" for side in SIDES]
            given = all(side in part.columns and part[side].null_count() < len(part) for side in sides)
            part = part if given else part.drop(sides, strict=False)
            self._styles.setdefault(name, set()).add(given)
        texts = [name for name in ("left_text", "right_text") if name in part.columns]
        if len(texts) < 2 or self.options.add_columns is None:
            return part.drop(texts)
        counted = self.options.add_columns(part)
        new = [name for name in counted.columns if name not in part.columns]
        # an answer whose text is not known is not one of length 0
        text_of = {name: pl.col(f"{name.rpartition('_')[2]}_text") for name in new}
        known = (pl.when(text.is_not_null()).then(name).alias(name) for name, text in text_of.items())
        return counted.with_columns(known).drop(texts)

    def _expect_style(self, frame: pl.DataFrame) -> list[str]:
        """The columns of covariates; refuse those that are not known, or that stand in two units."""
        for name, given in self._styles.items():
            sides = [f"{name}_{side}" for side in SIDES]
            if any(side not in frame.columns or frame[side].null_count() == len(frame) for side in sides):
                named = option("columns", dict.fromkeys(sides, ...))
                raise JudgmentError(
                    f"the file holds neither {name!r} of both answers nor their texts to count it in; name the fields "
                    f"that hold it with {named}, or leave {option('control')} out"
                )
            if len(given) > 1:
                raise JudgmentError(
                    f"some records count {name!r} and others have texts only, which is another unit; read them apart"
                )
        return covariate_columns(frame, self.options.covariates)

    def finish(
        self, kind: str, *, title: str, recorded: bool = False, classes: bool = False, metric: str | None = None
    ) -> Imported:
        """Return what was found; a file without a single judgment is refused.

        ``classes`` have no order. ``metric`` is what is graded, where the field of the grade does not say it: the name
        of the metric or question. A word for something bad in it, or in the field's name, makes the reader ask which
        way grades count.
        """
        self._flush()
        missing = [path for path, hit in self._where_hits.items() if not hit]
        if missing:
            raise JudgmentError(f"no record has {missing[0]!r}, which {option('where')} asks for; check its name")
        unknown = [word for word, hit in self._column_hits.items() if not hit and self._parts]
        if unknown:
            named = option("columns", {unknown[0]: self.options.columns[unknown[0]]})
            raise JudgmentError(f"no record has what {named} names; check the path")
        if self._n_elsewhere:
            wanted = " and ".join(f"{path} is {value}" for path, value in self.options.where.items())
            self.notes.insert(0, f"only where {wanted}: {self._n_elsewhere:,} others not read")
        frame = pl.concat(self._parts, how="diagonal_relaxed") if self._parts else pl.DataFrame()
        if not frame.height:
            reasons = either([f"{n} {reason}" for reason, n in self.dropped.items() if n], "and")
            why = f" ({counted(self.n_read, self.unit)}, left out: {reasons})" if +self.dropped else ""
            raise JudgmentError(f"{title} without any answer{why}; export one with answers")
        style = self._expect_style(frame) if self._styles else []
        frame, left_out = without_missing(frame, self.options.missing)
        self.notes += left_out
        frame = self._tidy(frame.select([*(name for name in COLUMNS if name in frame.columns), *style]))
        needed = {"grade": ("item", "grade"), "preference": ("winner",), "ranking": ("item", "rank")}[kind]
        lacking = next((name for name in needed if name not in frame.columns), None)
        if lacking is not None:
            raise JudgmentError(f"no answer has a {lacking}; name the field that holds it with {option('columns')}")
        truth = None
        if self.truth:
            names = list(dict.fromkeys(name for row in self.truth for name in row))
            truth = pl.DataFrame({n: pl.Series([as_text(row.get(n)) for row in self.truth]) for n in names}).unique(
                maintain_order=True
            )
        roles = {word: f"{path}" for word, path in self.options.columns.items()}
        shown = {word: name for word, name in (self.roles | roles).items() if word in frame.columns or word == "share"}
        imported = Imported(
            kind, frame, shown, truth=truth, notes=tuple(self.notes), dropped=dict(+self.dropped), title=title,
            unit=self.unit, n_read=self.n_read, recorded=recorded,
        )  # fmt: skip
        if kind != "grade":
            return imported
        return self._with_scale(imported, classes=classes, metric=metric)

    def _tidy(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The table without empty columns; times are kept where every row has one, and nobody is somebody."""
        if "duration" in frame.columns:
            frame = frame.with_columns(pl.when(pl.col("duration") >= 0).then("duration").alias("duration"))
        frame = frame[[column.name for column in frame.iter_columns() if column.null_count() < len(column)]]
        names: list[str] = ["time", "duration"]
        for name in names:
            if name in frame.columns and (count := frame[name].null_count()):
                self.notes.append(f"{counted(count, 'row')} without a {name}, so it is not used")
                frame = frame.drop(name)
        if "annotator" in frame.columns and (count := frame["annotator"].null_count()):
            self.notes.append(
                f"{counted(count, 'judgment')} without a named annotator count as one annotator, {_NOBODY!r}"
            )
            frame = frame.with_columns(pl.col("annotator").fill_null(_NOBODY))
        for name in ("query", "item", "left", "right", "winner", "loser", "grade", "rank"):
            if name in frame.columns and (empty := frame[name].null_count()):
                row = int(frame[name].is_null().arg_max() or 0) + 1
                raise JudgmentError(
                    f"{counted(empty, 'answer')} without {name}, the first is number {row}; "
                    f"name the field that holds it with {option('columns', {name: ...})}"
                )
        return frame

    def _with_scale(self, imported: Imported, *, classes: bool, metric: str | None) -> Imported:
        """Grades as numbers where all are, else words in their order where it is known, else classes."""
        frame, options = imported.frame, self.options
        grade = frame["grade"]
        if options.nominal or options.levels is not None:
            return replace(imported, nominal=options.nominal)
        if classes:
            return self._as_classes(imported)
        as_numbers = numbers_in("grade", grade, commas=False)
        order = order_of(grade) if as_numbers.levels is None else None
        levels = order.levels if order is not None and self._are_grades(order) else as_numbers.levels
        field = options.columns.get("grade")
        names = [field or metric or imported.roles.get("grade"), options.answer, *options.metrics]
        if options.small_is_good is None and (levels is not None or as_numbers.cells.dtype.is_numeric()):
            said = which_direction([name for name in names if name is not None], levels)
            if said is not None:
                raise JudgmentError(said)
        if as_numbers.note is not None:
            imported = replace(imported, notes=(*imported.notes, f"answers: {as_numbers.note.partition(': ')[2]}"))
            grade = as_numbers.cells
        if levels is not None:
            return self._with_levels(
                replace(imported, frame=frame.with_columns(grade=grade)), levels, order is not None
            )
        numbers = grade if grade.dtype.is_numeric() else grade.cast(pl.Float64, strict=False)
        if not numbers.null_count():
            if not numbers.is_finite().all():
                raise JudgmentError("a grade is NaN or infinite; leave such answers out")
            if options.small_is_good:
                numbers = 0.0 - numbers
                imported = replace(imported, truth=_turn_truth(imported.truth))
                imported = replace(
                    imported, notes=(*imported.notes, "small is good: the sign of each grade is reversed")
                )
            return replace(imported, frame=frame.with_columns(grade=numbers))
        if options.small_is_good:
            raise JudgmentError(
                f"{option('small_is_good', True)} applies to numbers, but the answers are words; leave it out"
            )
        return self._as_classes(imported)

    def _are_grades(self, order: Order) -> bool:
        """Whether words of a known order are grades: in a survey, or if they say right or wrong, or are three or more.

        ``yes`` and ``no``, or ``good`` and ``bad``, of a tool for labels are classes.
        """
        return (
            order.kind == "codes" or (order.sure and self.survey) or (order.kind == "grades" and len(order.levels) > 2)
        )

    def _with_levels(self, imported: Imported, levels: list[str], said: bool) -> Imported:
        """Words in their order, worst first; the other way round where small is good."""
        notes = [order_note("the answers are", levels)] if said else []
        if self.options.small_is_good:
            levels = levels[::-1]
            notes.append(f"small is good: {levels[-1]!r} is the best grade")
        return replace(imported, levels=tuple(levels), notes=(*imported.notes, *notes))

    def _as_classes(self, imported: Imported) -> Imported:
        """Words as classes; texts of which nearly each is another are refused."""
        grade = imported.frame["grade"]
        words = grade.unique().drop_nulls().to_list()
        kind = unsupported_kind(grade.to_list())
        if kind is not None:
            raise JudgmentError(not_supported("the answers are", kind))
        if len(words) > max(_MOST_CLASSES, len(grade) / 2):
            shown = next((f", such as {word[:40]!r}," for word in sorted(words) if not is_personal("", word)), "")
            raise JudgmentError(
                f"the answers are {len(words):,} different texts{shown} and not classes; choose another question with "
                f"{option('answer')}, or take them as classes with {option('nominal', True)}"
            )
        shown = first_few(map(repr, sorted(words)), len(words))
        known = order_of(grade)
        levels = option("levels", None if known is None else known.levels)
        note = f"the answers are {plural('class')} without an order: {shown} ({levels} gives them one)"
        return replace(imported, nominal=True, notes=(*imported.notes, note))


def _series(name: str, values: list[Any]) -> pl.Series:
    """A column: numbers where it always holds them, else text."""
    if name == "time":
        return pl.Series(name, [as_seconds(value) for value in values], pl.Float64)
    if name in _NUMBERS or name.endswith(("_left", "_right")):
        return pl.Series(name, [as_number(value) for value in values], pl.Float64)
    if name == "judgment":
        return pl.Series(name, values, pl.Int64)
    return pl.Series(name, [as_text(value) for value in values], pl.String)


def _turn_truth(truth: pl.DataFrame | None) -> pl.DataFrame | None:
    """Gold answers that count the other way round."""
    if truth is None or "grade" not in truth.columns:
        return truth
    return truth.with_columns(0.0 - pl.col("grade").cast(pl.Float64, strict=False))
