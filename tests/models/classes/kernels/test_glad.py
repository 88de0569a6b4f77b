"""The difficulty pass against its slow twin; slopes against finite differences."""

import numpy as np
import pytest
from scipy.special import expit
from tests.oracles import difficulty as oracle
from tests.oracles import spamming

from crowdrank.kernels.confusion import levels_given, pack_grades
from crowdrank.kernels.threads import read_only
from crowdrank.models.classes.kernels.glad import difficulty_pass

N_ITEMS, N_ANNOTATORS, N_LEVELS = 9, 4, 3
PRIOR = np.array([0.5, 0.3, 0.2])


def random_rows(seed, *, weighted=False, n=50):
    rng = np.random.default_rng(seed)
    weight = rng.choice([0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    columns = rng.integers(0, N_ITEMS - 1, n), rng.integers(0, N_ANNOTATORS, n), rng.integers(0, N_LEVELS, n), weight
    return [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def guesses(rows, lucky):
    if not lucky:
        return np.full((N_ANNOTATORS, N_LEVELS), 1 / (N_LEVELS - 1))
    counts = spamming.counts_of(rows, N_ANNOTATORS, N_LEVELS) + 1
    return counts / counts.sum(axis=1, keepdims=True)


def run(rows, ability, log_ease, known=None, *, lucky=False):
    item, annotator, level = (np.array(column, np.int32) for column in list(zip(*rows, strict=True))[:3])
    weight = np.array([row[3] for row in rows])
    packed = pack_grades(
        item, annotator, level, None if (weight == 1).all() else weight, N_ITEMS, N_ANNOTATORS, N_LEVELS
    )
    levels, _ = levels_given(packed, N_ANNOTATORS, N_LEVELS)
    clamp = np.full(N_ITEMS, -1, np.int32)
    clamp[list(known or {})] = list((known or {}).values())
    probabilities, better = np.full((N_ITEMS, N_LEVELS), np.nan), log_ease.copy()
    found = difficulty_pass(
        packed, read_only(packed.code // np.uint32(N_LEVELS)), levels, ability, log_ease,
        np.log(guesses(rows, lucky)), np.log(PRIOR), clamp, (1.0, 1.0), probabilities, better, lucky=lucky,
    )  # fmt: skip
    return found, probabilities, better


def expected(rows, levels, ability, log_ease, start, *, lucky):
    """Expected log-likelihood of knowing or not, by item, given the levels found at the abilities ``start``."""
    own = guesses(rows, lucky)
    value = np.zeros(N_ITEMS)
    for item, annotator, level, weight in rows:
        right = levels[item][level]
        if lucky:
            before = expit(start[0][annotator] * np.exp(start[1][item]))
            right *= before / (before + (1 - before) * own[annotator, level])
        x = ability[annotator] * np.exp(log_ease[item])
        value[item] -= weight * (right * np.logaddexp(0, -x) + (1 - right) * np.logaddexp(0, x))
    return value - 0.5 * (log_ease - 1) ** 2


@pytest.fixture
def point():
    rng = np.random.default_rng(11)
    return rng.normal(0.7, 0.8, N_ANNOTATORS), rng.normal(0.5, 0.5, N_ITEMS)


@pytest.mark.parametrize("lucky", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("known", [{}, {0: 1, 3: 2}])
def test_a_pass_is_what_the_slow_twin_finds(point, lucky, weighted, known):
    rows = random_rows(1, weighted=weighted)
    found, probabilities, _ = run(rows, *point, known, lucky=lucky)
    total, by_item = oracle.posteriors(rows, *point, guesses(rows, lucky), PRIOR, known, lucky)
    total -= 0.5 * sum((point[1][item] - 1) ** 2 for item in by_item)
    assert found.objective == pytest.approx(total, abs=1e-7)
    np.testing.assert_allclose(found.shares, sum(by_item.values()), atol=1e-8)
    for item, levels in by_item.items():
        np.testing.assert_allclose(probabilities[item], levels, atol=1e-8)
    assert np.isnan(probabilities[N_ITEMS - 1]).all()


@pytest.mark.parametrize("lucky", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_are_finite_differences_and_the_parabola_lies_below(point, lucky, weighted):
    rows = random_rows(2, weighted=weighted)
    found, levels, better = run(rows, *point, lucky=lucky)

    def value(ability):
        return float(expected(rows, levels, ability, better, point, lucky=lucky).sum())

    here = value(point[0])
    for annotator in range(N_ANNOTATORS):
        step = np.eye(N_ANNOTATORS)[annotator]
        slope = (value(point[0] + 1e-6 * step) - value(point[0] - 1e-6 * step)) / 2e-6
        assert found.slope[annotator] == pytest.approx(slope, abs=1e-5)
        for far in (-2.0, -0.3, 0.3, 2.0):
            parabola = here + far * found.slope[annotator] - 0.5 * far**2 * found.bend[annotator]
            assert parabola <= value(point[0] + far * step) + 1e-7


@pytest.mark.parametrize("lucky", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_new_ease_is_never_worse(lucky, seed):
    rng = np.random.default_rng(seed)
    start = rng.normal(0, 3, N_ANNOTATORS), rng.normal(0, 2, N_ITEMS)
    rows = random_rows(seed)
    _, levels, better = run(rows, *start, lucky=lucky)
    before = expected(rows, levels, *start, start, lucky=lucky)
    after = expected(rows, levels, start[0], better, start, lucky=lucky)
    graded = sorted({row[0] for row in rows})
    assert (after[graded] >= before[graded] - 1e-8).all()
    assert (better[graded] != start[1][graded]).any()
    assert better[N_ITEMS - 1] == start[1][N_ITEMS - 1]


def test_ability_zero_and_huge_products_are_finite():
    rows = random_rows(3)
    for ability in (np.zeros(N_ANNOTATORS), np.full(N_ANNOTATORS, 20.0), np.full(N_ANNOTATORS, -20.0)):
        found, levels, better = run(rows, ability, np.full(N_ITEMS, 5.0))
        assert np.isfinite(found.objective)
        assert np.isfinite(found.slope).all()
        assert np.isfinite(levels[:-1]).all()
        assert np.isfinite(better).all()
