"""What comes out of a class method: an estimate, and the consensus and quality that are read out of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ...data.consensus import Consensus, Quality, Trace
from ...data.judgments import Grades
from ...errors import DataWarning
from ...protocols import Bools, Counts, Floats
from ...quality import MAX_FOLDS, LearnedQuality
from ...resampling import with_levels
from ...wording import option
from .coded_grades import ClassRows, QueryPart, query_parts, vote_shares

_EQUALLY_PROBABLE = 1e-8
"""Probabilities that differ by no more are equal: fits end within this of each other, whatever the order of sums."""

_MANY_GRADES, _FEW_FOLDS = 20_000, 5
"""From so many grades on, annotators are left out in five parts."""


@dataclass(frozen=True, eq=False)
class ClassFit:
    """What a class method estimates.

    Parameters
    ----------
    probabilities
        Probability of each level for each item, (n_items, n_levels); rows of items without grades are not used.
    prior
        Share of each level, (n_levels,).
    confusion
        Probability of each given level for each true one, (n_annotators, n_levels, n_levels): true level first.
    evidence
        Number of grades that each row of a confusion matrix rests on, prior included, (n_annotators, n_levels).
    trace
        How the fit went.
    parameters
        What else the method knows of each annotator, (n_annotators, ...).
    """

    probabilities: Floats
    prior: Floats
    confusion: Floats
    evidence: Floats
    trace: Trace
    parameters: Mapping[str, Floats] = field(default_factory=dict)


def votes_as_fit(rows: ClassRows, confusion: Floats, evidence: Floats) -> ClassFit:
    """Return the grades themselves as a fit, with the annotators that a method's prior supposes."""
    shares = vote_shares(rows)
    prior = shares[rows.graded].mean(axis=0)
    return ClassFit(shares, prior, confusion, evidence, Trace())


def fit_queries(
    rows: ClassRows,
    offsets: Counts,
    fit: Callable[[QueryPart], ClassFit],
    unlearned: Callable[[ClassRows], ClassFit],
    what: str,
) -> ClassFit:
    """Return the fits of the queries, each by itself, as one.

    ``unlearned`` gives the grades themselves as a fit; it stands in for queries in which nobody can be compared with
    another, of which there is a warning, and for annotators who gave no grade.
    """
    fits, alone = [], 0
    for part in query_parts(rows, offsets):
        alone += not part.rows.overlap
        fits.append((part, fit(part) if part.rows.overlap else unlearned(part.rows)))
    if alone:
        warnings.warn(
            f"{what}: in {alone} of {len(fits)} queries no item was graded by two annotators; their grades come back "
            f"as they are: leave per_query out, have some items graded twice, or give {option('known')}",
            DataWarning,
            stacklevel=3,
        )
    return joined_fit(rows, fits, unlearned(rows))


def joined_fit(rows: ClassRows, fits: Sequence[tuple[QueryPart, ClassFit]], empty: ClassFit) -> ClassFit:
    """Return the fits of all queries as one: items side by side, annotators averaged by the grades that each fit had.

    ``empty`` is the fit of nothing, whose annotators stand for those who gave no grade.
    """
    probabilities = empty.probabilities.copy()
    total, prior = np.zeros(rows.n_annotators), np.zeros(rows.n_levels)
    sums = {name: np.zeros((rows.n_annotators, *np.shape(value)[1:])) for name, value in _per_annotator(empty).items()}
    for part, fit in fits:
        probabilities[part.items] = fit.probabilities
        prior += fit.prior * part.rows.graded.sum()
        given = np.bincount(part.rows.annotator, part.rows.weight, part.rows.n_annotators)
        total[part.annotators] += given
        for name, value in _per_annotator(fit).items():
            sums[name][part.annotators] += value * given.reshape(-1, *[1] * (value.ndim - 1))
    idle = total == 0
    for name, value in _per_annotator(empty).items():
        sums[name][idle] = value[idle]
        sums[name][~idle] /= total[~idle].reshape(-1, *[1] * (value.ndim - 1))
    evidence, confusion = sums.pop("evidence"), sums.pop("confusion")
    trace = _joined_trace([fit.trace for _, fit in fits])
    return ClassFit(probabilities, prior / max(prior.sum(), 1e-300), confusion, evidence, trace, sums)


def _per_annotator(fit: ClassFit) -> dict[str, Floats]:
    """Everything that a fit has of each annotator."""
    return {"confusion": fit.confusion, "evidence": fit.evidence, **fit.parameters}


def _joined_trace(traces: Sequence[Trace]) -> Trace:
    """The longest of several traces, converged if all are; each log-likelihood stays where it ended."""
    n_iter = max(trace.n_iter for trace in traces)
    likelihoods = [trace.log_likelihood for trace in traces if trace.log_likelihood]
    length = max(map(len, likelihoods), default=0)
    padded = [np.pad(values, (0, length - len(values)), mode="edge") for values in likelihoods]
    summed = tuple(np.sum(padded, axis=0).tolist()) if padded else None
    return Trace(n_iter, all(t.converged for t in traces), max(t.change for t in traces), summed)


def class_consensus(
    method: Any, grades: Grades, rows: ClassRows, fit: ClassFit, *, again: Callable[..., Consensus]
) -> Consensus:
    """Return the consensus of a fit: expected grade as score, most probable level as grade, quality of annotators.

    An item without grades takes the mean probabilities of its query's graded items, or the class prior where there are
    none, and no grade. Of levels that are equally probable one is drawn with the method's seed, the same for all items
    with these levels, so that no name decides. For classes without an order the score is the probability of the chosen
    one, 0 for an item without grades. ``again`` fits a part of the grades, from a ``start=``, for the quality.
    """
    judged = rows.graded | (rows.known >= 0)
    probabilities = _filled(fit, judged, grades)
    chosen = _most_probable(probabilities, method.seed)
    if rows.nominal:
        scores = np.where(judged, probabilities[np.arange(len(chosen)), chosen], 0.0)
    else:
        # a matrix product would wake the threads of the linear algebra library, which then wait on a core for long
        scores = np.einsum("ik,k->i", probabilities, rows.values)
    found = Consensus.of(
        method, grades, scores, trace=fit.trace, probabilities=_on_scale(probabilities, rows, 1), levels=rows.scale,
        grade=np.where(judged, rows.used[chosen], -1).astype(np.int32),
    )  # fmt: skip
    return replace(found, quality_source=_quality(method, found, grades, rows, fit, again)) if rows.named else found


def _on_scale(values: Floats, rows: ClassRows, *axes: int) -> Floats:
    """Values over the levels in use as values over the whole scale, 0 for the other levels."""
    for axis in axes if rows.n_levels < len(rows.scale) else ():
        wide = np.zeros((*values.shape[:axis], len(rows.scale), *values.shape[axis + 1 :]))
        wide[(slice(None),) * axis + (rows.used,)] = values
        values = wide
    return values


def _filled(fit: ClassFit, judged: Bools, grades: Grades) -> Floats:
    """Probabilities with those of unjudged items taken from their query."""
    unjudged = np.flatnonzero(~judged)
    if not len(unjudged):
        return fit.probabilities
    probabilities = fit.probabilities.copy()
    query, n_queries = grades.items.query, grades.n_queries
    number = np.bincount(query[judged], minlength=n_queries)
    sums = np.stack([np.bincount(query[judged], column[judged], n_queries) for column in probabilities.T], axis=1)
    of_query = np.where(number[:, None] > 0, sums / np.maximum(number, 1)[:, None], fit.prior)
    probabilities[unjudged] = of_query[query[unjudged]]
    return probabilities


def _most_probable(probabilities: Floats, seed: int) -> Counts:
    """Level of the largest probability of each item; of several equal ones that which the seed draws for these."""
    # level by level: with few of them, sums and maxima along the short axis take several times as long
    top = probabilities[:, 0].copy()
    for column in probabilities.T[1:]:
        np.maximum(top, column, out=top)
    top -= _EQUALLY_PROBABLE
    chosen, n_tied = np.zeros(len(top), np.int64), np.zeros(len(top), np.int8)
    for level, column in enumerate(probabilities.T):
        high = column >= top
        np.copyto(chosen, level, where=high)
        n_tied += high
    several = np.flatnonzero(n_tied > 1)
    if len(several):
        sets, number = np.unique(probabilities[several] >= top[several, None], axis=0, return_inverse=True)
        drawn = [np.random.default_rng([seed, *np.flatnonzero(tied)]).choice(np.flatnonzero(tied)) for tied in sets]
        chosen[several] = np.array(drawn)[number.ravel()]
    return chosen


def _quality(
    method: Any, found: Consensus, grades: Grades, rows: ClassRows, fit: ClassFit, again: Callable[..., Consensus]
) -> LearnedQuality:
    """Held-out quality, with the accuracy, bias and confusion of a fit and the method's own parameters."""
    parameters: dict[str, Any] = {"accuracy": np.einsum("ajj,j->a", fit.confusion, fit.prior)}
    if not rows.nominal:
        error = rows.values[None, :] - rows.values[:, None]
        parameters["bias"] = np.einsum("ajl,jl,j->a", fit.confusion, error, fit.prior)
    parameters |= {**fit.parameters, "confusion": _on_scale(fit.confusion, rows, 1, 2)}
    learned = Quality(grades.annotators, parameters["accuracy"], np.empty(0), parameters)
    refit = _Refit(again, replace(found, quality_source=learned))
    n_folds = MAX_FOLDS if len(grades) <= _MANY_GRADES else _FEW_FOLDS
    # a part without a level still knows of it
    whole = with_levels(grades)
    return LearnedQuality(
        whole, refit.scores, parameters, partial(_learned, rows, fit), n_folds=n_folds,
        precision=method.precision, fit=refit.fit, known=rows.known >= 0, levelled=True,
    )  # fmt: skip


def _learned(rows: ClassRows, fit: ClassFit) -> Floats:
    """Quality by the confusion matrices."""
    from ...kernels.confusion import pair_quality

    return pair_quality(fit.confusion, fit.prior, nominal=rows.nominal)


@dataclass(frozen=True, eq=False)
class _Refit:
    """Fits to a part of the grades that go on from the fit to all of them."""

    again: Callable[..., Consensus]
    start: Consensus

    def fit(self, grades: Grades) -> Consensus:
        """Return the consensus of some grades."""
        return self.again(grades, start=self.start)

    def scores(self, grades: Grades) -> Floats:
        """Return the chosen level of each item as a number: of two items of one level none is better."""
        found = self.fit(grades)
        assert found.grade is not None
        return np.maximum(found.grade, 0).astype(np.float64)
