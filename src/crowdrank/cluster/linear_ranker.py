"""Linear rankers in parts: training rows cut by query, with the same bits here and on a Dask cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..errors import JudgmentError
from ..protocols import Counts, Executor, Floats, Progress
from ..rankers.estimator import Ranker
from ..rankers.held_out import ValidationRows, Watch
from ..rankers.linear import LinearRanker
from ..rankers.training_rows import Lists, Matrix, Scaling
from .executor import InMemory

MANY_ROWS = 1_000_000
"""Training rows from which on linear rankers are fitted in parts; fewer are taken as a whole, wherever the fit runs."""

_PART_ROWS = 250_000
"""Training rows of a part, unless one query has more."""

_COLUMNS = ("offsets", "target", "n_items", "rows", "weight", "item")


@dataclass(kw_only=True, eq=False, repr=False)
class PartedLinear(Ranker):
    """A linear ranker that is fitted in parts where rows are many; what it leaves is the plain ranker.

    Which form a fit takes depends on the number of rows, and how they are cut on their queries, so that a cluster
    changes no bit.

    Parameters
    ----------
    ranker
        The linear ranker.
    cluster
        A Dask client, the address of a scheduler, ``"local:2"``, or ``None`` for this process.
    """

    ranker: LinearRanker
    cluster: Any = None

    def __sklearn_clone__(self) -> PartedLinear:
        # a client cannot be copied
        return PartedLinear(ranker=clone(self.ranker), cluster=self.cluster)

    def __sklearn_tags__(self) -> Any:
        return self.ranker.__sklearn_tags__()

    @property
    def scorer(self) -> Ranker:
        """The plain ranker with the weights."""
        own = {name: value for name, value in self.__dict__.items() if name.endswith("_")}
        self.ranker.__dict__ |= own
        return self.ranker

    def _check(self) -> None:
        """Refuse parameters outside their range."""
        self.ranker.check()

    def _watch(self, held: ValidationRows | None, progress: Progress | None) -> Watch:
        """What follows the fit."""
        return self.ranker._watch(held, progress)

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Find the weights, in parts where there are many rows."""
        ranker = self.ranker
        if lists.n_places < MANY_ROWS or matrix.sparse or getattr(ranker, "solver", "newton") != "newton":
            ranker.learn(matrix, lists, watch)
            return

        def follower(scaling: Scaling) -> Any:
            ranker.scaling_ = scaling
            return ranker.follower(watch)

        fit = clone(ranker).over_blocks(matrix.n_features, follower)
        parts = HeldParts(matrix, ranker._order_lists(lists))
        with _executor(self.cluster, parts) as (executor, stored):
            learned = executor.run(fit, stored)
        ranker.n_features_in_ = matrix.n_features
        ranker.weights_, ranker.scaling_, ranker.trace_ = learned.weights, learned.scaling, learned.trace
        ranker.n_iter_ = learned.trace.n_iter

    def _score_rows(self, matrix: Matrix, qid: Any) -> Floats:
        """Score of each row of a matrix."""
        return self.ranker._score_rows(matrix, qid)

    def _importance(self) -> Floats:
        """What each feature counts for."""
        return self.ranker._importance()

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What was learned."""
        return self.ranker._state()

    def _restore(self, facts: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was learned."""
        self.ranker._restore(facts, numbers)


@dataclass(frozen=True, eq=False)
class HeldParts:
    """Rows in memory, cut into parts of whole queries; the cuts depend on the sizes of queries only."""

    matrix: Matrix
    lists: Lists

    @property
    def _cuts(self) -> Counts:
        """First query of each part, and the number of queries."""
        offsets = self.lists.offsets
        wanted = np.arange(0, self.lists.n_places, _PART_ROWS)
        return np.unique(np.append(np.searchsorted(offsets, wanted), self.lists.n_queries))

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self._cuts) - 1

    def part(self, number: int) -> tuple[Matrix, Lists]:
        """Return the rows of a part, and its queries."""
        first, last = self._cuts[number : number + 2]
        lists = self.lists.take(np.arange(first, last))
        assert lists.rows is not None
        begin, end = int(lists.rows.min()), int(lists.rows.max()) + 1
        if end - begin == lists.n_places:
            values, rows = self.matrix.values[begin:end], lists.rows - begin
        else:
            values, rows = self.matrix.values[lists.rows], None
        return Matrix(values, self.matrix.names), replace(lists, n_rows=len(values), rows=rows)


@dataclass(frozen=True)
class StoredParts:
    """Parts in files, which any worker that sees the folder reads."""

    folder: str
    n_parts: int

    @classmethod
    def of(cls, parts: HeldParts, folder: str) -> StoredParts:
        """Write parts into a folder."""
        for number in range(parts.n_parts):
            matrix, lists = parts.part(number)
            columns = {name: getattr(lists, name) for name in _COLUMNS if getattr(lists, name) is not None}
            np.savez(Path(folder) / f"part-{number:05d}.npz", values=matrix.values, **columns)
        return cls(folder, parts.n_parts)

    def part(self, number: int) -> tuple[Matrix, Lists]:
        """Return the rows of a part, and its queries."""
        path = Path(self.folder) / f"part-{number:05d}.npz"
        try:
            with np.load(path) as held:
                columns = {name: held[name] if name in held.files else None for name in ("values", *_COLUMNS)}
        except (OSError, ValueError, KeyError) as error:
            raise JudgmentError(
                f"the training rows in {path} cannot be read ({error}); all workers must see the system's folder for "
                "temporary files: set TMPDIR to such a one"
            ) from None
        values: Any = columns.pop("values")
        return Matrix(values), Lists(n_rows=len(values), **columns)  # type: ignore[arg-type]


@contextmanager
def _executor(cluster: Any, parts: HeldParts) -> Iterator[tuple[Executor, HeldParts | StoredParts]]:
    """Who runs the passes, and the parts as it reads them."""
    if cluster is None:
        yield InMemory(), parts
        return
    from .dask_executor import Dask, dask_client

    with dask_client(cluster) as client, tempfile.TemporaryDirectory(prefix="crowdrank-rows-") as folder:
        yield Dask(client, scratch=folder), StoredParts.of(parts, folder)
