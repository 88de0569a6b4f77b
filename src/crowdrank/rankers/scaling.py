"""Features on one scale, so that a penalty or a step means the same for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ParameterError
from ..protocols import AnyFloats, Counts, Floats
from ..wording import one_of
from .lists import Lists

if TYPE_CHECKING:
    from .matrix import Matrix

SCALES = ("overall", "query", "none")

_CONSTANT_SHARE = 1e-12
"""A column whose spread is so small against its values is constant but for rounding."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """What was learned of the features' scales; it travels with the ranker.

    Parameters
    ----------
    kind
        ``"overall"``: a feature less its mean, by its standard deviation within queries; ``"query"``: from 0 at the
        lowest to 1 at the highest value within each query; ``"none"``: as it is.
    centre, spread
        One number a feature, which ``"overall"`` takes off and divides by.
    """

    kind: str
    centre: Floats
    spread: Floats

    @property
    def per_query(self) -> bool:
        """Whether rows can be scaled only together with the others of their query."""
        return self.kind == "query"

    def apply(self, block: AnyFloats, starts: Counts) -> Floats:
        """Return rows of whole queries on their scale, as a new array; ``starts`` are the queries' first rows.

        Missing values (NaN) stay missing, and a feature that is constant (in its query) becomes 0.
        """
        if self.kind == "none":
            return block.astype(np.float64)
        if self.kind == "overall":
            scaled: Floats = block - self.centre
            scaled /= self.spread
            return scaled
        values = block.astype(np.float64)
        low, high = (pick.reduceat(values, starts, axis=0) for pick in (np.fmin, np.fmax))
        width = high - low
        varies = width > _CONSTANT_SHARE * np.maximum(abs(low), abs(high))
        factor = np.divide(1.0, width, out=np.zeros_like(width), where=varies)
        sizes = np.diff(np.append(starts, len(values)))
        values -= np.repeat(low, sizes, axis=0)
        values *= np.repeat(factor, sizes, axis=0)
        return values


def learn_scaling(kind: str, matrix: Matrix, lists: Lists, *, within: bool = True) -> Scaling:
    """Return the scaling of some kind for the rows that are learned from.

    For ``"overall"`` the spread is what a linear ranker sees of a feature: its standard deviation about each query's
    mean. Where that is 0 throughout, or ``within`` is false, it is the standard deviation about the
    mean of all rows, and where that is 0 too, 1.
    """
    one_of(kind, SCALES, "scale")
    n_features = matrix.n_features
    centre, spread = np.zeros(n_features), np.ones(n_features)
    if kind == "query" and matrix.sparse:
        raise ParameterError(
            "scale='query' takes off each query's lowest value, which fills a sparse matrix; "
            "use scale='overall', or a dense matrix as X.toarray() makes it"
        )
    if kind == "overall":
        found = matrix.moments(lists)
        centre, smallest = found.mean, _CONSTANT_SHARE * found.largest
        spread = np.where(within & (found.within > smallest), found.within, found.overall)
        spread[spread <= smallest] = 1.0
    return Scaling(kind, centre, spread)
