"""``crowdrank aggregate``: from votes to a ranking, whole, in parts, or as several fits in one table."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from .. import api, io
from ..errors import CrowdrankError, JudgmentError, ParameterError
from ..io.notices import Notice, hear
from ..registry import resolve
from ..wording import SHOWN, counted, first_few, of_all
from .outputs import LEVEL, deliver, deliver_consensus, report_written, write_file, write_summary, write_wanted
from .running import command_line, fail_where, say_failed
from .talk import Talk, one_line
from .votes import Asked, column_values, expect_packed_alone, packed_in_words, read_settled, refuse, refuse_unpackable

if TYPE_CHECKING:
    import polars as pl


_MAX_CHARACTERS = 40
"""Characters of an annotator's name that are shown."""

_SCALING = ("stream", "cluster", "resume")
_OF_ONE_RANKING = (
    "report bootstrap rating tiers win_rate intervals fail_if known stream cluster resume moderation anchors "
    "classifier probabilities soft_labels"
)
"""Options about a single ranking of items."""

_NOT_OF_LABELS = f"{_OF_ONE_RANKING} families by criteria overall summary swaps want control trusted robust reweight"
_READING_OF_LABELS = ("--column", "--where", "--sheet", "--encoding", "--header", "--skip-rows")


def aggregate(asked: Asked, talk: Talk) -> None:
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

    votes, reading = asked.votes, asked.reading
    if asked.several is not None:
        _label_sets(asked, talk)
        return
    api.check_aggregation(**asked.arguments(api.check_aggregation))
    api.check_level(asked.intervals, "intervals")
    asked.chosen = io.format_for(asked.out, asked.format)
    if asked.anchors is not None and asked.moderation is None and asked.chosen not in ("xlsx", "json"):
        remedy = "give --moderation FILE.html, or -o FILE.xlsx"
        raise ParameterError(f"--anchors grades scripts on a page or in a workbook; {remedy}")
    if asked.compared is not None and asked.report is None:
        raise ParameterError("--compare adds a section to the report; give --report FILE.html too, or use compare")
    for name in () if asked.compared in (None, ["all"]) else asked.compared:
        resolve("aggregator", name)
    asked.conditions = [api.parse_condition(text) for text in asked.fail_if or ()]
    # ratings go by an item, or by the mean of all
    anchor = re.fullmatch("mean|anchor=(.+)", asked.rating or "mean")
    if anchor is None:
        raise ParameterError(f"--rating {asked.rating} is not understood; write --rating anchor=ITEM, or --rating mean")
    asked.anchor = anchor[1]
    if asked.families is not None:
        api.expect_self(asked.control)
    if asked.overall is not None and asked.criteria is None:
        raise ParameterError("--overall goes with --criteria, whose weights it teaches; name those too")
    if asked.by is not None or asked.criteria is not None:
        _several_rankings(asked, talk)
        return
    if asked.win_rate is not None and len(asked.win_rate) not in (1, 2):
        given = ",".join(asked.win_rate)
        raise ParameterError(f"--win-rate {given} is not understood; name two items, as in --win-rate A,B")
    asked.level = LEVEL if asked.bootstrap and asked.intervals is None else asked.intervals
    asked.levels, asked.doubt = reading.levels, None
    if asked.anchors is not None:
        # the levels are those of the anchors; pairs have none
        asked.reading = reading.but(levels=None)
    asked.known = None if asked.known is None else io.read_table(asked.known)
    judged: Any = None
    # packed ones go in parts, those asked for so, and those beyond memory
    in_parts = expect_packed_alone(votes) or any(getattr(asked, name) for name in _SCALING)
    advice = None if in_parts else api.file_advice(votes)
    if advice is not None:
        talk.say(advice[1])
        in_parts = advice[0] and asked.stream is None
    if in_parts:
        why = "needs all judgments of an annotator at once, but these are read in parts"
        refuse(asked, "families swaps", f"{why}; give the file itself with --no-stream, or leave it out")
        judged = _packed_votes(asked, talk)
    if judged is None:
        judged = read_settled(asked if asked.cannot_tell is None else _set_apart(asked, talk), talk)
        if asked.classifier is not None:
            judged = api.with_classifier(judged, io.read_table(asked.classifier))
        judged = api.hold_many(judged, asked.method, bootstrap=asked.bootstrap) or judged
    fail_where(_fit_and_write(judged, asked, talk), talk)


def _packed_votes(asked: Asked, talk: Talk) -> Any:
    """Packed judgments, or those of files that are packed first; ``None`` where files turn out to hold few."""
    from ..api import in_parts
    from ..data.parted import MANY_ITEMS

    first, reading = asked.votes[0], asked.reading
    packed_before = api.is_packed(first)
    given = [word for word in reading.words if word.startswith("--") and word != "--items"]
    if packed_before and given:
        why = f"applies to reading files, but {first} is already packed; leave it out, or give the files"
        raise ParameterError(f"{given[0]} {why}")
    refuse_unpackable(reading, "give the file itself with --no-stream, or leave it out")
    options = reading.options(asked.control)
    if reading.items is not None and (asked.report is None or not packed_before):
        remedy = "leave it out, or pack the votes and give it with --report for texts and links"
        raise ParameterError(f"--items cannot be used with judgments that are read in parts; {remedy}")
    if packed_before:
        packed = api.scan_judgments(first)
        talk.say(packed_in_words(packed))
        return packed
    with talk.working("packing the votes") as progress:
        packed = api.pack_aside(asked.votes, options=options, across_queries=reading.across_queries, progress=progress)
    talk.say(packed_in_words(packed))
    if len(packed) < in_parts.MANY_ROWS:
        talk.say(f"fewer than {in_parts.MANY_ROWS:,} judgments are fitted as a whole")
        return None
    if packed.n_items > MANY_ITEMS and asked.out in (None, "-"):
        remedy = "name a file with --out, or pack the votes first"
        raise ParameterError(f"a ranking of {packed.n_items:,} items is too long to print; {remedy}")
    return packed


def _fit_and_write(judged: Any, asked: Asked, talk: Talk) -> list[str]:
    """Fit judgments, write the consensus and what goes with it; return the conditions that hold, in words."""
    import polars as pl

    packed = judged if isinstance(judged, api.PackedJudgments) else None
    if packed is None and asked.annotators and not judged.n_annotators:
        raise ParameterError("the votes name no annotators, so there is no table of them; leave --annotators out")
    wanted = asked.arguments(api.aggregate) | ({} if packed is not None else dict.fromkeys(_SCALING))
    with talk.working("finding the consensus") as progress:
        consensus: Any = api.aggregate(judged, **wanted, progress=progress)
    if asked.method != "auto":
        talk.say(f"method {consensus.method}")
    if asked.doubt is not None and packed is None:
        items, people = asked.doubt
        consensus = api.informed_by_difficulty(consensus, judged, items)
        consensus = _with_estimate(consensus, cannot_tell={"annotators": people.to_dicts(), "items": items.to_dicts()})
    chosen, level = asked.chosen, asked.level or LEVEL
    moderated = _moderate(judged, consensus, asked, chosen) if packed is None else None
    if moderated is not None:
        consensus = _with_estimate(consensus, reliability=moderated.reliability)

    @cache
    def facts() -> api.Facts:
        return api.facts_of(consensus, judged) if packed is None else api.sampled_facts(packed, consensus)

    def look() -> tuple[api.Consensus, Any]:
        if talk.quiet and not (asked.annotators or asked.summary or chosen in ("json", "parquet")):
            return consensus, None
        with talk.working("checking the annotators"):
            tell_of_annotators(facts(), talk)
        return facts().reviewed_consensus, api.findings_of(facts()) if chosen == "json" else None

    if not isinstance(consensus, api.Consensus):
        # a ranking that stays in Parquet
        why = f"needs the items of one query in memory, but there are {len(consensus):,}; leave it out"
        refuse(asked, "rating tiers win_rate", why)
        if asked.out in (None, "-"):
            where = f"{len(consensus):,} items: the ranking stays in {consensus.path}; --out FILE writes it"
            talk.say(where, needed=True)
        else:
            consensus.write(asked.out)
            report_written(asked.out, talk)
        look()
    else:
        if asked.win_rate is not None:
            shares = consensus.win_rate(*asked.win_rate, level=level)
            item, against = [*asked.win_rate, None][:2]
            bounds = f"{100 * shares['lower']:.1f} to {100 * shares['upper']:.1f} %"
            wins = f"{item} wins {100 * shares['share']:.1f} % against {'the others' if against is None else against}"
            talk.say(f"{wins} ({100 * level:g} % interval {bounds})", needed=True)
            consensus = _with_estimate(consensus, win_rate={"item": item, "against": against, **shares, "level": level})
        columns = None if moderated is not None and chosen == "xlsx" else _item_columns(consensus, judged, asked)
        if chosen == "xlsx":
            # items, annotators and what to do next; of pairs on one scale, the sheets of a moderation meeting
            sheets = moderated.sheets() if moderated is not None else {}
            if moderated is None:
                sheets["items"] = io.consensus_table(consensus, asked.level, columns)
                if (table := facts().table) is not None:
                    sheets["annotators"] = _with_doubt(table, asked)
                said = [(one.severity, one.sentence) for one in api.findings_of(facts())]
                sheets["what to do next"] = pl.DataFrame(said, schema=["about", "finding"], orient="row")
            io.write_sheets(sheets, asked.out)
            report_written(asked.out, talk)
            look()
        else:
            failed = deliver_consensus(consensus, asked, talk, look, columns)
            if failed is not None:
                fatal = bool(asked.annotators or asked.report or asked.summary or asked.conditions)
                say_failed(failed, "the annotators were not checked", fatal=fatal)
                return []
    table = facts().table if asked.annotators else None
    if table is not None and packed is not None:
        write_wanted(asked.annotators, lambda: table, talk)
    elif table is not None:
        # with what to do about each and why
        with talk.working("fitting the consensus without some annotators"):
            plan = api.actions(facts().reviewed_consensus, judged)
        suggested = plan.frame().select("annotator", "action", "reason")
        joined = table.join(suggested, on="annotator", how="left", maintain_order="left")
        first = ["annotator", "quality", "n_judgments", "action", "reason"]
        write_wanted(asked.annotators, lambda: _with_doubt(joined.select(*first, pl.exclude(first)), asked), talk)
        for line in plan.sentences():
            talk.say(f"suggested: {line}")
    if asked.moderation is not None and moderated is not None:
        from ..report import write_moderation

        write_moderation(moderated, asked.moderation)
        report_written(asked.moderation, talk)
        for step in moderated.steps:
            talk.say(step[:1].lower() + step[1:].removesuffix("."))
    write_file(asked.soft_labels, lambda name: io.write_text(io.json_text(api.lewidi(consensus, judged)), name), talk)
    if asked.report is not None:
        _write_report(facts(), packed, asked, talk)
    holding = list(filter(None, (api.check(one, facts()) for one in asked.conditions)))
    if asked.summary is not None:
        shown = None
        if isinstance(consensus, api.Consensus):
            sure = consensus.uncertainty is not None
            shown = consensus.intervals(level).drop("basis") if sure else consensus.frame()
        write_summary(asked.summary, f"Consensus of {counted(len(consensus), 'item')}", shown, talk, holding)
    return holding


def _with_estimate(consensus: api.Consensus, **estimates: Any) -> api.Consensus:
    """The consensus with further estimates."""
    return dataclasses.replace(consensus, estimates={**consensus.estimates, **estimates})


def _item_columns(consensus: api.Consensus, judged: Any, asked: Asked) -> pl.DataFrame | None:
    """What stands beside the items: probabilities, difficulty, ratings or tiers; ``None`` for nothing."""
    level, tables = asked.level or LEVEL, []
    if asked.probabilities:
        tables.append(api.soft_labels(consensus, judged))
    if asked.doubt is not None:
        tables.append(asked.doubt[0])
    if asked.rating is not None:
        tables.append(consensus.rating(asked.anchor, level=level))
    elif asked.tiers:
        tables.append(consensus.tiers(level).drop("score", "rank"))
    whole = None
    for table in tables:
        keys = [name for name in ("query", "item") if whole is not None and name in whole.columns and name in table]
        whole = table if whole is None else whole.join(table, on=keys, how="left", maintain_order="left")
    return whole


def _with_doubt(table: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """The table of annotators with how often each could not tell, those who never could included."""
    if asked.doubt is None or "annotator" not in table.columns:
        return table
    return table.join(asked.doubt[1], on="annotator", how="full", coalesce=True, maintain_order="left_right")


def _label_sets(asked: Asked, talk: Talk) -> None:
    """Write the set of labels of each item."""
    import polars as pl

    why = "does not apply to sets of labels; leave it or --several-labels out"
    refuse(asked, _NOT_OF_LABELS, why)
    for word in asked.reading.words:
        if word.startswith("--") and word not in _READING_OF_LABELS:
            raise ParameterError(f"{word} {why}")
    options = asked.reading.options()
    table = pl.concat(
        [io.chosen_rows(io.open_votes(name, options.encoding), options) for name in asked.votes], how="diagonal_relaxed"
    )
    named: dict[str, Any] = {"labels": asked.several[0]} if len(asked.several) == 1 else {"columns": asked.several}
    method = {} if asked.method == "auto" else {"method": asked.method}
    for name in asked.params.keys() - {"choose"}:
        raise ParameterError(f"sets of labels have no parameter {name!r}; --set choose=0.5 takes labels from 0.5 on")
    found = api.aggregate_labels(table, **named, **method, **asked.params, cannot_tell=asked.cannot_tell or [])
    by, on = counted(len(found.annotators), "annotator"), counted(len(found), "item")
    talk.say(f"{counted(len(table), 'row')} by {by} on {on}")
    write_wanted(asked.annotators, lambda: found.annotators, talk)
    deliver(found.table, asked, talk, sheets=found.sheets, bold="item", cut=("item",))


def _set_apart(asked: Asked, talk: Talk) -> Asked:
    """Count "can't tell" by item and annotator, and leave these rows out of the grades."""
    import polars as pl

    votes, reading, answers = asked.votes, asked.reading, asked.cannot_tell
    if "-" in votes:
        once = "but standard input can be read only once; give a file"
        raise ParameterError(f"--cannot-tell reads the votes twice, {once}")
    with hear(lambda _: None):
        options = reading.options(nominal=True, levels=None, missing=reading.missing)
        tables = [
            io.read_one(io.open_votes(one, options.encoding), options) for name in votes for one in io.files_like(name)
        ]
    if any(table.kind != "grade" for table in tables):
        raise ParameterError("--cannot-tell applies to grades or labels; leave it out, or use --missing")
    # cells as they stand: N/A is no blank here
    frames = []
    for one in tables:
        cells = one.frame["grade"] if one.plain is None else one.plain.whole[one.plain.understood.columns["grade"]]
        frames.append(one.frame.with_columns(grade=cells))
    frame = pl.concat(frames, how="diagonal_relaxed")
    if "annotator" not in frame.columns:
        frame = frame.with_columns(annotator=pl.lit("all"))
    frame = frame.with_columns(pl.col("^(query|item|annotator)$").cast(pl.String).str.strip_chars())
    items, people = asked.doubt = api.difficulty(frame, answers)
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
    return asked.but(reading=reading.but(**changes))


def _moderate(judged: Any, consensus: Any, asked: Asked, chosen: str) -> api.Moderation | None:
    """What a moderation meeting asks of pairs, where that was asked for or JSON or a workbook has it; else ``None``."""
    alone, wanted = judged.kind == "preference" and judged.n_queries == 1, asked.moderation or asked.anchors
    if not wanted and not (alone and chosen in ("json", "xlsx")):
        return None
    from ..api.moderation import MANY_JUDGEMENTS

    if not wanted and len(judged) > MANY_JUDGEMENTS:
        return None
    anchors = None if asked.anchors is None else io.read_table(asked.anchors)
    one_scale = consensus if alone else None
    return api.moderate(judged, one_scale, anchors=anchors, levels=asked.levels, seed=asked.seed)


def _write_report(facts: api.Facts, packed: Any, asked: Asked, talk: Talk) -> None:
    """Write the report of a consensus; text and links of items come from --items, else from the votes themselves."""
    from ..report import write_report

    votes, reading, title = asked.votes, asked.reading, None
    if packed is not None:
        facts = api.facts_of_sample(packed, facts.reviewed_consensus)
        title = f"Consensus of {packed.rows:,} {packed.kind}s"
    comparison: Any = None
    if asked.compared is not None:
        with talk.working("comparing methods") as progress:
            methods = None if asked.compared == ["all"] else asked.compared
            comparison = api.compare_methods(facts.judgments, methods, seed=asked.seed, progress=progress)
    with talk.working("writing the report"):
        plain = [] if api.is_packed(votes[0]) else votes
        listed = reading.items not in (None, "-")
        about = reading.items if listed else io.describe_votes(plain, reading.kind, reading.columns)
        write_report(
            facts.reviewed_consensus, facts.judgments, asked.report, items=about, comparison=comparison,
            command=command_line(), title=title,
        )  # fmt: skip
    report_written(asked.report, talk)


def tell_of_annotators(facts: api.Facts, talk: Talk) -> None:
    """Say who is worth a look and what is odd about the annotators, unless a warning did."""

    odd, quality, findings, lines = facts.diagnostics, facts.consensus.quality, api.verdict_findings(facts), []
    if any(one.kind in api.BY_QUALITY for one in findings):
        assert facts.table is not None
        suspicious = facts.suspects
        number, verb = of_all(len(suspicious), len(facts.table), "annotator"), "is" if len(suspicious) == 1 else "are"
        lines.append(f"{number} {verb} worth a look (quality 0.5 is guessing):")
        for one in suspicious[:SHOWN]:
            numbers = ((float(one.n_judgments), "judgment"), (float(one.n_pairs), "pair"))
            # weights need not be whole
            judged = [counted(int(n) if n.is_integer() else round(n, 1), what) for n, what in numbers]
            verdict = api.FLAGS["guessing"].noun if one.verdict == "guessing" else one.verdict
            said = f"quality {one.quality:.2f} ({interval(one)}), {verdict} with {' and '.join(judged)}"
            lines.append(f" {annotator_name(one)}: {said}")
        if len(suspicious) > SHOWN:
            lines.append(f" and {len(suspicious) - SHOWN:,} more; --annotators FILE lists all")
    lines += [one.sentence for one in findings if one.kind not in api.BY_QUALITY]
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


def _several_rankings(asked: Asked, talk: Talk) -> None:
    """Write the rankings of ``--by`` or ``--criteria`` as one table."""
    mine = "--by" if asked.by is not None else "--criteria"
    if asked.by is not None and asked.criteria is not None:
        raise ParameterError("--by and --criteria make different tables; give only one of them")
    if "-" in asked.votes:
        once = "but standard input can be read only once; give a file"
        raise ParameterError(f"{mine} reads the votes several times, {once}")
    why = f"applies to one ranking, but {mine} makes several; leave one out"
    refuse(asked, f"{_OF_ONE_RANKING} annotators cannot_tell", why)
    found = None if asked.by is not None else _by_criterion(asked, talk)
    table = _by_category(asked, talk) if found is None else found.table
    deliver(table, asked, talk, sheets=None if found is None else found.sheets, bold="item", cut=("item",))
    write_summary(asked.summary, f"Rankings of {counted(table['item'].n_unique(), 'item')}", table, talk)


def _by_criterion(asked: Asked, talk: Talk) -> api.Rubric:
    """The ranking by several columns of grades or winners, and what they have in common."""

    names, weights = api.criteria_weights(asked.criteria)
    table, wanted = io.read_table(asked.votes[0]), (*names, *([asked.overall] if asked.overall else ()))
    lacking = [one for one in wanted if one not in table.columns]
    # criteria below each other: a column that says which
    metric = next((one for one in table.columns if lacking and set(wanted) <= set(table[one].to_list())), None)
    if lacking and metric is None:
        columns = f"nor one that holds all of them; its columns are {', '.join(table.columns)}"
        raise JudgmentError(f"{asked.votes[0]} has no column {lacking[0]!r} for --criteria, {columns}")
    answer = "grade" if api.understand_pairs(table.columns) is None else "winner"
    fits, judgments = {}, {}
    for one in wanted:
        how = {"columns": {answer: one}} if metric is None else {"where": {metric: one}}
        judgments[one] = _read_some(asked, talk, **how)
        with talk.working("finding the consensus"):
            fits[one] = api.aggregate(judgments[one], **asked.arguments(api.aggregate))
    whole = fits.pop(asked.overall) if asked.overall else None
    found = api.rubric(fits, judgments, weights=weights, overall=whole, seed=asked.seed)
    for sentence in found.sentences():
        talk.say(sentence)
    return found


def _by_category(asked: Asked, talk: Talk) -> pl.DataFrame:
    """The ranking of all votes, and one for each value of a column."""
    by = asked.by
    values = column_values(asked.votes, [io.read_table(name) for name in asked.votes], by, named="--by ", fewest=2)
    judgments = read_settled(asked, talk)
    said_of_all: list[Notice] = []
    with hear(said_of_all.append), talk.working("finding the consensus"):
        whole = api.fit_category(judgments, **asked.arguments(api.aggregate))
    for notice in said_of_all:
        talk.hear(notice)
    parts = {}
    for one in values:
        # what is said, warned of or refused begins with the part that it is about, unless it holds for all
        notices: list[Notice] = []
        try:
            with hear(notices.append):
                parts[one] = _category(asked, one, whole.consensus, talk)
        except CrowdrankError as error:
            raise type(error)(f"{by} {one}: {error}") from None
        for notice in notices:
            if notice.level == "warning" or notice not in said_of_all:
                talk.hear(notice._replace(text=f"{by} {one}: {notice.text}"))
    return api.category_table(whole, parts)


def _read_some(asked: Asked, talk: Talk, **changes: dict[str, str]) -> Any:
    """The judgments of some rows, or of one column of grades."""
    more = {}
    for name, added in changes.items():
        before = getattr(asked.reading, name)
        for key in added:
            if key in before:
                raise ParameterError(f"--{name.removesuffix('s')} names {key!r} twice; keep one of them")
        more[name] = {**before, **added}
    return read_settled(asked.but(reading=asked.reading.but(**more)), talk)


def _category(asked: Asked, one: str, whole: api.Consensus, talk: Talk) -> api.CategoryFit:
    """The consensus of one category by the method of all judgments, whose scores it is compared with."""

    # what there is to say of the votes was said of all of them
    with hear(lambda _: None):
        judgments = _read_some(asked, Talk(quiet=True), where={asked.by: one})
    changes: dict[str, Any] = {"method": whole.method, "params": whole.params, "want": "order"}
    if asked.control is not None:
        names = api.names_to_control(judgments, asked.control)
        none = api.zero_covariates(judgments, names)
        changes["control"] = [name for name in names if name not in none] or None
        for name in none:
            talk.say(f"{asked.by} {one}: {name} is 0 in all preferences and makes no difference there")
    if asked.trusted:
        present = api.named_annotators(judgments, asked.trusted, "trusted", absent=True)
        ids = [who for who, chosen in zip(judgments.annotators, present, strict=True) if chosen]
        changes["trusted"] = ids or asked.trusted
    with talk.working("finding the consensus"):
        return api.fit_category(judgments, **asked.arguments(api.aggregate) | changes)
