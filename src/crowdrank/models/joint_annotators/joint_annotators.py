"""JAM and VRJAM: the better item of each pair from preferences and features, with a flip rate per annotator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from ...data.consensus import Consensus, Quality, Trace
from ...data.features import Features
from ...data.joint_fit import JointFit, PairPosteriors
from ...data.judgments import Preferences, expect
from ...errors import DataWarning, ParameterError
from ...fitting import warn_unconverged
from ...protocols import BlockFit, Blocks, Bools, Counts, Floats, Ints, Progress, Statistics
from ...quality import trusted_annotators, warn_near_chance
from ...wording import expect_above, expect_at_least, expect_choices, method_label, option
from .judged_pairs import (
    KNOWN_FLIP_RATE,
    START_FLIP_RATE,
    EqualScores,
    FeatureScores,
    FlipPrior,
    ItemEffectScores,
    ItemFeatures,
    JudgedPairs,
    ScoreModel,
    cluster_pairs,
    flip_prior,
    patterns_of,
)

if TYPE_CHECKING:
    from .kernels.pair_patterns import Expectation, PairPatterns


_LOSSES = ("logistic", "hinge")
_CLUSTERINGS = ("folded", "raw")
_START_SPREAD = 2.0
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

# threshold (refused): pairs whose probabilities `joint_annotators` keeps in parts
_MOST_PAIRS = 5_000_000
"""Pairs of whom the result of a fit over blocks keeps how sure they are; of more it keeps none."""


@dataclass(frozen=True, kw_only=True)
class JointAnnotators:
    r"""JAM and VRJAM: EM over the better item of each pair, a linear ranker and a flip rate per annotator.

    Before any preference, item :math:`i` is better than item :math:`j` of the same query with probability

    .. math:: P(z_{ij} = 1) = \sigma(s_i - s_j), \qquad s_i = w \cdot x_i + u_i, \qquad u_i \sim N(0, \tau^2),

    where :math:`x_i` are the features of an item, :math:`w` their weights and :math:`u_i` an effect of the item that
    features do not explain. Annotator :math:`k` reports the better item, or with probability :math:`r_k`, the flip
    rate, the other one. EM over the hidden :math:`z` estimates weights, item effects, their spread :math:`\tau` and
    flip rates together. Without :math:`u` (``item_effects=False``) this is JAM [Gupta16]_. With ``n_clusters`` above 1
    pairs are clustered by :math:`x_i - x_j`, and annotators have a rate :math:`r_k^d` in each cluster: VRJAM.

    Scores are :math:`s`. Items with features but no judgment have :math:`w \cdot x`, which is also how the ranker
    scores any item. The posterior probability of each pair is in ``pairs`` of the result.

    When to use
    -----------
    Use it for preferences on items with features that predict the order. With few preferences per item the features do
    most of the work; where features predict nothing use ``crowd_bt``.

    Parameters
    ----------
    item_effects
        Whether items have an effect of their own besides their features.
    n_clusters
        Number of clusters of pairs; ``None`` finds one between 2 and 16.
    clustering
        ``"folded"``: a difference and its negative are the same; ``"raw"``: as printed in the paper, where the cluster
        depends on which item of a pair comes first.
    loss
        ``"logistic"``: the likelihood of the model; ``"hinge"``: the paper's smoothed hinge for the weights, which
        requires ``item_effects=False``.
    alpha
        Number of judgments in the prior of each flip rate, three in ten of them flipped; raise it where annotators
        judge little.
    cluster_alpha
        Number of judgments that an annotator's overall rate counts for in each cluster; raise it where pairs are few.
    ridge
        Pull of the weights of scaled features towards 0, as precision of a normal prior; raise it where pairs are few
        or features many.
    tol
        Largest change of a flip rate in the last iteration, and largest root of the log-likelihood per pair that is
        still to be gained; raise it to stop earlier.
    max_iter
        Largest number of iterations at one spread; raise it where a warning says that the fit did not converge.
    seed
        Decides where clusters start, and which pairs they are found from if there are more than 30,000.

    Notes
    -----
    Ties count as no preference; a pair that was only tied is decided by its features. Two preferences of an annotator
    on one pair count as two, and a weight of 2 counts the same.

    The paper's formulas are used as they are meant: flip rates are the expected share of flipped preferences (its
    equations 19 and 24 minimise what has to be maximised), and weights have a ridge. Features are standardised within
    queries. The trace has the log-likelihood with priors, which never falls with the logistic loss.

    Reversed scores with reversed flip rates explain preferences equally well. The first E-step is the majority vote,
    and if most preferences come out flipped, everything is reversed. With ``trusted=`` annotators, whose prior is 95
    right preferences and 5 flipped ones, or with ``known=`` pairs, the more likely of the two sides is taken.

    With item effects, spread and flip rates maximise the likelihood of the preferences averaged over the scores, which
    are taken as independent and normal. The spread, between 0.05 and 4, is in ``estimates`` of the consensus. The
    scores are the most probable ones given both, and the trace is theirs.

    A warning is given if scores overrule preferences more often than they would under the model. Of all pairs of
    red wines, judged by six simulated annotators, 0.9997 come out right with item effects and 0.988 without. Of digits
    judged by five weak classifiers, whose errors follow the features, it is 0.819 and 0.813 against 0.823 by majority.

    Without features, or if none of them varies, all items start equal: one-coin Dawid-Skene on pairs
    [DawidSkene79]_. An item's score is then its mean lead in probability over those it was compared with.

    Quality is :math:`1 - r_k`, the mean over judgments where there are clusters; ``flip`` is :math:`r_k` and
    ``cluster_flip`` has a column for each cluster.

    Examples
    --------
    >>> from itertools import combinations
    >>> features = Features.from_frame({"query": ["q"] * 6, "item": list("uvwxyz"), "length": [9, 7, 8, 4, 3, 1]})
    >>> order = {"ann": "uvwxyz", "bob": "uwvxzy", "cy": "zyxwvu"}
    >>> rows = [(who, "q", *pair, "left") for who, items in order.items() for pair in combinations(items, 2)]
    >>> fit = JointAnnotators().fit(Preferences.from_rows(rows), features)
    >>> fit.consensus.order(), fit.quality.quality.round(1).tolist()
    (['u', 'v', 'w', 'x', 'y', 'z'], [1.0, 0.9, 0.0])
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    precision: ClassVar[float] = 1e-8
    item_effects: bool = True
    n_clusters: int | None = 1
    clustering: str = "folded"
    loss: str = "logistic"
    alpha: float = 1.0
    cluster_alpha: float = 50.0
    ridge: float = 1e-3
    tol: float = 1e-4
    max_iter: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        expect_choices(self, loss=_LOSSES, clustering=_CLUSTERINGS)
        if self.loss == "hinge" and self.item_effects:
            raise ParameterError("loss='hinge' has no likelihood to estimate item effects with; set item_effects=False")
        expect_at_least(self, 1, "n_clusters", hint="use None to have their number found")
        expect_at_least(self, 0, "alpha", "cluster_alpha")
        expect_above(self, 0, "ridge", hint="use a small one such as 1e-9 for none")
        expect_at_least(self, 1, "max_iter")

    def fit(
        self,
        judgments: Preferences,
        features: Features | None = None,
        *,
        known: Any | None = None,
        trusted: Any | None = None,
        progress: Progress | None = None,
    ) -> JointFit:
        """Return consensus, quality, probabilities of pairs, and a linear ranker.

        Parameters
        ----------
        judgments
            Preferences; grades and rankings have ``as_preferences()``.
        features
            Features of items, judged or not; ``None`` uses preferences alone.
        known
            Pairs whose better item is certain, as a table of query, left, right and winner, or a truth; or items with
            grades or ranks, by which judged pairs are certain.
        trusted
            Ids of annotators known to be good.
        progress
            Called with the iterations done.
        """
        from ...kernels.threads import one_blas_thread

        expect(judgments, self)
        pairs = JudgedPairs.of(judgments, known, trusted, self.alpha)
        table = None if features is None or not len(judgments) else ItemFeatures.of(features, judgments)
        given = np.bincount(judgments.annotator, judgments.weight, judgments.n_annotators).astype(np.float64)
        with one_blas_thread():
            fit, consensus = self._consensus(judgments, pairs, table, given, slice(None), progress)
        self.warn_overruled(fit.model, fit.run.state)
        first, second = fit.model.pairs.first, fit.model.pairs.second
        posteriors = PairPosteriors(judgments.items, first, second, fit.probabilities)
        return _joint_fit(judgments, features, table, fit, consensus, posteriors)

    def over_blocks(
        self,
        judged: Any,
        *,
        features: Features | None = None,
        known: Any | None = None,
        trusted: Any | None = None,
        progress: Progress | None = None,
    ) -> BlockFit:
        """Return the fit over blocks of preferences, with one rate for each annotator.

        Items are in the order of the blocks, which own them by query: what a step finds of items is put side by side,
        what it finds of annotators is added. Scores and features of items stay with the caller.
        """
        name = method_label(self)
        if judged.by != "query":
            raise ParameterError(f"{name} needs preferences packed by query, and these are packed by annotator")
        if known is not None:
            raise ParameterError(
                f"{name} takes no {option('known')} in parts; leave it out, or name {option('trusted')}"
            )
        if self.n_clusters != 1:
            raise ParameterError(
                f"{name} finds clusters among all pairs at once; in parts leave {option('params', 'n_clusters')} out"
            )
        return BlockFit(_lay_out, partial(self._solve, judged, features, trusted, progress), _join)

    def _solve(
        self, judged: Any, features: Features | None, trusted: Any | None, progress: Progress | None, blocks: Blocks
    ) -> JointFit:
        """Consensus, quality and a linear ranker from all blocks."""
        counts: Floats = np.array(blocks.each(_counts), np.float64).reshape(-1, 2)
        weights, given = blocks.total(partial(_survey, max(judged.n_annotators, 1)))
        bounds = np.concatenate([[0], np.cumsum(counts[:, 0])]).astype(np.int64)
        pairs: Any = BlockPairs(blocks, bounds, counts[:, 1].astype(np.int64), weights)
        good = trusted_annotators(judged, trusted)
        good = np.append(good, np.zeros(len(weights) - len(good), bool))
        everything = JudgedPairs(pairs, flip_prior(good, self.alpha, len(good)), len(good), bool(good.any()))
        order = np.concatenate([judged.item_codes(number) for number in range(len(counts))])
        table = None if features is None else ItemFeatures.of(features, judged)
        fit, consensus = self._consensus(judged, everything, table, given, order, progress)
        if not isinstance(fit.model.items, EqualScores):
            self.warn_overruled(*pairs.largest_block(fit))
        posteriors = None
        if pairs.n_pairs <= _MOST_PAIRS:
            posteriors = PairPosteriors(judged.items, *pairs.probabilities_of_all(fit, order))
        return _joint_fit(judged, features, table, fit, consensus, posteriors)

    def _consensus(
        self,
        judged: Any,
        pairs: JudgedPairs,
        table: ItemFeatures | None,
        given: Floats,
        order: Any,
        progress: Progress | None,
    ) -> tuple[PairFit, Consensus]:
        """The fit and its consensus; ``given`` are the judgments of each annotator.

        ``order`` has the code of each item in the order of the pairs.
        """
        centred = None if table is None else table.centre_by_query(judged.judged_items, judged.items.offsets)[order]
        seen = judged.judged_items[order]
        fit = self._fit_pairs(pairs, self.score_model(seen, centred), progress)
        _warn_unidentified(judged, pairs, fit)
        if isinstance(fit.model.items, EqualScores) or centred is None:
            of_items = fit.mean_leads()
        else:
            of_items = np.where(seen, fit.scores, centred @ fit.weights)
        scores = np.empty(len(of_items))
        scores[order] = of_items
        quality = None
        if judged.n_annotators:
            flip, by_cluster = fit.flip_rates(pairs.n_annotators)
            more = {"cluster_flip": by_cluster} if fit.n_clusters > 1 else {}
            quality = Quality(judged.annotators, 1.0 - flip, given, {"flip": flip, **more})
        estimates = {"spread": fit.model.items.spread} if isinstance(fit.model.items, ItemEffectScores) else {}
        if fit.n_clusters > 1:
            estimates["n_clusters"] = fit.n_clusters
        return fit, Consensus.of(self, judged, scores, trace=fit.run.trace, quality=quality, estimates=estimates)

    def score_model(self, judged: Bools, centred: Floats | None) -> ScoreModel:
        """Return where the scores come from."""
        matrix = None if centred is None else np.where(judged[:, None], centred, 0.0)
        if matrix is None or not matrix.any():
            return EqualScores(len(judged))
        if self.item_effects:
            return ItemEffectScores(matrix, self.ridge, _START_SPREAD, judged)
        return FeatureScores(matrix, self.ridge, self.loss == "hinge")

    def fitter(self, progress: Progress | None) -> Callable[..., Run]:
        """Return :meth:`JointModel.run` with these parameters."""

        def report(n: int) -> None:
            if progress is not None:
                progress(n, self.max_iter, "joint_annotators")

        return partial(JointModel.run, tol=self.tol, max_iter=self.max_iter, what="joint_annotators", report=report)

    def _fit_pairs(self, judged: JudgedPairs, items: ScoreModel, progress: Progress | None) -> PairFit:
        """The stages of a fit: side, spread of the item effects, clusters."""
        model, run = JointModel(judged.pairs, items, judged.prior), self.fitter(progress)
        # a rough fit where the spread is still to be found
        rough = {"tol": max(self.tol, _ROUGH_TOL), "what": ""} if isinstance(items, ItemEffectScores) else {}
        best = run(model, model.start(), **rough)
        best = choose_side(model, best, judged.side_known, lambda start: run(model, start, **rough))
        if isinstance(items, ItemEffectScores):
            # the most probable scores at the spread and the flip rates that are most likely over all scores
            normal = estimate_spread(model, best.state, tol=self.tol)
            model = replace(model, items=normal.items, prior=model.prior._replace(fixed=normal.flip_rates))
            best = _add_iterations(best, run(model, State(normal.means, normal.flip_rates)))
        if self.n_clusters == 1 or isinstance(items, EqualScores):
            return PairFit(model, best, 1)
        # VRJAM: a flip rate in each cluster, drawn towards the annotator's overall rate
        assert isinstance(model.items, FeatureScores | ItemEffectScores)
        folded = self.clustering == "folded"
        cluster = cluster_pairs(model.pairs, model.items.matrix, self.n_clusters, folded=folded, seed=self.seed)
        n, alpha = self.n_clusters or int(cluster.max(initial=0)) + 1, self.cluster_alpha
        rates = np.repeat(best.state.flip_rates, n)
        prior = FlipPrior(alpha * rates, alpha * (1 - rates), np.repeat(judged.prior.fixed, n))
        model = replace(model, pairs=model.pairs.split_by_cluster(cluster, n), prior=prior)
        return PairFit(model, _add_iterations(best, run(model, State(best.state.parameters, rates))), n)

    def warn_overruled(self, model: JointModel, state: State) -> None:
        """Warn where scores overrule preferences more often than under the model."""
        if isinstance(model.items, EqualScores):
            return
        share = overruled_share(model, state, seed=self.seed)
        if share.clear:
            instead = "leave the features out" if self.item_effects else "set item_effects=True, or leave them out"
            warnings.warn(
                f"joint_annotators: the features overrule the preferences on {share.observed:.1%} of the pairs, where "
                f"{share.expected:.1%} would be usual: annotators' errors seem to follow the features; {instead}",
                DataWarning,
                stacklevel=3,
            )


def _joint_fit(
    judged: Any,
    features: Features | None,
    table: ItemFeatures | None,
    fit: PairFit,
    consensus: Consensus,
    posteriors: PairPosteriors | None,
) -> JointFit:
    """The result, with the weights as a ranker where there are features."""
    ranker, used = None, judged.judged_items
    if features is not None and table is not None:
        from ...rankers.linear import LinearScore

        weights = fit.weights if fit.weights.size else np.zeros(len(features.names))
        ranker = LinearScore.of(features.names, table.scaling, weights, fit.run.trace)
        used = used & (table.row >= 0)
    return JointFit(
        method="joint_annotators",
        ranker=ranker,
        consensus=consensus,
        n_items=int(used.sum()),
        n_queries=len(np.unique(judged.items.query[used])),
        n_unjudged=0 if features is None else len(features) - int(used.sum()),
        pairs=posteriors,
    )


def _warn_unidentified(judgments: Any, pairs: JudgedPairs, fit: PairFit) -> None:
    """Warn of annotators whose quality the preferences do not identify."""
    number = pairs.n_preferences
    silent = number == 0
    if judgments.n_annotators and silent.any():
        names = judgments.annotators.ids.filter(pl.Series(silent)).head(5).to_list()
        warnings.warn(
            f"{int(silent.sum()):,} annotators named no better item (ties do not count), so their quality is unknown: "
            f"{', '.join(map(repr, names))}",
            DataWarning, stacklevel=4,
        )  # fmt: skip
    if pairs.side_known or not number.any():
        return
    if int((~silent).sum()) == 1:
        basis = "is estimated from the features alone" if fit.weights.size else "cannot be estimated"
        warnings.warn(
            f"only one annotator: the flip rate {basis}; add judgments of others, or known= pairs",
            DataWarning, stacklevel=4,
        )  # fmt: skip
    else:
        warn_near_chance("joint_annotators", 1.0 - fit.flip_rates(pairs.n_annotators)[0], number)


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


# Blocks


class _PairBlock(NamedTuple):
    """A block: its number, its pairs, number of items, and the weight of each annotator's preferences."""

    number: int
    pairs: PairPatterns
    n_items: int
    given: Floats


def _lay_out(part: tuple[int, Preferences]) -> _PairBlock:
    """The pairs of a block, which comes with its number."""
    number, preferences = part
    given = np.bincount(preferences.annotator, preferences.weight, preferences.n_annotators).astype(np.float64)
    return _PairBlock(number, patterns_of(preferences), preferences.n_items, given)


def _join(first: Statistics, second: Statistics) -> Statistics:
    """Two statistics together: tables of items side by side, the rest added."""
    return tuple(
        np.concatenate([one, other], axis=1) if isinstance(one, np.ndarray) and one.ndim == 2 else one + other
        for one, other in zip(first, second, strict=True)
    )


class BlockExpectation(NamedTuple):
    """Sums over the pairs of all blocks; see :class:`~.kernels.pair_patterns.Expectation`.

    ``flipped`` (n_sources,) is the expected weight of each source's flipped preferences. The curvature of the pairs is
    the state of the blocks, as the last step left it.
    """

    log_likelihood: float
    gradient: Floats
    degree: Floats
    observed_degree: Floats
    flipped: Floats


@dataclass(frozen=True, eq=False)
class BlockPairs:
    """The pairs of all blocks, as the steps of the method ask for them.

    ``bounds`` (n_blocks + 1,) are those of the items of the blocks, ``pairs_of_blocks`` (n_blocks,) their pairs, and
    ``weights`` (n_sources,) is the weight of each source's preferences. In memory the steps ask the patterns of pairs
    themselves, whose curvature need not be kept between two steps.
    """

    blocks: Blocks
    bounds: Counts
    pairs_of_blocks: Counts
    weights: Floats

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self.pairs_of_blocks.sum())

    def _total(self, function: Callable[..., Any], *given: Any) -> Statistics:
        """The total of a step: a function of a block, its state, the place of its items, and what is given."""
        return self.blocks.total(partial(_ask, function, self.bounds, given))

    def expect(
        self,
        flip_rates: Floats,
        scores: Floats,
        *,
        equal: bool = False,
        hinge: bool = False,
        variances: Floats | None = None,
    ) -> BlockExpectation:
        """Return the sums over pairs at flip rates and scores (E-step)."""
        value, flipped, of_items = self._total(_expect, flip_rates, scores, equal, hinge, variances)
        gradient, degree, observed_degree = of_items
        return BlockExpectation(float(value), gradient, degree, observed_degree, flipped)

    def expected_flips(self, here: BlockExpectation, n_sources: int) -> tuple[Floats, Floats]:
        """Return the expected weight of each source's flipped preferences, and the weight of all of them."""
        return here.flipped, self.weights

    def curvature(self, here: BlockExpectation) -> tuple[Any, Any]:
        """Return what multiplies a vector, and columns side by side, by the curvature that blocks keep."""

        def products(columns: Floats) -> Floats:
            images: Floats = self._total(_multiply, columns, here.degree)[0].T
            return images

        return lambda vector: products(vector[:, None])[:, 0], products

    def source_weights(self, n_sources: int) -> Floats:
        """Return the weight of all preferences of each source, (n_sources,)."""
        return self.weights

    def leads(self, flip_rates: Floats, scores: Floats) -> tuple[Floats, Floats]:
        """Return the sum of each item's leads in probability over those it was compared with, and their number."""
        sums, number = self._total(_leads, flip_rates, scores)[0]
        return sums, number

    def largest_block(self, fit: PairFit) -> tuple[JointModel, State]:
        """Return the fit as it is in the block with most pairs."""
        number = int(np.argmax(self.pairs_of_blocks))
        scores = fit.scores[slice(*self.bounds[number : number + 2])]
        # all blocks are asked
        pairs = [some for (some,) in self.blocks.read(partial(_pairs_of, number))][number]
        items = ItemEffectScores(np.zeros((len(scores), 0)), 1.0, 1.0, np.ones(len(scores), bool))
        return JointModel(pairs, items, fit.model.prior), State(scores, fit.run.state.flip_rates)

    def probabilities_of_all(self, fit: PairFit, order: Counts) -> tuple[Ints, Ints, Floats]:
        """Return both items of each pair by their codes, rising, and how sure it is."""
        columns: tuple[list[Any], ...] = ([], [], [])
        step = partial(_ask, _probabilities, self.bounds, (fit.run.state.flip_rates, fit.scores))
        for begin, (first, second, probability) in zip(self.bounds, self.blocks.read(step), strict=False):
            for column, values in zip(columns, (order[first + begin], order[second + begin], probability), strict=True):
                column.append(values)
        left, right, chance = (np.concatenate(column) for column in columns)
        by_pair = np.lexsort((right, left))
        return left[by_pair].astype(np.int32), right[by_pair].astype(np.int32), chance[by_pair]


def _ask(function: Any, bounds: Counts, given: tuple[Any, ...], part: _PairBlock, state: Any) -> tuple[Statistics, Any]:
    """What a function finds in a part, given the place of its items among all."""
    answer: tuple[Statistics, Any] = function(part, state, slice(*bounds[part.number : part.number + 2]), *given)
    return answer


def _counts(part: _PairBlock, state: Any) -> tuple[Statistics, Any]:
    """Number of items and pairs of a part."""
    return (float(part.n_items), float(part.pairs.n_pairs)), None


def _survey(n_sources: int, part: _PairBlock, state: Any) -> tuple[Statistics, Any]:
    """Weight of each source's preferences, without ties and with them."""
    return (part.pairs.source_weights(n_sources), part.given), None


def _expect(
    part: _PairBlock, state: Any, place: slice, flip_rates: Floats, scores: Floats, equal: bool, hinge: bool,
    variances: Floats | None,
) -> tuple[Statistics, Any]:  # fmt: skip
    """Sums over the pairs of a part; their curvature becomes its state."""
    spread = None if variances is None else variances[place]
    here = part.pairs.expect(flip_rates, scores[place], equal=equal, hinge=hinge, variances=spread)
    flipped = part.pairs.expected_flips(here, len(flip_rates))[0]
    of_items = np.stack([here.gradient, here.degree, here.observed_degree])
    return (here.log_likelihood, flipped, of_items), None if equal else (here.curvature,)


def _multiply(
    part: _PairBlock, state: Any, place: slice, columns: Floats, degree: Floats
) -> tuple[Statistics, Any]:  # fmt: skip
    """The curvature that a part keeps times columns, one row for each."""
    (curvature,) = state
    product = part.pairs.products(curvature, degree[place])(np.ascontiguousarray(columns[place]))
    return (np.ascontiguousarray(product.T),), None


def _leads(part: _PairBlock, state: Any, place: slice, flip_rates: Floats, scores: Floats) -> tuple[Statistics, Any]:
    """Sums of leads of a part's items, and their numbers."""
    return (np.stack(part.pairs.leads(flip_rates, scores[place])),), None


def _probabilities(
    part: _PairBlock, state: Any, place: slice, flip_rates: Floats, scores: Floats
) -> tuple[tuple[Ints, Ints, Floats], Any]:
    """Both items of each pair of a part, by their number in it, and how sure it is."""
    return (part.pairs.first, part.pairs.second, part.pairs.probabilities(flip_rates, scores[place])), None


def _pairs_of(number: int, part: _PairBlock, state: Any) -> tuple[Statistics, Any]:
    """The pairs of one of the parts, nothing of the others."""
    return (part.pairs if part.number == number else None,), None
