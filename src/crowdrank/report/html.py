"""The report as one page: everything in it, nothing from outside, everything from the data escaped."""

from __future__ import annotations

from typing import Any

from ..api.aggregation import as_judgments
from ..data.consensus import Consensus
from ..data.files import PathLike
from ..data.fingerprint import fingerprint
from ..data.judgments import Mixed
from ..io.features import describe_items, web_link
from ..io.output import check_target, write_text
from ..review.facts import facts_of
from ..review.findings import Finding, Findings, findings_of, name_ids
from ..wording import counted, percent
from .page import Section, headline, origin, render_page
from .sections import Material, provenance, sections, without_command


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
