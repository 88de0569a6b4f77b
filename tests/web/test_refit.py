"""The consensus while judgments come in: what is asked next, open requests, the stop rule, the final fit."""

import json
import os
import subprocess
import sys
import warnings

import pytest
from tests.web.collecting import add_annotator, ask, collect, expect_promises, run, sent

import crowdrank as cr
from crowdrank.api import touched_items
from crowdrank.web.collection import Fault, SqliteStore
from crowdrank.web.overview import consensus_view, fit_view, quality_view
from crowdrank.web.refit import FitError, Refit, Worker
from crowdrank.web.refit_worker import fit_all, read_snapshot, update
from crowdrank.web.setup import set_campaign_state
from crowdrank.web.submitting import claim, submit
from crowdrank.web.transfer import export, judgment_frame

ANSWERS = {"grade": {"grade": 2}, "preference": {"winner": "a"}, "ranking": {"order": [["a"], ["b"], ["c"]]}}


class Inside:
    """The worker's work in the test's own process."""

    def __init__(self, collection):
        self.collection, self.lines, self.held = collection, [], None
        self.process = type("Process", (), {"poll": staticmethod(lambda: None)})()

    def ask(self, command):
        if command.get("update"):
            self.lines = []
            update(self.collection.store, command["campaign"], self.held, self.lines.append)
            return
        self.lines = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.held = fit_all(
                self.collection.store, command["campaign"], self.held, self.lines.append, cold=command["cold"]
            )

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
        elif collection.settings.kind == "ranking":
            places = sorted(range(len(order)), key=lambda place: order[place], reverse=slip)
            answer = {"order": [["abcdefgh"[place]] for place in places]}
        else:
            answer = {"winner": "a" if (order[0] < order[1]) != slip else "b"}
        run(collection, submit, who, sent(request, answer))


@pytest.mark.parametrize("kind", ["grade", "preference", "ranking"])
def test_nobody_has_a_quality_that_nothing_measured(made, kind):
    """Two annotators on items that nobody else judged, one on them later: only then is something known."""
    keys = {"set_size": 3} if kind == "ranking" else {}
    collection, refit = made(kind=kind, n_items=6, n_queries=2, scheme="3-overlap", **keys)
    whose = {"Ann": "q0", "Ben": "q1"}
    for name, query in whose.items():
        who = add_annotator(collection, name, "program")
        for request in run(collection, claim, who, 200).requests:
            asked = ask(collection, "SELECT query FROM target JOIN request ON target = target.id "
                        "WHERE request.id = :r", r=request)  # fmt: skip
            if asked[0].query == query:
                run(collection, submit, who, sent(request, ANSWERS[kind]))
    refit.fit_now()
    rows = collection.read(quality_view)["annotators"]
    told = sorted((row["annotator"], row["quality"], row["action"], row["measured"]) for row in rows)
    assert told == [(name, None, None, False) for name in whose]
    third = add_annotator(collection, "Cy", "program")
    for request in run(collection, claim, third, 4).requests:
        run(collection, submit, third, sent(request, ANSWERS[kind]))
    refit.fit_now()
    rows = collection.read(quality_view)["annotators"]
    (last,) = (row for row in rows if row["annotator"] == "Cy")
    assert last["measured"]
    assert 0 <= last["quality"] <= 1
    # a few grades do not rule out guessing, and nobody is told to keep whoever gave them
    assert last["action"] in ("unsure", "review", *(["keep"] if kind != "grade" else []))


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
    keys = {"scheme": "information", "overlap_max": 4, "method": "crowd_bt", "overlap_first": 0.0}
    collection, refit = made(kind="preference", n_items=8, **keys)
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


def test_nobody_is_sent_home_while_more_is_being_chosen(made):
    """With a scheme that waits for a fit, an end without one is a pause; whoever asks for the consensus waits too."""
    collection, refit = made(n_items=4, scheme="agreement", method="dawid_skene", overlap_first=0.0)
    refit.idle = 1e9
    who = [add_annotator(collection, f"a{n}", "program") for n in range(3)]
    with pytest.raises(Fault, match="after the first judgments") as none:
        collection.read(consensus_view)
    assert none.value.status == 404
    judge(collection, who[0], 4)
    told = run(collection, claim, who[1])
    assert (told.requests, told.reason, told.retry_after) == ([], "choosing", 3.0)
    with pytest.raises(Fault, match="is being found") as early:
        collection.read(consensus_view)
    assert (early.value.status, early.value.retry_after) == (503, 2)
    assert refit.due() is False
    refit.fit_now()
    assert run(collection, claim, who[1]).requests
    assert collection.read(consensus_view)["items"]


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


def shown(collection):
    """What the owner sees of the consensus."""
    view = collection.read(consensus_view, None)
    seq = ask(collection, "SELECT seq FROM campaign")[0].seq
    rows = {row["item"]: row for row in view["items"]}
    return rows, collection.read(fit_view, seq)


def grade_of(collection, who, item, grade):
    """One annotator's grade of one item, whatever they are asked first."""
    for request in run(collection, claim, who, 12).requests:
        order = json.loads(ask(collection, "SELECT shown FROM request WHERE id = :r", r=request)[0].shown)["order"]
        if order[0] == item:
            run(collection, submit, who, sent(request, {"grade": grade}))


def judged_by(collection, who):
    """Numbers of the items that an annotator graded."""
    words = "SELECT t.items FROM judgment j JOIN target t ON t.id = j.target WHERE j.annotator = :a"
    return {json.loads(row.items)[0] for row in ask(collection, words, a=who)}


@pytest.mark.parametrize("method", ["dawid_skene", "latent_score", "mean_grade"])
def test_between_fits_items_with_new_judgments_are_read_anew_and_nothing_else(made, method):
    collection, refit = made(n_items=12, scheme="5-overlap", method=method)
    who = [add_annotator(collection, f"a{n}", "program") for n in range(4)]
    newcomer = add_annotator(collection, "newcomer", "program")
    for one in who[:3]:
        judge(collection, one, 12)
    judge(collection, who[3], 6)
    refit.fit_now()
    before, view = shown(collection)
    qualities = ask(collection, "SELECT annotator, row FROM quality ORDER BY annotator")
    assert view["updated_seq"] is None
    assert refit.update_due() is False
    held = refit._worker.held.consensus
    known = judged_by(collection, who[3])
    item = min(set(range(1, 13)) - known)
    grade_of(collection, who[3], item, 3 - item % 4)
    # of a newcomer the fit knows nothing: that waits for the next one
    grade_of(collection, newcomer, min(known), 0)
    refit._updated_at = -1e9
    assert refit.update_due()
    refit.update_now()
    after, view = shown(collection)
    name = ask(collection, "SELECT item FROM item WHERE id = :i", i=item)[0].item
    assert [one for one, row in after.items() if "since_fit" in row] == [name]
    now = after[name].pop("since_fit")
    # what the fit said stays as it was, ranks and annotators too
    assert after == before
    assert ask(collection, "SELECT annotator, row FROM quality ORDER BY annotator") == qualities
    assert (now["seq"], view["updated_seq"], view["newer"]) == (44, 44, 2)
    assert abs(now["score"] - before[name]["score"]) > 1e-9
    rows = [row for row in read_snapshot(collection.store, collection.id).rows if row["item"] == name]
    votes = {"item": [name] * len(rows), "annotator": [row["annotator"] for row in rows],
             "grade": [row["grade"] for row in rows]}  # fmt: skip
    assert now["score"] == pytest.approx(touched_items(held, votes)[0]["score"], abs=1e-12)
    # nothing new, nothing to do; the next fit has it all
    refit._updated_at = -1e9
    assert refit.update_due() is False
    refit.fit_now()
    rows, view = shown(collection)
    assert not any("since_fit" in row for row in rows.values())
    assert (view["newer"], view["updated_seq"]) == (0, None)


@pytest.mark.parametrize("method", ["glad", "dawid_skene"])
def test_without_such_a_step_or_anything_for_it_the_fit_is_shown_alone(made, method):
    """A method may have no such step, and of newcomers no fit knows anything."""
    collection, refit = made(n_items=8, scheme="3-overlap", method=method)
    who = [add_annotator(collection, f"a{n}", "program") for n in range(3)]
    for one in who[:2]:
        judge(collection, one, 6)
    refit.fit_now()
    before = shown(collection)[0]
    judge(collection, who[0 if method == "glad" else 2], 2)
    refit._updated_at = -1e9
    assert refit.update_due() is (method != "glad")
    refit.update_now()
    assert refit.update_due() is False
    rows, view = shown(collection)
    assert rows == before
    # the page says which of the two it is
    assert (view["newer"], view["updated_seq"], view["reads_anew"]) == (2, None, method != "glad")


@pytest.mark.parametrize(
    ("kind", "method"), [("preference", "latent_score"), ("preference", "bradley_terry"), ("ranking", "latent_score")]
)
def test_between_fits_items_of_new_comparisons_are_read_by_all_their_comparisons(made, kind, method):
    # a ranking is of several items
    collection, refit = made(kind=kind, n_items=6 if kind == "preference" else 24, scheme="5-overlap", method=method)
    who = [add_annotator(collection, f"a{n}", "program") for n in range(4)]
    for one in who[:3]:
        judge(collection, one, 12)
    judge(collection, who[3], 3)
    refit.fit_now()
    before, view = shown(collection)
    seq, held = view["as_of_seq"], refit._worker.held.consensus
    judge(collection, who[3], 1)
    refit._updated_at = -1e9
    assert refit.update_due()
    refit.update_now()
    after, view = shown(collection)
    rows = read_snapshot(collection.store, collection.id).rows
    new = [row for row in rows if row["seq"] > seq]
    sides = [[[row["left"], row["right"]]] if kind == "preference" else row["order"] for row in new]
    touched = {item for groups in sides for group in groups for item in group}
    assert {one for one, row in after.items() if "since_fit" in row} == touched
    now = {one: row.pop("since_fit")["score"] for one, row in after.items() if "since_fit" in row}
    assert after == before
    assert view["updated_seq"] == seq + 1
    # all comparisons of the touched items count, those with others too
    frame = judgment_frame(collection.settings.kind, rows)
    expected = touched_items(
        held, frame, [(row.get("query", ""), one) for one, row in before.items() if one in touched]
    )
    assert now == {row["item"]: pytest.approx(row["score"], abs=1e-9) for row in expected}


def test_a_crash_while_items_are_read_anew_leaves_the_fit(made):
    collection, refit = made(n_items=8, scheme="3-overlap", method="dawid_skene")
    who = [add_annotator(collection, f"a{n}", "program") for n in range(2)]
    for one in who:
        judge(collection, one, 7)
    refit.fit_now()
    before = shown(collection)[0]
    judge(collection, who[0], 1)
    refit._updated_at = -1e9

    def crash(timeout):
        raise FitError("the fitting process ended with code -9")

    refit._worker.answer = crash
    with pytest.raises(FitError):
        refit.update_now()
    assert refit._worker is None
    # the next fit begins another process; until then nothing is tried
    assert refit.update_due() is False
    rows, view = shown(collection)
    assert rows == before
    assert (view["error"], view["newer"], view["updated_seq"]) == (None, 1, None)


def test_the_process_that_fits_lets_annotators_go_first():
    """By being nice within the session of the service: one of its own would share with all other programs."""
    words = (
        "from crowdrank.web.refit_worker import yield_to_annotators; import os; before = os.nice(0); "
        "yield_to_annotators(); print(os.nice(0) - before)"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True, timeout=240)
    assert 0 < int(done.stdout) <= 10
    worker = Worker("nothing.db")
    try:
        assert os.getsid(worker.process.pid) == os.getsid(0)
    finally:
        worker.end()


def test_the_process_that_fits_reads_items_anew_and_ends_with_the_export(store, tmp_path):
    collection = collect(store, n_items=8, scheme="4-overlap", method="dawid_skene")
    who = [add_annotator(collection, f"a{n}", "program") for n in range(3)]
    for one, n in zip(who, (6, 8, 8), strict=True):
        judge(collection, one, n)
    refit = Refit(collection)
    try:
        refit.fit_now()
        before = shown(collection)[0]
        judge(collection, who[0], 2)
        refit.update_now()
        after, view = shown(collection)
        assert sum(row.pop("since_fit", {}).get("seq") == 24 for row in after.values()) == 2
        assert (after, view["updated_seq"]) == (before, 24)
        run(collection, set_campaign_state, "closed", "owner")
        assert refit.update_due() is False
        refit.fit_now(cold=True)
    finally:
        refit.stop()
    path = tmp_path / "export.jsonl"
    path.write_bytes(b"".join(export(collection, "jsonl", "counted", None)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = cr.aggregate(str(path), "dawid_skene").frame()
    rows = shown(collection)[0]
    assert [(row["item"], row["score"]) for row in rows.values()] == list(expected.select("item", "score").iter_rows())
