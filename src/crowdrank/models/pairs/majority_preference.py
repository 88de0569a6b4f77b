"""Majority vote on pairs: how many of its rivals the majority places below an item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Preferences, expect
from ...pair_counts import count_preferences, warn_apart
from ...quality import held_out


@dataclass(frozen=True, kw_only=True)
class MajorityPreference:
    r"""Majority vote on pairs: the share of rivals that an item beats by majority, less the share it loses to.

    The better item of a pair is the one with more of its preferences, each annotator counting the same [Gupta16]_.
    With :math:`m_{ij}` 1 where the majority prefers item :math:`i` to :math:`j`, -1 where it prefers :math:`j`, and 0
    where it is even, the score is the mean over the :math:`n_i` rivals that the item met,

    .. math:: s_i = \frac{1}{n_i} \sum_j m_{ij},

    which is Copeland's rule for a tournament [Copeland51]_ where all pairs met.

    When to use
    -----------
    Use it as the baseline of methods that learn who is right, where each pair was judged by several annotators. Prefer
    ``bradley_terry`` where pairs were judged once or twice, or items met rivals of unequal strength, and ``crowd_bt``
    or ``latent_score`` where annotators differ.

    Notes
    -----
    A pair counts the same whether two annotators judged it or twenty; ``borda`` counts preferences instead. Where the
    paper tosses a coin for an even pair, it counts for neither side here. A tie is half a preference for each item. An
    unjudged item has score 0, the middle. There are no standard errors; use the bootstrap. Annotators are not needed.

    Examples
    --------
    >>> rows = [(who, "q", "x", "y", "x") for who in ("ann", "bob")] + [("cy", "q", "x", "y", "y")]
    >>> rows += [("ann", "q", "y", "z", "y"), ("bob", "q", "x", "z", "z"), ("cy", "q", "x", "z", "x")]
    >>> MajorityPreference().fit(Preferences.from_rows(rows)).scores.tolist()
    [0.5, 0.0, -0.5]
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    one_pass: ClassVar[tuple[str, ...]] = ("pairs",)

    def fit(self, preferences: Preferences) -> Consensus:
        """Return the mean lead by majority; warns of groups that never met."""
        expect(preferences, self)
        pair_counts, n = count_preferences(preferences, "split"), preferences.n_items
        warn_apart(preferences.items, pair_counts)
        first, second, lead = pair_counts.first, pair_counts.second, pair_counts.majorities()
        leads = np.bincount(first, lead, n) - np.bincount(second, lead, n)
        n_met = np.bincount(first, minlength=n) + np.bincount(second, minlength=n)
        return Consensus.of(self, preferences, leads / np.maximum(n_met, 1), quality=held_out(self, preferences))
