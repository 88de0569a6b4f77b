"""Grades as codes, and what a class method estimates of them: levels of items and confusion matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...data.column_names import quote_names, understand_items
from ...data.consensus import Consensus, Trace
from ...data.frames import to_frame
from ...data.grades import bin_codes, bin_middles, check_levels, check_order
from ...data.index import Items
from ...data.judgments import Grades
from ...data.truth import Truth
from ...drift import Walk
from ...errors import JudgmentError, ParameterError
from ...protocols import Blocks, Bools, Counts, Floats, Ints, Statistics
from ...wording import option

if TYPE_CHECKING:
    from ...kernels.confusion import PackedGrades, Tallies

# threshold (sample): grades times levels that calibrate class probabilities
MOST_CELLS = 60_000
"""Grades times levels that the calibration looks at; of more, those of a part of the items."""

# threshold (sample): grades times levels by which a fit of confusion matrices begins
START_CELLS = 600_000
"""Grades times levels of the sample by which a fit begins; where there are four times as many and more."""

_MOST_ANCHOR = 10.0
"""Items that the anchor of the shares is worth at most, for each item."""

_N_SHOWN = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class CodedScale:
    """What codes of grades stand for: annotators, and levels with the number that each counts as.

    Levels are those that somebody gave or that are known; they are the levels ``used_levels`` of ``scale``, all there
    are. Grades without annotators are all by annotator 0, and ``has_annotators`` is false.
    """

    n_annotators: int
    levels: tuple[Any, ...]
    values: Floats
    scale: tuple[Any, ...]
    used_levels: Ints
    nominal: bool
    has_annotators: bool

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.levels)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassRows(CodedScale):
    """Grades as codes: item, annotator and level of each row, (n,); the level of each known item, (n_items,), else -1.

    ``time`` is when each was given, (n,), where that is known; ``items`` are the ids, from which a sample is drawn
    where grades are many. With a ``walk`` annotators are windows of annotators.
    """

    item: Ints
    annotator: Ints
    level: Ints
    weight: Floats | None
    known: Ints
    time: Floats | None = None
    items: Items | None = None
    walk: Walk | None = None

    @classmethod
    def of(cls, grades: Grades, *, bins: int | None = None, known: Any | None = None) -> ClassRows:
        """Return grades as codes, with the level of each known item.

        Parameters
        ----------
        grades
            The grades; at least one.
        bins
            Cut the grades into this many equally wide levels.
        known
            Table of query, item and grade, or a :class:`~crowdrank.data.truth.Truth`: items whose level is known. An
            item that is not among the items, or a grade that is none of the levels, is refused by name.
        """
        cut = None if bins is None else (float(grades.grade.min()), float(grades.grade.max()))
        part, code = ClassPart(grades), PartScale.of(grades, bins, cut, known)
        if code.known_grades is not None:
            code.known_grades.refuse_missing(code.known_grades.items_in(grades.items) < 0)
        rows = part.rows(code)
        if grades.declared is None and bins is None:
            return rows
        # of declared levels that nobody gave and no item is known to be of nothing can be learned
        in_use = np.bincount(rows.level, minlength=rows.n_levels) > 0
        in_use[rows.known[rows.known >= 0]] = True
        return part.rows(code.keep(in_use))

    def __len__(self) -> int:
        return len(self.item)

    @property
    def n_items(self) -> int:
        """Number of items, those that nobody graded included."""
        return len(self.known)

    @cached_property
    def packed_rows(self) -> PackedGrades:
        """The rows sorted by item, as kernels read them."""
        from ...kernels.confusion import pack_grades

        sizes = (self.n_items, self.n_annotators, self.n_levels)
        return pack_grades(self.item, self.annotator, self.level, self.weight, *sizes)

    @cached_property
    def is_graded(self) -> Bools:
        """Mask of the items that somebody graded, (n_items,)."""
        return np.diff(self.packed_rows.starts) > 0

    @cached_property
    def several(self) -> Bools:
        """Mask of the items that two annotators graded or more, (n_items,); without annotators, two grades."""
        from ...kernels.confusion import several_annotators

        return several_annotators(self.packed_rows, self.n_levels, named=self.has_annotators)

    @cached_property
    def overlap(self) -> bool:
        """Whether some item was graded by two annotators, or was graded and is known."""
        return bool((self.several | (self.is_graded & (self.known >= 0))).any())

    @property
    def n_graded(self) -> float:
        """Number of items that somebody graded."""
        return float(self.is_graded.sum())

    @property
    def annotator_weights(self) -> Floats:
        """Weight of each annotator's grades, (n_annotators,)."""
        return self.levels_by_row[1].sum(axis=1)

    @property
    def level_weights(self) -> Floats:
        """Weight of the grades of each level, (n_levels,)."""
        return self.levels_by_row[1].sum(axis=0)

    def votes(self, second_opinions: bool = False) -> Tallies:
        """Return the counts with vote shares for the truth, of all items or of those that somebody else tells of."""
        from ...kernels.confusion import vote_pass

        use = self.several | (self.known >= 0) if second_opinions else None
        return vote_pass(self.packed_rows, self.n_annotators, self.n_levels, self.known, use)

    def expected_counts(self, confusion: Floats, shares: Floats) -> Tallies:
        """Return the expected counts under confusion matrices and shares of levels."""
        from ...kernels.confusion import confusion_pass

        return confusion_pass(self.packed_rows, confusion, shares, self.known)

    @cached_property
    def levels_by_row(self) -> tuple[NDArray[Any], Floats]:
        """The level of each packed row, (n,), and the weight of grades by annotator and level."""
        from ...kernels.confusion import levels_given

        return levels_given(self.packed_rows, self.n_annotators, self.n_levels)

    def total(self, function: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
        """Return what a pass finds in all rows; over parts of the grades it is a sum of what it finds in each."""
        return tuple(function(self, *args))

    @property
    def everything(self) -> Bools:
        """Mask of all items, (n_items,)."""
        return np.ones(self.n_items, bool)

    def mean_probabilities(self, fit: Any) -> Floats:
        """Return the mean probability of each level over the graded items, (n_levels,)."""
        return fit.probabilities[self.is_graded].mean(axis=0)

    def counts_of(self, probabilities: Floats) -> Floats:
        """Return the expected grades by annotator, true and given level, of probabilities whatever they come from."""
        packed, size = self.packed_rows, self.n_annotators * self.n_levels
        item = np.repeat(np.arange(self.n_items), np.diff(packed.starts))
        weight = packed.weight if packed.weight.size else np.ones(len(item))
        given = np.stack([np.bincount(packed.code, weight * column[item], size) for column in probabilities.T])
        counts: Floats = given.astype(np.float64).reshape(self.n_levels, -1, self.n_levels).transpose(1, 0, 2)
        return counts

    def read(self, reading: Reading) -> Floats:
        """Return the probability of each level for each item, (n_items, n_levels)."""
        return reading.probabilities(self, None)

    def of_rows(self, use: Bools | Counts) -> ClassRows:
        """Return some of the rows, with the same items, annotators and levels."""
        weight, time = (None if values is None else values[use] for values in (self.weight, self.time))
        item, annotator, level = (values[use] for values in (self.item, self.annotator, self.level))
        return replace(self, item=item, annotator=annotator, level=level, weight=weight, time=time)

    def of_items(self, use: Bools) -> ClassRows:
        """Return the rows of some items, which are numbered anew."""
        rows = self.of_rows(np.flatnonzero(use[self.item]))
        place = np.cumsum(use, dtype=np.int32) - np.int32(1)
        return replace(rows, item=place[rows.item], known=self.known[use], items=None)

    @property
    def by_query(self) -> ClassRows:
        """The same rows with annotators taken as different ones in each query."""
        assert self.items is not None
        whose = self.items.query[self.item].astype(np.int64) * self.n_annotators + self.annotator
        different, annotator = np.unique(whose, return_inverse=True)
        return replace(self, annotator=annotator.astype(np.int32), n_annotators=len(different))

    @property
    def n_predictable(self) -> int:
        """Number of grades that can be predicted from others: those of free items that two annotators graded."""
        return int(np.diff(self.packed_rows.starts)[self.several & (self.known < 0)].sum())

    def sampled_items(self, n_predictable: int, n_cells: int | None = None) -> Bools:
        """Return the items of a sample of so many cells, of all with so many grades: a part of those with two grades.

        It is drawn by their ids, never by the answers. The calibration looks at ``MOST_CELLS``.
        """
        n_cells = MOST_CELLS if n_cells is None else n_cells
        use, share = self.several & (self.known < 0), n_cells / max(n_predictable * self.n_levels, 1)
        if share < 1.0 and self.n_items:
            assert self.items is not None
            use = use & (self.items.numbers < np.uint64(share * float(np.iinfo(np.uint64).max)))
        return use

    @cached_property
    def sample(self) -> ClassRows:
        """The rows that the calibration looks at."""
        return self.of_items(self.sampled_items(self.n_predictable))

    def first_sample(self) -> ClassRows | None:
        """Return the rows by which a fit begins, ``None`` where these are too many of all."""
        if self.n_predictable * self.n_levels < 4 * START_CELLS:
            return None
        return self.of_items(self.sampled_items(self.n_predictable, START_CELLS))

    def sample_probabilities(self, fit: ClassFit) -> Floats:
        """Return the probabilities of a fit for the items of the sample."""
        return fit.probabilities[self.sampled_items(self.n_predictable)]


def vote_shares(rows: ClassRows) -> Floats:
    """Return the share of each level in the weight of each item's grades, (n_items, n_levels); known items are certain.

    Items without grades have equal shares.
    """
    cells = rows.item.astype(np.int64) * rows.n_levels + rows.level
    votes = np.bincount(cells, rows.weight, rows.n_items * rows.n_levels).reshape(rows.n_items, rows.n_levels)
    total = votes.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(votes, total, out=np.full(votes.shape, 1 / rows.n_levels), where=total > 0)
    return with_known(shares, rows.known)


def vote_anchor(rows: ClassRows) -> Floats:
    """Return items of each level, in the shares of the grades, that a fit begins with, (n_levels,).

    Only pairs of grades of the same item tell shares of levels from habits of annotators. With few of them one level
    can take nearly all items at no loss of likelihood. The anchor is worth as many items as there are at one pair each,
    and fades with the square of the pairs that an item has on average, so that it is gone where these are many.
    """
    (pairs,) = rows.total(_n_pairs)
    shares = rows.level_weights
    # the weight is bounded, or passes could not move the shares at all
    worth = min((rows.n_graded / max(float(pairs), 1e-9)) ** 2, _MOST_ANCHOR)
    return shares / shares.sum() * worth * rows.n_graded


def _n_pairs(rows: ClassRows) -> tuple[float]:
    """Number of pairs of grades of the same item."""
    each = np.diff(rows.packed_rows.starts)
    number = each.astype(np.float64) if rows.weight is None else np.bincount(rows.item, rows.weight, rows.n_items)
    return (float((number * np.maximum(number - 1.0, 0.0)).sum()) / 2.0,)


def with_known(probabilities: Floats, known: Ints) -> Floats:
    """Return probabilities with each known item certain."""
    sure = np.flatnonzero(known >= 0)
    if len(sure):
        probabilities[sure] = 0.0
        probabilities[sure, known[sure]] = 1.0
    return probabilities


def level_counts(rows: ClassRows) -> tuple[Floats]:
    """Return the weight of grades by annotator and level."""
    return (rows.levels_by_row[1],)


class Reading(Protocol):
    """How the levels of items follow from what was learned, for the rows of any part."""

    def probabilities(self, rows: ClassRows, state: Any) -> Floats:
        """Return the probability of each level for each item, (n_items, n_levels)."""
        ...


class MatrixReading(NamedTuple):
    """Levels by Bayes' rule from confusion matrices and shares of levels."""

    confusion: Floats
    shares: Floats

    def probabilities(self, rows: ClassRows, state: Any) -> Floats:
        """Return the probability of each level for each item; rows of items without grades are 0."""
        from ...kernels.confusion import fill_probabilities

        probabilities = with_known(np.zeros((rows.n_items, rows.n_levels)), rows.known)
        fill_probabilities(rows.packed_rows, self.confusion, self.shares, rows.known, probabilities)
        return probabilities


class VoteReading(NamedTuple):
    """Levels by the shares of the grades."""

    def probabilities(self, rows: ClassRows, state: Any) -> Floats:
        """Return the share of each level for each item."""
        return vote_shares(rows)


@dataclass(frozen=True, eq=False)
class ClassFit:
    """What a class method estimates.

    Parameters
    ----------
    probabilities
        Probability of each level for each item, (n_items, n_levels); rows of items without grades are not used.
    prior
        Share of each level, (n_levels,).
    confusion
        Probability of each given level for each true one, (n_annotators, n_levels, n_levels): true level first.
    trace
        How the fit went.
    parameters
        What else the method knows of each annotator, (n_annotators, ...).
    as_given
        Mask of the items whose grades are kept as they are, since nothing could be learned; ``None`` for none.
    reading
        What the probabilities follow from; ``None`` where they were put together of several fits.
    is_given
        Whether accuracies were given, which held-out grades do not put in doubt.
    by_query
        Whether queries were fitted apart, so that annotators are different ones in each.
    rereads
        Whether the reading follows from annotators and shares of levels alone, so that new grades can be read by it.
    """

    probabilities: Floats
    prior: Floats
    confusion: Floats
    trace: Trace
    parameters: Mapping[str, Floats] = field(default_factory=dict)
    as_given: Bools | None = None
    reading: Reading | None = None
    is_given: bool = False
    by_query: bool = False
    rereads: bool = False

    @property
    def kept(self) -> Bools:
        """Mask of the items whose grades are kept as they are, (n_items,)."""
        return np.zeros(len(self.probabilities), bool) if self.as_given is None else self.as_given

    @property
    def per_annotator(self) -> dict[str, Floats]:
        """Everything that it has of each annotator."""
        return {"confusion": self.confusion, **self.parameters}

    @property
    def without_items(self) -> ClassFit:
        """The same without what it says of items, as it is sent to parts."""
        return replace(self, probabilities=self.probabilities[:0])


def votes_as_fit(rows: ClassRows, confusion: Floats) -> ClassFit:
    """Return the grades themselves as a fit, with the annotators that a method's prior supposes."""
    reading = VoteReading()
    fit = ClassFit(rows.read(reading), np.empty(0), confusion, Trace(), as_given=rows.everything, reading=reading)
    return replace(fit, prior=rows.mean_probabilities(fit))


def log_shares(shares: Floats, n_levels: int) -> Floats:
    """Return logarithms of the shares of levels, of even ones where they are not estimated."""
    return np.log(shares / shares.sum()) if len(shares) else np.full(n_levels, -np.log(n_levels))


class Former(NamedTuple):
    """A former consensus as far as it tells of the annotators and levels of now; NaN stands for what is new.

    ``prior`` (n_levels,) is the share of each level; ``annotator`` (n_annotators,) and ``level`` (n_levels,) are
    the former codes, -1 where there are none.
    """

    method: str
    prior: Floats
    annotator: Ints
    level: Ints
    parameters: Mapping[str, Any]

    @classmethod
    def of_consensus(cls, start: Consensus, grades: Grades, rows: ClassRows) -> Former:
        """Return what a former consensus tells of the annotators and levels of now, matched by id and value."""
        if start.probabilities is None or start.levels is None:
            raise ParameterError(
                f"start= is a consensus of {start.method}, which has no probabilities of levels; "
                "start from a consensus of the same method, or leave start= out"
            )
        judged = start.probabilities if start.grade is None else start.probabilities[start.grade >= 0]
        shares = judged.mean(axis=0) if len(judged) else np.full(len(start.levels), np.nan)
        place = {str(level): code for code, level in enumerate(start.levels)}
        level = np.array([place.get(str(level), -1) for level in rows.levels], np.int32)
        annotator: Ints = np.full(rows.n_annotators, -1, np.int32)
        parameters: Mapping[str, Any] = {}
        if start.learned is not None:
            annotators, parameters = start.learned
            annotator = annotators.codes(grades.annotators.ids) if rows.has_annotators else annotator
        return cls(start.method, np.append(shares, np.nan)[level], annotator, level, parameters)

    def of(self, annotators: Any) -> Former:
        """Return what it tells of some annotators of now."""
        return self._replace(annotator=self.annotator[annotators])

    def lacks(self, names: Iterable[str]) -> list[str]:
        """Return which of these parameters of annotators it does not know."""
        return [name for name in names if name not in self.parameters]

    def of_annotators(self, name: str, n_level_axes: int = 0) -> Floats:
        """Return a parameter of each annotator of now, (n_annotators, n_levels, ...), NaN for new ones and new levels.

        Of grades without annotators there is none.
        """
        if name not in self.parameters:
            return np.full((len(self.annotator), *[len(self.level)] * n_level_axes), np.nan)
        # code -1 finds the NaN at the end
        padded = np.pad(np.asarray(self.parameters[name], np.float64), (0, 1), constant_values=np.nan)
        return padded[np.ix_(self.annotator, *[self.level] * n_level_axes)]


class KnownGrades(NamedTuple):
    """Items whose level is known: the user's table, the columns meant by query, item and grade, and level codes."""

    frame: pl.DataFrame
    columns: Mapping[str, str]
    level: Ints

    @classmethod
    def of(cls, known: Any, code: PartScale, n_queries: int) -> KnownGrades:
        """Return known items on the levels of a scale, among so many queries."""
        frame = known.frame() if isinstance(known, Truth) else to_frame(known)
        columns = understand_items(frame.columns, also=("grade",))
        if "grade" not in columns:
            raise JudgmentError(
                f"{option('known')} has no grade column (its columns: {quote_names(frame.columns)}); "
                "give a table of query, item and grade"
            )

        def level_of(value: Any) -> int:
            """Level code of a known grade, a number or text; -1 where it is none."""
            if code.cut is not None:
                inside = isinstance(value, int | float) and code.cut[0] <= value <= code.cut[1]
                return int(np.argmin(np.abs(code.values - value))) if inside else -1
            return next((place for place, level in enumerate(code.levels) if _same_level(level, value)), -1)

        given = frame[columns["grade"]]
        distinct = given.unique()
        codes = pl.Series([level_of(value) for value in distinct.to_list()], dtype=pl.Int32)
        level = given.replace_strict(distinct, codes, default=-1, return_dtype=pl.Int32).to_numpy()
        scale = ", ".join(str(level) for level in code.levels[:12])
        remedy = "correct it, or declare it with levels="
        _refuse(frame, columns, level < 0, f"has a known grade outside the scale {scale}", remedy)
        ids = [name for name in ("query", "item") if name in columns]
        named = pl.DataFrame({name: frame[columns[name]].cast(pl.String) for name in ids})
        several = pl.col("level").n_unique().over(named.columns) > 1
        twice = named.with_columns(level=pl.Series(level)).select(several).to_series().to_numpy()
        _refuse(frame, columns, twice, "has two different known grades", "keep one of them")
        if "query" not in columns and n_queries != 1:
            raise JudgmentError(f"a table without a query column does not fit {n_queries} queries; add the column")
        return cls(frame, columns, level)

    def items_in(self, items: Items) -> Ints:
        """Return the code of each known item among others, -1 where it is none of them."""
        query = self.frame[self.columns["query"]] if "query" in self.columns else None
        return items.codes(query, self.frame[self.columns["item"]])

    def levels_in(self, items: Items) -> Ints:
        """Return the level code of each item, -1 where it is not known."""
        levels, code = np.full(len(items), -1, np.int32), self.items_in(items)
        levels[code[code >= 0]] = self.level[code >= 0]
        return levels

    def refuse_missing(self, missing: Bools) -> None:
        """Refuse known items that nobody judged."""
        remedy = f"leave it out, or list it with {option('items')}"
        _refuse(self.frame, self.columns, missing, "is not among the judged items", remedy)


def _same_level(level: Any, value: Any) -> bool:
    """Whether a known grade, a number or text, is a level."""
    if isinstance(value, str):
        value = value.strip()
    if str(level) == str(value):
        return True
    try:
        return float(level) == float(value)
    except (TypeError, ValueError):
        return False


def _refuse(frame: pl.DataFrame, columns: Mapping[str, str], wrong: Bools, complaint: str, remedy: str) -> None:
    """Raise for known rows that cannot be used, naming the first few."""
    if not wrong.any():
        return
    rows = np.flatnonzero(wrong)
    shown = []
    for row in rows[:_N_SHOWN].tolist():
        query = f" of query {frame[columns['query']][row]!r}" if "query" in columns else ""
        grade = frame[columns["grade"]][row]
        shown.append(f"item {frame[columns['item']][row]!r}{query} ({option('known')} row {row + 1}, grade {grade!r})")
    more = f" and {len(rows) - _N_SHOWN} more" if len(rows) > _N_SHOWN else ""
    raise JudgmentError(f"{'; '.join(shown)}{more} {complaint}; {remedy}")


@dataclass(frozen=True, eq=False, kw_only=True)
class PartScale(CodedScale):
    """How grades become codes in every part.

    ``cut`` is the lowest and highest grade where the scale is one of bins; ``known_grades`` are items whose level is
    known.
    """

    cut: tuple[float, float] | None
    known_grades: KnownGrades | None = None

    @classmethod
    def of(cls, judged: Any, bins: int | None, cut: tuple[float, float] | None, known: Any | None) -> PartScale:
        """Return the scale of grades, in memory or packed, with all of its levels."""
        if bins is None or cut is None:
            check_levels(judged.levels, judged.declared)
            scale = tuple(judged.levels)
            values = Grades.values_of_levels(scale, nominal=bool(judged.nominal))
        else:
            check_order(judged)
            values = bin_middles(*cut, bins)
            scale = tuple(values.tolist())
        code = cls(
            scale=scale, levels=scale, values=values, used_levels=np.arange(len(scale), dtype=np.int32), cut=cut,
            n_annotators=max(len(judged.annotators), 1), nominal=bool(judged.nominal),
            has_annotators=len(judged.annotators) > 0,
        )  # fmt: skip
        return code if known is None else replace(code, known_grades=KnownGrades.of(known, code, judged.n_queries))

    def keep(self, in_use: Bools) -> PartScale:
        """Return the same with some of its levels, of which something can be learned."""
        used = np.flatnonzero(in_use).astype(np.int32)
        return replace(self, used_levels=used, levels=tuple(self.scale[k] for k in used), values=self.values[used])


@dataclass(frozen=True, eq=False)
class ClassPart:
    """The grades of a part, and their codes once it is known which levels are in use."""

    grades: Grades
    _coded: dict[tuple[int, ...], ClassRows] = field(default_factory=dict)

    def rows(self, code: PartScale) -> ClassRows:
        """Return the grades as codes; a part keeps them from pass to pass."""
        key = tuple(code.used_levels.tolist())
        if key in self._coded:
            return self._coded[key]
        grades, all_levels = self.grades, np.full(len(code.scale), -1, np.int32)
        all_levels[code.used_levels] = np.arange(code.n_levels, dtype=np.int32)
        place = grades.level_place if code.cut is None else bin_codes(grades.grade, *code.cut, len(code.scale))
        annotator = grades.annotator if code.has_annotators else np.zeros(len(grades), np.int32)
        known = np.full(grades.n_items, -1, np.int32)
        if code.known_grades is not None and grades.n_items:
            known = np.append(all_levels, np.int32(-1))[code.known_grades.levels_in(grades.items)]
        self._coded.clear()
        self._coded[key] = ClassRows(
            item=grades.item, annotator=annotator, weight=grades.weight,
            level=place if code.n_levels == len(code.scale) else all_levels[place],
            known=known, time=grades.time, items=grades.items, **_scale_of(code),
        )  # fmt: skip
        return self._coded[key]


def _scale_of(code: CodedScale) -> dict[str, Any]:
    """What codes stand for, as arguments."""
    return {part.name: getattr(code, part.name) for part in fields(CodedScale)}


@dataclass(frozen=True, eq=False, kw_only=True)
class PartedRows(CodedScale):
    """Stands for the rows of all parts in the steps of a method: what these ask of rows is summed over the parts."""

    sums: Blocks
    code: PartScale
    level_weights: Floats
    annotator_weights: Floats
    n_graded: float
    overlap: bool
    n_predictable: int
    walk: ClassVar[None] = None

    @classmethod
    def of(cls, sums: Blocks, judged: Any, bins: int | None, known: Any | None = None) -> PartedRows:
        """Return the stand-in for all rows, after the passes that find the levels in use."""
        cut = None
        if bins is not None:
            ranges = [(low, high) for low, high, n in sums.each(_range) if n]
            cut = min(low for low, _ in ranges), max(high for _, high in ranges)
        code = PartScale.of(judged, bins, cut, known)
        weights, given, n_graded, n_overlap, n_predictable, here = sums.total(partial(_survey, code))
        in_use = weights > 0
        if code.known_grades is not None:
            code.known_grades.refuse_missing(here == 0)
            in_use[code.known_grades.level] = True
        code = code.keep(in_use)
        return cls(
            sums=sums, code=code, level_weights=weights[in_use], annotator_weights=given, n_graded=n_graded,
            overlap=n_overlap > 0, n_predictable=int(n_predictable), **_scale_of(code),
        )  # fmt: skip

    @property
    def everything(self) -> Bools:
        """A mask that stands for all items."""
        return np.ones(1, bool)

    def total(self, function: Any, *args: Any) -> Statistics:
        """Return a pass of rows, summed over the parts."""
        return self.sums.total(partial(_pass_of_rows, self.code, function, args))

    def total_with_state(self, function: Any, *args: Any) -> Statistics:
        """Return a pass that reads and writes the states of the parts, summed over them."""
        return self.sums.total(partial(_pass_with_state, self.code, function, args))

    def each_with_state(self, function: Any, *args: Any) -> list[Statistics]:
        """Return a pass that reads the states of the parts, part by part."""
        return self.sums.each(partial(_pass_with_state, self.code, function, args))

    def votes(self, second_opinions: bool = False) -> Tallies:
        """Return the counts with vote shares for the truth."""
        return _tallies(self.total(ClassRows.votes, second_opinions))

    def expected_counts(self, confusion: Floats, shares: Floats) -> Tallies:
        """Return the expected counts under confusion matrices and shares of levels."""
        return _tallies(self.total(ClassRows.expected_counts, confusion, shares))

    def mean_probabilities(self, fit: ClassFit) -> Floats:
        """Return the mean probability of each level over the graded items."""
        return self.total_with_state(_sums_of_probabilities, fit.reading)[0] / self.n_graded

    def read(self, reading: Reading) -> Floats:
        """Return no probabilities: they are read out of the parts at the end."""
        return np.empty((0, self.n_levels))

    @cached_property
    def sample(self) -> ClassRows:
        """The rows that the calibration looks at."""
        return self._joined_sample(None)

    def first_sample(self) -> ClassRows | None:
        """Return the rows by which a fit begins, ``None`` where these are too many of all."""
        enough = self.n_predictable * self.n_levels >= 4 * START_CELLS
        return self._joined_sample(START_CELLS) if enough else None

    def _joined_sample(self, n_cells: int | None) -> ClassRows:
        """A sample of so many cells, of all parts as one."""
        found = self.each_with_state(_sample_rows, self.n_predictable, n_cells)
        begins = np.cumsum([0, *(n_items for *_, n_items in found)])
        item = [part[0] + begin for part, begin in zip(found, begins, strict=False)]
        annotator, level, weight, time = (np.concatenate([part[place] for part in found]) for place in range(1, 5))
        return ClassRows(
            item=np.concatenate(item).astype(np.int32), annotator=annotator.astype(np.int32),
            level=level.astype(np.int32), weight=None if (weight == 1.0).all() else weight,
            known=np.full(int(begins[-1]), -1, np.int32), time=None if np.isnan(time).any() else time,
            **_scale_of(self.code),
        )  # fmt: skip

    def sample_probabilities(self, fit: ClassFit) -> Floats:
        """Return the probabilities of a fit for the items of the sample."""
        samples = self.each_with_state(_sample_probabilities, fit.reading, self.n_predictable)
        return np.concatenate([probabilities for (probabilities,) in samples])


def _tallies(total: Statistics) -> Tallies:
    """Statistics of a pass as tallies."""
    from ...kernels.confusion import Tallies

    return Tallies(float(total[0]), *total[1:])


def _pass_of_rows(code: PartScale, function: Any, args: Any, part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """A pass that looks at the rows of a part only."""
    return tuple(function(part.rows(code), *args)), None


def _pass_with_state(code: PartScale, function: Any, args: Any, part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """A pass that reads and may write the state of a part."""
    return function(part.rows(code), state, *args)


def _range(part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """Lowest and highest grade of a part, and the number of grades."""
    grade = part.grades.grade
    return (float(grade.min(initial=np.inf)), float(grade.max(initial=-np.inf)), float(len(grade))), None


def _survey(code: PartScale, part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """Weight by level and annotator; items graded, by several or known, grades to predict; known ones here."""
    rows, here = part.rows(code), np.zeros(0)
    if code.known_grades is not None:
        here = np.zeros(len(code.known_grades.level))
        if rows.n_items:
            here = (code.known_grades.items_in(part.grades.items) >= 0).astype(np.float64)
    numbers = rows.n_graded, float(rows.overlap), float(rows.n_predictable)
    return (rows.level_weights, rows.annotator_weights, *numbers, here), None


def _sums_of_probabilities(rows: ClassRows, state: Any, reading: Reading) -> tuple[Statistics, None]:
    """Sums of the probabilities of each level over the graded items of one part."""
    return (reading.probabilities(rows, state)[rows.is_graded].sum(axis=0),), None


def _sample_rows(rows: ClassRows, state: Any, n_predictable: int, n_cells: int | None) -> tuple[Statistics, None]:
    """Rows of the items of one part that are in a sample of so many cells, and the number of these items."""
    rows = rows.of_items(rows.sampled_items(n_predictable, n_cells))
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    time = np.full(len(rows), np.nan) if rows.time is None else rows.time
    return (rows.item, rows.annotator, rows.level, weight, time, rows.n_items), None


def _sample_probabilities(rows: ClassRows, state: Any, reading: Reading, n_predictable: int) -> tuple[Statistics, None]:
    """Probabilities of the items of one part that the calibration looks at."""
    return (reading.probabilities(rows, state)[rows.sampled_items(n_predictable)],), None
