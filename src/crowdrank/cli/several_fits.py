"""``crowdrank aggregate --by`` and ``--criteria``: several fits, one table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .outputs import deliver
from .talk import Talk
from .votes import read_votes

if TYPE_CHECKING:
    from ..data.consensus import Consensus
    from .options import Reading

_MOST_VALUES = 100


def check_alone(by: str | None, criteria: str | None, others: Mapping[str, Any]) -> None:
    """Refuse options that one table of several fits has no place for."""
    from ..errors import ParameterError

    mine = "--by" if by is not None else "--criteria"
    if by is not None and criteria is not None:
        raise ParameterError("--by and --criteria are two tables; give one of them")
    for name, value in others.items():
        if value:
            raise ParameterError(f"{name} is about one ranking, and {mine} makes several; leave one out")


class SeveralFits(NamedTuple):
    """How each of the fits is made."""

    votes: Sequence[str]
    reading: Reading
    method: str
    given: Mapping[str, Any]
    quiet: bool

    def deliver(self, by: str | None, criteria: Sequence[str] | None, out: str | None, format: str | None) -> None:
        """Write the table of categories, or that of criteria."""
        from .. import api
        from .terminal_tables import show_frame

        with Talk(quiet=self.quiet) as talk:
            if by is not None:
                parts = {one: self._fit(talk, where=f"{by}={one}") for one in self._values(by)}
                frame = api.category_table(self._fit(talk), parts)
            else:
                frame = api.criteria_table({one: self._fit(talk, column=f"grade={one}") for one in criteria or ()})
            deliver(frame, out, format, talk, lambda: show_frame(frame, bold="item", cut=("item",)))

    def _fit(self, talk: Talk, *, where: str | None = None, column: str | None = None) -> Consensus:
        """The consensus of some rows, or of one column of grades."""
        from .. import api

        changes = {"where": where, "column": column}
        more: dict[str, Any] = {
            name: [*(getattr(self.reading, name) or ()), text] for name, text in changes.items() if text
        }
        control = self.given.get("control")
        judgments = read_votes(self.votes, dataclasses.replace(self.reading, **more), talk, control)
        with talk.working("finding the consensus"):
            return api.aggregate(judgments, self.method, **self.given)

    def _values(self, by: str) -> list[str]:
        """The values of the column."""
        import polars as pl

        from ..errors import JudgmentError
        from ..io.tables import read_table

        tables = [read_table(name) for name in self.votes]
        for name, table in zip(self.votes, tables, strict=True):
            if by not in table.columns:
                raise JudgmentError(f"{name} has no column {by!r}; its columns are {', '.join(table.columns)}")
        values = sorted({str(one) for table in tables for one in table[by].cast(pl.String).drop_nulls().to_list()})
        if not 1 < len(values) <= _MOST_VALUES:
            raise JudgmentError(f"--by {by} has {len(values):,} values; name a column with 2 to {_MOST_VALUES}")
        return values
