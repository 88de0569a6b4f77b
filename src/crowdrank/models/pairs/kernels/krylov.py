"""Linear systems and leading eigenvectors by products alone, so that memory grows with the vectors; numpy only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....kernels.laplacian import Product
from ....kernels.segments import segment_sums
from ....kernels.threads import dot
from ....protocols import Bools, Floats, Ints

_NOTHING = 1e-300
_ALL_BUT_DONE = 1e-13


def minimal_residual(product: Product, right: Floats, *, accuracy: float, most: int) -> tuple[Floats, int]:
    """Solve ``A x = right`` (n,) for any square ``A`` by the generalised minimal residual method [Saad86]_.

    Returns the solution and the number of products taken: at most ``most``, fewer when the residual has fallen to
    ``accuracy`` times its start. A singular ``A`` will do where there is a solution.
    """
    size = dot(right, right) ** 0.5
    basis, columns = [right / max(size, _NOTHING)], np.zeros((most + 1, most))
    goal, number = np.zeros(most + 1), 0
    goal[0] = size
    shares: Any = np.zeros(0)
    while number < most and size > 0.0:
        image = product(basis[number])
        for row, past in enumerate(basis):
            columns[row, number] = dot(past, image)
            image -= columns[row, number] * past
        length = dot(image, image) ** 0.5
        columns[number + 1, number] = length
        number += 1
        table = columns[: number + 1, :number]
        shares = np.linalg.lstsq(table, goal[: number + 1], rcond=None)[0]
        left = float(np.linalg.norm(table @ shares - goal[: number + 1]))
        if left <= accuracy * size or length <= _ALL_BUT_DONE * float(np.abs(table).max()):
            break
        basis.append(image / length)
    solution = np.zeros_like(right)
    for share, past in zip(shares, basis, strict=False):
        solution += share * past
    return solution, number


def leading_vectors(
    product: Product, start: Floats, group: Ints, *, tol: float, max_iter: int
) -> tuple[Floats, int, float]:
    """Return the eigenvector of the largest eigenvalue of each block of a positive matrix, as seen from a start.

    The blocks are the groups of equal numbers in ``group`` (n,); the start (n,) may be zero in some of them, which then
    have no vector. Each step finds the best mix of the present vector, its residual and the last step in each block,
    the locally optimal conjugate gradient method [Knyazev01]_. Returns the vectors as one (n,), each of length 1, with
    the number of steps and the largest residual relative to its eigenvalue.
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
        mix = _best_mix(np.array([[blocks.sums(one, other) for other in images] for one in parts]))[:, group]
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
        return np.divide(1.0, lengths, out=np.zeros(self.number), where=lengths > _ALL_BUT_DONE)

    def unit(self, vector: Floats, use: Bools | None = None) -> Floats:
        """The vector with length 1 in each block, 0 in those not used."""
        lengths = self.lengths(vector)
        wanted = lengths > 0.0 if use is None else use
        scaled: Floats = vector * np.where(wanted, 1.0 / np.maximum(lengths, _NOTHING), 0.0)[self.group]
        return scaled


def _best_mix(table: Floats) -> Floats:
    """Shares of the three parts, (3, n_blocks), in the direction of the largest eigenvalue of each (3, 3) table."""
    table = 0.5 * (table + table.transpose(1, 0, 2))
    shares: Floats = np.linalg.eigh(table.transpose(2, 0, 1))[1][:, :, -1].T
    return shares * np.where(shares[0] < 0, -1.0, 1.0)
