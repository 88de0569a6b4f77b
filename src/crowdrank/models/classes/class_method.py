"""The frame of every class method: grades and known items in, ``fit``, calibrated consensus and quality out."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from ...data.column_names import quote_names, understand_items
from ...data.consensus import Consensus, Quality, settle_ties
from ...data.frames import to_frame
from ...data.grades import bin_codes, bin_middles, check_levels
from ...data.index import Index, Items
from ...data.judgments import Grades, align_judgments, expect, stack_judgments
from ...data.parted import MANY_ITEMS, PartColumns, PartedFit, sample_queries, share_of_rows
from ...data.truth import Truth
from ...errors import DataWarning, JudgmentError, ParameterError
from ...protocols import BlockFit, Blocks, Bools, Counts, Floats, Ints, Statistics, method_name
from ...quality import MAX_FOLDS, LearnedQuality
from ...resampling import with_levels
from ...wording import method_label, option
from . import coded_grades
from .calibration import (
    Calibration,
    Numbers,
    annotator_numbers,
    calibrate,
    item_numbers,
    structure_numbers,
    temper_probabilities,
)
from .coded_grades import ClassFit, ClassRows, CodedScale, Former, Reading, former_fit, join_fits, query_parts

if TYPE_CHECKING:
    from ...kernels.confusion import Tallies


_MAX_TIED_DIFFERENCE = 1e-8
"""Probabilities that differ by no more are equal: fits end within this of each other, whatever the order of sums."""

# threshold (sample): grades from which annotators are left out in five parts, and fits to a part stop earlier
MANY_GRADES = 20_000
_FEW_FOLDS = 5
"""From this many grades on, annotators are left out in five parts, and fits to a part stop earlier."""

_REFIT_TOL, _MAX_REFIT_PASSES = 1e-3, 20
_N_SHOWN = 5


class ClassMethod(ABC):
    """A method that finds the level of each item and how each annotator errs; a method adds its own steps.

    The steps are ``_begin_from`` (what a former consensus tells), ``_fit_rows`` (the estimate of some grades) and
    ``_take_votes`` (the grades as they are, where nothing can be learned).
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    nominal: ClassVar[bool] = True
    in_grades: ClassVar[bool] = True
    precision: ClassVar[float] = 1e-11
    votes_without_overlap: ClassVar[bool] = True
    """With ``per_query``: whether a query in which no item was graded twice keeps its grades as they are."""

    per_query: bool
    calibrated: bool
    seed: int
    bins: int | None

    def fit(self, grades: Grades, *, known: Any | None = None, start: Consensus | None = None) -> Consensus:
        """Return the level of each item and what was learned of each annotator.

        ``known`` is a table of query, item and grade: items whose level is certain. ``start`` is a former consensus of
        this method to go on from; new annotators and items begin with the prior.
        """
        return self._fit(grades, known, start)

    def _fit(self, grades: Grades, known: Any | None, start: Consensus | None, **given: Any) -> Consensus:
        """The frame of every fit; ``given`` goes to ``_begin_from``."""
        expect(grades, self)
        if not len(grades):
            return Consensus.of(self, grades, np.zeros(grades.n_items))
        rows = class_rows(grades, bins=self.bins, known=known)
        former = None if start is None else former_fit(start, grades, rows)
        fit = self._estimate(rows, grades.items.offsets, self._begin_from(former, rows, grades, **given))
        again = partial(brief_method(self, len(grades)).fit, known=known, **given)
        return class_consensus(self, grades, rows, fit, again=again)

    def over_blocks(
        self, judged: Any, *, start: Consensus | None = None, known: Any | None = None, **given: Any
    ) -> BlockFit:
        """Return the passes of a fit to grades in parts; ``judged`` are the packed grades."""

        if self.per_query:
            raise ParameterError(
                f"{method_name(self)} with per_query takes each query by itself, so packed judgments gain nothing; "
                "leave per_query out, or fit a file for each query"
            )

        def solve(sums: Blocks) -> PartedFit:
            rows = parted_rows(sums, judged, self.bins, known)
            everything: Any = rows
            former = None if start is None else former_fit(start, judged, everything)
            begin = self._begin_from(former, everything, judged, **given)
            fit = self._estimate(everything, np.empty(0, np.int64), begin)
            sure = calibrate(everything, fit) if self.calibrated else Calibration()
            (draws,) = rows.total(_annotator_numbers, self.seed)
            # the probabilities of all levels are not kept of too many items
            read = partial(
                _read_items, rows.code, fit.without_items, self, sure, draws, bool(judged.n_items > MANY_ITEMS)
            )
            columns = [PartColumns(*part) for part in sums.read(read)]
            quality = _quality_in_parts(self, judged, sums, rows, fit, given) if rows.has_annotators else None
            return PartedFit(columns, fit.trace, quality, rows.scale, calibration_estimates(self, sure))

        return BlockFit(ClassPart, solve)

    def _estimate(self, rows: ClassRows, offsets: Counts, begin: Any) -> ClassFit:
        """The estimate of all grades: of each query by itself with ``per_query``, the votes where none is possible."""
        if rows.n_levels == 1 or not is_identified(rows, method_name(self)):
            return self._take_votes(rows)
        return self._fit_queries(rows, offsets, begin) if self.per_query else self._fit_rows(rows, begin)

    def _fit_queries(self, rows: ClassRows, offsets: Counts, begin: Any) -> ClassFit:
        """The fits of the queries, each by itself, as one."""
        fits, n_alone = [], 0
        for part in query_parts(rows, offsets):
            alone = self.votes_without_overlap and not part.rows.overlap
            n_alone += alone
            own = None if begin is None else begin.of(part.annotators)
            fits.append((part, self._take_votes(part.rows) if alone else self._fit_rows(part.rows, own)))
        if n_alone:
            warnings.warn(
                f"{method_name(self)}: in {n_alone} of {len(fits)} queries no item was graded by two annotators; their "
                f"grades are kept as they are: leave per_query out, have some items graded twice, or give "
                f"{option('known')}",
                DataWarning,
                stacklevel=3,
            )
        return join_fits(rows, fits, self._take_votes(rows))

    @abstractmethod
    def _begin_from(self, former: Former | None, rows: ClassRows, grades: Grades) -> Any:
        """What is known before the first pass, with a method ``of`` for some annotators; ``None`` where nothing is."""

    @abstractmethod
    def _fit_rows(self, rows: ClassRows, begin: Any) -> ClassFit:
        """The estimate of grades of which some item was graded twice."""

    @abstractmethod
    def _take_votes(self, rows: ClassRows) -> ClassFit:
        """The grades as they are, by annotators as the prior has them."""


def class_rows(grades: Grades, *, bins: int | None = None, known: Any | None = None) -> ClassRows:
    """Return grades as codes, with the level of each known item.

    Parameters
    ----------
    grades
        The grades; at least one.
    bins
        Cut the grades into this many equally wide levels.
    known
        Table of query, item and grade, or a :class:`~crowdrank.data.truth.Truth`: items whose level is known. An item
        that is not among the items, or a grade that is none of the levels, is refused by name.
    """
    codes, levels, values = grades.level_codes(bins)
    named = grades.n_annotators > 0
    rows = ClassRows(
        item=grades.item, annotator=grades.annotator if named else np.zeros(len(grades), np.int32), level=codes,
        weight=grades.weight, known=np.full(grades.n_items, -1, np.int32), n_annotators=max(grades.n_annotators, 1),
        levels=levels, values=values, scale=levels, used_levels=np.arange(len(levels), dtype=np.int32),
        nominal=grades.nominal, has_annotators=named, time=grades.time, items=grades.items,
    )  # fmt: skip
    if known is not None:
        table = KnownGrades.of(known, rows, grades.grade if bins else None)
        table.refuse_missing(table.items_in(grades.items) < 0)
        rows = replace(rows, known=table.levels_in(grades.items))
    if grades.declared is None and bins is None:
        return rows
    # of declared levels that nobody gave and no item is known to be of nothing can be learned
    used = np.bincount(rows.level, minlength=rows.n_levels) > 0
    used[rows.known[rows.known >= 0]] = True
    code = (np.cumsum(used) - 1).astype(np.int32)
    kept = np.flatnonzero(used).astype(np.int32)
    return replace(
        rows, level=code[rows.level], known=np.where(rows.known >= 0, code[rows.known], np.int32(-1)),
        levels=tuple(rows.scale[k] for k in kept), values=rows.values[kept], used_levels=kept,
    )  # fmt: skip


class KnownGrades(NamedTuple):
    """Items whose level is known: the user's table, the columns meant by query, item and grade, and level codes."""

    frame: pl.DataFrame
    columns: Mapping[str, str]
    level: Ints

    @classmethod
    def of(cls, known: Any, rows: Any, cut: Floats | None) -> KnownGrades:
        """Return known items on the levels of ``rows``; ``cut`` holds the grades that bins were cut from."""
        frame = known.frame() if isinstance(known, Truth) else to_frame(known)
        columns = understand_items(frame.columns, also=("grade",))
        if "grade" not in columns:
            raise JudgmentError(
                f"{option('known')} has no grade column (its columns: {quote_names(frame.columns)}); "
                "give a table of query, item and grade"
            )
        level = _level_of(frame[columns["grade"]], rows, cut)
        scale = ", ".join(str(level) for level in rows.levels[:12])
        remedy = "correct it, or declare it with levels="
        _refuse(frame, columns, level < 0, f"has a known grade outside the scale {scale}", remedy)
        ids = [name for name in ("query", "item") if name in columns]
        named = pl.DataFrame({name: frame[columns[name]].cast(pl.String) for name in ids})
        several = pl.col("level").n_unique().over(named.columns) > 1
        twice = named.with_columns(level=pl.Series(level)).select(several).to_series().to_numpy()
        _refuse(frame, columns, twice, "has two different known grades", "keep one of them")
        return cls(frame, columns, level)

    def expect_queries(self, n_queries: int) -> None:
        """Refuse a table that names no queries where there are several."""
        if "query" not in self.columns and n_queries != 1:
            raise JudgmentError(f"a table without a query column does not fit {n_queries} queries; add the column")

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


def class_consensus(
    method: Any, grades: Grades, rows: ClassRows, fit: ClassFit, *, again: Callable[..., Consensus]
) -> Consensus:
    """Return the consensus of a fit: expected grade as score, most probable level as grade, quality of annotators.

    An item without grades takes the mean probabilities of its query's graded items, or the class prior where there are
    none, and no grade. Of equally probable levels one is drawn with the seed, by who gave the item which level, so that
    no name decides and ties do not all go to one level. For classes without an order the score is the probability of
    the chosen one, 0 for an item without grades. Probabilities are calibrated where the method says so. ``again`` fits
    a part of the grades, from a ``start=``, for the quality.
    """
    sure = calibrate(rows, fit) if method.calibrated else Calibration()
    scores, grade, probabilities = item_columns(
        method, grades, rows, fit, sure, lambda: structure_numbers(rows, method.seed)[0]
    )
    consensus = Consensus.of(
        method, grades, scores, trace=fit.trace, probabilities=probabilities, levels=rows.scale, grade=grade,
        estimates=calibration_estimates(method, sure),
    )  # fmt: skip
    if not rows.has_annotators:
        return consensus
    source = _quality(method, consensus, grades, rows, fit, again)
    if not fit.rereads or (rows.known >= 0).any() or rows.weight is not None or method.bins:
        return replace(consensus, quality_source=source)
    nothing: Ints = np.empty(0, np.int32)
    learned = replace(rows, item=nothing, annotator=nothing, level=nothing, known=nothing, time=None)
    reread = partial(_read_again, method, grades.annotators, learned, fit.without_items, sure)
    return replace(consensus, quality_source=source, reread=reread)


def _read_again(
    method: Any, annotators: Index, learned: ClassRows, fit: ClassFit, sure: Calibration, grades: Grades, free: Bools
) -> tuple[Consensus, Bools]:
    """Levels of items by all their grades, with the annotators, shares of levels and doubt of a fit: an E-step alone.

    Grades by annotators of whom the fit knows nothing do not count. An item with a level that it does not know, or
    with no grade that counts, has no grade and is not read.
    """
    expect(grades, method)
    place = {str(level): code for code, level in enumerate(learned.levels)}
    level = np.array([place.get(str(level), -1) for level in grades.levels], np.int32)[grades.level_place]
    annotator = annotators.codes(grades.annotators.ids)[grades.annotator]
    strange = np.zeros(grades.n_items, bool)
    strange[grades.item[level < 0]] = True
    use = (annotator >= 0) & ~strange[grades.item]
    rows = replace(
        learned, item=grades.item[use], annotator=annotator[use], level=level[use],
        known=np.full(grades.n_items, -1, np.int32),
    )  # fmt: skip
    now = replace(fit, probabilities=rows.read(fit.reading))  # type: ignore[arg-type]
    scores, chosen, probabilities = item_columns(
        method, grades, rows, now, sure, lambda: structure_numbers(rows, method.seed)[0]
    )
    consensus = Consensus.of(method, grades, scores, probabilities=probabilities, levels=rows.scale, grade=chosen)
    return consensus, free & rows.is_graded


def item_columns(
    method: Any, grades: Grades, rows: ClassRows, fit: ClassFit, sure: Calibration, numbers: Callable[[], Numbers]
) -> tuple[Floats, Ints, Floats]:
    """Return scores, chosen levels of the whole scale and probabilities over it of the items.

    ``numbers`` gives the draw of each item among equally probable levels.
    """
    judged = rows.is_graded | (rows.known >= 0)
    # chosen by the model's own probabilities: tempering keeps their order but for rounding
    chosen = _most_probable(_fill_unjudged(fit, judged, grades), numbers)
    own = replace(fit, probabilities=temper_probabilities(rows, fit, sure)) if method.calibrated else fit
    probabilities = _fill_unjudged(own, judged, grades)
    if rows.nominal:
        scores = np.where(judged, probabilities[np.arange(len(chosen)), chosen], 0.0)
    else:
        # grades that are kept as they are stay the scores, whatever their confidence
        expected = probabilities
        if fit.as_given is not None:
            expected = np.where((fit.kept & judged)[:, None], fit.probabilities, probabilities)
        # level by level: the last digit of a product of arrays depends on where they lie in memory
        scores = np.zeros(len(probabilities))
        for column, value in zip(expected.T, rows.values.tolist(), strict=True):
            scores += column * value
    grade = np.where(judged, rows.used_levels[chosen], -1).astype(np.int32)
    return scores, grade, on_scale(probabilities, rows, 1)


def calibration_estimates(method: Any, sure: Calibration) -> dict[str, Any]:
    """Return how the probabilities were tempered, for the estimates of a consensus."""
    return {"calibration": sure._asdict()} if method.calibrated else {}


def on_scale(values: Floats, rows: ClassRows, *axes: int) -> Floats:
    """Return values over the levels in use as values over the whole scale, 0 for the other levels."""
    for axis in axes if rows.n_levels < len(rows.scale) else ():
        wide = np.zeros((*values.shape[:axis], len(rows.scale), *values.shape[axis + 1 :]))
        wide[(slice(None),) * axis + (rows.used_levels,)] = values
        values = wide
    return values


def _fill_unjudged(fit: ClassFit, judged: Bools, grades: Grades) -> Floats:
    """Probabilities with those of unjudged items taken from their query."""
    unjudged = np.flatnonzero(~judged)
    if not len(unjudged):
        return fit.probabilities
    probabilities = fit.probabilities.copy()
    query, n_queries = grades.items.query, grades.n_queries
    number = np.bincount(query[judged], minlength=n_queries)
    sums = np.stack([np.bincount(query[judged], column[judged], n_queries) for column in probabilities.T], axis=1)
    of_query = np.where(number[:, None] > 0, sums / np.maximum(number, 1)[:, None], fit.prior)
    probabilities[unjudged] = of_query[query[unjudged]]
    return probabilities


def _most_probable(probabilities: Floats, numbers: Callable[[], Numbers]) -> Counts:
    """Level of the largest probability of each item; of several equal ones that which the item's draw falls on."""
    from ...kernels.confusion import most_probable

    chosen, n_tied = most_probable(probabilities, _MAX_TIED_DIFFERENCE)
    tied = np.flatnonzero(n_tied > 1)
    if len(tied):
        wanted = numbers()[tied] % n_tied[tied].astype(np.uint64)
        top = probabilities[tied].max(axis=1, keepdims=True) - _MAX_TIED_DIFFERENCE
        number = np.cumsum(probabilities[tied] >= top, axis=1)
        chosen[tied] = (number <= wanted[:, None]).sum(axis=1)
    return chosen


def _quality(
    method: Any, consensus: Consensus, grades: Grades, rows: ClassRows, fit: ClassFit, again: Callable[..., Consensus]
) -> LearnedQuality:
    """Held-out quality, with the accuracy, bias and confusion of a fit and the method's own parameters."""
    parameters = annotator_parameters(rows, fit)
    learned = Quality(grades.annotators, parameters["accuracy"], np.empty(0), parameters)
    quality = quality_of_refits(method, grades, replace(consensus, quality_source=learned), again, parameters)
    return replace(quality, learned=partial(learned_quality, rows.nominal, fit), known=rows.known >= 0)


def quality_of_refits(
    method: Any, grades: Grades, start: Consensus, again: Callable[..., Consensus], parameters: dict[str, Any]
) -> LearnedQuality:
    """Return the held-out quality by fits to parts of grades, each from the start by ``again``."""
    refit = partial(again, start=start)
    n_folds = MAX_FOLDS if len(grades) <= MANY_GRADES else _FEW_FOLDS
    # a part without a level still knows of it
    return LearnedQuality(
        with_levels(grades), partial(_level_scores, refit), parameters, n_folds=n_folds, precision=method.precision,
        fit=refit, levelled=True,
    )  # fmt: skip


def annotator_parameters(rows: Any, fit: ClassFit) -> dict[str, Any]:
    """Return accuracy, bias and confusion of the annotators, with what the method knows besides."""
    parameters: dict[str, Any] = {"accuracy": np.einsum("ajj,j->a", fit.confusion, fit.prior)}
    if not rows.nominal:
        error = rows.values[None, :] - rows.values[:, None]
        parameters["bias"] = np.einsum("ajl,jl,j->a", fit.confusion, error, fit.prior)
    return parameters | {**fit.parameters, "confusion": on_scale(fit.confusion, rows, 1, 2)}


def learned_quality(nominal: bool, fit: ClassFit) -> Floats:
    """Return the quality by the confusion matrices."""
    from ...kernels.confusion import pair_quality

    return pair_quality(fit.confusion, fit.prior, nominal=nominal)


def brief_method(method: Any, n_grades: int) -> Any:
    """Return the method for fits to a part of the grades: without calibration, and of many grades in few passes."""
    method = replace(method, calibrated=False)
    if n_grades <= MANY_GRADES:
        return method
    return replace(method, tol=max(method.tol, _REFIT_TOL), max_iter=min(method.max_iter, _MAX_REFIT_PASSES))


def _level_scores(fit: Callable[[Grades], Consensus], grades: Grades) -> Floats:
    """The chosen level of each item as a number: of two items of one level none is better."""
    grade = fit(grades).grade
    assert grade is not None
    return np.maximum(grade, 0).astype(np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class PartScale(CodedScale):
    """How grades become codes in every part.

    ``all_values`` are the numbers of the whole scale, ``cut`` is the lowest and highest grade where it is one of bins;
    ``known`` are items whose level is known.
    """

    all_values: Floats
    cut: tuple[float, float] | None
    known_grades: KnownGrades | None = None


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
        from ...kernels.segments import level_places

        grades, all_levels = self.grades, np.full(len(code.scale), -1, np.int32)
        all_levels[code.used_levels] = np.arange(code.n_levels, dtype=np.int32)
        if code.cut is None:
            place = grades.level_place if grades.declared else level_places(code.all_values, grades.grade)
        else:
            place = bin_codes(grades.grade, *code.cut, len(code.scale))
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


def _quality_in_parts(
    method: Any, judged: Any, sums: Blocks, rows: PartedRows, fit: ClassFit, given: dict[str, Any]
) -> LearnedQuality:
    """Quality of the annotators, held out on a sample of the queries where grades are many."""
    share = share_of_rows(judged.rows)
    samples = [part for (part,) in sums.read(partial(_sample_grades, rows.annotator_weights, share))]
    sample: Grades = stack_judgments(align_judgments([part for part in samples if len(part)] or samples[:1]))
    parameters = annotator_parameters(rows, fit)
    learned = Quality(judged.annotators, parameters["accuracy"], np.empty(0), parameters)
    everything: Any = rows
    shares = on_scale(np.broadcast_to(fit.prior, (sample.n_items, rows.n_levels)), everything, 1)
    start = Consensus(
        items=sample.items, scores=np.zeros(sample.n_items), method=method_label(method), levels=rows.scale,
        probabilities=shares, quality_source=learned,
    )  # fmt: skip
    known, table = None, rows.code.known_grades
    if table is not None:
        known = table.frame.filter(table.items_in(sample.items) >= 0)
    again = partial(brief_method(method, len(sample)).fit, known=known, **given)
    quality = quality_of_refits(method, sample, start, again, parameters)
    return replace(quality, learned=partial(learned_quality, rows.nominal, fit), n_judgments=rows.annotator_weights)


def parted_rows(sums: Blocks, judged: Any, bins: int | None, known: Any | None = None) -> PartedRows:
    """Return the stand-in for all rows, after the passes that find the levels in use."""
    cut = None
    if bins is not None:
        ranges = [(low, high) for low, high, n in sums.each(_range) if n]
        cut = min(low for low, _ in ranges), max(high for _, high in ranges)
        values = bin_middles(*cut, bins)
        scale = tuple(values.tolist())
    else:
        scale = tuple(judged.levels)
        check_levels(scale, judged.declared)
        values = Grades.values_of_levels(scale, nominal=bool(judged.nominal))
    code = PartScale(
        scale=scale, levels=scale, values=values, all_values=values, used_levels=np.arange(len(scale), dtype=np.int32),
        cut=cut, n_annotators=max(len(judged.annotators), 1), nominal=bool(judged.nominal),
        has_annotators=len(judged.annotators) > 0,
    )  # fmt: skip
    if known is not None:
        table = KnownGrades.of(known, code, None if cut is None else np.array(cut))
        table.expect_queries(judged.n_queries)
        code = replace(code, known_grades=table)
    weights, given, n_graded, n_overlap, n_predictable, here = sums.total(partial(_survey, code))
    in_use = weights > 0
    if code.known_grades is not None:
        code.known_grades.refuse_missing(here == 0)
        in_use[code.known_grades.level] = True
    used = np.flatnonzero(in_use).astype(np.int32)
    code = replace(code, used_levels=used, levels=tuple(scale[k] for k in used), values=values[used])
    return PartedRows(
        sums=sums, code=code, level_weights=weights[in_use], annotator_weights=given, n_graded=n_graded,
        overlap=n_overlap > 0, n_predictable=int(n_predictable), **_scale_of(code),
    )  # fmt: skip


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
        return self.sums.total(partial(_sums_of_probabilities, self.code, fit.reading))[0] / self.n_graded

    def read(self, reading: Reading) -> Floats:
        """Return no probabilities: they are read out of the parts at the end."""
        return np.empty((0, self.n_levels))

    @cached_property
    def sample(self) -> ClassRows:
        """The rows that the calibration looks at."""
        return self._joined_sample(None)

    def first_sample(self) -> ClassRows | None:
        """Return the rows by which a fit begins, ``None`` where these are too many of all."""
        enough = self.n_predictable * self.n_levels >= 4 * coded_grades.START_CELLS
        return self._joined_sample(coded_grades.START_CELLS) if enough else None

    def _joined_sample(self, n_cells: int | None) -> ClassRows:
        """A sample of so many cells, of all parts as one."""
        found = self.sums.each(partial(_sample_rows, self.code, self.n_predictable, n_cells))
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
        samples = self.sums.each(partial(_sample_probabilities, self.code, fit.reading, self.n_predictable))
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


def _annotator_numbers(rows: ClassRows, seed: int) -> Statistics:
    """What one part adds to the numbers of the annotators."""
    items = item_numbers(rows, np.zeros(rows.n_annotators, np.uint64), seed, 0)
    return (annotator_numbers(rows, items, seed, 0),)


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


def _sums_of_probabilities(
    code: PartScale, reading: Reading | None, part: ClassPart, state: Any
) -> tuple[Statistics, Any]:
    """Sums of the probabilities of each level over the graded items of one part."""
    assert reading is not None
    rows = part.rows(code)
    return (reading.probabilities(rows, state)[rows.is_graded].sum(axis=0),), None


def _sample_rows(
    code: PartScale, n_predictable: int, n_cells: int | None, part: ClassPart, state: Any
) -> tuple[Statistics, Any]:
    """Rows of the items of one part that are in a sample of so many cells, and the number of these items."""
    rows = part.rows(code)
    rows = rows.of_items(rows.sampled_items(n_predictable, n_cells))
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    time = np.full(len(rows), np.nan) if rows.time is None else rows.time
    return (rows.item, rows.annotator, rows.level, weight, time, rows.n_items), None


def _sample_probabilities(
    code: PartScale, reading: Reading | None, n_predictable: int, part: ClassPart, state: Any
) -> tuple[Statistics, Any]:
    """Probabilities of the items of one part that the calibration looks at."""
    assert reading is not None
    rows = part.rows(code)
    return (reading.probabilities(rows, state)[rows.sampled_items(n_predictable)],), None


def _read_items(
    code: PartScale, fit: ClassFit, method: Any, sure: Calibration, draws: Numbers, many: bool, part: ClassPart,
    state: Any,
) -> tuple[Statistics, Any]:  # fmt: skip
    """Scores, levels and probabilities of the items of one part."""
    rows = part.rows(code)
    assert fit.reading is not None
    kept = None if fit.as_given is None else np.broadcast_to(fit.as_given[0], rows.n_items)
    own = replace(fit, probabilities=fit.reading.probabilities(rows, state), as_given=kept)
    scores, grade, probabilities = item_columns(
        method, part.grades, rows, own, sure, lambda: item_numbers(rows, draws, method.seed, 1)
    )
    scores = settle_ties(method, part.grades, scores)
    if not many:
        return (scores, None, grade, probabilities, None), None
    return (scores, None, grade, None, probabilities[np.arange(len(scores)), np.maximum(grade, 0)]), None


def _sample_grades(n_judgments: Floats, share: float, part: ClassPart, state: Any) -> tuple[Statistics, Any]:
    """The grades of some queries of one part."""
    return (sample_queries(part.grades, n_judgments, share),), None
