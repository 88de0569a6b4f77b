"""The work of a study, in cells that are kept: a run that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crowdrank.data.files import refusal, whole_file
from crowdrank.datasets import Dataset, load
from crowdrank.errors import ParameterError
from crowdrank.protocols import Progress
from crowdrank.wording import one_of, option

SCOPES = ("quick", "default", "full")

Cell = Mapping[str, Any]
"""What a cell found: numbers, text and lists of them by name; arrays come back as lists."""


class Work:
    """What a study is given to work with: how much to do, data, and a place to keep what is done.

    Parameters
    ----------
    scope
        ``"quick"`` to see that it runs, ``"default"``, or ``"full"`` for the paper's whole grid.
    n_seeds
        Number of repetitions; ``None`` for the study's own.
    folder
        Where data sets lie, if not in the usual place.
    kept
        File of finished cells, ``None`` to keep none; one that another version or another scope wrote is begun again.
    stamp
        What the cells depend on besides their keys, such as the version.
    progress
        Told of cells done and cells in all.
    pages
        Folder of web pages to work on in place of a data set.
    """

    def __init__(
        self,
        scope: str = "default",
        *,
        n_seeds: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        kept: Path | None = None,
        stamp: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        pages: str | os.PathLike[str] | None = None,
    ) -> None:
        one_of(scope, SCOPES, "scope", of_verb=True)
        if n_seeds is not None and n_seeds < 1:
            raise ParameterError(f"{option('n_seeds', n_seeds)} must be at least 1")
        self.scope, self.folder, self._n_seeds = scope, folder, n_seeds
        self.pages, self.progress = pages, progress
        self._kept = kept
        self._head = json.dumps({**(stamp or {}), "scope": scope}, sort_keys=True)
        self._cells: dict[str, Cell] = {}
        self._seconds: dict[str, float] = {}
        self._data: dict[str, Dataset] = {}
        self._done, self._total, self._what = 0, 0, ""
        if kept is not None:
            self._read(kept)

    @property
    def quick(self) -> bool:
        """Whether only a glimpse is wanted."""
        return self.scope == "quick"

    @property
    def page_cache(self) -> Path | None:
        """Where rows of pages that were rendered are kept, beside the finished cells."""
        return None if self._kept is None else self._kept.with_name("rendered-pages")

    @property
    def n_resumed(self) -> int:
        """How many cells a former run left."""
        return len(self._cells)

    @property
    def seconds(self) -> float:
        """How long the cells took that are done, those of a former run included."""
        return sum(self._seconds.values())

    def pick(self, *, quick: Any, default: Any, full: Any = None) -> Any:
        """Return what fits the scope; ``full`` is as ``default`` unless given."""
        if self.scope == "full" and full is not None:
            return full
        return quick if self.quick else default

    def seeds(self, *, quick: int = 1, default: int = 5, full: int | None = None) -> range:
        """Return the seeds to repeat with: as many as were asked for, else what fits the scope."""
        return range(self._n_seeds or self.pick(quick=quick, default=default, full=full))

    def load(self, name: str) -> Dataset:
        """Return a data set, read once."""
        if name not in self._data:
            self._data[name] = load(name, self.folder)
        return self._data[name]

    def expect(self, n_cells: int, what: str) -> None:
        """Say how many cells there will be in all, for progress bars."""
        self._total, self._what = n_cells, what
        self._tell()

    def cell(self, key: Iterable[str | float], compute: Callable[[], Cell]) -> Cell:
        """Return what a cell found, from a former run if it was finished there."""
        name = json.dumps(list(key), default=_plain)
        if name not in self._cells:
            # the same as another run will read it, whether this one keeps it or not
            began = time.perf_counter()
            self._cells[name] = json.loads(json.dumps(dict(compute()), default=_plain))
            self._seconds[name] = round(time.perf_counter() - began, 3)
            self._keep(name)
        self._done += 1
        self._tell()
        return self._cells[name]

    def _tell(self) -> None:
        """Tell how far the work is."""
        if self.progress is not None and self._total:
            self.progress(min(self._done, self._total), self._total, self._what)

    def _read(self, kept: Path) -> None:
        """Take over the cells of a former run of the same kind."""
        try:
            text = kept.read_text(encoding="utf-8", errors="replace") if kept.exists() else ""
            head, *lines = text.splitlines() or [""]
            if text and head != self._head:
                kept.unlink()
            elif text:
                for name, cell, seconds in filter(None, map(_kept_cell, lines)):
                    self._cells[name], self._seconds[name] = cell, seconds
                # a run that was stopped while it wrote leaves half a line, which the next one would be added to
                if len(self._cells) < len(lines) or not text.endswith("\n"):
                    with whole_file(kept) as handle:
                        rows = [head, *map(self._line, self._cells)]
                        handle.write("".join(f"{row}\n" for row in rows).encode())
        except OSError as error:
            raise ParameterError(refusal(str(kept), kept, error)) from None

    def _keep(self, name: str) -> None:
        """Add a finished cell to the file."""
        if self._kept is None:
            return
        try:
            new = not self._kept.exists()
            with self._kept.open("a", encoding="utf-8") as handle:
                handle.write(f"{self._head}\n" if new else "")
                handle.write(f"{self._line(name)}\n")
        except OSError as error:
            raise ParameterError(refusal(str(self._kept), self._kept, error)) from None

    def _line(self, name: str) -> str:
        """A cell as it is kept."""
        return json.dumps([name, self._cells[name], self._seconds[name]])


def _kept_cell(line: str) -> tuple[str, Cell, float] | None:
    """Name, content and seconds of a kept cell, ``None`` for a damaged line."""
    try:
        name, cell, seconds = json.loads(line)
    except (ValueError, TypeError):
        return None
    whole = isinstance(name, str) and isinstance(cell, dict) and isinstance(seconds, float | int)
    return (name, cell, seconds) if whole else None


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as JSON knows them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"a cell of a study holds numbers, text and lists of them, not {type(value).__name__}")
