"""The verb ``pack``: files of judgments into a folder that is opened a part at a time."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from functools import partial

from ..cluster.files import pack_files
from ..cluster.packed import PackedJudgments
from ..cluster.packing import pack_judgments
from ..cluster.spilling import LargeQueryError
from ..data.files import PathLike
from ..data.judgments import Judgments
from ..io.read_options import ReadOptions
from ..protocols import Progress


def pack(
    votes: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    options: ReadOptions | None = None,
    by: str = "query",
    append: bool = False,
    part: int | None = None,
    across_queries: bool = False,
    progress: Progress | None = None,
) -> PackedJudgments:
    """Return the judgments of files as a folder of parts, which any number of them fits.

    Parameters
    ----------
    votes
        One or several files of one kind of judgment. Long tables in Parquet or CSV are read some rows at a time.
    out
        Folder to write.
    options
        How the files are read; see :func:`crowdrank.read_judgments`.
    by
        ``"query"``: no query spans parts. ``"annotator"``: no annotator does, for one query with most judgments.
    append
        Add to the judgments that the folder holds.
    part
        Rows of a part, a million unless a folder that is added to says otherwise.
    across_queries
        Equal items of different queries are one item.
    progress
        Called with (parts done, parts in all, what is being done).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "votes.csv").write_text("item,annotator,grade\\nx,ann,3\\ny,ann,1\\n")
    >>> pack(folder / "votes.csv", folder / "packed")
    PackedJudgments(2 grades, 2 items, 1 annotator, 1 part)
    """
    paths = [votes] if isinstance(votes, str | os.PathLike) else list(votes)
    return pack_files(
        paths, out, options or ReadOptions(), by=by, append=append, part_rows=part, across_queries=across_queries,
        progress=progress,
    )  # fmt: skip


def pack_aside(
    votes: Judgments | Sequence[PathLike],
    *,
    options: ReadOptions | None = None,
    across_queries: bool = False,
    progress: Progress | None = None,
) -> PackedJudgments:
    """Return judgments or files packed into a temporary folder, which goes when nothing refers to them any more.

    They are packed by query, and by annotator where one query is larger than a part may be.
    """
    work: Callable[..., PackedJudgments]
    if isinstance(votes, Sequence):
        work = partial(pack, list(votes), options=options, across_queries=across_queries, progress=progress)
    else:
        work = lambda folder, by: pack_judgments([votes], folder, by=by, progress=progress)  # noqa: E731
    folder = tempfile.mkdtemp(prefix="crowdrank-")
    try:
        try:
            packed = work(folder, by="query")
        except LargeQueryError:
            packed = work(folder, by="annotator")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(packed, shutil.rmtree, folder, ignore_errors=True)
    return packed
