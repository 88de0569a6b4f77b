"""What a fit over parts of the judgments leaves; numbers of judgments, which samples and fingerprints are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..protocols import Bools, Floats, Ints, Parts
from .consensus import Quality, Trace
from .covariates import covariate_labels
from .index import Index, Items
from .judgments import Judgments, Mixed, Preferences, Rankings, parts_of

# threshold (sample): judgments by which annotators are judged
SAMPLE_ROWS = 1_000_000
"""Judgments that annotators are judged by; of more, a sample that holds some of every annotator."""

_LEAST_OF_EACH = 20.0
"""Judgments of an annotator that a sample is to hold, as far as half as many rows again have room for them."""

_MOST_SHARES = 1.5
# threshold (sample): judgments of a query from which single ones are sampled, not whole queries
_LARGE_QUERY = 50_000
"""Judgments of a query, on average, from which on single judgments are drawn and not whole queries."""

_MOST_ANSWERS, _MOST_BUCKETS = 16, 1 << 24
"""Answers of one annotator to one question that are drawn together; more are drawn one by one, lest few questions make
up the sample."""

# threshold (equal): items of packed judgments whose ranking is held
MANY_ITEMS = 5_000_000
"""Items above which a fit over parts keeps the chosen level and its probability, not those of all levels."""


class PartColumns(NamedTuple):
    """What was estimated of the items of one part; ``None`` where a method has no such thing."""

    scores: Floats
    std_error: Floats | None = None
    grade: Ints | None = None
    probabilities: Floats | None = None
    confidence: Floats | None = None


@dataclass(frozen=True, eq=False)
class PartedFit:
    """The result of a fit over parts; ``columns`` has one entry for each part."""

    columns: Sequence[PartColumns]
    trace: Trace
    quality: Quality | Callable[[], Quality | None] | None = None
    levels: tuple[Any, ...] | None = None
    estimates: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NumberedParts:
    """Parts that come with their number, for passes that need to know where the items of a part stand among all."""

    parts: Parts

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return self.parts.n_parts

    def part(self, number: int) -> tuple[int, Any]:
        """Return the number and the judgments of a part."""
        return number, self.parts.part(number)


def share_of_rows(n_rows: float) -> float:
    """Return the share of the judgments that annotators are judged by."""
    return min(SAMPLE_ROWS / max(n_rows, 1.0), 1.0)


def read_sample(
    judgments_of: Callable[[Any], Judgments], n_judgments: Floats, share: float, part: Any, state: Any
) -> tuple[tuple[Judgments], None]:
    """Read the sampled judgments out of a part; ``judgments_of`` a part are all of them."""
    return (sample_queries(judgments_of(part), n_judgments, share),), None


def sample_queries(judgments: Judgments, n_judgments: Floats, share: float) -> Judgments:
    """Return about a share of the judgments, those of whole queries with their items only; see :func:`sampled_rows`.

    ``n_judgments`` (n_annotators,) are those of each annotator in all parts.
    """
    if share >= 1.0:
        return judgments
    if has_large_queries(judgments):
        return judgments.select(np.flatnonzero(sampled_rows(judgments, n_judgments, share)))
    return keep_queries(judgments, _drawn_queries(judgments, n_judgments, share))


def has_large_queries(judgments: Judgments) -> bool:
    """Return whether queries are so large that a sample cannot be made of whole ones."""
    return judgments.n_queries == 1 or len(judgments) > _LARGE_QUERY * judgments.n_queries


def sampled_rows(judgments: Judgments, n_judgments: Floats, share: float, *, by_row: bool = False) -> Bools:
    """Return which judgments are in the sample that annotators are judged by, (n,).

    Whole queries are drawn, so that items keep all their judgments; single judgments where queries are large, or
    ``by_row``. Queries, or judgments, of annotators who gave few are drawn more often than others, so that the sample
    has twenty judgments of every annotator, or all of theirs; fewer where that would make it larger by a half. Which
    are drawn follows from who was asked what, never from what was answered, nor from the order of rows: answers to the
    same question come in together, equal or not.
    """
    from ..kernels.numbering import count_before

    if share >= 1.0:
        return np.ones(len(judgments), bool)
    if not by_row and not has_large_queries(judgments):
        return _drawn_queries(judgments, n_judgments, share)[judgments.query]
    # answers to a question by one annotator have one number; a pair is the same question in either order, and items
    # that were ranked are in any
    columns: list[Any] = [judgments.annotator] if judgments.n_annotators else []
    columns += [] if judgments.block is None else [judgments.block]
    if isinstance(judgments, Rankings):
        columns.append(_of_rankings(judgments, [judgments.item]))
    elif isinstance(judgments, Preferences):
        columns += [np.minimum(judgments.left, judgments.right), np.maximum(judgments.left, judgments.right)]
    else:
        columns.append(judgments.item)
    number = row_numbers(columns)
    # of many answers rows with the same content are counted and the count makes their number, so that any two are
    # drawn together as often, whether equal or not
    buckets = min(1 << len(number).bit_length(), _MOST_BUCKETS) - 1
    bucket = (number & np.uint64(buckets)).view(np.int64)
    many = np.flatnonzero((np.bincount(bucket) > _MOST_ANSWERS)[bucket])
    if len(many):
        own = row_numbers_of(judgments)[many]
        number[many] = row_numbers([own.view(np.int64), count_before(own)])
    number >>= np.uint64(1)
    if not judgments.n_annotators:
        return _draw_rows(number, _chances(np.zeros(1), np.full(1, len(judgments)), share))
    sizes = np.bincount(judgments.annotator, minlength=judgments.n_annotators).astype(np.float64)
    # the judgments of an annotator have the same chance
    return _draw_rows(number, _chances(1.0 / np.maximum(n_judgments, 1.0), sizes, share), judgments.annotator)


def _drawn_queries(judgments: Judgments, n_judgments: Floats, share: float) -> Bools:
    """Which queries are drawn."""
    query = judgments.query
    rarity = np.zeros(judgments.n_queries)
    if judgments.n_annotators:
        np.maximum.at(rarity, query, 1.0 / np.maximum(n_judgments[judgments.annotator], 1.0))
    sizes = np.bincount(query, minlength=judgments.n_queries).astype(np.float64)
    # parts are made by the same hashes, so these are mixed once more
    number = row_numbers([stable_hashes(judgments.items.queries.ids).view(np.int64)]) >> np.uint64(1)
    return _draw_rows(number, _chances(rarity, sizes, share))


def _chances(rarity: Floats, sizes: Floats, share: float) -> Floats:
    """Chance that each unit of so many rows is drawn; ``rarity`` is one over the judgments of its rarest annotator."""
    least, most = _LEAST_OF_EACH, _MOST_SHARES * share * sizes.sum()
    while True:
        chance: Floats = np.clip(least * rarity, share, 1.0)
        if chance @ sizes <= most or least <= 1e-3:
            return chance
        least /= 2.0


def _draw_rows(number: NDArray[np.uint64], chance: Floats, whose: Ints | None = None) -> Bools:
    """Which units are drawn, their numbers being random ones below 2 ** 63; ``whose`` says which chance is theirs."""
    bound = (chance * 2.0**63).astype(np.uint64)
    return number < (bound if whose is None else bound[whose])


def keep_queries(judgments: Judgments, keep: Bools) -> Judgments:
    """Return the judgments of some queries, with their items only; annotators stay."""
    items = judgments.items
    kept = keep[items.query]
    code, query = (np.cumsum(mask, dtype=np.int32) - np.int32(1) for mask in (kept, keep))
    placed = Items(Index(items.queries.ids.filter(keep)), query[items.query[kept]], items.ids.filter(kept))
    return judgments.select(np.flatnonzero(keep[judgments.query])).recode(placed, code)


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
        return row_numbers([*columns, _of_rankings(part, [part.item, part.rank])])
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


def _of_rankings(rankings: Rankings, columns: list[Any]) -> NDArray[np.uint64]:
    """A number for each ranking from columns of its rows, which may stand in any order."""
    own = row_numbers(columns)
    return np.add.reduceat(np.append(own, np.uint64(0)), rankings.offsets[:-1]) if len(rankings) else own


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
    return hash_texts(data, texts.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy())


def row_numbers(columns: list[Any]) -> NDArray[np.uint64]:
    """Return a number for each row, from all its columns (SplitMix64)."""
    state = np.zeros(len(columns[0]), np.uint64)
    for array in map(np.asarray, columns):
        # 0.0 and -0.0 are one number
        bits = (array + 0.0).view(np.uint64) if array.dtype == np.float64 else array
        if len(state) >= LONG:
            from ..kernels.numbering import mix_column

            mix_column(state, bits)
            continue
        state = (state ^ bits.astype(np.int64).view(np.uint64)) + _STEP
        state = (state ^ (state >> np.uint64(30))) * _FIRST
        state = (state ^ (state >> np.uint64(27))) * _SECOND
        state ^= state >> np.uint64(31)
    return state
