"""``crowdrank methods`` and ``datasets``: what there is, and what there is to know of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .. import api
from ..errors import MissingDataError, ParameterError
from .outputs import check_files, deliver
from .talk import Talk
from .votes import Asked

if TYPE_CHECKING:
    from ..registry import Card


def methods(asked: Asked, talk: Talk) -> None:
    """List the methods, describe one, or list those of a paper.

    For one method: parameters, paper, notes. For a paper: what was printed and what is different here.

    Examples
    --------
    # every method and the kinds of judgment it takes
    crowdrank methods
    # parameters, defaults, paper and notes of one
    crowdrank methods bradley_terry
    # the same for a program
    crowdrank methods bradley_terry --format json
    # the methods of a paper, as printed and as changed
    crowdrank methods --paper niu
    """
    from ..api.method_listing import parameters

    check_files([], [asked.out], format=asked.format)
    if asked.name is not None and asked.paper is not None:
        raise ParameterError("a method and --paper exclude each other; leave one out")
    if asked.paper is not None:
        import polars as pl

        from .study import studies

        # by which names they are called, what was printed, what is different here
        chosen = studies(".papers").paper(asked.paper)
        rows = []
        for one in chosen.methods():
            called = ", ".join(dict.fromkeys(where.partition(":")[2] for where in one.where))
            rows.append((one.name, one.place, called, one.printed, one.changed or "nothing"))
        frame = pl.DataFrame(rows, schema=["method", "place", "names", "printed", "changed"], orient="row")
        shown = frame.drop("place")
        deliver(frame, asked, talk, lambda: shown, bold="names", fill=shown.columns, rows=len(frame))
        talk.say(f"{chosen.title} ({chosen.reference}, docs/references.md); docs/papers.md has the rest")
    elif asked.name is not None:
        for card in api.methods(asked.name).cards:
            if asked.format is None and asked.out is None:
                _print_card(card)
            else:
                deliver(parameters(card), asked, talk, bold="parameter")
    else:
        frame = api.methods()
        shown = frame.select("method", "family", "kinds", "summary")
        deliver(frame, asked, talk, lambda: shown, bold="method", fill=("kinds", "summary"))


def _print_card(card: Card) -> None:
    """Everything about a method in words."""
    from rich.padding import Padding
    from rich.text import Text

    from ..api.method_listing import facts_of_card, parameters, plain_marks
    from .terminal_tables import Grid, console

    page = console()
    page.print(Text.assemble((card.name, "bold"), f": {plain_marks(card.summary)}"))
    for line in facts_of_card(card, pages=True):
        page.print(Text(line))
    cells = []
    for name, kind, default, description in parameters(card).iter_rows():
        meaning = f"{description} ({kind})" if description else kind
        cells.append([Text(name, "bold"), Text(default), Text(meaning)])
    if cells:
        heads = ("parameter", "default", "description")
        page.print(Padding(Grid(heads=heads, rows=cells, fill=("description",)), (1, 0)))
    for paragraph in filter(None, plain_marks(f"{card.when}\n\n{card.notes}").split("\n\n")):
        page.print(Padding(Text(" ".join(paragraph.split())), (0, 0, 1, 0)))
    uses = {
        "aggregator": "aggregate votes.csv --method {}", "scheme": "propose votes.csv --scheme {} --budget 1000",
        "ranker": "train votes.csv features.csv --ranker {} --out model",
        "joint": "train votes.csv features.csv --joint {} --out model",
    }  # fmt: skip
    page.print(Text(f"crowdrank {uses[card.family].format(card.name)}", "cyan"))


def datasets(asked: Asked, talk: Talk) -> None:
    """List the known public data sets, or describe one.

    The list says which are present; with a name it says where to get that one and where to put it. Nothing is
    ever downloaded. In Python, crowdrank.datasets.load(name) reads one.

    Examples
    --------
    # every data set, and whether its files are present
    crowdrank datasets
    # one: what it is, its licence, where to get it
    crowdrank datasets mirex2005-crowd
    # those of another folder
    crowdrank datasets --folder ~/rankings
    """
    import polars as pl

    from ..datasets import data_folder, present
    from ..datasets.catalog import ENTRIES, Store, entry

    name, folder = asked.name, asked.folder
    check_files([], [asked.out], format=asked.format)
    if name is not None:
        known = entry(name)
        store = Store(name, known.folder, data_folder(folder), known.description)
        lines = [known.description, f"Licence: {store.terms.licence}.", f"Source: {store.terms.source}."]
        try:
            for file in store.terms.files:
                store.path(file)
            lines.append(f'Present in {store.place}; crowdrank.datasets.load("{name}") reads it.')
        except MissingDataError as missing:
            lines.append(f"Missing: {missing}.")
        typer.echo("\n".join(lines))
        return
    talk.say(f"in {data_folder(folder)}:")
    frame = pl.DataFrame([
        {"name": one, "present": "present" if present(one, folder) else "missing", "description": known.description}
        for one, known in ENTRIES.items()
    ])  # fmt: skip
    deliver(frame, asked, talk, bold="name", fill=("description",), rows=99)
