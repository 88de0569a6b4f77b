"""What the owner sees: progress, money, consensus, quality, agreement, and what needs a look."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from statistics import linear_regression
from typing import Annotated, Any

from pydantic import Field

from .campaign_file import Json, Settings, must_be
from .collection import Fault, JudgmentNumber, Session, sql

_MICROSECONDS_PER_HOUR = 3_600_000_000
_COMMENTS = 200
_SKIPPED_BY = 3
"""A target that this many annotators skipped is shown to the owner."""

Search = Annotated[str, Field(max_length=200), must_be("a text of up to 200 characters")]


def campaign_view(db: Session) -> Json:
    """Return settings, progress, money and forecast."""
    row = sql.campaign.first(db)
    now = db.now()
    targets = sql.target_counts.first(db, skipped=_SKIPPED_BY)
    judged = sql.judgment_counts.first(db, since=now - _MICROSECONDS_PER_HOUR)
    requests = {one.state: one.n for one in sql.request_counts.rows(db)}
    settings = {key: value for key, value in db.settings.plain().items() if key != "guidelines"}
    unasked = max(0, int(targets.wanted) - int(targets.taken)) if row.state != "closed" else 0
    left = unasked + requests.get("offered", 0)
    span = max(60.0, (now - judged.first) / 1e6) if judged.first else None
    pace = judged.recent / span if span else None
    finish = None if not pace or row.state != "open" else int(now + left / pace * 1e6)
    # what a judgment cost so far; before the first, what one of a person costs
    price = row.spent / row.seq if row.spent else db.settings.cost["person"]
    return {
        "name": row.name, "kind": row.kind, "scheme": row.scheme, "state": row.state, "settings": settings,
        "seq": row.seq,
        "targets": {"n": targets.n, "open": targets.open, "wanted": targets.wanted, "taken": targets.taken},
        "requests": requests, "n_skipped_targets": targets.skipped,
        "judgments": {
            "n": row.seq, "spare": judged.spare, "withdrawn": judged.withdrawn, "unpaid": judged.unpaid,
            "last_hour": judged.recent,
        },
        "cost": {"budget": row.budget, "spent": row.spent, "reserved": row.reserved, "left": row.budget - row.reserved},
        "estimated_finish": finish,
        "forecast": {"judgments": left, "cost": row.reserved + math.ceil(unasked * price), "finish": finish},
        "now": now, "fit": fit_view(db, row.seq),
        "questions": [
            {"name": name, "as_of_seq": fit.seq, "method": fit.method,
             "agreement": json.loads(fit.summary).get("agreement") or {}} if fit else {"name": name, "as_of_seq": 0}
            for name, fit in fits_of_questions(db).items()
        ],
    }  # fmt: skip


def fits_of_questions(db: Session) -> Json:
    """Return the latest fit of each question besides the first, ``None`` where there is none yet."""
    if not (asked := db.settings.more_questions):
        return {}
    fits = {row.question: row for row in sql.fits_of_questions.rows(db)}
    return {one.name: fits.get(one.name) for one in asked}


def fit_of(db: Session, question: str) -> Any:
    """Return the latest fit of a question, of the first where none is named; ``None`` where there is none yet."""
    if question in ("", db.settings.main_question.name):
        return sql.latest_fit.first(db)
    fits = fits_of_questions(db)
    if question not in fits:
        known = [db.settings.main_question.name, *fits]
        words = f"one of {', '.join(known)}" if fits else "left out, as there is one"
        raise Fault("invalid", f"question must be {words}", field="question")
    return fits[question]


def fit_view(db: Session, seq: int) -> Json:
    """Return up to which judgment the consensus goes, how old it is, and what went wrong last."""
    fit, last = sql.latest_fit.first(db), sql.last_fit_error.first(db)
    summary: Json = {}
    known: Json = {"as_of_seq": 0, "age": None, "method": None, "final": False}
    if fit is not None:
        age, summary = round((db.now() - fit.finished_at) / 1e6, 1), json.loads(fit.summary)
        known = {"as_of_seq": fit.seq, "age": age, "method": fit.method, "final": bool(fit.is_final)}
    error = None if last is None else last.error
    more = {name: summary.get(name) for name in ("updated_seq", "reads_anew")}
    return {**known, "newer": seq - known["as_of_seq"], "error": error, **more}


def consensus_view(db: Session, query: str | None = None, question: str = "") -> Json:
    """Return the latest consensus with intervals, as ``crowdrank aggregate --format json`` writes it.

    Items that got judgments since have what they are by these as ``since_fit``.
    """
    fit, consensus = _of_fit(db, question)
    summary = json.loads(fit.summary)
    rows = [json.loads(row.row) for row in sql.scores.rows(db, fit=fit.id)]
    if query is not None:
        rows = [row for row in rows if str(row.get("query", "")) == query]
        if not rows:
            raise Fault("not_found", "there is no such query")
    return {**summary["header"], "items": rows, **consensus}


def quality_view(db: Session, question: str = "") -> Json:
    """Return the quality of annotators with what to do about each, and how they did on checks."""
    fit, consensus = _of_fit(db, question)
    rows = [json.loads(row.row) for row in sql.qualities.rows(db, fit=fit.id)]
    checks = check_accuracies(db)
    for row in rows:
        row["checks"] = checks.pop(str(row["annotator"]), None)
    return {"annotators": rows, "unfitted_checks": checks, **consensus}


def agreement_view(db: Session, question: str = "") -> Json:
    """Return how far annotators agree, and what they are divided on."""
    fit, consensus = _of_fit(db, question)
    summary = json.loads(fit.summary)
    return {**summary["agreement"], "disputed": summary["disputed"], **consensus}


def _of_fit(db: Session, question: str) -> tuple[Any, Json]:
    """The latest fit of a question, and up to which judgment it goes."""
    fit = fit_of(db, question)
    if fit is None:
        last = sql.last_fit_error.first(db)
        if sql.campaign.first(db).seq and (last is None or last.error is None):
            raise Fault("fitting", "the first consensus is being found; ask again in a moment", retry_after=2)
        raise Fault("not_found", "there is no consensus yet; it comes after the first judgments")
    seq = sql.campaign.first(db).seq
    return fit, {"as_of_seq": fit.seq, "newer": seq - fit.seq, "final": bool(fit.is_final)}


def settings_view(db: Session) -> Json:
    """Return what the campaign asks, of whom, at what cost."""
    return {"settings": db.settings.plain()}


def list_view(db: Session, name: str) -> Json:
    """Return the rows of annotators, invites (their tokens are known to nobody any more) or members."""
    listed = {"annotators": sql.annotators, "invites": sql.invites, "members": sql.members}
    return {name: [row._asdict() for row in listed[name].rows(db)]}


def skipped_view(db: Session) -> Json:
    """Return what several annotators skipped, and why."""
    reasons: dict[int, list[str]] = {}
    for row in sql.skip_reasons.rows(db, skipped=_SKIPPED_BY):
        reasons.setdefault(row.target, []).append(row.reason)
    rows = named_rows(db, sql.skipped_targets.rows(db, skipped=_SKIPPED_BY))
    return {"skipped": [{"reasons": reasons.get(row.pop("id"), [])[:20], **row} for row in rows]}


def spares_view(db: Session) -> Json:
    """Return judgments that came too late for a seat, and whether they are paid."""
    rows = named_rows(db, sql.spare_judgments.rows(db))
    return {"spares": [{**row, "paid": bool(row["paid"])} for row in rows]}


def comments_view(db: Session, search: Search = "", before: JudgmentNumber = 2**62) -> Json:
    """Return comments that have these words, the latest first, and the number to go on from."""
    words = "".join(f"!{letter}" if letter in "!%_" else letter for letter in search.lower())
    pattern = f"%{words}%" if words else "_%"
    rows = sql.comments.rows(db, before=before, pattern=pattern, limit=_COMMENTS)
    following = rows[-1].seq if len(rows) == _COMMENTS else None
    return {"comments": named_rows(db, rows), "next_before": following}


def item_ids(db: Session, about: Sequence[Any] | None = None) -> dict[int, str]:
    """Return the owner's ids of all items, or of those that some rows are about."""
    if about is None:
        return {row.id: row.item for row in sql.item_ids.rows(db)}
    items = {item for row in about for item in json.loads(row.items)}
    return {row.id: row.item for row in sql.names_of_items.rows(db, items=sorted(items))}


def named_rows(db: Session, rows: Sequence[Any]) -> list[Json]:
    """Return rows by their columns, with the owner's ids of the items that they are about."""
    ids = item_ids(db, rows)
    return [{**row._asdict(), "items": [ids[one] for one in json.loads(row.items)]} for row in rows]


def check_accuracies(db: Session) -> dict[str, Json]:
    """Return how each annotator did on items of known truth, and whether that is worse than chance (binomial, 1 %)."""
    if not db.settings.checks:
        return {}
    truths = {row.id: row.truth for row in sql.truths.rows(db)}
    results: dict[str, list[tuple[int, float]]] = {}
    for row in sql.check_judgments.rows(db):
        result = check_result(db.settings, json.loads(row.answer), json.loads(row.items), truths)
        results.setdefault(row.name, []).append(result)
    accuracies = {}
    for name, found in results.items():
        from scipy.stats import binom

        right, number = sum(one for one, _ in found), len(found)
        # P(at most so many right) for someone who guesses
        tail = float(binom.cdf(right, number, sum(chance for _, chance in found) / number))
        accuracies[name] = {"n": number, "right": right, "below_chance": tail < 0.01}
    return accuracies


def check_result(settings: Settings, answer: Json, items: list[int], truths: dict[int, float]) -> tuple[int, float]:
    """Return whether an answer on items of known truth is right, and how often a guess would be."""
    if "cant_tell" in answer:
        return 0, 0.0
    if settings.kind == "grade":
        return int(answer["grade"] == truths[items[0]]), 1 / len(settings.grades)
    if settings.kind == "preference":
        if answer["winner"] == "tie":
            return 0, 0.5
        better = max(items, key=lambda item: truths[item])
        return int(answer[answer["winner"]] == better), 0.5
    place = {item: rank for rank, group in enumerate(answer["order"]) for item in group}
    pairs = [(a, b) for a in items for b in items if truths[a] > truths[b]]
    right = sum(place[a] < place[b] for a, b in pairs)
    return int(2 * right > len(pairs)), 0.5


def course_and_findings(db: Session) -> Json:
    """Return findings, how doubt fell with money so far, and what the next judgments are expected to buy.

    Doubt is the mean half-width of the items' intervals. It is taken to fall as a power of the number of judgments,
    the power of the last fits where there are enough, and one half (as of means) before.
    """
    rows = sql.course.rows(db)
    known = [(row.seq, row.doubt) for row in rows if row.doubt and row.seq][-20:]
    ahead: list[Json] = []
    power = 0.5
    if known:
        if len(known) >= 5 and known[-1][0] >= 1.5 * known[0][0]:
            xs, ys = [math.log(seq) for seq, _ in known], [math.log(doubt) for _, doubt in known]
            power = min(1.0, max(0.0, -linear_regression(xs, ys).slope))
        seq, doubt = known[-1]
        row = sql.campaign.first(db)
        price = row.spent / row.seq if row.seq and row.spent else max(db.settings.cost["person"], 1)
        ahead = [
            {"more": more, "cost": math.ceil(more * price), "doubt": doubt * (seq / (seq + more)) ** power}
            for more in (100, 200, 500, 1000)
        ]
    fit = sql.latest_fit.first(db)
    found = [] if fit is None else json.loads(fit.summary).get("findings") or []
    return {"findings": found, "course": [row._asdict() for row in rows], "ahead": ahead, "power": power}
