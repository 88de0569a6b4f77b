"""Every option of every command, once: how it is typed, what Python calls it, what it means and how it is read.

The pages are those of ``crowdrank COMMAND --help``, and stand in ``options.toml``. The signatures that typer wants, the
arguments of readers, the way messages name an option (:func:`crowdrank.wording.option`) and the documentation are made
from them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option of a command, or an argument if no dash begins it.

    Parameters
    ----------
    typed
        How it is typed, as the help shows it: its flags and what stands behind them, as in ``--method -m NAME``.
    help
        What it means.
    python
        What Python calls it, if that is not the name of the flag.
    type, default
        Of its value; ``...`` where it has to be given.
    many
        Whether it may be repeated.
    least, most
        Bounds of a number.
    reads
        How the text becomes a value: ``list`` (commas between), ``pairs`` (``key=value``, with an ``example``),
        ``codes`` (a list of pairs), ``pair`` (one of them), ``columns``, ``numbers`` or ``share`` (a number or a file).
    value
        What Python is given where an option without a value is typed.
    complete
        What a shell completes: families of methods, or names themselves; a comma behind it for a list of them.
    panel
        Heading that the help has it under.
    file
        What is done with the file it names, which is checked before any work: ``in`` is read, ``result`` is written in
        the format asked for, a ``table`` in that of its name, a ``figure`` as either table or ``picture``, a ``page``
        for browsers, and ``out`` in any way.
    only
        Kind of raw items that alone has it.
    """

    typed: str
    help: str
    python: str = ""
    type: type = str
    default: Any = None
    many: bool = False
    least: float | None = None
    most: float | None = None
    reads: str = ""
    example: str = ""
    value: Any = True
    complete: str = ""
    panel: str = ""
    file: str = ""
    only: str = ""

    @property
    def flags(self) -> list[str]:
        """The names by which it is typed; none of an argument."""
        return [word for word in self.typed.split() if word.startswith("-")]

    @property
    def metavar(self) -> str:
        """What stands for its value in the help; nothing where there is none."""
        return " ".join(word for word in self.typed.split() if not word.startswith("-"))

    @property
    def range(self) -> str:
        """What a number may be, in words."""
        number = "a whole number" if self.type is int else "a number"
        if self.least is None or self.most is None:
            return number if self.least is None else f"{number} of at least {self.least:,}"
        return f"{number} from {self.least:,} to {self.most:,}"

    @property
    def name(self) -> str:
        """What Python calls it."""
        first = self.typed.split()[0].partition("/")[0]
        return self.python or first.strip("-[].").lower().replace("-", "_")


PICTURES = (".png", ".pdf", ".svg")
"""Endings that the names of pictures have."""

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_TYPES = {"int": int, "float": float}


def _page(rows: list[Any]) -> tuple[Option, ...]:
    """The options of a help page; each has the heading that stands above it, unless it brings its own."""
    options: list[Option] = []
    heading = ""
    for row in rows:
        if isinstance(row, str) and row.startswith("# "):
            heading = row[2:]
        elif isinstance(row, str):
            options += [replace(one, panel=one.panel or heading) for one in _page(_TABLE["shared"][row])]
        else:
            row = {**row, "help": row["help"].replace("{who}", _TABLE["who"]), "type": _TYPES.get(row.get("type"), str)}
            row["default"] = ... if row.pop("required", False) else row.get("default")
            options.append(Option(**{"panel": heading, **row}))
    return tuple(options)


READING = _page(_TABLE["shared"]["reading"])
COMMANDS = {name: _page(rows) for name, rows in _TABLE["commands"].items()}
PROGRAM: dict[str, Any] = _TABLE["program"]
"""Where the functions of the commands are, and what the help of all of them says."""

BY_NAME: dict[str, Option] = {}
"""Options by what Python calls them; the first page that has one says how it is typed."""
for _options in (READING, *COMMANDS.values()):
    for _option in _options:
        if _option.flags:
            BY_NAME.setdefault(_option.name, _option)


def typed_words(options: tuple[Option, ...], given: Mapping[str, Any]) -> list[str]:
    """Return options with what was typed behind them as words of a command.

    Examples
    --------
    >>> typed_words(READING, {"columns": ["item=id"], "nominal": True, "small_is_good": False})
    ['--column', 'item=id', '--nominal', '--large-is-good']
    """
    words: list[str] = []
    for option in options:
        value = given.get(option.name)
        yes, _, no = option.flags[0].partition("/")
        if value is True or (value is False and no):
            words.append(yes if value else no)
        elif value is not None and value is not False:
            for one in value if isinstance(value, list | tuple) else [value]:
                words += [yes, str(one)]
    return words
