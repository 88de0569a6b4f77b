"""Cells of a two-way table that rows fall into."""

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def mark_cells(row, column, n_columns, table):  # type: ignore[no-untyped-def]
    """Set the cells (row, column) of a table, (n_rows * n_columns,) int32, to 1; row and column are int32, (n,)."""
    for place in range(len(row)):
        table[np.int64(row[place]) * n_columns + column[place]] = 1


@numba.njit(cache=True, nogil=True)
def read_cells(row, column, n_columns, table):  # type: ignore[no-untyped-def]
    """Return what stands in the cells (row, column) of a table, (n,) int32."""
    values = np.empty(len(row), np.int32)
    for place in range(len(row)):
        values[place] = table[np.int64(row[place]) * n_columns + column[place]]
    return values
