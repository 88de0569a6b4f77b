"""From the files of votes and the options about them to judgments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..wording import counted
from .words import listed, pairs

if TYPE_CHECKING:
    from ..data.judgments import Judgments, Mixed
    from .options import Reading
    from .talk import Talk


def read_votes(votes: Sequence[str], reading: Reading, talk: Talk) -> Judgments | Mixed:
    """Return the judgments in the files, and say what they are."""
    from ..io.judgments import read_judgments

    codes = pairs(listed(reading.winner_codes), "--winner-codes", "1=left,2=right,0=tie")
    with talk.working("reading the votes"):
        judgments = read_judgments(
            votes,
            reading.kind,
            pairs(reading.column, "--column", "annotator=Who") or None,
            levels=listed(reading.levels),
            nominal=reading.nominal,
            winner_codes=codes or None,
            duplicates=reading.duplicates,
            invalid="drop" if reading.drop_invalid else "error",
            items=reading.items,
        )
        n_queries = judgments.n_queries
        judgments = _convert(judgments, reading)
    talk.say(_description(judgments, n_queries if reading.across_queries else 0))
    return judgments


def _convert(judgments: Judgments | Mixed, reading: Reading) -> Judgments | Mixed:
    """The judgments without some annotators, as preferences, across queries, as asked for."""
    if reading.without:
        judgments = _leave_out(judgments, reading.without)
    if reading.as_rankings:
        judgments = judgments.as_rankings()
    if reading.as_preferences:
        judgments = judgments.as_preferences()
    return judgments.across_queries() if reading.across_queries else judgments


def _leave_out(judgments: Judgments | Mixed, names: Sequence[str]) -> Judgments | Mixed:
    """The judgments of all but some annotators."""
    import numpy as np

    from ..errors import JudgmentError

    known = judgments.annotators
    # an id may hold a comma itself, so the whole text is tried first
    each = [part for name in names for part in ([name] if name in map(str, known) else listed(name) or [])]
    gone = [known.code(name, "annotator") for name in each]
    keep = ~np.isin(judgments.annotator, gone)
    if not keep.any():
        raise JudgmentError("no judgment is left without these annotators; name fewer with --without")
    return judgments.select(keep)


def _description(judgments: Judgments | Mixed, n_merged: int) -> str:
    """How many judgments there are, by how many annotators, on what."""
    import numpy as np

    from ..data.mixed import parts_of

    n_annotators = len(np.unique(judgments.annotator))
    by = f" by {counted(n_annotators, 'annotator')}" if judgments.n_annotators else ""
    queries = f" of {counted(judgments.n_queries, 'query')}" if not judgments.items.single else ""
    merged = f", over {counted(n_merged, 'query')} taken together" if n_merged else ""
    given = " and ".join(counted(len(part), part.kind) for part in parts_of(judgments))
    return f"{given}{by} on {counted(judgments.n_items, 'item')}{queries}{merged}"
