"""Strength of preferences, shares of a judgment, and durations, through everything that is done to judgments."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.data.judgments import together, with_pseudonyms
from crowdrank.data.parted import fingerprint
from crowdrank.errors import DataWarning, JudgmentError, ParameterError
from crowdrank.io.judgments import weighted_by_strength
from crowdrank.resampling import plan_draws
from crowdrank.validation.prediction import split_judgments

GRADED = {
    "left": ["x", "y", "x"], "right": ["y", "z", "z"], "winner": ["left", "tie", "right"],
    "annotator": ["ann", "ann", "bob"], "strength": [2, None, 1], "duration": [3.5, None, 4],
}  # fmt: skip


def shares(rows):
    """Preferences of (left, right, probability of right), two rows of each unless it is certain."""
    table = {name: [] for name in ("left", "right", "winner", "weight", "judgment", "annotator")}
    for number, (left, right, share) in enumerate(rows):
        for winner, weight in (("left", 1 - share), ("right", share)):
            if weight > 0:
                for name, value in zip(table, (left, right, winner, weight, number, "gpt"), strict=True):
                    table[name].append(value)
    return table


def test_strength_is_zero_exactly_where_two_tie():
    found = cr.Preferences.from_frame(GRADED)
    assert found.strength.tolist() == [2, 0, 1]
    assert found.strength_levels == 2
    assert found.duration[[0, 2]].tolist() == [3.5, 4]
    assert np.isnan(found.duration[1])
    # a part keeps the scale
    assert found.select([1, 2]).strength_levels == 2
    assert found.frame()["strength"].to_list() == [2, 0, 1]
    assert cr.Preferences.from_frame(found.frame()).strength.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strength": [-1, 0, 1]}, r"the strength is below 0 in row 1"),
        ({"strength": [1, 1, 1]}, r"the strength is above 0 where two items tie in row 2"),
        ({"strength": [0, 0, 1]}, r"the strength is 0 where an item won in row 1"),
        ({"duration": [-1, 0, 1]}, r"the duration is below 0 in row 1"),
    ],
)
def test_wrong_strengths_are_named_by_their_row(changes, said):
    with pytest.raises(JudgmentError, match=said):
        cr.Preferences.from_frame({**GRADED, **changes})


@pytest.mark.parametrize(
    ("winners", "outcome", "strength"),
    [
        (["A>>B", "A=B", "B>A"], [1, 0, -1], [2, 0, 1]),
        (["[[A<<B]]", "[[A=B]]", "[[B<A]]"], [-1, 0, 1], [2, 0, 1]),
        (["A", "C", "B"], [1, 0, -1], None),
        (["[[A]]", "[[C]]", "[[B]]"], [1, 0, -1], None),
        (["model_1", "tie", "model_2"], [1, 0, -1], None),
        (["Response A", "both bad", "response_b"], [1, 0, -1], None),
        (["first", "draw", "second"], [1, 0, -1], None),
        (["x", "tie (bothbad)", "z"], [1, 0, -1], None),
    ],
)
def test_winners_in_every_common_code(winners, outcome, strength):
    table = {name: cells for name, cells in GRADED.items() if name not in ("strength", "duration")}
    found = cr.Preferences.from_frame({**table, "winner": winners})
    assert found.outcome.tolist() == outcome
    assert (None if found.strength is None else found.strength.tolist()) == strength


def test_ids_that_are_codes_win_only_where_every_winner_is_one():
    table = {"left": ["a", "b", "c"], "right": ["b", "c", "a"]}
    found = cr.Preferences.from_frame({**table, "winner": ["b", "b", "tie"]})
    assert found.outcome.tolist() == [-1, 1, 0]
    with pytest.raises(
        JudgmentError, match=r"codes for a side and ids of items.*winner_codes=\{'a': 'left', 'b': 'right'\}"
    ):
        cr.Preferences.from_frame({**table, "winner": ["b", "a", "b"]})
    codes = {"a": "left", "b": "right"}
    assert cr.Preferences.from_frame({**table, "winner": ["b", "a", "b"]}, winner_codes=codes).outcome.tolist() == [
        -1,
        1,
        -1,
    ]


def test_shares_of_a_judgment_count_as_one():
    found = cr.Preferences.from_frame(shares([("x", "y", 0.25), ("y", "z", 1.0), ("x", "z", 0.5)]))
    assert (len(found), found.n_judgments) == (5, 3)
    assert repr(found) == "Preferences(3 judgments, 3 items, 1 annotator)"
    right = found.weight[found.outcome < 0].sum() / found.n_judgments
    assert right == pytest.approx((0.25 + 1 + 0.5) / 3)
    # shares are no repeats of each other
    assert cr.Preferences.from_frame(found.frame(), duplicates="error").n_judgments == 3


def test_a_bootstrap_draws_the_shares_of_a_judgment_together():
    found = cr.Preferences.from_frame(shares([("x", "y", 0.25), ("y", "z", 1.0), ("x", "z", 0.5), ("y", "x", 0.9)]))
    draws = plan_draws(found, 50, seed=1)
    assert draws.n_units == 4
    for number in range(50):
        drawn = draws.counts(number)
        assert drawn[found.first_rows()].sum() == 4
        for judgment in range(4):
            assert len(set(drawn[found.judgment == judgment].tolist())) == 1
    # the order of the rows, and the numbers that judgments have, do not matter
    order = np.random.default_rng(0).permutation(len(found))
    turned = cr.Preferences.from_frame(
        found.frame()[order.tolist()].with_columns(judgment=pl.col("judgment").cast(pl.String) + "th")
    )
    again = plan_draws(turned, 50, seed=1)
    assert all((again.counts(n) == draws.counts(n)[order]).all() for n in range(50))


def test_shares_stay_in_one_fold():
    table = shares([("x", "y", 0.25), ("y", "z", 0.4), ("x", "z", 0.5), ("z", "y", 0.3), ("y", "x", 0.2)] * 4)
    for named in (True, False):
        cells = table if named else {name: column for name, column in table.items() if name != "annotator"}
        found = cr.Preferences.from_frame(cells, duplicates="keep") if not named else _quiet(cells)
        split = split_judgments(found, 4)
        judgment = split.judgments.judgment
        assert all(len(np.unique(split.fold[judgment == number])) == 1 for number in np.unique(judgment))


def _quiet(table):
    with pytest.warns(DataWarning, match="repeat"):
        return cr.Preferences.from_frame(table)


def test_files_together_keep_strength_only_if_all_have_it():
    plain = {name: column for name, column in GRADED.items() if name not in ("strength", "duration")}
    both = together([cr.Preferences.from_frame(GRADED), cr.Preferences.from_frame(GRADED)])
    assert both.strength.tolist() == [2, 0, 1, 2, 0, 1]
    with pytest.warns(DataWarning, match="strengths of preferences are left out, since 3 preferences have none"):
        mixed = together([cr.Preferences.from_frame(GRADED), cr.Preferences.from_frame(plain)])
    assert mixed.strength is None
    assert np.isnan(mixed.duration[3:]).all()
    numbered = together(
        [cr.Preferences.from_frame(shares([("x", "y", 0.5)])), cr.Preferences.from_frame(shares([("x", "z", 0.5)]))]
    )
    assert numbered.judgment.tolist() == [0, 0, 2, 2]


def test_fingerprints_tell_strengths_and_shares_apart():
    halves = shares([("x", "y", 0.5), ("x", "y", 0.5)])
    tables = [
        GRADED, {**GRADED, "strength": [1, 0, 1]}, {**GRADED, "duration": [1, 1, 1]},
        {name: column for name, column in GRADED.items() if name != "strength"},
        halves, {**halves, "judgment": [0, 1, 1, 0]}, {**halves, "judgment": [0, 1, 2, 3]},
    ]  # fmt: skip
    with pytest.warns(DataWarning):
        prints = [fingerprint(cr.Preferences.from_frame(table)) for table in tables]
    # two judgments of a half each are the same however their rows are paired
    assert prints[4] == prints[5]
    assert len(set(prints)) == len(prints) - 1


def test_weights_of_strengths():
    found = weighted_by_strength(cr.Preferences.from_frame(GRADED), [1, 3])
    assert found.weight.tolist() == [3, 1, 1]
    assert found.strength is None
    with pytest.raises(ParameterError, match="has 1 weights, and a preference has strength 2"):
        weighted_by_strength(cr.Preferences.from_frame(GRADED), [1])
    with pytest.raises(ParameterError, match="to graded preferences, but there are none"):
        weighted_by_strength(cr.Grades.from_rows([("ann", "q", "x", 1)]), [1])


def test_methods_that_use_the_outcome_only_say_so_once():
    heard = []
    cr.io.listen(heard.append)
    try:
        cr.aggregate(cr.Preferences.from_frame(GRADED), "borda")
    finally:
        cr.io.listen(None)
    assert [line for line in heard if "uses only who won, not by how much" in line] == [
        "Borda uses only who won, not by how much; strength_weights= makes weights of that"
    ]


def test_pseudonyms_follow_the_order_of_ids():
    rows = [(f"p{number:02d}@example.org", "q", "x", number) for number in range(12)]
    found = with_pseudonyms(cr.Grades.from_rows(rows))
    assert found.frame().sort("grade")["annotator"].to_list() == [f"A{number + 1}" for number in range(12)]
    assert found.annotators.ids.to_list() == sorted(found.annotators.ids.to_list())


def test_surveys_have_a_column_per_item():
    table = {"who": ["ann", "bob"], "tea": [5, 4], "milk": [2, None]}
    for given in ({"annotator": "who"}, {"columns": {"annotator": "who"}}):
        found = cr.Grades.from_survey(table, ["tea", "milk"], **given)
        assert found.frame().rows() == [("tea", 5, "ann"), ("tea", 4, "bob"), ("milk", 2, "ann")]
    assert list(cr.Grades.from_survey({"tea": [5, 4], "milk": [2, 3]}, ["tea", "milk"]).annotators) == ["1", "2"]
    with pytest.raises(JudgmentError, match="there is no column 'nobody'"):
        cr.Grades.from_survey(table, ["tea"], annotator="nobody")
