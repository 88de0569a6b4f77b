"""Recorded overlapping grades: what settings cost there, and how good the grades are that they buy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdrank.data.judgments import Grades
from crowdrank.metrics import ndcg
from crowdrank.protocols import Floats

from ..work import Work
from .settings import AVERAGED, BASELINE, NINE, Setting, averaged_name
from .simulated import shuffle_grades

WEB, TREC = "web-search-relevance5", "trec-rf10-labels-full"


@dataclass(frozen=True, eq=False)
class Recorded:
    """Grades of a public crowd, with the grades that experts gave to some of the items."""

    name: str
    grades: Grades
    known: Floats

    @classmethod
    def of(cls, work: Work, name: str) -> Recorded:
        """Return a data set."""
        data = work.load(name)
        assert isinstance(data.judgments, Grades)
        assert data.truth is not None
        return cls(name, data.judgments, data.truth.align(data.judgments.items))

    @property
    def n_most(self) -> int:
        """Number of grades that at least half of the items of known grade have."""
        counts = np.bincount(self.grades.item, minlength=self.grades.n_items)[np.isfinite(self.known)]
        return int(np.median(counts))


BOUGHT: dict[str, Setting] = {
    BASELINE: NINE[BASELINE],
    **{name: AVERAGED[name] for name in map(averaged_name, ("If-good-2", "If-good-3", "3-overlap", "Good-till-bad"))},
    "Mv3": NINE["Mv3"],
    "Highest-3": NINE["Highest-3"],
    averaged_name("11-overlap"): AVERAGED[averaged_name("11-overlap")],
    "Mv11": NINE["Mv11"],
}
"""Settings whose grades are measured against the truth, before any ranker."""


def gain_errors(judged: Grades, known: Floats) -> dict[str, float]:
    """Return the root mean square error of the gains of each setting, on items of known grade."""
    items = np.isfinite(known) & judged.judged_items
    true = np.exp2(known[items]) - 1
    return {
        name: float(np.sqrt(np.mean((setting.gains(judged)[items] - true) ** 2))) for name, setting in BOUGHT.items()
    }


def misses(judged: Grades) -> float:
    """Return how often a second grade is Good+ where the first one is Fair-."""
    pairs = Setting("2-overlap").buy(judged)
    order = np.argsort(pairs.item, kind="stable")
    both = np.flatnonzero(pairs.item[order][1:] == pairs.item[order][:-1])
    good = pairs.at_least(2)[order]
    return float(np.mean(good[both + 1][~good[both]]))


def replay(data: Recorded, seed: int) -> dict[str, Any]:
    """Return costs, errors of gains, and nDCG of the items ordered by the grades bought, for one order of asking."""
    judged = shuffle_grades(data.grades, seed)
    settings = {**NINE, "If-good-2": Setting("if-good-2")}
    figures: dict[str, Any] = {
        "costs": {name: setting.costs(judged) for name, setting in settings.items()},
        "errors": gain_errors(judged, data.known),
        "misses": misses(judged),
    }
    if judged.n_queries > 1:
        figures["order"] = {name: _order(data, setting.gains(judged)) for name, setting in BOUGHT.items()}
    return figures


def _order(data: Recorded, gains: Floats) -> dict[str, float]:
    """nDCG of the items of known grade, in per cent, when they are ordered by these gains."""
    items = np.isfinite(data.known)
    query = data.grades.items.query[items]
    return {f"nDCG@{k}": 100 * float(ndcg(data.known[items], gains[items], query, k=k)) for k in (1, 3, 5, 10)}
