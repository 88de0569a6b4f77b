"""The whole diagnosis of judgments, given their consensus: habits, dependence, open places, and what to say of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus, Diagnostics
from ..data.index import LONG, Index, Items
from ..data.intake import short
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings
from ..data.preferences import FEWEST, NEARLY_ALL
from ..data.truth import Truth
from ..errors import JudgmentError
from ..metrics.significance import holm
from ..pair_counts import one_way_parts, open_place
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import SHOWN, first_few
from .coded_judgments import code_judgments
from .dependence import MIN_COMMON, Dependence, dependence, effective_number
from .habits import Flagged, all_ties, consistency_sentence, flag_sentence, habits, one_side, recorded_sentences
from .sentences import ACTIONS, FLAGS, MESSAGES, fill

RELATIONS = ("apart", "won", "lost")

_HALF_INTERVAL = 1.6448536269514722
"""Standard errors on either side of a 90 % interval."""

INTERVAL_WIDTH = 3.29
"""Standard errors from one end of a 90 % interval to the other."""

_MIN_STANDARD_ERRORS = 2.0
_MIN_POSITION_BIAS = 0.2
_MIN_SHARE_FLIPPED = 0.4
_CIRCULAR_SHARE_OF_GUESSING = 0.25
_MIN_SHARE_CIRCULAR = 0.15
_MAX_P_VALUE = 1e-3
_MAX_SHARE_EFFECTIVE = 0.9
_MOST_OTHERS = 0.7
_MAX_FALSE_CHANGES = 0.05
_EARLIEST, _LATEST = 1e9, 4e9
"""Times from 2001 to 2096 in seconds are shown as dates; others are the numbers given."""
# threshold (sample): judgments looked at for errors that annotators share
_MOST_FOR_SHARED = 100_000
FEWEST_OVERLAPPING = 5
"""Annotators with things in common, from which on errors that they share can be seen."""


def diagnose(judgments: Judgments, consensus: Consensus, truth: Truth | None = None) -> Diagnostics:
    """Return what is odd about judgments.

    ``consensus`` is of these judgments, with the same items; with ``truth`` errors are measured by it, which also shows
    those that most annotators have in common.
    """
    coded = code_judgments(judgments)
    table = habits(judgments, coded, consensus.scores)
    groups = open_groups(judgments)
    n = len(np.unique(judgments.annotator))
    pairs = dependence(judgments, coded, consensus, truth)
    # against a truth every pair that was looked at counts; otherwise those found to be dependent, since the level of
    # the others is by construction 0
    worth = float(n) if n else None
    if pairs is not None and n > 1 and truth is not None:
        clear = pairs.sums.excess.sum() >= _MIN_STANDARD_ERRORS * np.sqrt(pairs.sums.variance.sum())
        worth = effective_number(n, _mean_correlation(pairs, slice(None)) if clear else 0.0)
    elif pairs is not None and n > 1:
        clipped = np.clip(pairs.correlation, 0.0, 1.0)
        worth = effective_number(n, 2.0 * float(clipped[pairs.dependent].sum()) / (n * (n - 1)))
    sentences: list[str] = []
    if judgments.n_annotators:
        for habit, flagged in flagged_habits(judgments, table, consensus.scores).items():
            asked = habit == "leans" and (table["n_both_orders"].to_numpy()[flagged.codes] >= FEWEST).all()
            sentences += flag_sentence(habit, flagged, FLAGS["flips" if asked else habit].advice)
        sentences += filter(None, [consistency_sentence(judgments.kind, table)])
        table = table.with_columns(family=_family_numbers(pairs, judgments.n_annotators))
    elif "position_bias" in table.columns and table["position_lower"][0] is not None:
        words = {name: float(table[f"position_{name}"][0]) for name in ("bias", "lower", "upper")}
        side = "left" if words["lower"] > 0 else "right"
        if not words["lower"] <= 0.0 <= words["upper"]:
            sentences.append(fill(MESSAGES["chosen_by_side"], side=side, **words))
    if worth is not None and pairs is not None and pairs.dependent.any():
        named, names = np.flatnonzero(pairs.dependent), []
        named = named[np.argsort(-pairs.excess[named], kind="stable")]
        for p in named[:SHOWN].tolist():
            one, other = (short(judgments.annotators.ids[int(who[p])]) for who in (pairs.one, pairs.other))
            number, same = pairs.sums.number[p], pairs.sums.same[p] / pairs.sums.number[p]
            figures = {"same": same, "number": number, "expected": same - pairs.excess[p]}
            names.append(fill(MESSAGES["alike"], one=one, other=other, **figures))
        what = "1 pair of annotators agrees" if len(named) == 1 else f"{len(named):,} pairs of annotators agree"
        listed = first_few(names, len(named))
        sentences.append(fill(MESSAGES["agree_too_much"], pairs=what, names=listed, advice=FLAGS["copies"].advice))
        if worth < _MAX_SHARE_EFFECTIVE * n:
            sentences.append(fill(MESSAGES["worth"], n=n, worth=worth, factor=np.sqrt(n / worth)))
    # what could not be looked at
    notes = recorded_sentences(judgments) if isinstance(judgments, Preferences) else []
    notes += [] if coded.note is None or not n else [coded.note]
    if not n:
        notes.append(MESSAGES["no_annotators"])
    elif pairs is None and n > 1:
        notes.append(fill(MESSAGES["nothing_common"], least=MIN_COMMON))
    elif pairs is not None and pairs.n_looked_at < pairs.n_things:
        notes.append(fill(MESSAGES["sample"], n=pairs.n_looked_at, n_things=pairs.n_things))
    said: dict[str, Any] = {"annotator_messages": tuple(sentences), "notes": tuple(notes)}
    said["group_messages"] = tuple(group_sentences(judgments.items, groups).values())
    tables: dict[str, Any] = {"annotator_table": table, "group_table": groups}
    tables["dependence_table"] = _dependence_table(judgments.annotators, pairs)
    tables["family_table"] = _family_table(judgments, pairs)
    return Diagnostics(kind=judgments.kind, n_annotators=n, effective_annotators=worth, **said, **tables)


def match_items(consensus: Consensus, judgments: Judgments | Mixed) -> Consensus:
    """Return the consensus with the items of the judgments, all of which it has to know."""
    items = judgments.items
    if consensus.items is items:
        return consensus
    codes = consensus.items.codes(None if consensus.items.single and items.single else items.query_ids(), items.ids)
    if (codes < 0).any():
        stranger = short(items.ids[int(np.argmax(codes < 0))])
        raise JudgmentError(fill(ACTIONS["stranger"], who=f"item {stranger}"))
    grade = None if consensus.grade is None else consensus.grade[codes]
    same: dict[str, Any] = {name: getattr(consensus, name) for name in ("method", "params", "levels", "nominal")}
    return Consensus(items=items, scores=consensus.scores[codes], grade=grade, **same)


def shared_error_factor(judgments: Judgments, consensus: Consensus) -> float | None:
    r"""Return what errors that annotators share multiply the variances of scores by, or ``None`` where it is unknown.

    Where the errors of annotators :math:`a` and :math:`b` correlate by :math:`r_{ab}` and both judged :math:`n_{ab}` of
    the things, a sum over all :math:`N` judgments varies as much as one of fewer independent judgments [Kish65]_,

    .. math:: 1 + \frac{2}{N} \sum_{a < b} n_{ab} r_{ab}

    times. Only pairs that :func:`diagnose` finds to depend on each other count. An error that all annotators share
    looks like the truth, and no judgments of theirs can show it.
    """
    coded = code_judgments(judgments, _MOST_FOR_SHARED)
    pairs = dependence(judgments, coded, consensus, None)
    if pairs is None or len(np.unique([pairs.one, pairs.other])) < FEWEST_OVERLAPPING:
        return None
    use = pairs.dependent
    common = pairs.sums.number[use] * (pairs.n_things / pairs.n_looked_at)
    return 1.0 + 2.0 * float((common * np.clip(pairs.correlation[use], 0.0, 1.0)).sum()) / len(coded.thing)


def _mean_correlation(pairs: Dependence, use: Bools | slice) -> float:
    """Mean correlation of some pairs, each by what it tells."""
    scale = pairs.sums.scale[use]
    return float((pairs.correlation[use] * scale).sum() / max(float(scale.sum()), 1e-12))


def _dependence_table(annotators: Index, pairs: Dependence | None) -> pl.DataFrame:
    """The pairs of annotators with ids, the largest excess first."""
    numbers = "agreement expected excess excess_lower excess_upper correlation p_value false_discovery"
    whose: dict[str, Any] = dict.fromkeys(("annotator", "other"), annotators.ids.dtype)
    schema = {**whose, "n_common": pl.Int64, **dict.fromkeys((*numbers.split(), "agreement_when_wrong"), pl.Float64)}
    if pairs is None:
        return pl.DataFrame(schema=schema)
    sums, excess, reach = pairs.sums, pairs.excess, _HALF_INTERVAL * pairs.std_error
    agreement = sums.same / sums.number
    columns = [annotators.ids.gather(pairs.one), annotators.ids.gather(pairs.other), sums.number.astype(np.int64)]
    columns += [agreement, agreement - excess, excess, excess - reach, excess + reach]
    when_wrong = (pl.Series(sums.wrong_same) / pl.Series(sums.wrong)).fill_nan(None)
    columns += [np.clip(pairs.correlation, -1.0, 1.0), pairs.p_value, pairs.false_discovery, when_wrong]
    frame = pl.DataFrame(dict(zip(schema, columns, strict=True)), schema=schema)
    return frame.sort("excess", "annotator", "other", descending=[True, False, False])


def _family_numbers(pairs: Dependence | None, n: int) -> pl.Series:
    """Number of each annotator's family from 1, null where there is none."""
    family = np.full(n, -1) if pairs is None else pairs.family
    numbers = np.zeros(n, np.int64)
    numbers[family >= 0] = np.unique(family[family >= 0], return_inverse=True)[1] + 1
    return pl.Series("family", numbers).set(pl.Series(family < 0), None)


def _family_table(judgments: Judgments, pairs: Dependence | None) -> pl.DataFrame:
    """Groups of annotators that were given and families that were found: size, correlation of errors, worth."""
    families: list[tuple[str, str, Bools]] = []
    if judgments.groups is not None and judgments.group is not None:
        active = np.bincount(judgments.annotator, minlength=judgments.n_annotators) > 0
        names = map(str, judgments.groups.ids.to_list())
        families = [(name, "given", active & (judgments.group == code)) for code, name in enumerate(names)]
    numbers = _family_numbers(pairs, judgments.n_annotators).fill_null(0).to_numpy()
    families += [(str(k), "found", numbers == k) for k in range(1, int(numbers.max(initial=0)) + 1)]
    rows: list[tuple[Any, ...]] = []
    for name, origin, members in families:
        codes = np.flatnonzero(members)
        inside = np.zeros(0, bool) if pairs is None else members[pairs.one] & members[pairs.other]
        mean = _mean_correlation(pairs, inside) if pairs is not None and inside.any() else None
        worth = None if mean is None else effective_number(len(codes), mean)
        who = first_few(map(short, judgments.annotators.ids.gather(codes[:SHOWN]).to_list()), len(codes), last=None)
        rows.append((name, origin, len(codes), int(inside.sum()), mean, worth, who))
    schema: dict[str, Any] = {"family": pl.String, "origin": pl.String, "n_annotators": pl.Int64, "n_pairs": pl.Int64}
    schema |= {"correlation": pl.Float64, "effective_annotators": pl.Float64, "annotators": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def flagged_habits(judgments: Judgments, table: pl.DataFrame, scores: Floats) -> dict[str, Flagged]:
    """Return the annotators with a bad habit, and in a few words what shows it, by habit.

    For preferences: ``one_side``, ``always_ties``, ``leans``, ``flips``, ``circular``; for grades: ``one_grade``; for
    both, where there are times, ``changes``. ``table`` is that of
    :meth:`~crowdrank.data.consensus.Diagnostics.annotators`.
    """
    if not judgments.n_annotators:
        return {}
    annotators, changes = judgments.annotators, dict[str, Flagged]()
    if "change_p_value" in table.columns:
        # whose agreement with the others changed at some time, by Holm's rule over all that were looked at
        names = ("agreement_before", "agreement_after", "changed_at", "change_p_value")
        before, after, at, p_value = _columns(table, *names)
        order = np.argsort(p_value, kind="stable")[: int((~np.isnan(p_value)).sum())]
        drifting = order[holm(p_value[order]) <= _MAX_FALSE_CHANGES]
        if isinstance(judgments, Preferences):
            kind, before, after = "change_order", 0.5 + 0.5 * before, 0.5 + 0.5 * after
        elif isinstance(judgments, Grades) and judgments.nominal:
            kind = "change_classes"
        else:
            kind, before, after = "change_grades", -before, -after
        words = []
        for a in drifting:
            is_date = _EARLIEST <= at[a] < _LATEST
            when = f"{datetime.fromtimestamp(at[a], UTC):%Y-%m-%d %H:%M}" if is_date else f"time {at[a]:g}"
            change = fill(MESSAGES[kind], before=before[a], after=after[a])
            words.append(fill(FLAGS["changes"].numbers, change=change, time=when))
        changes["changes"] = Flagged(drifting, annotators.ids.gather(drifting).to_list(), words)
    if not isinstance(judgments, Preferences):
        if "share_same" not in table.columns:
            return {}
        share, others, number = _columns(table, "share_same", "share_same_others", "n_judgments")
        lazy = np.flatnonzero((share >= NEARLY_ALL) & (others <= _MOST_OTHERS) & (number >= FEWEST))
        numbers = {"grade": table["same_grade"], "share": share, "number": number, "others": others}
        return {"one_grade": Flagged.of("one_grade", annotators, lazy, **numbers)} | changes
    sided = one_side(judgments, scores)[0]
    bias, low, high = _columns(table, "position_bias", "position_lower", "position_upper")
    # those who always choose one side lean to it, which goes without saying
    leaning = np.array([a for a in rows_with_side_bias(table) if a not in sided.codes], np.int64)
    share, lower, both = _columns(table, "share_flipped", "flipped_lower", "n_both_orders")
    flips = np.flatnonzero((lower >= _MIN_SHARE_FLIPPED) & (both >= FEWEST))
    flips = flips[np.argsort(-share[flips], kind="stable")]
    circles, least, most, triads = _columns(table, "share_circular", "circular_lower", "circular_upper", "n_triads")
    guessing = (most >= _CIRCULAR_SHARE_OF_GUESSING) & (least >= _MIN_SHARE_CIRCULAR)
    circular = np.flatnonzero(guessing & (triads >= FEWEST))
    return {
        "one_side": sided,
        "always_ties": all_ties(judgments),
        "leans": Flagged.of("leans", annotators, leaning, bias=bias, lower=low, upper=high),
        "flips": Flagged.of("flips", annotators, flips, share=share, number=both),
        "circular": Flagged.of("circular", annotators, circular, share=circles, number=triads),
    } | changes


def _columns(table: pl.DataFrame, *names: str) -> list[Floats]:
    """Columns as numbers, NaN where null."""
    return [table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy() for name in names]


def rows_with_side_bias(table: pl.DataFrame) -> Counts:
    """Return the rows of a table of comparing annotators whose position bias is large and clear, the largest first."""
    from scipy.special import ndtr

    bias, lower, upper, number = _columns(table, "position_bias", "position_lower", "position_upper", "n_judgments")
    error = np.maximum((upper - lower) / INTERVAL_WIDTH, 1e-9)
    chance = 2 * ndtr(-np.abs(bias) / error) * max(int((number > 0).sum()), 1)
    places = np.flatnonzero((np.abs(bias) >= _MIN_POSITION_BIAS) & (number >= FEWEST) & (chance <= _MAX_P_VALUE * 10))
    return places[np.argsort(-np.abs(bias[places]), kind="stable")]


def open_groups(judgments: Judgments) -> pl.DataFrame:
    """Return query, item, group and relation of each item whose place among those of its query is left open.

    Grades lie on one scale and leave nothing open. Groups are numbered from 1 in the order of the rows.
    """
    items = judgments.items
    n, nothing = len(items), np.zeros(0, np.int32)
    code = group = relation = nothing
    if not isinstance(judgments, Grades) and len(judgments):
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        winner, loser = _wins(judgments)
        graph = csr_array((np.ones(len(winner), bool), (winner, loser)), shape=(n, n))
        connected = connected_components(graph, directed=False)[1]
        judged = np.zeros(n, bool)
        judged[winner] = judged[loser] = True
        codes = np.flatnonzero(judged)
        heads = codes[np.unique(connected[codes], return_index=True)[1]]
        several = np.bincount(items.query[heads], minlength=items.n_queries) > 1
        part, won, lost = one_way_parts(winner, loser, n)
        kinds = [(judged & several[items.query], connected), (won, part), (lost, part)]
        members = [np.flatnonzero(mask) for mask, _ in kinds]
        code = np.concatenate(members)
        group = np.concatenate([own[some] for some, (_, own) in zip(members, kinds, strict=True)])
        relation = np.repeat(np.arange(len(kinds)), [len(some) for some in members])
    columns: dict[str, Any] = {} if items.single else {"query": items.query_ids().gather(code)}
    columns |= {"item": items.ids.gather(code), "group": np.asarray(group, np.int64), "relation": relation}
    frame = pl.DataFrame(columns)
    frame = frame.with_columns(group=pl.struct("relation", "group").rank("dense").cast(pl.Int64))
    return frame.with_columns(relation=pl.Series(RELATIONS).gather(frame["relation"]))


def _wins(preferences: Preferences | Rankings) -> tuple[Ints, Ints]:
    """Winner and loser of comparisons, each pair at least once; a tie is a win of either.

    Of rankings they are those between neighbours, from which ways lead on as from all pairs.
    """
    if isinstance(preferences, Rankings):
        rankings = preferences
        inside = np.diff(rankings.ranking) == 0
        better, worse = rankings.item[:-1][inside], rankings.item[1:][inside]
        tied = (rankings.rank[1:] == rankings.rank[:-1])[inside]
        return np.append(better, worse[tied]), np.append(worse, better[tied])
    first, second = preferences.left, preferences.right
    forth, back = preferences.outcome >= 0, preferences.outcome <= 0
    if len(preferences) >= LONG:
        from ..kernels.pairs import count_pairs

        counts = count_pairs(preferences.left, preferences.right, preferences.outcome, None, preferences.items.offsets)
        first, second = counts.first, counts.second
        forth, back = counts.wins + counts.ties > 0, counts.losses + counts.ties > 0
    return np.append(first[forth], second[back]), np.append(second[forth], first[back])


def group_sentences(items: Items, table: pl.DataFrame) -> dict[str, str]:
    """Return what there is to say of items whose place is left open, by relation: apart, won, lost."""
    sentences = {}
    apart = table.filter(pl.col("relation") == "apart")
    if len(apart):
        heads = apart.unique("group", keep="first", maintain_order=True)
        sentences["apart"] = fill(MESSAGES["apart"], n=len(heads), names=_name_items(items, heads))
    for word in ("won", "lost"):
        rows = table.filter(pl.col("relation") == word)
        parts = [part for _, part in rows.group_by("group", maintain_order=True) if not _is_rest(items, part, table)]
        parts.sort(key=len)
        sizes = [f"the {len(part):,} items " if len(part) > 1 else "" for part in parts[:SHOWN]]
        names = [size + _name_items(items, part) for size, part in zip(sizes, parts, strict=False)]
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


def _name_items(items: Items, rows: pl.DataFrame) -> str:
    """The first five items of rows, with their queries where there are several."""
    shown = rows.head(SHOWN)
    names = [short(item) for item in shown["item"]]
    if not items.single:
        names = [f"{name} (query {short(query)})" for name, query in zip(names, shown["query"], strict=True)]
    return first_few(names, len(rows))
