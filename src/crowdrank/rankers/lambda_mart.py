"""Boosted regression trees that learn to put gain at the top."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.files import plain
from ..errors import ParameterError
from ..protocols import Floats, Progress
from ..wording import one_of
from .estimator import Ranker
from .lists import Lists
from .losses import swap_gains
from .matrix import Matrix
from .saving import whole_number
from .stopping import GAINS, ValidationRows, Watch, gains
from .trees import Trees, lightgbm_rows

_LAMBDA_CHOICES = ("auto", "lightgbm", "own")
_BIN_SAMPLE_ROWS = 200_000
_MAX_LIGHTGBM_LEVELS = 1000
"""Distinct gains that LightGBM's own objective is given in a table."""

_MAX_LIGHTGBM_QUERY_ROWS = 10_000
"""Rows of a query that LightGBM's own objective takes."""


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
        Number of trees, the most there may be where ``patience`` is set.
    learning_rate
        How much of each tree is added.
    n_leaves
        Most leaves of a tree.
    min_leaf
        Fewest items in a leaf.
    truncation
        Pairs count where at least one item is among so many first ranks; well above the places that matter is best.
    sigma
        How steeply the pull falls with the difference of scores.
    gain
        ``"exponential"``: :math:`2^y - 1` of the target :math:`y`, any number from 0 on; ``"linear"`` or ``"given"``:
        the target itself.
    normalize
        Whether pairs are divided by how far apart their scores are, and the pairs of a query by their sum, as LightGBM
        does it, so that queries with many pairs do not drown the others.
    ridge
        Pull of the leaves towards 0.
    feature_share
        Share of the features that each tree may use.
    patience
        Stop after so many trees without a better nDCG on the validation queries, and keep the best number; ``None``
        grows all trees, and keeps the best number of them where there is an ``eval_set``.
    k
        Places of the nDCG that validation queries are measured by.
    lambdas
        Whose slopes: ``"lightgbm"``; ``"own"``, which know items of several rows and weights of pairs; ``"auto"``:
        LightGBM's where every item has one row and all weights are equal, our own otherwise.
    n_threads
        Threads for growing trees, 0 for all cores.
    seed
        Start of the random draws.

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
    Features need no scaling, and may be missing (NaN). Targets are real numbers: LightGBM takes whole ones only, so
    that it is given the distinct gains as a table; above 1,000 distinct ones, and for queries of more than 10,000 rows,
    our own slopes are used. Items of equal score, as all are before the first tree, rank in the order of their rows, as
    in LightGBM, so that another order of a query's rows may give slightly other trees.

    A row weight in LightGBM multiplies that row's slope alone, which breaks what makes a pair a pair: that its two
    slopes cancel. Our own slopes have :math:`w_i w_j` before every pair, relative to the query's mean weight of an
    item, which then multiplies them all; so a constant weight of a query's rows is a weight of the query.

    Where items have several rows (``item=``), such as one for each judgment: ranks, truncation and ideal DCG count
    items; rows of one item form no pair; slopes do not grow with the number of copies; ``min_leaf``, the least
    curvature of a leaf and ``ridge`` are scaled by rows an item; and validation is measured on items.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.random((400, 3)), np.repeat(np.arange(20), 20)
    >>> y = np.floor(3 * X[:, 0])
    >>> ranker = LambdaMART(n_trees=20).fit(X, y, qid=qid)
    >>> round(ranker.score(X, y, qid=qid), 2)
    1.0
    """

    n_trees: int = 100
    learning_rate: float = 0.1
    n_leaves: int = 31
    min_leaf: int = 20
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

    _takes_missing: ClassVar[bool] = True

    def _check(self) -> None:
        """Refuse parameters outside their range."""
        one_of(self.gain, GAINS, "gain")
        one_of(self.lambdas, _LAMBDA_CHOICES, "lambdas")
        for name, least in (("n_trees", 1), ("n_leaves", 2), ("min_leaf", 1), ("truncation", 1), ("k", 1)):
            if getattr(self, name) < least:
                raise ParameterError(f"{name}={getattr(self, name)} must be at least {least}")
        if self.patience is not None and self.patience < 1:
            raise ParameterError(f"patience={self.patience} must be at least 1; use None for all trees")
        for name in ("learning_rate", "sigma"):
            if not getattr(self, name) > 0:
                raise ParameterError(f"{name}={getattr(self, name)} must be above 0")
        if not 0 < self.feature_share <= 1:
            raise ParameterError(f"feature_share={self.feature_share} must be above 0 and at most 1")
        if not self.ridge >= 0:
            raise ParameterError(f"ridge={self.ridge} must not be below 0")

    def _watch(self, held: ValidationRows | None, progress: Progress | None) -> Watch:
        """Validation by nDCG@k of the chosen gain."""
        if held is None and self.patience is not None:
            raise ParameterError("patience= counts trees without a better nDCG on validation queries; give eval_set=")
        return Watch(
            held, k=self.k, gain=self.gain, patience=self.patience, n_steps=self.n_trees, progress=progress,
            what="lambda_mart",
        )  # fmt: skip

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Grow the trees."""
        import lightgbm

        gain = gains(lists.target, self.gain)
        levels = np.unique(gain)
        own = self._uses_own_slopes(lists, len(levels))
        options = self._options(lists, own)
        label = np.searchsorted(levels, gain)
        if own:
            options["objective"] = _objective(self, lists, gain)
        else:
            options |= {"objective": "lambdarank", "label_gain": ",".join(map(repr, levels.tolist()))}
        data = lightgbm.Dataset(
            lightgbm_rows(matrix, lists), label, group=np.diff(lists.offsets), params=_options_of_data(options)
        )  # fmt: skip
        held = None if watch.held is None else _held_data(watch.held, data)
        try:
            booster = lightgbm.train(
                options, data, num_boost_round=self.n_trees, valid_sets=[] if held is None else [held],
                feval=None if held is None else _measure(watch), callbacks=[_follow(watch)],
            )  # fmt: skip
        except lightgbm.basic.LightGBMError as error:
            raise ParameterError(_complaint(error, self.min_leaf, matrix.n_rows)) from None
        self.n_trees_ = watch.best_iteration if watch.held is not None else booster.current_iteration()
        text = booster.model_to_string(num_iteration=self.n_trees_)
        self.trees_ = Trees.from_lightgbm(text.encode())
        # read from its own text a booster is without what it needed for training, which is as large as the bins
        self.booster_ = lightgbm.Booster(model_str=text)

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
        """LightGBM's parameters; limits of leaves are scaled by rows an item."""
        copies = lists.n_places / float(lists.n_items.sum())
        # rows that lie scattered are sampled one by one, as 64-bit numbers: half of LightGBM's usual number will do
        sample = _BIN_SAMPLE_ROWS if lists.rows is None else _BIN_SAMPLE_ROWS // 2
        weight = float(lists.item_weights().mean()) if own else 1.0
        return {
            "learning_rate": self.learning_rate, "num_leaves": self.n_leaves, "lambda_l2": self.ridge * weight,
            "min_data_in_leaf": max(1, round(self.min_leaf * copies)), "min_sum_hessian_in_leaf": 1e-3 * weight,
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

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The trees."""
        return {"n_trees": self.n_trees_}, self.trees_.numbers()

    def _restore(self, facts: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]]) -> None:
        """The trees."""
        self.trees_ = Trees.of(numbers)
        self.n_trees_ = whole_number(facts["n_trees"])
        if len(self.trees_.gain) != self.n_features_in_:
            raise ValueError(f"trees of {len(self.trees_.gain)} features for {self.n_features_in_}")


def _complaint(error: Exception, min_leaf: int, n_rows: int) -> str:
    """One sentence for what LightGBM refused."""
    if "num_features" in str(error):
        return f"no feature can be split with min_leaf={min_leaf} items in a leaf and {n_rows:,} rows; lower min_leaf"
    return f"LightGBM could not grow the trees ({plain(str(error))[:200]}); change the parameters of lambda_mart"


def _options_of_data(options: dict[str, Any]) -> dict[str, Any]:
    """Those parameters that LightGBM wants when it reads the data."""
    wanted = ("seed", "deterministic", "force_row_wise", "num_threads", "verbosity", "bin_construct_sample_cnt")
    return {name: options[name] for name in wanted}


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
    assert watch.measure is not None
    measure = watch.measure
    return lambda scores, data: ("ndcg", measure.ndcg(scores), True)


def _follow(watch: Watch) -> Callable[[Any], None]:
    """A callback that notes every tree and stops when patience is at its end."""
    from lightgbm.callback import EarlyStopException

    def after(state: Any) -> None:
        results = state.evaluation_result_list
        watch.note(state.iteration + 1, valid=results[0][2] if results else None)
        if watch.exhausted:
            raise EarlyStopException(watch.best_iteration - 1, results)

    return after
