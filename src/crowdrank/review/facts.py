"""What findings are made of, each computed once and only where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.consensus import Consensus, Diagnostics, Quality
from ..data.index import Items
from ..data.judgments import Grades, Judgments, Mixed, Preferences, parts_of
from ..errors import CrowdrankError, ParameterError
from ..protocols import Bools, Counts, Floats
from ..quality import INTERVAL, fit_quietly, scores_quietly
from ..registry import method_class
from .crowd_agreement import Agreement, agreement, contested_items
from .diagnosis import diagnose, flagged_habits
from .fragility import Fragility, fragility_of, votes_by_query
from .habits import Flagged, consistency_sentence
from .sentences import BY_QUALITY, DOUBTS, EMPTY, SURE

_QUICK_METHODS = ("bradley_terry", "mean_grade")
# threshold (sample): judgments up to which a report fits again, by slower methods, to see how few of them decide
_MAX_ROWS_REFITTED = 100_000
"""Judgments up to which a finding about how few of them decide is confirmed by refits of slower methods."""


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
    def doubts(self) -> dict[Any, str]:
        """Those who cannot be distinguished from guessing, with the flag that says why, unless a habit explains it."""
        if self.table is None:
            return {}
        explained: set[Any] = set()
        if self.judgments is not None:
            codes = [code for habit, flagged in self.habits.items() if habit in EMPTY for code in flagged.codes]
            explained = set(self.judgments.annotators.ids.gather(codes).to_list())
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
        counts = np.zeros(len(self.consensus.items), np.int64)
        for part in parts_of(self.judgments):
            columns = (part.left, part.right) if isinstance(part, Preferences) else (part.item,)
            for column in columns:
                counts += np.bincount(column, minlength=len(counts))
        return counts

    @cached_property
    def per_annotator(self) -> Counts | None:
        """Number of judgments that each annotator gave."""
        if self.judgments is None or not self.judgments.n_annotators:
            return None
        return np.bincount(self.judgments.annotator, minlength=self.judgments.n_annotators)

    @cached_property
    def has_order(self) -> bool:
        """Whether there is an order to speak of."""
        return not self.consensus.nominal

    @cached_property
    def neighbours(self) -> Neighbours:
        """Items that follow each other in the order of their query."""
        items, scores = self.consensus.items, self.consensus.scores
        order = np.lexsort((np.arange(len(items)), -scores, items.query))
        same = items.query[order[1:]] == items.query[order[:-1]]
        first, second = order[:-1][same], order[1:][same]
        place = (np.arange(len(order)) - items.offsets[items.query[order]])[:-1][same]
        known = self.has_order and self.consensus.uncertainty is not None and len(first)
        return Neighbours(first, second, place, self.consensus.beats_each(first, second) if known else None)

    @cached_property
    def intervals(self) -> pl.DataFrame | None:
        """Intervals of scores and ranks, best first in each query."""
        return None if self.consensus.uncertainty is None else self.consensus.intervals(SURE)

    @cached_property
    def fragility(self) -> Fragility | tuple[Counts, Counts] | None:
        """How few votes decide the first place, of several queries each; ``None`` where that is not known."""
        if self.judgments is None or self.sampled or not self.has_order or not len(self.neighbours.first):
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

    @property
    def what(self) -> str:
        """What annotators agree or disagree on."""
        return "item" if self.judgments is None or isinstance(self.judgments, Grades) else "pair"


def facts_of(consensus: Consensus, judgments: Judgments | Mixed | None) -> Facts:
    """Return what findings are made of."""
    if not isinstance(consensus, Consensus):
        raise ParameterError(
            f"findings are about a consensus, not about a {type(consensus).__name__}; make one with aggregate"
        )
    if judgments is not None and not _same_items(consensus.items, judgments.items):
        raise ParameterError(
            f"the consensus has {len(consensus.items):,} items and the judgments {judgments.n_items:,}, which are not "
            "the same; give the judgments it was made from"
        )
    return Facts(consensus, judgments)


def _same_items(one: Items, other: Items) -> bool:
    """Whether items are the same, so their codes are too."""
    if one is other:
        return True
    return len(one) == len(other) and all(
        mine.cast(pl.String).equals(theirs.cast(pl.String), check_names=False)
        for mine, theirs in ((one.ids, other.ids), (one.query_ids(), other.query_ids()))
    )


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
    for code, row in zip(quality_flags(frame), frame.iter_rows(named=True), strict=True):
        if code in BY_QUALITY:
            lower, upper = row.get("lower", row["quality"]), row.get("upper", row["quality"])
            number, pairs = row["n_judgments"], row.get("n_pairs", row["n_judgments"])
            suspicious.append(Suspect(row["annotator"], row["quality"], lower, upper, number, pairs, code))
    return sorted(suspicious, key=lambda one: (one.upper >= 0.5, one.quality, str(one.annotator)))


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
    number = frame["n_judgments"]
    columns = [frame[name] if name in frame.columns else frame["quality"] for name in ("quality", "lower", "upper")]
    columns += [number, frame["n_pairs"] if "n_pairs" in frame.columns else number]
    codes = []
    for quality, lower, upper, n_judgments, n_pairs in zip(*columns, strict=True):
        code = verdict(quality, lower, upper, n_judgments, n_pairs)
        if not code and "lower" in frame.columns and lower <= 0.5:
            code = "unmatched" if n_judgments >= ENOUGH_JUDGMENTS else "unsure"
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

    if betainc(_LEAST_SHAPE, second(_LEAST_SHAPE), lower) < tail:
        first = _LEAST_SHAPE
    else:
        first = brentq(lambda a: betainc(a, second(a), lower) - tail, _LEAST_SHAPE, 1e5)
    return float(betaincinv(first, second(first), (1 + level) / 2))
