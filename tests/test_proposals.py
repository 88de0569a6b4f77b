"""The verb propose: names, lists of items, pools, prices, and what it refuses."""

import warnings

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank import api
from crowdrank.data.judgments import with_items
from crowdrank.errors import JudgmentError, ParameterError, UnknownNameError
from crowdrank.io.notices import listen
from crowdrank.registry import card, label, make, names, resolve

VOTES = {"query": list("qqr"), "item": list("xyx"), "annotator": ["ann", "ann", "bob"], "grade": [3, 0, 2]}
COLUMNS = ["query", "item", "annotator", "n_more", "reason", "cost", "expected_gain"]


def test_a_table_comes_out():
    table = cr.propose(VOTES, "if-good-3")
    assert isinstance(table, pl.DataFrame)
    assert table.columns == COLUMNS
    assert sorted(table.select("query", "item", "n_more", "cost").rows()) == [("q", "x", 2, 2.0), ("r", "x", 2, 2.0)]


def test_names_with_numbers():
    assert make("scheme", "if-good-5").k == 5
    assert make("scheme", "IF_GOOD_2").k == 2
    assert make("scheme", "7-overlap").k == 7
    assert make("scheme", "good-till-bad-4").k == 4
    assert make("scheme", "pilot-3").k == 3
    assert make("scheme", "single").k == 1
    assert make("scheme", "if-good-k").k == 3
    assert make("scheme", "if-good-5", {"k": 2}).k == 2
    assert resolve("scheme", "if-good-11") == "if_good_k"
    assert label("scheme", "If-Good-11") == "if-good-11"
    assert label("scheme", "k-overlap") == "k_overlap"
    for wrong in ("if-good-3-4", "overlap-3", "if-good-x", "3-3"):
        with pytest.raises(UnknownNameError, match="there is no scheme"):
            make("scheme", wrong)


def test_every_scheme_tells_of_itself():
    for name in names("scheme"):
        found = card("scheme", name)
        assert found.kinds
        assert all(parameter.description for parameter in found.parameters), name
        assert set(make("scheme", name).needs) <= set(found.kinds)


def test_auto_takes_a_scheme_that_fits_and_says_why(small):
    pairs = {"left": list("xyxz"), "right": list("yzzx"), "winner": ["left"] * 3 + ["right"]}
    cases = [
        ({**pairs, "annotator": list("abab")}, "information", "these are preferences"),
        (pairs, "information", "these are preferences"),
        (VOTES, "if-good-3", "these are grades"),
        ({"item": list("xyz"), "annotator": list("aab"), "grade": [0, 1, 1]}, "agreement", "no grade is 2 or better"),
        ({"item": list("xyz"), "annotator": list("aab"), "grade": [3, 4, 4]}, "agreement", "no grade is below 2"),
        ({"item": [f"i{n}" for n in range(40)], "grade": np.linspace(0, 1, 40)}, "3-overlap", "too many levels"),
    ]
    for votes, scheme, reason in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cr.errors.DataWarning)
            found = api.requests(votes, budget=3)
            assert found.frame().equals(cr.propose(votes, scheme, budget=3))
        assert found.scheme == scheme
        assert found.notes[0].startswith(f"scheme {scheme}, since ")
        assert reason in found.notes[0]
    with pytest.raises(JudgmentError, match="no scheme takes rankings; turn them into preferences"):
        cr.propose(small["ranking"])


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
def test_goals():
    votes = {
        "query": ["q"] * 6 + ["r"], "annotator": ["ann", "bob"] * 3 + ["ann"], "left": list("abcabcx"),
        "right": list("bcdcday"), "winner": ["left"] * 7,
    }  # fmt: skip
    found = api.requests(votes, goal="top-2", budget=4)
    assert found.measure == "number of items wrongly in the top 2"
    assert 0 < found.expected_gain < found.before <= 2
    assert set(found.frame()["query"]) == {"q"}
    assert "nothing is asked for top-2 in 1 of 2 queries: no more than 2 items" in found.notes
    assert found.frame()["reason"].str.contains("at the edge of the top 2; one more answer|places").all()
    named = cr.propose(votes, "information", params={"goal": "top-2"}, budget=4)
    assert named.equals(found.frame())
    with pytest.raises(ParameterError, match="as no query has more than 4 items; name at most top-3"):
        cr.propose(votes, goal="top-4")
    for wrong in ("first", "top-", "top-x", "top-1.5", "top--3", ""):
        with pytest.raises(ParameterError, match="is not known; use order, best, top-5"):
            cr.propose(votes, "information", goal=wrong)
    with pytest.raises(ParameterError, match="2-overlap has no goal; leave the goal out"):
        cr.propose(votes, "2-overlap", goal="best")
    with pytest.raises(ParameterError, match="goal= goes with the name of a scheme"):
        cr.propose(votes, cr.schemes.Information(), goal="best")


def test_campaigns_with_a_goal():
    truth = {"item": [f"i{n}" for n in range(12)], "grade": range(12)}
    options = {"annotators": 8, "noise": "flip(0.2)", "kind": "preference", "n_rounds": 3, "n_seeds": 1}
    one, other = (cr.campaigns(truth, ["single", "information"], 45, goal=goal, **options) for goal in (None, "best"))
    assert one.filter(scheme="single").equals(other.filter(scheme="single"))
    assert not one.equals(other)
    with pytest.raises(ParameterError, match="none of single, 2-overlap has a goal; add information"):
        cr.campaigns(truth, ["single", "2-overlap"], 45, goal="best", **options)


def test_an_unknown_scheme_names_the_nearest():
    with pytest.raises(
        UnknownNameError, match=r"there is no scheme 'if-god-3'; did you mean 'if-good-3'\? known: agree"
    ):
        cr.propose(VOTES, "if-god-3")
    with pytest.raises(ParameterError, match=r"if_good_k has no parameter 'kk'; did you mean 'k'\?"):
        cr.propose(VOTES, "if_good_k", params={"kk": 2})


def test_a_scheme_itself_does_as_well():
    scheme = cr.schemes.IfGoodK(k=2)
    assert cr.propose(VOTES, scheme).equals(cr.propose(VOTES, "if-good-2"))
    with pytest.raises(ParameterError, match="params= goes with the name of a scheme"):
        cr.propose(VOTES, scheme, params={"k": 2})


def test_listed_items_may_be_asked_about_and_no_others():
    items = {"query": ["q", "q", "s"], "item": ["x", "new", "x"]}
    table = cr.propose(VOTES, "single", items)
    assert sorted(table.select("query", "item", "reason").rows()) == [
        ("q", "new", "not judged yet"), ("s", "x", "not judged yet"),
    ]  # fmt: skip
    more = cr.propose(VOTES, "2-overlap", items)
    assert set(more.select("query", "item").rows()) == {("q", "x"), ("q", "new"), ("s", "x")}


def test_the_closing_line_says_what_could_be_asked_about():
    heard = []
    listen(heard.append)
    cr.propose(VOTES, "if-good-3", budget=3)
    cr.propose(VOTES, "if-good-3", VOTES)
    listen(None)
    assert heard[0].startswith("3 requests about 2 items, cost 3; expected to lower the squared error")
    assert heard[0].endswith("; 1 more would be wanted beyond the budget")
    assert heard[1] == "only items that were judged already are asked about; list all with items="
    assert len(heard) == 3


def test_the_name_asked_for_stands_in_the_result():
    assert api.requests(VOTES, "single").sentence() == "nothing to ask: single wants nothing more"


def test_pools_and_prices(tmp_path):
    pool = {"annotator": ["ann", "bob", "cy"], "price": [1, 2, 5]}
    table = cr.propose(VOTES, "if-good-3", pool=pool)
    assert sorted(table.select("query", "annotator", "cost").rows()) == [
        ("q", "bob", 2.0), ("q", "cy", 5.0), ("r", "ann", 1.0), ("r", "cy", 5.0),
    ]  # fmt: skip
    pl.DataFrame(pool).write_csv(tmp_path / "pool.csv")
    pl.DataFrame(VOTES).write_csv(tmp_path / "v.csv")
    again = cr.propose(tmp_path / "v.csv", "if-good-3", tmp_path / "v.csv", str(tmp_path / "pool.csv"))
    assert again.equals(table)
    assert cr.propose(VOTES, "if-good-3", price=3)["cost"].to_list() == [6, 6]
    assert cr.propose(VOTES, "if-good-3", price={"grade": 2})["cost"].to_list() == [4, 4]
    roster = api.proposals.Roster.from_frame(pool)
    assert cr.propose(VOTES, "if-good-3", pool=roster).equals(table)


def test_schemes_that_need_a_consensus_get_one():
    rows = [(f"a{a}", "q", f"i{n}", int(a < n)) for n in range(6) for a in range(5)]
    grades = cr.Grades.from_rows(rows)
    told = []
    own = cr.propose(grades, "agreement", progress=lambda done, total, what: told.append(what))
    assert told == ["finding the consensus", "choosing what to ask"]
    named = cr.propose(grades, "agreement", consensus="dawid_skene")
    given = cr.propose(grades, "agreement", consensus=cr.aggregate(grades, "dawid_skene"))
    assert own.equals(named)
    assert own.equals(given)
    assert not own.equals(cr.propose(grades, "agreement", consensus=cr.aggregators.MajorityVote()))


def test_listed_pairs_may_be_asked_about_and_no_others():
    votes = {
        "query": ["q"] * 3,
        "left": list("xyx"),
        "right": list("yzz"),
        "winner": ["left"] * 3,
        "annotator": ["ann"] * 3,
    }
    pairs = {"query": ["q", "q", "r", "q"], "left": list("xxay"), "right": list("yvbx")}
    with pytest.warns(cr.errors.DataWarning):
        tables = [cr.propose(votes, scheme, pairs, budget=9) for scheme in ("2-overlap", "uncertainty", "information")]
    for table in tables:
        found = {(query, *sorted(pair)) for query, *pair in table.select("query", "left", "right").rows()}
        assert found == {("q", "x", "y"), ("q", "v", "x"), ("r", "a", "b")}
    with pytest.raises(JudgmentError, match="row 1 of the list of pairs has the same item on both sides"):
        cr.propose(votes, "single", {"query": ["q"], "left": ["x"], "right": ["x"]})
    with pytest.raises(JudgmentError, match="no item column"):
        cr.propose(VOTES, "single", pairs)


def test_one_query_without_a_name():
    votes = {name: VOTES[name][:2] for name in ("item", "annotator", "grade")}
    assert cr.propose(votes, "single", {"item": ["x", "z"]})["item"].to_list() == ["z"]
    with pytest.raises(JudgmentError, match="the list of items names queries and the judgments do not"):
        cr.propose(votes, "single", {"query": ["q"], "item": ["x"]})


def test_lists_that_cannot_be():
    with pytest.raises(JudgmentError, match="no query column but the judgments name several queries"):
        cr.propose(VOTES, "single", {"item": ["x"]})
    with pytest.raises(JudgmentError, match="row 2 of the list of items has a blank query or item id"):
        cr.propose(VOTES, "single", {"query": ["q", "q"], "item": ["x", " "]})
    with pytest.raises(JudgmentError, match="no item column"):
        cr.propose(VOTES, "single", {"query": ["q"]})


@pytest.mark.parametrize("kind", ["grade", "preference", "ranking"])
def test_further_items_leave_judgments_as_they_are(small, kind):
    judged = small[kind]
    items = {"query": ["q1", "q0", "q9"], "item": ["zz", "x", "x"]}
    more, listed = with_items(judged, items)
    assert more.frame().equals(judged.frame())
    assert listed.sum() == 3
    assert more.n_items >= judged.n_items + 2


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_must_buy_something(budget):
    with pytest.raises(ParameterError, match=f"budget={budget} buys nothing; give a budget above 0"):
        cr.propose(VOTES, "if-good-3", budget=budget)


def test_a_price_missing_in_the_pool():
    with pytest.raises(JudgmentError, match=r"the price is missing in row 2 \('bob'\) of the pool; give one"):
        cr.propose(VOTES, "if-good-3", pool={"annotator": ["ann", "bob"], "price": [1, None]})


def test_nobody_left_is_reported_and_not_looped_over():
    found = api.requests(VOTES, "9-overlap", pool={"annotator": ["ann", "bob"]})
    assert found.n_judgments == 3
    assert found.n_nobody == 21
    assert found.sentence().endswith("nobody is left for 21 more")


def test_grades_outside_the_scale():
    with pytest.raises(JudgmentError, match=r"the grade is none of the levels Bad, Good in row 1 \(item 'x'\)"):
        cr.propose(cr.Grades.from_frame({"item": ["x"], "grade": ["Great"]}, levels=["Bad", "Good"]))
    with pytest.raises(JudgmentError, match="NaN or infinite"):
        cr.propose({"item": ["x"], "grade": [np.inf]})


def test_a_kind_that_the_scheme_does_not_take(small):
    with pytest.raises(JudgmentError, match="takes grades, not preferences; choose a scheme that takes preferences"):
        cr.propose(small["preference"], "if-good-3")
    with pytest.raises(JudgmentError, match="not rankings"):
        cr.propose(small["ranking"], "single")


def test_nothing_writes_to_the_judgments(small):
    before = small["grade"].frame()
    cr.propose(small["grade"], "if-good-3", {"query": ["q1"], "item": ["x"]}, {"annotator": ["new"]})
    assert small["grade"].frame().equals(before)


def test_another_order_of_rows_changes_nothing_where_there_are_times():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({
        "item": [f"i{n % 40}" for n in range(120)], "annotator": [f"a{n // 40}" for n in range(120)],
        "grade": rng.integers(0, 5, 120), "time": rng.permutation(120),
    })  # fmt: skip
    for scheme in ("if-good-5", "good_till_bad", "4-overlap", "pilot"):
        one, other = (
            cr.propose(rows, scheme, budget=30) for rows in (table, table.sample(fraction=1, shuffle=True, seed=1))
        )
        assert one.drop("expected_gain").equals(other.drop("expected_gain"))
        np.testing.assert_allclose(one["expected_gain"], other["expected_gain"])
