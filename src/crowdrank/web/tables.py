"""The tables of a collection, and how an older database is brought up to date.

Numbered seats make too many judgments of a target impossible: two requests cannot hold one seat of a target, and a
target cannot give more seats than it wants. Times are microseconds since 1970 in UTC, money is integers, and JSON is
text, so that both databases hold the same.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Index, Integer, MetaData, Table, Text, text

from ..errors import ParameterError

metadata = MetaData()
_Id = BigInteger().with_variant(Integer, "sqlite")


def _table(name: str, *parts: Column[int] | Column[str] | sa.Constraint | Index) -> Table:
    """A table with a numbered ``id``."""
    return Table(name, metadata, Column("id", _Id, primary_key=True, autoincrement=True), *parts)


def _number(name: str, default: int | None = None) -> Column[int]:
    """A column of whole numbers that is never blank."""
    return Column(name, BigInteger, nullable=False, server_default=None if default is None else str(default))


def _optional(name: str) -> Column[int]:
    """A column of whole numbers that may be blank."""
    return Column(name, BigInteger)


def _words(name: str, default: str | None = None) -> Column[str]:
    """A column of text that is never blank."""
    return Column(name, Text, nullable=False, server_default=default)


def _of(table: str, name: str | None = None) -> Column[int]:
    """A column that points to a row of another table."""
    return Column(name or table, _Id, ForeignKey(f"{table}.id"), nullable=False)


_table(
    "campaign", _words("name"), _words("kind"), _words("scheme"), _words("settings"), _words("items_hash"),
    _words("owner_hash"), _number("budget"), _number("reserved", 0), _number("spent", 0), _words("state", "open"),
    _number("seq", 0), _number("changes", 0), _number("created_at"),
    CheckConstraint("reserved >= 0 AND reserved <= budget", name="within_budget"),
    CheckConstraint("spent >= 0 AND spent <= reserved", name="spent_reserved"),
    sa.UniqueConstraint("name"),
)  # fmt: skip
_table(
    "item", _of("campaign"), _words("query"), _words("item"), _words("content"), _words("content_type"),
    _words("query_content", ""), Column("truth", sa.Double), sa.UniqueConstraint("campaign", "query", "item"),
)  # fmt: skip
_table(
    "target", _of("campaign"), _words("query"), _words("items"), _words("key"), _number("wanted"), _number("taken", 0),
    _number("most"), Column("priority", sa.Double, nullable=False, server_default="0"), _number("shuffle"),
    _number("is_check", 0), _number("n_skipped", 0), sa.UniqueConstraint("campaign", "key"),
    CheckConstraint("taken >= 0 AND taken <= wanted AND wanted <= most", name="seats"),
)  # fmt: skip
_table(
    "annotator", _of("campaign"), _words("name"), _words("kind"), Column("token_hash", Text, unique=True),
    _number("cost"), _words("state", "active"), _number("n_answered", 0), _number("joined_at"),
    _optional("consented_at"), sa.UniqueConstraint("campaign", "name"),
)  # fmt: skip
_table(
    "invite", _of("campaign"), Column("token_hash", Text, nullable=False, unique=True), _words("kind"),
    Column("name", Text), _number("uses_left"), _number("expires_at"), _optional("revoked_at"), _number("created_at"),
    CheckConstraint("uses_left >= 0", name="uses"),
)  # fmt: skip
_table(
    "request", _of("target"), _of("annotator"), _optional("seat"), _words("state"), _words("shown"),
    _number("offered_at"), _number("lease_until"), _number("lease_most"), _optional("ended_at"), _number("cost"),
    Column("reason", Text),
)  # fmt: skip
Table(
    "judgment", metadata, Column("submission", Text, primary_key=True), _of("campaign"), _number("seq"), _of("request"),
    _of("annotator"), _of("target"), _words("answer"), _words("body_hash"), Column("seconds", sa.Double),
    _number("counted"), _number("paid", 1), _number("at"), _optional("withdrawn_at"), Column("replaces", Text),
    _words("source", ""), sa.UniqueConstraint("campaign", "seq"),
)  # fmt: skip
_table(
    "fit", _of("campaign"), _number("seq"), _number("changes"), _words("method", ""), _words("summary", "{}"),
    _number("started_at"), _optional("finished_at"), Column("error", Text), _number("is_final", 0),
)  # fmt: skip
Table(
    "score", metadata, Column("fit", _Id, ForeignKey("fit.id"), primary_key=True),
    Column("item", _Id, primary_key=True), _number("place"), _words("row"),
)  # fmt: skip
Table(
    "quality", metadata, Column("fit", _Id, ForeignKey("fit.id"), primary_key=True),
    Column("annotator", Text, primary_key=True), _number("place"), _words("row"),
)  # fmt: skip
_table("event", _of("campaign"), _number("at"), _words("actor"), _words("kind"), _words("detail", "{}"))

_INDEXES = (
    "CREATE INDEX target_open ON target (campaign, priority DESC, shuffle) WHERE taken < wanted AND is_check = 0",
    "CREATE INDEX target_checks ON target (campaign, shuffle) WHERE is_check = 1",
    "CREATE UNIQUE INDEX request_seat ON request (target, seat) WHERE state IN ('offered', 'answered')",
    "CREATE UNIQUE INDEX request_once ON request (target, annotator) WHERE state IN ('offered', 'answered', 'skipped')",
    "CREATE INDEX request_mine ON request (annotator) WHERE state = 'offered'",
    "CREATE INDEX request_lease ON request (lease_until) WHERE state = 'offered'",
    "CREATE INDEX request_target ON request (target)",
    "CREATE UNIQUE INDEX judgment_request ON judgment (request) WHERE withdrawn_at IS NULL",
    "CREATE INDEX judgment_target ON judgment (target)",
    "CREATE INDEX judgment_annotator ON judgment (annotator, seq)",
    "CREATE INDEX fit_latest ON fit (campaign, seq DESC)",
    "CREATE INDEX event_at ON event (campaign, at)",
)


def _create_first_version(connection: sa.Connection) -> None:
    """The tables of version 1."""
    metadata.create_all(connection)
    for statement in _INDEXES:
        connection.exec_driver_sql(statement)


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (_create_first_version,)
"""Each brings a database from the version of its place (counted from 0) to the next; released ones never change."""


def schema_version(connection: sa.Connection) -> int:
    """Return the version of a database, 0 where it holds nothing of ours."""
    if not sa.inspect(connection).has_table("schema_version"):
        return 0
    return int(connection.execute(text("SELECT version FROM schema_version")).scalar_one())


def migrate(connection: sa.Connection) -> int:
    """Bring a database up to date inside the transaction that the connection is in; return its former version."""
    before = schema_version(connection)
    if before > len(MIGRATIONS):
        raise ParameterError(
            f"the database has version {before}, and this crowdrank knows {len(MIGRATIONS)}; install a newer crowdrank"
        )
    if before == 0:
        connection.exec_driver_sql("CREATE TABLE schema_version (version INTEGER NOT NULL)")
        connection.exec_driver_sql("INSERT INTO schema_version VALUES (0)")
    for step in MIGRATIONS[before:]:
        step(connection)
    connection.execute(text("UPDATE schema_version SET version = :v"), {"v": len(MIGRATIONS)})
    return before
