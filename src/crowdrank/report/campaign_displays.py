"""Pictures of labelling schemes against each other: what money buys."""

from __future__ import annotations

from typing import Self

import numpy as np
import polars as pl

from ..errors import ParameterError
from .drawing import AMBER, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, Display

_LOOKS = tuple(zip((BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY, GREY), "osD^vPX", strict=True))

_NAMES = {
    "gain_error": "root mean square error of the gain",
    "log_loss": "log-loss of the true grade",
    "accuracy": "share of items with the true grade",
    "tau": "Kendall's tau with the truth",
    "ranker": "nDCG of a ranker trained on it",
}


class CampaignDisplay(Display):
    """Learning curves of labelling schemes: a measure against what was spent, with its spread over repetitions.

    Parameters
    ----------
    curves
        scheme, seed, round, cost and measures, as :func:`crowdrank.api.campaigns` returns them.
    measure
        The column to draw.
    """

    size = (6.4, 4.2)

    def __init__(self, curves: pl.DataFrame, *, measure: str) -> None:
        self.curves, self.measure = curves, measure

    @classmethod
    def from_curves(cls, curves: pl.DataFrame, *, measure: str | None = None) -> Self:
        """Return the display of one measure; by default the first one."""
        known = [name for name in curves.columns if name not in ("scheme", "seed", "round", "cost", "n_judgments")]
        chosen = known[0] if measure is None else measure
        if chosen not in known:
            raise ParameterError(f"the curves have no measure {chosen!r}; they have {', '.join(known)}")
        return cls(curves, measure=chosen)

    def _draw(self) -> None:
        """Draw on the axes."""
        for place, (name, mine) in enumerate(self.curves.group_by("scheme", maintain_order=True)):
            colour, mark = _LOOKS[place % len(_LOOKS)]
            table = mine.group_by("round").agg(
                pl.mean("cost"), pl.mean(self.measure), pl.std(self.measure).alias("spread"), pl.len().alias("n")
            )
            # a round that only some repetitions reached is another crowd's
            table = table.filter(pl.col("n") == pl.col("n").max()).sort("cost")
            cost, mean = table["cost"].to_numpy(), table[self.measure].to_numpy()
            spread = np.nan_to_num(table["spread"].to_numpy().astype(float))
            self.ax_.plot(cost, mean, color=colour, marker=mark, markersize=3.5, linewidth=1.5, label=str(name[0]))
            self.ax_.fill_between(cost, mean - spread, mean + spread, color=colour, alpha=0.14, linewidth=0)
        self.ax_.set_xlabel("cost (judgments)")
        self.ax_.set_ylabel(_NAMES.get(self.measure, self.measure))
        self.ax_.legend(title="scheme", frameon=False)
        self.ax_.grid(axis="y", alpha=0.4)
