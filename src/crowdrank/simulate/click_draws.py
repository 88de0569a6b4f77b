"""Logs of clicks with a known bias, drawn over known grades."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..data.clicks import Clicks
from ..data.truth import Truth
from ..errors import ParameterError
from ..protocols import Bools, Counts, Floats
from ..wording import one_of

_MODELS = ("position_bias", "cascade", "dependent_click")


def draw_clicks(
    truth: Truth,
    rankings: Any,
    *,
    n_impressions: int = 10,
    k: int = 10,
    model: str = "position_bias",
    eta: float = 1.0,
    noise: float = 0.1,
    go_on: float = 0.5,
    seed: int = 0,
) -> Clicks:
    r"""Return a log of clicks on the first ``k`` places of rankings.

    An examined item of grade :math:`g` is clicked with probability

    .. math:: \epsilon + (1 - \epsilon) \frac{2^g - 1}{2^{g_{max}} - 1},

    as is usual in simulations [Joachims17]_. Position :math:`k` is examined with probability :math:`k^{-\eta}`; in the
    cascade a page is read until the first click, in the dependent-click model the user goes on after a click with
    probability ``go_on``.

    Parameters
    ----------
    truth
        Grades of items.
    rankings
        Scores of the items of the truth by the ranker, or rankers, that showed them: arrays as long as the truth. Each
        impression is by one of them, in turn.
    n_impressions
        Pages of each query.
    k
        Places of a page.
    model
        ``"position_bias"``, ``"cascade"`` or ``"dependent_click"``.
    eta
        How fast examination falls with the position; 0 is no bias.
    noise
        Probability of a click on an examined item of grade 0.
    go_on
        Probability of reading on after a click, in the dependent-click model.
    seed
        Seed of the draws.
    """
    one_of(model, _MODELS, "model")
    if truth.grade is None or truth.form != "grade":
        raise ParameterError("clicks are drawn over grades; give a truth with grades")
    if n_impressions < 1 or k < 1 or not 0 <= noise <= 1 or not 0 <= go_on <= 1 or eta < 0:
        raise ParameterError("n_impressions and k are at least 1, noise and go_on probabilities, eta at least 0")
    rng = np.random.default_rng(seed)
    scores = [np.asarray(one, np.float64) for one in (rankings if isinstance(rankings, list | tuple) else [rankings])]
    gain = np.exp2(truth.grade) - 1.0
    appeal = noise + (1.0 - noise) * gain / max(float(gain.max()), 1e-12)
    parts = []
    for page in range(n_impressions):
        item, position = _page(truth, scores[page % len(scores)], k)
        query = truth.items.query[item]
        hit = rng.random(len(item)) < appeal[item]
        clicked = _examined_clicks(model, hit, position, query, eta, go_on, rng)
        parts.append((item, position, clicked, query.astype(np.int64) * n_impressions + page))
    item, position, clicked, impression = (np.concatenate(part) for part in zip(*parts, strict=True))
    ids = truth.items.frame()[item]
    frame = ids.with_columns(
        position=pl.Series(position), clicked=pl.Series(clicked.astype(np.int8)), impression=pl.Series(impression)
    )
    return Clicks.from_frame(frame)


def _page(truth: Truth, scores: Floats, k: int) -> tuple[Counts, Counts]:
    """Items of the first places of each query, and their positions."""
    items = truth.items
    order = np.lexsort((np.arange(len(items)), -scores, items.query))
    place = np.arange(len(items)) - items.offsets[items.query[order]]
    top = place < k
    return order[top].astype(np.int64), (place[top] + 1).astype(np.int64)


def _examined_clicks(
    model: str, hit: Bools, position: Counts, query: Any, eta: float, go_on: float, rng: np.random.Generator
) -> Bools:
    """Which hits are clicks, by how pages are read; rows lie page by page, from the top."""
    if model == "position_bias":
        seen: Bools = rng.random(len(hit)) < position.astype(float) ** -eta
        return hit & seen
    stops = hit & (rng.random(len(hit)) >= (0.0 if model == "cascade" else go_on))
    start = np.concatenate([[True], np.diff(query) != 0])
    passed: Counts = np.cumsum(stops, dtype=np.int64) - stops
    first = np.maximum.accumulate(np.where(start, np.arange(len(hit)), 0))
    read: Bools = passed == passed[first]
    return hit & read
