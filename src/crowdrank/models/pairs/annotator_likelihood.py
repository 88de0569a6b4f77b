"""Pair models in which the odds of an answer depend on its pair and on a parameter of the annotator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...data.judgments import Preferences
from ...pair_counts import Contests, contests_of
from ...protocols import Counts, Floats, Ints
from .annotator_priors import OwnPrior
from .joint_newton import JointModel

if TYPE_CHECKING:
    from ...kernels.answers import Answers
    from ...kernels.laplacian import Product
    from ...kernels.probes import Products
    from .kernels.annotated_pairs import Curve
    from .kernels.pair_likelihood import TieModel

_CELLS_AN_ANSWER = 4
_SMALL_ITEMS = 64
_THINNED = 4
_THIN_FROM = 400_000
_ANSWERS_A_PARAMETER = 10


class Ties(NamedTuple):
    """Davidson's model of which contests are tied: that of all contests, less that of the decided ones."""

    every: TieModel
    decided: TieModel


class AnnotatedPoint(NamedTuple):
    """The objective at one point, its gradient, and what its curvature is made of.

    ``slope`` is the derivative of the likelihood's parameter of each annotator by that of the point, ``own_bend`` the
    curvature in the latter and ``own_least`` the prior's part of it; ``bend`` and ``degree`` are the Laplacian's.
    """

    value: float
    gradient: Floats
    scores: Floats
    own: Floats
    own_bend: Floats
    own_least: Floats
    slope: Floats
    curve: Curve
    bend: Floats
    degree: Floats
    ties: Ties | None

    @property
    def log_likelihood(self) -> float:
        """The objective itself: it is what never falls."""
        return self.value


@dataclass(frozen=True, eq=False)
class AnnotatedModel(JointModel[AnnotatedPoint]):
    """Answers whose odds depend on the pair and a parameter; with ``tied``, the last entry of a point is that of ties.

    Parameters
    ----------
    tied
        Number of ties of each pair where Davidson's model explains them; the point then ends with the logarithm of its
        parameter.
    dense
        Whether there is room for a table of items and annotators.
    """

    tied: Floats | None
    dense: bool

    @classmethod
    def of(
        cls, preferences: Preferences, annotator: Ints, prior: OwnPrior, *, ties: str, ridge: float
    ) -> AnnotatedModel:
        """Return the model of preferences by annotators with these codes; ``ties`` as for Bradley-Terry."""
        answers, contests, tied = sorted_contests(preferences, annotator, ties)
        dense = _fits(preferences.n_items, len(prior.sure), len(answers.code))
        return cls(answers, contests, prior, ridge, preferences.items.offsets, tied, dense)

    def joined(self, scores: Floats, own: Floats) -> Floats:
        """Return the point with these parts and an even tie parameter."""
        return np.concatenate([scores, own, [0.0] if self.tied is not None else []])

    def estimates(self, point: Floats) -> dict[str, float]:
        """Return the tie parameter of a point where the model has one."""
        return {} if self.tied is None else {"tie": float(np.exp(point[-1]))}

    def chances(self, point: Floats) -> Floats:
        """Return how likely each annotator is to order an average pair as the scores do."""
        scores, answers = self.scores(point), self.answers
        gap = np.tanh(0.5 * np.abs(scores[answers.first] - scores[answers.second]))
        decided = np.diff(answers.bounds)
        mean = float((gap * decided).sum() / max(decided.sum(), 1))
        surplus: Floats = np.tanh(np.arctanh(mean) * self.own(point))
        return 0.5 + 0.5 * (mean * self.prior.natural(self.own(point))[0] if self.prior.model == "mixture" else surplus)

    def first_point(self, max_iter: int) -> Floats:
        """Return where to begin the climb: at the best point of every fourth pair where that is plenty."""
        n = len(self.answers.code)
        few = n < max(_THIN_FROM, _THINNED * _ANSWERS_A_PARAMETER * (self.n_items + self.n_own))
        if few or self.prior.sure.any():
            return super().first_point(max_iter)
        from ...kernels.laplacian import connected_groups

        answers, contests = self.answers.every(_THINNED), self.contests
        contests = contests._replace(
            starts=answers.starts, second=answers.second, margin=contests.margin[::_THINNED],
            number=contests.number[::_THINNED],
            group=connected_groups(answers.starts, answers.second, self.offsets),
        )  # fmt: skip
        part = replace(
            self, answers=answers, contests=contests, tied=None if self.tied is None else self.tied[::_THINNED],
            dense=_fits(self.n_items, self.n_own, len(answers.code)),
        )  # fmt: skip
        return part.rough_maximum(max_iter)

    def evaluate(self, point: Floats) -> AnnotatedPoint:
        """Return the objective with its derivatives."""
        from .kernels.annotated_pairs import evaluate_answers

        scores, own = self.scores(point), self.own(point)
        natural, slope, turn = self.prior.natural(own)
        curve = evaluate_answers(self.answers, self.prior.model, scores, natural, dense=self.dense)
        favour, pull, least = self.prior.penalty(own)
        value = curve.log_likelihood + favour - 0.5 * self.ridge * float(np.square(scores).sum())
        gradient, bend, degree, rest = curve.gradient - self.ridge * scores, curve.bend, curve.degree, np.empty(0)
        ties = self._ties(point)
        if ties is not None:
            every, decided = ties
            value += every.log_likelihood - decided.log_likelihood - 0.5 * self.ridge * float(point[-1]) ** 2
            gradient = gradient + every.gradient - decided.gradient
            bend, degree = bend + every.bend - decided.bend, degree + every.degree - decided.degree
            rest = np.array([every.tie_gradient - self.ridge * float(point[-1])])
        gradient = np.concatenate([gradient, curve.own_gradient * slope + pull, rest])
        own_bend = curve.own_bend * slope**2 - curve.own_gradient * turn + least
        return AnnotatedPoint(value, gradient, scores, own, own_bend, least, slope, curve, bend, degree, ties)

    def _ties(self, point: Floats) -> Ties | None:
        """Which contests are tied, at a point."""
        if self.tied is None:
            return None
        from .kernels.pair_likelihood import evaluate_ties

        c, scores = self.contests, self.scores(point)
        pairs, level, n_ties = (c.starts, c.second), np.zeros(len(c.second)), float(self.tied.sum())
        every = evaluate_ties(*pairs, level, c.number, scores, float(np.exp(point[-1])), n_ties)
        return Ties(every, evaluate_ties(*pairs, level, c.number - self.tied, scores, 0.0, 0.0))

    def curvature(self, here: AnnotatedPoint) -> tuple[Product, Floats]:
        """Return what multiplies the curvature with a vector, and a diagonal like its own that is above 0."""
        n, m, together = self.n_items, self.n_own, self._together(here)
        diagonal = [np.maximum(here.degree, 0.0) + self.ridge, np.maximum(here.own_bend, here.own_least)]
        cross, corner = np.empty(0), 0.0
        if here.ties is not None:
            cross, corner = here.ties.every.cross, here.ties.every.tie_bend + self.ridge
            diagonal.append(np.array([corner]))

        def product(vector: Floats) -> Floats:
            items, own = vector[:n], vector[n : n + m]
            to_items, to_own = together(items, here.slope * own)
            image = [to_items, here.slope * to_own + here.own_bend * own]
            if here.ties is not None:
                image[0] += vector[-1] * cross
                image.append(np.array([float((cross * items).sum()) + vector[-1] * corner]))
            return np.concatenate(image)

        return product, np.concatenate(diagonal)

    def _together(self, here: AnnotatedPoint) -> Callable[[Floats, Floats], tuple[Floats, Floats]]:
        """Product with the curvature in scores and the likelihood's parameters, without the diagonal of the latter."""
        from ...kernels.laplacian import laplacian_product
        from .kernels.annotated_pairs import joint_product

        diagonal, cross = here.degree + self.ridge, here.curve.cross
        in_scores = laplacian_product(self.answers.starts, self.answers.second, here.bend, diagonal)

        def together(items: Floats, own: Floats) -> tuple[Floats, Floats]:
            if not self.dense:
                to_items, to_own = joint_product(self.answers, here.curve, here.bend, items, own)
                return to_items + diagonal * items, to_own
            # a matrix product would wake the threads of the linear algebra library, which then wait on a core
            return in_scores(items) + np.einsum("ik,k->i", cross, own), np.einsum("ik,i->k", cross, items)

        return together

    def laplacian(self, here: AnnotatedPoint) -> tuple[Floats, Floats]:
        """Return the curvature of each pair, and its sum at each item."""
        return here.bend, here.degree

    def score_curvature(self, here: AnnotatedPoint, room: Floats) -> tuple[Products, Floats]:
        """Return what multiplies the curvature in the scores when all else adapts with columns, and its diagonal."""
        from ...kernels.probes import adapted_table, answer_products, laplacian_products

        answers, n, (tied, tie_room) = self.answers, self.n_items, self._tie_room(here)
        diagonal, scale = here.degree + self.ridge, room * here.slope**2
        in_scores = laplacian_products(answers.starts, answers.second, here.bend, diagonal)
        adapted = answer_products(answers, here.curve.tie_in, here.bend, diagonal, scale)

        def products(columns: Floats) -> Floats:
            taken = np.outer(tie_room * tied, np.einsum("i,im->m", tied, columns))
            if not self.dense:
                return adapted(columns) - taken
            return in_scores(columns) - adapted_table(here.curve.cross, scale, columns) - taken

        if self.dense:
            taken = np.einsum("ik,ik,k->i", here.curve.cross, here.curve.cross, scale)
        else:
            # several answers of one annotator about an item are taken as by different ones
            squares = here.curve.tie_in**2 * scale[answers.annotator]
            of_pairs = np.bincount(answers.pair, squares, len(answers.second))
            taken = np.bincount(answers.first, of_pairs, n) + np.bincount(answers.second, of_pairs, n)
        return products, diagonal - taken - tie_room * tied**2

    def _tie_room(self, here: AnnotatedPoint) -> tuple[Floats, float]:
        """What ties the tie parameter to each score, and the variance of its logarithm when all else is fixed."""
        if here.ties is None:
            return np.zeros(self.n_items), 0.0
        return here.ties.every.cross, 1.0 / (here.ties.every.tie_bend + self.ridge)

    def blocks(self, here: AnnotatedPoint, room: Floats, firsts: Counts, size: int) -> Floats:
        """Return what annotators and the tie parameter take off the curvature of queries with so many items."""
        scale = room * here.slope**2
        if self.dense:
            from ...kernels.threads import one_blas_thread

            blocks = np.empty((len(firsts), size, size))
            with one_blas_thread() if size > _SMALL_ITEMS else nullcontext():
                for block, first in zip(blocks, firsts, strict=True):
                    cross = here.curve.cross[first : first + size]
                    np.matmul(cross * scale, cross.T, out=block)
        else:
            from .kernels.annotated_pairs import explained_curvature

            blocks = explained_curvature(self.answers, here.curve.tie_in, scale, firsts, size)
        tied, tie_room = self._tie_room(here)
        if tie_room:
            part = tied[firsts[:, None] + np.arange(size)]
            blocks += tie_room * part[:, :, None] * part[:, None, :]
        return blocks


def _fits(n_items: int, n_own: int, n_answers: int) -> bool:
    """Whether a table of items and annotators takes no longer to pass through than the answers."""
    return n_items * n_own <= _CELLS_AN_ANSWER * n_answers


def sorted_contests(preferences: Preferences, annotator: Ints, ties: str) -> tuple[Answers, Contests, Floats | None]:
    """Return preferences as answers sorted by pair, as contests and, with Davidson's model, the ties of each pair."""
    from ...kernels.answers import sort_answers

    if ties == "ignore" and not preferences.outcome.all():
        keep = preferences.outcome != 0
        preferences, annotator = preferences.select(keep), annotator[keep]
    columns = (preferences.left, preferences.right, preferences.outcome, annotator, preferences.weight)
    answers, counts = sort_answers(*columns, preferences.n_items, ties=ties == "split")
    tied = counts.ties if ties == "davidson" else None
    return answers, contests_of(counts, ties, preferences.items.offsets), tied


def oriented_contests(answers: Answers, contests: Contests, own: Floats) -> Contests:
    """Return the contests with the answers of annotators who say the reverse turned round."""
    reverse = own < 0
    if not reverse.any():
        return contests
    from ...kernels.pairs import PairCounts, item_totals
    from .kernels.annotated_pairs import turned_margins

    margin = contests.margin + turned_margins(answers, reverse)
    wins, losses = 0.5 * (contests.number + margin), 0.5 * (contests.number - margin)
    won, lost = item_totals(PairCounts(answers.starts, answers.second, wins, losses, np.zeros(len(wins))))
    return contests._replace(margin=margin, wins=won, losses=lost)
