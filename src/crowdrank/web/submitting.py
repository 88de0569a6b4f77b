"""Requests given out and judgments taken in: a seat at most once, a submission once, durable when acknowledged.

An annotator claims requests on the best open targets, each with a numbered seat. Answers come in the letters of the
items shown and are kept by the items themselves; a late one is never lost. A request that is held may also be
extended, skipped, or, once answered, offered again because its judgment was withdrawn.
"""

from __future__ import annotations

import hashlib
import json
import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from .campaign_file import Json, Question, Settings, holds, must_be
from .collection import AgainError, Body, Fault, Session, Statement, expect_found, sql


def take_seat(db: Session, target: int, wish: int | None = None) -> int | None:
    """Return a free seat of a locked target, the wished one where it is free; ``None`` where all are taken."""
    row = sql.take_wished_seat.first(db, target=target, wish=wish)
    return None if row is None else row.seat


def free_seat(db: Session, target: int) -> int:
    """Give back a seat of a locked target whose request has just lost it; return how many spares count from now on."""
    sql.free_seat.run(db, target=target)
    return settle_target(db, target)


def settle_target(db: Session, target: int) -> int:
    """Bring what a locked target wants up to date with its judgments; spares count while it wants more.

    Returns how many judgments count from now on that did not before, the oldest first.
    """
    promoted = 0
    while True:
        row = sql.lock_target.first(db, target=target)
        if row.is_check:
            return promoted
        wanted = int(row.wanted)
        if (rule := db.collection.rule) is not None:
            # what the rule says of its grades, never fewer than are taken
            grades: list[float] = []
            if db.settings.kind == "grade":
                answers = [json.loads(one.answer) for one in sql.grades_of_target.rows(db, target=target)]
                grades = [answer["grade"] for answer in answers if "grade" in answer]
            wanted = max(int(row.taken), min(rule.n_wanted(grades), db.settings.overlap_max, int(row.most)))
        if wanted != row.wanted:
            sql.want.run(db, target=target, wanted=wanted)
        if row.taken >= wanted or sql.campaign_state.first(db).state == "closed":
            return promoted
        spare = sql.oldest_spare.first(db, target=target)
        if spare is None:
            return promoted
        seat = take_seat(db, target)
        assert seat is not None
        sql.seat_request.run(db, request=spare.request, seat=seat)
        sql.count_judgment.run(db, submission=spare.submission)
        promoted += 1


def settle_after_answer(db: Session, target: int) -> None:
    """Bring what a target wants up to date after one more judgment; a rule that merely counts has nothing to do."""
    rule = db.collection.rule
    if rule is not None and db.settings.kind == "grade" and hasattr(rule.rule, "good_from"):
        settle_target(db, target)


MAX_BATCH = 200
"""Requests that a program may hold at once, and judgments that it may send at once."""

_MAX_EXPIRED = 50


@dataclass(frozen=True)
class Claim:
    """Requests that an annotator holds now, or why there are none and when to ask again."""

    requests: list[int]
    reason: str | None = None
    retry_after: float | None = None


def active_annotator(db: Session, annotator: int) -> Any:
    """Return an annotator, locked; refuse one who was removed."""
    return expect_active(sql.lock_annotator.first(db, annotator=annotator))


def expect_active(row: Any) -> Any:
    """Return the row of an annotator; refuse one who was removed."""
    if row is None or row.state == "removed":
        raise Fault("forbidden", "you are no longer part of this campaign; ask its owner")
    return row


def claim(db: Session, annotator: int, n: int = 1, lease_seconds: int | None = None) -> Claim:
    """Return requests for an annotator: those they hold, and new ones up to the number asked for."""
    return claim_for(db, active_annotator(db, annotator), n, lease_seconds)


def claim_for(db: Session, who: Any, n: int = 1, lease_seconds: int | None = None) -> Claim:
    """Return the same for an annotator whose row is locked already."""
    if db.settings.guidelines and who.kind == "person" and who.consented_at is None:
        raise Fault("consent_needed", "read the guidelines and accept them first")
    if db.settings.training and who.kind == "person" and who.trained_at is None:
        raise Fault("training_needed", "practise on the items with known answers first")
    campaign = sql.campaign_state.first(db)
    if campaign.revision != db.collection.revision:
        db.collection.follow(db)
    if campaign.state != "open" or who.state == "paused":
        return Claim([], "done" if campaign.state == "closed" else "paused", None if campaign.state == "closed" else 30)
    goal = db.settings.per_person
    if goal and who.kind == "person" and goal <= sql.annotator.first(db, annotator=who.id).n_answered:
        return Claim([], "goal")
    now = db.now()
    # on PostgreSQL freed targets stay locked until the end, so only a few are freed at a time
    lapsed = sql.lapsed_requests.rows(db, now=now, limit=_MAX_EXPIRED if db.is_sqlite else 5)
    freed, promoted = end_requests(db, lapsed, sql.end_lapsed, now)
    held = [row.id for row in sql.held_ids.rows(db, annotator=who.id)]
    limit = db.settings.open_limit
    if who.kind == "program":
        limit = max(limit, n)
    more = min(n if who.kind == "person" else n - len(held), limit - len(held))
    affordable, new = more, list[int]()
    if more > 0:
        if who.cost:
            affordable = min(more, (campaign.budget - campaign.reserved + freed) // who.cost)
        lease = db.lease if lease_seconds is None else lease_seconds * 1_000_000
        if _offer(db, who, affordable, now, lease):
            former = set(held)
            new = [row.id for row in sql.held_ids.rows(db, annotator=who.id) if row.id not in former]
    reserve(db, who.cost * len(new) - freed, promoted)
    if held or new:
        return Claim([*held, *new] if who.kind == "person" else [*held, *new][: max(n, len(new))])
    # why there is nothing, and when to ask again
    if sql.any_unseen.first(db, annotator=who.id) is not None:
        # where there is money, somebody else has it locked at this moment
        return Claim([], "budget") if affordable <= 0 else Claim([], "all_leased", 1.0)
    until = sql.earliest_lease.first(db, annotator=who.id).lease
    if until is not None:
        return Claim([], "all_leased", max(1.0, (until - now) / 1e6))
    if affordable > 0 and _is_choosing(db):
        return Claim([], "choosing", 3.0)
    reason = "done" if sql.any_open_target.first(db) is None else "judged_all"
    return Claim([], reason, None if db.collection.rule is not None else 15.0)


def reserve(db: Session, cost: int, changes: int = 0) -> None:
    """Reserve or give back money, the last thing an operation does: nobody else can until it is committed."""
    if not cost and not changes:
        return
    if not sql.reserve.run(db, cost=cost, changes=changes).rowcount:
        raise AgainError


def end_requests(db: Session, rows: list[Any], end: Statement, now: int) -> tuple[int, int]:
    """End requests that are held and free their seats; return what to give back, and how many spares count."""
    cost = promoted = 0
    # targets are locked in the order of their numbers, so that two calls cannot wait for each other
    for row in sorted(rows, key=attrgetter("target", "id")):
        sql.lock_target.run(db, target=row.target)
        if not end.run(db, request=row.id, now=now).rowcount:
            continue
        cost += row.cost
        if row.seat is not None:
            promoted += free_seat(db, row.target)
    return cost, promoted


def _offer(db: Session, who: Any, number: int, now: int, lease: int) -> int:
    """Number of new requests for an annotator, each with a seat of its own, or about an item of known truth."""
    n_checks = 0
    for _ in range(sum(random.random() < db.settings.checks for _ in range(number))):
        # drawn at random of those that they have not seen
        check = sql.unseen_check.first(db, annotator=who.id, draw=random.getrandbits(31))
        check = check or sql.unseen_check.first(db, annotator=who.id, draw=0)
        if check is None:
            break
        sql.insert_request.run(db, **_request_row(who, check, now, lease, is_check=1))
        n_checks += 1
    left = number - n_checks
    if left <= 0:
        return n_checks
    # the best open targets that they have not seen: those that the scheme means for them, then the others
    meant = db.collection.meant.get(who.id)
    targets = sql.meant_targets.rows(db, targets=meant, annotator=who.id, limit=left) if meant else []
    if len(targets) < left:
        seen = {row.id for row in targets}
        others = sql.open_targets.rows(db, annotator=who.id, limit=left)
        targets = [*targets, *(row for row in others if row.id not in seen)][:left]
    if not targets and who.kind == "person" and not db.settings.least_gain and _is_choosing(db):
        # nobody waits for a fit: one more judgment of what others judged is worth having meanwhile
        targets = sql.judged_target.rows(db, annotator=who.id)
        for one in targets:
            sql.want_one_more.run(db, target=one.id)
    if sql.take_seat.run_many(db, [{"target": target.id} for target in targets]) < len(targets):
        raise AgainError
    sql.insert_request.run_many(db, [_request_row(who, target, now, lease) for target in targets])
    return n_checks + len(targets)


def _request_row(who: Any, target: Any, now: int, lease: int, *, is_check: int = 0) -> Json:
    """Values of a new request; the order in which items are shown is drawn and kept."""
    order = json.loads(target.items)
    seed = random.getrandbits(31)
    random.Random(seed).shuffle(order)
    return {
        "target": target.id, "annotator": who.id, "is_check": is_check, "now": now, "until": now + lease,
        "shown": json.dumps({"order": order, "seed": seed}), "most": now + 3 * lease, "cost": who.cost,
    }  # fmt: skip


def _is_choosing(db: Session) -> bool:
    """Whether the scheme waits for a fit of judgments that none has seen: what that finds may be asked next."""
    if db.collection.rule is not None:
        return False
    last = sql.fit_needed.first(db)
    return bool(last.seq) and (last.fit_seq, last.fit_changes) != (last.seq, last.changes)


LABELS = "abcdefghijklmnopqrstuvwxyz"
MAX_TEXT = 5_000
CANT_TELL = {"cant_tell": True}
"""The answer of someone who looked and cannot say; it takes its seat, and no model sees it."""


def kept_answer(settings: Settings, order: Sequence[int], answer: Any) -> Json:
    """Return an answer as it is kept; refuse one that does not fit what was asked.

    Of several questions the scheme goes by the first of the campaign's kind; the others stand beside it.

    Examples
    --------
    >>> settings = Settings(name="x", kind="preference", budget=1)
    >>> kept_answer(settings, [12, 15], {"winner": "b"})
    {'left': 12, 'right': 15, 'winner': 'right'}
    """
    if not settings.questions:
        return kept_value(settings.main_question, order, answer)
    given: Any = answer.get("answers") if isinstance(answer, dict) and set(answer) == {"answers"} else None
    _expect(isinstance(given, dict), "answer", "an object with the one key 'answers'")
    kept: Json = {}
    for question in settings.questions:
        field, value = f"answer.answers.{question.name}", given.get(question.name)
        if holds(question, settings.questions, kept):
            if value is not None:
                kept[question.name] = kept_value(question, order, value, field)
            elif question.required:
                raise Fault("invalid", f"{field} is missing; answer every question that is asked", field=field)
        elif value is not None:
            raise Fault("invalid", f"{field} is not asked here; leave it out", field=field)
    unknown = sorted(set(given) - {one.name for one in settings.questions})
    if unknown:
        raise Fault("invalid", f"answer.answers has {unknown[0]!r}, which is no question", field="answer.answers")
    return {**kept.pop(settings.main_question.name), "answers": kept}


def kept_value(question: Question, order: Sequence[int], value: Any, field: str = "answer") -> Json:
    """Return an answer to a question as it is kept; refuse one that does not fit what was asked."""
    key = {"preference": "winner", "ranking": "order", "slider": "value"}.get(question.kind, question.kind)
    if question.cant_tell and value == CANT_TELL:
        return dict(CANT_TELL)
    allowed = {key, "strength"} if question.strength and question.kind == "preference" else {key}
    if question.kind == "grade" and isinstance(value, dict):
        value = {name: one for name, one in value.items() if name != "label"}
    whole = isinstance(value, dict) and {key} <= set(value) <= allowed
    _expect(whole, field, f"an object with the one key {key!r}")
    said, place = value[key], f"{field}.{key}"
    if question.kind == "grade":
        top = len(question.grades) - 1
        _expect(_is_number(said, int) and 0 <= said <= top, place, f"a whole number from 0 to {top}")
        return {"grade": said}
    if question.kind == "preference":
        sides = {"a": "left", "b": "right"} | ({"tie": "tie"} if question.ties else {})
        words = "'a', 'b' or 'tie'" if question.ties else "'a' or 'b'"
        _expect(isinstance(said, str) and said in sides, place, words)
        kept: Json = {"left": order[0], "right": order[1], "winner": sides[said]}
        if question.strength and said != "tie":
            strength, most = value.get("strength"), len(question.strength)
            fits = _is_number(strength, int) and 1 <= strength <= most
            _expect(fits, f"{field}.strength", f"a whole number from 1 to {most}")
            kept["strength"] = strength
        return kept
    if question.kind == "choice":
        chosen = said if question.several else [said]
        fits = isinstance(chosen, list) and all(isinstance(one, str) and one in question.choices for one in chosen)
        words = f"{'a list of some of' if question.several else 'one of'} {', '.join(question.choices[:20])}"
        _expect(fits and len(set(chosen)) == len(chosen), place, words)
        return {"choice": sorted(chosen, key=question.choices.index) if question.several else said}
    if question.kind == "text":
        _expect(isinstance(said, str) and 0 < len(said) <= MAX_TEXT, place, f"a text of up to {MAX_TEXT} characters")
        return {"text": storable(said)}
    if question.kind == "slider":
        fits = _is_number(said, int | float) and question.least <= said <= question.most
        _expect(fits, place, f"a number from {question.least:g} to {question.most:g}")
        return {"value": said}
    letters = {LABELS[at]: item for at, item in enumerate(order)}
    groups = said if isinstance(said, list) else []
    flat = [one for group in groups if isinstance(group, list) for one in group]
    whole = all(isinstance(group, list) and group for group in groups) and all(isinstance(one, str) for one in flat)
    if not whole or sorted(flat) != sorted(letters):
        words = f"hold each of {', '.join(letters)} once, in lists from best to worst, ties in one list"
        raise Fault("invalid", f"{place} must {words}", field=place)
    return {"order": [[letters[one] for one in group] for group in groups]}


def _expect(fits: Any, field: str, words: str) -> None:
    """Refuse an answer with a field that does not fit."""
    if not fits:
        raise Fault("invalid", f"{field} must be {words}", field=field)


def _is_number(value: Any, kind: Any) -> bool:
    """Whether a value is a number of a kind, which true and false are not."""
    return isinstance(value, kind) and not isinstance(value, bool)


def shown_value(order: Sequence[int], kept: Json) -> Json:
    """Return a kept answer in the letters of the items shown."""
    if "winner" in kept:
        winner = "tie" if kept["winner"] == "tie" else "a" if kept[kept["winner"]] == order[0] else "b"
        return {"winner": winner} | ({"strength": kept["strength"]} if "strength" in kept else {})
    if "order" in kept:
        letters = {item: LABELS[place] for place, item in enumerate(order)}
        return {"order": [[letters[item] for item in group] for group in kept["order"]]}
    return kept


def shown_answer(settings: Settings, order: Sequence[int], kept: Json) -> Json:
    """Return a kept answer in the letters of the items shown.

    Examples
    --------
    >>> settings = Settings(name="x", kind="ranking", budget=1)
    >>> shown_answer(settings, [12, 15], kept_answer(settings, [12, 15], {"order": [["b"], ["a"]]}))
    {'order': [['b'], ['a']]}
    """
    main = {name: value for name, value in kept.items() if name != "answers"}
    if not settings.questions:
        return shown_value(order, main)
    every = {settings.main_question.name: main, **kept.get("answers", {})}
    names = [one.name for one in settings.questions if one.name in every]
    return {"answers": {name: shown_value(order, every[name]) for name in names}}


def body_hash(*parts: Any) -> str:
    """Return a fingerprint of what was sent, by which a repeat is distinguished from another answer."""
    plain = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def storable(text: str) -> str:
    """Return a text without characters that steer a terminal or that a database refuses; lines stay."""
    plain = text.encode("utf-8", "replace").decode()
    return "".join(letter for letter in plain if letter.isprintable() or letter == "\n").strip()


MAX_COMMENT = 2_000
MAX_UNDO = 20
"""Judgments back that an annotator can still withdraw."""


Comment = Annotated[
    str, AfterValidator(storable), Field(max_length=MAX_COMMENT), must_be(f"a text of up to {MAX_COMMENT} characters"),
]  # fmt: skip


class Submission(Body):
    """A judgment as it is sent."""

    submission: Annotated[
        str, AfterValidator(lambda text: str(uuid.UUID(text))), must_be("a UUID that you make up and keep")
    ]
    request: Annotated[int, Field(gt=0, lt=2**63), must_be("the number of a request")]
    answer: Any = None
    comment: Comment = ""
    replaces: Annotated[str | None, Field(max_length=64), must_be("the submission id of your earlier judgment")] = None
    seconds: Annotated[int | float | None, Field(ge=0, le=1e7), must_be("a number of seconds, or left out")] = None

    @property
    def body_hash(self) -> str:
        """Fingerprint of what was sent."""
        rest = [self.comment, self.replaces] if self.comment or self.replaces else []
        return body_hash(self.request, self.answer, self.seconds, *rest)


@dataclass(frozen=True)
class Stored:
    """A judgment that is kept, and what the annotator does next where they asked."""

    seq: int
    replayed: bool
    counted: bool
    withdrawn: bool = False
    next: Claim | None = None
    known: tuple[list[int], Json] | None = None
    """Of an item of known truth, in what order it was shown and the answer."""

    def plain(self) -> Json:
        """Return what is answered to the annotator."""
        answer = {"seq": self.seq, "replayed": self.replayed, "counted": self.counted}
        return {**answer, "withdrawn": True} if self.withdrawn else answer


def submit(db: Session, annotator: int, submission: Submission, *, next: bool = False) -> Stored:
    """Keep a judgment; the same submission again gives the first answer.

    With ``next`` the annotator gets their next request too; on PostgreSQL ask for that in a transaction of its own,
    since locks are taken in another order.
    """
    who = active_annotator(db, annotator)
    kept = keep(db, who, submission)
    return replace(kept, next=claim_for(db, who)) if next else kept


def keep_all(db: Session, who: Any, submissions: list[Submission]) -> list[Stored | Fault] | None:
    """Keep judgments on requests that wait for them, in a few round trips however many they are.

    The annotator and all targets are locked. ``None``, with nothing kept, where one of the judgments was sent before or
    is on a request that ended or was withdrawn: then each must be looked at on its own.
    """
    names, numbers = [one.submission for one in submissions], [one.request for one in submissions]
    if len(set(names)) < len(submissions) or len(set(numbers)) < len(submissions):
        return None
    if sql.any_stored.first(db, submissions=names) is not None:
        return None
    requests = {row.id: row for row in sql.requests.rows(db, requests=numbers, annotator=who.id)}
    answers: list[Stored | Fault | None] = []
    kept: list[tuple[Submission, Any, Any]] = []
    for one in submissions:
        try:
            request = expect_found(requests.get(one.request), "request of yours")
            answer = kept_answer(db.settings, json.loads(request.shown)["order"], one.answer)
        except Fault as fault:
            answers.append(fault)
            continue
        if request.state != "offered" or request.reason == "withdrawn" or one.replaces:
            return None
        answers.append(None)
        kept.append((one, request, answer))
    stored = iter(_store(db, who, kept) if kept else ())
    return [next(stored) if one is None else one for one in answers]


def _store(
    db: Session, who: Any, kept: list[tuple[Submission, Any, Any]], *, is_late: bool = False, counts: bool = True,
    replaces: str | None = None,
) -> list[Stored]:  # fmt: skip
    """Write judgments with their requests' rows and their answers; all targets are locked.

    Money is reserved for them, unless it is one that comes late; that one may also be beyond what ``counts``.
    """
    now, cost, paid = db.now(), sum(row.cost for _, row, _ in kept), 1
    sql.count_answered.run(db, annotator=who.id, n=len(kept))
    ended = [{"request": row.id, "seat": row.seat, "now": now, "cost": row.cost} for _, row, _ in kept]
    sql.answer_request.run_many(db, ended)
    # the campaign's row comes last of all locks and gives the numbers in the order of commits
    last = sql.next_seq.first(db, n=len(kept), paid=cost, extra=cost if is_late else 0)
    if last is None:
        # a late answer beyond the budget is kept all the same, and not paid
        paid = 0
        sql.leave_unpaid.run(db, request=kept[0][1].id)
        last = sql.next_seq.first(db, n=1, paid=0, extra=0)
    stored, rows = [], []
    for seq, (sent, request, answer) in enumerate(kept, last.seq - len(kept) + 1):
        counted = counts and (request.seat is not None or bool(request.is_check))
        known = (json.loads(request.shown)["order"], answer) if request.is_check else None
        stored.append(Stored(seq, False, counted, known=known))
        about = {"counted": int(counted), "paid": paid, "replaces": replaces}
        rows.append(_judgment_row(db, sent, request, answer, seq, now) | about)
    sql.insert_judgment.run_many(db, rows)
    for _, request, _ in kept:
        if not request.is_check:
            settle_after_answer(db, request.target)
    return stored


def _judgment_row(db: Session, sent: Submission, request: Any, answer: Any, seq: int, now: int) -> Json:
    """A judgment as its table holds it: what was sent, the request's row, the answer as it is kept."""
    return {
        "submission": sent.submission, "campaign": db.id, "seq": seq, "request": request.id,
        "annotator": request.annotator, "target": request.target, "answer": json.dumps(answer),
        "body_hash": sent.body_hash, "seconds": sent.seconds, "at": now, "comment": sent.comment,
    }  # fmt: skip


def keep(db: Session, who: Any, submission: Submission, *, locked: bool = False) -> Stored:
    """Keep a judgment of an annotator whose row is locked; ``locked`` where that of its target is too."""
    stored = sql.stored_judgment.first(db, submission=submission.submission)
    if stored is not None:
        if stored.annotator != who.id or stored.body_hash != submission.body_hash:
            raise Fault("submission_conflict", "this submission id was used for something else; make up another")
        withdrawn = stored.withdrawn_at is not None
        return Stored(stored.seq, True, bool(stored.counted) and not withdrawn, withdrawn)
    request = _own_request(db, who, submission.request)
    answer = kept_answer(db.settings, json.loads(request.shown)["order"], submission.answer)
    if not db.is_sqlite and not locked:
        # what was read before the lock may have changed since
        request = _locked_request(db, who, request.id)
    if request.state in ("expired", "skipped"):
        # a late answer belongs to the newer request on the same target where there is one
        newer = sql.other_request.first(db, target=request.target, annotator=who.id, request=request.id)
        if newer is not None:
            own = _own_request(db, who, newer.id)
            if own.state == "skipped":
                # an answer after all: the skip no longer stands
                sql.supersede_request.run(db, request=own.id)
            else:
                request = own
    if request.state == "answered":
        if submission.replaces is not None:
            return _change(db, who, request, submission, answer)
        raise _already_answered(db, request)
    is_late, counts, former = request.state != "offered", True, None
    if is_late:
        counts = sql.campaign_state.first(db).state != "closed"
        seat = take_seat(db, request.target, request.seat) if counts and not request.is_check else None
        request = request._replace(seat=seat, cost=who.cost)
    if request.reason == "withdrawn":
        former = sql.last_withdrawn.first(db, target=request.target, request=request.id).submission
    kept = [(submission, request, answer)]
    return _store(db, who, kept, is_late=is_late, counts=counts, replaces=former)[0]


def _change(db: Session, who: Any, request: Any, submission: Submission, answer: Any) -> Stored:
    """A judgment in the place of an earlier one, which stays as a withdrawn one; seat and price remain as they are."""
    old = sql.judgment_of_request.first(db, request=request.id)
    if old.submission != submission.replaces:
        raise _already_answered(db, request)
    if sql.campaign_state.first(db).state == "closed":
        raise Fault("closed", "the campaign is closed; judgments stay as they are")
    now = db.now()
    sql.withdraw_judgment.run(db, submission=old.submission, now=now)
    # the former judgment does not count any more, which a fit has to see
    sql.unspend.run(db, cost=0)
    row = sql.next_seq.first(db, n=1, paid=0, extra=0)
    about = {"counted": old.counted, "paid": old.paid, "replaces": old.submission}
    sql.insert_judgment.run(db, **_judgment_row(db, submission, request, answer, row.seq, now), **about)
    if not request.is_check:
        settle_target(db, request.target)
    return Stored(row.seq, False, bool(old.counted))


def set_comment(db: Session, annotator: int, submission: str, text: str) -> None:
    """Keep what an annotator says about a judgment of theirs."""
    who = active_annotator(db, annotator)
    kept = sql.set_comment.run(db, submission=submission, annotator=who.id, comment=text)
    expect_found(kept.rowcount, "judgment of yours")


def withdraw(db: Session, annotator: int, submission: str) -> tuple[int, str]:
    """Take a judgment back: its request is offered again; return the request and the answer as it was kept."""
    who = active_annotator(db, annotator)
    mine = expect_found(sql.own_judgment.first(db, submission=submission, annotator=annotator), "judgment of yours")
    request = _locked_request(db, who, mine.request)
    mine = sql.own_judgment.first(db, submission=submission, annotator=annotator)
    if mine.withdrawn_at is not None:
        if request.state == "offered":
            return mine.request, mine.answer
        raise Fault("not_yours_to_undo", "this judgment was withdrawn before")
    if sql.campaign_state.first(db).state == "closed":
        raise Fault("closed", "the campaign is closed; judgments stay as they are")
    if sql.n_later_judgments.number(db, annotator=annotator, seq=mine.seq) >= MAX_UNDO:
        raise Fault("not_yours_to_undo", f"only your last {MAX_UNDO} judgments can be withdrawn")
    now = db.now()
    sql.withdraw_judgment.run(db, submission=submission, now=now)
    lease = db.lease
    sql.offer_again.run(db, request=mine.request, until=now + lease, most=now + 3 * lease)
    sql.count_answered.run(db, annotator=annotator, n=-1)
    if not request.is_check:
        settle_target(db, mine.target)
    sql.unspend.run(db, cost=request.cost)
    return mine.request, mine.answer


def _own_request(db: Session, who: Any, request: int) -> Any:
    """A request of the annotator's; anybody else's is not there."""
    return expect_found(sql.requests.first(db, requests=[request], annotator=who.id), "request of yours")


def _locked_request(db: Session, who: Any, request: int) -> Any:
    """A request of the annotator's whose target is locked; what was read before the lock may have changed since."""
    sql.lock_target.run(db, target=_own_request(db, who, request).target)
    return _own_request(db, who, request)


def _already_answered(db: Session, request: Any) -> Fault:
    """The fault that gives the answer stored under another submission id."""
    stored = sql.judgment_of_request.first(db, request=request.id)
    shown = shown_answer(db.settings, json.loads(request.shown)["order"], json.loads(stored.answer))
    return Fault(
        "already_answered", "this request was answered before, under another submission id",
        answer=shown, submission=stored.submission, seq=stored.seq,
    )  # fmt: skip


MAX_REASON = 500


def extend(db: Session, annotator: int, request: int) -> int:
    """Hold a request for longer, three times the usual lease in all; return until when."""
    row = _locked_request(db, active_annotator(db, annotator), request)
    now = db.now()
    if row.state != "offered" or row.lease_until <= now:
        raise Fault("lease_over", "this request is no longer held for you; you can still send your answer, or go on")
    until = max(row.lease_until, min(now + db.lease, row.lease_most))
    sql.extend_lease.run(db, request=request, until=until)
    return int(until)


def skip(db: Session, annotator: int, request: int, reason: str) -> str:
    """Give a request back for good: its seat and money are free, and it never returns to this annotator."""
    row = _locked_request(db, active_annotator(db, annotator), request)
    if row.state == "skipped":
        return "skipped"
    if row.state == "answered":
        raise Fault("already_answered", "this request was answered; withdraw the judgment first")
    other = sql.other_request.first(db, target=row.target, annotator=annotator, request=request)
    if row.state == "expired" and other is not None:
        return "expired"
    sql.skip_request.run(db, request=request, now=db.now(), reason=reason[:MAX_REASON])
    sql.count_skip.run(db, target=row.target)
    if row.state == "offered":
        promoted = free_seat(db, row.target) if row.seat is not None else 0
        reserve(db, -row.cost, promoted)
    return "skipped"
