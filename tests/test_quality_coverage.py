"""Intervals of quality hold the true quality of simulated annotators, whatever the method, and verdicts are careful."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from benchmarks.quality_coverage import Design, covered, measured

from crowdrank import quality
from crowdrank.data.judgments import Grades
from crowdrank.quality import held_out_quality, pair_agreement
from crowdrank.registry import make
from crowdrank.review.findings import quality_flags, suspects, verdict
from crowdrank.review.sentences import DOUBTS

METHODS = [("grade", "mean_grade", 20), ("preference", "borda", 20), ("ranking", "borda", 20),
           ("class", "majority_vote", 20), ("grade", "dawid_skene", 6)]  # fmt: skip
"""Kinds and methods, and how many crowds of 30 good annotators, 5 guessers and 5 reversed ones are drawn."""

LEAST, MOST = 0.88, 0.94
"""Coverage that intervals of 90 % have, the latter from 25 judgments on."""


def beyond(share, n_crowds, way):
    """Bounds that shares which lie at a limit pass in one of 100 tests, for good, guessing and reversed annotators."""
    n = n_crowds * np.array([30, 5, 5])
    return share + way * 2.33 * np.sqrt(share * (1.0 - share) / n)


@pytest.mark.parametrize(("kind", "method", "n_crowds"), [*METHODS, ("preference", "latent_score", 6)])
def test_intervals_of_quality_cover_good_annotators_guessers_and_reversed_ones(kind, method, n_crowds):
    found = measured(method, Design(kind, 25), range(700, 700 + n_crowds))
    assert (found.share >= beyond(LEAST, n_crowds, -1)).all(), found.share
    assert (found.share <= beyond(MOST, n_crowds, 1)).all(), found.share


@pytest.mark.parametrize(("kind", "method", "n_crowds"), METHODS[:3])
def test_intervals_of_judgments_of_all_items_are_no_wider_than_need_be(kind, method, n_crowds):
    found = measured(method, Design(kind, 100), range(700, 700 + n_crowds))
    assert (found.share >= beyond(LEAST, n_crowds, -1)).all(), found.share
    assert (found.share <= beyond(MOST, n_crowds, 1)).all(), found.share


@pytest.mark.parametrize(("kind", "method", "n_crowds"), [*METHODS, ("preference", "bradley_terry", 6)])
def test_intervals_of_few_judgments_know_that_the_consensus_is_noisy(kind, method, n_crowds):
    found = measured(method, Design(kind, 5), range(700, 700 + n_crowds))
    assert (found.share >= beyond(LEAST, n_crowds, -1)).all(), found.share


def test_guessers_of_forty_judgments_are_found():
    found = measured("mean_grade", Design("grade", 40), range(700, 720))
    bad, _ = found.called
    # 100 guessers and as many reversed annotators, of whom 90 % and all are called bad in the long run
    assert bad[1] >= 0.82
    assert bad[2] == 1.0
    assert bad[0] <= 0.03


@pytest.mark.parametrize(("n_levels", "error"), [(5, 0.15), (1000, 0.05)])
def test_variance_of_a_normal_model_is_that_of_drawn_answers(n_levels, error):
    rng = np.random.default_rng(5)
    n, crowd, correlation = 12, 1500, 0.75
    truth = rng.normal(size=(crowd, n))
    answer = correlation * truth + np.sqrt(1 - correlation**2) * rng.normal(size=(crowd, n))
    grade = np.searchsorted(np.quantile(answer, np.arange(1, n_levels) / n_levels), answer)
    rows = [(f"a{k:04d}", f"q{k:04d}", f"i{i:02d}", int(grade[k, i])) for k in range(crowd) for i in range(n)]
    found = pair_agreement(Grades.from_rows(rows), truth.ravel(), np.ones(crowd * n, bool))
    quality = found.agree.sum() / found.n_pairs.sum()
    spread = np.sqrt(np.mean((found.agree - quality * found.n_pairs) ** 2))
    pairs = np.minimum(found.n_pairs**2 / found.variance(np.full(crowd, quality))[0], found.n_pairs)
    expected = np.sqrt(found.n_pairs**2 * quality * (1 - quality) / pairs)
    assert expected.mean() == pytest.approx(spread, rel=error)


@pytest.mark.parametrize("kind", ["grade", "preference"])
def test_latent_score_does_not_turn_annotators_of_few_judgments_round(kind):
    crowds = [covered("latent_score", Design(kind, 5), seed) for seed in range(2)]
    called = [one.verdict[code] for one in crowds for code in range(len(one.verdict)) if one.type[code] != 2]
    assert called.count("reversed") == 0


def test_reversed_annotators_of_many_judgments_are_all_found():
    found = measured("latent_score", Design("preference", 60, n_items=40), range(2))
    bad, turned = found.called
    assert turned[2] == 1.0
    assert bad[1] >= 0.8
    assert bad[0] <= 0.05


def camps(*sizes, n_items=20):
    """Grades of items in order by a camp of annotators, and in reversed order by another."""
    way = [number for number, size in enumerate(sizes) for _ in range(size)]
    return Grades.from_rows([
        (f"a{who}", "q", f"i{i:02d}", i if not turned else n_items - i) for who, turned in enumerate(way)
        for i in range(n_items)
    ])  # fmt: skip


@pytest.mark.parametrize("method", ["mean_grade", "latent_score", "dawid_skene"])
@pytest.mark.parametrize("sizes", [(1, 1), (5, 5)])
def test_camps_of_one_size_do_not_make_everybody_reversed(method, sizes):
    # without one of them the other camp has the majority; half are right, and nothing shows which half
    quality = make("aggregator", method).fit(camps(*sizes)).quality
    assert (quality.parameters["lower"] == 0.0).all()
    assert (quality.parameters["upper"] == 1.0).all()
    assert suspects(quality.frame()) == []
    assert set(quality_flags(quality.frame())) <= set(DOUBTS)


@pytest.mark.parametrize("method", ["mean_grade", "latent_score", "dawid_skene"])
def test_one_of_four_who_is_reversed_is_found(method):
    found = suspects(make("aggregator", method).fit(camps(3, 1)).quality.frame())
    assert [(one.annotator, one.verdict) for one in found] == [("a3", "reversed")]


def test_who_may_be_reversed_but_judged_too_little_is_not_among_the_fine():
    frame = pl.DataFrame({"annotator": ["ann", "bob", "cy"], "quality": [0.1, 0.9, 0.1], "n_judgments": [6, 60, 60],
                          "lower": [0.0, 0.8, 0.0], "upper": [0.3, 0.95, 0.3]})  # fmt: skip
    assert [code in DOUBTS for code in quality_flags(frame)] == [True, False, False]


def test_few_judgments_are_called_reversed_only_where_that_is_nearly_certain():
    assert verdict(0.05, 0.01, 0.3, 30, 300) == "reversed"
    assert verdict(0.05, 0.01, 0.3, 4, 6) == ""
    assert verdict(0.02, 0.01, 0.04, 4, 6) == "reversed"
    assert verdict(0.1, 0.0, 0.2, 9, 9) == ""
    assert verdict(0.5, 0.35, 0.65, 4, 6) == "guessing"
    # ten pairs that are all wrong, and a thousand grades with ten pairs
    assert verdict(0.03, 0.0, 0.26, 10, 10) == ""
    assert verdict(0.3, 0.2, 0.47, 1000, 10) == ""
    assert verdict(0.2, 0.1, 0.3, 1000, 10) == "reversed"


def test_effective_pairs_under_guessing_are_those_of_kendall():
    rng = np.random.default_rng(0)
    n = 12
    rows = [(f"a{k:03d}", f"q{k}", f"i{i}", int(g)) for k in range(300) for i, g in enumerate(rng.permutation(n))]
    judged = Grades.from_rows(rows)
    found = pair_agreement(judged, rng.normal(size=judged.n_items), np.ones(judged.n_items, bool))
    spread = found.spread
    # variance n (n - 1) (2 n + 5) / 72 of the number of pairs in agreement
    np.testing.assert_allclose(spread.triples + spread.pairs, n * (n - 1) * (2 * n + 5) / 72.0)
    assert found.agree.var() == pytest.approx(n * (n - 1) * (2 * n + 5) / 72.0, rel=0.25)


def test_spread_under_guessing_knows_of_equal_levels():
    rng = np.random.default_rng(3)
    rows = [
        (f"a{k:03d}", f"q{k}", f"i{i:02d}", int(g)) for k in range(600) for i, g in enumerate(rng.integers(0, 4, 15))
    ]
    judged = Grades.from_rows(rows)
    levels = rng.integers(0, 3, judged.n_items).astype(float)
    found = pair_agreement(judged, levels, np.ones(judged.n_items, bool), levels=True)
    score = dict(zip(zip(judged.items.query_ids(), judged.items.ids, strict=True), levels, strict=True))
    pairs = [
        (one[3] - two[3]) * (score[one[1:3]] - score[two[1:3]])
        for a in range(3) for one in rows[15 * a : 15 * a + 15] for two in rows[15 * a : 15 * a + 15]
    ]  # fmt: skip
    assert found.n_pairs[:3].sum() == sum(product != 0 for product in pairs) / 2
    assert found.agree[:3].sum() == sum(product > 0 for product in pairs) / 2
    surplus = found.agree - found.n_pairs / 2
    assert (surplus**2 / (found.spread.triples + found.spread.pairs)).mean() == pytest.approx(1.0, abs=0.15)


def test_correction_for_noise_gives_back_what_a_noisy_consensus_took_away():
    rng = np.random.default_rng(1)
    truth, n = rng.normal(size=(40_000, 2)), 40_000
    noisy = truth + 0.8 * rng.normal(size=(n, 2))
    answer = truth + 1.2 * rng.normal(size=(n, 2))

    def alike(one, two):
        return np.array([np.mean((one[:, 0] > one[:, 1]) == (two[:, 0] > two[:, 1]))])

    share = alike(answer, noisy)
    consensus = quality.Reliability(*[1 / np.sqrt(1 + 0.64)] * 3)
    found, lower, upper = consensus.correct_shares(share, share - 0.01, share + 0.01)
    assert found[0] == pytest.approx(alike(answer, truth)[0], abs=0.01)
    assert lower[0] < found[0] < upper[0]


def test_reliability_is_that_of_the_consensus_without_an_annotator():
    rng = np.random.default_rng(2)
    scores, n_items, each = rng.normal(size=200), 200, 8
    item = np.repeat(np.arange(n_items), each)
    noise = 1.5
    rows = [(f"a{k % each}", "q", f"i{i:03d}", float(scores[i] + noise * rng.normal())) for k, i in enumerate(item)]
    method = make("aggregator", "mean_grade")
    quality = held_out_quality(method, Grades.from_rows(rows))
    # two scores differ by a normal of variance 2, an annotator's grades add 2 noise^2
    true = 0.5 + np.arcsin(1 / np.sqrt(1 + noise**2)) / np.pi
    assert quality.quality.mean() == pytest.approx(true, abs=0.02)
    assert np.mean((quality.parameters["lower"] <= true) & (quality.parameters["upper"] >= true)) >= 0.75


def graded_across_queries(seed, n_annotators=160, n_grades=100, n_queries=600, per_query=4):
    """Grades of items of many queries by good, guessing and reversed annotators, their types and true qualities."""
    rng = np.random.default_rng(seed)
    truth, levels = rng.integers(0, 5, n_queries * per_query), np.arange(5)
    type_of = np.repeat([0, 1, 2], np.array([6, 1, 1]) * n_annotators // 8)
    rows, quality = [], []
    for who, kind in enumerate(type_of):
        near = np.exp(-np.abs(levels[:, None] - levels) / rng.uniform(0.4, 1.5))
        confusion = np.full((5, 5), 0.2) if kind == 1 else near / near.sum(axis=1, keepdims=True)
        confusion = confusion[:, ::-1] if kind == 2 else confusion
        above, below = (np.array([side(confusion[low], confusion[high]) for low, high in combinations(levels, 2)])
                        for side in (in_order, lambda one, two: in_order(two, one)))  # fmt: skip
        quality.append(above.sum() / (above + below).sum())
        for item in rng.choice(len(truth), n_grades, replace=False):
            grade = rng.choice(5, p=confusion[truth[item]])
            rows.append((f"a{who:03d}", f"q{item // per_query}", f"i{item}", int(grade)))
    return Grades.from_rows(rows), type_of, np.array(quality)


def in_order(one, two):
    """Probability that a draw of the first distribution is lower than one of the second."""
    return float(np.triu(np.outer(one, two), 1).sum())


@pytest.mark.parametrize("per_query", [1, 4])
@pytest.mark.parametrize("method", ["mean_grade", "dawid_skene"])
def test_annotators_of_a_grade_per_query_are_judged_by_how_exact_they_are(method, per_query):
    grades, type_of, true = graded_across_queries(5, per_query=per_query, n_queries=2400 // per_query)
    frame = make("aggregator", method).fit(grades).quality.frame().sort("annotator")
    assert frame["n_pairs"].max() <= 20
    assert np.abs(frame["quality"].to_numpy() - true).mean() <= 0.12
    assert ((frame["lower"] <= true + 1e-9) & (frame["upper"] >= true - 1e-9)).mean() >= 0.88
    called = {one.annotator: one.verdict for one in suspects(frame)}
    called = np.array([called.get(who, "") for who in frame["annotator"]])
    assert (called[type_of == 0] != "").mean() <= 0.02
    assert (called[type_of != 2] == "reversed").sum() == 0
    assert (called[type_of == 2] == "reversed").mean() >= 0.4
    doubtful = np.isin(quality_flags(frame), DOUBTS)
    assert doubtful[type_of == 0].mean() <= 0.1
