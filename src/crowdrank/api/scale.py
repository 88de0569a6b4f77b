"""Packed judgments and long files: which way a fit goes and why, and what a sample says of annotators."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from ..data.consensus import Consensus
from ..data.memory import available_memory, in_words
from ..io.judgments import LONG_BYTES, LONG_ROWS
from ..io.notices import say

if TYPE_CHECKING:
    from ..cluster.packed import PackedJudgments
    from ..cluster.stored import StoredConsensus
    from ..review.facts import Facts

_BYTES_PER_ROW = {"grade": 9, "preference": 13, "ranking": 12}
"""Bytes of codes that a fit in memory holds of each row."""

READING_BYTES = 150
"""Bytes per row that reading and fitting a file takes at its peak: 1.3 to 2.1 GB were seen for 10 million rows."""

_HEAD_BYTES = 1 << 16


class Advice(NamedTuple):
    """Which way a fit goes, and why."""

    stream: bool
    sentence: str


def advice(packed: PackedJudgments, method: Any = None, *, stream: bool | None = None) -> Advice:
    """Return whether packed judgments are read anew in every pass, and the sentence that says why.

    They are where their codes take more than a quarter of the free memory, unless ``stream`` says otherwise. How long
    passes take, their progress says from the second on.
    """
    from ..cluster.one_pass import needs_one_pass

    held = _BYTES_PER_ROW[packed.kind] * packed.rows
    free = available_memory()
    one_pass = method is not None and needs_one_pass(method)
    streamed = held > free / 4 if stream is None else stream
    said = f"{in_words(held)} of codes, {in_words(free)} free: {'streamed' if streamed else 'in memory'}"
    if one_pass:
        said = f"{in_words(held)} of codes, {packed.n_parts} parts: one pass, a part at a time"
    return Advice(streamed or one_pass, said)


def file_advice(paths: Sequence[str | os.PathLike[str]]) -> Advice | None:
    """Return whether long files are packed and streamed, with the memory they would take; ``None`` for short files."""
    rows = sum(_rows_of(Path(path)) for path in paths if path != "-")
    if rows < LONG_ROWS:
        return None
    needed, free = READING_BYTES * rows, available_memory()
    about = f"about {rows:,.0f} rows would take {in_words(needed)}, {in_words(free)} free"
    if needed > free / 4:
        return Advice(True, f"{about}: packed and streamed")
    return Advice(False, f"{about}: in memory")


def _rows_of(path: Path) -> float:
    """Number of rows of a Parquet file, or about that of a text file; 0 where it is short or cannot be told."""
    try:
        with path.open("rb") as handle:
            head = handle.read(_HEAD_BYTES)
        if head[:4] == b"PAR1":
            return float(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
        size = path.stat().st_size
        return size / (len(head) / max(head.count(b"\n"), 1)) if size >= LONG_BYTES else 0.0
    except (OSError, pl.exceptions.PolarsError):
        return 0.0


def sampled_facts(packed: PackedJudgments, consensus: Consensus | StoredConsensus) -> Facts:
    """Return what findings are made of where judgments are packed: habits of annotators are those in a sample."""
    from ..cluster.one_pass import of_sample, sample_of
    from ..cluster.stored import StoredConsensus
    from ..review.diagnosis import diagnose
    from ..review.facts import facts_of

    sample = sample_of(packed)
    if isinstance(consensus, StoredConsensus):
        consensus = consensus.of_queries(sample.items.queries.ids)
    return facts_of(replace(consensus, diagnostics=diagnose(sample, of_sample(consensus, sample))), None)


def facts_of_sample(packed: PackedJudgments, consensus: Consensus) -> Facts:
    """Return the facts of a report: the consensus of the items in the sample that annotators are judged by."""
    from ..cluster.one_pass import of_sample, sample_of
    from ..review.facts import facts_of

    sample = sample_of(packed)
    if len(sample) < packed.rows:
        say(f"the report shows a sample: {len(sample):,} of {packed.rows:,} {packed.kind}s")
    return facts_of(of_sample(consensus, sample), sample)
