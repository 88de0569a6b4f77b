"""Methods that need one pass over packed judgments: averages query by query, and those that need counts of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..data.consensus import Consensus, Quality
from ..data.index import Index
from ..data.judgments import Judgments, Preferences, align_judgments, stack_judgments
from ..data.parted import sample_queries, sampled_rows, share_of_rows
from ..errors import JudgmentError, ParameterError
from ..protocols import Floats, Progress, method_name
from ..quality import held_out_quality
from ..wording import method_label, option
from .packed import PackedJudgments
from .stored import MANY_ITEMS, StoredConsensus, store_scores

COLUMNS = ("scores", "std_error", "probabilities", "grade", "confidence")


def needs_one_pass(method: Any) -> bool:
    """Return whether a method needs no more than one pass over packed judgments."""
    return bool(getattr(method, "one_pass", ()))


def fit_in_one_pass(
    method: Any, packed: PackedJudgments, *, progress: Progress | None = None
) -> Consensus | StoredConsensus:
    """Return the consensus of packed judgments; above five million items it stays in Parquet beside them."""
    check_one_pass(method, packed)
    quality = partial(quality_of_sample, method, packed) if packed.n_annotators else None
    stored = packed.n_items > MANY_ITEMS and not packed.keeps_ranking
    if "pairs" in method.one_pass and packed.kind == "preference" and not stored:
        graded = packed.manifest["strength_levels"] is not None and getattr(method, "uses_strength", False)
        fitted: Consensus = method.fit((condensed_steps if graded else condensed_outcomes)(packed, progress))
        return replace(fitted, quality_source=quality)
    fits = _fits(method, packed, progress)
    if stored:
        return store_scores(method, packed, ((fit.items, _columns(fit)) for fit in fits), quality)
    return _assemble(method, packed, fits, quality)


def check_one_pass(method: Any, packed: PackedJudgments) -> None:
    """Refuse what a single pass cannot do."""
    name = method_label(method)
    if packed.kind not in method.kinds:
        takes = " or ".join(f"{kind}s" for kind in method.kinds)
        raise JudgmentError(f"{name} takes {takes}, not {packed.kind}s; choose a method for {packed.kind}s")
    if packed.nominal and not getattr(method, "nominal", False):
        raise JudgmentError(f"{name} needs an order and nominal grades have none; use a class method")
    if getattr(method, "bins", None) is not None:
        raise ParameterError(f"{name} cuts grades by the range of all of them, which one pass does not know; leave "
                             f"{option('params', {'bins': method.bins})} out")  # fmt: skip
    by_pairs = "pairs" in method.one_pass and packed.kind == "preference"
    if packed.by == "annotator" and not by_pairs:
        raise JudgmentError(
            f"{name} goes query by query, and these judgments are packed by annotator; pack them by query"
        )
    stored = packed.n_items > MANY_ITEMS and not packed.keeps_ranking
    if by_pairs and stored and (packed.by == "annotator" or method_name(method) != "borda"):
        raise JudgmentError(
            f"{name} counts pairs of {packed.n_items:,} items, more than the {MANY_ITEMS:,} that it holds at a time; "
            "pack fewer queries at a time, or choose borda"
        )


class PartFit(NamedTuple):
    """The consensus of one part, and what its errors are made of."""

    number: int
    items: Any
    consensus: Consensus
    sums: tuple[float, float, Floats] | None


def _fits(method: Any, packed: PackedJudgments, progress: Progress | None) -> Iterator[PartFit]:
    """The consensus of each part."""
    for number in range(packed.n_parts):
        part = packed.part(number)
        sums = method.error_sums(part) if hasattr(method, "error_sums") else None
        yield PartFit(number, part.items, method.fit(part), sums)
        if progress is not None:
            progress(number + 1, packed.n_parts, f"{packed.n_parts} parts")


def _columns(fit: PartFit) -> dict[str, Any]:
    """What was estimated of the items of a part; errors are those of the part alone."""
    columns = {name: getattr(fit.consensus, name) for name in COLUMNS}
    if columns["probabilities"] is not None:
        chosen = np.maximum(columns["grade"], 0)
        columns["confidence"] = columns.pop("probabilities")[np.arange(len(chosen)), chosen]
    return {name: values for name, values in columns.items() if values is not None} | {"ranks": fit.consensus.ranks()}


def _assemble(method: Any, packed: PackedJudgments, fits: Iterator[PartFit], quality: Any) -> Consensus:
    """The consensus of all parts, in the order of all items."""
    columns: dict[str, Any] = {}
    levels, sums, totals = None, [], np.zeros(packed.n_items)
    first: Consensus | None = None
    for fit in fits:
        place = packed.item_codes(fit.number)
        first = first or fit.consensus
        levels = levels or fit.consensus.levels
        for name in COLUMNS:
            values = getattr(fit.consensus, name)
            if values is not None:
                column = columns.setdefault(name, np.zeros((packed.n_items, *values.shape[1:]), values.dtype))
                column[place] = values
        if fit.sums is not None:
            sums.append(fit.sums[:2])
            totals[place] = fit.sums[2]
    assert first is not None
    if sums:
        columns["std_error"] = method.errors_from_sums(
            math.fsum(squares for squares, _ in sums), math.fsum(freedom for _, freedom in sums), totals,
            columns["scores"],
        )  # fmt: skip
    return Consensus(
        items=packed.items, method=first.method, params=first.params, trace=first.trace, levels=levels,
        nominal=packed.nominal, quality_source=quality, **columns,
    )  # fmt: skip


def condensed_outcomes(packed: PackedJudgments, progress: Progress | None = None) -> Preferences:
    """Return one preference for each pair of items and outcome that occurs, which weighs as much as all such ones."""
    from ..kernels.pairs import count_pairs

    tables: list[tuple[Any, ...]] = []
    for number in range(packed.n_parts):
        part = packed.part(number)
        assert isinstance(part, Preferences)
        counts = count_pairs(part.left, part.right, part.outcome, part.weight, part.items.offsets)
        code = packed.item_codes(number)
        tables.append((code[counts.first], code[counts.second], counts.wins, counts.losses, counts.ties))
        if packed.by == "annotator" and len(tables) > 1:
            tables = [_add_tables(tables, packed.n_items)]
        if progress is not None:
            progress(number + 1, packed.n_parts, f"{packed.n_parts} parts")
    first, second, *counted = (np.concatenate(columns) for columns in zip(*tables, strict=True))
    outcome = np.repeat(np.array([1, -1, 0], np.int8), len(first))
    weight = np.concatenate(counted)
    given = weight > 0
    return Preferences(
        items=packed.items, annotators=Index.empty(), annotator=np.empty(0, np.int32), left=np.tile(first, 3)[given],
        right=np.tile(second, 3)[given], outcome=outcome[given], weight=weight[given],
    )  # fmt: skip


def condensed_steps(packed: PackedJudgments, progress: Progress | None = None) -> Preferences:
    """Return one preference for each pair of items, outcome and strength that occurs, which weighs as all of them."""
    keys, weight = np.empty((4, 0)), np.empty(0)
    for number in range(packed.n_parts):
        part, code = packed.part(number), packed.item_codes(number)
        assert isinstance(part, Preferences)
        assert part.strength is not None
        left, right = code[part.left], code[part.right]
        outcome = np.where(left < right, part.outcome, -part.outcome)
        rows = np.stack([np.minimum(left, right), np.maximum(left, right), outcome, part.strength])
        keys, weight = np.hstack([keys, rows]), np.append(weight, part.row_weight)
        order = np.lexsort(keys[::-1])
        keys, weight = keys[:, order], weight[order]
        new = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)))
        keys, weight = keys[:, new], np.add.reduceat(weight, new)
        if progress is not None:
            progress(number + 1, packed.n_parts, f"{packed.n_parts} parts")
    left, right = keys[:2].astype(np.int32)
    return Preferences(
        items=packed.items, annotators=Index.empty(), annotator=np.empty(0, np.int32), left=left, right=right,
        outcome=keys[2].astype(np.int8), weight=weight, strength=keys[3],
    )  # fmt: skip


def _add_tables(tables: list[tuple[Any, ...]], n_items: int) -> tuple[Any, ...]:
    """Counts of pairs of two tables together."""
    first, second, *counts = (np.concatenate(columns) for columns in zip(*tables, strict=True))
    keys, number = np.unique(first.astype(np.int64) * n_items + second, return_inverse=True)
    sums = (np.bincount(number, count, len(keys)) for count in counts)
    return (keys // n_items).astype(np.int32), (keys % n_items).astype(np.int32), *sums


def sample_of(packed: PackedJudgments) -> Judgments:
    """Return the sample of judgments that annotators are judged by, some of each of them; all where there are few.

    See :func:`crowdrank.data.parted.sampled_rows`. It is made once and kept.
    """
    share = share_of_rows(packed.rows)
    if packed.sample is None or packed.sample[0] != share:
        given = judgments_of_annotators(packed) if share < 1.0 and packed.n_annotators else np.empty(0)
        parts = [_sample_of_part(part, given, share, packed.by == "annotator") for part in packed.parts()]
        kept = stack_judgments(align_judgments([part for part in parts if len(part)] or parts[:1]))
        object.__setattr__(packed, "sample", (share, kept))
    sample: Judgments = packed.sample[1]  # type: ignore[index]
    return sample


def _sample_of_part(part: Judgments, given: Floats, share: float, by_annotator: bool) -> Judgments:
    """The sampled judgments of a part."""
    if by_annotator and share < 1.0:
        return part.select(np.flatnonzero(sampled_rows(part, given, share, by_row=True)))
    return sample_queries(part, given, share)


def sample_sentence(packed: PackedJudgments, sample: Judgments) -> str | None:
    """Return what share of the judgments a sample is, in words; ``None`` where it is all of them."""
    if len(sample) >= packed.rows:
        return None
    sentence = f"annotators are judged by a sample of {len(sample):,} of {packed.rows:,} {packed.kind}s"
    missing = packed.n_annotators - len(np.unique(sample.annotator))
    return f"{sentence}, which leaves {missing:,} of {packed.n_annotators:,} annotators out" if missing else sentence


def quality_of_sample(method: Any, packed: PackedJudgments) -> Quality | None:
    """Return the quality of annotators as a sample of the judgments shows it; counts are those of all judgments."""
    from ..io.notices import say

    sample = sample_of(packed)
    said = sample_sentence(packed, sample)
    if said is not None:
        say(said)
    everything: Any = packed.parts if said is not None and packed.by == "annotator" else None
    quality = held_out_quality(method, sample, sampled=True, everything=everything)
    if quality is None or said is None:
        return quality
    return replace(quality, n_judgments=judgments_of_annotators(packed))


def judgments_of_annotators(packed: PackedJudgments) -> Floats:
    """Return the number of judgments that each annotator gave, by their weights where there are any."""
    if packed.given is None:
        counts = np.zeros(packed.n_annotators)
        for part in packed.parts():
            counts += np.bincount(part.annotator, part.weight, packed.n_annotators)
        object.__setattr__(packed, "given", counts)
    return packed.given  # type: ignore[return-value]


def of_sample(consensus: Consensus, sample: Judgments) -> Consensus:
    """Return the consensus of the items of a sample only."""
    place = consensus.items.codes_of(sample.items, "consensus", "judgments")
    kept = {name: getattr(consensus, name) for name in COLUMNS}
    columns: dict[str, Any] = {name: None if values is None else values[place] for name, values in kept.items()}
    replicates = None if consensus.replicates is None else consensus.replicates[:, place]
    return replace(consensus, items=sample.items, covariance=None, replicates=replicates, **columns)
