"""``crowdrank simulate``: votes of annotators whose quality is known."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..wording import counted
from .help import examples
from .options import Format, Out, Quiet, Seed, output_file
from .outputs import check_files, check_picture, deliver, report_written, write_wanted
from .talk import Talk
from .words import complete_method, split_list

EXAMPLES = examples(
    (
        "by 40 annotators, a tenth of whom answer at random",
        'crowdrank simulate truth.csv -n 40 --noise "normal(0.7,0.2)+random(0.1)" -o v.csv',
    ),
    (
        "preferences, and the true quality of each annotator",
        'crowdrank simulate truth.csv -n 20 --noise "flip(0.1..0.4)" --quality who.csv',
    ),
    (
        "which labelling scheme pays, with such annotators",
        'crowdrank simulate truth.csv -n 40 --noise "profile()" --campaign single,if-good-3',
    ),
    (
        "the same, replayed from votes that exist",
        "crowdrank simulate gold.csv --votes v.csv --campaign single,2-overlap",
    ),
    ("every noise there is", "crowdrank simulate --noises"),
)

_PLAYED = "Labelling schemes"


def _list_noises(wanted: bool) -> None:
    """Print the noise models, and leave."""
    if not wanted:
        return
    from rich.text import Text

    from ..simulate import NOISES
    from .grid import Grid
    from .terminal_tables import console

    heads = ("noise", "kinds", "what such annotators do")
    rows = [[Text(m.signature), Text(", ".join(m.kinds)), Text(m.description)] for m in NOISES.values()]
    console().print(Grid(heads=heads, rows=rows, fill=heads))
    raise typer.Exit


def simulate(
    *,
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help="Query, item and grade (or rank); or qrels.")],
    annotators: Annotated[
        int | None,
        typer.Option("--annotators", "-n", min=1, metavar="N", help="Number of annotators, spammers included."),
    ] = None,
    noise: Annotated[
        str | None, typer.Option("--noise", metavar="SPEC", help="Noise model of the annotators; --noises lists all.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="grade, preference or ranking; else the usual one.")
    ] = None,
    per_item: Annotated[
        float | None,
        typer.Option(
            "--per-item", metavar="K", help="Grades (5) or preferences (10) per item; rankings (5) per query."
        ),
    ] = None,
    seed: Seed = 0,
    noises: Annotated[
        bool, typer.Option("--noises", is_eager=True, callback=_list_noises, help="List the noise models and exit.")
    ] = False,
    campaign: Annotated[
        str | None,
        typer.Option("--campaign", metavar="SCHEMES", help="Compare labelling schemes.", rich_help_panel=_PLAYED),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Option(
            "--votes", metavar="FILE", help="Replay these votes in place of annotators.", rich_help_panel=_PLAYED
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="N",
            help="Judgments that each scheme may buy; by default 3 per item.",
            rich_help_panel=_PLAYED,
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds", min=1, metavar="N", help="Rounds in which the budget is spent.", rich_help_panel=_PLAYED
        ),
    ] = 20,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="Repetitions.", rich_help_panel=_PLAYED)
    ] = 5,
    goal: Annotated[
        str | None,
        typer.Option(
            "--goal",
            metavar="GOAL",
            help="Goal of the schemes that have one: order, top-5 or best.",
            rich_help_panel=_PLAYED,
        ),
    ] = None,
    choose: Annotated[
        bool, typer.Option("--choose", help="Schemes may choose whom to ask.", rich_help_panel=_PLAYED)
    ] = False,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            autocompletion=complete_method,
            help="Method whose consensus is measured; mean_gain or latent_score by default.",
            rich_help_panel=_PLAYED,
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics", metavar="LIST", help="Such as gain_error,log_loss,accuracy,tau.", rich_help_panel=_PLAYED
        ),
    ] = None,
    picture: Annotated[
        str | None,
        typer.Option(
            "--picture", metavar="FILE", help="Draw the first metric (.png, .pdf, .svg).", rich_help_panel=_PLAYED
        ),
    ] = None,
    quality: Annotated[str | None, output_file("--quality", "Write the true quality of each annotator.")] = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:
    """Draw votes from annotators of known quality.

    Each annotator sees the truth with some noise. Give the votes to aggregate and its result to evaluate, to learn
    what a method, a crowd or a number of votes is worth before paying for it. With --campaign, labelling schemes buy
    votes round by round, and the output is the quality of the consensus for what was spent.
    """
    from .. import simulate as simulation
    from ..data.showing import EXACT
    from ..errors import ParameterError
    from ..io.output import write_table
    from ..io.truth import read_truth

    check_files([truth, votes], [out, quality, picture], format=format, tables=[quality])
    check_picture(picture, "--picture")
    if campaign is not None:
        asked = {"annotators": annotators, "noise": noise, "votes": votes, "kind": kind, "budget": budget}
        asked |= {"n_rounds": rounds, "n_seeds": seeds, "seed": seed, "chosen": choose, "aggregator": method}
        asked["goal"] = goal
        _play(truth, split_list(campaign) or [], asked, split_list(metrics), (out, format, picture), Talk(quiet=quiet))
        return
    if votes is not None or picture is not None or goal is not None:
        raise ParameterError("--votes, --picture and --goal go with --campaign; name schemes: --campaign if-good-3")
    if annotators is None or noise is None:
        raise ParameterError('say who votes, as in --annotators 40 --noise "normal(0.7,0.2)"; --noises lists all')
    simulation.check_simulation(noise, kind, per_item)
    with Talk(quiet=quiet) as talk:
        with talk.working("drawing votes"):
            drawn = simulation.simulate(
                read_truth(truth), annotators=annotators, noise=noise, kind=kind, per_item=per_item, seed=seed
            )
        judgments = drawn.judgments
        write_table(judgments.frame(), out, format, digits=EXACT)
        report_written(out, talk)
        write_wanted(quality, lambda: drawn.quality, talk)
        by = counted(annotators, "annotator")
        talk.say(f"{counted(len(judgments), judgments.kind)} by {by} on {counted(judgments.n_items, 'item')}")


def _play(
    truth: str,
    schemes: list[str],
    asked: dict[str, Any],
    measures: list[str] | None,
    files: tuple[str | None, str | None, str | None],
    talk: Talk,
) -> None:
    """Play schemes against each other, and write or show their curves."""
    from .. import api
    from ..report import CampaignDisplay, save_display
    from .terminal_tables import show_frame

    out, format, picture = files
    with talk:
        with talk.working("simulating the schemes") as progress:
            curves = api.campaigns(truth, schemes, measures=measures, progress=progress, **asked)
        # before anything is written: there may be nothing to draw
        display = None if picture is None else CampaignDisplay.from_curves(curves)
        last = api.campaign_ends(curves)
        deliver(curves, out, format, talk, lambda: show_frame(last, bold="scheme"))
        if display is not None and picture is not None:
            save_display(display, picture)
            report_written(picture, talk)
        for line in api.campaign_sentences(last):
            talk.say(line)
