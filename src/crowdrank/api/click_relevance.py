"""The verb fit_clicks: relevance from a log of clicks, freed of where items were shown."""

from __future__ import annotations

from typing import Any

from ..data.clicks import Clicks
from ..errors import JudgmentError, ParameterError
from ..io.truth import read_clicks
from ..models.clicks.cascade import Cascade
from ..models.clicks.click_fit import ClickFit
from ..models.clicks.position_bias import PositionBias
from ..wording import one_of
from .training import as_features

MODELS = ("position_bias", "cascade", "dependent_click")


def fit_clicks(
    clicks: Any, model: str = "position_bias", *, propensity: str = "auto", features: Any | None = None
) -> ClickFit:
    """Return how relevant each shown item is, given where it was shown and how often it was clicked.

    Parameters
    ----------
    clicks
        What :func:`crowdrank.read_clicks` reads: a log with query, item, position and clicked [, impression].
    model
        ``"position_bias"`` (a click needs an examined position and a relevant item), ``"cascade"`` or
        ``"dependent_click"`` (the page is read from the top; these need the impression).
    propensity
        Of the first model: ``"em"``, ``"harvesting"``, or ``"auto"`` for the latter where items moved enough.
    features
        Features of the items, for regression EM: relevance is then a logistic regression on them while the propensities
        are estimated, which is needed where items hardly change their position.

    Examples
    --------
    >>> rows = {"query": list("qqqq"), "item": list("xyxy"), "position": [1, 2, 2, 1], "clicked": [0, 1, 1, 1]}
    >>> log = {name: 20 * column for name, column in rows.items()}
    >>> found = fit_clicks(log)
    >>> found.frame().sort("relevance")["item"].to_list()
    ['x', 'y']
    """
    one_of(model, MODELS, "model", of_verb=True)
    one_of(propensity, ("auto", "em", "harvesting"), "propensity", of_verb=True)
    log = read_clicks(clicks)
    if model != "position_bias":
        if features is not None or propensity != "auto":
            raise ParameterError(f"{model} estimates no propensities; leave features= and propensity= out")
        return Cascade(after_click="stop" if model == "cascade" else "go_on").fit(log)
    if features is not None and propensity == "harvesting":
        raise ParameterError("features are for regression EM; leave propensity='harvesting' out")
    return PositionBias(propensity=propensity).fit(log, features=_rows(log, features))


def _rows(log: Clicks, features: Any | None) -> Any:
    """The features of the items of a log, in the order of their codes."""
    if features is None:
        return None
    known = as_features(features)
    codes = known.items.codes_of(log.items, "features", "log")
    if (codes < 0).any():
        lacking = log.items.ids[int((codes < 0).argmax())]
        raise JudgmentError(f"item {lacking!r} of the log has no features; add its row, or leave features= out")
    return known.matrix[codes]
