"""Judgments of a campaign as files and as the tables that the verbs take."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import polars as pl
import sqlalchemy as sa

from .campaign_file import Settings
from .collection import Collection, Statement
from .faults import Fault
from .overview import item_ids

ANSWER_COLUMNS: dict[str, dict[str, Any]] = {
    "grade": {"item": pl.String, "grade": pl.Int64},
    "preference": {"left": pl.String, "right": pl.String, "winner": pl.String},
    "ranking": {"item": pl.String, "rank": pl.Int64, "ranking": pl.String},
}
"""Columns of each kind of judgment besides query, annotator and time."""


def judgment_frame(settings: Settings, rows: Sequence[dict[str, Any]], *, single: bool | None = None) -> pl.DataFrame:
    """Return judgments in the owner's ids as the table that ``crowdrank aggregate`` reads.

    Without a query where there is one without a name only; ``single`` says so of rows that are some of them.
    """
    kind = settings.kind
    if kind == "ranking":
        rows = [
            {**row, "item": item, "rank": rank, "ranking": row["submission"]}
            for row in rows
            for rank, group in enumerate(row["order"], 1)
            for item in group
        ]
    schema: dict[str, Any] = {"query": pl.String, **ANSWER_COLUMNS[kind], "annotator": pl.String, "time": pl.Float64}
    frame = pl.DataFrame({name: [row[name] for row in rows] for name in schema}, schema=schema)
    # one query without a name is no query at all
    single = bool((frame["query"] == "").all()) if single is None else single
    return frame.drop("query") if single else frame


_PAGE_ROWS = 5_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

_JUDGMENTS = (
    "SELECT j.seq, j.submission, j.answer, j.seconds, j.counted, j.paid, j.at, j.withdrawn_at, j.replaces, "
    "a.name AS annotator, a.kind AS annotator_kind, t.query, t.items, t.is_check FROM judgment j "
    "JOIN annotator a ON a.id = j.annotator JOIN target t ON t.id = j.target "
)
_PAGE = Statement(
    _JUDGMENTS + "WHERE j.campaign = :campaign AND j.seq > :after AND j.seq <= :upto ORDER BY j.seq LIMIT :limit"
)
_TOUCHED = Statement(
    # the signs keep SQLite from going through all judgments by their numbers
    _JUDGMENTS + "WHERE j.target IN (SELECT n.target FROM judgment n WHERE n.campaign = :campaign AND n.seq > :after "
    "AND n.seq <= :upto) AND +j.seq <= :upto ORDER BY +j.seq"
)
_OF_TARGETS = Statement(_JUDGMENTS + "WHERE j.target IN :targets AND +j.seq <= :upto ORDER BY +j.seq")
_OF_QUERIES = Statement("SELECT id, items FROM target WHERE campaign = :campaign AND query IN :queries")
_SEQ = Statement("SELECT seq FROM campaign WHERE id = :campaign")

Row = dict[str, Any]


def judgment_page(collection: Collection, connection: sa.Connection, after: int, limit: int) -> Row:
    """Return judgments behind a number, and the number to go on from."""
    ids = item_ids(collection, connection)
    rows = page(collection, connection, after, 2**62, limit)
    judgments = [plain_judgment(collection, row, ids) for row in rows]
    return {"judgments": judgments, "next_after": rows[-1].seq if rows else after}


def page(collection: Collection, connection: sa.Connection, after: int, upto: int, limit: int) -> list[Any]:
    """Return rows of judgments behind one number, up to another."""
    return _PAGE.rows(connection, campaign=collection.id, after=after, upto=upto, limit=limit)


def touched_judgments(collection: Collection, connection: sa.Connection, after: int, upto: int) -> list[Any]:
    """Return all rows, up to a number, of judgments on targets that have one behind another number."""
    return _TOUCHED.rows(connection, campaign=collection.id, after=after, upto=upto)


def neighbouring_judgments(
    collection: Collection, connection: sa.Connection, touched: list[Any], upto: int
) -> list[Any]:
    """Return all rows, up to a number, of judgments on other targets that share an item with these rows."""
    if collection.settings.kind == "grade" or not touched:
        return []
    items = {item for row in touched for item in json.loads(row.items)}
    queries, here = sorted({row.query for row in touched}), {row.items for row in touched}
    rows = _OF_QUERIES.rows(connection, campaign=collection.id, queries=queries)
    wanted = [row.id for row in rows if row.items not in here and not items.isdisjoint(json.loads(row.items))]
    return _OF_TARGETS.rows(connection, targets=wanted, upto=upto)


def plain_judgment(collection: Collection, row: Any, ids: dict[int, str]) -> Row:
    """Return a judgment in the owner's ids."""
    answer = json.loads(row.answer)
    judgment: Row = {"query": row.query}
    kind = collection.settings.kind
    if kind == "grade":
        judgment |= {"item": ids[json.loads(row.items)[0]], "grade": answer["grade"]}
    elif kind == "preference":
        judgment |= {"left": ids[answer["left"]], "right": ids[answer["right"]], "winner": answer["winner"]}
    else:
        judgment |= {"order": [[ids[item] for item in group] for group in answer["order"]]}
    return judgment | {
        "annotator": row.annotator, "annotator_kind": row.annotator_kind, "time": row.at / 1e6, "seconds": row.seconds,
        "counted": bool(row.counted) and row.withdrawn_at is None, "withdrawn": row.withdrawn_at is not None,
        "check": bool(row.is_check), "paid": bool(row.paid), "seq": row.seq, "submission": row.submission,
        "replaces": row.replaces,
    }  # fmt: skip


def all_judgments(collection: Collection, connection: sa.Connection, upto: int | None = None) -> Iterator[Row]:
    """Return every judgment of a moment up to a number, in order."""
    last = _SEQ.number(connection, campaign=collection.id)
    last = last if upto is None else min(upto, last)
    ids, after = item_ids(collection, connection), 0
    while rows := page(collection, connection, after, last, _PAGE_ROWS):
        after = rows[-1].seq
        for row in rows:
            yield plain_judgment(collection, row, ids)


def export(
    collection: Collection, format: str, which: str, upto: int | None, margin: float | None = None
) -> Iterator[bytes]:
    """Return an export in pieces, all of one moment; with a ``margin`` pairs are those of the consensus."""
    if format not in FORMATS:
        raise Fault("invalid", f"format must be one of {', '.join(FORMATS)}", field="format")
    if which not in ("counted", "all"):
        raise Fault("invalid", "which must be 'counted' or 'all'", field="which")

    def pieces() -> Iterator[bytes]:
        with collection.store.snapshot() as connection:
            rows: Iterable[Row] = all_judgments(collection, connection, upto)
            if which == "counted" and format != "native":
                rows = (row for row in rows if row["counted"])
            buffer: list[str] = []
            size = 0
            writer = FORMATS[format][2] if margin is None else partial(_consensus_pairs, margin)
            for text in writer(collection, rows):
                buffer.append(text)
                size += len(text)
                if size > 65_536:
                    yield "".join(buffer).encode("utf-8", "replace")
                    buffer, size = [], 0
            yield "".join(buffer).encode("utf-8", "replace")

    return pieces()


def table_rows(collection: Collection, rows: Iterable[Row]) -> Iterator[Row]:
    """Return judgments as the rows of a table that ``crowdrank aggregate`` reads; a ranking has a row for each item."""
    named = collection.settings.kind == "ranking"
    single = _single_query(collection)
    for row in rows:
        if single:
            row.pop("query")
        if not named:
            yield row
            continue
        order = row.pop("order")
        for rank, group in enumerate(order, 1):
            for item in group:
                yield {**row, "item": item, "rank": rank, "ranking": row["submission"]}


def _single_query(collection: Collection) -> bool:
    """Whether the campaign has one query without a name, which is no query at all."""
    statement = Statement("SELECT COUNT(*) AS n FROM item WHERE campaign = :campaign AND query <> ''")
    return not collection.store.submit_read(lambda c: statement.number(c, campaign=collection.id)).result()


def _native(collection: Collection, rows: Iterable[Row]) -> Iterator[str]:
    """One object to a line, with everything that is known of a judgment."""
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _jsonl(collection: Collection, rows: Iterable[Row]) -> Iterator[str]:
    """One object to a line."""
    return _native(collection, table_rows(collection, rows))


def _csv(collection: Collection, rows: Iterable[Row]) -> Iterator[str]:
    """A table for spreadsheets, in which no cell is taken for a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    has_header = False
    for row in table_rows(collection, rows):
        if not has_header:
            writer.writerow(row)
            has_header = True
        writer.writerow([_escape_formula(cell) for cell in row.values()])
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def _escape_formula(cell: Any) -> Any:
    """Text that a spreadsheet would take for a formula, behind an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _label_studio(collection: Collection, rows: Iterable[Row]) -> Iterator[str]:
    """Label Studio tasks with one annotation each: rating, pairwise choice or ranking."""
    yield "["
    for place, row in enumerate(rows):
        yield ("" if place == 0 else ",\n") + json.dumps(_label_studio_task(row), ensure_ascii=False)
    yield "]\n"


def _label_studio_task(row: Row) -> Row:
    """A judgment as a task of Label Studio with its annotation."""
    if "grade" in row:
        data = {"query": row["query"], "item": row["item"]}
        result: Row = {
            "type": "rating",
            "from_name": "rating",
            "to_name": "item",
            "value": {"rating": row["grade"] + 1},
        }
    elif "winner" in row:
        data = {"query": row["query"], "left": row["left"], "right": row["right"]}
        side = {"left": ["left"], "right": ["right"], "tie": []}[row["winner"]]
        result = {"type": "pairwise", "from_name": "pairwise", "to_name": "left,right",
                  "value": {"selected": side[0] if side else "tie"}}  # fmt: skip
    else:
        items = [item for group in row["order"] for item in group]
        data = {"query": row["query"], "items": sorted(items)}
        result = {"type": "ranker", "from_name": "ranker", "to_name": "items", "value": {"ranker": items}}
    annotation = {
        "id": row["seq"], "unique_id": row["submission"], "completed_by": {"email": row["annotator"]},
        "lead_time": row["seconds"], "was_cancelled": False, "ground_truth": False, "result": [result],
    }  # fmt: skip
    return {"id": row["seq"], "data": data, "annotations": [annotation]}


def _argilla(collection: Collection, rows: Iterable[Row]) -> Iterator[str]:
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
        response = {"user_id": row["annotator"], "status": "submitted", "values": {name: {"value": value}}}
        record = {"id": row["submission"], "fields": {"query": row["query"], **fields}, "responses": [response]}
        yield json.dumps(record, ensure_ascii=False) + "\n"


def _pairs(collection: Collection, rows: Iterable[Row]) -> Iterator[str]:
    """Preference pairs for training, one for each judgment that is no tie, with the contents of the items."""
    content = _contents(collection)
    for row in rows:
        if row.get("winner") in (None, "tie"):
            continue
        better, worse = (row["left"], row["right"]) if row["winner"] == "left" else (row["right"], row["left"])
        chosen, prompt = content[row["query"], better]
        pair = {"prompt": prompt, "chosen": chosen, "rejected": content[row["query"], worse][0]}
        yield json.dumps({**pair, "annotator": row["annotator"]}, ensure_ascii=False) + "\n"


def _consensus_pairs(margin: float, collection: Collection, rows: Iterable[Row]) -> Iterator[str]:
    """Preference pairs for training: items of a query whose scores in the latest consensus are so far apart."""
    from .overview import consensus_view

    content = _contents(collection)
    queries: dict[str, list[Row]] = {}
    for row in collection.store.submit_read(lambda c: consensus_view(collection, c, None)).result()["items"]:
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
    statement = Statement("SELECT query, item, content, query_content FROM item WHERE campaign = :campaign")
    rows = collection.store.submit_read(lambda c: statement.rows(c, campaign=collection.id)).result()
    return {(one.query, one.item): (one.content, one.query_content or one.query) for one in rows}


def _qrels(collection: Collection, rows: Iterable[Row]) -> Iterator[str]:
    """TREC qrels: the grade of each item in the latest consensus, rounded."""
    from .overview import consensus_view

    view = collection.store.submit_read(lambda c: consensus_view(collection, c, None)).result()
    for row in view["items"]:
        grade = row["grade"] if isinstance(row.get("grade"), int | float) else row["score"]
        query, item = ("_".join(str(one).split()) or "1" for one in (row.get("query", ""), row["item"]))
        yield f"{query} 0 {item} {max(0, round(grade))}\n"


Writer = Callable[[Collection, Iterable[Row]], Iterator[str]]
FORMATS: dict[str, tuple[str, str, Writer]] = {
    "native": ("application/x-ndjson", "native.jsonl", _native),
    "jsonl": ("application/x-ndjson", "judgments.jsonl", _jsonl),
    "csv": ("text/csv; charset=utf-8", "judgments.csv", _csv),
    "label-studio": ("application/json", "label-studio.json", _label_studio),
    "argilla": ("application/x-ndjson", "argilla.jsonl", _argilla),
    "pairs": ("application/x-ndjson", "pairs.jsonl", _pairs),
    "qrels": ("text/plain; charset=utf-8", "qrels.txt", _qrels),
}
"""Type, name of the file and writer of every format that is streamed."""
