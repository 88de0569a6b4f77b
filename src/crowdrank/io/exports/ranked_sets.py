"""Sets with a rank for each item, as in WMT's human evaluation: system1Id, system1rank, system2Id and so on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ...data.column_names import LISTED, key_of, name_points, person_column
from ...errors import JudgmentError
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_number
from .crowd_tables import chosen_rows
from .imported import Collector, Imported
from .set_columns import ranked_columns
from .streaming import text_table

_TITLE = "sets with a rank for each item (system1Id, system1rank, ...)"
_SEGMENT = ("src_index", "segment_id")
_LANGUAGES = ("srclang", "trglang")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the ranking of each row; ranks below 1 mean that an item was not ranked."""
    rows = Collector(source, options, unit="set")
    frame = chosen_rows(rows, text_table(source))
    pairs = ranked_columns(frame.columns)
    if not pairs:
        raise JudgmentError("no columns are called like system1Id and system1rank; write one row per item and rank")
    who = None if "annotator" in options.columns else person_column(frame.columns)
    context = [] if "query" in options.columns else _context(frame)
    for number, record in enumerate(frame.iter_rows(named=True), 1):
        ranks = _ranks(record, pairs)
        if ranks is None:
            rows.drop("with an item twice")
        elif len(ranks) < 2:
            rows.drop("with fewer than two ranks")
        else:
            cells = {"annotator": record[who]} if who else {}
            if context:
                cells["query"] = " ".join(record[name] or "" for name in context)
            for item, rank in ranks.items():
                rows.add(record, item=item, rank=rank, ranking=str(number), **cells)
    rows.roles |= {"item": f"{pairs[0][0]}, ...", "rank": f"{pairs[0][1]}, ...", "annotator": who or ""}
    rows.roles["query"] = ", ".join(context)
    return rows.finish("ranking", title=_TITLE)


def _context(frame: pl.DataFrame) -> list[str]:
    """The columns that say what the items of a row answer: the segment and the languages, or a query."""
    keys = {key_of(name): name for name in reversed(frame.columns)}
    segment = next((keys[key] for key in _SEGMENT if key in keys), None)
    if segment is None:
        return [name for name in frame.columns if name_points("query", name) >= LISTED][:1]
    return [*(keys[key] for key in _LANGUAGES if key in keys and frame[keys[key]].n_unique() > 1), segment]


def _ranks(record: Mapping[str, str | None], pairs: Sequence[tuple[str, str]]) -> dict[str, float] | None:
    """Rank of each item that has one; ``None`` where an item stands in the row twice."""
    given = [(record[item], as_number(record[rank])) for item, rank in pairs]
    ranked = [(item, rank) for item, rank in given if item is not None and rank is not None and rank >= 1]
    ranks = dict(ranked)
    return ranks if len(ranks) == len(ranked) else None
