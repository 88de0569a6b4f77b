"""How many rows repeat an earlier one."""

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def count_repeats(first, second, n_second, third, n_third, n_cells):  # type: ignore[no-untyped-def]
    """Count the rows whose three codes stood together in an earlier row.

    Rows are put together by their first code, so that one small table of bits serves each of them in turn: a table of
    all combinations is read at random places, which takes three times as long.

    Parameters
    ----------
    first, second, third : (n_rows,) int32
        Codes; ``third`` may be empty, with ``n_third`` 1.
    n_second, n_third : int
        Number of codes of the second and third column.
    n_cells : int
        Number of possible combinations.
    """
    width = n_second * n_third
    start = np.zeros(n_cells // width + 1, np.int64)
    for row in range(len(first)):
        start[first[row] + 1] += 1
    for code in range(1, len(start)):
        start[code] += start[code - 1]
    place = start[:-1].copy()
    keys = np.empty(len(first), np.int64)
    for row in range(len(first)):
        key = np.int64(second[row])
        if n_third > 1:
            key = key * n_third + third[row]
        keys[place[first[row]]] = key
        place[first[row]] += 1
    seen = np.zeros((width + 7) >> 3, np.uint8)
    repeats = 0
    for code in range(len(start) - 1):
        for row in range(start[code], start[code + 1]):
            bit = np.uint8(1 << (keys[row] & 7))
            if seen[keys[row] >> 3] & bit:
                repeats += 1
            seen[keys[row] >> 3] |= bit
        for row in range(start[code], start[code + 1]):
            seen[keys[row] >> 3] = 0
    return repeats
