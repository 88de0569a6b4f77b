"""Mallows model: a central ranking with a dispersion per annotator, by expectation-maximisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Consensus, Quality, Trace
from ...data.judgments import Rankings, expect
from ...errors import ParameterError
from ...fitting import accelerate, warn_unconverged
from ...protocols import BlockFit, Bools, Floats, Ints
from ...quality import held_out_quality, trusted_annotators, warn_near_chance
from ...wording import expect_choices
from .mallows_crowd import (
    PRINTED_CHANGE,
    MallowsCrowd,
    Sampler,
    check_parameters,
    mallows_crowd,
    middle_places,
    place_scores,
    place_spread,
    warn_unidentified,
)

_DISTANCES = ("kendall", "cayley", "footrule", "spearman")
_VARIANTS = ("carried", "printed")
_CONSENSUS = ("mean", "mode")
_MOST_ITERATIONS = 1000
_SWEEPS_PER_SAMPLE = {"kendall": 4, "cayley": 2, "footrule": 2, "spearman": 2}
"""Sweeps between two of the rankings that are kept."""


@dataclass(frozen=True, kw_only=True)
class Mallows:
    r"""Mallows model: a central ranking with a dispersion per annotator.

    Annotator :math:`a` ranks the :math:`n` items of a query as :math:`y` where the truth is :math:`t` with probability

    .. math:: P(y \mid t, a) = \frac{\exp(\theta_a \, d(y, t))}{Z(n, \theta_a)},

    :math:`d` being the Kendall distance, the number of pairs that the two order differently, or another one that does
    not depend on how items are numbered: the Cayley distance, the number of swaps of two items that lead from one to
    the other, the footrule :math:`\sum_i |y_i - t_i|` or the Spearman distance :math:`\sum_i (y_i - t_i)^2` of the
    places of all items [Mallows57]_ [Diaconis77]_. The dispersion :math:`\theta_a` is
    pooled over all queries: the more negative, the better the annotator; 0 is guessing. All truths are equally probable
    beforehand. Dispersions are fitted by expectation-maximisation [Klementiev08]_, as LTRMA-D does [Wu11]_: the truths
    are averaged over, and each dispersion is set to where the expected distance is that of the annotator's rankings.

    The score is the mean place of an item over all rankings, weighed by their probability given the annotators, in
    places above the middle one. Random rankings so weighed are kept as ``replicates``, from which intervals and
    ``beats`` are computed. The annotators' parameter ``theta`` is their dispersion.

    When to use
    -----------
    Use it for full or long rankings by a handful of annotators, up to some hundred items per query. For many items or
    very short rankings use ``plackett_luce``; with features ``ltrma`` learns a ranker along with it.

    Parameters
    ----------
    distance
        ``"kendall"``, for annotators who mix up neighbours; ``"cayley"``, for those who exchange any two items;
        ``"footrule"`` and ``"spearman"``, for those who misplace items, the latter the less likely the further (both
        up to 14 ranked items per query).
    variant
        ``"carried"``: see the notes; ``"printed"``: the sampler of [Wu11]_ to the letter, whose consensus is the most
        probable ranking that it happened on.
    consensus
        ``"mean"``: scores by mean place; ``"mode"``: by the place in the most probable ranking, or one that moving any
        single item would not improve (Kendall distance only).
    allow_reversed
        Whether :math:`\theta` may be above 0, so rankings of annotators who rank the wrong way round are used
        turned over; otherwise they count as guessing.
    alpha
        Pull of the dispersions, in ranked items: this many rows of rankings as long as an annotator's usual ones, and a
        third as far from the truth as guessing, are added to the annotator's own. Raise it where annotators ranked
        little; 0 is maximum likelihood, as published.
    bound
        Lowest dispersion, below 0, for those who always agree with the consensus.
    n_exact
        Queries of up to this many items, at most 15, are averaged over exactly, larger ones by sampling. Each item more
        takes twice the time. With other distances than Kendall's it is 8 at most, and queries where a ranking has ties
        are sampled.
    n_sweeps
        Sweeps of the sampler in each iteration, more where fewer than 300 items are sampled in all.
    n_samples
        Random rankings to keep for intervals and comparisons, fewer where there are more than 40,000 items.
    tol
        Largest change of a dispersion in the last pass, where all queries are exact; raise it to stop earlier.
    max_iter
        Iterations where queries are sampled, all of which are done; dispersions are averaged over the second half.
    seed
        Seed of the random draws.

    Notes
    -----
    Signs are those of [Wu11]_; others, and ``crowdrank.simulate``, write :math:`-\theta`. Its equation for the expected
    distance cancels near 0, so a stable form and its series are used, tabulated and inverted once per size.

    With Kendall distance a query's rankings come down to one table of pairs. Up to ``n_exact`` items, sums over all
    rankings are done exactly, set by set; then the trace has the log-likelihood with the prior, passes are
    extrapolated, and they stop by ``tol``. Larger queries have a chain of rankings that begins with Borda's order and
    goes on from iteration to iteration: neighbours are swapped, even places and odd places in turn, and single items
    moved, each by its conditional distribution. ``change`` is then the drift of the mean distances over the averaged
    iterations, as a share of those of guessing, and above 0.05 there is a warning. Queries have up to 3,000 items
    (1,000 with Cayley distance), since a table of n x n pairs is filled; use ``plackett_luce`` for more.

    With the other distances all rankings of up to 8 items are listed with their distance to each of those given, and
    larger queries have chains in which two random items are swapped. Expected footrule and Spearman distances
    have no closed form; rankings are counted by their distance, which is why they end at 14 items.

    The printed variant begins with random rankings and random dispersions in every iteration, tries 500 swaps, has no
    prior, and stops when the dispersions change by less than 0.01 each; ``ltrma-d-paper`` is this one with ListMLE.

    A partial ranking counts for the items it has, with its own :math:`n`. Items that it ties were not put in an order:
    the probability is that of all ways to order them, added up. Rankings that tie everything, and items that
    stand in no other, say nothing; such items have score 0, and random places among the others. Items that no ranking
    tells apart have equal scores. Without annotators all rankings have one dispersion.

    The default ``alpha`` is a departure from the papers. Likelihood alone takes annotators with few rankings who agree
    with the consensus for perfect, and makes them the consensus: where five annotators ranked eight items once,
    Kendall's tau with the truth was .62 with ``alpha=0``, .64 for Borda and .68 with the default, on average over
    16 draws of annotators. Where no two rankings share two items, or there are only two annotators, agreement says
    little about quality, and there is a warning.

    The prior of annotators in ``trusted`` is 95 pairs right and 5 wrong, and the fit begins with what they say. Draws
    depend on who ranked what above what and on the seed, not on names nor on the order of the rows.

    Examples
    --------
    >>> rows = [(who, "q", item, rank + 1) for who, order in [("ann", "xyz"), ("bob", "xyz"), ("cy", "zyx")]
    ...         for rank, item in enumerate(order)]
    >>> consensus = Mallows().fit(Rankings.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["theta"].round(2).tolist()
    (['x', 'y', 'z'], [-1.7, -1.7, -0.21])
    """

    kinds: ClassVar[tuple[str, ...]] = ("ranking",)
    precision: ClassVar[float] = 1e-8
    distance: str = "kendall"
    variant: str = "carried"
    consensus: str = "mean"
    allow_reversed: bool = False
    alpha: float = 6.0
    bound: float = -12.0
    n_exact: int = 8
    n_sweeps: int = 30
    n_samples: int = 500
    tol: float = 1e-6
    max_iter: int = 60
    seed: int = 0

    def __post_init__(self) -> None:
        expect_choices(self, distance=_DISTANCES, variant=_VARIANTS, consensus=_CONSENSUS)
        if self.distance != "kendall" and self.consensus == "mode":
            raise ParameterError("consensus='mode' goes with distance='kendall'; use consensus='mean'")
        check_parameters(self, n_exact=0, n_sweeps=1, n_samples=2, max_iter=4)

    def fit(self, rankings: Rankings, *, trusted: Any | None = None) -> Consensus:
        """Return mean places with random rankings to tell how sure they are, and the annotators' dispersions.

        ``trusted`` names annotators known to be good.
        """
        expect(rankings, self)
        sure = trusted_annotators(rankings, trusted)
        crowd = self.crowd(rankings, sure)
        warn_unidentified("mallows", rankings, crowd)
        theta, trace, sampler, order = fit_dispersions(self, crowd, crowd.start)
        draws = crowd.sample_array(self.n_samples, rankings.n_items)
        expectation = crowd.expect(theta, sampler, last_sweeps(self, crowd), draws=draws)
        if rankings.n_annotators and not sure.any():
            share = crowd.annotator_distances(expectation.distance) / np.maximum(crowd.guessing, 1e-300)
            warn_near_chance("mallows", 1.0 - 0.5 * share, crowd.guessing)
        scores = mallows_scores(
            self, rankings, crowd, theta, expectation.place if order is None else crowd.places_in(order)
        )
        replicates, std_error = place_spread(rankings, crowd, expectation, draws, scores, self.seed)
        return Consensus.of(
            self, rankings, scores, trace=trace, std_error=std_error,
            replicates=replicates, quality=partial(_quality, self, rankings, theta, sure),
            estimates={} if rankings.n_annotators else {"theta": float(theta[0])},
        )  # fmt: skip

    def over_blocks(self, judged: Any, *, trusted: Any | None = None, **given: Any) -> BlockFit:
        """Return the passes of a fit to rankings in parts."""
        from .mallows_passes import MallowsPasses

        if self.variant == "printed":
            raise ParameterError("mallows with variant='printed' needs all rankings at once; use variant='carried'")
        if judged.by != "query":
            raise ParameterError("mallows goes query by query; pack the rankings by query")
        passes = MallowsPasses(self, judged, trusted_annotators(judged, trusted))
        return BlockFit(passes.lay_out, passes.solve)

    def scores(self, rankings: Rankings) -> Floats:
        """Return the scores alone, without random rankings, for repeated fits."""
        expect(rankings, self)
        return _refit_scores(self, rankings, trusted_annotators(rankings, None))

    def crowd(self, rankings: Rankings, trusted: Bools, **shared: Any) -> MallowsCrowd:
        """Return the rankings laid out for this method; ``trusted`` (n_annotators,) tells whom to trust.

        ``shared`` is what all rankings say where these are some of them, see :func:`~.mallows_crowd.mallows_crowd`.
        """
        return mallows_crowd(
            rankings, trusted, distance=self.distance, alpha=0.0 if self.variant == "printed" else self.alpha,
            bound=self.bound,
            allow_reversed=self.allow_reversed, n_exact=self.n_exact, seed=self.seed, **shared,
        )  # fmt: skip


def fit_dispersions(
    method: Mallows, crowd: MallowsCrowd, start: Floats
) -> tuple[Floats, Trace, Sampler, Ints | None]:  # fmt: skip
    """Return the dispersions, how they were found, where the chains stand, and the printed procedure's own order.

    ``crowd.expect`` is the E-step, the expected distances to the true rankings; ``crowd.dispersions`` the M-step.
    """
    sampler = crowd.start_chains()
    if not crowd.shares_pairs:
        return start, Trace(), sampler, None
    if method.variant == "printed":
        return _fit_as_printed(method, crowd, sampler)
    if len(crowd.sampled):
        return *_average_dispersions(method, crowd, sampler, start), sampler, None

    def step(theta: Floats) -> _Step:
        expectation = crowd.expect(theta, sampler, 0)
        return _Step(crowd.objective(theta, expectation.log_total), crowd.dispersions(theta, expectation.distance))

    upper = -method.bound if method.allow_reversed else 0.0
    theta, trace = accelerate(
        step, start, lower=method.bound, upper=upper, scale=np.sqrt(1.0 + crowd.guessing), tol=method.tol,
        max_iter=_MOST_ITERATIONS,
    )  # fmt: skip
    if not trace.converged:
        warn_unconverged("mallows", _MOST_ITERATIONS, trace.change, method.tol)
    return theta, trace, sampler, None


class _Step(NamedTuple):
    """The objective at some dispersions, and those that follow."""

    value: float
    following: Floats


def _average_dispersions(method: Mallows, crowd: MallowsCrowd, sampler: Sampler, theta: Floats) -> tuple[Floats, Trace]:
    """Dispersions averaged over the second half of the iterations."""
    half, n_sweeps, thetas, distances = method.max_iter // 2, method.n_sweeps * crowd.sweep_factor, [], []
    for _ in range(method.max_iter):
        expectation = crowd.expect(theta, sampler, n_sweeps)
        theta = crowd.dispersions(theta, expectation.distance)
        thetas.append(theta)
        distances.append(crowd.annotator_distances(expectation.distance))
    change, settled = crowd.drift(distances[half:], "mallows", method.max_iter)
    return np.mean(thetas[half:], axis=0), Trace(method.max_iter, settled, change)


def _fit_as_printed(method: Mallows, crowd: MallowsCrowd, sampler: Sampler) -> tuple[Floats, Trace, Sampler, Ints]:
    """Dispersions by new random chains in each iteration, until they change little, and the best rankings seen."""
    rng, best = np.random.default_rng(method.seed), np.empty(len(crowd.item_query), np.int32)
    theta = -rng.random(len(crowd.start))
    n_iter, change, settled = 0, np.inf, False
    while n_iter < method.max_iter and not settled:
        following = crowd.dispersions(theta, crowd.distances_as_printed(theta, sampler, rng, best))
        change, theta, n_iter = float(np.linalg.norm(following - theta)), following, n_iter + 1
        settled = change < PRINTED_CHANGE * len(theta)
    crowd.distances_as_printed(theta, sampler, rng, best)
    return theta, Trace(n_iter, settled, change), sampler, best


def last_sweeps(method: Mallows, crowd: MallowsCrowd) -> int:
    """Return the number of sweeps that scores and random rankings are taken from."""
    return crowd.last_sweeps(method.n_samples, _SWEEPS_PER_SAMPLE[method.distance])


def mallows_scores(method: Mallows, rankings: Rankings, crowd: MallowsCrowd, theta: Floats, place: Floats) -> Floats:
    """Return places above the middle one; 0 for what was not ranked, equal for items that no ranking distinguishes."""
    if method.consensus == "mode":
        from .kernels.permutations import improve_orders

        order = crowd.order_by_score(middle_places(crowd) - place)
        improve_orders(crowd.arranged.lists, theta[crowd.annotator] * crowd.weight, order)
        place = crowd.places_in(order)
    return place_scores(rankings, crowd, place)


def _quality(method: Mallows, rankings: Rankings, theta: Floats, trusted: Bools) -> Quality | None:
    """Agreement of annotators with the consensus of the others, with their dispersions."""
    quality = held_out_quality(others_fit(method, theta, trusted), rankings)
    return quality if quality is None else quality.with_parameters(theta=theta)


def others_fit(method: Mallows, theta: Floats, trusted: Bools) -> _OthersFit:
    """Return what fits some of the rankings again after a fit to all."""
    brief = replace(method, max_iter=max(4, method.max_iter // 6), n_samples=min(100, method.n_samples), tol=1e-4)
    return _OthersFit(brief, theta, trusted)


@dataclass(frozen=True, eq=False)
class _OthersFit:
    """A former fit, to be fitted again to a part of its rankings: a short way from where it ended."""

    kinds: ClassVar[tuple[str, ...]] = ("ranking",)
    method: Mallows
    theta: Floats
    trusted: Bools

    def fit(self, rankings: Rankings, /) -> Consensus:
        """Return the consensus of some of the rankings."""
        return Consensus.of(self.method, rankings, self.scores(rankings))

    def scores(self, rankings: Rankings, /) -> Floats:
        """Return the scores by some of the rankings."""
        return _refit_scores(self.method, rankings, self.trusted, self.theta)


def _refit_scores(method: Mallows, rankings: Rankings, trusted: Bools, start: Floats | None = None) -> Floats:
    """Scores of a fit, from given dispersions or the usual ones."""
    crowd = method.crowd(rankings, trusted)
    theta, _, sampler, order = fit_dispersions(method, crowd, crowd.start if start is None else start)
    if order is not None:
        return mallows_scores(method, rankings, crowd, theta, crowd.places_in(order))
    return mallows_scores(
        method, rankings, crowd, theta, crowd.expect(theta, sampler, last_sweeps(method, crowd)).place
    )
