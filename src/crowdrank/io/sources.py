"""What is read: bytes of a file or of standard input, unpacked; tables elsewhere and in memory, lazily.

What goes wrong is said in one sentence.
"""

from __future__ import annotations

import glob
import gzip
import io
import mmap
import os
import re
import stat
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus

import polars as pl

from ..data.files import PathLike, available_memory, in_words, os_reason, plain, web_address
from ..data.frames import to_frame
from ..errors import JudgmentError, MissingExtraError, ParameterError
from ..wording import nearest, option, shell_words

# bytes looked at in one go, so that checking a large file needs little memory
# threshold (equal): bytes of a file looked at in one go
BLOCK = 1 << 24

# a large gzip file that unpacks to more than so many times its size is no table: those reach 10 to 100 times
_MOST_TIMES = 300

# bytes from which on a file counts as large
# threshold (refused): bytes of a gzip file that is compared with its packed size
_LARGE = 1 << 29

_FEWEST_BYTES = 8
_MOSTLY = 0.9

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# held while standard error leads elsewhere
_QUIET = threading.RLock()

# first bytes of a zip archive, which spreadsheets are too
ZIP = b"PK\x03\x04"

_PACKED = {
    ZIP: ("a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
    b"BZh": ("compressed with bzip2", "decompress it, or use gzip"),
    b"\xfd7zXZ\x00": ("compressed with xz", "decompress it, or use gzip"),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "decompress it, or use gzip"),
}

# byte-order marks of text that is not UTF-8, the longer first
_MARKS = {
    b"\xff\xfe\x00\x00": "utf-32", b"\x00\x00\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16",
}  # fmt: skip

# first bytes of a spreadsheet of before 2007
OLD_SPREADSHEET = b"\xd0\xcf\x11\xe0"

_LOOKED_AT = 4096


class NotUtf8Error(JudgmentError):
    """A text file whose bytes are not UTF-8, and that may be read in another encoding."""


@dataclass(frozen=True)
class Source:
    """A file that was opened: its name for messages and its unpacked bytes."""

    name: str
    # last suffix in lower case, ``.gz`` left out; empty for standard input
    suffix: str
    data: bytes | mmap.mmap
    # set when the bytes are those of the file as it is, so that a reader may open it by itself
    path: Path | None
    # in which a text file was, before it was turned into UTF-8
    encoding: str = "UTF-8"
    # set for a table that is no file of this computer, and has no bytes
    table: pl.LazyFrame | None = None
    # what messages about such a table must not hold: passwords and queries
    secrets: tuple[str, ...] = ()

    @property
    def start(self) -> int:
        """Position behind a byte-order mark."""
        return len(_BYTE_ORDER_MARK) if self.data[:3] == _BYTE_ORDER_MARK else 0

    @property
    def place(self) -> Path | bytes:
        """What to give to a reader of polars: the path, or the bytes where it would take the name for a pattern."""
        return self.data[:] if self.path is None or _PATTERN.search(str(self.path)) else self.path

    def scan(self) -> pl.LazyFrame:
        """Return a Parquet file, or a table that is no file, to be read as far as it is needed."""
        return pl.scan_parquet(self.place, glob=False) if self.table is None else self.table

    def unreadable(self, error: BaseException) -> JudgmentError:
        """Return the error for a Parquet file or a table that cannot be read, in one sentence, nothing secret in it."""
        if self.table is None:
            return JudgmentError(f"{self.name} is a truncated or damaged Parquet file; write or copy it again")
        reason = str(error).strip().partition("\n")[0]
        for secret in self.secrets:
            reason = reason.replace(secret, "***")
        reason = plain(reason)[:_MOST_LETTERS].rstrip(".")
        found = f"{self.name} cannot be read: {reason}"
        return JudgmentError(f"{found}; check the address, the query and the right to read")

    def release(self, end: int) -> None:
        """Let go of the memory that pages of a mapped file before a position take; they are read again when needed."""
        if isinstance(self.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            whole_pages = min(end, len(self.data)) // mmap.PAGESIZE * mmap.PAGESIZE
            if whole_pages:
                self.data.madvise(mmap.MADV_DONTNEED, 0, whole_pages)

    def blocks(self, size: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield whole lines, about so many bytes at a time, with the position and the number of the first of them."""
        begin, line = self.start, 1
        while begin < len(self.data):
            end = self.data.find(b"\n", min(begin + size, len(self.data)))
            end = len(self.data) if end < 0 else end + 1
            data = self.data[begin:end]
            self.release(end)
            yield begin, line, data
            line += data.count(b"\n")
            begin = end

    def text(self) -> str:
        """Return everything as text without byte-order mark and with plain line ends."""
        raw = self.data[self.start :]
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.not_utf8(self.start + error.start) from None
        if "\0" in text:
            raise self.nul_byte()
        return plain_line_ends(text)

    def line_at(self, position: int) -> int:
        """Return the 1-based line number of a byte position."""
        starts = range(0, position, BLOCK)
        return 1 + sum(self.data[start : min(start + BLOCK, position)].count(b"\n") for start in starts)

    def not_utf8(self, position: int) -> JudgmentError:
        """Return the error for bytes that are not UTF-8."""
        found = f"{self.name}: line {self.line_at(position)} holds bytes that are not UTF-8"
        return NotUtf8Error(f"{found}; save the file as UTF-8")

    def nul_byte(self) -> JudgmentError:
        """Return the error for a NUL byte in a text file."""
        line = self.line_at(self.data.find(b"\0"))
        found = f"{self.name}: line {line} holds a NUL byte, so this is not plain text"
        return JudgmentError(f"{found}; save the file as UTF-8 text")

    def broken_line(self, line: int, what: str, remedy: str) -> JudgmentError:
        """Return the error for a line that cannot be read."""
        return JudgmentError(f"{self.name}: line {line} {what}; {remedy}")

    def no_rows(self) -> JudgmentError:
        """Return the error for a file without a single row."""
        return JudgmentError(f"{self.name} holds no rows; write a header line, and the rows below it")


def open_source(path: PathLike | Source, *, archives: bool = False) -> Source:
    """Open a file, or standard input for ``-``, and unpack gzip whatever the file is called; an open one is returned.

    Zip archives are refused unless ``archives`` says that their reader looks inside.
    """
    if isinstance(path, Source):
        return path
    data: bytes | mmap.mmap
    where: Path | None
    if isinstance(path, str) and path == "-":
        name, suffix, data, where = "standard input", "", _standard_input(), None
    else:
        table = place_of(path)
        if table is not None:
            return table
        given = f"a {type(path).__name__}"
        if not isinstance(path, str | os.PathLike):
            raise JudgmentError(f"{given} is not a path; give the name of a file, or - for standard input")
        suffix = next((one.lower() for one in reversed(Path(path).suffixes) if one.lower() != ".gz"), "")
        name, (data, where) = plain(str(Path(path))), _bytes_of(Path(path))
    if data[:2] == b"\x1f\x8b":
        data, where = _gunzip(name, data), None
    magic = next((magic for magic in _PACKED if data[: len(magic)] == magic), None)
    if magic is not None and not (archives and magic == ZIP):
        raise not_unpacked(name, magic)
    if not len(data):
        raise JudgmentError(f"{name} is empty; check that it was written in full")
    # UTF-16 or UTF-32, told by a byte-order mark or by zeros at every second byte
    head, source = data[:_LOOKED_AT], Source(name, suffix, data, where)
    wide = [encoding for mark, encoding in _MARKS.items() if head.startswith(mark)]
    if not wide and head[:4] not in (b"PAR1", ZIP, OLD_SPREADSHEET) and len(head) >= _FEWEST_BYTES:
        even, odd = head[0 : len(head) // 2 * 2 : 2], head[1::2]
        for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
            wide += [encoding] if zeros.count(0) > _MOSTLY * len(zeros) and not others.count(0) else []
    return as_utf8(source, wide[0]) if wide else source


def check_source(path: PathLike) -> None:
    """Refuse, before any work, a file that is not there; what is there is not opened, as it may be a pipe."""
    if path != "-" and not os.path.exists(path) and place_of(path) is None:
        _bytes_of(Path(path))


def as_utf8(source: Source, encoding: str) -> Source:
    """Return the source with text of another encoding turned into UTF-8."""
    try:
        data = source.data[:].decode(encoding).removeprefix("\ufeff").encode()
    except LookupError:
        raise ParameterError(f"{option('encoding', encoding)} is not known; use a name such as latin-1") from None
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        problem = f"{source.name}: line {source.line_at(start)} holds bytes that are not {encoding}"
        raise JudgmentError(f"{problem}; name another encoding") from None
    return Source(source.name, source.suffix, data, None, encoding.upper().removesuffix("-LE").removesuffix("-BE"))


def show_value(value: object) -> str:
    """Return a value as it stands in a message: on one line, text in quotes, and cut where it is long."""
    text = str(value)
    text = text if len(text) <= 80 else f"{text[:40]}…{text[-39:]}"
    return repr(text) if isinstance(value, str) else plain(text)


def plain_line_ends(text: str) -> str:
    """Return the text with every line ended by a newline, however it was ended before."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _bytes_of(path: Path) -> tuple[bytes | mmap.mmap, Path | None]:
    """The file's bytes, mapped where it is a plain file, and then its path."""
    name = plain(str(path))
    try:
        with path.open("rb") as handle:
            status = os.fstat(handle.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_size:
                return mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ), path
            return handle.read(), None
    except (FileNotFoundError, NotADirectoryError):
        address = web_address(path)
        if address is not None:
            how = f": curl -LO {shell_words([shown_name(address)])}" if address.startswith("http") else ""
            problem = f"only Parquet is read from elsewhere, and {shown_name(address)} is not Parquet"
            raise JudgmentError(f"{problem}; download it first{how}") from None
        try:
            near = nearest(path.name, os.listdir(path.parent), cutoff=0.7)
            remedy = f"did you mean {show_value(near)}?" if near else "check the path"
        except (OSError, ValueError):
            remedy = "the folder does not exist either, check the path"
        raise JudgmentError(f"there is no file {name}; {remedy}") from None
    except IsADirectoryError:
        if (path / "parts").is_dir():
            problem = f"{name} has packed judgments but no manifest.json: packing did not end"
            raise JudgmentError(f"{problem}; pack the files again") from None
        raise JudgmentError(f"{name} is a folder; give the name of a file in it") from None
    except PermissionError:
        raise JudgmentError(f"{name} may not be read; check its permissions") from None
    except (OSError, ValueError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        raise JudgmentError(f"{name} cannot be opened: {reason}; check the path") from None


def as_windows_text(source: Source) -> tuple[Source, str]:
    """Return a file that is not UTF-8 as Windows-1252, Latin-1 where that has no character, and the first such word."""
    text = bytes(source.data[:]).decode("cp1252", "surrogateescape").translate(_UNDEFINED)
    position = next(n for n, letter in enumerate(text) if not letter.isascii())
    before, after = text[max(position - 40, 0) : position], text[position : position + 40]
    word = re.split(r"[^\w'-]", before)[-1] + re.split(r"[^\w'-]", after)[0]
    return Source(source.name, source.suffix, text.encode(), None, "Windows-1252"), word or after[:1]


# bytes that Windows-1252 leaves undefined, as Python lets them pass -> the characters of Latin-1
_UNDEFINED = {0xDC00 + byte: byte for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}


def not_unpacked(name: str, magic: bytes) -> JudgmentError:
    """Return the error for a packing that is not read."""
    what, remedy = _PACKED[magic]
    return JudgmentError(f"{name} is {what}, which is not read; {remedy}")


def _gunzip(name: str, data: bytes | mmap.mmap) -> bytes:
    """Decompressed bytes; what does not fit into a quarter of the free memory is refused on the way, not after."""
    most, parts, total = available_memory() // 4, list[bytes](), 0
    try:
        with gzip.GzipFile(fileobj=data if isinstance(data, mmap.mmap) else io.BytesIO(data), mode="rb") as packed:
            while block := packed.read(BLOCK):
                parts.append(block)
                total += len(block)
                if total > most or (total > _LARGE and total > _MOST_TIMES * len(data)):
                    limit = f"{_MOST_TIMES} times its size, which is unlike a table; unpack it if that is intended"
                    if total > most:
                        quarter = f"a quarter of the free memory ({in_words(most)})"
                        limit = f"{quarter}; split it, or use a machine with more memory"
                    begin = f"{name} ({in_words(len(data))}) unpacks to more than {in_words(total)}"
                    raise JudgmentError(f"{begin}, beyond {limit}")
    except (EOFError, OSError, zlib.error):
        raise JudgmentError(f"{name} is a truncated or damaged gzip file; copy or download it again") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _standard_input() -> bytes:
    """All bytes of standard input, as long as they fit into half of the free memory."""
    if sys.stdin is None:
        raise JudgmentError("standard input (-) is closed; give a file, or pipe the judgments in")
    most, parts, total = available_memory() // 2, list[bytes](), 0
    while block := sys.stdin.buffer.read(BLOCK):
        parts.append(block)
        total += len(block)
        if total > most:
            held = f"standard input holds more than {in_words(total)}, half of the free memory"
            raise JudgmentError(f"{held}; give a file, or less of it")
    return b"".join(parts)


@contextmanager
def without_panics() -> Iterator[None]:
    """Keep what polars prints when it panics off standard error: what it trips over is said in our own sentence.

    It writes to the descriptor itself, so that is what leads elsewhere meanwhile. Where nothing goes wrong, whatever
    was written there in the meantime is passed on.
    """
    with ExitStack() as undo:
        undo.enter_context(_QUIET)
        try:
            kept = os.dup(2)
            undo.callback(os.close, kept)
            aside = undo.enter_context(tempfile.TemporaryFile())
        except OSError:  # nothing can be printed, or nothing kept
            yield
            return
        os.dup2(aside.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
        aside.seek(0)
        with suppress(OSError):
            os.write(2, aside.read())


@contextmanager
def blaming(name: str) -> Iterator[None]:
    """Put the file's name before what the code within has to complain about, unless it stands there already."""
    try:
        yield
    except JudgmentError as error:
        text = str(error)
        if text.startswith((f"{name}:", f"{name} ")):
            raise
        raise type(error)(f"{name}: {text}") from None


def title_note(source: Source, title: str) -> str:
    """Return what is said of a title above the header of a table."""
    return f"{source.name}: {show_value(title)} stands above the header and is not read"


Names = Sequence[str] | None
_ROWS_AT_ONCE = 100_000  # of a query's answer
_MOST_LETTERS = 300  # of what a server or store complains about
_STORES = ("s3", "s3a", "gs", "gcs", "az", "adl", "abfs", "abfss", "http", "https", "hf")
_DATABASES = ("duckdb", "postgresql", "postgres")
# a store that does not answer is not waited for as long as a pipeline would
_PATIENCE = {"max_retries": 2}
_PARQUET = (".parquet", ".pq")
_PATTERN = re.compile(r"[*?\[]")


def shown_name(path: object) -> str:
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


def _is_table(data: object) -> bool:
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


def _no_file(name: str, table: pl.LazyFrame, secrets: tuple[str, ...] = ()) -> Source:
    """A table that is not one file; it is called by a name without a password or a query."""
    return Source(name, ".parquet", b"", None, table=table, secrets=secrets)


def place_of(path: object) -> Source | None:
    """Return the table that something names or is; ``None`` for a file."""
    if not isinstance(path, str | os.PathLike):
        return _no_file(shown_name(path), _scan_table(path)) if _is_table(path) else None
    text, name = str(path), shown_name(path)
    scheme, rest = _split_address(path)
    if scheme is not None:
        return _of_address(scheme, rest, name)
    if _PATTERN.search(text) and not os.path.exists(path):
        return _no_file(name, pl.scan_parquet(text)) if text.lower().endswith(_PARQUET) else None
    if os.path.isdir(path) and not (Path(path) / "parts").is_dir():
        inside = next((one for end in _PARQUET for one in Path(path).rglob(f"*{end}")), None)
        if inside is not None:
            return _no_file(name, pl.scan_parquet(Path(path) / f"**/*{inside.suffix}", hive_partitioning=True))
    return None


def _of_address(scheme: str, rest: str, name: str) -> Source | None:
    """The table at an address: an object store's, a web server's, or what a database answers."""
    user, asked = rest.partition("/")[0].rpartition("@")[0], rest.partition("?")[2]
    secrets = {one for one in (user, user.partition(":")[2], unquote(user.partition(":")[2])) if one}
    secrets |= {asked} if asked and scheme in _STORES else set()
    blank = _no_file(name, pl.LazyFrame(), tuple(sorted(secrets, key=len, reverse=True)))
    if scheme in _STORES:
        end, where = Path(rest.partition("?")[0]).suffix.lower(), f"{scheme}://{rest}"
        if end not in _PARQUET:
            if end or scheme.startswith("http"):
                return None
            where = f"{scheme}://{rest.rstrip('/')}/**/*.parquet"
        return replace(blank, table=pl.scan_parquet(where, storage_options=_PATIENCE))
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
        problem = f"{name} is a database; say which rows"
        raise JudgmentError(f"{problem}, as in '{name}?query=SELECT * FROM votes' or '{name}?table=votes'")
    if scheme == "duckdb":
        # behind three slashes a path is relative, behind four absolute, or where there is no such file here
        local = unquote(address.removeprefix("/"))
        local = local if os.path.isfile(local) else f"/{local.lstrip('/')}"
        if not os.path.isfile(local):
            raise JudgmentError(f"there is no file {plain(unquote(address.removeprefix('/')))}; check the path")
        address = os.path.abspath(local)
    else:
        address = f"postgresql://{address}?{options.strip('&')}".rstrip("?")

    @contextmanager
    def fetch(names: Sequence[str] | None, n_rows: int | None) -> Iterator[Any]:
        """Rows of the query, of a database that is opened for reading only where it is a file."""
        listed = "*" if names is None else ", ".join(map(_quote, names))
        limit = "" if n_rows is None else f" LIMIT {n_rows}"
        asked = f"SELECT {listed} FROM ({query.strip().rstrip(';')}) AS votes{limit}"
        if scheme == "duckdb":
            import duckdb

            with duckdb.connect(address, read_only=True) as connection:
                yield connection.sql(asked).to_arrow_reader(_ROWS_AT_ONCE)
        else:
            from adbc_driver_postgresql import dbapi

            with dbapi.connect(address) as connection, connection.cursor() as cursor:
                cursor.execute(asked)
                yield cursor.fetch_record_batch()

    try:
        return replace(blank, table=_scan_rows(fetch))
    except ImportError:
        raise MissingExtraError(f"{name} is a database; pip install 'crowdrank[sql]' to read it") from None
    except Exception as error:
        raise blank.unreadable(error) from None


# given the names of columns and a number of rows, ``None`` for all, opens a reader of Arrow's batches of these
Fetch = Callable[["Names", "int | None"], AbstractContextManager[Any]]


def _scan_rows(fetch: Fetch) -> pl.LazyFrame:
    """Rows that are fetched some at a time; columns and rows that are not needed are not asked for."""
    from polars.io.plugins import register_io_source

    def batches(names: Names, where: pl.Expr | None, n_rows: int | None, size: int | None) -> Iterator[pl.DataFrame]:
        with fetch(names, None if where is not None else n_rows) as reader:
            for batch in chain([reader.schema.empty_table()], reader if n_rows != 0 else ()):
                frame = pl.DataFrame(pl.from_arrow(batch))
                # decimals of a database are numbers like others; some drivers give them as text of a type of its own
                odd = {name: dtype for name, dtype in frame.schema.items() if isinstance(dtype, pl.BaseExtension)}
                frame = frame.with_columns(pl.col(name).ext.storage() for name in odd)
                numbers = [name for name, dtype in odd.items() if '"numeric"' in str(dtype)]
                frame = frame.with_columns(pl.col(pl.Decimal).cast(pl.Float64), pl.col(numbers).cast(pl.Float64))
                yield frame if where is None else frame.filter(where)

    return register_io_source(batches, schema=next(batches(None, None, 0, None)).schema)


def _quote(name: str) -> str:
    """A name of a column or table as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _scan_table(data: Any) -> pl.LazyFrame:
    """A table in memory, or a relation of DuckDB, whose rows are fetched as they are needed."""
    if isinstance(data, pl.LazyFrame):
        return data
    if not hasattr(data, "to_arrow_reader") or not hasattr(data, "project"):
        return to_frame(data).lazy()

    def fetch(names: Sequence[str] | None, n_rows: int | None) -> AbstractContextManager[Any]:
        chosen = data if names is None else data.project(", ".join(map(_quote, names)))
        return nullcontext((chosen if n_rows is None else chosen.limit(n_rows)).to_arrow_reader(_ROWS_AT_ONCE))

    return _scan_rows(fetch)
