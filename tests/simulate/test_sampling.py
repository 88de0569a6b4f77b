"""Sampling kernels against their slow twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import sampling as slow

from crowdrank.simulate.kernels import sampling

lengths = st.lists(st.integers(0, 8), min_size=1, max_size=12)


def offsets_of(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@settings(deadline=None)  # the first call compiles
@given(counts=lengths, extra=st.integers(0, 5), seed=st.integers(0, 1000))
def test_distinct_draws_equal_the_twin(counts, extra, seed):
    offsets, sizes = offsets_of(counts), np.array(counts, np.int64) + extra
    uniform = np.random.default_rng(seed).random(offsets[-1])
    drawn = sampling.distinct_draws(uniform, offsets, sizes)
    np.testing.assert_array_equal(drawn, slow.distinct_draws(uniform, offsets, sizes))
    for start, stop, size in zip(offsets[:-1], offsets[1:], sizes, strict=True):
        assert len(set(drawn[start:stop])) == stop - start
        assert (drawn[start:stop] < size).all()


@settings(deadline=None)  # the first call compiles
@given(counts=lengths, seed=st.integers(0, 1000))
def test_insertions_equal_the_twin(counts, seed):
    offsets = offsets_of(counts)
    place = np.concatenate([np.arange(n) for n in counts] + [np.zeros(0, int)]).astype(np.int64)
    steps = (np.random.default_rng(seed).random(len(place)) * (place + 1)).astype(np.int64)
    np.testing.assert_array_equal(sampling.insert_all(steps, offsets), slow.insert_all(steps, offsets))


@settings(deadline=None)  # the first call compiles
@given(counts=lengths, swaps=lengths, seed=st.integers(0, 1000))
def test_swaps_equal_the_twin(counts, swaps, seed):
    rng = np.random.default_rng(seed)
    swaps = [n if size else 0 for n, size in zip((swaps * 12)[: len(counts)], counts, strict=True)]
    size = np.repeat(np.array(counts, np.int64), swaps)
    first, second = ((rng.random(len(size)) * size).astype(np.int64) for _ in range(2))
    given_ = (first, second, offsets_of(swaps), offsets_of(counts))
    np.testing.assert_array_equal(sampling.swap_all(*given_), slow.swap_all(*given_))


def test_every_draw_is_equally_likely():
    n = 60_000
    uniform = np.random.default_rng(0).random(2 * n)
    drawn = sampling.distinct_draws(uniform, np.arange(0, 2 * n + 1, 2), np.full(n, 4)).reshape(n, 2)
    counts = np.bincount(drawn[:, 0] * 4 + drawn[:, 1], minlength=16).reshape(4, 4)
    assert np.diag(counts).sum() == 0
    assert counts[~np.eye(4, dtype=bool)] / n == pytest.approx(np.full(12, 1 / 12), abs=0.005)
