r"""How well scores order items as the truth does: tau, top-weighted tau, rho, footrule, pairs in order.

`truth`, `scores` and `qid` are as in :mod:`crowdrank.metrics.ranking`; of the truth only the order within a query
counts, so ranks serve as well when their sign is turned (``-rank``). The mean over queries comes back, or with
``per_query=True`` one value per query in the order of the sorted query ids.

A query whose truth orders no pair of items (one item, or all tied) has nothing to measure: ``empty="skip"``, the
default here, leaves it out of the mean (NaN per query); ``"zero"`` and ``"one"`` count it so. Scores that are all tied
in a query whose truth orders some pair are a poor answer and not a missing one: tau and rho are then 0, their expected
value when ties are shuffled, where scipy gives NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import JudgmentError
from ..kernels.threads import read_only
from ..protocols import Bools, Floats
from ..wording import one_of
from .queries import Arranged, Ids, arrange, dense_codes, numbers, one_dimensional, over_queries, share, summary

VARIANTS = ("a", "b")

_MAX_WHOLE_NUMBER = 1e12


def kendall_tau(
    truth: ArrayLike,
    scores: ArrayLike,
    qid: Ids = None,
    *,
    variant: str = "b",
    empty: str = "skip",
    per_query: bool = False,
) -> float | Floats:
    r"""Kendall's tau: concordant minus discordant pairs, as a share of the pairs.

    .. math:: \tau_a = \frac{C - D}{n(n-1)/2}, \qquad
              \tau_b = \frac{C - D}{\sqrt{(C + D + T_{\text{truth}})(C + D + T_{\text{scores}})}}

    with :math:`C` concordant and :math:`D` discordant pairs, and :math:`T` the pairs tied in the other one only. A tied
    pair counts as neither; it takes n log n steps [Knight66]_.

    Parameters
    ----------
    truth, scores, qid, empty, per_query
        See the module.
    variant
        ``"b"`` reaches 1 when scores and truth have the same ties; ``"a"`` divides by all pairs, so ties keep it
        below 1.

    Examples
    --------
    >>> round(kendall_tau([3, 2, 1, 0], [0.9, 0.5, 0.7, 0.1]), 4)
    0.6667
    """
    items = arrange(truth, scores, qid)
    counts = _pairs(items)
    plain = one_of(variant, VARIANTS, "variant") == "a"
    whole = counts["all"] if plain else np.sqrt(counts["truth"] * counts["scores"])
    return items.report(share(counts["difference"], whole), counts["truth"] > 0, empty, per_query)


def pair_accuracy(
    truth: ArrayLike, scores: ArrayLike, qid: Ids = None, *, empty: str = "skip", per_query: bool = False
) -> float | Floats:
    """Pair accuracy: share of pairs of unequal truth that the scores order correctly; tied scores count one half.

    Pairs are formed within a query, and queries weigh the same whatever their number of pairs. It is the area under the
    ROC curve when the truth has two grades.

    Examples
    --------
    >>> pair_accuracy([2, 1, 1, 0], [0.9, 0.5, 0.1, 0.5])
    0.7
    """
    items = arrange(truth, scores, qid)
    counts = _pairs(items)
    right = (counts["truth"] + counts["difference"]) / 2
    return items.report(share(right, counts["truth"]), counts["truth"] > 0, empty, per_query)


def tau_ap(
    truth: ArrayLike, scores: ArrayLike, qid: Ids = None, *, empty: str = "skip", per_query: bool = False
) -> float | Floats:
    r"""AP correlation: Kendall's tau that weighs the top of the ranking [Yilmaz08]_.

    .. math:: \tau_{ap} = \frac{2}{n - 1} \sum_{r=2}^{n} \frac{C_r}{r - 1} - 1

    with :math:`C_r` the number of items above rank :math:`r` of the scores that the truth puts above the item there
    too. 1 is the same order, -1 the opposite one, 0 is expected of a random one.

    Notes
    -----
    It is not symmetric: ranks are those of the scores. Ties count with their expected value over shuffles of the tied
    items, in both truth and scores (the variant *a* of [Urbano17]_), so truth with ties keeps it below 1;
    :func:`weighted_tau` reaches 1 there.

    Examples
    --------
    >>> round(tau_ap([3, 2, 1, 0], [0.9, 0.5, 0.7, 0.1]), 4)
    0.6667
    >>> round(tau_ap([3, 2, 1, 0], [0.5, 0.9, 0.7, 0.1]), 4)
    0.3333
    """
    from ..kernels.ranking_measures import middle_ranks, precise_above

    items = arrange(truth, scores, qid)
    ranks = over_queries(middle_ranks, (items.truth,), items.offsets)
    shares = over_queries(precise_above, (read_only(ranks), items.scores), items.offsets)
    value = 2 * shares / np.maximum(np.diff(items.offsets) - 1, 1) - 1
    return items.report(value, _orders(items, items.truth), empty, per_query)


def weighted_tau(
    truth: ArrayLike, scores: ArrayLike, qid: Ids = None, *, empty: str = "skip", per_query: bool = False
) -> float | Floats:
    """Weighted tau: Kendall's tau b with pairs weighed by 1 / rank of one item plus 1 / rank of the other [Vigna15]_.

    Ranks are those of the truth and those of the scores, in turn, and the two values are averaged: it is symmetric, and
    it is what ``scipy.stats.weightedtau`` returns, which computes it.

    Examples
    --------
    >>> round(weighted_tau([3, 2, 1, 0], [0.9, 0.5, 0.7, 0.1]), 4)
    0.7333
    """
    from scipy.stats import weightedtau

    items = arrange(truth, scores, qid)
    defined, decided = _orders(items, items.truth), _orders(items, items.scores)
    value, (known, ranked) = np.zeros(len(defined)), _level(items)
    for query in np.flatnonzero(defined & decided):
        span = slice(items.offsets[query], items.offsets[query + 1])
        value[query] = weightedtau(known[span], ranked[span]).statistic
    return items.report(value, defined, empty, per_query)


def spearman(
    truth: ArrayLike, scores: ArrayLike, qid: Ids = None, *, empty: str = "skip", per_query: bool = False
) -> float | Floats:
    """Spearman's rho: correlation of the ranks, tied items sharing the mean of their ranks.

    Examples
    --------
    >>> round(spearman([3, 2, 1, 0], [0.9, 0.5, 0.7, 0.1]), 4)
    0.8
    """
    items = arrange(truth, scores, qid)
    n = np.diff(items.offsets)
    left, right = (ranks - np.repeat((n + 1) / 2, n) for ranks in _ranks(items))
    whole = np.sqrt(items.sums(left**2)) * np.sqrt(items.sums(right**2))
    return items.report(share(items.sums(left * right), whole), _orders(items, items.truth), empty, per_query)


def footrule(
    truth: ArrayLike, scores: ArrayLike, qid: Ids = None, *, empty: str = "skip", per_query: bool = False
) -> float | Floats:
    r"""Spearman's footrule, a distance: how far items are from their true rank, 0 for the same order, 1 reversed.

    .. math:: F = \frac{1}{\lfloor n^2 / 2 \rfloor} \sum_i |r_i - s_i|

    with :math:`r_i` and :math:`s_i` the ranks of item :math:`i` by truth and by score. Tied items share the mean of
    their ranks; the divisor is the largest value without ties [Diaconis77]_.

    Examples
    --------
    >>> footrule([3, 2, 1, 0], [0.9, 0.5, 0.7, 0.1])
    0.25
    """
    items = arrange(truth, scores, qid)
    left, right = _ranks(items)
    largest = np.maximum(np.diff(items.offsets) ** 2 // 2, 1)
    return items.report(items.sums(np.abs(left - right)) / largest, _orders(items, items.truth), empty, per_query)


def preference_accuracy(
    left_score: ArrayLike,
    right_score: ArrayLike,
    outcome: ArrayLike,
    qid: Ids = None,
    *,
    weight: ArrayLike | None = None,
    empty: str = "skip",
    per_query: bool = False,
) -> float | Floats:
    """Preference accuracy: share of known preferences that the scores agree with, for truth about pairs of items.

    Parameters
    ----------
    left_score, right_score
        Score of the left and of the right item of each pair; equal scores count one half.
    outcome
        1 where the left item is truly better, -1 where the right one is; pairs with 0 (a true tie) are left out.
    qid
        Query of each pair; without it all pairs count the same.
    weight
        Weight of each pair within its query.
    empty, per_query
        See the module.

    Examples
    --------
    >>> preference_accuracy([0.9, 0.5, 0.3, 0.3], [0.1, 0.7, 0.3, 0.2], [1, 1, -1, 0])
    0.5
    """
    from ..kernels import ROUNDING

    left, right = numbers(left_score, "left_score"), numbers(right_score, "right_score")
    sign = numbers(outcome, "outcome")
    weights = np.ones(left.shape) if weight is None else numbers(weight, "weight")
    if left.ndim != 1 or not left.shape == right.shape == sign.shape == weights.shape:
        names = "left_score, right_score, outcome and weight"
        raise JudgmentError(f"{names} differ in shape; give one of each for every pair")
    if not len(left):
        raise JudgmentError("there is no pair to measure; outcome is empty")
    known = np.isin(sign, (-1, 0, 1))
    if not known.all():
        row = int(np.argmin(known))
        raise JudgmentError(f"outcome in row {row + 1} is {sign[row]:g}; use 1 for left, -1 for right and 0 for a tie")
    if (weights < 0).any():
        raise JudgmentError(f"weight in row {int(np.argmax(weights < 0)) + 1} is negative; weights are at least 0")
    query, n_queries = np.zeros(len(left), np.int64), 1
    if qid is not None:
        query, n_queries = dense_codes(one_dimensional(qid, len(left), "qid"), "qid")
    size, larger = np.zeros(n_queries), np.maximum(np.abs(left), np.abs(right))
    np.maximum.at(size, query, np.where(np.isfinite(larger), larger, 0.0))
    equal = ROUNDING * size[query]
    agreement = (1 + ((left > right + equal).astype(np.float64) - (left < right - equal)) * sign) / 2
    weights = weights * (sign != 0)
    agreed, total = (np.bincount(query, own, n_queries).astype(np.float64) for own in (weights * agreement, weights))
    return summary(share(agreed, total), total > 0, empty, per_query)


def _pairs(items: Arranged) -> dict[str, Floats]:
    """Pairs of each query: all, unequal in truth, unequal in scores, in the same order less those in opposite order."""
    from ..kernels.ranking_measures import pair_counts

    counts = over_queries(pair_counts, _level(items), items.offsets).astype(np.float64)
    tied_truth, tied_scores, tied_both, discordant = counts.T
    n = np.diff(items.offsets).astype(np.float64)
    every = n * (n - 1) / 2
    concordant = every - tied_truth - tied_scores + tied_both - discordant
    unequal = {"all": every, "truth": every - tied_truth, "scores": every - tied_scores}
    return unequal | {"difference": concordant - discordant}


def _orders(items: Arranged, values: Floats) -> Bools:
    """Whether the values tell at least one pair of items of a query apart, for each query."""
    from ..kernels import ROUNDING
    from ..kernels.segments import segment_sizes

    starts, equal = items.offsets[:-1], ROUNDING * segment_sizes(values, items.offsets)
    # all in a chain of equal ones would have to be many for this to be wrong
    return np.minimum.reduceat(values, starts) + equal < np.maximum.reduceat(values, starts)


def _level(items: Arranged) -> tuple[Floats, Floats]:
    """Truth and scores with equal ones of a query made the same number."""
    from ..kernels.ranking_measures import level

    def of(values: Floats) -> Floats:
        # whole numbers, which grades mostly are, are not rounded
        whole = np.abs(values).max() < _MAX_WHOLE_NUMBER and bool((values == np.rint(values)).all())
        return values if whole else read_only(over_queries(level, (values,), items.offsets))

    return of(items.truth), of(items.scores)


def _ranks(items: Arranged) -> tuple[Floats, Floats]:
    """Ranks of the items within their query by truth and by score, ties sharing the mean rank."""
    from ..kernels.ranking_measures import middle_ranks

    truth, scores = (over_queries(middle_ranks, (values,), items.offsets) for values in (items.truth, items.scores))
    return truth, scores
