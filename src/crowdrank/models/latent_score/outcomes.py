"""What a fit says to people: quality of annotators, grades of items, and the numbers behind."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...protocols import Floats, Ints
from ...quality import LearnedQuality
from .anchors import Known
from .refits import Refit
from .responses import Kind, Layout
from .rounds import reference
from .state import KindState, State

_POINTS = 40
_FEW_ITEMS = 20
_UNSURE = 0.05
_GROUP_ROUNDS = 500
_EQUAL = 1e-8


def pair_quality(state: State, alpha: Floats, scale: Floats | float, lapse: Floats) -> Floats:
    """Return the probability of ordering a random pair of unequal items right, for annotators of discriminations.

    The mean of ``(1 - lapse) sigmoid(scale alpha |d|) + lapse / 2`` over differences ``d`` of items of one query, by a
    sum over 40 quantiles.
    """
    from scipy.special import expit, ndtri

    at = ndtri(0.5 + 0.5 * (np.arange(_POINTS) + 0.5) / _POINTS) * np.sqrt(2.0 * state.variance_of_items)
    found = np.zeros(len(alpha))
    for gap in at:
        found += expit(scale * alpha * gap)
    mean: Floats = (1.0 - lapse) * found / _POINTS + 0.5 * lapse
    return mean


def annotator_quality(
    judgments: Any, layout: Layout, state: State, again: Refit, unit: float = 1.0
) -> LearnedQuality | None:
    """Return held-out quality, with what the fit tells of each annotator; ``None`` where the judgments name nobody.

    Parameters are ``alpha`` and ``alpha_sd``, and for each kind where it is learned ``bias``, ``spread`` and ``lapse``,
    with the kind's name where there are several kinds. ``again`` gives the scores of a part of the judgments, and
    ``unit`` is that of the scores that users see.
    """
    if not layout.named:
        return None
    weight, lapse = np.zeros(layout.n_annotators), np.zeros(layout.n_annotators)
    for kind, habits in zip(layout.kinds, state.kinds, strict=True):
        weight, lapse = weight + kind.weight, lapse + kind.weight * habits.lapse
    lapse = np.divide(lapse, weight, out=np.zeros_like(lapse), where=weight > 0)
    parameters: dict[str, Any] = {"alpha": state.alpha / unit, "alpha_sd": np.sqrt(state.alpha_variance) / unit}
    for kind, habits in zip(layout.kinds, state.kinds, strict=True):
        parameters |= _habits(kind, habits, "" if len(layout.kinds) == 1 else f"_{kind.name}")
    learned = pair_quality(state, state.alpha, 1.0, lapse)
    return LearnedQuality(judgments, again.scores, parameters, learned, again.n_folds, precision=_EQUAL)


def _habits(kind: Kind, habits: KindState, ending: str) -> dict[str, Floats]:
    """The habits of one kind that are learned."""
    found: dict[str, Floats] = {}
    if kind.biased:
        found |= {f"bias{ending}": habits.bias, f"bias_sd{ending}": np.sqrt(habits.bias_variance)}
    if kind.stretched:
        found[f"spread{ending}"] = np.exp(habits.spread)
    if kind.lapses:
        found[f"lapse{ending}"] = habits.lapse
        found[f"lapse_answers{ending}"] = habits.favourites
    return found


def estimates(layout: Layout, state: State, known: Known | None = None) -> dict[str, Any]:
    """Return what is learned of the whole crowd; ``middle`` and ``unit`` lead to the scores that users see."""
    found: dict[str, Any] = {}
    if known is not None and known.clamped.any():
        found |= {"middle": known.middle, "unit": known.unit}
    found |= {"score_sd": state.variance_of_items**0.5, "alpha_sd": state.variance_of_alpha**0.5}
    if layout.levelled:
        found["query_sd"] = state.variance_of_levels**0.5
    for place, (kind, habits) in enumerate(zip(layout.kinds, state.kinds, strict=True)):
        ending = "" if len(layout.kinds) == 1 else f"_{kind.name}"
        if kind.biased:
            found |= {f"mean_bias{ending}": habits.mean_bias, f"bias_sd{ending}": habits.variance_of_bias**0.5}
        if kind.stretched:
            found[f"spread_sd{ending}"] = habits.variance_of_spread**0.5
        if kind.cut:
            found[f"cuts{ending}"] = (habits.centre + habits.cuts).tolist()
            found[f"centre{ending}"] = habits.centre
        if kind.lapses:
            found[f"mean_lapse{ending}"] = habits.mean_lapse
        if place != reference(layout):
            found[f"scale{ending}"] = float(np.exp(habits.log_scale))
    return found


def read_grades(layout: Layout, state: State) -> tuple[Ints, tuple[Any, ...]] | None:
    """Return the level of each item, -1 where nobody judged it, and the levels; ``None`` where there are no grades.

    Each annotator answers without noise, and the most frequent answer wins, an annotator weighing as much as grades
    were given, times the square of how far the quality is above guessing. Cutting the scores at the crowd's own cuts
    would give too few extremes: they are drawn to the middle. Of two levels a crowd may favour one as a whole; there
    the items fall into two groups by their scores, and the cut is between these.
    """
    for kind, habits in zip(layout.kinds, state.kinds, strict=True):
        if kind.name == "grade":
            chosen = _mode(layout, state, kind, habits)
            if kind.n_levels == 2:
                chosen[layout.judged] = _two_groups(state.scores[layout.judged], chosen[layout.judged])
            return chosen, kind.levels
    return None


def _two_groups(scores: Floats, grade: Ints) -> Ints:
    """The group of each score, two normal distributions of one width mixed, from grades to begin with.

    Few items, or grades that are all the same, stay as they are.
    """
    if len(scores) < _FEW_ITEMS or np.ptp(grade) == 0:
        return grade
    upper = np.clip(grade, _UNSURE, 1.0 - _UNSURE)
    for _ in range(_GROUP_ROUNDS):
        share = float(upper.mean())
        high, low = float(upper @ scores) / upper.sum(), float((1.0 - upper) @ scores) / (1.0 - upper).sum()
        spread = float(upper @ (scores - high) ** 2 + (1.0 - upper) @ (scores - low) ** 2) / len(scores) + 1e-9
        odds = np.log(share / (1.0 - share)) + (high - low) / spread * (scores - 0.5 * (high + low))
        following = np.clip(1.0 / (1.0 + np.exp(-np.clip(odds, -500.0, 500.0))), 1e-9, 1.0 - 1e-9)
        still = float(np.abs(following - upper).max()) < 1e-6
        upper = following
        if still:
            break
    found = (upper > 0.5).astype(np.int32)
    return found if np.ptp(found) > 0 and high > low else grade


def _mode(layout: Layout, state: State, kind: Kind, habits: KindState) -> Ints:
    """The level that most annotators, weighed, would give each item."""
    scale = float(np.exp(habits.log_scale))
    quality = pair_quality(state, state.alpha, scale, habits.lapse)
    weight = kind.weight * np.maximum(2.0 * quality - 1.0, 0.0) ** 2
    use = np.flatnonzero(weight > 0)
    if not len(use):
        use, weight = np.flatnonzero(kind.weight > 0), kind.weight
    slope, level = np.maximum(scale * state.alpha[use], 1e-9), kind.n_levels
    # an annotator's answer passes cut k where the score does this
    passes = (habits.centre + np.exp(habits.spread[use])[:, None] * habits.cuts - habits.bias[use][:, None]) / slope[
        :, None
    ]
    above = np.zeros((layout.n_items, level + 1))
    above[:, 0] = weight[use].sum()
    for cut in range(level - 1):
        order = np.argsort(passes[:, cut], kind="stable")
        sums = np.append(0.0, np.cumsum(weight[use][order]))
        above[:, cut + 1] = sums[np.searchsorted(passes[order, cut] + _EQUAL, state.scores)]
    share = above[:, :-1] - above[:, 1:]
    # of levels with equally many the lowest
    chosen = np.argmax(share >= share.max(axis=1, keepdims=True) - _EQUAL * above[:, :1], axis=1).astype(np.int32)
    return np.where(layout.judged, chosen, np.int32(-1))
