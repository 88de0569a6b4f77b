"""Findings: what there is to say of a consensus and its judgments, as codes with numbers and as sentences.

``Facts`` holds what they are made of, each computed once and only where it is asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os.path import commonprefix
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.consensus import Consensus, Diagnostics, Quality
from ..data.covariates import GIVEN, more_of, typical_difference
from ..data.intake import short
from ..data.judgments import Grades, Judgments, Mixed, Preferences, count_kinds, parts_of
from ..data.preferences import FEWEST
from ..data.showing import Shown, html_table
from ..errors import CrowdrankError, ParameterError
from ..protocols import Bools, Counts, Floats, takes_argument
from ..quality import INTERVAL, fit_quietly, scores_quietly
from ..registry import method_class
from ..wording import SHOWN, counted, either, first_few, of_all, option, percent
from .crowd_agreement import Agreement, agreement, contested_items
from .diagnosis import FEWEST_OVERLAPPING, diagnose, flagged_habits, group_sentences
from .fragility import Fragility, fragility_of, votes_by_query
from .habits import Flagged, consistency, consistency_sentence, recorded_sentences
from .sentences import BY_QUALITY, DOUBTS, EMPTY, FINDINGS, FLAGS, HABITS, MESSAGES, NAME_WORDS, SURE, fill

SEVERITIES = ("problem", "warning", "info", "good")
"""From what calls for action to what is well."""

ABOUT = ("items", "annotators", "agreement", "judgments", "method")
"""What findings are about, in the order of the report."""

NOTABLE_ODDS = 1.25
"""Smallest odds at the typical difference at which a habit is reported, where its interval excludes 1."""

_PLAIN = re.compile(r"(?=.*[^\W\d])[\w.+:/@-]{1,40}")
_MOST_NAMED = 10_000
"""Annotators, and items, whose names are looked at for those of programs."""

_MAX_TIMES_JUDGMENTS = 20.0
_MIN_CONFIDENCE = 0.8
_LOW_ALPHA = 0.2
_MIN_SHARE_DIVIDED = 0.35
_CHANCE = 0.5
_FEW_GAVE_HALF = 0.05
_FEW_SHARED, _MANY_SHARED = 0.01, 0.05
"""Shares of items that annotators may get wrong together, from which on it is said, and is a warning."""

_NO_SHARE = 1e-3
"""Share of the uncertainty of an annotator's coefficient that their own judgments must remove."""

_OWN_SIDE = "side"
_KINDS = {"length": "likes_long", "self": "prefers_own_family", _OWN_SIDE: "leans_left"}

POOR = 0.6
"""Annotators of a lower quality are worth a look."""

WIDE = 0.4
"""An interval wider than this, as fewer than some 17 pairs have it, says nothing against an annotator."""

ENOUGH_JUDGMENTS = 50
"""Three times the pairs that an interval needs to tell: one that is still too wide is not so for want of judgments."""

_FEW_PAIRS, _FEW_JUDGMENTS = 0.99, 0.999
"""Levels of the interval that has to lie below one half where pairs are fewer than that, and judgments too.

Among thousands of annotators, intervals of 90 % are wrong of hundreds; at the last level ten pairs accuse nobody.
"""

_LEAST_SHAPE, _NO_WIDTH = 0.5, 1e-6

_QUICK_METHODS = ("bradley_terry", "mean_grade")
# threshold (sample): judgments up to which a report fits again, by slower methods, to see how few of them decide
_MAX_ROWS_REFITTED = 100_000
"""Judgments up to which a finding about how few of them decide is confirmed by refits of slower methods."""


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing, as a sentence and as data.

    Parameters
    ----------
    kind
        What was found, in one word that stays the same from version to version, such as ``"guessing"``.
    about
        What it is about: ``"items"``, ``"annotators"``, ``"agreement"``, ``"judgments"`` or ``"method"``.
    severity
        ``"problem"``, ``"warning"``, ``"info"`` or ``"good"``.
    sentence
        The finding in words.
    numbers
        The numbers in the sentence, and some behind it, by name.
    ids
        The items, queries or annotators meant, all of them.
    """

    kind: str
    about: str
    severity: str
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    ids: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        assert self.severity in SEVERITIES
        assert self.about in ABOUT

    def plain(self) -> dict[str, Any]:
        """Return the finding as values that JSON can hold."""
        numbers = {key: value.item() if hasattr(value, "item") else value for key, value in self.numbers.items()}
        return {**vars(self), "numbers": numbers, "ids": list(self.ids)}


class Findings(Shown, tuple[Finding, ...]):
    """All that was found, in the order of the report.

    Examples
    --------
    >>> found = Findings([Finding("unjudged", "items", "warning", "1 item was never judged: x", {"n": 1}, ("x",))])
    >>> found.of("unjudged").sentence, found.of("guessing")
    ('1 item was never judged: x', None)
    """

    def __repr__(self) -> str:
        return "\n".join([f"Findings({len(self)})", *(f"  {one.severity}: {one.sentence}" for one in self)])

    def _repr_html_(self) -> str:
        """All findings in words, for notebooks."""
        return html_table(f"Findings({len(self)})", self.frame().select("severity", "about", "sentence"), len(self))

    def about(self, *what: str) -> Findings:
        """Return the findings about items, annotators, agreement, judgments or the method."""
        for one in what:
            if one not in ABOUT:
                raise ParameterError(f"findings are about {either(ABOUT)}, not about {one!r}")
        return Findings(one for one in self if one.about in what)

    def of(self, *kinds: str) -> Finding | None:
        """Return the first finding of one of these kinds, ``None`` where there is none."""
        return next((one for one in self if one.kind in kinds), None)

    def worst_first(self) -> Findings:
        """Return the same findings, those that call for action first."""
        return Findings(sorted(self, key=lambda one: SEVERITIES.index(one.severity)))

    def frame(self) -> pl.DataFrame:
        """Return a table of kind, about, severity, sentence, ids (as text) and numbers (as JSON text)."""
        import json

        rows = self.plain()
        for row in rows:
            row |= {"ids": list(map(str, row["ids"])), "numbers": json.dumps(row["numbers"])}
        words = ("kind", "about", "severity", "sentence", "numbers")
        return pl.DataFrame(rows, schema={**dict.fromkeys(words, pl.String), "ids": pl.List(pl.String)})

    def plain(self) -> list[dict[str, Any]]:
        """Return the findings as values that JSON can hold."""
        return [one.plain() for one in self]


class Neighbours(NamedTuple):
    """Items that follow each other in the order of their query, and the probability that the first is the better."""

    first: Counts
    second: Counts
    place: Counts
    probability: Floats | None


@dataclass(frozen=True, eq=False)
class Facts:
    """A consensus and, where they are at hand, the judgments it was made from."""

    consensus: Consensus
    judgments: Judgments | Mixed | None
    sampled: bool = False
    """Whether the judgments are a sample of those that the consensus is of."""

    @cached_property
    def diagnostics(self) -> Diagnostics | None:
        """What is odd about the judgments; of several kinds together there are no diagnostics."""
        if self.consensus.diagnostics is not None or self.judgments is None or isinstance(self.judgments, Mixed):
            return self.consensus.diagnostics
        return diagnose(self.judgments, self.consensus)

    @cached_property
    def reviewed_consensus(self) -> Consensus:
        """The consensus with its diagnostics, for files and pictures."""
        return replace(self.consensus, diagnostics=self.diagnostics)

    @cached_property
    def table(self) -> pl.DataFrame | None:
        """The annotators who judged something, best first, with habits."""
        return annotator_table(self.consensus.quality, self.diagnostics)

    @cached_property
    def suspects(self) -> list[Suspect]:
        """The annotators worth a look, the worst first."""
        return [] if self.table is None else suspects(self.table)

    @cached_property
    def habits(self) -> dict[str, Flagged]:
        """Annotators with a bad habit, and what shows it, by habit; of several kinds together there are none."""
        if self.diagnostics is None or self.judgments is None or isinstance(self.judgments, Mixed):
            return {}
        return flagged_habits(self.judgments, self.diagnostics.annotators(), self.consensus.scores)

    @cached_property
    def doubts(self) -> dict[str | int, str]:
        """Those who cannot be distinguished from guessing, with the flag that says why, unless a habit explains it."""
        if self.table is None:
            return {}
        explained = {who for habit in EMPTY if habit in self.habits for who in self.habits[habit].ids}
        each = zip(self.table["annotator"].to_list(), quality_flags(self.table), strict=True)
        return {who: code for who, code in each if code in DOUBTS and who not in explained}

    @cached_property
    def agreement(self) -> Agreement | None:
        """How far annotators agree."""
        if self.judgments is None or not len(self.judgments):
            return None
        return agreement(max(parts_of(self.judgments), key=len))

    @cached_property
    def consistency(self) -> str | None:
        """How far annotators agree with themselves, in a sentence; ``None`` where nothing was asked again."""
        odd = self.diagnostics
        return None if odd is None or not odd.n_annotators else consistency_sentence(odd.kind, odd.annotators())

    @cached_property
    def uncontrolled_scores(self) -> Floats | None:
        """Scores that the method gives without control for covariates; ``None`` where nothing is controlled for."""
        if not self.consensus.estimates.get("control") or not isinstance(self.judgments, Preferences):
            return None
        method = method_class("aggregator", self.consensus.method)(**self.consensus.params)
        given = {key: self.consensus.estimates[key] for key in ("trusted", "known") if key in self.consensus.estimates}
        if not given:
            return scores_quietly(method, self.judgments)
        return fit_quietly(method, self.judgments, **given).scores

    @cached_property
    def per_item(self) -> Counts | None:
        """Number of judgments that each item is part of."""
        if self.judgments is None:
            return None
        columns = []
        for part in parts_of(self.judgments):
            columns += [part.left, part.right] if isinstance(part, Preferences) else [part.item]
        return np.bincount(np.concatenate(columns), minlength=len(self.consensus.items))

    @cached_property
    def per_annotator(self) -> Counts | None:
        """Number of judgments that each annotator gave."""
        if self.judgments is None or not self.judgments.n_annotators:
            return None
        return np.bincount(self.judgments.annotator, minlength=self.judgments.n_annotators)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Items that follow each other in the order of their query."""
        items, scores = self.consensus.items, self.consensus.scores
        order = np.lexsort((np.arange(len(items)), -scores, items.query))
        same = items.query[order[1:]] == items.query[order[:-1]]
        first, second = order[:-1][same], order[1:][same]
        place = (np.arange(len(order)) - items.offsets[items.query[order]])[:-1][same]
        known = not self.consensus.nominal and self.consensus.uncertainty is not None and len(first)
        return Neighbours(first, second, place, self.consensus.beats_each(first, second) if known else None)

    @cached_property
    def intervals(self) -> pl.DataFrame | None:
        """Intervals of scores and ranks, best first in each query."""
        return None if self.consensus.uncertainty is None else self.consensus.intervals(SURE)

    @cached_property
    def fragility(self) -> Fragility | tuple[Counts, Counts] | None:
        """How few votes decide the first place, of several queries each; ``None`` where that is not known."""
        if self.judgments is None or self.sampled or self.consensus.nominal or not len(self.neighbours.first):
            return None
        try:
            if self.consensus.items.n_queries > 1:
                return votes_by_query(self.consensus, self.judgments)
            quick = self.consensus.method in _QUICK_METHODS or len(self.judgments) <= _MAX_ROWS_REFITTED
            return fragility_of(self.consensus, self.judgments, refit=quick)
        except CrowdrankError:
            return None

    @cached_property
    def is_unjudged(self) -> Bools | None:
        """Whether each item was never judged."""
        return None if self.judgments is None else ~self.judgments.judged_items

    @cached_property
    def contested_items(self) -> pl.DataFrame:
        """Where the crowd disagrees most."""
        assert self.judgments is not None
        return contested_items(self.judgments, self.consensus)


def facts_of(consensus: Consensus, judgments: Judgments | Mixed | None) -> Facts:
    """Return what findings are made of."""
    if not isinstance(consensus, Consensus):
        raise ParameterError(fill(MESSAGES["no_consensus"], what=type(consensus).__name__))
    # the same items have the same codes
    mine, theirs = consensus.items, consensus.items if judgments is None else judgments.items
    pairs = [] if mine is theirs else [(mine.ids, theirs.ids), (mine.query_ids(), theirs.query_ids())]
    if not all(one.cast(pl.String).equals(other.cast(pl.String), check_names=False) for one, other in pairs):
        raise ParameterError(fill(MESSAGES["other_items"], n=len(mine), n_judged=len(theirs)))
    return Facts(consensus, judgments)


class Suspect(NamedTuple):
    """An annotator worth a look, and why."""

    annotator: str | int
    quality: float
    lower: float
    upper: float
    n_judgments: float
    n_pairs: float
    verdict: str


def annotator_table(quality: Quality | None, odd: Diagnostics | None = None) -> pl.DataFrame | None:
    """Return the annotators who judged something, best first, with habits; ``None`` where nobody is named."""
    if quality is None:
        return None
    frame = quality.frame()
    if odd is not None:
        habits = odd.annotators().drop("n_judgments")
        new = [name for name in habits.columns if name == "annotator" or name not in frame.columns]
        frame = frame.join(habits.select(new), on="annotator", how="left", maintain_order="left")
    return frame.filter(frame["n_judgments"] > 0)


def suspects(frame: pl.DataFrame) -> list[Suspect]:
    """Return the annotators worth a look, the worst first.

    They have a quality below 0.6 and an interval that is not too wide to tell: ``reversed`` where it lies below one
    half, ``guessing`` where it holds one half, ``poor`` above. Without an interval the quality stands for it. Of fewer
    than 50 pairs ``reversed`` is said only where an interval of 99 % lies below one half, of 99.9 % where judgments are
    fewer than 50 too.

    Examples
    --------
    >>> columns = {"annotator": ["ann", "bob"], "quality": [0.8, 0.2], "n_judgments": [9, 30]}
    >>> found = suspects(pl.DataFrame({**columns, "lower": [0.6, 0.1], "upper": [0.9, 0.3]}))
    >>> [(one.annotator, one.verdict) for one in found]
    [('bob', 'reversed')]
    """
    rows = zip(_with_bounds(frame).select(Suspect._fields[:-1]).rows(), quality_flags(frame), strict=True)
    suspicious = [Suspect._make((*row, code)) for row, code in rows if code in BY_QUALITY]
    return sorted(suspicious, key=lambda one: (one.upper >= 0.5, one.quality, str(one.annotator)))


def _with_bounds(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with bounds and pairs, for which quality and judgments stand where they are not known."""
    stand_ins = {"lower": "quality", "upper": "quality", "n_pairs": "n_judgments"}
    return frame.with_columns(pl.col(by).alias(name) for name, by in stand_ins.items() if name not in frame.columns)


def quality_flags(frame: pl.DataFrame) -> list[str]:
    """Return the flag of each annotator for a low quality, or for why it cannot be told; empty for the others.

    Those on whom no verdict is passed and whose interval does not lie above 0.5 cannot be distinguished from guessing:
    ``unsure`` judged too little, ``unmatched`` enough, but others judged too little of the same, or contradict each
    other, as two camps do.

    Examples
    --------
    >>> columns = {"quality": [0.5, 0.5, 0.8], "n_judgments": [4, 80, 80]}
    >>> quality_flags(pl.DataFrame({**columns, "lower": [0.1, 0.1, 0.7], "upper": [0.9, 0.9, 0.9]}))
    ['unsure', 'unmatched', '']
    """
    codes = []
    for row in _with_bounds(frame).select("quality", "lower", "upper", "n_judgments", "n_pairs").iter_rows(named=True):
        code = verdict(**row)
        if not code and "lower" in frame.columns and row["lower"] <= 0.5:
            code = "unmatched" if row["n_judgments"] >= ENOUGH_JUDGMENTS else "unsure"
        codes.append(code)
    return codes


def verdict(quality: float, lower: float, upper: float, n_judgments: float, n_pairs: float) -> str:
    """Return what an annotator of this quality is, nothing where it is not worth a word."""
    if quality >= POOR or upper - lower > WIDE:
        return ""
    if upper < 0.5:
        level = _FEW_PAIRS if n_judgments >= ENOUGH_JUDGMENTS else _FEW_JUDGMENTS
        return "reversed" if n_pairs >= ENOUGH_JUDGMENTS or _upper_bound(lower, upper, level) < 0.5 else ""
    return "guessing" if lower <= 0.5 else "poor"


def _upper_bound(lower: float, upper: float, level: float) -> float:
    """Upper end of the interval of a level, of the beta distribution that has this 90 % interval."""
    from scipy.optimize import brentq
    from scipy.special import betainc, betaincinv

    tail = (1 - INTERVAL) / 2
    if upper - lower < _NO_WIDTH:
        return upper
    lower = max(lower, 1e-9)

    def second(first: float) -> float:
        # the other parameter that puts the upper end in its place
        return brentq(lambda b: betainc(first, b, upper) - (1 - tail), 1e-6, 1e9)

    first = _LEAST_SHAPE
    if betainc(first, second(first), lower) >= tail:
        first = brentq(lambda a: betainc(a, second(a), lower) - tail, _LEAST_SHAPE, 1e5)
    return float(betaincinv(first, second(first), (1 + level) / 2))


def name_ids(ids: Sequence[object]) -> str:
    """Return the first five ids in words, then how many more there are; quoted where they are no plain word.

    Examples
    --------
    >>> name_ids(["ann", "bob"]), name_ids(["<b>"]), name_ids(list("abcdefg"))
    ('ann and bob', "'<b>'", 'a, b, c, d, e and 2 more')
    >>> name_ids(["7", "8"])
    "'7' and '8'"
    """
    return first_few([name(one) for one in ids[:SHOWN]], len(ids))


def name(one: object) -> str:
    """Return one id in words, quoted where it is no plain word."""
    return str(one) if _PLAIN.fullmatch(str(one)) else short(one)


def say(
    kind: str, numbers: Mapping[str, Any] | None = None, ids: Iterable[str | int] = (), severity: str = "", **words: Any
) -> Finding:
    """Return a finding with the sentence that the table has for its kind; ``words`` stand in the sentence alone."""
    about, usual, sentence = FINDINGS[kind]
    numbers, ids = numbers or {}, tuple(ids)
    words |= {"sure": percent(SURE), "names": name_ids(ids)}
    words |= dict(zip(("first", "second"), map(name, ids), strict=False))
    text = fill(sentence, **{**numbers, **words})
    return Finding(kind.partition("/")[0], about, severity or usual, text, numbers, ids)


def findings_of(facts: Facts) -> Findings:
    """Return the findings that facts support, in the order of the report."""
    annotators = annotator_findings(facts)
    leaning = [who for one in annotators if one.kind in ("leans", "one_side") for who in one.ids]
    habits = habit_findings(facts.consensus, leaning=leaning)
    rest = [*agreement_findings(facts), *_disagreement(facts), *_judgments(facts), *_method(facts.consensus)]
    return Findings([*item_findings(facts), *annotators, *habits, *rest])


def item_findings(facts: Facts) -> list[Finding]:
    """Return what there is to say of items: what won, how sure that is, what is left open."""
    consensus, items = facts.consensus, facts.consensus.items
    if not len(items):
        return [say("empty", {"n_items": 0})]
    if consensus.nominal:
        counts = consensus.labels().drop_nulls().value_counts(sort=True)
        n_items = int(counts["count"].sum())
        sizes = first_few([f"{count:,} {name(level)}" for level, count in counts.head(SHOWN).iter_rows()], len(counts))
        findings = [say("classes", {"n_items": n_items, "n_classes": len(counts)}, sizes=sizes)]
    else:
        findings = _winners(facts) if items.n_queries > 1 else _winner(facts)
        # how much of the order is sure, and which items may be first
        probability = facts.neighbours.probability
        if probability is not None and len(probability) > 1:
            numbers = {"n_neighbours": len(probability), "n_apart": int((probability >= SURE).sum())}
            findings.append(say("order" if numbers["n_apart"] else "order/none", numbers))
        if probability is not None and items.n_queries == 1 and probability[0] < SURE and facts.intervals is not None:
            # a rank interval begins at 1 just where an item may be first
            first = facts.intervals.filter(pl.col("rank_lower") == 1)["item"].to_list()
            if 1 < len(first) < len(items):
                findings.append(say("may_be_first", {"n_first": len(first)}, first))
        findings += _fragility(facts)
    frame = consensus.frame()
    if "confidence" in frame.columns:
        known = frame.drop_nulls("confidence").sort("confidence", maintain_order=True)
        low = known.filter(pl.col("confidence") < _MIN_CONFIDENCE)["item"].to_list()
        if len(known):
            numbers = {"n_items": len(known), "n_uncertain": len(low)}
            findings.append(say("uncertain_grades" if low else "grades", numbers, low, least=_MIN_CONFIDENCE))
    if facts.is_unjudged is not None and facts.is_unjudged.any():
        ids = items.ids.filter(pl.Series(facts.is_unjudged)).to_list()
        were = "was" if len(ids) == 1 else "were"
        findings.append(say("unjudged", {"n_unjudged": len(ids), "n_items": len(items)}, ids, were=were))
    if facts.per_item is not None and len(items) > 1 and facts.per_item.any():
        judged = facts.per_item[facts.per_item > 0]
        fewest, most = int(judged.min()), int(judged.max())
        spread = {"fewest": fewest, "median": float(np.median(judged)), "most": most}
        findings.append(say("coverage/even" if fewest == most else "coverage", spread))
    # items whose place the judgments leave open
    odd = facts.diagnostics
    messages, groups = ((), None) if odd is None else (odd.group_messages, odd.group_table)
    if groups is None:
        findings += [say("open_place", {"n_items": 0}, sentence=one) for one in messages]
    elif messages:
        for relation, sentence in group_sentences(items, groups).items():
            ids = groups.filter(pl.col("relation") == relation)["item"].to_list()
            findings.append(say(f"items_{relation}", {"n_items": len(ids)}, ids, sentence=sentence))
    return findings


def _winner(facts: Facts) -> list[Finding]:
    """What stands first in the one query."""
    items, scores, pairs = facts.consensus.items, facts.consensus.scores, facts.neighbours
    n, best = len(items), np.flatnonzero(scores == scores.max())
    ids = items.ids.gather(best[:1000]).to_list()
    if n == 1:
        return [say("only_item", {"n_items": 1}, ids)]
    if len(best) == n:
        return [say("all_tied", {"n_items": n})]
    if len(best) > 1:
        return [say("shared_first", {"n_first": len(best), "n_items": n}, ids)]
    ids.append(items.ids[int(pairs.second[0])])
    if pairs.probability is None:
        return [say("winner/unknown", {"n_items": n}, ids)]
    probability = float(pairs.probability[0])
    numbers = {"probability": probability, "n_items": n}
    if probability >= SURE:
        return [say("winner", numbers, ids)]
    # how many judgments it would take, if the lead stays what it is
    lead = NormalDist().inv_cdf(min(max(probability, 0.5), 1 - 1e-12))
    times = (NormalDist().inv_cdf(SURE) / lead) ** 2 if lead > 0 else math.inf
    equal = say("equals", {"probability": probability}, ids)
    more = equal if times > _MAX_TIMES_JUDGMENTS else say("more_judgments", {"times": times}, ids)
    return [say("winner/unsure", numbers, ids), more]


def _winners(facts: Facts) -> list[Finding]:
    """How many queries have a first item that is sure."""
    items, pairs = facts.consensus.items, facts.neighbours
    n = int((np.diff(items.offsets) > 1).sum())
    if not n:
        return [say("only_item/queries", {"n_queries": items.n_queries})]
    if pairs.probability is None:
        return [say("winners/unknown", {"n_queries": n}, n_ranked=items.n_queries)]
    top = np.flatnonzero(pairs.place == 0)
    unsure = top[pairs.probability[top] < SURE]
    numbers = {"n_queries": n, "n_sure": n - len(unsure), "lowest_probability": float(pairs.probability[top].min())}
    queries = items.queries.ids.gather(items.query[pairs.first[unsure]]).to_list()
    return [say("winners/unsure" if queries else "winners", numbers, queries, n_unsure=len(unsure))]


def _fragility(facts: Facts) -> list[Finding]:
    """How few votes decide the first place."""
    found = facts.fragility
    if found is None:
        return []
    if isinstance(found, Fragility):
        units = {"votes": found.votes, "annotators": found.annotators, "queries": found.queries}
        numbers = {unit: least.number for unit, least in units.items() if least is not None and least.number}
        numbers["n_votes"], two = found.votes.total, (found.first, found.other)
        return [] if found.votes.number is None else [say("fragility", numbers, two, sentence=found.sentence)]
    queries, votes = found
    decided = queries[votes == 1]
    if not len(decided):
        return []
    ids = facts.consensus.items.queries.ids.gather(decided).to_list()
    one = facts.judgments.kind if facts.judgments else ""
    return [say("fragility/queries", {"n_decided": len(ids), "n_queries": len(queries)}, ids, one=one)]


def annotator_findings(facts: Facts) -> list[Finding]:
    """Return what there is to say of annotators."""
    findings, table = verdict_findings(facts), facts.table
    if table is None or len(table) < 2:
        return findings + (_unseen_sides(facts) if table is not None and len(table) else [])
    quality = table["quality"].to_numpy()
    numbers = {"lowest": float(quality.min()), "median": float(np.median(quality)), "highest": float(quality.max())}
    findings.append(say("quality", {**numbers, "n_below": int((quality < POOR).sum())}))
    # those with habits that have nothing to do with the items
    odd, judged = facts.diagnostics, facts.judgments
    if odd is None or not odd.n_annotators:
        return findings
    if judged is not None and not isinstance(judged, Mixed):
        for habit, (_, ids, words) in facts.habits.items():
            names = [f"{name(one)} ({word})" for one, word in zip(ids[:SHOWN], words, strict=False)]
            findings += _flag_finding(habit, tuple(ids), odd.n_annotators, first_few(names, len(ids)))
        unseen = _unseen_sides(facts)
        if "leans" in facts.habits and not unseen and not {"leans", "one_side"} & {one.kind for one in findings}:
            findings.append(say("no_bias", {"n_annotators": odd.n_annotators}))
        findings += unseen
    # families of annotators who err together, and what the crowd is worth
    numbers = {"n_annotators": odd.n_annotators}
    n = int((odd.families()["origin"] == "found").sum()) if len(odd.families()) else 0
    few = odd.n_annotators < FEWEST_OVERLAPPING
    if n and odd.effective_annotators is not None:
        ids = odd.annotators().filter(pl.col("family").is_not_null())["annotator"].to_list()
        numbers = {"n_families": n, "effective_annotators": odd.effective_annotators, **numbers}
        findings.append(say("dependent", numbers, ids, groups=f"{n} group errs" if n == 1 else f"{n} groups err"))
    elif odd.effective_annotators is not None and few and facts.consensus.std_error is not None:
        findings.append(say("shared_unseen", numbers, tell=_what_intervals_tell(facts)))
    return findings


def verdict_findings(facts: Facts) -> list[Finding]:
    """Return who guesses, is reversed or poor, who judged too little to tell, and whether programs decide."""
    table = facts.table
    if table is None or not len(table):
        return [say("no_annotators")]
    if len(table) == 1:
        ids = table["annotator"].to_list()
        return [say("one_annotator", {"n_annotators": 1}, ids, tell=_what_intervals_tell(facts))]
    n, findings, numbers = len(table), [], {"n_annotators": len(table)}
    items, scores, ordered = facts.consensus.items, facts.consensus.scores, not facts.consensus.nominal
    if ordered and (np.diff(items.offsets) < 2).all():
        return [say("nothing_to_order", numbers, why="no query has two items")]
    equal = ordered and (np.diff(scores)[np.diff(items.query) == 0] == 0.0).all()
    # camps that contradict each other leave all items equal too, but do not agree
    if equal and facts.agreement is not None and facts.agreement.same == 1.0:
        return [say("nothing_to_order", numbers, why="annotators give all items of a query the same")]
    for code in BY_QUALITY:
        who = tuple(one.annotator for one in facts.suspects if one.verdict == code)
        findings += _flag_finding(code, who, n, name_ids(who))
    for code in DOUBTS:
        who = tuple(one for one, own in facts.doubts.items() if own == code)
        findings += _flag_finding(code, who, n, kind="too_few_judgments" if code == "unsure" else code)
    n_fine = n - len(facts.doubts)
    if not facts.suspects and n_fine:
        variant = "/one" if n_fine == 1 else "/two" if n_fine == n == 2 else ""
        rest = f"{n:,} annotators" if n_fine == n else f"{n_fine:,} annotators of whom it can be told"
        findings.append(say(f"annotators_fine{variant}", numbers, rest=rest))
    return findings + _mostly_programs(facts, table)


def _flag_finding(code: str, who: tuple[str | int, ...], n: int, names: str = "", kind: str = "") -> list[Finding]:
    """The finding that some of ``n`` annotators have a flag, where there are any."""
    sentence = FLAGS[code].sentence(of_all(len(who), n, "annotator"), len(who)) + (f": {names}" if names else "")
    numbers = {"n": len(who), "n_annotators": n}
    return [Finding(kind or code, "annotators", FLAGS[code].severity, sentence, numbers, who)] if who else []


def is_program(text: str) -> bool | None:
    """Return whether a name is one of programs or of people; ``None`` where that is not clear."""
    words = set(re.findall(r"[a-z]+", text.lower()))
    program = not words.isdisjoint(NAME_WORDS["programs"])
    # a first name too, unless a number stands beside it
    program |= not words.isdisjoint(NAME_WORDS["first_names"]) and re.search(r"\d", text) is not None
    person = not words.isdisjoint(NAME_WORDS["people"])
    return None if program == person else program


def _mostly_programs(facts: Facts, table: pl.DataFrame) -> list[Finding]:
    """That programs gave most of the judgments and others few, who are then to be named as trusted.

    Programs and people are known by their group, or by their id: that of a language model, also one among the items.
    """
    judged = facts.judgments
    if "trusted" in facts.consensus.estimates or len(table) > _MOST_NAMED or facts.consensus.grade is not None:
        return []
    of_group: dict[str, str] = {}
    if judged is not None and judged.groups is not None and judged.group is not None:
        groups = judged.groups.ids.gather(judged.group).cast(pl.String)
        of_group = dict(zip(map(str, judged.annotators), groups.to_list(), strict=True))
    ids = [str(one) for one in table["annotator"]]
    items = set(facts.consensus.items.ids.cast(pl.String).head(_MOST_NAMED))
    models = items if any(map(is_program, items)) else set()
    kinds = {}
    for one in ids:
        kind = is_program(of_group.get(one, ""))
        kind = is_program(one) if kind is None else kind
        kinds[one] = True if kind is None and one in models else kind
    programs, others = [one for one in ids if kinds[one]], [one for one in ids if not kinds[one]]
    number = table["n_judgments"].to_numpy()
    share = float(number[[bool(kinds[one]) for one in ids]].sum() / number.sum())
    if programs and not others:
        words = {"trusted": option("trusted"), "tell": _what_intervals_tell(facts)}
        return [say("only_programs", {"n_programs": len(programs)}, programs, **words)]
    if not programs or share <= 0.5:
        return []
    sure = None not in kinds.values()
    # those to be trusted, by their group, by what their ids begin with, or each
    of_others, start = {of_group.get(one) for one in others}, commonprefix(others)  # noqa: RUF071
    shortest = ",".join(others) if len(others) <= SHOWN else "FILE"
    if len(of_others) == 1 and None not in of_others and others == [one for one in ids if of_group[one] in of_others]:
        shortest = f"group={of_others.pop()}"
    elif len(others) > 1 and len(start) > 1 and not set(start) & set("*?[,=@"):
        shortest = f"{start}*" if others == [one for one in ids if one.startswith(start)] else shortest
    trusted = option("trusted", shortest)
    if not takes_argument(method_class("aggregator", facts.consensus.method), "trusted"):
        trusted = f"{option('method', 'latent_score')} {trusted}"
    numbers = {"n_programs": len(programs), "n_others": len(others), "share": share}
    words = {"named": name_ids(programs), "trusted": trusted}
    words["people"] = counted(len(others), "person") if sure else name_ids(others)
    words["let"] = "let the people" if sure else "if these are people, let them"
    return [say("mostly_programs", numbers, others, rest=1.0 - share, **words)]


def _what_intervals_tell(facts: Facts) -> str:
    """What there is of errors that all annotators share in intervals, tiers and beats."""
    return MESSAGES["allowance" if "unseen" in facts.consensus.estimates.get("shared", {}) else "what_more_would_tell"]


def _unseen_sides(facts: Facts) -> list[Finding]:
    """That left and right are not what annotators saw."""
    judged = facts.judgments
    if not isinstance(judged, Preferences):
        return []
    numbers = {"n_unknown": int((~judged.shown).sum()), "n_judgments": len(judged)}
    return [say("sides_unknown", numbers, sentence=sentence) for sentence in recorded_sentences(judged)]


def agreement_findings(facts: Facts) -> list[Finding]:
    """Return how far annotators agree with each other, and with themselves when asked again."""
    agreement, judged = facts.agreement, facts.judgments
    if agreement is None or judged is None:
        return []
    findings, what = list[Finding](), "item" if isinstance(judged, Grades) else "pair"
    if agreement.n_shared:
        numbers: dict[str, float] = {"agreement": agreement.same, "n_shared": agreement.n_shared}
        severity, chance = "info", ""
        if math.isfinite(agreement.alpha):
            numbers["alpha"] = agreement.alpha
            severity = "warning" if agreement.alpha < _LOW_ALPHA else "info"
            chance = f" (Krippendorff's alpha {agreement.alpha:.2f}; 0 is chance, 1 is full agreement)"
        who = "two annotators who judge" if judged.n_annotators else "two judgments of"
        findings.append(say("agreement", numbers, severity=severity, who=who, what=what, chance=chance))
    elif facts.per_annotator is None or (facts.per_annotator > 0).sum() != 1:
        findings.append(say("no_overlap", what=what, by="twice" if facts.consistency is None else "by two annotators"))
    # answers to one item may depend on each other beyond its class, so that annotators are wrong together
    calibration = facts.consensus.estimates.get("calibration")
    if calibration and calibration["likeliest"] and isinstance(judged, Grades):
        correlation, shared = float(calibration["correlation"]), float(calibration["shared_error"])
        each = len(judged) / max(int(judged.judged_items.sum()), 1)
        worth = each / (1.0 + (each - 1.0) * correlation)
        numbers = {"correlation": correlation, "shared_error": shared, "n_each": each, "effective_each": worth}
        severity = "warning" if shared >= _MANY_SHARED else "info"
        if shared >= _FEW_SHARED:
            findings.append(say("shared_errors", numbers, severity=severity, known=option("known")))
    odd = facts.diagnostics
    if facts.consistency is None or odd is None:
        return findings
    numbers, by_chance, whose = dict[str, float](), False, dict[str | int, None]()
    for how in ("repeated", "swapped"):
        repeats = consistency(odd.annotators(), how)
        if repeats is not None:
            numbers |= {f"n_{how}": repeats.n, f"share_{how}": repeats.share}
            numbers |= {f"{how}_lower": repeats.lower, f"{how}_upper": repeats.upper}
            whose |= dict.fromkeys(repeats.annotators)
            by_chance |= repeats.n >= FEWEST and repeats.lower <= _CHANCE
    severity = "warning" if by_chance and not isinstance(judged, Grades) else "info"
    return [*findings, say("self_consistency", numbers, whose, severity, sentence=facts.consistency)]


def _disagreement(facts: Facts) -> list[Finding]:
    """What the crowd is most divided on."""
    table = facts.contested_items if facts.judgments is not None and len(facts.judgments) else None
    if table is None or not len(table):
        return []
    top = table.row(0, named=True)
    within = f" (query {name(top['query'])})" if facts.consensus.items.n_queries > 1 else ""
    if top["divided" if "divided" in top else "spread"] <= 0:
        return []
    if "other" in top:
        n = int((table["divided"] >= _MIN_SHARE_DIVIDED).sum())
        tied = f", {top['n_tied']:,} tied" if top["n_tied"] else ""
        numbers = {"n_divided": n, "n_item": top["n_item"], "n_other": top["n_other"]}
        return [say("divided/pair", numbers, (top["item"], top["other"]), within=within, tied=tied)]
    if "divided" in top:
        return [say("divided", {"divided": top["divided"]}, (top["item"],), within=within)]
    words = {key: top[key] for key in ("n_answers", "lowest", "highest")}
    return [say("divided/grades", {"spread": top["spread"]}, (top["item"],), within=within, **words)]


def _judgments(facts: Facts) -> list[Finding]:
    """What there is to say of the judgments as a whole."""
    judged, counts = facts.judgments, facts.per_annotator
    if judged is None:
        return []
    n = 0 if counts is None else int((counts > 0).sum())
    numbers = {"n_judgments": judged.n_judgments, "n_annotators": n, "n_items": judged.n_items}
    numbers["n_queries"] = judged.n_queries
    of = "" if judged.n_queries == 1 else f" of {counted(judged.n_queries, 'query')}"
    by = f" by {counted(n, 'annotator')}" if n else ""
    findings = [say("judgments", numbers, given=count_kinds(judged), by=by, of=of)]
    if counts is not None and n > 1:
        half = int(np.searchsorted(np.cumsum(np.sort(counts)[::-1]), 0.5 * counts.sum())) + 1
        severity = "warning" if n >= 10 and half <= _FEW_GAVE_HALF * n else "info"
        findings.append(say("load", {"n": half, "n_annotators": n}, severity=severity))
    return findings


def _method(consensus: Consensus) -> list[Finding]:
    """How the fit went, what controlling for covariates means, and how much wider intervals by cluster are."""
    estimates, kind = consensus.estimates, "converged" if consensus.trace.converged else "not_converged"
    findings = [say(kind, {"n_iter": consensus.trace.n_iter}, method=consensus.method)]
    controlled = (estimates.get("control") or {}).items()
    for (covariate, estimate), sentence in zip(controlled, control_sentences(estimates), strict=True):
        numbers = {key: estimate[key] for key in ("coefficient", "std_error", "identified")}
        findings.append(Finding(f"control_{covariate}", "method", "info", sentence, numbers))
    if estimates.get("by_query"):
        findings.append(say("by_query", dict(estimates["by_query"]), robust=option("robust", "query")))
    if robust := estimates.get("robust"):
        findings.append(say("robust", {key: robust[key] for key in ("wider", "clusters")}, by=robust["by"]))
    if shared := estimates.get("shared"):
        findings.append(say("shared/unseen" if "unseen" in shared else "shared", dict(shared)))
    return findings


class Habit(NamedTuple):
    """What annotators do about one covariate: a table of coefficients with 90 % intervals, its unit and transform."""

    covariate: str
    unit: float
    table: pl.DataFrame
    transform: str = GIVEN

    @property
    def step(self) -> float:
        """What coefficients are multiplied by for log-odds at the typical difference."""
        return 1.0 if self.covariate == _OWN_SIDE else typical_difference(self.covariate, self.unit, self.transform)

    @property
    def favoured_item(self) -> str:
        """Which item has the typical difference."""
        return "on the left" if self.covariate == _OWN_SIDE else more_of(self.covariate, self.unit, self.transform)


def interval_factor(estimate: Mapping[str, Any], level: float) -> float:
    """Return how many standard errors an interval of a coefficient reaches: Student's t over annotators, or normal."""
    from scipy.special import ndtri, stdtrit

    degrees = estimate.get("degrees")
    return float(stdtrit(degrees, 0.5 + level / 2.0) if degrees else ndtri(0.5 + level / 2.0))


def control_sentences(estimates: Mapping[str, Any]) -> list[str]:
    """Return what the coefficients of covariates mean, a sentence for each."""
    sentences = []
    for covariate, estimate in (estimates.get("control") or {}).items():
        way = estimate.get("transform", GIVEN)
        far, step = interval_factor(estimate, 0.95), typical_difference(covariate, estimate["unit"], way)
        bounds = [(estimate["coefficient"] + z * estimate["std_error"]) * step for z in (-far, 0.0, far)]
        odds = dict(zip(("low", "middle", "high"), np.exp(np.clip(bounds, -30.0, 30.0)), strict=True))
        spread = estimate.get("sd_between_annotators")
        between = f"; annotators differ by a factor of {math.exp(min(spread * step, 30.0)):.1f}" if spread else ""
        words = {"what": more_of(covariate, estimate["unit"], way), "identified": estimate["identified"]}
        sentences.append(fill(MESSAGES["control"], between=between, covariate=covariate, **words, **odds))
    return sentences


def annotator_habits(consensus: Consensus) -> list[Habit]:
    """Return the coefficients of annotators, and their favour of the left side, where covariates are controlled for.

    The tables have annotator, coefficient, lower, upper and odds, those at the typical difference. Annotators whose
    judgments say nothing of a covariate, such as people of their own family, are not in its table.
    """
    learned, control = consensus.learned, consensus.estimates.get("control")
    if learned is None or not control:
        return []
    annotators, parameters = learned
    habits = []
    for covariate in dict.fromkeys((*control, _OWN_SIDE)):
        value, error = ("bias", "bias_sd") if covariate == _OWN_SIDE else (covariate, f"{covariate}_sd")
        if value in parameters and error in parameters:
            estimates = (np.asarray(parameters[name], np.float64) for name in (value, error))
            habits.append(_habit(covariate, control.get(covariate, {"unit": 1.0}), annotators.ids, *estimates))
    return habits


def _habit(covariate: str, crowd: Mapping[str, Any], ids: pl.Series, value: Floats, error: Floats) -> Habit:
    """Coefficients with standard errors as a table with intervals, and odds at the typical difference.

    It has those with a coefficient of their own, not just that of the crowd with the spread of all.
    """
    habit = Habit(covariate, float(crowd["unit"]), pl.DataFrame(), crowd.get("transform", GIVEN))
    far = interval_factor({}, INTERVAL)
    odds = np.exp(np.clip(value * habit.step, -30.0, 30.0))
    columns = {"coefficient": value, "lower": value - far * error, "upper": value + far * error, "odds": odds}
    table = pl.DataFrame({"annotator": ids, **columns})
    if spread := float(crowd.get("sd_between_annotators") or 0.0):
        unknown = error**2 >= (1.0 - _NO_SHARE) * (spread**2 + crowd["std_error"] ** 2)
        table = table.filter(pl.Series(~(unknown & (np.abs(value - crowd["coefficient"]) <= _NO_SHARE * spread))))
    return habit._replace(table=table)


def relative_habits(preferences: Preferences, control: Sequence[str], coefficients: Any) -> list[Habit]:
    """Return coefficients of annotators against each other, of those whose can be told.

    ``found`` has parameters, unit and comparable, as ``latent_score`` gives them.
    """
    ways = dict(zip(preferences.covariate_names, preferences.covariate_transforms, strict=True))
    habits = []
    for place, one in enumerate(control):
        use = coefficients.comparable[:, place]
        values = (np.asarray(coefficients.parameters[name], np.float64)[use] for name in (one, f"{one}_sd"))
        crowd = {"unit": coefficients.unit[place], "transform": ways[one]}
        habits.append(_habit(one, crowd, preferences.annotators.ids.filter(pl.Series(use)), *values))
    return habits


def habit_findings(
    consensus: Consensus, habits: Sequence[Habit] | None = None, *, leaning: Collection[object] = ()
) -> list[Finding]:
    """Return who likes long, formatted, own-family or left items, and by how much.

    ``leaning`` are those of whom it is told already that they go by the side.
    """
    findings = []
    habits = annotator_habits(consensus) if habits is None else habits
    for kind, words in HABITS.items():
        of_kind = [habit for habit in habits if _KINDS.get(habit.covariate, "likes_format") == kind]
        known = list(leaning) if kind == "leans_left" else []
        who, names = dict[str | int, None](), []
        for habit in of_kind:
            # those whose interval is above 0 and whose odds are notable, the largest first
            likers = habit.table.filter(pl.col("lower") > 0.0, pl.col("odds") > NOTABLE_ODDS)
            for row in likers.sort("odds", "annotator", descending=[True, False]).iter_rows(named=True):
                if row["annotator"] not in known:
                    who[row["annotator"]] = None
                    odds = {"what": habit.favoured_item, "odds": row["odds"]}
                    names.append(fill(MESSAGES["likes"], who=name(row["annotator"]), **odds))
        if not who:
            continue
        n = max(len(habit.table) for habit in of_kind)
        sentence = f"{of_all(len(who), n, 'annotator')} {words[len(who) > 1]}: {first_few(names[:SHOWN], len(names))}"
        numbers = {"n": len(who), "n_annotators": n}
        findings.append(Finding(kind, "annotators", "warning", sentence, numbers, tuple(who)))
    return findings
