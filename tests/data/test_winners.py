"""Tables of winners and losers: preferences whose sides nobody knows."""

import polars as pl
import pytest

import crowdrank as cr
from crowdrank.data.columns import understand
from crowdrank.errors import DataWarning, JudgmentError, ParameterError
from crowdrank.io import listen, read_judgments, read_truth

TABLE = {"winner": ["x", "y", "x"], "loser": ["y", "z", "z"], "annotator": ["ann", "bob", "ann"]}


def test_winners_and_losers_are_preferences():
    preferences = cr.Preferences.from_frame(TABLE)
    shown = preferences.frame().select("left", "right", "winner").rows()
    assert shown == [("x", "y", "left"), ("y", "z", "left"), ("x", "z", "left")]
    assert preferences.recorded.all()
    assert not preferences.shown.any()
    assert preferences.select([0, 2]).recorded.tolist() == [True, True]
    assert cr.aggregate(TABLE, "borda").order("") == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("names", "winner", "loser", "ignored"),
    [
        (["prompt", "chosen", "rejected", "label"], "chosen", "rejected", ("label",)),
        (["Winner ID", "Loser ID", "judge"], "Winner ID", "Loser ID", ()),
        (["better", "worse"], "better", "worse", ()),
        (["winner", "loser", "left"], "winner", "loser", ("left",)),
        (["preferred", "rejected", "preference"], "preferred", "rejected", ("preference",)),
    ],
)
def test_names_that_come_in_pairs(names, winner, loser, ignored):
    found = understand(names)
    assert (found.kind, found.columns["winner"], found.columns["loser"]) == ("preference", winner, loser)
    assert found.ignored == ignored
    assert found.sentence().endswith("which item was shown on which side is not known")


def test_left_and_right_tell_more_than_the_loser():
    table = {"left": ["x", "y"], "right": ["y", "z"], "winner": ["y", "y"], "loser": ["x", "z"]}
    preferences = cr.Preferences.from_frame(table)
    assert (preferences.outcome.tolist(), preferences.recorded) == ([-1, 1], None)
    assert understand(list(table)).ignored == ("loser",)
    # unless the loser is asked for
    named = cr.Preferences.from_frame(table, columns={"loser": "loser"})
    assert named.recorded.all()


@pytest.mark.parametrize("name", ["tie", "draw", "is_tie"])
@pytest.mark.parametrize("cells", [[True, False, None], ["yes", "no", ""], [1, 0, 0], ["Tie", " ", "false"]])
def test_ties_have_a_column(name, cells):
    preferences = cr.Preferences.from_frame({**TABLE, name: cells})
    assert preferences.outcome.tolist() == [0, 1, 1]
    assert preferences.recorded.all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loser": ["y", None, "z"]}, r"the loser id is blank in row 2 \(winner 'y', loser None, annotator 'bob'\); "),
        ({"winner": ["y", "y", "x"]}, r"winner and loser are the same item in row 1 \(winner 'y', .*; drop that row"),
        ({"tie": ["no", "perhaps", "no"]}, r"the tie column says neither yes nor no in row 2 \(winner 'y', loser 'z'"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_table(changes, message):
    with pytest.raises(JudgmentError, match=message):
        cr.Preferences.from_frame({**TABLE, **changes})
    with pytest.warns(DataWarning, match="left out 1 of 3 rows"):
        assert len(cr.Preferences.from_frame({**TABLE, **changes}, invalid="drop")) == 2


def test_winner_codes_are_for_a_winner_beside_left_and_right():
    with pytest.raises(ParameterError, match="the table names winners and losers; leave it out"):
        cr.Preferences.from_frame(TABLE, winner_codes={1: "left"})


def test_files_of_both_forms_are_read_together(tmp_path):
    (tmp_path / "w.csv").write_text("winner,loser,rater\n7,8,ann\n8,9,bob\n")
    (tmp_path / "s.csv").write_text("left,right,winner,rater\n8,7,right,ann\nz,9,left,cy\n")
    heard = []
    listen(heard.append)
    preferences = read_judgments([tmp_path / "w.csv", tmp_path / "s.csv"])
    listen(None)
    assert preferences.recorded.tolist() == [True, True, False, False]
    assert preferences.items.ids.to_list() == ["7", "8", "9", "z"]
    assert preferences.annotators.ids.to_list() == ["ann", "bob", "cy"]
    assert heard[0].endswith("winner, loser, annotator = 'rater'; which item was shown on which side is not known")
    assert preferences.across_queries().recorded.tolist() == [True, True, False, False]


def test_a_truth_of_winners_and_losers():
    truth = read_truth(pl.DataFrame(TABLE).drop("annotator"))
    assert (truth.form, truth.outcome.tolist()) == ("pairs", [1, 1, 1])


def test_the_other_winner_is_the_same_question():
    table = {"winner": ["x", "y"], "loser": ["y", "x"], "annotator": ["ann", "ann"]}
    with pytest.warns(DataWarning, match="1 of 2 judgments repeat one"):
        kept = cr.Preferences.from_frame(table, duplicates="last")
    assert kept.frame()["left"].to_list() == ["y"]
