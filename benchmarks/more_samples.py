"""Samples of surveys, labels and ballots beside those of the tools in ``export_samples``, and all together."""

from __future__ import annotations

from typing import Any

from .export_samples import SAMPLES, Sample, lines, table
from .platform_samples import PLATFORM_SAMPLES


def _surveymonkey() -> list[Sample]:
    head = [
        "Respondent ID",
        "Collector ID",
        "Start Date",
        "End Date",
        "IP Address",
        "How good is each?",
        "",
        "",
        "Why?",
    ]
    rows = ["", "", "", "", "", "Logo A", "Logo B", "Logo C", "Open-Ended Response"]
    people = [[f"11{n}", "9", "11/02/2025 09:01:12 AM", "11/02/2025 09:03:40 AM", "192.0.2.1"] for n in range(3)]
    grades = [["5", "3", "1"], ["4", "4", ""], ["5", "2", "2"]]
    body = [[*who, *given, "so"] for who, given in zip(people, grades, strict=True)]
    return [Sample("surveymonkey", "matrix.csv", table(head, [rows, *body]), n=8, annotators=3, items=3)]


def _limesurvey() -> list[Sample]:
    start = ["id", "submitdate", "lastpage", "startlanguage"]
    head = [*start, "rate[SQ001]", "rate[SQ002]", "rate[other]", "comment"]
    sent = [
        [n, f"2025-03-0{n} 10:00:00", 2, "en", grade, 6 - grade, "", "fine"] for n, grade in ((1, 5), (2, 4), (3, 2))
    ]
    begun = [4, "", 1, "en", 5, "", "", ""]
    full = ["Response ID", "Date submitted", "Last page", "Q [Rank 1]", "Q [Rank 2]", "Q [Rank 3]"]
    orders = [[n, "2025-03-01 10:00:00", 2, *order] for n, order in ((1, "xyz"), (2, "yxz"), (3, "xzy"))]
    return [
        Sample(
            "limesurvey", "codes.csv", table(head, [*sent, begun]), n=6, annotators=3, items=2,
            dropped={"not submitted": 1},
        ),
        Sample("limesurvey", "places.csv", table(full, orders, ";"), kind="ranking", n=3, annotators=3, items=3),
    ]  # fmt: skip


def _label(who: str, answer: str | None, gold: bool = False) -> dict[str, Any]:
    """A label of a Labelbox data row."""
    given = [{"name": "quality", "value": "quality", "radio_answer": {"name": answer, "value": answer}}]
    return {
        "id": f"l-{who}",
        "label_details": {"created_at": "2025-01-01T10:00:00Z", "created_by": who, "is_benchmark_reference": gold},
        "performance_details": {"seconds_to_create": 12, "skipped": answer is None},
        "annotations": {"objects": [], "classifications": [] if answer is None else given},
    }


def _labelbox() -> list[Sample]:
    labels = {
        "a.png": [_label("ann@example.org", "4"), _label("bob@example.org", "5")],
        "b.png": [_label("ann@example.org", "2"), _label("bob@example.org", None)],
        "c.png": [_label("ann@example.org", "1"), _label("boss@example.org", "2", gold=True)],
    }
    rows = [
        {"data_row": {"id": f"id-{name}", "external_id": name}, "projects": {"p1": {"name": "P", "labels": given}}}
        for name, given in labels.items()
    ]
    old = [
        {
            "ID": f"l{n}", "DataRow ID": f"d{n % 2}", "External ID": f"{n % 2}.png", "Created By": who,
            "Label": {"objects": [], "classifications": [{"title": "fit", "answer": {"title": "yes" if n else "no"}}]},
        }
        for n, who in enumerate(["ann@example.org", "bob@example.org", "bob@example.org"])
    ]  # fmt: skip
    return [
        Sample("labelbox", "rows.ndjson", lines(rows), n=4, annotators=2, items=3, dropped={"skipped": 1}, truth=1),
        Sample("labelbox", "old.jsonl", lines(old), n=3, annotators=2, items=2, nominal=True),
    ]


def _sets() -> list[Sample]:
    head = ["Annotator", "Item1", "Item2", "Item3", "Item4", "BestItem", "WorstItem"]
    rows = [["ann", *"wxyz", "w", "z"], ["bob", *"wxyz", "x", "z"], ["ann", *"vxyz", "v", ""], ["bob", *"vxyz", "", ""]]
    places = ["worker_id", "option_a", "option_b", "option_c", "best", "worst"]
    chosen = [["u1", *"xyz", "option_a", "option_c"], ["u2", *"xyz", "option_b", "option_c"]]
    options = ["judge", "1st choice", "2nd choice", "3rd choice"]
    votes = [["ann", *"xyz"], ["bob", *"yxz"], ["cy", "x", "z", ""]]
    return [
        Sample(
            "best-worst", "sets.csv", table(head, rows), kind="preference", n=3, annotators=2, items=5,
            dropped={"without an answer": 1},
        ),
        Sample("best-worst", "places.csv", table(places, chosen), kind="preference", n=2, annotators=2, items=3),
        Sample("ballots", "places.csv", table(options, votes), kind="ranking", n=3, annotators=3, items=3),
        Sample(
            "ballots", "orders.csv", table(["voter", "ranking"], [["ann", "x>y>z"], ["bob", "y>x=z"]]), kind="ranking",
            n=2, annotators=2, items=3,
        ),
    ]  # fmt: skip


def _ranked_sets() -> list[Sample]:
    head = ["srclang", "trglang", "srcIndex", "segmentId", "judgeId"]
    head += [f"system{n}{end}" for n in (1, 2, 3) for end in ("Number", "Id")] + [f"system{n}rank" for n in (1, 2, 3)]
    systems = [cell for name in "xyz" for cell in (-1, name)]
    rows = [
        ["French", "English", segment, segment, judge, *systems, *ranks]
        for segment, judge, ranks in ((7, "ann", (1, 2, 2)), (7, "bob", (2, 1, 3)), (8, "ann", (1, -1, -1)))
    ]
    dropped = {"with fewer than two ranks": 1}
    data = table(head, rows)
    return [Sample("ranked-sets", "wmt.csv", data, kind="ranking", n=2, annotators=2, items=3, dropped=dropped)]


ALL_SAMPLES = [*SAMPLES, *_surveymonkey(), *_limesurvey(), *_labelbox(), *_sets(), *_ranked_sets(), *PLATFORM_SAMPLES]
