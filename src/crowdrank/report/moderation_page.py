"""One page for a moderation meeting, in teachers' words: the scale, its reliability, judges and pairs to discuss."""

from __future__ import annotations

from typing import Any

import polars as pl

from ..api.moderation import Moderation
from ..data.files import PathLike
from ..io.output import write_text
from .drawing import CAPTIONS
from .page import origin, render_template

_MOST_ROWS = 100
"""Scripts on the page; the workbook has all."""


def write_moderation(found: Moderation, path: PathLike, *, title: str = "Comparative judgement") -> None:
    """Write the page for any browser, which prints on one or two sheets of paper.

    Examples
    --------
    >>> import crowdrank as cr, tempfile, pathlib
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "y", "z", "y"), ("ann", "q", "x", "z", "x")]
    >>> page = pathlib.Path(tempfile.mkdtemp(), "meeting.html")
    >>> write_moderation(cr.moderate(cr.Preferences.from_rows(rows)), page, title="Year 6 writing")
    >>> "Year 6 writing" in page.read_text(encoding="utf-8")
    True
    """
    scripts, judges = found.scripts, found.judges
    shown = ["rank", "script", "score", "std_error", "rank_lower", "rank_upper", "judgements", "infit", "grade"]
    shown += [name for name in scripts.columns if name.startswith("P(")]
    of_judges = ["judge", "judgements", "with_the_scale", "infit", "infit_lower", "infit_upper", "outfit", "chose_left"]
    drawn = _scale(scripts.head(_MOST_ROWS)) if "lower" in scripts.columns else []
    page = render_template(
        "moderation.html.j2", title=title, figures=_figures(found), steps=found.steps, origin=dict(origin()),
        drawn=drawn, scripts=_cells(scripts, shown, _MOST_ROWS), n_scripts=len(scripts), most=_MOST_ROWS,
        judges=_cells(judges, [*of_judges, "median_seconds"], 40),
        misfits=_cells(found.misfits, ["left", "right", "judge", "better", "probability"], 12),
        boundaries=None if found.boundaries is None else _cells(found.boundaries, found.boundaries.columns, 12),
        cohorts=None if found.cohorts is None else _cells(found.cohorts, found.cohorts.columns, 12),
        adaptive=found.reliability["adaptive"], split_by=found.reliability["split_by"],
    )  # fmt: skip
    write_text(page, path)


def _figures(found: Moderation) -> list[tuple[str, str]]:
    """The numbers on top."""
    of = found.reliability

    def bounds(name: str) -> str:
        if of[name] is None:
            return "not known"
        return f"{of[name]:.2f} ({of[f'{name}_lower']:.2f} to {of[f'{name}_upper']:.2f})"

    index = "not known" if of["separation_index"] is None else f"{of['separation_index']:.1f}"
    figures = {name: f"{len(getattr(found, name)):,}" for name in ("scripts", "judges", "judgements")}
    figures |= {"reliability": bounds("adjusted"), "split-half reliability": bounds("split_half")}
    figures |= {"scale separation reliability": bounds("separation"), "separation index": index}
    return list(figures.items())


def _cells(table: pl.DataFrame, names: list[str], most: int) -> dict[str, Any]:
    """Titles and texts of the columns that a table has."""
    kept = [name for name in names if name in table.columns]
    rows = [
        ["" if cell is None else f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row]
        for row in table.select(kept).head(most).iter_rows()
    ]
    numbers = [table.schema[name].is_numeric() for name in kept]
    return {"titles": [CAPTIONS["moderation"].get(name, name) for name in kept], "rows": rows, "numbers": numbers}


def _scale(scripts: pl.DataFrame) -> list[dict[str, Any]]:
    """Where each script and its interval lie, in per cent of the width."""
    low, high = float(scripts["lower"].min()), float(scripts["upper"].max())  # type: ignore[arg-type]
    width = (high - low) or 1.0
    rows = scripts.select("score", "lower", "upper").iter_rows()
    return [
        dict(zip(("at", "from", "to"), (100 * (value - low) / width for value in row), strict=True)) for row in rows
    ]
