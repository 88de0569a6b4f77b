"""Grades of adversarial annotators exchanged for another: who they are, and what it changes."""

import numpy as np
import pytest

from crowdrank.data.judgments import Grades
from crowdrank.errors import JudgmentError
from crowdrank.models.averages.majority_vote import MajorityVote, Single

ACCURACY = {"ann": 0.9, "bob": 0.8, "cy": 0.7, "dan": 0.6, "eve": 0.05, "fay": 0.1}


@pytest.fixture(scope="module")
def crowd():
    rng, rows = np.random.default_rng(0), []
    for number in range(200):
        for who, right in ACCURACY.items():
            step = 0 if rng.random() < right else rng.integers(1, 3)
            rows.append((who, "q", f"i{number:03d}", int((number + step) % 3)))
    return Grades.from_rows(rows), np.arange(200) % 3


@pytest.mark.parametrize("given", [None, ACCURACY])
@pytest.mark.parametrize("method", [MajorityVote, Single])
def test_exchange_helps_where_accuracies_are_far_below_a_guess(crowd, method, given):
    grades, truth = crowd
    more = {"pick": "random"} if method is Single else {}
    kept, exchanged = method(**more), method(adversaries="exchange", **more)
    before, after = kept.fit(grades).grade, exchanged.fit(grades, accuracies=given).grade
    assert (after == truth).mean() > (before == truth).mean() + 0.03


def test_only_adversaries_are_exchanged_and_rows_may_come_in_any_order(crowd):
    grades, _ = crowd
    good = grades.select(grades.annotators.ids.is_in(["ann", "bob", "cy"]).to_numpy()[grades.annotator])
    method = MajorityVote(adversaries="exchange")
    np.testing.assert_array_equal(method.fit(good).scores, MajorityVote().fit(good).scores)
    mixed = grades.select(np.random.default_rng(1).permutation(len(grades)))
    np.testing.assert_array_equal(method.fit(grades).scores, method.fit(mixed).scores)


def test_what_cannot_be_done_is_said(crowd):
    grades, _ = crowd
    with pytest.raises(JudgmentError, match="adversaries='exchange'"):
        MajorityVote().fit(grades, accuracies=ACCURACY)
    nameless = Grades.from_frame({"item": ["x", "y", "x"], "grade": [1, 0, 1]})
    with pytest.raises(JudgmentError, match="add the annotator column"):
        Single(adversaries="exchange").fit(nameless)
