"""VRJAM's clusters of pairs: k-means of how the features of two items differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...protocols import Counts, Floats, Ints

if TYPE_CHECKING:
    from .kernels.pair_patterns import PairPatterns

_MOST_CLUSTERS = 16
_MOST_SAMPLED_PAIRS = 30_000
_MOST_ITERATIONS = 100
_CLOSE_SHARE = 0.5
"""Two centres are close if nearer than this share of the mean distance."""


def cluster_pairs(pairs: PairPatterns, matrix: Floats, n_clusters: int | None, *, folded: bool, seed: int) -> Ints:
    r"""Return the cluster of each pair, (n_pairs,), by k-means of the difference :math:`x_i - x_j` of its features.

    Which item of a pair stands first is arbitrary: if ``folded``, a difference and its negative are the same, and near
    a centre if either is. With ``n_clusters=None`` the number rises from 2 until two centres are nearer than half the
    mean distance, or to 16.
    """
    from .kernels.pair_patterns import nearest_centres

    sample = _sample_differences(pairs, matrix, np.random.default_rng(seed))
    if n_clusters is not None:
        centres = _centres(sample, n_clusters, folded, seed)
    else:
        centres = _centres(sample, 2, folded, seed)
        for number in range(3, _MOST_CLUSTERS + 1):
            more = _centres(sample, number, folded, seed)
            if _some_close(more, folded):
                break
            centres = more
    return nearest_centres(pairs, matrix @ centres.T, (centres**2).sum(axis=1), folded=folded)


def _sample_differences(pairs: PairPatterns, matrix: Floats, rng: np.random.Generator) -> Floats:
    """Feature differences of some pairs, in an order that does not depend on that of items."""
    chosen: Counts = np.arange(pairs.n_pairs)
    if pairs.n_pairs > _MOST_SAMPLED_PAIRS:
        chosen = np.sort(rng.choice(pairs.n_pairs, _MOST_SAMPLED_PAIRS, replace=False))
    differences: Floats = matrix[pairs.first[chosen]] - matrix[pairs.second[chosen]]
    return differences[np.lexsort(np.abs(differences).T)]


def _centres(sample: Floats, number: int, folded: bool, seed: int) -> Floats:
    """Centres of k-means, (number, n_features); the centre of an empty cluster stays where it was."""
    centres = _first_centres(sample, number, folded, np.random.default_rng(seed))
    cluster = np.full(len(sample), -1)
    for _ in range(_MOST_ITERATIONS):
        product = sample @ centres.T
        nearest = np.argmin((centres**2).sum(axis=1) - 2 * (np.abs(product) if folded else product), axis=1)
        if (nearest == cluster).all():
            break
        cluster = nearest
        side = np.sign(product[np.arange(len(sample)), cluster]) if folded else np.ones(len(sample))
        size = np.bincount(cluster, minlength=number)
        sums = np.stack([np.bincount(cluster, side * column, number) for column in sample.T], axis=1)
        centres = np.where(size[:, None] > 0, sums / np.maximum(size, 1)[:, None], centres)
    return centres


def _first_centres(sample: Floats, number: int, folded: bool, rng: np.random.Generator) -> Floats:
    """Differences drawn one after the other, each by its squared distance from those before (k-means++)."""
    square = (sample**2).sum(axis=1)
    chosen = [int(rng.integers(len(sample)))]
    distance = np.full(len(sample), np.inf)
    for _ in range(number - 1):
        product = sample @ sample[chosen[-1]]
        distance = np.minimum(distance, square + square[chosen[-1]] - 2 * (np.abs(product) if folded else product))
        chance = np.cumsum(np.maximum(distance, 0.0))
        place = np.searchsorted(chance, rng.random() * chance[-1], side="right") if chance[-1] > 0 else 0
        chosen.append(min(int(place), len(sample) - 1))
    return sample[chosen]


def _some_close(centres: Floats, folded: bool) -> bool:
    """Whether two centres are much nearer than any two are on average."""
    one, other = np.triu_indices(len(centres), 1)
    distance = np.linalg.norm(centres[one] - centres[other], axis=1)
    if folded:
        distance = np.minimum(distance, np.linalg.norm(centres[one] + centres[other], axis=1))
    return bool(distance.min() < _CLOSE_SHARE * distance.mean())
