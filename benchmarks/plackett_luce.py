"""Plackett-Luce scores from rankings of 10 out of 200 items, against choix; and how it does with very many items.

Both sides begin with rankings made before: choix with lists of numbers, we with `Rankings`, or with the frame that they
are made of. All are asked for the largest likelihood, with the prior all but off. Every fit of ours includes standard
errors and the covariance of all items, of which choix has none, and the scores alone are a side of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import SEED, item_ids
from .workload import Call, Size, Workload, faster, no_lower, seconds_under

LENGTH = 10
"""Items to a ranking."""

NO_RIDGE = 1e-9


def _prepare(folder: Path, size: Size) -> None:
    """Write ``rankings.parquet``, and ``rankings.npy`` with the item numbers of each ranking, best first."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(SEED)
    n_items, n_rankings = size["n_items"], size["n_rankings"]
    scores = rng.normal(size=n_items)
    item = rng.integers(0, n_items, (n_rankings, LENGTH))
    while (again := (np.diff(np.sort(item, axis=1), axis=1) == 0).any(axis=1)).any():
        item[again] = rng.integers(0, n_items, (int(again.sum()), LENGTH))
    order = np.argsort(-(scores[item] + rng.gumbel(size=item.shape)), axis=1)
    ranked = np.take_along_axis(item, order, axis=1)
    np.save(folder / "rankings.npy", ranked)
    columns = {
        "ranking": np.repeat(np.arange(n_rankings), LENGTH),
        "item": pl.Series(item_ids(n_items)).gather(ranked.ravel()),
        "rank": np.tile(np.arange(1, LENGTH + 1), n_rankings),
    }
    pl.DataFrame(columns).write_parquet(folder / "rankings.parquet")


def _ours(ridge: float) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of a fit to `Rankings`."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        from crowdrank import read_judgments
        from crowdrank.aggregators import PlackettLuce

        rankings = read_judgments(folder / "rankings.parquet")
        return lambda: PlackettLuce(ridge=ridge).fit(rankings).scores

    return setup


def _from_frame(folder: Path, size: Size) -> Callable[[], Any]:
    import polars as pl

    from crowdrank import Rankings
    from crowdrank.aggregators import PlackettLuce

    frame = pl.read_parquet(folder / "rankings.parquet")
    return lambda: PlackettLuce(ridge=NO_RIDGE).fit(Rankings.from_frame(frame)).scores


def _scores_only(folder: Path, size: Size) -> Callable[[], Any]:
    from crowdrank import read_judgments
    from crowdrank.aggregators import PlackettLuce

    rankings = read_judgments(folder / "rankings.parquet")
    return lambda: PlackettLuce(ridge=NO_RIDGE).scores(rankings)


def _choix(name: str, **settings: Any) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of one of choix's ways to the largest likelihood."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        import choix
        import numpy as np

        data = np.load(folder / "rankings.npy").tolist()
        return lambda: getattr(choix, name)(size["n_items"], data, **settings)

    return setup


def _log_likelihood(scores: Any, folder: Path) -> float:
    """Log-likelihood of all rankings, by the definition."""
    import numpy as np

    ranked = np.asarray(scores)[np.load(folder / "rankings.npy")]
    below = np.logaddexp.accumulate(ranked[:, ::-1], axis=1)[:, ::-1]
    return float((ranked - below).sum())


WORKLOAD = Workload(
    name="plackett_luce",
    what="Plackett-Luce, {n_rankings:,} rankings of 10 out of {n_items:,} items",
    sizes={
        "tiny": {"n_items": 20, "n_rankings": 100},
        "small": {"n_items": 100, "n_rankings": 300},
        "full": {"n_items": 200, "n_rankings": 1_000},
    },
    prepare=_prepare,
    sides={
        "built": Call("crowdrank, from Rankings, with covariance", _ours(NO_RIDGE), _log_likelihood),
        "scores": Call("crowdrank, from Rankings, scores only", _scores_only, _log_likelihood),
        "frame": Call("crowdrank, from a polars frame, with covariance", _from_frame, _log_likelihood),
        "mm": Call("choix.mm_rankings", _choix("mm_rankings"), _log_likelihood),
        "mm_tight": Call("choix.mm_rankings, tol=1e-12", _choix("mm_rankings", tol=1e-12), _log_likelihood),
        "ilsr": Call("choix.ilsr_rankings, tol=1e-10", _choix("ilsr_rankings", tol=1e-10), _log_likelihood),
    },
    floors=(
        faster("built", "mm", 30),
        faster("scores", "mm", 30),
        faster("frame", "mm", None),
        no_lower("built", "mm", 1e-8),
        no_lower("built", "mm_tight", 1e-8),
        no_lower("built", "ilsr", 1e-8),
    ),
    figure="log-likelihood",
    needs=("choix",),
)

SPARSE = Workload(
    name="plackett_luce/sparse",
    what="Plackett-Luce with standard errors, {n_rankings:,} rankings of 10 out of {n_items:,} items",
    sizes={
        "tiny": {"n_items": 1_000, "n_rankings": 2_000},
        "small": {"n_items": 10_000, "n_rankings": 100_000},
        "full": {"n_items": 100_000, "n_rankings": 1_000_000},
    },
    prepare=_prepare,
    sides={"built": Call("crowdrank, from Rankings", _ours(0.1), _log_likelihood)},
    floors=(seconds_under("built", 20.0),),
    figure="log-likelihood",
)
