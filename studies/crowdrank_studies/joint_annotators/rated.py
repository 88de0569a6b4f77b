"""Two public sets rated by people: emotions in headlines, and students' work graded by their peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.data.features import Features
from crowdrank.data.judgments import Grades, Preferences
from crowdrank.protocols import Floats

from ..work import Work

EMOTIONS = ("anger", "disgust", "fear", "joy", "sadness", "surprise", "valence")
"""Questions 1 to 100 are of the first emotion, those to 200 of the second, and so on, about the same headlines."""

PLEASANT, SURPRISE = "joy", "surprise"
_HEADLINES = 100
FUSED = 5
"""Annotators of a headline who are fused, as many as in the paper."""


@dataclass(frozen=True, eq=False)
class Rated:
    """Items of two groups with features, rated by annotators.

    Parameters
    ----------
    name
        What the items are and what was rated.
    claim
        Which group should be the higher one, in words.
    judgments
        Ratings of an annotator, as preferences between items of a query.
    features
        Attributes of the items that these annotators had no part in.
    higher
        1 for items of the group that should be the higher one, 0 for the other, NaN for items of neither.
    gold
        Experts' grades of the same attribute.
    """

    name: str
    claim: str
    judgments: Preferences
    features: Features
    higher: Floats
    gold: Floats


def headlines(work: Work, seed: int) -> list[Rated]:
    """Return six emotions of a hundred headlines; the groups are those that experts call pleasant and unpleasant.

    Of the ten annotators of a headline five are drawn to be fused; what the other five say of the five other emotions,
    on average, are its features.
    """
    data = work.load("crowd-truth-inference/emotion")
    assert isinstance(data.judgments, Grades)
    assert data.truth is not None
    given, gold = (_by_emotion(frame) for frame in (data.judgments.frame(), data.truth.frame()))
    batches = _batches(given)
    given, gold = (frame.join(batches, on="headline") for frame in (given, gold))
    experts = gold.pivot(on="emotion", index=["batch", "headline"], values="grade").sort("batch", "headline")
    fused = given.join(_draw_annotators(given, seed), on=["batch", "annotator"])
    others = given.join(fused, on=["item", "annotator"], how="anti")
    said = others.group_by("batch", "headline", "emotion").agg(pl.col("grade").mean())
    features = said.pivot(on="emotion", index=["batch", "headline"], values="grade").sort("batch", "headline")
    return [_emotion(one, fused.filter(emotion=one), features, experts) for one in EMOTIONS[:-1]]


def _by_emotion(frame: pl.DataFrame) -> pl.DataFrame:
    """Split the number of a question into emotion and headline."""
    number = pl.col("item").cast(pl.Int64) - 1
    named = dict(enumerate(EMOTIONS))
    return frame.with_columns(
        emotion=(number // _HEADLINES).replace_strict(named, return_dtype=pl.String),
        headline=(number % _HEADLINES + 1).cast(pl.String).str.zfill(3),
    )


def _batches(given: pl.DataFrame) -> pl.DataFrame:
    """Batch of each headline, those of one batch being rated by the same annotators."""
    raters = given.group_by("headline").agg(pl.col("annotator").unique().sort().str.join(" "))
    first = pl.col("headline").min().over("annotator")
    return raters.select("headline", batch="from " + first)


def _draw_annotators(given: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Five annotators of each batch."""
    rng = np.random.default_rng(seed)
    everybody = given.select("batch", "annotator").unique().sort("batch", "annotator")
    place = pl.Series(rng.random(len(everybody)))
    return everybody.with_columns(place=place).filter(pl.col("place").rank().over("batch") <= FUSED).drop("place")


def _emotion(emotion: str, given: pl.DataFrame, features: pl.DataFrame, experts: pl.DataFrame) -> Rated:
    """One emotion; valence is no feature, since the groups are made of it."""
    judgments = Grades.from_frame(given.select("annotator", "grade", query="batch", item="headline")).as_preferences()
    assert judgments.items.ids.to_list() == experts["headline"].to_list() == features["headline"].to_list()
    others = [one for one in EMOTIONS[:-1] if one != emotion]
    matrix = features.select(others).to_numpy()
    valence = experts["valence"].to_numpy()
    pleasant = np.where(valence == 0, np.nan, (valence > 0).astype(np.float64))
    up = emotion in (PLEASANT, SURPRISE)
    return Rated(
        name=f"{emotion} in headlines",
        claim=f"{'pleasant' if up else 'unpleasant'} headlines show more {emotion}",
        judgments=judgments,
        features=Features.from_arrays(features["batch"], features["headline"], matrix, names=others),
        higher=pleasant if up else 1 - pleasant,
        gold=experts[emotion].to_numpy().astype(np.float64),
    )


def submissions(work: Work) -> Rated:
    """Return students' work graded by their peers; the groups are the better and the worse half by teaching assistants.

    Features are what a group says of its own work, how many of it do, and how its members grade others.
    """
    data, own = work.load("peer-grading"), work.load("peer-grading/self")
    assert isinstance(data.judgments, Grades)
    assert isinstance(own.judgments, Grades)
    assert data.truth is not None
    items = data.judgments.items
    frame = items.frame().join(_about(data.judgments.frame(), own.judgments.frame()), on=["query", "item"], how="left")
    names = ["own grade", "own graders", "grades given"]
    # a group that says nothing of itself is taken for an average one of its task
    filled = frame.with_columns(pl.col(name).fill_null(pl.col(name).mean().over("query")) for name in names)
    gold = data.truth.align(items)
    return Rated(
        name="work graded by peers",
        claim="work above the median of its task by teaching assistants is the better by peers",
        judgments=data.judgments.as_preferences(),
        features=Features.from_arrays(frame["query"], frame["item"], filled.select(names).to_numpy(), names=names),
        higher=_halves(gold, items.query), gold=gold,
    )  # fmt: skip


def _about(peer: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """What each group says of its work in each task, and how its members grade others there."""
    members = own.select("query", "item", "annotator").unique(maintain_order=True)
    less = pl.col("grade") - pl.col("grade").mean().over("query")
    given = peer.with_columns(given=less).select("query", "annotator", "given")
    means = members.join(given, on=["query", "annotator"]).group_by("query", "item", maintain_order=True)
    said = own.group_by("query", "item", maintain_order=True)
    return said.agg(pl.col("grade").mean().alias("own grade"), pl.len().cast(pl.Float64).alias("own graders")).join(
        means.agg(pl.col("given").mean().alias("grades given")), on=["query", "item"], how="left"
    )


def _halves(gold: Floats, query: Any) -> Floats:
    """1 above the median of a query, 0 below, and NaN at it."""
    table = pl.DataFrame({"gold": gold, "query": query})
    median = table.select(pl.col("gold").median().over("query")).to_series().to_numpy()
    halves: Floats = np.where(gold == median, np.nan, (gold > median).astype(np.float64))
    return halves
