"""Latent scores of 1M preferences, 10M preferences and 1M grades, beside Crowd-BT and Dawid-Skene.

Judgments are drawn from the model: scores are normal with a standard deviation of 1.5, discriminations normal around 1,
a tenth of the annotators guesses and a tenth is reversed. Preferences are within 1,000 queries of 20 items, grades of
five levels are of 200,000 items in 1,000 queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .data import SEED
from .workload import Call, Floor, Measured, Size, Workload, at_most_times, no_lower, peak_under, seconds_under

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


# With features

N_FEATURES, N_PER_QUERY, N_CROWD = 136, 100, 500


def _prepare_features(folder: Path, size: Size) -> None:
    """Write a table of grades and one of features; ten columns make the scores, with as much again that none does."""
    import numpy as np
    import polars as pl

    rng, n_items, n_grades = np.random.default_rng(SEED), size["n_items"], size["n_grades"]
    matrix = rng.random((n_items, N_FEATURES), dtype=np.float32)
    scores = 2.5 * (matrix[:, :10] - 0.5) @ rng.normal(size=10) + 0.7 * rng.normal(size=n_items)
    item, who = np.arange(n_grades) % n_items, rng.integers(0, N_CROWD, n_grades)
    seen = rng.normal(1.0, 0.4, N_CROWD)[who] * scores[item] + rng.logistic(size=n_grades)
    grade = (seen[:, None] > np.arange(4)).sum(axis=1)
    votes = {"annotator": who, "query": item // N_PER_QUERY, "item": item, "grade": grade}
    pl.DataFrame(votes).with_columns(pl.format("a{}", "annotator").alias("annotator")).write_csv(folder / "votes.csv")
    described = {"query": np.arange(n_items) // N_PER_QUERY, "item": np.arange(n_items)}
    columns = {f"f{column:03d}": matrix[:, column] for column in range(N_FEATURES)}
    pl.DataFrame({**described, **columns}).write_parquet(folder / "features.parquet")
    np.save(folder / "scores.npy", scores)


def _from_files(**options: Any) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of a fit from files; without options they are read only."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        import warnings

        import crowdrank as cr

        def run() -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                given = cr.read_judgments(folder / "votes.csv"), cr.read_features(folder / "features.parquet")
                return cr.train(*given, **options).predict(given[1]) if options else given

        return run

    return setup


def _correlation_with_scores(result: Any, folder: Path) -> float:
    """Correlation of what the ranker predicts with the true scores, 0 where there is no ranker."""
    import numpy as np

    if isinstance(result, tuple):
        return 0.0
    ordered = result.sort("item")["score"].to_numpy()
    return float(np.corrcoef(ordered, np.load(folder / "scores.npy"))[0, 1])


def _beyond_reading(sides: Mapping[str, Measured]) -> float:
    """How many times the fit of list_net that of latent_score takes, reading left out."""
    read = sides["read"].seconds
    return (sides["latent_score"].seconds - read) / max(sides["list_net"].seconds - read, 1e-9)


FEATURES = Workload(
    name="latent_score_features",
    what="latent scores with features, {n_items:,} items x 136 features, {n_grades:,} grades, from files",
    sizes={
        "tiny": {"n_items": 500, "n_grades": 1_500},
        "small": {"n_items": 20_000, "n_grades": 60_000},
        "full": {"n_items": 200_000, "n_grades": 600_000},
    },
    prepare=_prepare_features,
    sides={
        "read": Call("grades and features read", _from_files(), _correlation_with_scores),
        "list_net": Call(
            "read, mean grades, list_net", _from_files(aggregator="mean_grade", ranker="list_net"),
            _correlation_with_scores,
        ),
        "latent_score": Call("read, latent_score", _from_files(joint="latent_score"), _correlation_with_scores),
    },
    floors=(
        at_most_times("latent_score", "list_net", 3.0),
        Floor(
            "latent_score by list_net, reading left out", _beyond_reading, None, False, "x",
            ("read", "list_net", "latent_score"),
        ),
        no_lower("latent_score", "list_net", 0.01),
    ),
    figure="correlation",
)  # fmt: skip
