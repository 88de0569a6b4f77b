"""Known answers from qrels files or tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..data.consensus import Consensus
from ..data.truth import Truth
from ..errors import JudgmentError
from . import exports
from .read_options import ReadOptions
from .results import written_consensus
from .sources import Source, blaming, open_source
from .tables import read_source, table_format
from .trec import looks_like_qrels, qrels_of


def read_truth(
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    winner_codes: Mapping[Any, str] | None = None,
    options: ReadOptions | None = None,
) -> Truth:
    """Return the truth in a file or frame: grades or ranks of items, winners of pairs, qrels, or a consensus.

    Of another tool's export it is the gold answers: those marked as ground truth, golden or test questions.

    Parameters
    ----------
    data
        Name of a file (``-`` reads standard input), a frame, or a consensus, whose scores then count as grades.
    columns
        Our word (``item``, ``annotator``, ...) -> name of the column, for names that are not understood by themselves.
    winner_codes
        What the numbers of a numeric winner column mean.
    options
        How the judgments were read, which tells the question where their file is the truth too.

    Examples
    --------
    >>> read_truth({"item": ["x", "y"], "rank": [1, 2]}).grade.tolist()
    [-1.0, -2.0]
    """
    if isinstance(data, Truth):
        return data
    if isinstance(data, Consensus):
        return Truth.from_consensus(data)
    if not isinstance(data, str | os.PathLike):
        return Truth.from_frame(data, columns=columns, winner_codes=winner_codes)
    source = open_source(data, archives=True)
    with blaming(source.name):
        consensus = written_consensus(source)
        if consensus is not None:
            return Truth.from_consensus(consensus)
        if table_format(source) == "csv" and looks_like_qrels(source):
            return Truth.from_frame(qrels_of(source))
        name = None if columns else exports.detect(source)
        if name is not None:
            return _gold(source, name, options)
        table = read_source(source)[0]
        # a table that holds judgments as well as the truth has its items where the judgments have theirs
        meant = {} if options is None else {w: n for w, n in options.columns.items() if w in ("item", "query")}
        known = {word: name for word, name in meant.items() if name in table.columns}
        return Truth.from_frame(table, columns={**known, **(columns or {})}, winner_codes=winner_codes)


def _gold(source: Source, name: str, options: ReadOptions | None) -> Truth:
    """The gold answers of another tool's export."""
    imported = exports.read(source, name, options)
    if name in exports.RATED:
        return Truth.from_frame(imported.frame)
    if imported.truth is None:
        raise JudgmentError(
            f"{source.name} is {imported.title}, without gold answers; give a table with the true answers"
        )
    return Truth.from_frame(imported.truth)
