"""Inspect: the log of an evaluation as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...errors import JudgmentError
from ...wording import first_few, option
from ..read_options import ReadOptions
from ..sources import ZIP, Source
from .cells import as_number, as_text, at_path
from .imported import Collector, Imported
from .questions import choose_question
from .streaming import Shape, document

_TITLE = "an Inspect log (eval.model, samples[].scores)"
_LAST_NUMBER = re.compile(r"[_\s.\-]?\d+$")
_SHAPE: Shape = {"eval": {}, "samples": [{"scores": {}, "score": {}}]}
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def read(source: Source, options: ReadOptions) -> Imported:
    """Return each scorer's value for each sample as a grade of the model."""
    if source.data[:4] == ZIP:
        raise JudgmentError("an .eval log is an archive; write it as JSON with inspect log dump, and give that file")
    log = document(source, _SHAPE)
    if log.get("samples") is None:
        raise JudgmentError("the log has no samples; write it with them (log_samples), or dump the whole log")
    rows = Collector(source, options, unit="sample")
    model, task = as_text(at_path(log, "eval.model")), as_text(at_path(log, "eval.task"))
    values: list[tuple[Any, str, str, str, Any]] = []
    for number, sample in enumerate(log["samples"], 1):
        scores = _scores(sample)
        wanted = [score for score in scores if rows.is_wanted({"scorer": score[0]}, sample)]
        if scores and not wanted:
            continue
        rows.n_read += 1
        if sample.get("error"):
            rows.drop("error")
            continue
        if not scores:
            rows.drop("without a score")
        number_or_id = as_text(sample.get("id")) or str(number)
        query = f"{task}: {number_or_id}" if task else number_or_id
        values += [({"scorer": score[0], **sample}, query, *score) for score in wanted]
    parts = dict.fromkeys(part for *_, part, _ in values)
    part = choose_question(parts, options.answer, what="the scores") if len(parts) > 1 or options.answer else None
    _expect_one_scale(
        [(scorer, value) for _, _, scorer, name, value in values if part in (None, name)],
        pooled=options.columns.get("annotator") == "scorer",
    )
    for record, query, scorer, name, value in values:
        if part is None or name == part:
            _add(rows, record, value, query=query, item=model, annotator=scorer)
    status = as_text(log.get("status"))
    if status != "success":
        rows.notes.append(f"the log's status is {status!r}, so samples may be missing")
    rows.roles |= {
        "item": "eval.model",
        "query": "samples[].id",
        "annotator": "name of the scorer",
        "grade": "scores[].value",
    }
    scorers = ", ".join(dict.fromkeys(scorer for _, _, scorer, _, _ in values))
    return rows.finish("grade", title=_TITLE, metric=scorers if part is None else part)


def _expect_one_scale(scores: list[tuple[str, Any]], *, pooled: bool) -> None:
    """Ask which scorer is meant, unless they differ in a last number only; never pool what is on several scales."""
    by_scorer: dict[str, list[Any]] = {}
    for scorer, value in scores:
        by_scorer.setdefault(scorer, []).append(value)
    pooled |= len({_LAST_NUMBER.sub("", scorer) for scorer in by_scorer}) == 1
    ranges = [_range_of(values) for values in by_scorer.values()]
    widest = max((high for _, _, high in ranges), default=0.0) - min((low for _, low, _ in ranges), default=0.0)
    alike = len({letters for letters, _, _ in ranges}) == 1 and all(
        2 * (high - low) >= widest for _, low, high in ranges
    )
    if len(by_scorer) < 2 or (pooled and alike):
        return
    named = first_few(map(repr, by_scorer), shown=12)
    one = option("where", {"scorer": next(iter(by_scorer))})
    together = f", or take all as annotators of the same thing with {option('columns', {'annotator': 'scorer'})}"
    scales = "" if alike else ", on different scales"
    raise JudgmentError(f"the samples have scores of {named}{scales}; choose one with {one}{together if alike else ''}")


def _range_of(values: list[Any]) -> tuple[bool, float, float]:
    """Whether all values are letters or words that Inspect counts, else the range of the numbers."""
    if all(isinstance(value, bool) or (isinstance(value, str) and _letter(value) is not None) for value in values):
        return True, 0.0, 1.0
    numbers = [number for value in values if (number := as_number(value)) is not None]
    return False, min(numbers, default=0.0), max(numbers, default=0.0)


def _add(rows: Collector, sample: Any, value: Any, **cells: Any) -> None:
    """One value: C, P, I and N as Inspect counts them, numbers as they are."""
    grade: Any = float(value) if isinstance(value, bool) else _letter(value) if isinstance(value, str) else None
    grade = as_number(value) if grade is None else grade
    if grade is None and as_text(value) is None:
        rows.drop("without a score")
    else:
        rows.add(sample, grade=as_text(value) if grade is None else grade, **cells)


def _letter(value: str) -> float | None:
    """The number that Inspect counts a letter or word as."""
    return _LETTERS.get(value.strip(), _LETTERS.get(value.strip().lower()))


def _scores(sample: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """Scorer, part and value of each score of a sample."""
    by_scorer = sample.get("scores") or ({"scorer": sample["score"]} if sample.get("score") else {})
    scores: list[tuple[str, str, Any]] = []
    for scorer, score in by_scorer.items():
        value = score.get("value") if isinstance(score, Mapping) else score
        if isinstance(value, Mapping):
            scores += [(str(scorer), str(part), one) for part, one in value.items()]
        elif value is not None:
            scores.append((str(scorer), "value", value))
    return scores
