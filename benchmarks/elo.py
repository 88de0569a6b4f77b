"""Elo scores from 10M preferences, against evalica without the time it takes to index its input.

Evalica indexes columns of Python objects quickest, and what it does afterwards does not depend on them, so that these
are what it is given: the time taken off is then the smallest part of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import evalica_winners, item_ids, log_likelihood, write_preferences
from .workload import Call, Size, Workload, faster, same


def _prepare(folder: Path, size: Size) -> None:
    write_preferences(folder, **size)


def _built(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank import read_judgments
    from crowdrank.aggregators import Elo

    preferences = read_judgments(folder / "preferences.parquet")
    return lambda: Elo().fit(preferences)


def _evalica(folder: Path, size: Size) -> Callable[[], Any]:
    import evalica

    frame, winners = _objects(folder), evalica_winners(folder)
    return lambda: evalica.elo(frame["left"], frame["right"], winners)


def _indexing(folder: Path, size: Size) -> Callable[[], Any]:
    import evalica

    frame = _objects(folder)
    return lambda: evalica.indexing(frame["left"], frame["right"])


def _objects(folder: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(folder / "preferences.parquet").astype(object)


def _our_likelihood(consensus: Any, folder: Path) -> float:
    return log_likelihood(_natural(consensus.scores), folder)


def _their_likelihood(result: Any, folder: Path) -> float:
    return log_likelihood(_natural(result.scores.reindex(item_ids(len(result.scores))).to_numpy()), folder)


def _natural(scores: Any) -> Any:
    """Scores whose difference is a log odds."""
    import numpy as np

    return scores * np.log(10.0) / 400.0


WORKLOAD = Workload(
    name="elo",
    what="Elo, {n_items:,} items, {n_rows:,} preferences",
    sizes={
        "tiny": {"n_items": 20, "n_rows": 2_000},
        "small": {"n_items": 1_000, "n_rows": 1_000_000},
        "full": {"n_items": 1_000, "n_rows": 10_000_000},
    },
    prepare=_prepare,
    sides={
        "built": Call("crowdrank, from Preferences", _built, _our_likelihood),
        "evalica": Call("evalica", _evalica, _their_likelihood),
        "indexing": Call("evalica.indexing alone", _indexing),
    },
    floors=(faster("built", "evalica", 40, less="indexing"), same("built", "evalica", 1e-9)),
    figure="log-likelihood",
    needs=("evalica", "pandas", "pyarrow"),
)
