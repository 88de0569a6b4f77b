"""One of the grades of each item: the most frequent, the first, one at random or the highest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...data.consensus import Consensus, Quality
from ...data.judgments import Grades, expect
from ...data.truth import given_accuracies
from ...errors import JudgmentError
from ...protocols import Bools, Counts, Floats, Ints
from ...quality import held_out
from ...wording import one_of, option

_TIES, _PICKS = ("better_middle", "random"), ("first", "random")
_ADVERSARIES = ("keep", "exchange")
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


@dataclass(frozen=True, kw_only=True)
class Single:
    """Single labelling: one grade of each item as its score.

    What single labelling would have bought: the baseline that overlapping grades are compared with ([Yang10]_,
    [KumarLease11]_).

    When to use
    -----------
    Use it as the baseline that shows what buying a single grade per item would have given. For a result use
    ``mean_grade`` or a method that weighs annotators.

    Parameters
    ----------
    pick
        Which grade: ``"first"`` by time, by row where there are no times; or ``"random"``, drawn with ``seed`` in
        proportion to the weights.
    adversaries
        What becomes of grades by annotators whose accuracy is below one in as many as there are levels. ``"keep"``:
        they count as they are; ``"exchange"``: each is replaced by one of the other levels at random [KumarLease11]_.
    seed
        Seed of the random draws; one is made for each item.

    Notes
    -----
    ``accuracies=`` of ``fit`` says who is adversarial; for others, the mean share of the other grades of their items
    that agree with them does. Annotators whose items have no other grade are kept. See ``majority_vote``.

    The result has a ``grade`` where there are up to 30 different levels. An unjudged item has no grade, and the mean
    score of its query's judged items (of all judged items where the query has none). Annotators are not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 3), ("bob", "q", "x", 0), ("ann", "q", "y", 2)]
    >>> Single().fit(Grades.from_rows(rows)).scores.tolist()
    [3.0, 2.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    in_grades: ClassVar[bool] = True
    pick: str = "first"
    adversaries: str = "keep"
    seed: int = 0

    def __post_init__(self) -> None:
        one_of(self.pick, _PICKS, "pick")
        check_adversaries(self.adversaries, None)

    def fit(self, grades: Grades, *, accuracies: Any | None = None) -> Consensus:
        """Return the one grade of each item.

        ``accuracies`` maps annotators to the probability of being right, or is a table of annotator and accuracy;
        adversaries are those whose accuracy is below chance.
        """
        expect(grades, self)
        check_adversaries(self.adversaries, accuracies)
        quality = held_out(self, grades)
        if self.adversaries == "exchange" and len(grades):
            codes, _, numbers = grades.level_codes()
            codes = exchange_levels(grades, codes, len(numbers), accuracies, self.seed)
            grades = replace(grades, grade=numbers[codes])
        if self.pick == "first":
            order = grades.in_time()
            chosen: Counts = order[np.unique(grades.item[order], return_index=True)[1]]
        else:
            draws = np.random.default_rng(self.seed).random(grades.n_items)
            # rows in an order of their own, so the order of the table does not matter
            order = np.lexsort((grades.grade, grades.row_annotator, grades.item))
            items, starts = np.unique(grades.item[order], return_index=True)
            climbed: Floats = np.concatenate([[0.0], np.cumsum(grades.row_weight[order])])
            ends = np.append(starts[1:], len(order))
            # one row of each judged item in proportion to the weights
            wanted = climbed[starts] + draws[items] * (climbed[ends] - climbed[starts])
            place = np.searchsorted(climbed, wanted, side="right") - 1
            chosen = order[np.clip(place, starts, ends - 1)]
        values, judged = np.zeros(grades.n_items), np.zeros(grades.n_items, bool)
        values[grades.item[chosen]], judged[grades.item[chosen]] = grades.grade[chosen], True
        return _of_single_grades(self, grades, values, judged, quality)


@dataclass(frozen=True, kw_only=True)
class HighestGrade:
    """Maximum: the best grade that anyone gave to an item.

    It suits crowds whose errors are oversights, where one annotator who saw the point outweighs several who missed it
    ("Highest-k" of [Yang10]_); a single careless high grade is never corrected.

    When to use
    -----------
    Use it where errors are oversights, so one annotator who saw the point outweighs several who missed it. Avoid
    it with careless or generous annotators: one high grade is never corrected.

    Notes
    -----
    Weights do not matter. The result has a ``grade`` where there are up to 30 different levels. An unjudged item has no
    grade, and the mean score of its query's judged items (of all judged items where the query has none). Annotators are
    not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 1), ("bob", "q", "x", 3), ("ann", "q", "y", 2), ("bob", "q", "y", 2)]
    >>> HighestGrade().fit(Grades.from_rows(rows)).scores.tolist()
    [3.0, 2.0]
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade",)
    one_pass: ClassVar[tuple[str, ...]] = ("query",)
    in_grades: ClassVar[bool] = True

    def fit(self, grades: Grades) -> Consensus:
        """Return the highest grade of each item."""
        expect(grades, self)
        highest = np.full(grades.n_items, -np.inf)
        np.maximum.at(highest, grades.item, grades.grade)
        return _of_single_grades(self, grades, highest, highest > -np.inf, held_out(self, grades))


def _of_single_grades(
    method: Single | HighestGrade, grades: Grades, values: Floats, judged: Bools, quality: Callable[[], Quality | None]
) -> Consensus:
    """The consensus of one value for each judged item, all of which are grades."""
    from ...kernels.segments import fill_from_query

    levels, grade = grades.levels_of(values, judged)
    scores = fill_from_query(values, judged, grades.items.query, grades.n_queries)
    return Consensus.of(method, grades, scores, levels=levels, grade=grade, quality=quality)


def check_adversaries(adversaries: str, accuracies: Any | None) -> None:
    """Refuse accuracies that nothing is done with."""
    one_of(adversaries, _ADVERSARIES, "adversaries")
    if accuracies is not None and adversaries == "keep":
        raise JudgmentError(f"{option('accuracies')} has no use with adversaries='keep'; set adversaries='exchange'")


def exchange_levels(grades: Grades, codes: Ints, n_levels: int, accuracies: Any | None, seed: int) -> Ints:
    """Return the level code of each grade, those of adversarial annotators exchanged for one of the others at random.

    Adversarial is whose accuracy is below one in ``n_levels``: as given, else by agreement. ``codes`` (n,) are the
    levels as they were given.
    """
    if not grades.n_annotators:
        raise JudgmentError("adversaries='exchange' needs to know who gave each grade; add the annotator column")
    if n_levels < 2:
        return codes
    # mean share of the other grades of an item that agree with each annotator's, 1 where there are none; if errors fall
    # on all other levels alike, and the others are right more often than a guess, it is below one in n_levels exactly
    # where the annotator's accuracy is
    weight, cell = grades.row_weight, codes + grades.item.astype(np.int64) * n_levels
    votes = np.bincount(cell, weight, n_levels * grades.n_items)
    others = np.bincount(grades.item, weight, grades.n_items)[grades.item] - weight
    share = np.divide(votes[cell] - weight, others, out=np.ones(len(codes)), where=others > 0)
    weight = np.where(others > 0, weight, 0.0)
    total, agreed = (np.bincount(grades.annotator, each, grades.n_annotators) for each in (weight, weight * share))
    # a share of exactly 1 / n_levels is a guess, whatever the order of the sums
    accuracy: Floats = np.divide(agreed, total, out=np.ones(grades.n_annotators), where=total > 0).round(12)
    if accuracies is not None:
        given = given_accuracies(accuracies, grades)
        accuracy = np.where(np.isfinite(given), given, accuracy)
    adverse: Bools = (accuracy < 1 / n_levels)[grades.annotator]
    steps = np.empty(len(codes), np.int64)
    # drawn in an order of their own, so the order of the table does not matter
    order = np.lexsort((codes, grades.annotator, grades.item))
    steps[order] = np.random.default_rng(seed).integers(1, n_levels, len(codes))
    return np.where(adverse, (codes + steps) % n_levels, codes).astype(codes.dtype)
