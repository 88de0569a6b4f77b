"""Latent scores of 1M preferences, 10M preferences and 1M grades, beside Crowd-BT and Dawid-Skene.

Judgments are drawn from the model: scores are normal with a standard deviation of 1.5, discriminations normal around 1,
a tenth of the annotators guesses and a tenth is reversed. Preferences are within 1,000 queries of 20 items, grades of
five levels are of 200,000 items in 1,000 queries.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Size, Workload, at_most_times, peak_under, seconds_under

N_ANNOTATORS, N_QUERIES, N_COMPARED, N_GRADED = 5_000, 1_000, 20, 200


def _prepare(folder: Path, size: Size) -> None:
    """Write the columns of each side, and the true scores."""
    import numpy as np

    rng = np.random.default_rng(SEED)
    alpha = rng.normal(1.0, 0.5, N_ANNOTATORS)
    alpha[:500], alpha[500:1000] = 0.0, -np.abs(alpha[500:1000])
    compared, graded = (rng.normal(0, 1.5, N_QUERIES * n) for n in (N_COMPARED, N_GRADED))
    np.savez(folder / "scores.npz", compared=compared, graded=graded)
    for side in ("some", "most"):
        n = size[side]
        query, one, who = rng.integers(0, N_QUERIES, n), rng.integers(0, N_COMPARED, n), np.arange(n) % N_ANNOTATORS
        other = (one + rng.integers(1, N_COMPARED, n)) % N_COMPARED
        left, right = query * N_COMPARED + one, query * N_COMPARED + other
        won = rng.logistic(size=n) < alpha[who] * (compared[left] - compared[right])
        columns = {"left": left.astype(np.int32), "right": right.astype(np.int32), "annotator": who.astype(np.int32)}
        np.savez(folder / f"{side}.npz", **columns, outcome=np.where(won, 1, -1).astype(np.int8))
    n = size["graded"]
    item, who = rng.integers(0, len(graded), n), np.arange(n) % N_ANNOTATORS
    seen = alpha[who] * graded[item] + rng.normal(0, 0.5, N_ANNOTATORS)[who] + rng.logistic(size=n)
    grade = (seen[:, None] > np.linspace(-2, 2, 4)).sum(axis=1).astype(np.float64)
    np.savez(folder / "graded.npz", item=item.astype(np.int32), annotator=who.astype(np.int32), grade=grade)


def _judgments(folder: Path, side: str) -> Any:
    """Judgments from columns of codes."""
    import numpy as np
    import polars as pl

    from crowdrank import Grades, Preferences
    from crowdrank.data.index import Index, Items

    n_items = N_GRADED if side == "graded" else N_COMPARED
    queries = Index(pl.Series("id", [f"query-{number:04d}" for number in range(N_QUERIES)]))
    names = pl.Series("item", [f"item-{number:06d}" for number in range(N_QUERIES * n_items)])
    items = Items(queries, np.repeat(np.arange(N_QUERIES, dtype=np.int32), n_items), names)
    annotators = Index(pl.Series("id", [f"annotator-{number:04d}" for number in range(N_ANNOTATORS)]))
    kind = Grades if side == "graded" else Preferences
    return kind(items=items, annotators=annotators, **np.load(folder / f"{side}.npz"))


def _fit(side: str, method: str) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of a fit to judgments that are coded already."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        from crowdrank.registry import make

        judgments, fitted = _judgments(folder, side), make("aggregator", method)
        return lambda: fitted.fit(judgments)

    return setup


def _correlation(side: str) -> Callable[[Any, Path], float]:
    """Correlation with the true scores."""

    def figure(consensus: Any, folder: Path) -> float:
        import numpy as np

        return float(np.corrcoef(consensus.scores, np.load(folder / "scores.npz")[side])[0, 1])

    return figure


WORKLOAD = Workload(
    name="latent_score",
    what="latent scores, 5,000 annotators: {some:,} and {most:,} preferences, {graded:,} grades of 200,000 items",
    sizes={
        "tiny": {"some": 5_000, "most": 10_000, "graded": 5_000},
        "small": {"some": 100_000, "most": 1_000_000, "graded": 100_000},
        "full": {"some": 1_000_000, "most": 10_000_000, "graded": 1_000_000},
    },
    prepare=_prepare,
    sides={
        "some": Call("crowdrank, preferences", _fit("some", "latent_score"), _correlation("compared")),
        "most": Call("crowdrank, ten times as many", _fit("most", "latent_score"), _correlation("compared")),
        "graded": Call("crowdrank, grades", _fit("graded", "latent_score"), _correlation("graded")),
        "crowd_bt": Call("Crowd-BT, preferences", _fit("some", "crowd_bt"), _correlation("compared")),
        "dawid_skene": Call("Dawid-Skene, grades", _fit("graded", "dawid_skene"), _correlation("graded")),
    },
    floors=(
        seconds_under("some", 3.0),
        seconds_under("graded", 5.0),
        at_most_times("most", "some", 12.0),
        peak_under("some", 0.6),
        peak_under("graded", 0.6),
        at_most_times("some", "crowd_bt", None),
        at_most_times("graded", "dawid_skene", None),
    ),
    figure="correlation",
)
