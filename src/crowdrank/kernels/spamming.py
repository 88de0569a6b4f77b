"""One pass of the spamming model over grades by item: the levels of items, and how often annotators hit them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..protocols import Floats, Ints
from .item_rows import ItemRows, on_grid
from .threads import over_bounds, read_only, total

_ROUND = 1.5 * 2.0**20
"""A number added and taken off again leaves a multiple of the grid, 2 ** -32."""


class SpamPass(NamedTuple):
    """What a pass finds.

    Parameters
    ----------
    log_likelihood
        Logarithm of the items' marginal likelihood, up to what the ``gain`` left out.
    matched
        Expected weight of each annotator's grades at each level that are the item's true level, (n_annotators,
        n_levels).
    shares
        Expected number of graded items of each level, (n_levels,).
    """

    log_likelihood: float
    matched: Floats
    shares: Floats


def spam_pass(
    rows: ItemRows, cells: NDArray[np.uint32], gain: Floats, log_prior: Floats, known: Ints, probabilities: Floats
) -> SpamPass:
    """Fill in the probability of each level for each graded item, (n_items, n_levels), and sum up over the rows.

    ``cells`` is ``rows.cells(n_levels)``. ``gain`` (n_annotators, n_levels) is the logarithm of how much likelier the annotator gives a level where it is the
    true one than elsewhere; ``log_prior`` (n_levels,); ``known`` (n_items,) is a level or -1.
    """
    n_annotators, n_levels = gain.shape
    gains, log_shares, clamp = read_only(on_grid(gain).ravel()), read_only(on_grid(log_prior)), read_only(known)

    def work(begin: int, end: int) -> Floats:
        sums = np.zeros(n_annotators * n_levels + n_levels + 1)
        _spam_pass(rows.starts, cells, rows.level, rows.weight, gains, log_shares, clamp, begin, end, probabilities, sums)
        return sums

    sums = total(over_bounds(work, rows.bounds))
    n_cells = n_annotators * n_levels
    return SpamPass(float(sums[-1]), sums[:n_cells].reshape(n_annotators, n_levels), sums[n_cells:-1])


@njit(cache=True, nogil=True)
def _spam_pass(
    starts: Any, cell: Any, level: Any, weight: Any, gain: Any, log_prior: Any, known: Any, begin: int, end: int,
    probabilities: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Fill probabilities of items begin to end; add matched, shares and log-likelihood to sums, one after the other."""
    n_levels = log_prior.size
    weighted = weight.size > 0
    after = gain.size
    found = np.empty(n_levels)
    likelihood = 0.0
    for i in range(begin, end):
        first, last = starts[i], starts[i + 1]
        if first == last:
            continue
        for k in range(n_levels):
            found[k] = log_prior[k]
        for row in range(first, last):
            found[level[row]] += weight[row] * gain[cell[row]] if weighted else gain[cell[row]]
        fixed = known[i]
        if fixed >= 0:
            likelihood += found[fixed]
            for k in range(n_levels):
                found[k] = 1.0 if k == fixed else 0.0
                probabilities[i, k] = found[k]
        else:
            top = found[0]
            for k in range(1, n_levels):
                top = max(top, found[k])
            norm = 0.0
            for k in range(n_levels):
                found[k] = np.exp(found[k] - top)
                norm += found[k]
            likelihood += (top + np.log(norm) + _ROUND) - _ROUND
            for k in range(n_levels):
                probabilities[i, k] = found[k] / norm
                found[k] = (probabilities[i, k] + _ROUND) - _ROUND
        for row in range(first, last):
            sums[cell[row]] += weight[row] * found[level[row]] if weighted else found[level[row]]
        for k in range(n_levels):
            sums[after + k] += found[k]
    sums[after + n_levels] += likelihood
