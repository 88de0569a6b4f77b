"""Preferences of known truth, made from codes, for tests of methods on pairs."""

import warnings

import numpy as np
import polars as pl

from crowdrank.data.index import Index, Items
from crowdrank.data.judgments import Preferences
from crowdrank.errors import DataWarning


def preferences_of(n_items, left, right, outcome=None, annotator=None, query=None, weight=None):
    """Preferences between items 0, 1, ..., the left one preferred where no outcome is given."""
    query = np.zeros(n_items, np.int32) if query is None else np.asarray(query, np.int32)
    queries = Index(pl.Series("id", [f"q{k:03d}" for k in range(int(query.max(initial=0)) + 1)]))
    annotators, who = Index.empty(), np.empty(0, np.int32)
    if annotator is not None:
        who = np.asarray(annotator, np.int32)
        annotators = Index(pl.Series("id", [f"a{k:03d}" for k in range(int(who.max(initial=-1)) + 1)]))
    left, right = np.asarray(left, np.int32), np.asarray(right, np.int32)
    return Preferences(
        items=Items(queries, query, pl.Series("item", [f"i{k:06d}" for k in range(n_items)])), annotators=annotators,
        left=left, right=right, annotator=who, weight=weight,
        outcome=np.ones(len(left), np.int8) if outcome is None else np.asarray(outcome, np.int8),
    )  # fmt: skip


def simulated(n_items, n_rows, *, seed=0, ties=0.1, qualities=None):
    """Preferences by the Bradley-Terry model, and the true scores; annotator k is honest with chance qualities[k]."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, n_items)
    left = rng.integers(0, n_items, n_rows)
    right = (left + rng.integers(1, n_items, n_rows)) % n_items
    outcome = np.where(rng.random(n_rows) < 1 / (1 + np.exp(scores[right] - scores[left])), 1, -1)
    outcome[rng.random(n_rows) < ties] = 0
    annotator = None
    if qualities is not None:
        annotator = rng.integers(0, len(qualities), n_rows)
        outcome = np.where(rng.random(n_rows) < np.asarray(qualities)[annotator], outcome, -outcome)
    return preferences_of(n_items, left, right, outcome, annotator), scores


def quiet(method, preferences, **more):
    """Fit without the warnings about tiny data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return method.fit(preferences, **more)
