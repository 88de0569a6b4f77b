"""Bootstrap of Bradley-Terry scores: 200 resamples of 1M preferences of 1,000 items, against as many separate fits.

The peer is evalica, whose bootstrap draws rows and fits them anew. By default it corrects intervals by the jackknife, a
fit without each row in turn, which for 1M rows does not finish; so it is measured on 2,000 rows only, by default and
with plain percentiles, which is what we take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .data import evalica_winners, item_ids, write_preferences
from .workload import Call, Floor, Measured, Size, Workload, faster, same, seconds_under

N_RESAMPLES, N_FITS = 200, 10
N_ANNOTATORS = 200


def _prepare(folder: Path, size: Size) -> None:
    write_preferences(folder, **size, n_annotators=N_ANNOTATORS)


def _bootstrap(method: str, resample: str) -> Callable[[Path, Size], Callable[[], Any]]:
    """What resamples the preferences, as they are read."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        import warnings

        from crowdrank import aggregate, read_judgments

        # annotators of this many preferences judge a pair twice
        warnings.simplefilter("ignore")
        preferences = read_judgments(folder / "preferences.parquet")
        return lambda: aggregate(preferences, method, bootstrap=N_RESAMPLES, resample=resample)

    return setup


def _fits(folder: Path, size: Size) -> Callable[[], Any]:
    import warnings

    from crowdrank import read_judgments
    from crowdrank.aggregators import BradleyTerry

    warnings.simplefilter("ignore")
    preferences = read_judgments(folder / "preferences.parquet")
    return lambda: [BradleyTerry().fit(preferences) for _ in range(N_FITS)][-1]


def _evalica(how: str) -> Callable[[Path, Size], Callable[[], Any]]:
    """What evalica's bootstrap is called with."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        import evalica
        import pandas as pd

        frame, winners = pd.read_parquet(folder / "preferences.parquet").astype(object), evalica_winners(folder)
        return lambda: evalica.bootstrap(
            evalica.bradley_terry, frame["left"], frame["right"], winners, n_resamples=N_RESAMPLES,
            bootstrap_method=how, random_state=0,
        )  # fmt: skip

    return setup


def _spread(consensus: Any, folder: Path) -> float:
    """Mean standard error of the scores."""
    return float(consensus.std_error.mean())


def _evalica_spread(result: Any, folder: Path) -> float:
    """The same of logarithms that are centred as scores are."""
    import numpy as np

    drawn = np.log(result.distribution[item_ids(result.distribution.shape[1])].to_numpy())
    return float((drawn - drawn.mean(axis=1, keepdims=True)).std(axis=0, ddof=1).mean())


def _share_of_fits(side: str, most: float | None) -> Floor:
    """The time of a side as a share of as many separate fits as it has resamples."""

    def value(sides: Mapping[str, Measured]) -> float:
        return sides[side].seconds / (N_RESAMPLES / N_FITS * sides["fits"].seconds)

    return Floor(f"{side} by {N_RESAMPLES} separate fits", value, most, False, "x", (side, "fits"))


WORKLOAD = Workload(
    name="bootstrap",
    what="200 resamples for Bradley-Terry, {n_items:,} items, {n_rows:,} preferences",
    sizes={
        "tiny": {"n_items": 20, "n_rows": 2_000},
        "small": {"n_items": 300, "n_rows": 100_000},
        "full": {"n_items": 1_000, "n_rows": 1_000_000},
    },
    prepare=_prepare,
    sides={
        "bootstrap": Call("judgments drawn", _bootstrap("bradley_terry", "judgment"), _spread),
        "annotators": Call("annotators drawn", _bootstrap("bradley_terry", "annotator"), _spread),
        "fits": Call(f"{N_FITS} separate fits, with standard errors", _fits, _spread),
        "borda": Call("Borda, one resample after the other", _bootstrap("borda", "judgment"), _spread),
    },
    floors=(
        seconds_under("bootstrap", 8),
        _share_of_fits("bootstrap", 1 / 3),
        seconds_under("annotators", 8),
        _share_of_fits("annotators", 1 / 3),
        # ties that count as half a win scatter less than the model of wins and losses believes
        same("bootstrap", "fits", 0.006),
        faster("bootstrap", "borda", None),
    ),
    figure="mean standard error",
)

PEER = Workload(
    name="bootstrap/evalica",
    what="200 resamples for Bradley-Terry, {n_items:,} items, {n_rows:,} preferences",
    sizes={size: {"n_items": 20, "n_rows": 2_000} for size in ("tiny", "small", "full")},
    prepare=_prepare,
    sides={
        "bootstrap": Call("crowdrank", _bootstrap("bradley_terry", "judgment"), _spread),
        "evalica": Call("evalica, percentiles", _evalica("percentile"), _evalica_spread),
        "evalica_default": Call("evalica, its default", _evalica("BCa"), _evalica_spread),
    },
    floors=(
        faster("bootstrap", "evalica", 10),
        faster("bootstrap", "evalica_default", 50),
        same("bootstrap", "evalica", 0.005),
    ),
    figure="mean standard error",
    needs=("evalica", "pandas", "pyarrow"),
)
