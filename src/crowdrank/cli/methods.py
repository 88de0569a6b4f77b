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
    ("the methods of a paper, as printed and as changed", "crowdrank methods --paper niu"),
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
    paper: Annotated[
        str | None,
        typer.Option("--paper", metavar="NAME", help="Methods of a paper: wu, kumar, gupta, niu or yang."),
    ] = None,
    out: Out = None,
    format: Format = None,
) -> None:
    """List the methods, describe one, or list those of a paper.

    For one method: parameters, paper, notes. For a paper: what was printed and what is different here.
    """
    from .. import api
    from ..errors import ParameterError
    from .terminal_tables import show_frame

    check_files([], [out], format=format)
    if name is not None and paper is not None:
        raise ParameterError("a method and --paper exclude each other; leave one out")
    with Talk() as talk:
        if paper is not None:
            _tell_paper(paper, out, format, talk)
            return
        if name is not None:
            for card in api.methods(name).cards:
                _tell(card, out, format, talk)
            return
        frame = api.methods()
        shown = frame.select("method", "family", "kinds", "summary")
        deliver(frame, out, format, talk, lambda: show_frame(shown, bold="method", fill=("kinds", "summary")))


def _tell_paper(name: str, out: str | None, format: str | None, talk: Talk) -> None:
    """The methods of a paper: by which names they are called, what was printed, what is different here."""
    import polars as pl

    from .study import studies
    from .terminal_tables import show_frame

    chosen = studies(".papers").paper(name)
    rows = [
        {
            "method": one.name,
            "place": one.place,
            "names": ", ".join(dict.fromkeys(where.partition(":")[2] for where in one.where)),
            "printed": one.printed,
            "changed": one.changed or "nothing",
        }
        for one in chosen.methods()
    ]
    frame = pl.DataFrame(rows)
    filled = ("method", "names", "printed", "changed")
    deliver(
        frame, out, format, talk, lambda: show_frame(frame.drop("place"), bold="names", fill=filled, rows=len(frame))
    )
    talk.say(f"{chosen.title} ({chosen.reference}, docs/references.md); docs/papers.md has the rest")


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
    from .grid import Grid
    from .terminal_tables import console

    page = console()
    page.print(Text.assemble((card.name, "bold"), f": {plain_marks(card.summary)}"))
    page.print(Text(f"takes {card.takes}" + (", also without an order" if card.nominal else "")))
    if card.packed:
        page.print(Text(f"takes {card.packed} (docs/scale.md)"))
    if card.aliases:
        called = ", ".join(alias + card.settings(alias) for alias in card.aliases)
        page.print(Text(f"also called {called}"))
    if card.references:
        page.print(Text(f"from {', '.join(card.references)} (docs/references.md)"))
    if rows:
        cells = [[Text(row["parameter"], "bold"), Text(row["default"]), Text(_parameter_text(row))] for row in rows]
        heads = ("parameter", "default", "description")
        page.print(Padding(Grid(heads=heads, rows=cells, fill=("description",)), (1, 0)))
    for paragraph in filter(None, plain_marks(f"{card.when}\n\n{card.notes}").split("\n\n")):
        page.print(Padding(Text(" ".join(paragraph.split())), (0, 0, 1, 0)))
    page.print(Text(_USES[card.family].format(card.name), "cyan"))


def _parameter_text(row: dict[str, str]) -> str:
    """What a parameter does, and what it may be."""
    return f"{row['description']} ({row['type']})" if row["description"] else row["type"]
