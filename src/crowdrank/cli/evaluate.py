"""``crowdrank evaluate``: how good a result is."""

from __future__ import annotations

from typing import Annotated

import typer

from .help import examples
from .options import Format, Metrics, Out, Quiet, Seed, Unjudged
from .outputs import check_files, deliver, report_written
from .talk import Talk
from .words import listed

EXAMPLES = examples(
    ("a ranking against known grades", "crowdrank evaluate ranks.csv truth.csv"),
    (
        "TREC runs against qrels, with paired tests between them",
        "crowdrank evaluate bm25.run ours.run news.qrels --metrics ndcg@10,map",
    ),
    ("straight from aggregate", "crowdrank aggregate votes.csv | crowdrank evaluate - truth.csv"),
    ("values of each query, for a plot", "crowdrank evaluate ranks.csv truth.csv --per-query queries.csv"),
)


def evaluate(
    *,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT... TRUTH",
            show_default=False,
            help="Results of aggregate, tables or TREC runs; then the truth.",
        ),
    ],
    metrics: Metrics = None,
    unjudged: Unjudged = "drop",
    level: Annotated[float, typer.Option("--level", metavar="LEVEL", help="Level of the intervals.")] = 0.95,
    seed: Seed = 0,
    per_query: Annotated[
        str | None,
        typer.Option("--per-query", metavar="FILE", help="Write the value of each query.", rich_help_panel="Output"),
    ] = None,
    tests: Annotated[
        str | None,
        typer.Option(
            "--tests", metavar="FILE", help="Write the paired tests between results.", rich_help_panel="Output"
        ),
    ] = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:
    """Measure results against a truth.

    The truth has query, item and grade (or rank), or query, left, right and winner; or it is a qrels file, or another
    result. Several results are also tested against each other, query by query (randomisation, Holm's correction).
    """
    from ..api import evaluate_runs
    from ..errors import ParameterError
    from ..io.output import write_table
    from .tables import show_frame

    if len(files) < 2:
        raise ParameterError(f"{files[0]!r} alone cannot be measured; name the result and then the truth")
    check_files(files, [out, per_query, tests], format=format, tables=[per_query, tests])
    with Talk(quiet=quiet) as talk:
        with talk.working("measuring"):
            found = evaluate_runs(files[:-1], files[-1], listed(metrics), unjudged=unjudged, level=level, seed=seed)
        deliver(found.table, out, format, talk, lambda: show_frame(found.table, bold="value", cut=("run",)))
        for name, frame in ((per_query, found.per_query), (tests, found.comparisons)):
            if name is not None:
                write_table(frame, name)
                report_written(name, talk)
        for row in found.comparisons.iter_rows(named=True):
            talk.say(_sentence(row))


def _sentence(row: dict[str, object]) -> str:
    """A paired test in words."""
    p_value = row["p_holm"]
    said = "too few queries for a test" if p_value is None else f"p = {p_value:.3g} after Holm's correction"
    return f"{row['metric']}: {row['run']} - {row['other']} = {row['difference']:+.4f}, {said}"
