"""Samplers and exact sums over rankings against enumeration."""

import numpy as np
import pytest
from tests.oracles import orders as slow

from crowdrank.models.rankings.kernels import true_rankings
from crowdrank.models.rankings.kernels.true_rankings import RankedLists

FULL = [([3, 1, 0, 2, 4], [1, 2, 3, 4, 5]), ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]), ([4, 2, 3, 1, 0], [1, 2, 3, 4, 5])]
PARTIAL = [([3, 1, 0], [1, 2, 3]), ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]), ([4, 2], [1, 2])]
TIED = [([1, 3, 0, 2], [1, 1, 2, 2]), ([0, 1, 2, 3, 4], [1, 2, 2, 2, 3]), ([4, 2, 3, 0], [1, 2, 3, 4])]
PULLS = np.array([-0.9, -0.4, 0.3])
SCORES = np.array([1.5, -0.5, 0.0, 2.0, -1.0])


def laid_out(*queries, n=5):
    """Lists of queries of n items each."""
    lists = [one for query in queries for one in query]
    lengths = [len(items) for items, _ in lists]
    return RankedLists(
        offsets=n * np.arange(len(queries) + 1),
        queries=np.concatenate([[0], np.cumsum([len(query) for query in queries])]),
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        item=np.concatenate([items for items, _ in lists]).astype(np.int32),
        rank=np.concatenate([ranks for _, ranks in lists]).astype(np.int32),
    )


def chains(n_queries=1, n=5, seed=1, table=None):
    sizes = [0] if table is None else np.diff(table.starts)
    return true_rankings.Chains(
        np.tile(np.arange(n, dtype=np.int32), n_queries),
        seed + np.arange(n_queries).astype(np.uint64),
        np.concatenate([np.arange(size) for size in sizes]),
    )


@pytest.mark.parametrize("scores", [None, SCORES])
@pytest.mark.parametrize("lists", [FULL, PARTIAL, TIED])
def test_exact_sums_equal_enumeration(lists, scores):
    total, far, mean, variance, _ = slow.posterior(5, lists, PULLS, scores)
    found = true_rankings.sum_orders(laid_out(lists), PULLS, np.array([0]), scores=scores)
    # chances of pairs are rounded to 2^-32
    np.testing.assert_allclose(found.log_total, total, atol=1e-12)
    np.testing.assert_allclose(found.distance, far, atol=1e-8)
    np.testing.assert_allclose(found.place, mean, atol=1e-8)
    np.testing.assert_allclose(found.spread, variance, atol=1e-8)


@pytest.mark.parametrize("scores", [None, SCORES])
@pytest.mark.parametrize("lists", [FULL, PARTIAL, TIED])
def test_sweeps_reach_the_enumerated_posterior(lists, scores):
    _, far, mean, variance, _ = slow.posterior(5, lists, PULLS, scores)
    draws = np.zeros((20_000, 5), np.float32)
    found = true_rankings.sweep(laid_out(lists), PULLS, chains(), np.array([0]), 200_000, scores=scores, draws=draws)
    np.testing.assert_allclose(found.distance, far, atol=0.02)
    np.testing.assert_allclose(found.place, mean, atol=0.02)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.04)
    np.testing.assert_allclose(draws.var(axis=0), variance, atol=0.06)
    assert (np.sort(draws, axis=1) == np.arange(5)).all()


@pytest.mark.parametrize("scores", [None, SCORES])
@pytest.mark.parametrize("lists", [FULL, PARTIAL, TIED])
def test_cayley_swaps_reach_the_enumerated_posterior(lists, scores):
    _, far, mean, _, _ = slow.posterior(5, lists, PULLS, scores, distance="cayley")
    table = laid_out(lists)
    found = true_rankings.sweep(table, PULLS, chains(table=table), np.array([0]), 200_000, "cayley", scores=scores)
    np.testing.assert_allclose(found.distance, far, atol=0.02)
    np.testing.assert_allclose(found.place, mean, atol=0.02)


@pytest.mark.parametrize("scores", [None, SCORES])
@pytest.mark.parametrize("lists", [FULL, PARTIAL, TIED])
def test_random_swaps_reach_the_enumerated_posterior(lists, scores):
    _, far, mean, _, _ = slow.posterior(5, lists, PULLS, scores)
    found = true_rankings.sweep(laid_out(lists), PULLS, chains(), np.array([0]), 500_000, "printed", scores=scores)
    np.testing.assert_allclose(found.distance, far, atol=0.02)
    np.testing.assert_allclose(found.place, mean, atol=0.02)


def test_random_swaps_begin_with_a_random_ranking():
    ends = np.zeros((5, 5))
    for seed in range(500):
        state = chains(seed=7 * seed)
        true_rankings.sweep(laid_out(FULL), 0.0 * PULLS, state, np.array([0]), 1, "printed")
        ends[state.order, np.arange(5)] += 1
    np.testing.assert_allclose(ends, 100, atol=35)


@pytest.mark.parametrize("scores", [None, SCORES])
@pytest.mark.parametrize("lists", [FULL, PARTIAL, TIED])
def test_the_best_ranking_is_the_most_probable_one(lists, scores):
    best, table, only = np.zeros((4, 5), np.int32), laid_out(lists), np.array([0])
    true_rankings.sum_orders(table, PULLS, only, scores=scores, best=best[0])
    true_rankings.sweep(table, PULLS, chains(), only, 2000, scores=scores, best=best[1])
    true_rankings.sweep(table, PULLS, chains(), only, 5000, "printed", scores=scores, best=best[2])
    true_rankings.sweep(table, PULLS, chains(table=table), only, 5000, "cayley", scores=scores, best=best[3])
    heights = [slow.log_weight(order, lists, PULLS, scores) for order in slow.permutations(range(5))]
    for order in best[:3]:
        assert slow.log_weight(order, lists, PULLS, scores) == pytest.approx(max(heights), abs=1e-9)
    if lists is not TIED:
        heights = [slow.log_weight(order, lists, PULLS, scores, "cayley") for order in slow.permutations(range(5))]
        assert slow.log_weight(best[3], lists, PULLS, scores, "cayley") == pytest.approx(max(heights), abs=1e-9)


@pytest.mark.parametrize("scores", [None, SCORES])
def test_chances_of_sets_to_come_first_equal_enumeration(scores):
    sets = np.zeros(64)
    both = None if scores is None else np.tile(scores, 2)
    true_rankings.sum_orders(laid_out(TIED, FULL), np.tile(PULLS, 2), np.arange(2), scores=both, sets=sets)
    for lists, found in ((TIED, sets[:32]), (FULL, sets[32:])):
        orders = list(slow.permutations(range(5)))
        weight = np.exp([slow.log_weight(order, lists, PULLS, scores) for order in orders])
        expected = np.zeros(32)
        for order, share in zip(orders, weight / weight.sum(), strict=True):
            for size in range(6):
                expected[sum(1 << item for item in order[:size])] += share
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_sweeps_and_plain_random_swaps_agree():
    plain = slow.random_swaps(5, FULL, PULLS, 20_000, np.random.default_rng(0))
    found = true_rankings.sweep(laid_out(FULL), PULLS, chains(), np.array([0]), 50_000)
    np.testing.assert_allclose(found.distance, plain, atol=0.15)


def test_exact_draws_follow_the_posterior():
    _, _, mean, variance, above = slow.posterior(5, TIED, PULLS)
    draws, state = np.zeros((40_000, 5), np.float32), np.array([5], np.uint64)
    true_rankings.sum_orders(laid_out(TIED), PULLS, np.array([0]), draws=draws, state=state)
    assert (np.sort(draws, axis=1) == np.arange(5)).all()
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(draws.var(axis=0), variance, atol=0.04)
    np.testing.assert_allclose((draws[:, :, None] < draws[:, None, :]).mean(axis=0), above, atol=0.015)


def test_exact_sums_and_sweeps_agree_on_nine_items():
    rng = np.random.default_rng(3)
    lists = [(rng.permutation(9).tolist(), list(range(1, 10))) for _ in range(4)]
    table, pull = laid_out(lists, n=9), np.array([-0.6, -0.3, -0.1, 0.2])
    exact = true_rankings.sum_orders(table, pull, np.array([0]))
    found = true_rankings.sweep(table, pull, chains(n=9), np.array([0]), 100_000)
    np.testing.assert_allclose(found.distance, exact.distance, rtol=0.01)
    np.testing.assert_allclose(found.place, exact.place, atol=0.05)


def test_pulls_of_any_size_stay_finite():
    # three lists in a circle, each far stronger than an exponential can say
    circle = [([0, 1, 2], [1, 2, 3]), ([1, 2, 0], [1, 2, 3]), ([2, 0, 1], [1, 2, 3])]
    pull = np.array([-2000.0, -1500.0, -1200.0])
    total, far, mean, *_ = slow.posterior(3, circle, pull)
    found = true_rankings.sum_orders(laid_out(circle, n=3), pull, np.array([0]))
    np.testing.assert_allclose([found.log_total[0], *found.distance, *found.place], [total, *far, *mean], atol=1e-8)
    swept = true_rankings.sweep(laid_out(circle, n=3), pull, chains(n=3), np.array([0]), 50)
    assert np.isfinite(swept.distance).all()
    np.testing.assert_allclose(swept.place, mean, atol=0.2)


@pytest.mark.parametrize("far_apart", [90.0, 1e4])
def test_scores_far_apart_neither_divide_by_zero_nor_lose_the_order(far_apart):
    scores = far_apart * np.array([2.0, 0.0, 4.0, 1.0, 3.0])
    with np.errstate(all="raise", under="ignore"):
        found = true_rankings.sweep(
            laid_out(FULL),
            0.0 * PULLS,
            chains(),
            np.array([0]),
            400,
            scores=scores,
            draws=(kept := np.zeros((5, 5), np.float32)),
        )
    assert np.isfinite(found.distance).all()
    if far_apart < 100:
        assert kept[-1].tolist() == [2, 4, 0, 3, 1]


def test_chains_go_on_where_they_stopped():
    table, both = laid_out(FULL, PARTIAL), np.arange(2)
    pull = np.tile(PULLS, 2)
    whole, parts = chains(2), chains(2)
    true_rankings.sweep(table, pull, whole, both, 12)
    for n_sweeps in (5, 7):
        true_rankings.sweep(table, pull, parts, both, n_sweeps)
    np.testing.assert_array_equal(whole.order, parts.order)
    np.testing.assert_array_equal(whole.state, parts.state)


def test_queries_that_are_not_chosen_stay_as_they_are():
    table, pull, state = laid_out(FULL, PARTIAL), np.tile(PULLS, 2), chains(2)
    found = true_rankings.sweep(table, pull, state, np.array([1]), 50)
    assert state.order[:5].tolist() == [0, 1, 2, 3, 4]
    assert not found.distance[:3].any()
    assert found.distance[3:].all()


def test_the_number_of_threads_changes_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    queries = [[(rng.permutation(5).tolist(), [1, 2, 3, 4, 5]) for _ in range(3)] for _ in range(40)]
    table, pull, every = laid_out(*queries), -rng.random(120), np.arange(40)

    def passes():
        state, other = chains(40), chains(40, table=table)
        swept = true_rankings.sweep(table, pull, state, every, 20)
        swapped = true_rankings.sweep(table, pull, other, every, 20, "cayley")
        plain = true_rankings.sweep(table, pull, other, every, 20, "printed")
        exact = true_rankings.sum_orders(table, pull, every)
        return [*swept, *swapped, *plain, *exact, *state, *other]

    alone = passes()
    monkeypatch.setattr(true_rankings, "_CELLS_PER_THREAD", 1)
    for one, other in zip(alone, passes(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_climb_ends_where_no_single_item_can_move_and_mostly_at_the_best_order():
    rng, best = np.random.default_rng(1), 0
    for _ in range(30):
        lists = [(rng.permutation(6).tolist(), [1, 2, 3, 4, 5, 6]) for _ in range(5)]
        pull = -rng.random(5)
        order = np.arange(6, dtype=np.int32)
        true_rankings.improve_orders(laid_out(lists, n=6), pull, order)

        def cost(ranking, lists=lists, pull=pull):
            return sum(t * slow.kendall(list(ranking), items) for t, (items, _) in zip(pull, lists, strict=True))

        for place in range(6):
            rest = np.delete(order, place)
            assert all(cost(np.insert(rest, goal, order[place])) <= cost(order) + 1e-9 for goal in range(6))
        best += cost(order) >= max(cost(ranking) for ranking in slow.permutations(range(6))) - 1e-9
    assert best >= 25


def test_one_item_and_no_item():
    table = RankedLists(np.array([0, 1, 1]), np.zeros(3, np.int64), np.zeros(1, np.int64), *np.zeros((2, 0), np.int32))
    state = true_rankings.Chains(np.zeros(1, np.int32), np.zeros(2, np.uint64))
    for found in (
        true_rankings.sweep(table, np.zeros(0), state, np.arange(2), 3),
        true_rankings.sum_orders(table, np.zeros(0), np.arange(2)),
    ):
        assert found.place.tolist() == [0.0]


@pytest.mark.parametrize("scores", [None, SCORES])
@pytest.mark.parametrize("distance", ["cayley", "footrule", "spearman"])
def test_listed_rankings_equal_enumeration(distance, scores):
    for lists in (FULL, PARTIAL):
        log_total, far, mean, variance, _ = slow.posterior(5, lists, PULLS / 4, scores, distance=distance)
        table = laid_out(lists)
        listed = np.array([0]), true_rankings.list_orders(table, np.array([0]), distance)
        best, draws = np.zeros(5, np.int32), np.zeros((400, 5), np.float32)
        found = true_rankings.sum_listed(
            table, *listed, PULLS / 4, scores=scores, best=best, draws=draws, state=chains().state.copy()
        )
        np.testing.assert_allclose(found.log_total, [log_total], rtol=1e-9)
        np.testing.assert_allclose(found.distance, far, rtol=1e-9)
        np.testing.assert_allclose(found.place, mean, rtol=1e-9)
        np.testing.assert_allclose(found.spread, variance, rtol=1e-7)
        np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.3)


@pytest.mark.parametrize("distance", ["footrule", "spearman"])
def test_swaps_reach_the_posterior_of_other_distances(distance):
    for lists in (PARTIAL, TIED):
        _, far, mean, _, _ = slow.posterior(5, lists, PULLS / 4, None, distance=distance)
        table = laid_out(lists)
        found = true_rankings.sweep(table, PULLS / 4, chains(table=table), np.array([0]), 200_000, distance)
        np.testing.assert_allclose(found.distance, far, atol=0.05)
        np.testing.assert_allclose(found.place, mean, atol=0.03)


@pytest.mark.parametrize("distance", ["cayley", "footrule", "spearman"])
def test_expected_distances_and_normalisers_equal_enumeration(distance):
    theta = np.array([-2.0, -0.3, 0.0, 0.2])
    for n in (2, 3, 5):
        expected = [slow.expected_distance(one, n, distance) for one in theta]
        np.testing.assert_allclose(true_rankings.expected_distance(theta, n, distance), expected, rtol=1e-9)
        far = np.array([slow.DISTANCES[distance](y, range(n)) for y in slow.permutations(range(n))])
        logs = np.log(np.exp(theta[:, None] * far).sum(axis=1))
        np.testing.assert_allclose(true_rankings.log_normalisers(theta, n, distance)[:, n], logs, rtol=1e-9)


def test_queries_with_ties_or_too_many_items_are_not_listed():
    table = laid_out(TIED)
    assert not len(true_rankings.listable(table, np.array([0]), 8))
    assert true_rankings.listable(laid_out(FULL), np.array([0]), 8).tolist() == [0]
    assert not len(true_rankings.listable(laid_out(FULL), np.array([0]), 4))


def test_queries_beyond_the_cells_that_are_held_are_sampled(monkeypatch):
    table = laid_out(FULL)
    monkeypatch.setattr(true_rankings, "MOST_CELLS", 100)
    assert not len(true_rankings.listable(table, np.array([0]), 8))
