"""Most frequent grade of each item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...data.consensus import Consensus
from ...data.judgments import Grades, expect
from ...protocols import Bools, Counts, Floats, Ints
from ...quality import held_out
from ...wording import one_of
from .adversaries import check_adversaries, exchange_levels

_TIES = ("better_middle", "random")
_RELATIVE_SLACK = 1e-9


@dataclass(frozen=True, kw_only=True)
class MajorityVote:
    r"""Majority vote: the level that most annotators gave to an item.

    The probability of a level is its share of the item's weight, and the level with the largest share is the item's
    grade; the share is its confidence. The score is the number that the level counts as; where the grades are
    classes without an order it is the confidence.

    When to use
    -----------
    Use it as the baseline, where annotators are not named, or where each gave too few grades to distinguish them. Where
    annotators differ, ``dawid_skene`` or ``naive_bayes`` weigh them.

    Parameters
    ----------
    ties
        Which of several equally frequent levels to take. ``"better_middle"``: of :math:`t` tied levels, best first,
        number :math:`\lceil t / 2 \rceil`, so two tied give the better and three the middle [Yang10]_;
        ``"random"``: one of them, drawn with equal probability by ``seed``.
    adversaries
        What becomes of grades by annotators whose accuracy is below one in as many as there are levels. ``"keep"``:
        they count as they are; ``"exchange"``: each is replaced by one of the other levels at random [KumarLease11]_.
    seed
        Seed of the random draws; one is made for each item, in the order of their votes, so that other ids lead to the
        same grades; only among items with the same votes the order of the ids counts.
    bins
        Cut grades into this many equally wide levels; needed when there are more than 30 distinct ones.

    Notes
    -----
    An unjudged item has no grade; its probabilities are the shares of all votes in its query, or of all votes where
    the query has none, and its score is the mean of its query's judged items in the same way (0 for classes without an
    order). Without an order, ``"better_middle"`` uses the order in which the levels are listed. Annotators are not
    needed unless adversaries are exchanged.

    ``accuracies=`` of ``fit`` says who is adversarial; for annotators who are not in it, the mean share of the other
    grades of their items that agree with them does. That leans towards 1 where one level is far more frequent than the
    others. Each exchanged grade is drawn with ``seed``. An accuracy of 0.2 on three levels leaves 0.4 for each of the
    others, so little is gained; ``naive_bayes`` uses such accuracies without throwing anything away.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 2), ("bob", "q", "x", 2), ("cy", "q", "x", 0)]
    >>> rows += [("ann", "q", "y", 0), ("bob", "q", "y", 1)]
    >>> consensus = MajorityVote().fit(Grades.from_rows(rows))
    >>> consensus.scores.tolist(), consensus.probabilities.round(2).tolist()
    ([2.0, 1.0], [[0.33, 0.0, 0.67], [0.5, 0.5, 0.0]])
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    one_pass: ClassVar[tuple[str, ...]] = ("query",)
    nominal: ClassVar[bool] = True
    in_grades: ClassVar[bool] = True
    ties: str = "better_middle"
    adversaries: str = "keep"
    seed: int = 0
    bins: int | None = None

    def __post_init__(self) -> None:
        one_of(self.ties, _TIES, "ties")
        check_adversaries(self.adversaries, None)

    def fit(self, grades: Grades, *, accuracies: Any | None = None) -> Consensus:
        """Return the most frequent level of each item and the shares of all levels.

        ``accuracies`` maps annotators to the probability of being right, or is a table of annotator and accuracy;
        adversaries are those whose accuracy is below chance.
        """
        expect(grades, self)
        check_adversaries(self.adversaries, accuracies)
        quality = held_out(self, grades)
        if not len(grades):
            return Consensus.of(self, grades, np.zeros(grades.n_items), quality=quality)
        codes, levels, values = self._levels(grades, accuracies)
        votes = _votes(grades, codes, len(levels), grades.weight)
        total, chosen = votes.sum(axis=0), self._choose_levels(votes)
        shares = _shares(votes, total, grades.items.query, grades.n_queries)
        return Consensus.of(
            self, grades, _scores(grades, votes, chosen, values), probabilities=np.ascontiguousarray(shares.T),
            levels=levels, grade=np.where(total > 0, chosen, -1).astype(np.int32), quality=quality,
        )  # fmt: skip

    def scores_by_weight(self, grades: Grades) -> Callable[[Floats], Floats]:
        """Return the function from other weights of the grades to the scores."""
        codes, levels, values = self._levels(grades, None)

        def scores(weight: Floats) -> Floats:
            votes = _votes(grades, codes, len(levels), weight)
            return _scores(grades, votes, self._choose_levels(votes), values)

        return scores

    def _levels(self, grades: Grades, accuracies: Any | None) -> tuple[Ints, tuple[Any, ...], Floats]:
        """Level code of each grade, the levels, and the number each counts as."""
        codes, levels, values = grades.level_codes(self.bins)
        if self.adversaries == "exchange":
            codes = exchange_levels(grades, codes, len(levels), accuracies, self.seed)
        return codes, levels, values

    def _choose_levels(self, votes: Floats) -> Counts:
        """Level with the most votes of each item; among equals the better middle one, or one that is drawn."""
        # sums of fractional weights are equal up to rounding only
        tied: Bools = votes >= votes.max(axis=0) * (1 - _RELATIVE_SLACK)
        n_tied = np.zeros(votes.shape[1], np.int16)
        for level in tied:
            n_tied += level
        wanted = (n_tied + 1) // 2
        if self.ties == "random":
            draws = np.empty(votes.shape[1])
            # sums of fractional weights differ in their last digits
            order = np.lexsort(np.round(votes / max(float(votes.max(initial=0.0)), 1e-300), 9))
            draws[order] = np.random.default_rng(self.seed).random(len(draws))
            wanted = 1 + (draws * n_tied).astype(np.int16)
        chosen, passed = np.zeros(votes.shape[1], np.int64), np.zeros(votes.shape[1], np.int16)
        for number in range(len(votes) - 1, -1, -1):
            passed += tied[number]
            chosen[tied[number] & (passed == wanted)] = number
        return chosen


def _scores(grades: Grades, votes: Floats, chosen: Counts, values: Floats) -> Floats:
    """Number that the chosen level of each item counts as; its share of the votes where levels have no order."""
    from ...kernels.segments import fill_from_query

    total = votes.sum(axis=0)
    if grades.nominal:
        most: Floats = votes[chosen, np.arange(votes.shape[1])]
        return most / np.where(total > 0, total, 1.0)
    return fill_from_query(values[chosen], total > 0, grades.items.query, grades.n_queries)


def _votes(grades: Grades, codes: Ints, n_levels: int, weight: Floats | None) -> Floats:
    """Weight of the votes for each level and item, (n_levels, n_items)."""
    cells = codes * np.int64(grades.n_items)
    cells += grades.item
    counts = np.bincount(cells, weight, n_levels * grades.n_items)
    return counts.reshape(n_levels, grades.n_items).astype(np.float64, copy=False)


def _shares(votes: Floats, total: Floats, query: Ints, n_queries: int) -> Floats:
    """Share of each level in each item's votes, (n_levels, n_items); in its query's votes where the item has none."""
    shares = votes / np.where(total > 0, total, 1.0)
    unjudged = np.flatnonzero(total == 0)
    if len(unjudged):
        of_query = np.stack([np.bincount(query, row, n_queries) for row in votes])
        of_query[:, of_query.sum(axis=0) == 0] = votes.sum(axis=1, keepdims=True)
        shares[:, unjudged] = (of_query / of_query.sum(axis=0))[:, query[unjudged]]
    return shares
