"""Rated Ranking Evaluator (RRE): gains of items in a ratings file, by query or by group of queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import JudgmentError
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_text
from .imported import Collector, Imported
from .streaming import Shape, document

_TITLE = "RRE ratings (queries with placeholders, relevant_documents with gains; as of RRE 1.2)"
_GROUP: Shape = {
    "relevant_documents": {},
    "queries": [{"relevant_documents": {}, "placeholders": {}}],
}
_GROUP |= {"topics": [_GROUP], "query_groups": [_GROUP]}


def read(source: Source, options: ReadOptions) -> Imported:
    """Return a grade for each item of each query; the queries of a group share its items."""
    rows = Collector(source, options, unit="rating")
    for query, judged in _judged_queries(document(source, _GROUP), {}):
        for item, gain in judged:
            rows.n_read += 1
            if rows.is_wanted(query):
                rows.add(query, query=_query_id(query), item=item, grade=gain)
    rows.roles |= {"query": "placeholders", "item": "relevant_documents", "grade": "gain"}
    return rows.finish("grade", title=_TITLE)


def _judged_queries(
    node: Mapping[str, Any], around: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], list[tuple[str, Any]]]]:
    """Each query with its items and gains: its own, or those of the group or topic it stands in."""
    documents = node.get("relevant_documents") or around
    for query in node.get("queries") or ():
        yield query, _gains(query.get("relevant_documents") or documents)
    for part in (*(node.get("topics") or ()), *(node.get("query_groups") or ())):
        yield from _judged_queries(part, documents)


def _gains(documents: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Items and gains, written as item: {gain} or as gain: [items]."""
    gains: list[tuple[str, Any]] = []
    for key, value in documents.items():
        if isinstance(value, Mapping):
            gains.append((key, value.get("gain")))
        elif isinstance(value, list):
            gains += [(str(item), key) for item in value]
        else:
            raise JudgmentError(f"relevant_documents has {key!r}: {value!r}; write an item's gain as {{'gain': 3}}")
    return gains


def _query_id(query: Mapping[str, Any]) -> str:
    """The words that were searched for, or all placeholders where there is no query among them."""
    placed = query.get("placeholders")
    if not placed:
        raise JudgmentError("a query has no placeholders, so its words are not known; add them to the ratings file")
    plain = as_text(placed.get("$query"))
    return plain if plain is not None and len(placed) == 1 else json.dumps(placed, ensure_ascii=False, sort_keys=True)
