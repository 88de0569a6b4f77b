"""Rank centrality: the stationary distribution of a random walk from losers to winners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...data.consensus import Consensus, Trace
from ...data.judgments import Preferences, expect
from ...fitting import warn_unconverged
from ...pair_counts import count_preferences, warn_unbounded
from ...quality import held_out
from ...wording import expect_above


@dataclass(frozen=True, kw_only=True)
class RankCentrality:
    r"""Rank centrality: the stationary distribution of a random walk from losers to winners.

    From item :math:`i` the walker moves to item :math:`j` of the same query, if the two have met, at a rate that is the
    share of their preferences that :math:`j` won,

    .. math:: a_{ij} = \frac{w_{ji} + \alpha}{w_{ij} + w_{ji} + 2 \alpha},

    with :math:`w_{ij}` the number of wins of :math:`i`. In the long run it is at item :math:`i` a share :math:`\pi_i`
    of the time, where what arrives equals what leaves, :math:`\sum_j \pi_j a_{ji} = \pi_i \sum_j a_{ij}`
    [Negahban17]_. The score is :math:`\log \pi_i`, with mean zero in every group of items that have met; if the
    preferences follow the Bradley-Terry model and :math:`\alpha` is small, scores estimate that model's.

    When to use
    -----------
    Use it as a fast spectral alternative to Bradley-Terry without a likelihood. ``bradley_terry`` is slightly more
    accurate and has standard errors.

    Parameters
    ----------
    alpha
        Wins that both sides of every pair that met begin with. They keep the walker from staying for ever with items
        that never lost. Raise it where pairs met only once or twice; it shrinks the scores.
    tol
        Largest difference of what arrives at an item and what leaves, as a share of it; raise it to stop earlier.
    max_iter
        Largest number of products with the rates to take before a direct solution is tried; raise it where a warning
        says that the fit did not converge.

    Notes
    -----
    The paper divides the rates by the largest number of opponents, which changes how long the walk takes but not where
    it leads. Every pair counts the same, however often it met. With pairs that met once, ``alpha=1`` orders
    simulated items nearly as well as the Bradley-Terry model (Kendall's tau .801 against .803 for 2,000 items with 60
    preferences each) and better than ``alpha=0.01`` (.777), which in return leaves the scale of the scores alone.

    Shares are solved for by the generalised minimal residual method, so memory grows with the number of distinct
    pairs. Where the walk mixes very slowly, as when items have met their near neighbours only, the
    equations are factorised if that is cheap.

    A tie is half a win for each side. Groups that never met are scored apart, each with mean zero, and an unjudged item
    has score 0. Standard errors are known for random pairs that all met equally often only; use the bootstrap.
    Annotators are not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "x", "y", "x"), ("cy", "q", "y", "x", "y")]
    >>> RankCentrality().fit(Preferences.from_rows(rows)).scores.round(3).tolist()
    [0.203, -0.203]
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    one_pass: ClassVar[tuple[str, ...]] = ("pairs",)
    precision: ClassVar[float] = 1e-10
    alpha: float = 1.0
    tol: float = 1e-10
    max_iter: int = 500

    def __post_init__(self) -> None:
        expect_above(self, 0, "alpha", hint="use a small one such as 1e-6 for nearly none")
        expect_above(self, 0, "tol")

    def fit(self, preferences: Preferences) -> Consensus:
        """Return the scores; warns of items and groups that only alpha keeps finite."""
        from .kernels.spectral import Walk, stationary_log_shares

        expect(preferences, self)
        counts = count_preferences(preferences, "split")
        warn_unbounded(preferences.items, counts)
        up, down = (
            (0.5 * (counts.number + sign * counts.margin) + self.alpha) / (counts.number + 2 * self.alpha)
            for sign in (1, -1)
        )
        walk = Walk(counts.starts, counts.second, up, down, counts.group)
        scores, n_iter, excess = stationary_log_shares(walk, counts.centre, tol=self.tol, max_iter=self.max_iter)
        if excess > self.tol:
            warn_unconverged("rank_centrality", self.max_iter, excess, self.tol)
        trace = Trace(n_iter, excess <= self.tol, excess)
        return Consensus.of(self, preferences, scores, trace=trace, quality=held_out(self, preferences))
