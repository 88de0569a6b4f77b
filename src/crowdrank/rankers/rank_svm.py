"""A linear ranker that learns from pairs of items, the better against the worse."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..data.consensus import Trace
from ..errors import DataWarning
from ..fitting import ascend
from ..protocols import Floats
from ..wording import expect_above, expect_choices
from .linear import Follow, LinearRanker, RowLoss, penalise
from .training_rows import Lists

if TYPE_CHECKING:
    from .kernels.losses import ScoreLoss

_LOSSES = ("logistic", "hinge")
_BALANCES = ("pairs", "queries")
_SOLVERS = ("newton", "printed")
_START_SPREAD = 0.01
_SLOW_FROM_PAIRS = 1e10


@dataclass(kw_only=True, eq=False, repr=False)
class RankSVM(LinearRanker):
    r"""RankSVM: a linear ranker by a smoothed hinge, or logistic, loss over pairs.

    The weights :math:`w` minimise the mean loss :math:`\varphi(z)` of all pairs of items of one query with unequal
    targets, plus :math:`\frac{\lambda}{2} |w|^2`, where

    .. math:: z = (x_i - x_j) \cdot w, \qquad
              \varphi(z) = \begin{cases} \frac12 - z & z \le 0 \\ \frac12 (1 - z)^2 & 0 < z < 1 \\ 0 & z \ge 1
              \end{cases} \quad \text{or} \quad \varphi(z) = \log(1 + e^{-z}),

    :math:`x_i` being the features of the better item, :math:`x_j` of the worse, and :math:`\lambda` the ``ridge``. The
    first loss is the hinge of [Joachims02]_ made smooth [Rennie05]_, as [Gupta16]_ uses it.

    When to use
    -----------
    Use it for targets of which only the order is known, such as preferences. For graded targets ``list_net`` and
    ``list_mle`` use whole lists.

    Parameters
    ----------
    loss
        ``"hinge"``: the smooth hinge, which leaves pairs alone that are apart by 1 or more; ``"logistic"``: the odds of
        a Bradley-Terry model.
    scale
        ``"overall"``: features less their mean, by their standard deviation within queries; ``"query"``: from 0 to 1
        within each query, so ``predict`` needs ``qid`` too; ``"none"``: as they are.
    ridge
        Pull of the weights towards 0, against a mean over pairs; raise it where queries are few or features many.
        ``None`` takes 0.1, with ``scale="query"`` a sixteenth of that, as its features spread a quarter as far.
    balance
        ``"pairs"``: every pair counts the same, so long queries count for more; ``"queries"``: every query does.
    tol
        Largest change of a weight in the last Newton step; raise it to stop earlier.
    max_iter
        Largest number of steps; raise it where ``trace_.converged`` is false.
    solver
        ``"newton"``: to the minimum; ``"printed"``: gradient steps at a fixed rate from a random start, as in
        [Gupta16]_.
    learning_rate
        Length of the printed steps per unit of the gradient of the mean loss.
    seed
        Seed of the random start of the printed steps.

    Attributes
    ----------
    weights_
        One weight per feature, on its scale; :meth:`importance` has them by name.
    scaling_, curve_, trace_, n_iter_
        The scaling that was learned, the learning curve, what happened on the way and the steps taken.
    n_features_in_, feature_names_in_
        Number of features, and their names where X had any.

    Notes
    -----
    Pairs are gone through where they are needed and never stored: memory grows with rows, time with pairs. The
    objective is convex, and Newton steps reach its minimum in about six. With an ``eval_set`` the curve tells the
    nDCG@10 of the validation queries at each step; the last one is kept.

    ``rank-svm-paper``, of which ``iam-paper`` fits one per annotator, takes printed steps on features as they are. The
    paper gives neither rate nor number of steps nor how the first weights are drawn, which are normal here with
    standard deviation 0.01; on features of unequal scale the result depends on all three.

    A pair has the product of its rows' weights by the mean weight of its query's items, so a row of weight 2 is
    that row twice and a constant weight of a query's rows is a weight of the query. Two rows of one ``item`` form no
    pair. Equal targets form none either, and a query whose targets are all equal teaches nothing.

    Examples
    --------
    >>> X, y, qid = [[0.9, 1], [0.1, 3], [0.5, 2], [0.2, 1]], [2, 0, 1, 0], ["a", "a", "b", "b"]
    >>> ranker = RankSVM().fit(X, y, qid=qid)
    >>> ranker.predict([[0.8, 2], [0.3, 2]]).round(2).tolist()
    [0.84, -0.17]
    """

    _usual_ridge: ClassVar[float] = 0.1

    loss: str = "hinge"
    scale: str = "overall"
    ridge: float | None = None
    balance: str = "pairs"
    tol: float = 1e-6
    max_iter: int = 100
    solver: str = "newton"
    learning_rate: float = 1e-3
    seed: int = 0

    def check(self) -> None:
        """Refuse parameters outside their range."""
        super().check()
        expect_choices(self, loss=_LOSSES, balance=_BALANCES, solver=_SOLVERS)
        expect_above(self, 0, "learning_rate")

    def descend(self, rows: RowLoss, follow: Follow) -> tuple[Floats, Trace]:
        """Return the weights where loss and penalty are least, or where the printed steps end."""
        if self.solver == "newton":
            return super().descend(rows, follow)
        evaluate = penalise(rows, self.used_ridge, self.tol)[0]
        start = _START_SPREAD * np.random.default_rng(self.seed).standard_normal(rows.n_features)
        rest: Any = {"tol": self.tol, "max_iter": self.max_iter, "what": "rank_svm"}
        weights, best, trace = ascend(evaluate, start, learning_rate=self.learning_rate, **rest)
        follow(trace.n_iter, -best.value, weights)
        return weights, trace

    def _order_lists(self, lists: Lists) -> Lists:
        """Best first, so the worse items of a pair stand below."""
        return lists.best_first()

    def _loss(self, lists: Lists) -> Callable[[Floats], ScoreLoss]:
        """Mean loss of the pairs."""
        from .kernels.losses import better_of_pairs

        sizes = np.diff(lists.offsets).astype(np.float64)
        if (most := float(sizes @ sizes) / 2) > _SLOW_FROM_PAIRS:
            warnings.warn(
                f"rank_svm goes through up to {most:.2g} pairs at each step, since {sizes.max():,.0f} rows are of one "
                "query; that will take long: give qid, or use list_net, whose time grows with rows",
                DataWarning,
                stacklevel=4,
            )
        total, by_item, divisor = self._pairs(lists)
        # what the pairs of each query count
        each = by_item if self.balance == "pairs" else total / by_item
        factor = np.divide(1.0, each * divisor, out=np.zeros_like(total), where=total > 0)
        pairs = lists.weights, lists.tie_starts(), lists.item, lists.offsets
        return better_of_pairs(*pairs, factor, _LOSSES.index(self.loss))

    def _divisor(self, lists: Lists) -> float:
        """Number of pairs, or of queries that have any, by weight."""
        return self._pairs(lists)[2]

    def _pairs(self, lists: Lists) -> tuple[Floats, Floats, float]:
        """Weight of the pairs and of an item of each query; number of pairs, or of queries that have any, by weight."""
        from .kernels.losses import pair_weights

        total = pair_weights(lists.weights, lists.tie_starts(), lists.item, lists.offsets)
        by_item = lists.item_weights()
        counted = total / by_item if self.balance == "pairs" else by_item[total > 0]
        return total, by_item, float(counted.sum())
