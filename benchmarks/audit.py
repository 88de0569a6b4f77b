"""Coverage and width of corrected figures and ranks on people's votes with judges: the tables of the guide on trust.

``python -m benchmarks.audit`` reads ``arena-people-and-judges`` in ``CROWDRANK_DATA``. People's votes of a sample are
completed by a judge's verdicts on all pairs; the truth is all votes of people.
"""

import os
import warnings
from pathlib import Path

import numpy as np
import polars as pl

import crowdrank as cr
from crowdrank.auditing.corrected import Figure, corrected_row

JUDGES = ("gpt_4", "claude_3_opus", "gpt_3_5")


def preferences(parts):
    """Votes of some columns, each of some rows."""
    frames = [
        rows.select(query="num", left="model_a", right="model_b", annotator=pl.lit(who), winner=pl.col(who))
        for who, rows in parts
    ]
    return cr.Preferences.from_frame(pl.concat(frames)).across_queries()


def ranks(table, n_seeds=3):
    """Mean width of 95 % rank intervals, and the share that hold the rank by all votes of people."""
    truth = dict(cr.aggregate(preferences([("human", table)]), "bradley_terry").frame().select("item", "rank").rows())
    rng = np.random.default_rng(0)
    cases = [
        ("people", 500, None), ("people", 2000, None), ("people and gpt_4", 500, "gpt_4"),
        ("people and gpt_4", 2000, "gpt_4"), ("gpt_4", 0, "gpt_4"), ("claude_3_opus", 0, "claude_3_opus"),
    ]  # fmt: skip
    for name, n, judge in cases:
        found = []
        for _ in range(n_seeds if n else 1):
            sample = table[np.sort(rng.choice(len(table), n, replace=False))]
            parts = [("human", sample)] * bool(n) + [(judge, table)] * (judge is not None)
            trusted = ["human"] if n and judge else None
            fitted = cr.aggregate(preferences(parts), "latent_score", trusted=trusted, robust="none")
            rows = fitted.intervals(0.95).select("item", "rank_lower", "rank_upper").rows()
            found.append((np.mean([high - low for _, low, high in rows]),
                          np.mean([low <= truth[item] <= high for item, low, high in rows])))  # fmt: skip
        print(f"{name}, {n} votes of people: {np.mean(found, axis=0).round(2)} (places, coverage)")


def shares(table, n_draws=400):
    """Coverage of 90 % intervals of the share of wins of the first model, and width relative to people alone."""
    code = {"model_a": 1.0, "model_b": 0.0}
    people = np.array([code.get(one, 0.5) for one in table["human"]])
    rng = np.random.default_rng(0)
    for judge in JUDGES:
        said = np.array([code.get(one, 0.5) for one in table[judge]])
        for n in (200, 500, 2000):
            rows = []
            for _ in range(n_draws):
                seen = np.full(len(people), np.nan)
                chosen = rng.choice(len(people), n, replace=False)
                seen[chosen] = people[chosen]
                row = corrected_row(Figure("wins", seen, said), np.arange(len(people)), 0.9)
                rows.append((row["lower"] <= people.mean() <= row["upper"], row["relative_width"]))
            print(f"{judge}, {n} votes of people: {np.mean(rows, axis=0).round(3)} (coverage, relative width)")


def means(folder, n_draws=400):
    """Coverage of 90 % intervals of the mean grade with people on a sample of items; the truth is all of people's."""
    rng = np.random.default_rng(0)
    for name in ("cebab_stars", "summeval"):
        table = pl.read_csv(folder / f"{name}.csv.gz").with_columns(pl.col("label").cast(float))
        item = ["criterion", "item"]
        people = table.filter(kind="person").group_by(item).agg(pl.col("label").mean()).sort(item)
        for program, part in table.filter(kind="program").sort("annotator").group_by("annotator", maintain_order=True):
            both = people.join(part.select(*item, said="label"), on=item, nulls_equal=True).sort(item)
            own, said = both["label"].to_numpy(), both["said"].to_numpy()
            for n in (50, 200):
                rows = []
                for _ in range(n_draws):
                    seen = np.full(len(own), np.nan)
                    chosen = rng.choice(len(own), n, replace=False)
                    seen[chosen] = own[chosen]
                    row = corrected_row(Figure("mean", seen, said), np.arange(len(own)), 0.9)
                    rows.append((row["lower"] <= own.mean() <= row["upper"], row["relative_width"]))
                found = np.mean(rows, axis=0).round(3)
                print(f"{name}, {program[0]}, people on {n} of {len(own)}: {found} (coverage, relative width)")


def main():
    folder = Path(os.environ["CROWDRANK_DATA"])
    table = pl.read_csv(folder / "arena-people-and-judges" / "votes.csv.gz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranks(table)
    shares(table)
    means(folder / "people-and-programs")


if __name__ == "__main__":
    main()
