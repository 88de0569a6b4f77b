"""Agreement: who is asked about until the consensus is sure, and what one more grade is expected to bring."""

from itertools import product

import numpy as np
import pytest

import crowdrank as cr
from crowdrank import simulate
from crowdrank.data.judgments import Grades
from crowdrank.errors import ParameterError
from crowdrank.schemes import Agreement, IfGoodK, Information, KOverlap, Pilot, Uncertainty
from crowdrank.schemes.class_probabilities import CautiousLevels, confidence_gain, expected_confidence, pooled_confusion
from crowdrank.schemes.situation import Situation


@pytest.fixture(scope="module")
def crowd():
    """Three grades each of 60 items by annotators who are right 80 % of the time, and their consensus."""
    truth = {"item": [f"i{n:02}" for n in range(60)], "grade": [n % 3 for n in range(60)]}
    grades = simulate.simulate(truth, annotators=12, noise="normal(0.8,0.05)", per_item=3, seed=2).judgments
    return grades, cr.aggregate(grades, "dawid_skene")


def test_items_below_the_level_are_asked_about_once_each(crowd):
    grades, consensus = crowd
    requests = Agreement(confidence=0.9).propose(Situation.of(grades, consensus=consensus))
    sure = CautiousLevels.of(Situation.of(grades, consensus=consensus), grades, "agreement").posterior.max(axis=1)
    assert set(requests.things["item"]) == set(np.flatnonzero(sure < 0.9))
    # with three grades of each item that several annotators share, it is nearly what the consensus says
    assert np.mean((sure < 0.9) == (consensus.probabilities.max(axis=1) < 0.9)) > 0.7
    assert requests.n_more.tolist() == [1] * len(requests)
    assert (np.diff(requests.gains) <= 1e-12).all()
    assert requests.frame()["reason"][0].startswith("its most probable grade has a probability of 0.")
    assert "expected to lower the number of items whose grade is wrong" in requests.sentence()


def test_expected_confidence_by_hand():
    # one item at .7 / .3, an annotator right 4 times of 5: given 0 -> .56, given 1 -> .24
    found = expected_confidence(np.array([[0.7, 0.3]]), np.array([[0.8, 0.2], [0.2, 0.8]]))
    assert found.tolist() == pytest.approx([0.56 + 0.24])
    # a coin tells nothing
    assert expected_confidence(np.array([[0.7, 0.3]]), np.full((2, 2), 0.5)).tolist() == pytest.approx([0.7])


def test_the_crowds_own_confusion_is_counted(crowd):
    grades, consensus = crowd
    confusion = pooled_confusion(grades, consensus.probabilities)
    np.testing.assert_allclose(confusion.sum(axis=1), 1)
    assert (np.diag(confusion) > 0.7).all()


def test_what_is_expected_comes_true(crowd):
    # ask again about everything, many times: confidence rises by about as much as was expected
    grades, consensus = crowd
    requests = Agreement(confidence=0.999, k=50).propose(Situation.of(grades, consensus=consensus))
    truth = {"item": grades.items.ids, "grade": [n % 3 for n in range(60)]}
    drawn = simulate.simulate(truth, annotators=12, noise="normal(0.8,0.05)", per_item=4, seed=2).judgments
    right = np.mean(cr.aggregate(drawn, "dawid_skene").grade == np.arange(60) % 3)
    before = np.mean(consensus.grade == np.arange(60) % 3)
    assert requests.expected_gain / 60 == pytest.approx(right - before, abs=0.08)


def test_one_grade_alone_is_as_sure_as_its_annotator():
    rows = [(f"a{n % 4}", "q", f"i{n:02}", n % 3) for n in range(36)]
    grades = Grades.from_rows(rows)
    with pytest.warns(cr.errors.DataWarning, match="no item was graded by two"):
        consensus = cr.aggregate(grades, "dawid_skene")
    for scheme in (Agreement(least=1), Uncertainty()):
        requests = scheme.propose(Situation.of(grades, consensus=consensus))
        assert len(requests) == 36
        sure = requests.detail
        assert ((sure > 0.5) & (sure < 0.85)).all()
        assert (requests.gains > 0).all()
        assert requests.expected_gain < 0.5 * requests.before
        assert "probability of 1.00" not in " ".join(requests.frame()["reason"])


def test_where_one_grade_changes_nothing_two_may():
    posterior, confusion = np.array([[0.78, 0.22]]), np.array([[0.7, 0.3], [0.3, 0.7]])
    assert expected_confidence(posterior, confusion) - 0.78 == pytest.approx(0)
    # both say the other level: .22 * .49 against .78 * .09
    assert confidence_gain(posterior, confusion) == pytest.approx((0.22 * 0.49 - 0.78 * 0.09) / 2)
    # by every outcome of three
    outcomes = [(posterior * confusion[:, given].prod(axis=1)).max() for given in product((0, 1), repeat=3)]
    assert expected_confidence(posterior, confusion, 3) == pytest.approx(sum(outcomes))


@pytest.mark.parametrize("scheme", [Agreement(), Uncertainty(), Information(), IfGoodK(), KOverlap(k=2), Pilot()])
def test_equal_items_are_drawn_by_the_seed(scheme):
    rows = [(f"a{n % 10}", f"q{n // 5:03}", f"i{n}", 2 + n % 2) for n in range(1000)]
    grades = Grades.from_rows(rows)
    with pytest.warns(cr.errors.DataWarning):
        consensus = cr.aggregate(grades, "dawid_skene")
    shuffled = Grades.from_rows([rows[n] for n in np.random.default_rng(0).permutation(1000)])
    with pytest.warns(cr.errors.DataWarning):
        again = cr.aggregate(shuffled, "dawid_skene")
    asked = []
    for seed in (1, 2):
        requests = scheme.propose(Situation.of(grades, consensus=consensus, budget=100, seed=seed))
        query = grades.items.query[requests.things["item"]]
        assert abs(query.mean() - 99.5) < 4 * 200 / np.sqrt(12 * len(query))
        other = scheme.propose(Situation.of(shuffled, consensus=again, budget=100, seed=seed))
        assert requests.frame().drop("expected_gain").equals(other.frame().drop("expected_gain"))
        asked.append(set(requests.things["item"].tolist()))
    assert asked[0] != asked[1]


def test_no_more_than_k(crowd):
    grades, consensus = crowd
    assert len(Agreement(confidence=0.9999, k=3).propose(Situation.of(grades, consensus=consensus))) == 0


def test_classes_without_an_order():
    rows = [(f"a{a}", "q", f"i{n}", "cat" if (n + (a == n % 3)) % 2 else "dog") for n in range(9) for a in range(3)]
    grades = Grades.from_rows(rows, nominal=True)
    consensus = cr.aggregate(grades, "majority_vote")
    assert len(Agreement(confidence=0.9).propose(Situation.of(grades, consensus=consensus))) == 9


def test_a_consensus_of_another_sort(crowd):
    grades, consensus = crowd
    with pytest.raises(ParameterError, match="which mean_grade does not give; use a consensus of a class method"):
        Agreement().propose(Situation.of(grades, consensus=cr.aggregate(grades, "mean_grade")))
    with pytest.raises(ParameterError, match="the consensus is of other items"):
        Agreement().propose(Situation.of(Grades.from_rows([("ann", "q", "x", 1)]), consensus=consensus))
    binned = cr.aggregate(grades, "majority_vote", params={"bins": 2})
    with pytest.raises(ParameterError, match="the consensus has 2 levels and the grades 3"):
        Agreement().propose(Situation.of(grades, consensus=binned))
