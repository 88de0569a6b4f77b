"""Tables where they are: Parquet on an object store or in folders, queries to databases, tables in memory, all lazily.

Each is scanned: only the columns that are read, and some rows at a time where the judgments are packed.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, unquote_plus

import polars as pl

from ..data.files import PathLike, plain
from ..data.frames import to_frame
from ..errors import JudgmentError, MissingExtraError

_ROWS_AT_ONCE = 100_000  # of a query's answer
_MOST_LETTERS = 300  # of what a server or store complains about
_STORES = ("s3", "s3a", "gs", "gcs", "az", "adl", "abfs", "abfss", "http", "https", "hf")
_DATABASES = ("duckdb", "postgresql", "postgres")
# a store that does not answer is not waited for as long as a pipeline would
_PATIENCE = {"max_retries": 2}
_PARQUET = (".parquet", ".pq")
_PATTERN = re.compile(r"[*?\[]")


class Place(NamedTuple):
    """A table that is not one file, and how it is called in messages: never with a password or a query."""

    name: str
    scan: pl.LazyFrame
    secrets: tuple[str, ...] = ()

    def unreadable(self, error: BaseException) -> JudgmentError:
        """Return the error for a table that cannot be read, in one sentence and without what is secret."""
        reason = str(error).strip().partition("\n")[0]
        for secret in self.secrets:
            reason = reason.replace(secret, "***")
        return JudgmentError(
            f"{self.name} cannot be read: {plain(reason)[:_MOST_LETTERS].rstrip('.')}; check the address, the query "
            "and the right to read"
        )


def shown_name(path: Any) -> str:
    """Return how a file, an address or a table is called in messages.

    Examples
    --------
    >>> shown_name("postgresql://kim:secret@host/db?query=SELECT 1"), shown_name("votes.csv")
    ('postgresql://host/db', 'votes.csv')
    """
    if not isinstance(path, str | os.PathLike):
        return f"the {type(path).__name__}"
    scheme, rest = _split_address(path)
    if scheme is None:
        return plain(str(path))
    host, slash, inside = rest.partition("?")[0].partition("/")
    return plain(f"{scheme}://{host.rpartition('@')[2]}{slash}{inside}")


def _split_address(path: PathLike) -> tuple[str | None, str]:
    """The scheme of an address and what stands behind it; no scheme for a file."""
    # a Path has made one slash of two
    parts = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]+):(?://|/)(.+)", str(path), re.DOTALL)
    return (None, str(path)) if parts is None else (parts[1].lower(), parts[2])


def each_place(votes: Any) -> list[Any]:
    """Return the files, addresses and tables that were given, one or several; rows are one table.

    Examples
    --------
    >>> each_place("votes.csv"), each_place(["a.csv", "b.csv"]), len(each_place([{"item": "x", "grade": 1}]))
    (['votes.csv'], ['a.csv', 'b.csv'], 1)
    """
    if isinstance(votes, str | os.PathLike) or _is_table(votes):
        return [votes]
    listed = list(votes)
    names = (isinstance(one, str | os.PathLike) or (_is_table(one) and not isinstance(one, Mapping)) for one in listed)
    return listed if all(names) else [to_frame(listed)]


def _is_table(data: Any) -> bool:
    """Whether this is one table in memory, or in a database that is open."""
    tables = ("__arrow_c_stream__", "to_polars", "fetch_record_batch")
    return isinstance(data, pl.DataFrame | pl.LazyFrame | Mapping) or any(hasattr(data, one) for one in tables)


def files_like(path: Any) -> list[Any]:
    """Return the files that a pattern names, where it is one and they are no Parquet, which is scanned together."""
    text = str(path) if isinstance(path, str | os.PathLike) else ""
    if not _PATTERN.search(text) or _split_address(path)[0] is not None or os.path.exists(path):
        return [path]
    found = sorted(one for one in glob.glob(text, recursive=True) if os.path.isfile(one))
    if not found:
        raise JudgmentError(f"no file is called like {plain(text)}; check the pattern")
    return [path] if all(one.lower().endswith(_PARQUET) for one in found) else list(found)


def place_of(path: Any) -> Place | None:
    """Return the table that something names or is; ``None`` for a file."""
    if not isinstance(path, str | os.PathLike):
        return _of_table(path) if _is_table(path) else None
    text, name = str(path), shown_name(path)
    scheme, rest = _split_address(path)
    if scheme is not None:
        return _of_address(scheme, rest, name)
    if _PATTERN.search(text) and not os.path.exists(path):
        return Place(name, pl.scan_parquet(text)) if text.lower().endswith(_PARQUET) else None
    if os.path.isdir(path) and not (Path(path) / "parts").is_dir():
        inside = next((one for end in _PARQUET for one in Path(path).rglob(f"*{end}")), None)
        if inside is not None:
            return Place(name, pl.scan_parquet(Path(path) / f"**/*{inside.suffix}", hive_partitioning=True))
    return None


def _of_address(scheme: str, rest: str, name: str) -> Place | None:
    """The table at an address: an object store's, a web server's, or what a database answers."""
    user, asked = rest.partition("/")[0].rpartition("@")[0], rest.partition("?")[2]
    secrets = {one for one in (user, user.partition(":")[2], unquote(user.partition(":")[2])) if one}
    secrets |= {asked} if asked and scheme in _STORES else set()
    blank = Place(name, pl.LazyFrame(), tuple(sorted(secrets, key=len, reverse=True)))
    if scheme in _STORES:
        end = Path(rest.partition("?")[0]).suffix.lower()
        if end in _PARQUET:
            return blank._replace(scan=pl.scan_parquet(f"{scheme}://{rest}", storage_options=_PATIENCE))
        whole = f"{scheme}://{rest.rstrip('/')}/**/*.parquet"
        if end or scheme.startswith("http"):
            return None
        return blank._replace(scan=pl.scan_parquet(whole, storage_options=_PATIENCE))
    if scheme not in _DATABASES:
        return None
    # the query is what stands last, and may be written as it is
    address = rest.partition("?")[0]
    options, _, query = asked.rpartition("query=") if "query=" in asked else (asked, "", "")
    table = re.search(r"(?:^|&)table=([^&]+)", options)
    query = query if re.search(r"\s", query) else unquote_plus(query)
    if table is not None and not query:
        options = options.replace(table[0], "")
        query = f"SELECT * FROM {'.'.join(map(_quote, unquote(table[1]).split('.')))}"
    if not query:
        raise JudgmentError(
            f"{name} is a database; say which rows, as in '{name}?query=SELECT * FROM votes' or '{name}?table=votes'"
        )
    if scheme == "duckdb":
        # behind three slashes a path is relative, behind four absolute, or where there is no such file here
        local = unquote(address.removeprefix("/"))
        local = local if os.path.isfile(local) else f"/{local.lstrip('/')}"
        if not os.path.isfile(local):
            raise JudgmentError(f"there is no file {plain(unquote(address.removeprefix('/')))}; check the path")
        address = os.path.abspath(local)
    else:
        address = f"postgresql://{address}?{options.strip('&')}".rstrip("?")
    try:
        return blank._replace(scan=_scan_rows(_asking(scheme, address, query.strip().rstrip(";"))))
    except ImportError:
        raise MissingExtraError(f"{name} is a database; pip install 'crowdrank[sql]' to read it") from None
    except Exception as error:
        raise blank.unreadable(error) from None


Rows = Generator[Any]
"""Arrow's schema, and its batches after that."""
Fetch = Callable[["Sequence[str] | None", "int | None"], Rows]
"""Given the names of columns and a number of rows, ``None`` for all, returns these."""


def _scan_rows(fetch: Fetch) -> pl.LazyFrame:
    """Rows that are fetched some at a time; columns and rows that are not needed are not asked for."""
    from polars.io.plugins import register_io_source

    def batches(
        names: Sequence[str] | None, where: pl.Expr | None, n_rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        with closing(fetch(names, None if where is not None else n_rows)) as found:
            for batch in chain([next(found).empty_table()], found if n_rows != 0 else ()):
                frame = pl.DataFrame(pl.from_arrow(batch))
                # decimals of a database are numbers like others; some drivers give them as text of a type of its own
                odd = {name: dtype for name, dtype in frame.schema.items() if isinstance(dtype, pl.BaseExtension)}
                frame = frame.with_columns(pl.col(name).ext.storage() for name in odd)
                numbers = [name for name, dtype in odd.items() if '"numeric"' in str(dtype)]
                frame = frame.with_columns(pl.col(pl.Decimal).cast(pl.Float64), pl.col(numbers).cast(pl.Float64))
                yield frame if where is None else frame.filter(where)

    return register_io_source(batches, schema=next(batches(None, None, 0, None)).schema)


def _asking(scheme: str, address: str, query: str) -> Fetch:
    """What asks a database, opened for reading only where it is a file, for columns and rows of a query."""

    def fetch(names: Sequence[str] | None, n_rows: int | None) -> Rows:
        listed = "*" if names is None else ", ".join(map(_quote, names))
        asked = f"SELECT {listed} FROM ({query}) AS votes{'' if n_rows is None else f' LIMIT {n_rows}'}"
        if scheme == "duckdb":
            import duckdb

            with duckdb.connect(address, read_only=True) as connection:
                yield from _of_reader(connection.sql(asked).to_arrow_reader(_ROWS_AT_ONCE))
        else:
            from adbc_driver_postgresql import dbapi

            with dbapi.connect(address) as connection, connection.cursor() as cursor:
                cursor.execute(asked)
                yield from _of_reader(cursor.fetch_record_batch())

    return fetch


def _of_reader(reader: Any) -> Rows:
    """The schema and the batches of a reader of Arrow's."""
    yield reader.schema
    yield from reader


def _quote(name: str) -> str:
    """A name of a column or table as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _of_table(data: Any) -> Place:
    """A table in memory, or a relation of DuckDB, whose rows are fetched as they are needed."""
    name = shown_name(data)
    if isinstance(data, pl.LazyFrame):
        return Place(name, data)
    if not hasattr(data, "to_arrow_reader") or not hasattr(data, "project"):
        return Place(name, to_frame(data).lazy())

    def fetch(names: Sequence[str] | None, n_rows: int | None) -> Rows:
        chosen = data if names is None else data.project(", ".join(map(_quote, names)))
        return _of_reader((chosen if n_rows is None else chosen.limit(n_rows)).to_arrow_reader(_ROWS_AT_ONCE))

    return Place(name, _scan_rows(fetch))
