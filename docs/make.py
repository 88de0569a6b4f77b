"""Make the pages that follow from the code: methods.md, cli.md and the method table of the README.

``python docs/make.py`` writes them; ``python docs/make.py --check`` exits 1 when one is not up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from crowdrank.cli import command_pages
from crowdrank.metrics.measures import MEASURES
from crowdrank.registry import Card, card, names
from crowdrank.simulate import NOISES

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
MARKS = ("<!-- methods: made by docs/make.py -->", "<!-- end of methods -->")


def methods_table(cards: list[Card]) -> str:
    """A line for each method."""
    lines = ["| Method | Takes | Gives |", "|---|---|---|"]
    lines += [f"| `{c.name}` | {', '.join(f'{kind}s' for kind in c.kinds)} | {c.summary.rstrip('.')} |" for c in cards]
    return "\n".join(lines)


def methods_page(cards: list[Card]) -> str:
    """All that the registry knows of each method, and the measures and noise models."""
    parts = [
        "# Methods",
        "Made from the code by `docs/make.py`; `crowdrank methods NAME` shows the same. Keys in brackets are in "
        "[references.md](references.md).",
        "## Aggregators",
        methods_table(cards),
    ]
    parts += [method_section(c) for c in cards]
    parts += [
        "## Measures",
        "For `--metrics` and `metrics=`; a number stands after `@`, options in brackets, as in `ndcg@10(linear)`.",
        "\n".join(
            ["| Name | Measures |", "|---|---|"]
            + [
                f"| `{name}{'@' + entry.at if entry.at else ''}` | {entry.description} |"
                for name, entry in MEASURES.items()
            ]
        ),
        "## Noise models",
        "For `crowdrank simulate --noise` and `cr.simulate.simulate(noise=...)`.",
        "\n".join(
            ["| Noise | For | Means |", "|---|---|---|"]
            + [
                f"| `{model.signature}` | {', '.join(f'{k}s' for k in model.kinds)} | {model.description} |"
                for model in NOISES.values()
            ]
        ),
    ]
    extra = DOCS / "measured.md"
    if extra.exists():
        parts.append(extra.read_text().strip())
    return "\n\n".join(parts) + "\n"


def method_section(c: Card) -> str:
    """One method: what it gives, its parameters, its paper, its notes."""
    lines = [f"### `{c.name}`", c.summary]
    takes = ", ".join(f"{kind}s" for kind in c.kinds) + (", nominal grades too" if c.nominal else "")
    facts = [f"Takes {takes}."]
    if c.aliases:
        facts.append("Also called " + ", ".join(f"`{alias}`" for alias in c.aliases) + ".")
    if c.references:
        facts.append("Paper: " + ", ".join(f"[{key}](references.md)" for key in c.references) + ".")
    lines.append(" ".join(facts))
    if c.parameters:
        rows = ["| Parameter | Takes | Default | Means |", "|---|---|---|---|"]
        rows += [f"| `{p.name}` | {p.type} | `{p.default!r}` | {plain(p.description)} |" for p in c.parameters]
        lines.append("\n".join(rows))
    if c.notes:
        lines.append(plain(c.notes))
    return "\n\n".join(lines)


def plain(text: str) -> str:
    """Docstring markup as Markdown, for a table cell or a paragraph."""
    text = re.sub(r":math:`([^`]*)`", r"`\1`", text)
    text = re.sub(r":\w+:`~?\.?([^`]*)`", r"`\1`", text)
    text = re.sub(r"\[(\w+)\]_", r"[\1](references.md)", text)
    return text.replace("``", "`").replace("|", "\\|")


def pages() -> dict[Path, str]:
    """Every generated file with what it should hold."""
    cards = [card("aggregator", name) for name in names("aggregator")]
    readme = README.read_text()
    before, rest = readme.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    return {
        DOCS / "methods.md": methods_page(cards),
        DOCS / "cli.md": command_pages(),
        README: f"{before}{MARKS[0]}\n\n{methods_table(cards)}\n\n{MARKS[1]}{after}",
    }


def main() -> int:
    """Write or check the pages."""
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            sys.stderr.write(f"{path.name} is not up to date; run python docs/make.py\n")
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages()[path])
        sys.stderr.write(f"wrote {path.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
