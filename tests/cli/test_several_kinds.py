"""Files of several kinds on the command line."""

import csv
import io

import pytest

GRADES = "item,annotator,grade\n" + "".join(
    f"{item},{who},{grade}\n" for who in ("ann", "bob") for grade, item in enumerate("wxyz")
)
PREFERENCES = "left,right,annotator,winner\n" + "".join(
    f"{left},{right},{who},{right}\n" for who in ("bob", "cy") for left, right in ("wx", "xy", "yz", "wy", "xz")
)
RANKINGS = "item,annotator,rank\nz,dan,1\ny,dan,2\nx,dan,3\n"


@pytest.fixture
def files(tmp_path):
    for name, text in (("grades.csv", GRADES), ("prefs.csv", PREFERENCES), ("ranks.csv", RANKINGS)):
        (tmp_path / name).write_text(text)


def test_aggregate_takes_files_of_several_kinds(run, files):
    ran = run("aggregate grades.csv prefs.csv ranks.csv --annotators who.csv")
    assert ran.code == 0
    assert [row["item"] for row in csv.DictReader(io.StringIO(ran.out))] == ["z", "y", "x", "w"]
    assert "8 grades and 10 preferences and 1 ranking by 4 annotators on 4 items" in ran.lines
    assert any(line.startswith("method latent_score, since ") for line in ran.lines)
    ran = run("aggregate grades.csv prefs.csv --without ann --as-preferences --method borda")
    assert ran.code == 0
    assert "16 preferences by 2 annotators on 4 items" in ran.lines


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("aggregate grades.csv prefs.csv -m borda", "borda takes one kind of judgment, not grades and preferences"),
        ("diagnose grades.csv prefs.csv", "diagnose looks at one kind of judgment at a time; give it the grades"),
        ("aggregate grades.csv prefs.csv --want grade", "give the grades alone"),
        ("aggregate grades.csv prefs.csv --nominal", "nominal grades have no order"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(run, files, command, said):
    ran = run(command)
    assert ran.code == 2
    assert said in ran.lines[-1]


def test_compare_takes_files_of_several_kinds(run, files):
    ran = run("compare grades.csv prefs.csv")
    assert ran.code == 0
    assert [row["method"] for row in csv.DictReader(io.StringIO(ran.out))] == ["latent_score"]


def test_annotators_and_items_that_are_known_are_named(run, tmp_path):
    rows = [f"q,x,y,{who},{side}" for who, side in (("ann", "left"), ("bob", "right"), ("cy", "right"))]
    (tmp_path / "pairs.csv").write_text("query,left,right,annotator,winner\n" + "\n".join(rows) + "\n")
    ran = run("aggregate pairs.csv --trusted ann")
    assert ran.code == 0
    assert "method latent_score, since it makes use of annotators or items that are known" in ran.lines
    assert ran.out.splitlines()[1].startswith("q,x,")
    (tmp_path / "known.csv").write_text("query,item,score\nq,x,2\nq,y,0\n")
    ran = run("aggregate pairs.csv --known known.csv")
    assert ran.code == 0
    assert ran.out.splitlines()[1].startswith("q,x,2.0,1")
    assert run("aggregate pairs.csv --trusted anm").code == 2
