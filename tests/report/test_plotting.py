"""``cr.plot`` draws the picture that fits."""

import polars as pl
import pytest
from matplotlib.figure import Figure
from tests.report.crowds import grades, preferences

import crowdrank as cr
from crowdrank.errors import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

NAMES = ["oak", "elm", "ash", "fir", "yew"]


@pytest.fixture(scope="module")
def votes():
    return preferences(NAMES, ["ann", "bob", "cy", "dee"], 400, reverse=["dee"])


@pytest.fixture(scope="module")
def consensus(votes):
    return cr.aggregate(votes, "bradley_terry")


def axes():
    return Figure().subplots()


def test_a_consensus_has_a_row_for_each_item(consensus):
    display = cr.plot(consensus, axes())
    assert type(display).__name__ == "ConsensusDisplay"
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == consensus.order()


def test_without_axes_there_is_a_new_figure(consensus):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    display = cr.plot(consensus)
    assert len(plt.get_fignums()) == len(before) + 1
    assert display.figure_ is display.ax_.figure
    plt.close(display.figure_)


def test_several_queries_show_how_sure_each_is(votes):
    several = cr.aggregate(preferences(NAMES, ["ann", "bob"], 300, queries=("p", "q")), "bradley_terry")
    assert type(cr.plot(several, axes())).__name__ == "QueriesDisplay"
    one = cr.plot(several, axes(), query="q")
    assert type(one).__name__ == "ConsensusDisplay"
    assert "query q" in one.ax_.get_ylabel()


def test_quality_trace_and_comparison(consensus):
    graded = grades(NAMES, ["ann", "bob", "cy"])
    assert type(cr.plot(consensus.quality, axes())).__name__ == "QualityDisplay"
    assert type(cr.plot(cr.aggregate(graded, "dawid_skene").trace, axes())).__name__ == "ConvergenceDisplay"
    found = cr.compare_methods(graded, ["mean_grade", "borda"])
    display = cr.plot(found, axes())
    assert type(display).__name__ == "ComparisonDisplay"
    assert {text.get_text() for text in display.ax_.get_yticklabels()} == {"mean_grade", "borda"}


def test_classes_show_what_is_mixed_up():
    graded = grades(NAMES, ["ann", "bob", "cy"], words=["a", "b", "c", "d"], nominal=True)
    assert type(cr.plot(cr.aggregate(graded, "dawid_skene"), axes())).__name__ == "ConfusionDisplay"


def test_campaigns_have_a_line_for_each_scheme():
    truth = {"item": list("abcdefgh"), "grade": [0, 0, 0, 1, 1, 2, 2, 3]}
    curves = cr.campaigns(truth, ["single", "3-overlap"], 24, annotators=9, noise="profile()", n_rounds=3, n_seeds=2)
    display = cr.plot(curves, axes())
    assert type(display).__name__ == "CampaignDisplay"
    assert len(display.ax_.get_lines()) == 2
    pool = cr.simulate.normal(0.8, 0.1, n_annotators=9)
    one = cr.simulate.campaign(cr.schemes.KOverlap(k=2), pool, truth, budget=16, n_rounds=4)
    assert len(cr.plot(one, axes()).ax_.get_lines()) == 1


def test_a_ranker_shows_its_features():
    ranker = cr.rankers.ListNet().fit([[1, 0.5], [0, 0.1], [0, 0.9]], [2, 0, 1], qid=[1, 1, 1])
    assert type(cr.plot(ranker, axes())).__name__ == "ImportanceDisplay"


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (lambda votes: votes, r"there is no picture of a Preferences; .* plot\(aggregate\(judgments\)\)"),
        (lambda votes: 3, "there is no picture of an int; drawn are a consensus"),
        (lambda votes: None, r"there is no picture of nothing \(None\)"),
        (lambda votes: pl.DataFrame({"x": [1]}), "there is no picture of a table; drawn are"),
        (lambda votes: pl.DataFrame({"metric": ["map"]}), "compare_methods"),
        (lambda votes: cr.aggregate(votes, "borda").trace, "there is no curve"),
    ],
)
def test_what_cannot_be_drawn_gets_a_sentence(votes, result, says):
    with pytest.raises(ParameterError, match=says):
        cr.plot(result(votes), axes())


def test_a_query_is_for_a_consensus_only(consensus):
    with pytest.raises(ParameterError, match="query= is for a consensus, not for a Quality"):
        cr.plot(consensus.quality, axes(), query="q")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_what_was_drawn_is_saved_as_it_stands(consensus, tmp_path, ending):
    display = cr.plot(consensus, axes())
    display.ax_.set_title("a title of one's own")
    display.savefig(tmp_path / f"scores.{ending}")
    content = (tmp_path / f"scores.{ending}").read_bytes()
    assert content.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])
    assert (b"a title of one" in content) == (ending == "svg")
    with pytest.raises(ParameterError, match=r"scores.doc is not the name of a picture; end it in \.png"):
        display.savefig("scores.doc")


def test_the_report_is_written_by_a_verb_beside_its_module(consensus, votes, tmp_path):
    cr.write_report(consensus, votes, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    assert cr.report.write is cr.write_report
