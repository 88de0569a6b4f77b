"""Annotators worth a look: what the command line says about them, and the table it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..wording import SHOWN, counted
from .talk import one_line

if TYPE_CHECKING:
    import polars as pl

    from ..data.consensus import Consensus
    from ..data.diagnostics import Diagnostics
    from .talk import Talk

_MAX_CHARACTERS = 40


def tell(table: pl.DataFrame | None, odd: Diagnostics | None, talk: Talk, n_sampled: int | None = None) -> None:
    """Say who is worth a look and what is odd about the annotators, unless a warning did.

    ``n_sampled`` is the number of judgments that quality was measured by, where that was a sample.
    """
    lines = [*sentences(table), *(() if odd is None else (*odd.annotator_messages, *odd.sample_notes))]
    if n_sampled is not None:
        lines.append(f"quality was measured on a sample of {n_sampled:,} judgments")
    for line in lines:
        if not talk.was_said(line):
            talk.say(line)


def write(frame: pl.DataFrame, path: str, consensus: Consensus, judgments: Any, talk: Talk) -> None:
    """Write the table with what to do about each annotator and why, and say what that comes to."""
    import polars as pl

    from ..api import actions
    from ..io.output import write_table
    from .outputs import report_written

    with talk.working("fitting the consensus without some annotators"):
        plan = actions(consensus, judgments)
    suggested = plan.frame().select("annotator", "action", "reason")
    joined = frame.join(suggested, on="annotator", how="left", maintain_order="left")
    first = ["annotator", "quality", "n_judgments", "action", "reason"]
    write_table(joined.select(*first, pl.exclude(first)), path)
    report_written(path, talk)
    for line in plan.sentences():
        talk.say(f"suggested: {line}")


def sentences(frame: pl.DataFrame | None) -> list[str]:
    """Return what there is to say of the annotators, in lines.

    Examples
    --------
    >>> import polars as pl
    >>> columns = {"annotator": ["ann", "bob"], "quality": [0.8, 0.2], "n_judgments": [9, 30]}
    >>> sentences(pl.DataFrame({**columns, "lower": [0.6, 0.1], "upper": [0.9, 0.3]}))[-1]
    ' bob: quality 0.20 (0.10 to 0.30) in 30 judgments, reversed'
    """
    from ..review.flags import DOUBTS, FLAGS
    from ..review.verdicts import doubts, suspects

    if frame is None:
        return ["the votes name no annotators, so nothing can be said about them"]
    suspicious = suspects(frame)
    lines = []
    if suspicious:
        lines.append(f"{len(suspicious)} of {counted(len(frame), 'annotator')} worth a look (quality 0.5 is guessing):")
        lines += [
            f" {annotator_name(one)}: quality {one.quality:.2f} ({interval(one)}) in {_sum(one)}, {one.verdict}"
            for one in suspicious[:SHOWN]
        ]
        if len(suspicious) > SHOWN:
            lines.append(f" and {len(suspicious) - SHOWN} more; --annotators FILE lists all")
    codes = doubts(frame)
    numbers = {code: codes.count(code) for code in DOUBTS}
    lines += [
        f"{counted(number, 'annotator')} {FLAGS[code].words(number)}" for code, number in numbers.items() if number
    ]
    n_unsure = sum(numbers.values())
    if not suspicious and len(frame) > max(1, n_unsure):
        sure = f"{len(frame) - n_unsure} other" if n_unsure else str(len(frame))
        lines.append(f"none of the {sure} annotators seems to guess or to be reversed")
    return lines


def annotator_name(one: Any) -> str:
    """Return the name of an annotator worth a look as it is shown."""
    return one_line(str(one.annotator)[:_MAX_CHARACTERS])


def interval(one: Any) -> str:
    """Return the bounds of the quality of an annotator worth a look as they are shown."""
    return f"{one.lower:.2f} to {one.upper:.2f}"


def _sum(one: Any) -> str:
    """How many judgments an annotator gave; weights need not be whole."""
    number = float(one.n_judgments)
    return counted(int(number) if number.is_integer() else round(number, 1), "judgment")
