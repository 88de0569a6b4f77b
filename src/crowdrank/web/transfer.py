"""Judgments of a campaign as files and as the tables that the verbs take."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import sqlalchemy as sa
from pydantic import Field

from ..errors import JudgmentError
from ..io.exports import IMPORTERS
from ..io.judgments import read_judgments
from ..io.notices import collect_notices, say
from ..io.truth import read_truth
from ..wording import either
from .campaign_file import Json, Question, Settings, must_be
from .collection import Collection, Fault, JudgmentNumber, Session, record_event, sql
from .overview import consensus_view, item_ids
from .setup import metadata, target_key, target_row
from .submitting import MAX_COMMENT, body_hash, settle_after_answer, take_seat

ANSWER_COLUMNS: dict[str, Json] = {
    "grade": {"item": pl.String, "grade": pl.Int64},
    "preference": {"left": pl.String, "right": pl.String, "winner": pl.String},
    "ranking": {"item": pl.String, "rank": pl.Int64, "ranking": pl.String},
}
"""Columns of each kind of judgment besides query, annotator and time."""


def judgment_frame(
    kind: str, rows: Sequence[Json], *, single: bool | None = None, grade: Any = pl.Int64
) -> pl.DataFrame:
    """Return judgments in the owner's ids as the table that ``crowdrank aggregate`` reads.

    Without a query where there is one without a name only; ``single`` says so of rows that are some of them.
    """
    rows = [one for row in rows for one in by_item(row)]
    schema: Json = {"query": pl.String, **ANSWER_COLUMNS[kind], "annotator": pl.String, "time": pl.Float64}
    schema |= {"grade": grade} if kind == "grade" else {}
    frame = pl.DataFrame({name: [row[name] for row in rows] for name in schema}, schema=schema)
    # one query without a name is no query at all
    single = bool((frame["query"] == "").all()) if single is None else single
    return frame.drop("query") if single else frame


def by_item(row: Json) -> Iterator[Json]:
    """Return a judgment as the rows of a table: of a ranking one for each item, of another itself."""
    if "order" not in row:
        yield row
        return
    rest = {name: cell for name, cell in row.items() if name != "order"}
    for rank, group in enumerate(row["order"], 1):
        for item in group:
            place = None if row.get("skipped") else rank
            yield {**rest, "item": item, "rank": place, "ranking": row["submission"]}


_PAGE_ROWS, _TEXTS_AT_ONCE, _MOST_LISTED = 5_000, 200, 10_000
PageLength = Annotated[int, Field(ge=1, le=_MOST_LISTED), must_be(f"a whole number from 1 to {_MOST_LISTED}")]
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def judgment_page(db: Session, after: JudgmentNumber = 0, limit: PageLength = 1000) -> Json:
    """Return judgments behind a number, and the number to go on from."""
    rows = sql.judgment_page.rows(db, after=after, upto=2**62, limit=limit)
    ids = item_ids(db, rows)
    judgments = [plain_judgment(db.settings, row, ids) for row in rows]
    return {"judgments": judgments, "next_after": rows[-1].seq if rows else after}


def plain_judgment(settings: Settings, row: Any, ids: dict[int, str]) -> Json:
    """Return a judgment in the owner's ids."""
    answer = json.loads(row.answer or "{}")
    items = [ids[item] for item in json.loads(row.items)]
    unanswered: dict[str, Json] = {
        "grade": {"item": items[0], "grade": None},
        "preference": {"left": items[0], "right": items[-1], "winner": None},
        "ranking": {"order": []},
    }
    said = with_ids(answer, ids)
    judgment: Json = {"query": row.query}
    judgment |= {name: said.get(name, cell) for name, cell in unanswered[settings.kind].items()}
    if settings.main_question.strength:
        judgment["strength"] = answer.get("strength", 0 if "winner" in answer else None)
    if settings.main_question.cant_tell:
        judgment["cant_tell"] = "cant_tell" in answer
    beside = answer.get("answers", {})
    for question in settings.questions:
        if question is not settings.main_question:
            judgment[f"question {question.name}"] = plain_value(beside.get(question.name), ids, question)
    if settings.questions:
        judgment["answers"] = {name: with_ids(value, ids) for name, value in beside.items()}
    return judgment | {
        "annotator": row.annotator, "annotator_kind": row.annotator_kind, "time": row.at / 1e6, "seconds": row.seconds,
        "counted": bool(row.counted) and row.withdrawn_at is None, "withdrawn": row.withdrawn_at is not None,
        "check": bool(row.is_check), "paid": bool(row.paid), "seq": row.seq, "submission": row.submission,
        "replaces": row.replaces, "comment": row.comment,
    }  # fmt: skip


def with_ids(kept: Json, ids: Mapping[Any, Any]) -> Json:
    """Return an answer with other ids of its items."""
    found = dict(kept)
    if "winner" in kept:
        found |= {side: ids[kept[side]] for side in ("left", "right")}
    if "order" in kept:
        found["order"] = [[ids[item] for item in group] for group in kept["order"]]
    return found


def is_usable(row: Json) -> bool:
    """Return whether a judgment counts and says something that a model can use."""
    said = row["order"] if "order" in row else row["winner"] if "winner" in row else row["grade"]
    return bool(row["counted"]) and said not in (None, [])


def plain_value(kept: Json | None, ids: Mapping[int, str], question: Question) -> Any:
    """Return a kept answer as one cell of a table, in the owner's ids; ``None`` where there is none."""
    if kept is None:
        return None
    if "cant_tell" in kept:
        return "can't tell"
    if "winner" in kept:
        return "tie" if kept["winner"] == "tie" else ids[kept[kept["winner"]]]
    if "order" in kept:
        return " > ".join(" = ".join(ids[item] for item in group) for group in kept["order"])
    if "grade" in kept:
        return question.grades[kept["grade"]]
    value = next(iter(kept.values()))
    return "; ".join(value) if isinstance(value, list) else value


def skips(db: Session) -> Iterator[Json]:
    """Return every request that somebody gave back, as a judgment without an answer: whose, on what, and why."""
    ids, after = item_ids(db), 0
    while rows := sql.skips.rows(db, after=after, limit=_PAGE_ROWS):
        after = rows[-1].id
        for row in rows:
            judgment = plain_judgment(db.settings, row, ids)
            if "order" in judgment:
                judgment["order"] = [[ids[item]] for item in json.loads(row.items)]
            yield {**judgment, "skipped": row.reason or "no reason"}


def all_judgments(db: Session, upto: int | None = None) -> Iterator[Json]:
    """Return every judgment of a moment up to a number, in order."""
    last = sql.campaign.first(db).seq
    last = last if upto is None else min(upto, last)
    ids, after = item_ids(db), 0
    while rows := sql.judgment_page.rows(db, after=after, upto=last, limit=_PAGE_ROWS):
        after = rows[-1].seq
        for row in rows:
            yield plain_judgment(db.settings, row, ids)


def export(
    collection: Collection, format: str, which: str, upto: int | None, margin: float | None = None, *,
    external: bool = False, question: str = "",
) -> Iterator[bytes]:  # fmt: skip
    """Return an export in pieces, all of one moment; with a ``margin`` pairs are those of the consensus.

    What panels call annotators is told with ``external`` only; with a ``question`` its answers are the judgments.
    """
    asked = {one.name: one for one in collection.settings.questions}
    if question and (question not in asked or format not in _OF_QUESTIONS):
        known = f"one of {', '.join(asked)}, with format={either(_OF_QUESTIONS)}"
        words = known if asked else "left out, as there is one"
        raise Fault("invalid", f"question must be {words}", field="question")
    if format not in FORMATS:
        raise Fault("invalid", f"format must be one of {', '.join(FORMATS)}", field="format")

    def pieces() -> Iterator[bytes]:
        with collection.store.snapshot() as connection:
            db = Session(collection, connection)
            rows: Iterable[Json] = all_judgments(db, upto)
            whole = which == "all" or format == "native"
            if question:
                rows = question_rows(collection.settings, asked[question], rows)
            elif not whole:
                rows = (row for row in rows if is_usable(row))
            if (whole or format in _WITH_SKIPS) and upto is None and not question:
                rows = chain(({**row, "skipped": None} for row in rows), skips(db))
            if external:
                panel = {row.name: row.external for row in sql.external_ids.rows(db)}
                rows = ({**row, "external_id": panel.get(row["annotator"])} for row in rows)
            writer = FORMATS[format][2] if margin is None else partial(_consensus_pairs, margin)
            texts = writer(collection, rows)
            while part := "".join(islice(texts, _TEXTS_AT_ONCE)):
                yield part.encode("utf-8", "replace")

    return pieces()


def question_rows(settings: Settings, question: Question, rows: Iterable[Json]) -> Iterator[Json]:
    """Return the counted answers to one of several questions as judgments: of several classes, a yes or no each."""
    for row in rows:
        kept = row if question == settings.main_question else row["answers"].get(question.name)
        if not row["counted"] or kept is None or kept.get("cant_tell"):
            continue
        about = {name: row[name] for name in ("query", "annotator", "annotator_kind", "time", "seconds", "submission")}
        item = {"item": row["item"] if "item" in row else " | ".join(items_of(row))}
        if question.kind == "choice" and question.several:
            for label in question.choices:
                yield {**about, **item, "criterion": label, "grade": int(label in kept["choice"])}
        elif question.kind in ("grade", "choice", "slider"):
            yield {**about, **item, "grade": kept[{"slider": "value"}.get(question.kind, question.kind)]}
        elif question.kind == "text":
            yield {**about, **item, "text": kept["text"]}
        else:
            said = ("left", "right", "winner", "strength", "order")
            yield about | {name: kept[name] for name in said if name in kept}


def table_rows(collection: Collection, rows: Iterable[Json]) -> Iterator[Json]:
    """Return judgments as the rows of a table that ``crowdrank aggregate`` reads; a ranking has a row for each item."""
    # one query without a name is no query at all
    single = not collection.read(sql.n_named_queries.number)
    for row in rows:
        row.pop("answers", None)
        if single:
            row.pop("query")
        yield from by_item(row)


def _native(collection: Collection, rows: Iterable[Json]) -> Iterator[str]:
    """One object to a line, with everything that is known of a judgment."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _jsonl(collection: Collection, rows: Iterable[Json]) -> Iterator[str]:
    """One object to a line."""
    return _native(collection, table_rows(collection, rows))


def _csv(collection: Collection, rows: Iterable[Json]) -> Iterator[str]:
    """A table for spreadsheets, in which no cell is taken for a formula."""
    for number, row in enumerate(table_rows(collection, rows)):
        yield csv_text([row.values()] if number else [list(row), row.values()])


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as lines of a CSV file, in which no cell is taken for a formula."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([escape_formula(cell) for cell in row] for row in rows)
    return out.getvalue()


def escape_formula(cell: Any) -> Any:
    """Return text that a spreadsheet would take for a formula behind an apostrophe that our reader takes off again."""
    runs = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if runs else cell


def _label_studio(collection: Collection, rows: Iterable[Json]) -> Iterator[str]:
    """Label Studio tasks with one annotation each: rating, pairwise choice or ranking."""
    yield "["
    for place, row in enumerate(rows):
        skipped, data = row.get("skipped"), {"query": row["query"]}
        if "grade" in row:
            data["item"] = row["item"]
            kind, of, value = "rating", "item", {"rating": None if row["grade"] is None else row["grade"] + 1}
        elif "winner" in row:
            data |= {"left": row["left"], "right": row["right"]}
            kind, of, value = "pairwise", "left,right", {"selected": row["winner"]}
        else:
            items = [item for group in row["order"] for item in group]
            data["items"] = sorted(items)
            kind, of, value = "ranker", "items", {"ranker": items}
        if skipped:
            data["skipped"] = skipped
        result = {"type": kind, "from_name": kind, "to_name": of, "value": value}
        annotation = {
            "id": row["seq"], "unique_id": row["submission"], "completed_by": {"email": row["annotator"]},
            "lead_time": row["seconds"], "was_cancelled": bool(skipped), "ground_truth": False,
            "result": [] if skipped else [result],
        }  # fmt: skip
        task = {"id": row["seq"], "data": data, "annotations": [annotation]}
        yield ("" if place == 0 else ",\n") + json.dumps(task, ensure_ascii=False)
    yield "]\n"


def _argilla(collection: Collection, rows: Iterable[Json]) -> Iterator[str]:
    """Argilla records, one to a line, each with one submitted response."""
    for row in rows:
        if "grade" in row:
            fields, name, value = {"item": row["item"]}, "rating", row["grade"]
        elif "winner" in row:
            fields, name, value = {"left": row["left"], "right": row["right"]}, "label", row["winner"]
        else:
            items = [item for group in row["order"] for item in group]
            ranked = [{"value": item, "rank": rank} for rank, group in enumerate(row["order"], 1) for item in group]
            fields, name, value = {"items": " ".join(sorted(items))}, "ranking", ranked
        response: Json = {"user_id": row["annotator"], "status": "submitted", "values": {name: {"value": value}}}
        record: Json = {"id": row["submission"], "fields": {"query": row["query"], **fields}, "responses": [response]}
        if row.get("skipped"):
            response |= {"status": "discarded", "values": {}}
            record["metadata"] = {"skipped": row["skipped"]}
        yield json.dumps(record, ensure_ascii=False) + "\n"


def _pairs(collection: Collection, rows: Iterable[Json]) -> Iterator[str]:
    """Preference pairs for training, one for each judgment that is no tie, with the contents of the items."""
    content = _contents(collection)
    for row in rows:
        if row.get("winner") in (None, "tie"):
            continue
        better, worse = (row["left"], row["right"]) if row["winner"] == "left" else (row["right"], row["left"])
        chosen, prompt = content[row["query"], better]
        pair = {"prompt": prompt, "chosen": chosen, "rejected": content[row["query"], worse][0]}
        yield json.dumps({**pair, "annotator": row["annotator"]}, ensure_ascii=False) + "\n"


def _consensus_pairs(margin: float, collection: Collection, rows: Iterable[Json]) -> Iterator[str]:
    """Preference pairs for training: items of a query whose scores in the latest consensus are so far apart."""
    content = _contents(collection)
    queries: dict[str, list[Json]] = {}
    for row in collection.read(consensus_view)["items"]:
        queries.setdefault(row.get("query", ""), []).append(row)
    for query, items in queries.items():
        for better, worse in combinations(sorted(items, key=lambda row: -row["score"]), 2):
            apart = better["score"] - worse["score"]
            if apart >= margin and apart > 0:
                chosen, prompt = content[query, better["item"]]
                pair = {"prompt": prompt, "chosen": chosen, "rejected": content[query, worse["item"]][0]}
                yield json.dumps({**pair, "margin": apart}, ensure_ascii=False) + "\n"


def _contents(collection: Collection) -> dict[tuple[str, str], tuple[str, str]]:
    """Content of each item, and of its query."""
    rows = collection.read(sql.all_contents.rows)
    return {(one.query, one.item): (one.content, one.query_content or one.query) for one in rows}


def _consensus(collection: Collection, rows: Iterable[Json]) -> Iterator[str]:
    """A table of all items with the consensus on every question, a question's name before the names of its columns."""
    settings, found = collection.settings, dict[tuple[str, str], Json]()
    for question in ("", *(one.name for one in settings.more_questions)):
        try:
            view = collection.read(consensus_view, question=question)
        except Fault:
            if not question:
                raise
            # nobody has answered it yet
            continue
        for row in view["items"]:
            about = {name: row.pop(name) for name in ("query", "item") if name in row}
            row.pop("since_fit", None)
            cells = {f"{question} {name}".strip(): cell for name, cell in row.items()}
            found.setdefault((about.get("query", ""), about["item"]), about).update(cells)
    names = dict.fromkeys(chain.from_iterable(found.values()))
    yield csv_text([names, *([row.get(name) for name in names] for row in found.values())])


def _qrels(collection: Collection, rows: Iterable[Json]) -> Iterator[str]:
    """TREC qrels: the grade of each item in the latest consensus, rounded."""
    for row in collection.read(consensus_view)["items"]:
        grade = row["grade"] if isinstance(row.get("grade"), int | float) else row["score"]
        query, item = ("_".join(str(one).split()) or "1" for one in (row.get("query", ""), row["item"]))
        yield f"{query} 0 {item} {max(0, round(grade))}\n"


Writer = Callable[[Collection, Iterable[Json]], Iterator[str]]
FORMATS: dict[str, tuple[str, str, Writer]] = {
    "native": ("application/x-ndjson", "native.jsonl", _native),
    "jsonl": ("application/x-ndjson", "judgments.jsonl", _jsonl),
    "csv": ("text/csv; charset=utf-8", "judgments.csv", _csv),
    "label-studio": ("application/json", "label-studio.json", _label_studio),
    "argilla": ("application/x-ndjson", "argilla.jsonl", _argilla),
    "pairs": ("application/x-ndjson", "pairs.jsonl", _pairs),
    "qrels": ("text/plain; charset=utf-8", "qrels.txt", _qrels),
    "consensus": ("text/csv; charset=utf-8", "consensus.csv", _consensus),
}
"""Type, name of the file and writer of every format that is streamed."""

_OF_QUESTIONS = ("jsonl", "csv", "parquet")
_WITH_SKIPS = ("label-studio", "argilla")
"""Formats that have a word for what was skipped; the others tell of it with ``which=all``."""


PIECE = 500
"""Rows of one transaction: few enough that annotators hardly notice."""

_SPACE = uuid.UUID("6f1c0a4e-5d58-4a63-9d0e-3c1b7b1f2a10")


IMPORTED = ("native", "table", "qrels", "pairs", *IMPORTERS)
"""What can be taken in; whatever is no format of ours is read as ``crowdrank aggregate --from`` reads it."""


def import_file(collection: Collection, path: Path, format: str, options: Mapping[str, Any] | None = None) -> Json:
    """Take in a file; return how many judgments were kept, were there before, or were left out and why.

    ``options`` are those of :func:`crowdrank.read_judgments`, such as ``answer`` and ``columns``.
    """
    with collect_notices() as notes:
        if format == "qrels":
            truths = [
                {"campaign": collection.id, "query": str(row.get("query", "")), "item": str(row["item"]),
                 "truth": float(row["grade"])}
                for row in read_truth(path).frame().iter_rows(named=True)
            ]  # fmt: skip
            return {"truths": collection.write(sql.set_truth.run_many, truths), "notes": notes}
        native = format == "native"
        rows = list(_native_rows(path) if native else _foreign_rows(collection, path, format, options or {}))
    counts: Counter[str] = Counter()
    known: dict[str, dict[str, int]] = {}
    for row in collection.read(sql.items.rows):
        known.setdefault(row.query, {})[row.item] = row.id
    for start in range(0, len(rows), PIECE):
        part = rows[start : start + PIECE]
        counts += collection.write(lambda db, part=part: Counter(_keep(db, row, known, format) for row in part))
    report = {"kept": counts.pop("kept", 0), "known": counts.pop("known", 0), "left_out": dict(counts), "notes": notes}
    detail = {key: value for key, value in report.items() if key != "notes"}
    collection.write(record_event, "owner", "import", detail)
    return report


def _native_rows(path: Path) -> Iterator[Json]:
    """Judgments as the native export holds them."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = {**_DEFAULTS, **json.loads(line.decode("utf-8"))}
                if row["skipped"]:
                    continue
                row["submission"] = str(uuid.UUID(row["submission"]))
                # what no database takes, such as half of a character, is refused here
                texts = [str.encode(row[name]) for name in _NATIVE_TEXTS]
                numbers = [row[name] is None or math.isfinite(row[name]) for name in _NATIVE_NUMBERS]
                if not (all(numbers) and texts[-1]):
                    raise ValueError
            except (ValueError, TypeError, KeyError, AttributeError):
                raise JudgmentError(f"line {number} is not a judgment in the native format; export it again") from None
            yield row


def _foreign_rows(collection: Collection, path: Path, format: str, options: Mapping[str, Any]) -> Iterator[Json]:
    """Judgments of any file that ``crowdrank aggregate`` reads, with ids that are the same every time."""
    settings = collection.settings
    source = {"pairs": "chosen-rejected"}.get(format, format)
    try:
        judgments: Any = read_judgments(path, source=source, **options)
    except JudgmentError:
        if settings.kind != "grade" or "levels" in options:
            raise
        # grades in words are those of the campaign
        judgments = read_judgments(path, source=source, levels=list(settings.grades), **options)
    if judgments.kind != settings.kind:
        raise JudgmentError(f"the file holds {judgments.kind}s and the campaign asks for {settings.kind}s")
    if not judgments.n_annotators:
        raise JudgmentError("the file does not say who judged; add an annotator column")
    seen: Counter[str] = Counter()
    # stars are counted from 1, grades from 0
    stars = settings.kind == "grade" and format == "label-studio" and judgments.grade.min() >= 1
    if stars:
        say(f"stars 1 to {len(settings.grades)} are taken for the grades, worst first")
    for row in _by_judgment(judgments):
        if stars:
            row["grade"] -= 1
        row = {name: str(cell) if name in _ID_COLUMNS else cell for name, cell in row.items()}
        row["seconds"] = row.pop("duration", None)
        key = json.dumps([format, row["annotator"], row.get("query", ""), *items_of(row)])
        seen[key] += 1
        name = str(uuid.uuid5(_SPACE, f"{key}#{seen[key]}"))
        yield {**_DEFAULTS, **row, "submission": name}


_DEFAULTS: Json = {
    "query": "", "seconds": None, "time": None, "annotator_kind": "person", "counted": True, "withdrawn": False,
    "comment": "", "skipped": None,
}  # fmt: skip
_NATIVE_TEXTS, _NATIVE_NUMBERS = ("query", "annotator"), ("seconds", "time")
_SAID = {"grade": ("grade",), "preference": ("left", "right", "winner"), "ranking": ("order",)}
_ID_COLUMNS = ("query", "item", "left", "right", "annotator")


def _by_judgment(judgments: Any) -> Iterator[Json]:
    """Rows of judgments, one for each."""
    frame = judgments.frame()
    if judgments.kind != "ranking":
        for row in frame.iter_rows(named=True):
            if "winner" in row and row["winner"] not in ("left", "right", "tie"):
                row["winner"] = "left" if row["winner"] == row["left"] else "right"
            yield row
        return
    for _, part in frame.group_by("ranking", maintain_order=True):
        rows = part.sort("rank").to_dicts()
        groups: dict[Any, list[str]] = {}
        for row in rows:
            groups.setdefault(row["rank"], []).append(str(row["item"]))
        yield {**{k: v for k, v in rows[0].items() if k not in ("item", "rank")}, "order": list(groups.values())}


def items_of(row: Json) -> list[str]:
    """Return the items that a judgment is about, in a fixed order."""
    if "item" in row:
        return [row["item"]]
    if "left" in row:
        return sorted([row["left"], row["right"]])
    return sorted(item for group in row["order"] for item in group)


def _keep(db: Session, row: Json, known: dict[str, dict[str, int]], source: str) -> str:
    """What became of one judgment: kept, known, or why it was left out."""
    if sql.any_stored_as.first(db, submission=row["submission"]) is not None:
        return "known"
    answer, items = _answer(db.settings, row, known)
    if answer is None:
        return str(items)
    now = db.now()
    annotator = sql.lock_annotator_named.first(db, name=row["annotator"])
    if annotator is None:
        kind = row["annotator_kind"] if row["annotator_kind"] in ("person", "program") else "person"
        annotator = sql.insert_foreign_annotator.first(db, name=row["annotator"], kind=kind, now=now)
    keys = [target_key(items, is_check=is_check) for is_check in (False, True)]
    there = {one.key: one.id for one in sql.targets_of_keys.rows(db, keys=keys)}
    target = there.get(keys[0], there.get(keys[1]))
    if target is None:
        new = sa.insert(metadata.tables["target"]).returning(metadata.tables["target"].c.id)
        target = int(db.connection.execute(new, target_row(db.collection, row["query"], items, 0)).scalar_one())
    before = sql.request_of_annotator.first(db, target=target, annotator=annotator.id)
    withdrawn = bool(row["withdrawn"])
    if before is not None and not withdrawn:
        if before.state != "skipped":
            return "judged before by the same annotator"
        sql.expire_request.run(db, request=before.id)
    state = sql.lock_target.first(db, target=target)
    seat = None
    if row["counted"] and not withdrawn and not state.is_check:
        seat = take_seat(db, target)
        if seat is None and sql.want_one_more.run(db, target=target).rowcount:
            seat = take_seat(db, target)
    at = int(float(row["time"]) * 1e6) if row.get("time") is not None else now
    shown = json.dumps({"order": [answer["left"], answer["right"]] if "left" in answer else items, "seed": 0})
    request = sql.insert_answered_request.first(
        db, target=target, annotator=annotator.id, seat=seat, shown=shown, at=at
    )
    counted = int(seat is not None or bool(state.is_check and row["counted"] and not withdrawn))
    seq = sql.one_more_seq.first(db).seq
    sql.insert_imported_judgment.run(
        db, submission=row["submission"], seq=seq, request=request.id,
        annotator=annotator.id, target=target, answer=json.dumps(answer), seconds=row["seconds"], counted=counted,
        body_hash=body_hash(0, answer, row["seconds"]), paid=int(bool(row.get("paid", True))), at=at,
        withdrawn=at if withdrawn else None, source=source, comment=str(row["comment"])[:MAX_COMMENT],
    )  # fmt: skip
    if withdrawn:
        sql.expire_request.run(db, request=request.id)
    else:
        sql.count_answered.run(db, annotator=annotator.id, n=1)
        settle_after_answer(db, target)
    return "kept"


def _answer(settings: Settings, row: Json, known: dict[str, dict[str, int]]) -> tuple[Json | None, Any]:
    """An answer as it is kept and the items it is about; where it cannot be, nothing and why."""
    try:
        own = known[row["query"]]
        items = sorted(own[item] for item in items_of(row))
        beside = {name: with_ids(value, own) for name, value in row.get("answers", {}).items()}
        said: Json = {"cant_tell": True}
        if not row.get("cant_tell"):
            said = with_ids({name: row[name] for name in _SAID[settings.kind]}, own)
            if row.get("strength") and settings.kind == "preference":
                said["strength"] = row["strength"]
        if "grade" in said:
            grade = settings.grades.index(said["grade"]) if said["grade"] in settings.grades else said["grade"]
            if not float(grade).is_integer() or not 0 <= grade < len(settings.grades):
                return None, "grade outside the scale"
            said["grade"] = int(grade)
        return {**said, **({"answers": beside} if settings.questions else {})}, items
    except KeyError:
        return None, "unknown item"
    except (TypeError, ValueError):
        return None, "no answer"
