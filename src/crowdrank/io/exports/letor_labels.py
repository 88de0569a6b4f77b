"""LETOR and svmlight files as judgments: the label in front of each line is a grade by nobody in particular."""

from __future__ import annotations

import polars as pl

from ..letor import groups_beside, letor_of
from ..read_options import ReadOptions
from ..sources import Source
from .imported import Collector, Imported


def read(source: Source, options: ReadOptions) -> Imported:
    """Return a grade for each line."""
    rows = Collector(source, options, unit="line")
    features = letor_of(source, None if source.path is None else groups_beside(source.path))
    rows.n_read = len(features)
    rows.add_frame(features.items.frame().with_columns(grade=pl.Series(features.grade)))
    rows.roles |= {"query": "qid"} if not features.items.single else {}
    rows.roles |= {"item": "docid", "grade": "label"}
    return rows.finish("grade", title="LETOR labels (label, qid, numbered features)")
