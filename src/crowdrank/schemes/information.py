"""The answers that are expected to tell most for their price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..asking import PairsAsked, Situation, Wanted, bought, thing_keys
from ..asking.informative import choose_answers
from ..asking.telling import choose_graders
from ..data.consensus import Consensus
from ..data.judgments import Grades, expect
from ..data.proposals import Requests
from ..errors import ParameterError
from ..protocols import Floats, Ints
from ..score_models.information import Answerers

_ABOUT = ("grade", "gain")
_MOST = 10_000


@dataclass(frozen=True, kw_only=True)
class Information:
    r"""Expected information: ask where an answer teaches most per unit of money, and whom.

    Preferences: an answer by annotator :math:`a` about items :math:`i` and :math:`j` is expected to tell about

    .. math:: \log\left(1 + E[\alpha_a^2] \, \mathrm{Var}(s_i - s_j) \, P (1 - P)\right)

    nats of the scores, where :math:`P` is the predicted probability that :math:`a` prefers :math:`i`. What lies near in
    the order but is not settled, by annotators who tell good from bad, comes first. Grades: the mutual information
    between an item's level :math:`j` and the grade :math:`l` that annotator :math:`a` would give,

    .. math:: H\Big(\sum_j p_j \pi_{aj\cdot}\Big) - \sum_j p_j H(\pi_{aj\cdot}),

    or, with ``about="gain"``, the expected fall of the variance of its gain :math:`2^g - 1`.

    When to use
    -----------
    Use it by default for preferences, and for grades once each annotator is known a little. For the first grades of a
    new campaign start with ``k_overlap``.

    Parameters
    ----------
    about
        Of grades: ``"grade"`` or ``"gain"``, what the answer should tell of.
    share
        Share of the pool that is asked, the best for their price, with about equal loads; others join where capacities
        do not suffice. Raise it where few annotators should not decide everything.
    most
        Most grades of one item asked for in one call.

    Notes
    -----
    Requests of one call are chosen one after the other, each supposing that those before it are answered. An answer
    about a pair shrinks the covariance of all scores of its query (item by item where there is none, or in queries
    above 300 items), so that ten thousand requests spread over what is open. Where there are more than 300,000 pairs,
    each item is weighed against the ten next in the order and some at random.

    Of grades, what a class method says of an annotator is weighed against 70 % right answers, which count as 20 grades
    of items that others graded too: a grade that nobody repeated is not taken for certain.

    Without a pool annotators come as they come: pairs are chosen for one of the crowd's mean discrimination.
    Discriminations are those of ``latent_score``; with another method all annotators count alike.

    Examples
    --------
    >>> import crowdrank
    >>> rows = [(who, "q", a, b, "left") for who in ("ann", "bob") for a, b in ("wx", "xy", "yz", "zw")]
    >>> votes = crowdrank.Preferences.from_rows([*rows, ("cy", "q", "x", "w", "left")])
    >>> consensus = crowdrank.aggregate(votes, "bradley_terry")
    >>> requests = Information().propose(Situation.of(votes, consensus=consensus, budget=2))
    >>> requests.measure, requests.n_judgments
    ('uncertainty of the scores (in nats)', 2)
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade", "preference")
    needs: ClassVar[Mapping[str, str]] = {"grade": "dawid_skene", "preference": "latent_score"}
    about: str = "grade"
    share: float = 0.33
    most: int = 3

    def __post_init__(self) -> None:
        if self.about not in _ABOUT:
            raise ParameterError(f"about={self.about!r} is not known; use one of {', '.join(map(repr, _ABOUT))}")
        if not 0 < self.share <= 1:
            raise ParameterError(f"share={self.share} must be above 0 and at most 1; it is the share of the pool asked")
        if self.most < 1:
            raise ParameterError(f"most={self.most} must be at least 1; it is the most grades of an item in one call")

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next; without a budget at most 10,000 pairs."""
        judgments = expect(situation.judgments, self)
        if isinstance(judgments, Grades):
            return bought(self, situation, choose_graders(situation, judgments, self.about, self.share, self.most))
        number = situation.n_affordable
        crowd = _discriminations(situation.expect_consensus("information"))
        chosen = choose_answers(situation, crowd, self.share, _MOST if number is None else number)
        things: dict[str, Ints] = {"left": chosen.left, "right": chosen.right}
        known = PairsAsked.of(judgments).counts(thing_keys(things, judgments.n_items)) > 0
        wanted = Wanted(
            things=things, gain=chosen.information, annotator=chosen.annotator, reason=known.astype(np.int32),
            reasons=("not compared yet, and an answer tells much", "an answer tells much, as their order is open"),
            measure="uncertainty of the scores (in nats)", before=None,
        )  # fmt: skip
        return bought(self, situation, wanted)


def _discriminations(consensus: Consensus) -> tuple[Floats, Floats]:
    """Mean and mean square of each annotator's discrimination, and last of somebody new; ones where none are known."""
    quality = consensus.quality
    if quality is None or "alpha" not in quality.parameters:
        ones = np.ones(1 + (0 if quality is None else len(quality.annotators)))
        return ones, ones
    crowd = Answerers.of(consensus)
    return crowd.alpha, crowd.alpha**2 + crowd.alpha_sd**2
