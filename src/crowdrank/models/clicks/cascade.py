"""Cascades: users read from the top and stop, for good or perhaps, at a click."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...data.clicks import Clicks
from ...errors import JudgmentError
from ...protocols import Bools, Floats
from ...wording import one_of
from .click_fit import ClickFit, bound_propensities

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
        examined = self._examined_rows(clicks)
        counted = examined & clicks.clicked
        n, n_positions = len(clicks.items), clicks.n_positions
        seen_at = np.bincount(clicks.position - 1, examined, n_positions)
        shown_at: Floats = np.bincount(clicks.position - 1, minlength=n_positions).astype(np.float64)
        propensity = bound_propensities(seen_at / np.maximum(shown_at, 1), shown_at)
        name = "cascade" if self.after_click == "stop" else "dependent_click"
        seen, hits = (np.bincount(clicks.item[mask], minlength=n).astype(np.float64) for mask in (examined, counted))
        click_fit = ClickFit(clicks, name, propensity, seen, hits, 0.0)
        chance = np.clip(click_fit.relevance[clicks.item[examined]], 1e-9, 1 - 1e-9)
        hit = clicks.clicked[examined]
        likelihood = float(np.log(np.where(hit, chance, 1.0 - chance)).sum()) + self._stops(clicks)
        return ClickFit(clicks, name, click_fit.propensity, seen, hits, likelihood)

    def _examined_rows(self, clicks: Clicks) -> Bools:
        """Mask of the rows up to the first click of their page, or up to the last one."""
        assert clicks.impression is not None
        n_pages = int(clicks.impression.max()) + 1
        end = np.full(n_pages, np.iinfo(np.int32).max)
        page, place = clicks.impression[clicks.clicked], clicks.position[clicks.clicked].astype(np.int64)
        if self.after_click == "stop":
            np.minimum.at(end, page, place)
        else:
            last = np.zeros(n_pages, np.int64)
            np.maximum.at(last, page, place)
            end = np.where(last > 0, last, end)
        examined: Bools = clicks.position <= end[clicks.impression]
        return examined

    def _stops(self, clicks: Clicks) -> float:
        """Log-likelihood of going on or stopping after clicks."""
        if self.after_click == "stop":
            return 0.0
        rates = continuation(clicks)
        number = np.bincount(clicks.position[clicks.clicked] - 1, minlength=clicks.n_positions)
        stay = np.clip(rates, 1e-9, 1 - 1e-9)
        return float((number * (rates * np.log(stay) + (1 - rates) * np.log1p(-stay))).sum())


def continuation(clicks: Clicks) -> Floats:
    """Return the probability of going on after a click at each position; 1 where none was clicked."""
    assert clicks.impression is not None
    last = np.zeros(int(clicks.impression.max()) + 1, np.int64)
    page, place = clicks.impression[clicks.clicked], clicks.position[clicks.clicked].astype(np.int64)
    np.maximum.at(last, page, place)
    number = np.bincount(place - 1, minlength=clicks.n_positions)
    ends = np.bincount(last[last > 0] - 1, minlength=clicks.n_positions)
    rates: Floats = 1.0 - ends / np.maximum(number, 1)
    return rates
