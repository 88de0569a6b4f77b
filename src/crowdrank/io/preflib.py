"""PrefLib files of rankings (.soc, .soi, .toc, .toi), in their present form and in the one before 2022."""

from __future__ import annotations

import re
from collections import Counter

import polars as pl

from ..data.files import PathLike
from ..data.preferences import Rankings
from ..errors import JudgmentError
from .notices import say
from .sources import Source, open_source, show_value

SUFFIXES = (".soc", ".soi", ".toc", ".toi")

_SHAPE = "a line should look like '5: 1,2,{3,4}'"
_HEADER = re.compile(r"#\s*([^:]*?)\s*:\s*(.*?)\s*$")
_NAME = re.compile(r"alternative name\s+(\d+)$", re.IGNORECASE)
_PLACE = r"(?:\d+|\{\s*\d+(?:\s*,\s*\d+)*\s*\})"
_ORDER = re.compile(rf"\s*{_PLACE}(?:\s*,\s*{_PLACE})*\s*", re.ASCII)


def read_preflib(path: PathLike | Source) -> Rankings:
    """Return the rankings of a PrefLib file; how often an order was given becomes its weight.

    Items are called by their names where the file gives them, otherwise by their numbers; who ranked is not said.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dots.toc"
    >>> _ = path.write_text("# ALTERNATIVE NAME 1: few\\n# ALTERNATIVE NAME 2: many\\n3: 1,2\\n1: {1,2}\\n")
    >>> rankings = read_preflib(path)
    >>> rankings.weight.tolist(), rankings.frame()["item"].to_list()
    ([3.0, 1.0], ['few', 'many', 'few', 'many'])
    """
    source = open_source(path)
    lines = [(number, text.strip()) for number, text in enumerate(source.text().split("\n"), 1) if text.strip()]
    if not lines:
        raise JudgmentError(f"{source.name} holds only blank lines; check that it was written in full")
    # names of the alternatives by number, how many there are (0: not said), and line number, count and order of each
    given, n_items, orders = dict[int, str](), 0, list[tuple[int, str, str]]()
    if lines[0][1].isdecimal():
        # before 2022: the number of alternatives, their names, a line of totals
        n_items = _whole(source, *lines[0], "the number of alternatives")
        if len(lines) < n_items + 2:
            says = f"says it has {n_items} alternatives but ends before them"
            raise JudgmentError(f"{source.name} {says}; download it again")
        for line, text in lines[1 : n_items + 1]:
            number, comma, name = text.partition(",")
            if not comma:
                shape = "it should be 'number, name' of an alternative"
                raise source.broken_line(line, f"is {show_value(text)}", shape)
            given[_whole(source, line, number, "the number of an alternative")] = name.strip()
        given = {number: name for number, name in given.items() if name}
        orders = [(line, *text.partition(",")[::2]) for line, text in lines[n_items + 2 :]]
    else:
        for line, text in lines:
            header = _HEADER.match(text)
            if header:
                alternative = _NAME.match(header[1])
                if alternative and header[2]:
                    given[int(alternative[1])] = header[2]
                elif header[1].upper() == "NUMBER ALTERNATIVES":
                    n_items = _whole(source, line, header[2], "the number of alternatives")
            elif not text.startswith("#"):
                count, colon, order = text.partition(":")
                if not colon:
                    raise source.broken_line(line, f"is {show_value(text)}", _SHAPE)
                orders.append((line, count, order))
    if not orders:
        raise JudgmentError(f"{source.name} holds no rankings; {_SHAPE}")
    rows: list[tuple[int, int, int, int]] = []
    for ranking, (line, count, order) in enumerate(orders, 1):
        weight, places = _whole(source, line, count, "a count"), _order(source, line, order, n_items)
        rows += [(number, rank, ranking, weight) for rank, place in enumerate(places, 1) for number in place]
    # an item is called by its name, or by its number where names are not distinct
    names = {number: given.get(number, str(number)) for number in sorted({*given, *(row[0] for row in rows)})}
    doubled = [name for name, n in Counter(names.values()).items() if n > 1]
    if doubled:
        several = f"the name {show_value(doubled[0])} stands for several alternatives"
        say(f"{source.name}: {several}, so items are called by number")
        names = {number: str(number) for number in names}
    table = pl.DataFrame(rows, schema=["item", "rank", "ranking", "weight"], orient="row")
    named = table.with_columns(pl.Series("item", [names[row[0]] for row in rows]))
    return Rankings.from_frame(named, items=pl.DataFrame({"item": list(names.values())}))


def _order(source: Source, line: int, order: str, n_items: int) -> list[list[int]]:
    """Numbers of the alternatives in order, tied ones together."""
    if not _ORDER.fullmatch(order):
        raise source.broken_line(line, f"has the order {show_value(order.strip())}", _SHAPE)
    places, seen = list[list[int]](), set[int]()
    for text in re.findall(r"\{[^}]*\}|\d+", order):
        place = [_whole(source, line, number, "an alternative") for number in text.strip("{}").split(",")]
        for number in place:
            if number in seen:
                raise source.broken_line(line, f"ranks alternative {number} twice", "drop it")
            if n_items and number > n_items:
                raise source.broken_line(line, f"ranks alternative {number} of {n_items}", "correct the number")
            seen.add(number)
        places.append(place)
    return places


def _whole(source: Source, line: int, text: str, what: str) -> int:
    """A whole number above 0."""
    text = text.strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 16 and int(text) > 0):
        raise source.broken_line(line, f"has {show_value(text)} for {what}", _SHAPE)
    return int(text)
