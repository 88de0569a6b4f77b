"""Position bias: a click needs an examined position and a relevant item."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ...data.clicks import Clicks
from ...errors import ConvergenceWarning, JudgmentError
from ...protocols import AnyFloats, Counts, Floats
from ...wording import expect_above, one_of
from .click_fit import ClickFit

_PROPENSITIES = ("auto", "em", "harvesting")
_MIN_PROPENSITY = 1e-4


@dataclass(frozen=True, eq=False)
class _Cells:
    """The log by item and position: rows that are alike are one, with their number."""

    item: Counts
    position: Counts
    shown: Floats
    clicked: Floats

    @classmethod
    def of(cls, clicks: Clicks) -> _Cells:
        key = clicks.item.astype(np.int64) * clicks.n_positions + (clicks.position - 1)
        known, cell = np.unique(key, return_inverse=True)
        shown = np.bincount(cell, minlength=len(known)).astype(np.float64)
        clicked = np.bincount(cell[clicks.clicked], minlength=len(known)).astype(np.float64)
        return cls(known // clicks.n_positions, known % clicks.n_positions, shown, clicked)


@dataclass(frozen=True, kw_only=True)
class PositionBias:
    r"""Position-based click model: an item is clicked if its position is examined and the item is relevant.

    At position :math:`k` item :math:`i` is clicked with probability :math:`\theta_k \gamma_i`. The propensities
    :math:`\theta` come from EM over both [Wang18]_, where the relevance is a free number for each item or, with
    features, a logistic regression on them (regression EM); or from intervention harvesting: items shown at two
    positions :math:`k, l` give the ratio :math:`\theta_k / \theta_l` of their click rates whatever their relevance
    [Agarwal19]_.

    When to use
    -----------
    Harvesting is near the truth where several rankers, or one over time, showed the same items at several positions;
    EM makes use of all items, and its propensities fall a little too slowly where items were shown a few dozen times.
    Give features where hardly any item moved: without them nothing then distinguishes a good position from good items.

    Parameters
    ----------
    propensity
        ``"em"`` or ``"harvesting"``; ``"auto"`` harvests where every position shares clicked items with another, and
        takes EM otherwise and with features.
    ridge
        Pull of the regression's weights towards 0, where there are features.
    tol, max_iter
        EM stops when no propensity moves by more than ``tol``, or after ``max_iter`` rounds.

    Notes
    -----
    Only ratios of propensities are known; the largest is set to 1. Harvesting solves weighted least squares for
    :math:`\log \theta` over all pairs of positions in place of the likelihood of the paper: the ratio of a pair has
    the weight of its clicks. A position that no item shares with another has the propensity of its neighbour.
    """

    propensity: str = "auto"
    ridge: float = 1.0
    tol: float = 1e-6
    max_iter: int = 5000

    def __post_init__(self) -> None:
        one_of(self.propensity, _PROPENSITIES, "propensity")
        expect_above(self, 0, "ridge")

    def fit(self, clicks: Clicks, *, features: AnyFloats | None = None) -> ClickFit:
        """Return relevance and propensities; ``features`` has a row for each item of the log."""
        if not clicks.clicked.any():
            raise JudgmentError("the log has no click, so nothing can be learned from it; give a longer one")
        cells = _Cells.of(clicks)
        shared = _shared_clicks(cells, clicks.n_positions)
        connected = bool((shared * shared.T * (1 - np.eye(len(shared)))).any(axis=1).all())
        harvests = self.propensity == "auto" and features is None and connected
        if self.propensity == "harvesting" or harvests:
            theta = _harvest(shared)
        else:
            theta = self._by_em(cells, clicks, features)
        theta = theta / theta.max()
        n = len(clicks.items)
        examined: Floats = np.bincount(cells.item, cells.shown * theta[cells.position], n).astype(np.float64)
        clicked: Floats = np.bincount(cells.item, cells.clicked, n).astype(np.float64)
        click_fit = ClickFit(clicks, "position_bias", theta, examined, clicked, 0.0)
        chance = np.clip(theta[cells.position] * click_fit.relevance[cells.item], 1e-9, 1 - 1e-9)
        likelihood = cells.clicked * np.log(chance) + (cells.shown - cells.clicked) * np.log1p(-chance)
        return ClickFit(clicks, "position_bias", theta, examined, clicked, float(likelihood.sum()))

    def _by_em(self, cells: _Cells, clicks: Clicks, features: AnyFloats | None) -> Floats:
        """Propensities by EM, from those that fall with the position."""
        n, n_positions = len(clicks.items), clicks.n_positions
        shown_at = np.bincount(cells.position, cells.shown, n_positions)
        shown_of: Floats = np.bincount(cells.item, cells.shown, n).astype(np.float64)
        mean = cells.clicked.sum() / cells.shown.sum()
        theta: Floats = 1.0 / np.sqrt(np.arange(1.0, n_positions + 1))
        gamma = np.full(n, min(0.5, 2 * mean))
        design = None if features is None else _standardise(features)
        weights = None if design is None else np.zeros(design.shape[1])
        for _ in range(self.max_iter):
            both = theta[cells.position] * gamma[cells.item]
            unseen = (cells.shown - cells.clicked) / np.maximum(1.0 - both, 1e-9)
            examined = cells.clicked + unseen * theta[cells.position] * (1.0 - gamma[cells.item])
            relevant = cells.clicked + unseen * gamma[cells.item] * (1.0 - theta[cells.position])
            new = np.bincount(cells.position, examined, n_positions) / np.maximum(shown_at, 1e-12)
            of_item: Floats = np.bincount(cells.item, relevant, n).astype(np.float64)
            if design is None:
                gamma = (of_item + of_item.sum() / shown_of.sum()) / (shown_of + 1.0)
            else:
                assert weights is not None
                weights = _newton_step(design, weights, of_item, shown_of, self.ridge)
                gamma = 1.0 / (1.0 + np.exp(-np.clip(design @ weights, -30, 30)))
            top = max(float(new.max()), 1e-12)
            new, gamma = np.clip(new / top, _MIN_PROPENSITY, 1.0), np.clip(gamma * top, 1e-6, 1 - 1e-6)
            moved, theta = float(np.abs(new - theta).max()), new
            if moved <= self.tol:
                return theta
        warnings.warn(
            f"position_bias moved a propensity by {moved:.2g} in the last of {self.max_iter} rounds; raise max_iter",
            ConvergenceWarning,
            stacklevel=2,
        )
        return theta


def _standardise(features: AnyFloats) -> Floats:
    """Features of mean 0 and variance 1, with a column of ones; missing ones are the mean."""
    matrix = np.asarray(features, np.float64)
    mean = np.nanmean(matrix, axis=0)
    centred = np.where(np.isnan(matrix), 0.0, matrix - mean)
    spread = centred.std(axis=0)
    scaled = centred[:, spread > 0] / spread[spread > 0]
    design: Floats = np.column_stack([np.ones(len(matrix)), scaled])
    return design


def _newton_step(design: Floats, weights: Floats, successes: Floats, trials: Floats, ridge: float) -> Floats:
    """Weights of a logistic regression of shares after one Newton step."""
    chance = 1.0 / (1.0 + np.exp(-np.clip(design @ weights, -30, 30)))
    pull = ridge * np.concatenate([[1e-6], np.ones(len(weights) - 1)])
    gradient = design.T @ (successes - trials * chance) - pull * weights
    bend = (design * (trials * chance * (1 - chance))[:, None]).T @ design + np.diag(pull)
    step: Floats = weights + np.linalg.solve(bend, gradient)
    return step


def _shared_clicks(cells: _Cells, n_positions: int) -> Floats:
    """Clicks at each position on items that were shown at another too, (position, other position)."""
    sums = np.zeros((n_positions, n_positions))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(cells.item) != 0, [True]]))
    for start, stop in pairwise(starts):
        if stop - start > 1:
            places, shown = cells.position[start:stop], cells.shown[start:stop]
            # of an item shown often here and seldom there the number of comparisons is that of the seldomer place
            pairs = np.minimum.outer(shown, shown)
            sums[np.ix_(places, places)] += pairs * (cells.clicked[start:stop] / shown)[:, None]
    return sums


def _harvest(sums: Floats) -> Floats:
    """Propensities from items that were shown at two positions or more."""
    n_positions = len(sums)
    ratio, weight = np.zeros((n_positions, n_positions)), np.zeros((n_positions, n_positions))
    both = sums * sums.T
    known = (both > 0) & ~np.eye(n_positions, dtype=bool)
    if not known.any():
        raise JudgmentError(
            "no item was shown and clicked at two positions, so harvesting has nothing to compare; use "
            "propensity='em', with features"
        )
    ratio[known] = np.log(sums[known] / sums.T[known])
    weight[known] = both[known] / (sums + sums.T)[known]
    laplacian = np.diag(weight.sum(axis=1)) - weight
    values = np.linalg.lstsq(laplacian + 1e-9 * np.eye(n_positions), (weight * ratio).sum(axis=1), rcond=None)[0]
    theta = np.exp(values - values[weight.sum(axis=1) > 0].max())
    for place in np.flatnonzero(weight.sum(axis=1) == 0):
        near = np.flatnonzero(weight.sum(axis=1) > 0)
        theta[place] = theta[near[np.argmin(np.abs(near - place))]]
    clipped: Floats = np.clip(theta, _MIN_PROPENSITY, 1.0)
    return clipped
