"""``crowdrank compare``: several methods on the same votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .help import examples
from .options import AllQueries, Format, Metrics, Out, Quiet, Reading, Seed, Unjudged, Votes, output_file, spread
from .outputs import check_files, check_picture, deliver, report_written, write_wanted
from .talk import Talk
from .votes import options_of, read_votes
from .words import complete_method, complete_methods, split_list

if TYPE_CHECKING:
    import polars as pl

    from ..api import Comparison

EXAMPLES = examples(
    ("all methods that fit, judged on votes held out from them", "crowdrank compare votes.csv"),
    ("two methods against known answers", "crowdrank compare votes.csv --methods borda,elo --truth gold.csv"),
    ("other measures, as CSV", "crowdrank compare votes.csv --truth gold.qrels --metrics ndcg@10,tau -o t.csv"),
    ("a picture, and how far the orders differ", "crowdrank compare votes.csv --plot methods.png --orders orders.csv"),
)


@spread
def compare(
    *,
    votes: Votes,
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="LIST", autocompletion=complete_methods, help="By default all that fit."),
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option("--truth", metavar="FILE", help="The truth: query, item and grade or rank; qrels; or pairs."),
    ] = None,
    metrics: Metrics = None,
    unjudged: Unjudged = "drop",
    all_queries: AllQueries = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="NAME",
            autocompletion=complete_method,
            help="Test the other methods against this one, instead of the best or all pairs.",
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(
            "--folds", metavar="N", help="Without --truth: number of parts of the votes that are held out in turn."
        ),
    ] = 5,
    seed: Seed = 0,
    reading: Reading,
    tests: Annotated[str | None, output_file("--tests", "Write the paired tests between methods.")] = None,
    orders: Annotated[
        str | None, output_file("--orders", "Write how similar the orders of each two methods are.")
    ] = None,
    plot: Annotated[
        str | None, output_file("--plot", "Draw the methods by the first measure (.png, .pdf, .svg).")
    ] = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:
    """Compare methods on the same votes.

    With --truth each method gets the measures asked for, with intervals over queries. Without, it is judged by how well
    it predicts votes that were held out from it, which shows fit to this crowd and not truth. Methods that a paired
    test does not show to be worse than the best of a column are marked with a star; --baseline tests each method
    against one of your choice.
    """
    from .. import api
    from ..errors import ParameterError
    from ..io.truth import read_truth
    from .terminal_tables import show_frame

    check_files([*votes, reading.items, truth], [out, tests, orders, plot], format=format, tables=[tests, orders])
    if truth is None and metrics is not None:
        raise ParameterError("--metrics are about a truth; give one with --truth, or leave --metrics out")
    check_picture(plot, "--plot")
    api.check_comparison(split_list(methods), split_list(metrics), unjudged=unjudged, baseline=baseline)
    with Talk(quiet=quiet) as talk:
        judgments = read_votes(votes, reading, talk)
        known = None if truth is None else read_truth(truth, options=options_of(reading))
        with talk.working("comparing methods") as progress:
            comparison = api.compare_methods(
                judgments, split_list(methods), known, split_list(metrics), unjudged=unjudged, all_queries=all_queries,
                baseline=baseline, folds=folds, seed=seed, progress=progress,
            )  # fmt: skip
        deliver(comparison.frame(), out, format, talk, lambda: show_frame(_readable_table(comparison), bold="method"))
        write_wanted(tests, comparison.tests, talk)
        write_wanted(orders, comparison.orders, talk)
        if plot is not None:
            _draw(comparison, plot, talk)
        # that held-out votes are no truth was said when they were held out
        for sentence in () if quiet else comparison.sentences()[: -1 if comparison.held_out else None]:
            talk.say(sentence)


def _draw(comparison: Comparison, name: str, talk: Talk) -> None:
    """Write the picture."""
    from ..report import ComparisonDisplay, save_display

    save_display(ComparisonDisplay.from_comparison(comparison), name)
    report_written(name, talk)


def _readable_table(comparison: Comparison) -> pl.DataFrame:
    """The table as people read it: each figure with a star if it is as good as the best, or with its interval."""
    import polars as pl

    table, shown = comparison.frame(), {}
    scores = {(row["measure"], row["method"]): row for row in comparison.scores().iter_rows(named=True)}
    for name in table.columns:
        if name in comparison.names:
            rows = [scores.get((name, method)) for method in comparison.methods]
            shown[name] = pl.Series([_figure(row, intervals=not comparison.held_out) for row in rows], dtype=pl.String)
        elif name in ("method", "tau_to_first", "same_as_first", "seconds"):
            shown[name] = table[name]
    return pl.DataFrame(shown)


def _figure(row: dict[str, Any] | None, *, intervals: bool) -> str:
    """A figure as far as it is known, a star for those as good as the best."""
    if row is None:
        return ""
    text = f"{row['value']:.3f}{'*' if row['tied'] else ''}"
    return f"{text} ({row['lower']:.3f} to {row['upper']:.3f})" if intervals and row["lower"] is not None else text
