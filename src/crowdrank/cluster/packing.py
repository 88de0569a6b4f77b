"""Judgments into a folder of parts: the same judgments give the same bytes, whatever their order."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

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
from .packed import (
    MANIFEST,
    VERSION,
    PackedJudgments,
    file_checksum,
    is_packed,
    items_of,
    read_manifest,
    scan_judgments,
)

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
    if before is None and folder.exists() and not folder.is_dir():
        raise ParameterError(f"{name} is a file; give the name of a folder to pack into")
    if before is None and is_packed(folder):
        read_manifest(folder)  # anything else that is called so is not replaced
    elif before is None and folder.is_dir():
        # what a writer leaves who is killed before there is a manifest may be replaced
        own = [one for one in folder.iterdir() if not (one.is_dir() and one.name in ("parts", "items"))]
        own += [*folder.glob("parts/*"), *folder.glob("items/*")]
        if not all(_OWN_FILE.fullmatch(one.name) for one in own):
            raise ParameterError(f"{name} holds other files; give the name of a new or an empty folder")
    if before is not None:
        by, sources = before.by, sorted({*before.manifest["sources"], *sources})
        part_rows = part_rows or before.manifest["part_rows"]
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
            manifest = _Writer(folder, spill, part_rows or PART_ROWS, sorted(sources)).write(progress)
        finally:
            spill.remove()
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


@dataclass
class _Writer:
    """Writes the parts of what was spilled."""

    folder: Path
    spill: Spill
    part_rows: int
    sources: list[str]

    def write(self, progress: Progress | None) -> dict[str, Any]:
        """Write all files but the manifest, and return that."""
        spill = self.spill
        for name in ("parts", *(["items"] if spill.by == "query" else [])):
            (self.folder / name).mkdir(exist_ok=True)
        files: dict[str, Any] = {}
        people = whole_index(spill, "annotators")
        groups: list[Any] | None = None
        if "group" in people.columns:
            groups = people["group"].unique().sort().to_list()
            codes = people["group"].replace_strict(groups, list(range(len(groups))), return_dtype=pl.Int32)
            people = people.with_columns(group=codes)
        if len(people):
            files["annotators"] = self._file("annotators", people)
        self.items: Items | None = None
        if "block" in spill.columns:
            files["blocks"] = self._file("blocks", whole_index(spill, "blocks"))
        n_items, n_queries = 0, 1
        if spill.by == "annotator":
            whole = whole_index(spill, "items")
            self.items = items_of(whole.drop("query") if spill.single else whole)
            files["items"] = self._file("items", self.items.frame())
            n_items, n_queries = len(self.items), self.items.n_queries
        parts = self._parts(progress)
        if spill.by == "query":
            n_items = sum(part["items"] for part in parts)
            n_queries = sum(part["queries"] for part in parts)
        declared, nominal, covariates = spill.form
        levels = None
        if spill.kind == "grade":
            levels = declared
            if declared is None and spill.levels is not None:
                levels = numeric_levels(spill.levels)
        return {
            "format": "crowdrank packed judgments", "version": VERSION, "kind": spill.kind, "by": spill.by,
            "part_rows": self.part_rows, "single": spill.single, "rows": sum(part["rows"] for part in parts),
            "items": n_items, "queries": n_queries, "annotators": len(people), "groups": groups, "levels": levels,
            "declared": declared, "nominal": nominal, "covariates": covariates,
            "strength_levels": spill.strength_levels, "sources": self.sources, "files": files, "parts": parts,
        }  # fmt: skip

    def _parts(self, progress: Progress | None) -> list[dict[str, Any]]:
        """Write all parts, two at a time unless they are large, and return what the manifest says of them."""
        spill = self.spill
        bounds = part_bounds(spill.counts, self.part_rows)
        edges = [low for low, _ in bounds] + [len(spill.counts)]
        names = ("bounds", "item_bounds") if spill.by == "query" else ("bounds",)
        self.edges = {
            name: np.array([spill.column(name, chunk)[edges] for chunk in range(spill.n_chunks)]) for name in names
        }
        largest = max(int(spill.counts[low:high].sum()) for low, high in bounds)
        many = _PARTS_AT_ONCE * spill.id_bytes * largest > _ID_BYTES_AT_ONCE * spill.rows
        parts = []
        with ThreadPoolExecutor(1 if many else _PARTS_AT_ONCE) as pool:
            try:
                for part in pool.map(self._part, range(len(bounds))):
                    parts.append(part)
                    if progress is not None:
                        progress(len(parts), len(bounds), "writing parts")
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return parts

    def _part(self, number: int) -> dict[str, Any]:
        """Write one part."""
        spill, items = self.spill, self.items
        pieces = [self._piece(chunk, number) for chunk in range(spill.n_chunks)]
        rows = {}
        for name in spill.columns:
            # what stands for none where a chunk lacks the column
            missing = {"weight": 1.0, "duration": np.nan, "recorded": False}.get(name)
            columns = [np.full(piece["rows"], missing) if piece[name] is None else piece[name] for piece in pieces]
            rows[name] = np.concatenate(columns)
        del pieces, columns
        told: dict[str, Any] = {}
        if spill.by == "query":
            expect_small_query(len(rows[next(name for name in ITEM_COLUMNS if name in rows)]))
            items, places = united_items(spill.some_items(self.edges["item_bounds"][:, number : number + 2]))
            for name in ITEM_COLUMNS:
                if name in rows:
                    rows[name] = places[rows[name]]
            told["items_file"] = self._file(f"items/part-{number:05d}", items.frame())
            told |= {"queries": items.n_queries, "items": len(items)}
        n, table, levels = part_table(spill.kind, rows, items, coded=spill.levels is not None)
        file = self._file(f"parts/part-{number:05d}", table, "lz4")
        return {"rows": n, **file, "levels": levels, **told}

    def _piece(self, chunk: int, part: int) -> dict[str, Any]:
        """The rows of one chunk that belong to a part; items are numbered over those of the part in all chunks."""
        spill = self.spill
        first, last = self.edges["bounds"][chunk, part : part + 2].tolist()
        piece = {name: spill.column(name, chunk, first, last) for name in spill.columns}
        indices = {"annotator": "annotators", "block": "blocks"}
        if spill.by == "annotator":
            indices |= dict.fromkeys(ITEM_COLUMNS, "items")
        for name, index in indices.items():
            if piece.get(name) is not None:
                piece[name] = spill.column(f"{index}_places", chunk)[piece[name]]
        piece["rows"] = last - first
        if spill.by == "query":
            low, high = self.edges["item_bounds"][:, part : part + 2].T
            for name in ITEM_COLUMNS:
                if name in piece:
                    piece[name] += np.int32((high - low)[:chunk].sum() - low[chunk])
        return piece

    def _file(self, name: str, table: pl.DataFrame, compression: Any = "zstd") -> dict[str, str]:
        """Write a table under a name that its checksum is part of, so that no file is ever changed.

        Parts are read in every pass: as LZ4 they take a fifth more room than as Zstandard, and less than half the time.
        """
        target = self.folder / f"{name}.parquet"
        with whole_file(target) as handle:
            table.write_parquet(handle, compression=compression, row_group_size=max(len(table), 1), statistics=False)
        checksum = file_checksum(target)
        final = f"{name}-{checksum[:8]}.parquet"
        if (self.folder / final).exists():  # the same content, which may be being read
            target.unlink()
        else:
            os.replace(target, self.folder / final)
        return {"file": final, "checksum": checksum}


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
        people = {"id": chunk.annotators.ids} | ({} if chunk.groups is None else {"group": chunk.groups})
        pl.DataFrame(people).write_ipc(place / "annotators.arrow", compression="uncompressed")
        if chunk.blocks is not None:
            pl.DataFrame({"id": chunk.blocks.ids}).write_ipc(place / "blocks.arrow", compression="uncompressed")
        self.dtypes["annotators"].add(chunk.annotators.ids.dtype)
        self.dtypes["queries"].add(items.queries.ids.dtype)
        self.dtypes["items"].add(items.ids.dtype)
        self.n_chunks += 1
        self.rows += len(bucket)
        if self.single and self.by == "query":
            expect_small_query(self.rows)

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
    levels: list[float] | None = None
    if kind == "ranking":
        assert items is not None
        return _ranking_rows(rows, items)
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
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first), dtype=np.int32)
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


def _ranking_rows(rows: dict[str, Any], items: Items) -> tuple[int, pl.DataFrame, None]:
    """Number of the rankings of a part, and their rows, sorted by query, annotator and what the rankings say."""
    n = len(rows["item"])
    given = {"annotator": np.empty(0, np.int32), "weight": None, "time": None, "duration": None}
    fields = assemble_rankings({**given, **rows, "items": items})
    offsets, item, rank = fields["offsets"], fields["item"], fields["rank"]
    first = offsets[:-1]
    meta = {name: fields[name] for name in ("annotator", "weight", "time", "duration", "block")
            if fields.get(name) is not None and len(fields[name])}  # fmt: skip
    place = np.arange(n) - np.repeat(first, np.diff(offsets))
    said = np.add.reduceat(row_numbers([item, rank, place]), first) if n else np.empty(0, np.uint64)
    keys = pl.DataFrame({"query": items.query[item[first]], **meta, "said": said})
    order = keys.with_row_index("place").sort(keys.columns)["place"].to_numpy()
    lengths = np.diff(offsets)[order]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    sorted_rows = np.repeat(first[order] - starts[:-1], lengths) + np.arange(n)
    number = np.repeat(np.arange(len(order), dtype=np.int32), lengths)
    per_row = {name: column[order][number] for name, column in meta.items()}
    table = pl.DataFrame({"item": item[sorted_rows], "rank": rank[sorted_rows], "ranking": number, **per_row})
    return len(order), table, None


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
        _chunks(paths, options, across_queries, progress),
        out, by=by, append=append, part_rows=part_rows, progress=progress,
        sources=[Path(shown_name(path)).name for path in paths],
    )  # fmt: skip


def _chunks(
    paths: Sequence[PathLike], options: ReadOptions, across_queries: bool, progress: Progress | None
) -> Iterator[Chunk]:
    """The judgments of files, some rows at a time."""
    read, number, each = 0, 0, table_chunks(paths, options, ROWS_AT_ONCE)
    # no variable holds a chunk while the next one is read
    while (chunk := _next_chunk(each, options, across_queries, number)) is not None:
        read, number = read + chunk.pop(), number + 1
        yield chunk.pop()
        if progress is not None:
            progress(0, 0, f"{read:,} rows read")


def _next_chunk(each: Iterator[Rows], options: ReadOptions, across_queries: bool, number: int) -> list[Any] | None:
    """The next judgments and the number of their rows; ``None`` at the end."""
    rows = next(each, None)
    if rows is None:
        return None
    with blaming(rows.table.source.name), counting_from(rows.first):
        if rows.table.kind == "ranking":
            chunk = _chunk_of_rankings(rows, options, across_queries)
        else:
            judgments = build([rows.table], options)
            chunk = chunk_of(judgments.across_queries() if across_queries else judgments, number)
            if rows.table.kind == "preference":
                _number_judgments(chunk, rows)
    return [chunk, len(rows.table.frame)]


def _number_judgments(chunk: Chunk, rows: Rows) -> None:
    """Give the rows of one judgment the same number wherever they are in the file."""
    table = rows.table.frame
    # without weights the column says nothing of rows that belong together, and is not read
    if not {"judgment", "weight"} <= set(table.columns):
        return
    if len(chunk.columns["outcome"]) < len(table):
        raise JudgmentError(
            "rows cannot be left out of a file whose judgment column joins several rows; mend or remove these rows"
        )
    (codes,), ids = factorize([table["judgment"]])
    alone = row_numbers([np.arange(len(table)) + rows.first, np.full(len(table), rows.file)])
    chunk.columns["judgment"] = np.where(
        codes < 0, (alone >> np.uint64(1)).astype(np.int64), _ids_as_numbers(ids, rows.file)[codes]
    )


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
    answers: dict[str, Any] = {"rank": table.numbers("rank"), "row": np.arange(table.n) + rows.first}
    number = np.full(table.n, -1, np.int64)
    if table.has("ranking"):
        codes, ids = table.codes("ranking")
        number = _ids_as_numbers(ids, rows.file)[codes["ranking"]]
    fields = shared_fields(table, options.items, {**answers, "ranking": number}, table.codes("item"))
    items, annotators = fields.pop("items"), fields.pop("annotators")
    groups, group = fields.pop("groups", None), fields.pop("group", None)
    columns = {name: column for name, column in fields.items() if column is not None and len(column)}
    of_annotators = None if groups is None or group is None else groups.ids.gather(group)
    return Chunk("ranking", items, annotators, columns, of_annotators, None, (None, False, ()))
