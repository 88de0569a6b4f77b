"""Items read anew from all their grades, with the annotators of a former fit: an E-step alone."""

import numpy as np
import pytest
from tests.models.classes.test_calibration import crowd

import crowdrank as cr
from crowdrank.api import touched_items
from crowdrank.errors import DataWarning
from crowdrank.models.classes.dawid_skene import DawidSkene
from crowdrank.models.classes.glad import GLAD
from crowdrank.models.classes.mace import MACE
from crowdrank.models.classes.naive_bayes import NaiveBayes


def numbered(rows):
    """The same grades as numbers."""
    return [(who, query, item, int(grade[1:])) for who, query, item, grade in rows]


def posterior(shares, confusion, answers):
    """Bayes' rule for one item, (annotator, level) by (annotator, level)."""
    chance = shares.copy()
    for annotator, level in answers:
        chance = chance * confusion[annotator, :, level]
    return chance / chance.sum()


@pytest.mark.parametrize(
    "method", [DawidSkene(prior="none", calibrated=False, tol=1e-9), DawidSkene(), NaiveBayes(), MACE()]
)
@pytest.mark.parametrize("nominal", [False, True])
def test_the_grades_of_the_fit_give_its_own_probabilities(method, nominal):
    rows = crowd(seed=1, n_items=60, per_item=4)[0]
    fitted = method.fit(cr.Grades.from_rows(rows, nominal=True) if nominal else cr.Grades.from_rows(numbered(rows)))
    some = [row for row in rows if row[2] < "i007"]
    grades = cr.Grades.from_rows(some, nominal=True) if nominal else cr.Grades.from_rows(numbered(some))
    found = fitted.reread(grades, np.ones(grades.n_items, bool))[0]
    code = fitted.items.codes(None, grades.items.ids)
    np.testing.assert_allclose(found.probabilities, fitted.probabilities[code], atol=1e-12)
    np.testing.assert_allclose(found.scores, fitted.scores[code], atol=1e-9)


def test_more_grades_move_an_item_by_bayes_rule():
    """By hand: the shares of levels times what the matrices of the fit give for each answer."""
    rows = numbered(crowd(seed=2, n_items=80, per_item=4, right=0.7)[0])
    fitted = DawidSkene(prior="none", calibrated=False, tol=1e-10).fit(cr.Grades.from_rows(rows))
    confusion = fitted.quality.parameters["confusion"]
    names = fitted.quality.annotators.ids.to_list()
    # where nothing is added to the counts, the shares are the means of the probabilities
    shares = fitted.probabilities.mean(axis=0)
    mine = [row for row in rows if row[2] == "i003"]
    other = next(name for name in names if name not in {who for who, *_ in mine})
    for extra in ([], [(other, "q", "i003", 0)], [(other, "q", "i003", 3), ("nobody", "q", "i003", 1)]):
        found = fitted.reread(cr.Grades.from_rows(mine + extra), np.ones(1, bool))[0]
        answers = [(names.index(who), grade) for who, _, _, grade in mine + extra if who in names]
        expected = posterior(shares, confusion, answers)
        np.testing.assert_allclose(found.probabilities[0], expected, atol=1e-7)
        assert found.scores[0] == pytest.approx(expected @ np.arange(4), abs=1e-6)


def test_what_the_fit_does_not_know_is_left_out():
    rows = numbered(crowd(seed=3, n_items=40, per_item=3)[0])
    fitted = NaiveBayes().fit(cr.Grades.from_rows(rows))
    asked = [("nobody", "q", "new", 2), (rows[0][0], "q", "odd", 7), (rows[0][0], "q", "fine", 1)]
    found, read = fitted.reread(cr.Grades.from_rows(asked), np.ones(3, bool))
    known = dict(zip(found.items.ids.to_list(), (found.grade >= 0).tolist(), strict=True))
    assert known == {"new": False, "odd": False, "fine": True}
    assert dict(zip(found.items.ids.to_list(), read.tolist(), strict=True)) == known
    assert [row["item"] for row in touched_items(fitted, cr.Grades.from_rows(asked))] == ["fine"]
    assert touched_items(fitted, cr.Grades.from_rows(asked[:2])) == []


def test_methods_without_such_a_step_say_so():
    rows = numbered(crowd(seed=4, n_items=30, per_item=3)[0])
    grades = cr.Grades.from_rows(rows)
    alone = cr.Grades.from_rows([(who, "q", f"{item} {who}", grade) for who, _, item, grade in rows[:20]])
    with pytest.warns(DataWarning, match="no item was graded by two"):
        kept = DawidSkene().fit(alone)
    known = {"item": ["i000"], "grade": [1]}
    shrunk = cr.aggregate(grades, "mean_grade", params={"alpha": 1.0})
    for fitted in (GLAD().fit(grades), kept, DawidSkene().fit(grades, known=known), shrunk):
        assert fitted.reread is None
        assert touched_items(fitted, grades) is None


@pytest.mark.parametrize("method", ["mean_grade", "mean_gain", "highest_grade"])
def test_averages_follow_from_the_grades_of_an_item(method):
    rows = numbered(crowd(seed=5, n_items=30, per_item=3)[0])
    more = [*rows, ("x", "q", "i001", 3), ("y", "q", "i001", 0)]
    mine = cr.Grades.from_rows([row for row in more if row[2] == "i001"])
    touched = touched_items(cr.aggregate(cr.Grades.from_rows(rows), method), mine)
    whole = cr.aggregate(cr.Grades.from_rows(more), method).frame()
    expected = whole.filter(whole["item"] == "i001")["score"][0]
    assert [(row["item"], row["score"]) for row in touched] == [("i001", pytest.approx(expected))]
