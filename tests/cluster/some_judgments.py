"""Judgments of every kind drawn from a model, and what tests of fits over parts compare."""

import warnings

import numpy as np

import crowdrank as cr
from crowdrank.cluster.results import assemble


def some_grades(n=900, seed=0, n_levels=4):
    rng = np.random.default_rng(seed)
    query, item, annotator = np.unravel_index(rng.permutation(1200)[:n], (20, 5, 12))
    truth = rng.integers(0, n_levels, (20, 5))[query, item]
    grade = np.where(rng.random(n) < 0.3 + 0.05 * annotator, truth, rng.integers(0, n_levels, n))
    table = {"query": query, "item": item, "annotator": annotator, "grade": grade}
    return cr.Grades.from_frame(table)


def some_preferences(n=1200, n_queries=20, seed=0, ties=0.0):
    rng = np.random.default_rng(seed)
    query, left = rng.integers(0, n_queries, n), rng.integers(0, 6, n)
    right, annotator = (left + 1 + rng.integers(0, 5, n)) % 6, rng.integers(0, 12, n)
    score = rng.normal(size=(n_queries, 6))
    chance = 1 / (1 + np.exp(score[query, right] - score[query, left]))
    reports = rng.random(n) < np.linspace(0.3, 1, 12)[annotator]
    winner = np.where((rng.random(n) < chance) == reports, "left", "right")
    winner = np.where(rng.random(n) < ties, "tie", winner)
    table = {"query": query, "left": left, "right": right, "annotator": annotator, "winner": winner}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cr.Preferences.from_frame(table)


def some_rankings(n_queries=12, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for query in range(n_queries):
        scores = rng.normal(size=6)
        for annotator in range(8):
            order = np.argsort(-(scores + rng.gumbel(size=6) * (0.5 + 0.2 * annotator)))
            rows += [(annotator, query, int(item), rank) for rank, item in enumerate(order[:5], 1)]
    return cr.Rankings.from_rows(rows)


def fitted(method, cut, executor, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return assemble(method, cut, executor.run(method.over_blocks(cut, **given), cut))


def plainly(method, judgments, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.fit(judgments, **given)


def assert_same_bits(one, other):
    for name in ("scores", "std_error", "grade", "probabilities"):
        first, second = getattr(one, name), getattr(other, name)
        assert (first is None) == (second is None)
        assert first is None or (first == second).all()
    assert one.trace == other.trace
    assert one.estimates == other.estimates
    if one.learned is not None:
        for name, values in one.learned[1].items():
            assert (values == other.learned[1][name]).all()
