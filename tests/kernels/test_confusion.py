"""Passes over graded items equal their slow twins, whatever the layout; quality and tied matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import confusion as slow

from crowdrank.kernels import confusion as kernel
from crowdrank.kernels import threads


def draw(seed, n_rows, n_items, n_annotators, n_levels, *, weighted=False, share_known=0.0, sharp=1.0):
    """Rows, matrices, prior and known levels at random."""
    rng = np.random.default_rng(seed)
    item = rng.integers(0, n_items, n_rows).astype(np.int32)
    annotator = rng.integers(0, n_annotators, n_rows).astype(np.int32)
    level = rng.integers(0, n_levels, n_rows).astype(np.int32)
    weight = rng.integers(1, 9, n_rows) / 4 if weighted else None
    matrices = rng.dirichlet(np.full(n_levels, 1 / sharp), (n_annotators, n_levels)) + 1e-9
    matrices /= matrices.sum(axis=2, keepdims=True)
    prior = rng.dirichlet(np.full(n_levels, 2.0)) * 0.9 + 0.1 / n_levels
    known = np.where(rng.random(n_items) < share_known, rng.integers(0, n_levels, n_items), -1).astype(np.int32)
    return (item, annotator, level, weight), matrices, prior, known


def packed(rows, n_items, matrices):
    return kernel.pack_grades(*rows, n_items, matrices.shape[0], matrices.shape[1])


def as_rows(item, annotator, level, weight):
    weight = np.ones(len(item)) if weight is None else weight
    return list(zip(item.tolist(), annotator.tolist(), level.tolist(), weight.tolist(), strict=True))


def as_dict(known):
    return {item: int(level) for item, level in enumerate(known) if level >= 0}


def check(rows, matrices, prior, known):
    """A pass and its probabilities against the slow twin."""
    grades = packed(rows, len(known), matrices)
    found = kernel.confusion_pass(grades, matrices, prior, known)
    probabilities = np.full((len(known), len(prior)), -1.0)
    kernel.fill_probabilities(grades, matrices, prior, known, probabilities)
    own, counts, shares, likelihood = slow.confusion_pass(
        as_rows(*rows), matrices.tolist(), prior.tolist(), as_dict(known)
    )
    assert found.log_likelihood == pytest.approx(likelihood, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(found.counts, counts, atol=1e-8)
    np.testing.assert_allclose(found.shares, shares, atol=1e-8)
    for item in range(len(known)):
        np.testing.assert_allclose(probabilities[item], own.get(item, [-1.0] * len(prior)), atol=1e-12)


@given(
    st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 12), st.integers(1, 4), st.integers(2, 5), st.booleans(),
    st.sampled_from([0.0, 0.3]),
)  # fmt: skip
def test_a_pass_equals_the_slow_twin(seed, n_rows, n_items, n_annotators, n_levels, weighted, share_known):
    check(*draw(seed, n_rows, n_items, n_annotators, n_levels, weighted=weighted, share_known=share_known))


@pytest.mark.parametrize("share_known", [0.0, 0.5])
def test_long_items_of_nearly_impossible_grades_stay_in_range(share_known):
    # a thousand factors of about 1e-9 each leave the range of numbers unless they are added as logarithms
    check(*draw(1, 3_000, 3, 5, 4, share_known=share_known, sharp=50.0))
    check(*draw(2, 400, 20, 5, 4, share_known=share_known, sharp=50.0))


def test_many_levels():
    check(*draw(3, 300, 40, 5, 30))


@given(st.integers(0, 2**32), st.booleans())
def test_order_of_rows_changes_no_bit(seed, weighted):
    rows, matrices, prior, known = draw(seed, 80, 15, 4, 3, weighted=weighted)
    order = np.random.default_rng(seed).permutation(80)
    shuffled = tuple(None if column is None else column[order] for column in rows)
    one, other = (packed(columns, 15, matrices) for columns in (rows, shuffled))
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)
    left, right = (kernel.confusion_pass(grades, matrices, prior, known) for grades in (one, other))
    assert left.log_likelihood == right.log_likelihood
    np.testing.assert_array_equal(left.counts, right.counts)


def test_parts_and_threads_change_no_count(monkeypatch):
    rows, matrices, prior, known = draw(5, 5_000, 700, 6, 4)
    whole = kernel.confusion_pass(packed(rows, 700, matrices), matrices, prior, known)
    monkeypatch.setattr(kernel, "_PART_ROWS", 300)
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: 3)
    grades = packed(rows, 700, matrices)
    assert len(grades.parts) - 1 > 10
    split = kernel.confusion_pass(grades, matrices, prior, known)
    np.testing.assert_array_equal(whole.counts, split.counts)
    np.testing.assert_array_equal(whole.shares, split.shares)
    assert whole.log_likelihood == pytest.approx(split.log_likelihood, rel=1e-12)


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([0.0, 0.3]))
def test_a_pass_by_votes_equals_the_slow_twin(seed, weighted, share_known):
    rows, matrices, _, known = draw(seed, 60, 25, 4, 3, weighted=weighted, share_known=share_known)
    grades = packed(rows, 25, matrices)
    several = kernel.several_annotators(grades, 3, named=True)
    assert set(np.flatnonzero(several).tolist()) == slow.several(as_rows(*rows))
    use = several | (known >= 0)
    found = kernel.vote_pass(grades, 4, 3, known, use)
    wanted = set(np.flatnonzero(use).tolist())
    np.testing.assert_allclose(found.counts, slow.vote_counts(as_rows(*rows), 4, 3, as_dict(known), wanted), atol=1e-8)


def test_without_names_two_rows_are_two_annotators():
    zero = np.zeros(3, np.int32)
    grades = kernel.pack_grades(np.array([0, 0, 2], np.int32), zero, zero, None, 3, 1, 2)
    assert kernel.several_annotators(grades, 2, named=False).tolist() == [True, False, False]
    assert kernel.several_annotators(grades, 2, named=True).tolist() == [False, False, False]


@given(st.integers(0, 2**32), st.integers(2, 5), st.booleans())
def test_pair_quality_equals_the_sum_over_all_answers(seed, n_levels, nominal):
    _, matrices, prior, _ = draw(seed, 1, 1, 3, n_levels)
    quality = kernel.pair_quality(matrices, prior, nominal=nominal)
    expected = [slow.pair_quality(matrix, prior.tolist(), nominal) for matrix in matrices.tolist()]
    np.testing.assert_allclose(quality, expected, atol=1e-12)


def test_pair_quality_of_perfect_guessing_and_reversed_annotators():
    matrices = np.stack([np.eye(3), np.full((3, 3), 1 / 3), np.eye(3)[::-1]])
    prior = np.array([0.5, 0.3, 0.2])
    quality = kernel.pair_quality(matrices, prior, nominal=False)
    np.testing.assert_allclose(quality, [1.0, 0.5, 0.0], atol=1e-12)
    one_level = kernel.pair_quality(np.ones((2, 1, 1)), np.ones(1), nominal=False)
    assert one_level.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("n_levels", [2, 3, 5])
def test_tied_matrices_come_back_from_their_own_counts(n_levels):
    rng = np.random.default_rng(n_levels)
    numbers = np.column_stack([rng.normal(0, 0.7, (6, n_levels)), rng.normal(1, 0.5, 6), rng.normal(0.6, 0.3, 6)])
    matrices = np.exp(kernel.tied_confusion(numbers))
    np.testing.assert_allclose(matrices.sum(axis=2), 1.0)
    counts = matrices * rng.uniform(5, 50, (6, n_levels, 1))
    found = kernel.fit_tied(counts, np.zeros_like(numbers), max_iter=50)
    np.testing.assert_allclose(np.exp(kernel.tied_confusion(found)), matrices, atol=1e-5)


def test_each_step_towards_tied_matrices_makes_the_counts_likelier():
    rng = np.random.default_rng(9)
    counts = rng.gamma(0.3, 8.0, (20, 4, 4)) + 1e-3
    numbers = rng.normal(0, 3, (20, 6))

    def value(numbers):
        return (counts * kernel.tied_confusion(numbers)).sum(axis=(1, 2))

    for _ in range(8):
        following = kernel.fit_tied(counts, numbers, max_iter=1)
        assert (value(following) >= value(numbers) - 1e-9).all()
        numbers = following
    # at the top no number can be moved to the better
    numbers = kernel.fit_tied(counts, numbers, max_iter=50)
    for k in range(6):
        for step in (-1e-3, 1e-3):
            moved = numbers.copy()
            moved[:, k] += step
            assert (value(moved) <= value(numbers) + 1e-9).all()


@pytest.mark.parametrize("n_rows", [0, 1, 200])
def test_rows_in_order_are_packed_as_those_out_of_order(n_rows):
    rng = np.random.default_rng(0)
    item, annotator, level = (rng.integers(0, n, n_rows).astype(np.int32) for n in (30, 7, 4))
    order = np.lexsort((level, annotator, item))
    shuffled = kernel.pack_grades(item, annotator, level, None, 31, 7, 4)
    in_order = kernel.pack_grades(item[order], annotator[order], level[order], None, 31, 7, 4)
    for one, other in zip(shuffled, in_order, strict=True):
        np.testing.assert_array_equal(one, other)


def test_levels_beyond_256_are_told_apart():
    level = np.arange(300, dtype=np.int32)
    packed = kernel.pack_grades(level, np.zeros(300, np.int32), level, None, 300, 1, 300)
    found, weights = kernel.levels_given(packed, 1, 300)
    np.testing.assert_array_equal(found, level)
    np.testing.assert_array_equal(weights, np.ones((1, 300)))


def draw_levels(seed, n=40, n_levels=3):
    """Probabilities and numbers of annotators at random, some items all but certain."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(n_levels, 0.1), n)
    return probabilities, rng.integers(0, 6, n).astype(float)


def flattened(probabilities, n_voices, correlation):
    power = 1.0 / (1.0 + np.maximum(n_voices - 1.0, 0.0) * correlation)
    powers = np.maximum(probabilities, 1e-300) ** power[:, None]
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
def test_tempered_probabilities_are_powers(monkeypatch, correlation):
    probabilities, n_voices = draw_levels(0)
    expected = flattened(probabilities, n_voices, correlation)
    np.testing.assert_allclose(kernel.flatten(probabilities, n_voices, correlation), expected, atol=1e-12)
    monkeypatch.setattr(kernel, "_MIN_ITEMS_PER_THREAD", 5)
    np.testing.assert_allclose(kernel.flatten(probabilities, n_voices, correlation), expected, atol=1e-12)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("timed", [True, False])
def test_held_out_grades_are_predicted_from_those_of_others(named, weighted, timed):
    n_items, n_annotators, n_levels, rng = 8, 5 if named else 1, 3, np.random.default_rng(4)
    item, annotator, level = (rng.integers(0, n, 40).astype(np.int32) for n in (n_items, n_annotators, n_levels))
    weight = rng.uniform(0.3, 2.5, 40) if weighted else None
    packed = kernel.pack_grades(item, annotator, level, weight, n_items, n_annotators, n_levels)
    confusion, prior = rng.dirichlet(np.ones(n_levels), (n_annotators, n_levels)), rng.dirichlet(np.ones(n_levels))
    mean, overall = rng.dirichlet(np.ones(n_levels), n_levels), rng.dirichlet(np.ones(n_levels))
    held_out = np.arange(n_annotators) % 2 == 0
    time = rng.integers(0, 3, 40).astype(float) if timed and named else None
    correlations, draws = np.array([0.0, 0.2, 0.8]), np.array([0.0, 0.3])
    found, by_shares = kernel.held_out_likelihoods(
        packed, confusion, prior, held_out, mean, overall, (correlations, draws), named=named, time=time
    )
    expected, expected_by_shares = np.zeros((3, 2)), 0.0
    items, (who, given) = np.repeat(np.arange(n_items), np.diff(packed.starts)), np.divmod(packed.code, n_levels)
    amount = packed.weight if weighted else np.ones(40)
    for row in np.flatnonzero(held_out[who]):
        logs, others, n_others, urn = np.log(prior), set(), 0.0, np.zeros(n_levels)
        for other in np.flatnonzero(items == items[row]):
            if named and (held_out[who[other]] or (time is not None and time[other] > time[row])):
                continue
            speaks = amount[other] - (min(amount[other], 1.0) if other == row and not named else 0.0)
            others.add(who[other])
            n_others += speaks
            urn[given[other]] += speaks
            logs = logs + speaks * np.log(confusion[who[other], :, given[other]])
        n_others = len(others) if named else n_others
        if n_others <= 0:
            continue
        shares = [flattened(np.exp(logs)[None], np.array([n_others]), one)[0] for one in correlations]
        by_level, drawn = np.array(shares) @ mean[:, given[row]], n_others * draws / (1 - draws + n_others * draws)
        chance = np.outer(by_level, 1 - drawn) + drawn * urn[given[row]] / urn.sum()
        expected += amount[row] * np.log(chance)
        expected_by_shares += amount[row] * np.log(overall[given[row]])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert by_shares == pytest.approx(expected_by_shares)


@pytest.mark.parametrize("expected", [0.05, 0.6])
def test_the_share_given_away_is_the_nearest(expected):
    flat, wanted = draw_levels(1)[0], draw_levels(2)[0]
    loss, away = kernel.nearest_away(flat, wanted, expected)
    tried = np.linspace(0.001, 0.999, 999)
    losses = [
        -(wanted * np.log((1 - one) * flat + one / 3 + 1e-300)).sum() + 0.5 * (one - expected) ** 2 for one in tried
    ]
    assert away == pytest.approx(tried[np.argmin(losses)], abs=2e-3)
    assert loss == pytest.approx(min(losses), abs=1e-3)


def test_annotators_are_counted_once_and_grades_of_nobody_by_weight():
    item, annotator, level = (np.array(column, np.int32) for column in ([0, 0, 0, 2], [1, 1, 0, 1], [0, 1, 1, 1]))
    plain, weighted = (
        kernel.pack_grades(item, annotator, level, weight, 3, 2, 2) for weight in (None, np.full(4, 0.5))
    )
    assert kernel.count_voices(plain, 2, named=True).tolist() == [2.0, 0.0, 1.0]
    assert kernel.count_voices(plain, 2, named=False).tolist() == [3.0, 0.0, 1.0]
    assert kernel.count_voices(weighted, 2, named=False).tolist() == [1.5, 0.0, 0.5]
