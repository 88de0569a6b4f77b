"""The verb fit_clicks: relevance from a log of clicks, freed of where items were shown."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import bdtr

from ..data.column_names import quote_names
from ..data.frames import to_frame
from ..data.showing import Shown
from ..errors import JudgmentError, ParameterError
from ..io.tables import read_table
from ..io.truth import as_scored, read_clicks
from ..metrics.significance import expect_level, mean_interval, paired_randomisation
from ..models.clicks.click_models import Cascade, ClickFit, PositionBias
from ..validation.run_evaluation import Scored
from ..wording import counted, one_of, option
from .sentences import words_of
from .training import as_features

_SCHEMA: dict[str, Any] = dict.fromkeys(("impression", "query", "position", "item", "team"), pl.String)
_SCHEMA |= {"impression": pl.Int64, "position": pl.Int64}


@dataclass(frozen=True)
class Credit(Shown):
    """What clicks on interleaved lists say of two rankings.

    Clicks on a team's items are its credit; an impression is won by the team with more [Radlinski08]_. The preference
    is that of [Chapelle12]_.

    Parameters
    ----------
    impressions
        impression, query, the clicks on the items of each team (``clicks_a``, ``clicks_b``) and the winner (the name of
        a team, or ``"tie"``).
    teams
        Names of the two rankings.
    wins, losses, ties
        Impressions that the first ranking won, lost, and in which neither had more clicks.
    preference
        Share of impressions won by the first ranking, ties counted half, less a half: 0 where none is better.
    lower, upper
        Interval of the preference over queries; ``None`` for a single query.
    p_value
        Exact sign test over the impressions with a winner.
    p_query
        Paired randomisation over queries, which allows for impressions of a query being alike; ``None`` for one.
    """

    impressions: pl.DataFrame
    teams: tuple[str, str]
    wins: int
    losses: int
    ties: int
    preference: float
    lower: float | None
    upper: float | None
    p_value: float
    p_query: float | None

    def __len__(self) -> int:
        return len(self.impressions)

    def __repr__(self) -> str:
        won = f"{self.teams[0]} {self.wins:,}, {self.teams[1]} {self.losses:,}, {counted(self.ties, 'tie')}"
        between = "" if self.lower is None else f" ({self.lower:+.3f} to {self.upper:+.3f})"
        return f"Credit({won}; preference {self.preference:+.3f}{between}, p = {self.p_value:.3g})"

    def frame(self) -> pl.DataFrame:
        """Return a row for each impression."""
        return self.impressions

    def preferences(self) -> pl.DataFrame:
        """Return the impressions as preferences between the two rankings: query, left, right, annotator, winner.

        The impression is the annotator. :meth:`crowdrank.Preferences.from_frame` reads the table, and several such
        tables together rank many systems by ``bradley_terry`` across queries.
        """
        left, right = self.teams
        winner = pl.col("winner").replace({left: "left", right: "right"})
        annotator = pl.format("{}/{}", "query", "impression")
        return self.impressions.select(
            "query", left=pl.lit(left), right=pl.lit(right), annotator=annotator, winner=winner
        )


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
    one_of(model, ("position_bias", "cascade", "dependent_click"), "model", of_verb=True)
    one_of(propensity, ("auto", "em", "harvesting"), "propensity", of_verb=True)
    log = read_clicks(clicks)
    if model != "position_bias":
        if features is not None or propensity != "auto":
            raise ParameterError(f"{model} estimates no propensities; leave features= and propensity= out")
        return Cascade(after_click="stop" if model == "cascade" else "go_on").fit(log)
    if features is not None and propensity == "harvesting":
        raise ParameterError("features are for regression EM; leave propensity='harvesting' out")
    rows = None
    if features is not None:
        # those of the items of the log, in the order of their codes
        known = as_features(features)
        codes = known.items.codes_of(log.items, "features", "log")
        if (codes < 0).any():
            lacking = log.items.ids[int((codes < 0).argmax())]
            raise JudgmentError(f"item {lacking!r} of the log has no features; add its row, or leave features= out")
        rows = known.matrix[codes]
    return PositionBias(propensity=propensity).fit(log, features=rows)


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
    orders, rng = [_orders(run) for _, run in runs], np.random.default_rng(seed)
    rows: list[tuple[int, str, int, str, str]] = []
    for query in sorted(set(orders[0]) & set(orders[1])):
        for impression in range(1, n + 1):
            drafted = _draft(orders[0][query], orders[1][query], k, rng)
            rows += [(impression, query, place + 1, item, names[team]) for place, (item, team) in enumerate(drafted)]
    if not rows:
        raise JudgmentError("the two rankings share no query; check that their query ids are the same")
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


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
    expect_level(level)
    lists = _table(shown, tuple(_SCHEMA), "shown")
    pressed = _table(clicks, ("query", "item"), "clicks")
    if lists["team"].null_count():
        raise JudgmentError("a row of the shown lists has no team; give the lists as they were drawn")
    teams = lists["team"].unique().sort().to_list()
    if len(teams) != 2:
        raise JudgmentError(f"the shown lists have {len(teams)} teams; interleaving is of two rankings")
    keys = ["impression", "query", "item"] if "impression" in pressed.columns else ["query", "item"]
    if len(keys) == 2 and lists.select("impression", "query").unique().height > lists["query"].n_unique():
        raise JudgmentError("a query was shown more than once; add the impression of each click as a column impression")
    number = pl.repeat(1.0, len(pressed), eager=True)
    if "clicked" in pressed.columns:
        number = pressed["clicked"].cast(pl.Float64, strict=False)
    for row in ((number >= 0) & (number == number.round())).fill_null(False).not_().arg_true().to_list():
        raise JudgmentError(f"row {row + 1} of the clicks has clicked = {pressed['clicked'][row]!r}; give 0, 1, 2, ...")
    amounts = pressed.select(pl.col(keys).cast(pl.String)).with_columns(amount=number.cast(pl.Int64))
    known = lists.select(pl.col(keys).cast(pl.String)).with_row_index("row")
    credited = amounts.with_row_index("click").join(known, on=keys, how="left", maintain_order="left")
    for one in credited.filter(pl.col("row").is_null() & (pl.col("amount") > 0)).iter_rows(named=True):
        where = f"is on item {one['item']!r} of query {one['query']!r}, which was not shown there"
        raise JudgmentError(f"row {one['click'] + 1} of the clicks {where}; check the ids and the impression")
    credited = credited.drop_nulls("row")
    clicked = np.bincount(credited["row"].to_numpy(), credited["amount"].to_numpy(), len(lists)).astype(np.int64)
    counts = lists.with_columns(clicks=pl.Series(clicked))
    sums = [pl.col("clicks").filter(pl.col("team") == team).sum() for team in teams]
    table = counts.group_by("query", "impression").agg(clicks_a=sums[0], clicks_b=sums[1]).sort("query", "impression")
    ahead = table["clicks_a"].to_numpy() - table["clicks_b"].to_numpy()
    winner = pl.Series(np.array([teams[1], "tie", teams[0]])[np.sign(ahead) + 1])
    wins, losses = int((ahead > 0).sum()), int((ahead < 0).sum())
    score = pl.DataFrame({"query": table["query"], "score": 0.5 * np.sign(ahead)})
    by_query = score.group_by("query", maintain_order=True).agg(pl.col("score").mean())["score"].to_numpy()
    # an exact sign test, of two sides
    p_value = float(min(1.0, 2.0 * bdtr(min(wins, losses), wins + losses, 0.5))) if wins + losses else 1.0
    several = len(by_query) > 1
    lower, upper = mean_interval(by_query, level) if several else (None, None)
    return Credit(
        table.select("impression", "query", "clicks_a", "clicks_b", winner=winner), (teams[0], teams[1]),
        wins, losses, len(table) - wins - losses, float(score["score"].mean() or 0.0),  # type: ignore[arg-type]
        lower, upper, p_value,
        paired_randomisation(by_query, np.zeros(len(by_query)), seed=seed) if several else None,
    )  # fmt: skip


def _table(data: Any, needed: tuple[str, ...], what: str) -> pl.DataFrame:
    """A table with the columns it needs."""
    frame = read_table(data) if isinstance(data, str | os.PathLike) else to_frame(data)
    if not set(needed) <= set(frame.columns):
        columns = quote_names(frame.columns)
        raise JudgmentError(words_of("lacking_columns", what=what, needed=", ".join(needed), columns=columns))
    return frame.with_columns(pl.col("query").cast(pl.String), pl.col("item").cast(pl.String))


def _orders(run: Scored) -> dict[str, list[str]]:
    """The items of each query, best first; equal scores by id."""
    query = run.items.query_ids().cast(pl.String) if not run.items.single else pl.repeat("", len(run.items), eager=True)
    frame = pl.DataFrame({"query": query, "item": run.items.ids.cast(pl.String), "score": run.scores})
    ordered = frame.sort(["query", "score", "item"], descending=[False, True, False])
    return dict(ordered.group_by("query", maintain_order=True).agg("item").iter_rows())


def _draft(first: list[str], second: list[str], k: int, rng: np.random.Generator) -> list[tuple[str, int]]:
    """One list: in each round a coin says which team picks first, and each takes its best item that is not taken."""
    drafted: dict[str, int] = {}
    lists = (iter(first), iter(second))
    before = -1
    while before < len(drafted) < k:
        before = len(drafted)
        for team in (0, 1) if rng.random() < 0.5 else (1, 0):
            item = next((one for one in lists[team] if one not in drafted), None)
            if item is not None and len(drafted) < k:
                drafted[item] = team
    return list(drafted.items())
