"""``crowdrank diagnose``: what is odd about votes, before anybody trusts the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .help import examples
from .options import Format, Out, Quiet, Reading, Seed, Votes, output_file, spread
from .outputs import check_files, deliver, write_wanted
from .talk import Talk
from .votes import options_of, read_settled
from .words import complete_method

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = examples(
    ("who chooses by side, ties always, guesses or copies", "crowdrank diagnose votes.csv"),
    ("which judge likes long answers", "crowdrank diagnose judges.csv --across-queries --control style"),
    ("every pair of annotators, the most dependent first", "crowdrank diagnose votes.csv --dependence pairs.csv"),
    ("errors against known answers, so shared ones show too", "crowdrank diagnose votes.csv --truth gold.csv"),
)


@spread
def diagnose(
    *,
    votes: Votes,
    truth: Annotated[
        str | None,
        typer.Option(
            "--truth", metavar="FILE", help="Known grades, ranks or winners; errors are counted against them."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option("--method", "-m", metavar="NAME", autocompletion=complete_method, help="Method of the consensus."),
    ] = "auto",
    control: Annotated[
        str | None,
        typer.Option(
            "--control",
            metavar="A,B,C",
            help="Covariates of preferences, as in aggregate; shows who likes long answers.",
        ),
    ] = None,
    item_families: Annotated[
        str | None,
        typer.Option(
            "--item-families",
            metavar="FILE",
            help="Table of item and family, for --control self; the votes need a group column.",
        ),
    ] = None,
    seed: Seed = 0,
    reading: Reading,
    dependence: Annotated[
        str | None, output_file("--dependence", "Write how far each two annotators agree beyond chance.")
    ] = None,
    families: Annotated[
        str | None, output_file("--families", "Write the groups of annotators there, given or detected.")
    ] = None,
    groups: Annotated[
        str | None, output_file("--groups", "Write items there that were never compared with others of their query.")
    ] = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Find annotators who guess, choose by side or copy others.

    Writes a row for each annotator: position bias, ties, answers that change with the order, circular answers, each
    with a 90 % interval, and the family of annotators who err together.
    """
    from .. import api
    from ..io.truth import read_truth

    more = [dependence, families, groups]
    check_files([*votes, reading.items, truth, item_families], [out, *more], format=format, tables=more)
    api.check_aggregation(method)
    _check_control(control, method, item_families)
    with Talk(quiet=quiet) as talk:
        judgments = read_settled(votes, reading, talk, control, "keep", item_families)
        judgments = api.expect_one_kind(judgments, "diagnose")
        known = None if truth is None else read_truth(truth, options=options_of(reading))
        with talk.working("finding the consensus"):
            consensus = None if control else api.aggregate(judgments, method, seed=seed)
        with talk.working("checking the annotators"):
            diagnostics = api.diagnose(judgments, consensus, truth=known, control=control)
        for sentence in diagnostics.messages:
            if not talk.was_said(sentence):
                talk.say(sentence)
        deliver(diagnostics.annotators(), out, format, talk, lambda: _show(diagnostics.annotators()))
        write_wanted(dependence, diagnostics.dependence, talk)
        write_wanted(families, diagnostics.families, talk)
        write_wanted(groups, diagnostics.groups, talk)


def _check_control(control: str | None, method: str, item_families: str | None) -> None:
    """Refuse a method that learns no coefficients of annotators, and families that nothing is controlled by."""
    from .. import api
    from ..errors import ParameterError

    if item_families is not None:
        api.expect_self(control)
    if control is not None and method not in ("auto", "latent_score"):
        raise ParameterError(
            f"--control needs coefficients of each annotator, which {method} does not estimate; leave --method "
            f"{method} out"
        )


def _show(frame: pl.DataFrame) -> None:
    """Show the annotators without the bounds of their figures."""
    from .terminal_tables import show_frame

    show_frame(
        frame.drop([name for name in frame.columns if name.endswith(("_lower", "_upper"))]),
        bold="annotator",
        cut=("annotator",),
    )
