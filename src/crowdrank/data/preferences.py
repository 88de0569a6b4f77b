"""Preferences between two items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import polars as pl

from ..errors import JudgmentError
from ..protocols import Bools, Counts, Ints, Outcomes
from .answers import read_winners
from .intake import Rows, shared_fields
from .judged import Judged, check_codes, columns_of, judged_frame, without_repeats
from .recording import shown_sides
from .wide import unpivot

if TYPE_CHECKING:
    from .rankings import Rankings


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Preferences(Judged):
    """One item against another: ``outcome`` is 1 where left won, -1 where right won, 0 for a tie.

    ``recorded`` is true in rows whose left and right are known to be the order of whoever wrote them down, as in tables
    of winners and losers, and not that in which the annotator saw the items; ``None`` where nothing is known.

    Examples
    --------
    >>> table = {"left": ["x", "y"], "right": ["y", "z"], "winner": ["left", "z"], "annotator": ["ann", "bob"]}
    >>> Preferences.from_frame(table).outcome.tolist()
    [1, -1]
    """

    kind: ClassVar[str] = "preference"
    answers: ClassVar[tuple[str, ...]] = ("left", "right", "outcome")

    left: Ints
    right: Ints
    outcome: Outcomes
    recorded: Bools | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recorded is not None:
            known = np.ascontiguousarray(self.recorded, bool).view()
            known.flags.writeable = False
            object.__setattr__(self, "recorded", known)
        check_codes("left", self.left, self.n_items)
        check_codes("right", self.right, self.n_items)
        if not len(self.left) == len(self.right) == len(self.outcome):
            raise JudgmentError("left, right and outcome differ in length; give one of each a row")
        if self.recorded is not None and len(self.recorded) != len(self.outcome):
            raise JudgmentError(f"recorded has {len(self.recorded)} entries for {len(self.outcome)} preferences")

    @property
    def n_judgments(self) -> int:
        """Number of preferences."""
        return len(self.outcome)

    @cached_property
    def shown(self) -> Bools:
        """Whether left and right of each row are as the annotator saw them, and so can tell of a liking for a side.

        Not where they are ``recorded``, nor where one side wins for nearly everybody, which is a way to write down
        winners and not a way to choose.
        """
        return shown_sides(self)

    @classmethod
    def from_frame(
        cls,
        data: Any,
        *,
        columns: Mapping[str, str] | None = None,
        winner_codes: Mapping[Any, str] | None = None,
        items: Any | None = None,
        duplicates: str = "keep",
        invalid: str = "error",
    ) -> Self:
        """Return preferences from a table with left, right and winner [, query, annotator, weight, time, group].

        A table without left and right may have winner and loser [, tie]: then winners stand left, and the sides, which
        are ``recorded``, tell nothing of what annotators saw.

        Parameters
        ----------
        data, columns, items, duplicates, invalid
            As for :meth:`Grades.from_frame`. A pair asked again with left and right exchanged is not a duplicate.
        winner_codes
            What other winner values mean, such as ``{1: "left", 2: "right", 0: "tie"}``.
        """
        rows = Rows(data, "preference", columns, invalid)
        codes = rows.codes("left", "right")
        outcome = read_winners(rows, codes[0]["left"], codes[0]["right"], codes[1], winner_codes)
        answers = {"outcome": outcome, "recorded": np.ones(rows.n, bool) if rows.by_winner else None}
        preferences = cls(**shared_fields(rows, items, answers, codes))
        left, right, n = preferences.left, preferences.right, preferences.n_items
        if rows.by_winner:
            # who won does not make it another question
            left, right = np.minimum(left, right), np.maximum(left, right)
        return without_repeats(preferences, duplicates, (left, n), (right, n))

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[Any, Any, Any, Any, Any]], *, duplicates: str = "keep") -> Self:
        """Return preferences from tuples of (annotator, query, left, right, winner)."""
        table = columns_of(rows, ("annotator", "query", "left", "right", "winner"))
        return cls.from_frame(table, duplicates=duplicates)

    @classmethod
    def from_wide(
        cls,
        data: Any,
        annotators: Sequence[str],
        *,
        columns: Mapping[str, str] | None = None,
        winner_codes: Mapping[Any, str] | None = None,
        items: Any | None = None,
        duplicates: str = "keep",
        invalid: str = "error",
    ) -> Self:
        """Return preferences from a table with a row per pair and a column per annotator; a blank is not judged."""
        return cls.from_frame(
            unpivot(data, annotators, "winner"), columns=columns, winner_codes=winner_codes, items=items,
            duplicates=duplicates, invalid=invalid,
        )  # fmt: skip

    def select(self, mask: Bools | Counts) -> Self:
        """Return the preferences of some rows only; items and annotators stay."""
        known = None if self.recorded is None else self.recorded[mask]
        return replace(
            self, left=self.left[mask], right=self.right[mask], outcome=self.outcome[mask], recorded=known,
            **self.meta(mask),
        )  # fmt: skip

    def frame(self) -> pl.DataFrame:
        """Return a table with the user's own ids; the winner is left, right or tie."""
        winner = pl.Series(["right", "tie", "left"]).gather(self.outcome.astype(np.int64) + 1)
        return judged_frame(
            self.items, {"left": self.left, "right": self.right}, {"winner": winner, **self.meta_frame()}
        )

    def across_queries(self) -> Self:
        """Return the same preferences with equal item ids of different queries taken as one item."""
        items, new, query = self.merged()
        left, right = new[self.left], new[self.right]
        return replace(self, items=items, left=left, right=right, blocks=self.items.queries, block=query[self.left])

    def as_rankings(self) -> Rankings:
        """Return each preference as a ranking of two items; a tie ranks both equally.

        Examples
        --------
        >>> table = {"left": ["x", "y"], "right": ["y", "z"], "winner": ["right", "tie"]}
        >>> Preferences.from_frame(table).as_rankings().frame().select("item", "rank").rows()
        [('y', 1), ('x', 2), ('y', 1), ('z', 1)]
        """
        from .rankings import Rankings

        # of items that tie the one with the lower code comes first
        first = (self.outcome > 0) | ((self.outcome == 0) & (self.left < self.right))
        item = np.column_stack([np.where(first, self.left, self.right), np.where(first, self.right, self.left)])
        rank = np.column_stack([np.ones(len(self), np.int32), 1 + np.abs(self.outcome).astype(np.int32)])
        return Rankings(
            items=self.items, annotators=self.annotators, item=item.ravel(), rank=rank.ravel(),
            offsets=2 * np.arange(len(self) + 1), groups=self.groups, group=self.group, blocks=self.blocks,
            **self.meta(slice(None)),
        )  # fmt: skip

    def as_preferences(self, *, ties: bool = True) -> Preferences:
        """Return the preferences themselves, without ties if so asked."""
        return self if ties else self.select(self.outcome != 0)
