"""Running a campaign: items with all that was said of them, what is decided, settings, items added, pay, the log."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from .campaign_file import Item, Json, Settings, expect_truth, item_of_row, must_be, settings_of
from .collection import Body, Collection, Fault, Id, Session, blaming_field, expect_found, record_event, sql
from .overview import check_accuracies, fit_of, fits_of_questions, item_ids
from .setup import MAX_TARGETS, insert_items, insert_rows, target_key, target_row
from .submitting import kept_value, settle_target, shown_value
from .transfer import csv_text, plain_judgment

PAGE_ROWS = 50
MAX_ADDED = 5_000
_SHOWN_CONTENT = 400
_EVENTS = 100
EventNumber = Annotated[int, Field(ge=0, le=2**62), must_be("the number of an event")]
Sort = Annotated[
    Literal["rank", "item", "score", "doubt", "judged"], must_be("one of rank, item, score, doubt, judged")
]
Page = Annotated[int, Field(ge=0, le=1_000_000), must_be("the number of a page")]


# ------------------------------------------------------------------------------------------------ items


def items_view(
    db: Session, search: str = "", sort: Sort = "rank", descending: bool = False, page: Page = 0, which: str = "all",
    question: str = "",
) -> Json:  # fmt: skip
    """Return a page of items with their content and what the latest consensus on a question says of them."""
    fit = fit_of(db, question)
    text = search[:200].strip().lower()
    named = {"fit": 0 if fit is None else fit.id, "search": text, "like": f"%{text}%", "which": which}
    at = {"limit": PAGE_ROWS, "offset": page * PAGE_ROWS}
    rows = sql.items_page.rows(db, sort=sort, sign=-1 if descending else 1, **at, **named)
    decided = {row.items for row in sql.reviews.rows(db)}
    return {
        "items": [
            {
                **({} if row.scored is None else json.loads(row.scored)), "id": row.id, "query": row.query,
                "item": row.item, "content": row.content[:_SHOWN_CONTENT], "content_type": row.content_type,
                "cut": len(row.content) > _SHOWN_CONTENT, "query_content": row.query_content[:_SHOWN_CONTENT],
                "truth": row.truth, "n": row.n or 0, "decided": json.dumps([row.id]) in decided,
            }
            for row in rows
        ],
        "n": sql.n_items_found.number(db, **named), "page": page, "page_rows": PAGE_ROWS,
        "as_of_seq": 0 if fit is None else fit.seq,
    }  # fmt: skip


def item_view(db: Session, item: Id) -> Json:
    """Return an item with everything that was said of it: judgments, comments, skips, decisions; who and when."""
    row = expect_found(sql.item.first(db, item=item), "item")
    fit = sql.latest_fit.first(db)
    scores = [] if fit is None else sql.scores_of_items.rows(db, fit=fit.id, items=[item])
    if db.settings.kind == "grade":
        keys = [target_key([item], is_check=is_check) for is_check in (False, True)]
        targets = [one.id for one in sql.targets_of_keys.rows(db, keys=keys)]
    else:
        found = sql.targets_of_queries.rows(db, queries=[row.query])
        targets = [one.id for one in found if item in json.loads(one.items)]
    judged = sql.judgments_of_targets.rows(db, targets=targets, upto=2**62)[-500:]
    skips = sql.skips_of_targets.rows(db, targets=targets)
    ids = item_ids(db, [*judged, *skips])
    return {
        **row._asdict(), "consensus": json.loads(scores[0].row) if scores else None,
        "questions": {
            name: json.loads(one.row) for name, other in fits_of_questions(db).items() if other
            for one in sql.scores_of_items.rows(db, fit=other.id, items=[item])
        },
        "judgments": [plain_judgment(db.settings, one, ids) for one in judged],
        "skips": [
            {"annotator": one.annotator, "reason": one.reason or "", "time": (one.ended_at or 0) / 1e6,
             "items": [ids[number] for number in json.loads(one.items)]}
            for one in skips
        ],
        "decisions": [_decision(one) for one in sql.reviews.rows(db) if item in json.loads(one.items)],
    }  # fmt: skip


class Mended(Body):
    """What of an item is to be another."""

    content: Annotated[str | None, Field(min_length=1), must_be("text")] = None
    content_type: str | None = None
    query_content: str | None = None
    truth: float | None = None


class Added(Body):
    """Items to add: rows with the columns of the campaign's table."""

    items: Annotated[list[Json], Field(min_length=1, max_length=MAX_ADDED), must_be("a list of items")]


def add_items(db: Session, rows: list[Json], actor: str) -> int:
    """Add items to a campaign that runs, with what is asked about them; return how many."""
    known = {(row.query, row.item): row.id for row in sql.items.rows(db)}
    items: list[Item] = []
    for number, row in enumerate(rows, 1):
        cells = {"content": "", "item": "", **row}
        with blaming_field("items"):
            items.append(one := item_of_row(cells, f"item {number}", db.collection.folder))
            expect_truth(db.settings, one, f"item {number} ({one.item!r})")
        if (one.query, one.item) in known or one in items[:-1]:
            raise Fault("invalid", f"item {number} ({one.item!r}) is there already; mend that one", field="items")
        known[one.query, one.item] = 0
    before = {row.id for row in sql.items.rows(db)}
    insert_items(db, tuple(items))
    members: dict[str, list[int]] = {}
    for row in sql.items.rows(db):
        members.setdefault(row.query, []).append(row.id)
    targets: list[Json] = []
    for query in sorted({one.query for one in items}):
        targets += _new_targets(db.collection, query, members[query], before)
    if len(targets) > MAX_TARGETS:
        raise Fault("invalid", f"these make {len(targets):,} pairs; add fewer at a time", field="items")
    insert_rows(db.connection, "target", iter(targets))
    sql.note_change.run(db)
    record_event(db, actor, "items added", {"n": len(items)})
    return len(items)


def _new_targets(collection: Collection, query: str, members: list[int], before: set[int]) -> list[Json]:
    """What is asked about the new items of a query."""
    settings, rule = collection.settings, collection.rule
    old, new = [one for one in members if one in before], [one for one in members if one not in before]
    wanted = min(rule.n_wanted([]), settings.overlap_max) if rule is not None else 1
    if settings.kind == "grade":
        return [target_row(collection, query, [one], wanted) for one in new]
    if len(members) < 2:
        raise Fault("invalid", f"query {query!r} has only one item, so nothing can be compared", field="items")
    if settings.kind == "preference":
        pairs: set[tuple[int, ...]] = set()
        for one in new:
            others = [n for n in members if n != one]
            if rule is None:
                # the scheme chooses the rest; two each are enough to begin with
                others = random.sample(others, min(2, len(others)))
            pairs |= {tuple(sorted((one, other))) for other in others}
        return [target_row(collection, query, list(pair), wanted) for pair in sorted(pairs)]
    size = settings.set_size
    parts = [new[start : start + size] for start in range(0, len(new), size)]
    short = parts[-1]
    short += random.sample(old, min(len(old), max(0, size - len(short))))
    return [target_row(collection, query, part, wanted) for part in parts if len(part) > 1]


def mend_item(db: Session, item: int, mended: Mended, actor: str) -> None:
    """Show something else of an item from now on; its judgments stay."""
    row = expect_found(sql.item.first(db, item=item), "item")
    given = {key: value for key, value in mended.model_dump().items() if value is not None}
    cells = {**{key: value for key, value in row._asdict().items() if value is not None}, **given}
    with blaming_field("content"):
        one = item_of_row(cells, f"item {row.item!r}", db.collection.folder)
    sql.mend_item.run(db, item=item, content=one.content, content_type=one.content_type, truth=one.truth)
    sql.mend_query.run(db, query=row.query, query_content=one.query_content)
    sql.note_revision.run(db)
    record_event(db, actor, "item mended", {"item": item, "changed": sorted(given)})


# ------------------------------------------------------------------------------------------------ review


class Decision(Body):
    """What is right of a target, as an annotator would answer it, and whether those who said otherwise are told."""

    target: Annotated[int, Field(ge=0, lt=2**62), must_be("the number of a target")]
    answer: Any = None
    note: Annotated[str, Field(max_length=500), must_be("a text of up to 500 characters")] = ""
    tell: bool = False


def review_view(db: Session) -> Json:
    """Return what somebody should decide: targets that are disputed or were reported, with what was said of them."""
    fit = sql.latest_fit.first(db)
    decided = {row.target: row for row in sql.reviews.rows(db)}
    rows = [] if fit is None else json.loads(fit.summary).get("disputed") or []
    named = sorted({row[name] for row in rows for name in ("item", "other") if name in row})
    by_id: dict[Any, Any] = {(row.query, row.item): row.id for row in sql.items_named.rows(db, names=named)}
    why: dict[str, Json] = {}
    for row in rows:
        numbers: list[Any] = [by_id.get((row.get("query", ""), row[name])) for name in ("item", "other") if name in row]
        if None not in numbers:
            why[target_key(numbers)] = {"why": "disputed", "facts": row}
    reported = sql.reported_targets.rows(db)
    disputed = sql.targets_of_keys.rows(db, keys=list(why))
    queue = [(row, {"facts": {}, **why.get(row.key, {}), "why": "reported"}) for row in reported]
    seen = {row.id for row in reported}
    queue += [(row, why[row.key]) for row in disputed if row.id not in seen]
    open_first = sorted(queue, key=lambda pair: pair[0].id in decided)[:100]
    shown = {one for row, _ in open_first for one in json.loads(row.items)}
    contents = {row.id: row for row in sql.some_items.rows(db, items=sorted(shown))}
    shown_targets = [row.id for row, _ in open_first]
    said: dict[int, Any] = {one: {"answers": [], "skips": []} for one in shown_targets}
    for row in sql.answers_of_targets.rows(db, targets=shown_targets):
        answer = {"annotator": row.annotator, "answer": _main(json.loads(row.items), row.answer)}
        said[row.target]["answers"].append({**answer, "time": row.at / 1e6, "comment": row.comment})
    for row in sql.skips_of_targets.rows(db, targets=shown_targets):
        said[row.target]["skips"].append({"annotator": row.annotator, "reason": row.reason or ""})
    # annotators to look at or to leave out, or below chance on checks, the worst first; whom the owner let go on after
    # a look comes back once they have judged twice as much
    looked_at: dict[int, int] = {}
    for event in sql.let_go_on.rows(db):
        detail = json.loads(event.detail)
        looked_at[detail["annotator"]] = detail.get("n_answered", 0)
    doubtful = [
        row for row in people_view(db)["annotators"]
        if (row.get("action") in ("drop", "review") or (row["checks"] or {}).get("below_chance"))
        and row["state"] == "active" and row["n_answered"] >= 2 * looked_at.get(row["id"], 0)
    ]  # fmt: skip
    doubtful.sort(key=lambda row: (row.get("action") != "drop", row.get("quality") or 0.0, row["id"]))
    return {
        "queue": [
            {
                "target": row.id, "query": row.query, **facts,
                "query_content": contents[json.loads(row.items)[0]].query_content[:_SHOWN_CONTENT],
                "items": [
                    {"id": one, "item": contents[one].item, "content": contents[one].content[:2000],
                     "content_type": contents[one].content_type}
                    for one in json.loads(row.items)
                ],
                **said[row.id],
                "decision": _decision(decided[row.id]) if row.id in decided else None,
            }
            for row, facts in open_first
        ],
        "n_open": sum(row.id not in decided for row, _ in queue), "n_decided": len(decided),
        "annotators": doubtful,
    }  # fmt: skip


def _main(order: list[int], kept: str) -> Json:
    """The answer to the question that the scheme goes by, in the letters of the items."""
    return shown_value(order, {name: value for name, value in json.loads(kept).items() if name != "answers"})


def _decision(row: Any) -> Json:
    """A decision as it is shown."""
    return {"answer": json.loads(row.shown), "note": row.note, "by": row.actor, "time": row.at / 1e6}


def decide(db: Session, decision: Decision, actor: str) -> None:
    """Write down what is right of a target; from the next fit on it is known."""
    row = expect_found(sql.target.first(db, target=decision.target), "target")
    order, settings = json.loads(row.items), db.settings
    answer = kept_value(settings.main_question, order, decision.answer)
    said = {"answer": json.dumps(answer), "shown": json.dumps(decision.answer), "note": decision.note}
    sql.insert_review.run(db, target=row.id, **said, actor=actor, at=db.now())
    if settings.kind == "grade":
        sql.set_truth_of_item.run(db, item=order[0], truth=float(answer["grade"]))
    if decision.tell:
        told = f"A reviewer decided otherwise than you did on one request. {decision.note}".strip()
        for one in sql.answers_of_targets.rows(db, targets=[row.id]):
            if _main(order, one.answer) != decision.answer:
                sql.set_message.run(db, annotator=one.annotator_id, message=told)
    sql.note_change.run(db)
    record_event(db, actor, "decided", {"target": row.id})


def reviews_csv(db: Session) -> str:
    """Return the decisions as a table: of grades what ``crowdrank aggregate --known`` takes."""
    decided, grades = sql.reviews.rows(db), db.settings.kind == "grade"
    ids = item_ids(db, decided)
    rows: list[Any] = [["query", "item", "grade"] if grades else ["query", "items", "answer", "by"]]
    for row in decided:
        names, answer = [ids[one] for one in json.loads(row.items)], json.loads(row.answer)
        rows.append([row.query, *([names[0], answer["grade"]] if grades else [" ".join(names), row.shown, row.actor])])
    return csv_text(rows)


# ------------------------------------------------------------------------------------------------ people and pay


def people_view(db: Session) -> Json:
    """Return who takes part, with what the latest fit says of each, their pace, their checks, and what they cost."""
    fit = sql.latest_fit.first(db)
    rows = [] if fit is None else sql.qualities.rows(db, fit=fit.id)
    judged = {str(row.pop("annotator")): row for row in (json.loads(one.row) for one in rows)}
    checks, owed = check_accuracies(db), {row.id: int(row.owed) for row in sql.owed.rows(db)}
    audit = {} if fit is None else json.loads(fit.summary).get("audit") or {}
    people = [
        {**row._asdict(), **judged.get(row.name, {}), "checks": checks.get(row.name), "owed": owed.get(row.id, 0),
         "audit": audit.get(row.name)}
        for row in sql.annotators.rows(db)
    ]  # fmt: skip
    return {"annotators": people, "as_of_seq": 0 if fit is None else fit.seq}


def pay_rows(db: Session, bonus: float, bonus_from: float) -> Json:
    """Return what each annotator is owed, with a share more for those whose quality is measured and high enough."""
    people = {row["id"]: row for row in people_view(db)["annotators"]}
    rows = []
    for row in sql.owed.rows(db):
        quality = people[row.id].get("quality") if people[row.id].get("measured") else None
        more = math.floor(int(row.owed) * bonus) if quality is not None and quality >= bonus_from else 0
        who = {"annotator": row.name, "external": row.external, "kind": row.kind, "judgments": row.n}
        rows.append({**who, "owed": int(row.owed), "quality": quality, "bonus": more})
    return {"pay": rows, "owed": sum(row["owed"] for row in rows), "bonus": sum(row["bonus"] for row in rows)}


def pay_csv(rows: list[Json], format: str, unit: float) -> str:
    """Return what is owed as a table; for Prolific and MTurk, the lines that their bonus tools take."""
    whole = format == "csv"
    names = ("annotator", "external", "kind", "judgments") if whole else ("external",)
    money = ("owed", "bonus", "total") if whole else ("total",)
    lines: list[Any] = [[*names, *money]] if whole else []
    for row in rows:
        sums = {**row, "total": row["owed"] + row["bonus"]}
        if whole or (row["external"] and sums["total"]):
            lines.append([*(row[name] for name in names), *(f"{sums[one] * unit:.2f}" for one in money)])
    return csv_text(lines)


class Message(Body):
    """What an annotator is told on their page; nothing takes it away."""

    text: Annotated[str, Field(max_length=1000), must_be("a text of up to 1000 characters")] = ""


def send_message(db: Session, annotator: int, text: str, actor: str) -> None:
    """Show an annotator a message."""
    expect_found(sql.set_message.run(db, annotator=annotator, message=text).rowcount, "annotator")
    record_event(db, actor, "message", {"annotator": annotator})


# ------------------------------------------------------------------------------------------------ settings and log


class Changes(Body):
    """Settings that are to be others from now on."""

    question: Annotated[str | None, Field(max_length=2000), must_be("a text")] = None
    guidelines: Annotated[str | None, Field(max_length=100_000), must_be("a text")] = None
    budget: int | None = None
    lease_seconds: Annotated[int | None, must_be("a whole number of seconds")] = None
    overlap_max: int | None = None
    scheme: Annotated[str | None, Field(max_length=100), must_be("the name of a scheme")] = None
    params: Json | None = None
    least_gain: float | None = None
    close_when_done: bool | None = None
    show_quality: bool | None = None


def change_settings(db: Session, changes: Changes, actor: str) -> Settings:
    """Put other settings into force without a restart; return all of them."""
    row = sql.campaign.first(db)
    former = Settings(**json.loads(row.settings))
    given = {key: value for key, value in changes.model_dump().items() if value is not None}
    if "scheme" in given and "overlap_max" not in given:
        given["overlap_max"] = 0
    with blaming_field(next(iter(given), "")):
        settings = settings_of({**former.plain(), **given})
    if settings.budget < row.reserved:
        words = f"budget = {settings.budget} is below the {row.reserved} spent or promised; raise it"
        raise Fault("invalid", words, field="budget")
    if (settings.scheme, settings.params, settings.overlap_max) != (former.scheme, former.params, former.overlap_max):
        # every target wants what the scheme says of its judgments, never fewer than are taken
        new = Session(replace(db.collection, settings=settings), db.connection)
        rule, most = new.collection.rule, settings.overlap_max
        sql.want_all.run(new, most=most, wanted=1 if rule is None else min(rule.n_wanted([]), most))
        if rule is not None and hasattr(rule.rule, "good_from"):
            for target in sql.taken_targets.rows(new):
                settle_target(new, target.id)
    if settings.guidelines != former.guidelines:
        sql.forget_consents.run(db)
    plain = json.dumps(settings.plain())
    sql.update_settings.run(db, settings=plain, budget=settings.budget, scheme=settings.scheme)
    sql.note_revision.run(db)
    told = {key: value for key, value in given.items() if key != "guidelines"}
    record_event(db, actor, "settings", told | ({"guidelines": 1} if changes.guidelines else {}))
    return settings


def events_view(db: Session, before: EventNumber = 2**62) -> Json:
    """Return what happened, the latest first: who did what and when."""
    rows = sql.events.rows(db, before=before, limit=_EVENTS)
    names = {f"annotator {row.id}": row.name for row in sql.annotators.rows(db)}
    names |= {f"{row.role} {row.id}": row.name for row in sql.members.rows(db)}
    return {
        "events": [
            {"id": row.id, "time": row.at / 1e6, "actor": row.actor, "name": names.get(row.actor, ""),
             "kind": row.kind, "detail": json.loads(row.detail)}
            for row in rows
        ],
        "next_before": rows[-1].id if len(rows) == _EVENTS else None,
    }  # fmt: skip
