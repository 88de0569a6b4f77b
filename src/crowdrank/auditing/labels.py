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
from ..wording import counted, first_few, option

ENOUGH = "at least 50 items with two people each are needed"
MIN_COMMON = 30
"""Items that a program and two people have in common, below which nothing is tested."""

_COPIED, _CONTRADICTED = 0.98, 0.95
"""Share of equal labels from which on a program copies a person, where other people agree with that person in less."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Judgments of people and programs in one numbering, and which annotators are people."""

    judgments: Judgments
    is_person: Bools

    @classmethod
    def of(cls, people: Judgments | Mixed, programs: Judgments | Mixed | None, who: Any | None) -> Sides:
        """Return both sides of two sets of judgments, or of one in which ``who`` names the people."""
        if isinstance(people, Mixed) or isinstance(programs, Mixed):
            raise JudgmentError("people and programs are compared in one kind of judgment; give one kind at a time")
        if programs is None:
            if who is None:
                raise ParameterError(
                    f"there is one set of judgments; say who the people are with {option('people', 'group=person')}, "
                    "or give a second set of the programs"
                )
            judgments, is_person = people, named_annotators(people, who, "people")
        else:
            if who is not None:
                raise ParameterError(f"two sets say who the people are; leave {option('people')} out, or give one set")
            judgments, is_person = _put_together(people, programs)
        who = np.unique(judgments.annotator)
        sides = cls(judgments, is_person & np.isin(np.arange(judgments.n_annotators), who))
        if not sides.is_person.any():
            raise JudgmentError(f"no judgment is a person's; name the people, or give their file first: {ENOUGH}")
        if not sides.programs:
            raise JudgmentError(
                "no judgment is a program's; give the programs' file second, or name fewer people: judgments of a "
                "program on 50 items that two people judged would do"
            )
        odd = [
            name for name in map(str, judgments.annotators.ids.filter(pl.Series(sides.is_person))) if is_program(name)
        ]
        if odd:
            say(
                f"taken for people: {first_few(map(repr, odd))}; the file of people goes first, that of programs second"
            )
        return sides

    @cached_property
    def programs(self) -> list[int]:
        """Codes of the programs that judged something."""
        return [int(code) for code in np.unique(self.judgments.annotator) if not self.is_person[code]]

    def name(self, code: int) -> Any:
        """Return the id of an annotator."""
        return self.judgments.annotators.ids[int(code)]

    def of_people(self) -> Judgments:
        """Return the judgments of people alone."""
        return self.judgments.select(self.is_person[self.judgments.annotator])


def _put_together(people: Judgments, programs: Judgments) -> tuple[Judgments, Bools]:
    """Two sets as one, and which annotators are of the first."""
    if people.kind != programs.kind:
        raise JudgmentError(
            f"people gave {people.kind}s and programs {programs.kind}s, which cannot be compared; turn both into "
            "preferences first with as_preferences()"
        )
    for who, given in (("people", people), ("programs", programs)):
        if not given.n_annotators:
            raise JudgmentError(f"the judgments of {who} do not say who gave them; add an annotator column")
    both = set(map(str, people.annotators)) & set(map(str, programs.annotators))
    if both:
        raise JudgmentError(f"{first_few(map(repr, sorted(both)))} stand among people and programs; rename one of them")
    if isinstance(people, Grades) and isinstance(programs, Grades) and people.declared != programs.declared:
        # classes with all classes; levels in words only if they are the same
        mine, theirs = (first_few(map(repr, one.levels)) for one in (people, programs))
        if not (people.nominal and programs.nominal):
            raise JudgmentError(
                f"people and programs grade on different scales, {mine} and {theirs}; give {option('levels')} from "
                "worst to best for both"
            )
        levels = tuple(sorted({*people.levels, *programs.levels}, key=str))
        if not set(map(str, people.levels)) & set(map(str, programs.levels)):
            raise JudgmentError(
                f"people and programs have no class in common: {mine} and {theirs}; give both the same classes"
            )
        place = {level: float(number) for number, level in enumerate(levels)}
        people, programs = (
            replace(
                one,
                grade=np.array([place[level] for level in one.levels])[one.level_place],
                declared=levels,
            )
            for one in (people, programs)
        )
    aligned = align_judgments([people, programs])
    is_person = np.isin(np.arange(len(aligned[0].annotators)), aligned[0].annotator)
    return stack_judgments(aligned), is_person


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
        names = pl.DataFrame({
            "query": items.query_ids().gather(cells["i"]), "item": items.ids.gather(cells["i"]),
            "other": items.ids.gather(cells["j"]),
        })  # fmt: skip
        blocks = getattr(judgments, "blocks", None)
        if blocks is not None and judgments.block is not None:
            names = names.with_columns(query=blocks.ids.gather(cells["b"]))
            query = cells["b"].to_numpy()
        if kind == "grade":
            names = names.drop("other")
        return cls(
            table["a"].to_numpy().astype(np.int64), table["cell"].to_numpy().astype(np.int64), table["v"].to_numpy(),
            np.asarray(instance, np.int64), np.asarray(query, np.int64), kind, nominal, names,
        )  # fmt: skip

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
        raise JudgmentError(
            f"there is only one person, so nothing shows how far people differ; have a second person judge: {ENOUGH}; "
            f"figures corrected by one person need no verdict: win_rate, or {option('trusted')} of aggregate"
        )
    if not (people.number > 1).any():
        raise JudgmentError(
            f"no two of the {n} people judged the same; have a second person judge some of the items: {ENOUGH}"
        )


def check_program(people: Labels, values: Floats, name: str, ids: pl.Series) -> str | None:
    """Return why a program cannot be tested with these labels, ``None`` where it can; refuse what is no label."""
    both = (people.number > 0) & ~np.isnan(values)
    if not both.any():
        return f"{name} judged nothing that people did; have people judge some of its items: {ENOUGH}"
    if people.kind == "grade" and not people.nominal:
        low, high = float(people.value.min()), float(people.value.max())
        outside = float(np.mean((values[both] < low) | (values[both] > high)))
        if outside > 0.5:
            raise JudgmentError(
                f"{name} grades from {np.nanmin(values):g} to {np.nanmax(values):g} and people from {low:g} to "
                f"{high:g}; give both on the same scale"
            )
    given = values[people.cell]
    for code in np.unique(people.annotator):
        own = (people.annotator == code) & ~np.isnan(given)
        if own.sum() < MIN_COMMON or (people.value[own] == given[own]).mean() < _COPIED:
            continue
        others = np.isin(people.cell, people.cell[own]) & (people.annotator != code)
        same = people.value[others] == given[others]
        if others.any() and same.mean() < _CONTRADICTED:
            raise JudgmentError(
                f"{name} gives the labels of {ids[int(code)]!r} on {counted(int(own.sum()), 'item')} in common: a copy "
                f"of a person cannot be tested against people; leave one of the two out"
            )
    n_common = len(np.unique(people.instance[(people.number > 1) & ~np.isnan(values)]))
    if n_common < MIN_COMMON:
        return f"{name} and two people have {counted(n_common, 'item')} in common; {ENOUGH}"
    return None
