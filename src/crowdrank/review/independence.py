"""How annotators would answer if they were independent, given the class of a thing; families count as one.

Every thing has a class (its level; or which of two items is better, or neither), and annotator ``a`` gives answer ``y``
to class ``k`` with probability ``confusion[a, k, y]``, estimated together with the classes [DawidSkene79]_.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.judgments import Grades, Judgments
from ..data.truth import Truth
from ..errors import JudgmentError
from ..protocols import Bools, Counts, Floats, Ints
from .coded_judgments import CodedJudgments

ALPHA = 4.0
"""Answers that the crowd's confusion counts for in that of an annotator."""

FEW = 5_000
"""Up to this many answers arrays will do, and no compiled pass is loaded."""

Counter: TypeAlias = Callable[[Floats | None, Floats | None], tuple[Floats, Floats]]

_TOL = 1e-4
_MAX_ITER = 60
_TIE = 1
_WITHOUT_TIES = np.array([0, -1, 1, -1], np.int32)
"""Class among two of the classes 0, 1, 2 and -1."""


@dataclass(frozen=True, eq=False)
class Panel:
    """Answers of annotators to things, by thing and then annotator.

    Parameters
    ----------
    thing, annotator, code
        Thing, annotator and answer of each row, (n_rows,).
    n_things, n_annotators, n_classes
        How many of each there are; answers are the names of classes.
    mirrored
        Whether classes mean the same from the other end, as where two items are compared.
    known
        Class of each thing, (n_things,), or -1; ``None`` where nothing is known.
    """

    thing: Ints
    annotator: Ints
    code: Ints
    n_things: int
    n_annotators: int
    n_classes: int
    mirrored: bool
    known: Ints | None = None

    def keep(self, things: Bools) -> Panel:
        """Return some of the things only, renumbered."""
        number = (np.cumsum(things) - 1).astype(np.int32)
        rows = things[self.thing]
        known = None if self.known is None else self.known[things]
        return Panel(
            number[self.thing[rows]], self.annotator[rows], self.code[rows], int(things.sum()), self.n_annotators,
            self.n_classes, self.mirrored, known,
        )  # fmt: skip


class Expected(NamedTuple):
    """What independent annotators would do.

    ``confusion`` (n_annotators, n_classes, n_classes); ``whole`` (n_things, n_classes) is the log-likelihood of each
    class of a thing, ``parts`` (n_cells, n_classes) what each cell adds to it, and ``cell`` (n_rows,) the cell of a
    row: the answers of one family to one thing.
    """

    confusion: Floats
    whole: Floats
    parts: Floats
    cell: Ints


def expected_classes(panel: Panel, family: Ints) -> Expected:
    """Return the confusions of annotators whose families, (n_annotators,), count as one voice each."""
    cell, sizes = _cells(panel, family)
    weight = None if sizes.max(initial=1) == 1 else 1.0 / sizes[cell]
    confusion, prior = _fit_classes(panel, weight)
    if panel.known is not None:
        certain = np.where(np.arange(panel.n_classes) == panel.known[:, None], 0.0, -np.inf)
        return Expected(confusion, certain, np.zeros((1, panel.n_classes)), np.zeros(len(cell), np.int32))
    voice = np.log(confusion)[panel.annotator, :, panel.code]
    if weight is not None:
        voice *= weight[:, None]
    parts, whole = _sums(voice, cell, len(sizes)), _sums(voice, panel.thing, panel.n_things)
    return Expected(confusion, whole + np.log(prior), parts, cell)


def _cells(panel: Panel, family: Ints) -> tuple[Ints, Counts]:
    """Cell of each row, and the number of rows of each cell."""
    keys = panel.thing.astype(np.int64) * panel.n_annotators + family[panel.annotator]
    if len(np.unique(family)) == panel.n_annotators:
        return np.arange(len(keys), dtype=np.int32), np.ones(len(keys), np.int64)
    _, cell, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    return cell.astype(np.int32), sizes


def _fit_classes(panel: Panel, weight: Floats | None) -> tuple[Floats, Floats]:
    """Confusions and shares of the classes, from the vote shares on."""
    count = _counts(panel, weight) if few_judgments(panel) else _counts_of_many(panel, weight)
    confusion, prior = _learn_confusions(*count(None, None), panel.mirrored)
    for _ in range(_MAX_ITER if panel.known is None else 0):
        before = confusion
        confusion, prior = _learn_confusions(*count(confusion, prior), panel.mirrored)
        if float(np.abs(confusion - before).max(initial=0.0)) <= _TOL:
            break
    return confusion, prior


def few_judgments(panel: Panel) -> bool:
    """Return whether there are so few answers that a compiled pass would take longer to load than to run."""
    return len(panel.thing) <= FEW


def _counts_of_many(panel: Panel, weight: Floats | None) -> Counter:
    """Function that returns expected counts by annotator, class and answer, and of the classes, by compiled passes."""
    from ..kernels.confusion import confusion_pass, pack_grades, vote_pass

    sizes = (panel.n_things, panel.n_annotators, panel.n_classes)
    packed = pack_grades(panel.thing, panel.annotator, panel.code, weight, *sizes)
    known = np.full(panel.n_things, -1, np.int32) if panel.known is None else panel.known

    def count(confusion: Floats | None, prior: Floats | None) -> tuple[Floats, Floats]:
        if confusion is None or prior is None:
            counts = vote_pass(packed, panel.n_annotators, panel.n_classes, known)
        else:
            counts = confusion_pass(packed, confusion, prior, known)
        return counts.counts, counts.shares

    return count


def _counts(panel: Panel, weight: Floats | None) -> Counter:
    """The same by arrays over answers."""
    shape = (panel.n_annotators, panel.n_classes, panel.n_classes)
    cell = panel.annotator.astype(np.int64) * panel.n_classes + panel.code
    amount = np.ones(len(cell)) if weight is None else weight
    certain = np.eye(panel.n_classes)

    def count(confusion: Floats | None, prior: Floats | None) -> tuple[Floats, Floats]:
        if panel.known is not None:
            classes = certain[panel.known]
        elif confusion is None or prior is None:
            votes = _sums(certain[panel.code] * amount[:, None], panel.thing, panel.n_things)
            classes = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1e-300)
        else:
            voice = np.log(confusion)[panel.annotator, :, panel.code] * amount[:, None]
            log = _sums(voice, panel.thing, panel.n_things) + np.log(prior)
            classes = np.exp(log - log.max(axis=1, keepdims=True))
            classes /= classes.sum(axis=1, keepdims=True)
        given = _sums(classes[panel.thing] * amount[:, None], cell, shape[0] * shape[1])
        return given.reshape(shape).transpose(0, 2, 1), classes.sum(axis=0)

    return count


def _learn_confusions(counts: Floats, shares: Floats, mirrored: bool) -> tuple[Floats, Floats]:
    """Confusions drawn towards that of the crowd, and shares of the classes, both from expected counts."""
    if mirrored:
        counts, shares = counts + counts[:, ::-1, ::-1], shares + shares[::-1]
    n_classes = len(shares)
    crowd = counts.sum(axis=0) + 1.0 / n_classes
    crowd /= crowd.sum(axis=1, keepdims=True)
    confusion = (counts + ALPHA * crowd) / (counts.sum(axis=2, keepdims=True) + ALPHA)
    return confusion, (shares + 1.0) / (shares + 1.0).sum()


def _sums(values: Floats, group: Ints | Counts, n: int) -> Floats:
    """Sum of the rows of each group, (n, n_classes)."""
    return np.stack([np.bincount(group, column, n) for column in values.T], axis=1)


def panel_of(judgments: Judgments, coded: CodedJudgments, truth: Truth | None) -> Panel:
    """Return the answers with the classes that the truth tells; two classes where nobody tied."""
    n_things, graded = len(coded.first), isinstance(judgments, Grades)
    known = None if truth is None else _known_classes(judgments, coded, truth)
    code, n_classes = coded.code, coded.n_codes
    if not graded and not (code == _TIE).any():
        code, n_classes = code // 2, 2
        known = None if known is None else _WITHOUT_TIES[known]
    return Panel(coded.thing, coded.annotator, code, n_things, judgments.n_annotators, n_classes, not graded, known)


def wrong_judgments(judgments: Judgments, coded: CodedJudgments, consensus: Consensus, panel: Panel) -> Bools:
    """Return which answers are wrong by the truth, where that is known, or else by the consensus, (n_rows,)."""
    if isinstance(judgments, Grades):
        right = _consensus_classes(judgments, coded, consensus) if panel.known is None else panel.known
        wrong: Bools = (right[coded.thing] >= 0) & (coded.code != right[coded.thing])
        return wrong
    if panel.known is None:
        side = np.sign(consensus.scores[coded.first] - consensus.scores[coded.second])
    else:
        top = panel.n_classes - 1
        side = np.where(panel.known < 0, 0.0, np.sign(2.0 * panel.known - top))
    return np.asarray(side[coded.thing] * (coded.code - _TIE) < 0)


def _consensus_classes(grades: Grades, coded: CodedJudgments, consensus: Consensus) -> Ints:
    """Class of each graded item by the consensus: of the level it chose, or else nearest to the mean of its grades."""
    assert coded.classes is not None
    given, classes, values = coded.classes
    if consensus.grade is not None and consensus.levels == grades.levels:
        of_level = np.full(len(grades.levels), -1, np.int32)
        of_level[np.searchsorted(grades.level_values, given)] = classes
        chosen = consensus.grade[coded.first]
        return np.where(chosen < 0, -1, of_level[np.maximum(chosen, 0)]).astype(np.int32)
    number = np.bincount(grades.item, minlength=grades.n_items)
    means = np.bincount(grades.item, grades.grade, grades.n_items) / np.maximum(number, 1)
    return _nearest(values, means[coded.first])


def _nearest(values: Floats, wanted: Floats) -> Ints:
    """Place of the nearest of some values, -1 for NaN."""
    from ..kernels.ties import ROUNDING

    # a mean in the middle of two goes to the lower one, whatever its last digit
    middles = 0.5 * (values[1:] + values[:-1]) + ROUNDING * np.abs(values).max(initial=0.0)
    return np.where(np.isnan(wanted), -1, np.searchsorted(middles, wanted)).astype(np.int32)


def _known_classes(judgments: Judgments, coded: CodedJudgments, truth: Truth) -> Ints:
    """Class of each thing by the truth, -1 where that does not cover it."""
    if isinstance(judgments, Grades):
        known = _known_grades(judgments, coded, truth)
    elif truth.form == "pairs":
        known = _known_winners(judgments, coded, truth)
    else:
        grade = truth.align(judgments.items)
        gap = grade[coded.first] - grade[coded.second]
        known = np.where(np.isnan(gap), -1, np.sign(np.where(np.isnan(gap), 0.0, gap)) + 1).astype(np.int32)
    if not (known >= 0).any():
        raise JudgmentError("the truth covers nothing that was judged; give truth of the same queries and items")
    return known


def _known_winners(judgments: Judgments, coded: CodedJudgments, truth: Truth) -> Ints:
    """The same from winners of pairs."""
    left, right, outcome = truth.align_pairs(judgments.items)
    turned = left > right
    low, high = np.where(turned, right, left).astype(np.int64), np.where(turned, left, right)
    keys = np.append(low * judgments.n_items + high, -1)
    order = np.argsort(keys, kind="stable")
    wanted = coded.first.astype(np.int64) * judgments.n_items + coded.second
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    winner = np.append(np.where(turned, -outcome, outcome), 0) + 1
    return np.where(keys[place] == wanted, winner[place], -1).astype(np.int32)


def _known_grades(grades: Grades, coded: CodedJudgments, truth: Truth) -> Ints:
    """The same for grades, by the value of the level, or by its name where the grades are in words."""
    if truth.form == "pairs":
        raise JudgmentError("grades are compared with known grades, not with known winners; give query, item, grade")
    assert coded.classes is not None
    given, classes, values = coded.classes
    known = truth.align(grades.items)[coded.first]
    if grades.declared is not None:
        names = [str(level) for level in grades.levels]
        values_of = dict(zip(names, grades.level_values.tolist(), strict=True))
        by_name = truth.labels(known).replace_strict(values_of, default=None, return_dtype=pl.Float64)
        known = by_name.fill_null(float("nan")).to_numpy()
    if not grades.nominal:
        return _nearest(values, known)
    place = np.minimum(np.searchsorted(given, known), len(given) - 1)
    return np.where(given[place] == known, classes[place], -1).astype(np.int32)
