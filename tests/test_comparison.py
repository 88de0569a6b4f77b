"""Comparing methods: what is held out, what is measured by it, tests, orders and sentences."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from tests.adaptive_designs import campaign

import crowdrank as cr
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.io.notices import listen
from crowdrank.report.displays import OrdersDisplay
from crowdrank.validation.prediction import (
    MOST_PAIRS,
    PARTNERS,
    Figure,
    common_scale,
    own_scales,
    predict_held_out,
    split_judgments,
)

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")


@pytest.fixture
def heard():
    """What was said."""
    texts: list[str] = []
    listen(texts.append)
    yield texts
    listen(None)


def preferences(seed=0, qualities=(0.9,) * 6, n_items=8, n=60):
    """Preferences between items of one query by annotators of known quality; both orders of a pair occur."""
    rng = np.random.default_rng(seed)
    rows = []
    for number, quality in enumerate(qualities):
        for _ in range(n):
            one, other = rng.choice(n_items, 2, replace=False)
            best = min(one, other) if rng.random() < quality else max(one, other)
            rows.append((f"a{number}", "q", f"x{one}", f"x{other}", f"x{best}"))
    return cr.Preferences.from_rows(rows)


def classes(seed=0, n_items=60, n_annotators=6, nominal=True):
    """Grades a, b and c with a third of mistakes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    rows = [
        (f"w{a}", "q", f"i{i}", int(truth[i] if rng.random() < 0.7 else rng.integers(0, 3)))
        for a in range(n_annotators)
        for i in range(n_items)
    ]
    return cr.Grades.from_rows([(*row[:3], "abc"[row[3]]) for row in rows] if nominal else rows, nominal=nominal)


# what is held out -----------------------------------------------------------------------------------------------------


def test_answers_to_the_same_question_stay_together():
    rows = [("ann", "q", *pair, "left") for pair in (("x", "y"), ("y", "x"), ("x", "z"), ("z", "y"))] * 3
    rows += [("bob", "q", "x", "y", "left"), ("bob", "q", "x", "z", "right"), ("bob", "q", "y", "x", "left")]
    judged = cr.Preferences.from_rows(rows)
    fold = split_judgments(judged, 2).fold
    key = [(who, *sorted((left, right))) for who, _, left, right, _ in rows]
    for one in set(key):
        assert len({int(fold[row]) for row, other in enumerate(key) if other == one}) == 1


def test_each_annotator_is_spread_over_the_folds():
    judged = classes()
    split = split_judgments(judged, 5, seed=3)
    for annotator in range(judged.n_annotators):
        sizes = np.bincount(split.fold[judged.annotator == annotator], minlength=5)
        assert sizes.max() - sizes.min() <= 1


def test_without_annotators_each_query_is_spread():
    rows = {"query": ["q"] * 20 + ["r"] * 20, "item": list(range(20)) * 2, "grade": [1, 2] * 20}
    split = split_judgments(cr.Grades.from_frame(rows), 5)
    assert (np.bincount(split.fold[:20]) == 4).all()
    assert split.unit_name == "query"


def test_copies_of_nobody_may_be_parted():
    table = {"ranking": [1, 1, 2, 2], "item": list("xyxy"), "rank": [1, 2, 2, 1], "weight": [6, 6, 2, 2]}
    split = split_judgments(cr.Rankings.from_frame(table), 2)
    assert len(split.judgments) == 8
    assert split.judgments.weight is None
    assert split.unit_name == "fold"


def test_the_order_of_rows_does_not_matter():
    judged = preferences(qualities=(0.9, 0.8, 0.6))
    shuffled = judged.select(np.random.default_rng(1).permutation(len(judged)))
    columns = ["method", "pair_accuracy", "log_loss", "annotator_log_loss"]
    one, other = (cr.compare(votes, ["borda", "bradley_terry"]).select(columns) for votes in (judged, shuffled))
    assert one["method"].to_list() == other["method"].to_list()
    for name in columns[1:]:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-6)


def test_pairs_are_those_with_unequal_answers():
    rows = [
        ("ann", "q", "x", 2),
        ("ann", "q", "y", 1),
        ("ann", "q", "z", 1),
        ("bob", "q", "x", 0),
        ("bob", "q", "y", 3),
    ]
    pairs = split_judgments(cr.Grades.from_rows(rows), 2).pairs
    found = sorted(zip(pairs.annotator.tolist(), pairs.better.tolist(), pairs.worse.tolist(), strict=True))
    assert found == [(0, 0, 1), (0, 0, 2), (1, 1, 0)]


def test_long_groups_give_some_pairs_of_each_row():
    n = 200
    judged = cr.Grades.from_frame({"item": list(range(n)), "annotator": ["a"] * n, "grade": list(range(n))})
    split = split_judgments(judged, 5)
    pairs = split.pairs
    assert len(pairs.better) == PARTNERS * n <= MOST_PAIRS
    assert (np.bincount(np.append(pairs.first, pairs.second)) == 2 * PARTNERS).all()
    assert (judged.grade[pairs.better] > judged.grade[pairs.worse]).all()
    assert (split.fold[pairs.first] == split.fold[pairs.second]).all()


def test_pairs_of_small_groups_are_all_there_once():
    n = 4 * PARTNERS
    judged = cr.Grades.from_frame({"item": list(range(n)), "annotator": ["a"] * n, "grade": list(range(n))})
    split = split_judgments(judged, 2)
    found = set(zip(split.pairs.better.tolist(), split.pairs.worse.tolist(), strict=True))
    half = n // 2
    assert len(found) == len(split.pairs.better) == 2 * (half * (half - 1) // 2)


@pytest.mark.parametrize(
    ("size", "parts"), [(1, [1]), (2, [2]), (3, [3]), (5, [2, 3]), (9, [2, 2, 2, 3]), (12, [2, 2, 2, 3, 3])]
)
def test_grades_of_a_query_are_held_out_two_or_more_at_a_time(size, parts):
    rows = [("ann", f"q{q}", i, i) for q in range(7) for i in range(size)]
    split = split_judgments(cr.Grades.from_rows(rows), 5)
    for query in range(7):
        sizes = np.bincount(split.fold[query * size : (query + 1) * size])
        assert sorted(sizes[sizes > 0]) == parts
    assert len(split.pairs.better) == 7 * sum(n * (n - 1) // 2 for n in parts)


def test_rankings_are_held_out_whole():
    rows = {"annotator": ["a"] * 3 + ["b"] * 3, "item": list("xyz") * 2, "rank": [1, 2, 3, 3, 2, 1]}
    split = split_judgments(cr.Rankings.from_frame(rows), 2)
    assert len(split.fold) == 2
    assert (split.pairs.first == split.pairs.second).all()
    assert np.bincount(split.pair_fold).tolist() == [3, 3]


@pytest.mark.parametrize("folds", [1, 0, True, 2.5])
def test_folds_are_at_least_two(folds):
    with pytest.raises(ParameterError, match="at least 2"):
        cr.compare(preferences(), ["borda"], folds=folds)


# what is measured -----------------------------------------------------------------------------------------------------


def test_the_common_scale_is_the_likeliest():
    rng = np.random.default_rng(0)
    gap = rng.normal(size=4000)
    right = rng.random(4000) < 1 / (1 + np.exp(-1.7 * gap))
    told = np.where(right, gap, -gap)
    scale = common_scale(told, np.ones(4000))
    assert scale == pytest.approx(1.7, abs=0.15)
    loss = [np.logaddexp(0, -c * told).mean() for c in (scale - 0.05, scale, scale + 0.05)]
    assert loss[1] == min(loss)
    assert common_scale(np.zeros(3), np.ones(3)) == common_scale(-np.ones(3), np.ones(3)) == 0.0
    assert np.isfinite(common_scale(np.ones(5), np.ones(5)))


def test_own_scales_know_who_guesses_and_who_is_reversed():
    rng = np.random.default_rng(1)
    n, true = 600, np.array([2.0, 2.0, 0.0, -2.0])
    who = np.repeat(np.arange(4), n)
    gap = rng.normal(size=4 * n)
    right = rng.random(4 * n) < 1 / (1 + np.exp(-true[who] * gap))
    common, scales = own_scales(np.where(right, gap, -gap), np.ones(4 * n), who, 4)
    assert common > 0
    np.testing.assert_allclose(scales, true, atol=0.5)
    # an order that the crowd speaks against predicts nothing, though each annotator alone could be turned round
    assert own_scales(np.where(right, -gap, gap), np.ones(4 * n), who, 4)[1].tolist() == [0.0] * 4


def test_held_out_figures_by_hand():
    # the fits are fixed, so that what is predicted can be worked out: x above y above z whatever is held out
    class Fixed:
        kinds = ("preference",)

        def fit(self, judgments):
            raise AssertionError("a method that gives scores is not fitted whole")

        def scores(self, judgments):
            return np.array([2.0, 1.0, 0.0])

    rows = [("ann", "q", "x", "y", "left"), ("ann", "q", "y", "z", "left"), ("bob", "q", "z", "x", "left")]
    rows += [("bob", "q", "x", "y", "tie")]
    judged = cr.Preferences.from_rows(rows)
    consensus = cr.aggregators.Borda().fit(judged)
    found = predict_held_out(Fixed(), split_judgments(judged, 3), consensus)
    assert found["pair_accuracy"].value == pytest.approx(2 / 3)
    assert found["pair_accuracy"].sums.tolist() == [2.0, 0.0]
    assert found["log_loss"].value > np.log(2) / 2


def test_a_figure_has_the_error_of_a_ratio():
    figure = Figure(np.array([3.0, 1.0, 0.0]), np.array([4.0, 2.0, 0.0]))
    assert figure.value == pytest.approx(4 / 6)
    assert figure.parts.mean() == pytest.approx(figure.value)
    rest = np.array([3 - 4 * 4 / 6, 1 - 2 * 4 / 6])
    assert figure.error == pytest.approx(np.sqrt((rest**2).sum() * 2) / 6)
    assert Figure(np.ones(1), np.ones(1)).error is None


def test_guessing_annotators_hide_the_better_method_from_one_scale():
    # two able annotators among many who answer against the truth a little more often than not
    judged = preferences(seed=4, qualities=(0.97, 0.97, 0.97) + (0.45,) * 9, n=120)
    found = cr.compare(judged, ["borda", "multinomial_preference"])
    plain, own = found["log_loss"], found["annotator_log_loss"]
    assert own[1] < own[0] - 0.02
    assert own[1] < plain[1] - 0.05


def test_class_methods_are_measured_by_grades_too():
    found = cr.compare_methods(classes(nominal=False), ["mean_grade", "majority_vote", "dawid_skene"])
    table = found.frame()
    assert table["grade_log_loss"].is_null().to_list() == [True, False, False]
    assert table["grade_log_loss"].drop_nulls().is_between(0.4, 1.1).all()
    assert table["log_loss"].null_count() == 0
    assert [measure.of for measure in found.measures] == ["pairs"] * 3 + ["grades"] * 2
    assert table["n_grades"].to_list() == [360] * 3
    nominal = cr.compare(classes(), ["majority_vote", "dawid_skene"])
    assert "log_loss" not in nominal.columns
    assert nominal["grade_accuracy"].min() > 0.5


def test_habits_of_annotators_make_grades_predictable():
    # one who always answers one level lower tells as much as the others, once that is known
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 4, 120)
    rows = [(f"w{a}", "q", f"i{i}", int(truth[i] - (a == 3))) for a in range(4) for i in range(120)]
    found = cr.compare(cr.Grades.from_rows(rows), ["majority_vote", "dawid_skene"])
    assert found["grade_log_loss"][1] < 0.1
    assert found["grade_log_loss"][0] < 0.5  # guessing among four levels gives 1.4


def test_levels_cut_by_a_method_are_not_compared_with_others():
    judged = cr.Grades.from_frame(
        {"item": list(range(30)) * 3, "annotator": sorted("abc" * 30), "grade": [i % 10 for i in range(90)]}
    )
    own = {"cut": cr.aggregators.MajorityVote(bins=2), "whole": cr.aggregators.MajorityVote()}
    assert cr.compare(judged, own)["grade_log_loss"].is_null().to_list() == [True, False]


# results --------------------------------------------------------------------------------------------------------------


def test_a_comparison_has_tests_and_orders():
    found = cr.compare_methods(preferences(qualities=(0.85,) * 8), ["borda", "bradley_terry", "condorcet"])
    assert found.methods == ("borda", "bradley_terry", "condorcet")
    assert found.unit == "annotator"
    tests = found.tests()
    assert tests.columns == ["measure", "method", "other", "difference", "lower", "upper", "p_value", "p_holm"]
    assert len(tests) == 2 * len(found.measures)
    assert (tests["lower"] <= tests["difference"]).all()
    assert (tests["p_holm"] >= tests["p_value"]).all()
    orders = found.orders()
    assert len(orders) == 3
    matrix = found.order_matrix()
    np.testing.assert_allclose(matrix, matrix.T)
    assert (np.diag(matrix) == 1).all()
    assert orders["tau"].max() == pytest.approx(np.max(matrix[~np.eye(3, dtype=bool)]))
    scores = found.scores()
    assert scores.group_by("measure").agg(pl.col("best").sum())["best"].to_list() == [1] * len(found.measures)
    assert scores.filter(pl.col("best"))["tied"].all()
    assert "held-out judgments show fit to this crowd" in found.sentences()[-1]
    assert repr(found) == "Comparison(3 methods by pair_accuracy, log_loss, annotator_log_loss)"


def test_a_bad_method_is_clearly_worse():
    class Upside:
        """The order turned round."""

        kinds = ("preference",)

        def fit(self, judgments):
            fitted = cr.aggregators.Borda().fit(judgments)
            return cr.Consensus(items=fitted.items, scores=-fitted.scores, method="upside")

    judged = preferences(qualities=(0.9,) * 10)
    found = cr.compare_methods(judged, {"good": cr.aggregators.Borda(), "bad": Upside()})
    rows = found.scores().filter(pl.col("measure") == "pair_accuracy")
    assert rows["method"].to_list() == ["good", "bad"]
    assert rows["tied"].to_list() == [True, False]
    assert found.orders()["tau"][0] == pytest.approx(-1.0)
    assert "all others are clearly worse" in found.sentences()[0]


def test_methods_are_tested_against_a_baseline(small):
    names = ["borda", "bradley_terry", "condorcet"]
    judged = preferences(qualities=(0.85,) * 8)
    found = cr.compare_methods(judged, names, baseline="bt")
    tests = found.tests()
    assert len(tests) == 2 * len(found.measures)
    assert set(tests["other"]) == {"bradley_terry"}
    by_best = cr.compare_methods(judged, names)
    assert found.scores().equals(by_best.scores())
    assert len(found.sentences()) == len(by_best.sentences()) + 1
    assert any(text.startswith("against bradley_terry by annotator_log_loss: ") for text in found.sentences())
    truth = {"query": ["q1"] * 5 + ["q2"] * 5, "item": list("abcde") * 2, "grade": [4, 3, 2, 1, 0] * 2}
    methods = ["mean_grade", "borda", "median_rank"]
    against = cr.compare_methods(
        small["grade"], methods, truth=truth, metrics=["tau", "footrule"], baseline="mean_grade"
    )
    assert (
        against.tests().select("method", "other").rows() == [("borda", "mean_grade"), ("median_rank", "mean_grade")] * 2
    )
    for _, part in against.tests().group_by("measure"):
        np.testing.assert_allclose(part["p_holm"], cr.metrics.holm(part["p_value"]))


def test_a_baseline_by_a_distance():
    class Upside:
        """The order turned round."""

        kinds = ("grade",)

        def fit(self, judgments):
            fitted = cr.aggregators.MeanGrade().fit(judgments)
            return cr.Consensus(items=fitted.items, scores=-fitted.scores, method="upside")

    grades = cr.Grades.from_rows(
        [(who, f"q{query}", item, grade) for who in "ab" for query in range(9) for grade, item in enumerate("xyz")]
    )
    truth = grades.frame().select("query", "item", "grade").unique()
    methods = {"up": cr.aggregators.MeanGrade(), "down": Upside()}
    for baseline, said in (("up", "worse: down"), ("down", "better: up")):
        found = cr.compare_methods(grades, methods, truth=truth, metrics=["footrule", "tau"], baseline=baseline)
        assert f"against {baseline} by footrule: {said}" in found.sentences()
        assert f"against {baseline} by tau: {said}" in found.sentences()


def test_with_a_truth_there_are_tests_between_every_two(small):
    truth = {"query": ["q1"] * 5 + ["q2"] * 5, "item": list("abcde") * 2, "grade": [4, 3, 2, 1, 0] * 2}
    names = ["mean_grade", "borda", "median_rank"]
    found = cr.compare_methods(small["grade"], names, truth=truth, metrics=["tau", "footrule"])
    assert not found.held_out
    assert found.names == ("tau", "footrule")
    assert [measure.larger_is_better for measure in found.measures] == [True, False]
    assert len(found.tests()) == 2 * 3
    table = found.frame()
    assert {"tau lower", "tau upper", "footrule lower"} <= set(table.columns)
    best = found.scores().filter(pl.col("measure") == "footrule", pl.col("best"))["value"].item()
    assert best == pytest.approx(table["footrule"].min())
    assert len(found.sentences()) == 3


def test_one_query_of_truth_gives_no_test(small):
    one = small["grade"].select(small["grade"].items.query[small["grade"].item] == 0)
    truth = {"query": ["q1"] * 5, "item": list("abcde"), "grade": [4, 3, 2, 1, 0]}
    found = cr.compare_methods(one, ["mean_grade", "borda"], truth=truth, metrics=["tau"])
    assert found.tests()["p_value"].is_null().all()
    assert "too little to test" in found.sentences()[0]
    assert found.scores()["tied"].to_list() == [True, None]


def test_progress_counts_every_fit(small):
    steps = []
    cr.compare(small["grade"], ["mean_grade", "borda"], folds=3, progress=lambda *step: steps.append(step))
    assert [done for done, _, _ in steps] == list(range(1, 9))
    assert {of for _, of, _ in steps} == {8}


def test_methods_that_refuse_are_left_out_unless_named(heard, monkeypatch):
    from crowdrank.models.averages.mean_grade import MeanGrade

    def refuse(self, judgments):
        raise JudgmentError("these grades are not to its taste")

    monkeypatch.setattr(MeanGrade, "scores", refuse, raising=False)
    monkeypatch.setattr(MeanGrade, "fit", refuse)
    votes = {"item": list(range(40)) * 2, "grade": [float(i) for i in range(40)] * 2, "annotator": list("ab") * 40}
    steps = []
    found = cr.compare(votes, progress=lambda *step: steps.append(step))
    assert "mean_grade" not in found["method"].to_list()
    assert any("mean_grade is left out: these grades are not to its taste" in text for text in heard)
    assert steps[-1][0] == steps[-1][1]
    with pytest.raises(JudgmentError, match="taste"):
        cr.compare(votes, ["mean_grade"])


def test_orders_that_cannot_be_compared_are_null_and_never_nan():
    # the two contradict each other, so that averages tie all items and only gains and single grades order them
    votes = {"annotator": list("aaabbb"), "item": list("xyzxyz"), "grade": [0, 1, 2, 2, 1, 0]}
    found = cr.compare_methods(votes, ["mean_grade", "borda", "single", "mean_gain"])
    text = found.frame().write_csv() + "\n".join(found.sentences())
    assert "nan" not in text.lower()
    taus = found.orders()["tau"].to_list()
    assert None in taus
    assert taus[0] is not None
    assert "differ most" in text
    assert np.isnan(OrdersDisplay.from_comparison(found).plot().alike).any()
    assert not any("differ most" in one for one in cr.compare_methods(votes, ["mean_grade", "single"]).sentences())


def test_judgments_that_order_nothing_are_refused():
    votes = {"item": list("xyxy"), "annotator": list("aabb"), "grade": [1, 1, 1, 1]}
    with pytest.raises(ParameterError, match="put no two items in order"):
        cr.compare(votes, ["borda"])


def test_one_annotator_is_compared_by_folds():
    votes = {"item": list("xyzuvw") * 2, "annotator": ["a"] * 12, "grade": [3, 2, 1, 4, 5, 6] * 2}
    found = cr.compare_methods(votes, ["mean_grade", "borda"], folds=3)
    assert found.unit == "fold"
    assert "annotator_log_loss" not in found.names


# Pairs chosen by earlier answers


def test_coin_flips_in_an_adaptive_design_name_no_better_method():
    votes = campaign(0, spread=0.0).preferences
    found = cr.compare_methods(votes, ["latent_score", "bradley_terry"], baseline="bradley_terry")
    # whom an item met next tells who won: held-out coin flips are predicted, by less shrunk scores better
    accuracy = found.frame()["pair_accuracy"]
    assert accuracy[1] > 0.55
    assert any("chosen by earlier answers" in text for text in found.sentences())
    tests = found.tests().filter(pl.col("measure").is_in(["log_loss", "annotator_log_loss"]))
    assert (tests["lower"] <= 0.0).all()


@pytest.mark.parametrize("per_item", [5, 14])
def test_adaptive_designs_hold_nothing_against_shrinking(per_item):
    votes = campaign(1, per_item=per_item, n_annotators=100).preferences
    tests = cr.compare_methods(votes, ["latent_score", "bradley_terry"], baseline="bradley_terry").tests()
    assert (tests.filter(pl.col("measure") != "pair_accuracy")["lower"] <= 0.0).all()


def test_designs_without_adaptation_are_taken_as_they_are():
    assert all(split_judgments(campaign(seed, adaptive=False).preferences).pairing is None for seed in range(3))
    # pairs of a query of two, and of a query compared throughout, have no other opponents
    assert split_judgments(preferences(qualities=(0.9, 0.8, 0.6))).pairing is None


def test_scales_come_from_pairs_that_were_not_seen():
    # three preferences per item: on pairs that were seen scores look twice as sure as they are
    votes = campaign(0, per_item=3, spread=0.5, adaptive=False).preferences
    assert cr.compare(votes, ["bradley_terry"])["log_loss"][0] < 0.72
