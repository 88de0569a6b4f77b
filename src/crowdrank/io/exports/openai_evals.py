"""OpenAI Evals: the log of a run, one event per line."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...errors import JudgmentError
from ...wording import first_few
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_number, as_text, at_path
from .direction import is_small_good, settle_direction
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import records

_TITLE = "an OpenAI Evals log (spec, match and metrics events)"
_CORRECT = "correct"
_NOT_SCORES = ("threshold", "tokens", "num_tokens", "latency", "duration")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return whether each sample was answered rightly, or the metric of each, as a grade of the model."""
    model, events, other = _events(source)
    matched = "match" in events and options.answer in (None, "match", _CORRECT)
    kind = "match" if matched else "metrics"
    rows = Collector(source, options, unit=f"{kind} event")
    results = events.get(kind, [])
    if not results:
        raise JudgmentError(
            f"the log has no match or metrics events, only {first_few(map(repr, other))}; these do not say what is "
            "right, so score the samples and give a table of model, sample and score"
        )
    metric = _CORRECT if matched else choose_question(_metrics(results), options.answer, what="the metrics")
    settle_direction(rows, metric, False if matched else is_small_good(metric))
    for record in results:
        if not rows.is_wanted(record):
            continue
        rows.n_read += 1
        grade = _number(at_path(record, f"data.{metric}"))
        if grade is None:
            rows.drop("without an answer")
            continue
        rows.add(record, item=model, query=record.get("sample_id"), grade=grade, time=record.get("created_at"))
    rows.roles |= {"item": "spec.completion_fns", "query": "sample_id", "grade": f"data.{metric}", "time": "created_at"}
    return rows.finish("grade", title=_TITLE)


def _events(source: Source) -> tuple[str | None, dict[str, list[dict[str, Any]]], Counter[str]]:
    """The model, the events that hold answers by their type, and how many there are of each other type."""
    model: str | None = None
    events: dict[str, list[dict[str, Any]]] = {}
    other: Counter[str] = Counter()
    for record in records(source, shape={"spec": {}, "data": {}}):
        spec = record.get("spec")
        if spec:
            fns = spec.get("completion_fns") or spec.get("model_name") or spec.get("model")
            model = ",".join(map(str, fns)) if isinstance(fns, list) else as_text(fns)
        kind = as_text(record.get("type"))
        if kind in ("match", "metrics"):
            events.setdefault(kind, []).append(record)
        elif kind is not None:
            other[kind] += 1
    return model, events, other


def _metrics(results: list[dict[str, Any]]) -> list[str]:
    """The names under which events have numbers, those of no score left out."""
    names: dict[str, None] = {}
    for record in results:
        data = record.get("data") or {}
        names |= {name: None for name, value in data.items() if _number(value) is not None}
    return [name for name in names if name not in _NOT_SCORES]


def _number(value: Any) -> float | None:
    """A number, or right and wrong as 1 and 0."""
    return float(value) if isinstance(value, bool) else as_number(value)
