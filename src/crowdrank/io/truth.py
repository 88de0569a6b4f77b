"""Known answers from qrels files or tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..data.consensus import Consensus
from ..data.truth import Truth
from .results import written_consensus
from .sources import blaming, open_source
from .tables import read_source, table_format
from .trec import looks_like_qrels, qrels_of


def read_truth(
    data: Any, *, columns: Mapping[str, str] | None = None, winner_codes: Mapping[Any, str] | None = None
) -> Truth:
    """Return the truth in a file or frame: grades or ranks of items, winners of pairs, qrels, or a consensus.

    Parameters
    ----------
    data
        Name of a file (``-`` reads standard input), a frame, or a consensus, whose scores then count as grades.
    columns
        House word -> column name, for names that are not understood by themselves.
    winner_codes
        What the numbers of a numeric winner column mean.

    Examples
    --------
    >>> read_truth({"item": ["x", "y"], "rank": [1, 2]}).grade.tolist()
    [-1.0, -2.0]
    """
    if isinstance(data, Consensus):
        return Truth.from_consensus(data)
    if not isinstance(data, str | os.PathLike):
        return Truth.from_frame(data, columns=columns, winner_codes=winner_codes)
    source = open_source(data)
    with blaming(source.name):
        consensus = written_consensus(source)
        if consensus is not None:
            return Truth.from_consensus(consensus)
        if table_format(source) == "csv" and looks_like_qrels(source):
            return Truth.from_frame(qrels_of(source))
        return Truth.from_frame(read_source(source)[0], columns=columns, winner_codes=winner_codes)
