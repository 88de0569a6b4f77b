"""What evaluation platforms export is asked about where it is not clear, and never pooled over metrics."""

import json
import re
import shlex

import pytest
from benchmarks.export_samples import lines
from benchmarks.more_samples import ALL_SAMPLES

import crowdrank as cr
from crowdrank.cli import main
from crowdrank.errors import JudgmentError
from crowdrank.io.notices import collect_notices

BY_NAME = {f"{sample.importer}/{sample.name}": sample for sample in ALL_SAMPLES}

# file -> what is ranked, best first, where it tells more than one thing
ORDERS = {
    "inspect/zstd.eval": {("sums: s0", "openai/m"): 1.0, ("sums: s1", "openai/m"): 0.0},
    "opik/experiment_prompt-2.json": {("d0", "prompt-2"): 0.0, ("d2", "prompt-2"): 0.5},
    "langsmith/runs.jsonl": {("e0", "gpt"): 1.0, ("e0", "elm"): 0.0},
    "langsmith/prompt-a.csv": {("q0", "prompt-a"): 1.0, ("q1", "prompt-a"): 0.0},
    "phoenix/run-1.json": {("x2", "run-1"): 1.0, ("x0", "run-1"): 0.0},
    "braintrust/events.json": {("d1", "oak"): 0.5, ("d0", "elm"): 0.0},
    "weave/results.json": {("d0", "e1"): 1.0},
    "ragas/oak.csv": {("q2", "oak"): 1.0},
    "helm/per_instance_stats.json": {
        ("mmlu:subject=law: id1", "org_oak"): 1.0,
        ("mmlu:subject=law: id2", "org_oak"): 0.0,
    },
    "mlflow/eval_results_table.json": {("q2", "eval_results_table"): 5.0},
    "truescore/results.csv": {("0", "m"): "fail", ("3", "m"): "pass"},
    "opensearch/search.json": {("x", "d2"): 2.0, ("y", "d0"): 0.0},
}


@pytest.mark.parametrize("name", ORDERS)
def test_each_score_is_of_its_item_and_query(tmp_path, name):
    sample = BY_NAME[name]
    folder = tmp_path / "mmlu:subject=law,model=org_oak"
    folder.mkdir()
    path = folder / sample.name
    path.write_bytes(sample.data)
    frame = cr.read_judgments(path, **sample.options).frame()
    held = {(query, item): grade for query, item, grade in frame.select("query", "item", "grade").rows()}
    assert ORDERS[name].items() <= held.items()


@pytest.mark.parametrize("name", [name for name, one in BY_NAME.items() if {"answer", "where"} & one.options.keys()])
def test_metrics_are_never_pooled_and_the_hint_is_right(tmp_path, name, capsys):
    sample = BY_NAME[name]
    path = tmp_path / sample.name
    path.write_bytes(sample.data)
    assert main(["aggregate", str(path)]) == 2
    hint = re.search(r"choose one with (--\S+ .+)$", capsys.readouterr().err.strip())
    asked = hint and main(["aggregate", str(path), *shlex.split(hint[1])])
    said = capsys.readouterr().err
    # the first metric is read, or is one of something bad, whose direction is asked
    assert asked == 0 or "--small-is-good" in said


@pytest.mark.parametrize(("metric", "asks"), [("toxicity", True), ("error_rate", True), ("helpfulness", False)])
@pytest.mark.parametrize("tool", ["opik", "braintrust", "weave", "mlflow", "ragas", "phoenix"])
def test_something_bad_is_asked_about(tmp_path, tool, metric, asks):
    records = {
        "opik": {"id": "t", "project_id": "p", "feedback_scores": [{"name": metric, "value": 0.5}]},
        "braintrust": {"id": "t", "root_span_id": "t", "input": "q", "scores": {metric: 0.5}},
        "weave": {"op_name": "x", "inputs": {"model": "m", "example": "e"}, "output": {"scores": {metric: 0.5}}},
        "mlflow": {"trace_id": "t", "assessments": [{"assessment_name": metric, "feedback": {"value": 0.5}}]},
        "ragas": {"user_input": "q", "response": "!", "reference": "!", metric: 0.5},
        "phoenix": {"example_id": "q", "annotations": [{"name": metric, "annotator_kind": "LLM", "score": 0.5}]},
    }
    path = tmp_path / "scores.jsonl"
    path.write_bytes(lines([records[tool]]))
    assert cr.read_judgments(path, small_is_good=True).frame()["grade"].to_list() == [-0.5]
    if not asks:
        assert cr.read_judgments(path).frame()["grade"].to_list() == [0.5]
        return
    with pytest.raises(JudgmentError, match="small_is_good"):
        cr.read_judgments(path)


def test_metrics_of_helm_and_comet_that_are_not_known_are_asked_about(tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps([{"metricName": "art", "metricValue": "1", "experimentKey": "e", "step": 1}]))
    with pytest.raises(JudgmentError, match="does not say whether large values of 'art' are good"):
        cr.read_judgments(path)


def _event(page: str, item: str, place: int, action: str) -> dict:
    held = {"object": {"object_id": item}, "position": {"ordinal": place}}
    return {"action_name": action, "query_id": page, "user_query": "laptop", "event_attributes": held, "client_id": "c"}


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_events_of_ubi_are_a_log_of_clicks(tmp_path):
    shown = [_event(f"p{page}", item, place, "impression") for page in range(20)
             for place, item in enumerate("xyz" if page % 2 else "yxz")]  # fmt: skip
    clicks = [_event(f"p{page}", "x", page % 2 == 0, "click") for page in range(0, 20, 2)]
    path = tmp_path / "ubi_events.ndjson"
    path.write_bytes(lines([*shown, *clicks, _event("p0", "x", 0, "add_to_cart")]))
    with collect_notices() as heard:
        log = cr.read_clicks(path)
    assert (len(log), int(log.clicked.sum()), log.n_positions) == (60, 10, 3)
    assert "60 items shown on 20 pages" in heard[0]
    assert "1 event of other kinds" in heard[0]
    assert cr.fit_clicks(path).frame().sort("relevance")["item"].to_list()[-1] == "x"
    with pytest.raises(JudgmentError, match="fit_clicks"):
        cr.read_judgments(path)
    path.write_bytes(lines(clicks))
    with pytest.raises(JudgmentError, match="log impressions"):
        cr.read_clicks(path)


def test_a_report_of_truescore_holds_no_judgments(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"corrected": {"point": 0.7}, "naive": {"point": 0.8}, "n_gold": 60}))
    with pytest.raises(JudgmentError, match="no judgments"):
        cr.read_judgments(path)
