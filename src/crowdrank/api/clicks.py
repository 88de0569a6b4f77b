"""The verb fit_clicks: relevance from a log of clicks, freed of where items were shown."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import polars as pl

from ..data.clicks import Clicks
from ..data.column_names import quote_names
from ..data.frames import to_frame
from ..errors import JudgmentError, ParameterError
from ..io.tables import read_table
from ..io.truth import as_scored, read_clicks
from ..models.clicks.click_models import Cascade, ClickFit, PositionBias
from ..validation.interleaving import SCHEMA, Credit, credit_teams, draft_teams
from ..wording import one_of, option
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


def interleave(a: Any, b: Any, *, k: int = 10, n: int = 1, seed: int = 0) -> pl.DataFrame:
    """Return two rankings mixed into one list by team draft: impression, query, position, item, team.

    In each round a coin says which ranking picks first; each takes its best item that is not in the list yet, and the
    item is of its team [Radlinski08]_. Show a new draft at each impression, keep the table, and give it with the clicks
    to :func:`credit`.

    Parameters
    ----------
    a, b
        The rankings: a consensus, a frame of query, item and score, or the file of either or of a TREC run. The teams
        are called by the names of the runs, by ``a`` and ``b`` where those are equal.
    k
        Places of a list.
    n
        Drafts for each query; raise it to have one for each impression expected.
    seed
        Seed of the coins.

    Examples
    --------
    >>> one, two = {"item": list("xyz"), "score": [3, 2, 1]}, {"item": list("xyz"), "score": [1, 2, 3]}
    >>> interleave(one, two, k=2)["item"].to_list()
    ['z', 'x']
    """
    for name, value in (("k", k), ("n", n)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{option(name, value)} is not a number of lists or places; give at least 1")
    runs = []
    for given in (a, b):
        scored = as_scored(given)
        if len(scored) != 1:
            raise ParameterError(f"{given} holds {len(scored)} runs ({', '.join(scored)}); give a file with one")
        runs.append(next(iter(scored.items())))
    names = [name for name, _ in runs] if runs[0][0] != runs[1][0] else ["a", "b"]
    drafted = draft_teams({names[0]: runs[0][1], names[1]: runs[1][1]}, k=k, n=n, seed=seed)
    if not len(drafted):
        raise JudgmentError("the two rankings share no query; check that their query ids are the same")
    return drafted


def credit(shown: Any, clicks: Any, *, level: float = 0.95, seed: int = 0) -> Credit:
    """Return which of two interleaved rankings the clicks prefer, with tests.

    Parameters
    ----------
    shown
        What :func:`interleave` returned, or a file of it: the lists that were shown.
    clicks
        A frame or file of query, item and impression, one row per click, or with a column ``clicked`` of how many. The
        impression may be missing where each query was shown once.
    level, seed
        Level of the interval, and the seed of the test over queries.

    Examples
    --------
    >>> one, two = {"item": list("xyz"), "score": [3, 2, 1]}, {"item": list("xyz"), "score": [1, 2, 3]}
    >>> shown = interleave(one, two, k=2, n=6)
    >>> found = credit(shown, shown.filter(item="x").select("impression", "query", "item"))
    >>> found.wins, found.losses, found.p_value
    (6, 0, 0.03125)
    """
    if not 0 < level < 1:
        raise ParameterError(f"level={level!r} is not a probability; give a number between 0 and 1, for example 0.95")
    lists = _table(shown, tuple(SCHEMA), "shown")
    pressed = _table(clicks, ("query", "item"), "clicks")
    if lists["team"].n_unique() != 2:
        raise JudgmentError(f"the shown lists have {lists['team'].n_unique()} teams; interleaving is of two rankings")
    keys = ["impression", "query", "item"] if "impression" in pressed.columns else ["query", "item"]
    if len(keys) == 2 and lists.select("impression", "query").unique().height > lists["query"].n_unique():
        raise JudgmentError("a query was shown more than once; add the impression of each click as a column impression")
    number = pressed["clicked"].cast(pl.Float64, strict=False) if "clicked" in pressed.columns else None
    if number is not None and (number.null_count() or not ((number >= 0) & (number == number.round())).all()):
        row = int(((number >= 0) & (number == number.round())).fill_null(False).not_().arg_true()[0])
        raise JudgmentError(f"row {row + 1} of the clicks has clicked = {pressed['clicked'][row]!r}; give 0, 1, 2, ...")
    amount = pl.Series("amount", np.ones(len(pressed), np.int64) if number is None else number.cast(pl.Int64))
    amounts = pressed.select(pl.col(keys).cast(pl.String)).with_columns(amount)
    known = lists.select(pl.col(keys).cast(pl.String)).with_row_index("row")
    credited = amounts.with_row_index("click").join(known, on=keys, how="left", maintain_order="left")
    if credited["row"].null_count():
        lost = credited.filter(pl.col("row").is_null() & (pl.col("amount") > 0))
        if len(lost):
            one = lost.row(0, named=True)
            raise JudgmentError(
                f"row {one['click'] + 1} of the clicks is on item {one['item']!r} of query {one['query']!r}, which was "
                "not shown there; check the ids and the impression"
            )
    credited = credited.drop_nulls("row")
    clicked = np.bincount(credited["row"].to_numpy(), credited["amount"].to_numpy(), len(lists)).astype(np.int64)
    return credit_teams(lists, clicked, level=level, seed=seed)


def _table(data: Any, needed: tuple[str, ...], what: str) -> pl.DataFrame:
    """A table with the columns it needs."""
    frame = read_table(data) if isinstance(data, str | os.PathLike) else to_frame(data)
    lacking = [name for name in needed if name not in frame.columns]
    if lacking:
        raise JudgmentError(
            f"{what} needs the columns {', '.join(needed)}; its columns are {quote_names(frame.columns)}"
        )
    return frame.with_columns(pl.col("query").cast(pl.String), pl.col("item").cast(pl.String))
