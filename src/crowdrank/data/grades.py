"""Grades given to items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from ..errors import JudgmentError, ParameterError
from ..protocols import Bools, Floats, Ints
from ..wording import option
from .columns import Wishes
from .frames import survey_rows, unpivot
from .intake import LARGEST_NUMBER, Rows, numeric_levels, read_grades, shared_fields
from .judged import Judged, columns_of, judged_frame, pairs_of_groups, without_repeats
from .preferences import Preferences, Rankings, preferences_between

# threshold (refused): distinct grades that a class method takes without bins
MAX_LEVELS = 30
"""More distinct grades than this and a class method asks for bins."""

# threshold (refused): parts that grades are cut into
MAX_BINS = 1000
"""Most parts that a range of grades is cut into; a confusion matrix has their square."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Grades(Judged):
    """Numbers given to items, larger is better.

    ``grade`` holds the number; with levels in words, the level's position from 0 (worst). ``levels`` are the user's own
    values, worst first; with ``nominal`` they have no order and only class methods apply.

    Examples
    --------
    >>> grades = Grades.from_frame({"item": ["x", "y", "x"], "annotator": ["ann", "ann", "bob"], "grade": [2, 1, 3]})
    >>> grades.n_items, grades.n_annotators, grades.levels
    (2, 2, (1, 2, 3))
    """

    kind: ClassVar[str] = "grade"
    answers: ClassVar[tuple[str, ...]] = ("item", "grade")

    item: Ints
    grade: Floats
    declared: tuple[Any, ...] | None = None
    nominal: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.item) != len(self.grade):
            what = f"{len(self.item)} items do not match {len(self.grade)} grades"
            raise JudgmentError(f"{what}; give one of each per row")
        # NaN comes through both
        largest = max(float(self.grade.max()), -float(self.grade.min())) if len(self.grade) else 0.0
        if not np.isfinite(largest):
            raise JudgmentError("a grade is NaN or infinite; leave such rows out")
        if largest > LARGEST_NUMBER:
            raise JudgmentError(f"a grade is beyond {LARGEST_NUMBER:g}, too large to compute with; use another unit")

    @cached_property
    def levels(self) -> tuple[Any, ...]:
        """The distinct grades in the user's own values, worst first."""
        return self.declared if self.declared is not None else numeric_levels(self.level_values)

    @cached_property
    def level_values(self) -> Floats:
        """The number that each level counts as."""
        if self.declared is None:
            return np.unique(self.grade)
        return self.values_of_levels(self.declared, nominal=self.nominal)

    @cached_property
    def level_place(self) -> Ints:
        """Place of each grade among the levels; packed grades bring it along."""
        from ..kernels.segments import level_places

        return level_places(self.level_values, self.grade)

    @staticmethod
    def values_of_levels(levels: Sequence[Any], *, nominal: bool) -> Floats:
        """Return the number that each of declared levels counts as: itself, or its place where they are words."""
        if not nominal and all(isinstance(level, int | float) for level in levels):
            values = np.array([float(level) for level in levels])
            if (np.diff(values) > 0).all():
                return values
        return np.arange(len(levels), dtype=np.float64)

    def level_codes(self, bins: int | None = None) -> tuple[Ints, tuple[Any, ...], Floats]:
        """Return the level code of each grade, the levels as the user writes them, and the number each counts as.

        More than 30 distinct values are refused unless ``bins`` cuts their range into that many equal parts.
        """
        if bins is not None:
            check_order(self)
            low, high = float(self.grade.min()), float(self.grade.max())
            middles = bin_middles(low, high, bins)
            return bin_codes(self.grade, low, high, bins), tuple(middles.tolist()), middles
        check_levels(self.levels, self.declared)
        return self.level_place, self.levels, self.level_values

    def levels_of(self, values: Floats, judged: Bools) -> tuple[tuple[Any, ...] | None, Ints | None]:
        """Return the levels, and the code of each item's value, which is one of them; -1 where it was not judged.

        Both are ``None`` where there are more than 30 levels, or none.
        """
        if not judged.any() or len(self.levels) > MAX_LEVELS:
            return None, None
        places = np.searchsorted(self.level_values, np.where(judged, values, self.level_values[0]))
        return self.levels, np.where(judged, places, -1).astype(np.int32)

    def at_least(self, level: Any) -> Bools:
        """Return which grades are at least a level: a number, or one of the levels in the user's own words.

        Examples
        --------
        >>> words = Grades.from_rows([("ann", "q", "x", "Good"), ("ann", "q", "y", "Bad")], levels=["Bad", "Good"])
        >>> words.at_least("Good").tolist()
        [True, False]
        """
        return self.grade >= self.level_number(level)

    def level_number(self, level: Any) -> float:
        """Return the number that a level counts as: itself, or the place of one of the user's own words."""
        if self.nominal:
            raise JudgmentError(f"nominal grades have no order, so none is at least another; give {option('levels')}")
        if isinstance(level, str) and level in self.levels:
            return float(self.level_values[self.levels.index(level)])
        try:
            return float(level)
        except (TypeError, ValueError):
            known = ", ".join(map(str, self.levels))
            raise ParameterError(f"there is no level {level!r}; name one of {known}, or a number") from None

    def weighted(self, good_from: Any = 2, factor: float = 3.0) -> Self:
        """Return the grades with those of at least ``good_from`` weighing ``factor`` times as much.

        With one grade an item this is "if-good-x3" [Yang10]_: good items count as if they had been graded three times,
        without anybody being asked again. ``good_from`` is a number, or one of the levels in words.

        Examples
        --------
        >>> Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 1)]).weighted().weight.tolist()
        [3.0, 1.0]
        """
        if not 0 < factor < np.inf:
            raise ParameterError(f"factor={factor} must be a number above 0; it multiplies weights")
        return replace(self, weight=self.row_weight * np.where(self.at_least(good_from), float(factor), 1.0))

    @classmethod
    def from_frame(
        cls,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        levels: Sequence[Any] | None = None,
        nominal: bool = False,
        small_is_good: bool | None = None,
        items: Any | None = None,
        duplicates: str = "keep",
        invalid: str = "error",
    ) -> Self:
        """Return grades from a table with columns item and grade [, query, annotator, weight, time, group].

        Parameters
        ----------
        data
            A frame that speaks the Arrow C interface, or a dict of columns.
        columns
            Our word (``item``, ``annotator``, ...) -> name of the column, for columns that are not understood by
            themselves.
        levels
            Grades from worst to best, for grades in words or to fix the scale.
        nominal
            The grades are classes without an order.
        small_is_good
            Numbers count downwards. Must be said, either way, where the name of the grade has a word for something bad.
        items
            Table of query and item with everything there is, so unjudged items get a place too.
        duplicates
            What to do when an annotator grades per item twice: ``"keep"`` (each counts), ``"first"``, ``"last"``,
            ``"error"``.
        invalid
            ``"error"``, or ``"drop"`` to leave out rows without a usable answer.
        """
        rows = Rows(data, "grade", columns, invalid, Wishes(nominal=nominal or levels is not None))
        grade, declared = read_grades(rows, levels, nominal, small_is_good)
        fields = shared_fields(rows, items, {"grade": grade}, rows.codes("item"))
        grades = cls(**fields, declared=declared, nominal=nominal)
        return without_repeats(grades, duplicates, (grades.item, grades.n_items))

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[Any, Any, Any, Any]],
        *,
        levels: Sequence[Any] | None = None,
        nominal: bool = False,
        duplicates: str = "keep",
    ) -> Self:
        """Return grades from tuples of (annotator, query, item, grade)."""
        table = columns_of(rows, ("annotator", "query", "item", "grade"))
        return cls.from_frame(table, levels=levels, nominal=nominal, duplicates=duplicates)

    @classmethod
    def from_wide(
        cls,
        data: Any,
        annotators: Sequence[str],
        *,
        columns: Mapping[str, str] | None = None,
        levels: Sequence[Any] | None = None,
        nominal: bool = False,
        items: Any | None = None,
        duplicates: str = "keep",
        invalid: str = "error",
    ) -> Self:
        """Return grades from a table with a row per item and a column per annotator; a blank is simply not judged."""
        rules: dict[str, Any] = {"items": items, "duplicates": duplicates, "invalid": invalid}
        table = unpivot(data, annotators, "grade")
        return cls.from_frame(table, columns=columns, levels=levels, nominal=nominal, **rules)

    @classmethod
    def from_survey(
        cls,
        data: Any,
        items: Sequence[str],
        *,
        annotator: str | None = None,
        columns: Mapping[str, str] | None = None,
        levels: Sequence[Any] | None = None,
        nominal: bool = False,
        duplicates: str = "keep",
        invalid: str = "error",
    ) -> Self:
        """Return grades from a table with a row per respondent and a column per item; a blank is simply not judged.

        Parameters
        ----------
        data
            A frame that speaks the Arrow C interface, or a dict of columns.
        items
            The columns that hold grades, each of the item that it is called by.
        annotator
            The column that says who answered; ``None`` looks for one by its name, and calls people 1, 2, ... by row
            where there is none.
        columns, levels, nominal, duplicates, invalid
            As for :meth:`from_frame`.

        Examples
        --------
        >>> table = {"respondent": ["ann", "bob"], "tea": [5, 4], "milk": [2, None]}
        >>> Grades.from_survey(table, ["tea", "milk"]).frame().rows()
        [('tea', 5, 'ann'), ('tea', 4, 'bob'), ('milk', 2, 'ann')]
        """
        named = {**(columns or {}), **({"annotator": annotator} if annotator is not None else {})}
        own = {word: word for word in ("item", "grade", "annotator")}
        rules: dict[str, Any] = {"duplicates": duplicates, "invalid": invalid}
        table = survey_rows(data, items, named)
        return cls.from_frame(table, columns={**named, **own}, levels=levels, nominal=nominal, **rules)

    def frame(self) -> pl.DataFrame:
        """Return a table with the user's own ids and grades."""
        shown: Any = self.grade
        if self.declared is not None:
            shown = pl.Series(self.levels).gather(self.level_codes()[0])
        elif (self.grade == np.round(self.grade)).all():
            shown = self.grade.astype(np.int64)
        return judged_frame(self.items, {"item": self.item}, {"grade": shown, **self.meta_frame()})

    def as_preferences(self, *, ties: bool = True) -> Preferences:
        """Return each annotator's grades as preferences between the items of a query; equal grades tie.

        A pair weighs the product of its two weights. ``ties=False`` leaves equal grades out.
        """
        if self.nominal:
            raise JudgmentError("nominal grades have no order, so they cannot become preferences")
        keys = (self.annotator if self.n_annotators else None, self.query, self.block)
        first, second = pairs_of_groups([key for key in keys if key is not None])
        outcome = np.sign(self.grade[first] - self.grade[second]).astype(np.int8)
        keep = self.item[first] != self.item[second]
        if not ties:
            keep &= outcome != 0
        first, second = first[keep], second[keep]
        fields = self.meta(first) | {"duration": None}
        if self.weight is not None:
            fields["weight"] = self.weight[first] * self.weight[second]
        return preferences_between(self.item[first], self.item[second], outcome[keep], fields)

    def as_rankings(self) -> Rankings:
        """Return each annotator's grades of a query as one ranking; equal grades tie.

        An item graded twice has the mean of its grades, and a ranking the mean of their weights. Without annotators all
        grades of a query are one ranking.

        Examples
        --------
        >>> rows = [("ann", "q", "x", 2), ("ann", "q", "y", 3), ("ann", "q", "z", 2)]
        >>> Grades.from_rows(rows).as_rankings().frame().select("item", "rank").rows()
        [('y', 1), ('x', 2), ('z', 2)]
        """
        if self.nominal:
            raise JudgmentError("nominal grades have no order, so they cannot become rankings")
        return Rankings.of_answers(self, self.item, self.grade)


def check_levels(levels: Sequence[Any], declared: Sequence[Any] | None) -> None:
    """Refuse more levels than methods for levels take, unless the user declared them."""
    if declared is None and len(levels) > MAX_LEVELS:
        cut = f"cut them with bins=, as in {option('params', {'bins': 5})}"
        remedy = f"{cut}, or use a method for numbers such as mean_grade"
        raise ParameterError(f"there are {len(levels)} distinct grades, too many classes; {remedy}")


def check_order(grades: Any) -> None:
    """Refuse to cut classes that have no order into levels."""
    if grades.nominal:
        raise ParameterError(f"classes without an order cannot be cut into levels; leave {option('bins')} out")


def bin_middles(low: float, high: float, bins: int) -> Floats:
    """Return the middles of this many equally wide parts of a range of grades."""
    if not 2 <= bins <= MAX_BINS:
        raise ParameterError(f"bins={bins} must lie between 2 and {MAX_BINS}")
    return low + ((high - low) / bins or 1.0) * (np.arange(bins, dtype=np.float64) + 0.5)


def bin_codes(grade: Floats, low: float, high: float, bins: int) -> Ints:
    """Return the part of the range that each grade falls into."""
    return np.clip(((grade - low) / ((high - low) / bins or 1.0)).astype(np.int32), 0, bins - 1)
