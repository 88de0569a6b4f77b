"""What every aggregator promises, taken from the registry; what cannot hold is skipped by name, with the reason."""

import dataclasses
import json
import pickle
import re
import typing
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import KINDS, ROWS, judgments, table, tied_rows, weights

import crowdrank as cr
from crowdrank.data.judgments import Grades
from crowdrank.errors import ConvergenceWarning, DataWarning, JudgmentError, ParameterError
from crowdrank.io import from_json, to_json
from crowdrank.io.notices import collect_notices
from crowdrank.registry import card, make, method_class, names

CASES = [(name, kind) for name in names("aggregator") for kind in card("aggregator", name).kinds]

SLACK = {"latent_score": 1e-6, "location_scale": 1e-6}
"""Method -> how much names may change a score: sums in another order differ in last digits, which rounds add to."""

FEW = min(12, settings.default.max_examples)

CANNOT = {
    "quality_of_one": {"latent_score": "whoever nothing is known of is taken for an average annotator, not a guesser"},
    "row_order": {
        "elo": "Elo depends on the order of the rows where there is no time",
        "single": "the first grade is that of the first row where there is no time",
    },
    "weight": {
        "elo": "two games are played one after the other, a weight of two at once",
        "trimmed_mean": "numbers of grades are trimmed, whatever their weights",
    },
    "reversal": {
        "condorcet": "the coins for pairs that never met do not turn round with the judgments",
        "crowd_agg": "a discount is convex, so that the top gains more by a place than the bottom loses",
        "greedy_order": "the order is made from the top, so that its errors gather at the bottom",
        "highest_grade": "the highest of reversed grades is the lowest of the grades",
        "mean_gain": "gains double with each grade, so that high grades weigh more than low ones",
        "majority_vote": "of two tied grades the better is taken, so reversing takes the worse",
        "plackett_luce": "to choose the best first and to choose the worst first are different models",
        "rank_centrality": "a walk from winners to losers spends its time where losers gather, not away from winners",
    },
}


def skip_if_it_cannot(promise, name):
    if name in CANNOT[promise]:
        pytest.skip(CANNOT[promise][name])


def fitted(name, judged):
    """Fit without the warnings about tiny data, which tests of each method look at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return make("aggregator", name, seed=3).fit(judged)


def by_id(consensus):
    """Scores by (query, item)."""
    items = consensus.items
    return dict(zip(zip(items.query_ids(), items.ids, strict=True), consensus.scores, strict=True))


NEW_NAMES = {
    "ann": "z9", "bob": "y8", "eve": "x7", "q1": "r2", "q2": "r1", "a": "é", "b": "10", "c": "9", "d": " D",
}  # fmt: skip
"""Names that change the order of annotators, queries and items."""


def renamed(rows):
    """The same rows under the new names."""
    return [tuple(NEW_NAMES.get(cell, cell) for cell in row) for row in rows]


def found_of(consensus, rename=lambda name: name):
    """Rank and grade by (query, item), and the quality of annotators to nine digits, under the old names."""
    items, back = consensus.items, {rename(old).strip(): old for old in NEW_NAMES}
    keys = [(back[query], back[item]) for query, item in zip(items.query_ids(), items.ids, strict=True)]
    grades = consensus.labels().to_list() if consensus.grade is not None else [None] * len(keys)
    quality = consensus.quality.frame()
    of_annotators = {
        back[who]: pytest.approx(value, abs=1e-5) for who, value in quality.select("annotator", "quality").rows()
    }
    return dict(zip(keys, zip(consensus.ranks().tolist(), grades, strict=True), strict=True)), of_annotators


@pytest.mark.parametrize(("name", "kind"), CASES)
@given(data=st.data())
def test_scores_are_finite_and_the_same_each_time(name, kind, data):
    judged = judgments(kind, data.draw(ROWS[kind]()))
    first, second = fitted(name, judged), fitted(name, judged)
    assert np.isfinite(first.scores).all()
    np.testing.assert_array_equal(first.scores, second.scores)
    assert first.ranks().min() == 1
    frame = first.quality.frame()
    assert frame["quality"].is_finite().all()
    assert ((frame["lower"] <= frame["quality"]) & (frame["quality"] <= frame["upper"])).all()
    assert frame["quality"].is_between(0, 1).all()


@pytest.mark.parametrize(("name", "kind"), CASES)
@given(data=st.data())
def test_row_order_does_not_matter(name, kind, data):
    skip_if_it_cannot("row_order", name)
    rows = data.draw(ROWS[kind]())
    shuffled = data.draw(st.permutations(rows))
    one, other = fitted(name, judgments(kind, rows)), fitted(name, judgments(kind, shuffled))
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "kind"), CASES)
@given(data=st.data())
def test_names_do_not_matter(name, kind, data):
    rows = data.draw(ROWS[kind]())
    one, other = by_id(fitted(name, judgments(kind, rows))), by_id(fitted(name, judgments(kind, renamed(rows))))
    for (query, item), score in one.items():
        within = SLACK.get(name, 1e-8)
        assert other[NEW_NAMES[query], NEW_NAMES[item].strip()] == pytest.approx(score, abs=within)


@pytest.mark.parametrize(("name", "kind"), CASES)
@given(data=st.data())
def test_a_row_twice_is_weight_two(name, kind, data):
    skip_if_it_cannot("weight", name)
    if kind == "ranking":
        pytest.skip("an item may stand but once in a ranking")
    rows = data.draw(ROWS[kind]())
    twice = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    doubled = rows + [row for row, again in zip(rows, twice, strict=True) if again]
    weighted = table(kind, rows).with_columns(weight=pl.Series([2 if again else 1 for again in twice]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        one, other = judgments(kind, doubled), KINDS[kind].from_frame(weighted)
    np.testing.assert_allclose(fitted(name, one).scores, fitted(name, other).scores, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("name", "kind"), CASES)
@settings(max_examples=FEW)
@given(data=st.data())
def test_ties_stay_ties_in_another_order_and_under_other_names(name, kind, data):
    rows = data.draw(tied_rows(kind))
    weight = data.draw(st.none() | weights(kind, rows))
    found = found_of(fitted(name, judgments(kind, rows, weight)))
    others = [found_of(fitted(name, judgments(kind, renamed(rows), weight)), NEW_NAMES.get)]
    if name not in CANNOT["row_order"]:
        order = data.draw(st.permutations(range(len(rows))))
        shuffled = judgments(kind, [rows[k] for k in order], weight and [weight[k] for k in order])
        others.append(found_of(fitted(name, shuffled)))
    for other in others:
        assert found == other


@pytest.mark.parametrize(("name", "kind"), CASES)
@settings(max_examples=FEW)
@given(data=st.data())
def test_ties_stay_ties_when_rows_stand_twice(name, kind, data):
    skip_if_it_cannot("weight", name)
    if kind == "ranking":
        pytest.skip("an item may stand but once in a ranking")
    rows = data.draw(tied_rows(kind))
    twice = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        doubled = judgments(kind, rows + [row for row, again in zip(rows, twice, strict=True) if again])
    one, other = fitted(name, doubled), fitted(name, judgments(kind, rows, [1 + again for again in twice]))
    assert found_of(one)[0] == found_of(other)[0]


@pytest.mark.parametrize(("name", "kind"), CASES)
@settings(max_examples=FEW)
@given(data=st.data())
def test_items_with_the_same_answers_share_a_rank(name, kind, data):
    skip_if_it_cannot("row_order", name)
    rows = data.draw(tied_rows(kind))
    if kind == "preference":
        # every answer about a is given about b as well, and both are equal to each other
        rows = [row for row in rows if "b" not in row[2:4]]
    else:
        rows = [row for row in rows if row[2] != "b"]
    twins = [tuple("b" if cell == "a" else cell for cell in row) for row in rows if "a" in row[2:4]]
    weight = data.draw(st.none() | weights(kind, rows))
    if weight is not None:
        weight = weight + [each for each, row in zip(weight, rows, strict=True) if "a" in row[2:4]]
    consensus = fitted(name, judgments(kind, rows + twins, weight))
    ranks = dict(
        zip(zip(consensus.items.query_ids(), consensus.items.ids, strict=True), consensus.ranks(), strict=True)
    )
    assert all(ranks[query, "a"] == ranks[query, "b"] for query in ("q1", "q2"))


@pytest.mark.parametrize(("name", "kind"), CASES)
@given(data=st.data())
def test_reversed_judgments_reverse_the_order(name, kind, data):
    skip_if_it_cannot("reversal", name)
    rows = data.draw(ROWS[kind]())
    turn = {
        "grade": lambda row: (*row[:3], 4 - row[3]),
        "preference": lambda row: (*row[:4], {"left": "right", "right": "left", "tie": "tie"}[row[4]]),
        "ranking": lambda row: (*row[:3], 10 - row[3]),
    }[kind]
    one = fitted(name, judgments(kind, rows))
    other = fitted(name, judgments(kind, [turn(row) for row in rows]))
    gaps, turned = np.subtract.outer(one.scores, one.scores), np.subtract.outer(other.scores, other.scores)
    same = one.items.query[:, None] == one.items.query[None, :]
    np.testing.assert_allclose(gaps[same], -turned[same], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_nothing_writes_to_the_judgments(name, kind, small):
    before = small[kind].frame()
    fitted(name, small[kind])
    assert small[kind].frame().equals(before)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_one_row_one_annotator_one_item(name, kind):
    row = {"grade": ("ann", "q", "x", 1), "preference": ("ann", "q", "x", "y", "left"), "ranking": ("ann", "q", "x", 1)}
    consensus = fitted(name, judgments(kind, [row[kind]]))
    assert np.isfinite(consensus.scores).all()
    if name not in CANNOT["quality_of_one"]:
        assert consensus.quality.quality.tolist() == [0.5]
    assert consensus.order("q")[0] == "x"


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_items_and_queries_nobody_judged(name, kind, small):
    items = {"query": ["q1", "q9", "q9"], "item": ["zz", "x", "y"]}
    judged = KINDS[kind].from_frame(small[kind].frame(), items=items)
    consensus = fitted(name, judged)
    assert np.isfinite(consensus.scores).all()
    assert len(consensus.order("q9")) == 2
    plain = by_id(fitted(name, small[kind]))
    with_more = by_id(consensus)
    inside = [key for key in plain if key[0] == "q2"]
    for one in inside:
        for other in inside:
            gap = with_more[one] - with_more[other]
            assert gap == pytest.approx(plain[one] - plain[other], abs=1e-7)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_annotators_may_be_missing(name, kind, small):
    consensus = fitted(name, KINDS[kind].from_frame(small[kind].frame().drop("annotator")))
    assert consensus.quality is None
    assert np.isfinite(consensus.scores).all()


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_results_go_through_json(name, kind, small):
    consensus = fitted(name, small[kind])
    again = from_json(json.loads(json.dumps(to_json(consensus), allow_nan=False)))
    assert again.frame().equals(consensus.frame())
    assert again.quality.frame().equals(consensus.quality.frame())
    assert again.trace == consensus.trace
    assert again.method == consensus.method


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_consensus_is_pickled_before_its_quality_is_measured(name, kind, small):
    made = fitted(name, small[kind])
    copy = pickle.loads(pickle.dumps(made))
    assert (copy.quality is None) == (made.quality is None)
    assert copy.quality is None or copy.quality.frame().equals(made.quality.frame())


def test_a_consensus_with_covariates_is_pickled_too(small):
    rows = small["preference"].frame()
    lengths = pl.int_range(rows.height, eager=True)
    sided = rows.with_columns(length_left=lengths % 7, length_right=lengths % 5)
    made = cr.aggregate(cr.Preferences.from_frame(sided, covariates=["length"]), "bradley_terry", control=["length"])
    assert pickle.loads(pickle.dumps(made)).quality.frame().equals(made.quality.frame())


@pytest.mark.parametrize("name", names("aggregator"))
def test_another_kind_is_refused_with_a_remedy(name, small):
    kinds = card("aggregator", name).kinds
    for kind, judged in small.items():
        if kind not in kinds:
            with pytest.raises(JudgmentError, match=f"not {kind}s; ") as refused:
                make("aggregator", name).fit(judged)
            assert ("as_preferences" in str(refused.value)) == ("preference" in kinds)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_where_no_judgment_is_left_all_items_stand_where_they_begin(name, kind, small):
    judged = small[kind]
    consensus = fitted(name, judged.select(np.zeros(len(judged), bool)))
    begin = {"elo": 1000.0, "em_elo": 1000.0, "median_rank": -1.0}.get(name, 0.0)
    assert consensus.scores.tolist() == [begin] * judged.n_items
    assert consensus.trace.converged
    assert consensus.grade is None


@pytest.mark.parametrize("name", names("aggregator"))
def test_nominal_grades_go_to_class_methods_only(name):
    if "grade" not in card("aggregator", name).kinds:
        pytest.skip("takes no grades")
    grades = Grades.from_rows(
        [("ann", "q", "x", "cat"), ("bob", "q", "x", "dog"), ("cid", "q", "x", "cat")], nominal=True
    )
    if card("aggregator", name).nominal:
        assert make("aggregator", name).fit(grades).frame()["grade"].to_list() == ["cat"]
    else:
        with pytest.raises(JudgmentError, match="nominal"):
            make("aggregator", name).fit(grades)


def choices(name):
    """Every parameter of a method that is yes or no or one of some words, with each of its values."""
    method = method_class("aggregator", name)
    hints = typing.get_type_hints(method)
    for field in dataclasses.fields(method):
        kinds = typing.get_args(hints[field.name]) or (hints[field.name],)
        values = [*([False, True] if bool in kinds else []), *([None] if type(None) in kinds else [])]
        if str in kinds:
            # the message that refuses another word names all of them
            with pytest.raises(ParameterError, match="is not known") as refused:
                make("aggregator", name, {field.name: "no such word"})
            values += re.findall(r"'([a-z_]+)'", str(refused.value).split(";")[1])
        if bool in kinds or str in kinds:
            assert field.default in values
            yield from ((field.name, value) for value in values)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_errors_that_nobody_asked_for_do_not_fail(name, kind, small):
    judged = small[kind]
    if kind == "preference":
        rows = judged.frame()
        swapped = rows.rename({"left": "right", "right": "left"}).with_columns(
            winner=pl.col("winner").replace({"left": "right", "right": "left"})
        )
        judged = cr.Preferences.from_frame(pl.concat([rows, swapped.select(rows.columns)]))
    for field, value in choices(name):
        for these in (judged, judged.across_queries()):
            with warnings.catch_warnings(), collect_notices() as notices:
                warnings.simplefilter("ignore", DataWarning)
                # gradient steps as printed end where they end
                warnings.simplefilter("ignore" if value == "printed" else "error", ConvergenceWarning)
                given = {"params": {field: value}, **({"trusted": ["ann"]} if field == "taste" and value else {})}
                try:
                    consensus = cr.aggregate(these, name, **given)
                except (ParameterError, JudgmentError) as error:
                    # what the method itself refuses
                    with pytest.raises(type(error), match=re.escape(str(error))):
                        cr.aggregate(these, name, robust="none", **given)
                    continue
            said = [text for text in notices if "standard errors are the model's" in text]
            if consensus.std_error is None or kind != "preference":
                assert not said
                continue
            # both orders were asked of everybody, so errors allow for that, or it is said once that they do not
            assert np.isfinite(consensus.std_error).all()
            assert len(said) == (consensus.trace.errors is None), (field, value)
