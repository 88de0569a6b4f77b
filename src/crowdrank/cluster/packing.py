"""Judgments into a folder of parts: the same judgments give the same bytes, whatever their order.

Judgments in memory are cut into the parts that packing them would give, so that fits have the same bits.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..data.covariates import covariate_labels
from ..data.files import PathLike, lock_file, plain, refusal, whole_file
from ..data.index import NO_QUERY, Index, Items, build_items, factorize, factorize_groups, look_up
from ..data.intake import Rows as Intake
from ..data.intake import counting_from, numeric_levels, shared_fields
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings
from ..data.parted import row_numbers, stable_hashes
from ..data.preferences import assemble_rankings
from ..errors import JudgmentError, ParameterError
from ..io.judgments import ROWS_AT_ONCE, Rows, build, table_chunks
from ..io.read_options import ReadOptions
from ..io.sources import blaming, shown_name
from ..protocols import Counts, Ints, Progress
from ..wording import one_of, option
from .packed import MANIFEST, VERSION, PackedJudgments, file_checksum, is_packed, items_of, scan_judgments

PART_ROWS = 1_000_000
"""Judgments of a part, unless one query or annotator has more."""

_PARTS_AT_ONCE = 2
_ID_BYTES_AT_ONCE = 128 << 20
"""Parts that are put together at a time, and bytes of the ids of their items above which it is one."""

_OWN_FILE = re.compile(r"(annotators|blocks|items|part-\d+)(-[0-9a-f]{8})?\.parquet|\..*")
"""Names of the files of a packed folder; hidden ones are half-written, or the lock."""


N_BUCKETS = 1 << 16
"""Buckets that hashes are sorted into; a part is a run of them."""

# threshold (refused): rows of one query packed by query
MOST_PART_ROWS = 50_000_000
"""Rows of a single query beyond which judgments are to be packed by annotator."""

_ITEMS_READ_AT_ONCE = 1 << 14
"""Items of a chunk that are read for a part though it may need some of them only."""

_IDS_AT_ONCE = 1_000_000
"""Ids of chunks that are put to those known already at a time, at least."""

ITEM_COLUMNS = ("item", "left", "right")
_FILLS = {"weight": 1.0, "duration": np.nan, "recorded": False}
"""What stands for none where a chunk lacks a column that others have."""

MOST_LEVELS = 127
"""Distinct grades from which on they are no codes of one byte."""


AnyFrame = TypeVar("AnyFrame", pl.DataFrame, pl.LazyFrame)

_ORDER = (
    "item", "left", "right", "annotator", "outcome", "grade", "weight", "time", "duration", "block", "strength",
    "recorded",
)  # fmt: skip
"""Columns by which the rows of a part are sorted, and in which order they are written."""


def pack_judgments(
    chunks: Iterable[Judgments | Mixed | Chunk],
    out: PathLike,
    *,
    by: str = "query",
    part_rows: int | None = None,
    append: bool = False,
    sources: Sequence[str] = (),
    progress: Progress | None = None,
) -> PackedJudgments:
    """Return the packed judgments of a folder, written from chunks of judgments of one kind.

    Parameters
    ----------
    chunks
        Judgments, all of one kind; equal ids mean the same annotator, query and item.
    out
        Folder to write; made where it is missing, and otherwise empty or packed before.
    by
        What no part shares with another. ``"query"`` for items within queries; ``"annotator"`` where one query has
        most of the judgments, as in an arena.
    part_rows
        Rows of a part, at most unless one query or annotator has more: more need more memory at a time, fewer make
        more files. ``None`` for those of a folder that is added to, and otherwise a million.
    append
        Put the judgments to those that are there already; the bytes are then those of packing all of them at once.
    sources
        Names of the files, for the manifest.
    progress
        Called with (parts done, parts in all, what is being done).
    """
    one_of(by, ("query", "annotator"), "by", of_verb=True)
    if part_rows is not None and part_rows < 1:
        raise ParameterError(f"{option('part', part_rows)} is not a number of judgments; give 1 or more")
    folder, name = Path(out), plain(str(out))
    before = scan_judgments(folder) if append else None
    if before is not None:
        by, sources = before.by, sorted({*before.manifest["sources"], *sources})
        part_rows = part_rows or before.manifest["part_rows"]
    elif folder.exists() and not folder.is_dir():
        raise ParameterError(f"{name} is a file; give the name of a folder to pack into")
    elif is_packed(folder):
        scan_judgments(folder)  # anything else that is called so is not replaced
    elif folder.is_dir():
        # what a writer leaves who is killed before there is a manifest may be replaced
        own = [one for one in folder.iterdir() if not (one.is_dir() and one.name in ("parts", "items"))]
        own += [*folder.glob("parts/*"), *folder.glob("items/*")]
        if not all(_OWN_FILE.fullmatch(one.name) for one in own):
            raise ParameterError(f"{name} holds other files; give the name of a new or an empty folder")
    with _writing(folder):
        for left in folder.glob(".chunks-*"):  # by a writer who was killed: nobody else is writing
            shutil.rmtree(left, ignore_errors=True)
        spill = Spill(folder / f".chunks-{os.getpid()}", by)
        try:
            if before is not None:
                form = (before.declared, before.nominal, tuple(before.manifest["covariates"]))
                for number, part in enumerate(before.parts()):
                    spill.add(chunk_of(part, number)._replace(form=form))
            with ThreadPoolExecutor(1) as pool:
                # each chunk is written while the next one is read
                writing: Future[None] | None = None
                for number, chunk in enumerate(chunks, spill.n_chunks):
                    if writing is not None:
                        writing.result()
                    if isinstance(chunk, Mixed):
                        kinds = " and ".join(f"{kind}s" for kind in chunk.kinds)
                        raise JudgmentError(f"{kinds} cannot be packed together; pack each kind by itself")
                    writing = pool.submit(spill.add, chunk if isinstance(chunk, Chunk) else chunk_of(chunk, number))
                    del chunk  # goes before the next one is read
                if writing is not None:
                    writing.result()
            if not spill.rows:
                raise JudgmentError("there are no judgments to pack; name files that hold some")
            manifest = _write_files(spill, folder, part_rows or PART_ROWS, sorted(sources), progress)
        finally:
            shutil.rmtree(spill.folder, ignore_errors=True)
        # the manifest makes the new files those of the folder; what it does not name goes
        with whole_file(folder / MANIFEST) as handle:
            handle.write(json.dumps(manifest, indent=1, ensure_ascii=False).encode() + b"\n")
        named = {part["file"] for part in manifest["parts"]}
        named |= {part["items_file"]["file"] for part in manifest["parts"] if "items_file" in part}
        named |= {one["file"] for one in manifest["files"].values()}
        for path in (*folder.glob("*.parquet"), *folder.glob("parts/*"), *folder.glob("items/*")):
            if path.relative_to(folder).as_posix() not in named:
                # some systems keep a file that is being read; no manifest names it, so it is in nobody's way
                with contextlib.suppress(PermissionError):
                    path.unlink(missing_ok=True)
    return scan_judgments(folder)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Keep a second writer out, and say in one sentence what keeps the folder from being written."""
    name = plain(str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("a+", encoding="utf-8") as lock:
            if not lock_file(lock):
                lock.seek(0)
                holder = lock.read().strip()
                who = f" by process {holder}" if holder else ""
                raise ParameterError(f"{name} is being written{who}; wait until that has ended, then try again")
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            try:
                yield
            finally:
                # who wrote it is not part of what is packed
                lock.truncate(0)
    except OSError as error:
        raise ParameterError(refusal(f"{name} (packed judgments)", folder / MANIFEST, error)) from None
    except pl.exceptions.ComputeError as error:
        raise ParameterError(f"{name} could not be written: {plain(str(error))[:120]}") from None


def part_bounds(counts: Counts, part_rows: int) -> list[tuple[int, int]]:
    """Return runs of buckets, each with as many rows as a part may have; a bucket is never cut.

    Examples
    --------
    >>> part_bounds(np.array([3, 0, 4, 9, 1]), 8)
    [(0, 3), (3, 4), (4, 5)]
    """
    bounds, begin, held = [], 0, 0
    for bucket in np.flatnonzero(counts).tolist():
        n = int(counts[bucket])
        if held and held + n > part_rows:
            bounds.append((begin, bucket))
            begin, held = bucket, 0
        held += n
    return [*bounds, (begin, len(counts))]


def _write_files(
    spill: Spill, folder: Path, part_rows: int, sources: list[str], progress: Progress | None
) -> dict[str, Any]:
    """Write all files of what was spilled but the manifest, and return that."""

    def write_file(name: str, table: pl.DataFrame, compression: Any = "zstd") -> dict[str, str]:
        """Write a table under a name that its checksum is part of, so that no file is ever changed."""
        target = folder / f"{name}.parquet"
        with whole_file(target) as handle:
            table.write_parquet(handle, compression=compression, row_group_size=max(len(table), 1), statistics=False)
        checksum = file_checksum(target)
        final = f"{name}-{checksum[:8]}.parquet"
        if (folder / final).exists():  # the same content, which may be being read
            target.unlink()
        else:
            os.replace(target, folder / final)
        return {"file": final, "checksum": checksum}

    by_query = spill.by == "query"
    for name in ("parts", "items") if by_query else ("parts",):
        (folder / name).mkdir(exist_ok=True)
    files: dict[str, Any] = {}
    people = whole_index(spill, "annotators")
    groups: list[Any] | None = None
    if "group" in people.columns:
        groups = people["group"].unique().sort().to_list()
        codes = people["group"].replace_strict(groups, list(range(len(groups))), return_dtype=pl.Int32)
        people = people.with_columns(group=codes)
    if len(people):
        files["annotators"] = write_file("annotators", people)
    indices = {"annotator": "annotators", "block": "blocks"}
    if "block" in spill.columns:
        files["blocks"] = write_file("blocks", whole_index(spill, "blocks"))
    all_items: Items | None = None
    if not by_query:
        whole = whole_index(spill, "items")
        all_items = items_of(whole.drop("query") if spill.single else whole)
        files["items"] = write_file("items", all_items.frame())
        indices |= dict.fromkeys(ITEM_COLUMNS, "items")
    bounds = part_bounds(spill.counts, part_rows)
    edges = [low for low, _ in bounds] + [len(spill.counts)]
    row_bounds, item_bounds = (
        np.array([spill.column(name, chunk)[edges] for chunk in range(spill.n_chunks)])
        for name in ("bounds", "item_bounds" if by_query else "bounds")
    )

    def write_part(number: int) -> dict[str, Any]:
        """Write one part, and return what the manifest says of it."""
        pieces: dict[str, list[Any]] = {name: [] for name in spill.columns}
        n_items = 0
        for chunk in range(spill.n_chunks):
            first, last = row_bounds[chunk, number : number + 2].tolist()
            low, high = item_bounds[chunk, number : number + 2].tolist()
            for name in spill.columns:
                column = spill.column(name, chunk, first, last)
                if column is None:
                    # what stands for none where a chunk lacks the column
                    column = np.full(last - first, _FILLS[name])
                elif name in indices:
                    column = spill.column(f"{indices[name]}_places", chunk)[column]
                elif name in ITEM_COLUMNS:
                    # items are numbered over those of the part in all chunks
                    column += np.int32(n_items - low)
                pieces[name].append(column)
            n_items += high - low
        rows = {name: np.concatenate(columns) for name, columns in pieces.items()}
        del pieces, column
        items, more = all_items, dict[str, Any]()
        if by_query:
            expect_small_query(len(rows[next(name for name in ITEM_COLUMNS if name in rows)]))
            table = spill.some_items(item_bounds[:, number : number + 2])
            ((query,), query_ids), ((item,), item_ids) = factorize_groups([[table["query"]], [table["item"]]])
            if not len(query_ids):
                # the unnamed query is a blank one
                query, query_ids = np.zeros(len(table), np.int32), pl.Series("id", [NO_QUERY])
            items, (places,) = build_items(Index(query_ids), [(query, item)], item_ids, complete=True)
            rows |= {name: places[rows[name]] for name in ITEM_COLUMNS if name in rows}
            more["items_file"] = write_file(f"items/part-{number:05d}", items.frame())
            more |= {"queries": items.n_queries, "items": len(items)}
        n, table, levels = part_table(spill.kind, rows, items, coded=spill.levels is not None)
        # parts are read in every pass: LZ4 takes a fifth more room than Zstandard, and less than half the time
        file = write_file(f"parts/part-{number:05d}", table, "lz4")
        return {"rows": n, **file, "levels": levels, **more}

    largest = max(int(spill.counts[low:high].sum()) for low, high in bounds)
    many = _PARTS_AT_ONCE * spill.id_bytes * largest > _ID_BYTES_AT_ONCE * spill.rows
    parts = []
    with ThreadPoolExecutor(1 if many else _PARTS_AT_ONCE) as pool:
        try:
            for part in pool.map(write_part, range(len(bounds))):
                parts.append(part)
                if progress is not None:
                    progress(len(parts), len(bounds), "writing parts")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    n_items, n_queries = (sum(part.get(name, 0) for part in parts) for name in ("items", "queries"))
    if all_items is not None:
        n_items, n_queries = len(all_items), all_items.n_queries
    declared, nominal, covariates = spill.form
    levels = declared
    if declared is None and spill.kind == "grade" and spill.levels is not None:
        levels = numeric_levels(spill.levels)
    return {
        "format": "crowdrank packed judgments", "version": VERSION, "kind": spill.kind, "by": spill.by,
        "part_rows": part_rows, "single": spill.single, "rows": sum(part["rows"] for part in parts), "items": n_items,
        "queries": n_queries, "annotators": len(people), "groups": groups, "levels": levels, "declared": declared,
        "nominal": nominal, "covariates": covariates, "strength_levels": spill.strength_levels, "sources": sources,
        "files": files, "parts": parts,
    }  # fmt: skip


class Chunk(NamedTuple):
    """Some of the judgments as plain columns, over ids of their own.

    Parameters
    ----------
    kind, items, annotators
        Kind of the judgments, and what their codes mean.
    columns
        One entry per row; rankings have a row per item, and ``ranking`` tells which rows belong together.
    groups
        Family of each annotator.
    blocks
        Former queries.
    form
        Declared levels, whether they are nominal, and names of covariates: the same in all chunks.
    strength_levels
        The largest strength there is.
    """

    kind: str
    items: Items
    annotators: Index
    columns: dict[str, Any]
    groups: pl.Series | None
    blocks: Index | None
    form: tuple[Any, ...]
    strength_levels: float | None = None

    @property
    def first_items(self) -> Ints:
        """The item of each row, of a pair the left one."""
        return self.columns[next(name for name in ITEM_COLUMNS if name in self.columns)]

    def units(self, by: str) -> Ints:
        """Return the query, or the annotator, of each row."""
        return self.columns["annotator"] if by == "annotator" else self.items.query[self.first_items]


def chunk_of(judgments: Judgments, number: int) -> Chunk:
    """Return judgments as columns; ``number`` keeps apart what several chunks number from 0."""
    own = [name for name in judgments.answers if name != "offsets"]
    shared = ("annotator", "weight", "time", "duration", "block")
    columns: dict[str, Any] = {name: getattr(judgments, name) for name in (*shared, *own)}
    columns = {name: column for name, column in columns.items() if column is not None and len(column)}
    form: tuple[Any, ...] = (None, False, ())
    strength_levels = None
    if isinstance(judgments, Grades):
        form = (judgments.declared, judgments.nominal, ())
    elif isinstance(judgments, Preferences):
        labels = covariate_labels(judgments.covariate_names, judgments.covariate_transforms)
        form, strength_levels = (None, False, labels), judgments.strength_levels
        more = {"recorded": judgments.recorded, "strength": judgments.strength}
        columns |= {name: column for name, column in more.items() if column is not None and len(column)}
        if judgments.judgment is not None and len(judgments):
            columns["judgment"] = judgments.judgment.astype(np.int64) + (number << 32)
        if judgments.covariates is not None and len(judgments):
            columns |= {f"covariate_{place}": column for place, column in enumerate(judgments.covariates.T)}
    elif len(judgments):
        ranking = judgments.ranking
        columns |= {name: columns[name][ranking] for name in shared if name in columns}
        columns |= {"ranking": ranking.astype(np.int64) + (number << 32), "row": np.arange(len(ranking))}
    groups = None
    if judgments.groups is not None and judgments.group is not None:
        groups = judgments.groups.ids.gather(judgments.group)
    return Chunk(
        judgments.kind, judgments.items, judgments.annotators, columns, groups, judgments.blocks, form, strength_levels
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
    dtypes: defaultdict[str, set[Any]] = field(default_factory=lambda: defaultdict(set))
    n_chunks: int = 0
    rows: int = 0
    id_bytes: int = 0
    """Bytes of the ids of items in all chunks."""
    _saved: dict[tuple[int, str], tuple[Any, int]] = field(default_factory=dict)
    """Type of each column of each chunk, and where in its file it begins."""

    def add(self, chunk: Chunk) -> None:
        """Write one chunk, its rows in the order of their buckets; it must go with those before it."""
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
        lacking = (set(self.columns) ^ set(chunk.columns)) - set(_FILLS)
        if "annotator" in lacking:
            raise JudgmentError("some of the judgments name annotators and others do not; add the column to all")
        if lacking:
            raise JudgmentError(
                f"some {self.kind}s have a {min(lacking)} and others do not; give it to all of them, or to none of them"
            )
        self.columns += [name for name in chunk.columns if name not in self.columns]
        self.strength_levels = max(self.strength_levels or 0.0, chunk.strength_levels or 0.0) or None
        if "grade" in chunk.columns and self.levels is not None:
            levels = np.unique(np.concatenate([self.levels, np.unique(chunk.columns["grade"])]))
            self.levels = levels if len(levels) < MOST_LEVELS else None
        place = self.folder / f"{self.n_chunks:06d}"
        place.mkdir(parents=True)
        items, columns = chunk.items, dict(chunk.columns)
        bucket_of_query = buckets_of(items.queries.ids)
        if self.by == "query":
            # items of a bucket stand together, so that a part takes one slice of them
            item_bucket = bucket_of_query[items.query]
            bucket = item_bucket[chunk.first_items]
            order = np.argsort(item_bucket, kind="stable")
            new = np.empty(len(order), np.int32)
            new[order] = np.arange(len(order), dtype=np.int32)
            columns |= {name: new[columns[name]] for name in ITEM_COLUMNS if name in columns}
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
        people = {"id": chunk.annotators.ids} | ({} if chunk.groups is None else {"group": chunk.groups})
        tables = {"items": ids, "annotators": people} | (
            {} if chunk.blocks is None else {"blocks": {"id": chunk.blocks.ids}}
        )
        for name, table in tables.items():
            pl.DataFrame(table).write_ipc(
                place / f"{name}.arrow", compression="uncompressed", record_batch_size=_ITEMS_READ_AT_ONCE
            )
        self.id_bytes += (place / "items.arrow").stat().st_size
        for name, series in (("annotators", people["id"]), ("queries", items.queries.ids), ("items", items.ids)):
            self.dtypes[name].add(series.dtype)
        self.n_chunks += 1
        self.rows += len(bucket)
        if self.single and self.by == "query":
            expect_small_query(self.rows)

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


def _bucket_bounds(bucket: NDArray[np.uint16]) -> Counts:
    """Number of entries in lower buckets, for each bucket and the end."""
    return np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=N_BUCKETS))]).astype(np.int64)


def whole_index(spill: Spill, name: str) -> pl.DataFrame:
    """Return the table of ids of all chunks, sorted, and save the place there of each id of each chunk.

    An annotator must stand in the same group in all chunks.
    """
    whole, waiting = None, list[pl.DataFrame]()
    for number in range(spill.n_chunks):
        waiting.append(spill.ids(name, number))
        n_known = 0 if whole is None else len(whole)
        # as many as there are already: each id is then gone over a few times only, however many chunks there are
        if number + 1 == spill.n_chunks or sum(map(len, waiting)) >= max(n_known, _IDS_AT_ONCE):
            tables = [*([] if whole is None else [whole]), *waiting]
            waiting.clear()
            if any(table.columns != tables[0].columns for table in tables):
                raise JudgmentError(
                    "some of the judgments have a group column and others do not; add it to all of them"
                )
            whole = pl.concat(tables).unique(maintain_order=False)
    assert whole is not None
    if "group" in whole.columns and whole["id"].n_unique() < len(whole):
        twice = whole.filter(pl.col("id").is_duplicated()).sort("id", "group")
        who, groups = twice["id"][0], twice["group"].head(2).to_list()
        raise JudgmentError(f"annotator {who!r} stands in two groups, {groups[0]!r} and {groups[1]!r}; name one")
    keys = [key for key in whole.columns if key != "group"]
    whole = whole.sort(keys)
    for number in range(spill.n_chunks):
        ids = spill.ids(name, number)
        spill.save(number, f"{name}_places", look_up([whole[key] for key in keys], [ids[key] for key in keys]))
    return whole


def part_table(
    kind: str, rows: dict[str, Any], items: Items | None, *, coded: bool, ordered: bool = True
) -> tuple[int, pl.DataFrame, list[float] | None]:
    """Return the number of judgments of a part, its table, and the grades that codes stand for.

    Parameters
    ----------
    kind
        That of the judgments.
    rows
        Columns of the rows; ``None`` where there is no such column.
    items
        Items of the part, for rankings.
    coded
        Whether grades are few enough to be written as codes.
    ordered
        Whether the rows are sorted; rankings always are.
    """
    if kind == "ranking":
        # sorted by query, annotator and what the rankings say
        assert items is not None
        absent = {"annotator": np.empty(0, np.int32), "weight": None, "time": None, "duration": None}
        fields = assemble_rankings({**absent, **rows, "items": items})
        offsets, item, rank = fields["offsets"], fields["item"], fields["rank"]
        first, lengths = offsets[:-1], np.diff(offsets)
        meta = {name: fields[name] for name in (*absent, "block") if fields.get(name) is not None and len(fields[name])}
        place = np.arange(len(item)) - np.repeat(first, lengths)
        said = np.add.reduceat(row_numbers([item, rank, place]), first) if len(item) else np.empty(0, np.uint64)
        keys = pl.DataFrame({"query": items.query[item[first]], **meta, "said": said})
        order = keys.with_row_index("place").sort(keys.columns)["place"].to_numpy()
        lengths = lengths[order]
        number = np.repeat(np.arange(len(order), dtype=np.int32), lengths)
        chosen = np.repeat(first[order] - (np.cumsum(lengths) - lengths), lengths) + np.arange(len(item))
        per_row = {name: column[order][number] for name, column in meta.items()}
        table = pl.DataFrame({"item": item[chosen], "rank": rank[chosen], "ranking": number, **per_row})
        return len(order), table, None
    levels: list[float] | None = None
    if "grade" in rows and coded:
        values = np.unique(rows["grade"])
        rows["grade"] = np.searchsorted(values, rows["grade"]).astype(np.int8)
        levels = values.tolist()
    given = {name: column for name, column in rows.items() if column is not None}
    names = [name for name in _ORDER if name in given]
    names += [name for name in given if name not in names and name != "judgment"]
    of_judgment, own = np.unique(given.pop("judgment", np.empty(0)), return_inverse=True)
    if len(of_judgment) == len(own):
        given = {name: given[name] for name in names}
        table = _sorted_table(given) if ordered else pl.DataFrame(given)
        return len(table), table, levels
    # rows that say the same are in the order of all that their judgments say
    together = np.zeros(len(of_judgment), np.uint64)
    np.add.at(together, own, row_numbers([given[name] for name in names]))
    table = pl.DataFrame({name: given[name] for name in names} | {"together": together[own], "judgment": own})
    table = (table.sort([*names, "together", "judgment"]) if ordered else table).drop("together")
    # judgments are numbered in the order in which they first appear
    _, first, inverse = np.unique(table["judgment"].to_numpy(), return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first)).astype(np.int32)
    return len(first), table.with_columns(judgment=pl.Series(rank[inverse])), levels


def _sorted_table(columns: dict[str, NDArray[Any]]) -> pl.DataFrame:
    """Rows sorted by the first column, then the second and so on.

    Rows of whole numbers that fit into 63 bits are sorted as one number each, in a sixth of the time.
    """
    whole = all(column.dtype.kind == "i" and len(column) for column in columns.values())
    lows = {name: int(column.min()) for name, column in columns.items()} if whole else {}
    bits = {name: (int(columns[name].max()) - low).bit_length() for name, low in lows.items()}
    if not whole or sum(bits.values()) > 63:
        return pl.DataFrame(columns).sort(list(columns))
    key = np.zeros(len(next(iter(columns.values()))), np.int64)
    for name, column in columns.items():
        key <<= bits[name]
        key |= column.astype(np.int64) - lows[name]
    key.sort()
    found = {}
    for name in reversed(columns):
        found[name] = ((key & ((1 << bits[name]) - 1)) + lows[name]).astype(columns[name].dtype)
        key >>= bits[name]
    return pl.DataFrame({name: found[name] for name in columns})


def pack_files(
    paths: Sequence[PathLike],
    out: PathLike,
    options: ReadOptions,
    *,
    by: str = "query",
    append: bool = False,
    part_rows: int | None = None,
    across_queries: bool = False,
    progress: Progress | None = None,
) -> PackedJudgments:
    """Return the packed judgments of files; see :func:`crowdrank.cluster.packing.pack_judgments`."""
    if (options.duplicates or "keep") != "keep":
        raise ParameterError(
            f"{option('duplicates')} needs all judgments of an annotator, but pack reads some rows at a time; leave "
            "it out, or give it to aggregate"
        )
    if options.pseudonyms or options.strength_weights is not None:
        name = "pseudonyms" if options.pseudonyms else "strength_weights"
        raise ParameterError(f"{option(name)} is not for pack; leave it out")
    return pack_judgments(
        _read_chunks(paths, options, across_queries, progress),
        out, by=by, append=append, part_rows=part_rows, progress=progress,
        sources=[Path(shown_name(path)).name for path in paths],
    )  # fmt: skip


def _read_chunks(
    paths: Sequence[PathLike], options: ReadOptions, across_queries: bool, progress: Progress | None
) -> Iterator[Chunk]:
    """The judgments of files, some rows at a time; no variable holds a chunk while the next one is read."""
    n_read, number, each = 0, 0, table_chunks(paths, options, ROWS_AT_ONCE)
    while (rows := next(each, None)) is not None:
        with blaming(rows.table.source.name), counting_from(rows.first):
            if rows.table.kind == "ranking":
                chunks = [_chunk_of_rankings(rows, options, across_queries)]
            else:
                judgments = build([rows.table], options)
                chunks = [chunk_of(judgments.across_queries() if across_queries else judgments, number)]
                del judgments
            table = rows.table.frame
            # without weights the column says nothing of rows that belong together, and is not read
            if rows.table.kind == "preference" and {"judgment", "weight"} <= set(table.columns):
                if len(chunks[0].columns["outcome"]) < len(table):
                    raise JudgmentError(
                        "rows cannot be left out of a file whose judgment column joins several rows; mend or remove "
                        "these rows"
                    )
                # rows of one judgment have the same number wherever they are in the file
                (codes,), ids = factorize([table["judgment"]])
                alone = row_numbers([np.arange(len(table)) + rows.first, np.full(len(table), rows.file)])
                together = _ids_as_numbers(ids, rows.file)[codes]
                chunks[0].columns["judgment"] = np.where(codes < 0, (alone >> np.uint64(1)).astype(np.int64), together)
                del codes, ids, alone, together
        n_read, number = n_read + len(table), number + 1
        del rows, table
        yield chunks.pop()
        if progress is not None:
            progress(0, 0, f"{n_read:,} rows read")


def _ids_as_numbers(ids: Any, file: int) -> Any:
    """Numbers of ids that are the same in all chunks of a file; equal ids in two files are two things."""
    hashes = row_numbers([stable_hashes(ids).view(np.int64), np.full(len(ids), file)])
    return (hashes >> np.uint64(1)).astype(np.int64)


def _chunk_of_rankings(rows: Rows, options: ReadOptions, across_queries: bool) -> Chunk:
    """Rows of rankings, which are put together once all of a query are there."""
    if across_queries:
        raise ParameterError(
            f"rankings of a long table are not packed with {option('across_queries')}; leave the query column out"
        )
    table = Intake(rows.table.frame, "ranking", None, options.invalid)
    number = np.full(table.n, -1, np.int64)
    if table.has("ranking"):
        codes, ids = table.codes("ranking")
        number = _ids_as_numbers(ids, rows.file)[codes["ranking"]]
    answers = {"rank": table.numbers("rank"), "row": np.arange(table.n) + rows.first, "ranking": number}
    fields = shared_fields(table, options.items, answers, table.codes("item"))
    items, annotators = fields.pop("items"), fields.pop("annotators")
    families = fields.pop("groups").ids.gather(fields.pop("group")) if "group" in fields else None
    columns = {name: column for name, column in fields.items() if column is not None and len(column)}
    return Chunk("ranking", items, annotators, columns, families, None, (None, False, ()))


@dataclass(frozen=True, eq=False, repr=False)
class HeldJudgments(PackedJudgments):
    """Judgments that were read as a whole, in the parts of packed ones.

    ``ordered`` says whether the rows of a part are sorted, as those of packed ones are.
    """

    keeps_ranking: ClassVar[bool] = True
    whole: Judgments = field(kw_only=True)
    part_of_unit: Ints = field(kw_only=True)
    """Part of each query, or of each annotator where parts share queries."""
    ordered: bool = field(default=True, kw_only=True)
    _sorted: dict[int, Judgments] = field(default_factory=dict, init=False)
    """The part that was asked for last: sorting its rows takes longer than most of what is done with it."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return hold_judgments, (self.whole,)

    def item_codes(self, number: int) -> Ints:
        """Return the place among :attr:`items` of each item of a part."""
        if self.by == "annotator" or self.n_parts == 1:
            return np.arange(self.n_items, dtype=np.int32)
        return np.flatnonzero(self.part_of_unit[self.items.query] == number).astype(np.int32)

    def part(self, number: int) -> Judgments:
        """Return the judgments of one part."""
        if self.n_parts == 1 and not self.ordered:
            return self.whole
        part = self._sorted.get(number)
        if part is not None:
            return part
        chunk, bounds = self._rows_by_part
        rows = {name: column[bounds[number] : bounds[number + 1]] for name, column in chunk.columns.items()}
        items = self.items
        if self.by == "query" and self.n_parts > 1:
            inside, chosen = self.part_of_unit == number, self.item_codes(number)
            of_query = (np.cumsum(inside) - 1).astype(np.int32)[items.query[chosen]]
            code = np.empty(len(items), np.int32)
            code[chosen] = np.arange(len(chosen), dtype=np.int32)
            items = Items(Index(items.queries.ids.filter(pl.Series(inside))), of_query, items.ids.gather(chosen))
            rows |= {name: code[rows[name]] for name in ITEM_COLUMNS if name in rows}
        coded = self.manifest["levels"] is not None
        _, table, levels = part_table(self.kind, rows, items, coded=coded, ordered=self.ordered)
        part = self.judgments_of(table, items, {"levels": levels})
        self._sorted.clear()
        self._sorted[number] = part
        return part

    @cached_property
    def _rows_by_part(self) -> tuple[Chunk, Counts]:
        """The columns of all rows, those of a part together, and where each part begins."""
        chunk = chunk_of(self.whole, 0)
        if self.n_parts == 1:
            return chunk, np.array([0, len(chunk.first_items)])
        part = self.part_of_unit[chunk.units(self.by)].astype(np.uint16)
        order = np.argsort(part, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=self.n_parts))])
        return chunk._replace(columns={name: column[order] for name, column in chunk.columns.items()}), bounds


def hold_judgments(judgments: Judgments, *, ordered: bool = True) -> HeldJudgments:
    """Return judgments in the parts that packing them by query would give, or by annotator where a query is too large.

    Examples
    --------
    >>> held = hold_judgments(Grades.from_rows([("ann", "q", "x", 3), ("bob", "q", "x", 2)]))
    >>> held.n_parts, len(held.part(0))
    (1, 2)
    """
    chunk = chunk_of(judgments, 0)
    by, sizes = "query", np.array([len(chunk.first_items)])
    if judgments.n_queries != 1:  # there is no need to go over the rows of one query
        sizes = np.bincount(chunk.units("query"), minlength=judgments.n_queries)
    if judgments.n_annotators and sizes.max(initial=0) > MOST_PART_ROWS:
        by, sizes = "annotator", np.bincount(chunk.columns["annotator"], minlength=judgments.n_annotators)
    bucket = buckets_of(judgments.items.queries.ids if by == "query" else judgments.annotators.ids)
    bounds = part_bounds(np.bincount(bucket, sizes, N_BUCKETS).astype(np.int64), PART_ROWS)
    part_of_bucket = np.repeat(np.arange(len(bounds), dtype=np.int32), [high - low for low, high in bounds])
    part = part_of_bucket[bucket]
    rows = [judgments.n_judgments]
    if len(bounds) > 1:
        of_row = part[chunk.units(by)]
        if isinstance(judgments, Rankings):
            of_row = of_row[judgments.offsets[:-1]]
        elif isinstance(judgments, Preferences) and judgments.judgment is not None:
            of_row = of_row[np.unique(judgments.judgment, return_index=True)[1]]
        rows = np.bincount(of_row, minlength=len(bounds)).tolist()
    declared, nominal, covariates = chunk.form
    levels = declared
    if isinstance(judgments, Grades) and declared is None and len(judgments.levels) < MOST_LEVELS:
        levels = judgments.levels
    manifest = {
        "kind": judgments.kind, "by": by, "single": judgments.items.single, "rows": sum(rows),
        "items": judgments.n_items, "queries": judgments.n_queries, "annotators": judgments.n_annotators,
        "groups": None if judgments.groups is None else list(judgments.groups), "levels": levels, "declared": declared,
        "nominal": nominal, "covariates": covariates, "strength_levels": chunk.strength_levels,
        "parts": [{"rows": n} for n in rows],
    }  # fmt: skip
    held = HeldJudgments(Path(), manifest, whole=judgments, part_of_unit=part, ordered=ordered)
    # what packed judgments read from their files is at hand
    whole = {name: getattr(judgments, name) for name in ("items", "annotators", "groups", "group", "blocks")}
    vars(held).update(whole)
    return held
