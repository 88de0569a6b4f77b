"""Annotators worth a look: what the command line says about them, and the table it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..wording import SHOWN, counted, of_all
from .talk import one_line

if TYPE_CHECKING:
    import polars as pl

    from ..data.consensus import Consensus
    from ..review.facts import Facts
    from .talk import Talk

_MAX_CHARACTERS = 40


def tell(facts: Facts, talk: Talk) -> None:
    """Say who is worth a look and what is odd about the annotators, unless a warning did."""
    odd, quality = facts.diagnostics, facts.consensus.quality
    lines = [*sentences(facts), *(() if odd is None else (*odd.annotator_messages, *odd.sample_notes))]
    if quality is not None and quality.n_sampled is not None:
        lines.append(f"quality was measured on a sample of {quality.n_sampled:,} judgments")
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


def sentences(facts: Facts) -> list[str]:
    """Return what there is to say of the annotators, in lines."""
    from ..review.findings import verdict_findings
    from ..review.sentences import BY_QUALITY

    findings = verdict_findings(facts)
    lines, suspicious = [], facts.suspects
    if any(one.kind in BY_QUALITY for one in findings):
        assert facts.table is not None
        number, verb = of_all(len(suspicious), len(facts.table), "annotator"), "is" if len(suspicious) == 1 else "are"
        lines.append(f"{number} {verb} worth a look (quality 0.5 is guessing):")
        lines += [
            f" {annotator_name(one)}: quality {one.quality:.2f} ({interval(one)}) by {_sum(one)}, {one.verdict}"
            for one in suspicious[:SHOWN]
        ]
        if len(suspicious) > SHOWN:
            lines.append(f" and {len(suspicious) - SHOWN:,} more; --annotators FILE lists all")
    return [*lines, *(one.sentence for one in findings if one.kind not in BY_QUALITY)]


def annotator_name(one: Any) -> str:
    """Return the name of an annotator worth a look as it is shown."""
    return one_line(str(one.annotator)[:_MAX_CHARACTERS])


def interval(one: Any) -> str:
    """Return the bounds of the quality of an annotator worth a look as they are shown."""
    return f"{one.lower:.2f} to {one.upper:.2f}"


def _sum(one: Any) -> str:
    """How many judgments an annotator gave, and how many pairs they order; weights need not be whole."""
    numbers = ((float(one.n_judgments), "judgment"), (float(one.n_pairs), "pair"))
    return " with ".join(
        counted(int(number) if number.is_integer() else round(number, 1), what) for number, what in numbers
    )
