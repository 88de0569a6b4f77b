"""Mallows' model of a crowd: expectations over true rankings (E-step), dispersions (M-step), and scores from places."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ...data.intake import short
from ...data.judged import pairs_within
from ...data.judgments import Rankings
from ...errors import ConvergenceWarning, JudgmentError, ParameterError
from ...protocols import Bools, Counts, Floats, Ints
from ...quality import TRUSTED
from ...wording import expect_at_least

if TYPE_CHECKING:
    from .kernels.true_rankings import Chains, DistanceTable, OrderSums, RankingLayout, SizeCounts

MOST_ITEMS = {"kendall": 3000, "cayley": 1000, "footrule": 14, "spearman": 14}
"""Largest query of each distance: a table of n x n pairs, as many steps in each sweep, or 2^n rankings counted."""

PRINTED_MOVES, PRINTED_CHANGE = 500, 0.01
"""Of the procedure of [Wu11]_: moves of a chain, and change of each parameter to stop at."""

MOST_EXACT = 15
"""Most items of a query that is summed over, since tables have 2^n n cells."""

_EQUAL_SCORE_GAP = 1e-9
_MOST_DRIFT = 0.05
"""Largest drift of distances in a fit that has settled."""

# threshold (sample): items of a query from which Mallows takes fewer samples
_MANY_ITEMS = 300
_MOST_SWEEP_FACTOR = 4
_MOST_SAMPLE_CELLS, _LEAST_SAMPLES = 20_000_000, 50
# threshold (sample): pairs of rankings listed
_LISTED_PAIRS = 20_000_000
"""Pairs of rankings that are listed to see whether two share one; where there are more, some will."""

_PRIOR_SHARE = 1 / 3
"""Distance of an annotator's ranking to the truth before anything is known, as a share of that of guessing."""


def check_parameters(method: Any, **least: int) -> None:
    """Refuse parameters out of range of a method with this model; ``least`` are the smallest of whole numbers."""
    if not -100 <= method.bound < 0:
        raise ParameterError(f"bound={method.bound} must lie between -100 and 0, which is guessing")
    for name, lowest in ({"alpha": 0} | least).items():
        expect_at_least(method, lowest, name)
    if method.n_exact > MOST_EXACT:
        raise ParameterError(f"n_exact={method.n_exact} must be at most {MOST_EXACT}; larger queries are sampled")


class Annotators(NamedTuple):
    """What is known of the annotators beforehand, and by the sizes of their rankings.

    Parameters
    ----------
    prior
        Distances of the rankings that the prior adds to each annotator's own, added up, (n_annotators,).
    guessing
        Distances that guessing would give the annotator's own rankings, added up, (n_annotators,).
    sizes, counts, table
        Sizes of rankings, how many of each an annotator gave, the prior's included, and distances by dispersion.
    distance
        Name of the distance.
    start
        Dispersions to begin with, (n_annotators,).
    """

    prior: Floats
    guessing: Floats
    sizes: Counts
    counts: SizeCounts
    table: DistanceTable
    distance: str
    start: Floats

    @classmethod
    def by_size(
        cls, method: Any, cells: Sequence[tuple[Any, Any, Floats]], number: Floats, total: Floats, trusted: Bools
    ) -> Self:
        """Return what is known of the annotators by the sizes of their rankings.

        Parameters are as for :meth:`MallowsCrowd.of`.

        Only fits that carry their chains on have a prior of the dispersions.

        ``cells`` are those of :func:`~.kernels.dispersion.size_cells`, ``number`` and ``total`` the number of each
        annotator's rankings and of the items in them, (n_annotators,).
        """
        from .kernels.true_rankings import SizeCounts, count_cells, distance_table, solve_dispersions

        n, alpha = len(number), method.alpha if method.variant == "carried" else 0.0
        # the mean size of an annotator's rankings, of all for those without
        mean = float(total.sum() / number.sum()) if number.any() else 2.0
        sizes_of_each = np.divide(total, number, out=np.full(n, mean), where=number > 0)
        usual = np.maximum(np.round(sizes_of_each), 2).astype(np.int64)
        more = np.where(trusted, sum(TRUSTED) / (usual * (usual - 1) / 2), alpha / usual)
        sizes, counts = count_cells([*cells, (np.arange(n), usual, more)], n)
        table = distance_table(sizes, method.bound, both=method.allow_reversed, distance=method.distance)
        row = np.searchsorted(sizes, usual)
        # guessing orders half of the pairs wrongly
        far = np.where(trusted, 2 * TRUSTED[1] / sum(TRUSTED), _PRIOR_SHARE) * table.guessing[row]
        alone = SizeCounts(np.arange(n + 1), row, np.ones(n))
        owner = np.repeat(np.arange(n), np.diff(counts.starts))
        guessing = np.bincount(owner, counts.weight * table.guessing[counts.row], n) - more * table.guessing[row]
        start = solve_dispersions(table, alone, far, np.zeros(n))
        return cls(far * more, guessing, sizes, counts, table, method.distance, start)

    def dispersions(self, theta: Floats, distances: Floats) -> Floats:
        """Return the dispersions that make the total distances expected (M-step); ``theta`` where nothing was ranked.

        ``distances`` (n_annotators,) are those of all rankings of each annotator.
        """
        from .kernels.true_rankings import solve_dispersions

        return solve_dispersions(self.table, self.counts, distances + self.prior, theta)

    def objective(self, theta: Floats, log_total: Floats) -> float:
        """Return the log-likelihood with the prior, where all queries are exact and all true rankings weigh 1."""
        from .kernels.true_rankings import log_normalisers

        owner = np.repeat(np.arange(len(theta)), np.diff(self.counts.starts))
        norms = log_normalisers(theta, int(self.sizes[-1]), self.distance)[owner, self.sizes[self.counts.row]]
        return float(log_total.sum()) - float((self.counts.weight * norms).sum()) + float((self.prior * theta).sum())

    def drift(self, distances: list[Floats], what: str, n_iter: int) -> tuple[float, bool]:
        """Return how the total distances (n_annotators,) of some iterations drift, and whether that is little.

        The drift is a share of the distances of guessing. Where it is not little there is a warning.
        """
        early, late = np.array_split(np.array(distances) / self.guessing.sum(), 2)
        change = float(np.abs(late.mean(axis=0) - early.mean(axis=0)).sum())
        settled = change <= _MOST_DRIFT
        if not settled:
            warnings.warn(
                f"{what}: after {n_iter} iterations the distances to the consensus still change by {change:.2g} "
                "of those of guessing; raise max_iter",
                ConvergenceWarning,
                stacklevel=5,
            )
        return change, settled


@dataclass(frozen=True, eq=False)
class MallowsCrowd:
    """Rankings laid out for passes over them, and what is known of the annotators beforehand.

    Parameters
    ----------
    arranged
        The rankings and the way back to codes; the names of items have no part in it.
    weight, annotator
        Of each ranking, (n_lists,).
    annotators
        What is known of the annotators.
    exact, sampled
        Queries that are summed over, and those that are drawn from.
    prior_scores
        Scores of a Plackett-Luce prior of the true rankings, (n_items of the crowd); all are equally probable without.
    """

    arranged: RankingLayout
    weight: Floats
    annotator: Ints
    annotators: Annotators
    exact: Counts
    sampled: Counts
    prior_scores: Floats | None = None

    @classmethod
    def of(
        cls,
        method: Any,
        rankings: Rankings,
        trusted: Bools,
        *,
        n_exact: int | None = None,
        shades: NDArray[np.uint64] | None = None,
        special: Floats | None = None,
        annotators: Annotators | None = None,
        prior: Floats | None = None,
    ) -> Self:
        """Return the crowd of some rankings; without names all are by one annotator.

        ``method`` has the parameters of ``Mallows`` that say how, ``n_exact`` in place of its own if given. ``trusted``
        (n_annotators,) are those whose prior is that of trusted annotators, and ``shades`` (n_items,) tell items apart
        that are not alike. Where these rankings are some of all, ``annotators`` is what all of them say of them, and
        ``special`` (n_annotators,) tells those apart. ``prior`` (n_items,) are the scores of a Plackett-Luce prior of
        the true rankings.
        """
        from .kernels.true_rankings import arrange, listable, row_colours, size_cells

        if prior is not None:
            # items of unequal scores are not alike
            shades = row_colours(prior[:, None], np.arange(len(prior), dtype=np.int32))
        distance, n_exact = method.distance, method.n_exact if n_exact is None else n_exact
        n, named = max(rankings.n_annotators, 1), rankings.n_annotators > 0
        annotator = rankings.annotator if named else np.zeros(len(rankings), np.int32)
        trusted = trusted if named else np.zeros(1, bool)
        weight = np.ascontiguousarray(rankings.row_weight)
        arranged = arrange(
            rankings.item, rankings.rank, rankings.offsets, rankings.items.query, rankings.n_queries,
            (weight, annotator, trusted.astype(np.float64) if special is None else special), method.seed, shades=shades,
        )  # fmt: skip
        weight, annotator, lists = weight[arranged.ranking], annotator[arranged.ranking], arranged.lists
        most, query = MOST_ITEMS[distance], int(np.argmax(lists.sizes)) if len(lists.sizes) else 0
        if len(lists.sizes) and lists.sizes[query] > most:
            where = "" if rankings.items.single else f" (query {short(rankings.items.queries.ids[query])})"
            raise JudgmentError(
                f"Mallows' model with {distance} distance takes queries of up to {most:,} ranked items, and here are "
                f"{int(lists.sizes[query]):,}{where}; use plackett_luce"
            )
        if annotators is None:
            number = np.bincount(annotator, minlength=n).astype(np.float64)
            total = np.bincount(annotator, np.diff(lists.starts), n).astype(np.float64)
            cells = size_cells(lists.starts, lists.rank, annotator, weight, ties=distance == "kendall")
            annotators = Annotators.by_size(method, [cells], number, total, trusted)
        ranked = np.flatnonzero(lists.sizes)
        exact = ranked[lists.sizes[ranked] <= n_exact]
        if distance != "kendall":
            exact = listable(lists, ranked, n_exact)
        prior_scores = None if prior is None else prior[arranged.item]
        return cls(arranged, weight, annotator, annotators, exact, np.setdiff1d(ranked, exact), prior_scores)

    @property
    def item_query(self) -> Counts:
        """Query of each item."""
        sizes = self.arranged.lists.sizes
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def n_sampled_items(self) -> int:
        """Number of items of sampled queries."""
        return int(self.arranged.lists.sizes[self.sampled].sum())

    @property
    def shares_pairs(self) -> bool:
        """Whether two rankings put the same two items in an order."""
        lists = self.arranged.lists
        length = np.diff(lists.starts)
        query = np.repeat(np.arange(len(lists.sizes)), np.diff(lists.queries))
        pairs = np.bincount(query, length * (length - 1) // 2, len(lists.sizes))
        if (pairs > lists.sizes * (lists.sizes - 1) // 2).any() or pairs.sum() > _LISTED_PAIRS:
            return True
        first, second = pairs_within(np.arange(len(lists.item)), np.repeat(lists.starts[1:], length))
        untied = lists.rank[first] != lists.rank[second]
        item = lists.item + lists.offsets[np.repeat(query, length)]
        one, other = item[first[untied]], item[second[untied]]
        keys = np.minimum(one, other) * len(self.arranged.item) + np.maximum(one, other)
        return len(np.unique(keys)) < len(keys)

    @property
    def log_orders(self) -> float:
        """Logarithm of the number of true rankings of all exact queries together; 0 where a prior weighs them."""
        from math import lgamma

        if self.prior_scores is not None:
            return 0.0
        return float(sum(lgamma(size + 1) for size in self.arranged.lists.sizes[self.exact].tolist()))

    def sample_array(self, n_samples: int, n_items: int) -> NDArray[np.float32]:
        """Return room for this many random rankings, (n_draws, n_items of the crowd), fewer of many items."""
        most = max(_LEAST_SAMPLES, _MOST_SAMPLE_CELLS // max(n_items, 1))
        return np.zeros((min(n_samples, most), len(self.arranged.item)), np.float32)

    @cached_property
    def first_chains(self) -> Chains:
        """Chains that begin with the items by mean standing (Borda), equal ones by their numbers."""
        from ...kernels.segments import ranking_standings, segment_means
        from .kernels.true_rankings import Chains

        lists, within = self.arranged.lists, self.item_query
        length = np.diff(lists.starts)
        number = np.repeat(np.arange(len(length)), length)
        query = np.repeat(np.arange(len(lists.sizes)), np.diff(lists.queries))[number]
        # trusted annotators count for more from the start
        weight = (self.weight * np.abs(self.annotators.start[self.annotator]))[number]
        standing = segment_means(
            ranking_standings(lists.rank, lists.starts), lists.item + lists.offsets[query], weight, len(within)
        )
        slots = np.arange(len(number)) - lists.starts[number]
        return Chains(self.order_by_score(standing), self.arranged.seeds, slots)

    def chains(self, kept: Any = None) -> Chains:
        """Return chains that go on from where they were kept, or begin."""
        from .kernels.true_rankings import Chains

        order, state, slots = self.first_chains if kept is None else kept
        return Chains(order.copy(), state.copy(), slots.copy())

    def order_by_score(self, scores: Floats) -> Ints:
        """Return the items of each query by their numbers, the best first; scores equal up to rounding are equal."""
        from ...kernels.segments import join_ties

        within, offsets = self.item_query, self.arranged.lists.offsets
        level = join_ties(scores, offsets, np.full(len(offsets) - 1, _EQUAL_SCORE_GAP))
        order = np.lexsort((np.arange(len(scores)), -level, within))
        return (order - offsets[within]).astype(np.int32)

    def places_in(self, order: Ints) -> Floats:
        """Return the place of each item, from 0, in orders that hold the items of each query by their numbers."""
        head, places = self.arranged.lists.offsets[self.item_query], np.empty(len(order))
        places[order + head] = np.arange(len(order)) - head
        return places

    def expect(
        self,
        theta: Floats,
        chains: Chains,
        n_sweeps: int,
        *,
        scores: Floats | None = None,
        draws: NDArray[np.float32] | None = None,
        best: Ints | None = None,
        sets: Floats | None = None,
    ) -> OrderSums:
        """Return expectations at the dispersions, (n_annotators,), over this many sweeps where queries are sampled.

        ``scores`` (n_items,) are those of a Plackett-Luce prior, unless the crowd's. ``draws`` (n_draws, n_items) is
        filled with places of the items in random rankings, ``best`` (n_items,) with the most probable ranking, of those
        seen where queries are sampled, as items by their numbers, and ``sets``, for exact queries, with the chances of
        :func:`~crowdrank.models.rankings.kernels.true_rankings.sum_orders`.
        """
        from .kernels.true_rankings import OrderSums, sum_listed, sum_orders, sweep

        lists, pull, distance = self.arranged.lists, theta[self.annotator] * self.weight, self.annotators.distance
        zeros = np.zeros(len(self.item_query))
        sums = OrderSums(np.zeros(1), np.zeros(len(pull)), zeros, zeros)
        wanted: Any = {"scores": self.prior_scores if scores is None else scores, "draws": draws, "best": best}
        if len(self.exact) and distance == "kendall":
            sums = sum_orders(lists, pull, self.exact, state=chains.state, sets=sets, **wanted)
        elif len(self.exact):
            sums = sum_listed(lists, self.exact, self._listed_orders, pull, state=chains.state, **wanted)
        if len(self.sampled):
            seen = sweep(lists, pull, chains, self.sampled, n_sweeps, distance, **wanted)
            sums = sums._replace(distance=sums.distance + seen.distance, place=sums.place + seen.place)
        return sums

    @cached_property
    def _listed_orders(self) -> list[NDArray[np.uint8]]:
        """Distances of all rankings of the exact queries, where they are no sums over pairs."""
        from .kernels.true_rankings import list_orders

        return list_orders(self.arranged.lists, self.exact, self.annotators.distance)

    def distances_as_printed(
        self, theta: Floats, chains: Chains, rng: np.random.Generator, best: Ints, scores: Floats | None = None
    ) -> Floats:
        """Return mean distances over random swaps from a random start; the best ranking seen goes to ``best``."""
        from .kernels.true_rankings import sweep

        lists, pull = self.arranged.lists, theta[self.annotator] * self.weight
        ranked, scores = np.flatnonzero(lists.sizes), self.prior_scores if scores is None else scores
        how, n_sweeps = "printed", PRINTED_MOVES
        if self.annotators.distance != "kendall":
            chains.order[:] = self.order_by_score(rng.random(len(self.item_query)))
            how, n_sweeps = self.annotators.distance, max(1, round(PRINTED_MOVES / float(lists.sizes[ranked].mean())))
        return sweep(lists, pull, chains, ranked, n_sweeps, how, scores=scores, best=best).distance

    def distances_to(self, grade: Floats) -> Floats:
        """Return the Kendall distances of the rankings, (n_lists,), to the order by a grade of each item's code."""
        lists = self.arranged.lists
        length = np.diff(lists.starts)
        number = np.repeat(np.arange(len(length)), length)
        query = np.repeat(np.arange(len(lists.sizes)), np.diff(lists.queries))[number]
        grades = grade[self.arranged.item[lists.item + lists.offsets[query]]]
        first, second = pairs_within(np.arange(len(lists.item)), np.repeat(lists.starts[1:], length))
        # ranks rise where grades fall
        apart = (lists.rank[first] - lists.rank[second]) * (grades[first] - grades[second]) > 0
        return np.bincount(number[first], apart, len(length)).astype(np.float64, copy=False)

    def annotator_distances(self, distance: Floats) -> Floats:
        """Return the distances (n_lists,) added up by annotator."""
        totals = np.bincount(self.annotator, distance * self.weight, len(self.annotators.start))
        return totals.astype(np.float64, copy=False)

    @property
    def middle_places(self) -> Floats:
        """The middle place of the query of each item, places counting from 0."""
        sizes = self.arranged.lists.sizes
        return np.repeat(0.5 * (sizes.astype(np.float64) - 1), sizes)

    def place_scores(self, rankings: Rankings, place: Floats) -> Floats:
        """Return places above the middle one; 0 for what was not ranked, equal for items that no ranking distinguishes.

        ``place`` are those of the crowd's items.
        """
        twin, scores = self.arranged.twin, np.zeros(rankings.n_items)
        alike = np.bincount(twin, minlength=len(twin))[twin]
        scores[self.arranged.item] = np.bincount(twin, self.middle_places - place, len(twin))[twin] / alike
        return scores

    def place_spread(
        self, rankings: Rankings, expectation: OrderSums, draws: NDArray[np.float32], scores: Floats, seed: int
    ) -> tuple[NDArray[np.float32], Floats]:
        """Return random scores of all items, and their standard errors; what was not ranked may stand anywhere.

        ``draws`` (n_draws, n_crowd_items) are places in random rankings, ``scores`` (n_items,) those of the consensus.
        """
        sizes, item = self.arranged.lists.sizes, self.arranged.item
        room = (sizes + 1)[rankings.items.query] * (np.diff(rankings.items.offsets) > 1)[rankings.items.query]
        replicates = np.empty((len(draws), rankings.n_items), np.float32)
        std_error, free = room / np.sqrt(12.0), np.ones(rankings.n_items, bool)
        free[item] = False
        rng = np.random.default_rng(seed)
        replicates[:, free] = (rng.random((len(draws), int(free.sum())), np.float32) - np.float32(0.5)) * room[free]
        replicates[:, free] += scores[free].astype(np.float32)
        replicates[:, item] = self.middle_places.astype(np.float32) - draws
        exact = np.isin(self.item_query, self.exact)
        std_error[item] = np.sqrt(np.where(exact, expectation.spread, draws.var(axis=0, dtype=np.float64)))
        return replicates, std_error


def sweep_factor(n_sampled_items: int) -> int:
    """Return how many times the usual sweeps to do; more than one where there are few items to average over."""
    return -(-_MANY_ITEMS // max(n_sampled_items, 1))


def last_sweeps(n_sampled_items: int, n_samples: int, apart: int) -> int:
    """Return the number of sweeps that scores and this many random rankings, some sweeps apart, are taken from."""
    return apart * n_samples * min(sweep_factor(n_sampled_items), _MOST_SWEEP_FACTOR)
