"""Which way round scores and annotators are: priors, a start on the majority's side, and what to reverse at the end.

Reversed scores with every annotator reversed explain preferences equally well; only the priors of the annotators
decide. A fit that starts on the wrong side would end there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from ...pair_counts import PairCounts
from ...protocols import Bools, Floats, Ints

if TYPE_CHECKING:
    from ...kernels.pairs import PreferencesByPair

_START_ROUNDS = 2
_START_PRIOR_WEIGHT = 1.0
_START_MAX_SURPLUS = 0.9
_MIN_GAIN = 1e-6
"""Gain of the objective from which scores are reversed."""

_MAX_SURPLUS = 1 - 1e-12
_MAX_TABLE_CELLS = 1 << 26


class AnnotatorPrior(Protocol):
    """Prior of the annotators' parameters, and how a parameter enters the likelihood.

    ``model`` names the likelihood in the kernel ``pair_likelihood``; parameters stay between ``low`` and ``high``.
    """

    model: ClassVar[str]
    low: ClassVar[float]
    high: ClassVar[float]

    @property
    def trusted(self) -> Bools:
        """Annotators known to be good."""
        ...

    @property
    def sign_cost(self) -> Floats:
        """What the log prior loses for each unit of a parameter whose sign is reversed, (n_annotators,)."""
        ...

    def default(self) -> Floats:
        """Return the parameter of an annotator without preferences, ()."""
        ...

    def transform(self, own: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the parameter of the likelihood, and its first and second derivatives."""
        ...

    def log_density(self, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior, its gradient and its negated second derivatives."""
        ...

    def without_trusted(self) -> AnnotatorPrior:
        """Return the prior with nobody trusted."""
        ...

    def expected_surplus(self) -> tuple[Floats, Floats]:
        """Return the expected surplus of right over wrong preferences, -1 to 1, and its weight in preferences."""
        ...

    def from_surplus(self, surplus: Floats) -> Floats:
        """Return parameters that fit a surplus of right over wrong preferences."""
        ...


def majority_start(
    preferences: PreferencesByPair, pair_counts: PairCounts, prior: AnnotatorPrior
) -> tuple[Floats, Floats]:
    """Return rough scores and parameters of annotators.

    Scores are the mean outcomes of an item, with annotators weighed by the prior first, and then by how their
    preferences agree with the first scores.
    """
    first, second, pair = preferences.first, preferences.second, preferences.pair
    by, amount = (
        preferences.annotator,
        preferences.weight if preferences.weight.size else np.ones(len(preferences.code)),
    )
    signed, n_items, n_pairs = amount * preferences.outcome, len(pair_counts.wins), len(second)
    known, strength = prior.expected_surplus()
    surplus = known
    for _ in range(_START_ROUNDS):
        lead = np.bincount(pair, signed * surplus[by], n_pairs)
        weight = np.bincount(pair, amount * surplus[by] ** 2, n_pairs)
        ahead = np.bincount(first, lead, n_items) - np.bincount(second, lead, n_items)
        mean = ahead / (
            np.bincount(first, weight, n_items) + np.bincount(second, weight, n_items) + _START_PRIOR_WEIGHT
        )
        scores = pair_counts.centred(2.0 * np.arctanh(np.clip(mean, -_START_MAX_SURPLUS, _START_MAX_SURPLUS)))
        gap = np.tanh(0.5 * (scores[first] - scores[second]))[pair]
        agree, squares = (np.bincount(by, values, len(known)) for values in (signed * gap, amount * gap**2))
        surplus = np.clip((agree + strength * known) / (squares + strength), -_START_MAX_SURPLUS, _START_MAX_SURPLUS)
    return scores, prior.from_surplus(surplus)


def parts_to_reverse(
    preferences: PreferencesByPair,
    pair_counts: PairCounts,
    prior: AnnotatorPrior,
    scores: Floats,
    own: Floats,
    *,
    settled: bool = False,
) -> tuple[Bools, Bools]:
    """Return which items and which annotators are better reversed.

    A part is all items and annotators that preferences connect. It is reversed if its trusted annotators contradict the
    scores or, without any and if the side is not settled, if the priors do. If no part is, single groups of items that
    were never compared with others are reversed where the annotators, as estimated from the others, contradict them.
    """
    part, part_of = _connected_parts(preferences, pair_counts, len(own))
    heard, n = part_of >= 0, len(scores) + 1
    gain = np.zeros(n) if settled else -np.bincount(part_of[heard], (prior.sign_cost * own)[heard], n)
    decided = np.zeros(n, bool)
    decided[part_of[heard & prior.trusted]] = True
    if decided.any():
        agreement = np.bincount(
            preferences.annotator, _support(preferences, prior, scores, np.ones(len(own))), len(own)
        )
        gain[decided] = -np.bincount(part_of[heard], np.where(prior.trusted, agreement, 0.0)[heard], n)[decided]
    reverse_items, reverse_own = gain[part] > _MIN_GAIN, heard & (gain[part_of] > _MIN_GAIN) & ~prior.trusted
    if reverse_items.any() or (pair_counts.group == part).all():
        return reverse_items, reverse_own
    support = _support(preferences, prior, scores, prior.transform(own)[0])
    gains = -np.bincount(pair_counts.group[preferences.first][preferences.pair], support, len(scores))
    return gains[pair_counts.group] > _MIN_GAIN, np.zeros(len(own), bool)


def _support(preferences: PreferencesByPair, prior: AnnotatorPrior, scores: Floats, transformed: Floats) -> Floats:
    """Log-likelihood of each preference given the scores less that given reversed scores, up to rounding."""
    gap = scores[preferences.first] - scores[preferences.second]
    gap = np.tanh(0.5 * gap) if prior.model == "mixture" else gap
    x = transformed[preferences.annotator] * gap[preferences.pair] * preferences.outcome
    support = 2.0 * np.arctanh(np.clip(x, -_MAX_SURPLUS, _MAX_SURPLUS)) if prior.model == "mixture" else x
    return support * preferences.weight if preferences.weight.size else support


def _connected_parts(preferences: PreferencesByPair, pair_counts: PairCounts, n_annotators: int) -> tuple[Ints, Ints]:
    """Number of the connected part of each item and of each annotator; -1 without preferences."""
    group, n_items = pair_counts.group, len(pair_counts.group)
    part = np.full(n_annotators, -1, np.int32)
    heads = np.unique(group[preferences.second])
    if len(heads) <= 1:
        part[preferences.annotator] = heads[0] if len(heads) else -1
        return group, part
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    place = np.searchsorted(heads, group[preferences.first])[preferences.pair].astype(np.int64)
    cell = place * n_annotators + preferences.annotator
    if len(heads) * n_annotators <= _MAX_TABLE_CELLS:
        table = np.zeros(len(heads) * n_annotators, bool)
        table[cell] = True
        cell = np.flatnonzero(table)
    row, column = np.divmod(cell, n_annotators)
    size = len(heads) + n_annotators
    graph = csr_array((np.ones(len(cell), np.int8), (row, column + len(heads))), shape=(size, size))
    component = connected_components(graph, directed=False)[1]
    # the number of a part is its lowest item
    lowest = np.full(size, n_items, np.int32)
    np.minimum.at(lowest, component[: len(heads)], heads)
    part[column] = lowest[component[column + len(heads)]]
    joined = group.copy()
    joined[np.isin(group, heads)] = lowest[component[np.searchsorted(heads, group[np.isin(group, heads)])]]
    return joined, part
