"""Diagnostics as plain values that strict JSON can hold, and back; pairs of annotators and groups of items stay out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ..data.diagnostics import Diagnostics

_TYPES = {str(dtype): dtype for dtype in (pl.String(), pl.Int64(), pl.Float64(), pl.Boolean(), pl.Null())}


def diagnostics_to_json(found: Diagnostics) -> dict[str, Any]:
    """Return diagnostics as plain values: the sentences, and the rows of annotators and families."""
    return {
        "kind": found.kind,
        "n_annotators": found.n_annotators,
        "effective_annotators": found.effective_annotators,
        "annotator_messages": list(found.annotator_messages),
        "group_messages": list(found.group_messages),
        "notes": list(found.notes),
        "annotators": _table(found.annotator_table),
        "families": _table(found.family_table),
    }


def diagnostics_from_json(document: Mapping[str, Any]) -> Diagnostics:
    """Return the diagnostics that :func:`diagnostics_to_json` made plain values of."""
    return Diagnostics(
        kind=document["kind"],
        n_annotators=document["n_annotators"],
        effective_annotators=document["effective_annotators"],
        annotator_messages=tuple(document["annotator_messages"]),
        group_messages=tuple(document["group_messages"]),
        notes=tuple(document["notes"]),
        annotator_table=_frame(document["annotators"]),
        family_table=_frame(document["families"]),
    )


def _table(frame: pl.DataFrame) -> dict[str, Any]:
    """A table as the types of its columns and its rows."""
    wide = frame.with_columns(pl.selectors.integer().cast(pl.Int64), pl.selectors.float().cast(pl.Float64))
    return {
        "types": {name: str(dtype) for name, dtype in wide.schema.items()},
        "rows": [list(row) for row in wide.iter_rows()],
    }


def _frame(table: Mapping[str, Any]) -> pl.DataFrame:
    """The table of such types and rows."""
    schema = {name: _TYPES[dtype] for name, dtype in table["types"].items()}
    return pl.DataFrame(table["rows"], schema=schema, orient="row")
