"""Annotators worth a look: those who guess, who answer the wrong way round, or who are barely better than guessing."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ..data.consensus import Quality
from ..data.diagnostics import Diagnostics
from ..quality import INTERVAL

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


@dataclass(frozen=True)
class Suspect:
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
    suspicious = []
    for row in frame.iter_rows(named=True):
        lower, upper = row.get("lower", row["quality"]), row.get("upper", row["quality"])
        number, pairs = row["n_judgments"], row.get("n_pairs", row["n_judgments"])
        judged = verdict(row["quality"], lower, upper, number, pairs)
        if judged:
            suspicious.append(Suspect(row["annotator"], row["quality"], lower, upper, number, pairs, judged))
    return sorted(suspicious, key=lambda one: (one.upper >= 0.5, one.quality, str(one.annotator)))


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
        root: float = brentq(lambda b: betainc(first, b, upper) - (1 - tail), 1e-6, 1e9)
        return root

    if betainc(_LEAST_SHAPE, second(_LEAST_SHAPE), lower) < tail:
        first = _LEAST_SHAPE
    else:
        first = brentq(lambda a: betainc(a, second(a), lower) - tail, _LEAST_SHAPE, 1e5)
    return float(betaincinv(first, second(first), (1 + level) / 2))


def doubts(frame: pl.DataFrame) -> list[str]:
    """Return why each annotator cannot be distinguished from guessing, the code of a flag, nothing for those who can.

    No verdict is passed on them, and 0.5 is not below their interval; those whose interval lies below one half, but who
    judged too little to be called reversed, are among them. ``unsure`` judged too little. ``unmatched`` judged enough,
    but others judged too little of the same, or contradict each other, as two camps do.

    Examples
    --------
    >>> columns = {"quality": [0.5, 0.5, 0.8], "n_judgments": [4, 80, 80]}
    >>> doubts(pl.DataFrame({**columns, "lower": [0.1, 0.1, 0.7], "upper": [0.9, 0.9, 0.9]}))
    ['unsure', 'unmatched', '']
    """
    if "lower" not in frame.columns:
        return [""] * len(frame)
    codes = []
    pairs_in = "n_pairs" if "n_pairs" in frame.columns else "n_judgments"
    columns = ("quality", "lower", "upper", "n_judgments", pairs_in)
    for quality, lower, upper, number, pairs in zip(*(frame[name] for name in columns), strict=True):
        in_doubt = lower <= 0.5 and not verdict(quality, lower, upper, number, pairs)
        codes.append(("unmatched" if number >= ENOUGH_JUDGMENTS else "unsure") if in_doubt else "")
    return codes
