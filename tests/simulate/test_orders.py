"""Rankings: Mallows, Cayley-Mallows, random swaps, Plackett-Luce."""

from itertools import permutations

import numpy as np
import pytest

from crowdrank import simulate
from crowdrank.errors import ParameterError


def truth_of(n_items, n_queries=1, grade=None):
    """Queries of the same items; item 0 is best."""
    grade = -np.arange(n_items) if grade is None else np.asarray(grade)
    query = np.repeat(np.arange(n_queries), n_items)
    return {"query": query, "item": np.tile(np.arange(n_items), n_queries), "grade": np.tile(grade, n_queries)}


def orders_of(pool, n_items, n_queries, seed=0, grade=None):
    """Drawn orders, one per row, as items 0 (truly best), 1, ..."""
    drawn = simulate.rankings(truth_of(n_items, n_queries, grade), pool, simulate.PerQuery(k=len(pool)), seed=seed)
    rows = drawn.judgments
    return (rows.item % n_items).reshape(-1, n_items), rows.annotator, drawn.quality["quality"].to_numpy()


def kendall(order):
    """Pairs out of order."""
    return sum(a > b for place, a in enumerate(order) for b in order[place + 1 :])


def cayley(order):
    """Swaps needed to sort."""
    seen, cycles = set(), 0
    for start in range(len(order)):
        cycles += start not in seen
        while start not in seen:
            seen.add(start)
            start = order[start]
    return len(order) - cycles


def kept_pairs(orders):
    """Share of pairs in true order."""
    n = orders.shape[1]
    place = np.argsort(orders, axis=1)
    return np.mean([place[:, a] < place[:, b] for a in range(n) for b in range(a + 1, n)])


@pytest.mark.parametrize(("make", "distance"), [(simulate.Mallows, kendall), (simulate.CayleyMallows, cayley)])
@pytest.mark.parametrize("theta", [0.0, 0.4, 1.5])
def test_draws_follow_the_enumerated_distribution(make, distance, theta):
    everything = list(permutations(range(4)))
    weight = np.exp(-theta * np.array([distance(order) for order in everything]))
    expected = weight / weight.sum()
    n = 40_000
    orders, _, quality = orders_of(make(np.array([theta])), 4, n, seed=3)
    code = orders @ np.array([64, 16, 4, 1])
    seen = np.array([np.mean(code == np.dot(order, [64, 16, 4, 1])) for order in everything])
    assert seen == pytest.approx(expected, abs=4 * np.sqrt(expected.max() / n))
    # the probability of keeping the order of two items, by enumeration
    kept = np.array([1 - kendall(order) / 6 for order in everything])
    assert quality[0] == pytest.approx(expected @ kept, abs=1e-9)


@pytest.mark.parametrize("n_items", [2, 5, 15])
@pytest.mark.parametrize("theta", [1e-9, 0.05, 0.359, 2.0, 700.0])
def test_mallows_expected_distance_is_the_closed_form(n_items, theta):
    pool = simulate.Mallows(np.array([theta]))
    if theta < 1e-6:
        expected = n_items * (n_items - 1) / 4
    else:
        steps = np.arange(2, n_items + 1)
        expected = np.sum(1 / np.expm1(theta) - steps / np.expm1(np.minimum(steps * theta, 700)))
    assert pool.expected_distance(n_items)[0] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_mallows_draws_have_the_expected_distance():
    pool = simulate.Mallows(np.array([0.1, 0.36, 1.0]))
    orders, annotator, quality = orders_of(pool, 15, 2000, seed=1)
    for number, expected in enumerate(pool.expected_distance(15)):
        mine = orders[annotator == number]
        assert 105 * (1 - kept_pairs(mine)) == pytest.approx(expected, rel=0.03)
        assert quality[number] == pytest.approx(1 - expected / 105)


def test_large_concentration_is_perfect():
    for make in (simulate.Mallows, simulate.CayleyMallows):
        orders, _, quality = orders_of(make(np.full(3, 1000.0)), 30, 5)
        assert (orders == np.arange(30)).all()
        assert quality == pytest.approx(np.ones(3))


def test_swaps_have_the_distances_of_the_specification():
    pool = simulate.ltrma_swaps(n_annotators=15)
    assert pool.n_swaps.tolist() == list(range(3, 32, 2))
    orders, annotator, quality = orders_of(pool, 15, 3000, seed=2)
    # mean Kendall distance for n = 15, annotators 1 to 5, 10 and 15
    printed = {1: 23.5, 2: 32.5, 3: 38.3, 4: 42.6, 5: 45.2, 10: 51.0, 15: 52.2}
    for number, expected in printed.items():
        assert 105 * (1 - quality[number - 1]) == pytest.approx(expected, abs=0.25)
        assert kept_pairs(orders[annotator == number - 1]) == pytest.approx(quality[number - 1], abs=0.01)


def test_number_of_swaps():
    orders, _, _ = orders_of(simulate.Swaps(np.array([1])), 10, 2000)
    assert {cayley(order) for order in orders.tolist()} == {1}
    orders, _, _ = orders_of(simulate.Swaps(np.array([0])), 10, 5)
    assert (orders == np.arange(10)).all()
    orders, _, quality = orders_of(simulate.Swaps(np.array([1, 2])), 2, 10)
    assert sorted(set(map(tuple, orders.tolist()))) == [(0, 1), (1, 0)]
    assert quality.tolist() == [0.0, 1.0]


def test_swaps_in_proportion_to_the_length_of_a_list():
    pool = simulate.ltrma_swaps(n_annotators=2, per_items=15)
    fixed = simulate.Swaps(np.array([12, 20]))
    for first, second in ((pool, fixed), (simulate.ltrma_swaps(n_annotators=2), simulate.Swaps(np.array([3, 5])))):
        one, two = (orders_of(crowd, 60, 20, seed=4) for crowd in (first, second))
        assert (one[0] == two[0]).all()
        assert one[2] == pytest.approx(two[2])
    with pytest.raises(ParameterError, match="per_items must be 1 or more"):
        simulate.Swaps(np.array([3]), per_items=0)


@pytest.mark.parametrize(
    "pool", [simulate.Mallows(np.array([0.3])), simulate.CayleyMallows(np.array([2.0])), simulate.Swaps(np.array([4]))]
)
def test_quality_over_unequal_items_only(pool):
    grade = np.array([3, 3, 2, 1, 1, 1, 0, 0])
    drawn = simulate.rankings(truth_of(8, 4000, grade), pool, simulate.PerQuery(k=1), seed=6)
    place = np.argsort((drawn.judgments.item % 8).reshape(-1, 8), axis=1)
    pairs = [(a, b) for a in range(8) for b in range(8) if grade[a] > grade[b]]
    kept = np.mean([place[:, a] < place[:, b] for a, b in pairs])
    assert kept == pytest.approx(drawn.quality["quality"][0], abs=0.01)


def test_plackett_luce_rankings_and_preferences():
    scores = np.array([1.0, 0.0, -0.5])
    pool = simulate.PlackettLuce(np.array([1.5]))
    orders, _, quality = orders_of(pool, 3, 40_000, seed=1, grade=scores)
    weight = np.exp(1.5 * scores)
    for order in permutations(range(3)):
        chance = weight[order[0]] / weight.sum() * weight[order[1]] / (weight[order[1]] + weight[order[2]])
        assert np.mean((orders == order).all(axis=1)) == pytest.approx(chance, abs=0.01)
    drawn = simulate.preferences(truth_of(3, 20_000, scores), pool, simulate.AllPairs(), seed=1)
    rows = drawn.judgments
    gap = 1.5 * (scores[rows.left % 3] - scores[rows.right % 3])
    for value in np.unique(gap):
        chance = 1 / (1 + np.exp(-value))
        assert np.mean(rows.outcome[gap == value] == 1) == pytest.approx(chance, abs=0.015)
    assert drawn.quality["quality"].to_list() == pytest.approx(quality)
    assert quality[0] == pytest.approx(np.mean(1 / (1 + np.exp(-1.5 * np.array([1.0, 1.5, 0.5])))))


def test_quality_of_many_pairs_is_near_that_of_all():
    score = np.random.default_rng(0).normal(size=3000)
    quality = simulate.preferences({"item": np.arange(3000), "grade": score}, simulate.PlackettLuce(np.ones(1))).quality
    gap = np.abs(np.subtract.outer(score, score)[np.triu_indices(3000, 1)])
    assert quality["quality"][0] == pytest.approx(np.mean(1 / (1 + np.exp(-gap))), abs=0.001)


def test_partial_rankings():
    design = simulate.PerQuery(k=3, length=4)
    drawn = simulate.rankings(truth_of(10, 500), simulate.Mallows(np.full(5, 0.5)), design, seed=2)
    rows = drawn.judgments
    assert (np.diff(rows.offsets) == 4).all()
    orders = (rows.item % 10).reshape(-1, 4)
    assert all(len(set(order)) == 4 for order in orders.tolist())
    expected = simulate.Mallows(np.array([0.5])).expected_distance(4)[0]
    assert np.mean([kendall(order) for order in orders.tolist()]) == pytest.approx(expected, rel=0.06)
    assert drawn.quality["quality"][0] == pytest.approx(1 - expected / 6)
    assert np.bincount(orders.ravel(), minlength=10) / len(orders) == pytest.approx(np.full(10, 0.4), abs=0.05)


def test_equal_items_keep_one_reference_order_per_call():
    pool = simulate.Swaps(np.zeros(4, int))
    first, _, _ = orders_of(pool, 6, 1, seed=1, grade=np.zeros(6))
    assert (first == first[0]).all()
    others = {tuple(orders_of(pool, 6, 1, seed=s, grade=np.zeros(6))[0][0]) for s in range(10)}
    assert len(others) > 5


def test_truth_without_unequal_items_has_no_quality():
    truth = {"item": [1, 2, 3], "grade": [1, 1, 1]}
    for pool in (simulate.Mallows(np.ones(5)), simulate.Swaps(np.ones(5)), simulate.PlackettLuce(np.ones(5))):
        assert simulate.rankings(truth, pool).quality["quality"].null_count() == 5


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (simulate.Mallows, -0.5),
        (simulate.CayleyMallows, np.inf),
        (simulate.Swaps, -1),
        (simulate.PlackettLuce, np.nan),
    ],
)
def test_bad_parameters(make, value):
    with pytest.raises(ParameterError, match="must be"):
        make(np.array([value]))
