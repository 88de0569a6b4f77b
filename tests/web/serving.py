"""A real server in a process of its own, for tests of the client, of faults and of browsers."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

PATIENCE = 240.0
"""Seconds after which something is taken for hanging; a busy machine compiles and starts processes slowly."""

ITEMS = "query,item,content,query_content\n" + "".join(
    f"q{q},i{q}-{n},Text {n} of {q},Question {q}\n" for q in range(4) for n in range(25)
)


def until(condition, seconds: float = PATIENCE):
    """What a condition returns once that is true."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"it did not happen in {seconds:g} s; the last answer was {found!r}"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """``crowdrank serve`` on a campaign in a folder."""

    def __init__(self, folder: Path, db: str | None = None, items: str = ITEMS, options: tuple[str, ...] = (), **keys):
        self.folder, self.db, self.options = folder, db or str(folder / "campaign.db"), options
        given = {
            "name": '"test"', "kind": '"grade"', "items": '"items.csv"', "budget": "100000",
            "scheme": '"3-overlap"', "lease_seconds": "60", **keys,
        }  # fmt: skip
        if given["kind"] == '"grade"':
            given.setdefault("grades", '["Bad", "Fair", "Good", "Excellent"]')
        (folder / "items.csv").write_text(items)
        (folder / "campaign.toml").write_text("\n".join(f"{key} = {value}" for key, value in given.items()))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "log.jsonl"
        self.token = ""
        self.process: subprocess.Popen | None = None

    def start(self) -> "Server":
        command = [
            sys.executable, "-m", "crowdrank", "serve", str(self.folder / "campaign.toml"), "--db", self.db, "--port",
            str(self.port), *self.options,
        ]  # fmt: skip
        environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        out = self.folder / "out.txt"
        with out.open("w") as stdout, self.log.open("a") as stderr:
            self.process = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=environment)
        until(self._answers)
        found = re.search(r"cro_[\w-]+", out.read_text())
        self.token = found.group(0) if found else self.token
        return self

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(self.log.read_text())
        try:
            return httpx.get(f"{self.url}/healthz", timeout=10).status_code == 200
        except httpx.HTTPError:
            return False

    def stop(self, how: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def owner(self, method: str, path: str, body=None, **keys) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.request(method, f"{self.url}/api/v1{path}", json=body, headers=headers, timeout=PATIENCE, **keys)

    def invite(self, kind: str = "program", uses: int = 1) -> str:
        return self.owner("POST", "/invites", {"kind": kind, "uses": uses}).json()["token"]

    def __enter__(self) -> "Server":
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        try:
            self.stop()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
