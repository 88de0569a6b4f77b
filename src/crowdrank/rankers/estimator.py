"""What every ranker is: a scikit-learn estimator that knows the query of each row; held-out rows; linear scores."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ..data.consensus import Trace
from ..data.features import Extractor, Features
from ..data.files import PathLike
from ..errors import CrowdrankError, JudgmentError, ParameterError, expect_package
from ..kernels.threads import one_blas_thread, read_only
from ..protocols import AnyFloats, Counts, Floats, Progress, method_name
from ..wording import one_of
from .saving import MAX_ABS_WEIGHT, Saved, real_number, weights_of, whole_number
from .training_rows import SCALES, Lists, Matrix, Scaling, scoring_design

_READY_TYPES = (np.dtype(np.float64), np.dtype(np.float32))


class _LateEstimator:
    """Stands in for scikit-learn's ``BaseEstimator`` until anything of it is used.

    Importing scikit-learn takes longer than loading a ranker and scoring with it, which need nothing of it.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.endswith("_"):  # what is fitted, and what Python itself looks for
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            _become_estimators()
            # as if it had been there from the start
            return getattr(self, name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters."""
        _become_estimators()
        return dict(super(Ranker, self).get_params(deep))  # type: ignore[misc]

    def set_params(self, **params: Any) -> Self:
        """Set hyper-parameters."""
        _become_estimators()
        return super(Ranker, self).set_params(**params)  # type: ignore[misc]

    def __repr__(self) -> str:
        _become_estimators()
        return repr(self)


class Ranker(_LateEstimator):
    """Base of the rankers: reads and checks what it is given, and keeps names, queries and items straight.

    A ranker is a file of this folder with a dataclass (``kw_only=True, eq=False, repr=False``) whose fields are its
    hyper-parameters, over this class, or over :class:`~crowdrank.rankers.linear.LinearRanker` where scores are linear
    and the loss is convex. The base reads X, y, qid, item and weights, checks them once, and calls

    ``check(self)``
        to refuse parameters outside their range (scikit-learn wants that in ``fit``, not in ``__init__``);
    ``_learn(self, matrix, lists, watch)``
        to fit: ``matrix`` is a :class:`Matrix` (``.values`` a numpy array or a sparse matrix in compressed rows, of 32
        or 64 bits, never copied), ``lists`` are its rows query after query (:class:`Lists`), and ``watch`` takes note
        of every step (:class:`Watch`): ``note`` returns whether this step is the best so far, ``is_exhausted`` says
        when to stop, ``best_iteration`` which step to keep;
    ``_score_rows(self, matrix, qid)``
        to predict: one 64-bit score for each row of the matrix;
    ``_importance(self)``, ``_saved(self)``, ``_restore(self, facts, numbers)``
        for the table of weights and for files without pickle.

    ``_watch(self, held, progress)`` goes by ``k``, ``gain`` and ``patience`` of a ranker that has them.
    ``_takes_missing`` and ``_takes_sparse`` say what X may be; with ``_scales`` the ranker keeps the
    :class:`Scaling` that :func:`~crowdrank.rankers.training_rows.learn_scaling` returns as ``scaling_``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("features",)
    _takes_missing: ClassVar[bool] = False
    _takes_sparse: ClassVar[bool] = True
    _scales: ClassVar[bool] = False
    _has_parts: ClassVar[bool] = False
    _steps: ClassVar[str] = "steps"
    _most_steps: ClassVar[str] = "max_iter"
    """Its parameter that says how many there are at most."""

    # scikit-learn reads these: what its searches pass on without being asked to
    __metadata_request__fit: ClassVar = {"qid": True, "item": True}
    __metadata_request__predict: ClassVar = {"qid": True}
    __metadata_request__score: ClassVar = {"qid": True, "item": True}

    n_features_in_: int
    curve_: pl.DataFrame
    scaling_: Scaling
    parts_: tuple[Ranker, ...] = ()
    """Fitted rankers that it is made of, for one that is."""
    extractor_: Extractor | None = None
    """What makes its features of raw items, where they were made so."""

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: Any = None,
        group: Any = None,
        item: Any = None,
        sample_weight: ArrayLike | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_item: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from rows of features and targets.

        Parameters
        ----------
        X
            One row of numbers a training row: an array, a sparse matrix, a frame, or :class:`~crowdrank.Features`.
        y
            Target of each row, larger is better: a grade, an expected grade, a gain or a score; ``None`` takes the
            grades that came with :class:`~crowdrank.Features`.
        qid
            Query of each row, any type, in any order; one value for all rows if they are of one query.
            :class:`~crowdrank.Features` bring it along.
        group
            In place of ``qid``: the number of rows of each query, whose rows stand side by side, as in LightGBM.
        item
            Item of each row, where items have several rows, such as one for each judgment.
        sample_weight
            How often each row counts; a row of weight 2 is that row twice.
        eval_set
            Validation rows as ``(X, y)``.
        eval_qid, eval_group, eval_item
            Their queries, or sizes of queries, and their items.
        progress
            Called with (steps done, steps at most, name of the method).
        """
        self.check()
        # a fit that fails leaves no half of a ranker behind
        self.__dict__.pop("curve_", None)
        if group is not None:
            qid = ids_of_groups(qid, group, _n_rows(X), "")
        if isinstance(eval_set, list) and len(eval_set) == 1:  # as LightGBM takes it
            eval_set = eval_set[0]
            eval_qid, eval_item = (v[0] if isinstance(v, list) and len(v) == 1 else v for v in (eval_qid, eval_item))
        if eval_group is not None:
            if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
                raise ParameterError("eval_group goes with eval_set=(X, y); give that too or leave it out")
            eval_qid = ids_of_groups(eval_qid, eval_group, _n_rows(eval_set[0]), "eval_")
        matrix, qid = self._read(X, qid, reset=True)
        if qid is None:
            without_queries(f"{type(self).__name__}.fit")
        y = X.grade if y is None and isinstance(X, Features) else y
        lists = Lists.of(matrix.n_rows, y, qid, item, sample_weight)
        lists.expect_contrast()
        held = None
        if eval_set is not None:
            if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
                raise ParameterError("eval_set takes one pair (X, y) of validation rows")
            rows, eval_qid = self._read(eval_set[0], eval_qid, reset=False)
            if eval_qid is None:
                raise ParameterError(
                    "eval_set comes without the query of each row; give eval_qid= (one value for all of a single query)"
                )
            held_lists = Lists.of(rows.n_rows, eval_set[1], eval_qid, eval_item, what="eval_")
            held = ValidationRows(rows, held_lists, "y of eval_set")
        elif eval_qid is not None or eval_item is not None:
            raise ParameterError("eval_qid and eval_item go with eval_set=(X, y); give that too or leave them out")
        self.learn(matrix, lists, self._watch(held, progress))
        return self

    def learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Fit to rows that were read and checked already."""
        self.n_features_in_ = matrix.n_features
        self._learn(matrix, lists, watch)
        self.curve_ = watch.curve()

    @property
    def scorer(self) -> Ranker:
        """The ranker that scores: itself, or the one that it chose."""
        return self

    def predict(self, X: Any, qid: Any = None) -> AnyFloats:
        """Return the score of each row, larger is better, of 32 bits if X is.

        ``qid`` is needed only where features are scaled within queries; ``None`` then takes all rows as one query.
        """
        self._expect_fitted()
        matrix, qid = self._read(X, qid, reset=False)
        return self._score_rows(matrix, qid).astype(matrix.values.dtype, copy=False)

    def score(self, X: Any, y: ArrayLike, *, qid: Any = None, item: Any = None) -> float:
        """Return the mean nDCG@10 of the predicted scores over queries; those without gain count 0.

        ``qid`` has to be given, one value for all rows if they are of one query; :class:`~crowdrank.Features` bring it
        along.
        """
        self._expect_fitted()
        matrix, qid = self._read(X, qid, reset=False)
        if qid is None:
            return without_queries(f"{type(self).__name__}.score")
        lists = Lists.of(matrix.n_rows, y, qid, item)
        scores = self._score_rows(matrix, qid)
        return ItemGain(lists).ndcg(scores if lists.rows is None else scores[lists.rows])

    def save(self, path: PathLike) -> None:
        """Write the fitted ranker to a file that :func:`crowdrank.load_ranker` reads; no pickle is involved."""
        self.to_saved().write(path)

    def to_saved(self) -> Saved:
        """Return what a file holds of the fitted ranker."""
        self._expect_fitted()
        if type(self).__module__.partition(".")[0] != __package__.partition(".")[0]:
            raise ParameterError(
                f"{type(self).__name__} is not one of crowdrank's own rankers, which alone can be saved"
            )
        facts, numbers = self._state_with_scaling()
        names = vars(self).get("feature_names_in_")
        names = None if names is None else [str(name) for name in names]
        facts |= {"n_features": self.n_features_in_, "features": names, "curve": self.curve_.to_dict(as_series=False)}
        parts = tuple(part.to_saved() for part in self.parts_)
        extractor = None if self.extractor_ is None else Saved.of_extractor(self.extractor_)
        return Saved(method_name(self), self.get_params(deep=False), facts, numbers, parts, extractor)

    def _state_with_scaling(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What was learned, with the scaling of features where there is one."""
        facts, numbers = self._state()
        if (scaling := vars(self).get("scaling_")) is not None:
            facts |= {"scaling": scaling.kind}
            numbers |= {"centre": scaling.centre, "spread": scaling.spread}
        return facts, numbers

    def restore(self, saved: Saved) -> Self:
        """Take over what was saved of a fitted ranker of the same method; raises where parts are missing."""
        facts, numbers = saved.facts, saved.numbers
        n = self.n_features_in_ = whole_number(facts["n_features"], 1)
        if (names := facts["features"]) is not None:
            if not isinstance(names, list) or len(names) != n or not all(isinstance(name, str) for name in names):
                raise ValueError(f"its features are not {n} names")
            "".join(names).encode()  # half a letter, as JSON can write one, is no name
            self.feature_names_in_ = np.array(names, object)
        if self._scales:
            one_of(facts["scaling"], SCALES, "scale")
            spread = weights_of(numbers, "spread", n)
            if spread.min() < 1 / MAX_ABS_WEIGHT:
                raise ValueError(f"a scale of {spread.min():g}")
            self.scaling_ = Scaling(facts["scaling"], weights_of(numbers, "centre", n), spread)
        self._restore(facts, numbers)
        self.extractor_ = None if saved.extractor is None else saved.extractor.to_extractor()
        steps, *measured = (facts["curve"][name] for name in CURVE)
        if any(len(values) != len(steps) for values in measured):
            raise ValueError("a learning curve with columns of different lengths")
        rows = [[None if value is None else real_number(value) for value in values] for values in measured]
        columns = [[whole_number(step) for step in steps], *rows]
        self.curve_ = pl.DataFrame(dict(zip(CURVE, columns, strict=True)), schema=CURVE)
        if numbers.keys() != self._state_with_scaling()[1].keys() or bool(saved.parts) != self._has_parts:
            raise ValueError(f"parts that {method_name(self)} does not have")
        return self

    def importance(self) -> pl.DataFrame:
        """Return what each feature counts for: feature and weight, the largest first."""
        self._expect_fitted()
        names = vars(self).get("feature_names_in_")
        names = [str(number + 1) for number in range(self.n_features_in_)] if names is None else list(names)
        weight = self._importance()
        return pl.DataFrame({"feature": names, "weight": weight})[np.argsort(-abs(weight), kind="stable")]

    def __sklearn_is_fitted__(self) -> bool:
        return "curve_" in vars(self)

    def _expect_fitted(self) -> None:
        """Refuse to go on before ``fit``, as scikit-learn does."""
        if not self.__sklearn_is_fitted__():
            from sklearn.utils.validation import check_is_fitted

            check_is_fitted(self)

    @property
    def takes_missing(self) -> bool:
        """Whether X may have missing values."""
        return self._takes_missing

    def __sklearn_tags__(self) -> Any:
        _become_estimators()
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.allow_nan = self._takes_missing
        return tags

    def check(self) -> None:
        """Refuse parameters outside their range, as fitting does."""
        raise NotImplementedError

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Fit to the rows, telling ``watch`` of every step."""
        raise NotImplementedError

    def _score_rows(self, matrix: Matrix, qid: Any) -> Floats:
        """Score of each row of a matrix."""
        raise NotImplementedError

    def _importance(self) -> Floats:
        """What each feature counts for."""
        raise NotImplementedError

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What was learned: facts for JSON, arrays by name."""
        raise NotImplementedError

    def _restore(self, facts: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was learned."""
        raise NotImplementedError

    def _watch(self, held: ValidationRows | None, progress: Progress | None) -> Watch:
        """What follows the fit: validation by nDCG@k of the chosen gain, where a ranker has these."""
        names = [name for name in ("k", "gain", "patience") if hasattr(type(self), name)]
        own: dict[str, Any] = {name: getattr(self, name) for name in names}
        if held is None and own.get("patience") is not None:
            raise ParameterError(
                f"patience= counts {self._steps} without a better nDCG on validation queries; give eval_set="
            )
        return Watch(held, n_steps=getattr(self, self._most_steps, 0), progress=progress, what=method_name(self), **own)

    def _read(self, X: Any, qid: Any, *, reset: bool) -> tuple[Matrix, Any]:
        """The matrix, checked, and the queries, which features bring along."""
        named = isinstance(X, Features)
        extractor = X.extractor if named else None
        if named:
            qid = X.items.query if qid is None else qid
            if reset:
                self.feature_names_in_ = np.array(X.names, object)
            known = vars(self).get("feature_names_in_")
            X = (X if known is None else X.select([str(name) for name in known])).matrix
        if named or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype in _READY_TYPES and X.size):
            values = np.asarray(X)
        else:
            from sklearn.utils.validation import check_array

            sparse = "csr" if self._takes_sparse else False
            rest = {"dtype": [np.float64, np.float32], "ensure_all_finite": False, "input_name": "X"}
            try:
                values = check_array(X, accept_sparse=sparse, estimator=self, **rest)
            except ValueError:
                for name in getattr(X, "columns", ()):
                    _expect_number_column(name, X[name])
                raise
        if reset:
            self.n_features_in_ = values.shape[1]
            self.extractor_ = extractor
        if values.shape[1] != self.n_features_in_:
            raise JudgmentError(
                f"X has {values.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input; give the columns that it was trained on"
            )
        if not named and (reset or not isinstance(X, np.ndarray) or "feature_names_in_" in vars(self)):
            from sklearn.utils.validation import validate_data

            # keeps the names of columns, or compares them with those that were learned from
            validate_data(self, X, y="no_validation", reset=reset, skip_check_array=True)
        names = vars(self).get("feature_names_in_")
        matrix = Matrix(values, None if names is None else tuple(map(str, names)))
        matrix.expect_finite(missing=self._takes_missing)
        return matrix, qid


def _n_rows(X: Any) -> int:
    """Number of rows of features or of whatever scikit-learn takes for a matrix."""
    return len(X) if isinstance(X, Features) else int(np.shape(X)[0])


def _become_estimators() -> None:
    """Put scikit-learn's own base in the place of its stand-in, for all rankers."""
    expect_package("sklearn")
    from sklearn.base import BaseEstimator

    if _LateEstimator not in Ranker.__bases__:
        return
    Ranker.__bases__ = (BaseEstimator,)
    waiting = [Ranker]
    while waiting:
        one = waiting.pop()
        # gives each class the set_*_request methods of metadata routing, which subclassing would have done
        BaseEstimator.__init_subclass__.__func__(one)
        waiting += one.__subclasses__()


if "sklearn" in sys.modules:
    _become_estimators()


def _expect_number_column(name: Any, column: Any) -> None:
    """Refuse a column of a frame that holds something else than numbers, such as the categories of pandas."""
    categories = getattr(getattr(column, "dtype", None), "categories", None)
    if categories is not None and np.asarray(categories).dtype.kind not in "biuf":
        shown = ", ".join(repr(one) for one in list(categories)[:3])
        raise JudgmentError(
            f"column {name!r} of X has categories such as {shown}, which are not numbers; give their codes "
            f"(X[{name!r}].cat.codes), and to split by category LambdaMART("
            f"lightgbm={{'categorical_feature': [{name!r}]}})"
        )
    for row, value in enumerate(column):
        try:
            float(value)
        except (TypeError, ValueError):
            raise JudgmentError(
                f"column {name!r} of X is not a number ({value!r}) in row {row + 1}; leave it out, or give numbers"
            ) from None


def ids_of_groups(qid: Any, group: Any, n_rows: int, what: str) -> Any:
    """Return the query of each row, from ids or from the sizes of queries."""
    if qid is not None:
        raise ParameterError(f"{what}qid and {what}group both say which rows are of one query; give one of them")
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any() or int(sizes.sum()) != n_rows:
        raise ParameterError(
            f"{what}group must have the number of rows of each query, {n_rows:,} in all; give those, or {what}qid"
        )
    return np.repeat(np.arange(len(sizes)), sizes)


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
    Rankers and this scorer ask for ``qid`` and ``item`` by themselves, so it is enough to switch scikit-learn's
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
        # our rankers get the queries, which some scale features by
        ours = {"qid": qid} if isinstance(estimator, Ranker) else {}
        scores = estimator.predict(X, **ours)
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
    into NaN and carry on (``error_score``), so they get something that raises once they read it.
    """
    text = (
        f"{what} does not know the query of each row; give qid= (one value for all rows if they are of one query); "
        "for GridSearchCV or cross_validate call sklearn.set_config(enable_metadata_routing=True) and give qid to fit, "
        "or to cross_validate in params"
    )
    frame = inspect.currentframe()
    while frame is not None:
        where = frame.f_globals.get("__name__"), frame.f_code.co_name
        if where == ("sklearn.model_selection._validation", "_score"):
            return _NoScore(text)  # type: ignore[return-value]
        frame = frame.f_back
    raise ParameterError(text)


def ndcg_scorer(k: int | None = 10, gain: str = "exponential") -> NDCGScorer:
    """Return a scorer for ``GridSearchCV(scoring=...)`` and ``cross_validate``; see :class:`NDCGScorer`."""
    return NDCGScorer(k, gain)


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
    return np.exp2(target) - 1


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
        return np.minimum(shares, 1.0)


@dataclass(eq=False)
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

    held: ValidationRows | None = None
    _: KW_ONLY
    k: int | None = 10
    gain: str = "exponential"
    patience: int | None = None
    n_steps: int = 0
    progress: Progress | None = None
    what: str = ""

    def __post_init__(self) -> None:
        held = self.held
        self.measure = None if held is None else ItemGain(held.lists, self.k, self.gain, held.target)
        self.best, self.best_iteration, self._waited = -np.inf, 0, 0
        self.by_query: list[Floats] = []
        """The nDCG of each validation query after every measured step."""
        self._rows: list[tuple[int, float | None, None, float | None]] = []

    def ndcg(self, scores: Floats) -> float:
        """Return the mean nDCG of the validation queries, and keep that of each; one score per place."""
        assert self.measure is not None
        self.by_query.append(self.measure.by_query(scores))
        return float(self.by_query[-1].mean())

    def note(
        self, step: int, *, objective: float | None = None, valid: float | None = None, scores: Floats | None = None
    ) -> bool:
        """Return whether this step is the best so far; ``scores`` of the validation rows' places give ``valid``.

        Without validation rows the last step is the best.
        """
        if scores is not None and self.measure is not None:
            valid = self.ndcg(scores)
        self._rows.append((step, objective, None, valid))
        if self.progress is not None:
            self.progress(min(step, self.n_steps), self.n_steps, self.what)
        better = valid is None or valid > self.best
        self._waited = 0 if better else self._waited + 1
        if better:
            self.best, self.best_iteration = -np.inf if valid is None else valid, step
        return better

    @property
    def is_exhausted(self) -> bool:
        """Whether patience is at its end."""
        return self.patience is not None and self._waited >= self.patience

    def curve(self) -> pl.DataFrame:
        """Return the learning curve: iteration, objective and nDCG of validation rows; in training none is measured."""
        return pl.DataFrame(self._rows, schema=CURVE, orient="row")


Fold: TypeAlias = tuple[ValidationRows, ValidationRows]
"""Rows to learn from, and rows of other queries to measure by."""


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
        others = np.setdiff1d(np.arange(lists.n_queries), parts[number])
        fold = rows_of(matrix, lists, others), rows_of(matrix, lists, parts[number])
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
) -> tuple[Floats, int] | None:
    """Return how copies of a ranker that learn from each fold do on its held-out queries; ``None`` where one cannot.

    It is the nDCG at ``k`` of that ``gain`` of the queries that have any, one row for each step of a fit. A fit that
    stops before the others stays as it is at its end, and ``done`` is called after each. The second is the step,
    counted from 1, with the highest mean.
    """
    measured: list[Floats] = []
    for learned, held in folds:
        ranker = make()
        watch = Watch(held, k=k, gain=gain, patience=getattr(ranker, "patience", None))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ranker.learn(learned.matrix, learned.lists, watch)
            except CrowdrankError:
                return None
        assert watch.measure is not None
        measured.append(np.array(watch.by_query)[:, watch.measure.ideal > 0])
        if done is not None:
            done()
    longest = max(len(steps) for steps in measured)
    padded = [np.concatenate([steps, np.repeat(steps[-1:], longest - len(steps), axis=0)]) for steps in measured]
    by_query = np.concatenate(padded, axis=1)
    return by_query, int(np.argmax(np.round(by_query.mean(axis=1), 12))) + 1


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
        with one_blas_thread():
            design = scoring_design(matrix, qid, self.scaling_)
            scores = design.scores(self.weights_)
        if design.rows is None:
            return scores
        of_rows = np.empty_like(scores)
        of_rows[design.rows] = scores
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

    def check(self) -> None:
        """Refuse to be fitted."""
        raise ParameterError("LinearScore holds weights that a joint method found; fit a ranker such as RankSVM()")
