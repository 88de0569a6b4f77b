"""Where a campaign is kept: an operation runs in a transaction and is answered once that is on disk.

An operation is a function of a connection. SQLite has one writer thread that commits many waiting operations
together; PostgreSQL runs each in a transaction of its own and repeats it where another got in its way.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from ..errors import ParameterError
from .faults import Fault

Result = TypeVar("Result")
Operation = Callable[[sa.Connection], Result]

MAX_TRIES = 5


class AgainError(Exception):
    """Another call took what this one was after; the operation is run again."""


class Store(Protocol):
    """A database that operations run on."""

    dialect: str
    url: str

    def submit(self, operation: Operation[Result]) -> Future[Result]:
        """Run an operation in a transaction; the future is done once it is durable."""
        ...

    def submit_read(self, operation: Operation[Result]) -> Future[Result]:
        """Run an operation that only reads, on one consistent snapshot."""
        ...

    def snapshot(self) -> AbstractContextManager[sa.Connection]:
        """Return a connection of its own that sees one moment for as long as it is held."""
        ...

    def now(self, connection: sa.Connection) -> int:
        """Return the time in microseconds by the clock that leases go by."""
        ...

    @property
    def n_waiting(self) -> int:
        """Operations that wait for their turn."""
        ...

    def close(self) -> None:
        """Finish what was begun, and let go of the database."""
        ...


def open_store(database: str, *, read_only: bool = False, n_threads: int = 12) -> Store:
    """Return the store in a file (SQLite) or on a server (``postgresql://...``)."""
    if database.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        expect_answer(database)
        return PostgresStore(database, n_threads=n_threads)
    if "://" in database:
        scheme = database.split("://", 1)[0]
        raise ParameterError(f"--db {scheme}:// is not supported; name a file, or postgresql://user@host/name")
    from .sqlite_store import SqliteStore

    return SqliteStore(database, read_only=read_only)


def expect_answer(database: str) -> None:
    """Refuse a PostgreSQL database that cannot be reached, in a sentence without its password."""
    try:
        psycopg.connect(f"postgresql://{database.split('://', 1)[1]}", connect_timeout=5).close()
    except psycopg.Error as error:
        shown = sa.make_url(postgres_url(database)).set(drivername="postgresql").render_as_string(hide_password=True)
        why = " ".join(str(error).split())
        raise ParameterError(f"{shown} cannot be used: {why}; start it, or name another --db") from None


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
        """Run an operation in a transaction, again where another got in its way; see :class:`Store`."""
        return self._threads.submit(self._write, operation)

    def submit_read(self, operation: Operation[Result]) -> Future[Result]:
        """Run an operation that only reads; see :class:`Store`."""
        return self._threads.submit(self._read, operation)

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """Hold one moment of the database; see :class:`Store`."""
        with self._connection() as connection:
            connection.info.pop("now", None)
            yield connection.execution_options(isolation_level="REPEATABLE READ")

    def now(self, connection: sa.Connection) -> int:
        """Return the database's time."""
        # the same all through a transaction, so it is asked for once
        if "now" not in connection.info:
            row = connection.exec_driver_sql("SELECT (EXTRACT(EPOCH FROM now()) * 1000000)::bigint")
            connection.info["now"] = int(row.scalar_one())
        time_now: int = connection.info["now"]
        return time_now

    @property
    def n_waiting(self) -> int:
        """Operations that wait for a thread."""
        return self._threads._work_queue.qsize()

    def close(self) -> None:
        """Finish what was begun, and disconnect."""
        self._threads.shutdown(wait=True)
        self.engine.dispose()

    def _write(self, operation: Operation[Result]) -> Result:
        lost: Exception | None = None
        for attempt in range(MAX_TRIES):
            try:
                with self._connection() as connection, connection.begin():
                    connection.info.pop("now", None)
                    return operation(connection)
            except AgainError:
                pass
            except (DBAPIError, psycopg.Error) as error:
                if not _worth_repeating(error):
                    raise _fault_of(error) from None
                lost = error if _is_lost(error) else None
            time.sleep(random.uniform(0.2, 1.0) * 0.01 * 2**attempt)
        if lost is not None:
            raise _fault_of(lost)
        raise Fault("busy", "many calls change the same record at once; try again in a second", retry_after=1)

    def _read(self, operation: Operation[Result]) -> Result:
        for attempt in range(MAX_TRIES):
            try:
                with self.snapshot() as connection:
                    return operation(connection)
            except (DBAPIError, psycopg.Error) as error:
                if not _worth_repeating(error):
                    raise _fault_of(error) from None
            time.sleep(0.02 * 2**attempt)
        raise Fault("busy", "the database does not respond; try again in a few seconds", retry_after=5)

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        """A connection of the pool, which is thrown away where it was lost."""
        with self.engine.connect() as connection:
            try:
                yield connection
            except psycopg.Error:
                driver: Any = connection.connection.driver_connection
                if driver is not None and (driver.closed or driver.broken):
                    connection.invalidate()
                raise


_REPEATABLE = ("40001", "40P01", "55P03", "23505")
"""Serialization failure, deadlock, lock not available, a unique index that stopped a race the other side won."""


def _driver_error(error: Exception) -> Any:
    """The driver's own error."""
    return error.orig if isinstance(error, DBAPIError) else error


def _worth_repeating(error: Exception) -> bool:
    """Whether the same operation may go through the next time: a clash, or a connection that was lost."""
    state = getattr(_driver_error(error), "sqlstate", None) or ""
    return state in _REPEATABLE or _is_lost(error) or state.startswith(("57P", "08"))


def _is_lost(error: Exception) -> bool:
    """Whether there is no connection to the database."""
    cause = _driver_error(error)
    return isinstance(cause, psycopg.OperationalError) and not cause.sqlstate


def _fault_of(error: Exception) -> Exception:
    """What to answer for an error of the database."""
    state = getattr(_driver_error(error), "sqlstate", None) or ""
    if state.startswith("53"):
        return Fault("storage_full", "the database has no room left; nothing was stored", retry_after=30)
    if isinstance(_driver_error(error), psycopg.OperationalError):
        return Fault("busy", "the database does not respond; try again in a few seconds", retry_after=5)
    return error
