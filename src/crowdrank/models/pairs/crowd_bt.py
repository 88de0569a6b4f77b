"""Crowd-BT: the Bradley-Terry model with one reliability per annotator, from right over guessing to reversed."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Preferences
from ...errors import ParameterError
from ...protocols import Bools, Counts, Floats, Ints
from ...quality import TRUSTED
from ...standard_errors import ScoreGradients
from ...wording import expect_above, expect_choices, option
from .annotator_model import AnnotatorMethod, AnnotatorModel, ModelPoint, table_fits

if TYPE_CHECKING:
    from ...kernels.laplacian import Product, Products
    from .kernels.pair_likelihood import Curve, TieModel

_TIES = ("split", "ignore", "davidson")
SOLVERS = ("newton", "printed")
_PRIOR_COUNTS = (8.0, 2.0)
_MIN_DISTANCE_OF_ETA = 1e-9

_MAX_ITEMS_WITHOUT_THREADS = 64
_THINNING_STEP = 4
# threshold (equal): preferences of which a part gives the first point
_MIN_PREFERENCES_TO_THIN = 400_000
_MIN_PREFERENCES_PER_PARAMETER = 10


@dataclass(frozen=True, kw_only=True)
class CrowdBT(AnnotatorMethod):
    r"""Crowd-BT: Bradley-Terry with a probability per annotator of reporting what they see.

    Annotator :math:`k` puts item :math:`i` above item :math:`j` of the same query with probability

    .. math:: P_k(i \succ j) = \eta_k \, \sigma(s_i - s_j) + (1 - \eta_k) \, \sigma(s_j - s_i),
              \qquad \sigma(x) = \frac{1}{1 + e^{-x}},

    where :math:`s` are the scores and :math:`\eta_k` the annotator's probability of reporting what they see: 1 is
    perfect, 1/2 is guessing, which gives the preferences no weight, and 0 is reversed, which reverses them [Chen13]_.
    Scores and annotators maximise the log-likelihood with a beta prior on :math:`\eta` and a normal one on :math:`s`.

    With ``ties="davidson"`` a tie has the strength :math:`\nu e^{(s_i + s_j)/2}` beside the two items' own
    [Davidson70]_. Its probability is the same from both sides, so :math:`\eta` does not enter it: ties inform the
    scores only, decided preferences scores and annotators.

    When to use
    -----------
    Use it for preferences by a crowd with some guessers or reversed annotators, each with ten preferences or more. With
    fewer the prior decides; use ``bradley_terry`` there. ``latent_score`` also learns side bias, ties and
    lapses.

    Parameters
    ----------
    ties
        ``"split"``: half a win for each side; ``"ignore"``: as if not asked; ``"davidson"``: a third outcome that says
        the two are close.
    prior
        Right and wrong preferences that each annotator starts with, (8, 2) by default: the parameters of the beta prior
        of :math:`\eta`. Raise both where annotators gave few preferences.
    ridge
        Pull of the scores towards each other, as precision of a normal prior; raise it where preferences are few.
    per_query
        Whether each annotator has a separate :math:`\eta` in each query.
    tol
        Largest change of a score, or of the log odds of :math:`\eta`, in the last step; raise it to stop earlier.
    max_iter
        Largest number of steps; raise it where a warning says that the fit did not converge.
    solver
        ``"newton"``: to the maximum; ``"printed"``: gradient steps of scores and :math:`\eta` from equal scores at a
        fixed rate, as [Niu15]_ fits its baseline. They have no standard errors.
    learning_rate
        Length of the printed steps per unit of the gradient.

    Notes
    -----
    ``crowd-bt-paper`` is the baseline of [Niu15]_: an :math:`\eta` in each query, printed steps at its rate, 0.01, next
    to no priors; :math:`\eta` begins at 0.8, since neither start nor number of steps is printed,
    and stays between 0.001 and 0.999.

    Scores and annotators are updated together by Newton steps on the observed information; from 400,000 preferences on,
    the start is a fit of every fourth pair. The trace has the objective, priors included, which never falls.
    :math:`\eta` is the mode of its posterior on the scale of log odds, so annotators without preferences have the mean
    of the prior.

    The default ridge was chosen on seven public sets of preferences: among 0.1, 0.25, 0.5, 1 and 2 it predicts
    preferences held out best on three, and on the others its mean log-likelihood is below the best by .0004 to .0034.

    Reversed scores with every :math:`\eta` replaced by :math:`1 - \eta` explain preferences equally well, and only the
    prior says that most annotators are not reversed. The fit starts on the majority's side; at its end, items and
    annotators connected by preferences are reversed where the prior favours that, and so are groups of items never
    compared with others if the annotators, as estimated elsewhere, contradict them. A crowd of which most are reversed
    looks like a good crowd: name some annotators known to be good with ``trusted=``. They start with 95 right and 5
    wrong preferences, and they alone decide which way round the others are. Where annotators contradict each other
    evenly, scores stay between the sides, and standard errors take the annotators as known.

    Standard errors and covariances are those of scores centred in their query, from the observed information, priors
    included, with :math:`\eta` and :math:`\nu` free to adapt; where there are several queries, with the scores of the
    others as they are. They are exact for queries of up to 700 items (1,500 where most pairs have met). Larger ones
    have no covariance, and their standard errors are estimated from 32 random probes of the inverse, which leaves one
    or two per cent to chance [Bekas07]_. Memory grows with the number of preferences.

    Quality is held-out agreement, as for every method; :math:`\eta` is its parameter ``eta``, with ``per_query`` its
    mean over an annotator's preferences. Preferences without annotators count as given by one.

    Examples
    --------
    >>> from itertools import combinations
    >>> order = {"ann": "uvxwyz", "bob": "vuwxzy", "cy": "uwvyxz", "dee": "zyxwvu"}
    >>> rows = [(who, "q", *pair, "left") for who, items in order.items() for pair in combinations(items, 2)]
    >>> consensus = CrowdBT().fit(Preferences.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["eta"].round(2).tolist()
    (['u', 'v', 'w', 'x', 'y', 'z'], [0.9, 0.89, 0.89, 0.37])
    """

    parameter: ClassVar[str] = "eta"
    printed_bounds: ClassVar[tuple[float, float]] = (1e-3, 1.0 - 1e-3)
    ties: str = "split"
    prior: tuple[float, float] | None = None
    ridge: float = 0.25
    per_query: bool = False
    tol: float = 1e-4
    max_iter: int = 100
    solver: str = "newton"
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        expect_choices(self, ties=_TIES, solver=SOLVERS)
        expect_above(self, 0, "learning_rate")
        if self.prior is not None and not (np.shape(self.prior) == (2,) and self.prior[0] > self.prior[1] > 0):
            raise ParameterError(
                f"prior={self.prior} must be more right than wrong preferences, both above 0, such as (8, 2)"
            )
        expect_above(self, 0, "ridge", hint="use a small one such as 1e-6 for none")

    def _model(self, preferences: Preferences, code: Ints, trusted: Bools) -> PairwiseModel:
        """The model of preferences, given the number of the parameter that each depends on."""
        return PairwiseModel.of(preferences, code, self.prior_of(trusted), ties=self.ties, ridge=self.ridge)

    def prior_of(self, trusted: Bools) -> BetaPrior:
        """Return the prior of the log odds."""
        return BetaPrior(self.prior or _PRIOR_COUNTS, trusted)

    def _to_parameter(self, own: Floats) -> Floats:
        """Probabilities from their log odds."""
        return 0.5 + 0.5 * np.tanh(0.5 * own)

    def _from_parameter(self, parameter: Floats) -> Floats:
        """Log odds of probabilities."""
        within = np.clip(parameter, _MIN_DISTANCE_OF_ETA, 1.0 - _MIN_DISTANCE_OF_ETA)
        return np.log(within / (1.0 - within))

    def _parameter_slope(self, parameter: Floats) -> Floats:
        """Derivative of a probability by its log odds."""
        return parameter * (1.0 - parameter)

    def score_gradients(self, preferences: Preferences, consensus: Consensus) -> ScoreGradients:
        """Return the gradients of the preferences in the scores, at the consensus."""
        if self.per_query or self.ties == "davidson":
            setting = "per_query=True" if self.per_query else "ties='davidson'"
            raise ParameterError(
                f"crowd_bt has no cluster-robust errors with {setting}; leave that out, or use "
                f"{option('bootstrap', 200)} with {option('resample', 'annotator')}"
            )
        gap = consensus.scores[preferences.left] - consensus.scores[preferences.right]
        eta = np.full(len(gap), _PRIOR_COUNTS[0] / sum(_PRIOR_COUNTS))
        if preferences.n_annotators and consensus.learned is not None:
            eta = consensus.learned[1]["eta"][preferences.annotator]
        ahead = 0.5 + 0.5 * np.tanh(0.5 * gap)
        left = eta * ahead + (1.0 - eta) * (1.0 - ahead)
        bend = (2.0 * eta - 1.0) * ahead * (1.0 - ahead)
        # a split tie is half a win for each side
        win = 0.5 * (1.0 + preferences.outcome)
        slope = preferences.row_weight * bend * (win / left - (1.0 - win) / (1.0 - left))
        slope = np.where(preferences.outcome == 0, 0.0, slope) if self.ties == "ignore" else slope
        return ScoreGradients.of_preferences(preferences.left, preferences.right, slope, self.ridge)


@dataclass(frozen=True, eq=False)
class BetaPrior:
    r"""Probabilities :math:`\eta` with beta priors; the parameters are their log odds.

    The density is that of the log odds, so the mode without preferences is the mean of the prior.

    Parameters
    ----------
    counts
        The two parameters of the beta distribution.
    trusted
        Who is known to be good, (n_annotators,), and has the prior of the trusted.
    """

    model: ClassVar[str] = "mixture"
    low: ClassVar[float] = -30.0
    high: ClassVar[float] = 30.0
    counts: tuple[float, float]
    trusted: Bools

    @cached_property
    def alpha(self) -> Floats:
        """First parameter of each annotator's prior."""
        return np.where(self.trusted, TRUSTED[0], self.counts[0])

    @cached_property
    def beta(self) -> Floats:
        """Second parameter of each annotator's prior."""
        return np.where(self.trusted, TRUSTED[1], self.counts[1])

    @property
    def sign_cost(self) -> Floats:
        """What the log prior loses for each unit of log odds whose sign is reversed."""
        return self.alpha - self.beta

    def default(self) -> Floats:
        """Return the log odds of the prior's mean."""
        return np.asarray(np.log(self.counts[0] / self.counts[1]))

    def transform(self, own: Floats) -> tuple[Floats, Floats, Floats]:
        """Return 2 eta - 1 and its derivatives."""
        value = np.tanh(0.5 * own)
        slope = 0.5 * (1.0 - value**2)
        return value, slope, -value * slope

    def log_density(self, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior, its gradient and its negated second derivatives."""
        share = 0.5 + 0.5 * np.tanh(0.5 * own)
        logs = self.alpha * np.logaddexp(0.0, -own) + self.beta * np.logaddexp(0.0, own)
        strength = self.alpha + self.beta
        return -float(logs.sum()), self.alpha - strength * share, strength * share * (1.0 - share)

    def expected_surplus(self) -> tuple[Floats, Floats]:
        """Return the mean surplus, and the reciprocal of its variance."""
        strength = self.alpha + self.beta
        surplus = self.sign_cost / strength
        return surplus, (strength + 1.0) / np.maximum(1.0 - surplus**2, 1e-6)

    def from_surplus(self, surplus: Floats) -> Floats:
        """Return log odds."""
        return 2.0 * np.arctanh(surplus)


class TieModels(NamedTuple):
    """Davidson's model of which preferences are ties: that of all preferences, less that of the decided ones."""

    every: TieModel
    decided: TieModel


@dataclass(frozen=True, eq=False)
class PairwisePoint(ModelPoint):
    """The objective at one point, and the parts of its curvature.

    ``slope`` is the derivative of the likelihood's parameter of each annotator by that of the point, ``own_least`` the
    prior's part of ``own_bend``; ``bend`` and ``degree`` are those of the Laplacian.
    """

    own_least: Floats
    slope: Floats
    curve: Curve
    bend: Floats
    degree: Floats
    ties: TieModels | None


@dataclass(frozen=True, eq=False)
class PairwiseModel(AnnotatorModel[PairwisePoint]):
    """Preferences whose odds depend on the pair and on a parameter of the annotator."""

    def join(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts and an even tie parameter."""
        return np.concatenate([scores, own, [0.0] if self.tied is not None else []])

    def estimates(self, point: Floats) -> dict[str, float]:
        """Return the tie parameter of a point where the model has one."""
        return {} if self.tied is None else {"tie": float(np.exp(point[-1]))}

    def first_point(self, max_iter: int) -> Floats:
        """Return the point to start from: that of a fit of every fourth pair where these are many."""
        enough = _THINNING_STEP * _MIN_PREFERENCES_PER_PARAMETER * (self.n_items + self.n_own)
        few = len(self.preferences.code) < max(_MIN_PREFERENCES_TO_THIN, enough)
        if few or self.prior.trusted.any():
            return super().first_point(max_iter)
        from ...kernels.pairs import connected_groups

        preferences, pair_counts = self.preferences.every(_THINNING_STEP), self.pair_counts
        pair_counts = pair_counts._replace(
            starts=preferences.starts, second=preferences.second, margin=pair_counts.margin[::_THINNING_STEP],
            number=pair_counts.number[::_THINNING_STEP],
            group=connected_groups(preferences.starts, preferences.second, self.offsets),
        )  # fmt: skip
        part = replace(
            self, preferences=preferences, pair_counts=pair_counts,
            tied=None if self.tied is None else self.tied[::_THINNING_STEP],
            dense=table_fits(self.n_items, self.n_own, len(preferences.code)),
        )  # fmt: skip
        return part.maximise_roughly(max_iter)

    def evaluate(self, point: Floats) -> PairwisePoint:
        """Return the objective with its derivatives."""
        from .kernels.pair_likelihood import evaluate_preferences

        scores, own = self.scores(point), self.own(point)
        transform, slope, turn = self.prior.transform(own)
        curve = evaluate_preferences(self.preferences, self.prior.model, scores, transform, dense=self.dense)
        log_prior, pull, least = self.log_prior(own)
        value = curve.log_likelihood + log_prior - 0.5 * self.ridge * float(np.square(scores).sum())
        gradient, bend, degree, rest = curve.gradient - self.ridge * scores, curve.bend, curve.degree, np.empty(0)
        ties = self._tie_models(point)
        if ties is not None:
            every, decided = ties
            value += every.log_likelihood - decided.log_likelihood - 0.5 * self.ridge * float(point[-1]) ** 2
            gradient = gradient + every.gradient - decided.gradient
            bend, degree = bend + every.bend - decided.bend, degree + every.degree - decided.degree
            rest = np.array([every.tie_gradient - self.ridge * float(point[-1])])
        gradient = np.concatenate([gradient, curve.own_gradient * slope + pull, rest])
        own_bend = curve.own_bend * slope**2 - curve.own_gradient * turn + least
        return PairwisePoint(value, gradient, scores, own, own_bend, least, slope, curve, bend, degree, ties)

    def _tie_models(self, point: Floats) -> TieModels | None:
        """Davidson's model at a point, if ties have a parameter."""
        if self.tied is None:
            return None
        from .kernels.pair_likelihood import evaluate_ties

        c, scores = self.pair_counts, self.scores(point)
        pairs, level, n_ties = (c.starts, c.second), np.zeros(len(c.second)), float(self.tied.sum())
        every = evaluate_ties(*pairs, level, c.number, scores, float(np.exp(point[-1])), n_ties)
        return TieModels(every, evaluate_ties(*pairs, level, c.number - self.tied, scores, 0.0, 0.0))

    def curvature(self, here: PairwisePoint) -> tuple[Product, Floats]:
        """Return the function that multiplies the curvature with a vector, and a positive diagonal like its own."""
        from ...kernels.laplacian import laplacian_product
        from .kernels.pair_likelihood import joint_product

        n, m, pairs = self.n_items, self.n_own, self.preferences
        of_items, between = here.degree + self.ridge, here.curve.cross
        in_scores = laplacian_product(pairs.starts, pairs.second, here.bend, of_items)
        diagonal = [np.maximum(here.degree, 0.0) + self.ridge, np.maximum(here.own_bend, here.own_least)]
        cross, corner = np.empty(0), 0.0
        if here.ties is not None:
            cross, corner = here.ties.every.cross, here.ties.every.tie_bend + self.ridge
            diagonal.append(np.array([corner]))

        def product(vector: Floats) -> Floats:
            items, own = vector[:n], vector[n : n + m]
            if self.dense:
                # a matrix product would wake the threads of the linear algebra library, which then wait on a core
                to_items = in_scores(items) + np.einsum("ik,k->i", between, here.slope * own)
                to_own = np.einsum("ik,i->k", between, items)
            else:
                to_items, to_own = joint_product(pairs, here.curve, here.bend, items, here.slope * own)
                to_items += of_items * items
            image = [to_items, here.slope * to_own + here.own_bend * own]
            if here.ties is not None:
                image[0] += vector[-1] * cross
                image.append(np.array([float((cross * items).sum()) + vector[-1] * corner]))
            return np.concatenate(image)

        return product, np.concatenate(diagonal)

    def laplacian(self, here: PairwisePoint) -> tuple[Floats, Floats]:
        """Return the curvature of each pair, and its sum at each item."""
        return here.bend, here.degree

    def score_curvature(self, here: PairwisePoint, variances: Floats) -> tuple[Products, Floats]:
        """Return the same for columns and the scores alone when all else adapts to them."""
        from ...kernels.laplacian import laplacian_products
        from .kernels.pair_likelihood import adapted_products, adapted_table_products

        preferences, n, (tied, tie_variance) = self.preferences, self.n_items, self._tie_variance(here)
        diagonal, scale = here.degree + self.ridge, variances * here.slope**2
        in_scores = laplacian_products(preferences.starts, preferences.second, here.bend, diagonal)
        adapted = adapted_products(preferences, here.curve.tie_in, here.bend, diagonal, scale)

        def products(columns: Floats) -> Floats:
            taken = np.outer(tie_variance * tied, np.einsum("i,im->m", tied, columns))
            if not self.dense:
                return adapted(columns) - taken
            return in_scores(columns) - adapted_table_products(here.curve.cross, scale, columns) - taken

        if self.dense:
            taken = np.einsum("ik,ik,k->i", here.curve.cross, here.curve.cross, scale)
        else:
            # several preferences of one annotator about an item are taken as by different ones
            squares = here.curve.tie_in**2 * scale[preferences.annotator]
            of_pairs = np.bincount(preferences.pair, squares, len(preferences.second))
            taken = np.bincount(preferences.first, of_pairs, n) + np.bincount(preferences.second, of_pairs, n)
        return products, diagonal - taken - tie_variance * tied**2

    def _tie_variance(self, here: PairwisePoint) -> tuple[Floats, float]:
        """Curvature between tie parameter and scores, and the variance of its logarithm when all else is fixed."""
        if here.ties is None:
            return np.zeros(self.n_items), 0.0
        return here.ties.every.cross, 1.0 / (here.ties.every.tie_bend + self.ridge)

    def explained_blocks(self, here: PairwisePoint, variances: Floats, firsts: Counts, size: int) -> Floats:
        """Return by how much annotators and the tie parameter lower the curvature of queries of this size."""
        scale = variances * here.slope**2
        if self.dense:
            from ...kernels.threads import one_blas_thread

            blocks = np.empty((len(firsts), size, size))
            with one_blas_thread() if size > _MAX_ITEMS_WITHOUT_THREADS else nullcontext():
                for block, first in zip(blocks, firsts, strict=True):
                    cross = here.curve.cross[first : first + size]
                    np.matmul(cross * scale, cross.T, out=block)
        else:
            from .kernels.pair_likelihood import explained_curvature

            blocks = explained_curvature(self.preferences, here.curve.tie_in, scale, firsts, size)
        tied, tie_variance = self._tie_variance(here)
        if tie_variance:
            part = tied[firsts[:, None] + np.arange(size)]
            blocks += tie_variance * part[:, :, None] * part[:, None, :]
        return blocks
