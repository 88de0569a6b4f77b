"""Counts of pairs equal the plain count, whichever way they are made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import pairs as slow

from crowdrank.kernels import threads
from crowdrank.kernels.pairs import (
    count_by_sorting,
    count_few_rows,
    count_in_table,
    count_pairs,
    item_totals,
    pair_numbers,
)


def draw_rows(rng, sizes, n_rows, weighted):
    """Rows within queries of the given sizes, and the bounds of the queries."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    query = rng.integers(0, len(sizes), n_rows)
    left = rng.integers(0, sizes[query])
    right = (left + rng.integers(1, sizes[query])) % sizes[query]
    outcome = rng.integers(-1, 2, n_rows).astype(np.int8)
    weight = rng.integers(1, 9, n_rows) / 4 if weighted else None
    start = offsets[query]
    return (left + start).astype(np.int32), (right + start).astype(np.int32), outcome, weight, offsets


def as_dict(counts):
    """(lower, higher) -> [wins, losses, ties]."""
    table = np.stack([counts.wins, counts.losses, counts.ties], axis=1).tolist()
    return dict(zip(zip(counts.first.tolist(), counts.second.tolist(), strict=True), table, strict=True))


@given(st.integers(0, 2**32), st.lists(st.integers(2, 6), min_size=1, max_size=4), st.integers(0, 60), st.booleans())
def test_all_ways_equal_the_plain_count(seed, sizes, n_rows, weighted):
    rows = draw_rows(np.random.default_rng(seed), np.array(sizes), n_rows, weighted)
    *columns, offsets = rows
    expected = slow.count_pairs(*(None if c is None else c.tolist() for c in columns))
    n_items = int(offsets[-1])
    table, sort, few = count_in_table(*rows), count_by_sorting(*columns, n_items), count_few_rows(*columns, n_items)
    for counts in (table, sort, few):
        assert as_dict(counts) == expected
        np.testing.assert_array_equal(counts.starts, table.starts)


def test_a_pair_may_be_asked_more_often_than_a_byte_counts():
    n = 100_000
    left, right = np.zeros(n, np.int32), np.ones(n, np.int32)
    outcome = np.where(np.arange(n) % 4 == 0, -1, 1).astype(np.int8)
    counts = count_pairs(left, right, outcome, None, np.array([0, 2]))
    assert (counts.wins.tolist(), counts.losses.tolist(), counts.ties.tolist()) == ([75_000], [25_000], [0])


def test_threads_count_the_same(monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: 3)
    rows = draw_rows(np.random.default_rng(1), np.array([30, 20]), 5_000, False)
    expected = slow.count_pairs(*(None if c is None else c.tolist() for c in rows[:4]))
    assert as_dict(count_in_table(*rows)) == expected


def test_many_items_are_sorted_and_not_laid_out(monkeypatch):
    def refuse(*args):
        raise AssertionError("a table of all pairs was made")

    monkeypatch.setattr("crowdrank.kernels.pairs.count_in_table", refuse)
    rows = draw_rows(np.random.default_rng(2), np.array([50_000]), 1_000, False)
    assert len(count_pairs(*rows).second) > 0


def test_nothing_to_count():
    empty = np.empty(0, np.int32)
    for offsets in (np.array([0, 3]), np.array([0, 0]), np.array([0, 100_000])):
        counts = count_pairs(empty, empty, np.empty(0, np.int8), None, offsets)
        assert len(counts.second) == 0
        assert len(counts.starts) == offsets[-1] + 1


def test_keep_and_totals():
    left, right, outcome = np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32), np.array([1, 0, -1], np.int8)
    counts = count_pairs(left, right, outcome, np.array([2.0, 3.0, 1.0]), np.array([0, 3]))
    wins, losses = item_totals(counts)
    assert (wins.tolist(), losses.tolist()) == ([3.5, 0.0, 2.5], [1.5, 3.0, 1.5])
    assert as_dict(counts.keep(counts.ties == 0)) == {(0, 1): [2, 0, 0], (1, 2): [0, 1, 0]}


@pytest.mark.parametrize("weighted", [False, True])
def test_row_order_does_not_matter(weighted):
    rng = np.random.default_rng(3)
    *columns, offsets = draw_rows(rng, np.array([9, 4]), 400, weighted)
    order = rng.permutation(400)
    one = count_pairs(*columns, offsets)
    other = count_pairs(*(None if c is None else c[order] for c in columns), offsets)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@given(st.integers(0, 2**32), st.lists(st.integers(2, 6), min_size=1, max_size=4), st.integers(0, 60))
def test_pair_numbers_lead_back_to_the_rows(seed, sizes, n_rows):
    left, right, outcome, _, offsets = draw_rows(np.random.default_rng(seed), np.array(sizes), n_rows, False)
    counts = count_pairs(left, right, outcome, None, offsets)
    numbers = pair_numbers(left, right, counts.starts, counts.second)
    np.testing.assert_array_equal(counts.first[numbers], np.minimum(left, right))
    np.testing.assert_array_equal(counts.second[numbers], np.maximum(left, right))


def test_sums_by_side():
    from crowdrank.kernels.pairs import side_differences, side_moments

    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 5, 40), rng.integers(0, 5, 40)
    values, weight = rng.normal(size=(40, 2)), rng.random(40)
    wanted = np.zeros((5, 2))
    for one, other, row, amount in zip(left, right, values, weight, strict=True):
        wanted[one] += amount * row
        wanted[other] -= amount * row
    weighted = weight[:, None] * values
    differences, sums, products = side_moments(left, right, weight, values, 5)
    np.testing.assert_allclose(differences, wanted, atol=1e-12)
    np.testing.assert_allclose(sums, weighted.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(products, weighted.T @ values, atol=1e-12)
    np.testing.assert_allclose(side_differences(left, right, weighted, 5), wanted, atol=1e-12)
