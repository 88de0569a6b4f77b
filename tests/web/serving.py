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

ITEMS = "query,item,content,query_content\n" + "".join(
    f"q{q},i{q}-{n},Text {n} of {q},Question {q}\n" for q in range(4) for n in range(25)
)


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
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/healthz", timeout=2).status_code == 200:
                    break
            except httpx.HTTPError:
                if self.process.poll() is not None:
                    raise AssertionError(self.log.read_text()) from None
            time.sleep(0.1)
        found = re.search(r"cro_[\w-]+", out.read_text())
        self.token = found.group(0) if found else self.token
        return self

    def stop(self, how: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(40)

    def owner(self, method: str, path: str, body=None, **keys) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.request(method, f"{self.url}/api/v1{path}", json=body, headers=headers, timeout=60, **keys)

    def invite(self, kind: str = "program", uses: int = 1) -> str:
        return self.owner("POST", "/invites", {"kind": kind, "uses": uses}).json()["token"]

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, *error) -> None:
        if self.process is not None and self.process.poll() is None:
            self.stop()
