"""The unit of systemd and the container file in the documentation do what they say."""

import configparser
import hmac
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import typer
import yaml
from tests.web.collecting import add_annotator, collect, run, sent
from tests.web.serving import ITEMS, free_port, until

from crowdrank.cli.app import app
from crowdrank.errors import ParameterError
from crowdrank.web.collection import SqliteStore
from crowdrank.web.server import GRACE_SECONDS
from crowdrank.web.setup import set_campaign_state
from crowdrank.web.submitting import claim, submit
from crowdrank.web.webhooks import SECRET, Webhook, signature

DEPLOY = Path(__file__).parents[2] / "deploy"
PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()


def block(language):
    """The one block in a language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    return text


def expect_options(words):
    """Refuse a command that the command line does not know."""
    assert words[:2] == ["crowdrank", "serve"]
    command = typer.main.get_command(app)
    with command.make_context("crowdrank", words[1:2], resilient_parsing=True) as context:
        serve = command.get_command(context, "serve")
        given = serve.make_context("serve", words[2:], parent=context, resilient_parsing=True).params
    known = {name for one in serve.params for name in one.opts}
    assert {word for word in words if word.startswith("--")} <= known
    return given


@pytest.fixture
def unit():
    found = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    found.optionxform = str
    found.read_string(block("ini"))
    return found


def test_the_unit_starts_what_there_is_and_may_write_where_it_must(unit):
    service = unit["Service"]
    program, *words = shlex.split(service["ExecStart"])
    given = expect_options([Path(program).name, *words])
    assert given["behind_proxy"]
    assert given["public_url"].startswith("https://")
    folder = Path(service["WorkingDirectory"])
    assert Path(service["ReadWritePaths"]) in (folder, *folder.parents)
    assert Path(program).is_relative_to(folder)
    assert not Path(given["token_file"]).is_absolute()
    cache = dict([service["Environment"].split("=", 1)])["NUMBA_CACHE_DIR"]
    assert cache == f"/var/cache/{service['CacheDirectory']}"
    assert int(service["TimeoutStopSec"]) > GRACE_SECONDS


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit(unit, tmp_path):
    path = tmp_path / "crowdrank.service"
    # the folder of the example is not on this machine
    path.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={shutil.which('true')}", block("ini")))
    done = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, timeout=120)
    assert [line for line in done.stderr.splitlines() if "crowdrank.service" in line] == []


def container_lines():
    """Instructions of the container file, the last of each name."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines if not line.startswith("#"))


def test_the_services_of_compose_fit_together():
    """There may be no container engine here: what it would start is checked part by part."""
    found = yaml.safe_load((DEPLOY / "compose.yml").read_text())
    serve, database = found["services"]["serve"], found["services"]["database"]
    given = expect_options([*json.loads(container_lines()["ENTRYPOINT"]), *serve["command"]])
    address = urlsplit(given["db"])
    kept = database["environment"]
    assert (address.hostname, address.username, address.path) == (
        "database", kept["POSTGRES_USER"], f"/{kept['POSTGRES_DB']}",
    )  # fmt: skip
    assert given["workers"] > 1
    assert serve["depends_on"]["database"]["condition"] == "service_healthy"
    assert database["healthcheck"]["test"][1] == "pg_isready"
    assert {*serve["secrets"], *database["secrets"]} == set(found["secrets"])
    assert serve["build"] == "."
    assert "web-postgres" in container_lines()["RUN"]
    assert serve["ports"] == [f"127.0.0.1:{container_lines()['EXPOSE']}:{container_lines()['EXPOSE']}"]
    assert serve["volumes"] == [f"./campaign:{container_lines()['WORKDIR']}"]
    assert int(serve["stop_grace_period"].removesuffix("s")) > GRACE_SECONDS
    assert {one.split(":")[0] for one in database["volumes"]} == set(found["volumes"])


def test_a_webhook_tells_each_judgment_signed_until_it_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv(SECRET, "a key")
    calls, status = [], [500]

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            calls.append((self.headers["x-crowdrank-signature"], body))
            self.send_response(status[0])
            self.end_headers()

        def log_message(self, *words):
            pass

    taker = HTTPServer(("127.0.0.1", 0), Taker)
    threading.Thread(target=taker.serve_forever, daemon=True).start()
    store = SqliteStore(tmp_path / "x.db")
    collection = collect(store, webhook=f"http://127.0.0.1:{taker.server_port}/hook")
    ann = add_annotator(collection, "ann")
    for _ in range(2):
        run(collection, submit, ann, sent(run(collection, claim, ann).requests[0]))
    hook = Webhook(collection)
    assert hook.tell() is False
    status[0] = 200
    assert hook.tell() is True
    run(collection, set_campaign_state, "closed", "owner")
    assert hook.tell() is True
    assert hook.tell() is True
    # taken once, in order; what failed was the same
    assert len(calls) == 3
    assert calls[0] == calls[1]
    told = [one for _, body in calls[1:] for one in json.loads(body)["events"]]
    assert [one["type"] for one in told] == ["judgment", "judgment", "stop"]
    assert [one["judgment"]["seq"] for one in told[:2]] == [1, 2]
    assert all(hmac.compare_digest(signed, signature("a key", body)) for signed, body in calls)
    monkeypatch.delenv(SECRET)
    with pytest.raises(ParameterError, match=SECRET):
        Webhook(collection)
    taker.shutdown()
    taker.server_close()
    store.close()


def test_the_container_serves_a_campaign_stays_healthy_and_ends_when_told(tmp_path):
    found = container_lines()
    words = [*json.loads(found["ENTRYPOINT"]), *json.loads(found["CMD"])]
    given = expect_options(words)
    port, shown = free_port(), found["EXPOSE"]
    assert f":{shown}" in given["public_url"]
    (tmp_path / "items.csv").write_text(ITEMS)
    (tmp_path / "campaign.toml").write_text('name = "x"\nkind = "preference"\nitems = "items.csv"\nbudget = 9\n')
    command = [sys.executable, "-m", *(word.replace(shown, str(port)) for word in words), "--port", str(port)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    try:
        until(lambda: process.poll() is not None or _answers(port))
        check = shlex.split(found["HEALTHCHECK"].replace(shown, str(port)))[1:]
        assert check[:2] == ["python", "-c"]
        assert subprocess.run([sys.executable, *check[1:]], timeout=60).returncode == 0
        token = tmp_path / given["token_file"]
        assert stat.S_IMODE(os.stat(token).st_mode) == 0o600
        asked = httpx.get(
            f"http://127.0.0.1:{port}/api/v1/campaign", headers={"authorization": f"Bearer {token.read_text().strip()}"}
        )
        assert asked.status_code == 200
    finally:
        process.send_signal(signal.SIGTERM)
        # a process that ends by the signal it was sent, after its work, has ended cleanly to systemd and to Docker
        assert process.wait(60) in (0, -signal.SIGTERM), (tmp_path / "log").read_text()
    assert subprocess.run([sys.executable, *check[1:]], timeout=60, capture_output=True).returncode != 0


def _answers(port):
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=10).status_code == 200
    except httpx.HTTPError:
        return False
