"""Likelihood of Crowd-BT: the odds of a preference depend on its pair and on a parameter of the annotator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...data.judgments import Preferences
from ...pair_counts import PairCounts, apply_ties_rule
from ...protocols import Counts, Floats, Ints
from .annotator_fit import AnnotatorModel, ModelPoint
from .orientation import AnnotatorPrior

if TYPE_CHECKING:
    from ...kernels.laplacian import Product
    from ...kernels.pairs import PreferencesByPair
    from ...kernels.probes import Products
    from .kernels.pair_likelihood import Curve, TieModel

_MAX_CELLS_PER_PREFERENCE = 4
_MAX_ITEMS_WITHOUT_THREADS = 64
_THINNING_STEP = 4
_MIN_PREFERENCES_TO_THIN = 400_000
_MIN_PREFERENCES_PER_PARAMETER = 10


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
    """Preferences whose odds depend on the pair and on a parameter of the annotator.

    Parameters
    ----------
    tied
        Number of ties of each pair where Davidson's model explains them; the point then ends with the logarithm of its
        parameter.
    dense
        Whether there is variances for a table of items and annotators.
    """

    tied: Floats | None
    dense: bool

    @classmethod
    def of(
        cls, preferences: Preferences, annotator: Ints, prior: AnnotatorPrior, *, ties: str, ridge: float
    ) -> PairwiseModel:
        """Return the model of preferences by annotators with these codes; ``ties`` as for Bradley-Terry."""
        by_pair, pair_counts, tied = sort_and_count(preferences, annotator, ties)
        dense = _table_fits(preferences.n_items, len(prior.trusted), len(by_pair.code))
        return cls(by_pair, pair_counts, prior, ridge, preferences.items.offsets, tied, dense)

    def join(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts and an even tie parameter."""
        return np.concatenate([scores, own, [0.0] if self.tied is not None else []])

    def estimates(self, point: Floats) -> dict[str, float]:
        """Return the tie parameter of a point where the model has one."""
        return {} if self.tied is None else {"tie": float(np.exp(point[-1]))}

    def accuracies(self, point: Floats) -> Floats:
        """Return the probability that each annotator orders an average pair as the scores do."""
        scores, preferences = self.scores(point), self.preferences
        gap = np.tanh(0.5 * np.abs(scores[preferences.first] - scores[preferences.second]))
        decided = np.diff(preferences.bounds)
        mean = float((gap * decided).sum() / max(decided.sum(), 1))
        surplus: Floats = np.tanh(np.arctanh(mean) * self.own(point))
        return 0.5 + 0.5 * (
            mean * self.prior.transform(self.own(point))[0] if self.prior.model == "mixture" else surplus
        )

    def first_point(self, max_iter: int) -> Floats:
        """Return the point to start from: that of a fit of every fourth pair where these are many."""
        n = len(self.preferences.code)
        few = n < max(
            _MIN_PREFERENCES_TO_THIN, _THINNING_STEP * _MIN_PREFERENCES_PER_PARAMETER * (self.n_items + self.n_own)
        )
        if few or self.prior.trusted.any():
            return super().first_point(max_iter)
        from ...kernels.laplacian import connected_groups

        preferences, pair_counts = self.preferences.every(_THINNING_STEP), self.pair_counts
        pair_counts = pair_counts._replace(
            starts=preferences.starts, second=preferences.second, margin=pair_counts.margin[::_THINNING_STEP],
            number=pair_counts.number[::_THINNING_STEP],
            group=connected_groups(preferences.starts, preferences.second, self.offsets),
        )  # fmt: skip
        part = replace(
            self, preferences=preferences, pair_counts=pair_counts,
            tied=None if self.tied is None else self.tied[::_THINNING_STEP],
            dense=_table_fits(self.n_items, self.n_own, len(preferences.code)),
        )  # fmt: skip
        return part.maximise_roughly(max_iter)

    def evaluate(self, point: Floats) -> PairwisePoint:
        """Return the objective with its derivatives."""
        from .kernels.pair_likelihood import evaluate_preferences

        scores, own = self.scores(point), self.own(point)
        transform, slope, turn = self.prior.transform(own)
        curve = evaluate_preferences(self.preferences, self.prior.model, scores, transform, dense=self.dense)
        log_prior, pull, least = self.prior.log_density(own)
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
        n, m, joint = self.n_items, self.n_own, self._joint_product(here)
        diagonal = [np.maximum(here.degree, 0.0) + self.ridge, np.maximum(here.own_bend, here.own_least)]
        cross, corner = np.empty(0), 0.0
        if here.ties is not None:
            cross, corner = here.ties.every.cross, here.ties.every.tie_bend + self.ridge
            diagonal.append(np.array([corner]))

        def product(vector: Floats) -> Floats:
            items, own = vector[:n], vector[n : n + m]
            to_items, to_own = joint(items, here.slope * own)
            image = [to_items, here.slope * to_own + here.own_bend * own]
            if here.ties is not None:
                image[0] += vector[-1] * cross
                image.append(np.array([float((cross * items).sum()) + vector[-1] * corner]))
            return np.concatenate(image)

        return product, np.concatenate(diagonal)

    def _joint_product(self, here: PairwisePoint) -> Callable[[Floats, Floats], tuple[Floats, Floats]]:
        """Product with the curvature in scores and the likelihood's parameters, without the diagonal of the latter."""
        from ...kernels.laplacian import laplacian_product
        from .kernels.pair_likelihood import joint_product

        diagonal, cross = here.degree + self.ridge, here.curve.cross
        in_scores = laplacian_product(self.preferences.starts, self.preferences.second, here.bend, diagonal)

        def joint(items: Floats, own: Floats) -> tuple[Floats, Floats]:
            if not self.dense:
                to_items, to_own = joint_product(self.preferences, here.curve, here.bend, items, own)
                return to_items + diagonal * items, to_own
            # a matrix product would wake the threads of the linear algebra library, which then wait on a core
            return in_scores(items) + np.einsum("ik,k->i", cross, own), np.einsum("ik,i->k", cross, items)

        return joint

    def laplacian(self, here: PairwisePoint) -> tuple[Floats, Floats]:
        """Return the curvature of each pair, and its sum at each item."""
        return here.bend, here.degree

    def score_curvature(self, here: PairwisePoint, variances: Floats) -> tuple[Products, Floats]:
        """Return the same for columns and the scores alone when all else adapts to them."""
        from ...kernels.probes import laplacian_products
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


def _table_fits(n_items: int, n_own: int, n_preferences: int) -> bool:
    """Whether a table of items and annotators is as fast to pass through as the preferences."""
    return n_items * n_own <= _MAX_CELLS_PER_PREFERENCE * n_preferences


def sort_and_count(
    preferences: Preferences, annotator: Ints, ties: str
) -> tuple[PreferencesByPair, PairCounts, Floats | None]:
    """Return preferences sorted by pair, their pair counts and, with Davidson's model, the ties of each pair."""
    from ...kernels.pairs import sort_by_pair

    if ties == "ignore" and not preferences.outcome.all():
        keep = preferences.outcome != 0
        preferences, annotator = preferences.select(keep), annotator[keep]
    columns = (preferences.left, preferences.right, preferences.outcome, annotator, preferences.weight)
    by_pair, counts = sort_by_pair(*columns, preferences.n_items, ties=ties == "split")
    tied = counts.ties if ties == "davidson" else None
    return by_pair, apply_ties_rule(counts, ties, preferences.items.offsets), tied
