"""Files of other tools on the command line: what is said of them, and stops whose advice works."""

import json
import re
import shlex

import pytest
from benchmarks.export_samples import SAMPLES, lines, table

BY_NAME = {f"{sample.importer}/{sample.name}": sample for sample in SAMPLES}


@pytest.fixture(name="stops")
def _stops(tmp_path):
    """Files that cannot be read without a word of the user."""
    value = {"ranker": {"good": ["a"], "bad": ["b"]}}
    result = [{"from_name": "r", "type": "ranker", "value": value}]
    harness = [
        json.loads(line) for line in BY_NAME["lm-eval/samples_task_2024-05-01T10-00-00.1.jsonl"].data.splitlines()
    ]
    hard = [json.loads(line) for line in BY_NAME["arena-hard/hard.jsonl"].data.splitlines()]
    pairs = [["h1", "a1", "W1", "x", "y", 1], ["h2", "a2", "W2", "x", "z", 2]]
    files = {
        "buckets.json": json.dumps([{"id": 1, "annotations": [{"completed_by": 1, "result": result}]}]).encode(),
        "filters.jsonl": lines([row | {"filter": name} for row in harness for name in ("strict", "flexible")]),
        "metrics.jsonl": lines([row | {"metrics": ["odd"], "odd": 1.5} for row in harness]),
        "old.jsonl": lines([{name: cell for name, cell in row.items() if name != "baseline"} for row in hard]),
        "scores.jsonl": BY_NAME["langfuse/scores.jsonl"].data,
        "pairs.csv": table(["HITId", "AssignmentId", "WorkerId", "Input.text1", "Input.text2", "Answer.best"], pairs),
        "answers.csv": table(["HITId", "AssignmentId", "WorkerId", "Answer.a", "Answer.b"], [["h", "a", "W", 1, 2]]),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return files


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize(
    "name", ["buckets.json", "filters.jsonl", "metrics.jsonl", "old.jsonl", "scores.jsonl", "pairs.csv", "answers.csv"]
)
def test_the_advice_of_a_stop_makes_the_file_readable(run, stops, name):
    stopped = run("aggregate", name)
    assert stopped.code == 2
    assert len(stopped.lines) == 1
    advice = re.search(r"(--(?:small|large)-is-good|--[a-z-]+ (?:'[^']*'|[^\s;:)]+))", stopped.err)
    assert advice, stopped.err
    read = run("inspect", name, *shlex.split(advice[1]))
    assert read.code == 0, (advice[1], read.err)


def test_what_is_left_out_is_said_also_to_those_who_want_silence(run, tmp_path):
    sample = BY_NAME["prodigy/binary.jsonl"]
    (tmp_path / sample.name).write_bytes(sample.data)
    assert "1 ignore left out" in run("aggregate", sample.name, "-q").err
    sample = BY_NAME["label-studio/ratings.json"]
    (tmp_path / sample.name).write_bytes(sample.data)
    assert "Label Studio" not in run("aggregate", sample.name, "-q").err
    said = run("aggregate", sample.name).err
    assert "a Label Studio export (annotations[].result; --from table to read it plainly)" in said
    assert "annotator = completed_by, item = id, grade = value.rating, time = created_at, duration = lead_time" in said


def test_the_truth_is_read_from_the_votes_themselves(run, tmp_path):
    sample = BY_NAME["toloka/pool.tsv"]
    (tmp_path / sample.name).write_bytes(sample.data.replace(b'"img1.jpg"\t"dog"', b'"img1.jpg"\t"cat"'))
    ran = run("compare", sample.name, "--truth", sample.name, "--methods", "majority_vote")
    assert ran.code == 0, ran.err
    assert "accuracy" in ran.out
    rating = BY_NAME["label-studio/ratings.json"]
    (tmp_path / rating.name).write_bytes(rating.data)
    refused = run("compare", rating.name, "--truth", rating.name)
    assert refused.code == 2
    assert "without gold answers" in refused.err


def test_an_export_comes_through_standard_input(run):
    sample = BY_NAME["arena/battles.jsonl"]
    assert run("aggregate", "-", "--across-queries", "-q", "-m", "bradley_terry", stdin=sample.data).code == 0
    samples = BY_NAME["lm-eval/samples_task_2024-05-01T10-00-00.1.jsonl"]
    assert "the folder of the samples names the model" in run("aggregate", "-", stdin=samples.data).err


def test_unknown_tools_are_refused_with_the_nearest(run, tmp_path):
    (tmp_path / "v.csv").write_text("item,grade\nx,1\n")
    ran = run("aggregate", "v.csv", "--from", "label-studo")
    assert ran.code == 2
    assert "did you mean 'label-studio'?" in ran.err
