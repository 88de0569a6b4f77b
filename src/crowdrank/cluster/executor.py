"""Executors of fits over parts: all parts in memory, or read anew in every pass; what Dask shares is here too."""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.threads import one_blas_thread, one_thread
from ..protocols import BlockFit, BlockStep, Parts, Progress, Statistics
from .run_files import FileStates, MemoryStates, RunFiles, States
from .tree import TreeSum


@dataclass(frozen=True)
class BlockPass:
    """One pass over some parts: what to compute, which states to read, and which to write.

    ``summed`` says whether the statistics are added up, or listed part by part.
    """

    merge: Callable[[Statistics, Statistics], Statistics]
    step: BlockStep
    states: States
    generation: int
    number: int
    summed: bool

    def over(self, numbers: Iterable[int], parts: Iterable[Any]) -> tuple[Any, bool]:
        """Return the statistics of an aligned run of parts, and whether states were written."""
        added, listed, wrote = TreeSum(self.merge), list[Statistics](), False
        for number, part in zip(numbers, parts, strict=True):
            before = self.states.load(number, self.generation)
            # sums of a part must not depend on the cores of the machine
            with one_thread(), one_blas_thread():
                statistics, state = self.step(part, before)
            if state is not None:
                self.states.save(number, self.number, state)
                wrote = True
            statistics = laid_in_order(statistics)
            if self.summed:
                added.add(statistics)
            else:
                listed.append(statistics)
        return added.total() if self.summed else listed, wrote


def laid_in_order(values: Statistics, *, copy: bool = False) -> Statistics:
    """Return values with arrays row by row in memory: the last digits of their sums depend on the layout."""
    arrays = (isinstance(value, np.ndarray) for value in values)
    return tuple(
        (np.array(value, order="C") if copy else np.ascontiguousarray(value)) if is_array else value
        for value, is_array in zip(values, arrays, strict=True)
    )


def pass_in_words(number: int, seconds: float | None) -> str:
    """Return which pass is under way, and what the last one took."""
    return f"pass {number}" if seconds is None else f"pass {number}, {seconds:.1f} s each"


class Run(ABC):
    """One fit on its way: counts its passes, keeps the states of the parts, and the totals where it may go on later."""

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
        """The total of the next pass: kept from before, or computed and kept."""
        self.n_passes += 1
        before = None if self.files is None else self.files.load_total(self.n_passes)
        if before is not None:
            total, generation = before
            self._advance(generation, forget=False)
            return total
        total, wrote = self._compute(
            BlockPass(self.fit.merge, step, self.states, self.generation, self.n_passes, summed)
        )
        generation = self.n_passes if wrote else self.generation
        if self.files is not None:
            self.files.save_total(self.n_passes, total, generation)
        self._advance(generation, forget=True)
        return total

    def _compute(self, work: BlockPass) -> tuple[Statistics, bool]:
        """The total of a pass and whether states were written; of a list of parts, one row of values."""
        added, listed, wrote = TreeSum(work.merge), list[Statistics](), False
        for statistics, new in self.results(work):
            wrote |= new
            if work.summed:
                added.add(statistics)
            else:
                listed += statistics
        if work.summed:
            return laid_in_order(added.total(), copy=True), wrote
        return (float(len(listed[0])), *(value for values in listed for value in values)), wrote

    def _advance(self, generation: int, *, forget: bool) -> None:
        """Go on to a generation of states; the one before it stays until the next is complete."""
        if generation == self.generation:
            return
        if forget and self.former:
            self.states.forget(self.former, self.parts.n_parts)
        self.former, self.generation = self.generation, generation


class _LocalRun(Run):
    """A fit in this process: parts laid out once and kept, or read and laid out in every pass."""

    def __init__(self, executor: InMemory | Streamed, *args: Any) -> None:
        super().__init__(*args)
        self.progress = executor.progress
        self.kept = list(self._lay_out()) if isinstance(executor, InMemory) else None

    def _lay_out(self) -> Iterator[Any]:
        """The parts as the passes read them, one after the other."""
        for number in range(self.parts.n_parts):
            with one_thread():
                part = self.fit.lay_out(self.parts.part(number))
            yield part

    def results(self, work: BlockPass) -> Iterator[tuple[Any, bool]]:
        """Yield the result of each part."""
        n_parts, began = self.parts.n_parts, time.monotonic()
        for number, part in enumerate(self._lay_out() if self.kept is None else self.kept):
            yield work.over([number], [part])
            if self.progress is not None:
                self.progress(number + 1, n_parts, pass_in_words(work.number, self.seconds))
        self.seconds = time.monotonic() - began


@dataclass(frozen=True)
class _Local:
    """What both executors of this process have.

    Parameters
    ----------
    files
        Where the run is kept, so that it can go on after an interruption; ``None`` for nowhere.
    progress
        Called after each part of a pass.
    """

    files: RunFiles | None = None
    progress: Progress | None = None


class InMemory(_Local):
    """Runs passes over parts that are all held in memory."""

    def run(self, fit: BlockFit, parts: Parts) -> Any:
        """Return the result of a fit."""
        states = MemoryStates() if self.files is None else self.files.states
        return fit.solve(_LocalRun(self, fit, parts, states, self.files))


class Streamed(_Local):
    """Runs passes over parts that are read anew in every pass; states of parts are files."""

    def run(self, fit: BlockFit, parts: Parts) -> Any:
        """Return the result of a fit."""
        if self.files is not None:
            return fit.solve(_LocalRun(self, fit, parts, self.files.states, self.files))
        with tempfile.TemporaryDirectory(prefix="crowdrank-") as scratch:
            return fit.solve(_LocalRun(self, fit, parts, FileStates(scratch), None))
