r"""Plackett-Luce over many rankings of unequal length, with ties: log-likelihood, gradient and curvature.

Rows of ranking ``r`` are ``offsets[r]:offsets[r + 1]``, best first. ``item`` says which entry of the scores a row has;
scores that stand in ranked order already have ``item = arange(n_rows)``. The ranking sees them times ``factor[r]``, by
which its annotator keeps to them, and counts ``weight[r]`` times.

An untied row contributes the logarithm of its share in the strength :math:`w = e^s` of itself and all below. Each row
:math:`i` of a tie contributes, for each node :math:`(\alpha, \omega)` of ties of that length,

.. math:: \omega \log \frac{w_i}{w_i + \alpha (W - w_i) + W_\text{below}},

:math:`W` being the strength of the whole tie. So all are logarithms of shares: the log-likelihood is concave in
the scores, and its curvature is a graph Laplacian. Strengths are held relative to that of a row and all below it, so
that scores may lie as far apart as they like.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.threads import bind, even_bounds, pair_bounds, sum_over_bounds, views
from ....protocols import Bools, Counts, Floats, Ints

_MOST_NODES = 12
_SMALLEST = 1e-130
"""Least strength beside others, so even the square of its reciprocal is finite."""

_HIGHER = 30.0
"""How far a score may stand above the one that strengths are relative to."""

_ROWS_PER_THREAD = 1_000_000


class RankedRows(NamedTuple):
    """Rankings laid out for the kernels, all arrays read-only; see :func:`ranked_rows`.

    ``tied`` (n_rows,) says whether a row ties with the one above. Nodes of ties of ``t`` rows are
    ``nodes[t]:nodes[t + 1]`` of ``alpha`` and ``omega``. With ``apart`` the weights of a tie are scaled to what
    as many equal items, ranked above the others in any order, would tell.
    """

    offsets: Counts
    item: Ints
    tied: Bools
    weight: Floats
    nodes: Counts
    alpha: Floats
    omega: Floats
    apart: bool
    longest: int
    bounds: Counts


def ranked_rows(offsets: Counts, item: Ints, rank: Ints, weight: Floats, ties: str) -> RankedRows:
    """Return rankings laid out for the kernels.

    Parameters
    ----------
    offsets, item, rank, weight
        Bounds of the rankings (n_rankings + 1,), place in the scores and rank of each row, weight of each ranking.
    ties
        ``"split"``: a tie is the mean log-likelihood of all orders of its rows. Where ``m`` of ``t`` rows are left,
        each in turn stands beside ``m - 1`` times the mean of the others, which is exact for ties of two; from 13
        rows on only some values of ``m`` are worked out. ``"ignore"``: each row stands against those below the tie.
    """
    tied = np.zeros(len(rank), bool)
    np.equal(rank[1:], rank[:-1], out=tied[1:])
    tied[offsets[:-1][offsets[:-1] < offsets[1:]]] = False
    sizes = np.diff(np.flatnonzero(~tied), append=len(tied)) if tied.any() else np.ones(1, np.int64)
    nodes, alpha, omega = _tie_nodes(ties, np.flatnonzero(np.bincount(sizes)))
    longest = int(np.diff(offsets).max(initial=1))
    columns: Any = views(offsets, item, tied, weight, nodes, alpha, omega)
    rest: Any = (ties == "ignore", longest, pair_bounds(offsets))
    return RankedRows(*columns, *rest)


def _tie_nodes(ties: str, sizes: Counts) -> tuple[Counts, Floats, Floats]:
    """Where the nodes of each length of ties begin, their shares of the other rows, and their weights."""
    counts = np.zeros(int(sizes.max(initial=1)) + 1, np.int64)
    shares, weights = [np.empty(0)], [np.empty(0)]
    for t in sizes:
        left = np.arange(1, t + 1)
        chosen = left if t <= _MOST_NODES else np.unique(np.geomspace(1, t, _MOST_NODES).round())
        chosen = chosen[:1] if ties == "ignore" else chosen
        shares.append((chosen - 1) / max(t - 1, 1))
        weights.append(np.array([np.interp(left, chosen, unit).sum() / t for unit in np.eye(len(chosen))]))
        counts[t] = len(chosen)
    return np.concatenate([[0], np.cumsum(counts)]), np.concatenate(shares), np.concatenate(weights)


class ListModel(NamedTuple):
    """Plackett-Luce at one point: log-likelihood, its gradient, and what the curvature is made of.

    ``gradient`` and ``diagonal``, that of the negated curvature, are over scores; ``slope`` (n_rankings,) is the
    derivative in each ranking's factor. ``share`` (n_rows,) is the strength of a row, ``rest`` that of all below its
    tie, both relative to the strength of the tie and all below.
    """

    log_likelihood: float
    gradient: Floats
    diagonal: Floats
    slope: Floats
    share: Floats
    rest: Floats


def evaluate_lists(rows: RankedRows, scores: Floats, factor: Floats) -> ListModel:
    """Return the model at these scores (n_items,) and factors (n_rankings,)."""
    share, rest = np.empty(len(rows.item)), np.empty(len(rows.item))
    slope = np.empty(len(rows.weight))
    add = bind(_add_slopes, rows, *views(scores, factor), share, rest, slope)
    (gradient, diagonal), value = sum_over_bounds(add, rows.bounds, (2, len(scores)), 1)
    return ListModel(float(value[0]), gradient, diagonal, slope, share, rest)


def list_product(
    rows: RankedRows, model: ListModel, scores: Floats, factor: Floats
) -> Callable[[Floats, Floats], tuple[Floats, Floats]]:
    """Return the function that multiplies the negated curvature with a change of scores and of factors.

    The function returns an image over scores and one over rankings. The matrix is positive semi-definite in either, but
    not always in both together.
    """
    given = views(scores, factor, model.share, model.rest)

    def product(vector: Floats, turn: Floats) -> tuple[Floats, Floats]:
        twist = np.empty(len(rows.weight))
        add = bind(_add_images, rows, *given, *views(vector, turn), twist)
        return sum_over_bounds(add, rows.bounds, len(scores))[0], twist

    return product


def list_bends(rows: RankedRows, model: ListModel, factor: Floats, starts: Counts, wanted: Bools) -> Floats:
    """Return the weights (n_pairs,) of the Laplacian that the negated curvature in the scores is.

    ``starts`` (n_items + 1,) tells where the pairs of each item begin, with every later item of its query in turn.
    Rankings of items that are not ``wanted`` (n_items,) are left out.
    """
    # the pair (i, j), i < j, is in cell first[i] + j
    first = starts[:-1] - np.arange(1, len(starts))
    given = views(factor, model.share, model.rest, first, wanted)
    # each thread has a table of its own
    n_threads = len(even_bounds(len(rows.item), max(_ROWS_PER_THREAD, 2 * int(starts[-1])))) - 1
    bounds = rows.bounds if n_threads > 1 else np.array([0, len(rows.weight)])
    return sum_over_bounds(bind(_add_bends, rows, *given), bounds, int(starts[-1]))[0]


@njit(cache=True, nogil=True)
def _fill_shares(rows, scores, factor, share, rest, begin, end):
    """Fill share and rest of the rows of the rankings from begin to end."""
    offsets, item, tied = rows.offsets, rows.item, rows.tied
    for ranking in range(begin, end):
        top, below, last = -np.inf, 0.0, offsets[ranking + 1]
        while last > offsets[ranking]:
            start, peak = last, top
            while start == last or tied[start]:
                start -= 1
                share[start] = factor[ranking] * scores[item[start]]
                if share[start] > peak:
                    peak = share[start]
            # not for every rise: mostly each row stands above all the rows below
            if peak > top + _HIGHER:
                below *= exp(top - peak)
                top = peak
            strength = below
            for row in range(start, last):
                share[row] = exp(share[row] - top) + _SMALLEST
                strength += share[row]
            relative = 1.0 / strength
            for row in range(start, last):
                share[row] *= relative
                rest[row] = below * relative
            below, last = strength, start


@njit(cache=True, nogil=True)
def _add_slopes(rows, scores, factor, share, rest, slope, begin, end, of_scores, value):
    """Fill share, rest and slope, and add to gradient and diagonal, (2, n_items), and to the log-likelihood, (1,)."""
    offsets, item, tied, weight, nodes, alpha, omega, apart, longest, _ = rows
    gradient, diagonal, sums = of_scores[0], of_scores[1], np.empty((longest + 1, 5))
    _fill_shares(rows, scores, factor, share, rest, begin, end)
    for ranking in range(begin, end):
        count, times, turn, likelihood, above, squares = weight[ranking], factor[ranking], 0.0, 0.0, 0.0, 0.0
        start, last = offsets[ranking], offsets[ranking + 1]
        while start < last:
            stop, below = _end_of_tie(tied, start, last), rest[start]
            scale = _scale(stop - start, last - stop, apart)
            if stop == start + 1:
                likelihood += log(share[start])
                first, second = 1.0, 1.0
            else:
                likelihood += _tie_sums(share, below, start, stop, alpha, omega, nodes, scale, sums)
                first, second = sums[stop - start, 0], sums[stop - start, 2]
            for row in range(start, stop):
                one, two, part, code = above + first, squares + second, share[row], item[row]
                if stop > start + 1:
                    one = above + sums[stop - start, 1] + sums[row - start, 0] - sums[row - start, 1]
                    two = squares + sums[stop - start, 4] + sums[row - start, 2] - sums[row - start, 4]
                rise = scale - part * one
                gradient[code] += count * times * rise
                diagonal[code] += count * times * times * part * (one - part * two)
                turn += rise * scores[code]
            above = (above + first) * below
            squares = (squares + second) * below * below
            start = stop
        slope[ranking] = count * turn
        value[0] += count * likelihood


@njit(cache=True, nogil=True)
def _end_of_tie(tied, start, last):
    """The row after the tie that begins at start."""
    stop = start + 1
    while stop < last and tied[stop]:
        stop += 1
    return stop


@njit(cache=True, nogil=True)
def _scale(size, n_below, apart):
    """What the weights of a tie are multiplied with."""
    if size == 1 or not apart:
        return 1.0
    ratios = 0.0
    for place in range(1, size + 1):
        ratios += (n_below + 1.0) / (n_below + place)
    return ratios / size


@njit(cache=True, nogil=True)
def _tie_sums(share, below, start, stop, alpha, omega, nodes, scale, sums):
    """Fill the sums over nodes of omega / D and alpha omega / D, then of (1, alpha, alpha^2) omega / D^2, of each row.

    D is what the share of a row is divided by. Sums are (size of the tie + 1, 5), their totals standing last. Returns
    the log-likelihood.
    """
    value, whole, size = 0.0, 0.0, stop - start
    for row in range(start, stop):
        whole += share[row]
    sums[: size + 1] = 0.0
    for place in range(size):
        for node in range(nodes[size], nodes[size + 1]):
            own, lean = share[start + place], alpha[node]
            part = below + own + lean * (whole - own)
            term = scale * omega[node] / part
            value += scale * omega[node] * log(own / part)
            sums[place, 0] += term
            sums[place, 1] += lean * term
            sums[place, 2] += term / part
            sums[place, 3] += lean * term / part
            sums[place, 4] += lean * lean * term / part
        sums[size] += sums[place]
    return value


@njit(cache=True, nogil=True)
def _add_images(rows, scores, factor, share, rest, vector, turn, twist, begin, end, image):
    """Add to the image, (n_items,), and fill twist of the rankings."""
    offsets, item, tied, weight, nodes, alpha, omega, apart, longest, _ = rows
    sums, move, under = np.empty((longest + 1, 5)), np.empty(longest), np.empty(longest)
    for ranking in range(begin, end):
        begun, last, count, times = offsets[ranking], offsets[ranking + 1], weight[ranking], factor[ranking]
        _fill_moves(item, tied, scores, share, rest, vector, times, turn[ranking], begun, last, move, under)
        start, above, carried, turned = begun, 0.0, 0.0, 0.0
        while start < last:
            stop, below = _end_of_tie(tied, start, last), rest[start]
            scale = _scale(stop - start, last - stop, apart)
            first, second = 1.0, under[start - begun] + share[start] * move[start - begun]
            if stop > start + 1:
                _tie_leans(share, below, under, move, begun, start, stop, alpha, omega, nodes, scale, sums)
                first, second = sums[stop - start, 0], sums[stop - start, 2]
            for row in range(start, stop):
                one, two, part, code = above + first, carried + second, share[row], item[row]
                if stop > start + 1:
                    one = above + sums[stop - start, 1] + sums[row - start, 0] - sums[row - start, 1]
                    two = carried + sums[stop - start, 3] + sums[row - start, 2] - sums[row - start, 3]
                push = part * (move[row - begun] * one - two)
                rise = scale - part * one
                image[code] += count * (times * push - turn[ranking] * rise)
                turned += scores[code] * push - vector[code] * rise
            above = (above + first) * below
            carried = (carried + second) * below
            start = stop
        twist[ranking] = count * turned


@njit(cache=True, nogil=True)
def _fill_moves(item, tied, scores, share, rest, vector, times, turn, begun, last, move, under):
    """Fill how far each row of one ranking is moved, and the mean move below its tie times the strength there."""
    mean, beneath = 0.0, 0.0
    for row in range(last - 1, begun - 1, -1):
        code = item[row]
        if row == last - 1 or not tied[row + 1]:
            beneath = rest[row] * mean
            mean = beneath
        move[row - begun] = times * vector[code] + turn * scores[code]
        under[row - begun] = beneath
        mean += share[row] * move[row - begun]


@njit(cache=True, nogil=True)
def _tie_leans(share, below, under, move, begun, start, stop, alpha, omega, nodes, scale, sums):
    """Fill the sums over nodes of omega / D and alpha omega / D, then of both times the mean move, of each row."""
    whole, moved, size = 0.0, 0.0, stop - start
    for row in range(start, stop):
        whole += share[row]
        moved += share[row] * move[row - begun]
    sums[: size + 1] = 0.0
    for place in range(size):
        own, ours = share[start + place], share[start + place] * move[start + place - begun]
        for node in range(nodes[size], nodes[size + 1]):
            lean = alpha[node]
            part = below + own + lean * (whole - own)
            term = scale * omega[node] / part
            mean = (under[start - begun] + ours + lean * (moved - ours)) / part
            sums[place, 0] += term
            sums[place, 1] += lean * term
            sums[place, 2] += term * mean
            sums[place, 3] += lean * term * mean
        sums[size] += sums[place]


@njit(cache=True, nogil=True)
def _cell(one, other, cells_from):
    """The cell of a pair of items."""
    return cells_from[one] + other if one < other else cells_from[other] + one


@njit(cache=True, nogil=True)
def _add_bends(rows, factor, share, rest, cells_from, wanted, begin, end, cells):
    """Add to the cells of the pairs of each ranking of wanted items."""
    offsets, item, tied, weight, nodes, alpha, omega, apart, longest, _ = rows
    sums = np.empty((longest + 1, 5))
    for ranking in range(begin, end):
        start, last, squares = offsets[ranking], offsets[ranking + 1], 0.0
        while start < last and wanted[item[start]]:
            stop, below = _end_of_tie(tied, start, last), rest[start]
            size = stop - start
            sums[:2] = 0.0
            sums[0, 2] = sums[1, 2] = 1.0
            if size > 1:
                scale = _scale(size, last - stop, apart)
                _tie_sums(share, below, start, stop, alpha, omega, nodes, scale, sums)
            for row in range(start, stop):
                place, code = row - start, item[row]
                part = weight[ranking] * factor[ranking] ** 2 * share[row]
                for other in range(row + 1, stop):
                    cell = _cell(code, item[other], cells_from)
                    both = sums[place, 3] + sums[other - start, 3] - sums[place, 4] - sums[other - start, 4]
                    cells[cell] += part * share[other] * (squares + sums[size, 4] + both)
                fall = below * part * (squares + sums[size, 3] + sums[place, 2] - sums[place, 3])
                for other in range(stop, last):
                    cells[_cell(code, item[other], cells_from)] += fall * share[other]
                    if other + 1 < last and not tied[other + 1]:
                        fall *= rest[other]
            squares = (squares + sums[size, 2]) * below * below
            start = stop
