"""The same question again: self-consistency by hand, against a slow twin, and apart from agreement with others."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.aggregators import Borda, MeanGrade
from crowdrank.metrics import fleiss_kappa, krippendorff_alpha
from crowdrank.review.crowd_agreement import agreement
from crowdrank.review.diagnosis import diagnose
from crowdrank.review.habits import consistency, repeats

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

ONE_JUDGE = [
    ("ann", "q", "x", "y", "x"), ("ann", "q", "x", "y", "x"), ("ann", "q", "y", "x", "y"),
    ("ann", "q", "x", "z", "x"), ("ann", "q", "z", "x", "x"), ("ann", "q", "y", "z", "y"),
    ("ann", "q", "y", "z", "tie"),
]  # fmt: skip


def test_one_annotator_agrees_with_nobody_but_themselves():
    votes = cr.Preferences.from_rows(ONE_JUDGE)
    assert agreement(votes).n_shared == 0
    consensus = cr.aggregate(votes, "borda")
    odd = cr.diagnose(votes, consensus)
    row = odd.annotators().row(0, named=True)
    # again in the same order: x, y the same and y, z not; swapped: x, y twice otherwise and x, z the same
    assert (row["n_repeated"], row["share_repeated"]) == (2, 0.5)
    assert (row["n_swapped"], row["share_swapped"]) == (2, 0.5)
    assert row["repeated_lower"] < 0.5 < row["repeated_upper"]
    found = cr.findings(consensus, votes)
    assert found.of("agreement", "no_overlap") is None
    told = found.of("self_consistency")
    assert told.sentence.startswith("self-consistency of 'ann': the same answer in 50 % of 2 pairs asked again in the")
    assert " and in 50 % of 2 pairs asked again with the sides swapped (" in told.sentence
    assert (told.numbers["n_swapped"], told.numbers["share_swapped"], told.ids) == (2, 0.5, ("ann",))
    assert told.sentence in odd.annotator_messages


def twin(rows):
    """Things asked again and the sum of their shares of equal answers, by annotator, pair by pair."""
    found = {}
    for (who, *one), (other, *two) in combinations(rows, 2):
        if who == other and {one[1], one[2]} == {two[1], two[2]} and one[0] == two[0]:
            how = "again" if one[1] == two[1] else "swapped"
            key = (who, how, one[0], frozenset(one[1:3]))
            found.setdefault(key, []).append(one[3] == two[3])
    return found


def test_the_slow_twin_counts_the_same():
    rng = np.random.default_rng(2)
    rows = []
    for _ in range(400):
        left, right = rng.choice(list("wxyz"), 2, replace=False).tolist()
        winner = rng.choice([left, right, "tie"]).item()
        rows.append((f"a{rng.integers(4)}", f"q{rng.integers(3)}", left, right, winner))
    votes = cr.Preferences.from_rows(rows)
    slow, fast = twin(rows), repeats(votes)
    for how, number, same in (("again", fast.n_again, fast.again), ("swapped", fast.n_swapped, fast.swapped)):
        for code, who in enumerate(votes.annotators.ids):
            shares = [np.mean(cells) for key, cells in slow.items() if key[:2] == (who, how)]
            assert number[code] == len(shares)
            assert same[code] == pytest.approx(sum(shares))


def test_grades_and_rankings_given_again():
    rows = [
        ("ann", "q", "x", 3),
        ("ann", "q", "x", 3),
        ("ann", "q", "y", 1),
        ("ann", "q", "y", 3),
        ("bob", "q", "x", 3),
    ]
    grades = cr.Grades.from_rows(rows)
    found = diagnose(grades, MeanGrade().fit(grades))
    ann, bob = found.annotators().rows(named=True)
    assert (ann["n_repeated"], ann["share_repeated"], ann["repeated_difference"]) == (2, 0.5, 1.0)
    assert (bob["n_repeated"], bob["share_repeated"]) == (0, None)
    assert any("self-consistency of 'ann': the same answer in 50 % of 2 items" in text for text in found.messages)
    table = {"annotator": ["ann"] * 6, "ranking": [1] * 3 + [2] * 3, "item": list("xyzxyz"), "rank": [1, 2, 3, 1, 3, 2]}
    rankings = cr.Rankings.from_frame(table)
    told = consistency(diagnose(rankings, Borda().fit(rankings)).annotators(), "repeated")
    assert (told.n, told.share) == (3, pytest.approx(2 / 3))


def test_where_sides_are_unknown_any_order_is_the_same_question():
    table = {"winner": list("xxyzz"), "loser": list("yyxxx"), "annotator": ["ann"] * 5}
    votes = cr.Preferences.from_frame(table)
    row = diagnose(votes, Borda().fit(votes)).annotators().row(0, named=True)
    # x above y twice and below once: one of three pairs of answers is equal
    assert (row["n_repeated"], row["share_repeated"]) == (2, pytest.approx((1 / 3 + 1) / 2))
    assert (row["n_swapped"], row["share_swapped"]) == (0, None)


def test_agreement_counts_different_annotators_only():
    rng = np.random.default_rng(0)
    rows = [(f"a{rng.integers(5)}", "q", f"i{rng.integers(9)}", int(rng.integers(4))) for _ in range(150)]
    grades = cr.Grades.from_rows(rows)
    cross = [
        (one[3] == two[3], one[3] - two[3], one[2])
        for one, two in combinations(rows, 2)
        if one[2] == two[2] and one[0] != two[0]
    ]
    assert agreement(grades).same == pytest.approx(np.mean([same for same, _, _ in cross]))
    # each item counts by its grades, whose pairs share its weight
    size = Counter(row[2] for row in rows)
    for level, cost in (("nominal", lambda same, gap: 1.0 - same), ("interval", lambda same, gap: gap**2.0)):
        by_item = {}
        for same, gap, item in cross:
            by_item.setdefault(item, []).append(cost(same, gap))
        observed = sum(size[item] * np.mean(costs) for item, costs in by_item.items()) / len(rows)
        values = np.array([row[3] for row in rows], float)
        gaps = np.subtract.outer(values, values)
        expected = cost(gaps == 0, gaps).sum() / (len(rows) * (len(rows) - 1))
        assert krippendorff_alpha(grades, level=level) == pytest.approx(1 - observed / expected)
    shares = {item: np.mean([same for same, _, other in cross if other == item]) for item in size}
    chance = np.zeros(4)
    for _, _, item, grade in rows:
        chance[grade] += 1 / size[item] / len(size)
    kappa = (np.mean(list(shares.values())) - chance @ chance) / (1 - chance @ chance)
    assert fleiss_kappa(grades) == pytest.approx(kappa)


def test_who_grades_all_twice_adds_nothing_to_agreement():
    rows = [(who, "q", f"i{i}", (i + (who == "bob") * (i % 3 == 0)) % 4) for who in ("ann", "bob") for i in range(12)]
    once, twice = cr.Grades.from_rows(rows), cr.Grades.from_rows(rows * 2)
    assert agreement(twice).same == pytest.approx(agreement(once).same)
    assert agreement(twice).n_shared == agreement(once).n_shared == 12
    alone = cr.Grades.from_rows([("ann", "q", "x", 1), ("ann", "q", "x", 1)])
    assert agreement(alone).n_shared == 0


def test_rows_of_one_judgment_are_no_repeats():
    rows = {
        "query": ["q1", "q1", "q2", "q2"], "left": "xxxx", "right": "yyyy", "winner": ["left", "right"] * 2,
        "annotator": "jjjj", "weight": [0.98, 0.02, 0.4, 0.6], "judgment": [0, 0, 1, 1],
    }  # fmt: skip
    votes = cr.Preferences.from_frame({name: list(cells) for name, cells in rows.items()})
    for judged in (votes, votes.across_queries()):
        assert repeats(judged).n_again.tolist() == [0]
        assert cr.findings(cr.aggregate(judged, "bradley_terry"), judged).of("self_consistency") is None
    # the same pair asked again is one, with the answer that has the larger share
    again = cr.Preferences.from_frame(
        {name: list(cells) for name, cells in (rows | {"query": ["q1"] * 4, "weight": [0.98, 0.02, 0.6, 0.4]}).items()}
    )
    asked = repeats(again)
    assert (asked.n_again.tolist(), asked.again.tolist()) == ([1], [1.0])
