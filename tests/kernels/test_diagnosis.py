"""Kernels of the diagnostics against their slow twins."""

import numpy as np
import pytest
from tests.oracles import diagnosis as slow

from crowdrank.kernels import threads
from crowdrank.kernels.pairs import count_outcomes
from crowdrank.review.dependence import Events, Expected, Panel, Sums, add_up


def test_outcomes_are_counted_alike_in_threads(monkeypatch):
    rng = np.random.default_rng(0)
    annotator, outcome = rng.integers(0, 7, 5000).astype(np.int32), rng.integers(-1, 2, 5000).astype(np.int8)
    expected = np.zeros((7, 3), np.int64)
    np.add.at(expected, (annotator, outcome + 1), 1)
    np.testing.assert_array_equal(count_outcomes(annotator, outcome, 7), expected)
    monkeypatch.setattr("crowdrank.kernels.pairs._OUTCOMES_PER_THREAD", 100)
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: 4 if smallest <= 100 else 1)
    np.testing.assert_array_equal(count_outcomes(annotator, outcome, 7), expected)


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_sums_of_pairs(n_classes, few):
    rng = np.random.default_rng(n_classes)
    n_annotators, n_things = 5, 30
    thing = np.repeat(np.arange(n_things), n_annotators)
    who = np.tile(np.arange(n_annotators), n_things)
    code = rng.integers(0, n_classes, len(who))
    # annotators 0 and 1 are of one family
    cell = np.unique(thing * n_annotators + np.maximum(who, 1), return_inverse=True)[1]
    wrong = rng.random(len(who)) < 0.3
    confusion = rng.dirichlet(np.ones(n_classes), (n_annotators, n_classes))
    parts = rng.normal(size=(cell.max() + 1, n_classes))
    whole = rng.normal(size=(n_things, n_classes)) * 3
    pairs = [(0, 1), (0, 2), (3, 4)]
    first = np.concatenate([np.flatnonzero(who == a) for a, _ in pairs])
    second = np.concatenate([np.flatnonzero(who == b) for _, b in pairs])
    events = Events(*(x.astype(np.int32) for x in (first, second, np.repeat(np.arange(len(pairs)), n_things))))
    rows = {"thing": thing.astype(np.int32), "annotator": who.astype(np.int32), "code": code.astype(np.int32)}
    sizes = {"n_things": n_things, "n_annotators": n_annotators, "n_classes": n_classes, "mirrored": False}
    expected = Expected(confusion, whole, parts, cell.astype(np.int32))
    found = add_up(events, Panel(**rows, **sizes, wrong=wrong), expected, len(pairs), few=few)
    listed = list(zip(thing, who, code, cell, wrong, strict=True))
    for number, (one, other) in enumerate(pairs):
        expected = slow.pair_sums(listed, confusion, whole, parts, one, other)
        np.testing.assert_allclose([column[number] for column in found], expected, rtol=1e-10, atol=1e-12)
    assert Sums._fields[2] == "excess"
