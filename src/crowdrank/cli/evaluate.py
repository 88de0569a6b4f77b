"""``crowdrank evaluate``: how good a result is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ParameterError
from .help import examples
from .options import AllQueries, Format, Metrics, Out, Quiet, Seed, Unjudged, output_file
from .outputs import check_files, deliver, report_written, write_wanted
from .reporting import check_report
from .running import command_line
from .talk import Talk
from .words import split_list

if TYPE_CHECKING:
    from ..api import Evaluation

EXAMPLES = examples(
    ("a ranking against known grades", "crowdrank evaluate ranks.csv truth.csv"),
    (
        "TREC runs against qrels, with paired tests between them",
        "crowdrank evaluate bm25.run ours.run news.qrels --metrics ndcg@10,map",
    ),
    (
        "the figures of trec_eval, to the digit",
        "crowdrank evaluate bm25.run news.qrels --ties trec --unjudged zero --metrics map",
    ),
    (
        "many runs against one of them",
        "crowdrank evaluate bm25.run a.run b.run news.qrels --baseline bm25.run",
    ),
    ("straight from aggregate", "crowdrank aggregate votes.csv | crowdrank evaluate - truth.csv"),
    ("values of each query, for a plot", "crowdrank evaluate ranks.csv truth.csv --per-query queries.csv"),
    (
        "is B better than A, and where: a page for the team",
        "crowdrank evaluate A.run B.run --truth q.qrels --slices kinds.csv --report p.html",
    ),
)

_MAX_TESTS_SHOWN = 12


def evaluate(
    *,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT... TRUTH",
            show_default=False,
            help="Results of aggregate, tables or TREC runs; then the truth, unless --truth names it.",
        ),
    ],
    truth: Annotated[
        str | None,
        typer.Option("--truth", metavar="FILE", help="The truth; all files named before are results then."),
    ] = None,
    metrics: Metrics = None,
    unjudged: Unjudged = "drop",
    all_queries: AllQueries = False,
    ties: Annotated[
        str | None,
        typer.Option(
            "--ties", metavar="average|first|worst|trec|gdeval",
            help="What equal scores mean: by default the mean over their orders; trec and gdeval as these programs.",
        ),
    ] = None,
    max_grade: Annotated[
        float | None,
        typer.Option(
            "--max-grade", metavar="N", help="Highest grade of the scale, for ERR and graded RBP; 4 as in gdeval."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="NAME", help="Test the other results against this one, instead of all pairs."
        ),
    ] = None,
    slices: Annotated[
        str | None,
        typer.Option("--slices", metavar="FILE", help="Query and columns such as intent; results within each value."),
    ] = None,
    level: Annotated[float, typer.Option("--level", metavar="LEVEL", help="Level of the intervals.")] = 0.95,
    seed: Seed = 0,
    per_query: Annotated[str | None, output_file("--per-query", "Write the value of each query.")] = None,
    tests: Annotated[str | None, output_file("--tests", "Write the paired tests between results.")] = None,
    report: Annotated[
        str | None,
        typer.Option(
            "--report",
            metavar="FILE.html",
            rich_help_panel="Output",
            help="Write a page there for any browser: verdict, queries with their items, slices, unjudged.",
        ),
    ] = None,
    items: Annotated[str | None, output_file("--items", "Item and text or url, for the page.")] = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Measure results against a truth.

    The truth has query, item and grade (or rank), or query, left, right and winner; or it is a qrels file, or another
    result. The mean is over the queries of both; queries that one side lacks are counted. Several results are also
    tested against each other or a baseline, query by query (randomisation, Student's t; Holm's correction within each
    metric).
    """
    from ..api import evaluate_runs
    from .terminal_tables import show_frame

    runs, known = _runs_and_truth(files, truth)
    check_files(
        [*runs, known, slices, items], [out, per_query, tests, report], format=format, tables=[per_query, tests]
    )
    check_report(report, None)
    with Talk(quiet=quiet) as talk:
        with talk.working("measuring"):
            evaluation = evaluate_runs(
                runs, known, split_list(metrics), unjudged=unjudged, all_queries=all_queries, ties=ties,
                max_grade=max_grade, baseline=baseline, slices=slices, level=level, seed=seed,
            )  # fmt: skip
        deliver(evaluation.table, out, format, talk, lambda: show_frame(evaluation.table, bold="value", cut=("run",)))
        write_wanted(per_query, lambda: evaluation.per_query, talk)
        write_wanted(tests, lambda: evaluation.comparisons, talk)
        for sentence in _sentences(evaluation):
            talk.say(sentence)
        if report is not None:
            from .. import report as reports

            with talk.working("writing the page"):
                reports.write_evaluation(evaluation, report, items=items, command=command_line())
            report_written(report, talk)


def _runs_and_truth(files: list[str], truth: str | None) -> tuple[list[str], str]:
    """The results, and the truth that stands last or is named."""
    if truth is not None:
        return files, truth
    if len(files) < 2:
        raise ParameterError(f"{files[0]!r} alone cannot be measured; name the result and then the truth")
    return files[:-1], files[-1]


def _sentences(evaluation: Evaluation) -> list[str]:
    """Paired tests in words, with the queries that differ most, slices that differ, and what is unjudged."""
    from ..api import describe_evaluation

    said = describe_evaluation(evaluation, tests=_MAX_TESTS_SHOWN)
    if len(evaluation.comparisons) > _MAX_TESTS_SHOWN:
        said.append(
            f"and {len(evaluation.comparisons) - _MAX_TESTS_SHOWN} more tests; --tests FILE writes them all, "
            "--baseline NAME tests against one result only"
        )
    return said
