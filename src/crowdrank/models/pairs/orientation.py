"""Which way round scores and annotators are: a start on the majority's side, and scores to turn round at the end.

Scores turned round with every annotator turned into the opposite explain answers just as well, so that only the priors
of annotators tell which is meant. A climb from a start on the wrong side would end there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...pair_counts import Contests
from ...protocols import Bools, Floats, Ints
from .annotator_priors import OwnPrior

if TYPE_CHECKING:
    from ...kernels.answers import Answers

_ROUNDS = 2
_SHRINK = 1.0
_FARTHEST = 0.9
_CLEARLY = 1e-6
"""Gain of the objective from which scores are turned round."""

_SUREST = 1 - 1e-12
_TABLE_CELLS = 1 << 26


def rough_start(answers: Answers, contests: Contests, prior: OwnPrior) -> tuple[Floats, Floats]:
    """Return scores and parameters of annotators from a few sums.

    Scores are the mean outcomes of an item with annotators weighed by what is known of them, first by the prior and
    then by how their answers agree with the first scores.
    """
    first, second, pair = answers.first, answers.second, answers.pair
    by, amount = answers.annotator, answers.weight if answers.weight.size else np.ones(len(answers.code))
    signed, n_items, n_pairs = amount * answers.outcome, len(contests.wins), len(second)
    known, strength = prior.guess()
    surplus = known
    for _ in range(_ROUNDS):
        lead = np.bincount(pair, signed * surplus[by], n_pairs)
        weight = np.bincount(pair, amount * surplus[by] ** 2, n_pairs)
        ahead = np.bincount(first, lead, n_items) - np.bincount(second, lead, n_items)
        mean = ahead / (np.bincount(first, weight, n_items) + np.bincount(second, weight, n_items) + _SHRINK)
        scores = contests.centred(2.0 * np.arctanh(np.clip(mean, -_FARTHEST, _FARTHEST)))
        gap = np.tanh(0.5 * (scores[first] - scores[second]))[pair]
        agree, squares = (np.bincount(by, values, len(known)) for values in (signed * gap, amount * gap**2))
        surplus = np.clip((agree + strength * known) / (squares + strength), -_FARTHEST, _FARTHEST)
    return scores, prior.from_surplus(surplus)


def turned_parts(
    answers: Answers, contests: Contests, prior: OwnPrior, scores: Floats, own: Floats, *, settled: bool = False
) -> tuple[Bools, Bools]:
    """Return which items and which annotators would be better turned round.

    All items and annotators that answers connect, where those among them known to be good speak against the scores or,
    if there are none and the side is not settled, where the priors say so; else single groups of items that were never
    compared with the others, where the annotators as known from the others speak against them.
    """
    part, part_of = _joint_parts(answers, contests, len(own))
    heard, n = part_of >= 0, len(scores) + 1
    gain = np.zeros(n) if settled else -np.bincount(part_of[heard], (prior.favour * own)[heard], n)
    told = np.zeros(n, bool)
    told[part_of[heard & prior.sure]] = True
    if told.any():
        agreement = np.bincount(answers.annotator, _support(answers, prior, scores, np.ones(len(own))), len(own))
        gain[told] = -np.bincount(part_of[heard], np.where(prior.sure, agreement, 0.0)[heard], n)[told]
    turn_items, turn_own = gain[part] > _CLEARLY, heard & (gain[part_of] > _CLEARLY) & ~prior.sure
    if turn_items.any() or (contests.group == part).all():
        return turn_items, turn_own
    support = _support(answers, prior, scores, prior.natural(own)[0])
    gains = -np.bincount(contests.group[answers.first][answers.pair], support, len(scores))
    return gains[contests.group] > _CLEARLY, np.zeros(len(own), bool)


def _support(answers: Answers, prior: OwnPrior, scores: Floats, natural: Floats) -> Floats:
    """By how much each answer is likelier for the scores than for scores turned round, as logarithm, up to rounding."""
    gap = scores[answers.first] - scores[answers.second]
    gap = np.tanh(0.5 * gap) if prior.model == "mixture" else gap
    x = natural[answers.annotator] * gap[answers.pair] * answers.outcome
    support = 2.0 * np.arctanh(np.clip(x, -_SUREST, _SUREST)) if prior.model == "mixture" else x
    return support * answers.weight if answers.weight.size else support


def _joint_parts(answers: Answers, contests: Contests, n_annotators: int) -> tuple[Ints, Ints]:
    """Number of the part of items and annotators connected by answers, of each item and annotator; -1 without any."""
    group, n_items = contests.group, len(contests.group)
    part = np.full(n_annotators, -1, np.int32)
    heads = np.unique(group[answers.second])
    if len(heads) <= 1:
        part[answers.annotator] = heads[0] if len(heads) else -1
        return group, part
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    place = np.searchsorted(heads, group[answers.first])[answers.pair].astype(np.int64)
    cell = place * n_annotators + answers.annotator
    if len(heads) * n_annotators <= _TABLE_CELLS:
        table = np.zeros(len(heads) * n_annotators, bool)
        table[cell] = True
        cell = np.flatnonzero(table)
    row, column = np.divmod(cell, n_annotators)
    size = len(heads) + n_annotators
    graph = csr_array((np.ones(len(cell), np.int8), (row, column + len(heads))), shape=(size, size))
    found = connected_components(graph, directed=False)[1]
    # a part goes by the lowest item in it
    lowest = np.full(size, n_items, np.int32)
    np.minimum.at(lowest, found[: len(heads)], heads)
    part[column] = lowest[found[column + len(heads)]]
    joined = group.copy()
    joined[np.isin(group, heads)] = lowest[found[np.searchsorted(heads, group[np.isin(group, heads)])]]
    return joined, part
