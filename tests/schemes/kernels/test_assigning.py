"""Who is asked about what: every step of the kernel is one that the rule allows."""

import numpy as np
import pytest
from tests.oracles import assigning as slow

from crowdrank.schemes.kernels.assigning import NOBODY, UNAFFORDABLE, UNWORTHY, assign, choose_annotators

CODES = {"nobody": NOBODY, "unworthy": UNWORTHY, "unaffordable": UNAFFORDABLE}


def laid(judged):
    """Sets of annotators as starts and a flat array."""
    flat = [a for some in judged for a in sorted(some)]
    return np.cumsum([0, *map(len, judged)]), np.array(flat, np.int32)


@pytest.mark.parametrize("seed", range(20))
def test_judgments_go_to_the_cheapest_who_can_be_asked(seed):
    rng = np.random.default_rng(seed)
    n_things, n_annotators, n = 6, 5, 25
    thing, gain = rng.integers(0, n_things, n), rng.random(n)
    judged = [set(rng.choice(n_annotators, rng.integers(0, 3), replace=False).tolist()) for _ in range(n_things)]
    price, capacity = rng.choice([1.0, 2.0, 4.0], n_annotators), rng.integers(0, 7, n_annotators)
    budget, least = float(rng.choice([5.0, 20.0, np.inf])), float(rng.choice([0.0, 0.15]))
    by_price = np.argsort(price, kind="stable").astype(np.int32)
    rising = price[by_price]
    tiers = np.append(np.flatnonzero(np.append(True, np.diff(rising) > 0)), n_annotators)
    starts, flat = laid(judged)
    before = capacity.copy()
    chosen = assign(thing, gain, starts, flat, by_price, tiers, price, capacity, budget, least, rng.random(n))
    assert all(slow.check(thing.tolist(), gain, judged, price, capacity, budget, least, chosen.tolist(), CODES))
    np.testing.assert_array_equal(capacity, before)


@pytest.mark.parametrize("seed", range(20))
def test_grades_go_to_those_who_tell_most(seed):
    rng = np.random.default_rng(seed)
    n_items, n_annotators, most = 7, 4, 2
    told, price = rng.random((n_items, n_annotators)), rng.choice([1.0, 3.0], n_annotators)
    judged = [set(rng.choice(n_annotators, rng.integers(0, 3), replace=False).tolist()) for _ in range(n_items)]
    item, capacity = np.repeat(rng.permutation(n_items), most), rng.integers(0, 5, n_annotators)
    starts, flat = laid(judged)
    row, who, before = choose_annotators(item, told, price, capacity, starts, flat, 15.0, most)
    left, budget, given, expected = capacity.tolist(), 15.0, {}, []
    for of in item.tolist():
        free = [
            a for a in range(n_annotators)
            if left[a] > 0 and price[a] <= budget + 1e-9 and a not in judged[of] and a not in given.get(of, [])
        ]  # fmt: skip
        if free:
            best = max(free, key=lambda a, of=of: told[of, a] / price[a])
            expected.append((of, best, len(given.setdefault(of, []))))
            given[of].append(best)
            left[best] -= 1
            budget -= price[best]
    assert list(zip(row.tolist(), who.tolist(), before.tolist(), strict=True)) == expected
