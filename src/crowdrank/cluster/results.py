"""The consensus of packed judgments: put together from parts, or stored in Parquet; methods of one pass; samples."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus, Quality, QualitySource, Trace
from ..data.files import PathLike, plain, refusal, whole_file
from ..data.index import Index, Items
from ..data.judgments import Judgments, Preferences, align_judgments, stack_judgments
from ..data.parted import MANY_ITEMS, PartColumns, PartedFit, sample_queries, sampled_rows, share_of_rows
from ..data.showing import round_floats
from ..errors import JudgmentError, ParameterError, UnknownNameError
from ..io.notices import say
from ..kernels.threads import in_order
from ..protocols import Floats, Progress, method_name
from ..quality import held_out_quality
from ..wording import method_label, option
from .packed import PackedJudgments, items_of


@dataclass(frozen=True, eq=False)
class StoredConsensus:
    """The consensus of packed judgments in Parquet files, one for each part; ``frame()`` scans them lazily.

    Rows stand query by query and best first, queries in the order of the parts.
    """

    path: Path
    n_items: int
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    quality_source: QualitySource | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return self.n_items

    def __repr__(self) -> str:
        return f"StoredConsensus({self.n_items:,} items, method {self.method}, in {self.path})"

    @property
    def quality(self) -> Quality | None:
        """Quality of each annotator, computed on first access; ``None`` where the judgments name no annotators."""
        return None if self.quality_source is None else self.quality_source.quality

    def frame(self) -> pl.LazyFrame:
        """Return the lazy table of query, item, score, rank [, grade, confidence] [, std_error]."""
        return pl.scan_parquet(self.path / "part-*.parquet")

    def order(self, query: str | int) -> list[str | int]:
        """Return the item ids of a query, best first."""
        chosen = self.frame().filter(pl.col("query").cast(pl.String) == str(query)).select("item").collect()
        if not len(chosen):
            raise UnknownNameError(f"there is no query {query!r}")
        return chosen["item"].to_list()

    def of_queries(self, queries: pl.Series) -> Consensus:
        """Return the consensus of some queries, in memory."""
        scan = self.frame()
        keys = [name for name in ("query", "item") if name in scan.collect_schema().names()]
        if "query" in keys:
            wanted = queries.cast(pl.String).unique()
            scan = scan.filter(pl.col("query").cast(pl.String).is_in(wanted.implode()))
        table = scan.collect().sort(keys)
        items: Items = items_of(table.select(keys))
        return Consensus(
            items=items, scores=table["score"].to_numpy(), method=self.method, params=self.params, trace=self.trace,
            std_error=table["std_error"].to_numpy() if "std_error" in table.columns else None,
            quality_source=self.quality_source,
        )  # fmt: skip

    def write(self, path: str) -> None:
        """Write the whole table as CSV or Parquet, without holding it."""
        target = Path(path)
        table = self.frame()
        try:
            with whole_file(target) as handle:
                if target.suffix in (".parquet", ".pq"):
                    table.sink_parquet(handle)
                else:
                    table.with_columns(round_floats(table.collect_schema())).sink_csv(handle)
        except OSError as error:
            raise ParameterError(refusal(plain(path), target, error)) from None


def store_scores(
    method: Any, packed: PackedJudgments, parts: Iterable[tuple[Items, PartColumns]], quality: Any = None
) -> StoredConsensus:
    """Write the columns of the items of each part in turn, and return the consensus that they are."""
    folder = packed.path / "results" / method_name(method)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for former in folder.glob("part-*.parquet"):
            former.unlink()
        for number, (items, columns) in enumerate(parts):
            table: dict[str, Any] = {} if items.single else {"query": items.query_ids()}
            ranks = Consensus(items=items, scores=columns.scores, method=method_name(method)).ranks()
            table |= {"item": items.ids, "score": columns.scores, "rank": ranks}
            if columns.grade is not None and packed.levels is not None:
                chosen = pl.Series(packed.levels).gather(np.maximum(columns.grade, 0))
                table["grade"] = chosen.set(pl.Series(columns.grade < 0), None)
            more = {"confidence": columns.confidence, "std_error": columns.std_error}
            table |= {name: values for name, values in more.items() if values is not None}
            best = np.lexsort((np.arange(len(items)), -columns.scores, items.query))
            with whole_file(folder / f"part-{number:05d}.parquet") as handle:
                pl.DataFrame(table)[best].write_parquet(handle)
    except OSError as error:
        raise ParameterError(refusal(plain(str(folder)), folder / "part", error)) from None
    source = None if quality is None else QualitySource(quality)
    return StoredConsensus(folder, packed.n_items, method_name(method), dataclasses.asdict(method), Trace(), source)


def is_stored(path: Any) -> bool:
    """Return whether a path is a folder of a ranking that stays in Parquet."""
    return isinstance(path, str | os.PathLike) and Path(path).is_dir() and any(Path(path).glob("part-*.parquet"))


def scan_consensus(path: PathLike) -> StoredConsensus:
    """Return the ranking of a folder such as ``packed/results/mean_grade``, whose name is that of the method."""
    folder = Path(path)
    try:
        n_items = int(pl.scan_parquet(folder / "part-*.parquet").select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, OSError):
        raise JudgmentError(f"{plain(str(path))} holds no ranking in Parquet; make one with aggregate") from None
    return StoredConsensus(folder, n_items, folder.name)


def assemble(method: Any, packed: Any, fit: PartedFit) -> Consensus | StoredConsensus:
    """Return the consensus of packed judgments; above five million items it stays in Parquet beside them."""
    if packed.n_items > MANY_ITEMS and not packed.keeps_ranking:
        columns = ((packed.part(number).items, part) for number, part in enumerate(fit.columns))
        return replace(store_scores(method, packed, columns, fit.quality), trace=fit.trace)
    return Consensus(
        items=packed.items, method=method_name(method), params=dataclasses.asdict(method), trace=fit.trace,
        levels=fit.levels, nominal=bool(getattr(packed, "nominal", False)), estimates=dict(fit.estimates),
        quality_source=fit.quality, **_in_place(packed, fit.columns),
    )  # fmt: skip


def _in_place(packed: Any, parts: Iterable[PartColumns]) -> dict[str, Any]:
    """Columns of all items, in their order, from those of the parts."""
    columns: dict[str, Any] = {}
    for number, part in enumerate(parts):
        for name, values in part._asdict().items():
            if values is not None:
                whole = columns.setdefault(name, np.zeros((packed.n_items, *values.shape[1:]), values.dtype))
                whole[packed.item_codes(number)] = values
    return columns


# Methods that need one pass: averages query by query, and those that need counts of pairs


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
    first: list[Consensus] = []
    sums: list[tuple[float, float]] = []
    totals = np.zeros(0 if stored else packed.n_items)

    def fit_part(number: int) -> tuple[Judgments, Consensus, tuple[Any, ...]]:
        part = packed.part(number)
        of_errors = method.error_sums(part) if hasattr(method, "error_sums") and not stored else ()
        return part, method.fit(part), of_errors

    def fit_parts() -> Iterator[tuple[Items, PartColumns]]:
        # parts in memory are shared among threads; of files one is held at a time
        numbers = range(packed.n_parts)
        fitted = in_order(fit_part, numbers) if packed.keeps_ranking else map(fit_part, numbers)
        for number, (part, consensus, of_errors) in enumerate(fitted):
            if of_errors:
                *of_part, totals[packed.item_codes(number)] = of_errors
                sums.append((of_part[0], of_part[1]))
            if not first or (first[0].levels is None and consensus.levels is not None):
                first[:] = [consensus]
            columns = {name: getattr(consensus, name) for name in PartColumns._fields}
            if stored and consensus.probabilities is not None and consensus.grade is not None:
                chosen = np.maximum(consensus.grade, 0)
                columns |= {
                    "confidence": consensus.probabilities[np.arange(len(chosen)), chosen],
                    "probabilities": None,
                }
            yield part.items, PartColumns(**columns)
            if progress is not None:
                progress(number + 1, packed.n_parts, f"{packed.n_parts} parts")

    if stored:
        # errors are those of each part alone
        return store_scores(method, packed, fit_parts(), quality)
    columns = _in_place(packed, (part for _, part in fit_parts()))
    if sums:
        squares, freedom = (math.fsum(column) for column in zip(*sums, strict=True))
        columns["std_error"] = method.errors_from_sums(squares, freedom, totals, columns["scores"])
    return Consensus(
        items=packed.items, method=first[0].method, params=first[0].params, trace=first[0].trace,
        levels=first[0].levels, nominal=packed.nominal, quality_source=quality, **columns,
    )  # fmt: skip


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
            # counts of the same pairs of two tables together
            first, second, *counted = (np.concatenate(columns) for columns in zip(*tables, strict=True))
            keys, place = np.unique(first.astype(np.int64) * packed.n_items + second, return_inverse=True)
            sums = (np.bincount(place, count, len(keys)) for count in counted)
            pairs = (keys // packed.n_items).astype(np.int32), (keys % packed.n_items).astype(np.int32)
            tables = [(*pairs, *sums)]
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


def sample_of(packed: PackedJudgments) -> Judgments:
    """Return the sample of judgments that annotators are judged by, some of each of them; all where there are few.

    See :func:`crowdrank.data.parted.sampled_rows`. It is made once and kept.
    """
    share = share_of_rows(packed.rows)
    if packed.sample is None or packed.sample[0] != share:
        given = judgments_of_annotators(packed) if share < 1.0 and packed.n_annotators else np.empty(0)
        parts = []
        for part in packed.parts():
            if packed.by == "annotator" and share < 1.0:
                parts.append(part.select(np.flatnonzero(sampled_rows(part, given, share, by_row=True))))
            else:
                parts.append(sample_queries(part, given, share))
        kept = stack_judgments(align_judgments([part for part in parts if len(part)] or parts[:1]))
        object.__setattr__(packed, "sample", (share, kept))
    return packed.sample[1]  # type: ignore[index]


def quality_of_sample(method: Any, packed: PackedJudgments) -> Quality | None:
    """Return the quality of annotators as a sample of the judgments shows it; counts are those of all judgments."""
    sample = sample_of(packed)
    if len(sample) >= packed.rows:
        return held_out_quality(method, sample, sampled=True)
    said = f"annotators are judged by a sample of {len(sample):,} of {packed.rows:,} {packed.kind}s"
    if missing := packed.n_annotators - len(np.unique(sample.annotator)):
        said += f", which leaves {missing:,} of {packed.n_annotators:,} annotators out"
    say(said)
    everything: Any = packed.parts if packed.by == "annotator" else None
    quality = held_out_quality(method, sample, sampled=True, everything=everything)
    return None if quality is None else replace(quality, n_judgments=judgments_of_annotators(packed))


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
    kept = {name: getattr(consensus, name) for name in PartColumns._fields}
    columns: dict[str, Any] = {name: None if values is None else values[place] for name, values in kept.items()}
    replicates = None if consensus.replicates is None else consensus.replicates[:, place]
    return replace(consensus, items=sample.items, covariance=None, replicates=replicates, **columns)
