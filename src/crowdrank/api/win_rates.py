"""``win_rate``: how often one item beats another, by few people and many judgments of a program."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..data.judgments import Mixed, Preferences
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..metrics.prediction_powered import PoweredMean, prediction_powered_mean
from ..wording import counted
from .aggregation import as_judgments, check_level

_FEW_QUERIES = 30
"""Queries that people judged below which the normal interval is too narrow."""


def win_rate(people: Any, judge: Any, a: Any, b: Any, *, level: float = 0.95) -> dict[str, float]:
    r"""Return how often people prefer item ``a`` to item ``b``, with the help of a judge that need not be right.

    The people judged few queries, the judge (a language model, say) these and many more. Where both judged, it is seen
    how far the judge is off, and what the judge says of all queries is corrected by that: prediction-powered inference
    [PPI23]_, which assumes no model of judge or items. The interval holds however bad the judge is, and is narrower
    than that of the people alone where the judge agrees with them.

    All answers of a side about a query are averaged first: both orders, repeats and several people. A tie is half a
    win.

    Parameters
    ----------
    people, judge
        Preferences with queries, or a frame or path of them.
    a, b
        Ids of the items.
    level
        Of the interval.

    Returns
    -------
    dict
        ``share`` with ``lower`` and ``upper``; ``people_share``, ``people_lower``, ``people_upper`` from people alone;
        ``judge_share``, over all queries that the judge judged; ``lam``, how much the judge counts (0 to 1);
        ``n_both`` and ``n_judge``, the queries judged by both and by the judge only.

    Examples
    --------
    >>> rows = [("ann", f"q{i}", "x", "y", "x" if i % 3 else "y") for i in range(30)]
    >>> said = [("bot", f"q{i}", "x", "y", "x" if i % 3 else "y") for i in range(300)]
    >>> import crowdrank as cr
    >>> found = win_rate(cr.Preferences.from_rows(rows), cr.Preferences.from_rows(said), "x", "y")
    >>> round(found["share"], 3), round(found["lam"], 2), found["n_judge"]
    (0.667, 0.9, 270)
    """
    check_level(level, "level")
    if str(a) == str(b):
        raise ParameterError("an item has no win rate against itself; name two items")
    measured, predicted = _shares(people, "people", a, b), _shares(judge, "judge", a, b)
    both = measured.join(predicted, on="query", suffix="_judge").sort("query")
    rest = predicted.join(measured, on="query", how="anti").sort("query")
    if len(both) < 2:
        raise JudgmentError(
            f"people and judge have {counted(len(both), 'query')} in common on {a!r} and {b!r}; at least 2 are needed, "
            "better 50: have people judge some of the queries that the judge judged"
        )
    if len(measured) > len(both):
        say(f"{counted(len(measured) - len(both), 'query')} that only people judged left out")
    if len(both) < _FEW_QUERIES:
        say(f"only {len(both)} queries were judged by people and judge: the interval is rough below {_FEW_QUERIES}")
    h, f, other = both["share"].to_numpy(), both["share_judge"].to_numpy(), rest["share"].to_numpy()
    joint = prediction_powered_mean(h, f, other, level=level)
    alone = prediction_powered_mean(h, f, other, level=level, lam=0.0)
    return {
        **_clip_share(joint), **_clip_share(alone, "people_"), "judge_share": float(np.concatenate([f, other]).mean()),
        "lam": joint.lam, "n_both": len(both), "n_judge": len(rest),
    }  # fmt: skip


def _clip_share(estimate: PoweredMean, prefix: str = "") -> dict[str, float]:
    """Share and interval within 0 to 1."""
    names = {"share": estimate.mean, "lower": estimate.lower, "upper": estimate.upper}
    return {f"{prefix}{name}": min(max(value, 0.0), 1.0) for name, value in names.items()}


def _shares(judgments: Any, who: str, a: Any, b: Any) -> pl.DataFrame:
    """Mean share of wins of ``a`` against ``b`` in each query: query, share."""
    preferences = as_judgments(judgments)
    if isinstance(preferences, Mixed) or not isinstance(preferences, Preferences):
        raise JudgmentError(f"win_rate takes preferences, and {who} gave {preferences.kind}s; call as_preferences()")
    items = preferences.items
    query = items.query_ids().gather(preferences.left)
    if preferences.block is not None and preferences.blocks is not None:
        query = preferences.blocks.ids.gather(preferences.block)
    ids = items.ids.cast(pl.String)
    left, right = ids.gather(preferences.left), ids.gather(preferences.right)
    one, other = str(a), str(b)
    sign = np.where((left == one) & (right == other), 1, 0) - np.where((left == other) & (right == one), 1, 0)
    table = pl.DataFrame({
        "query": query.cast(pl.String), "share": 0.5 + 0.5 * sign * preferences.outcome,
        "weight": np.ones(len(preferences)) if preferences.weight is None else preferences.weight,
    }).filter(pl.Series(sign != 0))  # fmt: skip
    if not len(table):
        raise JudgmentError(f"{who} never compared {a!r} with {b!r}; name two items that were compared")
    mean = (pl.col("share") * pl.col("weight")).sum() / pl.col("weight").sum()
    return table.group_by("query").agg(mean.alias("share"))
