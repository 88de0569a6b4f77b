"""A campaign against a twin in plain dictionaries: whatever people do, in whatever order, the promises hold."""

import uuid
import warnings

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from sqlalchemy import text
from tests.web.collecting import add_annotator, allow, ask, campaign, expect_promises, run, sent

from crowdrank.web.access import set_annotator_state, uncount_some
from crowdrank.web.collection import Fault
from crowdrank.web.setup import open_collection, set_campaign_state
from crowdrank.web.submitting import claim, extend, skip, submit, withdraw

WHO = st.integers(0, 3)
BUDGET, LEASE = 14, 10


class Crowd(RuleBasedStateMachine):
    """Four annotators on three items."""

    store = None
    scheme = "if-good-3"

    def __init__(self) -> None:
        super().__init__()
        self.shift = 0
        self.store.submit(lambda c: [c.execute(text(f"DELETE FROM {name}")) for name in TABLES]).result()
        made = campaign(n_items=3, scheme=self.scheme, budget=BUDGET, lease_seconds=LEASE, overlap_max=3)
        self.collection = open_collection(self.store, made, "0")[0]
        self.who = [add_annotator(self.collection, f"a{n}", "program" if n == 3 else "person") for n in range(4)]
        self.requests: dict[int, int] = {}
        self.acknowledged: dict[str, tuple[int, object]] = {}
        self.withdrawn: set[str] = set()
        self.removed: set[int] = set()
        self.closed = False

    @rule(who=WHO, n=st.integers(1, 3))
    def claims(self, who, n):
        if who in self.removed:
            with pytest.raises(Fault, match="no longer part"):
                run(self.collection, claim, self.who[who], n)
            return
        found = run(self.collection, claim, self.who[who], n)
        assert bool(found.requests) != (found.reason is not None)
        assert len(found.requests) <= (1 if who < 3 else 3) or self.withdrawn
        for request in found.requests:
            assert self.requests.setdefault(request, who) == who

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), grade=st.integers(0, 3))
    def submits(self, data, grade):
        request = data.draw(st.sampled_from(sorted(self.requests)))
        who = self.requests[request]
        judgment = sent(request, {"grade": grade})
        with allow("already_answered", "forbidden"):
            stored = run(self.collection, submit, self.who[who], judgment)
            assert not stored.replayed
            assert not (self.closed and stored.counted)
            self.acknowledged[judgment.submission] = (who, judgment)

    @precondition(lambda self: self.acknowledged)
    @rule(data=st.data())
    def replays(self, data):
        name = data.draw(st.sampled_from(sorted(self.acknowledged)))
        who, judgment = self.acknowledged[name]
        if who in self.removed:
            return
        assert run(self.collection, submit, self.who[who], judgment).replayed
        with pytest.raises(Fault):
            run(self.collection, submit, self.who[(who + 1) % 4], judgment)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def skips_or_extends(self, data):
        request = data.draw(st.sampled_from(sorted(self.requests)))
        who, longer = self.requests[request], data.draw(st.booleans())
        with allow("already_answered", "lease_over", "forbidden"):
            if longer:
                run(self.collection, extend, self.who[who], request)
            else:
                run(self.collection, skip, self.who[who], request, "unclear")

    @precondition(lambda self: set(self.acknowledged) - self.withdrawn)
    @rule(data=st.data())
    def undoes(self, data):
        name = data.draw(st.sampled_from(sorted(set(self.acknowledged) - self.withdrawn)))
        with allow("closed", "forbidden"):
            run(self.collection, withdraw, self.who[self.acknowledged[name][0]], name)
            self.withdrawn.add(name)

    @rule(seconds=st.sampled_from([1, LEASE + 1, 3 * LEASE]))
    def time_passes(self, seconds):
        self.shift += seconds * 1_000_000
        shift, now = self.shift, type(self.store).now
        self.store.now = lambda connection: now(self.store, connection) + shift

    @rule(state=st.sampled_from(["paused", "open"]))
    def owner_pauses(self, state):
        if not self.closed:
            run(self.collection, set_campaign_state, state, "owner")

    @rule(who=WHO, uncount=st.booleans())
    def owner_removes(self, who, uncount):
        if len(self.removed) == 2:
            return
        self.removed.add(who)
        run(self.collection, set_annotator_state, self.who[who], "removed")
        while uncount and run(self.collection, uncount_some, self.who[who]):
            pass

    @precondition(lambda self: len(self.acknowledged) > 6)
    @rule()
    def owner_closes(self):
        self.closed = True
        run(self.collection, set_campaign_state, "closed", "owner")

    @invariant()
    def promises_hold(self):
        expect_promises(self.collection)
        rows = {row.submission: row for row in ask(self.collection, "SELECT submission, withdrawn_at FROM judgment")}
        assert set(rows) == set(self.acknowledged)
        assert {name for name, row in rows.items() if row.withdrawn_at is not None} == self.withdrawn


TABLES = (
    "event",
    "judgment",
    "request",
    "target",
    "item",
    "invite",
    "annotator",
    "quality",
    "score",
    "fit",
    "campaign",
)


@pytest.mark.parametrize("scheme", ["if-good-3", "good_till_bad", "2-overlap"])
def test_the_promises_hold_whatever_people_do(store, scheme):
    if store.dialect == "postgresql" and scheme != "if-good-3":
        pytest.skip("the same code as on SQLite; one scheme is enough on the slower database")
    open_collection(store, campaign(), "0")
    machine = type("Machine", (Crowd,), {"store": store, "scheme": scheme})
    rounds = 2 if store.dialect == "postgresql" else 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=rounds, stateful_step_count=25, deadline=None, database=None, derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )  # fmt: skip


def test_an_id_is_used_once_even_after_undo(store):
    collection = open_collection(store, campaign(scheme="single"), "0")[0]
    ann, bob = add_annotator(collection, "ann"), add_annotator(collection, "bob")
    name = str(uuid.uuid4())
    (request,) = run(collection, claim, ann).requests
    run(collection, submit, ann, sent(request, submission=name))
    run(collection, withdraw, ann, name)
    (other,) = run(collection, claim, bob).requests
    with pytest.raises(Fault, match="used for something else"):
        run(collection, submit, bob, sent(other, submission=name))
