"""One pass of the spamming model over grades by item: the levels of items, and how often annotators hit them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..protocols import Floats, Ints
from .confusion import PackedGrades
from .threads import even_bounds, over_bounds, read_only, total

_ROUND = 1.5 * 2.0**20
"""Added and taken off again it leaves multiples of 2 ** -32, sums of which below two million are exact in any order."""

_LARGEST = 640.0
"""Products whose logarithm may rise above this could leave the range of numbers; they are taken as sums of logs."""

_HUGE = 1e100


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


def levels_of(grades: PackedGrades, n_levels: int) -> NDArray[np.uint8]:
    """Return the level of each row, (n,)."""
    return read_only((grades.code % np.uint32(n_levels)).astype(np.uint8))


def spam_pass(
    grades: PackedGrades,
    levels: NDArray[np.uint8],
    gain: Floats,
    log_prior: Floats,
    known: Ints,
    probabilities: Floats | None = None,
) -> SpamPass:
    """Return sums over the rows; fill in the probability of each level for each graded item where asked.

    ``levels`` (n,) are those of the rows. ``gain`` (n_annotators, n_levels), not below 0, is the logarithm of how much
    likelier the annotator gives a level where it is the true one than elsewhere; ``log_prior`` (n_levels,); ``known``
    (n_items,) is a level or -1; ``probabilities`` (n_items, n_levels).
    """
    n_annotators, n_levels = gain.shape
    n_cells = gain.size
    largest = float(gain.max(initial=0.0))
    longest = int(_LARGEST / largest) if largest > 0 else len(grades.code)
    logs, shares, clamp = read_only(gain.ravel()), read_only(log_prior), read_only(known)
    ratios, prior = read_only(np.exp(np.minimum(logs, _LARGEST))), read_only(np.exp(log_prior))
    wanted = np.empty((0, n_levels)) if probabilities is None else probabilities

    def work(begin: int, end: int) -> list[Floats]:
        found = []
        for part in range(begin, end):
            sums = np.zeros(n_cells + n_levels + 1)
            _spam_pass(
                grades.starts, grades.code, levels, grades.weight, ratios, logs, prior, shares, clamp, longest,
                grades.parts[part], grades.parts[part + 1], wanted, sums,
            )  # fmt: skip
            found.append(sums)
        return found

    threads = over_bounds(work, even_bounds(len(grades.parts) - 1, 1))
    sums = total([part for parts in threads for part in parts])
    return SpamPass(float(sums[-1]), sums[:n_cells].reshape(n_annotators, n_levels), sums[n_cells:-1])


@njit(cache=True, nogil=True)
def _spam_pass(
    starts: Any, cell: Any, level: Any, weight: Any, ratio: Any, gain: Any, prior: Any, log_prior: Any, known: Any,
    longest: int, begin: int, end: int, probabilities: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Fill probabilities of items begin to end; add matched, shares and log-likelihood to sums, one after the other."""
    n_levels, n_cells = prior.size, gain.size
    weighted, wanted = weight.size > 0, probabilities.shape[0] > 0
    found, shares = np.empty(n_levels), np.zeros(n_levels)
    likelihood, product = 0.0, 1.0
    for item in range(begin, end):
        first, last = starts[item], starts[item + 1]
        if first == last:
            continue
        if weighted or last - first > longest:
            likelihood += _summed_logs(level[first:last], cell[first:last], weight[first:last], gain, log_prior, found)
        else:
            for k in range(n_levels):
                found[k] = prior[k]
            for row in range(first, last):
                found[level[row]] *= ratio[cell[row]]
        fixed, norm = known[item], 0.0
        for k in range(n_levels):
            found[k] = 0.0 if fixed >= 0 and k != fixed else found[k]
            norm += found[k]
        # one logarithm for many items
        product *= norm
        if product > _HUGE or product < 1.0 / _HUGE:
            likelihood += np.log(product)
            product = 1.0
        for k in range(n_levels):
            found[k] /= norm
        if wanted:
            for k in range(n_levels):
                probabilities[item, k] = found[k]
        for k in range(n_levels):
            found[k] = (found[k] + _ROUND) - _ROUND
            shares[k] += found[k]
        if weighted:
            for row in range(first, last):
                sums[cell[row]] += weight[row] * found[level[row]]
        else:
            for row in range(first, last):
                sums[cell[row]] += found[level[row]]
    for k in range(n_levels):
        sums[n_cells + k] += shares[k]
    sums[n_cells + n_levels] += likelihood + np.log(product)


@njit(cache=True, nogil=True)
def _summed_logs(level: Any, cell: Any, weight: Any, gain: Any, log_prior: Any, found: Floats) -> Any:
    """Fill in the likelihood of each level, the largest being 1, and return the logarithm of what was taken out."""
    for k in range(log_prior.size):
        found[k] = log_prior[k]
    for row in range(level.size):
        found[level[row]] += weight[row] * gain[cell[row]] if weight.size else gain[cell[row]]
    top = found[0]
    for k in range(1, log_prior.size):
        top = max(top, found[k])
    for k in range(log_prior.size):
        found[k] = np.exp(found[k] - top)
    return top
