"""Boosted trees as plain arrays: rows as LightGBM reads them, and its text read by a parser of our own."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..protocols import Counts, Floats, Ints
from .training_rows import Lists, Matrix

if TYPE_CHECKING:
    from .kernels.trees import TreeArrays

_MAX_LEAVES = 1 << 30
"""The number of a child is twice that of a split, and fits 32 bits."""

_MAX_ABS_SUM = 1e300

_BATCH_ROWS = 4096
"""Rows that LightGBM asks for at a time."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Regression trees whose leaves are added, one tree after the other.

    Splits and leaves of all trees stand one after the other, and are numbered within their tree. A value no larger than
    the threshold of a split goes left.

    Parameters
    ----------
    leaves
        Number of leaves of each tree, which has one split less.
    feature, threshold
        What each split compares.
    bits
        1 where missing values (NaN) go left, plus 2 where 0 does.
    left, right
        Children of each split: a later split of its tree, or ``-1 - leaf``.
    values
        What each leaf adds.
    gain
        What the splits on each feature gained in training.
    category_starts, category_words
        Splits on categories have 4 for their bits, and for a threshold the number of their set: the bits of the words
        from its start on are set for categories that go left.

    Examples
    --------
    >>> one = np.ones(1, np.int32)
    >>> Trees(2 * one, 0 * one, np.array([0.5]), np.array([3], "u1"), -one, -2 * one, np.array([-1.0, 1.0]), np.ones(1))
    Trees(1 trees, 2 leaves, 1 features)
    """

    leaves: Ints
    feature: Ints
    threshold: Floats
    bits: NDArray[np.uint8]
    left: Ints
    right: Ints
    values: Floats
    gain: Floats
    category_starts: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    category_words: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))

    def __post_init__(self) -> None:
        """Refuse arrays that are no trees: the sum over such could read what is not there, or never end."""
        for name, array in self.numbers().items():
            if array.ndim != 1 or array.dtype != _DTYPES[name]:
                raise ValueError(f"trees with {name} of type {array.dtype} in {array.ndim} dimensions")
        if not len(self.leaves) or self.leaves.min() < 1 or self.leaves.sum(dtype=np.int64) > _MAX_LEAVES:
            raise ValueError("no tree, a tree without a leaf, or too many leaves")
        splits, n_splits = self._splits, int(self._splits.sum())
        lengths = dict.fromkeys(("feature", "threshold", "bits", "left", "right"), n_splits)
        for name, length in (lengths | {"values": n_splits + len(self)}).items():
            if len(getattr(self, name)) != length:
                raise ValueError(f"{len(getattr(self, name))} entries of {name} for trees that need {length}")
        own, last = np.arange(n_splits) - np.repeat(self._first_splits, splits), np.repeat(splits, splits)
        for child in (self.left, self.right):
            if not np.where(child < 0, ~child <= last, (child > own) & (child < last)).all():
                raise ValueError("trees with a split whose child is not below it")
        # a tree of n splits has 2 n children; none can be missing where none stands twice
        if len(np.unique(self.arrays.children)) != 2 * n_splits:
            raise ValueError("trees in which two splits share a child")
        if n_splits and not (
            self.feature.min() >= 0 and self.feature.max() < len(self.gain) and self.bits.max() <= CATEGORIES
        ):
            raise ValueError(f"splits on features that are not among the {len(self.gain)} there are")
        number, starts = self.threshold[self.bits == CATEGORIES], self.category_starts
        if not len(starts):
            if len(number) or len(self.category_words):
                raise ValueError("trees with splits on categories, but without categories")
        else:
            whole = starts[0] == 0 and starts[-1] == len(self.category_words) and bool((np.diff(starts) >= 0).all())
            if not whole or not bool(((number >= 0) & (number < len(starts) - 1) & (number == np.floor(number))).all()):
                raise ValueError("trees with splits on categories that are not there")
        highest = np.maximum.reduceat(np.abs(self.values), self._first_leaves)
        for name, sizes in (("values", highest), ("gain", np.abs(self.gain))):
            if not sizes.max(initial=0.0) <= _MAX_ABS_SUM / max(len(sizes), 1):
                raise ValueError(f"trees with {name} that are missing or too large")
        # where only missing values go right, LightGBM's threshold is infinity
        if np.isnan(self.threshold).any() or self.gain.min(initial=0.0) < 0:
            raise ValueError("trees with a missing threshold or a negative gain")

    def __len__(self) -> int:
        return len(self.leaves)

    def __repr__(self) -> str:
        return f"Trees({len(self):,} trees, {len(self.values):,} leaves, {len(self.gain):,} features)"

    @cached_property
    def _splits(self) -> Counts:
        """Number of splits of each tree."""
        return self.leaves.astype(np.int64) - 1

    @cached_property
    def _first_leaves(self) -> Counts:
        """First leaf of each tree."""
        return np.cumsum(self.leaves, dtype=np.int64) - self.leaves

    @cached_property
    def _first_splits(self) -> Counts:
        """First split of each tree."""
        return np.cumsum(self._splits) - self._splits

    @cached_property
    def arrays(self) -> TreeArrays:
        """The trees as the kernel wants them, splits and leaves numbered throughout."""
        from .kernels.trees import TreeArrays

        first_split, first_leaf = (np.repeat(first, self._splits) for first in (self._first_splits, self._first_leaves))
        children = np.stack([self.left, self.right], axis=1).astype(np.int64)
        children += np.where(children < 0, -first_leaf[:, None], first_split[:, None])
        roots = np.where(self._splits > 0, self._first_splits, ~self._first_leaves)
        return TreeArrays(
            self.feature, self.threshold, self.bits, children.ravel().astype(np.int32), roots.astype(np.int32),
            self.values, self.category_starts, self.category_words,
        )  # fmt: skip

    def numbers(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as a file holds them."""
        numbers = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: array for name, array in numbers.items() if len(array) or name not in _OF_CATEGORIES}

    @classmethod
    def of(cls, numbers: Mapping[str, NDArray[Any]]) -> Trees:
        """Return the trees that a file holds, or raise where they are none."""
        names = [one.name for one in fields(cls) if one.name in numbers or one.name not in _OF_CATEGORIES]
        return cls(**{name: numbers[name] for name in names})

    @classmethod
    def from_lightgbm(cls, text: bytes) -> Trees:
        """Return the trees of LightGBM's text, or raise where it is not as we have it written: no categories, ..."""
        head, blocks = _parts_of(text)
        n_features = _whole_number(head, b"max_feature_idx", 1 << 31) + 1
        if head.get(b"feature_infos", b"").count(b" ") + 1 != n_features:
            raise ValueError(f"LightGBM's text does not describe {n_features} features")
        columns = _one_after_the_other([_tree(block) for block in blocks])
        gained = np.maximum(columns.pop("gained"), 0.0)
        if ((columns["feature"] < 0) | (columns["feature"] >= n_features)).any():
            raise ValueError(f"splits on features that are not among the {n_features} there are")
        gain = np.bincount(columns["feature"], gained, n_features).astype(np.float64)
        return cls(**columns, gain=gain)

    @classmethod
    def join(cls, parts: Sequence[Trees]) -> Trees:
        """Return the trees of several, one after the other, all on the same features."""
        if len(parts) == 1:
            return parts[0]
        names = [one.name for one in fields(cls) if one.name != "gain"]
        joined = _one_after_the_other([{name: getattr(part, name) for name in names} for part in parts])
        return cls(**joined, gain=np.sum([part.gain for part in parts], axis=0))

    def sums(self, matrix: Matrix, n_threads: int = 0) -> Floats:
        """Return the sum of the trees for each row, equal to LightGBM's to the last bit; 0 threads for all cores.

        Rows of a sparse matrix give what they give as dense ones. LightGBM has one exception: -1e-35, the largest
        number that it takes for 0, is one in a dense matrix only.
        """
        from .kernels.trees import sum_trees

        if not matrix.sparse:
            return sum_trees(self.arrays, matrix.values, n_threads)
        used, place = np.unique(self.feature, return_inverse=True)
        trees = self.arrays._replace(feature=place.astype(np.int32))
        narrow = matrix if len(used) == matrix.n_features else Matrix(matrix.values[:, used])
        sums = np.empty(matrix.n_rows)
        for begin, end in pairwise(narrow.bounds(matrix.n_rows).tolist()):
            sums[begin:end] = sum_trees(trees, narrow.block(None, begin, end), n_threads)
        return sums


_OF_CATEGORIES = ("category_starts", "category_words")

_DTYPES = {
    "leaves": "<i4", "feature": "<i4", "threshold": "<f8", "bits": "|u1", "left": "<i4", "right": "<i4",
    "values": "<f8", "gain": "<f8", "category_starts": "<i4", "category_words": "<u4",
}  # fmt: skip

_WHOLE, _DECIMAL = re.compile(rb"[-0-9 ]+"), re.compile(rb"[-+.0-9einf ]+")

# the bits of LightGBM's decision_type
_DEFAULT_LEFT, _ZERO_IS_MISSING, _NAN_IS_MISSING = 2, 4, 8
_DECISIONS = (0, 2, 4, 6, 8, 10)
"""Decisions on numbers; odd ones are on categories."""

CATEGORIES = 4
"""Bits of a split on categories."""


def _parts_of(text: bytes) -> tuple[dict[bytes, bytes], list[bytes]]:
    """What LightGBM's text says of the model, and the text of each tree."""
    head, first_tree, rest = text.partition(b"\n\nTree=0\n")
    body, ended, _ = rest.partition(b"\n\n\nend of trees\n")
    if not (head.startswith(b"tree\nversion=v4\n") and first_tree and ended):
        raise ValueError("the trees are not in LightGBM's format")
    facts = _facts(head.removeprefix(b"tree\n"))
    for name, wanted in ((b"num_class", b"1"), (b"num_tree_per_iteration", b"1")):
        if facts.get(name) != wanted:
            raise ValueError(f"the trees have {name.decode()} other than {wanted.decode()}")
    blocks = body.split(b"\n\n\nTree=")
    for number, block in enumerate(blocks[1:], 1):
        label, _, blocks[number] = block.partition(b"\n")
        if label != b"%d" % number:
            raise ValueError(f"tree {number} is not where it should be")
    return facts, blocks


def _facts(text: bytes) -> dict[bytes, bytes]:
    """Names and values, one pair a line and none twice."""
    lines = text.split(b"\n")
    pairs = [line.split(b"=", 1) for line in lines]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("a line of the trees is not a name and a value")
    facts = {pair[0]: pair[1] for pair in pairs}
    if len(facts) != len(lines):
        raise ValueError("a line of the trees appears twice")
    return facts


def _tree(block: bytes) -> dict[str, NDArray[Any]]:
    """Arrays of one tree."""
    facts = _facts(block)
    n_sets = _whole_number(facts, b"num_cat", _MAX_LEAVES)
    if facts.get(b"is_linear", b"0") != b"0" or (n_sets > 0 and b"cat_boundaries" not in facts):
        raise ValueError("trees with categories or linear leaves that this version does not know")
    starts = _list(facts, b"cat_boundaries", _WHOLE, n_sets + 1) if n_sets else np.zeros(0, np.int64)
    words = np.zeros(0, np.uint32)
    if n_sets:
        text = facts.get(b"cat_threshold", b"")
        numbers = [int(part) for part in text.split(b" ")] if re.fullmatch(rb"\d{1,10}( \d{1,10})*", text) else []
        if len(numbers) != int(starts[-1]) or max(numbers, default=0) >= 1 << 32:
            raise ValueError(f"the trees have other cat_threshold than {int(starts[-1])} numbers")
        words = np.array(numbers, np.uint32)
    n_leaves = _whole_number(facts, b"num_leaves", _MAX_LEAVES)
    splits = {name: _list(facts, name, _WHOLE, n_leaves - 1) for name in _SPLIT_NUMBERS}
    decision = splits[b"decision_type"]
    threshold = _list(facts, b"threshold", _DECIMAL, n_leaves - 1)
    by_set = decision % 2 == 1
    if not np.isin(decision[~by_set], _DECISIONS).all() or (by_set.any() and not n_sets):
        raise ValueError("trees with splits on categories that are not there, or of an unknown kind")
    default, zero = decision & _DEFAULT_LEFT > 0, threshold >= 0
    missing = np.where(decision < _ZERO_IS_MISSING, zero, default)
    zero = np.where(decision & _ZERO_IS_MISSING > 0, default, zero)
    return {
        "leaves": np.array([n_leaves], np.int32),
        "feature": splits[b"split_feature"].astype(np.int32),
        "threshold": threshold,
        "bits": np.where(by_set, CATEGORIES, missing + 2 * zero).astype(np.uint8),
        "category_starts": starts.astype(np.int32),
        "category_words": words,
        "left": splits[b"left_child"].astype(np.int32),
        "right": splits[b"right_child"].astype(np.int32),
        "values": _list(facts, b"leaf_value", _DECIMAL, n_leaves),
        "gained": _list(facts, b"split_gain", _DECIMAL, n_leaves - 1),
    }


def _one_after_the_other(trees: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Arrays of trees together; sets of categories are numbered behind those of the trees before."""
    joined = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    if len(joined["category_words"]):
        ends = [tree["category_starts"][1:] for tree in trees]  # trees without categories have no start
        words = np.cumsum([0, *(len(tree["category_words"]) for tree in trees)])
        starts = np.concatenate([[0], *(end + before for end, before in zip(ends, words[:-1], strict=True))])
        sets = np.cumsum([0, *(len(end) for end in ends)])
        first = np.repeat(sets[:-1], [len(tree["threshold"]) for tree in trees])
        joined["category_starts"] = starts.astype(np.int32)
        joined["threshold"] = joined["threshold"] + np.where(joined["bits"] == CATEGORIES, first, 0)
    return joined


_SPLIT_NUMBERS = (b"split_feature", b"decision_type", b"left_child", b"right_child")


def _whole_number(facts: Mapping[bytes, bytes], name: bytes, most: int) -> int:
    """A whole number from 0 up to ``most``."""
    text = facts.get(name, b"")
    if not re.fullmatch(rb"\d{1,10}", text) or int(text) > most:
        raise ValueError(f"the trees have {name.decode()} {text[:20].decode(errors='replace')!r}")
    return int(text)


def _list(facts: Mapping[bytes, bytes], name: bytes, kind: re.Pattern[bytes], length: int) -> NDArray[Any]:
    """Numbers of a line, as many as there have to be."""
    text = facts.get(name, b"")
    dtype = np.int64 if kind is _WHOLE else np.float64
    if length == 0 and not text:
        return np.zeros(0, dtype)
    fits = text.count(b" ") + 1 == length and kind.fullmatch(text) is not None
    numbers: NDArray[Any] = np.zeros(0)
    # numpy warns where something else stands between the numbers
    with warnings.catch_warnings(), contextlib.suppress(ValueError, DeprecationWarning):
        warnings.simplefilter("error", DeprecationWarning)
        numbers = np.fromstring(text.decode(), dtype, sep=" ") if fits else numbers
    if not fits or len(numbers) != length:
        raise ValueError(f"the trees have other {name.decode()} than {length} numbers")
    if dtype == np.int64 and len(numbers) and np.abs(numbers).max() > np.iinfo(np.int32).max:
        raise ValueError(f"the trees have {name.decode()} too large for 32 bits")
    return numbers


def lightgbm_rows(matrix: Matrix, lists: Lists) -> Any:
    """Return the rows of the matrix query after query; in another order they are read in batches, not copied."""
    if lists.rows is None:
        return matrix.values
    if matrix.sparse:
        return matrix.values[lists.rows]
    from lightgbm import Sequence as Stretches

    rows, values = lists.rows, matrix.values

    class RowsByPlace(Stretches):
        """Places as LightGBM asks for them, by number, by stretch or by list."""

        batch_size = _BATCH_ROWS

        def __getitem__(self, places: Any) -> Any:
            return values[rows[places]].astype(np.float64)

        def __len__(self) -> int:
            return len(rows)

    return RowsByPlace()
