"""``python tools/draw_demo.py``: draw the preferences of the demo anew; the same seed gives the same file."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl

from crowdrank.demo import FILE
from crowdrank.io.output import write_table
from crowdrank.protocols import Floats
from crowdrank.simulate import ConnectedPairs, PlackettLuce, preferences

SEED = 20260302

STRENGTH = {
    "larch-pro": 1.9, "alder-xl": 1.5, "maple-3": 1.3, "rowan-2": 0.8, "cedar-chat": 0.5, "hazel-9": 0.3,
    "birch-2": -0.1, "larch-mini": -0.4, "juniper": -0.8, "alder-s": -1.2, "birch-1": -1.7, "willow-base": -2.1,
}  # fmt: skip
"""How good each model's answers are, over all prompts."""

PROMPTS = (
    "explain-tides", "fix-a-loop", "plan-a-menu", "translate-idiom", "sum-up-article", "write-limerick",
    "compare-loans", "draft-apology", "name-a-shop", "prove-identity", "debug-query", "plan-a-hike", "rewrite-email",
    "explain-proof", "convert-units", "quiz-on-rome", "review-essay", "pack-for-rain", "teach-a-chord", "sort-receipts",
)  # fmt: skip

GUESSING = ("bruno", "ines", "tariq")
REVERSED = ("olga",)
ANNOTATORS = (
    "ada", "bruno", "chloe", "dmitri", "elif", "femi", "grace", "hiro", "ines", "jonas", "kofi", "lena", "marta",
    "nils", "olga", "priya", "quinn", "rosa", "sven", "tariq", "uma", "viktor", "wanda", "xavi", "yara", "zane",
    "aiko", "bela", "carmen", "diego",
)  # fmt: skip

PER_PAIR = 3
PER_ITEM = 15
TIES = 0.08
FIRST_DAY = datetime(2026, 3, 2, 9, 0)
WORKING_DAYS = 5


def make() -> pl.DataFrame:
    """Return the preferences: 600 pairs of answers, each judged by three annotators.

    How well a model answers a prompt is its strength plus something of the prompt's own. Annotators prefer the better
    answer with log odds of their slope times the difference; the slope is 0 for those who guess and negative for the
    reversed one. One answer in twelve is a tie, whatever the two models.
    """
    truth_rng, slope_rng, judge_rng, tie_rng, time_rng = np.random.default_rng(SEED).spawn(5)
    pairs = [(prompt, model, strength) for prompt in PROMPTS for model, strength in STRENGTH.items()]
    truth = pl.DataFrame(pairs, schema=["query", "item", "grade"], orient="row")
    truth = truth.with_columns(grade=truth["grade"] + 0.35 * truth_rng.standard_normal(len(truth)))
    design = ConnectedPairs(per_item=PER_ITEM, k=PER_PAIR)
    drawn = preferences(truth, PlackettLuce(_slopes(slope_rng)), design, seed=judge_rng).judgments
    # simulated annotators are numbered from 1: a01, a02, ...
    number = drawn.frame()["annotator"].str.slice(1).cast(pl.Int64) - 1
    tied = pl.Series(tie_rng.random(len(drawn)) < TIES)
    winner = pl.when(tied).then(pl.lit("tie")).otherwise("winner")
    frame = drawn.frame().with_columns(winner=winner, annotator=pl.Series(ANNOTATORS).gather(number))
    frame = frame.with_columns(time=_times(frame["annotator"], time_rng))
    return frame.sort("time", "annotator").select("query", "left", "right", "annotator", "winner", "time")


def _slopes(rng: np.random.Generator) -> Floats:
    """How sharply each annotator tells good from bad."""
    honest = rng.uniform(0.9, 1.8, len(ANNOTATORS))
    guessing = [name in GUESSING for name in ANNOTATORS]
    reverse = [name in REVERSED for name in ANNOTATORS]
    return np.select([guessing, reverse], [0.0, -0.9], honest)


def _times(annotators: pl.Series, rng: np.random.Generator) -> pl.Series:
    """When each preference was given: each annotator works through their pairs on one day of a week."""
    times: list[str] = [""] * len(annotators)
    for name in ANNOTATORS:
        begin = FIRST_DAY + timedelta(days=int(rng.integers(WORKING_DAYS)), minutes=int(rng.integers(360)))
        rows = (annotators == name).arg_true().to_numpy()
        seconds = np.cumsum(rng.integers(15, 90, len(rows)))
        for row, after in zip(rng.permutation(rows), seconds, strict=True):
            times[row] = (begin + timedelta(seconds=int(after))).isoformat()
    return pl.Series(times)


if __name__ == "__main__":
    write_table(make(), FILE)
