"""Tables for people: the ranking with its intervals, annotators, and any other frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .talk import one_line
from .words import count

if TYPE_CHECKING:
    import polars as pl

    from ..data.consensus import Consensus

MOST_ROWS = 20
STRIP = 25
"""Characters that the picture of an interval is wide."""
LONGEST = 40
LEVEL = 0.95


def console() -> Console:
    """Return the console for standard output: no colours and no more than 80 columns unless it is a terminal."""
    return Console(highlight=False, emoji=False)


def grid(*columns: str, right: Sequence[str] = ()) -> Table:
    """Return an empty table with these column heads, some of them for numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=True)
    return table


def cell(value: Any) -> Text:
    """Return a value as it is shown: numbers with three decimals, long text cut."""
    if value is None:
        return Text("")
    if isinstance(value, float):
        whole = value == round(value) and abs(value) < 1e6
        return Text(f"{value:.0f}" if whole and abs(value) >= 10 else f"{value:.3f}")
    if isinstance(value, int):
        return Text(f"{value:,}")
    text = one_line(str(value)[: 4 * LONGEST])
    return Text(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def show_frame(frame: pl.DataFrame, *, bold: str | None = None) -> None:
    """Show the first rows of a frame; ``bold`` names the column that matters."""
    numbers = [name for name, dtype in frame.schema.items() if dtype.is_numeric()]
    table = grid(*frame.columns, right=numbers)
    for row in frame.head(MOST_ROWS).iter_rows(named=True):
        cells = {name: cell(value) for name, value in row.items()}
        if bold is not None:
            cells[bold].stylize("bold")
        table.add_row(*cells.values())
    out = console()
    out.print(table)
    _more(out, len(frame) - MOST_ROWS, "row")


def show_ranking(consensus: Consensus, level: float | None, *, item: str = "item", rows: int = MOST_ROWS) -> None:
    """Show the best items of each query, with intervals where the method gives them."""
    known = consensus.uncertainty is not None
    level = (level or LEVEL) if known else None
    frame = consensus.frame() if level is None else consensus.frame().hstack(_bounds(consensus, level))
    shown = _best(frame, rows)
    columns = ["query"] * ("query" in frame.columns) + ["rank", item, "score"]
    columns += ["grade"] * ("grade" in frame.columns) + ["confidence"] * ("confidence" in frame.columns)
    if level is not None:
        columns += [f"{level:.0%} interval".replace("%", " %"), "ranks"]
    table = grid(*columns, right=("rank", "score", "confidence"))
    low, high = _range(shown) if level is not None else (0.0, 0.0)
    former = None
    for row in shown.iter_rows(named=True):
        if former is not None and row.get("query") != former:
            table.add_section()
        cells = [cell(row[name if name != item else "item"]) for name in columns if name in row or name == item]
        if level is not None:
            cells += [_strip(row, low, high), Text(_span(row["rank_lower"], row["rank_upper"]))]
        table.add_row(*cells)
        former = row.get("query")
    out = console()
    out.print(table)
    _more(out, len(frame) - len(shown), "item")


def _bounds(consensus: Consensus, level: float) -> pl.DataFrame:
    """Bounds of scores and ranks, in the order of the table."""
    return consensus.intervals(level).select("lower", "upper", "rank_lower", "rank_upper")


def _best(frame: pl.DataFrame, rows: int) -> pl.DataFrame:
    """The best items: of one query, or the best few of each of the first queries."""
    if "query" not in frame.columns:
        return frame.head(rows)
    each = max(3, rows // frame["query"].n_unique())
    return frame.group_by("query", maintain_order=True).head(each).head(rows)


def _range(frame: pl.DataFrame) -> tuple[float, float]:
    """Least and largest bound that is shown."""
    low, high = frame["lower"].min(), frame["upper"].max()
    assert isinstance(low, float)
    assert isinstance(high, float)
    return low, high


def _strip(row: dict[str, Any], low: float, high: float) -> Text:
    """A picture of a score between its bounds."""
    step = (STRIP - 1) / (high - low) if high > low else 0.0
    left, middle, right = (round((row[name] - low) * step) for name in ("lower", "score", "upper"))
    text = Text(" " * left + "─" * (right - left + 1) + " " * (STRIP - right - 1), style="cyan")
    return Text.assemble(text[:middle], ("●", "bold cyan"), text[middle + 1 :])


def _span(low: int, high: int) -> str:
    """Ranks from low to high."""
    return str(low) if low == high else f"{low} – {high}"


def _more(out: Console, number: int, word: str) -> None:
    """Say how much is not shown."""
    if number > 0:
        out.print(f"[dim]and {count(number, f'more {word}')}; --out FILE writes all of them[/dim]")
