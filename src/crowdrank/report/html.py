"""The report as one page: everything in it, nothing from outside, everything from the data escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
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
from .drawing import CAPTIONS, Display
from .page import Page, Picture, Section, Table, as_sentences, columns_of, headline, picture, plain_columns, provenance

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


write_report = write
"""The name that it has among the verbs."""


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
    consensus, findings = facts.reviewed_consensus, findings_of(facts)
    if isinstance(actions, str) and actions == "auto":
        from ..review.actions import suggest_actions

        known = consensus.quality is not None and judged.n_annotators > 1
        actions = suggest_actions(consensus, judged) if known else None
    # text and links of the items: from a table about them, or their ids where those are addresses
    ids, described = consensus.items.ids, None
    if items is not None:
        described = describe_items(items, consensus.items)
    elif ids.dtype == pl.String and len(ids) and ids.str.contains(r"^https?://").any():
        links = {"text": None, "link": list(map(web_link, ids.to_list()))}
        described = pl.DataFrame(links, schema={"text": pl.String, "link": pl.String})
    worst_first, whole = findings.worst_first(), findings.of("judgments")
    number_of = Counter(one.severity for one in findings)
    numbers = [counted(number_of[word], word) for word in ("problem", "warning") if number_of[word]]
    # on top stands what calls for action or is well, but not that the fit settled
    on_top = [one for one in worst_first if one.severity != "info" and one.kind != "converged"]
    return Page(
        title=title or f"Consensus of {count_kinds(judged)}",
        lead=f"{headline(whole.sentence)}, ranked by {consensus.method}." if whole else "",
        cards=_cards(findings, judged, actions),
        summary=f"{' and '.join(numbers)} to look at" if numbers else "Nothing calls for action",
        advice=_advice(findings, actions),
        findings=on_top or list(worst_first),
        sections=[
            _ranking(facts, findings, judged, described),
            _control(facts, findings),
            _annotators(facts, findings, actions, command),
            _agreement(facts, findings, judged),
            _time(facts, findings, judged),
            _methods(comparison),
            _provenance(facts, findings, judged, command),
        ],
    ).render()


def _cards(findings: Findings, judged: Judgments | Mixed, actions: Any) -> list[tuple[str, str]]:
    """The numbers that stand on top."""
    numbers = {one.kind: one.numbers for one in findings}
    cards = [(f"{judged.n_judgments:,}", "judgments"), (f"{judged.n_items:,}", "items")]
    cards += [] if judged.n_queries == 1 else [(f"{judged.n_queries:,}", "queries")]
    n = numbers.get("judgments", {}).get("n_annotators", 0)
    cards += [(f"{n:,}", "annotators")] if n else []
    cards += [(f"{len(actions.dropped):,}", "annotators to drop")] if actions is not None and n else []
    repeats = numbers.get("self_consistency", {})
    shares = {
        "agreement of two annotators": numbers.get("agreement", {}).get("agreement"),
        "the same answer with sides swapped": repeats.get("share_swapped"),
        "the same answer when asked again": repeats.get("share_repeated"),
    }
    cards += [(percent(share), what) for what, share in shares.items() if share is not None][:1]
    if "probability" in numbers.get("winner", {}):
        cards.append((percent(numbers["winner"]["probability"], of_belief=True), "sure of the first place"))
    elif "n_sure" in numbers.get("winners", {}):
        winners = numbers["winners"]
        cards.append((f"{winners['n_sure']:,} of {winners['n_queries']:,}", "queries with a sure first place"))
    return cards


def _advice(findings: Findings, suggested: Any) -> list[str]:
    """What to do, in sentences."""
    advice, more = [], findings.of("more_judgments", "equals")
    if suggested is not None and suggested.dropped:
        effect = f"; {suggested.sentence}" if suggested.sentence else ""
        advice.append(f"leave out {name_ids(suggested.dropped)}{effect}")
    if suggested is not None and suggested.reviewed:
        advice.append(f"look at {name_ids(suggested.reviewed)}")
    return list(as_sentences([*advice, *([] if more is None else [more.sentence])]))


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


def _ranking(
    facts: Facts, all_findings: Findings, judged: Judgments | Mixed, described: pl.DataFrame | None
) -> Section:
    """What won, and how sure that is."""
    consensus, findings = facts.reviewed_consensus, all_findings.about("items")
    first = findings.of("winner", "winners", "shared_first", "all_tied", "only_item", "classes", "empty")
    if consensus.grade is not None:
        first = findings.of("uncertain_grades", "grades") or first
    items, sure = consensus.items, consensus.uncertainty is not None
    pictures: tuple[Picture, ...] = ()
    if not consensus.nominal and items.n_queries == 1 and len(items):
        pictures = _one_query(consensus, None, "q")
        if sure:
            pictures += _draw_picture(lambda: displays.BeatsDisplay.from_consensus(consensus), "q-beats")
    elif not consensus.nominal and len(items):
        if sure:
            pictures = _draw_picture(lambda: displays.QueriesDisplay.from_consensus(consensus), "queries")
        sizes = np.diff(items.offsets)
        largest = np.argsort(-sizes, kind="stable")[:_SHOWN_QUERIES]
        for number in largest[sizes[largest] > 1].tolist():
            pictures += _one_query(consensus, items.queries.ids[number], f"q{number}")
    tables = [_item_table(facts, described)]
    across = isinstance(judged, Preferences) and judged.block is not None
    if across and items.n_queries == 1 and sure and len(items) > 1:
        # differences to the leader with intervals, and tiers, where scores are log-odds
        with suppress(ParameterError):
            ratings = consensus.rating(items.ids[int(np.argmax(consensus.scores))], level=displays.LEVEL)
            frame = ratings.with_columns(pl.col("rating", "lower", "upper") - 1000.0)
            tables.insert(0, _table("leaderboard", frame))
    return Section("ranking", "Ranking", *_words(findings, [first], "the items"), pictures, tuple(tables))


def _one_query(consensus: Consensus, query: Any, key: str) -> tuple[Picture, ...]:
    """A picture of the scores of the items of one query."""
    name = "score" if consensus.uncertainty is None else "score-with-interval"
    words: dict[str, Any] = {"of": "" if query is None else f" of query {query}", "level": 100 * displays.LEVEL}
    make = partial(displays.ConsensusDisplay.from_consensus, consensus, query=query)
    return _draw_picture(make, name, f"{key}-score", **words, not_covered=CAPTIONS["not-covered"])


def _table(name: str, frame: pl.DataFrame, most: int = 200_000, **words: Any) -> Table:
    """A table with the caption and the columns of this name."""
    return Table.of(name, CAPTIONS[name].format(**words), frame, columns_of(name), most)


def _item_table(facts: Facts, described: pl.DataFrame | None) -> Table:
    """All items, the best of each query first."""
    consensus = facts.reviewed_consensus
    frame = consensus.frame()
    order = np.lexsort((np.arange(len(frame)), -consensus.scores, consensus.items.query))
    if facts.intervals is not None:
        frame = frame.hstack(facts.intervals.select("lower", "upper", "rank_lower", "rank_upper"))
    if facts.per_item is not None:
        frame = frame.with_columns(n_judgments=pl.Series(facts.per_item[order]))
    if described is not None:
        own = described[order]
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


def _control(facts: Facts, findings: Findings) -> Section | None:
    """What control for covariates means and moves; ``None`` where nothing is controlled for."""
    consensus, plain = facts.reviewed_consensus, facts.uncontrolled_scores
    if not consensus.estimates.get("control"):
        return None
    about_control = [one for one in findings if one.kind.startswith("control_") or one.kind in ("robust", "by_query")]
    sentences = as_sentences(one.sentence for one in (*about_control[1:], *filter(_is_habit, findings)))
    pictures: tuple[Picture, ...] = ()
    for habit in annotator_habits(consensus):
        # another picture shows who leans
        if habit.covariate != "side" or findings.of("leans", "one_side") is None:
            what = {"side": "the left side", "self": "their own family"}.get(habit.covariate, habit.covariate)
            make = partial(displays.HabitDisplay, habit)
            pictures += _draw_picture(make, "habit", f"habit-{habit.covariate}", what=what)
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
        shown = _without_query(largest.head(_SHOWN_MOVES).drop("code"), consensus)
        if len(largest):
            tables = (_table("control-moves", shown, 50_000, moved=len(largest), n=len(ranked), mean=mean),)
    words = (headline(about_control[0].sentence), (*sentences, CAPTIONS["control"]))
    return Section("control", "Control", *words, pictures, tables)


def _annotators(facts: Facts, all_findings: Findings, actions: Any, command: str | None) -> Section:
    """Whom to keep, to talk to, to drop."""
    consensus, findings = facts.reviewed_consensus, all_findings.about("annotators")
    first = [findings.of(kind) for kind in BY_QUALITY]
    if not any(first):
        others = ("no_annotators", "one_annotator", "nothing_to_order", "too_few_judgments", "unmatched")
        first = [findings.of("annotators_fine") or findings.of(*others)]
    if consensus.estimates.get("control"):
        findings = Findings(one for one in findings if not _is_habit(one))
    heading, sentences = _words(findings, first, "annotators")
    if facts.table is None or not len(facts.table):
        return Section("annotators", "Annotators", heading, sentences)
    pictures = _draw_picture(lambda: displays.QualityDisplay.from_consensus(consensus), "quality")
    if findings.of("leans", "one_side"):
        pictures += _draw_picture(lambda: displays.PositionBiasDisplay.from_consensus(consensus), "position")
    confusion = partial(displays.ConfusionDisplay.from_consensus, consensus)
    confusions = _draw_picture(confusion, "confusion", wide=False)
    for number, one in enumerate(facts.suspects[:_SHOWN_CONFUSIONS] if confusions else ()):
        own, who = partial(confusion, annotator=one.annotator), one.annotator
        confusions += _draw_picture(own, "confusion-of-one", f"confusion-{number}", wide=False, who=who)
    # all annotators with what to do about them, the worst first, and what would become of the ranking
    frame = displays.mark_annotators(consensus.quality, consensus.diagnostics).reverse()
    changes, commands = pl.DataFrame(), list[str]()
    if actions is not None:
        sentences += as_sentences(actions.sentences())
        suggested = actions.frame().select("annotator", "action", "reason")
        frame = suggested.join(frame, on="annotator", how="left", maintain_order="left")
        # the figures have columns of their own
        frame = frame.with_columns(pl.col("reason").str.replace_all(_FIGURES, "").replace("", None))
        if actions.without is not None:
            changes = _without_query(actions.changes(), actions.consensus)
        if actions.dropped and command is not None:
            commands.append(without_command(command, actions.dropped))
    if findings.of("circular") is None:
        frame = frame.drop("share_circular", strict=False)
    tables = [Table.of("annotator-table", "Annotators", frame, columns_of("annotators"), 600_000)]
    tables += [_table("changes", changes)] if len(changes) else []
    shown = (pictures + confusions, tuple(tables))
    return Section("annotators", "Annotators", heading, sentences, *shown, commands=tuple(commands))


def _agreement(facts: Facts, all_findings: Findings, judged: Judgments | Mixed) -> Section | None:
    """How far annotators agree, and where they do not."""
    findings = all_findings.about("agreement")
    first = findings.of("agreement", "no_overlap", "self_consistency")
    if first is None:
        return None
    pictures = _draw_picture(lambda: displays.AgreementDisplay.from_judgments(judged), "agreement")
    tables = []
    if facts.diagnostics is not None and facts.consistency is not None:
        # those who gave the same answer again least often come first
        table, number = facts.diagnostics.annotators(), pl.sum_horizontal(pl.col("^n_(repeated|swapped)$"))
        shown = table.filter(number > 0).sort("share_repeated", "annotator", nulls_last=True)
        if "n_swapped" in shown.columns and not shown["n_swapped"].sum():
            shown = shown.drop("n_swapped")
        tables.append(_table("repeated", shown))
    if len(facts.contested_items):
        named = "Pairs of items" if "other" in facts.contested_items.columns else "Items"
        tables.append(_table("contested", _without_query(facts.contested_items, facts.consensus), named=named))
    return Section("agreement", "Agreement", *_words(findings, [first]), pictures, tuple(tables))


def _time(facts: Facts, findings: Findings, judgments: Judgments | Mixed) -> Section | None:
    """When judgments were given, and how annotators whose agreement changes fared."""
    consensus, found = facts.reviewed_consensus, findings.of("changes")
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


def _provenance(facts: Facts, findings: Findings, judged: Judgments | Mixed, command: str | None) -> Section:
    """How the report was made, so it can be made again."""
    consensus, convergence = facts.reviewed_consensus, findings.of("converged", "not_converged")
    made = [("method", consensus.method)]
    # of a method of somebody else nothing is known
    with suppress(UnknownNameError):
        made.append(("what it gives", card("aggregator", consensus.method).summary))
    made += [(f"parameter {name}", _value(value)) for name, value in consensus.params.items()]
    short_ones = {name: value for name, value in consensus.estimates.items() if np.size(value) <= _MOST_ESTIMATES}
    made += [(f"estimated {name}", _value(value)) for name, value in short_ones.items()]
    made += [("judgments", count_kinds(judged)), ("fingerprint of the judgments", fingerprint(judged))]
    pictures = _draw_picture(lambda: displays.ConvergenceDisplay.from_consensus(consensus), "convergence")
    return provenance(made, command, headline(convergence.sentence, convergence) if convergence else "", pictures)


def _value(value: object) -> str:
    """A parameter as it is shown."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={_value(inner)}" for key, inner in value.items())
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 300 else f"{text[:299]}…"


def without_command(command: str, annotators: Sequence[object]) -> str:
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
