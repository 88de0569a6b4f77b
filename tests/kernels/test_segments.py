"""Segment sums, means and medians equal the plain ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import votes as slow

from crowdrank.kernels.segments import fill_from_query, level_places, segment_means, segment_medians, segment_sums

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3), st.sampled_from([0.25, 1.0, 1.5])), max_size=30)


@given(ROWS, st.booleans())
def test_equal_the_plain_ones(rows, weighted):
    segment = np.array([r[0] for r in rows], np.int32)
    values = np.array([r[1] for r in rows], float)
    weight = np.array([r[2] for r in rows]) if weighted else None
    sums, counts = segment_sums(values, segment, weight, 5), segment_sums(None, segment, weight, 5)
    means, medians = segment_means(values, segment, weight, 5, 9.0), segment_medians(values, segment, weight, 5, 9.0)
    for number in range(5):
        own = [(v, w if weighted else 1.0) for s, v, w in rows if s == number]
        assert np.isclose(counts[number], sum(w for _, w in own))
        assert np.isclose(sums[number], sum(v * w for v, w in own))
        assert np.isclose(means[number], slow.weighted_mean(own) if own else 9.0)
        assert np.isclose(medians[number], slow.weighted_median(own) if own else 9.0)


@pytest.mark.parametrize("levels", [[0.0, 1.0, 4.0], [-3.0, 0.0], [0.5, 1.0, 1.75], [7.0], [0.0, 1e9]])
def test_places_of_levels(levels):
    places = np.random.default_rng(0).integers(0, len(levels), 50)
    assert level_places(np.array(levels), np.array(levels)[places]).tolist() == places.tolist()


def test_unjudged_items_take_the_mean_of_their_query_else_of_all():
    values = np.array([1.0, 3.0, np.nan, np.nan, 8.0])
    judged = np.array([True, True, False, False, True])
    query = np.array([0, 0, 0, 1, 2], np.int32)
    assert fill_from_query(values, judged, query, 3).tolist() == [1, 3, 2, 4, 8]
    assert fill_from_query(values, np.zeros(5, bool), query, 3).tolist() == [0, 0, 0, 0, 0]
    assert fill_from_query(values, np.ones(5, bool), query, 3) is values
