"""``crowdrank methods``: every method, and what there is to know of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .help import examples
from .options import Format, Out
from .outputs import check_files, deliver, for_people
from .talk import Talk
from .words import complete_any

if TYPE_CHECKING:
    from ..registry import Card

EXAMPLES = examples(
    ("every method and the kinds of judgment it takes", "crowdrank methods"),
    ("parameters, defaults, paper and notes of one", "crowdrank methods bradley_terry"),
    ("the same for a program", "crowdrank methods bradley_terry --format json"),
)

_USES = {
    "aggregator": "crowdrank aggregate votes.csv --method {}",
    "ranker": "crowdrank train votes.csv features.csv --ranker {} --out model",
    "joint": "crowdrank train votes.csv features.csv --joint {} --out model",
    "scheme": "crowdrank propose votes.csv --scheme {} --budget 1000",
}


def methods(
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", autocompletion=complete_any, help="A method.", show_default=False),
    ] = None,
    out: Out = None,
    format: Format = None,
) -> None:
    """List the methods, or tell all of one: parameters, paper, notes."""
    from .. import api
    from .tables import show_frame

    check_files([], [out], format=format)
    with Talk() as talk:
        if name is not None:
            for card in api.methods(name).cards:
                _tell(card, out, format, talk)
            return
        frame = api.methods()
        shown = frame.select("method", "family", "kinds", "summary")
        deliver(frame, out, format, talk, lambda: show_frame(shown, bold="method", fill=("kinds", "summary")))


def _tell(card: Card, out: str | None, format: str | None, talk: Talk) -> None:
    """One method: its parameters as a table for programs, everything in words for people."""
    from ..api.method_listing import parameters

    frame = parameters(card)
    if format is None and out is None:
        _print(card, frame.to_dicts())
        return
    for_people(out, format)
    deliver(frame, out, format, talk, lambda: None)


def _print(card: Card, rows: list[dict[str, str]]) -> None:
    """Everything in words."""
    from rich.padding import Padding
    from rich.text import Text

    from ..api.method_listing import plain_marks
    from .tables import console, grid

    page = console()
    page.print(Text.assemble((card.name, "bold"), f": {plain_marks(card.summary)}"))
    page.print(Text(f"takes {card.takes}" + (", also without an order" if card.nominal else "")))
    if card.aliases:
        called = ", ".join(alias + card.settings(alias) for alias in card.aliases)
        page.print(Text(f"also called {called}"))
    if card.references:
        page.print(Text(f"from {', '.join(card.references)} (docs/references.md)"))
    if rows:
        cells = [[Text(row["parameter"], "bold"), Text(row["default"]), Text(_described(row))] for row in rows]
        page.print(Padding(grid(("parameter", "default", "description"), cells, fill=("description",)), (1, 0)))
    for paragraph in filter(None, plain_marks(f"{card.when}\n\n{card.notes}").split("\n\n")):
        page.print(Padding(Text(" ".join(paragraph.split())), (0, 0, 1, 0)))
    page.print(Text(_USES[card.family].format(card.name), "cyan"))


def _described(row: dict[str, str]) -> str:
    """What a parameter does, and what it may be."""
    return f"{row['description']} ({row['type']})" if row["description"] else row["type"]
