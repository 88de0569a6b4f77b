"""Cells of a two-way table that rows fall into."""

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def mark_cells(row, column, table):  # type: ignore[no-untyped-def]
    """Set the cells (row, column) of a table, (n_rows, n_columns) int32, to 1; row and column are int32, (n,)."""
    for place in range(len(row)):
        table[row[place], column[place]] = 1


@numba.njit(cache=True, nogil=True)
def number_cells(table):  # type: ignore[no-untyped-def]
    """Number the cells of a table that are 1 from 0 on, in place; return the row and the column of each, (n,) int32."""
    n = table.sum()
    rows, columns = np.empty(n, np.int32), np.empty(n, np.int32)
    number = 0
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            if table[row, column]:
                table[row, column] = number
                rows[number], columns[number] = row, column
                number += 1
    return rows, columns


@numba.njit(cache=True, nogil=True)
def read_cells(row, column, table):  # type: ignore[no-untyped-def]
    """Return what stands in the cells (row, column) of a table, (n,) int32."""
    values = np.empty(len(row), np.int32)
    for place in range(len(row)):
        values[place] = table[row[place], column[place]]
    return values
