"""The answers that are expected to decide most for their price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..data.consensus import Consensus
from ..data.judgments import Grades, Preferences, expect
from ..data.proposals import Requests
from ..errors import ParameterError
from ..protocols import Floats, Ints
from ..wording import expect_at_least, one_of
from .buying import WishList, requests_for, thing_keys
from .candidate_pairs import JudgedPairs
from .informative_grades import Limits, choose_graders
from .informative_pairs import ChosenPairs, Goal, choose_preferences
from .situation import Situation

_ABOUT_CHOICES = ("auto", "grade", "gain")
_RANKER = "ranker"
_MAX_REQUESTS = 10_000
_NEWCOMER_DEVIATION = 0.5

_SURE_ORDER_PROBABILITY = 0.95
"""A pair whose order is surer than this is asked about for the place of its items, not for its order."""


@dataclass(frozen=True, kw_only=True)
class Information:
    r"""Value of information: the question and annotator that are expected to decide most per unit of money.

    Preferences: an answer by annotator :math:`a` about items :math:`i` and :math:`j` has the weight
    :math:`w = E[\alpha_a^2] P (1 - P)`, where :math:`P` is the predicted probability that :math:`a` prefers :math:`i`.
    It lowers the variance :math:`V_{kl}` of the difference of any two scores of the query by

    .. math:: \Delta V_{kl} = \frac{w}{1 + w V_{ij}} \, \mathrm{Cov}(s_k - s_l, s_i - s_j)^2

    and is worth :math:`\sum_{kl} b_{kl} \, \phi(z_{kl}) \phi(0) \, \Delta V_{kl} / V_{kl}`: the fall of the expected
    number of wrong orders that count. :math:`z_{kl}` is the difference in standard deviations, so pairs whose
    order is open count most, and :math:`b_{kl}` the probability that their order decides the goal: 1 for ``"order"``;
    for ``"top-5"`` that the two, were they equal, would be at the edge of the first five places; for ``"best"`` at that
    of the first. Grades: the mutual information between an item's level :math:`j` and the grade :math:`l` that
    annotator :math:`a` would give,

    .. math:: H\Big(\sum_j p_j \pi_{aj\cdot}\Big) - \sum_j p_j H(\pi_{aj\cdot}),

    or, with ``about="gain"``, the expected fall of the variance of its gain :math:`2^g - 1`; with ``goal="ranker"`` the
    expected growth of nDCG@10 of the order by expected gains, over the answer and over all levels, and so over the
    ideal DCG: a query in which nothing may be relevant has little to gain. With features that
    order is by a linear ranker :math:`w` of the gains, and a grade changes what all queries show: neighbours :math:`k`
    and :math:`l` of the first ten places move apart or pass each other by a standard deviation of
    :math:`|(x_k - x_l)^\top \Sigma x_i| \sqrt{\kappa / (1 + \kappa x_i^\top \Sigma x_i)}`, where :math:`\Sigma` is
    the posterior covariance of :math:`w` and :math:`\kappa` the precision that the grade adds.

    When to use
    -----------
    Use it by default for preferences, and for grades or classes to spend a fixed budget where it helps most.

    Parameters
    ----------
    goal
        Of preferences: what the answers should decide in each query, its ``"order"``, which items are in its first
        places (``"top-5"``), or which is ``"best"``. Of grades ``"ranker"``: what changes the order that is shown,
        and with features what changes the orders that a ranker shows.
    about
        Of grades: ``"grade"`` or ``"gain"``, what the answer should tell of. ``"auto"`` takes the grade, which is what
        the consensus of a class method says; orders by gains come out as good in simulations, and only the error of
        the gains themselves is lower with ``"gain"``.
    share
        Share of the pool that is asked, the best for their price, with about equal loads; others join where capacities
        do not suffice. Raise it where few annotators should not decide everything.
    most
        Most grades of one item asked for in one call; with features one.
    least
        Fewest grades of an item, before any item gets more; with features none, since not every item need be graded.

    Notes
    -----
    Requests of one call are chosen one after the other, each supposing that those before it are answered. An answer
    about a pair shrinks the covariance of all scores of its query (item by item where there is none, or in queries
    above 300 items), so ten thousand requests spread over what is open. Where there are more than 300,000 pairs,
    each item is weighed against the ten next in the order and some at random. Equally good requests are drawn by the
    seed. A pair whose order is sure may still be asked about: it places an item whose score is not.

    Of grades, what a class method estimates of an annotator is weighed against 70 % right answers, which count as 20
    grades of items that others graded too: a grade that nobody repeated is not taken for certain. Until every item has
    its ``least`` grades, those that lack most come first, in random order: a model that knows annotators by few common
    items asks about the wrong ones.

    Of the goal ``"ranker"``, what the answers of one call bring together is drawn from the posterior, and each request
    says its part of it. Of 200 requests in 60 simulated queries it was within 10 % of what they brought.

    Without a pool annotators come as they come: pairs are chosen for one of the crowd's mean discrimination.
    Discriminations are those of ``latent_score``; with another method all annotators count the same.

    Examples
    --------
    >>> import crowdrank
    >>> rows = [(who, "q", a, b, "left") for who in ("ann", "bob") for a, b in ("wx", "xy", "yz", "zw")]
    >>> votes = crowdrank.Preferences.from_rows([*rows, ("cy", "q", "x", "w", "left")])
    >>> consensus = crowdrank.aggregate(votes, "bradley_terry")
    >>> requests = Information().propose(Situation.of(votes, consensus=consensus, budget=2))
    >>> requests.measure, requests.n_judgments
    ('number of pairs in the wrong order', 2)
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade", "preference")
    nominal: ClassVar[bool] = True
    needs: ClassVar[Mapping[str, str]] = {"grade": "dawid_skene", "preference": "latent_score"}
    goal: str = "order"
    about: str = "auto"
    share: float = 0.33
    most: int = 3
    least: int = 2

    def __post_init__(self) -> None:
        if self.goal != _RANKER:
            Goal.parse(self.goal)
        one_of(self.about, _ABOUT_CHOICES, "about")
        if not 0 < self.share <= 1:
            raise ParameterError(f"share={self.share} must be above 0 and at most 1; it is the share of the pool asked")
        expect_at_least(self, 1, "most", hint="it is the most grades of an item in one call")
        expect_at_least(self, 0, "least", hint="it is the fewest grades of an item")

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next; without a budget as many answers as there are so far, at most 10,000."""
        judgments = expect(situation.judgments, self)
        if self.goal == _RANKER:
            if not isinstance(judgments, Grades):
                raise ParameterError("goal 'ranker' applies to grades, but these are preferences; use top-10 or order")
            if judgments.nominal:
                raise ParameterError("goal 'ranker' needs an order, and these classes have none; leave it out")
            limits = Limits(self.share, self.most, self.least)
            return requests_for(self, situation, choose_graders(situation, judgments, _RANKER, limits))
        goal = Goal.parse(self.goal)
        if isinstance(judgments, Grades):
            if goal.k:
                raise ParameterError(
                    f"goal {goal.text!r} applies to preferences, but these are grades; leave the goal out or use ranker"
                )
            if judgments.nominal and self.about == "gain":
                raise ParameterError("about='gain' needs an order, and these classes have none; leave it out")
            limits, about = Limits(self.share, self.most, self.least), "gain" if self.about == "gain" else "grade"
            return requests_for(self, situation, choose_graders(situation, judgments, about, limits))
        note = goal.expect_items(judgments.items)
        number = situation.n_to_choose
        if number is None:
            number = min(max(len(judgments), judgments.n_items), _MAX_REQUESTS)
        consensus = situation.expect_consensus("information")
        alpha, deviation = preference_discriminations(consensus)
        chosen = choose_preferences(situation, (alpha, alpha**2 + deviation**2), goal, self.share, number)
        proposed = requests_for(self, situation, _with_reasons(judgments, consensus, goal, chosen))
        return proposed if note is None else replace(proposed, notes=(*proposed.notes, note))


def _with_reasons(judgments: Preferences, consensus: Consensus, goal: Goal, chosen: ChosenPairs) -> WishList:
    """What is chosen, with the reason of each: its order is open, or it places the less sure of its items."""
    assert consensus.std_error is not None
    things: dict[str, Ints] = {"left": chosen.left, "right": chosen.right}
    known = JudgedPairs.of(judgments).counts(thing_keys(things, judgments.n_items)) > 0
    one, other = consensus.std_error[chosen.left], consensus.std_error[chosen.right]
    sure = chosen.first > _SURE_ORDER_PROBABILITY
    unsure = np.where(one >= other, chosen.left, chosen.right)
    cut = "one more answer is expected to cut the variance of their difference by {4:.0f} %"
    open_order = f"P({{0}} above {{1}}) is {{3:.2f}}{goal.where}; {cut}"
    placing = "places {2}, whose score has a standard error of {5:.2f}; P({0} above {1}) is {3:.3f}"
    reasons = (open_order, placing)
    return WishList(
        things=things, gain=chosen.gain, annotator=chosen.annotator,
        reason=(2 * ~known + sure).astype(np.int32),
        reasons=(*reasons, *(f"not compared yet; {reason}" for reason in reasons)),
        named=np.stack([chosen.left, chosen.right, unsure], axis=1),
        detail=np.stack([chosen.first, 100 * chosen.cut, np.maximum(one, other)], axis=1),
        measure=goal.measure, before=chosen.before,
    )  # fmt: skip


def preference_discriminations(consensus: Consensus) -> tuple[Floats, Floats]:
    """Return the discrimination of each annotator for preferences and its standard deviation, (n_annotators + 1,) each.

    The last entry is that of an annotator without judgments: the crowd's mean and standard deviation. Where a method
    learns none, discriminations are 1.
    """
    learned, estimates = consensus.learned, consensus.estimates
    if learned is None or "alpha" not in learned[1]:
        size = 1 + (0 if learned is None else len(learned[0]))
        return np.ones(size), np.zeros(size)
    alpha, alpha_sd = learned[1]["alpha"], learned[1]["alpha_sd"]
    scale = float(estimates.get("scale_preference", 1.0))
    mean = float(np.mean(alpha)) if len(alpha) else 1.0
    deviation = float(estimates.get("alpha_sd", _NEWCOMER_DEVIATION))
    return scale * np.append(alpha, mean), scale * np.append(alpha_sd, deviation)
