"""LTRMA-ML: a ListMLE ranker, true rankings and a Mallows dispersion per annotator, by expectation-maximisation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import polars as pl

from ...data.consensus import Consensus, Trace
from ...data.features import Features
from ...data.joint_fit import JointFit
from ...data.judgments import Rankings, expect
from ...errors import DataWarning, JudgmentError
from ...fitting import newton
from ...protocols import AnyFloats, Bools, Counts, Floats, Ints, Progress
from ...quality import LearnedQuality, trusted_annotators, warn_near_chance
from ...rankers.estimator import LinearScore
from ...rankers.linear import BlockLoss, penalise, usual_ridge
from ...rankers.training_rows import SCALES, Design, Lists, Matrix, learn_scaling
from ...wording import expect_above, expect_choices
from .mallows_crowd import PRINTED_CHANGE, MallowsCrowd, check_parameters, last_sweeps, sweep_factor

if TYPE_CHECKING:
    from ...rankers.kernels.losses import ScoreLoss
    from .kernels.true_rankings import Chains, OrderSums

_CHOICES = {
    "distance": ("kendall", "cayley"),
    "step": ("hard", "soft"),
    "variant": ("carried", "printed"),
    "scale": SCALES,
}
_ITERATIONS = {"carried": 60, "printed": 200}
_SWEEPS_PER_SAMPLE = 2
"""Sweeps between two of the rankings that are kept."""

_N_OTHERS_SWEEPS = 100
_WEIGHT_TOL = 0.01
"""Weights need not be more exact where the rankings that they are learned from are random."""


@dataclass(frozen=True, kw_only=True)
class LTRMA:
    r"""LTRMA-ML: EM over true rankings, a ListMLE ranker and a Mallows dispersion per annotator.

    The truth of a query is a ranking of its items that arises best first: of those left, item :math:`i` comes next with
    probability proportional to :math:`e^{s_i}` (Plackett-Luce), where :math:`s_i = x_i \cdot w` with features :math:`x`
    and weights :math:`w`. Annotator :math:`a` ranks the items as :math:`y` where the truth is :math:`t` with
    probability

    .. math:: P(y \mid t, a) = \frac{\exp(\theta_a \, d(y, t))}{Z(n, \theta_a)},

    :math:`d` being the Kendall or Cayley distance (Mallows); the more negative the dispersion :math:`\theta_a`, the
    better the annotator, and 0 is guessing. Weights and dispersions are learned by turns, the truths being averaged
    over given both [Wu11]_. This is LTRMA-ML; LTRMA-D, the consensus first and the ranker afterwards, is ``two_stage``
    with ``mallows`` and ``list_mle``.

    The consensus has the mean place of each item over all rankings, weighed by their probability given annotators and
    features, in places above the middle one. The annotators' parameter ``theta`` is their dispersion.

    When to use
    -----------
    Use it for rankings of the same queries by several annotators, with features. For grades or preferences use
    ``latent_score`` with features or ``two_stage``.

    Parameters
    ----------
    distance
        ``"kendall"``, for annotators who mix up neighbours; ``"cayley"``, for those who misplace single items.
    step
        What weights are learned from: ``"soft"``: all rankings of each query by their probability; ``"hard"``: the most
        probable one alone, as the paper does.
    variant
        ``"carried"``: see the notes; ``"printed"``: the procedure of the paper to the letter, for comparison.
    scale
        ``"overall"``: features less their mean, by their standard deviation within queries; ``"query"``: from 0 to 1
        within each query, so ``predict`` has to be told the queries; ``"none"``: as they are.
    ridge
        Pull of the weights towards 0, against a mean over queries of the likelihood; raise it where features are weak.
        ``None`` takes a tenth of the number of features by that of queries, with ``scale="query"`` a sixteenth of that:
        however many features there are, scores that spread by about 3 are expected beforehand.
    allow_reversed
        Whether :math:`\theta` may be above 0, so rankings of annotators who rank the wrong way round are used
        turned over; otherwise they count as guessing.
    alpha
        Pull of the dispersions, in ranked items, as in ``mallows``; 0 is maximum likelihood.
    bound
        Lowest dispersion, below 0, for those who always agree with the truth.
    n_exact
        Queries of up to this many items, at most 15, are averaged over exactly (Kendall distance only), larger ones by
        sampling. Each item more takes twice the time.
    n_sweeps
        Sweeps of the sampler in each iteration, more where fewer than 300 items are sampled in all.
    n_draws
        Rankings that stand for all of a sampled query's in a soft step, fewer where there are more than 2,500 items.
    n_samples
        Random rankings to keep for intervals and comparisons, fewer where there are more than 100,000 items.
    tol
        Largest change of any parameter in the last iteration, where all queries are exact; raise it to stop earlier.
    max_iter
        Iterations, all of which are done where queries are sampled; ``None`` takes 60, or the 200 at most of the
        printed procedure.
    seed
        Seed of the random draws.

    Notes
    -----
    The fit begins with Borda's order and the weights that make it likeliest, since with few annotators a prior learned
    from nothing outweighs them and confirms itself. Each query's chain of rankings goes on from iteration to iteration:
    neighbours are swapped, even places and odd places in turn, and single items moved, each by its conditional
    distribution. Weights and dispersions are averaged over the second half of the iterations. ``change`` is the drift
    of the mean distances over these, as a share of those of guessing; above 0.05 there is a warning. Where all queries
    are exact the trace has the log-likelihood with the priors; with soft steps, which are those of an exact EM then, it
    never falls.

    The printed procedure begins each chain anew with a random ranking in every iteration, swaps 500 random pairs of
    places, and stops when the parameters change by less than 0.01 each, which the noise of its chains decides. Its
    descent, not said in the paper, has 50 passes of step 0.01, made for features from 0 to 1, ``scale="query"``.

    Soft steps are a departure from the paper. Where features explain the truth almost wholly, as on its synthetic
    rankings, hard steps lead to the better ranker, nDCG@3 of unseen queries being .998 against .997. But what is most
    probable agrees with the features more than the truth does, and learned from again and again they confirm
    themselves: with features that explain a little of the truth of 50 queries, and three annotators of dispersion -0.5,
    -0.3 and -0.1, Kendall's tau with the truth was .34 with hard and .57 with soft steps, .55 for ``mallows`` and .49
    for Borda, which know of no features. With hard steps give such data a ``ridge`` of about 1.

    Items that a ranking lacks or ties were not put in an order by it. A ranked item without features has the mean score
    of its query. An item that nobody ranked stands where its features put it among the ranked ones, and a query without
    rankings is ordered by features alone. The prior of annotators in ``trusted`` is 95 pairs right and 5 wrong. Quality
    is the agreement with the truth as it would be seen without the annotator, weights and dispersions held fixed. Draws
    depend on who ranked what, on the features and on the seed, not on names nor on the order of the rows.

    Examples
    --------
    >>> orders = {"ann": ["xyz", "zyx"], "bob": ["xyz", "zyx"], "cy": ["zxy", "yxz"]}
    >>> rows = [(who, query, item, rank + 1) for who, both in orders.items() for query, order in zip("ab", both)
    ...         for rank, item in enumerate(order)]
    >>> features = Features.from_frame({"query": list("aaabbb"), "item": list("xyzxyz"), "size": [3, 2, 1, 1, 2, 3]})
    >>> fit = LTRMA().fit(Rankings.from_rows(rows), features)
    >>> fit.consensus.order("a"), fit.ranker.weights_.round(2).tolist()
    (['x', 'y', 'z'], [2.44])
    """

    kinds: ClassVar[tuple[str, ...]] = ("ranking",)
    precision: ClassVar[float] = 1e-8
    distance: str = "kendall"
    step: str = "soft"
    variant: str = "carried"
    scale: str = "overall"
    ridge: float | None = None
    allow_reversed: bool = False
    alpha: float = 6.0
    bound: float = -12.0
    n_exact: int = 8
    n_sweeps: int = 30
    n_draws: int = 4
    n_samples: int = 200
    tol: float = 1e-6
    max_iter: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        expect_choices(self, **_CHOICES)
        check_parameters(self, n_exact=0, n_sweeps=1, n_draws=1, n_samples=2, max_iter=4)
        expect_above(self, 0, "ridge", "tol")

    def fit(
        self, judgments: Rankings, features: Features, *, trusted: Any | None = None, progress: Progress | None = None
    ) -> JointFit:
        """Return the ranker with the true rankings and the annotators' dispersions that were learned with it.

        Judgments are rankings; grades and preferences have ``as_rankings()``. Features are of items, ranked or not.
        ``trusted`` names annotators known to be good, and ``progress`` is called with the iterations done.
        """
        from ...kernels.threads import one_blas_thread
        from .kernels.true_rankings import row_colours

        expect(judgments, self)
        sure, of_items = trusted_annotators(judgments, trusted), features.match(judgments)
        # items of different features are never alike, whatever the rankings say
        shades = row_colours(features.matrix, of_items)
        crowd = _crowd(self, judgments, sure, shades)
        row = of_items[crowd.arranged.item]
        item = np.flatnonzero(row >= 0)
        if not len(item) or np.bincount(crowd.item_query[item]).max() < 2:
            raise JudgmentError(
                "nothing to learn: no ranking puts an item with features above another one; "
                "give rankings of two items or more, and features of them"
            )
        n = len(np.unique(crowd.annotator)) if judgments.n_annotators else len(crowd.annotator)
        if n <= 2:
            number, what = ("one", "two")[n - 1], "annotator" if judgments.n_annotators else "ranking"
            warnings.warn(
                f"ltrma: only {number} {what}{'s' if n > 1 else ''} put items in an order: quality is estimated "
                "almost from the features alone; have items ranked by more annotators",
                DataWarning,
                stacklevel=2,
            )
        features.expect_numbers(row[item])
        with one_blas_thread():
            luce = LuceWeights.of(
                features.matrix[row[item]], crowd.item_query[item], scale=self.scale,
                ridge=self.ridge, tol=max(self.tol, _WEIGHT_TOL) if len(crowd.sampled) else self.tol,
            )  # fmt: skip
            truths = ScoredTruths(crowd, luce, item)
            n_iter = self.max_iter or _ITERATIONS[self.variant]
            if self.variant == "printed":
                estimates = truths.learn_as_printed(n_iter=n_iter, seed=self.seed, progress=progress)
            else:
                estimates = truths.learn_by_turns(self, n_iter=n_iter, progress=progress)
        ranker = LinearScore.of(features.names, luce.design.scaling, estimates.weights, estimates.trace)
        unranked = unranked_scores(judgments, features, crowd, ranker)
        return JointFit(
            method="ltrma", ranker=ranker,
            consensus=_consensus(self, judgments, truths, estimates, unranked, sure, shades),
            n_items=len(item), n_queries=len(luce.design.offsets) - 1,
            n_unjudged=len(features) - int((of_items >= 0).sum()),
        )  # fmt: skip


def _crowd(method: LTRMA, rankings: Rankings, trusted: Bools, shades: Any) -> MallowsCrowd:
    """The rankings laid out."""
    # soft steps take the sums over sets that only the Kendall distance has
    n_exact = None if method.distance == "kendall" else 0
    return MallowsCrowd.of(method, rankings, trusted, n_exact=n_exact, shades=shades)


def _consensus(
    method: LTRMA, rankings: Rankings, truths: ScoredTruths, estimates: Estimates, unranked: Floats, trusted: Bools,
    shades: Any,
) -> Consensus:  # fmt: skip
    """The true rankings, as far as they are known in the end."""
    crowd, prior = truths.crowd, truths.scores(estimates.weights)
    again = partial(_scores_of_part, method, trusted, shades, estimates.theta, prior, crowd.arranged.item)
    draws = crowd.sample_array(method.n_samples, rankings.n_items)
    n_sweeps = last_sweeps(crowd.n_sampled_items, method.n_samples, _SWEEPS_PER_SAMPLE)
    last = crowd.expect(estimates.theta, estimates.chains, n_sweeps, scores=prior, draws=draws)
    if rankings.n_annotators and not trusted.any():
        guessing = crowd.annotators.guessing
        share = crowd.annotator_distances(last.distance) / np.maximum(guessing, 1e-300)
        warn_near_chance("ltrma", 1.0 - 0.5 * share, guessing)
    place = last.place if estimates.order is None else crowd.places_in(estimates.order)
    scores = crowd.place_scores(rankings, place) + unranked
    replicates, std_error = crowd.place_spread(rankings, last, draws, scores, method.seed)
    return Consensus.of(
        method, rankings, scores, trace=estimates.trace, std_error=std_error, replicates=replicates,
        quality=LearnedQuality(rankings, again, {"theta": estimates.theta}) if rankings.n_annotators else None,
        estimates={} if rankings.n_annotators else {"theta": float(estimates.theta[0])},
    )  # fmt: skip


def _scores_of_part(
    method: LTRMA, trusted: Bools, shades: Any, theta: Floats, prior: Floats, item: Counts, part: Rankings
) -> Floats:
    """Scores by some of the rankings, weights and dispersions held fixed.

    ``prior`` are the scores by features of the items with the codes ``item``, which are all that were ranked.
    """
    crowd, of_items = _crowd(method, part, trusted, shades), np.zeros(part.n_items)
    of_items[item] = prior
    chains, n_sweeps = crowd.chains(), last_sweeps(crowd.n_sampled_items, _N_OTHERS_SWEEPS, 1)
    expected = partial(crowd.expect, theta, chains, scores=of_items[crowd.arranged.item])
    if len(crowd.sampled):
        expected(n_sweeps // 2)
    return crowd.place_scores(part, expected(n_sweeps).place)


_MOST_NEWTON_STEPS = 100
_RIDGE_PER_FEATURE = 0.1
_MOST_DRAWN_PLACES = 10_000
"""Places over all draws of a soft step: many items make up for few draws."""

_PRINTED_STEP, _PRINTED_EPOCHS = 0.01, 50
"""Step and passes of the printed procedure's descent."""


@dataclass(frozen=True, eq=False)
class LuceWeights:
    """Scaled features of items query after query, and the weights that make rankings of them likely.

    The likelihood is that of ordered choices (Plackett-Luce): of the items that are left, one comes next with
    probability proportional to the exponential of its score, the weighted sum of its features.

    Parameters
    ----------
    design
        The features, one row per place.
    ridge, tol
        Pull of the weights towards 0, against a mean over queries, and the largest change of one in the last step.
    """

    design: Design
    ridge: float
    tol: float

    @classmethod
    def of(cls, values: AnyFloats, query: Ints | Counts, *, scale: str, ridge: float | None, tol: float) -> Self:
        """Return them for rows of numbers with the query of each, never falling.

        The ridge ``None`` is a tenth for each feature, spread over the queries: however many features there are, scores
        that spread by about 3 within queries are what is expected beforehand.
        """
        matrix = Matrix(values)
        lists = Lists.of(matrix.n_rows, np.zeros(matrix.n_rows), query)
        if ridge is None:
            ridge = usual_ridge(_RIDGE_PER_FEATURE * matrix.n_features / lists.n_queries, scale)
        return cls(Design(matrix, None, lists.offsets, learn_scaling(scale, matrix, lists)), ridge, tol)

    def penalty(self, weights: Floats) -> float:
        """Return what the ridge takes off the log-likelihood of all queries."""
        return 0.5 * self.ridge * (len(self.design.offsets) - 1) * float(weights @ weights)

    def from_orders(self, orders: Counts, start: Floats) -> Floats:
        """Return the weights under which orders (n_orders, n_places) of each query's places are most likely."""
        from ...rankers.kernels.losses import likely_orders

        return self._maximise(likely_orders(orders, self.design.offsets), start)

    def from_sets(self, sets: Floats, start: Floats) -> Floats:
        """Return the weights under which random orders are most likely, whose sets of first places have these chances.

        ``sets`` has 2^n chances for each query of n places.
        """
        from ...rankers.kernels.losses import likely_sets

        return self._maximise(likely_sets(sets, self.design.offsets), start)

    def _maximise(self, loss: Callable[[Floats], ScoreLoss], start: Floats) -> Floats:
        """The weights where the loss of the scores and the ridge are least."""
        sizes = np.diff(self.design.offsets)
        rows = BlockLoss(self.design, loss, np.repeat(1 / (len(sizes) * sizes), sizes)).alone()
        evaluate, direction = penalise(rows, self.ridge, self.tol)
        return newton(evaluate, direction, start, tol=self.tol, max_iter=_MOST_NEWTON_STEPS, what="ltrma")[0]


class Estimates(NamedTuple):
    """Dispersions (n_annotators,) and weights (n_features,), how they were found, and where the chains stand.

    ``order``, items by their numbers, is the printed procedure's own estimate of the true rankings.
    """

    theta: Floats
    weights: Floats
    trace: Trace
    chains: Chains
    order: Ints | None = None


@dataclass(frozen=True, eq=False)
class ScoredTruths:
    """Annotators around true rankings, of which scores by features tell how probable they are beforehand.

    Parameters
    ----------
    crowd
        The annotators.
    learner
        Finds the weights of the features.
    item
        The crowd's item at each of the learner's places; items without features have none.
    """

    crowd: MallowsCrowd
    learner: LuceWeights
    item: Counts

    def scores(self, weights: Floats) -> Floats:
        """Return scores of the crowd's items; those without features have the mean of their query."""
        query, known = self.crowd.item_query, self.learner.design.scores(weights)
        n = len(self.crowd.arranged.lists.sizes)
        number = np.maximum(np.bincount(query[self.item], minlength=n), 1)
        means: Floats = (np.bincount(query[self.item], known, n) / number)[query]
        means[self.item] = known
        return means

    def places(self, order: Ints) -> Counts:
        """Return each query's items, best first by their numbers, as places of the learner."""
        return self._places_of(order + self.crowd.arranged.lists.offsets[self.crowd.item_query])

    def _places_of(self, item: Counts) -> Counts:
        """Items of the crowd as places of the learner, those without features left out."""
        place = np.full(len(self.crowd.arranged.item), -1)
        place[self.item] = np.arange(len(self.item))
        return place[item][place[item] >= 0]

    def learn_by_turns(self, method: LTRMA, *, n_iter: int, progress: Progress | None = None) -> Estimates:
        """Return estimates that start from Borda's order, with chains that are carried on between iterations.

        With ``step="hard"`` weights are learned from the most probable ranking, with ``"soft"`` from all of them by
        their probability, ``n_draws`` standing for them where they are sampled. Both kinds of parameters are averaged
        over the second half of the iterations, unless all queries are exact and changes fall to ``tol`` before.
        """
        crowd, annotators, sampled = self.crowd, self.crowd.annotators, len(self.crowd.sampled) > 0
        chains, start = crowd.chains(), np.zeros(self.learner.design.n_features)
        theta, weights = annotators.start, self.learner.from_orders(self.places(chains.order)[None], start)
        states, distances, values = [np.concatenate([theta, weights])], [], []
        for done in range(n_iter):
            expectation, following = self._expect_and_learn(method, theta, weights, chains)
            if not sampled:
                values.append(annotators.objective(theta, expectation.log_total) - self.learner.penalty(weights))
            distances.append(crowd.annotator_distances(expectation.distance))
            theta, weights = annotators.dispersions(theta, distances[-1]), following
            states.append(np.concatenate([theta, weights]))
            if progress is not None:
                progress(done + 1, n_iter, "ltrma")
            change = float(np.abs(states[-1] - states[-2]).max())
            if not sampled and change <= method.tol:
                return Estimates(theta, weights, Trace(done + 1, True, change, tuple(values)), chains)
        half = n_iter // 2
        change, settled = annotators.drift(distances[half:], "ltrma", n_iter)
        mean = np.mean(states[half + 1 :], axis=0)
        trace = Trace(n_iter, settled, change, None if sampled else tuple(values))
        return Estimates(mean[: len(theta)], mean[len(theta) :], trace, chains)

    def _expect_and_learn(
        self, method: LTRMA, theta: Floats, weights: Floats, chains: Chains
    ) -> tuple[OrderSums, Floats]:
        """Expected distances (E-step), and the weights learned from the same rankings (the ranker's M-step)."""
        crowd, n_items, sizes = self.crowd, len(self.crowd.arranged.item), self.crowd.arranged.lists.sizes
        n_sweeps = method.n_sweeps * sweep_factor(crowd.n_sampled_items)
        expect = partial(crowd.expect, theta, chains, n_sweeps, scores=self.scores(weights))
        if method.step == "hard":
            best = np.empty(n_items, np.int32)
            expectation = expect(best=best)
            return expectation, self.learner.from_orders(self.places(best)[None], weights)
        if not len(crowd.sampled) and len(self.item) == n_items:
            sets = np.zeros(int((2**sizes).sum()))
            expectation = expect(sets=sets)
            return expectation, self.learner.from_sets(sets[np.repeat(sizes > 0, 2**sizes)], weights)
        draws = np.zeros((max(1, min(method.n_draws, _MOST_DRAWN_PLACES // n_items)), n_items), np.float32)
        expectation = expect(draws=draws)
        orders = np.stack([self._places_of(np.lexsort((draw, crowd.item_query))) for draw in draws])
        return expectation, self.learner.from_orders(orders, weights)

    def learn_as_printed(self, *, n_iter: int, seed: int, progress: Progress | None = None) -> Estimates:
        """Return the estimates by the procedure of [Wu11]_: new random chains in each iteration, its stopping rule."""
        from .kernels.true_rankings import descend

        crowd, m, rng = self.crowd, self.learner.design.n_features, np.random.default_rng(seed)
        rows = np.concatenate([block for *_, block in self.learner.design.blocks()])
        offsets = self.learner.design.offsets
        chains, theta, weights = crowd.chains(), -rng.random(len(crowd.annotators.start)), np.full(m, 1 / m)
        best, ranked = np.empty(len(crowd.item_query), np.int32), np.unique(crowd.item_query[self.item])
        # in an order that does not depend on names
        visits = np.argsort(crowd.arranged.seeds[ranked])
        for done in range(n_iter):
            printed = partial(crowd.distances_as_printed, chains=chains, rng=rng, best=best)
            distance = crowd.annotator_distances(printed(theta, scores=self.scores(weights)))
            following = crowd.annotators.dispersions(theta, distance)
            moved, theta = float(np.linalg.norm(following - theta)), following
            printed(theta, scores=self.scores(weights))
            learned = descend(rows, self.places(best), offsets, visits, weights, _PRINTED_STEP, _PRINTED_EPOCHS)
            turned, weights = float(np.linalg.norm(learned - weights)), learned
            if progress is not None:
                progress(done + 1, n_iter, "ltrma")
            settled = moved < PRINTED_CHANGE * len(theta) and turned < PRINTED_CHANGE * m
            if settled:
                break
        return Estimates(theta, weights, Trace(done + 1, settled, max(moved, turned)), chains, best)


def unranked_scores(rankings: Rankings, features: Features, crowd: MallowsCrowd, ranker: LinearScore) -> Floats:
    """Return scores of items that nobody ranked, 0 for all others, from the ranker's Plackett-Luce scores.

    By these an item stands above another with some probability. The score is the number of ranked items (of items,
    where none of the query is ranked) that it is expected to stand above, less half of them.
    """
    row = features.items.codes_of(rankings.items, "features", "judgments")
    known = (row >= 0) & np.isfinite(features.matrix[row]).all(axis=1)
    expected, free = np.zeros(rankings.n_items), np.ones(rankings.n_items, bool)
    free[crowd.arranged.item] = False
    if not (free & known).any():
        return expected
    table, scores = pl.DataFrame(features.matrix[row[known]], schema=list(features.names)), np.zeros(rankings.n_items)
    scores[known] = ranker.predict(table, rankings.items.query[known])
    for query in np.unique(rankings.items.query[free & known]):
        here = np.arange(*rankings.items.offsets[query : query + 2])
        others = here[known[here] & (free[here].all() | ~free[here])]
        ours = here[free[here] & known[here]]
        # half of the hyperbolic tangent of half a gap is the logistic function less a half
        expected[ours] = 0.5 * np.tanh(0.5 * np.subtract.outer(scores[ours], scores[others])).sum(axis=1)
    return expected
