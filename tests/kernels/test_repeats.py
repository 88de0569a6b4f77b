"""Rows that repeat an earlier one, against a set of the rows."""

import numpy as np
import pytest

from crowdrank.data.parted import row_numbers
from crowdrank.kernels.numbering import count_before, count_repeats


@pytest.mark.parametrize("sizes", [(1, 3, 1), (4, 1, 5), (7, 9, 3), (200, 2, 1)])
@pytest.mark.parametrize("n_rows", [0, 1, 60])
def test_as_many_as_a_set_leaves_out(sizes, n_rows):
    rng = np.random.default_rng([n_rows, *sizes])
    codes = [rng.integers(0, size, n_rows, dtype=np.int32) for size in sizes]
    third = codes[2] if sizes[2] > 1 else np.empty(0, np.int32)
    distinct = len(set(zip(*(code.tolist() for code in codes), strict=True)))
    assert count_repeats(codes[0], codes[1], sizes[1], third, sizes[2], int(np.prod(sizes))) == n_rows - distinct


def test_rows_are_counted_that_have_the_same_number_before():
    numbers = row_numbers([np.random.default_rng(2).integers(0, 40, 300)])
    before = [int((numbers[:row] == numbers[row]).sum()) for row in range(300)]
    assert count_before(numbers).tolist() == before
    assert not len(count_before(numbers[:0]))
