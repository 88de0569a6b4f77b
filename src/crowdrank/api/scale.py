"""Packed judgments and long files: which way a fit goes and why, and what a sample says of annotators."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.judgments import Judgments, Mixed
from ..data.memory import available_memory, in_words
from ..io.chunked import LONG_BYTES, LONG_ROWS
from ..io.notices import collect_notices, say
from ..protocols import Parted
from ..wording import counted, option

if TYPE_CHECKING:
    from ..cluster.packed import PackedJudgments
    from ..cluster.stored import StoredConsensus
    from ..review.facts import Facts

_BYTES_PER_ROW = {"grade": 9, "preference": 13, "ranking": 12}
"""Bytes of codes that a fit in memory holds of each row."""

READING_BYTES = 150
"""Bytes per row that reading and fitting a file takes at its peak: 1.3 to 2.1 GB were seen for 10 million rows."""

_PASSES = 60
"""Passes that an iterative method usually needs."""

_LONG_SECONDS = 3600.0
_HEAD_BYTES = 1 << 16
_TRIED_ROWS = 50_000
"""Judgments that a method is tried on to see how long it takes."""

_TRIED_PASSES = 3


class Advice(NamedTuple):
    """Which way a fit goes, and why."""

    stream: bool
    sentence: str


def advice(packed: PackedJudgments, method: Any = None, *, stream: bool | None = None) -> Advice:
    """Return whether packed judgments are read anew in every pass, and the sentence that says why.

    They are where their codes take more than a quarter of the free memory, unless ``stream`` says otherwise. From two
    million judgments on, the sentence says how long the method takes, which is tried on some of the first part.
    """
    from ..cluster.one_pass import needs_one_pass

    held = _BYTES_PER_ROW[packed.kind] * packed.rows
    free = available_memory()
    one_pass = method is not None and needs_one_pass(method)
    streamed = held > free / 4 if stream is None else stream
    said = f"{in_words(held)} of codes, {in_words(free)} free: {'streamed' if streamed else 'in memory'}"
    if one_pass:
        said = f"{in_words(held)} of codes, {packed.n_parts} parts: one pass, a part at a time"
    if method is None or packed.rows < LONG_ROWS:
        return Advice(streamed or one_pass, said)
    seconds = _seconds_of_pass(packed, method, streamed=streamed)
    if one_pass:
        return Advice(True, f"{said}, about {in_time(seconds)}")
    sentence = f"{said}; {_PASSES} passes would take about {in_time(_PASSES * seconds)} here"
    see = f": see {option('cluster')}" if _PASSES * seconds > _LONG_SECONDS else ""
    return Advice(streamed, sentence + see)


def _seconds_of_pass(packed: PackedJudgments, method: Any, *, streamed: bool) -> float:
    """Seconds of one pass over all parts, by those that some judgments of the first part take."""
    from ..cluster.one_pass import needs_one_pass

    part = packed.part(0)
    began = time.perf_counter()
    packed.part(0)
    reading = (time.perf_counter() - began) / max(len(part), 1)
    return (
        _seconds_per_judgment(method, part) + (reading if streamed or needs_one_pass(method) else 0.0)
    ) * packed.rows


def _seconds_per_judgment(method: Any, judgments: Judgments) -> float:
    """Seconds of a pass for each judgment, by a short fit to some of them."""
    some = judgments.select(np.arange(min(len(judgments), _TRIED_ROWS)))
    brief = method if getattr(method, "max_iter", None) is None else replace(method, max_iter=_TRIED_PASSES)
    seconds = 0.0
    with collect_notices(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):  # compiled loops are loaded in the first
            began = time.perf_counter()
            n_iter = max(brief.fit(some).trace.n_iter, 1)
            seconds = (time.perf_counter() - began) / n_iter
    return seconds / max(len(some), 1)


def say_time(method: Any, judgments: Judgments | Mixed) -> None:
    """Say how long a method of many passes will take for judgments in memory, where they are many."""
    if isinstance(judgments, Mixed) or len(judgments) < LONG_ROWS or not isinstance(method, Parted):
        return
    seconds = _PASSES * _seconds_per_judgment(method, judgments) * len(judgments)
    see = f": pack them and see {option('cluster')}" if seconds > _LONG_SECONDS else ""
    say(f"{_PASSES} passes would take about {in_time(seconds)} here{see}")


def in_time(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> in_time(0.2), in_time(45), in_time(300), in_time(7000)
    ('1 second', '45 seconds', '5 minutes', '1.9 hours')
    """
    if seconds < 90:
        return counted(max(round(seconds), 1), "second")
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


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
