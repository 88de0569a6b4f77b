"""Graded and nominal labels by crowd workers, with gold: the truth-inference collections, adult sites, peer grading."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from ..data.judgments import Grades
from ..data.truth import Truth
from .dataset import Dataset
from .store import Store, quietly

SITES = ("G", "P", "R", "X")
"""Levels of the adult-site ratings; a larger grade means more adult."""


def labels(store: Store) -> Dataset:
    """Items labelled on a numeric scale: ``label.csv`` (item, worker, label) and ``truth.csv`` (item, truth)."""
    given = store.table("label.csv", {"item": "item", "annotator": "worker", "grade": "label"}, numbers=["grade"])
    truth = store.table("truth.csv", {"item": "item", "grade": "truth"}, numbers=["grade"])
    return store.dataset(judgments=Grades.from_frame(given), truth=Truth.from_frame(truth))


def answers(store: Store, *, nominal: bool = False) -> Dataset:
    """The truth inference survey: ``answer.csv`` (question, worker, answer) and ``truth.csv`` (question, truth)."""
    given = store.table("answer.csv", {"item": "question", "annotator": "worker", "grade": "answer"}, numbers=["grade"])
    truth = store.table("truth.csv", {"item": "question", "grade": "truth"}, numbers=["grade"])
    if nominal:
        given = given.with_columns(pl.col("grade").cast(pl.Int64))
    return store.dataset(judgments=Grades.from_frame(given, nominal=nominal), truth=Truth.from_frame(truth))


def adult(store: Store) -> Dataset:
    """Web sites rated G, P, R or X; the gold covers more sites than the crowd saw."""
    given = store.table("labels.tsv", ("annotator", "item", "grade"), separator="\t")
    gold = store.table("gold.tsv", ("item", "grade"), separator="\t")
    for file, frame in (("labels.tsv", given), ("gold.tsv", gold)):
        strange = frame.filter(~pl.col("grade").is_in(SITES))
        if len(strange):
            store.refuse_damaged(file, f"{strange['grade'][0]!r} is none of {', '.join(SITES)}")
    positions = {level: float(position) for position, level in enumerate(SITES)}
    gold = gold.with_columns(pl.col("grade").replace_strict(positions, return_dtype=pl.Float64))
    labelled = int(gold["item"].is_in(given["item"].unique().implode()).sum())
    with quietly():
        grades = Grades.from_frame(given, levels=SITES)
    repeats = len(given) - given.n_unique(["annotator", "item"])
    return store.dataset(
        judgments=grades,
        truth=replace(Truth.from_frame(gold), levels=SITES),
        notes=(
            f"{repeats:,} of the {len(given):,} grades repeat an annotator on an item; all are kept",
            f"{len(gold):,} sites have gold, {labelled:,} of them were graded",
        ),
    )


def peer_grading(store: Store, *, file: str = "peer.csv") -> Dataset:
    """Students' grades of group submissions; the truth is the mean grade of the teaching assistants."""
    columns = {"query": "taskid", "item": "groupid", "annotator": "reviewerid", "grade": "grade"}
    given = store.table(file, columns, numbers=["grade"])
    assistants = store.table("ta.csv", columns, numbers=["grade"])
    truth = assistants.group_by("query", "item", maintain_order=True).agg(pl.col("grade").mean())
    return store.dataset(judgments=Grades.from_frame(given), truth=Truth.from_frame(truth))
