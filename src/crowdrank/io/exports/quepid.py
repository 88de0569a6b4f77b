"""Quepid: ratings of a case as CSV (query, docid, rating), or in the RRE form that Quepid writes too."""

from __future__ import annotations

import csv
import io

from ..read_options import ReadOptions
from ..sources import Source
from .imported import Collector, Imported

_TITLE = "Quepid ratings (query, docid, rating; as Quepid 7.15 writes them)"


def read(source: Source, options: ReadOptions) -> Imported:
    """Return a grade for each rating; a query without ratings stands alone in its row and is left out."""
    rows = Collector(source, options, unit="rating")
    table = csv.reader(io.StringIO(source.text()))
    header = [name.strip().lower() for name in next(table)]
    for cells in table:
        if not any(cell.strip() for cell in cells):
            continue
        record = dict(zip(header, (cell.strip() for cell in cells), strict=False))
        if not rows.is_wanted(record):
            continue
        rows.n_read += 1
        if not record.get("docid") or not record.get("rating"):
            rows.drop("without a rated item")
            continue
        rows.add(record, query=record.get("query"), item=record["docid"], grade=record["rating"])
    rows.roles |= {"query": "query", "item": "docid", "grade": "rating"}
    return rows.finish("grade", title=_TITLE)
