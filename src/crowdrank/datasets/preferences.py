"""Preferences of crowd workers between two items: melodies, arguments, answers of language models, web pages."""

from __future__ import annotations

import polars as pl

from ..data.judgments import Preferences
from ..data.truth import Truth
from .dataset import Dataset
from .store import Store

WINNERS = {"a1": "left", "a2": "right", "equal": "tie"}
SIDES = {"query": "topic", "left": "arg1", "right": "arg2", "winner": "label"}
JUDGES = ("gpt3", "gpt4")


def mirex(store: Store) -> Dataset:
    """Which of two melodies is more similar to the query; the truth is the crowd's own grouping."""
    columns = {
        "query": "Input.query",
        "left": "Input.docA",
        "right": "Input.docB",
        "annotator": "WorkerId",
        "winner": "Answer.radio",
        "time": "SubmitTime",
    }
    given = store.table("judgments.csv", columns, encoding="latin-1")
    answered = given.filter(pl.col("winner").is_in(["a", "b", "s"]))
    answered = answered.with_columns(
        pl.col("winner").replace_strict({"a": "left", "b": "right", "s": "tie"}),
        pl.col("time").str.to_datetime("%a %b %d %H:%M:%S GMT %Y"),
    )
    groups = store.table("MTurk.qrel", ("run", "query", "item", "rank"), numbers=["rank"], separator="\t").drop("run")
    notes = (f"{len(given) - len(answered)} of {len(given):,} answers are blank and left out",)
    return store.dataset(judgments=Preferences.from_frame(answered), truth=Truth.from_frame(groups), notes=notes)


def arguments(store: Store, *, pairs: bool = False) -> Dataset:
    """Which argument is more convincing; the truth is a ranking of the arguments, or with ``pairs`` the gold pairs."""
    votes = store.table("votes.csv", {**SIDES, "annotator": "worker"})
    texts = store.table("arguments.csv", {"query": "topic", "item": "arg", "text": "text"})
    if pairs:
        truth = store.table("gold_pairs.csv", SIDES).with_columns(_winners())
    else:
        scores = store.table("gold_ranking.csv", {"query": "topic", "item": "arg", "grade": "score"}, numbers=["grade"])
        # the source's score falls as an argument convinces more
        truth = scores.with_columns(-pl.col("grade"))
    return store.dataset(
        judgments=Preferences.from_frame(votes.with_columns(_winners())), truth=Truth.from_frame(truth), details=texts
    )


def _winners() -> pl.Expr:
    """The source's a1 / a2 / equal as left / right / tie."""
    return pl.col("winner").replace_strict(WINNERS, default=pl.col("winner"))


def model_answers(store: Store, *, who: str = "crowd") -> Dataset:
    """Answers of language models to prompts, compared by the ``crowd``, by two ``judges`` or by ``all``."""
    columns = {"query": "prompt", "left": "left", "right": "right", "winner": "winner"}
    parts = []
    if who != "judges":
        parts.append(store.table("crowd-comparisons.csv", {**columns, "annotator": "worker"}))
    if who != "crowd":
        judged = [(judge, store.table(f"{judge}-comparisons.csv", columns)) for judge in JUDGES]
        parts += [table.with_columns(annotator=pl.lit(judge)) for judge, table in judged]
    votes = pl.concat(parts)
    if who == "all":
        family = pl.when(pl.col("annotator").is_in(JUDGES)).then(pl.lit("llm")).otherwise(pl.lit("crowd"))
        votes = votes.with_columns(group=family)
    answers = store.rows("results.jsonl").select(query=pl.col("prompt").cast(pl.String), item="name", text="result")
    return store.dataset(judgments=Preferences.from_frame(votes), details=answers)


def web_pages(store: Store) -> Dataset:
    """Which of two home pages is more attractive; the truth is the source's own Bradley-Terry score of these votes."""
    columns = {"annotator": "annotator", "group": "accepted", "left": "left", "right": "right", "winner": "chosen"}
    votes = store.table("calista_votes.csv", columns)
    answered = votes.filter(pl.col("winner").is_in(["left", "right"])).with_columns(
        pl.col("group").replace_strict({"1": "accepted", "0": "other"}, default=pl.col("group"))
    )
    pages = store.table("calista_clutter.csv", {"item": "item", "grade": "appeal"}, numbers=["grade"])
    notes = (f"{len(votes) - len(answered)} of {len(votes):,} answers choose neither page and are left out",)
    return store.dataset(
        judgments=Preferences.from_frame(answered),
        truth=Truth.from_frame(pages),
        details=_page_details(store),
        notes=notes,
    )


def _page_details(store: Store) -> pl.DataFrame | None:
    """The clutter measures of the screenshots, where the stored table has them."""
    measures = ["feature_congestion", "subband_entropy", "segment_measure"]
    header = store.text("calista_clutter.csv").split("\n", 1)[0].strip().split(",")
    if not set(measures) <= set(header):
        return None
    return store.table("calista_clutter.csv", {word: word for word in ("item", *measures)}, numbers=measures)
