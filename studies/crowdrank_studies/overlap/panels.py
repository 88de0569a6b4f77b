"""Single annotators against all of them together: figures 1 to 3."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from crowdrank.aggregators import MajorityVote
from crowdrank.api import aggregate
from crowdrank.data.judgments import Grades
from crowdrank.protocols import Bools, Floats
from crowdrank.schemes import KOverlap
from crowdrank.schemes.grade_rules import replay
from crowdrank.simulate import PerItem, draw_truth, grades, profile

from .simulated import PANEL, shuffle_grades

TOGETHER = {"majority vote": "majority_vote", "mean grade": "mean_grade", "Dawid and Skene": "dawid_skene"}
"""What several grades of an item are put together by; the paper does not say."""

LEVELS = ("Bad", "Fair", "Good", "Excellent", "Perfect")

_MIN_GRADES = 100
"""Grades of known truth that a recorded annotator needs to be compared."""


def small_panel(seed: int) -> dict[str, Any]:
    """Return agreement with the truth for 5 queries of 22 items, which the same eleven annotators graded."""
    truth = draw_truth(5, 22, seed=seed)
    pool = profile(n_annotators=PANEL, seed=seed)
    drawn = grades(truth, pool, PerItem(k=PANEL), levels=range(len(LEVELS)), seed=seed).judgments
    assert isinstance(drawn, Grades)
    return _agreement(drawn, truth.truth.align(drawn.items), PANEL, seed, few=1)


def recorded_panel(judged: Grades, known: Floats, n_most: int, seed: int) -> dict[str, Any]:
    """Return the same for recorded grades, on items of known grade that have as many as are read at most."""
    enough: Bools = np.isfinite(known) & (np.bincount(judged.item, minlength=judged.n_items) >= n_most)
    return _agreement(judged.select(enough[judged.item]), known, n_most, seed, few=_MIN_GRADES)


def _agreement(judged: Grades, known: Floats, n_most: int, seed: int, *, few: int) -> dict[str, Any]:
    """Share of items with the right grade by number of grades, and that of the best annotator, in per cent."""
    right = np.bincount(judged.annotator, judged.grade == known[judged.item], judged.n_annotators)
    number = np.bincount(judged.annotator, minlength=judged.n_annotators)
    best = float((right[number >= few] / number[number >= few]).max())
    figures: dict[str, Any] = {"best": 100 * best, "mean": 100 * float(right.sum() / number.sum())}
    items, order = judged.judged_items, shuffle_grades(judged, seed)
    for name, method in TOGETHER.items():
        figures[name] = []
        for k in range(1, n_most + 1):
            with warnings.catch_warnings():
                # few grades of few items are what is asked about
                warnings.simplefilter("ignore")
                consensus = aggregate(replay(KOverlap(k=k), order), method, seed=seed)
            grade = np.round(consensus.scores)
            if consensus.grade is not None:
                grade = order.level_values[consensus.grade]
            figures[name].append(100 * float(np.mean((grade == known)[items])))
    return figures


def featured_annotators(judged: Grades, few: int) -> dict[str, Any]:
    """Return the shares of the annotator who gives each grade most often, and of the majority vote on the same items.

    ``p`` are those of the hypotheses that featured annotators do not differ from each other, and each from the vote.
    """
    levels = judged.level_values
    code = judged.level_codes()[0]
    table = np.zeros((judged.n_annotators, len(levels)))
    np.add.at(table, (judged.annotator, code), 1)
    chosen = table.sum(axis=1) >= few
    shares = np.where(chosen[:, None], table / np.maximum(table.sum(axis=1, keepdims=True), 1), -1)
    who = shares.argmax(axis=0)
    vote = MajorityVote().fit(judged).grade
    assert vote is not None
    votes = np.array([np.bincount(vote[judged.item[judged.annotator == one]], minlength=len(levels)) for one in who])
    own = table[who]
    return {
        "own": own / own.sum(axis=1, keepdims=True),
        "vote": votes / votes.sum(axis=1, keepdims=True),
        "all": np.bincount(code, minlength=len(levels)) / len(code),
        "p among": _differ(own[np.unique(who, return_index=True)[1]]),
        "p vote": [_differ(np.array(pair)) for pair in zip(own, votes, strict=True)],
        "n": own.sum(axis=1),
        "n annotators": int(chosen.sum()),
    }


def _differ(table: Floats) -> float:
    """p value of the hypothesis that all rows have the same shares, by the chi-squared test."""
    from scipy.stats import chi2_contingency

    table = table[:, table.sum(axis=0) > 0]
    return float(chi2_contingency(table).pvalue) if min(table.shape) > 1 else 1.0
