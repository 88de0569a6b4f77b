"""What ``method="auto"`` takes for which judgments, and what it says."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.api.aggregation import FEWEST, METHODS, auto_method
from crowdrank.errors import ParameterError
from crowdrank.io.notices import listen


def grades(n_annotators, n_items, levels=4):
    rng = np.random.default_rng(0)
    rows = [
        (f"a{who}", "q", f"i{item:03d}", int(np.clip(item * levels // n_items + rng.integers(-1, 2), 0, levels - 1)))
        for who in range(n_annotators)
        for item in range(n_items)
    ]
    return cr.Grades.from_rows(rows)


@pytest.fixture
def enough():
    """Judgments of each kind by six annotators, ten or more each."""
    given = grades(6, 10)
    frame = given.frame().with_columns(rank=-pl.col("grade")).drop("grade")
    return {"grade": given, "preference": given.as_preferences(), "ranking": cr.Rankings.from_frame(frame)}


@pytest.fixture
def heard():
    said = []
    listen(said.append)
    yield said
    listen(None)


@pytest.mark.parametrize("kind", ["grade", "preference", "ranking"])
def test_annotators_who_can_be_told_apart_are(kind, enough, heard):
    assert cr.aggregate(enough[kind]).method == "latent_score"
    assert heard[0] == f"method latent_score, since {METHODS['learned'].reason}"
    # preferences of the few pairs are asked again, so their errors are by annotator
    assert [line for line in heard[1:] if "standard errors by annotator" not in line] == []


@pytest.mark.parametrize(
    ("kind", "plain"), [("grade", "mean_grade"), ("preference", "bradley_terry"), ("ranking", "borda")]
)
def test_otherwise_the_plain_method_of_the_kind(kind, plain, enough):
    frame = enough[kind].frame()
    nameless = frame.drop("annotator")
    found = auto_method(type(enough[kind]).from_frame(nameless))
    assert (found.method, found.reason) == (plain, f"the {kind}s do not say who gave them, so all count the same")
    one = enough[kind].select(enough[kind].annotator == 2)
    assert auto_method(one).method == plain
    assert auto_method(one).reason.startswith("only one annotator")


def test_few_judgments_each_are_too_few():
    few, enough = grades(3, int(FEWEST) - 1), grades(3, int(FEWEST))
    assert auto_method(enough) == METHODS["learned"]
    assert auto_method(few).method == "mean_grade"
    assert auto_method(few).reason == "annotators gave 4 grades each, too few to distinguish good from bad ones"


def test_short_rankings_count_as_the_choices_they_are():
    rows = [(f"a{who}", "q", f"i{item}", item + 1) for who in range(5) for item in range(4)]
    found = auto_method(cr.Rankings.from_rows(rows))
    assert (found.method, found.reason) == (
        "borda", "annotators gave 3 choices each, too few to distinguish good from bad ones",
    )  # fmt: skip


def test_where_no_item_was_graded_twice_only_severity_is_learned():
    rows = [(f"a{number % 3}", "q", f"i{number}", number % 4) for number in range(24)]
    chosen = auto_method(cr.Grades.from_rows(rows))
    assert chosen.method == "latent_score"
    assert "how severe each of them is, not how good" in chosen.reason
    assert "not how good" not in auto_method(cr.Grades.from_rows([*rows, ("a1", "q", "i0", 2)])).reason


def test_more_levels_than_can_be_told_apart():
    found = auto_method(grades(3, 60, levels=60))
    assert found == METHODS["numbers"]
    assert found.method == "location_scale"


def test_several_kinds_whoever_gave_them(enough):
    assert auto_method(cr.Mixed.of([enough["grade"], enough["ranking"]])) == METHODS["several"]
    bare = {"left": ["x"], "right": ["y"], "winner": ["left"]}
    mixed = cr.Mixed.of([cr.Grades.from_frame({"item": ["x"], "grade": [1]}), cr.Preferences.from_frame(bare)])
    assert auto_method(mixed) == METHODS["several"]
    assert np.isfinite(cr.aggregate(mixed).scores).all()


def test_for_a_grade_and_for_classes(enough, heard):
    assert auto_method(enough["grade"], "grade") == METHODS["classes"]
    consensus = cr.aggregate(enough["grade"], want="grade")
    assert (consensus.method, consensus.params["ordinal"]) == ("ensemble", True)
    assert heard[0].startswith("method ensemble, since the mean of dawid_skene and mace")
    assert cr.aggregate(enough["grade"], want="grade", params={"ordinal": False}).params["ordinal"] is False
    votes = {"item": ["x", "x", "y"], "annotator": ["a", "b", "a"], "grade": ["cat", "dog", "cat"]}
    assert auto_method(cr.Grades.from_frame(votes, nominal=True)) == METHODS["classes"]
    nameless = cr.Grades.from_frame({"item": ["x"], "grade": ["cat"]}, nominal=True)
    assert auto_method(nameless) == METHODS["classes_of_nobody"]
    alone = cr.Grades.from_frame({"item": ["x", "y"], "annotator": ["a", "b"], "grade": [1, 2]})
    assert auto_method(alone, "grade") == METHODS["classes_apart"]


def test_a_ranker_learns_grades_on_their_own_scale(enough):
    assert auto_method(enough["grade"], "target") == METHODS["target"]
    assert auto_method(enough["preference"], "target") == METHODS["learned"]


def test_what_cannot_be_wanted_is_said(enough):
    with pytest.raises(ParameterError, match="preferences give no grade; use want='order'"):
        auto_method(enough["preference"], "grade")
    with pytest.raises(ParameterError, match="is not known; choose one of 'order', 'grade'"):
        auto_method(enough["grade"], "rank")


def test_a_name_overrides_it(enough):
    assert cr.aggregate(enough["preference"], "borda").method == "borda"
    assert cr.aggregate(enough["grade"], params={"lapse": False}).params["lapse"] is False


def test_what_is_known_is_made_use_of():
    few = cr.Preferences.from_rows([("ann", "q", "x", "y", "left"), ("bob", "q", "y", "x", "left")])
    assert auto_method(few).method == "bradley_terry"
    assert auto_method(few, anchored=True).method == "latent_score"
    consensus = cr.aggregate(few, trusted=["ann"])
    assert (consensus.method, consensus.order()) == ("latent_score", ["x", "y"])
