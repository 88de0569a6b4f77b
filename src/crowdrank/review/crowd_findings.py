"""What there is to say of annotators, their agreement, the judgments and the fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from ..data.judgments import Grades, Judgments, Preferences
from ..data.mixed import Mixed, parts_of
from ..data.recording import FEWEST
from ..wording import SHOWN, counted, first_few, of_all, percent
from .agreement import Agreement
from .facts import Facts
from .finding import Finding, name, named
from .flags import BY_QUALITY, FLAGS
from .messages import flagged_habits
from .self_consistency import consistency
from .sides import recorded_sentences
from .verdicts import POOR, unsure

_LOW_ALPHA = 0.2
_CHANCE = 0.5
_FEW_GAVE_HALF = 0.05


def annotator_findings(facts: Facts) -> list[Finding]:
    """Return what there is to say of annotators."""
    table = facts.table
    if table is None or not len(table):
        sentence = "the judgments name no annotators, so nothing can be said about them"
        return [Finding("no_annotators", "annotators", "info", sentence)]
    if len(table) == 1:
        who = table["annotator"][0]
        sentence = f"{name(who)} gave all judgments; with only one annotator quality cannot be estimated"
        return [
            Finding("one_annotator", "annotators", "warning", sentence, {"n_annotators": 1}, (who,)),
            *_unseen_sides(facts),
        ]
    return [*_verdicts(facts, table), *_quality(table), *_habits(facts), *_dependent(facts)]


def _verdicts(facts: Facts, table: pl.DataFrame) -> list[Finding]:
    """Those who guess, are reversed or poor; those who judged too little."""
    n, found = len(table), []
    for code in BY_QUALITY:
        who = tuple(one.annotator for one in facts.suspects if one.verdict == code)
        if who:
            found.append(_flagged(code, who, n, named(who)))
    few = tuple(table.filter(unsure(table))["annotator"].to_list())
    if not found and len(few) < n:
        rest = f"{n - len(few):,} other" if few else f"{n:,}"
        sentence = f"none of the {rest} annotators seems to guess or to be reversed"
        found.append(Finding("annotators_fine", "annotators", "good", sentence, {"n_annotators": n}))
    if few:
        sentence = f"{of_all(len(few), n, 'annotator')} {FLAGS['unsure'].words(len(few))}"
        numbers = {"n": len(few), "n_annotators": n}
        found.append(Finding("too_few_judgments", "annotators", FLAGS["unsure"].severity, sentence, numbers, few))
    return found


def _flagged(code: str, who: tuple[Any, ...], n: int, names: str) -> Finding:
    """The finding that some of ``n`` annotators have a flag."""
    flag = FLAGS[code]
    sentence = f"{of_all(len(who), n, 'annotator')} {flag.words(len(who))}: {names}"
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
    n, flagged = odd.n_annotators, flagged_habits(judged, odd.annotators(), facts.consensus.scores)
    found: list[Finding] = []
    one_sided: set[int] = set()
    for habit, (codes, words) in flagged.items():
        # those who always choose one side lean to it, which goes without saying
        kept = [(code, word) for code, word in zip(codes.tolist(), words, strict=True) if code not in one_sided]
        if not kept:
            continue
        one_sided |= {code for code, _ in kept} if habit == "one_side" else set()
        ids = judged.annotators.ids.gather([code for code, _ in kept]).to_list()
        names = [f"{name(one)} ({word})" for one, (_, word) in zip(ids[:SHOWN], kept, strict=False)]
        found.append(_flagged(habit, tuple(ids), n, first_few(names, len(ids))))
    unseen = _unseen_sides(facts)
    if "leans" in flagged and not unseen and not {"leans", "one_side"} & {one.kind for one in found}:
        sentence = "no annotator leans clearly to one side"
        found.append(Finding("no_bias", "annotators", "info", sentence, {"n_annotators": n}))
    return found + unseen


def _unseen_sides(facts: Facts) -> list[Finding]:
    """That left and right are not what annotators saw."""
    judged = facts.judgments
    if not isinstance(judged, Preferences):
        return []
    numbers = {"n_unknown": int((~judged.shown).sum()), "n_judgments": len(judged)}
    told = recorded_sentences(judged)
    return [Finding("sides_unknown", "annotators", "info", sentence, numbers) for sentence in told]


def _dependent(facts: Facts) -> list[Finding]:
    """Families of annotators who err together, and what the crowd is worth."""
    odd = facts.diagnostics
    if odd is None or odd.effective_annotators is None or not odd.n_annotators:
        return []
    families = odd.families()
    found = families.filter(pl.col("origin") == "found") if len(families) else families
    if not len(found):
        return []
    n, worth = odd.n_annotators, odd.effective_annotators
    table = odd.annotators()
    ids = tuple(table.filter(pl.col("family").is_not_null())["annotator"].to_list())
    what = "group errs" if len(found) == 1 else "groups err"
    sentence = f"{len(found)} {what} together ({named(ids)}), so the {n:,} annotators are worth {worth:.1f} "
    sentence += "independent ones"
    numbers = {"n_families": len(found), "effective_annotators": worth, "n_annotators": n}
    return [Finding("dependent", "annotators", "warning", sentence, numbers, ids)]


def agreement_findings(facts: Facts) -> list[Finding]:
    """Return how far annotators agree."""
    found, judged = facts.agreement, facts.judgments
    if found is None or judged is None:
        return []
    return [*_between(facts, found, judged), *_self_consistency(facts, judged)]


def _between(facts: Facts, found: Agreement, judged: Judgments | Mixed) -> list[Finding]:
    """How far two annotators agree."""
    what = facts.what
    if not found.n_shared:
        if facts.per_annotator is not None and (facts.per_annotator > 0).sum() == 1:
            return []
        by = "twice" if facts.consistency is None else "by two annotators"
        sentence = f"no {what} was judged {by}, so nothing shows whether annotators agree"
        return [Finding("no_overlap", "agreement", "warning", sentence)]
    numbers = {"agreement": found.same, "n_shared": found.n_shared}
    sentence = f"two annotators who judge the same {what} agree in {percent(found.same)} of cases"
    if not judged.n_annotators:
        sentence = f"two judgments of the same {what} agree in {percent(found.same)} of cases"
    if not math.isfinite(found.alpha):
        return [Finding("agreement", "agreement", "info", sentence, numbers)]
    numbers["alpha"] = found.alpha
    severity = "warning" if found.alpha < _LOW_ALPHA else "info"
    sentence += f" (Krippendorff's alpha {found.alpha:.2f}; 0 is chance, 1 is full agreement)"
    return [Finding("agreement", "agreement", severity, sentence, numbers)]


def _self_consistency(facts: Facts, judged: Judgments | Mixed) -> list[Finding]:
    """How far annotators agree with themselves when asked again."""
    sentence, odd = facts.consistency, facts.diagnostics
    if sentence is None or odd is None:
        return []
    numbers: dict[str, float] = {}
    ids: list[Any] = []
    chance = False
    for how in ("repeated", "swapped"):
        told = consistency(odd.annotators(), how)
        if told is not None:
            numbers |= {f"n_{how}": told.n, f"share_{how}": told.share}
            numbers |= {f"{how}_lower": told.lower, f"{how}_upper": told.upper}
            ids += told.annotators
            chance |= told.n >= FEWEST and told.lower <= _CHANCE
    severity = "warning" if chance and not isinstance(judged, Grades) else "info"
    return [Finding("self_consistency", "agreement", severity, sentence, numbers, tuple(dict.fromkeys(ids)))]


def judgment_findings(facts: Facts) -> list[Finding]:
    """Return what there is to say of the judgments as a whole."""
    judged = facts.judgments
    if judged is None:
        return []
    counts = facts.per_annotator
    n = 0 if counts is None else int((counts > 0).sum())
    given = " and ".join(counted(len(part), part.kind) for part in parts_of(judged))
    by = f" by {counted(n, 'annotator')}" if n else ""
    of = "" if judged.n_queries == 1 else f" of {counted(judged.n_queries, 'query')}"
    on = f"{counted(judged.n_items, 'item')}{of}"
    numbers = {"n_judgments": len(judged), "n_annotators": n, "n_items": judged.n_items, "n_queries": judged.n_queries}
    found = [Finding("judgments", "judgments", "info", f"{given}{by} on {on}", numbers)]
    if counts is not None and n > 1:
        falling = np.sort(counts)[::-1]
        half = int(np.searchsorted(np.cumsum(falling), 0.5 * counts.sum())) + 1
        severity = "warning" if n >= 10 and half <= _FEW_GAVE_HALF * n else "info"
        sentence = f"{of_all(half, n, 'annotator')} gave half of the judgments"
        found.append(Finding("load", "judgments", severity, sentence, {"n": half, "n_annotators": n}))
    return found


def method_findings(facts: Facts) -> list[Finding]:
    """Return how the fit went."""
    trace, method = facts.consensus.trace, facts.consensus.method
    numbers = {"n_iter": trace.n_iter}
    if trace.converged:
        rounds = counted(trace.n_iter, "round")
        return [Finding("converged", "method", "good", f"{method} converged after {rounds}", numbers)]
    sentence = f"{method} stopped after {counted(trace.n_iter, 'round')} before it converged; raise max_iter"
    return [Finding("not_converged", "method", "warning", sentence, numbers)]
