"""The settings that are compared: which grades are bought, and what a ranker is given of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from crowdrank.api import aggregate
from crowdrank.data.judgments import Grades
from crowdrank.protocols import Floats
from crowdrank.registry import make
from crowdrank.schemes.grade_rules import replay

GOOD = 2
"""Grade from which on an item is Good+."""

BASELINE = "Baseline"
TRUTH = "Truth"
"""Training on the true grades, as a limit."""


@dataclass(frozen=True)
class Setting:
    """One setting.

    Parameters
    ----------
    scheme
        Which grades are bought.
    aggregator
        What they are put together by; ``None`` learns from a row for each grade.
    factor
        How much more rows of Good+ grades weigh.
    copies
        Whether rows of one item are taken for different items, as a ranker does that does not know of items.
    """

    scheme: str
    aggregator: str | None = None
    factor: float = 1.0
    copies: bool = False

    def buy(self, grades: Grades) -> Grades:
        """Return what is bought of grades that stand in the order asked."""
        bought = replay(make("scheme", self.scheme), grades)
        return bought if self.factor == 1 else bought.weighted(GOOD, self.factor)

    def gains(self, grades: Grades) -> Floats:
        """Return the gain of each item, as a ranker learns it, from what is bought; means where every grade is used."""
        name = self.aggregator or "mean_gain"
        scores = aggregate(self.buy(grades), name).scores
        return scores if name == "mean_gain" else np.exp2(scores) - 1

    def costs(self, grades: Grades) -> dict[str, float]:
        """Return grades and training rows per item, and rows below Good for each one from there on."""
        bought = self.buy(grades)
        n_items = int(bought.judged_items.sum())
        if self.aggregator is None:
            good, rows = bought.at_least(GOOD), bought.row_weight
        else:
            good = aggregate(bought, self.aggregator).scores[bought.judged_items] >= GOOD
            rows = np.ones(n_items)
        n_good, n_rows = float(rows[good].sum()), float(rows.sum())
        ratio = (n_rows - n_good) / n_good
        return {"labelling": len(bought) / n_items, "training": n_rows / n_items, "Fair- : Good+": ratio}


NINE: dict[str, Setting] = {
    "If-good-3": Setting("if-good-3"),
    "11-overlap": Setting("11-overlap"),
    "Good-till-bad": Setting("good-till-bad-11"),
    "Highest-3": Setting("3-overlap", "highest_grade"),
    "3-overlap": Setting("3-overlap"),
    "If-good-x3": Setting("single", factor=3),
    "Mv3": Setting("3-overlap", "majority_vote"),
    "Mv11": Setting("11-overlap", "majority_vote"),
    BASELINE: Setting("single"),
}
"""The settings of the paper; a row for each grade unless they are put together."""

KS = (2, 3, 4, 5, 6)

MORE = {f"If-good-{k}": Setting(f"if-good-{k}") for k in KS if k != 3}
"""Other numbers of grades."""


def averaged_name(name: str) -> str:
    """Return the name of the setting whose gains are averaged."""
    return f"{name}, mean gain"


AVERAGED = {
    averaged_name(name): Setting(setting.scheme, "mean_gain")
    for name, setting in {**MORE, **NINE}.items()
    if setting.aggregator is None and setting.factor == 1 and name != BASELINE
}
"""The same grades, one row per item with the mean of the gains: what we would do."""


def copied_name(name: str) -> str:
    """Return the name of the setting whose rows are plain copies."""
    return f"{name}, plain copies"


COPIED = {
    copied_name(name): replace({**NINE, **MORE}[name], copies=True) for name in ("If-good-2", "If-good-3", "3-overlap")
}
"""The same rows without telling the ranker which are of one item."""

ALL: Mapping[str, Setting] = {**NINE, **MORE, **AVERAGED, **COPIED}
