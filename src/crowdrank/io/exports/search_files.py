"""Judgments of search teams: ratings of Quepid and RRE, TREC qrels and runs, labels of LETOR files, events of UBI."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from ...errors import JudgmentError
from ...wording import counted
from ..letor import read_letor
from ..notices import say
from ..sources import Source
from ..trec import looks_like_run, read_qrels, read_run
from .cells import as_number, as_text, at_path
from .imported import Cells, Collector, Imported
from .streaming import Record, Shape, document, records, text_rows


def quepid(rows: Collector) -> Imported:
    """Return a grade for each rating of a case; a query without ratings stands alone in its row and is left out."""
    header, *lines = text_rows(rows.source)
    names = [name.lower() for name in header]

    def rating(record: Record, number: int) -> Iterator[Cells | str]:
        cells = rows.cells_of(record)
        yield cells if cells["item"] and cells["grade"] else "without a rated item"

    rows.take((dict(zip(names, cells, strict=False)) for cells in lines), rating)
    return rows.finish("grade")


_GROUP: Shape = {"relevant_documents": {}, "queries": [{"relevant_documents": {}, "placeholders": {}}]}
_GROUP |= {"topics": [_GROUP], "query_groups": [_GROUP]}


def rre(rows: Collector) -> Imported:
    """Return a grade for each item of each query; the queries of a group share its items."""
    for query, documents in _rre_queries(document(rows.source, _GROUP), {}):
        placed = query.get("placeholders") or {}
        # the words that were searched for, or all placeholders where there is no query among them
        words = as_text(placed.get("$query")) if len(placed) == 1 else None
        for key, value in documents.items():
            # written as item: {gain} or as gain: [items]
            if isinstance(value, Mapping):
                gains = [(key, value.get("gain"))]
            elif isinstance(value, list):
                gains = [(str(item), key) for item in value]
            else:
                raise JudgmentError(f"relevant_documents has {key!r}: {value!r}; write an item's gain as {{'gain': 3}}")
            for item, gain in gains:
                rows.n_read += 1
                if rows.is_wanted(query):
                    if not placed:
                        rows.refuse("no_words")
                    named = words or json.dumps(placed, ensure_ascii=False, sort_keys=True)
                    rows.add(query, query=named, item=item, grade=gain)
    return rows.finish("grade")


def _rre_queries(node: Mapping[str, Any], around: Mapping[str, Any]) -> Iterator[tuple[Record, Mapping[str, Any]]]:
    """Each query with its rated documents: its own, or those of the group or topic it stands in."""
    documents = node.get("relevant_documents") or around
    for query in node.get("queries") or ():
        yield query, query.get("relevant_documents") or documents
    for part in (*(node.get("topics") or ()), *(node.get("query_groups") or ())):
        yield from _rre_queries(part, documents)


def trec(rows: Collector) -> Imported:
    """Return a grade for each line of qrels, or a ranking for each query and run; the run is the annotator."""
    if not looks_like_run(rows.source):
        frame = read_qrels(rows.source)
        rows.n_read = len(frame)
        rows.add_frame(frame)
        return rows.finish("grade")
    run = read_run(rows.source)
    rows.n_read, rows.title = len(run), "TREC run (query, Q0, item, rank, score, run)"
    # trec_eval orders by score, and so do we; the rank column of a file may say something else
    rank = pl.col("score").rank("min", descending=True).over("run", "query").cast(pl.Float64)
    rows.add_frame(run.select("query", "item", rank=rank, annotator="run"))
    return rows.finish("ranking")


def letor(rows: Collector) -> Imported:
    """Return a grade for each line: the label in front of it, by nobody in particular."""
    features = read_letor(rows.source)
    rows.n_read = len(features)
    rows.add_frame(features.items.frame().with_columns(grade=pl.Series(features.grade)))
    return rows.finish("grade")


_SHOWN, _CLICKED = ("impression", "view", "product_impression"), ("click", "item_click", "product_click")


def click_events(source: Source) -> pl.DataFrame:
    """Return what events of User Behavior Insights say was shown to whom and clicked, as a log of clicks.

    A result page is a ``query_id``; what else was done there, and events without an item and its place, are left out.
    """
    shown: dict[tuple[str, str], Cells] = {}
    left_out = 0
    for record in records(source):
        held = at_path(record, "hits.hits")
        for hit in held if isinstance(held, list) else [record]:
            event = at_path(hit, "_source") or hit
            action = (as_text(at_path(event, "action_name")) or "").lower()
            page = as_text(at_path(event, "query_id"))
            item = as_text(at_path(event, "event_attributes.object.object_id"))
            place = as_number(at_path(event, "event_attributes.position.ordinal"))
            if action not in (*_SHOWN, *_CLICKED) or page is None or item is None:
                left_out += 1
                continue
            query = as_text(at_path(event, "user_query")) or page
            row = shown.setdefault((page, item), {"query": query, "item": item, "position": None, "clicked": False})
            row["position"] = place if row["position"] is None else row["position"]
            row["clicked"] |= action in _CLICKED
    rows = [{**row, "impression": page} for (page, _), row in shown.items() if row["position"] is not None]
    left_out += len(shown) - len(rows)
    if not rows or all(row["clicked"] for row in rows):
        remedy = "log impressions (action_name impression, with object_id and position.ordinal) beside clicks"
        raise JudgmentError(f"the events tell no item that was shown at a known place and not clicked; {remedy}")
    first = min(row["position"] for row in rows)
    pages = counted(len({page for page, _ in shown}), "page")
    others = f"{counted(left_out, 'event')} of other kinds, or without an item and its place, left out"
    numbered = "; places are counted from 0" if first == 0 else ""
    say(f"{source.name}: {counted(len(rows), 'item')} shown on {pages} by query_id; {others}{numbered}")
    return pl.DataFrame(rows).with_columns(pl.col("position") + (first == 0))
