"""What there is to say of annotators, their agreement, the judgments and the fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from ..data.judgments import Grades, Judgments, Preferences
from ..data.mixed import Mixed, parts_of
from ..data.recording import FEWEST
from ..wording import SHOWN, counted, first_few, of_all, option, percent
from .crowd_agreement import Agreement
from .facts import Facts
from .finding import Finding, name, name_ids
from .flags import BY_QUALITY, DOUBTS, FLAGS
from .messages import flagged_habits
from .self_consistency import consistency
from .sides import recorded_sentences
from .verdicts import POOR, doubts

_LOW_ALPHA = 0.2
_CHANCE = 0.5
_FEW_GAVE_HALF = 0.05
_FEW_SHARED, _MANY_SHARED = 0.01, 0.05
"""Shares of items that annotators may get wrong together, from which on it is said, and is a warning."""


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
    n, findings = len(table), []
    for code in BY_QUALITY:
        who = tuple(one.annotator for one in facts.suspects if one.verdict == code)
        if who:
            findings.append(_flag_finding(code, who, n, name_ids(who)))
    codes = doubts(table)
    n_doubtful = sum(code != "" for code in codes)
    if not findings and n_doubtful < n:
        rest = f"{n - n_doubtful:,} other" if n_doubtful else f"{n:,}"
        sentence = f"none of the {rest} annotators seems to guess or to be reversed"
        findings.append(Finding("annotators_fine", "annotators", "good", sentence, {"n_annotators": n}))
    for code, kind in zip(DOUBTS, ("too_few_judgments", "unmatched"), strict=True):
        who = tuple(one for one, own in zip(table["annotator"].to_list(), codes, strict=True) if own == code)
        if who:
            sentence = f"{of_all(len(who), n, 'annotator')} {FLAGS[code].words(len(who))}"
            numbers = {"n": len(who), "n_annotators": n}
            findings.append(Finding(kind, "annotators", FLAGS[code].severity, sentence, numbers, who))
    return findings


def _flag_finding(code: str, who: tuple[Any, ...], n: int, names: str) -> Finding:
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
    findings: list[Finding] = []
    one_sided: set[int] = set()
    for habit, (codes, words) in flagged.items():
        # those who always choose one side lean to it, which goes without saying
        kept = [(code, word) for code, word in zip(codes.tolist(), words, strict=True) if code not in one_sided]
        if not kept:
            continue
        one_sided |= {code for code, _ in kept} if habit == "one_side" else set()
        ids = judged.annotators.ids.gather([code for code, _ in kept]).to_list()
        names = [f"{name(one)} ({word})" for one, (_, word) in zip(ids[:SHOWN], kept, strict=False)]
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
        f"answers to one item correlate by up to {correlation:.2f} beyond what its class and the annotators explain: "
        f"{each:.1f} annotators per item are worth {worth:.1f} independent ones, and on up to {percent(shared)} of "
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
