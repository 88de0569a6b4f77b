"""``crowdrank demo``: the whole way on a small data set that ships with the package."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from .. import api, io
from ..wording import counted, percent
from .outputs import report_written
from .talk import Talk
from .votes import Asked


def demo(asked: Asked, talk: Talk) -> None:
    """Show how votes become a ranking, on a small data set.

    Thirty annotators compare answers of twelve language models to twenty prompts. Models, prompts and annotators are
    made up, so it is known which of them guess and which answer the wrong way round.

    Examples
    --------
    # see votes become a ranking, and bad annotators found
    crowdrank demo
    # keep the votes, to try the other commands on them
    crowdrank demo --save votes.csv
    """
    import numpy as np
    from rich.text import Text

    from ..demo import FILE
    from .aggregate import annotator_name, interval
    from .terminal_tables import Grid, console, show_ranking

    table, save = io.read_table(FILE), asked.save
    command = _next_command(save or "votes.csv")
    if save is not None:
        io.write_table(table, save, digits=api.EXACT)
        report_written(save, talk)
        talk.say(f"now try: {command} --annotators annotators.csv")
        return
    talk.quiet = True
    votes = api.Preferences.from_frame(table)
    consensus = api.aggregate(votes.across_queries(), "bradley_terry")
    page = console()
    page.print(f"\n[bold]Which of {len(consensus.items)} language models answers best?[/bold]")
    page.print(
        f"{counted(votes.n_annotators, 'annotator')} compared two answers to a prompt at a time: "
        f"{counted(len(votes), 'preference')} over {counted(votes.n_queries, 'prompt')}. "
        "Models, prompts and annotators are made up.\n"
    )
    page.print(f"[bold]Ranking over all prompts[/bold] [dim]({consensus.method}, 95 % intervals)[/dim]\n")
    show_ranking(consensus, 0.95, item="model")
    page.print("[dim]ranks: the places that a model may truly hold[/dim]\n")
    frame = api.annotator_table(consensus.quality)
    assert frame is not None
    suspicious = api.suspects(frame)
    named = [annotator_name(one) for one in suspicious]
    page.print(f"[bold]Annotators worth dropping[/bold] [dim]({len(suspicious)} of {len(frame)})[/dim]\n")
    heads = ("annotator", "quality", "90 % interval", "judgments", "verdict")
    rows = []
    for one in suspicious:
        numbers = (f"{one.quality:.2f}", interval(one), f"{one.n_judgments:g}")
        cells = (annotator_name(one), *numbers, f"{one.verdict}: {api.FLAGS[one.verdict].noun}")
        rows.append([Text(cell) for cell in cells])
    page.print(Grid(heads=heads, rows=rows, right=("quality", "judgments"), fill=("verdict",)))
    rest = frame.filter(~frame["annotator"].is_in(named))["quality"].to_list()
    page.print(
        "[dim]quality: the chance of ordering two answers of unequal worth as the other annotators do; "
        f"the other {len(rest)} lie between {min(rest):.2f} and {max(rest):.2f}[/dim]\n"
    )
    codes = [votes.annotators.code(name) for name in named]
    everybody, others = api.agreement(votes), api.agreement(votes.select(~np.isin(votes.annotator, codes)))
    page.print("[bold]Agreement[/bold]\n")
    page.print(
        f"Two annotators who judge the same pair agree in {percent(everybody.same)} of cases "
        f"(Krippendorff's alpha {everybody.alpha:.2f}); without those {len(named)} in {percent(others.same)} "
        f"({others.alpha:.2f}).\n"
    )
    page.print("[bold]Next[/bold]\n")
    further = (f"{command} --annotators annotators.csv", f"{command} --without {','.join(named)}")
    for line in (f"{_program()} demo --save votes.csv", *further):
        page.print(f"  [cyan]{line}[/cyan]", soft_wrap=True)
    page.print()


def _next_command(path: str) -> str:
    """The command to try on the votes."""
    return f"{_program()} aggregate {path} --across-queries"


def _program() -> str:
    """What to type for this program: its name, or how it was started where the shell does not find the name."""
    started = Path(sys.argv[0])
    if shutil.which("crowdrank") is not None or not started.stem.startswith("crowdrank"):
        return "crowdrank"
    return str(started)
