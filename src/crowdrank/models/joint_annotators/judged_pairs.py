"""Judged pairs with the sources of each preference, known pairs among them; priors of flip rates; VRJAM's clusters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ...data.features import Features
from ...data.judgments import Judgments, Preferences
from ...data.naming import first_ids
from ...data.truth import Truth
from ...errors import JudgmentError
from ...protocols import Bools, Counts, Floats, Ints, Outcomes
from ...quality import TRUSTED, trusted_annotators
from ...wording import option

if TYPE_CHECKING:
    from ...rankers.training_rows import Scaling
    from .kernels.pair_patterns import Expectation, PairPatterns


START_FLIP_RATE = 0.3
"""First guess of every flip rate: at equal scores the first E-step is then the majority vote."""

KNOWN_FLIP_RATE = 1e-15
"""Flip rate of the source that stands for known pairs."""

_LEAST_FLIP_RATE = 1e-3

_MOST_CLUSTERS = 16
_MOST_SAMPLED_PAIRS = 30_000
_MOST_ITERATIONS = 100
_CLOSE_SHARE = 0.5
"""Two centres are close if nearer than this share of the mean distance."""


class FlipPrior(NamedTuple):
    """Flipped and right preferences that each source starts with, (n_sources,) each; ``fixed`` is a rate, or NaN."""

    flipped: Floats
    right: Floats
    fixed: Floats

    def flip_rates(self, flipped: Floats, number: Floats) -> Floats:
        """Return the most probable rates for these numbers of flipped preferences and of all (M-step)."""
        total = number + self.flipped + self.right
        rate = np.divide(flipped + self.flipped, total, out=np.full(len(total), 0.5), where=total > 0)
        return np.where(np.isnan(self.fixed), np.clip(rate, _LEAST_FLIP_RATE, 1 - _LEAST_FLIP_RATE), self.fixed)

    def log_density(self, flip_rates: Floats) -> float:
        """Return the logarithm of the prior, up to a constant."""
        free = np.isnan(self.fixed)
        return float((self.flipped * np.log(flip_rates) + self.right * np.log1p(-flip_rates))[free].sum())

    def mirror(self, flip_rates: Floats) -> Floats:
        """Return the rates if every preference were reversed."""
        return np.where(np.isnan(self.fixed), 1.0 - flip_rates, self.fixed)

    def fix_at(self, flip_rates: Floats) -> FlipPrior:
        """Return the prior of sources whose rates are known to be these."""
        return self._replace(fixed=flip_rates)


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Pairs with the preferences on them by annotators and, as the last source, by what is known.

    Parameters
    ----------
    pairs
        The preferences on each pair; a tie is none.
    prior
        Prior of the sources' flip rates.
    n_annotators
        Number of sources that are annotators; 1 where judgments name none.
    side_known
        Whether annotators are trusted, or pairs are known, so the mirror image can be ruled out.
    """

    pairs: PairPatterns
    prior: FlipPrior
    n_annotators: int
    side_known: bool

    @classmethod
    def of(cls, preferences: Preferences, known: Any | None, trusted: Any | None, alpha: float) -> JudgedPairs:
        """Return the judged pairs; annotators start with ``alpha`` preferences, three in ten of them flipped."""
        from .kernels.pair_patterns import find_patterns

        n = max(preferences.n_annotators, 1)
        good = np.append(trusted_annotators(preferences, trusted), np.zeros(n - preferences.n_annotators, bool))
        by = preferences.row_annotator
        columns: tuple[Any, ...] = (preferences.left, preferences.right, preferences.outcome, by)
        weight = preferences.weight
        truth = None if known is None else known_pairs(known, preferences)
        if truth is not None:
            more: tuple[Any, ...] = (*truth, np.full(len(truth[0]), n, np.int32))
            columns = tuple(np.concatenate(both) for both in zip(columns, more, strict=True))
            weight = None if weight is None else np.append(weight, np.ones(len(truth[0])))
        n_sources = n + (truth is not None)
        pairs = find_patterns(*columns, weight=weight, offsets=preferences.items.offsets, n_sources=n_sources)
        return cls(pairs, flip_prior(good, alpha, n_sources), n, bool(good.any()) or truth is not None)

    @property
    def n_preferences(self) -> Floats:
        """Number of preferences of each annotator, by their weight; ties do not count."""
        return self.pairs.source_weights(len(self.prior.fixed))[: self.n_annotators]


def patterns_of(preferences: Preferences) -> PairPatterns:
    """Return the judged pairs of preferences; where nobody is named, all are by one annotator."""
    from .kernels.pair_patterns import find_patterns

    by = preferences.row_annotator
    rows: tuple[Any, ...] = (preferences.left, preferences.right, preferences.outcome, by)
    n_sources = max(preferences.n_annotators, 1)
    return find_patterns(*rows, weight=preferences.weight, offsets=preferences.items.offsets, n_sources=n_sources)


def flip_prior(good: Bools, alpha: float, n_sources: int) -> FlipPrior:
    """Return the prior of the flip rates of annotators, trusted ones among them, and of what is known."""
    right, wrong = TRUSTED
    more = n_sources - len(good)
    return FlipPrior(
        np.append(np.where(good, wrong, START_FLIP_RATE * alpha), np.zeros(more)),
        np.append(np.where(good, right, (1 - START_FLIP_RATE) * alpha), np.zeros(more)),
        np.append(np.full(len(good), np.nan), np.full(more, KNOWN_FLIP_RATE)),
    )


def known_pairs(known: Any, preferences: Preferences) -> tuple[Ints, Ints, Outcomes] | None:
    """Return left, right and outcome of the pairs whose better item is known, each once; ``None`` if there are none.

    ``known`` is a truth, or a table of one: of left, right and winner, or of items with grades or ranks, which then
    decide the judged pairs. Ties say nothing.
    """
    truth = Truth.from_frame(known)
    if truth.form == "pairs":
        left, right, outcome = truth.align_pairs(preferences.items)
    else:
        grade = truth.align(preferences.items)
        left, right = preferences.left, preferences.right
        gap = grade[left] - grade[right]
        # an unknown gap counts as a tie
        outcome = np.where(np.isnan(gap), 0, np.sign(gap)).astype(np.int8)
    decided = outcome != 0
    left, right, outcome = left[decided], right[decided], outcome[decided]
    low, high = np.minimum(left, right), np.maximum(left, right)
    outcome = np.where(left < right, outcome, -outcome).astype(np.int8)
    keys, first, place = np.unique(
        low.astype(np.int64) * len(preferences.items) + high, return_index=True, return_inverse=True
    )
    _refuse_contradiction(preferences, low, high, outcome, outcome[first][place])
    return (low[first], high[first], outcome[first]) if len(keys) else None


def _refuse_contradiction(preferences: Preferences, low: Ints, high: Ints, outcome: Outcomes, former: Outcomes) -> None:
    """Refuse a pair that is known in both orders."""
    wrong: Counts = np.flatnonzero(outcome != former)
    if len(wrong):
        of = np.isin(np.arange(len(preferences.items)), [low[wrong[0]], high[wrong[0]]])
        raise JudgmentError(
            f"{option('known')} orders the items {first_ids(preferences.items, of)} both ways; keep one of the two rows"
        )


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


_LONGEST_WEIGHT_STEP = 5.0
_MOST_SOLVED_FEATURES = 32
"""Up to this many features the Newton step solves the whole matrix; above, it takes conjugate gradients."""

_GRADIENT_ACCURACY = 0.1
"""Conjugate gradients stop at this share of the gradient: the next Newton step corrects the rest."""


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """Scaled features of each item of some judgments.

    Parameters
    ----------
    scaling
        How features are scaled.
    values
        Scaled features of each item, (n_items, n_features), 0 for items without any.
    row
        Row of each item in the features, -1 for items without any.
    """

    scaling: Scaling
    values: Floats
    row: Ints

    @classmethod
    def of(cls, features: Features, judgments: Judgments) -> ItemFeatures:
        """Return the features of the items, on the scale of those that were judged; missing numbers are refused."""
        from ...rankers.training_rows import Lists, Matrix, learn_scaling

        row = np.asarray(features.items.codes_of(judgments.items, "features", "judgments"))
        used = np.flatnonzero(features.match(judgments, so="are taken as average ones") >= 0)
        features.expect_numbers(row[row >= 0])
        matrix = Matrix(np.ascontiguousarray(features.matrix[row[used]]))
        lists = Lists.of(len(used), np.zeros(len(used)), judgments.items.query[used])
        scaling = learn_scaling("overall", matrix, lists)
        values = np.zeros((len(row), len(features.names)))
        present = np.flatnonzero(row >= 0)
        values[present] = scaling.apply(features.matrix[row[present]], np.zeros(1, np.int64))
        return cls(scaling, values, row.astype(np.int32))

    def centre_by_query(self, judged: Bools, offsets: Counts) -> Floats:
        """Return the values less the mean of the judged items of each query, 0 for items without features."""
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        has = self.row >= 0
        use = judged & has
        number = np.maximum(np.bincount(query[use], minlength=len(offsets) - 1), 1)
        centred = np.zeros_like(self.values)
        for column, values in zip(centred.T, self.values.T, strict=True):
            means = np.bincount(query[use], values[use], len(number)) / number
            column[has] = values[has] - means[query[has]]
        return centred


class ScoreModel(Protocol):
    """What expectation-maximisation needs of a score model."""

    @property
    def hinge(self) -> bool:
        """Whether scores are fitted by the smoothed hinge instead of the likelihood."""
        ...

    def start(self) -> Floats:
        """Return the parameters at which all scores are equal."""
        ...

    def scores(self, parameters: Floats) -> Floats:
        """Return the scores, (n_items,)."""
        ...

    def log_prior(self, parameters: Floats) -> float:
        """Return the logarithm of the prior, up to a constant."""
        ...

    def newton_step(self, pairs: PairPatterns, here: Expectation, parameters: Floats) -> tuple[Floats, float]:
        """Return the Newton step from some parameters, and the gain that its slope promises."""
        ...


@dataclass(frozen=True)
class EqualScores:
    """All items alike, so preferences alone decide a pair; there are no parameters."""

    n_items: int
    hinge: bool = False

    def start(self) -> Floats:
        """Return no parameters."""
        return np.empty(0)

    def scores(self, parameters: Floats) -> Floats:
        """Return zeros."""
        return np.zeros(self.n_items)

    def log_prior(self, parameters: Floats) -> float:
        """Return 0."""
        return 0.0

    def newton_step(self, pairs: PairPatterns, here: Expectation, parameters: Floats) -> tuple[Floats, float]:
        """Return no step."""
        return parameters, 0.0


@dataclass(frozen=True, eq=False)
class FeatureScores:
    """Weighted sums of features (JAM); the parameters are the weights.

    Parameters
    ----------
    matrix
        Features of each item, (n_items, n_features), on one scale and centred in each query.
    ridge
        Precision of the normal prior of the weights.
    hinge
        Whether weights are fitted by the smoothed hinge instead of the logistic loss.
    """

    matrix: Floats
    ridge: float
    hinge: bool = False

    def start(self) -> Floats:
        """Return zero weights."""
        return np.zeros(self.matrix.shape[1])

    def scores(self, parameters: Floats) -> Floats:
        """Return the weighted sums."""
        scores: Floats = np.einsum("ip,p->i", self.matrix, parameters)
        return scores

    def log_prior(self, parameters: Floats) -> float:
        """Return the log prior of the weights."""
        return -0.5 * self.ridge * float(parameters @ parameters)

    def newton_step(self, pairs: PairPatterns, here: Expectation, parameters: Floats) -> tuple[Floats, float]:
        """Return the step of the weights."""
        gradient = np.einsum("ip,i->p", self.matrix, here.gradient) - self.ridge * parameters
        solve = self._solve_directly if len(parameters) <= _MOST_SOLVED_FEATURES else self._solve_iteratively
        step = np.clip(solve(pairs, here, gradient), -_LONGEST_WEIGHT_STEP, _LONGEST_WEIGHT_STEP)
        return step, float(gradient @ step)

    def _solve_directly(self, pairs: PairPatterns, here: Expectation, gradient: Floats) -> Floats:
        """The step from the whole matrix of second derivatives."""
        curvature = self.matrix.T @ pairs.curvature(here)[1](self.matrix)
        curvature.flat[:: len(gradient) + 1] += self.ridge
        return np.linalg.solve(curvature, gradient).astype(np.float64, copy=False)

    def _solve_iteratively(self, pairs: PairPatterns, here: Expectation, gradient: Floats) -> Floats:
        """The step by conjugate gradients, for many features."""
        from ...kernels.laplacian import conjugate_gradient

        over_items = pairs.curvature(here)[0]
        diagonal = np.einsum("ip,i,ip->p", self.matrix, here.degree, self.matrix) + self.ridge

        def product(vector: Floats) -> Floats:
            return self.matrix.T @ over_items(self.matrix @ vector) + self.ridge * vector

        return conjugate_gradient(product, diagonal, gradient, accuracy=_GRADIENT_ACCURACY)


@dataclass(frozen=True, eq=False)
class ItemEffectScores:
    r"""Weighted sums of features plus an effect of each item; the parameters are the scores themselves.

    With :math:`s = X w + u`, :math:`w \sim N(0, 1 / \text{ridge})` and :math:`u \sim N(0, \text{spread}^2)` the scores
    are normal, and their log prior is the squared length of what features do not explain.

    Parameters
    ----------
    matrix
        Features of each item, (n_items, n_features), on one scale and centred in each query; 0 for unjudged ones.
    ridge
        Precision of the normal prior of the weights.
    spread
        Standard deviation of the item effects.
    judged
        Which items were judged, (n_items,).
    """

    matrix: Floats
    ridge: float
    spread: float
    judged: Bools
    hinge: bool = False

    @cached_property
    def explained_directions(self) -> Floats:
        """Directions of scores that features explain, (n_items, n_features); times its transpose, a projection."""
        from scipy.linalg import solve_triangular

        square = self.matrix.T @ self.matrix
        square.flat[:: len(square) + 1] += self.ridge * self.spread**2
        directions: Floats = solve_triangular(np.linalg.cholesky(square), self.matrix.T, lower=True).T
        return np.ascontiguousarray(directions)

    @cached_property
    def n_free(self) -> float:
        """Degrees of freedom of the item effects: judged items less those that features can explain."""
        return max(float(self.judged.sum() - (self.explained_directions**2).sum()), 1.0)

    def start(self) -> Floats:
        """Return equal scores."""
        return np.zeros(len(self.matrix))

    def scores(self, parameters: Floats) -> Floats:
        """Return the parameters."""
        return parameters

    def residuals(self, scores: Floats) -> Floats:
        """Return the part of the scores that features do not explain."""
        rest: Floats = scores - self.explained_directions @ (self.explained_directions.T @ scores)
        return rest

    def log_prior(self, parameters: Floats) -> float:
        """Return the log prior of the scores, the weights integrated out."""
        return -0.5 * float(parameters @ self.residuals(parameters)) / self.spread**2

    def weights(self, scores: Floats) -> Floats:
        """Return the most probable weights given scores."""
        square = self.matrix.T @ self.matrix
        square.flat[:: len(square) + 1] += self.ridge * self.spread**2
        return np.linalg.solve(square, self.matrix.T @ scores).astype(np.float64, copy=False)

    def newton_step(self, pairs: PairPatterns, here: Expectation, parameters: Floats) -> tuple[Floats, float]:
        """Return the step of the scores."""
        gradient = here.gradient - self.residuals(parameters) / self.spread**2
        step = self.solve(pairs, here, gradient)
        return step, float(gradient @ step)

    def solve(self, pairs: PairPatterns, here: Expectation, gradient: Floats) -> Floats:
        """Return the curvature's inverse times the gradient, by conjugate gradients."""
        from ...kernels.laplacian import conjugate_gradient

        over_items = pairs.curvature(here)[0]
        precision = self.spread**-2

        def product(vector: Floats) -> Floats:
            return over_items(vector) + precision * self.residuals(vector)

        return conjugate_gradient(product, here.degree + precision, gradient, accuracy=_GRADIENT_ACCURACY)
