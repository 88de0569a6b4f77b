"""Time the sides of a workload, each in a process of its own, taking turns."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from .side import peak_bytes
from .workload import REPEATS, Call, Command, Failed, Measured, Peer, Workload

ROOT = Path(__file__).resolve().parent.parent
"""The project's root, from which the processes are started."""


class SideError(RuntimeError):
    """A side's process ended before its work was done; the text is the last line it wrote."""


def absent_peers(workload: Workload, peer_python: str | None) -> dict[str, str]:
    """Return the sides whose package is not in the interpreter of peers, and what to do."""
    absent = {}
    for name, side in workload.sides.items():
        if isinstance(side, Peer) and not _has_module(peer_python, side.module):
            absent[name] = (
                f"{side.package} not installed; pip install {side.package} in a virtual environment of its own, and "
                "give its interpreter with --peer-python"
            )
    return absent


def _has_module(python: str | None, module: str) -> bool:
    """Whether an interpreter has a module."""
    if python is None:
        return False
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def measure(workload: Workload, size: str, peer_python: str | None = None) -> dict[str, Measured | Failed]:
    """Return what each side took, or why it could not be timed; peers that are not installed are left out."""
    absent = absent_peers(workload, peer_python)
    workload = replace(workload, sides={name: side for name, side in workload.sides.items() if name not in absent})
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as made:
        folder = Path(made)
        try:
            _prepare(workload, size, folder)
        except SideError as error:
            return dict.fromkeys(workload.sides, Failed(f"no data: {error}"))
        results = _calls(workload, size, folder, peer_python) | _commands(workload, folder)
    return {name: results[name] for name in workload.sides}


def _prepare(workload: Workload, size: str, folder: Path) -> None:
    """Make the data in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.side", workload.name, size, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SideError(_last_line(done.stderr))


def _calls(workload: Workload, size: str, folder: Path, peer_python: str | None) -> dict[str, Measured | Failed]:
    """Sides timed hot: all processes are started first, and in every round each makes one call."""
    results: dict[str, Measured | Failed] = {}
    running: dict[str, _Serving] = {}
    try:
        for name, side in workload.sides.items():
            if isinstance(side, Call):
                command = [sys.executable, "-m", "benchmarks.side", workload.name, size, str(folder), name]
                running[name] = _Serving(command, name, folder)
            elif isinstance(side, Peer) and peer_python is not None:
                running[name] = _Serving(
                    [peer_python, "-m", "benchmarks.pinned_peers", name, str(folder)], name, folder
                )
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in running}
        for step in range(1 + REPEATS):
            for name in [name for name in running if name not in results]:
                try:
                    answer = running[name].ask("run")
                except SideError as error:
                    results[name] = Failed(str(error))
                    continue
                if step:
                    runs[name].append(answer)
        for name in [name for name in running if name not in results]:
            try:
                figure = running[name].ask("figure")["figure"]
                results[name] = _best(runs[name], figure)
            except SideError as error:
                results[name] = Failed(str(error))
    finally:
        for serving in running.values():
            serving.close()
    return results


class _Serving:
    """A side's process, answering requests."""

    def __init__(self, command: list[str], name: str, folder: Path) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.ready = False

    def ask(self, request: str) -> dict[str, Any]:
        """Return the answer to a request; the first waits until the side is set up."""
        if not self.ready:
            self._line()
            self.ready = True
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise SideError(self._said()) from None
        answer: dict[str, Any] = json.loads(self._line())
        return answer

    def close(self) -> None:
        """End the process by closing its input."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _line(self) -> str:
        """The next line of answers."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise SideError(self._said())
        return line

    def _said(self) -> str:
        """The last thing the process wrote."""
        return _last_line(self.log.read_text(errors="replace"))


def _commands(workload: Workload, folder: Path) -> dict[str, Measured | Failed]:
    """Sides timed cold: a fresh process each time, taking turns."""
    sides = {name: side for name, side in workload.sides.items() if isinstance(side, Command)}
    results: dict[str, Measured | Failed] = {}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    for step in range(1 + REPEATS):
        for name, side in sides.items():
            if name in results or (step == 0 and not side.warm_up):
                continue
            try:
                run = _run(side, folder)
            except SideError as error:
                results[name] = Failed(str(error))
                continue
            if step:
                runs[name].append(run)
    return results | {name: _best(runs[name]) for name in sides if name not in results}


def _run(side: Command, folder: Path) -> dict[str, Any]:
    """Seconds by the clock and of all cores, and peak memory, of one command."""
    command = [sys.executable, *side.arguments(folder)]
    environment = {**os.environ, **side.environment(folder)}
    # an installed package has its bytecode; without it half of a short command is parsing of libraries
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile("w+") as log:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            log.seek(0)
            raise SideError(_last_line(log.read()))
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak": peak_bytes(usage)}


def _best(runs: list[dict[str, Any]], figure: float | None = None) -> Measured:
    """The best of a side's times, and its largest peak."""
    times = tuple(run["seconds"] for run in runs)
    return Measured(min(times), min(run["cpu"] for run in runs), times, max(run["peak"] for run in runs), figure)


def _last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "the process ended without a word"
