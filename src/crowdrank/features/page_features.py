"""The columns of web pages: from source or from the screen, never mixed in one table."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from ..data.features import Extractor
from ..data.judgments import Rankings
from ..errors import DataWarning, JudgmentError, MissingExtraError, ParameterError
from ..io.notices import say
from ..protocols import Bools, Floats
from ..wording import counted, first_few, one_of
from .page_source import MAX_FILE_BYTES, read_page, site_of
from .raw_items import Made, Measure, RawItem, RawItems, Run, each_item, measure_rows

VERSION = 1
_PAGES_PER_CHUNK = 8
EIGHT = ("texts", "links", "fonts", "font_size", "tables", "colours", "images", "aspect")
SCREEN = ("edge_share", "screen_colours")
_BESIDES = ("pixel_sd", "picture")
"""What is measured with the clutter of a page: the spread of its pixels, and a number that equal pictures share."""

N_MEASURES = 3
DETAILS = ("missing_css", "unstable")
"""What is kept of a page besides its columns: how many style sheets its folder lacks, and if its height changed."""

_SENTENCES = (
    "link to style sheets that are not in their folder and are measured without them (missing_css)",
    "changed in height while they were read, so they were measured at one moment (unstable)",
)
"""What is said of pages with such details."""


def screen_mode(screen: str) -> str:
    """Return ``"screen"`` or ``"source"`` for what was asked; ``auto`` takes the browser where there is one."""
    one_of(screen, ("auto", "yes", "no"), "screen", of_verb=True)
    if screen == "no":
        return "source"
    from .page_rendering import rendering_problem

    problem = rendering_problem()
    if problem is None:
        return "screen"
    if screen == "yes":
        raise MissingExtraError(problem)
    say(f"columns are counted in the source: {problem}")
    return "source"


def columns_of(params: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the columns."""
    if params["mode"] == "source":
        return EIGHT
    return (*EIGHT, *(f"first_{name}" for name in EIGHT if params["first"] and name != "aspect"), *SCREEN)


def make(items: RawItems, params: Mapping[str, Any], fitted: Extractor | None, run: Run) -> Made:
    """Return the columns of pages, and their clutter where ``params`` ask for it; nothing is fitted to them."""
    one_of(params["mode"], ("source", "screen"), "mode")
    try:
        import selectolax.lexbor  # noqa: F401
    except ImportError:
        raise MissingExtraError("pages are parsed by the package selectolax; install crowdrank[pages]") from None
    if params["mode"] == "screen":
        screen_mode("yes")
    elif params["first"]:
        raise ParameterError("only a browser knows the first screen; leave first out, or give screen='yes'")
    names = columns_of(params)
    measured = bool(params.get("measures")) and fitted is None
    keyed = {"mode": params["mode"], "first": params["first"], "measures": measured}
    n_columns = len(names) + (N_MEASURES + len(_BESIDES) if measured else 0) + len(DETAILS)
    measure = Measure("page", VERSION, keyed, measure_pages, n_columns, _PAGES_PER_CHUNK, _content)
    items, matrix = measure_rows(measure, items, run, "pages")
    details = matrix[:, -len(DETAILS) :]
    for place, sentence in enumerate(_SENTENCES):
        rows = np.flatnonzero(details[:, place] > 0)
        if len(rows):
            those = first_few([items.raw[row].name for row in rows])
            say(f"{len(rows):,} of {counted(len(details), 'page')} {sentence}: {those}")
    table = items.items.frame().hstack(pl.DataFrame(details, schema=DETAILS).fill_nan(None).cast(pl.Int64))
    measures = matrix[:, len(names) : -len(DETAILS)] if measured else None
    return Made(items, matrix[:, : len(names)], names, measures=measures, details=table)


def measure_pages(raws: Sequence[RawItem], params: Mapping[str, Any]) -> Iterator[Floats | str]:
    """Yield the columns of each page, or why there are none."""
    from .page_source import count_missing_sheets, count_source

    if params["mode"] == "source":
        yield from each_item(lambda raw: [*count_source(raw).columns(), count_missing_sheets(raw), math.nan], raws)
        return
    from . import page_clutter
    from .page_rendering import render_pages

    for raw, rendered in zip(raws, render_pages(raws), strict=True):
        if isinstance(rendered, str):
            yield rendered
            continue
        picture = page_clutter.reduced_screen(rendered.screenshot)
        values = page_clutter.counted_columns(rendered, "whole")
        if params["first"]:
            values += page_clutter.counted_columns(rendered, "first")[:-1]
        values += page_clutter.screen_numbers(picture)
        if params["measures"]:
            values += [getattr(page_clutter, measure)(picture) for measure in page_clutter.MEASURES]
            digest = int.from_bytes(hashlib.sha256(picture.tobytes()).digest()[:6], "big")
            values += [float(picture.std()), float(digest)]
        yield np.array([*values, float(count_missing_sheets(raw)), float(rendered.unstable)])


def _content(raw: RawItem) -> bytes:
    """What the columns of a page depend on: its source and the style sheets in its folder."""
    from selectolax.lexbor import LexborHTMLParser

    from .page_source import sheets_of

    data = read_page(raw)
    sheets = sheets_of(LexborHTMLParser(data), site_of(raw))
    return b"\0".join([data, *(sheet.encode("utf-8", "replace")[:MAX_FILE_BYTES] for sheet in sheets)])


_BLANK_SPREAD = 3.0
"""Standard deviation of the pixels up to which a page shows nothing."""


def clutter_rankings(items: RawItems, measured: Floats) -> Rankings:
    """Return a ranking of the pages of each query by each measure, the least cluttered first.

    ``measured`` has a row per page: the measures, the spread of the pixels, and a number that equal pictures share.
    """
    from .page_clutter import MEASURES

    keep = worth_ranking(items, measured)
    if keep.sum() < 2:
        raise JudgmentError("fewer than two pages show something, so there is nothing to rank; give more pages")
    ids = items.items.frame()
    frame = ids.hstack(pl.DataFrame(measured[:, :N_MEASURES], schema=MEASURES))
    long = frame.filter(keep).unpivot(MEASURES, index=ids.columns, variable_name="annotator", value_name="clutter")
    groups = [name for name in ("query", "annotator") if name in long.columns]
    ranked = long.with_columns(rank=pl.col("clutter").rank("min").over(groups).cast(pl.Int64)).drop("clutter")
    return Rankings.from_frame(ranked)


def worth_ranking(items: RawItems, measured: Floats) -> Bools:
    """Return which pages are neither blank nor look like an earlier one."""
    blank = measured[:, N_MEASURES] <= _BLANK_SPREAD
    _, first = np.unique(measured[:, N_MEASURES + 1], return_index=True)
    repeated = ~np.isin(np.arange(len(measured)), first) & ~blank
    for which, what in ((blank, "show nothing"), (repeated, "look like another page")):
        if which.any():
            names = first_few([items.raw[row].name for row in np.flatnonzero(which)])
            text = f"{int(which.sum()):,} of {len(measured):,} pages {what} and are not ranked: {names}"
            warnings.warn(text, DataWarning, stacklevel=4)
    return ~blank & ~repeated
