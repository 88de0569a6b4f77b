"""``crowdrank aggregate``: from votes to a ranking."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .help import examples
from .in_parts import Outputs, ReportOf, Scaling, aggregate_in_parts, goes_in_parts, packed_votes
from .options import WHO, Format, Out, Quiet, Reading, Seed, Votes, spread
from .outputs import LEVEL, check_files, deliver_consensus
from .reporting import Compared, Conditions, FailIf, Report, check_report, leave_if, write_report
from .running import say_failed
from .talk import Talk
from .votes import read_settled
from .words import complete_method, pairs, split_list

if TYPE_CHECKING:
    from ..data.consensus import Consensus
    from ..review.facts import Facts
    from ..review.findings import Findings

EXAMPLES = examples(
    ("rank the items; the method is chosen by the kind of judgment", "crowdrank aggregate votes.csv"),
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
    ("make a pipeline fail when an annotator is bad", "crowdrank aggregate votes.csv -o r.csv --fail-if 'quality<0.6'"),
    ("grades and preferences together, on one scale", "crowdrank aggregate grades.csv preferences.csv"),
    ("any number of packed judgments", "crowdrank aggregate packed --method bradley_terry --stream -o ranks.parquet"),
    ("from standard input, in a pipe", "zcat votes.jsonl.gz | crowdrank aggregate - --format json > ranks.json"),
)


@spread
def aggregate(
    *,
    votes: Votes,
    method: Annotated[
        str,
        typer.Option("--method", "-m", metavar="NAME", autocompletion=complete_method, help="See crowdrank methods."),
    ] = "auto",
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the method; repeatable.")
    ] = None,
    want: Annotated[
        str,
        typer.Option(
            "--want",
            metavar="order|grade",
            help="What --method auto should give: an order, or one grade per item.",
        ),
    ] = "order",
    bootstrap: Annotated[
        int | None,
        typer.Option(
            "--bootstrap", metavar="N", help="Intervals of any method from N resamples of the votes, say 200."
        ),
    ] = None,
    resample: Annotated[
        str,
        typer.Option(
            "--resample", metavar="UNIT", help="What the bootstrap resamples: judgment, annotator, query or group."
        ),
    ] = "judgment",
    robust: Annotated[
        str | None,
        typer.Option(
            "--robust",
            metavar="annotator|query|none",
            help="Standard errors that allow for correlated judgments of one annotator or query.",
        ),
    ] = None,
    trusted: Annotated[
        str | None,
        typer.Option(
            "--trusted", metavar="WHO", help=f"Annotators known to be good, for methods that use them: {WHO}."
        ),
    ] = None,
    known: Annotated[
        str | None,
        typer.Option("--known", metavar="FILE", help="Items whose truth is known: query, item and grade or score."),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            "--control",
            metavar="A,B,C",
            help="Covariates of preferences to control for, such as length (columns length_left, length_right), style "
            "(counted in left_text, right_text) or self (with --families).",
        ),
    ] = None,
    families: Annotated[
        str | None,
        typer.Option(
            "--families",
            "--item-families",
            metavar="FILE",
            help="Table of item and family, for --control self; the votes need a group column.",
        ),
    ] = None,
    swaps: Annotated[
        str,
        typer.Option(
            "--swaps",
            metavar="keep|tie|drop",
            help="What to do with answers that change when left and right are swapped.",
        ),
    ] = "keep",
    reweight: Annotated[
        str | None,
        typer.Option(
            "--reweight", metavar="pairs", help="Give every pair the same weight, however often it was asked."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="One ranking per value of this column, shrunk towards the ranking of all votes.",
        ),
    ] = None,
    criteria: Annotated[
        str | None,
        typer.Option(
            "--criteria", metavar="A,B,C", help="Columns of grades, one per criterion; ranks by each and by their mean."
        ),
    ] = None,
    seed: Seed = 0,
    reading: Reading,
    scaling: Scaling,
    rating: Annotated[
        str | None,
        typer.Option(
            "--rating",
            metavar="anchor=ID",
            help="Scores as ratings: 1000 for the anchor, or with mean for the average item; 400 points are odds of "
            "10 to 1.",
            rich_help_panel="Output",
        ),
    ] = None,
    tiers: Annotated[
        bool,
        typer.Option(
            "--tiers",
            help="Add the tier of each item: a new one begins where an item is clearly below the first of the last.",
            rich_help_panel="Output",
        ),
    ] = False,
    win_rate: Annotated[
        str | None,
        typer.Option(
            "--win-rate",
            metavar="A,B",
            help="Say how often A wins against B, with its interval; A alone is against all others.",
            rich_help_panel="Output",
        ),
    ] = None,
    intervals: Annotated[
        float | None,
        typer.Option(
            "--intervals",
            metavar="LEVEL",
            help="Add intervals of score and rank at this level, such as 0.95 (--bootstrap adds them too).",
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
    gives them. A terminal shows the best items; everything else gets CSV. Grades, preferences and rankings are
    recognised by their columns, and common column names of other tools are understood. Files of several kinds are
    taken together: equal ids mean the same item and annotator.
    """
    from .. import api
    from ..io.tables import read_table

    check_files([*votes, reading.items, known, families], [out, annotators, report], format=format, tables=[annotators])
    params = pairs(setting, "--set", "alpha=2")
    api.check_aggregation(method, params, want=want, bootstrap=bootstrap, resample=resample, robust=robust)
    api.check_level(intervals, "intervals")
    check_report(report, compared)
    conditions, anchor = Conditions(fail_if), _anchor(rating)
    if families is not None:
        api.expect_self(control)
    wanted = {
        "method": method, "params": params, "seed": seed, "want": want, "trusted": trusted,
        "robust": robust, "control": control, "reweight": reweight,
    }  # fmt: skip
    if by is not None or criteria is not None:
        from .several_fits import SeveralFits, check_alone

        check_alone(by, criteria, votes, {
            "--report": report, "--annotators": annotators, "--bootstrap": bootstrap, "--rating": rating,
            "--tiers": tiers, "--win-rate": win_rate, "--intervals": intervals, "--fail-if": fail_if, "--known": known,
            "--stream": scaling.stream, "--cluster": scaling.cluster, "--resume": scaling.resume,
        })  # fmt: skip
        fits = SeveralFits(votes, reading, wanted, families, swaps, quiet)
        fits.deliver(by, split_list(criteria), out, format)
        return
    level = LEVEL if bootstrap and intervals is None else intervals
    page = None if report is None else ReportOf(report, compared, seed)
    scale = None if rating is None else (anchor, level or LEVEL)
    outputs = Outputs(out, format, level, annotators, scale, page, bool(fail_if), tiers, _two_items(win_rate))
    with Talk(quiet=quiet) as talk:
        wanted |= {"bootstrap": bootstrap, "resample": resample}
        wanted["known"] = None if known is None else read_table(known)
        packed = None
        if goes_in_parts(votes, scaling, talk):
            _refuse_in_parts({"--families": families, "--swaps": None if swaps == "keep" else swaps})
            packed = packed_votes(votes, reading, talk, wanted, outputs)
        judgments = None
        if packed is None:
            judgments = read_settled(votes, reading, talk, control, swaps, families)
            packed = api.hold_many(judgments, method, bootstrap=bootstrap)
        if packed is not None:
            facts = aggregate_in_parts(packed, votes, reading, scaling, talk, wanted, outputs)
        else:
            facts = _aggregate_whole(judgments, wanted, outputs, talk)
            if facts is not None and report is not None:
                write_report(facts, report, votes, reading, compared, seed, talk)
        holding = [] if facts is None else conditions.sentences_that_hold(facts)
    leave_if(holding)


def _refuse_in_parts(given: dict[str, str | None]) -> None:
    """Refuse options that need all judgments at once."""
    from ..errors import ParameterError

    for name in [name for name, value in given.items() if value is not None]:
        raise ParameterError(
            f"{name} needs all judgments of an annotator at once, but these are read in parts; give the file itself "
            "with --no-stream, or leave it out"
        )


def _aggregate_whole(judgments: Any, wanted: dict[str, Any], outputs: Outputs, talk: Talk) -> Facts | None:
    """Aggregate judgments in memory and write the consensus; return what findings are made of, if that went well."""
    from .. import api
    from ..errors import ParameterError
    from ..review.facts import facts_of
    from . import annotator_summary as of_annotators

    if outputs.annotators and not judgments.n_annotators:
        raise ParameterError("the votes name no annotators, so there is no table of them; leave --annotators out")
    with talk.working("finding the consensus") as progress:
        consensus = api.aggregate(judgments, progress=progress, **wanted)
    if wanted["method"] != "auto":
        talk.say(f"method {consensus.method}")
    consensus = outputs.with_win_rate(consensus, talk)
    facts = facts_of(consensus, judgments)
    ratings = outputs.of_items(consensus)
    look = partial(_look_at_annotators, facts, outputs, talk)
    failed = deliver_consensus(consensus, outputs.out, outputs.format, outputs.level, talk, look, ratings)
    if failed is not None:
        fatal = bool(outputs.annotators or outputs.report or outputs.conditions)
        say_failed(failed, "the annotators were not checked", fatal=fatal)
        return None
    if outputs.annotators and facts.table is not None:
        of_annotators.write(facts.table, outputs.annotators, facts.reviewed_consensus, judgments, talk)
    return facts


def _look_at_annotators(facts: Facts, outputs: Outputs, talk: Talk) -> tuple[Consensus, Findings | None]:
    """Say what is odd about annotators; return the consensus with its diagnostics, and the findings that JSON holds."""
    from ..io.output import format_for
    from . import annotator_summary as of_annotators

    chosen = format_for(outputs.out, outputs.format)
    if talk.quiet and not (outputs.annotators or chosen in ("json", "parquet")):
        return facts.consensus, None
    with talk.working("checking the annotators"):
        of_annotators.tell(facts, talk)
    if chosen != "json":
        return facts.reviewed_consensus, None
    from ..review.findings import findings_of

    return facts.reviewed_consensus, findings_of(facts)


def _two_items(win_rate: str | None) -> list[str] | None:
    """The items that ``--win-rate`` names."""
    items = split_list(win_rate)
    if items is not None and len(items) not in (1, 2):
        from ..errors import ParameterError

        raise ParameterError(f"--win-rate {win_rate} is not understood; name two items, as in --win-rate A,B")
    return items


def _anchor(rating: str | None) -> str | None:
    """The item that ``--rating`` names, ``None`` for the mean of all."""
    if rating in (None, "mean"):
        return None
    name, equals, anchor = str(rating).partition("=")
    if name != "anchor" or not equals or not anchor:
        from ..errors import ParameterError

        raise ParameterError(f"--rating {rating} is not understood; write --rating anchor=ITEM, or --rating mean")
    return anchor
