"""Judgments of several kinds on one numbering of items and annotators."""

import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from tests.strategies import ROWS, judgments

from crowdrank.aggregators import BradleyTerry, MeanGrade
from crowdrank.data.judgments import Grades, Mixed, Preferences, Rankings, expect, parts_of, together
from crowdrank.errors import DataWarning, JudgmentError


def grades():
    return Grades.from_rows([("ann", "q1", "x", 3), ("bob", "q1", "y", 1), ("ann", "q2", "x", 2)])


def preferences():
    return Preferences.from_rows([("bob", "q1", "z", "x", "left"), ("eve", "q3", "x", "w", "tie")])


def rankings():
    return Rankings.from_rows(
        [("zoe", "q1", "x", 1), ("zoe", "q1", "z", 2), ("ann", "q2", "x", 1), ("ann", "q2", "v", 2)]
    )


def test_every_part_has_the_items_and_annotators_of_all():
    mixed = Mixed.of([rankings(), preferences(), grades()])
    assert mixed.kinds == ("grade", "preference", "ranking")
    assert list(mixed.annotators) == ["ann", "bob", "eve", "zoe"]
    assert mixed.items.frame().rows() == [
        ("q1", "x"), ("q1", "y"), ("q1", "z"), ("q2", "v"), ("q2", "x"), ("q3", "w"), ("q3", "x"),
    ]  # fmt: skip
    for part, alone in zip(mixed.parts, (grades(), preferences(), rankings()), strict=True):
        assert part.items is mixed.items
        assert part.annotators is mixed.annotators
        assert part.frame().equals(alone.frame())
    assert (mixed.n_judgments, mixed.n_items, mixed.n_queries, mixed.n_annotators) == (7, 7, 3, 4)
    assert mixed.judged_items.all()
    assert mixed.annotator.tolist() == [0, 1, 0, 1, 2, 3, 0]


def test_the_order_of_the_parts_does_not_matter():
    one, other = Mixed.of([grades(), preferences(), rankings()]), Mixed.of([rankings(), grades(), preferences()])
    assert one.frame().equals(other.frame())


def test_parts_of_one_kind_are_the_judgments_themselves():
    alone = grades()
    assert parts_of(alone) == (alone,)
    assert together([alone]).frame().equals(alone.frame())
    mixed = Mixed.of([grades(), preferences()])
    assert parts_of(mixed) is mixed.parts


def test_pieces_of_one_kind_become_one_part():
    whole = grades()
    pieces = [whole.select(np.array([2])), whole.select(np.array([0, 1]))]
    found = together(pieces)
    assert isinstance(found, Grades)
    assert found.frame().sort("query", "item").equals(whole.frame().sort("query", "item"))


def test_pieces_of_rankings_keep_their_bounds():
    found = together([rankings(), Rankings.from_rows([("kim", "q1", "z", 1), ("kim", "q1", "y", 2)])])
    assert isinstance(found, Rankings)
    assert found.offsets.tolist() == [0, 2, 4, 6]
    assert found.frame().filter(pl.col("annotator") == "kim")["item"].to_list() == ["z", "y"]


def test_weights_of_one_piece_only_are_ones_in_the_other():
    weighted = Grades.from_frame({"item": ["x"], "annotator": ["ann"], "grade": [1], "weight": [2.0]})
    plain = Grades.from_frame({"item": ["y"], "annotator": ["ann"], "grade": [2]})
    assert together([weighted, plain]).weight.tolist() == [2.0, 1.0]
    mixed = Mixed.of(
        [weighted, Preferences.from_frame({"left": ["x"], "right": ["y"], "annotator": ["ann"], "winner": ["tie"]})]
    )
    assert mixed.weight.tolist() == [2.0, 1.0]
    assert Mixed.of([grades(), preferences()]).weight is None


def test_numbers_and_text_as_ids_are_compared_as_text():
    numbers = Grades.from_frame({"item": [1, 2], "annotator": [7, 7], "grade": [1, 2]})
    texts = Preferences.from_frame({"left": ["1"], "right": ["3"], "annotator": ["7"], "winner": ["left"]})
    mixed = Mixed.of([numbers, texts])
    assert mixed.items.ids.to_list() == ["1", "2", "3"]
    assert list(mixed.annotators) == ["7"]


def test_one_query_named_in_one_part_only_is_the_query_of_both():
    bare = Preferences.from_frame({"left": ["x"], "right": ["y"], "annotator": ["ann"], "winner": ["left"]})
    mixed = Mixed.of([bare, Grades.from_rows([("ann", "q1", "x", 3)])])
    assert list(mixed.items.queries) == ["q1"]
    assert mixed.n_items == 2


def test_several_queries_and_none_do_not_go_together():
    bare = Preferences.from_frame({"left": ["x"], "right": ["y"], "annotator": ["ann"], "winner": ["left"]})
    with pytest.raises(JudgmentError, match="there is no query in the preferences but several in the grades"):
        Mixed.of([bare, grades()])


def test_kinds_with_nothing_in_common_are_only_tied_by_the_prior():
    strangers = Preferences.from_rows([("kim", "q9", "a", "b", "left")])
    with pytest.warns(DataWarning, match="the preferences share no item and no annotator with the grades.*the prior"):
        Mixed.of([grades(), strangers])


def test_a_third_kind_may_join_two_others():
    strangers = Preferences.from_rows([("kim", "q9", "a", "b", "left")])
    bridge = Rankings.from_rows([("kim", "q1", "x", 1), ("kim", "q1", "y", 2)])
    assert Mixed.of([grades(), strangers, bridge]).n_judgments == 5


def test_an_annotator_in_common_is_enough():
    assert Mixed.of([grades(), Preferences.from_rows([("ann", "q9", "a", "b", "left")])]).n_annotators == 2


def test_nominal_grades_are_refused():
    classes = Grades.from_rows([("ann", "q", "x", "cat")], nominal=True)
    with pytest.raises(JudgmentError, match=r"nominal grades have no order.*levels="):
        Mixed.of([classes, preferences()])


def test_a_part_without_annotators_beside_one_with_is_refused():
    nobody = Grades.from_frame({"query": ["q1"], "item": ["x"], "grade": [1]})
    with pytest.raises(JudgmentError, match="the grades do not say who gave them but the preferences do; add an"):
        Mixed.of([nobody, preferences()])


def test_nobody_may_be_named_at_all():
    nobody = Grades.from_frame({"item": ["x"], "grade": [1]})
    mixed = Mixed.of([nobody, Preferences.from_frame({"left": ["x"], "right": ["y"], "winner": ["left"]})])
    assert mixed.n_annotators == 0
    assert len(mixed.annotator) == 0


def test_things_that_are_no_judgments_are_refused():
    with pytest.raises(JudgmentError, match="a dict is not a set of judgments"):
        Mixed.of([{"item": ["x"]}])
    with pytest.raises(JudgmentError, match="there are no judgments to put together"):
        Mixed.of([])


def test_different_levels_of_two_pieces_are_refused():
    low = Grades.from_rows([("ann", "q", "x", "bad")], levels=["bad", "good"])
    high = Grades.from_rows([("ann", "q", "x", "fair")], levels=["bad", "fair", "good"])
    with pytest.raises(JudgmentError, match="different levels"):
        together([low, high])


def test_a_time_in_one_piece_only_is_left_out():
    timed = Grades.from_frame({"item": ["x"], "annotator": ["ann"], "grade": [1], "time": [5]})
    plain = Grades.from_frame({"item": ["y"], "annotator": ["ann"], "grade": [2]})
    for sets in ([timed, plain], [plain, timed]):
        with pytest.warns(DataWarning, match="the times of grades are left out, since 1 grades have none"):
            assert together(sets).time is None


def test_groups_go_along_where_every_annotator_has_one():
    table = {"item": ["x", "y"], "annotator": ["ann", "bob"], "grade": [1, 2], "group": ["g", "h"]}
    pairs = {"left": ["x"], "right": ["y"], "annotator": ["eve"], "winner": ["left"], "group": ["g"]}
    mixed = Mixed.of([Grades.from_frame(table), Preferences.from_frame(pairs)])
    assert mixed.groups is not None
    assert mixed.groups.ids.gather(mixed.group).to_list() == ["g", "h", "g"]
    bare = {word: column for word, column in pairs.items() if word != "group"}
    with pytest.warns(DataWarning, match="the groups of annotators are left out, since 1 of 3"):
        lacking = Mixed.of([Grades.from_frame(table), Preferences.from_frame(bare)])
    assert lacking.group is None
    with pytest.raises(JudgmentError, match="annotator 'ann' stands in two groups, 'g' and 'h'"):
        Mixed.of([Grades.from_frame(table), Preferences.from_frame({**pairs, "annotator": ["ann"], "group": ["h"]})])


def test_some_judgments_keep_items_and_annotators():
    mixed = Mixed.of([grades(), preferences(), rankings()])
    some = mixed.select(np.array([0, 4, 6, 6]))
    assert some.items is mixed.items
    assert some.annotators is mixed.annotators
    assert [len(part) for part in some.parts] == [1, 1, 2]
    assert some.kinds == mixed.kinds
    mask = np.zeros(7, bool)
    mask[3] = True
    assert mixed.select(mask).kinds == ("preference",)
    assert len(mixed.select(np.zeros(7, bool))) == 0


def test_other_weights_leave_out_what_weighs_nothing():
    mixed = Mixed.of([grades(), preferences(), rankings()])
    found = mixed.with_weights(np.array([0.0, 2, 1, 0, 0, 3, 0]))
    assert found.kinds == ("grade", "ranking")
    assert found.weight.tolist() == [2, 1, 3]


def test_across_queries_takes_equal_items_of_all_kinds_as_one():
    mixed = Mixed.of([grades(), preferences(), rankings()]).across_queries()
    assert mixed.items.single
    assert mixed.items.ids.to_list() == ["v", "w", "x", "y", "z"]
    assert all(part.items is mixed.items for part in mixed.parts)
    assert mixed.block.tolist() == [0, 0, 1, 0, 2, 0, 1]
    again = Mixed.of([part.across_queries() for part in (grades(), preferences(), rankings())])
    assert again.block.tolist() == mixed.block.tolist()


def test_all_of_it_as_rankings():
    mixed = Mixed.of([
        Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 1)]),
        Preferences.from_rows([("bob", "q", "x", "z", "left")]),
        Rankings.from_rows([("cid", "q", "z", 1), ("cid", "q", "x", 2)]),
    ])  # fmt: skip
    rankings = mixed.as_rankings()
    assert rankings.frame().select("annotator", "item", "rank").rows() == [
        ("ann", "x", 1), ("ann", "y", 2), ("bob", "x", 1), ("bob", "z", 2), ("cid", "z", 1), ("cid", "x", 2),
    ]  # fmt: skip
    assert rankings.items is mixed.items


def test_all_of_it_as_preferences():
    mixed = Mixed.of(
        [
            Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 1)]),
            Preferences.from_rows([("bob", "q", "y", "x", "left")]),
        ]
    )
    pairs = mixed.as_preferences()
    assert pairs.frame().select("left", "right", "winner", "annotator").rows() == [
        ("x", "y", "left", "ann"), ("y", "x", "left", "bob"),
    ]  # fmt: skip


def test_a_table_of_it_names_the_kind():
    frame = Mixed.of([grades(), preferences()]).frame()
    assert frame["kind"].to_list() == ["grade"] * 3 + ["preference"] * 2
    assert frame["winner"].to_list() == [None, None, None, "left", "tie"]


def test_a_method_of_one_kind_names_one_of_several():
    mixed = Mixed.of([grades(), preferences()])
    with pytest.raises(JudgmentError, match="BradleyTerry takes one kind of judgment, not grades and preferences tog"):
        BradleyTerry().fit(mixed)
    with pytest.raises(JudgmentError, match="use latent_score"):
        expect(mixed, MeanGrade())


def test_a_method_of_several_kinds_need_not_take_all():
    class Mixing:
        kinds = ("grade", "preference")
        mixes = True

    assert expect(Mixed.of([grades(), preferences()]), Mixing()).n_judgments == 5
    with pytest.raises(JudgmentError, match="Mixing takes no rankings"):
        expect(Mixed.of([grades(), rankings()]), Mixing())


@given(ROWS["grade"](), ROWS["preference"](), ROWS["ranking"]())
def test_no_judgment_is_lost_or_changed(grade_rows, preference_rows, ranking_rows):
    rows = {"ranking": ranking_rows, "grade": grade_rows, "preference": preference_rows}
    alone = {kind: judgments(kind, found) for kind, found in rows.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        mixed = Mixed.of(list(alone.values()))
    for part in mixed.parts:
        assert part.frame().equals(alone[part.kind].frame())
