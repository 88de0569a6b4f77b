"""Tables for people, which fit the terminal: the ranking with its intervals, and any other frame."""

from __future__ import annotations

import io
import itertools
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..data.showing import DIGITS, round_floats
from ..wording import counted
from .talk import one_line

if TYPE_CHECKING:
    import polars as pl
    from rich.console import ConsoleOptions, RenderableType

    from ..data.consensus import Consensus

MOST_ROWS = 20
LONGEST = 40
"""Characters of an id that are shown."""

_WIDEST, _NARROWEST = 27, 9
"""Characters that the picture of an interval may be wide."""

SHORTEST = 8
"""Characters of a text that are shown however narrow a terminal is."""

_LONGEST_WORD = 24
"""Characters of a word up to which a column that runs over several lines is wide enough for it."""

_GAP = 2


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table for people, as wide as the terminal at most.

    Parameters
    ----------
    heads
        Names of the columns.
    rows
        Cells; an empty row stands for a gap.
    right
        Columns of numbers.
    cut, fill
        Columns that are cut, or that run over several lines, where the terminal is narrow; the others stay whole.

    Columns of numbers that have no room stand in further tables below, each behind the columns that say whose they
    are. Where not even that fits, every row is shown as a list.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Text]]
    right: Sequence[str] = ()
    cut: Sequence[str] = ()
    fill: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw it as wide as there is room; where no table fits, every row as a list."""
        parts = self._parts(options.max_width)
        if parts is None:
            for number, row in enumerate(row for row in self.rows if row):
                if number:
                    yield Text("")
                yield Text(row[0].plain, "bold")
                for head, value in zip(self.heads[1:], row[1:], strict=True):
                    if value.plain.strip():
                        said = Text.assemble((f"{head.replace('_', ' ')}: " if head else "", "dim"), value)
                        yield Padding(said, (0, 0, 0, 2))
            return
        for number, places in enumerate(parts):
            if number:
                yield Text("")
            yield self._table(places, options.max_width)

    def _parts(self, room: int) -> list[list[int]] | None:
        """The columns of each table; ``None`` where no table fits."""
        least = [self._width(place, least=True) + _GAP for place in range(len(self.heads))]
        # one character is left free at the right edge
        room += _GAP - 1
        n_labels = next((place for place, head in enumerate(self.heads) if head in self.right), len(self.heads))
        labels, numbers = list(range(n_labels)), range(n_labels, len(self.heads))
        if sum(least) <= room:
            return [[*labels, *numbers]]
        if not labels or any(self.heads[place] not in self.right for place in numbers):
            return None
        width = sum(least[:n_labels])
        if width + max((least[place] for place in numbers), default=room) > room:
            return None
        parts = [list(labels)]
        for place in numbers:
            if sum(least[other] for other in parts[-1]) + least[place] > room:
                parts.append(list(labels))
            parts[-1].append(place)
        return parts

    def _width(self, place: int, *, least: bool) -> int:
        """Characters of the widest cell of a column, or word of its head; or what it takes at least."""
        head, cells = self.heads[place], [row[place] for row in self.rows if row]
        words = [len(word) for word in head.replace("_", " ").split()]
        whole = max([cell.cell_len for cell in cells] + words, default=1)
        if least and head in self.cut:
            return min(whole, max(SHORTEST, *words, 1))
        if least and head in self.fill:
            words += [len(word) for cell in cells for word in cell.plain.split()]
            return min(whole, max(words, default=1), _LONGEST_WORD)
        return whole

    def _table(self, places: Sequence[int], room: int) -> Table:
        """Some of the columns as a table: what is free goes to those that want it, in equal shares."""
        widths = {place: self._width(place, least=True) for place in places}
        wanted = {place: self._width(place, least=False) - width for place, width in widths.items()}
        free = room + _GAP - 1 - sum(widths.values()) - _GAP * len(places)
        for number, place in enumerate(sorted(places, key=lambda place: wanted[place])):
            more = min(wanted[place], free // (len(places) - number))
            widths[place] += more
            free -= more
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for place in places:
            head = self.heads[place]
            side: Any = "right" if head in self.right else "left"
            table.add_column(head.replace("_", " "), justify=side, no_wrap=head in self.cut, width=widths[place])
        for row in self.rows:
            if row:
                table.add_row(*(row[place] for place in places))
            else:
                table.add_section()
        return table


def console() -> Console:
    """Return the console for standard output: a terminal as it is, otherwise 80 columns without colours."""
    if sys.stdout.isatty():
        return Console(highlight=False, emoji=False)
    return Console(file=_Trimmed(), width=80, highlight=False, emoji=False, no_color=True)


class _Trimmed(io.StringIO):
    """Standard output for text whose lines should not end in spaces."""

    def write(self, text: str) -> int:
        """Write to standard output."""
        return sys.stdout.write(re.sub(r" +$", "", text, flags=re.MULTILINE))

    def flush(self) -> None:
        """Flush standard output."""
        sys.stdout.flush()


def cell(value: Any) -> Text:
    """Return a value as it is shown: numbers with three decimals, or the digits asked for, long text cut."""
    if value is None:
        return Text("")
    if isinstance(value, float):
        return Text(_number(value, 3))
    if isinstance(value, int):
        return Text(f"{value:,}")
    text = one_line(str(value)[: 4 * LONGEST])
    return Text(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def _number(value: float, decimals: int) -> str:
    """A number with some decimals, a large whole one without; as it is where :func:`_with_digits` rounded it."""
    if DIGITS.get() is not None:
        return str(value).removesuffix(".0")
    whole = value == round(value) and 10 <= abs(value) < 1e6
    # + 0.0 makes 0 of -0
    return f"{value:.0f}" if whole else f"{round(value, decimals) + 0.0:.{decimals}f}"


def _with_digits(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with as many significant digits as were asked for, if any were."""
    return frame if DIGITS.get() is None else frame.with_columns(round_floats(frame.schema))


def show_frame(
    frame: pl.DataFrame, *, bold: str, cut: Sequence[str] = (), fill: Sequence[str] = (), rows: int = MOST_ROWS
) -> None:
    """Show the first rows of a frame; ``bold`` names the column that matters, ``cut`` and ``fill`` as in `Grid`."""
    numbers = [name for name, dtype in frame.schema.items() if dtype.is_numeric()]
    cells = []
    for row in _with_digits(frame).head(rows).iter_rows(named=True):
        shown = {name: Text(one_line(value)) if name in fill else cell(value) for name, value in row.items()}
        shown[bold].stylize("bold")
        cells.append(list(shown.values()))
    page = console()
    page.print(Grid(heads=frame.columns, rows=cells, right=numbers, cut=cut, fill=fill))
    _say_how_many_more(page, len(frame) - rows, "row")


def show_ranking(
    consensus: Consensus, level: float, *, item: str = "item", ratings: pl.DataFrame | None = None
) -> None:
    """Show the best items of each query, with intervals where the method gives them; ``item`` heads their column.

    Ratings, where they are given, take the place of scores.
    """
    import polars as pl

    from ..io.results import consensus_table

    page = console()
    frame = consensus_table(consensus, None if consensus.uncertainty is None else level, ratings)
    rated = "rating" in frame.columns
    if rated:
        frame = frame.drop("score", "lower", "upper", strict=False)
        frame = frame.rename({"rating": "score", "rating_lower": "lower", "rating_upper": "upper"}, strict=False)
        frame = frame.with_columns(pl.col("^(score|lower|upper)$").round(0).cast(pl.Int64))
    shown = _with_digits(frame)
    if "query" in frame.columns:
        # the best few of each of the first queries
        each = max(3, MOST_ROWS // frame["query"].n_unique())
        shown = shown.group_by("query", maintain_order=True).head(each).head(MOST_ROWS // each * each)
    shown = shown.head(MOST_ROWS)
    names = ("query", "rank", "item", "score", "tier", "grade", "confidence")
    plain = [name for name in names if name in frame.columns]
    heads = [{"item": item, "score": "rating" if rated else "score"}.get(name, name) for name in plain]
    heads += [f"{100 * level:g} % interval", "ranks"] if "lower" in frame.columns else []
    cells = []
    for row in shown.iter_rows(named=True):
        cells.append([cell(row[name]) for name in plain])
        if "lower" in row:
            ends = [f"{end:,d}" if isinstance(end, int) else _number(end, 2) for end in (row["lower"], row["upper"])]
            ranks = dict.fromkeys((row["rank_lower"], row["rank_upper"]))
            cells[-1] += [Text(" to ".join(ends), justify="right"), Text(" – ".join(map(str, ranks)))]
    heads, cells = _fitting(page, heads, cells, ("query", "rank", item, "score", "rating"), ("query", item))
    if "ranks" in heads:
        # a picture of each interval at the end of its row, as wide as there is room for
        used = sum(2 + max(map(len, [*column, *head.split()])) for head, *column in zip(heads, *cells, strict=True))
        width = min(_WIDEST, page.width - used - 1)
        low, high = min(shown["lower"].to_list(), default=0.0), max(shown["upper"].to_list(), default=0.0)
        step = (width - 1) / (high - low) if high > low else 0.0
        for drawn, row in zip(cells, shown.iter_rows(named=True), strict=True):
            left, middle, right = (round((row[name] - low) * step) for name in ("lower", "score", "upper"))
            line = " " * left + "─" * (right - left + 1) + " " * (width - right - 1)
            picture = Text.assemble((line[:middle], "cyan"), ("●", "bold cyan"), (line[middle + 1 :], "cyan"))
            drawn.append(picture if width >= _NARROWEST else Text(""))
        heads = [*heads, ""]
    if "query" in plain:
        # a gap before each query, whose name then stands once
        spaced: list[list[Text]] = []
        for _, of_query in itertools.groupby(cells, key=lambda row: row[0].plain):
            first, *rest = of_query
            spaced += [*([[]] if spaced else []), first, *([Text(""), *row[1:]] for row in rest)]
        cells = spaced
    numbers = ("rank", "score", "rating", "tier", "confidence")
    page.print(Grid(heads=heads, rows=cells, right=numbers, cut=("query", item)))
    _say_how_many_more(page, len(frame) - len(shown), "item")


def _fitting(
    page: Console, heads: list[str], rows: list[list[Text]], needed: Sequence[str], cut: Sequence[str]
) -> tuple[list[str], list[list[Text]]]:
    """The columns that there is room for, the last left out first; those needed stay, if need be beyond the edge."""
    widths = []
    for place, name in enumerate(heads):
        # a head may run over several lines, and the name of an item or query may be cut
        width = max((row[place].cell_len for row in rows), default=0)
        width = min(width, SHORTEST) if name in cut else width
        widths.append(1 + max(width, *map(len, name.split())))
    kept = list(range(len(heads)))
    for place in reversed(range(len(heads))):
        if sum(widths[other] for other in kept) > page.width and heads[place] not in needed:
            kept.remove(place)
    page.width = max(page.width, sum(widths[place] + 2 for place in kept))
    return [heads[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _say_how_many_more(page: Console, number: int, word: str) -> None:
    """Say how much is not shown."""
    if number > 0:
        page.print(f"[dim]and {counted(number, f'more {word}')}; --out FILE writes all of them[/dim]")
