"""Judgments dealt into folds, each to be predicted from the others, and the pairs of items that they put in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings, parts_of
from ..errors import ParameterError
from ..protocols import Counts, Floats, Ints
from ..resampling import canonical_order, judgment_numbers, with_levels
from .pairing import pairing_terms

N_FOLDS = 5

PARTNERS = 5
"""Each grade, and each item of a ranking, is compared with this many others of its group on either side."""

MOST_PAIRS = 200_000
"""Of more pairs than this a random part is looked at."""

_MOST_COPIES = 1_000_000


class Pairs(NamedTuple):
    """Pairs of items with unequal answers: better and worse item, the judgments they come from, who, what weight."""

    better: Ints
    worse: Ints
    first: Counts
    second: Counts
    annotator: Ints
    weight: Floats

    @classmethod
    def join(cls, parts: list[Pairs]) -> Pairs:
        """Return the pairs of several parts as one."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def some(self, use: Any) -> Pairs:
        """Return some of the pairs."""
        return Pairs(*(column[use] for column in self))


@dataclass(frozen=True, eq=False)
class Split:
    """Judgments in folds.

    Parameters
    ----------
    judgments
        The judgments, with all levels of their grades declared, and copies where weights count anonymous ones.
    fold, n_folds
        Fold of each judgment, and their number.
    pairs
        Pairs of items that judgments put in order; none for classes.
    unit, n_units, unit_name
        What is taken as independent in standard errors, for each judgment: its annotator, its query, or its fold.
    """

    judgments: Judgments | Mixed
    fold: Ints
    n_folds: int
    pairs: Pairs
    unit: Ints
    n_units: int
    unit_name: str

    def outside_fold(self, number: int) -> Judgments | Mixed:
        """Return the judgments outside a fold."""
        return self.judgments.select(self.fold != number)

    @property
    def pair_fold(self) -> Ints:
        """Fold of each pair, in which both its answers are."""
        return self.fold[self.pairs.first]

    @cached_property
    def pairing(self) -> Floats | None:
        """What the choice of opponents tells of each pair's answer, (n_pairs, 2), if pairs were chosen adaptively."""
        return pairing_terms(self)


def split_judgments(judgments: Judgments | Mixed, n_folds: int = N_FOLDS, seed: int = 0) -> Split:
    """Return judgments dealt into folds.

    What an annotator said of one item, or of one pair in either order, stays together, and each annotator's judgments
    are spread evenly over the folds (each query's where nobody is named). Grades of a query are dealt two or more at a
    time, so there are pairs of which neither grade is seen: beside a grade that was seen, methods that use
    everybody alike know something of their annotator too. The order of the rows does not matter.
    """
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or n_folds < 2:
        raise ParameterError(f"folds={n_folds!r} must be a whole number of at least 2, such as {N_FOLDS}")
    laid_out = with_levels(_copies(judgments))
    rng = np.random.default_rng(seed)
    folds, pairs, start = [], [], 0
    for part in parts_of(laid_out):
        order = canonical_order(part)
        folds.append(_folds(part, order, int(n_folds), rng))
        pairs.append(_pairs(part, order, folds[-1], start, rng))
        start += len(part)
    fold, all_pairs = np.concatenate(folds), Pairs.join(pairs)
    if len(np.unique(fold)) < 2:
        raise ParameterError("there are too few judgments to hold some out; give a truth, or more judgments")
    if len(all_pairs.better) > MOST_PAIRS:
        all_pairs = all_pairs.some(np.sort(rng.choice(len(all_pairs.better), MOST_PAIRS, replace=False)))
    return Split(laid_out, fold, int(fold.max()) + 1, all_pairs, *_units(laid_out, fold))


def _copies(judgments: Judgments | Mixed) -> Judgments | Mixed:
    """Judgments of nobody with whole weights as this many rows: they are by different annotators, so may be parted."""
    weight = judgments.weight
    if (
        judgments.n_annotators
        or weight is None
        or isinstance(judgments, Mixed)
        or len(judgments) > judgments.n_judgments
    ):
        return judgments
    if (weight != np.round(weight)).any() or weight.sum() > _MOST_COPIES:
        return judgments
    rows = np.repeat(np.arange(len(judgments)), weight.astype(np.int64))
    return replace(judgments.select(rows), weight=None)


def _folds(judgments: Judgments, order: Counts, n_folds: int, rng: np.random.Generator) -> Ints:
    """Fold of each judgment."""
    n = len(judgments)
    named = judgments.n_annotators > 0
    thing = np.empty(n, np.int64)
    number = None if named else judgment_numbers(judgments)
    asked = np.arange(n) if number is None else number[order]
    thing[order] = _codes(_asked_columns(judgments))[order] if named else asked
    n_things = int(thing.max(initial=-1)) + 1
    stratum, query = np.zeros(n_things, np.int64), np.zeros(n_things, np.int64)
    stratum[thing], query[thing] = judgments.annotator if named else _query(judgments), _query(judgments)
    shuffled = rng.permutation(n_things)
    in_order = shuffled[np.lexsort((query[shuffled], stratum[shuffled]))]
    hand = np.arange(n_things)
    if isinstance(judgments, Grades):
        hand = _deal(stratum[in_order], query[in_order], n_folds)
    fold = np.empty(n_things, np.int32)
    fold[in_order] = hand % n_folds
    return fold[thing]


def _deal(stratum: Counts, query: Counts, n_folds: int) -> Counts:
    """Number of the hand in which each is dealt: two or more of one annotator and query, a fold's share of many."""
    new = (np.diff(stratum, prepend=-1) != 0) | (np.diff(query, prepend=-1) != 0)
    begin = np.flatnonzero(new)
    sizes = np.diff(begin, append=len(stratum))
    size, place = np.repeat(sizes, sizes), np.arange(len(stratum)) - np.repeat(begin, sizes)
    part = place * np.clip(size // 2, 1, n_folds) // np.maximum(size, 1)
    return np.cumsum(new | (np.diff(part, prepend=0) != 0)) - 1


def _asked_columns(judgments: Judgments) -> list[Any]:
    """Who was asked what: answers with equal columns stay together."""
    keys: list[Any] = [judgments.annotator]
    if isinstance(judgments, Preferences):
        low, high = np.minimum(judgments.left, judgments.right), np.maximum(judgments.left, judgments.right)
        keys += [low, high]
    else:
        keys.append(judgments.query if isinstance(judgments, Rankings) else judgments.item)
    if judgments.block is not None:
        keys.append(judgments.block)
    return keys


def _codes(keys: list[Any]) -> Counts:
    """A number for each row, equal where all keys are equal."""
    code = np.unique(keys[0], return_inverse=True)[1].astype(np.int64)
    for key in keys[1:]:
        code = np.unique(code * (int(key.max(initial=0)) + 1) + key, return_inverse=True)[1].astype(np.int64)
    return code


def _query(judgments: Judgments) -> Any:
    """Query of each judgment, the former one where queries were taken together."""
    if judgments.block is not None:
        return judgments.block
    if isinstance(judgments, Rankings):
        return judgments.query
    return judgments.items.query[judgments.left if isinstance(judgments, Preferences) else judgments.item]


def _pairs(judgments: Judgments, order: Counts, fold: Ints, start: int, rng: np.random.Generator) -> Pairs:
    """Pairs with unequal answers in the same fold, of judgments numbered from ``start``."""
    if isinstance(judgments, Preferences):
        rows = order[judgments.outcome[order] != 0]
        won, left, right = judgments.outcome[rows] > 0, judgments.left[rows], judgments.right[rows]
        better, worse = np.where(won, left, right), np.where(won, right, left)
        number = rows + start
        return Pairs(better, worse, number, number, judgments.row_annotator[rows], judgments.row_weight[rows])
    if isinstance(judgments, Grades):
        who = judgments.row_annotator
        first, second = _partners(_codes([_query(judgments), who, fold])[order], rng)
        return _ordered_pairs(judgments, order[first], order[second], judgments.grade, None, start)
    owner = judgments.ranking
    first, second = _partners(owner.astype(np.int64), rng)
    return _ordered_pairs(judgments, first, second, -judgments.rank.astype(np.float64), owner, start)


def _ordered_pairs(
    judgments: Grades | Rankings, first: Counts, second: Counts, grade: Floats, owner: Ints | None, start: int
) -> Pairs:
    """Pairs of rows with unequal grades, the better one first; ``owner`` is the judgment of each row if not itself."""
    use = (grade[first] != grade[second]) & (judgments.item[first] != judgments.item[second])
    if isinstance(judgments, Grades) and judgments.nominal:
        use[:] = False
    first, second = first[use], second[use]
    swap = grade[first] < grade[second]
    better, worse = np.where(swap, second, first), np.where(swap, first, second)
    one, other = (better, worse) if owner is None else (owner[better].astype(np.int64), owner[worse].astype(np.int64))
    weight = judgments.row_weight
    both = weight[one] * weight[other] if owner is None else weight[one]
    return Pairs(
        judgments.item[better], judgments.item[worse], one + start, other + start, judgments.row_annotator[one], both
    )


def _partners(group: Counts, rng: np.random.Generator) -> tuple[Counts, Counts]:
    """Pairs of rows of one group: each with its next few, the group standing in a circle in random order."""
    shuffled = rng.permutation(len(group))
    order = shuffled[np.argsort(group[shuffled], kind="stable")]
    begin = np.flatnonzero(np.diff(group[order], prepend=-1))
    sizes = np.diff(begin, append=len(order))
    start, size = np.repeat(begin, sizes), np.repeat(sizes, sizes)
    place = np.arange(len(order)) - start
    first, second = [], []
    for step in range(1, PARTNERS + 1):
        # in a circle of an even number, those opposite each other meet but once
        use = (2 * step < size) | ((2 * step == size) & (place < step))
        first.append(order[use])
        second.append(order[(start + (place + step) % np.maximum(size, 1))[use]])
    return np.concatenate(first), np.concatenate(second)


def _units(judgments: Judgments | Mixed, fold: Ints) -> tuple[Ints, int, str]:
    """What is taken as independent: annotators if there are several, else queries, else folds."""
    if len(np.unique(judgments.annotator)) > 1:
        return judgments.annotator, judgments.n_annotators, "annotator"
    query = np.concatenate([_query(part) for part in parts_of(judgments)])
    if len(np.unique(query)) > 1:
        return query, int(query.max()) + 1, "query"
    return fold, int(fold.max()) + 1, "fold"
