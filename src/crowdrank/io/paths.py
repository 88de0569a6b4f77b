"""Values inside nested cells: ``data.url`` of a column of objects, or of text that holds JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import polars as pl

_STEP = re.compile(r"\.|\[(\d+)\]")


def root_of(names: Iterable[str], path: str) -> tuple[str, list[str]] | None:
    """Return the column that a path starts with and the steps behind it; ``None`` where there is no such column.

    Examples
    --------
    >>> root_of(["data", "doc.id"], "data.meta[0].url"), root_of(["data", "doc.id"], "doc.id"), root_of(["x"], "y.z")
    (('data', ['meta', '0', 'url']), ('doc.id', []), None)
    >>> root_of(["scores"], "scores[].name")
    ('scores', [])
    """
    known = set(names)
    if path in known:
        return path, []
    listed, _, rest = path.partition("[]")
    if rest and (root := root_of(names, listed)) is not None:
        return root
    cuts = [match.start() for match in _STEP.finditer(path)]
    for cut in reversed(cuts):
        if path[:cut] in known:
            steps = [step for step in _STEP.split(path[cut:]) if step]
            return path[:cut], steps
    return None


def at_path(cells: pl.Series, steps: list[str]) -> pl.Series:
    """Return the values behind the steps, null where there is nothing.

    Examples
    --------
    >>> at_path(pl.Series([{"a": [3, 4]}, {"a": None}]), ["a", "1"]).to_list()
    [4, None]
    >>> at_path(pl.Series(['{"a": 1}', "no JSON"]), ["a"]).to_list()
    [1, None]
    """
    for number, step in enumerate(steps):
        if isinstance(cells.dtype, pl.Struct):
            if step not in [field.name for field in cells.dtype.fields]:
                return pl.Series([None] * len(cells), dtype=pl.String)
            cells = cells.struct.field(step)
        elif isinstance(cells.dtype, pl.List) and step.isdigit():
            cells = cells.list.get(int(step), null_on_oob=True)
        elif cells.dtype == pl.String:
            return _of_json(cells, steps[number:])
        else:
            return pl.Series([None] * len(cells), dtype=pl.String)
    return cells


def _of_json(cells: pl.Series, steps: list[str]) -> pl.Series:
    """Values inside cells of JSON text."""
    values = [_walk(_parse_cell(cell), steps) for cell in cells.to_list()]
    kinds = {type(value) for value in values if value is not None}
    if (kinds and kinds <= {int, float}) or kinds == {bool}:
        return pl.Series(values, strict=False)
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pl.Series(texts, dtype=pl.String)


def _parse_cell(cell: str | None) -> Any:
    """What a cell of JSON holds, ``None`` where it is no JSON."""
    if cell is None or cell.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return None


def _walk(value: Any, steps: list[str]) -> Any:
    """The value behind the steps."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
