"""What schemes cost: by hand, by formula against every order, and on simulated graders."""

from itertools import permutations

import numpy as np
import pytest

import crowdrank as cr
from crowdrank import api, simulate
from crowdrank.errors import JudgmentError, ParameterError, UnknownNameError

SCHEMES = ["single", "if-good-2", "if-good-3", "3-overlap", "good_till_bad", "good-till-bad-2"]


def test_by_hand():
    # one item always good, one never: half of the first grades are good
    votes = {"item": list("xxxyyy"), "grade": [3, 2, 4, 0, 1, 0]}
    table = {row["scheme"]: row for row in api.scheme_costs(votes, SCHEMES).iter_rows(named=True)}
    labelling = {"single": 1, "if-good-2": 1.5, "if-good-3": 2, "3-overlap": 3, "good_till_bad": 2}
    ratio = {"single": 1, "if-good-2": 1 / 2, "if-good-3": 1 / 3, "3-overlap": 1, "good_till_bad": 1 / 3}
    for name, cost in labelling.items():
        for column in ("labelling", "labelling_exact", "training", "training_exact"):
            assert table[name][column] == pytest.approx(cost)
        for column in ("ratio", "ratio_exact"):
            assert table[name][column] == pytest.approx(ratio[name])


def test_formulas_equal_the_mean_over_every_order():
    items = [[3, 0, 2, 2], [0, 1, 4], [2, 2], [1], [4, 4, 4, 4]]
    rows = [("a", "q", f"i{n}", grade) for n, grades in enumerate(items) for grade in grades]
    with pytest.warns(cr.errors.DataWarning, match="repeat one by the same annotator"):
        grades = cr.Grades.from_rows(rows)
    table = api.scheme_costs(grades, SCHEMES)
    lengths = {
        "single": lambda order: 1,
        "if-good-2": lambda order: min(2, len(order)) if order[0] >= 2 else 1,
        "if-good-3": lambda order: min(3, len(order)) if order[0] >= 2 else 1,
        "3-overlap": lambda order: min(3, len(order)),
        "good_till_bad": lambda order: next((n + 1 for n, grade in enumerate(order) if grade < 2), len(order)),
        "good-till-bad-2": lambda order: min(2, len(order)) if order[0] >= 2 else 1,
    }
    for row in table.iter_rows(named=True):
        length = lengths[row["scheme"]]
        orders = [[order[: length(order)] for order in permutations(grades)] for grades in items]
        cost = np.mean([np.mean([len(order) for order in all_orders]) for all_orders in orders])
        good = np.mean([np.mean([sum(g >= 2 for g in order) for order in all_orders]) for all_orders in orders])
        assert row["labelling_exact"] == pytest.approx(cost)
        assert row["ratio_exact"] == pytest.approx((cost - good) / good)


def test_costs_of_the_simulated_graders():
    tables = []
    for seed in range(6):
        truth = simulate.draw_truth(150, seed=seed)
        pool = simulate.profile(n_annotators=120, seed=seed)
        grades = simulate.grades(truth, pool, simulate.PerItem(k=11, panel=11), seed=seed).judgments
        tables.append(api.scheme_costs(grades, ["single", "if-good-3", "good_till_bad"], n_draws=3))
    for column in ("labelling", "labelling_exact"):
        cost = np.mean([table[column].to_numpy() for table in tables], axis=0)
        assert cost[1] == pytest.approx(1.48, abs=0.05)
        assert cost[2] == pytest.approx(1.90, abs=0.1)
    ratio = np.mean([table["ratio_exact"].to_numpy() for table in tables], axis=0)
    assert ratio[0] == pytest.approx(3.2, abs=0.3)


def test_nothing_good_has_no_ratio():
    assert api.scheme_costs({"item": ["x", "y"], "grade": [0, 1]}, ["single"])["ratio"].to_list() == [None]


def test_mistakes():
    votes = {"item": ["x"], "grade": [1]}
    with pytest.raises(ParameterError, match="the cost of pilot has no formula; name schemes such as single"):
        api.scheme_costs(votes, ["pilot"])
    with pytest.raises(UnknownNameError, match="did you mean 'if-good-3'"):
        api.scheme_costs(votes, ["if-god-3"])
    with pytest.raises(JudgmentError, match="scheme costs are counted on grades, not on preferences"):
        api.scheme_costs({"left": ["x"], "right": ["y"], "winner": ["left"]})


@pytest.mark.parametrize(("model", "least", "most"), [("profile", 0.7, 1.1), ("false_good", 0.8, 1.4)])
def test_what_is_expected_to_change_is_about_right(model, least, most):
    truth = simulate.draw_truth(200, seed=3)
    pool = simulate.profile(n_annotators=120, seed=3) if model == "profile" else simulate.false_good(n_annotators=120)
    drawn = simulate.grades(truth, pool, simulate.PerItem(k=3, panel=11), seed=3).judgments
    number = np.arange(len(drawn)) % 3
    first = drawn.select(number == 0)
    good = first.at_least(2)[drawn.item]
    asked = drawn.select((number == 0) | good)
    gain = 2.0**truth.truth.grade - 1

    def error(grades):
        return float(((cr.aggregators.MeanGain().fit(grades).scores - gain) ** 2).sum())

    found = api.requests(first, "if-good-3")
    assert found.n_judgments == len(asked) - len(first)
    assert found.before == pytest.approx(error(first), rel=0.25)
    assert least < (error(first) - error(asked)) / found.expected_gain < most
