"""The multinomial preference model: preferences drawn among all pairs of a query, by annotators of some adherence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...data.judgments import Preferences
from ...pair_counts import Contests
from ...protocols import Counts, Floats, Ints
from .annotator_likelihood import sorted_contests
from .annotator_priors import OwnPrior
from .joint_newton import JointModel

if TYPE_CHECKING:
    from ...kernels.laplacian import Product
    from ...kernels.probes import Products
    from .kernels.multinomial import Adherence, AdherenceSheets


_SCALE = 0.25


class AdherentPoint(NamedTuple):
    """The objective at one point, its gradient, and what its curvature is made of."""

    value: float
    gradient: Floats
    scores: Floats
    own: Floats
    own_bend: Floats
    sheets: Adherence

    @property
    def log_likelihood(self) -> float:
        """The objective itself: it is what never falls."""
        return self.value


@dataclass(frozen=True, eq=False)
class AdherentModel(JointModel[AdherentPoint]):
    """Preferences drawn among all ordered pairs of the judged items of their query.

    Parameters
    ----------
    query
        Query of each item.
    """

    query: Ints

    @classmethod
    def of(
        cls, preferences: Preferences, annotator: Ints, prior: OwnPrior, *, ties: str, ridge: float
    ) -> AdherentModel:
        """Return the model of preferences by annotators with these codes; ties are split or ignored."""
        answers, contests, _ = sorted_contests(preferences, annotator, ties)
        items = preferences.items
        return cls(answers, contests, prior, ridge, items.offsets, items.query)

    @cached_property
    def sheets(self) -> AdherenceSheets:
        """What each annotator said in each query."""
        from .kernels.multinomial import fill_adherence_sheets

        return fill_adherence_sheets(self.answers, self.n_own, self.query, len(self.offsets) - 1)

    def rough(self) -> tuple[Floats, Floats]:
        """Return scores and parameters near the majority's side; among all pairs, small differences tell much."""
        scores, own = super().rough()
        return _SCALE * scores, own

    @cached_property
    def levels(self) -> Contests:
        """The contests with all judged items of a query as one group, since the model relates them all."""
        first = np.full(len(self.offsets) - 1, self.n_items, np.int32)
        item = self.sheets.item
        np.minimum.at(first, self.query[item], item)
        group = np.arange(self.n_items, dtype=np.int32)
        group[item] = first[self.query[item]]
        return self.contests._replace(group=group)

    def chances(self, point: Floats) -> Floats:
        """Return how likely each annotator is to order an average pair as the scores do."""
        scores, answers = self.scores(point), self.answers
        gap, decided = np.abs(scores[answers.first] - scores[answers.second]), np.diff(answers.bounds)
        mean = float((gap * decided).sum() / max(decided.sum(), 1))
        # of the two ways to order a pair, the odds are those of twice the difference
        return 0.5 + 0.5 * np.tanh(mean * self.own(point))

    def evaluate(self, point: Floats) -> AdherentPoint:
        """Return the objective with its derivatives."""
        from .kernels.multinomial import evaluate_adherence

        scores, own = self.scores(point), self.own(point)
        found = evaluate_adherence(self.sheets, scores, own)
        favour, pull, least = self.prior.penalty(own)
        value = found.log_likelihood + favour - 0.5 * self.ridge * float(np.square(scores).sum())
        gradient = np.concatenate([found.gradient - self.ridge * scores, found.own_gradient + pull])
        return AdherentPoint(value, gradient, scores, own, found.own_bend + least, found)

    def curvature(self, here: AdherentPoint) -> tuple[Product, Floats]:
        """Return what multiplies the curvature with a vector, and its diagonal."""
        from .kernels.multinomial import adherence_product

        n, nobody = self.n_items, np.empty(0)

        def product(vector: Floats) -> Floats:
            items, own = vector[:n], vector[n:]
            found = adherence_product(self.sheets, here.sheets, here.scores, here.own, items, own, nobody)
            return np.concatenate([found[0] + self.ridge * items, found[1] + here.own_bend * own])

        return product, np.concatenate([here.sheets.degree + self.ridge, here.own_bend])

    def laplacian(self, here: AdherentPoint) -> tuple[Floats, Floats]:
        """Return the diagonal alone: the matrix is no Laplacian of the pairs that were asked."""
        return np.zeros(len(self.answers.second)), here.sheets.degree

    def score_curvature(self, here: AdherentPoint, room: Floats) -> tuple[Products, Floats]:
        """Return what multiplies the curvature in the scores when annotators adapt to each query, and its diagonal."""
        product = self._adapted(here, room, self.sheets)
        taken = product(np.zeros(self.n_items))[1]

        def products(columns: Floats) -> Floats:
            return np.stack([product(np.ascontiguousarray(column))[0] for column in columns.T], axis=1)

        return products, here.sheets.degree + self.ridge - taken

    def _adapted(
        self, here: AdherentPoint, room: Floats, sheets: AdherenceSheets
    ) -> Callable[[Floats], tuple[Floats, Floats]]:
        """What multiplies the curvature that these sheets have, and says what adapting takes off its diagonal."""
        from .kernels.multinomial import adherence_product

        nobody = np.zeros(self.n_own)

        def product(vector: Floats) -> tuple[Floats, Floats]:
            image, _, taken = adherence_product(sheets, here.sheets, here.scores, here.own, vector, nobody, room)
            return image + self.ridge * vector, taken

        return product

    def blocks(self, here: AdherentPoint, room: Floats, firsts: Counts, size: int) -> Floats:
        """Return the diagonal less the curvature of queries with so many items."""
        keep = np.isin(self.sheets.query, self.query[firsts])
        part = here._replace(sheets=here.sheets._replace(sums=here.sheets.sums[keep]))
        product = self._adapted(part, room, self.sheets.only(keep))
        items = firsts[:, None] + np.arange(size)
        blocks = np.empty((len(firsts), size, size))
        for place in range(size):
            # queries do not meet, so that one product has a column of each
            single = np.zeros(self.n_items)
            single[items[:, place]] = 1.0
            blocks[:, :, place] = (here.sheets.degree + self.ridge)[items] * single[items] - product(single)[0][items]
        return blocks
