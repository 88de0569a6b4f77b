"""Answers as annotators gave them, what is known of the truth, and which answers the consensus calls wrong."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.judgments import Grades, Judgments
from ..data.truth import Truth
from ..errors import JudgmentError
from ..protocols import Bools, Floats, Ints
from .asked import Asked
from .independence import Panel

_TIE = 1
_WITHOUT_TIES = np.array([0, -1, 1, -1], np.int32)
"""Class among two of the classes 0, 1, 2 and -1."""


def panel_of(judgments: Judgments, found: Asked, truth: Truth | None) -> Panel:
    """Return the answers with the classes that the truth tells; two classes where nobody tied."""
    n_things, graded = len(found.first), isinstance(judgments, Grades)
    known = None if truth is None else _known_classes(judgments, found, truth)
    code, n_classes = found.code, found.n_codes
    if not graded and not (code == _TIE).any():
        code, n_classes = code // 2, 2
        known = None if known is None else _WITHOUT_TIES[known]
    return Panel(found.thing, found.annotator, code, n_things, judgments.n_annotators, n_classes, not graded, known)


def wrong_answers(judgments: Judgments, found: Asked, consensus: Consensus, panel: Panel) -> Bools:
    """Return which answers are wrong by the truth, where that is known, or else by the consensus, (n_rows,)."""
    if isinstance(judgments, Grades):
        right = _consensus_classes(judgments, found, consensus) if panel.known is None else panel.known
        wrong: Bools = (right[found.thing] >= 0) & (found.code != right[found.thing])
        return wrong
    if panel.known is None:
        side = np.sign(consensus.scores[found.first] - consensus.scores[found.second])
    else:
        top = panel.n_classes - 1
        side = np.where(panel.known < 0, 0.0, np.sign(2.0 * panel.known - top))
    return np.asarray(side[found.thing] * (found.code - _TIE) < 0)


def _consensus_classes(grades: Grades, found: Asked, consensus: Consensus) -> Ints:
    """Class of each graded item by the consensus: of the level it chose, or else nearest to the mean of its grades."""
    assert found.classes is not None
    given, classes, values = found.classes
    if consensus.grade is not None and consensus.levels == grades.levels:
        of_level = np.full(len(grades.levels), -1, np.int32)
        of_level[np.searchsorted(grades.level_values, given)] = classes
        chosen = consensus.grade[found.first]
        return np.where(chosen < 0, -1, of_level[np.maximum(chosen, 0)]).astype(np.int32)
    number = np.bincount(grades.item, minlength=grades.n_items)
    means = np.bincount(grades.item, grades.grade, grades.n_items) / np.maximum(number, 1)
    return _nearest(values, means[found.first])


def _nearest(values: Floats, wanted: Floats) -> Ints:
    """Place of the nearest of some values, -1 for NaN."""
    from ..kernels.ties import ROUNDING

    # a mean in the middle of two goes to the lower one, whatever its last digit
    middles = 0.5 * (values[1:] + values[:-1]) + ROUNDING * np.abs(values).max(initial=0.0)
    return np.where(np.isnan(wanted), -1, np.searchsorted(middles, wanted)).astype(np.int32)


def _known_classes(judgments: Judgments, found: Asked, truth: Truth) -> Ints:
    """Class of each thing by the truth, -1 where that does not cover it."""
    if isinstance(judgments, Grades):
        known = _known_grades(judgments, found, truth)
    elif truth.form == "pairs":
        known = _known_winners(judgments, found, truth)
    else:
        grade = truth.align(judgments.items)
        gap = grade[found.first] - grade[found.second]
        known = np.where(np.isnan(gap), -1, np.sign(np.where(np.isnan(gap), 0.0, gap)) + 1).astype(np.int32)
    if not (known >= 0).any():
        raise JudgmentError("the truth covers nothing that was judged; give truth of the same queries and items")
    return known


def _known_winners(judgments: Judgments, found: Asked, truth: Truth) -> Ints:
    """The same from winners of pairs."""
    left, right, outcome = truth.align_pairs(judgments.items)
    turned = left > right
    low, high = np.where(turned, right, left).astype(np.int64), np.where(turned, left, right)
    keys = np.append(low * judgments.n_items + high, -1)
    order = np.argsort(keys, kind="stable")
    wanted = found.first.astype(np.int64) * judgments.n_items + found.second
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    winner = np.append(np.where(turned, -outcome, outcome), 0) + 1
    return np.where(keys[place] == wanted, winner[place], -1).astype(np.int32)


def _known_grades(grades: Grades, found: Asked, truth: Truth) -> Ints:
    """The same for grades, by the value of the level, or by its name where the grades are in words."""
    if truth.form == "pairs":
        raise JudgmentError("grades are compared with known grades, not with known winners; give query, item, grade")
    assert found.classes is not None
    given, classes, values = found.classes
    known = truth.align(grades.items)[found.first]
    if grades.declared is not None:
        names = [str(level) for level in grades.levels]
        values_of = dict(zip(names, grades.level_values.tolist(), strict=True))
        told = truth.labels(known).replace_strict(values_of, default=None, return_dtype=pl.Float64)
        known = told.fill_null(float("nan")).to_numpy()
    if not grades.nominal:
        return _nearest(values, known)
    place = np.minimum(np.searchsorted(given, known), len(given) - 1)
    return np.where(given[place] == known, classes[place], -1).astype(np.int32)
