"""Make the pages that follow from the code: methods.md, cli.md and the method table of the README.

``python docs/make.py`` writes them; ``python docs/make.py --check`` exits 1 when one is not up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from typer.main import get_command

from crowdrank.cli.app import app
from crowdrank.metrics.measures import MEASURES
from crowdrank.registry import FAMILIES, TITLES, Card, card, names
from crowdrank.simulate import NOISES

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
MEASURED = ("grades", "preferences", "latent_score", "compare", "rankers")
"""Pages of tables that benchmarks write."""
MARKS = ("<!-- methods: made by docs/make.py -->", "<!-- end of methods -->")


def methods_table(cards: list[Card]) -> str:
    """A line for each method."""
    lines = ["| Method | Takes | Gives |", "|---|---|---|"]
    lines += [f"| `{c.name}` | {c.takes} | {c.summary.rstrip('.')} |" for c in cards]
    return "\n".join(lines)


def methods_page(families: dict[str, list[Card]]) -> str:
    """All that the registry knows of each method, and the measures and noise models."""
    parts = [
        "# Methods",
        "Made from the code by `docs/make.py`; `crowdrank methods NAME` shows the same. Keys in brackets are in "
        "[references.md](references.md).",
    ]
    for family, cards in families.items():
        parts += [f"## {TITLES[family]}", methods_table(cards), *(method_section(c) for c in cards)]
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
    parts += [(DOCS / f"measured_{what}.md").read_text().strip() for what in MEASURED]
    return "\n\n".join(parts) + "\n"


def method_section(c: Card) -> str:
    """One method: what it gives, its parameters, its paper, its notes."""
    lines = [f"### `{c.name}`", c.summary]
    facts = [f"Takes {c.takes}{', nominal grades too' if c.nominal else ''}."]
    if c.aliases:
        facts.append("Also called " + ", ".join(f"`{alias}`{c.settings(alias)}" for alias in c.aliases) + ".")
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


def commands_page() -> str:
    """Every command with its help, arguments and options."""
    group: Any = get_command(app)
    parts = [
        "# Command line",
        "Made from the code by `docs/make.py`; `crowdrank COMMAND --help` shows the same.",
        words(group.help),
    ]
    commands = group.commands
    parts.append(
        "\n".join(f"- [`crowdrank {name}`](#crowdrank-{name}): {first_line(commands[name])}" for name in commands)
    )
    parts += [command_section(name, command) for name, command in commands.items()]
    return "\n\n".join(parts) + "\n"


def first_line(command: Any) -> str:
    """The one line that says what a command does."""
    return words(command.help).split("\n", 1)[0]


def command_section(name: str, command: Any) -> str:
    """One command: its help, then a table of what it takes."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join([f"crowdrank {name}", "[OPTIONS]", *(shown_argument(p) for p in arguments)])
    lines = [f"## `crowdrank {name}`", f"    {usage}", words(command.help)]
    rows = [f"| `{cell(shown_argument(p))}` | {cell(getattr(p, 'help', ''))} |" for p in arguments]
    rows += [f"| `{cell(shown_option(p))}` | {cell(p.help)} |" for p in options]
    if rows:
        lines.append("\n".join(["| Takes | Means |", "|---|---|", *rows]))
    if command.epilog:
        lines.append(f"```sh\n{command.epilog}\n```")
    return "\n\n".join(lines)


def shown_argument(parameter: Any) -> str:
    """An argument as it stands in the usage line."""
    name = (parameter.metavar or parameter.name or "").upper()
    return name + ("..." if parameter.nargs == -1 and not name.endswith("...") else "")


def shown_option(parameter: Any) -> str:
    """An option with what goes behind it."""
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} {(parameter.metavar or parameter.type.name).upper()}"


def words(text: str | None) -> str:
    """Help text as paragraphs, without the marks that only the terminal needs."""
    paragraphs = re.split(r"\n\s*\n", (text or "").replace("\f", "").replace("\b", "").strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def cell(text: str | None) -> str:
    """Text that fits into one cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|")


def plain(text: str) -> str:
    """Docstring markup as Markdown, for a table cell or a paragraph."""
    text = re.sub(r":math:`([^`]*)`", r"`\1`", text)
    text = re.sub(r":\w+:`~?\.?([^`]*)`", r"`\1`", text)
    text = re.sub(r"\[(\w+)\]_", r"[\1](references.md)", text)
    return text.replace("``", "`").replace("|", "\\|")


def pages() -> dict[Path, str]:
    """Every generated file with what it should hold."""
    families = {family: [card(family, name) for name in names(family)] for family in FAMILIES}
    cards = [c for family in families.values() for c in family]
    readme = README.read_text()
    before, rest = readme.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    return {
        DOCS / "methods.md": methods_page(families),
        DOCS / "cli.md": commands_page(),
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
