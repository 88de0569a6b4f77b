"""Which of several equally probable levels an item gets."""

import numpy as np
import pytest

from crowdrank.data.judgments import Grades
from crowdrank.errors import DataWarning
from crowdrank.models.classes.glad import GLAD
from crowdrank.models.classes.naive_bayes import NaiveBayes


def undecided_rows(n_items=400, n_annotators=40, seed=1):
    """Two grades per item, right or wrong by chance; given one accuracy for all, every second item is a tie."""
    rng = np.random.default_rng(seed)
    return [
        (f"a{who:02d}", "q", f"i{item:03d}", int(rng.integers(2)))
        for item in range(n_items)
        for who in rng.permutation(n_annotators)[:2]
    ]


def tied_levels(rows, rename=str, **options):
    """Level drawn for each tied item, under its old name, when all annotators are equally accurate."""
    new = [(rename(who), query, rename(item), grade) for who, query, item, grade in rows]
    accuracies = {who: 0.7 for who, *_ in new}
    consensus = NaiveBayes(**options).fit(Grades.from_rows(new), accuracies=accuracies)
    levels = dict(zip(consensus.items.ids, consensus.grade.tolist(), strict=True))
    tied = np.isclose(consensus.probabilities[:, 0], 0.5)
    tied_ids = set(np.array(consensus.items.ids)[tied].tolist())
    return {item: levels[rename(item)] for _, _, item, _ in rows if rename(item) in tied_ids}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ties_are_shared_out_over_the_levels(seed):
    drawn = list(tied_levels(undecided_rows(), seed=seed).values())
    assert len(drawn) > 150
    assert np.mean(drawn) == pytest.approx(0.5, abs=0.12)


def test_neither_names_nor_the_order_of_rows_change_a_draw():
    rows = undecided_rows()
    drawn = tied_levels(rows)
    assert drawn == tied_levels(rows[::-1])
    assert drawn == tied_levels(rows, rename=lambda name: name[::-1])
    assert drawn != tied_levels(rows, seed=1)


def test_items_that_are_alike_share_a_draw():
    rows = [(who, "q", f"i{item}", grade) for item in range(9) for who, grade in (("ann", 0), ("bob", 1))]
    assert len(set(GLAD().fit(Grades.from_rows(rows)).grade.tolist())) == 1


def test_a_grade_that_stands_twice_changes_no_draw():
    rows = undecided_rows()
    with pytest.warns(DataWarning, match="repeat"):
        twice = tied_levels(rows + rows)
    assert tied_levels(rows) == twice
