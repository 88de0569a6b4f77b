"""Covariates of preferences: what left and right differ in besides being better or worse, such as length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..errors import JudgmentError, ParameterError
from ..protocols import Floats
from ..wording import first_few, one_of

if TYPE_CHECKING:
    from .intake import Rows

TRANSFORMS = ("ratio", "log", "difference", "tanh")
GIVEN = "given"
"""Transform of a covariate that came as one number, left less right, in a unit that is not known."""

MOST_COVARIATES = 20

SELF = "self"
"""Covariate that is 1 where an item is of the annotator's own family."""

_SIDES = ("{}_left {}_right", "{}_a {}_b", "left_{} right_{}", "{}_1 {}_2")


def parse_covariates(names: str | Sequence[str]) -> dict[str, str]:
    """Return the transform of each covariate, from ``"length"`` or ``"length:log"``; empty where none is named.

    Examples
    --------
    >>> parse_covariates(["length", "bold:log"])
    {'length': '', 'bold': 'log'}
    """
    if isinstance(names, str):
        names = [part.strip() for part in names.split(",")]
    transforms: dict[str, str] = {}
    for text in names:
        name, colon, transform = str(text).partition(":")
        if not name:
            raise ParameterError("a covariate has no name; write them as length,bold:log")
        if name in transforms:
            raise ParameterError(f"covariate {name!r} is named twice; name it once")
        if colon:
            one_of(transform, TRANSFORMS, f"transform of {name}")
        transforms[name] = transform
    if len(transforms) > MOST_COVARIATES:
        raise ParameterError(f"{len(transforms)} covariates are too many; name at most {MOST_COVARIATES}")
    return transforms


def covariate_labels(names: Sequence[str], transforms: Sequence[str]) -> tuple[str, ...]:
    """Return names with their transforms, as columns and files have them; what came as one number has none.

    Examples
    --------
    >>> covariate_labels(["length", "margin"], ["log", "given"])
    ('length:log', 'margin')
    """
    pairs = zip(names, transforms, strict=True)
    return tuple(name if transform == GIVEN else f"{name}:{transform}" for name, transform in pairs)


def split_labels(labels: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and the transforms of labels."""
    parts = [label.partition(":") for label in labels]
    return tuple(name for name, _, _ in parts), tuple(transform or GIVEN for _, _, transform in parts)


def read_covariates(
    rows: Rows, table: pl.DataFrame, names: str | Sequence[str]
) -> tuple[Floats, tuple[str, ...], tuple[str, ...]]:
    """Return covariates of the rows of a table, left against right, their names and transforms.

    A covariate ``x`` is in two columns, such as ``x_left`` and ``x_right`` or ``x_a`` and ``x_b``, or in one column
    ``x`` that is left less right already, or ``x:log`` where it is known how it was made. It must change its sign with
    the sides, so it is never centred.
    """
    columns, transforms = [], dict[str, str]()
    for name, transform in parse_covariates(names).items():
        found = _columns_of(table, name)
        if not found and name == SELF:
            # own families may be in the table, or come from one of items later
            continue
        if not found:
            what = f"there is no covariate {name!r}: neither {name}_left and {name}_right nor {name}"
            raise JudgmentError(f"{what}; the columns are {first_few(map(repr, table.columns), shown=40)}")
        numbers = [rows.numbers(column, table[column]) for column in found]
        values = [np.where(np.isfinite(column), column, 0.0) for column in numbers]
        of_column = found[0].partition(":")[2]
        if len(values) == 2:
            transforms[name] = transform or "ratio"
            values = [_transform(rows, name, transforms[name], *values)]
        elif of_column and transform and transform != of_column:
            raise JudgmentError(f"the table has {found[0]!r} and no two columns to make {name}:{transform} of")
        columns += values
        transforms.setdefault(name, transform or of_column or GIVEN)
    both = np.column_stack(columns) if columns else np.zeros((rows.n, 0))
    return both, tuple(transforms), tuple(transforms.values())


def covariate_columns(table: pl.DataFrame, names: str | Sequence[str]) -> list[str]:
    """Return the columns of a table that the covariates are read from."""
    return [column for name in parse_covariates(names) for column in _columns_of(table, name)]


def typical_difference(name: str, unit: float, transform: str = GIVEN) -> float:
    """Return the difference that a coefficient is reported for, in units of the scaled covariate.

    Twice as long is one third as a ratio and the logarithm of 2 as a log; own family or not is 1; of others it is the
    root mean square.
    """
    if name == SELF:
        return 1.0 / unit
    twice = {"ratio": 1.0 / 3.0, "log": math.log(2.0)}
    return twice[transform] / unit if name == "length" and transform in twice else 1.0


def more_of(name: str, unit: float, transform: str = GIVEN) -> str:
    """Return which item has the typical difference, in words after "the answer".

    Examples
    --------
    >>> more_of("length", 0.4, "log"), more_of("length", 312.0, "difference"), more_of("bold", 0.5, "ratio")
    ('twice as long', 'longer by 312', 'with more bold')
    """
    if name == SELF:
        return "of the annotator's own family"
    if name != "length":
        return f"with more {name}"
    if transform in ("ratio", "log"):
        return "twice as long"
    return f"longer by {unit:,.3g}" if transform == "difference" else "longer by the usual difference"


def _columns_of(table: pl.DataFrame, name: str) -> list[str]:
    """The two columns of a covariate, or the one, or none."""
    for form in _SIDES:
        sides = form.format(name, name).split()
        if set(sides) <= set(table.columns):
            return sides
    return [column for column in (name, *(f"{name}:{one}" for one in TRANSFORMS)) if column in table.columns][:1]


def _transform(rows: Rows, name: str, transform: str, left: Floats, right: Floats) -> Floats:
    """Left against right; 0 where they are equal."""
    if transform in ("ratio", "log"):
        remedy = f"write {name}:difference, or correct them"
        rows.blame((left < 0) | (right < 0), f"{name!r} is below 0, which {transform} cannot take,", remedy)
        left, right = np.maximum(left, 0.0), np.maximum(right, 0.0)
    if transform == "log":
        return np.log1p(left) - np.log1p(right)
    difference = left - right
    if transform == "ratio":
        both = left + right
        return np.divide(difference, both, out=np.zeros(len(left)), where=both > 0)
    spread = float(np.sqrt(np.mean(difference**2)))
    return np.tanh(difference / spread) if transform == "tanh" and spread > 0 else difference
