"""What there is to say of items: what won, how sure that is, what is left open."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from ..wording import SHOWN, counted, first_few, of_all, percent
from .facts import SURE, Facts
from .finding import Finding, name, name_ids
from .messages import group_sentences

_MAX_TIMES_JUDGMENTS = 20.0
_MIN_CONFIDENCE = 0.8


def item_findings(facts: Facts) -> list[Finding]:
    """Return what there is to say of items."""
    if not len(facts.consensus.items):
        return [Finding("empty", "items", "problem", "there are no items", {"n_items": 0})]
    findings = _of_classes(facts) if facts.consensus.nominal else [*_winner(facts), *_order(facts)]
    return [*findings, *_uncertain_grades(facts), *_unjudged_finding(facts), *_coverage(facts), *_open_places(facts)]


def _winner(facts: Facts) -> list[Finding]:
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
