"""Click models: how relevant each item is, and how often each position is examined; position bias and cascades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import polars as pl

from ...data.clicks import Clicks
from ...data.index import Index
from ...data.judgments import Grades, Preferences
from ...data.showing import Shown
from ...errors import ConvergenceWarning, JudgmentError, warn
from ...protocols import AnyFloats, Bools, Counts, Floats
from ...wording import expect_above, one_of

ANNOTATOR = "clicks"
"""Name of the annotator that clicks stand for beside people."""

_PRIOR = 1.0
"""Examined impressions that the mean of all items counts as."""

_MAX_PAIR_ITEMS = 60

MAX_WEIGHT = 100.0
"""Largest inverse-propensity weight; a position examined once in a hundred pages says next to nothing of its items."""


@dataclass(frozen=True, eq=False)
class ClickFit(Shown):
    """Relevance from clicks, with the examination that it was divided by.

    Parameters
    ----------
    clicks
        The log.
    model
        Name of the model.
    propensity
        Probability that each position is examined, relative to the likeliest; for cascade models the mean over the log.
    examined, clicked
        By item, the expected number of times it was examined, and the clicks that count.
    log_likelihood
        Of the log under the model.
    """

    clicks: Clicks
    model: str
    propensity: Floats
    examined: Floats
    clicked: Floats
    log_likelihood: float

    def __repr__(self) -> str:
        return f"ClickFit({self.model}, {len(self.examined):,} items, {len(self.propensity)} positions)"

    def __len__(self) -> int:
        return len(self.examined)

    @property
    def relevance(self) -> Floats:
        """Probability of a click on each item once it is examined, shrunk towards the mean by one impression."""
        mean = float(self.clicked.sum() / max(self.examined.sum(), 1e-12))
        relevance: Floats = (self.clicked + _PRIOR * mean) / (self.examined + _PRIOR)
        return np.clip(relevance, 0.0, 1.0)

    @property
    def std_error(self) -> Floats:
        """Standard error of each relevance; one that every click confirms is not taken for certain."""
        half = 0.5 / (self.examined + _PRIOR)
        likely = np.clip(self.relevance, half, 1.0 - half)
        return np.sqrt(likely * (1.0 - likely) / (self.examined + _PRIOR))

    def frame(self) -> pl.DataFrame:
        """Return query, item, relevance, std_error, examined, n_clicks and n_shown of each item."""
        shown, clicks = self.clicks.counts()
        return self.clicks.items.frame().with_columns(
            relevance=pl.Series(self.relevance), std_error=pl.Series(self.std_error),
            examined=pl.Series(self.examined), n_clicks=pl.Series(clicks), n_shown=pl.Series(shown),
        )  # fmt: skip

    def propensities(self) -> pl.DataFrame:
        """Return position, propensity and the inverse-propensity weight of a click there, which is 100 at most."""
        places = np.arange(1, len(self.propensity) + 1)
        return pl.DataFrame({"position": places, "propensity": self.propensity, "weight": 1.0 / self.propensity})

    def grades(self) -> Grades:
        """Return the relevance of each shown item as a grade by the annotator ``"clicks"``, weighed by examination.

        The grade of an item is its clicks, each weighed by the inverse of the propensity, in the ratio form
        :math:`\\sum c / \\sum p` [Joachims17]_; its weight is :math:`\\sum p`, how often it was examined. With
        ``cr.train(fit.grades(), features, ranker, aggregator=None)`` every ranker learns from them.
        """
        items = self.clicks.items
        return Grades(
            items=items, annotators=Index(pl.Series([ANNOTATOR])), item=np.arange(len(items), dtype=np.int32),
            annotator=np.zeros(len(items), np.int32), grade=self.relevance,
            weight=np.maximum(self.examined, 1e-3),
        )  # fmt: skip

    def preferences(self) -> Preferences:
        """Return preferences between the items of each query by the annotator ``"clicks"``, to stand beside people's.

        Of two items the more relevant is preferred; the weight is how sure that is, :math:`2 \\Phi(|z|) - 1` for the
        difference :math:`z` in standard errors, divided by half the number of items, since the pairs of a query
        repeat what its items tell. Of queries above 60 items those examined most are compared.
        """
        from scipy.special import ndtr

        items, relevance, error = self.clicks.items, self.relevance, self.std_error
        parts = []
        for query in range(items.n_queries):
            codes = np.arange(items.offsets[query], items.offsets[query + 1])
            if len(codes) > _MAX_PAIR_ITEMS:
                codes = np.sort(codes[np.argsort(-self.examined[codes], kind="stable")[:_MAX_PAIR_ITEMS]])
            first, second = (codes[side] for side in np.triu_indices(len(codes), 1))
            z = (relevance[first] - relevance[second]) / np.maximum(np.hypot(error[first], error[second]), 1e-12)
            weight = 2.0 * (2.0 * ndtr(np.abs(z)) - 1.0) / max(len(codes), 2)
            kept = weight > 1e-3
            parts.append(np.stack([first, second, np.sign(z), weight])[:, kept])
        left, right, outcome, weight = np.concatenate(parts, axis=1)
        return Preferences(
            items=items, annotators=Index(pl.Series([ANNOTATOR])), left=left.astype(np.int32),
            right=right.astype(np.int32), outcome=outcome.astype(np.int8), weight=weight,
            annotator=np.zeros(len(left), np.int32),
        )  # fmt: skip


def bound_propensities(theta: Floats, expected: Floats) -> Floats:
    """Return propensities relative to the largest, bounded below, and say where they are.

    ``expected`` is the number of clicks that each position would have if it were examined as often as the best. Of
    fewer than one click nothing can be told, so that a propensity is at least ``1 / (1 + expected)``; and it is at
    least ``1 / MAX_WEIGHT``.
    """
    theta = theta / theta.max()
    bound = np.maximum(1.0 / (1.0 + expected), 1.0 / MAX_WEIGHT)
    low = (theta < bound) & (bound < 1.0)
    if low.any():
        heaviest = float(1.0 / bound[low].min())
        warn(
            f"{name_positions(np.flatnonzero(low) + 1)}: users look there so rarely, or clicks are so few, that the "
            f"weight of a click is bounded by {heaviest:.3g}; a longer log tells more"
        )
    return np.maximum(theta, np.minimum(bound, 1.0))


def name_positions(places: Sequence[int] | Counts) -> str:
    """Return positions in words.

    Examples
    --------
    >>> name_positions([3]), name_positions([3, 4]), name_positions([1, 2, 3, 7])
    ('position 3', 'positions 3 and 4', 'positions 1 to 3 and 7')
    """
    ordered = np.sort(np.asarray(places))
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    words = [str(one) for run in runs for one in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else run)]
    text = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return f"position{'' if len(places) == 1 else 's'} {text}"


_AFTER_CLICK = ("stop", "go_on")


@dataclass(frozen=True, kw_only=True)
class Cascade:
    r"""Cascade and dependent-click models: a page is read from the top, and a click may end it.

    In the cascade model [Craswell08]_ the user stops at the first click: items up to it were examined, items below
    were not. In the dependent-click model [Guo09]_ the user goes on after a click at position :math:`k` with
    probability :math:`\lambda_k`; items up to the last click were examined. The relevance of an item is its clicks
    over the times it was examined,

    .. math:: \gamma_i = \frac{\text{clicks on } i}{\text{impressions of } i \text{ at or above the last click}},
        \qquad \lambda_k = 1 - \frac{\text{last clicks at } k}{\text{clicks at } k},

    and a page without a click was read to its end.

    When to use
    -----------
    Use it for short lists that people scan downwards, with ``after_click="go_on"`` where several clicks on a page are
    common. The log needs the impression of each row.

    Parameters
    ----------
    after_click
        ``"stop"`` for the cascade, ``"go_on"`` for the dependent-click model.
    """

    after_click: str = "stop"

    def __post_init__(self) -> None:
        one_of(self.after_click, _AFTER_CLICK, "after_click")

    def fit(self, clicks: Clicks) -> ClickFit:
        """Return the relevance of each item and how often each position was examined."""
        if clicks.impression is None:
            raise JudgmentError(
                "a cascade reads each page from the top, and the log does not say which rows stood on one page; add "
                "an impression column, or use model='position_bias'"
            )
        if not clicks.clicked.any():
            raise JudgmentError("the log has no click, so nothing can be learned from it; give a longer one")
        page, place = clicks.impression[clicks.clicked], clicks.position[clicks.clicked].astype(np.int64)
        # rows up to the first click of their page, or up to the last one
        end = np.full(int(clicks.impression.max()) + 1, np.iinfo(np.int32).max)
        if self.after_click == "stop":
            np.minimum.at(end, page, place)
        else:
            end = np.where(last_clicks(clicks) > 0, last_clicks(clicks), end)
        examined: Bools = clicks.position <= end[clicks.impression]
        counted = examined & clicks.clicked
        n, n_positions = len(clicks.items), clicks.n_positions
        seen_at = np.bincount(clicks.position - 1, examined, n_positions)
        shown_at: Floats = np.bincount(clicks.position - 1, minlength=n_positions).astype(np.float64)
        propensity = bound_propensities(seen_at / np.maximum(shown_at, 1), shown_at)
        name = "cascade" if self.after_click == "stop" else "dependent_click"
        seen, hits = (np.bincount(clicks.item[mask], minlength=n).astype(np.float64) for mask in (examined, counted))
        click_fit = ClickFit(clicks, name, propensity, seen, hits, 0.0)
        chance = np.clip(click_fit.relevance[clicks.item[examined]], 1e-9, 1 - 1e-9)
        likelihood = float(np.log(np.where(clicks.clicked[examined], chance, 1.0 - chance)).sum())
        if self.after_click == "go_on":
            rates, number = continuation(clicks), np.bincount(place - 1, minlength=n_positions)
            stay = np.clip(rates, 1e-9, 1 - 1e-9)
            likelihood += float((number * (rates * np.log(stay) + (1 - rates) * np.log1p(-stay))).sum())
        return replace(click_fit, log_likelihood=likelihood)


def last_clicks(clicks: Clicks) -> Counts:
    """Return the position of the last click of each page, 0 where there is none."""
    assert clicks.impression is not None
    last = np.zeros(int(clicks.impression.max()) + 1, np.int64)
    np.maximum.at(last, clicks.impression[clicks.clicked], clicks.position[clicks.clicked].astype(np.int64))
    return last


def continuation(clicks: Clicks) -> Floats:
    """Return the probability of going on after a click at each position; 1 where none was clicked."""
    last = last_clicks(clicks)
    number = np.bincount(clicks.position[clicks.clicked] - 1, minlength=clicks.n_positions)
    return 1.0 - np.bincount(last[last > 0] - 1, minlength=clicks.n_positions) / np.maximum(number, 1)


_PROPENSITIES = ("auto", "em", "harvesting")
_MIN_PROPENSITY = 1e-4
_NINETY_PER_CENT = 1.645
_TOLD_FACTOR = 2.0
"""Factor within which a propensity is known, in 90 % of logs, from which on that is said."""


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
    Give features where hardly any item moved: without them nothing then distinguishes a good position from good items,
    and a log in which no item moved is refused.

    Parameters
    ----------
    propensity
        ``"em"`` or ``"harvesting"``; ``"auto"`` harvests where items clicked at two positions connect all that moved
        items connect, and takes EM otherwise and with features.
    ridge
        Pull of the regression's weights towards 0, where there are features.
    tol, max_iter
        EM stops when no propensity moves by more than ``tol``, or after ``max_iter`` rounds.

    Notes
    -----
    Only ratios of propensities are known; the largest is set to 1. Harvesting solves weighted least squares for
    :math:`\log \theta` over all pairs of positions in place of the likelihood of the paper: the ratio of a pair has
    the weight of its clicks. Positions that no moved item connects, through others perhaps, cannot be compared: a
    group of them continues the nearest one, the first position as likely to be examined as its neighbour, with a
    warning. Another one names positions of which the moved items tell too little. Weights of clicks, the inverse of
    propensities, are bounded by one more than the clicks that a position would have, on items shown elsewhere as often,
    if it were examined as often as the best, and by 100; a warning says where.
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
        shown_at: Floats = np.bincount(cells.position, cells.shown, clicks.n_positions).astype(np.float64)
        groups = _groups(shared * shared.T > 0, shown_at)
        # an item that is clicked at one of its positions tells of both, which EM makes use of, and features of all
        by_em = [np.flatnonzero(shown_at)] if features is not None else _groups(shared + shared.T > 0, shown_at)
        harvests = self.propensity == "auto" and features is None and len(groups) == len(by_em)
        if self.propensity == "harvesting" or harvests:
            _expect_moves(groups, cells, self.propensity)
            theta = _harvest(shared)
        else:
            _expect_moves(by_em, cells, self.propensity)
            groups, theta = by_em, self._by_em(cells, clicks, features)
        if features is None:
            _warn_of_few_clicks(shared, theta, groups)
        theta = np.maximum(_join_groups(theta, groups), _MIN_PROPENSITY)
        n, clicked = len(clicks.items), np.bincount(cells.item, cells.clicked, len(clicks.items)).astype(np.float64)

        def fit_at(theta: Floats, log_likelihood: float = 0.0) -> ClickFit:
            examined: Floats = np.bincount(cells.item, cells.shown * theta[cells.position], n).astype(np.float64)
            return ClickFit(clicks, "position_bias", theta, examined, clicked, log_likelihood)

        elsewhere = np.bincount(cells.item, cells.shown, n)[cells.item] - cells.shown
        # what an item shown often here and seldom elsewhere tells of the position is limited by the latter
        compared = cells.shown if features is not None else np.minimum(cells.shown, elsewhere)
        wanted = compared * fit_at(theta).relevance[cells.item]
        expected: Floats = np.bincount(cells.position, wanted, clicks.n_positions).astype(np.float64)
        # positions without an item have no clicks to be weighed, and nothing was compared at one alone
        joined = np.concatenate([group for group in groups if len(group) > 1 or len(groups) == 1])
        theta = bound_propensities(theta, np.where(np.isin(np.arange(len(theta)), joined), expected, np.inf))
        chance = np.clip(theta[cells.position] * fit_at(theta).relevance[cells.item], 1e-9, 1 - 1e-9)
        likelihood = cells.clicked * np.log(chance) + (cells.shown - cells.clicked) * np.log1p(-chance)
        return fit_at(theta, float(likelihood.sum()))

    def _by_em(self, cells: _Cells, clicks: Clicks, features: AnyFloats | None) -> Floats:
        """Propensities by EM, from those that fall with the position."""
        from scipy.special import expit

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
                gamma = expit(np.clip(design @ weights, -30, 30))
            top = max(float(new.max()), 1e-12)
            new, gamma = np.clip(new / top, _MIN_PROPENSITY, 1.0), np.clip(gamma * top, 1e-6, 1 - 1e-6)
            moved, theta = float(np.abs(new - theta).max()), new
            if moved <= self.tol:
                return theta
        warn(
            f"position_bias moved a propensity by {moved:.2g} in the last of {self.max_iter} rounds; raise max_iter",
            ConvergenceWarning,
        )
        return theta


def _standardise(features: AnyFloats) -> Floats:
    """Features of mean 0 and variance 1, with a column of ones; missing ones are the mean."""
    matrix = np.asarray(features, np.float64)
    centred = np.where(np.isnan(matrix), 0.0, matrix - np.nanmean(matrix, axis=0))
    spread = centred.std(axis=0)
    scaled = centred[:, spread > 0] / spread[spread > 0]
    return np.column_stack([np.ones(len(matrix)), scaled])


def _newton_step(design: Floats, weights: Floats, successes: Floats, trials: Floats, ridge: float) -> Floats:
    """Weights of a logistic regression of shares after one Newton step."""
    from scipy.special import expit

    chance = expit(np.clip(design @ weights, -30, 30))
    pull = ridge * np.concatenate([[1e-6], np.ones(len(weights) - 1)])
    gradient = design.T @ (successes - trials * chance) - pull * weights
    bend = (design * (trials * chance * (1 - chance))[:, None]).T @ design + np.diag(pull)
    return weights + np.linalg.solve(bend, gradient)


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


def _groups(links: Bools, shown_at: Floats) -> list[Counts]:
    """Positions that moved items connect, the group of most positions first, then that which showed most."""
    from scipy.sparse.csgraph import connected_components

    places = np.flatnonzero(shown_at)
    code = connected_components(links[np.ix_(places, places)], directed=False)[1]
    groups = [places[code == one] for one in np.unique(code)]
    return sorted(groups, key=lambda group: (-len(group), -shown_at[group].sum()))


def _expect_moves(groups: list[Counts], cells: _Cells, propensity: str) -> None:
    """Refuse a log in which no two positions can be compared."""
    if len(groups) == 1 or len(groups[0]) > 1:
        return
    what = "no item was shown at two positions"
    if (np.diff(cells.item) == 0).any():
        what = "no item that was shown at two positions was clicked"
        what += " at both" if propensity == "harvesting" else ""
    raise JudgmentError(
        f"{what}, so good positions cannot be distinguished from good items; show some items at other positions too, "
        "or give features="
    )


def _harvest(sums: Floats) -> Floats:
    """Propensities from items shown at two positions or more, each group of positions on a level of its own."""
    n_positions = len(sums)
    ratio, weight = np.zeros((n_positions, n_positions)), np.zeros((n_positions, n_positions))
    both = sums * sums.T
    known = (both > 0) & ~np.eye(n_positions, dtype=bool)
    ratio[known] = np.log(sums[known] / sums.T[known])
    weight[known] = both[known] / (sums + sums.T)[known]
    laplacian = np.diag(weight.sum(axis=1)) - weight
    values = np.linalg.lstsq(laplacian + 1e-9 * np.eye(n_positions), (weight * ratio).sum(axis=1), rcond=None)[0]
    return np.exp(values - values.max())


def _warn_of_few_clicks(sums: Floats, theta: Floats, groups: list[Counts]) -> None:
    """Say which propensities rest on few clicks on items that moved, of which the likeliest of a group is known."""
    half = sums + 0.5
    weight = np.where((sums + sums.T > 0) & ~np.eye(len(sums), dtype=bool), half * half.T / (half + half.T), 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    factor = np.ones(len(sums))
    for group in groups:
        inverse = np.linalg.pinv(laplacian[np.ix_(group, group)], hermitian=True)
        top, own = int(theta[group].argmax()), np.diagonal(inverse)
        factor[group] = np.exp(_NINETY_PER_CENT * np.sqrt(np.maximum(own + own[top] - 2.0 * inverse[top], 0.0)))
    loose = np.flatnonzero(factor > _TOLD_FACTOR)
    if len(loose):
        warn(
            f"few clicks on items that moved tell of {name_positions(loose + 1)}, so how often users look there is "
            f"known within a factor of {factor[loose].max():.2g} only (90 %); show more items at several positions, or "
            "give features="
        )


def _join_groups(theta: Floats, groups: list[Counts]) -> Floats:
    """Propensities in which a group continues the nearest one, which is said, as does a position without items."""
    placed, *rest = groups
    theta = theta / theta[placed].max()
    empty = np.setdiff1d(np.arange(len(theta)), np.concatenate(groups))
    theta[empty] = 1.0
    rest += list(empty[:, None])
    apart, taken = [], []
    while rest:
        far = [np.abs(group[:, None] - placed) for group in rest]
        nearest = int(np.argmin([one.min() for one in far]))
        group = rest.pop(nearest)
        row, column = np.unravel_index(far[nearest].argmin(), far[nearest].shape)
        own, other = group[row], placed[column]
        theta[group] *= theta[other] / theta[own]
        placed = np.concatenate([placed, group])
        if own not in empty:
            apart.append(name_positions(group + 1))
            taken.append(f"position {own + 1} is given that of position {other + 1}")
    if taken:
        warn(
            f"the propensities of {', of '.join(apart)} cannot be compared with those of "
            f"{name_positions(groups[0] + 1)}, since no clicked item was shown at both: {', '.join(taken)}; show some "
            "items at both, or give features="
        )
    return theta
