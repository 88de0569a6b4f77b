"""Work on a range of rows, split over threads where it is long enough to pay."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, partial
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..protocols import Counts, Floats

Result = TypeVar("Result")
Entry = TypeVar("Entry", bound=np.generic)

_MOST_THREADS = 8
"""Each thread has arrays of its own to add up afterwards, so more threads would cost more than they save."""

_MOST_STRETCHES = 4
"""The same where their number must not depend on the machine: each has its arrays on machines with fewer cores too."""

_PAIRS_PER_THREAD = 1_000_000

_blas_lock = Lock()
_blas_limits: list[Any] = []
"""The limit that is in force, and once more for everyone who asked for it."""

_limit: ContextVar[int] = ContextVar("most threads", default=_MOST_THREADS)


def over_bounds(work: Callable[[int, int], Result], bounds: Counts) -> list[Result]:
    """Call ``work(begin, end)`` for each stretch between neighbouring bounds, in threads if there are several.

    ``work`` has to release the interpreter lock for this to help; the results come in the order of the stretches. The
    calling thread takes the last one.
    """
    stretches = [(int(begin), int(end)) for begin, end in pairwise(bounds)]
    if len(stretches) == 1:
        return [work(*stretches[0])]
    others = [_pool().submit(work, *stretch) for stretch in stretches[:-1]]
    last = work(*stretches[-1])
    # what no thread has begun is done here, so that calls within calls never wait for each other
    return [
        *(
            work(*stretch) if other.cancel() else other.result()
            for other, stretch in zip(others, stretches[:-1], strict=True)
        ),
        last,
    ]


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that stay: starting one for each call takes as long as a kernel does over 100,000 rows."""
    return ThreadPoolExecutor(_MOST_THREADS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_order(work: Callable[[int], Result], numbers: range) -> Iterator[Result]:
    """Yield ``work(number)`` for each number in their order; threads take one each, and none runs ahead of the others.

    What is done for a number is done in one thread, so that its sums do not depend on the number of cores.
    """

    def work_alone(number: int) -> Result:
        with one_thread():
            return work(number)

    n_threads = _n_threads(len(numbers), 1)
    if n_threads == 1:
        yield from map(work_alone, numbers)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        waiting: deque[Future[Result]] = deque()
        for number in numbers:
            waiting.append(pool.submit(copy_context().run, work_alone, number))
            if len(waiting) == n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def sum_over_bounds(add: Callable[..., Any], bounds: Counts, *shapes: int | tuple[int, ...]) -> list[Floats]:
    """Return the sums that ``add(begin, end, *sums)`` makes over all stretches, each in zeros of its own at first."""

    def work(begin: int, end: int) -> list[Floats]:
        sums = [np.zeros(shape) for shape in shapes]
        add(begin, end, *sums)
        return sums

    return [total(list(sums)) for sums in zip(*over_bounds(work, bounds), strict=True)]


def sum_over_parts(add: Callable[..., Any], parts: Counts, shape: int | tuple[int, ...]) -> Floats:
    """Return the sum of what ``add(begin, end, sums)`` makes of each part alone, in their order on any machine."""

    def work(begin: int, end: int) -> list[Floats]:
        by_thread = []
        for part in range(begin, end):
            by_thread.append(np.zeros(shape))
            add(parts[part], parts[part + 1], by_thread[-1])
        return by_thread

    return total([sums for some in over_bounds(work, even_bounds(len(parts) - 1, 1)) for sums in some])


def even_bounds(n_rows: int, smallest: int) -> Counts:
    """Return the bounds of equal stretches of the rows, one for each thread and none below ``smallest`` rows."""
    n_threads = _n_threads(n_rows, smallest)
    return np.linspace(0, n_rows, n_threads + 1).astype(np.int64) if n_threads > 1 else np.array([0, n_rows])


def fixed_bounds(n_rows: int, smallest: int) -> Counts:
    """Return the bounds of equal stretches that depend on the rows alone, so that sums are the same on any machine."""
    n_stretches = min(max(n_rows // smallest, 1), _MOST_STRETCHES)
    return np.linspace(0, n_rows, n_stretches + 1).astype(np.int64)


def pair_bounds(starts: Counts) -> Counts:
    """Return the bounds of stretches of items with about equally many pairs; ``starts`` as for compressed rows."""
    bounds = np.searchsorted(starts, even_bounds(int(starts[-1]), _PAIRS_PER_THREAD))
    bounds[0], bounds[-1] = 0, len(starts) - 1
    return bounds


def read_only(array: NDArray[Entry]) -> NDArray[Entry]:
    """Return a contiguous read-only view, so a kernel is compiled for one kind of array only."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def views(*arrays: Any) -> Any:
    """Return a contiguous read-only view of each array, see :func:`read_only`."""
    return tuple(read_only(array) for array in arrays)


def bind(kernel: Any, *arguments: Any) -> Any:
    """Return a compiled kernel with its first arguments; a type checker takes it for a function of any."""
    return partial(kernel, *arguments)


def dot(first: Floats, second: Floats) -> float:
    """Return the inner product of two vectors, in this thread.

    The linear algebra library would share a long one among threads of its own, and wait for them ten times as long as
    the sum takes whenever another process keeps a core busy.
    """
    return float(np.einsum("i,i->", first, second))


@contextmanager
def one_thread() -> Iterator[None]:
    """Work in one thread, so that sums do not depend on the number of cores."""
    before = _limit.set(1)
    try:
        yield
    finally:
        _limit.reset(before)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let the linear algebra libraries of numpy and scipy work in one thread.

    Their threads wait for each other by spinning: on small matrices that saves nothing, and while other processes keep
    the cores busy a millisecond becomes a second. The number is one of the process: the last of several threads that
    asked sets it back.
    """
    with _blas_lock:
        if not _blas_limits:
            _blas_limits.append(_blas().limit(limits=1, user_api="blas"))
        _blas_limits.append(_blas_limits[0])
    try:
        yield
    finally:
        with _blas_lock:
            _blas_limits.pop()
            if len(_blas_limits) == 1:
                _blas_limits.pop().restore_original_limits()


@cache
def _blas() -> Any:
    """What sets the number of threads, of the libraries that are loaded already; finding them takes milliseconds."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def total(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the sum of the threads' arrays, made in the first of them."""
    for part in parts[1:]:
        parts[0] += part
    return parts[0]


def _n_threads(n_rows: int, smallest: int) -> int:
    """How many threads share the rows when none is to get fewer than ``smallest``."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _limit.get(), n_rows // smallest))
