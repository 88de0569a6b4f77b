"""How far annotators agree beyond chance: Krippendorff's alpha, Cohen's and Fleiss' kappa.

1 is full agreement, 0 what chance would give, below 0 less than that. Alpha and Fleiss' kappa take a `Grades`, or one
array each of item, annotator and grade with a row per judgment; a grade that is missing (NaN, None) is a judgment that
was not made. Only grades by different annotators are compared: where an annotator graded an item again, that shows how
far they agree with themselves. Annotators may be left out where nobody did. Weights of judgments are not used. All take
a number of steps in proportion to the judgments, whatever the number of items, annotators and levels.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ..data.index import factorize
from ..errors import JudgmentError, ParameterError
from ..protocols import Counts, Floats
from ..wording import one_of
from .queries import Ids, arrange, dense_codes, one_dimensional

LEVELS = ("nominal", "ordinal", "interval")
WEIGHTS = ("linear", "quadratic")

# threshold (equal): cells of grades and units counted at once for alpha
_TABLE_CELLS = 1 << 24


def krippendorff_alpha(item: Any, annotator: Ids = None, grade: Ids = None, *, level: str | None = None) -> float:
    r"""Krippendorff's alpha: one minus observed disagreement divided by that expected by chance [Krippendorff11]_.

    .. math:: \alpha = 1 - \frac{D_o}{D_e}, \qquad
              D_o = \frac{1}{n} \sum_u \frac{1}{m_u - 1} \sum_{i \ne j \in u} \delta^2(g_i, g_j)

    with :math:`m_u` grades of item :math:`u`, :math:`n` grades of all items that have at least two, and :math:`D_e` the
    mean :math:`\delta^2` of two of those :math:`n`, whatever their items. Where annotators graded an item again, the
    inner sum is over the :math:`c_u` ordered pairs of grades by different annotators, and its factor
    :math:`m_u / c_u`; items that one annotator alone graded are left out.

    Parameters
    ----------
    item
        A `Grades`, or the item of each judgment (any type of id).
    annotator
        Annotator of each judgment; not needed where nobody graded an item twice.
    grade
        Grade of each judgment; NaN where it is missing.
    level
        How far apart two grades are: ``"nominal"`` (0 or 1), ``"ordinal"`` (the number of grades given between them) or
        ``"interval"`` (their difference). None is ordinal, but nominal for nominal `Grades`.

    Returns
    -------
    float
        NaN when all grades are the same: nothing shows whether annotators would distinguish items.

    Examples
    --------
    >>> items, grades = ["x", "x", "y", "y", "z", "z"], [1, 1, 2, 2, 3, 2]
    >>> round(krippendorff_alpha(items, grade=grades, level="interval"), 4)
    0.7059
    """
    level = _level(item, level)
    items, values, own = _coded_judgments(item, annotator, grade, ordered=level != "nominal")
    paired = _expect_pairs(items, own)[items] > 0
    items, values, own = items[paired], values[paired], None if own is None else own[paired]
    size, compared = np.bincount(items), count_ordered_pairs(items, own)
    if level == "nominal":
        # pairs of unlike grades within items, by one less than their grades, and overall
        several, totals = compared > 0, np.bincount(values).astype(np.float64)
        unlike = compared[several] - equal_pairs(items, values, own, len(size))[several]
        within = float(np.sum(unlike * (size[several] / compared[several])))
        total = float((float(len(items)) ** 2 - totals @ totals) / len(items))
    else:
        if level == "ordinal":
            # the count of grades between two grades is the difference of their middle ranks
            codes, counts = np.unique(values, return_inverse=True, return_counts=True)[1:]
            values = (np.cumsum(counts) - counts / 2)[codes]
        # squared differences within items, by one less than their grades, and overall; both on the same scale
        values = values - values.mean()
        spread = _squared_deviations(items, values) - (0.0 if own is None else _squared_deviations(own, values))
        within, total = float(spread @ (size[items] / compared[items])), float(values @ values)
    n = len(items)
    return 1 - (n - 1) / n * within / total if total > 0 else float("nan")


def fleiss_kappa(item: Any, annotator: Ids = None, grade: Ids = None) -> float:
    r"""Fleiss' kappa of nominal grades: agreement on an item beyond that of grades drawn at random [Fleiss71]_.

    .. math:: \kappa = \frac{\bar P - \bar P_e}{1 - \bar P_e}

    with :math:`\bar P` the mean over items of the share of agreeing pairs of grades, and :math:`\bar P_e` the sum of
    squares of the levels' mean shares.

    Parameters
    ----------
    item, annotator, grade
        As in :func:`krippendorff_alpha`; grades may be text.

    Notes
    -----
    Fleiss has the same number of grades for every item. For unequal numbers this is Gwet's extension [Gwet14]_: items
    with one grade count for the shares only, and every item counts the same. The order of levels is not used; for
    ordered grades take :func:`krippendorff_alpha`.

    Returns
    -------
    float
        NaN when all grades are the same.

    Examples
    --------
    >>> round(fleiss_kappa(["x", "x", "x", "y", "y", "y"], grade=["good", "good", "bad", "bad", "bad", "bad"]), 4)
    0.25
    """
    items, codes, own = _coded_judgments(item, annotator, grade, ordered=False)
    size, compared = np.bincount(items), _expect_pairs(items, own)
    several = compared > 0
    observed = float(np.mean(equal_pairs(items, codes, own, len(size))[several] / compared[several]))
    shares = np.bincount(codes, 1 / size[items]) / len(size)
    expected = float(shares @ shares)
    return (observed - expected) / (1 - expected) if len(shares) > 1 else float("nan")


def cohen_kappa(
    first: Any,
    second: Any = None,
    *,
    weights: str | None = None,
    levels: Sequence[Hashable] | None = None,
    annotators: tuple[str | int, str | int] | None = None,
) -> float:
    r"""Cohen's kappa of two annotators who graded the same items [Cohen60]_.

    .. math:: \kappa = 1 - \frac{\sum_{ij} w_{ij} o_{ij}}{\sum_{ij} w_{ij} e_{ij}}

    with :math:`o_{ij}` the share of items graded :math:`i` by one and :math:`j` by the other, :math:`e_{ij}` the
    product of the two annotators' own shares, and :math:`w_{ij}` the weight of that disagreement.

    Parameters
    ----------
    first
        Grades by the first annotator, one per item; or a `Grades`.
    second
        Grades of the same items by the second annotator; nothing with a `Grades`.
    weights
        None counts every disagreement the same; ``"linear"`` and ``"quadratic"`` by the (squared) number of levels
        between.
    levels
        All levels from worst to best; None takes those that occur, in rising order. Needed for weighted text grades.
    annotators
        Ids of the two annotators of a `Grades` that has more than two; the items that both graded count.

    Returns
    -------
    float
        NaN when chance alone gives full agreement.

    Examples
    --------
    >>> cohen_kappa([1, 2, 2, 3], [1, 2, 3, 3], weights="linear")
    0.7142857142857143
    """
    if weights is not None:
        one_of(weights, WEIGHTS, "weights")
    if not _is_grades(first):
        left, right, n_levels = _two_arrays(first, second, levels, weights is not None)
    elif second is None:
        left, right, n_levels = _two_of(first, annotators)
    else:
        remedy = "leave the second argument out, or pass two arrays"
        raise ParameterError(f"a Grades holds both annotators' grades; {remedy}")
    observed = np.bincount(left * n_levels + right, minlength=n_levels**2).reshape(n_levels, n_levels) / len(left)
    apart = np.abs(np.subtract.outer(np.arange(n_levels), np.arange(n_levels))).astype(np.float64)
    cost = (apart > 0).astype(np.float64) if weights is None else apart if weights == "linear" else apart**2
    expected = float((cost * np.outer(observed.sum(1), observed.sum(0))).sum())
    return 1 - float((cost * observed).sum()) / expected if expected > 0 else float("nan")


def accuracy(truth: ArrayLike, chosen: ArrayLike, qid: Ids = None, *, per_query: bool = False) -> float | Floats:
    """Accuracy: share of items whose chosen class is the true one; the mean over queries, or one value for each.

    Examples
    --------
    >>> accuracy([0, 1, 2, 1], [0, 1, 1, 1])
    0.75
    """
    items = arrange(truth, chosen, qid)
    share = items.sums(items.truth == items.scores) / np.diff(items.offsets)
    return items.report(share, np.isfinite(share), "zero", per_query)


def _is_grades(value: Any) -> bool:
    """Whether the value looks like a `Grades`."""
    return hasattr(value, "grade") and hasattr(value, "item") and not hasattr(value, "__array__")


def _level(item: Any, level: str | None) -> str:
    """Level of measurement that was asked for, or that fits the grades."""
    nominal = _is_grades(item) and bool(getattr(item, "nominal", False))
    if level is None:
        return "nominal" if nominal else "ordinal"
    if nominal and level != "nominal":
        raise ParameterError(f"nominal grades have no order, which level={level!r} needs; use level='nominal'")
    return str(one_of(level, LEVELS, "level"))


def _coded_judgments(
    item: Any, annotator: Ids, grade: Ids, *, ordered: bool
) -> tuple[Counts, NDArray[Any], Counts | None]:
    """Item code and grade (its level code where no order is needed) of each judgment that was made.

    The third is a number for each item and annotator, ``None`` where nobody graded an item twice.
    """
    if _is_grades(item):
        if annotator is not None or grade is not None:
            raise ParameterError("a Grades holds annotators and grades already; leave the other arguments out")
        codes = np.unique(item.item, return_inverse=True)[1]
        given = item.grade if ordered else _class_codes(item.grade)
        return codes, given, own_cells(codes, item.annotator if len(item.annotators) else None)
    if grade is None:
        raise ParameterError("the grades are missing; pass a Grades, or item= and grade= with a row per judgment")
    column = grade if isinstance(grade, pl.Series) else np.asarray(grade)
    if len(column.shape) != 1:
        raise JudgmentError(f"grade has shape {column.shape}; give one grade for each judgment, in a row of its own")
    n = len(column)
    ids = one_dimensional(item, n, "item")
    who = None if annotator is None else one_dimensional(annotator, n, "annotator")
    values = _ordered_values(column) if ordered else _class_codes(column)
    made = ~np.isnan(values) if ordered else values >= 0
    if not made.any():
        raise JudgmentError("there is no grade to measure agreement on; give at least two judgments of an item")
    rows = np.flatnonzero(made)
    codes = dense_codes(ids[rows], "item", rows)[0]
    own = None if who is None else own_cells(codes, dense_codes(who[rows], "annotator", rows)[0])
    return codes, values[made], own


def own_cells(items: Counts, annotator: Any) -> Counts | None:
    """Return a number for each item and annotator, ``None`` where nobody graded an item twice."""
    if annotator is None or not len(annotator):
        return None
    cells, own = np.unique(items.astype(np.int64) * (int(annotator.max()) + 1) + annotator, return_inverse=True)
    return None if len(cells) == len(items) else own


def count_ordered_pairs(items: Counts, own: Counts | None) -> Counts:
    """Return the number of ordered pairs of grades by different annotators of each item."""
    size = np.bincount(items)
    if own is None:
        return size * (size - 1)
    again = np.bincount(own)
    of = np.zeros(len(again), np.int64)
    of[own] = items
    return size**2 - np.bincount(of, again**2, len(size)).astype(np.int64)


def _expect_pairs(items: Counts, own: Counts | None) -> Counts:
    """The same; refused where there are none."""
    pairs, by = count_ordered_pairs(items, own), "" if own is None else " by different annotators"
    if not pairs.any():
        odd = f"no item has two grades{by}, so there is no agreement to measure"
        raise JudgmentError(f"{odd}; collect a second judgment of some items")
    return pairs


def _ordered_values(column: NDArray[Any] | pl.Series) -> Floats:
    """Grades as numbers, NaN where missing."""
    try:
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        remedy = "turn them into numbers, or use level='nominal'"
        raise JudgmentError(f"grades in words have no order here; {remedy}") from error
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values))) + 1
        raise JudgmentError(f"grade in row {row} is infinite; give a number or leave it out")
    return values


def _class_codes(column: NDArray[Any] | pl.Series) -> Counts:
    """Level code of each grade, -1 where missing."""
    try:
        listed = column.tolist() if isinstance(column, np.ndarray) and column.dtype.kind == "O" else column
        return factorize([pl.Series(listed)])[0][0].astype(np.int64)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise JudgmentError("grades mix numbers and text; turn them all into text") from error


def _squared_deviations(cell: Counts, values: Floats) -> Floats:
    """Squared distance of each value from the mean of its cell, times the size of that."""
    size = np.bincount(cell)
    return (values - (np.bincount(cell, values) / np.maximum(size, 1))[cell]) ** 2 * size[cell]


def equal_pairs(items: Counts, codes: Counts, own: Counts | None, n_items: int) -> Floats:
    """Return the number of ordered pairs of equal grades by different annotators of each item."""
    cells, counts = _cell_counts(items, codes)
    if own is None:
        return np.bincount(cells, counts * (counts - 1.0), n_items).astype(np.float64)
    owned, again = _cell_counts(own, codes)
    of = np.zeros(int(own.max()) + 1, np.int64)
    of[own] = items
    same = np.bincount(cells, counts.astype(np.float64) ** 2, n_items)
    return (same - np.bincount(of[owned], again.astype(np.float64) ** 2, n_items)).astype(np.float64)


def _cell_counts(items: Counts, codes: Counts) -> tuple[Counts, Counts]:
    """Item and count of each pair of item and level that occurs."""
    n_levels = int(codes.max()) + 1
    cells = items.astype(np.int64) * n_levels + codes
    if (int(items.max()) + 1) * n_levels <= max(_TABLE_CELLS, len(items)):
        table = np.bincount(cells)
        occurring = np.flatnonzero(table)
        return occurring // n_levels, table[occurring]
    occurring, counts = np.unique(cells, return_counts=True)
    return occurring // n_levels, counts


def _two_of(grades: Any, annotators: tuple[str | int, str | int] | None) -> tuple[Counts, Counts, int]:
    """Level codes by two annotators of the items that both graded, and the number of levels."""
    if annotators is None and len(grades.annotators) != 2:
        remedy = "name two with annotators=(..., ...), or use krippendorff_alpha for all"
        raise JudgmentError(f"Cohen's kappa is about two annotators and there are {len(grades.annotators)}; {remedy}")
    pair = (0, 1) if annotators is None else tuple(grades.annotators.code(name, "annotator") for name in annotators)
    codes, levels = grades.level_codes()[:2]
    rows = [np.flatnonzero(grades.annotator == one) for one in pair]
    if any(len(np.unique(grades.item[row])) != len(row) for row in rows):
        raise JudgmentError("an annotator graded an item twice; build the Grades with duplicates='last' to keep one")
    common, left, right = np.intersect1d(grades.item[rows[0]], grades.item[rows[1]], return_indices=True)
    if not len(common):
        raise JudgmentError("the two annotators have no item in common; choose two who graded the same items")
    return codes[rows[0][left]].astype(np.int64), codes[rows[1][right]].astype(np.int64), len(levels)


def _two_arrays(first: Any, second: Any, levels: Any, weighted: bool) -> tuple[Counts, Counts, int]:
    """Level codes of two arrays of grades, and the number of levels."""
    left, right = np.asarray(first), np.asarray(second)
    if left.ndim != 1 or left.shape != right.shape or not len(left):
        wanted = "two arrays of the same length, a grade of each item by either annotator"
        raise JudgmentError(f"Cohen's kappa takes {wanted}")
    both = np.concatenate([left, right]).tolist()
    if any(value is None or value != value for value in both):
        raise JudgmentError("a grade is missing; leave out items that only one of the two annotators graded")
    if levels is None:
        if weighted and any(isinstance(value, str) for value in both):
            needed = "the order of grades in words; give levels= from worst to best"
            raise JudgmentError(f"weighted agreement needs to know {needed}")
        levels = sorted(set(both))
    position = {level: code for code, level in enumerate(levels)}
    if unknown := [value for value in both if value not in position]:
        raise JudgmentError(f"grade {unknown[0]!r} is not one of the levels; add it to levels= or correct the grade")
    codes = np.array([position[value] for value in both], np.int64)
    return codes[: len(left)], codes[len(left) :], len(position)


def quality_divergence(real: ArrayLike, estimated: ArrayLike, *, bins: int = 10, pseudo_count: float = 0.5) -> float:
    """Kullback-Leibler divergence of the distribution of annotators' real qualities from that of the estimated ones.

    Both are counted in equally wide bins from 0 to 1, and the divergence is the sum of :math:`p \\log(p / q)` over
    bins, :math:`p` being the shares of the real qualities and :math:`q` those of the estimates [Niu15]_. It compares
    distributions, not annotators: estimates that exchange two annotators have divergence 0.

    Parameters
    ----------
    real, estimated
        A quality from 0 to 1 for each annotator; they need not be the same annotators.
    bins
        Number of bins; more of them see finer differences and need more annotators.
    pseudo_count
        Annotators added to each bin, without which an empty bin makes the divergence infinite.

    Examples
    --------
    >>> round(quality_divergence([0.95, 0.85, 0.55], [0.95, 0.85, 0.55]), 3)
    0.0
    >>> round(quality_divergence([0.95, 0.85, 0.55], [0.15, 0.25, 0.35]), 3)
    0.412
    """
    if bins < 1:
        raise ParameterError(f"bins={bins} must be at least 1")
    if not pseudo_count > 0:
        raise ParameterError(f"pseudo_count={pseudo_count} must be above 0, or empty bins make the divergence infinite")
    shares = []
    for name, values in (("real", real), ("estimated", estimated)):
        quality = np.asarray(values, np.float64)
        if quality.ndim != 1 or not len(quality) or not ((quality >= 0) & (quality <= 1)).all():
            raise JudgmentError(f"{name} has to be a list of qualities between 0 and 1, one for each annotator")
        counts = np.histogram(quality, bins, (0, 1))[0] + pseudo_count
        shares.append(counts / counts.sum())
    return float((shares[0] * np.log(shares[0] / shares[1])).sum())
