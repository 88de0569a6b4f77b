"""Pairs of items put into clusters by how their features differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...protocols import Counts, Floats, Ints

if TYPE_CHECKING:
    from .kernels.vote_patterns import VotePatterns

MOST_CLUSTERS = 16
_SAMPLE = 30_000
_ROUNDS = 100
_CLOSE = 0.5


def cluster_pairs(votes: VotePatterns, matrix: Floats, n_clusters: int | None, *, folded: bool, seed: int) -> Ints:
    r"""Return the cluster of each pair, (n_pairs,), by k-means of the difference :math:`x_i - x_j` of its features.

    Which item of a pair stands first is arbitrary: ``folded``, a difference and its negative are the same, and near a
    centre if either is. With ``n_clusters=None`` the number rises from 2 until two centres are nearer than half
    the mean distance of any two, or to 16.
    """
    from .kernels.vote_patterns import nearest_centres

    sample = _sample(votes, matrix, np.random.default_rng(seed))
    if n_clusters is not None:
        centres = _centres(sample, n_clusters, folded, seed)
    else:
        centres = _centres(sample, 2, folded, seed)
        for number in range(3, MOST_CLUSTERS + 1):
            more = _centres(sample, number, folded, seed)
            if _crowded(more, folded):
                break
            centres = more
    return nearest_centres(votes, matrix @ centres.T, (centres**2).sum(axis=1), folded=folded)


def _sample(votes: VotePatterns, matrix: Floats, rng: np.random.Generator) -> Floats:
    """Differences of some pairs, in an order that does not depend on that of items."""
    chosen: Counts = np.arange(votes.n_pairs)
    if votes.n_pairs > _SAMPLE:
        chosen = np.sort(rng.choice(votes.n_pairs, _SAMPLE, replace=False))
    found: Floats = matrix[votes.first[chosen]] - matrix[votes.second[chosen]]
    return found[np.lexsort(np.abs(found).T)]


def _centres(sample: Floats, number: int, folded: bool, seed: int) -> Floats:
    """Centres of k-means, (number, n_features); one that nothing is near stays where it was."""
    centres = _first_centres(sample, number, folded, np.random.default_rng(seed))
    cluster = np.full(len(sample), -1)
    for _ in range(_ROUNDS):
        along = sample @ centres.T
        near = np.argmin((centres**2).sum(axis=1) - 2 * (np.abs(along) if folded else along), axis=1)
        if (near == cluster).all():
            break
        cluster = near
        side = np.sign(along[np.arange(len(sample)), cluster]) if folded else np.ones(len(sample))
        size = np.bincount(cluster, minlength=number)
        sums = np.stack([np.bincount(cluster, side * column, number) for column in sample.T], axis=1)
        centres = np.where(size[:, None] > 0, sums / np.maximum(size, 1)[:, None], centres)
    return centres


def _first_centres(sample: Floats, number: int, folded: bool, rng: np.random.Generator) -> Floats:
    """Differences drawn one after the other, each by its squared distance from those before."""
    square = (sample**2).sum(axis=1)
    chosen = [int(rng.integers(len(sample)))]
    distance = np.full(len(sample), np.inf)
    for _ in range(number - 1):
        along = sample @ sample[chosen[-1]]
        distance = np.minimum(distance, square + square[chosen[-1]] - 2 * (np.abs(along) if folded else along))
        chance = np.cumsum(np.maximum(distance, 0.0))
        place = np.searchsorted(chance, rng.random() * chance[-1], side="right") if chance[-1] > 0 else 0
        chosen.append(min(int(place), len(sample) - 1))
    return sample[chosen]


def _crowded(centres: Floats, folded: bool) -> bool:
    """Whether two centres are much nearer than any two are on average."""
    one, other = np.triu_indices(len(centres), 1)
    distance = np.linalg.norm(centres[one] - centres[other], axis=1)
    if folded:
        distance = np.minimum(distance, np.linalg.norm(centres[one] + centres[other], axis=1))
    return bool(distance.min() < _CLOSE * distance.mean())
