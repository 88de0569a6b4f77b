"""Habits of each annotator: choosing by side, tying, changing with the order, answering in circles, one grade."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.judgments import Grades, Judgments, Preferences
from ..data.recording import outcome_counts
from ..protocols import Bools, Counts, Floats, Ints
from ..quality import INTERVAL
from .asked import NOT_ASKED, Asked, asked
from .self_consistency import Repeats, repeats
from .shares import jeffreys, share_of
from .sides import OneSided
from .triads import count_triads

_CUTS = np.linspace(0, 1, 17)[1:-1]
_SAMPLE = 100_000


class Position(NamedTuple):
    """Position bias of each annotator, its standard error, and its bounds."""

    bias: Floats
    std_error: Floats
    lower: Floats
    upper: Floats


def habits(judgments: Judgments, found: Asked, scores: Floats) -> pl.DataFrame:
    """Return a row for each annotator, or one for all where nobody is named; null where there is nothing to tell."""
    n = max(judgments.n_annotators, 1)
    who = judgments.annotator if judgments.n_annotators else np.zeros(len(judgments), np.int32)
    ids = judgments.annotators.ids if judgments.n_annotators else pl.Series([None], dtype=pl.String)
    columns: dict[str, Any] = {"annotator": ids, "n_judgments": np.bincount(who, minlength=n)}
    if isinstance(judgments, Grades):
        columns |= _same_grade(judgments, who, n)
    elif isinstance(judgments, Preferences):
        columns |= _sides(judgments, found, scores, who, n)
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
    # rising, so that the commonest comes last; of two as common the higher one
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


def _sides(preferences: Preferences, found: Asked, scores: Floats, who: Ints, n: int) -> dict[str, Any]:
    """What sides each annotator chose, as far as they are those that were shown; ties; circles."""
    shown = preferences.shown
    right, _, left = outcome_counts(who[shown], preferences.outcome[shown], n).T.astype(np.float64)
    number = np.bincount(who, minlength=n)
    seen = found if shown.all() else asked(preferences.select(shown))
    position = position_bias(seen, scores, n)
    unclear = OneSided.of(preferences, scores).looks if preferences.n_annotators else np.zeros(n, bool)
    columns = {
        "share_left": share_of(left, left + right),
        "position_bias": np.where(unclear, np.nan, position.bias),
        "position_lower": np.where(unclear, np.nan, position.lower),
        "position_upper": np.where(unclear, np.nan, position.upper),
        "share_tied": share_of(np.bincount(who, preferences.outcome == 0, n), number),
    }
    return columns | (_both_orders(seen, n) | _circles(found, n) if preferences.n_annotators else {})


def _consistency(found: Repeats) -> dict[str, Any]:
    """How often each annotator gives the same answer again, with intervals."""
    columns: dict[str, Any] = {}
    for name, n_things, same in (("repeated", found.n_again, found.again), ("swapped", found.n_swapped, found.swapped)):
        if n_things is None or same is None:
            continue
        lower, upper = jeffreys(same, n_things)
        columns |= {
            f"n_{name}": n_things, f"share_{name}": share_of(same, n_things), f"{name}_lower": lower,
            f"{name}_upper": upper,
        }  # fmt: skip
    if found.difference is not None:
        columns["repeated_difference"] = share_of(found.difference, found.n_again)
    return columns


def position_bias(found: Asked, scores: Floats, n: int) -> Position:
    r"""Return how far each of ``n`` annotators would choose left rather than right between equals.

    The answer :math:`y` (1 for left, -1 for right, 0 for a tie) is explained by a bias :math:`b` and by how much better
    the left item is, :math:`y = b + \beta h + \text{noise}`; :math:`h` is the lead that all annotators together give an
    item with such a lead in score, and :math:`b` and :math:`\beta` are fitted by least squares for each annotator. A
    pair asked in both orders counts with the mean of both answers, from which the items cancel. One answer to the
    left and one to the right are added, which keeps intervals honest for those who always choose one side.
    """
    from ..kernels.segments import segment_sums

    lead, better, weight, who = _observations(found, scores)
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


def _observations(found: Asked, scores: Floats) -> tuple[Floats, Floats, Floats, Ints]:
    """Lead of left, how much better the left item is, weight and annotator of each answer or pair of answers."""
    assert found.low_left is not None
    assert found.high_left is not None
    low, high = _orders(found)
    both = low & high
    gap = (scores[found.first] - scores[found.second])[found.thing]
    low_left, high_left = found.low_left.astype(np.float64), found.high_left.astype(np.float64)
    lead = np.where(both, 0.5 * (low_left + high_left), np.where(low, low_left, high_left))
    explains = _explanation(np.append(gap[low], -gap[high]), np.append(low_left[low], high_left[high]))
    better = np.where(both, 0.0, explains(np.where(low, gap, -gap)))
    return lead, better, np.where(both, 2.0, 1.0), found.annotator


def _orders(found: Asked) -> tuple[Bools, Bools]:
    """Whether each pair was asked with the first item left, and whether with the second item left."""
    return np.asarray(found.low_left != NOT_ASKED), np.asarray(found.high_left != NOT_ASKED)


def _explanation(gap: Floats, lead: Floats) -> Callable[[Floats], Floats]:
    """Function that tells the lead of left which a lead in score explains: learned from all answers, in bins."""
    size, side = np.abs(gap), np.sign(gap)
    decided = np.sort(size[size > 0])
    edges = np.zeros(0)
    if len(decided):
        edges = np.unique(np.quantile(decided[:: max(1, len(decided) // _SAMPLE)], _CUTS))
    n_bins, place = len(edges) + 1, np.searchsorted(edges, size, side="right")
    margins = np.zeros((2, n_bins))
    for row, ahead in enumerate((side > 0, side < 0)):
        sums = np.bincount(place[ahead], lead[ahead], n_bins)
        margins[row] = sums / np.maximum(np.bincount(place[ahead], minlength=n_bins), 1)
    # the mean over both sides, so that a bias of the whole crowd drops out
    margin = np.maximum.accumulate(np.clip(0.5 * (margins[0] - margins[1]), 0.0, 1.0))

    def explains(gap: Floats) -> Floats:
        return np.asarray(np.sign(gap) * margin[np.searchsorted(edges, np.abs(gap), side="right")])

    return explains


def _both_orders(found: Asked, n: int) -> dict[str, Any]:
    """Pairs that each annotator was asked in both orders, and the share whose answer went with the side."""
    assert found.low_left is not None
    assert found.high_left is not None
    both = np.flatnonzero(np.logical_and(*_orders(found)))
    who = found.annotator[both]
    flipped = 0.5 * np.abs(found.low_left[both].astype(np.float64) + found.high_left[both])
    number, flips = np.bincount(who, minlength=n), np.bincount(who, flipped, n)
    lower, upper = jeffreys(flips, number)
    return {
        "n_both_orders": number,
        "share_flipped": share_of(flips, number),
        "flipped_lower": lower,
        "flipped_upper": upper,
    }


def _circles(found: Asked, n: int) -> dict[str, Any]:
    """Triads of items whose three pairs an annotator answered, and the share of circular ones."""
    chosen = np.flatnonzero(found.code != 1)
    thing = found.thing[chosen]
    triads, circular = count_triads(
        found.annotator[chosen], found.place[thing], found.first[thing], found.second[thing], found.code[chosen] == 2, n
    )
    lower, upper = jeffreys(circular, triads)
    return {
        "n_triads": triads,
        "share_circular": share_of(circular, triads),
        "circular_lower": lower,
        "circular_upper": upper,
    }
