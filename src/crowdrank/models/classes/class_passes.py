"""Class methods over parts of the grades: a stand-in for all rows whose passes are sums over the parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...data.consensus import Consensus, Quality, settle_ties
from ...data.grades import bin_codes, bin_middles, check_levels
from ...data.judgments import Grades, align_judgments, stack_judgments
from ...data.parted import MANY_ITEMS, PartColumns, PartedFit, sample_queries, share_of_rows
from ...protocols import Blocks, Bools, Floats, Ints, Statistics
from ...quality import LearnedQuality
from ...wording import method_label
from .calibration import (
    Calibration,
    Numbers,
    annotator_numbers,
    calibrate,
    item_numbers,
)
from .class_method import (
    KnownGrades,
    annotator_parameters,
    brief_method,
    calibration_estimates,
    item_columns,
    learned_quality,
    on_scale,
    quality_of_refits,
)
from .coded_grades import ClassFit, ClassRows, Reading, former_fit

if TYPE_CHECKING:
    from ...kernels.confusion import Tallies


class LevelCode(NamedTuple):
    """How grades become codes in every part: the scale, the number each level counts as, and the levels in use.

    ``cut`` is the lowest and highest grade where the scale is one of bins; ``known`` are items whose level is known.
    """

    scale: tuple[Any, ...]
    values: Floats
    used_levels: Ints
    cut: tuple[float, float] | None
    n_annotators: int
    nominal: bool
    has_annotators: bool
    known: KnownGrades | None = None

    @property
    def levels(self) -> tuple[Any, ...]:
        """All levels, of which a known item has one."""
        return self.scale


@dataclass(frozen=True, eq=False)
class ClassPart:
    """The grades of a part, and their codes once it is known which levels are in use."""

    grades: Grades
    _coded: dict[tuple[int, ...], ClassRows]

    def rows(self, code: LevelCode) -> ClassRows:
        """Return the grades as codes; a part keeps them from pass to pass."""
        key = tuple(code.used_levels.tolist())
        if key not in self._coded:
            self._coded.clear()
            self._coded[key] = self._code(code)
        return self._coded[key]

    def _code(self, code: LevelCode) -> ClassRows:
        """Lay the grades out."""
        from ...kernels.segments import level_places

        grades, all_levels = self.grades, np.full(len(code.scale), -1, np.int32)
        all_levels[code.used_levels] = np.arange(len(code.used_levels), dtype=np.int32)
        if code.cut is None:
            place = grades.level_place if grades.declared else level_places(code.values, grades.grade)
        else:
            place = bin_codes(grades.grade, *code.cut, len(code.scale))
        annotator = grades.annotator if code.has_annotators else np.zeros(len(grades), np.int32)
        known = np.full(grades.n_items, -1, np.int32)
        if code.known is not None and grades.n_items:
            known = np.append(all_levels, np.int32(-1))[code.known.levels_in(grades.items)]
        return ClassRows(
            item=grades.item, annotator=annotator, weight=grades.weight,
            level=place if len(code.used_levels) == len(code.scale) else all_levels[place],
            known=known, n_annotators=code.n_annotators,
            levels=tuple(code.scale[k] for k in code.used_levels), values=code.values[code.used_levels],
            scale=code.scale, used_levels=code.used_levels, nominal=code.nominal, has_annotators=code.has_annotators,
            time=grades.time, items=grades.items,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ClassPasses:
    """The fit of a class method to grades in parts.

    Parameters
    ----------
    method
        The method.
    judged
        What is known of all grades: ``annotators``, ``levels``, ``nominal``, ``rows``, ``n_items``.
    start
        A former consensus to go on from.
    known
        Table of items whose level is known.
    given
        What else the method takes at the beginning.
    """

    method: Any
    judged: Any
    start: Consensus | None
    known: Any | None
    given: dict[str, Any]

    def lay_out(self, part: Grades) -> ClassPart:
        """Return the part; its codes follow when the levels in use are known."""
        return ClassPart(part, {})

    def solve(self, sums: Blocks) -> PartedFit:
        """Return the levels of all items and what was learned of the annotators."""
        method, rows = self.method, parted_rows(sums, self.judged, self.method.bins, self.known)
        former = None if self.start is None else former_fit(self.start, self.judged, rows)  # type: ignore[arg-type]
        fit = method._estimate(rows, None, method._begin_from(former, rows, self.judged, **self.given))
        everything: Any = rows
        sure = calibrate(everything, fit) if method.calibrated else Calibration()
        read = partial(_read_items, rows.code, fit.without_items, method, sure, rows.draws_of(method.seed), self._many)
        columns = [PartColumns(*part) for part in sums.read(read)]
        return PartedFit(
            columns, fit.trace, self._quality(sums, rows, fit), rows.scale, calibration_estimates(method, sure)
        )

    @property
    def _many(self) -> bool:
        """Whether there are too many items to keep the probabilities of all levels."""
        return bool(self.judged.n_items > MANY_ITEMS)

    def _quality(self, sums: Blocks, rows: PartedRows, fit: ClassFit) -> LearnedQuality | None:
        """Quality of the annotators, held out on a sample of the queries where grades are many."""
        if not rows.has_annotators:
            return None
        share = share_of_rows(self.judged.rows)
        samples = [part for (part,) in sums.read(partial(_sample_grades, rows.annotator_weights, share))]
        sample: Grades = stack_judgments(align_judgments([part for part in samples if len(part)] or samples[:1]))
        parameters = annotator_parameters(rows, fit)
        learned = Quality(self.judged.annotators, parameters["accuracy"], np.empty(0), parameters)
        everything: Any = rows
        shares = on_scale(np.broadcast_to(fit.prior, (sample.n_items, rows.n_levels)), everything, 1)
        start = Consensus(
            items=sample.items, scores=np.zeros(sample.n_items), method=method_label(self.method), levels=rows.scale,
            probabilities=shares, quality_source=learned,
        )  # fmt: skip
        known, table = None, rows.code.known
        if table is not None:
            known = table.frame.filter(table.items_in(sample.items) >= 0)
        again = partial(brief_method(self.method, len(sample)).fit, known=known, **self.given)
        quality = quality_of_refits(self.method, sample, start, again, parameters)
        return replace(quality, learned=partial(learned_quality, rows.nominal, fit), n_judgments=rows.annotator_weights)


def parted_rows(sums: Blocks, judged: Any, bins: int | None, known: Any | None = None) -> PartedRows:
    """Return the stand-in for all rows, after the passes that find the levels in use."""
    named = len(judged.annotators) > 0
    n_annotators = max(len(judged.annotators), 1)
    code = _level_code(sums, judged, bins, n_annotators, named)
    if known is not None:
        table = KnownGrades.of(known, code, None if code.cut is None else np.array(code.cut))
        table.expect_queries(judged.n_queries)
        code = code._replace(known=table)
    weights, given, n_graded, n_overlap, n_predictable, here = sums.total(partial(_survey, code))
    in_use = weights > 0
    if code.known is not None:
        code.known.refuse_missing(here == 0)
        in_use[code.known.level] = True
    used = np.flatnonzero(in_use).astype(np.int32)
    code = code._replace(used_levels=used)
    return PartedRows(sums, code, weights[used], given, n_graded, n_overlap, int(n_predictable))


def _level_code(sums: Blocks, judged: Any, bins: int | None, n_annotators: int, named: bool) -> LevelCode:
    """The scale of all parts: that of the judgments, or bins of their range."""
    rest = (n_annotators, bool(judged.nominal), named)
    if bins is not None:
        ranges = [(low, high) for low, high, n in sums.each(_range) if n]
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        middles = bin_middles(low, high, bins)
        return LevelCode(tuple(middles.tolist()), middles, np.arange(bins, dtype=np.int32), (low, high), *rest)
    levels = tuple(judged.levels)
    check_levels(levels, judged.declared)
    values = Grades.values_of_levels(levels, nominal=bool(judged.nominal))
    return LevelCode(levels, values, np.arange(len(levels), dtype=np.int32), None, *rest)


@dataclass(eq=False)
class PartedRows:
    """Stands for the rows of all parts in the steps of a method: what these ask of rows is summed over the parts."""

    sums: Blocks
    code: LevelCode
    level_weights: Floats
    annotator_weights: Floats
    n_graded: float
    n_overlap: float
    n_predictable: int

    @property
    def n_annotators(self) -> int:
        """Number of annotators; one where none are named."""
        return self.code.n_annotators

    @property
    def n_levels(self) -> int:
        """Number of levels in use."""
        return len(self.code.used_levels)

    @property
    def levels(self) -> tuple[Any, ...]:
        """The levels in use."""
        return tuple(self.code.scale[k] for k in self.code.used_levels)

    @property
    def values(self) -> Floats:
        """The number that each level in use counts as."""
        return self.code.values[self.code.used_levels]

    @property
    def scale(self) -> tuple[Any, ...]:
        """All levels."""
        return self.code.scale

    @property
    def used_levels(self) -> Ints:
        """The levels in use among all."""
        return self.code.used_levels

    @property
    def nominal(self) -> bool:
        """Whether levels have no order."""
        return self.code.nominal

    @property
    def has_annotators(self) -> bool:
        """Whether the grades say who gave them."""
        return self.code.has_annotators

    @property
    def overlap(self) -> bool:
        """Whether some item was graded by two annotators, or was graded and is known."""
        return self.n_overlap > 0

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

    def votes(self, *, second_opinions: bool = False) -> Tallies:
        """Return the counts with vote shares for the truth."""
        return _tallies(self.total(_votes, second_opinions))

    def expected_counts(self, confusion: Floats, shares: Floats) -> Tallies:
        """Return the expected counts under confusion matrices and shares of levels."""
        return _tallies(self.total(_count_expected, confusion, shares))

    def tallies(self, fit: ClassFit) -> Tallies:
        """Return the counts by the probabilities of a fit."""
        return _tallies(self.sums.total(partial(_tallies_of, self.code, fit.reading)))

    def mean_probabilities(self, fit: ClassFit) -> Floats:
        """Return the mean probability of each level over the graded items."""
        mean: Floats = self.tallies(fit).shares / self.n_graded
        return mean

    def read(self, reading: Reading) -> Floats:
        """Return no probabilities: they are read out of the parts at the end."""
        return np.empty((0, self.n_levels))

    @cached_property
    def _draws(self) -> dict[int, Numbers]:
        """The numbers of annotators by seed."""
        return {}

    def draws_of(self, seed: int) -> Numbers:
        """Return the number of each annotator from which random numbers of items follow."""
        if seed not in self._draws:
            self._draws[seed] = self.total(_annotator_numbers, seed)[0]
        return self._draws[seed]

    @cached_property
    def _sampled(self) -> ClassRows:
        """The rows that the calibration looks at."""
        samples = self.sums.each(partial(_sample_rows, self.code, self.n_predictable))
        return _joined_rows(self.code, samples)

    def sample(self) -> ClassRows:
        """Return the rows that the calibration looks at."""
        return self._sampled

    def sample_probabilities(self, fit: ClassFit) -> Floats:
        """Return the probabilities of a fit for the items of the sample."""
        samples = self.sums.each(partial(_sample_probabilities, self.code, fit.reading, self.n_predictable))
        return np.concatenate([probabilities for (probabilities,) in samples])


def _tallies(total: Statistics) -> Tallies:
    """Statistics of a pass as tallies."""
    from ...kernels.confusion import Tallies

    return Tallies(float(total[0]), *total[1:])


def _pass_of_rows(code: LevelCode, function: Any, args: Any, part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """A pass that looks at the rows of a part only."""
    return tuple(function(part.rows(code), *args)), None


def _pass_with_state(code: LevelCode, function: Any, args: Any, part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """A pass that reads and may write the state of a part."""
    answer: tuple[Statistics, Any] = function(part.rows(code), state, *args)
    return answer


def _votes(rows: ClassRows, second_opinions: bool) -> Statistics:
    """Counts of one part with vote shares for the truth."""
    return rows.votes(second_opinions=second_opinions)


def _count_expected(rows: ClassRows, confusion: Floats, shares: Floats) -> Statistics:
    """Expected counts of one part."""
    return rows.expected_counts(confusion, shares)


def _annotator_numbers(rows: ClassRows, seed: int) -> Statistics:
    """What one part adds to the numbers of the annotators."""
    items = item_numbers(rows, np.zeros(rows.n_annotators, np.uint64), seed, 0)
    return (annotator_numbers(rows, items, seed, 0),)


def _range(part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """Lowest and highest grade of a part, and the number of grades."""
    grade = part.grades.grade
    return (float(grade.min(initial=np.inf)), float(grade.max(initial=-np.inf)), float(len(grade))), None


def _survey(code: LevelCode, part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """Weight by level and annotator; items graded, by several or known, grades to predict; known ones here."""
    rows, here = part.rows(code), np.zeros(0)
    if code.known is not None:
        here = np.zeros(len(code.known.level))
        if rows.n_items:
            here = (code.known.items_in(part.grades.items) >= 0).astype(np.float64)
    numbers = rows.n_graded, float(rows.overlap), float(rows.n_predictable)
    return (rows.level_weights, rows.annotator_weights, *numbers, here), None


def _fit_of_part(rows: ClassRows, fit: ClassFit, state: Any) -> ClassFit:
    """A fit with the probabilities of one part."""
    assert fit.reading is not None
    kept = None if fit.as_given is None else np.broadcast_to(fit.as_given[0], rows.n_items)
    return replace(fit, probabilities=fit.reading.probabilities(rows, state), as_given=kept)


def _tallies_of(code: LevelCode, reading: Reading | None, part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """Counts of one part by the probabilities of a fit."""
    assert reading is not None
    rows = part.rows(code)
    return tuple(rows.tallies(reading.probabilities(rows, state))), None


def _sample_rows(code: LevelCode, n_predictable: int, part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """Rows of the items of one part that the calibration looks at, and the number of these items."""
    rows = part.rows(code)
    rows = rows.of_items(rows.sampled_items(n_predictable))
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    time = np.full(len(rows), np.nan) if rows.time is None else rows.time
    return (rows.item, rows.annotator, rows.level, weight, time, rows.n_items), None


def _sample_probabilities(
    code: LevelCode, reading: Reading | None, n_predictable: int, part: ClassPart, state: Any
) -> tuple[Statistics, Any]:
    """Probabilities of the items of one part that the calibration looks at."""
    assert reading is not None
    rows = part.rows(code)
    return (reading.probabilities(rows, state)[rows.sampled_items(n_predictable)],), None


def _joined_rows(code: LevelCode, found: Sequence[Statistics]) -> ClassRows:
    """The sampled rows of all parts as one."""
    begins = np.cumsum([0, *(n_items for *_, n_items in found)])
    item, annotator, level = (
        np.concatenate(
            [values[place] + (begin if not place else 0) for values, begin in zip(found, begins, strict=False)]
        )
        for place in range(3)
    )
    weight, time = (np.concatenate([values[place] for values in found]) for place in (3, 4))
    return ClassRows(
        item=item.astype(np.int32), annotator=annotator.astype(np.int32), level=level.astype(np.int32),
        weight=None if (weight == 1.0).all() else weight, known=np.full(int(begins[-1]), -1, np.int32),
        n_annotators=code.n_annotators, levels=tuple(code.scale[k] for k in code.used_levels),
        values=code.values[code.used_levels], scale=code.scale, used_levels=code.used_levels,
        nominal=code.nominal, has_annotators=code.has_annotators, time=None if np.isnan(time).any() else time,
    )  # fmt: skip


def _read_items(
    code: LevelCode, fit: ClassFit, method: Any, sure: Calibration, draws: Numbers, many: bool, part: ClassPart,
    state: Any,
) -> tuple[Statistics, Any]:  # fmt: skip
    """Scores, levels and probabilities of the items of one part."""
    rows = part.rows(code)
    own = _fit_of_part(rows, fit, state)
    columns = item_columns(method, part.grades, rows, own, sure, lambda: item_numbers(rows, draws, method.seed, 1))
    scores = settle_ties(method, part.grades, columns.scores)
    if not many:
        return (scores, None, columns.grade, columns.probabilities, None), None
    confidence = columns.probabilities[np.arange(len(scores)), np.maximum(columns.grade, 0)]
    return (scores, None, columns.grade, None, confidence), None


def _sample_grades(n_judgments: Floats, share: float, part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """The grades of some queries of one part."""
    return (sample_queries(part.grades, n_judgments, share),), None
