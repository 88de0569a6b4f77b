"""Accuracies of annotators that are known beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from ..errors import JudgmentError, ParameterError
from ..protocols import Floats
from .frames import to_frame
from .grades import Grades


def given_accuracies(accuracies: Any, grades: Grades) -> Floats:
    """Return the accuracy of each annotator as given, (n_annotators,), NaN for those not named.

    ``accuracies`` maps annotators to numbers between 0 and 1, or is a table of annotator and accuracy; annotators in it
    who gave no grade are passed over.
    """
    if not grades.n_annotators:
        raise JudgmentError("accuracies= names annotators and the grades do not; leave it out, or add the column")
    if isinstance(accuracies, Mapping) and all(np.ndim(value) == 0 for value in accuracies.values()):
        accuracies = {"annotator": list(accuracies), "accuracy": list(accuracies.values())}
    frame = to_frame(accuracies)
    if not {"annotator", "accuracy"} <= set(frame.columns):
        raise JudgmentError("accuracies= has no columns annotator and accuracy; give both, or a dict of accuracies")
    values = frame["accuracy"].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(wrong):
        who, value = frame["annotator"][int(wrong[0])], frame["accuracy"][int(wrong[0])]
        raise ParameterError(f"accuracies= gives annotator {who!r} {value!r}, which is not between 0 and 1; correct it")
    code = grades.annotators.codes(frame["annotator"])
    given = np.full(grades.n_annotators, np.nan)
    given[code[code >= 0]] = values[code >= 0]
    return given
