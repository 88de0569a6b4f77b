"""What the workloads of class methods for grades share: the same grades, the registry's method, crowd-kit's twin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .data import accuracy, write_grades
from .workload import Call, Size, Workload, faster, no_lower

ROWS = {"tiny": {"n_rows": 2_000}, "small": {"n_rows": 50_000}, "full": {"n_rows": 1_000_000}}


def against_crowd_kit(
    name: str,
    what: str,
    ours: tuple[str, Mapping[str, Any]],
    peer: tuple[str, Mapping[str, Any]],
    times: float,
    sizes: Mapping[str, Size] = ROWS,
    lower_by: float | None = None,
    frame_times: float | None = None,
) -> Workload:
    """Return the workload of one method.

    ``ours`` and ``peer`` are its name and parameters here and there, ``times`` how much faster it has to be,
    ``frame_times`` how much from a frame, and ``lower_by`` how much less accurate it may be.
    """
    return Workload(
        name=name,
        what=what + ", {n_rows:,} grades, 200 annotators, 5 grades",
        sizes=sizes,
        prepare=lambda folder, size: write_grades(folder, **size),
        sides={
            "built": Call("crowdrank, from Grades", _built(*ours), _our_accuracy),
            "frame": Call("crowdrank, from the pandas frame", _from_frame(*ours), _our_accuracy),
            "crowd_kit": Call(f"crowd-kit {peer[0]}", _crowd_kit(*peer), _their_accuracy),
        },
        floors=(
            faster("built", "crowd_kit", times),
            no_lower("built", "crowd_kit", lower_by),
            faster("frame", "crowd_kit", frame_times),
        ),
        figure="accuracy",
        needs=("crowdkit", "pandas", "pyarrow"),
    )


def _built(method: str, params: Mapping[str, Any]) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of a fit to grades that are coded already."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        from crowdrank import read_judgments
        from crowdrank.registry import make

        grades, aggregator = read_judgments(folder / "grades.parquet"), make("aggregator", method, params)
        return lambda: aggregator.fit(grades)

    return setup


def _from_frame(method: str, params: Mapping[str, Any]) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of a fit to a frame."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        import pandas as pd

        from crowdrank import Grades
        from crowdrank.registry import make

        frame, aggregator = pd.read_parquet(folder / "grades.parquet"), make("aggregator", method, params)
        return lambda: aggregator.fit(Grades.from_frame(frame))

    return setup


def _crowd_kit(method: str, params: Mapping[str, Any]) -> Callable[[Path, Size], Callable[[], Any]]:
    """Setup of crowd-kit's fit to the same frame."""

    def setup(folder: Path, size: Size) -> Callable[[], Any]:
        import crowdkit.aggregation
        import pandas as pd

        frame = pd.read_parquet(folder / "grades.parquet")
        return lambda: getattr(crowdkit.aggregation, method)(**params).fit(frame)

    return setup


def _our_accuracy(consensus: Any, folder: Path) -> float:
    """The score of a class method is the expected grade, so that its most probable one is read off the table."""
    import polars as pl

    table = consensus.frame()
    return accuracy(table["item"], table["grade"].cast(pl.Float64), folder)


def _their_accuracy(fitted: Any, folder: Path) -> float:
    return accuracy(fitted.labels_.index.to_numpy(), fitted.labels_.to_numpy(), folder)
