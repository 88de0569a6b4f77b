"""Majority vote of 1M grades, five to an item, against crowd-kit.

Both begin with the same pandas frame of task, worker and label. Crowd-kit always computes worker skills as well; our
quality is computed when it is asked for, and here it is not. The accuracies differ by the rule for tied votes only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .data import accuracy, write_grades
from .workload import Call, Size, Workload, faster


def _prepare(folder: Path, size: Size) -> None:
    write_grades(folder, **size)


def _from_frame(folder: Path, size: Size) -> Callable[[], Any]:
    import pandas as pd

    from crowdrank import Grades
    from crowdrank.aggregators import MajorityVote

    frame = pd.read_parquet(folder / "grades.parquet")
    return lambda: MajorityVote().fit(Grades.from_frame(frame))


def _built(folder: Path, size: Size) -> Callable[[], Any]:
    import pandas as pd

    from crowdrank import Grades
    from crowdrank.aggregators import MajorityVote

    grades = Grades.from_frame(pd.read_parquet(folder / "grades.parquet"))
    return lambda: MajorityVote().fit(grades)


def _crowd_kit(folder: Path, size: Size) -> Callable[[], Any]:
    import pandas as pd
    from crowdkit.aggregation import MajorityVote

    frame = pd.read_parquet(folder / "grades.parquet")
    return lambda: MajorityVote().fit(frame)


def _our_accuracy(consensus: Any, folder: Path) -> float:
    return accuracy(consensus.items.ids, consensus.scores, folder)


def _their_accuracy(fitted: Any, folder: Path) -> float:
    return accuracy(fitted.labels_.index.to_numpy(), fitted.labels_.to_numpy(), folder)


WORKLOAD = Workload(
    name="majority_vote",
    what="Majority vote, {n_rows:,} grades, five to an item",
    sizes={"tiny": {"n_rows": 2_000}, "small": {"n_rows": 100_000}, "full": {"n_rows": 1_000_000}},
    prepare=_prepare,
    sides={
        "frame": Call("crowdrank, from the pandas frame", _from_frame, _our_accuracy),
        "built": Call("crowdrank, from Grades", _built, _our_accuracy),
        "crowd_kit": Call("crowd-kit, from the pandas frame", _crowd_kit, _their_accuracy),
    },
    floors=(faster("frame", "crowd_kit", 3), faster("built", "crowd_kit", 20)),
    figure="accuracy",
    needs=("crowdkit", "pandas", "pyarrow"),
)
