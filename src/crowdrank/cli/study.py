"""``crowdrank study``: tables of the papers beside what is measured here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .help import examples
from .options import Format, Quiet
from .outputs import check_files, deliver
from .talk import Talk
from .words import complete_study

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = examples(
    ("every study, the data it needs and how long it takes", "crowdrank study"),
    ("does it run here at all?", "crowdrank study crowdagg-trec --quick"),
    ("the numbers, pictures and protocol as files", "crowdrank study crowdagg-trec --out results"),
    ("the paper's whole grid, with ten repetitions", "crowdrank study ltrma-ohsumed --full --seeds 10 --out results"),
)

_SIGNS = {"reproduced": "+", "same trend": "~", "not reproduced": "-", "not reproducible": "?"}


def study(
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", autocompletion=complete_study, help="A study.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only see that it runs, in seconds.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The paper's whole grid, which may take hours.")] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", metavar="N", help="Number of repetitions, in place of the study's own.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write numbers, pictures and protocol there; a run that was stopped goes on from there.",
            rich_help_panel="Output",
        ),
    ] = None,
    folder: Annotated[
        str | None, typer.Option("--folder", metavar="FOLDER", help="Where data sets lie, if not in $CROWDRANK_DATA.")
    ] = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:
    """Measure the tables of a paper again, beside the printed numbers.

    Writes a row for each figure: where it stands in the paper, the printed number, ours with its spread, and the
    difference; then says how each claim fared. Without a name it lists the studies.
    """
    from ..errors import ParameterError
    from ..studies import run_study

    check_files([], [], format=format)
    if quick and full:
        raise ParameterError("--quick and --full exclude each other; leave one out")
    with Talk(quiet=quiet) as talk:
        if name is None:
            _list(folder, format, talk)
            return
        scope = "quick" if quick else "full" if full else "default"
        try:
            with talk.working(f"study {name}") as progress:
                ran = run_study(name, scope, n_seeds=seeds, out=out, folder=folder, progress=progress)
        except KeyboardInterrupt:
            talk.flush()
            talk.say("the same command goes on where it was" if out else "with --out DIR it could be gone on with")
            raise
        if ran.n_resumed:
            talk.say(f"{ran.n_resumed} finished parts of a former run were taken over")
        _deliver(ran, format, talk)
        talk.say(f"{ran.study.title}; took {ran.seconds:.0f} s")
        if quick:
            talk.say("a quick run only shows that it works; what it finds rests on too little")
        for found in ran.outcome.verdicts:
            talk.say(f"  {_SIGNS[found.verdict]} {found.claim}: {found.verdict}. {found.reason}")
        for note in ran.outcome.notes:
            talk.say(f"  {note}")
        for file in ran.files:
            talk.say(f"wrote {file}")


def _list(folder: str | None, format: str | None, talk: Talk) -> None:
    """Every study, the data it needs and how long it takes."""
    import polars as pl

    from ..datasets import present
    from ..studies import STUDIES
    from .tables import show_frame

    rows = [
        {
            "study": known.name,
            "reproduces": known.title,
            "data": ", ".join(f"{one}{'' if present(one, folder) else ' (missing)'}" for one in known.data),
            "minutes": known.minutes.get("default"),
            "full": known.minutes.get("full"),
        }
        for known in STUDIES.values()
    ]
    frame = pl.DataFrame(rows, schema_overrides={"minutes": pl.Float64, "full": pl.Float64})

    def show() -> None:
        minutes = [
            pl.Series(name, ["" if one is None else f"{one:g}" for one in frame[name]]) for name in ("minutes", "full")
        ]
        show_frame(frame.with_columns(minutes), bold="study", fill=("reproduces", "data"), rows=99)

    deliver(frame, None, format, talk, show)


def _deliver(ran: Any, format: str | None, talk: Talk) -> None:
    """The table of figures: in parts and rounded for people, as it is for programs."""
    frame: pl.DataFrame = ran.outcome.frame()
    deliver(frame, None, format, talk, lambda: _show(frame))


def _show(frame: pl.DataFrame) -> None:
    """A table for each place in the paper, without columns that are empty there."""
    import polars as pl

    from ..studies.outcomes import OVER
    from .tables import console, show_frame

    for part in frame.partition_by("place", "over", maintain_order=True):
        console().print(f"\n{part['place'][0]} ({OVER[part['over'][0]]})")
        spread = [
            f"{ours:.3f}" if spread is None else f"{ours:.3f} ± {spread:.3f}"
            for ours, spread in part.select("ours", "spread").iter_rows()
        ]
        shown = part.drop("place", "spread", "n", "over").with_columns(ours=pl.Series(spread))
        filled = [name for name in shown.columns if shown[name].null_count() < len(shown)]
        show_frame(shown.select(filled), bold="ours", rows=len(shown))
