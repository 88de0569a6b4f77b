"""Where grades are many, a fit of confusion matrices begins on a sample of the items, and ends where it would."""

import numpy as np
from tests.cluster.cut_judgments import CutJudgments
from tests.cluster.some_judgments import fitted

from crowdrank.aggregators import DawidSkene
from crowdrank.cluster.executor import InMemory
from crowdrank.data.judgments import Grades
from crowdrank.models.classes import coded_grades


def crowd(seed=0, n_items=400, n_annotators=12, n_levels=4, each=5):
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(0, n_levels, n_items), rng.uniform(0.5, 0.95, n_annotators)
    rows = []
    for item in range(n_items):
        for who in rng.choice(n_annotators, each, replace=False):
            right = rng.random() < skill[who]
            grade = truth[item] if right else rng.integers(0, n_levels)
            rows.append((f"w{who}", f"q{item % 20}", f"i{item}", int(grade)))
    return Grades.from_rows(rows)


def test_it_ends_where_a_fit_without_a_sample_does(monkeypatch):
    grades = crowd()
    plain = DawidSkene().fit(grades)
    monkeypatch.setattr(coded_grades, "START_CELLS", 1500)
    begun = DawidSkene().fit(grades)
    assert begun.trace.n_iter < plain.trace.n_iter
    # rounds end where the weights of the prior change by less than a fiftieth
    assert np.abs(begun.probabilities - plain.probabilities).mean() < 0.003
    assert np.mean(begun.grade == plain.grade) > 0.99


def test_parts_begin_with_the_same_sample(monkeypatch):
    monkeypatch.setattr(coded_grades, "START_CELLS", 1500)
    grades = crowd(1)
    plain, found = DawidSkene().fit(grades), fitted(DawidSkene(), CutJudgments(grades, 4), InMemory())
    np.testing.assert_allclose(found.probabilities, plain.probabilities, rtol=1e-9, atol=1e-9)
    assert found.trace.n_iter == plain.trace.n_iter
