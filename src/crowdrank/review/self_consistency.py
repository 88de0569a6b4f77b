"""The same question put again to the same annotator: how often the answer stays what it was."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.intake import short
from ..data.judgments import Grades, Judgments, Preferences
from ..protocols import Bools, Counts, Floats
from ..quality import INTERVAL
from ..wording import counted, percent
from .coded_judgments import fewer_items


class Things(NamedTuple):
    """What each judgment is about, numbered from 0, the answer, and where the sides of a pair are exchanged, (n,) each.

    Things are items (grades) or pairs of items of one query or block; the answer is the grade, or the outcome as seen
    from the pair's lower item.
    """

    thing: Counts
    answer: Floats
    turned: Bools


def things_of(judgments: Judgments) -> tuple[Judgments, Things]:
    """Return the judgments as grades or preferences, and what each is about.

    Rows that share one judgment, as the weights of a probability do, are one answer: that of the heaviest row.
    """
    if isinstance(judgments, Preferences) and judgments.judgment is not None:
        heaviest_first = np.lexsort((-judgments.row_weight, judgments.judgment))
        once = np.unique(judgments.judgment[heaviest_first], return_index=True)[1]
        judgments = judgments.select(np.sort(heaviest_first[once]))
    if isinstance(judgments, Grades):
        key, answer, turned = judgments.item.astype(np.int64), judgments.grade, np.zeros(len(judgments), bool)
        part: Judgments = judgments
    else:
        part = pairs = judgments.as_preferences()
        turned = pairs.left > pairs.right
        first, second = np.where(turned, pairs.right, pairs.left), np.where(turned, pairs.left, pairs.right)
        key = first.astype(np.int64) * pairs.n_items + second
        answer = np.where(turned, -pairs.outcome, pairs.outcome).astype(np.float64)
    if part.block is not None:
        block = part.block.astype(np.int64)
        key = np.unique(key, return_inverse=True)[1] * (int(block.max(initial=0)) + 1) + block
    return part, Things(np.unique(key, return_inverse=True)[1], answer, turned)


class Repeats(NamedTuple):
    """What each annotator was asked again, and how often the answer was the same, (n_annotators,) each.

    Parameters
    ----------
    n_again, again
        Things asked again in the same order, and the sum over them of the share of equal answers among all pairs of
        answers. Where nobody knows in which order a pair was shown, any order counts.
    n_swapped, swapped
        The same for pairs asked again with the items on exchanged sides; ``None`` for other kinds.
    difference
        Sum over things asked again of the mean difference of two grades; ``None`` for other kinds.
    """

    n_again: Counts
    again: Floats
    n_swapped: Counts | None = None
    swapped: Floats | None = None
    difference: Floats | None = None


def repeats(judgments: Judgments) -> Repeats:
    """Return what annotators were asked again; each thing counts once, however often it was asked."""
    part, about = things_of(fewer_items(judgments)[0])
    n = part.n_annotators
    cell = np.unique(about.thing * n + part.annotator, return_inverse=True)[1]
    rows = np.flatnonzero(np.bincount(cell)[cell] > 1) if len(cell) else np.zeros(0, np.int64)
    cell, who = np.unique(cell[rows], return_inverse=True)[1], part.annotator[rows]
    values, code = np.unique(about.answer[rows], return_inverse=True)
    n_cells = int(cell.max(initial=-1)) + 1
    owner = np.zeros(n_cells, np.int64)
    owner[cell] = who
    shown = part.shown[rows] if isinstance(part, Preferences) else np.zeros(len(rows), bool)
    # by cell and answer, as often as it was given with the lower item left, right, and on a side that nobody knows
    keys, at = np.unique(cell * max(len(values), 1) + code, return_inverse=True)
    side = np.where(shown, about.turned[rows], 2)
    given = np.bincount(at * 3 + side, minlength=3 * len(keys)).reshape(-1, 3).astype(np.float64)
    of = keys // max(len(values), 1)
    number = np.stack([np.bincount(of, column, n_cells).astype(np.float64) for column in given.T], axis=1)
    alike = np.bincount(of, (given * (given - 1.0)).sum(axis=1), n_cells).astype(np.float64)
    n_again, again = _by_owner(alike, (number * (number - 1.0)).sum(axis=1), owner, n)
    if isinstance(part, Grades):
        apart = None if part.nominal else _differences(cell, part.grade[rows], owner, n)
        return Repeats(n_again, again, difference=apart)
    if not isinstance(judgments, Preferences):
        return Repeats(n_again, again)
    alike = np.bincount(of, given[:, 0] * given[:, 1], n_cells).astype(np.float64)
    return Repeats(n_again, again, *_by_owner(alike, number[:, 0] * number[:, 1], owner, n))


def _by_owner(alike: Floats, pairs: Floats, owner: Counts, n: int) -> tuple[Counts, Floats]:
    """How many cells of each annotator have pairs of answers, and the sum of their shares of equal ones."""
    some = pairs > 0
    shares = np.bincount(owner[some], alike[some] / pairs[some], n).astype(np.float64)
    return np.bincount(owner[some], minlength=n), shares


def _differences(cell: Counts, grade: Floats, owner: Counts, n: int) -> Floats:
    """Sum over each annotator's cells of the mean difference of two grades."""
    order = np.lexsort((grade, cell))
    size = np.bincount(cell)
    place = np.arange(len(order)) - np.repeat(np.cumsum(size) - size, size)
    # the k-th of m rising grades is the higher one of k pairs and the lower one of m - 1 - k
    sums = np.bincount(cell[order], (2.0 * place - size[cell[order]] + 1.0) * grade[order])
    return np.bincount(owner, 2.0 * sums / (size * (size - 1.0)), n).astype(np.float64)


class Consistency(NamedTuple):
    """How often annotators gave the same answer again: things asked again, share with its 90 % interval, and whose."""

    n: int
    share: float
    lower: float
    upper: float
    annotators: list[object]


def consistency(table: pl.DataFrame, how: str) -> Consistency | None:
    """Return the figure of all annotators of a table of habits, ``how`` being ``repeated`` or ``swapped``."""
    if f"n_{how}" not in table.columns:
        return None
    asked_again = table.filter(pl.col(f"n_{how}") > 0)
    n = int(asked_again[f"n_{how}"].sum())
    if not n:
        return None
    same = float((asked_again[f"n_{how}"] * asked_again[f"share_{how}"]).sum())
    lower, upper = jeffreys(np.array([same]), np.array([float(n)]))
    return Consistency(n, same / n, float(lower[0]), float(upper[0]), asked_again["annotator"].to_list())


def consistency_sentence(kind: str, table: pl.DataFrame) -> str | None:
    """Return how far annotators agree with themselves, ``None`` where nothing was asked again."""
    again, swapped = consistency(table, "repeated"), consistency(table, "swapped")
    repeated = {
        "grade": "graded again", "ranking": "ranked again",
        "preference": "asked again in the same order" if _has_sides(table) else "asked again",
    }  # fmt: skip
    parts = []
    for repeats, how in ((again, repeated[kind]), (swapped, "asked again with the sides swapped")):
        if repeats is not None:
            bounds = f"{percent(repeats.lower)} to {percent(repeats.upper)}"
            number = counted(repeats.n, "item" if kind == "grade" else "pair")
            parts.append(f"in {percent(repeats.share)} of {number} {how} ({bounds})")
    if not parts:
        return None
    whose = list(dict.fromkeys([*(again.annotators if again else ()), *(swapped.annotators if swapped else ())]))
    of = short(whose[0]) if len(whose) == 1 else f"{len(whose):,} annotators"
    return f"self-consistency of {of}: the same answer {' and '.join(parts)}"


def _has_sides(table: pl.DataFrame) -> bool:
    """Whether it is known on which side items were shown."""
    return "share_left" in table.columns and table["share_left"].null_count() < len(table)


def share_of(part: Any, whole: Any) -> Floats:
    """Return a part of a whole, NaN where that is nothing."""
    shares: Floats = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return shares


def jeffreys(part: Any, whole: Any) -> tuple[Floats, Floats]:
    """Return the bounds of a share by Jeffreys' interval; it holds 0 and 1 where these were seen, NaN of nothing."""
    from scipy.special import betaincinv

    tail = (1 - INTERVAL) / 2
    lower, upper = (betaincinv(part + 0.5, whole - part + 0.5, p) for p in (tail, 1 - tail))
    none = np.asarray(whole) <= 0
    lower = np.where(none, np.nan, np.where(np.asarray(part) <= 0, 0.0, lower))
    return lower, np.where(none, np.nan, np.where(np.asarray(part) >= whole, 1.0, upper))
