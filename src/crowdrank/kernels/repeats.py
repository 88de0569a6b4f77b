"""How many rows repeat an earlier one."""

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def count_repeats(first, second, n_second, third, n_third, n_cells):  # type: ignore[no-untyped-def]
    """Count the rows whose three codes stood together in an earlier row.

    Parameters
    ----------
    first, second, third : (n_rows,) int32
        Codes; ``third`` may be empty, with ``n_third`` 1.
    n_second, n_third : int
        Number of codes of the second and third column.
    n_cells : int
        Number of possible combinations; one bit is kept for each.
    """
    seen = np.zeros((n_cells + 7) >> 3, np.uint8)
    repeats = 0
    for row in range(len(first)):
        key = np.int64(first[row]) * n_second + second[row]
        if n_third > 1:
            key = key * n_third + third[row]
        bit = np.uint8(1 << (key & 7))
        if seen[key >> 3] & bit:
            repeats += 1
        seen[key >> 3] |= bit
    return repeats
