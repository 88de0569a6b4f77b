"""Preferences as patterns, and the sums over their pairs, against plain loops and finite differences."""

import numpy as np
import pytest
from tests.oracles import joint_annotators as slow

from crowdrank.models.joint_annotators.kernels import pair_patterns
from crowdrank.models.joint_annotators.kernels.pair_patterns import (
    expect_at_equal_scores,
    expect_at_scores,
    find_patterns,
    pair_probabilities,
)

OFFSETS = np.array([0, 5, 9])


def drawn(seed=0, n=120, n_sources=3, *, weighted=False, repeats=False):
    """Columns of preferences on pairs within two queries, with ties; a source judges a pair once unless it repeats."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 2, n)
    size = np.diff(OFFSETS)[query]
    left = OFFSETS[query] + rng.integers(0, size)
    right = OFFSETS[query] + (left - OFFSETS[query] + rng.integers(1, size)) % size
    source, outcome = rng.integers(0, n_sources, n), rng.integers(-1, 2, n)
    if not repeats:
        keys = (np.minimum(left, right) * 9 + np.maximum(left, right)) * n_sources + source
        keep = np.unique(keys, return_index=True)[1]
        left, right, source, outcome = (column[keep] for column in (left, right, source, outcome))
    weight = rng.uniform(0.5, 2, len(left)) if weighted else None
    return left.astype(np.int32), right.astype(np.int32), outcome.astype(np.int8), source.astype(np.int32), weight


def found(columns, n_sources=3):
    *votes, weight = columns
    return find_patterns(*votes, weight=weight, offsets=OFFSETS, n_sources=n_sources)


def net_weights(columns, n_sources=3):
    """Pair -> weight of preferences for its lower and its higher item by each source, (n_sources, 2), plainly."""
    left, right, outcome, source, weight = columns
    table = {}
    for row in range(len(left)):
        low, high = sorted((int(left[row]), int(right[row])))
        votes = table.setdefault((low, high), np.zeros((n_sources, 2)))
        won = outcome[row] if left[row] < right[row] else -outcome[row]
        if won:
            votes[source[row], 0 if won > 0 else 1] += 1.0 if weight is None else weight[row]
    return dict(sorted(table.items()))


def unpacked(patterns, n_sources=3):
    """The same from patterns."""
    table = {}
    for pair, (low, high) in enumerate(zip(patterns.first.tolist(), patterns.second.tolist(), strict=True)):
        votes = np.zeros((n_sources, 2))
        m = patterns.pattern[pair]
        for place in range(patterns.bounds[m], patterns.bounds[m + 1]):
            side = 0 if patterns.code[place] & 2 else 1
            votes[patterns.source[place], side] += patterns.weight[place] if patterns.weight.size else 1.0
        table[low, high] = votes
    return table


@pytest.mark.parametrize("kind", [{}, {"weighted": True}, {"repeats": True}, {"repeats": True, "weighted": True}])
def test_every_preference_is_found_again(kind):
    columns = drawn(**kind)
    one, other = net_weights(columns), unpacked(found(columns))
    assert list(one) == list(other)
    for pair, votes in one.items():
        np.testing.assert_allclose(other[pair], votes)


def test_few_sources_leave_few_patterns_and_many_their_own(monkeypatch):
    columns = drawn(n=3000, n_sources=2)
    patterns = found(columns, 2)
    assert len(patterns.number) <= 16
    assert patterns.number.sum() == patterns.n_pairs
    monkeypatch.setattr(pair_patterns, "MOST_TABLE_SOURCES", 1)
    single = found(columns, 2)
    assert len(single.number) == single.n_pairs == patterns.n_pairs
    flips = np.array([0.27, 0.62])
    np.testing.assert_allclose(
        single.pattern_odds(flips)[single.pattern], patterns.pattern_odds(flips)[patterns.pattern]
    )
    np.testing.assert_allclose(single.source_weights(2), patterns.source_weights(2))


def test_twelve_sources_have_patterns_too():
    columns = drawn(n=4000, n_sources=12)
    assert {pair: votes.tolist() for pair, votes in net_weights(columns, 12).items()} == {
        pair: votes.tolist() for pair, votes in unpacked(found(columns, 12), 12).items()
    }


@pytest.mark.parametrize("kind", [{}, {"weighted": True}])
def test_the_expectation_has_the_likelihood_and_its_derivatives(kind):
    columns, rng = drawn(**kind), np.random.default_rng(1)
    patterns, scores, flips = found(columns), rng.normal(size=9), np.array([0.1, 0.3, 0.6])
    odds = patterns.pattern_odds(flips)

    def likelihood(scores):
        against = patterns.log_likelihood_if_higher(flips)
        return expect_at_scores(patterns, scores, odds).log_likelihood + against

    value = lower = 0.0
    for (low, high), votes in net_weights(columns).items():
        before = slow.sigmoid(scores[low] - scores[high])
        one = before * np.prod((1 - flips) ** votes[:, 0] * flips ** votes[:, 1])
        other = (1 - before) * np.prod(flips ** votes[:, 0] * (1 - flips) ** votes[:, 1])
        value, lower = value + np.log(one + other), lower + one / (one + other)
    here = expect_at_scores(patterns, scores, odds)
    assert likelihood(scores) == pytest.approx(value)
    assert here.n_lower.sum() == pytest.approx(lower)
    assert pair_probabilities(patterns, scores, odds).sum() == pytest.approx(lower)
    step = 1e-5 * np.eye(9)
    slopes = [(likelihood(scores + along) - likelihood(scores - along)) / 2e-5 for along in step]
    np.testing.assert_allclose(here.gradient, slopes, atol=1e-6)
    bends = [
        -(
            expect_at_scores(patterns, scores + along, odds).gradient
            - expect_at_scores(patterns, scores - along, odds).gradient
        )
        @ along
        / 2e-10
        for along in step
    ]
    np.testing.assert_allclose(here.observed_degree, bends, atol=1e-5)


def test_equal_scores_need_no_pairs():
    patterns = found(drawn())
    odds = patterns.pattern_odds(np.array([0.27, 0.12, 0.62]))
    flat, whole = expect_at_equal_scores(patterns, odds, 9), expect_at_scores(patterns, np.zeros(9), odds)
    assert flat.log_likelihood == pytest.approx(whole.log_likelihood)
    np.testing.assert_allclose(flat.n_lower, whole.n_lower)


def test_the_hinge_has_its_own_slopes():
    patterns, scores = found(drawn()), np.random.default_rng(2).normal(size=9)
    odds = patterns.pattern_odds(np.array([0.27, 0.12, 0.62]))
    after = pair_probabilities(patterns, scores, odds)

    def loss(scores):
        gap = scores[patterns.first] - scores[patterns.second]
        one, other = (np.where(z <= 0, 0.5 - z, 0.5 * np.maximum(1 - z, 0) ** 2) for z in (gap, -gap))
        return -(after * one + (1 - after) * other).sum()

    slopes = [(loss(scores + along) - loss(scores - along)) / 2e-6 for along in 1e-6 * np.eye(9)]
    np.testing.assert_allclose(expect_at_scores(patterns, scores, odds, hinge=True).gradient, slopes, atol=1e-5)


def test_normal_scores_give_nearly_the_mean_over_scores():
    patterns, rng = found(drawn()), np.random.default_rng(3)
    scores, variance = rng.normal(size=9), rng.uniform(0.1, 1.5, 9)
    odds = patterns.pattern_odds(np.array([0.27, 0.12, 0.62]))
    drawn_scores = scores + np.sqrt(variance) * rng.normal(size=(20_000, 9))
    gap = drawn_scores[:, patterns.first] - drawn_scores[:, patterns.second]
    mean = slow.sigmoid(gap + odds[patterns.pattern]).mean(axis=0)
    averaged = expect_at_scores(patterns, scores, odds, variance)
    np.testing.assert_allclose(
        averaged.n_lower, np.bincount(patterns.pattern, mean, len(patterns.number)), atol=0.03 * patterns.number.max()
    )
    sharp = expect_at_scores(patterns, scores, odds, np.full(9, 1e-12))
    np.testing.assert_allclose(sharp.gradient, expect_at_scores(patterns, scores, odds).gradient, atol=1e-9)
