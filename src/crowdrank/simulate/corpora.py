"""Items with features that tell part of their relevance, for rankers to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..data.clicks import Clicks
from ..data.features import Features
from ..data.truth import Truth
from ..errors import ParameterError
from ..wording import one_of
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
    # what the features tell of the relevance, of variance 1
    rng = np.random.default_rng(function)
    straight, together = rng.standard_normal(n_features), rng.standard_normal(_PAIRS)[: n_features // 2]
    pairs = 2 * np.arange(len(together))
    alone = matrix @ straight / float(np.linalg.norm(straight))
    paired = (matrix[:, pairs] * matrix[:, pairs + 1]) @ together / max(float(np.linalg.norm(together)), 1e-300)
    signal = np.sqrt(1 - interactions) * alone + np.sqrt(interactions) * paired
    z = np.sqrt(explained) * signal + np.sqrt(1 - explained) * noise.z
    items, grade = noise.truth.items, np.searchsorted(noise.cuts, z).astype(float)
    features = Features(items, matrix, tuple(numbered_ids("f", n_features)), grade)
    return Corpus(LatentTruth(Truth("grade", items, grade), z, noise.cuts), features)


_MODELS = ("position_bias", "cascade", "dependent_click")


def draw_clicks(
    truth: Truth,
    rankings: Any,
    *,
    n_impressions: int = 10,
    k: int = 10,
    model: str = "position_bias",
    eta: float = 1.0,
    noise: float = 0.1,
    go_on: float = 0.5,
    seed: int = 0,
) -> Clicks:
    r"""Return a log of clicks on the first ``k`` places of rankings.

    An examined item of grade :math:`g` is clicked with probability

    .. math:: \epsilon + (1 - \epsilon) \frac{2^g - 1}{2^{g_{max}} - 1},

    as is usual in simulations [Joachims17]_. Position :math:`k` is examined with probability :math:`k^{-\eta}`; in the
    cascade a page is read until the first click, in the dependent-click model the user goes on after a click with
    probability ``go_on``.

    Parameters
    ----------
    truth
        Grades of items.
    rankings
        Scores of the items of the truth by the ranker, or rankers, that showed them: arrays as long as the truth. Each
        impression is by one of them, in turn.
    n_impressions
        Pages of each query.
    k
        Places of a page.
    model
        ``"position_bias"``, ``"cascade"`` or ``"dependent_click"``.
    eta
        How fast examination falls with the position; 0 is no bias.
    noise
        Probability of a click on an examined item of grade 0.
    go_on
        Probability of reading on after a click, in the dependent-click model.
    seed
        Seed of the draws.
    """
    one_of(model, _MODELS, "model")
    if truth.grade is None or truth.form != "grade":
        raise ParameterError("clicks are drawn over grades; give a truth with grades")
    if n_impressions < 1 or k < 1 or not 0 <= noise <= 1 or not 0 <= go_on <= 1 or eta < 0:
        raise ParameterError("n_impressions and k are at least 1, noise and go_on probabilities, eta at least 0")
    rng, items = np.random.default_rng(seed), truth.items
    scores = [np.asarray(one, np.float64) for one in (rankings if isinstance(rankings, list | tuple) else [rankings])]
    gain = np.exp2(truth.grade) - 1.0
    appeal = noise + (1.0 - noise) * gain / max(float(gain.max()), 1e-12)
    parts = []
    for page in range(n_impressions):
        # the first places of each query
        shown = np.lexsort((np.arange(len(items)), -scores[page % len(scores)], items.query))
        place = np.arange(len(items)) - items.offsets[items.query[shown]]
        item, position = shown[place < k], place[place < k] + 1
        query = items.query[item]
        hit = rng.random(len(item)) < appeal[item]
        if model == "position_bias":
            clicked = hit & (rng.random(len(hit)) < position.astype(float) ** -eta)
        else:
            # rows lie page by page, each read from the top until a click at which the user stops
            stops = hit & (rng.random(len(hit)) >= (0.0 if model == "cascade" else go_on))
            start = np.concatenate([[True], np.diff(query) != 0])
            passed = np.cumsum(stops, dtype=np.int64) - stops
            first = np.maximum.accumulate(np.where(start, np.arange(len(hit)), 0))
            clicked = hit & (passed == passed[first])
        parts.append((item, position, clicked, query.astype(np.int64) * n_impressions + page))
    item, position, clicked, impression = (np.concatenate(part) for part in zip(*parts, strict=True))
    columns = {"position": position, "clicked": clicked.astype(np.int8), "impression": impression}
    return Clicks.from_frame(items.frame()[item].with_columns(pl.Series(name, one) for name, one in columns.items()))
