"""The unit of systemd and the container file in the documentation do what they say."""

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import typer
from tests.web.serving import ITEMS, free_port, until

from crowdrank.cli.app import app
from crowdrank.web.server import GRACE_SECONDS

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
    return dict(line.split(" ", 1) for line in block("dockerfile").splitlines())


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
