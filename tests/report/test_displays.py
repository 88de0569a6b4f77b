"""Pictures of a trained ranker."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from crowdrank.errors import ParameterError
from crowdrank.rankers import LambdaMART, ListNet
from crowdrank.report import ImportanceDisplay, LearningCurveDisplay, picture_format, save_display
from crowdrank.report.colours import BLUE, ORANGE

mpl.use("agg")

rng = np.random.default_rng(0)
X, qid = rng.normal(size=(60, 30)), np.repeat(np.arange(6), 10)
y = np.clip(np.round(X[:, 0] - X[:, 1]), 0, 3)


@pytest.fixture(scope="module")
def linear():
    return ListNet().fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)


@pytest.fixture
def ax():
    return Figure().subplots()


def test_the_largest_weights_stand_on_top_in_two_colours(linear, ax):
    display = ImportanceDisplay.from_ranker(linear, top=5).plot(ax)
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    bars = ax.patches
    assert [bar.get_width() for bar in bars] == linear.importance()["weight"].head(5).to_list()
    assert [to_hex(bar.get_facecolor()).upper() for bar in bars] == [
        BLUE if bar.get_width() > 0 else ORANGE for bar in bars
    ]
    assert {BLUE, ORANGE} == {to_hex(bar.get_facecolor()).upper() for bar in bars}
    assert ax.yaxis_inverted()
    assert ax.get_ylabel() == "feature (5 of 30)"
    assert ax.get_xlabel() == "weight of the scaled feature"


def test_trees_have_shares(ax):
    display = ImportanceDisplay.from_ranker(LambdaMART(n_trees=3, min_leaf=5).fit(X, y, qid=qid), top=99).plot(ax)
    assert ax.get_xlabel() == "share of the gain of all splits"
    assert ax.get_ylabel() == "feature (30)"
    assert display.table["weight"].sum() == pytest.approx(1)


def test_names_are_shown_as_they_are(ax):
    import polars as pl

    table = pl.DataFrame({"feature": ["$x_1^2", "f" * 99], "weight": [1.0, 0.5]})
    ImportanceDisplay(table, n_features=2).plot(ax)
    ax.figure.savefig("/dev/null", format="png")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["$x_1^2", "f" * 39 + "…"]


def test_a_curve_shows_what_was_measured(linear, ax):
    display = LearningCurveDisplay.from_ranker(linear).plot(ax)
    assert display.measured_sets == ["valid"]
    assert ax.get_lines()[0].get_ydata().tolist() == linear.curve_["valid"].to_list()
    assert display.objective_ax_.get_ylabel() == "objective (lower is better)"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["nDCG, validation queries", "objective"]
    alone = LearningCurveDisplay.from_ranker(ListNet().fit(X, y, qid=qid)).plot(Figure().subplots())
    assert alone.ax_.get_ylabel() == "objective (lower is better)"
    trees = LambdaMART(n_trees=3, min_leaf=5).fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    assert LearningCurveDisplay.from_ranker(trees).plot(Figure().subplots()).ax_.get_xlabel() == "tree"


def test_a_figure_is_made_where_none_is_given(linear):
    import matplotlib.pyplot as plt

    for display in (ImportanceDisplay.from_ranker(linear), LearningCurveDisplay.from_ranker(linear)):
        assert display.plot() is display
        assert display.figure_ is display.ax_.figure
        plt.close(display.figure_)


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.SVG", b"<?xml")])
def test_pictures_are_written(linear, tmp_path, name, start):
    save_display(ImportanceDisplay.from_ranker(linear), tmp_path / name)
    save_display(LearningCurveDisplay.from_ranker(linear), tmp_path / f"curve-{name}")
    assert (tmp_path / name).read_bytes().startswith(start)
    assert picture_format(name) == name[-3:].lower()


def test_what_cannot_be_drawn(linear, tmp_path):
    with pytest.raises(ParameterError, match=r"w\.gif is not the name of a picture; end it in \.png, \.pdf, \.svg"):
        save_display(ImportanceDisplay.from_ranker(linear), tmp_path / "w.gif")
    with pytest.raises(ParameterError, match="top=0 must be at least 1"):
        ImportanceDisplay.from_ranker(linear, top=0)
    with pytest.raises(ParameterError, match="nothing was measured while this ranker learned"):
        LearningCurveDisplay.from_ranker(LambdaMART(n_trees=2).fit(X, y, qid=qid))
    assert list(tmp_path.iterdir()) == []
