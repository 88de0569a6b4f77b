"""Preferences between two items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import polars as pl

from ..errors import JudgmentError
from ..protocols import Bools, Counts, Floats, Ints, Outcomes
from ..wording import one_of
from .answers import read_numbers, read_strength, read_winners
from .covariates import GIVEN, covariate_columns, covariate_labels, read_covariates
from .frames import to_frame
from .guessing import Wishes, side_columns, with_loser
from .intake import Rows, shared_fields
from .judged import Judged, check_codes, columns_of, judged_frame, without_repeats
from .presented import NOT_SWAPPED, as_shown
from .recording import shown_sides
from .wide import unpivot

if TYPE_CHECKING:
    from .rankings import Rankings


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Preferences(Judged):
    """One item against another: ``outcome`` is 1 where left won, -1 where right won, 0 for a tie.

    ``recorded`` is true in rows whose left and right are known to be the order in which they were written down, as in
    tables of winners and losers, and not that in which the annotator saw the items; ``None`` where nothing is known.

    ``strength`` is by how much the winner was better, where annotators were asked: 0 exactly where the two tie, and
    ``strength_levels`` is the largest there is on their scale. ``judgment`` numbers judgments where one has several
    rows, such as a probability p that right is better, in two rows of weights 1 - p and p: these count as one.

    ``covariates``, (n, k), are what left and right differ in besides, left against right, such as their lengths;
    ``covariate_names`` names them, ``covariate_transforms`` says how each was made of two numbers: ``"ratio"``,
    ``"log"``, ``"difference"``, ``"tanh"``, or ``"given"`` where it was one. Methods use those only that they are told
    to control for.

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
    strength: Floats | None = None
    strength_levels: float | None = None
    judgment: Ints | None = None
    covariates: Floats | None = None
    covariate_names: tuple[str, ...] = ()
    covariate_transforms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recorded is not None:
            known = np.ascontiguousarray(self.recorded, bool).view()
            known.flags.writeable = False
            object.__setattr__(self, "recorded", known)
        check_codes("left", self.left, self.n_items)
        check_codes("right", self.right, self.n_items)
        if not len(self.left) == len(self.right) == len(self.outcome):
            raise JudgmentError("left, right and outcome differ in length; give one of each per row")
        if self.recorded is not None and len(self.recorded) != len(self.outcome):
            raise JudgmentError(f"recorded has {len(self.recorded)} entries for {len(self.outcome)} preferences")
        self._check_strength()
        self._check_covariates()
        if self.judgment is not None:
            if len(self.judgment) != len(self.outcome):
                raise JudgmentError(f"judgment has {len(self.judgment)} entries for {len(self.outcome)} preferences")
            number = np.ascontiguousarray(self.judgment, np.int32).view()
            number.flags.writeable = False
            object.__setattr__(self, "judgment", number)

    def _check_strength(self) -> None:
        """Refuse strengths that do not match the outcomes, and keep the largest."""
        if self.strength is None:
            object.__setattr__(self, "strength_levels", None)
            return
        strength = np.ascontiguousarray(self.strength, np.float64).view()
        if len(strength) != len(self.outcome):
            raise JudgmentError(f"strength has {len(strength)} entries for {len(self.outcome)} preferences")
        if not (np.isfinite(strength).all() and (strength >= 0).all()):
            raise JudgmentError("strengths must be finite numbers of at least 0")
        if ((strength == 0) != (self.outcome == 0)).any():
            raise JudgmentError("a strength is 0 exactly where two items tie; correct the strengths or the outcomes")
        strength.flags.writeable = False
        object.__setattr__(self, "strength", strength)
        largest = float(strength.max(initial=0.0))
        object.__setattr__(self, "strength_levels", max(largest, self.strength_levels or 0.0))

    def _check_covariates(self) -> None:
        """Refuse covariates that do not match the preferences or their names."""
        if self.covariates is None:
            object.__setattr__(self, "covariate_names", ())
            object.__setattr__(self, "covariate_transforms", ())
            return
        values = np.ascontiguousarray(self.covariates, np.float64).view()
        if values.shape != (len(self.outcome), len(self.covariate_names)):
            raise JudgmentError(
                f"covariates of shape {values.shape} do not match {len(self.outcome)} preferences and the names "
                f"{', '.join(self.covariate_names)}; give a row to each and a column to each name"
            )
        if not np.isfinite(values).all():
            raise JudgmentError("covariates must be finite numbers")
        transforms = self.covariate_transforms or (GIVEN,) * len(self.covariate_names)
        if len(transforms) != len(self.covariate_names):
            raise JudgmentError("covariate_transforms has another length than covariate_names; give one to each name")
        object.__setattr__(self, "covariate_transforms", transforms)
        values.flags.writeable = False
        object.__setattr__(self, "covariates", values)

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def n_judgments(self) -> int:
        """Number of preferences; rows with the same ``judgment`` count as one."""
        return len(self) if self.judgment is None else len(np.unique(self.judgment))

    def first_rows(self) -> Counts:
        """Return one row of each judgment, the first."""
        return super().first_rows() if self.judgment is None else np.unique(self.judgment, return_index=True)[1]

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
        covariates: str | Sequence[str] = (),
        swapped: str | None = None,
        items: Any | None = None,
        duplicates: str = "keep",
        invalid: str = "error",
    ) -> Self:
        """Return preferences from a table with left, right and winner [, query, annotator, weight, time, group].

        Further columns are strength, duration and judgment, the number that rows of one judgment have in common. A
        table without left and right may have winner and loser [, tie]: then winners stand left, and the sides, which
        are ``recorded``, tell nothing of what annotators saw.

        Parameters
        ----------
        data, columns, items, duplicates, invalid
            As for :meth:`Grades.from_frame`. A pair asked again with left and right exchanged is not a duplicate.
        winner_codes
            What other winner values mean, such as ``{1: "left", 2: "right", 0: "tie"}``.
        covariates
            Names of what to control for, such as ``length``, in columns ``length_left`` and ``length_right`` (also
            ``_a`` and ``_b``), or in one column that is left less right. ``length:log`` chooses how two columns become
            one number: ``ratio`` (l - r) / (l + r), the default; ``log`` of 1 + l less that of 1 + r; ``difference``;
            ``tanh`` of the difference over its root mean square.
        swapped
            ``"COLUMN"`` or ``"COLUMN=VALUE"``: rows in which the right item was shown first, and winners are in the
            order shown; left and right are then as they were shown. ``"none"``: winners are about the columns as they
            stand, which is not the order shown.
        """
        table, columns = with_loser(to_frame(data), columns or {})
        if swapped is not None and swapped != NOT_SWAPPED:
            sides = side_columns(table, columns)
            if sides is None:
                raise JudgmentError("swapped= applies to a table with two sides and a winner; leave it out")
            table, _ = as_shown(table, swapped, sides, covariate_columns(table, covariates))
        wishes = Wishes(coded=winner_codes is not None, swapped=swapped is not None)
        rows = Rows(table, "preference", columns, invalid, wishes)
        codes = rows.codes("left", "right")
        outcome = read_winners(rows, codes[0]["left"], codes[0]["right"], codes[1], winner_codes)
        answers = {
            "outcome": outcome,
            "recorded": np.ones(rows.n, bool) if rows.by_winner or swapped == NOT_SWAPPED else None,
            "strength": read_strength(rows, outcome), "judgment": read_numbers(rows),
        }  # fmt: skip
        names: tuple[str, ...] = ()
        transforms: tuple[str, ...] = ()
        if covariates:
            answers["covariates"], names, transforms = read_covariates(rows, table, covariates)
        fields = shared_fields(rows, items, answers, codes)
        preferences = cls(**fields, covariate_names=names, covariate_transforms=transforms)
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
        own = {name: getattr(self, name) for name in ("recorded", "strength", "judgment", "covariates")}
        kept: dict[str, Any] = {name: None if column is None else column[mask] for name, column in own.items()}
        return replace(
            self, left=self.left[mask], right=self.right[mask], outcome=self.outcome[mask], **kept, **self.meta(mask)
        )

    def frame(self) -> pl.DataFrame:
        """Return a table with the user's own ids; the winner is left, right or tie."""
        winner = pl.Series(["right", "tie", "left"]).gather(self.outcome.astype(np.int64) + 1)
        own = {name: getattr(self, name) for name in ("strength", "judgment") if getattr(self, name) is not None}
        if self.covariates is not None:
            labels = covariate_labels(self.covariate_names, self.covariate_transforms)
            own |= dict(zip(labels, self.covariates.T, strict=True))
        return judged_frame(
            self.items, {"left": self.left, "right": self.right}, {"winner": winner, **self.meta_frame(), **own}
        )

    def across_queries(self) -> Self:
        """Return the same preferences with equal item ids of different queries taken as one item."""
        items, new, query = self.merge_queries()
        left, right = new[self.left], new[self.right]
        return replace(self, items=items, left=left, right=right, blocks=self.items.queries, block=query[self.left])

    def with_covariate(self, name: str, values: Floats) -> Self:
        """Return the preferences with one more covariate, left against right."""
        if name in self.covariate_names:
            raise JudgmentError(f"there is a covariate {name!r} already; choose another name")
        column = np.asarray(values, np.float64)[:, None]
        whole = column if self.covariates is None else np.hstack([self.covariates, column])
        return replace(
            self, covariates=whole, covariate_names=(*self.covariate_names, name),
            covariate_transforms=(*self.covariate_transforms, GIVEN),
        )  # fmt: skip

    def settle_swaps(self, rule: str) -> Self:
        """Return the preferences after a rule for annotators whose answer changes when left and right are exchanged.

        ``"keep"``: each answer counts. ``"tie"``: where the answers to both orders of a pair name different winners,
        or one names none, all of them become ties. ``"drop"``: such answers are left out. Pairs asked in one order only
        stay.

        Examples
        --------
        >>> table = {"left": ["x", "y"], "right": ["y", "x"], "winner": ["left", "left"], "annotator": ["ann", "ann"]}
        >>> Preferences.from_frame(table).settle_swaps("tie").outcome.tolist()
        [0, 0]
        """
        one_of(rule, ("keep", "tie", "drop"), "swaps", of_verb=True)
        if rule == "keep" or not len(self):
            return self
        unstable = self.changes_with_side()
        if rule == "drop":
            if unstable.all():
                raise JudgmentError("no answer stays the same when sides are exchanged, so none is left to use")
            return self.select(~unstable)
        strength = None if self.strength is None else np.where(unstable, 0.0, self.strength)
        return replace(self, outcome=np.where(unstable, 0, self.outcome).astype(np.int8), strength=strength)

    def changes_with_side(self) -> Bools:
        """Return which answers belong to an annotator, pair and query whose two orders name different winners, (n,).

        A win in one order and a tie in the other are different too.
        """
        turned = self.left > self.right
        first, second = np.where(turned, self.right, self.left), np.where(turned, self.left, self.right)
        outcome = np.where(turned, -self.outcome, self.outcome) * self.row_weight
        keys = [first, second, *([self.annotator] if self.n_annotators else [])]
        keys += [] if self.block is None else [self.block]
        cell = pl.DataFrame({str(place): key for place, key in enumerate(keys)}).to_struct("key").rank("dense")
        number = cell.to_numpy().astype(np.int64) - 1
        n = int(number.max()) + 1
        asked = [np.bincount(number[side], minlength=n) > 0 for side in (~turned, turned)]
        sums = [np.bincount(number[side], outcome[side], n) for side in (~turned, turned)]
        differ = asked[0] & asked[1] & (np.sign(sums[0]) != np.sign(sums[1]))
        rows: Bools = differ[number]
        return rows

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
