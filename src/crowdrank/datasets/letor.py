"""LETOR collections: graded features in five folds, and the aggregation sets whose columns are ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..data.features import Features
from ..data.index import Index
from ..data.judgments import Rankings
from ..data.truth import Truth
from ..io.letor import read_letor
from ..protocols import AnyFloats
from .dataset import Dataset, Fold
from .store import Store

SPLITS = ("train", "test")


def load_graded(store: Store) -> Dataset:
    """Items with features and grades; the grades are also the truth."""
    parts = _partitions(store)
    features = _join_parts(list(parts.values()))
    return store.dataset(features=features, truth=_truth(features), folds=_folds(store, parts))


def aggregation(store: Store) -> Dataset:
    """Rankings by the input rankers of an aggregation set, one annotator each; an item not listed is not judged."""
    parts = _partitions(store)
    ranks = _join_parts(list(parts.values()))
    return store.dataset(judgments=_rankings(ranks), truth=_truth(ranks), folds=_folds(store, parts))


def _rankings(ranks: Features) -> Rankings:
    """The columns of a matrix of ranks as rankings, straight from codes: a million rows need no ids looked up again."""
    item, ranker = np.nonzero(~np.isnan(ranks.matrix))
    rank = ranks.matrix[item, ranker].astype(np.int64)
    ranking = ranks.items.query[item].astype(np.int64) * ranks.matrix.shape[1] + ranker
    order = np.argsort(ranking * (rank.max() + 1) + rank, kind="stable")
    item, ranker, rank, ranking = item[order], ranker[order], rank[order], ranking[order]
    first = np.concatenate([[True], np.diff(ranking) != 0])
    starts = np.flatnonzero(first)
    offsets = np.append(starts, len(item))
    climbed = np.cumsum(first | np.concatenate([[True], np.diff(rank) != 0]))
    dense = climbed - np.repeat(climbed[starts], np.diff(offsets)) + 1
    names = pl.Series([f"ranker{number:02d}" for number in range(1, ranks.matrix.shape[1] + 1)])
    return Rankings(
        items=ranks.items,
        annotators=Index.of(names),
        item=item.astype(np.int32),
        rank=dense.astype(np.int32),
        offsets=offsets,
        annotator=ranker[starts].astype(np.int32),
    )


def sample(store: Store) -> Dataset:
    """The sample of LightGBM; its queries have no ids and are numbered within train and test."""
    parts = [read_letor(store.path(f"rank.{split}"), groups=store.path(f"rank.{split}.query")) for split in SPLITS]
    features = _join_parts(parts, prefixes=[f"{split}-" for split in SPLITS])
    queries = [str(query) for query in features.items.queries]
    train, test = (tuple(query for query in queries if query.startswith(split)) for split in SPLITS)
    return store.dataset(features=features, truth=_truth(features), folds=(Fold("source", train, (), test),))


def _partitions(store: Store) -> dict[str, Features]:
    """The five partitions by name."""
    files = [file for file in store.terms.files if file.endswith(".txt")]
    return {file.removesuffix(".txt"): read_letor(store.path(file)) for file in files}


def _join_parts(parts: list[Features], prefixes: list[str] | None = None) -> Features:
    """Several parts as one; a part without the last features has zeros there, as sparse files leave zeros out."""
    width = max(part.matrix.shape[1] for part in parts)
    queries, items, matrices, grades = [], [], [], []
    for number, part in enumerate(parts):
        ids = part.items.frame()
        queries.append((prefixes[number] if prefixes else "") + ids["query"])
        items.append(ids["item"])
        matrices.append(_widen(part.matrix, width))
        grades.append(part.grade if part.grade is not None else np.full(len(part), np.nan))
    names = max((part.names for part in parts), key=len)
    return Features.from_arrays(
        pl.concat(queries), pl.concat(items), np.concatenate(matrices), names=names, grade=np.concatenate(grades)
    )


def _widen(matrix: AnyFloats, width: int) -> AnyFloats:
    """A matrix with zeros for the columns it lacks."""
    return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])))


def _truth(features: Features) -> Truth:
    """The grades that came with the features."""
    return Truth("grade", features.items, features.grade)


def _folds(store: Store, parts: dict[str, Features]) -> tuple[Fold, ...]:
    """The folds as query ids, in the order of the partitions."""
    queries = {name: [str(query) for query in part.items.queries] for name, part in parts.items()}
    table = store.json("folds.json")
    try:
        return tuple(_fold(name, roles, queries) for name, roles in table.items())
    except (KeyError, TypeError, AttributeError) as error:
        store.refuse_damaged("folds.json", f"no partition {error}")


def _fold(name: str, roles: dict[str, Any], queries: dict[str, list[str]]) -> Fold:
    """One fold."""
    train, vali, test = (
        tuple(query for part in roles[role] for query in queries[part]) for role in ("train", "vali", "test")
    )
    return Fold(name, train, vali, test)
