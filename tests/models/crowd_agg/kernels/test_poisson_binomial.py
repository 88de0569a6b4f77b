"""Expected discounts against the plain convolution and the paper's divide and conquer."""

import numpy as np
import pytest
from tests.oracles import poisson_binomial as slow

from crowdrank.models.crowd_agg.kernels import poisson_binomial as fast
from crowdrank.models.crowd_agg.kernels.poisson_binomial import sets_of_levels, sets_of_preferences

GAPS = ("linear", "hard", "swapped", "printed")
MEASURES = ("ndcg", "rbp")


def mixture(measure):
    return fast.ndcg_mixture() if measure == "ndcg" else fast.rbp_mixture(0.95)


def one_set(rng, n, judged, n_levels):
    """A set of levels over some of the items, with its pairs (winner, loser)."""
    item, grade = rng.permutation(n)[:judged].astype(np.int32), rng.integers(0, n_levels, judged)
    pairs = {(int(a), int(b)) for a, x in zip(item, grade) for b, y in zip(item, grade) if x > y}  # noqa: B905
    return sets_of_levels(np.zeros(judged, np.int64), item, grade.astype(float), np.ones(judged)), pairs


def named_gap(gap, sets, n):
    """The gap for one query of ``n`` items."""
    zeros = np.zeros(len(sets.code), np.int32)
    return fast.pair_gap(gap, sets, zeros, zeros.astype(np.int64) + n)


def evaluated(sets, n, gap, measure, trust):
    """Expected discount of each entry."""
    size = np.full(len(sets.code), n)
    discounts = fast.Discounts.of(sets, size, named_gap(gap, sets, n), mixture(measure))
    return discounts.expected_discounts(np.full(len(size), trust))[sets.unit]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("n_levels", [2, 4, 1_000_000])
def test_levels_equal_the_convolution(gap, measure, n_levels, monkeypatch):
    rng = np.random.default_rng(n_levels)
    for trial in range(15):
        # long rows of the table are exchanged for the mixture, so that both forms are tried
        monkeypatch.setattr(fast, "_MAX_ROW_LENGTH", [128, 3][trial % 2])
        n = int(rng.integers(2, 41))
        sets, pairs = one_set(rng, n, int(rng.integers(2, n + 1)), n_levels)
        if not pairs:
            assert not len(sets.code)
            continue
        eta = rng.choice([0.0, 0.3, 0.5, 0.9, 1.0])
        found = evaluated(sets, n, gap, measure, eta)
        discount = slow.discounts(measure, n)
        expected = slow.set_discounts(range(n), pairs, int(sets.judged[0]), gap, eta, discount)
        np.testing.assert_allclose(found, [expected[i] for i in sets.item], atol=1e-13)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("gap", GAPS)
def test_preferences_equal_the_convolution(gap, measure, monkeypatch):
    rng = np.random.default_rng(5)
    for trial in range(15):
        monkeypatch.setattr(fast, "_MAX_ROW_LENGTH", [128, 3][trial % 2])
        n, n_rows = int(rng.integers(2, 25)), int(rng.integers(1, 60))
        left = rng.integers(0, n, n_rows).astype(np.int32)
        right = ((left + rng.integers(1, n, n_rows)) % n).astype(np.int32)
        outcome = rng.integers(-1, 2, n_rows)
        sets = sets_of_preferences(np.zeros(n_rows, np.int64), left, right, outcome.astype(float), n)
        words = {1: "left", -1: "right", 0: "tie"}
        pairs = slow.pairs_of_set("preference", [(a, b, words[o]) for a, b, o in zip(left, right, outcome)])  # noqa: B905
        if not pairs:
            assert not len(sets.code)
            continue
        judged = len({*left.tolist(), *right.tolist()})
        assert sets.judged.tolist() == [judged]
        expected = slow.set_discounts(range(n), pairs, judged, gap, 0.8, slow.discounts(measure, n))
        np.testing.assert_allclose(evaluated(sets, n, gap, measure, 0.8), [expected[i] for i in sets.item], atol=1e-13)


def test_auto_is_swapped_where_sets_are_small():
    # two queries: of 12 items one annotator has 2 and one 4, a quarter on average; of 6 both have 2
    code, item = np.repeat([0, 1, 2, 3], [2, 4, 2, 2]), np.array([0, 1, 0, 1, 2, 3, 20, 21, 22, 23], np.int32)
    sets = sets_of_levels(code, item, np.arange(10.0), np.ones(10))
    query, size = np.array([0, 0, 1, 1], np.int32), np.array([12, 12, 6, 6])
    gap = fast.pair_gap("auto", sets, query, size)
    assert gap.slope.tolist() == [-1 / 12, -1 / 12, 0, 0]
    assert not len(fast.pair_gap("auto", sets, query, size // 2).slope)
    assert (gap.ahead, gap.behind) == (1.0, 0.0)


def test_reversed_pairs_of_reversed_annotators_say_the_same():
    rng = np.random.default_rng(2)
    n = 9
    item, grade = np.arange(n, dtype=np.int32), rng.permutation(n).astype(float)
    ones, zeros = np.ones(n), np.zeros(n, np.int64)
    for gap in ("linear", "hard"):
        for measure in MEASURES:
            plain, turned = sets_of_levels(zeros, item, grade, ones), sets_of_levels(zeros, item, -grade, ones)
            one, other = evaluated(plain, n, gap, measure, 0.8), evaluated(turned, n, gap, measure, 1 - 0.8)
            np.testing.assert_allclose(one[np.argsort(plain.item)], other[np.argsort(turned.item)], atol=1e-14)


def test_the_twins_agree():
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 7, 40, 190):
        losses = rng.random(n)
        np.testing.assert_allclose(slow.by_fourier(losses), slow.by_convolution(losses), atol=1e-14)


def test_ndcg_is_a_mixture_of_rbp():
    weight, drop = fast.ndcg_mixture()
    assert len(weight) == 163
    assert (weight > 0).all()
    rank = np.unique(np.append(np.arange(2000), np.geomspace(2000, 1e7, 300).astype(int)))
    error = np.exp(np.outer(rank, np.log1p(-drop))) @ weight - 1 / np.log2(2 + rank)
    # a constant is left out, for only differences count
    assert np.ptp(error) < 1e-13


@pytest.mark.parametrize("n", [190, 5001, 100_000])
def test_rows_of_large_queries_need_no_large_table(n):
    mixture = fast.ndcg_mixture()
    tables = fast._tables(np.array([n]), np.array([20]), mixture)
    assert len(tables.values) == 21**2
    for c, k in ((20, 0), (20, 20), (7, 3), (0, 0)):
        # the coins' binomial distribution by its logarithms, forty standard deviations wide
        coins, reach = n - 1 - c, 20 * int((n - 1 - c) ** 0.5)
        heads = np.arange(max(0, coins // 2 - reach), min(coins, coins // 2 + reach) + 1)
        logs = np.append(0.0, np.cumsum(np.log((coins - heads[:-1]) / (heads[:-1] + 1.0))))
        chance = np.exp(logs - logs.max())
        expected = chance @ (1 / np.log2(2 + heads + k)) / chance.sum()
        # the mixture leaves a constant out, which its value for rank 0 shows
        left_out = 1.0 - mixture.weight.sum()
        found = tables.values[c * 21 + k] + tables.neutral[0] + left_out
        assert found == pytest.approx(expected, abs=1e-12)


def test_even_trust_says_nothing():
    sets, _ = one_set(np.random.default_rng(3), 30, 12, 4)
    for measure in MEASURES:
        np.testing.assert_allclose(evaluated(sets, 30, "linear", measure, 0.5), 0, atol=1e-15)


def test_items_in_order_share_their_steps():
    n = 400
    sets = sets_of_levels(
        np.repeat([0, 1], n), np.tile(np.arange(n, dtype=np.int32), 2), np.tile(np.arange(float(n)), 2), np.ones(2 * n)
    )
    size = np.array([n, n])
    for gap in GAPS:
        discounts = fast.Discounts.of(sets, size, named_gap(gap, sets, n), fast.ndcg_mixture())
        assert discounts.in_order.all()
        assert discounts.steps == 2 * n * 163
        apart = discounts._replace(in_order=np.zeros(2, bool))
        trust = np.array([0.9, 0.2])
        np.testing.assert_allclose(discounts.expected_discounts(trust), apart.expected_discounts(trust), atol=1e-13)


def test_parts_do_not_change_the_result():
    rng = np.random.default_rng(8)
    n_rows = 3000
    code = np.sort(rng.integers(0, 200, n_rows))
    item = rng.integers(0, 50, n_rows).astype(np.int32)
    first = np.unique(code * 50 + item, return_index=True)[1]
    sets = sets_of_levels(code[first], item[first], rng.integers(0, 4, len(first)).astype(float), np.ones(len(first)))
    size = np.full(len(sets.code), 50)
    discounts = fast.Discounts.of(sets, size, named_gap("linear", sets, 50), fast.ndcg_mixture())
    trust = rng.random(len(size))
    whole = discounts._replace(parts=np.array([0, len(size)])).expected_discounts(trust)
    np.testing.assert_array_equal(
        discounts._replace(parts=np.array([0, 70, len(size)])).expected_discounts(trust), whole
    )
