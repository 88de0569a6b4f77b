"""Orders that a measure of the top is expected to like best, given what the crowd said."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...data.consensus import Consensus, Quality, Trace
from ...data.judgments import Judgments, Preferences, expect
from ...errors import ConvergenceWarning, ParameterError
from ...fitting import warn_unconverged
from ...protocols import Bools, Counts, Floats, Ints
from ...quality import TRUSTED, held_out_quality, trusted_annotators, warn_near_chance
from ...wording import option
from .sheets import fill_sheets

if TYPE_CHECKING:
    from .kernels.poisson_binomial import Discounts
    from .kernels.sheets import Agreement

_CHOICES = {
    "measure": ("ndcg", "rbp"),
    "gap": ("auto", "linear", "hard", "swapped", "printed"),
    "quality": ("held_out", "paper", "none"),
}
_POOLED, _PER_QUERY = (8.0, 2.0), (20.0, 5.0)
_WARM_ROUNDS, _COOLING = 10, 0.5
_MOST_STEPS = 1e11
_EQUAL = 1e-12


@dataclass(frozen=True, kw_only=True)
class CrowdAgg:
    r"""CrowdAgg: order by the expected NDCG or RBP discount of each item's rank, summed over annotators.

    Annotator :math:`a` places item :math:`s` above item :math:`t` with probability :math:`p_a(s, t)`, 1/2 where the two
    were not compared, and is right with probability :math:`\eta_a`, the quality. Then :math:`s` loses to :math:`t` with
    probability :math:`\eta_a (1 - p_a) + (1 - \eta_a) p_a`, its rank :math:`r_a(s)` is the number of contests that it
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
        How :math:`p` follows from the contests that two items won, :math:`N_s` and :math:`N_t`. ``"hard"``: 1 for the
        preferred item; ``"linear"``: :math:`1/2 + (N_s - N_t) / 2 (m - 1)`, for :math:`m` items that the annotator
        judged; ``"printed"``: :math:`(N_s - N_t) / n` for the one with more, of :math:`n` items, as the paper has it;
        ``"swapped"``: 1 less that. ``"auto"``: swapped for grades and rankings in queries where annotators judged a
        quarter of the items or less, on average, else hard.
    quality
        How :math:`\eta` is learned. ``"held_out"``: by agreement with the scores less the annotator's own part in them;
        ``"paper"``: by agreement with the scores; ``"none"``: everybody is taken to be right.
    per_query
        Whether annotators are taken as different ones in each query.
    prior
        Pairs right and wrong that each annotator begins with, for ``"held_out"``: (8, 2), or (20, 5) if ``per_query``.
        Raise both where annotators judge few pairs.
    tol
        Largest change of a quality in the last round.
    max_iter
        Most rounds to go.

    Notes
    -----
    The paper prints its gap with the cases exchanged, which turns orders round. Put right, it is the best where
    annotators judge few of many items, but those who judge all of them without ties give each the same chances, so that
    nothing is left of their order: with simulated grades NDCG@10 is .84 against .83 for hard where each judges 8 of 40
    items, and .64 against .99 where each judges 10 of 10. The paper learns quality, in each query, from a consensus
    that the annotator is part of, which confirms itself: on TREC crowd grades NDCG@10 is .71, against .74 without
    quality and .76 held out.

    Agreement is counted on pairs of items that others judged too, equal scores counting half. It jumps when two items
    change places, so that qualities need not settle: each round goes half of the way, and from the eleventh on half as
    far each time. The paper's rounds end when an order comes back, with a warning if it is not the one of the round
    before. A majority of reversed annotators cannot be told from a good crowd: see ``trusted=``.

    Ties and equal grades are no contest; ``estimates`` has the number of tied preferences. An annotator's preferences
    for the same pair are added up, and grades of the same item averaged; the annotator counts by the mean weight of
    their judgments in the query. Each ranking, and each former query after ``across_queries()``, counts by itself.
    Items that nobody judged have score 0 and change nothing. Without annotators there is one for each query, or each
    ranking, and no quality is learned. Where annotators saw few pairs contests won mislead, hence the hard gap for
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
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                choice = ", ".join(map(repr, known))
                raise ParameterError(f"{name}={getattr(self, name)!r} is not known; use one of {choice}")
        if not 0 < self.rho < 1:
            raise ParameterError(f"rho={self.rho} must lie between 0 and 1")
        if self.prior is not None and not (np.shape(self.prior) == (2,) and self.prior[0] > self.prior[1] > 0):
            raise ParameterError(f"prior={self.prior} must be more pairs right than wrong, both above 0, as (8, 2) is")

    def fit(self, judgments: Judgments, *, trusted: Any | None = None) -> Consensus:
        """Return the scores and what was learned of the annotators.

        ``trusted`` are the ids of annotators known to be good: their prior is (95, 5), and the first round heeds nobody
        else. It goes with held-out quality.
        """
        expect(judgments, self)
        crowd, eta, trace = self._learned(judgments, trusted)
        if self.quality != "none" and trusted is None:
            warn_near_chance("crowd_agg", eta, crowd.pairs)
        ties = {"n_ties": int((judgments.outcome == 0).sum())} if isinstance(judgments, Preferences) else {}
        return Consensus.of(
            self, judgments, crowd.scores(eta), trace=trace, estimates=ties,
            quality=partial(_quality, self, judgments, crowd.mean_quality(eta)),
        )  # fmt: skip

    def scores(self, judgments: Judgments) -> Floats:
        """Return the scores alone, for whoever fits many times."""
        expect(judgments, self)
        crowd, eta, _ = self._learned(judgments, None)
        return crowd.scores(eta)

    def _learned(self, judgments: Judgments, trusted: Any | None) -> tuple[_Crowd, Floats, Trace]:
        """The crowd, and the quality of each owner of sheets."""
        named = trusted_annotators(judgments, trusted)
        if self.quality != "held_out" and named.any():
            raise ParameterError(
                f"{option('trusted')} has no use with quality={self.quality!r}; use quality='held_out'"
            )
        crowd = _crowd(self, judgments)
        if self.quality == "none" or not judgments.n_annotators:
            return crowd, np.ones(len(crowd.annotator)), Trace()
        return crowd, *(_held_out if self.quality == "held_out" else _in_sample)(crowd, named, self)


def _quality(method: CrowdAgg, judgments: Judgments, eta: Floats) -> Quality | None:
    """Held-out quality with what was learned."""
    found = held_out_quality(method, judgments)
    return None if found is None else found.with_parameters(eta=eta)


@dataclass(frozen=True, eq=False)
class _Crowd:
    """Sheets of contests and who owns them: annotators, or annotators in each query.

    ``weight`` is over entries, ``owner`` over sheets, ``annotator`` and the number of ``pairs`` over owners, ``query``
    over items. ``cell`` tells which entries are of the same annotator and item, ``None`` if no two are. Totals that
    differ by ``slack`` or less are equal.
    """

    discounts: Discounts
    agreement: Agreement
    weight: Floats
    owner: Counts
    annotator: Counts
    pairs: Floats
    query: Ints
    cell: Counts | None
    slack: float

    def totals(self, eta: Floats) -> tuple[Floats, Floats]:
        """What each entry adds, and the sum for each item."""
        from ...kernels.segments import segment_sums

        sheets = self.discounts.sheets
        own = self.discounts.expected(eta[self.owner])[sheets.unit] * self.weight
        return own, segment_sums(own, sheets.item, None, len(self.query))

    def agree(self, own: Floats | None, totals: Floats) -> Floats:
        """Number of pairs of each owner that the totals, less the annotator's own part if given, order alike."""
        from ...kernels.segments import segment_sums

        sheets = self.discounts.sheets
        lead = totals[sheets.item]
        if own is not None:
            lead -= own if self.cell is None else np.bincount(self.cell, own)[self.cell]
        alike = self.agreement.alike(lead, self.slack)
        return segment_sums(alike * sheets.weight, self.owner, None, len(self.annotator))

    def mean_quality(self, eta: Floats) -> Floats:
        """Quality of each annotator, over all queries."""
        from ...kernels.segments import segment_means

        return segment_means(eta, self.annotator, self.pairs + _EQUAL, int(self.annotator.max()) + 1)

    def places(self, totals: Floats) -> tuple[Counts, Counts]:
        """Items from worst to best in each query, and a number for each of these that rises where the totals do."""
        order = np.lexsort((totals, self.query))
        new = (np.diff(totals[order], prepend=0.0) > self.slack) | (np.diff(self.query[order], prepend=-1) != 0)
        return order, np.cumsum(new)

    def scores(self, eta: Floats) -> Floats:
        """Totals, the same for items whose totals differ by rounding only."""
        totals = self.totals(eta)[1]
        order, place = self.places(totals)
        scores = np.empty(len(totals))
        scores[order] = totals[order][np.searchsorted(place, place)]
        scores[np.abs(scores) <= self.slack] = 0.0
        return scores


def _held_out(crowd: _Crowd, trusted: Bools, method: CrowdAgg) -> tuple[Floats, Trace]:
    """Qualities that fit the agreement they lead to, with totals that the annotator has no part in."""
    named, plain = trusted[crowd.annotator], method.prior or (_PER_QUERY if method.per_query else _POOLED)
    right, wrong = (np.where(named, *numbers) for numbers in zip(TRUSTED, plain, strict=True))
    eta, step, change = right / (right + wrong), 0.5, np.inf
    if named.any():
        eta[~named] = 0.5
    for n_iter in range(1, method.max_iter + 1):
        move = step * ((crowd.agree(*crowd.totals(eta)) + right) / (crowd.pairs + right + wrong) - eta)
        eta, change = eta + move, float(np.max(np.abs(move), initial=0.0))
        if change <= method.tol:
            return eta, Trace(n_iter, True, change)
        step *= 1.0 if n_iter < _WARM_ROUNDS else _COOLING
    warn_unconverged("crowd_agg", method.max_iter, change, method.tol)
    return eta, Trace(method.max_iter, False, change)


def _in_sample(crowd: _Crowd, _: Bools, method: CrowdAgg) -> tuple[Floats, Trace]:
    """The paper's rounds: shares of agreement with the order of the round before, until an order comes back."""
    n = crowd.pairs
    eta, change, seen = np.ones(len(n)), np.inf, dict[bytes, int]()
    for n_iter in range(1, method.max_iter + 1):
        totals = crowd.totals(eta)[1]
        last = seen.setdefault(np.concatenate(crowd.places(totals)).tobytes(), n_iter)
        if last < n_iter - 1:
            warnings.warn(
                f"crowd_agg came back to its order of {n_iter - last} rounds before and would go round for ever; the "
                "last order was kept: use quality='held_out'", ConvergenceWarning, stacklevel=4,
            )  # fmt: skip
        if last < n_iter:
            return eta, Trace(n_iter, last == n_iter - 1, change)
        share = np.divide(crowd.agree(None, totals), n, out=np.full(len(n), 0.5), where=n > 0)
        eta, change = share, float(np.max(np.abs(share - eta), initial=0.0))
    warn_unconverged("crowd_agg", method.max_iter, change, method.tol)
    return eta, Trace(method.max_iter, False, change)


def _crowd(method: CrowdAgg, judgments: Judgments) -> _Crowd:
    """The contests of all sheets, and the pairs to count agreement on."""
    from ...kernels.segments import segment_sums
    from .kernels.poisson_binomial import Discounts, contest_gap, ndcg_mixture, rbp_mixture
    from .kernels.sheets import Agreement

    items, (sheets, annotator) = judgments.items, fill_sheets(judgments)
    query = items.query[sheets.item[sheets.bounds[:-1]]]
    size = np.bincount(items.query[judgments.judged_items], minlength=items.n_queries)[query]
    mixture = ndcg_mixture() if method.measure == "ndcg" else rbp_mixture(method.rho)
    gap = "hard" if method.gap == "auto" and isinstance(judgments, Preferences) else method.gap
    discounts = Discounts.of(sheets, size, contest_gap(gap, sheets, query, size), mixture)
    if discounts.steps > _MOST_STEPS:
        raise ParameterError(
            f"crowd_agg would take {discounts.steps:.0e} steps a round, since annotators gave thousands of different "
            "grades or ranks, ties among them, in one query; use gap='hard', or cut them into fewer levels"
        )
    lengths, cell, of_cell = np.diff(sheets.bounds), None, sheets.item
    owners, numbers = np.unique(annotator * items.n_queries + query, return_inverse=True)
    if len(owners) < len(annotator):
        cells, cell = np.unique(np.repeat(annotator, lengths) * len(items) + sheets.item, return_inverse=True)
        of_cell = (cells % len(items)).astype(np.int32)
    use = np.ones(len(sheets.item), bool)
    if method.quality == "held_out":
        use = (np.bincount(of_cell, minlength=len(items)) > 1)[sheets.item]
    owner, of_owner = annotator, np.arange(max(judgments.n_annotators, 1))
    if method.per_query:
        # one owner more for each annotator, without sheets, stands for those who have none
        owner, of_owner = numbers + len(of_owner), np.append(of_owner, owners // items.n_queries)
    agreement, weight = Agreement.between(sheets, use), np.repeat(sheets.weight, lengths)
    return _Crowd(
        discounts, agreement, weight, owner, of_owner,
        segment_sums(agreement.n_pairs(), owner, sheets.weight, len(of_owner)), items.query, cell,
        _EQUAL * max(1.0, float(np.max(np.bincount(sheets.item, weight), initial=0.0))),
    )  # fmt: skip
