"""Fits over parts: the fixed tree of sums, the files of a run, and executors that hold all parts or read them anew.

What Dask shares is here too.
"""

from __future__ import annotations

import io
import json
import operator
import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from ..errors import JudgmentError, ParameterError
from ..kernels.threads import in_order, one_blas_thread, one_thread
from ..protocols import BlockFit, BlockStep, Parts, Progress, Statistics
from ..wording import option

_VERSION = 1

Value = TypeVar("Value")


class TreeSum(Generic[Value]):
    """A sum over parts that come in their order, added like the digits of a binary counter.

    Node (level, number) covers parts ``number * 2**level`` to before ``(number + 1) * 2**level``, and a missing right
    half passes the left one up. Only the logarithm of the number of parts is held at once. Sums of aligned blocks of
    ``2**level`` parts, added in their order, give the same tree.

    Examples
    --------
    >>> added = TreeSum(lambda left, right: f"({left}{right})")
    >>> for part in "abcdefg":
    ...     added.add(part)
    >>> added.total()
    '(((ab)(cd))((ef)g))'
    """

    def __init__(self, merge: Callable[[Value, Value], Value]) -> None:
        self.merge = merge
        self._waiting: list[tuple[int, Value]] = []

    def add(self, value: Value) -> None:
        """Add the next part, joining it with every left half that waits for it."""
        level = 0
        while self._waiting and self._waiting[-1][0] == level:
            value = self.merge(self._waiting.pop()[1], value)
            level += 1
        self._waiting.append((level, value))

    def total(self) -> Value:
        """Return the sum of all parts added so far."""
        if not self._waiting:
            raise ValueError("there is no part to add up")
        total = self._waiting[-1][1]
        for _, left in reversed(self._waiting[:-1]):
            total = self.merge(left, total)
        return total


@dataclass(frozen=True)
class States:
    """What parts keep from pass to pass; generation 0 is before the first pass.

    It is in memory, or in files of a directory: written, synced, then renamed, so that a repeated or killed task does
    no harm.
    """

    directory: str | None = None
    kept: dict[tuple[int, int], Statistics] = field(default_factory=dict)

    def load(self, part: int, generation: int) -> Any:
        """Return the state that a part was left in, ``None`` before the first."""
        if self.directory is None:
            return self.kept.get((part, generation))
        return _load(self._path(part, generation)) if generation else None

    def save(self, part: int, generation: int, state: Statistics) -> None:
        """Keep the state of a part."""
        if self.directory is None:
            self.kept[part, generation] = state
        else:
            _save(self._path(part, generation), state)

    def forget(self, generation: int, n_parts: int) -> None:
        """Forget a generation that no pass will read again."""
        for part in range(n_parts):
            if self.directory is None:
                self.kept.pop((part, generation), None)
            else:
                self._path(part, generation).unlink(missing_ok=True)

    def _path(self, part: int, generation: int) -> Path:
        return Path(self.directory or "") / f"part-{part:05d}.pass-{generation:05d}.npz"


@dataclass(frozen=True)
class RunFiles:
    """The directory of a run that can go on after an interruption: what is fitted, and the total of every pass.

    The caller's side of a fit depends on nothing but these totals, so it is computed again from them, bit by bit.
    """

    directory: Path

    @classmethod
    def open(cls, directory: str | os.PathLike[str], what: Mapping[str, Any]) -> RunFiles:
        """Return the files of a run, new or begun before; a directory of another run is refused."""
        path = Path(directory)
        described = json.loads(json.dumps({**what, "version": _VERSION}, default=str, sort_keys=True))
        note = path / "run.json"
        try:
            (path / "totals").mkdir(parents=True, exist_ok=True)
            (path / "state").mkdir(exist_ok=True)
            if not note.exists():
                _write(note, json.dumps(described, indent=1).encode())
        except OSError as error:
            raise ParameterError(
                f"{option('resume')} {path} cannot be written ({error.strerror}); name another"
            ) from None
        before = json.loads(note.read_text())
        different = [name for name in described if before.get(name) != described[name]]
        if different:
            raise ParameterError(
                f"{option('resume')} {path} holds a run with another {', '.join(different)}; "
                "name the directory of this run, or a new one"
            )
        return cls(path)


@contextmanager
def states_in_files(files: RunFiles | None, scratch: str | None = None) -> Iterator[States]:
    """Yield the states of a run, which are those of its files or go with it."""
    if files is not None:
        yield States(str(files.directory / "state"))
        return
    with tempfile.TemporaryDirectory(prefix="crowdrank-state-", dir=scratch, ignore_cleanup_errors=True) as folder:
        yield States(folder)


def _load(path: Path) -> Statistics:
    """The arrays and floats of a file."""
    try:
        with np.load(path, allow_pickle=False) as held:
            values = [held[f"arr_{number}"] for number in range(len(held.files))]
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise JudgmentError(f"the state {path} cannot be read ({error}); delete its directory and run again") from None
    return tuple(float(value) if value.ndim == 0 else value for value in values)


def _save(path: Path, values: Statistics) -> None:
    """Write arrays and floats, whole or not at all."""
    held = io.BytesIO()
    np.savez(held, *values)
    _write(path, held.getvalue())


def _write(path: Path, content: bytes) -> None:
    """Write a file, sync it and rename it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(scratch, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise ParameterError(
            f"{path.parent} cannot be written ({error.strerror}); nothing was lost: make room and run again"
        ) from None


@dataclass(frozen=True)
class BlockPass:
    """One pass over some parts: what to compute, which states to read, and which to write.

    ``summed`` says whether the statistics are added up, or listed part by part: lists are joined by ``+``.
    """

    merge: Callable[[Statistics, Statistics], Statistics]
    step: BlockStep
    states: States
    generation: int
    number: int
    summed: bool

    def over(self, numbers: Iterable[int], parts: Iterable[Any]) -> tuple[Any, bool]:
        """Return the statistics of an aligned run of parts, and whether states were written."""
        added: TreeSum[Any] = TreeSum(self.merge if self.summed else operator.add)
        wrote = False
        for number, part in zip(numbers, parts, strict=True):
            before = self.states.load(number, self.generation)
            # sums of a part must not depend on the cores of the machine
            with one_thread(), one_blas_thread():
                statistics, state = self.step(part, before)
            if state is not None:
                self.states.save(number, self.number, state)
                wrote = True
            # row by row in memory: the last digits of sums depend on the layout
            statistics = tuple(np.ascontiguousarray(one) if isinstance(one, np.ndarray) else one for one in statistics)
            added.add(statistics if self.summed else [statistics])
        return added.total(), wrote


def pass_in_words(number: int, seconds: float | None) -> str:
    """Return which pass is under way, and what the last one took."""
    return f"pass {number}" if seconds is None else f"pass {number}, {seconds:.1f} s each"


class Run(ABC):
    """One fit on its way (:class:`~crowdrank.protocols.Blocks`): counts its passes, and keeps the states of the parts.

    It keeps the totals too where it may go on later.
    """

    def __init__(self, fit: BlockFit, parts: Parts, states: States, files: RunFiles | None) -> None:
        self.fit, self.parts, self.states, self.files = fit, parts, states, files
        self.n_passes, self.generation, self.former = 0, 0, 0
        self.seconds: float | None = None
        """What the last pass took."""

    @abstractmethod
    def results(self, work: BlockPass) -> Iterator[tuple[Any, bool]]:
        """Yield the result of a pass over each block, in their order."""

    def total(self, step: BlockStep) -> Statistics:
        """Return the statistics of a pass, summed over all parts in the fixed tree."""
        return self._finish(step, summed=True)

    def each(self, step: BlockStep) -> list[Statistics]:
        """Return the statistics of a pass part by part."""
        flat = self._finish(step, summed=False)
        # kept in one row, behind the number of values of each part
        size = int(flat[0])
        return [tuple(flat[at : at + size]) for at in range(1, len(flat), size)]

    def read(self, step: BlockStep) -> Iterator[Statistics]:
        """Yield what a pass reads out of each part, in their order."""
        work = BlockPass(self.fit.merge, step, self.states, self.generation, self.n_passes + 1, summed=False)
        for statistics, _ in self.results(work):
            yield from statistics

    def _finish(self, step: BlockStep, *, summed: bool) -> Statistics:
        """The total of the next pass, kept from before or computed and kept; of a list of parts, one row of values.

        The states before those of the pass stay until the next ones are complete.
        """
        self.n_passes += 1
        kept = None if self.files is None else self.files.directory / "totals" / f"pass-{self.n_passes:05d}.npz"
        known = kept is not None and kept.exists()
        if kept is not None and known:
            *before, number = _load(kept)
            total, generation = tuple(before), int(number)
        else:
            added: TreeSum[Any] = TreeSum(self.fit.merge if summed else operator.add)
            work = BlockPass(self.fit.merge, step, self.states, self.generation, self.n_passes, summed)
            wrote = False
            for statistics, new in self.results(work):
                wrote |= new
                added.add(statistics)
            found = added.total()
            if summed:
                total = tuple(np.array(one, order="C") if isinstance(one, np.ndarray) else one for one in found)
            else:
                total = (float(len(found[0])), *(value for values in found for value in values))
            generation = self.n_passes if wrote else self.generation
            if kept is not None:
                _save(kept, (*total, float(generation)))
        if generation != self.generation:
            if not known and self.former:
                self.states.forget(self.former, self.parts.n_parts)
            self.former, self.generation = self.generation, generation
        return total


class _LocalRun(Run):
    """A fit in this process: parts laid out once and kept, or read and laid out in every pass."""

    def __init__(self, executor: InMemory, *args: Any) -> None:
        super().__init__(*args)
        self.progress, self.kept = executor.progress, list[Any]()
        if executor.keeps:
            # the first by itself: it makes what all parts share
            self.kept.append(self._lay_out(0))
            self.kept += in_order(self._lay_out, range(1, self.parts.n_parts))

    def _lay_out(self, number: int) -> Any:
        """A part as the passes read it."""
        with one_thread():
            return self.fit.lay_out(self.parts.part(number))

    def results(self, work: BlockPass) -> Iterator[tuple[Any, bool]]:
        """Yield the result of each part; threads share parts that are kept, and others are held one at a time."""
        numbers, began = range(self.parts.n_parts), time.monotonic()
        if self.kept:
            found = in_order(lambda number: work.over([number], [self.kept[number]]), numbers)
        else:
            found = (work.over([number], [self._lay_out(number)]) for number in numbers)
        for number, result in enumerate(found):
            yield result
            if self.progress is not None:
                self.progress(number + 1, len(numbers), pass_in_words(work.number, self.seconds))
        self.seconds = time.monotonic() - began


@dataclass(frozen=True)
class InMemory:
    """Runs passes over parts that are all held in memory.

    Parameters
    ----------
    files
        Where the run is kept, so that it can go on after an interruption; ``None`` for nowhere.
    progress
        Called after each part of a pass.
    """

    keeps: ClassVar[bool] = True
    """Whether parts are held from pass to pass, and their states in memory where there are no files."""

    files: RunFiles | None = None
    progress: Progress | None = None

    def run(self, fit: BlockFit, parts: Parts) -> Any:
        """Return the result of a fit."""
        in_memory = self.keeps and self.files is None
        with nullcontext(States()) if in_memory else states_in_files(self.files) as states:
            return fit.solve(_LocalRun(self, fit, parts, states, self.files))


@dataclass(frozen=True)
class Streamed(InMemory):
    """Runs passes over parts that are read anew in every pass; states of parts are files. See :class:`InMemory`."""

    keeps: ClassVar[bool] = False
