"""How annotators would answer if they were independent, given the class of a thing; families count as one.

Every thing has a class (its level; or which of two items is better, or neither), and annotator ``a`` gives answer ``y``
to class ``k`` with probability ``confusion[a, k, y]``, estimated together with the classes [DawidSkene79]_.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ..protocols import Bools, Counts, Floats, Ints

ALPHA = 4.0
"""Answers that the crowd's confusion counts for in that of an annotator."""

FEW = 5_000
"""Up to so many answers arrays will do, and no compiled pass is loaded."""

Counter: TypeAlias = Callable[[Floats | None, Floats | None], tuple[Floats, Floats]]

_TOL = 1e-4
_MAX_ITER = 60


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
        """Return some of the things only, numbered anew."""
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


def expected_answers(panel: Panel, family: Ints) -> Expected:
    """Return the confusions of annotators whose families, (n_annotators,), count as one voice each."""
    cell, sizes = _cells(panel, family)
    weight = None if sizes.max(initial=1) == 1 else 1.0 / sizes[cell]
    confusion, prior = _fitted(panel, weight)
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


def _fitted(panel: Panel, weight: Floats | None) -> tuple[Floats, Floats]:
    """Confusions and shares of the classes, from the vote shares on."""
    count = _counts(panel, weight) if few_answers(panel) else _counts_of_many(panel, weight)
    confusion, prior = _learned(*count(None, None), panel.mirrored)
    for _ in range(_MAX_ITER if panel.known is None else 0):
        before = confusion
        confusion, prior = _learned(*count(confusion, prior), panel.mirrored)
        if float(np.abs(confusion - before).max(initial=0.0)) <= _TOL:
            break
    return confusion, prior


def few_answers(panel: Panel) -> bool:
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
            found = vote_pass(packed, panel.n_annotators, panel.n_classes, known)
        else:
            found = confusion_pass(packed, confusion, prior, known)
        return found.counts, found.shares

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


def _learned(counts: Floats, shares: Floats, mirrored: bool) -> tuple[Floats, Floats]:
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
