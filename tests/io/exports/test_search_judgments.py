"""Judgments of search teams, out and in again: qrels, Quepid, RRE, runs and labelled features."""

import json

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.io.letor import read_letor, write_training
from crowdrank.io.output import write_records

VOTES = [
    (who, query, item, grade)
    for query, truth in (("star wars", {"d1": 2, "d2": 0, "d3": 1}), ("rocky", {"d1": 0, "d4": 2}))
    for item, grade in truth.items()
    for who in ("ann", "bob", "cy")
]


@pytest.fixture(scope="module")
def graded():
    return cr.aggregate(cr.Grades.from_rows([*VOTES, ("dee", "rocky", "d1", 2)]), "majority_vote")


def grades_of(judgments):
    """Grades by query and item."""
    return {(q, i): g for q, i, g in judgments.frame().select("query", "item", "grade").iter_rows()}


def test_quepid_and_rre_come_back(graded, tmp_path):
    expected = {(q, i): float(g) for _, q, i, g in VOTES}
    for to, name, known in (
        ("quepid", "ratings.csv", expected),
        ("rre", "ratings.json", {key: grade for key, grade in expected.items() if grade}),
    ):
        made = cr.export(graded, to)
        write_records(made.records, to, tmp_path / name)
        assert grades_of(cr.read_judgments(tmp_path / name)) == known
        assert cr.read_truth(tmp_path / name).form == "grade"
        assert cr.evaluate(graded, tmp_path / name, ["ndcg@3"])["value"].item() == pytest.approx(1)
    assert (tmp_path / "ratings.csv").read_text().startswith("query,docid,rating\nrocky,d4,2\n")
    assert "2 items of grade 0 left out" in cr.export(graded, "rre").notes[0]


def test_queries_are_written_in_words(graded):
    words = pl.DataFrame({"query": ["rocky", "star wars"], "text": ["rocky balboa", "wars in space"]})
    assert cr.export(graded, "quepid", queries=words).records[0]["query"] == "rocky balboa"
    with pytest.raises(JudgmentError, match=r"query 'star wars' has no text"):
        cr.export(graded, "quepid", queries=words.head(1))


def test_quepid_rows_without_rating_and_other_forms_of_rre(tmp_path):
    (tmp_path / "q.csv").write_text('query,docid,rating\n"star, wars",1,3\nrocky\n')
    assert grades_of(cr.read_judgments(tmp_path / "q.csv")) == {("star, wars", "1"): 3.0}
    group = {
        "name": "g", "relevant_documents": {"3": ["a"], "1": ["b"]},
        "queries": [{"template": "t", "placeholders": {"$query": w}} for w in ("fender", "Fender")],
    }  # fmt: skip
    (tmp_path / "r.json").write_text(json.dumps({"index": "i", "topics": [{"query_groups": [group]}]}))
    found = grades_of(cr.read_judgments(tmp_path / "r.json"))
    assert found == {(q, i): g for q in ("fender", "Fender") for i, g in (("a", 3.0), ("b", 1.0))}
    (tmp_path / "r.json").write_text(json.dumps({"queries": [{**group["queries"][0], "relevant_documents": {"a": 3}}]}))
    with pytest.raises(JudgmentError, match="write an item's gain as"):
        cr.read_judgments(tmp_path / "r.json")


def test_trec_files_are_judgments(graded, tmp_path):
    # white space cannot stand in TREC files
    plain = cr.aggregate(cr.Grades.from_rows([(w, q.replace(" ", "-"), i, g) for w, q, i, g in VOTES]), "majority_vote")
    write_records(cr.export(plain, "qrels").records, "qrels", tmp_path / "a.qrels")
    assert grades_of(cr.read_judgments(tmp_path / "a.qrels"))["rocky", "d4"] == 2
    write_records(cr.export(plain, "run").records, "run", tmp_path / "a.run")
    ranked = cr.read_judgments(tmp_path / "a.run")
    assert (ranked.kind, ranked.n_annotators) == ("ranking", 1)
    assert cr.aggregate(ranked, "borda").order("star-wars") == ["d1", "d3", "d2"]
    assert cr.evaluate(tmp_path / "a.run", tmp_path / "a.qrels", ["ndcg@3"])["value"].item() == 1


def test_labels_of_letor_files_are_grades_and_a_truth(tmp_path):
    (tmp_path / "test.txt").write_text(
        "2 qid:7 1:0.5 #docid = d1\n0 qid:7 1:0.9 #docid = d2\n1 qid:8 1:0 #docid = d1\n"
    )
    grades = cr.read_judgments(tmp_path / "test.txt")
    assert grades_of(grades) == {("7", "d1"): 2.0, ("7", "d2"): 0.0, ("8", "d1"): 1.0}
    assert grades.n_annotators == 0
    run = {"query": ["7", "7", "8"], "item": ["d1", "d2", "d1"], "score": [1, 2, 3]}
    assert cr.evaluate(run, tmp_path / "test.txt", ["precision@1"])["value"].item() == 0.5
    (tmp_path / "train.txt").write_text("2 1:0.5\n0 1:0.9\n1 1:0\n")
    (tmp_path / "train.txt.query").write_text("2\n1\n")
    assert grades_of(cr.read_judgments(tmp_path / "train.txt")) == {("1", "1"): 2.0, ("1", "2"): 0.0, ("2", "1"): 1.0}


def test_expected_gains_lie_between_grades_and_keep_their_confidence(graded):
    made = cr.export(graded, "qrels", grades="expected")
    grade = {(row["query"], row["item"]): row["grade"] for row in made.records}
    # two levels of 2 and 0 in four grades: a quarter of the gain of 2, but for the method's prior
    assert 0 < grade["rocky", "d1"] < 2
    assert grade["star wars", "d1"] > grade["star wars", "d3"] > grade["star wars", "d2"]
    code = graded.items.code("d1", "rocky")
    gain = graded.probabilities[code] @ np.array([0.0, 1.0, 3.0])
    assert grade["rocky", "d1"] == pytest.approx(np.log2(1 + gain), abs=1e-6)
    assert made.confidence["confidence"].is_between(0, 1).all()
    with pytest.raises(ParameterError, match="no probabilities"):
        cr.export(cr.aggregate(cr.Grades.from_rows(VOTES), "mean_grade"), "qrels", grades="expected")


def test_labelled_features_have_queries_and_weights(graded, tmp_path):
    rows = [("rocky", "d1"), ("rocky", "d4"), ("star wars", "d1"), ("star wars", "d2"), ("new", "d9")]
    features = pl.DataFrame(
        {"query": [q.replace(" ", "-") for q, _ in rows], "item": [i for _, i in rows], "x": [1.0, 2, 3, 4, 5]}
    )
    plain = cr.aggregate(cr.Grades.from_rows([(w, q.replace(" ", "-"), i, g) for w, q, i, g in VOTES]), "majority_vote")
    made = cr.export(plain, "letor", features=features)
    assert made.notes == ("1 item without features left out", "1 item without a grade left out")
    names = write_training(made.features, made.weight, tmp_path / "train.txt")
    assert [name.rsplit("/", 1)[-1] for name in names] == ["train.txt", "train.txt.query", "train.txt.weight"]
    back = read_letor(tmp_path / "train.txt")
    assert back.grade.tolist() == [0, 2, 2, 0]
    assert back.matrix[:, 0].tolist() == [1, 2, 3, 4]
    assert (tmp_path / "train.txt.query").read_text() == "2\n2\n"
    assert len((tmp_path / "train.txt.weight").read_text().split()) == 4
    with pytest.raises(ParameterError, match="LETOR lines hold features"):
        cr.export(graded, "letor")
