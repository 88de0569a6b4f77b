"""Validation: the nDCG of items, a fit that is followed by it, and rankers measured on held-out queries."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from ..errors import CrowdrankError, JudgmentError
from ..kernels.threads import read_only
from ..protocols import Counts, Floats, Progress
from ..wording import one_of
from .training_rows import Lists, Matrix

if TYPE_CHECKING:
    from .estimator import Ranker

FOLDS = 5
# threshold (sample): queries from which one fifth is held out to compare rankers, not each
MANY_QUERIES = 1000
"""From this many queries on one part is held out; below each of five is in its turn."""


GAINS = ("exponential", "linear", "given")

CURVE = {"iteration": pl.Int64, "objective": pl.Float64, "train": pl.Float64, "valid": pl.Float64}
"""Columns of a learning curve."""

MAX_EXPONENTIAL_TARGET = 1000.0


class ValidationRows(NamedTuple):
    """Validation rows: their features and their lists, and what messages call their targets."""

    matrix: Matrix
    lists: Lists
    target: str = "y"


def gains(target: Floats, gain: str, what: str = "y") -> Floats:
    """Return the gain of each target: ``2 ** y - 1`` if ``"exponential"``, the target itself otherwise."""
    one_of(gain, GAINS, "gain")
    if not len(target):
        return target
    if target.min() < 0:
        raise JudgmentError(
            f"{what} has a negative target ({target.min():g}), which has no gain; let targets start at 0"
        )
    if gain != "exponential":
        return target
    if target.max() > MAX_EXPONENTIAL_TARGET:
        raise JudgmentError(f"{what} has a target of {target.max():g}, too large for 2 ** y - 1; use gain='linear'")
    gained: Floats = np.exp2(target) - 1
    return gained


class ItemGain:
    """nDCG of items, however many rows they have: the gain of an item is the mean gain of its rows.

    Parameters
    ----------
    lists
        The rows that are measured.
    k
        Number of places that are read; ``None`` for all.
    gain
        As in :func:`gains`.

    Examples
    --------
    >>> twice = Lists.of(3, [1, 0, 0], item=["a", "a", "b"])
    >>> ItemGain(twice, k=1).ndcg(np.array([0.1, 0.1, 0.9]))
    0.0
    """

    def __init__(self, lists: Lists, k: int | None = 10, gain: str = "exponential", what: str = "y") -> None:
        from ..kernels.ranking_measures import ideal_gain

        self.lists = lists
        self.offsets = read_only(lists.item_offsets)
        self.gain = read_only(lists.on_items(gains(lists.target, gain, what)))
        longest = int(lists.n_items.max())
        self.k = longest if k is None else min(k, longest)
        self.discount = read_only(1 / np.log2(np.arange(2, self.k + 2)))
        self.ideal = ideal_gain(self.gain, self.offsets, self.k, False, self.discount)

    def ndcg(self, scores: Floats) -> float:
        """Return the mean nDCG of the queries, 0 for those without gain; one score per place, ties by expectation."""
        return float(self.by_query(scores).mean())

    def by_query(self, scores: Floats) -> Floats:
        """Return the nDCG of each query, 0 without gain."""
        from ..kernels.ranking_measures import AVERAGE, discounted_gain

        on_items = read_only(self.lists.on_items(np.ascontiguousarray(scores, np.float64)))
        dcg = discounted_gain(self.gain, on_items, self.offsets, self.k, AVERAGE, False, self.discount)
        shares = np.divide(dcg, self.ideal, out=np.zeros_like(dcg), where=self.ideal > 0)
        ndcg: Floats = np.minimum(shares, 1.0)
        return ndcg


class Watch:
    """Takes note of every step of a fit, and knows the best one and when patience is at its end.

    Parameters
    ----------
    held
        Validation rows, if any.
    k, gain
        How they are measured, see :class:`ItemGain`.
    patience
        Stop after this many notes without a better value on the validation rows; ``None`` never.
    n_steps
        Steps there will be at most.
    progress
        Told of every step.
    what
        Name of the method.
    """

    def __init__(
        self,
        held: ValidationRows | None = None,
        *,
        k: int | None = 10,
        gain: str = "exponential",
        patience: int | None = None,
        n_steps: int = 0,
        progress: Progress | None = None,
        what: str = "",
    ) -> None:
        self.held = held
        self.measure = None if held is None else ItemGain(held.lists, k, gain, held.target)
        self.patience, self.n_steps, self.progress, self.what = patience, n_steps, progress, what
        self.best, self.best_iteration = -np.inf, 0
        self.by_query: list[Floats] = []
        """The nDCG of each validation query after every measured step."""
        self._rows: list[tuple[int, float | None, float | None, float | None]] = []
        self._waited = 0

    def ndcg(self, scores: Floats) -> float:
        """Return the mean nDCG of the validation queries, and keep that of each; one score per place."""
        assert self.measure is not None
        self.by_query.append(self.measure.by_query(scores))
        return float(self.by_query[-1].mean())

    def note(
        self,
        iteration: int,
        *,
        objective: float | None = None,
        train: float | None = None,
        valid: float | None = None,
        scores: Floats | None = None,
    ) -> bool:
        """Return whether this step is the best so far; ``scores`` of the validation rows' places give ``valid``.

        Without validation rows the last step is the best.
        """
        if scores is not None and self.measure is not None:
            valid = self.ndcg(scores)
        self._rows.append((iteration, objective, train, valid))
        if self.progress is not None:
            self.progress(min(iteration, self.n_steps), self.n_steps, self.what)
        better = valid is None or valid > self.best
        self._waited = 0 if better else self._waited + 1
        if better:
            self.best, self.best_iteration = -np.inf if valid is None else valid, iteration
        return better

    @property
    def is_exhausted(self) -> bool:
        """Whether patience is at its end."""
        return self.patience is not None and self._waited >= self.patience

    def curve(self) -> pl.DataFrame:
        """Return the learning curve: iteration, objective, and nDCG on training and validation rows where measured."""
        return pl.DataFrame(self._rows, schema=CURVE, orient="row")


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
    # a number made of all features of each query, whatever the order of its rows
    mix = np.cos(np.arange(matrix.n_features) + 1.0)
    of_places = np.empty(lists.n_places)
    for begin, end in pairwise(matrix.bounds(lists.n_places).tolist()):
        of_places[begin:end] = np.nan_to_num(matrix.block(lists.rows, begin, end)) @ mix
    digests = np.round(np.arcsinh(np.add.reduceat(of_places, lists.offsets[:-1])), 6)
    order = np.lexsort((digests, np.round(total, 9), lists.n_items))
    rng = np.random.default_rng(seed)
    part = np.concatenate([rng.permutation(n_parts) for _ in range(-(-len(order) // n_parts))])[: len(order)]
    return [np.sort(order[part == number]) for number in range(n_parts)]


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
        if all(rows.lists.has_contrast for rows in fold):
            yield fold


def rows_of(matrix: Matrix, lists: Lists, queries: Counts) -> ValidationRows:
    """Return the rows of some queries, copied and side by side."""
    part = lists.take(queries)
    assert part.rows is not None
    side_by_side = replace(part, n_rows=part.n_places, rows=None)
    return ValidationRows(Matrix(matrix.values[part.rows], matrix.names), side_by_side)


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
