"""The ranking is written before the annotators are looked at, and outlives whatever goes wrong there."""

import json
from pathlib import Path

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.io import read_consensus
from crowdrank.review import coded_judgments, findings

OUTPUTS = ("r.csv", "r.tsv", "r.json", "r.jsonl", "r.parquet")


@pytest.fixture
def many(tmp_path):
    """2,000 grades of 200 items by 30 annotators, in four levels."""
    rng = np.random.default_rng(3)
    item, who = np.divmod(rng.choice(200 * 30, 2000, replace=False), 30)
    grade = np.clip(item % 4 + rng.integers(-1, 2, 2000), 0, 3)
    path = tmp_path / "many.csv"
    lines = [f"i{a},w{b},{c}" for a, b, c in zip(item, who, grade, strict=True)]
    path.write_text("\n".join(["item,annotator,grade", *lines]) + "\n")
    return path


@pytest.fixture
def broken(monkeypatch):
    """Annotators who cannot be looked at."""

    def fail(*_):
        raise ValueError("shape mismatch")

    monkeypatch.setattr(findings, "diagnose", fail)


@pytest.mark.parametrize("method", ["dawid_skene", "mace", "majority_vote", "latent_score"])
@pytest.mark.parametrize("extra", ["", "--nominal "])
def test_a_sample_for_the_diagnosis_leaves_the_result_alone(run, many, monkeypatch, method, extra):
    if extra and method == "latent_score":
        pytest.skip("latent_score takes no nominal grades")
    whole = run(f"aggregate {many} -m {method} {extra}-o whole.json")
    monkeypatch.setattr(coded_judgments, "MOST_JUDGMENTS", 300)
    part = run(f"aggregate {many} -m {method} {extra}-o part.json")
    assert (whole.code, part.code) == (0, 0), part.err
    assert "bug" not in part.err
    one, two = json.loads(Path("whole.json").read_text()), json.loads(Path("part.json").read_text())
    assert one["items"] == two["items"]
    assert one["quality"] == two["quality"]
    assert two["diagnostics"] is not None


@pytest.mark.parametrize("nominal", [False, True])
def test_known_grades_of_a_sample(many, tmp_path, monkeypatch, nominal):
    truth = tmp_path / "truth.csv"
    truth.write_text("item,grade\n" + "".join(f"i{item},{item % 4}\n" for item in range(200)))
    monkeypatch.setattr(coded_judgments, "MOST_JUDGMENTS", 1000)
    grades = cr.read_judgments(many, nominal=nominal)
    found = cr.diagnose(grades, cr.aggregate(grades, "dawid_skene"), truth=str(truth))
    assert found.dependence().height
    assert "looked at on" in found.notes[0]


def test_of_two_items_with_many_answers_both_are_looked_at(monkeypatch):
    monkeypatch.setattr(coded_judgments, "MOST_JUDGMENTS", 10)
    rows = [(f"w{number}", "q", item, (number + place) % 3) for number in range(200) for place, item in enumerate("xy")]
    grades = cr.Grades.from_rows(rows)
    assert len(coded_judgments.code_judgments(grades).first) == 2
    assert cr.diagnose(grades, cr.aggregate(grades, "majority_vote")).notes


@pytest.mark.parametrize("out", OUTPUTS)
def test_a_failing_diagnosis_costs_neither_file_nor_exit_code(run, many, broken, out):
    done = run(f"aggregate {many} -m majority_vote -o {out}")
    assert done.code == 0
    assert len(read_consensus(out).items) == 200
    failed = [line for line in done.lines if "shape mismatch" in line]
    assert len(failed) == 1
    assert failed[0].startswith("crowdrank: the annotators were not checked, but the result is not affected: ")
    assert "CROWDRANK_TRACEBACK=1" in failed[0]
    assert f"wrote {out}" in done.lines


@pytest.mark.parametrize("format", ["csv", "json", "jsonl"])
def test_standard_output_gets_the_result_whatever_the_diagnosis(run, many, broken, format):
    done = run(f"aggregate {many} -m majority_vote --format {format}")
    assert done.code == 0
    rows = done.out.splitlines() if format != "json" else json.loads(done.out)["items"]
    assert len(rows) == 200 + (format == "csv")


@pytest.mark.parametrize("asked_for", ["--annotators who.csv", "--report r.html", "--fail-if 'quality<0.6'"])
def test_what_was_asked_for_and_failed_is_an_error_beside_a_written_result(run, many, broken, asked_for):
    done = run(f"aggregate {many} -m majority_vote -o r.json {asked_for}")
    assert done.code == 1
    assert "shape mismatch; this is a bug" in done.lines[-1]
    assert len(read_consensus("r.json").items) == 200


def test_the_file_is_there_before_the_annotators_are_looked_at(run, many, monkeypatch):
    seen = []
    before = findings.diagnose

    def look(*given):
        seen.append(json.loads(Path("r.json").read_text()))
        return before(*given)

    monkeypatch.setattr(findings, "diagnose", look)
    assert run(f"aggregate {many} -m majority_vote -o r.json -q").code == 0
    after = json.loads(Path("r.json").read_text())
    assert seen[0]["quality"] is None
    assert "findings" not in seen[0]
    assert seen[0]["items"] == after["items"]
    assert after["quality"] is not None
    assert after["findings"]
