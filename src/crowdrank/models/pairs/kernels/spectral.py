"""Spectral scores of compared items: the stationary distribution of a random walk, and leading singular vectors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....kernels.laplacian import Product, link_product
from ....kernels.segments import segment_sums
from ....protocols import Bools, Counts, Floats, Ints

_MIN_LENGTH = 1e-300
_MIN_RELATIVE_LENGTH = 1e-13
_MAX_BASIS = 30
_ACCURACY_MARGIN = 0.3
_MAX_LOG_STEP = 4.0

_MAX_FACTOR_OPERATIONS = 2e10
"""Operations that factorising the equations may take."""

_MAX_FACTORISATIONS = 5
_MAX_LOG_GAP = 500.0


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


def stationary_log_shares(walk: Walk, centred: Product, *, tol: float, max_iter: int) -> tuple[Floats, int, float]:
    """Return the logarithm of the shares, (n_items,), the number of products taken, and the largest excess.

    The excess of an item is what arrives there less what leaves it, as a share of that; ``tol`` is what it may be.
    ``centred`` takes the mean of each group off a vector, which the walk leaves free. Products come first; where
    ``max_iter`` of them are not enough the equations are factorised, unless that would take too long.
    """
    scores, n_iter, worst = _solve_by_products(walk, centred, tol, max_iter)
    if worst > tol:
        factored, excess = _solve_by_factors(walk, centred, tol)
        scores, worst = (factored, excess) if excess < worst else (scores, worst)
    return scores, n_iter, worst


def _solve_by_products(walk: Walk, centred: Product, tol: float, max_iter: int) -> tuple[Floats, int, float]:
    """Scores by minimal residuals, which takes few products where the walk mixes fast."""
    from scipy.sparse.linalg import LinearOperator, gmres

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

        residuals: list[float] = []
        step, _ = gmres(
            LinearOperator((len(at), len(at)), matvec=missing, dtype=np.float64), excess, atol=0.0,
            rtol=_ACCURACY_MARGIN * tol / worst, restart=min(_MAX_BASIS, max_iter - n_iter - 1), maxiter=1,
            callback=residuals.append, callback_type="pr_norm",
        )  # fmt: skip
        # a solution that was cut short may be far off, or even negative
        factor = np.clip(1.0 + step, np.exp(-_MAX_LOG_STEP), np.exp(_MAX_LOG_STEP))
        scores, n_iter = centred(scores + np.log(factor)), n_iter + len(residuals)


def _solve_by_factors(walk: Walk, centred: Product, tol: float) -> tuple[Floats, float]:
    """Scores by elimination, from a least-squares fit of the log odds of the pairs; none where it takes too long.

    Only differences between neighbours are ever exponentials, so scores may lie any distance apart.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n, met = len(walk.group), walk.degree > 0
    first, second = np.repeat(np.arange(n), np.diff(walk.starts)), walk.second
    # an order that keeps pairs close together, and how far apart they are at most
    sides = (np.concatenate([first, second]), np.concatenate([second, first]))
    place = np.empty(n, np.int64)
    graph = csr_array((np.ones(2 * len(first), np.int8), sides), (n, n))
    place[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(n)
    width = float(np.max(np.abs(place[first] - place[second]), initial=0))
    if n * width**2 > _MAX_FACTOR_OPERATIONS:
        return np.zeros(n), np.inf
    ones, odds = np.ones(len(second)), np.log(walk.up / walk.down)
    lead = segment_sums(odds, first, None, n) - segment_sums(odds, second, None, n)
    heads = walk.group == np.arange(n)
    scores = centred(
        _solve_by_elimination(first, second, ones, ones, walk.degree, np.where(heads, 0.0, lead), heads, place)
    )
    leaving = segment_sums(walk.down, first, None, n) + segment_sums(walk.up, second, None, n)
    best, least = scores, np.inf
    for _ in range(_MAX_FACTORISATIONS):
        gap = np.clip(scores[second] - scores[first], -_MAX_LOG_GAP, _MAX_LOG_GAP)
        up, down = walk.up * np.exp(gap), walk.down * np.exp(-gap)
        arriving = segment_sums(up, first, None, n) + segment_sums(down, second, None, n)
        worst = float(np.max(np.abs(arriving[met] / leaving[met] - 1.0), initial=0.0))
        if not worst < least:
            break
        best, least = scores, worst
        if least <= tol:
            break
        # one item of each group where the walker is most of the time; measured by a rare one the others would be lost
        order, heads = np.lexsort((-scores, walk.group)), np.zeros(n, bool)
        heads[order[np.diff(walk.group[order], prepend=-1) > 0]] = True
        factor = _solve_by_elimination(first, second, up, down, leaving, heads.astype(np.float64), heads, place)
        if not (factor > 0.0).all():
            break
        scores = centred(scores + np.log(factor))
    return best, least


def _solve_by_elimination(
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
    return splu(table, permc_spec="NATURAL").solve(ordered)[place]


def leading_vectors(
    product: Product, start: Floats, group: Ints, *, tol: float, max_iter: int
) -> tuple[Floats, int, float]:
    """Return the eigenvector of the largest eigenvalue of each block of a positive matrix that the start leads to.

    The blocks are the groups of equal numbers in ``group`` (n,); the start (n,) may be zero in some of them, which then
    have no vector. Each step takes the best mix of the present vector, its residual and the last step in each block,
    the locally optimal conjugate gradient method [Knyazev01]_. ``eigsh`` of scipy would return any vector of an
    eigenvalue that is double, as here, and takes 12 times as long for 500 blocks of 20. Returns the vectors as one
    (n,), each of length 1, with the number of steps and the largest residual relative to its eigenvalue.
    """
    blocks = _Blocks(group)
    here = blocks.unit(start)
    image, last, last_image = product(here), np.zeros(len(start)), np.zeros(len(start))
    rising, worst, n_iter = blocks.sums(here, here) > 0.0, np.inf, 0
    while n_iter < max_iter:
        n_iter += 1
        value = blocks.sums(here, image)
        rest = image - value[group] * here
        relative = np.divide(blocks.lengths(rest), value, out=np.zeros(len(value)), where=value > 0.0)
        rising, worst = rising & (relative > tol), float(np.max(relative, initial=0.0))
        if not rising.any():
            break
        for _ in range(2):
            rest = rest - blocks.sums(here, rest)[group] * here - blocks.sums(last, rest)[group] * last
            rest = blocks.unit(rest, rising)
        parts, images = (here, rest, last * rising[group]), (image, product(rest), last_image * rising[group])
        table = np.array([[blocks.sums(one, other) for other in images] for one in parts])
        # shares of the three parts, (3, n_blocks), in the direction of the largest eigenvalue of each (3, 3) table
        table = 0.5 * (table + table.transpose(1, 0, 2))
        shares: Floats = np.linalg.eigh(table.transpose(2, 0, 1))[1][:, :, -1].T
        mix = (shares * np.where(shares[0] < 0, -1.0, 1.0))[:, group]
        along, along_image = (mix[1] * three[1] + mix[2] * three[2] for three in (parts, images))
        here, image = mix[0] * here + along, mix[0] * image + along_image
        overlap = blocks.sums(here, along)[group]
        last, last_image = along - overlap * here, along_image - overlap * image
        scale = blocks.reciprocal(last)[group]
        last, last_image = scale * last, scale * last_image
    return here, n_iter, worst


class _Blocks:
    """Inner products and lengths of vectors (n,) in each block, (n_blocks,)."""

    def __init__(self, group: Ints) -> None:
        self.group, self.number = group, int(group.max(initial=-1)) + 1

    def sums(self, first: Floats, other: Floats) -> Floats:
        """Inner products."""
        return segment_sums(first * other, self.group, None, self.number)

    def lengths(self, vector: Floats) -> Floats:
        """Lengths."""
        return np.sqrt(self.sums(vector, vector))

    def reciprocal(self, vector: Floats) -> Floats:
        """One by the length, 0 where there is nothing but rounding."""
        lengths = self.lengths(vector)
        return np.divide(1.0, lengths, out=np.zeros(self.number), where=lengths > _MIN_RELATIVE_LENGTH)

    def unit(self, vector: Floats, use: Bools | None = None) -> Floats:
        """The vector with length 1 in each block, 0 in those not used."""
        lengths = self.lengths(vector)
        wanted = lengths > 0.0 if use is None else use
        return vector * np.where(wanted, 1.0 / np.maximum(lengths, _MIN_LENGTH), 0.0)[self.group]
