"""Mallows' model over parts of the rankings: dispersions are shared, and parts keep the chains of sampled queries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ...data.consensus import settle_ties
from ...data.judgments import Rankings, align_judgments, stack_judgments
from ...data.parted import PartColumns, PartedFit, read_sample, share_of_rows
from ...protocols import Blocks, Bools, Floats, Statistics
from ...quality import LearnedQuality, warn_near_chance
from .mallows import fit_dispersions, last_sweeps, mallows_scores, others_fit
from .mallows_crowd import (
    AnnotatorSide,
    MallowsCrowd,
    Sampler,
    annotator_side,
    place_spread,
    usual_sizes,
    warn_few_shared,
)

_DISPERSION_DIGITS = 9
"""Annotators are alike where their dispersions have these digits in common."""


class Common(NamedTuple):
    """What passes need besides dispersions: method, trusted annotators, weight of all rankings of each, and priors.

    ``sampled`` says whether there are chains to keep.
    """

    method: Any
    trusted: Bools
    given: Floats
    side: AnnotatorSide | None = None
    sampled: bool = False


@dataclass(frozen=True, eq=False)
class MallowsPart:
    """The rankings of a part, and the crowd that they are laid out as once all annotators are known."""

    rankings: Rankings
    _crowd: list[MallowsCrowd] = field(default_factory=list)

    def crowd(self, common: Common) -> MallowsCrowd:
        """Return the part of the crowd; it is kept from pass to pass."""
        if common.side is None:
            return common.method.crowd(self.rankings, common.trusted)  # type: ignore[no-any-return]
        if not self._crowd:
            # who gave so many rankings: a name would make draws depend on it
            special = common.given + 0.5 * (common.trusted if len(common.trusted) else np.zeros(1))
            crowd = common.method.crowd(self.rankings, common.trusted, special=special, side=common.side)
            self._crowd.append(crowd)
        return self._crowd[0]

    def crowd_by(self, common: Common, theta: Floats) -> MallowsCrowd:
        """Return the same, items alike that annotators of equal dispersions do not distinguish."""
        crowd = self.crowd(common)
        special = np.round(theta, _DISPERSION_DIGITS) + 0.0
        again = common.method.crowd(self.rankings, common.trusted, special=special, side=common.side).arranged
        group = np.zeros(self.rankings.n_items, np.int64)
        group[again.item] = again.twin
        first, twin = np.unique(group[crowd.arranged.item], return_index=True, return_inverse=True)[1:]
        return replace(crowd, arranged=crowd.arranged._replace(twin=first[twin]))


class _PartExpectation(NamedTuple):
    """Expected distances of each annotator's rankings, added up, and the logarithm of the sums over exact queries."""

    distance: Floats
    log_total: float


@dataclass(frozen=True, eq=False)
class PartedMallows(MallowsCrowd):
    """Stands for the crowd of all parts where dispersions are fitted: expectations are sums over the parts."""

    sums: Blocks
    common: Common
    n_items: int
    shared: bool
    orders: float

    @property
    def n_sampled_items(self) -> int:
        """Number of items of sampled queries."""
        return self.n_items

    @property
    def shares_pairs(self) -> bool:
        """Whether two rankings put the same two items in an order."""
        return self.shared

    @property
    def log_orders(self) -> float:
        """Logarithm of the number of true rankings of all exact queries together."""
        return self.orders

    def start_chains(self) -> Any:
        """Return nothing: chains are states of the parts."""
        return None

    def expect(self, theta: Floats, sampler: Any, n_sweeps: int, **more: Any) -> Any:
        """Return the expectations at the dispersions."""
        distance, log_total = self.sums.total(partial(_expect, self.common, theta, n_sweeps))
        return _PartExpectation(distance, float(log_total))

    def annotator_distances(self, distance: Floats) -> Floats:
        """Return the distances, which are added up by annotator already."""
        return distance


@dataclass(frozen=True, eq=False)
class MallowsPasses:
    """The fit of Mallows' model to rankings in parts."""

    method: Any
    judged: Any
    trusted: Bools

    def lay_out(self, part: Rankings) -> MallowsPart:
        """Return the rankings of a part; they are laid out when all annotators are known."""
        return MallowsPart(part)

    def solve(self, sums: Blocks) -> PartedFit:
        """Return the scores and the dispersions."""
        method, named = self.method, len(self.judged.annotators) > 0
        crowd = self._crowd(sums)
        number = int((crowd.guessing > 0).sum()) if named else 0
        warn_few_shared("mallows", number, crowd.shares_pairs or not crowd.guessing.any(), depth=2)
        theta, trace, *_ = fit_dispersions(method, crowd, crowd.start)
        n_sweeps = last_sweeps(method, crowd)
        if named and not self.trusted.any():
            share = crowd.expect(theta, None, method.n_sweeps).distance / np.maximum(crowd.guessing, 1e-300)
            warn_near_chance("mallows", 1.0 - 0.5 * share, crowd.guessing)
        read = partial(_read_scores, crowd.common, theta, n_sweeps)
        columns = [PartColumns(*part) for part in sums.read(read)]
        estimates = {} if named else {"theta": float(theta[0])}
        return PartedFit(columns, trace, self._quality(sums, crowd.common.given, theta), estimates=estimates)

    def _crowd(self, sums: Blocks) -> PartedMallows:
        """The stand-in for the crowd, after passes over the sizes of rankings."""
        method, n = self.method, max(len(self.judged.annotators), 1)
        common = Common(method, self.trusted, np.zeros(n))
        given, number, length, n_sampled, n_shared, orders = sums.total(partial(_survey, common))
        cells: Any = sums.each(partial(_sizes, common))
        trusted = self.trusted if len(self.trusted) else np.zeros(1, bool)
        side = annotator_side(
            cells, usual_sizes(number, length), trusted, distance=method.distance, alpha=method.alpha,
            bound=method.bound, allow_reversed=method.allow_reversed,
        )  # fmt: skip
        common = common._replace(given=given, side=side, sampled=bool(n_sampled))
        nothing: Any = None
        # a query that stands for all sampled ones
        some = np.arange(1 if n_sampled else 0)
        return PartedMallows(
            nothing, np.empty(0), np.empty(0, np.int32), side.prior, side.guessing, side.sizes, side.counts,
            side.table, method.distance, np.empty(0, np.int64), some, side.start, sums, common, int(n_sampled),
            bool(n_shared), float(orders),
        )  # fmt: skip

    def _quality(self, sums: Blocks, given: Floats, theta: Floats) -> LearnedQuality | None:
        """Quality of the annotators, held out on a sample of the queries where rankings are many."""
        if not len(self.judged.annotators):
            return None
        sample = partial(read_sample, attrgetter("rankings"), given, share_of_rows(self.judged.rows))
        samples = [part for (part,) in sums.read(sample)]
        rankings = stack_judgments(align_judgments([part for part in samples if len(part)] or samples[:1]))
        again = others_fit(self.method, theta, self.trusted)
        return LearnedQuality(rankings, again.scores, {"theta": theta}, n_judgments=given)


def _survey(common: Common, part: MallowsPart, state: Any) -> tuple[Statistics, Any]:
    """Weight of all rankings of each annotator; number and total size of those that order items; and of queries.

    Those are the number of sampled items, whether rankings share pairs, and the logarithm of the number of orders.
    """
    rankings, crowd, n = part.rankings, part.crowd(common), len(common.given)
    by = rankings.row_annotator
    given = np.bincount(by, rankings.weight, n).astype(np.float64)
    number = np.bincount(crowd.annotator, minlength=n).astype(np.float64)
    length = np.bincount(crowd.annotator, np.diff(crowd.arranged.lists.starts), n).astype(np.float64)
    shares = float(crowd.shares_pairs) if len(crowd.weight) else 0.0
    return (given, number, length, float(crowd.n_sampled_items), shares, crowd.log_orders), None


def _sizes(common: Common, part: MallowsPart, state: Any) -> tuple[Statistics, Any]:
    """Annotator, size and weight of the rankings of a part, equal ones together."""
    from .kernels.dispersion import size_cells

    crowd, ties = part.crowd(common), common.method.distance == "kendall"
    lists = crowd.arranged.lists
    who, what, much = size_cells(lists.starts, lists.rank, crowd.annotator, crowd.weight, ties=ties)
    most = int(what.max(initial=0)) + 1
    cells, entry = np.unique(who.astype(np.int64) * most + what, return_inverse=True)
    return (cells // most, cells % most, np.bincount(entry, much, len(cells)).astype(np.float64)), None


def _chains(crowd: MallowsCrowd, state: Any) -> Sampler:
    """Where the chains of a part stand."""
    from .kernels.permutations import Chains

    if state is None:
        return crowd.start_chains()
    order, numbers, slots = (values.copy() for values in state)
    return Sampler(Chains(order, numbers), slots)


def _expect(common: Common, theta: Floats, n_sweeps: int, part: MallowsPart, state: Any) -> tuple[Statistics, Any]:
    """Expected distances of one part, where all parts have chains if any part does."""
    crowd = part.crowd(common)
    sampler = _chains(crowd, state)
    expectation = crowd.expect(theta, sampler, n_sweeps)
    kept = (*sampler.chains, sampler.slots) if common.sampled else None
    return (crowd.annotator_distances(expectation.distance), expectation.log_total), kept


def _read_scores(common: Common, theta: Floats, n_sweeps: int, part: MallowsPart, state: Any) -> tuple[Statistics, Any]:
    """Scores and standard errors of the items of one part."""
    method, rankings, crowd = common.method, part.rankings, part.crowd_by(common, theta)
    if not rankings.n_items:
        return (np.empty(0), np.empty(0), None, None, None), None
    draws = crowd.sample_array(method.n_samples if len(crowd.sampled) else 2, rankings.n_items)
    more: Any = {"draws": draws} if len(crowd.sampled) else {}
    expectation = crowd.expect(theta, _chains(crowd, state), n_sweeps, **more)
    scores = mallows_scores(method, rankings, crowd, theta, expectation.place)
    std_error = place_spread(rankings, crowd, expectation, draws, scores, method.seed)[1]
    return (settle_ties(method, rankings, scores), std_error, None, None, None), None
