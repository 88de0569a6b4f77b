"""A ranker that is chosen among several by held-out queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..protocols import Floats
from ..wording import counted, expect_at_least, one_of, snake_case
from .estimator import GAINS, MANY_QUERIES, Ranker, ValidationRows, Watch, held_out, query_folds, sample_queries
from .saving import Saved
from .training_rows import Lists, Matrix

_LINEAR = ("ListMLE", "ListNet", "RankSVM")
_RIDGES = (100.0, 10.0, 1.0)
"""Times the usual ridge, the simplest first; the largest leaves little more than the direction of each feature."""

_LEAVES = (4, 8, 31)
_MAX_TREES, _PATIENCE = 300, 30

_ROUNDING = 1e-12

_MAX_PAIRS = 1e8
"""Pairs of items up to which a ranker of pairs is tried, as its time grows with them."""

_CHOICE = {
    "ranker": pl.String, "settings": pl.String, "ndcg": pl.Float64, "behind": pl.Float64, "std_error": pl.Float64,
    "chosen": pl.Boolean,
}  # fmt: skip


class _Candidate(NamedTuple):
    """A ranker with its settings, how simple it is (0 most), and the nDCG of each held-out query."""

    ranker: str
    settings: Mapping[str, Any]
    level: int
    ndcg: Floats


@dataclass(kw_only=True, eq=False, repr=False)
class Auto(Ranker):
    r"""Auto: the ranker that does best on held-out queries.

    Linear rankers (``list_mle``, ``list_net``, ``rank_svm``) with three ridges each and ``lambda_mart`` with trees of
    4, 8 and 31 leaves learn from a part of the queries, and are measured by the nDCG on the others. The simplest whose
    mean is within one standard error of the best [Breiman84]_ is fitted to all rows.

    When to use
    -----------
    Use it unless you know which ranker you want. With few or noisy labels it finds a linear ranker with a strong
    ridge, with many queries whose features interact it finds trees.

    Parameters
    ----------
    k
        Places of the nDCG that rankers are compared by.
    gain
        ``"exponential"``: :math:`2^y - 1` of the target :math:`y`; ``"linear"`` or ``"given"``: the target itself.
    max_rows
        Rows of the queries that are compared by, which bounds the time; raise it for a surer choice on large sets.
    n_threads
        Threads for growing trees; 0 leaves it to ``lambda_mart``.
    seed
        Which queries are held out together.

    Attributes
    ----------
    chosen_
        The fitted ranker; it alone is saved.
    choice_
        A table of what was compared, the best first: ranker, settings, mean nDCG, how far behind the best, the
        standard error of that difference over queries, and which was chosen.
    reason_
        The choice in a sentence.
    n_features_in_, feature_names_in_
        Number of features, and their names where X had any.

    Notes
    -----
    Below 1,000 queries each fifth of them is held out in its turn (cross-validation), from there on one fifth. The
    number of trees is the best on the held-out queries too. With an ``eval_set`` those rows are measured by instead.
    Linear rankers are left out where features are missing, and ``rank_svm`` above 100 million pairs of items. Where
    no query can be held out, as with one query, it is ``list_mle``.

    Linear rankers are simpler than trees, a strong ridge is simpler than a weak one, and few leaves than many; of
    equally simple rankers the best is taken. The highest mean alone would be the luckiest of twelve rankers where
    held-out queries are few or have few items: on a tenth of MQ2008, judged once, it costs .08 of nDCG.

    Held-out queries have targets as noisy as those learned from, so the table says how well rankers predict these
    targets, not the truth. Noise that is the same for all rankers leaves their order unchanged on average.

    Queries are held out together by number of items, targets and features, so neither their names nor the order of
    rows change the choice.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(120, 3)), np.repeat(np.arange(20), 6)
    >>> y = np.clip(np.round(X[:, 0] - X[:, 1] + rng.normal(size=120)), 0, 2)
    >>> ranker = Auto().fit(X, y, qid=qid)
    >>> type(ranker.chosen_).__name__ in ("ListMLE", "ListNet", "RankSVM")
    True
    """

    k: int = 10
    gain: str = "exponential"
    max_rows: int = 50_000
    n_threads: int = 0
    seed: int = 0

    _takes_missing: ClassVar[bool] = True

    @property
    def scorer(self) -> Ranker:
        """The ranker that was chosen."""
        return self.chosen_

    def check(self) -> None:
        """Refuse parameters outside their range."""
        one_of(self.gain, GAINS, "gain")
        expect_at_least(self, 1, "k", "max_rows")

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Compare rankers on held-out queries, and fit the best."""
        some = sample_queries(matrix, lists, self.max_rows, self.seed)
        folds = [] if watch.held is None else [(ValidationRows(matrix, some), watch.held)]
        folds = folds or list(query_folds(matrix, some, self.seed))
        values = matrix.values.data if matrix.sparse else matrix.values
        missing = bool(np.isnan(values.sum())) and bool(np.isnan(values).any())
        rows_of_queries = np.diff(lists.offsets).astype(np.float64)
        many_pairs = float(rows_of_queries @ rows_of_queries) / 2 > _MAX_PAIRS
        linear = () if missing else _LINEAR[: 2 if many_pairs else 3]
        tried: list[tuple[str, dict[str, Any], int]] = []
        for name in linear:
            usual = self._make(name, {}).used_ridge
            tried += [(name, {"ridge": times * usual}, level) for level, times in enumerate(_RIDGES)]
        trees = {"n_trees": _MAX_TREES, "min_leaf": self._make("LambdaMART", {}).sizes(lists)[1]}
        for level, n_leaves in enumerate(_LEAVES, len(_RIDGES)):
            tried.append(("LambdaMART", {"n_leaves": n_leaves, **trees}, level))
        compared: list[_Candidate] = []
        # every ranker that can be fitted, measured on the held-out queries
        for number, (name, settings, level) in enumerate(tried if folds else []):
            if watch.progress is not None:
                watch.progress(number, len(tried) + 1, f"auto, comparing {snake_case(name)}")
            patience = {"patience": _PATIENCE} if name == "LambdaMART" else {}
            measured = held_out(partial(self._make, name, settings | patience), folds, self.k, self.gain)
            if measured is None:
                continue
            by_query, best_step = measured
            if name == "LambdaMART":
                settings = settings | {"n_trees": best_step}
            else:
                best_step = len(by_query)
            compared.append(_Candidate(name, settings, level, by_query[best_step - 1]))
        chosen, self.choice_ = _choose(compared)
        self.reason_ = _reason(self.choice_, chosen, watch.held is not None, lists.n_queries)
        self.chosen_: Ranker = self._make("ListMLE", {}) if chosen is None else self._make(*chosen[:2])
        self.chosen_.learn(matrix, lists, self.chosen_._watch(watch.held, watch.progress))
        for attribute in ("feature_names_in_", "extractor_"):
            if hasattr(self, attribute):
                setattr(self.chosen_, attribute, getattr(self, attribute))

    def _make(self, name: str, settings: Mapping[str, Any]) -> Any:
        """A ranker with settings, and with those of this one that it has too."""
        ranker = getattr(import_module(__package__), name)
        own = ranker().get_params()
        shared = {key: value for key, value in self.get_params().items() if key in own}
        return ranker(**shared, **settings)

    def _score_rows(self, matrix: Matrix, qid: Any) -> Floats:
        """Scores of the ranker that was chosen."""
        return self.chosen_._score_rows(matrix, qid)

    def _importance(self) -> Floats:
        """What counts for the ranker that was chosen."""
        return self.chosen_._importance()

    def to_saved(self) -> Saved:
        """Return what a file holds: the ranker that was chosen."""
        return self.chosen_.to_saved()

    def _restore(self, facts: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]]) -> None:
        """Refuse: a file holds the ranker that was chosen."""
        raise ValueError("auto, which is not a ranker that a file holds")


def _choose(compared: list[_Candidate]) -> tuple[_Candidate | None, pl.DataFrame]:
    """The simplest ranker within a standard error of the best, the best of those as simple; and all, the best first."""

    def mean(one: _Candidate) -> float:
        return round(float(one.ndcg.mean()), 9)

    if not compared:
        return None, pl.DataFrame(schema=_CHOICE)
    best, near, rows = max(compared, key=mean), [], []
    for one in compared:
        difference, settings = best.ndcg - one.ndcg, (f"{name}={value:.4g}" for name, value in one.settings.items())
        behind, n = float(difference.mean()), len(difference)
        error = float(difference.std(ddof=1) / n**0.5) if n > 1 else 0.0
        if behind <= error + _ROUNDING:
            near.append(one)
        rows.append([snake_case(one.ranker), ", ".join(settings), float(one.ndcg.mean()), behind, error])
    simplest = min(one.level for one in near)
    chosen = max((one for one in near if one.level == simplest), key=mean)
    table = [(*row, one is chosen) for row, one in zip(rows, compared, strict=True)]
    return chosen, pl.DataFrame(table, schema=_CHOICE, orient="row").sort("behind", maintain_order=True)


def _reason(table: pl.DataFrame, chosen: _Candidate | None, given: bool, n_queries: int) -> str:
    """The choice in a sentence."""
    if chosen is None:
        return "ranker list_mle, since no query can be held out to compare rankers by"
    name, settings, ndcg = table.filter("chosen").row(0)[:3]
    where = "of the validation rows" if given else "held out"
    where += " (each fifth in its turn)" if not given and n_queries < MANY_QUERIES else ""
    queries = counted(len(chosen.ndcg), "query")
    best, best_settings, best_ndcg = table.row(0)[:3]
    said = f"ranker {name} ({settings}), since its nDCG is the best on {queries} {where}: {ndcg:.3f}"
    if best_settings != settings or best != name:
        said = (
            f"ranker {name} ({settings}), since its nDCG of {ndcg:.3f} on {queries} {where} is within a standard error "
            f"of the best, {best_ndcg:.3f} of {best} ({best_settings}), and it is simpler"
        )
    trees = table.filter((pl.col("ranker") == "lambda_mart") != (name == "lambda_mart"))
    if not trees.is_empty() and trees["ranker"][0] != best:
        said += f"; {trees['ranker'][0]} reaches {trees['ndcg'][0]:.3f}"
    return said
