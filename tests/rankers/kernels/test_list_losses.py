"""Losses over lists against their slow twins, their slopes and their curvature by differences."""

import numpy as np
import pytest
from tests.oracles import list_losses as slow

from crowdrank.rankers.kernels import losses as fast
from crowdrank.rankers.training_rows import Lists


def example(seed=0, *, n=23, copies=True):
    """Lists of five queries, one of a single item and one of equal targets, best first, with weights and scores."""
    rng = np.random.default_rng(seed)
    qid = rng.integers(0, 3, n).tolist() + [7, 8, 8]
    target = [*rng.integers(0, 3, n).astype(float), 1.0, 2.0, 2.0]
    item = [f"{q}-{i}" for i, q in zip(rng.integers(0, 4, n + 3), qid, strict=True)] if copies else None
    lists = Lists.of(n + 3, target, qid, item, rng.integers(1, 4, n + 3).astype(float)).best_first()
    return lists, rng.normal(0, 2, n + 3), rng.uniform(0.2, 1, lists.n_queries)


def twin(lists, factor):
    """Arguments of the slow twins."""
    return lists.target, lists.weight, lists.query, factor


LOSSES = {
    "cross_entropy": (
        lambda lists, factor: lambda s: slow.cross_entropy(s, *twin(lists, factor)),
        lambda lists, scores, factor: entropy(lists, scores, factor)[:2],
        lambda lists, scores, factor, block: fast.bend_chances(
            entropy(lists, scores, factor)[2], factor, lists.offsets, 0, lists.n_queries, block
        ),
    ),
    "choices": (
        lambda lists, factor: lambda s: slow.choices(s, *twin(lists, factor)),
        lambda lists, scores, factor: choices(lists, factor)(scores)[:2],
        lambda lists, scores, factor, block: choices(lists, factor)(scores).bend(0, lists.n_queries, block),
    ),
} | {
    f"{name} pairs": (
        lambda lists, factor, name=name: lambda s: slow.pairs(s, *twin(lists, factor), name, lists.item),
        lambda lists, scores, factor, code=code: pairs(lists, factor, code)(scores)[:2],
        lambda lists, scores, factor, block, code=code: pairs(lists, factor, code)(scores).bend(
            0, lists.n_queries, block
        ),
    )
    for name, code in (("logistic", fast.LOGISTIC), ("hinge", fast.HINGE))
}  # fmt: skip


def choices(lists, factor):
    """Likelihood that better places are chosen before lower ones."""
    return fast.ordered_choices(lists.weight, lists.tie_starts(), lists.offsets, factor)


def pairs(lists, factor, code):
    """Loss of the pairs of each query."""
    return fast.better_of_pairs(lists.weight, lists.tie_starts(), lists.item, lists.offsets, factor, code)


def entropy(lists, scores, factor):
    """Value, slopes and chances of the cross entropy, as the ranker puts them together."""
    wanted, _ = fast.choice_chances(lists.target, lists.weight, lists.offsets)
    chances, level = fast.choice_chances(scores, lists.weight, lists.offsets)
    on_places = np.repeat(factor, np.diff(lists.offsets))
    return factor @ level - (on_places * wanted) @ scores, on_places * (chances - wanted), chances


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("copies", [True, False])
def test_value_and_slopes_are_those_of_the_slow_twin(name, copies):
    twin_of, value_and_slopes, _ = LOSSES[name]
    for seed in range(4):
        lists, scores, factor = example(seed, copies=copies)
        function = twin_of(lists, factor)
        value, slopes = value_and_slopes(lists, scores, factor)
        assert value == pytest.approx(function(scores), rel=1e-10)
        np.testing.assert_allclose(slopes, slow.slopes(function, scores), atol=2e-8)
        np.testing.assert_allclose(np.add.reduceat(slopes, lists.offsets[:-1]), 0, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_curvature_is_the_difference_of_slopes(name):
    _, value_and_slopes, bend = LOSSES[name]
    lists, scores, factor = example(1)
    block = np.random.default_rng(5).normal(size=(len(scores), 3))
    step = 1e-6
    for column, found in zip(block.T, bend(lists, scores, factor, block).T, strict=True):
        up, down = (value_and_slopes(lists, scores + sign * step * column, factor)[1] for sign in (1, -1))
        np.testing.assert_allclose(found, (up - down) / (2 * step), atol=2e-7)


@pytest.mark.parametrize("name", LOSSES)
def test_scores_far_apart_stay_finite(name):
    _, value_and_slopes, bend = LOSSES[name]
    lists, scores, factor = example(2)
    far = 400 * scores
    value, slopes = value_and_slopes(lists, far, factor)
    assert np.isfinite(value)
    assert np.isfinite(slopes).all()
    assert np.isfinite(bend(lists, far, factor, np.eye(len(far))[:, :2].copy())).all()


@pytest.mark.parametrize("name", LOSSES)
def test_threads_change_nothing(name, monkeypatch):
    _, value_and_slopes, bend = LOSSES[name]
    lists, scores, factor = example(3, n=60)
    block = np.random.default_rng(5).normal(size=(len(scores), 3))
    one, bent = value_and_slopes(lists, scores, factor), bend(lists, scores, factor, block)
    monkeypatch.setattr(fast, "_WORK_PER_THREAD", 1)
    several = value_and_slopes(lists, scores, factor)
    assert several[0] == pytest.approx(one[0], rel=1e-12)
    np.testing.assert_array_equal(several[1], one[1])
    np.testing.assert_array_equal(bend(lists, scores, factor, block), bent)


def test_weights_of_pairs():
    lists, _, _ = example(4)
    found = fast.pair_weights(lists.weight, lists.tie_starts(), lists.item, lists.offsets)
    for query in range(lists.n_queries):
        factor = (np.arange(lists.n_queries) == query).astype(float)
        # a hinge at equal scores costs one half
        half = slow.pairs(np.zeros(lists.n_places), *twin(lists, factor), "hinge", lists.item)
        assert found[query] == pytest.approx(2 * half)
