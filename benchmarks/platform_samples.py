"""Samples of what evaluation platforms export: traces, runs, experiments and events with their scores."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from typing import Any

import polars as pl

from .export_samples import TIMES, Sample, lines, table


def _zstd(rows: list[dict[str, Any]]) -> bytes:
    """One JSON document per line, packed with zstd as Inspect does."""
    memory = io.BytesIO()
    pl.DataFrame({"text": [json.dumps(row) for row in rows]}).lazy().sink_csv(
        memory, include_header=False, separator="\x01", quote_style="never", compression="zstd"
    )
    return memory.getvalue()


def eval_archive(documents: dict[str, Any], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An .eval log: a zip archive of JSON, with members packed by deflate, or by zstd, which is method 93."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, held in documents.items():
            data = json.dumps(held).encode() if method != 93 else _zstd([held])
            archive.writestr(name, data, zipfile.ZIP_STORED if method == 93 else method)
    data = bytearray(memory.getvalue())
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = data.find(mark) if method == 93 else -1
        while at >= 0:
            struct.pack_into("<H", data, at + place, method)
            at = data.find(mark, at + 4)
    return bytes(data)


def _inspect() -> list[Sample]:
    head = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "openai/m", "created": TIMES[0]}}
    summaries = [
        {"id": f"s{n}", "epoch": 1, "input": "?", "scores": {"match": {"value": value}}, "completed": True}
        for n, value in enumerate("CIC")
    ]
    failed = {"id": "s3", "epoch": 1, "input": "?", "scores": {}, "error": "no connection"}
    whole = {"header.json": head, "summaries.json": [*summaries, failed]}
    begun = {"_journal/start.json": head | {"status": "started"}, "_journal/summaries/1.json": summaries[:2]}
    old = {"header.json": head} | {f"samples/{one['id']}_epoch_1.json": one for one in summaries}
    return [
        Sample("inspect", "log.eval", eval_archive(whole), n=3, annotators=1, items=3, dropped={"error": 1}),
        Sample("inspect", "zstd.eval", eval_archive(whole, 93), n=3, annotators=1, items=3, dropped={"error": 1}),
        Sample("inspect", "begun.eval", eval_archive(begun), n=2, annotators=1, items=2),
        Sample("inspect", "old.eval", eval_archive(old), n=3, annotators=1, items=3),
    ]


def _opik() -> list[Sample]:
    def scores(n: int) -> list[dict[str, Any]]:
        by = {"source": "ui", "created_by": ("ann", "bob")[n % 2], "created_at": TIMES[n]}
        return [
            {"name": "Relevance", "value": n / 4, "reason": "so", **by},
            {"name": "Hallucination", "value": 0.0, **by},
        ]

    traces = [
        {"id": f"t{n}", "project_id": "p", "name": "chat", "start_time": TIMES[n], "input": {"q": "?"},
         "output": {"a": "!"}, "feedback_scores": scores(n) if n else None}
        for n in range(4)
    ]  # fmt: skip
    items = [
        {"id": f"i{n}", "dataset_item_id": f"d{n}", "trace_id": f"t{n}", "dataset_item_data": {"q": "?"},
         "evaluation_task_output": {"a": "!"}, "feedback_scores": [{"name": "Relevance", "value": n / 4}]}
        for n in range(3)
    ]  # fmt: skip
    experiment = {"experiment": {"id": "e", "name": "prompt-2", "dataset_name": "qa"}, "items": items}
    one = {"trace": traces[1], "spans": [], "downloaded_at": TIMES[0]}
    return [
        Sample(
            "opik", "traces.json", json.dumps(traces).encode(), n=3, annotators=2, items=3,
            dropped={"without a score": 1}, options={"answer": "Relevance"},
        ),
        Sample("opik", "experiment_prompt-2.json", json.dumps(experiment).encode(), n=3, items=3),
        Sample("opik", "trace_t1.json", json.dumps(one).encode(), n=1, annotators=1, items=1,
               options={"answer": "Relevance"}),
    ]  # fmt: skip


def _langsmith() -> list[Sample]:
    runs = [
        {"id": f"r{n}{who}", "run_type": "chain", "name": "app", "start_time": TIMES[n], "session_id": who,
         "reference_example_id": f"e{n}", "inputs": {"q": "?"}, "outputs": {"a": "!"},
         "feedback_stats": {"correctness": {"n": 1, "avg": right, "values": {}}} if right is not None else {}}
        for n, who, right in ((0, "gpt", 1.0), (0, "elm", 0.0), (1, "gpt", 1.0), (1, "elm", None))
    ]  # fmt: skip
    head = ["input.question", "outputs.answer", "reference.answer", "feedback.correctness", "execution_time", "error"]
    results = [[f"q{n}", "!", "!", right, 1.5, "", f"r{n}"] for n, right in enumerate((1, 0, 1))]
    return [
        Sample("langsmith", "runs.jsonl", lines(runs), n=3, items=3, dropped={"without a score": 1}),
        Sample("langsmith", "prompt-a.csv", table([*head, "id"], results), n=3, items=3),
    ]


def _experiments() -> list[Sample]:
    phoenix = [
        {"example_id": f"x{n}", "repetition_number": 1, "input": {"q": "?"}, "reference_output": {}, "output": "!",
         "error": None, "latency_ms": 12.0, "trace_id": f"t{n}", "annotations": [
             {"name": "helpful", "annotator_kind": "LLM", "label": None, "score": n / 2, "explanation": "so"},
             {"name": "concise", "annotator_kind": "CODE", "label": "yes", "score": 1.0, "explanation": None}]}
        for n in range(3)
    ]  # fmt: skip
    head = [
        "example_id",
        "repetition_number",
        "input",
        "output",
        "annotation_helpful_score",
    ]
    runs = [[f"x{n}", 1, "?", "!", n / 2] for n in range(3)]
    span = {"span_id": "s", "root_span_id": "s", "is_root": True, "created": TIMES[0], "expected": "!", "output": "!"}
    trust = [
        {**span, "id": f"{model}{n}", "experiment_id": "e", "dataset_record_id": f"d{n}", "input": f"q{n}",
         "metadata": {"model": model}, "scores": {"Factuality": n / 2, "Length": None}}
        for n in range(2) for model in ("elm", "oak")
    ]  # fmt: skip
    trust.append(trust[0] | {"id": "part", "is_root": False, "span_attributes": {"type": "score"}})
    flat = [[f"q{n}", "!", "!", n / 2, 1] for n in range(3)]
    weave = [
        {"id": f"c{n}{model}", "op_name": "weave:///team/p/op/Evaluation.predict_and_score:x1", "started_at": TIMES[n],
         "inputs": {"model": f"weave:///team/p/object/{model}:v0", "example": f"weave:///team/p/object/data:d/{n}"},
         "output": {"output": "!", "scores": {"judge": {"correct": bool(n), "reason": "so"}}, "model_latency": 0.4}}
        for n in range(2) for model in ("elm", "oak")
    ]  # fmt: skip
    trials = [{"predict_and_score_call_id": "c", "model_output": "!", "scores": {"correct": 1}}]
    results = {"rows": [
        {"row_digest": f"d{n}", "evaluations": [{"evaluation_call_id": who, "trials": trials} for who in ("e1", "e2")]}
        for n in range(2)
    ]}  # fmt: skip
    ragas_head = ["user_input", "retrieved_contexts", "response", "reference", "faithfulness", "context_recall"]
    ragas = [[f"q{n}", "['c']", "!", "!", n / 2, 1] for n in range(3)]
    older = [["q1", "!", "['c']", "!", 0.5], ["q2", "!", "['c']", "!", 1.0]]
    return [
        Sample("phoenix", "run-1.json", json.dumps(phoenix).encode(), n=3, items=3, options={"answer": "helpful"}),
        Sample("phoenix", "run-1.csv", table(head, runs), n=3, items=3),
        Sample(
            "braintrust", "events.json", json.dumps({"events": trust, "cursor": None}).encode(), n=4, items=4,
            dropped={"of a part of a trace": 1}, options={"answer": "Factuality"},
        ),
        Sample(
            "braintrust", "rows.csv", table(["input", "output", "expected", "scores.Edits", "scores.Exact"], flat),
            n=3, items=3, options={"answer": "Exact"},
        ),
        Sample("weave", "calls.jsonl", lines(weave), n=4, items=4),
        Sample("weave", "results.json", json.dumps(results).encode(), n=4, items=4),
        Sample("ragas", "oak.csv", table(ragas_head, ragas), n=3, items=3, options={"answer": "faithfulness"}),
        Sample(
            "ragas", "old.csv", table(["question", "answer", "contexts", "ground_truth", "answer_relevancy"], older),
            n=2, items=2,
        ),
    ]  # fmt: skip


def _metrics() -> list[Sample]:
    def statistic(name: str, value: float, **more: Any) -> dict[str, Any]:
        return {"name": {"name": name, "split": "test", **more}, "count": 1, "sum": value, "mean": value}

    helm = [
        {"instance_id": f"id{n}", "train_trial_index": 0, "stats": [
            statistic("quasi_exact_match", n % 2),
            statistic("quasi_exact_match", 0.0, perturbation={"name": "typos"}),
            statistic("num_prompt_tokens", 27)]}
        for n in range(3)
    ]  # fmt: skip

    def assessment(name: str, who: str, **held: Any) -> dict[str, Any]:
        source = {"source_type": "HUMAN" if who != "judge" else "LLM_JUDGE", "source_id": who}
        return {"assessment_name": name, "source": source, "create_time": TIMES[0], **held}

    traces = [
        {"info": {"trace_id": f"tr-{n}", "state": "OK", "assessments": [
            assessment("relevance", "judge", feedback={"value": "yes" if n else "no"}),
            assessment("relevance", "ann", feedback={"value": "yes"}),
            assessment("expected_answer", "ann", expectation={"value": "42"})]}, "data": {"spans": []}}
        for n in range(2)
    ]  # fmt: skip
    # as search_traces of MLflow 3.18 gives it
    told = {"state": "OK", "request": {"q": "one"}, "response": "two", "spans": [], "tags": {}}
    frame = [{**told, **{key: one["info"][key] for key in ("trace_id", "assessments")}} for one in traces]
    split = {
        "columns": [
            "inputs",
            "ground_truth",
            "outputs",
            "answer_similarity/v1/score",
            "answer_similarity/v1/justification",
        ],
        "data": [[f"q{n}", "!", "!", n + 3, "so"] for n in range(3)],
    }
    comet = [
        {
            "metricName": "accuracy",
            "metricValue": str(value),
            "experimentKey": key,
            "step": 1,
            "timestamp": 1700000000000,
        }
        for key, value in (("e1", 0.5), ("e2", 0.75))
    ]
    head = ["id", "model", "judge_passed", "human_passed", "response_tokens"]
    verdicts = [[n, "m", "pass" if n else "fail", "" if n > 1 else "fail", 90] for n in range(4)]
    ratings = [
        {"query": q, "ratings": [{"docId": f"d{n}", "rating": f"{n}.000"} for n in range(3)]} for q in ("x", "y")
    ]
    listed = {"id": "j", "name": "People", "status": "COMPLETED", "type": "IMPORT_JUDGMENT", "judgmentRatings": ratings}
    hits = {"took": 1, "hits": {"total": {"value": 1}, "hits": [{"_id": "j", "_source": listed}]}}
    return [
        Sample("helm", "per_instance_stats.json", json.dumps(helm, indent=1).encode(), n=3, items=3,
               dropped={"perturbed": 3}),
        Sample("mlflow", "traces.json", json.dumps(traces).encode(), n=4, annotators=2, items=2),
        Sample("mlflow", "frame.json", json.dumps(frame).encode(), n=4, annotators=2, items=2),
        Sample("mlflow", "eval_results_table.json", json.dumps(split).encode(), n=3, items=3),
        Sample("comet", "metrics.json", json.dumps(comet).encode(), n=2, items=2),
        Sample("truescore", "results.csv", table(head, verdicts), n=6, annotators=2, items=4),
        Sample("opensearch", "judgments.json", json.dumps(listed).encode(), n=6, items=6),
        Sample("opensearch", "search.json", json.dumps(hits).encode(), n=6, items=6),
    ]  # fmt: skip


PLATFORM_SAMPLES = [*_inspect(), *_opik(), *_langsmith(), *_experiments(), *_metrics()]
