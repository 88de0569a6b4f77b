"""The frame of every class method: grades and known items in, ``fit``, calibrated consensus and quality out."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...data.consensus import Consensus, Quality, Trace, settle_ties
from ...data.index import Index
from ...data.judgments import Grades, align_judgments, expect, stack_judgments, with_levels
from ...data.parted import MANY_ITEMS, PartColumns, PartedFit, read_sample, row_numbers, share_of_rows
from ...errors import DataWarning, ParameterError
from ...protocols import BlockFit, Blocks, Bools, Counts, Floats, Ints, Statistics, method_name
from ...quality import MAX_FOLDS, LearnedQuality
from ...wording import method_label, option
from .coded_grades import ClassFit, ClassPart, ClassRows, Former, MatrixReading, PartedRows, PartScale, vote_anchor

_MAX_TIED_DIFFERENCE = 1e-8
"""Probabilities that differ by no more are equal: fits end within this of each other, whatever the order of sums."""

# threshold (sample): grades from which annotators are left out in five parts, and fits to a part stop earlier
MANY_GRADES = 20_000
_FEW_FOLDS = 5
"""From this many grades on, annotators are left out in five parts, and fits to a part stop earlier."""

_REFIT_TOL, _MAX_REFIT_PASSES = 1e-3, 20

_MIN_PROBABILITY = 1e-300
_LOG_MODEL_PRIOR = np.log([4.0, 2.0, 1.0])
"""Prior weights of no information, of one skill per annotator, and of a matrix each: half for each step up."""

_MOST_OF_MATRICES = 0.5
"""Held-out grades show which model predicts grades, not which is right about levels, where annotators share mistakes:
the matrices get at most half, and the skills keep the rest. Over simulated and public crowds the mean of both is more
accurate and its log-loss lower than that of either."""

_N_FOLDS, _MOST_ALONE = 5, 10
"""Annotators are held out one by one where there are no more than ten, so that no name decides; otherwise in fifths."""

_TYPICAL_CORRELATION = 0.2
"""Mean of the exponential prior of both correlations, about that found on eight public sets (0.05 to 0.4); it matters
where items have two or three grades, which cannot show it."""

_CORRELATIONS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8])
_DRAWS = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6])
"""The values that are tried of the two: by which grades say less of a level than they seem to, and by which an item
draws the same answers whatever its level; a grid, so that no last digit of a sum decides."""

_TEMPERINGS = (0.0, *(0.002 * 1.25**power for power in range(28)), 1.0)
"""Of a model too plain for its crowd all grades of an item may count as one."""

_LOG_PRIOR = np.add.outer(
    *(np.log(np.gradient(values)) - values / _TYPICAL_CORRELATION for values in (_CORRELATIONS, _DRAWS))
)
_LOG_PRIOR -= np.log(np.exp(_LOG_PRIOR).sum())

_LEAST_WEIGHT = 1e-3
_SKILL_WEIGHT, _MATRIX_WEIGHT, _MOST_SKILL = 4.0, 5.0, 0.9999
"""Grades that the mean skill is worth in each annotator's, that the crowd's row is worth in each annotator's matrix
(likelihood puts it between 3 and 20 on public sets), and the largest skill."""

_TOL, _MOST_PASSES = 3e-3, 30
"""Of the fits by which others are judged."""

_STRIDE = 4
_N_RIGHT_BEFORE, _N_WRONG_BEFORE = 2.0, 1.0
"""Grades that anybody's accuracy begins with, which is all that is known where no item was graded twice."""

_MOST_SHARED = 0.999
"""Most that is given away to all levels alike, so that the chosen one stays the most probable."""

_LEAST_GAIN = 2.0
"""Log-likelihood of held-out grades that a better fit gains at least."""

_ROW_WEIGHT = 20.0
"""Grades that the crowd's row is worth in each annotator's, where fits are compared."""

_N_STRUCTURE_ROUNDS = 2
"""Rounds in which items and annotators are known by each other: on public sets a third splits no group of items."""

Numbers: TypeAlias = NDArray[np.uint64]


class ClassMethod(ABC):
    """A method that finds the level of each item and how each annotator errs; a method adds its own steps.

    The steps are ``_fit_rows`` (the estimate of some grades) and ``_take_votes`` (the grades as they are, where nothing
    can be learned).
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    nominal: ClassVar[bool] = True
    in_grades: ClassVar[bool] = True
    precision: ClassVar[float] = 1e-11
    votes_without_overlap: ClassVar[bool] = True
    """With ``per_query``: whether a query in which no item was graded twice keeps its grades as they are."""

    starts_from: ClassVar[tuple[str, ...]] = ()
    """Parameters of annotators in a former consensus that a fit goes on from."""

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
        rows = ClassRows.of(grades, bins=self.bins, known=known)
        former = None if start is None else Former.of_consensus(start, grades, rows)
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
            rows = PartedRows.of(sums, judged, self.bins, known)
            everything: Any = rows
            former = None if start is None else Former.of_consensus(start, judged, everything)
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
        """The fits of the queries, each by itself, as one: annotators averaged by the grades that each fit had."""
        order, votes, n_alone = np.argsort(rows.item, kind="stable"), self._take_votes(rows), 0
        bounds = np.searchsorted(rows.item[order], offsets)
        probabilities, kept = votes.probabilities.copy(), np.zeros(rows.n_items, bool)
        total, prior, traces = np.zeros(rows.n_annotators), np.zeros(rows.n_levels), list[Trace]()
        sums = {name: np.zeros(np.shape(value)) for name, value in votes.per_annotator.items()}
        for query in np.flatnonzero(np.diff(bounds)):
            # items and annotators numbered anew
            chosen = order[bounds[query] : bounds[query + 1]]
            items = slice(int(offsets[query]), int(offsets[query + 1]))
            annotators, annotator = np.unique(rows.annotator[chosen], return_inverse=True)
            part = rows.of_rows(chosen)
            part = replace(
                part, item=part.item - np.int32(items.start), annotator=annotator.astype(np.int32),
                known=rows.known[items], n_annotators=len(annotators),
            )  # fmt: skip
            alone = self.votes_without_overlap and not part.overlap
            n_alone += alone
            own = None if begin is None else begin.of(annotators)
            fit = self._take_votes(part) if alone else self._fit_rows(part, own)
            traces.append(fit.trace)
            probabilities[items], kept[items] = fit.probabilities, fit.kept
            prior += fit.prior * part.is_graded.sum()
            given = np.bincount(part.annotator, part.weight, part.n_annotators)
            total[annotators] += given
            for name, value in fit.per_annotator.items():
                sums[name][annotators] += value * given.reshape(-1, *[1] * (value.ndim - 1))
        if n_alone:
            warnings.warn(
                f"{method_name(self)}: in {n_alone} of {len(traces)} queries no item was graded by two annotators; "
                "their grades are kept as they are: leave per_query out, have some items graded twice, or give "
                f"{option('known')}",
                DataWarning,
                stacklevel=3,
            )
        idle = total == 0
        for name, value in votes.per_annotator.items():
            sums[name][idle] = value[idle]
            sums[name][~idle] /= total[~idle].reshape(-1, *[1] * (value.ndim - 1))
        shares, confusion = prior / max(prior.sum(), 1e-300), sums.pop("confusion")
        return ClassFit(probabilities, shares, confusion, _longest_trace(traces), sums, kept, by_query=True)

    def _begin_from(self, former: Former | None, rows: ClassRows, grades: Grades) -> Any:
        """What is known before the first pass, with a method ``of`` for some annotators; ``None`` where nothing is."""
        lacking = [] if former is None or not rows.has_annotators else former.lacks(self.starts_from)
        if former is not None and lacking:
            raise ParameterError(
                f"start= is a consensus of {former.method}, which knows no {lacking[0]} of the annotators; "
                "start from a consensus of the same method, or leave start= out"
            )
        return former

    @abstractmethod
    def _fit_rows(self, rows: ClassRows, begin: Any) -> ClassFit:
        """The estimate of grades of which some item was graded twice."""

    @abstractmethod
    def _take_votes(self, rows: ClassRows) -> ClassFit:
        """The grades as they are, by annotators as the prior has them."""


def _longest_trace(traces: Sequence[Trace]) -> Trace:
    """The longest of several traces, converged if all are; each log-likelihood stays where it ended."""
    likelihoods = [trace.log_likelihood for trace in traces if trace.log_likelihood]
    length = max(map(len, likelihoods), default=0)
    padded = [np.pad(values, (0, length - len(values)), mode="edge") for values in likelihoods]
    summed = tuple(np.sum(padded, axis=0).tolist()) if padded else None
    n_iter, change = max(trace.n_iter for trace in traces), max(trace.change for trace in traces)
    return Trace(n_iter, all(trace.converged for trace in traces), change, summed)


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
    scores, grade, probabilities = item_columns(method, grades, rows, fit, sure)
    consensus = Consensus.of(
        method, grades, scores, trace=fit.trace, probabilities=probabilities, levels=rows.scale, grade=grade,
        estimates=calibration_estimates(method, sure),
    )  # fmt: skip
    if not rows.has_annotators:
        return consensus
    source = replace(quality_of_refits(method, grades, consensus, again, rows, fit), known=rows.known >= 0)
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
    scores, chosen, probabilities = item_columns(method, grades, rows, now, sure)
    consensus = Consensus.of(method, grades, scores, probabilities=probabilities, levels=rows.scale, grade=chosen)
    return consensus, free & rows.is_graded


def item_columns(
    method: Any, grades: Grades, rows: ClassRows, fit: ClassFit, sure: Calibration, draws: Numbers | None = None
) -> tuple[Floats, Ints, Floats]:
    """Return scores, chosen levels of the whole scale and probabilities over it of the items.

    ``draws`` are the numbers of the annotators where the grades are a part of all: items draw among equally probable
    levels by them.
    """
    from ...kernels.confusion import most_probable

    judged = rows.is_graded | (rows.known >= 0)
    # chosen by the model's own probabilities: tempering keeps their order but for rounding
    probabilities = _fill_unjudged(fit, judged, grades)
    chosen, n_tied = most_probable(probabilities, _MAX_TIED_DIFFERENCE)
    tied = np.flatnonzero(n_tied > 1)
    if len(tied):
        seed = method.seed
        numbers = structure_numbers(rows, seed)[0] if draws is None else item_numbers(rows, draws, seed, 1)
        wanted = numbers[tied] % n_tied[tied].astype(np.uint64)
        top = probabilities[tied].max(axis=1, keepdims=True) - _MAX_TIED_DIFFERENCE
        chosen[tied] = (np.cumsum(probabilities[tied] >= top, axis=1) <= wanted[:, None]).sum(axis=1)
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


def quality_of_refits(
    method: Any, grades: Grades, start: Consensus, again: Callable[..., Consensus], rows: Any, fit: ClassFit
) -> LearnedQuality:
    """Return the held-out quality by fits to parts of grades, each by ``again`` from what the fit says of annotators.

    Accuracy, bias and confusion are those of the fit, with the method's own parameters.
    """
    from ...kernels.confusion import pair_quality

    parameters: dict[str, Any] = {"accuracy": np.einsum("ajj,j->a", fit.confusion, fit.prior)}
    if not rows.nominal:
        error = rows.values[None, :] - rows.values[:, None]
        parameters["bias"] = np.einsum("ajl,jl,j->a", fit.confusion, error, fit.prior)
    parameters |= {**fit.parameters, "confusion": on_scale(fit.confusion, rows, 1, 2)}
    learned = Quality(grades.annotators, parameters["accuracy"], np.empty(0), parameters)
    refit = partial(again, start=replace(start, quality_source=learned))
    n_folds = MAX_FOLDS if len(grades) <= MANY_GRADES else _FEW_FOLDS
    # a part without a level still knows of it
    return LearnedQuality(
        with_levels(grades), partial(_level_scores, refit), parameters, n_folds=n_folds, precision=method.precision,
        fit=refit, levelled=True, learned=partial(pair_quality, fit.confusion, fit.prior, nominal=rows.nominal),
    )  # fmt: skip


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


def _quality_in_parts(
    method: Any, judged: Any, sums: Blocks, rows: PartedRows, fit: ClassFit, given: dict[str, Any]
) -> LearnedQuality:
    """Quality of the annotators, held out on a sample of the queries where grades are many."""
    share = share_of_rows(judged.rows)
    read = partial(read_sample, attrgetter("grades"), rows.annotator_weights, share)
    samples = [part for (part,) in sums.read(read)]
    sample: Grades = stack_judgments(align_judgments([part for part in samples if len(part)] or samples[:1]))
    everything: Any = rows
    start = Consensus(
        items=sample.items, scores=np.zeros(sample.n_items), method=method_label(method), levels=rows.scale,
        probabilities=on_scale(np.broadcast_to(fit.prior, (sample.n_items, rows.n_levels)), everything, 1),
    )  # fmt: skip
    known, table = None, rows.code.known_grades
    if table is not None:
        known = table.frame.filter(table.items_in(sample.items) >= 0)
    again = partial(brief_method(method, len(sample)).fit, known=known, **given)
    quality = quality_of_refits(method, sample, start, again, rows, fit)
    return replace(quality, n_judgments=rows.annotator_weights)


def _annotator_numbers(rows: ClassRows, seed: int) -> Statistics:
    """What one part adds to the numbers of the annotators."""
    items = item_numbers(rows, np.zeros(rows.n_annotators, np.uint64), seed, 0)
    return (annotator_numbers(rows, items, seed, 0),)


def _read_items(
    code: PartScale, fit: ClassFit, method: Any, sure: Calibration, draws: Numbers, many: bool, part: ClassPart,
    state: Any,
) -> tuple[Statistics, Any]:  # fmt: skip
    """Scores, levels and probabilities of the items of one part."""
    rows = part.rows(code)
    assert fit.reading is not None
    kept = None if fit.as_given is None else np.broadcast_to(fit.as_given[0], rows.n_items)
    own = replace(fit, probabilities=fit.reading.probabilities(rows, state), as_given=kept)
    scores, grade, probabilities = item_columns(method, part.grades, rows, own, sure, draws)
    scores = settle_ties(method, part.grades, scores)
    if not many:
        return (scores, None, grade, probabilities, None), None
    return (scores, None, grade, None, probabilities[np.arange(len(scores)), np.maximum(grade, 0)]), None


class Calibration(NamedTuple):
    """How the probabilities of a model are tempered.

    ``correlation`` is that by which the grades of one item say less of its level than independent ones, so that
    :math:`n` annotators count as :math:`n / (1 + (n - 1) r)`: its posterior mean, ``likeliest`` its posterior mode;
    ``shared_error`` the expected share of items on which even many such annotators would settle on a wrong level, by
    this correlation or by how far items draw the same answers whatever their level, whichever says more;
    ``no_information`` the probability that the grades say nothing of the items. ``tempering`` and ``given_away`` are
    what the model's own probabilities are tempered by: a correlation, and the share of each item that goes to all
    levels alike.
    """

    correlation: float = 0.0
    shared_error: float = 0.0
    likeliest: float = 0.0
    no_information: float = 0.0
    tempering: float = 0.0
    given_away: float = 0.0


def calibrate(rows: ClassRows, fit: ClassFit) -> Calibration:
    """Return how sure a fit may be: its probabilities are tempered to come closest to those of the judging crowd.

    See :func:`judge_crowd`, which predicts the grades of annotators who are held out. Accuracies that were given are
    not doubted: only the likeliest correlation counts. Where no item was graded twice, annotators are taken to be right
    in two of three grades.
    """
    if fit.as_given is not None and fit.as_given.all():
        wrong = _N_WRONG_BEFORE / (_N_RIGHT_BEFORE + _N_WRONG_BEFORE)
        return Calibration(given_away=_away_of(wrong, rows.n_levels) if rows.n_levels > 1 else 0.0)
    sample, own = (rows.by_query if fit.by_query else rows).sample, rows.sample_probabilities(fit)
    if not sample.n_items:
        return Calibration()
    wanted, calibration = judge_crowd(sample)
    if fit.is_given:
        likeliest = calibration.likeliest
        return calibration._replace(correlation=likeliest, tempering=likeliest, given_away=0.0)
    return _nearest_tempering(own, _n_voices(sample), wanted, calibration)


def _away_of(wrong: float, n_levels: int) -> float:
    """The share given away to all levels alike by which a sure level is wrong so often."""
    return min(wrong * n_levels / max(n_levels - 1, 1), _MOST_SHARED)


def temper_probabilities(rows: ClassRows, fit: ClassFit, calibration: Calibration) -> Floats:
    """Return the probabilities of a fit as calibrated, (n_items, n_levels); known items stay."""
    from ...kernels.confusion import flatten

    probabilities = flatten(fit.probabilities, _n_voices(rows), calibration.tempering)
    probabilities *= 1.0 - calibration.given_away
    probabilities += calibration.given_away / rows.n_levels
    rest = np.flatnonzero(~rows.is_graded | (rows.known >= 0))
    probabilities[rest] = fit.probabilities[rest]
    return probabilities


def _nearest_tempering(own: Floats, n_voices: Floats, wanted: Floats, calibration: Calibration) -> Calibration:
    """The tempering by which the own probabilities of a fit come closest to those wanted, by expected log-loss."""
    from ...kernels.confusion import flatten, nearest_away

    @cache
    def loss_and_share(number: int) -> tuple[float, float]:
        loss, away = nearest_away(flatten(own, n_voices, _TEMPERINGS[number]), wanted, calibration.given_away)
        # the last digits depend on the order of the sums
        return round(loss, 7), away

    # the losses fall and then rise: strides find where
    best = min(range(0, len(_TEMPERINGS), _STRIDE), key=loss_and_share)
    near = range(max(best - _STRIDE + 1, 0), min(best + _STRIDE, len(_TEMPERINGS)))
    best = min(near, key=loss_and_share)
    return calibration._replace(tempering=_TEMPERINGS[best], given_away=loss_and_share(best)[1])


def predicts_better(sample: ClassRows, better: Floats, other: Floats, *, n_errors: float = 0.0) -> bool:
    """Return whether probabilities predict grades from others better than others do, by so many standard errors.

    Both are those of the items of a sample, (n_items, n_levels), and items are independent.
    """
    gain = _losses_by_item(sample, other) - _losses_by_item(sample, better)
    # where all items are alike nothing shows what chance is
    least = max(n_errors * float(np.sqrt(((gain - gain.mean()) ** 2).sum())), _LEAST_GAIN)
    return round(float(gain.sum()), 7) > least


def held_out_loss(sample: ClassRows, own: Floats) -> float:
    """Return the log-loss of grades that are each predicted from those of the others by the items' probabilities."""
    # the last digits depend on the order of the sums
    return round(float(_losses_by_item(sample, own).sum()), 7)


def _losses_by_item(sample: ClassRows, own: Floats) -> Floats:
    """Log-loss of the grades of each sampled item, by matrices counted from the probabilities, without the item.

    It compares fits with equally many parameters: what a fit learned from the grades themselves stays in it.
    """
    if not sample.n_items:
        return np.zeros(1)
    first, item, annotator, level = _distinct_grades(sample)
    packed, level = sample.packed_rows, level.astype(np.int64)
    weight = np.add.reduceat(packed.weight if packed.weight.size else np.ones(len(packed.code)), first)
    items = np.flatnonzero(np.diff(item, prepend=-1) != 0)
    voices = np.flatnonzero((np.diff(item, prepend=-1) != 0) | (np.diff(annotator, prepend=-1) != 0))

    def sums(values: Floats, starts: Counts) -> Floats:
        """For each grade the sum of values over its stretch, that of its item or of its annotator there."""
        return np.repeat(np.add.reduceat(values, starts, axis=0), np.diff(np.append(starts, len(values))), axis=0)

    counts = sample.counts_of(own)
    mean = counts.sum(axis=0) + 1.0
    added = _ROW_WEIGHT * mean / mean.sum(axis=1, keepdims=True)
    probabilities = own[item]
    total = sums(weight, voices) if sample.has_annotators else np.minimum(weight, 1.0)
    taken = weight if sample.has_annotators else total
    left = np.maximum(counts[annotator, :, level] - taken[:, None] * probabilities, 0.0) + added[:, level].T
    rest = counts.sum(axis=2)[annotator] - total[:, None] * probabilities + _ROW_WEIGHT
    chance = left / np.maximum(rest, left)
    logs = np.log(chance)
    voice = sums(weight[:, None] * logs, voices) if sample.has_annotators else logs
    others = np.log(own[sample.is_graded].sum(axis=0) + 1.0) + sums(weight[:, None] * logs, items) - voice
    shares = np.exp(others - others.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    predicted = np.einsum("nk,nk->n", shares, chance)
    losses = -weight * np.log(np.maximum(predicted, _MIN_PROBABILITY))
    return np.bincount(item, losses).astype(np.float64)


def judge_crowd(rows: ClassRows) -> tuple[Floats, Calibration]:
    """Return the probabilities of levels by three nested models, each weighed by how it predicts held-out annotators.

    The models are: grades say nothing; each annotator knows the level with a probability of their own and otherwise
    answers as all do overall; each has a confusion matrix. Fits without an annotator give the levels of their items,
    tempered by a correlation, and the mean matrix predicts their grades, beside an urn of what the item was given
    (:func:`~crowdrank.kernels.confusion.held_out_likelihoods`): where items draw the same answers beyond what their
    level explains, annotators also err together, and a share of each item is given away for that. Nothing of these fits
    has seen the grades that it is weighed by, so that a model with more parameters than the grades can bear loses its
    weight, and pure noise ends with no information. Both correlations are averaged over their posterior.

    Where times are known, a grade is predicted from those of the others that are not later. What is asked next may
    depend on what was answered before: a first grade that others contradict is a reason to ask for more, so that among
    many grades the first ones would differ from the rest too often, however independent annotators are.
    """
    from ...kernels.confusion import flatten, held_out_likelihoods
    from ...kernels.threads import even_bounds, over_bounds

    named, n_levels, (_, given) = rows.has_annotators, rows.n_levels, rows.levels_by_row
    # with fewer grades than cells not even the crowd's matrix can be learned
    with_matrices = named and given.sum() >= n_levels**2
    folds = _folds(rows, given.sum(axis=1)) if named else np.zeros(rows.n_annotators, np.int64)
    times = _row_times(rows) if rows.time is not None and named else None

    def fits(train: Floats) -> list[MatrixReading]:
        skills = _fit_skills(rows, train)
        return [skills, _fit_matrices(rows, train, skills)] if with_matrices else [skills]

    n_folds = int(folds.max()) + 1

    def held_out_logs(begin: int, end: int) -> list[Any]:
        """Likelihoods of the grades of each fold, by each model over the grid and by shares, and the last fits."""
        logs: list[Any] = []
        for fold in range(begin, end):
            # without names each grade is predicted from the rest of its item, and what all share learned with it
            held_out = folds == fold
            train = np.where(held_out[:, None] & named, 0.0, given)
            if fold == n_folds:
                logs.append(fits(given))
                continue
            overall = train.sum(axis=0) + 1.0
            by_model = [
                held_out_likelihoods(
                    rows.packed_rows, fit.confusion, fit.shares, held_out, _mean_matrix(fit, train.sum(axis=1)),
                    overall / overall.sum(), (_CORRELATIONS, _DRAWS), named=named, time=times,
                )
                for fit in fits(train)
            ]  # fmt: skip
            logs.append((np.stack([over_grid for over_grid, _ in by_model]), by_model[0][1]))
        return logs

    # folds know nothing of each other, so threads share them; they are added in their order, whoever was first
    by_thread = over_bounds(held_out_logs, even_bounds(n_folds + 1, 1))
    *by_fold, fits_to_all = [logs for stretch in by_thread for logs in stretch]
    likelihoods: Floats = np.sum([logs for logs, _ in by_fold], axis=0)
    by_shares = sum(alone for _, alone in by_fold)
    # the last digits depend on the order of the sums
    posterior = np.round(likelihoods, 7) + _LOG_PRIOR
    top = posterior.max(axis=(1, 2))
    chances = np.exp(posterior - top[:, None, None])
    evidence = np.append(round(by_shares, 7), top + np.log(chances.sum(axis=(1, 2))))
    evidence += _LOG_MODEL_PRIOR[: 2 + with_matrices]
    chances /= chances.sum(axis=(1, 2), keepdims=True)
    # of the informed models by themselves: heavy grades may leave them no weight beside no information
    informed = np.exp(evidence[1:] - evidence[1:].max())
    informed /= informed.sum()
    if with_matrices:
        informed += (1.0 - _MOST_OF_MATRICES) * informed[1] * np.array([1.0, -1.0])
    weights = np.exp(evidence - evidence.max())
    nothing = float(weights[0] / weights.sum())
    by_correlation, by_draw, voices = chances.sum(axis=2), chances.sum(axis=1), _n_voices(rows)
    probabilities, shared_error, drawn_error = np.zeros((rows.n_items, n_levels)), 0.0, 0.0
    correlations = by_correlation @ _CORRELATIONS
    for number, fit in enumerate(fits_to_all):
        own = rows.read(fit)
        for correlation, chance in zip(_CORRELATIONS.tolist(), by_correlation[number].tolist(), strict=True):
            if chance > _LEAST_WEIGHT:
                probabilities += informed[number] * chance * flatten(own, voices, correlation)
        crowd = _informed_matrix(fit, given.sum(axis=1))
        drawn = sum(
            chance * _shared_error(draw, crowd, fit.shares)
            for draw, chance in zip(_DRAWS.tolist(), by_draw[number].tolist(), strict=True)
            if chance > _LEAST_WEIGHT
        )
        drawn_error += float(informed[number]) * drawn
        shared_error += float(informed[number]) * max(drawn, _shared_error(correlations[number], crowd, fit.shares))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    away = nothing + (1.0 - nothing) * _away_of(drawn_error, n_levels)
    likeliest = (likelihoods[int(informed.argmax())].max(axis=1) - _CORRELATIONS / _TYPICAL_CORRELATION).argmax()
    return (1.0 - away) * probabilities + away / n_levels, Calibration(
        float(informed @ correlations), shared_error, float(_CORRELATIONS[likeliest]), nothing, given_away=away
    )


def _fit_skills(rows: ClassRows, given: Floats) -> MatrixReading:
    """One skill per annotator, who knows the level with it and otherwise answers as all do overall, by EM.

    Skills have a Beta prior around the mean skill, worth four grades; levels have the shares of the grades. ``given``
    (n_annotators, n_levels) is the weight of the grades that count: annotators without any say nothing.
    """
    number, overall = given.sum(axis=1), given.sum(axis=0) + 1.0
    shares, counts = overall / overall.sum(), number > 0.0
    skill = np.where(counts, 0.5, 0.0)

    def confusion() -> Floats:
        return skill[:, None, None] * np.eye(rows.n_levels) + (1.0 - skill)[:, None, None] * shares

    for _ in range(_MOST_PASSES):
        right = np.einsum("ajj->aj", rows.expected_counts(confusion(), shares).counts)
        known = (right * (skill[:, None] / (skill[:, None] + (1.0 - skill)[:, None] * shares))).sum(axis=1)
        mean = (known.sum() + 1.0) / (number.sum() + 2.0)
        following = np.where(counts, (known + _SKILL_WEIGHT * mean) / (number + _SKILL_WEIGHT), 0.0)
        following = np.minimum(following, _MOST_SKILL)
        change, skill = float(np.abs(following - skill).max()), following
        if change < _TOL:
            break
    return MatrixReading(confusion(), shares)


def _fit_matrices(rows: ClassRows, given: Floats, skills: MatrixReading) -> MatrixReading:
    """A confusion matrix per annotator, by EM from their skills.

    Row j of an annotator has a Dirichlet prior, worth five grades, around the crowd's errors and the annotator's own
    accuracy; that has a Beta prior around the mean, worth four. Both are taken from the grades in each pass. Shares of
    levels begin with those of the grades (:func:`~.coded_grades.vote_anchor`).
    """
    from .kernels.own_prior import shrink_matrices

    number, anchor = given.sum(axis=1), vote_anchor(rows) + 1.0
    confusion, shares = skills
    for _ in range(_MOST_PASSES):
        expected = rows.expected_counts(confusion, shares)
        confusion, change = shrink_matrices(
            expected.counts, number, confusion, skill_weight=_SKILL_WEIGHT, matrix_weight=_MATRIX_WEIGHT
        )
        shares = (expected.shares + anchor) / (expected.shares + anchor).sum()
        if change < _TOL:
            break
    return MatrixReading(confusion, shares)


def _informed_matrix(fit: MatrixReading, given: Floats) -> Floats:
    """The mean matrix in which annotators count by what their grades tell of the level, as they do in a fit."""
    matrices = np.maximum(fit.confusion, _MIN_PROBABILITY)
    answers = np.einsum("j,ajl->al", fit.shares, matrices)
    information = np.einsum("j,ajl->a", fit.shares, matrices * (np.log(matrices) - np.log(answers)[:, None, :]))
    return np.maximum(_mean_matrix(fit, given * np.maximum(information, 1e-12)), _MIN_PROBABILITY)


def _folds(rows: ClassRows, given: Floats) -> Counts:
    """The fold of each annotator: by who graded what, then by name, so that neither answers nor row order matter."""
    active = np.flatnonzero(given > 0)
    folds = np.full(rows.n_annotators, -1, np.int64)
    n_folds = len(active) if len(active) <= _MOST_ALONE else _N_FOLDS
    asked = replace(rows, level=np.zeros_like(rows.level), levels=rows.levels[:1])
    numbers = structure_numbers(asked, 0)[1][active]
    folds[active[np.lexsort((active, numbers))]] = np.arange(len(active)) % max(n_folds, 1)
    return folds


def _mean_matrix(fit: MatrixReading, weights: Floats) -> Floats:
    """The mean of the annotators' matrices by these weights, (n_levels, n_levels)."""
    return np.einsum("ajl,a->jl", fit.confusion, weights / weights.sum())


def _row_times(rows: ClassRows) -> Floats:
    """When the annotator of each packed row first graded its item."""
    assert rows.time is not None
    order = np.lexsort((rows.annotator, rows.item))
    new = (np.diff(rows.item[order], prepend=-1) != 0) | (np.diff(rows.annotator[order], prepend=-1) != 0)
    first: Floats = np.minimum.reduceat(rows.time[order], np.flatnonzero(new)) if len(order) else np.empty(0)
    return np.repeat(first, np.diff(np.append(np.flatnonzero(new), len(order))))


def _n_voices(rows: ClassRows) -> Floats:
    """Number of annotators who graded each item, (n_items,); the weight of its grades where nobody is named."""
    from ...kernels.confusion import count_voices

    return count_voices(rows.packed_rows, rows.n_levels, named=rows.has_annotators)


def _shared_error(correlation: float, mean_matrix: Floats, shares: Floats) -> float:
    """Expected share of items on which even many annotators would settle on a wrong level.

    Many grades of an item of level j have shares that vary around row j of the crowd's matrix with this correlation.
    The model settles on another level k where the mean log ratio of the two rows is below 0. That mean is taken as
    Beta distributed between the least and the largest ratio, which is exact for two levels.
    """
    from scipy.special import betainc

    if correlation <= 0.0:
        return 0.0
    wrong = np.zeros(len(mean_matrix))
    for level, row in enumerate(mean_matrix):
        ratio = np.log(row) - np.log(mean_matrix)
        low, span = ratio.min(axis=1), np.ptp(ratio, axis=1)
        apart = span > 1e-9
        span = np.where(apart, span, 1.0)
        mean = np.einsum("l,kl->k", row, ratio)
        variance = np.maximum(np.einsum("l,kl->k", row, ratio**2) - mean**2, 1e-12)
        place = np.clip((mean - low) / span, 1e-6, 1.0 - 1e-6)
        weight = np.maximum(place * (1.0 - place) * span**2 / (correlation * variance) - 1.0, 1e-6)
        below = betainc(place * weight, (1.0 - place) * weight, np.clip(-low / span, 0.0, 1.0))
        wrong[level] = min(float(below[apart].sum()), 1.0)
    return float((shares * wrong).sum())


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
    _, item, annotator, level = _distinct_grades(rows)
    return _sums_of_draws(annotators[annotator], level, item, rows.n_items, (seed, 2 * number))


def annotator_numbers(rows: ClassRows, items: Numbers, seed: int, number: int) -> Numbers:
    """Return the number of each annotator in a round; over parts of the grades these add up."""
    _, item, annotator, level = _distinct_grades(rows)
    return _sums_of_draws(items[item], level, annotator, rows.n_annotators, (seed, 2 * number + 1))


def _distinct_grades(rows: ClassRows) -> tuple[Counts, Counts, Counts, Numbers]:
    """Place among packed rows, item, annotator and level of each grade; one given twice is one, of twice the weight."""
    packed = rows.packed_rows
    item = np.repeat(np.arange(rows.n_items), np.diff(packed.starts))
    new = np.append(True, (np.diff(packed.code) != 0) | (np.diff(item) != 0))[: len(item)]
    annotator, level = np.divmod(packed.code[new], np.uint32(rows.n_levels))
    return np.flatnonzero(new), item[new], annotator.astype(np.int64), level.astype(np.uint64)


def _sums_of_draws(numbers: Numbers, level: Numbers, there: Counts, size: int, seeds: tuple[int, int]) -> Numbers:
    """Sums of draws that numbers and levels decide; sums that wrap do not depend on their order."""
    salt = np.random.default_rng(seeds).integers(0, 2**64, 1, np.uint64)
    sums = np.zeros(size, np.uint64)
    np.add.at(sums, there, row_numbers([row_numbers([numbers + salt]) + level]))
    return sums
