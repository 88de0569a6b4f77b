"""Pictures of results: what they show, at any number of items and annotators, with names of any kind."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from tests.report.crowds import HOSTILE, grades, preferences

import crowdrank as cr
from crowdrank.demo import FILE
from crowdrank.errors import ParameterError
from crowdrank.report import (
    AgreementDisplay,
    BeatsDisplay,
    ConfusionDisplay,
    ConsensusDisplay,
    ConvergenceDisplay,
    PositionBiasDisplay,
    QualityDisplay,
    QueriesDisplay,
    TimeDisplay,
    save_display,
)
from crowdrank.report.displays import MARKS

mpl.use("agg")
pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning", "ignore:Glyph")


@pytest.fixture(scope="module")
def votes():
    return cr.read_judgments(FILE).across_queries()


@pytest.fixture(scope="module")
def consensus(votes):
    return cr.aggregate(votes, "bradley_terry")


@pytest.fixture(scope="module")
def classes():
    return cr.aggregate(grades([f"i{k}" for k in range(24)], list("abcdef")), "dawid_skene")


@pytest.fixture
def ax():
    return Figure().subplots()


def texts(ax):
    """All texts of a picture."""
    return [text.get_text() for text in ax.findobj(mpl.text.Text) if text.get_text()]


def names(ax):
    """The rows of a picture."""
    return [label.get_text() for label in ax.get_yticklabels()]


def everything(votes, consensus, classes):
    """A display of each kind."""
    return [
        ConsensusDisplay.from_consensus(consensus), BeatsDisplay.from_consensus(consensus),
        QualityDisplay.from_consensus(consensus), PositionBiasDisplay.from_consensus(consensus, votes),
        ConfusionDisplay.from_consensus(classes), ConfusionDisplay.from_consensus(classes, annotator="b"),
        AgreementDisplay.from_judgments(votes), TimeDisplay.from_judgments(votes, consensus),
        ConvergenceDisplay.from_consensus(consensus), QueriesDisplay.from_consensus(consensus),
    ]  # fmt: skip


def test_every_display_keeps_the_convention(votes, consensus, classes, tmp_path):
    for number, display in enumerate(everything(votes, consensus, classes)):
        axes = Figure().subplots()
        assert display.plot(axes) is display
        assert (display.ax_, display.figure_) == (axes, axes.figure)
        assert axes.get_xlabel(), type(display)
        assert axes.get_ylabel(), type(display)
        save_display(display, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 2000


def test_a_figure_is_made_where_none_is_given(votes, consensus, classes):
    import matplotlib.pyplot as plt

    for display in everything(votes, consensus, classes):
        assert display.plot().figure_ is display.ax_.figure
        plt.close(display.figure_)


def test_scores_stand_best_first_with_the_ranks_they_may_hold(consensus, ax):
    display = ConsensusDisplay.from_consensus(consensus, level=0.9).plot(ax)
    assert names(ax) == consensus.order()
    assert ax.yaxis_inverted()
    assert ax.get_lines()[0].get_xdata().tolist() == display.table["score"].to_list()
    row = display.table.row(0, named=True)
    assert f"{row['rank']}  ({row['rank_lower']}–{row['rank_upper']})" in texts(ax)
    assert "rank (90 %)" in texts(ax)
    assert ax.get_xlabel() == "score (larger is better), with 90 % interval"


@pytest.mark.parametrize("n", [5, 40, 41, 5000])
def test_any_number_of_items_is_readable(n, ax):
    items = cr.Grades.from_rows([("a", "q", f"i{k}", float(n - k)) for k in range(n)])
    display = ConsensusDisplay.from_consensus(cr.aggregate(items, "mean_grade")).plot(ax)
    shown = names(ax)
    assert len(shown) <= 40
    assert shown[0] == "i0"
    assert shown[-1] == f"i{n - 1}"
    assert (f"… {n - 34:,} items between" in shown) == (n > 40)
    assert display.size[1] < 11
    assert f"({n:,})" in ax.get_ylabel()


def test_what_beats_what(consensus, ax):
    display = BeatsDisplay.from_consensus(consensus).plot(ax)
    first, last = display.ids[0], display.ids[-1]
    assert display.probability[0, -1] == pytest.approx(consensus.beats(first, last))
    assert np.isnan(np.diag(display.probability)).all()
    off = ~np.eye(len(display.ids), dtype=bool)
    assert (display.probability + display.probability.T)[off] == pytest.approx(1.0)
    rows = [(a, "q", f"i{k}", float(-k)) for k in range(300) for a in "ab"]
    many = cr.aggregate(cr.Grades.from_rows(rows), "mean_grade")
    ends = BeatsDisplay.from_consensus(many)
    assert ends.ids == [f"i{k}" for k in (*range(14), *range(294, 300))]
    assert "14 best and 6 last of 300 items" in ends.plot(Figure().subplots()).ax_.get_ylabel()


def test_several_queries_need_a_name(ax):
    both = cr.aggregate(cr.read_judgments(FILE), "bradley_terry")
    with pytest.raises(ParameterError, match="there are 20 queries; name the one to draw with query="):
        ConsensusDisplay.from_consensus(both)
    one = ConsensusDisplay.from_consensus(both, query="plan-a-menu").plot(ax)
    assert names(ax) == both.order("plan-a-menu")
    assert one.table["lower"].to_list() == (
        both.intervals().filter(query="plan-a-menu")["lower"].to_list()
    )  # fmt: skip
    queries = QueriesDisplay.from_consensus(both)
    assert queries.table["probability"].is_sorted()
    assert queries.table.filter(query="plan-a-menu")["item"].to_list() == both.order("plan-a-menu")[:1]
    assert len(names(queries.plot(Figure().subplots()).ax_)) == 20


def test_annotators_are_marked_by_colour_and_shape(consensus, ax):
    display = QualityDisplay.from_consensus(consensus).plot(ax)
    marks = dict(display.table.select("annotator", "mark").rows())
    assert marks["olga"] == "reversed"
    assert {who for who, mark in marks.items() if mark == "guessing"} == {"bruno", "ines", "tariq"}
    assert {"olga", "bruno", "ines", "tariq"} <= set(texts(ax))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "not distinguishable from guessing (3)" in labels
    drawn = {(to_hex(line.get_color()).upper(), line.get_marker()) for line in ax.get_lines()}
    for mark in ("good", "guessing", "reversed"):
        assert MARKS[mark][:2] in drawn
    assert len({shape for _, shape, _ in MARKS.values()} - {"o"}) == len(MARKS) - 2


def test_annotators_who_lean_have_a_ring(ax):
    crowd = [f"a{k}" for k in range(8)]
    judged = preferences([f"i{k}" for k in range(10)], crowd, 800, lean=("a3",))
    consensus = cr.aggregate(judged, "bradley_terry")
    display = QualityDisplay.from_consensus(consensus, judged).plot(ax)
    assert display.table.filter(leans=True)["annotator"].to_list() == ["a3"]
    assert "leans to one side (1)" in [text.get_text() for text in ax.get_legend().get_texts()]
    bias = PositionBiasDisplay.from_consensus(consensus, judged).plot(Figure().subplots())
    assert bias.leaning == ["a3"]
    assert names(bias.ax_)[0] == "a3"


def test_many_annotators_are_readable():
    crowd = [f"a{k}" for k in range(900)]
    judged = preferences([f"i{k}" for k in range(30)], crowd, 9000, guess=crowd[:100])
    consensus = cr.aggregate(judged, "bradley_terry")
    quality = QualityDisplay.from_consensus(consensus).plot(Figure().subplots())
    assert len(quality.table) == 900
    assert len([text for text in texts(quality.ax_) if text in crowd]) <= 15
    bias = PositionBiasDisplay.from_consensus(consensus, judged).plot(Figure().subplots())
    assert "… 860 annotators between" in names(bias.ax_)
    agreement = AgreementDisplay.from_judgments(judged).plot(Figure().subplots())
    assert len(agreement.ids) == 60
    assert agreement.ax_.get_ylabel() == "annotator (60 of 900, those with most judgments)"


def test_agreement_is_the_share_of_equal_answers():
    table = {"a": [1, 0, 1, 1], "b": [1, 0, 1, 0], "c": [0, 1, 0, 0]}
    rows = [(who, "q", f"i{k}", grade) for who, given in table.items() for k, grade in enumerate(given)]
    display = AgreementDisplay.from_judgments(cr.Grades.from_rows(rows))
    mean = (3 + 0 + 1) / 12
    assert display.mean == pytest.approx(mean)
    found = {
        (one, other): display.agreement[i, j]
        for i, one in enumerate(display.ids)
        for j, other in enumerate(display.ids)
    }
    for (one, other), same in {("a", "b"): 3, ("a", "c"): 0, ("b", "c"): 1}.items():
        assert found[one, other] == found[other, one] == pytest.approx((same + 4 * mean) / 8)
    assert np.isnan(found["a", "a"])
    assert abs(display.ids.index("a") - display.ids.index("b")) == 1


def test_confusions_are_those_of_the_method(classes, ax):
    display = ConfusionDisplay.from_consensus(classes, annotator="b").plot(ax)
    code = classes.quality.annotators.code("b")
    assert display.confusion == pytest.approx(classes.quality.parameters["confusion"][code])
    assert ax.get_title() == "b"
    assert ConfusionDisplay.from_consensus(classes).confusion.sum(axis=1) == pytest.approx(1.0)


def test_judgments_over_time(votes, consensus, ax):
    display = TimeDisplay.from_judgments(votes, consensus).plot(ax)
    assert display.has_dates
    assert display.table["n_judgments"].sum() == 1800
    assert display.agreement_ax_.get_ylabel() == "share that agrees with the consensus"
    numbers = cr.Grades.from_frame({"item": list("xyxy"), "grade": [1, 2, 3, 4], "time": [0, 5, 5, 9]})
    plain = TimeDisplay.from_judgments(numbers).plot(Figure().subplots())
    assert not plain.has_dates
    assert plain.agreement_ax_ is None


def test_convergence_is_the_trace(consensus, ax):
    ConvergenceDisplay.from_consensus(consensus).plot(ax)
    assert ax.get_lines()[0].get_ydata().tolist() == list(consensus.trace.log_likelihood)


def test_names_of_any_kind_are_shown_as_they_are(tmp_path):
    judged = preferences(HOSTILE, HOSTILE, 900)
    consensus = cr.aggregate(judged, "bradley_terry")
    for number, display in enumerate(
        [
            ConsensusDisplay.from_consensus(consensus), BeatsDisplay.from_consensus(consensus),
            QualityDisplay.from_consensus(consensus), PositionBiasDisplay.from_consensus(consensus, judged),
            AgreementDisplay.from_judgments(judged),
        ]
    ):  # fmt: skip
        save_display(display, tmp_path / f"{number}.svg")
        text = (tmp_path / f"{number}.svg").read_text()
        assert "<script" not in text
        assert "<img" not in text
        assert "x" * 100 not in text


def test_what_cannot_be_drawn_is_told(classes):
    nobody = cr.aggregate(cr.Grades.from_frame({"item": ["x", "y"], "grade": [1, 2]}), "mean_grade")
    alone = cr.Grades.from_rows([("a", "q", "x", 1), ("a", "q", "y", 2)])
    apart = cr.Grades.from_rows([("a", "q", "x", 1), ("b", "q", "y", 2)])
    single = cr.aggregate(cr.Grades.from_rows([("a", "p", "x", 1), ("a", "q", "x", 2)]), "mean_grade")
    nominal = cr.aggregate(grades(list("wxyz"), list("ab"), words=list("klmn"), nominal=True), "majority_vote")
    for make, match in (
        (lambda: QualityDisplay.from_consensus(nobody), "name no annotators"),
        (lambda: PositionBiasDisplay.from_consensus(classes), "of preferences by named annotators only"),
        (lambda: ConfusionDisplay.from_consensus(nobody), "mean_grade learns no confusions"),
        (lambda: AgreementDisplay.from_judgments(alone), "between two annotators or more"),
        (lambda: AgreementDisplay.from_judgments(apart), "no two annotators judged the same"),
        (lambda: TimeDisplay.from_judgments(alone), "no time column"),
        (lambda: ConvergenceDisplay.from_consensus(nobody), "keeps no likelihood"),
        (lambda: QueriesDisplay.from_consensus(single), "no query has two items"),
        (lambda: ConsensusDisplay.from_consensus(nominal), "classes without an order"),
        (lambda: BeatsDisplay.from_consensus(nominal), "classes without an order"),
        (lambda: BeatsDisplay.from_consensus(classes), "gives no uncertainty of its own"),
    ):
        with pytest.raises(ParameterError, match=match):
            make()
