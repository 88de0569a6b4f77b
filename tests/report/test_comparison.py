"""Pictures of a comparison."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

import crowdrank as cr
from crowdrank.errors import ParameterError
from crowdrank.report import ComparisonDisplay, OrdersDisplay, save_display

mpl.use("agg")


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(0)
    truth = np.arange(8)
    rows = [
        (f"w{a}", f"q{q}", f"i{i}", int(truth[i] + rng.integers(-2, 3)))
        for a in range(6)
        for q in range(3)
        for i in truth
    ]
    return cr.compare_methods(cr.Grades.from_rows(rows), ["mean_grade", "borda", "highest_grade", "majority_vote"])


@pytest.fixture
def ax():
    return Figure().subplots()


def test_methods_stand_best_first_with_their_intervals(comparison, ax):
    display = ComparisonDisplay.from_comparison(comparison).plot(ax)
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    assert display.measure.name == "annotator_log_loss"
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == display.table["method"].to_list()
    assert display.table["value"].is_sorted()
    assert "smaller is better" in ax.get_xlabel()
    assert ax.get_xlabel().startswith("log-loss of held-out pairs\n")


def test_a_measure_has_the_methods_it_fits(comparison, ax):
    display = ComparisonDisplay.from_comparison(comparison, measure="grade_log_loss").plot(ax)
    assert display.table["method"].to_list() == ["majority_vote"]
    with pytest.raises(ParameterError, match="no measure 'ndcg'; it has pair_accuracy"):
        ComparisonDisplay.from_comparison(comparison, measure="ndcg")


def test_dots_say_who_is_clearly_worse(ax):
    import polars as pl

    from crowdrank.validation.method_comparison import HELD_OUT

    table = pl.DataFrame(
        {"method": ["a", "b"], "value": [0.9, 0.6], "lower": [0.85, 0.5], "upper": [0.95, 0.7], "best": [True, False],
         "tied": [True, False]}
    )  # fmt: skip
    ComparisonDisplay(table, HELD_OUT[0]).plot(ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["best, or not clearly worse", "clearly worse"]


def test_orders_are_a_matrix(comparison, ax):
    display = OrdersDisplay.from_comparison(comparison).plot(ax)
    assert sorted(display.methods) == sorted(comparison.methods)
    np.testing.assert_allclose(np.diag(display.alike), 1)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("method", "method")
    alone = cr.compare_methods({"item": list("xyxy"), "annotator": list("aabb"), "grade": [1, 2, 1, 2]}, ["borda"])
    with pytest.raises(ParameterError, match="only one method"):
        OrdersDisplay.from_comparison(alone)


@pytest.mark.parametrize("display", [ComparisonDisplay, OrdersDisplay])
def test_pictures_are_written(comparison, display, tmp_path):
    save_display(display.from_comparison(comparison), tmp_path / "p.svg")
    assert "<svg" in (tmp_path / "p.svg").read_text()
