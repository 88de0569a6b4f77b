"""Ids as codes: the distinct values of columns in sorted order, and the place of each cell among them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
import polars as pl

from ..errors import JudgmentError
from ..protocols import Ints

_SAMPLE = 50_000
_LONG = 500_000
_TABLE_CELLS = 1 << 26


def id_series(values: pl.Series) -> pl.Series:
    """Return ids as text or 64-bit integers; whole floats become integers, anything else text."""
    dtype = values.dtype
    if dtype == pl.String or dtype == pl.Int64:
        return values
    if dtype.is_integer():
        whole = values.cast(pl.Int64, strict=False)
        return whole if whole.null_count() == values.null_count() else values.cast(pl.String)
    if dtype.is_float():
        values = values.fill_nan(None)
        whole = values.drop_nulls()
        if (whole == whole.round()).all() and (whole.abs() < 2.0**53).all():
            return values.cast(pl.Int64)
    if dtype == pl.Null:
        return values.cast(pl.String)
    if dtype == pl.Object or dtype.is_nested():
        raise JudgmentError(f"column {values.name!r} holds lists or other compound values; give one plain value a row")
    return values.cast(pl.String)


Coded: TypeAlias = tuple[list[Ints], pl.Series]
"""Codes of some columns over their common ids, and the ids in sorted order."""


def factorize(columns: Sequence[pl.Series]) -> Coded:
    """Return the codes of each column over their common ids, and the ids in sorted order.

    Text is stripped of surrounding white space; a missing or blank id has code -1.
    """
    return factorize_groups([columns])[0]


def factorize_groups(groups: Sequence[Sequence[pl.Series]]) -> list[Coded]:
    """Factorize several groups of columns at once, each over its own ids, on all cores."""
    coded: list[Coded | None] = []
    texts: list[list[pl.Series]] = []
    for columns in groups:
        series = [id_series(column) for column in columns]
        if any(s.dtype != series[0].dtype for s in series):
            series = [s.cast(pl.String) for s in series]
        integers = series[0].dtype == pl.Int64
        coded.append(_factorize_integers(series) if integers else None)
        texts += [] if integers else [series]
    hashed = [_by_hash(series) for series in texts]
    encoded = iter(_encode([series for series, done in zip(texts, hashed, strict=True) if done is None]))
    found = iter([done or _code_texts(*next(encoded)) for done in hashed])
    return [done or next(found) for done in coded]


def _by_hash(columns: list[pl.Series]) -> Coded | None:
    """Codes of long columns with very many different texts, by hash; ``None`` where that does not fit.

    The hashes are polars' own, of 64 bits; each cell is compared with the text its hash stands for, so that two texts
    with one hash are noticed and the columns coded in the other way.
    """
    if sum(len(column) for column in columns) < _LONG or len(_sample(columns)):
        return None
    together = pl.concat([column.rename("id") for column in columns]).fill_null("")
    vocabulary, numbers = _numbered(together)
    if not (vocabulary.gather(numbers) == together).all():
        return None
    stripped = vocabulary.str.strip_chars()
    ids = stripped.filter(stripped != "").unique().sort().alias("id")
    # numbering the sorted ids first gives the values behind them the places of their ids
    known, places = _numbered(pl.concat([ids, stripped.alias("id")]))
    if not (known.gather(places[len(ids) :]) == stripped).all():
        return None
    table = np.where((stripped == "").to_numpy(), np.int32(-1), places[len(ids) :])
    bounds = np.cumsum([len(column) for column in columns])[:-1]
    return list(np.split(table[numbers], bounds)), ids


def _numbered(texts: pl.Series) -> tuple[pl.Series, Ints]:
    """The distinct texts by hash, in order of first appearance, and the number of each cell's."""
    from ..kernels.hashing import number_hashes

    numbers, first = np.empty(len(texts), np.int32), np.empty(len(texts), np.int64)
    n = number_hashes(texts.hash().to_numpy(), numbers, first)
    return texts.gather(first[:n]), numbers


def _encode(groups: list[list[pl.Series]]) -> list[tuple[pl.Series, list[pl.Series]]]:
    """For each group its distinct texts, and for each of its columns the number of each cell's text (null: missing).

    Numbers go by first appearance. Of long columns with few different texts a sorted sample appears first, so that they
    are numbered in sorted order and need no second pass.
    """
    categories = [pl.Categories.random() for _ in groups]
    # polars forgets categories with the last series that uses them, so the samples must live till the end
    samples = [_sample(series).cast(pl.Categorical(known)) for known, series in zip(categories, groups, strict=True)]
    jobs = [(s, pl.Categorical(known)) for known, series in zip(categories, groups, strict=True) for s in series]
    encoded = iter(_on_all_cores(jobs))
    return [
        _vocabulary(known, series, [next(encoded) for _ in series])
        for known, series, _ in zip(categories, groups, samples, strict=True)
    ]


def _sample(series: list[pl.Series]) -> pl.Series:
    """Sorted texts of a sample of rows; none where they are too many for the sample to hold them all."""
    rows = pl.concat([s.gather_every(max(1, len(s) // _SAMPLE)).rename("id") for s in series])
    found = rows.drop_nulls().unique()
    return found.sort() if 10 * len(found) < len(rows) else found.head(0)


def _vocabulary(
    known: pl.Categories, series: list[pl.Series], numbers: list[pl.Series]
) -> tuple[pl.Series, list[pl.Series]]:
    """The distinct texts of a group of encoded columns in order of their numbers, and the columns' numbers."""
    highest = [int(column.max()) for column in numbers if column.null_count() < len(column)]  # type: ignore[arg-type]
    if max(highest, default=0) < _SAMPLE:
        return known.to_series().cast(pl.String), numbers
    # polars lists categories one by one; of very many it is quicker to look up a row that has each
    place = np.zeros(max(highest) + 1, np.int64)
    offset = 0
    for column in numbers:
        rows = np.flatnonzero(column.is_not_null().to_numpy()) if column.null_count() else np.arange(len(column))
        place[column.drop_nulls().to_numpy()] = rows + offset
        offset += len(column)
    return pl.concat([s.rename("id") for s in series]).gather(place), numbers


def _on_all_cores(jobs: list[tuple[pl.Series, pl.Categorical]]) -> list[pl.Series]:
    """Encode each column; long ones by threads, as polars encodes a column on one core and lets the others run."""
    if sum(len(s) for s, _ in jobs) < _SAMPLE:
        return [_numbers(*job) for job in jobs]
    with ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda job: _numbers(*job), jobs))


def _numbers(column: pl.Series, dtype: pl.Categorical) -> pl.Series:
    """The number of each cell's text; where equal cells stand together, as in tables sorted by item, of each run."""
    head = column.head(_SAMPLE)
    if len(column) < _SAMPLE or (head != head.shift(1)).sum() > len(head) // 3:
        return column.cast(dtype).to_physical()
    starts = column.ne_missing(column.shift(1))
    starts[0] = True
    runs = column.filter(starts).cast(dtype).to_physical()
    return runs.gather(starts.cast(pl.UInt32).cum_sum() - 1)


def _code_texts(vocabulary: pl.Series, numbers: list[pl.Series]) -> Coded:
    """Codes over the sorted texts from numbers over the vocabulary."""
    table, ids = _sorted_codes(vocabulary)
    identical = bool((table == np.arange(len(table))).all())
    return [
        column.to_numpy().view(np.int32) if identical and not column.null_count() else _gather(table, column)
        for column in numbers
    ], ids


def _sorted_codes(values: pl.Series) -> tuple[Ints, pl.Series]:
    """Code of each value over the stripped, sorted values (-1 for blank), and those values."""
    stripped = values.str.strip_chars()
    order = stripped.arg_sort()
    rising = stripped.gather(order)
    # stripping may have made values equal, or blank
    new = (rising != rising.shift(1)).fill_null(True) & (rising != "")
    table = np.empty(len(values), np.int32)
    table[order.to_numpy()] = new.cast(pl.Int32).cum_sum().to_numpy() - 1
    return table, rising.filter(new).alias("id")


def _gather(table: Ints, numbers: pl.Series) -> Ints:
    """Entry of the table at each number, -1 where the number is null."""
    codes: Ints
    if numbers.null_count():
        codes = np.append(table, np.int32(-1))[numbers.fill_null(len(table)).to_numpy()]
    else:
        codes = table[numbers.to_numpy()]
    return codes


def _factorize_integers(series: list[pl.Series]) -> tuple[list[Ints], pl.Series]:
    """Codes over sorted integer ids, by table where their range is small."""
    together = pl.concat([s.rename("id") for s in series])
    present = together.drop_nulls()
    ids = present.unique().sort()
    if not len(ids):
        return [np.full(len(s), -1, np.int32) for s in series], ids.alias("id")
    low, high = int(ids[0]), int(ids[-1])
    if high - low < min(_TABLE_CELLS, 4 * len(together) + 1024):
        table = np.full(high - low + 1, -1, np.int32)
        table[ids.to_numpy() - low] = np.arange(len(ids), dtype=np.int32)
        codes = [_gather(table, s - low) for s in series]
    else:
        codes = [look_up([ids], [s]) for s in series]
    return codes, ids.alias("id")


def compact(codes: Ints, ids: pl.Series) -> tuple[Ints, pl.Series]:
    """Return codes over those ids only that occur, and these ids."""
    present = np.bincount(codes, minlength=len(ids)) > 0 if len(codes) else np.zeros(len(ids), bool)
    if present.all():
        return codes, ids
    return (np.cumsum(present) - 1).astype(np.int32)[codes], ids.filter(pl.Series(present))


def look_up(known: list[pl.Series], wanted: list[pl.Series]) -> Ints:
    """Position of each wanted row among the known rows, -1 where there is none; mixed types compare as text."""
    left, right = {}, {}
    for number, (have, want) in enumerate(zip(known, wanted, strict=True)):
        if have.dtype != want.dtype:
            have, want = have.cast(pl.String), want.cast(pl.String)
        if have.dtype == pl.String:
            want = want.str.strip_chars()
        left[f"k{number}"], right[f"k{number}"] = want, have
    position = pl.int_range(len(known[0]), dtype=pl.Int32, eager=True)
    table = pl.DataFrame(right).with_columns(position=position)
    joined = pl.DataFrame(left).join(table, on=list(left), how="left", maintain_order="left")
    return joined["position"].fill_null(-1).to_numpy()
