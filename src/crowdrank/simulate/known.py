"""The truth that simulated annotators judge: items, their grades and, for some annotators, a latent relevance.

A corpus has features too, which tell part of the relevance, for rankers to learn from; clicks are drawn on its pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from ..data.clicks import Clicks
from ..data.features import Features
from ..data.index import Index, Items
from ..data.truth import Truth
from ..errors import JudgmentError, ParameterError
from ..protocols import Counts, Floats, Ints
from ..wording import in_python, one_of

Seed: TypeAlias = "int | np.random.Generator"
"""A seed; or, inside one call, the generator to go on drawing from."""

CUTS = (0.25, 0.85, 1.45, 2.0)
"""Cuts of the latent relevance between the five grades of [Yang10]_ as simulated: about 60, 20, 12, 5 and 2 %."""

MAX_LEVELS = 30


@dataclass(frozen=True, eq=False)
class LatentTruth:
    """A truth whose grades are a latent relevance cut into levels.

    Parameters
    ----------
    truth
        The grades.
    z
        Latent relevance of each item of ``truth.items``, mean 0 and standard deviation 1.
    cuts
        Level k holds ``cuts[k - 1] < z <= cuts[k]``.
    """

    truth: Truth
    z: Floats
    cuts: Floats


@dataclass(frozen=True, eq=False)
class Known:
    """The truth as arrays over item codes.

    Parameters
    ----------
    items
        The items and their queries.
    grade
        True grade of each item.
    levels
        Grades an annotator can give, worst first.
    level
        Position in ``levels`` of each item's true grade.
    latent
        Latent relevance and its cuts, where they are known.
    """

    items: Items
    grade: Floats
    levels: Floats
    level: Ints
    latent: Any = None

    @classmethod
    def of(cls, truth: Any, levels: Sequence[float] | None = None) -> Known:
        """Return the truth of a `Truth`, a `LatentTruth`, a frame, or a pair of items and grades."""
        if isinstance(truth, Known):
            return truth
        if isinstance(truth, LatentTruth):
            known = cls.of(truth.truth, levels)
            if len(truth.z) != len(known.items) or len(truth.cuts) != len(known.levels) - 1:
                given = f"{len(truth.z)} relevances and {len(truth.cuts)} cuts"
                there = f"{len(known.items)} items of {len(known.levels)} levels"
                raise ParameterError(f"{given} do not fit {there}; name the missing levels with levels=")
            return replace(known, latent=(truth.z, truth.cuts))
        if isinstance(truth, tuple):
            items, grade = truth[0], np.asarray(truth[1], float)
        else:
            truth = Truth.from_frame(truth)
            if truth.form == "pairs":
                raise ParameterError("a truth about pairs has no grades to simulate from; give query, item and grade")
            items, grade = truth.items, truth.grade
        if len(grade) != len(items) or not np.isfinite(grade).all():
            raise JudgmentError(f"the truth needs one finite grade for each of its {len(items)} items")
        distinct = np.unique(grade)
        values = distinct if levels is None else np.unique(np.asarray(levels, float))
        missing = np.setdiff1d(distinct, values)
        if len(missing):
            raise ParameterError(f"the truth has grade {missing[0]:g}, which levels= does not name; add it")
        return cls(items, grade, values, np.searchsorted(values, grade).astype(np.int32))

    @property
    def n_levels(self) -> int:
        """Number of grades an annotator can give; an error where grades are not of a few levels."""
        count = len(self.levels)
        if count > MAX_LEVELS:
            remedy = "round them to a few levels, or simulate preferences or rankings"
            raise ParameterError(f"the truth has {count} distinct grades, more than {MAX_LEVELS}; {remedy}")
        if count < 2:
            remedy = f"give items of two grades or more{in_python(', or name the other levels with levels=')}"
            raise ParameterError(f"all items of the truth have the same grade; {remedy}")
        return count

    @cached_property
    def level_pairs(self) -> Floats:
        """Pairs of unequal items of one query, by the level of the better item, then that of the worse one."""
        n_levels = self.n_levels
        cells = self.items.query.astype(np.int64) * n_levels + self.level
        counts = np.bincount(cells, minlength=self.items.n_queries * n_levels).reshape(-1, n_levels).astype(float)
        pairs = np.tril(counts.T @ counts, -1)
        # no query has two unequal items: every pair of levels then counts alike
        return pairs if pairs.any() else np.tril(np.ones((n_levels, n_levels)), -1)

    def reference(self, rng: np.random.Generator) -> Ints:
        """Return the item codes of each query, best first, equal items in random order; queries as in ``items``."""
        return np.lexsort((rng.random(len(self.items)), -self.grade, self.items.query)).astype(np.int32)

    def with_latent(self, rng: np.random.Generator) -> Known:
        """Return the same truth with a latent relevance: drawn normal, given the grade, where it has none."""
        if self.latent is not None:
            return self
        from scipy.special import ndtr, ndtri

        shares = np.bincount(self.level, minlength=self.n_levels) / len(self.level)
        cuts = ndtri(np.minimum(np.cumsum(shares)[:-1], 1.0))
        low = ndtr(np.concatenate([[-np.inf], cuts]))[self.level]
        high = ndtr(np.concatenate([cuts, [np.inf]]))[self.level]
        # kept off 0 and 1, whose normal quantiles are infinite
        chance = np.clip(low + rng.random(len(low)) * (high - low), 1e-12, 1 - 1e-12)
        return replace(self, latent=(ndtri(chance), cuts))


def draw_truth(n_queries: int = 300, n_items: int = 19, *, cuts: Sequence[float] = CUTS, seed: Seed = 0) -> LatentTruth:
    """Return a truth of normal latent relevances cut into grades 0, 1, 2, ...

    Parameters
    ----------
    n_queries, n_items
        Number of queries, and of items in each.
    cuts
        Rising cuts between the grades.

    Examples
    --------
    >>> drawn = draw_truth(1000, seed=1)
    >>> np.round(np.bincount(drawn.truth.grade.astype(int)) / 19000, 2).tolist()
    [0.6, 0.2, 0.12, 0.05, 0.02]
    """
    bounds = np.asarray(cuts, float)
    if n_queries < 1 or n_items < 1:
        raise ParameterError(f"n_queries and n_items must be at least 1, not {n_queries} and {n_items}")
    if not len(bounds) or not np.isfinite(bounds).all() or (np.diff(bounds) <= 0).any():
        raise ParameterError(f"cuts must be rising finite numbers, at least one, not {list(cuts)}")
    z = np.random.default_rng(seed).standard_normal(n_queries * n_items)
    grade = np.searchsorted(bounds, z).astype(float)
    query, item = numbered_ids("q", n_queries), numbered_ids("i", n_items)
    frame = {"query": query.gather(np.repeat(np.arange(n_queries), n_items)), "item": pl.concat([item] * n_queries)}
    return LatentTruth(Truth.from_frame(pl.DataFrame(frame).with_columns(grade=grade)), z, bounds)


def latent_truth(truth: Any, *, seed: Seed = 0) -> LatentTruth:
    """Return a truth with a latent relevance drawn for each item, fixed for all simulations that use it.

    The relevance is normal, and cut so that the grades get the shares they have in the truth.

    Examples
    --------
    >>> drawn = latent_truth({"item": ["a", "b", "c", "d"], "grade": [0, 0, 1, 2]})
    >>> np.searchsorted(drawn.cuts, drawn.z).tolist()
    [0, 0, 1, 2]
    """
    known = Known.of(truth).with_latent(np.random.default_rng(seed))
    if isinstance(truth, LatentTruth):
        return truth
    return LatentTruth(truth if isinstance(truth, Truth) else Truth("grade", known.items, known.grade), *known.latent)


def numbered_ids(letter: str, count: int) -> pl.Series:
    """Return ids such as a01, a02, ..., which sort in the order of their numbers."""
    width = len(str(count))
    return pl.Series("id", [f"{letter}{number:0{width}d}" for number in range(1, count + 1)], dtype=pl.String)


def annotator_index(count: int) -> Index:
    """Return the ids of simulated annotators."""
    return Index(numbered_ids("a", count))


def spread_offsets(counts: Counts) -> Counts:
    """Return the bounds of groups of the given sizes."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def check_range(name: str, value: Any, low: float, high: float, count: int | None = None) -> Floats:
    """Return the values as floats, one per annotator where ``count`` says so; an error outside ``low`` to ``high``."""
    values = np.asarray(value, float)
    if count is not None:
        values = np.broadcast_to(values, count)
    bad = ~((values >= low) & (values <= high) & np.isfinite(values))
    if bad.any():
        span = f"{low:g} or more" if np.isinf(high) else f"between {low:g} and {high:g}"
        raise ParameterError(f"{name} must be {span}, not {values[bad].flat[0]:g}")
    return values


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
