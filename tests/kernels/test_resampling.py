"""Resamples: how they are drawn and connected."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import resampling as slow

from crowdrank.kernels.pairs import draw_alike, join_rows, mark_drawn

N_ITEMS = 6


@pytest.mark.parametrize("n", [1, 5, 8192, 8193, 30_000])
def test_as_many_are_drawn_as_there_are(n):
    counts = draw_alike(n, np.random.default_rng(0))
    assert counts.dtype == np.uint8
    assert counts.shape == (n,)
    assert counts.sum() == n
    np.testing.assert_array_equal(counts, draw_alike(n, np.random.default_rng(0)))


def test_every_unit_is_as_likely_and_drawn_by_itself():
    n, n_draws = 20_000, 60
    counts = np.stack([draw_alike(n, np.random.default_rng([1, k])) for k in range(n_draws)]).astype(float)
    # the number of copies of a unit is as good as Poisson of mean 1
    shares = np.bincount(counts.astype(int).ravel(), minlength=6)[:6] / counts.size
    np.testing.assert_allclose(shares, np.exp(-1) / np.array([1, 1, 2, 6, 24, 120]), atol=1e-3)
    # likewise the mean of a stretch, the short last block included
    for part in (slice(0, 8192), slice(8192, 16_384), slice(16_384, n)):
        means = counts[:, part].mean(axis=1)
        size = counts[:, part].shape[1]
        assert means.mean() == pytest.approx(1, abs=4 / np.sqrt(size * n_draws))
        assert means.var() == pytest.approx((1 - size / n) / size, rel=0.5)
    assert abs(np.corrcoef(counts[:, :-1].ravel(), counts[:, 1:].ravel())[0, 1]) < 4 / np.sqrt(counts.size)


@st.composite
def graphs(draw):
    """Rows of two items, and which of them were drawn."""
    pair = st.lists(st.integers(0, N_ITEMS - 1), min_size=2, max_size=2, unique=True)
    rows = draw(st.lists(pair, min_size=1, max_size=12))
    drawn = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    return np.array(rows, np.int32), np.array(drawn)


@given(graphs())
def test_rows_connect_items(graph):
    rows, drawn = graph
    first, second = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1])
    whole, most = join_rows(first, second, np.ones(len(rows), bool), N_ITEMS)
    assert whole.tolist() == slow.walk(rows.tolist(), N_ITEMS)
    assert most == N_ITEMS - len(set(whole.tolist()))
    group, n_joins = join_rows(first, second, drawn, N_ITEMS, most)
    assert group.tolist() == slow.walk(rows[drawn].tolist(), N_ITEMS)
    assert n_joins <= most
    judged = np.zeros(N_ITEMS, bool)
    mark_drawn(first, drawn, judged)
    assert set(np.flatnonzero(judged)) == set(first[drawn].tolist())
