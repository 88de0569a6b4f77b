"""What grades say of the difficulty of items: one pass over all of them.

The predictor and the cuts of an item of difficulty ``z`` are multiplied by ``exp(-z)``: the larger it is, the more
answers differ for no other reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ....kernels.threads import over_bounds, read_only
from ....protocols import Floats
from .ordinal import Cells, ResponseModel, kernel_arguments

_MIN_PROBABILITY = 1e-12


def difficulty_pass(cells: Cells, model: ResponseModel, gap: Floats, variance: Floats) -> Floats:
    """Return what judgments say of the difficulty of each graded item, (3, n_cells).

    That is the gradient in it, the curvature, and the curvature in score and difficulty, averaged over what is not
    known of the predictor at two points, a standard deviation above and below its mean. Arguments are those of
    :func:`~.ordinal.item_pass`.
    """
    slopes = np.zeros((3, len(gap)))
    arguments: Any = (*cells[2:6], *kernel_arguments(model), read_only(gap), read_only(variance))

    def work(begin: int, end: int) -> None:
        everything: list[Any] = [*arguments, begin, end, slopes]
        _fill_difficulty_slopes(*everything)

    over_bounds(work, cells.parts)
    return slopes


@njit(cache=True, nogil=True)
def _fill_difficulty_slopes(
    bounds: Any, annotator_side: Any, level: Any, weight: Any, own: Any, favourites: Any, centre: float, cuts: Any,
    shifts: Any, clarity: Any, gap: Any, variance: Any, begin: int, end: int, slopes: Any,
) -> None:  # fmt: skip
    """Fill in the slopes of cells begin to end, which are single items."""
    for cell in range(begin, end):
        d, of_gap = gap[cell], variance[cell]
        clear = clarity[cell] if clarity.size else 1.0
        for row in range(bounds[cell], bounds[cell + 1]):
            a, y = annotator_side[row] >> 2, level[row]
            spread = own[a, 1] * of_gap + d * (own[a, 2] * d + own[a, 3]) + own[a, 4]
            amount, lapse = weight[row] if weight.size else 1.0, own[a, 7]
            for side in (-1.0, 1.0):
                eta = own[a, 0] * d + own[a, 5] + side * np.sqrt(max(spread, 0.0))
                slope, curve, cross, seen = _difficulty_slopes(eta, own[a, 6], centre, cuts, y, clear)
                rho = 0.5 * amount
                if lapse > 0.0:
                    seen *= 1.0 - lapse
                    rho *= seen / (seen + lapse * favourites[a, y])
                slopes[0, cell] += rho * slope
                slopes[1, cell] += rho * curve
                slopes[2, cell] += rho * own[a, 0] * clear * cross


@njit(cache=True, nogil=True)
def _difficulty_slopes(eta: float, stretch: float, centre: float, cuts: Any, level: int, clear: float) -> Any:
    """Slope and curvature of a level's log-probability in the difficulty, that with the predictor; the probability."""
    upper, lower, high, low = 1.0, 0.0, 0.0, 0.0
    if level < cuts.size:
        high = clear * (centre + stretch * cuts[level] - eta)
        upper = 1.0 / (1.0 + np.exp(-high))
    if level > 0:
        low = clear * (centre + stretch * cuts[level - 1] - eta)
        lower = 1.0 / (1.0 + np.exp(-low))
    at, below = high * upper * (1.0 - upper), low * lower * (1.0 - lower)
    probability = max(upper - lower, _MIN_PROBABILITY)
    slope = (below - at) / probability
    turn = at * (1.0 + high * (1.0 - 2.0 * upper)) - below * (1.0 + low * (1.0 - 2.0 * lower))
    return slope, slope * slope - turn / probability, upper + lower - 1.0 + at + below, probability
