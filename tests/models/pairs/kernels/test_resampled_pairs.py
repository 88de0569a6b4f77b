"""Bradley-Terry on several resamples at once equals a fit of each alone."""

import numpy as np
import pytest
from tests.oracles import pairs as slow_pairs
from tests.oracles import resampling as slow

from crowdrank.models.pairs.kernels.pair_likelihood import (
    count_resamples,
    evaluate_resamples,
    evaluate_ties,
    join_pairs,
    solve_resamples,
)

N_ITEMS = 6


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
    """Preferences about the pairs, leads of the items, and the wins of the lower item that were expected."""
    expected = np.random.default_rng(2).uniform(0.2, 0.8, len(case["second"]))
    surprise = case["won"] - np.repeat(expected, np.diff(case["row_starts"])).astype(np.float32)
    number, lead = np.zeros((len(expected), 3), np.float32), np.zeros((N_ITEMS, 3), np.float32)
    count_resamples(
        case["copies"].astype(dtype), case["unit"], case["weight"], surprise, case["row_starts"], case["starts"],
        case["second"], number, lead,
    )  # fmt: skip
    return number, lead, expected


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_preferences_and_leads_are_those_of_each_resample(case, dtype):
    number, lead, expected = counted(case, dtype)
    rows = [(*row, won) for row, won in zip(case["rows"], case["won"], strict=True)]
    for k in range(3):
        preferences, wins = slow.counted(rows, case["copies"][k], N_ITEMS)
        for (low, high), chance in zip(case["pairs"], expected, strict=True):
            wins[low] -= preferences[low, high] * chance
            wins[high] -= preferences[low, high] * (1 - chance)
        np.testing.assert_allclose(number[:, k], [preferences[pair] for pair in case["pairs"]], rtol=1e-6)
        np.testing.assert_allclose(lead[:, k], wins, atol=1e-5)


def test_pairs_without_a_preference_do_not_connect(case):
    number, _, _ = counted(case, np.uint8)
    number[number < 2] = 0
    group = np.repeat(np.arange(N_ITEMS, dtype=np.int32)[:, None], 3, axis=1)
    n_joins = np.zeros(3, np.int64)
    join_pairs(case["starts"], case["second"], number, group, N_ITEMS, n_joins)
    for k in range(3):
        kept = [pair for pair, preferences in zip(case["pairs"], number[:, k], strict=True) if preferences]
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
