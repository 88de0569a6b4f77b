"""Structure numbers tell items apart exactly as following their links for ever would."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import pair_orders

from crowdrank.kernels import numbering
from crowdrank.kernels.numbering import mix_bits, structure_numbers


def draw_links(rng, n_items, n_links, n_labels):
    """Random pairs in compressed rows with labels as both sides see them."""
    chosen = rng.choice(n_items * (n_items - 1) // 2, min(n_links, n_items * (n_items - 1) // 2), replace=False)
    first, second = (part[np.sort(chosen)] for part in np.triu_indices(n_items, 1))
    up = rng.integers(0, n_labels, len(first)).astype(np.uint64)
    return np.searchsorted(first, np.arange(n_items + 1)), first, second.astype(np.int32), up, np.uint64(n_labels) - up


def partition(numbers):
    """Sets of items with the same number."""
    return {tuple(np.flatnonzero(np.array(numbers) == number)) for number in set(np.array(numbers).tolist())}


@given(st.integers(0, 2**32), st.integers(2, 14), st.integers(1, 20), st.integers(1, 3))
def test_classes_equal_the_slow_twin(seed, n_items, n_links, n_labels):
    starts, first, second, up, down = draw_links(np.random.default_rng(seed), n_items, n_links, n_labels)
    labels = dict(zip(zip(first.tolist(), second.tolist(), strict=True), up.tolist(), strict=True))
    labels |= dict(zip(zip(second.tolist(), first.tolist(), strict=True), down.tolist(), strict=True))
    numbers = structure_numbers(starts, second, up, down, np.array([0, n_items]))
    assert partition(numbers) == partition(pair_orders.colours(labels, n_items))
    linked = np.isin(np.arange(n_items), np.append(first, second))
    np.testing.assert_array_equal(numbers != 0, linked)


def test_names_do_not_matter():
    rng = np.random.default_rng(1)
    starts, first, second, up, down = draw_links(rng, 30, 60, 2)
    numbers = structure_numbers(starts, second, up, down, np.array([0, 30]))
    name = rng.permutation(30)
    one, other = name[first], name[second]
    low, high = np.minimum(one, other), np.maximum(one, other)
    order = np.lexsort((high, low))
    turned = (one > other)[order]
    above, below = np.where(turned, down[order], up[order]), np.where(turned, up[order], down[order])
    rows = np.searchsorted(low[order], np.arange(31))
    renamed = structure_numbers(rows, high[order].astype(np.int32), above, below, np.array([0, 30]))
    np.testing.assert_array_equal(renamed[name], numbers)


def chain(n):
    """Each item linked with the next, in compressed rows."""
    starts = np.minimum(np.arange(n + 1), n - 1)
    return starts, np.arange(1, n, dtype=np.int32), np.ones(n - 1, np.uint64), np.zeros(n - 1, np.uint64)


def test_chains_are_told_apart_to_the_middle():
    numbers = structure_numbers(*chain(300), np.array([0, 300]))
    assert len(set(numbers.tolist())) == 300


def test_where_it_would_take_too_long_names_decide(monkeypatch):
    monkeypatch.setattr(numbering, "_MAX_PAIR_VISITS", 1_000)
    numbers = structure_numbers(*chain(300), np.array([0, 300]))
    assert len(set(numbers.tolist())) == 300


def test_mixing_equals_whole_numbers():
    for value in (0, 1, 2**63, 2**64 - 1, 123456789):
        assert int(mix_bits(np.uint64(value))) == pair_orders.mixed(value)
