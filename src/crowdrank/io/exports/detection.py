"""Which tool wrote a file, by the fields that only its exports have; a few thousand bytes are looked at."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl

from ...errors import JudgmentError
from ...wording import either, option
from ..letor import looks_like_letor
from ..sources import OLD_SPREADSHEET, ZIP, Source, without_panics
from ..tables import table_format
from ..trec import looks_like_qrels, looks_like_run
from .set_columns import layout_of, order_column, place_columns, ranked_columns

_BYTES = 1 << 16
_OBJECTS = 20
_SHEET_ROWS = 6
PACKED = (ZIP, OLD_SPREADSHEET)
"""First bytes of files that are looked into: archives and spreadsheets."""

_BETWEEN = re.compile(r"[\s,]*")
_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([{}\[\],:])|([^\s"{}\[\],:]+))', re.DOTALL)


@dataclass(frozen=True)
class Beginning:
    """The first objects of a file, or the first rows of a table."""

    objects: tuple[Mapping[str, Any], ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    def has(self, *names: str) -> bool:
        """Whether an object, or the header, has all these fields."""
        return set(names) <= set(self.header) or any(set(names) <= one.keys() for one in self.objects)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, or the fields of the first object."""
        return self.header or (tuple(self.objects[0]) if self.objects else ())

    def first(self, name: str) -> list[Any]:
        """The first entry of a list field, of each object that has one."""
        return [one[name][0] for one in self.objects if isinstance(one.get(name), list) and one[name]]

    def values(self, name: str) -> list[Any]:
        """What a field holds in the objects."""
        return [one[name] for one in self.objects if name in one]


def detect(source: Source) -> str | None:
    """Return the name of the importer whose signature a file has; ``None`` where it is a table like any other."""
    text = source.data[:4] not in PACKED and table_format(source) == "csv"
    if text and (looks_like_run(source) or looks_like_qrels(source)):
        return "trec"
    if text and looks_like_letor(source):
        return "letor"
    beginning = look(source)
    fits = [name for name, fits in _SIGNATURES.items() if fits(beginning)]
    if len(fits) > 1:
        raise JudgmentError(
            f"{source.name} has what exports of {either(fits, 'and')} have; say which it is with "
            f"{option('source', fits[0])}, or {option('source', 'table')} for neither"
        )
    return fits[0] if fits else None


def look(source: Source) -> Beginning:
    """Return the beginning of a file."""
    if source.data[:4] in PACKED:
        return _in_archive(source)
    form = table_format(source)
    if form == "parquet":
        return _of_schema(source)
    text = source.data[source.start : source.start + _BYTES].decode("utf-8", errors="replace")
    if form == "csv":
        return _of_table(text, source.suffix)
    return Beginning(objects=tuple(one for one in first_objects(text) if isinstance(one, Mapping)))


def first_objects(text: str) -> list[Any]:
    """Return the first values of JSON text that may be cut off: of an array, of lines, or one document.

    Examples
    --------
    >>> first_objects('[{"a": 1}, {"b": [1, 2'), first_objects('{"a": 1}\\n{"b": 2}\\n{"c')
    ([{'a': 1}], [{'a': 1}, {'b': 2}])
    >>> first_objects('{"a": {"b": "c')
    [{'a': {}}]
    """
    at = len(text) - len(text.lstrip())
    in_array = text[at : at + 1] == "["
    values: list[Any] = []
    decoder, at = json.JSONDecoder(), at + in_array
    while len(values) < _OBJECTS:
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        # some write one list of objects for each person
        values += value if in_array and isinstance(value, list) else [value]
    if values:
        return values[:_OBJECTS]
    try:
        value = json.loads(_close_json(text))
    except (ValueError, RecursionError):
        return []
    return value[:_OBJECTS] if isinstance(value, list) else [value]


def _close_json(text: str) -> str:
    """Cut-off JSON up to its last whole value, with what is open closed."""
    closers: list[str] = []
    end, tail, at, key = 0, "", 0, False
    while match := _TOKEN.match(text, at):
        at = match.end()
        string, mark, _ = match.groups()
        if mark in ("{", "["):
            closers.append("}" if mark == "{" else "]")
        elif mark in ("}", "]"):
            if not closers:
                break
            closers.pop()
        if mark == ",":
            key = closers[-1:] == ["}"]
            continue
        if mark == ":":
            key = False
            continue
        if mark == "{":
            key = True
        elif string is not None and key:
            continue
        end, tail = at, "".join(reversed(closers))
        if not closers:
            break
    return text[:end] + tail


def _of_table(text: str, suffix: str) -> Beginning:
    """Header and first rows of a text table."""
    lines = text.lstrip("\n").split("\n", 1)
    first = re.sub(r'"[^"]*"', "", lines[0])
    separator = max(("\t,;|" if suffix in (".tsv", ".tab") else ",\t;|"), key=first.count)
    rows: list[list[str]] = []
    limit = csv.field_size_limit(1 << 30)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        rows = [[cell.strip() for cell in row] for row in islice(reader, 5) if any(row)]
    except csv.Error:
        pass
    finally:
        csv.field_size_limit(limit)
    if not rows:
        return Beginning()
    return Beginning(header=tuple(rows[0]), rows=tuple(tuple(row) for row in rows[1:]))


def _of_schema(source: Source) -> Beginning:
    """One object with an empty value of each column of a Parquet file."""
    try:
        with without_panics():
            schema = pl.read_parquet_schema(source.place if source.path is not None else io.BytesIO(source.data[:]))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return Beginning()
    return Beginning(objects=({name: _empty(dtype) for name, dtype in schema.items()},))


def _empty(dtype: Any) -> Any:
    """A value of the shape that a column's type says."""
    if isinstance(dtype, pl.List):
        return [_empty(dtype.inner)]
    if isinstance(dtype, pl.Struct):
        return {field.name: _empty(field.dtype) for field in dtype.fields}
    return ""


def _in_archive(source: Source) -> Beginning:
    """The beginning of a sheet, or of the first JSON or CSV file in a zip archive."""
    from .archives import first_sheet_rows, is_sheet, member_names, text_members

    if is_sheet(source):
        rows = first_sheet_rows(source, _SHEET_ROWS)
        return Beginning(header=tuple(rows[0]), rows=tuple(map(tuple, rows[1:]))) if rows else Beginning()
    names = member_names(source)
    if "_journal/start.json" in names or "header.json" in names:
        # an .eval log of Inspect
        return Beginning(objects=({"eval": {"model": "", "task": ""}, "samples": []},))
    parts = text_members(source, _BYTES, 1) if names else []
    beginning = look(parts[0]) if parts else Beginning()
    # in an archive a table of texts and labels is doccano's too
    return Beginning(objects=({"text": "", "label": []},)) if {"text", "label"} <= set(beginning.header) else beginning


def _is_label_studio(start: Beginning) -> bool:
    annotated = [*start.first("annotations"), *start.first("completions")]
    stored = any(isinstance(one, Mapping) and "from_name" in one for one in start.first("result")) and start.has("task")
    # tasks that nobody has annotated yet, as a file may begin with
    bare = any(
        isinstance(one.get("data"), Mapping) and one.get("annotations", one.get("completions")) == [] and "id" in one
        for one in start.objects
    )
    return (
        stored
        or bare
        or any(isinstance(one, Mapping) and "result" in one for one in annotated)
        or start.has("annotation_id", "annotator", "lead_time", "created_at", "updated_at")
    )


def _is_argilla(start: Beginning) -> bool:
    names = [*start.header, *(name for one in start.objects for name in one)]
    values = [value for one in start.objects for value in one.values()]
    entries = [value[0] for value in values if isinstance(value, list) and value] + [
        v for v in values if isinstance(v, Mapping)
    ]
    return (
        start.has("fields", "responses")
        or any(name.endswith(".responses.users") for name in names)
        or any(isinstance(one, Mapping) and {"user_id", "value", "status"} <= one.keys() for one in entries)
    )


def _is_doccano(start: Beginning) -> bool:
    if start.has("_input_hash") or start.has("prompt"):
        return False
    labelled = any(
        isinstance(one.get(key), list) and all(not isinstance(label, Mapping) for label in one[key])
        for one in start.objects
        for key in ("label", "cats", "labels")
        if ("text" in one or "filename" in one) and (key != "labels" or "annotation_approver" in one or "meta" in one)
    )
    spans = start.has("text", "entities", "relations")
    old = any(isinstance(one, Mapping) and {"label", "user"} <= one.keys() for one in start.first("annotations"))
    return labelled or spans or (old and start.has("text")) or {"text", "label", "Comments"} <= set(start.header)


def _is_arena(start: Beginning) -> bool:
    hot = start.has("model_a", "model_b", "winner_model_a", "winner_model_b", "winner_tie")
    answers = any(start.has(name) for name in ("conversation_a", "conv_metadata"))
    return hot or (answers and start.has("model_a", "model_b", "winner"))


def _is_chosen_rejected(start: Beginning) -> bool:
    if not start.has("chosen", "rejected") or start.has("scores_chosen", "results"):
        return False
    named = any(
        start.has(name) for name in ("chosen_model", "prompt", "question", "instruction", "score_chosen", "messages")
    )
    return named or any(isinstance(value, list) or "\n\nAssistant:" in str(value) for value in start.values("chosen"))


def _is_inspect(start: Beginning) -> bool:
    return any(isinstance(value, Mapping) and {"model", "task"} <= value.keys() for value in start.values("eval"))


def _is_openai_evals(start: Beginning) -> bool:
    keys = ("completion_fns", "eval_name", "base_eval")
    return any(isinstance(value, Mapping) and any(key in value for key in keys) for value in start.values("spec"))


def _is_promptfoo(start: Beginning) -> bool:
    nested = [value for value in start.values("results") if isinstance(value, Mapping)]
    listed = [one for one in start.first("results") if isinstance(one, Mapping)]
    return (
        start.has("testIdx", "promptIdx", "score")
        or any("results" in value or {"version", "prompts"} <= value.keys() for value in nested)
        or any({"provider", "prompt", "vars", "score"} <= one.keys() for one in listed)
        or any(re.match(r"\[[\w.-]+:[^\]]+\] ", name) for name in start.header)
    )


def _is_deepeval(start: Beginning) -> bool:
    outer = [one for value in start.values("testRunData") if isinstance(value, Mapping) for one in [value]]
    cases = [*start.first("testCases"), *start.first("test_cases"), *start.first("conversationalTestCases")]
    cases += [one[key][0] for one in outer for key in ("testCases", "conversationalTestCases") if one.get(key)]
    keys = ("metricsData", "metrics_data", "metricsMetadata")
    return any(isinstance(case, Mapping) and any(key in case for key in keys) for case in cases)


def _is_langfuse(start: Beginning) -> bool:
    return _has_scores(start, {"name", "trace_id", "data_type", "source"}) or _has_scores(
        start, {"name", "traceId", "dataType", "source"}
    )


def _is_langsmith(start: Beginning) -> bool:
    return any(
        _has_scores(start, {"run_id", "key", "score", more})
        for more in ("feedback_source", "feedback_source.type", "session_id", "feedback_config")
    )


def _is_phoenix(start: Beginning) -> bool:
    return _has_scores(start, {"annotator_kind", "result"}) or _has_scores(start, {"annotator_kind", "result.score"})


def _has_scores(start: Beginning, keys: set[str]) -> bool:
    """Whether records, or those of a page of an API, have these fields."""
    return start.has(*keys) or any(isinstance(one, Mapping) and keys <= one.keys() for one in start.first("data"))


def _is_rre(start: Beginning) -> bool:
    holds = ("queries", "query_groups", "topics")
    rated = any(
        "relevant_documents" in str(one)[:_BYTES] and "placeholders" in str(one)[:_BYTES] for one in start.objects
    )
    return rated and any(isinstance(one.get(key), list) for one in start.objects for key in holds)


def _is_surveymonkey(start: Beginning) -> bool:
    keys = [re.sub(r"[^a-z]", "", name.lower()) for name in start.header]
    return (
        {"respondentid", "collectorid"} <= set(keys)
        and bool(start.rows)
        and not start.rows[0][keys.index("respondentid")]
    )


def _is_limesurvey(start: Beginning) -> bool:
    names = {name.lower() for name in start.names}
    return any(
        trio <= names for trio in ({"id", "submitdate", "lastpage"}, {"response id", "date submitted", "last page"})
    )


def _is_labelbox(start: Beginning) -> bool:
    rows = any(isinstance(one, Mapping) and "id" in one for one in start.values("data_row"))
    return (rows and start.has("data_row", "projects")) or start.has("DataRow ID", "Label", "Created By")


def _is_best_worst(start: Beginning) -> bool:
    return layout_of(start.names) is not None


def _is_ballots(start: Beginning) -> bool:
    rows = start.rows or [[str(one.get(name, "")) for name in start.names] for one in start.objects]
    return bool(place_columns(start.names)) or order_column(start.names, rows) is not None


def _is_google_forms(start: Beginning) -> bool:
    grids = sum(bool(re.search(r"\[.+\]$", name)) for name in start.header)
    return grids > 1 and bool(start.rows) and bool(re.search(r"\d:\d\d", start.rows[0][0]))


_SIGNATURES: dict[str, Callable[[Beginning], bool]] = {
    "quepid": lambda seen: tuple(name.strip().lower() for name in seen.header) == ("query", "docid", "rating"),
    "rre": _is_rre,
    "label-studio": _is_label_studio,
    "argilla": _is_argilla,
    "doccano": _is_doccano,
    "prodigy": lambda seen: seen.has("_input_hash", "_task_hash", "answer"),
    "mturk": lambda seen: (
        {"HITId", "WorkerId", "AssignmentId"} <= set(seen.header)
        and any(name.startswith("Answer.") for name in seen.header)
    ),
    "toloka": lambda seen: (
        seen.has("tasks", "solutions", "pool_id")
        or all(any(name.startswith(start) for name in seen.header) for start in ("INPUT:", "OUTPUT:"))
    ),
    "appen": lambda seen: seen.has("_unit_id", "_worker_id") or seen.has("_unit_id", "_trusted_judgments"),
    "qualtrics": lambda seen: any('"ImportId"' in cell for row in seen.rows[:3] for cell in row),
    "google-forms": _is_google_forms,
    "surveymonkey": _is_surveymonkey,
    "limesurvey": _is_limesurvey,
    "labelbox": _is_labelbox,
    "best-worst": _is_best_worst,
    "ballots": _is_ballots,
    "ranked-sets": lambda seen: bool(ranked_columns(seen.names)),
    "jspsych": lambda seen: seen.has("trial_type", "trial_index", "time_elapsed"),
    "prolific": lambda seen: (
        seen.has("Submission id", "Participant id") or seen.has("session_id", "participant_id", "status", "time_taken")
    ),
    "mt-bench": lambda seen: (
        seen.has("model_1", "model_2", "g1_winner", "g2_winner")
        or (seen.has("question_id", "model", "judge", "score", "turn") and not seen.has("games"))
    ),
    "arena": _is_arena,
    "alpaca-eval": lambda seen: seen.has("generator_1", "generator_2", "preference"),
    "arena-hard": lambda seen: seen.has("games", "judge", "model"),
    "reward-bench": lambda seen: (
        seen.has("scores_chosen", "scores_rejected", "results") or seen.has("scores", "num_correct", "results")
    ),
    "chosen-rejected": _is_chosen_rejected,
    "lm-eval": lambda seen: seen.has("doc_id", "filtered_resps", "doc_hash"),
    "inspect": _is_inspect,
    "openai-evals": _is_openai_evals,
    "promptfoo": _is_promptfoo,
    "deepeval": _is_deepeval,
    "langfuse": _is_langfuse,
    "langsmith": _is_langsmith,
    "phoenix": _is_phoenix,
}
"""Name of an importer -> whether the beginning of a file has what its exports have."""
