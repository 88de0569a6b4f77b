"""Mallows model: a central ranking with a dispersion per annotator, by expectation-maximisation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Consensus, Trace, settle_ties
from ...data.judgments import Rankings, align_judgments, expect, stack_judgments
from ...data.parted import PartColumns, PartedFit, read_sample, share_of_rows
from ...data.truth import Truth
from ...errors import DataWarning, ParameterError
from ...fitting import OneBlock, Step, accelerate, warn_unconverged
from ...protocols import BlockFit, Blocks, Bools, Floats, Ints, StepResult
from ...quality import LearnedQuality, trusted_annotators, warn_near_chance
from ...wording import expect_choices, option
from .mallows_crowd import PRINTED_CHANGE, Annotators, MallowsCrowd, check_parameters, last_sweeps, sweep_factor

if TYPE_CHECKING:
    from .kernels.true_rankings import Chains

_DISTANCES = ("kendall", "cayley", "footrule", "spearman")
_VARIANTS = ("carried", "printed", "conditional")
_CONSENSUS = ("mean", "mode")
_MOST_ITERATIONS = 1000
_SWEEPS_PER_SAMPLE = {"kendall": 4, "cayley": 2, "footrule": 2, "spearman": 2}
"""Sweeps between two of the rankings that are kept."""

_DISPERSION_DIGITS = 9
"""Annotators are alike where their dispersions have these digits in common."""


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
        probable ranking that it happened on; ``"conditional"``: Cranking, which learns dispersions from queries of
        known order.
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

    ``fit(prior=)`` takes a consensus whose scores are those of a Plackett-Luce prior :math:`P(t)` of the true rankings,
    such as one of another crowd or by features: the truth is then distributed as

    .. math:: P(t \mid y) \propto P(t) \exp\Bigl( \sum_a \theta_a \, d(y_a, t) \Bigr),

    Eq. 3 and 4 of [Wu11]_. Without it all rankings are equally probable. Cranking [Lebanon02]_ is the same model with
    dispersions that make the known orders of ``fit(known=)`` most probable given the rankings of their queries; it
    takes Kendall distance, queries of known order of up to ``n_exact`` items, and no ``alpha``.

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
        if self.distance != "kendall" and self.variant == "conditional":
            raise ParameterError("variant='conditional' goes with distance='kendall'")
        check_parameters(self, n_exact=0, n_sweeps=1, n_samples=2, max_iter=4)

    def fit(
        self,
        rankings: Rankings,
        *,
        known: Any | None = None,
        trusted: Any | None = None,
        prior: Consensus | None = None,
    ) -> Consensus:
        """Return mean places with random rankings to tell how sure they are, and the annotators' dispersions.

        ``known`` are items with grades or ranks, whose queries Cranking learns from; ``trusted`` names annotators known
        to be good; ``prior`` is a consensus whose scores say how probable true rankings are beforehand.
        """
        expect(rankings, self)
        sure, scores_before = trusted_annotators(rankings, trusted), None
        if prior is not None:
            code = prior.items.codes_of(rankings.items, "prior", "rankings")
            scores_before = np.where(code >= 0, prior.scores[code], 0.0)
        crowd, start = MallowsCrowd.of(self, rankings, sure, prior=scores_before), None
        if self.variant == "conditional":
            start = self._learn_from_known(rankings, sure, known, scores_before)
        elif known is not None:
            raise ParameterError(f"mallows uses {option('known')} with variant='conditional' only; leave it out")
        number = len(np.unique(crowd.annotator)) if rankings.n_annotators else 0
        _warn_unidentified(number, not len(crowd.weight) or crowd.shares_pairs, depth=3)
        start = crowd.annotators.start if start is None else start
        theta, trace, chains, order = self._fit_crowd(rankings, sure, crowd, start)
        draws = crowd.sample_array(self.n_samples, rankings.n_items)
        expectation = crowd.expect(theta, chains, self._last_sweeps(crowd.n_sampled_items), draws=draws)
        guessing = crowd.annotators.guessing
        if rankings.n_annotators and not sure.any():
            share = crowd.annotator_distances(expectation.distance) / np.maximum(guessing, 1e-300)
            warn_near_chance("mallows", 1.0 - 0.5 * share, guessing)
        place = expectation.place if order is None else crowd.places_in(order)
        scores = self._scores(rankings, crowd, theta, place)
        replicates, std_error = crowd.place_spread(rankings, expectation, draws, scores, self.seed)
        quality = self._quality(rankings, theta, sure, prior=scores_before)
        estimates = {} if rankings.n_annotators else {"theta": float(theta[0])}
        spread: Any = {"std_error": std_error, "replicates": replicates}
        return Consensus.of(self, rankings, scores, trace=trace, quality=quality, estimates=estimates, **spread)

    def over_blocks(self, judged: Any, *, trusted: Any | None = None, **given: Any) -> BlockFit:
        """Return the fit over blocks: dispersions are shared, and blocks keep the chains of their sampled queries."""
        if self.variant != "carried":
            raise ParameterError(f"mallows with variant={self.variant!r} needs all rankings at once; leave it out")
        if judged.by != "query":
            raise ParameterError("mallows goes query by query; pack the rankings by query")
        return BlockFit(_RankingBlock, partial(self._solve, judged, trusted_annotators(judged, trusted)))

    def _solve(self, judged: Any, trusted: Bools, blocks: Blocks) -> PartedFit:
        """The scores of all blocks, and the dispersions."""
        n, named = max(len(judged.annotators), 1), len(judged.annotators) > 0
        shared = _Shared(self, trusted, np.zeros(n))

        def survey(block: _RankingBlock, state: Any) -> StepResult:
            """Weight of all rankings of each annotator; number and total size of those that order items; of queries.

            Those are the number of sampled items, whether rankings share pairs, and the log number of orders.
            """
            rankings, crowd = block.rankings, block.crowd(shared)
            given = np.bincount(rankings.row_annotator, rankings.weight, n).astype(np.float64)
            number = np.bincount(crowd.annotator, minlength=n).astype(np.float64)
            length = np.bincount(crowd.annotator, np.diff(crowd.arranged.lists.starts), n).astype(np.float64)
            shares = float(crowd.shares_pairs) if len(crowd.weight) else 0.0
            return (given, number, length, float(crowd.n_sampled_items), shares, crowd.log_orders), None

        def count_sizes(block: _RankingBlock, state: Any) -> StepResult:
            """Annotator, size and weight of the rankings of a block, equal ones together."""
            from .kernels.true_rankings import size_cells

            crowd, ties = block.crowd(shared), shared.method.distance == "kendall"
            lists = crowd.arranged.lists
            who, what, much = size_cells(lists.starts, lists.rank, crowd.annotator, crowd.weight, ties=ties)
            most = int(what.max(initial=0)) + 1
            cells, entry = np.unique(who.astype(np.int64) * most + what, return_inverse=True)
            return (cells // most, cells % most, np.bincount(entry, much, len(cells)).astype(np.float64)), None

        given, number, length, n_sampled, n_shared, log_orders = blocks.total(survey)
        cells: Any = blocks.each(count_sizes)
        known = trusted if named else np.zeros(1, bool)
        annotators = Annotators.by_size(self, cells, number, length, known)
        guessing = annotators.guessing
        shared = _Shared(self, trusted, given, annotators, int(n_sampled), bool(n_shared), float(log_orders))
        several = int((guessing > 0).sum()) if named else 0
        _warn_unidentified(several, shared.shares_pairs or not guessing.any(), depth=2)
        theta, trace = _fit_dispersions(shared, blocks, annotators.start)
        if named and not trusted.any():
            share = blocks.total(partial(_expect, shared, theta, self.n_sweeps))[0] / np.maximum(guessing, 1e-300)
            warn_near_chance("mallows", 1.0 - 0.5 * share, guessing)
        columns = [PartColumns(*part) for part in blocks.read(partial(_read_scores, shared, theta))]
        estimates = {} if named else {"theta": float(theta[0])}
        quality = None
        if named:
            sample = partial(read_sample, attrgetter("rankings"), given, share_of_rows(judged.rows))
            samples = [part for (part,) in blocks.read(sample)]
            rankings = stack_judgments(align_judgments([part for part in samples if len(part)] or samples[:1]))
            quality = self._quality(rankings, theta, trusted, n_judgments=given)
        return PartedFit(columns, trace, quality, estimates=estimates)

    def scores(self, rankings: Rankings) -> Floats:
        """Return the scores alone, without random rankings, for repeated fits."""
        expect(rankings, self)
        return self._refit_scores(trusted_annotators(rankings, None), None, None, rankings)

    def _fit_crowd(
        self, rankings: Rankings, trusted: Bools, crowd: MallowsCrowd, start: Floats
    ) -> tuple[Floats, Trace, Chains, Ints | None]:
        """Dispersions of rankings in memory, where the chains stand, and the printed procedure's own order."""
        if not crowd.shares_pairs or self.variant == "conditional":
            return start, Trace(), crowd.chains(), None
        if self.variant == "printed":
            return _fit_as_printed(self, crowd)
        shared = _Shared(
            self, trusted, np.zeros(len(start)), crowd.annotators, crowd.n_sampled_items, True, crowd.log_orders
        )
        blocks = OneBlock(_RankingBlock(rankings, [crowd]))
        theta, trace = _fit_dispersions(shared, blocks, start)
        return theta, trace, crowd.chains(blocks.state), None

    def _learn_from_known(self, rankings: Rankings, trusted: Bools, known: Any | None, prior: Floats | None) -> Floats:
        """Dispersions under which the known orders are most probable given the rankings of their queries (Cranking)."""
        from scipy.optimize import minimize

        if known is None:
            raise ParameterError(
                f"variant='conditional' learns from queries of known order; give {option('known')}, or use "
                "variant='carried'"
            )
        truth, items, ranked = Truth.from_frame(known), rankings.items, rankings.judged_items
        if truth.form == "pairs":
            raise ParameterError(f"variant='conditional' takes {option('known')} items with grades or ranks, not pairs")
        grade = truth.align(items)
        # queries whose ranked items all have grades, no two the same
        query, n = items.query[ranked], items.n_queries
        distinct = np.unique(np.stack([query, grade[ranked]], axis=1)[np.isfinite(grade[ranked])], axis=0)[:, 0]
        size = np.bincount(query, minlength=n)
        teaches = (size > 1) & (np.bincount(distinct.astype(np.int64), minlength=n) == size)
        taught = rankings.select(teaches[items.query[rankings.item[rankings.offsets[:-1]]]])
        crowd = MallowsCrowd.of(self, taught, trusted, prior=prior)
        if not len(taught) or len(crowd.sampled):
            what = f"has more than {self.n_exact} items: raise n_exact (up to 15)" if len(taught) else "is there"
            raise ParameterError(
                f"variant='conditional' sums over all orders of queries whose order is known without ties, and "
                f"{'one' if len(taught) else 'none'} {what}"
            )
        reached, chains = crowd.annotator_distances(crowd.distances_to(grade)), crowd.chains()

        def loss(theta: Floats) -> tuple[float, Floats]:
            here = crowd.expect(theta, chains, 0)
            slopes = crowd.annotator_distances(here.distance) - reached
            return float(here.log_total.sum()) - float(theta @ reached), slopes

        bounds = [(self.bound, -self.bound if self.allow_reversed else 0.0)] * len(reached)
        found = minimize(loss, crowd.annotators.start, jac=True, method="L-BFGS-B", bounds=bounds, tol=1e-10)
        return np.asarray(found.x, np.float64)

    def _last_sweeps(self, n_sampled_items: int) -> int:
        """Number of sweeps that scores and random rankings are taken from."""
        return last_sweeps(n_sampled_items, self.n_samples, _SWEEPS_PER_SAMPLE[self.distance])

    def _scores(self, rankings: Rankings, crowd: MallowsCrowd, theta: Floats, place: Floats) -> Floats:
        """Places above the middle one; 0 for what was not ranked, equal for items that no ranking distinguishes."""
        if self.consensus == "mode":
            from .kernels.true_rankings import improve_orders

            order = crowd.order_by_score(crowd.middle_places - place)
            improve_orders(crowd.arranged.lists, theta[crowd.annotator] * crowd.weight, order)
            place = crowd.places_in(order)
        return crowd.place_scores(rankings, place)

    def _quality(
        self,
        rankings: Rankings,
        theta: Floats,
        trusted: Bools,
        n_judgments: Floats | None = None,
        prior: Floats | None = None,
    ) -> LearnedQuality | None:
        """Agreement of annotators with the consensus of the others, fitted a short way from where this fit ended."""
        if not rankings.n_annotators:
            return None
        brief = replace(self, max_iter=max(4, self.max_iter // 6), n_samples=min(100, self.n_samples), tol=1e-4)
        again = partial(brief._refit_scores, trusted, theta, prior)
        return LearnedQuality(rankings, again, {"theta": theta}, n_judgments=n_judgments)

    def _refit_scores(self, trusted: Bools, start: Floats | None, prior: Floats | None, rankings: Rankings) -> Floats:
        """Scores of a fit, from given dispersions or the usual ones."""
        crowd = MallowsCrowd.of(self, rankings, trusted, prior=prior)
        start = crowd.annotators.start if start is None else start
        theta, _, chains, order = self._fit_crowd(rankings, trusted, crowd, start)
        if order is not None:
            return self._scores(rankings, crowd, theta, crowd.places_in(order))
        expectation = crowd.expect(theta, chains, self._last_sweeps(crowd.n_sampled_items))
        return self._scores(rankings, crowd, theta, expectation.place)


class _Shared(NamedTuple):
    """What all blocks share besides dispersions.

    ``given`` is the weight of all rankings of each annotator. ``annotators`` is ``None`` until all rankings are
    counted; then there are the number of items of sampled queries, whether two rankings put the same two items in an
    order, and the logarithm of the number of true rankings of all exact queries together.
    """

    method: Mallows
    trusted: Bools
    given: Floats
    annotators: Annotators | None = None
    n_sampled_items: int = 0
    shares_pairs: bool = False
    log_orders: float = 0.0


@dataclass(frozen=True, eq=False)
class _RankingBlock:
    """Rankings, and the crowd that they are laid out as once all annotators are known."""

    rankings: Rankings
    laid_out: list[MallowsCrowd] = field(default_factory=list)

    def crowd(self, shared: _Shared) -> MallowsCrowd:
        """Return the crowd of the block; it is kept from step to step."""
        if self.laid_out:
            return self.laid_out[0]
        if shared.annotators is None:
            return MallowsCrowd.of(shared.method, self.rankings, shared.trusted)
        # who gave so many rankings: a name would make draws depend on it
        special = shared.given + 0.5 * (shared.trusted if len(shared.trusted) else np.zeros(1))
        self.laid_out.append(
            MallowsCrowd.of(shared.method, self.rankings, shared.trusted, special=special, annotators=shared.annotators)
        )
        return self.laid_out[0]


def _fit_dispersions(shared: _Shared, blocks: Blocks, start: Floats) -> tuple[Floats, Trace]:
    """Dispersions: the E-step is the expected distances to the true rankings, the M-step the dispersions with these.

    Where queries are sampled, dispersions are averaged over the second half of the iterations.
    """
    method, annotators = shared.method, shared.annotators
    assert annotators is not None
    if not shared.shares_pairs:
        return start, Trace()
    if shared.n_sampled_items:
        half, n_sweeps = method.max_iter // 2, method.n_sweeps * sweep_factor(shared.n_sampled_items)
        theta, thetas, distances = start, [], []
        for _ in range(method.max_iter):
            distances.append(blocks.total(partial(_expect, shared, theta, n_sweeps))[0])
            theta = annotators.dispersions(theta, distances[-1])
            thetas.append(theta)
        change, settled = annotators.drift(distances[half:], "mallows", method.max_iter)
        return np.mean(thetas[half:], axis=0), Trace(method.max_iter, settled, change)

    def step(theta: Floats) -> Step:
        distance, log_total = blocks.total(partial(_expect, shared, theta, 0))
        # all true rankings are equally probable beforehand
        value = annotators.objective(theta, np.asarray(log_total)) - shared.log_orders
        return Step(value, annotators.dispersions(theta, distance))

    upper, scale = -method.bound if method.allow_reversed else 0.0, np.sqrt(1.0 + annotators.guessing)
    theta, trace = accelerate(
        step, start, lower=method.bound, upper=upper, scale=scale, tol=method.tol, max_iter=_MOST_ITERATIONS
    )
    if not trace.converged:
        warn_unconverged("mallows", _MOST_ITERATIONS, trace.change, method.tol)
    return theta, trace


def _fit_as_printed(method: Mallows, crowd: MallowsCrowd) -> tuple[Floats, Trace, Chains, Ints]:
    """Dispersions by new random chains in each iteration, until they change little, and the best rankings seen."""
    rng, best = np.random.default_rng(method.seed), np.empty(len(crowd.item_query), np.int32)
    chains, theta = crowd.chains(), -rng.random(len(crowd.annotators.start))
    n_iter, change, settled = 0, np.inf, False
    while n_iter < method.max_iter and not settled:
        distance = crowd.annotator_distances(crowd.distances_as_printed(theta, chains, rng, best))
        following = crowd.annotators.dispersions(theta, distance)
        change, theta, n_iter = float(np.linalg.norm(following - theta)), following, n_iter + 1
        settled = change < PRINTED_CHANGE * len(theta)
    crowd.distances_as_printed(theta, chains, rng, best)
    return theta, Trace(n_iter, settled, change), chains, best


def _warn_unidentified(n_annotators: int, shares_pairs: bool, *, depth: int) -> None:
    """Warn where agreement between rankings does not, or hardly, identify quality."""
    if not shares_pairs:
        text = "no two rankings share two items: quality cannot be estimated"
    elif n_annotators == 2:
        text = "only two annotators: where they differ, rankings hardly show which is right"
    else:
        return
    warnings.warn(f"mallows: {text}; have items ranked by more annotators", DataWarning, stacklevel=depth)


# Steps in one block


def _expect(shared: _Shared, theta: Floats, n_sweeps: int, block: _RankingBlock, state: Any) -> StepResult:
    """Expected distances of each annotator's rankings, and the logarithm of the sums over exact queries (E-step)."""
    crowd = block.crowd(shared)
    chains = crowd.chains(state)
    expectation = crowd.expect(theta, chains, n_sweeps)
    # all blocks keep chains if any does
    kept = tuple(chains) if shared.n_sampled_items else None
    return (crowd.annotator_distances(expectation.distance), float(expectation.log_total.sum())), kept


def _read_scores(shared: _Shared, theta: Floats, block: _RankingBlock, state: Any) -> StepResult:
    """Scores and standard errors of the items of a block."""
    method, rankings, crowd = shared.method, block.rankings, block.crowd(shared)
    if not rankings.n_items:
        return (np.empty(0), np.empty(0)), None
    # items are alike that annotators of equal dispersions do not distinguish
    special = np.round(theta, _DISPERSION_DIGITS) + 0.0
    again = MallowsCrowd.of(method, rankings, shared.trusted, special=special, annotators=shared.annotators).arranged
    group = np.zeros(rankings.n_items, np.int64)
    group[again.item] = again.twin
    first, twin = np.unique(group[crowd.arranged.item], return_index=True, return_inverse=True)[1:]
    crowd = replace(crowd, arranged=crowd.arranged._replace(twin=first[twin]))
    draws = crowd.sample_array(method.n_samples if len(crowd.sampled) else 2, rankings.n_items)
    more: Any = {"draws": draws} if len(crowd.sampled) else {}
    expectation = crowd.expect(theta, crowd.chains(state), method._last_sweeps(shared.n_sampled_items), **more)
    scores = method._scores(rankings, crowd, theta, expectation.place)
    std_error = crowd.place_spread(rankings, expectation, draws, scores, method.seed)[1]
    return (settle_ties(method, rankings, scores), std_error), None
