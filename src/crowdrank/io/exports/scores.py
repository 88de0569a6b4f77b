"""Scores that evaluation platforms export: where each tool writes what is in ``exports.toml``, and one reader for all.

A record is a trace, a run or an example. It is a score itself, has a list of them, an object with one for each metric,
or a column for each. Records may stand in pages, and in objects around them, whose fields count as their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ...wording import call, counted, first_few, option
from .cells import as_number, as_text, at_path, parse_json
from .imported import Collector, Imported
from .streaming import Record, records

_LARGE_IS_GOOD = re.compile(
    r"acc|acc_norm|acc_\w+|accuracy|(\w+_)?exact_match.*|em|f1.*|.*_f1|bleu.*|rouge.*|chrf.*|pass@.*|mcc|score|"
    r"prompt_level_\w+_acc|inst_level_\w+_acc|likelihood_diff|correct|is_correct|mc[12]|math_verify|flexible_match|contains"
)
# metrics of lm-evaluation-harness itself, which says so of them
_SMALL_IS_GOOD = re.compile(r"(word_|byte_)?perplexity|bits_per_byte|ter|brier_score")


def is_small_good(metric: str) -> bool | None:
    """Return whether small values of a well-known metric are good; ``None`` where it is not known.

    Examples
    --------
    >>> is_small_good("acc_norm,none"), is_small_good("perplexity"), is_small_good("edits") is None
    (False, True, True)
    """
    if _LARGE_IS_GOOD.fullmatch(metric.lower().split(",")[0]):
        return False
    return True if _SMALL_IS_GOOD.fullmatch(metric.lower()) else None


def as_score(value: Any) -> float | None:
    """Return a number, or right and wrong as 1 and 0."""
    return float(value) if isinstance(value, bool) else as_number(value)


def read(rows: Collector) -> Imported:
    """Return the values of one metric as grades of traces, or of what an experiment tried on each example."""
    fields = {word: tuple(paths.split("|")) for word, paths in rows.export.scores.items()}
    given: dict[str, list[Record]] = {}
    bare, nested, aside = 0, False, re.compile(rows.export.scores.get("aside", "(?!)"))
    for record in records(rows.source):
        for one in _unfold(record, fields):
            scores = list(_scores_of(one, fields))
            bare += not scores
            for name, held in scores:
                score, nested = ({**one, **held, "record": one}, True) if held is not one else (one, nested)
                if not aside.fullmatch(name) and rows.is_wanted(score):
                    given.setdefault(name, []).append(score)
    reasons = {name: [_reason(rows, score) for score in scores] for name, scores in given.items()}
    given = {name: scores for name, scores in given.items() if None in reasons[name]} or given
    first = next((scores[0] for scores in given.values()), {})
    pooled = "pooled" in fields
    field = next((name for name in fields.get("metric", ()) if name in first and not nested), None)
    metric = "verdict" if pooled else rows.choose_question(given, field=field)
    chosen = [score for name in given if pooled or name == metric for score in given[name]]
    if "settle" in fields:
        passes = _small_passes(chosen) if fields["settle"] == ("threshold",) else is_small_good(metric)
        rows.settle_direction(metric, passes)
    # an experiment is ranked where each score is of an example that others may have too, else the trace itself
    tried = "model" in fields and all(_text_at(score, fields["query"]) for score in chosen)
    item = fields["model"] if tried else fields["item"]
    file = Path(rows.source.name).resolve()
    folder = re.fullmatch(rows.export.scores.get("folder", "(?!)"), file.parent.name)
    name, task = (folder["model"], f"{folder['task']}: ") if folder else (Path(file.name.removesuffix(".gz")).stem, "")
    sources, parts, who = Counter[str](), Counter[str](), False
    rows.drop("without a score", bare)
    rows.n_read += bare
    for score in chosen:
        rows.n_read += 1
        reason, grade = _reason(rows, score), _grade_of(score, fields)
        if reason is not None or grade is None:
            rows.drop(reason or ("error" if score.get("error") else "without a value"))
            continue
        sources[_text_at(score, fields.get("source", ())) or "no source"] += 1
        parts[_text_at(score, (*fields.get("finer", ()), *fields.get("coarser", ()))) or ""] += 1
        cells: Record = {"annotator": _text_at(score, fields.get("annotator", ()))}
        who |= cells["annotator"] is not None
        if tried or ("query" in fields and "model" not in fields):
            cells["query"] = task + (_text_at(score, fields["query"]) or "")
        cells["item"] = _text_at(score, item) or (name if tried else None)
        rows.add(score, grade=grade, time=_text_at(score, fields.get("time", ())), **cells)
    for word, names in (("item", item), *((word, fields.get(word, ())) for word in ("query", "time", "annotator"))):
        known = next((one for one in names if _text_at(first, (one,))), None)
        rows.roles.setdefault(word, known or ("name of the folder" if folder else "name of the file"))
    value = next((path for path in fields["value"] if _has(first, path)), fields["value"][0])
    own = rows.roles.get("grade")
    rows.roles["grade"] = (
        own.format(metric) if own else metric if nested else " or ".join((value, *fields.get("words", ())[:1]))
    )
    rows.survey = "ordered" in fields
    if not who and "source" in fields and "annotator" not in rows.options.columns:
        rows.notes.append(f"the export does not say who scored: {fields['source'][0]} is only the kind of score")
    if len(sources) > 1:
        each = first_few([f"{n:,} {one}" for one, n in sources.most_common()])
        one_source = option("where", {fields["source"][0]: sources.most_common(1)[0][0]})
        rows.notes.append(f"scores of several sources are read together ({each}); for one of them: {one_source}")
    parts.pop("", None)
    if "finer" in fields and parts and "item" not in rows.options.columns:
        part = option("columns", {"item": fields["finer"][0]})
        rows.notes.append(f"{counted(parts.total(), 'score')} of observations count for their trace; else: {part}")
    if "coarser" in fields and len(parts) > 1 and not tried and "item" not in rows.options.columns:
        ways = f"{option('columns', {'item': fields['coarser'][0], 'query': 'run_id'})} {call('across_queries')}"
        rows.notes.append(f"the runs are of {counted(len(parts), 'experiment')} (session_id); to rank these: {ways}")
    return rows.finish("grade", metric=metric)


def _small_passes(metrics: list[Record]) -> bool | None:
    """Whether small scores pass, told from those above or below their threshold; ``None`` where none tells."""
    large = small = False
    for one in metrics:
        score, threshold, success = as_number(one.get("score")), as_number(one.get("threshold")), one.get("success")
        if score is None or threshold is None or not isinstance(success, bool) or score == threshold:
            continue
        large |= success == (score > threshold)
        small |= success == (score < threshold)
    return None if large == small else small


def _unfold(record: Record, fields: Mapping[str, tuple[str, ...]], depth: int = 0) -> Iterator[Record]:
    """The records of a page, also in pages within, with the fields around them."""
    for path in fields.get("within", ()):
        if isinstance(inner := at_path(record, path), dict):
            record = {**record, **inner}
    pages = [(place, at_path(record, path)) for place, path in enumerate(fields.get("records", ())[depth:], depth + 1)]
    pages = [
        (place, one) for place, one in pages if isinstance(one, list) and all(isinstance(each, dict) for each in one)
    ]
    around = {name: value for name, value in record.items() if not any(value is listed for _, listed in pages)}
    for place, listed in pages:
        for one in listed:
            yield from _unfold({**around, **one}, fields, place)
    if not pages:
        yield record


def _scores_of(record: Record, fields: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, Record]]:
    """Metric and fields of each score of a record."""
    metric, value = fields.get("metric", ("metric",)), fields["value"]
    name = _text_at(record, metric)
    if name is not None and any(_has(record, path) for path in (*value, *fields.get("words", ()))):
        yield name, record
        return
    for path in fields.get("scores", ()):
        if "*" in path:
            besides = {one for other in fields.get("besides", ()) for one in record if fnmatchcase(one, other)}
            head, _, tail = path.partition("*")
            for name, cell in record.items():
                if name in besides or not fnmatchcase(name, path) or isinstance(cell, list | dict):
                    continue
                # where nothing but the cells tells a metric, it is a number
                if as_text(cell) is not None and (path != "*" or as_score(cell) is not None):
                    yield name[len(head) : len(name) - len(tail)], {metric[0]: name, value[0]: cell}
            continue
        held = at_path(record, path)
        held = parse_json(held) if isinstance(held, str) else held
        for score in held if isinstance(held, list) else ():
            if isinstance(score, dict) and (name := _text_at(score, metric) if "metric" in fields else value[0]):
                yield name, score
        for key, score in held.items() if isinstance(held, Mapping) else ():
            if not isinstance(score, dict):
                yield key, {metric[0]: key, value[0]: score}
            elif any(at_path(score, one) is not None for one in value):
                yield key, {**score, metric[0]: key}
            else:
                # a scorer with values of several kinds
                for part, one in score.items():
                    if as_score(one) is not None:
                        yield f"{key}.{part}", {metric[0]: f"{key}.{part}", value[0]: one}


def _has(record: Record, path: str) -> bool:
    """Whether a record has a field, be it blank, or something at a path."""
    return path in record or at_path(record, path) is not None


def _reason(rows: Collector, score: Record) -> str | None:
    """Why a score is left out, by the fields that say so."""
    for test, reason in rows.export.leaves_out.items():
        path, _, wanted = test.partition("=")
        held = as_text(_value_at(score, path))
        if held is not None and (not wanted or held.lower() == wanted):
            return reason
    return None


def _grade_of(score: Record, fields: Mapping[str, tuple[str, ...]]) -> float | str | None:
    """A number, or the words where there is none or where they are what was chosen."""
    value = next((one for path in fields["value"] if (one := _value_at(score, path)) is not None), None)
    words = _text_at(score, fields.get("words", ()))
    if words is not None and (as_text(_value_at(score, "data_type")) or "").upper() == "CATEGORICAL":
        return words
    number = as_score(value)
    return (words or as_text(value)) if number is None and not isinstance(value, list | dict) else number


def _text_at(record: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first field or path that holds something."""
    return next((text for name in names if name and (text := as_text(_value_at(record, name))) is not None), None)


def _value_at(record: Mapping[str, Any], name: str) -> Any:
    """A field, which the API of Langfuse spells in camel case, a path, or the first field like a pattern."""
    if "*" in name:
        return next((value for key, value in record.items() if fnmatchcase(key, name)), None)
    if name in record or "." in name:
        return at_path(record, name)
    head, *rest = name.split("_")
    return record.get(head + "".join(word.capitalize() for word in rest))
