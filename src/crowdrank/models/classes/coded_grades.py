"""Grades as codes: what goes into a class method, with known items, a former consensus and given accuracies."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...data.columns import quote_names, understand_items
from ...data.consensus import Consensus
from ...data.frames import to_frame
from ...data.index import Items
from ...data.judgments import Grades
from ...data.truth import Truth
from ...errors import DataWarning, JudgmentError, ParameterError
from ...protocols import Bools, Counts, Floats, Ints
from ...wording import option

if TYPE_CHECKING:
    from ...kernels.confusion import PackedGrades, Tallies

_N_SHOWN = 5
_N_STRUCTURE_ROUNDS = 2
"""Rounds in which items and annotators are known by each other: on public sets a third splits no group of items."""

Numbers: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Grades as codes: item, annotator and level of each row, (n,); the level of each known item, (n_items,), else -1.

    Levels are those that somebody gave or that are known; they are the levels ``used`` of ``scale``, all there are.
    Rows without annotators are all by annotator 0, and ``named`` is false.
    """

    item: Ints
    annotator: Ints
    level: Ints
    weight: Floats | None
    known: Ints
    n_annotators: int
    levels: tuple[Any, ...]
    values: Floats
    scale: tuple[Any, ...]
    used: Ints
    nominal: bool
    named: bool

    def __len__(self) -> int:
        return len(self.item)

    @property
    def n_items(self) -> int:
        """Number of items, those that nobody graded included."""
        return len(self.known)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @cached_property
    def packed(self) -> PackedGrades:
        """The rows sorted by item, as kernels read them."""
        from ...kernels.confusion import pack_grades

        sizes = (self.n_items, self.n_annotators, self.n_levels)
        return pack_grades(self.item, self.annotator, self.level, self.weight, *sizes)

    @cached_property
    def graded(self) -> Bools:
        """Mask of the items that somebody graded, (n_items,)."""
        mask: Bools = np.diff(self.packed.starts) > 0
        return mask

    @cached_property
    def several(self) -> Bools:
        """Mask of the items that two annotators graded or more, (n_items,); without annotators, two grades."""
        from ...kernels.confusion import several_annotators

        return several_annotators(self.packed, self.n_levels, named=self.named)

    @cached_property
    def overlap(self) -> bool:
        """Whether some item was graded by two annotators, or was graded and is known."""
        return bool((self.several | (self.graded & (self.known >= 0))).any())

    @property
    def n_graded(self) -> float:
        """Number of items that somebody graded."""
        return float(self.graded.sum())

    @property
    def given(self) -> Floats:
        """Weight of each annotator's grades, (n_annotators,)."""
        return np.bincount(self.annotator, self.weight, self.n_annotators).astype(np.float64)

    @property
    def level_weights(self) -> Floats:
        """Weight of the grades of each level, (n_levels,)."""
        return np.bincount(self.level, self.weight, self.n_levels).astype(np.float64)

    def votes(self, *, second_opinions: bool = False) -> Tallies:
        """Return the counts with vote shares for the truth, of all items or of those that somebody else tells of."""
        from ...kernels.confusion import vote_pass

        use = self.several | (self.known >= 0) if second_opinions else None
        return vote_pass(self.packed, self.n_annotators, self.n_levels, self.known, use)

    def expected_counts(self, confusion: Floats, shares: Floats) -> Tallies:
        """Return the expected counts under confusion matrices and shares of levels."""
        from ...kernels.confusion import confusion_pass

        return confusion_pass(self.packed, confusion, shares, self.known)

    @cached_property
    def levels_by_row(self) -> tuple[NDArray[np.uint8], Floats]:
        """The level of each packed row, (n,), and the weight of grades by annotator and level."""
        from ...kernels.confusion import levels_given

        return levels_given(self.packed, self.n_annotators, self.n_levels)

    def total(self, function: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
        """Return what a pass finds in all rows; over parts of the grades it is a sum of what it finds in each."""
        return tuple(function(self, *args))

    @property
    def everything(self) -> Bools:
        """Mask of all items, (n_items,)."""
        return np.ones(self.n_items, bool)

    @property
    def any_several(self) -> bool:
        """Whether two annotators graded some item."""
        return bool(self.several.any())

    def mean_probabilities(self, fit: Any) -> Floats:
        """Return the mean probability of each level over the graded items, (n_levels,)."""
        mean: Floats = fit.probabilities[self.graded].mean(axis=0)
        return mean

    def tallies(self, fit: Any) -> Tallies:
        """Return the counts by the probabilities of a fit, whatever its model of annotators."""
        from ...kernels.confusion import Tallies

        packed, n_levels = self.packed, self.n_levels
        item = np.repeat(np.arange(self.n_items), np.diff(packed.starts))
        weight = packed.weight if packed.weight.size else np.ones(len(item))
        given = [
            np.bincount(packed.code, weight * column[item], self.n_annotators * n_levels)
            for column in fit.probabilities.T
        ]
        counts: Floats = (
            np.stack(given).astype(np.float64).reshape(n_levels, self.n_annotators, n_levels).transpose(1, 0, 2)
        )
        return Tallies(0.0, counts, fit.probabilities[self.graded].sum(axis=0))

    def read(self, reading: Reading) -> Floats:
        """Return the probability of each level for each item, (n_items, n_levels)."""
        return reading.probabilities(self, None)


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
        fill_probabilities(rows.packed, self.confusion, self.shares, rows.known, probabilities)
        return probabilities


class VoteReading(NamedTuple):
    """Levels by the shares of the grades."""

    def probabilities(self, rows: ClassRows, state: Any) -> Floats:
        """Return the share of each level for each item."""
        return vote_shares(rows)


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

    def of_annotators(self, name: str, *, by_level: bool = False) -> Floats:
        """Return a parameter of each annotator of now, (n_annotators, ...), NaN for new ones.

        With ``by_level`` all further axes are over levels, and entries of new levels are NaN too.
        """
        if name not in self.parameters:
            raise ParameterError(
                f"start= is a consensus of {self.method}, which knows no {name} of the annotators; "
                "start from a consensus of the same method, or leave start= out"
            )
        former = np.asarray(self.parameters[name], np.float64)
        # code -1 finds the NaN at the end
        padded = np.pad(
            former,
            [(0, 1)] * (former.ndim if by_level else 1) + [(0, 0)] * (0 if by_level else former.ndim - 1),
            constant_values=np.nan,
        )
        found: Floats = padded[self.annotator]
        for axis in range(1, former.ndim if by_level else 1):
            found = np.take(found, self.level, axis=axis)
        return found


class QueryPart(NamedTuple):
    """The rows of one query: its items are ``items`` of all, its annotators the codes ``annotators`` of all."""

    rows: ClassRows
    items: slice
    annotators: Ints


def class_rows(grades: Grades, *, bins: int | None = None, known: Any | None = None) -> ClassRows:
    """Return grades as codes, with the level of each known item.

    Parameters
    ----------
    grades
        The grades; at least one.
    bins
        Cut the grades into so many equally wide levels.
    known
        Table of query, item and grade, or a :class:`~crowdrank.data.truth.Truth`: items whose level is known. An item
        that is not among the items, or a grade that is none of the levels, is refused by name.
    """
    codes, levels, values = grades.level_codes(bins)
    named = grades.n_annotators > 0
    rows = ClassRows(
        item=grades.item, annotator=grades.annotator if named else np.zeros(len(grades), np.int32), level=codes,
        weight=grades.weight, known=np.full(grades.n_items, -1, np.int32), n_annotators=max(grades.n_annotators, 1),
        levels=levels, values=values, scale=levels, used=np.arange(len(levels), dtype=np.int32),
        nominal=grades.nominal, named=named,
    )  # fmt: skip
    if known is not None:
        rows = replace(rows, known=_known_levels(grades, rows, known, bins))
    # levels that are not declared are those that were given
    return rows if grades.declared is None and bins is None else _without_unused(rows)


def _without_unused(rows: ClassRows) -> ClassRows:
    """The same without the levels that nobody gave and that are not known, of which nothing can be learned."""
    used = np.bincount(rows.level, minlength=rows.n_levels) > 0
    used[rows.known[rows.known >= 0]] = True
    if used.all():
        return rows
    code = (np.cumsum(used) - 1).astype(np.int32)
    kept = np.flatnonzero(used).astype(np.int32)
    return replace(
        rows, level=code[rows.level], known=np.where(rows.known >= 0, code[rows.known], np.int32(-1)),
        levels=tuple(rows.scale[k] for k in kept), values=rows.values[kept], used=kept,
    )  # fmt: skip


def _known_levels(grades: Grades, rows: ClassRows, known: Any, bins: int | None) -> Ints:
    """Level code of each item whose truth is known, (n_items,), -1 elsewhere."""
    table = KnownGrades.of(known, rows, grades.grade if bins else None)
    table.refuse_missing(table.items_in(grades.items) < 0)
    return table.levels_in(grades.items)


class KnownGrades(NamedTuple):
    """Items whose level is known: the user's table, the columns meant by query, item and grade, and level codes."""

    frame: pl.DataFrame
    found: Mapping[str, str]
    level: Ints

    @classmethod
    def of(cls, known: Any, rows: Any, cut: Floats | None) -> KnownGrades:
        """Return known items on the levels of ``rows``; ``cut`` holds the grades that bins were cut from."""
        frame = known.frame() if isinstance(known, Truth) else to_frame(known)
        found = understand_items(frame.columns, also=("grade",))
        if "grade" not in found:
            raise JudgmentError(
                f"{option('known')} has no grade column (its columns: {quote_names(frame.columns)}); "
                "give a table of query, item and grade"
            )
        level = _level_of(frame[found["grade"]], rows, cut)
        scale = ", ".join(str(level) for level in rows.levels[:12])
        remedy = "correct it, or declare it with levels="
        _refuse(frame, found, level < 0, f"has a known grade outside the scale {scale}", remedy)
        named = pl.DataFrame({name: frame[found[name]].cast(pl.String) for name in ("query", "item") if name in found})
        several = pl.col("level").n_unique().over(named.columns) > 1
        twice = named.with_columns(level=pl.Series(level)).select(several).to_series().to_numpy()
        _refuse(frame, found, twice, "has two different known grades", "keep one of them")
        return cls(frame, found, level)

    def expect_queries(self, n_queries: int) -> None:
        """Refuse a table that names no queries where there are several."""
        if "query" not in self.found and n_queries != 1:
            raise JudgmentError(f"a table without a query column does not fit {n_queries} queries; add the column")

    def items_in(self, items: Items) -> Ints:
        """Return the code of each known item among others, -1 where it is none of them."""
        query = self.frame[self.found["query"]] if "query" in self.found else None
        return items.codes(query, self.frame[self.found["item"]])

    def levels_in(self, items: Items) -> Ints:
        """Return the level code of each item, -1 where it is not known."""
        levels, code = np.full(len(items), -1, np.int32), self.items_in(items)
        levels[code[code >= 0]] = self.level[code >= 0]
        return levels

    def refuse_missing(self, missing: Bools) -> None:
        """Refuse known items that nobody judged."""
        remedy = f"leave it out, or list it with {option('items')}"
        _refuse(self.frame, self.found, missing, "is not among the judged items", remedy)


def _level_of(given: pl.Series, rows: Any, cut: Floats | None) -> Ints:
    """Level code of each known grade, -1 where it is none; ``cut`` holds the grades that bins were cut from."""
    distinct = given.unique()
    codes = []
    for value in distinct.to_list():
        if cut is not None:
            inside = isinstance(value, int | float) and cut.min() <= value <= cut.max()
            codes.append(int(np.argmin(np.abs(rows.values - value))) if inside else -1)
            continue
        same = [code for code, level in enumerate(rows.levels) if _same_level(level, value)]
        codes.append(same[0] if same else -1)
    return given.replace_strict(
        distinct, pl.Series(codes, dtype=pl.Int32), default=-1, return_dtype=pl.Int32
    ).to_numpy()


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


def _refuse(frame: pl.DataFrame, found: Mapping[str, str], wrong: Bools, complaint: str, remedy: str) -> None:
    """Raise for known rows that cannot be used, naming the first few."""
    if not wrong.any():
        return
    rows = np.flatnonzero(wrong)
    shown = []
    for row in rows[:_N_SHOWN].tolist():
        query = f" of query {frame[found['query']][row]!r}" if "query" in found else ""
        grade = frame[found["grade"]][row]
        shown.append(f"item {frame[found['item']][row]!r}{query} ({option('known')} row {row + 1}, grade {grade!r})")
    more = f" and {len(rows) - _N_SHOWN} more" if len(rows) > _N_SHOWN else ""
    raise JudgmentError(f"{'; '.join(shown)}{more} {complaint}; {remedy}")


def former_fit(start: Consensus, grades: Grades, rows: ClassRows) -> Former:
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
        annotator = annotators.codes(grades.annotators.ids) if rows.named else annotator
    return Former(start.method, np.append(shares, np.nan)[level], annotator, level, parameters)


def is_identified(rows: ClassRows, what: str) -> bool:
    """Return whether some item was graded by two annotators or is known; otherwise warn that accuracies are unknown."""
    if not rows.overlap:
        warnings.warn(
            f"{what}: no item was graded by two annotators, so their accuracies cannot be estimated; the grades "
            f"are kept as they are: have some items graded twice, or give {option('known')}",
            DataWarning,
            stacklevel=3,
        )
    return rows.overlap


def vote_shares(rows: ClassRows) -> Floats:
    """Return the share of each level in the weight of each item's grades, (n_items, n_levels); known items are certain.

    Items without grades have equal shares.
    """
    cells = rows.item.astype(np.int64) * rows.n_levels + rows.level
    votes = np.bincount(cells, rows.weight, rows.n_items * rows.n_levels).reshape(rows.n_items, rows.n_levels)
    total = votes.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(votes, total, out=np.full(votes.shape, 1 / rows.n_levels), where=total > 0)
    return with_known(shares, rows.known)


def with_known(probabilities: Floats, known: Ints) -> Floats:
    """Return probabilities with each known item certain."""
    sure = np.flatnonzero(known >= 0)
    if len(sure):
        probabilities[sure] = 0.0
        probabilities[sure, known[sure]] = 1.0
    return probabilities


def query_parts(rows: ClassRows, offsets: Counts) -> Iterator[QueryPart]:
    """Yield the rows of each query that has any, its items (bounded by ``offsets``) and annotators numbered anew."""
    order = np.argsort(rows.item, kind="stable")
    bounds = np.searchsorted(rows.item[order], offsets)
    for query in np.flatnonzero(np.diff(bounds)):
        chosen = order[bounds[query] : bounds[query + 1]]
        items = slice(int(offsets[query]), int(offsets[query + 1]))
        annotators, annotator = np.unique(rows.annotator[chosen], return_inverse=True)
        yield QueryPart(
            replace(
                rows,
                item=rows.item[chosen] - np.int32(items.start),
                annotator=annotator.astype(np.int32),
                level=rows.level[chosen],
                weight=None if rows.weight is None else rows.weight[chosen],
                known=rows.known[items],
                n_annotators=len(annotators),
            ),
            items,
            annotators.astype(np.int32),
        )


def structure_numbers(rows: ClassRows, seed: int) -> tuple[Numbers, Numbers]:
    """Return a random number for each item and for each annotator, from who gave what, whatever names and row order.

    Annotators are known by the items that they gave each level, and items by the annotators, in turn [Weisfeiler68]_;
    items that are alike in this share a number.
    """
    annotators = np.zeros(rows.n_annotators, np.uint64)
    for number in range(_N_STRUCTURE_ROUNDS):
        items = item_numbers(rows, annotators, seed, number)
        annotators = annotator_numbers(rows, items, seed, number)
    return items, annotators


def item_numbers(rows: ClassRows, annotators: Numbers, seed: int, number: int) -> Numbers:
    """Return the number of each item in a round, from those of the annotators who gave it each level."""
    item, annotator, level = _distinct_answers(rows)
    return _sums_of_draws(annotators[annotator], level, item, rows.n_items, (seed, 2 * number))


def annotator_numbers(rows: ClassRows, items: Numbers, seed: int, number: int) -> Numbers:
    """Return the number of each annotator in a round; over parts of the grades these add up."""
    item, annotator, level = _distinct_answers(rows)
    return _sums_of_draws(items[item], level, annotator, rows.n_annotators, (seed, 2 * number + 1))


def _distinct_answers(rows: ClassRows) -> tuple[Counts, Counts, Numbers]:
    """Item, annotator and level of each answer; a level given twice counts once, as one of twice the weight does."""
    packed = rows.packed
    item = np.repeat(np.arange(rows.n_items), np.diff(packed.starts))
    new = np.append(True, (np.diff(packed.code) != 0) | (np.diff(item) != 0))[: len(item)]
    annotator, level = np.divmod(packed.code[new], np.uint32(rows.n_levels))
    return item[new], annotator.astype(np.int64), level.astype(np.uint64)


def _sums_of_draws(numbers: Numbers, level: Numbers, there: Counts, size: int, seeds: tuple[int, int]) -> Numbers:
    """Sums of draws that numbers and levels decide; sums that wrap do not depend on their order."""
    from ...kernels.structure import mix_bits

    salt = np.random.default_rng(seeds).integers(0, 2**64, 1, np.uint64)
    sums = np.zeros(size, np.uint64)
    np.add.at(sums, there, mix_bits(mix_bits(numbers + salt) + level))
    return sums
