"""The executor on a Dask cluster: few large tasks, loads that can be repeated, and answers to lost workers."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import ClusterError, CrowdrankError, MissingExtraError, ParameterError
from ..kernels.threads import one_thread
from ..protocols import BlockFit, Parts, Progress, Statistics
from ..wording import counted, option
from .executor import BlockPass, Run, RunFiles, pass_in_words, states_in_files

_BLOCKS_PER_WORKER = 3
_ONE_THREAD_EACH = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_RESULTS_AT_A_TIME = 8
"""Results of tasks that are fetched in one go."""

_BYTES_PER_ROW = 12.0
"""Bytes that a loaded judgment takes, half of which a pass needs besides."""

_BYTES_OF_A_WORKER = 250 << 20
"""Bytes of a worker that holds nothing."""

_BYTES_OF_A_PART = 64 << 20
"""What the scheduler is told that a loaded part takes: more than what is sent to it in a pass, so that it stays."""

_TRIES = 3
_WAIT_FOR_WORKERS = 60.0
"""Seconds that a cluster without workers is given to get some."""

_WAIT_FOR_SCHEDULER = 20.0
"""Seconds that a scheduler which does not answer is given to answer or to come back."""

_POLL = 2.0
_SHARE_OF_MEMORY = 0.8


# threshold (equal): bytes of statistics that a task returns with their empty rows
LARGE_STATISTICS = 64 << 20
"""Bytes of an array of statistics from which on rows without an entry are not sent."""

# threshold (equal): bytes of parameters that go through the scheduler
LARGE_PARAMETERS = 10 << 20
"""Bytes of parameters from which on they go by a file beside the states and not through the scheduler."""


@contextmanager
def dask_client(cluster: Any) -> Iterator[Any]:
    """Yield a Dask client: the one given, that of an address, or of this many worker processes here (``local:N``)."""
    if not isinstance(cluster, str):
        yield cluster
        return
    try:
        import dask

        distributed: Any = import_module("distributed")
    except ImportError:
        raise MissingExtraError("a cluster needs Dask; install it with pip install 'crowdrank[cluster]'") from None
    if cluster.startswith("local:"):
        number = cluster.removeprefix("local:")
        n_workers = int(number) if number.isdecimal() else 0
        if not 1 <= n_workers <= 1024:
            raise ParameterError(f"{option('cluster', cluster)} names no number of workers; write local:2 for two")
        memory = int(_SHARE_OF_MEMORY * import_module("distributed.system").MEMORY_LIMIT / n_workers)
        settings = {
            # Dask would have workers give back all memory at once, and the arrays of a pass be mapped anew every time
            "distributed.nanny.pre-spawn-environ": dict.fromkeys(_ONE_THREAD_EACH, 1),
            "distributed.scheduler.allowed-failures": 5,
            "distributed.worker.memory.target": False,
            "distributed.worker.memory.spill": False,
        }
        workers = {"n_workers": n_workers, "threads_per_worker": 1, "memory_limit": memory, "silence_logs": 50}
        with (
            dask.config.set(settings),
            distributed.LocalCluster(dashboard_address="127.0.0.1:0", **workers) as started,
            distributed.Client(started) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(cluster, timeout=_WAIT_FOR_SCHEDULER)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {cluster} ({error or type(error).__name__}); start one with "
            f"dask scheduler and name its address, or use {option('cluster', 'local:2')}"
        ) from None
    with client:
        yield client


@dataclass(frozen=True)
class Dask:
    """Runs passes on a Dask cluster, whose workers read the parts by their paths.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    files
        Where the run is kept, in a directory that all workers see; ``None`` for a directory of its own beside others.
    scratch
        Directory for the states of parts, which all workers see; needed where workers are on other machines.
    block
        Parts in a task, rounded down to a power of two; by default as many as give workers a few tasks each.
    progress
        Called after each block of a pass.
    """

    client: Any
    files: RunFiles | None = None
    scratch: str | None = None
    block: int | None = None
    progress: Progress | None = None

    def run(self, fit: BlockFit, parts: Parts) -> Any:
        """Return the result of a fit."""
        with states_in_files(self.files, self.scratch) as states:
            return fit.solve(_DaskRun(self, fit, parts, states, self.files))


class _DaskRun(Run):
    """A fit on a cluster; blocks of parts stay loaded on workers, and are loaded again where one is lost."""

    def __init__(self, executor: Dask, *args: Any) -> None:
        super().__init__(*args)
        self.client, self.progress, self.resumable = executor.client, executor.progress, executor.files is not None
        n_parts = self.parts.n_parts
        size = executor.block or max(1, n_parts // max(1, _BLOCKS_PER_WORKER * len(self._workers())))
        # aligned blocks of a power of two keep the tree
        size = 1 << (size.bit_length() - 1)
        self.blocks = [list(range(begin, min(begin + size, n_parts))) for begin in range(0, n_parts, size)]
        # where the workers cannot hold all parts, each is read anew in every pass
        workers = list(self._workers().values())
        limits = [one["memory_limit"] for one in workers if one["memory_limit"]]
        n_bytes = _BYTES_PER_ROW * sum(getattr(self.parts, "rows_of_parts", [])) / max(len(workers), 1)
        self.keeps = not limits or bool(n_bytes + _BYTES_OF_A_WORKER <= min(limits))
        self._load()

    def _workers(self) -> dict[str, Any]:
        """The workers there are."""
        return self.client.scheduler_info(n_workers=-1)["workers"]

    def _load(self) -> None:
        """Ask for all blocks; each is a task that can be repeated from the files."""
        # each block has a worker that is asked to hold it, so that all have about as many parts per thread: blocks are
        # worked on where they are held, and the scheduler alone gives some workers twice as many as others
        threads = {address: one["nthreads"] for address, one in self._workers().items()}
        homes: list[list[str] | None] = [None] * len(self.blocks)
        n_held = dict.fromkeys(threads, 0)
        for place in sorted(range(len(homes)), key=lambda place: -len(self.blocks[place])) if threads else ():
            size = len(self.blocks[place])
            home = min(threads, key=lambda address: (n_held[address] + size) / threads[address])
            n_held[home] += size
            homes[place] = [home]
        self.source = self.client.submit(_identity, (self.fit.lay_out, self.parts), pure=False)
        self.loaded = [
            self.client.submit(
                _load_block, self.source, numbers if self.keeps else [], retries=2, pure=False, workers=home,
                allow_other_workers=home is not None,
            )
            for numbers, home in zip(self.blocks, homes, strict=True)
        ]  # fmt: skip

    def results(self, work: BlockPass) -> Iterator[tuple[Any, bool]]:
        """Yield the result of each block in their order; a pass that fails for want of workers is repeated."""
        from distributed import CancelledError as Cancelled
        from distributed import KilledWorker

        for attempt in range(_TRIES):
            try:
                yield from self._results(work)
                return
            except CrowdrankError:
                raise
            except Exception as error:
                # not one by what a pass computes, nor by a task that kills workers
                lost = isinstance(error, _LostTaskError | Cancelled | CancelledError | OSError | TimeoutError)
                if isinstance(error, KilledWorker) or not lost or attempt + 1 == _TRIES or self._begun:
                    raise self._failure(error) from None
                self._expect_scheduler()
                self._load()

    def _results(self, work: BlockPass) -> Iterator[tuple[Any, bool]]:
        """The results of one attempt; none is given out before all are there."""
        from distributed import wait

        self._begun = False
        # sent as the argument of a task, which the scheduler can repeat; the passes are on the workers already
        path = write_parameters(work.step, str(self.states.directory), work.number)
        step = self.client.submit(*((_identity, work.step) if path is None else (read_parameters, path)), pure=False)
        bare: Any = replace(work, step=None)  # type: ignore[arg-type]
        futures = [
            self.client.submit(_run_block, self.source, loaded, step, bare, numbers, retries=2, pure=False)
            for loaded, numbers in zip(self.loaded, self.blocks, strict=True)
        ]
        started = time.monotonic()
        without = None
        while True:
            with suppress(TimeoutError):
                wait(futures, timeout=_POLL)  # type: ignore[no-untyped-call]
            self._expect_scheduler()
            done = sum(future.done() for future in futures)
            if self.progress is not None:
                self.progress(done, len(futures), pass_in_words(work.number, self.seconds))
            if done == len(futures):
                break
            if self._workers():
                without = None
                continue
            without = time.monotonic() if without is None else without
            if time.monotonic() - without > _WAIT_FOR_WORKERS:
                raise self._failure(TimeoutError("no worker is left"))
        for future in futures:
            error = future.exception() if future.status == "error" else None
            if error is not None:
                raise error
            if future.status != "finished":
                raise _LostTaskError(f"a task was {future.status}")
        self._begun, self.seconds = True, time.monotonic() - started
        for place in range(0, len(futures), _RESULTS_AT_A_TIME):
            for statistics, wrote in self.client.gather(futures[place : place + _RESULTS_AT_A_TIME]):
                whole = with_empty_rows(statistics) if work.summed else [with_empty_rows(one) for one in statistics]
                yield whole, wrote
            futures[place : place + _RESULTS_AT_A_TIME] = [None] * len(futures[place : place + _RESULTS_AT_A_TIME])

    def _expect_scheduler(self) -> None:
        """Refuse to go on with a scheduler that does not come back."""
        until = time.monotonic() + _WAIT_FOR_SCHEDULER
        while self.client.status != "running":
            if time.monotonic() > until:
                raise self._failure(TimeoutError("the scheduler is gone"))
            time.sleep(0.1)

    def _failure(self, error: BaseException) -> ClusterError:
        """What to say of a cluster that does not answer."""
        remedy = (
            f"the passes done are kept, so run the same command with {option('resume')} once workers are back"
            if self.resumable
            else f"start workers and run again, with {option('resume', 'DIR')} to go on from the last pass next time"
        )
        from distributed import KilledWorker

        if isinstance(error, KilledWorker | MemoryError):
            return ClusterError(
                f"workers were lost over a block of parts in pass {self.n_passes}, most likely out of memory: "
                f"give each more, or pack the judgments into smaller parts ({option('part', 250_000)}); {remedy}"
            )
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        return ClusterError(f"the cluster failed in pass {self.n_passes} ({said}); {remedy}")


class _LostTaskError(RuntimeError):
    """A task whose result is gone."""


def _identity(value: Any) -> Any:
    """The argument itself, as a task."""
    return value


_Source: TypeAlias = "tuple[Callable[[Any], Any], Parts]"
"""How the judgments of a part are laid out, and the parts."""


class _LoadedParts(list[Any]):
    """Parts on a worker, which the scheduler takes for too large to be moved to where the parameters are."""

    def __sizeof__(self) -> int:
        return _BYTES_OF_A_PART * len(self)


def _load_block(source: _Source, numbers: list[int]) -> _LoadedParts:
    """The parts of a block, read and laid out."""
    lay_out, parts = source
    with one_thread():
        return _LoadedParts(lay_out(parts.part(number)) for number in numbers)


def _run_block(
    source: _Source, loaded: _LoadedParts, step: Any, bare: BlockPass, numbers: list[int]
) -> tuple[Any, bool]:
    """One pass over a block, whose parts are read where none are loaded."""
    parts: Any = loaded or (_load_block(source, [number])[0] for number in numbers)
    statistics, wrote = replace(bare, step=step).over(numbers, parts)
    return without_empty_rows(statistics) if bare.summed else [without_empty_rows(one) for one in statistics], wrote


def describe_cluster(client: Any) -> str:
    """Return how many workers and threads a cluster has, in words."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return f"{counted(len(workers), 'worker')}, {counted(sum(one['nthreads'] for one in workers), 'thread')}"


class FilledRows(NamedTuple):
    """An array of which most rows are 0: those that are not, in rising order."""

    row: NDArray[np.int64]
    values: NDArray[Any]
    n_rows: int


def without_empty_rows(statistics: Statistics) -> Statistics:
    """Return statistics with large arrays of mostly empty rows, such as annotators who are not in the part, cut down.

    Examples
    --------
    >>> kept = without_empty_rows((np.zeros((9 << 20, 1)),))[0]
    >>> len(kept.row), len(with_empty_rows((kept,))[0])
    (0, 9437184)
    """
    kept = list(statistics)
    for place, value in enumerate(kept):
        if isinstance(value, np.ndarray) and value.nbytes > LARGE_STATISTICS and value.ndim:
            # 0 and -0 are two entries
            row = np.flatnonzero(np.ascontiguousarray(value).reshape(len(value), -1).view(np.uint8).any(axis=1))
            if 2 * len(row) < len(value):
                kept[place] = FilledRows(row, value[row], len(value))
    return tuple(kept)


def with_empty_rows(statistics: Statistics) -> Statistics:
    """Return statistics as they were, bit by bit."""
    whole = list(statistics)
    for place, cut in enumerate(whole):
        if isinstance(cut, FilledRows):
            whole[place] = np.zeros((cut.n_rows, *cut.values.shape[1:]), cut.values.dtype)
            whole[place][cut.row] = cut.values
    return tuple(whole)


def write_parameters(parameters: Any, folder: str, number: int) -> Path | None:
    """Write the parameters of a pass where they are large, and remove those of the pass before the last one."""
    import cloudpickle  # type: ignore[import-untyped]

    content = cloudpickle.dumps(parameters)
    if len(content) <= LARGE_PARAMETERS:
        return None
    path = Path(folder) / f"parameters-{number:05d}.pickle"
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".tmp")
    scratch.write_bytes(content)
    scratch.replace(path)
    (path.parent / f"parameters-{number - 2:05d}.pickle").unlink(missing_ok=True)
    return path


def read_parameters(path: Path) -> Any:
    """Return the parameters that this run wrote."""
    return pickle.loads(path.read_bytes())
