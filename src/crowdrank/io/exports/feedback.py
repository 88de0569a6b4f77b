"""Langfuse scores, LangSmith feedback and Phoenix annotations: each names what was measured of a trace, and a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...wording import call, counted, first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_number, as_text, at_path
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import records


class _Fields(NamedTuple):
    """Where a tool writes what; of several fields the first that holds something."""

    title: str
    metric: tuple[str, ...]
    """What was measured: a file has several of them, on scales of their own."""
    item: tuple[str, ...]
    number: str
    words: str
    annotator: tuple[str, ...]
    source: str
    """Whether a person or a program gave it."""
    time: tuple[str, ...] = ("timestamp", "created_at")
    part: str = ""
    """What may be ranked in place of the item: its part, or what it is a part of."""


_TOOLS = {
    "langfuse": _Fields(
        "Langfuse scores (trace_id, data_type, string_value)", ("name",), ("trace_id", "observation_id", "session_id"),
        "value", "string_value", ("author_user_id",), "source", part="observation_id",
    ),
    "langsmith": _Fields(
        "LangSmith feedback (run_id, key, score)", ("key",), ("run_id", "trace_id"), "score", "value",
        ("feedback_source.user_id",), "feedback_source.type", part="session_id",
    ),
    "phoenix": _Fields(
        "Phoenix annotations (annotation_name, annotator_kind, result.score)", ("annotation_name", "name"),
        ("context.span_id", "span_id", "context.trace_id", "trace_id", "session_id"), "result.score", "result.label",
        ("user_id", "identifier"), "annotator_kind",
    ),
}  # fmt: skip


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the values of one metric as grades of traces."""
    rows = Collector(source, options, unit="score")
    given: dict[str, list[Mapping[str, Any]]] = {}
    for record in _scores(source):
        if rows.is_wanted(record) and (metric := _text(record, ("name", "key", "annotation_name"))) is not None:
            given.setdefault(metric, []).append(record)
    first = next((scores[0] for scores in given.values()), {})
    tool = _TOOLS["phoenix" if "annotator_kind" in first else "langsmith" if "key" in first else "langfuse"]
    field = next((name for name in tool.metric if name in first), tool.metric[0])
    given = {name: scores for name, scores in given.items() if any(_kind(one) != "TEXT" for one in scores)}
    metric = choose_question(given, options.answer, field=field)
    sources: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    named = "annotator" in options.columns
    for record in given[metric]:
        rows.n_read += 1
        grade = _grade(record, tool)
        if grade is None:
            rows.drop("TEXT" if _kind(record) == "TEXT" else "without a value")
            continue
        sources[_text(record, (tool.source,)) or "no source"] += 1
        parts[_text(record, (tool.part,)) or ""] += 1
        who = _text(record, tool.annotator)
        named |= who is not None
        rows.add(record, item=_text(record, tool.item), grade=grade, time=_text(record, tool.time), annotator=who)
    rows.roles |= {
        word: next((name for name in names if _text(first, (name,))), names[0])
        for word, names in (("item", tool.item), ("time", tool.time), ("annotator", tool.annotator))
    }
    rows.roles["grade"] = f"{tool.number} or {tool.words}"
    if not named:
        rows.notes.append(f"the export does not say who scored: {tool.source} is only the kind of score")
    if len(sources) > 1:
        each = first_few([f"{n:,} {name}" for name, n in sources.most_common()])
        one = option("where", {tool.source: sources.most_common(1)[0][0]})
        rows.notes.append(f"scores of several sources are read together ({each}); for one of them: {one}")
    parts.pop("", None)
    part = option("columns", {"item": tool.part})
    if tool.part == "observation_id" and parts and "item" not in options.columns:
        rows.notes.append(f"{counted(parts.total(), 'score')} of observations count for their trace; else: {part}")
    if tool.part == "session_id" and len(parts) > 1 and "item" not in options.columns:
        ways = f"{option('columns', {'item': tool.part, 'query': 'run_id'})} {call('across_queries')}"
        rows.notes.append(f"the runs are of {counted(len(parts), 'experiment')} (session_id); to rank these: {ways}")
    return rows.finish("grade", title=tool.title, metric=metric)


def _grade(record: Mapping[str, Any], tool: _Fields) -> Any:
    """The value: a number, or the word of a category; ``None`` where there is neither."""
    if _kind(record) == "TEXT":
        return None
    value = _get(record, tool.number)
    number = float(value) if isinstance(value, bool) else as_number(value)
    words = as_text(_get(record, tool.words))
    return words if words is not None and (number is None or _kind(record) == "CATEGORICAL") else number


def _kind(record: Mapping[str, Any]) -> str:
    """Langfuse's type of a value."""
    return (as_text(_get(record, "data_type")) or "").upper()


def _scores(source: Source) -> Iterator[Mapping[str, Any]]:
    """The scores, also those of a page of the API."""
    for record in records(source, shape={"data": [{}]}):
        page = record.get("data") if "name" not in record else None
        yield from [record] if page is None else page


def _text(record: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first field that holds something."""
    return next((text for name in names if (text := as_text(_get(record, name))) is not None), None)


def _get(record: Mapping[str, Any], name: str) -> Any:
    """A field or a path, which the API of Langfuse spells in camel case."""
    if name in record or "." in name:
        return at_path(record, name)
    head, *rest = name.split("_")
    return record.get(head + "".join(word.capitalize() for word in rest))
