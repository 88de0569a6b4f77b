"""Scores that are weighted sums of features: what linear rankers share, and weights that a joint method learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..data.consensus import Trace
from ..errors import ParameterError
from ..protocols import Floats
from .estimator import Ranker, scored_groups
from .lists import Lists
from .matrix import Design, Matrix, Scaling
from .saving import real_number, weights_of, whole_number
from .stopping import CURVE, Watch


class WeightedFeatures(Ranker):
    """Base of rankers whose score is a weighted sum of scaled features: scoring, the table of weights, files.

    Once it is fitted one has ``scaling_``, ``weights_`` and ``trace_``.
    """

    _scales: ClassVar[bool] = True

    weights_: Floats
    n_iter_: int
    trace_: Trace

    def _score_rows(self, matrix: Matrix, qid: Any) -> Floats:
        """Weighted sum of each row's scaled features."""
        from ..kernels.threads import one_blas_thread

        rows, offsets = scored_groups(self.scaling_, matrix, qid)
        with one_blas_thread():
            scores = Design(matrix, rows, offsets, self.scaling_).scores(self.weights_)
        if rows is None:
            return scores
        of_rows = np.empty_like(scores)
        of_rows[rows] = scores
        return of_rows

    def _importance(self) -> Floats:
        """The weight of each feature on its scale."""
        return self.weights_

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Weights and trace."""
        trace = self.trace_
        facts = {"n_iter": trace.n_iter, "converged": trace.converged, "change": trace.change}
        return facts | {"log_likelihood": list(trace.log_likelihood or ())}, {"weights": self.weights_}

    def _restore(self, facts: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]]) -> None:
        """Weights and trace."""
        self.weights_ = weights_of(numbers, "weights", self.n_features_in_)
        likelihoods = tuple(real_number(value) for value in facts["log_likelihood"])
        n_iter, change = whole_number(facts["n_iter"]), real_number(facts["change"])
        self.trace_ = Trace(n_iter, bool(facts["converged"]), change, likelihoods)
        self.n_iter_ = self.trace_.n_iter


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
