"""CrowdAgg over parts of the judgments: qualities are shared, and agreement is counted part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ...data.consensus import Trace, settle_ties
from ...data.judgments import Judgments
from ...data.parted import PartColumns, PartedFit, read_sample, share_of_rows
from ...protocols import Blocks, Bools, Counts, Floats, Statistics
from ...quality import quality_of_sample, warn_near_chance


class CrowdPart(NamedTuple):
    """The judgments of a part and the crowd that they make, ``None`` where there are none."""

    judgments: Judgments
    crowd: Any


class PartedCrowd(NamedTuple):
    """Stands for the crowd of all parts in the rounds."""

    sums: Blocks
    annotator: Counts
    pairs: Floats

    def totals(self, eta: Floats) -> tuple[Floats]:
        """Return the qualities: totals are those of the parts."""
        return (eta,)

    def agree(self, eta: Floats) -> Floats:
        """Return the number of pairs of each annotator that the totals of the others order alike."""
        agree: Floats = self.sums.total(partial(_agree, eta))[0]
        return agree


@dataclass(frozen=True, eq=False)
class CrowdAggPasses:
    """The rounds over parts; ``rounds`` are those of the method."""

    method: Any
    judged: Any
    trusted: Bools
    crowd_of: Callable[[Any, Judgments], Any]
    rounds: Callable[..., Any] | None

    def lay_out(self, part: Judgments) -> CrowdPart:
        """Return the preference sets of a part."""
        return CrowdPart(part, self.crowd_of(self.method, part) if len(part) else None)

    def solve(self, sums: Blocks) -> PartedFit:
        """Return the scores and what was learned of the annotators."""
        n_annotators = max(len(self.judged.annotators), 1)
        pairs, given, n_ties = sums.total(partial(_survey, n_annotators))
        eta, trace = np.ones(n_annotators), Trace()
        if self.rounds is not None:
            trusted = self.trusted if len(self.trusted) else np.zeros(1, bool)
            eta, trace = self.rounds(PartedCrowd(sums, np.arange(n_annotators), pairs), trusted, self.method)
            if not self.trusted.any():
                warn_near_chance("crowd_agg", eta, pairs)
        columns = [PartColumns(*scores) for scores in sums.read(partial(_read_scores, self.method, eta))]
        sample = partial(read_sample, attrgetter("judgments"), given, share_of_rows(self.judged.rows))
        quality = quality_of_sample(self.method, [part for (part,) in sums.read(sample)], given, {"eta": eta})
        ties = {"n_ties": int(n_ties)} if self.judged.kind == "preference" else {}
        return PartedFit(columns, trace, quality, estimates=ties)


def _survey(n_annotators: int, part: CrowdPart, state: Any) -> tuple[Statistics, Any]:
    """Pairs and weight of each annotator, and the number of ties."""
    judgments = part.judgments
    by = judgments.row_annotator
    given = np.bincount(by, judgments.weight, n_annotators).astype(np.float64)
    ties = float((np.asarray(getattr(judgments, "outcome", np.ones(1))) == 0).sum())
    return (np.zeros(n_annotators) if part.crowd is None else part.crowd.pairs, given, ties), None


def _agree(eta: Floats, part: CrowdPart, state: Any) -> tuple[Statistics, Any]:
    """Pairs of each annotator that the others order alike."""
    return (np.zeros(len(eta)) if part.crowd is None else part.crowd.agree(*part.crowd.totals(eta)),), None


def _read_scores(method: Any, eta: Floats, part: CrowdPart, state: Any) -> tuple[Statistics, Any]:
    """Scores of the items of a part."""
    scores = np.zeros(part.judgments.n_items) if part.crowd is None else part.crowd.scores(eta)
    return (settle_ties(method, part.judgments, scores), None, None, None, None), None
