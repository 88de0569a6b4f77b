"""The process of one side: ``python -m benchmarks.side WORKLOAD SIZE FOLDER [SIDE]``.

Without a side it makes the workload's data and ends. With one it answers each line on standard input with a line of
JSON: ``run`` with the seconds of one call, by the clock and of all cores, and the peak memory so far; ``figure`` with
how good the last result is.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .workload import Call, Workload


def peak_bytes(usage: resource.struct_rusage) -> int:
    """Return the peak memory of a process; Linux counts it in kilobytes, macOS in bytes."""
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(arguments: list[str]) -> None:
    from .table import find

    name, size, folder = arguments[:3]
    workload = find(name)
    if len(arguments) == 3:
        workload.prepare(Path(folder), workload.sizes[size])
    else:
        serve(workload, arguments[3], size, Path(folder))


def serve(workload: Workload, name: str, size: str, folder: Path) -> None:
    """Answer requests to a side."""
    side = workload.sides[name]
    if not isinstance(side, Call):
        raise TypeError(f"{name} is a command, which is timed from outside")
    figure = side.figure
    answer_requests(
        lambda: side.setup(folder, workload.sizes[size]),
        None if figure is None else lambda result: figure(result, folder),
    )


def answer_requests(setup: Callable[[], Callable[[], Any]], figure: Callable[[Any], float] | None) -> None:
    """Answer requests; whatever libraries print goes to standard error, not among the answers."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    call = setup()
    result = None
    answers.write("ready\n")
    answers.flush()
    for request in sys.stdin:
        if request.strip() == "run":
            result = None
            gc.collect()
            begin, busy = time.perf_counter(), time.process_time()
            result = call()
            seconds, cpu = time.perf_counter() - begin, time.process_time() - busy
            peak = peak_bytes(resource.getrusage(resource.RUSAGE_SELF))
            answer: dict[str, float | None] = {"seconds": seconds, "cpu": cpu, "peak": peak}
        else:
            answer = {"figure": None if figure is None else float(figure(result))}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
