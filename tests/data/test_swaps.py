import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError, ParameterError

ROWS = [
    ("ann", "q", "x", "y", "x"), ("ann", "q", "y", "x", "y"),  # the left one each time
    ("bob", "q", "x", "y", "x"), ("bob", "q", "y", "x", "x"),  # the same item each time
    ("cid", "q", "x", "y", "tie"), ("cid", "q", "y", "x", "x"),  # a tie, and a winner
    ("ann", "r", "x", "y", "y"), ("dee", "q", "x", "y", "x"),  # one order only
]  # fmt: skip


def test_rules():
    preferences = cr.Preferences.from_rows(ROWS)
    assert preferences.settle_swaps("keep") is preferences
    tied = preferences.settle_swaps("tie")
    assert tied.outcome.tolist() == [0, 0, 1, -1, 0, 0, -1, 1]
    dropped = preferences.settle_swaps("drop")
    assert dropped.frame()["annotator"].to_list() == ["bob", "bob", "ann", "dee"]
    assert dropped.outcome.tolist() == [1, -1, -1, 1]


def test_queries_taken_together_stay_apart():
    rows = [("ann", "q", "x", "y", "x"), ("ann", "r", "y", "x", "y")]
    preferences = cr.Preferences.from_rows(rows).across_queries()
    assert preferences.settle_swaps("tie").outcome.tolist() == [1, 1]


def test_refusals():
    preferences = cr.Preferences.from_rows(ROWS)
    with pytest.raises(ParameterError, match="swaps"):
        preferences.settle_swaps("average")
    with pytest.raises(JudgmentError, match="none is left"):
        preferences.select([0, 1]).settle_swaps("drop")
