"""``crowdrank study``: tables of the papers beside what is measured here."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import io
from ..errors import MissingExtraError, ParameterError
from ..wording import counted
from .outputs import deliver
from .talk import Talk
from .votes import Asked

if TYPE_CHECKING:
    import polars as pl


_VERDICTS = ("reproduced", "same trend", "not reproduced", "undecided", "not decidable", "not measured")
_SIGNS = dict(zip(_VERDICTS, "+~-=?!", strict=True))


def studies(part: str = "") -> Any:
    """Import the studies, or a part of them: installed, or beside the source of this package."""
    beside = Path(__file__).parents[3] / "studies"
    if (beside / "crowdrank_studies").is_dir() and str(beside) not in sys.path:
        sys.path.append(str(beside))
    try:
        return import_module(f"crowdrank_studies{part}")
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("crowdrank_studies"):
            raise
        raise MissingExtraError(
            "the studies are a package of their own: `pip install ./studies` in a checkout of crowdrank's source"
        ) from None


def study(asked: Asked, talk: Talk) -> None:
    """Measure the tables of a paper beside the printed numbers.

    Shows the tables of the paper with our figures and their spread, the printed ones in brackets, then a verdict on
    each claim and a tally. `--format csv` writes a row for each figure with all digits. Without a name it lists the
    studies.

    Examples
    --------
    # every study, the data it needs and how long it takes
    crowdrank study
    # does it run here at all?
    crowdrank study crowdagg-trec --quick
    # the numbers, pictures and protocol as files
    crowdrank study crowdagg-trec --out results
    # clutter of your own web pages
    crowdrank study visual-clutter --pages sites/
    # the paper's whole grid, with ten repetitions
    crowdrank study ltrma-ohsumed --full --seeds 10 --out results
    """

    name, format = asked.name, asked.format
    io.format_for(None, format)
    if asked.quick and asked.full:
        raise ParameterError("--quick and --full exclude each other; leave one out")
    if name is None and asked.pages is not None:
        raise ParameterError("--pages goes with a study: crowdrank study visual-clutter --pages FOLDER")
    if name is None:
        _list(asked, talk)
        return
    scope = "quick" if asked.quick else "full" if asked.full else "default"
    try:
        with talk.working(f"study {name}") as progress:
            how = asked.arguments(studies().run_study)
            ran = studies().run_study(**how, scope=scope, progress=progress)
    except KeyboardInterrupt:
        talk.flush()
        resume = "the same command continues where it stopped"
        talk.say(resume if asked.out else "with --out DIR a stopped run can be continued")
        raise
    if ran.n_resumed:
        talk.say(f"{ran.n_resumed} finished parts of a former run were taken over")
    if format is not None:
        deliver(ran.outcome.frame(), asked.but(out=None), talk)
    else:
        talk.flush()
        show_tables(ran.outcome.frame())
    duration = f"{ran.seconds:.0f} s" if ran.seconds < 100 else f"{ran.seconds / 60:.1f} minutes"
    talk.say(f"{ran.study.title}; took {duration} on {counted(ran.cores, 'core')}")
    if asked.quick:
        talk.say("a quick run only shows that the study works; it uses too little data for its numbers to count")
    for verdict in ran.outcome.verdicts:
        talk.say(f"  {_SIGNS[verdict.verdict]} {verdict.claim}: {verdict.verdict}. {verdict.reason}")
    tally = ", ".join(f"{number} {verdict}" for verdict, number in ran.outcome.tally().items() if number)
    talk.say(f"{counted(len(ran.outcome.verdicts), 'claim')}: {tally}" if tally else "no claims")
    for note in ran.outcome.notes:
        talk.say(f"  {note}")
    for file in ran.files:
        talk.say(f"wrote {file}")


def _list(asked: Asked, talk: Talk) -> None:
    """Every study, the data it needs and how long it takes."""
    import polars as pl

    from ..datasets import present

    rows = []
    for known in studies().STUDIES.values():
        data = ", ".join(f"{one}{'' if present(one, asked.folder) else ' (missing)'}" for one in known.data)
        rows.append((known.name, known.title, data, known.minutes.get("default"), known.minutes.get("full")))
    schema = dict.fromkeys(("study", "reproduces", "data"), pl.String) | dict.fromkeys(("minutes", "full"), pl.Float64)
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    texts = {name: [f"{one:g}" if one is not None else "" for one in frame[name]] for name in ("minutes", "full")}
    shown = frame.with_columns(pl.Series(name, column) for name, column in texts.items())
    deliver(frame, asked.but(out=None), talk, lambda: shown, bold="study", fill=("reproduces", "data"), rows=99)
    cores = f"{studies().CORES} cores that also did other work"
    talk.say(f"minutes were measured on {cores}; times of full runs that were not made are estimates")


def show_tables(frame: pl.DataFrame) -> None:
    """Show a table for each place in the paper, methods down and measures across."""
    from rich.text import Text

    from .terminal_tables import Grid, console

    page = console()
    for table in studies().pivots(frame):
        page.print(f"\n{table.title}")
        rows = [[Text(one) for one in row] for row in table.rows]
        page.print(Grid(heads=table.heads, rows=rows, right=table.heads[table.n_labels :], fill=table.heads))
