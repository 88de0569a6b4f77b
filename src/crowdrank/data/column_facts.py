"""What the cells of a column say about it; looked at only as far as a question needs it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import polars as pl

_SAMPLE = 2_000
_MOST = 0.9
"""Share of the cells that must look like something for the column to count as that."""

_FEW_WORDS = 12
_LONG_TEXT = 60
_TIME = re.compile(r"\d:\d\d|\d{4}-\d\d?-\d\d?|^\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b")
_NUMBER = re.compile(
    r"[-+]?(\d+([.,]\d+)?|\.\d+)([eE][-+]?\d+)?(\s*/\s*\d+([.,]\d+)?|\s*%|\s*[-:]\s+\S.*|\s*\(.+\)|:\s*\S.*)?"
)
_TRUTHS = {"true", "false", "yes", "no"}


class ColumnFacts:
    """One column of a table, or of a table of which only the names are known."""

    def __init__(self, name: str, cells: pl.Series | None = None) -> None:
        self.name = name
        self.cells = cells

    @property
    def has_cells(self) -> bool:
        """Whether there are cells to look at."""
        return self.cells is not None and len(self.cells) > 0

    @property
    def is_nested(self) -> bool:
        """Whether the cells hold objects or lists."""
        return self.cells is not None and self.cells.dtype.is_nested()

    @cached_property
    def sample(self) -> list[str]:
        """Filled cells of up to 2,000 rows that are spread evenly, as text."""
        if self.cells is None or self.is_nested:
            return []
        step = max(len(self.cells) // _SAMPLE, 1)
        some = _as_text(self.cells.gather_every(step).drop_nulls())
        stripped = some.drop_nulls().str.strip_chars()
        return stripped.filter(stripped != "").to_list()

    @cached_property
    def empty(self) -> bool:
        """Whether no cell is filled."""
        return self.has_cells and not self.is_nested and not self.sample and self.distinct == 0

    @cached_property
    def distinct(self) -> int:
        """Number of different filled cells."""
        if self.cells is None or self.is_nested:
            return 0
        cells = self.cells.drop_nulls()
        return int((cells.filter(cells != "") if cells.dtype == pl.String else cells).n_unique())

    @property
    def values(self) -> list[str]:
        """The different cells of the sample, numbers by value and then text."""
        return sorted(set(self.sample), key=_by_value)

    def _share(self, pattern: re.Pattern[str], *, whole: bool) -> float:
        """Share of the sample that is of a form."""
        test = pattern.fullmatch if whole else pattern.search
        return float(np.mean([test(text) is not None for text in self.sample])) if self.sample else 0.0

    @cached_property
    def numbers(self) -> bool:
        """Whether the cells are numbers, or text that holds one such as ``4/5``."""
        if self.cells is not None and self.cells.dtype.is_numeric():
            return True
        return self._share(_NUMBER, whole=True) > _MOST

    @cached_property
    def times(self) -> bool:
        """Whether the cells are dates or times of day."""
        if self.cells is not None and self.cells.dtype.is_temporal():
            return True
        return (
            not (self.cells is not None and self.cells.dtype.is_numeric()) and self._share(_TIME, whole=False) > _MOST
        )

    @property
    def n_sampled(self) -> int:
        """Number of different cells in the sample."""
        return len(set(self.sample))

    @property
    def few_words(self) -> bool:
        """Whether there are at most twelve different cells."""
        return self.n_sampled <= _FEW_WORDS

    @property
    def truths(self) -> bool:
        """Whether the cells are true and false, or 1 and 0."""
        if self.cells is not None and self.cells.dtype == pl.Boolean:
            return True
        return bool(self.sample) and {text.lower() for text in self.sample} <= _TRUTHS | {"0", "1", "0.0", "1.0"}

    @cached_property
    def all_different(self) -> bool:
        """Whether no filled cell occurs twice."""
        if len(set(self.sample)) < len(self.sample) or self.cells is None or self.is_nested:
            return False
        return self.distinct == len(self.cells)

    @cached_property
    def one_value(self) -> bool:
        """Whether all filled cells are the same."""
        return len(set(self.sample)) < 2 and self.distinct == 1

    @property
    def has_repeats(self) -> bool:
        """Whether there are several values, each on two rows or more on average."""
        return self.cells is not None and 1 < self.distinct <= len(self.cells) / 2

    @property
    def long_text(self) -> bool:
        """Whether the cells are sentences rather than names."""
        return bool(self.sample) and sum(map(len, self.sample)) > _LONG_TEXT * len(self.sample)

    @property
    def first(self) -> str:
        """The first filled cell."""
        if self.is_nested:
            return "objects"
        return self.sample[0] if self.sample else ""


def _as_text(cells: pl.Series) -> pl.Series:
    """Cells of any kind as text."""
    try:
        return cells.cast(pl.String, strict=False)
    except pl.exceptions.PolarsError:  # durations, categories of categories and their like
        return pl.Series([str(cell) for cell in cells.to_list()], dtype=pl.String)


def as_float(text: str) -> float | None:
    """Return text as a number, ``None`` where it is none.

    Examples
    --------
    >>> as_float(" 2.0 "), as_float("two")
    (2.0, None)
    """
    try:
        return float(text)
    except ValueError:
        return None


def _by_value(text: str) -> tuple[bool, float, str]:
    """Key that sorts numbers by value before text."""
    number = as_float(text)
    return number is None, number or 0.0, text


def count_cells(columns: Sequence[pl.Series]) -> int:
    """Return how many different rows some columns have.

    Examples
    --------
    >>> count_cells([pl.Series([1, 1, 2]), pl.Series(["a", "a", "a"])])
    2
    """
    if not columns:
        return 1
    return pl.DataFrame([column.alias(str(number)) for number, column in enumerate(columns)]).n_unique()
