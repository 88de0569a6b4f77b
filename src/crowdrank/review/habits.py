"""Habits of each annotator: choosing by side, tying, changing with the order, answering in circles, one grade."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.judgments import Grades, Judgments, Preferences
from ..data.pairing import pairs_within
from ..data.recording import outcome_counts
from ..protocols import Bools, Counts, Floats, Ints
from ..quality import INTERVAL
from .coded_judgments import NOT_ASKED, CodedJudgments, code_judgments
from .self_consistency import Repeats, jeffreys, repeats, share_of
from .sides import OneSided

_CUTS = np.linspace(0, 1, 17)[1:-1]
_MAX_SCORES_SAMPLED = 100_000

MOST_WEDGES = 2_000_000
"""Most combinations of two pairs with a common item in which circles are looked for; of more, a part is drawn."""

_MOST_KEY = 1 << 62


class Position(NamedTuple):
    """Position bias of each annotator, its standard error, and its bounds."""

    bias: Floats
    std_error: Floats
    lower: Floats
    upper: Floats


def habits(judgments: Judgments, coded: CodedJudgments, scores: Floats) -> pl.DataFrame:
    """Return a row for each annotator, or one for all where nobody is named; null where there is nothing to tell."""
    n = max(judgments.n_annotators, 1)
    who = judgments.row_annotator
    ids = judgments.annotators.ids if judgments.n_annotators else pl.Series([None], dtype=pl.String)
    columns: dict[str, Any] = {"annotator": ids, "n_judgments": np.bincount(who[judgments.first_rows()], minlength=n)}
    if isinstance(judgments, Grades):
        columns |= _same_grade(judgments, who, n)
    elif isinstance(judgments, Preferences):
        columns |= _sides(judgments, coded, scores, who, n)
    if judgments.n_annotators:
        columns |= _consistency(repeats(judgments))
    return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))


def _same_grade(grades: Grades, who: Ints, n: int) -> dict[str, Any]:
    """The commonest grade of each annotator, its share, and its share among the grades of all others."""
    values, code = np.unique(grades.grade, return_inverse=True)
    n_values = max(len(values), 1)
    keys = np.sort(who.astype(np.int64) * n_values + code)
    begin = np.flatnonzero(np.diff(keys, prepend=-1))
    cells, times = keys[begin], np.diff(begin, append=len(keys))
    best = np.full(n, -1, np.int64)
    # rising, so the commonest comes last; of two as common the higher one
    order = np.argsort(times, kind="stable")
    best[cells[order] // n_values] = order
    some = np.flatnonzero(best >= 0)
    number, given = np.bincount(who, minlength=n), np.bincount(code, minlength=n_values)
    same, place = np.zeros(n, np.int64), np.zeros(n, np.int64)
    same[some], place[some] = times[best[some]], cells[best[some]] % n_values
    shown = pl.Series(grades.levels).gather(np.searchsorted(grades.level_values, values)) if len(values) else None
    return {
        "same_grade": pl.Series([None] * n) if shown is None else shown.gather(place).set(pl.Series(best < 0), None),
        "share_same": share_of(same, number),
        "share_same_others": np.where(best < 0, np.nan, share_of(given[place] - same, len(who) - number)),
    }


def _sides(preferences: Preferences, coded: CodedJudgments, scores: Floats, who: Ints, n: int) -> dict[str, Any]:
    """What sides each annotator chose, as far as they are those that were shown; ties; circles."""
    shown = preferences.shown
    right, _, left = outcome_counts(who[shown], preferences.outcome[shown], n).T.astype(np.float64)
    number = np.bincount(who, minlength=n)
    seen = coded if shown.all() else code_judgments(preferences.select(shown))
    position = position_bias(seen, scores, n)
    unclear = OneSided.of(preferences, scores).looks if preferences.n_annotators else np.zeros(n, bool)
    columns = {
        "share_left": share_of(left, left + right),
        "position_bias": np.where(unclear, np.nan, position.bias),
        "position_lower": np.where(unclear, np.nan, position.lower),
        "position_upper": np.where(unclear, np.nan, position.upper),
        "share_tied": share_of(np.bincount(who, preferences.outcome == 0, n), number),
    }
    return columns | (_both_orders(seen, n) | _circles(coded, n) if preferences.n_annotators else {})


def _consistency(repeats: Repeats) -> dict[str, Any]:
    """How often each annotator gives the same answer again, with intervals."""
    columns: dict[str, Any] = {}
    for name, n_things, same in (
        ("repeated", repeats.n_again, repeats.again),
        ("swapped", repeats.n_swapped, repeats.swapped),
    ):
        if n_things is None or same is None:
            continue
        lower, upper = jeffreys(same, n_things)
        columns |= {
            f"n_{name}": n_things, f"share_{name}": share_of(same, n_things), f"{name}_lower": lower,
            f"{name}_upper": upper,
        }  # fmt: skip
    if repeats.difference is not None:
        columns["repeated_difference"] = share_of(repeats.difference, repeats.n_again)
    return columns


def position_bias(coded: CodedJudgments, scores: Floats, n: int) -> Position:
    r"""Return how far each of ``n`` annotators would choose left rather than right between equals.

    The answer :math:`y` (1 for left, -1 for right, 0 for a tie) is explained by a bias :math:`b` and by how much better
    the left item is, :math:`y = b + \beta h + \text{noise}`; :math:`h` is the lead that all annotators together give an
    item with such a lead in score, and :math:`b` and :math:`\beta` are fitted by least squares for each annotator. A
    pair asked in both orders counts with the mean of both answers, from which the items cancel. One answer to the
    left and one to the right are added, which keeps intervals honest for those who always choose one side.
    """
    from ..kernels.segments import segment_sums

    lead, better, weight, who = _observations(coded, scores)
    size = np.bincount(who, minlength=n)
    some = size > 0
    columns = (weight, weight * better, weight * better**2, weight * lead, weight * better * lead)
    total, high, square, mean, product = (segment_sums(column, who, None, n) for column in columns)
    total += 2.0
    # where the scores say nothing, the slope is no matter
    square += 1e-9 * total
    determinant = total * square - high**2
    bias = (mean * square - high * product) / determinant
    slope = (total * product - high * mean) / determinant
    residual = lead - bias[who] - slope[who] * better
    pull = weight * (square[who] - high[who] * better) / determinant[who]
    variance = segment_sums((pull * residual) ** 2, who, None, n) * (size + 2.0) / np.maximum(size, 1.0)
    variance += (square / determinant) ** 2 * ((1.0 - bias) ** 2 + (1.0 + bias) ** 2)
    error = np.where(some, np.sqrt(variance), np.nan)
    bias = np.where(some, np.clip(bias, -1.0, 1.0), np.nan)
    reach = _quantile(size) * error
    return Position(bias, error, np.maximum(bias - reach, -1.0), np.minimum(bias + reach, 1.0))


def _quantile(size: Counts) -> Floats:
    """How many standard errors half an interval is long."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(np.maximum(size, 2).astype(np.float64), (1 + INTERVAL) / 2), np.float64)


def _observations(coded: CodedJudgments, scores: Floats) -> tuple[Floats, Floats, Floats, Ints]:
    """Lead of left, how much better the left item is, weight and annotator of each answer or pair of answers."""
    assert coded.low_left is not None
    assert coded.high_left is not None
    low, high = _orders(coded)
    both = low & high
    gap = (scores[coded.first] - scores[coded.second])[coded.thing]
    low_left, high_left = coded.low_left.astype(np.float64), coded.high_left.astype(np.float64)
    lead = np.where(both, 0.5 * (low_left + high_left), np.where(low, low_left, high_left))
    explains = _explanation(np.append(gap[low], -gap[high]), np.append(low_left[low], high_left[high]))
    better = np.where(both, 0.0, explains(np.where(low, gap, -gap)))
    return lead, better, np.where(both, 2.0, 1.0), coded.annotator


def _orders(coded: CodedJudgments) -> tuple[Bools, Bools]:
    """Whether each pair was asked with the first item left, and whether with the second item left."""
    return np.asarray(coded.low_left != NOT_ASKED), np.asarray(coded.high_left != NOT_ASKED)


def _explanation(gap: Floats, lead: Floats) -> Callable[[Floats], Floats]:
    """Function that tells the lead of left which a lead in score explains: learned from all answers, in bins."""
    size, side = np.abs(gap), np.sign(gap)
    decided = np.sort(size[size > 0])
    edges = np.zeros(0)
    if len(decided):
        edges = np.unique(np.quantile(decided[:: max(1, len(decided) // _MAX_SCORES_SAMPLED)], _CUTS))
    n_bins, place = len(edges) + 1, np.searchsorted(edges, size, side="right")
    margins = np.zeros((2, n_bins))
    for row, ahead in enumerate((side > 0, side < 0)):
        sums = np.bincount(place[ahead], lead[ahead], n_bins)
        margins[row] = sums / np.maximum(np.bincount(place[ahead], minlength=n_bins), 1)
    # the mean over both sides, so a bias of the whole crowd drops out
    margin = np.maximum.accumulate(np.clip(0.5 * (margins[0] - margins[1]), 0.0, 1.0))

    def explains(gap: Floats) -> Floats:
        return np.asarray(np.sign(gap) * margin[np.searchsorted(edges, np.abs(gap), side="right")])

    return explains


def _both_orders(coded: CodedJudgments, n: int) -> dict[str, Any]:
    """Pairs that each annotator was asked in both orders, and the share whose answer went with the side."""
    assert coded.low_left is not None
    assert coded.high_left is not None
    both = np.flatnonzero(np.logical_and(*_orders(coded)))
    who = coded.annotator[both]
    flipped = 0.5 * np.abs(coded.low_left[both].astype(np.float64) + coded.high_left[both])
    number, flips = np.bincount(who, minlength=n), np.bincount(who, flipped, n)
    lower, upper = jeffreys(flips, number)
    return {
        "n_both_orders": number,
        "share_flipped": share_of(flips, number),
        "flipped_lower": lower,
        "flipped_upper": upper,
    }


def _circles(coded: CodedJudgments, n: int) -> dict[str, Any]:
    """Triads of items whose three pairs an annotator answered, and the share of circular ones."""
    chosen = np.flatnonzero(coded.code != 1)
    thing = coded.thing[chosen]
    triads, circular = count_triads(
        coded.annotator[chosen],
        coded.place[thing],
        coded.first[thing],
        coded.second[thing],
        coded.code[chosen] == 2,
        n,
    )
    lower, upper = jeffreys(circular, triads)
    return {
        "n_triads": triads,
        "share_circular": share_of(circular, triads),
        "circular_lower": lower,
        "circular_upper": upper,
    }


def count_triads(annotator: Ints, place: Ints, low: Ints, high: Ints, won: Bools, n: int) -> tuple[Counts, Counts]:
    """Return how many triads of pairs each of ``n`` annotators answered, and how many of them are circular.

    Circular are three items of which the first was chosen over the second, that over the third, and that over the
    first; their share says how far somebody has no order in mind [KendallSmith40]_.

    Parameters
    ----------
    annotator, place
        Who answered each pair, and what its items are compared in, such as a query, (n_pairs,); triads lie within one.
    low, high
        The two items of each pair, ``low < high``; no annotator has a pair of a place twice.
    won
        Whether the lower item was chosen.
    n
        Number of annotators.

    Examples
    --------
    >>> nobody, items = np.zeros(3, np.int32), np.array([0, 0, 1], np.int32)
    >>> count_triads(nobody, nobody, items, np.array([1, 2, 2], np.int32), np.array([True, False, True]), 1)
    (array([1]), array([1]))
    """
    n_items = int(high.max(initial=0)) + 1
    owner = annotator.astype(np.int64) * (int(place.max(initial=0)) + 1) + place
    if int(owner.max(initial=0)) > _MOST_KEY // n_items**2:
        owner = np.unique(owner, return_inverse=True)[1].astype(np.int64)
    corner = owner * n_items + low
    key = corner * n_items + high
    order = np.argsort(key, kind="stable")
    key, corner, owner = key[order], corner[order], owner[order]
    first, second = _wedges(corner)
    # the pair that closes two pairs from one item to two higher ones
    wanted = (owner[first] * n_items + key[first] % n_items) * n_items + key[second] % n_items
    third = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    closed = np.flatnonzero(key[third] == wanted)
    first, second, third = (order[rows[closed]] for rows in (first, second, third))
    circular = (won[first] == won[third]) & (won[first] != won[second])
    who = annotator[first]
    return np.bincount(who, minlength=n), np.bincount(who[circular], minlength=n)


def _wedges(corner: Counts) -> tuple[Counts, Counts]:
    """Rows of every two pairs with the same lower item, or of a part of them; ``corner`` rises."""
    new = np.flatnonzero(np.diff(corner, prepend=-1))
    ends = np.append(new[1:], len(corner))[: len(new)]
    sizes = ends - new
    n_wedges = int((sizes * (sizes - 1) // 2).sum())
    ends = np.repeat(ends, sizes)
    position = np.arange(len(corner))
    if n_wedges > MOST_WEDGES:
        # the first pair of each wedge is drawn, which leaves the share of circular ones as it is
        kept = np.random.default_rng(0).random(len(corner)) < MOST_WEDGES / n_wedges
        ends = np.where(kept, ends, position + 1)
    return pairs_within(position, ends)
