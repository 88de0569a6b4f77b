"""Importing the package, asking the command for help and for methods, and a plain aggregate; whole processes."""

from __future__ import annotations

from pathlib import Path

from .workload import Command, Size, Workload, at_most_times


def _write_votes(folder: Path, size: Size) -> None:
    """Write 1,000 preferences of the demo."""
    from crowdrank.demo import FILE

    (folder / "votes.csv").write_text("".join(FILE.read_text().splitlines(keepends=True)[:1001]))


def _aggregate(folder: Path) -> list[str]:
    """A plain aggregate."""
    return ["-m", "crowdrank", "aggregate", str(folder / "votes.csv"), "--across-queries"]


def _python(statement: str, title: str) -> Command:
    """A process that runs one statement."""
    return Command(title, lambda folder: ["-c", statement])


READY = "from numba.core.registry import cpu_target as cpu; cpu.target_context.refresh(); cpu.typing_context.refresh()"
"""What numba loads before the first call of any function, compiled earlier or not."""

ONE_SIZE: dict[str, dict[str, int]] = {"tiny": {}, "small": {}, "full": {}}

WORKLOAD = Workload(
    name="imports",
    what="Importing, whole processes",
    sizes=ONE_SIZE,
    prepare=_write_votes,
    sides={
        "libraries": _python("import numpy, polars", "import numpy, polars"),
        "package": _python("import crowdrank", "import crowdrank"),
        "names": _python("from crowdrank import Preferences, aggregate", "the same, Preferences and aggregate used"),
        "help": Command("crowdrank --help", lambda folder: ["-m", "crowdrank", "--help"]),
        "methods": Command("crowdrank methods", lambda folder: ["-m", "crowdrank", "methods"]),
        "compiler": _python(
            f"import numba, polars, scipy.linalg, scipy.sparse, scipy.special; {READY}",
            "numba ready to call, polars, scipy",
        ),
        "aggregate": Command("crowdrank aggregate, 1,000 preferences", _aggregate),
    },
    floors=(
        at_most_times("package", "libraries", 1.3),
        at_most_times("help", "libraries", 2.0),
        at_most_times("names", "libraries", None),
        at_most_times("methods", "libraries", 1.0),
        at_most_times("aggregate", "compiler", 1.33),
    ),
)
