"""Judgments into a folder of parts: the same judgments give the same bytes, whatever their order."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..data.files import PathLike, plain, refusal, whole_file
from ..data.index import Items
from ..data.intake import numeric_levels
from ..data.judgments import Judgments, Mixed
from ..errors import JudgmentError, ParameterError
from ..protocols import Counts, Progress
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
from .part_tables import part_table
from .spilling import ITEM_COLUMNS, Chunk, Spill, chunk_of, expect_small_query, united_items, whole_index

PART_ROWS = 1_000_000
"""Judgments of a part, unless one query or annotator has more."""

_PARTS_AT_ONCE = 2
_ID_BYTES_AT_ONCE = 128 << 20
"""Parts that are put together at a time, and bytes of the ids of their items above which it is one."""

_OWN_FILE = re.compile(r"(annotators|blocks|items|part-\d+)(-[0-9a-f]{8})?\.parquet|\..*")
"""Names of the files of a packed folder; hidden ones are half-written, or the lock."""


def pack_judgments(
    chunks: Iterable[Judgments | Chunk],
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
    folder = Path(out)
    before = _former_judgments(folder, append)
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
            _spill_chunks(spill, chunks)
            if not spill.rows:
                raise JudgmentError("there are no judgments to pack; name files that hold some")
            manifest = _Writer(folder, spill, part_rows or PART_ROWS, sorted(sources)).write(progress)
        finally:
            spill.remove()
        _replace_manifest(folder, manifest)
    return scan_judgments(folder)


def _spill_chunks(spill: Spill, chunks: Iterable[Judgments | Chunk]) -> None:
    """Write chunks to the disk, each while the next one is read."""
    with ThreadPoolExecutor(1) as pool:
        writing: Future[None] | None = None
        for number, chunk in enumerate(chunks, spill.n_chunks):
            if writing is not None:
                writing.result()
            writing = pool.submit(spill.add, _as_chunk(chunk, number))
            del chunk  # goes before the next one is read
        if writing is not None:
            writing.result()


def _as_chunk(chunk: Judgments | Chunk | Mixed, number: int) -> Chunk:
    """Judgments as a chunk; those of several kinds are refused."""
    if isinstance(chunk, Mixed):
        kinds = " and ".join(f"{kind}s" for kind in chunk.kinds)
        raise JudgmentError(f"{kinds} cannot be packed together; pack each kind by itself")
    return chunk if isinstance(chunk, Chunk) else chunk_of(chunk, number)


def _former_judgments(folder: Path, append: bool) -> PackedJudgments | None:
    """The packed judgments that a folder holds and that are to be added to."""
    name = plain(str(folder))
    if append:
        return scan_judgments(folder)
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{name} is a file; give the name of a folder to pack into")
    if is_packed(folder):
        read_manifest(folder)  # anything else that is called so is not replaced
    elif folder.is_dir() and not all(_is_of_writer(one) for one in folder.iterdir()):
        raise ParameterError(f"{name} holds other files; give the name of a new or an empty folder")
    return None


def _is_of_writer(path: Path) -> bool:
    """Whether a file or folder is one that a writer leaves who is killed before there is a manifest."""
    if path.is_dir() and path.name in ("parts", "items"):
        return all(_OWN_FILE.fullmatch(one.name) for one in path.iterdir())
    return _OWN_FILE.fullmatch(path.name) is not None


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Keep a second writer out, and say in one sentence what keeps the folder from being written."""
    name = plain(str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("a+") as lock:
            _lock(lock, name)
            try:
                yield
            finally:
                # who wrote it is not part of what is packed
                lock.truncate(0)
    except OSError as error:
        raise ParameterError(refusal(f"{name} (packed judgments)", folder / MANIFEST, error)) from None
    except pl.exceptions.ComputeError as error:
        raise ParameterError(f"{name} could not be written: {plain(str(error))[:120]}") from None


def _lock(lock: Any, name: str) -> None:
    """Take the lock of a folder, which the system gives back when the process ends."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - the system has no such locks
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip()
        who = f" by process {holder}" if holder else ""
        raise ParameterError(f"{name} is being written{who}; wait until that has ended, then try again") from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()


def _replace_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest, which makes the new files those of the folder, and remove what it does not name."""
    with whole_file(folder / MANIFEST) as handle:
        handle.write(json.dumps(manifest, indent=1, ensure_ascii=False).encode() + b"\n")
    named = {part["file"] for part in manifest["parts"]}
    named |= {part["items_file"]["file"] for part in manifest["parts"] if "items_file" in part}
    named |= {one["file"] for one in manifest["files"].values()}
    for path in (*folder.glob("*.parquet"), *folder.glob("parts/*"), *folder.glob("items/*")):
        if path.relative_to(folder).as_posix() not in named:
            path.unlink(missing_ok=True)


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
            levels = declared if declared is not None else self._levels()
        return {
            "format": "crowdrank packed judgments", "version": VERSION, "kind": spill.kind, "by": spill.by,
            "part_rows": self.part_rows, "single": spill.single, "rows": sum(part["rows"] for part in parts),
            "items": n_items, "queries": n_queries, "annotators": len(people), "groups": groups, "levels": levels,
            "declared": declared, "nominal": nominal, "covariates": covariates,
            "strength_levels": spill.strength_levels, "sources": self.sources, "files": files, "parts": parts,
        }  # fmt: skip

    def _levels(self) -> tuple[Any, ...] | None:
        """The distinct grades of all parts; ``None`` where they are too many to be coded."""
        return None if self.spill.levels is None else numeric_levels(self.spill.levels)

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
        rows = {name: _join_pieces(name, pieces) for name in spill.columns}
        del pieces
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
        os.replace(target, self.folder / final)
        return {"file": final, "checksum": checksum}


def _join_pieces(name: str, pieces: list[dict[str, Any]]) -> Any:
    """A column of all pieces, with what stands for none where a chunk lacks it."""
    missing = {"weight": 1.0, "duration": np.nan, "recorded": False}
    filled = [np.full(piece["rows"], missing[name]) if piece[name] is None else piece[name] for piece in pieces]
    return np.concatenate(filled)
