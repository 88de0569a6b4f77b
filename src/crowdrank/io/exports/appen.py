"""Appen, once CrowdFlower and Figure Eight: the full report with a row for each judgment."""

from __future__ import annotations

import polars as pl

from ...data.column_names import FOREIGN, plain_name
from ...errors import JudgmentError
from ...wording import first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_seconds, as_truth
from .crowd_tables import add_answers, chosen_rows
from .imported import Collector, Imported
from .streaming import text_table

_TITLE = "an Appen full report (_unit_id, _worker_id)"
_UNIT = "_unit_id"


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the judgments of trusted contributors; gold answers are the truth."""
    frame = text_table(source)
    if _UNIT not in frame.columns:
        raise JudgmentError(f"there is no column {_UNIT}; give the full report as Appen wrote it")
    if "_worker_id" not in frame.columns:
        raise JudgmentError(
            "this is Appen's aggregated report, one row per unit; download the full report, one row per judgment"
        )
    rows = Collector(source, options, unit="row")
    frame = chosen_rows(rows, frame)
    if "_tainted" in frame.columns:
        tainted = pl.Series([bool(as_truth(value)) for value in frame["_tainted"].to_list()], dtype=pl.Boolean)
        if not options.keep or "tainted" not in options.keep:
            rows.dropped.update({"tainted": int(tainted.sum())} if tainted.any() else {})
            frame = frame.filter(~tainted)
    answer = _answer(frame, options.answer)
    named = _named_item(frame, answer)
    cells = {"annotator": "_worker_id", "time": "_created_at", "duration": "seconds from _started_at to _created_at"}
    frame = frame.with_columns(_durations(frame))
    inputs = {
        name: name for name in frame.columns if not name.startswith("_") and not _is_gold(name) and name != answer
    }
    if "query" in named:
        cells["query"] = named["query"]
    kind = add_answers(
        rows, frame, answer, inputs, cells, item=named.get("item", _UNIT), gold=f"{answer}_gold", may_grade_pairs=True
    )
    return rows.finish(kind, title=_TITLE)


def _answer(frame: pl.DataFrame, wanted: str | None) -> str:
    """The column of answers: the only one that differs within a unit, or of several the one with gold answers."""
    names = [name for name in frame.columns if not name.startswith("_") and not _is_gold(name)]
    if wanted is not None:
        if wanted not in names:
            raise JudgmentError(f"there is no column {wanted!r}; there are {first_few(map(repr, names), shown=20)}")
        return wanted
    n_units = frame[_UNIT].n_unique()
    varying = [
        n for n in names if frame.select(_UNIT, n).drop_nulls(n).n_unique() > min(n_units, _units_with(frame, n))
    ]
    gold = [name for name in varying or names if f"{name}_gold" in frame.columns]
    if len(varying) == 1 or len(gold) == 1:
        return varying[0] if len(varying) == 1 else gold[0]
    listed = first_few(map(repr, varying or names), shown=20)
    raise JudgmentError(
        f"which column holds the answers? {listed}; choose one with {option('answer', (varying or names or ['x'])[0])}"
    )


def _units_with(frame: pl.DataFrame, name: str) -> int:
    """Number of units with a value in a column."""
    return frame.drop_nulls(name)[_UNIT].n_unique()


def _named_item(frame: pl.DataFrame, answer: str) -> dict[str, str]:
    """Item and query by the names of their columns, where they say the same as the unit."""
    free = {plain_name(name): name for name in reversed(frame.columns) if name != answer and not name.startswith("_")}
    columns: dict[str, str] = {}
    for word in ("item", "query"):
        name = next(
            (free[one] for one in (word, *FOREIGN[word]) if one in free and free[one] not in columns.values()), None
        )
        if name is not None and not frame[name].null_count():
            columns[word] = name
    if "item" not in columns:
        return {}
    same = frame.select(_UNIT, *columns.values()).n_unique() == frame.select(*columns.values()).n_unique()
    return columns if same and frame.select(*columns.values()).n_unique() == frame[_UNIT].n_unique() else {}


def _durations(frame: pl.DataFrame) -> pl.Series:
    """Seconds that each judgment took."""
    name = "seconds from _started_at to _created_at"
    if not {"_started_at", "_created_at"} <= set(frame.columns):
        return pl.Series(name, [None] * frame.height, dtype=pl.Float64)
    times = [(as_seconds(a), as_seconds(b)) for a, b in frame.select("_started_at", "_created_at").iter_rows()]
    return pl.Series(name, [None if a is None or b is None or b < a else b - a for a, b in times], dtype=pl.Float64)


def _is_gold(name: str) -> bool:
    """Whether a column holds known answers, or why they are right."""
    return name.endswith(("_gold", "_gold_reason", "_golden"))
