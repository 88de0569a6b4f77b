"""Preferences sorted by pair are those that were given, pair by pair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import pairs as slow

from crowdrank.kernels.pairs import sort_by_pair


def preferences(seed, n, n_items=6, n_annotators=4):
    """Columns of random preferences."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n_items, n).astype(np.int32)
    right = ((left + rng.integers(1, n_items, n)) % n_items).astype(np.int32)
    outcome, annotator = rng.integers(-1, 2, n).astype(np.int8), rng.integers(0, n_annotators, n).astype(np.int32)
    return left, right, outcome, annotator, rng.random(n) + 0.1


def listed(by_pair):
    """(lower, higher, annotator, outcome for the lower, weight) of each answer, sorted."""
    weight = by_pair.weight if by_pair.weight.size else np.ones(len(by_pair.code))
    pair = by_pair.pair
    columns = (by_pair.first[pair], by_pair.second[pair], by_pair.annotator, by_pair.outcome, weight)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def expected(left, right, outcome, annotator, weight, ties=True):
    """The same from the rows."""
    rows = zip(left, right, outcome, annotator, weight, strict=True)
    return sorted((min(i, j), max(i, j), k, y if i < j else -y, w) for i, j, y, k, w in rows if y or ties)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@given(seed=st.integers(0, 1000), n=st.integers(0, 40))
def test_answers_are_the_preferences(ties, weighted, seed, n):
    left, right, outcome, annotator, weight = preferences(seed, n)
    given_weight = weight if weighted else None
    by_pair, counts = sort_by_pair(left, right, outcome, annotator, given_weight, 6, ties=ties)
    weight = weight if weighted else np.ones(n)
    assert listed(by_pair) == expected(left, right, outcome, annotator, weight, ties)
    pairs = slow.count_pairs(left.tolist(), right.tolist(), outcome.tolist(), given_weight)
    assert list(zip(counts.first.tolist(), counts.second.tolist(), strict=True)) == list(pairs)
    found = np.stack([counts.wins, counts.losses, counts.ties], axis=1)
    np.testing.assert_allclose(found, np.reshape(list(pairs.values()), (-1, 3)))


def test_every_fourth_pair():
    by_pair, _ = sort_by_pair(*preferences(0, 60)[:4], None, 6, ties=True)
    part = by_pair.every(4)
    keep = set(zip(by_pair.first[::4].tolist(), by_pair.second[::4].tolist(), strict=True))
    assert listed(part) == [row for row in listed(by_pair) if row[:2] in keep]
    assert part.starts[-1] == len(part.second)


def test_without_some_annotators():
    by_pair, _ = sort_by_pair(*preferences(1, 60), 6, ties=True)
    part = by_pair.without(np.array([False, True, False, True]))
    assert listed(part) == [row for row in listed(by_pair) if row[2] in (0, 2)]
    np.testing.assert_array_equal(part.second, by_pair.second)
