"""Bradley-Terry scores of 1,000 items from 10M preferences, against evalica.

Both begin with the same pandas frame, as it is read from a Parquet file: evalica gets its columns (winners mapped
beforehand) and makes its index of them, we make `Preferences` of them. Evalica is far quicker on columns of Python
objects than on pandas' own columns of text, so that is shown too, with the conversion not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import evalica_winners, item_ids, log_likelihood, write_preferences
from .workload import Call, Size, Workload, faster, no_lower


def _prepare(folder: Path, size: Size) -> None:
    write_preferences(folder, **size)


def _from_pandas(folder: Path, size: Size) -> Callable[[], Any]:
    import pandas as pd

    return _ours(pd.read_parquet(folder / "preferences.parquet"))


def _from_polars(folder: Path, size: Size) -> Callable[[], Any]:
    import polars as pl

    return _ours(pl.read_parquet(folder / "preferences.parquet"))


def _ours(frame: Any) -> Callable[[], Any]:
    from crowdrank import Preferences
    from crowdrank.aggregators import BradleyTerry

    return lambda: BradleyTerry().fit(Preferences.from_frame(frame))


def _built(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank import read_judgments
    from crowdrank.aggregators import BradleyTerry

    preferences = read_judgments(folder / "preferences.parquet")
    return lambda: BradleyTerry().fit(preferences)


def _evalica(folder: Path, size: Size) -> Callable[[], Any]:
    import evalica
    import pandas as pd

    frame, winners = pd.read_parquet(folder / "preferences.parquet"), evalica_winners(folder)
    return lambda: evalica.bradley_terry(frame["left"], frame["right"], winners)


def _evalica_objects(folder: Path, size: Size) -> Callable[[], Any]:
    import evalica
    import pandas as pd

    frame, winners = pd.read_parquet(folder / "preferences.parquet").astype(object), evalica_winners(folder)
    return lambda: evalica.bradley_terry(frame["left"], frame["right"], winners)


def _our_likelihood(consensus: Any, folder: Path) -> float:
    return log_likelihood(consensus.scores, folder)


def _their_likelihood(result: Any, folder: Path) -> float:
    import numpy as np

    return log_likelihood(np.log(result.scores.reindex(item_ids(len(result.scores))).to_numpy()), folder)


WORKLOAD = Workload(
    name="bradley_terry",
    what="Bradley-Terry, {n_items:,} items, {n_rows:,} preferences",
    sizes={
        "tiny": {"n_items": 20, "n_rows": 2_000},
        "small": {"n_items": 1_000, "n_rows": 1_000_000},
        "full": {"n_items": 1_000, "n_rows": 10_000_000},
    },
    prepare=_prepare,
    sides={
        "frame": Call("crowdrank, from the pandas frame", _from_pandas, _our_likelihood),
        "polars": Call("crowdrank, from a polars frame", _from_polars, _our_likelihood),
        "built": Call("crowdrank, from Preferences", _built, _our_likelihood),
        "evalica": Call("evalica, from the pandas frame", _evalica, _their_likelihood),
        "evalica_objects": Call("evalica, columns made objects before", _evalica_objects, _their_likelihood),
    },
    floors=(
        faster("frame", "evalica", 12),
        faster("built", "evalica", 60),
        no_lower("frame", "evalica", 1e-6),
        no_lower("built", "evalica", 1e-6),
        faster("polars", "evalica", None),
        faster("polars", "evalica_objects", None),
        faster("built", "evalica_objects", None),
    ),
    figure="log-likelihood",
    needs=("evalica", "pandas", "pyarrow"),
)
