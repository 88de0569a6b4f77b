"""Quality and diagnostics of annotators as plain values that strict JSON can hold, and back.

Of the diagnostics, pairs of annotators and groups of items stay out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Quality
from ..data.diagnostics import Diagnostics
from ..data.index import Index
from .encoding import decode_array, decode_params, encode_array, encode_params

_TYPES = {str(dtype): dtype for dtype in (pl.String(), pl.Int64(), pl.Float64(), pl.Boolean(), pl.Null())}


def quality_to_json(quality: Quality) -> dict[str, Any]:
    """Return the quality of the annotators as plain values: a row for each, in the order of their ids."""
    n = len(quality.annotators)
    arrays = {name: np.asarray(value) for name, value in quality.parameters.items()}
    each = {name: array for name, array in arrays.items() if array.ndim and len(array) == n and array.dtype != object}
    columns = {
        "annotator": quality.annotators.ids.to_list(),
        "quality": encode_array(quality.quality),
        "n_judgments": encode_array(quality.n_judgments),
        **{name: encode_array(array) for name, array in each.items()},
    }
    return {
        "annotators": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        "parameters": {name: {"dtype": str(array.dtype), "shape": list(array.shape)} for name, array in each.items()},
        "shared": encode_params({name: value for name, value in quality.parameters.items() if name not in each}),
    }


def quality_from_json(document: Mapping[str, Any]) -> Quality:
    """Return the quality that :func:`quality_to_json` made plain values of."""
    rows = document["annotators"]
    ids = pl.Series("id", [row["annotator"] for row in rows], None if rows else pl.String)
    parameters = {
        name: decode_array([row[name] for row in rows], form["dtype"]).reshape(form["shape"])
        for name, form in document["parameters"].items()
    }
    return Quality(
        Index(ids),
        decode_array([row["quality"] for row in rows], "float64"),
        decode_array([row["n_judgments"] for row in rows], "float64"),
        {**parameters, **decode_params(document["shared"])},
    )


def diagnostics_to_json(diagnostics: Diagnostics) -> dict[str, Any]:
    """Return diagnostics as plain values: the sentences, and the rows of annotators and families."""
    return {
        "kind": diagnostics.kind,
        "n_annotators": diagnostics.n_annotators,
        "effective_annotators": diagnostics.effective_annotators,
        "annotator_messages": list(diagnostics.annotator_messages),
        "group_messages": list(diagnostics.group_messages),
        "notes": list(diagnostics.notes),
        "annotators": _table(diagnostics.annotator_table),
        "families": _table(diagnostics.family_table),
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
