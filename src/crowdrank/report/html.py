"""The report as one page: everything in it, nothing from outside, everything from the data escaped."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ..api.aggregation import as_judgments
from ..data.consensus import Consensus
from ..data.files import PathLike
from ..data.fingerprint import fingerprint
from ..data.judgments import Judgments, Mixed, Preferences, parts_of
from ..errors import ParameterError, UnknownNameError
from ..io.features import describe_items, web_link
from ..io.output import check_target, write_text
from ..protocols import Floats
from ..registry import card
from ..review.facts import Facts, facts_of
from ..review.findings import Finding, Findings, annotator_habits, findings_of, name_ids
from ..review.sentences import BY_QUALITY
from ..wording import counted, percent
from .annotator_displays import ConfusionDisplay, HabitDisplay, PositionBiasDisplay, QualityDisplay, mark_annotators
from .consensus_displays import (
    LEVEL,
    AgreementDisplay,
    BeatsDisplay,
    ConsensusDisplay,
    ConvergenceDisplay,
    QueriesDisplay,
    TimeDisplay,
)
from .drawing import Display
from .page import Column, Picture, Section, Table, headline, origin, picture, render_page


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
    page = render(
        consensus, judgments, items=items, actions=actions, comparison=comparison, title=title, command=command
    )
    write_text(page, path)


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
    suggested = _suggest_actions(consensus, judged) if isinstance(actions, str) and actions == "auto" else actions
    material = Material(
        consensus, judged, facts, findings_of(facts), _describe_items(consensus, items), suggested, comparison
    )
    parts = _with_commands(sections(material), suggested, command)
    parts.append(provenance(material, _origin(judged), command))
    return _render_page(material, parts, title or f"Consensus of {_counts(judged)}")


def _suggest_actions(consensus: Consensus, judgments: Any) -> Any:
    """What to do about each annotator, where they are named and there are several."""
    if consensus.quality is None or judgments.n_annotators < 2:
        return None
    from ..review.actions import suggest_actions

    return suggest_actions(consensus, judgments)


def _describe_items(consensus: Consensus, items: Any | None) -> Any:
    """Text and links of the items: from a table about them, or their ids where those are addresses."""
    import polars as pl

    if items is not None:
        return describe_items(items, consensus.items)
    ids = consensus.items.ids
    if ids.dtype != pl.String or not len(ids) or not ids.str.contains(r"^https?://").any():
        return None
    links = [web_link(one) for one in ids.to_list()]
    return pl.DataFrame({"text": [None] * len(ids), "link": links}, schema={"text": pl.String, "link": pl.String})


def _with_commands(parts: list[Section], suggested: Any, command: str | None) -> list[Section]:
    """The sections, that on annotators with the command that leaves out those to drop."""
    from dataclasses import replace

    if suggested is None or not suggested.dropped or command is None:
        return parts
    leave_out = without_command(command, suggested.dropped)
    return [replace(part, commands=(leave_out,)) if part.key == "annotators" else part for part in parts]


def _origin(judgments: Any) -> list[tuple[str, str]]:
    """What tells the data and the version apart from others."""
    return [
        ("judgments", _counts(judgments)),
        ("fingerprint of the judgments", fingerprint(judgments)),
        *origin(),
    ]


def _counts(judgments: Any) -> str:
    """How many judgments, of what kind."""
    if isinstance(judgments, Mixed):
        return " and ".join(counted(part.n_judgments, part.kind) for part in judgments.parts)
    return counted(judgments.n_judgments, judgments.kind)


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
    if "agreement" in numbers:
        cards.append((percent(numbers["agreement"]["agreement"]), "agreement of two annotators"))
    elif "share_swapped" in numbers.get("self_consistency", {}):
        share = numbers["self_consistency"]["share_swapped"]
        cards.append((percent(share), "the same answer with sides swapped"))
    elif "share_repeated" in numbers.get("self_consistency", {}):
        share = numbers["self_consistency"]["share_repeated"]
        cards.append((percent(share), "the same answer when asked again"))
    if "probability" in numbers.get("winner", {}):
        cards.append((percent(numbers["winner"]["probability"], of_belief=True), "sure of the first place"))
    elif "n_sure" in numbers.get("winners", {}):
        winners = numbers["winners"]
        cards.append((f"{winners['n_sure']:,} of {winners['n_queries']:,}", "queries with a sure first place"))
    return cards


def _summary(findings: Findings) -> str:
    """How much there is to do, in a sentence."""
    problems, warnings = (sum(one.severity == word for one in findings) for word in ("problem", "warning"))
    if not problems and not warnings:
        return "Nothing calls for action"
    numbers = [counted(number, word) for number, word in ((problems, "problem"), (warnings, "warning")) if number]
    return f"{' and '.join(numbers)} to look at"


def _to_tell(findings: Findings) -> list[Finding]:
    """The findings that stand on top: those that call for action or are well, but not that the fit settled."""
    on_top = [one for one in findings if one.severity != "info" and one.kind != "converged"]
    return on_top or list(findings)


def _advice(material: Material) -> list[str]:
    """What to do, in sentences."""
    advice = []
    suggested = material.actions
    if suggested is not None:
        effect = f"; {suggested.sentence}" if suggested.sentence else ""
        advice += [f"leave out {name_ids(suggested.dropped)}{effect}"] if suggested.dropped else []
        advice += [f"look at {name_ids(suggested.reviewed)}"] if suggested.reviewed else []
    more = material.findings.of("more_judgments", "equals")
    advice += [] if more is None else [more.sentence]
    return [f"{headline(one)}." for one in advice]


def _render_page(material: Material, parts: list[Section], title: str) -> str:
    """The page as text."""
    findings = material.findings.worst_first()
    judged = material.findings.of("judgments")
    return render_page(
        title=title,
        lead=f"{headline(judged.sentence)}, ranked by {material.consensus.method}." if judged else "",
        cards=_cards(material),
        summary=_summary(findings),
        advice=_advice(material),
        findings=_to_tell(findings),
        sections=parts,
    )


_NOT_COVERED = (
    "Intervals cover what more judgments by this crowd could change, not the mistakes that all annotators share: by "
    "independent gold of ten public sets, pairs whose order was called .95 sure or more were right in .78 to 1.00 of "
    "cases."
)

_SHOWN_QUERIES = 2
_SHOWN_CONFUSIONS = 3


@dataclass(frozen=True, eq=False)
class Material:
    """Everything a report is made from."""

    consensus: Consensus
    judgments: Judgments | Mixed
    facts: Facts
    findings: Findings
    described: pl.DataFrame | None = None
    actions: Any = None
    comparison: Any = None


def sections(material: Material) -> list[Section]:
    """Return the sections of a report that there is something to show in."""
    control = control_section(material.consensus, material.facts, material.findings)
    candidates = [_ranking(material), control, _annotators(material), _agreement(material), _time(material)]
    candidates.append(_methods(material))
    return [section for section in candidates if section is not None]


def _heading(candidates: Sequence[Finding | None], otherwise: str) -> str:
    """The first findings there are, as one heading."""
    findings = [one for one in candidates if one is not None]
    if not findings:
        return headline(otherwise)
    return headline("; ".join(one.sentence for one in findings), findings[0])


def _further_sentences(findings: Findings, used: Sequence[Finding | None]) -> tuple[str, ...]:
    """What else there is to say."""
    return tuple(f"{headline(one.sentence, one)}." for one in findings if one not in used)


def _draw_picture(make: Callable[[], Display], caption: str, key: str, *, wide: bool = True) -> tuple[Picture, ...]:
    """A picture, or none where there is nothing to draw."""
    try:
        return (picture(make(), caption, key, wide=wide),)
    except ParameterError:
        return ()


def _ranking(material: Material) -> Section:
    """What won, and how sure that is."""
    consensus, findings = material.consensus, material.findings.about("items")
    first = findings.of("winner", "winners", "shared_first", "all_tied", "only_item", "classes", "empty")
    if consensus.grade is not None:
        first = findings.of("uncertain_grades", "grades") or first
    items = consensus.items
    pictures: tuple[Picture, ...] = ()
    if not consensus.nominal and len(items):
        pictures = _several_queries(consensus) if items.n_queries > 1 else _one_query(consensus, None, "q")
    return Section(
        "ranking",
        "Ranking",
        _heading([first], "the items"),
        _further_sentences(findings, [first]),
        pictures,
        (*_leaderboard(material), _item_table(material)),
    )


def _leaderboard(material: Material) -> list[Table]:
    """Differences to the leader, of items over many queries."""
    across = isinstance(material.judgments, Preferences) and material.judgments.block is not None
    return leaderboard_tables(material.consensus) if across else []


def _one_query(consensus: Consensus, query: Any, key: str, *, beats: bool = True) -> tuple[Picture, ...]:
    """Pictures of the items of one query: scores and, if asked for, which beats which."""
    of = "" if query is None else f" of query {query}"
    sure = consensus.uncertainty is not None
    words = f" with {100 * LEVEL:g} % interval, and the ranks that it may truly hold. {_NOT_COVERED}" if sure else "."
    ranked = _draw_picture(
        lambda: ConsensusDisplay.from_consensus(consensus, query=query),
        f"Score of each item{of}{words}",
        f"{key}-score",
    )
    if not sure or not beats:
        return ranked
    caption = f"How likely each item{of} is better than each other one."
    return ranked + _draw_picture(lambda: BeatsDisplay.from_consensus(consensus, query=query), caption, f"{key}-beats")


def _several_queries(consensus: Consensus) -> tuple[Picture, ...]:
    """How sure first places are, and the items of the largest queries."""
    pictures: tuple[Picture, ...] = ()
    if consensus.uncertainty is not None:
        caption = "How sure the first place of each query is."
        pictures = _draw_picture(lambda: QueriesDisplay.from_consensus(consensus), caption, "queries")
    sizes = np.diff(consensus.items.offsets)
    largest = np.argsort(-sizes, kind="stable")[:_SHOWN_QUERIES]
    for number in largest[sizes[largest] > 1].tolist():
        pictures += _one_query(consensus, consensus.items.queries.ids[number], f"q{number}", beats=False)
    return pictures


def _item_table(material: Material) -> Table:
    """All items, the best of each query first."""
    consensus = material.consensus
    frame = consensus.frame()
    order = np.lexsort((np.arange(len(frame)), -consensus.scores, consensus.items.query))
    if material.facts.intervals is not None:
        frame = frame.hstack(material.facts.intervals.select("lower", "upper", "rank_lower", "rank_upper"))
    counts = material.facts.per_item
    if counts is not None:
        frame = frame.with_columns(n_judgments=pl.Series(counts[order]))
    if material.described is not None:
        own = material.described[order]
        frame = frame.hstack(own.select(name for name in ("text", "link") if own[name].null_count() < len(own)))
    if consensus.nominal:
        frame = frame.drop("score", "rank", "std_error", "lower", "upper", "rank_lower", "rank_upper", strict=False)
    else:
        # where there is no room for all, the best of each query stay
        frame = frame.sort("rank", maintain_order=True)
    return Table.of("items", "Items", _one_fewer(frame, consensus), _ITEM_COLUMNS)


def _one_fewer(frame: pl.DataFrame, consensus: Consensus) -> pl.DataFrame:
    """The table without the query where there is only one."""
    return frame.drop("query", strict=False) if consensus.items.n_queries == 1 else frame


_ITEM_COLUMNS = (
    Column("query", "query"),
    Column("rank", "rank", 0),
    Column("item", "item"),
    Column("text", "text"),
    Column("link", "link", kind="link"),
    Column("score", "score", 3, hint="larger is better"),
    Column("lower", "from", 3, hint="lower bound of the score, 95 % interval"),
    Column("upper", "to", 3, hint="upper bound of the score, 95 % interval"),
    Column("rank_lower", "best rank", 0, hint="best rank that the item may truly hold, 95 % interval"),
    Column("rank_upper", "worst rank", 0, hint="worst rank that the item may truly hold, 95 % interval"),
    Column("grade", "grade"),
    Column("confidence", "confidence", 3, hint="probability of the grade"),
    Column("n_judgments", "judgments", 0, hint="judgments that the item is part of"),
)


def _annotators(material: Material) -> Section:
    """Whom to keep, to talk to, to drop."""
    consensus, findings = material.consensus, material.findings.about("annotators")
    first = [findings.of(kind) for kind in BY_QUALITY]
    if not any(first):
        others = ("no_annotators", "one_annotator", "nothing_to_order", "too_few_judgments", "unmatched")
        first = [findings.of("annotators_fine") or findings.of(*others)]
    if consensus.estimates.get("control"):
        # what they like stands in the section on control
        findings = Findings(one for one in findings if not is_habit(one))
    table = material.facts.table
    if table is None or not len(table):
        return Section("annotators", "Annotators", _heading(first, "annotators"), _further_sentences(findings, first))
    pictures = _draw_picture(
        lambda: QualityDisplay.from_consensus(consensus),
        "Quality of each annotator, the probability of ordering two unequal items right; those worth a look are named.",
        "quality",
    )
    if findings.of("leans", "one_side"):
        pictures += _draw_picture(
            lambda: PositionBiasDisplay.from_consensus(consensus),
            "How far each annotator would choose by side between two equal items.",
            "position",
        )
    pictures += _confusions(material)
    sentences = _further_sentences(findings, first)
    if material.actions is not None:
        sentences += tuple(f"{headline(one)}." for one in material.actions.sentences())
    tables = [_annotator_table(material), *_changes(material.actions)]
    heading = _heading(first, "annotators")
    return Section("annotators", "Annotators", heading, sentences, pictures, tuple(tables))


def _confusions(material: Material) -> tuple[Picture, ...]:
    """What all annotators mix up, and what the worst of them do."""
    consensus = material.consensus
    caption = "Which grades are given to items of each grade, by all annotators."
    pictures = _draw_picture(lambda: ConfusionDisplay.from_consensus(consensus), caption, "confusion", wide=False)
    if not pictures:
        return ()
    for number, one in enumerate(material.facts.suspects[:_SHOWN_CONFUSIONS]):
        pictures += _draw_picture(
            partial(ConfusionDisplay.from_consensus, consensus, annotator=one.annotator),
            f"The same of {one.annotator} alone.", f"confusion-{number}", wide=False,
        )  # fmt: skip
    return pictures


def _annotator_table(material: Material) -> Table:
    """All annotators with what to do about them, the worst first."""
    frame = mark_annotators(material.consensus).reverse()
    if material.actions is not None:
        suggested = material.actions.frame().select("annotator", "action", "reason")
        frame = suggested.join(frame, on="annotator", how="left", maintain_order="left")
        # the figures have columns of their own
        frame = frame.with_columns(pl.col("reason").str.replace_all(_FIGURES, "").replace("", None))
    if material.findings.of("circular") is None:
        frame = frame.drop("share_circular", strict=False)
    return Table.of("annotator-table", "Annotators", frame, _ANNOTATOR_COLUMNS, 600_000)


_FIGURES = r" ?\(?quality [0-9.]+(, [0-9.]+ to [0-9.]+)?\)?"
_ANNOTATOR_COLUMNS = (
    Column("annotator", "annotator"),
    Column("action", "suggestion"),
    Column("reason", "reason"),
    Column("quality", "quality", 2, hint="probability of ordering two unequal items right; 0.5 is guessing"),
    Column("lower", "from", 2, hint="lower bound of the quality, 90 % interval"),
    Column("upper", "to", 2, hint="upper bound of the quality, 90 % interval"),
    Column("n_judgments", "judgments", 0),
    Column("position_bias", "position bias", 2, hint="1 always left, 0 none, -1 always right"),
    Column("share_tied", "ties", 2, hint="share of ties"),
    Column("share_circular", "circles", 2, hint="share of three items answered in a circle; guessing gives 0.25"),
    Column("share_same", "same grade", 2, hint="share of the commonest grade"),
    Column("family", "family", 0, hint="annotators of one family err together"),
)


def _changes(actions: Any) -> list[Table]:
    """What would become of the ranking without those to drop."""
    if actions is None or actions.without is None:
        return []
    frame = actions.changes()
    if not len(frame):
        return []
    columns = (
        Column("query", "query"),
        Column("item", "item"),
        Column("rank", "rank", 0),
        Column("rank_without", "rank without them", 0),
        Column("score", "score", 3),
        Column("score_without", "score without them", 3),
    )
    frame = _one_fewer(frame, actions.consensus)
    return [Table.of("changes", "What changes without those to drop", frame, columns, 200_000)]


def _agreement(material: Material) -> Section | None:
    """How far annotators agree, and where they do not."""
    findings = material.findings.about("agreement")
    first = findings.of("agreement", "no_overlap", "self_consistency")
    if first is None:
        return None
    caption = (
        "Share of equal answers of each two annotators; those who agree stand together, grey have nothing in common."
    )
    pictures = _draw_picture(lambda: AgreementDisplay.from_judgments(material.judgments), caption, "agreement")
    tables = _repeat_tables(material)
    if len(material.facts.contested_items):
        named = "Pairs of items" if "other" in material.facts.contested_items.columns else "Items"
        caption = f"{named} that annotators are most divided on"
        divided = _one_fewer(material.facts.contested_items, material.consensus)
        tables.append(Table.of("contested", caption, divided, _CONTESTED_COLUMNS, 200_000))
    return Section(
        "agreement", "Agreement", _heading([first], ""), _further_sentences(findings, [first]), pictures, tuple(tables)
    )


def _repeat_tables(material: Material) -> list[Table]:
    """How often each annotator gave the same answer again, those least often first."""
    odd = material.facts.diagnostics
    if odd is None or material.facts.consistency is None:
        return []
    table, number = odd.annotators(), pl.sum_horizontal(pl.col("^n_(repeated|swapped)$"))
    shown = table.filter(number > 0).sort("share_repeated", "annotator", nulls_last=True)
    if "n_swapped" in shown.columns and not shown["n_swapped"].sum():
        shown = shown.drop("n_swapped")
    caption = "How often annotators gave the same answer when asked again"
    return [Table.of("repeated", caption, shown, _REPEATED_COLUMNS, 200_000)]


_REPEATED_COLUMNS = (
    Column("annotator", "annotator"),
    Column("n_repeated", "asked again", 0),
    Column("share_repeated", "same answer", 2),
    Column("repeated_lower", "from", 2, hint="lower bound of the share, 90 % interval"),
    Column("repeated_upper", "to", 2, hint="upper bound of the share, 90 % interval"),
    Column("repeated_difference", "mean difference", 2, hint="mean difference of two grades of the same item"),
    Column("n_swapped", "sides swapped", 0),
    Column("share_swapped", "same answer, swapped", 2),
    Column("swapped_lower", "from", 2, hint="lower bound of the share, 90 % interval"),
    Column("swapped_upper", "to", 2, hint="upper bound of the share, 90 % interval"),
)
_CONTESTED_COLUMNS = (
    Column("query", "query"),
    Column("item", "item"),
    Column("other", "against"),
    Column("n_answers", "answers", 0),
    Column("n_item", "for the item", 0),
    Column("n_other", "for the other", 0),
    Column("n_tied", "ties", 0),
    Column("lowest", "lowest grade", 2),
    Column("highest", "highest grade", 2),
    Column("spread", "spread", 2, hint="standard deviation of the grades"),
    Column(
        "divided",
        "divided",
        2,
        hint="share of all but the commonest answer, cautiously where answers are few",
    ),
)


def _time(material: Material) -> Section | None:
    """When judgments were given."""
    times = [part.time for part in parts_of(material.judgments) if part.time is not None and len(part)]
    if not times:
        return None
    low, high = min(float(time.min()) for time in times), max(float(time.max()) for time in times)
    caption = "Judgments over time (bars), and the share of them that orders items as the consensus does (line)."
    pictures = _draw_picture(
        lambda: TimeDisplay.from_judgments(material.judgments, material.consensus), caption, "time"
    )
    heading = f"Judgments came in {_span(low, high)}"
    return Section("time", "Time", heading, (), pictures)


def _span(low: float, high: float) -> str:
    """A stretch of time in words."""
    if not 1e8 < low <= high < 4e9:
        return f"between {low:g} and {high:g}"
    first, last = (datetime.fromtimestamp(time, UTC) for time in (low, high))
    if first.date() == last.date():
        return f"on {_day(first)} between {first:%H:%M} and {last:%H:%M}"
    return f"between {_day(first)} and {_day(last)}"


def _day(time: datetime) -> str:
    """A day in words."""
    return f"{time.day} {time:%B %Y}"


def _methods(material: Material) -> Section | None:
    """Other methods on the same judgments."""
    comparison = material.comparison
    if comparison is None:
        return None
    from .comparison_displays import ComparisonDisplay, OrdersDisplay

    sentences = comparison.sentences()
    pictures: tuple[Picture, ...] = ()
    for number, measure in enumerate(comparison.measures):
        pictures += _draw_picture(
            partial(ComparisonDisplay.from_comparison, comparison, measure=measure.name),
            f"{headline(measure.title)}.", f"measure-{number}",
        )  # fmt: skip
    caption = "How far the orders of two methods agree (Kendall's tau)."
    pictures += _draw_picture(lambda: OrdersDisplay.from_comparison(comparison), caption, "orders")
    frame = comparison.frame()
    columns = [Column(name, name.replace("_", " "), 3 if dtype.is_float() else 0 if dtype.is_integer() else None)
               for name, dtype in frame.schema.items()]  # fmt: skip
    table = Table.of("methods-table", "Methods", frame, tuple(columns), 100_000)
    heading = headline(sentences[0]) if sentences else "Other methods on the same judgments"
    return Section(
        "methods", "Methods", heading, tuple(f"{headline(one)}." for one in sentences[1:]), pictures, (table,)
    )


def provenance(material: Material, extra: Sequence[tuple[str, str]], command: str | None) -> Section:
    """Return how the report was made, so it can be made again."""
    consensus = material.consensus
    convergence = material.findings.of("converged", "not_converged")
    facts = [("method", consensus.method), *_method_summary(consensus.method)]
    facts += [(f"parameter {name}", _value(value)) for name, value in consensus.params.items()]
    facts += [(f"estimated {name}", _value(value)) for name, value in consensus.estimates.items() if _is_short(value)]
    caption = "Log-likelihood of the fit, round after round."
    pictures = _draw_picture(lambda: ConvergenceDisplay.from_consensus(consensus), caption, "convergence")
    commands = (command,) if command else ()
    heading = headline(convergence.sentence, convergence) if convergence else "How this was made"
    return Section("making", "How this was made", heading, (), pictures, facts=(*facts, *extra), commands=commands)


def _method_summary(method: str) -> list[tuple[str, str]]:
    """What the method gives, where it is one of ours."""
    try:
        return [("what it gives", card("aggregator", method).summary)]
    except UnknownNameError:
        return []


def _value(value: Any) -> str:
    """A parameter as it is shown."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={_value(inner)}" for key, inner in value.items())
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 300 else f"{text[:299]}…"


def _is_short(value: Any) -> bool:
    """Whether an estimate is short enough to be shown."""
    return np.size(value) <= 20


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
    return " ".join([command, *(f"--without {shlex.quote(word)}" for word in words)])


_SHOWN_MOVES = 5
_LEVEL = 0.95


def control_section(consensus: Consensus, facts: Facts, findings: Findings) -> Section | None:
    """Return what control for covariates means and moves; ``None`` where nothing is controlled for."""
    if not consensus.estimates.get("control"):
        return None
    about_control = [one for one in findings if one.kind.startswith("control_") or one.kind in ("robust", "by_query")]
    habits = [one for one in findings if is_habit(one)]
    tables = [] if facts.uncontrolled_scores is None else _rank_moves(consensus, facts.uncontrolled_scores)
    sentences = (
        *(f"{headline(one.sentence)}." for one in (*about_control[1:], *habits)),
        "Control asks who wins between items that are equal in these; it does not say that longer or more formatted "
        "items win because of it, since they may be better.",
    )
    return Section(
        "control", "Control", headline(about_control[0].sentence), sentences,
        _habit_pictures(consensus, sides=findings.of("leans", "one_side") is None), tuple(tables),
    )  # fmt: skip


def is_habit(finding: Finding) -> bool:
    """Return whether a finding is about what annotators like, which this section shows."""
    return finding.kind.startswith(("likes_", "prefers_own", "leans_left"))


def _habit_pictures(consensus: Consensus, *, sides: bool) -> tuple[Picture, ...]:
    """What each annotator likes; favour of a ``side`` only where no other picture shows it."""
    pictures = []
    for habit in annotator_habits(consensus):
        if habit.covariate == "side" and not sides:
            continue
        what = {"side": "the left side", "self": "their own family"}.get(habit.covariate, habit.covariate)
        caption = f"How far each annotator favours {what} between equal items, with 90 % interval."
        pictures.append(picture(HabitDisplay(habit), caption, f"habit-{habit.covariate}"))
    return tuple(pictures)


def _rank_moves(consensus: Consensus, plain: Floats) -> list[Table]:
    """Ranks before and after control, the largest moves first."""
    items, query = consensus.items, consensus.items.query
    frame = pl.DataFrame({
        "query": items.query_ids(), "item": items.ids, "code": query, "before": -plain, "after": -consensus.scores,
    })  # fmt: skip
    ranked = frame.with_columns(
        pl.col("before", "after").round(9).rank("min").over("code").cast(pl.Int64)
    ).with_columns(moved=pl.col("before") - pl.col("after"))
    largest = ranked.filter(pl.col("moved") != 0).sort(pl.col("moved").abs(), "after", descending=[True, False])
    shown = largest.head(_SHOWN_MOVES).drop("code")
    shown = shown.drop("query") if items.n_queries == 1 else shown
    if not len(shown):
        return []
    mean = float(np.abs(ranked["moved"].to_numpy()).mean())
    caption = f"Largest moves by control ({len(largest):,} of {len(ranked):,} items move, {mean:.1f} ranks on average)"
    return [Table.of("control-moves", caption, shown, _MOVE_COLUMNS, 50_000)]


_MOVE_COLUMNS = (
    Column("query", "query"),
    Column("item", "item"),
    Column("before", "rank without control", 0),
    Column("after", "rank with control", 0),
    Column("moved", "places up", 0, hint="negative: down"),
)


def leaderboard_tables(consensus: Consensus) -> list[Table]:
    """Return the items as differences to the leader with intervals, and in tiers; none where scores are no log-odds."""
    if consensus.items.n_queries != 1 or consensus.uncertainty is None or len(consensus.items) < 2:
        return []
    try:
        ratings = consensus.rating(consensus.items.ids[int(np.argmax(consensus.scores))], level=_LEVEL)
    except ParameterError:
        return []
    frame = ratings.with_columns(pl.col("rating", "lower", "upper") - 1000.0)
    caption = (
        "Leaderboard: ratings less that of the leader (400 points are odds of 10 to 1), and tiers clearly below the "
        "first of the tier above"
    )
    return [Table.of("leaderboard", caption, frame, _LEADER_COLUMNS, 200_000)]


_LEADER_COLUMNS = (
    Column("tier", "tier", 0),
    Column("item", "item"),
    Column("rating", "difference", 0, hint="rating less that of the leader; 400 less are odds of 1 to 10"),
    Column("lower", "from", 0, hint="95 % interval of the difference"),
    Column("upper", "to", 0, hint="95 % interval of the difference"),
)
