"""Naive Bayes: given and learned accuracies, priors, a peer's answers, the slow twin, and the edge cases."""

import json
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import confusion as slow
from tests.strategies import grade_rows, judgments

from crowdrank import datasets, simulate
from crowdrank.data.judgments import Grades
from crowdrank.errors import ConvergenceWarning, DataWarning, JudgmentError, ParameterError
from crowdrank.models.averages.majority_vote import MajorityVote
from crowdrank.models.classes.naive_bayes import NaiveBayes

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "crowdkit_classes.json").read_text())
SETS = list(GOLDEN["naive_bayes"]["sets"])
SHARES = (0.70, 0.16, 0.14)


def crowd(pool, k=9, n_items=800, seed=0, shares=SHARES):
    """Grades of one query with the levels of the paper's data, and the level code of each item's truth."""
    level = np.random.default_rng(seed).choice(len(shares), n_items, p=shares)
    truth = {"item": [f"i{number:05d}" for number in range(n_items)], "grade": level}
    return simulate.grades(truth, pool, simulate.PerItem(k=k), seed=seed + 1).judgments, level


def normal(mean, sd=0.2, seed=0):
    return simulate.normal(mean, sd, n_annotators=100, seed=seed)


def accuracy(consensus, truth):
    return float((consensus.grade == truth).mean())


def plain_rows(grades):
    codes = grades.level_codes()[0].tolist()
    return list(zip(grades.item.tolist(), grades.annotator.tolist(), codes, grades.row_weight.tolist(), strict=True))


def test_golden():
    table = GOLDEN["dawid_skene"]["small"]["input"]
    grades = Grades.from_frame(pl.DataFrame(table["rows"], schema=table["columns"], orient="row"))
    small = GOLDEN["naive_bayes"]["small"]
    consensus = NaiveBayes(a0=1e-6, b0=1e-6, prior="estimated", errors="even", tol=1e-9, calibrated=False).fit(grades)
    assert consensus.items.ids.to_list() == small["item"]
    # the peer has no prior at all; ours still begins with one item of each level
    np.testing.assert_allclose(consensus.probabilities, small["probabilities"], atol=0.02)
    np.testing.assert_allclose(consensus.quality.parameters["accuracy"], list(small["accuracy"].values()), atol=0.002)


@pytest.mark.data
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("prior", ["uniform", "estimated"])
def test_public_sets_against_the_peer(name, prior, data_folder):
    peer = GOLDEN["naive_bayes"]["sets"][name]
    loaded = datasets.load(name, data_folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        consensus = NaiveBayes(prior=prior, errors="even", calibrated=False).fit(loaded.judgments)
    truth = loaded.truth.align(consensus.items)
    values = np.array([k if isinstance(level, str) else float(level) for k, level in enumerate(consensus.levels)])
    gold = np.flatnonzero(np.isfinite(truth))
    code = np.array([np.flatnonzero(values == value)[0] for value in truth[gold]])
    assert len(gold) == peer["n_gold"]
    assert (consensus.grade[gold] == code).mean() >= peer["accuracy"] - max(0.003, 2 / len(gold)) - 1e-9
    assert -np.log(np.maximum(consensus.probabilities[gold, code], 1e-6)).mean() < peer["log_loss"]
    assert (np.diff(consensus.trace.log_likelihood) >= 0).all()


@given(grade_rows(max_size=14), st.sampled_from(["uniform", "estimated"]))
def test_equals_the_slow_twin(rows, prior):
    grades = judgments("grade", rows)
    levels = grades.levels
    if len(levels) == 1 or not slow.several(plain_rows(grades)):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        consensus = NaiveBayes(prior=prior, errors="even", tol=1e-10, max_iter=5000, calibrated=False).fit(grades)
    fixed = [1 / len(levels)] * len(levels) if prior == "uniform" else None
    accuracies, _, probabilities = slow.one_coin(
        plain_rows(grades), grades.n_annotators, len(levels), 2.0, 1.0, fixed, {}, n_iter=300
    )
    found = consensus.quality.parameters["accuracy"]
    if np.abs(found - accuracies).max() < 0.02:  # the same top: plain passes may be slow, or lead to another one
        np.testing.assert_allclose(found, accuracies, atol=2e-3)
        for item, own in probabilities.items():
            np.testing.assert_allclose(consensus.probabilities[item], own, atol=1e-2)


def test_the_first_pass_starts_from_vote_shares():
    grades, _ = crowd(normal(0.7), k=4, n_items=40)
    expected = slow.one_coin(plain_rows(grades), grades.n_annotators, 3, 2.0, 1.0, None, {}, n_iter=0)
    with pytest.warns(ConvergenceWarning, match="naive_bayes did not converge in 1 steps"):
        consensus = NaiveBayes(prior="estimated", errors="even", max_iter=1, calibrated=False).fit(grades)
    assert consensus.quality.parameters["accuracy"] == pytest.approx(expected[0], abs=1e-9)
    np.testing.assert_allclose(consensus.probabilities, [expected[2][k] for k in range(40)], atol=1e-8)


class TestGiven:
    def test_probabilities_by_hand(self):
        grades = Grades.from_rows([("a", "q", "x", 0), ("b", "q", "x", 1)])
        consensus = NaiveBayes(prior=(0.25, 0.75)).fit(grades, accuracies={"a": 0.9, "b": 0.6})
        low, high = 0.25 * 0.9 * 0.4, 0.75 * 0.1 * 0.6
        assert consensus.probabilities[0] == pytest.approx([low / (low + high), high / (low + high)])
        assert consensus.scores[0] == pytest.approx(high / (low + high))
        assert consensus.trace.n_iter == 1

    def test_equal_accuracies_are_the_majority_vote(self):
        grades, _ = crowd(normal(0.6), k=5, n_items=300)
        given_equal = dict.fromkeys(grades.annotators, 0.6)
        consensus = NaiveBayes().fit(grades, accuracies=given_equal)
        votes = MajorityVote(ties="random").fit(grades)
        sorted_shares = np.sort(votes.probabilities, axis=1)
        clear = sorted_shares[:, -1] > sorted_shares[:, -2] + 1e-9
        assert clear.sum() > 200
        np.testing.assert_array_equal(consensus.grade[clear], votes.grade[clear])

    def test_certain_annotators_who_disagree_give_numbers_and_seeded_ties(self):
        rows = [("sure", "q", f"i{k:03d}", 0) for k in range(300)] + [("also", "q", f"i{k:03d}", 2) for k in range(300)]
        grades = Grades.from_rows([*rows, ("third", "q", "i000", 1)])
        given_sure = {"sure": 1.0, "also": 1.0, "third": 0.5}
        consensus = NaiveBayes(seed=1).fit(grades, accuracies=given_sure)
        assert np.isfinite(consensus.probabilities).all()
        chosen = [NaiveBayes(seed=seed).fit(grades, accuracies=given_sure).grade[1:] for seed in range(20)]
        assert all(np.ptp(grade) == 0 for grade in chosen)
        assert {int(grade[0]) for grade in chosen} == {0, 2}
        np.testing.assert_array_equal(chosen[1], consensus.grade[1:])

    def test_never_right_is_evidence_against(self):
        grades = Grades.from_rows(
            [("liar", "q", "x", 0), ("liar", "q", "y", 1), ("poor", "q", "x", 0), ("poor", "q", "y", 1)]
        )
        consensus = NaiveBayes().fit(grades, accuracies={"liar": 0.0, "poor": 0.6})
        assert consensus.grade.tolist() == [1, 0]

    def test_single_grades_become_their_expectation_without_a_warning(self):
        grades = Grades.from_rows(
            [("good", "q", "x", 2), ("poor", "q", "y", 2), ("poor", "q", "z", 0), ("good", "q", "u", 1)]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            consensus = NaiveBayes().fit(grades, accuracies={"good": 0.9, "poor": 0.4})
        scores = dict(zip(consensus.items.ids, consensus.scores, strict=True))
        assert scores["x"] == pytest.approx(0.9 * 2 + 0.05)
        assert scores["y"] == pytest.approx(0.4 * 2 + 0.3)

    def test_those_not_named_are_learned_and_strangers_passed_over(self):
        pool = normal(0.7)
        grades, _ = crowd(pool, n_items=2_000)
        true = dict(zip(grades.annotators, pool.accuracy, strict=True))
        half = dict(list(true.items())[:50]) | {"stranger": 0.3}
        found = NaiveBayes(prior="estimated").fit(grades, accuracies=half).quality.parameters["accuracy"]
        assert found[:50] == pytest.approx(np.clip(pool.accuracy[:50], 1e-6, 1 - 1e-6))
        assert np.corrcoef(found[50:], pool.accuracy[50:])[0, 1] > 0.97

    def test_some_named_and_no_overlap(self):
        grades = Grades.from_rows([("a", "q", "x", 0), ("b", "q", "y", 1)])
        with pytest.warns(DataWarning, match="no item was graded by two annotators"):
            consensus = NaiveBayes().fit(grades, accuracies={"a": 0.9})
        assert consensus.probabilities[0] == pytest.approx([0.9, 0.1])
        assert consensus.probabilities[1] == pytest.approx([1 / 3, 2 / 3])

    def test_tables_are_taken_too(self):
        grades = Grades.from_rows([("a", "q", "x", 0), ("b", "q", "x", 1)])
        table = pl.DataFrame({"annotator": ["a", "b"], "accuracy": [0.9, 0.6], "quality": [0.1, 0.1]})
        one, other = (NaiveBayes().fit(grades, accuracies=given) for given in (table, {"a": 0.9, "b": 0.6}))
        np.testing.assert_array_equal(one.probabilities, other.probabilities)

    @pytest.mark.parametrize(
        ("accuracies", "error", "complaint"),
        [
            ({"a": 1.2}, ParameterError, "annotator 'a' 1.2, which is not between 0 and 1"),
            ({"a": float("nan")}, ParameterError, "not between 0 and 1"),
            ({"who": ["a"], "p": [0.4]}, JudgmentError, "no columns annotator and accuracy"),
        ],
    )
    def test_what_cannot_be_used_is_named(self, accuracies, error, complaint):
        with pytest.raises(error, match=complaint):
            NaiveBayes().fit(Grades.from_rows([("a", "q", "x", 0), ("b", "q", "x", 1)]), accuracies=accuracies)

    def test_accuracies_need_annotators(self):
        grades = Grades.from_frame({"item": ["x", "x"], "grade": [0, 1]})
        with pytest.raises(JudgmentError, match="accuracies= names annotators"):
            NaiveBayes().fit(grades, accuracies={"a": 0.5})


class TestLearned:
    @pytest.mark.parametrize("prior", ["uniform", "estimated"])
    def test_nine_grades_of_a_good_crowd(self, prior):
        pool = normal(0.7)
        grades, truth = crowd(pool)
        consensus = NaiveBayes(prior=prior).fit(grades)
        assert accuracy(consensus, truth) >= 0.97
        assert accuracy(MajorityVote(ties="random").fit(grades), truth) >= 0.93
        seen = np.bincount(grades.annotator, minlength=100) > 20
        assert np.corrcoef(consensus.quality.parameters["accuracy"][seen], pool.accuracy[seen])[0, 1] > 0.95

    def test_an_estimated_prior_is_better_where_errors_are_even(self):
        # label accuracy of the noisy-crowd study, N(0.5, 0.2) with five grades: about 73 against 81 %
        runs = [crowd(normal(0.5, seed=seed), k=5, seed=seed) for seed in range(6)]
        uniform = np.mean([accuracy(NaiveBayes(prior="uniform").fit(g), t) for g, t in runs])
        estimated = np.mean([accuracy(NaiveBayes(prior="estimated").fit(g), t) for g, t in runs])
        assert estimated == pytest.approx(0.815, abs=0.03)
        assert estimated > uniform + 0.04

    def test_a_crowd_that_leans_ruins_an_estimated_prior_and_is_warned_of(self):
        lean, poor = [[0.05, 0.95], [0.02, 0.98]], [[0.6, 0.4], [0.4, 0.6]]
        truth = {"item": np.arange(400), "grade": np.arange(400) % 2}
        pool = simulate.Confusions(np.array([lean, poor] * 20))
        grades = simulate.grades(truth, pool, simulate.PerItem(k=5), seed=3).judgments
        with pytest.warns(DataWarning, match="nearly all items came out as level 1"):
            NaiveBayes(prior="estimated", errors="even").fit(grades)
        NaiveBayes(errors="even").fit(grades)

    @pytest.mark.parametrize("errors", ["learned", "own"])
    def test_who_nearly_always_gives_one_level_is_not_taken_for_able(self, errors):
        lean, able = [[0.15, 0.85], [0.1, 0.9]], [[0.85, 0.15], [0.15, 0.85]]
        truth = {"item": np.arange(400), "grade": np.arange(400) % 2}
        pool = simulate.Confusions(np.array([lean, lean, able] * 13))
        grades = simulate.grades(truth, pool, simulate.PerItem(k=5), seed=3).judgments
        code = np.array([int(item) % 2 for item in grades.items.ids])
        votes = accuracy(MajorityVote(ties="random").fit(grades), code)
        assert accuracy(NaiveBayes(errors=errors).fit(grades), code) > votes + 0.1
        assert accuracy(NaiveBayes(errors="even").fit(grades), code) < votes

    def test_a_crowd_that_guesses_is_warned_of(self):
        rng = np.random.default_rng(0)
        rows = [(f"a{k % 40}", "q", f"i{k // 40}", int(rng.integers(0, 3))) for k in range(4_000)]
        with pytest.warns(DataWarning, match="close to guessing among 3 levels"):
            NaiveBayes().fit(Grades.from_rows(rows))

    def test_somebody_without_grades_has_the_mean_of_the_prior(self):
        grades, _ = crowd(normal(0.7), n_items=50)
        without = grades.select(grades.annotator != 7)
        assert NaiveBayes().fit(without).quality.parameters["accuracy"][7] == pytest.approx(2 / 3)
        assert NaiveBayes(a0=3.0, b0=2.0).fit(without).quality.parameters["accuracy"][7] == pytest.approx(0.6)

    def test_learned_accuracies_stay_off_the_ends(self):
        rows = [(a, "q", f"i{k}", k % 3) for k in range(500) for a in "ab"]
        found = NaiveBayes(a0=1e-9, b0=1e-9).fit(Grades.from_rows(rows)).quality.parameters["accuracy"]
        assert found.tolist() == [1 - 1e-4] * 2

    def test_one_grade_per_item_comes_back_with_a_warning(self):
        grades = Grades.from_rows([("a", "q", "x", 2), ("b", "q", "y", 0), ("a", "q", "z", 1)])
        with pytest.warns(DataWarning, match="no item was graded by two annotators"):
            consensus = NaiveBayes().fit(grades)
        assert consensus.scores.tolist() == [2, 0, 1]
        assert consensus.quality.parameters["accuracy"] == pytest.approx([2 / 3, 2 / 3])

    def test_known_items_identify_the_accuracies_of_single_grades(self):
        rng = np.random.default_rng(1)
        truth = rng.integers(0, 3, 600)
        right = np.where(np.arange(600) % 2, 0.9, 0.5)
        given_level = np.where(rng.random(600) < right, truth, (truth + rng.integers(1, 3, 600)) % 3)
        table = {"item": np.arange(600), "annotator": np.arange(600) % 2, "grade": given_level}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            consensus = NaiveBayes().fit(Grades.from_frame(table), known={"item": np.arange(300), "grade": truth[:300]})
        assert consensus.quality.parameters["accuracy"] == pytest.approx([0.5, 0.9], abs=0.08)
        assert consensus.grade[:300].tolist() == truth[:300].tolist()


class TestPrior:
    def test_forms(self):
        grades = Grades.from_rows([("a", "q", "x", 0), ("b", "q", "x", 1), ("c", "q", "x", 2), ("a", "q", "y", 2)])
        one, other = (NaiveBayes(prior=prior).fit(grades) for prior in ((7.0, 2.0, 1.0), "0.7, 0.2,0.1"))
        np.testing.assert_allclose(one.probabilities, other.probabilities)
        assert one.grade[0] == 0

    @pytest.mark.parametrize("prior", ["even", (), (-1.0, 2.0), (0.0, 0.0), "0.5,x"])
    def test_unknown_forms(self, prior):
        with pytest.raises(ParameterError, match="use 'learned', 'uniform', 'estimated'"):
            NaiveBayes(prior=prior)

    def test_as_many_shares_as_levels(self):
        grades = Grades.from_rows([("a", "q", "x", 0), ("b", "q", "x", 1)])
        with pytest.raises(ParameterError, match="3 shares for the 2 levels 0, 1"):
            NaiveBayes(prior=(0.2, 0.3, 0.5)).fit(grades)

    def test_shares_of_levels_nobody_used_are_left_out(self):
        rows = [("a", "q", "x", 0), ("b", "q", "x", 2), ("a", "q", "y", 2), ("b", "q", "y", 2)]
        consensus = NaiveBayes(prior=(0.1, 0.8, 0.1)).fit(Grades.from_rows(rows, levels=[0, 1, 2]))
        assert consensus.probabilities[:, 1].tolist() == [0.0, 0.0]
        assert consensus.probabilities.sum(axis=1) == pytest.approx([1, 1])


def test_warm_start():
    grades, _ = crowd(normal(0.7), k=5, n_items=4_000)
    order = np.random.default_rng(1).permutation(len(grades))
    table = grades.frame().select("item", "annotator", "grade")
    former = NaiveBayes(prior="estimated").fit(Grades.from_frame(table[order[: int(0.99 * len(grades))]]))
    scratch = NaiveBayes(prior="estimated").fit(grades)
    warm = NaiveBayes(prior="estimated").fit(grades, start=former)
    assert warm.trace.n_iter < scratch.trace.n_iter
    assert warm.trace.n_iter <= 8
    np.testing.assert_allclose(warm.scores, scratch.scores, atol=1e-4)
    with pytest.raises(ParameterError, match="knows no accuracy"):
        NaiveBayes().fit(grades, start=MajorityVote().fit(grades))


def test_per_query_fits_each_query_apart():
    truth = simulate.draw_truth(3, 60, cuts=(-0.5, 0.5), seed=1)
    grades = simulate.grades(truth, normal(0.7), simulate.PerItem(k=5, panel=10), seed=3).judgments
    together = NaiveBayes(per_query=True, calibrated=False).fit(grades)
    for number, query in enumerate(grades.items.queries):
        alone = Grades.from_frame(grades.frame().filter(pl.col("query") == query), levels=[0, 1, 2])
        own = slice(*grades.items.offsets[number : number + 2])
        np.testing.assert_allclose(together.scores[own], NaiveBayes(calibrated=False).fit(alone).scores, atol=1e-6)
    assert (np.diff(together.trace.log_likelihood) >= 0).all()
    given_all = dict.fromkeys(grades.annotators, 0.8)
    one, other = (NaiveBayes(per_query=apart).fit(grades, accuracies=given_all) for apart in (True, False))
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-9)


def test_weights_are_powers():
    table = {"item": ["x"] * 2, "annotator": ["a", "b"], "grade": [0, 1], "weight": [0.5, 2.0]}
    consensus = NaiveBayes().fit(Grades.from_frame(table), accuracies={"a": 0.9, "b": 0.6})
    low, high = 0.9**0.5 * 0.4**2, 0.1**0.5 * 0.6**2
    assert consensus.probabilities[0, 0] == pytest.approx(low / (low + high))
