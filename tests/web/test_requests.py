import json
import re
import uuid

import pytest
from tests.web.collecting import add_annotator, ask, collect, expect_promises, run, sent

from crowdrank.web.collection import Fault, SqliteStore, sql
from crowdrank.web.service import _submit_all, item_contents
from crowdrank.web.submitting import claim, extend, skip, submit, withdraw


def answer(collection, who, grade=2):
    (request,) = run(collection, claim, who).requests
    return run(collection, submit, who, sent(request, {"grade": grade}))


def later(collection, seconds):
    """Let time pass for everything that asks the store for it."""
    now = collection.store.now
    collection.store.now = lambda connection: now(connection) + int(seconds * 1e6)


def test_a_request_is_held_until_it_is_answered(store):
    collection = collect(store, n_items=2, scheme="2-overlap")
    ann = add_annotator(collection, "ann")
    first = run(collection, claim, ann)
    assert run(collection, claim, ann).requests == first.requests
    name = str(uuid.uuid4())
    stored = run(collection, submit, ann, sent(first.requests[0], submission=name))
    again = run(collection, submit, ann, sent(first.requests[0], submission=name))
    assert (stored.seq, stored.replayed, stored.counted) == (1, False, True)
    assert (again.seq, again.replayed) == (1, True)
    (second,) = run(collection, claim, ann).requests
    assert second != first.requests[0]
    expect_promises(collection)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"answer": {"grade": 3}}, "submission_conflict"),
        ({"submission": None}, "already_answered"),
        ({"request": 999}, "not_found"),
        ({"submission": None, "answer": {"grade": 9}}, "invalid"),
    ],
)
def test_what_a_second_submission_meets(store, change, kind):
    collection = collect(store)
    ann = add_annotator(collection, "ann")
    (request,) = run(collection, claim, ann).requests
    body = {"request": request, "answer": {"grade": 1}, "submission": str(uuid.uuid4())}
    run(collection, submit, ann, sent(**body))
    change = {**body, **change}
    if kind == "not_found":
        change["submission"] = None
    with pytest.raises(Fault) as caught:
        run(collection, submit, ann, sent(**change))
    assert caught.value.kind == kind
    if kind == "already_answered":
        assert caught.value.detail["answer"] == {"grade": 1}
    expect_promises(collection)


def test_nobody_learns_of_anothers_submission(store):
    collection = collect(store)
    ann, bob = add_annotator(collection, "ann"), add_annotator(collection, "bob")
    name = str(uuid.uuid4())
    (mine,) = run(collection, claim, ann).requests
    run(collection, submit, ann, sent(mine, submission=name))
    for request in (mine, run(collection, claim, bob).requests[0]):
        with pytest.raises(Fault) as caught:
            run(collection, submit, bob, sent(request, submission=name))
        assert caught.value.kind == "submission_conflict"
        assert caught.value.detail == {}
    with pytest.raises(Fault, match="no such request of yours"):
        run(collection, submit, bob, sent(mine))


def test_seats_end_and_reasons_say_why(store):
    collection = collect(store, n_items=1, scheme="2-overlap")
    ann, bob, cy = (add_annotator(collection, name) for name in ("ann", "bob", "cy"))
    answer(collection, ann)
    assert run(collection, claim, ann).reason == "judged_all"
    run(collection, claim, bob)
    waiting = run(collection, claim, cy)
    assert waiting.reason == "all_leased"
    assert 590 < waiting.retry_after <= 600
    answer(collection, bob)
    assert run(collection, claim, cy).reason == "done"
    expect_promises(collection)


def test_the_last_unit_of_the_budget(store):
    collection = collect(store, budget=9, cost={"person": 4, "program": 1})
    ann, bob, cy = (add_annotator(collection, name) for name in ("ann", "bob", "cy"))
    answer(collection, ann)
    run(collection, claim, bob)
    assert run(collection, claim, cy).reason == "budget"
    robot = add_annotator(collection, "robot", "program")
    assert len(run(collection, claim, robot, 5).requests) == 1
    expect_promises(collection)


def test_an_expired_lease_is_free_at_once_and_a_late_answer_is_kept(store):
    collection = collect(store, n_items=1, scheme="single", lease_seconds=10)
    ann, bob = add_annotator(collection, "ann"), add_annotator(collection, "bob")
    (late,) = run(collection, claim, ann).requests
    later(collection, 11)
    (other,) = run(collection, claim, bob).requests
    spare = run(collection, submit, ann, sent(late, {"grade": 0}))
    assert not spare.counted
    expect_promises(collection)
    # the seat frees, and the spare gets it before anyone is asked again
    run(collection, skip, bob, other, "unclear")
    assert [row.counted for row in ask(collection, "SELECT counted FROM judgment")] == [1]
    assert run(collection, claim, add_annotator(collection, "cy")).reason == "done"
    expect_promises(collection)


def test_a_late_answer_takes_its_seat_while_it_is_free(store):
    collection = collect(store, n_items=1, scheme="single", lease_seconds=10)
    ann, bob = add_annotator(collection, "ann"), add_annotator(collection, "bob")
    (late,) = run(collection, claim, ann).requests
    later(collection, 11)
    run(collection, claim, bob)
    later(collection, 11)
    (again,) = run(collection, claim, ann).requests
    assert again != late
    stored = run(collection, submit, ann, sent(late))
    assert stored.counted
    states = {row.id: row.state for row in ask(collection, "SELECT id, state FROM request")}
    assert (states[late], states[again]) == ("expired", "answered")
    expect_promises(collection)


def test_a_late_answer_beyond_the_budget_is_kept_unpaid(store):
    collection = collect(store, n_items=2, scheme="single", budget=1, lease_seconds=10)
    ann, bob = add_annotator(collection, "ann"), add_annotator(collection, "bob")
    (late,) = run(collection, claim, ann).requests
    later(collection, 11)
    answer(collection, bob)
    stored = run(collection, submit, ann, sent(late))
    (row,) = ask(collection, "SELECT paid, counted FROM judgment WHERE seq = :s", s=stored.seq)
    assert row.paid == 0
    expect_promises(collection)


def test_skipping_frees_the_seat_and_never_returns(store):
    collection = collect(store, n_items=1, scheme="single")
    ann, bob = add_annotator(collection, "ann"), add_annotator(collection, "bob")
    (request,) = run(collection, claim, ann).requests
    assert run(collection, skip, ann, request, "broken") == "skipped"
    assert run(collection, skip, ann, request, "broken") == "skipped"
    assert run(collection, claim, ann).reason == "judged_all"
    assert len(run(collection, claim, bob).requests) == 1
    # an answer after all is not lost
    assert not run(collection, submit, ann, sent(request)).counted
    expect_promises(collection)


def test_extending_ends_at_three_leases(store):
    collection = collect(store, lease_seconds=10)
    ann = add_annotator(collection, "ann")
    (request,) = run(collection, claim, ann).requests
    untils = []
    for _ in range(6):
        untils.append(run(collection, extend, ann, request))
        later(collection, 5)
    assert untils[-1] == untils[-2]
    assert 29e6 < untils[-1] - ask(collection, "SELECT offered_at FROM request")[0].offered_at <= 30e6
    later(collection, 5)
    with pytest.raises(Fault, match="no longer held"):
        run(collection, extend, ann, request)


def test_undo_offers_the_request_again(store):
    collection = collect(store, n_items=3, scheme="if-good-3")
    ann = add_annotator(collection, "ann")
    (request,) = run(collection, claim, ann).requests
    first = sent(request, {"grade": 3})
    run(collection, submit, ann, first)
    assert ask(collection, "SELECT MAX(wanted) AS w FROM target")[0].w == 3
    assert run(collection, withdraw, ann, first.submission)[0] == request
    assert run(collection, withdraw, ann, first.submission)[0] == request
    assert ask(collection, "SELECT MAX(wanted) AS w FROM target")[0].w == 1
    second = sent(request, {"grade": 0})
    run(collection, submit, ann, second)
    rows = ask(collection, "SELECT submission, replaces, withdrawn_at FROM judgment ORDER BY seq")
    assert rows[1].replaces == first.submission
    assert rows[0].withdrawn_at is not None
    expect_promises(collection)


def test_only_the_last_twenty_can_be_undone(store):
    collection = collect(store, n_items=25, scheme="single")
    ann = add_annotator(collection, "ann")
    names = []
    for _ in range(22):
        (request,) = run(collection, claim, ann).requests
        names.append(sent(request))
        run(collection, submit, ann, names[-1])
    with pytest.raises(Fault, match="last 20"):
        run(collection, withdraw, ann, names[1].submission)
    run(collection, withdraw, ann, names[2].submission)
    expect_promises(collection)


@pytest.mark.parametrize(
    ("scheme", "grades", "wanted"),
    [
        ("3-overlap", [0], 3), ("if-good-3", [1], 1), ("if-good-3", [2], 3), ("if-good-3", [2, 0], 3),
        ("good_till_bad", [3, 3], 3), ("good_till_bad", [3, 1], 2), ("good_till_bad", [3, 3, 3, 3], 4),
    ],
)  # fmt: skip
def test_schemes_decide_in_the_transaction(store, scheme, grades, wanted):
    collection = collect(store, n_items=1, scheme=scheme, overlap_max=4)
    for place, grade in enumerate(grades):
        answer(collection, add_annotator(collection, f"a{place}"), grade)
    assert ask(collection, "SELECT wanted FROM target")[0].wanted == wanted
    expect_promises(collection)


def test_checks_are_mixed_in_and_take_no_seats(store):
    collection = collect(store, n_items=12, n_known=6, checks=0.5, scheme="single")
    robot = add_annotator(collection, "robot", "program")
    found = run(collection, claim, robot, 12).requests
    rows = ask(collection, "SELECT t.is_check, r.seat FROM request r JOIN target t ON t.id = r.target")
    checks = [row for row in rows if row.is_check]
    assert 0 < len(checks) <= 6
    assert all(row.seat is None for row in checks)
    for request in found:
        run(collection, submit, robot, sent(request))
    expect_promises(collection)


@pytest.mark.parametrize("kind", ["preference", "ranking"])
def test_items_are_shown_in_an_order_that_is_drawn_and_kept(store, kind):
    collection = collect(store, kind=kind, n_items=4, n_queries=30, scheme="single", set_size=4)
    robot = add_annotator(collection, "robot", "program")
    run(collection, claim, robot, 100)
    orders = [json.loads(row.shown)["order"] for row in ask(collection, "SELECT shown FROM request")]
    turned = [order != sorted(order) for order in orders]
    assert 0.2 < sum(turned) / len(turned) <= 1
    (row,) = ask(collection, "SELECT id, shown FROM request ORDER BY id LIMIT 1")
    order = json.loads(row.shown)["order"]
    given = {"winner": "b"} if kind == "preference" else {"order": [["b"], ["a", "d"], ["c"]]}
    stored = run(collection, submit, robot, sent(row.id, given))
    kept = json.loads(ask(collection, "SELECT answer FROM judgment WHERE seq = :s", s=stored.seq)[0].answer)
    if kind == "preference":
        assert kept == {"left": order[0], "right": order[1], "winner": "right"}
    else:
        assert kept == {"order": [[order[1]], [order[0], order[3]], [order[2]]]}


def test_a_removed_annotator_can_do_nothing(store):
    from sqlalchemy import text

    collection = collect(store)
    ann = add_annotator(collection, "ann")
    (request,) = run(collection, claim, ann).requests
    change = text("UPDATE annotator SET state = 'removed'")
    collection.store.submit(lambda connection: connection.execute(change)).result()
    for operation, rest in ((claim, ()), (submit, (sent(request),)), (skip, (request, "")), (extend, (request,))):
        with pytest.raises(Fault) as caught:
            run(collection, operation, ann, *rest)
        assert caught.value.status == 403


def test_a_batch_is_kept_as_its_judgments_would_be_one_by_one(store):
    collection = collect(store, n_items=8, scheme="if-good-3", open_limit=8)
    ann, bob = (add_annotator(collection, name, "program") for name in ("ann", "bob"))
    mine, others = run(collection, claim, ann, 5).requests, run(collection, claim, bob, 1).requests
    # somebody else's request and an answer that is none are refused, and cost the others nothing
    batch = [sent(mine[0], {"grade": 3}), sent(others[0]), sent(mine[1], {"grade": 9}), sent(mine[2], {"grade": 0})]
    first = run(collection, _submit_all, ann, batch)
    assert [one.kind if isinstance(one, Fault) else one.seq for one in first] == [1, "not_found", "invalid", 2]
    # with one that was sent before each is looked at on its own
    again = run(collection, _submit_all, ann, [batch[0], sent(mine[3]), sent(mine[3])])
    assert [one.kind if isinstance(one, Fault) else (one.seq, one.replayed) for one in again] == [
        (1, True), (3, False), "already_answered",
    ]  # fmt: skip
    wanted = dict(ask(collection, "SELECT r.id, t.wanted FROM request r JOIN target t ON t.id = r.target"))
    assert (wanted[mine[0]], wanted[mine[2]]) == (3, 1)
    assert ask(collection, "SELECT n_answered FROM annotator WHERE id = :a", a=ann) == [(3,)]
    expect_promises(collection)


def test_requests_of_a_batch_take_the_lowest_free_seats(store):
    collection = collect(store, n_items=3, scheme="3-overlap", open_limit=3)
    people = [add_annotator(collection, name, "program") for name in ("ann", "bob", "cid", "dan")]
    held = [run(collection, claim, who, 3).requests for who in people[:2]]
    run(collection, skip, people[0], held[0][0], "")
    for who in people[2:]:
        run(collection, claim, who, 3)
    seats = ask(collection, "SELECT target, seat FROM request WHERE state = 'offered' ORDER BY target, seat")
    assert [seat for _, seat in seats] == [1, 2, 3] * 3
    expect_promises(collection)


def test_some_targets_are_completed_first(tmp_path):
    """Six people with ten judgments each in a campaign of 300 items: everybody shares items with others."""
    store = SqliteStore(tmp_path / "campaign.db")
    try:
        collection = collect(store, n_items=300, scheme="3-overlap")
        for name in "abcdef":
            who = add_annotator(collection, name)
            for _ in range(10):
                answer(collection, who)
        judged = ask(collection, "SELECT target, COUNT(*) AS n FROM judgment GROUP BY target")
        assert sorted(row.n for row in judged) == [3] * 20
        # a seat that is given back is the next to be filled
        (request,) = run(collection, claim, add_annotator(collection, "g")).requests
        run(collection, skip, 7, request, "")
        assert run(collection, claim, add_annotator(collection, "h")).requests
        (target,) = ask(collection, "SELECT target FROM request WHERE id = :r", r=request)
        (again,) = ask(collection, "SELECT target FROM request ORDER BY id DESC LIMIT 1")
        assert (target,) == (again,)
        expect_promises(collection)
    finally:
        store.close()


def test_contents_are_whole_whoever_empties_the_cache_meanwhile(store):
    """Several threads read: one may empty the cache right after another looked into it."""
    collection = collect(store, n_items=1)

    class Emptied(dict):
        def get(self, key, default=None):
            found = super().get(key, default)
            self.clear()
            return found

        def __contains__(self, key):
            return self.get(key) is not None

    plain = ask(collection, "SELECT id, content FROM item ORDER BY id")
    numbers = [row.id for row in plain]
    first = collection.read(item_contents, numbers)
    object.__setattr__(collection, "contents", Emptied(collection.contents))
    assert collection.read(item_contents, numbers) == first
    assert [content for content, _, _ in first] == [row.content for row in plain]


def test_no_statement_for_one_judgment_reads_a_whole_campaign(tmp_path):
    """A campaign may have a million items, and one writer serves everybody."""
    store = SqliteStore(tmp_path / "campaign.db")
    collection = collect(store)
    try:
        statements = (sql.meant_targets, sql.earliest_lease, sql.last_withdrawn)
        for statement in (sql.item_contents, sql.any_held, *statements):
            values = dict.fromkeys(re.findall(r":(\w+)", statement._sqlite), "[1]")
            plan = ask(collection, f"EXPLAIN QUERY PLAN {statement._sqlite}", **values)
            steps = [row.detail for row in plan if "json_each" not in row.detail]
            assert "(campaign=?)" not in " ".join(steps), statement._sqlite
            assert not [step for step in steps if step.startswith("SCAN") and "request_lease" not in step]
    finally:
        store.close()


def test_people_judge_what_others_did_while_a_scheme_waits_for_its_fit(store):
    """A second judgment within the overlap and the budget; programs wait, and so does everybody with a stop rule."""
    collection = collect(store, n_items=4, scheme="agreement", overlap_max=2, overlap_first=0.0, budget=9)
    first, second, third = (add_annotator(collection, name) for name in ("ann", "bob", "cy"))
    program = add_annotator(collection, "robot", "program")
    for who in (first, second):
        for _ in range(4):
            (request,) = run(collection, claim, who).requests
            run(collection, submit, who, sent(request))
        assert run(collection, claim, program).reason == "choosing"
    assert run(collection, claim, third).reason == "choosing"
    assert [row.taken for row in ask(collection, "SELECT taken FROM target")] == [2] * 4
    expect_promises(collection)
