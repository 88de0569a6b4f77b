"""How far items lie from what their features say, and how often voters are wrong, with unsure scores averaged over."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...protocols import Floats
from .item_scores import ItemScores
from .votes import State, VoteModel

_SPREADS = (0.05, 4.0)
"""Where the better item is never in doubt, any spread is likely that is large enough. Of wines whose true order is
known, 1, 2, 4 and 8 put most pairs right at 4, or within half a point of 8 where wines were compared but once."""

_FEWEST, _MOST = 6, 200
_TOL = 3e-3
_LEAST_SEEN = 0.1
_LONGEST_LEAP = 0.7
_INEXACT = 0.1


class Blurred(NamedTuple):
    """Scores that are independent and normal given the votes: their model, means and variances, and voters' rates."""

    items: ItemScores
    scores: Floats
    variance: Floats
    flips: Floats


def averaged_fit(model: VoteModel, state: State, *, tol: float) -> Blurred:
    r"""Return the spread of the items' own parts and the rates of voters that the votes make likeliest.

    Given the votes, scores are taken as independent normal ones, with the means and variances that fit best. The spread
    is then :math:`\sqrt{\sum_i E[u_i^2] / n}`, and a voter's rate the expected share of wrong votes, from which new
    means and variances follow. The likeliest scores in place of all that votes leave possible would follow wrong votes
    too closely: rates would be too low and, where items are compared but a few times, the spread too small.
    """
    assert isinstance(model.items, ItemScores)
    here = Blurred(model.items, state.point, np.full(len(state.point), model.items.spread**2), state.flips)
    logs = [float(np.log(here.items.spread))]
    for n in range(1, _MOST + 1):
        flips = here.flips
        here = _step(model, here)
        logs.append(float(np.log(here.items.spread)))
        change = float(np.max(np.abs(here.flips - flips), initial=0.0))
        if n >= _FEWEST and abs(logs[-1] - logs[-2]) < _TOL and change <= tol:
            break
        if n % 3 == 0:
            logs[-1] = float(np.clip(logs[-1] + _leap(logs), *np.log(_SPREADS)))
            here = here._replace(items=replace(here.items, spread=float(np.exp(logs[-1]))))
    return here


def _step(model: VoteModel, here: Blurred) -> Blurred:
    """One pass: means, variances, rates and the spread, each from the others as they were."""
    from ...kernels.laplacian import conjugate_gradient
    from .kernels.vote_patterns import blurred_pass

    votes, items, precision = model.votes, here.items, here.items.spread**-2
    found = blurred_pass(votes, here.scores, here.variance, model.odds(here.flips))
    product, diagonal = items.curvature(votes, found)
    gradient = found.pull - precision * items.rest(here.scores)
    scores = here.scores + conjugate_gradient(product, diagonal, gradient, accuracy=_INEXACT)
    # single pairs may seem to bend the other way, which the other pairs of an item make up for
    variance = 1.0 / (np.maximum(found.seen, _LEAST_SEEN * found.degree) + precision)
    # halfway, since a large variance flattens what the next one comes from
    variance = np.sqrt(here.variance * variance)
    own = variance * (1.0 - (items.explained**2).sum(axis=1))
    square = (float(scores @ items.rest(scores)) + float(own[items.judged].sum())) / items.room
    spread = float(np.clip(np.sqrt(square), *_SPREADS))
    flips = model.prior.likeliest(*votes.per_voter(found.lower, model.n_voters))
    return Blurred(replace(items, spread=spread), scores, variance, flips)


def _leap(logs: list[float]) -> float:
    """How much further the last two steps lead if each of those that follow is shorter in the same ratio."""
    first, last = logs[-2] - logs[-3], logs[-1] - logs[-2]
    ratio = last / first if first else 0.0
    return float(np.clip(last * ratio / (1 - ratio), -_LONGEST_LEAP, _LONGEST_LEAP)) if 0 < ratio < 1 else 0.0
