"""Rows with features, targets and queries that a linear ranker can learn from."""

from typing import Any, NamedTuple

import numpy as np
import pytest


class Rows(NamedTuple):
    """Training rows."""

    X: Any
    y: Any
    qid: Any


def make_rows(seed=0, n_queries=12, n_features=4, noise=0.7):
    """Queries of 3 to 9 items, graded 0 to 3 by a noisy linear score; one feature is constant."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 10, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    X = rng.normal(size=(len(qid), n_features)) * [1, 10, 0.1, 1][:n_features] + rng.normal(size=(n_queries, 1))[qid]
    X[:, -1] = 5.0
    strength = X[:, 0] + 0.1 * X[:, 1] + noise * rng.normal(size=len(qid))
    return Rows(X, np.clip(np.round(strength + 1), 0, 3), qid)


@pytest.fixture
def rows():
    """One set of such rows."""
    return make_rows()
