"""Team-draft interleaving of two rankings, and the credit that clicks give to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..data.showing import Shown
from ..metrics.significance import mean_interval, paired_randomisation
from ..protocols import Counts
from ..wording import counted
from .alignment import Scored

SCHEMA: dict[str, Any] = {
    "impression": pl.Int64, "query": pl.String, "position": pl.Int64, "item": pl.String, "team": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class Credit(Shown):
    """What clicks on interleaved lists say of two rankings.

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
        left = pl.when(pl.col("winner") == self.teams[0]).then(pl.lit("left"))
        winner = left.when(pl.col("winner") == self.teams[1]).then(pl.lit("right")).otherwise(pl.lit("tie"))
        return self.impressions.select(
            "query", left=pl.lit(self.teams[0]), right=pl.lit(self.teams[1]),
            annotator=pl.format("{}/{}", "query", "impression"), winner=winner,
        )  # fmt: skip


def draft_teams(runs: dict[str, Scored], *, k: int, n: int, seed: int) -> pl.DataFrame:
    """Return ``n`` interleaved lists of the first ``k`` places for each query that both rankings have."""
    orders = [_orders(run) for run in runs.values()]
    names = list(runs)
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, str, int, str, str]] = []
    for query in sorted(set(orders[0]) & set(orders[1])):
        for impression in range(1, n + 1):
            drafted = _draft(orders[0][query], orders[1][query], k, rng)
            rows += [(impression, query, place + 1, item, names[team]) for place, (item, team) in enumerate(drafted)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _orders(run: Scored) -> dict[str, list[str]]:
    """The items of each query, best first; equal scores by id."""
    query = run.items.query_ids().cast(pl.String) if not run.items.single else pl.repeat("", len(run.items), eager=True)
    frame = pl.DataFrame({"query": query, "item": run.items.ids.cast(pl.String), "score": run.scores})
    ordered = frame.sort(["query", "score", "item"], descending=[False, True, False])
    listed = ordered.group_by("query", maintain_order=True).agg("item")
    return dict(zip(listed["query"].to_list(), listed["item"].to_list(), strict=True))


def _draft(first: list[str], second: list[str], k: int, rng: np.random.Generator) -> list[tuple[str, int]]:
    """One list: in each round a coin says which team picks first, and each takes its best item that is not taken."""
    taken: set[str] = set()
    drafted: list[tuple[str, int]] = []
    lists, places = (first, second), [0, 0]
    while len(drafted) < k:
        before = len(drafted)
        for team in (0, 1) if rng.random() < 0.5 else (1, 0):
            while places[team] < len(lists[team]) and lists[team][places[team]] in taken:
                places[team] += 1
            if places[team] < len(lists[team]) and len(drafted) < k:
                item = lists[team][places[team]]
                taken.add(item)
                drafted.append((item, team))
        if len(drafted) == before:
            break
    return drafted


def credit_teams(shown: pl.DataFrame, clicked: Counts, *, level: float, seed: int) -> Credit:
    """Return the credit of two teams from the number of clicks on each shown row.

    Clicks on a team's items are its credit; an impression is won by the team with more [Radlinski08]_. The preference
    is that of [Chapelle12]_.
    """
    names = sorted(shown["team"].unique().to_list())
    first = shown["team"] == names[0]
    counts = shown.with_columns(
        a=pl.Series(clicked) * first.cast(pl.Int64), b=pl.Series(clicked) * (~first).cast(pl.Int64)
    )
    table = counts.group_by(["query", "impression"]).agg(clicks_a=pl.col("a").sum(), clicks_b=pl.col("b").sum())
    ahead_a = pl.when(pl.col("clicks_a") > pl.col("clicks_b")).then(pl.lit(names[0]))
    winner = ahead_a.when(pl.col("clicks_a") < pl.col("clicks_b")).then(pl.lit(names[1])).otherwise(pl.lit("tie"))
    table = table.with_columns(winner=winner).sort(["query", "impression"])
    table = table.select("impression", "query", "clicks_a", "clicks_b", "winner")
    ahead = table["clicks_a"].to_numpy() - table["clicks_b"].to_numpy()
    wins, losses = int((ahead > 0).sum()), int((ahead < 0).sum())
    score = pl.DataFrame({"query": table["query"], "score": 0.5 * np.sign(ahead)})
    by_query = score.group_by("query", maintain_order=True).agg(pl.col("score").mean())["score"].to_numpy()
    several = len(by_query) > 1
    lower, upper = mean_interval(by_query, level) if several else (None, None)
    p_query = paired_randomisation(by_query, np.zeros(len(by_query)), seed=seed) if several else None
    return Credit(
        table, (names[0], names[1]), wins, losses, len(table) - wins - losses, float(score["score"].mean() or 0.0),  # type: ignore[arg-type]
        lower, upper, sign_test(wins, losses), p_query,
    )  # fmt: skip


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p value of an exact sign test.

    Examples
    --------
    >>> round(sign_test(8, 2), 4)
    0.1094
    """
    from scipy.special import bdtr

    if not wins + losses:
        return 1.0
    return float(min(1.0, 2.0 * bdtr(min(wins, losses), wins + losses, 0.5)))
