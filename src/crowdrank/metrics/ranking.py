r"""Measures of a ranking against graded truth: nDCG, average precision, precision, recall, RBP, ERR, reciprocal rank.

All take `truth` (a grade per item), `scores` (larger is better) and `qid` (query of each item, any type, in any order;
None means one query), or two tables of queries x items without `qid`. They return the mean over queries, or with
``per_query=True`` one value per query in the order of the sorted query ids (of the rows, for tables).

Items that a run did not retrieve still belong to a query's ideal ranking and to its number of relevant items: give them
a score of minus infinity, and they earn nothing themselves, as in trec_eval.

``ties`` says what equal scores mean:

``"average"``
    the expected value when tied items are shuffled. The default: it does not depend on the order of the input. It is
    exact for every measure here, not sampled [McSherry08]_.
``"first"``
    tied items stay in input order.
``"worst"``
    of tied items the least relevant comes first, so nothing is gained by not deciding.
``"trec"``, ``"gdeval"``
    of tied items that of the last id comes first, as in trec_eval and gdeval. Known where items have ids, that is by
    :func:`crowdrank.evaluate`; trec_eval reads scores as 32-bit floats, so more of them tie.

``empty`` says what a query without any relevant item counts: ``"zero"`` (as trec_eval), ``"one"``, or ``"skip"`` (left
out of the mean, NaN per query).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import JudgmentError, ParameterError
from ..kernels.threads import read_only
from ..protocols import Floats
from ..wording import one_of, option
from .queries import Arranged, Ids, arrange, cutoff, over_queries, share

TIES = {"first": 0, "average": 1, "worst": 2}
GAINS = ("exponential", "linear")
NEGATIVE = ("error", "zero")

_LARGEST_EXPONENT = 1000.0


def ndcg(
    truth: ArrayLike,
    scores: ArrayLike,
    qid: Ids = None,
    k: int | None = 10,
    gain: str = "exponential",
    *,
    ties: str = "average",
    empty: str = "zero",
    negative: str = "error",
    per_query: bool = False,
) -> float | Floats:
    r"""Normalised discounted cumulative gain: DCG divided by that of the best possible order.

    .. math:: \mathrm{DCG@}k = \sum_{r=1}^{k} \frac{\mathrm{gain}(g_r)}{\log_2(1 + r)}

    with :math:`g_r` the grade of the item at rank :math:`r`.

    Parameters
    ----------
    truth, scores, qid
        Grade, score and query of each item, see the module.
    k
        Number of places read; None for all.
    gain
        ``"exponential"`` is :math:`2^g - 1` of Burges et al. [Burges05]_, used by web search, LETOR, XGBoost and
        LightGBM; ``"linear"`` is the grade itself, of Järvelin and Kekäläinen [Jarvelin02]_, used by trec_eval and
        scikit-learn. For grades 0 and 1 they agree.
    ties, empty
        See the module.
    negative
        What a grade below 0 means: ``"error"``, or ``"zero"`` as in trec_eval (spam in TREC web judgments).
    per_query
        Return one value per query instead of their mean.

    Examples
    --------
    >>> round(ndcg([3, 2, 0, 1], [0.9, 0.2, 0.5, 0.1]), 4)
    0.9508
    >>> ndcg([[1, 0], [0, 1]], [[0.9, 0.1], [0.8, 0.2]], gain="linear", per_query=True).round(4)
    array([1.    , 0.6309])
    """
    from ..kernels.ranking_measures import ideal_gain

    items, exponential = _gains(truth, scores, qid, gain, negative)
    discount = _logarithmic_discount(items, k)
    value = _read_places("discounted_gain", items.truth, items, k, ties, exponential, discount)
    best = over_queries(ideal_gain, (items.truth,), items.offsets, len(discount), exponential, discount)
    # rounding may lift a perfect order above 1
    return items.report(np.minimum(share(value, best), 1.0), best > 0, empty, per_query)


def dcg(
    truth: ArrayLike,
    scores: ArrayLike,
    qid: Ids = None,
    k: int | None = 10,
    gain: str = "exponential",
    *,
    ties: str = "average",
    negative: str = "error",
    per_query: bool = False,
) -> float | Floats:
    """Discounted cumulative gain, not normalised; the formula and the gains are those of :func:`ndcg`.

    Examples
    --------
    >>> round(dcg([3, 2, 0, 1], [0.9, 0.2, 0.5, 0.1], gain="linear"), 4)
    4.4307
    """
    items, exponential = _gains(truth, scores, qid, gain, negative)
    value = _read_places("discounted_gain", items.truth, items, k, ties, exponential, _logarithmic_discount(items, k))
    return items.report(value, np.isfinite(value), "zero", per_query)


def precision(
    truth: ArrayLike,
    scores: ArrayLike,
    qid: Ids = None,
    k: int = 10,
    *,
    relevant_from: float = 1.0,
    ties: str = "average",
    empty: str = "zero",
    per_query: bool = False,
) -> float | Floats:
    """Precision at k: share of relevant items in the first k places; blank places are not relevant.

    Parameters
    ----------
    truth, scores, qid, ties, empty, per_query
        See the module.
    k
        Number of places.
    relevant_from
        Lowest grade of a relevant item.

    Examples
    --------
    >>> precision([1, 0, 1, 0], [4, 3, 2, 1], k=2)
    0.5
    """
    if k is None:
        raise ParameterError("precision needs a cutoff; give k, for example k=10")
    items, relevant = _relevant(truth, scores, qid, relevant_from)
    return items.report(_count_relevant(items, relevant, k, ties) / k, items.sums(relevant) > 0, empty, per_query)


def recall(
    truth: ArrayLike,
    scores: ArrayLike,
    qid: Ids = None,
    k: int | None = 10,
    *,
    relevant_from: float = 1.0,
    ties: str = "average",
    empty: str = "zero",
    per_query: bool = False,
) -> float | Floats:
    """Recall at k: share of a query's relevant items in the first k places; parameters as in :func:`precision`.

    Examples
    --------
    >>> recall([1, 0, 1, 1], [4, 3, 2, 1], k=3, per_query=True).round(4)
    array([0.6667])
    """
    items, relevant = _relevant(truth, scores, qid, relevant_from)
    n_found, n_relevant = _count_relevant(items, relevant, k, ties), items.sums(relevant)
    return items.report(share(n_found, n_relevant), n_relevant > 0, empty, per_query)


def rbp(
    truth: ArrayLike,
    scores: ArrayLike,
    qid: Ids = None,
    p: float = 0.95,
    k: int | None = None,
    *,
    gain: str = "binary",
    relevant_from: float = 1.0,
    max_grade: float | None = None,
    ties: str = "average",
    empty: str = "zero",
    negative: str = "error",
    per_query: bool = False,
) -> float | Floats:
    r"""Rank-biased precision: relevance per item read when a reader goes on with probability p [Moffat08]_.

    .. math:: \mathrm{RBP} = (1 - p) \sum_{r \ge 1} p^{r-1} [g_r \ge \text{relevant\_from}]

    or, graded, with :math:`g_r / g_{\max}` in place of the bracket.

    Parameters
    ----------
    truth, scores, qid, ties, empty, per_query
        See the module.
    p
        Persistence; raising it reads deeper, 1 / (1 - p) items on average.
    k
        Number of places read; None for all.
    gain
        ``"binary"``: an item is relevant or not; ``"linear"``: it counts its grade over the highest one.
    relevant_from
        With binary gains: lowest grade of a relevant item; grades above it count the same.
    max_grade
        With linear gains: highest grade of the scale; None takes the highest grade in `truth`.
    negative
        With linear gains, as in :func:`ndcg`.

    Notes
    -----
    A query with few items cannot reach 1: places it leaves blank count as not relevant.

    Examples
    --------
    >>> round(rbp([1, 0, 1], [3, 2, 1], p=0.5), 4)
    0.625
    >>> rbp([1, 0, 2], [3, 2, 1], p=0.5, gain="linear", max_grade=2)
    0.375
    """
    if not 0 < p < 1:
        raise ParameterError(f"p={p!r} is not a persistence; give a number between 0 and 1, for example 0.95")
    if one_of(gain, ("binary", "linear"), "gain") == "linear":
        items, _ = _gains(truth, scores, qid, gain, negative)
        # a truth without any grade above 0 has nothing to divide
        relevant = read_only(items.truth / (_top_grade(items, max_grade) or 1.0))
    else:
        items, relevant = _relevant(truth, scores, qid, relevant_from)
    weights = (1 - p) * p ** np.arange(cutoff(k, items.longest))
    value = _read_places("discounted_gain", relevant, items, k, ties, False, read_only(weights))
    return items.report(value, items.sums(relevant) > 0, empty, per_query)


def average_precision(
    truth: ArrayLike,
    scores: ArrayLike,
    qid: Ids = None,
    k: int | None = None,
    *,
    relevant_from: float = 1.0,
    ties: str = "average",
    empty: str = "zero",
    per_query: bool = False,
) -> float | Floats:
    """Average precision: mean precision at the ranks of a query's relevant items; the mean over queries is MAP.

    Parameters
    ----------
    truth, scores, qid, ties, empty, per_query
        See the module.
    k
        Number of places read; relevant items below count 0, and the sum is still divided by all relevant items
        (``map_cut`` of trec_eval).
    relevant_from
        Lowest grade of a relevant item.

    Notes
    -----
    scikit-learn's ``average_precision_score`` puts tied items at one threshold, which is not the expected value over
    tie-breaks.

    Examples
    --------
    >>> round(average_precision([1, 0, 1, 0], [4, 3, 2, 1]), 4)
    0.8333
    """
    items, relevant = _relevant(truth, scores, qid, relevant_from)
    value = _read_places("average_precision", relevant, items, k, ties)
    return items.report(value, items.sums(relevant) > 0, empty, per_query)


def reciprocal_rank(
    truth: ArrayLike,
    scores: ArrayLike,
    qid: Ids = None,
    k: int | None = None,
    *,
    relevant_from: float = 1.0,
    ties: str = "average",
    empty: str = "zero",
    per_query: bool = False,
) -> float | Floats:
    """Reciprocal rank: 1 / rank of the first relevant item, 0 if none is in the first k; the mean over queries is MRR.

    Parameters are those of :func:`average_precision`.

    Examples
    --------
    >>> reciprocal_rank([0, 0, 1, 1], [0.9, 0.1, 0.5, 0.2])
    0.5
    """
    items, relevant = _relevant(truth, scores, qid, relevant_from)
    value = _read_places("reciprocal_rank", relevant, items, k, ties)
    return items.report(value, items.sums(relevant) > 0, empty, per_query)


def err(
    truth: ArrayLike,
    scores: ArrayLike,
    qid: Ids = None,
    k: int | None = 20,
    *,
    max_grade: float | None = None,
    ties: str = "average",
    empty: str = "zero",
    negative: str = "error",
    per_query: bool = False,
) -> float | Floats:
    r"""Expected reciprocal rank (ERR) of the item that satisfies a reader who goes down the ranking [Chapelle09]_.

    .. math:: \mathrm{ERR@}k = \sum_{r=1}^{k} \frac{R_r}{r} \prod_{s<r} (1 - R_s), \qquad
              R_r = \frac{2^{g_r} - 1}{2^{g_{\max}}}

    Parameters
    ----------
    truth, scores, qid, ties, empty, per_query
        See the module.
    k
        Number of places read; None for all.
    max_grade
        Highest grade of the scale; raising it lowers every value. None takes the highest grade in `truth`, so give it
        when values of different truths are compared (gdeval takes 4).
    negative
        As in :func:`ndcg`.

    Notes
    -----
    The expected value over ties takes time (tied items) x (places read); with ``k=None`` and a query of many tied items
    that is their number squared.

    Examples
    --------
    >>> err([1, 0, 2], [3, 2, 1], max_grade=2)
    0.4375
    """
    items, _ = _gains(truth, scores, qid, "exponential", negative)
    stop = (np.exp2(items.truth) - 1) / np.exp2(_top_grade(items, max_grade))
    value = _read_places("expected_reciprocal_rank", read_only(stop), items, k, ties)
    return items.report(value, items.sums(stop) > 0, empty, per_query)


def _gains(truth: ArrayLike, scores: ArrayLike, qid: Ids, gain: str, negative: str) -> tuple[Arranged, bool]:
    """Items whose grades can serve as gains, and whether the gain is exponential."""
    exponential = one_of(gain, GAINS, "gain") == "exponential"
    items = arrange(truth, scores, qid)
    if one_of(negative, NEGATIVE, "negative") == "zero":
        items = replace(items, truth=read_only(np.maximum(items.truth, 0)))
    lowest, highest = items.truth.min(), items.truth.max()
    if lowest < 0:
        remedy = "or count those as 0 with negative='zero', as in ndcg@10(negative=zero)"
        raise JudgmentError(f"truth has a negative grade ({lowest:g}); shift grades to start at 0, {remedy}")
    if np.isinf(highest):
        raise JudgmentError("truth has an infinite grade; give that item a number or leave it out")
    if exponential and highest > _LARGEST_EXPONENT:
        remedy = "use gain='linear' or a smaller scale"
        raise JudgmentError(f"truth has a grade of {highest:g}, too large for 2 ** grade - 1; {remedy}")
    return items, exponential


def _top_grade(items: Arranged, max_grade: float | None) -> float:
    """The highest grade of the scale: the one given, which must fit the truth, or else that of the truth."""
    highest = float(items.truth.max())
    top = highest if max_grade is None else float(max_grade)
    if not highest <= top <= _LARGEST_EXPONENT:
        odd = f"{option('max_grade', max_grade)} does not fit a truth with grade {highest:g}"
        raise ParameterError(f"{odd}; give the scale's highest grade")
    return top


def _relevant(truth: ArrayLike, scores: ArrayLike, qid: Ids, relevant_from: float) -> tuple[Arranged, Floats]:
    """Items, and 1 for each relevant one, 0 for the others."""
    items = arrange(truth, scores, qid)
    return items, read_only((items.truth >= relevant_from).astype(np.float64))


def _count_relevant(items: Arranged, relevant: Floats, k: int | None, ties: str) -> Floats:
    """Number of relevant items among the first ``k`` places of each query."""
    each = read_only(np.ones(cutoff(k, items.longest)))
    return _read_places("discounted_gain", relevant, items, k, ties, False, each)


def _logarithmic_discount(items: Arranged, k: int | None) -> Floats:
    """What a gain in each place counts."""
    return read_only(1 / np.log2(np.arange(2, cutoff(k, items.longest) + 2)))


def _read_places(kernel: str, values: Floats, items: Arranged, k: int | None, ties: str, *rest: Any) -> Floats:
    """What a kernel finds of the values in the first ``k`` places of each query."""
    from ..kernels import ranking_measures

    depth, rule = cutoff(k, items.longest), TIES[one_of(ties, TIES, "ties")]
    return over_queries(getattr(ranking_measures, kernel), (values, items.scores), items.offsets, depth, rule, *rest)
