"""What findings are made of, each computed once and only where it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.diagnostics import Diagnostics
from ..data.index import Items
from ..data.judgments import Grades, Judgments, Preferences
from ..data.mixed import Mixed, parts_of
from ..errors import ParameterError
from ..protocols import Bools, Counts, Floats
from ..quality import fit_quietly, scores_quietly
from ..registry import method_class
from .crowd_agreement import Agreement, agreement
from .diagnosis import diagnose
from .flags import EMPTY
from .messages import flagged_habits
from .self_consistency import consistency_sentence
from .sides import Flagged
from .verdicts import Suspect, annotator_table, doubts, suspects

SURE = 0.95
"""From this probability on an item is taken to be better than the next."""


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
        each = zip(self.table["annotator"].to_list(), doubts(self.table), strict=True)
        return {who: code for who, code in each if code and who not in explained}

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
        scores: Floats = fit_quietly(method, self.judgments, **given).scores
        return scores

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
    def is_unjudged(self) -> Bools | None:
        """Whether each item was never judged."""
        return None if self.judgments is None else ~self.judgments.judged_items

    @cached_property
    def contested_items(self) -> pl.DataFrame:
        """Where the crowd disagrees most."""
        from .contested import contested_items

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
