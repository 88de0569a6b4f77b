"""Language models and people as judges of two answers: PandaLM, LLMBar, retrieval-augmented answers."""

from __future__ import annotations

from typing import Any

import polars as pl

from ..data.judgments import Grades, Preferences
from ..data.truth import Truth
from .dataset import Dataset
from .store import Store, quietly

PEOPLE = ("annotator1", "annotator2", "annotator3")
PANDALM = {"0": "tie", "1": "left", "2": "right", "tie": "tie"}
OVERALL = "quality_overall"
VALIDITY = {"correctness_topical": "validity"}
"""Dimensions that the crowd's own file calls otherwise."""


def pandalm(store: Store, *, who: str = "all") -> Dataset:
    """Two answers to an instruction, judged by three people and two models; the truth is the people's majority."""
    pairs = pl.DataFrame([_pandalm_pair(row) for row in store.json("testset-v1.json")])
    first = pl.col("idx").first().over("instruction", "input")
    models = pl.col("cmp_key").str.split("_")
    pairs = pairs.with_columns(query=first.cast(pl.String), left=models.list.first(), right=models.list.last())
    verdicts = [
        pairs.select("idx", winner=person, annotator=pl.lit(person), group=pl.lit("human")) for person in PEOPLE
    ]
    for judge, field in (("gpt-3.5-turbo", "gpt_result"), ("pandalm-7b", "pandalm_result")):
        rows = [
            {"idx": row["idx"], "winner": str(row[field]).lower()} for row in store.json(f"{judge}-testset-v1.json")
        ]
        verdicts.append(pl.DataFrame(rows).with_columns(annotator=pl.lit(judge), group=pl.lit("llm")))
    chosen = {"all": verdicts, "humans": verdicts[:3], "judges": verdicts[3:]}[who]
    given = store.match(pl.concat(chosen), pairs.select("idx", "query", "left", "right"), "idx", "testset-v1.json")
    usable = given.filter(pl.col("winner").is_in(list(PANDALM))).with_columns(pl.col("winner").replace_strict(PANDALM))
    dropped = len(given) - len(usable)
    majority = pl.concat_list(PEOPLE).list.eval(pl.element().mode(maintain_order=True).first()).list.first()
    truth = pairs.select("query", "left", "right", winner=majority.replace_strict(PANDALM))
    return store.dataset(
        judgments=Preferences.from_frame(usable.drop("idx", *(["group"] if who != "all" else []))),
        truth=Truth.from_frame(truth),
        details=_pandalm_texts(pairs),
        notes=(f"{dropped} verdicts that could not be parsed are left out",) if dropped else (),
    )


def _pandalm_pair(row: dict[str, Any]) -> dict[str, Any]:
    """What is kept of one pair, the verdicts as text."""
    kept = {name: row[name] for name in ("idx", "cmp_key", "instruction", "input", "response1", "response2")}
    return {**kept, **{person: str(row[person]) for person in PEOPLE}}


def _pandalm_texts(pairs: pl.DataFrame) -> pl.DataFrame:
    """The answers; some models answer an instruction differently from pair to pair, then the first answer stands."""
    sides = [
        pairs.select("query", "instruction", "input", item=side, text=f"response{number}")
        for number, side in ((1, "left"), (2, "right"))
    ]
    return (
        pl.concat(sides)
        .unique(["query", "item"], keep="first", maintain_order=True)
        .select("query", "item", "text", "instruction", "input")
    )


def llmbar(store: Store) -> Dataset:
    """Verdicts of model and prompting strategy on two outputs, each pair asked in both orders.

    ``left`` and ``right`` stand as the judge saw them, so an annotator's position bias is the share of left wins. Asked
    in the swapped order, ``output_2`` stands left.
    """
    columns = {
        "subset": "subset",
        "number": "item",
        "model": "judge_model",
        "strategy": "strategy",
        "swapped": "swapped",
        "winner": "winner",
    }
    verdicts = store.table("judgments.csv", columns)
    usable = verdicts.filter(pl.col("winner").is_in(["1", "2"]))
    swapped = pl.col("swapped") == "1"
    given = usable.select(
        query=pl.concat_str("subset", "number", separator="/"),
        left=pl.when(swapped).then(pl.lit("output_2")).otherwise(pl.lit("output_1")),
        right=pl.when(swapped).then(pl.lit("output_1")).otherwise(pl.lit("output_2")),
        winner="output_" + pl.col("winner"),
        annotator=pl.concat_str("model", "strategy", separator="/"),
        group="model",
    )
    names = ("subset", "item", "gold", "input", "output_1", "output_2")
    items = store.table("items.csv", {name: name for name in names}).with_columns(
        query=pl.concat_str("subset", "item", separator="/")
    )
    truth = items.select("query", left=pl.lit("output_1"), right=pl.lit("output_2"), winner="output_" + pl.col("gold"))
    texts = [
        items.select("query", "subset", "input", item=pl.lit(side), text=side) for side in ("output_1", "output_2")
    ]
    return store.dataset(
        judgments=Preferences.from_frame(given, winner_codes={"output_1": "item", "output_2": "item"}),
        truth=Truth.from_frame(truth),
        details=pl.concat(texts).select("query", "item", "text", "subset", "input"),
        notes=(f"{len(verdicts) - len(usable)} of {len(verdicts):,} verdicts name no winner and are left out",),
    )


def rag_answers(store: Store, *, dimension: str = OVERALL) -> Dataset:
    """Which of two retrieval-augmented answers is better in one dimension, by crowd workers."""
    rows = store.rows("study2_responses.jsonl")
    given = rows.select(
        query="query_id",
        left="response_a",
        right="response_b",
        annotator="worker",
        winner=pl.col(VALIDITY.get(dimension, dimension)).replace_strict({"A": "left", "B": "right", "N": "tie"}),
    )
    return store.dataset(judgments=Preferences.from_frame(given), truth=_rag_truth(store, given, dimension))


def rag_judges(store: Store, *, dimension: str = OVERALL) -> Dataset:
    """The same pairs by a language model, prompted for all dimensions at once (combined) or for each (individual)."""
    rows = store.rows("llm_ratings.jsonl").select(
        query="query_id",
        left="response_a",
        right="response_b",
        annotator="llm/" + pl.col("inference"),
        winner=pl.col(dimension).replace_strict({"a": "left", "b": "right", "n": "tie"}),
    )
    given = rows.drop_nulls("winner")
    repeats = len(given) - given.n_unique(["query", "left", "right", "annotator"])
    notes = [f"{repeats:,} of {len(given):,} verdicts repeat a pair in the same order; all are kept"]
    if len(given) < len(rows):
        notes.append(f"{len(rows) - len(given)} verdicts are blank and left out")
    with quietly():
        preferences = Preferences.from_frame(given)
    return store.dataset(judgments=preferences, truth=_rag_truth(store, given, dimension), notes=tuple(notes))


def _rag_truth(store: Store, given: pl.DataFrame, dimension: str) -> Truth:
    """The source's Bradley-Terry grade of each answer, estimated from the same crowd."""
    sides = [given.select("query", item=side) for side in ("left", "right")]
    grades = store.rows("grades.jsonl").select(item="response", grade=pl.col(dimension).cast(pl.Float64))
    return Truth.from_frame(store.match(pl.concat(sides).unique(maintain_order=True), grades, "item", "grades.jsonl"))


def rag_grades(store: Store, *, dimension: str = OVERALL) -> Dataset:
    """Other answers graded one by one on -3, -1, 1, 3."""
    rows = store.rows("study2_pointwise.jsonl").select(
        query="query_id",
        item="response",
        annotator="worker",
        grade=pl.col(dimension).cast(pl.Float64),
        time=pl.col("submitted_at") / 1000,
    )
    return store.dataset(judgments=Grades.from_frame(rows, levels=(-3, -1, 1, 3)))
