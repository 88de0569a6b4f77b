"""Pools that order items by comparing them: Plackett-Luce, Mallows, Cayley-Mallows and random swaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import ParameterError
from ..protocols import Counts, Floats, Ints, Outcomes
from .designs import all_pairs, pair_places
from .known import Known, spread_offsets
from .pools import Lists, Pool, check_range, positive

_MAX_PAIRS = 1 << 21
_MAX_GROUPS_OF_GAPS = 2048


@dataclass(frozen=True, eq=False)
class PlackettLuce(Pool):
    r"""Annotators who rank by Plackett-Luce, and prefer by Bradley-Terry, on the true grades.

    The next item of a ranking is drawn among those left with probability proportional to
    :math:`\exp(c_a g_i)`; with two items that is a logistic preference.

    Parameters
    ----------
    slope
        :math:`c_a`, change of the log odds per unit of grade, per annotator; 0 is guessing, below 0 reversed.

    Examples
    --------
    >>> len(PlackettLuce(np.full(5, 1.5)))
    5
    """

    draws: ClassVar[tuple[str, ...]] = ("ranking", "preference")
    columns: ClassVar[tuple[str, ...]] = ("slope",)
    slope: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", check_range("slope", self.slope, -np.inf, np.inf))

    def draw_preferences(
        self, known: Known, left: Ints, right: Ints, annotator: Ints, rng: np.random.Generator
    ) -> Outcomes:
        """Return the outcome of each comparison."""
        chance = _logistic(self.slope[annotator] * (known.grade[left] - known.grade[right]))
        return np.where(rng.random(len(left)) < chance, 1, -1).astype(np.int8)

    def draw_rankings(self, known: Known, lists: Lists, rng: np.random.Generator) -> Counts:
        """Return the places in the true order of what comes first, second, ..."""
        row = lists.row
        # the order of scores plus Gumbel noise is a Plackett-Luce ranking
        key = self.slope[lists.annotator][row] * known.grade[lists.item] + rng.gumbel(size=len(row))
        return np.lexsort((-key, row)) - lists.offsets[row]

    def preference_quality(self, known: Known) -> Floats:
        """Return the mean probability of a right answer over pairs of unequal items, or over 2M of them."""
        gap, share = _grade_gaps(known)
        slopes, where = np.unique(self.slope, return_inverse=True)
        return np.array([share @ _logistic(slope * gap) for slope in slopes])[where]

    def ranking_quality(self, known: Known, lists: Lists) -> Floats:
        """Return the same as for preferences: the order of two items does not depend on the others."""
        return self.preference_quality(known)


@dataclass(frozen=True, eq=False)
class Mallows(Pool):
    r"""Annotators who rank by Mallows' model with Kendall distance: :math:`P(y) \propto \exp(-\theta_a d(y, truth))`.

    Drawn exactly, by inserting the items in true order. [Wu11]_ writes the same with a negative :math:`\theta`.

    Parameters
    ----------
    concentration
        :math:`\theta_a \ge 0`, per annotator; 0 is guessing, large is perfect.

    Examples
    --------
    >>> float(Mallows(np.array([1.0])).expected_distance(2)[0].round(4))
    0.2689
    """

    draws: ClassVar[tuple[str, ...]] = ("ranking",)
    columns: ClassVar[tuple[str, ...]] = ("concentration",)
    concentration: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "concentration", check_range("concentration", self.concentration, 0, np.inf))

    def draw_rankings(self, known: Known, lists: Lists, rng: np.random.Generator) -> Counts:
        """Return the places in the true order of what comes first, second, ..."""
        from .kernels.sampling import insert_all

        theta, place = self.concentration[lists.annotator][lists.row], lists.place
        uniform = rng.random(len(place))
        steps = uniform * (place + 1)
        sure = theta > 0
        share = -np.expm1(-theta[sure] * (place[sure] + 1))
        steps[sure] = -np.log1p(-uniform[sure] * share) / theta[sure]
        return insert_all(np.minimum(steps.astype(np.int64), place), lists.offsets)

    def ranking_quality(self, known: Known, lists: Lists) -> Floats:
        """Return the probability of keeping the order of two unequal items, averaged over the lists."""
        gaps = _gap_counts(known, lists)
        distance = np.flatnonzero(gaps)
        thetas, where = np.unique(self.concentration, return_inverse=True)
        if not len(distance):
            return np.full(len(self), np.nan)
        kept: Floats = np.array([gaps[distance] @ _keep_probability(theta, distance) for theta in thetas])
        return np.asarray(kept[where] / gaps.sum())

    def expected_distance(self, n_items: int) -> Floats:
        """Return each annotator's expected Kendall distance to the true ranking of ``n_items`` items."""
        distance = np.arange(1, max(n_items, 1))
        pairs = n_items - distance
        return np.array([pairs @ (1 - _keep_probability(theta, distance)) for theta in self.concentration])


class _ClassFunction(Pool):
    """Rankings whose probability depends only on the cycles of the permutation that makes them of the truth."""

    def eigenvalues(self, n_items: int) -> tuple[Floats, Floats]:
        """Return what is left of the linear and of the other part of the order of two items, per annotator."""
        raise NotImplementedError

    def ranking_quality(self, known: Known, lists: Lists) -> Floats:
        """Return the probability of keeping the order of two unequal items, averaged over the lists.

        The order of the places x < y, as a function on pairs, is the sum of its projection 2 (y - x) / n on functions
        g(y) - g(x) and a rest; drawing multiplies each of the two by a number (the characters of the shapes (n-1, 1)
        and (n-2, 1, 1) of the symmetric group).
        """
        pairs, kept = 0.0, np.zeros(len(self))
        for n_items in np.unique(lists.sizes):
            counts = _gap_counts(known, lists, int(n_items))
            if not counts.any():
                continue
            pairs += counts.sum()
            linear = counts @ (2 * np.arange(len(counts)) / n_items)
            first, second = self.eigenvalues(int(n_items))
            kept += linear * first + (counts.sum() - linear) * second
        return (1 + kept / pairs) / 2 if pairs else np.full(len(self), np.nan)


@dataclass(frozen=True, eq=False)
class CayleyMallows(_ClassFunction):
    r"""Annotators who rank by Mallows' model with Cayley distance, the number of swaps between ranking and truth.

    Parameters
    ----------
    concentration
        :math:`\theta_a \ge 0` of :math:`P(y) \propto \exp(-\theta_a d(y, truth))`, per annotator; 0 is guessing.
    """

    draws: ClassVar[tuple[str, ...]] = ("ranking",)
    columns: ClassVar[tuple[str, ...]] = ("concentration",)
    concentration: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "concentration", check_range("concentration", self.concentration, 0, np.inf))

    def draw_rankings(self, known: Known, lists: Lists, rng: np.random.Generator) -> Counts:
        """Return the places in the true order of what comes first, second, ..."""
        from .kernels.sampling import swap_all

        place = lists.place
        # place j is swapped with each of the j before it with weight exp(-theta), with itself with weight 1
        weight = np.exp(-self.concentration[lists.annotator][lists.row])
        drawn = rng.random(len(place)) * (1 + place * weight) - 1
        safe = np.where(weight > 0, weight, 1)
        other = np.where(drawn < 0, place, np.minimum(drawn / safe, place).astype(np.int64))
        return swap_all(place, other, lists.offsets, lists.offsets)

    def eigenvalues(self, n_items: int) -> tuple[Floats, Floats]:
        """Return what is left of each part: products of 1 + content * exp(-theta) over the boxes of the shape."""
        weight = np.exp(-self.concentration)
        first = (1 - weight) / (1 + (n_items - 1) * weight)
        return first, first * (1 - 2 * weight) / (1 + (n_items - 2) * weight)


@dataclass(frozen=True, eq=False)
class Swaps(_ClassFunction):
    """Annotators who swap two distinct random places of the true ranking, several times, afresh for each query [Wu11]_.

    Parameters
    ----------
    n_swaps
        Number of swaps, per annotator.
    per_items
        Length of the lists that take this many swaps; others take more or fewer in proportion, rounded. ``None`` makes
        the same number in all, which hardly harms long lists.
    """

    draws: ClassVar[tuple[str, ...]] = ("ranking",)
    columns: ClassVar[tuple[str, ...]] = ("n_swaps",)
    n_swaps: Counts
    per_items: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_swaps", check_range("n_swaps", self.n_swaps, 0, np.inf).astype(np.int64))
        if self.per_items is not None and self.per_items < 1:
            raise ParameterError(f"per_items must be 1 or more, not {self.per_items}")

    def draw_rankings(self, known: Known, lists: Lists, rng: np.random.Generator) -> Counts:
        """Return the places in the true order of what comes first, second, ..."""
        from .kernels.sampling import swap_all

        sizes = lists.sizes
        counts = np.where(sizes > 1, self._counts(self.n_swaps[lists.annotator], sizes), 0)
        size = np.repeat(sizes, counts)
        first = (rng.random(len(size)) * size).astype(np.int64)
        second = (rng.random(len(size)) * (size - 1)).astype(np.int64)
        second += second >= first
        return swap_all(first, second, spread_offsets(counts), lists.offsets)

    def eigenvalues(self, n_items: int) -> tuple[Floats, Floats]:
        """Return what is left of each part after all swaps."""
        if n_items < 2:
            return np.ones(len(self)), np.ones(len(self))
        swaps = self._counts(self.n_swaps, np.array(n_items)).astype(float)
        return ((n_items - 3) / (n_items - 1)) ** swaps, ((n_items - 5) / (n_items - 1)) ** swaps

    def _counts(self, n_swaps: Counts, sizes: Counts) -> Counts:
        """Swaps in lists of the given sizes."""
        if self.per_items is None:
            return n_swaps
        counts: Counts = np.rint(n_swaps * sizes / self.per_items).astype(np.int64)
        return counts


def ltrma_swaps(*, n_annotators: int, per_items: int | None = None) -> Swaps:
    """Return the annotators of [Wu11]_: the i-th makes 2 i + 1 swaps, for lists of ``per_items`` where that is given.

    Examples
    --------
    >>> ltrma_swaps(n_annotators=4).n_swaps.tolist()
    [3, 5, 7, 9]
    """
    return Swaps(2 * np.arange(1, positive(n_annotators) + 1) + 1, per_items)


def _logistic(x: Floats) -> Floats:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _keep_probability(theta: float, distance: Counts) -> Floats:
    """Probability that Mallows keeps the order of two items that many places apart."""
    # (d + 1) / (1 - q^(d + 1)) - d / (1 - q^d) with q = exp(-theta), which cancels where theta d is small
    near = theta * distance < 1e-3
    series = 0.5 + theta * (2 * distance + 1) / 12
    if theta == 0:
        return series
    longer = (distance + 1) / -np.expm1(-theta * (distance + 1))
    return np.where(near, series, longer - distance / -np.expm1(-theta * distance))


def _gap_counts(known: Known, lists: Lists, n_items: int | None = None) -> Counts:
    """Number of pairs of unequal items by how many places they are apart, over the lists (of one length)."""
    kept = lists.sizes > 0 if n_items is None else lists.sizes == n_items
    row = lists.row
    chosen = kept[row]
    grade = known.grade[lists.item[chosen]]
    row = row[chosen]
    # equal items stand side by side, since lists are in true order
    new = np.concatenate([[True], (np.diff(grade) != 0) | (np.diff(row) != 0)])
    runs = np.diff(np.concatenate([np.flatnonzero(new), [len(row)]])) if len(row) else np.zeros(0, np.int64)
    longest = int(lists.sizes.max(initial=1))
    return _pairs_apart(lists.sizes[kept], longest) - _pairs_apart(runs, longest)


def _pairs_apart(lengths: Counts, longest: int) -> Counts:
    """Number of pairs 0, 1, 2, ... places apart in stretches of the given lengths; none 0 apart."""
    at_least = np.cumsum(np.bincount(lengths, minlength=longest + 1)[::-1])[::-1]
    # a stretch of length n has n - d pairs d apart
    apart = np.append(np.cumsum(at_least[::-1])[::-1][1:], 0)
    apart[0] = 0
    return apart


def _grade_gaps(known: Known) -> tuple[Floats, Floats]:
    """Differences of the grades of unequal items of one query, and the share of each."""
    sizes = np.diff(known.items.offsets)
    possible = sizes * (sizes - 1) // 2
    if possible.sum() <= _MAX_PAIRS:
        query, number = all_pairs(sizes)
    else:
        rng = np.random.default_rng(0)
        query = rng.choice(len(sizes), _MAX_PAIRS, p=possible / possible.sum()).astype(np.int32)
        number = (rng.random(_MAX_PAIRS) * possible[query]).astype(np.int64)
    first, second = pair_places(number)
    start = known.items.offsets[query]
    gap = np.abs(known.grade[start + first] - known.grade[start + second])
    gap = gap[gap > 0]
    if not len(gap):
        return np.zeros(1), np.full(1, np.nan)
    values, counts = np.unique(gap, return_counts=True)
    if len(values) > _MAX_GROUPS_OF_GAPS:
        parts = np.array_split(np.sort(gap), _MAX_GROUPS_OF_GAPS)
        values, counts = np.array([part.mean() for part in parts]), np.array([len(part) for part in parts])
    return values, counts / counts.sum()
