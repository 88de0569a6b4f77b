"""Whether pairs were chosen by earlier answers, so that who met whom tells the answers that are held out.

In an adaptive campaign the winner of a comparison meets stronger items next. When that comparison is held out, the
opponents that came after it still tell who won: even coin flips are then predicted, and best by the method that
shrinks least. What the opponents tell is the same for every method, so it is measured here and given to all of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.judgments import Preferences
from ..protocols import Counts, Floats, Ints
from ..quality import scores_quietly
from ..registry import make

if TYPE_CHECKING:
    from .splits import Split

_UNSHRUNK_RIDGE = 0.01
"""Ridge of the Bradley-Terry scores that show the level of opponents: small, so that levels are not shrunk."""

_MIN_STANDARD_ERRORS = 4.0
"""Pairs count as chosen by earlier answers where the level of opponents predicts answers by this many standard errors.

Of 15,000 designs without adaptation, one reaches this by chance.
"""

_PRIOR_PRECISION = 0.01
_MAX_STEPS = 50


def pairing_terms(split: Split) -> Floats | None:
    """Return what the choice of opponents tells of each pair's answer; ``None`` where it tells nothing.

    Column by column, (n_pairs, 2), better less worse item, of fits that have not seen the pair: the difference of
    unshrunk Bradley-Terry scores, and of the mean such score of the other items that each was compared with.
    """
    if not isinstance(split.judgments, Preferences) or not len(split.pairs.better):
        return None
    pairs, terms = split.pairs, np.zeros((len(split.pairs.better), 3))
    methods = [make("aggregator", "bradley_terry", params) for params in ({}, {"ridge": _UNSHRUNK_RIDGE})]
    for number in range(split.n_folds):
        seen: Any = split.outside_fold(number)
        rows = np.flatnonzero(split.pair_fold == number)
        better, worse = pairs.better[rows], pairs.worse[rows]
        usual, unshrunk = (scores_quietly(method, seen) for method in methods)
        level = partial(_opponent_levels, seen, unshrunk)
        terms[rows, 0] = usual[better] - usual[worse]
        terms[rows, 1] = unshrunk[better] - unshrunk[worse]
        terms[rows, 2] = level(better, worse) - level(worse, better)
    coefficients, errors = fit_leads(terms[:, [0, 2]], pairs.weight)
    adaptive = coefficients[1] > _MIN_STANDARD_ERRORS * errors[1]
    return terms[:, 1:] if adaptive else None


def _opponent_levels(preferences: Preferences, scores: Floats, item: Ints, besides: Ints) -> Floats:
    """Mean score of the items that each ``item`` was compared with, the item ``besides`` left out; else its own."""
    n = preferences.n_items
    first = np.concatenate([preferences.left, preferences.right])
    second = np.concatenate([preferences.right, preferences.left])
    weight = np.concatenate([preferences.row_weight, preferences.row_weight])
    sums, counts = np.bincount(first, weight * scores[second], n), np.bincount(first, weight, n)
    key: Counts = first.astype(np.int64) * n + second
    known, place = np.unique(key, return_inverse=True)
    of_pair = np.append(np.bincount(place, weight, len(known)), 0.0)
    wanted = item.astype(np.int64) * n + besides
    position = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    met = of_pair[np.where(known[position] == wanted, position, len(known))]
    others = counts[item] - met
    # items that met nobody else have no level of opponents: both items of such a pair get the pair's own middle
    middle = 0.5 * (scores[item] + scores[besides])
    total = sums[item] - met * scores[besides]
    levels: Floats = np.divide(total, others, out=middle, where=others > 1e-9 * np.maximum(counts[item], 1.0))
    return levels


def fit_leads(terms: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients that make sigmoid(terms @ coefficients) likeliest, and their standard errors.

    Newton steps on terms of mean square 1, with a weak prior that keeps coefficients finite.
    """
    size = np.sqrt(np.average(terms**2, axis=0, weights=weight))
    unit = np.divide(terms, size, out=np.zeros_like(terms), where=size > 0.0)
    point = np.zeros(terms.shape[1])
    for _ in range(_MAX_STEPS):
        behind = 1.0 / (1.0 + np.exp(np.clip(unit @ point, -500.0, 500.0)))
        bend = weight * behind * (1.0 - behind)
        matrix = (unit * bend[:, None]).T @ unit + _PRIOR_PRECISION * np.eye(len(point))
        step = np.linalg.solve(matrix, unit.T @ (weight * behind) - _PRIOR_PRECISION * point)
        point = point + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-6:
            break
    scale = np.where(size > 0.0, size, 1.0)
    return point / scale, np.sqrt(np.diag(np.linalg.inv(matrix))) / scale
