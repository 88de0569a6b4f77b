"""``crowdrank datasets``: the public data sets that are known, and which of them are there."""

from __future__ import annotations

from typing import Annotated

import typer

from .help import examples
from .options import Format, Out
from .outputs import check_files, deliver
from .talk import Talk

EXAMPLES = examples(
    ("every data set, and whether its files are present", "crowdrank datasets"),
    ("one: what it is, its licence, where to get it", "crowdrank datasets mirex2005-crowd"),
    ("those of another folder", "crowdrank datasets --folder ~/rankings"),
)


def datasets(
    *,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A data set.", show_default=False)] = None,
    folder: Annotated[
        str | None, typer.Option("--folder", metavar="FOLDER", help="Folder of the data sets, if not $CROWDRANK_DATA.")
    ] = None,
    out: Out = None,
    format: Format = None,
) -> None:
    """List the known public data sets, or describe one.

    The list says which are present; with a name it says where to get that one and where to put it. Nothing is
    ever downloaded. In Python, crowdrank.datasets.load(name) reads one.
    """
    import polars as pl

    from ..datasets import data_folder, present
    from ..datasets.catalog import ENTRIES
    from .terminal_tables import show_frame

    check_files([], [out], format=format)
    with Talk() as talk:
        if name is not None:
            _tell(name, folder)
            return
        talk.say(f"in {data_folder(folder)}:")
        rows = [
            {
                "name": known,
                "present": "present" if present(known, folder) else "missing",
                "description": e.description,
            }
            for known, e in ENTRIES.items()
        ]
        frame = pl.DataFrame(rows)
        deliver(frame, out, format, talk, lambda: show_frame(frame, bold="name", fill=("description",), rows=99))


def _tell(name: str, folder: str | None) -> None:
    """What a data set is, and how to get it where it is missing."""
    from ..datasets import data_folder
    from ..datasets.catalog import entry
    from ..datasets.store import Store
    from ..errors import MissingDataError

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
