"""A fingerprint of judgments: the same for the same judgments in any order, another one for any change."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .covariates import covariate_labels
from .judgments import Judgments, Mixed, Preferences, Rankings, parts_of

# threshold (equal): rows numbered by compiled passes
LONG = 500_000
"""Rows from which on compiled loops are worth the time that loading them takes."""

_N_HEX_DIGITS = 16
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def fingerprint(judgments: Judgments | Mixed) -> str:
    """Return 16 hexadecimal digits that tell judgments apart; the order of rows does not matter, nor does the file.

    Examples
    --------
    >>> from .judgments import Grades
    >>> rows = [("ann", "q", "x", 3), ("bob", "q", "y", 1)]
    >>> fingerprint(Grades.from_rows(rows)) == fingerprint(Grades.from_rows(rows[::-1]))
    True
    >>> fingerprint(Grades.from_rows(rows)) == fingerprint(Grades.from_rows(rows[:1]))
    False
    """
    digest = hashlib.sha256()
    for ids in (judgments.annotators.ids, judgments.items.queries.ids, judgments.items.ids):
        digest.update("\x1f".join(map(str, ids.to_list())).encode("utf-8", "surrogatepass") + b"\x1e")
    digest.update(np.ascontiguousarray(judgments.items.query).astype(np.int64).tobytes())
    for part in parts_of(judgments):
        digest.update(part.kind.encode())
        if isinstance(part, Preferences) and part.covariates is not None:
            digest.update("\x1f".join(covariate_labels(part.covariate_names, part.covariate_transforms)).encode())
        digest.update(np.sort(row_numbers_of(part)).tobytes())
    return digest.hexdigest()[:_N_HEX_DIGITS]


def row_numbers_of(part: Judgments) -> NDArray[np.uint64]:
    """Return a number for each judgment that any change of it would change."""
    columns: list[Any] = [part.annotator] if part.n_annotators else []
    columns += [column for column in (part.weight, part.time, part.block, part.duration) if column is not None]
    if isinstance(part, Rankings):
        own = row_numbers([part.item, part.rank])
        # the places of a ranking may stand in any order
        columns.append(np.add.reduceat(np.append(own, np.uint64(0)), part.offsets[:-1]) if len(part) else own)
    else:
        columns += [getattr(part, name) for name in part.answers]
    if not isinstance(part, Preferences):
        return row_numbers(columns)
    columns += [] if part.strength is None else [part.strength]
    columns += [] if part.covariates is None else [np.ascontiguousarray(column) for column in part.covariates.T]
    own = row_numbers(columns)
    if part.judgment is None:
        return own
    together = np.zeros(int(part.judgment.max(initial=-1)) + 1, np.uint64)
    np.add.at(together, part.judgment, own)
    return row_numbers([own, together[part.judgment]])


def stable_hashes(ids: pl.Series) -> NDArray[np.uint64]:
    """Return a hash of each id that no version or machine changes; a number has that of its text.

    Examples
    --------
    >>> bool((stable_hashes(pl.Series([7, 12])) == stable_hashes(pl.Series(["7", "12"]))).all())
    True
    """
    from ..kernels.numbering import hash_texts

    texts = ids.cast(pl.String)
    data = np.frombuffer(str(texts.str.join("").item() or "").encode(), np.uint8)
    hashes: NDArray[np.uint64] = hash_texts(data, texts.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy())
    return hashes


def question_numbers(part: Judgments) -> NDArray[np.uint64]:
    """Return a number for each judgment that says who was asked what, (n,), whatever was answered.

    A pair is the same question in either order, and items that were ranked are in any.
    """
    columns: list[Any] = [part.annotator] if part.n_annotators else []
    columns += [] if part.block is None else [part.block]
    if isinstance(part, Rankings):
        own = row_numbers([part.item])
        columns.append(np.add.reduceat(np.append(own, np.uint64(0)), part.offsets[:-1]) if len(part) else own)
    elif isinstance(part, Preferences):
        columns += [np.minimum(part.left, part.right), np.maximum(part.left, part.right)]
    else:
        columns.append(part.item)
    return row_numbers(columns)


def row_numbers(columns: list[Any]) -> NDArray[np.uint64]:
    """Return a number for each row, from all its columns (SplitMix64)."""
    state = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        array = np.asarray(column)
        # 0.0 and -0.0 are one number
        bits = (array + 0.0).view(np.uint64) if array.dtype == np.float64 else array
        if len(state) >= LONG:
            from ..kernels.numbering import mix_column

            mix_column(state, bits)
            continue
        bits = bits.astype(np.int64).view(np.uint64)
        state = (state ^ bits) + _STEP
        state = (state ^ (state >> np.uint64(30))) * _FIRST
        state = (state ^ (state >> np.uint64(27))) * _SECOND
        state ^= state >> np.uint64(31)
    return state
