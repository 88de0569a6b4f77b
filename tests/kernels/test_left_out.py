"""Sums over preferences by annotator: equal to plain loops over rows."""

import numpy as np
import pytest

from crowdrank.kernels.pairs import add_likeness


@pytest.mark.parametrize("weighted", [False, True])
def test_likeness_is_that_of_a_plain_loop(weighted):
    rng = np.random.default_rng(0)
    n, n_items, n_annotators = 300, 6, 9
    left = rng.integers(0, n_items, n).astype(np.int32)
    right = ((left + rng.integers(1, n_items, n)) % n_items).astype(np.int32)
    outcome, annotator = rng.integers(-1, 2, n).astype(np.int8), rng.integers(0, n_annotators, n).astype(np.int32)
    weight = rng.random(n) if weighted else np.empty(0)
    like, company = np.zeros(n_annotators), np.zeros(n_annotators)
    add_likeness(left, right, outcome, weight, annotator, n_items, like, company)
    each = weight if weighted else np.ones(n)
    answers = [(left[r], outcome[r], annotator[r], each[r]) for r in range(n)]
    answers += [(right[r], -outcome[r], annotator[r], each[r]) for r in range(n)]
    for who in range(n_annotators):
        wanted = total = 0.0
        for item, mark, by, w in answers:
            if by == who:
                of_item = [(m, v) for i, m, _, v in answers if i == item]
                alike = sum(v for m, v in of_item if m == mark)
                wanted += w * alike / sum(v for _, v in of_item)
                total += w * sum(v for _, v in of_item)
        assert like[who] == pytest.approx(wanted)
        assert company[who] == pytest.approx(total)
