"""Numbers too large, too small or too far apart to compute with: refused in a sentence, and finite results up to it."""

import ast
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.aggregators import MeanGrade
from crowdrank.api.aggregation import methods_for
from crowdrank.data.consensus import Consensus
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.registry import make

pytestmark = pytest.mark.slow

SOURCE = Path(cr.__file__).parent
GRADES = {"item": ["x", "y", "x", "y"], "annotator": ["ann", "ann", "bob", "bob"], "grade": [3.0, 1.0, 2.0, 1.0]}


@pytest.mark.parametrize("large", [1e308, -1e308, 1e20, 1.1e15])
def test_grades_that_are_too_large(large):
    with pytest.raises(JudgmentError, match=r"^the grade is beyond 1e\+15, too large to compute with in row 2 \(item "):
        cr.Grades.from_frame({**GRADES, "grade": [1, large, 2, 1]})
    judged = cr.Grades.from_frame(GRADES)
    with pytest.raises(JudgmentError, match="beyond 1e"):
        replace(judged, grade=np.full(4, large))


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ([1, 1e308, 1, 1], "the weight is beyond 1e+12"),
        ([1, 1e-300, 1, 1], "the weight is below 1e-12"),
        ([1e-3, 1e10, 1, 1], "the weight is less than 1/1e+12 of the largest, 1e+10"),
        ([1, float("inf"), 1, 1], "the weight is NaN or infinite"),
    ],
)
def test_weights_out_of_bounds(weight, said):
    with pytest.raises(JudgmentError) as caught:
        cr.Grades.from_frame({**GRADES, "weight": weight})
    assert str(caught.value).startswith(said)
    assert "row " in str(caught.value)


def test_weights_of_arrays_are_bounded_too():
    judged = cr.Grades.from_frame({**GRADES, "weight": [1e12, 1.0, 1e12, 1.0]})
    with pytest.raises(JudgmentError, match="too far apart"):
        judged.with_weights(np.array([1e-300, 1.0, 1.0, 1.0]))


@pytest.mark.parametrize("time", [[1, 2, 3, float("inf")], [1, 2, 3, 1e30], ["1", "2", "nan", "3"]])
def test_times_are_finite(time):
    with pytest.raises(JudgmentError, match="the time is"):
        cr.Grades.from_frame({**GRADES, "time": time})


def test_levels_are_bounded():
    with pytest.raises(ParameterError, match="a level is beyond"):
        cr.Grades.from_frame(GRADES, levels=["1", "2", "1e999"])


@pytest.mark.parametrize("largest", [1e308, 1e20])
def test_ranks_are_bounded(largest):
    with pytest.raises(JudgmentError, match="the rank is beyond"):
        cr.Rankings.from_frame({"item": ["x", "y"], "rank": [1, largest]})


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("mean_grade", {"alpha": "1e999"}, "alpha=inf is not finite"),
        ("mean_grade", {"alpha": "1e300"}, "alpha=1e+300 cannot be computed with"),
        ("mean_grade", {"alpha": float("nan")}, "alpha"),
        ("mean_grade", {"alpha": "-" * 9000}, "is not of the right type; it takes a number"),
        ("mean_grade", {"alpha": "(" * 900}, "is not of the right type; it takes a number"),
        ("dawid_skene", {"max_iter": str(10**30)}, "is too large"),
        ("dawid_skene", {"tol": "1e-320"}, "cannot be computed with"),
        ("majority_vote", {"seed": "-1"}, "seed=-1 must be a whole number from 0"),
        ("crowd_agg", {"prior": "(1e999, 2)"}, "prior"),
    ],
)
def test_parameters_out_of_bounds(method, params, said):
    with pytest.raises(ParameterError) as caught:
        make("aggregator", method, params)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_method_made_by_hand_is_checked_before_its_fit():
    with pytest.raises(ParameterError, match="alpha=inf is not finite"):
        cr.aggregate(GRADES, MeanGrade(alpha=float("inf")))
    with pytest.raises(ParameterError, match="is not of the right type; it takes a number"):
        cr.aggregate(GRADES, MeanGrade(alpha=True))
    assert cr.aggregate(GRADES, MeanGrade(alpha=np.float64(2))).order() == ["x", "y"]


def test_bins_are_bounded():
    with pytest.raises(ParameterError, match="bins=1000000000 must lie between 2 and 1000"):
        cr.aggregate(GRADES, "dawid_skene", params={"bins": 10**9})


@pytest.mark.parametrize("name", ["scores", "probabilities", "confidence", "replicates"])
def test_no_result_with_nan_leaves(name):
    items = cr.Grades.from_frame(GRADES).items
    fine = {"scores": np.zeros(2), "probabilities": np.full((2, 2), 0.5), "confidence": np.ones(2)}
    fine["replicates"] = np.zeros((3, 2), np.float32)
    fine[name] = np.full_like(fine[name], np.nan)
    with pytest.raises(JudgmentError, match=f"^mean_grade found {name} that are not finite numbers"):
        Consensus(items=items, method="mean_grade", **fine)


@pytest.mark.parametrize(
    "part",
    [
        {"probabilities": np.full((2, 3), 1 / 3)},
        {"probabilities": np.full(2, 0.5)},
        {"std_error": np.ones(3)},
        {"replicates": np.zeros((2, 3), np.float32)},
        {"grade": np.array([0, 2], np.int32)},
    ],
)
def test_parts_of_a_result_fit_each_other(part):
    items = cr.Grades.from_frame(GRADES).items
    with pytest.raises(JudgmentError, match="of the consensus"):
        Consensus(items=items, method="mace", scores=np.zeros(2), levels=("bad", "good"), **part)


def extremes(kind):
    """Judgments at the bounds of what is read."""
    rng = np.random.default_rng(5)
    n = 40
    one = rng.integers(0, 6, n)
    other = (one + rng.integers(1, 6, n)) % 6
    who = [f"w{code}" for code in rng.integers(0, 5, n)]
    for weights in ([1e-12, 1.0], [1e12, 1.0], [1e-6, 1e6], [1e12], [1e-12]):
        columns = {"annotator": who, "weight": rng.choice(weights, n)}
        if kind == "grade":
            yield cr.Grades.from_frame({"item": one, "grade": rng.integers(0, 3, n), **columns})
        else:
            winner = rng.choice(["left", "right", "tie"], n)
            judged = cr.Preferences.from_frame({"left": one, "right": other, "winner": winner, **columns})
            yield judged if kind == "preference" else judged.as_rankings()
    if kind == "grade":
        for values in ([1e15, -1e15, 0.0], [1e15, 1e15 - 1], [0.0, 5e-324], [1e15, 1e-300]):
            yield cr.Grades.from_frame({"item": one, "grade": rng.choice(values, n), "annotator": who})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["grade", "preference", "ranking"])
def test_every_method_is_finite_up_to_the_bounds(kind):
    for judged in extremes(kind):
        for method in methods_for(judged):
            if method == "mean_gain" and judged.grade.max() > 1000:
                continue  # refused by itself: gains are powers of two
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = cr.aggregate(judged, method)
                tables = found.frame(), found.quality.frame()
            for table in tables:
                for name, dtype in table.schema.items():
                    if dtype.is_float():
                        assert table[name].drop_nulls().is_finite().all(), (method, name, judged)


def test_asserts_are_about_our_own_values():
    """``python -O`` drops them, so that none may stand between bad data and a result."""
    known = {"self.severity in SEVERITIES", "self.about in ABOUT"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assert):
                text = ast.unparse(node.test)
                assert text.endswith(" is not None") or text.startswith("isinstance(") or text in known, (path, text)
