"""``crowdrank methods`` and ``datasets``: what there is, and what there is to know of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .. import api
from ..errors import MissingDataError, ParameterError
from ..options import PROGRAM
from .outputs import deliver
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
                deliver(api.parameters(card), asked, talk, bold="parameter")
    else:
        frame = api.methods()
        shown = frame.select("method", "family", "kinds", "summary")
        deliver(frame, asked, talk, lambda: shown, bold="method", fill=("kinds", "summary"))


def _print_card(card: Card) -> None:
    """Everything about a method in words."""
    from rich.padding import Padding
    from rich.text import Text

    from .terminal_tables import Grid, console

    page = console()
    page.print(Text.assemble((card.name, "bold"), f": {api.plain_marks(card.summary)}"))
    for line in api.facts_of_card(card, pages=True):
        page.print(Text(line))
    cells = [
        [Text(name, "bold"), Text(default), Text(f"{meaning} ({kind})" if meaning else kind)]
        for name, kind, default, meaning in api.parameters(card).iter_rows()
    ]
    if cells:
        heads = ("parameter", "default", "description")
        page.print(Padding(Grid(heads=heads, rows=cells, fill=("description",)), (1, 0)))
    for paragraph in filter(None, api.plain_marks(f"{card.when}\n\n{card.notes}").split("\n\n")):
        page.print(Padding(Text(" ".join(paragraph.split())), (0, 0, 1, 0)))
    page.print(Text(PROGRAM["uses"][card.family].format(card.name), "cyan"))


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
    if name is not None:
        known = entry(name)
        store = Store(name, known.folder, data_folder(folder), known.description)
        where = f'Present in {store.place}; crowdrank.datasets.load("{name}") reads it.'
        try:
            for file in store.terms.files:
                store.path(file)
        except MissingDataError as missing:
            where = f"Missing: {missing}."
        lines = (known.description, f"Licence: {store.terms.licence}.", f"Source: {store.terms.source}.", where)
        typer.echo("\n".join(lines))
        return
    talk.say(f"in {data_folder(folder)}:")
    frame = pl.DataFrame([
        {"name": one, "present": "present" if present(one, folder) else "missing", "description": known.description}
        for one, known in ENTRIES.items()
    ])  # fmt: skip
    deliver(frame, asked, talk, bold="name", fill=("description",), rows=99)
