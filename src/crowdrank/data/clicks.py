"""A log of clicks: what was shown where, and what was clicked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from ..errors import JudgmentError
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import counted
from .column_names import assign_columns, could_serve
from .frames import to_frame
from .index import Items, code_items, first_row
from .showing import Shown

_YES = {"1": True, "1.0": True, "true": True, "yes": True, "0": False, "0.0": False, "false": False, "no": False}


@dataclass(frozen=True, eq=False)
class Clicks(Shown):
    """Items that were shown, one row each, in the order of the impressions and positions.

    Parameters
    ----------
    items
        Items within their queries.
    item
        Code of the item of each row.
    position
        Place it was shown at, 1 is the first.
    clicked
        Whether it was clicked.
    impression
        Number of the result page it stood on; ``None`` where the log does not say.

    Examples
    --------
    >>> log = {"query": ["q", "q"], "item": ["x", "y"], "position": [1, 2], "clicked": [0, 1]}
    >>> Clicks.from_frame(log)
    Clicks(2 rows, 1 click, 1 query)
    """

    items: Items
    item: Ints
    position: Ints
    clicked: Bools
    impression: Counts | None = None

    def __repr__(self) -> str:
        rows, clicks = counted(len(self), "row"), counted(int(self.clicked.sum()), "click")
        return f"Clicks({rows}, {clicks}, {counted(self.items.n_queries, 'query')})"

    def __len__(self) -> int:
        return len(self.item)

    @property
    def n_positions(self) -> int:
        """The last position that anything was shown at."""
        return int(self.position.max())

    @classmethod
    def from_frame(cls, data: Any, *, columns: dict[str, str] | None = None) -> Self:
        """Return the log in a frame of query, item, position and clicked [, impression]; ``columns`` names others."""
        frame = to_frame(data)
        names, given = frame.columns, columns or {}
        unknown = next((name for name in given.values() if name not in names), None)
        if unknown is not None:
            raise JudgmentError(f"there is no column {unknown!r} in the log ({could_serve(names, {})})")
        roles = assign_columns(("position", "clicked", "impression"), names)
        rest = [name for name in names if name not in roles.values()]
        roles = {**assign_columns(("item", "query"), rest), **roles, **given}
        lacking = next((word for word in ("item", "position", "clicked") if word not in roles), None)
        if lacking is not None:
            what = f"the log has no {lacking} column ({could_serve(names, roles)})"
            holds = "a log has query, item, position, clicked and, for cascade models, impression"
            raise JudgmentError(f"{what}; {holds}: rename one or name it with columns={{{lacking!r}: ...}}")
        position = frame[roles["position"]].cast(pl.Float64, strict=False)
        right = ((position >= 1) & (position == position.round()) & (position <= 10_000)).fill_null(False)
        if (row := first_row(~right)) is not None:
            what = f"row {row + 1} has the position {frame[roles['position']][row]!r}"
            raise JudgmentError(f"{what}; positions are whole numbers from 1 on, up to 10,000")
        words = frame[roles["clicked"]].cast(pl.String).str.strip_chars().str.to_lowercase()
        clicked = words.replace_strict(_YES, default=None, return_dtype=pl.Boolean)
        if (row := first_row(clicked.is_null())) is not None:
            what = f"row {row + 1} has clicked = {frame[roles['clicked']][row]!r}"
            raise JudgmentError(f"{what}; write 1 where it was clicked and 0 where it was not")
        if not len(frame):
            raise JudgmentError("the log is empty; give at least one row of query, item, position and clicked")
        query = frame[roles["query"]] if "query" in roles else None
        items, item = code_items(query, frame[roles["item"]], "the {} is blank in row {} of the log; fill it in")
        place = position.to_numpy().astype(np.int32)
        pages = np.zeros(len(item), np.int64)
        if "impression" in roles:
            keys = pl.struct(pl.Series(items.query[item]), frame[roles["impression"]].cast(pl.String))
            pages = frame.select(keys.rank("dense")).to_series().to_numpy().astype(np.int64) - 1
        # in an order that does not depend on that of the file
        order = np.lexsort((clicked.to_numpy(), item, place, pages))
        if "impression" in roles:
            again = (np.diff(pages[order]) == 0) & (np.diff(place[order]) == 0)
            if again.any():
                row = int(order[int(np.argmax(again)) + 1])
                name = items.queries.ids[int(items.query[item[row]])]
                what = f"row {row + 1} shows a second item at position {place[row]} of the same impression"
                raise JudgmentError(f"{what} (query {name!r}); give each page its own id")
        impression = pages[order] if "impression" in roles else None
        return cls(items, item[order], place[order], clicked.to_numpy()[order], impression)

    def frame(self) -> pl.DataFrame:
        """Return the log as a table."""
        ids = self.items.frame()[self.item.astype(np.int64)]
        table = ids.with_columns(position=pl.Series(self.position), clicked=pl.Series(self.clicked.astype(np.int8)))
        return table if self.impression is None else table.with_columns(impression=pl.Series(self.impression))

    def counts(self) -> tuple[Floats, Floats]:
        """Return how often each item was shown, and clicked."""
        n = len(self.items)
        shown, clicks = np.bincount(self.item, minlength=n), np.bincount(self.item[self.clicked], minlength=n)
        return shown.astype(np.float64), clicks.astype(np.float64)
