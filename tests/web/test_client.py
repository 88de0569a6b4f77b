"""The client against a real server: it works through a campaign, and losing an answer costs nothing."""

import json
import re
import signal
import time
import warnings
from dataclasses import fields
from pathlib import Path

import pytest
from tests.web.calling import Called, tokens_in
from tests.web.serving import Server, until

import crowdrank as cr
import crowdrank.client
from crowdrank.client import CallError, Client, Item, Judgment, Nothing, Request
from crowdrank.errors import DataWarning, ParameterError
from crowdrank.web.collection import SqliteStore

pytestmark = pytest.mark.slow


def test_programs_work_through_a_campaign_that_closes_itself(tmp_path):
    """Two programs judge everything; the final consensus is that of the export."""
    items = "query,item,content\n" + "".join(f"q,i{n},{'x' * (1 + n % 4)}\n" for n in range(30))
    keys = {"scheme": '"2-overlap"', "close_when_done": "true"}

    def judge(request):
        noise = request.id % 5 == 0
        return {"grade": min(3, len(request.items[0].content) - 1 + noise)}

    with Server(tmp_path, items=items, **keys) as server:
        with Client.join(server.url, server.invite(), "one") as one, Client.join(server.url, server.invite()) as two:
            assert one.work(judge, n=7, most=10) == 10
            assert two.work(judge, n=3, most=30) == 30
            assert one.work(judge) == 20
            assert isinstance(one.requests(), Nothing)
            with pytest.raises(CallError, match="no such request"):
                one.skip(99_999)
            (again,) = one.submit([Judgment(99_999, {"grade": 1})])
            assert again["status"] == 404
        until(lambda: server.owner("GET", "/campaign").json()["fit"]["final"])
        view = server.owner("GET", "/campaign").json()
        assert view["state"] == "closed"
        assert view["judgments"]["n"] == 60
        consensus = server.owner("GET", "/consensus").json()
        (tmp_path / "export.jsonl").write_bytes(server.owner("GET", "/export?format=jsonl").content)
        assert server.stop() in (0, -signal.SIGTERM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = cr.aggregate(str(tmp_path / "export.jsonl"))
    assert consensus["method"] == fitted.method
    expected = {row["item"]: row["score"] for row in fitted.frame().iter_rows(named=True)}
    assert {row["item"]: row["score"] for row in consensus["items"]} == pytest.approx(expected, abs=1e-9)
    log = (tmp_path / "log.jsonl").read_text()
    assert not tokens_in(log)
    assert all(json.loads(line)["event"] for line in log.splitlines())


def test_a_judge_that_fails_loses_nothing(tmp_path):
    """What was answered before is kept, what fails is skipped with a reason, and a missing file is an error."""
    items = "item,content\n" + "".join(f"i{n},{n}\n" for n in range(6))

    def judge(request):
        if request.items[0].content == "4":
            raise ValueError("out of memory")
        return {"grade": 9 if request.items[0].content == "2" else 1}

    with (
        Server(tmp_path, items=items, options=("--quiet",), scheme='"single"') as server,
        Client.join(server.url, server.invite(), "one") as client,
    ):
        with pytest.warns(DataWarning, match="is skipped") as told:
            assert client.work(judge) == 4
        assert sorted("out of memory" in str(one.message) for one in told) == [False, True]
        rows = map(json.loads, server.owner("GET", "/export?format=jsonl").text.splitlines())
        assert sorted(row["item"] for row in rows) == ["i0", "i1", "i3", "i5"]
        with pytest.raises(CallError, match="no such item") as missing:
            client.content(Item("a", "/api/v1/requests/1/items/x", "image"))
        assert missing.value.status == 404


def test_slow_judges_work_at_once_and_keep_their_leases(tmp_path):
    """Six answers of three seconds each with leases of five: in threads, none comes too late."""
    items = "item,content\n" + "".join(f"i{n},{n}\n" for n in range(6))

    def judge(request):
        time.sleep(3)
        return {"grade": 1}

    keys = {"scheme": '"single"', "lease_seconds": "5"}
    with (
        Server(tmp_path, items=items, options=("--quiet",), **keys) as server,
        Client.join(server.url, server.invite(), "one") as client,
    ):
        assert client.work(judge, n=6, parallel=2) == 6
        rows = [json.loads(line) for line in server.owner("GET", "/export?format=native").text.splitlines()]
        assert [row["counted"] for row in rows] == [True] * 6
        offered = server.owner("GET", "/campaign").json()["requests"]
        assert offered == {"answered": 6}
        with pytest.raises(CallError, match="no such request"):
            client.extend(99_999)
    with pytest.raises(ParameterError, match="parallel=0"):
        client.work(judge, parallel=0)


def test_the_client_is_what_the_description_says(tmp_path):
    """Routes that it calls and fields that it reads or sends are those of the OpenAPI description."""
    store = SqliteStore(tmp_path / "x.db")
    called = Called(store)
    described = called.get("/openapi.json", called.owner_token).json()
    source = Path(crowdrank.client.__file__).read_text()
    calls = re.findall(r'_(?:call|once)\(\s*"(GET|POST)", f?"(/[^"?]*)"', source)
    assert len(calls) >= 6
    for method, path in calls:
        assert method.lower() in described["paths"][f"/api/v1{path}"], path
    schemas = described["components"]["schemas"]
    own = {one.name for one in fields(Request)}
    assert own <= schemas["ShownRequest"]["properties"].keys()
    assert {one.name for one in fields(Item)} == schemas["ShownItem"]["properties"].keys()
    assert {one.name for one in fields(Judgment)} <= schemas["Judgment"]["properties"].keys()
    store.close()


def test_what_a_client_refuses():
    with pytest.raises(ParameterError, match="https://votes"):
        Client("votes.example.org")
    client = Client("http://127.0.0.1:9", "cra_x", patience=0.0)
    with pytest.raises(OSError, match="refused"):
        client.me()
