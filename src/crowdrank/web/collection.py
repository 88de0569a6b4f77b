"""A campaign that runs: faults that it answers with, its database, statements for both kinds, its settings and rule.

An operation is a function of a connection; it runs in a transaction and is answered once that is on disk. SQLite has
one writer thread that commits many waiting operations together; PostgreSQL runs each in a transaction of its own and
repeats it where another got in its way.
"""

from __future__ import annotations

import json
import logging
import queue
import random
import re
import sqlite3
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple, TypeVar

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from ..api import TargetRule, target_rule
from ..data.files import lock_file, os_reason
from ..errors import CrowdrankError, MissingExtraError, ParameterError
from .campaign_file import WORDS, Json, Settings, must_be, words_of

try:
    import psycopg
except ImportError:
    # campaigns in SQLite need none
    psycopg = None  # type: ignore[assignment]

log = logging.getLogger("crowdrank.web")
STATUSES: dict[str, int] = WORDS["statuses"]
"""Every type of fault and its HTTP status."""


class Fault(CrowdrankError):
    """Something that was asked for and cannot be done.

    Parameters
    ----------
    kind
        One of :data:`STATUSES`.
    message
        What is wrong and what to do, in one sentence; never a token, never an item's content.
    detail
        What else the answer holds.
    retry_after
        Seconds after which to try again, where that helps.
    """

    def __init__(self, kind: str, message: str, *, retry_after: float | None = None, **detail: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = STATUSES[kind]
        self.detail = detail
        self.retry_after = retry_after

    def plain(self) -> Json:
        """Return the fault as the body of an answer."""
        return {"error": {"type": self.kind, "message": str(self), **self.detail}}


def expect_found(row: Any, what: str) -> Any:
    """Return a row, or how many were changed; where there is none, say that there is no such thing."""
    if not row:
        raise Fault("not_found", f"there is no such {what}")
    return row


@contextmanager
def blaming_field(field: str) -> Iterator[None]:
    """Say of a mistake that is found deeper down in which field of what was sent it is."""
    try:
        yield
    except ParameterError as error:
        raise Fault("invalid", str(error), field=field) from None


def refusal(error: Mapping[str, Any]) -> Fault:
    """Return what to answer where something that was sent does not fit: one of the errors that pydantic lists."""
    place = [str(part) for part in error["loc"] if part not in ("body", "query")]
    if place and place[0] == "path":
        return Fault("not_found", f"{place[-1]} must be a number")
    name = place[0] if place else ""
    return Fault("invalid", f"{name or 'a judgment'} must {words_of(error)}", field=name)


class Body(BaseModel):
    """What a call sends; other keys are passed over."""

    model_config = ConfigDict(strict=True, frozen=True)


Id = Annotated[int, Field(ge=0, lt=10**18)]
"""A number in the path of a call."""

JudgmentNumber = Annotated[int, Field(ge=0, le=2**62), must_be("the number of a judgment")]


Result = TypeVar("Result")
Operation = Callable[[sa.Connection], Result]

MAX_TRIES = 5


class AgainError(Exception):
    """Another call took what this one was after; the operation is run again."""


def open_store(database: str, *, read_only: bool = False, n_threads: int = 12) -> Store:
    """Return the store in a file (SQLite) or on a server (``postgresql://...``)."""
    if database.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        if psycopg is None:
            raise MissingExtraError("PostgreSQL needs psycopg; install it with pip install 'crowdrank[web-postgres]'")
        try:
            psycopg.connect(f"postgresql://{database.split('://', 1)[1]}", connect_timeout=5).close()
        except psycopg.Error as error:
            shown = sa.make_url(postgres_url(database)).set(drivername="postgresql").render_as_string()
            # what comes behind the first line asks whether the server runs
            why = (str(error).strip().splitlines() or ["no answer"])[0]
            raise ParameterError(f"{shown} cannot be used: {why}; start it, or name another --db") from None
        return PostgresStore(database, n_threads=n_threads)
    if "://" in database:
        scheme = database.split("://", 1)[0]
        raise ParameterError(f"--db {scheme}:// is not supported; name a file, or postgresql://user@host/name")
    return SqliteStore(database, read_only=read_only)


@contextmanager
def savepoint(connection: sa.Connection) -> Iterator[None]:
    """Undo what an error inside leaves behind, and nothing else."""
    driver: Any = connection.connection.driver_connection
    driver.execute("SAVEPOINT one")
    try:
        yield
    except Exception:
        # a full disk or a lost connection has ended the whole transaction
        if driver.in_transaction if connection.dialect.name == "sqlite" else not driver.closed:
            driver.execute("ROLLBACK TO SAVEPOINT one")
            driver.execute("RELEASE SAVEPOINT one")
        raise
    driver.execute("RELEASE SAVEPOINT one")


def postgres_url(database: str) -> str:
    """Return the address of a PostgreSQL database with the driver that we use."""
    return f"postgresql+psycopg://{database.split('://', 1)[1]}"


class PostgresStore:
    """A PostgreSQL database, for several server processes at once.

    Locks are always taken in the order annotator, target, campaign, so that two operations cannot wait for each other.
    """

    dialect = "postgresql"

    def __init__(self, database: str, *, n_threads: int = 12) -> None:
        self.url = database
        self.engine = sa.create_engine(
            postgres_url(database), pool_size=n_threads, max_overflow=2, pool_pre_ping=False, pool_timeout=10,
            connect_args={"connect_timeout": 5, "options": "-c lock_timeout=10s -c statement_timeout=300s"},
        )  # fmt: skip
        self.engine = self.engine.execution_options(isolation_level="READ COMMITTED")
        self._threads = ThreadPoolExecutor(n_threads, "postgres")

    def submit(self, operation: Operation[Result]) -> Future[Result]:
        """Run an operation in a transaction, again where another got in its way; see :data:`Store`."""
        return self._threads.submit(self._write, operation)

    def submit_read(self, operation: Operation[Result]) -> Future[Result]:
        """Run an operation that only reads; see :data:`Store`."""
        return self._threads.submit(self._read, operation)

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """Hold one moment of the database; see :data:`Store`."""
        with self._connection() as connection:
            yield connection.execution_options(isolation_level="REPEATABLE READ")

    def now(self, connection: sa.Connection) -> int:
        """Return the database's time."""
        # the same all through a transaction, so it is asked for once
        if "now" not in connection.info:
            row = connection.exec_driver_sql("SELECT (EXTRACT(EPOCH FROM now()) * 1000000)::bigint")
            connection.info["now"] = int(row.scalar_one())
        return connection.info["now"]

    @property
    def n_waiting(self) -> int:
        """Operations that wait for a thread."""
        return self._threads._work_queue.qsize()

    def close(self) -> None:
        """Finish what was begun, and disconnect."""
        self._threads.shutdown(wait=True)
        self.engine.dispose()

    def _write(self, operation: Operation[Result]) -> Result:
        fault = clash = Fault("busy", "many calls change the same record at once; try again in a second", retry_after=1)
        for attempt in range(MAX_TRIES):
            try:
                with self._connection() as connection, connection.begin():
                    return operation(connection)
            except AgainError:
                pass
            except (DBAPIError, psycopg.Error) as error:
                fault = _no_answer() if _expect_repeatable(error) else clash
            time.sleep(random.uniform(0.2, 1.0) * 0.01 * 2**attempt)
        raise fault

    def _read(self, operation: Operation[Result]) -> Result:
        for attempt in range(MAX_TRIES):
            try:
                with self.snapshot() as connection:
                    return operation(connection)
            except (DBAPIError, psycopg.Error) as error:
                _expect_repeatable(error)
            time.sleep(0.02 * 2**attempt)
        raise _no_answer()

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        """A connection of the pool, which is thrown away where it was lost."""
        with self.engine.connect() as connection:
            connection.info.pop("now", None)
            try:
                yield connection
            except psycopg.Error:
                driver: Any = connection.connection.driver_connection
                if driver is not None and (driver.closed or driver.broken):
                    connection.invalidate()
                raise


_REPEATABLE = ("40001", "40P01", "55P03", "23505")
"""Serialization failure, deadlock, lock not available, a unique index that stopped a race the other side won."""


def _no_answer() -> Fault:
    """What to answer where the database does not."""
    return Fault("busy", "the database does not respond; try again in a few seconds", retry_after=5)


def _expect_repeatable(error: Exception) -> bool:
    """Raise what to answer, unless the operation may go through next time: return whether the connection was lost."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(cause, "sqlstate", None) or ""
    is_lost = isinstance(cause, psycopg.OperationalError) and not state
    if state in _REPEATABLE or is_lost or state.startswith(("57P", "08")):
        return is_lost
    if state.startswith("53"):
        raise Fault("storage_full", "the database has no room left; nothing was stored", retry_after=30) from None
    raise (_no_answer() if isinstance(cause, psycopg.OperationalError) else error) from None


MAX_GROUP = 64
"""Operations that are committed together at most."""

N_READERS = 4
_CHECKPOINT_SECONDS = 20.0


class SqliteStore:
    """A campaign in one file."""

    dialect = "sqlite"

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.url = str(path)
        # since 1970 in microseconds, by a clock that only goes forward
        self._epoch = time.time_ns() // 1000 - time.monotonic_ns() // 1000
        self._lock: IO[bytes] | None = None
        self._reads = ThreadPoolExecutor(N_READERS, "sqlite-read")
        self._readers = _engine(self.url, read_only=True)
        self._queue: queue.SimpleQueue[tuple[Operation[Any], Future[Any]] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        if read_only:
            return
        # a second server on the same file does not get the lock
        beside = Path(f"{path}.lock")
        try:
            self._lock = beside.open("ab")
        except OSError as error:
            raise ParameterError(f"{path} cannot be written: {os_reason(error)}; choose another --db") from None
        if not lock_file(self._lock):
            self._lock.close()
            raise ParameterError(f"{path} is in use by another crowdrank serve; stop that, or choose another")
        self._engine = _engine(self.url, read_only=False)
        try:
            self._connection = self._engine.connect()
        except DBAPIError as error:
            self._lock.close()
            raise ParameterError(f"{path} cannot be used as a database ({error.orig}); choose another --db") from None
        self._writer = threading.Thread(target=self._write_all, name="sqlite-write", daemon=True)
        self._writer.start()

    def submit(self, operation: Operation[Result]) -> Future[Result]:
        """Queue an operation for the writer; see :data:`Store`."""
        future: Future[Result] = Future()
        if self._writer is None or not self._writer.is_alive():
            future.set_exception(Fault("stopping", "the service is stopping; try again in a moment", retry_after=2))
        else:
            self._queue.put((operation, future))
        return future

    def submit_read(self, operation: Operation[Result]) -> Future[Result]:
        """Run an operation that only reads, beside the writer."""
        return self._reads.submit(self._read, operation)

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """Hold one moment of the database; see :data:`Store`."""
        with self._readers.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            try:
                yield connection
            finally:
                connection.exec_driver_sql("ROLLBACK")

    def now(self, connection: sa.Connection | None = None) -> int:
        """Return the server's time, which a clock set back does not turn back."""
        return self._epoch + time.monotonic_ns() // 1000

    def not_before(self, moment: int) -> None:
        """Go on from a moment that was written down before, if the machine's clock is behind it."""
        self._epoch += max(0, moment - self.now())

    @property
    def n_waiting(self) -> int:
        """Operations that wait for the writer."""
        return self._queue.qsize()

    def close(self) -> None:
        """Finish what was begun, fold the log into the file, and unlock it."""
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join(30)
        self._reads.shutdown(wait=True)
        self._readers.dispose()
        if self._lock is not None:
            self._lock.close()

    def _read(self, operation: Operation[Result]) -> Result:
        with self.snapshot() as connection:
            return operation(connection)

    def _write_all(self) -> None:
        """Commit groups of operations until the end is queued."""
        checkpointed = time.monotonic()
        while (first := self._queue.get()) is not None:
            for future, result, error in self._commit(first):
                # the caller who waits is answered, if they still do
                if not future.set_running_or_notify_cancel():
                    continue
                if error is None:
                    future.set_result(result)
                else:
                    future.set_exception(error)
            if time.monotonic() - checkpointed > _CHECKPOINT_SECONDS:
                checkpointed = time.monotonic()
                with suppress(DBAPIError):
                    self._connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")
        with suppress(DBAPIError):
            self._connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
        self._engine.dispose()

    def _group(self, first: Any) -> Iterator[tuple[Operation[Any], Future[Any]]]:
        """An operation, and those that are waiting by the time that the ones before them have run."""
        yield first
        for _ in range(MAX_GROUP - 1):
            try:
                following = self._queue.get_nowait()
            except queue.Empty:
                return
            if following is None:
                # the end comes once more, behind this group
                self._queue.put(None)
                return
            yield following

    def _commit(self, first: Any) -> list[tuple[Future[Any], Any, BaseException | None]]:
        """Run the operations of a group, each in a savepoint, and commit them together."""
        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        connection, future = self._connection, first[1]
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            for operation, future in self._group(first):
                try:
                    with savepoint(connection):
                        result = operation(connection)
                    answers.append((future, result, None))
                except Exception as error:
                    if not _in_transaction(connection):
                        # a full disk ends the whole transaction: nothing of the group is stored
                        raise
                    answers.append((future, None, _sqlite_fault(error)))
            connection.exec_driver_sql("COMMIT")
        except Exception as error:
            fault = _sqlite_fault(error)
            if _in_transaction(connection):
                with suppress(DBAPIError):
                    connection.exec_driver_sql("ROLLBACK")
            # the last one may have no answer yet
            futures = dict.fromkeys([*(future for future, _, _ in answers), future])
            return [(future, None, fault) for future in futures]
        return answers


Store = SqliteStore | PostgresStore
"""A database that operations run on.

``submit`` runs an operation in a transaction, and its future is done once that is durable; ``submit_read`` runs one
that only reads, on one consistent snapshot; ``snapshot`` is a connection that sees one moment while it is held.
"""


def _sqlite_fault(error: Exception) -> Exception:
    """What to answer for an error of the database."""
    if not isinstance(error, DBAPIError | sqlite3.Error):
        return error
    words = str(error)
    if "disk is full" in words or "disk I/O" in words:
        return Fault("storage_full", "the disk is full; nothing was stored, try again later", retry_after=30)
    if "locked" in words or "busy" in words:
        return Fault("busy", "the database is in use by another program; try again", retry_after=2)
    return error


def _in_transaction(connection: sa.Connection) -> bool:
    """Whether the driver's connection has a transaction open."""
    driver = connection.connection.driver_connection
    return isinstance(driver, sqlite3.Connection) and driver.in_transaction


def _engine(path: str, *, read_only: bool) -> sa.Engine:
    """An engine with a connection for each that works at once, whose transactions are begun and ended by hand."""

    def connect() -> sqlite3.Connection:
        mode = "ro" if read_only else "rwc"
        quoted = Path(path).resolve().as_uri()
        driver = sqlite3.connect(f"{quoted}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False)
        driver.execute("PRAGMA busy_timeout = 5000")
        driver.execute("PRAGMA foreign_keys = ON")
        driver.execute("PRAGMA cache_size = -32000")
        if read_only:
            driver.execute("PRAGMA query_only = ON")
        else:
            driver.execute("PRAGMA journal_mode = WAL")
            driver.execute("PRAGMA synchronous = FULL")
            driver.execute("PRAGMA wal_autocheckpoint = 1000")
            driver.execute("PRAGMA journal_size_limit = 16777216")
        return driver

    engine = sa.create_engine("sqlite+pysqlite://", creator=connect, poolclass=QueuePool, max_overflow=-1)
    return engine.execution_options(isolation_level="AUTOCOMMIT")


class Done(NamedTuple):
    """What a statement did: how many rows it changed, and which it returned."""

    rowcount: int
    rows: list[Any]


class Statement:
    """A statement for both databases; PostgreSQL may need a lock that SQLite's one writer does not.

    It goes to the driver as it is: building and caching expressions would cost several times what SQLite needs.

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

    def run(self, db: Session, **values: Any) -> Done:
        """Run the statement with these values and the campaign; rows have the names of their columns as attributes."""
        driver: Any = db.connection.connection.driver_connection
        values.setdefault("campaign", db.id)
        if db.is_sqlite:
            for name in self._lists:
                values[name] = json.dumps(values[name])
            cursor = driver.execute(self._sqlite, values)
        else:
            cursor = driver.execute(self._postgres, values)
        if cursor.description is None:
            return Done(cursor.rowcount, [])
        if self._row is None:
            # a column that is called like a keyword of Python keeps its value and loses its name
            self._row = namedtuple("Row", [column[0] for column in cursor.description], rename=True)  # type: ignore[misc]
        rows = [self._row._make(row) for row in cursor.fetchall()]
        return Done(len(rows), rows)

    def run_many(self, db: Session, rows: list[Json]) -> int:
        """Run the statement with each of these rows of values, in one round trip; return how many rows it changed."""
        if len(rows) < 2:
            return sum(self.run(db, **row).rowcount for row in rows)
        cursor: Any = db.connection.connection.driver_connection.cursor()  # type: ignore[union-attr]
        cursor.executemany(self._sqlite if db.is_sqlite else self._postgres, rows)
        return int(cursor.rowcount)

    def first(self, db: Session, **values: Any) -> Any:
        """Return the first row, or ``None``."""
        rows = self.run(db, **values).rows
        return rows[0] if rows else None

    def rows(self, db: Session, **values: Any) -> list[Any]:
        """Return all rows."""
        return self.run(db, **values).rows

    def number(self, db: Session, **values: Any) -> int:
        """Return the number in the first column of the one row, 0 where it is blank."""
        rows = self.run(db, **values).rows
        return int(rows[0][0] or 0) if rows else 0


class Statements:
    """The statements of ``statements.sql``, each an attribute by its name."""

    def __init__(self, path: Path) -> None:
        words, postgres, name = dict[str, str](), dict[str, str](), ""
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("-- name: "):
                name = line.removeprefix("-- name: ")
                words[name] = ""
            elif line.startswith("-- postgres: "):
                postgres[name] = line.removeprefix("-- postgres: ")
            elif line and not line.startswith("--"):
                words[name] = f"{words[name]} {line.strip()}".strip()
        for name, text in words.items():
            while "{" in text:
                text = text.format_map(words)
            setattr(self, name, Statement(text, postgres.get(name, "")))

    def __getattr__(self, name: str) -> Statement:
        raise AttributeError(f"statements.sql has no statement {name}")


sql = Statements(Path(__file__).with_name("statements.sql"))
"""Every statement of the service, by name."""


@dataclass(eq=False)
class Collection:
    """A campaign with all that its operations need."""

    id: int
    settings: Settings
    store: Store
    folder: Path
    revision: int = 0
    """How often settings and items were changed while it runs."""
    contents: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    """Content, type and query of items that were shown before; they never change."""
    meant: dict[int, list[int]] = field(default_factory=dict)
    """Targets that the last fit means for each annotator, the most urgent first; a wish, and nobody is waited for."""

    @cached_property
    def rule(self) -> TargetRule | None:
        """The scheme where it looks at one target at a time, otherwise ``None``."""
        settings = self.settings
        return target_rule(settings.scheme, settings.params, settings.grades, kind=settings.kind)

    def submit(self, operation: Callable[..., Result], *args: Any, **keys: Any) -> Future[Result]:
        """Run an operation of (db, ...) in a transaction; the future is done once that is durable."""
        return self.store.submit(lambda connection: operation(Session(self, connection), *args, **keys))

    def submit_read(self, operation: Callable[..., Result], *args: Any, **keys: Any) -> Future[Result]:
        """Run an operation of (db, ...) that only reads."""
        return self.store.submit_read(lambda connection: operation(Session(self, connection), *args, **keys))

    def write(self, operation: Callable[..., Result], *args: Any, **keys: Any) -> Result:
        """Return the result of an operation of (db, ...) once it is durable."""
        return self.submit(operation, *args, **keys).result()

    def read(self, operation: Callable[..., Result], *args: Any, **keys: Any) -> Result:
        """Return the result of an operation of (db, ...) that only reads."""
        return self.submit_read(operation, *args, **keys).result()

    def follow(self, db: Session) -> None:
        """Take over settings and items that were changed since they were read, here or by another process."""
        row = sql.campaign.first(db)
        if row.revision != self.revision:
            self.contents.clear()
            self.__dict__.pop("rule", None)
            self.settings, self.revision = Settings(**json.loads(row.settings)), row.revision


class Session:
    """A campaign within a transaction, the first argument of every operation and statement."""

    def __init__(self, collection: Collection, connection: sa.Connection) -> None:
        self.collection, self.connection, self.id = collection, connection, collection.id
        self.is_sqlite = connection.dialect.name == "sqlite"

    @property
    def settings(self) -> Settings:
        """What the campaign asks, of whom, at what cost."""
        return self.collection.settings

    @property
    def lease(self) -> int:
        """Microseconds that a request is held."""
        return self.settings.lease_seconds * 1_000_000

    def now(self) -> int:
        """Return the time in microseconds."""
        return self.collection.store.now(self.connection)


def record_event(db: Session, actor: str, kind: str, detail: Mapping[str, Any] | None = None) -> None:
    """Write down what happened; never content, never a token."""
    sql.insert_event.run(db, at=db.now(), actor=actor, kind=kind, detail=json.dumps(detail or {}))
