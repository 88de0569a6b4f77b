"""Rows of raw items: measured in several processes, or taken from a cache, and always in the order of the items."""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..data.files import PathLike, plain, refusal, whole_file
from ..errors import ParameterError
from ..kernels.threads import one_blas_thread
from ..protocols import Floats, Progress
from ..wording import one_of, option
from .raw_items import ItemError, RawItem

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
        ``"module:function"`` of this package, called with raw items and params, which yields a row or the reason why
        there is none.
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
    function: str
    n_columns: int
    chunk: int
    content: Callable[[RawItem], bytes]


def measure_rows(measure: Measure, raws: Sequence[RawItem], run: Run, what: str) -> tuple[Floats, dict[int, str]]:
    """Return one row per item, of NaN where there is none, and why those failed."""
    matrix = np.full((len(raws), measure.n_columns), np.nan)
    cache = None if run.cache is None else _Cache(run.cache, measure)
    keys = ["" if cache is None else cache.key(raw) for raw in raws]
    missing = [row for row, key in enumerate(keys) if cache is None or not cache.read(key, matrix[row])]
    chunks = [missing[start : start + measure.chunk] for start in range(0, len(missing), measure.chunk)]
    failed: dict[int, str] = {}
    tell = _news(run.progress, len(raws), what)
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
        tell(done)
    return matrix, failed


def _measure_chunks(
    measure: Measure, raws: Sequence[RawItem], chunks: Sequence[list[int]], n_processes: int
) -> Iterator[list[Floats | str]]:
    """What each chunk gives, in their order."""
    works = ((measure.function, dict(measure.params), [raws[row] for row in chunk]) for chunk in chunks)
    n_processes = min(n_processes, len(chunks))
    if n_processes <= 1:
        yield from (_measure_chunk(*work) for work in works)
        return
    from joblib.externals.loky import ProcessPoolExecutor

    # joblib.Parallel keeps a folder for arrays until the interpreter ends, which the command line does not wait for
    pool = ProcessPoolExecutor(n_processes)
    try:
        yield from pool.map(_measure_chunk, *zip(*works, strict=True))
    finally:
        pool.shutdown(wait=True, kill_workers=True)


def _measure_chunk(function: str, params: dict[str, Any], raws: list[RawItem]) -> list[Floats | str]:
    """The rows of a chunk, by one thread, so that sums are added in one order."""
    module, name = function.split(":")
    measured = getattr(import_module(module, __package__), name)
    with one_blas_thread():
        return list(measured(raws, params))


def each_item(row_of: Callable[[RawItem], Floats], raws: Sequence[RawItem]) -> Iterator[Floats | str]:
    """Yield the row of each item, or the reason why it has none."""
    for raw in raws:
        try:
            yield row_of(raw)
        except ItemError as error:
            yield str(error)


def _news(progress: Progress | None, total: int, what: str) -> Callable[[int], None]:
    """What is told how far the work is; it passes that on at most ten times a second, and at the end."""
    last = [-_SECONDS_BETWEEN_NEWS]

    def tell(done: int) -> None:
        now = time.monotonic()
        if progress is not None and (now - last[0] >= _SECONDS_BETWEEN_NEWS or done == total):
            last[0] = now
            progress(done, total, what)

    return tell


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
