"""LambdaRank's slopes equal those of the plain loops over pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import lambdas as slow

from crowdrank.kernels import threads
from crowdrank.rankers.kernels.losses import swap_gains
from crowdrank.rankers.training_rows import Lists


def make_lists(seed, n_queries=3, copies=True):
    """Queries of 1 to 7 items, some with several rows of different targets and weights."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(1, 8, n_queries))
    item = np.arange(len(qid))
    if copies:
        again = np.sort(np.concatenate([item, rng.choice(len(qid), len(qid))]))
        qid, item = qid[again], item[again]
    y, weight = rng.integers(0, 4, len(qid)).astype(float), rng.uniform(0.5, 2, len(qid))
    return Lists.of(len(qid), y, qid, item, weight), rng


@given(
    seed=st.integers(0, 10_000), copies=st.booleans(), truncation=st.sampled_from([1, 2, 100]),
    normalize=st.booleans(), sigma=st.sampled_from([0.5, 2.0]),
)  # fmt: skip
def test_slopes_equal_the_plain_loops(seed, copies, truncation, normalize, sigma):
    lists, rng = make_lists(seed, copies=copies)
    gain = 2.0**lists.target - 1
    item = np.arange(lists.n_places) if lists.item is None else lists.item
    # rows of one item have one score, as rankers give them
    scores = rng.normal(size=int(lists.n_items.sum()))[item]
    found = swap_gains(lists, gain, truncation=truncation, sigma=sigma, normalize=normalize)(scores)
    for first, last in zip(lists.offsets[:-1], lists.offsets[1:], strict=True):
        part = slice(first, last)
        expected = slow.slopes(
            gain[part], lists.weights[part], item[part], scores[part], truncation, sigma, normalize
        )  # fmt: skip
        np.testing.assert_allclose(found[0][part], expected[0], atol=1e-12)
        np.testing.assert_allclose(found[1][part], expected[1], atol=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
def test_slopes_of_a_query_cancel_and_threads_do_not_matter(normalize, monkeypatch):
    lists, rng = make_lists(0, n_queries=40)
    scores = rng.normal(size=lists.n_places)
    settings = {"truncation": 5, "sigma": 1.0, "normalize": normalize}
    one = swap_gains(lists, lists.target, **settings)(scores)
    assert abs(np.add.reduceat(one[0], lists.offsets[:-1])).max() < 1e-12
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: 3)
    three = swap_gains(lists, lists.target, **settings)(scores)
    np.testing.assert_array_equal(one, three)


def test_copies_of_every_row_change_nothing():
    lists, rng = make_lists(1, copies=False)
    score_of = rng.normal(size=lists.n_places)
    three = np.repeat(np.arange(lists.n_places), 3)
    copied = Lists.of(len(three), lists.target[three], lists.query[three], three, lists.weights[three])
    for normalize in (True, False):
        settings = {"truncation": 3, "sigma": 1.0, "normalize": normalize}
        plain = swap_gains(lists, lists.target, **settings)(score_of)[0]
        thrice = swap_gains(copied, copied.target, **settings)(score_of[three])[0]
        np.testing.assert_allclose(thrice, plain[three], atol=1e-12)


def test_far_scores_and_queries_without_gain_are_finite():
    lists = Lists.of(5, [1, 0, 2, 0, 0], [0, 0, 0, 1, 1])
    slopes, bends = swap_gains(lists, lists.target, truncation=None, sigma=1.0, normalize=False)(
        np.array([-2000.0, 0.0, 2000.0, 1.0, 2.0])
    )
    assert np.isfinite(slopes).all()
    assert np.isfinite(bends).all()
    assert slopes[0] < -0.02
    assert (slopes[3:] == 0).all()
