"""What the page on collecting shows of the service comes out of a running one."""

import json
import re
import shlex
import time
from pathlib import Path

import httpx

from .serving import Server

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serve.md").read_text()
VOTES = (ROOT / "README.md").read_text()


def block(language, *, with_word):
    """The one block in a language that has a word."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    return next(text for text in found if with_word in text)


def call(server, line):
    """What the service answers to a line of curl."""
    words = shlex.split(line)
    assert words[0] == "curl", line
    url = words[-1].replace("127.0.0.1:8000", server.url)
    headers = {"authorization": words[words.index("-H") + 1].partition(": ")[2].replace("$TOKEN", server.token)}
    if "--data-binary" not in words:
        return httpx.get(url, headers=headers, timeout=60)
    name = words[words.index("--data-binary") + 1].removeprefix("@")
    return httpx.post(url, headers=headers, content=(server.folder / name).read_bytes(), timeout=60)


def test_the_example_of_the_service_gives_what_it_says(tmp_path):
    shown = dict(re.findall(r"<!-- file: (\S+) -->\n+```\w*\n(.*?)```", VOTES + PAGE, flags=re.DOTALL))
    for name, text in shown.items():
        (tmp_path / name).write_text(text)
    server = Server(tmp_path)
    (tmp_path / "campaign.toml").write_text(shown["tea.toml"])
    sends, asks = block("sh", with_word="curl").splitlines()[1:]
    expected = json.loads(block("json", with_word="score"))
    with server:
        assert call(server, sends).json()["kept"] == shown["votes.csv"].count("\n") - 1
        # the fit runs in a process of its own, which may take its time to start
        until = time.monotonic() + 240
        while not (items := call(server, asks).json().get("items")) and time.monotonic() < until:
            time.sleep(0.5)
    assert items, "no consensus came"
    assert {name: items[0][name] for name in expected} == expected
