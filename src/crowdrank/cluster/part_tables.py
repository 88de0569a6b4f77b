"""The rows of a part in an order of their own, so that the same judgments give the same part, whatever their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..data.fingerprint import row_numbers
from ..data.index import Items
from ..data.preferences import assemble_rankings
from ..protocols import Ints

_ORDER = (
    "item", "left", "right", "annotator", "outcome", "grade", "weight", "time", "duration", "block", "strength",
    "recorded",
)  # fmt: skip
"""Columns by which the rows of a part are sorted, and in which order they are written."""


def part_table(
    kind: str, rows: dict[str, Any], items: Items | None, *, coded: bool, ordered: bool = True
) -> tuple[int, pl.DataFrame, list[float] | None]:
    """Return the number of judgments of a part, its table, and the grades that codes stand for.

    Parameters
    ----------
    kind
        That of the judgments.
    rows
        Columns of the rows; ``None`` where there is no such column.
    items
        Items of the part, for rankings.
    coded
        Whether grades are few enough to be written as codes.
    ordered
        Whether the rows are sorted; rankings always are.
    """
    levels: list[float] | None = None
    if kind == "ranking":
        assert items is not None
        return _ranking_rows(rows, items)
    if "grade" in rows and coded:
        values = np.unique(rows["grade"])
        rows["grade"] = np.searchsorted(values, rows["grade"]).astype(np.int8)
        levels = values.tolist()
    given = {name: column for name, column in rows.items() if column is not None}
    names = [name for name in _ORDER if name in given]
    names += [name for name in given if name not in names and name != "judgment"]
    of_judgment, own = np.unique(given.pop("judgment", np.empty(0)), return_inverse=True)
    if len(of_judgment) == len(own):
        given = {name: given[name] for name in names}
        table = _sorted_table(given) if ordered else pl.DataFrame(given)
        return len(table), table, levels
    # rows that say the same are in the order of all that their judgments say
    together = np.zeros(len(of_judgment), np.uint64)
    np.add.at(together, own, row_numbers([given[name] for name in names]))
    table = pl.DataFrame({name: given[name] for name in names} | {"together": together[own], "judgment": own})
    table = (table.sort([*names, "together", "judgment"]) if ordered else table).drop("together")
    numbers = _by_appearance(table["judgment"].to_numpy())
    return int(numbers.max(initial=-1)) + 1, table.with_columns(judgment=pl.Series(numbers)), levels


def _sorted_table(columns: dict[str, NDArray[Any]]) -> pl.DataFrame:
    """Rows sorted by the first column, then the second and so on.

    Rows of whole numbers that fit into 63 bits are sorted as one number each, in a sixth of the time.
    """
    whole = all(column.dtype.kind == "i" and len(column) for column in columns.values())
    lows = {name: int(column.min()) for name, column in columns.items()} if whole else {}
    bits = {name: (int(columns[name].max()) - low).bit_length() for name, low in lows.items()}
    if not whole or sum(bits.values()) > 63:
        return pl.DataFrame(columns).sort(list(columns))
    key = np.zeros(len(next(iter(columns.values()))), np.int64)
    for name, column in columns.items():
        key <<= bits[name]
        key |= column.astype(np.int64) - lows[name]
    key.sort()
    found = {}
    for name in reversed(columns):
        found[name] = ((key & ((1 << bits[name]) - 1)) + lows[name]).astype(columns[name].dtype)
        key >>= bits[name]
    return pl.DataFrame({name: found[name] for name in columns})


def _by_appearance(numbers: NDArray[np.int64]) -> Ints:
    """The numbers as 0, 1, ... in the order in which they first appear."""
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first), dtype=np.int32)
    places: Ints = rank[inverse]
    return places


def _ranking_rows(rows: dict[str, Any], items: Items) -> tuple[int, pl.DataFrame, None]:
    """Number of the rankings of a part, and their rows, sorted by query, annotator and what the rankings say."""
    n = len(rows["item"])
    given = {"annotator": np.empty(0, np.int32), "weight": None, "time": None, "duration": None}
    fields = assemble_rankings({**given, **rows, "items": items})
    offsets, item, rank = fields["offsets"], fields["item"], fields["rank"]
    first = offsets[:-1]
    meta = {name: fields[name] for name in ("annotator", "weight", "time", "duration", "block")
            if fields.get(name) is not None and len(fields[name])}  # fmt: skip
    place = np.arange(n) - np.repeat(first, np.diff(offsets))
    said = np.add.reduceat(row_numbers([item, rank, place]), first) if n else np.empty(0, np.uint64)
    keys = pl.DataFrame({"query": items.query[item[first]], **meta, "said": said})
    order = keys.with_row_index("place").sort(keys.columns)["place"].to_numpy()
    lengths = np.diff(offsets)[order]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    sorted_rows = np.repeat(first[order] - starts[:-1], lengths) + np.arange(n)
    number = np.repeat(np.arange(len(order), dtype=np.int32), lengths)
    per_row = {name: column[order][number] for name, column in meta.items()}
    table = pl.DataFrame({"item": item[sorted_rows], "rank": rank[sorted_rows], "ranking": number, **per_row})
    return len(order), table, None
