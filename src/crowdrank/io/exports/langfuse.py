"""Langfuse: exported scores, one for each trace or observation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ...wording import counted, first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_number, as_text
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import records

_TITLE = "Langfuse scores (trace_id, data_type, string_value)"


def read(source: Source, options: ReadOptions) -> Imported:
    """Return one score for each trace as a grade."""
    rows = Collector(source, options, unit="score")
    names = [
        name
        for record in islice(_scores(source), 10_000)
        if _get(record, "data_type") != "TEXT" and (name := as_text(record.get("name")))
    ]
    wanted, named = choose_question(names, options.answer), False
    sources: Counter[str] = Counter()
    observed = 0
    for record in _scores(source):
        if as_text(record.get("name")) != wanted or not rows.is_wanted(record):
            continue
        rows.n_read += 1
        kind = (as_text(_get(record, "data_type")) or "").upper()
        if kind == "TEXT":
            rows.drop("TEXT")
            continue
        words = kind == "CATEGORICAL"
        grade = as_text(_get(record, "string_value")) if words else as_number(record.get("value"))
        if grade is None:
            rows.drop("without a value")
            continue
        item = next(
            (text for name in ("trace_id", "observation_id", "session_id") if (text := as_text(_get(record, name)))),
            None,
        )
        time = next((record[name] for name in ("timestamp", "created_at", "createdAt") if record.get(name)), None)
        rows.add(record, item=item, grade=grade, time=time, annotator=as_text(_get(record, "author_user_id")))
        named |= _get(record, "author_user_id") is not None
        sources[as_text(record.get("source")) or "no source"] += 1
        observed += item is not None and as_text(_get(record, "observation_id")) is not None
    rows.roles |= {"item": "trace_id", "grade": "value or string_value", "time": "timestamp"}
    rows.roles["annotator"] = "author_user_id"
    if not named:
        rows.notes.append("the export does not say who scored: source is only the kind of score")
    if len(sources) > 1:
        each = first_few([f"{n:,} {name}" for name, n in sources.most_common()])
        one = option("where", {"source": sources.most_common(1)[0][0]})
        rows.notes.append(f"scores of several sources are read together ({each}); for one of them: {one}")
    if observed and "item" not in options.columns:
        named_so = option("columns", {"item": "observation_id"})
        rows.notes.append(f"{counted(observed, 'score')} of observations count for their trace; else: {named_so}")
    return rows.finish("grade", title=_TITLE)


def _scores(source: Source) -> Iterator[Mapping[str, Any]]:
    """The scores, also those of a page of the API."""
    for record in records(source, shape={"data": [{}]}):
        page = record.get("data") if "name" not in record else None
        yield from [record] if page is None else page


def _get(record: Mapping[str, Any], name: str) -> Any:
    """A field, which the API spells in camel case."""
    head, *rest = name.split("_")
    return record.get(name, record.get(head + "".join(word.capitalize() for word in rest)))
