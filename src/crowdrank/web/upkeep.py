"""What is done to a campaign that nobody works on at the moment: recounting it, and moving it to another database."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy as sa
from sqlalchemy import text

from ..errors import CrowdrankError, ParameterError
from ..wording import counted
from .campaign_file import read_campaign
from .collection import Session, Store, open_store
from .server import Options
from .setup import metadata, migrate, open_collection, schema_version
from .transfer import all_judgments, is_usable, table_rows

RECOUNTS = Path(__file__).with_name("recounts.sql")
"""What must not be found: a comment has the sentence, and the query below it counts what the sentence is about."""


def broken_promises(connection: sa.Connection) -> list[str]:
    """Return a sentence for everything that does not hold; an empty list where all is well."""
    sentences = []
    for block in RECOUNTS.read_text("utf-8").split("\n\n")[1:]:
        sentence, query = block.removeprefix("-- ").split("\n", 1)
        number = int(connection.execute(text(query)).scalar_one())
        if number:
            sentences.append(sentence.format(n=number))
    if connection.dialect.name == "sqlite":
        whole = connection.exec_driver_sql("PRAGMA quick_check").scalar_one()
        if whole != "ok":
            sentences.append(f"the file is damaged: {whole}")
    return sentences


def counted_votes(campaign: str, database: str) -> list[dict[str, Any]]:
    """Return the judgments that count in a campaign, as the rows of a table, also while it is served."""
    with TemporaryDirectory() as work:
        copy = str(Path(work, "copy.db"))
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        with closing(open_store(copy)) as store:
            collection, _ = open_collection(store, read_campaign(campaign), "")
            with store.snapshot() as connection:
                rows = [row for row in all_judgments(Session(collection, connection)) if is_usable(row)]
            return list(table_rows(collection, rows))


_ROWS_AT_ONCE = 2_000


class BrokenPromisesError(CrowdrankError):
    """Something that the service promises does not hold."""


@contextmanager
def _open(database: str, *, read_only: bool = False, empty: bool = False) -> Iterator[Store]:
    """The store in a database, which has to hold a campaign, or none where it is to be filled."""
    with closing(open_store(database, read_only=read_only)) as store:
        try:
            version = store.submit_read(schema_version).result()
        except sa.exc.DBAPIError:
            version = 0
        if empty and version:
            raise ParameterError(f"{database} holds a campaign already; name an empty database")
        if empty:
            store.submit(migrate).result()
        elif not version:
            raise ParameterError(f"there is no campaign in {store.url}; start it once, or name another --db")
        yield store


def check(options: Options) -> str:
    """Return a sentence that the totals agree with the stored judgments; a difference is an error."""
    database = options.database(options.campaign)
    with _open(database, read_only=True) as store:
        broken = store.submit_read(broken_promises).result()
        number = store.submit_read(lambda c: c.exec_driver_sql("SELECT COUNT(*) FROM judgment").scalar_one()).result()
    if broken:
        raise BrokenPromisesError(f"{database}: {'; '.join(broken)}; restore a backup, or report this")
    return f"{database}: all checks passed on {counted(number, 'judgment')}"


def copy(options: Options, target: str) -> str:
    """Copy a paused or closed campaign into an empty database, compare the two, and return what was copied."""
    with _open(options.database(options.campaign)) as source:
        states = source.submit_read(lambda c: list(c.exec_driver_sql("SELECT state FROM campaign").scalars())).result()
        if "open" in states:
            raise ParameterError("the campaign is open; pause or close it first, so that nothing is missed")
        with _open(target, empty=True) as goal:
            numbers, same = _copy_all(source, goal)
    if not same:
        raise BrokenPromisesError("the copy differs from the original; drop it and copy again")
    copied = ", ".join(counted(numbers[name], name) for name in ("item", "annotator", "request", "judgment"))
    return f"copied {copied}; the judgments of both are the same ({same[:12]})"


def backup(options: Options, path: str) -> str:
    """Write everything into a new SQLite file while the service runs, recount it, and return what was written."""
    if Path(path).exists():
        raise ParameterError(f"{path} is there already; name another file to back up to")
    with _open(options.database(options.campaign), read_only=True) as source, _open(path, empty=True) as goal:
        # the reader sees one moment of the database, however long it takes
        numbers = source.submit_read(lambda c: goal.submit(lambda d: _copy(c, d)).result()).result()
        broken = goal.submit_read(broken_promises).result()
    if broken:
        raise BrokenPromisesError(f"{path}: {'; '.join(broken)}; keep the original, and report this")
    return f"wrote {counted(numbers['judgment'], 'judgment')} to {path}, and recounted them"


def restore(options: Options, path: str) -> str:
    """Put a backup into an empty database, recount it, and return what was put there."""
    if not Path(path).is_file():
        raise ParameterError(f"there is no backup {path}; name a file that --backup wrote")
    database = options.database(options.campaign)
    with _open(path, read_only=True) as source, _open(database, empty=True) as goal:
        numbers, same = _copy_all(source, goal)
    if not same:
        raise BrokenPromisesError(f"{database} differs from {path}; drop it and restore again")
    return f"restored {counted(numbers['judgment'], 'judgment')} into {database}"


def _copy_all(source: Store, goal: Store) -> tuple[dict[str, int], str]:
    """Number of rows of each table that were copied, and the checksum of both; empty where they differ."""
    numbers = source.submit_read(lambda c: goal.submit(lambda d: _copy(c, d)).result()).result()
    before, after = (one.submit_read(fingerprint).result() for one in (source, goal))
    return numbers, before if before == after else ""


def fingerprint(connection: sa.Connection) -> str:
    """Return a checksum over all judgments and the number of rows of every table."""
    total = hashlib.sha256()
    tables = sa.inspect(connection).get_table_names()
    for name, table in sorted(metadata.tables.items()):
        count = sa.select(sa.func.count()).select_from(table)
        # a database of an earlier version has no rows of what came later
        total.update(f"{name}:{connection.execute(count).scalar_one() if name in tables else 0}".encode())
    table = metadata.tables["judgment"]
    columns = [table.c[name] for name in ("seq", "submission", "request", "annotator", "target", "answer", "body_hash",
                                          "counted", "paid", "at", "withdrawn_at")]  # fmt: skip
    for row in connection.execute(sa.select(*columns).order_by(table.c.campaign, table.c.seq)):
        total.update(repr(tuple(row)).encode())
    return total.hexdigest()


def _copy(source: sa.Connection, goal: sa.Connection) -> dict[str, int]:
    """Number of rows of each table that were copied; what a source of an earlier version lacks is as in a new one."""
    numbers = {}
    inspector = sa.inspect(source)
    known = {name: {one["name"] for one in inspector.get_columns(name)} for name in inspector.get_table_names()}
    for table in metadata.sorted_tables:
        number = 0
        columns = [column for column in table.columns if column.name in known.get(table.name, ())]
        if not columns:
            continue
        cursor = source.execution_options(yield_per=_ROWS_AT_ONCE).execute(sa.select(*columns))
        for part in cursor.partitions(_ROWS_AT_ONCE):
            goal.execute(sa.insert(table), [dict(row._mapping) for row in part])
            number += len(part)
        numbers[table.name] = number
        if goal.dialect.name == "postgresql" and "id" in table.c and number:
            # numbers that are given out later must not meet those that were copied
            last = f"(SELECT MAX(id) FROM {table.name})"
            goal.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), {last})")
    return numbers
