"""Standings in rankings and in groups of grades equal the plain count of those below and above."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import votes as slow

from crowdrank.kernels.segments import grade_standings, group_codes, ranking_standings

WEIGHT = st.sampled_from([0.5, 1.0, 2.0])
GROUPS = st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), WEIGHT), min_size=1, max_size=7), max_size=5)


@given(GROUPS)
def test_groups_of_grades(groups):
    rows = [(number, *row) for number, group in enumerate(groups) for row in group]
    group, item, grade, weight = (np.array([r[k] for r in rows]) for k in range(4))
    found = grade_standings(group.astype(np.int64), item.astype(np.int32), grade.astype(float), weight.astype(float))
    expected = sorted(slow.standings(groups))
    np.testing.assert_allclose(sorted(zip(*found, strict=True)), expected, rtol=1e-9, atol=1e-9)


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=6), min_size=1, max_size=5))
def test_rankings(rankings):
    ranked = [sorted(ranking) for ranking in rankings]
    rank = np.array([r for ranking in ranked for r in ranking], np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in ranked])])
    found = ranking_standings(rank, offsets)
    expected = [
        (sum(r > own for r in ranking) - sum(r < own for r in ranking)) / max(len(ranking) - 1, 1)
        for ranking in ranked
        for own in ranking
    ]
    np.testing.assert_allclose(found, expected)


def test_group_codes_tell_all_combinations_apart():
    query, annotator = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32)
    assert len(set(group_codes(query, annotator, None).tolist())) == 4
    assert len(set(group_codes(query, np.empty(0, np.int32), None).tolist())) == 2
    assert len(set(group_codes(query, annotator, np.array([0, 1, 1, 0], np.int32)).tolist())) == 4
    assert len(set(group_codes(np.zeros(4, np.int32), np.zeros(4, np.int32), query).tolist())) == 2
