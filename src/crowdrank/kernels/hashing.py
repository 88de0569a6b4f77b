"""Numbers for distinct hashes, in order of first appearance."""

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def number_hashes(hashes, numbers, first):  # type: ignore[no-untyped-def]
    """Number the distinct hashes and return how many there are.

    Parameters
    ----------
    hashes : (n,) uint64
    numbers : (n,) int32
        Filled with the number of each hash.
    first : (n,) int64
        Filled, as far as there are numbers, with the row in which each number first appears.
    """
    size = 1
    while size < 2 * len(hashes):
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    n_distinct = 0
    for row in range(len(hashes)):
        place = hashes[row] & mask
        while True:
            number = slots[place]
            if number < 0:
                slots[place] = n_distinct
                first[n_distinct] = row
                numbers[row] = n_distinct
                n_distinct += 1
                break
            if hashes[first[number]] == hashes[row]:
                numbers[row] = number
                break
            place = (place + np.uint64(1)) & mask
    return n_distinct
