"""AlpacaEval: annotations of pairs of outputs, with a choice or the probability of one."""

from __future__ import annotations

from typing import Any

from ...errors import JudgmentError
from ...wording import counted
from ..read_options import ReadOptions
from ..sources import Source
from .answer_style import style_cells
from .cells import as_number, as_text
from .imported import Collector, Imported
from .streaming import records

_TITLE = "AlpacaEval annotations (generator_1, generator_2, preference)"
_SMALLEST_SHARE = 1e-9
"""A judge is no surer than this; a smaller share is what rounding leaves of none."""

_MANY_VALUES = 3
"""Different preferences from which on they are no codes of two answers."""

_MOST_OUTSIDE = 0.1
"""Share of annotations with another number from which on the column is not AlpacaEval's."""

_OUTSIDE = "with a preference outside 1 to 2"

_FIELDS = ("instruction", "input", "generator_1", "generator_2", "annotator", "annotator_index", "preference")


def read(source: Source, options: ReadOptions) -> Imported:
    """Return a preference for each annotation; a probability becomes two rows whose weights add up to 1."""
    rows = Collector(source, options, unit="annotation")
    fields = [*_FIELDS, *(path.split(".")[0] for path in (*options.columns.values(), *options.where))]
    fields += ["output_1", "output_2"] if options.covariates else []
    judgment, values = 0, set[float]()
    for number, record in enumerate(records(source, fields), 1):
        if not rows.is_wanted(record):
            continue
        rows.n_read += 1
        preference = as_number(record.get("preference"))
        values |= {preference} if preference is not None and len(values) < _MANY_VALUES else set()
        judgment += _add_annotation(rows, record, number, preference, judgment)
    _expect_shares(rows, values)
    rows.roles |= {
        "left": "generator_1", "right": "generator_2", "winner": "preference", "query": "instruction",
        "share": "preference - 1 for generator_2", "annotator": "annotator",
    }  # fmt: skip
    rows.notes.append(
        "outputs were shown in random order but stored in a fixed one, so a bias of the judge towards a side cannot "
        "be measured"
    )
    return rows.finish("preference", title=_TITLE, recorded=True)


def _add_annotation(rows: Collector, record: Any, number: int, preference: float | None, judgment: int) -> bool:
    """Add an annotation as one or two rows of this judgment; return whether it could be used."""
    # 0 is a draw in files of the first versions, 1.5 in later ones
    share = 0.5 if preference == 0 else None if preference is None else preference - 1
    if share is None or not 0 <= share <= 1:
        rows.drop("no preference" if preference is None else _OUTSIDE)
        return False
    left, right = as_text(record.get("generator_1")), as_text(record.get("generator_2"))
    if left == right or left is None or right is None:
        rows.drop("without two different generators")
        return False
    asked = [text for name in ("instruction", "input") if (text := as_text(record.get(name)))]
    cells = {
        "query": "\n".join(asked) or str(number),
        "left": left,
        "right": right,
        "annotator": as_text(record.get("annotator")) or as_text(record.get("annotator_index")),
        **style_cells(rows.options, record, ("1", "2"), (record.get("output_1"), record.get("output_2"))),
    }
    outcomes = [("tie", 1.0)] if share == 0.5 else [("left", 1 - share), ("right", share)]
    for winner, weight in outcomes:
        if weight > _SMALLEST_SHARE:
            rows.add(record, winner=winner, weight=weight, judgment=judgment, **cells)
    return True


def _expect_shares(rows: Collector, values: set[float]) -> None:
    """Refuse a column of preferences that AlpacaEval does not write: outside 1 to 2, or codes 0 and 1."""
    outside = rows.dropped[_OUTSIDE]
    if outside > _MOST_OUTSIDE * rows.n_read:
        raise JudgmentError(
            f"'preference' is outside 1 to 2 in {outside:,} of {counted(rows.n_read, 'annotation')}, which AlpacaEval "
            "does not write; if it grades how much one is better, give it as a signed column: --from table --column "
            "left=generator_1,right=generator_2,query=instruction --strength preference=right"
        )
    if values == {0.0, 1.0}:
        raise JudgmentError(
            "'preference' holds 0 and 1 and never 2, which AlpacaEval does not write; if 1 means that generator_2 is "
            "better: --from table --column left=generator_1,right=generator_2,winner=preference,query=instruction "
            "--winner-codes 0=left,1=right"
        )
