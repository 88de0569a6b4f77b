"""The whole diagnosis: every kind of judgment, what is said, files, and input that leaves little to say."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.review.crowds import panel, preferences, winners
from tests.strategies import KINDS, ROWS, judgments

import crowdrank as cr
from crowdrank.errors import DataWarning, JudgmentError, ParameterError
from crowdrank.io import from_json, to_json
from crowdrank.models.averages.borda import Borda
from crowdrank.review.diagnosis import diagnose


def look(judged):
    """Diagnostics with the plainest consensus."""
    return diagnose(judged, Borda().fit(judged))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_small_judgments_of_every_kind(kind, data):
    judged = judgments(kind, data.draw(ROWS[kind]()))
    before = judged.frame()
    found = look(judged)
    for table in (found.annotators(), found.dependence(), found.families(), found.groups()):
        assert not any(table[name].is_nan().any() for name, dtype in table.schema.items() if dtype.is_float())
    assert found.annotators()["annotator"].to_list() == list(judged.annotators)
    assert 1.0 <= found.effective_annotators <= judged.n_annotators
    assert judged.frame().equals(before)
    for name in ("position", "flipped", "circular"):
        if f"{name}_lower" in found.annotators().columns:
            value = {"position": "position_bias"}.get(name, f"share_{name}")
            rows = found.annotators().select(f"{name}_lower", value, f"{name}_upper").drop_nulls()
            assert (rows.to_numpy()[:, 0] <= rows.to_numpy()[:, 2]).all()


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_neither_names_nor_row_order_matter(kind, data):
    rows = data.draw(ROWS[kind]())
    rename = {"ann": "z9", "bob": "y8", "eve": "x7", "q1": "r2", "q2": "r1", "a": "h", "b": "g", "c": "f", "d": "e"}
    other = [tuple(rename.get(cell, cell) for cell in row) for row in data.draw(st.permutations(rows))]
    one, two = look(judgments(kind, rows)), look(judgments(kind, other))
    table = one.annotators().with_columns(one.annotators()["annotator"].replace_strict(rename))
    for name in set(table.columns) - {"family"}:
        left, right = table.sort("annotator")[name], two.annotators().sort("annotator")[name]
        if left.dtype.is_float():
            assert left.to_list() == pytest.approx(right.to_list(), abs=1e-6, nan_ok=True)
        elif name != "same_grade":
            assert left.to_list() == right.to_list()
    assert one.groups()["relation"].sort().to_list() == two.groups()["relation"].sort().to_list()


@pytest.mark.parametrize("kind", KINDS)
def test_annotators_may_be_missing(kind, small):
    judged = KINDS[kind].from_frame(small[kind].frame().drop("annotator"))
    found = look(judged)
    assert found.n_annotators == 0
    assert found.effective_annotators is None
    assert "name no annotators" in found.notes[0]
    assert found.dependence().is_empty()
    assert found.families().is_empty()
    assert len(found.annotators()) == 1
    assert found.annotators()["annotator"][0] is None


def test_a_bias_of_nobody_in_particular_is_told():
    rng = np.random.default_rng(1)
    winner = np.where(rng.random(300) < 0.75, "left", "right")
    judged = cr.Preferences.from_frame(
        {"query": range(300), "left": ["x", "y"] * 150, "right": ["y", "x"] * 150, "winner": winner}
    )
    found = diagnose(judged.across_queries(), Borda().fit(judged.across_queries()))
    assert found.annotators()["position_lower"][0] > 0.3
    assert found.annotator_messages[0].startswith("the left item is chosen more often than its score explains")


def test_one_annotator_and_one_row():
    found = look(cr.Preferences.from_rows([("ann", "q", "x", "y", "left")]))
    assert found.effective_annotators == 1.0
    assert found.notes == ()
    assert found.annotators()["position_upper"][0] == 1.0


def test_groups_of_items():
    rows = [
        ("ann", "q", "a", "b", "a"),
        ("ann", "q", "b", "a", "b"),
        ("ann", "q", "c", "d", "c"),
        ("bob", "q", "d", "c", "d"),
    ]
    rows += [
        ("ann", "r", "a", "b", "a"),
        ("ann", "r", "b", "a", "b"),
        ("ann", "r", "a", "c", "a"),
        ("bob", "r", "b", "c", "b"),
    ]
    found = look(cr.Preferences.from_rows(rows))
    table = found.groups()
    apart = table.filter(table["relation"] == "apart")
    assert apart.select("query", "item").rows() == [("q", "a"), ("q", "b"), ("q", "c"), ("q", "d")]
    assert apart["group"].n_unique() == 2
    assert table.filter(table["relation"] == "won").select("query", "item").rows() == [("r", "a"), ("r", "b")]
    assert table.filter(table["relation"] == "lost").select("query", "item").rows() == [("r", "c")]
    assert found.group_messages[0].startswith(
        "2 groups of items were never compared with each other, those of 'a' (query 'q')"
    )
    assert found.group_messages[1].startswith(
        "'c' (query 'r') lost every preference, so how far behind it is remains open"
    )
    # that a and b won against c is the same
    assert found.messages[:2] == found.group_messages


def test_groups_of_items_in_rankings():
    rows = [("ann", "q", item, place) for place, item in enumerate("abc", 1)]
    rows += [("bob", "q", item, place) for place, item in enumerate("bac", 1)]
    rows += [("bob2", "q", item, place) for place, item in enumerate("de", 1)]
    rows += [("cid", "q", item, 1) for item in "de"]
    table = look(cr.Rankings.from_rows(rows)).groups()
    assert table.filter(table["relation"] == "apart")["item"].to_list() == ["a", "b", "c", "d", "e"]
    assert table.filter(table["relation"] == "won")["item"].to_list() == ["a", "b"]
    assert table.filter(table["relation"] == "lost")["item"].to_list() == ["c"]


def test_the_verb_takes_frames_and_makes_a_consensus():
    given, truth = panel(np.random.default_rng(1), n=6, things=120, copies=2)
    judged = preferences(given)
    with pytest.warns(DataWarning):
        found = cr.diagnose(judged.frame())
    assert found.dependence().row(0)[:2] == ("a0", "a1")
    told = cr.diagnose(judged, Borda().fit(judged), truth=winners(truth))
    assert told.dependence().row(0)[:2] == ("a0", "a1")


def test_a_consensus_of_other_items_is_refused():
    judged = cr.Grades.from_rows([("ann", "q", "x", 1), ("ann", "q", "y", 2)])
    other = Borda().fit(cr.Grades.from_rows([("ann", "q", "x", 1), ("ann", "q", "z", 2)]))
    with pytest.raises(JudgmentError, match="does not know item 'y'; give the consensus of these judgments"):
        cr.diagnose(judged, other)
    with pytest.raises(ParameterError, match="takes a consensus, not a str"):
        cr.diagnose(judged, "borda")


def test_a_consensus_from_a_file_will_do(tmp_path):
    given, _ = panel(np.random.default_rng(1), n=5, things=60)
    judged = preferences(given)
    consensus = Borda().fit(judged)
    consensus.frame().write_csv(tmp_path / "c.csv")
    again = cr.diagnose(judged, cr.read_consensus(tmp_path / "c.csv"))
    assert again.annotators().equals(cr.diagnose(judged, consensus).annotators())


def test_truth_of_nothing_that_was_judged_is_refused():
    given, truth = panel(np.random.default_rng(1), n=5, things=60)
    judged = preferences(given)
    table = winners(truth)
    table["left"] = ["v"] * 60
    with pytest.raises(JudgmentError, match="covers nothing that was judged"):
        cr.diagnose(judged, Borda().fit(judged), truth=table)
    grades = cr.Grades.from_rows([("ann", "1", "x", 1), ("bob", "1", "x", 2)])
    with pytest.raises(JudgmentError, match="not with known winners"):
        cr.diagnose(grades, Borda().fit(grades), truth=winners(truth))


@pytest.mark.parametrize("words", [False, True])
def test_truth_of_grades(words):
    rng = np.random.default_rng(2)
    known = rng.integers(0, 3, 200)
    names = np.array(["Bad", "Fair", "Good"]) if words else np.arange(3)
    rows = []
    wrong = (known + rng.integers(1, 3, 200)) % 3
    for who in range(5):
        given = np.where(rng.random(200) < 0.7, known, rng.integers(0, 3, 200)) if who else known
        # the last two make the same mistakes
        given = np.where(np.arange(200) % 4 == 0, wrong, known) if who > 2 else given
        rows += [(f"a{who}", "q", f"i{i:03d}", names[g].item()) for i, g in enumerate(given)]
    judged = cr.Grades.from_rows(rows, levels=["Bad", "Fair", "Good"] if words else None)
    truth = {"query": ["q"] * 200, "item": [f"i{i:03d}" for i in range(200)], "grade": names[known].tolist()}
    found = cr.diagnose(judged, Borda().fit(judged), truth=truth)
    best = found.dependence().row(0, named=True)
    assert (best["annotator"], best["other"], best["agreement_when_wrong"]) == ("a3", "a4", 1.0)
    assert best["correlation"] > 0.9


def test_diagnostics_go_through_json():
    given, _ = panel(np.random.default_rng(1), n=6, things=120, copies=2, ties=0.1)
    consensus = cr.aggregate(judged := preferences(given, ["one"] * 3 + ["two"] * 3))
    found = cr.diagnose(judged, consensus)
    consensus = replace(consensus, diagnostics=found)
    again = from_json(json.loads(json.dumps(to_json(consensus), allow_nan=False))).diagnostics
    assert again.messages == found.messages
    assert again.effective_annotators == found.effective_annotators
    assert again.annotators().equals(found.annotators())
    assert again.families().equals(found.families())
    with pytest.raises(ParameterError, match=r"make it with crowdrank\.diagnose"):
        again.dependence()
    assert to_json(consensus, quality=False)["diagnostics"] is None


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_through_files(kind, small, tmp_path):
    consensus = cr.aggregate(small[kind], "borda")
    consensus = replace(consensus, diagnostics=cr.diagnose(small[kind], consensus))
    for name in ("r.json", "r.parquet"):
        cr.io.write_consensus(consensus, tmp_path / name)
        again = cr.read_consensus(tmp_path / name).diagnostics
        assert again.annotators().equals(consensus.diagnostics.annotators())
        assert again.messages == consensus.diagnostics.messages


def test_a_consensus_is_data_and_looks_for_nothing_itself(small):
    consensus = cr.aggregate(small["grade"], "borda")
    assert consensus.diagnostics is None
    assert to_json(consensus)["diagnostics"] is None


def test_what_it_is_called():
    given, _ = panel(np.random.default_rng(1), n=6, things=120, copies=2)
    judged = preferences(given)
    assert repr(look(judged)).startswith("Diagnostics(6 annotators worth 4.")
