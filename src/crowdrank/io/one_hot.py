"""Winners in a column of yes and no for each side, as ``winner_model_a, winner_model_b, winner_tie``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from ..data.column_names import key_of
from ..data.guessing import side_columns
from ..errors import JudgmentError
from ..wording import either

_FORMS = ("winner_{}", "{}_wins", "{}_win", "{}_won", "{}_winner", "{}_is_better", "{}_better", "prefer_{}", "chose_{}")
_ENDS = {"left": ("left", "a", "1", "model_a", "model_1"), "right": ("right", "b", "2", "model_b", "model_2")}
_TIES = ("tie", "ties", "tied", "draw", "is_tie", "winner_tie", "equal", "same")
_YES, _NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")
_NAME = "the column with a 1"


def with_winner(table: pl.DataFrame, columns: Mapping[str, str]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the table with a winner column made of one for each side, where it has such.

    Examples
    --------
    >>> table = pl.DataFrame({"left": ["x", "y"], "right": ["y", "z"], "left_wins": [1, 0], "right_wins": [0, 1]})
    >>> made, columns = with_winner(table, {})
    >>> made[columns["winner"]].to_list()
    ['left', 'right']
    """
    sides = side_columns(table, columns)
    if "winner" in columns or sides is None:
        return table, dict(columns)
    free = {key_of(name): name for name in reversed(table.columns) if name not in sides}
    flags = {}
    for side, column in zip(("left", "right"), sides, strict=True):
        named = [form.format(end) for end in (key_of(column), *_ENDS[side]) for form in _FORMS]
        flags[side] = next((free[name] for name in named if name in free), None)
    left, right = flags["left"], flags["right"]
    if left is None or right is None:
        return table, dict(columns)
    tie = next((free[name] for name in _TIES if name in free and _is_truth(table[free[name]])), None)
    names = [left, right, *([tie] if tie is not None else [])]
    if not all(_is_truth(table[name]) for name in names):
        return table, dict(columns)
    yes = np.column_stack([_truths(table[name]) for name in names])
    wrong = np.flatnonzero(yes.sum(axis=1) != 1)
    if len(wrong):
        row = int(wrong[0])
        said = "none" if not yes[row].any() else "several"
        raise JudgmentError(
            f"{said} of {either(map(repr, names), 'and')} is 1 in row {row + 1}, so it is not clear who won "
            f"({len(wrong)} such rows); correct them"
        )
    words = pl.Series(_NAME, ["left", "right", "tie"]).gather(yes.argmax(axis=1))
    return table.with_columns(words), {**columns, "winner": _NAME}


def _texts(cells: pl.Series) -> pl.Series:
    """Cells as lower-case text."""
    return cells.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase().fill_null("")


def _is_truth(cells: pl.Series) -> bool:
    """Whether all cells are yes or no."""
    return not cells.dtype.is_nested() and bool(_texts(cells).is_in([*_YES, *_NO]).all())


def _truths(cells: pl.Series) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each cell says yes."""
    return _texts(cells).is_in(list(_YES)).to_numpy()
