"""Many at once: the last seat, the last unit of money, the same submission twice, two tabs of one annotator."""

import os
import random
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

from tests.web.collecting import add_annotator, allow, ask, collect, expect_promises, run, sent

from crowdrank.web.submitting import claim, skip, submit, withdraw

SIZE = "CROWDRANK_RACES"
"""Environment variable with the size of the crowd, such as ``32x2000``: threads and operations of each."""


def crowd(collection, n_threads, n_operations, seed=0):
    """Threads that claim, submit, repeat, skip and undo; returns what was acknowledged."""
    who = [add_annotator(collection, f"a{n}") for n in range(max(1, n_threads // 2))]
    acknowledged, lock = {}, threading.Lock()

    def work(number):
        draws = random.Random(seed * 1000 + number)
        # two threads for each annotator: two tabs
        me = who[number % len(who)]
        done = []
        for _ in range(n_operations):
            with allow("already_answered", "busy", "not_yours_to_undo", "submission_conflict"):
                found = run(collection, claim, me)
                if not found.requests:
                    if found.reason in ("done", "budget", "judged_all"):
                        return
                    continue
                if draws.random() < 0.05:
                    run(collection, skip, me, found.requests[0], "unclear")
                    continue
                judgment = sent(found.requests[0], {"grade": draws.randrange(4)})
                stored = run(collection, submit, me, judgment)
                with lock:
                    assert acknowledged.setdefault(judgment.submission, stored.seq) == stored.seq
                done.append(judgment)
                if draws.random() < 0.1:
                    assert run(collection, submit, me, draws.choice(done)).replayed
                if draws.random() < 0.03:
                    run(collection, withdraw, me, done[-1].submission)

    with ThreadPoolExecutor(n_threads) as threads:
        for future in [threads.submit(work, number) for number in range(n_threads)]:
            future.result()
    return acknowledged


def test_a_crowd_at_once(store):
    n_threads, n_operations = 12, 25 if store.dialect == "sqlite" else 10
    n_items, budget = 40, 90
    if SIZE in os.environ:
        n_threads, n_operations = map(int, os.environ[SIZE].split("x"))
        # about half of the operations keep a judgment, so the money ends before the threads do
        n_items, budget = n_threads * n_operations // 2, n_threads * n_operations // 4
    collection = collect(store, n_items=n_items, scheme="if-good-3", budget=budget)
    acknowledged = crowd(collection, n_threads, n_operations)
    expect_promises(collection)
    rows = {row.submission: row.seq for row in ask(collection, "SELECT submission, seq FROM judgment")}
    assert rows == acknowledged


def test_the_last_seat_and_the_last_money_go_to_one(store):
    collection = collect(store, n_items=1, scheme="single", budget=5)
    who = [add_annotator(collection, f"a{n}") for n in range(12)]
    with ThreadPoolExecutor(12) as threads:
        found = list(threads.map(lambda one: run(collection, claim, one), who))
    assert sum(len(one.requests) for one in found) == 1
    assert {one.reason for one in found if not one.requests} <= {"all_leased"}
    expect_promises(collection)


def test_the_same_submission_at_once_is_kept_once(store):
    collection = collect(store, n_items=2)
    ann = add_annotator(collection, "ann")
    (request,) = run(collection, claim, ann).requests
    judgment = sent(request, submission=str(uuid.uuid4()))
    with ThreadPoolExecutor(8) as threads:
        stored = list(threads.map(lambda _: run(collection, submit, ann, judgment), range(8)))
    assert {one.seq for one in stored} == {1}
    assert sum(not one.replayed for one in stored) == 1
    expect_promises(collection)


def test_expiry_at_the_instant_of_submission(store):
    collection = collect(store, n_items=1, scheme="single", lease_seconds=5)
    ann, bob = add_annotator(collection, "ann"), add_annotator(collection, "bob")
    (request,) = run(collection, claim, ann).requests
    now = collection.store.now
    collection.store.now = lambda connection: now(connection) + 5_000_001
    with ThreadPoolExecutor(2) as threads:
        taken = threads.submit(run, collection, claim, bob)
        stored = threads.submit(run, collection, submit, ann, sent(request)).result()
        # either the answer was first and holds its seat, or bob was and it is a spare
        assert stored.counted == (not taken.result().requests)
    expect_promises(collection)
