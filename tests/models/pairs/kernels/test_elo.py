"""Elo updates equal the plain loop."""

import numpy as np
import pytest
from tests.oracles import pairs as slow

from crowdrank.models.pairs.kernels.elo import elo_scores, logistic_excess, logistic_table

UNIT = 400 / np.log(10)


def rows(n_items, n_rows, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n_items, n_rows)
    right = (left + rng.integers(1, n_items, n_rows)) % n_items
    return left.astype(np.int32), right.astype(np.int32), rng.integers(-1, 2, n_rows).astype(np.int8)


# above k = 700 an update overshoots, so that the last digit of a score decides over the first one in the end
@pytest.mark.parametrize("k", [0.5, 4.0, 32.0, 400.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_plain_loop(k, weighted):
    left, right, outcome = rows(12, 4_000)
    weight = np.random.default_rng(1).random(4_000) + 0.2 if weighted else None
    found = 1000 + UNIT * elo_scores(left, right, outcome, weight, 12, k / UNIT)
    expected = slow.elo(left, right, outcome, weight, 12, k)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * k)


def test_logistic_table_is_exact_and_flat_beyond_its_ends():
    table = logistic_table().ravel()
    gaps = np.concatenate([np.linspace(-40, 40, 4_001), [-1e300, 1e300, np.inf, -np.inf]])
    found = [logistic_excess(gap, table) for gap in gaps]
    np.testing.assert_allclose(found, 0.5 * np.tanh(0.5 * gaps), atol=1e-12, rtol=0)


def test_nothing_played():
    empty = np.empty(0, np.int32)
    assert elo_scores(empty, empty, np.empty(0, np.int8), None, 3, 0.1).tolist() == [0, 0, 0]
