"""Importing the package and asking the command for help, against importing numpy and polars; whole processes."""

from __future__ import annotations

from pathlib import Path

from .workload import Command, Size, Workload, at_most_times


def _nothing(folder: Path, size: Size) -> None:
    """Importing needs no data."""


def _python(statement: str, title: str) -> Command:
    """A process that runs one statement."""
    return Command(title, lambda folder: ["-c", statement])


ONE_SIZE: dict[str, dict[str, int]] = {"tiny": {}, "small": {}, "full": {}}

WORKLOAD = Workload(
    name="imports",
    what="Importing, whole processes",
    sizes=ONE_SIZE,
    prepare=_nothing,
    sides={
        "libraries": _python("import numpy, polars", "import numpy, polars"),
        "package": _python("import crowdrank", "import crowdrank"),
        "names": _python("from crowdrank import Preferences, aggregate", "the same, Preferences and aggregate used"),
        "help": Command("crowdrank --help", lambda folder: ["-m", "crowdrank", "--help"]),
    },
    floors=(
        at_most_times("package", "libraries", 1.3),
        at_most_times("help", "libraries", 2.0),
        at_most_times("names", "libraries", None),
    ),
)
