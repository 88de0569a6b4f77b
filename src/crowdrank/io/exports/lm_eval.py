"""lm-evaluation-harness: the samples of a task, one file for each model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ...errors import JudgmentError
from ...wording import first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_number, as_text
from .direction import is_small_good, settle_direction
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import records

_TITLE = "lm-evaluation-harness samples (doc_id, filtered_resps, doc_hash)"
_NAME = re.compile(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT[\d.-]+)?")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the value of one metric for each document, as a grade of the model that the folder is named after."""
    rows = Collector(source, options, unit="sample")
    path = Path(source.name).resolve()
    model = path.parent.name if source.path is not None or path.exists() else ""
    named = _NAME.fullmatch(path.name.removesuffix(".gz").rsplit(".jsonl", 1)[0].rsplit(".json", 1)[0])
    if not model and "item" not in options.columns:
        raise JudgmentError(
            "the folder of the samples names the model, so standard input cannot be used; give the file"
        )
    filters: dict[str, None] = {}
    metrics: dict[str, None] = {}
    documents: list[tuple[Any, str, dict[str, Any]]] = []
    for number, record in enumerate(records(source, shape={"metrics": []}), 1):
        if not rows.is_wanted(record):
            continue
        rows.n_read += 1
        filters.setdefault(as_text(record.get("filter")) or "none")
        names = record.get("metrics")
        values = _numbers(record) if names is None else {str(name): record.get(str(name)) for name in names}
        metrics |= dict.fromkeys(values)
        doc = as_text(record.get("doc_id")) or str(number)
        documents.append((record if options.columns else None, f"{named[1]}: {doc}" if named else doc, values))
    if len(filters) > 1:
        one = option("where", {"filter": next(iter(filters))})
        raise JudgmentError(f"each document was scored with {first_few(map(repr, filters))}; choose one with {one}")
    metric = choose_question(metrics, options.answer, what="the metrics")
    settle_direction(rows, metric, is_small_good(metric))
    for record, query, values in documents:
        value = values.get(metric)
        grade = float(value) if isinstance(value, bool) else as_number(value)
        if grade is None:
            rows.drop("without a number" if value is not None else "without a value")
        else:
            rows.add(record, query=query, item=model, grade=grade)
    rows.roles |= {"item": "name of the folder", "query": "doc_id", "grade": metric}
    return rows.finish("grade", title=_TITLE)


def _numbers(record: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a sample that does not list its metrics, as older versions write it."""
    return {name: value for name, value in record.items() if name != "doc_id" and isinstance(value, int | float)}
