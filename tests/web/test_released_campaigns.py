"""Campaigns that released versions collected go on: nothing is lost, and more is taken."""

import json
import shutil
from pathlib import Path

import psycopg
import pytest
from tests.released.write import campaign_items
from tests.web.serving import Server, until

from crowdrank.client import Client
from crowdrank.web.server import Options
from crowdrank.web.upkeep import backup, check, restore

FOLDER = Path(__file__).parents[1] / "released"
VERSIONS = sorted(path.parent.name for path in FOLDER.glob("*/campaign.sql"))

pytestmark = pytest.mark.slow


def test_there_is_a_campaign_of_a_release():
    assert VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_campaign_of_a_release_goes_on(version, database, tmp_path, request):
    if database == "sqlite":
        shutil.copy(FOLDER / version / "campaign.db", tmp_path / "campaign.db")
        address = None
    else:
        head, _, tail = request.getfixturevalue("postgres").partition("?")
        address = f"{head.rsplit('/', 1)[0]}/released" + (f"?{tail}" if tail else "")
        with psycopg.connect(request.getfixturevalue("postgres"), autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS released WITH (FORCE)")
            connection.execute("CREATE DATABASE released")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute((FOLDER / version / "campaign.sql").read_bytes())

    def by_submission(text):
        return {row["submission"]: row for row in map(json.loads, text.splitlines())}

    # a backup before anything else, by the new version
    old, saved = Options(campaign="", db=address or str(tmp_path / "campaign.db")), str(tmp_path / "saved.db")
    assert "wrote 24 judgments" in backup(old, saved)
    assert "restored 24 judgments" in restore(Options(campaign="", db=str(tmp_path / "again.db")), saved)
    with Server(tmp_path, db=address, items=campaign_items(), options=("--new-token",)) as server:
        exported = by_submission(server.owner("GET", "/export?format=jsonl").text)
        assert len(exported) == 24
        if database == "sqlite":
            before = by_submission((FOLDER / version / "campaign.jsonl").read_text())
            assert exported.keys() == before.keys()
            # fields may be added, and none is taken away
            assert all(row.items() <= exported[key].items() for key, row in before.items())
        with Client.join(server.url, server.invite(), "dan") as client:
            assert client.work(lambda asked: {"grade": 1}, n=2, most=4) == 4
        again = by_submission(server.owner("GET", "/export?format=jsonl").text)
        assert len(again) == 28
        assert {key: again[key] for key in exported} == exported
        # the owner's page and the first fit of the new version
        until(lambda: server.owner("GET", "/campaign").json()["fit"]["as_of_seq"] == 28)
        for path in ("items", "review", "people", "pay", "course", "events", "settings", "members", "comments"):
            assert server.owner("GET", f"/{path}").status_code == 200, path
        assert {row["name"] for row in server.owner("GET", "/people").json()["annotators"]} >= {"ann", "cid", "dan"}
    assert "all checks passed on 28 judgments" in check(old)
