"""Graph Laplacians of compared pairs: products, systems and inverses.

The matrix is always the Laplacian with weight ``bend`` on each pair, in the compressed rows of
:mod:`~crowdrank.kernels.pairs`, plus ``ridge`` on the diagonal. Its inverse on scores that are centred in each query is
their covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeAlias

import numpy as np
from numba import njit

from ..protocols import Counts, Floats, Ints
from .threads import bind, dot, one_blas_thread, pair_bounds, read_only, sum_over_bounds, views

_FLATTEST = 1e-4
# threshold (equal): items whose matrix is solved as a whole with covariates
_LARGEST_WHOLE = 2000
_LARGEST_IN_ONE_THREAD = 1000
# threshold (equal): unknowns of a Newton step that are solved as a whole matrix
_SMALL_SYSTEM = 300
_LEAST_EIGENVALUE = 1e-14
_NOTHING = 1e-300
_LONGEST_STEP = 8.0
# threshold (equal): items of a query whose matrix is inverted at once, Bradley-Terry
_SMALL_ITEMS = 64
_ACCURACY_OF_PROBES = 1e-2
_ERROR_OF_ROOTS = 5e-3
_FEWEST_PROBES, _MOST_PROBES = 4, 64


Product: TypeAlias = Callable[[Floats], Floats]
Products: TypeAlias = Callable[[Floats], Floats]
"""Multiply a matrix with a vector, and with the columns of an (n_items, n) array."""

_MOST_STEPS = 2000


def link_product(starts: Counts, second: Ints, up: Floats, down: Floats) -> Product:
    """Return the function that sums over each item's neighbours the vector there times the weight of the link.

    ``up`` (n_pairs,) weighs what the lower item of a pair gets from the other, ``down`` what the other gets from it.
    """
    links, bounds = views(starts, second, up, down), pair_bounds(starts)

    def product(vector: Floats) -> Floats:
        return sum_over_bounds(bind(_add_links, *links, read_only(vector)), bounds, len(vector))[0]

    return product


@njit(cache=True, nogil=True)
def _add_links(starts, second, up, down, vector, begin, end, sums):
    """Add to each item, (n_items,), the vector at its neighbours times the weight of the link."""
    for i in range(begin, end):
        value, received = vector[i], 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            received += up[pair] * vector[j]
            sums[j] += down[pair] * value
        sums[i] += received


def laplacian_product(starts: Counts, second: Ints, bend: Floats, diagonal: Floats) -> Product:
    """Return the function that multiplies the matrix with a vector; ``diagonal`` is that of the whole matrix."""
    neighbours = link_product(starts, second, bend, bend)
    return lambda vector: diagonal * vector - neighbours(vector)


def laplacian_products(starts: Counts, second: Ints, bend: Floats, diagonal: Floats) -> Products:
    """Return the function that multiplies the matrix with columns side by side, in one pass over the pairs."""
    pairs, bounds = views(starts, second, bend), pair_bounds(starts)

    def products(columns: Floats) -> Floats:
        add = bind(_add_neighbours, *pairs, read_only(columns))
        return diagonal[:, None] * columns - sum_over_bounds(add, bounds, columns.shape)[0]

    return products


@njit(cache=True, nogil=True)
def _add_neighbours(starts, second, bend, columns, begin, end, neighbours):
    """Add to each item the columns at its neighbours times the weight of the pair."""
    own = np.empty(columns.shape[1])
    for i in range(begin, end):
        own[:] = 0.0
        for pair in range(starts[i], starts[i + 1]):
            j, weight = second[pair], bend[pair]
            for m in range(own.size):
                own[m] += weight * columns[j, m]
                neighbours[j, m] += weight * columns[i, m]
        for m in range(own.size):
            neighbours[i, m] += own[m]


def conjugate_gradient(
    product: Product, diagonal: Floats, right: Floats, *, accuracy: float, max_iter: int = _MOST_STEPS,
    onwards: bool = False,
) -> tuple[Floats, bool]:  # fmt: skip
    """Solve ``A x = right`` (n,), ``A`` positive definite, by conjugate gradients preconditioned with its diagonal.

    Stops when the residual, in the norm that the diagonal gives, has fallen to ``accuracy`` times its start. Each
    iterate leads upwards from zero, so a solution cut short is still a direction of ascent; it is cut short, too,
    where ``A`` turns out not to be positive definite, or goes ``onwards`` there, as far as if it were. Returns also
    whether it was not cut short by ``max_iter``.
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    scaled = residual / diagonal
    along = scaled.copy()
    energy = dot(residual, scaled)
    goal = accuracy**2 * energy
    for _ in range(max_iter):
        if energy <= goal:
            break
        image = product(along)
        bent = dot(along, image)
        if bent <= 0.0 and onwards:
            return solution + energy / max(-bent, _FLATTEST * energy) * along, True
        if bent <= 0.0:
            return solution if solution.any() else along, True
        length = energy / bent
        solution += length * along
        residual -= length * image
        scaled = residual / diagonal
        energy, before = dot(residual, scaled), energy
        along *= energy / before
        along += scaled
    return solution, energy <= goal


def newton_step(
    product: Product,
    diagonal: Floats,
    gradient: Floats,
    *,
    tol: float,
    longest: float = _LONGEST_STEP,
    onwards: bool = False,
) -> Floats:
    """Return the solution of ``A step = gradient``, see :func:`conjugate_gradient`, as exact as a step need be.

    The longer the step, the less exact it need be for the error to be squared, down to well below the tolerance ``tol``
    of steps. No entry is longer than ``longest``; 8 is far where scores are log odds.
    """
    length = float(np.max(np.abs(gradient / diagonal), initial=0.0))
    accuracy = min(0.1, max(length, 1e-3 * tol / max(length, tol)))
    small = len(gradient) <= _SMALL_SYSTEM
    # in exact arithmetic as many steps as unknowns would do; with weights of very different size they do not
    most = 2 * len(gradient) + 20 if small else _MOST_STEPS
    step, met = conjugate_gradient(product, diagonal, gradient, accuracy=accuracy, max_iter=most, onwards=onwards)
    if small and not met:
        # the whole matrix; where that is not positive, its absolute value
        largest = float(diagonal[np.isfinite(diagonal)].max(initial=_NOTHING))
        root = 1.0 / np.sqrt(np.maximum(diagonal, _LEAST_EIGENVALUE * largest))
        matrix = np.stack([product(root * unit) for unit in np.eye(len(gradient))], axis=1) * root[:, None]
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        least = _LEAST_EIGENVALUE * float(np.abs(values).max(initial=_NOTHING))
        step = root * (vectors @ ((vectors.T @ (root * gradient)) / np.maximum(np.abs(values), least)))
    return step * min(1.0, longest / float(np.max(np.abs(step), initial=1.0)))


def solve_together(product: Product, diagonal: Floats, right: Floats, *, accuracy: float) -> Floats:
    """Solve ``A x = right`` for each column of (n, m) by conjugate gradients, as one would alone.

    As :func:`conjugate_gradient`; a column that has met its accuracy rests. ``diagonal`` is (n, 1) where the columns
    share one matrix, else (n, m).
    """
    solution, residual = np.zeros_like(right), right.copy()
    scaled = residual / diagonal
    along = scaled.copy()
    energy = _dots(residual, scaled)
    goal = accuracy**2 * energy
    for _ in range(_MOST_STEPS):
        moving = energy > goal
        if not moving.any():
            break
        image = product(along)
        length = np.divide(energy, _dots(along, image), out=np.zeros_like(energy), where=moving)
        solution += length * along
        residual -= length * image
        scaled = residual / diagonal
        energy, before = np.where(moving, _dots(residual, scaled), energy), energy
        along = scaled + np.divide(energy, before, out=np.zeros_like(energy), where=moving) * along
    return solution


def solve_columns(starts: Counts, second: Ints, bend: Floats, diagonal: Floats, right: Floats) -> Floats:
    """Solve ``A x = right`` for each column of (n, m), with ``A`` as in :func:`laplacian_product`."""
    n = len(diagonal)
    if n <= _LARGEST_WHOLE:
        from scipy.linalg import cho_factor, cho_solve

        matrix = np.zeros((n, n))
        first = np.repeat(np.arange(n), np.diff(starts))
        matrix[first, second] = matrix[second, first] = -bend
        matrix[np.arange(n), np.arange(n)] = diagonal
        # threads that wait by spinning take a core from the passes over judgments in between
        with one_blas_thread() if n <= _LARGEST_IN_ONE_THREAD else nullcontext():
            factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
            solved: Floats = cho_solve(factor, right, check_finite=False)
        return solved
    product = laplacian_product(starts, second, bend, diagonal)
    columns = [conjugate_gradient(product, diagonal, c, accuracy=1e-11)[0] for c in np.ascontiguousarray(right.T)]
    return np.column_stack(columns)


def _dots(first: Floats, second: Floats) -> Floats:
    """Inner product of each column with its own."""
    return np.einsum("ik,ik->k", first, second)


def centred_inverses(
    starts: Counts,
    second: Ints,
    bend: Floats,
    degree: Floats,
    ridge: float,
    offsets: Counts,
    queries: Counts,
    less: Floats | None = None,
) -> Floats:
    """Return the inverse on centred scores of equally large queries, (n of ``queries``, size, size).

    ``less`` of the same shape, whose rows sum to 0, is taken off the matrices first; where that leaves one that is not
    positive definite, its inverse is NaN.
    """
    size = int(offsets[queries[0] + 1] - offsets[queries[0]])
    items = offsets[queries][:, None] + np.arange(size)
    lengths = (starts[items + 1] - starts[items]).ravel()
    skipped = starts[items].ravel() - np.cumsum(lengths) + lengths
    pair = np.repeat(skipped, lengths) + np.arange(lengths.sum())
    matrix = np.zeros((len(queries), size, size))
    base = np.arange(items.size) * size - np.repeat(items[:, 0], size)
    matrix.reshape(-1)[np.repeat(base, lengths) + second[pair]] = -bend[pair]
    # a ridge below rounding would not make the matrix of unconnected groups invertible
    ridge = max(ridge, 1e-12 * float(degree[items].max()))
    diagonal = degree[items] + ridge
    matrix[:, np.arange(size), np.arange(size)] = diagonal
    lift = diagonal.mean(axis=1)
    # the constant direction has the ridge only; lifted to the mean of the others, it is taken out without loss
    matrix += (lift / size)[:, None, None]
    excess = 1.0 / (size * (ridge + lift))
    if less is not None:
        matrix -= less
    if size <= _SMALL_ITEMS:
        whole = np.triu(matrix) + np.triu(matrix, 1).transpose(0, 2, 1)
        if less is not None:
            try:
                np.linalg.cholesky(whole)
            except np.linalg.LinAlgError:
                whole[[np.linalg.eigvalsh(one)[0] <= 0.0 for one in whole]] = np.nan
        return np.linalg.inv(whole) - excess[:, None, None]
    from scipy.linalg.lapack import dpotrf, dpotri

    with one_blas_thread():
        for number in range(len(queries)):
            # the upper triangle of rows is the lower triangle of columns, which is how LAPACK reads it, without a copy
            factor, failed = dpotrf(matrix[number].T, lower=1, overwrite_a=1)
            inverse = dpotri(factor, lower=1, overwrite_c=1)[0]
            matrix[number] = np.tril(inverse) + np.tril(inverse, -1).T - excess[number]
            if failed and less is not None:
                matrix[number] = np.nan
    return matrix


def centred_inverse_diagonal(product: Product, diagonal: Floats, offsets: Counts) -> Floats:
    """Estimate the diagonal (n_items,) of the inverse on centred scores from products with random signs [Bekas07]_.

    The inverse is compared with its two-term series, whose diagonal is known, so only longer paths between items
    are left to chance. Probes are added until the square roots are known to half a per cent (root mean square), at
    most 64; the estimate never falls below the reciprocal of the diagonal. ``offsets`` bound the queries' items.
    """
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    sizes = np.maximum(np.diff(offsets), 1)

    def series(vector: Floats) -> Floats:
        return (2 * vector - product(vector / diagonal)) / diagonal

    known = 1 / diagonal - series(np.ones(len(diagonal))) / sizes[query]
    least = (1 - 1 / sizes[query]) / diagonal
    sums, squares = np.zeros(len(diagonal)), np.zeros(len(diagonal))
    for number in range(1, _MOST_PROBES + 1):
        signs = rng.choice([-1.0, 1.0], len(diagonal))
        centred = signs - (np.bincount(query, signs, len(sizes)) / sizes)[query]
        solution = conjugate_gradient(product, diagonal, centred, accuracy=_ACCURACY_OF_PROBES)[0]
        chance = signs * (solution - series(centred))
        sums, squares = sums + chance, squares + chance**2
        estimate = np.maximum(known + sums / number, least)
        if number >= _FEWEST_PROBES:
            variance = np.maximum(squares / number - (sums / number) ** 2, 0.0) / (number - 1)
            relative = np.divide(variance, estimate**2, out=np.zeros(len(diagonal)), where=estimate > 0)
            if 0.25 * relative.mean() <= _ERROR_OF_ROOTS**2:
                break
    return estimate


def probed_diagonal(
    products: Products,
    diagonal: Floats,
    offsets: Counts | None,
    *,
    n_probes: int,
    along: Floats | None = None,
    plain: Products | None = None,
) -> Floats:
    """Estimate the diagonal (n_items,) of the inverse on centred scores, see [Bekas07]_.

    ``products`` multiplies the matrix, whose own diagonal is ``diagonal``, with the columns of (n_items, n) arrays;
    ``offsets`` bound the items of each query, or are ``None`` where scores are not centred. As in
    :func:`centred_inverse_diagonal`, the inverse is compared with its two-term series,
    that of the matrix ``plain`` if there is one, which then has the diagonal. ``along`` (n_items,), centred, is a
    direction in which the inverse is large; its part is not left to chance.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (n_probes, len(diagonal))).T.copy()
    centred, scale, share = signs, diagonal[:, None], np.zeros(len(diagonal))
    if offsets is not None:
        query, sizes = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), np.maximum(np.diff(offsets), 1)
        means = np.stack([np.bincount(query, column, len(sizes)) / sizes for column in signs.T], axis=1)
        centred, share = signs - means[query], 1.0 / sizes[query]

    def series(columns: Floats) -> Floats:
        return (2 * columns - (plain or products)(columns / scale)) / scale

    certain = np.zeros((len(diagonal), 1))
    if along is not None and along.any():
        certain = along[:, None] / np.sqrt(along @ products(along[:, None])[:, 0])
    known = 1 / diagonal - series(np.ones((len(diagonal), 1)))[:, 0] * share + certain[:, 0] ** 2
    solution = solve_together(products, diagonal[:, None], centred, accuracy=_ACCURACY_OF_PROBES)
    chance = signs * (solution - series(centred) - certain * (certain[:, 0] @ centred))
    return np.maximum(known + chance.mean(axis=1), (1 - share) / diagonal)
