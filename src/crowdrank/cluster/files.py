"""Files of judgments into packed ones, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data.files import PathLike
from ..data.fingerprint import row_numbers, stable_hashes
from ..data.index import factorize
from ..data.intake import Rows as Intake
from ..data.intake import counting_from, shared_fields
from ..errors import JudgmentError, ParameterError
from ..io.judgments import ROWS_AT_ONCE, Rows, build, table_chunks
from ..io.read_options import ReadOptions
from ..io.sources import blaming
from ..protocols import Progress
from ..wording import option
from .packed import PackedJudgments
from .packing import pack_judgments
from .spilling import Chunk, chunk_of


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
        sources=[Path(path).name for path in paths],
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
            chunk = _ranking_rows(rows, options, across_queries)
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
    chunk.columns["judgment"] = np.where(codes < 0, _to_whole(alone), _ids_as_numbers(ids, rows.file)[codes])


def _ids_as_numbers(ids: Any, file: int) -> Any:
    """Numbers of ids that are the same in all chunks of a file; equal ids in two files are two things."""
    return _to_whole(row_numbers([stable_hashes(ids).view(np.int64), np.full(len(ids), file)]))


def _to_whole(hashes: Any) -> Any:
    """Hashes as whole numbers from 0 on."""
    return (hashes >> np.uint64(1)).astype(np.int64)


def _ranking_rows(rows: Rows, options: ReadOptions, across_queries: bool) -> Chunk:
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
