"""The latent-score model over parts of the judgments: annotators are shared, and parts keep the scores of their items.

A pass takes the scores of a part one round further and returns the sums that annotators and crowd are learned from.
How far scores follow a round depends on all of them, so that they do so at the beginning of the next pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...data.consensus import Consensus, Trace, settle_ties
from ...data.index import Items
from ...data.judgments import align_judgments, stack_judgments
from ...data.naming import first_ids
from ...data.parted import PartColumns, PartedFit, sample_queries, share_of_rows
from ...fitting import warn_unconverged
from ...pair_counts import steps_of_strengths, strength_weights
from ...protocols import Blocks, Bools, Floats, Statistics, add_statistics
from ...quality import LearnedQuality
from .model import (
    Anchors,
    ItemInputs,
    Kind,
    Known,
    Layout,
    LevelScale,
    State,
    find_anchors,
    first_state,
    former_habits,
    former_scores,
    hold_out_grades,
    lay_out_part,
    level_sums,
    n_held_out_folds,
)
from .outcomes import (
    Marginal,
    annotator_quality,
    estimates,
    lapse_curvature,
    refit_of,
    score_errors,
    separate_groups,
    two_groups,
    unexplained_shares,
    variance_inflation,
    warn_undetermined,
    weighted_mode,
)
from .rounds import (
    Options,
    Path,
    ScoreFit,
    annotator_round,
    are_likelier,
    finished_fit,
    has_converged,
    has_settled,
    last_scores,
    log_likelihood,
    may_have_difficulties,
    round_scores,
    score_round,
    tolerance,
    trial_options,
    typical_change,
)
from .steps import (
    Evidence,
    ItemSums,
    VarianceSums,
    annotator_sums,
    difficulty_evidence,
    widened_variance,
    with_difficulties,
)

if TYPE_CHECKING:
    from .kernels.ordinal import AnnotatorSums


class Common(NamedTuple):
    """What holds for the responses of all parts: their levels, and once these are counted, what is said of the kind.

    ``taken`` says which: all, or of a fold 0 those that a trial learns from, or 1 those that it holds out; which these
    are follows from ``level_sums``.
    """

    bins: int | None
    lapse: bool | None
    scale: LevelScale
    kind: Kind | None = None
    active: Bools | None = None
    has_query_levels: bool = False
    taken: tuple[int, int] | None = None
    level_sums: Floats | None = None


@dataclass(frozen=True, eq=False)
class ScorePart:
    """The judgments of a part, and their responses once the levels of all parts are known."""

    judgments: Any
    _laid_out: list[Layout] = field(default_factory=list)

    def layout(self, common: Common) -> Layout:
        """Return the responses; a part keeps them from pass to pass."""
        if not self._laid_out:
            self._laid_out.append(lay_out_part(self.judgments, common.scale, bins=common.bins, lapse=common.lapse))
        (own,) = self._laid_out
        if common.taken is not None:
            fold, place = common.taken
            own = hold_out_grades(own, fold, common.level_sums)[place]
        if common.kind is None or common.active is None:
            return own
        kind = replace(common.kind, cells=own.kinds[0].cells, pair=own.kinds[0].pair)
        return replace(own, kinds=(kind,), active=common.active, has_query_levels=common.has_query_levels)


class _Scores(NamedTuple):
    """What belongs to the items of a part in the state of a fit.

    ``curvature`` is empty before the first round, ``difficulty`` and its variance are where items do not differ in it.
    """

    scores: Floats
    variance: Floats
    covariance: Floats
    curvature: Floats
    difficulty: Floats
    difficulty_variance: Floats

    @classmethod
    def of(cls, state: State) -> _Scores:
        """Return those of a state."""
        curvature = state.cell_curvature[0] if state.cell_curvature else np.empty(0)
        own = state.difficulty, state.difficulty_variance
        return cls(state.scores, state.variance, state.covariance, curvature, *own)

    def within(self, state: State) -> State:
        """Return the state of a part, given what is shared."""
        return replace(
            state, scores=self.scores, variance=self.variance, covariance=self.covariance,
            difficulty=self.difficulty, difficulty_variance=self.difficulty_variance,
            cell_curvature=(self.curvature,) if len(self.curvature) else (),
        )  # fmt: skip


class _Follow(NamedTuple):
    """How scores follow a round: their standard deviation before and after it, and the factors on them and on steps."""

    before: float
    after: float
    scale: float
    factor: float

    @property
    def of_step(self) -> Floats:
        """The step of the scores in standard deviations, from the step before, their move and where they were, (3,)."""
        return np.array([0.0, self.scale / self.after, self.scale / self.after - 1.0 / self.before])

    def after_round(self, layout: Layout, held: _Scores, made: _Scores) -> tuple[_Scores, Floats, float]:
        """Return the scores to go on from, the step of judged items, and its largest entry."""
        step = self.scale * made.scores / self.after - held.scores / self.before
        scores = self.after * (held.scores / self.before + np.where(layout.judged, self.factor, 1.0) * step)
        step = np.where(layout.judged, step, 0.0)
        square = self.scale**2
        here = made._replace(
            scores=scores, variance=made.variance * square, covariance=made.covariance * square,
            curvature=made.curvature / square,
        )  # fmt: skip
        return here, step, float(np.abs(step).max(initial=0.0))


class _RoundSums(NamedTuple):
    """The statistics of a round: the largest step of a score in the round before, and sums.

    ``products`` (3, 3) are those of the step before, the move, and the scores of judged items. ``items``, ``levels``
    and ``difficulties`` are the numbers of :class:`~.items.VarianceSums`.
    """

    largest: float
    products: Floats
    n_judged: float
    items: Floats
    levels: Floats
    difficulties: Floats
    annotators: AnnotatorSums

    @classmethod
    def of(cls, total: Statistics) -> _RoundSums:
        """Return the statistics of a pass by their names."""
        largest, products, n_judged, items, levels, difficulties, *rest = total
        return cls(largest, products, n_judged, items, levels, difficulties, _annotators(rest))

    @property
    def of_items(self) -> ItemSums:
        """What the prior variances are learned from; there are no features."""
        difficulties = VarianceSums(*self.difficulties)
        return ItemSums(VarianceSums(*self.items), VarianceSums(*self.levels), difficulties=difficulties)


@dataclass(frozen=True, eq=False)
class LatentScorePasses:
    """The rounds of a fit to judgments of one kind in parts by query."""

    method: Any
    judged: Any
    options: Options
    start: Consensus | None
    trusted: Bools

    def lay_out(self, part: Any) -> ScorePart:
        """Return the part; its responses follow when the levels of all are known."""
        return ScorePart(part)

    def merge(self, first: Statistics, second: Statistics) -> Statistics:
        """Return the larger of the first entries, and the sums of the others."""
        return max(first[0], second[0]), *add_statistics(first[1:], second[1:])

    def solve(self, sums: Blocks) -> PartedFit:
        """Return the scores of all items and what was learned of the annotators."""
        common = Common(self.method.bins, self.method.lapse, self._level_scale(sums))
        common, layout, given = self._survey(sums, common)
        anchors = find_anchors(layout, np.empty((0, 0)), Known.nothing(0), self.trusted)
        state = first_state(layout, anchors.prior.mean.copy(), 0)
        begin: tuple[Items, Floats] | None = None
        if self.start is not None:
            state = former_habits(self.start, self.judged.annotators, layout)
            begin = (self.start.items, former_scores(self.start))
        state, items, trace = self._run_rounds(sums, common, layout, anchors, state, begin)
        variance = widened_variance(layout, state, items)
        widened, state = variance != state.variance_of_items, replace(state, variance_of_items=variance)
        _, shares, number, n_separate, of_lapses, *rest = sums.total(partial(_finish, common, state, widened))
        fit = finished_fit(layout, state, anchors, trace)
        marginal = Marginal([_annotators(rest)], variance_inflation(layout, shares, number), of_lapses)
        by_part = list(sums.read(partial(_read_scores, common, fit, marginal, self.method)))
        if not trace.converged:
            warn_unconverged("latent_score", self.options.max_iter, trace.change, self.options.tol)
        names = next((words for *_, words in by_part if words), "")
        warn_undetermined(fit, layout, (int(n_separate), names), depth=2)
        of_scale = max(of_part for *_, of_part, _ in by_part)
        kind, quality = layout.kinds[0], self._quality(sums, layout, fit, given)
        return PartedFit(
            _columns(kind, [PartColumns(*values[:3]) for values in by_part]), trace, quality,
            kind.levels if kind.name == "grade" else None, {**estimates(layout, fit.state), "scale_error": of_scale},
        )  # fmt: skip

    def _level_scale(self, sums: Blocks) -> LevelScale:
        """The levels of all parts."""
        lows, highs, ties, sizes, weights = zip(*sums.each(_scale_of), strict=True)
        all_sizes, place = np.unique(np.concatenate(sizes), return_inverse=True)
        weight = np.bincount(place, np.concatenate(weights), len(all_sizes)).astype(np.float64)
        return LevelScale(min(lows), max(highs), *steps_of_strengths(all_sizes, weight), bool(max(ties)))

    def _survey(self, sums: Blocks, common: Common) -> tuple[Common, Layout, Floats]:
        """What is common to all parts, the layout of annotators without items, and the weight of their judgments."""
        from .kernels.item_systems import Graph

        _, weight, by_level, n_sided, n_queries, given = sums.total(partial(_count, common))
        first = self.judged.part(0)
        empty = lay_out_part(first.select(np.empty(0, np.int64)), common.scale, bins=common.bins, lapse=common.lapse)
        shares = by_level / max(float(by_level.sum()), 1e-300)
        kind = replace(empty.kinds[0], weight=weight, shares=shares, has_sides=bool(n_sided))
        has_levels = bool(n_queries > 1 and kind.name == "grade" and kind.n_levels > 1)
        common = common._replace(kind=kind, active=weight > 0, has_query_levels=has_levels)
        none: Any = np.empty(0, np.int32)
        graph = Graph(np.zeros(1, np.int64), none, none, np.zeros(1, np.int64))
        layout = Layout((kind,), graph, none, np.empty(0, bool), weight > 0, empty.named, has_levels)
        return common, layout, given

    def _run_rounds(
        self, sums: Blocks, common: Common, layout: Layout, anchors: Anchors, state: State, begin: Any
    ) -> tuple[State, VarianceSums, Trace]:
        """The shared state at the end, what the variance of scores follows from there, and how it went."""
        path, values = Path(layout.judged), list[float]()
        first = state, begin
        follow: _Follow | None = None
        change, of_crowd, squares, converged = np.inf, np.inf, np.inf, False
        may_differ = may_have_difficulties(layout, state, self.options)
        weight = float(layout.kinds[0].weight.sum())
        while True:
            round_sums = _RoundSums.of(sums.total(partial(_run_round, common, state, follow, begin)))
            if follow is not None:
                change = max(of_crowd, typical_change(round_sums.largest, squares, round_sums.n_judged))
                converged = has_converged(change, values, tolerance(layout, self.options.tol), weight)
            if may_differ and has_settled(change, values):
                may_differ = False
                if self.options.difficulty:
                    state, path, converged = with_difficulties(layout, state), Path(layout.judged), False
                    round_sums = _RoundSums.of(sums.total(partial(_run_round_again, common, state)))
                elif Evidence(*sums.total(partial(_weigh_difficulty, common, state))[1:]).is_enough:
                    return self._run_after_trial(sums, common, layout, anchors, *first)
            if converged or len(values) >= self.options.max_iter:
                return state, VarianceSums(*round_sums.items), Trace(len(values), converged, change, tuple(values))
            following, factor = annotator_round(
                layout, state, round_sums.of_items, [round_sums.annotators], anchors,
                learn_mean_lapse=has_settled(change, values),
            )  # fmt: skip
            values.append(round_sums.annotators.log_likelihood)
            follow = _Follow(state.variance_of_items**0.5, following.variance_of_items**0.5, factor, 1.0)
            step, products = follow.of_step, round_sums.products
            turn, squares = np.array([1.0, 0.0, 0.0]) - step, max(float(step @ products @ step), 0.0)
            elsewhere = (float(products[0] @ turn), max(float(turn @ products @ turn), 0.0))
            state, of_crowd = path.follow(state, following, elsewhere)
            follow, begin = follow._replace(factor=path.means.factor), None

    def _run_after_trial(
        self, sums: Blocks, common: Common, layout: Layout, anchors: Anchors, state: State, begin: Any
    ) -> tuple[State, VarianceSums, Trace]:
        """Rounds from the start, with difficulties if grades that a fit has not seen are likelier with them."""
        common = common._replace(level_sums=sums.total(partial(_add_levels, common))[1])
        likelihoods = {False: 0.0, True: 0.0}
        for fold in range(n_held_out_folds(layout)):
            learned, of_learned, _ = self._survey(sums, common._replace(kind=None, active=None, taken=(fold, 0)))
            for difficulty in likelihoods:
                trial = replace(self, options=trial_options(self.options, difficulty=difficulty))
                shared = trial._run_rounds(sums, learned, of_learned, anchors, state, begin)[0]
                held = partial(_predict_held_out, common._replace(taken=(fold, 1)), shared)
                likelihoods[difficulty] += float(sums.total(held)[1])
        options = self.options._replace(difficulty=are_likelier(likelihoods[True], likelihoods[False]))
        return replace(self, options=options)._run_rounds(sums, common, layout, anchors, state, begin)

    def _quality(self, sums: Blocks, layout: Layout, fit: ScoreFit, given: Floats) -> LearnedQuality | None:
        """Quality of the annotators, held out on a sample of the queries where judgments are many."""
        if not layout.named:
            return None
        read = list(sums.read(partial(_sample, given, share_of_rows(self.judged.rows))))
        sampled = [(part, own) for part, *own in read if len(part)] or [(part, own) for part, *own in read[:1]]
        sample: Any = stack_judgments(align_judgments([part for part, _ in sampled]))
        values = np.zeros((3, sample.n_items))
        for part, own in sampled:
            values[:, sample.items.codes(part.items.query_ids(), part.items.ids)] = own
        inputs, state = _no_inputs(sample.n_items), replace(fit.state, scores=values[0])
        if state.variance_of_difficulty > 0.0:
            state = replace(state, difficulty=values[1], difficulty_variance=values[2])
        fit = fit._replace(state=state, anchors=replace(fit.anchors, inputs=inputs))
        again = refit_of(self.method, sample, fit, Known.nothing(sample.n_items))
        quality = annotator_quality(sample, layout, fit.state, again)
        return quality and replace(quality, n_judgments=given)


def _no_inputs(n_items: int) -> ItemInputs:
    """Nothing is given of so many items besides judgments."""
    return ItemInputs(np.empty((n_items, 0)), np.zeros(n_items, bool), np.zeros(n_items))


def _annotators(values: Any) -> AnnotatorSums:
    """Sums of annotators by their names."""
    from .kernels.ordinal import AnnotatorSums

    return AnnotatorSums(*values)


def _columns(kind: Kind, columns: list[PartColumns]) -> list[PartColumns]:
    """What was read of the items, of two levels those that all scores together are split into."""
    if kind.name != "grade" or kind.n_levels != 2:
        return columns
    grades = [np.empty(0, np.int32) if part.grade is None else part.grade for part in columns]
    chosen = np.concatenate(grades)
    judged, scores = chosen >= 0, np.concatenate([part.scores for part in columns])
    chosen[judged] = two_groups(scores[judged], chosen[judged])
    ends = np.cumsum([len(grade) for grade in grades])
    return [part._replace(grade=own) for part, own in zip(columns, np.split(chosen, ends[:-1]), strict=True)]


def _scale_of(part: ScorePart, state: Any) -> tuple[Statistics, Any]:
    """Range of grades, whether there are ties, and the strengths of preferences with their weights."""
    judgments, scale = part.judgments, LevelScale.of(part.judgments)
    strengths = strength_weights(judgments) if judgments.kind == "preference" else (np.empty(0), np.empty(0))
    return (scale.low, scale.high, float(scale.has_ties), *strengths), None


def _count(common: Common, part: ScorePart, state: Any) -> tuple[Statistics, Any]:
    """Weight of responses by annotator and by level, those that name sides, judged queries, and weight of judgments."""
    judgments, layout = part.judgments, part.layout(common)
    (kind,) = layout.kinds
    by = judgments.annotator if judgments.n_annotators else np.zeros(len(judgments), np.int32)
    given = np.bincount(by, judgments.weight, layout.n_annotators).astype(np.float64)
    counts = float(kind.has_sides), float(len(layout.judged_queries)), given
    return (0.0, kind.weight, kind.shares * kind.weight.sum(), *counts), None


def _run_round(
    common: Common, shared: State, follow: _Follow | None, begin: tuple[Items, Floats] | None, part: ScorePart,
    kept: Any,
) -> tuple[Statistics, Any]:  # fmt: skip
    """A round of the scores of a part, after these have followed the round before."""
    layout = part.layout(common)
    if follow is None:
        scores = _first_scores(begin, part.judgments.items)
        pairs = np.zeros(len(layout.graph.second))
        none = np.empty(0)
        held, step, largest = _Scores(scores, 0.0 * scores, pairs, none, none, none), 0.0 * scores, 0.0
    else:
        held, step, largest = follow.after_round(layout, _Scores(*kept[:6]), _Scores(*kept[6:]))
    return _round_from(layout, held.within(shared), step, largest)


def _run_round_again(common: Common, shared: State, part: ScorePart, kept: Any) -> tuple[Statistics, Any]:
    """The last round once more, now with difficulties of items."""
    layout = part.layout(common)
    state = with_difficulties(layout, _Scores(*kept[:6]).within(shared))
    return _round_from(layout, state, np.zeros(layout.n_items), 0.0)


def _weigh_difficulty(common: Common, shared: State, part: ScorePart, kept: Any) -> tuple[Statistics, Any]:
    """What the grades of a part say for difficulties, at the scores that its last round began with."""
    return (0.0, *difficulty_evidence(part.layout(common), _Scores(*kept[:6]).within(shared))), kept


def _add_levels(common: Common, part: ScorePart, kept: Any) -> tuple[Statistics, Any]:
    """Sum of the levels of each annotator's grades."""
    return (0.0, level_sums(part.layout(common))), kept


def _predict_held_out(held: Common, shared: State, part: ScorePart, kept: Any) -> tuple[Statistics, Any]:
    """Log-likelihood of the grades of a part that a trial has not seen."""
    return (0.0, log_likelihood(part.layout(held), _Scores(*kept[:6]).within(shared))), kept


def _round_from(layout: Layout, state: State, step: Floats, largest: float) -> tuple[Statistics, Any]:
    """A round of the scores of a part from a state; ``step`` and its largest entry are of the round before."""
    following, items, sums = score_round(layout, state, _no_inputs(layout.n_items))
    rows = np.stack([step, following.scores - state.scores, state.scores])[:, layout.judged]
    variances = np.array(items.items), np.array(items.levels), np.array(items.difficulties)
    statistics = (largest, rows @ rows.T, float(layout.judged.sum()), *variances, *sums[0])
    return statistics, (*_Scores.of(state), *_Scores.of(following))


def _first_scores(begin: tuple[Items, Floats] | None, items: Items) -> Floats:
    """Scores before the first round: those of a former consensus, 0 for new items."""
    if begin is None or not len(items):
        return np.zeros(len(items))
    code = begin[0].codes_of(items, "start", "judgments")
    return np.where(code >= 0, np.append(begin[1], 0.0)[code], 0.0)


def _finish(common: Common, shared: State, widened: bool, part: ScorePart, kept: Any) -> tuple[Statistics, Any]:
    """The last scores of a part as its state; sums for standard errors, and the number of groups never compared."""
    layout = part.layout(common)
    state = _Scores(*kept[:6]).within(shared)
    if widened:
        state = last_scores(layout, state, _no_inputs(layout.n_items))
    state = replace(state, scores=round_scores(state.scores, state.variance_of_items**0.5))
    separate = separate_groups(layout)
    n_separate = 0.0 if separate is None else float(separate.sum())
    of_lapses, sums = lapse_curvature(layout, state), annotator_sums(layout, state)[0]
    statistics = (0.0, *unexplained_shares(layout, state), n_separate, of_lapses, *sums)
    return statistics, tuple(_Scores.of(state))


def _read_scores(
    common: Common, fit: ScoreFit, marginal: Marginal, method: Any, part: ScorePart, kept: Any
) -> tuple[Statistics, Any]:
    """Scores, standard errors and levels of the items of a part, the error of their scale, and who was not compared."""
    layout, items = part.layout(common), part.judgments.items
    state = _Scores(*kept).within(fit.state)
    own = fit._replace(state=state, anchors=replace(fit.anchors, inputs=_no_inputs(len(items))))
    (kind,), (habits,) = layout.kinds, state.kinds
    grade = weighted_mode(layout, state, kind, habits) if kind.name == "grade" else None
    if not len(items):
        return (state.scores, np.empty(0), grade, 0.0, ""), None
    errors, separate = score_errors(layout, own, marginal), separate_groups(layout)
    names = "" if separate is None or not separate.any() else first_ids(items, separate)
    return (settle_ties(method, part.judgments, state.scores), errors.std_error, grade, errors.of_scale, names), None


def _sample(given: Floats, share: float, part: ScorePart, kept: Any) -> tuple[Statistics, Any]:
    """The judgments of some queries of a part; scores, difficulties and the variances of these of their items."""
    judgments = part.judgments
    sample = sample_queries(judgments, given, share)
    code = judgments.items.codes(sample.items.query_ids(), sample.items.ids)
    held, none = _Scores(*kept), np.zeros(len(judgments.items))
    own = (held.scores, *(values if len(values) else none for values in (held.difficulty, held.difficulty_variance)))
    return (sample, *(values[code] for values in own)), None
