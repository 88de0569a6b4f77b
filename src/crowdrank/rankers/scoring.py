"""Rankers measured in scikit-learn's searches: a scorer that knows which rows belong to one query."""

from __future__ import annotations

import inspect
from typing import Any, Self

from numpy.typing import ArrayLike

from ..errors import ParameterError
from .lists import Lists
from .stopping import ItemGain


class NDCGScorer:
    """Mean nDCG of a ranker's scores over queries, with the query of each row routed by scikit-learn.

    Parameters
    ----------
    k
        Number of places that are read; ``None`` for all.
    gain
        ``"exponential"`` (2 ** y - 1), ``"linear"`` or ``"given"`` (both y itself).

    Notes
    -----
    Rankers and this scorer ask for ``qid`` and ``item`` by themselves, so that it is enough to switch scikit-learn's
    metadata routing on and to give them to ``fit``; weights are asked for with ``set_fit_request(sample_weight=True)``.
    Folds have to keep the rows of a query together, as ``GroupKFold`` does when ``qid`` is given as ``groups`` too.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from crowdrank.rankers import ListNet
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 3)), np.repeat(np.arange(12), 5)
    >>> y = np.clip(np.round(X[:, 0] + rng.normal(size=60)), 0, 2)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(ListNet(), {"ridge": [0.1, 10.0]}, cv=GroupKFold(4), scoring=ndcg_scorer(k=5))
    ...     search = search.fit(X, y, qid=qid, groups=qid)
    >>> search.best_params_, round(float(search.best_score_), 2)
    ({'ridge': 0.1}, 0.79)
    """

    def __init__(self, k: int | None = 10, gain: str = "exponential") -> None:
        self.k, self.gain = k, gain
        self._requests: dict[str, bool | str | None] = {"qid": True, "item": True}

    def __repr__(self) -> str:
        return f"NDCGScorer(k={self.k!r}, gain={self.gain!r})"

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, *, qid: Any = None, item: Any = None) -> float:
        """Return the mean nDCG of what a fitted ranker predicts; queries without gain count 0."""
        if qid is None:
            return without_queries("the nDCG scorer")
        scores = predict_scores(estimator, X, qid)
        lists = Lists.of(len(scores), y, qid, item)
        return ItemGain(lists, self.k, self.gain).ndcg(scores if lists.rows is None else scores[lists.rows])

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Choose which metadata the scorer asks for; by default ``qid=True`` and ``item=True``."""
        for name in requests:
            if name not in ("qid", "item"):
                raise ParameterError(f"the nDCG scorer takes qid and item, not {name!r}")
        self._requests.update(requests)
        return self

    def get_metadata_routing(self) -> Any:
        """Return what scikit-learn is to pass on."""
        from sklearn.utils.metadata_routing import MetadataRequest

        routing = MetadataRequest(owner=type(self).__name__)
        for name, alias in self._requests.items():
            routing.score.add_request(param=name, alias=alias)
        return routing


class _NoScore:
    """What a search gets in place of a score; it ends when it reads the number in it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def item(self) -> float:
        raise ParameterError(self.text)


def without_queries(what: str) -> float:
    """Refuse to score rows whose queries are not known.

    Taken as one query they would get a figure that means nothing. Searches of scikit-learn turn what a scorer raises
    into NaN and carry on (``error_score``), so that they get something that raises once they read it.
    """
    text = (
        f"{what} was not told the query of each row; give qid= (one value for all rows if they are of one query); "
        "for GridSearchCV or cross_validate call sklearn.set_config(enable_metadata_routing=True) and give qid to fit, "
        "or to cross_validate in params"
    )
    frame = inspect.currentframe()
    while frame is not None:
        if (
            frame.f_globals.get("__name__") == "sklearn.model_selection._validation"
            and frame.f_code.co_name == "_score"
        ):
            return _NoScore(text)  # type: ignore[return-value]
        frame = frame.f_back
    raise ParameterError(text)


def predict_scores(estimator: Any, X: Any, qid: Any) -> Any:
    """Return what an estimator predicts; our rankers get the queries, which some scale features by."""
    from .estimator import Ranker

    return estimator.predict(X, qid=qid) if isinstance(estimator, Ranker) else estimator.predict(X)


def ndcg_scorer(k: int | None = 10, gain: str = "exponential") -> NDCGScorer:
    """Return a scorer for ``GridSearchCV(scoring=...)`` and ``cross_validate``; see :class:`NDCGScorer`."""
    return NDCGScorer(k, gain)
