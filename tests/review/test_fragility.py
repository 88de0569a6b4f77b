"""How few votes decide: against brute force, the figures of real votes, and what users are told."""

import itertools
import warnings

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import ParameterError, UnknownNameError
from crowdrank.review import findings as findings_module
from crowdrank.review.conditions import check, parse_condition
from crowdrank.review.findings import facts_of
from crowdrank.review.fragility import fragility_of, votes_by_query


def votes(n=200, n_items=5, n_annotators=6, seed=3):
    """Preferences over some prompts by some annotators, among items of known worth."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, n_items, n)
    right = (left + rng.integers(1, n_items, n)) % n_items
    won = 0.5 * (right - left) + rng.logistic(size=n) > 0
    table = pl.DataFrame({
        "query": [f"p{k}" for k in rng.integers(0, max(40, n // 5), n)], "left": [f"i{k}" for k in left],
        "right": [f"i{k}" for k in right], "annotator": [f"w{k}" for k in rng.integers(0, n_annotators, n)],
        "winner": np.where(won, "left", "right"),
    })  # fmt: skip
    low, high = pl.min_horizontal("left", "right"), pl.max_horizontal("left", "right")
    return table.unique(["query", "annotator", low.alias("low"), high.alias("high")], maintain_order=True)


def preferences(frame):
    return cr.Preferences.from_frame(frame).across_queries()


def fewest_by_brute_force(grades, first):
    """The least number of grades whose removal puts another mean first, tried in all ways."""
    rows = range(len(grades.grade))
    for number in range(1, len(rows)):
        for dropped in itertools.combinations(rows, number):
            kept = [r for r in rows if r not in dropped]
            means = {}
            for item in range(grades.n_items):
                own = [grades.grade[r] for r in kept if grades.item[r] == item]
                means[item] = np.mean(own) if own else -np.inf
            if means[first] > -np.inf and max(means.values()) > means[first] + 1e-9:
                return number
    return None


@pytest.mark.parametrize("seed", range(6))
def test_mean_grades_are_exact(seed):
    rng = np.random.default_rng(seed)
    rows = [(f"w{k}", "q", f"i{k % 3}", int(rng.integers(1, 6))) for k in range(10)]
    grades = cr.Grades.from_rows(rows)
    consensus = cr.aggregate(grades, "mean_grade")
    first = int(np.argmax(consensus.scores))
    if (consensus.scores == consensus.scores.max()).sum() > 1:
        pytest.skip("the first place is shared")
    assert cr.fragility(consensus, grades).votes.number == fewest_by_brute_force(grades, first)


@pytest.mark.parametrize("method", ["bradley_terry", "crowd_bt", "latent_score"])
def test_the_number_is_confirmed_by_refits(method):
    judged = preferences(votes())
    consensus = cr.aggregate(judged, method)
    found = cr.fragility(consensus, judged)
    assert consensus.order()[0] == found.first
    assert 0.5 < found.votes.number / found.votes.by_influence < 2
    # without these annotators, and without these prompts, another item is first
    units = ((found.annotators, judged.annotators, judged.annotator), (found.queries, judged.blocks, judged.block))
    for least, index, code in units:
        assert len(least.ids) == (least.number or 0)
        if least.number is not None:
            kept = ~np.isin(code, index.codes(pl.Series(least.ids)))
            assert cr.aggregate(judged.select(kept), method).order()[0] != found.first
    assert found.queries.number <= found.votes.number


def test_rankings_and_their_least_number():
    rng = np.random.default_rng(0)
    rows = [
        (f"w{k}", "q", f"i{item}", place)
        for k in range(40)
        for place, item in enumerate(np.argsort(-(np.arange(4) / 2 + rng.gumbel(size=4))), 1)
    ]
    rankings = cr.Rankings.from_rows(rows)
    consensus = cr.aggregate(rankings, "plackett_luce")
    found = cr.fragility(consensus, rankings)
    assert 0 < found.votes.number < 40
    assert found.votes.total == 40
    assert "rankings" in found.sentence


def test_a_named_pair_and_one_item_alone():
    judged = preferences(votes())
    consensus = cr.aggregate(judged, "bradley_terry")
    order = consensus.order()
    pair = cr.fragility(consensus, judged, order[-1], order[1])
    assert (pair.first, pair.other) == (order[1], order[-1])
    assert f"put {order[-1]} before {order[1]}" in pair.sentence
    alone = cr.fragility(consensus, judged, order[2])
    assert (alone.first, alone.other) == (order[0], order[2])
    assert alone.votes.number >= cr.fragility(consensus, judged).votes.number


def test_the_order_of_rows_does_not_matter():
    frame = votes()
    one, other = (preferences(part) for part in (frame, frame.sample(fraction=1.0, shuffle=True, seed=1)))
    found = [cr.fragility(cr.aggregate(judged, "bradley_terry"), judged) for judged in (one, other)]
    assert found[0].frame().equals(found[1].frame())


def test_large_queries_have_no_covariance_but_a_number():
    judged = preferences(votes(3000, n_items=8))
    consensus = cr.aggregate(judged, "bradley_terry")
    from dataclasses import replace

    import crowdrank.review.fragility as module

    crowd = module._Crowd.of(consensus, judged)
    without = replace(crowd, covariance=(None,))
    first, second = np.argsort(-consensus.scores)[:2]
    numbers = [one.least_votes(int(first), int(second)).by_influence for one in (crowd, without)]
    assert numbers[1] == pytest.approx(numbers[0], rel=0.1)
    assert without.most_fragile(int(first), np.arange(8))[0] == crowd.most_fragile(int(first), np.arange(8))[0]


def test_several_queries_each_have_a_number():
    rows = [("a", "q", "x", 3), ("b", "q", "x", 3), ("c", "q", "x", 3), ("a", "q", "y", 1), ("b", "q", "y", 4)]
    rows += [("a", "r", "x", 5), ("b", "r", "x", 1), ("a", "r", "y", 2), ("b", "r", "y", 2)]
    grades = cr.Grades.from_rows(rows)
    consensus = cr.aggregate(grades, "mean_grade")
    queries, numbers = votes_by_query(consensus, grades)
    assert queries.tolist() == [0, 1]
    assert numbers.tolist() == [1, 1]  # without the 1 of y; without the 5 of x
    found = cr.findings(consensus, grades).of("fragility")
    assert found.sentence == "in both queries dropping a single grade would change the first place"
    assert found.numbers["n_decided"] == 2
    assert cr.fragility(consensus, grades, query="r").votes.number == 1
    many = votes(400)
    many = many.with_columns(query=pl.Series([f"q{k % 4}" for k in range(len(many))]))
    judged = cr.Preferences.from_frame(many.unique(["query", "left", "right", "annotator"], maintain_order=True))
    fitted = cr.aggregate(judged, "bradley_terry")
    queries, numbers = votes_by_query(fitted, judged)
    each = [fragility_of(fitted, judged, query=f"q{k}", refit=False).votes.by_influence for k in range(4)]
    assert (numbers >= each).all()  # the second item alone, not any
    assert (np.abs(numbers - each) <= 5).all()


def test_it_is_a_finding_and_a_condition(monkeypatch):
    judged = preferences(votes())
    consensus = cr.aggregate(judged, "latent_score")
    facts = facts_of(consensus, judged)
    found = cr.findings(consensus, judged).of("fragility")
    assert found.sentence.startswith("dropping ")
    number = found.numbers["votes"]
    assert check(parse_condition(f"fragility<={number}"), facts)
    assert not check(parse_condition(f"fragility<{number}"), facts)
    # beyond some size a report does not refit a slow method
    monkeypatch.setattr(findings_module, "_MAX_ROWS_REFITTED", 10)
    quick = facts_of(consensus, judged).fragility.votes
    assert quick.number == quick.by_influence == facts.fragility.votes.by_influence


def test_what_is_not_known_is_refused():
    judged = preferences(votes())
    consensus = cr.aggregate(judged, "borda")
    with pytest.raises(ParameterError, match="not known for borda; use one of bradley_terry"):
        cr.fragility(consensus, judged)
    assert cr.findings(consensus, judged).of("fragility") is None
    fitted = cr.aggregate(judged, "bradley_terry")
    with pytest.raises(ParameterError, match="'i1' cannot be put before itself"):
        cr.fragility(fitted, judged, "i1", "i1")
    with pytest.raises(UnknownNameError, match="there is no item 'i9'"):
        cr.fragility(fitted, judged, "i9")
    two = cr.Preferences.from_frame(votes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_query = cr.aggregate(two, "bradley_terry")
    with pytest.raises(ParameterError, match="there are 40 queries"):
        cr.fragility(by_query, two)


@pytest.mark.data
@pytest.mark.parametrize(
    ("who", "by_influence", "by_refits"),
    [("human", 112, 97), ("gpt_4", 14, 14), ("claude_3_opus", 23, 22), ("gpt_3_5", 26, 24)],
)
def test_figures_of_the_arena(data_folder, who, by_influence, by_refits):
    """Of an independent prototype: Bradley-Terry with ridge 0.1, ties half a win each."""
    table = pl.read_csv(data_folder / "arena-people-and-judges" / "votes.csv.gz")
    frame = table.select(query="num", left="model_a", right="model_b", annotator=pl.lit(who), winner=pl.col(who))
    judged = cr.Preferences.from_frame(frame).across_queries()
    found = cr.fragility(cr.aggregate(judged, "bradley_terry"), judged)
    assert (found.votes.by_influence, found.votes.number) == (by_influence, by_refits)
    assert found.queries is None  # each prompt has one vote
