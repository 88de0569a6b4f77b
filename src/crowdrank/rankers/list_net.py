"""A linear ranker that learns the chance of each item to be the best of its query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..data.consensus import Trace
from ..errors import JudgmentError
from ..kernels.threads import bind, read_only, views
from ..protocols import Floats
from ..wording import expect_above, expect_at_least, one_of
from .linear import Follow, LinearRanker
from .training_rows import Design, Lists

if TYPE_CHECKING:
    from .kernels.losses import ScoreLoss

_SOLVERS = ("newton", "paper", "stochastic")
_MOMENTUM = 0.9
_STEPS_PER_MEASUREMENT = 2


@dataclass(kw_only=True, eq=False, repr=False)
class ListNet(LinearRanker):
    r"""ListNet: a linear ranker by cross entropy of top-one probabilities.

    Of the items of a query, item :math:`i` is the best with probability

    .. math:: P_s(i) = \frac{e^{s_i}}{\sum_j e^{s_j}}, \qquad s_i = x_i \cdot w,

    where :math:`x` are the features and :math:`w` their weights. The weights minimise the mean over queries of the
    cross entropy :math:`-\sum_i P_y(i) \log P_s(i)`, :math:`P_y` being the same of the targets :math:`y` in the place
    of the scores, plus :math:`\frac{\lambda}{2} |w|^2`, :math:`\lambda` being ``ridge`` [Cao07]_.

    When to use
    -----------
    Use it as a fast linear baseline that weighs the top of each list. Where features interact and queries are many use
    ``lambda_mart``.

    Parameters
    ----------
    scale
        ``"overall"``: features less their mean, by their standard deviation within queries; ``"query"``: from 0 to 1
        within each query, so ``predict`` needs ``qid`` too; ``"none"``: as they are.
    ridge
        Pull of the weights towards 0, against a mean over queries; raise it where queries are few or features many.
        ``None`` takes 0.2, with ``scale="query"`` a sixteenth of that, as its features spread a quarter as far.
    solver
        ``"newton"``: to the minimum; ``"paper"``: a run as in [KumarLease11]_; ``"stochastic"``: a gradient step for
        each query in turn, as printed in [Cao07]_; see the notes.
    tol
        Largest change of a weight in the last Newton step; raise it to stop earlier.
    max_iter
        Largest number of Newton steps, steps of the paper's run, or passes over the queries of the stochastic one;
        raise it where ``trace_.converged`` is false.
    learning_rate
        Length of the steps of the stochastic run; raise it to learn in fewer passes.
    start
        Standard deviation of the random first weights of the stochastic run; 0 begins at 0, from where the first steps
        already point the way, however short they are.
    seed
        Seed of the random draws of the stochastic run: first weights, and orders of the queries.

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
    The objective is convex, and Newton steps reach its minimum in four or five. With an ``eval_set`` the curve tells
    the nDCG@10 of the validation queries at each step; the last one is kept.

    ``solver="paper"`` begins at 0 and takes ``max_iter`` full-batch gradient steps of length 1 with momentum 0.9,
    without a ridge. Every second one is measured by the nDCG@10 of the validation queries and the best is kept, without
    validation queries the last. The step is made for features from 0 to 1: use it with ``scale="query"``, as the
    registry's ``listnet-paper`` does.

    ``solver="stochastic"`` takes a step of ``learning_rate`` down the slopes of each query, without
    a ridge, the queries in a new random order in each of ``max_iter`` passes; a query's slopes are those of its own
    cross entropy, so more queries are more steps. The pass that is best on the validation queries is kept, else the
    last. It takes one row per item.

    A row of weight 2 is that row twice: weights stand before the exponentials of both targets and scores, so they
    say how much an item matters and do not lift it. An item with several rows has the weighted mean of their
    :math:`e^y`. A query counts by the mean weight of its items; one with a single item teaches nothing, and one whose
    targets are equal teaches that its items are equal.

    Examples
    --------
    >>> X, y, qid = [[0.9, 1], [0.1, 3], [0.5, 2], [0.2, 1]], [2, 0, 1, 0], ["a", "a", "b", "b"]
    >>> ranker = ListNet().fit(X, y, qid=qid)
    >>> ranker.predict([[0.8, 2], [0.3, 2]]).round(2).tolist()
    [0.71, -0.25]
    """

    _usual_ridge: ClassVar[float] = 0.2

    scale: str = "overall"
    ridge: float | None = None
    solver: str = "newton"
    tol: float = 1e-6
    max_iter: int = 100
    learning_rate: float = 0.01
    start: float = 0.0
    seed: int = 0

    def check(self) -> None:
        """Refuse parameters outside their range."""
        super().check()
        one_of(self.solver, _SOLVERS, "solver")
        expect_above(self, 0, "learning_rate")
        expect_at_least(self, 0, "start")

    def _loss(self, lists: Lists) -> Callable[[Floats], ScoreLoss]:
        """Cross entropy of the chances that targets and scores give."""
        from .kernels.losses import best_of_query

        return best_of_query(lists)

    def _solve(self, design: Design, lists: Lists, follow: Follow) -> tuple[Floats, Trace]:
        """The weights where loss and penalty are least, or those of the paper's run."""
        if self.solver == "newton":
            return super()._solve(design, lists, follow)
        if self.solver == "stochastic":
            return self._descend(design, lists, follow)
        loss = self._loss(lists)
        weights, speed = np.zeros(design.n_features), np.zeros(design.n_features)
        best, values = weights, []
        for step in range(self.max_iter + 1):
            here = loss(design.scores(weights))
            values.append(-here.value)
            measured = step > 0 and (step % _STEPS_PER_MEASUREMENT == 0 or step == self.max_iter)
            if measured and follow(step, here.value, weights):
                best = weights
            if step < self.max_iter:
                speed = _MOMENTUM * speed - design.pulls(here.slopes)
                weights = weights + speed
        return best, Trace(self.max_iter, True, float(np.max(np.abs(speed))), tuple(values))

    def _descend(self, design: Design, lists: Lists, follow: Follow) -> tuple[Floats, Trace]:
        """The weights after a gradient step for each query in turn, in some passes."""
        from .kernels.losses import choice_chances, descend_queries

        if lists.item is not None:
            raise JudgmentError("solver='stochastic' takes one row per item; average the rows of an item first")
        features = np.concatenate([block for _, _, block in design.blocks()])
        wanted, loss = choice_chances(lists.target, lists.weights, lists.offsets)[0], self._loss(lists)
        rows = views(features, wanted, lists.weights, lists.offsets)
        rng = np.random.default_rng(self.seed)
        weights = self.start * rng.standard_normal(design.n_features)
        best, change, values = weights, 0.0, []
        for done in range(1, self.max_iter + 1):
            following, order = weights.copy(), read_only(rng.permutation(lists.n_queries))
            bind(descend_queries, *rows, order, self.learning_rate, following)()
            change, weights = float(np.max(np.abs(following - weights), initial=0.0)), following
            here = loss(design.scores(weights)).value
            values.append(-here)
            if follow(done, here, weights):
                best = weights
        return best, Trace(self.max_iter, True, change, tuple(values))
