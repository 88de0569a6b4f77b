"""The consensus of a fit over parts: what was read out of each part, in the order of all items."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.consensus import Consensus
from ..data.index import Items
from ..data.parted import MANY_ITEMS, PartColumns, PartedFit
from ..protocols import method_name
from .stored import StoredConsensus, store_scores


def assemble(method: Any, packed: Any, fit: PartedFit) -> Consensus | StoredConsensus:
    """Return the consensus of packed judgments; above five million items it stays in Parquet beside them."""
    if packed.n_items > MANY_ITEMS and not packed.keeps_ranking:
        stored = store_scores(method, packed, _stored_columns(method, packed, fit), fit.quality)
        return replace(stored, trace=fit.trace)
    columns: dict[str, Any] = {}
    for name in PartColumns._fields:
        parts = [getattr(part, name) for part in fit.columns]
        if any(values is not None for values in parts):
            columns[name] = _in_place(packed, parts)
    return Consensus(
        items=packed.items, method=method_name(method), params=dataclasses.asdict(method), trace=fit.trace,
        levels=fit.levels, nominal=bool(getattr(packed, "nominal", False)), estimates=dict(fit.estimates),
        quality_source=fit.quality, **columns,
    )  # fmt: skip


def _stored_columns(method: Any, packed: Any, fit: PartedFit) -> Iterator[tuple[Items, dict[str, Any]]]:
    """Items of each part and what was estimated of them."""
    for number, part in enumerate(fit.columns):
        items = packed.part(number).items
        columns = {name: values for name, values in part._asdict().items() if values is not None}
        ranks = Consensus(items=items, scores=part.scores, method=method_name(method)).ranks()
        yield items, {**columns, "ranks": ranks}


def _in_place(packed: Any, parts: list[Any]) -> Any:
    """One column of all items from those of the parts."""
    first = next(values for values in parts if values is not None)
    column = np.zeros((packed.n_items, *first.shape[1:]), first.dtype)
    for number, values in enumerate(parts):
        if values is not None and len(values):
            column[packed.item_codes(number)] = values
    return column
