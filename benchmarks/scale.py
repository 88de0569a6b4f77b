"""Packing, streaming and Dask at 10, 50 and 200 million judgments: ``python -m benchmarks.scale [--rows 10000000]``.

Each step runs in a process of its own, which says what it took by the clock, by all cores and at its peak of memory.
Whole commands have floors relative to polars' own read and group-by (``--steps
polars,polars_grades,command,auto,mean_grade,dawid_skene,auto_grades``), and the run fails where one is not met.
``--model`` prints the sizing table: a projection from the cost of one pass, measured at ``--rows``. ``--docs`` puts the
table into docs/evidence/scale.md. The step ``kills`` kills a worker in each of ten rounds over 64 parts and compares
the bits.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

SEED = 0
PIECE_ROWS = 5_000_000
PER_ITEM, ITEMS_PER_QUERY, N_ANNOTATORS, N_LEVELS = 3, 19, 10_000, 5
ARENA_ITEMS, ARENA_ANNOTATORS = 500, 20_000
PEER_ROWS, PEER_PASSES = 1_000_000, 3
"""Grades and passes of crowd-kit's Dawid-Skene, the peer."""

KILL_ROUNDS, KILL_PARTS = 10, 64
DOCS = Path(__file__).parent.parent / "docs" / "evidence" / "scale.md"
PASSES = 60
"""Passes that an iterative fit usually needs."""

SIZES = (10**7, 10**8, 10**9)
WORKERS = (1, 2, 8, 64, 256, 1000)
FEW_TASKS, MANY_TASKS = 4, 36
"""Tasks of the two passes that the overhead of one is measured by."""

ROWS_PER_TASK = 4_000_000


def main() -> int:
    """Run the steps that were asked for, and print a row for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="judgments; 10, 50 and 200 million are usual")
    parser.add_argument("--folder", type=Path, help="where files are kept; a temporary folder by default")
    parser.add_argument("--steps", default="polars,command,pack,pack_arena,memory,streamed,dask", help="by comma")
    parser.add_argument("--model", action="store_true", help="print the sizing table instead")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/evidence/scale.md too")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        print(json.dumps(_run_step(asked.step, asked.folder, asked.rows)))
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        steps = ["pack", "streamed", "overhead"] if asked.model else asked.steps.split(",")
        asked.load = os.getloadavg()[0]
        print(f"{asked.rows:,} judgments, {os.cpu_count()} cores, load {asked.load:.1f}", file=sys.stderr)
        found: dict[str, dict[str, Any]] = {}
        for step in steps:
            found[step] = _measure(step, folder, asked.rows)
            print(_row(step, found[step]), file=sys.stderr, flush=True)
            if not asked.model and asked.docs:
                _note(asked, _table(found, former_rows(f"{asked.rows}")))
    table = _table(found, [])
    if asked.model:
        overhead = Overhead(*(found["overhead"][name] for name in Overhead._fields))
        table = f"{overhead.sentence()}\n\n{sizing_table(found['streamed']['each'] / asked.rows, overhead)}"
        if asked.docs:
            _note(asked, table)
    print(table)
    # at fewer rows starting a command is most of its time
    short = short_of(found) if asked.rows >= FLOOR_ROWS else []
    print("\n".join(short), file=sys.stderr)
    return int(bool(short))


def _note(asked: argparse.Namespace, table: str) -> None:
    """Put a table into the page with its size and the load of the machine."""
    load = f"{os.cpu_count()} cores, load {asked.load:.1f} at the start"
    if asked.model:
        words = "Time of sixty passes of Dawid-Skene by judgments and workers, **projected** from a streamed pass over"
        write_docs("model", f"{words} {asked.rows:,} grades and the overhead of Dask ({load}). {table}")
    else:
        write_docs(f"{asked.rows}", f"{asked.rows:,} judgments, ids as text ({load}):\n\n{table}")


def _table(found: dict[str, dict[str, Any]], former: list[str]) -> str:
    """All steps done so far, and rows of steps that another run did."""
    kept = [line for line in former if line.split()[1] not in found]
    return "\n".join([_HEAD, *kept, *(_row(step, row) for step, row in found.items())])


def former_rows(name: str) -> list[str]:
    """Return the rows of the table that stands in docs/evidence/scale.md."""
    page = DOCS.read_text()
    section = page.partition(f"<!-- measured: {name} -->")[2].partition(f"<!-- end of {name} -->")[0]
    return [line for line in section.splitlines() if line.startswith("| ") and line.split()[1] in _STEPS]


_HEAD = "| step | seconds | CPU seconds | CPU seconds per pass | peak, GB | passes |\n|---|---|---|---|---|---|"


def _row(step: str, row: dict[str, Any]) -> str:
    """What one step took, as a row of the table."""
    each = row.get("each", row["cpu"] / max(row["passes"], 1))
    told = "" if "told" not in row else f" ({row['told']})"
    peak, passes = row["peak"] / 1e9, row["passes"]
    return f"| {step}{told} | {row['seconds']:.1f} | {row['cpu']:.1f} | {each:.2f} | {peak:.2f} | {passes} |"


def write_docs(name: str, text: str) -> None:
    """Put a table between its marks in docs/evidence/scale.md."""
    page, (begin, end) = DOCS.read_text(), (f"<!-- measured: {name} -->", f"<!-- end of {name} -->")
    if begin not in page:
        raise SystemExit(f"docs/evidence/scale.md has no place for {name}; add {begin} and {end}")
    first, last = page.index(begin) + len(begin), page.index(end)
    DOCS.write_text(f"{page[:first]}\n\n{text}\n\n{page[last:]}")


def _measure(step: str, folder: Path, rows: int) -> dict[str, Any]:
    """One step in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.scale", "--step", step, "--folder", str(folder), "--rows", str(rows)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{step} failed: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _run_step(step: str, folder: Path, rows: int) -> dict[str, Any]:
    """What one step took."""
    work, passes = _STEPS[step](folder, rows)
    before, begun = _cpu(), time.perf_counter()
    told = work()
    seconds, cpu = time.perf_counter() - begun, _cpu() - before
    # a command is a process of its own; this one may have written the file that it reads
    whose = (resource.RUSAGE_CHILDREN,) if step in _COMMANDS else (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    peak = max(resource.getrusage(who).ru_maxrss for who in whose)
    found = {"seconds": seconds, "cpu": cpu, "peak": peak * 1024, "passes": passes}
    return found | (told if isinstance(told, dict) else {"told": told} if isinstance(told, str) else {})


def _cpu() -> float:
    """CPU seconds of this process and of those it started."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def write_grades(path: Path, rows: int) -> None:
    """Write grades of items within queries, with ids as text."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(SEED)
    n_queries = rows // (PER_ITEM * ITEMS_PER_QUERY) + 1
    noise = rng.uniform(0.2, 1.5, N_ANNOTATORS)
    worth = rng.normal(2.0, 1.0, n_queries * ITEMS_PER_QUERY)

    def some(rng: Any, n: int) -> Any:
        query, item = rng.integers(0, n_queries, n), rng.integers(0, ITEMS_PER_QUERY, n)
        annotator = rng.integers(0, N_ANNOTATORS, n)
        found = worth[query * ITEMS_PER_QUERY + item] + rng.normal(size=n) * noise[annotator]
        grade = np.clip(np.round(found), 0, N_LEVELS - 1).astype(np.int8)
        columns = {"query": query, "item": item, "annotator": annotator, "grade": grade}
        return _with_text_ids(pl.DataFrame(columns), ("query", "item", "annotator"))

    _write_pieces(path, rows, some)


def write_arena(path: Path, rows: int) -> None:
    """Write preferences between items of one query, with ids as text."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(SEED)
    score, quality = rng.normal(size=ARENA_ITEMS), rng.uniform(0.6, 1.0, ARENA_ANNOTATORS)

    def some(rng: Any, n: int) -> Any:
        left = rng.integers(0, ARENA_ITEMS, n)
        right = (left + rng.integers(1, ARENA_ITEMS, n)) % ARENA_ITEMS
        annotator = rng.integers(0, ARENA_ANNOTATORS, n)
        won = rng.random(n) < 1.0 / (1.0 + np.exp(score[right] - score[left]))
        won ^= rng.random(n) > quality[annotator]
        columns = {"left": left, "right": right, "annotator": annotator, "winner": np.where(won, "left", "right")}
        return _with_text_ids(pl.DataFrame(columns), ("left", "right", "annotator"))

    _write_pieces(path, rows, some)


def _write_pieces(path: Path, rows: int, some: Any) -> None:
    """Write rows drawn a piece at a time as one file, without holding all of them."""
    import numpy as np
    import polars as pl

    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        pieces = []
        for number, begin in enumerate(range(0, rows, PIECE_ROWS)):
            pieces.append(Path(scratch) / f"{number:04d}.parquet")
            some(np.random.default_rng([SEED, number]), min(PIECE_ROWS, rows - begin)).write_parquet(pieces[-1])
        pl.scan_parquet(pieces).sink_parquet(Path(scratch) / "whole.parquet")
        (Path(scratch) / "whole.parquet").replace(path)


def _with_text_ids(frame: Any, names: tuple[str, ...]) -> Any:
    """The table with numbers as ids such as ``query-17``; both sides of a preference are items."""
    import polars as pl

    word = {"left": "item", "right": "item"}
    return frame.with_columns(pl.format(f"{word.get(name, name)}-{{}}", name).alias(name) for name in names)


def _grades(folder: Path, rows: int) -> Path:
    path = folder / f"grades-{rows}.parquet"
    if not path.exists():
        write_grades(path, rows)
    return path


def _arena(folder: Path, rows: int) -> Path:
    path = folder / f"arena-{rows}.parquet"
    if not path.exists():
        write_arena(path, rows)
    return path


def _polars(folder: Path, rows: int) -> tuple[Any, int]:
    """Polars reads the preferences and groups them by left, right and winner."""
    path = _arena(folder, rows)
    code = f"import polars as pl; pl.read_parquet({str(path)!r}).group_by('left', 'right', 'winner').len()"
    return lambda: subprocess.run([sys.executable, "-c", code], check=True), 1


def _polars_grades(folder: Path, rows: int) -> tuple[Any, int]:
    """Polars reads the grades and averages those of each item."""
    path = _grades(folder, rows)
    code = f"import polars as pl; pl.read_parquet({str(path)!r}).group_by('query', 'item').agg(pl.col('grade').mean())"
    return lambda: subprocess.run([sys.executable, "-c", code], check=True), 1


def _command(method: str, file: Any) -> Any:
    """The whole command by a method, from the file that polars reads to a ranking, annotators judged."""

    def step(folder: Path, rows: int) -> tuple[Any, int]:
        words = ["aggregate", str(file(folder, rows)), "--method", method, "--out", str(folder / "ranks.csv")]
        whole = [sys.executable, "-m", "crowdrank", *words]
        return lambda: subprocess.run(whole, check=True, capture_output=True), 1

    return step


FLOOR_ROWS = 10_000_000
MOST_TIMES = {
    "command": ("polars", 3.0),
    "auto": ("polars", 8.0),
    "mean_grade": ("polars_grades", 4.0),
    "dawid_skene": ("polars_grades", 8.0),
    "auto_grades": ("polars_grades", 8.0),
}
"""Floors of whole commands: at most so many times what polars takes for its own read and group-by in the same run."""


def short_of(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return a line for each whole command that takes more than its floor allows."""
    lines = []
    for step, (peer, most) in MOST_TIMES.items():
        if step in found and peer in found:
            times = found[step]["seconds"] / found[peer]["seconds"]
            if times > most:
                lines.append(f"SHORT OF its floor: {step} takes {times:.1f} times {peer}, at most {most:g} are allowed")
    return lines


def _pack(folder: Path, rows: int) -> tuple[Any, int]:
    """Grades into parts by query."""
    path = _grades(folder, rows)
    words = [sys.executable, "-m", "crowdrank", "pack", str(path), "--out", str(folder / f"packed-{rows}")]
    return lambda: subprocess.run(words, check=True, capture_output=True), 1


def _pack_arena(folder: Path, rows: int) -> tuple[Any, int]:
    """Preferences of one query into parts by annotator."""
    path = _arena(folder, rows)
    out = ["--out", str(folder / f"packed-arena-{rows}"), "--by", "annotator"]
    words = [sys.executable, "-m", "crowdrank", "pack", str(path), *out]
    return lambda: subprocess.run(words, check=True, capture_output=True), 1


def _dawid_skene(how: dict[str, Any]) -> Any:
    """Ten iterations of Dawid-Skene over packed grades; the cost of a pass is the median of those after the third."""

    def step(folder: Path, rows: int) -> tuple[Any, int]:
        import statistics
        import warnings

        import crowdrank as cr

        warnings.simplefilter("ignore")
        packed = cr.scan_judgments(folder / f"packed-{rows}")
        params = {"max_iter": 10, "tol": 1e-30, "calibrated": False}
        begun: dict[str, tuple[float, float]] = {}

        def progress(done: int, total: int, what: str) -> None:
            begun.setdefault(what.partition(",")[0], (_cpu(), time.perf_counter()))

        def work() -> dict[str, Any]:
            cr.aggregate(packed, "dawid_skene", params=params, progress=progress, **how)
            marks = list(begun.values())[3:12]
            each = [statistics.median(b[k] - a[k] for a, b in itertools.pairwise(marks)) for k in (0, 1)]
            return {"each": each[0], "told": f"{each[1]:.2f} s by the clock a pass"}

        return work, 10

    return step


def _crowd_kit(folder: Path, rows: int) -> tuple[Any, int]:
    """Dawid-Skene of crowd-kit, on a million grades at most."""
    import pandas as pd
    import polars as pl
    from crowdkit.aggregation import DawidSkene

    frame = pl.read_parquet(_grades(folder, min(rows, PEER_ROWS)))
    task = (frame["query"] + "/" + frame["item"]).to_list()
    table = pd.DataFrame({"task": task, "worker": frame["annotator"].to_list(), "label": frame["grade"].to_list()})

    def work() -> str:
        DawidSkene(n_iter=PEER_PASSES, tol=0.0).fit(table)
        return f"{len(table):,} grades"

    return work, PEER_PASSES


class Overhead(NamedTuple):
    """Seconds that a pass on Dask, each of its tasks, and each sum of two sets of statistics take beside the work."""

    per_pass: float
    per_task: float
    per_merge: float

    def sentence(self) -> str:
        """Return the overhead in words."""
        return (
            f"Dask with two workers on this machine took {1000 * self.per_pass:.0f} ms for a pass, "
            f"{1000 * self.per_task:.0f} ms more for each task that returns "
            f"{N_ANNOTATORS * N_LEVELS**2 * 8 / 1e6:.0f} MB of statistics, and {1000 * self.per_merge:.1f} ms to add "
            "two of them."
        )


def zero_statistics(part: Any, state: Any) -> tuple[Any, Any]:
    """Zeros, as large as the statistics of Dawid-Skene."""
    import numpy as np

    return (np.zeros(N_ANNOTATORS * N_LEVELS**2),), None


def seconds_of_passes(blocks: Any) -> list[float]:
    """Return the seconds of some passes over nothing."""
    seconds = []
    for _ in range(8):
        begun = time.perf_counter()
        blocks.total(zero_statistics)
        seconds.append(time.perf_counter() - begun)
    return seconds


@dataclasses.dataclass(frozen=True)
class EmptyParts:
    """So many parts that hold nothing."""

    n_parts: int

    def part(self, number: int) -> None:
        """Return nothing."""


def _overhead(folder: Path, rows: int) -> tuple[Any, int]:
    """Passes over nothing on two workers, with few and with many tasks; the median of those after the second."""
    import statistics

    import numpy as np

    from crowdrank.cluster.dask_executor import Dask, dask_client
    from crowdrank.protocols import BlockFit

    empty = BlockFit(lambda part: None, seconds_of_passes)

    def work() -> dict[str, Any]:
        with dask_client("local:2") as client:
            few, many = (
                statistics.median(Dask(client, block=1).run(empty, EmptyParts(n))[2:]) for n in (FEW_TASKS, MANY_TASKS)
            )
        one = np.zeros(N_ANNOTATORS * N_LEVELS**2)
        begun = time.perf_counter()
        for _ in range(100):
            one + one
        merge = (time.perf_counter() - begun) / 100
        task = max((many - few) / (MANY_TASKS - FEW_TASKS) - merge, 0.0)
        found = Overhead(max(few - FEW_TASKS * (task + merge), 0.0), task, merge)
        return {**found._asdict(), "told": found.sentence().removeprefix("Dask with two workers on this machine ")}

    return work, 16


def _kills(folder: Path, rows: int) -> tuple[Any, int]:
    """A fit over 64 parts in each of ten rounds, a worker killed at a random moment of each."""
    import random
    import signal
    import threading
    import warnings

    import polars as pl

    import crowdrank as cr
    from crowdrank.api import in_parts
    from crowdrank.cluster.dask_executor import dask_client
    from crowdrank.cluster.packing import pack_judgments

    warnings.simplefilter("ignore")
    grades = cr.Grades.from_frame(pl.read_parquet(_grades(folder, min(rows, PEER_ROWS))).head(PEER_ROWS // 2))
    packed = pack_judgments([grades], folder / "packed-kills", part_rows=len(grades) // KILL_PARTS)
    in_parts.MANY_ROWS = 1000
    how: dict[str, Any] = {"method": "dawid_skene", "params": {"max_iter": 6, "tol": 1e-30}}
    whole, draw = cr.aggregate(packed, stream=False, **how), random.Random(SEED)

    def work() -> str:
        equal = 0
        with dask_client("local:2") as client:
            for _ in range(KILL_ROUNDS):
                client.wait_for_workers(2, timeout=60)
                victim = draw.choice(list(client.run(os.getpid).values()))
                killer = threading.Timer(draw.uniform(0.2, 2.0), os.kill, (victim, signal.SIGKILL))
                killer.start()
                found = cr.aggregate(packed, cluster=client, **how)
                killer.join()
                equal += bool((found.scores == whole.scores).all())
        return f"{packed.n_parts} parts, {equal} of {KILL_ROUNDS} rounds equal"

    return work, 6 * KILL_ROUNDS


_COMMANDS = ("polars", "polars_grades", *MOST_TIMES, "pack", "pack_arena")
"""Steps that run in a further process."""

_STEPS: dict[str, Any] = {
    "polars": _polars,
    "polars_grades": _polars_grades,
    "command": _command("bradley_terry", _arena),
    "auto": _command("auto", _arena),
    "mean_grade": _command("mean_grade", _grades),
    "dawid_skene": _command("dawid_skene", _grades),
    "auto_grades": _command("auto", _grades),
    "pack": _pack,
    "pack_arena": _pack_arena,
    "memory": _dawid_skene({"stream": False}),
    "streamed": _dawid_skene({"stream": True}),
    "dask": _dawid_skene({"cluster": "local:2"}),
    "crowd_kit": _crowd_kit,
    "kills": _kills,
    "overhead": _overhead,
}


def sizing_table(seconds_per_row: float, overhead: Overhead) -> str:
    """Return hours of sixty passes by judgments and workers: a projection, not a measurement.

    A pass costs its CPU seconds shared by the workers, at least one task of four million rows, and on a cluster its
    overhead: that of the pass, of every task (the scheduler and the caller take them one after the other), and of
    adding up all statistics on the caller's side.
    """
    lines = [f"| judgments | {' | '.join(f'{n:,}' for n in WORKERS)} |", "|---" * (len(WORKERS) + 1) + "|"]
    for rows in SIZES:
        cells = []
        for workers in WORKERS:
            tasks = max(rows // ROWS_PER_TASK, 1)
            work = -(-tasks // workers) * seconds_per_row * rows / tasks
            around = overhead.per_pass + tasks * (overhead.per_task + overhead.per_merge)
            cells.append(_duration(PASSES * (work + (around if workers > 1 else 0.0))))
        lines.append(f"| {rows:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


if __name__ == "__main__":
    sys.exit(main())
