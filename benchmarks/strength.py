"""What the strength of preferences buys: the same answers with and without it, simulated and from real listeners.

``python -m benchmarks.strength`` prints both tables; the real one needs the data sets.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import polars as pl

import crowdrank as cr

CUTS = (0.3, 1.0, 2.0)
"""Simulated answers by the noisy difference of two scores: a tie below the first, then strength 1, 2 and 3."""

POINTS = (5.0, 20.0, 40.0)
"""The same for two grades of a listener, of 100 points."""

METHODS = {
    "latent_score": ("latent_score", True),
    "latent_score, outcomes only": ("latent_score", False),
    "bradley_terry": ("bradley_terry", True),
    "bradley_terry, outcomes only": ("bradley_terry", False),
}


def graded(difference: np.ndarray, cuts: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return winners and strengths of differences, positive where left is better."""
    strength = np.searchsorted(cuts, np.abs(difference), side="right").astype(np.float64)
    winner = np.where(strength == 0, "tie", np.where(difference > 0, "left", "right"))
    return winner, strength


def simulated(n_preferences: int, seed: int, n_items: int = 40, n_annotators: int = 20) -> dict[str, float]:
    """Return Kendall's tau with the true scores, by method."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_items)
    left = rng.integers(0, n_items, n_preferences)
    right = (left + rng.integers(1, n_items, n_preferences)) % n_items
    annotator = rng.integers(0, n_annotators, n_preferences)
    noise = np.exp(rng.normal(0, 0.5, n_annotators))
    difference = scores[left] - scores[right] + noise[annotator] * rng.logistic(0, 0.6, n_preferences)
    winner, strength = graded(difference, CUTS)
    ids = np.array([f"i{number:02d}" for number in range(n_items)])
    frame = pl.DataFrame(
        {"left": ids[left], "right": ids[right], "annotator": [f"a{a}" for a in annotator], "winner": winner,
         "strength": strength}
    )  # fmt: skip
    taus = {}
    for name, (method, keep) in METHODS.items():
        fit = cr.aggregate(cr.Preferences.from_frame(frame if keep else frame.drop("strength")), method=method)
        by_id = dict(fit.frame().select("item", "score").rows())
        judged = [place for place, name_ in enumerate(ids) if name_ in by_id]
        taus[name] = float(cr.metrics.kendall_tau(scores[judged], np.array([by_id[ids[place]] for place in judged])))
    return taus


def listened(share: float, seed: int, grades: pl.DataFrame) -> dict[str, float]:
    """Return the share of decided preferences of other listeners that are predicted, by method."""
    rng = np.random.default_rng(seed)
    listeners = grades["annotator"].unique().sort().to_numpy()
    chosen = set(rng.permutation(listeners)[: len(listeners) // 2])
    pairs = grades.join(grades, on=["query", "annotator"], suffix="_right")
    pairs = pairs.filter(pl.col("item") < pl.col("item_right"))
    difference = (pairs["grade"] - pairs["grade_right"]).to_numpy()
    winner, strength = graded(difference, POINTS)
    pairs = pairs.select(
        "query", "annotator", left="item", right="item_right", winner=pl.Series(winner), strength=pl.Series(strength)
    )
    mine = pairs["annotator"].is_in(list(chosen))
    train, test = pairs.filter(mine), pairs.filter(~mine & (pairs["winner"] != "tie"))
    train = train.filter(pl.Series(rng.random(len(train)) < share))
    shares = {}
    for name, (method, keep) in METHODS.items():
        fit = cr.aggregate(cr.Preferences.from_frame(train if keep else train.drop("strength")), method=method)
        scores = {(query, item): score for query, item, score in fit.frame().select("query", "item", "score").rows()}
        asked = test.select("query", "left", "right").rows()
        gap = np.array([scores.get((q, one), 0.0) - scores.get((q, other), 0.0) for q, one, other in asked])
        right = np.where(test["winner"].to_numpy() == "left", gap > 0, gap < 0)
        shares[name] = float(np.where(gap == 0, 0.5, right).mean())
    return shares


def table(title: str, runs: dict[str, list[dict[str, float]]]) -> str:
    """Return means and standard deviations as a table in Markdown."""
    lines = [f"| {title} | {' | '.join(runs)} |", f"| --- |{' --- |' * len(runs)}"]
    for name in METHODS:
        values = [np.array([run[name] for run in of_set]) for of_set in runs.values()]
        lines.append(f"| {name} | {' | '.join(f'{one.mean():.3f} ± {one.std():.3f}' for one in values)} |")
    return "\n".join(lines)


def main(repeats: int) -> None:
    """Print both tables."""
    sizes = {f"{n} preferences": n for n in (80, 200, 800)}
    drawn = {name: [simulated(n, seed) for seed in range(repeats)] for name, n in sizes.items()}
    print(table("tau with the truth", drawn))
    data = Path(os.environ.get("CROWDRANK_DATA", "")) / "neural-codec-mushra" / "grades.csv"
    if data.exists():
        grades = pl.read_csv(data)
        shares = {f"{share:.0%} of the preferences": share for share in (0.02, 0.1, 1.0)}
        heard = {name: [listened(share, seed, grades) for seed in range(repeats)] for name, share in shares.items()}
        print(table("accuracy on other listeners", heard))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
