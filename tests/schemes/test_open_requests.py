"""Requests that are out already are neither asked for nor paid again."""

import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError

GRADES = {"item": list("xyz"), "annotator": ["ann"] * 3, "grade": [3, 0, 2]}
PAIRS = {
    "left": list("wxyzwx"), "right": list("xyzwyz"), "winner": ["left"] * 6, "annotator": ["ann", "bob"] * 3,
}  # fmt: skip


def asked(table):
    return dict(table.select("item", "n_more").rows())


@pytest.mark.parametrize(("scheme", "left"), [("if-good-3", {"x": 1, "z": 2}), ("2-overlap", {"y": 1, "z": 1})])
def test_what_is_out_counts_towards_what_is_wanted(scheme, left):
    assert asked(cr.propose(GRADES, scheme, open={"item": ["x"], "annotator": ["bob"]})) == left


def test_n_more_of_a_former_proposal_is_understood(tmp_path):
    first = cr.propose(GRADES, "if-good-3")
    first.write_csv(tmp_path / "requests.csv")
    assert len(cr.propose(GRADES, "if-good-3", open=str(tmp_path / "requests.csv"))) == 0


def test_whoever_was_asked_is_not_asked_again():
    pool = {"annotator": ["ann", "bob", "cy"], "price": [1, 1, 5]}
    table = cr.propose(GRADES, "2-overlap", pool=pool, open={"item": ["x"], "annotator": ["bob"]}, items=None)
    assert "x" not in table["item"].to_list()
    table = cr.propose(GRADES, "3-overlap", pool=pool, open={"item": ["x"], "annotator": ["bob"]})
    assert table.filter(item="x")["annotator"].to_list() == ["cy"]


@pytest.mark.parametrize("scheme", ["information", "uncertainty", "3-overlap"])
def test_pairs_that_are_out_make_room_for_others(scheme):
    first = cr.propose(PAIRS, scheme, budget=2)
    second = cr.propose(PAIRS, scheme, budget=2, open=first)
    out = {tuple(sorted(pair)) for pair in first.select("left", "right").rows()}
    new = [tuple(sorted(pair)) for pair in second.select("left", "right").rows()]
    assert second["n_more"].sum() == 2
    if scheme != "3-overlap":
        assert not out & set(new)


def test_items_that_nobody_knows_are_named():
    with pytest.raises(JudgmentError, match="row 2 of the open requests asks about 'nothing'"):
        cr.propose(GRADES, "2-overlap", open={"item": ["x", "nothing"]})
    with pytest.raises(JudgmentError, match="left and right"):
        cr.propose(PAIRS, "information", open={"item": ["x"]})
    with pytest.raises(JudgmentError, match="row 1 of the open requests has an n_more that is not a whole number"):
        cr.propose(GRADES, "2-overlap", open={"item": ["x"], "n_more": ["many"]})
