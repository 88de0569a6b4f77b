"""Scores of a method with those that differ only by rounding made equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..protocols import Floats


def settle_ties(method: Any, judgments: Any, scores: Floats, unit: float = 1.0) -> Floats:
    """Return the scores of judged items, equal where they differ by less than the method can tell.

    Everything that compares scores of a consensus compares these, so equal ones share a rank on every machine,
    under every name and in every order of the rows.
    """
    from ..kernels.ties import join_ties

    return join_ties(scores, judgments.items.offsets, score_tolerance(method, judgments, scores, unit))


def score_tolerance(method: Any, judgments: Any, scores: Floats, unit: float = 1.0) -> Floats:
    """Return the largest difference of scores that means nothing, (n_queries,).

    It is what rounding does to numbers as large as those that were added, and the ``precision`` that a method states of
    its scores relative to their range. Where a method has its scores ``in_grades`` they are as large as the grades;
    otherwise they are numbers near ``unit``, which is 1 for log-odds and shares and the user's where scores are known,
    and 0 is 0 up to that.
    """
    from ..kernels.ties import ROUNDING, segment_ranges, segment_sizes

    offsets = judgments.items.offsets
    in_grades = getattr(method, "in_grades", False) and not getattr(judgments, "nominal", False)
    size = np.maximum(segment_sizes(scores, offsets), _grade_sizes(judgments) if in_grades else unit)
    tolerance: Floats = ROUNDING * size
    precision = getattr(method, "precision", 0.0)
    if precision and len(judgments):
        unit = float(np.ptp(judgments.grade)) if in_grades else unit
        tolerance += precision * np.maximum(segment_ranges(scores, offsets), unit)
    return tolerance


def _grade_sizes(grades: Any) -> Floats:
    """Largest size of a grade of each query where grades of both signs may cancel, 0 where none can."""
    sizes = np.zeros(grades.n_queries)
    if len(grades) and grades.grade.min() < 0 < grades.grade.max():
        np.maximum.at(sizes, grades.items.query[grades.item], np.abs(grades.grade))
    return sizes
