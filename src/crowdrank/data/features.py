"""Numbers that describe items: one row per item."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from ..errors import DataWarning, JudgmentError
from ..protocols import AnyFloats, Counts, Floats, Ints
from .coding import factorize, plain_cells
from .columns import understand_items
from .frames import to_frame
from .index import NO_QUERY, Index, Items, build_items
from .naming import named


@dataclass(frozen=True, eq=False)
class Features:
    """A matrix with one row per item, in the order of ``items``; a missing value is NaN.

    ``grade`` holds the grades that came with the file (LETOR), or ``None``.

    Examples
    --------
    >>> features = Features.from_frame({"item": ["b", "a"], "length": [3, 5], "age": [1.5, 0.5]})
    >>> features.names, features.matrix.tolist()
    (('length', 'age'), [[5.0, 0.5], [3.0, 1.5]])
    """

    items: Items
    matrix: AnyFloats
    names: tuple[str, ...]
    grade: Floats | None = None

    def __post_init__(self) -> None:
        if self.matrix.shape != (len(self.items), len(self.names)):
            raise JudgmentError(
                f"the feature matrix is {self.matrix.shape[0]} x {self.matrix.shape[1]} "
                f"for {len(self.items)} items and {len(self.names)} names"
            )
        for name in ("matrix", "grade"):
            values = getattr(self, name)
            if values is not None:
                view = values.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Features({len(self.items):,} items x {len(self.names):,} features)"

    @classmethod
    def from_frame(cls, data: Any, *, columns: Mapping[str, str] | None = None) -> Self:
        """Return features from a table with columns item [, query] and numbers; each item stands once."""
        frame = to_frame(data)
        found = understand_items(frame.columns, columns)
        names = [name for name in frame.columns if name not in found.values()]
        if not len(frame):
            raise JudgmentError("the table of features has a header but no rows; it should hold one item in each")
        if not names:
            raise JudgmentError(
                "the table of features has no column besides the ids; add the numbers that describe the items"
            )
        matrix = np.column_stack([_numbers(frame[name]) for name in names])
        query = frame[found["query"]] if "query" in found else None
        return cls.from_arrays(query, frame[found["item"]], matrix, names=names)

    @classmethod
    def from_arrays(
        cls,
        query: Any,
        item: Any,
        matrix: AnyFloats,
        *,
        names: Sequence[str] | None = None,
        grade: Floats | None = None,
    ) -> Self:
        """Return features from ids and a matrix whose rows may stand in any order; ``query=None`` means one query."""
        item_codes, item_ids = factorize([pl.Series("item", item)])
        query_codes, query_ids = [np.zeros(len(matrix), np.int32)], pl.Series("id", [NO_QUERY])
        if query is not None:
            query_codes, query_ids = factorize([pl.Series("query", query)])
        for word, found in (("item", item_codes[0]), ("query", query_codes[0])):
            if (found < 0).any():
                raise JudgmentError(
                    f"the {word} id is blank in row {int(np.argmax(found < 0)) + 1} of the features; fill it in"
                )
        items, (code,) = build_items(Index(query_ids), [(query_codes[0], item_codes[0])], item_ids)
        order = np.argsort(code, kind="stable")
        if len(items) != len(matrix):
            again = order[1:][np.diff(code[order]) == 0].min()
            repeated = item_ids[int(item_codes[0][again])]
            raise JudgmentError(f"row {int(again) + 1} of the features repeats item {repeated!r}; keep one row")
        names = tuple(names) if names is not None else tuple(str(number + 1) for number in range(matrix.shape[1]))
        sorted_already = bool((order == np.arange(len(order))).all())
        matrix = matrix if sorted_already else matrix[order]
        return cls(items, matrix, names, None if grade is None else np.asarray(grade, np.float64)[order])

    def expect_numbers(self, rows: Counts | Ints | None = None, *, missing: bool = False) -> None:
        """Refuse infinite features, and missing ones unless they are welcome, naming feature and item.

        ``rows`` are those that matter, ``None`` for all.
        """
        fine = ~np.isinf(self.matrix) if missing else np.isfinite(self.matrix)
        if fine.all():
            return
        wrong = np.flatnonzero(~fine.all(axis=1))
        wrong = wrong if rows is None else np.intersect1d(wrong, rows)
        if not len(wrong):
            return
        row = int(wrong[0])
        column = int(np.argmin(fine[row]))
        only = np.arange(len(self)) == row
        value, remedy = "infinite", "give it a number"
        if np.isnan(self.matrix[row, column]):
            value, remedy = "missing", "give it a number, or use lambda_mart, which takes missing values"
        raise JudgmentError(f"feature {self.names[column]!r} of item {named(self.items, only)} is {value}; {remedy}")

    def match(self, judged: Any, *, so: str = "teach nothing") -> Ints:
        """Return the row of each item of judgments, -1 for items that nobody judged or that have no features.

        A warning names judged items without features, and says what follows (``so``); it is an error if all are.
        """
        known = judged.judged_items
        rows = np.where(known, self.items.codes_of(judged.items, "features", "judgments"), -1).astype(np.int32)
        lacking = known & (rows < 0)
        n_lacking, n_judged = int(lacking.sum()), int(known.sum())
        if n_lacking == n_judged:
            first = np.arange(len(self)) == 0
            raise JudgmentError(
                f"none of the {n_judged:,} judged items has features: judged were {named(judged.items, lacking)}, "
                f"the first features are of item {named(self.items, first)}; make ids of queries and items agree"
            )
        if n_lacking:
            warnings.warn(
                f"{n_lacking:,} of {n_judged:,} judged items have no features and {so}: "
                f"{named(judged.items, lacking)}",
                DataWarning, stacklevel=3,
            )  # fmt: skip
        return rows


def _numbers(column: pl.Series) -> Floats:
    """A column of numbers, NaN where blank; text is refused."""
    column = plain_cells(column)
    cells = column.str.strip_chars() if column.dtype == pl.String else column
    if cells.dtype == pl.String:
        cells = cells.set(cells.is_in(["", "NULL", "null", "NaN", "nan"]), None)
    values = cells.cast(pl.Float64, strict=False)
    wrong = values.is_null() & cells.is_not_null()
    if wrong.any():
        row = int(wrong.arg_true()[0])
        what = f"feature {column.name!r} is not a number ({cells[row]!r}) in row {row + 1}"
        raise JudgmentError(f"{what}; leave that column out or mend it")
    return values.fill_null(float("nan")).to_numpy()
