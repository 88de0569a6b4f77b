"""Elo scores from preferences, updated one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Preferences, expect
from ...quality import held_out
from ...wording import expect_above


@dataclass(frozen=True, kw_only=True)
class Elo:
    r"""Elo: online ratings that move winner and loser apart after each preference.

    All items begin at ``initial``. A preference between items with scores :math:`s_i` and :math:`s_j`, whose result
    :math:`y` is 1 when :math:`i` wins, 0 when it loses and 1/2 for a tie, moves them to

    .. math:: s_i + k\,(y - p), \quad s_j - k\,(y - p), \qquad p = \frac{1}{1 + b^{(s_j - s_i) / c}},

    with :math:`b` the ``base`` and :math:`c` the ``scale`` [Elo78]_.

    When to use
    -----------
    Use it where items change over time and recent preferences should count more, or to match an existing Elo
    leaderboard. For items that do not change ``bradley_terry`` is more accurate and does not depend on the order of
    rows.

    Parameters
    ----------
    k
        Most that one preference can move a score. A small one averages over many preferences, a large one follows the
        latest; chess uses 10 to 40 for players who improve.
    initial
        Score before the first preference, and of an unjudged item.
    base, scale
        A lead of ``scale`` multiplies the odds by ``base``.

    Notes
    -----
    **The order matters**: preferences are taken in the order of their ``time`` where they have one (rows of equal time
    in row order), and in row order otherwise, so this method is an exception to the rule that the order of rows
    changes nothing. The default ``k`` of 4, as in arenas of language models, suits items that do not change: the
    smaller it is, the less the order matters, until scores are wins less losses.

    The weight of a preference multiplies ``k``; since the second of two equal preferences is expected a little more, a
    row twice moves the items slightly less than one of weight 2. Scores have no standard errors. Annotators are not
    needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "x", "y", "tie")]
    >>> Elo(k=32).fit(Preferences.from_rows(rows)).scores.round(3).tolist()
    [1014.53, 985.47]
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    whole_only: ClassVar[str] = "goes through the preferences in the order in which they were given"
    k: float = 4.0
    initial: float = 1000.0
    base: float = 10.0
    scale: float = 400.0

    def __post_init__(self) -> None:
        expect_above(self, 0, "k", "scale")
        expect_above(self, 1, "base", hint="only then does a higher score mean better odds")

    def fit(self, preferences: Preferences) -> Consensus:
        """Return the scores after the last preference."""
        from .kernels.elo import elo_scores

        judged = expect(preferences, self)
        if judged.time is not None:
            judged = judged.select(np.argsort(judged.time, kind="stable"))
        unit = self.scale / float(np.log(self.base))
        scores = elo_scores(judged.left, judged.right, judged.outcome, judged.weight, judged.n_items, self.k / unit)
        return Consensus.of(self, preferences, self.initial + unit * scores, quality=held_out(self, preferences))
