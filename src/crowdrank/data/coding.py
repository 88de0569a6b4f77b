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

LONG = 500_000
"""From this many cells on compiled passes are worth the time that loading them takes."""

_MAX_ROWS_SAMPLED = 50_000
_SEEDS = (0, 1)
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
        raise JudgmentError(f"column {values.name!r} holds lists or other compound values; give a plain value per row")
    if isinstance(dtype, pl.Duration):
        return values.cast(pl.Int64)
    try:
        return values.cast(pl.String)
    except pl.exceptions.PolarsError:
        what = "bytes that are not UTF-8" if dtype == pl.Binary else f"values of type {dtype}"
        raise JudgmentError(f"column {values.name!r} holds {what}; turn them into text or numbers first") from None


def plain_cells(values: pl.Series) -> pl.Series:
    """Return a column as numbers, truth values or text, whatever type a file gave it."""
    dtype = values.dtype
    if dtype == pl.String or dtype == pl.Boolean or (dtype.is_numeric() and not dtype.is_decimal()):
        return values
    return values.cast(pl.Float64) if dtype.is_decimal() else id_series(values).cast(pl.String)


Coded: TypeAlias = tuple[list[Ints], pl.Series]
"""Codes of some columns over their common ids, and the ids in sorted order."""


def factorize(columns: Sequence[pl.Series]) -> Coded:
    """Return the codes of each column over their common ids, and the ids in sorted order.

    Text is stripped of surrounding white space; a missing or blank id has code -1.
    """
    return factorize_groups([columns])[0]


def factorize_groups(groups: Sequence[Sequence[pl.Series]], *, ordered: bool = True) -> list[Coded]:
    """Factorize several groups of columns at once, each over its own ids, on all cores.

    Without ``ordered`` the ids of a long column stand in the order that takes least time.
    """
    coded: list[Coded | None] = []
    texts: list[list[pl.Series]] = []
    for columns in groups:
        series = [id_series(column) for column in columns]
        if any(s.dtype != series[0].dtype for s in series):
            series = [s.cast(pl.String) for s in series]
        integers = series[0].dtype == pl.Int64
        coded.append(_factorize_integers(series) if integers else None)
        texts += [] if integers else [series]
    long = sum(len(column) for series in texts for column in series) >= LONG
    coded_texts = iter(_by_hash(texts, ordered) if long else [_code_texts(*_encode(series)) for series in texts])
    return [done or next(coded_texts) for done in coded]


def _by_hash(groups: list[list[pl.Series]], ordered: bool) -> list[Coded]:
    """Codes of long columns of text, on all cores.

    Texts are distinguished by two hashes of 64 bits. Those of a sample are numbered first, in sorted order, so
    columns with few different texts need no second pass.
    """
    samples = [_sample(series) for series in groups]
    jobs = [(*sample, column) for sample, series in zip(samples, groups, strict=True) for column in series]
    with ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1)) as pool:
        numbered = iter(list(pool.map(lambda job: _number_texts(*job), jobs)))
    return [_merge_codes([next(numbered) for _ in series], ordered) for series in groups]


def _sample(series: list[pl.Series]) -> tuple[pl.Series, int]:
    """Sorted texts of a sample of rows, none where the sample is unlikely to hold them all, and how many are likely."""
    rows = pl.concat([s.gather_every(max(1, len(s) // _MAX_ROWS_SAMPLED)).rename("id") for s in series])
    distinct = rows.drop_nulls().unique()
    if 10 * len(distinct) < len(rows):
        return distinct.sort(), len(distinct)
    return distinct.head(0), len(distinct) if 2 * len(distinct) < len(rows) else max(len(s) for s in series)


def _number_texts(known: pl.Series, n_likely: int, column: pl.Series) -> tuple[pl.Series, Ints]:
    """The distinct texts of a column, known ones first, and the number of each cell's; a missing text is blank.

    A table for about ``n_likely`` texts, which stays in the cache, is tried before one that holds as many as cells.
    """
    from ..kernels.hashing import number_hashes

    cells = column.fill_null("") if column.null_count() else column
    of_known = [known.hash(seed).to_numpy() for seed in _SEEDS]
    of_cells = [cells.hash(seed).to_numpy() for seed in _SEEDS]
    numbers = np.empty(len(cells), np.int32)
    new = np.array([-1])
    most = len(known) + len(cells)
    for capacity in dict.fromkeys((min(4 * n_likely + 1024, most), most)):
        new = number_hashes(of_known[0], of_known[1], of_cells[0], of_cells[1], capacity, numbers)
        if not len(new) or new[0] >= 0:
            break
    return pl.concat([known.alias("id"), cells.gather(new).alias("id")]), numbers


def _merge_codes(columns: list[tuple[pl.Series, Ints]], ordered: bool) -> Coded:
    """Codes over the stripped texts of all columns of a group, sorted if so asked."""
    stripped = [texts.str.strip_chars() for texts, _ in columns]
    if not ordered and len(columns) == 1 and stripped[0].equals(columns[0][0]) and not (stripped[0] == "").any():
        return [columns[0][1]], stripped[0].alias("id")
    together = pl.concat(stripped)
    ids = together.filter(together != "").unique().alias("id")
    ids = ids.sort() if ordered else ids
    return [
        numbers if texts.equals(ids) else _places(ids, texts)[numbers]
        for texts, (_, numbers) in zip(stripped, columns, strict=True)
    ], ids


def _places(ids: pl.Series, texts: pl.Series) -> Ints:
    """Place of each text among the ids, -1 for a blank one."""
    places = _number_texts(ids, len(ids), texts)[1]
    return np.where(places < len(ids), places, np.int32(-1))


def _encode(series: list[pl.Series]) -> tuple[pl.Series, list[pl.Series]]:
    """The distinct texts of short columns, and for each column the number of each cell's text (null: missing)."""
    categories = pl.Categories.random()
    # polars forgets categories with the last series that uses them, so the encoded columns are kept till the end
    encoded = [column.cast(pl.Categorical(categories)) for column in series]
    return categories.to_series().cast(pl.String), [column.to_physical() for column in encoded]


def _code_texts(vocabulary: pl.Series, numbers: list[pl.Series]) -> Coded:
    """Codes over the sorted texts from numbers over the vocabulary."""
    table, ids = _sorted_codes(vocabulary)
    return [_gather(table, column) for column in numbers], ids


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
