r"""Scores of ranked items, and how closely each annotator keeps to them.

Annotator :math:`a` ranks by Plackett-Luce on :math:`\theta_a s_i`, the adherence times the score. Nothing changes when
all scores are multiplied by what all adherences are divided by, and the priors leave it so: that of the adherences is
relative to their mean square over the rankings, that of the scores is about what the mean ranking sees of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...data.consensus import COVARIANCE_ITEMS
from ...pair_counts import PairCounts
from ...protocols import Bools, Counts, Floats, Ints
from ...quality import TRUSTED
from ...standard_errors import score_standard_errors

if TYPE_CHECKING:
    from ...kernels.laplacian import Product
    from .kernels.plackett_luce import ListModel, RankedRows

_FEW_STEPS = 500_000
_LEAST_VARIANCE = 1e-4
_MOST_CELLS = 20_000_000
_SMALLEST_SQUARE = 1e-300


class RankingPoint(NamedTuple):
    """The penalised log-likelihood at one point, and what the next step needs.

    The gradient is over scores and, where they are learned, habits. ``log_likelihood`` is the value, penalties
    included, because that is what never falls.
    """

    value: float
    gradient: Floats
    log_likelihood: float
    model: ListModel
    scores: Floats
    habits: Floats
    adherence: Floats


@dataclass(frozen=True, eq=False)
class AdherencePrior:
    r"""Normal prior of the adherences, relative to the root of their mean square over the rankings.

    Habits are what adherences are made of, (n_annotators + 1,): those trusted have an adherence of their own, others a
    deviation :math:`\delta_a` from the crowd's mean, which stands last. With :math:`m = \sum_a c_a \theta_a^2`,
    :math:`c_a` being the share of the rankings that :math:`a` gave, the negated logarithm of the density is

    .. math:: \frac{\alpha}{2 m} \sum_{a} \delta_a^2
              + \frac{\tau}{2} \sum_{t} \Bigl( \frac{\theta_t}{\sqrt m} - 1 \Bigr)^2

    over the crowd :math:`a` and those trusted, :math:`t`.

    Parameters
    ----------
    alpha
        Precision of the crowd's adherences.
    share
        Share of the rankings that each annotator gave, (n_annotators,).
    trusted
        Whose adherence is near 1, (n_annotators,).
    """

    alpha: float
    share: Floats
    trusted: Bools

    @cached_property
    def precision(self) -> Floats:
        """Precision of each adherence."""
        right, wrong = TRUSTED
        # what this many pairs right and wrong tell of an adherence of 1 that explains them
        sure = right * wrong / (right + wrong) * float(np.log(right / wrong)) ** 2
        return np.where(self.trusted, sure, self.alpha)

    def adherence(self, habits: Floats) -> Floats:
        """Return the adherences that habits make up; the same for changes of both."""
        return habits[:-1] + np.where(self.trusted, 0.0, habits[-1])

    def by_habit(self, values: Floats) -> Floats:
        """Return derivatives in the habits from those in the adherences."""
        return np.append(values, float(values[~self.trusted].sum()))

    def scale(self, adherence: Floats) -> float:
        """Return the mean square of the adherences."""
        return max(float((self.share * adherence**2).sum()), _SMALLEST_SQUARE)

    def value(self, habits: Floats) -> float:
        """Return the penalty."""
        scale = self.scale(self.adherence(habits))
        off = habits[:-1] - scale**0.5 * self.trusted
        return 0.5 * float((self.precision * off**2).sum()) / scale

    def _by_scale(self, habits: Floats) -> tuple[Floats, Floats, float, float]:
        """Derivatives in the habits of annotators; then these, the penalty and its derivative, derived by the scale."""
        scale, own = self.scale(self.adherence(habits)), habits[:-1]
        off, sure = self.precision * own, self.precision * self.trusted
        squares, plain = float((off * own).sum()), float((sure * own).sum())
        first = off / scale - sure / scale**0.5
        turned = 0.5 * sure / scale**1.5 - off / scale**2
        slope = 0.5 * plain / scale**1.5 - 0.5 * squares / scale**2
        return first, turned, slope, squares / scale**3 - 0.75 * plain / scale**2.5

    def gradient(self, habits: Floats) -> Floats:
        """Return the derivatives of the penalty."""
        first, _, slope, _ = self._by_scale(habits)
        return np.append(first, 0.0) + self.by_habit(2.0 * slope * self.share * self.adherence(habits))

    def product(self, habits: Floats) -> Product:
        """Return the function that multiplies the second derivatives of the penalty with a vector."""
        _, turned, slope, bend = self._by_scale(habits)
        adherence = self.adherence(habits)
        relative, rise = self.precision / self.scale(adherence), 2.0 * self.share * adherence

        def multiply(vector: Floats) -> Floats:
            change = self.adherence(vector)
            along, across = float((rise * change).sum()), float((turned * vector[:-1]).sum())
            by_scale = (across + bend * along) * rise + 2.0 * slope * self.share * change
            return np.append(relative * vector[:-1] + along * turned, 0.0) + self.by_habit(by_scale)

        return multiply


@dataclass(frozen=True, eq=False)
class RankingProblem:
    """Scores and adherences to be found for rankings.

    Parameters
    ----------
    rows
        The rankings.
    annotator
        Who gave each of them, (n_rankings,); all 0 where annotators count alike.
    pair_counts
        Who stood above whom, for the groups of items that were ranked together.
    ridge
        Precision of the prior of the scores.
    prior
        How adherences are made up, and their prior.
    tol
        Tolerance of the steps; raise it to stop earlier.
    """

    rows: RankedRows
    annotator: Ints
    pair_counts: PairCounts
    ridge: float
    prior: AdherencePrior
    tol: float

    def pull(self, here: RankingPoint) -> float:
        """Return the precision of the prior of a score as it is."""
        return self.ridge * self.prior.scale(here.adherence)

    def start(self, habits: Floats) -> Floats:
        """Return where the gradient at equal scores leads, with long steps shortened: it saves some Newton steps."""
        here = self.evaluate(np.zeros(len(self.pair_counts.group)), fixed=habits)
        step = here.gradient / (here.model.diagonal + self.pull(here))
        return self.pair_counts.centre(2.0 * np.arcsinh(0.5 * step))

    def evaluate(self, point: Floats, fixed: Floats | None = None) -> RankingPoint:
        """Return the penalised log-likelihood of scores and habits, or of scores at fixed habits."""
        from .kernels.plackett_luce import evaluate_lists

        n = len(self.pair_counts.group)
        scores, habits = point[:n], point[n:] if fixed is None else fixed
        adherence = self.prior.adherence(habits)
        model = evaluate_lists(self.rows, scores, adherence[self.annotator])
        pull, squares = self.ridge * self.prior.scale(adherence), float(np.square(scores).sum())
        value = model.log_likelihood - 0.5 * pull * squares - self.prior.value(habits)
        gradient = model.gradient - pull * scores
        if fixed is None:
            own = self._by_annotator(model.slope) - self.ridge * squares * self.prior.share * adherence
            gradient = np.append(gradient, self.prior.by_habit(own) - self.prior.gradient(habits))
        return RankingPoint(value, gradient, value, model, scores, habits, adherence)

    def _by_annotator(self, values: Floats) -> Floats:
        """Sum over the rankings of each annotator."""
        return np.bincount(self.annotator, values, len(self.prior.share)).astype(np.float64, copy=False)

    def direction(self, here: RankingPoint) -> Floats:
        """Return the Newton step, or what was found of it before the curvature turned out not to be definite."""
        from ...kernels.laplacian import newton_step

        n = len(here.scores)
        product, diagonal = self._curvature_product(here) if len(here.gradient) > n else self._scores_only(here)
        step = newton_step(product, diagonal, here.gradient, tol=self.tol, onwards=True)
        # a small ridge would leave the level of a group to rounding
        step[:n] = self.pair_counts.centre(step[:n])
        return step

    def _scores_only(self, here: RankingPoint) -> tuple[Product, Floats]:
        """Product with the negated curvature in the scores, and its diagonal."""
        from .kernels.plackett_luce import list_product

        multiply = list_product(self.rows, here.model, here.scores, here.adherence[self.annotator])
        still, pull = np.zeros(len(self.annotator)), self.pull(here)

        def product(vector: Floats) -> Floats:
            return multiply(vector, still)[0] + pull * vector

        return product, here.model.diagonal + pull

    def _curvature_product(self, here: RankingPoint) -> tuple[Product, Floats]:
        """Product with the negated curvature in scores and habits, and about its diagonal."""
        from .kernels.plackett_luce import list_product

        scores, prior, n = here.scores, self.prior, len(here.scores)
        multiply = list_product(self.rows, here.model, scores, here.adherence[self.annotator])
        by_prior, pull, seen = prior.product(here.habits), self.pull(here), self._ridge_curvature(here)
        ridge = self.ridge * float(np.square(scores).sum()) * prior.share
        own = self.adherence_curvature(here)
        crowd = float((own - prior.precision / prior.scale(here.adherence))[~prior.trusted].sum())
        diagonal = np.concatenate([here.model.diagonal + pull, own, [crowd if crowd > 0 else 1.0]])
        # the scale is free, and a step is not to change it
        free = np.append(scores, -here.habits)
        stiff = 1.0 / max(float((free**2 / diagonal).sum()), _SMALLEST_SQUARE)

        def product(vector: Floats) -> Floats:
            change, turn = vector[:n], prior.adherence(vector[n:])
            image, twist = multiply(change, turn[self.annotator])
            image = image + pull * change + float((seen * turn).sum()) * scores
            turned = self._by_annotator(twist) + ridge * turn + float((scores * change).sum()) * seen
            both = np.append(image, prior.by_habit(turned) + by_prior(vector[n:]))
            return both + stiff * float((free * vector).sum()) * free

        return product, diagonal

    def _ridge_curvature(self, here: RankingPoint) -> Floats:
        """What the ridge adds to the curvature between a score and each adherence, for each unit of score."""
        seen: Floats = 2.0 * self.ridge * self.prior.share * here.adherence
        return seen

    def _likelihood_curvature(self, here: RankingPoint) -> Floats:
        """Negated curvature of the log-likelihood in each adherence by itself."""
        from .kernels.plackett_luce import list_product

        factor = here.adherence[self.annotator]
        multiply = list_product(self.rows, here.model, here.scores, factor)
        return self._by_annotator(multiply(np.zeros(len(here.scores)), np.ones(len(factor)))[1])

    def adherence_curvature(self, here: RankingPoint) -> Floats:
        """Return the negated curvature in each adherence by itself, at a fixed scale."""
        squares, scale = float(np.square(here.scores).sum()), self.prior.scale(here.adherence)
        return self._likelihood_curvature(here) + self.ridge * squares * self.prior.share + self.prior.precision / scale

    def with_estimated_alpha(self, here: RankingPoint) -> RankingProblem:
        """Return the problem with ``alpha`` estimated from how far the adherences differ [DerSimonian86]_.

        Of each adherence there is the estimate that one Newton step from here leads to, and its variance.
        """
        bend = self._likelihood_curvature(here)
        use = (bend > 0) & ~self.prior.trusted
        weight = bend[use]
        unpulled = here.adherence[use] + self._by_annotator(here.model.slope)[use] / weight
        total, squares = float(weight.sum()), float((weight**2).sum())
        room = total - squares / total if len(weight) > 1 else 0.0
        variance = 0.0
        if room > 0:
            mean = float((weight * unpulled).sum()) / total
            variance = (float((weight * (unpulled - mean) ** 2).sum()) - len(weight) + 1) / room
        return replace(self, prior=replace(self.prior, alpha=1.0 / max(variance, _LEAST_VARIANCE)))

    def rescale(self, here: RankingPoint) -> RankingPoint:
        """Return the same point with adherences of mean square 1."""
        root = self.prior.scale(here.adherence) ** 0.5
        return self.evaluate(np.append(here.scores * root, here.habits / root))

    def standard_errors(self, here: RankingPoint, offsets: Counts) -> tuple[Floats, tuple[Floats | None, ...]]:
        """Return the standard error of each item's centred score, and the covariance block of each query.

        They include the uncertainty of learned adherences where all queries have a covariance and items times
        annotators are not too many.
        """
        from ...kernels.threads import one_blas_thread
        from .kernels.plackett_luce import list_bends

        sizes = np.diff(offsets)
        code, small = np.arange(int(offsets[-1])), np.repeat(sizes <= COVARIANCE_ITEMS, sizes)
        later = np.where(small, np.repeat(offsets[1:], sizes) - 1 - code, 0)
        starts = np.concatenate([[0], np.cumsum(later)])
        second = (np.repeat(code + 1 - starts[:-1], later) + np.arange(int(starts[-1]))).astype(np.int32)
        product, _ = self._scores_only(here)
        if small.all() and int(sizes.max(initial=0)) * len(self.rows.item) <= _FEW_STEPS:
            bends = _bends_by_products(product, np.repeat(code, later), second, offsets)
        else:
            bends = list_bends(self.rows, here.model, here.adherence[self.annotator], starts, small)
        matrix = (starts, second, bends, here.model.diagonal, self.pull(here), offsets)
        std_error, blocks = score_standard_errors(*matrix, product=product)
        learned = len(here.gradient) > len(here.scores)
        if not learned or not small.all() or len(code) * len(self.prior.share) > _MOST_CELLS:
            return std_error, blocks
        exact = [block for block in blocks if block is not None]
        with one_blas_thread():
            shifts = self._shifts(here, exact, offsets)
            own = [shifts[begin:end] for begin, end in pairwise(offsets)]
            wider = tuple(block + shift @ shift.T for block, shift in zip(exact, own, strict=True))
        return np.sqrt(std_error**2 + np.square(shifts).sum(axis=1)), wider

    def _shifts(self, here: RankingPoint, blocks: list[Floats], offsets: Counts) -> Floats:
        """How far each score moves with independent standard errors of the adherences, (n_items, n_annotators)."""
        from ...kernels.threads import read_only
        from .kernels.plackett_luce import list_product

        rows, n_annotators = self.rows, len(self.prior.share)
        # each row as an item of its own, so the image can be told by item and annotator
        each = rows._replace(item=read_only(np.arange(len(rows.item), dtype=np.int32)))
        multiply = list_product(each, here.model, here.scores[rows.item], here.adherence[self.annotator])
        image, _ = multiply(np.zeros(len(rows.item)), np.ones(len(self.annotator)))
        cell = rows.item.astype(np.int64) * n_annotators + np.repeat(self.annotator, np.diff(rows.offsets))
        cross = np.outer(here.scores, self._ridge_curvature(here))
        cross += np.bincount(cell, image, cross.size).reshape(cross.shape)
        parts = [block @ cross[begin:end] for block, (begin, end) in zip(blocks, pairwise(offsets), strict=True)]
        beside = np.concatenate(parts)
        values, vectors = np.linalg.eigh(np.diag(self.adherence_curvature(here)) - cross.T @ beside)
        root = vectors / np.sqrt(np.maximum(values, _SMALLEST_SQUARE + 1e-9 * values.max(initial=0.0)))
        # the mean square of the adherences is 1 for certain
        fixed = root.T @ (self.prior.share * here.adherence)
        fixed /= np.sqrt(max(float(fixed @ fixed), _SMALLEST_SQUARE))
        moved = beside @ root
        shifts: Floats = moved - np.outer(moved @ fixed, fixed)
        return shifts


def _bends_by_products(product: Product, first: Counts, second: Ints, offsets: Counts) -> Floats:
    """Negated curvature of each pair of items, a column of all queries at a time, with no kernel more to compile."""
    place = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], np.diff(offsets))
    bends = np.zeros(len(first))
    for number in range(int(np.diff(offsets).max(initial=0))):
        pairs = place[first] == number
        bends[pairs] = -product((place == number).astype(np.float64))[second[pairs]]
    return bends
