"""OpenAI Evals: the log of a run, one event per line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ...errors import JudgmentError
from ...wording import first_few
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_number, as_text, at_path
from .imported import Collector, Imported
from .streaming import records

_TITLE = "an OpenAI Evals log (spec, match events)"


def read(source: Source, options: ReadOptions) -> Imported:
    """Return whether each sample was answered rightly as a grade of the model."""
    rows = Collector(source, options, unit="match event")
    model: str | None = None
    other: Counter[str] = Counter()
    for record in records(source):
        spec = record.get("spec")
        if isinstance(spec, Mapping):
            fns = spec.get("completion_fns") or spec.get("model_name") or spec.get("model")
            model = ",".join(map(str, fns)) if isinstance(fns, list) else as_text(fns)
        kind = as_text(record.get("type"))
        if kind is None or (kind == "match" and not rows.is_wanted(record)):
            continue
        if kind != "match":
            other[kind] += 1
            continue
        rows.n_read += 1
        correct = at_path(record, "data.correct")
        grade = int(correct) if isinstance(correct, bool) else as_number(correct)
        if grade is None:
            rows.drop("without an answer")
            continue
        rows.add(record, item=model, query=record.get("sample_id"), grade=grade, time=record.get("created_at"))
    if not rows.n_read and other:
        raise JudgmentError(
            f"the log has no match events, only {first_few(map(repr, other))}; those say nothing of right or wrong"
        )
    rows.roles |= {"item": "spec.completion_fns", "query": "sample_id", "grade": "data.correct", "time": "created_at"}
    return rows.finish("grade", title=_TITLE)
