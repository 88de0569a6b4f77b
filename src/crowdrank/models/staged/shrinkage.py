"""How far each annotator's ranker is shrunk towards the ranker of all judgments together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...errors import DataWarning
from ...protocols import Counts, Floats

if TYPE_CHECKING:
    from ...rankers.estimator import Ranker
    from ...rankers.training_rows import Lists, Matrix

STRENGTHS = (np.inf, 1024.0, 256.0, 64.0, 16.0, 4.0, 1.0, 0.0)
"""Lists that the common ranker counts as, the strongest pull first."""

_MIN_SPREAD = 1e-12


@dataclass(frozen=True, eq=False)
class AnnotatorLists:
    """Lists to learn from with the annotator of each.

    Parameters
    ----------
    matrix, lists
        Features of the rows, and the rows list after list.
    annotator
        Code of the annotator of each list.
    number
        Number of the list of each row.
    """

    matrix: Matrix
    lists: Lists
    annotator: Counts
    number: Counts

    def take(self, chosen: Counts) -> AnnotatorLists:
        """Return some of the lists."""
        return replace(self, lists=self.lists.take(chosen), annotator=self.annotator[chosen])

    def scores(self, ranker: Ranker) -> Floats:
        """Return a ranker's score of each row."""
        return ranker._score_rows(self.matrix, self.number)

    def of(self, annotator: int) -> Lists:
        """Return the lists of one annotator."""
        return self.lists.take(np.flatnonzero(self.annotator == annotator))

    def halves(self) -> tuple[Counts, Counts]:
        """Return half of each annotator's lists and the others; neither names nor the order of rows play a part."""
        from ...rankers.held_out import query_parts

        one: list[Counts] = []
        for annotator in np.unique(self.annotator).tolist():
            own = np.flatnonzero(self.annotator == annotator)
            if len(own) > 1:
                one.append(own[query_parts(self.matrix, self.lists.take(own), 2, 0)[0]])
        first = np.sort(np.concatenate(one)) if one else np.empty(0, np.int64)
        return first, np.setdiff1d(np.arange(len(self.annotator)), first)


class Shrunk(NamedTuple):
    """The common ranker, and the share of each annotator's own ranker in their scores, the common one having the rest.

    ``scale`` brings the scores of an annotator's ranker to the spread of those of the common one.
    """

    common: Ranker
    strength: float
    share: dict[int, float]
    scale: dict[int, float]


def shrink(
    fit: Callable[[Matrix, Lists], Ranker], everything: AnnotatorLists, own: dict[int, Ranker], strength: float | None
) -> Shrunk:
    """Return the common ranker and how far annotators' own ones are shrunk towards it.

    An annotator with ``n`` lists has the share ``n / (n + strength)``. ``None`` learns the strength: halves of
    everyone's lists are learned from, and the strength is taken at which annotators' other lists are ranked best.
    """
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        common = fit(everything.matrix, everything.lists)
        strength = _learned_strength(fit, everything) if strength is None else strength
    counts = np.bincount(everything.annotator, everything.lists.item_weights(), max(own) + 1)
    spread = float(everything.scores(common).std())
    if spread <= _MIN_SPREAD:
        # nothing was learned from all together
        return Shrunk(common, 0.0, dict.fromkeys(own, 1.0), dict.fromkeys(own, 1.0))
    scale = {k: spread / max(float(everything.scores(ranker).std()), _MIN_SPREAD) for k, ranker in own.items()}
    return Shrunk(common, strength, {k: own_share(float(counts[k]), strength) for k in own}, scale)


def own_share(n_lists: float, strength: float) -> float:
    """Return the share of an annotator's own ranker."""
    return 0.0 if np.isinf(strength) or not n_lists else n_lists / (n_lists + strength)


def _learned_strength(fit: Callable[[Matrix, Lists], Ranker], everything: AnnotatorLists) -> float:
    """The strength by which rankers learned from half of the lists rank the others best; of equal ones the largest."""
    first, second = everything.halves()
    if not len(first) or not len(second):
        return float(STRENGTHS[0])
    measured = [_held_out_ndcg(fit, everything, *pair) for pair in ((first, second), (second, first))]
    means = np.round(np.concatenate(measured, axis=1).mean(axis=1), 9)
    return float(STRENGTHS[int(np.argmax(means))])


def _held_out_ndcg(
    fit: Callable[[Matrix, Lists], Ranker], everything: AnnotatorLists, learned: Counts, held: Counts
) -> Floats:
    """The nDCG of each held-out list at each strength, (n_strengths, n_lists)."""
    from ...rankers.held_out import ItemGain

    part = everything.take(learned)
    common = everything.scores(fit(part.matrix, part.lists))
    columns = []
    for annotator in np.unique(everything.annotator[held]).tolist():
        lists = everything.take(held).of(annotator)
        rows = slice(None) if lists.rows is None else lists.rows
        measure, shared = ItemGain(lists, None, "linear"), common[rows]
        learned_lists = part.of(annotator)
        n_own, own = float(learned_lists.item_weights().sum()) if learned_lists.n_queries else 0.0, shared
        if n_own:
            scores = everything.scores(fit(part.matrix, learned_lists))
            own = scores[rows] * (common.std() / max(float(scores.std()), _MIN_SPREAD))
        columns.append(_at_strengths(measure.by_query, own, shared, n_own))
    return np.concatenate(columns, axis=1)


def _at_strengths(measure: Callable[[Floats], Floats], own: Floats, common: Floats, n_own: float) -> Floats:
    """What is measured of scores between the common and the annotators' own ones, (n_strengths, n_lists)."""
    shares: Sequence[float] = [own_share(n_own, strength) for strength in STRENGTHS]
    return np.stack([measure(share * own + (1.0 - share) * common) for share in shares])
