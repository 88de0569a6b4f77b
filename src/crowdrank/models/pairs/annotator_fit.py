"""How methods are fitted that learn a parameter of each annotator along with the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...data.consensus import Consensus, Trace
from ...data.judgments import Judgments, Preferences
from ...errors import ParameterError
from ...pair_groups import warn_unbounded
from ...protocols import Bools, Floats, Ints
from ...quality import LearnedQuality, trusted_annotators, warn_near_chance
from .annotator_likelihood import oriented_contests
from .joint_newton import JointModel

_BRIEFLY = 1e-2


@dataclass(frozen=True, eq=False)
class Learner:
    """A method that learns a parameter of each annotator.

    Parameters
    ----------
    method
        The method.
    name, parameter
        Its name, and what its parameter is called.
    model
        Gives the model of preferences from them, the number of the parameter that each depends on, and which parameters
        are those of annotators known to be good.
    shown, hidden
        From a parameter as the model has it to what the user sees, and back.
    per_query
        Whether annotators are taken as different ones in each query.
    tol, max_iter
        As for :func:`~crowdrank.fitting.newton`.
    """

    method: Any
    name: str
    parameter: str
    model: Callable[[Preferences, Ints, Bools], JointModel[Any]]
    shown: Callable[[Floats], Floats]
    hidden: Callable[[Floats], Floats]
    per_query: bool
    tol: float
    max_iter: int

    def fit(self, preferences: Preferences, start: Consensus | None, trusted: Any | None) -> Consensus:
        """Return the consensus, with warnings about what preferences leave open."""
        sure = trusted_annotators(preferences, trusted)
        found = self.found(preferences, sure, None if start is None else self._former(start, preferences))
        model, point = found.model, found.point
        oriented = oriented_contests(model.answers, model.contests, model.own(point))
        warn_unbounded(preferences.items, oriented, depth=4)
        if trusted is None:
            warn_near_chance(self.name, model.chances(point), model.n_answers)
        own, scores = self.of_annotators(found, preferences), model.scores(point)
        std_error, covariance = model.spread(found.best)
        # agreement with scores needs no more digits
        brief = replace(self, tol=max(self.tol, _BRIEFLY))
        again = partial(brief.scores, sure=sure, begin=_Begin(scores, own))
        quality = LearnedQuality(preferences, again, {self.parameter: own}) if preferences.n_annotators else None
        return Consensus.of(
            self.method, preferences, scores, trace=found.trace, std_error=std_error, covariance=covariance,
            quality=quality, estimates=model.estimates(point),
        )  # fmt: skip

    def scores(self, preferences: Preferences, sure: Bools | None = None, begin: _Begin | None = None) -> Floats:
        """Return the scores alone."""
        sure = np.zeros(preferences.n_annotators, bool) if sure is None else sure
        found = self.found(preferences, sure, begin)
        return found.model.scores(found.point)

    def found(self, preferences: Preferences, sure: Bools, begin: _Begin | None) -> Found:
        """Return where the objective is largest."""
        code, of = _parameter_codes(preferences, self.per_query)
        model = self.model(preferences, code, np.append(sure, False)[of])
        start = None
        if begin is not None:
            start = model.completed(begin.scores, self.hidden(np.append(begin.own, np.nan)[of]))
        point, best, trace = model.maximum(start, tol=self.tol, max_iter=self.max_iter, what=self.name)
        return Found(model, point, best, trace, of)

    def of_annotators(self, found: Found, preferences: Preferences) -> Floats:
        """Return each annotator's parameter, the mean over the answers where there are several."""
        n, model, of = preferences.n_annotators, found.model, found.of
        if not n:
            return np.empty(0)
        own, number = self.shown(model.own(found.point)), model.n_answers
        # those who gave no answer are as the prior has them, and the rest weigh by answers
        weight = np.where(np.bincount(of, number, n)[of] > 0, number, 1.0)
        sums, total = np.bincount(of, weight * own, n), np.bincount(of, weight, n)
        idle = np.full(n, float(self.shown(model.prior.usual_own())))
        means: Floats = np.divide(sums, total, out=idle, where=total > 0)
        return means

    def _former(self, start: Consensus, preferences: Preferences) -> _Begin:
        """What a former consensus tells of the items and annotators of now, NaN where it does not."""
        items = preferences.items
        scores = np.append(start.scores, np.nan)[start.items.codes(items.query_ids(), items.ids)]
        return _Begin(scores, _former_parameter(start, preferences, self.parameter))


class _Begin(NamedTuple):
    """Scores and annotators to begin with, NaN where they are not known."""

    scores: Floats
    own: Floats


class Found(NamedTuple):
    """A model, its best point and how it was found; ``of`` has the annotator that each parameter belongs to."""

    model: JointModel[Any]
    point: Floats
    best: Any
    trace: Trace
    of: Ints


def _former_parameter(start: Consensus, judgments: Judgments, name: str) -> Floats:
    """A parameter that a former consensus has of the annotators of now, NaN for those who are new."""
    if start.learned is None:
        return np.full(judgments.n_annotators, np.nan)
    annotators, parameters = start.learned
    if name not in parameters:
        raise ParameterError(
            f"start= is a consensus of {start.method}, which knows no {name} of annotators; start from a consensus of "
            "the same method, or leave start= out"
        )
    values: Floats = np.append(parameters[name], np.nan)[annotators.codes(judgments.annotators.ids)]
    return values


def _parameter_codes(preferences: Preferences, per_query: bool) -> tuple[Ints, Ints]:
    """Number of the parameter that each preference depends on, and the annotator that each parameter belongs to."""
    n = preferences.n_annotators
    by = preferences.annotator if n else np.zeros(len(preferences), np.int32)
    if not per_query:
        return by, np.arange(max(n, 1), dtype=np.int32)
    query = preferences.items.query[preferences.left]
    cells, code = np.unique(query.astype(np.int64) * max(n, 1) + by, return_inverse=True)
    return code.astype(np.int32), (cells % max(n, 1)).astype(np.int32)
