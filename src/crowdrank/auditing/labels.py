"""Labels of people and programs for the same cells: grades of items, or outcomes of pairs, whatever the kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ..data.judgments import Grades, Judgments, Mixed, Rankings, align_judgments, stack_judgments
from ..data.naming import named_annotators
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..protocols import Bools, Counts, Floats
from ..review.findings import is_program
from ..review.sentences import AUDIT, fill
from ..wording import first_few, option

MIN_COMMON = 30
"""Items that a program and two people have in common, below which nothing is tested."""

_COPIED, _CONTRADICTED = 0.98, 0.95
"""Share of equal labels from which on a program copies a person, where other people agree with that person in less."""


def in_words(code: str, **numbers: object) -> str:
    """Return a sentence of an audit with its numbers."""
    return fill(AUDIT[code], enough=AUDIT["enough"], **numbers)


@dataclass(frozen=True, eq=False)
class Sides:
    """Judgments of people and programs in one numbering, and which annotators are people."""

    judgments: Judgments
    is_person: Bools

    @classmethod
    def of(cls, people: Judgments | Mixed, programs: Judgments | Mixed | None, who: Any | None) -> Sides:
        """Return both sides of two sets of judgments, or of one in which ``who`` names the people."""
        if isinstance(people, Mixed) or isinstance(programs, Mixed):
            raise JudgmentError(in_words("several_kinds"))
        if programs is None and who is None:
            raise ParameterError(in_words("one_set", option=option("people", "group=person")))
        if programs is None:
            judgments, is_person = people, named_annotators(people, who, "people")
        elif who is not None:
            raise ParameterError(in_words("two_sets", option=option("people")))
        else:
            judgments, is_person = _put_together(people, programs)
        sides = cls(judgments, is_person & np.isin(np.arange(judgments.n_annotators), judgments.annotator))
        if not sides.is_person.any():
            raise JudgmentError(in_words("no_person"))
        if not sides.programs:
            raise JudgmentError(in_words("no_program"))
        odd = list(filter(is_program, map(str, judgments.annotators.ids.filter(pl.Series(sides.is_person)))))
        if odd:
            say(in_words("taken_for_people", names=first_few(map(repr, odd))))
        return sides

    @cached_property
    def programs(self) -> list[int]:
        """Codes of the programs that judged something."""
        return [int(code) for code in np.unique(self.judgments.annotator) if not self.is_person[code]]

    def name(self, code: int) -> str | int:
        """Return the id of an annotator."""
        return self.judgments.annotators.ids[int(code)]

    def of_people(self) -> Judgments:
        """Return the judgments of people alone."""
        return self.judgments.select(self.is_person[self.judgments.annotator])


def _put_together(people: Judgments, programs: Judgments) -> tuple[Judgments, Bools]:
    """Two sets as one, and which annotators are of the first."""
    if people.kind != programs.kind:
        raise JudgmentError(in_words("other_kind", people=people.kind, programs=programs.kind))
    for who, given in (("people", people), ("programs", programs)):
        if not given.n_annotators:
            raise JudgmentError(in_words("unnamed", who=who))
    both = set(map(str, people.annotators)) & set(map(str, programs.annotators))
    if both:
        raise JudgmentError(in_words("on_both_sides", names=first_few(map(repr, sorted(both)))))
    if isinstance(people, Grades) and isinstance(programs, Grades) and people.declared != programs.declared:
        # classes with all classes; levels in words only if they are the same
        shown = {side: first_few(map(repr, one.levels)) for side, one in (("mine", people), ("theirs", programs))}
        if not (people.nominal and programs.nominal):
            raise JudgmentError(in_words("other_levels", option=option("levels"), **shown))
        levels = tuple(sorted({*people.levels, *programs.levels}, key=str))
        if not set(map(str, people.levels)) & set(map(str, programs.levels)):
            raise JudgmentError(in_words("other_classes", **shown))
        place = {level: float(number) for number, level in enumerate(levels)}
        both_sides = [(one, np.array([place[level] for level in one.levels])) for one in (people, programs)]
        people, programs = (replace(one, grade=code[one.level_place], declared=levels) for one, code in both_sides)
    aligned = align_judgments([people, programs])
    return stack_judgments(aligned), np.isin(np.arange(len(aligned[0].annotators)), aligned[0].annotator)


@dataclass(frozen=True, eq=False)
class Labels:
    """One value per annotator and cell, sorted by both; cells belong to instances, which are what is sampled.

    A cell is an item that was graded, or two items that were compared; an instance is the same, or of rankings the
    query whose pairs are cells. ``nominal`` values are codes that are equal or not.
    """

    annotator: Counts
    cell: Counts
    value: Floats
    instance: Counts
    query: Counts
    kind: str
    nominal: bool
    cells: pl.DataFrame

    @classmethod
    def of(cls, judgments: Judgments) -> Labels:
        """Return the labels of judgments; what an annotator was asked several times counts once, by the mean."""
        kind, items = judgments.kind, judgments.items
        nominal, mean = False, pl.col("v").mean()
        given: Any
        if isinstance(judgments, Grades):
            nominal, given, low, high = judgments.nominal, judgments, judgments.item, judgments.item
            value = judgments.grade if nominal else judgments.level_values[judgments.level_place]
            mean = pl.col("v").min() if nominal else mean
        else:
            given = judgments.as_preferences() if isinstance(judgments, Rankings) else judgments
            low, high = np.minimum(given.left, given.right), np.maximum(given.left, given.right)
            value, mean = np.where(given.left < given.right, 1.0, -1.0) * given.outcome, mean.sign()
        block = np.zeros(len(given), np.int64) if given.block is None else given.block
        keys = ["b", "i", "j"]
        rows = pl.DataFrame({"a": given.row_annotator, "i": low, "j": high, "v": value, "b": block})
        table = rows.group_by(*keys, "a").agg(mean).sort(*keys, "a")
        cells = table.select(keys).unique().sort(keys).with_row_index("cell")
        table = table.join(cells, on=keys, maintain_order="left")
        query = items.query[cells["i"].to_numpy()]
        instance = np.arange(len(cells))
        if isinstance(judgments, Rankings):
            block = cells["b"].to_numpy().astype(np.int64)
            instance = np.unique(query * (block.max(initial=0) + 1) + block, return_inverse=True)[1]
        names = pl.DataFrame({"query": items.query_ids().gather(cells["i"]), "item": items.ids.gather(cells["i"])})
        if kind != "grade":
            names = names.with_columns(other=items.ids.gather(cells["j"]))
        blocks = getattr(judgments, "blocks", None)
        if blocks is not None and judgments.block is not None:
            names = names.with_columns(query=blocks.ids.gather(cells["b"]))
            query = cells["b"].to_numpy()
        codes = [np.asarray(column, np.int64) for column in (table["a"], table["cell"], instance, query)]
        return cls(codes[0], codes[1], table["v"].to_numpy(), codes[2], codes[3], kind, nominal, names)

    def agree(self, one: Floats, other: Floats) -> Floats:
        """Return how far values agree: equal or not of classes and pairs, else the negative difference."""
        if self.nominal or self.kind != "grade":
            return np.asarray(one == other, np.float64)
        return np.asarray(-np.abs(one - other), np.float64)

    def of_annotators(self, chosen: Bools) -> Labels:
        """Return the labels of some annotators; the cells stay."""
        keep = chosen[self.annotator]
        return replace(self, annotator=self.annotator[keep], cell=self.cell[keep], value=self.value[keep])

    def by_cell(self, code: int) -> Floats:
        """Return the value of one annotator for each cell, NaN where there is none."""
        values = np.full(len(self.instance), np.nan)
        own = self.annotator == code
        values[self.cell[own]] = self.value[own]
        return values

    @cached_property
    def number(self) -> Counts:
        """Number of labels of each cell."""
        return np.bincount(self.cell, minlength=len(self.instance))

    @cached_property
    def mean(self) -> Floats:
        """Mean value of each cell, NaN where there is none; of classes it means nothing."""
        sums = np.bincount(self.cell, self.value, len(self.instance))
        return np.divide(sums, self.number, out=np.full(len(sums), np.nan), where=self.number > 0)


def check_people(people: Labels) -> None:
    """Refuse one person alone, and people who judged nothing in common."""
    n = len(np.unique(people.annotator))
    if n < 2:
        raise JudgmentError(in_words("one_person", option=option("trusted")))
    if not (people.number > 1).any():
        raise JudgmentError(in_words("nothing_common", n=n))


def check_program(people: Labels, values: Floats, name: str, ids: pl.Series) -> str | None:
    """Return why a program cannot be tested with these labels, ``None`` where it can; refuse what is no label."""
    both = (people.number > 0) & ~np.isnan(values)
    if not both.any():
        return in_words("nothing_judged", name=name)
    if people.kind == "grade" and not people.nominal:
        low, high = float(people.value.min()), float(people.value.max())
        if np.mean((values[both] < low) | (values[both] > high)) > 0.5:
            ends = {"lowest": np.nanmin(values), "highest": np.nanmax(values), "low": low, "high": high}
            raise JudgmentError(in_words("other_scale", name=name, **ends))
    given = values[people.cell]
    for code in np.unique(people.annotator):
        own = (people.annotator == code) & ~np.isnan(given)
        if own.sum() < MIN_COMMON or (people.value[own] == given[own]).mean() < _COPIED:
            continue
        others = np.isin(people.cell, people.cell[own]) & (people.annotator != code)
        if others.any() and (people.value[others] == given[others]).mean() < _CONTRADICTED:
            raise JudgmentError(in_words("copy", name=name, person=ids[int(code)], number=int(own.sum())))
    n_common = len(np.unique(people.instance[(people.number > 1) & ~np.isnan(values)]))
    return in_words("few_common", name=name, number=n_common) if n_common < MIN_COMMON else None
