"""Judgments of several kinds about the same items, by the same annotators."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias

import numpy as np
import polars as pl

from ..errors import DataWarning, JudgmentError
from ..protocols import Bools, Counts, Floats, Ints
from ..wording import option
from .grades import Grades
from .index import Index, Items, Sized
from .judged import AnyJudged
from .preferences import Preferences
from .rankings import Rankings
from .showing import Shown
from .stacking import align_judgments, stack_judgments

Part: TypeAlias = Grades | Preferences | Rankings


@dataclass(frozen=True, eq=False, repr=False)
class Mixed(Sized, Shown):
    """Grades, preferences and rankings together, with one numbering of items and of annotators.

    ``parts`` holds one set of judgments of each kind that occurs, in the order grades, preferences, rankings. A
    judgment's place is that in its part, the parts taken one after the other.

    Examples
    --------
    >>> grades = Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 1)])
    >>> preferences = Preferences.from_rows([("bob", "q", "x", "z", "left")])
    >>> mixed = Mixed.of([preferences, Grades.from_rows([("bob", "q", "y", 2)]), grades])
    >>> mixed
    Mixed(3 grades, 1 preference, 3 items, 1 query, 2 annotators)
    >>> mixed.kinds, mixed.parts[1].items is mixed.items
    (('grade', 'preference'), True)
    """

    kind: ClassVar[str] = "mixed"

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, judgments: Sequence[Part]) -> Self:
        """Return judgments together: ids that are equal mean the same item or annotator, whatever the kind.

        Judgments of one kind given in several pieces become one part. A warning says which parts have neither an item
        nor an annotator in common with the others.
        """
        if not judgments:
            raise JudgmentError("there are no judgments to put together; give at least one set of them")
        for part in judgments:
            if not isinstance(part, Part):
                raise JudgmentError(
                    f"a {type(part).__name__} is not a set of judgments; give grades, preferences or rankings"
                )
            if isinstance(part, Grades) and part.nominal:
                raise JudgmentError(
                    "nominal grades have no order and do not say which item is better, so they cannot stand "
                    f"beside other judgments; give {option('levels')} from worst to best, "
                    "or aggregate them by themselves"
                )
        parts = align_judgments(judgments)
        pieces = [[part for part in parts if isinstance(part, kind)] for kind in (Grades, Preferences, Rankings)]
        mixed = cls(tuple(stack_judgments(same) for same in pieces if same))
        _warn_apart(mixed.parts)
        return mixed

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def __repr__(self) -> str:
        return f"Mixed({self._sizes({part.kind: part.n_judgments for part in self.parts})})"

    @property
    def items(self) -> Items:
        """Items of all parts, within their queries."""
        return self.parts[0].items

    @property
    def annotators(self) -> Index:
        """Annotators of all parts."""
        return self.parts[0].annotators

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each part."""
        return tuple(part.kind for part in self.parts)

    @property
    def n_judgments(self) -> int:
        """Number of judgments, a ranking counted as one."""
        return sum(part.n_judgments for part in self.parts)

    @property
    def annotator(self) -> Ints:
        """Annotator code of each judgment, part after part."""
        return np.concatenate([part.annotator for part in self.parts])

    @property
    def weight(self) -> Floats | None:
        """Weight of each judgment, ``None`` where none were given."""
        return None if all(part.weight is None for part in self.parts) else self.row_weight

    @property
    def row_weight(self) -> Floats:
        """Weight of each judgment, ones where none were given."""
        return np.concatenate([part.row_weight for part in self.parts])

    @property
    def groups(self) -> Index | None:
        """Families of annotators."""
        return self.parts[0].groups

    @property
    def group(self) -> Ints | None:
        """Family of each annotator."""
        return self.parts[0].group

    @property
    def block(self) -> Ints | None:
        """Former query of each judgment, after :meth:`across_queries`."""
        blocks = [part.block for part in self.parts if part.block is not None]
        return np.concatenate(blocks) if len(blocks) == len(self.parts) else None

    @property
    def judged_items(self) -> Bools:
        """Whether each item was judged at all, in any part."""
        judged: Bools = np.logical_or.reduce([part.judged_items for part in self.parts])
        return judged

    @property
    def offsets(self) -> Counts:
        """Bounds of the parts: the judgments of part ``p`` are ``offsets[p]`` up to ``offsets[p + 1]``."""
        return np.concatenate([[0], np.cumsum([len(part) for part in self.parts])]).astype(np.int64)

    def select(self, mask: Bools | Counts) -> Self:
        """Return some of the judgments only; items and annotators stay, a part without a judgment does not."""
        chosen = np.arange(len(self))[mask]
        places = [
            chosen[(chosen >= start) & (chosen < stop)] - start
            for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True)
        ]
        kept = tuple(part.select(place) for part, place in zip(self.parts, places, strict=True) if len(place))
        return type(self)(kept or (self.parts[0].select(places[0]),))

    def with_weights(self, weight: Floats) -> Self:
        """Return the judgments with other weights, those of weight 0 left out; items and annotators stay."""
        of_parts = np.split(weight, self.offsets[1:-1])
        parts = [part.with_weights(own) for part, own in zip(self.parts, of_parts, strict=True)]
        return type(self)(tuple(part for part in parts if len(part)) or (parts[0],))

    def _repr_html_(self) -> str:
        """The first judgments of each kind, for notebooks."""
        return "\n".join(part._repr_html_() for part in self.parts)

    def frame(self) -> pl.DataFrame:
        """Return a table with the user's own ids and a column that names the kind; other kinds' columns are null."""
        frames = [part.frame().select(pl.lit(part.kind).alias("kind"), pl.all()) for part in self.parts]
        return pl.concat(frames, how="diagonal_relaxed")

    def across_queries(self) -> Self:
        """Return the same judgments with equal item ids of different queries taken as one item."""
        parts = [part.across_queries() for part in self.parts]
        # the parts have the same items, so the first one's numbering is that of all
        return type(self)(tuple(replace(part, items=parts[0].items) for part in parts))

    def as_preferences(self, *, ties: bool = True) -> Preferences:
        """Return every part as preferences, in one set of them; with times only if every part has them."""
        return self._together([part.as_preferences(ties=ties) for part in self.parts])

    def as_rankings(self) -> Rankings:
        """Return every part as rankings, in one set of them; with times only if every part has them."""
        return self._together([part.as_rankings() for part in self.parts])

    def _together(self, parts: list[AnyJudged]) -> AnyJudged:
        """The parts, now of one kind, as one."""
        if any(part.time is None for part in parts):
            parts = [replace(part, time=None) for part in parts]
        return stack_judgments(parts)


def parts_of(judgments: Part | Mixed) -> tuple[Part, ...]:
    """Return the parts of judgments of several kinds, or the judgments as the only part."""
    return judgments.parts if isinstance(judgments, Mixed) else (judgments,)


def together(judgments: Sequence[Part]) -> Part | Mixed:
    """Return several sets of judgments as one: of their kind if that is the same, otherwise mixed."""
    mixed = Mixed.of(judgments)
    return mixed.parts[0] if len(mixed.parts) == 1 else mixed


def _warn_apart(parts: Sequence[Part]) -> None:
    """Warn of parts that share neither an item nor an annotator with the others, directly or through a third."""
    judged = [part.judged_items for part in parts]
    busy = [np.bincount(part.annotator, minlength=part.n_annotators) > 0 for part in parts]
    reached, waiting = {0}, [0]
    while waiting:
        here = waiting.pop()
        for other in set(range(len(parts))) - reached:
            if (judged[here] & judged[other]).any() or (busy[here] & busy[other]).any():
                reached.add(other)
                waiting.append(other)
    apart = [f"{part.kind}s" for number, part in enumerate(parts) if number not in reached]
    if apart:
        rest = " and ".join(f"{part.kind}s" for number, part in enumerate(parts) if number in reached)
        who = "item and no annotator" if len(parts[0].annotators) else "item"
        warnings.warn(
            f"the {' and '.join(apart)} share no {who} with the {rest}: scores of the two are only tied by the prior "
            "and cannot be compared; use the same ids where they mean the same, or aggregate each by itself",
            DataWarning, stacklevel=3,
        )  # fmt: skip
