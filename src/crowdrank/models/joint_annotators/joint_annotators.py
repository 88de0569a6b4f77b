"""JAM and VRJAM: the better item of each pair from preferences and features, with a flip rate per annotator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from scipy.special import expit

from ...data.consensus import Consensus, Quality, Trace
from ...data.features import Features
from ...data.joint_fit import JointFit, PairPosteriors
from ...data.judgments import Judgments, Preferences, expect
from ...data.naming import first_ids
from ...data.truth import Truth
from ...errors import DataWarning, JudgmentError, ParameterError
from ...fitting import OneBlock, warn_unconverged
from ...protocols import BlockFit, Blocks, Bools, Counts, Floats, Ints, Outcomes, Progress, Statistics, StepResult
from ...quality import TRUSTED, trusted_annotators, warn_near_chance
from ...wording import expect_above, expect_at_least, expect_choices, method_label, option

if TYPE_CHECKING:
    from ...rankers.training_rows import Scaling
    from .kernels.pair_patterns import PairPatterns


_LOSSES = ("logistic", "hinge")
_CLUSTERINGS = ("folded", "raw")
_SOLVERS = ("newton", "printed")

_START_FLIP_RATE = 0.3
"""First guess of every flip rate: at equal scores the first E-step is then the majority vote."""

_PRINTED_SPREAD = 0.01
"""Standard deviation of the random first weights of printed steps."""

_KNOWN_FLIP_RATE = 1e-15
"""Flip rate of the source that stands for known pairs."""

_LEAST_FLIP_RATE = 1e-3
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

_MOST_CLUSTERS = 16
_MOST_SAMPLED_PAIRS = 30_000
_MOST_ITERATIONS = 100
_CLOSE_SHARE = 0.5
"""Two centres are close if nearer than this share of the mean distance."""

_LONGEST_WEIGHT_STEP = 5.0
_MOST_SOLVED_FEATURES = 32
"""Up to this many features the Newton step solves the whole matrix; above, it takes conjugate gradients."""

_GRADIENT_ACCURACY = 0.1
"""Conjugate gradients stop at this share of the gradient: the next Newton step corrects the rest."""


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
        Decides where clusters start, which pairs they are found from if there are more than 30,000, and where printed
        steps start.
    solver
        ``"newton"``: Newton steps of the weights; ``"printed"``: gradient steps at a fixed rate on features as they
        are, from random weights and flip rates, as in [Gupta16]_, which requires ``item_effects=False``.
    learning_rate
        Length of the printed steps per unit of the mean gradient over pairs.

    Notes
    -----
    ``jam-paper`` and ``vrjam-paper`` have the hinge, printed steps and no priors; which of two mirror images is right
    is still decided by the majority. The paper gives neither rate nor number of steps nor how the start is drawn:
    weights are normal here with standard deviation 0.01, flip rates uniform. Too large a rate for the features' scale
    ends far from the maximum, where features overrule preferences.

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
    ``cluster_flip`` has a column for each cluster; ``fit.pairs.frame()`` says which cluster each pair is in.

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
    solver: str = "newton"
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        expect_choices(self, loss=_LOSSES, clustering=_CLUSTERINGS, solver=_SOLVERS)
        if self.solver == "printed" and self.item_effects:
            raise ParameterError("solver='printed' has no item effects; set item_effects=False")
        expect_above(self, 0, "learning_rate")
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
        truth = None if known is None else _known_pairs(known, judgments)
        with one_blas_thread():
            blocks = OneBlock(_lay_out((0, judgments), truth))
            return self._solve(judgments, features, trusted, progress, blocks, has_known=truth is not None)

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
        self,
        judged: Any,
        features: Features | None,
        trusted: Any | None,
        progress: Progress | None,
        blocks: Blocks,
        *,
        has_known: bool = False,
    ) -> JointFit:
        """Consensus, quality and a linear ranker; known pairs are the preferences of one source more."""
        n, in_memory = max(judged.n_annotators, 1), isinstance(judged, Preferences)
        pairs = JudgedPairs.of(blocks, n + has_known)
        good = trusted_annotators(judged, trusted)
        good = np.append(good, np.zeros(n - len(good), bool))
        # the code of each item in the order of the blocks, which own them by query
        order: Any = slice(None)
        if not in_memory:
            order = np.concatenate([judged.item_codes(number) for number in range(judged.n_parts)])
        used, of_features, centred = judged.judged_items, None, None
        seen = used[order]
        if features is not None and judged.n_judgments:
            of_features = _item_features(features, judged, "overall" if self.solver == "newton" else "none")
            centred = of_features[2][order]
        model = JointModel(pairs, self._score_model(seen, centred), FlipPrior.of(good, self.alpha, n + has_known))
        side_known = has_known or bool(good.any())
        fit = self._fit_pairs(model, side_known, progress)
        flip, by_cluster = fit.flip_rates(n)
        _warn_unidentified(judged, pairs.weights[:n], side_known, fit, flip)
        if fit.model.items.loss == "equal" or centred is None:
            leads, number = fit.model.pairs.leads(fit.run.state.flip_rates, fit.scores)
            of_items = leads / np.maximum(number, 1)
        else:
            of_items = np.where(seen, fit.scores, centred @ fit.weights)
        scores = np.empty(len(of_items))
        scores[order] = of_items
        quality = None
        if judged.n_annotators:
            more = {"cluster_flip": by_cluster} if fit.n_clusters > 1 else {}
            quality = Quality(judged.annotators, 1.0 - flip, pairs.given, {"flip": flip, **more})
        estimates = {"spread": fit.model.items.spread} if isinstance(fit.model.items, ItemEffectScores) else {}
        if fit.n_clusters > 1:
            estimates["n_clusters"] = fit.n_clusters
        consensus = Consensus.of(self, judged, scores, trace=fit.run.trace, quality=quality, estimates=estimates)
        if fit.model.items.loss != "equal":
            self._warn_overruled(fit)
        posteriors = None
        if in_memory or pairs.n_pairs <= _MOST_PAIRS:
            probabilities = fit.model.pairs.probabilities(fit.run.state.flip_rates, fit.scores, order)
            posteriors = PairPosteriors(judged.items, *probabilities, fit.cluster)
        ranker = None
        if features is not None and of_features is not None:
            from ...rankers.estimator import LinearScore

            row, scaling, _ = of_features
            weights = fit.weights if fit.weights.size else np.zeros(len(features.names))
            ranker = LinearScore.of(features.names, scaling, weights, fit.run.trace)
            used = used & (row >= 0)
        return JointFit(
            method="joint_annotators",
            ranker=ranker,
            consensus=consensus,
            n_items=int(used.sum()),
            n_queries=len(np.unique(judged.items.query[used])),
            n_unjudged=0 if features is None else len(features) - int(used.sum()),
            pairs=posteriors,
        )

    def _score_model(self, judged: Bools, centred: Floats | None) -> ScoreModel:
        """Where the scores come from: features and item effects, features alone, or nothing, so that all are equal."""
        matrix = np.empty((len(judged), 0)) if centred is None else np.where(judged[:, None], centred, 0.0)
        if not matrix.any():
            return FeatureScores(matrix[:, :0], self.ridge, "equal")
        if self.item_effects:
            return ItemEffectScores(matrix, self.ridge, _START_SPREAD, judged)
        printed = PrintedSteps(self.learning_rate, self.seed) if self.solver == "printed" else None
        return FeatureScores(matrix, self.ridge, self.loss, printed)

    def _fit_pairs(self, model: JointModel, side_known: bool, progress: Progress | None) -> PairFit:
        """The stages of a fit: side, spread of the item effects, clusters."""

        def report(n: int) -> None:
            if progress is not None:
                progress(n, self.max_iter, "joint_annotators")

        items, fixed = model.items, model.prior.fixed
        run = partial(JointModel.run, tol=self.tol, max_iter=self.max_iter, what="joint_annotators", report=report)
        # a rough fit where the spread is still to be found
        rough: dict[str, Any] = {}
        if isinstance(items, ItemEffectScores):
            rough = {"tol": max(self.tol, _ROUGH_TOL), "what": ""}
        best = run(model, model.start(), **rough)
        best = choose_side(model, best, side_known, lambda start: run(model, start, **rough))
        if isinstance(items, ItemEffectScores):
            # the most probable scores at the spread and the flip rates that are most likely over all scores
            normal = estimate_spread(model, best.state, tol=self.tol)
            model = replace(model, items=normal.items, prior=model.prior._replace(fixed=normal.flip_rates))
            best = _add_iterations(best, run(model, State(normal.means, normal.flip_rates)))
        if self.n_clusters == 1 or items.loss == "equal":
            return PairFit(model, best, 1)
        # VRJAM: a flip rate in each cluster, drawn towards the annotator's overall rate
        patterns, folded = model.pairs.patterns(0), self.clustering == "folded"
        cluster = cluster_pairs(patterns, items.matrix, self.n_clusters, folded=folded, seed=self.seed)
        n, alpha = self.n_clusters or int(cluster.max(initial=0)) + 1, self.cluster_alpha
        rates = np.repeat(best.state.flip_rates, n)
        pairs = JudgedPairs.in_memory(patterns.split_by_cluster(cluster, n), len(rates))
        model = replace(model, pairs=pairs, prior=FlipPrior(alpha * rates, alpha * (1 - rates), np.repeat(fixed, n)))
        return PairFit(model, _add_iterations(best, run(model, State(best.state.parameters, rates))), n, cluster)

    def _warn_overruled(self, fit: PairFit) -> None:
        """Warn where scores overrule preferences more often than under the model, in the block with most pairs."""
        share = overruled_share(fit, seed=self.seed)
        if share.clear:
            instead = "leave the features out" if self.item_effects else "set item_effects=True, or leave them out"
            warnings.warn(
                f"joint_annotators: the features overrule the preferences on {share.observed:.1%} of the pairs, where "
                f"{share.expected:.1%} would be usual: annotators' errors seem to follow the features; {instead}",
                DataWarning,
                stacklevel=4,
            )


def _warn_unidentified(judged: Any, number: Floats, side_known: bool, fit: PairFit, flip: Floats) -> None:
    """Warn of annotators whose quality the preferences, so many of each, do not identify."""
    silent = number == 0
    if judged.n_annotators and silent.any():
        names = judged.annotators.ids.filter(pl.Series(silent)).head(5).to_list()
        warnings.warn(
            f"{int(silent.sum()):,} annotators named no better item (ties do not count), so their quality is unknown: "
            f"{', '.join(map(repr, names))}",
            DataWarning,
            stacklevel=4,
        )
    if side_known or not number.any():
        return
    if int((~silent).sum()) == 1:
        basis = "is estimated from the features alone" if fit.weights.size else "cannot be estimated"
        warnings.warn(
            f"only one annotator: the flip rate {basis}; add judgments of others, or known= pairs",
            DataWarning,
            stacklevel=4,
        )
    else:
        warn_near_chance("joint_annotators", 1.0 - flip, number)


class FlipPrior(NamedTuple):
    """Flipped and right preferences that each source starts with, (n_sources,) each; ``fixed`` is a rate, or NaN."""

    flipped: Floats
    right: Floats
    fixed: Floats

    @classmethod
    def of(cls, good: Bools, alpha: float, n_sources: int) -> FlipPrior:
        """Return the prior of annotators, who start with ``alpha`` preferences, three in ten of them flipped.

        Those known to be ``good`` start with those of the trusted; what is known of pairs is a source after them.
        """
        right, wrong = TRUSTED
        more = n_sources - len(good)
        return cls(
            np.append(np.where(good, wrong, _START_FLIP_RATE * alpha), np.zeros(more)),
            np.append(np.where(good, right, (1 - _START_FLIP_RATE) * alpha), np.zeros(more)),
            np.append(np.full(len(good), np.nan), np.full(more, _KNOWN_FLIP_RATE)),
        )

    def flip_rates(self, flipped: Floats, number: Floats) -> Floats:
        """Return the most probable rates for these numbers of flipped preferences and of all (M-step)."""
        total = number + self.flipped + self.right
        rate = np.divide(flipped + self.flipped, total, out=np.full(len(total), 0.5), where=total > 0)
        return np.where(np.isnan(self.fixed), np.clip(rate, _LEAST_FLIP_RATE, 1 - _LEAST_FLIP_RATE), self.fixed)

    def log_density(self, flip_rates: Floats) -> float:
        """Return the logarithm of the prior, up to a constant."""
        free = np.isnan(self.fixed)
        return float((self.flipped * np.log(flip_rates) + self.right * np.log1p(-flip_rates))[free].sum())


def _known_pairs(known: Any, preferences: Preferences) -> tuple[Ints, Ints, Outcomes] | None:
    """Left, right and outcome of the pairs whose better item is known, each once; ``None`` if there are none.

    ``known`` is a truth, or a table of one: of left, right and winner, or of items with grades or ranks, which then
    decide the judged pairs. Ties say nothing.
    """
    truth = Truth.from_frame(known)
    if truth.form == "pairs":
        left, right, outcome = truth.align_pairs(preferences.items)
    else:
        grade = truth.align(preferences.items)
        left, right = preferences.left, preferences.right
        gap = grade[left] - grade[right]
        # an unknown gap counts as a tie
        outcome = np.where(np.isnan(gap), 0, np.sign(gap)).astype(np.int8)
    decided = outcome != 0
    left, right, outcome = left[decided], right[decided], outcome[decided]
    low, high = np.minimum(left, right), np.maximum(left, right)
    outcome = np.where(left < right, outcome, -outcome).astype(np.int8)
    keys, first, place = np.unique(
        low.astype(np.int64) * len(preferences.items) + high, return_index=True, return_inverse=True
    )
    wrong: Counts = np.flatnonzero(outcome != outcome[first][place])
    if len(wrong):
        of = np.isin(np.arange(len(preferences.items)), [low[wrong[0]], high[wrong[0]]])
        raise JudgmentError(
            f"{option('known')} orders the items {first_ids(preferences.items, of)} both ways; keep one of the two rows"
        )
    return (low[first], high[first], outcome[first]) if len(keys) else None


def _item_features(features: Features, judgments: Judgments, scale: str) -> tuple[Ints, Scaling, Floats]:
    """Row of each item in the features, -1 for those without any; how features are scaled; and scaled ones, centred.

    They are on the scale of the judged items, less the mean of those of each query, (n_items, n_features), and 0 for
    items without features. Missing numbers are refused.
    """
    from ...rankers.training_rows import Lists, Matrix, learn_scaling

    row = np.asarray(features.items.codes_of(judgments.items, "features", "judgments"))
    used = np.flatnonzero(features.match(judgments, so="are taken as average ones") >= 0)
    features.expect_numbers(row[row >= 0])
    query, n_queries = judgments.items.query, len(judgments.items.offsets) - 1
    lists = Lists.of(len(used), np.zeros(len(used)), query[used])
    scaling = learn_scaling(scale, Matrix(np.ascontiguousarray(features.matrix[row[used]])), lists)
    present, judged = np.flatnonzero(row >= 0), judgments.judged_items & (row >= 0)
    number = np.maximum(np.bincount(query[judged], minlength=n_queries), 1)
    centred = np.zeros((len(row), len(features.names)))
    centred[present] = scaling.apply(features.matrix[row[present]], np.zeros(1, np.int64))
    for column in centred.T:
        means = np.bincount(query[judged], column[judged], n_queries) / number
        column[present] -= means[query[present]]
    return row, scaling, centred


class PrintedSteps(NamedTuple):
    """Gradient steps of this length per unit of the mean gradient of pairs, from a random start of this seed."""

    learning_rate: float
    seed: int


@dataclass(frozen=True, eq=False)
class FeatureScores:
    """Weighted sums of features (JAM); the parameters are the weights. Without features all items are equal.

    Parameters
    ----------
    matrix
        Features of each item, (n_items, n_features), on one scale and centred in each query.
    ridge
        Precision of the normal prior of the weights.
    loss
        What weights are fitted by: ``"logistic"``, ``"hinge"``, which is smoothed, or ``"equal"``: there are none.
    printed
        The gradient steps in place of Newton steps.
    """

    matrix: Floats
    ridge: float
    loss: str = "logistic"
    printed: PrintedSteps | None = None

    def start(self) -> Floats:
        """Return zero weights, random ones for printed steps."""
        weights = np.zeros(self.matrix.shape[1])
        if self.printed is not None:
            weights += _PRINTED_SPREAD * np.random.default_rng(self.printed.seed).standard_normal(len(weights))
        return weights

    def scores(self, parameters: Floats) -> Floats:
        """Return the weighted sums."""
        return np.einsum("ip,p->i", self.matrix, parameters)

    def weights(self, parameters: Floats) -> Floats:
        """Return the parameters."""
        return parameters

    def log_prior(self, parameters: Floats) -> float:
        """Return the log prior of the weights."""
        return -0.5 * self.ridge * float(parameters @ parameters)

    def newton_step(self, pairs: JudgedPairs, here: PairSums, parameters: Floats) -> tuple[Floats, float]:
        """Return the Newton step of the weights, and the gain that its slope promises."""
        from ...kernels.laplacian import conjugate_gradient

        if self.loss == "equal":
            return parameters, 0.0
        gradient = np.einsum("ip,i->p", self.matrix, here.gradient) - self.ridge * parameters
        if self.printed is not None:
            step = self.printed.learning_rate / pairs.n_pairs * gradient
            return step, float(gradient @ step)
        if len(parameters) <= _MOST_SOLVED_FEATURES:
            curvature = self.matrix.T @ pairs.multiply(self.matrix, here.degree)
            curvature.flat[:: len(gradient) + 1] += self.ridge
            step = np.linalg.solve(curvature, gradient).astype(np.float64, copy=False)
        else:
            diagonal = np.einsum("ip,i,ip->p", self.matrix, here.degree, self.matrix) + self.ridge

            def product(vector: Floats) -> Floats:
                return self.matrix.T @ pairs.multiply(self.matrix @ vector, here.degree) + self.ridge * vector

            step = conjugate_gradient(product, diagonal, gradient, accuracy=_GRADIENT_ACCURACY)[0]
        step = np.clip(step, -_LONGEST_WEIGHT_STEP, _LONGEST_WEIGHT_STEP)
        return step, float(gradient @ step)


@dataclass(frozen=True, eq=False)
class ItemEffectScores:
    r"""Weighted sums of features plus an effect of each item; the parameters are the scores themselves.

    With :math:`s = X w + u`, :math:`w \sim N(0, 1 / \text{ridge})` and :math:`u \sim N(0, \text{spread}^2)` the scores
    are normal, and their log prior is the squared length of what features do not explain.

    Parameters
    ----------
    matrix
        Features of each item, (n_items, n_features), on one scale and centred in each query; 0 for unjudged ones.
    ridge
        Precision of the normal prior of the weights.
    spread
        Standard deviation of the item effects.
    judged
        Which items were judged, (n_items,).
    """

    loss: ClassVar[str] = "logistic"
    printed: ClassVar[PrintedSteps | None] = None
    matrix: Floats
    ridge: float
    spread: float
    judged: Bools

    @cached_property
    def _square(self) -> Floats:
        """Products of the features, with the prior of the weights in units of the spread."""
        square = self.matrix.T @ self.matrix
        square.flat[:: len(square) + 1] += self.ridge * self.spread**2
        return square

    @cached_property
    def explained_directions(self) -> Floats:
        """Directions of scores that features explain, (n_items, n_features); times its transpose, a projection."""
        from scipy.linalg import solve_triangular

        directions: Floats = solve_triangular(np.linalg.cholesky(self._square), self.matrix.T, lower=True).T
        return np.ascontiguousarray(directions)

    @cached_property
    def n_free(self) -> float:
        """Degrees of freedom of the item effects: judged items less those that features can explain."""
        return max(float(self.judged.sum() - (self.explained_directions**2).sum()), 1.0)

    def start(self) -> Floats:
        """Return equal scores."""
        return np.zeros(len(self.matrix))

    def scores(self, parameters: Floats) -> Floats:
        """Return the parameters."""
        return parameters

    def residuals(self, scores: Floats) -> Floats:
        """Return the part of the scores that features do not explain."""
        return scores - self.explained_directions @ (self.explained_directions.T @ scores)

    def log_prior(self, parameters: Floats) -> float:
        """Return the log prior of the scores, the weights integrated out."""
        return -0.5 * float(parameters @ self.residuals(parameters)) / self.spread**2

    def weights(self, scores: Floats) -> Floats:
        """Return the most probable weights given scores."""
        return np.linalg.solve(self._square, self.matrix.T @ scores).astype(np.float64, copy=False)

    def newton_step(self, pairs: JudgedPairs, here: PairSums, parameters: Floats) -> tuple[Floats, float]:
        """Return the step of the scores."""
        gradient = here.gradient - self.residuals(parameters) / self.spread**2
        step = self.solve(pairs, here, gradient)
        return step, float(gradient @ step)

    def solve(self, pairs: JudgedPairs, here: PairSums, gradient: Floats) -> Floats:
        """Return the curvature's inverse times the gradient, by conjugate gradients."""
        from ...kernels.laplacian import conjugate_gradient

        precision = self.spread**-2

        def product(vector: Floats) -> Floats:
            return pairs.multiply(vector, here.degree) + precision * self.residuals(vector)

        return conjugate_gradient(product, here.degree + precision, gradient, accuracy=_GRADIENT_ACCURACY)[0]


ScoreModel: TypeAlias = FeatureScores | ItemEffectScores
"""Where scores come from."""


class State(NamedTuple):
    """Parameters of the score model, and the flip rate of each source, (n_sources,)."""

    parameters: Floats
    flip_rates: Floats


class Run(NamedTuple):
    """Where expectation-maximisation ended, the objective there, and its trace."""

    state: State
    value: float
    trace: Trace


@dataclass(frozen=True, eq=False)
class JointModel:
    """Preferences on pairs, where scores come from, and the prior of the flip rates."""

    pairs: JudgedPairs
    items: ScoreModel
    prior: FlipPrior

    def start(self) -> State:
        """Return the state whose E-step is the majority vote; a random one for printed steps."""
        first: Any = _START_FLIP_RATE
        if self.items.printed is not None:
            first = np.random.default_rng(self.items.printed.seed).random(len(self.prior.fixed))
        return State(self.items.start(), np.where(np.isnan(self.prior.fixed), first, self.prior.fixed))

    def expect(self, state: State) -> tuple[float, PairSums]:
        """Return the log-likelihood with priors, and the sums over pairs (E-step)."""
        items, scores = self.items, self.items.scores(state.parameters)
        here = self.pairs.expect(state.flip_rates, scores, items.loss)
        log_prior = self.prior.log_density(state.flip_rates) + items.log_prior(state.parameters)
        return here.log_likelihood + log_prior, here

    def maximise(self, state: State, value: float, here: PairSums) -> tuple[State, float, PairSums, float]:
        """Return the state after an M-step, its objective and expectation, and what a Newton step still promises.

        Flip rates are set to their maximum. Scores take a Newton step, halved until the objective has not fallen.
        """
        flip_rates = self.prior.flip_rates(here.flipped, self.pairs.weights)
        step, promised = self.items.newton_step(self.pairs, here, state.parameters)
        gain = float(np.sqrt(max(promised, 0.0) / max(self.pairs.n_pairs, 1)))
        slack = _RELATIVE_ROUNDING * (1.0 + abs(value))
        plain = self.items.loss == "hinge" or self.items.printed is not None
        for halving in range(_MOST_HALVINGS + 1):
            # the flip rates alone never lower the objective
            length = 0.5**halving if halving < _MOST_HALVINGS else 0.0
            following = State(state.parameters + length * step, flip_rates)
            new_value, there = self.expect(following)
            if plain or new_value >= value - slack:
                break
        return following, new_value if plain else max(new_value, value), there, gain

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
                return Run(state, value, Trace(n_iter, True, change, tuple(values)))
        if what:
            warn_unconverged(what, max_iter, change, tol)
        return Run(state, value, Trace(max_iter, False, change, tuple(values)))


def choose_side(model: JointModel, run: Run, side_known: bool, rerun: Callable[[State], Run]) -> Run:
    """Return the run, or the one that starts at its mirror image, whichever is the right way round.

    With trusted annotators or known pairs (``side_known``) the objective decides. Otherwise most preferences are taken
    to be right.
    """
    (parameters, flip_rates), fixed = run.state, model.prior.fixed
    free = np.isnan(fixed)
    number = model.pairs.weights[free]
    if not side_known and float((number * flip_rates[free]).sum()) <= 0.5 * float(number.sum()):
        return run
    # with scores and flip rates reversed preferences are explained equally well
    other = rerun(State(-parameters, np.where(free, 1.0 - flip_rates, fixed)))
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
    pairs = model.pairs
    for n in range(1, _MOST_SPREAD_STEPS + 1):
        # means, variances, spread and flip rates, each from the others as they were
        items, precision = here.items, here.items.spread**-2
        expected = pairs.expect(here.flip_rates, here.means, "logistic", here.variances)
        gradient = expected.gradient - precision * items.residuals(here.means)
        means = here.means + items.solve(pairs, expected, gradient)
        # single pairs may seem to curve the other way, which the other pairs of an item make up for
        variances = 1.0 / (np.maximum(expected.observed_degree, _LEAST_OBSERVED_SHARE * expected.degree) + precision)
        # halfway, since a large variance flattens the curvature that the next one comes from
        variances = np.sqrt(here.variances * variances)
        own = variances * (1.0 - (items.explained_directions**2).sum(axis=1))
        square = (float(means @ items.residuals(means)) + float(own[items.judged].sum())) / items.n_free
        items = replace(items, spread=float(np.clip(np.sqrt(square), *_SPREAD_RANGE)))
        flip_rates = model.prior.flip_rates(expected.flipped, pairs.weights)
        change = float(np.max(np.abs(flip_rates - here.flip_rates), initial=0.0))
        here = NormalScores(items, means, variances, flip_rates)
        logs.append(float(np.log(items.spread)))
        if n >= _LEAST_SPREAD_STEPS and abs(logs[-1] - logs[-2]) < _LOG_SPREAD_TOL and change <= tol:
            break
        if n % _STEPS_PER_LEAP == 0:
            # the steps that follow the last two if each is shorter in the same ratio, added up
            first, last = logs[-2] - logs[-3], logs[-1] - logs[-2]
            ratio = last / first if first else 0.0
            leap = np.clip(last * ratio / (1 - ratio), -_LONGEST_LEAP, _LONGEST_LEAP) if 0 < ratio < 1 else 0.0
            logs[-1] = float(np.clip(logs[-1] + float(leap), *np.log(_SPREAD_RANGE)))
            here = here._replace(items=replace(here.items, spread=float(np.exp(logs[-1]))))
    return here


class PairFit(NamedTuple):
    """A fitted model; source ``k * n_clusters + d`` is annotator ``k`` in cluster ``d`` of the pairs."""

    model: JointModel
    run: Run
    n_clusters: int
    cluster: Ints | None = None
    """Cluster of each pair, (n_pairs,), where there are several."""

    @property
    def scores(self) -> Floats:
        """Score of each item, (n_items,)."""
        return self.model.items.scores(self.run.state.parameters)

    @property
    def weights(self) -> Floats:
        """Weight of each feature, none where features say nothing."""
        return self.model.items.weights(self.run.state.parameters)

    def flip_rates(self, n_annotators: int) -> tuple[Floats, Floats]:
        """Return each annotator's flip rate, the mean over preferences, and the rate in each cluster.

        Annotators without preferences have the rate 1/2, and in a cluster without any the overall one.
        """
        shape = (-1, self.n_clusters)
        number = self.model.pairs.weights.reshape(shape)[:n_annotators]
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


def overruled_share(fit: PairFit, *, seed: int) -> Overruled:
    """Return how often scores overrule the preferences, and how often they would if the model were true.

    Flip rates are estimated once more from preferences alone, for which pairs need two preferences. Other pairs are
    left out, and all of them where sources gave too few such preferences. If the model is true, the rates are the same
    but for chance; preferences are drawn from it for up to 20,000 pairs. All are of the block with most pairs.
    """
    block, flip_rates = int(np.argmax(fit.model.pairs.sizes)), fit.run.state.flip_rates
    scores = fit.scores[slice(*fit.model.pairs.bounds[block : block + 2])]
    pairs = fit.model.pairs.patterns(block)
    rng, several = np.random.default_rng(seed), np.diff(pairs.bounds) > 1
    number = np.bincount(pairs.source, pairs.total_weight * several[pairs.owner])
    enough = number.sum() >= _LEAST_PREFERENCES_PER_SOURCE * np.count_nonzero(number)
    chosen = np.flatnonzero(several[pairs.pattern]) if enough else np.empty(0, np.int64)
    chosen = chosen[:: -(-len(chosen) // _MOST_CHECKED_PAIRS) or 1]
    prior = (scores[pairs.first] - scores[pairs.second])[chosen]
    pattern = pairs.pattern[chosen]
    odds = pairs.pattern_odds(flip_rates)[pattern]
    alone = pairs.pattern_odds(_rates_without_scores(pairs, fit.model.prior, flip_rates, several))[pattern]
    # the preferences of the patterns, and which of these each belongs to
    sizes = np.diff(pairs.bounds)[pattern]
    ends, pair = np.concatenate([[0], np.cumsum(sizes)]), np.repeat(np.arange(len(pattern)), sizes)
    place = pairs.bounds[pattern][pair] + np.arange(ends[-1]) - ends[:-1][pair]
    source, weight = pairs.source[place], pairs.weight[place] if pairs.weight.size else np.ones(len(place))
    log_odds, shares = np.log1p(-flip_rates) - np.log(flip_rates), []
    for _ in range(_N_DRAWS):
        lower = rng.random(len(chosen)) < expit(prior)
        side = np.where(lower[pair] == (rng.random(len(place)) >= flip_rates[source]), 1.0, -1.0)
        drawn = np.bincount(pair, weight * side * log_odds[source], len(chosen)).astype(np.float64, copy=False)
        shares.append(_share_apart(prior + drawn, drawn))
    return Overruled(_share_apart(prior + odds, alone), float(np.mean(shares)), len(chosen))


def _rates_without_scores(pairs: PairPatterns, prior: FlipPrior, flip_rates: Floats, several: Bools) -> Floats:
    """Flip rates by the patterns with several preferences, at equal scores."""
    some = JudgedPairs.in_memory(replace(pairs, number=np.where(several, pairs.number, 0.0)), len(flip_rates))
    known = flip_rates <= _KNOWN_FLIP_RATE
    nothing = FeatureScores(np.empty((len(pairs.starts) - 1, 0)), 1.0, "equal")
    equal = JointModel(some, nothing, prior._replace(fixed=np.where(known, flip_rates, np.nan)))
    # from the usual start, the same way round: the rates of the model may be far off
    start = np.where(known, flip_rates, np.where(flip_rates < 0.5, _START_FLIP_RATE, 1 - _START_FLIP_RATE))
    return equal.run(State(np.empty(0), start), tol=_CHECK_TOL, max_iter=_MOST_CHECK_ITERATIONS).state.flip_rates


def _share_apart(together: Floats, alone: Floats) -> float:
    """Share of pairs where the two choose different items."""
    return float(np.mean(np.sign(together) * np.sign(alone) < 0)) if len(alone) else 0.0


def cluster_pairs(pairs: PairPatterns, matrix: Floats, n_clusters: int | None, *, folded: bool, seed: int) -> Ints:
    r"""Return the cluster of each pair, (n_pairs,), by k-means of the difference :math:`x_i - x_j` of its features.

    Which item of a pair stands first is arbitrary: if ``folded``, a difference and its negative are the same, and near
    a centre if either is. With ``n_clusters=None`` the number rises from 2 until two centres are nearer than half the
    mean distance, or to 16.
    """
    from .kernels.pair_patterns import nearest_centres

    chosen: Counts = np.arange(pairs.n_pairs)
    if pairs.n_pairs > _MOST_SAMPLED_PAIRS:
        chosen = np.sort(np.random.default_rng(seed).choice(pairs.n_pairs, _MOST_SAMPLED_PAIRS, replace=False))
    sample: Floats = matrix[pairs.first[chosen]] - matrix[pairs.second[chosen]]
    # in an order that does not depend on that of items
    sample = sample[np.lexsort(np.abs(sample).T)]
    if n_clusters is not None:
        centres = _centres(sample, n_clusters, folded, seed)
    else:
        centres = _centres(sample, 2, folded, seed)
        for number in range(3, _MOST_CLUSTERS + 1):
            more = _centres(sample, number, folded, seed)
            one, other = (more[side] for side in np.triu_indices(number, 1))
            distance = np.linalg.norm(one - other, axis=1)
            if folded:
                distance = np.minimum(distance, np.linalg.norm(one + other, axis=1))
            if distance.min() < _CLOSE_SHARE * distance.mean():
                break
            centres = more
    return nearest_centres(pairs, matrix @ centres.T, (centres**2).sum(axis=1), folded=folded)


def _centres(sample: Floats, number: int, folded: bool, seed: int) -> Floats:
    """Centres of k-means, (number, n_features); the centre of an empty cluster stays where it was."""
    centres = _first_centres(sample, number, folded, np.random.default_rng(seed))
    cluster = np.full(len(sample), -1)
    for _ in range(_MOST_ITERATIONS):
        product = sample @ centres.T
        nearest = np.argmin((centres**2).sum(axis=1) - 2 * (np.abs(product) if folded else product), axis=1)
        if (nearest == cluster).all():
            break
        cluster = nearest
        side = np.sign(product[np.arange(len(sample)), cluster]) if folded else np.ones(len(sample))
        size = np.bincount(cluster, minlength=number)
        sums = np.stack([np.bincount(cluster, side * column, number) for column in sample.T], axis=1)
        centres = np.where(size[:, None] > 0, sums / np.maximum(size, 1)[:, None], centres)
    return centres


def _first_centres(sample: Floats, number: int, folded: bool, rng: np.random.Generator) -> Floats:
    """Differences drawn one after the other, each by its squared distance from those before (k-means++)."""
    square = (sample**2).sum(axis=1)
    chosen = [int(rng.integers(len(sample)))]
    distance = np.full(len(sample), np.inf)
    for _ in range(number - 1):
        product = sample @ sample[chosen[-1]]
        distance = np.minimum(distance, square + square[chosen[-1]] - 2 * (np.abs(product) if folded else product))
        chance = np.cumsum(np.maximum(distance, 0.0))
        place = np.searchsorted(chance, rng.random() * chance[-1], side="right") if chance[-1] > 0 else 0
        chosen.append(min(int(place), len(sample) - 1))
    return sample[chosen]


class PairBlock(NamedTuple):
    """A block: its number, its pairs, and the weight of all judgments of each annotator."""

    number: int
    patterns: PairPatterns
    given: Floats

    def place(self, bounds: Counts) -> slice:
        """Return where the items of the block stand among all, given the bounds of those of all blocks."""
        return slice(*bounds[self.number : self.number + 2])


def _lay_out(part: tuple[int, Preferences], known: tuple[Ints, Ints, Outcomes] | None = None) -> PairBlock:
    """The pairs of a block, which comes with its number; known pairs are preferences of one source more."""
    from .kernels.pair_patterns import find_patterns

    number, preferences = part
    n, weight = max(preferences.n_annotators, 1), preferences.weight
    rows: tuple[Any, ...] = (preferences.left, preferences.right, preferences.outcome, preferences.row_annotator)
    if known is not None:
        n_known = len(known[0])
        more: tuple[Any, ...] = (*known, np.full(n_known, n, np.int32))
        rows = tuple(np.concatenate(both) for both in zip(rows, more, strict=True))
        weight, n = None if weight is None else np.append(weight, np.ones(n_known)), n + 1
    patterns = find_patterns(*rows, weight=weight, offsets=preferences.items.offsets, n_sources=n)
    given = np.bincount(preferences.annotator, preferences.weight, preferences.n_annotators).astype(np.float64)
    return PairBlock(number, patterns, given)


def _join(first: Statistics, second: Statistics) -> Statistics:
    """Two statistics together: tables of items side by side, the rest added."""
    return tuple(
        np.concatenate([one, other], axis=1) if isinstance(one, np.ndarray) and one.ndim == 2 else one + other
        for one, other in zip(first, second, strict=True)
    )


class PairSums(NamedTuple):
    """Sums over the pairs of all blocks; see :class:`~.kernels.pair_patterns.Expectation`.

    ``flipped`` (n_sources,) is the expected weight of each source's flipped preferences. The curvature of the pairs is
    the state of the blocks, as the last step left it.
    """

    log_likelihood: float
    flipped: Floats
    gradient: Floats
    degree: Floats
    observed_degree: Floats


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """The judged pairs of all blocks, of which there is one in memory, as the steps of the method ask for them.

    ``bounds`` (n_blocks + 1,) are those of the items of the blocks, ``sizes`` (n_blocks,) their pairs, and ``weights``
    (n_sources,) is the weight of each source's preferences; a tie is none. ``given`` (n_annotators,) is the weight of
    all judgments of each annotator, ties included.
    """

    blocks: Blocks
    bounds: Counts
    sizes: Counts
    weights: Floats
    given: Floats

    @classmethod
    def of(cls, blocks: Blocks, n_sources: int) -> JudgedPairs:
        """Return the pairs of some blocks."""
        counts: Floats = np.array(
            blocks.each(lambda part, state: ((len(part.patterns.starts) - 1.0, float(part.patterns.n_pairs)), None))
        ).reshape(-1, 2)
        weights = blocks.total(lambda part, state: ((part.patterns.source_weights(n_sources), part.given), None))
        bounds = np.concatenate([[0], np.cumsum(counts[:, 0])]).astype(np.int64)
        return cls(blocks, bounds, counts[:, 1].astype(np.int64), *weights)

    @classmethod
    def in_memory(cls, patterns: PairPatterns, n_sources: int) -> JudgedPairs:
        """Return some pairs as the only block."""
        return cls.of(OneBlock(PairBlock(0, patterns, np.empty(0))), n_sources)

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self.sizes.sum())

    def expect(self, flip_rates: Floats, scores: Floats, loss: str, variances: Floats | None = None) -> PairSums:
        """Return the sums over pairs at flip rates and scores (E-step); blocks keep the curvature of their pairs."""
        bounds = self.bounds

        def step(part: PairBlock, state: Any) -> StepResult:
            place = part.place(bounds)
            here = part.patterns.expect(
                flip_rates, scores[place], loss, None if variances is None else variances[place]
            )
            flipped = part.patterns.flip_counts(here.n_lower, len(flip_rates))
            of_items = np.stack([here.gradient, here.degree, here.observed_degree])
            return (here.log_likelihood, flipped, of_items), None if loss == "equal" else (here.curvature,)

        value, flipped, of_items = self.blocks.total(step)
        return PairSums(float(value), flipped, *of_items)

    def multiply(self, columns: Floats, degree: Floats) -> Floats:
        """Return the curvature that blocks keep times a vector, or columns side by side."""
        bounds = self.bounds

        def step(part: PairBlock, state: Any) -> StepResult:
            (curvature,), place = state, part.place(bounds)
            image = part.patterns.multiply(curvature, degree[place], columns[place])
            return (image[None] if columns.ndim == 1 else np.ascontiguousarray(image.T),), None

        images: Floats = self.blocks.total(step)[0]
        return images[0] if columns.ndim == 1 else images.T

    def leads(self, flip_rates: Floats, scores: Floats) -> tuple[Floats, Floats]:
        """Return the sum of each item's leads in probability over those it was compared with, and their number."""
        bounds = self.bounds
        ((sums, number),) = self.blocks.total(
            lambda part, state: ((np.stack(part.patterns.leads(flip_rates, scores[part.place(bounds)])),), None)
        )
        return sums, number

    def patterns(self, number: int) -> PairPatterns:
        """Return the pairs of one block."""
        # all blocks are asked
        read = self.blocks.read(lambda part, state: ((part.patterns if part.number == number else None,), None))
        return [some for (some,) in read][number]

    def probabilities(self, flip_rates: Floats, scores: Floats, order: Any) -> tuple[Ints, Ints, Floats]:
        """Return both items of each pair by their codes, rising, and the probability that the first is the better.

        ``order`` has the code of each item in the order of the blocks.
        """
        bounds = self.bounds

        def step(part: PairBlock, state: Any) -> StepResult:
            pairs, place = part.patterns, part.place(bounds)
            begin = np.int32(place.start)
            return (pairs.first + begin, pairs.second + begin, pairs.probabilities(flip_rates, scores[place])), None

        first, second, chance = (np.concatenate(column) for column in zip(*self.blocks.read(step), strict=True))
        if len(self.sizes) == 1:
            return first, second, chance
        left, right = order[first], order[second]
        by_pair = np.lexsort((right, left))
        return left[by_pair].astype(np.int32), right[by_pair].astype(np.int32), chance[by_pair]
