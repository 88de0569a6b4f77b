"""LambdaMART on a Dask cluster: LightGBM's distributed ranker, in slices of trees, under a watch-dog."""

from __future__ import annotations

import tempfile
import threading
import time
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ..errors import ClusterError, JudgmentError, MissingExtraError, ParameterError
from ..protocols import Counts, Ints, Progress
from ..rankers.estimator import Ranker, ValidationRows, Watch, gains
from ..rankers.lambda_mart import MAX_TREES, LambdaMART, Trees
from ..rankers.linear import LinearRanker
from ..rankers.training_rows import Lists, Matrix, Scaling
from ..wording import option
from .dask_executor import Dask, dask_client, describe_cluster
from .executor import InMemory

SLICE_TREES, _MEASURED_TREES = 100, 20
"""Trees that are grown in one go, and where validation queries are measured after each."""

_PARTS_PER_WORKER = 2
_TRIES = 3
_POLL = 2.0
_WAIT_FOR_WORKERS = 60.0
_WAIT_FOR_END = 20.0
"""Seconds that a training is given to notice that it was ended."""

_LOCK = "crowdrank-lambda-mart"


# threshold (equal): training rows of a linear ranker learned as a whole
MANY_ROWS = 1_000_000
"""Training rows from which on linear rankers are fitted in parts; fewer are taken as a whole, wherever the fit runs."""

_PART_ROWS = 250_000
"""Training rows of a part, unless one query has more."""

_COLUMNS = ("offsets", "target", "n_items", "rows", "weight", "item")


@dataclass(kw_only=True, eq=False, repr=False)
class ClusterLambdaMART(LambdaMART):
    """LambdaMART whose trees are grown on a Dask cluster; what it leaves is a plain :class:`LambdaMART`.

    Rows are cut into parts of whole queries, which workers read from files. Trees are grown a hundred at a time, each
    slice from the scores so far on. LightGBM waits for ever where a worker is lost; here a watch-dog looks at the
    workers every two seconds, starts them anew and repeats the slice, three times at most. Two runs need not give the
    same trees: bins depend on which rows lie on which worker.

    Parameters
    ----------
    cluster
        A Dask client, the address of a scheduler, or ``"local:2"``.
    scratch
        Directory for the parts, which all workers see; ``None`` for the system's own.
    """

    cluster: Any = "local:2"
    scratch: str | None = None

    def __sklearn_clone__(self) -> ClusterLambdaMART:
        # a client cannot be copied
        return ClusterLambdaMART(**self.get_params(deep=False))

    def _plain(self) -> LambdaMART:
        """The same ranker on one machine."""
        params = self.get_params(deep=False)
        return LambdaMART(**{name: value for name, value in params.items() if name not in ("cluster", "scratch")})

    @property
    def scorer(self) -> Ranker:
        """The plain ranker with the trees."""
        plain = self._plain()
        plain.__dict__ |= {name: value for name, value in self.__dict__.items() if name.endswith("_")}
        return plain

    def _learn(self, matrix: Matrix, lists: Lists, watch: Watch) -> None:
        """Grow the trees on the cluster."""
        gain = gains(lists.target, self.gain)
        levels = np.unique(gain)
        if self._uses_own_slopes(lists, len(levels)):
            raise ParameterError(
                f"{option('cluster')} trains on one row for each item, equal weights and up to 1,000 distinct gains; "
                "leave it out, or let the ranker learn a consensus"
            )
        plain = self._plain()
        n_trees = self.n_trees or (MAX_TREES if watch.held is not None else plain._held_out_trees(matrix, lists, watch))
        options = self._options(lists, own=False) | self._extra_options(matrix)[0]
        options |= {"objective": "lambdarank", "label_gain": levels.tolist()}
        label = np.searchsorted(levels, gain).astype(np.float32)
        with dask_client(self.cluster) as client, tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            # a part ends with a query
            n_parts = _PARTS_PER_WORKER * len(_workers(client))
            offsets: Any = lists.offsets
            ends = np.searchsorted(offsets, np.linspace(0, offsets[-1], max(1, min(n_parts, lists.n_queries)) + 1)[1:])
            cuts: Ints = np.unique(np.append(0, ends))
            for number, (first, last) in enumerate(pairwise(cuts.tolist())):
                places = np.arange(offsets[first], offsets[last])
                values = matrix.values[places if lists.rows is None else lists.rows[places]]
                dense = np.asarray(values.todense()) if matrix.sparse else np.asarray(values)
                group = np.diff(offsets[first : last + 1]).astype(np.int32)
                for name, column in {"rows": dense, "label": label[places], "group": group}.items():
                    np.save(Path(folder) / f"{number}-{name}.npy", column)
            sizes = np.diff(offsets[cuts]), np.diff(cuts), matrix.n_features
            self.trees_ = _Training(client, options, folder, *sizes).grow(n_trees, watch)
        self.n_trees_ = len(self.trees_)


def _workers(client: Any) -> set[str]:
    """Addresses of the workers there are."""
    return set(client.scheduler_info(n_workers=-1)["workers"])


@dataclass
class _Training:
    """Trees on their way: rows in the files of a folder, in parts of whole queries, and the slices that are done."""

    client: Any
    options: dict[str, Any]
    folder: str
    rows: Counts
    """Number of rows of each part."""
    queries: Counts
    n_features: int
    texts: list[str] = field(default_factory=list)

    def grow(self, n_trees: int, watch: Watch) -> Trees:
        """Return the trees, those of the best slices where there are validation queries."""
        from distributed import Lock

        with self.client.as_current():
            lock: Any = Lock(_LOCK)  # type: ignore[no-untyped-call]
            free = lock.acquire(timeout=_POLL)
        if not free:
            raise ClusterError("another ranker is being trained on this cluster; wait until that has ended")
        try:
            each = SLICE_TREES if watch.held is None else _MEASURED_TREES
            done: list[Trees] = []
            kept = 0
            while len(done) * each < n_trees and not watch.is_exhausted:
                size = min(each, n_trees - len(done) * each)
                text = self._slice(size)
                self.texts.append(text)
                done.append(Trees.from_lightgbm(text.encode()))
                scores = None
                if watch.held is not None:
                    rows = watch.held.lists.rows
                    sums = Trees.join(done).sums(watch.held.matrix)
                    scores = sums if rows is None else sums[rows]
                if watch.note((len(done) - 1) * each + size, scores=scores):
                    kept = len(done)
            return Trees.join(done[:kept])
        finally:
            # workers that were started anew have forgotten it
            with suppress(Exception):
                lock.release()

    def _slice(self, n_trees: int) -> str:
        """The text of this many more trees; a slice that loses a worker is grown again."""
        for _ in range(_TRIES):
            until = time.monotonic() + _WAIT_FOR_WORKERS
            while not (before := _workers(self.client)):
                if time.monotonic() > until:
                    raise ClusterError(
                        f"the cluster has had no worker for {_WAIT_FOR_WORKERS:.0f} seconds; start some and train again"
                    )
                time.sleep(0.2)
            attempt: Future[str] = Future()
            # in a thread of its own, which may never end
            threading.Thread(target=self._grow_slice, args=(n_trees, attempt), daemon=True).start()
            while not wait([attempt], _POLL).done:
                if before - _workers(self.client):
                    break
            done = attempt.done()
            error = attempt.exception() if done else None
            if done and error is None:
                return attempt.result()
            if error is not None and not before - _workers(self.client):
                said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
                raise ClusterError(
                    f"LightGBM could not grow the trees on {describe_cluster(self.client)} ({said}); change the "
                    f"parameters of lambda_mart, or leave {option('cluster')} out"
                )
            # the training waits for a lost worker, and would for ever
            try:
                self.client.restart(timeout=30, wait_for_workers=False)
            except Exception as failure:
                raise ClusterError(
                    f"a worker was lost and the others could not be started anew ({type(failure).__name__}); start the "
                    "cluster again"
                ) from None
            wait([attempt], _WAIT_FOR_END)
        raise ClusterError(
            f"a worker was lost in each of {_TRIES} attempts to grow trees {len(self.texts) * SLICE_TREES + 1} and "
            f"following; give workers more memory, or leave {option('cluster')} out: one machine holds 50 million rows "
            "of 136 features in 6.8 GB"
        )

    def _grow_slice(self, n_trees: int, attempt: Future[str]) -> None:
        """Trees on top of those done, by LightGBM; data are read anew, so a lost worker loses none."""
        try:
            attempt.set_result(self._more_trees(n_trees))
        except BaseException as error:
            attempt.set_exception(error)

    def _more_trees(self, n_trees: int) -> str:
        """The text of trees on top of those done."""
        try:
            from lightgbm import DaskLGBMRanker
        except ImportError:
            raise MissingExtraError(
                "LightGBM's ranker on Dask needs pandas beside Dask; install crowdrank[cluster] anew"
            ) from None
        da, delayed = import_module("dask.array"), import_module("dask").delayed
        texts = tuple(self.texts)

        def column(name: str, sizes: Counts, dtype: Any, *width: int) -> Any:
            load = delayed(_load, pure=True)
            pieces = [
                da.from_delayed(load(self.folder, number, name, texts), (int(size), *width), dtype)
                for number, size in enumerate(sizes)
            ]
            return da.concatenate(pieces)

        rows = column("rows", self.rows, np.float64, self.n_features)
        label, group = column("label", self.rows, np.float32), column("group", self.queries, np.int32)
        scores = column("scores", self.rows, np.float64) if texts else None
        held = self.client.persist([one for one in (rows, label, group, scores) if one is not None])
        import_module("distributed").wait(held)
        ranker = DaskLGBMRanker(client=self.client, n_estimators=n_trees, **self.options)
        ranker.fit(held[0], held[1], group=held[2], init_score=held[3] if texts else None)
        return str(ranker.booster_.model_to_string())


def _load(folder: str, number: int, name: str, texts: tuple[str, ...]) -> Any:
    """A column of a part; ``scores`` are those of the trees so far."""
    if name != "scores":
        return np.load(Path(folder) / f"{number}-{name}.npy")
    import lightgbm

    rows = np.load(Path(folder) / f"{number}-rows.npy")
    return sum(lightgbm.Booster(model_str=text).predict(rows, raw_score=True) for text in texts)


@dataclass(kw_only=True, eq=False, repr=False)
class PartedLinear(Ranker):
    """A linear ranker that is fitted in parts where rows are many; what it leaves, ``scorer``, is the plain ranker.

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

    def check(self) -> None:
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
        if self.cluster is None:
            learned = InMemory().run(fit, parts)
        else:
            with dask_client(self.cluster) as client, tempfile.TemporaryDirectory(prefix="crowdrank-rows-") as folder:
                learned = Dask(client, scratch=folder).run(fit, StoredParts.of(parts, folder))
        ranker.weights_, ranker.scaling_, ranker.trace_ = learned
        ranker.n_features_in_ = matrix.n_features
        ranker.n_iter_ = ranker.trace_.n_iter


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
