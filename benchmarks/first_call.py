"""The command ``crowdrank aggregate`` on 100 rows: the first time ever, and later; every method of the registry.

The first time nothing is compiled yet: numba's cache is an empty folder. Later it is filled, and the command is held
against importing the libraries that the method loads, in a process of their own. The command names bad annotators, so
that the method's fit and its annotator quality both count as the method.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from crowdrank.registry import names

from .data import SEED
from .imports import ONE_SIZE, READY
from .workload import Command, Size, Workload, at_most_times

LIBRARIES = (
    "numpy",
    "polars",
    "numba",
    "scipy",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
    "sklearn",
    "lightgbm",
    "torch",
)
"""What a method may need; matplotlib, typer and the like are never a method's own need."""

FIRST_TIMES, LATER_TIMES = 8.0, 1.33
"""Of the time that the libraries take, which depends on the machine as the command does: .7 s where 6 s are allowed."""

_LOADED = """
import json, sys
from crowdrank import read_judgments
from crowdrank.registry import make
make("aggregator", {method!r}).fit(read_judgments({votes!r})).quality
print(json.dumps([name for name in {libraries!r} if name in sys.modules]))
"""


def _prepare(method: str) -> Callable[[Path, Size], None]:
    """What writes 100 judgments of a kind that the method takes, and the list of libraries that it loads."""

    def prepare(folder: Path, size: Size) -> None:
        import polars as pl

        from crowdrank import simulate
        from crowdrank.registry import card

        kind = card("aggregator", method).kinds[0]
        # 100 rows each: 20 items of 5 grades, or 10 preferences an item (two to a row), or 5 rankings of 20 items
        noise, per_item = {
            "grade": ("normal(0.8,0.1)", 5),
            "preference": ("flip(0.2)", 10),
            "ranking": ("swap(20)", 5),
        }[kind]
        truth = {"item": [f"i{number:02d}" for number in range(20)], "grade": [number % 5 for number in range(20)]}
        drawn = simulate.simulate(truth, annotators=10, noise=noise, kind=kind, per_item=per_item, seed=SEED)
        table: pl.DataFrame = drawn.judgments.frame()
        table.write_csv(folder / "votes.csv")
        code = _LOADED.format(method=method, votes=str(folder / "votes.csv"), libraries=LIBRARIES)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        (folder / "libraries.json").write_text(done.stdout.splitlines()[-1])

    return prepare


def _import_libraries(folder: Path) -> list[str]:
    """The command that imports what the method needs."""
    libraries = json.loads((folder / "libraries.json").read_text())
    return ["-c", f"import {', '.join(libraries)}" + (f"; {READY}" if "numba" in libraries else "")]


def _aggregate(method: str) -> Callable[[Path], list[str]]:
    """The whole command."""
    return lambda folder: ["-m", "crowdrank", "aggregate", str(folder / "votes.csv"), "--method", method]


def _empty_cache(folder: Path) -> dict[str, str]:
    """A new cache of compiled code for each run."""
    return {"NUMBA_CACHE_DIR": tempfile.mkdtemp(dir=folder)}


def _filled_cache(folder: Path) -> dict[str, str]:
    """One cache for all runs, filled by the one that does not count."""
    return {"NUMBA_CACHE_DIR": str(folder / "cache")}


def _workload(method: str) -> Workload:
    """The workload of one method."""
    return Workload(
        name=f"first_call/{method}",
        what=f"crowdrank aggregate --method {method}, 100 rows, whole command",
        sizes=ONE_SIZE,
        prepare=_prepare(method),
        sides={
            "first": Command("nothing compiled yet", _aggregate(method), _empty_cache, warm_up=False),
            "later": Command("later", _aggregate(method), _filled_cache),
            "libraries": Command("importing what fit and quality load", _import_libraries, _filled_cache),
        },
        floors=(at_most_times("first", "libraries", FIRST_TIMES), at_most_times("later", "libraries", LATER_TIMES)),
    )


WORKLOADS = tuple(_workload(method) for method in names("aggregator"))
