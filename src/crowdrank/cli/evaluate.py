"""``crowdrank evaluate``: how good a result is."""

from __future__ import annotations

from typing import Annotated

import typer

from .help import examples
from .options import AllQueries, Format, Metrics, Out, Quiet, Seed, Unjudged
from .outputs import check_files, deliver, report_written
from .talk import Talk
from .words import listed

EXAMPLES = examples(
    ("a ranking against known grades", "crowdrank evaluate ranks.csv truth.csv"),
    (
        "TREC runs against qrels, with paired tests between them",
        "crowdrank evaluate bm25.run ours.run news.qrels --metrics ndcg@10,map",
    ),
    (
        "many runs against one of them",
        "crowdrank evaluate bm25.run a.run b.run news.qrels --baseline bm25.run",
    ),
    ("straight from aggregate", "crowdrank aggregate votes.csv | crowdrank evaluate - truth.csv"),
    ("values of each query, for a plot", "crowdrank evaluate ranks.csv truth.csv --per-query queries.csv"),
)

_TOLD = 12


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
    all_queries: AllQueries = False,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", metavar="NAME", help="Test the other results against this one, and not every two."),
    ] = None,
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
    result. The mean is over the queries of both; how many one side lacks is said. Several results are also tested
    against each other or a baseline, query by query (randomisation; Holm's correction within each metric).
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
            found = evaluate_runs(
                files[:-1], files[-1], listed(metrics), unjudged=unjudged, all_queries=all_queries, baseline=baseline,
                level=level, seed=seed,
            )  # fmt: skip
        deliver(found.table, out, format, talk, lambda: show_frame(found.table, bold="value", cut=("run",)))
        for name, frame in ((per_query, found.per_query), (tests, found.comparisons)):
            if name is not None:
                write_table(frame, name)
                report_written(name, talk)
        for row in found.comparisons.head(_TOLD).iter_rows(named=True):
            talk.say(_sentence(row))
        if len(found.comparisons) > _TOLD:
            talk.say(
                f"and {len(found.comparisons) - _TOLD} more tests; --tests FILE writes them all, --baseline NAME tests "
                "against one result only"
            )


def _sentence(row: dict[str, object]) -> str:
    """A paired test in words."""
    p_value = row["p_holm"]
    said = "too few queries for a test" if p_value is None else f"p = {p_value:.3g} after Holm's correction"
    if row["difference"] is None:
        return f"{row['metric']}: {row['run']} and {row['other']} have no query in common"
    return f"{row['metric']}: {row['run']} - {row['other']} = {row['difference']:+.4f}, {said}"
