"""The fixed tree of sums."""

import numpy as np
import pytest

from crowdrank.cluster.executor import TreeSum


def tree_sum(values):
    """The sum of values that are added one by one."""
    added = TreeSum(np.add)
    for value in values:
        added.add(value)
    return added.total()


def _node(values, level, number):
    """The sum of a node by its definition."""
    covered = values[number << level : (number + 1) << level]
    if not len(covered):
        return None
    if level == 0:
        return covered[0]
    left, right = _node(values, level - 1, 2 * number), _node(values, level - 1, 2 * number + 1)
    return left if right is None else left + right


def test_sums_are_those_of_the_tree_and_of_aligned_blocks_for_any_number_of_parts():
    values = np.random.default_rng(0).lognormal(size=70, sigma=8)
    for n in range(1, 71):
        expected = _node(values[:n], 10, 0)
        assert tree_sum(values[:n]) == expected
        for size in (2, 4, 8):
            blocks = [tree_sum(values[begin : min(begin + size, n)]) for begin in range(0, n, size)]
            assert tree_sum(blocks) == expected


def test_only_the_logarithm_of_the_parts_is_held():
    added = TreeSum(np.add)
    for number in range(1000):
        added.add(float(number))
        assert len(added._waiting) <= 10
    assert added.total() == sum(range(1000))


def test_nothing_has_no_sum():
    with pytest.raises(ValueError, match="no part"):
        tree_sum([])
