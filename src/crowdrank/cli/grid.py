"""Tables that fit the terminal: columns get narrower, then stand below each other, and no word is cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

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
        """Draw it as wide as there is room."""
        parts = self._parts(options.max_width)
        if parts is None:
            yield from self._lists()
            return
        for number, places in enumerate(parts):
            if number:
                yield Text("")
            yield self._table(places, self._widths(places, options.max_width))

    def _parts(self, room: int) -> list[list[int]] | None:
        """The columns of each table; ``None`` where no table fits."""
        least = [self._min_width(place) + _GAP for place in range(len(self.heads))]
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

    def _full_width(self, place: int) -> int:
        """Characters of the widest cell of a column, or word of its head."""
        words = self.heads[place].replace("_", " ").split()
        return max([row[place].cell_len for row in self.rows if row] + [len(word) for word in words], default=1)

    def _min_width(self, place: int) -> int:
        """Characters that a column takes at least."""
        head, whole = self.heads[place], self._full_width(place)
        if head in self.cut:
            return min(whole, max(SHORTEST, *map(len, head.replace("_", " ").split()), 1))
        if head not in self.fill:
            return whole
        words = [word for row in self.rows if row for word in row[place].plain.split()]
        longest = max((len(word) for word in [*words, *head.replace("_", " ").split()]), default=1)
        return min(whole, longest, _LONGEST_WORD)

    def _widths(self, places: Sequence[int], room: int) -> list[int]:
        """How wide the columns are: what is free goes to those that want it, in equal shares."""
        widths = {place: self._min_width(place) for place in places}
        free = room + _GAP - 1 - sum(widths.values()) - _GAP * len(places)
        wanting = sorted(places, key=lambda place: self._full_width(place) - widths[place])
        for number, place in enumerate(wanting):
            more = min(self._full_width(place) - widths[place], free // (len(wanting) - number))
            widths[place] += more
            free -= more
        return [widths[place] for place in places]

    def _table(self, places: Sequence[int], widths: Sequence[int]) -> Table:
        """Some of the columns as a table."""
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        for place, width in zip(places, widths, strict=True):
            head = self.heads[place]
            table.add_column(
                head.replace("_", " "),
                justify="right" if head in self.right else "left",
                no_wrap=head in self.cut,
                width=width,
            )
        for row in self.rows:
            if row:
                table.add_row(*(row[place] for place in places))
            else:
                table.add_section()
        return table

    def _lists(self) -> Iterator[RenderableType]:
        """Every row as a list: the first cell, and below it the others with their heads."""
        from rich.padding import Padding

        for number, row in enumerate(row for row in self.rows if row):
            if number:
                yield Text("")
            yield Text(row[0].plain, "bold")
            for head, value in zip(self.heads[1:], row[1:], strict=True):
                if value.plain.strip():
                    said = Text.assemble((f"{head.replace('_', ' ')}: " if head else "", "dim"), value)
                    yield Padding(said, (0, 0, 0, 2))
