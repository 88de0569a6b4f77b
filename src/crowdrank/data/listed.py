"""Judgments with a list of items beside them, some of which nobody judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..errors import JudgmentError
from ..protocols import Bools, Ints
from .coding import factorize
from .columns import understand_items, understand_pairs
from .frames import to_frame
from .index import Index, Items, build_items
from .judged import AnyJudged
from .mixed import Mixed


def with_items(judged: AnyJudged, items: Any) -> tuple[AnyJudged, Bools]:
    """Return the judgments with a place for every item of a list (query, item), and which items the list names.

    Examples
    --------
    >>> from crowdrank.data.judgments import Grades
    >>> grades = Grades.from_rows([("ann", "q", "x", 3)])
    >>> more, listed = with_items(grades, {"query": ["q", "r"], "item": ["y", "z"]})
    >>> more.items.ids.to_list(), listed.tolist()
    (['x', 'y', 'z'], [False, True, True])
    """
    table, old = to_frame(items), judged.items
    names = understand_items(table.columns)
    (of_old, of_new), ids = factorize([old.ids, table[names["item"]]])
    queries, query_of_old, query_of_new = old.queries, old.query, np.zeros(len(table), np.int32)
    if "query" in names:
        if old.single:
            raise JudgmentError("the list of items names queries and the judgments do not; add the query column there")
        (to_new, query_of_new), query_ids = factorize([old.queries.ids, table[names["query"]]])
        queries, query_of_old = Index(query_ids), to_new[old.query]
    elif old.n_queries > 1:
        raise JudgmentError("the list of items has no query column but the judgments name several queries; add it")
    _refuse_blank(np.minimum(of_new, query_of_new))
    placed, (moved, listed) = build_items(queries, [(query_of_old, of_old), (query_of_new, of_new)], ids)
    chosen = np.zeros(len(placed), bool)
    chosen[listed] = True
    columns = {name: moved[getattr(judged, name)] for name in {"item", "left", "right"}.intersection(judged.answers)}
    return replace(judged, items=placed, **columns), chosen


def with_described_items(judged: Any, items: Items) -> Any:
    """Return judgments of one kind or several with a place for each of some items, such as those that have features."""
    if len(items) <= len(judged.items) and (judged.items.codes_of(items, "judgments", "items") >= 0).all():
        return judged
    table = items.frame()
    if judged.items.single and "query" in table.columns:
        table = table.drop("query")
    if not isinstance(judged, Mixed):
        return with_items(judged, table)[0]
    parts = [with_items(part, table)[0] for part in judged.parts]
    return Mixed(tuple(replace(part, items=parts[0].items) for part in parts))


def with_pairs(judged: AnyJudged, pairs: Any) -> tuple[AnyJudged, tuple[Ints, Ints]] | None:
    """Return the judgments with a place for every item of a list of pairs (query, left, right), and the pairs.

    ``None`` where the table has no left and right.
    """
    table = to_frame(pairs)
    names = understand_pairs(table.columns)
    if names is None:
        return None
    shared = {"query": names["query"]} if "query" in names else {}
    sides = [
        table.select(**{word: pl.col(name) for word, name in {**shared, "item": names[side]}.items()})
        for side in ("left", "right")
    ]
    more, _ = with_items(judged, pl.concat(sides))
    query = table[names["query"]] if shared else None
    left, right = (more.items.codes(query, table[names[side]]) for side in ("left", "right"))
    if (left == right).any():
        row = int(np.argmax(left == right)) + 1
        raise JudgmentError(f"row {row} of the list of pairs has the same item on both sides; leave it out")
    return more, (left, right)


def _refuse_blank(codes: Ints) -> None:
    """Say in which rows an id is blank."""
    if len(codes) and codes.min() < 0:
        row = int(np.argmin(codes)) + 1
        raise JudgmentError(f"row {row} of the list of items has a blank query or item id; correct it or leave it out")
