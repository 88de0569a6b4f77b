"""The whole diagnosis of judgments, given their consensus."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus, Diagnostics
from ..data.index import LONG, Index, Items
from ..data.intake import short
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings
from ..data.preferences import FEWEST, NEARLY_ALL, outcome_counts
from ..data.truth import Truth
from ..errors import JudgmentError
from ..pair_counts import one_way_parts, open_place
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import SHOWN, first_few, percent
from .coded_judgments import CodedJudgments, code_judgments
from .dependence import MIN_COMMON, Dependence, dependence, effective_number, panel_of, wrong_judgments
from .habits import (
    Flagged,
    all_ties,
    consistency_sentence,
    flag_sentence,
    habits,
    one_side,
    recorded_sentences,
    side_sentences,
)
from .sentences import FLAGS

_HALF_INTERVAL = 1.6448536269514722
"""Standard errors on either side of a 90 % interval."""

_MIN_STANDARD_ERRORS = 2.0
_FEWEST_RIVALS = 8.0


def diagnose(judgments: Judgments, consensus: Consensus, truth: Truth | None = None) -> Diagnostics:
    """Return what is odd about judgments.

    ``consensus`` is of these judgments, with the same items; with ``truth`` errors are measured by it, which also shows
    those that most annotators have in common.
    """
    coded = code_judgments(judgments)
    table = habits(judgments, coded, consensus.scores)
    groups = open_groups(judgments)
    n = len(np.unique(judgments.annotator))
    pairs = _pairs(judgments, coded, consensus, truth)
    worth = _effective_number(pairs, n, known=truth is not None) if n else None
    sentences = habit_sentences(judgments, table, consensus.scores)
    sentences += [] if worth is None else dependence_sentences(judgments.annotators, pairs, n, worth)
    if judgments.n_annotators:
        table = table.with_columns(family=_family_numbers(pairs, judgments.n_annotators))
    return Diagnostics(
        kind=judgments.kind, n_annotators=n, effective_annotators=worth, annotator_messages=tuple(sentences),
        group_messages=tuple(group_sentences(judgments.items, groups).values()),
        notes=tuple(note_sentences(judgments, coded, pairs, n)), annotator_table=table,
        dependence_table=_dependence_table(judgments.annotators, pairs),
        family_table=_family_table(judgments, pairs), group_table=groups,
    )  # fmt: skip


def match_items(consensus: Consensus, judgments: Judgments | Mixed) -> Consensus:
    """Return the consensus with the items of the judgments, all of which it has to know."""
    items = judgments.items
    if consensus.items is items:
        return consensus
    single = consensus.items.single and items.single
    codes = consensus.items.codes(None if single else items.query_ids(), items.ids)
    if (codes < 0).any():
        missing = int(np.argmax(codes < 0))
        raise JudgmentError(
            f"the consensus does not know item {short(items.ids[missing])}; give the consensus of these judgments"
        )
    grade = None if consensus.grade is None else consensus.grade[codes]
    return Consensus(
        items=items, scores=consensus.scores[codes], method=consensus.method, params=consensus.params,
        levels=consensus.levels, grade=grade, nominal=consensus.nominal,
    )  # fmt: skip


def _pairs(judgments: Judgments, coded: CodedJudgments, consensus: Consensus, truth: Truth | None) -> Dependence | None:
    """Pairs of annotators with enough in common, or ``None``."""
    if judgments.n_annotators < 2 or not len(judgments):
        return None
    panel = panel_of(judgments, coded, truth)
    if panel.n_classes < 2:
        return None
    wrong = wrong_judgments(judgments, coded, consensus, panel)
    if judgments.kind == "grade":
        return dependence(panel, wrong, None)
    distance = np.abs(consensus.scores[coded.first] - consensus.scores[coded.second])
    # with few rivals the scores are made of the answers to be looked at, and against a truth hard pairs count too
    rivals = 2.0 * panel.n_things / max(len(np.unique([coded.first, coded.second])), 1)
    enough = truth is None and rivals >= _FEWEST_RIVALS
    return dependence(panel, wrong, (coded.first, coded.second), distance if enough else None)


def _effective_number(pairs: Dependence | None, n: int, *, known: bool) -> float:
    """How many independent annotators these are worth.

    Against a truth every pair that was looked at counts; otherwise those found to be dependent, since the level of
    the others is by construction 0.
    """
    if pairs is None or n < 2:
        return float(n)
    clipped = np.clip(pairs.correlation, 0.0, 1.0)
    if known:
        clear = pairs.sums.excess.sum() >= _MIN_STANDARD_ERRORS * np.sqrt(pairs.sums.variance.sum())
        return effective_number(n, _mean_correlation(pairs, np.ones(len(clipped), bool)) if clear else 0.0)
    return effective_number(n, 2.0 * float(clipped[pairs.dependent].sum()) / (n * (n - 1)))


def _mean_correlation(pairs: Dependence, use: Bools) -> float:
    """Mean correlation of some pairs, each by what it tells."""
    scale = pairs.sums.scale[use]
    return float((pairs.correlation[use] * scale).sum() / max(float(scale.sum()), 1e-12))


def _dependence_table(annotators: Index, pairs: Dependence | None) -> pl.DataFrame:
    """The pairs of annotators with ids, the largest excess first."""
    schema: dict[str, Any] = {
        "annotator": annotators.ids.dtype, "other": annotators.ids.dtype, "n_common": pl.Int64,
        **dict.fromkeys(_NUMBERS, pl.Float64),
    }  # fmt: skip
    if pairs is None:
        return pl.DataFrame(schema=schema)
    sums, reach = pairs.sums, _HALF_INTERVAL * pairs.std_error
    agreement = sums.same / sums.number
    columns: dict[str, Any] = {
        "annotator": annotators.ids.gather(pairs.one),
        "other": annotators.ids.gather(pairs.other),
        "n_common": sums.number.astype(np.int64),
        "agreement": agreement,
        "expected": agreement - pairs.excess,
        "excess": pairs.excess,
        "excess_lower": pairs.excess - reach,
        "excess_upper": pairs.excess + reach,
        "correlation": np.clip(pairs.correlation, -1.0, 1.0),
        "p_value": pairs.p_value,
        "false_discovery": pairs.false_discovery,
        "agreement_when_wrong": np.divide(
            sums.wrong_same, sums.wrong, out=np.full(len(agreement), np.nan), where=sums.wrong > 0
        ),
    }
    frame = pl.DataFrame(columns, schema=schema).with_columns(pl.col("agreement_when_wrong").fill_nan(None))
    return frame.sort("excess", "annotator", "other", descending=[True, False, False])


_NUMBERS = (
    "agreement", "expected", "excess", "excess_lower", "excess_upper", "correlation", "p_value", "false_discovery",
    "agreement_when_wrong",
)  # fmt: skip


def _family_numbers(pairs: Dependence | None, n: int) -> pl.Series:
    """Number of each annotator's family from 1, null where there is none."""
    family = np.full(n, -1) if pairs is None else pairs.family
    number = np.unique(family[family >= 0], return_inverse=True)[1] + 1
    numbers = np.zeros(n, np.int64)
    numbers[family >= 0] = number
    return pl.Series("family", numbers).set(pl.Series(family < 0), None)


def _family_table(judgments: Judgments, pairs: Dependence | None) -> pl.DataFrame:
    """Groups of annotators that were given, and families that were found."""
    rows: list[dict[str, Any]] = []
    active = np.bincount(judgments.annotator, minlength=judgments.n_annotators) > 0
    if judgments.groups is not None and judgments.group is not None:
        for code, name in enumerate(judgments.groups.ids.to_list()):
            rows.append(_family_row(judgments, pairs, str(name), "given", active & (judgments.group == code)))
    numbers = _family_numbers(pairs, judgments.n_annotators).fill_null(0).to_numpy()
    family_numbers = range(1, int(numbers.max(initial=0)) + 1)
    rows += [_family_row(judgments, pairs, str(number), "found", numbers == number) for number in family_numbers]
    return pl.DataFrame(rows, schema=_FAMILY)


_FAMILY: dict[str, Any] = {
    "family": pl.String, "origin": pl.String, "n_annotators": pl.Int64, "n_pairs": pl.Int64, "correlation": pl.Float64,
    "effective_annotators": pl.Float64, "annotators": pl.String,
}  # fmt: skip


def _family_row(
    judgments: Judgments, pairs: Dependence | None, name: str, origin: str, members: Bools
) -> dict[str, Any]:
    """One family: its size, the mean correlation of its members' errors, and what they are worth."""
    codes = np.flatnonzero(members)
    inside = np.zeros(0, bool) if pairs is None else members[pairs.one] & members[pairs.other]
    mean = _mean_correlation(pairs, inside) if pairs is not None and inside.any() else None
    names = first_few(map(short, judgments.annotators.ids.gather(codes[:SHOWN]).to_list()), len(codes), last=None)
    return {
        "family": name, "origin": origin, "n_annotators": len(codes), "n_pairs": int(inside.sum()), "correlation": mean,
        "effective_annotators": None if mean is None else effective_number(len(codes), mean), "annotators": names,
    }  # fmt: skip


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
            remedy = FLAGS["flips"].advice if asked else FLAGS[habit].advice
            sentences += flag_sentence(habit, judgments.annotators, flagged, remedy)
    consistency = consistency_sentence(judgments.kind, table)
    return sentences + ([] if consistency is None else [consistency])


def flagged_habits(judgments: Judgments, table: pl.DataFrame, scores: Floats) -> dict[str, Flagged]:
    """Return the annotators with a bad habit, and in a few words what shows it, by habit.

    For preferences: ``one_side``, ``always_ties``, ``leans``, ``flips``, ``circular``; for grades: ``one_grade``.
    ``table`` is that of :meth:`~crowdrank.data.consensus.Diagnostics.annotators`.
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
        f"copies, or models of one family, add little to one another: {FLAGS['copies'].advice}"
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


RELATIONS = ("apart", "won", "lost")


def open_groups(judgments: Judgments) -> pl.DataFrame:
    """Return query, item, group and relation of each such item; grades lie on one scale and leave nothing open."""
    nothing = np.zeros(0, np.int32)
    if isinstance(judgments, Grades) or not len(judgments):
        return _group_table(judgments.items, nothing, nothing, nothing)
    winner, loser = _wins(judgments) if isinstance(judgments, Preferences) else _neighbours(judgments)
    items = judgments.items
    group = _connect_items(winner, loser, len(items))
    judged = np.zeros(len(items), bool)
    judged[winner] = judged[loser] = True
    codes = np.flatnonzero(judged)
    heads = codes[np.unique(group[codes], return_index=True)[1]]
    number = np.bincount(items.query[heads], minlength=items.n_queries)
    part, won, lost = one_way_parts(winner, loser, len(items))
    kinds = [(judged & (number > 1)[items.query], group), (won, part), (lost, part)]
    members = [np.flatnonzero(mask) for mask, _ in kinds]
    groups = [own[code] for code, (_, own) in zip(members, kinds, strict=True)]
    relation = np.repeat(np.arange(len(kinds)), [len(code) for code in members])
    return _group_table(items, np.concatenate(members), np.concatenate(groups), relation)


def _group_table(items: Items, code: Any, group: Any, relation: Any) -> pl.DataFrame:
    """Rows with ids, groups numbered from 1 in the order of the rows."""
    number = pl.struct("relation", "group").rank("dense").cast(pl.Int64)
    columns: dict[str, Any] = {} if items.single else {"query": items.query_ids().gather(code)}
    columns |= {"item": items.ids.gather(code), "group": np.asarray(group, np.int64), "relation": relation}
    frame = pl.DataFrame(columns).with_columns(group=number)
    return frame.with_columns(relation=pl.Series(RELATIONS).gather(frame["relation"]))


def _connect_items(winner: Ints, loser: Ints, n: int) -> Ints:
    """Number of the group of items that preferences connect each of ``n`` items with."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(winner), bool), (winner, loser)), shape=(n, n))
    groups: Ints = connected_components(graph, directed=False)[1]
    return groups


def _wins(preferences: Preferences) -> tuple[Ints, Ints]:
    """Winner and loser of comparisons, each pair at least once; a tie is a win of either."""
    if len(preferences) < LONG:
        left, right, outcome = preferences.left, preferences.right, preferences.outcome
        forth, back = outcome >= 0, outcome <= 0
        return np.append(left[forth], right[back]), np.append(right[forth], left[back])
    from ..kernels.pairs import count_pairs

    counts = count_pairs(preferences.left, preferences.right, preferences.outcome, None, preferences.items.offsets)
    first, second = counts.first, counts.second
    forth, back = counts.wins + counts.ties > 0, counts.losses + counts.ties > 0
    return np.append(first[forth], second[back]), np.append(second[forth], first[back])


def _neighbours(rankings: Rankings) -> tuple[Ints, Ints]:
    """The same between neighbours in rankings, from which ways lead on as from all pairs."""
    inside = np.diff(rankings.ranking) == 0
    better, worse = rankings.item[:-1][inside], rankings.item[1:][inside]
    tied = (rankings.rank[1:] == rankings.rank[:-1])[inside]
    return np.append(better, worse[tied]), np.append(worse, better[tied])
