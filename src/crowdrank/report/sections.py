"""The sections of a report: ranking, annotators, agreement, time, methods, and how it was made."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.judgments import Judgments, Mixed, Preferences, parts_of
from ..errors import ParameterError, UnknownNameError
from ..registry import card
from ..review.facts import Facts
from ..review.findings import Finding, Findings
from ..review.sentences import BY_QUALITY
from .annotator_displays import ConfusionDisplay, PositionBiasDisplay, QualityDisplay, mark_annotators
from .control_section import control_section, is_habit, leaderboard_tables
from .crowd_displays import AgreementDisplay, ConvergenceDisplay, TimeDisplay
from .drawing import Display
from .item_displays import LEVEL, BeatsDisplay, ConsensusDisplay, QueriesDisplay
from .page import Picture, Section, headline, picture
from .page_tables import Column, Table

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
    facts = [("method", consensus.method), *_summary(consensus.method)]
    facts += [(f"parameter {name}", _value(value)) for name, value in consensus.params.items()]
    facts += [(f"estimated {name}", _value(value)) for name, value in consensus.estimates.items() if _is_short(value)]
    caption = "Log-likelihood of the fit, round after round."
    pictures = _draw_picture(lambda: ConvergenceDisplay.from_consensus(consensus), caption, "convergence")
    commands = (command,) if command else ()
    heading = headline(convergence.sentence, convergence) if convergence else "How this was made"
    return Section("making", "How this was made", heading, (), pictures, facts=(*facts, *extra), commands=commands)


def _summary(method: str) -> list[tuple[str, str]]:
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
