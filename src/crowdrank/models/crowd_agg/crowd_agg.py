"""Orders that a measure of the top is expected to like best, given what the crowd said."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...data.consensus import Consensus, Trace, settle_ties
from ...data.judgments import Judgments, Preferences, Rankings, expect
from ...data.parted import PartColumns, PartedFit, read_sample, share_of_rows
from ...errors import ConvergenceWarning, ParameterError, warn
from ...fitting import OneBlock, iterate, warn_unconverged
from ...protocols import BlockFit, Blocks, Bools, Counts, Floats, Statistics
from ...quality import TRUSTED, LearnedQuality, quality_of_sample, trusted_annotators, warn_near_chance
from ...wording import expect_choices, option

if TYPE_CHECKING:
    from .kernels.poisson_binomial import Agreement, Discounts, PreferenceSets

_CHOICES = {
    "measure": ("ndcg", "rbp"),
    "gap": ("auto", "linear", "hard", "swapped", "printed"),
    "quality": ("held_out", "paper", "none"),
}
_POOLED_PRIOR, _PER_QUERY_PRIOR = (8.0, 2.0), (20.0, 5.0)
"""Pairs right and wrong that an annotator begins with."""

_MIN_PAIRS = 1e-12
"""Added to numbers of pairs, so an annotator without any has a mean quality."""

_STEP_LENGTH, _N_WARM_ROUNDS, _COOLING = 0.5, 10, 0.5
_MAX_STEPS_PER_ROUND = 1e11
_RELATIVE_SLACK = 1e-12


@dataclass(frozen=True, kw_only=True)
class CrowdAgg:
    r"""CrowdAgg: order by the expected NDCG or RBP discount of each item's rank, summed over annotators.

    Annotator :math:`a` places item :math:`s` above item :math:`t` with probability :math:`p_a(s, t)`, 1/2 where the two
    were not compared, and is right with probability :math:`\eta_a`, the quality. Then :math:`s` loses to :math:`t` with
    probability :math:`\eta_a (1 - p_a) + (1 - \eta_a) p_a`, its rank :math:`r_a(s)` is the number of pairs that it
    loses, and its score

    .. math:: F(s) = \sum_a \left( \mathrm{E}\, D(r_a(s)) - \mathrm{E}\, D(\text{coins only}) \right),

    where the discount :math:`D(r)` is :math:`1 / \log_2(2 + r)` for NDCG and :math:`\rho^r` for RBP. The order by
    :math:`F` has the largest expected measure [Niu15]_; 0 means that nothing is known of an item.

    When to use
    -----------
    Use it where an order is wanted that is best at the top by NDCG or RBP, from grades, rankings or preferences by
    annotators of unequal quality. Its scores have no unit and no standard errors; prefer ``latent_score`` where scores
    or probabilities are needed.

    Parameters
    ----------
    measure
        ``"ndcg"`` or ``"rbp"``.
    rho
        Persistence of RBP; raise it to look further down than the top.
    gap
        How :math:`p` follows from the pairs that two items won, :math:`N_s` and :math:`N_t`. ``"hard"``: 1 for the
        preferred item; ``"linear"``: :math:`1/2 + (N_s - N_t) / 2 (m - 1)`, for :math:`m` items that the annotator
        judged; ``"printed"``: :math:`(N_s - N_t) / n` for the one with more, of :math:`n` items, as in the paper;
        ``"swapped"``: 1 less that. ``"auto"``: swapped for grades and rankings in queries where annotators judged a
        quarter of the items or less, on average, else hard.
    quality
        How :math:`\eta` is learned. ``"held_out"``: by agreement with the scores less the annotator's own part in them;
        ``"paper"``: by agreement with the scores; ``"none"``: every annotator is taken to be right.
    per_query
        Whether annotators are taken as different ones in each query.
    prior
        Pairs right and wrong that each annotator begins with, for ``"held_out"``: (8, 2), or (20, 5) if ``per_query``.
        Raise both where annotators judge few pairs.
    tol
        Largest change of a quality in the last round; raise it to stop earlier.
    max_iter
        Largest number of rounds; raise it where a warning says that the fit did not converge.

    Notes
    -----
    The paper prints its gap with the cases exchanged, which turns orders round. Put right, it is the best where
    annotators judge few of many items, but those who judge all of them without ties give each the same chances, so
    nothing is left of their order: with simulated grades NDCG@10 is .84 against .83 for hard where each judges 8 of 40
    items, and .64 against .99 where each judges 10 of 10. The paper learns quality, in each query, from a consensus
    that the annotator is part of, which confirms itself: on TREC crowd grades NDCG@10 is .71, against .74 without
    quality and .76 held out.

    Agreement is counted on pairs of items that others judged too, equal scores counting half. It jumps when two items
    change places, so qualities need not settle: each round goes half of the way, and from the eleventh on half as
    far each time. The paper's rounds end when an order comes back, with a warning if it is not the one of the round
    before. A majority of reversed annotators cannot be distinguished from a good crowd: see ``trusted=``.

    Ties and equal grades are no preference; ``estimates`` has the number of ties. An annotator's preferences for the
    same pair are added up, and grades of the same item averaged; the annotator counts by the mean weight of their
    judgments in the query. Each ranking, and each former query after ``across_queries()``, counts by itself. Items that
    nobody judged have score 0 and change nothing. Without annotators there is one for each query, or each ranking, and
    no quality is learned. Where annotators saw few pairs, the number of pairs won misleads, hence the hard gap for
    preferences.

    No table of pairs is made, and scores are exact to 13 digits. A million grades on some levels, rankings without ties
    or ten million preferences among 100,000 items take seconds; thousands of grades with ties by one annotator in one
    query take long, and are refused, unless the gap is hard.

    Examples
    --------
    >>> from crowdrank.data.judgments import Grades
    >>> rows = [("ann", "q", item, grade) for item, grade in zip("xyz", [2, 1, 0])]
    >>> rows += [("bob", "q", "x", 1), ("bob", "q", "z", 0)]
    >>> consensus = CrowdAgg().fit(Grades.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["eta"].round(2).tolist()
    (['x', 'y', 'z'], [0.82, 0.82])
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade", "preference", "ranking")
    measure: str = "ndcg"
    rho: float = 0.95
    gap: str = "auto"
    quality: str = "held_out"
    per_query: bool = False
    prior: tuple[float, float] | None = None
    tol: float = 1e-4
    max_iter: int = 100

    def __post_init__(self) -> None:
        expect_choices(self, **_CHOICES)
        if not 0 < self.rho < 1:
            raise ParameterError(f"rho={self.rho} must lie between 0 and 1")
        if self.prior is not None and not (np.shape(self.prior) == (2,) and self.prior[0] > self.prior[1] > 0):
            raise ParameterError(f"prior={self.prior} must be more pairs right than wrong, both above 0, as (8, 2) is")

    def fit(self, judgments: Judgments, *, trusted: Any | None = None) -> Consensus:
        """Return the scores and what was learned of the annotators.

        ``trusted`` are the ids of annotators known to be good: their prior is (95, 5), and the first round uses nobody
        else. It goes with held-out quality.
        """
        expect(judgments, self)
        crowd, eta, trace = self._learn(judgments, trusted)
        if self.quality != "none" and trusted is None:
            warn_near_chance("crowd_agg", eta, crowd.pairs)
        ties = {"n_ties": int((judgments.outcome == 0).sum())} if isinstance(judgments, Preferences) else {}
        quality = None
        if judgments.n_annotators:
            quality = LearnedQuality(judgments, self.scores, {"eta": crowd.mean_quality(eta)})
        return Consensus.of(self, judgments, crowd.scores(eta), trace=trace, estimates=ties, quality=quality)

    def over_blocks(self, judged: Any, *, trusted: Any | None = None, **given: Any) -> BlockFit:
        """Return the fit over blocks: qualities are shared, and agreement is counted block by block."""
        if self.per_query or self.quality == "paper":
            which = "per_query" if self.per_query else "quality='paper'"
            raise ParameterError(f"crowd_agg with {which} needs all judgments at once; leave it out for packed ones")
        if judged.by != "query":
            raise ParameterError("crowd_agg goes query by query; pack the judgments by query")
        return BlockFit(partial(_lay_out, self), partial(self._solve, judged, trusted_annotators(judged, trusted)))

    def _solve(self, judged: Any, trusted: Bools, blocks: Blocks) -> PartedFit:
        """The scores of all blocks and what was learned of the annotators."""
        n_annotators = max(len(judged.annotators), 1)
        pairs, given, n_ties = blocks.total(partial(_survey, n_annotators))
        eta, trace = np.ones(n_annotators), Trace()
        if self.quality != "none" and len(judged.annotators):
            eta, trace = _held_out_qualities(self, blocks, np.arange(n_annotators), pairs, trusted)
            if not trusted.any():
                warn_near_chance("crowd_agg", eta, pairs)
        read = blocks.read(lambda crowd, state: ((settle_ties(self, crowd.judgments, crowd.scores(eta)),), None))
        columns = [PartColumns(scores) for (scores,) in read]
        sample = partial(read_sample, attrgetter("judgments"), given, share_of_rows(judged.rows))
        quality = quality_of_sample(self, [part for (part,) in blocks.read(sample)], given, {"eta": eta})
        ties = {"n_ties": int(n_ties)} if judged.kind == "preference" else {}
        return PartedFit(columns, trace, quality, estimates=ties)

    def scores(self, judgments: Judgments) -> Floats:
        """Return the scores alone, for repeated fits."""
        expect(judgments, self)
        crowd, eta, _ = self._learn(judgments, None)
        return crowd.scores(eta)

    def _learn(self, judgments: Judgments, trusted: Any | None) -> tuple[_Crowd, Floats, Trace]:
        """The crowd, and the quality of each owner of preference sets."""
        named = trusted_annotators(judgments, trusted)
        if self.quality != "held_out" and named.any():
            raise ParameterError(
                f"{option('trusted')} has no use with quality={self.quality!r}; use quality='held_out'"
            )
        crowd = _lay_out(self, judgments)
        if self.quality == "none" or not judgments.n_annotators:
            return crowd, np.ones(len(crowd.annotator)), Trace()
        if self.quality == "paper":
            return crowd, *_in_sample_qualities(self, crowd)
        return crowd, *_held_out_qualities(self, OneBlock(crowd), crowd.annotator, crowd.pairs, named)


@dataclass(frozen=True, eq=False)
class _Crowd:
    """Judgments as preference sets, and who owns them: annotators, or annotators in each query.

    ``weight`` is over entries, ``owner`` over sets, ``annotator`` and the number of ``pairs`` over owners. ``cell``
    tells which entries are of the same annotator and item, ``None`` if no two are. Totals that differ by ``slack`` or
    less are equal.
    """

    judgments: Judgments
    discounts: Discounts
    agreement: Agreement
    weight: Floats
    owner: Counts
    annotator: Counts
    pairs: Floats
    cell: Counts | None
    slack: float

    def totals(self, eta: Floats) -> tuple[Floats, Floats]:
        """What each entry adds, and the sum for each item."""
        sets = self.discounts.sets
        own = self.discounts.expected_discounts(eta[self.owner])[sets.unit] * self.weight
        return own, np.bincount(sets.item, own, self.judgments.n_items).astype(np.float64, copy=False)

    def agree(self, own: Floats | None, totals: Floats) -> Floats:
        """Number of pairs of each owner that the totals, less the annotator's own part if given, order alike."""
        sets = self.discounts.sets
        lead = totals[sets.item]
        if own is not None:
            lead -= own if self.cell is None else np.bincount(self.cell, own)[self.cell]
        alike = self.agreement.alike(lead, self.slack)
        return np.bincount(self.owner, alike * sets.weight, len(self.annotator)).astype(np.float64)

    def mean_quality(self, eta: Floats) -> Floats:
        """Quality of each annotator, over all queries."""
        from ...kernels.segments import segment_means

        return segment_means(eta, self.annotator, self.pairs + _MIN_PAIRS, int(self.annotator.max()) + 1)

    def places(self, totals: Floats) -> tuple[Counts, Counts]:
        """Items from worst to best in each query, and a number for each of these that rises where the totals do."""
        query = self.judgments.items.query
        order = np.lexsort((totals, query))
        new = (np.diff(totals[order], prepend=0.0) > self.slack) | (np.diff(query[order], prepend=-1) != 0)
        return order, np.cumsum(new)

    def scores(self, eta: Floats) -> Floats:
        """Totals, the same for items whose totals differ by rounding only."""
        totals = self.totals(eta)[1]
        order, place = self.places(totals)
        scores = np.empty(len(totals))
        scores[order] = totals[order][np.searchsorted(place, place)]
        scores[np.abs(scores) <= self.slack] = 0.0
        return scores


def _held_out_qualities(
    method: CrowdAgg, blocks: Blocks, annotator: Counts, pairs: Floats, trusted: Bools
) -> tuple[Floats, Trace]:
    """Qualities that fit the agreement they lead to, with totals that the annotator has no part in.

    ``annotator`` is that of each owner of preference sets, and ``pairs`` are the number that each compared.
    """
    named, plain = trusted[annotator], method.prior or (_PER_QUERY_PRIOR if method.per_query else _POOLED_PRIOR)
    right, wrong = (np.where(named, *numbers) for numbers in zip(TRUSTED, plain, strict=True))
    first = right / (right + wrong)
    if named.any():
        first[~named] = 0.5
    lengths = (_STEP_LENGTH * _COOLING ** max(n - _N_WARM_ROUNDS, 0) for n in count(1))

    def step(eta: Floats) -> Floats:
        (agree,) = blocks.total(lambda crowd, state: ((crowd.agree(*crowd.totals(eta)),), None))
        share: Floats = (agree + right) / (pairs + right + wrong)
        return eta + next(lengths) * (share - eta)

    return iterate(step, first, tol=method.tol, max_iter=method.max_iter, what="crowd_agg")


def _survey(n_annotators: int, crowd: _Crowd, state: Any) -> tuple[Statistics, Any]:
    """Pairs and weight of each annotator, and the number of ties."""
    judgments = crowd.judgments
    given = np.bincount(judgments.row_annotator, judgments.weight, n_annotators).astype(np.float64)
    n_ties = float((judgments.outcome == 0).sum()) if isinstance(judgments, Preferences) else 0.0
    return (crowd.pairs, given, n_ties), None


def _in_sample_qualities(method: CrowdAgg, crowd: _Crowd) -> tuple[Floats, Trace]:
    """The paper's rounds: shares of agreement with the order of the round before, until an order comes back."""
    n = crowd.pairs
    eta, change, seen = np.ones(len(n)), np.inf, dict[bytes, int]()
    for n_iter in range(1, method.max_iter + 1):
        totals = crowd.totals(eta)[1]
        last = seen.setdefault(np.concatenate(crowd.places(totals)).tobytes(), n_iter)
        if last < n_iter - 1:
            warn(
                f"crowd_agg came back to its order of {n_iter - last} rounds before and would cycle for ever; the last "
                "order was kept: use quality='held_out'",
                ConvergenceWarning,
            )
        if last < n_iter:
            return eta, Trace(n_iter, last == n_iter - 1, change)
        share = np.divide(crowd.agree(None, totals), n, out=np.full(len(n), 0.5), where=n > 0)
        eta, change = share, float(np.max(np.abs(share - eta), initial=0.0))
    warn_unconverged("crowd_agg", method.max_iter, change, method.tol)
    return eta, Trace(method.max_iter, False, change)


def _lay_out(method: CrowdAgg, judgments: Judgments) -> _Crowd:
    """The preference sets of all annotators, and the pairs to count agreement on."""
    from ...kernels.segments import segment_sums
    from .kernels.poisson_binomial import Agreement, Discounts, ndcg_mixture, pair_gap, rbp_mixture

    items, (sets, annotator) = judgments.items, _preference_sets(judgments)
    query = items.query[sets.item[sets.bounds[:-1]]]
    size = np.bincount(items.query[judgments.judged_items], minlength=items.n_queries)[query]
    mixture = ndcg_mixture() if method.measure == "ndcg" else rbp_mixture(method.rho)
    gap = "hard" if method.gap == "auto" and isinstance(judgments, Preferences) else method.gap
    discounts = Discounts.of(sets, size, pair_gap(gap, sets, query, size), mixture)
    if discounts.steps > _MAX_STEPS_PER_ROUND:
        raise ParameterError(
            f"crowd_agg would take {discounts.steps:.0e} steps per round, since annotators gave thousands of different "
            "grades or ranks, ties among them, in one query; use gap='hard', or cut them into fewer levels"
        )
    lengths, cell, of_cell = np.diff(sets.bounds), None, sets.item
    owners, numbers = np.unique(annotator * items.n_queries + query, return_inverse=True)
    if len(owners) < len(annotator):
        cells, cell = np.unique(np.repeat(annotator, lengths) * len(items) + sets.item, return_inverse=True)
        of_cell = (cells % len(items)).astype(np.int32)
    use = np.ones(len(sets.item), bool)
    if method.quality == "held_out":
        use = (np.bincount(of_cell, minlength=len(items)) > 1)[sets.item]
    owner, of_owner = annotator, np.arange(max(judgments.n_annotators, 1))
    if method.per_query:
        # one owner more for each annotator, without sets, stands for those who have none
        owner, of_owner = numbers + len(of_owner), np.append(of_owner, owners // items.n_queries)
    agreement, weight = Agreement.between(sets, use), np.repeat(sets.weight, lengths)
    pairs = segment_sums(agreement.n_pairs(), owner, sets.weight, len(of_owner))
    slack = _RELATIVE_SLACK * max(1.0, float(np.max(np.bincount(sets.item, weight), initial=0.0)))
    return _Crowd(judgments, discounts, agreement, weight, owner, of_owner, pairs, cell, slack)


def _preference_sets(judgments: Judgments) -> tuple[PreferenceSets, Counts]:
    """Return the preference sets of judgments, and the annotator of each.

    Every ranking is a set of its own, and so are the judgments of each former query after ``across_queries()``.
    Several grades of one item in a set are averaged. Judgments without annotators are all by one.
    """
    from ...kernels.segments import average_repeats
    from .kernels.poisson_binomial import sets_of_levels, sets_of_preferences

    annotator = judgments.row_annotator
    items, weight, code = judgments.items, np.asarray(judgments.row_weight), annotator.astype(np.int64)
    if isinstance(judgments, Rankings):
        number, n = judgments.ranking, max(len(judgments), 1)
        code = (code * n)[number] + number
        sets = sets_of_levels(code, judgments.item, -judgments.rank.astype(np.float64), weight[number])
        return sets, sets.code // n
    item = judgments.left if isinstance(judgments, Preferences) else judgments.item
    code, n = code * items.n_queries + items.query[item], items.n_queries
    if judgments.block is not None and judgments.blocks is not None:
        code, n = code * len(judgments.blocks) + judgments.block, n * len(judgments.blocks)
    if isinstance(judgments, Preferences):
        sets = sets_of_preferences(code, judgments.left, judgments.right, judgments.outcome * weight, len(items))
    else:
        sets = sets_of_levels(*average_repeats(code, item, judgments.grade, weight))
    return sets, sets.code // n
