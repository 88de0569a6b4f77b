"""A consensus as judgments of search tools: qrels, Quepid, RRE, TREC runs and labelled LETOR features."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.features import Features
from ..errors import JudgmentError, ParameterError
from ..protocols import Floats
from ..wording import counted, option

SEARCH_TARGETS = ("qrels", "quepid", "rre", "run", "letor")
GRADES = ("whole", "expected")


def graded_items(consensus: Consensus, grades: str, threshold: float | None) -> pl.DataFrame:
    """Return query, item, grade and confidence (null where the method tells none) of each item that has a grade.

    ``"whole"`` are the chosen grades; ``"expected"`` is the grade whose gain :math:`2^g - 1` is the mean gain over the
    probabilities of the levels, so that nDCG of the file counts expected gains.
    """
    frame = consensus.frame()
    if threshold is not None:
        grade = pl.Series((_cut_scores(frame) >= threshold).cast(pl.Int64))
    elif grades == "expected":
        query = None if consensus.items.single else frame["query"]
        grade = _expected_gain_grades(consensus).gather(consensus.items.codes(query, frame["item"]))
    elif "grade" in frame.columns and not consensus.nominal:
        grade = _whole_levels(consensus, frame)
    else:
        what = "classes without an order" if consensus.nominal else "scores and no grades"
        raise ParameterError(
            f"qrels hold whole grades, and the result has {what}; aggregate with {option('want', 'grade')}, or give "
            f"{option('threshold')} to call scores from there on relevant"
        )
    none = pl.lit(None, pl.Float64).alias("confidence")
    sure = pl.col("confidence") if "confidence" in frame.columns else none
    return (
        _with_query(frame)
        .select("query", "item", sure, grade=grade)
        .drop_nulls("grade")
        .select("query", "item", "grade", "confidence")
    )


def _with_query(frame: pl.DataFrame) -> pl.DataFrame:
    """A table with ids as text; without queries there is one, called 1."""
    query = pl.col("query").cast(pl.String) if "query" in frame.columns else pl.lit("1").alias("query")
    return frame.with_columns(query, pl.col("item").cast(pl.String))


def _expected_gain_grades(consensus: Consensus) -> pl.Series:
    """The grade of the expected gain of each item, from the probabilities of its levels."""
    if consensus.probabilities is None or consensus.nominal or consensus.levels is None:
        raise ParameterError(
            f"{consensus.method} gives no probabilities of ordered grades, so no expected gains; aggregate with "
            f"dawid_skene or another class method and write the result as json or parquet, or leave out "
            f"{option('grades', 'expected')}"
        )
    numbers = [_number(level) for level in consensus.levels]
    values = np.arange(len(numbers), dtype=np.float64) if None in numbers else np.array(numbers, dtype=np.float64)
    gains = consensus.probabilities @ (np.exp2(values) - 1.0)
    return pl.Series(np.log2(1.0 + gains).round(6))


def _number(level: Any) -> float | None:
    """A level as a number, where it is one."""
    try:
        return float(level)
    except (TypeError, ValueError):
        return None


def _cut_scores(frame: pl.DataFrame) -> pl.Series:
    """The scores that a threshold cuts: numeric grades where there are some."""
    graded = frame["grade"].cast(pl.Float64, strict=False) if "grade" in frame.columns else None
    return frame["score"] if graded is None or graded.null_count() == len(graded) else graded


def _whole_levels(consensus: Consensus, frame: pl.DataFrame) -> pl.Series:
    """Grades as whole numbers: themselves, rounded, or the place of a level in words."""
    numbers = frame["grade"].cast(pl.Float64, strict=False)
    if numbers.null_count() == frame["grade"].null_count():
        return numbers.round().cast(pl.Int64)
    places = {str(level): place for place, level in enumerate(consensus.levels or ())}
    return pl.Series([None if word is None else places[str(word)] for word in frame["grade"]], dtype=pl.Int64)


def rating_records(
    table: pl.DataFrame, to: str, queries: dict[Any, str] | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the records of graded items for Quepid or RRE, with the words of queries in place of their ids."""
    notes: list[str] = []
    if queries is not None:
        words = table["query"].map_elements(lambda one: queries.get((one,)), return_dtype=pl.String)
        lacking = table.filter(words.is_null())["query"].unique(maintain_order=True)
        if len(lacking):
            raise JudgmentError(f"query {lacking[0]!r} has no text in the table of queries; add it")
        table = table.with_columns(query=words)
    if to == "quepid":
        return table.select("query", docid="item", rating="grade").to_dicts(), notes
    judged = table.filter(pl.col("grade") > 0)
    if len(judged) < len(table):
        notes.append(f"{counted(len(table) - len(judged), 'item')} of grade 0 left out: RRE lists relevant ones only")
    entries = []
    for (query,), part in judged.group_by("query", maintain_order=True):
        gains = {item: {"gain": grade} for item, grade in part.select("item", "grade").iter_rows()}
        entries.append({"template": "query.json", "placeholders": {"$query": query}, "relevant_documents": gains})
    if not entries:
        raise JudgmentError("no item has a grade above 0, so there is nothing for RRE to rate")
    return [{"index": "index", "id_field": "id", "queries": entries}], notes


def run_records(consensus: Consensus, name: str) -> list[dict[str, Any]]:
    """Return the rows of a TREC run: run, query, item, rank and score, best first."""
    place = pl.int_range(1, pl.len() + 1).over("query")
    frame = _with_query(consensus.frame())
    return frame.select("query", "item", "score", run=pl.lit(name), rank=place).to_dicts()


def labelled_features(table: pl.DataFrame, features: Features) -> tuple[Features, Floats | None, list[str]]:
    """Return the features of the graded items with their grades, the weight of each (its confidence), and notes."""
    ids = (
        features.items.frame() if not features.items.single else features.items.frame().with_columns(query=pl.lit("1"))
    )
    rows = ids.select(pl.col("query").cast(pl.String), pl.col("item").cast(pl.String)).with_row_index("row")
    joined = rows.join(table, on=["query", "item"], how="inner", maintain_order="left")
    if not len(joined):
        raise JudgmentError("the result and the features share no item; check that their query and item ids agree")
    notes: list[str] = []
    for number, rest in ((len(table) - len(joined), "features"), (len(rows) - len(joined), "a grade")):
        notes += [f"{counted(number, 'item')} without {rest} left out"] if number else []
    at = joined["row"].to_numpy()
    query = None if features.items.single else joined["query"]
    labelled = Features.from_arrays(
        query,
        joined["item"],
        features.matrix[at],
        names=features.names,
        grade=joined["grade"].cast(pl.Float64).to_numpy(),
    )
    weight = None
    if not joined["confidence"].null_count():
        codes = labelled.items.codes(query, joined["item"])
        weight = np.empty(len(labelled))
        weight[codes] = joined["confidence"].to_numpy()
    return labelled, weight, notes
