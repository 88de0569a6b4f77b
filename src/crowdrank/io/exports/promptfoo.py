"""promptfoo: the results of an evaluation as JSON or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import JudgmentError
from ..read_options import ReadOptions
from ..sources import Source
from ..tables import table_format
from .cells import as_number, as_text, at_path
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import Shape, check_shape, json_values

_TITLE = "promptfoo results (testIdx, promptIdx, score)"
_ERROR = 2.0
_SHAPE: Shape = {"gradingResult": {"componentResults": [{"assertion": {}}]}, "namedScores": {}}


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the score of each provider and prompt on each test."""
    if table_format(source) == "csv":
        raise JudgmentError(
            "promptfoo's CSV names neither tests nor providers; write JSON with promptfoo eval -o results.json"
        )
    rows = Collector(source, options, unit="result")
    tests: dict[str, int] = {}
    asserted = False
    names: dict[str, None] = {}
    outputs: list[tuple[Any, str, str, Any, dict[str, Any]]] = []
    for result in _results(source):
        if not rows.is_wanted(result):
            continue
        rows.n_read += 1
        if as_number(result.get("failureReason")) == _ERROR or (result.get("error") and result.get("score") is None):
            rows.drop("error")
            continue
        parts = _assertions(result)
        asserted |= bool(parts)
        names |= dict.fromkeys(parts)
        test = as_text(result.get("testIdx"))
        if test is None:
            # older versions number nothing: the variables say which test it is
            key = json.dumps(result.get("vars"), sort_keys=True, default=str)
            test = str(tests.setdefault(key, len(tests)))
        outputs.append((result if options.columns else None, test, _item(result), result.get("score"), parts))
    part = choose_question(names, options.answer, what="assertions of type") if options.answer else None
    for result, test, item, score, parts in outputs:
        grade = as_number(parts.get(part) if part else score)
        if grade is None:
            rows.drop("without a score")
        else:
            rows.add(result, query=test, item=item, grade=grade)
    if not asserted:
        rows.notes.append("the tests have no assertions, so every score is 1; add some, such as llm-rubric")
    rows.roles |= {"query": "testIdx", "item": "provider and prompt", "grade": part or "score"}
    return rows.finish("grade", title=_TITLE)


def _results(source: Source) -> Iterator[dict[str, Any]]:
    """The results, of a whole evaluation or one on each line."""
    for value in json_values(source):
        inner = value.get("results") if isinstance(value, Mapping) else None
        listed = inner.get("results") if isinstance(inner, Mapping) else inner
        for number, result in enumerate(listed if isinstance(listed, list) else [value], 1):
            check_shape(result, _SHAPE, f"result {number}")
            yield result


def _item(result: Mapping[str, Any]) -> str:
    """Provider and prompt."""
    provider = result.get("provider")
    if isinstance(provider, Mapping):
        provider = as_text(provider.get("label")) or as_text(provider.get("id"))
    prompt = result.get("prompt")
    if isinstance(prompt, Mapping):
        prompt = next((text for key in ("label", "display", "raw") if (text := as_text(prompt.get(key)))), None)
    number = as_text(result.get("promptIdx"))
    return " | ".join(text for text in (as_text(provider), as_text(prompt) or number) if text) or "unnamed"


def _assertions(result: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of the assertions by their metric or type, and those that have a name of their own."""
    scores: dict[str, Any] = {}
    for one in at_path(result, "gradingResult.componentResults") or ():
        name = as_text(at_path(one, "assertion.metric")) or as_text(at_path(one, "assertion.type"))
        if name:
            scores.setdefault(name, one.get("score"))
    return scores | (result.get("namedScores") or {})
