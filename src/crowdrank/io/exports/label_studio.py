"""Label Studio: the full JSON export with its tasks and annotations, and JSON-MIN, CSV and TSV with a row for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from ...data.words import not_supported, unsupported_kind
from ...errors import JudgmentError
from ...wording import counted, first_few, option, percent
from ..read_options import SIDES
from ..sources import Source
from .cells import CONTEXTS, as_number, as_person, as_text, context_of, is_scale, pair_columns, parse_json, side
from .imported import Cells, Collector, Imported, as_labels, choose_question
from .streaming import Record, Shape, check_shape, records

# type of a result -> the key of its value
_ANSWERS = {
    "pairwise": "selected", "rating": "rating", "choices": "choices", "taxonomy": "taxonomy", "ranker": "ranker",
    "number": "number",
}  # fmt: skip
_REGION = {"start", "end", "x", "y", "points", "labels", "start_offset"}
_ROW_KEYS = {"annotation_id", "annotator", "lead_time", "created_at", "updated_at", "id", "inner_id", "agreement"}
_ANNOTATION: Shape = {"result": [{"value": {}}]}
_SHAPE: Shape = {"annotations": [_ANNOTATION], "completions": [_ANNOTATION], "predictions": [], "data": {}}
_MANY_SKIPPED = 0.05
_FIRST_RECORDS = 1000  # so many tasks are looked through for questions before the first is read

Tasks = Iterator[tuple[Record, list[Record]]]


def read(rows: Collector) -> Imported:
    """Return the answers to one question; skipped annotations are left out, ground truth is the truth."""
    first = next(records(rows.source), {})
    if "annotations" in first or "completions" in first or isinstance(first.get("task"), dict):
        rows.title += " (annotations[].result)"
        return _Answers(rows, lambda: tasks(rows.source)).read_file()
    if not {"annotation_id", "annotator"} <= first.keys():
        raise JudgmentError("no annotations and no annotation_id; export the project as JSON")
    rows.note("short_format")
    fields = _answer_fields(rows)
    rows.title += " with one row per annotation (annotation_id)"
    return _Answers(rows, lambda: _rows(rows.source, fields)).read_file()


class _Answers:
    """One question's answers on their way out of a file."""

    def __init__(self, rows: Collector, read_tasks: Callable[[], Tasks]) -> None:
        self.rows, self.tasks = rows, read_tasks
        self.sides: tuple[str, str] | None = None
        self.labels: list[tuple[Any, str | None, list[str], Cells]] = []
        self.codes = rows.options.codes
        self.parts: list[dict[str, Any]] = []
        self.n_bare = self.n_predictions = self.n_gold_lists = 0

    def read_file(self) -> Imported:
        """Read the file."""
        rows = self.rows
        name, kind = self._question()
        rows.roles["annotator"] = "completed_by"
        for task, answered in self.tasks():
            self.n_bare += not answered
            self.n_predictions += len(task.get("predictions") or ())
            for annotation in answered:
                if rows.is_wanted(annotation, task):
                    self._annotation(task, annotation, name, kind)
        if self.parts and rows.n_read == rows.dropped.total():
            raise JudgmentError(
                not_supported(f"the answers to {name!r} are about", unsupported_kind(self.parts) or "regions")
            )
        rows.add_classes(self.labels)
        rows.roles |= {"time": "created_at", "duration": "lead_time"}
        if self.n_bare:
            rows.notes.append(f"{counted(self.n_bare, 'task')} without annotations")
        if self.n_gold_lists:
            rows.notes.append(f"{self.n_gold_lists:,} ground truths with several labels are not used")
        if self.n_predictions:
            rows.notes.append(f"{counted(self.n_predictions, 'prediction')} ignored")
        skipped = rows.dropped["skipped"] / max(rows.n_read, 1)
        if kind == "pairwise" and skipped > _MANY_SKIPPED:
            rows.note("many_skipped", share=percent(skipped))
        return rows.finish({"pairwise": "preference", "ranker": "ranking"}.get(kind, "grade"))

    def _question(self) -> tuple[str, str]:
        """Name and type of the question that is meant."""
        types: dict[str, str] = {}
        sides: dict[str, bool] = {}
        words: dict[str, dict[str, None]] = {}
        others: dict[str, list[Any]] = {}
        for task, answered in islice(self.tasks(), _FIRST_RECORDS):
            for result in (one for annotation in answered for one in results_of(annotation)):
                name, kind = as_text(result.get("from_name")), str(result.get("type", "")).lower()
                if name is not None and kind in _ANSWERS:
                    types.setdefault(name, kind)
                    chosen, two = as_labels(_value(result).get("choices")), _has_sides(task)
                    named = len(chosen) == 1 and side(chosen[0]) is not None and two
                    sides[name] = sides.get(name, True) and named
                    if kind == "choices" and two:
                        words.setdefault(name, {}).update(dict.fromkeys(chosen))
                else:
                    others.setdefault(name or kind, []).append({**result, **_value(result), kind: True})
        if not types and others:
            name, values = next(iter(others.items()))
            raise JudgmentError(
                not_supported(f"the answers to {name!r} are", unsupported_kind(values) or "regions", other=False)
            )
        name = self.rows.choose_question(types)
        if types[name] == "ranker" and self.rows.options.levels is not None:
            return name, "buckets"
        # choices of a side, which other than pairwise may be a tie
        if types[name] == "choices" and (sides[name] or (self.codes and name in words)):
            return name, "pairwise"
        if name in words and sum(side(word) is not None for word in words[name]) and not self.rows.options.columns:
            # some choices name a side and others do not
            codes = {word: side(word) or "tie" for word in words[name]}
            unclear = first_few(repr(word) for word in words[name] if side(word) is None)
            raise JudgmentError(
                f"{name!r} chooses between two sides, but {unclear} names none; say what they mean: "
                f"{option('winner_codes', codes)}, or for classes of tasks: {option('columns', {'item': 'id'})}"
            )
        return name, types[name]

    def _annotation(self, task: Record, annotation: Record, name: str, kind: str) -> None:
        """One annotator's answer to the question."""
        rows, answer = self.rows, self.rows.options.answer
        rows.n_read += 1
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            rows.drop("skipped")
            return
        results = [one for one in results_of(annotation) if str(one.get("type", "")).lower() in _ANSWERS]
        new = next((as_text(one.get("from_name")) for one in results if as_text(one.get("from_name")) != name), None)
        if new is not None and answer is None:
            choose_question([name, new], None)
        mine = [one for one in results if as_text(one.get("from_name")) == name]
        whole = [one for one in mine if not (_REGION & _value(one).keys())]
        if not whole:
            rows.drop("about a part of the task" if mine else "without an answer")
            self.parts += [_value(one) for one in mine]
            return
        cells = {
            "annotator": as_person(annotation.get("completed_by", annotation.get("created_username"))),
            "time": annotation.get("created_at"),
            "duration": as_number(annotation.get("lead_time")),
        }
        gold = bool(annotation.get("ground_truth") or annotation.get("honeypot"))
        parts = [result for result in whole if result.get("item_index") is not None]
        if len(whole) > max(len(parts), 1):
            rows.drop("answered twice", len(whole) - max(len(parts), 1))
            rows.n_read += len(whole) - max(len(parts), 1)
        for result in parts or whole[:1]:
            value = _value(result).get(_ANSWERS.get(str(result.get("type", "")).lower(), "ranker"))
            place = result.get("item_index")
            # an answer about one of several images or paragraphs of a task is about that one
            about = task if place is None else task | {"id": f"{as_text(task.get('id'))}[{as_text(place)}]"}
            rows.n_read += result is not (parts or whole)[0]
            # what the user names may be a field of the annotation too
            self._answer(annotation | about if rows.options.columns else about, kind, value, cells, gold=gold)

    def _answer(self, task: Record, kind: str, value: Any, cells: Cells, *, gold: bool) -> None:
        """One answer, as a judgment or as truth."""
        rows, item = self.rows, task.get("id")
        nested = {"pairwise": self._pair, "ranker": self._ranking, "buckets": self._buckets}.get(kind)
        if nested is not None:
            nested(task, value, cells, gold=gold)
            return
        rows.roles |= {"item": "id", "grade": f"value.{_ANSWERS[kind]}"}
        number, labels = as_number(value), as_labels(value)
        if kind == "taxonomy":
            # paths, joined
            paths = value if isinstance(value, list) else []
            paths = paths if all(isinstance(path, list) for path in paths) else [paths]
            labels = [path for path in (" / ".join(as_labels(path)) for path in paths) if path]
        if not labels or (kind in ("rating", "number") and number is None):
            rows.drop("without an answer")
        elif kind in ("rating", "number"):
            self._keep(task, {"item": item, "grade": number}, cells, gold=gold)
        elif not gold:
            self.labels.append((rows.hold(task), as_text(item), labels, cells))
        elif len(labels) > 1:
            self.n_gold_lists += 1
        else:
            rows.truth.append({"item": item, "grade": labels[0]})

    def _keep(self, task: Record, answer: Cells, cells: Cells, *, gold: bool) -> None:
        """Keep an answer as truth, or as a judgment by somebody at some time."""
        if gold:
            self.rows.truth.append(answer)
        else:
            self.rows.add(task, **answer, **cells)

    def _pair(self, task: Record, value: Any, cells: Cells, *, gold: bool) -> None:
        """Which of two sides was chosen."""
        rows, data, chosen = self.rows, data_of(task), self.rows.options.columns.keys()
        word = as_text(value[0] if isinstance(value, list) and value else value)
        winner = self.codes.get(word or "", side(word))
        if winner is None:
            rows.drop("without an answer" if word is None else "with an answer that names no side")
            return
        if self.sides is None and not {"left", "right"} <= chosen:
            self.sides = pair_columns(_plain_fields(task), "data.")
            if self.sides is None:
                raise JudgmentError(_no_sides(task))
        left, right = self.sides or ("", "")
        rows.roles |= {"left": f"data.{left}", "right": f"data.{right}", "winner": "value.selected"}
        both = [as_text(data.get(name)) for name in (left, right)]
        if not {"left", "right"} <= chosen and None in both:
            rows.drop(f"without {left} or {right}")
        elif both[0] == both[1] and not {"left", "right"} <= chosen:
            rows.drop("with the same item on both sides")
        else:
            pair = {"query": self._context(task), "left": both[0], "right": both[1], "winner": winner}
            self._keep(task, pair, cells, gold=gold)

    def _ranking(self, task: Record, value: Any, cells: Cells, *, gold: bool) -> None:
        """A list best first; several buckets are refused, as their order is not in the file."""
        rows = self.rows
        if isinstance(value, Mapping):
            named = _named_buckets(value)
            if len(named) > 1:
                rows.refuse("buckets", named=first_few(map(repr, named)), levels=option("levels", list(named)))
            value = next(iter(named.values()), [])
        query = self._context(task)
        rows.roles |= {"item": "value.ranker", "rank": "place in value.ranker"}
        names = value if isinstance(value, list) else []
        if gold:
            rows.truth += [{"query": query, "item": name, "rank": place} for place, name in enumerate(names, 1)]
        elif not rows.add_ranking(task, names, None, query=query, **cells):
            rows.drop("naming an item twice" if names else "without an answer")

    def _buckets(self, task: Record, value: Any, cells: Cells, *, gold: bool) -> None:
        """Each item with the name of its bucket as the grade."""
        query = self._context(task)
        self.rows.roles |= {"item": "value.ranker[]", "grade": "bucket of value.ranker"}
        graded = [(name, bucket) for bucket, names in _named_buckets(value).items() for name in as_labels(names)]
        if not graded:
            self.rows.drop("without an answer")
        for name, bucket in graded:
            self._keep(task, {"query": query, "item": name, "grade": bucket}, cells, gold=gold)

    def _context(self, task: Record) -> str:
        """What the task asks about: its context, else its id."""
        context = context_of(data_of(task))
        self.rows.roles["query"] = f"data.{context[0]}" if context else "id"
        return (context[1] if context else as_text(task.get("id"))) or "1"


def tasks(source: Source) -> Tasks:
    """Each task of a full export with its annotations."""
    for number, task in enumerate(records(source, shape=_SHAPE), 1):
        if isinstance(task.get("task"), dict) and "result" in task:
            # as written to a target storage: an annotation with its task inside
            check_shape(task, {"task": _SHAPE, **_ANNOTATION}, f"record {number}")
            yield {"id": number} | task["task"], [task]
            continue
        listed = task.get("annotations", task.get("completions"))
        yield ({"id": number} | task if task.get("id") is None else task), listed or []


def _rows(source: Source, fields: list[str]) -> Tasks:
    """Each row of the short formats as a task with one annotation."""
    for row in records(source):
        data = {name.removeprefix("_data_"): row[name] for name in row if name not in _ROW_KEYS and name not in fields}
        results = [_result(name, _cell(row.get(name)), data) for name in fields]
        annotation = {"completed_by": row.get("annotator"), "result": [one for one in results if one]}
        yield {"id": row.get("id"), "data": data}, [annotation | {k: row.get(k) for k in ("created_at", "lead_time")}]


def _answer_fields(rows: Collector) -> list[str]:
    """Fields of a row that hold answers: by their shape, else because they differ between annotators of one task."""
    first, answer = list(islice(records(rows.source), _FIRST_RECORDS)), rows.options.answer
    names = [name for name in dict.fromkeys(name for row in first for name in row) if name not in _ROW_KEYS]
    shaped = [name for name in names if any(_result(name, _cell(row.get(name)), {}, shaped=True) for row in first)]
    if answer is not None:
        return [answer] if answer in names else shaped or names
    varying: list[str] = []
    classes: list[str] = []
    for name in names:
        given = [(as_text(row.get("id")), word) for row in first if (word := as_text(row.get(name)))]
        if len(set(given)) > len({task for task, _ in given}):
            varying.append(name)
            words = [word for _, word in given]
            # a choice stands there as plain text, and so does a comment, of which hardly two are the same
            if name not in shaped and 2 * len(set(words)) <= len(words) and is_scale(words):
                classes.append(name)
    if shaped:
        return [*shaped, *classes]
    if len(varying) == 1:
        return varying
    for name in names:
        kind = unsupported_kind([_cell(row.get(name)) for row in first])
        if kind in ("regions", "spans", "relations"):
            raise JudgmentError(not_supported(f"{name!r} holds", kind, other=False))
    raise JudgmentError(
        f"which field holds the answers is not clear ({first_few(map(repr, names))}); name it, as in "
        f"{option('answer', (varying or names or ['choice'])[0])}"
    )


def _result(name: str, value: Any, data: Mapping[str, Any], *, shaped: bool = False) -> dict[str, Any] | None:
    """A cell as the result of a full export; ``shaped`` takes only cells that no data field would hold."""
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, Mapping):
        kind = next((kind for kind, key in _ANSWERS.items() if key in first), None)
        return {"from_name": name, "type": kind, "value": dict(first)} if kind else None
    if shaped or first is None:
        return None
    if str(first).lower() in ("left", "right") and pair_columns(data):
        return {"from_name": name, "type": "pairwise", "value": {"selected": first}}
    if as_number(first) is not None:
        return {"from_name": name, "type": "rating", "value": {"rating": first}}
    return {"from_name": name, "type": "choices", "value": {"choices": value}}


def _cell(value: Any) -> Any:
    """A cell of CSV that holds JSON as what it means; any other as it is."""
    return parse_json(value, value) if isinstance(value, str) and value[:1] in ("[", "{") else value


def results_of(annotation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The results of an annotation."""
    return annotation.get("result") or []


def _value(result: Mapping[str, Any]) -> dict[str, Any]:
    """The value of a result."""
    return result.get("value") or {}


def data_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a task."""
    return task.get("data") or {}


def _no_sides(task: Mapping[str, Any]) -> str:
    """Sentence for a task of pairs whose sides no names of fields tell; two entries of a list are proposed."""
    data = data_of(task)
    listed = next((name for name, value in data.items() if isinstance(value, list) and len(value) == 2), None)
    paths: list[Any] = [..., ...]
    if listed is not None:
        for place, value in enumerate(data[listed]):
            paths[place] = f"data.{listed}.{place}"
            if isinstance(value, Mapping):
                # what names an entry of a list
                names = [name for name in ("model", "id", "name", "title", "text", "body") if as_text(value.get(name))]
                paths[place] += f".{names[0] if names else next(iter(value), 'id')}"
    elif len(fields := [name for name in _plain_fields(task) if name.lower() not in CONTEXTS]) == 2:
        paths = [f"data.{name}" for name in fields]
    return (
        f"task {task.get('id')} has no two fields such as text1 and text2 for the sides (it has "
        f"{first_few(map(repr, data))}); name them with {option('columns', dict(zip(SIDES, paths, strict=True)))}"
    )


def _has_sides(task: Mapping[str, Any]) -> bool:
    """Whether two or more fields of a task are called like two sides."""
    try:
        return pair_columns(_plain_fields(task)) is not None
    except JudgmentError:
        return True


def _plain_fields(task: Mapping[str, Any]) -> list[str]:
    """Names of the fields of a task's data that hold text or numbers."""
    return [name for name, value in data_of(task).items() if isinstance(value, str | int | float)]


def _named_buckets(value: Any) -> dict[str, list[Any]]:
    """Buckets by name, without the one of what was not sorted."""
    buckets = value if isinstance(value, Mapping) else {}
    return {str(name): ids for name, ids in buckets.items() if name != "_" and isinstance(ids, list)}
