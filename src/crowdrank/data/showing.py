"""Results that show themselves: as a small table in notebooks, and as a pandas frame for those who use pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import MissingExtraError, ParameterError
from .files import PathLike, plain, refusal, whole_file

ROWS = 10
"""Rows that a notebook is shown."""

DIGITS: ContextVar[int | None] = ContextVar("digits", default=None)
"""Significant digits of numbers in text that were asked for on the command line."""

_DIGITS = 6
EXACT = 17
"""Significant digits that tell any two numbers apart."""

_ROUNDING = 1e-12
"""Size of a number, relative to the largest of its column, below which it is what rounding left of 0: a sum of some
thousand numbers is off by less, one of millions usually too."""

_MAX_CHARACTERS = 300
_LARGEST_WHOLE = 1e12
_NUMBER = ' style="text-align:right;padding:2px 8px"'
_TEXT = ' style="text-align:left;padding:2px 8px"'


class Shown:
    """A result with a table."""

    def frame(self) -> pl.DataFrame:
        """Return the table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the table of :meth:`frame` as a pandas frame; needs pandas."""
        return pandas_frame(self.frame())

    def to_csv(self, path: PathLike | None = None, *, digits: int | None = None) -> str | None:
        """Write the table of :meth:`frame` as CSV, or return the text where no path is given.

        Numbers have six significant digits, or as many as ``digits`` says; 17 are exact.
        """
        frame = self.frame()
        text: str = frame.with_columns(round_floats(frame.schema, digits)).write_csv()
        if path is None:
            return text
        try:
            with whole_file(Path(path)) as handle:
                handle.write(text.encode())
        except OSError as error:
            raise ParameterError(refusal(plain(str(path)), Path(path), error)) from None
        return None

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        frame = self.frame()
        return html_table(repr(self).split("\n", 1)[0], frame.head(ROWS), len(frame))


def round_floats(schema: Mapping[str, pl.DataType], digits: int | None = None) -> list[pl.Expr]:
    """Return the columns of floats as they stand in text; without ``digits`` as many as were asked for, or 6.

    A number that is 0 up to rounding, seen beside the largest of its column, is 0; no digit before the point is lost.

    Examples
    --------
    >>> frame = pl.DataFrame({"score": [2 / 3, -8.1e-17, 1234567.891]})
    >>> frame.select(round_floats(frame.schema))["score"].to_list()
    [0.666667, 0.0, 1234568.0]
    """
    number = digits or DIGITS.get() or _DIGITS
    if number >= EXACT:
        return []
    floats = [name for name, dtype in schema.items() if dtype.is_float()]
    # by batches, since a ranking that stays on disk is written through here too
    return [pl.col(name).map_batches(partial(_round, digits=number), is_elementwise=True) for name in floats]


def _round(column: pl.Series, digits: int) -> pl.Series:
    """Numbers with some significant digits."""
    size = column.abs()
    largest = size.filter(size.is_finite()).max() or 0.0
    noise, whole = size <= _ROUNDING * largest, size >= 10.0**digits  # type: ignore[operator]
    rounded = column.round_sig_figs(digits).zip_with(~whole, column.round()).set(noise, 0.0)
    # beyond 1e22, where powers of ten are no longer exact, polars leaves stray last digits
    tiny = (~noise & (size < 10.0 ** (digits - 22))).fill_null(False).arg_true()
    return rounded.scatter(tiny, [float(f"{value:.{digits}g}") for value in column.gather(tiny)])


def html_table(title: str, frame: pl.DataFrame, n_rows: int, notes: Sequence[str] = ()) -> str:
    """Return a table as HTML in the colours of the page it stands on, with everything in it escaped.

    Parameters
    ----------
    title
        What stands above it.
    frame
        The rows to show.
    n_rows
        How many rows there are in all.
    notes
        Sentences that stand between title and table.

    Examples
    --------
    >>> import polars as pl
    >>> print(html_table("Items", pl.DataFrame({"item": ["<b>x</b>"]}), 20))
    <div class="crowdrank" style="overflow-x:auto"><p><strong>Items</strong></p>
    <table class="dataframe"><thead><tr><th style="text-align:left;padding:2px 8px">item</th></tr></thead>
    <tbody><tr><td style="text-align:left;padding:2px 8px">&lt;b&gt;x&lt;/b&gt;</td></tr></tbody></table>
    <p>first 1 of 20 rows</p></div>
    """
    looks = [_NUMBER if dtype.is_numeric() else _TEXT for dtype in frame.dtypes]
    head = "".join(f"<th{look}>{_cell(name)}</th>" for name, look in zip(frame.columns, looks, strict=True))
    rows = "\n".join(f"<tr>{_cells(row, looks)}</tr>" for row in frame.iter_rows())
    said = f"<p><strong>{_cell(title)}</strong></p>" + "".join(f"<p>{escape(plain(note))}</p>" for note in notes)
    more = f"\n<p>first {len(frame):,} of {n_rows:,} rows</p>" if n_rows > len(frame) else ""
    table = f'<table class="dataframe"><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>'
    return f'<div class="crowdrank" style="overflow-x:auto">{said}\n{table}{more}</div>'


def _cells(row: Sequence[Any], looks: Sequence[str]) -> str:
    """The cells of a row of a table."""
    return "".join(f"<td{look}>{_cell(value)}</td>" for value, look in zip(row, looks, strict=True))


def pandas_frame(frame: pl.DataFrame) -> Any:
    """Return a polars frame as a pandas one, without the need for pyarrow.

    Examples
    --------
    >>> import polars as pl
    >>> pandas_frame(pl.DataFrame({"item": ["x", None], "score": [1.5, None]})).shape
    (2, 2)
    """
    try:
        import pandas as pd
    except ImportError:
        remedy = "install it with pip install pandas, or use frame(), which gives a polars frame"
        raise MissingExtraError(f"to_pandas needs pandas; {remedy}") from None
    return pd.DataFrame({name: _column(frame[name]) for name in frame.columns})


def _column(cells: pl.Series) -> Any:
    """Cells as pandas takes them: numbers as an array in which NaN stands for a missing one, others as a list."""
    if not cells.dtype.is_numeric():
        return cells.to_list()
    return (cells.cast(float) if cells.null_count() else cells).to_numpy()


def _cell(value: Any) -> str:
    """A value as it stands in a table: numbers short, text on one line and cut, nothing for a missing one."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        if value.is_integer() and abs(value) < _LARGEST_WHOLE:
            return f"{value:.0f}"
        return f"{value:.1f}" if 1000 <= abs(value) < _LARGEST_WHOLE else f"{value:.4g}"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = plain(" ".join(text[: 4 * _MAX_CHARACTERS].split()))
    return escape(text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…")
