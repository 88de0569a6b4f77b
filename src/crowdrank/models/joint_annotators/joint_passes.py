"""JAM over parts of the preferences: a stand-in for all pairs whose sums go over the parts.

Items are in the order of the parts, which own them by query: what a pass finds of items is put side by side, what it
finds of annotators is added. Scores and features of items stay with the caller, preferences in the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...data.consensus import Consensus
from ...data.features import Features
from ...data.joint_fit import JointFit, PairPosteriors
from ...data.judgments import Preferences
from ...errors import ParameterError
from ...protocols import Blocks, Counts, Floats, Ints, Progress, Statistics
from ...quality import trusted_annotators
from ...wording import method_label, option
from .expectation_maximisation import JointModel, PairFit, State
from .item_scores import EqualScores, ItemEffectScores, ItemFeatures
from .joint_annotators import estimates_of, item_scores, quality_of_fit, ranker_of, warn_unidentified
from .judged_pairs import JudgedPairs, flip_prior, patterns_of

_MOST_PAIRS = 5_000_000
"""Pairs of whom the result keeps how sure they are; of more it keeps none."""


class JointPart(NamedTuple):
    """A part: its number, its pairs, which items were judged, and the weight of each annotator's preferences."""

    number: int
    pairs: Any
    judged: Any
    given: Floats


@dataclass(frozen=True, eq=False)
class JointPasses:
    """The fit of :class:`JointAnnotators` to preferences in parts, with one rate for each annotator.

    Parameters
    ----------
    method
        The method.
    judged
        What is known of all preferences: ``annotators``, ``items``, ``item_codes(part)``.
    features
        Features of items; they stay with the caller.
    trusted
        Annotators known to be good.
    progress
        Called with the iterations done.
    """

    method: Any
    judged: Any
    features: Features | None = None
    trusted: Any | None = None
    progress: Progress | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"method": self.method, "judged": None, "features": None, "trusted": None, "progress": None}

    def lay_out(self, part: tuple[int, Preferences]) -> JointPart:
        """Return the pairs of a part, which comes with its number."""
        number, preferences = part
        n = preferences.n_annotators
        given = np.bincount(preferences.annotator, preferences.weight, n).astype(np.float64)
        return JointPart(number, patterns_of(preferences), preferences.judged_items, given)

    def merge(self, first: Statistics, second: Statistics) -> Statistics:
        """Return two statistics together: tables of items side by side, the rest added."""
        return tuple(
            np.concatenate([one, other], axis=1) if isinstance(one, np.ndarray) and one.ndim == 2 else one + other
            for one, other in zip(first, second, strict=True)
        )

    def solve(self, sums: Blocks) -> JointFit:
        """Return consensus, quality and a linear ranker."""
        method, facts = self.method, self.judged
        pairs, judged, given = parted_pairs(sums, max(facts.n_annotators, 1))
        good = trusted_annotators(facts, self.trusted)
        good = np.append(good, np.zeros(pairs.n_sources - len(good), bool))
        everything = JudgedPairs(pairs, flip_prior(good, method.alpha, len(good)), len(good), bool(good.any()))  # type: ignore[arg-type]
        order = np.concatenate([facts.item_codes(number) for number in range(len(pairs.bounds) - 1)])
        table = None if self.features is None else ItemFeatures.of(self.features, facts)
        centred = None if table is None else table.centre_by_query(facts.judged_items, facts.items.offsets)[order]
        fit = method.fitter(self.progress).fit(everything, method.score_model(judged, centred))
        warn_unidentified(facts, everything, fit)
        self._warn_overruled(pairs, fit)
        scores = np.empty(len(order))
        scores[order] = item_scores(fit, judged, centred)
        consensus = Consensus.of(
            method, facts, scores, trace=fit.run.trace, quality=quality_of_fit(facts, everything, fit, given),
            estimates=estimates_of(fit),
        )  # fmt: skip
        used = facts.judged_items if table is None else facts.judged_items & (table.row >= 0)
        return JointFit(
            method="joint_annotators", ranker=ranker_of(self.features, table, fit), consensus=consensus,
            n_items=int(used.sum()), n_queries=len(np.unique(facts.items.query[used])),
            n_unjudged=0 if self.features is None else len(self.features) - int(used.sum()),
            pairs=self._posteriors(pairs, fit, order),
        )  # fmt: skip

    def _warn_overruled(self, pairs: PartedPairs, fit: PairFit) -> None:
        """Warn where the scores of the largest part overrule its preferences more often than under the model."""
        if isinstance(fit.model.items, EqualScores):
            return
        number = int(np.argmax(pairs.pairs_of_parts))
        part = slice(*pairs.bounds[number : number + 2])
        scores = fit.scores[part]
        # the executor asks all parts
        samples = [some for (some,) in pairs.sums.read(partial(_pairs_of, number))]
        items = ItemEffectScores(np.zeros((len(scores), 0)), 1.0, 1.0, np.ones(len(scores), bool))
        model = JointModel(samples[number], items, fit.model.prior)
        self.method.warn_overruled(model, State(scores, fit.run.state.flip_rates))

    def _posteriors(self, pairs: PartedPairs, fit: PairFit, order: Counts) -> PairPosteriors | None:
        """How sure each pair is; ``None`` where there are too many to be held."""
        if pairs.n_pairs > _MOST_PAIRS:
            return None
        columns: tuple[list[Any], ...] = ([], [], [])
        asked = pairs.question(_probabilities, fit.run.state.flip_rates, fit.scores)
        for number, (first, second, probability) in enumerate(pairs.sums.read(asked)):
            begin = pairs.bounds[number]
            for column, values in zip(columns, (order[first + begin], order[second + begin], probability), strict=True):
                column.append(values)
        left, right, chance = (np.concatenate(column) for column in columns)
        by_pair = np.lexsort((right, left))
        codes = (left[by_pair].astype(np.int32), right[by_pair].astype(np.int32))
        return PairPosteriors(self.judged.items, *codes, chance[by_pair])


class PartedExpectation(NamedTuple):
    """Sums over the pairs of all parts; see :class:`~.kernels.pair_patterns.Expectation`.

    ``flipped`` (n_sources,) is the expected weight of each source's flipped preferences. The curvature of the pairs is
    the state of the parts, as the last pass left it.
    """

    log_likelihood: float
    gradient: Floats
    degree: Floats
    observed_degree: Floats
    flipped: Floats


@dataclass(frozen=True, eq=False)
class PartedPairs:
    """Stands for the pairs of all parts in the steps of the method.

    ``bounds`` (n_parts + 1,) are those of the items of the parts, ``pairs_of_parts`` (n_parts,) their pairs, and
    ``weights`` (n_sources,) is the weight of each source's preferences.
    """

    sums: Blocks
    bounds: Counts
    pairs_of_parts: Counts
    weights: Floats

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self.pairs_of_parts.sum())

    @property
    def n_sources(self) -> int:
        """Number of annotators; one where none are named."""
        return len(self.weights)

    def question(self, function: Callable[..., Any], *given: Any) -> Any:
        """Return a pass: a function of a part, its state, the bounds of the items of each part, and what is given."""
        return partial(_ask, function, self.bounds, given)

    def expect(
        self, flip_rates: Floats, scores: Floats, *, equal: bool = False, hinge: bool = False,
        variances: Floats | None = None,
    ) -> PartedExpectation:  # fmt: skip
        """Return the sums over pairs at flip rates and scores (E-step)."""
        value, flipped, of_items = self.sums.total(self.question(_expect, flip_rates, scores, equal, hinge, variances))
        gradient, degree, observed_degree = of_items
        return PartedExpectation(float(value), gradient, degree, observed_degree, flipped)

    def expected_flips(self, here: PartedExpectation, n_sources: int) -> tuple[Floats, Floats]:
        """Return the expected weight of each source's flipped preferences, and the weight of all of them."""
        return here.flipped, self.weights

    def curvature(self, here: PartedExpectation) -> tuple[Any, Any]:
        """Return what multiplies a vector, and columns side by side, by the curvature that parts keep."""

        def product(vector: Floats) -> Floats:
            image: Floats = self.sums.total(self.question(_multiply, vector[:, None], here.degree))[0][0]
            return image

        def products(columns: Floats) -> Floats:
            images: Floats = self.sums.total(self.question(_multiply, columns, here.degree))[0].T
            return images

        return product, products

    def source_weights(self, n_sources: int) -> Floats:
        """Return the weight of all preferences of each source, (n_sources,)."""
        return self.weights

    def leads(self, flip_rates: Floats, scores: Floats) -> tuple[Floats, Floats]:
        """Return the sum of each item's leads in probability over those it was compared with, and their number."""
        sums, number = self.sums.total(self.question(_leads, flip_rates, scores))[0]
        return sums, number


def parted_pairs(sums: Blocks, n_sources: int) -> tuple[PartedPairs, Any, Floats]:
    """Return the stand-in for all pairs, which items were judged, and the preferences of each annotator with ties."""
    counts: Floats = np.array(sums.each(_counts), np.float64).reshape(-1, 2)
    weights, given, judged = sums.total(partial(_survey, n_sources))
    bounds = np.concatenate([[0], np.cumsum(counts[:, 0])]).astype(np.int64)
    return PartedPairs(sums, bounds, counts[:, 1].astype(np.int64), weights), judged[0] > 0, given


def refuse_in_parts(method: Any, judged: Any, known: Any | None) -> None:
    """Refuse what needs all preferences at once."""
    name = method_label(method)
    if judged.by != "query":
        raise ParameterError(f"{name} needs preferences packed by query, and these are packed by annotator")
    if known is not None:
        raise ParameterError(f"{name} takes no {option('known')} in parts; leave it out, or name {option('trusted')}")
    if method.n_clusters != 1:
        raise ParameterError(
            f"{name} finds clusters among all pairs at once; in parts leave {option('params', 'n_clusters')} out"
        )


def _ask(function: Any, bounds: Counts, given: tuple[Any, ...], part: JointPart, state: Any) -> tuple[Statistics, Any]:
    """What a function finds in a part, given the place of its items among all."""
    answer: tuple[Statistics, Any] = function(part, state, slice(*bounds[part.number : part.number + 2]), *given)
    return answer


def _counts(part: JointPart, state: Any) -> tuple[Statistics, Any]:
    """Number of items and pairs of a part."""
    return (float(len(part.judged)), float(part.pairs.n_pairs)), None


def _survey(n_sources: int, part: JointPart, state: Any) -> tuple[Statistics, Any]:
    """Weight of each source's preferences, with ties too, and which items were judged."""
    judged = part.judged.astype(np.float64)[None]
    return (part.pairs.source_weights(n_sources), part.given, judged), None


def _expect(
    part: JointPart, state: Any, place: slice, flip_rates: Floats, scores: Floats, equal: bool, hinge: bool,
    variances: Floats | None,
) -> tuple[Statistics, Any]:  # fmt: skip
    """Sums over the pairs of a part; their curvature becomes its state."""
    spread = None if variances is None else variances[place]
    here = part.pairs.expect(flip_rates, scores[place], equal=equal, hinge=hinge, variances=spread)
    flipped = part.pairs.expected_flips(here, len(flip_rates))[0]
    of_items = np.stack([here.gradient, here.degree, here.observed_degree])
    return (here.log_likelihood, flipped, of_items), None if equal else (here.curvature,)


def _multiply(
    part: JointPart, state: Any, place: slice, columns: Floats, degree: Floats
) -> tuple[Statistics, Any]:  # fmt: skip
    """The curvature that a part keeps times columns, one row for each."""
    (curvature,) = state
    product = part.pairs.products(curvature, degree[place])(np.ascontiguousarray(columns[place]))
    return (np.ascontiguousarray(product.T),), None


def _leads(part: JointPart, state: Any, place: slice, flip_rates: Floats, scores: Floats) -> tuple[Statistics, Any]:
    """Sums of leads of a part's items, and their numbers."""
    return (np.stack(part.pairs.leads(flip_rates, scores[place])),), None


def _probabilities(
    part: JointPart, state: Any, place: slice, flip_rates: Floats, scores: Floats
) -> tuple[tuple[Ints, Ints, Floats], Any]:
    """Both items of each pair of a part, by their number in it, and how sure it is."""
    return (part.pairs.first, part.pairs.second, part.pairs.probabilities(flip_rates, scores[place])), None


def _pairs_of(number: int, part: JointPart, state: Any) -> tuple[Statistics, Any]:
    """The pairs of one of the parts, nothing of the others."""
    return (part.pairs if part.number == number else None,), None
