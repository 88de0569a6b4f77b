"""The verb ``diagnose``, and what ``aggregate`` says of annotators' habits."""

import numpy as np
import pytest
from tests.review.crowds import panel, preferences, winners
from tests.test_sides import crowd as crowd_of
from tests.test_sides import winners_first

from crowdrank.io import read_table


def text(head, rows):
    """Rows as CSV text."""
    return "\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def crowd(tmp_path):
    """Votes of eight annotators, of whom the first two are one and the last one always chooses left."""
    given, truth = panel(np.random.default_rng(1), n=8, things=150, copies=2)
    table = preferences(given).frame().to_dict(as_series=False)
    table["winner"] = ["left" if a == "a7" else w for a, w in zip(table["annotator"], table["winner"], strict=True)]
    lines = zip(*(table[name] for name in ("query", "left", "right", "winner", "annotator")), strict=True)
    (tmp_path / "v.csv").write_text(text("query,left,right,winner,annotator", lines))
    gold = winners(truth)
    rows = zip(gold["query"], gold["left"], gold["right"], gold["winner"], strict=True)
    (tmp_path / "gold.csv").write_text(text("query,left,right,winner", rows))
    return tmp_path


def test_diagnose_writes_a_row_for_each_annotator_and_says_what_is_odd(run, crowd):
    ran = run("diagnose v.csv --dependence pairs.csv --families families.csv --groups groups.csv -o who.csv")
    assert ran.code == 0
    assert ran.out == ""
    who = read_table("who.csv", text_ids=False)
    assert who["annotator"].to_list() == [f"a{i}" for i in range(8)]
    assert who["family"].to_list()[:3] == [1, 1, None]
    assert who["position_bias"].to_list()[7] > 0.95
    pairs = read_table("pairs.csv", text_ids=False)
    assert pairs.row(0)[:2] == ("a0", "a1")
    assert read_table("families.csv")["annotators"].to_list() == ["'a0', 'a1'"]
    assert "relation" in read_table("groups.csv").columns
    assert sum("1 annotator chooses one side whatever the items: 'a7'" in line for line in ran.lines) == 1
    assert any(line.startswith("warning: 1 annotator chooses one side") for line in ran.lines)
    assert any("1 pair of annotators agrees more than their qualities explain: 'a0' with 'a1'" in x for x in ran.lines)
    assert any("the 8 annotators are worth 6.4 independent ones" in line for line in ran.lines)
    for name in ("who.csv", "pairs.csv", "families.csv", "groups.csv"):
        assert f"wrote {name}" in ran.lines


def test_diagnose_against_a_truth(run, crowd):
    ran = run("diagnose v.csv --truth gold.csv --dependence pairs.csv -q")
    assert ran.code == 0
    assert read_table("pairs.csv", text_ids=False).row(0)[:2] == ("a0", "a1")


def test_aggregate_tells_habits_too(run, crowd):
    ran = run("aggregate v.csv --annotators who.csv -o r.csv")
    assert ran.code == 0
    table = read_table("who.csv", text_ids=False)
    assert table.columns[:3] == ["annotator", "quality", "n_judgments"]
    assert {"position_bias", "share_circular", "family"} <= set(table.columns)
    assert sum("chooses one side whatever the items" in line for line in ran.lines) == 1
    assert any("agrees more than their qualities explain" in line for line in ran.lines)
    assert not any("won every contest with others of the query" in line for line in ran.lines)


def test_quiet_leaves_warnings(run, crowd):
    ran = run("aggregate v.csv -q")
    assert all(line.startswith("warning: ") for line in ran.lines)


def test_mistakes_are_told_in_a_line(run, crowd):
    ran = run("diagnose v.csv --dependence v.csv")
    assert ran.code == 2
    assert "is an input and would be overwritten" in ran.err
    ran = run("diagnose nothing.csv")
    assert ran.code == 2
    assert len(ran.lines) == 1


def test_votes_without_annotators(run, tmp_path):
    (tmp_path / "v.csv").write_text("left,right,winner\n" + "x,y,x\ny,x,y\nx,y,y\n" * 5)
    ran = run("diagnose v.csv")
    assert ran.code == 0
    assert any("name no annotators" in line for line in ran.lines)
    assert ran.out.splitlines()[0].startswith("annotator,n_judgments,share_left,position_bias")


@pytest.mark.parametrize("verb", ["aggregate", "diagnose"])
def test_a_table_of_winners_accuses_nobody_of_a_side(run, tmp_path, verb):
    table = winners_first(crowd_of(1, n=12, each=40, ties=0))
    table.write_csv(tmp_path / "left.csv")
    ran = run(f"{verb} left.csv -o r.csv")
    assert ran.code == 0
    assert sum("that is taken for the order in which winners were written down" in line for line in ran.lines) == 1
    assert not any("side whatever" in line or "to one side" in line for line in ran.lines)
    table.select("annotator", winner="left", loser="right").write_csv(tmp_path / "won.csv")
    ran = run(f"{verb} won.csv -o r.csv --column winner=winner --column loser=loser")
    assert ran.code == 0
    assert any(line.endswith("which item was shown on which side is not known") for line in ran.lines)
    assert not any("side whatever" in line or "to one side" in line for line in ran.lines)


def test_one_annotator_is_told_their_own_consistency(run, tmp_path):
    crowd_of(1, n=1, each=200).write_csv(tmp_path / "one.csv")
    ran = run("aggregate one.csv -o r.json --report r.html")
    assert ran.code == 0
    assert any(line.startswith("self-consistency of 'a00': the same answer in ") for line in ran.lines)
    page = (tmp_path / "r.html").read_text()
    assert "two annotators" not in page
    assert "with the sides swapped" in page
