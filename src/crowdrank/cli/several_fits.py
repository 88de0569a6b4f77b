"""``crowdrank aggregate --by`` and ``--criteria``: several fits, one table."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from .outputs import deliver
from .talk import Talk
from .votes import read_settled

if TYPE_CHECKING:
    from ..api import CategoryFit
    from ..data.consensus import Consensus
    from ..data.judgments import Judgments, Mixed
    from .options import Reading

_MOST_VALUES = 100


def check_alone(by: str | None, criteria: str | None, votes: Sequence[str], others: Mapping[str, Any]) -> None:
    """Refuse options that one table of several fits has no place for, and input that can be read only once."""
    from ..errors import ParameterError

    mine = "--by" if by is not None else "--criteria"
    if by is not None and criteria is not None:
        raise ParameterError("--by and --criteria make different tables; give only one of them")
    if "-" in votes:
        raise ParameterError(
            f"{mine} reads the votes several times, but standard input can be read only once; give a file"
        )
    for name, value in others.items():
        if value:
            raise ParameterError(f"{name} applies to one ranking, but {mine} makes several; leave one out")


class SeveralFits(NamedTuple):
    """How the votes are read and what each fit is asked for, method included."""

    votes: Sequence[str]
    reading: Reading
    wanted: Mapping[str, Any]
    families: str | None
    swaps: str
    quiet: bool

    def deliver(self, by: str | None, criteria: Sequence[str] | None, out: str | None, format: str | None) -> None:
        """Write the table of categories, or that of criteria."""
        from .. import api
        from ..io.notices import collect_notices
        from .terminal_tables import show_frame

        with Talk(quiet=self.quiet) as talk:
            if by is not None:
                values = self._values(by)
                judgments = self._read(talk)
                with collect_notices() as said_of_all, talk.working("finding the consensus"):
                    whole = api.fit_category(judgments, **self.wanted)
                for text in said_of_all:
                    talk.say(text)
                parts = {one: self._category(talk, by, one, whole.consensus, said_of_all) for one in values}
                frame = api.category_table(whole, parts)
            else:
                fits = {}
                for one in criteria or ():
                    judgments = self._read(talk, column=f"grade={one}")
                    with talk.working("finding the consensus"):
                        fits[one] = api.aggregate(judgments, **self.wanted)
                frame = api.criteria_table(fits)
            deliver(frame, out, format, talk, lambda: show_frame(frame, bold="item", cut=("item",)))

    def _read(self, talk: Talk, **changes: str) -> Judgments | Mixed:
        """The judgments, of some rows or of one column of grades."""
        more: dict[str, Any] = {name: [*(getattr(self.reading, name) or ()), text] for name, text in changes.items()}
        reading, control = dataclasses.replace(self.reading, **more), self.wanted["control"]
        return read_settled(self.votes, reading, talk, control, self.swaps, self.families)

    def _category(self, talk: Talk, by: str, one: str, whole: Consensus, said_of_all: Sequence[str]) -> CategoryFit:
        """The consensus of one category by the method of all judgments, whose scores it is compared with."""
        from .. import api
        from ..data.naming import named_annotators
        from ..io.notices import collect_notices

        with _speak_of(f"{by} {one}", talk, said_of_all):
            with warnings.catch_warnings(), collect_notices():
                # what there is to say of the votes was said of all of them
                warnings.simplefilter("ignore")
                judgments = self._read(Talk(quiet=True), where=f"{by}={one}")
            changes: dict[str, Any] = {"method": whole.method, "params": whole.params, "want": "order"}
            if self.wanted["control"] is not None:
                names = api.names_to_control(judgments, self.wanted["control"])
                none = api.zero_covariates(judgments, names)
                changes["control"] = [name for name in names if name not in none] or None
                for name in none:
                    talk.say(f"{by} {one}: {name} is 0 in all preferences and makes no difference there")
            if self.wanted["trusted"]:
                present = named_annotators(judgments, self.wanted["trusted"], "trusted", absent=True)
                ids = [who for who, chosen in zip(judgments.annotators, present, strict=True) if chosen]
                changes["trusted"] = ids or self.wanted["trusted"]
            with talk.working("finding the consensus"):
                return api.fit_category(judgments, **{**self.wanted, **changes})

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


@contextmanager
def _speak_of(part: str, talk: Talk, said_of_all: Sequence[str]) -> Iterator[None]:
    """Begin what is said, warned of or refused meanwhile with the part that it is about, unless it holds for all."""
    from ..errors import CrowdrankError
    from ..io.notices import collect_notices

    try:
        with warnings.catch_warnings(record=True) as warned, collect_notices() as notices:
            yield
    except CrowdrankError as error:
        raise type(error)(f"{part}: {error}") from None
    for text in notices:
        if text not in said_of_all:
            talk.say(f"{part}: {text}")
    for one in warned:
        warnings.warn(f"{part}: {one.message}", one.category, stacklevel=2)
