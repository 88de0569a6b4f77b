"""A campaign that runs: its settings, its rule and its database, for the operations on it."""

from __future__ import annotations

import json
import re
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..api import TargetRule, target_rule
from .campaign_file import Settings
from .store import Store


class Done(NamedTuple):
    """What a statement did: how many rows it changed, and which it returned."""

    rowcount: int
    rows: list[Any]


class Statement:
    """A statement for both databases; PostgreSQL may need a lock that SQLite's one writer does not.

    It goes to the driver as it is: building and caching expressions would cost several times what SQLite needs. A plus
    before a column, as in ``+campaign = :campaign``, keeps SQLite from an index that would give it the whole campaign.

    Parameters
    ----------
    words
        The statement, with values as ``:name``, and lists of values as ``IN :name``.
    postgres
        What PostgreSQL gets behind it, such as ``FOR UPDATE``.
    """

    def __init__(self, words: str, postgres: str = "") -> None:
        self._lists = re.findall(r"\bIN :(\w+)", words)
        self._sqlite = re.sub(r"\bIN (:\w+)", r"IN (SELECT value FROM json_each(\1))", words)
        whole = re.sub(r"\bIN (:\w+)", r"= ANY(\1)", f"{words} {postgres}" if postgres else words)
        self._postgres = re.sub(r":(\w+)", r"%(\1)s", whole)
        self._row: Any = None

    def run(self, connection: sa.Connection, **values: Any) -> Done:
        """Run the statement with these values; rows have the names of their columns as attributes."""
        driver: Any = connection.connection.driver_connection
        if connection.dialect.name == "sqlite":
            for name in self._lists:
                values[name] = json.dumps(values[name])
            cursor = driver.execute(self._sqlite, values)
        else:
            cursor = driver.execute(self._postgres, values)
        if cursor.description is None:
            return Done(cursor.rowcount, [])
        if self._row is None:
            # a column that is called like a keyword of Python keeps its value and loses its name
            self._row = _row_type([column[0] for column in cursor.description])
        rows = [self._row._make(row) for row in cursor.fetchall()]
        return Done(len(rows), rows)

    def run_many(self, connection: sa.Connection, rows: list[dict[str, Any]]) -> int:
        """Run the statement with each of these rows of values, in one round trip; return how many rows it changed."""
        if len(rows) < 2:
            return sum(self.run(connection, **row).rowcount for row in rows)
        cursor: Any = connection.connection.driver_connection.cursor()  # type: ignore[union-attr]
        cursor.executemany(self._sqlite if connection.dialect.name == "sqlite" else self._postgres, rows)
        return int(cursor.rowcount)

    def first(self, connection: sa.Connection, **values: Any) -> Any:
        """Return the first row, or ``None``."""
        rows = self.run(connection, **values).rows
        return rows[0] if rows else None

    def rows(self, connection: sa.Connection, **values: Any) -> list[Any]:
        """Return all rows."""
        return self.run(connection, **values).rows

    def number(self, connection: sa.Connection, **values: Any) -> int:
        """Return the number in the first column of the one row, 0 where it is blank."""
        rows = self.run(connection, **values).rows
        return int(rows[0][0] or 0) if rows else 0


def _row_type(names: list[str]) -> Any:
    """A tuple whose entries have these names."""
    return namedtuple("Row", names, rename=True)


@dataclass(frozen=True, eq=False)
class Collection:
    """A campaign with all that its operations need."""

    id: int
    settings: Settings
    store: Store
    folder: Path
    contents: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    """Content, type and query of items that were shown before; they never change."""
    meant: dict[int, list[int]] = field(default_factory=dict)
    """Targets that the last fit means for each annotator, the most urgent first; a wish, and nobody is waited for."""

    @cached_property
    def rule(self) -> TargetRule | None:
        """The scheme where it looks at one target at a time, otherwise ``None``."""
        settings = self.settings
        return target_rule(settings.scheme, settings.params, settings.grades, kind=settings.kind)

    @property
    def lease(self) -> int:
        """Microseconds that a request is held."""
        return self.settings.lease_seconds * 1_000_000

    def now(self, connection: sa.Connection) -> int:
        """Return the time in microseconds."""
        return self.store.now(connection)


_EVENT = Statement(
    "INSERT INTO event (campaign, at, actor, kind, detail) VALUES (:campaign, :at, :actor, :kind, :detail)"
)


def record_event(
    collection: Collection, connection: sa.Connection, actor: str, kind: str, detail: Mapping[str, Any] | None = None
) -> None:
    """Write down what happened; never content, never a token."""
    _EVENT.run(
        connection, campaign=collection.id, at=collection.now(connection), actor=actor, kind=kind,
        detail=json.dumps(detail or {}),
    )  # fmt: skip
