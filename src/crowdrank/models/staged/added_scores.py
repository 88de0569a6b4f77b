"""The scores of several fitted rankers, added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...errors import ParameterError
from ...protocols import Floats
from ...rankers.estimator import CURVE, Ranker
from ...rankers.saving import weights_of
from ...rankers.training_rows import Matrix


class AddedScores(Ranker):
    """A fitted ranker that adds the scores of others, each times its share; it is saved whole, but cannot be fitted.

    Examples
    --------
    >>> from crowdrank.rankers import RankSVM
    >>> rankers = [RankSVM().fit([[best], [0.0]], [1, 0], qid=[1, 1]) for best in (1.0, 3.0)]
    >>> AddedScores.of(rankers, [0.5, 0.5]).predict([[1.0], [0.5]]).round(2).tolist()
    [0.16, -0.16]
    """

    _has_parts: ClassVar[bool] = True

    shares_: Floats

    @classmethod
    def of(cls, rankers: Sequence[Ranker], shares: Sequence[float] | Floats) -> AddedScores:
        """Return the sum of fitted rankers of the same features."""
        ranker = cls()
        ranker.parts_, ranker.shares_ = tuple(rankers), np.asarray(shares, np.float64)
        ranker.n_features_in_ = rankers[0].n_features_in_
        if hasattr(rankers[0], "feature_names_in_"):
            ranker.feature_names_in_ = rankers[0].feature_names_in_
        ranker.curve_ = pl.DataFrame(schema=CURVE)
        return ranker

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing
        return tags

    @property
    def _takes_missing(self) -> bool:  # type: ignore[override]
        """Whether all of them take missing values."""
        return bool(self.parts_) and all(part._takes_missing for part in self.parts_)

    def check(self) -> None:
        """Refuse to be fitted."""
        raise ParameterError("AddedScores holds rankers that are fitted already; fit a ranker such as RankSVM()")

    def _score_rows(self, matrix: Matrix, qid: Any) -> Floats:
        """The weighted sum of each row's scores."""
        scores = np.zeros(matrix.n_rows)
        for share, part in zip(self.shares_, self.parts_, strict=True):
            scores += share * part._score_rows(matrix, qid)
        return scores

    def _importance(self) -> Floats:
        """The weighted sum of each feature's weights."""
        importance = np.zeros(self.n_features_in_)
        for share, part in zip(self.shares_, self.parts_, strict=True):
            importance += share * part._importance()
        return importance

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The shares; what the parts have learned is theirs."""
        return {}, {"shares": self.shares_}

    def _restore(self, facts: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]]) -> None:
        """The shares."""
        self.shares_ = weights_of(numbers, "shares", len(self.parts_))
        if not self.parts_ or any(part.n_features_in_ != self.n_features_in_ for part in self.parts_):
            raise ValueError(f"a sum of {len(self.parts_)} rankers that are not all of the same features")
