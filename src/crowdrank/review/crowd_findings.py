"""What there is to say of annotators, their agreement, the judgments and the fit."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import polars as pl

from ..data.judgments import Grades, Judgments, Preferences
from ..data.mixed import Mixed, parts_of
from ..data.recording import FEWEST
from ..protocols import takes_argument
from ..registry import method_class
from ..wording import SHOWN, counted, first_few, of_all, option, percent
from .crowd_agreement import Agreement
from .facts import Facts
from .finding import Finding, name, name_ids
from .flags import BY_QUALITY, DOUBTS, FLAGS
from .self_consistency import consistency
from .sides import recorded_sentences
from .verdicts import POOR

_MOST_NAMED = 10_000
"""Annotators, and items, whose names are looked at for those of programs."""

_LOW_ALPHA = 0.2
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
