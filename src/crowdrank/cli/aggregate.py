"""``crowdrank aggregate``: from votes to a ranking, whole, in parts, or as several fits in one table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import typer

from ..errors import CrowdrankError, JudgmentError, ParameterError
from ..registry import resolve
from ..wording import SHOWN, counted, first_few, of_all
from .outputs import (
    LEVEL,
    check_files,
    check_report,
    deliver,
    deliver_consensus,
    report_written,
    write_summary,
    write_wanted,
)
from .running import FAILED, command_line, say_failed
from .talk import Talk, complain, one_line
from .votes import (
    Reading,
    expect_packed_alone,
    packed_in_words,
    read_settled,
    refuse_unpackable,
    split_list,
)

if TYPE_CHECKING:
    import polars as pl

    from ..api import CategoryFit, Rubric
    from ..data.consensus import Consensus
    from ..io.notices import Notice
    from ..review.facts import Facts
    from ..review.findings import Findings

_MOST_VALUES = 100
"""Values of a column that ``--by`` makes a ranking for."""

_MAX_CHARACTERS = 40
"""Characters of an annotator's name that are shown."""


@dataclass(frozen=True)
class Outputs:
    """What is written and said of a consensus."""

    out: str | None
    format: str | None
    level: float | None
    annotators: str | None
    anchor: str | None
    """The item that ratings go by, ``None`` for the mean of all."""
    rated: bool
    tiers: bool
    win_rate: Sequence[str] | None
    """The item whose share of wins is said, and the one it is against."""
    report: str | None
    summary: str | None
    compared: str | None
    seed: int
    conditions: Sequence[Any]
    """What the command fails on."""
    moderation: str | None
    anchors: str | None
    levels: Sequence[Any] | None
    """Of the anchors' grades, worst first."""
    probabilities: bool
    soft_labels: str | None
    doubt: tuple[pl.DataFrame, pl.DataFrame] | None
    """How often each item, and each annotator, was answered with "can't tell"."""

    def item_columns(self, consensus: Consensus, judged: Any) -> pl.DataFrame | None:
        """Return what stands beside the items: probabilities, difficulty, ratings or tiers; ``None`` for nothing."""
        from .. import api

        level = self.level or LEVEL
        tables = [api.soft_labels(consensus, judged)] if self.probabilities else []
        tables += [self.doubt[0]] if self.doubt is not None else []
        tables += [consensus.rating(self.anchor, level=level)] if self.rated else []
        tables += [consensus.tiers(level).drop("score", "rank")] if self.tiers and not self.rated else []
        if not tables:
            return None
        whole = tables[0]
        for table in tables[1:]:
            keys = [name for name in ("query", "item") if name in whole.columns and name in table.columns]
            whole = whole.join(table, on=keys, how="left", maintain_order="left")
        return whole

    def with_doubt(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the table of annotators with how often each could not tell, those who never could included."""
        if self.doubt is None or "annotator" not in table.columns:
            return table
        return table.join(self.doubt[1], on="annotator", how="full", coalesce=True, maintain_order="left_right")

    def with_win_rate(self, consensus: Consensus, talk: Talk) -> Consensus:
        """Say the win rate that was asked for; return the consensus with it among its estimates."""
        if self.win_rate is None:
            return consensus
        level = self.level or LEVEL
        shares = consensus.win_rate(*self.win_rate, level=level)
        names = dict(zip(("item", "against"), [*self.win_rate, None], strict=False))
        other = "the others" if names["against"] is None else names["against"]
        bounds = f"{100 * shares['lower']:.1f} to {100 * shares['upper']:.1f} %"
        wins = f"{names['item']} wins {100 * shares['share']:.1f} % against {other}"
        talk.say(f"{wins} ({100 * level:g} % interval {bounds})", needed=True)
        estimates = {**consensus.estimates, "win_rate": {**names, **shares, "level": level}}
        return dataclasses.replace(consensus, estimates=estimates)


def aggregate(
    *,
    talk: Talk,
    votes: list[str],
    reading: Reading,
    known: str | None,
    families: str | None,
    swaps: str,
    by: str | None,
    criteria: list[str] | None,
    overall: str | None,
    several: list[str] | None,
    classifier: str | None,
    cannot_tell: list[str] | None,
    probabilities: bool,
    soft_labels: str | None,
    stream: bool | None,
    cluster: str | None,
    resume: str | None,
    rating: str | None,
    tiers: bool,
    win_rate: list[str] | None,
    intervals: float | None,
    annotators: str | None,
    report: str | None,
    summary: str | None,
    moderation: str | None,
    anchors: str | None,
    compared: str | None,
    fail_if: list[str] | None,
    out: str | None,
    format: str | None,
    **wanted: Any,
) -> None:
    """Turn votes into a ranking, and say which annotators to look at.

    Writes query, item, score and rank, best first, with grade and confidence, std_error or intervals where the method
    gives them. A terminal shows the best items; everything else gets CSV. Grades, preferences and rankings are
    recognised by their columns, and common column names of other tools are understood. Files of several kinds are
    taken together: equal ids mean the same item and annotator.

    Examples
    --------
    # rank the items; the method is chosen by the kind of judgment
    crowdrank aggregate votes.csv
    # twelve models over many prompts, with intervals
    crowdrank aggregate votes.csv --across-queries --intervals 0.95
    # how sure that is if other annotators had judged
    crowdrank aggregate votes.csv --bootstrap 200 --resample annotator
    # one grade for each item, from grades in words
    crowdrank aggregate grades.csv --want grade --levels Bad,Fair,Good
    # choose a method and its parameters
    crowdrank aggregate votes.csv --method bradley_terry --set ties=davidson
    # the annotators too, and results for another program
    crowdrank aggregate a.csv b.csv -o ranks.csv --annotators who.csv
    # a report for the team, with pictures
    crowdrank aggregate votes.csv --report report.html
    # make a pipeline fail when an annotator is bad, and say why on its page
    crowdrank aggregate votes.csv -o r.csv --fail-if 'quality<0.6' --summary s.md
    # grades and preferences together, on one scale
    crowdrank aggregate grades.csv preferences.csv
    # any number of packed judgments
    crowdrank aggregate packed --method bradley_terry --stream -o ranks.parquet
    # from standard input, in a pipe
    zcat votes.jsonl.gz | crowdrank aggregate - --format json > ranks.json
    """
    from .. import api
    from ..io.output import format_for
    from ..io.tables import read_table

    inputs, written = (
        [*votes, reading.items, known, families, anchors, classifier],
        [out, annotators, report, moderation, summary, soft_labels],
    )
    check_files(inputs, written, format=format, tables=[annotators])
    one_ranking = {
        "--report": report, "--bootstrap": wanted["bootstrap"], "--rating": rating, "--tiers": tiers,
        "--win-rate": win_rate, "--intervals": intervals, "--fail-if": fail_if, "--known": known, "--stream": stream,
        "--cluster": cluster, "--resume": resume, "--moderation": moderation, "--anchors": anchors,
        "--classifier": classifier, "--probabilities": probabilities, "--soft-labels": soft_labels,
    }  # fmt: skip
    if several is not None:
        others = {
            **one_ranking, "--families": families, "--by": by, "--criteria": criteria, "--overall": overall,
            "--summary": summary, "--swaps": swaps != "keep", "--want": wanted["want"] != "order",
            **{f"--{name}": wanted[name] for name in ("control", "trusted", "robust", "reweight")},
        }  # fmt: skip
        for name in [name for name, value in others.items() if value]:
            raise ParameterError(f"{name} does not apply to sets of labels; leave it or --several-labels out")
        _label_sets(votes, reading, several, wanted, cannot_tell or [], (out, format, annotators), talk)
        return
    method, bootstrap, control = wanted["method"], wanted["bootstrap"], wanted["control"]
    api.check_aggregation(
        method, wanted["params"], want=wanted["want"], bootstrap=bootstrap, resample=wanted["resample"],
        robust=wanted["robust"], shared=wanted["shared"],
    )  # fmt: skip
    api.check_level(intervals, "intervals")
    check_report(report)
    check_report(moderation)
    if anchors is not None and moderation is None and format_for(out, format) not in ("xlsx", "json"):
        raise ParameterError(
            "--anchors grades scripts on a page or in a workbook; give --moderation FILE.html, or -o FILE.xlsx"
        )
    if compared is not None and report is None:
        raise ParameterError("--compare adds a section to the report; give --report FILE.html too, or use compare")
    for name in () if compared in (None, "all") else split_list(str(compared)):
        resolve("aggregator", name)
    conditions = []
    if fail_if:
        from ..review.conditions import parse_condition

        conditions = [parse_condition(text) for text in fail_if]
    anchor = _anchor(rating)
    if families is not None:
        api.expect_self(control)
    if overall is not None and criteria is None:
        raise ParameterError("--overall goes with --criteria, whose weights it teaches; name those too")
    if by is not None or criteria is not None:
        mine = "--by" if by is not None else "--criteria"
        if by is not None and criteria is not None:
            raise ParameterError("--by and --criteria make different tables; give only one of them")
        if "-" in votes:
            raise ParameterError(
                f"{mine} reads the votes several times, but standard input can be read only once; give a file"
            )
        for name, value in {**one_ranking, "--annotators": annotators, "--cannot-tell": cannot_tell}.items():
            if value:
                raise ParameterError(f"{name} applies to one ranking, but {mine} makes several; leave one out")
        del wanted["bootstrap"], wanted["resample"]
        fits = SeveralFits(votes, reading, wanted, families, swaps, talk)
        found = None if by is not None else fits.by_criterion(criteria or [], overall, wanted["seed"])
        table = fits.by_category(by or "") if found is None else found.table
        if found is not None and format_for(out, format) == "xlsx":
            from ..io.output import write_sheets

            write_sheets(found.sheets(), out)
            report_written(out, talk)
            return
        from .terminal_tables import show_frame

        deliver(table, out, format, talk, lambda: show_frame(table, bold="item", cut=("item",)))
        write_summary(summary, f"Rankings of {counted(table['item'].n_unique(), 'item')}", table, talk)
        return
    if win_rate is not None and len(win_rate) not in (1, 2):
        raise ParameterError(f"--win-rate {','.join(win_rate)} is not understood; name two items, as in --win-rate A,B")
    outputs = Outputs(
        out, format, LEVEL if bootstrap and intervals is None else intervals, annotators, anchor, rating is not None,
        tiers, win_rate, report, summary, compared, wanted["seed"], conditions, moderation, anchors, reading.levels,
        probabilities, soft_labels, None,
    )  # fmt: skip
    if anchors is not None:
        # the levels are those of the anchors; pairs have none
        reading = reading.but(levels=None)
    wanted["known"] = None if known is None else read_table(known)
    scaling = {"stream": stream, "cluster": cluster, "resume": resume}
    judged: Any = None
    if _goes_in_parts(votes, scaling, talk):
        for flag, given in (("--families", families is not None), ("--swaps", swaps != "keep")):
            if given:
                raise ParameterError(
                    f"{flag} needs all judgments of an annotator at once, but these are read in parts; give the file "
                    "itself with --no-stream, or leave it out"
                )
        judged = _packed_votes(votes, reading, talk, control, outputs)
    if judged is None:
        answered = reading
        if cannot_tell is not None:
            answered, outputs = _set_apart(votes, reading, cannot_tell, outputs, talk)
        judged = read_settled(votes, answered, talk, control, swaps, families)
        if classifier is not None:
            judged = api.with_classifier(judged, read_table(classifier))
        judged = api.hold_many(judged, method, bootstrap=bootstrap) or judged
    holding = _fit_and_write(judged, votes, reading, wanted, scaling, outputs, talk)
    if holding:
        talk.flush()
        complain(f"--fail-if: {'; '.join(holding)}")
        raise typer.Exit(FAILED)


def _anchor(rating: str | None) -> str | None:
    """The item that ``--rating`` names, ``None`` for the mean of all."""
    if rating in (None, "mean"):
        return None
    name, equals, anchor = str(rating).partition("=")
    if name != "anchor" or not equals or not anchor:
        raise ParameterError(f"--rating {rating} is not understood; write --rating anchor=ITEM, or --rating mean")
    return anchor


def _goes_in_parts(votes: Sequence[str], scaling: Mapping[str, Any], talk: Talk) -> bool:
    """Whether votes are aggregated in parts: packed ones, those asked for so, and those beyond memory."""
    from ..api import file_advice

    if expect_packed_alone(votes) or any(scaling.values()):
        return True
    advice = file_advice(votes)
    if advice is not None:
        talk.say(advice.sentence)
    return advice is not None and advice.stream and scaling["stream"] is None


def _packed_votes(votes: Sequence[str], reading: Reading, talk: Talk, control: str | None, outputs: Outputs) -> Any:
    """Packed judgments, or those of files that are packed first; ``None`` where files turn out to hold few."""
    from .. import api
    from ..api import in_parts
    from ..cluster.packed import is_packed, scan_judgments
    from ..data.parted import MANY_ITEMS

    packed_before = is_packed(votes[0])
    given = [word for word in reading.words if word.startswith("--") and word != "--items"]
    if packed_before and given:
        raise ParameterError(
            f"{given[0]} applies to reading files, but {votes[0]} is already packed; leave it out, or give the files"
        )
    refuse_unpackable(reading, "give the file itself with --no-stream, or leave it out")
    options = reading.options(control)
    if reading.items is not None and (outputs.report is None or not packed_before):
        raise ParameterError(
            "--items cannot be used with judgments that are read in parts; leave it out, or pack the votes and give "
            "it with --report for texts and links"
        )
    if packed_before:
        packed = scan_judgments(votes[0])
        talk.say(packed_in_words(packed))
        return packed
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


def _fit_and_write(
    judged: Any,
    votes: Sequence[str],
    reading: Reading,
    wanted: Mapping[str, Any],
    scaling: Mapping[str, Any],
    outputs: Outputs,
    talk: Talk,
) -> list[str]:
    """Fit judgments, write the consensus and what goes with it; return the conditions that hold, in words."""
    from .. import api
    from ..cluster.packed import PackedJudgments
    from ..data.consensus import Consensus
    from ..io.output import format_for
    from ..review.facts import facts_of

    packed = judged if isinstance(judged, PackedJudgments) else None
    if packed is None and outputs.annotators and not judged.n_annotators:
        raise ParameterError("the votes name no annotators, so there is no table of them; leave --annotators out")
    with talk.working("finding the consensus") as progress:
        how = {} if packed is None else scaling
        consensus: Any = api.aggregate(judged, **wanted, **how, progress=progress)
    if wanted["method"] != "auto":
        talk.say(f"method {consensus.method}")
    if outputs.doubt is not None and packed is None:
        informed = api.informed_by_difficulty(consensus, judged, outputs.doubt[0])
        rates = {"annotators": outputs.doubt[1].to_dicts(), "items": outputs.doubt[0].to_dicts()}
        consensus = dataclasses.replace(informed, estimates={**informed.estimates, "cannot_tell": rates})
    chosen = format_for(outputs.out, outputs.format)
    moderated = _moderate(judged, consensus, outputs, chosen) if packed is None else None
    if moderated is not None and isinstance(consensus, Consensus):
        estimates = {**consensus.estimates, "reliability": moderated.reliability}
        consensus = dataclasses.replace(consensus, estimates=estimates)

    @cache
    def facts() -> Facts:
        return facts_of(consensus, judged) if packed is None else api.sampled_facts(packed, consensus)

    def look() -> tuple[Consensus, Findings | None]:
        if talk.quiet and not (outputs.annotators or outputs.summary or chosen in ("json", "parquet")):
            return consensus, None
        with talk.working("checking the annotators"):
            tell_of_annotators(facts(), talk)
        if chosen != "json":
            return facts().reviewed_consensus, None
        from ..review.findings import findings_of

        return facts().reviewed_consensus, findings_of(facts())

    if not isinstance(consensus, Consensus):
        _deliver_stored(consensus, outputs, talk)
        look()
    elif chosen == "xlsx":
        consensus = outputs.with_win_rate(consensus, talk)
        _write_workbook(consensus, facts, moderated, outputs, judged, talk)
        look()
    else:
        consensus = outputs.with_win_rate(consensus, talk)
        columns = outputs.item_columns(consensus, judged)
        failed = deliver_consensus(consensus, outputs.out, outputs.format, outputs.level, talk, look, columns)
        if failed is not None:
            fatal = bool(outputs.annotators or outputs.report or outputs.summary or outputs.conditions)
            say_failed(failed, "the annotators were not checked", fatal=fatal)
            return []
    table = facts().table if outputs.annotators else None
    if outputs.annotators and table is not None:
        if packed is None:
            _write_annotators(facts(), outputs, judged, talk)
        else:
            write_wanted(outputs.annotators, lambda: table, talk)
    if outputs.moderation is not None and moderated is not None:
        from ..report import write_moderation

        write_moderation(moderated, outputs.moderation)
        report_written(outputs.moderation, talk)
        for step in moderated.steps:
            talk.say(step[:1].lower() + step[1:].removesuffix("."))
    if outputs.soft_labels is not None:
        from ..io.output import write_text
        from ..io.results import json_text

        write_text(json_text(api.lewidi(consensus, judged)), outputs.soft_labels)
        report_written(outputs.soft_labels, talk)
    if outputs.report is not None:
        _write_report(facts(), outputs.report, votes, reading, outputs, packed, talk)
    from ..review.conditions import check

    outcomes = [check(one, facts()) for one in outputs.conditions]
    holding = [outcome.sentence for outcome in outcomes if outcome.holds]
    if outputs.summary is not None:
        shown = None
        if isinstance(consensus, Consensus):
            sure = consensus.uncertainty is not None
            shown = consensus.intervals(outputs.level or LEVEL).drop("basis") if sure else consensus.frame()
        write_summary(outputs.summary, f"Consensus of {counted(len(consensus), 'item')}", shown, talk, holding)
    return holding


def _label_sets(
    votes: Sequence[str], reading: Reading, several: Sequence[str], wanted: Mapping[str, Any],
    cannot_tell: Sequence[str], written: tuple[str | None, str | None, str | None], talk: Talk,
) -> None:  # fmt: skip
    """Write the set of labels of each item."""
    import polars as pl

    from .. import api
    from ..io.judgments import open_votes
    from ..io.output import format_for, write_sheets
    from ..io.plain_tables import chosen_rows
    from .terminal_tables import show_frame

    taken = ("--column", "--where", "--sheet", "--encoding", "--header", "--skip-rows")
    for word in reading.words:
        if word.startswith("--") and word not in taken:
            raise ParameterError(f"{word} does not apply to sets of labels; leave it or --several-labels out")
    out, format, annotators = written
    options = reading.options()
    tables = [chosen_rows(open_votes(name, options.encoding), options) for name in votes]
    table = pl.concat(tables, how="diagonal_relaxed")
    named: dict[str, Any] = {"labels": several[0]} if len(several) == 1 else {"columns": several}
    method = {} if wanted["method"] == "auto" else {"method": wanted["method"]}
    given = {name: value for name, value in wanted["params"].items() if name == "choose"}
    for name in wanted["params"].keys() - given.keys():
        raise ParameterError(f"sets of labels have no parameter {name!r}; --set choose=0.5 takes labels from 0.5 on")
    found = api.aggregate_labels(table, **named, **method, **given, cannot_tell=cannot_tell)
    by, on = counted(len(found.annotators), "annotator"), counted(len(found), "item")
    talk.say(f"{counted(len(table), 'row')} by {by} on {on}")
    write_wanted(annotators, lambda: found.annotators, talk)
    if format_for(out, format) == "xlsx":
        write_sheets(found.sheets(), out)
        report_written(out, talk)
        return
    deliver(found.table, out, format, talk, lambda: show_frame(found.table, bold="item", cut=("item",)))


def _set_apart(
    votes: Sequence[str], reading: Reading, answers: Sequence[str], outputs: Outputs, talk: Talk
) -> tuple[Reading, Outputs]:
    """Count "can't tell" by item and annotator, and leave these rows out of the grades."""
    import polars as pl

    from .. import api
    from ..io.judgments import open_votes, read_one
    from ..io.notices import hear
    from ..io.sources import files_like

    if "-" in votes:
        raise ParameterError(
            "--cannot-tell reads the votes twice, but standard input can be read only once; give a file"
        )
    with hear(lambda _: None):
        options = reading.options(nominal=True, levels=None, missing=reading.missing)
        tables = [read_one(open_votes(one, options.encoding), options) for name in votes for one in files_like(name)]
    if any(table.kind != "grade" for table in tables):
        raise ParameterError("--cannot-tell applies to grades or labels; leave it out, or use --missing")
    # cells as they stand: N/A is no blank here
    frames = [
        one.frame.with_columns(grade=plain.whole[plain.understood.columns["grade"]])
        if (plain := one.plain)
        else one.frame
        for one in tables
    ]
    frame = pl.concat(frames, how="diagonal_relaxed")
    if "annotator" not in frame.columns:
        frame = frame.with_columns(annotator=pl.lit("all"))
    frame = frame.with_columns(pl.col("^(query|item|annotator)$").cast(pl.String).str.strip_chars())
    items, people = api.difficulty(frame, answers)
    n_doubts = round(float((items["n_asked"] * items["cannot_tell"]).sum()))
    if not n_doubts:
        raise ParameterError(f"no answer is {' or '.join(answers)}, which --cannot-tell names; check the spelling")
    talk.say(f"{n_doubts:,} of {len(frame):,} answers are {' or '.join(answers)}, {n_doubts / len(frame):.1%}")
    for who, number, share in people.head(3).iter_rows():
        if share > 0:
            talk.say(f" {who}: {share:.0%} of {number:,}")
    never = items.filter(pl.col("cannot_tell") == 1)["item"].to_list()
    if never:
        talk.say(f"nobody could tell of {counted(len(never), 'item')}: {first_few(map(str, never))}")
    changes: dict[str, Any] = {"missing": [*(reading.missing or ()), *answers]}
    if reading.items is None:
        # what nobody could tell keeps its place
        changes["items"] = items.drop("n_asked", "cannot_tell", "difficulty")
    return reading.but(**changes), dataclasses.replace(outputs, doubt=(items, people))


def _moderate(judged: Any, consensus: Any, outputs: Outputs, chosen: str) -> Any:
    """What a moderation meeting asks of pairs, where that was asked for or JSON or a workbook has it; else ``None``."""
    asked = outputs.moderation is not None or outputs.anchors is not None
    alone = judged.kind == "preference" and judged.n_queries == 1
    if not asked and not (alone and chosen in ("json", "xlsx")):
        return None
    from .. import api
    from ..api.moderation import MANY_JUDGEMENTS
    from ..io.tables import read_table

    if not asked and len(judged) > MANY_JUDGEMENTS:
        return None
    anchors = None if outputs.anchors is None else read_table(outputs.anchors)
    one_scale = consensus if alone else None
    return api.moderate(judged, one_scale, anchors=anchors, levels=outputs.levels, seed=outputs.seed)


def _write_workbook(consensus: Any, facts: Any, moderated: Any, outputs: Outputs, judged: Any, talk: Talk) -> None:
    """Write items, annotators and what to do next as sheets; of pairs on one scale, those of a moderation meeting."""
    import polars as pl

    from ..io.output import write_sheets
    from ..io.results import consensus_table
    from ..review.findings import findings_of

    if moderated is not None:
        sheets = moderated.sheets()
    else:
        sheets = {"items": consensus_table(consensus, outputs.level, outputs.item_columns(consensus, judged))}
        if facts().table is not None:
            sheets["annotators"] = outputs.with_doubt(facts().table)
        said = [(one.severity, one.sentence) for one in findings_of(facts())]
        sheets["what to do next"] = pl.DataFrame(said, schema=["about", "finding"], orient="row")
    write_sheets(sheets, outputs.out)
    report_written(outputs.out, talk)


def _deliver_stored(consensus: Any, outputs: Outputs, talk: Talk) -> None:
    """Write a ranking that stays in Parquet, or say where it is."""
    asked = {"--rating": outputs.rated, "--tiers": outputs.tiers, "--win-rate": outputs.win_rate is not None}
    for name in [name for name, given in asked.items() if given]:
        raise ParameterError(
            f"{name} needs the items of one query in memory, but there are {len(consensus):,}; leave it out"
        )
    if outputs.out in (None, "-"):
        where = f"{len(consensus):,} items: the ranking stays in {consensus.path}; --out FILE writes it"
        talk.say(where, needed=True)
        return
    consensus.write(outputs.out)
    report_written(outputs.out, talk)


def _write_annotators(facts: Facts, outputs: Outputs, judgments: Any, talk: Talk) -> None:
    """Write the table of annotators with what to do about each and why, and say what that comes to."""
    import polars as pl

    from ..api import actions
    from ..io.output import write_table

    with talk.working("fitting the consensus without some annotators"):
        plan = actions(facts.reviewed_consensus, judgments)
    assert facts.table is not None
    suggested = plan.frame().select("annotator", "action", "reason")
    joined = facts.table.join(suggested, on="annotator", how="left", maintain_order="left")
    first = ["annotator", "quality", "n_judgments", "action", "reason"]
    write_table(outputs.with_doubt(joined.select(*first, pl.exclude(first))), outputs.annotators)
    report_written(outputs.annotators, talk)
    for line in plan.sentences():
        talk.say(f"suggested: {line}")


def _write_report(
    facts: Facts, path: str, votes: Sequence[str], reading: Reading, outputs: Outputs, packed: Any, talk: Talk
) -> None:
    """Write the report of a consensus; text and links of items come from --items, else from the votes themselves."""
    from .. import api
    from .. import report as reports
    from ..cluster.packed import is_packed
    from ..io.features import describe_votes

    title = None
    if packed is not None:
        facts = api.facts_of_sample(packed, facts.reviewed_consensus)
        title = f"Consensus of {packed.rows:,} {packed.kind}s"
    comparison: Any = None
    if outputs.compared is not None:
        with talk.working("comparing methods") as progress:
            methods = None if outputs.compared == "all" else split_list(outputs.compared)
            comparison = api.compare_methods(facts.judgments, methods, seed=outputs.seed, progress=progress)
    with talk.working("writing the report"):
        about: Any = None if reading.items == "-" else reading.items
        if about is None:
            about = describe_votes([] if is_packed(votes[0]) else votes, reading.kind, reading.columns)
        reports.write(
            facts.reviewed_consensus, facts.judgments, path, items=about, comparison=comparison,
            command=command_line(), title=title,
        )  # fmt: skip
    report_written(path, talk)


def tell_of_annotators(facts: Facts, talk: Talk) -> None:
    """Say who is worth a look and what is odd about the annotators, unless a warning did."""
    from ..review.findings import verdict_findings
    from ..review.sentences import BY_QUALITY, FLAGS

    odd, quality, findings, lines = facts.diagnostics, facts.consensus.quality, verdict_findings(facts), []
    if any(one.kind in BY_QUALITY for one in findings):
        assert facts.table is not None
        suspicious = facts.suspects
        number, verb = of_all(len(suspicious), len(facts.table), "annotator"), "is" if len(suspicious) == 1 else "are"
        lines.append(f"{number} {verb} worth a look (quality 0.5 is guessing):")
        for one in suspicious[:SHOWN]:
            # weights need not be whole
            judged = counted(_whole(one.n_judgments), "judgment"), counted(_whole(one.n_pairs), "pair")
            verdict = FLAGS["guessing"].noun if one.verdict == "guessing" else one.verdict
            said = f"quality {one.quality:.2f} ({interval(one)}), {verdict} with {' and '.join(judged)}"
            lines.append(f" {annotator_name(one)}: {said}")
        if len(suspicious) > SHOWN:
            lines.append(f" and {len(suspicious) - SHOWN:,} more; --annotators FILE lists all")
    lines += [one.sentence for one in findings if one.kind not in BY_QUALITY]
    lines += () if odd is None else (*odd.annotator_messages, *odd.sample_notes)
    if quality is not None and quality.n_sampled is not None:
        lines.append(f"quality was measured on a sample of {quality.n_sampled:,} judgments")
    for line in lines:
        if not talk.was_said(line):
            talk.say(line)


def annotator_name(one: Any) -> str:
    """Return the name of an annotator worth a look as it is shown."""
    return one_line(str(one.annotator)[:_MAX_CHARACTERS])


def interval(one: Any) -> str:
    """Return the bounds of the quality of an annotator worth a look as they are shown."""
    return f"{one.lower:.2f} to {one.upper:.2f}"


def _whole(number: float) -> float:
    """A number without its decimals if it has none, else with one."""
    return int(number) if float(number).is_integer() else round(float(number), 1)


@dataclass(frozen=True)
class SeveralFits:
    """``--by`` and ``--criteria``: how the votes are read, and what each fit is asked for, method included."""

    votes: Sequence[str]
    reading: Reading
    wanted: Mapping[str, Any]
    families: str | None
    swaps: str
    talk: Talk

    def by_criterion(self, criteria: Sequence[str], overall: str | None, seed: int) -> Rubric:
        """Return the ranking by several columns of grades or winners, and what they have in common."""
        from .. import api
        from ..data.column_names import understand_pairs
        from ..io.tables import read_table

        names, weights = api.criteria_weights(list(criteria))
        table, wanted = read_table(self.votes[0]), (*names, *([overall] if overall else ()))
        lacking = [one for one in wanted if one not in table.columns]
        # criteria below each other: a column that says which
        metric = next((one for one in table.columns if lacking and set(wanted) <= set(table[one].to_list())), None)
        if lacking and metric is None:
            raise JudgmentError(
                f"{self.votes[0]} has no column {lacking[0]!r} for --criteria, nor one that holds all of them; its "
                f"columns are {', '.join(table.columns)}"
            )
        answer = "grade" if understand_pairs(table.columns) is None else "winner"
        fits, judgments = {}, {}
        for one in wanted:
            how = {"columns": {answer: one}} if metric is None else {"where": {metric: one}}
            judgments[one] = self._read(self.talk, **how)
            with self.talk.working("finding the consensus"):
                fits[one] = api.aggregate(judgments[one], **self.wanted)
        whole = fits.pop(overall) if overall else None
        found = api.rubric(fits, judgments, weights=weights, overall=whole, seed=seed)
        api.say_rubric(found)
        return found

    def by_category(self, by: str) -> pl.DataFrame:
        """Return the ranking of all votes, and one for each value of a column."""
        import polars as pl

        from .. import api
        from ..io.notices import hear
        from ..io.tables import read_table

        tables = [read_table(name) for name in self.votes]
        for name, table in zip(self.votes, tables, strict=True):
            if by not in table.columns:
                raise JudgmentError(f"{name} has no column {by!r}; its columns are {', '.join(table.columns)}")
        values = sorted({str(one) for table in tables for one in table[by].cast(pl.String).drop_nulls().to_list()})
        if not 1 < len(values) <= _MOST_VALUES:
            raise JudgmentError(f"--by {by} has {len(values):,} values; name a column with 2 to {_MOST_VALUES}")
        judgments = self._read(self.talk)
        said_of_all: list[Notice] = []
        with hear(said_of_all.append), self.talk.working("finding the consensus"):
            whole = api.fit_category(judgments, **self.wanted)
        for notice in said_of_all:
            self.talk.hear(notice)
        parts = {one: self._category(by, one, whole.consensus, said_of_all) for one in values}
        return api.category_table(whole, parts)

    def _read(self, talk: Talk, **changes: dict[str, str]) -> Any:
        """The judgments, of some rows or of one column of grades."""
        more = {}
        for name, added in changes.items():
            before = getattr(self.reading, name)
            for key in added:
                if key in before:
                    raise ParameterError(f"--{name.removesuffix('s')} names {key!r} twice; keep one of them")
            more[name] = {**before, **added}
        return read_settled(
            self.votes, self.reading.but(**more), talk, self.wanted["control"], self.swaps, self.families
        )

    def _category(self, by: str, one: str, whole: Consensus, said_of_all: Sequence[Notice]) -> CategoryFit:
        """The consensus of one category by the method of all judgments, whose scores it is compared with."""
        from .. import api
        from ..data.naming import named_annotators
        from ..io.notices import hear

        with _speak_of(f"{by} {one}", self.talk, said_of_all):
            # what there is to say of the votes was said of all of them
            with hear(lambda _: None):
                judgments = self._read(Talk(quiet=True), where={by: one})
            changes: dict[str, Any] = {"method": whole.method, "params": whole.params, "want": "order"}
            if self.wanted["control"] is not None:
                names = api.names_to_control(judgments, self.wanted["control"])
                none = api.zero_covariates(judgments, names)
                changes["control"] = [name for name in names if name not in none] or None
                for name in none:
                    self.talk.say(f"{by} {one}: {name} is 0 in all preferences and makes no difference there")
            if self.wanted["trusted"]:
                present = named_annotators(judgments, self.wanted["trusted"], "trusted", absent=True)
                ids = [who for who, chosen in zip(judgments.annotators, present, strict=True) if chosen]
                changes["trusted"] = ids or self.wanted["trusted"]
            with self.talk.working("finding the consensus"):
                return api.fit_category(judgments, **{**self.wanted, **changes})


@contextmanager
def _speak_of(part: str, talk: Talk, said_of_all: Sequence[Notice]) -> Iterator[None]:
    """Begin what is said, warned of or refused meanwhile with the part that it is about, unless it holds for all."""
    from ..io.notices import hear

    notices: list[Notice] = []
    try:
        with hear(notices.append):
            yield
    except CrowdrankError as error:
        raise type(error)(f"{part}: {error}") from None
    for notice in notices:
        if notice.level == "warning" or notice not in said_of_all:
            talk.hear(notice._replace(text=f"{part}: {notice.text}"))
