"""Load and faults of ``crowdrank serve``: latencies of people, batches of programs, kill -9, exports, a soak.

    python -m benchmarks.collect first people refits batch kill export soak
    python -m benchmarks.collect batch --db postgresql://...

The load comes from the same machine; the load average is printed with every figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from contextlib import suppress
from pathlib import Path

import numpy as np

CAMPAIGN = """name = "load"
kind = "grade"
items = "items.csv"
budget = 100000000
scheme = "{scheme}"
grades = ["Bad", "Fair", "Good", "Excellent"]
lease_seconds = 600
"""


class Server:
    """The service in a process of its own, on a campaign of made-up items."""

    def __init__(
        self, folder: Path, n_items: int, *, scheme: str = "3-overlap", db: str | None = None, workers: int = 1
    ):
        rows = [f"q{n // 50},i{n},Text {n} {'lorem ipsum ' * 20}" for n in range(n_items)]
        (folder / "items.csv").write_text("query,item,content\n" + "\n".join(rows) + "\n")
        (folder / "campaign.toml").write_text(CAMPAIGN.format(scheme=scheme))
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        self.folder, self.db, self.workers = folder, db or str(folder / "campaign.db"), workers
        self.token = ""

    def start(self) -> Server:
        """Start, or start again, and wait until it answers."""
        command = [
            sys.executable, "-m", "crowdrank", "serve", str(self.folder / "campaign.toml"), "--db", self.db,
            "--port", str(self.port), "--quiet", "--workers", str(self.workers),
        ]  # fmt: skip
        out = self.folder / "out.txt"
        with out.open("w") as stdout, (self.folder / "log.txt").open("a") as log:
            self.process = subprocess.Popen(command, stdout=stdout, stderr=log)
        for _ in range(6000):
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=2).read()
                break
            time.sleep(0.05)
        match = re.search(r"cro_[\w-]+", out.read_text())
        self.token = match[0] if match else self.token
        return self

    def stop(self, how: int = signal.SIGTERM) -> None:
        """End the process."""
        self.process.send_signal(how)
        self.process.wait(60)

    def owner(self, method: str, path: str, body: object = None) -> bytes:
        """What the owner is answered."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        return urllib.request.urlopen(request, timeout=600).read()

    def tokens(self, number: int) -> list[str]:
        """Tokens of new programs."""
        body = {"kind": "program", "uses": max(number, 2)}
        invite = json.loads(self.owner("POST", "/api/v1/invites", body))["token"]
        return [asyncio.run(_join(self.port, invite)) for _ in range(number)]

    def memory(self) -> int:
        """Megabytes that the process holds, without the one that fits."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) // 1024


class Connection:
    """HTTP/1.1 with as little work as possible, so that the server is what is measured."""

    def __init__(self, port: int, token: str = "") -> None:
        self.port, self.token = port, token
        self.reader: asyncio.StreamReader | None = None

    async def post(self, path: str, body: object) -> tuple[int, dict]:
        """Status and answer of a call."""
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        data = json.dumps(body).encode()
        head = f"POST /api/v1{path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        head += f"authorization: Bearer {self.token}\r\n" if self.token else ""
        head += f"content-length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", answer)[1])
        return int(answer[9:12]), json.loads(await self.reader.readexactly(length))


async def _join(port: int, invite: str) -> str:
    return (await Connection(port).post("/join", {"invite": invite}))[1]["token"]


def answer(request: dict) -> dict:
    """A judgment of a request."""
    return {"submission": str(uuid.uuid4()), "request": request["id"], "answer": {"grade": random.randrange(4)}}


async def person(port: int, token: str, think: float, seconds: float, latencies: list[tuple[float, float]]) -> None:
    """Somebody who thinks, answers, and gets the next request with the reply; ``latencies`` is added to."""
    await asyncio.sleep(random.uniform(0, max(think, 0.01)))
    connection, end = Connection(port, token), time.monotonic() + seconds
    requests = (await connection.post("/requests", {}))[1]["requests"]
    while requests and time.monotonic() < end:
        if think:
            await asyncio.sleep(random.expovariate(1 / think))
        begun = time.perf_counter()
        status, body = await connection.post("/judgments", {**answer(requests[0]), "next": True})
        latencies.append((time.time(), time.perf_counter() - begun))
        assert status == 200, body
        requests = body["next"]["requests"]


async def program(port: int, token: str, seconds: float, n: int, kept: list[int]) -> None:
    """A program that works in batches without a pause."""
    connection, end = Connection(port, token), time.monotonic() + seconds
    while time.monotonic() < end:
        status, body = await connection.post("/requests", {"n": n})
        if status == 429:
            await asyncio.sleep(0.1)
            continue
        if not body["requests"]:
            return
        rows = [answer(one) for one in body["requests"]]
        status, body = await connection.post("/judgments/batch", {"judgments": rows})
        if status == 200:
            kept.append(sum(one["status"] == 200 for one in body["results"]))
        else:
            await asyncio.sleep(0.1)


def answer_times(port: int, tokens: list[str], think: float, seconds: float) -> np.ndarray:
    """A row for each answer of many people at once: when it was acknowledged, and how many milliseconds that took."""
    latencies: list[tuple[float, float]] = []

    async def all_of_them() -> None:
        await asyncio.gather(*(person(port, token, think, seconds, latencies) for token in tokens))

    asyncio.run(all_of_them())
    return np.array(latencies) * (1.0, 1000.0)


def quantiles(times: np.ndarray) -> str:
    """Median and 99th percentile in words."""
    return f"p50 {np.median(times):.1f} ms, p99 {np.quantile(times, 0.99):.1f} ms"


def crowd(port: int, tokens: list[str], think: float, seconds: float) -> str:
    """Latencies of many people at once."""
    times = answer_times(port, tokens, think, seconds)[:, 1]
    return f"{len(times) / seconds:.0f} judgments/s, {quantiles(times)} (load {os.getloadavg()[0]:.1f})"


def people(arguments: argparse.Namespace, folder: Path) -> None:
    """Floors: 200 at 2 s p50 < 10, p99 < 100 ms; 500 at 5 s p99 < 250."""
    server = Server(folder, 20_000, db=arguments.db).start()
    tokens = server.tokens(500)
    print("200 people, 2 s:", crowd(server.port, tokens[:200], 2.0, arguments.seconds), flush=True)
    print("500 people, 5 s:", crowd(server.port, tokens, 5.0, arguments.seconds), flush=True)
    fits = json.loads(server.owner("GET", "/api/v1/campaign"))["fit"]
    print(f"  fits meanwhile: as of {fits['as_of_seq']}, {fits['newer']} newer, error {fits['error']}")
    print("100 people, no pause:", crowd(server.port, tokens[:100], 0.0, arguments.seconds / 2), flush=True)
    finish(server)


def first(arguments: argparse.Namespace, folder: Path) -> None:
    """Floor: the first consensus within 3 s of the 50th judgment, all of which come within a second."""
    server = Server(folder, 200).start()
    tokens = server.tokens(5)
    time.sleep(10)

    async def ten(token: str) -> None:
        connection = Connection(server.port, token)
        for _ in range(10):
            asked = (await connection.post("/requests", {}))[1]["requests"][0]
            assert (await connection.post("/judgments", answer(asked)))[0] == 200
            await asyncio.sleep(0.1)

    async def fifty() -> None:
        await asyncio.gather(*map(ten, tokens))

    asyncio.run(fifty())
    began, seen = time.monotonic(), 0
    while seen < 50:
        now = json.loads(server.owner("GET", "/api/v1/campaign"))["fit"]["as_of_seq"]
        if now > seen:
            took, load = time.monotonic() - began, os.getloadavg()[0]
            print(f"consensus of {now} judgments {took:.1f} s after the 50th (load {load:.1f})", flush=True)
        seen = now
        time.sleep(0.05)
    finish(server)


def refits(arguments: argparse.Namespace, folder: Path) -> None:
    """Floor: p99 of 200 people at most doubled while a fit of 200,000 judgments and more is under way."""
    import sqlite3

    server = Server(folder, 20_000).start()
    server.stop()
    fill(server.db, 200_000, targets=10_000, state="open")
    server.start()
    times = answer_times(server.port, server.tokens(200), 2.0, 3 * arguments.seconds)
    server.stop()
    with sqlite3.connect(server.db) as connection:
        spans = connection.execute(
            "SELECT started_at / 1e6, finished_at / 1e6 FROM fit WHERE finished_at > 0"
        ).fetchall()
    during = np.zeros(len(times), dtype=bool)
    for begun, ended in spans:
        during |= (times[:, 0] >= begun) & (times[:, 0] <= ended)
    for when, rows in ((f"during {len(spans)} fits", times[during, 1]), ("between fits", times[~during, 1])):
        print(f"200 people, 2 s, {when}: {len(rows)} judgments, {quantiles(rows)} (load {os.getloadavg()[0]:.1f})")
    finish(server)


def batch(arguments: argparse.Namespace, folder: Path) -> None:
    """Floor: 1,000 judgments a second through batches on SQLite; 400 on PostgreSQL with two processes."""
    server = Server(folder, 30_000, db=arguments.db, workers=2 if arguments.db else 1).start()
    tokens, kept = server.tokens(8), []

    async def all_of_them() -> None:
        await asyncio.gather(*(program(server.port, token, arguments.seconds, 100, kept) for token in tokens))

    begun = time.monotonic()
    asyncio.run(all_of_them())
    name, pace = "PostgreSQL, 2 processes" if arguments.db else "SQLite", sum(kept) / (time.monotonic() - begun)
    print(f"batches, {name}: {pace:.0f} judgments/s (load {os.getloadavg()[0]:.1f})", flush=True)
    finish(server)


def kill(arguments: argparse.Namespace, folder: Path) -> None:
    """Kill the process under load again and again; every acknowledged judgment must be there once."""
    server = Server(folder, 5_000, scheme="if-good-3", db=arguments.db).start()
    tokens = server.tokens(16)
    acknowledged: set[str] = set()
    waiting: dict[str, list[dict]] = {token: [] for token in tokens}

    async def work(token: str) -> None:
        connection = Connection(server.port, token)
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                for row in list(waiting[token]):
                    status, _ = await connection.post("/judgments", row)
                    if status == 200:
                        acknowledged.add(row["submission"])
                    waiting[token].remove(row)
                requests = (await connection.post("/requests", {"n": 4}))[1]["requests"]
                if not requests:
                    return
                waiting[token] += [answer(one) for one in requests]

    async def one_round() -> None:
        tasks = [asyncio.create_task(work(token)) for token in tokens]
        await asyncio.sleep(random.uniform(0.3, 1.5))
        server.process.send_signal(signal.SIGKILL)
        await asyncio.gather(*tasks)

    for _ in range(arguments.rounds):
        asyncio.run(one_round())
        server.process.wait()
        server.start()
    rows = [json.loads(line) for line in server.owner("GET", "/api/v1/export?format=native").splitlines()]
    stored = [row["submission"] for row in rows]
    print(
        f"kill -9, {arguments.rounds} rounds: {len(acknowledged)} acknowledged, "
        f"{len(acknowledged - set(stored))} missing, "
        f"{len(stored) - len(set(stored))} stored twice, {len(set(stored) - acknowledged)} stored and not acknowledged"
    )
    finish(server)


def export(arguments: argparse.Namespace, folder: Path) -> None:
    """Floors: 1 M judgments exported under 60 s and 200 MB."""
    server = Server(folder, 1_000, db=arguments.db).start()
    server.stop()
    fill(server.db, arguments.number)
    server.start()
    before, begun, size = server.memory(), time.monotonic(), 0
    headers = {"authorization": f"Bearer {server.token}"}
    url = f"http://127.0.0.1:{server.port}/api/v1/export?format=jsonl"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=600) as stream:
        while part := stream.read(1 << 20):
            size += len(part)
    print(
        f"export of {arguments.number:,} judgments: {time.monotonic() - begun:.0f} s, {size / 1e6:.0f} MB, "
        f"server at {server.memory()} MB, {server.memory() - before} more than before (load {os.getloadavg()[0]:.1f})"
    )
    server.stop()


def fill(path: str, number: int, *, targets: int | None = None, state: str = "paused") -> None:
    """Judgments by made-up annotators of the first ``targets``, straight into a SQLite file."""
    import sqlite3

    with sqlite3.connect(path) as connection:
        filled = [row[0] for row in connection.execute("SELECT id FROM target ORDER BY id LIMIT ?", (targets or -1,))]
        each = number // len(filled)
        change = "UPDATE target SET most = ?, wanted = ?, taken = ? WHERE id <= ?"
        connection.execute(change, (each, each, each, filled[-1]))
        connection.executemany(
            "INSERT INTO annotator (id, campaign, name, kind, cost, state, n_answered, joined_at) "
            "VALUES (?, 1, ?, 'program', 0, 'active', ?, 0)",
            ((n, f"a{n}", len(filled)) for n in range(1, each + 1)),
        )
        rows = [(n, filled[n % len(filled)], n // len(filled) + 1) for n in range(number)]
        connection.executemany(
            "INSERT INTO request (id, target, annotator, seat, state, shown, offered_at, lease_until, lease_most, "
            "cost) VALUES (?, ?, ?, ?, 'answered', '{\"order\": [1], \"seed\": 1}', 0, 0, 0, 0)",
            ((n + 1, target, who, who) for n, target, who in rows),
        )
        connection.executemany(
            "INSERT INTO judgment (submission, campaign, seq, request, annotator, target, answer, body_hash, seconds, "
            "counted, paid, at, source) VALUES (?, 1, ?, ?, ?, ?, '{\"grade\": 2}', '', 1.5, 1, 1, 0, '')",
            ((str(uuid.UUID(int=n + 1)), n + 1, n + 1, who, target) for n, target, who in rows),
        )
        connection.execute("UPDATE campaign SET seq = ?, state = ?", (number, state))


def soak(arguments: argparse.Namespace, folder: Path) -> None:
    """Ten minutes of 200 people at 2 s: memory and write-ahead log must not grow."""
    server = Server(folder, 60_000, db=arguments.db).start()
    tokens = server.tokens(200)
    log = Path(f"{server.db}-wal")
    for minute in range(arguments.minutes):
        latency = crowd(server.port, tokens, 2.0, 60.0)
        size = log.stat().st_size / 1e6 if log.exists() else 0.0
        print(f"minute {minute + 1}: {latency}, server {server.memory()} MB, log {size:.1f} MB", flush=True)
    finish(server)


def finish(server: Server) -> None:
    """Stop, and recount every promise."""
    server.stop()
    command = [
        sys.executable,
        "-m",
        "crowdrank",
        "serve",
        str(server.folder / "campaign.toml"),
        "--db",
        server.db,
        "--check",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    print("  " + (done.stdout or done.stderr).strip(), flush=True)


def main() -> None:
    """Run the workloads that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="+", choices=["first", "people", "refits", "batch", "kill", "export", "soak"])
    parser.add_argument("--db", help="a PostgreSQL database that is empty; SQLite by default")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--number", type=int, default=1_000_000, help="judgments that are exported")
    parser.add_argument("--minutes", type=int, default=10)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    for what in arguments.what:
        with tempfile.TemporaryDirectory() as folder:
            globals()[what](arguments, Path(folder))


if __name__ == "__main__":
    main()
