"""Results written for other tools: predictions, suggestions, pairs to train on, qrels."""

import json
from itertools import pairwise

import polars as pl
import pytest
from benchmarks.export_samples import SAMPLES

import crowdrank as cr
from crowdrank.errors import JudgmentError, ParameterError

FILES = {f"{sample.importer}/{sample.name}": sample for sample in SAMPLES}


@pytest.fixture(name="file")
def _file(tmp_path):
    def write(key):
        path = tmp_path / FILES[key].name
        path.write_bytes(FILES[key].data)
        return path

    return write


def _predicted(records):
    return {record["id"]: record["predictions"][0]["result"][0]["value"] for record in records}


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_label_studio_gets_the_better_side_of_each_pair(file):
    path = file("label-studio/pairs.json")
    consensus = cr.aggregate(cr.read_judgments(path), "bradley_terry")
    made = cr.export(consensus, "label-studio", path)
    assert _predicted(made.records)[1] == {"selected": "left"}
    one = made.records[0]
    assert one["data"] == {"prompt": "p1", "text1": "x", "text2": "y"}
    prediction = one["predictions"][0]
    assert prediction["model_version"] == "crowdrank bradley_terry"
    assert 0.5 < prediction["score"] < 1
    assert {"from_name": "pw", "to_name": "x", "type": "pairwise"}.items() <= prediction["result"][0].items()
    # the third task is undecided, and pairwise has no tie
    assert [record["id"] for record in made.records] == [1, 2]
    assert made.notes == ("1 tasks without a prediction: ties, or items that the result lacks",)


def test_exporting_never_changes_a_later_reading(file, tmp_path):
    path = file("label-studio/ratings.json")
    before = cr.read_judgments(path)
    made = cr.export(cr.aggregate(before, "mean_grade"), "label-studio", path)
    tasks = json.loads(path.read_text())
    for task, record in zip(tasks, made.records, strict=True):
        task["predictions"] += record["predictions"]
    again = tmp_path / "again.json"
    again.write_text(json.dumps(tasks))
    assert cr.read_judgments(again).frame().equals(before.frame())


def test_rankings_and_labels_go_back_to_label_studio(file):
    path = file("label-studio/ranks.json")
    made = cr.export(cr.aggregate(cr.read_judgments(path), "borda"), "label-studio", path)
    assert _predicted(made.records)[1]["ranker"][-1] in ("b", "c")
    assert sorted(_predicted(made.records)[1]["ranker"]) == ["a", "b", "c"]
    path = file("label-studio/several.json")
    made = cr.export(cr.aggregate(cr.read_judgments(path), "mean_grade"), "label-studio", path)
    assert _predicted(made.records)[1] == {"choices": ["a"]}


def test_argilla_suggestions_are_the_consensus_on_the_scale(file):
    path = file("argilla/flat.json")
    consensus = cr.aggregate(cr.read_judgments(path), "mean_grade")
    made = cr.export(consensus, "argilla", path)
    found = {record["id"]: record["suggestions"]["stars"]["value"] for record in made.records}
    expected = {row["item"]: round(row["score"]) for row in consensus.frame().iter_rows(named=True)}
    assert found == expected
    assert all(record["fields"] == {"prompt": "p"} for record in made.records)
    assert all(record["suggestions"]["stars"]["agent"] == "crowdrank" for record in made.records)


def test_argilla_gets_orders_and_classes_back(file):
    path = file("argilla/hub.jsonl")
    consensus = cr.aggregate(cr.read_judgments(path), "borda")
    made = cr.export(consensus, "argilla", path)
    assert {r["id"]: r["suggestions"]["order"]["value"] for r in made.records} == {
        q: consensus.order(q) for q in ("r1", "r2")
    }
    path = file("argilla/raw.json")
    made = cr.export(cr.aggregate(cr.read_judgments(path), "majority_vote"), "argilla", path)
    assert made.records[0]["suggestions"]["label"] == {
        "value": "yes",
        "score": pytest.approx(2 / 3),
        "agent": "crowdrank",
    }


def test_scores_that_are_no_grades_are_not_rounded_to_the_scale(file):
    path = file("argilla/flat.json")
    consensus = cr.aggregate(cr.read_judgments(path).as_preferences(), "bradley_terry")
    with pytest.raises(JudgmentError, match="not on the scale of the answers, 1 to 3"):
        cr.export(consensus, "argilla", path)


@pytest.fixture(scope="module", name="order")
def _order():
    votes = [(f"ann{number}", "q", a, b, "left") for number in range(10) for a, b in ("xy", "yz", "xz")]
    votes += [("ann", "q", "y", "x", "left"), ("bob", "p", "u", "v", "tie")]
    return cr.aggregate(cr.Preferences.from_rows(votes), "bradley_terry")


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_pairs_are_sure_and_have_the_largest_margin(order):
    made = cr.export(order, "pairs")
    assert [(r["prompt"], r["chosen"], r["rejected"]) for r in made.records] == [("q", "x", "z")]
    assert made.records[0]["confidence"] > 0.9
    assert made.records[0]["margin"] == pytest.approx(order.scores.max() - order.scores.min())
    assert any("1 pair left out, tied" in note for note in made.notes)
    more = cr.export(order, "pairs", pairs_per_query=9, min_confidence=0.0).records
    assert (more[0]["chosen"], more[0]["rejected"]) == ("x", "z")
    assert {(r["chosen"], r["rejected"]) for r in more} == {("x", "y"), ("y", "z"), ("x", "z")}
    assert all(a["margin"] >= b["margin"] for a, b in pairwise(more))


def test_pairs_with_texts_and_those_without(order):
    texts = {"item": ["x", "y"], "text": ["ex", "why"]}
    made = cr.export(order, "pairs", texts=texts, pairs_per_query=9, min_confidence=0.0)
    assert [(r["chosen"], r["rejected"]) for r in made.records] == [("ex", "why")]
    assert "2 pairs left out, whose items have no text" in made.notes


def test_pairs_come_back_as_the_preferences_they_are(order, tmp_path):
    from crowdrank.io.output import write_records

    made = cr.export(order, "pairs", pairs_per_query=9, min_confidence=0.0)
    write_records(made.records, "pairs", tmp_path / "dpo.jsonl")
    again = cr.read_judgments(tmp_path / "dpo.jsonl").frame()
    assert set(again.select("left", "right").rows()) == {("x", "y"), ("y", "z"), ("x", "z")}
    assert again["winner"].to_list() == ["left"] * 3


def test_a_method_without_uncertainty_needs_no_confidence():
    consensus = cr.aggregate(cr.Rankings.from_rows([("ann", "q", "x", 1), ("ann", "q", "y", 2)]), "median_rank")
    if consensus.uncertainty is None:
        with pytest.raises(ParameterError, match="bootstrap"):
            cr.export(consensus, "pairs")
    assert cr.export(consensus, "pairs", min_confidence=0.0).records[0]["chosen"] == "x"


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("queries", [("",), ("p", "q")])
def test_pairs_that_are_read_again_give_the_same_order(queries, tmp_path):
    rows = [
        {"item": f"{query}{item}", "grade": place + (a + place) % 2, "annotator": f"w{a}"}
        | ({"query": query} if query else {})
        for query in queries
        for place, item in enumerate("abcd")
        for a in range(9)
    ]
    consensus = cr.aggregate(cr.Grades.from_frame(pl.DataFrame(rows)), "mean_grade")
    made = cr.export(consensus, "pairs", pairs_per_query=99, min_confidence=0.5)
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in made.records))
    again = cr.aggregate(cr.read_judgments(path), "bradley_terry")
    for query in queries:
        name = query or None
        assert again.order(name) == consensus.order(name) == [f"{query}{item}" for item in "dcba"]
