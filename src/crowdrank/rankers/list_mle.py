"""A linear ranker that learns the likelihood of whole rankings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..protocols import Floats
from ..wording import one_of
from .linear import LinearRanker
from .training_rows import Lists

if TYPE_CHECKING:
    from .kernels.losses import ScoreLoss

_TIES = ("together", "random")


@dataclass(kw_only=True, eq=False, repr=False)
class ListMLE(LinearRanker):
    r"""ListMLE: a linear ranker by Plackett-Luce likelihood of the true order.

    A ranking arises best first: of the items that are left, item :math:`i` comes next with probability proportional to
    :math:`e^{s_i}` (Plackett-Luce), where :math:`s_i = x_i \cdot w` with features :math:`x` and weights :math:`w`. The
    weights maximise the mean over queries of the log-likelihood

    .. math:: \sum_p \Big[ s_{(p)} - \log \sum_{r \ge p} e^{s_{(r)}} \Big],

    :math:`(p)` being the item at place :math:`p`, less :math:`\frac{\lambda}{2} |w|^2`, :math:`\lambda` being ``ridge``
    [Xia08]_ [Wu11]_.

    When to use
    -----------
    Use it with few labelled queries or noisy labels, where the whole order matters. For long lists where only the top
    matters try ``list_net`` or ``lambda_mart``.

    Parameters
    ----------
    scale
        ``"overall"``: features less their mean, by their standard deviation within queries; ``"query"``: from 0 to 1
        within each query, so ``predict`` needs ``qid`` too; ``"none"``: as they are.
    ridge
        Pull of the weights towards 0, against a mean over queries of the likelihood, which grows with their length;
        raise it where queries are few or features many.
        ``None`` takes 1, with ``scale="query"`` a sixteenth of that, as its features spread a quarter as far.
    ties
        What equal targets mean: ``"together"``: each comes before all with lower targets, in no order among
        themselves; ``"random"``: one random order of them, by ``seed``, is taken for the truth.
    tol
        Largest change of a weight in the last Newton step; raise it to stop earlier.
    max_iter
        Largest number of Newton steps; raise it where ``trace_.converged`` is false.
    seed
        Seed of the random order.

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
    Grades tie most items of a query. With ``ties="together"`` an item is chosen from those of its own and of lower
    grades, as failures at one time are in survival analysis [Breslow74]_, and the items of the lowest grade are those
    left over. An order drawn at random, as in [Wu11]_, asks the ranker to distinguish equal items: on LETOR's MQ2008
    that costs 0.007 of nDCG@10, on OHSUMED 0.023.

    Several rankings of one query are several queries: give each ranking rows and a ``qid`` of its own, with minus the
    rank for the target. The weight of its rows then is the weight of the ranking.

    A row of weight 2 is that row twice, also where ``item`` says that several rows are of one item. A query counts by
    the mean weight of its items; one whose targets are equal teaches nothing. The objective is convex, and Newton
    steps reach its maximum in about five. With an ``eval_set`` the curve tells the nDCG@10 of the validation queries at
    each step; the last one is kept.

    Examples
    --------
    >>> X, y, qid = [[0.9, 1], [0.1, 3], [0.5, 2], [0.2, 1]], [2, 0, 1, 0], ["a", "a", "b", "b"]
    >>> ranker = ListMLE().fit(X, y, qid=qid)
    >>> ranker.predict([[0.8, 2], [0.3, 2]]).round(2).tolist()
    [0.58, -0.2]
    """

    _usual_ridge: ClassVar[float] = 1.0

    scale: str = "overall"
    ridge: float | None = None
    ties: str = "together"
    tol: float = 1e-6
    max_iter: int = 100
    seed: int = 0

    def check(self) -> None:
        """Refuse parameters outside their range."""
        super().check()
        one_of(self.ties, _TIES, "ties")

    def _order_lists(self, lists: Lists) -> Lists:
        """Best first, equal targets shuffled where one order of them is taken for the truth."""
        return lists.best_first(np.random.default_rng(self.seed) if self.ties == "random" else None)

    def _loss(self, lists: Lists) -> Callable[[Floats], ScoreLoss]:
        """Negative log-likelihood that better items are chosen before lower ones."""
        from .kernels.losses import better_first

        return better_first(lists, ties_together=self.ties == "together")
