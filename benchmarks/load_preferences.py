"""10M preferences with ids as text from Parquet into `Preferences`, against polars reading the file.

Polars has to read the file and find the distinct ids of each column, which is the least that any factorisation does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import write_preferences
from .workload import Call, Size, Workload, at_most_times, peak_under, same


def _prepare(folder: Path, size: Size) -> None:
    write_preferences(folder, **size)


def _ours(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank import read_judgments

    return lambda: read_judgments(folder / "preferences.parquet")


def _polars(folder: Path, size: Size) -> Callable[[], Any]:
    import polars as pl

    def read() -> Any:
        frame = pl.read_parquet(folder / "preferences.parquet")
        return frame, [frame[name].unique() for name in frame.columns]

    return read


def _our_ids(preferences: Any, folder: Path) -> float:
    return float(preferences.n_items)


def _their_ids(result: Any, folder: Path) -> float:
    return float(len(result[1][0]))


WORKLOAD = Workload(
    name="load_preferences",
    what="{n_rows:,} preferences with ids as text ({n_items:,} items, {n_annotators} annotators) from Parquet",
    sizes={
        "tiny": {"n_items": 20, "n_rows": 2_000, "n_annotators": 10},
        "small": {"n_items": 1_000, "n_rows": 1_000_000, "n_annotators": 200},
        "full": {"n_items": 1_000, "n_rows": 10_000_000, "n_annotators": 200},
    },
    prepare=_prepare,
    sides={
        "crowdrank": Call("crowdrank.read_judgments", _ours, _our_ids),
        "polars": Call("polars, read and unique ids", _polars, _their_ids),
    },
    floors=(
        at_most_times("crowdrank", "polars", 1.5),
        peak_under("crowdrank", 3.0),
        same("crowdrank", "polars", 0.0),
    ),
    figure="items found",
)
