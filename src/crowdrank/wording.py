"""How names become sentences: an option is named as the reader would write it, in Python or on the command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_FLAGS = {
    "aggregator_params": "--aggregator-set",
    "chosen": "--choose",
    "columns": "--column",
    "invalid": "--drop-invalid",
    "measures": "--metrics",
    "n_rounds": "--rounds",
    "n_seeds": "--seeds",
    "params": "--set",
}
"""Arguments that the command line calls otherwise; any other has its own name there, with dashes."""

_FIXED = {("all_queries", True), ("chosen", True), ("invalid", "drop"), ("nominal", True)}
"""Arguments with the value that naming the option alone gives them."""

_surface = {"shell": False}


@contextmanager
def on_command_line() -> Iterator[None]:
    """Name options as the command line has them while this lasts."""
    before, _surface["shell"] = _surface["shell"], True
    try:
        yield
    finally:
        _surface["shell"] = before


def option(name: str, value: Any = None) -> str:
    """Return an argument of a verb as the reader would write it.

    Parameters
    ----------
    name
        Its name in Python.
    value
        Its value; ``None`` names the argument only, and ``...`` as a value of a mapping stands for a name to fill in.

    Examples
    --------
    >>> option("want", "grade"), option("levels"), option("columns", {"item": ...})
    ("want='grade'", 'levels=', "columns={'item': ...}")
    >>> with on_command_line():
    ...     print(option("want", "grade"), option("levels"), option("columns", {"item": ...}))
    ...     print(option("winner_codes", {"A": "left", "B": "right"}), option("params", {"ties": "davidson"}))
    ...     print(option("invalid", "drop"), option("levels", ["Bad", "Very good"]))
    --want grade --levels --column item=NAME
    --winner-codes A=left,B=right --set ties=davidson
    --drop-invalid --levels 'Bad,Very good'
    """
    if not _surface["shell"]:
        shown = "" if value is None else repr(value).replace("Ellipsis", "...")
        return f"{name}={shown}"
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    fixed = isinstance(value, str | bool) and (name, value) in _FIXED
    return flag if value is None or fixed else f"{flag} {_typed(value)}"


def naming(word: str) -> str:
    """Return how to say which column of a table holds something, for tables that the command line has no option for.

    Examples
    --------
    >>> naming("item")
    "name it with columns={'item': ...}"
    >>> with on_command_line():
    ...     print(naming("item"))
    rename the one that holds it to item
    """
    return f"rename the one that holds it to {word}" if _surface["shell"] else f"name it with columns={{{word!r}: ...}}"


def call(name: str) -> str:
    """Return a call of a method of judgments as the reader would write it.

    Examples
    --------
    >>> call("across_queries")
    '.across_queries()'
    >>> with on_command_line():
    ...     print(call("across_queries"))
    --across-queries
    """
    return f"--{name.replace('_', '-')}" if _surface["shell"] else f".{name}()"


def method_label(method: Any) -> str:
    """Return what to call a method: by its class in Python, by its name on the command line.

    Examples
    --------
    >>> from crowdrank.aggregators import CrowdBT
    >>> method_label(CrowdBT())
    'CrowdBT'
    >>> with on_command_line():
    ...     print(method_label(CrowdBT()))
    crowd_bt
    """
    kind = type(method)
    return kind.__module__.rsplit(".", 1)[-1] if _surface["shell"] else kind.__name__


def either(words: Iterable[Any], last: str = "or") -> str:
    """Return words in a row, the last one after ``or``.

    Examples
    --------
    >>> either(["grade", "rank", "order"]), either(["a", "b"], "and")
    ('grade, rank or order', 'a and b')
    """
    each = [str(word) for word in words]
    return f" {last} ".join(filter(None, (", ".join(each[:-1]), each[-1]))) if each else "none"


def _typed(value: Any) -> str:
    """A value as it is typed behind an option."""
    if isinstance(value, Mapping):
        text = ",".join(f"{key}={'NAME' if one is ... else one}" for key, one in value.items())
    elif isinstance(value, list | tuple):
        text = ",".join(map(str, value))
    else:
        text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return shlex.quote(text)
