"""Annotators without their names."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
import polars as pl

from .index import Index
from .judgments import Judgments, Mixed

AnyJudgments = TypeVar("AnyJudgments", bound=Judgments | Mixed)


def with_pseudonyms(judgments: AnyJudgments) -> AnyJudgments:
    """Return the judgments with annotators called A1, A2, ... in the order of their ids.

    Examples
    --------
    >>> from .judgments import Grades
    >>> rows = [("bob@example.org", "q", "x", 2), ("ann@example.org", "q", "x", 1)]
    >>> with_pseudonyms(Grades.from_rows(rows)).frame()["annotator"].to_list()
    ['A2', 'A1']
    """
    if isinstance(judgments, Mixed):
        return type(judgments)(tuple(with_pseudonyms(part) for part in judgments.parts))
    n = judgments.n_annotators
    names = np.array([f"A{number + 1}" for number in range(n)])
    order = np.argsort(names)
    place = np.empty(n, np.int32)
    place[order] = np.arange(n, dtype=np.int32)
    annotators = Index(pl.Series("id", names[order].tolist(), dtype=pl.String))
    annotator = place[judgments.annotator] if n else judgments.annotator
    group = None if judgments.group is None else judgments.group[order]
    return replace(judgments, annotators=annotators, annotator=annotator, group=group)
