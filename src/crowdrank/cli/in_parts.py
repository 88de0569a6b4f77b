"""``aggregate`` of packed judgments, and of files that are packed on the way: a part at a time, or on a cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ParameterError
from .outputs import LEVEL, deliver_consensus, report_written
from .reporting import write_report
from .running import say_failed

if TYPE_CHECKING:
    from .options import Reading
    from .talk import Talk

_PANEL = "More than memory"


@dataclass(frozen=True)
class Scaling:
    """Where a fit runs."""

    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Read packed judgments anew in every pass; by default above a quarter of the free memory.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster", metavar="ADDRESS|local:N", help="Run the passes on a Dask cluster.", rich_help_panel=_PANEL
        ),
    ] = None
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume", metavar="DIR", help="Keep finished passes there, and go on from them.", rich_help_panel=_PANEL
        ),
    ] = None


@dataclass(frozen=True)
class Outputs:
    """Where results go."""

    out: str | None
    format: str | None
    level: float | None
    annotators: str | None
    rating: tuple[str | None, float] | None = None
    """The item that ratings go by, ``None`` for the mean of all, and the level of their intervals."""
    report: ReportOf | None = None
    conditions: bool = False
    """Whether ``--fail-if`` looks at the annotators."""
    tiers: bool = False
    win_rate: Sequence[str] | None = None
    """The item whose share of wins is said, and the one it is against."""

    def of_items(self, consensus: Any) -> Any:
        """Return the table of ratings, or of tiers, that is to stand beside the items; ``None`` where neither is."""
        if self.rating is not None:
            return consensus.rating(self.rating[0], level=self.rating[1])
        return consensus.tiers(self.level or LEVEL).drop("score", "rank") if self.tiers else None

    def with_win_rate(self, consensus: Any, talk: Talk) -> Any:
        """Say the win rate that was asked for; return the consensus with it among its estimates."""
        if self.win_rate is None:
            return consensus
        level = self.level or LEVEL
        shares = consensus.win_rate(*self.win_rate, level=level)
        names = dict(zip(("item", "against"), [*self.win_rate, None], strict=False))
        other = "the others" if names["against"] is None else names["against"]
        bounds = f"{100 * shares['lower']:.1f} to {100 * shares['upper']:.1f} %"
        talk.say_anyway(
            f"{names['item']} wins {100 * shares['share']:.1f} % against {other} ({100 * level:g} % interval {bounds})"
        )
        estimates = {**consensus.estimates, "win_rate": {**names, **shares, "level": level}}
        return dataclasses.replace(consensus, estimates=estimates)

    @property
    def needs_annotators(self) -> bool:
        """Whether something that is written says what annotators are like."""
        from ..io.output import format_for

        return bool(self.annotators or self.report or self.conditions) or format_for(self.out, self.format) in (
            "json", "parquet",
        )  # fmt: skip


@dataclass(frozen=True)
class ReportOf:
    """The page to write."""

    path: str
    compared: str | None
    seed: int


def goes_in_parts(votes: Sequence[str], scaling: Scaling, talk: Talk) -> bool:
    """Return whether votes are aggregated in parts: packed ones, those asked for so, and those beyond memory."""
    from ..api import file_advice
    from ..cluster.packed import is_packed

    packed = [name for name in votes if is_packed(name)]
    if packed and len(votes) > 1:
        raise ParameterError(
            f"{packed[0]} holds packed judgments, which cannot be combined with other files; pack those into it too"
        )
    if packed or scaling.stream or scaling.cluster or scaling.resume:
        return True
    advice = file_advice(votes)
    if advice is not None:
        talk.say(advice.sentence)
    return advice is not None and advice.stream and scaling.stream is None


def packed_votes(votes: Sequence[str], reading: Reading, talk: Talk, wanted: dict[str, Any], outputs: Outputs) -> Any:
    """Return packed judgments, or those of files that are packed first; ``None`` where files turn out to hold few."""
    from .. import api
    from ..api import in_parts
    from ..cluster.packed import is_packed, scan_judgments
    from ..cluster.stored import MANY_ITEMS
    from .votes import options_of, packed_in_words

    _refuse_changes(votes[0], reading)
    options = options_of(reading)
    if reading.items is not None and (outputs.report is None or not is_packed(votes[0])):
        raise ParameterError(
            "--items cannot be used with judgments that are read in parts; leave it out, or pack the votes and give "
            "it with --report for texts and links"
        )
    if is_packed(votes[0]):
        packed = scan_judgments(votes[0])
        talk.say(packed_in_words(packed))
        return packed
    if wanted["control"] is not None:
        options = dataclasses.replace(options, **api.read_covariates_of(wanted["control"]))
    with talk.working("packing the votes") as progress:
        packed = api.pack_aside(votes, options=options, across_queries=reading.across_queries, progress=progress)
    talk.say(packed_in_words(packed))
    if len(packed) < in_parts.MANY_ROWS:
        talk.say(f"fewer than {in_parts.MANY_ROWS:,} judgments are fitted as a whole")
        return None
    if packed.n_items > MANY_ITEMS and outputs.out in (None, "-"):
        raise ParameterError(
            f"a ranking of {packed.n_items:,} items is too long to print; name a file with --out, or pack the votes "
            "first"
        )
    return packed


def _refuse_changes(votes: str, reading: Reading) -> None:
    """Refuse options that would not be followed: of packed judgments all about reading, of files those about all."""
    from ..cluster.packed import is_packed
    from .votes import reading_words, refuse_unpackable

    if is_packed(votes):
        given = [word for word in reading_words(dataclasses.replace(reading, items=None)) if word.startswith("--")]
        if given:
            raise ParameterError(
                f"{given[0]} applies to reading files, but {votes} is already packed; leave it out, or give the files"
            )
    refuse_unpackable(reading, "give the file itself with --no-stream, or leave it out")


def aggregate_in_parts(
    packed: Any, votes: Sequence[str], reading: Reading, scaling: Scaling, talk: Talk, wanted: dict[str, Any],
    outputs: Outputs,
) -> Any:  # fmt: skip
    """Fit judgments in parts, write the consensus, say what a sample tells of the annotators; return the facts."""
    from .. import api
    from ..cluster.packed import is_packed
    from ..cluster.stored import StoredConsensus
    from ..io.output import format_for, write_table
    from ..review.findings import findings_of
    from . import annotator_summary as of_annotators

    consensus = _fit(packed, scaling, talk, wanted)
    if wanted["method"] != "auto":
        talk.say(f"method {consensus.method}")
    facts: list[Any] = []

    def about() -> tuple[Any, Any]:
        if talk.quiet and not outputs.needs_annotators:
            return consensus, None
        with talk.working("checking the annotators"):
            facts.append(api.sampled_facts(packed, consensus))
            # the same consensus all the time, whose annotators are judged once
            of_annotators.tell(facts[0], talk)
        findings = findings_of(facts[0]) if format_for(outputs.out, outputs.format) == "json" else None
        return facts[0].reviewed_consensus, findings

    failed = None
    if isinstance(consensus, StoredConsensus):
        _deliver_stored(consensus, outputs, talk)
        about()
    else:
        consensus = outputs.with_win_rate(consensus, talk)
        ratings = outputs.of_items(consensus)
        failed = deliver_consensus(consensus, outputs.out, outputs.format, outputs.level, talk, about, ratings)
    if failed is not None:
        say_failed(
            failed,
            "the annotators were not checked",
            fatal=outputs.annotators is not None or outputs.report is not None,
        )
        return None
    if outputs.annotators and facts[0].table is not None:
        write_table(facts[0].table, outputs.annotators)
        report_written(outputs.annotators, talk)
    if outputs.report is not None:
        page = outputs.report
        sampled = api.facts_of_sample(packed, facts[0].reviewed_consensus)
        files = [] if is_packed(votes[0]) else votes
        title = f"Consensus of {packed.rows:,} {packed.kind}s"
        write_report(sampled, page.path, files, reading, page.compared, page.seed, talk, title=title)
    return facts[0] if facts else None


def _fit(packed: Any, scaling: Scaling, talk: Talk, wanted: dict[str, Any]) -> Any:
    """The consensus, after a line that says which way it goes."""
    from .. import api

    with talk.working("finding the consensus") as progress:
        return api.aggregate(
            packed, **wanted, stream=scaling.stream, cluster=scaling.cluster, resume=scaling.resume, progress=progress
        )


def _deliver_stored(consensus: Any, outputs: Outputs, talk: Talk) -> None:
    """Write a ranking that stays in Parquet, or say where it is."""
    asked = {"--rating": outputs.rating, "--tiers": outputs.tiers or None, "--win-rate": outputs.win_rate}
    for name in [name for name, value in asked.items() if value is not None]:
        raise ParameterError(
            f"{name} needs the items of one query in memory, but there are {len(consensus):,}; leave it out"
        )
    if outputs.out in (None, "-"):
        talk.say_anyway(f"{len(consensus):,} items: the ranking stays in {consensus.path}; --out FILE writes it")
        return
    consensus.write(outputs.out)
    report_written(outputs.out, talk)
