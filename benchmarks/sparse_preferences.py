"""Methods for preferences on 100,000 items and 10M preferences, of which hardly two compare the same pair.

A table of all pairs would take 80 GB. One annotator in ten is reversed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from crowdrank.registry import names

from .data import SEED, TIES, item_ids
from .workload import Call, Floor, Size, Workload, at_most_times, peak_under

METHODS = (
    "bradley_terry",
    "condorcet",
    "crowd_agg",
    "crowd_bt",
    "em_elo",
    "greedy_order",
    "rank_centrality",
    "singular_vector",
)
"""Those that claim to grow with the number of pairs that met; those in the registry are timed."""

MOST_GIGABYTES = 3.0


def _prepare(folder: Path, size: Size) -> None:
    """Write codes and true scores; reading 10M rows of text would take longer, and more memory, than most methods."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    n_items, n_rows, n_annotators = size["n_items"], size["n_rows"], size["n_annotators"]
    scores = rng.normal(size=n_items)
    left = rng.integers(0, n_items, n_rows)
    right = (left + rng.integers(1, n_items, n_rows)) % n_items
    annotator = rng.integers(0, n_annotators, n_rows)
    chance = 1 / (1 + np.exp(scores[right] - scores[left]))
    chance = np.where(annotator < n_annotators // 10, 1 - chance, chance)
    outcome = np.where(rng.random(n_rows) < chance, 1, -1)
    outcome[rng.random(n_rows) < TIES] = 0
    columns = {"left": left, "right": right, "annotator": annotator}
    codes = {name: column.astype(np.int32) for name, column in columns.items()}
    np.savez(folder / "codes.npz", outcome=outcome.astype(np.int8), scores=scores, **codes)


def _fit(method: str) -> Callable[[Path, Size], Callable[[], Any]]:
    """What sets a method up."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        import warnings

        import numpy as np
        import polars as pl

        from crowdrank import Preferences
        from crowdrank.data.index import Index, Items
        from crowdrank.registry import make

        # some items never lost, which the methods say
        warnings.simplefilter("ignore")
        codes = np.load(folder / "codes.npz")
        n_items, n_annotators = size["n_items"], size["n_annotators"]
        items = Items(Index(pl.Series(["q"])), np.zeros(n_items, np.int32), pl.Series(item_ids(n_items)))
        annotators = Index(pl.Series([f"annotator-{number:05d}" for number in range(n_annotators)]))
        columns = {name: codes[name] for name in ("left", "right", "annotator", "outcome")}
        preferences = Preferences(items=items, annotators=annotators, **columns)
        return lambda: make("aggregator", method).fit(preferences)

    return setup


def _tau(consensus: Any, folder: Path) -> float:
    """Kendall's tau with the true scores."""
    import numpy as np

    from crowdrank.metrics import kendall_tau

    return float(kendall_tau(np.load(folder / "codes.npz")["scores"], consensus.scores))


def _workload(methods: list[str]) -> Workload:
    """The workload of these methods."""
    floors: list[Floor] = [peak_under(method, MOST_GIGABYTES) for method in methods]
    floors += [at_most_times(method, "bradley_terry", None) for method in methods if method != "bradley_terry"]
    return Workload(
        name="sparse_preferences",
        what="{n_items:,} items, {n_rows:,} preferences by {n_annotators:,} annotators",
        sizes={
            "tiny": {"n_items": 100, "n_rows": 3_000, "n_annotators": 10},
            "small": {"n_items": 10_000, "n_rows": 500_000, "n_annotators": 100},
            "full": {"n_items": 100_000, "n_rows": 10_000_000, "n_annotators": 1_000},
        },
        prepare=_prepare,
        sides={method: Call(method, _fit(method), _tau) for method in methods},
        floors=tuple(floors),
        figure="Kendall's tau",
    )


WORKLOAD = _workload([method for method in METHODS if method in names("aggregator")])
