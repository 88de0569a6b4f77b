"""What is known during a fit: scores, annotators and the crowd, each up to a normal distribution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...protocols import Floats
from .responses import Kind, Layout

if TYPE_CHECKING:
    from .kernels.ordinal import Answering

START_LAPSE = 0.02
START_SHARES = (0.75, 0.2, 0.05)
_FEW_ANNOTATORS = 10.0
START_VARIANCES = {"item": 1.0, "alpha": 0.25, "bias": 0.05, "spread": 0.05, "level": 1.0, "weight": 0.1}
"""Variances before anything is seen, those of the levels of queries and of the weights of features among them."""

LARGEST_VARIANCES = {"item": 36.0, "alpha": 16.0, "bias": 9.0, "spread": 1.0, "level": 36.0, "weight": 36.0}
"""Variances are not learned above these: they could grow without end where judgments hardly contradict each other."""

LEAST_GAP = 0.01
"""Cuts are at least so far apart."""

MOST_LAPSES = 0.25
"""The crowd as a whole does not answer without looking more often than this."""

MOST_TURNED = 0.45
"""No larger share of a crowd answers the reverse: which way round it is comes from the majority."""


@dataclass(frozen=True, eq=False)
class KindState:
    """How annotators answer one kind; arrays are (n_annotators,) unless said otherwise.

    Parameters
    ----------
    bias, bias_variance, covariance
        Offset of each annotator, its variance, and its covariance with the annotator's discrimination.
    mean_bias, variance_of_bias
        Mean and variance of the crowd's offsets.
    spread, spread_variance, variance_of_spread
        Log-spread of each annotator, its variance, and that of the crowd's.
    lapse, favourites, mean_lapse
        Probability of a lapse, the answers then (n_annotators or 0, K), and the crowd's mean probability.
    centre, cuts
        The cuts between levels are at ``centre + exp(spread) cuts``, (K-1,).
    log_scale
        Logarithm of lambda, how discriminations count for this kind.
    curvature
        Curvature in discrimination, in discrimination and bias, in bias and in spread, (4, n_annotators), of the last
        round.
    """

    bias: Floats
    bias_variance: Floats
    covariance: Floats
    mean_bias: float
    variance_of_bias: float
    spread: Floats
    spread_variance: Floats
    variance_of_spread: float
    lapse: Floats
    favourites: Floats
    mean_lapse: float
    centre: float
    cuts: Floats
    log_scale: float
    curvature: Floats | None = None

    def answering(self, kind: Kind, alpha: Floats, alpha_variance: Floats) -> Answering:
        """What the passes need."""
        from .kernels.ordinal import Answering, own_rows

        scale = float(np.exp(self.log_scale))
        rows = own_rows(
            scale, alpha, alpha_variance, self.covariance, self.bias, self.bias_variance, self.spread, self.lapse
        )
        return Answering(rows, self.favourites, self.centre, self.cuts, scale, kind.cut)


@dataclass(frozen=True, eq=False)
class State:
    """All that is known.

    Parameters
    ----------
    scores, variance
        Score of each item and its variance, (n_items,).
    covariance
        Covariance of the scores of each compared pair, (n_pairs,).
    alpha, alpha_variance
        Discrimination of each annotator and its variance, (n_annotators,).
    kinds
        How annotators answer each kind.
    variance_of_items, variance_of_alpha, variance_of_levels, variance_of_weights
        Variances of scores within queries, discriminations, levels of queries and feature weights.
    shares
        Shares of the annotators who answer what they see, the reverse, and anything, (3,).
    weights, weights_covariance
        Weights of the features, (n_features,), and their covariance.
    of_cells
        Curvature in the scores of each kind's cells, in the last round.
    """

    scores: Floats
    variance: Floats
    covariance: Floats
    alpha: Floats
    alpha_variance: Floats
    kinds: tuple[KindState, ...]
    variance_of_items: float
    variance_of_alpha: float
    shares: Floats
    variance_of_levels: float
    variance_of_weights: float
    weights: Floats
    weights_covariance: Floats
    of_cells: tuple[Floats, ...] = ()

    def gaps(self, layout: Layout, kind: Kind) -> tuple[Floats, Floats]:
        """Score, or difference of scores, of each cell and its variance."""
        first, second = kind.cells.first, kind.cells.second
        if not kind.about_pairs:
            return self.scores[first], self.variance[first]
        between = self.covariance if len(kind.pair) == len(self.covariance) else self.covariance[kind.pair]
        variance = self.variance[first] + self.variance[second] - 2.0 * between
        return self.scores[first] - self.scores[second], np.maximum(variance, 0.0)

    def rescaled(self, factor: float) -> State:
        """The same with scores multiplied and discriminations divided by a factor, which changes no answer."""
        square = factor**2
        powers = np.array([square, factor, 1.0, 1.0])[:, None]
        kinds = tuple(
            replace(
                kind, covariance=kind.covariance / factor,
                curvature=None if kind.curvature is None else powers * kind.curvature,
            )
            for kind in self.kinds
        )  # fmt: skip
        return replace(
            self, scores=self.scores * factor, variance=self.variance * square, covariance=self.covariance * square,
            alpha=self.alpha / factor, alpha_variance=self.alpha_variance / square, kinds=kinds,
            variance_of_items=self.variance_of_items * square, variance_of_levels=self.variance_of_levels * square,
            variance_of_weights=self.variance_of_weights * square, weights=self.weights * factor,
            weights_covariance=self.weights_covariance * square,
            of_cells=tuple(bent / square for bent in self.of_cells),
        )  # fmt: skip


def first_state(layout: Layout, alpha: Floats, n_features: int) -> State:
    """The state to begin with: equal scores, and annotators of given discriminations without habits."""
    variances = START_VARIANCES
    return State(
        scores=np.zeros(layout.n_items), variance=np.zeros(layout.n_items),
        covariance=np.zeros(len(layout.graph.second)), alpha=alpha, alpha_variance=np.zeros(layout.n_annotators),
        kinds=tuple(_first_kind(kind, layout.n_annotators) for kind in layout.kinds),
        variance_of_items=variances["item"], variance_of_alpha=variances["alpha"],
        shares=first_shares(int(layout.active.sum())),
        variance_of_levels=variances["level"] if layout.levelled else 0.0, variance_of_weights=variances["weight"],
        weights=np.zeros(n_features), weights_covariance=np.zeros((n_features, n_features)),
    )  # fmt: skip


def first_shares(n: int) -> Floats:
    """Return the shares of those who answer what they see, the reverse, and anything, in a crowd of so many.

    Large crowds have some of each; of a few annotators the best is thought.
    """
    others = np.array(START_SHARES[1:]) * n / (n + _FEW_ANNOTATORS)
    return np.append(1.0 - others.sum(), others)


def _first_kind(kind: Kind, n: int) -> KindState:
    """Annotators without habits, and cuts from the shares of the levels."""
    zeros = np.zeros(n)
    centre, cuts = first_cuts(kind)
    lapse = START_LAPSE if kind.lapses else 0.0
    favourites = np.tile(kind.shares, (n if kind.lapses else 0, 1))
    return KindState(
        bias=zeros, bias_variance=zeros, covariance=zeros, mean_bias=0.0, variance_of_bias=START_VARIANCES["bias"],
        spread=zeros, spread_variance=zeros, variance_of_spread=START_VARIANCES["spread"], lapse=np.full(n, lapse),
        favourites=favourites, mean_lapse=lapse, centre=centre, cuts=cuts, log_scale=0.0,
    )  # fmt: skip


def first_cuts(kind: Kind) -> tuple[float, Floats]:
    """Return centre and cuts at which items of score 0 would get the levels as often as they are given."""
    counts = kind.shares * kind.weight.sum() + 0.5
    below = np.cumsum(counts)[:-1] / counts.sum()
    cuts = np.log(below / (1.0 - below))
    if kind.about_pairs:
        ties = counts[1] / counts.sum() if kind.n_levels == 3 else 0.0
        width = float(np.log((1.0 + ties) / (1.0 - ties)))
        return 0.0, np.array([-width, width]) if kind.n_levels == 3 else np.zeros(kind.n_levels - 1)
    centre = float(cuts.mean()) if len(cuts) else 0.0
    return centre, cuts - centre
