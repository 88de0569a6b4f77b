"""Judgments from tables: what is understood, what is refused and in which words."""

import importlib.util
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from crowdrank.data.columns import understand
from crowdrank.data.judgments import Grades, Preferences, Rankings, expect
from crowdrank.errors import DataWarning, JudgmentError, ParameterError

GRADES = {"query": ["q1", "q1", "q2"], "item": ["x", "y", "x"], "annotator": ["ann", "ann", "bob"], "grade": [2, 1, 3]}
PREFERENCES = {"left": ["x", "y"], "right": ["y", "z"], "winner": ["left", "tie"], "annotator": ["ann", "bob"]}


def with_column(table, name, values):
    return {**table, name: values}


@pytest.mark.parametrize("make", [dict, pl.DataFrame, pd.DataFrame, pa.table, lambda t: pl.DataFrame(t).lazy()])
def test_any_frame_gives_the_same_grades(make):
    grades = Grades.from_frame(make(GRADES))
    assert grades.items.frame().rows() == [("q1", "x"), ("q1", "y"), ("q2", "x")]
    assert grades.item.tolist() == [0, 1, 2]
    assert grades.annotator.tolist() == [0, 0, 1]
    assert grades.grade.tolist() == [2, 1, 3]
    assert grades.item.dtype == np.int32
    assert grades.weight is None


def test_a_duckdb_relation_is_a_frame():
    if importlib.util.find_spec("duckdb") is None:
        pytest.skip("duckdb is not installed")
    # in a process of its own: duckdb reports leaked types of its own bindings when the interpreter ends
    script = """
import duckdb
from crowdrank.data.judgments import Grades
relation = duckdb.sql("select * from (values ('x', 'ann', 1), ('y', 'bob', 2)) t(item, annotator, grade)")
print(Grades.from_frame(relation).n_items)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2"


def test_columns_are_read_only_and_the_callers_arrays_stay_writable():
    values = np.array([2.0, 1.0, 3.0])
    grades = Grades.from_frame({**GRADES, "grade": values})
    with pytest.raises(ValueError, match="read-only"):
        grades.grade[0] = 9
    values[0] = 7
    assert values.flags.writeable


def test_row_order_does_not_matter():
    frame = pl.DataFrame(GRADES)
    turned = Grades.from_frame(frame[::-1])
    assert turned.items.frame().equals(Grades.from_frame(frame).items.frame())


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (["task", "worker", "label"], Grades),
        (["Query ID", "doc-id", "Rater", "Relevance"], Grades),
        (["model_a", "model_b", "winner", "judge"], Preferences),
        (["left", "right", "label", "worker"], Preferences),
        (["prompt", "model_a", "model_b", "winner"], Preferences),
    ],
)
def test_foreign_names_are_understood(columns, kind):
    cells = {"label": [1], "Relevance": [1], "winner": ["tie"]}
    table = {name: cells.get(name, [name]) for name in columns}
    if kind is Preferences and "label" in columns:
        table["label"] = ["left"]
    assert kind.from_frame(table).n_judgments == 1


def test_task_is_the_query_when_another_column_names_the_item():
    grades = Grades.from_frame({"prompt": ["p"], "model": ["m"], "rating": [4]})
    assert grades.items.frame().rows() == [("p", "m")]
    assert Grades.from_frame({"prompt": ["p"], "rating": [4]}).items.ids.to_list() == ["p"]


def test_columns_names_the_rest():
    grades = Grades.from_frame(
        {"Who": ["k"], "What": ["x"], "How": [1]}, columns={"annotator": "Who", "item": "What", "grade": "How"}
    )
    assert list(grades.annotators) == ["k"]
    with pytest.raises(JudgmentError, match="says item is 'nowhere'"):
        Grades.from_frame(GRADES, columns={"item": "nowhere"})
    with pytest.raises(ParameterError, match="'gade'"):
        Grades.from_frame(GRADES, columns={"gade": "grade"})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"item": ["x"], "annotator": ["a"]}, "lacks grade .*understood: item = 'item', annotator = 'annotator'"),
        ({"grade": [1], "annotator": ["a"]}, "lacks item"),
        ({"item": [], "grade": []}, "no rows"),
        (
            with_column(GRADES, "grade", [2, None, 3]),
            r"grade is blank in row 2 \(query 'q1', item 'y', annotator 'ann'\); correct",
        ),
        (with_column(GRADES, "grade", ["2", " ", "3"]), "grade is blank in row 2"),
        (with_column(GRADES, "grade", [2.0, float("nan"), 3.0]), "grade is blank in row 2"),
        (with_column(GRADES, "grade", [2.0, float("inf"), 3.0]), "NaN or infinite in row 2"),
        (with_column(GRADES, "grade", ["Good", "Bad", "Good"]), "grades are text.*levels=.*nominal=True"),
        (with_column(GRADES, "grade", ["1", "oops", "2"]), "not a number in row 2"),
        (with_column(GRADES, "item", ["x", None, "y"]), "item id is blank in row 2"),
        (with_column(GRADES, "item", ["x", "  ", "y"]), "item id is blank in row 2"),
        (with_column(GRADES, "weight", [1, 0, 1]), "weight is zero or negative in row 2"),
        (with_column(GRADES, "weight", [1, -1.5, 1]), "weight is zero or negative in row 2"),
        (with_column(GRADES, "weight", [1.0, float("nan"), 1.0]), "weight is blank in row 2"),
        (with_column(GRADES, "time", ["2026-01-01", "soon", "3"]), "time is neither a number nor a date"),
        (with_column(GRADES, "group", ["g", "h", "g"]), "annotator 'ann' stands in two groups, 'g' and 'h'"),
        ({"item": ["x"], "grade": [1], "rating": [1], "rank": [2]}, "kind='grade'"),
        ({"item": ["x"], "label": [1], "rating": [1]}, "'label' and 'rating' could both be the grade"),
        ({"item": [1, "a"], "grade": [1, 2]}, "column 'item' mixes"),
        ({"item": ["x"], "grade": [1, 2]}, "differ in length"),
    ],
)
def test_bad_grades_get_one_sentence(table, said):
    with pytest.raises(JudgmentError, match=said) as caught:
        Grades.from_frame(table) if "rank" not in table else understand(table)
    assert "\n" not in str(caught.value)


def test_mixed_ids_of_a_pandas_frame_name_the_column():
    with pytest.raises(JudgmentError, match="column 'item' mixes"):
        Grades.from_frame(pd.DataFrame({"item": [1, "a"], "grade": [1, 2]}))


def test_the_first_five_bad_rows_and_a_count_are_named():
    table = {"item": [f"i{n}" for n in range(9)], "grade": [None] * 8 + [1.0]}
    with pytest.raises(JudgmentError, match=r"8 rows: row 1 .*row 5 \(item 'i4'\) and 3 more"):
        Grades.from_frame(table)


def test_invalid_drop_leaves_rows_out_and_says_so():
    table = with_column(GRADES, "grade", [2, None, 3])
    with pytest.warns(DataWarning, match="left out 1 of 3 rows: the grade is blank in row 2"):
        grades = Grades.from_frame(table, invalid="drop")
    assert grades.items.frame().rows() == [("q1", "x"), ("q2", "x")]
    assert grades.n_annotators == 2
    with pytest.raises(JudgmentError, match="no row is left"):
        Grades.from_frame({"item": ["x"], "grade": [None]}, invalid="drop")
    with pytest.raises(ParameterError, match="invalid='skip'"):
        Grades.from_frame(GRADES, invalid="skip")


def test_levels_in_words():
    grades = Grades.from_frame(with_column(GRADES, "grade", ["Good", "Bad", "Fair"]), levels=["Bad", "Fair", "Good"])
    assert grades.grade.tolist() == [2, 0, 1]
    assert grades.levels == ("Bad", "Fair", "Good")
    assert grades.frame()["grade"].to_list() == ["Good", "Bad", "Fair"]
    with pytest.raises(JudgmentError, match="none of the levels Bad, Good in row 3"):
        Grades.from_frame(with_column(GRADES, "grade", ["Good", "Bad", "Fair"]), levels=["Bad", "Good"])
    with pytest.raises(ParameterError, match="at least two"):
        Grades.from_frame(GRADES, levels=["a"])
    with pytest.raises(ParameterError, match="one text"):
        Grades.from_frame(GRADES, levels="abc")


def test_numeric_levels_keep_their_values_and_bound_the_scale():
    grades = Grades.from_frame(GRADES, levels=["0", "1", "2", "3", "4"])
    assert grades.levels == (0, 1, 2, 3, 4)
    assert grades.grade.tolist() == [2, 1, 3]
    with pytest.raises(JudgmentError, match="none of the levels 0, 1, 2 in row 3"):
        Grades.from_frame(GRADES, levels=[0, 1, 2])


def test_falling_numeric_levels_say_that_small_is_good():
    grades = Grades.from_frame(GRADES, levels=[3, 2, 1])
    assert grades.grade.tolist() == [1, 2, 0]
    assert grades.frame()["grade"].to_list() == [2, 1, 3]


def test_nominal_grades():
    grades = Grades.from_frame(with_column(GRADES, "grade", ["cat", "dog", "cat"]), nominal=True)
    assert grades.levels == ("cat", "dog")
    assert grades.frame()["grade"].to_list() == ["cat", "dog", "cat"]
    with pytest.raises(JudgmentError, match="no order"):
        grades.as_preferences()


def test_many_distinct_grades_ask_for_bins():
    grades = Grades.from_frame({"item": [f"i{n}" for n in range(40)], "grade": np.arange(40) / 3})
    with pytest.raises(ParameterError, match=r"params=\{'bins': 5\}"):
        grades.level_codes()
    codes, levels, values = grades.level_codes(bins=4)
    assert len(levels) == len(values) == 4
    assert np.bincount(codes).tolist() == [10, 10, 10, 10]


@pytest.mark.parametrize(
    ("winner", "outcome"),
    [
        (["left", "RIGHT "], [1, -1]), (["x", "z"], [1, -1]), (["model_a", "tie (bothbad)"], [1, 0]),
        ([1, -1], [1, -1]), (["-1", "0"], [-1, 0]), (["tie", "model_b"], [0, -1]),
    ],
)  # fmt: skip
def test_winners(winner, outcome):
    assert Preferences.from_frame(with_column(PREFERENCES, "winner", winner)).outcome.tolist() == outcome


def test_an_items_id_wins_over_a_word():
    table = {"left": ["tie", "right"], "right": ["x", "y"], "winner": ["tie", "right"]}
    assert Preferences.from_frame(table).outcome.tolist() == [1, 1]


def test_numeric_item_ids_name_winners_too():
    table = {"left": [1, 2], "right": [2, 3], "winner": [2, 2]}
    assert Preferences.from_frame(table).outcome.tolist() == [-1, 1]


@pytest.mark.parametrize("winner", [[0, 1], [1, 2], ["1", "2"], [True, False], [1.0, 2.0]])
def test_bare_numbers_are_refused_with_the_remedy(winner):
    with pytest.raises(JudgmentError, match="winner_codes="):
        Preferences.from_frame(with_column(PREFERENCES, "winner", winner))


def test_winner_codes():
    table = with_column(PREFERENCES, "winner", [1, 2])
    codes = {1: "left", 2: "right", 0: "tie"}
    assert Preferences.from_frame(table, winner_codes=codes).outcome.tolist() == [1, -1]
    with pytest.raises(ParameterError, match="'both'"):
        Preferences.from_frame(table, winner_codes={1: "both"})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"left": ["x"], "right": ["x"], "winner": ["left"], "annotator": ["kim"]},
         r"compared with itself in row 1 \(left 'x', right 'x', annotator 'kim'\); that says .* invalid='drop'"),
        (with_column(PREFERENCES, "winner", ["left", "w"]), r"winner \('w'\) is neither of the two items.* in row 2"),
        (with_column(PREFERENCES, "winner", ["left", None]), "winner is blank in row 2"),
        ({"left": ["x"], "winner": ["left"]}, "lacks right"),
    ],
)  # fmt: skip
def test_bad_preferences_get_one_sentence(table, said):
    with pytest.raises(JudgmentError, match=said):
        Preferences.from_frame(table)


def test_duplicates():
    table = {"item": ["x", "x", "y"], "annotator": ["a", "a", "a"], "grade": [1, 2, 3]}
    with pytest.warns(DataWarning, match="1 of 3 judgments repeat"):
        assert Grades.from_frame(table).grade.tolist() == [1, 2, 3]
    with pytest.warns(DataWarning, match="first was kept"):
        assert Grades.from_frame(table, duplicates="first").grade.tolist() == [1, 3]
    with pytest.warns(DataWarning, match="last was kept"):
        assert Grades.from_frame(table, duplicates="last").grade.tolist() == [2, 3]
    with pytest.raises(JudgmentError, match="same thing twice"):
        Grades.from_frame(table, duplicates="error")
    with pytest.raises(ParameterError, match="duplicates='some'"):
        Grades.from_frame(table, duplicates="some")


def test_a_pair_asked_with_sides_exchanged_is_no_duplicate():
    table = {"left": ["x", "y"], "right": ["y", "x"], "winner": ["left", "left"], "annotator": ["a", "a"]}
    assert Preferences.from_frame(table).n_judgments == 2


def test_without_annotators_nothing_repeats():
    table = {"item": ["x", "x"], "grade": [1, 1]}
    grades = Grades.from_frame(table)
    assert grades.n_annotators == 0
    assert len(grades.annotator) == 0


def test_ids_keep_leading_zeros_and_lose_white_space():
    grades = Grades.from_frame({"item": ["007", " 7", "7 "], "grade": [1, 2, 3], "annotator": ["a", "b", "c"]})
    assert grades.items.ids.to_list() == ["007", "7"]


def test_huge_and_unicode_ids():
    grades = Grades.from_frame({"item": ["é" * 500_000, "日本"], "grade": [1, 2]})
    assert grades.n_items == 2


def test_unjudged_items_get_a_place():
    grades = Grades.from_frame(GRADES, items={"query": ["q1", "q3"], "item": ["z", "x"]})
    assert grades.items.frame().rows() == [("q1", "x"), ("q1", "y"), ("q1", "z"), ("q2", "x"), ("q3", "x")]
    assert grades.item.tolist() == [0, 1, 3]


def test_integer_ids_meet_text_ids_as_text():
    grades = Grades.from_frame({"item": [1, 2], "grade": [1, 2]}, items={"item": ["3"]})
    assert grades.items.ids.to_list() == ["1", "2", "3"]


def test_times_are_numbers_or_dates():
    stamps = Grades.from_frame(
        with_column(GRADES, "time", ["2026-01-01T00:00:00", "2026-01-01T00:01:00", "2026-01-02"])
    )
    assert np.diff(stamps.time)[0] == 60
    assert Grades.from_frame(with_column(GRADES, "time", [3, 1, 2])).time.tolist() == [3, 1, 2]


def test_groups_are_per_annotator():
    grades = Grades.from_frame(with_column(GRADES, "group", ["gpt", "gpt", "llama"]))
    assert list(grades.groups) == ["gpt", "llama"]
    assert grades.group.tolist() == [0, 1]


def test_wide_tables():
    table = {"item": ["x", "y"], "gpt": ["2", ""], "kim": ["1", "3"]}
    grades = Grades.from_wide(table, ["gpt", "kim"])
    assert grades.n_judgments == 3
    pairs = Preferences.from_wide({"left": ["x"], "right": ["y"], "gpt": ["left"], "kim": [None]}, ["gpt", "kim"])
    assert pairs.n_judgments == 1
    with pytest.raises(JudgmentError, match="no column 'bob'"):
        Grades.from_wide(table, ["bob"])


def test_across_queries_joins_equal_ids_and_keeps_the_query_as_block():
    table = {"query": ["p1", "p2"], "left": ["m1", "m1"], "right": ["m2", "m3"], "winner": ["left", "right"]}
    pooled = Preferences.from_frame(table).across_queries()
    assert pooled.items.ids.to_list() == ["m1", "m2", "m3"]
    assert pooled.n_queries == 1
    assert pooled.block.tolist() == [0, 1]
    assert list(pooled.blocks) == ["p1", "p2"]
    assert Grades.from_frame(GRADES).across_queries().n_items == 2


def test_grades_become_preferences_within_annotator_and_query():
    table = {
        "query": ["q"] * 4 + ["r"], "item": ["x", "y", "z", "x", "w"],
        "annotator": ["a", "a", "a", "b", "a"], "grade": [3, 1, 3, 2, 5], "weight": [1, 2, 1, 1, 1],
    }  # fmt: skip
    pairs = Grades.from_frame(table).as_preferences()
    rows = pairs.frame().select("left", "right", "winner", "weight").rows()
    assert sorted(rows) == [("x", "y", "left", 2.0), ("x", "z", "tie", 1.0), ("y", "z", "right", 2.0)]
    assert Grades.from_frame(table).as_preferences(ties=False).n_judgments == 2


def test_grades_become_one_ranking_an_annotator_and_query():
    table = {
        "query": ["q"] * 5 + ["r", "q"], "item": ["x", "y", "z", "x", "y", "w", "x"],
        "annotator": ["a", "a", "a", "b", "b", "a", "b"], "grade": [3, 1, 3, 2, 4, 5, 5],
        "weight": [1, 2, 3, 1, 1, 1, 4], "time": [3, 1, 2, 5, 4, 7, 6],
    }  # fmt: skip
    with pytest.warns(DataWarning, match="1 of 7 judgments repeat one"):
        rankings = Grades.from_frame(table).as_rankings()
    rows = rankings.frame().select("query", "annotator", "item", "rank", "weight", "time").rows()
    # b's x has the mean of 2 once and 5 four times
    assert rows == [
        ("q", "a", "x", 1, 2.0, 3.0), ("q", "a", "z", 1, 2.0, 3.0), ("q", "a", "y", 2, 2.0, 3.0),
        ("q", "b", "x", 1, 2.0, 6.0), ("q", "b", "y", 2, 2.0, 6.0), ("r", "a", "w", 1, 1.0, 7.0),
    ]  # fmt: skip
    plain = Grades.from_frame({name: table[name] for name in ("query", "item", "grade")}).as_rankings()
    assert plain.offsets.tolist() == [0, 3, 4]
    assert plain.rank.tolist() == [1, 2, 3, 1]
    assert rankings.as_rankings() is rankings


def test_equal_grades_of_any_weight_tie():
    table = {
        "item": ["x", "x", "x", "y"], "annotator": ["a"] * 4, "grade": [0.1] * 4, "weight": [0.3, 0.7, 0.9, 0.1],
    }  # fmt: skip
    with pytest.warns(DataWarning, match="repeat"):
        grades = Grades.from_frame(table)
    assert grades.as_rankings().rank.tolist() == [1, 1]


def test_rankings_and_pairs_of_grades_say_the_same():
    grades = Grades.from_frame(
        {"query": ["q", "q", "r", "r"] * 2, "item": list("xyxy") * 2, "annotator": ["a"] * 4 + ["b"] * 4,
         "grade": [1, 2, 3, 3, 5, 4, 1, 0]},
    )  # fmt: skip
    pairs = [part.frame().sort(pl.all()) for part in (grades.as_preferences(), grades.as_rankings().as_preferences())]
    assert pairs[0].equals(pairs[1])
    merged = grades.across_queries().as_rankings()
    assert merged.n_judgments == 4
    assert merged.block.tolist() == [0, 1, 0, 1]


def test_preferences_become_rankings_of_two():
    table = {
        "left": ["x", "y", "z"], "right": ["y", "z", "x"], "winner": ["right", "left", "tie"],
        "annotator": ["a", "b", "a"], "weight": [1, 2, 3],
    }  # fmt: skip
    preferences = Preferences.from_frame(table)
    rankings = preferences.as_rankings()
    assert rankings.frame().select("item", "rank", "annotator", "weight").rows() == [
        ("y", 1, "a", 1.0), ("x", 2, "a", 1.0), ("y", 1, "b", 2.0), ("z", 2, "b", 2.0), ("x", 1, "a", 3.0),
        ("z", 1, "a", 3.0),
    ]  # fmt: skip
    back = rankings.as_preferences().frame().rows()
    assert back == [("x", "y", "right", "a", 1.0), ("y", "z", "left", "b", 2.0), ("x", "z", "tie", "a", 3.0)]


def test_nominal_grades_become_no_rankings():
    grades = Grades.from_rows([("ann", "q", "x", "cat"), ("ann", "q", "y", "dog")], nominal=True)
    with pytest.raises(JudgmentError, match="nominal grades have no order, so they cannot become rankings"):
        grades.as_rankings()


def test_rankings_from_rows_of_any_order():
    table = {"annotator": ["b", "a", "a", "b", "a"], "item": ["x", "x", "y", "y", "z"], "rank": [2, 1, 5, 1, 5]}
    rankings = Rankings.from_frame(table)
    assert rankings.offsets.tolist() == [0, 3, 5]
    assert rankings.rank.tolist() == [1, 2, 2, 1, 2]
    rows = rankings.as_preferences().frame().rows()
    assert ("x", "y", "left", "a") in rows
    assert ("y", "z", "tie", "a") in rows
    assert ("x", "y", "right", "b") in rows
    assert rankings.select(np.array([False, True])).item.tolist() == rankings.item[3:].tolist()
    assert rankings.across_queries().n_judgments == 2


def test_several_rankings_by_one_annotator():
    table = {"annotator": ["a"] * 4, "item": ["x", "y", "x", "y"], "rank": [1, 2, 2, 1]}
    with pytest.raises(JudgmentError, match="appears twice in one ranking, the second time in row 3"):
        Rankings.from_frame(table)
    assert Rankings.from_frame({**table, "ranking": [1, 1, 2, 2]}).n_judgments == 2


def test_a_rank_that_is_no_number():
    with pytest.raises(JudgmentError, match="rank is not a number in row 2"):
        Rankings.from_frame({"item": ["x", "y"], "rank": ["1", "last"]})


def test_weights_of_a_ranking_agree():
    table = {"annotator": ["a", "a"], "item": ["x", "y"], "rank": [1, 2], "weight": [2, 3]}
    with pytest.raises(JudgmentError, match="different weights"):
        Rankings.from_frame(table)


def test_a_method_for_another_kind_says_what_to_call():
    class Pairwise:
        kinds = ("preference",)

    with pytest.raises(JudgmentError, match=r"Pairwise takes preferences, not grades; .* with .as_preferences\(\)"):
        expect(Grades.from_frame(GRADES), Pairwise())
    with pytest.raises(JudgmentError, match="not a dict"):
        expect(GRADES, Pairwise())

    class Listwise:
        kinds = ("ranking",)

    with pytest.raises(
        JudgmentError, match=r"Listwise takes rankings, not grades; turn them into rankings first with .as_rankings\(\)"
    ):
        expect(Grades.from_frame(GRADES), Listwise())


def test_frames_go_round():
    for kind, table in ((Grades, GRADES), (Preferences, PREFERENCES)):
        judged = kind.from_frame(table)
        again = kind.from_frame(judged.frame())
        assert again.frame().equals(judged.frame())


def test_a_side_may_be_named_by_its_column():
    table = {"item_a": ["x", "y"], "item_b": ["y", "z"], "winner": ["item_a", "Item B"]}
    assert Preferences.from_frame(table).outcome.tolist() == [1, -1]


def test_an_exact_name_goes_before_one_in_capitals():
    assert Grades.from_frame({"Item": ["p"], "item": ["x"], "grade": [1]}).items.ids.to_list() == ["x"]


def test_very_large_ids_and_durations():
    grades = Grades.from_frame(
        {
            "item": pl.Series([2**63 + 1, 5], dtype=pl.UInt64),
            "grade": [1, 2],
            "time": pl.Series([1, 90], dtype=pl.Int64).cast(pl.Duration("ms")),
        }
    )
    assert grades.items.ids.to_list() == ["5", str(2**63 + 1)]
    assert grades.time.tolist() == [0.001, 0.09]


def test_a_repeated_judgment_is_named_by_its_row():
    table = {"item": ["x", "x"], "grade": [1, 2], "annotator": ["a", "a"]}
    with pytest.raises(JudgmentError, match=r"twice in row 2 \(item 'x', annotator 'a'\); drop"):
        Grades.from_frame(table, duplicates="error")


def test_one_text_is_no_list_of_annotators():
    with pytest.raises(JudgmentError, match="is one text"):
        Grades.from_wide({"item": ["x"], "j1": [1]}, "j1")
