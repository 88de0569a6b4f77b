"""Judgments on their way into parts: chunks of them on disk, sorted by the hash of their query or annotator."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..data.covariates import covariate_labels
from ..data.fingerprint import stable_hashes
from ..data.index import NO_QUERY, Index, Items, build_items, factorize_groups, look_up
from ..data.judgments import Grades, Judgments, Preferences, Rankings
from ..errors import JudgmentError
from ..protocols import Counts, Ints
from ..wording import option

N_BUCKETS = 1 << 16
"""Buckets that hashes are sorted into; a part is a run of them."""

MOST_PART_ROWS = 50_000_000
"""Rows of a single query beyond which judgments are to be packed by annotator."""

_ITEMS_READ_AT_ONCE = 1 << 14
"""Items of a chunk that are read for a part though it may need some of them only."""

_IDS_AT_ONCE = 1_000_000
"""Ids of chunks that are put to those known already at a time, at least."""

ITEM_COLUMNS = ("item", "left", "right")
MOST_LEVELS = 127
"""Distinct grades from which on they are no codes of one byte."""


AnyFrame = TypeVar("AnyFrame", pl.DataFrame, pl.LazyFrame)


class Chunk(NamedTuple):
    """Some of the judgments as plain columns, over ids of their own."""

    kind: str
    items: Items
    annotators: Index
    columns: dict[str, Any]
    """One entry per row; rankings have a row per item, and ``ranking`` tells which rows belong together."""
    groups: pl.Series | None
    """Family of each annotator."""
    blocks: Index | None
    form: tuple[Any, ...]
    """Declared levels, whether they are nominal, and names of covariates: the same in all chunks."""
    strength_levels: float | None = None


def chunk_of(judgments: Judgments, number: int) -> Chunk:
    """Return judgments as columns; ``number`` keeps apart what several chunks number from 0."""
    columns: dict[str, Any] = {
        name: getattr(judgments, name) for name in ("annotator", "weight", "time", "duration", "block")
    }
    form: tuple[Any, ...] = (None, False, ())
    strength_levels = None
    own = [name for name in judgments.answers if name != "offsets"]
    columns |= {name: getattr(judgments, name) for name in own}
    if isinstance(judgments, Grades):
        form = (judgments.declared, judgments.nominal, ())
    if isinstance(judgments, Preferences):
        labels = covariate_labels(judgments.covariate_names, judgments.covariate_transforms)
        form, strength_levels = (None, False, labels), judgments.strength_levels
        columns |= {"recorded": judgments.recorded, "strength": judgments.strength}
        if judgments.judgment is not None:
            columns["judgment"] = judgments.judgment.astype(np.int64) + (number << 32)
        if judgments.covariates is not None:
            columns |= {f"covariate_{place}": column for place, column in enumerate(judgments.covariates.T)}
    if isinstance(judgments, Rankings):
        ranking = judgments.ranking
        per_row = {
            name: column if column is None or not len(column) else column[ranking]
            for name, column in columns.items() if name not in own
        }  # fmt: skip
        rows = np.arange(len(ranking))
        columns |= {**per_row, "ranking": ranking.astype(np.int64) + (number << 32), "row": rows}
    groups = None
    if judgments.groups is not None and judgments.group is not None:
        groups = judgments.groups.ids.gather(judgments.group)
    given = {name: column for name, column in columns.items() if column is not None and len(column)}
    return Chunk(
        judgments.kind, judgments.items, judgments.annotators, given, groups, judgments.blocks, form, strength_levels
    )


def buckets_of(ids: pl.Series) -> NDArray[np.uint16]:
    """Return the bucket of each id."""
    return (stable_hashes(ids) >> np.uint64(48)).astype(np.uint16)


class LargeQueryError(JudgmentError):
    """A query has more rows than a part may have."""


def expect_small_query(n_rows: int) -> None:
    """Refuse a query that has more rows than a part may have."""
    if n_rows > MOST_PART_ROWS:
        raise LargeQueryError(
            f"one query has {n_rows:,} rows, more than the {MOST_PART_ROWS:,} of one part; pack the judgments "
            f"by annotator ({option('by', 'annotator')})"
        )


@dataclass
class Spill:
    """Chunks of judgments on disk, each sorted by bucket, and what is known of them all."""

    folder: Path
    by: str
    kind: str = ""
    form: tuple[Any, ...] = ()
    single: bool = True
    columns: list[str] = field(default_factory=list)
    strength_levels: float | None = None
    counts: Counts = field(default_factory=lambda: np.zeros(N_BUCKETS, np.int64))
    """Rows in each bucket."""
    levels: NDArray[np.float64] | None = field(default_factory=lambda: np.empty(0))
    """Distinct grades, ``None`` once there are too many to be coded."""
    dtypes: dict[str, set[Any]] = field(default_factory=lambda: {"annotators": set(), "queries": set(), "items": set()})
    n_chunks: int = 0
    rows: int = 0
    id_bytes: int = 0
    """Bytes of the ids of items in all chunks."""
    _saved: dict[tuple[int, str], tuple[Any, int]] = field(default_factory=dict)
    """Type of each column of each chunk, and where in its file it begins."""

    def add(self, chunk: Chunk) -> None:
        """Write one chunk, its rows in the order of their buckets."""
        self._agree(chunk)
        place = self.folder / f"{self.n_chunks:06d}"
        place.mkdir(parents=True)
        items, columns = chunk.items, dict(chunk.columns)
        first = next(name for name in ITEM_COLUMNS if name in columns)
        bucket_of_query = buckets_of(items.queries.ids)
        if self.by == "query":
            # items of a bucket stand together, so that a part takes one slice of them
            item_bucket = bucket_of_query[items.query]
            bucket = item_bucket[columns[first]]
            order = np.argsort(item_bucket, kind="stable")
            new = np.empty(len(order), np.int32)
            new[order] = np.arange(len(order), dtype=np.int32)
            for name in ITEM_COLUMNS:
                if name in columns:
                    columns[name] = new[columns[name]]
            self.save(self.n_chunks, "item_bounds", _bucket_bounds(item_bucket))
        else:
            order = np.arange(len(items))
            bucket = buckets_of(chunk.annotators.ids)[columns["annotator"]]
        rows = np.argsort(bucket, kind="stable")
        for name, column in columns.items():
            self.save(self.n_chunks, name, column[rows])
        self.save(self.n_chunks, "bounds", _bucket_bounds(bucket))
        self.counts += np.bincount(bucket, minlength=N_BUCKETS)
        ids = {"query": items.queries.ids.gather(items.query[order]), "item": items.ids.gather(order)}
        pl.DataFrame(ids).write_ipc(
            place / "items.arrow", compression="uncompressed", record_batch_size=_ITEMS_READ_AT_ONCE
        )
        self.id_bytes += (place / "items.arrow").stat().st_size
        self._write_ids(place, chunk)
        self.n_chunks += 1
        self.rows += len(bucket)
        if self.single and self.by == "query":
            expect_small_query(self.rows)

    def _write_ids(self, place: Path, chunk: Chunk) -> None:
        """Write the annotators and former queries of a chunk."""
        people = {"id": chunk.annotators.ids} | ({} if chunk.groups is None else {"group": chunk.groups})
        pl.DataFrame(people).write_ipc(place / "annotators.arrow", compression="uncompressed")
        if chunk.blocks is not None:
            pl.DataFrame({"id": chunk.blocks.ids}).write_ipc(place / "blocks.arrow", compression="uncompressed")
        self.dtypes["annotators"].add(chunk.annotators.ids.dtype)
        self.dtypes["queries"].add(chunk.items.queries.ids.dtype)
        self.dtypes["items"].add(chunk.items.ids.dtype)

    def _agree(self, chunk: Chunk) -> None:
        """Refuse a chunk that does not go with those before it, and note what it has."""
        if self.by == "annotator" and not len(chunk.annotators):
            raise JudgmentError("judgments that name no annotators cannot be packed by annotator; pack them by query")
        if not self.n_chunks:
            self.kind, self.form, self.single = chunk.kind, chunk.form, chunk.items.single
            self.columns = list(chunk.columns)
        if chunk.kind != self.kind:
            raise JudgmentError(f"{self.kind}s and {chunk.kind}s cannot be packed together; pack each kind by itself")
        if chunk.items.single != self.single:
            raise JudgmentError("some of the judgments name queries and others do not; add the query column to all")
        if chunk.form != self.form:
            what = f"different {option('levels')}" if self.kind == "grade" else "different covariates"
            raise JudgmentError(f"some {self.kind}s have {what} than others; give all of them the same")
        if ("annotator" in chunk.columns) != ("annotator" in self.columns):
            raise JudgmentError("some of the judgments name annotators and others do not; add the column to all")
        fills = {"weight", "duration", "recorded"}
        differ = set(self.columns) ^ set(chunk.columns)
        if differ - fills:
            raise JudgmentError(
                f"some {self.kind}s have a {sorted(differ - fills)[0]} and others do not; give it to all of them, or "
                "to none of them"
            )
        self.columns += [name for name in chunk.columns if name not in self.columns]
        self.strength_levels = max(self.strength_levels or 0.0, chunk.strength_levels or 0.0) or None
        if "grade" in chunk.columns and self.levels is not None:
            levels = np.unique(np.concatenate([self.levels, np.unique(chunk.columns["grade"])]))
            self.levels = levels if len(levels) < MOST_LEVELS else None

    def ids(self, name: str, number: int) -> pl.DataFrame:
        """Return a table of ids of one chunk."""
        return self._with_common_types(name, pl.read_ipc(self._path(number, f"{name}.arrow")))

    def some_items(self, bounds: Counts) -> pl.DataFrame:
        """Return the items of each chunk between its bounds, (n_chunks, 2); the rest is not read."""
        scans = [
            pl.scan_ipc(self._path(number, "items.arrow"), glob=False).slice(low, high - low)
            for number, (low, high) in enumerate(bounds.tolist()) if high > low
        ]  # fmt: skip
        return pl.concat([self._with_common_types("items", scan) for scan in scans]).collect()

    def _with_common_types(self, name: str, table: AnyFrame) -> AnyFrame:
        """A table with ids as text where those of some chunks are; former queries always are."""
        of_columns = {"annotators": {"id": "annotators"}, "items": {"query": "queries", "item": "items"}}
        mixed = [column for column, what in of_columns.get(name, {}).items() if len(self.dtypes[what]) > 1]
        mixed += ["id"] if name == "blocks" else []
        return table.with_columns(pl.col(mixed).cast(pl.String)) if mixed else table

    def column(self, name: str, number: int, first: int = 0, last: int | None = None) -> Any:
        """Return a column of one chunk from its first row up to its last; ``None`` where the chunk lacks it."""
        if (number, name) not in self._saved:
            return None
        dtype, begin = self._saved[number, name]
        count = -1 if last is None else last - first
        return np.fromfile(self._path(number, f"{name}.npy"), dtype, count, offset=begin + first * dtype.itemsize)

    def save(self, number: int, name: str, column: Any) -> None:
        """Write a column of a chunk; through a file's own ``write``, which says so where the disk is full."""
        with self._path(number, f"{name}.npy").open("wb") as handle:
            np.lib.format.write_array_header_1_0(handle, np.lib.format.header_data_from_array_1_0(column))
            self._saved[number, name] = column.dtype, handle.tell()
            handle.write(np.ascontiguousarray(column).data)

    def _path(self, number: int, name: str) -> Path:
        """A file of a chunk."""
        return self.folder / f"{number:06d}" / name

    def remove(self) -> None:
        """Remove the chunks from the disk."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _bucket_bounds(bucket: NDArray[np.uint16]) -> Counts:
    """Number of entries in lower buckets, for each bucket and the end."""
    return np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=N_BUCKETS))]).astype(np.int64)


def whole_index(spill: Spill, name: str) -> pl.DataFrame:
    """Return the table of ids of all chunks, sorted, and save the place there of each id of each chunk."""
    whole, waiting = None, list[pl.DataFrame]()
    for number in range(spill.n_chunks):
        waiting.append(spill.ids(name, number))
        n_known = 0 if whole is None else len(whole)
        # as many as there are already: each id is then gone over a few times only, however many chunks there are
        if number + 1 == spill.n_chunks or sum(map(len, waiting)) >= max(n_known, _IDS_AT_ONCE):
            whole = _unite_ids([*([] if whole is None else [whole]), *waiting])
            waiting.clear()
    assert whole is not None
    keys = [key for key in whole.columns if key != "group"]
    whole = whole.sort(keys)
    for number in range(spill.n_chunks):
        ids = spill.ids(name, number)
        spill.save(number, f"{name}_places", look_up([whole[key] for key in keys], [ids[key] for key in keys]))
    return whole


def _unite_ids(tables: list[pl.DataFrame]) -> pl.DataFrame:
    """Ids of tables, each once; an annotator must stand in the same group in all."""
    if any(table.columns != tables[0].columns for table in tables):
        raise JudgmentError("some of the judgments have a group column and others do not; add it to all of them")
    united = pl.concat(tables).unique(maintain_order=False)
    if "group" in united.columns and united["id"].n_unique() < len(united):
        twice = united.filter(pl.col("id").is_duplicated()).sort("id", "group")
        who, groups = twice["id"][0], twice["group"].head(2).to_list()
        raise JudgmentError(f"annotator {who!r} stands in two groups, {groups[0]!r} and {groups[1]!r}; name one")
    return united


def united_items(table: pl.DataFrame) -> tuple[Items, Ints]:
    """Return the distinct (query, item) of a table, sorted, and the place there of each row."""
    ((query,), query_ids), ((item,), item_ids) = factorize_groups([[table["query"]], [table["item"]]])
    if not len(query_ids):
        # the unnamed query is a blank one
        query, query_ids = np.zeros(len(table), np.int32), pl.Series("id", [NO_QUERY])
    items, (places,) = build_items(Index(query_ids), [(query, item)], item_ids, complete=True)
    return items, places
