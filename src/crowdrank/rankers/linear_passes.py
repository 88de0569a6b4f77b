"""Linear rankers over parts of the training rows: loss, slopes and curvature are sums over the parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..data.consensus import Trace
from ..protocols import Blocks, Floats, Statistics
from .linear import HeldRows, LinearRanker, share_of_places
from .lists import Lists
from .matrix import Design, Matrix, Scaling, moments_of, scaling_by


class LinearFit(NamedTuple):
    """What was learned from the rows of all parts."""

    weights: Floats
    scaling: Scaling
    trace: Trace


@dataclass(frozen=True, eq=False)
class RowsPart:
    """The rows of some whole queries, and their loss once the scaling is known; a part keeps it from pass to pass."""

    matrix: Matrix
    lists: Lists
    _kept: dict[bytes, tuple[HeldRows, float]] = field(default_factory=dict)

    def loss(self, ranker: LinearRanker, scaling: Scaling) -> tuple[HeldRows, float]:
        """Return the loss of the rows, and what it is divided by."""
        key = scaling.centre.tobytes() + scaling.spread.tobytes()
        if key not in self._kept:
            design = Design(self.matrix, self.lists.rows, self.lists.offsets, scaling)
            rows = HeldRows(design, ranker._loss(self.lists), share_of_places(self.lists))
            self._kept[key] = rows, ranker._divisor(self.lists)
        return self._kept[key]


@dataclass(frozen=True, eq=False)
class LinearPasses:
    """The fit of a linear ranker to rows in parts of whole queries, which stand in the order that the loss needs.

    Parameters
    ----------
    ranker
        The ranker, of which parameters are used only.
    n_features
        Number of features.
    follower
        Given the scaling, returns what takes note of every step; it stays with the caller.
    """

    ranker: LinearRanker
    n_features: int
    follower: Callable[[Scaling], Callable[[int, float, Floats], bool]]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "follower": None}

    def lay_out(self, part: tuple[Matrix, Lists]) -> RowsPart:
        """Return the rows of a part."""
        return RowsPart(*part)

    def solve(self, sums: Blocks) -> LinearFit:
        """Return the weights where the loss of all parts and the penalty are least."""
        surveys = sums.each(partial(_survey, self.ranker))
        divisor = float(np.sum([divisor for divisor, _ in surveys]))
        scaling = self._scaling(sums, [first for _, first in surveys])
        rows = PartedRows(sums, partial(_Share, self.ranker, scaling, divisor), self.n_features)
        weights, trace = self.ranker.descend(rows, self.follower(scaling))
        return LinearFit(weights, scaling, trace)

    def _scaling(self, sums: Blocks, first_rows: list[Floats]) -> Scaling:
        """The scaling of the rows of all parts."""
        if self.ranker.scale != "overall":
            return scaling_by(self.ranker.scale, None, self.n_features)
        shift = first_rows[0]
        moments = sums.each(partial(_moments, shift))
        total = np.sum([sums_of for sums_of, _ in moments], axis=0)
        largest = np.max([largest for _, largest in moments], axis=0)
        return scaling_by("overall", moments_of(total, largest, shift), self.n_features)


@dataclass(frozen=True, eq=False)
class PartedRows:
    """The loss of the rows of all parts (:class:`~crowdrank.rankers.linear.RowLoss`)."""

    sums: Blocks
    share: Callable[[Any], _Share]
    """Given a question, what each part answers to it."""
    n_features: int

    def at(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """Return the loss, its slopes, and the weights."""
        value, slopes = self.sums.total(self.share(partial(_loss, weights)))
        return float(value), slopes, weights

    def curvature(self, here: Floats) -> Floats:
        """Return the second derivatives at some weights."""
        matrix: Floats = self.sums.total(self.share(partial(_curvature, here)))[0]
        return matrix

    def product(self, here: Floats, along: Floats) -> Floats:
        """Return the second derivatives at some weights times a vector."""
        image: Floats = self.sums.total(self.share(partial(_product, here, along)))[0]
        return image

    def diagonal(self) -> Floats:
        """Return about the diagonal of the second derivatives."""
        entries: Floats = self.sums.total(self.share(_diagonal))[0]
        return entries


@dataclass(frozen=True, eq=False)
class _Share:
    """One pass: what a part answers to a question, by its share of what the loss is divided by."""

    ranker: LinearRanker
    scaling: Scaling
    divisor: float
    question: Callable[[HeldRows], Statistics]

    def __call__(self, part: RowsPart, state: Any) -> tuple[Statistics, Any]:
        rows, divisor = part.loss(self.ranker, self.scaling)
        return tuple(divisor / self.divisor * statistic for statistic in self.question(rows)), None


def _loss(weights: Floats, rows: HeldRows) -> Statistics:
    """Loss and slopes of a part."""
    value, slopes, _ = rows.at(weights)
    return value, slopes


def _curvature(weights: Floats, rows: HeldRows) -> Statistics:
    """Second derivatives of a part."""
    return (rows.curvature(rows.loss(rows.design.scores(weights))),)


def _product(weights: Floats, along: Floats, rows: HeldRows) -> Statistics:
    """Second derivatives of a part times a vector."""
    return (rows.product(rows.loss(rows.design.scores(weights)), along),)


def _diagonal(rows: HeldRows) -> Statistics:
    """About the diagonal of the second derivatives of a part."""
    return (rows.diagonal(),)


def _survey(ranker: LinearRanker, part: RowsPart, state: Any) -> tuple[Statistics, Any]:
    """What the loss of a part is divided by, and its first row."""
    return (ranker._divisor(part.lists), part.matrix.first_row(part.lists)), None


def _moments(shift: Floats, part: RowsPart, state: Any) -> tuple[Statistics, Any]:
    """What the scaling of a part's columns is made of."""
    return part.matrix.moment_sums(part.lists, shift), None
