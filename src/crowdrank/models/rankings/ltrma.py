"""LTRMA-ML: a ListMLE ranker, true rankings and a Mallows dispersion per annotator, by expectation-maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...data.consensus import Consensus, Quality
from ...data.features import Features
from ...data.joint_fit import JointFit
from ...data.judgments import Rankings, expect
from ...errors import JudgmentError
from ...protocols import Bools, Counts, Floats, Progress
from ...quality import held_out_quality, trusted_annotators, warn_near_chance
from ...rankers.linear import LinearScore
from ...rankers.training_rows import SCALES
from ...wording import expect_above, expect_choices
from .ltrma_steps import Estimates, LuceWeights, ScoredTruths, unranked_scores
from .mallows_crowd import (
    MallowsCrowd,
    check_parameters,
    mallows_crowd,
    place_scores,
    place_spread,
    warn_few,
)

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
        from .kernels.ranked_lists import row_colours

        expect(judgments, self)
        sure, of_items = trusted_annotators(judgments, trusted), features.match(judgments)
        # items of different features are never alike, whatever the rankings say
        shades = row_colours(features.matrix, of_items)
        crowd = _crowd(self, judgments, sure, shades)
        row = of_items[crowd.arranged.item]
        item = np.flatnonzero(row >= 0)
        _expect_pairs(crowd.item_query[item])
        warn_few("ltrma", judgments, crowd)
        features.expect_numbers(row[item])
        with one_blas_thread():
            luce = LuceWeights.of(
                features.matrix[row[item]], crowd.item_query[item], scale=self.scale,
                ridge=self.ridge, tol=max(self.tol, _WEIGHT_TOL) if len(crowd.sampled) else self.tol, what="ltrma",
            )  # fmt: skip
            truths = ScoredTruths(crowd, luce, item, "ltrma")
            estimates = self._learn(truths, progress)
        ranker = LinearScore.of(features.names, luce.scaling, estimates.weights, estimates.trace)
        others = _Others(self, sure, shades, estimates.theta, truths.scores(estimates.weights), crowd.arranged.item)
        return JointFit(
            method="ltrma", ranker=ranker, consensus=_consensus(judgments, features, truths, estimates, ranker, others),
            n_items=len(item), n_queries=len(luce.offsets) - 1, n_unjudged=len(features) - int((of_items >= 0).sum()),
        )  # fmt: skip

    def _learn(self, truths: ScoredTruths, progress: Progress | None) -> Estimates:
        """Dispersions and weights, by the variant."""
        n_iter = self.max_iter or _ITERATIONS[self.variant]
        if self.variant == "printed":
            return truths.learn_as_printed(n_iter=n_iter, seed=self.seed, progress=progress)
        return truths.learn_by_turns(
            self.step, n_sweeps=self.n_sweeps, n_draws=self.n_draws, tol=self.tol, n_iter=n_iter, progress=progress
        )


def _crowd(method: LTRMA, rankings: Rankings, trusted: Bools, shades: Any) -> MallowsCrowd:
    """The rankings laid out; the printed procedure has no prior of the dispersions."""
    return mallows_crowd(
        rankings, trusted, distance=method.distance, alpha=0.0 if method.variant == "printed" else method.alpha,
        bound=method.bound, allow_reversed=method.allow_reversed,
        # soft steps take the sums over sets that only the Kendall distance has
        n_exact=method.n_exact if method.distance == "kendall" else 0, seed=method.seed,
        shades=shades,
    )  # fmt: skip


def _expect_pairs(query: Counts) -> None:
    """Refuse rankings without two items of a query that have features."""
    if not len(query) or np.bincount(query).max() < 2:
        raise JudgmentError(
            "nothing to learn: no ranking puts an item with features above another one; "
            "give rankings of two items or more, and features of them"
        )


def _consensus(
    rankings: Rankings,
    features: Features,
    truths: ScoredTruths,
    estimates: Estimates,
    ranker: LinearScore,
    others: _Others,
) -> Consensus:
    """The true rankings, as far as they are known in the end."""
    crowd, method = truths.crowd, others.method
    draws, n_sweeps = (
        crowd.sample_array(method.n_samples, rankings.n_items),
        crowd.last_sweeps(method.n_samples, _SWEEPS_PER_SAMPLE),
    )
    last = crowd.expect(estimates.theta, estimates.sampler, n_sweeps, scores=others.prior, draws=draws)
    if rankings.n_annotators and not others.trusted.any():
        share = crowd.annotator_distances(last.distance) / np.maximum(crowd.guessing, 1e-300)
        warn_near_chance("ltrma", 1.0 - 0.5 * share, crowd.guessing)
    place = last.place if estimates.order is None else crowd.places_in(estimates.order)
    scores = place_scores(rankings, crowd, place) + unranked_scores(rankings, features, crowd, ranker)
    replicates, std_error = place_spread(rankings, crowd, last, draws, scores, method.seed)
    return Consensus.of(
        method, rankings, scores, trace=estimates.trace, std_error=std_error, replicates=replicates,
        quality=partial(_quality, others, rankings),
        estimates={} if rankings.n_annotators else {"theta": float(estimates.theta[0])},
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Others:
    """The consensus of a part of the rankings, weights and dispersions held fixed.

    ``prior`` are the scores by features of the items with the codes ``item``, which are all that were ranked.
    """

    kinds: ClassVar[tuple[str, ...]] = ("ranking",)
    method: LTRMA
    trusted: Bools
    shades: Any
    theta: Floats
    prior: Floats
    item: Counts

    def fit(self, rankings: Rankings, /) -> Consensus:
        """Return the consensus of some of the rankings."""
        return Consensus.of(self.method, rankings, self.scores(rankings))

    def scores(self, rankings: Rankings, /) -> Floats:
        """Return the scores by some of the rankings."""
        crowd, prior = _crowd(self.method, rankings, self.trusted, self.shades), np.zeros(rankings.n_items)
        prior[self.item] = self.prior
        sampler, n_sweeps = crowd.start_chains(), crowd.last_sweeps(_N_OTHERS_SWEEPS, 1)
        expected = partial(crowd.expect, self.theta, sampler, scores=prior[crowd.arranged.item])
        if len(crowd.sampled):
            expected(n_sweeps // 2)
        return place_scores(rankings, crowd, expected(n_sweeps).place)


def _quality(others: _Others, rankings: Rankings) -> Quality | None:
    """Agreement of annotators with the truths by the others and the features, with their dispersions."""
    quality = held_out_quality(others, rankings)
    return quality if quality is None else quality.with_parameters(theta=others.theta)
