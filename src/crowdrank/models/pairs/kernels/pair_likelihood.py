"""Pairwise models of preferences, evaluated on the counts of each pair."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ....kernels.threads import dot, over_bounds, pair_bounds, read_only, total
from ....protocols import Counts, Floats, Ints


class TieModel(NamedTuple):
    """Davidson's model at one point: log-likelihood, gradient, and the curvature of the negated log-likelihood.

    The curvature in the scores is the graph Laplacian with weight ``bend`` on each pair, whose diagonal is ``degree``;
    ``cross`` (n_items,) and ``tie_bend`` are its entries for the logarithm of the tie parameter.
    """

    log_likelihood: float
    gradient: Floats
    tie_gradient: float
    bend: Floats
    degree: Floats
    cross: Floats
    tie_bend: float


def evaluate_ties(
    starts: Counts, second: Ints, margin: Floats, contests: Floats, scores: Floats, tie: float, n_ties: float
) -> TieModel:
    r"""Evaluate Davidson's model with ``tie`` parameter :math:`\nu`, which is Bradley-Terry when that is 0.

    Pairs are in compressed rows, see :mod:`~crowdrank.kernels.pairs`. ``margin`` (wins less losses of the lower item)
    and ``contests`` (wins, losses and ties, as they count) are over pairs; ``n_ties`` is the weight of all ties where
    they inform the tie parameter, else 0.
    """
    bend, strength = np.empty(len(second)), np.empty(len(second))
    # exponentials of items and not of pairs; scores are centred, so that they stay in range
    root = np.exp(0.5 * scores)
    rows, columns, ahead, number, at, exponential = (
        read_only(array) for array in (starts, second, margin, contests, scores, root)
    )

    def work(begin: int, end: int) -> Floats:
        gradient, degree, cross, sums = parts = np.zeros((4, max(len(scores), 3)))
        _evaluate_ties(
            rows,
            columns,
            ahead,
            number,
            at,
            exponential,
            tie,
            begin,
            end,
            bend,
            strength,
            gradient,
            degree,
            cross,
            sums,
        )
        return parts

    gradient, degree, cross, sums = total(over_bounds(work, pair_bounds(starts)))
    value = float(sums[0]) - dot(contests, np.log(strength, out=strength)) + (n_ties * np.log(tie) if n_ties else 0.0)
    n = len(scores)
    return TieModel(value, gradient[:n], n_ties - float(sums[1]), bend, degree[:n], cross[:n], float(sums[2]))


@njit(cache=True, nogil=True)
def _evaluate_ties(
    starts: Any, second: Any, margin: Any, contests: Any, scores: Any, root: Any, tie: float, begin: int, end: int,
    bend: Floats, strength: Floats, gradient: Floats, degree: Floats, cross: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Fill bend and strength, (n_pairs,), and add to gradient, degree, cross, (n_items,), and sums, (3,)."""
    value = expected_ties = tie_bend = 0.0
    for i in range(begin, end):
        score, own, slope, bent, crossing = scores[i], root[i], 0.0, 0.0, 0.0
        for pair in range(starts[i], starts[i + 1]):
            j = np.uint32(second[pair])
            number, ahead, other = contests[pair], margin[pair], root[j]
            strength[pair] = own * own + other * other + tie * own * other
            share = 1.0 / strength[pair]
            win, loss, tied = own * own * share, other * other * share, tie * own * other * share
            value += 0.5 * (ahead * (score - scores[j]) + number * (score + scores[j]))
            half = 0.5 * (ahead - number * (win - loss))
            slope += half
            gradient[j] -= half
            curve = number * (win * loss + 0.25 * tied * (win + loss))
            bend[pair] = curve
            bent += curve
            degree[j] += curve
            if tie > 0.0:
                expected_ties += number * tied
                tie_bend += number * tied * (1.0 - tied)
                crossed = 0.5 * number * (win - loss) * tied
                crossing -= crossed
                cross[j] += crossed
        gradient[i] += slope
        degree[i] += bent
        cross[i] += crossing
    sums[0] += value
    sums[1] += expected_ties
    sums[2] += tie_bend
