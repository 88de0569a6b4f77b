"""Scores of items from their places in random rankings, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...data.judgments import Rankings
from ...protocols import Bools, Floats
from .mallows_crowd import Expected, MallowsCrowd


def middle_places(crowd: MallowsCrowd) -> Floats:
    """Return the middle place of the query of each of the crowd's items, places counting from 0."""
    sizes = crowd.arranged.lists.sizes
    return np.repeat(0.5 * (sizes.astype(np.float64) - 1), sizes)


def place_scores(rankings: Rankings, crowd: MallowsCrowd, place: Floats) -> Floats:
    """Return places above the middle one; 0 for what was not ranked, equal for what cannot be told apart.

    ``place`` are those of the crowd's items.
    """
    twin, scores = crowd.arranged.twin, np.zeros(rankings.n_items)
    alike = np.bincount(twin, minlength=len(twin))[twin]
    scores[crowd.arranged.item] = np.bincount(twin, middle_places(crowd) - place, len(twin))[twin] / alike
    return scores


def unranked_scores(
    rankings: Rankings, crowd: MallowsCrowd, known: Bools, predict: Callable[[Bools], Floats]
) -> Floats:
    """Return scores of items that nobody ranked, 0 for all others, from Plackett-Luce scores by features.

    By these an item stands above another with some probability. The score is the number of ranked items (of items,
    where none of the query is ranked) that it is expected to stand above, less half of them. ``known`` (n_items,) have
    features, and ``predict`` gives their Plackett-Luce scores.
    """
    found, free = np.zeros(rankings.n_items), np.ones(rankings.n_items, bool)
    free[crowd.arranged.item] = False
    if not (free & known).any():
        return found
    scores = np.zeros(rankings.n_items)
    scores[known] = predict(known)
    for query in np.unique(rankings.items.query[free & known]):
        here = np.arange(*rankings.items.offsets[query : query + 2])
        others = here[known[here] & (free[here].all() | ~free[here])]
        ours = here[free[here] & known[here]]
        # half of the hyperbolic tangent of half a gap is the logistic function less a half
        found[ours] = 0.5 * np.tanh(0.5 * np.subtract.outer(scores[ours], scores[others])).sum(axis=1)
    return found


def place_spread(
    rankings: Rankings, crowd: MallowsCrowd, found: Expected, draws: NDArray[np.float32], scores: Floats, seed: int
) -> tuple[NDArray[np.float32], Floats]:
    """Return random scores of all items, and their standard errors; what was not ranked may stand anywhere.

    ``draws`` (n_draws, n_crowd_items) are places in random rankings, ``scores`` (n_items,) those of the consensus.
    """
    sizes, item = crowd.arranged.lists.sizes, crowd.arranged.item
    room = (sizes + 1)[rankings.items.query] * (np.diff(rankings.items.offsets) > 1)[rankings.items.query]
    replicates = np.empty((len(draws), rankings.n_items), np.float32)
    std_error, free = room / np.sqrt(12.0), np.ones(rankings.n_items, bool)
    free[item] = False
    rng = np.random.default_rng(seed)
    replicates[:, free] = (rng.random((len(draws), int(free.sum())), np.float32) - np.float32(0.5)) * room[free]
    replicates[:, free] += scores[free].astype(np.float32)
    replicates[:, item] = middle_places(crowd).astype(np.float32) - draws
    exact = np.isin(crowd.item_query, crowd.exact)
    std_error[item] = np.sqrt(np.where(exact, found.spread, draws.var(axis=0, dtype=np.float64)))
    return replicates, std_error
