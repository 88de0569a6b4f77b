"""``crowdrank compare``: several methods on the same votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .help import examples
from .options import Format, Metrics, Out, Quiet, Reading, Seed, Unjudged, spread
from .outputs import check_files, deliver
from .talk import Talk
from .words import complete_methods, listed

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = examples(
    ("all methods that fit, judged on votes held out from them", "crowdrank compare votes.csv"),
    ("two methods against what is known", "crowdrank compare votes.csv --methods borda,elo --truth gold.csv"),
    ("other measures, as CSV", "crowdrank compare votes.csv --truth gold.qrels --metrics ndcg@10,tau -o t.csv"),
)


@spread
def compare(
    *,
    votes: Annotated[
        list[str],
        typer.Argument(metavar="VOTES...", help="Files of judgments, - for standard input.", show_default=False),
    ],
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="LIST", autocompletion=complete_methods, help="By default all that fit."),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option("--truth", metavar="FILE", help="What is right: query, item and grade or rank; qrels; pairs."),
    ] = None,
    metrics: Metrics = None,
    unjudged: Unjudged = "drop",
    seed: Seed = 0,
    reading: Reading,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:
    """Compare methods on the same votes.

    With --truth each method gets the measures asked for, with intervals over queries. Without, it is judged by how well
    it foretells votes that were held out from it, which shows fit to this crowd and not truth.
    """
    from .. import api
    from ..errors import ParameterError
    from .tables import show_frame

    check_files([*votes, reading.items, truth], [out], format=format)
    if truth is None and metrics is not None:
        raise ParameterError("--metrics are about a truth; give one with --truth, or leave --metrics out")
    with Talk(quiet=quiet) as talk:
        judgments = reading.judgments(votes, talk)
        with talk.working("comparing methods") as progress:
            table = api.compare(
                judgments, listed(methods), truth, listed(metrics), unjudged=unjudged, seed=seed, progress=progress
            )
        deliver(table, out, format, talk, lambda: show_frame(_shown(table), bold="method"))


def _shown(table: pl.DataFrame) -> pl.DataFrame:
    """The table as people read it: each figure with its spread or interval in one column."""
    import polars as pl

    shown: dict[str, pl.Series] = {}
    for name in table.columns:
        if name.endswith(("_sd", " lower", " upper")):
            continue
        values = table[name]
        if f"{name}_sd" in table.columns:
            pairs = zip(values, table[f"{name}_sd"], strict=True)
            values = pl.Series([f"{value:.3f} ± {spread:.3f}" for value, spread in pairs])
        elif f"{name} lower" in table.columns:
            triples = zip(values, table[f"{name} lower"], table[f"{name} upper"], strict=True)
            values = pl.Series([_with_interval(*triple) for triple in triples])
        shown[name] = values
    return pl.DataFrame(shown)


def _with_interval(value: float | None, lower: float | None, upper: float | None) -> str:
    """A figure with its interval, as far as they are known."""
    if value is None or lower is None or upper is None:
        return "" if value is None else f"{value:.3f}"
    return f"{value:.3f} ({lower:.3f} to {upper:.3f})"
