"""The report of 1M preferences over 1,000 items by 500 annotators: seconds beyond the fit, and size of the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import write_preferences
from .workload import Call, Floor, Size, Workload, seconds_beyond

MOST_MEGABYTES = 3.0


def _prepare(folder: Path, size: Size) -> None:
    write_preferences(folder, **size)


def _setup(*, report: bool) -> Callable[[Path, Size], Callable[[], Any]]:
    """What fits the preferences, and writes the report where that is asked for; nothing is kept from call to call."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        import warnings

        import crowdrank as cr

        # annotators of this many preferences judge a pair twice
        warnings.simplefilter("ignore")
        preferences = cr.read_judgments(folder / "preferences.parquet")
        target = folder / "report.html"

        def call() -> Any:
            consensus = cr.aggregate(preferences, "bradley_terry")
            if report:
                cr.report.write(consensus, preferences, target)
            return target

        return call

    return setup


def _megabytes(target: Any, folder: Path) -> float:
    """Size of the file."""
    return Path(target).stat().st_size / 1e6 if Path(target).exists() else 0.0


WORKLOAD = Workload(
    name="html_report",
    what="report of {n_rows:,} preferences, {n_items:,} items, {n_annotators:,} annotators",
    sizes={
        "tiny": {"n_items": 20, "n_rows": 1_000, "n_annotators": 5},
        "small": {"n_items": 300, "n_rows": 100_000, "n_annotators": 50},
        "full": {"n_items": 1_000, "n_rows": 1_000_000, "n_annotators": 500},
    },
    prepare=_prepare,
    sides={
        "fit": Call("fit alone", _setup(report=False)),
        "report": Call("fit and report", _setup(report=True), _megabytes),
    },
    floors=(
        seconds_beyond("report", "fit", 15),
        Floor(
            "report in megabytes", lambda sides: sides["report"].figure or 0.0, MOST_MEGABYTES, False, "MB", ("report",)
        ),
    ),
    figure="megabytes",
)
