"""Check whether the scores from features agree with the preferences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...protocols import Bools, Counts, Floats, Ints
from .expectation_maximisation import JointModel, State
from .item_scores import EqualScores
from .judged_pairs import KNOWN_FLIP_RATE, START_FLIP_RATE

if TYPE_CHECKING:
    from .kernels.pair_patterns import PairPatterns

_MOST_PAIRS = 20_000
_LEAST_PAIRS = 100
_N_DRAWS = 4
_LEAST_PREFERENCES_PER_SOURCE = 50
_TOL, _MOST_ITERATIONS = 1e-3, 100

_CLEAR_RATIO = 1.15
"""The ratio is 1.1 to 1.9 where annotators' errors follow the features, and at most 1.1 where they do not."""

_STANDARD_ERRORS = 3.0


class Overruled(NamedTuple):
    """Share of pairs where scores and preferences together choose another item than preferences alone.

    ``observed`` in the fit, ``expected`` if the model were true, over ``n_pairs`` pairs.
    """

    observed: float
    expected: float
    n_pairs: int

    @property
    def clear(self) -> bool:
        """Whether the observed share is more than model and chance explain."""
        chance = float(np.sqrt(self.expected / max(self.n_pairs, 1)))
        return self.n_pairs >= _LEAST_PAIRS and self.observed > _CLEAR_RATIO * self.expected + _STANDARD_ERRORS * chance


def overruled_share(model: JointModel, state: State, *, seed: int) -> Overruled:
    """Return how often scores overrule the preferences, and how often they would if the model were true.

    Flip rates are estimated once more from preferences alone, for which pairs need two preferences. Other pairs are
    left out, and all of them where sources gave too few such preferences. If the model is true, the rates are the same
    but for chance; preferences are drawn from it for up to 20,000 pairs.
    """
    pairs, rng, scores = model.pairs, np.random.default_rng(seed), model.items.scores(state.parameters)
    flip_rates, several = state.flip_rates, np.diff(model.pairs.bounds) > 1
    chosen = np.flatnonzero(several[pairs.pattern]) if _enough(pairs, several) else np.empty(0, np.int64)
    chosen = chosen[:: -(-len(chosen) // _MOST_PAIRS) or 1]
    prior = (scores[pairs.first] - scores[pairs.second])[chosen]
    pattern = pairs.pattern[chosen]
    odds = model.pattern_odds(flip_rates)[pattern]
    alone = model.pattern_odds(_rates_without_scores(model, flip_rates, several))[pattern]
    place, pair = _preferences_of(pairs.bounds, pattern)
    source, weight = pairs.source[place], pairs.weight[place] if pairs.weight.size else np.ones(len(place))
    log_odds, shares = np.log1p(-flip_rates) - np.log(flip_rates), []
    for _ in range(_N_DRAWS):
        lower = rng.random(len(chosen)) < 0.5 + 0.5 * np.tanh(0.5 * prior)
        side = np.where(lower[pair] == (rng.random(len(place)) >= flip_rates[source]), 1.0, -1.0)
        drawn = np.bincount(pair, weight * side * log_odds[source], len(chosen)).astype(np.float64, copy=False)
        shares.append(_share_apart(prior + drawn, drawn))
    return Overruled(_share_apart(prior + odds, alone), float(np.mean(shares)), len(chosen))


def _enough(pairs: PairPatterns, several: Bools) -> bool:
    """Whether sources gave enough preferences on pairs with several to estimate their flip rates from these."""
    number = np.bincount(pairs.source, pairs.total_weight * several[pairs.owner])
    return bool(number.sum() >= _LEAST_PREFERENCES_PER_SOURCE * np.count_nonzero(number))


def _rates_without_scores(model: JointModel, flip_rates: Floats, several: Bools) -> Floats:
    """Flip rates by the patterns with several preferences, at equal scores."""
    pairs = replace(model.pairs, number=np.where(several, model.pairs.number, 0.0))
    known = flip_rates <= KNOWN_FLIP_RATE
    prior = model.prior._replace(fixed=np.where(known, flip_rates, np.nan))
    equal = JointModel(pairs, EqualScores(len(pairs.starts) - 1), prior)
    # from the usual start, the same way round: the rates of the model may be far off
    start = np.where(known, flip_rates, np.where(flip_rates < 0.5, START_FLIP_RATE, 1 - START_FLIP_RATE))
    return equal.run(State(np.empty(0), start), tol=_TOL, max_iter=_MOST_ITERATIONS).state.flip_rates


def _preferences_of(bounds: Counts, pattern: Ints) -> tuple[Counts, Counts]:
    """Places of the preferences of each of some patterns, and which of the patterns each belongs to."""
    sizes = np.diff(bounds)[pattern]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    owner = np.repeat(np.arange(len(pattern)), sizes)
    return bounds[pattern][owner] + np.arange(ends[-1]) - ends[:-1][owner], owner


def _share_apart(together: Floats, alone: Floats) -> float:
    """Share of pairs where the two choose different items."""
    return float(np.mean(np.sign(together) * np.sign(alone) < 0)) if len(alone) else 0.0
