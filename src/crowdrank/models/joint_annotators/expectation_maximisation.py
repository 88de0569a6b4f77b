"""JAM and VRJAM by expectation-maximisation over the hidden better item of each pair.

In order: the model with its E-step and M-step, the choice between a fit and its mirror image, the spread of the item
effects, flip rates by cluster of pairs (VRJAM), :class:`JointFitter`, which does one after the other, and a check
whether the scores agree with the preferences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...data.consensus import Trace
from ...fitting import warn_unconverged
from ...protocols import Bools, Counts, Floats, Ints
from .item_scores import EqualScores, FeatureScores, ItemEffectScores, ScoreModel
from .judged_pairs import KNOWN_FLIP_RATE, START_FLIP_RATE, FlipPrior, JudgedPairs, cluster_pairs

if TYPE_CHECKING:
    from .kernels.pair_patterns import Expectation, PairPatterns

_MOST_HALVINGS = 20
_RELATIVE_ROUNDING = 1e-12
_ROUGH_TOL = 1e-3
"""Tolerance of a first fit whose spread is still to be found."""

_SPREAD_RANGE = (0.05, 4.0)
"""If the better item is never in doubt, any spread that is large enough is likely. With wines of known order, spreads
of 1, 2, 4 and 8 order most pairs correctly at 4, or within half a point of 8 where wines were compared only once."""

_LEAST_SPREAD_STEPS, _MOST_SPREAD_STEPS = 6, 200
_LOG_SPREAD_TOL = 3e-3
_STEPS_PER_LEAP = 3
_LONGEST_LEAP = 0.7
_LEAST_OBSERVED_SHARE = 0.1
"""Least share of an item's expected curvature that counts as observed."""

_MOST_CHECKED_PAIRS = 20_000
_LEAST_CHECKED_PAIRS = 100
_N_DRAWS = 4
_LEAST_PREFERENCES_PER_SOURCE = 50
_CHECK_TOL, _MOST_CHECK_ITERATIONS = 1e-3, 100

_CLEAR_RATIO = 1.15
"""The ratio is 1.1 to 1.9 where annotators' errors follow the features, and at most 1.1 where they do not."""

_CLEAR_STANDARD_ERRORS = 3.0


class State(NamedTuple):
    """Parameters of the score model, and the flip rate of each source, (n_sources,)."""

    parameters: Floats
    flip_rates: Floats


class Run(NamedTuple):
    """Where expectation-maximisation ended, the objective and the expectation there, and its trace."""

    state: State
    value: float
    expectation: Expectation
    trace: Trace


@dataclass(frozen=True, eq=False)
class JointModel:
    """Preferences on pairs, where scores come from, and the prior of the flip rates."""

    pairs: PairPatterns
    items: ScoreModel
    prior: FlipPrior

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return len(self.prior.fixed)

    def start(self) -> State:
        """Return the state whose E-step is the majority vote."""
        flip_rates = np.where(np.isnan(self.prior.fixed), START_FLIP_RATE, self.prior.fixed)
        return State(self.items.start(), flip_rates)

    def mirror(self, state: State) -> State:
        """Return the state that explains the preferences equally well with scores and flip rates reversed."""
        return State(-state.parameters, self.prior.mirror(state.flip_rates))

    def pattern_odds(self, flip_rates: Floats) -> Floats:
        """Return the log odds of the lower item by the preferences of each pattern."""
        return self.pairs.pattern_odds(np.log1p(-flip_rates) - np.log(flip_rates))

    def expect(self, state: State) -> tuple[float, Expectation]:
        """Return the log-likelihood with priors, and the sums over pairs (E-step)."""
        scores, equal = self.items.scores(state.parameters), isinstance(self.items, EqualScores)
        here = self.pairs.expect(state.flip_rates, scores, equal=equal, hinge=self.items.hinge)
        log_prior = self.prior.log_density(state.flip_rates) + self.items.log_prior(state.parameters)
        return here.log_likelihood + log_prior, here

    def maximise(self, state: State, value: float, here: Expectation) -> tuple[State, float, Expectation, float]:
        """Return the state after an M-step, its objective and expectation, and what a Newton step still promises.

        Flip rates are set to their maximum. Scores take a Newton step, halved until the objective has not fallen.
        """
        flip_rates = self.prior.flip_rates(*self.pairs.expected_flips(here, self.n_sources))
        step, promised = self.items.newton_step(self.pairs, here, state.parameters)
        gain = float(np.sqrt(max(promised, 0.0) / max(self.pairs.n_pairs, 1)))
        slack = _RELATIVE_ROUNDING * (1.0 + abs(value))
        for halving in range(_MOST_HALVINGS + 1):
            # the flip rates alone never lower the objective
            length = 0.5**halving if halving < _MOST_HALVINGS else 0.0
            following = State(state.parameters + length * step, flip_rates)
            new_value, there = self.expect(following)
            if self.items.hinge or new_value >= value - slack:
                break
        return following, new_value if self.items.hinge else max(new_value, value), there, gain

    def run(
        self, start: State, *, tol: float, max_iter: int, what: str = "", report: Callable[[int], None] | None = None
    ) -> Run:
        """Return where E-steps and M-steps lead from a start; the objective never falls, except with the hinge.

        They stop when no flip rate changes by more than ``tol`` and the root of what the mean log-likelihood per pair
        can still gain is not above it. Not converging warns in the name of ``what``, if that is given.
        """
        state, (value, here) = start, self.expect(start)
        values, change = [value], np.inf
        for n_iter in range(1, max_iter + 1):
            before = state.flip_rates
            state, value, here, gain = self.maximise(state, value, here)
            values.append(value)
            change = max(float(np.max(np.abs(state.flip_rates - before), initial=0.0)), gain)
            if report is not None:
                report(n_iter)
            if change <= tol:
                return Run(state, value, here, Trace(n_iter, True, change, tuple(values)))
        if what:
            warn_unconverged(what, max_iter, change, tol)
        return Run(state, value, here, Trace(max_iter, False, change, tuple(values)))


def choose_side(model: JointModel, run: Run, side_known: bool, rerun: Callable[[State], Run]) -> Run:
    """Return the run, or the one that starts at its mirror image, whichever is the right way round.

    With trusted annotators or known pairs (``side_known``) the objective decides. Otherwise most preferences are taken
    to be right.
    """
    free = np.isnan(model.prior.fixed)
    number = model.pairs.source_weights(model.n_sources)[free]
    if not side_known and float((number * run.state.flip_rates[free]).sum()) <= 0.5 * float(number.sum()):
        return run
    other = rerun(model.mirror(run.state))
    return other if not side_known or other.value > run.value else run


class NormalScores(NamedTuple):
    """Independent normal scores given the preferences: score model, means and variances, and flip rates."""

    items: ItemEffectScores
    means: Floats
    variances: Floats
    flip_rates: Floats


def estimate_spread(model: JointModel, state: State, *, tol: float) -> NormalScores:
    r"""Return the spread of the item effects and the flip rates that make the preferences most likely.

    Given the preferences, scores are taken as independent normal, with the means and variances that fit best. The
    spread is then :math:`\sqrt{\sum_i E[u_i^2] / n}`, and a flip rate the expected share of flipped preferences, from
    which new means and variances follow. The most probable scores alone would follow wrong preferences too closely:
    flip rates would be too low and, with few comparisons per item, the spread too small.
    """
    assert isinstance(model.items, ItemEffectScores)
    variances = np.full(len(state.parameters), model.items.spread**2)
    here = NormalScores(model.items, state.parameters, variances, state.flip_rates)
    logs = [float(np.log(here.items.spread))]
    for n in range(1, _MOST_SPREAD_STEPS + 1):
        before = here.flip_rates
        here = _normal_scores(model, here)
        logs.append(float(np.log(here.items.spread)))
        change = float(np.max(np.abs(here.flip_rates - before), initial=0.0))
        if n >= _LEAST_SPREAD_STEPS and abs(logs[-1] - logs[-2]) < _LOG_SPREAD_TOL and change <= tol:
            break
        if n % _STEPS_PER_LEAP == 0:
            logs[-1] = float(np.clip(logs[-1] + _extrapolation(logs), *np.log(_SPREAD_RANGE)))
            here = here._replace(items=replace(here.items, spread=float(np.exp(logs[-1]))))
    return here


def _normal_scores(model: JointModel, here: NormalScores) -> NormalScores:
    """Means, variances, flip rates and spread, each from the others as they were."""
    pairs, items, precision = model.pairs, here.items, here.items.spread**-2
    expected = pairs.expect(here.flip_rates, here.means, variances=here.variances)
    gradient = expected.gradient - precision * items.residuals(here.means)
    means = here.means + items.solve(pairs, expected, gradient)
    # single pairs may seem to curve the other way, which the other pairs of an item make up for
    variances = 1.0 / (np.maximum(expected.observed_degree, _LEAST_OBSERVED_SHARE * expected.degree) + precision)
    # halfway, since a large variance flattens the curvature that the next one comes from
    variances = np.sqrt(here.variances * variances)
    own = variances * (1.0 - (items.explained_directions**2).sum(axis=1))
    square = (float(means @ items.residuals(means)) + float(own[items.judged].sum())) / items.n_free
    spread = float(np.clip(np.sqrt(square), *_SPREAD_RANGE))
    flip_rates = model.prior.flip_rates(*pairs.expected_flips(expected, model.n_sources))
    return NormalScores(replace(items, spread=spread), means, variances, flip_rates)


def _extrapolation(logs: list[float]) -> float:
    """Sum of the steps that follow the last two if each is shorter in the same ratio."""
    first, last = logs[-2] - logs[-3], logs[-1] - logs[-2]
    ratio = last / first if first else 0.0
    return float(np.clip(last * ratio / (1 - ratio), -_LONGEST_LEAP, _LONGEST_LEAP)) if 0 < ratio < 1 else 0.0


class PairFit(NamedTuple):
    """A fitted model; source ``k * n_clusters + d`` is annotator ``k`` in cluster ``d`` of the pairs."""

    model: JointModel
    run: Run
    n_clusters: int

    @property
    def scores(self) -> Floats:
        """Score of each item, (n_items,)."""
        return self.model.items.scores(self.run.state.parameters)

    @property
    def weights(self) -> Floats:
        """Weight of each feature, none where features say nothing."""
        items, parameters = self.model.items, self.run.state.parameters
        return items.weights(parameters) if isinstance(items, ItemEffectScores) else parameters

    @property
    def probabilities(self) -> Floats:
        """Probability that the lower item of each pair is the better."""
        return self.model.pairs.probabilities(self.run.state.flip_rates, self.scores)

    def mean_leads(self) -> Floats:
        """Return each item's mean lead in probability over those it was compared with, 0 where there are none."""
        sums, number = self.model.pairs.leads(self.run.state.flip_rates, self.scores)
        means: Floats = sums / np.maximum(number, 1)
        return means

    def flip_rates(self, n_annotators: int) -> tuple[Floats, Floats]:
        """Return each annotator's flip rate, the mean over preferences, and the rate in each cluster.

        Annotators without preferences have the rate 1/2, and in a cluster without any the overall one.
        """
        pairs, shape = self.model.pairs, (-1, self.n_clusters)
        number = pairs.source_weights(self.model.n_sources).reshape(shape)[:n_annotators]
        rates = self.run.state.flip_rates.reshape(shape)[:n_annotators]
        total = number.sum(axis=1)
        means = np.divide((number * rates).sum(axis=1), total, out=np.full(n_annotators, 0.5), where=total > 0)
        return means, np.where(total[:, None] > 0, rates, 0.5)


@dataclass(frozen=True)
class JointFitter:
    """The stages of a fit: side, spread of the item effects, clusters.

    Parameters
    ----------
    n_clusters, folded, seed
        As for :func:`~crowdrank.models.joint_annotators.judged_pairs.cluster_pairs`; 1 means no clusters.
    cluster_alpha
        Number of preferences that an annotator's overall rate counts for in each cluster.
    tol, max_iter
        As for :meth:`JointModel.run`.
    what
        Name of the method, for warnings.
    report
        Called with the number of iterations done.
    """

    n_clusters: int | None
    folded: bool
    seed: int
    cluster_alpha: float
    tol: float
    max_iter: int
    what: str
    report: Callable[[int], None] | None = None

    def fit(self, judged: JudgedPairs, items: ScoreModel) -> PairFit:
        """Return the fit of judged pairs with scores from some model."""
        model = JointModel(judged.pairs, items, judged.prior)
        run = self._fit_side(model, judged.side_known)
        if isinstance(items, ItemEffectScores):
            model, run = self._fit_spread(model, run)
        if self.n_clusters == 1 or isinstance(items, EqualScores):
            return PairFit(model, run, 1)
        return self._fit_clusters(model, run, judged.prior.fixed)

    def _fit_side(self, model: JointModel, side_known: bool) -> Run:
        """A first fit, the right way round; a rough one where the spread is still to be found."""
        rough = isinstance(model.items, ItemEffectScores)

        def run(start: State) -> Run:
            if rough:
                return model.run(start, tol=max(self.tol, _ROUGH_TOL), max_iter=self.max_iter, report=self.report)
            return self._run(model, start)

        return choose_side(model, run(model.start()), side_known, run)

    def _run(self, model: JointModel, start: State) -> Run:
        """A run that warns if it does not converge."""
        return model.run(start, tol=self.tol, max_iter=self.max_iter, what=self.what, report=self.report)

    def _fit_spread(self, model: JointModel, run: Run) -> tuple[JointModel, Run]:
        """The most probable scores at the spread and the flip rates that are most likely over all scores."""
        best = estimate_spread(model, run.state, tol=self.tol)
        model = replace(model, items=best.items, prior=model.prior.fix_at(best.flip_rates))
        return model, _add_iterations(run, self._run(model, State(best.means, best.flip_rates)))

    def _fit_clusters(self, model: JointModel, run: Run, fixed: Floats) -> PairFit:
        """VRJAM: a flip rate in each cluster, drawn towards the annotator's overall rate."""
        items = model.items
        assert isinstance(items, FeatureScores | ItemEffectScores)
        cluster = cluster_pairs(model.pairs, items.matrix, self.n_clusters, folded=self.folded, seed=self.seed)
        n = self.n_clusters or int(cluster.max(initial=0)) + 1
        rates = np.repeat(run.state.flip_rates, n)
        prior = FlipPrior(self.cluster_alpha * rates, self.cluster_alpha * (1 - rates), np.repeat(fixed, n))
        model = replace(model, pairs=model.pairs.split_by_cluster(cluster, n), prior=prior)
        return PairFit(model, _add_iterations(run, self._run(model, State(run.state.parameters, rates))), n)


def _add_iterations(former: Run, run: Run) -> Run:
    """The run, with the iterations of a former one counted in."""
    return run._replace(trace=replace(run.trace, n_iter=former.trace.n_iter + run.trace.n_iter))


class Overruled(NamedTuple):
    """Share of pairs where scores and preferences together choose another item than preferences alone.

    ``observed`` in the fit, ``expected`` if the model were true, over ``n_pairs`` pairs.
    """

    observed: float
    expected: float
    n_pairs: int

    @property
    def clear(self) -> bool:
        """Whether the observed share is more than model and chance explain."""
        chance = float(np.sqrt(self.expected / max(self.n_pairs, 1)))
        return (
            self.n_pairs >= _LEAST_CHECKED_PAIRS
            and self.observed > _CLEAR_RATIO * self.expected + _CLEAR_STANDARD_ERRORS * chance
        )


def overruled_share(model: JointModel, state: State, *, seed: int) -> Overruled:
    """Return how often scores overrule the preferences, and how often they would if the model were true.

    Flip rates are estimated once more from preferences alone, for which pairs need two preferences. Other pairs are
    left out, and all of them where sources gave too few such preferences. If the model is true, the rates are the same
    but for chance; preferences are drawn from it for up to 20,000 pairs.
    """
    pairs, rng, scores = model.pairs, np.random.default_rng(seed), model.items.scores(state.parameters)
    flip_rates, several = state.flip_rates, np.diff(model.pairs.bounds) > 1
    chosen = np.flatnonzero(several[pairs.pattern]) if _enough_preferences(pairs, several) else np.empty(0, np.int64)
    chosen = chosen[:: -(-len(chosen) // _MOST_CHECKED_PAIRS) or 1]
    prior = (scores[pairs.first] - scores[pairs.second])[chosen]
    pattern = pairs.pattern[chosen]
    odds = model.pattern_odds(flip_rates)[pattern]
    alone = model.pattern_odds(_rates_without_scores(model, flip_rates, several))[pattern]
    place, pair = _preferences_of(pairs.bounds, pattern)
    source, weight = pairs.source[place], pairs.weight[place] if pairs.weight.size else np.ones(len(place))
    log_odds, shares = np.log1p(-flip_rates) - np.log(flip_rates), []
    for _ in range(_N_DRAWS):
        lower = rng.random(len(chosen)) < 0.5 + 0.5 * np.tanh(0.5 * prior)
        side = np.where(lower[pair] == (rng.random(len(place)) >= flip_rates[source]), 1.0, -1.0)
        drawn = np.bincount(pair, weight * side * log_odds[source], len(chosen)).astype(np.float64, copy=False)
        shares.append(_share_apart(prior + drawn, drawn))
    return Overruled(_share_apart(prior + odds, alone), float(np.mean(shares)), len(chosen))


def _enough_preferences(pairs: PairPatterns, several: Bools) -> bool:
    """Whether sources gave enough preferences on pairs with several to estimate their flip rates from these."""
    number = np.bincount(pairs.source, pairs.total_weight * several[pairs.owner])
    return bool(number.sum() >= _LEAST_PREFERENCES_PER_SOURCE * np.count_nonzero(number))


def _rates_without_scores(model: JointModel, flip_rates: Floats, several: Bools) -> Floats:
    """Flip rates by the patterns with several preferences, at equal scores."""
    pairs = replace(model.pairs, number=np.where(several, model.pairs.number, 0.0))
    known = flip_rates <= KNOWN_FLIP_RATE
    prior = model.prior._replace(fixed=np.where(known, flip_rates, np.nan))
    equal = JointModel(pairs, EqualScores(len(pairs.starts) - 1), prior)
    # from the usual start, the same way round: the rates of the model may be far off
    start = np.where(known, flip_rates, np.where(flip_rates < 0.5, START_FLIP_RATE, 1 - START_FLIP_RATE))
    return equal.run(State(np.empty(0), start), tol=_CHECK_TOL, max_iter=_MOST_CHECK_ITERATIONS).state.flip_rates


def _preferences_of(bounds: Counts, pattern: Ints) -> tuple[Counts, Counts]:
    """Places of the preferences of each of some patterns, and which of the patterns each belongs to."""
    sizes = np.diff(bounds)[pattern]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(pattern)), sizes)
    return bounds[pattern][owner] + np.arange(ends[-1]) - ends[:-1][owner], owner


def _share_apart(together: Floats, alone: Floats) -> float:
    """Share of pairs where the two choose different items."""
    return float(np.mean(np.sign(together) * np.sign(alone) < 0)) if len(alone) else 0.0
