"""Held-out queries: which they are, and how well rankers that did not see them rank them, after every step."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..errors import CrowdrankError
from ..protocols import Counts, Floats
from .estimator import Ranker
from .lists import Lists
from .matrix import Matrix
from .stopping import ValidationRows, Watch

FOLDS = 5
MANY_QUERIES = 1000
"""From this many queries on one part is held out; below each of five is in its turn."""


class Fold(NamedTuple):
    """Rows to learn from, and rows of other queries to measure by."""

    learned: ValidationRows
    held: ValidationRows


class HeldOut(NamedTuple):
    """The nDCG of held-out queries that have any gain: one row for each step of a fit."""

    by_query: Floats

    @property
    def best_step(self) -> int:
        """The step, counted from 1, with the highest mean."""
        return int(np.argmax(np.round(self.by_query.mean(axis=1), 12))) + 1


def query_parts(matrix: Matrix, lists: Lists, n_parts: int, seed: int) -> list[Counts]:
    """Return queries in parts alike in size and gain; neither their names nor the order of rows play a part.

    Queries are sorted by number of items, sum of targets and what their features add up to, and each of ``n_parts``
    neighbours goes to another part, by ``seed``.
    """
    total = np.add.reduceat(lists.target * lists.weights, lists.offsets[:-1])
    order = np.lexsort((_digests(matrix, lists), np.round(total, 9), lists.n_items))
    rng = np.random.default_rng(seed)
    part = np.concatenate([rng.permutation(n_parts) for _ in range(-(-len(order) // n_parts))])[: len(order)]
    return [np.sort(order[part == number]) for number in range(n_parts)]


def _digests(matrix: Matrix, lists: Lists) -> Floats:
    """A number made of all features of each query, whatever the order of its rows."""
    mix = np.cos(np.arange(matrix.n_features) + 1.0)
    of_places = np.empty(lists.n_places)
    for begin, end in pairwise(matrix.bounds(lists.n_places).tolist()):
        of_places[begin:end] = np.nan_to_num(matrix.block(lists.rows, begin, end)) @ mix
    sums = np.add.reduceat(of_places, lists.offsets[:-1])
    return np.asarray(np.round(np.arcsinh(sums), 6), np.float64)


def sample_queries(matrix: Matrix, lists: Lists, max_rows: int, seed: int) -> Lists:
    """Return the lists of as many queries as have about this many rows, or all."""
    if lists.n_places <= max_rows:
        return lists
    n_parts = max(2, round(lists.n_places / max_rows))
    return lists.take(query_parts(matrix, lists, n_parts, seed)[0]) if n_parts <= lists.n_queries else lists


def query_folds(matrix: Matrix, lists: Lists, seed: int) -> Iterator[Fold]:
    """Yield rows to learn from and held-out ones: every part in its turn, or one where queries are many.

    Folds without contrast on either side are left out.
    """
    if lists.n_queries < 2:
        return
    parts = query_parts(matrix, lists, min(FOLDS, lists.n_queries), seed)
    for number in range(1 if lists.n_queries >= MANY_QUERIES else len(parts)):
        others = np.concatenate([part for other, part in enumerate(parts) if other != number])
        fold = Fold(rows_of(matrix, lists, np.sort(others)), rows_of(matrix, lists, parts[number]))
        if all(_has_contrast(rows.lists) for rows in fold):
            yield fold


def rows_of(matrix: Matrix, lists: Lists, queries: Counts) -> ValidationRows:
    """Return the rows of some queries, copied and side by side."""
    part = lists.take(queries)
    assert part.rows is not None
    side_by_side = replace(part, n_rows=part.n_places, rows=None)
    return ValidationRows(Matrix(matrix.values[part.rows], matrix.names), side_by_side)


def _has_contrast(lists: Lists) -> bool:
    """Whether something can be learned from, or measured on, the lists."""
    try:
        lists.expect_contrast()
    except CrowdrankError:
        return False
    return True


def held_out(
    make: Callable[[], Ranker], folds: list[Fold], k: int, gain: str, done: Callable[[], None] | None = None
) -> HeldOut | None:
    """Return how copies of a ranker that learn from each fold do on its held-out queries; ``None`` where one cannot.

    They are measured by the nDCG at ``k`` of that ``gain``. A fit that stops before the others stays as it is at its
    end, and ``done`` is called after each.
    """
    measured: list[Floats] = []
    for fold in folds:
        ranker = make()
        watch = Watch(fold.held, k=k, gain=gain, patience=getattr(ranker, "patience", None))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ranker.learn(fold.learned.matrix, fold.learned.lists, watch)
            except CrowdrankError:
                return None
        assert watch.measure is not None
        measured.append(np.array(watch.by_query)[:, watch.measure.ideal > 0])
        if done is not None:
            done()
    longest = max(len(steps) for steps in measured)
    padded = [np.concatenate([steps, np.repeat(steps[-1:], longest - len(steps), axis=0)]) for steps in measured]
    return HeldOut(np.concatenate(padded, axis=1))
