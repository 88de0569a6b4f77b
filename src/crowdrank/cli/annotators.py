"""Annotators worth a look: those who guess, who answer the wrong way round, or who are barely better than guessing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .talk import one_line
from .words import count

if TYPE_CHECKING:
    import polars as pl

    from ..data.consensus import Quality
    from ..data.diagnostics import Diagnostics
    from .talk import Talk

POOR = 0.6
WIDE = 0.4
"""An interval wider than this, as fewer than some 17 pairs have it, says nothing against an annotator."""
MOST_NAMED = 5


@dataclass(frozen=True)
class Suspect:
    """An annotator worth a look, and why."""

    annotator: str
    quality: float
    lower: float
    upper: float
    n_judgments: float
    verdict: str

    @property
    def interval(self) -> str:
        """The bounds as they are shown."""
        return f"{self.lower:.2f} to {self.upper:.2f}"


def table(quality: Quality | None, odd: Diagnostics | None = None) -> pl.DataFrame | None:
    """Return the annotators who judged something, best first, with habits; ``None`` where nobody is named."""
    if quality is None:
        return None
    frame = quality.frame()
    if odd is not None:
        habits = odd.annotators().drop("n_judgments")
        new = [name for name in habits.columns if name == "annotator" or name not in frame.columns]
        frame = frame.join(habits.select(new), on="annotator", how="left", maintain_order="left")
    return frame.filter(frame["n_judgments"] > 0)


def tell(odd: Diagnostics | None, talk: Talk) -> None:
    """Say what is odd about the annotators, unless a warning did."""
    for sentence in () if odd is None else odd.annotator_messages:
        if not talk.warned(sentence):
            talk.say(sentence)


def suspects(frame: pl.DataFrame) -> list[Suspect]:
    """Return the annotators worth a look, the worst first.

    They have a quality below 0.6 and an interval that is not too wide to tell: ``reversed`` where it lies below one
    half, ``guessing`` where it holds one half, ``poor`` above. Without an interval the quality stands for it.
    """
    found = []
    for row in frame.iter_rows(named=True):
        lower, upper = row.get("lower", row["quality"]), row.get("upper", row["quality"])
        verdict = _verdict(row["quality"], lower, upper)
        if verdict:
            name = one_line(str(row["annotator"])[:40])
            found.append(Suspect(name, row["quality"], lower, upper, row["n_judgments"], verdict))
    return sorted(found, key=lambda one: (one.upper >= 0.5, one.quality, one.annotator))


def _verdict(quality: float, lower: float, upper: float) -> str:
    """What an annotator of this quality is, if it is worth a word."""
    if quality >= POOR or upper - lower > WIDE:
        return ""
    return "reversed" if upper < 0.5 else "guessing" if lower <= 0.5 else "poor"


def unsure(frame: pl.DataFrame) -> int:
    """Return how many have too few judgments to tell them from guessing, though nothing speaks against them."""
    if "lower" not in frame.columns:
        return 0
    lower, upper = frame["lower"], frame["upper"]
    untold = (frame["quality"] >= POOR) | (upper - lower > WIDE)
    return int((untold & (lower <= 0.5)).sum())


def sentences(frame: pl.DataFrame | None) -> list[str]:
    """Return what there is to say of the annotators, in lines.

    Examples
    --------
    >>> import polars as pl
    >>> columns = {"annotator": ["ann", "bob"], "quality": [0.8, 0.2], "n_judgments": [9, 30]}
    >>> sentences(pl.DataFrame({**columns, "lower": [0.6, 0.1], "upper": [0.9, 0.3]}))[-1]
    ' bob: quality 0.20 (0.10 to 0.30) in 30 judgments, reversed'
    """
    if frame is None:
        return ["the votes name no annotators, so nothing can be said of them"]
    found = suspects(frame)
    lines = []
    if found:
        lines.append(f"{len(found)} of {count(len(frame), 'annotator')} worth a look (quality 0.5 is guessing):")
        lines += [
            f" {one.annotator}: quality {one.quality:.2f} ({one.interval}) in {_sum(one)}, {one.verdict}"
            for one in found[:MOST_NAMED]
        ]
        if len(found) > MOST_NAMED:
            lines.append(f" and {len(found) - MOST_NAMED} more; --annotators FILE lists all")
    n_unsure = unsure(frame)
    if n_unsure:
        lines.append(f"{count(n_unsure, 'annotator')} judged too little to be told from guessing")
    if not found and len(frame) > max(1, n_unsure):
        sure = f"{len(frame) - n_unsure} other" if n_unsure else str(len(frame))
        lines.append(f"none of the {sure} annotators looks like guessing or reversed")
    return lines


def _sum(one: Any) -> str:
    """How many judgments an annotator gave; weights need not be whole."""
    number = float(one.n_judgments)
    return count(int(number) if number.is_integer() else round(number, 1), "judgment")
