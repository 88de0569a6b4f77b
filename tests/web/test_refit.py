"""The consensus while judgments come in: what is asked next, open requests, the stop rule, the final fit."""

import json
import warnings

import pytest
from tests.web.collecting import add_annotator, ask, collect, expect_promises, run, sent

import crowdrank as cr
from crowdrank.web.claiming import claim
from crowdrank.web.ending import set_campaign_state
from crowdrank.web.exporting import export
from crowdrank.web.refit import Refit
from crowdrank.web.refit_worker import fit, read_snapshot
from crowdrank.web.sqlite_store import SqliteStore
from crowdrank.web.submitting import submit


class Inside:
    """The worker's work in the test's own process."""

    def __init__(self, collection):
        self.collection, self.lines, self.previous = collection, [], None
        self.process = type("Process", (), {"poll": staticmethod(lambda: None)})()

    def ask(self, command):
        snapshot = read_snapshot(self.collection.store, command["campaign"])
        self.lines = [{"begun": True, "seq": snapshot.seq, "changes": snapshot.changes}]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.previous = fit(snapshot, self.previous, self.lines.append, cold=command["cold"])

    def answer(self, timeout):
        return json.loads(json.dumps(self.lines.pop(0)))

    def end(self):
        pass


@pytest.fixture
def made(tmp_path):
    store = SqliteStore(tmp_path / "x.db")

    def make(**keys):
        collection = collect(store, **keys)
        refit = Refit(collection)
        refit._worker = Inside(collection)
        return collection, refit

    yield make
    store.close()


def judge(collection, who, n=4):
    """Answers that follow the numbers of the items, with a slip now and then."""
    for request in run(collection, claim, who, n).requests:
        order = json.loads(ask(collection, "SELECT shown FROM request WHERE id = :r", r=request)[0].shown)["order"]
        slip = request % 7 == 0
        if collection.settings.kind == "grade":
            answer = {"grade": (order[0] + slip) % 4}
        else:
            answer = {"winner": "a" if (order[0] < order[1]) != slip else "b"}
        run(collection, submit, who, sent(request, answer))


def test_pairs_are_added_where_the_order_is_open(made):
    collection, refit = made(kind="preference", n_items=7, scheme="uncertainty", overlap_max=4, method="bradley_terry")
    who = [add_annotator(collection, f"a{n}", "program") for n in range(4)]
    before = ask(collection, "SELECT COUNT(*) AS n FROM target")[0].n
    for one in who:
        judge(collection, one)
    refit.fit_now()
    after = ask(collection, "SELECT COUNT(*) AS n FROM target")[0].n
    assert before < after <= 21
    judged = {row.target for row in ask(collection, "SELECT target FROM judgment WHERE annotator = :a", a=who[0])}
    open_targets = ask(collection, "SELECT id, priority FROM target WHERE taken < wanted")
    open_targets = [target for target in open_targets if target.id not in judged]
    highest = max(target.priority for target in open_targets)
    (request,) = run(collection, claim, who[0], 1).requests
    first = ask(collection, "SELECT target FROM request WHERE id = :r", r=request)[0].target
    # several may be as urgent
    assert first in {target.id for target in open_targets if target.priority == highest}
    # what is out is not asked for again
    refit.fit_now()
    row = ask(collection, "SELECT taken, wanted FROM target WHERE id = :t", t=first)[0]
    assert row.taken <= row.wanted <= 4
    expect_promises(collection)


def test_the_scheme_chooses_whom_to_ask_what(made):
    """Those whose answers tell most get what is meant for them; what is meant for the absent waits for nobody."""
    collection, refit = made(kind="preference", n_items=8, scheme="information", overlap_max=4, method="crowd_bt")
    good = [add_annotator(collection, f"good{n}", "program") for n in range(3)]
    guesser = add_annotator(collection, "guesser", "program")
    for one in good:
        judge(collection, one, 12)
    for place, request in enumerate(run(collection, claim, guesser, 12).requests):
        run(collection, submit, guesser, sent(request, {"winner": "ab"[place % 2]}))
    refit.fit_now()
    assert collection.meant
    assert guesser not in collection.meant
    who, meant = next(iter(collection.meant.items()))
    urgent = "SELECT id FROM target WHERE taken < wanted ORDER BY priority DESC, shuffle"
    # whatever is most urgent for others, this annotator gets what is meant for them
    collection.meant[who] = [meant[-1]]
    (request,) = run(collection, claim, who, 1).requests
    assert ask(collection, "SELECT target FROM request WHERE id = :r", r=request)[0].target == meant[-1]
    newcomer = add_annotator(collection, "newcomer", "program")
    n_open = len(ask(collection, urgent))
    requests = run(collection, claim, newcomer, 100).requests
    assert len(requests) == n_open
    expect_promises(collection)


def test_a_campaign_closes_itself_and_ends_with_a_cold_fit_of_the_export(made, tmp_path):
    collection, refit = made(n_items=6, scheme="2-overlap", close_when_done=True, method="dawid_skene")
    who = [add_annotator(collection, f"a{n}", "program") for n in range(2)]
    judge(collection, who[0], 6)
    refit.fit_now()
    assert ask(collection, "SELECT state FROM campaign")[0].state == "open"
    judge(collection, who[1], 6)
    assert refit.due() is False
    refit.fit_now()
    assert ask(collection, "SELECT state FROM campaign")[0].state == "closed"
    assert refit.due() is True
    refit.fit_now(cold=True)
    assert refit.due() is None
    assert ask(collection, "SELECT COUNT(*) AS n FROM fit")[0].n == 3
    path = tmp_path / "export.jsonl"
    path.write_bytes(b"".join(export(collection, "jsonl", "counted", None)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = cr.aggregate(str(path), "dawid_skene").frame()
    rows = [json.loads(row.row) for row in ask(collection, "SELECT row FROM score WHERE fit = 3 ORDER BY place")]
    assert [row["item"] for row in rows] == expected["item"].to_list()
    assert [row["score"] for row in rows] == pytest.approx(expected["score"].to_list(), abs=1e-12)


def test_the_stop_rule_asks_no_more(made):
    collection, refit = made(n_items=4, scheme="agreement", least_gain=1e6, close_when_done=True, method="dawid_skene")
    who = [add_annotator(collection, f"a{n}", "program") for n in range(2)]
    judge(collection, who[0], 4)
    refit.fit_now()
    assert ask(collection, "SELECT state FROM campaign")[0].state == "closed"
    assert run(collection, claim, who[1]).reason == "done"


def test_when_a_fit_is_due(made):
    collection, refit = made(n_items=40, scheme="single", method="mean_grade")
    ann = add_annotator(collection, "ann", "program")
    refit.idle = 1e9
    assert refit.due() is None
    judge(collection, ann, 5)
    assert refit.due() is None
    refit.idle = 0.0
    assert refit.due() is False
    refit.idle = 1e9
    judge(collection, ann, 20)
    assert refit.due() is False
    refit.fit_now()
    assert refit.due() is None
    run(collection, set_campaign_state, "closed", "owner")
    assert refit.due() is True
