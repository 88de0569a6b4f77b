"""A weighted sum of features whose weights were found elsewhere, as by a joint method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..data.consensus import Trace
from ..errors import ParameterError
from ..protocols import Floats
from .linear import WeightedFeatures
from .lists import Lists
from .matrix import Matrix
from .scaling import Scaling
from .stopping import CURVE, Watch


@dataclass(kw_only=True, eq=False, repr=False)
class LinearScore(WeightedFeatures):
    """A fitted linear ranker made of weights; it scores items and is saved as other rankers are, but learns nothing.

    Examples
    --------
    >>> scaling = Scaling("overall", centre=np.array([2.0, 0.0]), spread=np.array([1.0, 5.0]))
    >>> ranker = LinearScore.of(["length", "age"], scaling, np.array([1.0, -1.0]), Trace())
    >>> ranker.predict(pl.DataFrame({"length": [3, 2], "age": [5, -5]})).tolist()
    [0.0, 1.0]
    """

    @classmethod
    def of(cls, names: Sequence[str], scaling: Scaling, weights: Floats, trace: Trace) -> LinearScore:
        """Return the ranker with a weight for each named feature, which ``scaling`` brings to its scale."""
        ranker = cls()
        ranker.n_features_in_ = len(names)
        ranker.feature_names_in_ = np.array(names, object)
        ranker.scaling_, ranker.weights_ = scaling, np.asarray(weights, np.float64)
        ranker.trace_, ranker.n_iter_ = trace, trace.n_iter
        ranker.curve_ = pl.DataFrame(schema=CURVE)
        return ranker

    def _check(self) -> None:
        """Refuse to be fitted."""
        raise ParameterError("LinearScore holds weights that a joint method found; fit a ranker such as RankSVM()")

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Never called, since ``_check`` refuses."""
        self._check()
