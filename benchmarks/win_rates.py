"""A win rate by few people and a judge of many queries, beside ppi-python: the same interval.

ppi-python gets the share of each query; ours reads preferences and makes the shares first.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .workload import Call, Peer, Size, Workload, same


def _prepare(folder: Path, size: Size) -> None:
    rng = np.random.default_rng(0)
    n, both = size["n_queries"], size["n_people"]
    people = (rng.random(n) < 0.55).astype(float)
    judge = np.where(rng.random(n) < 0.75, people, rng.random(n) < 0.6).astype(float)
    np.savez(folder / "shares.npz", people=people[:both], judge=judge[:both], elsewhere=judge[both:])


def _win_rate(folder: Path, size: Size) -> Callable[[], Any]:
    import crowdrank as cr

    shares = np.load(folder / "shares.npz")

    def preferences(who: str, share: Any) -> Any:
        n = len(share)
        winner = np.where(share > 0, "left", "right")
        columns = {"query": np.arange(n), "left": ["a"] * n, "right": ["b"] * n, "annotator": [who] * n}
        return cr.Preferences.from_frame({**columns, "winner": winner})

    people = preferences("ann", shares["people"])
    judge = preferences("bot", np.concatenate([shares["judge"], shares["elsewhere"]]))
    return lambda: cr.win_rate(people, judge, "a", "b")


def _lower(rate: Any, folder: Path) -> float:
    return float(rate["lower"])


WORKLOAD = Workload(
    name="win_rates",
    what="win rate of two items, {n_people:,} queries judged by people and {n_queries:,} by a program",
    sizes={
        "tiny": {"n_people": 40, "n_queries": 400},
        "small": {"n_people": 200, "n_queries": 10_000},
        "full": {"n_people": 500, "n_queries": 100_000},
    },
    prepare=_prepare,
    sides={
        "built": Call("crowdrank, from preferences", _win_rate, _lower),
        "ppi-python": Peer("ppi-python, from shares", "ppi_py", "ppi-python"),
    },
    floors=(same("built", "ppi-python", 1e-6),),
    figure="lower bound",
)
