"""The step for annotators: discrimination, bias, spread and lapses given the scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...protocols import Floats
from .responses import Kind, Layout
from .state import MOST_LAPSES, START_LAPSE, KindState, State

if TYPE_CHECKING:
    from .kernels.ordinal import AnnotatorSums

GUESSING_VARIANCE = 0.04
"""Variance of the discriminations of those who guess."""

_LONGEST_STEP = 1.5
_LONGEST_STRETCH = 0.5
_LAPSE_PRIOR = 10.0
_MEAN_LAPSE_PRIOR = 20.0
_LEAST_LAPSE = 1e-6
_FAVOURITE_PRIOR = 3.0


@dataclass(frozen=True, eq=False)
class Crowd:
    """Prior of the discriminations: mean of each annotator's, (n_annotators,), and its variance where that is fixed.

    ``fixed`` (n_annotators,) is NaN for annotators whose variance is learned. Where the crowd is ``grouped``, shares of
    it, to be learned, answer the reverse, and their mean is the same below 0, or guess, and theirs is 0.
    """

    mean: Floats
    fixed: Floats
    grouped: bool

    def variance(self, learned: float) -> Floats:
        """Prior variance of each annotator's discrimination, in its group."""
        return np.where(np.isnan(self.fixed), learned, self.fixed)

    def shares(self, learned: Floats) -> Floats:
        """Prior probability that each annotator is of each group, (3, n_annotators)."""
        free = np.isnan(self.fixed) & self.grouped
        return np.where(free, learned[:, None], np.array([1.0, 0.0, 0.0])[:, None])


def annotator_sums(layout: Layout, state: State) -> list[AnnotatorSums]:
    """Return what the judgments of each kind tell of annotators and crowd at the present scores."""
    from .kernels.ordinal import annotator_pass

    return [
        annotator_pass(kind.cells, habits.answering(kind, state.alpha, state.alpha_variance), *state.gaps(layout, kind))
        for kind, habits in zip(layout.kinds, state.kinds, strict=True)
    ]


def smoothed(sums: list[AnnotatorSums], state: State) -> list[AnnotatorSums]:
    """Return the sums with the mean of their curvature and that of the last round, which keeps it from swinging."""
    found = []
    for of, habits in zip(sums, state.kinds, strict=True):
        if habits.curvature is not None:
            one, two, three, four = 0.5 * (curvature_of(of) + habits.curvature)
            of = of._replace(alpha_alpha=one, alpha_bias=two, bias_bias=three, spread_spread=four)
        found.append(of)
    return found


def curvature_of(of: AnnotatorSums) -> Floats:
    """Return the curvature in discrimination, discrimination and bias, bias, and spread, (4, n_annotators)."""
    return np.stack([of.alpha_alpha, of.alpha_bias, of.bias_bias, of.spread_spread])


def annotator_step(
    layout: Layout, state: State, sums: list[AnnotatorSums], crowd: Crowd, *, settling: bool
) -> tuple[State, Discriminations]:
    """Return the annotators after one Newton step on discrimination and biases, and one on each spread.

    How often the crowd lapses is learned when the rest is ``settling``: before, scores are too near to each other, and
    lapses look rarer than they are.
    """
    slope, bend = np.zeros(layout.n_annotators), np.zeros(layout.n_annotators)
    for kind, habits, of in zip(layout.kinds, state.kinds, sums, strict=True):
        slope, bend = slope + of.alpha, bend + of.alpha_alpha
        if kind.biased:
            # the bias goes along with the discrimination as it suits it best
            tie = of.alpha_bias / bias_bend(habits, of)
            slope = slope - tie * _bias_slope(habits, of)
            bend = bend - tie * of.alpha_bias
    found = _discriminations(state, slope, np.maximum(bend, 0.0), crowd)
    step = np.clip(found.mean - state.alpha, -_LONGEST_STEP, _LONGEST_STEP)
    kinds = tuple(
        _habits(kind, habits, of, step, found.variance, settling)
        for kind, habits, of in zip(layout.kinds, state.kinds, sums, strict=True)
    )
    return replace(state, alpha=state.alpha + step, alpha_variance=found.variance, kinds=kinds), found


class Discriminations(NamedTuple):
    """Mean and variance of each annotator's discrimination, and the same within each group, (3, n_annotators).

    The groups are those who answer what they see, the reverse, and anything; ``group`` has the probability of each.
    """

    mean: Floats
    variance: Floats
    group: Floats
    means: Floats
    variances: Floats

    @property
    def upright(self) -> tuple[Floats, Floats]:
        """Mean discrimination of those who do not guess, turned round where they answer the reverse; its weight."""
        weight = self.group[0] + self.group[1]
        return (self.group[0] * self.means[0] - self.group[1] * self.means[1]), weight


def _discriminations(state: State, slope: Floats, bend: Floats, crowd: Crowd) -> Discriminations:
    """Discriminations given the gradient and curvature of the answers: a mixture of the groups, exactly."""
    own = crowd.variance(state.variance_of_alpha)
    prior = np.stack([own, own, np.minimum(own, GUESSING_VARIANCE)])
    middle = np.stack([crowd.mean, -crowd.mean, np.zeros(len(own))])
    share = crowd.shares(state.shares)
    pull = bend * state.alpha + slope
    variances = 1.0 / (bend + 1.0 / prior)
    means = variances * (pull + middle / prior)
    odds = 0.5 * (np.log(variances / prior) + means**2 / variances - middle**2 / prior)
    odds += np.log(np.maximum(share, 1e-300))
    group = np.exp(odds - odds.max(axis=0))
    group = np.where(share > 0.0, group, 0.0)
    group /= group.sum(axis=0)
    mean = (group * means).sum(axis=0)
    variance = (group * (variances + (means - mean) ** 2)).sum(axis=0)
    return Discriminations(mean, variance, group, means, variances)


def bias_bend(habits: KindState, of: AnnotatorSums) -> Floats:
    """Return the curvature in the bias, prior included."""
    return of.bias_bias + 1.0 / habits.variance_of_bias


def _bias_slope(habits: KindState, of: AnnotatorSums) -> Floats:
    """Gradient in the bias, prior included."""
    return of.bias + (habits.mean_bias - habits.bias) / habits.variance_of_bias


def _habits(
    kind: Kind, habits: KindState, of: AnnotatorSums, step: Floats, variance: Floats, settling: bool
) -> KindState:
    """Bias, spread and lapses after a step of the discriminations to the given variance."""
    habits = replace(habits, curvature=curvature_of(of))
    if kind.biased:
        bend = bias_bend(habits, of)
        tie = of.alpha_bias / bend
        move = np.clip(_bias_slope(habits, of) / bend - tie * step, -_LONGEST_STEP, _LONGEST_STEP)
        habits = replace(
            habits, bias=habits.bias + move, covariance=-tie * variance, bias_variance=1.0 / bend + tie**2 * variance
        )
    if kind.stretched:
        bend = of.spread_spread + 1.0 / habits.variance_of_spread
        move = (of.spread - habits.spread / habits.variance_of_spread) / bend
        # what all spreads have in common is left to the cuts, or both would make up for the same
        move -= float(bend @ move) / float(bend.sum())
        stretched = habits.spread + np.clip(move, -_LONGEST_STRETCH, _LONGEST_STRETCH)
        common = float(stretched[kind.weight > 0].mean())
        stretched = np.where(kind.weight > 0, stretched - common, 0.0)
        habits = replace(habits, spread=stretched, spread_variance=1.0 / bend, cuts=habits.cuts * np.exp(common))
    return _lapses(kind, habits, of, settling) if kind.lapses else habits


def _lapses(kind: Kind, habits: KindState, of: AnnotatorSums, settling: bool) -> KindState:
    """How often each annotator answers without looking, and what."""
    whole, prior = float(kind.weight.sum()), _MEAN_LAPSE_PRIOR
    mean = min((float(of.lapses.sum()) + prior * START_LAPSE) / (whole + prior), MOST_LAPSES)
    mean, before = mean if settling else habits.mean_lapse, habits.lapse
    # Newton steps; expectation-maximisation creeps where lapses are rare
    slope = of.lapse + _LAPSE_PRIOR * (mean / before - (1.0 - mean) / (1.0 - before))
    bend = of.lapse_lapse + _LAPSE_PRIOR * (mean / before**2 + (1.0 - mean) / (1.0 - before) ** 2)
    lapse = np.clip(before + slope / bend, np.maximum(before / 4.0, _LEAST_LAPSE), np.minimum(4.0 * before, 0.9))
    favourites = of.lapsed + _FAVOURITE_PRIOR * kind.shares
    favourites /= favourites.sum(axis=1, keepdims=True)
    return replace(habits, lapse=lapse, favourites=favourites, mean_lapse=mean)
