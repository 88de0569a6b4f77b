"""Fit scores together with one parameter per annotator: what Crowd-BT and the multinomial preference model share.

First the steps of ``fit``; then which way round scores and annotators are: a start on the majority's side, and what to
reverse at the end. Reversed scores with every annotator reversed explain preferences equally well; only the priors of
the annotators decide, and a fit that starts on the wrong side would end there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from ...data.consensus import Consensus, Trace
from ...data.index import Index
from ...data.judgments import Preferences, expect
from ...errors import ParameterError
from ...pair_counts import PairCounts, warn_unbounded
from ...protocols import BlockFit, Bools, Floats, Ints, method_name
from ...quality import LearnedQuality, trusted_annotators, warn_near_chance

if TYPE_CHECKING:
    from ...kernels.pairs import PreferencesByPair
    from .annotator_model import AnnotatorModel

QUALITY_TOL = 1e-2
"""Tolerance of the fits for held-out quality: agreement with scores needs no more digits."""

QUALITY_PRECISION = 1e-6
"""How exact the scores of such a fit are where it comes to items that are alike, relative to their range."""

START_ROUNDS = 2
_START_PRIOR_WEIGHT = 1.0
_START_MAX_SURPLUS = 0.9
MIN_GAIN = 1e-6
"""Gain of the objective from which scores are reversed."""

_MAX_SURPLUS = 1 - 1e-12
_MAX_TABLE_CELLS = 1 << 26


class AnnotatorMethod(ABC):
    """Base of methods that estimate scores together with a parameter of each annotator.

    A method is a dataclass over this class with its hyper-parameters, among them those below. It names the parameter,
    returns the model of preferences, and may show users the parameter on another scale than the model's.
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    precision: ClassVar[float] = 1e-7
    parameter: ClassVar[str]
    per_query: bool
    tol: float
    max_iter: int

    @abstractmethod
    def _model(self, preferences: Preferences, code: Ints, trusted: Bools) -> AnnotatorModel[Any]:
        """The model of preferences, given the number of the parameter that each depends on, and whose are trusted."""

    @abstractmethod
    def prior_of(self, trusted: Bools) -> AnnotatorPrior:
        """Return the prior of the parameters, given whose are trusted."""

    def accuracies_at(self, gap: float, own: Floats, prior: AnnotatorPrior) -> Floats:
        """Return the probability that annotators order an average pair as the scores do, from ``gap_sums``."""
        mixture = prior.model == "mixture"
        accuracies: Floats = 0.5 + 0.5 * (gap * prior.transform(own)[0] if mixture else np.tanh(np.arctanh(gap) * own))
        return accuracies

    def _to_parameter(self, own: Floats) -> Floats:
        """The parameter that users see, from the model's."""
        return own

    def _from_parameter(self, parameter: Floats) -> Floats:
        """The model's parameter, from the one that users see."""
        return parameter

    def fit(self, preferences: Preferences, *, start: Consensus | None = None, trusted: Any | None = None) -> Consensus:
        """Return scores and annotators; warns of items and groups that only the ridge keeps finite.

        ``start`` is a former consensus of this method to continue from; ``trusted`` has the ids of annotators known to
        be good.
        """
        expect(preferences, self)
        is_trusted = trusted_annotators(preferences, trusted)
        maximum = self._maximise(preferences, is_trusted, self._former_start(start, preferences), self.tol)
        model, point = maximum.model, maximum.point
        warn_unbounded(preferences.items, model.orient_pair_counts(model.own(point)))
        if trusted is None:
            gap, number = model.gap_sums(model.scores(point))
            accuracies = self.accuracies_at(gap / max(number, 1.0), model.own(point), model.prior)
            warn_near_chance(method_name(self), accuracies, model.n_preferences)
        own, scores = self._annotator_parameters(maximum, preferences), model.scores(point)
        std_error, covariance = model.standard_errors(maximum.best)
        refit = partial(self._scores, trusted=is_trusted, start=Start(scores, own), tol=max(self.tol, QUALITY_TOL))
        quality = LearnedQuality(preferences, refit, {self.parameter: own}, precision=QUALITY_PRECISION)
        return Consensus.of(
            self, preferences, scores, trace=maximum.trace, std_error=std_error, covariance=covariance,
            quality=quality if preferences.n_annotators else None, estimates=model.estimates(point),
        )  # fmt: skip

    def over_blocks(
        self, judged: Any, *, start: Consensus | None = None, trusted: Any | None = None, **given: Any
    ) -> BlockFit:
        """Return the passes of a fit to preferences in parts, by query or by annotator."""
        from .annotator_passes import annotator_passes

        return annotator_passes(self, judged, start, trusted_annotators(judged, trusted))

    def scores(self, preferences: Preferences) -> Floats:
        """Return the scores only, without standard errors, for repeated fits."""
        expect(preferences, self)
        return self._scores(preferences, np.zeros(preferences.n_annotators, bool), None, self.tol)

    def _scores(self, preferences: Preferences, trusted: Bools, start: Start | None, tol: float) -> Floats:
        """The scores at the maximum."""
        maximum = self._maximise(preferences, trusted, start, tol)
        return maximum.model.scores(maximum.point)

    def _maximise(self, preferences: Preferences, trusted: Bools, start: Start | None, tol: float) -> _Maximum:
        """The maximum of the objective."""
        code, owner = _parameter_codes(preferences, self.per_query)
        model = self._model(preferences, code, np.append(trusted, False)[owner])
        point = None
        if start is not None:
            point = model.complete(start.scores, self._from_parameter(np.append(start.own, np.nan)[owner]))
        point, best, trace = model.maximise(point, tol=tol, max_iter=self.max_iter, what=method_name(self))
        return _Maximum(model, point, best, trace, owner)

    def _annotator_parameters(self, maximum: _Maximum, preferences: Preferences) -> Floats:
        """Each annotator's parameter; with one per query, their mean over the annotator's preferences."""
        n, model, owner = preferences.n_annotators, maximum.model, maximum.owner
        if not n:
            return np.empty(0)
        own, number = self._to_parameter(model.own(maximum.point)), model.n_preferences
        # annotators without preferences keep the prior; queries of the others weigh by number of preferences
        weight = np.where(np.bincount(owner, number, n)[owner] > 0, number, 1.0)
        sums, total = np.bincount(owner, weight * own, n), np.bincount(owner, weight, n)
        idle = np.full(n, float(self._to_parameter(model.prior.default())))
        means: Floats = np.divide(sums, total, out=idle, where=total > 0)
        return means

    def former_parameters(self, former: Consensus, ids: Index) -> Floats:
        """Return the parameters that a former consensus has of annotators, NaN for new ones."""
        if former.learned is None:
            return np.full(len(ids), np.nan)
        annotators, parameters = former.learned
        if self.parameter not in parameters:
            raise ParameterError(
                f"start= is a consensus of {former.method}, which has no {self.parameter} of annotators; start from a "
                "consensus of the same method, or leave start= out"
            )
        known: Floats = np.append(parameters[self.parameter], np.nan)[annotators.codes(ids.ids)]
        return known

    def _former_start(self, former: Consensus | None, preferences: Preferences) -> Start | None:
        """Scores and parameters of a former consensus, NaN for new items and annotators."""
        if former is None:
            return None
        items = preferences.items
        scores = np.append(former.scores, np.nan)[former.items.codes(items.query_ids(), items.ids)]
        return Start(scores, self.former_parameters(former, preferences.annotators))


class Start(NamedTuple):
    """Scores and annotators' parameters to begin with, NaN where they are not known."""

    scores: Floats
    own: Floats


class _Maximum(NamedTuple):
    """A model, its best point and how it was reached; ``owner`` is the annotator that each parameter belongs to."""

    model: AnnotatorModel[Any]
    point: Floats
    best: Any
    trace: Trace
    owner: Ints


def _parameter_codes(preferences: Preferences, per_query: bool) -> tuple[Ints, Ints]:
    """Number of the parameter that each preference depends on, and the annotator that each parameter belongs to."""
    n = preferences.n_annotators
    by = preferences.annotator if n else np.zeros(len(preferences), np.int32)
    if not per_query:
        return by, np.arange(max(n, 1), dtype=np.int32)
    query = preferences.items.query[preferences.left]
    cells, code = np.unique(query.astype(np.int64) * max(n, 1) + by, return_inverse=True)
    return code.astype(np.int32), (cells % max(n, 1)).astype(np.int32)


class AnnotatorPrior(Protocol):
    """Prior of the annotators' parameters, and how a parameter enters the likelihood.

    ``model`` names the likelihood in the kernel ``pair_likelihood``; parameters stay between ``low`` and ``high``.
    """

    model: ClassVar[str]
    low: ClassVar[float]
    high: ClassVar[float]

    @property
    def trusted(self) -> Bools:
        """Annotators known to be good."""
        ...

    @property
    def sign_cost(self) -> Floats:
        """What the log prior loses for each unit of a parameter whose sign is reversed, (n_annotators,)."""
        ...

    def default(self) -> Floats:
        """Return the parameter of an annotator without preferences, ()."""
        ...

    def transform(self, own: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the parameter of the likelihood, and its first and second derivatives."""
        ...

    def log_density(self, own: Floats) -> tuple[float, Floats, Floats]:
        """Return the log prior, its gradient and its negated second derivatives."""
        ...

    def without_trusted(self) -> AnnotatorPrior:
        """Return the prior with nobody trusted."""
        ...

    def expected_surplus(self) -> tuple[Floats, Floats]:
        """Return the expected surplus of right over wrong preferences, -1 to 1, and its weight in preferences."""
        ...

    def from_surplus(self, surplus: Floats) -> Floats:
        """Return parameters that fit a surplus of right over wrong preferences."""
        ...


def majority_start(
    preferences: PreferencesByPair, pair_counts: PairCounts, prior: AnnotatorPrior
) -> tuple[Floats, Floats]:
    """Return rough scores and parameters of annotators.

    Scores are the mean outcomes of an item, with annotators weighed by the prior first, and then by how their
    preferences agree with the first scores.
    """
    known = prior.expected_surplus()[0]
    surplus = known
    for _ in range(START_ROUNDS):
        ahead, weight = start_sums(preferences, surplus)
        scores = pair_counts.centre(start_scores(ahead, weight))
        surplus = start_surplus(prior, *start_agreement(preferences, scores, len(known)))
    return scores, prior.from_surplus(surplus)


def start_sums(preferences: PreferencesByPair, surplus: Floats) -> tuple[Floats, Floats]:
    """Return by how much each item is ahead, and the weight of its preferences, annotators weighed by their surplus."""
    first, second, pair, by = preferences.first, preferences.second, preferences.pair, preferences.annotator
    amount = preferences.weight if preferences.weight.size else np.ones(len(preferences.code))
    n_items, n_pairs = len(preferences.starts) - 1, len(second)
    lead = np.bincount(pair, amount * preferences.outcome * surplus[by], n_pairs)
    weight = np.bincount(pair, amount * surplus[by] ** 2, n_pairs)
    ahead: Any = np.bincount(first, lead, n_items) - np.bincount(second, lead, n_items)
    total: Any = np.bincount(first, weight, n_items) + np.bincount(second, weight, n_items)
    return ahead, total


def start_scores(ahead: Floats, weight: Floats) -> Floats:
    """Return rough scores from the sums of the items."""
    mean = ahead / (weight + _START_PRIOR_WEIGHT)
    scores: Floats = 2.0 * np.arctanh(np.clip(mean, -_START_MAX_SURPLUS, _START_MAX_SURPLUS))
    return scores


def start_agreement(preferences: PreferencesByPair, scores: Floats, n_annotators: int) -> tuple[Floats, Floats]:
    """Return how far each annotator agrees with scores, and the sum of squares that this is measured by."""
    by, amount = preferences.annotator, preferences.weight if preferences.weight.size else 1.0
    gap = np.tanh(0.5 * (scores[preferences.first] - scores[preferences.second]))[preferences.pair]
    agree: Any = np.bincount(by, amount * preferences.outcome * gap, n_annotators)
    squares: Any = np.bincount(by, amount * gap**2, n_annotators)
    return agree, squares


def start_surplus(prior: AnnotatorPrior, agree: Floats, squares: Floats) -> Floats:
    """Return the surplus of right over wrong preferences that agreement suggests, shrunk towards the prior's."""
    known, strength = prior.expected_surplus()
    surplus: Floats = np.clip(
        (agree + strength * known) / (squares + strength), -_START_MAX_SURPLUS, _START_MAX_SURPLUS
    )
    return surplus


def parts_to_reverse(
    preferences: PreferencesByPair,
    pair_counts: PairCounts,
    prior: AnnotatorPrior,
    scores: Floats,
    own: Floats,
    *,
    settled: bool = False,
) -> tuple[Bools, Bools]:
    """Return which items and which annotators are better reversed.

    A part is all items and annotators that preferences connect. It is reversed if its trusted annotators contradict the
    scores or, without any and if the side is not settled, if the priors do. If no part is, single groups of items that
    were never compared with others are reversed where the annotators, as estimated from the others, contradict them.
    """
    part, part_of = connected_parts(preferences, pair_counts, len(own))
    active, n = part_of >= 0, len(scores) + 1
    gain = np.zeros(n) if settled else -np.bincount(part_of[active], (prior.sign_cost * own)[active], n)
    decided = np.zeros(n, bool)
    decided[part_of[active & prior.trusted]] = True
    if decided.any():
        agreement = np.bincount(preferences.annotator, support(preferences, prior, scores, np.ones(len(own))), len(own))
        gain[decided] = -np.bincount(part_of[active], np.where(prior.trusted, agreement, 0.0)[active], n)[decided]
    reverse_items, reverse_own = gain[part] > MIN_GAIN, active & (gain[part_of] > MIN_GAIN) & ~prior.trusted
    if reverse_items.any() or (pair_counts.group == part).all():
        return reverse_items, reverse_own
    supported = support(preferences, prior, scores, prior.transform(own)[0])
    gains = -np.bincount(pair_counts.group[preferences.first][preferences.pair], supported, len(scores))
    return gains[pair_counts.group] > MIN_GAIN, np.zeros(len(own), bool)


def support(preferences: PreferencesByPair, prior: AnnotatorPrior, scores: Floats, transformed: Floats) -> Floats:
    """Return the log-likelihood of each preference given the scores less that given reversed scores, up to rounding."""
    gap = scores[preferences.first] - scores[preferences.second]
    gap = np.tanh(0.5 * gap) if prior.model == "mixture" else gap
    x = transformed[preferences.annotator] * gap[preferences.pair] * preferences.outcome
    support = 2.0 * np.arctanh(np.clip(x, -_MAX_SURPLUS, _MAX_SURPLUS)) if prior.model == "mixture" else x
    return support * preferences.weight if preferences.weight.size else support


def connected_parts(preferences: PreferencesByPair, pair_counts: PairCounts, n_annotators: int) -> tuple[Ints, Ints]:
    """Return the number of the connected part of each item and of each annotator; -1 without preferences."""
    group, n_items = pair_counts.group, len(pair_counts.group)
    part = np.full(n_annotators, -1, np.int32)
    heads = np.unique(group[preferences.second])
    if len(heads) <= 1:
        part[preferences.annotator] = heads[0] if len(heads) else -1
        return group, part
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    place = np.searchsorted(heads, group[preferences.first])[preferences.pair].astype(np.int64)
    cell = place * n_annotators + preferences.annotator
    if len(heads) * n_annotators <= _MAX_TABLE_CELLS:
        table = np.zeros(len(heads) * n_annotators, bool)
        table[cell] = True
        cell = np.flatnonzero(table)
    row, column = np.divmod(cell, n_annotators)
    size = len(heads) + n_annotators
    graph = csr_array((np.ones(len(cell), np.int8), (row, column + len(heads))), shape=(size, size))
    component = connected_components(graph, directed=False)[1]
    # the number of a part is its lowest item
    lowest = np.full(size, n_items, np.int32)
    np.minimum.at(lowest, component[: len(heads)], heads)
    part[column] = lowest[component[column + len(heads)]]
    joined = group.copy()
    joined[np.isin(group, heads)] = lowest[component[np.searchsorted(heads, group[np.isin(group, heads)])]]
    return joined, part
