"""A small file in the layout of each tool whose exports are read, with what a right reading of it holds."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field
from typing import Any

PEOPLE = ("ann", "bob", "cy")
TIMES = [f"2024-05-0{day}T10:00:00.000000Z" for day in range(1, 10)]


@dataclass(frozen=True)
class Sample:
    """A file and its right reading."""

    importer: str
    name: str
    data: bytes
    kind: str = "grade"
    n: int = 0
    """Judgments; rankings count as one each."""
    annotators: int = 0
    items: int = 0
    """Different (query, item)."""
    dropped: dict[str, int] = field(default_factory=dict)
    truth: int = 0
    nominal: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def lines(rows: list[dict[str, Any]]) -> bytes:
    """Objects, one per line."""
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def table(header: list[str], rows: list[list[Any]], separator: str = ",") -> bytes:
    """A text table with every cell in quotes."""
    quoted = [['"' + str(cell).replace('"', '""') + '"' for cell in row] for row in [header, *rows]]
    return "\n".join(separator.join(row) for row in quoted).encode() + b"\n"


def _task(number: int, name: str, kind: str, values: list[dict[str, Any]], data: dict[str, Any]) -> dict[str, Any]:
    """A Label Studio task with an annotation for each value."""
    return {
        "id": number,
        "data": data,
        "predictions": [{"result": []}],
        "annotations": [
            {
                "id": 10 * number + place,
                "completed_by": place + 1 if place else {"id": 1, "email": "ann@example.org"},
                "was_cancelled": False,
                "ground_truth": False,
                "created_at": TIMES[place],
                "lead_time": 3.5 + place,
                "result": [{"from_name": name, "to_name": "x", "type": kind, "value": value}],
            }
            for place, value in enumerate(values)
        ],
    }


def _label_studio() -> list[Sample]:
    pairs = [
        _task(
            n, "pw", "pairwise", [{"selected": side} for side in sides], {"prompt": f"p{n}", "text1": "x", "text2": "y"}
        )
        for n, sides in enumerate([("left", "right"), ("left", "left"), ("right", "left")], 1)
    ]
    pairs[0]["annotations"][1] |= {"was_cancelled": True, "result": []}
    pairs[1]["annotations"][1] |= {"ground_truth": True}
    ratings = [_task(n, "stars", "rating", [{"rating": n}, {"rating": 5 - n}], {"text": f"t{n}"}) for n in (1, 2, 3)]
    ranks = [
        _task(n, "order", "ranker", [{"ranker": ["a", "b", "c"]}, {"ranker": {"order": ["c", "a", "b"]}}], {})
        for n in (1, 2)
    ]
    several = [_task(n, "tags", "choices", [{"choices": ["a"]}, {"choices": ["a", "b"]}], {}) for n in (1, 2)]
    old = [
        {
            "id": 1,
            "data": {"text": "t"},
            "completions": _task(1, "c", "choices", [{"choices": ["no"]}], {})["annotations"],
        }
    ]
    short = [
        {
            "prompt": f"p{n}",
            "text1": "x",
            "text2": "y",
            "id": n,
            "pw": [{"selected": side}],
            "annotator": who,
            "annotation_id": n,
            "created_at": TIMES[n],
            "updated_at": TIMES[n],
            "lead_time": 2.5,
        }
        for n, side, who in ((1, "left", 1), (2, "right", 1), (2, "left", 2))
    ]
    csv = [
        [n, who, TIMES[n], n, 2.0, word, "t", TIMES[n]]
        for n, who, word in ((1, 1, "bad"), (1, 2, "good"), (2, 1, "good"))
    ]
    header = ["annotation_id", "annotator", "created_at", "id", "lead_time", "mood", "text", "updated_at"]
    one = "label-studio"
    return [
        Sample(one, "pairs.json", json.dumps(pairs, indent=1).encode(), "preference", 4, 2, 6, {"skipped": 1}, 1),
        Sample(one, "ratings.json", json.dumps(ratings).encode(), n=6, annotators=2, items=3),
        Sample(one, "ranks.json", json.dumps(ranks).encode(), "ranking", 4, 2, 6),
        Sample(one, "several.json", json.dumps(several).encode(), n=8, annotators=2, items=4),
        Sample(one, "old.json", json.dumps(old).encode(), n=1, annotators=1, items=1, nominal=True),
        Sample(one, "short.json", json.dumps(short).encode(), "preference", 3, 2, 4),
        Sample(one, "short.csv", table(header, csv), n=3, annotators=2, items=2, nominal=True),
    ]


def _argilla() -> list[Sample]:
    nested = [
        {
            "id": f"r{n}",
            "fields": {"prompt": "p"},
            "suggestions": {"stars": {"value": 1}},
            "_server_id": "s",
            "responses": {"stars": [{"value": n, "user_id": who} for who in PEOPLE]},
        }
        for n in (1, 2)
    ]
    flat = [
        {
            "id": f"r{n}",
            "prompt": "p",
            "stars.responses": [1, 2, 3],
            "stars.responses.users": list(PEOPLE),
            "stars.responses.status": ["submitted", "draft", "submitted"],
        }
        for n in (1, 2)
    ]
    columns = {name: [row[name] for row in flat] for name in flat[0]}
    hub = [
        {
            "prompt": "p",
            "external_id": f"r{n}",
            "order": {
                "user_id": ["ann", None],
                "status": ["submitted", "submitted"],
                "value": [{"rank": [1, 2, 2], "value": ["a", "b", "c"]}, {"rank": [2, 1, 3], "value": ["a", "b", "c"]}],
            },
        }
        for n in (1, 2)
    ]
    raw = [
        {
            "id": "r1",
            "fields": {"prompt": "p"},
            "suggestions": [],
            "responses": [
                {"user_id": who, "status": "submitted", "values": {"label": {"value": word}}}
                for who, word in zip(PEOPLE, ("yes", "no", "yes"), strict=True)
            ],
        }
    ]
    return [
        Sample("argilla", "nested.json", json.dumps(nested).encode(), n=6, annotators=3, items=2),
        Sample("argilla", "flat.json", json.dumps(flat).encode(), n=4, annotators=2, items=2, dropped={"draft": 2}),
        Sample(
            "argilla", "columns.json", json.dumps(columns).encode(), n=4, annotators=2, items=2, dropped={"draft": 2}
        ),
        Sample("argilla", "hub.jsonl", lines(hub), "ranking", 4, 2, 6),
        Sample("argilla", "raw.json", json.dumps(raw).encode(), n=3, annotators=3, items=1, nominal=True),
    ]


def _platforms() -> list[Sample]:
    members = io.BytesIO()
    with zipfile.ZipFile(members, "w") as archive:
        for who, label in (("ann", ["good"]), ("bob", []), ("cy", ["bad"])):
            texts = [{"id": n, "text": f"t{n}", "label": label, "Comments": []} for n in (1, 2)]
            archive.writestr(f"{who}.jsonl", lines(texts).decode())
    binary = [
        {
            "text": "t",
            "label": "SPAM",
            "_input_hash": n,
            "_task_hash": 100 + n,
            "answer": answer,
            "_annotator_id": who,
            "_timestamp": 1700000000,
        }
        for n, who, answer in ((1, "ann", "accept"), (1, "bob", "reject"), (2, "ann", "ignore"), (2, "bob", "accept"))
    ]
    head = ["HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "SubmitTime", "WorkTimeInSeconds", "Input.image_a"]
    head += ["Input.image_b", "Answer.choice", "Answer.comment", "Approve", "Reject"]
    turk = [
        [
            "h1",
            f"a{n}",
            who,
            status,
            "Thu Sep 22 21:40:22 PDT 2016",
            20 + n,
            "x.png",
            "z.png" if n == 3 else "y.png",
            choice,
            "",
        ]
        for n, (who, status, choice) in enumerate(
            [("A1", "Approved", "A"), ("A2", "Submitted", "B"), ("A3", "Rejected", "A"), ("A1", "Approved", "tie")]
        )
    ]
    toloka = [
        [f"img{n}.jpg", word, "cat" if n == 1 else "", f"t{n}", who, status, TIMES[0], TIMES[1]]
        for n, who, word, status in (
            (1, "w1", "cat", "APPROVED"),
            (1, "w2", "dog", "APPROVED"),
            (2, "w1", "dog", "REJECTED"),
            (2, "w2", "dog", "APPROVED"),
        )
    ]
    toloka_head = ["INPUT:image", "OUTPUT:result", "GOLDEN:result"]
    toloka_head += [f"ASSIGNMENT:{word}" for word in ("task_id", "worker_id", "status", "started", "submitted")]
    appen = [
        [n, "3/24/2016 17:57:02", "3/24/2016 17:56:23", tainted, who, grade, "3" if n == 1 else "", f"q{n}", f"u{n}"]
        for n, who, grade, tainted in (
            (1, "W1", 3, "false"),
            (1, "W2", 1, "false"),
            (2, "W1", 2, "true"),
            (2, "W2", 4, "false"),
        )
    ]
    appen_head = ["_unit_id", "_created_at", "_started_at", "_tainted", "_worker_id", "rel", "rel_gold", "query", "url"]
    names = ["RecordedDate", "Status", "Finished", "IPAddress", "RecipientEmail", "ResponseId", "Q1_1", "Q1_2", "Q1_3"]
    texts = [
        "Recorded",
        "Type",
        "Finished",
        "IP",
        "Mail",
        "Id",
        "How good? - Tea",
        "How good? - Coffee",
        "How good? - Milk",
    ]
    ids = [json.dumps({"ImportId": name}) for name in names]
    replies = [
        ["2024-01-01 10:00:00", "IP Address", "True", "203.0.113.9", "eve@example.net", "R_1", 4, 2, ""],
        ["2024-01-01 10:00:00", "Survey Preview", "True", "203.0.113.9", "", "R_2", 1, 2, 3],
        ["2024-01-01 10:00:00", "IP Address", "False", "203.0.113.9", "", "R_3", 1, 2, 3],
        ["2024-01-01 10:00:00", "IP Address", "True", "203.0.113.9", "", "R_4", 5, 5, 1],
    ]
    form = [["2024/05/01 10:00:00 AM GMT+2", f"p{n}@example.org", n, 5 - n, ""] for n in (1, 2, 3)]
    form_head = ["Timestamp", "Email Address", "How good? [Tea]", "How good? [Milk]", "Anything else?"]
    trials = [
        [n, kind, n, 900 * n, stimulus, response, who, 650]
        for who in PEOPLE
        for n, (kind, stimulus, response) in enumerate(
            [
                ("html-button-response", "hello", "0"),
                ("image-slider-response", "x.png", 40),
                ("image-slider-response", "y.png", 60),
            ]
        )
    ]
    trial_head = ["n", "trial_type", "trial_index", "time_elapsed", "stimulus", "response", "subject", "rt"]
    return [
        Sample(
            "doccano",
            "members.zip",
            members.getvalue(),
            n=4,
            annotators=2,
            items=2,
            dropped={"no label": 2},
            nominal=True,
        ),
        Sample("prodigy", "binary.jsonl", lines(binary), n=3, annotators=2, items=2, dropped={"ignore": 1}),
        Sample("mturk", "batch.csv", table(head, turk), "preference", 3, 2, 3, {"Rejected": 1}),
        Sample(
            "toloka",
            "pool.tsv",
            table(toloka_head, toloka, "\t"),
            n=3,
            annotators=2,
            items=2,
            dropped={"REJECTED": 1},
            truth=1,
            nominal=True,
        ),
        Sample(
            "appen", "full.csv", table(appen_head, appen), n=3, annotators=2, items=2, dropped={"tainted": 1}, truth=1
        ),
        Sample(
            "qualtrics",
            "matrix.csv",
            table(names, [texts, ids, *replies]),
            n=5,
            annotators=2,
            items=3,
            dropped={"Survey Preview": 1, "not finished": 1},
        ),
        Sample("google-forms", "grid.csv", table(form_head, form), n=6, annotators=3, items=2),
        Sample(
            "jspsych",
            "trials.csv",
            table(trial_head, trials),
            n=6,
            annotators=3,
            items=2,
            dropped={"html-button-response": 3},
        ),
    ]


def _language_models() -> list[Sample]:
    pair = [
        {
            "question_id": n,
            "turn": 1,
            "model_1": "x",
            "model_2": "y",
            "g1_winner": first,
            "g2_winner": second,
            "judge": ["gpt-4", "pair-v2"],
            "tstamp": 1717231244.5,
        }
        for n, first, second in ((1, "model_1", "model_2"), (2, "error", "tie"), (3, "model_2", "model_2"))
    ]
    single = [
        {"question_id": n, "turn": 1, "model": "x", "judge": ["gpt-4", "single"], "score": s}
        for n, s in ((1, 7), (2, -1), (3, 9.5))
    ]
    arena = [
        {
            "question_id": f"{n}",
            "model_a": "x",
            "model_b": "y",
            "winner": winner,
            "judge": who,
            "conversation_a": [],
            "turn": 1,
        }
        for n, winner, who in ((1, "model_a", "u1"), (2, "tie (bothbad)", "u2"), (3, "model_b", "u1"))
    ]
    hot = [[1, "x", "y", 1, 0, 0], [2, "x", "y", 0, 1, 0], [3, "x", "y", 0, 0, 1]]
    alpaca = [
        {"instruction": f"i{n}", "generator_1": "x", "generator_2": "y", "annotator": "gpt", "preference": share}
        for n, share in ((1, 1.25), (2, 2.0), (3, None), (4, 1.5))
    ]
    hard = [
        {
            "uid": f"u{n}",
            "judge": "gpt-4",
            "model": "y",
            "baseline": "x",
            "games": [{"score": first}, {"score": second}],
        }
        for n, first, second in ((1, "A>>B", "B>A"), (2, "A=B", None))
    ]
    bench = [
        {"id": n, "scores_chosen": c, "scores_rejected": r, "results": int(c > r)}
        for n, c, r in ((0, 1.5, 0.5), (1, 0.2, 0.2))
    ]
    chat = [
        {
            "prompt": f"p{n}",
            "chosen": [{"role": "user", "content": "p"}, {"role": "assistant", "content": f"good {n}"}],
            "rejected": [{"role": "user", "content": "p"}, {"role": "assistant", "content": f"bad {n}"}],
        }
        for n in (1, 2)
    ]
    harness = [
        {
            "doc_id": n,
            "doc": {},
            "filtered_resps": ["4"],
            "doc_hash": "h",
            "filter": "none",
            "metrics": ["acc"],
            "acc": float(n % 2),
        }
        for n in (1, 2, 3)
    ]
    log = {
        "version": 2,
        "status": "success",
        "eval": {"model": "m", "task": "t"},
        "samples": [{"id": n, "scores": {"match": {"value": value}}} for n, value in ((1, "C"), (2, "I"), (3, "P"))]
        + [{"id": 4, "error": {"message": "timeout"}}],
    }
    evals = [
        {"spec": {"completion_fns": ["gpt-4"], "eval_name": "e"}},
        {"type": "sampling", "sample_id": "s.1", "data": {}},
    ]
    evals += [
        {"type": "match", "sample_id": f"s.{n}", "data": {"correct": n == 1}, "created_at": "2023-01-01 10:00:00"}
        for n in (1, 2)
    ]
    foo = {
        "evalId": "e",
        "results": {
            "version": 3,
            "results": [
                {
                    "testIdx": n,
                    "promptIdx": 0,
                    "score": n / 2,
                    "provider": {"id": name},
                    "prompt": {"label": "p"},
                    "failureReason": 0,
                    "gradingResult": {"componentResults": [{"score": 1, "assertion": {"type": "contains"}}]},
                }
                for n in (0, 1)
                for name in ("x", "y")
            ],
        },
    }
    foo["results"]["results"][0]["failureReason"] = 2
    deep = {
        "testCases": [
            {
                "name": f"case {n}",
                "metricsData": [
                    {
                        "name": "Bias",
                        "score": score,
                        "threshold": 0.5,
                        "success": score is not None and score < 0.5,
                        "error": None if score is not None else "no answer",
                        "evaluationModel": "gpt-4",
                    }
                ],
            }
            for n, score in ((1, 0.1), (2, 0.9), (3, None))
        ],
    }
    fuse = [
        {
            "id": f"s{n}{name}",
            "trace_id": f"t{n}",
            "name": name,
            "value": n,
            "source": "ANNOTATION",
            "data_type": kind,
            "string_value": "warm" if kind == "CATEGORICAL" else None,
            "timestamp": "2026-01-01 10:00:00.000",
        }
        for n in (1, 2)
        for name, kind in (("help", "NUMERIC"), ("tone", "CATEGORICAL"))
    ]
    smith = [
        {
            "id": f"{run}{key}{user}", "created_at": TIMES[0], "run_id": run, "key": key, "score": score, "value": None,
            "comment": None, "feedback_source": {"type": "app", "user_id": user}, "session_id": "experiment",
        }
        for run, user, right in (("r1", "ann", 1), ("r1", "bob", None), ("r2", "ann", 0), ("r2", "bob", 1))
        for key, score in (("correctness", right), ("style", 5))
    ]  # fmt: skip
    phoenix_head = ["context.span_id", "annotation_name", "annotator_kind", "metadata", "result.label", "result.score"]
    phoenix = [
        [span, name, "LLM", "{}", label, score]
        for span, label, score in (("s1", "right", 1), ("s2", "wrong", 0))
        for name in ("Hallucination", "QA Correctness")
    ]
    hot_head = ["id", "model_a", "model_b", "winner_model_a", "winner_model_b", "winner_tie"]
    return [
        Sample("mt-bench", "pair.jsonl", lines(pair), "preference", 5, 1, 6, {"error": 1}),
        Sample("mt-bench", "single.jsonl", lines(single), n=2, annotators=1, items=2, dropped={"score -1": 1}),
        Sample("arena", "battles.jsonl", lines(arena), "preference", 3, 2, 6),
        Sample("arena", "hot.csv", table(hot_head, hot), "preference", 3, 0, 6),
        Sample(
            "alpaca-eval", "annotations.json", json.dumps(alpaca).encode(), "preference", 3, 1, 6, {"no preference": 1}
        ),
        Sample("arena-hard", "hard.jsonl", lines(hard), "preference", 3, 1, 4, {"no score": 1}),
        Sample("reward-bench", "m_outputs.jsonl", lines(bench), "preference", 2, 1, 4, truth=2),
        Sample("chosen-rejected", "chat.jsonl", lines(chat), "preference", 2, 0, 4),
        Sample("lm-eval", "samples_task_2024-05-01T10-00-00.1.jsonl", lines(harness), n=3, items=3),
        Sample(
            "inspect", "log.json", json.dumps(log, indent=1).encode(), n=3, annotators=1, items=3, dropped={"error": 1}
        ),
        Sample("openai-evals", "log.jsonl", lines(evals), n=2, items=2),
        Sample("promptfoo", "results.json", json.dumps(foo).encode(), n=3, items=3, dropped={"error": 1}),
        Sample("deepeval", "run.json", json.dumps(deep).encode(), n=2, annotators=1, items=2, dropped={"error": 1}),
        Sample("langfuse", "scores.jsonl", lines(fuse), n=2, items=2, options={"answer": "help"}),
        Sample(
            "langsmith",
            "feedback.json",
            json.dumps(smith).encode(),
            n=3,
            annotators=2,
            items=2,
            dropped={"without a value": 1},
            options={"where": {"key": "correctness"}},
        ),
        Sample(
            "phoenix",
            "annotations.csv",
            table(phoenix_head, phoenix),
            n=2,
            items=2,
            options={"where": {"annotation_name": "QA Correctness"}},
        ),
    ]


def _search_tools() -> list[Sample]:
    """Ratings of search teams."""
    gains = {"d1": {"gain": 3}, "d2": {"gain": 1}}
    ratings = {"queries": [{"template": "t", "placeholders": {"$query": "rocky"}, "relevant_documents": gains}]}
    quepid = b"query,docid,rating\nrocky,d1,3\nrocky,d2,0\nstar wars\n"
    return [
        Sample("quepid", "ratings.csv", quepid, n=2, items=2, dropped={"without a rated item": 1}),
        Sample("rre", "ratings.json", json.dumps(ratings).encode(), n=2, items=2),
        Sample("trec", "news.qrels", b"q1 0 d1 2\nq1 0 d2 0\n", n=2, items=2),
        Sample("letor", "train.txt", b"2 qid:1 1:0.5 2:7 #docid = d1\n0 qid:1 1:0.1 #docid = d2\n", n=2, items=2),
        Sample("trec", "bm25.run", b"q1 Q0 d1 1 7.5 bm25\nq2 Q0 d2 1 3.5 bm25\n", "ranking", 2, 1, 2),
    ]


SAMPLES = [*_label_studio(), *_argilla(), *_platforms(), *_language_models(), *_search_tools()]
