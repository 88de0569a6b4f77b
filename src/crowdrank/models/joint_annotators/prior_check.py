"""Whether what scores say before any vote goes together with the votes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...protocols import Bools, Counts, Floats, Ints
from .item_scores import EqualScores
from .votes import CERTAIN, START_FLIP, State, VoteModel

if TYPE_CHECKING:
    from .kernels.vote_patterns import VotePatterns

_SAMPLE = 20_000
_FEWEST = 100
_ROUNDS = 4
_VOTES_EACH = 50
_TOL, _MOST_PASSES = 1e-3, 100

_SLACK = 1.15
"""Where annotators err by what features show it comes to 1.1 to 1.9, and to 1.1 at most where they do not."""

_CHANCE = 3.0


class Contradiction(NamedTuple):
    """Share of pairs of which scores and votes together choose another item than votes alone: found, and expected.

    ``n_pairs`` is how many pairs were looked at.
    """

    found: float
    expected: float
    n_pairs: int

    @property
    def clear(self) -> bool:
        """Whether so many are more than the model and chance explain."""
        chance = float(np.sqrt(self.expected / max(self.n_pairs, 1)))
        return self.n_pairs >= _FEWEST and self.found > _SLACK * self.expected + _CHANCE * chance


def contradiction(model: VoteModel, state: State, *, seed: int) -> Contradiction:
    """Return how often votes alone choose another item, and how often they would if the model were true.

    Voters' rates are found from votes alone once more, for which pairs need two votes; others are passed over, and all
    where voters gave but few such votes. Under the model the rates are the same but for chance, and votes are drawn
    from it for up to 20,000 pairs.
    """
    votes, rng, scores, flips = model.votes, np.random.default_rng(seed), model.items.scores(state.point), state.flips
    several = np.diff(votes.bounds) > 1
    pairs = np.flatnonzero(several[votes.pattern]) if _tells(votes, several) else np.empty(0, np.int64)
    pairs = pairs[:: -(-len(pairs) // _SAMPLE) or 1]
    prior = (scores[votes.first] - scores[votes.second])[pairs]
    pattern = votes.pattern[pairs]
    odds, alone = model.odds(flips)[pattern], model.odds(_votes_only(model, flips, several))[pattern]
    slot, pair = _slots(votes.bounds, pattern)
    voter, weight = votes.voter[slot], votes.weight[slot] if votes.weight.size else np.ones(len(slot))
    log_odds, shares = np.log1p(-flips) - np.log(flips), []
    for _ in range(_ROUNDS):
        lower = rng.random(len(pairs)) < 0.5 + 0.5 * np.tanh(0.5 * prior)
        side = np.where(lower[pair] == (rng.random(len(slot)) >= flips[voter]), 1.0, -1.0)
        drawn = np.bincount(pair, weight * side * log_odds[voter], len(pairs)).astype(np.float64, copy=False)
        shares.append(_apart(prior + drawn, drawn))
    return Contradiction(_apart(prior + odds, alone), float(np.mean(shares)), len(pairs))


def _tells(votes: VotePatterns, several: Bools) -> bool:
    """Whether voters gave enough votes on pairs with several for their rates to be known from these alone."""
    number = np.bincount(votes.voter, votes.amount * several[votes.owner])
    return bool(number.sum() >= _VOTES_EACH * np.count_nonzero(number))


def _votes_only(model: VoteModel, flips: Floats, several: Bools) -> Floats:
    """Rates of voters as the patterns with several votes have them, all items being alike."""
    votes = replace(model.votes, number=np.where(several, model.votes.number, 0.0))
    prior = model.prior._replace(fixed=np.where(flips <= CERTAIN, flips, np.nan))
    alike = VoteModel(votes, EqualScores(len(votes.starts) - 1), prior)
    # from where a fit begins, the same way round: the rates of the model may have gone astray
    start = np.where(flips <= CERTAIN, flips, np.where(flips < 0.5, START_FLIP, 1 - START_FLIP))
    return alike.climb(State(np.empty(0), start), tol=_TOL, max_iter=_MOST_PASSES).state.flips


def _slots(bounds: Counts, pattern: Ints) -> tuple[Counts, Counts]:
    """Places of the votes of each of some patterns, and which of the patterns each belongs to."""
    sizes = np.diff(bounds)[pattern]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(pattern)), sizes)
    return bounds[pattern][owner] + np.arange(ends[-1]) - ends[:-1][owner], owner


def _apart(together: Floats, alone: Floats) -> float:
    """Share of pairs of which the two choose different items."""
    return float(np.mean(np.sign(together) * np.sign(alone) < 0)) if len(alone) else 0.0
