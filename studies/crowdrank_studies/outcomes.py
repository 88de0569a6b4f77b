"""What a study finds: figures of a paper beside ours, and how each of its claims fared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

VERDICTS = {
    "reproduced": "the figures say what the paper says",
    "same trend": "the direction is that of the paper; its size or certainty is not",
    "not reproduced": "the figures say otherwise",
    "undecided": "the spread over repetitions does not allow a verdict, and one repetition never does",
    "not decidable": "what it needs was never published; what we see on what stands in for it is told as ours",
    "not measured": "a package that it needs is not installed",
}
"""How a claim may fare, and what that means."""

DECIDED = ("reproduced", "same trend", "not reproduced")

OVER = {
    "seeds": "standard deviation over seeds",
    "queries": "standard error over queries",
    "folds": "standard deviation over folds",
    "runs": "standard deviation over folds and repetitions",
    "items": "standard error over items",
    "once": "measured once",
}
"""What repetitions are over -> what the spread is."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure of a paper, and ours.

    Parameters
    ----------
    place
        Where it stands in the paper, such as ``"table 2 (a)"``.
    what
        What it is the figure of, such as method and measure.
    values
        Ours, one for each repetition.
    paper
        The printed figure, ``None`` where there is none.
    over
        What the repetitions are over, a key of ``OVER``.
    """

    place: str
    what: Mapping[str, str | float]
    values: tuple[float, ...]
    paper: float | None = None
    over: str = "seeds"

    def __post_init__(self) -> None:
        assert self.over in OVER, self.over

    @property
    def ours(self) -> float:
        """Mean of the repetitions."""
        return float(np.mean(self.values))

    @property
    def spread(self) -> float | None:
        """What ``OVER`` says of the repetitions; ``None`` for a single one."""
        if len(self.values) < 2 or self.over == "once":
            return None
        spread = float(np.std(self.values, ddof=1))
        return spread / float(np.sqrt(len(self.values))) if "error" in OVER[self.over] else spread


@dataclass(frozen=True)
class Verdict:
    """How a claim of the paper fared.

    Parameters
    ----------
    claim
        The table, figure or sentence.
    verdict
        One of ``VERDICTS``.
    reason
        What was seen, and why it differs where it does, as sentences.
    """

    claim: str
    verdict: str
    reason: str

    def __post_init__(self) -> None:
        assert self.verdict in VERDICTS, self.verdict

    @classmethod
    def of(
        cls, claim: str, seen: str, *, reproduced: bool, trend: bool = False, why: str = "", decided: bool = True
    ) -> Verdict:
        """Return the verdict that what was measured comes to.

        ``seen`` says what was measured, ``why`` what is known of the reasons, for where it was not reproduced, and
        ``decided`` whether the spread allows to say that it was not.
        """
        verdict = "reproduced" if reproduced else "same trend" if trend else "not reproduced"
        if not decided and not reproduced:
            verdict = "undecided"
        return cls(claim, verdict, seen if reproduced or not why else f"{seen} {why}")

    @property
    def note(self) -> str:
        """The same as a note, for what is not a claim of the paper."""
        return f"{self.claim[0].upper()}{self.claim[1:]}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """All that a study found.

    Parameters
    ----------
    rows
        Figures beside each other.
    verdicts
        How each claim fared.
    figures
        Name -> what draws the picture and returns a matplotlib figure.
    notes
        What else a reader should know, a sentence each.
    """

    rows: Sequence[Row]
    verdicts: Sequence[Verdict]
    figures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def is_repeated(self) -> bool:
        """Whether figures that are repeated by seeds were measured more than once."""
        numbers = [len(row.values) for row in self.rows if row.over in ("seeds", "runs")]
        return not numbers or max(numbers) > 1

    def tally(self) -> dict[str, int]:
        """Return how many claims fared how."""
        return {verdict: sum(one.verdict == verdict for one in self.verdicts) for verdict in VERDICTS}

    def leave_undecided(self, reason: str) -> Outcome:
        """Return the same with no claim decided, and why."""
        left = [
            Verdict(one.claim, "undecided", f"{reason} {one.reason}") if one.verdict in DECIDED else one
            for one in self.verdicts
        ]
        return replace(self, verdicts=left)

    def frame(self) -> pl.DataFrame:
        """Return a table: place, what the figures are of, paper, ours, spread, difference, n, over."""
        labels = list(dict.fromkeys(label for row in self.rows for label in row.what))
        records = [
            {
                "place": row.place,
                **{label: None if label not in row.what else _text(row.what[label]) for label in labels},
                "paper": row.paper,
                "ours": row.ours,
                "spread": row.spread,
                "difference": None if row.paper is None else row.ours - row.paper,
                "n": len(row.values),
                "over": row.over,
            }
            for row in self.rows
        ]
        numbers = dict.fromkeys(("paper", "ours", "spread", "difference"), pl.Float64)
        schema = {"place": pl.String, **dict.fromkeys(labels, pl.String), **numbers, "n": pl.Int64, "over": pl.String}
        return pl.DataFrame(records, schema=schema)


def _text(value: str | float) -> str:
    """A label as text."""
    return value if isinstance(value, str) else f"{value:g}"
