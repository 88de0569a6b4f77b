"""Classes that are coded as numbers: said where the grades show it, never of grades in an order."""

import numpy as np
import pytest

import crowdrank as cr
from crowdrank import datasets
from crowdrank.data.judgments import Grades
from crowdrank.review.crowd_agreement import looks_unordered


def crowd(kind, seed, n_items=600, n_levels=10, each=5, right=0.75):
    """Grades by 20 annotators: classes with mistakes at random, or an order with logistic noise and some guesses."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(n_items), each)
    truth, guess = rng.integers(0, n_levels, n_items), rng.integers(0, n_levels, len(item))
    if kind == "classes":
        grade = np.where(rng.random(len(item)) < right, truth[item], guess)
    else:
        seen = truth[item] + 0.7 * rng.logistic(size=len(item))
        grade = np.where(rng.random(len(item)) < 0.8, np.clip(np.round(seen), 0, n_levels - 1), guess)
    who = np.concatenate([rng.choice(20, each, replace=False) for _ in range(n_items)])
    return Grades.from_frame({
        "annotator": [f"a{code:02d}" for code in who], "item": [f"i{code:03d}" for code in item],
        "grade": grade.astype(int),
    })  # fmt: skip


def test_classes_coded_as_numbers_are_seen():
    assert sum(looks_unordered(crowd("classes", seed)) is not None for seed in range(10)) >= 8


@pytest.mark.parametrize("n_levels", [4, 5, 10])
def test_grades_in_an_order_are_left_alone(n_levels):
    assert not any(looks_unordered(crowd("order", seed, n_levels=n_levels)) for seed in range(20))


def test_guesses_and_few_grades_tell_nothing():
    assert looks_unordered(crowd("classes", 0, right=0.0)) is None
    assert looks_unordered(crowd("classes", 0, n_items=10)) is None
    assert looks_unordered(crowd("classes", 0, n_levels=3)) is None


def test_auto_says_that_it_uses_an_order_which_the_grades_do_not_show(monkeypatch):
    said = []
    monkeypatch.setattr("crowdrank.api.aggregation.say", said.append)
    cr.aggregate(crowd("classes", 1, n_items=400))
    assert any("look like classes without an order" in line and "nominal=True" in line for line in said)
    said.clear()
    cr.aggregate(crowd("order", 1, n_items=400))
    assert not any("classes" in line for line in said)


@pytest.mark.parametrize(
    "name", ["web-search-relevance5", "adult-content2", "trec-rf10-labels-full", "peer-grading", "peer-grading/self"]
)
def test_real_grades_in_an_order_are_left_alone(name):
    if not datasets.present(name):
        pytest.skip(f"{name} is not at hand")
    grades = datasets.load(name).judgments
    assert looks_unordered(grades) is None
    rng = np.random.default_rng(0)
    # parts of the items as well, of which chance could make more
    for size in (100, 300, 1000):
        for _ in range(5):
            chosen = np.isin(grades.item, rng.permutation(grades.n_items)[:size])
            assert looks_unordered(grades.select(chosen)) is None
