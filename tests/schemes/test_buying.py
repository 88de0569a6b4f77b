"""How requests are bought: prices, capacities, budgets, nobody twice, and when nothing is worth its price."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdrank as cr
from crowdrank.data.judgments import Grades, Preferences
from crowdrank.data.proposals import UNLIMITED, Roster, price_of
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.schemes import IfGoodK, KOverlap
from crowdrank.schemes.situation import Situation

GRADES = Grades.from_rows([("ann", "q", "x", 3), ("bob", "q", "x", 2), ("ann", "q", "y", 2), ("cy", "q", "z", 0)])


def roster(**prices):
    """Annotators with prices and no limits."""
    return Roster.from_frame({"annotator": list(prices), "price": list(prices.values())})


def test_without_a_pool_requests_leave_open_whom_to_ask():
    requests = KOverlap(k=3).propose(Situation.of(GRADES, price=2.5))
    frame = requests.frame()
    assert frame.columns == ["query", "item", "annotator", "n_more", "reason", "cost", "expected_gain"]
    assert frame["annotator"].null_count() == len(frame)
    assert dict(frame.select("item", "n_more").rows()) == {"x": 1, "y": 2, "z": 2}
    assert dict(frame.select("item", "cost").rows()) == {"x": 2.5, "y": 5, "z": 5}
    assert requests.cost == 12.5
    assert requests.n_judgments == 5
    assert len(requests.units()) == 5


def test_with_a_pool_each_request_names_somebody_new():
    frame = KOverlap(k=3).propose(Situation.of(GRADES, roster=roster(ann=1, bob=1, cy=1, dan=1))).frame()
    assert frame["n_more"].to_list() == [1] * 5
    asked = set(frame.select("item", "annotator").rows())
    assert len(asked) == 5
    assert not asked & {("x", "ann"), ("x", "bob"), ("y", "ann"), ("z", "cy")}


def test_the_cheapest_are_asked_first():
    frame = KOverlap(k=2).propose(Situation.of(GRADES, roster=roster(ann=3, bob=1, dan=2))).frame()
    assert dict(frame.select("item", "annotator").rows()) == {"y": "bob", "z": "bob"}
    assert frame["cost"].to_list() == [1, 1]
    frame = KOverlap(k=3).propose(Situation.of(GRADES, roster=roster(ann=3, bob=1, dan=2))).frame()
    assert sorted(frame.select("item", "annotator", "cost").rows()) == [
        ("x", "dan", 2), ("y", "bob", 1), ("y", "dan", 2), ("z", "bob", 1), ("z", "dan", 2),
    ]  # fmt: skip


def test_capacities_are_kept():
    pool = Roster.from_frame({"annotator": ["dan", "eve"], "price": [1, 5], "capacity": [1, 2]})
    requests = KOverlap(k=3).propose(Situation.of(GRADES, roster=pool))
    counts = dict(requests.frame()["annotator"].value_counts().rows())
    assert counts == {"dan": 1, "eve": 2}
    assert requests.n_nobody == 2
    assert "nobody is left for 2 more" in requests.sentence()


def test_who_has_no_capacity_is_not_asked():
    pool = Roster.from_frame({"annotator": ["dan", "eve"], "price": [1, 5], "capacity": [0, None]})
    assert set(KOverlap(k=2).propose(Situation.of(GRADES, roster=pool)).frame()["annotator"]) == {"eve"}


def test_nobody_left_is_reported():
    requests = KOverlap(k=5).propose(Situation.of(GRADES, roster=roster(ann=1, bob=1, cy=1)))
    assert requests.n_nobody == 6
    assert len(requests) == 5
    alone = IfGoodK(k=3).propose(Situation.of(GRADES, roster=roster(ann=1)))
    assert len(alone) == 0
    assert alone.sentence() == (
        "nothing to ask: nobody is left who could be asked about what if_good_k wants; add annotators to the pool"
    )


def test_the_budget_is_kept_and_what_lies_beyond_is_counted():
    requests = KOverlap(k=3).propose(Situation.of(GRADES, budget=3.9))
    assert requests.cost == 3
    assert requests.n_unaffordable == 2
    assert "2 more would be wanted beyond the budget" in requests.sentence()
    dear = KOverlap(k=3).propose(Situation.of(GRADES, budget=0.5))
    assert dear.sentence() == "nothing to ask: the budget does not pay for a single judgment; raise it"
    named = KOverlap(k=3).propose(Situation.of(GRADES, roster=roster(bob=1, dan=2), budget=4))
    assert named.cost == 4
    assert named.n_unaffordable == 2


def test_a_tenth_ten_times_is_one():
    requests = KOverlap(k=30).propose(
        Situation.of(GRADES, roster=roster(**{f"a{n}": 0.1 for n in range(40)}), budget=1)
    )
    assert len(requests) == 10


def test_nothing_left_is_worth_its_price():
    full = KOverlap(k=3).propose(Situation.of(GRADES))
    best = float((full.gains / full.costs).max())
    requests = KOverlap(k=3).propose(Situation.of(GRADES, least_gain=2 * best))
    assert len(requests) == 0
    assert requests.sentence() == "nothing to ask: nothing left is worth its price"
    some = KOverlap(k=3).propose(Situation.of(GRADES, least_gain=best / 4))
    assert 0 < some.n_judgments < full.n_judgments
    assert (some.gains / some.costs >= best / 4).all()
    dear = KOverlap(k=3).propose(Situation.of(GRADES, roster=roster(dan=100, eve=100), least_gain=best / 4))
    assert len(dear) == 0
    assert dear.n_unworthy == 5


def test_nothing_more_is_wanted():
    requests = KOverlap(k=1).propose(Situation.of(GRADES))
    assert requests.sentence() == "nothing to ask: k_overlap wants nothing more"
    assert requests.frame().is_empty()


def test_the_closing_sentence():
    requests = IfGoodK(k=3).propose(Situation.of(GRADES))
    before, after = requests.before, requests.before - requests.expected_gain
    assert requests.sentence() == (
        f"3 requests about 2 items, cost 3; expected to lower the squared error of the items' gains "
        f"by {100 * requests.expected_gain / before:.1f} % (from {before:.4g} to {after:.4g})"
    )
    assert repr(requests) == "Requests(3 judgments, cost 3, scheme if_good_k)"


def test_the_same_seed_gives_the_same_requests():
    situation = {"roster": roster(**{f"a{n}": 1 for n in range(9)})}
    first, second, other = (
        KOverlap(k=4).propose(Situation.of(GRADES, seed=seed, **situation)).frame() for seed in (1, 1, 2)
    )
    assert first.equals(second)
    assert not first.equals(other)


def test_the_load_is_shared_among_equals():
    grades = Grades.from_rows([("ann", "q", f"i{n}", 1) for n in range(1000)])
    frame = KOverlap(k=2).propose(Situation.of(grades, roster=roster(**{f"a{n}": 1 for n in range(10)}))).frame()
    assert frame["annotator"].value_counts()["count"].is_between(60, 140).all()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_promises_hold_whatever_the_pool(data):
    names, items = [f"a{n}" for n in range(5)], [f"i{n}" for n in range(6)]
    cells = data.draw(st.sets(st.tuples(st.sampled_from(names), st.sampled_from(items)), min_size=1))
    grades = Grades.from_rows([(who, "q", item, data.draw(st.integers(0, 4))) for who, item in sorted(cells)])
    some = data.draw(st.sets(st.sampled_from([*names, "new"]), min_size=1))
    table = {
        "annotator": sorted(some),
        "price": [data.draw(st.sampled_from([0.5, 1.0, 3.0])) for _ in some],
        "capacity": [data.draw(st.sampled_from([None, 0, 1, 3])) for _ in some],
    }
    budget = data.draw(st.sampled_from([None, 1.0, 4.0, 100.0]))
    scheme = data.draw(st.sampled_from([KOverlap(k=4), IfGoodK(k=4, good_from=1)]))
    requests = scheme.propose(Situation.of(grades, roster=Roster.from_frame(table), budget=budget))
    frame = requests.frame()
    asked = frame.select("annotator", "item").rows()
    assert len(set(asked)) == len(asked)
    assert not set(asked) & cells
    assert budget is None or requests.cost <= budget
    price, capacity = (dict(zip(table["annotator"], table[name], strict=True)) for name in ("price", "capacity"))
    for who, number in frame["annotator"].value_counts().rows():
        assert capacity[who] is None or number <= capacity[who]
    assert frame["cost"].to_list() == [price[who] for who in frame["annotator"]]
    anonymous = scheme.propose(Situation.of(grades))
    wanted = requests.n_judgments + requests.n_nobody + requests.n_unaffordable + requests.n_unworthy
    assert wanted == anonymous.n_judgments


def test_pairs_are_bought_with_sides_by_a_coin():
    votes = Preferences.from_rows([("ann", "q", "a", "b", "left")])
    many = Preferences.from_frame(votes.frame(), items={"query": ["q"] * 40, "item": [f"i{n}" for n in range(40)]})
    requests = KOverlap(k=1).propose(Situation.of(many, askable=np.ones(42, bool), budget=300))
    frame = requests.frame()
    assert frame.columns[:3] == ["query", "left", "right"]
    assert len(frame) == 300
    assert len({frozenset(pair) for pair in frame.select("left", "right").rows()}) == 300
    assert {"a", "b"} not in [set(pair) for pair in frame.select("left", "right").rows()]
    assert 100 < (frame["left"] < frame["right"]).sum() < 200
    assert "300 requests about 300 pairs" in requests.sentence()


def test_pairs_that_were_judged_are_asked_of_others_only():
    votes = Preferences.from_rows([("ann", "q", "a", "b", "left"), ("bob", "q", "b", "a", "left")])
    frame = KOverlap(k=4).propose(Situation.of(votes, roster=roster(ann=1, bob=1, cy=1))).frame()
    assert frame["annotator"].to_list() == ["cy"]


def test_many_pairs_are_drawn(monkeypatch):
    from crowdrank.schemes import situation as pairs

    for name, number in (("_MAX_PAIRS", 500), ("_MAX_PAIRS_ANY_BUDGET", 10), ("_SPARE_PAIRS", 10)):
        monkeypatch.setattr(pairs, name, number)
    items = {"query": ["q"] * 30 + ["r"] * 30, "item": [f"i{n}" for n in range(30)] * 2}
    votes = Preferences.from_frame({"query": ["q"], "left": ["i0"], "right": ["i1"], "winner": ["left"]}, items=items)
    everything = np.ones(60, bool)
    frame = KOverlap(k=1).propose(Situation.of(votes, askable=everything, budget=20)).frame()
    assert len(frame) == 20
    assert len({(q, frozenset(pair)) for q, *pair in frame.select("query", "left", "right").rows()}) == 20
    with pytest.raises(ParameterError, match="870 pairs that could be asked about; give a budget"):
        KOverlap(k=1).propose(Situation.of(votes, askable=everything))


def test_judgments_without_annotators():
    grades = Grades.from_frame({"item": ["x"], "grade": [3]})
    assert KOverlap(k=2).propose(Situation.of(grades)).n_judgments == 1
    with pytest.raises(JudgmentError, match="do not say who gave them, so nobody can be kept from being asked twice"):
        KOverlap(k=2).propose(Situation.of(grades, roster=roster(ann=1)))


@pytest.mark.parametrize("budget", [0, -5, float("nan")])
def test_a_budget_must_buy_something(budget):
    with pytest.raises(ParameterError, match="buys nothing; give a budget above 0"):
        Situation.of(GRADES, budget=budget)


def test_other_numbers_that_cannot_be():
    with pytest.raises(ParameterError, match="least_gain=-1 must not be below 0"):
        Situation.of(GRADES, least_gain=-1)
    with pytest.raises(ParameterError, match="price=0 must be a number above 0"):
        Situation.of(GRADES, price=0)


def test_a_scheme_that_goes_by_a_consensus_says_so():
    from crowdrank.schemes import Agreement

    with pytest.raises(ParameterError, match=r"agreement needs a consensus; call crowdrank\.propose"):
        Agreement().propose(Situation.of(GRADES))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"annotator": ["ann", "bob"], "price": [1, None]},
            r"the price is missing in row 2 \('bob'\) of the pool; give",
        ),
        ({"annotator": ["ann", "bob"], "price": ["1", ""]}, r"the price is missing in row 2 \('bob'\) of the pool"),
        ({"annotator": ["ann"], "price": ["dear"]}, r"the price is not a number above 0 in row 1 \('ann'\)"),
        ({"annotator": ["ann"], "price": [0]}, "the price is not a number above 0 in row 1"),
        (
            {"annotator": ["ann", "ann"]},
            r"the annotator appears twice in row 2 \('ann'\) of the pool; keep one row",
        ),
        ({"annotator": ["ann", ""]}, "the annotator is blank in row 2 of the pool; correct the pool"),
        ({"annotator": ["ann"], "capacity": [1.5]}, "the capacity is not a whole number of at least 0 in row 1"),
        ({"annotator": ["ann"], "capacity": [-1]}, "the capacity is not a whole number of at least 0"),
        ({"who": ["ann"]}, r"the table has no annotator column \(columns that could serve: 'who'\)"),
        ({"annotator": []}, "the pool has no rows"),
    ],
)
def test_pools_that_cannot_be(table, message):
    with pytest.raises(JudgmentError, match=message):
        Roster.from_frame(table)


def test_prices_by_group():
    table = {"worker": ["ann", "gpt"], "group": ["person", "program"]}
    pool = Roster.from_frame(table, price={"person": 4, "program": 1})
    assert pool.price.tolist() == [4, 1]
    assert pool.capacity.tolist() == [UNLIMITED] * 2
    with pytest.raises(JudgmentError, match=r"the price is missing, as price= names only person in row 2 \('gpt'\)"):
        Roster.from_frame(table, price={"person": 4})
    with pytest.raises(ParameterError, match="price= names groups, and the pool has no group column"):
        Roster.from_frame({"annotator": ["ann"]}, price={"person": 4})
    assert Roster.from_frame({"annotator": ["ann"]}, price=3).price.tolist() == [3]


def test_prices_by_kind_of_judgment():
    assert price_of(None, "grade") == 1
    assert price_of({"grade": 2, "preference": 1}, "grade") == 2
    with pytest.raises(ParameterError, match="there is no price for grades"):
        price_of({"preference": 1}, "grade")
    with pytest.raises(ParameterError, match="price=-1 must be a number above 0"):
        price_of(-1, "grade")


def test_frames_of_other_makers_do():
    assert Roster.from_frame(pl.DataFrame({"rater": ["b", "a"], "cost": ["2", "1"]})).price.tolist() == [1, 2]


@pytest.mark.parametrize("budget", [14, 28, 33, None])
def test_a_cold_start_balances_pairs_and_sides(budget):
    items = {"query": ["q"] * 7 + ["r"] * 8, "item": [f"i{number}" for number in range(15)]}
    asked = cr.propose(None, items=items, budget=budget)
    n_pairs = 7 * 6 // 2 + 8 * 7 // 2
    assert len(asked) == (n_pairs if budget is None else budget)
    assert asked.select(pl.concat_list("left", "right").list.sort()).n_unique() == len(asked)
    for query in ("q", "r"):
        part = asked.filter(query=query)
        names = set(part["left"]) | set(part["right"])
        assert all(abs(part["left"].to_list().count(one) - part["right"].to_list().count(one)) <= 1 for one in names)
        often = pl.concat([part["left"], part["right"].rename("left")]).value_counts()["count"]
        assert often.max() - often.min() <= 2


def test_a_cold_start_says_what_it_lacks():
    items = {"item": list("abc")}
    assert cr.propose(None, items=items, kind="grade")["item"].sort().to_list() == list("abc")
    pairs = cr.propose(None, items={"left": ["a", "b"], "right": ["b", "c"]})
    assert {frozenset(pair) for pair in pairs.select("left", "right").rows()} == {frozenset("ab"), frozenset("bc")}
    with pytest.raises(ParameterError, match=r"nothing is judged yet; list what may be asked about with items="):
        cr.propose(None)
    with pytest.raises(ParameterError, match=r"information chooses by the judgments so far, and there are none; begin"):
        cr.propose(None, "information", items)
