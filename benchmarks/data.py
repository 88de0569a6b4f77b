"""Judgments of fixed size and seed, written once and read by every side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SEED = 20_240_607
TIES = 0.1
"""Share of preferences that are ties."""

QUINTILES = (-0.8416, -0.2533, 0.2533, 0.8416)
"""Cuts of the normal distribution into fifths."""


def write_preferences(folder: Path, *, n_items: int, n_rows: int, n_annotators: int = 0) -> None:
    """Write ``preferences.parquet`` with ids as text, and ``codes.npz`` with the same as numbers.

    Item codes are the places of the sorted ids; the items' true scores are normal, and the better wins with the
    probability of the Bradley-Terry model.
    """
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(SEED)
    scores = rng.normal(size=n_items)
    left = rng.integers(0, n_items, n_rows)
    right = (left + rng.integers(1, n_items, n_rows)) % n_items
    won = rng.random(n_rows) < 1 / (1 + np.exp(scores[right] - scores[left]))
    outcome = np.where(rng.random(n_rows) < TIES, 0, np.where(won, 1, -1)).astype(np.int8)
    ids = pl.Series(item_ids(n_items))
    columns = {"left": ids.gather(left), "right": ids.gather(right)}
    if n_annotators:
        names = pl.Series([f"annotator-{number:05d}" for number in range(n_annotators)])
        columns["annotator"] = names.gather(rng.integers(0, n_annotators, n_rows))
    columns["winner"] = pl.Series(["right", "tie", "left"]).gather(outcome.astype(np.int64) + 1)
    pl.DataFrame(columns).write_parquet(folder / "preferences.parquet")
    np.savez(folder / "codes.npz", left=left.astype(np.int32), right=right.astype(np.int32), outcome=outcome)


def item_ids(n_items: int) -> list[str]:
    """Return ids whose alphabetical order is that of their numbers."""
    return [f"model-{number:06d}" for number in range(n_items)]


def evalica_winners(folder: Path) -> list[Any]:
    """Return the outcomes as evalica writes them."""
    import numpy as np
    from evalica import Winner

    by_outcome = {1: Winner.X, 0: Winner.Draw, -1: Winner.Y}
    return [by_outcome[outcome] for outcome in np.load(folder / "codes.npz")["outcome"].tolist()]


def log_likelihood(scores: Any, folder: Path) -> float:
    """Return the mean log-likelihood of a preference under the Bradley-Terry model; a tie is half a win of each."""
    import numpy as np

    codes = np.load(folder / "codes.npz")
    margin = scores[codes["left"]] - scores[codes["right"]]
    outcome = codes["outcome"]
    win, loss = -np.logaddexp(0.0, -margin), -np.logaddexp(0.0, margin)
    return float(np.mean((1 + outcome) / 2 * win + (1 - outcome) / 2 * loss))


def write_grades(folder: Path, *, n_rows: int, per_item: int = 5, n_annotators: int = 200) -> None:
    """Write ``grades.parquet`` (task, worker and label, as crowd-kit calls them) and ``truth.parquet`` (task, label).

    Five grades, each true of about a fifth of the items, so that no rule for tied votes is favoured (in web search most
    items are bad, and taking the lowest grade looks clever); annotators differ in accuracy.
    """
    import polars as pl

    from crowdrank import simulate

    # one query: a task is all that crowd-kit knows
    truth = simulate.draw_truth(1, n_rows // per_item, cuts=QUINTILES, seed=SEED)
    pool = simulate.normal(0.7, 0.15, n_annotators=n_annotators, seed=SEED + 1)
    drawn = simulate.grades(truth, pool, simulate.PerItem(k=per_item), seed=SEED + 2).judgments
    table = drawn.frame().select(
        pl.col("item").alias("task"), pl.col("annotator").alias("worker"), pl.col("grade").cast(pl.Int64).alias("label")
    )
    table.sample(fraction=1.0, shuffle=True, seed=SEED).write_parquet(folder / "grades.parquet")
    known = truth.truth
    pl.DataFrame({"task": known.items.ids, "label": known.grade}).write_parquet(folder / "truth.parquet")


def accuracy(task: Any, label: Any, folder: Path) -> float:
    """Return the share of tasks that got their true label."""
    import polars as pl

    truth = pl.read_parquet(folder / "truth.parquet")
    given = pl.DataFrame({"task": task, "given": label}).with_columns(pl.col("given").cast(pl.Float64))
    return float(truth.join(given, on="task").select((pl.col("given") == pl.col("label")).sum() / len(truth)).item())
