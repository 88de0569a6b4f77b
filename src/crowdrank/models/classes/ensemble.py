"""Levels of items by several class methods together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Trace
from ...protocols import Floats
from ...wording import expect_at_least
from .class_method import ClassMethod
from .coded_grades import ClassFit, ClassRows, Former, Reading
from .dawid_skene import DawidSkene
from .mace import MACE

_N_RESTARTS = 4
"""Of MACE, fewer than by itself: half of the mean rests on it."""


@dataclass(frozen=True, kw_only=True)
class Ensemble(ClassMethod):
    r"""Mean of the probabilities of Dawid-Skene and MACE.

    Each method :math:`m` of the two says how likely item :math:`i` is of level :math:`j`, and the ensemble says their
    mean,

    .. math:: P(j \mid \text{grades}) = \tfrac{1}{2} \sum_m P_m(j \mid \text{grades}).

    ``dawid_skene`` [DawidSkene79]_ learns a confusion matrix of each annotator, ``mace`` [Hovy13]_ only how often each
    one does not look and what they answer then. Where annotators confuse levels the first is right and the second
    plain; where they gave few grades, or some do not look, it is the other way round. Which of the two holds cannot be
    read off the grades: predicting grades well does not prove levels. The mean is seldom far from the better of the
    two, and never as far as the worse.

    The score is the expected grade, the grade the most probable level and the confidence its probability. The quality
    of an annotator follows from the mean of the matrices, within the bounds of agreement with the others;
    ``spam_probability`` and ``spam_answers`` are those of MACE. The trace has one of each method in ``parts``.

    When to use
    -----------
    Use it to choose one class or grade per item where it is not known how annotators err; ``auto`` does.

    Parameters
    ----------
    ordinal
        Whether a miss by one level is likelier than one by three where there are three or more ordered levels, as in
        ``dawid_skene``.
    calibrated
        Whether to temper the probabilities so that they mean what they say (see the notes); ``False`` gives the
        model's own.
    per_query
        Whether annotators are taken as different ones in each query.
    tol
        Largest change in the last pass of either method; raise it to stop earlier.
    max_iter
        Largest number of passes over the grades of either method; raise it where a warning says that the fit did not
        converge.
    seed
        Seed of the random draws: of MACE's restarts, and which of several equally probable levels an item gets.
    bins
        Cut grades into this many equally wide levels; needed when there are more than 30 distinct ones.

    Notes
    -----
    Over fourteen simulated families of crowds (even errors, confusions, annotators who do not look, near misses, items
    of different difficulty, skewed classes, shared mistakes) no mean of two or more of ``dawid_skene``, ``mace``,
    ``naive_bayes`` and ``glad`` is clearly better. Methods were also chosen by how they predict held-out grades, which
    was no better on average and far worse at times.

    The mean is taken before probabilities are tempered by what held-out annotators show, as the notes of
    ``dawid_skene`` say. Where no item was graded by two annotators, or all grades are equal, the grades are kept as
    they are.

    Examples
    --------
    >>> from crowdrank import Grades
    >>> said = {"ann": [2, 2, 1, 1, 0, 0], "bob": [2, 2, 1, 1, 0, 1], "cy": [2, 0, 1, 2, 0, 0]}
    >>> rows = [(who, "q", item, grade) for who, grades in said.items() for item, grade in zip("uvwxyz", grades)]
    >>> consensus = Ensemble().fit(Grades.from_rows(rows))
    >>> consensus.frame()["grade"].to_list(), sorted(consensus.trace.parts)
    ([2, 2, 1, 1, 0, 0], ['dawid_skene', 'mace'])
    """

    votes_without_overlap: ClassVar[bool] = False
    ordinal: bool = True
    calibrated: bool = True
    per_query: bool = False
    tol: float = 1e-5
    max_iter: int = 1000
    seed: int = 0
    bins: int | None = None

    def __post_init__(self) -> None:
        expect_at_least(self, 1, "max_iter")

    def _members(self, rows: ClassRows) -> dict[str, ClassMethod]:
        """The methods by name, for these levels."""
        ordinal = self.ordinal and not rows.nominal and rows.n_levels > 2
        return {
            "dawid_skene": DawidSkene(ordinal=ordinal, tol=self.tol, max_iter=self.max_iter),
            "mace": MACE(n_restarts=_N_RESTARTS, tol=self.tol, max_iter=self.max_iter, seed=self.seed),
        }

    def _fit_rows(self, rows: ClassRows, begin: Former | None) -> ClassFit:
        """The mean of the fits; a method of whose annotators a former consensus knows nothing begins anew."""
        members, fits = self._members(rows), []
        for member in members.values():
            is_new = begin is None or (rows.has_annotators and begin.lacks(member.starts_from))
            fits.append(member._fit_rows(rows, None if is_new else begin))
        traces = {name: fit.trace for name, fit in zip(members, fits, strict=True)}
        trace = Trace(
            sum(one.n_iter for one in traces.values()), all(one.converged for one in traces.values()),
            max(one.change for one in traces.values()), parts=traces,
        )  # fmt: skip
        readings = [fit.reading for fit in fits if fit.reading is not None]
        return ClassFit(
            np.mean([fit.probabilities for fit in fits], axis=0), np.mean([fit.prior for fit in fits], axis=0),
            np.mean([fit.confusion for fit in fits], axis=0), trace, {**fits[0].parameters, **fits[1].parameters},
            reading=MeanReading(tuple(readings)), rereads=True,
        )  # fmt: skip

    def _take_votes(self, rows: ClassRows) -> ClassFit:
        """The grades as they are, by annotators as the crowd has them."""
        first, second = (member._take_votes(rows) for member in self._members(rows).values())
        return replace(first, parameters={**first.parameters, **second.parameters})


class MeanReading(NamedTuple):
    """Levels by the mean of what several readings say."""

    readings: tuple[Reading, ...]

    def probabilities(self, rows: ClassRows, state: Any) -> Floats:
        """Return the probability of each level for each item."""
        return np.mean([reading.probabilities(rows, state) for reading in self.readings], axis=0)
