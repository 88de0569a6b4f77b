"""Files of a run: states of parts, and the totals of passes by which an interrupted run goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import JudgmentError, ParameterError
from ..protocols import Statistics
from ..wording import option

_VERSION = 1


class States(Protocol):
    """What parts keep from pass to pass; generation 0 is before the first."""

    def load(self, part: int, generation: int) -> Any:
        """Return the state that a part was left in, ``None`` before the first."""
        ...

    def save(self, part: int, generation: int, state: Statistics) -> None:
        """Keep the state of a part."""
        ...

    def forget(self, generation: int, n_parts: int) -> None:
        """Forget a generation that no pass will read again."""
        ...


@dataclass
class MemoryStates:
    """States in memory."""

    kept: dict[tuple[int, int], Statistics] = field(default_factory=dict)

    def load(self, part: int, generation: int) -> Any:
        """Return the state that a part was left in."""
        return self.kept.get((part, generation))

    def save(self, part: int, generation: int, state: Statistics) -> None:
        """Keep the state of a part."""
        self.kept[part, generation] = state

    def forget(self, generation: int, n_parts: int) -> None:
        """Forget a generation."""
        for part in range(n_parts):
            self.kept.pop((part, generation), None)


@dataclass(frozen=True)
class FileStates:
    """States in files: written, synced, then renamed, so that a repeated or killed task does no harm."""

    directory: str

    def load(self, part: int, generation: int) -> Any:
        """Return the state that a part was left in."""
        return _load(self._path(part, generation)) if generation else None

    def save(self, part: int, generation: int, state: Statistics) -> None:
        """Keep the state of a part."""
        _save(self._path(part, generation), state)

    def forget(self, generation: int, n_parts: int) -> None:
        """Delete a generation."""
        for part in range(n_parts):
            self._path(part, generation).unlink(missing_ok=True)

    def _path(self, part: int, generation: int) -> Path:
        return Path(self.directory) / f"part-{part:05d}.pass-{generation:05d}.npz"


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

    @property
    def states(self) -> FileStates:
        """The states of the parts."""
        return FileStates(str(self.directory / "state"))

    def load_total(self, number: int) -> tuple[Statistics, int] | None:
        """Return the total of a pass and the generation of states after it; ``None`` where it was not finished."""
        path = self.directory / "totals" / f"pass-{number:05d}.npz"
        if not path.exists():
            return None
        *total, generation = _load(path)
        return tuple(total), int(generation)

    def save_total(self, number: int, total: Statistics, generation: int) -> None:
        """Keep the total of a finished pass."""
        _save(self.directory / "totals" / f"pass-{number:05d}.npz", (*total, float(generation)))


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
    import io

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
