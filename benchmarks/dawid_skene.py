"""Dawid-Skene on 1M grades against crowd-kit, both to a tolerance of 1e-5; and how our time and memory grow to 10M."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import write_grades
from .grade_models import against_crowd_kit
from .workload import Call, Size, Workload, at_most_times, peak_under

TOLERANCE = 1e-5

WORKLOAD = against_crowd_kit(
    "dawid_skene",
    "Dawid-Skene",
    ("dawid_skene", {"tol": TOLERANCE}),
    ("DawidSkene", {"tol": TOLERANCE, "n_iter": 1000}),
    times=40,
    lower_by=0.0,
    frame_times=15,
)


def _prepare(folder: Path, size: Size) -> None:
    for name, n_rows in size.items():
        (folder / name).mkdir()
        write_grades(folder / name, n_rows=n_rows)


def _fit(name: str) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of a fit to one of the two tables."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        from crowdrank import read_judgments
        from crowdrank.registry import make

        grades = read_judgments(folder / name / "grades.parquet")
        aggregator = make("aggregator", "dawid_skene", {"tol": TOLERANCE})
        return lambda: aggregator.fit(grades)

    return setup


GROWTH = Workload(
    name="dawid_skene/growth",
    what="Dawid-Skene, {n_few:,} and {n_many:,} grades, 200 annotators, 5 grades",
    sizes={
        "tiny": {"n_few": 1_000, "n_many": 10_000},
        "small": {"n_few": 50_000, "n_many": 500_000},
        "full": {"n_few": 1_000_000, "n_many": 10_000_000},
    },
    prepare=_prepare,
    sides={"many": Call("the larger table", _fit("n_many")), "few": Call("the smaller table", _fit("n_few"))},
    floors=(at_most_times("many", "few", 11), peak_under("many", 1.5)),
)
