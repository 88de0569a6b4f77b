"""One finding, and all findings of a consensus in the order of the report."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.covariates import GIVEN, more_of, typical_difference
from ..data.intake import short
from ..data.judgments import Grades, Judgments, Mixed, Preferences, parts_of
from ..data.preferences import FEWEST
from ..data.showing import Shown, html_table
from ..errors import ParameterError
from ..protocols import Bools, takes_argument
from ..quality import INTERVAL
from ..registry import method_class
from ..wording import SHOWN, counted, either, first_few, of_all, option, percent
from .crowd_agreement import Agreement
from .diagnosis import group_sentences
from .facts import POOR, SURE, Facts
from .habits import consistency, recorded_sentences
from .sentences import BY_QUALITY, DOUBTS, FLAGS

SEVERITIES = ("problem", "warning", "info", "good")
"""From what calls for action to what is well."""

ABOUT = ("items", "annotators", "agreement", "judgments", "method")
"""What findings are about, in the order of the report."""

_PLAIN = re.compile(r"(?=.*[^\W\d])[\w.+:/@-]{1,40}")


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
        return {
            "kind": self.kind,
            "about": self.about,
            "severity": self.severity,
            "sentence": self.sentence,
            "numbers": {key: value.item() if hasattr(value, "item") else value for key, value in self.numbers.items()},
            "ids": list(self.ids),
        }


class Findings(Shown, Sequence[Finding]):
    """All that was found, in the order of the report.

    Examples
    --------
    >>> found = Findings([Finding("unjudged", "items", "warning", "1 item was never judged: x", {"n": 1}, ("x",))])
    >>> found.of("unjudged").sentence, found.of("guessing")
    ('1 item was never judged: x', None)
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._all = tuple(findings)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, place: Any) -> Any:
        return self._all[place]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._all)

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

        rows = [
            {**one.plain(), "ids": [str(i) for i in one.ids], "numbers": json.dumps(one.plain()["numbers"])}
            for one in self
        ]
        words = ("kind", "about", "severity", "sentence", "numbers")
        return pl.DataFrame(rows, schema={**dict.fromkeys(words, pl.String), "ids": pl.List(pl.String)})

    def plain(self) -> list[dict[str, Any]]:
        """Return the findings as values that JSON can hold."""
        return [one.plain() for one in self]


def name_ids(ids: Sequence[Any]) -> str:
    """Return the first five ids in words, then how many more there are; quoted where they are no plain word.

    Examples
    --------
    >>> name_ids(["ann", "bob"]), name_ids(["<b>"]), name_ids(list("abcdefg"))
    ('ann and bob', "'<b>'", 'a, b, c, d, e and 2 more')
    >>> name_ids(["7", "8"])
    "'7' and '8'"
    """
    return first_few([name(one) for one in ids[:SHOWN]], len(ids))


def name(one: Any) -> str:
    """Return one id in words, quoted where it is no plain word."""
    return str(one) if _PLAIN.fullmatch(str(one)) else short(one)


_MAX_TIMES_JUDGMENTS = 20.0
_MIN_CONFIDENCE = 0.8


def item_findings(facts: Facts) -> list[Finding]:
    """Return what there is to say of items."""
    if not len(facts.consensus.items):
        return [Finding("empty", "items", "problem", "there are no items", {"n_items": 0})]
    findings = _of_classes(facts) if facts.consensus.nominal else [*_winner_finding(facts), *_order(facts)]
    return [*findings, *_uncertain_grades(facts), *_unjudged_finding(facts), *_coverage(facts), *_open_places(facts)]


def _winner_finding(facts: Facts) -> list[Finding]:
    """What stands first, in the one query or in each of them."""
    items, scores = facts.consensus.items, facts.consensus.scores
    if items.n_queries > 1:
        return _winners(facts)
    n, best = len(items), np.flatnonzero(scores == scores.max())
    ids = tuple(items.ids.gather(best[:1000]).to_list())
    if n == 1:
        return [Finding("only_item", "items", "info", f"{name(ids[0])} is the only item", {"n_items": 1}, ids)]
    if len(best) == n:
        sentence = f"{of_all(n, n, 'item')} have the same score: the judgments do not distinguish them"
        return [Finding("all_tied", "items", "warning", sentence, {"n_items": n})]
    if len(best) > 1:
        sentence = f"{len(best):,} of {n:,} items share the first place: {name_ids(ids)}"
        return [Finding("shared_first", "items", "warning", sentence, {"n_first": len(best), "n_items": n}, ids)]
    pairs = facts.neighbours
    second = items.ids[int(pairs.second[0])]
    if pairs.probability is None:
        sentence = f"{name(ids[0])} is first of {n:,} items, before {name(second)}; how sure that is was not computed"
        return [Finding("winner", "items", "info", sentence, {"n_items": n}, (ids[0], second))]
    return _sure_winner(ids[0], second, float(pairs.probability[0]), n)


def _sure_winner(first: Any, second: Any, probability: float, n: int) -> list[Finding]:
    """The first item with the probability that it is better than the next, and what would make that sure."""
    numbers = {"probability": probability, "n_items": n}
    if probability >= SURE:
        sentence = f"{name(first)} is first of {n:,} items: better than the next, {name(second)}, "
        sentence += f"with a probability of {percent(probability, of_belief=True)}"
        return [Finding("winner", "items", "good", sentence, numbers, (first, second))]
    sentence = f"{name(first)} leads {n:,} items, but is better than the next, {name(second)}, "
    sentence += f"only with a probability of {percent(probability, of_belief=True)}"
    return [
        Finding("winner", "items", "warning", sentence, numbers, (first, second)),
        _more_judgments(first, second, probability),
    ]


def _more_judgments(first: Any, second: Any, probability: float) -> Finding:
    """How many judgments it would take to be sure of the first item, if its lead stays what it is."""
    lead = NormalDist().inv_cdf(min(max(probability, 0.5), 1 - 1e-12))
    times = (NormalDist().inv_cdf(SURE) / lead) ** 2 if lead > 0 else math.inf
    if times > _MAX_TIMES_JUDGMENTS:
        sentence = f"more judgments would hardly distinguish {name(first)} from {name(second)}: treat them as equal"
        return Finding("equals", "items", "info", sentence, {"probability": probability}, (first, second))
    sentence = f"about {times:.1f} times as many judgments would make the first place {percent(SURE)} sure, "
    sentence += f"if the lead of {name(first)} stays"
    return Finding("more_judgments", "items", "info", sentence, {"times": times}, (first, second))


def _winners(facts: Facts) -> list[Finding]:
    """How many queries have a first item that is sure."""
    items, pairs = facts.consensus.items, facts.neighbours
    n = int((np.diff(items.offsets) > 1).sum())
    if not n:
        sentence = f"each of the {items.n_queries:,} queries has only one item"
        return [Finding("only_item", "items", "info", sentence, {"n_queries": items.n_queries})]
    if pairs.probability is None:
        sentence = f"{items.n_queries:,} queries are ranked; how sure their first items are was not computed"
        return [Finding("winners", "items", "info", sentence, {"n_queries": n})]
    top = np.flatnonzero(pairs.place == 0)
    unsure = top[pairs.probability[top] < SURE]
    queries = tuple(items.queries.ids.gather(items.query[pairs.first[unsure]]).to_list())
    numbers = {"n_queries": n, "n_sure": n - len(unsure), "lowest_probability": float(pairs.probability[top].min())}
    if not len(unsure):
        sentence = f"the first item is sure ({percent(SURE)}) in {of_all(n, n, 'query')}"
        return [Finding("winners", "items", "good", sentence, numbers)]
    sentence = f"in {of_all(len(unsure), n, 'query')} the first item cannot be distinguished from the next "
    sentence += f"with {percent(SURE)} certainty"
    return [Finding("winners", "items", "warning", sentence, numbers, queries)]


def _order(facts: Facts) -> list[Finding]:
    """How much of the order is sure, and which items may be first."""
    pairs, items = facts.neighbours, facts.consensus.items
    if pairs.probability is None:
        return []
    n, apart = len(pairs.probability), int((pairs.probability >= SURE).sum())
    numbers = {"n_neighbours": n, "n_apart": apart}
    findings = []
    if n > 1:
        sentence = f"{of_all(apart, n, 'neighbour')} in the order can be distinguished with {percent(SURE)} certainty"
        sentence = sentence if apart else f"no two neighbours in the order can be distinguished with {percent(SURE)}"
        findings.append(Finding("order", "items", "info", sentence if apart else f"{sentence} certainty", numbers))
    if items.n_queries == 1 and pairs.probability[0] < SURE and facts.intervals is not None:
        # a rank interval begins at 1 just where an item may be first
        first = facts.intervals.filter(pl.col("rank_lower") == 1)["item"].to_list()
        if 1 < len(first) < len(items):
            sentence = f"{len(first):,} items may be first: no other is surely better: {name_ids(first)}"
            findings.append(Finding("may_be_first", "items", "info", sentence, {"n_first": len(first)}, tuple(first)))
    return findings


def _of_classes(facts: Facts) -> list[Finding]:
    """How many items are of each class."""
    counts = facts.consensus.labels().drop_nulls().value_counts(sort=True)
    n = int(counts["count"].sum())
    sizes = [f"{count:,} {name(level)}" for level, count in counts.head(SHOWN).iter_rows()]
    sentence = f"{counted(n, 'item')} in {counted(len(counts), 'class')}: {first_few(sizes, len(counts))}"
    return [Finding("classes", "items", "info", sentence, {"n_items": n, "n_classes": len(counts)})]


def _uncertain_grades(facts: Facts) -> list[Finding]:
    """Items whose chosen grade is not sure."""
    frame = facts.consensus.frame()
    if "confidence" not in frame.columns:
        return []
    known = frame.drop_nulls("confidence").sort("confidence", maintain_order=True)
    low = known.filter(pl.col("confidence") < _MIN_CONFIDENCE)
    numbers = {"n_items": len(known), "n_uncertain": len(low)}
    if not len(known):
        return []
    if not len(low):
        sentence = f"all {len(known):,} grades are at least {percent(_MIN_CONFIDENCE)} certain"
        return [Finding("grades", "items", "good", sentence, numbers)]
    ids = low["item"].to_list()
    sentence = (
        f"the grades of {of_all(len(low), len(known), 'item')} are less than {percent(_MIN_CONFIDENCE)} certain: "
    )
    return [Finding("uncertain_grades", "items", "warning", sentence + name_ids(ids), numbers, tuple(ids))]


def _unjudged_finding(facts: Facts) -> list[Finding]:
    """Items that nobody judged."""
    if facts.is_unjudged is None or not facts.is_unjudged.any():
        return []
    ids, n = facts.consensus.items.ids.filter(pl.Series(facts.is_unjudged)).to_list(), len(facts.is_unjudged)
    verb = "was" if len(ids) == 1 else "were"
    sentence = f"{of_all(len(ids), n, 'item')} {verb} never judged: {name_ids(ids)}"
    return [Finding("unjudged", "items", "warning", sentence, {"n_unjudged": len(ids), "n_items": n}, tuple(ids))]


def _coverage(facts: Facts) -> list[Finding]:
    """How many judgments items have."""
    counts = facts.per_item
    if counts is None or len(counts) < 2 or not counts.any():
        return []
    judged = counts[counts > 0]
    low, middle, high = int(judged.min()), float(np.median(judged)), int(judged.max())
    numbers = {"fewest": low, "median": middle, "most": high}
    if low == high:
        sentence = f"each judged item has {counted(low, 'judgment')}"
    else:
        sentence = f"judged items have between {low:,} and {high:,} judgments, half of them at least {middle:,.0f}"
    return [Finding("coverage", "items", "info", sentence, numbers)]


def _open_places(facts: Facts) -> list[Finding]:
    """Items whose place the judgments leave open."""
    odd = facts.diagnostics
    if odd is None or not odd.group_messages:
        return []
    table = odd.group_table
    if table is None:
        return [Finding("open_place", "items", "warning", one, {"n_items": 0}) for one in odd.group_messages]
    findings = []
    for relation, sentence in group_sentences(facts.consensus.items, table).items():
        ids = tuple(table.filter(pl.col("relation") == relation)["item"].to_list())
        findings.append(Finding(f"items_{relation}", "items", "warning", sentence, {"n_items": len(ids)}, ids))
    return findings


_MOST_NAMED = 10_000
"""Annotators, and items, whose names are looked at for those of programs."""

_LOW_ALPHA = 0.2
_MIN_SHARE_DIVIDED = 0.35
_CHANCE = 0.5
_FEW_GAVE_HALF = 0.05
_FEW_SHARED, _MANY_SHARED = 0.01, 0.05
"""Shares of items that annotators may get wrong together, from which on it is said, and is a warning."""


def annotator_findings(facts: Facts) -> list[Finding]:
    """Return what there is to say of annotators."""
    findings, table = verdict_findings(facts), facts.table
    if table is None or len(table) < 2:
        return [*findings, *(_unseen_sides(facts) if table is not None and len(table) else [])]
    return [*findings, *_quality(table), *_habits(facts), *_dependent(facts)]


def verdict_findings(facts: Facts) -> list[Finding]:
    """Return who guesses, is reversed or poor, who judged too little to tell, and whether programs decide."""
    table = facts.table
    if table is None or not len(table):
        sentence = "the judgments name no annotators, so nothing can be said about them"
        return [Finding("no_annotators", "annotators", "info", sentence)]
    if len(table) == 1:
        who = table["annotator"][0]
        sentence = f"{name(who)} gave all judgments; with only one annotator quality cannot be estimated"
        return [Finding("one_annotator", "annotators", "warning", sentence, {"n_annotators": 1}, (who,))]
    n, findings = len(table), []
    why = _nothing_to_order(facts)
    if why:
        sentence = f"{why}, so nothing shows which of the {n:,} annotators guess"
        return [Finding("nothing_to_order", "annotators", "warning", sentence, {"n_annotators": n})]
    for code in BY_QUALITY:
        who = tuple(one.annotator for one in facts.suspects if one.verdict == code)
        if who:
            findings.append(_flag_finding(code, who, n, name_ids(who)))
    in_doubt = facts.doubts
    n_fine = n - len(in_doubt)
    for code, kind in zip(DOUBTS, ("too_few_judgments", "unmatched"), strict=True):
        who = tuple(one for one, own in in_doubt.items() if own == code)
        if who:
            sentence = f"{of_all(len(who), n, 'annotator')} {FLAGS[code].words(len(who))}"
            numbers = {"n": len(who), "n_annotators": n}
            findings.append(Finding(kind, "annotators", FLAGS[code].severity, sentence, numbers, who))
    if not facts.suspects and n_fine:
        rest = f"{n:,} annotators" if n_fine == n else f"{n_fine:,} annotators of whom it can be told"
        sentence = f"none of the {rest} seems to guess or to be reversed"
        if n_fine == 1:
            sentence = "the one annotator of whom it can be told does not seem to guess or to be reversed"
        elif n_fine == n == 2:
            sentence = "neither of the two annotators seems to guess or to be reversed"
        findings.append(Finding("annotators_fine", "annotators", "good", sentence, {"n_annotators": n}))
    return findings + _mostly_programs(facts, table)


def _nothing_to_order(facts: Facts) -> str:
    """Why no order can show who guesses; empty where one can."""
    items, scores = facts.consensus.items, facts.consensus.scores
    if not facts.has_order:
        return ""
    if (np.diff(items.offsets) < 2).all():
        return "no query has two items"
    alike = (np.diff(scores)[np.diff(items.query) == 0] == 0.0).all()
    # camps that contradict each other leave all items equal too, but do not agree
    if alike and facts.agreement is not None and facts.agreement.same == 1.0:
        return "annotators give all items of a query the same"
    return ""


_PEOPLE = frozenset({
    "human", "humans", "person", "persons", "people", "crowd", "worker", "workers", "turker", "turkers", "mturk",
    "prolific", "expert", "experts", "user", "users", "student", "students", "teacher", "teachers", "volunteer",
    "volunteers",
})  # fmt: skip
_PROGRAMS = frozenset({
    "llm", "llms", "model", "models", "program", "programs", "machine", "machines", "ai", "bot", "bots", "gpt",
    "chatgpt", "gemini", "palm", "bard", "llama", "codellama", "mistral", "mixtral", "qwen", "deepseek", "grok",
    "vicuna", "falcon", "pandalm", "prometheus", "openai", "anthropic", "opus", "sonnet", "haiku",
})  # fmt: skip
"""Words in ids and groups of annotators that say what they are."""

_ALSO_FIRST_NAMES = frozenset({"claude", "gemma"})
"""Programs only where a number or another word of programs stands beside them."""


def _is_program(text: str) -> bool | None:
    """Whether a name is one of programs or of people; ``None`` where that is not clear."""
    words = set(re.findall(r"[a-z]+", text.lower()))
    program = bool(words & _PROGRAMS) or bool(words & _ALSO_FIRST_NAMES and re.search(r"\d", text))
    person = bool(words & _PEOPLE)
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
    by_group = [_is_program(of_group.get(one, "")) for one in ids]
    kinds = [_is_program(one) if own is None else own for one, own in zip(ids, by_group, strict=True)]
    items = set(facts.consensus.items.ids.cast(pl.String).head(_MOST_NAMED))
    if any(map(_is_program, items)):
        kinds = [True if own is None and one in items else own for one, own in zip(ids, kinds, strict=True)]
    number = table["n_judgments"].to_numpy()
    programs, people = np.array([own is True for own in kinds]), np.array([own is not True for own in kinds])
    share = float(number[programs].sum() / number.sum())
    if not programs.any() or not people.any() or share <= 0.5:
        return []
    sure = all(kinds[place] is False for place in np.flatnonzero(people))
    others = [one for one, own in zip(ids, people, strict=True) if own]
    trusted = option("trusted", _shortest_name(others, ids, of_group))
    if not takes_argument(method_class("aggregator", facts.consensus.method), "trusted"):
        trusted = f"{option('method', 'latent_score')} {trusted}"
    of_people = counted(len(others), "person") if sure else name_ids(others)
    sentence = (
        f"{percent(share)} of the judgments are by {counted(int(programs.sum()), 'program')} "
        f"({name_ids([one for one, own in zip(ids, programs, strict=True) if own])}) and {percent(1.0 - share)} by "
        f"{of_people}: what the programs like decides, and intervals are too narrow; "
        f"{'let the people' if sure else 'if these are people, let them'} decide with {trusted}"
    )
    numbers = {"n_programs": int(programs.sum()), "n_others": len(others), "share": share}
    return [Finding("mostly_programs", "annotators", "warning", sentence, numbers, tuple(others))]


def _shortest_name(wanted: list[str], ids: list[str], of_group: dict[str, str]) -> str:
    """How to name some of all annotators: by their group, by what their ids begin with, or each."""
    groups = {of_group.get(one) for one in wanted}
    if len(groups) == 1 and None not in groups and wanted == [one for one in ids if of_group[one] in groups]:
        return f"group={groups.pop()}"
    low, high = min(wanted), max(wanted)
    start = low[: next((place for place, two in enumerate(zip(low, high, strict=False)) if two[0] != two[1]), len(low))]
    alike = wanted == [one for one in ids if one.startswith(start)]
    if alike and len(wanted) > 1 and len(start) > 1 and not set(start) & set("*?[,=@"):
        return f"{start}*"
    return ",".join(wanted) if len(wanted) <= SHOWN else "FILE"


def _flag_finding(code: str, who: tuple[Any, ...], n: int, names: str) -> Finding:
    """The finding that some of ``n`` annotators have a flag."""
    flag = FLAGS[code]
    scale = f" ({flag.scale})" if flag.scale else ""
    sentence = f"{of_all(len(who), n, 'annotator')} {flag.words(len(who))}{scale}: {names}"
    return Finding(code, "annotators", flag.severity, sentence, {"n": len(who), "n_annotators": n}, who)


def _quality(table: pl.DataFrame) -> list[Finding]:
    """What quality annotators have."""
    quality = table["quality"].to_numpy()
    low, middle, high = float(quality.min()), float(np.median(quality)), float(quality.max())
    numbers = {"lowest": low, "median": middle, "highest": high, "n_below": int((quality < POOR).sum())}
    sentence = f"annotators have a quality between {low:.2f} and {high:.2f}, half of them at least {middle:.2f} "
    sentence += "(0.5 is guessing, 1 is perfect)"
    return [Finding("quality", "annotators", "info", sentence, numbers)]


def _habits(facts: Facts) -> list[Finding]:
    """Those with habits that have nothing to do with the items."""
    odd, judged = facts.diagnostics, facts.judgments
    if odd is None or not odd.n_annotators or judged is None or isinstance(judged, Mixed):
        return []
    n, flagged = odd.n_annotators, facts.habits
    findings: list[Finding] = []
    for habit, (codes, words) in flagged.items():
        ids = judged.annotators.ids.gather(codes).to_list()
        names = [f"{name(one)} ({word})" for one, word in zip(ids[:SHOWN], words, strict=False)]
        if ids:
            findings.append(_flag_finding(habit, tuple(ids), n, first_few(names, len(ids))))
    unseen = _unseen_sides(facts)
    if "leans" in flagged and not unseen and not {"leans", "one_side"} & {one.kind for one in findings}:
        sentence = "no annotator leans clearly to one side"
        findings.append(Finding("no_bias", "annotators", "info", sentence, {"n_annotators": n}))
    return findings + unseen


def _unseen_sides(facts: Facts) -> list[Finding]:
    """That left and right are not what annotators saw."""
    judged = facts.judgments
    if not isinstance(judged, Preferences):
        return []
    numbers = {"n_unknown": int((~judged.shown).sum()), "n_judgments": len(judged)}
    sentences = recorded_sentences(judged)
    return [Finding("sides_unknown", "annotators", "info", sentence, numbers) for sentence in sentences]


def _dependent(facts: Facts) -> list[Finding]:
    """Families of annotators who err together, and what the crowd is worth."""
    odd = facts.diagnostics
    if odd is None or odd.effective_annotators is None or not odd.n_annotators:
        return []
    families = odd.families()
    own_families = families.filter(pl.col("origin") == "found") if len(families) else families
    if not len(own_families):
        return []
    n, worth = odd.n_annotators, odd.effective_annotators
    table = odd.annotators()
    ids = tuple(table.filter(pl.col("family").is_not_null())["annotator"].to_list())
    what = "group errs" if len(own_families) == 1 else "groups err"
    sentence = f"{len(own_families)} {what} together ({name_ids(ids)}), so the {n:,} annotators are worth {worth:.1f} "
    sentence += "independent ones"
    numbers = {"n_families": len(own_families), "effective_annotators": worth, "n_annotators": n}
    return [Finding("dependent", "annotators", "warning", sentence, numbers, ids)]


def agreement_findings(facts: Facts) -> list[Finding]:
    """Return how far annotators agree."""
    agreement, judged = facts.agreement, facts.judgments
    if agreement is None or judged is None:
        return []
    return [*_between(facts, agreement, judged), *_shared_errors(facts, judged), *_self_consistency(facts, judged)]


def _between(facts: Facts, agreement: Agreement, judged: Judgments | Mixed) -> list[Finding]:
    """How far two annotators agree."""
    what = facts.what
    if not agreement.n_shared:
        if facts.per_annotator is not None and (facts.per_annotator > 0).sum() == 1:
            return []
        by = "twice" if facts.consistency is None else "by two annotators"
        sentence = f"no {what} was judged {by}, so nothing shows whether annotators agree"
        return [Finding("no_overlap", "agreement", "warning", sentence)]
    numbers = {"agreement": agreement.same, "n_shared": agreement.n_shared}
    sentence = f"two annotators who judge the same {what} agree in {percent(agreement.same)} of cases"
    if not judged.n_annotators:
        sentence = f"two judgments of the same {what} agree in {percent(agreement.same)} of cases"
    if not math.isfinite(agreement.alpha):
        return [Finding("agreement", "agreement", "info", sentence, numbers)]
    numbers["alpha"] = agreement.alpha
    severity = "warning" if agreement.alpha < _LOW_ALPHA else "info"
    sentence += f" (Krippendorff's alpha {agreement.alpha:.2f}; 0 is chance, 1 is full agreement)"
    return [Finding("agreement", "agreement", severity, sentence, numbers)]


def _shared_errors(facts: Facts, judged: Judgments | Mixed) -> list[Finding]:
    """That answers to one item depend on each other beyond its class, so that annotators may be wrong together."""
    calibration = facts.consensus.estimates.get("calibration")
    if (
        not calibration
        or not calibration["likeliest"]
        or calibration["shared_error"] < _FEW_SHARED
        or not isinstance(judged, Grades)
    ):
        return []
    correlation, shared = float(calibration["correlation"]), float(calibration["shared_error"])
    each = len(judged) / max(int(judged.judged_items.sum()), 1)
    worth = each / (1.0 + (each - 1.0) * correlation)
    numbers = {"correlation": correlation, "shared_error": shared, "n_each": each, "effective_each": worth}
    sentence = (
        f"answers to one item correlate by about {correlation:.2f} beyond what its class and the annotators explain: "
        f"{each:.1f} annotators per item are worth {worth:.1f} independent ones, and on about {percent(shared)} of "
        "items even many like them would settle on a wrong class; agreement cannot show which, a few known answers "
        f"can ({option('known')})"
    )
    severity = "warning" if shared >= _MANY_SHARED else "info"
    return [Finding("shared_errors", "agreement", severity, sentence, numbers)]


def _self_consistency(facts: Facts, judged: Judgments | Mixed) -> list[Finding]:
    """How far annotators agree with themselves when asked again."""
    sentence, odd = facts.consistency, facts.diagnostics
    if sentence is None or odd is None:
        return []
    numbers: dict[str, float] = {}
    ids: list[Any] = []
    chance = False
    for how in ("repeated", "swapped"):
        agreement = consistency(odd.annotators(), how)
        if agreement is not None:
            numbers |= {f"n_{how}": agreement.n, f"share_{how}": agreement.share}
            numbers |= {f"{how}_lower": agreement.lower, f"{how}_upper": agreement.upper}
            ids += agreement.annotators
            chance |= agreement.n >= FEWEST and agreement.lower <= _CHANCE
    severity = "warning" if chance and not isinstance(judged, Grades) else "info"
    return [Finding("self_consistency", "agreement", severity, sentence, numbers, tuple(dict.fromkeys(ids)))]


def judgment_findings(facts: Facts) -> list[Finding]:
    """Return what there is to say of the judgments as a whole."""
    judged = facts.judgments
    if judged is None:
        return []
    counts = facts.per_annotator
    n = 0 if counts is None else int((counts > 0).sum())
    given = " and ".join(counted(part.n_judgments, part.kind) for part in parts_of(judged))
    by = f" by {counted(n, 'annotator')}" if n else ""
    of = "" if judged.n_queries == 1 else f" of {counted(judged.n_queries, 'query')}"
    on = f"{counted(judged.n_items, 'item')}{of}"
    numbers = {
        "n_judgments": judged.n_judgments,
        "n_annotators": n,
        "n_items": judged.n_items,
        "n_queries": judged.n_queries,
    }
    findings = [Finding("judgments", "judgments", "info", f"{given}{by} on {on}", numbers)]
    if counts is not None and n > 1:
        falling = np.sort(counts)[::-1]
        half = int(np.searchsorted(np.cumsum(falling), 0.5 * counts.sum())) + 1
        severity = "warning" if n >= 10 and half <= _FEW_GAVE_HALF * n else "info"
        sentence = f"{of_all(half, n, 'annotator')} gave half of the judgments"
        findings.append(Finding("load", "judgments", severity, sentence, {"n": half, "n_annotators": n}))
    return findings


def method_findings(facts: Facts) -> list[Finding]:
    """Return how the fit went."""
    trace, method = facts.consensus.trace, facts.consensus.method
    numbers = {"n_iter": trace.n_iter}
    if trace.converged:
        rounds = counted(trace.n_iter, "round")
        return [Finding("converged", "method", "good", f"{method} converged after {rounds}", numbers)]
    sentence = f"{method} stopped after {counted(trace.n_iter, 'round')} before it converged; raise max_iter"
    return [Finding("not_converged", "method", "warning", sentence, numbers)]


def contested_findings(facts: Facts) -> list[Finding]:
    """Return what the crowd is most divided on."""
    if facts.judgments is None or not len(facts.judgments):
        return []
    table = facts.contested_items
    if not len(table):
        return []
    top = table.row(0, named=True)
    within = f" (query {name(top['query'])})" if facts.consensus.items.n_queries > 1 else ""
    if "other" in top:
        if top["divided"] <= 0:
            return []
        n = int((table["divided"] >= _MIN_SHARE_DIVIDED).sum())
        sentence = f"annotators are most divided on {name(top['item'])} against {name(top['other'])}{within}: "
        sentence += f"{top['n_item']:,} to {top['n_other']:,}"
        sentence += f", {top['n_tied']:,} tied" if top["n_tied"] else ""
        numbers = {"n_divided": n, "n_item": top["n_item"], "n_other": top["n_other"]}
        return [Finding("divided", "agreement", "info", sentence, numbers, (top["item"], top["other"]))]
    if "divided" in top:
        if not top["divided"]:
            return []
        sentence = f"annotators are most divided on {name(top['item'])}{within}"
        return [Finding("divided", "agreement", "info", sentence, {"divided": top["divided"]}, (top["item"],))]
    if not top["spread"]:
        return []
    sentence = f"annotators are most divided on {name(top['item'])}{within}: {top['n_answers']:,} grades from "
    sentence += f"{top['lowest']:g} to {top['highest']:g}"
    return [Finding("divided", "agreement", "info", sentence, {"spread": top["spread"]}, (top["item"],))]


NOTABLE_ODDS = 1.25
"""Smallest odds at the typical difference at which a habit is reported, where its interval excludes 1."""

_NO_SHARE = 1e-3
"""Share of the uncertainty of an annotator's coefficient that their own judgments must remove."""

_OWN_SIDE = "side"
_KINDS = {"length": "likes_long", "self": "prefers_own_family", _OWN_SIDE: "leans_left"}
_WORDS = {
    "likes_long": ("likes long items", "like long items"),
    "likes_format": ("likes formatted items", "like formatted items"),
    "prefers_own_family": ("prefers their own family", "prefer their own family"),
    "leans_left": ("leans to the left", "lean to the left"),
}
"""Kind of finding -> what one annotator does, and what several do."""


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
        low, middle, high = (math.exp(min(max(bound, -30.0), 30.0)) for bound in bounds)
        what = more_of(covariate, estimate["unit"], way)
        spread = estimate.get("sd_between_annotators")
        factor = math.exp(min(spread * step, 30.0)) if spread else 1.0
        between = f"; annotators differ by a factor of {factor:.1f}" if spread else ""
        sentences.append(
            f"between equals, the answer {what} wins {middle:.2f} times as often as it loses (95 % interval {low:.2f} "
            f"to {high:.2f}{between}); {percent(estimate['identified'])} of the variation of {covariate} is not that "
            "between items"
        )
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
    columns = {
        name: (name, f"{name}_sd", float(one["unit"]), one.get("transform", GIVEN)) for name, one in control.items()
    }
    columns[_OWN_SIDE] = ("bias", "bias_sd", 1.0, GIVEN)
    habits = []
    for covariate, (value, error, unit, way) in columns.items():
        if value in parameters and error in parameters:
            estimates = parameters[value], parameters[error]
            whole = _habit(annotators.ids, estimates, covariate, unit, way)
            has_own = (
                _has_own(*estimates, control[covariate]) if covariate in control else np.ones(len(whole.table), bool)
            )
            habits.append(whole._replace(table=whole.table.filter(pl.Series(has_own))))
    return habits


def _has_own(value: Any, error: Any, crowd: Mapping[str, Any]) -> Bools:
    """Which annotators have a coefficient of their own, not just that of the crowd with the spread of all."""
    spread = float(crowd.get("sd_between_annotators") or 0.0)
    if spread == 0.0:
        return np.ones(len(value), bool)
    unknown = np.asarray(error, np.float64) ** 2 >= (1.0 - _NO_SHARE) * (spread**2 + crowd["std_error"] ** 2)
    near = np.abs(np.asarray(value, np.float64) - crowd["coefficient"]) <= _NO_SHARE * spread
    own: Bools = ~(unknown & near)
    return own


def _habit(ids: pl.Series, estimates: tuple[Any, Any], covariate: str, unit: float, transform: str) -> Habit:
    """Coefficients with standard errors as a table with intervals, and odds at the typical difference."""
    far = interval_factor({}, INTERVAL)
    value, error = (np.asarray(part, np.float64) for part in estimates)
    table = pl.DataFrame({
        "annotator": ids, "coefficient": value, "lower": value - far * error, "upper": value + far * error,
    })  # fmt: skip
    habit = Habit(covariate, unit, table, transform)
    odds = pl.Series("odds", np.exp(np.clip(value * habit.step, -30.0, 30.0)))
    return habit._replace(table=table.with_columns(odds))


def relative_habits(preferences: Preferences, control: Sequence[str], coefficients: Any) -> list[Habit]:
    """Return coefficients of annotators against each other, of those whose can be told.

    ``found`` has parameters, unit and comparable, as ``latent_score`` gives them.
    """
    ways = dict(zip(preferences.covariate_names, preferences.covariate_transforms, strict=True))
    habits = []
    for place, one in enumerate(control):
        values = coefficients.parameters[one], coefficients.parameters[f"{one}_sd"]
        whole = _habit(preferences.annotators.ids, values, one, float(coefficients.unit[place]), ways[one])
        habits.append(whole._replace(table=whole.table.filter(pl.Series(coefficients.comparable[:, place]))))
    return habits


def habit_findings(
    consensus: Consensus, habits: Sequence[Habit] | None = None, *, leaning: Collection[Any] = ()
) -> list[Finding]:
    """Return who likes long, formatted, own-family or left items, and by how much.

    ``leaning`` are those of whom it is told already that they go by the side.
    """
    findings = []
    habits = annotator_habits(consensus) if habits is None else habits
    for kind in _WORDS:
        said = [(habit, likers(habit.table)) for habit in habits if _KINDS.get(habit.covariate, "likes_format") == kind]
        told = set(leaning) if kind == "leans_left" else set()
        who = {one: None for _, some in said for one in some["annotator"].to_list() if one not in told}
        if not who:
            continue
        one_does, several_do = _WORDS[kind]
        names = [
            f"{name(row['annotator'])} (the one {habit.favoured_item} wins {row['odds']:.2f} times as often)"
            for habit, some in said
            for row in some.iter_rows(named=True)
            if row["annotator"] in who
        ]
        n = max(len(habit.table) for habit, _ in said)
        does = one_does if len(who) == 1 else several_do
        sentence = f"{of_all(len(who), n, 'annotator')} {does}: {first_few(names[:SHOWN], len(names))}"
        numbers = {"n": len(who), "n_annotators": n}
        findings.append(Finding(kind, "annotators", "warning", sentence, numbers, tuple(who)))
    return findings


def likers(table: pl.DataFrame) -> pl.DataFrame:
    """Return those whose interval is above 0 and whose odds are notable, the largest first."""
    return table.filter((pl.col("lower") > 0.0) & (pl.col("odds") > NOTABLE_ODDS)).sort(
        "odds", "annotator", descending=[True, False]
    )


def control_findings(consensus: Consensus) -> list[Finding]:
    """Return what controlling for covariates means, and how much wider intervals by cluster are."""
    findings = []
    for covariate, sentence in zip(
        consensus.estimates.get("control") or {}, control_sentences(consensus.estimates), strict=True
    ):
        estimate = consensus.estimates["control"][covariate]
        numbers = {key: estimate[key] for key in ("coefficient", "std_error", "identified")}
        findings.append(Finding(f"control_{covariate}", "method", "info", sentence, numbers))
    by_query = consensus.estimates.get("by_query")
    if by_query:
        sentence = (
            f"intervals by query would be {by_query['wider']:.1f} times as wide as the model's: judgments of a query "
            f"depend on each other; ask for them with {option('robust', 'query')}"
        )
        findings.append(Finding("by_query", "method", "info", sentence, dict(by_query)))
    robust = consensus.estimates.get("robust")
    if robust:
        sentence = f"intervals by {robust['by']} are {robust['wider']:.1f} times as wide as the model's"
        findings.append(
            Finding("robust", "method", "info", sentence, {"wider": robust["wider"], "clusters": robust["clusters"]})
        )
    return findings


def findings_of(facts: Facts) -> Findings:
    """Return the findings that facts support, in the order of the report."""
    annotators = annotator_findings(facts)
    leaning = [who for one in annotators if one.kind in ("leans", "one_side") for who in one.ids]
    return Findings(
        [
            *item_findings(facts), *annotators, *habit_findings(facts.consensus, leaning=leaning),
            *agreement_findings(facts), *contested_findings(facts),
            *judgment_findings(facts), *method_findings(facts), *control_findings(facts.consensus),
        ]
    )  # fmt: skip
