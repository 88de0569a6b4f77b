import json
import logging
import uuid

import pytest
from sqlalchemy import text
from starlette.requests import Request
from tests.web.calling import SAME_SITE, URL, Called, tokens_in
from tests.web.collecting import campaign, expect_promises

from crowdrank.web.access import OWNER, Access, Buckets, new_token, token_hash
from crowdrank.web.app import POLICY, ROUTERS, Allow
from crowdrank.web.collection import Fault, SqliteStore


@pytest.fixture
def called(tmp_path):
    store = SqliteStore(tmp_path / "campaign.db")
    yield Called(store, n_items=30, scheme="2-overlap")
    store.close()


def kind_of(response):
    return response.json()["error"]["type"]


# ---------------------------------------------------------------------------------------------- who may call what

WHO = {
    ("POST", "/api/v1/join"): "open", ("POST", "/api/v1/consent"): "annotator",
    ("POST", "/api/v1/requests"): "annotator", ("POST", "/api/v1/requests/{request}/extend"): "annotator",
    ("POST", "/api/v1/requests/{request}/skip"): "annotator",
    ("GET", "/api/v1/requests/{request}/items/{label}"): "annotator", ("POST", "/api/v1/judgments"): "annotator",
    ("POST", "/api/v1/judgments/batch"): "program", ("POST", "/api/v1/judgments/{submission}/withdraw"): "annotator",
    ("POST", "/api/v1/training"): "annotator", ("POST", "/api/v1/training/{request}"): "annotator",
    ("GET", "/api/v1/training/{request}/items/{label}"): "annotator",
    ("POST", "/api/v1/welcome"): "open", ("POST", "/api/v1/me/link"): "annotator",
    ("GET", "/api/v1/history"): "annotator", ("GET", "/api/v1/requests/{request}"): "annotator",
    ("POST", "/api/v1/judgments/{submission}/comment"): "annotator", ("GET", "/api/v1/comments"): "viewer",
    ("GET", "/api/v1/me"): "annotator", ("GET", "/api/v1/campaign"): "viewer",
    ("POST", "/api/v1/campaign/state"): "owner", ("GET", "/api/v1/consensus"): "viewer",
    ("GET", "/api/v1/quality"): "viewer", ("GET", "/api/v1/agreement"): "viewer",
    ("GET", "/api/v1/judgments"): "viewer", ("GET", "/api/v1/openapi.json"): "viewer",
    ("GET", "/api/v1/skipped"): "viewer", ("GET", "/api/v1/spares"): "viewer", ("GET", "/api/v1/annotators"): "viewer",
    ("POST", "/api/v1/annotators/{annotator}"): "owner", ("GET", "/api/v1/invites"): "owner",
    ("POST", "/api/v1/invites"): "owner", ("POST", "/api/v1/invites/{invite}/revoke"): "owner",
    ("GET", "/api/v1/export"): "viewer", ("POST", "/api/v1/import"): "owner", ("GET", "/api/v1/report"): "viewer",
    ("GET", "/healthz"): "open", ("GET", "/metrics"): "viewer", ("GET", "/"): "open", ("GET", "/j/"): "open",
    ("POST", "/api/v1/annotators/{annotator}/link"): "owner", ("GET", "/api/v1/campaigns"): "open",
    ("GET", "/api/v1/items"): "viewer", ("GET", "/api/v1/items/{item}"): "viewer",
    ("GET", "/api/v1/items/{item}/content"): "viewer", ("POST", "/api/v1/items"): "owner",
    ("POST", "/api/v1/items/{item}"): "owner", ("GET", "/api/v1/review"): "viewer",
    ("POST", "/api/v1/review"): "reviewer", ("GET", "/api/v1/review/known"): "viewer",
    ("GET", "/api/v1/people"): "viewer", ("POST", "/api/v1/annotators/{annotator}/message"): "owner",
    ("GET", "/api/v1/pay"): "owner", ("GET", "/api/v1/settings"): "viewer", ("POST", "/api/v1/settings"): "owner",
    ("GET", "/api/v1/events"): "viewer", ("GET", "/api/v1/course"): "viewer",
    ("GET", "/api/v1/members"): "owner", ("POST", "/api/v1/members"): "owner",
    ("POST", "/api/v1/members/{member}/revoke"): "owner", ("GET", "/owner/"): "open", ("GET", "/static/{name}"): "open",
}  # fmt: skip
ALLOWED = {
    "open": {"nobody", "person", "program", "owner", "reviewer", "viewer"}, "annotator": {"person", "program"},
    "program": {"program"}, "owner": {"owner"}, "reviewer": {"owner", "reviewer"},
    "viewer": {"owner", "reviewer", "viewer"},
}  # fmt: skip


def test_every_route_is_in_the_table(called):
    roles = {
        (method, route.path): [one.call.role for one in route.dependant.dependencies if isinstance(one.call, Allow)]
        for router in ROUTERS
        for route in router.routes
        for method in route.methods
    }
    assert roles == {place: [role] for place, role in WHO.items()}


def test_the_owner_can_ask_for_a_description_of_all_routes(called):
    schema = called.get("/openapi.json", called.owner_token).json()
    hidden = {"/", "/j/", "/owner/", "/static/{name}", "/api/v1/openapi.json"}
    assert set(schema["paths"]) == {path for _, path in WHO} - hidden
    assert set(schema["components"]["schemas"]["Judgment"]["required"]) == {"submission", "request"}


def members(called):
    """Tokens of a reviewer and of a viewer."""
    made = {
        role: called.post("/members", called.owner_token, {"name": role, "role": role})
        for role in ("reviewer", "viewer")
    }
    return {role: one.json()["token"] for role, one in made.items()}


def test_every_route_with_every_role(called):
    tokens = {"nobody": None, "person": called.join("ann", "person"), "program": called.join("robot"),
              "owner": called.owner_token, **members(called), "stranger": "cra_" + "x" * 43}  # fmt: skip
    for method, path in WHO:
        # the table has more strangers than one address may send
        called.service.access.buckets = Buckets()
        where = path.replace("{request}", "1").replace("{label}", "a").replace("{submission}", str(uuid.uuid4()))
        where = (
            where.replace("{annotator}", "99")
            .replace("{invite}", "99")
            .replace("{member}", "99")
            .replace("{name}", "none.js")
        )
        for role, token in tokens.items():
            response = called.call(method, where, token, {} if method == "POST" else None)
            allowed = role in ALLOWED[WHO[method, path]]
            expected = 401 if role in ("nobody", "stranger") else 403
            if not allowed and role == "stranger" and WHO[method, path] == "open":
                assert response.status_code == 401
            elif allowed:
                # a program keeps its token: its own link is for people
                expected = (401, 403, 405, 500) if path != "/api/v1/me/link" else (401, 405, 500)
                assert response.status_code not in expected, (role, response.text)
            else:
                assert response.status_code == expected, (role, response.text)
            # a token never works in a query string
            if token is not None and WHO[method, path] != "open":
                assert called.call(method, f"{where}?token={token}", None, {}).status_code == 401
            assert not tokens_in(response.text) or path in ("/api/v1/invites", "/api/v1/members")


def test_paths_that_are_not_there(called):
    for path in ("/docs", "/openapi.json", "/api/v1/nothing", "/static/../server.py", "/static/%2e%2e%2fserver.py"):
        assert called.call("GET", path, called.owner_token).status_code == 404
    assert called.call("PUT", "/api/v1/campaign", called.owner_token).status_code == 405


# ---------------------------------------------------------------------------------------------- joining, cookies


def test_people_get_a_cookie_and_programs_a_token(called):
    response = called.post("/join", body={"invite": called.invite(kind="person"), "name": " Ann  B "})
    assert response.json() == {"annotator": "Ann B"}
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert called.get("/me").json()["name"] == "Ann B"
    called.client.cookies.clear()
    token = called.post("/join", body={"invite": called.invite(kind="program")}).json()["token"]
    assert called.get("/me", token).json()["kind"] == "program"


def test_joining_one_campaign_does_not_log_out_of_another(tmp_path):
    """Two services on one host share its cookies, whatever their ports."""
    stores = [SqliteStore(tmp_path / f"{name}.db") for name in "xy"]
    one, other = (Called(store) for store in stores)
    other.client.cookies = one.client.cookies
    for number, called in enumerate((one, other)):
        called.post("/join", body={"invite": called.invite(kind="person"), "name": f"Ann {number}"})
    assert [called.get("/me").json()["name"] for called in (one, other)] == ["Ann 0", "Ann 1"]
    for store in stores:
        store.close()


def test_a_cookie_for_https_cannot_be_set_by_others(tmp_path):
    store = SqliteStore(tmp_path / "x.db")
    called = Called(store, public_url="https://votes.example.org")
    response = called.post("/join", body={"invite": called.invite(kind="person")})
    assert response.headers["set-cookie"].startswith("__Host-crowdrank-")
    assert "Secure" in response.headers["set-cookie"]
    assert "Domain" not in response.headers["set-cookie"]
    assert response.headers["strict-transport-security"]
    store.close()


def test_invites_end(called):
    once = called.invite(kind="program")
    assert called.post("/join", body={"invite": once, "name": "a"}).status_code == 200
    assert called.post("/join", body={"invite": once, "name": "b"}).status_code == 401
    made = called.post("/invites", called.owner_token, {"kind": "program", "uses": 5}).json()
    assert made["link"] == f"{URL}/j/#{made['token']}"
    assert called.post("/join", body={"invite": made["token"], "name": "c"}).status_code == 200
    assert called.post("/join", body={"invite": made["token"], "name": "c"}).status_code == 409
    called.post(f"/invites/{made['id']}/revoke", called.owner_token)
    assert called.post("/join", body={"invite": made["token"], "name": "d"}).status_code == 401
    assert not tokens_in(called.get("/invites", called.owner_token).text)
    # an annotator cannot make more of their rank
    assert called.post("/invites", called.join("e"), {"kind": "program"}).status_code == 403


def test_joining_by_guessing_is_slowed_down(called):
    called.service.access.buckets.clock = lambda: 100.0
    wrong = {"invite": "cri_" + "x" * 43}
    found = [called.post("/join", body=wrong).status_code for _ in range(7)]
    assert found == [401] * 5 + [429] * 2
    assert int(called.post("/join", body=wrong).headers["retry-after"]) >= 1
    # somebody else behind the same address has a good invite
    assert called.post("/join", body={"invite": called.invite()}).status_code == 200


@pytest.mark.parametrize("name", ["", " ", "x" * 81, "a\x00b", "\u202eabc", 7])
def test_names_that_cannot_be_shown(called, name):
    assert called.post("/join", body={"invite": called.invite(), "name": name}).status_code == 422


# ---------------------------------------------------------------------------------------------- calls from other sites


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (SAME_SITE, 200),
        ({"origin": URL, "content-type": "application/json"}, 200),
        ({"origin": URL, "content-type": "application/json; charset=utf-8"}, 200),
        ({"sec-fetch-site": "cross-site", "content-type": "application/json"}, 403),
        ({"sec-fetch-site": "same-site", "content-type": "application/json"}, 403),
        ({"origin": "https://evil.example", "content-type": "application/json"}, 403),
        ({"content-type": "application/json"}, 403),
        ({"sec-fetch-site": "same-origin", "content-type": "text/plain"}, 403),
        ({"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}, 403),
    ],
)
def test_a_cookie_works_for_our_own_page_only(called, headers, status):
    token = called.join("ann", "person")
    called.client.cookies.set("crowdrank", token)
    response = called.client.post("/api/v1/requests", content="{}", headers=headers)
    assert response.status_code == status
    if status == 403 and "origin" in headers:
        assert "--public-url" in response.json()["error"]["message"]
        assert headers["origin"] in response.json()["error"]["message"]
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200), ({"origin": URL}, 200), ({"sec-fetch-site": "same-origin"}, 200), ({"sec-fetch-site": "none"}, 200),
        ({"origin": "https://evil.example"}, 403), ({"origin": "null"}, 403), ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site", "origin": URL}, 403),
    ],
)  # fmt: skip
def test_only_our_own_page_and_programs_join(called, headers, status):
    assert called.post("/join", None, {"invite": called.invite(kind="person")}, **headers).status_code == status


def test_a_replaced_token_of_the_owner_ends_at_once(called):
    assert called.get("/campaign", called.owner_token).status_code == 200
    other = new_token(OWNER)
    replace = text("UPDATE campaign SET owner_hash = :hash")
    called.collection.store.submit(lambda c: c.execute(replace, {"hash": token_hash(other)})).result(30)
    assert called.get("/campaign", called.owner_token).status_code == 401
    assert called.get("/campaign", other).status_code == 200


def test_every_answer_carries_the_policy(called):
    for path in ("/", "/j/", "/owner/", "/api/v1/me", "/nothing", "/healthz"):
        response = called.call("GET", path)
        assert response.headers["content-security-policy"] == POLICY
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
    assert "unsafe" not in POLICY


# ---------------------------------------------------------------------------------------------- bodies and rates


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"x" * 300_000, "too_large"), (b"[" * 100_000, "not_json"), (b"{", "not_json"), (b"[]", "not_json"),
        (b'{"a":' * 30 + b"1" + b"}" * 30, "not_json"), (b'{"n": NaN}', "not_json"), (b"\xff\xfe", "not_json"),
        (b'{"n": 1e400}', "invalid"), (b'{"n": true}', "invalid"), (b'{"n": 0}', "invalid"), (b'{"n": 201}', "invalid"),
    ],
)  # fmt: skip
def test_bodies_that_are_refused(called, content, kind):
    headers = {"authorization": f"Bearer {called.join()}", "content-type": "application/json"}
    response = called.client.post("/api/v1/requests", content=content, headers=headers)
    assert kind_of(response) == kind
    assert "\n" not in response.json()["error"]["message"]


def test_a_body_is_counted_while_it_comes(called):
    token, given = called.join(), []

    def endless():
        while len(given) < 5000:
            given.append(1)
            yield b"x" * 10_000

    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    response = called.client.post("/api/v1/judgments", content=endless(), headers=headers)
    assert response.status_code == 413


def test_callers_who_come_too_fast_wait(called):
    token = called.join("ann", "person")
    called.service.access.buckets.clock = lambda: 100.0
    found = [called.get("/me", token) for _ in range(60)]
    assert [one.status_code for one in found] == [200] * 40 + [429] * 20
    assert int(found[-1].headers["retry-after"]) >= 1
    assert called.get("/me", called.join("bob", "person")).status_code == 200
    # two seconds later there is room for twenty more
    called.service.access.buckets.clock = lambda: 102.0
    assert [called.get("/me", token).status_code for _ in range(21)] == [200] * 20 + [429]


# ---------------------------------------------------------------------------------------------- work


def test_a_person_needs_one_call_a_judgment(called):
    token = called.join("ann", "person")
    held = called.post("/requests", token).json()["requests"][0]
    assert set(held) == {"id", "kind", "query", "items", "scale", "question", "seed", "lease_until"}
    assert held["items"][0]["label"] == "a"
    assert "i0-" not in json.dumps(held)
    first = called.judge(token, request=held["id"], next=True).json()
    assert (first["seq"], first["replayed"], first["counted"]) == (1, False, True)
    assert first["next"]["requests"][0]["id"] != held["id"]
    me = called.get("/me", token).json()
    assert (me["n_answered"], me["n_open"], me["pace"]) == (1, 1, 1.0)
    assert "quality" not in me


def test_a_program_works_in_batches(store):
    called = Called(store, n_items=30, scheme="2-overlap")
    token = called.join()
    held = called.post("/requests", token, {"n": 12}).json()["requests"]
    assert len({one["id"] for one in held}) == 12
    rows = [{"submission": str(uuid.uuid4()), "request": one["id"], "answer": {"grade": 1}} for one in held]
    rows[3]["answer"] = {"grade": 17}
    rows.append(rows[0])
    results = called.post("/judgments/batch", token, {"judgments": rows}).json()["results"]
    assert [one["status"] for one in results] == [200] * 3 + [422] + [200] * 9
    assert results[3]["error"]["field"] == "answer.grade"
    assert results[-1]["replayed"]
    assert len(called.post("/requests", token, {"n": 5}).json()["requests"]) == 5
    expect_promises(called.collection)


def test_a_batch_says_of_each_judgment_whether_it_is_stored(called, monkeypatch):
    """The disk is full after the first part: what was stored before that is said to be."""
    token = called.join()
    held = called.post("/requests", token, {"n": 30}).json()["requests"]
    rows = [{"submission": str(uuid.uuid4()), "request": one["id"], "answer": {"grade": 1}} for one in held]
    submit_all, calls = called.service.submit_all, []

    async def fail_later(*args):
        calls.append(args)
        if len(calls) > 1:
            raise Fault("storage_full", "the disk is full")
        return await submit_all(*args)

    monkeypatch.setattr(called.service, "submit_all", fail_later)
    results = called.post("/judgments/batch", token, {"judgments": rows}).json()["results"]
    assert [one["status"] for one in results] == [200] * 20 + [507] * 10
    assert called.get("/me", token).json()["n_answered"] == 20


def test_skip_undo_and_faults_over_http(called):
    token = called.join("ann", "person")
    held = called.post("/requests", token).json()["requests"][0]["id"]
    assert called.post(f"/requests/{held}/extend", token).json()["lease_until"] > 0
    assert called.post(f"/requests/{held}/skip", token, {"reason": "broken", "text": "a\x00\x1b[31m"}).json() == {
        "state": "skipped"
    }
    name = str(uuid.uuid4())
    called.judge(token, submission=name)
    again = called.post(f"/judgments/{name}/withdraw", token).json()
    assert again["answer"] == {"grade": 2}
    # the same submission again is the one that was withdrawn, whatever the request is now
    assert called.judge(token, request=again["request"]["id"], submission=name).json()["withdrawn"]
    assert called.judge(token, request=again["request"]["id"], submission="x").json()["error"]["field"] == "submission"
    other = called.join("bob")
    assert called.judge(other, request=again["request"]["id"]).status_code == 404
    assert called.post(f"/judgments/{name}/withdraw", other).status_code == 404
    assert called.get(f"/requests/{held}/items/a", other).status_code == 404
    expect_promises(called.collection)


def test_the_owner_watches(store):
    called = Called(store, n_items=30, scheme="2-overlap")
    owner = called.owner_token
    ann, bob = called.join("ann"), called.join("bob")
    for token in (ann, bob, ann):
        called.judge(token)
    view = called.get("/campaign", owner)
    assert view.json()["judgments"]["n"] == 3
    assert view.json()["targets"]["wanted"] == 60
    for place in ("annotators", "invites", "skipped", "spares"):
        assert called.get(f"/{place}", owner).status_code == 200
    assert view.json()["cost"] == {"budget": 1000, "spent": 3, "reserved": 3, "left": 997}
    again = called.get("/campaign", owner, **{"if-none-match": view.headers["etag"]})
    assert again.status_code == 304
    called.judge(bob)
    assert called.get("/campaign", owner, **{"if-none-match": view.headers["etag"]}).status_code == 200
    # whoever joins, pauses or skips is seen at once, though no judgment is new
    for change in (lambda: called.join("cy"), lambda: called.post("/annotators/1", owner, {"state": "paused"}),
                   lambda: called.post("/requests", bob)):  # fmt: skip
        before = {place: called.get(place, owner).headers["etag"] for place in ("/annotators", "/campaign")}
        change()
        after = {place: called.get(place, owner, **{"if-none-match": tag}) for place, tag in before.items()}
        assert {one.status_code for one in after.values()} in ({200, 304}, {200})
    ahead = called.get("/campaign", owner).json()["forecast"]
    assert (ahead["judgments"], ahead["cost"]) == (56, 60)
    page = called.get("/judgments?after=1&limit=2", owner).json()
    assert [one["seq"] for one in page["judgments"]] == [2, 3]
    assert page["next_after"] == 3
    early = called.get("/consensus", owner)
    assert (early.status_code, early.headers["retry-after"]) == (503, "2")
    assert called.get("/judgments?after=x", owner).status_code == 422
    metrics = called.call("GET", "/metrics", owner).text
    assert "crowdrank_judgments_total 4" in metrics
    assert called.call("GET", "/healthz").json() == {"ok": True, "fit_age": None, "writer_queue": 0}


def test_removing_an_annotator_with_and_without_their_judgments(store):
    called = Called(store, n_items=30, scheme="2-overlap")
    owner = called.owner_token
    ann, bob = called.join("ann"), called.join("bob")
    for token in (ann, ann, bob):
        called.judge(token)
    called.post("/requests", ann, {"n": 3})
    numbers = {one["name"]: one["id"] for one in called.get("/annotators", owner).json()["annotators"]}
    kept = called.post(f"/annotators/{numbers['bob']}", owner, {"state": "removed"}).json()
    assert kept == {"state": "removed", "uncounted": 0}
    body = {"state": "removed", "judgments": "uncount"}
    assert called.post(f"/annotators/{numbers['ann']}", owner, body).json()["uncounted"] == 2
    assert called.post("/requests", ann).status_code == 403
    assert called.get("/me", ann).status_code == 403
    assert called.get("/campaign", owner).json()["judgments"]["spare"] == 2
    assert len(called.get("/spares", owner).json()["spares"]) == 2
    expect_promises(called.collection)


def test_pausing_and_closing(called):
    owner, token = called.owner_token, called.join("ann", "person")
    held = called.post("/requests", token).json()["requests"][0]["id"]
    called.post("/campaign/state", owner, {"state": "paused"})
    assert called.post("/requests", token).json()["reason"] == "paused"
    called.post("/campaign/state", owner, {"state": "open"})
    assert called.post("/requests", token).json()["requests"][0]["id"] == held
    called.post("/campaign/state", owner, {"state": "closed"})
    late = called.judge(token, request=held).json()
    assert not late["counted"]
    assert called.post("/requests", token).json()["reason"] == "done"
    assert called.post("/campaign/state", owner, {"state": "open"}).status_code == 409
    expect_promises(called.collection)


def test_people_from_a_panel_get_their_code_and_their_way_back(tmp_path):
    """What a panel calls somebody is in no export unless asked for, joins once, and is filled into the way back."""
    url = "https://panel.example/done?code={code}&who={id}"
    store = SqliteStore(tmp_path / "x.db")
    called = Called(store, per_person=2, completion={"code": "C1 A", "url": url}, pay="2 pounds", asked_by="The lab")
    invite = called.invite(uses=5)
    told = called.post("/welcome", body={"invite": invite}).json()
    assert (told["name"], told["pay"], told["asked_by"], told["named"]) == ("test", "2 pounds", "The lab", False)
    assert called.post("/welcome", body={"invite": "cri_x"}).status_code == 401
    panel = {"invite": invite, "external": "pid 7", "session": "s1"}
    assert called.post("/join", body=panel).status_code == 200
    cookies = dict(called.client.cookies)
    for _ in range(2):
        asked = called.post("/requests", **SAME_SITE).json()
        assert "completion" not in asked
        body = {"submission": str(uuid.uuid4()), "request": asked["requests"][0]["id"], "answer": {"grade": 1}}
        reply = called.post("/judgments", None, {**body, "next": True}, **SAME_SITE).json()
    assert reply["next"]["reason"] == "goal"
    assert reply["next"]["completion"] == {"code": "C1 A", "url": "https://panel.example/done?code=C1%20A&who=pid%207"}
    called.client.cookies.clear()
    again = called.post("/join", body=panel)
    assert (again.status_code, kind_of(again)) == (409, "joined_before")
    for format in ("native", "jsonl", "csv"):
        assert "pid 7" not in called.get(f"/export?format={format}", called.owner_token).text
        assert "pid 7" in called.get(f"/export?format={format}&external=true", called.owner_token).text
    # the personal link brings them back in another browser, and ends once one that the owner made is used
    called.client.cookies.update(cookies)
    link = called.post("/me/link", **SAME_SITE).json()["link"]
    called.client.cookies.clear()
    mine = {"invite": link.partition("#")[2]}
    assert called.post("/join", body=mine).json() == {"annotator": "person 1"}
    assert called.get("/me").json()["n_answered"] == 2
    new = called.post("/annotators/1/link", called.owner_token).json()["link"]
    called.client.cookies.clear()
    assert called.post("/join", body={"invite": new.partition("#")[2]}).status_code == 200
    assert called.get("/me").json()["n_answered"] == 2
    called.client.cookies.clear()
    assert called.post("/join", body=mine).status_code == 401
    store.close()


def test_own_answers_are_seen_commented_and_changed(store):
    """A change is a judgment in the place of another: nothing is deleted, the seat and the price stay."""
    called = Called(store, n_items=4, scheme="2-overlap")
    ann, bob = called.join("ann"), called.join("bob")
    rows = []
    for grade in (0, 1, 2):
        request = called.post("/requests", ann).json()["requests"][0]["id"]
        rows.append({"submission": str(uuid.uuid4()), "request": request, "answer": {"grade": grade}, "seconds": 1.5})
        assert called.post("/judgments", ann, {**rows[-1], "comment": f"take {grade}%"}).status_code == 200
    seen = called.get("/history?limit=2", ann).json()
    assert [one["answer"] for one in seen["judgments"]] == [{"grade": 2}, {"grade": 1}]
    rest = called.get(f"/history?before={seen['next_before']}", ann).json()
    assert ([one["comment"] for one in rest["judgments"]], rest["next_before"]) == (["take 0%"], None)
    assert len(called.get("/history?search=TAKE 1", ann).json()["judgments"]) == 1
    assert called.get("/history", bob).json()["judgments"] == []
    money = called.get("/campaign", called.owner_token).json()["cost"]
    change = {**rows[0], "submission": str(uuid.uuid4()), "answer": {"grade": 3}, "replaces": rows[0]["submission"]}
    assert called.post("/judgments", bob, change).status_code == 404
    wrong = {**change, "submission": str(uuid.uuid4()), "replaces": rows[1]["submission"]}
    assert kind_of(called.post("/judgments", ann, wrong)) == "already_answered"
    first = called.post("/judgments", ann, change).json()
    assert (first["seq"], first["counted"]) == (4, True)
    assert called.post("/judgments", ann, change).json() == {**first, "replayed": True}
    assert called.get("/campaign", called.owner_token).json()["cost"] == money
    assert called.get(f"/requests/{rows[0]['request']}", ann).json()["id"] == rows[0]["request"]
    assert called.get(f"/requests/{rows[0]['request']}", bob).status_code == 404
    said = called.post(f"/judgments/{change['submission']}/comment", ann, {"comment": "on\x00 second thought"})
    assert said.json() == {"comment": "on second thought"}
    assert called.post(f"/judgments/{change['submission']}/comment", bob, {"comment": "x"}).status_code == 404
    native = [json.loads(line) for line in called.get("/export?format=native", called.owner_token).text.splitlines()]
    assert [(row["grade"], row["withdrawn"]) for row in native] == [(0, True), (1, False), (2, False), (3, False)]
    assert (native[3]["replaces"], native[3]["comment"]) == (rows[0]["submission"], "on second thought")
    found = called.get("/comments?search=%25", called.owner_token).json()["comments"]
    assert [row["comment"] for row in found] == ["take 2%", "take 1%"]
    expect_promises(called.collection)


def test_guidelines_come_first(tmp_path):
    from dataclasses import replace

    made = campaign()
    store = SqliteStore(tmp_path / "x.db")
    called = Called(store, replace(made, settings=replace(made.settings, guidelines="# Read")))
    token = called.join("ann", "person")
    assert called.get("/me", token).json()["campaign"]["guidelines"] == "# Read"
    assert kind_of(called.post("/requests", token)) == "consent_needed"
    called.post("/consent", token)
    assert called.post("/requests", token).json()["requests"]
    assert called.post("/requests", called.join("robot")).json()["requests"]
    store.close()


def test_images_and_pages_are_served_to_their_annotator_only(tmp_path):
    from crowdrank.web.campaign_file import read_campaign

    (tmp_path / "a.png").write_bytes(b"\x89PNG....")
    (tmp_path / "items.csv").write_text(
        'item,content,content_type\nx,a.png,image\ny,"<script>alert(1)</script>",html\nz,**hi**,markdown\n'
    )
    (tmp_path / "c.toml").write_text(
        'name="n"\nkind="grade"\nitems="items.csv"\nbudget=99\ngrades=["no","yes"]\nscheme="single"'
    )
    store = SqliteStore(tmp_path / "x.db")
    called = Called(store, read_campaign(tmp_path / "c.toml"))
    token, other = called.join("ann"), called.join("bob")
    held = called.post("/requests", token, {"n": 3}).json()["requests"]
    seen = {one["items"][0]["content_type"]: one["items"][0]["content"] for one in held}
    assert seen["markdown"] == "**hi**"
    picture = called.call("GET", seen["image"], token)
    assert (picture.content, picture.headers["content-type"]) == (b"\x89PNG....", "image/png")
    page = called.call("GET", seen["html"], token)
    assert page.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert called.call("GET", seen["image"], other).status_code == 404
    # the query's id is nobody's business, and Markdown stands beside Markdown
    assert [one["query"] for one in held] == [{"content": "", "content_type": "markdown"}] * 3
    called.post(f"/annotators/{called.get('/annotators', called.owner_token).json()['annotators'][0]['id']}",
                called.owner_token, {"state": "removed"})  # fmt: skip
    assert called.call("GET", seen["image"], token).status_code == 403
    assert called.call("GET", seen["image"]).status_code == 401
    store.close()


def test_logs_and_errors_hold_no_tokens_and_no_content(called, caplog):
    token = called.join("ann", "person")
    with caplog.at_level(logging.INFO, "crowdrank.web"):
        held = called.post("/requests", token).json()["requests"][0]["id"]
        called.judge(token, request=held)
        called.post("/join", body={"invite": called.invite(kind="person"), "name": "Zed Smith"})
        called.get(f"/me?token={token}", "cra_" + "y" * 43)
        called.call("GET", f"/nothing?x={token}")
        called.post("/judgments", token, {"submission": token, "request": 1})
    text = "\n".join(str(record.msg) for record in caplog.records)
    assert len(caplog.records) >= 6
    assert not tokens_in(text)
    for secret in ("Zed", "Text ", "Question", "?"):
        assert secret not in text


def test_an_error_of_ours_is_one_sentence(called, monkeypatch, caplog):
    from crowdrank.web import overview

    def broken(db, question):
        raise RuntimeError("secret content")

    monkeypatch.setattr(overview, "_of_fit", broken)
    response = called.get("/consensus", called.owner_token)
    assert response.status_code == 500
    assert kind_of(response) == "internal"
    assert "secret" not in response.text


def test_guesses_at_tokens_are_counted_by_address(called):
    called.service.access.buckets.clock = lambda: 100.0
    found = {called.get("/me", f"cra_{number}").status_code for number in range(90)}
    assert found == {401}
    refused = [called.get("/me", f"cra_x{number}") for number in range(20)]
    assert refused[-1].status_code == 429
    assert int(refused[-1].headers["retry-after"]) >= 1
    # those who are known are not held up by it
    assert called.get("/me", called.join("ann")).status_code == 200


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("2001:db8:1:2::3", "2001:db8:1:2:ffff::9", True), ("2001:db8:1:2::3", "2001:db8:1:3::3", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True), ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False), ("unknown", "unknown:", False),
    ],
)  # fmt: skip
def test_one_caller_has_many_addresses_of_ipv6(called, first, second, same):
    access = Access(called.collection, URL, behind_proxy=True)
    seen = [
        access.address(Request({"type": "http", "headers": [(b"x-forwarded-for", one.encode())]}))
        for one in (first, second)
    ]
    assert (seen[0] == seen[1]) is same


def test_very_many_callers_do_not_slow_each_other_down():
    now = [0.0]
    buckets = Buckets(lambda: now[0])
    for number in range(20_002):
        buckets.wait(number, 1.0, 2.0)
    before = buckets._levels
    now[0] = 5.0
    buckets.wait("another", 1.0, 2.0)
    # looked through a moment ago, and nobody was silent for long
    assert buckets._levels is before
    now[0] = 200.0
    buckets.wait("another", 1.0, 2.0)
    assert list(buckets._levels) == ["another"]
