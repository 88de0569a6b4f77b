"""Preferences between two items, and rankings of several, best first; each can be turned into the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from ..errors import JudgmentError
from ..protocols import Bools, Counts, Floats, Ints, Outcomes
from ..wording import one_of
from .columns import Understood, Wishes, side_columns, with_loser
from .covariates import GIVEN, covariate_columns, covariate_labels, read_covariates
from .frames import to_frame, unpivot
from .index import LONG, Items, run_starts, set_fields
from .intake import Rows, read_numbers, read_strength, read_winners, shared_fields, short
from .judged import Judged, columns_of, judged_frame, pairs_within, row_codes, without_repeats
from .presented import NOT_SWAPPED, as_shown


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
    besides: ClassVar[tuple[str, ...]] = ("recorded", "strength", "judgment", "covariates")

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
        if not len(self.left) == len(self.right) == len(self.outcome):
            raise JudgmentError("left, right and outcome differ in length; give one of each per row")
        levels = None
        if self.strength is not None:
            if not (np.isfinite(self.strength).all() and (self.strength >= 0).all()):
                raise JudgmentError("strengths must be finite numbers of at least 0")
            if ((self.strength == 0) != (self.outcome == 0)).any():
                what = "a strength is 0 exactly where two items tie"
                raise JudgmentError(f"{what}; correct the strengths or the outcomes")
            levels = max(float(self.strength.max(initial=0.0)), self.strength_levels or 0.0)
        names: tuple[str, ...] = ()
        transforms: tuple[str, ...] = ()
        if self.covariates is not None:
            names, transforms = self.covariate_names, self.covariate_transforms or (GIVEN,) * len(self.covariate_names)
            if self.covariates.shape != (len(self), len(names)):
                what = f"covariates of shape {self.covariates.shape} do not match {len(self)} preferences"
                remedy = "give a row to each and a column to each name"
                raise JudgmentError(f"{what} and the names {', '.join(names)}; {remedy}")
            if not np.isfinite(self.covariates).all():
                raise JudgmentError("covariates must be finite numbers")
            if len(transforms) != len(names):
                what = "covariate_transforms has another length than covariate_names"
                raise JudgmentError(f"{what}; give one to each name")
        set_fields(self, strength_levels=levels, covariate_names=names, covariate_transforms=transforms)

    @property
    def n_judgments(self) -> int:
        """Number of preferences; rows with the same ``judgment`` count as one."""
        return len(self) if self.judgment is None else len(np.unique(self.judgment))

    def first_rows(self) -> Counts:
        """Return one row of each judgment, the first."""
        return super().first_rows() if self.judgment is None else np.unique(self.judgment, return_index=True)[1]

    @property
    def pair(self) -> Counts:
        """A number for the two items of each row, whichever stands left."""
        low, high = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        return low.astype(np.int64) * self.n_items + high

    @cached_property
    def shown(self) -> Bools:
        """Whether left and right of each row are as the annotator saw them, and so can tell of a liking for a side.

        Not where they are ``recorded``, nor where one side wins for nearly everybody, which is a way to write down
        winners and not a way to choose.

        Nearly everybody is 90 % of the annotators, each counted by up to 20 answers, and nearly all winners of an
        annotator are 95 %, or those of all on average; of fewer than three annotators, who may all be careless, all
        winners have to stand on that side. Fewer than eight answers may do so by chance.

        Sides are as seen after all where the same pairs were asked in both orders and the answers went with the side in
        at least three of four cases: a recorder would write down one winner twice, and guessing gives one half.
        """
        shown: Bools = np.ones(len(self), bool) if self.recorded is None else ~self.recorded
        if not shown.any():
            return shown
        rest = self if shown.all() else self.select(shown)
        return np.zeros(len(shown), bool) if _one_side_wins(rest) else shown

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
        if not isinstance(data, Understood):
            data, columns = with_loser(to_frame(data), columns or {})
        if swapped is not None and swapped != NOT_SWAPPED:
            sides = side_columns(data, columns or {})
            if sides is None:
                raise JudgmentError("swapped= applies to a table with two sides and a winner; leave it out")
            data, _ = as_shown(data, swapped, sides, covariate_columns(data, covariates))
        wishes = Wishes(coded=winner_codes is not None, swapped=swapped is not None)
        rows = Rows(data, "preference", columns, invalid, wishes)
        codes = rows.codes("left", "right")
        outcome = read_winners(rows, codes[0]["left"], codes[0]["right"], codes[1], winner_codes)
        answers = {"outcome": outcome, "strength": read_strength(rows, outcome), "judgment": read_numbers(rows)}
        answers["recorded"] = np.ones(rows.n, bool) if rows.by_winner or swapped == NOT_SWAPPED else None
        named: dict[str, Any] = {}
        if covariates:
            answers["covariates"], names, transforms = read_covariates(rows, data, covariates)
            named = {"covariate_names": names, "covariate_transforms": transforms}
        preferences = cls(**shared_fields(rows, items, answers, codes), **named)
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
        rules: dict[str, Any] = {"items": items, "duplicates": duplicates, "invalid": invalid}
        return cls.from_frame(unpivot(data, annotators, "winner"), columns=columns, winner_codes=winner_codes, **rules)

    def frame(self) -> pl.DataFrame:
        """Return a table with the user's own ids; the winner is left, right or tie."""
        winner = winner_words(self.outcome)
        own = {name: getattr(self, name) for name in ("strength", "judgment") if getattr(self, name) is not None}
        if self.covariates is not None:
            labels = covariate_labels(self.covariate_names, self.covariate_transforms)
            own |= dict(zip(labels, self.covariates.T, strict=True))
        sides = {"left": self.left, "right": self.right}
        return judged_frame(self.items, sides, {"winner": winner, **self.meta_frame(), **own})

    def covariate_columns(self, names: Sequence[str]) -> Floats:
        """Return some of the covariates in this order, (n, k)."""
        assert self.covariates is not None
        places = [self.covariate_names.index(name) for name in names]
        in_place = places == list(range(self.covariates.shape[1]))
        return self.covariates if in_place else np.ascontiguousarray(self.covariates[:, places])

    def with_covariate(self, name: str, values: Floats) -> Self:
        """Return the preferences with one more covariate, left against right."""
        if name in self.covariate_names:
            raise JudgmentError(f"there is a covariate {name!r} already; choose another name")
        column = np.asarray(values, np.float64)[:, None]
        whole = column if self.covariates is None else np.hstack([self.covariates, column])
        names, transforms = (*self.covariate_names, name), (*self.covariate_transforms, GIVEN)
        return replace(self, covariates=whole, covariate_names=names, covariate_transforms=transforms)

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
        outcome = np.where(turned, -self.outcome, self.outcome) * self.row_weight
        number = row_codes(self.pair, self.row_annotator, *([] if self.block is None else [self.block]))
        n = int(number.max()) + 1
        asked = [np.bincount(number[side], minlength=n) > 0 for side in (~turned, turned)]
        sums = [np.bincount(number[side], outcome[side], n) for side in (~turned, turned)]
        return (asked[0] & asked[1] & (np.sign(sums[0]) != np.sign(sums[1])))[number]

    def as_rankings(self) -> Rankings:
        """Return each preference as a ranking of two items; a tie ranks both equally.

        Examples
        --------
        >>> table = {"left": ["x", "y"], "right": ["y", "z"], "winner": ["right", "tie"]}
        >>> Preferences.from_frame(table).as_rankings().frame().select("item", "rank").rows()
        [('y', 1), ('x', 2), ('y', 1), ('z', 1)]
        """

        # of items that tie the one with the lower code comes first
        first = (self.outcome > 0) | ((self.outcome == 0) & (self.left < self.right))
        item = np.column_stack([np.where(first, self.left, self.right), np.where(first, self.right, self.left)])
        rank = np.column_stack([np.ones(len(self), np.int32), 1 + np.abs(self.outcome).astype(np.int32)])
        offsets = 2 * np.arange(len(self) + 1)
        return Rankings(item=item.ravel(), rank=rank.ravel(), offsets=offsets, **self.meta(slice(None)))

    def as_preferences(self, *, ties: bool = True) -> Preferences:
        """Return the preferences themselves, without ties if so asked."""
        return self if ties else self.select(self.outcome != 0)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rankings(Judged):
    """Items of one query in order; ``rank`` 1 is best, equal ranks tie, items left out are not judged.

    ``annotator``, ``weight``, ``time`` and ``block`` have one entry per ranking; ``item`` and ``rank`` one per row,
    ranking after ranking and best first, those of ranking ``r`` from ``offsets[r]`` up to ``offsets[r + 1]``.

    Examples
    --------
    >>> table = {"annotator": ["ann"] * 3, "item": ["x", "y", "z"], "rank": [2, 1, 2]}
    >>> rankings = Rankings.from_frame(table)
    >>> rankings.frame()["item"].to_list(), rankings.rank.tolist()
    (['y', 'x', 'z'], [1, 2, 2])
    """

    kind: ClassVar[str] = "ranking"
    answers: ClassVar[tuple[str, ...]] = ("item", "rank", "offsets")

    item: Ints
    rank: Ints
    offsets: Counts

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.item) != len(self.rank) or self.offsets[0] != 0 or self.offsets[-1] != len(self.item):
            raise JudgmentError("item, rank and offsets of the rankings do not match")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def ranking(self) -> Ints:
        """Number of the ranking that each row belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.offsets))

    @property
    def query(self) -> Ints:
        """Query code of each ranking."""
        return self.items.query[self.item[self.offsets[:-1]]]

    @classmethod
    def from_frame(
        cls, data: Any, *, columns: Mapping[str, str] | None = None, items: Any | None = None, invalid: str = "error"
    ) -> Self:
        """Return rankings from a table with columns item and rank [, query, annotator, ranking, weight, time, group].

        Rows of one query and annotator make up a ranking; a ``ranking`` column distinguishes several of them.

        Parameters
        ----------
        data, columns, items, invalid
            As for :meth:`crowdrank.data.grades.Grades.from_frame`.
        """
        rows = Rows(data, "ranking", columns, invalid)
        answers: dict[str, Any] = {"rank": rows.numbers("rank"), "row": np.arange(rows.n)}
        if rows.has("ranking"):
            answers["ranking"] = rows.codes("ranking")[0]["ranking"]
        return cls(**assemble_rankings(shared_fields(rows, items, answers, rows.codes("item"))))

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[Any, Any, Any, Any]]) -> Self:
        """Return rankings from tuples of (annotator, query, item, rank)."""
        return cls.from_frame(columns_of(rows, ("annotator", "query", "item", "rank")))

    @classmethod
    def of_answers(cls, judged: Judged, item: Ints, value: Floats) -> Self:
        """Return one ranking of each annotator's answers to a query, which gave an item a value, larger is better.

        Equal values tie. What was answered twice has the mean value; a ranking weighs the mean of its answers' weights
        and has their latest time. Without annotators all answers to a query are one ranking.
        """
        from ..kernels.segments import join_ties

        keys = [judged.items.query[item], judged.annotator if judged.n_annotators else None, judged.block]
        by = [key for key in keys if key is not None]
        order = np.lexsort((item, *reversed(by)))
        lists = run_starts([key[order] for key in by])
        cells = run_starts([*(key[order] for key in by), item[order]])
        value, weight = value[order], judged.row_weight[order]
        lowest, highest = np.minimum.reduceat(value, cells), np.maximum.reduceat(value, cells)
        mean = np.add.reduceat(weight * value, cells) / np.add.reduceat(weight, cells)
        mean, codes = np.where(lowest == highest, lowest, mean), item[order][cells]
        number = np.searchsorted(lists, cells, side="right") - 1
        starts = np.searchsorted(number, np.arange(len(lists)))
        # rounding must not tell equal values apart
        mean = join_ties(mean, np.append(starts, len(mean)))
        best = np.lexsort((codes, -mean, number))
        meta = judged.meta(order[lists]) | {"duration": None}
        if judged.weight is not None:
            meta["weight"] = np.add.reduceat(weight, lists) / np.diff(lists, append=len(order))
        if judged.time is not None:
            meta["time"] = np.maximum.reduceat(judged.time[order], lists)
        rank, offsets = _dense(-mean[best], starts, number), np.append(starts, len(codes))
        return cls(item=codes[best], rank=rank, offsets=offsets, **meta)

    def select(self, mask: Bools | Counts) -> Self:
        """Return some of the rankings only; items and annotators stay."""
        chosen = np.arange(len(self))[mask]
        lengths = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.repeat(self.offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return replace(self, item=self.item[rows], rank=self.rank[rows], offsets=offsets, **self.meta(chosen))

    def frame(self) -> pl.DataFrame:
        """Return a table with the user's own ids and a number for each ranking."""
        number = self.ranking
        columns = {name: pl.Series(values).gather(number) for name, values in self.meta_frame().items()}
        return judged_frame(self.items, {"item": self.item}, {"rank": self.rank, "ranking": number, **columns})

    def as_rankings(self) -> Rankings:
        """Return the rankings themselves."""
        return self

    def as_preferences(self, *, ties: bool = True) -> Preferences:
        """Return every pair of every ranking as a preference of the ranking's weight; equal ranks tie.

        ``ties=False`` leaves equal ranks out.
        """
        first, second = pairs_within(np.arange(len(self.item)), np.repeat(self.offsets[1:], np.diff(self.offsets)))
        outcome = np.sign(self.rank[second] - self.rank[first]).astype(np.int8)
        if not ties:
            keep = outcome != 0
            first, second, outcome = first[keep], second[keep], outcome[keep]
        fields = self.meta(self.ranking[first]) | {"duration": None}
        return preferences_between(self.item[first], self.item[second], outcome, fields)


def winner_words(outcome: Outcomes) -> pl.Series:
    """Return who won each preference in words: left, right or tie."""
    return pl.Series(["right", "tie", "left"]).gather(outcome.astype(np.int64) + 1)


def preferences_between(first: Ints, second: Ints, outcome: Outcomes, fields: dict[str, Any]) -> Preferences:
    """Return preferences made of other judgments: pairs of items, who won of each, and fields that every kind has."""
    # the item with the lower code stands left, so the side tells nothing about who won
    swap = first > second
    left, right = np.where(swap, (second, first), (first, second))
    outcome, recorded = np.where(swap, -outcome, outcome).astype(np.int8), np.ones(len(first), bool)
    return Preferences(left=left, right=right, outcome=outcome, recorded=recorded, **fields)


def assemble_rankings(fields: dict[str, Any]) -> dict[str, Any]:
    """Sort rows into rankings, check each, and make its ranks dense; return the fields of rankings."""
    items: Items = fields["items"]
    item, rank, row = fields["item"], fields.pop("rank"), fields.pop("row")
    annotator, number = fields["annotator"], fields.pop("ranking", None)
    keys = [key for key in (items.query[item], annotator, number) if key is not None and len(key)]
    order = np.lexsort((item, rank, *reversed(keys)))
    starts = run_starts([key[order] for key in keys])
    offsets = np.append(starts, len(order))
    number_of = np.repeat(np.arange(len(starts)), np.diff(offsets))
    item, row = item[order], row[order]
    by_item = np.lexsort((row, item, number_of))
    again = (np.diff(item[by_item]) == 0) & (np.diff(number_of[by_item]) == 0)
    if again.any():
        twice = by_item[1:][again]
        first = twice[np.argmin(row[twice])]
        more = f" (and {len(twice) - 1} more rows like it)" if len(twice) > 1 else ""
        named = number is not None or len(annotator) > 0
        remedy = "drop one" if named else "add an annotator or ranking column that distinguishes the rankings"
        what = f"item {short(items.ids[int(item[first])])} appears twice in one ranking"
        remedy = f"{remedy}, or add a ranking column if these are several rankings"
        raise JudgmentError(f"{what}, the second time in row {int(row[first]) + 1}{more}; {remedy}")
    fields.update(item=item, rank=_dense(rank[order], starts, number_of), offsets=offsets)
    for name in ("annotator", "weight", "time", "duration", "block"):
        if (column := fields.get(name)) is None or not len(column):
            continue
        fields[name] = column[order][starts]
        differs = column[order] != fields[name][number_of]
        if name == "weight" and differs.any():
            other = int(row[np.argmax(differs)]) + 1
            raise JudgmentError(f"rows of one ranking have different weights (row {other}); give them one weight")
    return fields


def _dense(rank: Floats, starts: Counts, number: Counts) -> Ints:
    """Ranks 1, 2, ... within each ranking, equal where the given ranks are equal."""
    step = np.ones(len(rank), np.int64)
    step[1:] = rank[1:] != rank[:-1]
    step[starts] = 1
    climbed = np.cumsum(step)
    return (climbed - climbed[starts][number] + 1).astype(np.int32)


FEWEST = 20
"""Of fewer answers nothing is said; an annotator with more counts no more than one with this many."""

NEARLY_ALL = 0.95
"""Share of an annotator's answers, or of a file's, on one side that is nearly all."""

_NEARLY_EVERYONE = 0.9
_SLACK = 1 - 1e-9
_FEW_ANNOTATORS = 3
_MIN_ANSWERS = 8
"""Fewest answers; this many coins fall on one side less than once in a hundred times."""

_FEWEST_BOTH = 5
_WITH_THE_SIDE = 0.75


def _one_side_wins(preferences: Preferences) -> bool:
    """Whether nearly everybody's winners stand on one side, and not because nearly everybody goes by the side."""
    n, who = max(preferences.n_annotators, 1), preferences.row_annotator
    if preferences.weight is None:
        counts = outcome_counts(who, preferences.outcome, n).astype(np.float64)
    else:
        cell = who * np.int64(3) + preferences.outcome + 1
        counts = np.bincount(cell, preferences.weight, 3 * n).astype(np.float64).reshape(n, 3)
    right, _, left = counts.T
    decided = left + right
    if max(float(decided.sum()), float(np.count_nonzero(preferences.outcome))) < _MIN_ANSWERS:
        return False
    busy, side = decided > 0, left if left.sum() >= right.sum() else right
    several = bool(busy.sum() >= _FEW_ANNOTATORS)
    evidence, share = np.minimum(decided, FEWEST)[busy], side[busy] / decided[busy]
    alike = evidence[share >= _SLACK * (NEARLY_ALL if several else 1.0)].sum()
    together = several and evidence @ share >= _SLACK * NEARLY_ALL * evidence.sum()
    if not (alike >= _SLACK * _NEARLY_EVERYONE * evidence.sum() or together):
        return False
    # whether answers to the same pair by the same annotator mostly change with the sides
    pair = preferences.pair
    # of very many answers those to some pairs will do
    some = pair % max(-(-len(pair) // LONG), 1) == 0
    chosen = np.flatnonzero(some & (preferences.outcome != 0))
    block = [] if preferences.block is None else [preferences.block[chosen]]
    group = row_codes(pair[chosen], *block, who[chosen])
    low_won = (preferences.outcome[chosen] > 0) == (preferences.left < preferences.right)[chosen]
    weights = preferences.row_weight[chosen]
    for_low, for_high = np.bincount(group, weights * low_won), np.bincount(group, weights * ~low_won)
    changed = for_low * for_high
    kept = np.maximum(for_low * (for_low - 1.0) + for_high * (for_high - 1.0), 0.0) / 2.0
    both = int((changed > 0).sum())
    return not (both >= _FEWEST_BOTH and bool(changed.sum() >= _WITH_THE_SIDE * (changed.sum() + kept.sum())))


def outcome_counts(annotator: Ints, outcome: Outcomes, n: int, *, step: int = 1) -> Counts:
    """Return how often each of ``n`` annotators chose right, tied and chose left, (n, 3); of one block in ``step``."""
    if len(outcome) >= LONG:
        from ..kernels.pairs import count_outcomes

        return count_outcomes(annotator, outcome, n, step)
    return np.bincount(annotator * np.int64(3) + outcome + 1, minlength=3 * n).reshape(n, 3)
