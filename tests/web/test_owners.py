"""What those who run campaigns rely on: several in one service, roles, early overlap, settings, reviews, pay."""

import json
import random
import uuid

import pytest
from starlette.testclient import TestClient
from tests.web.calling import URL, Called
from tests.web.collecting import add_annotator, ask, campaign, collect, expect_promises, run, sent
from tests.web.test_refit import Inside

from crowdrank.errors import ParameterError
from crowdrank.web.access import OWNER, Access, new_token, set_annotator_state, token_hash
from crowdrank.web.app import make_app
from crowdrank.web.collection import Fault, SqliteStore
from crowdrank.web.refit import Refit
from crowdrank.web.service import Service
from crowdrank.web.setup import open_collection
from crowdrank.web.steering import people_view, review_view
from crowdrank.web.submitting import claim, submit


@pytest.fixture
def called(tmp_path):
    store = SqliteStore(tmp_path / "campaign.db")
    yield Called(store, n_items=30, scheme="2-overlap")
    store.close()


def bearer(token):
    return {"authorization": f"Bearer {token}", "content-type": "application/json"}


# ---------------------------------------------------------------------------------------------- section 1


@pytest.mark.parametrize("scheme", ["3-overlap", "information"])
@pytest.mark.parametrize("kind", ["grade", "preference"])
def test_annotators_overlap_within_their_first_fifty_judgments(store, kind, scheme):
    """However many targets there are: each person's first fifty are on targets that others judge too."""
    if (kind, scheme) == ("grade", "information"):
        pytest.skip("its first requests are the same as those of pairs")
    n_items = 3000 if kind == "grade" else 60
    collection = collect(store, kind=kind, n_items=n_items, scheme=scheme, budget=100_000)
    answer = {"grade": 1} if kind == "grade" else {"winner": "a"}
    people = [add_annotator(collection, f"p{n}") for n in range(6)]
    for _ in range(20):
        for one in people:
            (request,) = run(collection, claim, one).requests
            run(collection, submit, one, sent(request, answer))
    shared = "SELECT target FROM judgment GROUP BY target HAVING COUNT(*) > 1"
    rows = ask(collection, f"SELECT annotator, COUNT(*) FROM judgment WHERE target IN ({shared}) GROUP BY annotator")
    assert len(rows) == 6
    least = 15 if scheme == "3-overlap" else 5
    assert all(number >= least for _, number in rows), rows
    expect_promises(collection)


def test_a_personal_link_lets_an_annotator_in_again(called):
    old = called.join("ann", "person")
    called.judge(old)
    number = called.get("/annotators", called.owner_token).json()["annotators"][0]["id"]
    assert called.get("/me", old).status_code == 200
    link = called.post(f"/annotators/{number}/link", called.owner_token).json()
    assert called.post("/join", body={"invite": link["token"]}).json() == {"annotator": "ann"}
    assert called.get("/me").json()["n_answered"] == 1
    called.client.cookies.clear()
    # the former token and the link are spent
    assert called.get("/me", old).status_code == 401
    assert called.post("/join", body={"invite": link["token"]}).status_code == 401
    assert called.post("/annotators/99/link", called.owner_token).status_code == 404


def test_a_batch_that_fails_half_way_says_which_were_stored(called, monkeypatch):
    robot = called.join("robot")
    requests = called.post("/requests", robot, {"n": 30}).json()["requests"]
    rows = [{"submission": str(uuid.uuid4()), "request": one["id"], "answer": {"grade": 1}} for one in requests]
    kept, calls = called.service.submit_all, []

    async def fail_later(*args):
        calls.append(args)
        if len(calls) > 1:
            raise Fault("storage_full", "the disk is full; nothing was stored, try again later", retry_after=30)
        return await kept(*args)

    monkeypatch.setattr(called.service, "submit_all", fail_later)
    results = called.post("/judgments/batch", robot, {"judgments": rows}).json()["results"]
    stored = {row[0] for row in ask(called.collection, "SELECT submission FROM judgment")}
    assert [one["status"] == 200 for one in results] == [row["submission"] in stored for row in rows]
    assert {one["status"] for one in results} == {200, 507}
    # nothing at all stored is a fault of the whole
    assert called.post("/judgments/batch", robot, {"judgments": rows[20:]}).status_code == 507


def test_health_means_that_answers_can_be_kept(called, monkeypatch):
    assert called.call("GET", "/healthz").json()["ok"] is True
    called.service.probed = float("-inf")

    async def full(*args):
        raise Fault("storage_full", "the disk is full; nothing was stored, try again later", retry_after=30)

    monkeypatch.setattr(called.service, "write", full)
    assert called.call("GET", "/healthz").status_code == 507


def test_a_token_that_cannot_be_kept_makes_no_campaign(tmp_path):
    from crowdrank.web.server import Options, announce

    (tmp_path / "items.csv").write_text("item,content\nx,First\ny,Second\n")
    file = tmp_path / "c.toml"
    # a mark at the start, as some editors leave it
    file.write_text(
        '\ufeffname = "x"\nkind = "grade"\nitems = "items.csv"\nbudget = 9\ngrades = ["a", "b"]\n', encoding="utf-8"
    )
    with pytest.raises(ParameterError, match="cannot be written"):
        announce(Options(campaign=str(file), db=None), str(tmp_path / "nowhere" / "token"))
    assert not (tmp_path / "c.db").exists()
    announce(Options(campaign=str(file), db=None), str(tmp_path / "token"))
    token = (tmp_path / "token").read_text()
    announce(Options(campaign=str(file), db=None), str(tmp_path / "token"))
    assert (tmp_path / "token").read_text() == token
    assert not (tmp_path / "token.new").exists()


# ---------------------------------------------------------------------------------------------- several campaigns


@pytest.fixture(params=["one database", "two databases"])
def two(request, tmp_path):
    """Two campaigns in one service, whose owner has one token."""
    token, names = new_token(OWNER), ["pairs", "grades"]
    first = SqliteStore(tmp_path / "one.db")
    stores = [first, first if request.param == "one database" else SqliteStore(tmp_path / "two.db")]
    services = []
    for store, name in zip(stores, names, strict=True):
        made = campaign("preference" if name == "pairs" else "grade", name=name, lease_seconds=5)
        collection, _ = open_collection(store, made, token_hash(token), beside=names)
        services.append(Service(Access(collection, f"{URL}/c/{name}")))
    yield TestClient(make_app(*services), base_url=URL), token, services
    for store in set(stores):
        store.close()


def test_one_service_holds_several_campaigns(two):
    client, token, services = two
    listed = client.get("/api/v1/campaigns", headers=bearer(token)).json()
    assert [one["place"] for one in listed["campaigns"]] == ["/c/pairs", "/c/grades"]
    assert listed["several"]
    assert client.get("/api/v1/campaigns").json()["campaigns"] == []
    cookies = {}
    for name in ("pairs", "grades"):
        made = client.post(f"/c/{name}/api/v1/invites", headers=bearer(token), json={"kind": "person"}).json()
        assert made["link"].startswith(f"{URL}/c/{name}/j/#cri_")
        if name == "pairs":
            assert client.post("/c/grades/api/v1/join", json={"invite": made["token"]}).status_code == 401
        joined = client.post(f"/c/{name}/api/v1/join", json={"invite": made["token"], "name": f"Ann of {name}"})
        cookies |= dict(joined.cookies)
    assert len(cookies) == 2
    assert [client.get(f"/c/{name}/api/v1/me").json()["name"] for name in ("pairs", "grades")] == [
        "Ann of pairs", "Ann of grades",
    ]  # fmt: skip
    kinds = [
        client.post(
            f"/c/{name}/api/v1/requests", json={}, headers={"sec-fetch-site": "same-origin"}
        ).json()["requests"][0]["kind"]
        for name in ("pairs", "grades")
    ]  # fmt: skip
    assert kinds == ["preference", "grade"]
    assert [one["role"] for one in client.get("/api/v1/campaigns").json()["campaigns"]] == ["person", "person"]
    # the pages: a list above, an owner's page and a page to judge on below
    assert "Campaigns" in client.get("/").text
    assert "owner.js" in client.get("/c/pairs/owner/").text
    assert "annotate.js" in client.get("/c/grades/j/").text
    for path in ("/api/v1/campaign", "/c/nothing/owner/", "/c/nothing/api/v1/campaign"):
        assert client.get(path, headers=bearer(token)).status_code == 404
    assert client.get("/healthz").json()["ok"]
    for service in services:
        expect_promises(service.collection)


def test_leases_of_one_campaign_are_not_ended_by_another(two):
    """What lapsed in one campaign gives its money back to that one."""
    _, _, (one, other) = two
    held = run(one.collection, claim, add_annotator(one.collection, "ann"))
    assert held.requests
    moved = "UPDATE request SET lease_until = 0"
    from sqlalchemy import text

    one.collection.store.submit(lambda c: c.execute(text(moved))).result()
    run(other.collection, claim, add_annotator(other.collection, "bob"))
    assert ask(one.collection, "SELECT state FROM request WHERE id = :id", id=held.requests[0])[0][0] == "offered"
    for service in (one, other):
        expect_promises(service.collection)


def test_another_name_on_a_database_is_taken_for_a_slip(tmp_path):
    store = SqliteStore(tmp_path / "x.db")
    collect(store, name="right")
    with pytest.raises(ParameterError, match="holds the campaign 'right', not 'wrong'"):
        collect(store, name="wrong")
    store.close()


# ---------------------------------------------------------------------------------------------- roles


def test_members_may_do_what_their_role_says(called):
    made = {
        role: called.post("/members", called.owner_token, {"name": f"a {role}", "role": role}).json()
        for role in ("owner", "reviewer", "viewer")
    }
    for role, one in made.items():
        token = one["token"]
        assert called.get("/campaign", token).status_code == 200
        assert called.get("/export?format=csv", token).status_code == 200
        assert called.post("/invites", token, {}).status_code == (200 if role == "owner" else 403)
        assert called.get("/members", token).status_code == (200 if role == "owner" else 403)
    assert called.post("/members", called.owner_token, {"name": "a viewer"}).status_code == 409
    assert called.post("/members", called.owner_token, {"name": "x", "role": "king"}).status_code == 422
    called.post(f"/members/{made['viewer']['id']}/revoke", called.owner_token)
    assert called.get("/campaign", made["viewer"]["token"]).status_code == 401


def test_a_proxy_may_say_who_is_logged_in(tmp_path):
    store = SqliteStore(tmp_path / "x.db")
    called = Called(store)
    called.post("/members", called.owner_token, {"name": "ann@example.org", "role": "owner"})
    headers = {"remote-user": "ann@example.org"}
    assert called.get("/campaign", **headers).status_code == 401
    called.service.access.login_header = "remote-user"
    assert called.get("/campaign", **headers).status_code == 200
    assert called.get("/campaign", **{"remote-user": "bob@example.org"}).status_code == 401
    # the browser sends the login by itself, so other sites must not make it
    assert called.post("/invites", body={}, **headers).status_code == 403
    assert called.post("/invites", body={}, **headers, **{"sec-fetch-site": "same-origin"}).status_code == 200
    store.close()


# ---------------------------------------------------------------------------------------------- running a campaign


@pytest.fixture
def judged(store):
    """Six annotators and a fit; on both databases."""
    called = Called(store, n_items=12, scheme="5-overlap", n_queries=1, method="latent_score", overlap_first=0.0)
    for number in range(6):
        token = called.join(f"p{number}", "person" if number < 5 else "program")
        for _ in range(8):
            request = called.post("/requests", token).json()["requests"][0]
            place = int(request["items"][0]["content"].split()[1])
            called.judge(token, {"grade": (place + (number == 4)) % 4 if number < 5 else number % 4}, request["id"])
    refit = Refit(called.collection)
    refit.fit_now()
    yield called, refit
    refit.stop()


def test_the_owner_sees_decides_adds_and_pays(judged):
    """One walk through all that the page offers."""
    called, refit = judged
    owner = called.owner_token
    # items: pages, search, order, content; unchanged is not sent again
    first = called.get("/items?sort=score&descending=true", owner)
    rows = first.json()["items"]
    assert len(rows) == first.json()["n"] == 12
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert sum(row["n"] for row in rows) == 48
    again = called.get("/items?sort=score&descending=true", owner, **{"if-none-match": first.headers["etag"]})
    assert again.status_code == 304
    assert [row["item"] for row in called.get("/items?search=TEXT%2011", owner).json()["items"]] == ["i0-11"]
    assert called.get("/items?sort=nothing", owner).status_code == 422
    assert called.get("/items?page=1", owner).json()["items"] == []
    one = called.get(f"/items/{rows[0]['id']}", owner).json()
    assert len(one["judgments"]) == rows[0]["n"]
    assert {"annotator", "time", "grade"} <= set(one["judgments"][0])
    # people: measured quality, agreement over time, pace, cost
    people = called.get("/people", owner).json()["annotators"]
    assert all(row["measured"] and row["owed"] == 8 and row["seconds"] == 1.0 for row in people)
    assert all(len(row["agreement"]) == 1 for row in people)
    course = called.get("/course", owner).json()
    assert course["findings"][0]["sentence"]
    assert course["course"][0]["seq"] == 48
    assert [row["more"] for row in course["ahead"]] == [100, 200, 500, 1000]
    # what is reported comes into the queue at once, a decision is known to the next fit
    token = called.join("reporter", "person")
    request = called.post("/requests", token).json()["requests"][0]
    called.post(f"/requests/{request['id']}/skip", token, {"reason": "broken", "text": "the image does not load"})
    queue = called.get("/review", owner).json()["queue"]
    assert queue[0]["why"] == "reported"
    assert queue[0]["skips"] == [{"annotator": "reporter", "reason": "broken: the image does not load"}]
    disputed = next(row for row in queue if row["answers"])
    viewer = called.post("/members", owner, {"name": "v"}).json()["token"]
    reviewer = called.post("/members", owner, {"name": "r", "role": "reviewer"}).json()["token"]
    decision = {"target": disputed["target"], "answer": {"grade": 3}, "note": "see page 2", "tell": True}
    assert called.post("/review", viewer, decision).status_code == 403
    assert called.post("/review", reviewer, {**decision, "answer": {"grade": 9}}).status_code == 422
    assert called.post("/review", reviewer, decision).status_code == 200
    refit.fit_now()
    item = called.get(f"/items/{disputed['items'][0]['id']}", owner).json()
    assert item["consensus"]["score"] == pytest.approx(3.0)
    assert item["truth"] == 3.0
    assert item["decisions"][0]["by"].startswith("reviewer")
    assert called.get("/review/known", owner).text.splitlines()[1] == f"q0,{disputed['items'][0]['item']},3"
    told = [row for row in called.get("/people", owner).json()["annotators"] if row["message"]]
    assert told
    # items are added and mended while it runs
    more = {"items": [{"query": "q0", "item": "new", "content": "New"}]}
    assert called.post("/items", owner, more).json() == {"added": 1}
    repeat = called.post("/items", owner, more)
    assert "is there already" in repeat.json()["error"]["message"]
    (new,) = called.get("/items?search=new", owner).json()["items"]
    called.post(f"/items/{new['id']}", owner, {"content": "Newer"})
    assert called.get(f"/items/{new['id']}", owner).json()["content"] == "Newer"
    seen = set()
    while requests := called.post("/requests", token).json()["requests"]:
        seen.add(requests[0]["items"][0]["content"])
        called.judge(token, {"grade": 1}, requests[0]["id"])
    assert "Newer" in seen
    # pay, with a bonus by quality
    pay = called.call("GET", "/api/v1/pay?bonus=0.5&bonus_from=0", owner).json()
    assert pay["owed"] == called.get("/campaign", owner).json()["cost"]["spent"]
    assert pay["bonus"] > 0
    lines = called.get("/pay?format=csv&unit=0.1", owner).text.splitlines()
    assert lines[1] == "p0,,person,8,0.80,0.00,0.80"
    # everything is in the log, by whom
    kinds = {(row["kind"], row["name"]) for row in called.get("/events", owner).json()["events"]}
    assert {("decided", "r"), ("items added", ""), ("item mended", ""), ("member", "")} <= kinds
    expect_promises(called.collection)


@pytest.mark.parametrize("kind", ["preference", "ranking"])
def test_decisions_on_pairs_and_rankings_go_into_the_fit(tmp_path, kind):
    store = SqliteStore(tmp_path / "x.db")
    called = Called(store, kind=kind, n_items=4, scheme="3-overlap", set_size=4, method="auto")
    for number in range(3):
        token = called.join(f"p{number}")
        while requests := called.post("/requests", token).json()["requests"]:
            labels = [one["label"] for one in requests[0]["items"]]
            answer = {"winner": "ab"[number % 2]} if kind == "preference" else {"order": [[one] for one in labels]}
            called.judge(token, answer, requests[0]["id"])
    refit = Refit(called.collection)
    refit.fit_now()
    queue = called.get("/review", called.owner_token).json()["queue"]
    target = queue[0]["target"] if queue else ask(called.collection, "SELECT id FROM target")[0][0]
    labels = [chr(97 + n) for n in range(2 if kind == "preference" else 4)]
    answer = {"winner": "a"} if kind == "preference" else {"order": [[one] for one in labels]}
    assert called.post("/review", called.owner_token, {"target": target, "answer": answer}).status_code == 200
    refit.fit_now()
    assert called.get("/consensus", called.owner_token).status_code == 200
    called.post("/items", called.owner_token, {"items": [{"query": "q0", "item": "new", "content": "New"}]})
    token = called.join("late")
    seen = set()
    while requests := called.post("/requests", token).json()["requests"]:
        seen |= {one["content"] for one in requests[0]["items"]}
        labels = [one["label"] for one in requests[0]["items"]]
        answer = {"winner": "tie"} if kind == "preference" else {"order": [labels]}
        called.judge(token, answer, requests[0]["id"])
    assert "New" in seen
    expect_promises(called.collection)
    refit.stop()
    store.close()


def test_settings_change_while_it_runs_and_stay(tmp_path):
    store = SqliteStore(tmp_path / "x.db")
    called = Called(store, n_items=6, scheme="2-overlap", guidelines="Be fair.", budget=50)
    person, owner = called.join("ann", "person"), called.owner_token
    called.post("/consent", person)
    called.judge(person)
    called.judge(called.join("bob"))
    changes = {"scheme": "if-good-3", "budget": 40, "guidelines": "Be kind.", "question": "How kind?", "params": {}}
    assert called.post("/settings", owner, changes).json()["settings"]["overlap_max"] == 3
    assert called.post("/requests", person).status_code == 403
    called.post("/consent", person)
    request = called.post("/requests", person).json()["requests"][0]
    assert request["question"] == "How kind?"
    for wrong in ({"budget": 1}, {"scheme": "nothing"}, {"overlap_max": -1}, {"lease_seconds": 1}):
        answer = called.post("/settings", owner, wrong)
        assert answer.status_code == 422, wrong
    expect_promises(called.collection)
    # the file still says what it said: what was set here stays, and an edited file changes what was edited
    made = campaign(n_items=6, scheme="2-overlap", guidelines="Be fair.", budget=50)
    again, _ = open_collection(store, made, "0")
    assert (again.settings.scheme, again.settings.budget, again.settings.guidelines) == ("if-good-3", 40, "Be kind.")
    made = campaign(n_items=6, scheme="2-overlap", guidelines="Be fair.", budget=60)
    again, _ = open_collection(store, made, "0")
    assert (again.settings.scheme, again.settings.budget) == ("if-good-3", 60)
    store.close()


@pytest.mark.parametrize(("n_guessing", "overlap", "seed"), [(10, 12, 3), (10, 3, 4), (30, 3, 5)])
def test_guessers_come_up_and_good_annotators_do_not(tmp_path, n_guessing, overlap, seed):
    """Among 30 annotators with 40 judgments each; where all of them guess, nobody has a quality at all."""
    # what the service draws (who gets which item) is seeded too, and people come in another order each time
    random.seed(seed)
    draws = random.Random(seed)
    store = SqliteStore(tmp_path / "x.db")
    n_items = 1200 // overlap
    collection = collect(store, n_items=n_items, scheme=f"{overlap}-overlap", budget=10_000)
    truth = {number: draws.randrange(4) for number in range(1, n_items + 1)}
    who = {
        add_annotator(collection, f"{'guess' if n < n_guessing else 'good'}{n}", "program"): n < n_guessing
        for n in range(30)
    }
    for _ in range(40):
        for one in draws.sample(list(who), len(who)):
            for request in run(collection, claim, one).requests:
                shown = ask(collection, "SELECT shown FROM request WHERE id = :r", r=request)[0][0]
                off = draws.choice([-1, 1]) if draws.random() < 0.25 else 0
                right = min(3, max(0, truth[json.loads(shown)["order"][0]] + off))
                run(collection, submit, one, sent(request, {"grade": draws.randrange(4) if who[one] else right}))
    refit = Refit(collection)
    refit._worker = Inside(collection)
    refit.fit_now()
    people = collection.read(people_view)["annotators"]
    flagged = [row["name"] for row in people if row["action"] != "keep"]
    assert sum(name.startswith("guess") for name in flagged) >= 0.8 * n_guessing, flagged
    assert not any(name.startswith("good") for name in flagged), flagged
    queue = collection.read(review_view)["annotators"]
    assert [row["name"] for row in queue] == [row["name"] for row in sorted(
        (one for one in people if one["action"] in ("drop", "review")),
        key=lambda one: (one["action"] != "drop", one["quality"] or 0, one["id"]))]  # fmt: skip
    if n_guessing == 30:
        assert not any(row["measured"] for row in people)
        assert all("no more than chance" in row["reason"] for row in people if row["action"] == "unsure")
    else:
        # whom the owner looked at and let go on is not asked about again until they have judged as much again
        run(collection, set_annotator_state, queue[0]["id"], "active")
        again = collection.read(review_view)["annotators"]
        assert [row["name"] for row in again] == [row["name"] for row in queue[1:]]
    store.close()
