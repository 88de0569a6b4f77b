"""Judgments from elsewhere into a campaign: each once, however often the file comes."""

from __future__ import annotations

import json
import math
import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ..errors import JudgmentError
from ..io.exports import IMPORTERS
from ..io.judgments import read_judgments
from ..io.notices import listen, say
from ..io.truth import read_truth
from .claiming import lock_target, settle_after_answer, take_seat
from .collection import Collection, Statement, record_event
from .exporting import Row
from .setup import target_key, target_row
from .submitting import body_hash
from .tables import metadata

PIECE = 500
"""Rows of one transaction: few enough that annotators hardly notice."""

_LISTENING = threading.Lock()
"""Readers say what they understood to one listener at a time."""

_SPACE = uuid.UUID("6f1c0a4e-5d58-4a63-9d0e-3c1b7b1f2a10")

_ITEMS = Statement("SELECT id, query, item FROM item WHERE campaign = :campaign")
_ANNOTATOR = Statement("SELECT id FROM annotator WHERE campaign = :campaign AND name = :name", "FOR UPDATE")
_NEW_ANNOTATOR = Statement(
    "INSERT INTO annotator (campaign, name, kind, cost, joined_at) "
    "VALUES (:campaign, :name, :kind, 0, :now) RETURNING id"
)
_TARGET = Statement("SELECT id FROM target WHERE campaign = :campaign AND key = :key")
_STORED = Statement("SELECT 1 FROM judgment WHERE submission = :submission")
_ONCE = Statement(
    "SELECT id, state FROM request WHERE target = :target AND annotator = :annotator "
    "AND state IN ('offered', 'answered', 'skipped')"
)
_EXPIRED = Statement("UPDATE request SET state = 'expired' WHERE id = :request")
_ONE_MORE_WANTED = Statement("UPDATE target SET wanted = wanted + 1 WHERE id = :target AND wanted < most")
_REQUEST = Statement(
    "INSERT INTO request (target, annotator, seat, state, shown, offered_at, lease_until, lease_most, ended_at, cost) "
    "VALUES (:target, :annotator, :seat, 'answered', :shown, :at, :at, :at, :at, 0) RETURNING id"
)
_SEQ = Statement("UPDATE campaign SET seq = seq + 1 WHERE id = :campaign RETURNING seq")
_JUDGMENT = Statement(
    "INSERT INTO judgment (submission, campaign, seq, request, annotator, target, answer, body_hash, seconds, counted, "
    "paid, at, withdrawn_at, source) VALUES (:submission, :campaign, :seq, :request, :annotator, :target, :answer, "
    ":body_hash, :seconds, :counted, :paid, :at, :withdrawn, :source)"
)
_WITHDRAWN = Statement("UPDATE request SET state = 'expired' WHERE id = :request")
_ANSWERED = Statement("UPDATE annotator SET n_answered = n_answered + :n WHERE id = :annotator")
_TRUTH = Statement("UPDATE item SET truth = :truth WHERE campaign = :campaign AND query = :query AND item = :item")


FORMATS = ("native", "table", "qrels", "pairs", *IMPORTERS)
"""What can be taken in; whatever is no format of ours is read as ``crowdrank aggregate --from`` reads it."""


def import_file(
    collection: Collection, path: Path, format: str, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Take in a file; return how many judgments were kept, were there before, or were left out and why.

    ``options`` are those of :func:`crowdrank.read_judgments`, such as ``answer`` and ``columns``.
    """
    notes: list[str] = []
    with _LISTENING:
        listen(notes.append)
        try:
            if format == "qrels":
                return {"truths": _import_truth(collection, path), "notes": notes}
            imported = (
                _native_rows(path) if format == "native" else _foreign_rows(collection, path, format, options or {})
            )
            rows = list(imported)
        finally:
            listen(None)
    counts: Counter[str] = Counter()
    known = _known_items(collection)
    for start in range(0, len(rows), PIECE):
        part = rows[start : start + PIECE]
        keep = partial(_keep_all, collection, rows=part, known=known, source=format)
        counts += collection.store.submit(keep).result()
    report = {"kept": counts.pop("kept", 0), "known": counts.pop("known", 0), "left_out": dict(counts), "notes": notes}
    detail = {key: value for key, value in report.items() if key != "notes"}
    collection.store.submit(lambda c: record_event(collection, c, "owner", "import", detail)).result()
    return report


def _native_rows(path: Path) -> Iterator[Row]:
    """Judgments as the native export holds them."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = {**_DEFAULTS, **json.loads(line.decode("utf-8"))}
                row["submission"] = str(uuid.UUID(row["submission"]))
                # what no database takes, such as half of a character, is refused here
                texts = [str.encode(row[name]) for name in _NATIVE_TEXTS]
                numbers = [row[name] is None or math.isfinite(row[name]) for name in _NATIVE_NUMBERS]
                if not (all(numbers) and texts[-1]):
                    raise ValueError
            except (ValueError, TypeError, KeyError, AttributeError):
                raise JudgmentError(f"line {number} is not a judgment in the native format; export it again") from None
            yield row


def _foreign_rows(collection: Collection, path: Path, format: str, options: Mapping[str, Any]) -> Iterator[Row]:
    """Judgments of any file that ``crowdrank aggregate`` reads, with ids that are the same every time."""
    settings = collection.settings
    source = {"pairs": "chosen-rejected"}.get(format, format)
    judgments: Any = _read(path, source, settings.grades if settings.kind == "grade" else (), options)
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
        row.setdefault("query", "")
        row["seconds"] = row.pop("duration", None)
        key = json.dumps([format, row["annotator"], row["query"], *_items_of(row)])
        seen[key] += 1
        name = str(uuid.uuid5(_SPACE, f"{key}#{seen[key]}"))
        yield {
            "seconds": None,
            "annotator_kind": "person",
            "counted": True,
            "withdrawn": False,
            **row,
            "submission": name,
        }


_DEFAULTS: Row = {
    "query": "", "seconds": None, "time": None, "annotator_kind": "person", "counted": True, "withdrawn": False,
}  # fmt: skip
_NATIVE_TEXTS, _NATIVE_NUMBERS = ("query", "annotator"), ("seconds", "time")
_ID_COLUMNS = ("query", "item", "left", "right", "annotator")


def _read(path: Path, source: str, grades: Sequence[str], options: Mapping[str, Any]) -> Any:
    """The judgments of a file; grades in words are those of the campaign."""
    try:
        return read_judgments(path, source=source, **options)
    except JudgmentError:
        if not grades or "levels" in options:
            raise
        return read_judgments(path, source=source, levels=list(grades), **options)


def _by_judgment(judgments: Any) -> Iterator[Row]:
    """Rows of judgments, one for each."""
    frame = judgments.frame()
    if judgments.kind == "preference":
        for row in frame.iter_rows(named=True):
            if row["winner"] not in ("left", "right", "tie"):
                row["winner"] = "left" if row["winner"] == row["left"] else "right"
            yield row
        return
    if judgments.kind == "grade":
        yield from frame.iter_rows(named=True)
        return
    for _, part in frame.group_by("ranking", maintain_order=True):
        rows = part.sort("rank").to_dicts()
        groups: dict[Any, list[str]] = {}
        for row in rows:
            groups.setdefault(row["rank"], []).append(str(row["item"]))
        yield {**{k: v for k, v in rows[0].items() if k not in ("item", "rank")}, "order": list(groups.values())}


def _items_of(row: Row) -> list[str]:
    """The items that a judgment is about, in a fixed order."""
    if "item" in row:
        return [row["item"]]
    if "left" in row:
        return sorted([row["left"], row["right"]])
    return sorted(item for group in row["order"] for item in group)


def _known_items(collection: Collection) -> dict[tuple[str, str], int]:
    """Numbers of the campaign's items."""
    rows = collection.store.submit_read(lambda c: _ITEMS.rows(c, campaign=collection.id)).result()
    return {(row.query, row.item): row.id for row in rows}


def _keep_all(
    collection: Collection, connection: sa.Connection, rows: list[Row], known: dict[tuple[str, str], int], source: str
) -> Counter[str]:
    """What became of each of some judgments."""
    # in the order of targets, as all operations lock them
    return Counter(_keep(collection, connection, row, known, source) for row in rows)


def _keep(
    collection: Collection, connection: sa.Connection, row: Row, known: dict[tuple[str, str], int], source: str
) -> str:
    """What became of one judgment: kept, known, or why it was left out."""
    if _STORED.first(connection, submission=row["submission"]) is not None:
        return "known"
    answer, items = _answer(collection, row, known)
    if answer is None:
        return items if isinstance(items, str) else "unknown item"
    now = collection.now(connection)
    annotator = _ANNOTATOR.first(connection, campaign=collection.id, name=row["annotator"])
    if annotator is None:
        kind = row["annotator_kind"] if row["annotator_kind"] in ("person", "program") else "person"
        annotator = _NEW_ANNOTATOR.first(connection, campaign=collection.id, name=row["annotator"], kind=kind, now=now)
    target = _target_of(collection, connection, row, items)
    before = _ONCE.first(connection, target=target, annotator=annotator.id)
    withdrawn = bool(row["withdrawn"])
    if before is not None and not withdrawn:
        if before.state != "skipped":
            return "judged before by the same annotator"
        _EXPIRED.run(connection, request=before.id)
    state = lock_target(connection, target)
    seat = None
    if row["counted"] and not withdrawn and not state.is_check:
        seat = take_seat(connection, target)
        if seat is None and _ONE_MORE_WANTED.run(connection, target=target).rowcount:
            seat = take_seat(connection, target)
    at = int(float(row["time"]) * 1e6) if row.get("time") is not None else now
    shown = json.dumps({"order": [answer["left"], answer["right"]] if "left" in answer else items, "seed": 0})
    request = _REQUEST.first(connection, target=target, annotator=annotator.id, seat=seat, shown=shown, at=at)
    counted = int(seat is not None or bool(state.is_check and row["counted"] and not withdrawn))
    seq = _SEQ.first(connection, campaign=collection.id).seq
    _JUDGMENT.run(
        connection, submission=row["submission"], campaign=collection.id, seq=seq, request=request.id,
        annotator=annotator.id, target=target, answer=json.dumps(answer), seconds=row["seconds"], counted=counted,
        body_hash=body_hash(0, answer, row["seconds"]), paid=int(bool(row.get("paid", True))), at=at,
        withdrawn=at if withdrawn else None, source=source,
    )  # fmt: skip
    if withdrawn:
        _WITHDRAWN.run(connection, request=request.id)
    else:
        _ANSWERED.run(connection, annotator=annotator.id, n=1)
        settle_after_answer(collection, connection, target)
    return "kept"


def _target_of(collection: Collection, connection: sa.Connection, row: Row, items: Any) -> int:
    """The target that a judgment is about, laid out where it is new."""
    for is_check in (False, True):
        target = _TARGET.first(connection, campaign=collection.id, key=target_key(items, is_check=is_check))
        if target is not None:
            return int(target.id)
    new = target_row(collection, row["query"], items, 0)
    statement = sa.insert(metadata.tables["target"]).returning(metadata.tables["target"].c.id)
    return int(connection.execute(statement, new).scalar_one())


def _answer(collection: Collection, row: Row, known: dict[tuple[str, str], int]) -> tuple[dict[str, Any] | None, Any]:
    """An answer as it is kept and the items it is about; where it cannot be, nothing and why."""
    query, kind = row["query"], collection.settings.kind
    try:
        if kind == "grade":
            grade, item = row["grade"], known[query, row["item"]]
            if grade in collection.settings.grades:
                grade = collection.settings.grades.index(grade)
            if not float(grade).is_integer() or not 0 <= grade < len(collection.settings.grades):
                return None, "grade outside the scale"
            return {"grade": int(grade)}, [item]
        if kind == "preference":
            left, right = known[query, row["left"]], known[query, row["right"]]
            return {"left": left, "right": right, "winner": row["winner"]}, sorted([left, right])
        order = [[known[query, item] for item in group] for group in row["order"]]
        return {"order": order}, sorted(item for group in order for item in group)
    except KeyError:
        return None, "unknown item"
    except (TypeError, ValueError):
        return None, "no answer"


def _import_truth(collection: Collection, path: Path) -> int:
    """Number of items whose truth a qrels file gives."""
    rows = read_truth(path).frame().iter_rows(named=True)
    given = [(str(row.get("query", "")), str(row["item"]), float(row["grade"])) for row in rows]

    def keep(connection: sa.Connection) -> int:
        n_kept = 0
        for query, item, truth in given:
            changed = _TRUTH.run(connection, campaign=collection.id, query=query, item=item, truth=truth)
            n_kept += changed.rowcount
        return n_kept

    return collection.store.submit(keep).result()
