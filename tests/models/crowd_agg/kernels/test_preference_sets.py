"""PreferenceSets of pairs, and agreement counted on them, against counting by hand and by listing pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdrank.models.crowd_agg.kernels import poisson_binomial as kernel
from crowdrank.models.crowd_agg.kernels.poisson_binomial import Agreement, sets_of_levels, sets_of_preferences


def test_levels_by_hand():
    # the first set has grades 2 > 1 = 1 > 0, the second is all equal, the third has 5 > 3 with weights
    code = np.array([7, 7, 3, 7, 3, 9, 7, 9])
    item = np.array([0, 1, 0, 2, 1, 2, 3, 0], np.int32)
    grade = np.array([1.0, 2, 4, 0, 4, 5, 1, 3])
    found = sets_of_levels(code, item, grade, np.array([1.0, 1, 1, 1, 1, 2, 1, 4]))
    assert found.code.tolist() == [7, 9]
    assert found.judged.tolist() == [4, 2]
    assert found.weight.tolist() == [1, 3]
    assert found.starts.tolist() == [0, 3, 5]
    assert found.bounds.tolist() == [0, 4, 6]
    assert found.item.tolist() == [2, 0, 3, 1, 0, 2]
    assert found.unit.tolist() == [0, 1, 1, 2, 3, 4]
    assert found.won.tolist() == [0, 1, 3, 0, 1]
    assert found.lost.tolist() == [3, 1, 0, 1, 0]
    assert found.n_entries.tolist() == [1, 2, 1, 1, 1]
    assert Agreement.between(found, np.ones(6, bool)).n_pairs().tolist() == [5, 1]


def test_preferences_by_hand():
    # set 4: 0 beats 1 twice and loses once, 1 and 2 cancel out, 2 beats 0 and 3 ties with 0; set 5 only ties
    left, right = np.array([0, 1, 0, 1, 2, 2, 3, 0]), np.array([1, 0, 1, 2, 1, 0, 0, 1])
    outcome = np.array([1.0, -1, -1, 1, 1, 1, 0, 0])
    code = np.array([4, 4, 4, 4, 4, 4, 4, 5])
    found = sets_of_preferences(code, left.astype(np.int32), right.astype(np.int32), outcome, 5)
    assert found.code.tolist() == [4]
    assert found.judged.tolist() == [4]
    assert found.item.tolist() == [0, 1, 2]
    assert found.won.tolist() == [1, 0, 1]
    assert found.lost.tolist() == [1, 1, 0]
    assert found.winner.tolist() == [0, 2]
    assert found.loser.tolist() == [1, 0]
    assert found.weight.tolist() == [1.0]
    starts, links = found.links()
    assert [sorted(links[starts[unit] : starts[unit + 1]]) for unit in range(3)] == [[1, 2], [0], [0]]


def test_weights_that_cancel_up_to_rounding_are_no_pair():
    ones = np.ones(4, np.int32)
    found = sets_of_preferences(np.zeros(4, np.int64), 0 * ones, ones, np.array([0.1, 0.2, -0.3, 0.0]), 2)
    assert not len(found.code)
    # the mean of 1 and 2 with weights .1 each is not quite 1.5
    assert not len(sets_of_levels(np.zeros(2, np.int64), ones[:2], np.array([1.5, 0.1 + 0.2 + 1.2]), np.ones(2)).code)


def test_codes_too_large_for_one_key(monkeypatch):
    rng = np.random.default_rng(1)
    left = rng.integers(0, 6, 80).astype(np.int32)
    right = ((left + rng.integers(1, 6, 80)) % 6).astype(np.int32)
    given_rows = (rng.integers(0, 4, 80), left, right, rng.choice([-1.0, 0.0, 2.0], 80), 6)
    plain = sets_of_preferences(*given_rows)
    monkeypatch.setattr(kernel, "_LARGEST_KEY", 1)
    for one, other in zip(plain, sets_of_preferences(*given_rows), strict=True):
        np.testing.assert_array_equal(one, other)


def listed(sets, use, lead, slack):
    """Agreement of each set by listing the pairs."""
    found = np.zeros((2, len(sets.code)))
    for s in range(len(sets.code)):
        if sets.listed:
            span = range(sets.pair_starts[s], sets.pair_starts[s + 1])
            pairs = [(sets.winner[pair], sets.loser[pair]) for pair in span]
        else:
            span = range(sets.bounds[s], sets.bounds[s + 1])
            pairs = [(a, b) for a in span for b in span if sets.unit[a] > sets.unit[b]]
        for better, worse in pairs:
            if use[better] and use[worse]:
                gap = lead[better] - lead[worse]
                found[:, s] += [0.5 if abs(gap) <= slack else float(gap > 0), 1]
    return found


@pytest.mark.parametrize("longest", [300, 3])
@given(data=st.data())
def test_agreement_equals_listing(longest, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    n_rows, n_items = int(rng.integers(1, 60)), int(rng.integers(2, 12))
    code = rng.integers(0, 4, n_rows)
    left = rng.integers(0, n_items, n_rows).astype(np.int32)
    first = np.unique(code * n_items + left, return_index=True)[1]
    grade = rng.integers(0, 4, n_rows).astype(float)
    right = ((left + rng.integers(1, n_items, n_rows)) % n_items).astype(np.int32)
    outcome = rng.integers(-1, 2, n_rows).astype(float)
    for sets in (
        sets_of_levels(code[first], left[first], grade[first], np.ones(len(first))),
        sets_of_preferences(code, left, right, outcome, n_items),
    ):
        lead, use = (
            rng.integers(0, 5, len(sets.item)) / 5 + rng.normal(0, 1e-15, len(sets.item)),
            rng.random(len(sets.item)) < data.draw(st.sampled_from([0.0, 0.5, 1.0])),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel, "_MAX_ENTRIES_PAIR_BY_PAIR", longest)
            agreement = Agreement.between(sets, use)
            alike, pairs = listed(sets, use, lead, 1e-12)
            np.testing.assert_array_equal(agreement.n_pairs(), pairs)
            if longest == 300:
                np.testing.assert_allclose(agreement.alike(lead, 1e-12), alike)
            elif len(agreement.long):
                np.testing.assert_allclose(agreement.alike(lead, 1e-12)[agreement.long], alike[agreement.long])
