"""Rankers of other libraries, given as objects: XGBoost's, CatBoost's, LightGBM's own, or any estimator."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import CrowdrankError, ParameterError
from ..protocols import Floats
from .estimator import Ranker, Watch
from .saving import Saved
from .training_rows import Lists, Matrix


def as_ranker(ranker: Any, example: str = "ListNet") -> Ranker:
    """Return a ranker of ours as it is, and an estimator of another library as one of ours."""
    if isinstance(ranker, Ranker):
        return ranker
    if isinstance(ranker, type | str) or not (hasattr(ranker, "fit") and hasattr(ranker, "predict")):
        what = getattr(ranker, "__name__", type(ranker).__name__)
        raise ParameterError(
            f"{what} is not a ranker of crowdrank; give one such as crowdrank.rankers.{example}(), or an object with "
            "fit and predict such as xgboost.XGBRanker()"
        )
    return ForeignRanker(estimator=ranker)


@dataclass(kw_only=True, eq=False, repr=False)
class ForeignRanker(Ranker):
    """An estimator of another library that is given rows query after query, in the way that its ``fit`` asks for.

    A ``fit`` that takes ``qid`` (XGBoost), ``group_id`` (CatBoost) or ``group`` (LightGBM) is given the queries so, any
    other only rows and targets. Targets are the nearest whole numbers where the library wants such (XGBoost's and
    LightGBM's objectives of gains). XGBoost takes one weight a query, the mean of its rows.

    Parameters
    ----------
    estimator
        The object; a copy of it is fitted, and kept as ``estimator_``.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> ranker = ForeignRanker(estimator=Ridge(alpha=0.1)).fit([[1.0], [2.0], [3.0]], [0, 1, 2], qid=[1, 1, 1])
    >>> ranker.predict([[5.0]]).round(1).tolist()
    [3.9]
    """

    estimator: Any

    _takes_missing: ClassVar[bool] = True

    @property
    def takes_missing(self) -> bool:
        """Whether the estimator says that X may have missing values."""
        from sklearn.utils import get_tags

        return bool(get_tags(self).input_tags.allow_nan)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        try:
            tags.input_tags.allow_nan = bool(get_tags(self.estimator).input_tags.allow_nan)
        except AttributeError:  # an object that knows nothing of scikit-learn's tags looks at the rows itself
            tags.input_tags.allow_nan = True
        return tags

    def check(self) -> None:
        """Nothing to refuse: the estimator checks its own parameters."""

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Fit a copy of the estimator."""
        from sklearn.base import clone

        self.estimator_ = clone(self.estimator, safe=False)
        takes = inspect.signature(self.estimator_.fit).parameters
        module = type(self.estimator_).__module__.partition(".")[0]
        target = np.rint(lists.target) if module in _WHOLE_TARGETS else lists.target
        values = matrix.values if lists.rows is None else matrix.values[lists.rows]
        arguments: dict[str, Any] = {}
        for name, queries in (("qid", lists.query), ("group_id", lists.query), ("group", np.diff(lists.offsets))):
            if name in takes:
                arguments[name] = queries
                break
        if lists.weight is not None and "sample_weight" in takes:
            arguments["sample_weight"] = lists.item_weights() if "qid" in arguments else lists.weight
        try:
            self.estimator_.fit(values, target, **arguments)
        except CrowdrankError:
            raise
        except Exception as error:
            lines = str(error).strip().splitlines()
            reason = next((line for line in reversed(lines) if line.strip()), type(error).__name__)
            name = type(self.estimator_).__name__
            raise ParameterError(
                f"{name} could not be fitted ({reason.strip()[:200]}); change its parameters"
            ) from error

    def _score_rows(self, matrix: Matrix, qid: Any) -> Floats:
        """Scores that the estimator predicts."""
        return np.asarray(self.estimator_.predict(matrix.values), np.float64).reshape(-1)

    def _importance(self) -> Floats:
        """The estimator's own importances or coefficients, 0 where it has none."""
        for name in ("feature_importances_", "coef_"):
            weights = getattr(self.estimator_, name, None)
            if weights is not None and np.size(weights) == self.n_features_in_:
                return np.asarray(weights, np.float64).reshape(-1)
        return np.zeros(self.n_features_in_)

    def to_saved(self) -> Saved:
        """Refuse: a file of ours holds no objects of other libraries."""
        name = type(self.estimator).__name__
        raise ParameterError(
            f"{name} is not one of crowdrank's own rankers, which alone can be saved; use what its own library has, "
            "such as fit.ranker.estimator_.save_model(path)"
        )


_WHOLE_TARGETS = ("lightgbm", "xgboost")
"""Libraries whose rankers take whole targets."""
