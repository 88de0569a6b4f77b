"""DeepEval: the test cases of a run with their metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_number, as_text, at_path
from .direction import settle_direction
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import Shape, document

_TITLE = "a DeepEval test run (testCases[].metricsData)"
_METRICS = ("metricsData", "metrics_data", "metricsMetadata")
_CASES = ("testCases", "test_cases", "conversationalTestCases")
_RUN: Shape = {case: [{metrics: [{}] for metrics in _METRICS}] for case in _CASES}


def read(source: Source, options: ReadOptions) -> Imported:
    """Return one metric's score of each test case, turned round where low scores pass."""
    run = document(source, {"testRunData": _RUN, **_RUN})
    run = run.get("testRunData") or run
    rows = Collector(source, options, unit="score")
    cases = list(_cases(run))
    metric = choose_question(
        (name for _, metrics in cases for one in metrics if (name := as_text(one.get("name")))), options.answer
    )
    scored = [
        (case, one)
        for case, metrics in cases
        if rows.is_wanted(case)
        for one in metrics
        if as_text(one.get("name")) == metric
    ]
    settle_direction(rows, metric, _small_passes([one for _, one in scored]))
    model = as_text(at_path(run, "hyperparameters.model")) or Path(source.name).stem
    for number, (case, one) in enumerate(scored, 1):
        rows.n_read += 1
        score = as_number(one.get("score"))
        if score is None:
            rows.drop("error" if one.get("error") else "without a score")
            continue
        query = as_text(case.get("name")) or as_text(case.get("input")) or str(number)
        rows.add(case, item=model, query=query, grade=score, annotator=as_text(one.get("evaluationModel")))
    rows.roles |= {
        "item": "hyperparameters.model, else the file's name", "query": "testCases[].name", "grade": f"{metric}.score",
        "annotator": "evaluationModel",
    }  # fmt: skip
    return rows.finish("grade", title=_TITLE)


def _cases(run: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], list[Mapping[str, Any]]]]:
    """Test cases with their metrics, in the spellings of all versions."""
    for case in (case for key in _CASES for case in run.get(key) or ()):
        metrics: list[dict[str, Any]] = next((case[name] for name in _METRICS if case.get(name)), [])
        yield case, [one | {"name": one.get("name", one.get("metric"))} for one in metrics]


def _small_passes(metrics: list[Mapping[str, Any]]) -> bool | None:
    """Whether small scores pass, told from those above or below their threshold; ``None`` where none tells."""
    large = small = False
    for one in metrics:
        score, threshold, success = as_number(one.get("score")), as_number(one.get("threshold")), one.get("success")
        if score is None or threshold is None or not isinstance(success, bool) or score == threshold:
            continue
        large |= success == (score > threshold)
        small |= success == (score < threshold)
    return None if large == small else small
