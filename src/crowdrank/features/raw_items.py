"""Raw items as a user has them: a table with a column of texts or file names, or a folder of files."""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..data.column_names import plain_name, quote_names, understand_items
from ..data.features import Features
from ..data.files import PathLike, os_reason, plain, refusal, whole_file
from ..data.frames import to_frame
from ..data.index import Items, plain_cells
from ..errors import DataWarning, JudgmentError, ParameterError, expect_package
from ..io.sources import blaming
from ..io.tables import read_table
from ..kernels.threads import one_blas_thread
from ..protocols import Floats, Progress
from ..wording import first_few, naming, one_of, option

LISTS = tomllib.loads(Path(__file__).with_name("lists.toml").read_text(encoding="utf-8"))
SUFFIXES = {kind: tuple(endings) for kind, endings in LISTS["suffixes"].items()}
CONTENT_COLUMNS = {kind: tuple(names) for kind, names in LISTS["content"].items()}

BY_FOLDER = "folder"
"""Value of ``query`` that takes the folder of a file for its query."""


class ItemError(Exception):
    """Why nothing can be made of an item, as a clause; it never holds text of the item."""


@dataclass(frozen=True)
class RawItem:
    """A text, or the file that holds one, a page or a recording."""

    name: str
    """What to call it in messages."""
    text: str | None = None
    path: Path | None = None
    root: Path | None = None
    """Folder that files of a page have to be in."""
    encoding: str = "utf-8"

    def expect_file(self) -> None:
        """Refuse a pipe or device, which may keep a reader waiting for ever; what does not exist raises as usual."""
        if self.path is not None and not S_ISREG(self.path.stat().st_mode):
            raise ItemError("a folder" if self.path.is_dir() else "no ordinary file")

    def read_bytes(self, most: int, *, cut: bool = False) -> bytes:
        """Return what the file holds; one that cannot be read is refused, and a larger one than ``most`` too, or cut.

        One byte more than ``most`` says that it was cut.
        """
        if self.path is None:
            return (self.text or "").encode("utf-8", "surrogatepass")
        try:
            self.expect_file()
            with self.path.open("rb") as handle:
                data = handle.read(most + 1)
        except (OSError, ValueError) as error:
            raise ItemError(os_reason(error) if isinstance(error, OSError) else "no file name") from None
        if len(data) > most and not cut:
            raise ItemError(f"larger than {most // 1_000_000} MB")
        return data


@dataclass(frozen=True)
class RawItems:
    """Raw items in the order of their ids, which does not depend on that of the rows."""

    items: Items
    raw: tuple[RawItem, ...]

    def __len__(self) -> int:
        return len(self.raw)


def read_raw_items(
    given: Any,
    kind: str,
    *,
    columns: Mapping[str, str] | None = None,
    query: str | None = None,
    encoding: str = "utf-8",
) -> RawItems:
    """Return the raw items of a frame, a dict of columns, a table in a file, or a folder.

    Parameters
    ----------
    given
        The frame, the columns, or the path.
    kind
        ``"text"``, ``"page"`` or ``"speech"``.
    columns
        Our word (item, query, text, file) -> name of the column.
    query
        Column of the query, or ``"folder"`` where the folder of each file is its query.
    encoding
        How the characters of texts are stored.
    """
    if isinstance(given, str | os.PathLike):
        if given != "-" and Path(given).is_dir():
            return _in_folder(Path(given), kind, query, encoding)
        frame = read_table(given, encoding=encoding)
        with blaming(plain(str(given))):
            return _in_table(frame, kind, columns, query, Path(given).parent if given != "-" else Path())
    return _in_table(to_frame(given), kind, columns, query, Path())


def _in_folder(folder: Path, kind: str, query: str | None, encoding: str) -> RawItems:
    """The files of a folder and of those in it whose names end as they should, hidden ones left out."""
    where = plain(str(folder))
    if query not in (None, BY_FOLDER):
        raise ParameterError(f"{option('query', query)} names a column, and {where} is a folder; say folder")

    def refuse(error: OSError) -> None:
        raise JudgmentError(f"{plain(str(error.filename))} cannot be listed: {os_reason(error)}; check its permissions")

    paths = []
    for inside, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        wanted = [name for name in names if name.lower().endswith(SUFFIXES[kind]) and not name.startswith(".")]
        paths += [Path(inside, name).relative_to(folder) for name in wanted]
    paths.sort()
    if not paths:
        raise JudgmentError(f"{where} holds no file that ends in {', '.join(SUFFIXES[kind])}; give another folder")
    raw = [RawItem(plain(one.as_posix()), path=folder / one, root=folder, encoding=encoding) for one in paths]
    if query is None:
        return _sort_items(None, [_id(path) for path in paths], raw)
    return _sort_items([_id(path.parent) for path in paths], [_id(Path(path.name)) for path in paths], raw)


def _id(path: Path) -> str:
    """A path as an id, however its bytes are encoded."""
    return path.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _in_table(frame: Any, kind: str, columns: Mapping[str, str] | None, query: str | None, folder: Path) -> RawItems:
    """The rows of a table."""
    given = {word: name for word, name in (columns or {}).items() if word not in ("text", "file")}
    if query == BY_FOLDER:
        raise ParameterError(f"{option('query', query)} goes with a folder of files; name the column of the query")
    if query is not None:
        if query not in frame.columns:
            names = quote_names(frame.columns)
            raise JudgmentError(f"{option('query', query)} names no column of the table; its columns are {names}")
        given["query"] = query
    # the column with the text, or the name of the file
    word, content = "text" if kind == "text" else "file", None
    if columns is not None and word in columns:
        content = columns[word]
        if content not in frame.columns:
            raise JudgmentError(f"there is no column {content!r}; the table has {quote_names(frame.columns)}")
    else:
        plain_names = {plain_name(name): name for name in reversed(frame.columns) if name not in given.values()}
        content = next((plain_names[one] for one in CONTENT_COLUMNS[kind] if one in plain_names), None)
    if content is None:
        names = quote_names(frame.columns)
        raise JudgmentError(f"the table has no column {word} (its columns are {names}); {naming(word)}")
    by_role = understand_items([name for name in frame.columns if name != content], given)
    if not len(frame):
        raise JudgmentError("the table has a header but no rows; write one row per item")
    ids = [str(value) for value in frame[by_role["item"]].to_list()]
    cells = [None if value is None else str(value) for value in plain_cells(frame[content]).to_list()]
    query_column = frame[by_role["query"]] if "query" in by_role else None
    if kind == "text":
        raw = [RawItem(f"item {name!r}", text=cell or "") for name, cell in zip(ids, cells, strict=True)]
    else:
        blank = [row for row, cell in enumerate(cells) if not cell]
        if blank:
            raise JudgmentError(f"the file of item {ids[blank[0]]!r} is blank in row {blank[0] + 1}; fill it in")
        root = folder.resolve()
        raw = [RawItem(plain(cell or ""), path=folder / (cell or ""), root=root) for cell in cells]
    return _sort_items(query_column, frame[by_role["item"]], raw)


def _sort_items(query: Any, item: Any, raw: Sequence[RawItem]) -> RawItems:
    """Raw items in the order of their ids; blank ids and items that stand twice are refused."""
    rows = Features.from_arrays(query, item, np.arange(len(raw), dtype=np.float64)[:, None], names=["row"])
    return RawItems(rows.items, tuple(raw[int(row)] for row in rows.matrix[:, 0]))


def cut_into_queries(items: RawItems, size: int, seed: int) -> RawItems:
    """Return the items in queries of at most so many, drawn at random from the ids in their order."""
    n_queries = -(-len(items) // size)
    query = [""] * len(items)
    for number, rows in enumerate(np.array_split(np.random.default_rng(seed).permutation(len(items)), n_queries), 1):
        for row in rows:
            query[row] = str(number).zfill(len(str(n_queries)))
    return _sort_items(query, items.items.ids, items.raw)


def leave_out(items: RawItems, failed: Mapping[int, str], on_error: str) -> RawItems:
    """Return the items without those that failed, or refuse them all; names the first five and counts the others."""
    if not failed:
        return items
    which = first_few([f"{items.raw[row].name} ({reason})" for row, reason in failed.items()])
    what = f"{len(failed):,} of {len(items):,} items could not be used: {which}"
    if on_error == "stop" or len(failed) == len(items):
        them = "them" if len(failed) > 1 else "it"
        remedy = f"correct or remove {them}"
        also = f", or leave {them} out with {option('on_error', 'skip')}" if len(failed) < len(items) else ""
        raise JudgmentError(f"{what}; {remedy}{also}")
    left_out = "they were left out" if len(failed) > 1 else "it was left out"
    warnings.warn(f"{what}; {left_out}", DataWarning, stacklevel=4)
    keep = np.array([row not in failed for row in range(len(items))])
    query = None if items.items.single else items.items.query_ids().filter(keep)
    kept = [raw for row, raw in enumerate(items.raw) if row not in failed]
    return _sort_items(query, items.items.ids.filter(keep), kept)


@dataclass(frozen=True)
class Made:
    """Items that could be used, their columns (NaN where missing), and what was fitted on the way."""

    items: RawItems
    matrix: Floats
    names: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    measures: Floats | None = None
    """Clutter of pages by each measure, where it was asked for."""
    details: pl.DataFrame | None = None
    """What is kept of each item besides its columns: item [, query] and more."""


_SECONDS_BETWEEN_NEWS = 0.1


@dataclass(frozen=True, kw_only=True)
class Run:
    """How items are worked through; nothing of it changes what comes out."""

    n_jobs: int = 1
    cache: PathLike | None = None
    on_error: str = "stop"
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if isinstance(self.n_jobs, bool) or not isinstance(self.n_jobs, int) or (self.n_jobs < 1 and self.n_jobs != -1):
            raise ParameterError(f"{option('n_jobs', self.n_jobs)} is not a number of processes; use 1 or more, or -1")
        one_of(self.on_error, ("stop", "skip"), "on_error", of_verb=True)
        if self.cache is not None and os.path.isfile(self.cache):
            what = plain(str(self.cache))
            raise ParameterError(f"{option('cache')} takes a folder, and {what} is a file; name another")

    @property
    def n_processes(self) -> int:
        """How many processes work; -1 stands for one per core."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cores if self.n_jobs == -1 else self.n_jobs


@dataclass(frozen=True)
class Measure:
    """What turns raw items of a kind into rows.

    Parameters
    ----------
    kind, version, params
        What a row depends on besides its item.
    function
        Called with raw items and params, perhaps in another process; it yields a row or the reason why there is none.
    n_columns
        Length of a row.
    chunk
        How many items a process gets at once.
    content
        What a row depends on, as bytes.
    """

    kind: str
    version: int
    params: Mapping[str, Any]
    function: Callable[[Sequence[RawItem], Mapping[str, Any]], Iterator[Floats | str] | Iterator[Floats]]
    n_columns: int
    chunk: int
    content: Callable[[RawItem], bytes]


def measure_rows(measure: Measure, items: RawItems, run: Run, what: str) -> tuple[RawItems, Floats]:
    """Return the items that have rows and one row of each; those that failed are left out or all are refused."""
    raws = items.raw
    matrix = np.full((len(raws), measure.n_columns), np.nan)
    cache = None if run.cache is None else _Cache(run.cache, measure)
    keys = ["" if cache is None else cache.key(raw) for raw in raws]
    missing = [row for row, key in enumerate(keys) if cache is None or not cache.read(key, matrix[row])]
    chunks = [missing[start : start + measure.chunk] for start in range(0, len(missing), measure.chunk)]
    failed: dict[int, str] = {}
    last_news = -_SECONDS_BETWEEN_NEWS
    done = len(raws) - len(missing)
    for chunk, rows in zip(chunks, _measure_chunks(measure, raws, chunks, run.n_processes), strict=True):
        for row, values in zip(chunk, rows, strict=True):
            if isinstance(values, str):
                failed[row] = values
            else:
                matrix[row] = values
                if cache is not None:
                    cache.write(keys[row], matrix[row])
        done += len(chunk)
        now = time.monotonic()
        if run.progress is not None and (now - last_news >= _SECONDS_BETWEEN_NEWS or done == len(raws)):
            last_news = now
            run.progress(done, len(raws), what)
    return leave_out(items, failed, run.on_error), matrix[[row not in failed for row in range(len(items))]]


def _measure_chunks(
    measure: Measure, raws: Sequence[RawItem], chunks: Sequence[list[int]], n_processes: int
) -> Iterator[list[Floats | str]]:
    """What each chunk gives, in their order."""
    works = ((measure.function, dict(measure.params), [raws[row] for row in chunk]) for chunk in chunks)
    n_processes = min(n_processes, len(chunks))
    if n_processes <= 1:
        yield from (_measure_chunk(*work) for work in works)
        return
    expect_package("joblib")
    from joblib.externals.loky import ProcessPoolExecutor

    # joblib.Parallel keeps a folder for arrays until the interpreter ends, which the command line does not wait for
    pool = ProcessPoolExecutor(n_processes)
    try:
        yield from pool.map(_measure_chunk, *zip(*works, strict=True))
    finally:
        pool.shutdown(wait=True, kill_workers=True)


def _measure_chunk(function: Any, params: dict[str, Any], raws: list[RawItem]) -> list[Floats | str]:
    """The rows of a chunk, by one thread, so that sums are added in one order."""
    with one_blas_thread():
        return list(function(raws, params))


def each_item(row_of: Callable[[RawItem], Any], raws: Sequence[RawItem]) -> Iterator[Floats | str]:
    """Yield the row of each item, or the reason why it has none."""
    for raw in raws:
        try:
            yield np.asarray(row_of(raw), np.float64)
        except ItemError as error:
            yield str(error)


class _Cache:
    """A folder with a file per row, whose name is a checksum of all that the row depends on."""

    def __init__(self, folder: PathLike, measure: Measure) -> None:
        self.folder, self.measure = Path(folder), measure
        about = {"kind": measure.kind, "version": measure.version, "params": dict(measure.params)}
        self._about = json.dumps({**about, "columns": measure.n_columns}, sort_keys=True).encode()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(refusal(plain(str(folder)), self.folder, error)) from None

    def key(self, raw: RawItem) -> str:
        """Return the name of an item's row; an item that cannot be read has none."""
        try:
            return hashlib.sha256(self._about + b"\0" + self.measure.content(raw)).hexdigest()
        except ItemError:
            return ""

    def _file(self, key: str) -> Path:
        """Where a row is kept."""
        return self.folder / key[:2] / f"{key[2:]}.npy"

    def read(self, key: str, row: Floats) -> bool:
        """Fill in a row that is kept, and say whether there is one; a damaged file counts as none."""
        try:
            values = np.load(io.BytesIO(self._file(key).read_bytes()), allow_pickle=False) if key else None
        except (OSError, ValueError, EOFError):
            return False
        if values is None or values.shape != row.shape or values.dtype != np.float64:
            return False
        row[:] = values
        return True

    def write(self, key: str, row: Floats) -> None:
        """Keep a row."""
        if not key:
            return
        memory = io.BytesIO()
        np.save(memory, row, allow_pickle=False)
        target = self._file(key)
        try:
            target.parent.mkdir(exist_ok=True)
            with whole_file(target) as handle:
                handle.write(memory.getvalue())
        except OSError as error:
            raise ParameterError(refusal(plain(str(target)), target, error)) from None
