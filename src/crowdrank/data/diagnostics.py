"""What is odd about judgments: annotators with bad habits, annotators who are not independent, items held apart."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ..errors import ParameterError
from .showing import ROWS, Shown, html_table


@dataclass(frozen=True, eq=False, kw_only=True)
class Diagnostics(Shown):
    """What is odd about judgments, as tables and as sentences; :func:`crowdrank.diagnose` makes it.

    Parameters
    ----------
    kind
        Kind of the judgments.
    n_annotators
        Annotators who judged something; 0 where the judgments do not name them.
    effective_annotators
        Number of independent annotators who would be as informative as these: the square of their number divided
        by the sum of the correlations of their errors. ``None`` without annotators.
    annotator_messages, group_messages
        What there is to say of annotators and of groups of items, one sentence each, with ids and what to do.
    notes
        What could not be looked at, and why.
    annotator_table, dependence_table, family_table, group_table
        The tables that the methods of these names return. Files hold neither pairs of annotators nor groups of items,
        which may be very many: read from a file, these two are ``None``.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xyxyxy"), "annotator": list("aabbcc"), "grade": [3, 1, 2, 1, 3, 2]}
    >>> cr.diagnose(votes).kind
    'grade'
    """

    kind: str
    n_annotators: int
    effective_annotators: float | None
    annotator_messages: tuple[str, ...]
    group_messages: tuple[str, ...]
    notes: tuple[str, ...]
    annotator_table: pl.DataFrame
    family_table: pl.DataFrame
    dependence_table: pl.DataFrame | None = None
    group_table: pl.DataFrame | None = None

    def __repr__(self) -> str:
        worth = "" if self.effective_annotators is None else f" worth {self.effective_annotators:.1f}"
        return f"Diagnostics({self.n_annotators:,} annotators{worth}, {len(self.messages)} messages)"

    def __len__(self) -> int:
        return len(self.annotator_table)

    def _repr_html_(self) -> str:
        """All there is to say, and the first annotators, for notebooks."""
        bounds = [name for name in self.annotator_table.columns if name.endswith(("_lower", "_upper"))]
        return html_table(repr(self), self.annotator_table.drop(bounds).head(ROWS), len(self), self.messages)

    def frame(self) -> pl.DataFrame:
        """Return a row for each annotator, as :meth:`annotators` does."""
        return self.annotators()

    @property
    def messages(self) -> tuple[str, ...]:
        """All there is to say, a sentence each."""
        return self.group_messages + self.annotator_messages + self.notes

    @property
    def sample_notes(self) -> tuple[str, ...]:
        """The notes that say which sample was looked at."""
        return tuple(note for note in self.notes if "were looked at on" in note)

    def annotators(self) -> pl.DataFrame:
        """Return a row for each annotator; all intervals are of 90 %.

        For preferences: n_judgments; share_left (of the answers that are no tie); position_bias, position_lower,
        position_upper (chosen left less chosen right, between equal items); share_tied; n_both_orders, share_flipped,
        flipped_lower, flipped_upper (pairs asked in both orders, and the share whose answer went with the side);
        n_swapped, share_swapped, swapped_lower, swapped_upper (pairs asked with the sides swapped, and the share of
        equal answers); n_triads, share_circular, circular_lower, circular_upper (three items with answers in a circle;
        guessing gives a quarter). For grades: n_judgments, same_grade, share_same, share_same_others (the commonest
        grade, its share, and its share among the grades of all others); repeated_difference (mean difference of two
        grades of the same item). Always: n_repeated, share_repeated, repeated_lower, repeated_upper (what was asked
        again in the same order, and the share of equal answers); family, the number of the family in :meth:`families`.
        A cell is null where there is nothing to compute it from.
        """
        return self.annotator_table

    def dependence(self) -> pl.DataFrame:
        """Return a row for each pair of annotators with enough in common, the largest excess first.

        annotator, other, n_common, agreement, expected (of independent annotators this good), excess, excess_lower,
        excess_upper (90 %), correlation (of their errors; 1 for copies), p_value, false_discovery (the share of false
        alarms to expect among all pairs with a value as small), agreement_when_wrong (share of the same wrong answer
        where either is wrong).
        """
        return _expect_table(self.dependence_table)

    def families(self) -> pl.DataFrame:
        """Return a row for each group of annotators, those given with the judgments first, then those found.

        family, origin (given or found), n_annotators, n_pairs (compared with each other), correlation (mean, of their
        errors), effective_annotators, annotators (the first five).
        """
        return self.family_table

    def groups(self) -> pl.DataFrame:
        """Return the items whose scores, relative to others of their query, the judgments do not determine.

        query, item, group (a number), relation: ``apart`` (never compared with the query's other groups), ``won`` or
        ``lost`` (all comparisons with others).
        """
        return _expect_table(self.group_table)


def _expect_table(table: pl.DataFrame | None) -> pl.DataFrame:
    """The table, unless it was left behind when the result was written to a file."""
    if table is None:
        raise ParameterError("files do not hold this table; make it with crowdrank.diagnose(judgments, consensus)")
    return table
