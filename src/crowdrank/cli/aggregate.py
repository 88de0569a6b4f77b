"""``crowdrank aggregate``: from votes to a ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .help import examples
from .options import Format, Out, Quiet, Reading, Seed, spread
from .outputs import LEVEL, check_files, deliver_consensus
from .reporting import Compared, Conditions, FailIf, Report, check_report, leave_if, write_report
from .running import say_failed
from .talk import Talk
from .votes import read_votes
from .words import complete_method, listed, pairs

if TYPE_CHECKING:
    from ..data.consensus import Consensus
    from ..review.findings import Findings

EXAMPLES = examples(
    ("rank what was judged; the method fits the kind of judgment", "crowdrank aggregate votes.csv"),
    (
        "twelve models over many prompts, with intervals",
        "crowdrank aggregate votes.csv --across-queries --intervals 0.95",
    ),
    (
        "how sure that is if other annotators had judged",
        "crowdrank aggregate votes.csv --bootstrap 200 --resample annotator",
    ),
    (
        "one grade for each item, from grades in words",
        "crowdrank aggregate grades.csv --want grade --levels Bad,Fair,Good",
    ),
    ("choose a method and its parameters", "crowdrank aggregate votes.csv --method bradley_terry --set ties=davidson"),
    (
        "the annotators too, and results for another program",
        "crowdrank aggregate a.csv b.csv -o ranks.csv --annotators who.csv",
    ),
    ("a report for the team, with pictures", "crowdrank aggregate votes.csv --report report.html"),
    ("fail in a pipeline where an annotator is bad", "crowdrank aggregate votes.csv -o r.csv --fail-if 'quality<0.6'"),
    ("grades and preferences together, on one scale", "crowdrank aggregate grades.csv preferences.csv"),
    ("from standard input, in a pipe", "zcat votes.jsonl.gz | crowdrank aggregate - --format json > ranks.json"),
)


@spread
def aggregate(
    *,
    votes: Annotated[
        list[str],
        typer.Argument(metavar="VOTES...", help="Files of judgments, - for standard input.", show_default=False),
    ],
    method: Annotated[
        str,
        typer.Option("--method", "-m", metavar="NAME", autocompletion=complete_method, help="See crowdrank methods."),
    ] = "auto",
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the method; repeatable.")
    ] = None,
    want: Annotated[
        str, typer.Option("--want", metavar="order|grade", help="What a method is to be chosen for, with auto.")
    ] = "order",
    bootstrap: Annotated[
        int | None,
        typer.Option(
            "--bootstrap", metavar="N", help="Intervals of any method from N resamples of the votes, say 200."
        ),
    ] = None,
    resample: Annotated[
        str,
        typer.Option("--resample", metavar="UNIT", help="What is drawn again: judgment, annotator, query or group."),
    ] = "judgment",
    trusted: Annotated[
        str | None, typer.Option("--trusted", metavar="A,B,C", help="Annotators known to be good, if the method asks.")
    ] = None,
    known: Annotated[
        str | None,
        typer.Option("--known", metavar="FILE", help="Items whose truth is known: query, item and grade or score."),
    ] = None,
    seed: Seed = 0,
    reading: Reading,
    intervals: Annotated[
        float | None,
        typer.Option(
            "--intervals",
            metavar="LEVEL",
            help="Add intervals of score and rank, such as 0.95 (which --bootstrap does).",
            rich_help_panel="Output",
        ),
    ] = None,
    annotators: Annotated[
        str | None,
        typer.Option(
            "--annotators",
            metavar="FILE",
            help="Write the quality and habits of each annotator there, and whom to keep, review or drop.",
            rich_help_panel="Output",
        ),
    ] = None,
    report: Report = None,
    compared: Compared = None,
    fail_if: FailIf = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
) -> None:
    """Turn votes into a ranking, and say which annotators to look at.

    Writes query, item, score and rank, best first, with grade and confidence, std_error or intervals where the method
    gives them. A terminal shows the best items; everything else gets CSV. Grades, preferences and rankings are told
    apart by their columns, and common column names of other tools are understood. Files of several kinds are taken
    together: equal ids mean the same item and annotator.
    """
    from .. import api
    from ..errors import ParameterError
    from ..io.output import format_for
    from ..io.tables import read_table
    from ..review.findings import facts_of, findings_of
    from . import annotators as of_annotators

    check_files([*votes, reading.items, known], [out, annotators, report], format=format, tables=[annotators])
    params = pairs(setting, "--set", "alpha=2")
    api.check_aggregation(method, params, want=want, bootstrap=bootstrap, resample=resample)
    api.check_level(intervals, "intervals")
    check_report(report, compared)
    conditions = Conditions(fail_if)
    with Talk(quiet=quiet) as talk:
        judgments = read_votes(votes, reading, talk)
        if annotators and not judgments.n_annotators:
            raise ParameterError("the votes name no annotators to write a table of; leave --annotators out")
        with talk.working("finding the consensus") as progress:
            consensus = api.aggregate(
                judgments, method, params=params, seed=seed, want=want, bootstrap=bootstrap,
                resample=resample, progress=progress, trusted=listed(trusted),
                known=None if known is None else read_table(known),
            )  # fmt: skip
        if method != "auto":
            talk.say(f"method {consensus.method}")
        facts = facts_of(consensus, judgments)
        chosen = format_for(out, format)

        def about() -> tuple[Consensus, Findings | None]:
            if not (annotators or not quiet or chosen in ("json", "parquet")):
                return consensus, None
            with talk.working("judging the annotators"):
                of_annotators.tell(facts.table, facts.diagnostics, talk)
            return facts.reviewed, findings_of(facts) if chosen == "json" else None

        level = LEVEL if bootstrap and intervals is None else intervals
        failed = deliver_consensus(consensus, out, format, level, talk, about)
        if failed is not None:
            say_failed(failed, "the annotators were not looked at", fatal=bool(annotators or report or fail_if))
            return
        if annotators and facts.table is not None:
            of_annotators.write(facts.table, annotators, facts.reviewed, judgments, talk)
        holding = conditions.holding(facts)
        if report:
            write_report(facts, report, votes, reading, compared, seed, talk)
    leave_if(holding)
