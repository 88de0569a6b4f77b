"""Files that the packages themselves wrote, offline and cut to a few records, are read as they are.

Opik 2.2.122 (its export's own functions), Ragas 0.4.3 (``evaluate`` with metrics that need no model), Braintrust 0.47.0
(``Eval(..., no_send_logs=True)``) and Weave 0.51.59 (an evaluation on its SQLite server). Comet's are as the package
documents ``APIExperiment.get_metrics``, which asks its server.
"""

import json

import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError
from crowdrank.io.notices import collect_notices

TIME = "2026-01-01 00:00:00+00:00"


def _opik_score(value, **by_author):
    own = {
        who: {"value": one, "reason": "so", "source": "ui", "last_updated_at": TIME} for who, one in by_author.items()
    }
    return {"name": "Relevance", "category_name": None, "value": value, "reason": None, "source": "ui",
            "created_at": TIME, "last_updated_at": TIME, "created_by": "ann", "last_updated_by": "bob",
            "value_by_author": own or None}  # fmt: skip


def _opik(number, scores):
    trace = {"id": f"t{number}", "project_id": "p", "name": "chat", "start_time": TIME, "input": {"q": "?"},
             "output": {"a": "!"}, "created_by": "app", "feedback_scores": scores}  # fmt: skip
    return {"trace": trace, "spans": [], "attachments": [], "downloaded_at": TIME, "project_name": "p"}


RAGAS = """,user_input,retrieved_contexts,reference_contexts,response,reference,exact_match
0,q0,"['a', 'b']","['a', 'c']",five,four,0.0
1,q1,"['a', 'b']","['a', 'c']",four,four,1.0
"""
BRAINTRUST = [
    {"input": f"q{number}", "output": said, "scores": scores, "classifications": None, "expected": "four",
     "metadata": {}, "tags": None, "error": error, "exc_info": error, "origin": None}
    for number, said, scores, error in (
        (0, "four", {"exact": 1.0}, None), (1, "five", {"exact": 0.0}, None), (2, None, {}, "no connection"),
    )
]  # fmt: skip
WEAVE = [
    {"id": f"{model}{row}", "project_id": "team/p", "op_name": "weave:///team/p/op/Evaluation.predict_and_score:nLHk",
     "trace_id": "01a1", "parent_id": "01a2", "started_at": "2026-11-18T15:15:38.123391Z", "attributes": {},
     "inputs": {"self": "weave:///team/p/object/ev:ReNu", "model": f"weave:///team/p/object/{model}:AwNf",
                "example": f"weave:///team/p/object/Dataset:OYxM/attr/rows/id/{row}"},
     "output": {"output": "four", "scores": {"exact": {"correct": row == "M7"}}, "model_latency": 0.05},
     "exception": None, "summary": {}, "wb_user_id": None}
    for model in ("oak", "elm") for row in ("M7", "Jb")
]  # fmt: skip
WEAVE.append({**WEAVE[0], "op_name": "weave:///team/p/op/Echo.predict:P8rB", "inputs": {}, "output": "four"})
COMET = [
    {"metricName": "accuracy", "metricValue": value, "timestamp": 1757001868000, "step": step, "epoch": 0,
     "runContext": "val", "offset": -227196944980285894 + step}
    for step, value in ((12, "0.876"), (13, "0.9"))
]  # fmt: skip

# name -> contents, and query, item, annotator and grade of each row that is read
WRITTEN = {
    "trace_t1.json": (json.dumps(_opik(1, [_opik_score(0.625, ann=0.25, bob=1.0)])),
                      [(None, "t1", "ann", 0.25), (None, "t1", "bob", 1.0)]),
    "trace_t2.json": (json.dumps(_opik(2, [_opik_score(0.5)])), [(None, "t2", "ann", 0.5)]),
    "oak.csv": (RAGAS, [("q0", "oak", None, 0.0), ("q1", "oak", None, 1.0)]),
    "elm.json": ('{"user_input":{"0":"q0","1":"q1"},"response":{"0":"five","1":"four"},'
                 '"reference":{"0":"four","1":"four"},"exact_match":{"0":0.0,"1":1.0}}',
                 [("q0", "elm", None, 0.0), ("q1", "elm", None, 1.0)]),
    "eval.json": (json.dumps(BRAINTRUST), [("q0", "eval", None, 1.0), ("q1", "eval", None, 0.0)]),
    "calls.jsonl": ("".join(json.dumps(one) + "\n" for one in WEAVE),
                    [(one["inputs"]["example"], one["inputs"]["model"], None, float(one["id"][-2:] == "M7"))
                     for one in WEAVE[:4]]),
    "yew.json": (json.dumps(COMET), [("12", "yew", None, 0.876), ("13", "yew", None, 0.9)]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_what_packages_write_is_read_as_it_is(tmp_path, name):
    text, expected = WRITTEN[name]
    path = tmp_path / name
    path.write_text(text)
    with collect_notices():
        frame = cr.read_judgments(path).frame()
    columns = [frame[one].to_list() if one in frame.columns else [None] * len(frame) for one in
               ("query", "item", "annotator", "grade")]  # fmt: skip
    assert list(zip(*columns, strict=True)) == expected


@pytest.mark.parametrize(
    "head", ["trace_id,trace_project_id,trace_feedback_scores", "experiment_id,item_feedback_scores"]
)
def test_an_export_of_opik_as_csv_is_refused(tmp_path, head):
    path = tmp_path / "opik.csv"
    path.write_text(f"{head}\n" + ",".join("\"[{'name': 'Relevance'}]\"" for _ in head.split(",")) + "\n")
    with pytest.raises(JudgmentError, match="export it as JSON"):
        cr.read_judgments(path)
