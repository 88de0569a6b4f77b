"""``crowdrank propose``: which judgments to buy next, of whom, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from .help import examples
from .options import Format, Out, Quiet, Reading, Seed, output_file, spread
from .outputs import check_files, deliver, write_wanted
from .talk import Talk
from .votes import read_votes
from .words import complete_method, complete_scheme, pairs

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = examples(
    (
        "second and third opinions on items whose first grade is good",
        "crowdrank propose votes.csv --scheme if-good-3 --budget 1000 -o requests.csv",
    ),
    (
        "which pairs to ask whom about, from a pool with prices",
        "crowdrank propose votes.csv -s information --pool who.csv --items all.csv -b 500",
    ),
    (
        "grades that change what a ranker shows, as long as each gains .002 nDCG",
        "crowdrank propose grades.csv --goal ranker --least-gain 0.002",
    ),
    (
        "grades that teach a ranker of these features most",
        "crowdrank propose grades.csv --goal ranker --features features.parquet -b 500",
    ),
    ("which pairs decide who is in the top five", "crowdrank propose votes.csv --goal top-5 -b 500"),
    ("which pairs to begin with, sides balanced", "crowdrank propose --items scripts.csv -b 150"),
    ("what schemes would have cost on grades given several times", "crowdrank propose votes.csv --costs costs.csv"),
)


@spread
def propose(
    *,
    votes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VOTES]...", show_default=False,
            help="Files of judgments, - for standard input; none where nothing is judged yet, with --items.",
        ),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(
            "--scheme", "-s", metavar="NAME", autocompletion=complete_scheme,
            help="Such as if-good-3, 2-overlap, pilot or information; by default one that fits the judgments.",
        ),
    ] = "auto",
    goal: Annotated[
        str | None,
        typer.Option(
            "--goal", "-g", metavar="GOAL",
            help="Of preferences: order (the default), top-5 (any number) or best; of grades: ranker, for nDCG@10.",
        ),
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the scheme; repeatable.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", "-b", metavar="N", help="What may be spent; no limit by default.")
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option("--pool", metavar="FILE", help="Who can be asked: annotator, price, capacity."),
    ] = None,
    price: Annotated[
        str,
        typer.Option("--price", metavar="N", help="Price of a judgment where the pool gives none; or "
            "person=4,program=1."),
    ] = "1",
    least_gain: Annotated[
        float,
        typer.Option(
            "--least-gain", metavar="N",
            help="Least expected gain per unit of money; with --goal ranker in nDCG@10.",
        ),
    ] = 0.0,
    features: Annotated[
        str | None,
        typer.Option(
            "--features", metavar="FILE",
            help="With --goal ranker: features of all items; grades are asked for that change what a ranker shows.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", "-m", metavar="NAME", autocompletion=complete_method,
            help="Method of the consensus that some schemes use; by default their own choice.",
        ),
    ] = None,
    open: Annotated[
        str | None,
        typer.Option("--open", metavar="FILE", help="Requests already sent out, in the format that this command "
            "writes."),
    ] = None,
    seed: Seed = 0,
    reading: Reading,
    costs: Annotated[str | None, output_file("--costs", "Write what schemes would have cost on these grades.")] = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Say what to ask next, of whom, at what cost, and when to stop.

    Writes a row for each request, the most urgent first. --items lists everything that may be asked about; without it,
    only items that were already judged. Nobody is asked twice about the same thing.
    """
    from .. import api
    from ..errors import ParameterError

    votes = votes or []
    if not votes and reading.items is None:
        raise ParameterError("name the file of the judgments so far, or with --items what may be asked about first")
    check_files([*votes, reading.items, pool, features, open], [out, costs], format=format, tables=[costs])
    params, prices = pairs(setting, "--set", "k=3"), _prices(price)
    api.check_requests(scheme, params, goal, budget=budget, price=prices, least_gain=least_gain, consensus=method)
    with Talk(quiet=quiet) as talk:
        # listed items are what may be asked about, which the verb itself has to know
        judgments = read_votes(votes, replace(reading, items=None), talk) if votes else None
        if costs is not None and (judgments is None or judgments.kind != "grade"):
            there = "nothing is judged yet" if judgments is None else f"these are {judgments.kind}s"
            raise ParameterError(f"--costs counts grades, but {there}; leave it out")
        with talk.working("choosing what to ask") as progress:
            proposed = api.requests(
                judgments, scheme, reading.items, pool, budget, goal=goal, params=params,
                price=prices, least_gain=least_gain, consensus=method, features=features, open=open,
                kind=None if votes else reading.kind, seed=seed, progress=progress,
            )  # fmt: skip
        deliver(proposed.frame(), out, format, talk, lambda: _show(proposed.frame()))
        write_wanted(costs, lambda: api.scheme_costs(judgments, seed=seed), talk)
        for note in (*proposed.notes, proposed.sentence()):
            talk.say(note)


def _prices(text: str) -> float | dict[str, float]:
    """One price, or the price of each group, from text."""
    from ..errors import ParameterError
    from .words import split_list

    try:
        if "=" not in text:
            return float(text)
        return {group: float(value) for group, value in pairs(split_list(text), "--price", "person=4").items()}
    except ValueError:
        raise ParameterError(
            f"--price {text!r} is not a number; write for example --price 2 or person=4,program=1"
        ) from None


def _show(frame: pl.DataFrame) -> None:
    """Show the first requests."""
    from .terminal_tables import show_frame

    what = "item" if "item" in frame.columns else "left"
    show_frame(frame, bold=what, cut=("query", "item", "left", "right", "annotator"), fill=("reason",))
