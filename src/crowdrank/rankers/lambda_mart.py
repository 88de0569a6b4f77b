"""Boosted regression trees that learn to put gain at the top."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.files import plain
from ..errors import DataWarning, ParameterError
from ..protocols import Floats, Ints, Progress
from ..wording import expect_above, expect_at_least, expect_choices
from .estimator import Ranker
from .lightgbm_names import data_options, take_lightgbm_names, translate
from .lists import Lists
from .losses import swap_gains
from .matrix import Matrix
from .saving import TREES_AS_TEXT, Saved, whole_number
from .stopping import GAINS, ValidationRows, Watch, gains
from .trees import Trees, lightgbm_rows

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

MIN_CELLS_THREADED = 1 << 20
"""Cells of features from which on trees are grown by several threads."""

_LEAVES, _MIN_LEAF = (4, 31), (1, 20)
_QUERIES_PER_LEAF, _ITEMS_PER_LEAF = 50, 300
"""The smallest size and LightGBM's, up to which trees grow with queries and items."""


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
    item, which then multiplies them all; so a constant weight of a query's rows is a weight of the query.

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

    def _check(self) -> None:
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
        if held is None and self.patience is not None:
            raise ParameterError("patience= counts trees without a better nDCG on validation queries; give eval_set=")
        patience = PATIENCE if self.patience is None and self.n_trees is None else self.patience
        return Watch(
            held, k=self.k, gain=self.gain, patience=patience, n_steps=self.n_trees or MAX_TREES, progress=progress,
            what="lambda_mart",
        )  # fmt: skip

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

    def _positions(self, lists: Lists, own: bool) -> Ints | None:
        """Position of each row as LightGBM reads them, where the ranker learns from clicks."""
        shown: Ints | None = getattr(self, "_shown_at", None)
        if shown is None:
            return None
        if own:
            raise ParameterError("positions go with LightGBM's own slopes; leave lambdas='own' out")
        return shown if lists.rows is None else shown[lists.rows]

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Grow the trees."""
        import lightgbm

        n_trees = self.n_trees or (MAX_TREES if watch.held is not None else self._held_out_trees(matrix, lists, watch))
        n_leaves, min_leaf = self.sizes(lists)
        gain = gains(lists.target, self.gain)
        levels = np.unique(gain)
        own = self._uses_own_slopes(lists, len(levels))
        options = self._options(lists, own) | _leaf_options(lists, n_leaves, min_leaf)
        extra, of_data = self._extra_options(matrix)
        options |= {"num_threads": self._threads(lists.n_places * matrix.n_features), **extra}
        label = np.searchsorted(levels, gain)
        if own:
            options["objective"] = _objective(self, lists, gain)
        else:
            options |= {"objective": "lambdarank", "label_gain": ",".join(map(repr, levels.tolist()))}
        data = lightgbm.Dataset(
            lightgbm_rows(matrix, lists), label, group=np.diff(lists.offsets), params=_options_of_data(options),
            position=self._positions(lists, own), **of_data,
        )  # fmt: skip
        held = None if watch.held is None else _held_data(watch.held, data)
        try:
            booster = lightgbm.train(
                options, data, num_boost_round=n_trees, valid_sets=[] if held is None else [held],
                feval=None if held is None else _measure(watch), callbacks=[_tree_callback(watch)],
            )  # fmt: skip
        except lightgbm.basic.LightGBMError as error:
            raise ParameterError(_complaint(error, min_leaf, matrix.n_rows)) from None
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

    def _threads(self, n_cells: int) -> int:
        """Threads that grow trees on this many cells of features, in LightGBM's words: 0 for all cores."""
        return self.n_threads or int(n_cells < MIN_CELLS_THREADED)

    def _extra_options(self, matrix: Matrix) -> tuple[dict[str, Any], dict[str, Any]]:
        """LightGBM's parameters that have no name here, for growing trees and for reading the data."""
        ours, rest = translate(self.lightgbm or {}, "lambda_mart")
        if ours:
            name = next(iter(ours))
            raise ParameterError(f"lightgbm= has {name} under another name; set {name} of lambda_mart itself")
        of_data = data_options(rest, matrix.names, matrix.n_features)
        return {name: value for name, value in rest.items() if name != "categorical_feature"}, of_data

    def sizes(self, lists: Lists) -> tuple[int, int]:
        """Return the most leaves of a tree and the fewest items in a leaf, those that go with the data unless given."""
        if self.n_trees is not None:
            return self.n_leaves or _LEAVES[1], self.min_leaf or _MIN_LEAF[1]
        n_items = float(lists.n_items.sum())
        n_leaves = int(np.clip(min(lists.n_queries / _QUERIES_PER_LEAF, n_items / _ITEMS_PER_LEAF), *_LEAVES))
        min_leaf = int(np.clip(round(0.5 * n_items**0.5), *_MIN_LEAF))
        return self.n_leaves or n_leaves, self.min_leaf or min_leaf

    def _held_out_trees(self, matrix: Matrix, lists: Lists, watch: Watch) -> int:
        """The number of trees that is best on held-out queries."""
        from .held_out import held_out, query_folds, sample_queries

        n_leaves, min_leaf = self.sizes(lists)
        settings = {"n_trees": MAX_TREES, "patience": PATIENCE, "n_leaves": n_leaves, "min_leaf": min_leaf}
        some = sample_queries(matrix, lists, _MAX_ROWS_HELD_OUT, self.seed)
        folds, done = list(query_folds(matrix, some, self.seed)), 0

        def tell() -> None:
            nonlocal done
            done += 1
            if watch.progress is not None:
                watch.progress(done, len(folds) + 1, "lambda_mart, number of trees")

        if not folds:
            return _TREES_UNMEASURED
        measured = held_out(lambda: LambdaMART(**{**self.get_params(), **settings}), folds, self.k, self.gain, tell)
        return _TREES_UNMEASURED if measured is None else measured.best_step

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
        """LightGBM's parameters, but for the size of trees."""
        # rows that lie scattered are sampled one by one, as 64-bit numbers: half of LightGBM's usual number will do
        sample = _BIN_SAMPLE_ROWS if lists.rows is None else _BIN_SAMPLE_ROWS // 2
        weight = float(lists.item_weights().mean()) if own else 1.0
        return {
            "learning_rate": self.learning_rate, "lambda_l2": self.ridge * weight,
            "min_sum_hessian_in_leaf": 1e-3 * weight,
            "feature_fraction": self.feature_share, "lambdarank_truncation_level": self.truncation,
            "lambdarank_norm": self.normalize, "sigmoid": self.sigma, "metric": "none", "seed": self.seed,
            "deterministic": True, "force_row_wise": True, "num_threads": self.n_threads, "verbosity": -1,
            "bin_construct_sample_cnt": sample,
        }  # fmt: skip

    def _score_rows(self, matrix: Matrix, qid: Any) -> Floats:
        """Sum of the trees."""
        return self.trees_.sums(matrix, self.n_threads)

    def _importance(self) -> Floats:
        """Share of each feature in what the splits gained."""
        gained = self.trees_.gain
        shares: Floats = gained / max(float(gained.sum()), 1e-300)
        return shares

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


def _complaint(error: Exception, min_leaf: int, n_rows: int) -> str:
    """One sentence for what LightGBM refused."""
    if "num_features" in str(error):
        return f"no feature can be split with min_leaf={min_leaf} items in a leaf and {n_rows:,} rows; lower min_leaf"
    return f"LightGBM could not grow the trees ({plain(str(error))[:200]}); change the parameters of lambda_mart"


def _leaf_options(lists: Lists, n_leaves: int, min_leaf: int) -> dict[str, Any]:
    """The size of trees in LightGBM's parameters; items in a leaf are scaled by rows per item."""
    copies = lists.n_places / float(lists.n_items.sum())
    return {"num_leaves": n_leaves, "min_data_in_leaf": max(1, round(min_leaf * copies))}


_BIN_OPTIONS = (
    "max_bin", "max_bin_by_feature", "min_data_in_bin", "enable_bundle", "feature_pre_filter", "zero_as_missing",
)  # fmt: skip
"""What LightGBM is told of bins."""


def _options_of_data(options: dict[str, Any]) -> dict[str, Any]:
    """Those parameters that LightGBM wants when it reads the data."""
    wanted = (
        *_BIN_OPTIONS,
        "seed",
        "deterministic",
        "force_row_wise",
        "num_threads",
        "verbosity",
        "bin_construct_sample_cnt",
    )
    return {name: options[name] for name in wanted if name in options}


def _held_data(held: ValidationRows, data: Any) -> Any:
    """Validation rows for LightGBM, put in the same bins."""
    return data.create_valid(lightgbm_rows(held.matrix, held.lists), np.zeros(held.lists.n_places))


def _objective(method: LambdaMART, lists: Lists, gain: Floats) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Our own slopes as LightGBM asks for them."""
    slopes_at = swap_gains(lists, gain, truncation=method.truncation, sigma=method.sigma, normalize=method.normalize)

    def objective(scores: Any, data: Any) -> tuple[Any, Any]:
        slopes, bends = slopes_at(scores)
        return slopes.astype(np.float32), bends.astype(np.float32)

    return objective


def _measure(watch: Watch) -> Callable[[Any, Any], tuple[str, float, bool]]:
    """The nDCG of the validation queries, as LightGBM asks for it."""
    return lambda scores, data: ("ndcg", watch.ndcg(scores), True)


def _tree_callback(watch: Watch) -> Callable[[Any], None]:
    """A callback that notes every tree and stops when patience is at its end."""
    from lightgbm.callback import EarlyStopException

    def after(state: Any) -> None:
        results = state.evaluation_result_list
        watch.note(state.iteration + 1, valid=results[0][2] if results else None)
        if watch.is_exhausted:
            raise EarlyStopException(watch.best_iteration - 1, results)

    return after
