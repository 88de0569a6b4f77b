"""Boosted regression trees that learn to put gain at the top."""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import re
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.files import plain
from ..errors import DataWarning, ParameterError, expect_package
from ..protocols import Counts, Floats, Ints, Progress
from ..wording import did_you_mean, expect_above, expect_at_least, expect_choices
from .estimator import GAINS, Ranker, ValidationRows, Watch, gains, held_out, query_folds, sample_queries
from .saving import TREES_AS_TEXT, Saved, whole_number
from .training_rows import Lists, Matrix

if TYPE_CHECKING:
    from .kernels.trees import TreeArrays

_LAMBDA_CHOICES = ("auto", "lightgbm", "own")
_BIN_SAMPLE_ROWS = 200_000
_MAX_LIGHTGBM_LEVELS = 1000
"""Distinct gains that LightGBM's own objective is given in a table."""

_MAX_LIGHTGBM_QUERY_ROWS = 10_000
"""Rows of a query that LightGBM's own objective takes."""

MAX_TREES, PATIENCE = 300, 30
"""Where the number of trees is learned: the most there may be, and how many without a better nDCG end a fit."""

_TREES_UNMEASURED = 100
"""Trees where no query can be held out: LightGBM's default."""

_MAX_ROWS_HELD_OUT = 200_000
"""Rows of the queries by which the number of trees is learned."""

# threshold (equal): cells of features from which on trees are grown by several threads
MIN_CELLS_THREADED = 1 << 20
"""Cells of features from which on trees are grown by several threads."""

_NAMES = tomllib.loads(Path(__file__).with_name("lightgbm.toml").read_text(encoding="utf-8"))
_OURS: dict[str, str] = _NAMES["ours"]
"""LightGBM's name -> ours."""

_LEAVES, _MIN_LEAF = (4, 31), (1, 20)
_QUERIES_PER_LEAF, _ITEMS_PER_LEAF = 50, 300
"""The smallest size and LightGBM's, up to which trees grow with queries and items."""

_LONGEST_LITERAL = 10_000

Class = TypeVar("Class", bound=type[Any])


@functools.cache
def _main_names() -> dict[str, str]:
    """Every name that LightGBM knows -> its main name."""
    from lightgbm.basic import _ConfigAliases

    known = _ConfigAliases._get_all_param_aliases()
    return {alias: main for main, aliases in known.items() for alias in (main, *aliases)}


def _translate(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return parameters under LightGBM's names as ours, and those that we have no name for under its main names."""
    names, ours, rest = _main_names(), dict[str, Any](), dict[str, Any]()
    for key, value in given.items():
        main = names.get(key)
        if main is None:
            hint = did_you_mean(key, [*names, *_OURS.values()])
            raise ParameterError(
                f"lambda_mart has no parameter {key!r}, nor has LightGBM; {hint}see crowdrank methods lambda_mart"
            )
        if main in _NAMES["refused"]:
            raise ParameterError(f"{key} cannot be set: {_NAMES['refused'][main]}")
        target, name = (ours, _OURS[main]) if main in _OURS else (rest, main)
        if name in target:
            raise ParameterError(f"{key} is given twice, under two of its names; leave one out")
        if isinstance(value, str) and len(value) <= _LONGEST_LITERAL:  # as the command line gives it
            with contextlib.suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                value = ast.literal_eval({"true": "True", "false": "False"}.get(value.lower(), value))
        target[name] = np.asarray(value).tolist() if isinstance(value, np.ndarray | tuple | list) else value
    return ours, rest


def take_lightgbm_names(cls: Class) -> Class:
    """Let the constructor and ``set_params`` of a ranker take LightGBM's names too; ``lightgbm`` has the others."""
    construct: Callable[..., None] = cls.__init__
    own = frozenset(inspect.signature(construct).parameters) - {"self"}

    def split(params: dict[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
        foreign = {key: value for key, value in params.items() if key not in own}
        if not foreign:
            return params
        ours, rest = _translate(foreign)
        both = sorted(ours.keys() & params.keys())
        if both:
            raise ParameterError(f"{both[0]} is given twice, once under LightGBM's name; leave one out")
        kept = {key: value for key, value in params.items() if key in own}
        merged = {**(kept.get("lightgbm") or before or {}), **rest}
        return {**kept, **ours, **({"lightgbm": merged} if merged else {})}

    @functools.wraps(construct)
    def construct_by_either_name(self: Any, **params: Any) -> None:
        construct(self, **split(params, None))

    def set_params(self: Any, **params: Any) -> Any:
        return super(cls, self).set_params(**split(params, self.lightgbm))  # type: ignore[arg-type]

    cls.__init__ = construct_by_either_name
    cls.set_params = set_params
    cls.own_names = staticmethod(lambda params: split({**params}, None))
    return cls


@take_lightgbm_names
@dataclass(kw_only=True, eq=False, repr=False)
class LambdaMART(Ranker):
    r"""LambdaMART: gradient-boosted trees on LambdaRank gradients.

    A pair of items whose gains :math:`g_i > g_j` differ pulls its scores apart by

    .. math:: \lambda_{ij} = \frac{|g_i - g_j| \, |D(r_i) - D(r_j)|}{\text{ideal DCG}}
              \cdot \frac{\sigma}{1 + e^{\sigma (s_i - s_j)}}, \qquad D(r) = \frac{1}{\log_2(1 + r)},

    what nDCG would lose if the two swapped their ranks :math:`r`, times how surely the scores :math:`s` have them the
    wrong way round [Burges10]_. The trees are LightGBM's [Ke17]_.

    When to use
    -----------
    Use it with hundreds of labelled queries or more and features that interact. With few queries or noisy labels a
    linear ranker such as ``list_mle`` or ``list_net`` is the safer choice.

    Parameters
    ----------
    n_trees
        Number of trees, the most there may be where ``patience`` is set. ``None`` learns it from held-out queries, up
        to 300, see the notes.
    learning_rate
        How much of each tree is added; lower it, with more trees, for a smoother fit.
    n_leaves
        Most leaves of a tree; raise it where many queries have features that interact. ``None``: one for 50 queries and
        300 items, from 4 up to 31; where ``n_trees`` is given 31, as in LightGBM.
    min_leaf
        Fewest items in a leaf; raise it against noise. ``None``: half the root of the number of items, up to 20; where
        ``n_trees`` is given 20, as in LightGBM.
    truncation
        Pairs count where at least one item is among this many first ranks; well above the places that matter is best.
    sigma
        How steeply the pull falls with the difference of scores; raise it to leave pairs alone that are in order.
    gain
        ``"exponential"``: :math:`2^y - 1` of the target :math:`y`, any number from 0 on; ``"linear"`` or ``"given"``:
        the target itself.
    normalize
        Whether pairs are divided by how far apart their scores are, and the pairs of a query by their sum, as LightGBM
        does it, so queries with many pairs do not outweigh the others.
    ridge
        Pull of the leaves towards 0; raise it where labels are few or noisy.
    feature_share
        Share of the features that each tree may use; lower it for trees that differ more.
    patience
        Stop after this many trees without a better nDCG on the validation queries, and keep the best number; ``None``
        grows all trees, and keeps the best number of them where there is an ``eval_set``, and is 30 where the number
        of trees is learned.
    k
        Places of the nDCG that validation queries are measured by.
    lambdas
        Whose slopes: ``"lightgbm"``; ``"own"``, which know items of several rows and weights of pairs; ``"auto"``:
        LightGBM's where every item has one row and all weights are equal, our own otherwise.
    n_threads
        Threads for growing trees. 0: one below a million cells of features, where several cost more than they save as
        soon as another process keeps a core busy, and all cores from there on. The trees are the same.
    seed
        Seed of the random draws.
    lightgbm
        Other parameters of LightGBM by their own names, such as ``bagging_fraction`` and ``bagging_freq``,
        ``monotone_constraints`` or ``categorical_feature``. They can be given directly too, and so can those that have
        a name here (``num_leaves``, ``reg_lambda``, ``n_estimators``, ...).

    Attributes
    ----------
    trees_
        The trees as plain arrays, which predict what LightGBM predicts, to the last bit.
    booster_
        LightGBM's booster, where the ranker was fitted here; a file holds the trees alone.
    n_trees_
        Number of trees that were kept.
    curve_
        The learning curve: nDCG on the validation queries after each tree.
    n_features_in_, feature_names_in_
        Number of features, and their names where X had any.

    Notes
    -----
    By default the size of the trees depends on the data: a leaf is a mean over the items that fall into it, and with
    few queries, or few and noisy grades, many leaves learn the noise. The number of trees is the one with the best mean
    nDCG on held-out queries: each fifth in its turn, or one fifth from 1,000 queries on, after which all rows are
    learned from. With an ``eval_set`` that decides instead. From 1,550 queries and 9,300 items on leaves are
    LightGBM's own; where ``n_trees`` is given all defaults are LightGBM's, ``LambdaMART(n_trees=100)`` being
    LightGBM as it comes. Where no query can be held out 100 trees are grown.

    Features need no scaling, and may be missing (NaN). Targets are real numbers: LightGBM takes whole ones only, so
    it is given the distinct gains as a table; above 1,000 distinct ones, and for queries of more than 10,000 rows,
    our own slopes are used. Items of equal score, as all are before the first tree, rank in the order of their rows, as
    in LightGBM, so another order of a query's rows may give slightly other trees.

    A row weight in LightGBM multiplies that row's slope alone, which breaks what makes a pair a pair: that its two
    slopes cancel. Our own slopes have :math:`w_i w_j` before every pair, relative to the query's mean weight of an
    item, which then multiplies them all; so a constant weight of a query's rows is a weight of the query. Otherwise our
    slopes are LightGBM's, but it looks the logistic function up in a table of a million steps and we compute it: the
    first tree is the same to 1e-8, later ones to 1e-5 until such a difference decides a split, which on MQ2008 is after
    some 50 to 100 trees.

    Where items have several rows (``item=``), such as one for each judgment: ranks, truncation and ideal DCG count
    items; rows of one item form no pair; slopes do not grow with the number of copies; ``min_leaf``, the least
    curvature of a leaf and ``ridge`` are scaled by rows per item; and validation is measured on items.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.random((400, 3)), np.repeat(np.arange(20), 20)
    >>> y = np.floor(3 * X[:, 0])
    >>> ranker = LambdaMART().fit(X, y, qid=qid)
    >>> round(ranker.score(X, y, qid=qid), 2)
    1.0
    """

    n_trees: int | None = None
    learning_rate: float = 0.1
    n_leaves: int | None = None
    min_leaf: int | None = None
    truncation: int = 30
    sigma: float = 1.0
    gain: str = "exponential"
    normalize: bool = True
    ridge: float = 0.0
    feature_share: float = 1.0
    patience: int | None = None
    k: int = 10
    lambdas: str = "auto"
    n_threads: int = 0
    seed: int = 0
    lightgbm: Mapping[str, Any] | None = None

    _takes_missing: ClassVar[bool] = True
    _steps: ClassVar[str] = "trees"

    def check(self) -> None:
        """Refuse parameters outside their range."""
        expect_choices(self, gain=GAINS, lambdas=_LAMBDA_CHOICES)
        expect_at_least(self, 1, "n_trees", "min_leaf", "truncation", "k")
        expect_at_least(self, 2, "n_leaves")
        expect_at_least(self, 1, "patience", hint="use None for all trees")
        expect_above(self, 0, "learning_rate", "sigma")
        if not 0 < self.feature_share <= 1:
            raise ParameterError(f"feature_share={self.feature_share} must be above 0 and at most 1")
        expect_at_least(self, 0, "ridge")

    def _watch(self, held: ValidationRows | None, progress: Progress | None) -> Watch:
        """Validation by nDCG@k of the chosen gain."""
        watch = super()._watch(held, progress)
        watch.n_steps, watch.what = self.n_trees or MAX_TREES, "lambda_mart"
        watch.patience = PATIENCE if self.patience is None and self.n_trees is None else self.patience
        return watch

    def fit_clicks(self, X: Any, clicked: ArrayLike, *, qid: Any, position: ArrayLike) -> Self:
        """Learn from raw clicks with LightGBM's own correction of position bias.

        LightGBM fits a bias for each position beside the trees, and takes it out of the scores. A number of trees that
        is not given is learned from held-out clicks without that correction.

        Parameters
        ----------
        X
            One row of features for each item shown.
        clicked
            Whether it was clicked, 1 or 0.
        qid
            The impression that each row belongs to.
        position
            Where it was shown, 1 is the first.
        """
        shown = np.asarray(position)
        hit = np.asarray(clicked, np.float64)
        if shown.shape != hit.shape or hit.ndim != 1:
            raise ParameterError(f"there are {hit.size} clicks and {shown.size} positions; give one of each per row")
        if not np.isin(hit, (0.0, 1.0)).all():
            raise ParameterError("clicked has other values than 0 and 1; say for each row whether it was clicked")
        self._shown_at = np.unique(shown, return_inverse=True)[1].astype(np.int32)
        try:
            return self.fit(X, hit, qid=qid)
        finally:
            del self._shown_at

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Grow the trees."""
        expect_package("lightgbm")
        import lightgbm

        n_trees = self.n_trees or (MAX_TREES if watch.held is not None else self._held_out_trees(matrix, lists, watch))
        min_leaf = self.sizes(lists)[1]
        gain = gains(lists.target, self.gain)
        levels = np.unique(gain)
        own = self._uses_own_slopes(lists, len(levels))
        shown: Ints | None = getattr(self, "_shown_at", None)
        if shown is not None and own:
            raise ParameterError("positions go with LightGBM's own slopes; leave lambdas='own' out")
        extra, of_data = self._extra_options(matrix)
        few_cells = lists.n_places * matrix.n_features < MIN_CELLS_THREADED
        options = self._options(lists, own) | {"num_threads": self.n_threads or int(few_cells)} | extra
        label = np.searchsorted(levels, gain)
        if own:
            from .kernels.losses import swap_gains

            slopes_at = swap_gains(lists, gain, truncation=self.truncation, sigma=self.sigma, normalize=self.normalize)

            def objective(scores: Any, data: Any) -> tuple[Any, Any]:
                slopes, bends = slopes_at(scores)
                return slopes.astype(np.float32), bends.astype(np.float32)

            options["objective"] = objective
        else:
            options |= {"objective": "lambdarank", "label_gain": ",".join(map(repr, levels.tolist()))}
        of_data |= {"params": {name: options[name] for name in _NAMES["of_data"] if name in options}}
        of_data |= {"position": shown if shown is None or lists.rows is None else shown[lists.rows]}
        data = lightgbm.Dataset(lightgbm_rows(matrix, lists), label, group=np.diff(lists.offsets), **of_data)
        validation: dict[str, Any] = {}
        if (held := watch.held) is not None:
            rows = data.create_valid(lightgbm_rows(held.matrix, held.lists), np.zeros(held.lists.n_places))
            validation = {"valid_sets": [rows], "feval": lambda scores, data: ("ndcg", watch.ndcg(scores), True)}

        def note_tree(state: Any) -> None:
            results = state.evaluation_result_list
            watch.note(state.iteration + 1, valid=results[0][2] if results else None)
            if watch.is_exhausted:
                raise lightgbm.callback.EarlyStopException(watch.best_iteration - 1, results)

        try:
            booster = lightgbm.train(options, data, num_boost_round=n_trees, callbacks=[note_tree], **validation)
        except lightgbm.basic.LightGBMError as error:
            why = plain(str(error))[:200]
            said = f"LightGBM could not grow the trees ({why}); change the parameters of lambda_mart"
            if "num_features" in str(error):
                leaf = f"min_leaf={min_leaf} items in a leaf and {matrix.n_rows:,} rows"
                said = f"no feature can be split with {leaf}; lower min_leaf"
            raise ParameterError(said) from None
        self.n_trees_ = watch.best_iteration if watch.held is not None else booster.current_iteration()
        text = booster.model_to_string(num_iteration=self.n_trees_)
        self.trees_ = Trees.from_lightgbm(text.encode())
        if not self.trees_.gain.any():
            warnings.warn(
                f"lambda_mart found nothing to split with min_leaf={min_leaf} items in a leaf and "
                f"{matrix.n_rows:,} rows, so that all scores are equal; lower min_leaf, or check the features",
                DataWarning,
                stacklevel=2,
            )
        # read from its own text a booster is without what it needed for training, which is as large as the bins
        self.booster_ = lightgbm.Booster(model_str=text)

    def _extra_options(self, matrix: Matrix) -> tuple[dict[str, Any], dict[str, Any]]:
        """LightGBM's parameters that have no name here, for growing trees and for reading the data."""
        ours, rest = _translate(self.lightgbm or {})
        if ours:
            name = next(iter(ours))
            raise ParameterError(f"lightgbm= has {name} under another name; set {name} of lambda_mart itself")
        given = rest.pop("categorical_feature", None)
        if given is None:
            return rest, {}
        wanted = given.removeprefix("name:").split(",") if isinstance(given, str) else list(np.atleast_1d(given))
        places = []
        for one in wanted:
            column = one.strip() if isinstance(one, str) else one
            if matrix.names is not None and column in matrix.names:
                places.append(matrix.names.index(column))
            elif str(column).isdigit() and int(column) < matrix.n_features:
                places.append(int(column))
            else:
                raise ParameterError(
                    f"categorical_feature has {column!r}, which is not a feature; name features, or count them from 0"
                )
        return rest, {"categorical_feature": places}

    def sizes(self, lists: Lists) -> tuple[int, int]:
        """Return the most leaves of a tree and the fewest items in a leaf, those that go with the data unless given."""
        if self.n_trees is not None:
            return self.n_leaves or _LEAVES[1], self.min_leaf or _MIN_LEAF[1]
        n_items = float(lists.n_items.sum())
        n_leaves = int(np.clip(min(lists.n_queries / _QUERIES_PER_LEAF, n_items / _ITEMS_PER_LEAF), *_LEAVES))
        return self.n_leaves or n_leaves, self.min_leaf or int(np.clip(round(0.5 * n_items**0.5), *_MIN_LEAF))

    def _held_out_trees(self, matrix: Matrix, lists: Lists, watch: Watch) -> int:
        """The number of trees that is best on held-out queries."""
        n_leaves, min_leaf = self.sizes(lists)
        settings = {"n_trees": MAX_TREES, "patience": PATIENCE, "n_leaves": n_leaves, "min_leaf": min_leaf}
        some = sample_queries(matrix, lists, _MAX_ROWS_HELD_OUT, self.seed)
        folds, done = list(query_folds(matrix, some, self.seed)), count(1)

        def tell() -> None:
            if watch.progress is not None:
                watch.progress(next(done), len(folds) + 1, "lambda_mart, number of trees")

        if not folds:
            return _TREES_UNMEASURED
        measured = held_out(lambda: LambdaMART(**{**self.get_params(), **settings}), folds, self.k, self.gain, tell)
        return _TREES_UNMEASURED if measured is None else measured[1]

    def _uses_own_slopes(self, lists: Lists, n_levels: int) -> bool:
        """Whether our own slopes are used, or a sentence where LightGBM's are asked for and would be wrong."""
        plain = lists.item is None and (lists.weight is None or bool((lists.weight == lists.weight[0]).all()))
        longest = int(np.diff(lists.offsets).max())
        fits = plain and n_levels <= _MAX_LIGHTGBM_LEVELS and longest <= _MAX_LIGHTGBM_QUERY_ROWS
        if self.lambdas != "lightgbm":
            return self.lambdas == "own" or not fits
        if not fits:
            why = "weights or several rows for an item"
            if plain:
                many = n_levels > _MAX_LIGHTGBM_LEVELS
                why = f"{n_levels:,} distinct gains" if many else f"a query of {longest:,} rows"
            raise ParameterError(f"lambdas='lightgbm' cannot take {why}; use lambdas='auto', or say the queries (qid=)")
        return False

    def _options(self, lists: Lists, own: bool) -> dict[str, Any]:
        """LightGBM's parameters."""
        # rows that lie scattered are sampled one by one, as 64-bit numbers: half of LightGBM's usual number will do
        sample = _BIN_SAMPLE_ROWS if lists.rows is None else _BIN_SAMPLE_ROWS // 2
        weight = float(lists.item_weights().mean()) if own else 1.0
        n_leaves, min_leaf = self.sizes(lists)
        rows_per_item = lists.n_places / float(lists.n_items.sum())
        return {
            "learning_rate": self.learning_rate, "lambda_l2": self.ridge * weight,
            "min_sum_hessian_in_leaf": 1e-3 * weight, "num_leaves": n_leaves,
            "min_data_in_leaf": max(1, round(min_leaf * rows_per_item)),
            "feature_fraction": self.feature_share, "lambdarank_truncation_level": self.truncation,
            "lambdarank_norm": self.normalize, "sigmoid": self.sigma, "metric": "none", "seed": self.seed,
            "deterministic": True, "force_row_wise": True, "verbosity": -1, "bin_construct_sample_cnt": sample,
        }  # fmt: skip

    def _score_rows(self, matrix: Matrix, qid: Any) -> Floats:
        """Sum of the trees."""
        return self.trees_.sums(matrix, self.n_threads)

    def _importance(self) -> Floats:
        """Share of each feature in what the splits gained."""
        gained = self.trees_.gain
        return gained / max(float(gained.sum()), 1e-300)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The trees."""
        facts: dict[str, Any] = {"n_trees": self.n_trees_}
        return facts | ({"lightgbm": dict(self.lightgbm)} if self.lightgbm else {}), self.trees_.numbers()

    def to_saved(self) -> Saved:
        """Return what a file holds of the fitted ranker; a file has numbers and short texts as parameters only."""
        saved = super().to_saved()
        return replace(saved, params={name: value for name, value in saved.params.items() if name != "lightgbm"})

    def restore(self, saved: Saved) -> Self:
        """Take over what was saved of a fitted ranker; files of format 1 have the trees as LightGBM writes them."""
        if TREES_AS_TEXT in saved.numbers:
            text = saved.numbers[TREES_AS_TEXT].tobytes()
            saved = replace(saved, numbers=Trees.from_lightgbm(text).numbers())
        return super().restore(saved)

    def _restore(self, facts: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]]) -> None:
        """The trees."""
        self.trees_ = Trees.of(numbers)
        self.n_trees_ = whole_number(facts["n_trees"])
        if not isinstance(facts.get("lightgbm", {}), dict):
            raise ValueError("its parameters of LightGBM are not a table")
        self.lightgbm = facts.get("lightgbm")
        if len(self.trees_.gain) != self.n_features_in_:
            raise ValueError(f"trees of {len(self.trees_.gain)} features for {self.n_features_in_}")


# Trees as plain arrays; rows as LightGBM reads them, and its text read by a parser of our own

_MAX_LEAVES = 1 << 30
"""The number of a child is twice that of a split, and fits 32 bits."""

_MAX_ABS_SUM = 1e300

_BATCH_ROWS = 4096
"""Rows that LightGBM asks for at a time."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Regression trees whose leaves are added, one tree after the other.

    Splits and leaves of all trees stand one after the other, and are numbered within their tree. A value no larger than
    the threshold of a split goes left.

    Parameters
    ----------
    leaves
        Number of leaves of each tree, which has one split less.
    feature, threshold
        What each split compares.
    bits
        1 where missing values (NaN) go left, plus 2 where 0 does.
    left, right
        Children of each split: a later split of its tree, or ``-1 - leaf``.
    values
        What each leaf adds.
    gain
        What the splits on each feature gained in training.
    category_starts, category_words
        Splits on categories have 4 for their bits, and for a threshold the number of their set: the bits of the words
        from its start on are set for categories that go left.

    Examples
    --------
    >>> one = np.ones(1, np.int32)
    >>> Trees(2 * one, 0 * one, np.array([0.5]), np.array([3], "u1"), -one, -2 * one, np.array([-1.0, 1.0]), np.ones(1))
    Trees(1 trees, 2 leaves, 1 features)
    """

    leaves: Ints
    feature: Ints
    threshold: Floats
    bits: NDArray[np.uint8]
    left: Ints
    right: Ints
    values: Floats
    gain: Floats
    category_starts: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    category_words: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))

    def __post_init__(self) -> None:
        """Refuse arrays that are no trees: the sum over such could read what is not there, or never end."""
        for name, array in self.numbers().items():
            if array.ndim != 1 or array.dtype != _DTYPES[name]:
                raise ValueError(f"trees with {name} of type {array.dtype} in {array.ndim} dimensions")
        if not len(self.leaves) or self.leaves.min() < 1 or self.leaves.sum(dtype=np.int64) > _MAX_LEAVES:
            raise ValueError("no tree, a tree without a leaf, or too many leaves")
        splits, n_splits = self._splits, int(self._splits.sum())
        lengths = dict.fromkeys(("feature", "threshold", "bits", "left", "right"), n_splits)
        for name, length in (lengths | {"values": n_splits + len(self)}).items():
            if len(getattr(self, name)) != length:
                raise ValueError(f"{len(getattr(self, name))} entries of {name} for trees that need {length}")
        own, last = np.arange(n_splits) - np.repeat(self._first_splits, splits), np.repeat(splits, splits)
        for child in (self.left, self.right):
            if not np.where(child < 0, ~child <= last, (child > own) & (child < last)).all():
                raise ValueError("trees with a split whose child is not below it")
        # a tree of n splits has 2 n children; none can be missing where none stands twice
        if len(np.unique(self.arrays.children)) != 2 * n_splits:
            raise ValueError("trees in which two splits share a child")
        if n_splits and not (
            self.feature.min() >= 0 and self.feature.max() < len(self.gain) and self.bits.max() <= CATEGORIES
        ):
            raise ValueError(f"splits on features that are not among the {len(self.gain)} there are")
        number, starts = self.threshold[self.bits == CATEGORIES], self.category_starts
        if not len(starts):
            if len(number) or len(self.category_words):
                raise ValueError("trees with splits on categories, but without categories")
        else:
            whole = starts[0] == 0 and starts[-1] == len(self.category_words) and bool((np.diff(starts) >= 0).all())
            if not whole or not bool(((number >= 0) & (number < len(starts) - 1) & (number == np.floor(number))).all()):
                raise ValueError("trees with splits on categories that are not there")
        highest = np.maximum.reduceat(np.abs(self.values), self._first_leaves)
        for name, sizes in (("values", highest), ("gain", np.abs(self.gain))):
            if not sizes.max(initial=0.0) <= _MAX_ABS_SUM / max(len(sizes), 1):
                raise ValueError(f"trees with {name} that are missing or too large")
        # where only missing values go right, LightGBM's threshold is infinity
        if np.isnan(self.threshold).any() or self.gain.min(initial=0.0) < 0:
            raise ValueError("trees with a missing threshold or a negative gain")

    def __len__(self) -> int:
        return len(self.leaves)

    def __repr__(self) -> str:
        return f"Trees({len(self):,} trees, {len(self.values):,} leaves, {len(self.gain):,} features)"

    @cached_property
    def _splits(self) -> Counts:
        """Number of splits of each tree."""
        return self.leaves.astype(np.int64) - 1

    @cached_property
    def _first_leaves(self) -> Counts:
        """First leaf of each tree."""
        return np.cumsum(self.leaves, dtype=np.int64) - self.leaves

    @cached_property
    def _first_splits(self) -> Counts:
        """First split of each tree."""
        return np.cumsum(self._splits) - self._splits

    @cached_property
    def arrays(self) -> TreeArrays:
        """The trees as the kernel wants them, splits and leaves numbered throughout."""
        from .kernels.trees import TreeArrays

        first_split, first_leaf = (np.repeat(first, self._splits) for first in (self._first_splits, self._first_leaves))
        children = np.stack([self.left, self.right], axis=1).astype(np.int64)
        children += np.where(children < 0, -first_leaf[:, None], first_split[:, None])
        roots = np.where(self._splits > 0, self._first_splits, ~self._first_leaves)
        return TreeArrays(
            self.feature, self.threshold, self.bits, children.ravel().astype(np.int32), roots.astype(np.int32),
            self.values, self.category_starts, self.category_words,
        )  # fmt: skip

    def numbers(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as a file holds them."""
        numbers = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: array for name, array in numbers.items() if len(array) or name not in _OF_CATEGORIES}

    @classmethod
    def of(cls, numbers: Mapping[str, NDArray[Any]]) -> Trees:
        """Return the trees that a file holds, or raise where they are none."""
        names = [one.name for one in fields(cls) if one.name in numbers or one.name not in _OF_CATEGORIES]
        return cls(**{name: numbers[name] for name in names})

    @classmethod
    def from_lightgbm(cls, text: bytes) -> Trees:
        """Return the trees of LightGBM's text, or raise where it is not as we have it written: no categories, ..."""
        head, blocks = _parts_of(text)
        n_features = _whole_number(head, b"max_feature_idx", 1 << 31) + 1
        if head.get(b"feature_infos", b"").count(b" ") + 1 != n_features:
            raise ValueError(f"LightGBM's text does not describe {n_features} features")
        columns = _one_after_the_other([_tree(block) for block in blocks])
        gained = np.maximum(columns.pop("gained"), 0.0)
        if ((columns["feature"] < 0) | (columns["feature"] >= n_features)).any():
            raise ValueError(f"splits on features that are not among the {n_features} there are")
        gain = np.bincount(columns["feature"], gained, n_features).astype(np.float64)
        return cls(**columns, gain=gain)

    @classmethod
    def join(cls, parts: Sequence[Trees]) -> Trees:
        """Return the trees of several, one after the other, all on the same features."""
        if len(parts) == 1:
            return parts[0]
        names = [one.name for one in fields(cls) if one.name != "gain"]
        joined = _one_after_the_other([{name: getattr(part, name) for name in names} for part in parts])
        return cls(**joined, gain=np.sum([part.gain for part in parts], axis=0))

    def sums(self, matrix: Matrix, n_threads: int = 0) -> Floats:
        """Return the sum of the trees for each row, equal to LightGBM's to the last bit; 0 threads for all cores.

        Rows of a sparse matrix give what they give as dense ones. LightGBM has one exception: -1e-35, the largest
        number that it takes for 0, is one in a dense matrix only.
        """
        from .kernels.trees import sum_trees

        if not matrix.sparse:
            return sum_trees(self.arrays, matrix.values, n_threads)
        used, place = np.unique(self.feature, return_inverse=True)
        trees = self.arrays._replace(feature=place.astype(np.int32))
        narrow = matrix if len(used) == matrix.n_features else Matrix(matrix.values[:, used])
        sums = np.empty(matrix.n_rows)
        for begin, end in pairwise(narrow.bounds(matrix.n_rows).tolist()):
            sums[begin:end] = sum_trees(trees, narrow.block(None, begin, end), n_threads)
        return sums


_OF_CATEGORIES = ("category_starts", "category_words")

_DTYPES = {
    "leaves": "<i4", "feature": "<i4", "threshold": "<f8", "bits": "|u1", "left": "<i4", "right": "<i4",
    "values": "<f8", "gain": "<f8", "category_starts": "<i4", "category_words": "<u4",
}  # fmt: skip

_WHOLE, _WORDS, _DECIMAL = (re.compile(kind) for kind in (rb"[-0-9 ]+", rb"[0-9 ]+", rb"[-+.0-9einf ]+"))

# the bits of LightGBM's decision_type
_DEFAULT_LEFT, _ZERO_IS_MISSING, _NAN_IS_MISSING = 2, 4, 8
_DECISIONS = (0, 2, 4, 6, 8, 10)
"""Decisions on numbers; odd ones are on categories."""

CATEGORIES = 4
"""Bits of a split on categories."""


def _parts_of(text: bytes) -> tuple[dict[bytes, bytes], list[bytes]]:
    """What LightGBM's text says of the model, and the text of each tree."""
    head, first_tree, rest = text.partition(b"\n\nTree=0\n")
    body, ended, _ = rest.partition(b"\n\n\nend of trees\n")
    if not (head.startswith(b"tree\nversion=v4\n") and first_tree and ended):
        raise ValueError("the trees are not in LightGBM's format")
    facts = _facts(head.removeprefix(b"tree\n"))
    for name, wanted in ((b"num_class", b"1"), (b"num_tree_per_iteration", b"1")):
        if facts.get(name) != wanted:
            raise ValueError(f"the trees have {name.decode()} other than {wanted.decode()}")
    blocks = body.split(b"\n\n\nTree=")
    for number, block in enumerate(blocks[1:], 1):
        label, _, blocks[number] = block.partition(b"\n")
        if label != b"%d" % number:
            raise ValueError(f"tree {number} is not where it should be")
    return facts, blocks


def _facts(text: bytes) -> dict[bytes, bytes]:
    """Names and values, one pair a line and none twice."""
    lines = text.split(b"\n")
    pairs = [line.split(b"=", 1) for line in lines]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("a line of the trees is not a name and a value")
    facts = {pair[0]: pair[1] for pair in pairs}
    if len(facts) != len(lines):
        raise ValueError("a line of the trees appears twice")
    return facts


def _tree(block: bytes) -> dict[str, NDArray[Any]]:
    """Arrays of one tree."""
    facts = _facts(block)
    n_sets = _whole_number(facts, b"num_cat", _MAX_LEAVES)
    if facts.get(b"is_linear", b"0") != b"0" or (n_sets > 0 and b"cat_boundaries" not in facts):
        raise ValueError("trees with categories or linear leaves that this version does not know")
    starts = _list(facts, b"cat_boundaries", _WHOLE, n_sets + 1) if n_sets else np.zeros(0, np.int64)
    words = _list(facts, b"cat_threshold", _WORDS, int(starts[-1]), 1 << 32) if n_sets else np.zeros(0, np.int64)
    n_leaves = _whole_number(facts, b"num_leaves", _MAX_LEAVES)
    names = {"feature": b"split_feature", "decision": b"decision_type", "left": b"left_child", "right": b"right_child"}
    splits = {ours: _list(facts, name, _WHOLE, n_leaves - 1).astype(np.int32) for ours, name in names.items()}
    decision = splits.pop("decision")
    threshold = _list(facts, b"threshold", _DECIMAL, n_leaves - 1)
    by_set = decision % 2 == 1
    if not np.isin(decision[~by_set], _DECISIONS).all() or (by_set.any() and not n_sets):
        raise ValueError("trees with splits on categories that are not there, or of an unknown kind")
    default, zero = decision & _DEFAULT_LEFT > 0, threshold >= 0
    missing = np.where(decision < _ZERO_IS_MISSING, zero, default)
    zero = np.where(decision & _ZERO_IS_MISSING > 0, default, zero)
    return {
        **splits,
        "leaves": np.array([n_leaves], np.int32),
        "threshold": threshold,
        "bits": np.where(by_set, CATEGORIES, missing + 2 * zero).astype(np.uint8),
        "category_starts": starts.astype(np.int32),
        "category_words": words.astype(np.uint32),
        "values": _list(facts, b"leaf_value", _DECIMAL, n_leaves),
        "gained": _list(facts, b"split_gain", _DECIMAL, n_leaves - 1),
    }


def _one_after_the_other(trees: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Arrays of trees together; sets of categories are numbered behind those of the trees before."""
    joined = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    if len(joined["category_words"]):
        ends = [tree["category_starts"][1:] for tree in trees]  # trees without categories have no start
        words = np.cumsum([0, *(len(tree["category_words"]) for tree in trees)])
        starts = np.concatenate([[0], *(end + before for end, before in zip(ends, words[:-1], strict=True))])
        sets = np.cumsum([0, *(len(end) for end in ends)])
        first = np.repeat(sets[:-1], [len(tree["threshold"]) for tree in trees])
        joined["category_starts"] = starts.astype(np.int32)
        joined["threshold"] = joined["threshold"] + np.where(joined["bits"] == CATEGORIES, first, 0)
    return joined


def _whole_number(facts: Mapping[bytes, bytes], name: bytes, most: int) -> int:
    """A whole number from 0 up to ``most``."""
    text = facts.get(name, b"")
    if not re.fullmatch(rb"\d{1,10}", text) or int(text) > most:
        raise ValueError(f"the trees have {name.decode()} {text[:20].decode(errors='replace')!r}")
    return int(text)


def _list(
    facts: Mapping[bytes, bytes], name: bytes, kind: re.Pattern[bytes], length: int, bound: int = 1 << 31
) -> NDArray[Any]:
    """Numbers of a line, as many as there have to be; whole ones are below a bound."""
    text, dtype = facts.get(name, b""), np.float64 if kind is _DECIMAL else np.int64
    numbers: NDArray[Any] = np.zeros(0, dtype)
    if kind.fullmatch(text):
        with contextlib.suppress(ValueError, OverflowError):
            numbers = np.array(text.split(b" ")).astype(dtype)
    if len(numbers) != length:
        raise ValueError(f"the trees have other {name.decode()} than {length} numbers")
    if dtype is np.int64 and np.abs(numbers).max(initial=0) >= bound:
        raise ValueError(f"the trees have {name.decode()} too large for 32 bits")
    return numbers


def lightgbm_rows(matrix: Matrix, lists: Lists) -> Any:
    """Return the rows of the matrix query after query; in another order they are read in batches, not copied."""
    if lists.rows is None:
        return matrix.values
    if matrix.sparse:
        return matrix.values[lists.rows]
    from lightgbm import Sequence as Stretches

    rows, values = lists.rows, matrix.values

    class RowsByPlace(Stretches):
        """Places as LightGBM asks for them, by number, by stretch or by list."""

        batch_size = _BATCH_ROWS

        def __getitem__(self, places: Any) -> Any:
            return values[rows[places]].astype(np.float64)

        def __len__(self) -> int:
            return len(rows)

    return RowsByPlace()
