"""Rankings of items with features, by annotators of known quality."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank import simulate

SWAPPED = 15


def ltrma_data(n_annotators, seed=0, *, n_items=SWAPPED, n_queries=100, n_test=200):
    """Rankings by swapping annotators of queries whose truth is x1 + 10 x2, almost; features to learn and to test by.

    The grade of an item is the number of items of its query less its true rank, plus 1.
    """
    rng, n = np.random.default_rng(seed), n_queries + n_test
    matrix = rng.random((n, n_items, 2))
    score = matrix @ [1.0, 10.0] + rng.normal(0, 0.005, (n, n_items))
    grade = score.argsort(axis=1).argsort(axis=1) + 1.0
    query, item = np.repeat([f"q{k:04d}" for k in range(n)], n_items), np.tile([f"i{k:02d}" for k in range(n_items)], n)

    def features(part):
        rows = matrix[part].reshape(-1, 2)
        ids = (of.reshape(n, n_items)[part].ravel() for of in (query, item))
        return cr.Features.from_arrays(*ids, rows, names=("near", "wide"), grade=grade[part].ravel())

    train, test = features(slice(n_queries)), features(slice(n_queries, n))
    truth = train.items.frame().with_columns(grade=pl.Series(train.grade))
    pool = simulate.ltrma_swaps(n_annotators=n_annotators)
    return simulate.rankings(truth, pool, simulate.PerQuery(k=n_annotators), seed=seed).judgments, train, test


@pytest.fixture(scope="session")
def swapped():
    """The paper's synthetic rankings by nine annotators."""
    return ltrma_data(9)
