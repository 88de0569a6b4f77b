"""Where a random walk on pairs settles: the shares of time at which as much arrives at an item as leaves it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....kernels.laplacian import Product
from ....kernels.segments import segment_sums
from ....protocols import Bools, Counts, Floats, Ints
from .krylov import minimal_residual
from .links import link_product

_AT_ONCE = 30
_CAREFUL = 0.3
_LONGEST_STEP = 4.0

_MOST_WORK = 2e10
"""Operations that factorising the equations may take."""

_MOST_FACTORISED = 5
_FARTHEST = 500.0


class Walk(NamedTuple):
    """Pairs in compressed rows with the rate ``up`` to the lower item and ``down`` to the other, (n_pairs,), above 0.

    ``group`` (n_items,) is the lowest item that an item is connected with.
    """

    starts: Counts
    second: Ints
    up: Floats
    down: Floats
    group: Ints

    @property
    def degree(self) -> Counts:
        """Number of pairs that each item is in."""
        return np.diff(self.starts) + np.bincount(self.second, minlength=len(self.group))


def settle(walk: Walk, centred: Product, *, tol: float, max_iter: int) -> tuple[Floats, int, float]:
    """Return the logarithm of the shares, (n_items,), the number of products taken, and the largest excess.

    The excess of an item is what arrives there less what leaves it, as a share of that; ``tol`` is what it may be.
    ``centred`` takes the mean of each group off a vector, which the walk leaves free. Products come first; where
    ``max_iter`` of them are not enough the equations are factorised, unless that would take too long.
    """
    scores, n_iter, worst = _by_products(walk, centred, tol, max_iter)
    if worst > tol:
        found, excess = _by_factors(walk, centred, tol)
        scores, worst = (found, excess) if excess < worst else (scores, worst)
    return scores, n_iter, worst


def _by_products(walk: Walk, centred: Product, tol: float, max_iter: int) -> tuple[Floats, int, float]:
    """Scores by minimal residuals, which takes few products where the walk soon forgets where it began."""
    arriving = link_product(walk.starts, walk.second, walk.up, walk.down)
    ones, met = np.ones(len(walk.group)), walk.degree > 0
    leaving = np.where(met, link_product(walk.starts, walk.second, walk.down, walk.up)(ones), 1.0)
    scores, n_iter = centred(np.log(np.where(met, arriving(ones) / leaving, 1.0))), 2
    while True:
        at = np.exp(scores)
        scale = leaving * at
        excess = np.where(met, arriving(at) / scale - 1.0, 0.0)
        worst, n_iter = float(np.max(np.abs(excess), initial=0.0)), n_iter + 1
        if worst <= tol or n_iter + 2 > max_iter:
            return scores, n_iter, worst

        def missing(part: Floats, at: Floats = at, scale: Floats = scale) -> Floats:
            return part - arriving(at * part) / scale

        most = min(_AT_ONCE, max_iter - n_iter - 1)
        step, n_taken = minimal_residual(missing, excess, accuracy=_CAREFUL * tol / worst, most=most)
        # a solution that was cut short may be far off, or even negative
        factor = np.clip(1.0 + step, np.exp(-_LONGEST_STEP), np.exp(_LONGEST_STEP))
        scores, n_iter = centred(scores + np.log(factor)), n_iter + n_taken


def _by_factors(walk: Walk, centred: Product, tol: float) -> tuple[Floats, float]:
    """Scores by elimination, begun with those that fit the log odds of the pairs best; none where it takes too long.

    Only differences between neighbours are ever exponentials, so that scores may lie any distance apart.
    """
    n, met = len(walk.group), walk.degree > 0
    first, second = np.repeat(np.arange(n), np.diff(walk.starts)), walk.second
    place, width = _narrow(first, second, n)
    if n * float(width) ** 2 > _MOST_WORK:
        return np.zeros(n), np.inf
    ones, odds = np.ones(len(second)), np.log(walk.up / walk.down)
    lead = segment_sums(odds, first, None, n) - segment_sums(odds, second, None, n)
    heads = walk.group == np.arange(n)
    scores = centred(_eliminated(first, second, ones, ones, walk.degree, np.where(heads, 0.0, lead), heads, place))
    leaving = segment_sums(walk.down, first, None, n) + segment_sums(walk.up, second, None, n)
    best, least = scores, np.inf
    for _ in range(_MOST_FACTORISED):
        gap = np.clip(scores[second] - scores[first], -_FARTHEST, _FARTHEST)
        up, down = walk.up * np.exp(gap), walk.down * np.exp(-gap)
        arriving = segment_sums(up, first, None, n) + segment_sums(down, second, None, n)
        worst = float(np.max(np.abs(arriving[met] / leaving[met] - 1.0), initial=0.0))
        if not worst < least:
            break
        best, least, heads = scores, worst, _highest(scores, walk.group)
        if least <= tol:
            break
        factor = _eliminated(first, second, up, down, leaving, heads.astype(np.float64), heads, place)
        if not (factor > 0.0).all():
            break
        scores = centred(scores + np.log(factor))
    return best, least


def _narrow(first: Counts, second: Ints, n: int) -> tuple[Counts, int]:
    """Place of each item in an order that keeps pairs close together, and how far apart they are at most."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    ones = np.ones(2 * len(first), np.int8)
    graph = csr_array((ones, (np.concatenate([first, second]), np.concatenate([second, first]))), (n, n))
    place = np.empty(n, np.int64)
    place[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(n)
    return place, int(np.max(np.abs(place[first] - place[second]), initial=0))


def _highest(scores: Floats, group: Ints) -> Bools:
    """One item of each group where the walker is most of the time; measured by a rare one the others would be lost."""
    order = np.lexsort((-scores, group))
    heads = np.zeros(len(group), bool)
    heads[order[np.diff(group[order], prepend=-1) > 0]] = True
    return heads


def _eliminated(
    first: Counts, second: Ints, up: Floats, down: Floats, diagonal: Floats | Counts, right: Floats, heads: Bools,
    place: Counts,
) -> Floats:  # fmt: skip
    """Solve for a value of each item: the diagonal times it, less the rates times its neighbours', is the right side.

    The heads, one of each group, are given by the right side alone; ``place`` says in which order to eliminate.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    n, rows, columns = len(heads), np.concatenate([first, second]), np.concatenate([second, first])
    free = ~heads[rows]
    rows, columns, rates = rows[free], columns[free], np.concatenate([up, down])[free]
    values = np.append(-rates, np.where(heads, 1.0, diagonal))
    table = csc_array((values, (np.append(place[rows], place), np.append(place[columns], place))), (n, n))
    ordered = np.empty(n)
    ordered[place] = right
    solution: Floats = splu(table, permc_spec="NATURAL").solve(ordered)[place]
    return solution
