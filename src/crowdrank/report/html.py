"""The report as one page: everything in it, nothing from outside, everything from the data escaped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ..api.aggregation import as_judgments
from ..data.consensus import Consensus
from ..data.files import PathLike
from ..data.judgments import Judgments, Mixed, Preferences, count_kinds, parts_of
from ..data.parted import fingerprint
from ..errors import ParameterError, UnknownNameError
from ..io.features import describe_items, web_link
from ..io.output import check_target, write_text
from ..registry import card
from ..review.findings import Facts, Finding, Findings, annotator_habits, facts_of, findings_of, name_ids
from ..review.sentences import BY_QUALITY
from ..wording import counted, percent, shell_words
from . import displays
from .drawing import Display
from .page import (
    CAPTIONS,
    Picture,
    Section,
    Table,
    as_sentences,
    columns_of,
    headline,
    origin,
    picture,
    plain_columns,
    render_page,
)

_FIGURES = r" ?\(?quality [0-9.]+(, [0-9.]+ to [0-9.]+)?\)?"
_SHOWN_QUERIES = 2
_SHOWN_CONFUSIONS = 3
_SHOWN_MOVES = 5
_MOST_ESTIMATES = 20
_MAX_SHOWN_CHANGING = 4


def write(
    consensus: Consensus,
    judgments: Any,
    path: PathLike,
    *,
    items: Any | None = None,
    actions: Any = "auto",
    comparison: Any | None = None,
    title: str | None = None,
    command: str | None = None,
) -> None:
    """Write a report of a consensus as one page that a browser opens, without a network and for passing on.

    Parameters
    ----------
    consensus
        What a method found, best from :func:`crowdrank.aggregate`.
    judgments
        The judgments it was made from; a frame, or a file's path.
    path
        Name of the file, which is replaced only once the new one is whole; ``-`` writes to standard output.
    items
        A table or file about the items, whose text and links are shown: item, query if there are several, and a column
        called text or title, and url or link.
    actions
        What :func:`crowdrank.actions` suggests; ``"auto"`` asks it, ``None`` leaves suggestions out.
    comparison
        What :func:`crowdrank.compare_methods` found, for a section on methods.
    title
        Title of the page.
    command
        The command that makes it, to stand in the page.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from crowdrank.api import aggregate
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> write(aggregate(votes), votes, target)
    >>> target.read_text()[:15]
    '<!DOCTYPE html>'
    """
    check_target(path)
    given = {"items": items, "actions": actions, "comparison": comparison, "title": title, "command": command}
    write_text(render(consensus, judgments, **given), path)


def render(
    consensus: Consensus,
    judgments: Any,
    *,
    items: Any | None = None,
    actions: Any = "auto",
    comparison: Any | None = None,
    title: str | None = None,
    command: str | None = None,
) -> str:
    """Return the page that :func:`write` writes."""
    judged = as_judgments(judgments)
    facts = facts_of(consensus, judged)
    consensus = facts.reviewed_consensus
    if isinstance(actions, str) and actions == "auto":
        actions = None
        if consensus.quality is not None and judged.n_annotators > 1:
            from ..review.actions import suggest_actions

            actions = suggest_actions(consensus, judged)
    # text and links of the items: from a table about them, or their ids where those are addresses
    ids, described = consensus.items.ids, None
    if items is not None:
        described = describe_items(items, consensus.items)
    elif ids.dtype == pl.String and len(ids) and ids.str.contains(r"^https?://").any():
        links = {"text": [None] * len(ids), "link": list(map(web_link, ids.to_list()))}
        described = pl.DataFrame(links, schema={"text": pl.String, "link": pl.String})
    material = Material(consensus, judged, facts, findings_of(facts), described, actions)
    parts = [_ranking(material), _control(material), _annotators(material, command), _agreement(material)]
    parts += [_time(material), _methods(comparison), _provenance(material, command)]
    findings, whole = material.findings.worst_first(), material.findings.of("judgments")
    problems, warnings = (sum(one.severity == word for one in findings) for word in ("problem", "warning"))
    numbers = [counted(number, word) for number, word in ((problems, "problem"), (warnings, "warning")) if number]
    # on top stands what calls for action or is well, but not that the fit settled
    on_top = [one for one in findings if one.severity != "info" and one.kind != "converged"]
    return render_page(
        title=title or f"Consensus of {count_kinds(judged)}",
        lead=f"{headline(whole.sentence)}, ranked by {consensus.method}." if whole else "",
        cards=_cards(material),
        summary=f"{' and '.join(numbers)} to look at" if numbers else "Nothing calls for action",
        advice=_advice(material),
        findings=on_top or list(findings),
        sections=[part for part in parts if part is not None],
    )


@dataclass(frozen=True, eq=False)
class Material:
    """Everything a report is made from."""

    consensus: Consensus
    judgments: Judgments | Mixed
    facts: Facts
    findings: Findings
    described: pl.DataFrame | None = None
    actions: Any = None


def _cards(material: Material) -> list[tuple[str, str]]:
    """The numbers that stand on top."""
    numbers = {one.kind: one.numbers for one in material.findings}
    judged = material.judgments
    cards = [(f"{judged.n_judgments:,}", "judgments"), (f"{judged.n_items:,}", "items")]
    cards += [] if judged.n_queries == 1 else [(f"{judged.n_queries:,}", "queries")]
    n = numbers.get("judgments", {}).get("n_annotators", 0)
    cards += [(f"{n:,}", "annotators")] if n else []
    if material.actions is not None and n:
        cards.append((f"{len(material.actions.dropped):,}", "annotators to drop"))
    repeats = numbers.get("self_consistency", {})
    if "agreement" in numbers:
        cards.append((percent(numbers["agreement"]["agreement"]), "agreement of two annotators"))
    elif "share_swapped" in repeats:
        cards.append((percent(repeats["share_swapped"]), "the same answer with sides swapped"))
    elif "share_repeated" in repeats:
        cards.append((percent(repeats["share_repeated"]), "the same answer when asked again"))
    if "probability" in numbers.get("winner", {}):
        cards.append((percent(numbers["winner"]["probability"], of_belief=True), "sure of the first place"))
    elif "n_sure" in numbers.get("winners", {}):
        winners = numbers["winners"]
        cards.append((f"{winners['n_sure']:,} of {winners['n_queries']:,}", "queries with a sure first place"))
    return cards


def _advice(material: Material) -> list[str]:
    """What to do, in sentences."""
    advice, suggested = [], material.actions
    if suggested is not None:
        effect = f"; {suggested.sentence}" if suggested.sentence else ""
        advice += [f"leave out {name_ids(suggested.dropped)}{effect}"] if suggested.dropped else []
        advice += [f"look at {name_ids(suggested.reviewed)}"] if suggested.reviewed else []
    more = material.findings.of("more_judgments", "equals")
    advice += [] if more is None else [more.sentence]
    return list(as_sentences(advice))


def _words(findings: Findings, first: Sequence[Finding | None], otherwise: str = "") -> tuple[str, tuple[str, ...]]:
    """The first findings there are, as one heading, and what else there is to say."""
    said = [one for one in first if one is not None]
    heading = headline("; ".join(one.sentence for one in said), said[0]) if said else headline(otherwise)
    return heading, as_sentences(one for one in findings if one not in said)


def _draw_picture(
    make: Callable[[], Display], name: str, key: str | None = None, *, wide: bool = True, **words: Any
) -> tuple[Picture, ...]:
    """A picture with the caption of this name, or none where there is nothing to draw."""
    try:
        return (picture(make(), CAPTIONS[name].format(**words), key or name, wide=wide),)
    except ParameterError:
        return ()


def _without_query(frame: pl.DataFrame, consensus: Consensus) -> pl.DataFrame:
    """The table without the query where there is only one."""
    return frame.drop("query", strict=False) if consensus.items.n_queries == 1 else frame


def _ranking(material: Material) -> Section:
    """What won, and how sure that is."""
    consensus, findings = material.consensus, material.findings.about("items")
    first = findings.of("winner", "winners", "shared_first", "all_tied", "only_item", "classes", "empty")
    if consensus.grade is not None:
        first = findings.of("uncertain_grades", "grades") or first
    items = consensus.items
    pictures: tuple[Picture, ...] = ()
    if not consensus.nominal and items.n_queries == 1 and len(items):
        pictures = _one_query(consensus, None, "q")
        if consensus.uncertainty is not None:
            pictures += _draw_picture(lambda: displays.BeatsDisplay.from_consensus(consensus), "q-beats")
    elif not consensus.nominal and len(items):
        if consensus.uncertainty is not None:
            pictures = _draw_picture(lambda: displays.QueriesDisplay.from_consensus(consensus), "queries")
        sizes = np.diff(items.offsets)
        largest = np.argsort(-sizes, kind="stable")[:_SHOWN_QUERIES]
        for number in largest[sizes[largest] > 1].tolist():
            pictures += _one_query(consensus, items.queries.ids[number], f"q{number}")
    tables = [_item_table(material)]
    across = isinstance(material.judgments, Preferences) and material.judgments.block is not None
    if across and items.n_queries == 1 and consensus.uncertainty is not None and len(items) > 1:
        # differences to the leader with intervals, and tiers, where scores are log-odds
        with suppress(ParameterError):
            ratings = consensus.rating(items.ids[int(np.argmax(consensus.scores))], level=displays.LEVEL)
            frame = ratings.with_columns(pl.col("rating", "lower", "upper") - 1000.0)
            columns = columns_of("leaderboard")
            tables.insert(0, Table.of("leaderboard", CAPTIONS["leaderboard"], frame, columns, 200_000))
    return Section("ranking", "Ranking", *_words(findings, [first], "the items"), pictures, tuple(tables))


def _one_query(consensus: Consensus, query: Any, key: str) -> tuple[Picture, ...]:
    """A picture of the scores of the items of one query."""
    name = "score" if consensus.uncertainty is None else "score-with-interval"
    words: dict[str, Any] = {"of": "" if query is None else f" of query {query}", "level": 100 * displays.LEVEL}
    make = partial(displays.ConsensusDisplay.from_consensus, consensus, query=query)
    return _draw_picture(make, name, f"{key}-score", **words, not_covered=CAPTIONS["not-covered"])


def _item_table(material: Material) -> Table:
    """All items, the best of each query first."""
    consensus, facts = material.consensus, material.facts
    frame = consensus.frame()
    order = np.lexsort((np.arange(len(frame)), -consensus.scores, consensus.items.query))
    if facts.intervals is not None:
        frame = frame.hstack(facts.intervals.select("lower", "upper", "rank_lower", "rank_upper"))
    if facts.per_item is not None:
        frame = frame.with_columns(n_judgments=pl.Series(facts.per_item[order]))
    if material.described is not None:
        own = material.described[order]
        frame = frame.hstack(own.select(name for name in ("text", "link") if own[name].null_count() < len(own)))
    if consensus.nominal:
        frame = frame.drop("score", "rank", "std_error", "lower", "upper", "rank_lower", "rank_upper", strict=False)
    else:
        # where there is no room for all, the best of each query stay
        frame = frame.sort("rank", maintain_order=True)
    return Table.of("items", "Items", _without_query(frame, consensus), columns_of("items"))


def _is_habit(finding: Finding) -> bool:
    """Whether a finding is about what annotators like, which the section on control shows."""
    return finding.kind.startswith(("likes_", "prefers_own", "leans_left"))


def _control(material: Material) -> Section | None:
    """What control for covariates means and moves; ``None`` where nothing is controlled for."""
    consensus, findings, plain = material.consensus, material.findings, material.facts.uncontrolled_scores
    if not consensus.estimates.get("control"):
        return None
    about_control = [one for one in findings if one.kind.startswith("control_") or one.kind in ("robust", "by_query")]
    sentences = as_sentences(one.sentence for one in (*about_control[1:], *filter(_is_habit, findings)))
    pictures = []
    for habit in annotator_habits(consensus):
        if habit.covariate == "side" and findings.of("leans", "one_side") is not None:
            # another picture shows it
            continue
        what = {"side": "the left side", "self": "their own family"}.get(habit.covariate, habit.covariate)
        drawn, caption = displays.HabitDisplay(habit), CAPTIONS["habit"].format(what=what)
        pictures.append(picture(drawn, caption, f"habit-{habit.covariate}"))
    tables: tuple[Table, ...] = ()
    if plain is not None:
        # ranks before and after control, the largest moves first
        items = consensus.items
        ids = {"query": items.query_ids(), "item": items.ids, "code": items.query}
        frame = pl.DataFrame({**ids, "before": -plain, "after": -consensus.scores})
        ranked = frame.with_columns(pl.col("before", "after").round(9).rank("min").over("code").cast(pl.Int64))
        ranked = ranked.with_columns(moved=pl.col("before") - pl.col("after"))
        largest = ranked.filter(pl.col("moved") != 0).sort(pl.col("moved").abs(), "after", descending=[True, False])
        mean = float(np.abs(ranked["moved"].to_numpy()).mean())
        caption = CAPTIONS["control-moves"].format(moved=len(largest), n=len(ranked), mean=mean)
        shown = _without_query(largest.head(_SHOWN_MOVES).drop("code"), consensus)
        moves = Table.of("control-moves", caption, shown, columns_of("control-moves"), 50_000)
        tables = (moves,) if len(largest) else ()
    words = (headline(about_control[0].sentence), (*sentences, CAPTIONS["control"]))
    return Section("control", "Control", *words, tuple(pictures), tables)


def _annotators(material: Material, command: str | None) -> Section:
    """Whom to keep, to talk to, to drop."""
    consensus, findings = material.consensus, material.findings.about("annotators")
    first = [findings.of(kind) for kind in BY_QUALITY]
    if not any(first):
        others = ("no_annotators", "one_annotator", "nothing_to_order", "too_few_judgments", "unmatched")
        first = [findings.of("annotators_fine") or findings.of(*others)]
    if consensus.estimates.get("control"):
        findings = Findings(one for one in findings if not _is_habit(one))
    heading, sentences = _words(findings, first, "annotators")
    table = material.facts.table
    if table is None or not len(table):
        return Section("annotators", "Annotators", heading, sentences)
    pictures = _draw_picture(lambda: displays.QualityDisplay.from_consensus(consensus), "quality")
    if findings.of("leans", "one_side"):
        pictures += _draw_picture(lambda: displays.PositionBiasDisplay.from_consensus(consensus), "position")
    confusion = partial(displays.ConfusionDisplay.from_consensus, consensus)
    confusions = _draw_picture(confusion, "confusion", wide=False)
    for number, who in enumerate(one.annotator for one in material.facts.suspects[:_SHOWN_CONFUSIONS]):
        own, key = partial(confusion, annotator=who), f"confusion-{number}"
        confusions += _draw_picture(own, "confusion-of-one", key, wide=False, who=who) if confusions else ()
    # all annotators with what to do about them, the worst first, and what would become of the ranking
    frame = displays.mark_annotators(consensus.quality, consensus.diagnostics).reverse()
    changes, commands = pl.DataFrame(), list[str]()
    if material.actions is not None:
        sentences += as_sentences(material.actions.sentences())
        suggested = material.actions.frame().select("annotator", "action", "reason")
        frame = suggested.join(frame, on="annotator", how="left", maintain_order="left")
        # the figures have columns of their own
        frame = frame.with_columns(pl.col("reason").str.replace_all(_FIGURES, "").replace("", None))
        if material.actions.without is not None:
            changes = _without_query(material.actions.changes(), material.actions.consensus)
        if material.actions.dropped and command is not None:
            commands.append(without_command(command, material.actions.dropped))
    if findings.of("circular") is None:
        frame = frame.drop("share_circular", strict=False)
    tables = [Table.of("annotator-table", "Annotators", frame, columns_of("annotators"), 600_000)]
    if len(changes):
        tables.append(Table.of("changes", CAPTIONS["changes"], changes, columns_of("changes"), 200_000))
    shown = (pictures + confusions, tuple(tables))
    return Section("annotators", "Annotators", heading, sentences, *shown, commands=tuple(commands))


def _agreement(material: Material) -> Section | None:
    """How far annotators agree, and where they do not."""
    findings, facts = material.findings.about("agreement"), material.facts
    first = findings.of("agreement", "no_overlap", "self_consistency")
    if first is None:
        return None
    pictures = _draw_picture(lambda: displays.AgreementDisplay.from_judgments(material.judgments), "agreement")
    tables = []
    if facts.diagnostics is not None and facts.consistency is not None:
        # those who gave the same answer again least often come first
        table, number = facts.diagnostics.annotators(), pl.sum_horizontal(pl.col("^n_(repeated|swapped)$"))
        shown = table.filter(number > 0).sort("share_repeated", "annotator", nulls_last=True)
        if "n_swapped" in shown.columns and not shown["n_swapped"].sum():
            shown = shown.drop("n_swapped")
        tables.append(Table.of("repeated", CAPTIONS["repeated"], shown, columns_of("repeated"), 200_000))
    if len(facts.contested_items):
        named = "Pairs of items" if "other" in facts.contested_items.columns else "Items"
        divided = _without_query(facts.contested_items, material.consensus)
        caption = f"{named} that annotators are most divided on"
        tables.append(Table.of("contested", caption, divided, columns_of("contested"), 200_000))
    return Section("agreement", "Agreement", *_words(findings, [first]), pictures, tuple(tables))


def _time(material: Material) -> Section | None:
    """When judgments were given, and how annotators whose agreement changes fared."""
    judgments, consensus, found = material.judgments, material.consensus, material.findings.of("changes")
    changing = () if found is None else found.ids[:_MAX_SHOWN_CHANGING]
    times = [part.time for part in parts_of(judgments) if part.time is not None and len(part)]
    if not times:
        return None
    low, high = min(float(time.min()) for time in times), max(float(time.max()) for time in times)
    name = "time-of-some" if changing and not consensus.nominal else "time"
    pictures = _draw_picture(lambda: displays.TimeDisplay.from_judgments(judgments, consensus, changing), name, "time")
    span = f"between {low:g} and {high:g}"
    if 1e8 < low <= high < 4e9:
        first, last = (datetime.fromtimestamp(time, UTC) for time in (low, high))
        days = [f"{time.day} {time:%B %Y}" for time in (first, last)]
        span = f"between {days[0]} and {days[1]}"
        if first.date() == last.date():
            span = f"on {days[0]} between {first:%H:%M} and {last:%H:%M}"
    return Section("time", "Time", f"Judgments came in {span}", (), pictures)


def _methods(comparison: Any) -> Section | None:
    """Other methods on the same judgments."""
    if comparison is None:
        return None
    sentences = comparison.sentences()
    pictures: tuple[Picture, ...] = ()
    for number, measure in enumerate(comparison.measures):
        make = partial(displays.ComparisonDisplay.from_comparison, comparison, measure=measure.name)
        pictures += _draw_picture(make, "measure", f"measure-{number}", title=headline(measure.title))
    pictures += _draw_picture(lambda: displays.OrdersDisplay.from_comparison(comparison), "orders")
    frame = comparison.frame()
    table = Table.of("methods-table", "Methods", frame, plain_columns(frame), 100_000)
    heading = headline(sentences[0]) if sentences else "Other methods on the same judgments"
    return Section("methods", "Methods", heading, as_sentences(sentences[1:]), pictures, (table,))


def _provenance(material: Material, command: str | None) -> Section:
    """How the report was made, so it can be made again."""
    consensus, judged = material.consensus, material.judgments
    convergence = material.findings.of("converged", "not_converged")
    facts = [("method", consensus.method)]
    # of a method of somebody else nothing is known
    with suppress(UnknownNameError):
        facts.append(("what it gives", card("aggregator", consensus.method).summary))
    facts += [(f"parameter {name}", _value(value)) for name, value in consensus.params.items()]
    short_ones = {name: value for name, value in consensus.estimates.items() if np.size(value) <= _MOST_ESTIMATES}
    facts += [(f"estimated {name}", _value(value)) for name, value in short_ones.items()]
    facts += [("judgments", count_kinds(judged)), ("fingerprint of the judgments", fingerprint(judged)), *origin()]
    pictures = _draw_picture(lambda: displays.ConvergenceDisplay.from_consensus(consensus), "convergence")
    commands = (command,) if command else ()
    heading = headline(convergence.sentence, convergence) if convergence else "How this was made"
    return Section("making", "How this was made", heading, (), pictures, facts=tuple(facts), commands=commands)


def _value(value: Any) -> str:
    """A parameter as it is shown."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={_value(inner)}" for key, inner in value.items())
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 300 else f"{text[:299]}…"


def without_command(command: str, annotators: Sequence[Any]) -> str:
    """Return the command that leaves annotators out.

    Examples
    --------
    >>> without_command("crowdrank aggregate votes.csv", ["olga", "Lee, A"])
    "crowdrank aggregate votes.csv --without olga --without 'Lee, A'"
    """
    names = [str(one) for one in annotators]
    plain = ",".join(name for name in names if "," not in name)
    words = [*([plain] if plain else []), *(name for name in names if "," in name)]
    return " ".join([command, *(f"--without {shell_words([word])}" for word in words)])
