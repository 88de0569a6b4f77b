"""Rank centrality of 1,000 items from 1M preferences, against choix.

Choix takes a list of (winner, loser) and knows no ties, so that these are left out for both; making its list and our
`Preferences` is not counted. It solves a dense system of all items.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import log_likelihood, write_preferences
from .workload import Call, Size, Workload, faster, same


def _prepare(folder: Path, size: Size) -> None:
    write_preferences(folder, **size)


def _built(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank import read_judgments
    from crowdrank.aggregators import RankCentrality

    preferences = read_judgments(folder / "preferences.parquet")
    decided = preferences.select(preferences.outcome != 0)
    # choix adds nothing to the wins either
    return lambda: RankCentrality(alpha=1e-9).fit(decided).scores


def _choix(folder: Path, size: Size) -> Callable[[], Any]:
    import choix
    import numpy as np

    codes = np.load(folder / "codes.npz")
    left, right, outcome = codes["left"], codes["right"], codes["outcome"]
    winner, loser = np.where(outcome > 0, left, right), np.where(outcome > 0, right, left)
    wins = list(zip(winner[outcome != 0].tolist(), loser[outcome != 0].tolist(), strict=True))
    return lambda: choix.rank_centrality(size["n_items"], wins)


WORKLOAD = Workload(
    name="rank_centrality",
    what="Rank centrality, {n_items:,} items, {n_rows:,} preferences",
    sizes={
        "tiny": {"n_items": 20, "n_rows": 2_000},
        "small": {"n_items": 200, "n_rows": 100_000},
        "full": {"n_items": 1_000, "n_rows": 1_000_000},
    },
    prepare=_prepare,
    sides={
        "built": Call("crowdrank, from Preferences", _built, log_likelihood),
        "choix": Call("choix, from a list of wins", _choix, log_likelihood),
    },
    floors=(faster("built", "choix", 8), same("built", "choix", 1e-9)),
    figure="log-likelihood",
    needs=("choix", "pyarrow"),
)
