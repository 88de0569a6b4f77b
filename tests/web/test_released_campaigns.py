"""Campaigns that released versions collected go on: nothing is lost, and more is taken."""

import json
import shutil
from pathlib import Path

import psycopg
import pytest
from tests.released.write import campaign_items
from tests.web.serving import Server

from crowdrank.client import Client

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
