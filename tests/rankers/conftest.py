"""Rows for rankers, and the folds of public sets."""

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest

from crowdrank.datasets import load
from crowdrank.rankers.estimator import Ranker


class Rows(NamedTuple):
    """Training rows."""

    X: Any
    y: Any
    qid: Any


@pytest.fixture
def rows():
    """Thirty queries of 3 to 9 items, graded 0 to 3 by a noisy linear score; the last feature is constant."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(30), rng.integers(3, 10, 30))
    X = rng.normal(size=(len(qid), 4)) * [1, 10, 0.1, 1] + rng.normal(size=(30, 1))[qid]
    X[:, -1] = 5.0
    return Rows(X, np.clip(np.round(X[:, 0] + 0.1 * X[:, 1] + 0.7 * rng.normal(size=len(qid)) + 1), 0, 3), qid)


class Part(NamedTuple):
    """Training, validation and test rows of a fold."""

    train: Rows
    vali: Rows
    test: Rows


@pytest.fixture(scope="session")
def folds(data_folder):
    """What returns the folds of a public set."""

    def of(name):
        data = load(name, folder=data_folder)
        features = data.features
        query = np.array([str(query) for query in features.items.queries])[features.items.query]

        def rows(ids):
            chosen = np.isin(query, ids)
            return Rows(features.matrix[chosen], features.grade[chosen], query[chosen])

        return [Part(rows(fold.train), rows(fold.vali), rows(fold.test)) for fold in data.folds]

    return of


@pytest.fixture
def one_query(monkeypatch):
    """Rows without queries are of one query, for the checks of scikit-learn, which know of none."""
    plain = Ranker.fit

    @functools.wraps(plain)
    def fit(self, X, y=None, **rest):
        n_rows = X.shape[0] if hasattr(X, "shape") and X.shape else len(np.atleast_1d(np.asarray(X, object)))
        return plain(self, X, y, **{"qid": np.zeros(n_rows), **rest})

    monkeypatch.setattr(Ranker, "fit", fit)
