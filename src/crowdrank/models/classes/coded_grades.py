"""Grades as codes: what goes into a class method, with known items, a former consensus and given accuracies."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from ...data.columns import quoted, understand_items
from ...data.consensus import Consensus
from ...data.frames import to_frame
from ...data.judgments import Grades
from ...data.truth import Truth
from ...errors import DataWarning, JudgmentError, ParameterError
from ...protocols import Bools, Counts, Floats, Ints
from ...wording import option

if TYPE_CHECKING:
    from ...kernels.confusion import PackedGrades

_N_SHOWN = 5


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Grades as codes: item, annotator and level of each row, (n,); the level of each known item, (n_items,), else -1.

    Levels are those that somebody gave or that are known; they are the levels ``used`` of ``scale``, all there are.
    Rows without annotators are all by annotator 0, and ``named`` is false.
    """

    item: Ints
    annotator: Ints
    level: Ints
    weight: Floats | None
    known: Ints
    n_annotators: int
    levels: tuple[Any, ...]
    values: Floats
    scale: tuple[Any, ...]
    used: Ints
    nominal: bool
    named: bool

    def __len__(self) -> int:
        return len(self.item)

    @property
    def n_items(self) -> int:
        """Number of items, those that nobody graded included."""
        return len(self.known)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @cached_property
    def packed(self) -> PackedGrades:
        """The rows sorted by item, as kernels read them."""
        from ...kernels.confusion import pack_grades

        sizes = (self.n_items, self.n_annotators, self.n_levels)
        return pack_grades(self.item, self.annotator, self.level, self.weight, *sizes)

    @cached_property
    def graded(self) -> Bools:
        """Mask of the items that somebody graded, (n_items,)."""
        mask: Bools = np.diff(self.packed.starts) > 0
        return mask

    @cached_property
    def several(self) -> Bools:
        """Mask of the items that two annotators graded or more, (n_items,); without annotators, two grades."""
        from ...kernels.confusion import several_annotators

        return several_annotators(self.packed, self.n_levels, named=self.named)

    @cached_property
    def overlap(self) -> bool:
        """Whether some item was graded by two annotators, or was graded and is known."""
        return bool((self.several | (self.graded & (self.known >= 0))).any())


class Former(NamedTuple):
    """A former consensus as far as it tells of the annotators and levels of now; NaN stands for what is new.

    ``prior`` (n_levels,) is the share of each level; ``annotator`` (n_annotators,) and ``level`` (n_levels,) are
    the former codes, -1 where there are none.
    """

    method: str
    prior: Floats
    annotator: Ints
    level: Ints
    parameters: Mapping[str, Any]

    def of_annotators(self, name: str, *, by_level: bool = False) -> Floats:
        """Return a parameter of each annotator of now, (n_annotators, ...), NaN for new ones.

        With ``by_level`` all further axes are over levels, and entries of new levels are NaN too.
        """
        if name not in self.parameters:
            raise ParameterError(
                f"start= is a consensus of {self.method}, which knows no {name} of the annotators; "
                "start from a consensus of the same method, or leave start= out"
            )
        former = np.asarray(self.parameters[name], np.float64)
        # code -1 finds the NaN at the end
        padded = np.pad(
            former,
            [(0, 1)] * (former.ndim if by_level else 1) + [(0, 0)] * (0 if by_level else former.ndim - 1),
            constant_values=np.nan,
        )
        found: Floats = padded[self.annotator]
        for axis in range(1, former.ndim if by_level else 1):
            found = np.take(found, self.level, axis=axis)
        return found


class QueryPart(NamedTuple):
    """The rows of one query: its items are ``items`` of all, its annotators the codes ``annotators`` of all."""

    rows: ClassRows
    items: slice
    annotators: Ints


def class_rows(grades: Grades, *, bins: int | None = None, known: Any | None = None) -> ClassRows:
    """Return grades as codes, with the level of each known item.

    Parameters
    ----------
    grades
        The grades; at least one.
    bins
        Cut the grades into so many equally wide levels.
    known
        Table of query, item and grade, or a :class:`~crowdrank.data.truth.Truth`: items whose level is known. An item
        that is not among the items, or a grade that is none of the levels, is refused by name.
    """
    codes, levels, values = grades.level_codes(bins)
    named = grades.n_annotators > 0
    rows = ClassRows(
        item=grades.item, annotator=grades.annotator if named else np.zeros(len(grades), np.int32), level=codes,
        weight=grades.weight, known=np.full(grades.n_items, -1, np.int32), n_annotators=max(grades.n_annotators, 1),
        levels=levels, values=values, scale=levels, used=np.arange(len(levels), dtype=np.int32),
        nominal=grades.nominal, named=named,
    )  # fmt: skip
    if known is not None:
        rows = replace(rows, known=_known_levels(grades, rows, known, bins))
    # levels that are not declared are those that were given
    return rows if grades.declared is None and bins is None else _without_unused(rows)


def _without_unused(rows: ClassRows) -> ClassRows:
    """The same without the levels that nobody gave and that are not known, of which nothing can be learned."""
    used = np.bincount(rows.level, minlength=rows.n_levels) > 0
    used[rows.known[rows.known >= 0]] = True
    if used.all():
        return rows
    code = (np.cumsum(used) - 1).astype(np.int32)
    kept = np.flatnonzero(used).astype(np.int32)
    return replace(
        rows, level=code[rows.level], known=np.where(rows.known >= 0, code[rows.known], np.int32(-1)),
        levels=tuple(rows.scale[k] for k in kept), values=rows.values[kept], used=kept,
    )  # fmt: skip


def _known_levels(grades: Grades, rows: ClassRows, known: Any, bins: int | None) -> Ints:
    """Level code of each item whose truth is known, (n_items,), -1 elsewhere."""
    frame = known.frame() if isinstance(known, Truth) else to_frame(known)
    found = understand_items(frame.columns, also=("grade",))
    if "grade" not in found:
        raise JudgmentError(
            f"{option('known')} has no grade column (its columns: {quoted(frame.columns)}); "
            "give a table of query, item and grade"
        )
    item = grades.items.codes(frame[found["query"]] if "query" in found else None, frame[found["item"]])
    given = frame[found["grade"]]
    level = _level_of(given, rows, grades.grade if bins else None)
    _refuse(frame, found, item < 0, "is not among the judged items", f"leave it out, or list it with {option('items')}")
    scale = ", ".join(str(level) for level in rows.levels[:12])
    _refuse(
        frame,
        found,
        level < 0,
        f"has a known grade outside the scale {scale}",
        "correct it, or declare it with levels=",
    )
    levels = np.full(grades.n_items, -1, np.int32)
    levels[item] = level
    _refuse(frame, found, levels[item] != level, "has two different known grades", "keep one of them")
    return levels


def _level_of(given: pl.Series, rows: ClassRows, cut: Floats | None) -> Ints:
    """Level code of each known grade, -1 where it is none; ``cut`` holds the grades that bins were cut from."""
    distinct = given.unique()
    codes = []
    for value in distinct.to_list():
        if cut is not None:
            inside = isinstance(value, int | float) and cut.min() <= value <= cut.max()
            codes.append(int(np.argmin(np.abs(rows.values - value))) if inside else -1)
            continue
        same = [code for code, level in enumerate(rows.levels) if _same_level(level, value)]
        codes.append(same[0] if same else -1)
    return given.replace_strict(
        distinct, pl.Series(codes, dtype=pl.Int32), default=-1, return_dtype=pl.Int32
    ).to_numpy()


def _same_level(level: Any, value: Any) -> bool:
    """Whether a known grade, a number or text, is a level."""
    if isinstance(value, str):
        value = value.strip()
    if str(level) == str(value):
        return True
    try:
        return float(level) == float(value)
    except (TypeError, ValueError):
        return False


def _refuse(frame: pl.DataFrame, found: Mapping[str, str], wrong: Bools, complaint: str, remedy: str) -> None:
    """Raise for known rows that cannot be used, naming the first few."""
    if not wrong.any():
        return
    rows = np.flatnonzero(wrong)
    shown = []
    for row in rows[:_N_SHOWN].tolist():
        query = f" of query {frame[found['query']][row]!r}" if "query" in found else ""
        grade = frame[found["grade"]][row]
        shown.append(f"item {frame[found['item']][row]!r}{query} ({option('known')} row {row + 1}, grade {grade!r})")
    more = f" and {len(rows) - _N_SHOWN} more" if len(rows) > _N_SHOWN else ""
    raise JudgmentError(f"{'; '.join(shown)}{more} {complaint}; {remedy}")


def former_fit(start: Consensus, grades: Grades, rows: ClassRows) -> Former:
    """Return what a former consensus tells of the annotators and levels of now, matched by id and value."""
    if start.probabilities is None or start.levels is None:
        raise ParameterError(
            f"start= is a consensus of {start.method}, which has no probabilities of levels; "
            "start from a consensus of the same method, or leave start= out"
        )
    judged = start.probabilities if start.grade is None else start.probabilities[start.grade >= 0]
    shares = judged.mean(axis=0) if len(judged) else np.full(len(start.levels), np.nan)
    place = {str(level): code for code, level in enumerate(start.levels)}
    level = np.array([place.get(str(level), -1) for level in rows.levels], np.int32)
    annotator: Ints = np.full(rows.n_annotators, -1, np.int32)
    parameters: Mapping[str, Any] = {}
    if start.learned is not None:
        annotators, parameters = start.learned
        annotator = annotators.codes(grades.annotators.ids) if rows.named else annotator
    return Former(start.method, np.append(shares, np.nan)[level], annotator, level, parameters)


def given_accuracies(accuracies: Any, grades: Grades) -> Floats:
    """Return the accuracy of each annotator as given, (n_annotators,), NaN for those not named.

    ``accuracies`` maps annotators to numbers between 0 and 1, or is a table of annotator and accuracy; annotators in it
    who gave no grade are passed over.
    """
    if not grades.n_annotators:
        raise JudgmentError("accuracies= names annotators and the grades do not; leave it out, or add the column")
    if isinstance(accuracies, Mapping) and all(np.ndim(value) == 0 for value in accuracies.values()):
        accuracies = {"annotator": list(accuracies), "accuracy": list(accuracies.values())}
    frame = to_frame(accuracies)
    if not {"annotator", "accuracy"} <= set(frame.columns):
        raise JudgmentError("accuracies= has no columns annotator and accuracy; give both, or a dict of accuracies")
    values = frame["accuracy"].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(wrong):
        who, value = frame["annotator"][int(wrong[0])], frame["accuracy"][int(wrong[0])]
        raise ParameterError(f"accuracies= gives annotator {who!r} {value!r}, which is not between 0 and 1; correct it")
    code = grades.annotators.codes(frame["annotator"])
    given = np.full(grades.n_annotators, np.nan)
    given[code[code >= 0]] = values[code >= 0]
    return given


def is_identified(rows: ClassRows, what: str) -> bool:
    """Return whether some item was graded by two annotators or is known; otherwise warn that accuracies are unknown."""
    if not rows.overlap:
        warnings.warn(
            f"{what}: no item was graded by two annotators, so their accuracies cannot be estimated; the grades "
            f"are kept as they are: have some items graded twice, or give {option('known')}",
            DataWarning,
            stacklevel=3,
        )
    return rows.overlap


def vote_shares(rows: ClassRows) -> Floats:
    """Return the share of each level in the weight of each item's grades, (n_items, n_levels); known items are certain.

    Items without grades have equal shares.
    """
    cells = rows.item.astype(np.int64) * rows.n_levels + rows.level
    votes = np.bincount(cells, rows.weight, rows.n_items * rows.n_levels).reshape(rows.n_items, rows.n_levels)
    total = votes.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(votes, total, out=np.full(votes.shape, 1 / rows.n_levels), where=total > 0)
    return with_known(shares, rows.known)


def with_known(probabilities: Floats, known: Ints) -> Floats:
    """Return probabilities with each known item certain."""
    sure = np.flatnonzero(known >= 0)
    if len(sure):
        probabilities[sure] = 0.0
        probabilities[sure, known[sure]] = 1.0
    return probabilities


def query_parts(rows: ClassRows, offsets: Counts) -> Iterator[QueryPart]:
    """Yield the rows of each query that has any, its items (bounded by ``offsets``) and annotators numbered anew."""
    order = np.argsort(rows.item, kind="stable")
    bounds = np.searchsorted(rows.item[order], offsets)
    for query in np.flatnonzero(np.diff(bounds)):
        chosen = order[bounds[query] : bounds[query + 1]]
        items = slice(int(offsets[query]), int(offsets[query + 1]))
        annotators, annotator = np.unique(rows.annotator[chosen], return_inverse=True)
        yield QueryPart(
            replace(
                rows,
                item=rows.item[chosen] - np.int32(items.start),
                annotator=annotator.astype(np.int32),
                level=rows.level[chosen],
                weight=None if rows.weight is None else rows.weight[chosen],
                known=rows.known[items],
                n_annotators=len(annotators),
            ),
            items,
            annotators.astype(np.int32),
        )
