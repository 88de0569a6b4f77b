"""Pilot: overlap on a part of the items, single grades on the rest, whatever the budget."""

import numpy as np
import polars as pl
import pytest

from crowdrank.data.judgments import Grades
from crowdrank.schemes import Pilot
from crowdrank.schemes.situation import Situation


def begun(n_items=600, **more):
    """One grade of the first item, and a list of items of which all may be asked about."""
    items = {"query": ["q"] * n_items, "item": [f"i{n:03}" for n in range(n_items)]}
    grades = Grades.from_frame({"query": ["q"], "item": ["i000"], "annotator": ["ann"], "grade": [1]}, items=items)
    return Situation.of(grades, askable=np.ones(n_items, bool), **more)


def spent(requests, k):
    """Grades asked for items that get several, and for others."""
    overlap = pl.col("reason").str.contains("one of the items")
    frame = requests.frame()
    return frame.filter(overlap)["n_more"].sum(), frame.filter(~overlap)["n_more"].sum()


def test_all_items_without_a_budget():
    overlap, single = spent(Pilot(k=5, share=0.5).propose(begun()), 5)
    # a sixth of the items takes half of the grades
    assert (overlap, single) == (100 * 5 - 1, 500)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_shares_hold_whatever_the_budget(share):
    for budget in (20, 100, 333):
        overlap, single = spent(Pilot(k=5, share=share).propose(begun(budget=budget)), 5)
        assert overlap + single == budget
        assert overlap == pytest.approx(share * budget, abs=2)


def test_items_are_completed_one_after_the_other():
    frame = Pilot(k=5).propose(begun(budget=100)).frame().filter(pl.col("reason").str.contains("one of"))
    assert sorted(frame["n_more"].to_list())[2:] == [5] * (len(frame) - 2)


def test_overlap_that_exists_is_built_upon():
    rows = [(f"a{a}", "q", f"i{n}", 1) for n in range(30) for a in range(3 if n < 5 else 1)]
    requests = Pilot(k=5, share=0.5).propose(Situation.of(Grades.from_rows(rows)))
    assert set(requests.frame()["item"]) == {f"i{n}" for n in range(5)}
    assert requests.frame()["n_more"].to_list() == [2] * 5


def test_seeded():
    first, second, other = (Pilot().propose(begun(seed=seed, budget=50)).frame() for seed in (1, 1, 2))
    assert first.equals(second)
    assert not first.equals(other)
