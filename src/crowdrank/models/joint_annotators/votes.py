"""Votes on pairs of items with a hidden better one, by voters who name the wrong one at a rate of their own.

The rates and the scores that say which item is likely to be the better are found together by expectation-maximisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...data.consensus import Trace
from ...fitting import warn_unconverged
from ...protocols import Floats
from .item_scores import EqualScores, ScoreModel

if TYPE_CHECKING:
    from .kernels.vote_patterns import VotePass, VotePatterns

START_FLIP = 0.3
"""A first guess of every rate: with equal scores, a pass then goes by the majority of votes."""

CERTAIN = 1e-15
"""Rate of whoever tells what is known."""

_LEAST_FLIP = 1e-3
_MOST_HALVINGS = 20
_ROUNDING = 1e-12


class FlipPrior(NamedTuple):
    """Wrong and right votes that each voter begins with, (n_voters,) each; ``fixed`` is a rate that stays, or NaN."""

    wrong: Floats
    right: Floats
    fixed: Floats

    def likeliest(self, wrong: Floats, number: Floats) -> Floats:
        """Return the rates for so many wrong votes among so many."""
        total = number + self.wrong + self.right
        rate = np.divide(wrong + self.wrong, total, out=np.full(len(total), 0.5), where=total > 0)
        return np.where(np.isnan(self.fixed), np.clip(rate, _LEAST_FLIP, 1 - _LEAST_FLIP), self.fixed)

    def favour(self, flips: Floats) -> float:
        """Return the logarithm of the prior, up to a constant."""
        free = np.isnan(self.fixed)
        return float((self.wrong * np.log(flips) + self.right * np.log1p(-flips))[free].sum())

    def mirrored(self, flips: Floats) -> Floats:
        """Return the rates of voters who would have said the reverse."""
        return np.where(np.isnan(self.fixed), 1.0 - flips, self.fixed)

    def settled(self, flips: Floats) -> FlipPrior:
        """Return the prior of voters whose rates are known to be these."""
        return self._replace(fixed=flips)


class State(NamedTuple):
    """A point of the scores' model, and the rate of wrong votes of each voter, (n_voters,)."""

    point: Floats
    flips: Floats


class Climb(NamedTuple):
    """Where a climb ended, the objective there, what the last pass found, and how it went."""

    state: State
    value: float
    here: VotePass
    trace: Trace


@dataclass(frozen=True, eq=False)
class VoteModel:
    """Votes, where scores come from, and what is known of voters beforehand.

    Parameters
    ----------
    votes
        The votes on each pair.
    items
        The model of the scores.
    prior
        The prior of the voters' rates.
    """

    votes: VotePatterns
    items: ScoreModel
    prior: FlipPrior

    @property
    def n_voters(self) -> int:
        """Number of voters, whoever tells what is known among them."""
        return len(self.prior.wrong)

    def start(self) -> State:
        """Return the state that goes by the majority of votes."""
        flips = np.where(np.isnan(self.prior.fixed), START_FLIP, self.prior.fixed)
        return State(self.items.start(), flips)

    def mirrored(self, state: State) -> State:
        """Return the state that explains the votes equally well by turning scores and voters round."""
        return State(-state.point, self.prior.mirrored(state.flips))

    def odds(self, flips: Floats) -> Floats:
        """Return the log odds of the lower item that the votes of each pattern add up to."""
        return self.votes.odds(np.log1p(-flips) - np.log(flips))

    def look(self, state: State) -> tuple[float, VotePass]:
        """Return the log-likelihood with priors, and what else a pass over the votes finds."""
        from .kernels.vote_patterns import flat_pass, vote_pass

        odds = self.odds(state.flips)
        if isinstance(self.items, EqualScores):
            here = flat_pass(self.votes, odds, self.items.n_items)
        else:
            here = vote_pass(self.votes, self.items.scores(state.point), odds, hinge=self.items.hinge)
        against = self.votes.against(np.log(state.flips), np.log1p(-state.flips))
        favour = self.prior.favour(state.flips) + self.items.favour(state.point)
        return here.log_likelihood + against + favour, here

    def climb(
        self, start: State, *, tol: float, max_iter: int, what: str = "", told: Callable[[int], None] | None = None
    ) -> Climb:
        """Return where passes lead from a start; the objective never falls, except with the hinge.

        A pass ends the climb if neither a rate has changed by more than ``tol`` nor, taken over all pairs, the root of
        what the mean log-likelihood can still gain is above it. A warning is given if none does, in the name of
        ``what``; without one there is none.
        """
        state, (value, here) = start, self.look(start)
        values, change = [value], np.inf
        for n_iter in range(1, max_iter + 1):
            before = state.flips
            state, value, here, gain = self._pass(state, value, here)
            values.append(value)
            change = max(float(np.max(np.abs(state.flips - before), initial=0.0)), gain)
            if told is not None:
                told(n_iter)
            if change <= tol:
                return Climb(state, value, here, Trace(n_iter, True, change, tuple(values)))
        if what:
            warn_unconverged(what, max_iter, change, tol)
        return Climb(state, value, here, Trace(max_iter, False, change, tuple(values)))

    def _pass(self, state: State, value: float, here: VotePass) -> tuple[State, float, VotePass, float]:
        """The next state, halving the step of the scores until the objective has not fallen."""
        flips = self.prior.likeliest(*self.votes.per_voter(here.lower, self.n_voters))
        step, promised = self.items.step(self.votes, here, state.point)
        gain = float(np.sqrt(max(promised, 0.0) / max(self.votes.n_pairs, 1)))
        slack = _ROUNDING * (1.0 + abs(value))
        for halving in range(_MOST_HALVINGS + 1):
            # the rates alone never lower the objective
            length = 0.5**halving if halving < _MOST_HALVINGS else 0.0
            following = State(state.point + length * step, flips)
            found, there = self.look(following)
            if self.items.hinge or found >= value - slack:
                break
        return following, found if self.items.hinge else max(found, value), there, gain


def right_way_round(model: VoteModel, climb: Climb, sure: bool, again: Callable[[State], Climb]) -> Climb:
    """Return the climb itself, or one that begins at its mirror image, whichever is the right way round.

    Where voters are known to be good, or pairs are known (``sure``), the objective tells. Elsewhere most votes are
    taken to be right.
    """
    free = np.isnan(model.prior.fixed)
    number = model.votes.sums(model.n_voters)[free]
    if not sure and float((number * climb.state.flips[free]).sum()) <= 0.5 * float(number.sum()):
        return climb
    other = again(model.mirrored(climb.state))
    return other if not sure or other.value > climb.value else climb
