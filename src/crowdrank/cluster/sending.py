"""What goes between the caller and workers: large statistics without their empty rows, large parameters as files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..protocols import Statistics

LARGE_STATISTICS = 64 << 20
"""Bytes of an array of statistics from which on rows without an entry are not sent."""

LARGE_PARAMETERS = 10 << 20
"""Bytes of parameters from which on they go by a file beside the states and not through the scheduler."""


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
    return tuple(_rows_with_entries(value) if isinstance(value, np.ndarray) else value for value in statistics)


def _rows_with_entries(value: NDArray[Any]) -> NDArray[Any] | FilledRows:
    """The rows of an array that have an entry, where that is less to send; 0 and -0 are two entries."""
    if value.nbytes <= LARGE_STATISTICS or not value.ndim:
        return value
    flat = np.ascontiguousarray(value).reshape(len(value), -1)
    row = np.flatnonzero(flat.view(np.uint8).any(axis=1))
    return FilledRows(row, value[row], len(value)) if 2 * len(row) < len(value) else value


def with_empty_rows(statistics: Statistics) -> Statistics:
    """Return statistics as they were, bit by bit."""
    return tuple(_fill(value) if isinstance(value, FilledRows) else value for value in statistics)


def _fill(cut: FilledRows) -> NDArray[Any]:
    """The whole array."""
    value = np.zeros((cut.n_rows, *cut.values.shape[1:]), cut.values.dtype)
    value[cut.row] = cut.values
    return value


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
