"""The verb export: a consensus as the file that another tool imports."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..data.column_names import quote_names
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.files import PathLike
from ..errors import JudgmentError, ParameterError
from ..io.read_options import ReadOptions
from ..io.results import read_consensus
from ..io.sources import open_source
from ..io.tables import read_table
from ..protocols import Floats
from ..wording import counted, one_of, option
from .sentences import words_of
from .training import as_features

SEARCH_TARGETS = ("qrels", "quepid", "rre", "run", "letor")
TARGETS = ("label-studio", "argilla", "pairs", *SEARCH_TARGETS)

_MOST_ITEMS = 3000
"""A query with more items has too many pairs to look at each."""


@dataclass(frozen=True)
class Exported:
    """What another tool imports, and what there is to say about it."""

    to: str
    records: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
    confidence: pl.DataFrame | None = None
    """For search tools, query, item, grade and confidence of all items that have a grade."""
    features: Features | None = None
    weight: Floats | None = None
    """For LETOR, the labelled features, and the weight of each row."""


def export(
    result: Consensus | PathLike,
    to: str,
    votes: PathLike | None = None,
    *,
    answer: str | None = None,
    columns: dict[str, str] | None = None,
    texts: Any | None = None,
    min_confidence: float = 0.9,
    pairs_per_query: int = 1,
    threshold: float | None = None,
    grades: str = "whole",
    queries: Any | None = None,
    features: Any | None = None,
) -> Exported:
    """Return a consensus as records that another tool imports.

    Parameters
    ----------
    result
        What :func:`~crowdrank.aggregate` found, or a file of it.
    to
        ``"label-studio"`` (tasks with predictions), ``"argilla"`` (records with suggestions), ``"pairs"`` (chosen and
        rejected items with margin and confidence); for search ``"qrels"`` (query, item and grade), ``"quepid"`` (query,
        docid, rating), ``"rre"`` (one ratings file), ``"run"`` (a TREC run of the scores) or ``"letor"`` (features with
        labels and weights).
    votes
        The tool's own export that the votes were read from, for names and data; needed for the first two.
    answer, columns
        As for :func:`~crowdrank.read_judgments`, where the votes were read with them.
    texts
        A table or file of item and text [, query], to write texts in place of ids in pairs.
    min_confidence
        Least probability that the chosen item is the better one; raise it for fewer and surer pairs.
    pairs_per_query
        Most pairs of a query, those with the largest margin first.
    threshold
        Scores from here on are grade 1 and others 0.
    grades
        ``"whole"`` writes the chosen grades, ``"expected"`` the grade whose gain is the expected one, from the
        probabilities of a class method.
    queries
        A table or file of query and text, to write what was searched for in place of ids, for Quepid and RRE.
    features
        Features of the items, for LETOR.

    Examples
    --------
    >>> from crowdrank import aggregate
    >>> votes = {"item": list("xyxy"), "annotator": list("aabb"), "grade": [2, 0, 2, 0]}
    >>> export(aggregate(votes, "mean_grade"), "qrels", threshold=1.0).records
    [{'query': '1', 'item': 'x', 'grade': 1}, {'query': '1', 'item': 'y', 'grade': 0}]
    """
    one_of(to, TARGETS, "to", of_verb=True)
    consensus = result if isinstance(result, Consensus) else read_consensus(result)
    if to == "pairs":
        if not 0 <= min_confidence < 1 or pairs_per_query < 1:
            raise ParameterError(words_of("pair_limits"))
        return _pairs(consensus, _texts(texts), min_confidence, pairs_per_query)
    if to == "run":
        # the rows of a TREC run, best first
        place, frame = pl.int_range(1, pl.len() + 1).over("query"), _with_query(consensus.frame())
        rows = frame.select("query", "item", "score", run=pl.lit(consensus.method), rank=place)
        return Exported(to, rows.to_dicts())
    if to in SEARCH_TARGETS:
        table = _graded_items(consensus, one_of(grades, ("whole", "expected"), "grades", of_verb=True), threshold)
        if to == "qrels":
            return Exported(to, table.drop("confidence").to_dicts(), confidence=table)
        if to == "letor":
            if features is None:
                raise ParameterError(f"LETOR lines hold features; give the file of features with {option('features')}")
            matrix, weight, notes = _labelled_features(table, as_features(features))
            return Exported(to, [], tuple(notes), confidence=table, features=matrix, weight=weight)
        records, notes = _rating_records(table, to, _texts(queries, "query"))
        return Exported(to, records, tuple(notes), confidence=table)
    if votes is None:
        raise ParameterError(words_of("no_names", to=to))
    from ..io.exports import detect
    from ..io.exports.labels import argilla_suggestions, label_studio_tasks

    source = open_source(votes, archives=True)
    tool = detect(source)
    if tool != to:
        kind = "a plain table" if tool is None else f"of {tool}"
        raise JudgmentError(f"{source.name} is {kind} and no export of {to}")
    make = label_studio_tasks if to == "label-studio" else argilla_suggestions
    records, notes = make(consensus, source, ReadOptions(answer=answer, columns=columns or {}))
    return Exported(to, records, tuple(notes))


def _pairs(consensus: Consensus, texts: dict[Any, str] | None, least: float, most: int) -> Exported:
    """The sure pairs of items of each query, those with the largest margin first."""
    unsure = consensus.uncertainty is None
    if unsure and least > 0:
        raise ParameterError(words_of("unsure_order", method=consensus.method))
    items, scores = consensus.items, consensus.scores
    records: list[dict[str, Any]] = []
    counts: Counter[str] = Counter()
    for number, query in enumerate(items.queries.ids.to_list()):
        start, stop = int(items.offsets[number]), int(items.offsets[number + 1])
        if stop - start > _MOST_ITEMS:
            raise ParameterError(f"query {query!r} has {stop - start:,} items, too many to look at each pair")
        best_first = start + np.argsort(-scores[start:stop], kind="stable")
        above, below = np.triu_indices(stop - start, 1)
        first, second = best_first[above], best_first[below]
        gap = scores[first] - scores[second]
        sure = np.full(len(gap), np.nan) if unsure else consensus.beats_each(first, second)
        kept = (gap > 0) & (unsure | (sure >= least))
        counts["tied"] += int((gap == 0).sum())
        counts[f"less sure than {least:g} ({option('min_confidence')})"] += int(((gap > 0) & ~kept).sum())
        for place in np.flatnonzero(kept)[np.argsort(-gap[kept], kind="stable")][:most].tolist():
            ids = [str(items.ids[int(code[place])]) for code in (first, second)]
            # an id stands for itself where there are no texts
            chosen, rejected = ids if texts is None else (texts.get((str(query), id), texts.get((id,))) for id in ids)
            if chosen is None or rejected is None:
                counts["whose items have no text"] += 1
                continue
            names = {"prompt": None if items.single else query, "chosen": chosen, "rejected": rejected}
            confidence = None if unsure else float(sure[place])
            records.append({**names, "margin": float(gap[place]), "confidence": confidence})
    notes = [f"{counted(n, 'pair')} left out, {why}" for why, n in counts.items() if n]
    if not records:
        raise JudgmentError(f"no pair is left: {', '.join(notes) or 'no query has two items'}")
    return Exported("pairs", records, tuple(notes))


def _texts(texts: Any | None, of: str = "item") -> dict[Any, str] | None:
    """Text of each item, or of each query and item; or of each query."""
    if texts is None:
        return None
    frame = pl.DataFrame(texts) if isinstance(texts, pl.DataFrame | dict) else read_table(texts)
    if not {of, "text"} <= set(frame.columns):
        raise JudgmentError(f"the table of texts needs columns {of} and text; it has {quote_names(frame.columns)}")
    keys = ["query", "item"] if of == "item" and "query" in frame.columns else [of]
    return {tuple(map(str, row[:-1])): str(row[-1]) for row in frame.select(*keys, "text").drop_nulls().iter_rows()}


def _graded_items(consensus: Consensus, grades: str, threshold: float | None) -> pl.DataFrame:
    """Query, item, grade and confidence (null where the method tells none) of each item that has a grade.

    ``"whole"`` are the chosen grades; ``"expected"`` is the grade whose gain :math:`2^g - 1` is the mean gain over the
    probabilities of the levels, so that nDCG of the file counts expected gains.
    """
    frame, levels = consensus.frame(), consensus.levels or ()
    chosen = frame["grade"] if "grade" in frame.columns else None
    numbers = None if chosen is None else chosen.cast(pl.Float64, strict=False)
    if threshold is not None:
        # numeric grades are cut where there are some
        scores = frame["score"] if numbers is None or numbers.null_count() == len(numbers) else numbers
        grade = (scores >= threshold).cast(pl.Int64)
    elif grades == "expected":
        if consensus.probabilities is None or consensus.nominal or consensus.levels is None:
            raise ParameterError(words_of("no_gains", method=consensus.method))
        values = np.arange(len(levels), dtype=np.float64)
        with suppress(TypeError, ValueError):
            values = np.array([float(level) for level in levels])
        gains = consensus.probabilities @ (np.exp2(values) - 1.0)
        query = None if consensus.items.single else frame["query"]
        grade = pl.Series(np.log2(1.0 + gains).round(6)).gather(consensus.items.codes(query, frame["item"]))
    elif chosen is None or numbers is None or consensus.nominal:
        what = "classes without an order" if consensus.nominal else "scores and no grades"
        raise ParameterError(words_of("no_grades", what=what))
    elif numbers.null_count() == chosen.null_count():
        grade = numbers.round().cast(pl.Int64)
    else:
        # levels in words count as their places
        places = {str(level): place for place, level in enumerate(levels)}
        grade = pl.Series([None if word is None else places[str(word)] for word in chosen], dtype=pl.Int64)
    sure = pl.col("confidence") if "confidence" in frame.columns else pl.lit(None, pl.Float64).alias("confidence")
    return _with_query(frame).select("query", "item", grade.alias("grade"), sure).drop_nulls("grade")


def _with_query(frame: pl.DataFrame) -> pl.DataFrame:
    """A table with ids as text; without queries there is one, called 1."""
    query = pl.col("query").cast(pl.String) if "query" in frame.columns else pl.lit("1").alias("query")
    return frame.with_columns(query, pl.col("item").cast(pl.String))


def _rating_records(
    table: pl.DataFrame, to: str, queries: dict[Any, str] | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Records of graded items for Quepid or RRE, with the words of queries in place of their ids, and notes."""
    if queries is not None:
        words = table["query"].map_elements(lambda one: queries.get((one,)), return_dtype=pl.String)
        lacking = table.filter(words.is_null())["query"]
        if len(lacking):
            raise JudgmentError(f"query {lacking[0]!r} has no text in the table of queries; add it")
        table = table.with_columns(query=words)
    if to == "quepid":
        return table.select("query", docid="item", rating="grade").to_dicts(), []
    judged = table.filter(pl.col("grade") > 0)
    entries = []
    for (query,), part in judged.group_by("query", maintain_order=True):
        gains = {item: {"gain": grade} for item, grade in part.select("item", "grade").iter_rows()}
        entries.append({"template": "query.json", "placeholders": {"$query": query}, "relevant_documents": gains})
    if not entries:
        raise JudgmentError("no item has a grade above 0, so there is nothing for RRE to rate")
    n_others = len(table) - len(judged)
    notes = [f"{counted(n_others, 'item')} of grade 0 left out: RRE lists relevant ones only"] if n_others else []
    return [{"index": "index", "id_field": "id", "queries": entries}], notes


def _labelled_features(table: pl.DataFrame, features: Features) -> tuple[Features, Floats | None, list[str]]:
    """Features of the graded items with their grades, the weight of each (its confidence), and notes."""
    rows = _with_query(features.items.frame()).select("query", "item").with_row_index("row")
    joined = rows.join(table, on=["query", "item"], how="inner", maintain_order="left")
    if not len(joined):
        raise JudgmentError("the result and the features share no item; check that their query and item ids agree")
    notes: list[str] = []
    for number, rest in ((len(table) - len(joined), "features"), (len(rows) - len(joined), "a grade")):
        notes += [f"{counted(number, 'item')} without {rest} left out"] if number else []
    query = None if features.items.single else joined["query"]
    matrix, grade = features.matrix[joined["row"].to_numpy()], joined["grade"].cast(pl.Float64).to_numpy()
    labelled = Features.from_arrays(query, joined["item"], matrix, names=features.names, grade=grade)
    weight = None
    if not joined["confidence"].null_count():
        weight = np.empty(len(labelled))
        weight[labelled.items.codes(query, joined["item"])] = joined["confidence"].to_numpy()
    return labelled, weight, notes
