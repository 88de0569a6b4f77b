"""Resamples: how they are drawn, connected, counted and fitted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import pairs as slow_pairs
from tests.oracles import resampling as slow

from crowdrank.kernels.resampling import (
    count_resamples,
    draw_alike,
    evaluate_resamples,
    join_pairs,
    join_rows,
    mark_drawn,
    solve_resamples,
)
from crowdrank.models.pairs.kernels.pair_likelihood import evaluate_ties

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


@pytest.fixture
def case():
    """Pairs in compressed rows, their rows, and copies of three resamples."""
    rng = np.random.default_rng(4)
    pairs = [(i, j) for i in range(N_ITEMS) for j in range(i + 1, N_ITEMS) if (i + j) % 3]
    row_pair = np.sort(rng.integers(0, len(pairs), 40))
    pairs = [pairs[number] for number in np.unique(row_pair)]
    row_pair = np.unique(row_pair, return_inverse=True)[1]
    first, second = (np.array(side, np.int32) for side in zip(*pairs, strict=True))
    unit, weight = rng.integers(0, 9, 40).astype(np.int32), rng.uniform(0.5, 2, 40).astype(np.float32)
    return {
        "pairs": pairs,
        "starts": np.searchsorted(first, np.arange(N_ITEMS + 1)),
        "second": second,
        "row_starts": np.searchsorted(row_pair, np.arange(len(pairs) + 1)),
        "rows": list(zip(first[row_pair], second[row_pair], unit, weight, strict=True)),
        "unit": unit,
        "weight": weight,
        "won": rng.choice([0.0, 0.5, 1.0], 40).astype(np.float32),
        "copies": rng.multinomial(9, np.full(9, 1 / 9), 3),
    }


def counted(case, dtype):
    """Contests of the pairs, leads of the items, and the wins of the lower item that were expected."""
    expected = np.random.default_rng(2).uniform(0.2, 0.8, len(case["second"]))
    surprise = case["won"] - np.repeat(expected, np.diff(case["row_starts"])).astype(np.float32)
    number, lead = np.zeros((len(expected), 3), np.float32), np.zeros((N_ITEMS, 3), np.float32)
    count_resamples(
        case["copies"].astype(dtype), case["unit"], case["weight"], surprise, case["row_starts"], case["starts"],
        case["second"], number, lead,
    )  # fmt: skip
    return number, lead, expected


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_contests_and_leads_are_those_of_each_resample(case, dtype):
    number, lead, expected = counted(case, dtype)
    rows = [(*row, won) for row, won in zip(case["rows"], case["won"], strict=True)]
    for k in range(3):
        contests, wins = slow.counted(rows, case["copies"][k], N_ITEMS)
        for (low, high), chance in zip(case["pairs"], expected, strict=True):
            wins[low] -= contests[low, high] * chance
            wins[high] -= contests[low, high] * (1 - chance)
        np.testing.assert_allclose(number[:, k], [contests[pair] for pair in case["pairs"]], rtol=1e-6)
        np.testing.assert_allclose(lead[:, k], wins, atol=1e-5)


def test_pairs_without_a_contest_do_not_connect(case):
    number, _, _ = counted(case, np.uint8)
    number[number < 2] = 0
    group = np.repeat(np.arange(N_ITEMS, dtype=np.int32)[:, None], 3, axis=1)
    n_joins = np.zeros(3, np.int64)
    join_pairs(case["starts"], case["second"], number, group, N_ITEMS, n_joins)
    for k in range(3):
        kept = [pair for pair, contests in zip(case["pairs"], number[:, k], strict=True) if contests]
        assert group[:, k].tolist() == slow.walk(kept, N_ITEMS)
        assert n_joins[k] == N_ITEMS - len(set(group[:, k].tolist()))


def test_the_model_of_each_resample_is_that_of_it_alone(case):
    number, lead, expected = counted(case, np.uint8)
    scores = np.random.default_rng(1).normal(0, 1, (N_ITEMS, 3))
    drift, degree, bend = np.zeros((N_ITEMS, 3)), np.zeros((N_ITEMS, 3)), np.empty_like(number)
    evaluate_resamples(case["starts"], case["second"], number, expected, np.exp(scores), drift, bend, degree)
    gradient = lead - drift
    solution = solve_resamples(case["starts"], case["second"], bend, degree + 0.1, gradient, accuracy=1e-9)
    margins = np.zeros_like(number)
    for k in range(3):
        for pair, (begin, end) in enumerate(zip(case["row_starts"][:-1], case["row_starts"][1:], strict=True)):
            here = case["weight"][begin:end] * case["copies"][k][case["unit"][begin:end]]
            margins[pair, k] = (here * (2 * case["won"][begin:end] - 1)).sum()
        counts = (margins[:, k].astype(float), number[:, k].astype(float))
        alone = evaluate_ties(case["starts"], case["second"], *counts, scores[:, k], 0.0, 0.0)
        np.testing.assert_allclose(gradient[:, k], alone.gradient, atol=1e-5)
        np.testing.assert_allclose(bend[:, k], alone.bend, rtol=1e-6)
        np.testing.assert_allclose(degree[:, k], alone.degree, rtol=1e-6)
        matrix = slow_pairs.laplacian(dict(zip(case["pairs"], bend[:, k], strict=True)), N_ITEMS, 0.1)
        np.testing.assert_allclose(solution[:, k], np.linalg.solve(matrix, gradient[:, k]), rtol=1e-4, atol=1e-6)
