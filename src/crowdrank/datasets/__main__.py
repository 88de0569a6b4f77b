"""``python -m crowdrank.datasets``: list the data sets, or make one from its public source."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..errors import CrowdrankError
from .catalog import ENTRIES
from .prepare import prepare
from .sources import FOLDERS
from .store import Store, data_folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m crowdrank.datasets",
        description="List the data sets and whether each is present, or make one from its public source.",
    )
    parser.add_argument("--folder", help="folder that holds the data sets (default: $CROWDRANK_DATA, or the cache)")
    commands = parser.add_subparsers(dest="command")
    making = commands.add_parser("prepare", help="make a data set's stored files from its public source's")
    making.add_argument("name", metavar="NAME", help="name of the data set")
    making.add_argument("source", metavar="SOURCE", help="folder with a copy of the public repository")
    making.add_argument("--out", metavar="FOLDER", help="folder that holds the data sets (default: as for loading)")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "prepare":
            for path in prepare(chosen.name, chosen.source, chosen.out or chosen.folder):
                sys.stdout.write(f"{path}\n")
        else:
            _list(chosen.folder)
    except CrowdrankError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _list(folder: str | None) -> None:
    """Print every name, whether it is present, and what it is."""
    root = data_folder(folder)
    sys.stderr.write(f"in {root}:\n")
    width = max(map(len, ENTRIES))
    for name, entry in ENTRIES.items():
        store = Store(name, entry.folder, root)
        present = all(store.find(file) for file in FOLDERS[entry.folder].files)
        sys.stdout.write(f"{name:{width}}  {'present' if present else 'missing'}  {entry.description}\n")


if __name__ == "__main__":
    sys.exit(main())
