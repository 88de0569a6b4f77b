"""Crowd-BT and the multinomial preference model over parts of the preferences.

By query, parts keep the scores of their items and annotators are shared: a pass finds the best scores for given
annotators and returns the slopes of the annotators. By annotator, for one query with most judgments, the scores are
shared (``arena_passes``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...data.consensus import Consensus, settle_ties
from ...data.index import Items
from ...data.judgments import Preferences, align_judgments, stack_judgments
from ...data.parted import PartColumns, PartedFit, sample_queries, share_of_rows
from ...errors import ConvergenceWarning, ParameterError
from ...fitting import accelerate, newton, warn_unconverged
from ...protocols import BlockFit, Blocks, Bools, Floats, Ints, Statistics, method_name
from ...quality import LearnedQuality, warn_near_chance
from .annotator_fit import (
    MIN_GAIN,
    QUALITY_PRECISION,
    QUALITY_TOL,
    START_ROUNDS,
    AnnotatorPrior,
    Start,
    connected_parts,
    start_agreement,
    start_scores,
    start_sums,
    start_surplus,
    support,
)
from .annotator_model import MAX_REVERSALS, AnnotatorModel

_SHARE_OF_TOL = 1e-2
"""Passes stop at this share of the tolerance of Newton steps, since their errors shrink by a factor, not by squares."""

MAX_INNER_STEPS = 50
MAX_STEP = 1.0


def annotator_passes(method: Any, judged: Any, start: Consensus | None, trusted: Bools) -> BlockFit:
    """Return the passes of a method that has one parameter per annotator."""
    name = method_name(method)
    if method.per_query:
        raise ParameterError(
            f"{name} with per_query takes each query by itself, so packed judgments gain nothing; leave per_query out, "
            "or fit a file for each query"
        )
    if judged.by == "query":
        passes = QueryPasses(method, judged, start, trusted)
        return BlockFit(passes.lay_out, passes.solve)
    if method.ties == "davidson":
        raise ParameterError(
            f"{name} with ties='davidson' goes over judgments packed by query; pack them so, or take ties='split'"
        )
    if judged.n_queries > 1:
        raise ParameterError(
            f"{name} over judgments packed by annotator takes one query, and there are {judged.n_queries:,}; "
            "pack them by query, or use bradley_terry"
        )
    from .arena_passes import ArenaPasses

    arena = ArenaPasses(method, judged, start, trusted)
    return BlockFit(arena.lay_out, arena.solve)


@dataclass(frozen=True, eq=False)
class _FlatPrior:
    """The prior of annotators without its density, which is added once and not in every part."""

    prior: AnnotatorPrior

    def __getattr__(self, name: str) -> Any:
        if name == "prior":
            raise AttributeError(name)
        return getattr(self.prior, name)

    def log_density(self, own: Floats) -> tuple[float, Floats, Floats]:
        """Return no density."""
        return 0.0, np.zeros(len(own)), np.zeros(len(own))


class PairPart(NamedTuple):
    """The preferences of a part, their model, and the annotators that its parameters belong to."""

    preferences: Preferences
    model: AnnotatorModel[Any]
    annotators: Ints

    @property
    def annotator_weights(self) -> Floats:
        """Weight of the preferences of each of the annotators, ties included."""
        preferences = self.preferences
        by = preferences.row_annotator
        return np.bincount(by, preferences.weight, max(preferences.n_annotators, 1)).astype(np.float64)[self.annotators]


@dataclass(frozen=True, eq=False)
class AnnotatorPasses:
    """What both ways of cutting preferences share."""

    method: Any
    judged: Any
    start: Consensus | None
    trusted: Bools

    @property
    def tol(self) -> float:
        """Tolerance of the passes."""
        return float(_SHARE_OF_TOL * self.method.tol)

    @property
    def n_own(self) -> int:
        """Number of parameters of annotators: one where none are named."""
        return max(len(self.judged.annotators), 1)

    @property
    def all_trusted(self) -> Bools:
        """Who is trusted, (n_own,)."""
        return self.trusted if len(self.trusted) else np.zeros(1, bool)

    def prior(self) -> AnnotatorPrior:
        """Return the prior of all annotators."""
        return self.method.prior_of(self.all_trusted)  # type: ignore[no-any-return]

    def _former_own(self) -> Floats:
        """Parameters of a former consensus, NaN where there are none."""
        own = np.full(self.n_own, np.nan)
        if self.start is not None and len(self.judged.annotators):
            known = self.method.former_parameters(self.start, self.judged.annotators)
            own = self.method._from_parameter(known)
        return own

    def _quality(self, sums: Blocks, own: Floats, given: Floats) -> LearnedQuality | None:
        """Quality of the annotators, held out on a sample of the queries where preferences are many."""
        if not len(self.judged.annotators):
            return None
        share = share_of_rows(self.judged.rows)
        sample_part = partial(_sample_preferences, given, share, self.judged.by)
        samples = [part for (part,) in sums.read(sample_part)]
        sample: Preferences = stack_judgments(align_judgments([part for part in samples if len(part)] or samples[:1]))
        parameter, nothing = self.method._to_parameter(own), np.full(sample.n_items, np.nan)
        refit = partial(
            self.method._scores, trusted=self.trusted, start=Start(nothing, parameter),
            tol=max(self.method.tol, QUALITY_TOL),
        )  # fmt: skip
        return LearnedQuality(
            sample, refit, {self.method.parameter: parameter}, precision=QUALITY_PRECISION, n_judgments=given
        )


class QueryPasses(AnnotatorPasses):
    """Parts by query: annotators are shared, and each part keeps the scores of its items."""

    def lay_out(self, part: Preferences) -> PairPart:
        """Return the preferences sorted by pair."""
        by = part.row_annotator
        model = self.method._model(part, by, self.all_trusted)
        return PairPart(part, replace(model, prior=_FlatPrior(model.prior)), np.arange(self.n_own, dtype=np.int32))

    def solve(self, sums: Blocks) -> PartedFit:
        """Return the scores of all items and the parameters of the annotators."""
        prior, own, n = self.prior(), self._former_own(), self.n_own
        number, given = sums.total(_weights)
        own, n_iter, values = self._first_point(sums, prior, own), 0, list[float]()
        tie = np.zeros(1 if self.method.ties == "davidson" else 0)
        for _ in range(MAX_REVERSALS):
            point, trace = self._climb(sums, prior, np.append(own, tie), number)
            own, tie = point[:n], point[n:]
            n_iter, values = n_iter + trace.n_iter, [*values, *(trace.log_likelihood or ())]
            turned = self._turn(sums, prior, own)
            if turned is None:
                break
            own = turned
        if not trace.converged:
            warn_unconverged(method_name(self.method), self.method.max_iter, trace.change, self.method.tol)
        slopes = self._slopes(sums, prior, np.append(own, tie))
        self._warn_near_chance(sums, prior, own, number)
        columns = [PartColumns(*part) for part in sums.read(partial(_read_scores, self.method, own, tie, slopes))]
        trace = replace(trace, n_iter=n_iter, log_likelihood=tuple(values))
        estimates = {"tie": float(np.exp(tie[0]))} if len(tie) else {}
        return PartedFit(columns, trace, self._quality(sums, own, given), estimates=estimates)

    def _first_point(self, sums: Blocks, prior: AnnotatorPrior, own: Floats) -> Floats:
        """Parameters to begin with, and rough scores as states of the parts: on the majority's side, or former ones."""
        surplus = prior.expected_surplus()[0]
        for _ in range(START_ROUNDS):
            surplus = start_surplus(prior, *sums.total(partial(_rough_scores, surplus)))
        rough = np.clip(prior.from_surplus(surplus), prior.low, prior.high)
        if self.start is not None:
            sums.total(partial(_former_scores, self.start.items, self.start.scores))
        return np.where(np.isnan(own), rough, np.clip(own, prior.low, prior.high))

    def _climb(self, sums: Blocks, prior: AnnotatorPrior, point: Floats, number: Floats) -> tuple[Floats, Any]:
        """The parameters of largest likelihood, a tie parameter at their end, the scores being the best for each."""
        free = np.full(len(point) - self.n_own, np.inf)
        low, high = (
            np.append(np.broadcast_to(end, self.n_own), far) for end, far in ((prior.low, -free), (prior.high, free))
        )

        def step(point: Floats) -> _Step:
            value, slope, bend, least = self._slopes(sums, prior, point)
            move = np.clip(slope / np.maximum(bend, least), -MAX_STEP, MAX_STEP)
            return _Step(round(value, 8), np.clip(point + move, low, high))

        scale = np.sqrt(np.append(number, np.full(len(free), number.sum())) + 1.0)
        return accelerate(step, point, lower=low, upper=high, scale=scale, tol=self.tol, max_iter=self.method.max_iter)

    def _slopes(self, sums: Blocks, prior: AnnotatorPrior, point: Floats) -> _Slopes:
        """The objective at the best scores, priors included, with slopes and curvatures of the parameters."""
        own, tie = point[: self.n_own], point[self.n_own :]
        value, slope, bend = sums.total(partial(_best_scores, own, tie, self.tol))
        log_prior, pull, least = prior.log_density(own)
        ridge = np.full(len(tie), self.method.ridge)
        pull, least = np.append(pull, -ridge * tie), np.append(least, ridge)
        return _Slopes(value + log_prior - 0.5 * float((ridge * tie**2).sum()), slope + pull, bend + least, least)

    def _turn(self, sums: Blocks, prior: AnnotatorPrior, own: Floats) -> Floats | None:
        """The parameters with those reversed that are better so, as are the scores; ``None`` where none are."""
        component, n_groups = _components(sums.each(_links), self.n_own)
        active, n = component >= 0, self.n_own
        gain = (
            np.zeros(n)
            if self.start is not None
            else -np.bincount(component[active], (prior.sign_cost * own)[active], n)
        )
        decided = np.zeros(n, bool)
        decided[component[active & prior.trusted]] = True
        if decided.any():
            (agreement,) = sums.total(_agreements)
            of_trusted = np.where(prior.trusted, agreement, 0.0)
            gain[decided] = -np.bincount(component[active], of_trusted[active], n)[decided]
        reverse = active & (gain[component] > MIN_GAIN)
        if reverse.any():
            sums.total(partial(_reverse_components, reverse))
            return np.where(reverse & ~prior.trusted, np.clip(-own, prior.low, prior.high), own)
        if n_groups == len(np.unique(component[active])):
            return None
        (n_turned,) = sums.total(partial(_reverse_groups, own))
        return own if n_turned else None

    def _warn_near_chance(self, sums: Blocks, prior: AnnotatorPrior, own: Floats, given: Floats) -> None:
        """Warn of a crowd that agrees hardly more than guessing would."""
        gap, number = sums.total(_mean_gap)
        if not self.trusted.any():
            accuracies = self.method.accuracies_at(gap / max(number, 1.0), own, prior)
            warn_near_chance(method_name(self.method), accuracies, given)


class _Step(NamedTuple):
    """The objective at some parameters, and those that follow."""

    value: float
    following: Floats


class _Slopes(NamedTuple):
    """The objective, slopes and curvatures in the parameters, and the part of the latter that is the prior's."""

    value: float
    slope: Floats
    bend: Floats
    least: Floats


def _weights(part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """Weight of the preferences of each annotator that the parameters enter, and of all."""
    return (part.model.n_preferences, part.annotator_weights), None


def _rough_scores(surplus: Floats, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """How annotators agree with the rough scores that their surplus leads to, which are the new state."""
    model = part.model
    scores = model.levels.centre(start_scores(*start_sums(model.preferences, surplus)))
    return start_agreement(model.preferences, scores, model.n_own), (model.start_shrinkage * scores,)


def _former_scores(items: Items, scores: Floats, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """Scores of a former consensus as the state, the rough ones for new items."""
    here = part.preferences.items
    former = np.append(scores, np.nan)[items.codes(here.query_ids(), here.ids)]
    return (0.0,), (part.model.levels.centre(np.where(np.isnan(former), state[0], former)),)


class _ScorePoint(NamedTuple):
    """The objective at some scores, annotators held fixed."""

    value: float
    gradient: Floats
    whole: Any

    @property
    def log_likelihood(self) -> float:
        """The objective itself."""
        return self.value


def _maximise_scores(model: AnnotatorModel[Any], scores: Floats, own: Floats, tie: Floats, tol: float) -> Any:
    """The point where scores are the best for given annotators and tie parameter."""
    import warnings

    from ...kernels.laplacian import newton_step

    n, others = model.n_items, np.zeros(model.n_own + len(tie))

    def evaluate(scores: Floats) -> _ScorePoint:
        whole = model.evaluate(np.concatenate([scores, own, tie]))
        return _ScorePoint(whole.value, whole.gradient[:n], whole)

    def direction(here: _ScorePoint) -> Floats:
        product, diagonal = model.curvature(here.whole)
        step = newton_step(
            lambda vector: product(np.concatenate([vector, others]))[:n], diagonal[:n], here.gradient, tol=tol
        )
        step = model.levels.centre(step)
        return step if float((here.gradient * step).sum()) > 0.0 else here.gradient / diagonal[:n]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return newton(evaluate, direction, scores, tol=tol, max_iter=MAX_INNER_STEPS)[1].whole


def _best_scores(own: Floats, tie: Floats, tol: float, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """The objective, slopes and curvatures of the parameters at the best scores, which are the new state."""
    model, n_parameters = part.model, len(own) + len(tie)
    if not len(model.pair_counts.second):
        return (0.0, np.zeros(n_parameters), np.zeros(n_parameters)), (np.zeros(model.n_items),)
    best = _maximise_scores(model, state[0], own, tie, tol)
    value, slope, bend = best.value, best.gradient[model.n_items :], best.own_bend
    if len(tie):
        # the pull of the tie parameter is added once
        value += 0.5 * model.ridge * float(tie[0]) ** 2
        slope = slope + np.append(np.zeros(len(own)), model.ridge * tie)
        bend = np.append(bend, best.ties.every.tie_bend)
    return (value, slope, bend), (best.scores,)


def _links(part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """The annotators of a part, the connected group of each, and the number of groups of items."""
    model = part.model
    label = connected_parts(model.preferences, model.levels, model.n_own)[1]
    active = np.flatnonzero(label >= 0)
    n_groups = len(np.unique(model.levels.group[model.preferences.second]))
    return (active.astype(np.int64), label[active].astype(np.int64), float(n_groups)), None


def _components(parts: list[Statistics], n_own: int) -> tuple[Any, int]:
    """The component that preferences connect each annotator to, -1 without any, and the number of groups of items."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    annotators, nodes, n_nodes, n_groups = [np.empty(0, np.int64)], [np.empty(0, np.int64)], n_own, 0
    for active, label, groups in parts:
        labels, place = np.unique(label, return_inverse=True)
        annotators.append(active)
        nodes.append(n_nodes + place)
        n_nodes, n_groups = n_nodes + len(labels), n_groups + int(groups)
    rows, columns = np.concatenate(annotators), np.concatenate(nodes)
    graph = csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(n_nodes, n_nodes))
    component = connected_components(graph, directed=False)[1][:n_own]
    # numbered by annotators, so that there are no more of them
    numbers = np.unique(component, return_inverse=True)[1].astype(np.int64)
    numbers[np.bincount(rows, minlength=n_own) == 0] = -1
    return numbers, n_groups


def _agreements(part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """How the preferences of each annotator, taken as those of a good one, support the scores."""
    model = part.model
    supported = support(model.preferences, model.prior, state[0], np.ones(model.n_own))
    return (np.bincount(model.preferences.annotator, supported, model.n_own),), None


def _reverse_components(reverse: Bools, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """Reverse the scores of the items that reversed annotators judged."""
    model = part.model
    of_items, label = connected_parts(model.preferences, model.levels, model.n_own)
    turned = np.zeros(model.n_items + 1, bool)
    turned[label[reverse & (label >= 0)]] = True
    return (0.0,), (np.where(turned[of_items], -state[0], state[0]),)


def _reverse_groups(own: Floats, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """Reverse groups of items never compared with others that the annotators contradict; return their number."""
    model, (scores,) = part.model, state
    supported = support(model.preferences, model.prior, scores, model.prior.transform(own)[0])
    group = model.levels.group
    gains = -np.bincount(group[model.preferences.first][model.preferences.pair], supported, len(scores))
    turned = gains[group] > MIN_GAIN
    return (float(turned.sum()),), (np.where(turned, -scores, scores),)


def _mean_gap(part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """Sum of the differences of scores over decided preferences, as accuracies need it, and their number."""
    return part.model.gap_sums(state[0]), None


def _read_scores(
    method: Any, own: Floats, tie: Floats, slopes: _Slopes, part: PairPart, state: Any
) -> tuple[Statistics, Any]:
    """Scores and standard errors of the items of a part; annotators adapt as far as all parts let them."""
    model, (scores,) = part.model, state
    if not len(model.pair_counts.second):
        return (scores, np.full(len(scores), 1.0 / np.sqrt(model.ridge)), None, None, None), None
    here = model.evaluate(np.concatenate([scores, own, tie]))
    gradient = np.concatenate([here.gradient[: model.n_items], slopes.slope])
    here = replace(here, own_bend=slopes.bend[: len(own)], gradient=gradient)
    if len(tie):
        every = here.ties.every._replace(tie_bend=float(slopes.bend[-1]) - model.ridge)
        here = replace(here, ties=here.ties._replace(every=every))
    std_error = model.standard_errors(here)[0]
    return (settle_ties(method, part.preferences, scores), std_error, None, None, None), None


def _sample_preferences(given: Floats, share: float, by: str, part: PairPart, state: Any) -> tuple[Statistics, Any]:
    """The preferences of some queries of a part; of one query, every so many of them."""
    if by == "annotator":
        every = np.arange(0, len(part.preferences), max(1, round(1.0 / share)))
        return (part.preferences.select(every),), None
    return (sample_queries(part.preferences, given, share),), None
