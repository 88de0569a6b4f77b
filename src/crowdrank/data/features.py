"""Numbers that describe items: one row per item."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors

from ..errors import JudgmentError, ParameterError, warn
from ..protocols import AnyFloats, Bools, Counts, Floats, Ints
from ..wording import did_you_mean, first_few
from .column_names import EITHER, FOREIGN, plain_name, quote_names, understand_items
from .frames import to_frame
from .index import Items, code_items, first_row, lock_arrays, plain_cells, set_fields
from .intake import short
from .naming import first_ids
from .words import TABLES


@dataclass(frozen=True, eq=False)
class Features:
    """A matrix with one row per item, in the order of ``items``; a missing value is NaN.

    ``grade`` holds the grades that came with the file or table, or ``None``; ``extractor`` how the columns are made of
    raw items, where ``cr.features`` made them; ``details`` what is known of those items besides, such as style sheets
    that a page lacks.

    Examples
    --------
    >>> features = Features.from_frame({"item": ["b", "a"], "length": [3, 5], "age": [1.5, 0.5]})
    >>> features.names, features.matrix.tolist()
    (('length', 'age'), [[5.0, 0.5], [3.0, 1.5]])
    """

    items: Items
    matrix: AnyFloats
    names: tuple[str, ...]
    grade: Floats | None = None
    extractor: Extractor | None = None
    details: pl.DataFrame | None = None

    def __post_init__(self) -> None:
        if self.matrix.shape != (len(self.items), len(self.names)):
            shape = " x ".join(map(str, self.matrix.shape))
            sizes = f"{len(self.items)} items and {len(self.names)} names"
            raise JudgmentError(f"the feature matrix is {shape} for {sizes}")
        lock_arrays(self, ("matrix", "grade"))
        foreign = set(self.names) - set(self.extractor.names) if self.extractor is not None else set()
        if foreign:
            other = first_few([repr(name) for name in self.names if name in foreign])
            warn(f"{other} cannot be made of raw items, so a ranker of these features will not take raw items")
            set_fields(self, extractor=None)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Features({len(self.items):,} items x {len(self.names):,} features)"

    @classmethod
    def from_frame(
        cls, data: Any, *, columns: Mapping[str, str] | None = None, features: Sequence[str] | None = None
    ) -> Self:
        """Return features from a table with columns item [, query] and numbers; each item stands once.

        Columns named like an id, a judgment or a truth (``docid``, ``worker``, ``grade``, ``label``, ``truth``, ...)
        are not taken for features, and a warning names those left out. A column named like a grade becomes ``grade``.

        Parameters
        ----------
        data
            The table.
        columns
            Our word (item, query, grade) -> name of the column, for names that are not understood by themselves.
        features
            Names of the columns to use, in their order, whatever they are called; others are not looked at.

        Examples
        --------
        >>> pages = {"item": ["x", "y"], "bm25": [7, 5], "title": ["Tea", "Tax"], "rating": [4, 3]}
        >>> Features.from_frame(pages, features=["bm25", "rating"]).names
        ('bm25', 'rating')
        """
        frame, given = to_frame(data), dict(columns or {})
        understood = understand_items(frame.columns, columns)
        rest = [name for name in frame.columns if name not in {*understood.values(), *given.values()}]
        judged = [name for name in rest if _like_judgment(name, frame.columns)]
        ids = [name for name in rest if name not in judged and _like_id(name)]
        chosen = [name for name in rest if name not in judged and name not in ids]
        if features is not None:
            chosen, ids = expect_names(features, frame.columns), []
            judged = [name for name in judged if name not in chosen]
        of_grade = given.get("grade") or _grade_among(judged)
        if not len(frame):
            raise JudgmentError("the table of features has a header but no rows; write one row per item")
        if not chosen:
            besides = f" and {', '.join(map(repr, judged))}" if judged else ""
            remedy = "add the numbers that describe the items, or name the columns to use with features= (--features)"
            raise JudgmentError(f"the table of features has no column besides the ids{besides}; {remedy}")
        matrix = _matrix(frame[chosen])
        # an id in words could not be a feature
        ids = [name for name in ids if not _read_numbers(frame[name])[1].any()]
        left_out = {"a judgment or truth": judged if features is None else [], "an id": ids}
        said = [f"{', '.join(map(repr, names))} (named like {what})" for what, names in left_out.items() if names]
        if said:
            warn(f"left out of the features: {' and '.join(said)}; features= (--features a,b,c) names those to use")
        query = frame[understood["query"]] if "query" in understood else None
        grade: Floats | None = None
        if of_grade is not None:
            grade, wrong = _read_numbers(frame[of_grade])
            if (row := first_row(np.isinf(grade))) is not None:
                raise JudgmentError(f"grade {of_grade!r} is infinite in row {row + 1} of the features; correct it")
            if wrong.any() or frame[of_grade].dtype.is_temporal() or np.isnan(grade).all():
                # words, or none
                grade = None
        return cls.from_arrays(query, frame[understood["item"]], matrix, names=chosen, grade=grade)

    def select(self, names: Sequence[str]) -> Self:
        """Return the same items with the features of these names, in this order.

        Examples
        --------
        >>> features = Features.from_frame({"item": ["b", "a"], "length": [3, 5], "age": [1.5, 0.5]})
        >>> features.select(["age"]).matrix.tolist()
        [[0.5], [1.5]]
        """
        if tuple(names) == self.names:
            return self
        chosen = expect_names(names, self.names)
        place = {name: number for number, name in enumerate(self.names)}
        # rows stay side by side in memory, so sums over them are added in one order
        matrix = np.ascontiguousarray(self.matrix[:, [place[name] for name in chosen]])
        return replace(self, matrix=matrix, names=tuple(chosen))

    def frame(self) -> pl.DataFrame:
        """Return a table of query, item and the features, which :meth:`from_frame` reads back."""
        columns = zip(self.names, np.ascontiguousarray(self.matrix.T), strict=True)
        return self.items.frame().with_columns([pl.Series(name, column) for name, column in columns])

    def join(self, other: Features) -> Features:
        """Return the items of both with the columns of both; columns that are not made of raw items lose the extractor.

        Examples
        --------
        >>> lengths = Features.from_frame({"item": ["b", "a"], "length": [3, 5]})
        >>> lengths.join(Features.from_frame({"item": ["a", "b"], "age": [0.5, 1.5]})).matrix.tolist()
        [[5.0, 0.5], [3.0, 1.5]]
        """
        rows = other.items.codes_of(self.items, "other features", "features")
        if (rows < 0).any():
            what = f"the other features have no row for item {first_ids(self.items, rows < 0)}"
            raise JudgmentError(f"{what}; make both tables of the same items")
        doubled = next((name for name in other.names if name in self.names), None)
        if doubled is not None:
            raise JudgmentError(f"both tables have a feature {doubled!r}; rename one of them")
        return replace(self, matrix=np.hstack([self.matrix, other.matrix[rows]]), names=self.names + other.names)

    @classmethod
    def from_arrays(
        cls,
        query: Any,
        item: Any,
        matrix: AnyFloats,
        *,
        names: Sequence[str] | None = None,
        grade: Floats | None = None,
    ) -> Self:
        """Return features from ids and a matrix whose rows may stand in any order; ``query=None`` means one query."""
        queries = None if query is None else pl.Series("query", query)
        blank = "the {} id is blank in row {} of the features; fill it in"
        items, code = code_items(queries, pl.Series("item", item), blank)
        order = np.argsort(code, kind="stable")
        if len(items) != len(matrix):
            again = int(order[1:][np.diff(code[order]) == 0].min())
            what = f"row {again + 1} of the features repeats item {items.ids[int(code[again])]!r}"
            raise JudgmentError(f"{what}; keep one row")
        names = tuple(names) if names is not None else tuple(str(number + 1) for number in range(matrix.shape[1]))
        matrix = matrix if (order == np.arange(len(order))).all() else matrix[order]
        return cls(items, matrix, names, None if grade is None else np.asarray(grade, np.float64)[order])

    def expect_numbers(self, rows: Counts | Ints | None = None, *, missing: bool = False) -> None:
        """Refuse infinite features, and missing ones unless they are welcome, naming feature and item.

        ``rows`` are those that matter, ``None`` for all.
        """
        fine = ~np.isinf(self.matrix) if missing else np.isfinite(self.matrix)
        wrong = np.flatnonzero(~fine.all(axis=1))
        wrong = wrong if rows is None else np.intersect1d(wrong, rows)
        if not len(wrong):
            return
        row = int(wrong[0])
        column = int(np.argmin(fine[row]))
        value, remedy = "infinite", "give it a number"
        if np.isnan(self.matrix[row, column]):
            value, remedy = "missing", "give it a number, or use lambda_mart, which takes missing values"
        item = first_ids(self.items, np.arange(len(self)) == row)
        raise JudgmentError(f"feature {self.names[column]!r} of item {item} is {value}; {remedy}")

    def match(self, judged: Any, *, so: str = "teach nothing") -> Ints:
        """Return the row of each item of judgments, -1 for items that nobody judged or that have no features.

        A warning names judged items without features, and says what follows (``so``); it is an error if all are.
        """
        known = judged.judged_items
        rows = np.where(known, self.items.codes_of(judged.items, "features", "judgments"), -1).astype(np.int32)
        lacking = known & (rows < 0)
        n_lacking, n_judged = int(lacking.sum()), int(known.sum())
        if n_lacking == n_judged:
            first = first_ids(self.items, np.arange(len(self)) == 0)
            what = f"none of the {n_judged:,} judged items has features: judged were {first_ids(judged.items, lacking)}"
            raise JudgmentError(f"{what}, the first features are of item {first}; make ids of queries and items agree")
        if n_lacking:
            names = first_ids(judged.items, lacking)
            warn(f"{n_lacking:,} of {n_judged:,} judged items have no features and {so}: {names}")
        return rows


_BLANKS = ["", "NULL", "null", "NaN", "nan"]
"""Texts that stand for a missing number."""


def _read_numbers(column: pl.Series) -> tuple[Floats, Bools]:
    """Numbers of a column, NaN where blank, and a mask of the cells that are something else."""
    try:
        cells = plain_cells(column)
    except JudgmentError:
        return np.full(len(column), np.nan), np.ones(len(column), bool)
    if cells.dtype == pl.String:
        cells = cells.str.strip_chars()
        cells = cells.set(cells.is_in(_BLANKS), None)
    values = cells.cast(pl.Float64, strict=False)
    return values.fill_null(float("nan")).to_numpy(), (values.is_null() & cells.is_not_null()).to_numpy()


def _matrix(frame: pl.DataFrame) -> Floats:
    """Columns of numbers side by side, NaN where blank; numbers and texts all at once, as each column costs a call."""
    if all(kind.is_numeric() or kind in (pl.String, pl.Boolean) for kind in frame.dtypes):
        text = selectors.string().str.strip_chars()
        filled = frame.with_columns(pl.when(~text.is_in(_BLANKS)).then(text).name.keep())
        values = filled.cast(pl.Float64, strict=False)
        # missing numbers are NaN in numpy
        if values.null_count().equals(filled.null_count()):
            return values.to_numpy(order="c", writable=True)
    columns = []
    for column in frame:
        numbers, wrong = _read_numbers(column)
        if (row := first_row(wrong)) is not None:
            cell = short(column.slice(row, 1).to_list()[0])
            what = f"feature {column.name!r} is not a number ({cell}) in row {row + 1}"
            raise JudgmentError(f"{what}; correct it, or name the columns to use with features= (--features)")
        columns.append(numbers)
    return np.column_stack(columns)


_MEASURED, _TRUTH, _SOURCES, _JUDGED, _QUALIFIERS = (
    set(TABLES["features"][name].split()) for name in ("measured", "truth", "sources", "judged", "qualifiers")
)
_ANSWERS = {"winner", "loser", "rank", "y", "y_true", *FOREIGN["grade"], *FOREIGN["winner"]} - _MEASURED
"""Names of judgments beside those of a truth."""

_IDS = {"", *TABLES["features"]["ids"].split(), *EITHER, *FOREIGN["ranking"]}
_IDS |= {name for word in ("annotator", "query", "item") for name in (word, *FOREIGN[word])}
_ID_FORMS = re.compile(r".*_(id|uuid|guid)|unnamed:_\d+|_+index_level_\d+_+")
_CAMEL_ID = re.compile(r".*[a-z0-9](Id|ID)")


def _like_id(name: str) -> bool:
    """Whether a column is named like an id."""
    text = plain_name(name)
    return text in _IDS or bool(_ID_FORMS.fullmatch(text) or _CAMEL_ID.fullmatch(name.strip()))


def expect_names(wanted: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the wanted names of features if all are there, each once."""
    if isinstance(wanted, str):
        raise ParameterError(f"features={wanted!r} is one text; give a list of names of columns")
    wanted, known, seen = [str(name) for name in wanted], set(names), set[str]()
    if not wanted:
        raise ParameterError("features= names no column; name at least one, or leave it out")
    for name in wanted:
        if name not in known:
            hint, shown = did_you_mean(name, names, cutoff=0.6), quote_names(names)
            raise JudgmentError(f"the features lack {name!r}; {hint}add it or name other columns (there are: {shown})")
        if name in seen:
            raise ParameterError(f"features= names {name!r} twice; keep one of them")
        seen.add(name)
    return wanted


def _like_judgment(name: str, names: Sequence[str]) -> bool:
    """Whether a column is named like a judgment or a truth."""
    plain = plain_name(name)
    if plain == "y":
        return not any(plain_name(other) == "x" for other in names)  # with an x it is a coordinate
    words = {re.sub(r"\d+$", "", word) for word in plain.split("_")} - {""}
    known = words <= _TRUTH | _SOURCES | _JUDGED | _QUALIFIERS
    listed = plain in _TRUTH or plain in _ANSWERS
    return listed or (known and bool(words & _TRUTH or (words & _SOURCES and words & _JUDGED)))


def _grade_among(judged: Sequence[str]) -> str | None:
    """The column that holds the grade: one of the house's own name, or the only one that may."""
    other = {"winner", "loser", "rank", *FOREIGN["winner"]} - set(FOREIGN["grade"])
    plain = {name: plain_name(name) for name in judged}
    own = ([name for name in judged if plain[name] == word] for word in ("grade", "truth"))
    for names in (*own, [name for name in judged if plain[name] not in other]):
        if len(names) == 1:
            return names[0]
    return None


@dataclass(frozen=True, eq=False)
class Extractor:
    """What makes a row of numbers of a text, a page or a recording; it is saved with the ranker that learns from them.

    Parameters
    ----------
    kind
        ``"text"``, ``"page"`` or ``"speech"``.
    version
        Number that is raised when a column of that kind changes its meaning.
    params
        How the columns are made: plain values by name.
    names
        Names of the columns, in their order.
    facts
        What was fitted that is no array, such as the vocabulary of the columns of words.
    numbers
        What was fitted, as arrays by name: weights, and what is put in the place of missing values.
    """

    kind: str
    version: int
    params: Mapping[str, Any]
    names: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Extractor({self.kind}, version {self.version}, {len(self.names):,} columns)"
