"""The multinomial preference model: preferences drawn among all pairs of a query, by annotators of some adherence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...data.judgments import Preferences
from ...pair_counts import PairCounts, sort_and_count
from ...protocols import Counts, Floats, Ints
from .annotator_fit import AnnotatorPrior
from .annotator_model import AnnotatorModel, ModelPoint

if TYPE_CHECKING:
    from ...kernels.laplacian import Product, Products
    from .kernels.multinomial import Adherence, Batches


_START_SHRINKAGE = 0.25
"""Among all pairs, scores differ less than rough ones."""


@dataclass(frozen=True, eq=False)
class MultinomialPoint(ModelPoint):
    """The objective at one point, and the parts of its curvature."""

    adherence: Adherence


@dataclass(frozen=True, eq=False)
class MultinomialModel(AnnotatorModel[MultinomialPoint]):
    """Preferences drawn among all ordered pairs of the judged items of their query.

    Parameters
    ----------
    query
        Query of each item.
    """

    start_shrinkage: ClassVar[float] = _START_SHRINKAGE
    query: Ints

    @classmethod
    def of(
        cls, preferences: Preferences, annotator: Ints, prior: AnnotatorPrior, *, ties: str, ridge: float
    ) -> MultinomialModel:
        """Return the model of preferences by annotators with these codes; ties are split or ignored."""
        by_pair, pair_counts, _ = sort_and_count(preferences, annotator, ties)
        items = preferences.items
        return cls(by_pair, pair_counts, prior, ridge, items.offsets, items.query)

    @cached_property
    def batches(self) -> Batches:
        """The preferences of each annotator in each query."""
        from .kernels.multinomial import batch_preferences

        return batch_preferences(self.preferences, self.n_own, self.query, len(self.offsets) - 1)

    @cached_property
    def levels(self) -> PairCounts:
        """The pair counts with all judged items of a query as one group, since the model relates them all."""
        first = np.full(len(self.offsets) - 1, self.n_items, np.int32)
        item = self.batches.item
        np.minimum.at(first, self.query[item], item)
        group = np.arange(self.n_items, dtype=np.int32)
        group[item] = first[self.query[item]]
        return self.pair_counts._replace(group=group)

    def gap_sums(self, scores: Floats) -> tuple[float, float]:
        """Return the sum over preferences of the differences of scores, and their number."""
        gap = np.abs(scores[self.preferences.first] - scores[self.preferences.second])
        decided = np.diff(self.preferences.bounds)
        return float((gap * decided).sum()), float(decided.sum())

    def evaluate(self, point: Floats) -> MultinomialPoint:
        """Return the objective with its derivatives."""
        from .kernels.multinomial import evaluate_adherence

        scores, own = self.scores(point), self.own(point)
        evaluated = evaluate_adherence(self.batches, scores, own)
        log_prior, pull, least = self.prior.log_density(own)
        value = evaluated.log_likelihood + log_prior - 0.5 * self.ridge * float(np.square(scores).sum())
        gradient = np.concatenate([evaluated.gradient - self.ridge * scores, evaluated.own_gradient + pull])
        return MultinomialPoint(value, gradient, scores, own, evaluated.own_bend + least, evaluated)

    def curvature(self, here: MultinomialPoint) -> tuple[Product, Floats]:
        """Return the function that multiplies the curvature with a vector, and its diagonal."""
        from .kernels.multinomial import adherence_product

        n, nobody = self.n_items, np.empty(0)

        def product(vector: Floats) -> Floats:
            items, own = vector[:n], vector[n:]
            to_items, to_own, _ = adherence_product(
                self.batches, here.adherence, here.scores, here.own, items, own, nobody
            )
            return np.concatenate([to_items + self.ridge * items, to_own + here.own_bend * own])

        return product, np.concatenate([here.adherence.degree + self.ridge, here.own_bend])

    def laplacian(self, here: MultinomialPoint) -> tuple[Floats, Floats]:
        """Return the diagonal alone: the matrix is no Laplacian of the pairs that were asked."""
        return np.zeros(len(self.preferences.second)), here.adherence.degree

    def score_curvature(self, here: MultinomialPoint, variances: Floats) -> tuple[Products, Floats]:
        """Return the same for columns and the scores alone when annotators adapt to each query."""
        product = self._adapted_product(here, variances, self.batches)
        taken = product(np.zeros(self.n_items))[1]

        def products(columns: Floats) -> Floats:
            return np.stack([product(np.ascontiguousarray(column))[0] for column in columns.T], axis=1)

        return products, here.adherence.degree + self.ridge - taken

    def _adapted_product(
        self, here: MultinomialPoint, variances: Floats, batches: Batches
    ) -> Callable[[Floats], tuple[Floats, Floats]]:
        """Function that multiplies the curvature of these batches, with how much adapting lowers its diagonal."""
        from .kernels.multinomial import adherence_product

        nobody = np.zeros(self.n_own)

        def product(vector: Floats) -> tuple[Floats, Floats]:
            image, _, taken = adherence_product(
                batches, here.adherence, here.scores, here.own, vector, nobody, variances
            )
            return image + self.ridge * vector, taken

        return product

    def explained_blocks(self, here: MultinomialPoint, variances: Floats, firsts: Counts, size: int) -> Floats:
        """Return the diagonal less the curvature of queries of this size."""
        keep = np.isin(self.batches.query, self.query[firsts])
        part = replace(here, adherence=here.adherence._replace(sums=here.adherence.sums[keep]))
        product = self._adapted_product(part, variances, self.batches.only(keep))
        items = firsts[:, None] + np.arange(size)
        blocks = np.empty((len(firsts), size, size))
        for place in range(size):
            # queries do not meet, so one product has a column of each
            single = np.zeros(self.n_items)
            single[items[:, place]] = 1.0
            blocks[:, :, place] = (here.adherence.degree + self.ridge)[items] * single[items] - product(single)[0][
                items
            ]
        return blocks
