"""Habits of each annotator: choosing by side, tying, changing with the order, answering in circles, one grade."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.index import Index
from ..data.intake import short
from ..data.judged import pairs_within
from ..data.judgments import Grades, Judgments, Preferences
from ..data.preferences import FEWEST, NEARLY_ALL, outcome_counts
from ..protocols import Bools, Counts, Floats, Ints
from ..quality import INTERVAL
from ..wording import SHOWN, counted, first_few
from .coded_judgments import NOT_ASKED, CodedJudgments, code_judgments, fewer_items
from .sentences import FLAGS, MESSAGES, fill

_MIN_TIMED = 40
"""Judgments of an annotator with a time, from which on a change of their agreement is looked for."""

_CUTS = np.linspace(0, 1, 17)[1:-1]
# threshold (sample): scores whose quantiles cut the scale for sides
_MAX_SCORES_SAMPLED = 100_000

# threshold (sample): triads looked at for circles
MOST_WEDGES = 2_000_000
"""Most combinations of two pairs with a common item in which circles are looked for; of more, a part is drawn."""

# threshold (equal): triads numbered in one integer
_MOST_KEY = 1 << 62


def habits(judgments: Judgments, coded: CodedJudgments, scores: Floats) -> pl.DataFrame:
    """Return a row for each annotator, or one for all where nobody is named; null where there is nothing to tell."""
    n = max(judgments.n_annotators, 1)
    who = judgments.row_annotator
    ids = judgments.annotators.ids if judgments.n_annotators else pl.Series([None], dtype=pl.String)
    columns: dict[str, Any] = {"annotator": ids, "n_judgments": np.bincount(who[judgments.first_rows()], minlength=n)}
    if isinstance(judgments, Grades):
        # the commonest grade of each annotator, its share, and its share among the grades of all others
        counts = pl.DataFrame({"who": who.astype(np.int64), "grade": judgments.grade})
        counts = counts.group_by("who", "grade").agg(same=pl.len())
        given = counts.group_by("grade").agg(given=pl.sum("same"))
        levels = pl.DataFrame({"grade": judgments.level_values, "same_grade": pl.Series(judgments.levels)})
        # rising, so the commonest comes last; of two as common the higher one
        best = counts.sort("same", "grade").group_by("who").agg(pl.last("same", "grade"))
        best = best.join(given, on="grade").join(levels, on="grade", how="left")
        number = np.bincount(who, minlength=n)
        each = pl.DataFrame({"who": np.arange(n), "number": number, "others": len(who) - number})
        each = each.join(best, on="who", how="left", maintain_order="left")
        columns |= {"same_grade": each["same_grade"], "share_same": each["same"] / each["number"]}
        columns["share_same_others"] = (each["given"].cast(pl.Int64) - each["same"].cast(pl.Int64)) / each["others"]
    elif isinstance(judgments, Preferences):
        columns |= _sides(judgments, coded, scores, who, n)
    if judgments.n_annotators:
        again = repeats(judgments)
        columns |= _shares("n_repeated", "repeated", again.again, again.n_again)
        if again.n_swapped is not None:
            columns |= _shares("n_swapped", "swapped", again.swapped, again.n_swapped)
        if again.difference is not None:
            columns["repeated_difference"] = share_of(again.difference, again.n_again)
        if judgments.time is not None and isinstance(judgments, Grades | Preferences):
            columns |= _change_in_time(judgments, scores, judgments.time, n)
    return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))


def _sides(preferences: Preferences, coded: CodedJudgments, scores: Floats, who: Ints, n: int) -> dict[str, Any]:
    """What sides each annotator chose, as far as they are those that were shown; ties; circles."""
    shown = preferences.shown
    right, _, left = outcome_counts(who[shown], preferences.outcome[shown], n).T.astype(np.float64)
    number = np.bincount(who, minlength=n)
    seen = coded if shown.all() else code_judgments(preferences.select(shown))
    unclear = one_side(preferences, scores)[1] if preferences.n_annotators else np.zeros(n, bool)
    bias = {name: np.where(unclear, np.nan, values) for name, values in position_bias(seen, scores, n).items()}
    tied = np.bincount(who, preferences.outcome == 0, n)
    columns = {"share_left": share_of(left, left + right), **bias, "share_tied": share_of(tied, number)}
    if not preferences.n_annotators:
        return columns
    # pairs that each annotator was asked in both orders, and the share whose answer went with the side
    both = np.flatnonzero((seen.low_left != NOT_ASKED) & (seen.high_left != NOT_ASKED))
    flipped = 0.5 * np.abs(seen.low_left[both].astype(np.float64) + seen.high_left[both])
    whose = seen.annotator[both]
    columns |= _shares("n_both_orders", "flipped", np.bincount(whose, flipped, n), np.bincount(whose, minlength=n))
    # triads of items whose three pairs an annotator answered, and the share of circular ones
    chosen = np.flatnonzero(coded.code != 1)
    thing = coded.thing[chosen]
    where = (coded.place[thing], coded.first[thing], coded.second[thing])
    triads, circular = count_triads(coded.annotator[chosen], *where, coded.code[chosen] == 2, n)
    return columns | _shares("n_triads", "circular", circular, triads)


def position_bias(coded: CodedJudgments, scores: Floats, n: int) -> dict[str, Floats]:
    r"""Return how far each of ``n`` annotators would choose left rather than right between equals, and its bounds.

    The answer :math:`y` (1 for left, -1 for right, 0 for a tie) is explained by a bias :math:`b` and by how much better
    the left item is, :math:`y = b + \beta h + \text{noise}`; :math:`h` is the lead that all annotators together give an
    item with such a lead in score, and :math:`b` and :math:`\beta` are fitted by least squares for each annotator. A
    pair asked in both orders counts with the mean of both answers, from which the items cancel. One answer to the
    left and one to the right are added, which keeps intervals honest for those who always choose one side.
    """
    from scipy.special import stdtrit

    from ..kernels.segments import segment_sums

    who, gap = coded.annotator, (scores[coded.first] - scores[coded.second])[coded.thing]
    low_left, high_left = coded.low_left.astype(np.float64), coded.high_left.astype(np.float64)
    low, high = low_left != NOT_ASKED, high_left != NOT_ASKED
    both = low & high
    lead = np.where(both, 0.5 * (low_left + high_left), np.where(low, low_left, high_left))
    explains = _explanation(np.append(gap[low], -gap[high]), np.append(low_left[low], high_left[high]))
    better = np.where(both, 0.0, explains(np.where(low, gap, -gap)))
    weight = np.where(both, 2.0, 1.0)
    size = np.bincount(who, minlength=n)
    some = size > 0
    columns = (weight, weight * better, weight * better**2, weight * lead, weight * better * lead)
    total, first, square, mean, product = (segment_sums(column, who, None, n) for column in columns)
    total += 2.0
    # where the scores say nothing, the slope is no matter
    square += 1e-9 * total
    determinant = total * square - first**2
    bias = (mean * square - first * product) / determinant
    slope = (total * product - first * mean) / determinant
    residual = lead - bias[who] - slope[who] * better
    pull = weight * (square[who] - first[who] * better) / determinant[who]
    variance = segment_sums((pull * residual) ** 2, who, None, n) * (size + 2.0) / np.maximum(size, 1.0)
    variance += (square / determinant) ** 2 * ((1.0 - bias) ** 2 + (1.0 + bias) ** 2)
    error = np.where(some, np.sqrt(variance), np.nan)
    bias = np.where(some, np.clip(bias, -1.0, 1.0), np.nan)
    # half an interval, by Student's t
    reach = np.asarray(stdtrit(np.maximum(size, 2).astype(np.float64), (1 + INTERVAL) / 2), np.float64) * error
    bounds = {"position_lower": np.maximum(bias - reach, -1.0), "position_upper": np.minimum(bias + reach, 1.0)}
    return {"position_bias": bias, **bounds}


def _explanation(gap: Floats, lead: Floats) -> Callable[[Floats], Floats]:
    """Function that tells the lead of left which a lead in score explains: learned from all answers, in bins."""
    size, side = np.abs(gap), np.sign(gap)
    decided = np.sort(size[size > 0])
    step = max(1, len(decided) // _MAX_SCORES_SAMPLED)
    edges = np.unique(np.quantile(decided[::step], _CUTS)) if len(decided) else decided
    n_bins, place = len(edges) + 1, np.searchsorted(edges, size, side="right")
    ahead, behind = (
        np.bincount(place[own], lead[own], n_bins) / np.maximum(np.bincount(place[own], minlength=n_bins), 1)
        for own in (side > 0, side < 0)
    )
    # the mean over both sides, so a bias of the whole crowd drops out
    margin = np.maximum.accumulate(np.clip(0.5 * (ahead - behind), 0.0, 1.0))

    def explains(gap: Floats) -> Floats:
        return np.asarray(np.sign(gap) * margin[np.searchsorted(edges, np.abs(gap), side="right")])

    return explains


def _change_in_time(judgments: Grades | Preferences, scores: Floats, time: Floats, n: int) -> dict[str, Any]:
    r"""When the agreement of each annotator with the others changed most, from what to what, and its p value.

    Each judgment has an agreement with the others, :math:`x_t`, less what is usual for what was asked, so that hard
    items late in the day are not an annotator's fault. The largest absolute sum of deviations from the annotator's
    mean up to any time, divided by :math:`\sigma \sqrt n`, has Kolmogorov's distribution where nothing changes
    [Ploberger92]_; :math:`\sigma^2` is the long-run variance by Bartlett's weights [Newey87]_, since judgments in a
    row may be alike. Judgments of equal times are one step, so that their order in the file is no matter.
    """
    from scipy.special import kolmogorov

    agreement, usual = _agreements(judgments, scores)
    rows = np.flatnonzero(~np.isnan(agreement - usual) & ~np.isnan(time))
    rows = rows[np.lexsort((agreement[rows] - usual[rows], time[rows], judgments.annotator[rows]))]
    who, when, seen = judgments.annotator[rows], time[rows], agreement[rows]
    number = np.bincount(who, minlength=n).astype(np.float64)
    excess = seen - usual[rows]
    excess -= share_of(np.bincount(who, excess, n), number)[who]
    own = np.asarray(np.bincount(who, excess**2, n), np.float64)
    variance = own
    n_lags = np.floor(np.cbrt(number))
    for lag in range(1, int(n_lags.max(initial=0)) + 1):
        one, other = who[lag:], who[:-lag]
        same = one == other
        weight = 2.0 * np.maximum(1.0 - lag / (n_lags + 1.0), 0.0)
        variance = variance + weight * np.bincount(one[same], (excess[lag:] * excess[:-lag])[same], n)
    variance = np.maximum(variance, own)
    total = np.cumsum(excess) - np.append(0.0, np.cumsum(excess))[(np.cumsum(number) - number).astype(np.int64)[who]]
    # between two judgments of different times
    split = np.zeros(len(rows), bool)
    split[:-1] = (who[1:] == who[:-1]) & (when[1:] > when[:-1])
    largest = np.zeros(n)
    np.maximum.at(largest, who[split], np.abs(total[split]))
    at = np.full(n, -1)
    here = np.flatnonzero(split & (np.abs(total) >= largest[who]))
    at[who[here[::-1]]] = here[::-1]
    known = (at >= 0) & (number >= _MIN_TIMED) & (variance > 0)
    place = np.where(known, at, 0)
    late = np.arange(len(rows)) > place[who]
    count = np.bincount(who, late, n)
    after = share_of(np.bincount(who, seen * late, n), count)
    before = share_of(np.bincount(who, seen * ~late, n), number - count)
    changed_at = when[np.minimum(place + 1, max(len(rows) - 1, 0))] if len(rows) else np.zeros(n)
    columns = {"agreement_before": before, "agreement_after": after, "changed_at": changed_at}
    columns["change_p_value"] = kolmogorov(largest / np.sqrt(np.where(known, variance, 1.0)))
    return {name: np.where(known, values, np.nan) for name, values in columns.items()}


def _agreements(judgments: Grades | Preferences, scores: Floats) -> tuple[Floats, Floats]:
    """Agreement of each judgment with the others, and what is usual for what was asked; NaN where nobody else judged.

    Of a preference: 1 with the order of the scores, -1 against it, and the lead of items as far apart. Of a grade: the
    share of equal grades of the item for classes, otherwise the negative distance from the mean of its other grades.
    """
    if isinstance(judgments, Preferences):
        gap = scores[judgments.left] - scores[judgments.right]
        lead = _explanation(gap, judgments.outcome.astype(np.float64))(gap)
        side = np.where(gap == 0, np.nan, np.sign(gap))
        return side * judgments.outcome, side * lead
    item, n_items = judgments.item, judgments.n_items
    number = np.bincount(item, minlength=n_items)
    others = np.where(number > 1, number - 1, np.nan)[item]
    if judgments.nominal:
        values, code = np.unique(judgments.grade, return_inverse=True)
        cells, same = np.unique(item.astype(np.int64) * len(values) + code, return_inverse=True)
        agreement = (np.bincount(same, minlength=len(cells))[same] - 1) / others
    else:
        mean = (np.bincount(item, judgments.grade, n_items)[item] - judgments.grade) / others
        agreement = -np.abs(judgments.grade - mean)
    several = number[item] > 1
    return agreement, (np.bincount(item[several], agreement[several], n_items) / np.maximum(number, 1))[item]


def _shares(number: str, name: str, part: Any, whole: Any) -> dict[str, Any]:
    """Columns of how many things there are, the share of some of them, and its interval."""
    lower, upper = jeffreys(part, whole)
    return {number: whole, f"share_{name}": share_of(part, whole), f"{name}_lower": lower, f"{name}_upper": upper}


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
    # rows of every two pairs with the same lower item
    new = np.flatnonzero(np.diff(corner, prepend=-1))
    ends = np.append(new[1:], len(corner))[: len(new)]
    sizes, position = ends - new, np.arange(len(corner))
    n_wedges, ends = int((sizes * (sizes - 1) // 2).sum()), np.repeat(ends, sizes)
    if n_wedges > MOST_WEDGES:
        # the first pair of each wedge is drawn, which leaves the share of circular ones as it is
        ends = np.where(np.random.default_rng(0).random(len(corner)) < MOST_WEDGES / n_wedges, ends, position + 1)
    first, second = pairs_within(position, ends)
    # the pair that closes two pairs from one item to two higher ones
    wanted = (owner[first] * n_items + key[first] % n_items) * n_items + key[second] % n_items
    third = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    closed = np.flatnonzero(key[third] == wanted)
    first, second, third = (order[rows[closed]] for rows in (first, second, third))
    circular = (won[first] == won[third]) & (won[first] != won[second])
    who = annotator[first]
    return np.bincount(who, minlength=n), np.bincount(who[circular], minlength=n)


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
        if part.nominal:
            return Repeats(n_again, again)
        # the k-th of m rising grades is the higher one of k pairs and the lower one of m - 1 - k
        order, size = np.lexsort((part.grade[rows], cell)), np.bincount(cell)
        place = np.arange(len(order)) - np.repeat(np.cumsum(size) - size, size)
        sums = np.bincount(cell[order], (2.0 * place - size[cell[order]] + 1.0) * part.grade[rows][order])
        apart = np.bincount(owner, 2.0 * sums / (size * (size - 1.0)), n).astype(np.float64)
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


class Consistency(NamedTuple):
    """How often annotators gave the same answer again: things asked again, share with its 90 % interval, and whose."""

    n: int
    share: float
    lower: float
    upper: float
    annotators: list[str | int]


def consistency(table: pl.DataFrame, how: str) -> Consistency | None:
    """Return the figure of all annotators of a table of habits, ``how`` being ``repeated`` or ``swapped``."""
    if f"n_{how}" not in table.columns:
        return None
    asked_again = table.filter(pl.col(f"n_{how}") > 0)
    n = int(asked_again[f"n_{how}"].sum())
    if not n:
        return None
    same = float((asked_again[f"n_{how}"] * asked_again[f"share_{how}"]).sum())
    lower, upper = (float(end[0]) for end in jeffreys(np.array([same]), np.array([float(n)])))
    return Consistency(n, same / n, lower, upper, asked_again["annotator"].to_list())


def consistency_sentence(kind: str, table: pl.DataFrame) -> str | None:
    """Return how far annotators agree with themselves, ``None`` where nothing was asked again."""
    again, swapped = consistency(table, "repeated"), consistency(table, "swapped")
    has_sides = "share_left" in table.columns and table["share_left"].null_count() < len(table)
    in_order = "asked again in the same order" if has_sides else "asked again"
    repeated = {"grade": "graded again", "ranking": "ranked again", "preference": in_order}
    asked = ((again, repeated[kind]), (swapped, "asked again with the sides swapped"))
    known = [(repeats, how) for repeats, how in asked if repeats is not None]
    sentence = MESSAGES["again" if kind == "grade" else "again_pairs"]
    parts = " and ".join(fill(sentence, how=how, **repeats._asdict()) for repeats, how in known)
    whose = {who for repeats, _ in known for who in repeats.annotators}
    of = short(*whose) if len(whose) == 1 else f"{len(whose):,} annotators"
    return fill(MESSAGES["self_consistency"], of=of, parts=parts) if known else None


def share_of(part: Any, whole: Any) -> Floats:
    """Return a part of a whole, NaN where that is nothing."""
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


def jeffreys(part: Any, whole: Any) -> tuple[Floats, Floats]:
    """Return the bounds of a share by Jeffreys' interval; it holds 0 and 1 where these were seen, NaN of nothing."""
    from scipy.special import betaincinv

    tail = (1 - INTERVAL) / 2
    lower, upper = (betaincinv(part + 0.5, whole - part + 0.5, p) for p in (tail, 1 - tail))
    none = np.asarray(whole) <= 0
    lower = np.where(none, np.nan, np.where(np.asarray(part) <= 0, 0.0, lower))
    return lower, np.where(none, np.nan, np.where(np.asarray(part) >= whole, 1.0, upper))


# threshold (sample): preferences looked at for a first warning of sides
GLANCE = 300_000
"""Preferences in the sample that a glance looks at."""

_MIN_ANSWERS = 10
_MIN_SHARE_OF_SAMPLE = 0.9
_MOST_CROWD_TIES = 0.5
_MIN_ANSWERS_AGAINST = 5
_MIN_SHARE_AGAINST = 0.8
_MAX_SHARE_OF_EXPECTED = 0.5
_MAX_SHARE_OF_CROWD = 0.8
_MIN_ANNOTATORS = 3
_TURNED = 0.1
"""Share of those who keep to one side that may keep to the other where somebody wrote winners down on one."""

_FAR_BELOW = 2.33
"""Standard errors below what a share should be of which only one in a hundred is."""


def side_sentences(preferences: Preferences, scores: Floats, *, glance: bool = False) -> list[str]:
    """Return a sentence on those who always choose one side, and one on those who always tie, where there are any.

    A ``glance`` at many preferences looks at a sample first, and at all of them only where that shows somebody: so it
    takes 2 % of the quickest fit and not 10 %, but may miss annotators with fewer than some hundred answers.
    """
    if not preferences.n_annotators or (glance and not _seen_at_a_glance(preferences)):
        return []
    sided = flag_sentence("one_side", one_side(preferences, scores)[0])
    return sided + flag_sentence("always_ties", all_ties(preferences))


def _seen_at_a_glance(preferences: Preferences) -> bool:
    """Whether anybody in a sample of many preferences gives nearly always the same answer."""
    if len(preferences) <= GLANCE:
        return True
    step = -(-len(preferences) // GLANCE)
    seen = outcome_counts(preferences.row_annotator, preferences.outcome, max(preferences.n_annotators, 1), step=step)
    total = seen.sum(axis=1)
    return bool(((total >= _MIN_ANSWERS) & (seen.max(axis=1) >= _MIN_SHARE_OF_SAMPLE * total)).any())


def recorded_sentences(preferences: Preferences, *, glance: bool = False) -> list[str]:
    """Return a sentence that sides are not those that annotators saw, where that is known or shows."""
    n, known = len(preferences), preferences.recorded
    if known is not None and known.any():
        which = "the preferences do not say" if known.all() else f"{int(known.sum()):,} of {n:,} preferences do not say"
        rest = "nothing can be said" if known.all() else "they say nothing"
        return [fill(MESSAGES["sides_unknown"], which=which, rest=rest)]
    if glance and not _seen_at_a_glance(preferences):
        return []
    won = {"left": int((preferences.outcome > 0).sum()), "right": int((preferences.outcome < 0).sum())}
    if preferences.shown.any() or sum(won.values()) < FEWEST:
        return []
    side, n_annotators = max(won, key=lambda side: won[side]), len(np.unique(preferences.annotator))
    whom = "" if n_annotators < 2 else f" of {n_annotators:,} annotators"
    return [fill(MESSAGES["winners_recorded"], side=side, won=won[side], n=sum(won.values()), whom=whom)]


class Flagged(NamedTuple):
    """Codes and ids of the annotators with a flag, and the numbers behind it for each, in words."""

    codes: Counts
    ids: list[str | int]
    words: list[str]

    @classmethod
    def of(cls, flag: str, annotators: Index, codes: Counts, **numbers: Any) -> Flagged:
        """Return some annotators with a flag, of the numbers behind it of all annotators by name."""
        rows = pl.DataFrame(numbers)[codes].iter_rows(named=True)
        return cls(codes, annotators.ids.gather(codes).to_list(), [fill(FLAGS[flag].numbers, **row) for row in rows])


def flag_sentence(code: str, flagged: Flagged, advice: str | None = None) -> list[str]:
    """Return the sentence that annotators have a flag: how many, who with which numbers, what to do; none of nobody.

    ``advice`` stands in for that of the flag.
    """
    n, flag = len(flagged.ids), FLAGS[code]
    pairs = zip(flagged.ids[:SHOWN], flagged.words, strict=False)
    names = first_few([f"{short(who)} ({numbers})" for who, numbers in pairs], n)
    return [f"{flag.sentence(counted(n, 'annotator'), n)}: {names}; {advice or flag.advice}"] if n else []


def one_side(preferences: Preferences, scores: Floats) -> tuple[Flagged, Bools]:
    """Return those who choose one side, also where the other item has the higher score; and who only seem to.

    The winners of the latter are the better items far more often than if they went by the side, so it is the winner who
    was put there: they are wrong by half as often at most, since their own answers move the scores; or less often by a
    standard error where several together clearly are, since several who go by the side would not be.
    """
    rows, n = np.flatnonzero(preferences.shown & (preferences.outcome != 0)), preferences.n_annotators
    who, outcome = preferences.annotator[rows], preferences.outcome[rows]
    right, _, left = outcome_counts(who, outcome, n).T
    decided, most, side = left + right, np.maximum(left, right), np.where(left >= right, 1, -1)
    always, looks = (decided >= FEWEST) & (most >= NEARLY_ALL * decided), np.zeros(n, bool)
    if not always.any():
        return Flagged(np.flatnonzero(always), [], []), looks
    # in how many answers the other item scores higher, and in how many of these the side was kept to
    lead = np.sign(scores[preferences.left[rows]] - scores[preferences.right[rows]])
    behind = always[who] & (lead * side[who] < 0)
    against = np.bincount(who[behind], minlength=n)
    kept = np.bincount(who[behind], outcome[behind] == side[who[behind]], n).astype(np.int64)
    # who writes winners down has one side for all of them
    if min(int((side[always] > 0).sum()), int((side[always] < 0).sum())) < _TURNED * always.sum():
        # the others show how often the worse item stands on a side, which is how often one who goes by it is wrong
        others = lead[~always[who]]
        worse_left, worse_right = (others < 0).sum() + FEWEST / 2, (others > 0).sum() + FEWEST / 2
        wrong = decided * np.where(side > 0, worse_left, worse_right) / (worse_left + worse_right)
        variance = wrong * (1.0 - wrong / np.maximum(decided, 1))
        looks = (against < _MAX_SHARE_OF_EXPECTED * wrong) & (against < wrong - _FAR_BELOW * np.sqrt(variance))
        expected, spread = float(wrong[always].sum()), float(variance[always].sum()) ** 0.5
        together = against[always].sum() < min(_MAX_SHARE_OF_CROWD * expected, expected - _FAR_BELOW * spread)
        if always.sum() >= _MIN_ANNOTATORS and together:
            looks |= against < wrong - np.sqrt(variance)
        looks &= always
    enough = (against >= _MIN_ANSWERS_AGAINST) & (kept >= _MIN_SHARE_AGAINST * against)
    sides = np.where(side > 0, "left", "right")
    numbers = {"side": sides, "most": most, "decided": decided, "kept": kept, "against": against}
    return Flagged.of("one_side", preferences.annotators, np.flatnonzero(always & ~looks & enough), **numbers), looks


def all_ties(preferences: Preferences) -> Flagged:
    """Return those who tie nearly always where others do not."""
    counts = outcome_counts(preferences.annotator, preferences.outcome, preferences.n_annotators)
    number, tied = counts.sum(axis=1), counts[:, 1]
    rest = (tied.sum() - tied) / np.maximum(number.sum() - number, 1)
    places = np.flatnonzero((number >= FEWEST) & (tied >= NEARLY_ALL * number) & (rest <= _MOST_CROWD_TIES))
    return Flagged.of("always_ties", preferences.annotators, places, tied=tied, number=number, others=rest)
