"""What there is to say of judgments, a sentence for each kind of trouble: who, how much, what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..data.index import Index, Items
from ..data.intake import short
from ..data.judgments import Judgments, Preferences
from ..data.recording import FEWEST, NEARLY_ALL, outcome_counts
from ..pair_counts import open_place
from ..protocols import Counts, Floats
from ..wording import SHOWN, first_few, percent
from .coded_judgments import CodedJudgments
from .dependence import MIN_COMMON, Dependence
from .flags import FLAGS
from .self_consistency import consistency_sentence
from .sides import Flagged, all_ties, flag_sentence, one_side, recorded_sentences, side_sentences

_MIN_POSITION_BIAS = 0.2
_MIN_SHARE_FLIPPED = 0.4
_CIRCULAR_SHARE_OF_GUESSING = 0.25
_MIN_SHARE_CIRCULAR = 0.15
_MAX_P_VALUE = 1e-3
_MAX_SHARE_EFFECTIVE = 0.9
_MOST_OTHERS = 0.7


def habit_sentences(judgments: Judgments, table: pl.DataFrame, scores: Floats) -> list[str]:
    """Return what there is to say of single annotators."""
    if not judgments.n_annotators:
        return _of_nobody(table)
    sentences = side_sentences(judgments, scores) if isinstance(judgments, Preferences) else []
    for habit, flagged in flagged_habits(judgments, table, scores).items():
        if habit not in ("one_side", "always_ties"):
            asked = habit == "leans" and (table["n_both_orders"].to_numpy()[flagged.codes] >= FEWEST).all()
            remedy = FLAGS["flips"].remedy if asked else FLAGS[habit].remedy
            sentences += flag_sentence(habit, judgments.annotators, flagged, remedy)
    consistency = consistency_sentence(judgments.kind, table)
    return sentences + ([] if consistency is None else [consistency])


def flagged_habits(judgments: Judgments, table: pl.DataFrame, scores: Floats) -> dict[str, Flagged]:
    """Return the annotators with a bad habit, and in a few words what shows it, by habit.

    For preferences: ``one_side``, ``always_ties``, ``leans``, ``flips``, ``circular``; for grades: ``one_grade``.
    ``table`` is that of :meth:`~crowdrank.data.diagnostics.Diagnostics.annotators`.
    """
    if not judgments.n_annotators:
        return {}
    if not isinstance(judgments, Preferences):
        return {"one_grade": _one_grade(table)} if "share_same" in table.columns else {}
    counts = outcome_counts(judgments.annotator, judgments.outcome, judgments.n_annotators)
    sided, leaning = one_side(judgments, scores), _leaning_messages(table)
    # those who always choose one side lean to it, which goes without saying
    more = [(code, words) for code, words in zip(*leaning, strict=True) if code not in sided.codes]
    leaning = Flagged(np.array([code for code, _ in more], np.int64), [words for _, words in more])
    return {
        "one_side": sided, "always_ties": all_ties(counts), "leans": leaning,
        "flips": _flipping_messages(table), "circular": _circular(table),
    }  # fmt: skip


def _of_nobody(table: pl.DataFrame) -> list[str]:
    """What can be said where nobody is named."""
    if "position_bias" not in table.columns or table["position_lower"][0] is None:
        return []
    lower, upper = float(table["position_lower"][0]), float(table["position_upper"][0])
    if lower <= 0.0 <= upper:
        return []
    side = "left" if lower > 0 else "right"
    bias = f"(position bias {table['position_bias'][0]:.2f}, {lower:.2f} to {upper:.2f}; 1 is always left)"
    return [f"the {side} item is chosen more often than its score explains {bias}; show pairs in both orders"]


def _columns(table: pl.DataFrame, *names: str) -> list[Floats]:
    """Columns as numbers, NaN where null."""
    return [table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy() for name in names]


def one_grade(table: pl.DataFrame) -> Counts:
    """Return the rows of a table of grading annotators with those who give one grade nearly always; others do not."""
    share, others, number = _columns(table, "share_same", "share_same_others", "n_judgments")
    return np.flatnonzero((share >= NEARLY_ALL) & (others <= _MOST_OTHERS) & (number >= FEWEST))


def _one_grade(table: pl.DataFrame) -> Flagged:
    """Those who give one grade nearly always."""
    share, others, number = _columns(table, "share_same", "share_same_others", "n_judgments")
    lazy, same = one_grade(table), table["same_grade"].to_list()
    numbers = [
        f"{same[a]} in {percent(share[a])} of {number[a]:,.0f} grades, others in {percent(others[a])}" for a in lazy
    ]
    return Flagged(lazy, numbers)


def rows_with_side_bias(table: pl.DataFrame) -> Counts:
    """Return the rows of a table of comparing annotators whose position bias is large and clear, the largest first."""
    from scipy.special import ndtr

    bias, lower, upper, number = _columns(table, "position_bias", "position_lower", "position_upper", "n_judgments")
    error = np.maximum((upper - lower) / 3.29, 1e-9)
    chance = 2 * ndtr(-np.abs(bias) / error) * max(int((number > 0).sum()), 1)
    places = np.flatnonzero((np.abs(bias) >= _MIN_POSITION_BIAS) & (number >= FEWEST) & (chance <= _MAX_P_VALUE * 10))
    return places[np.argsort(-np.abs(bias[places]), kind="stable")]


def _leaning_messages(table: pl.DataFrame) -> Flagged:
    """Those whose position bias is large and clear."""
    bias, lower, upper = _columns(table, "position_bias", "position_lower", "position_upper")
    places = rows_with_side_bias(table)
    return Flagged(places, [f"{bias[a]:+.2f}, {lower[a]:+.2f} to {upper[a]:+.2f}" for a in places])


def rows_with_flips(table: pl.DataFrame) -> Counts:
    """Return the rows of annotators who often answer otherwise when the items change sides, the most often first."""
    share, lower, number = _columns(table, "share_flipped", "flipped_lower", "n_both_orders")
    places = np.flatnonzero((lower >= _MIN_SHARE_FLIPPED) & (number >= FEWEST))
    return places[np.argsort(-share[places], kind="stable")]


def _flipping_messages(table: pl.DataFrame) -> Flagged:
    """Those who often answer otherwise when the items change sides."""
    share, number = _columns(table, "share_flipped", "n_both_orders")
    places = rows_with_flips(table)
    return Flagged(places, [f"{percent(share[a])} of {number[a]:,.0f} pairs" for a in places])


def circular(table: pl.DataFrame) -> Counts:
    """Return the rows of annotators whose answers go round in circles as those of guessing would."""
    lower, upper, number = _columns(table, "circular_lower", "circular_upper", "n_triads")
    return np.flatnonzero((upper >= _CIRCULAR_SHARE_OF_GUESSING) & (lower >= _MIN_SHARE_CIRCULAR) & (number >= FEWEST))


def _circular(table: pl.DataFrame) -> Flagged:
    """Those whose answers go round in circles as those of guessing would."""
    share, number = _columns(table, "share_circular", "n_triads")
    places = circular(table)
    return Flagged(places, [f"{percent(share[a])} of {number[a]:,.0f} triads" for a in places])


def dependence_sentences(annotators: Index, dependence: Dependence | None, n: int, worth: float) -> list[str]:
    """Return what there is to say of annotators who are not independent, and of what the crowd is worth."""
    if dependence is None or not dependence.dependent.any():
        return []
    pairs = np.flatnonzero(dependence.dependent)
    pairs = pairs[np.argsort(-dependence.excess[pairs], kind="stable")]
    same = dependence.sums.same / dependence.sums.number
    names = [
        f"{short(annotators.ids[int(dependence.one[p])])} with {short(annotators.ids[int(dependence.other[p])])} "
        f"({percent(same[p])} of {dependence.sums.number[p]:,.0f}, {percent(same[p] - dependence.excess[p])} expected)"
        for p in pairs[:5].tolist()
    ]
    what = "1 pair of annotators agrees" if len(pairs) == 1 else f"{len(pairs):,} pairs of annotators agree"
    sentences = [
        f"{what} more than their qualities explain: {first_few(names, len(pairs))}; "
        f"copies, or models of one family, add little to one another: {FLAGS['copies'].remedy}"
    ]
    if worth < _MAX_SHARE_EFFECTIVE * n:
        sentences.append(
            f"the {n:,} annotators are worth {worth:.1f} independent ones where each counts the same, so "
            f"standard errors that assume independence are about {np.sqrt(n / worth):.1f} times too small"
        )
    return sentences


def note_sentences(judgments: Judgments, coded: CodedJudgments, pairs: Dependence | None, n: int) -> list[str]:
    """Return what could not be looked at."""
    sentences = recorded_sentences(judgments) if isinstance(judgments, Preferences) else []
    if not n:
        return [
            *sentences, "the judgments name no annotators, so nothing can be said about them; add an annotator column"
        ]  # fmt: skip
    sentences += [coded.note] if coded.note else []
    if pairs is None and n > 1:
        sentences.append(
            f"no two annotators judged {MIN_COMMON} things in common, so copies among them cannot be found; ask "
            "several annotators the same"
        )
    elif pairs is not None and pairs.n_looked_at < pairs.n_things:
        sentences.append(
            f"annotators were compared on a sample of {pairs.n_looked_at:,} of the {pairs.n_things:,} things that "
            "several of them judged"
        )
    return sentences


def group_sentences(items: Items, table: pl.DataFrame) -> dict[str, str]:
    """Return what there is to say of items whose place is left open, by relation: apart, won, lost."""
    sentences = {}
    apart = table.filter(pl.col("relation") == "apart")
    if len(apart):
        heads = apart.unique("group", keep="first", maintain_order=True)
        sentences["apart"] = (
            f"{len(heads):,} groups of items were never compared with each other, those of {_items(items, heads)}; "
            "ask for judgments between them"
        )
    for word in ("won", "lost"):
        rows = table.filter(pl.col("relation") == word)
        parts = [part for _, part in rows.group_by("group", maintain_order=True) if not _is_rest(items, part, table)]
        parts.sort(key=len)
        names = [
            _items(items, part) if len(part) == 1 else f"the {len(part):,} items {_items(items, part)}"
            for part in parts[:SHOWN]
        ]
        if names:
            number, several = sum(map(len, parts)), len(parts[-1]) > 1
            sentences[word] = open_place(first_few(names, len(parts)), number, word, group=several)
    return sentences


def _is_rest(items: Items, part: pl.DataFrame, table: pl.DataFrame) -> bool:
    """Whether a group is all that a smaller one, or the winning one of two alike, leaves of its query."""
    if len(part) == 1:
        return False
    relation = part["relation"][0]
    others = table.filter(pl.col("relation") == ("lost" if relation == "won" else "won"))
    n_items = len(items)
    if not items.single:
        others = others.filter(pl.col("query") == part["query"][0])
        n_items = int(np.diff(items.offsets)[items.queries.code(part["query"][0])])
    alone = others["group"].n_unique() == 1 and len(others) + len(part) == n_items
    return alone and (len(others) < len(part) or (len(others) == len(part) and relation == "lost"))


def _items(items: Items, rows: pl.DataFrame) -> str:
    """The first five items of rows, with their queries where there are several."""
    return first_few([_name(items, row) for row in rows.head(5).rows(named=True)], len(rows))


def _name(items: Items, row: dict[str, Any]) -> str:
    """The item of a row, with its query where there are several."""
    return short(row["item"]) if items.single else f"{short(row['item'])} (query {short(row['query'])})"
