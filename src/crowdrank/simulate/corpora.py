"""Items with features that tell part of their relevance, for rankers to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..data.features import Features
from ..data.truth import Truth
from ..errors import ParameterError
from ..protocols import Floats
from .known import CUTS, LatentTruth, Seed, draw_truth, numbered_ids
from .pools import check_range

_PAIRS = 4
"""Pairs of features that act together, where there are this many features."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Items whose features predict part of their relevance.

    Parameters
    ----------
    truth
        True grades and the latent relevance, for annotators to judge.
    features
        Features of the same items, with the true grades.
    """

    truth: LatentTruth
    features: Features

    def __repr__(self) -> str:
        return f"Corpus({len(self.features):,} items of {self.features.items.n_queries:,} queries)"


def draw_corpus(
    n_queries: int = 300,
    n_items: int = 19,
    n_features: int = 20,
    *,
    explained: float = 0.65,
    interactions: float = 0.4,
    cuts: Sequence[float] = CUTS,
    function: int = 0,
    seed: Seed = 0,
) -> Corpus:
    r"""Return items with features and a latent relevance that depends on them.

    An item with independent standard normal features :math:`x` has relevance

    .. math:: z = \sqrt{e}\,\bigl(\sqrt{1 - s}\; w \cdot x + \sqrt{s} \textstyle\sum_j v_j x_{2j} x_{2j+1}\bigr)
              + \sqrt{1 - e}\; \epsilon,

    with weights :math:`w` and :math:`v` of length 1, drawn once for each ``function``, and :math:`\epsilon` standard
    normal, which no feature tells of. It has mean 0 and standard deviation 1, and is cut into grades.

    Parameters
    ----------
    n_queries, n_items
        Number of queries, and of items in each.
    n_features
        Features of an item.
    explained
        Share :math:`e` of the variance that features tell of; raise it for a ranker to get nearer to the truth.
    interactions
        Share :math:`s` of that which lies in products of two features, up to four of them: raise it for what a linear
        ranker cannot learn, and for more that careless grades can spoil.
    cuts
        Rising cuts between the grades.
    function
        Which relevance function; corpora of the same one can be trained and tested on.

    Examples
    --------
    >>> corpus = draw_corpus(50, seed=1)
    >>> corpus, corpus.features.matrix.shape, corpus.truth.truth
    (Corpus(950 items of 50 queries), (950, 20), Truth(950 grades, 50 queries))
    """
    for name, share in (("explained", explained), ("interactions", interactions)):
        check_range(name, share, 0, 1)
    if n_features < 1 or (interactions > 0 and n_features < 2):
        raise ParameterError(f"n_features={n_features} is too few; give at least 2, or 1 and interactions=0")
    noise_rng, feature_rng = np.random.default_rng(seed).spawn(2)
    noise = draw_truth(n_queries, n_items, cuts=cuts, seed=noise_rng)
    matrix = feature_rng.standard_normal((n_queries * n_items, n_features))
    z = np.sqrt(explained) * _feature_signal(matrix, interactions, function) + np.sqrt(1 - explained) * noise.z
    items, grade = noise.truth.items, np.searchsorted(noise.cuts, z).astype(float)
    features = Features(items, matrix, tuple(numbered_ids("f", n_features)), grade)
    return Corpus(LatentTruth(Truth("grade", items, grade), z, noise.cuts), features)


def _feature_signal(matrix: Floats, interactions: float, function: int) -> Floats:
    """What the features tell of the relevance, of variance 1."""
    rng, n_features = np.random.default_rng(function), matrix.shape[1]
    straight, together = rng.standard_normal(n_features), rng.standard_normal(_PAIRS)[: n_features // 2]
    pairs = 2 * np.arange(len(together))
    products = matrix[:, pairs] * matrix[:, pairs + 1]
    alone = matrix @ straight / float(np.linalg.norm(straight))
    paired = products @ together / max(float(np.linalg.norm(together)), 1e-300)
    signal: Floats = np.sqrt(1 - interactions) * alone + np.sqrt(interactions) * paired
    return signal
