"""Dawid-Skene: a peer's answers, the slow twin, recovery, known items, warm starts, and bad input."""

import json
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from tests.oracles import confusion as slow
from tests.strategies import grade_rows, judgments

from crowdrank import datasets, simulate
from crowdrank.data.judgments import Grades
from crowdrank.errors import ConvergenceWarning, DataWarning, JudgmentError, ParameterError
from crowdrank.models.averages.majority_vote import MajorityVote
from crowdrank.models.classes.dawid_skene import DawidSkene
from crowdrank.models.classes.naive_bayes import NaiveBayes

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "crowdkit_classes.json").read_text())["dawid_skene"]
SETS = list(GOLDEN["sets"])
CUTS = (-0.8, -0.2, 0.3, 0.9)


def crowd(n_items=400, k=6, n_annotators=25, seed=0, cuts=CUTS, pool=None):
    """Simulated grades of one query, and the level code of each item's truth."""
    truth = simulate.draw_truth(1, n_items, cuts=cuts, seed=seed)
    pool = pool or simulate.confusion(0.65, 8.0, n_levels=len(cuts) + 1, n_annotators=n_annotators, seed=seed + 1)
    drawn = simulate.grades(truth, pool, simulate.PerItem(k=k), seed=seed + 2).judgments
    return drawn, truth.truth.align(drawn.items).astype(int), pool


def accuracy(consensus, truth):
    return float((consensus.grade == truth).mean())


def never_falls(trace):
    return bool((np.diff(trace.log_likelihood) >= 0).all())


def test_golden():
    small = GOLDEN["small"]
    table = pl.DataFrame(small["input"]["rows"], schema=small["input"]["columns"], orient="row")
    consensus = DawidSkene(prior="crowd", alpha=1e-6, tol=1e-8, calibrated=False).fit(Grades.from_frame(table))
    assert consensus.items.ids.to_list() == small["item"]
    # the peer has no prior at all; ours still begins with one item of each level
    np.testing.assert_allclose(consensus.probabilities, small["probabilities"], atol=0.02)
    np.testing.assert_allclose(consensus.quality.parameters["confusion"], list(small["confusion"].values()), atol=0.01)


@pytest.mark.data
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("prior", ["own", "crowd"])
def test_public_sets_against_the_peer(name, prior, data_folder):
    peer = GOLDEN["sets"][name]
    loaded = datasets.load(name, data_folder)
    consensus = DawidSkene(prior=prior, calibrated=False).fit(loaded.judgments)
    right, loss = against_gold(consensus, loaded)
    n_gold = len(right)
    assert n_gold == peer["n_gold"]
    # the crowd's alpha was chosen in view of these sets, the learned weights were not: within one standard error
    slack = max(0.003, 2 / n_gold) if prior == "crowd" else 0.5 / np.sqrt(n_gold)
    assert right.mean() >= peer["accuracy"] - slack - 1e-9
    assert loss < peer["log_loss"]
    assert consensus.trace.converged
    assert never_falls(consensus.trace)


@pytest.mark.data
def test_ordinal_is_better_on_five_grades(data_folder):
    loaded = datasets.load("web-search-relevance5", data_folder)
    right, loss = against_gold(DawidSkene(ordinal=True, calibrated=False).fit(loaded.judgments), loaded)
    assert right.mean() > GOLDEN["sets"]["web-search-relevance5"]["accuracy"] + 0.045
    assert loss < 0.32


def against_gold(consensus, loaded):
    """Whether each graded item with gold got its level, and the mean log-loss."""
    truth = loaded.truth.align(consensus.items)
    values = np.array([k if isinstance(level, str) else float(level) for k, level in enumerate(consensus.levels)])
    gold = np.flatnonzero(np.isfinite(truth) & (consensus.grade >= 0))
    code = np.array([np.flatnonzero(values == value)[0] for value in truth[gold]])
    loss = -np.log(np.maximum(consensus.probabilities[gold, code], 1e-6)).mean()
    return consensus.grade[gold] == code, loss


@given(grade_rows(max_size=14))
def test_equals_the_slow_twin(rows):
    grades = judgments("grade", rows)
    codes, levels, values = grades.level_codes()
    plain = list(zip(grades.item.tolist(), grades.annotator.tolist(), codes.tolist(), [1.0] * len(grades), strict=True))
    if len(levels) == 1 or not slow.several(plain):
        return
    consensus = DawidSkene(prior="crowd", tol=1e-7, calibrated=False).fit(grades)
    # not many passes: where two levels are alike but for their names, rounding would in the end favour one of them
    matrices, _, probabilities, objective = slow.dawid_skene(
        plain, grades.n_annotators, len(levels), DawidSkene().alpha, {}, n_iter=60
    )
    best = consensus.trace.log_likelihood[-1]
    assert best > objective[-1] - 1e-4
    if best < objective[-1] + 1e-7:
        np.testing.assert_allclose(consensus.quality.parameters["confusion"], matrices, atol=2e-3)
        for item, own in probabilities.items():
            np.testing.assert_allclose(consensus.probabilities[item], own, atol=5e-3)
            assert consensus.scores[item] == pytest.approx(float(np.dot(own, values)), abs=1e-2)


def test_the_first_pass_is_that_of_the_slow_twin():
    grades, _, _ = crowd(n_items=60, k=3, n_annotators=5)
    codes, levels, _ = grades.level_codes()
    plain = list(zip(grades.item.tolist(), grades.annotator.tolist(), codes.tolist(), [1.0] * len(grades), strict=True))
    expected = slow.dawid_skene(plain, grades.n_annotators, len(levels), DawidSkene().alpha, {}, n_iter=1)[3]
    with pytest.warns(ConvergenceWarning, match="dawid_skene did not converge in 1 steps"):
        trace = DawidSkene(prior="crowd", max_iter=1).fit(grades).trace
    assert trace.log_likelihood == pytest.approx(expected, rel=1e-9)
    assert not trace.converged


def test_levels_and_matrices_come_back():
    grades, truth, pool = crowd(n_items=3_000, k=9, n_annotators=20)
    consensus = DawidSkene().fit(grades)
    assert accuracy(consensus, truth) >= 0.93
    assert accuracy(consensus, truth) > accuracy(MajorityVote().fit(grades), truth) + 0.02
    found = consensus.quality.parameters["confusion"]
    assert np.abs(found - pool.matrices).mean() < 0.02
    assert consensus.probabilities.sum(axis=1) == pytest.approx(np.ones(3_000))
    assert never_falls(consensus.trace)


def test_few_grades_keep_an_annotator_near_the_crowd():
    grades, _, _ = crowd(n_items=2_000, k=5, n_annotators=10)
    table = grades.frame().select("item", "annotator", "grade")
    # somebody new who was right once must not count as infallible
    lucky = pl.DataFrame({"item": table["item"][:1], "annotator": ["new"], "grade": table["grade"][:1]})
    consensus = DawidSkene().fit(Grades.from_frame(pl.concat([table, lucky])))
    quality = dict(consensus.quality.frame().select("annotator", "quality").iter_rows())
    middle = np.median([value for who, value in quality.items() if who != "new"])
    assert quality["new"] == pytest.approx(middle, abs=0.1)
    wide = consensus.quality.frame().filter(pl.col("annotator") == "new")
    assert (wide["upper"] - wide["lower"]).item() > 0.1


def test_ordinal_misses_are_near_ones():
    pool = simulate.symmetric(n_annotators=120)
    truth = simulate.draw_truth(1, 800, seed=5)
    drawn = simulate.grades(truth, pool, simulate.PerItem(k=4), seed=6).judgments
    known = truth.truth.align(drawn.items).astype(int)
    tied, free = DawidSkene(ordinal=True).fit(drawn), DawidSkene().fit(drawn)
    # which of the two is ahead at four grades an item is chance: .704 and .721 here, .671 and .711 with seeds 15 and 16
    assert accuracy(tied, known) > accuracy(free, known) - 0.03
    matrices = tied.quality.parameters["confusion"]
    assert (matrices[:, 0, 1] > matrices[:, 0, 3]).mean() > 0.95
    assert (tied.quality.parameters["closeness"] > 0).mean() > 0.95
    assert never_falls(tied.trace)


@pytest.mark.filterwarnings("ignore")
def test_ordinal_keeps_the_levels_where_the_crowd_sees_less_of_a_difference_than_there_is():
    # a shift of all levels by one is nearly a liking for lower ones; with its prior tied too it used to be taken
    right = {True: [], False: []}
    for seed in range(2):
        rng = np.random.default_rng(seed)
        truth, bias = rng.choice(5, 400, p=[0.4, 0.2, 0.2, 0.1, 0.1]), rng.normal(0, 0.7, 60)
        spread, slope = 0.8 * rng.uniform(0.6, 1.4, 60), rng.uniform(0.4, 1.0, 60)
        rows = [
            (f"a{who}", "q", item, int(np.clip(round(2 + slope[who] * (level - 2) + bias[who] + error), 0, 4)))
            for item, level in enumerate(truth)
            for who in rng.choice(60, 5, replace=False)
            for error in [rng.normal(0, spread[who])]
        ]
        grades = Grades.from_rows(rows)
        item = np.array([int(one) for one in grades.items.ids])
        for ordinal, shares in right.items():
            fitted = DawidSkene(ordinal=ordinal, calibrated=False).fit(grades)
            shares.append((fitted.grade == truth[item]).mean())
    assert np.mean(right[True]) > np.mean(right[False]) - 0.03


def test_ordinal_needs_an_order():
    grades = Grades.from_rows([("a", "q", "x", "cat"), ("b", "q", "x", "dog")], nominal=True)
    with pytest.raises(JudgmentError, match="ordinal=True needs an order"):
        DawidSkene(ordinal=True).fit(grades)


def test_nominal_scores_are_confidences():
    grades, truth, _ = crowd(n_items=300, cuts=(-0.5, 0.5))
    words = np.array(["cat", "dog", "emu"])
    table = grades.frame().with_columns(grade=pl.Series(words[grades.grade.astype(int)]))
    consensus = DawidSkene().fit(Grades.from_frame(table, nominal=True))
    assert (consensus.grade == truth).mean() > 0.9
    np.testing.assert_allclose(consensus.scores, consensus.probabilities.max(axis=1))
    assert "bias" not in consensus.quality.parameters
    assert consensus.quality.quality.max() <= 1


def test_quality_is_in_the_common_meaning():
    matrices = np.stack(
        [np.eye(3) * 0.97 + 0.01, np.full((3, 3), 1 / 3), np.eye(3)[::-1] * 0.97 + 0.01] + 4 * [np.eye(3) * 0.7 + 0.1]
    )
    pool = simulate.Confusions(matrices / matrices.sum(axis=2, keepdims=True))
    grades, _, _ = crowd(n_items=2_000, k=6, cuts=(-0.4, 0.4), pool=pool)
    quality = DawidSkene().fit(grades).quality
    expected = [slow.pair_quality(matrix, [1 / 3] * 3, False) for matrix in pool.matrices.tolist()]
    assert quality.quality == pytest.approx(expected, abs=0.04)
    assert quality.parameters["accuracy"][:3] == pytest.approx([0.98, 1 / 3, 0.34], abs=0.04)
    assert quality.parameters["bias"][0] == pytest.approx(0.0, abs=0.05)
    assert quality.quality[2] < 0.1
    lower, upper = quality.parameters["lower"], quality.parameters["upper"]
    assert (lower <= quality.quality).all()
    assert (quality.quality <= upper).all()


class TestKnown:
    def test_known_items_are_clamped_and_score_the_annotators(self):
        grades, truth, _ = crowd(n_items=600, k=3, n_annotators=12)
        table = grades.frame().select("item", "annotator", "grade")
        chosen = grades.items.ids[:40]
        known = pl.DataFrame({"item": chosen, "grade": truth[:40]})
        # one who saw the known items only, and was always one level too high where there is one
        high = pl.DataFrame({"item": chosen, "annotator": ["tall"] * 40, "grade": np.minimum(truth[:40] + 1, 4)})
        both = pl.concat([table, high.cast({"grade": table["grade"].dtype})])
        consensus = DawidSkene().fit(Grades.from_frame(both), known=known)
        assert consensus.grade[:40].tolist() == truth[:40].tolist()
        assert consensus.probabilities[np.arange(40), truth[:40]] == pytest.approx(np.ones(40))
        frame = consensus.quality.frame()
        tall = frame.filter(pl.col("annotator") == "tall")
        assert tall["bias"].item() > 0.3
        assert tall["accuracy"].item() < 0.45 < frame["accuracy"].median()

    def test_known_items_help(self):
        grades, truth, _ = crowd(n_items=500, k=2, n_annotators=15)
        known = pl.DataFrame({"item": grades.items.ids[:250], "grade": truth[:250]})
        rest = slice(250, None)
        with_known = DawidSkene().fit(grades, known=known)
        plain = DawidSkene().fit(grades)
        assert (with_known.grade[rest] == truth[rest]).mean() > (plain.grade[rest] == truth[rest]).mean()

    def test_a_known_item_nobody_graded(self):
        rows = {"item": ["x", "x", "y", "y"], "annotator": ["a", "b", "a", "b"], "grade": [1, 1, 0, 0]}
        grades = Grades.from_frame(rows, items={"item": ["x", "y", "z", "other"]})
        consensus = DawidSkene().fit(grades, known={"item": ["z"], "grade": [1]})
        by_item = dict(zip(consensus.items.ids, consensus.grade, strict=True))
        assert (by_item["z"], by_item["other"]) == (1, -1)
        assert consensus.scores[consensus.items.code("z")] == 1.0

    @pytest.mark.parametrize(
        ("known", "complaint"),
        [
            ({"item": ["i9"], "grade": [1]}, r"item 'i9' \(known= row 1, grade 1\) is not among the judged items"),
            ({"item": ["x", "y"], "grade": [1, 7]}, r"item 'y' .*outside the scale 0, 1, 2"),
            ({"item": ["x", "x"], "grade": [1, 2]}, "two different known grades"),
            ({"item": ["x"]}, "no grade column"),
        ],
    )
    def test_what_cannot_be_used_is_named(self, known, complaint):
        grades = Grades.from_rows([("a", "q", "x", 0), ("b", "q", "x", 2), ("b", "q", "y", 1)])
        with pytest.raises(JudgmentError, match=complaint):
            DawidSkene().fit(grades, known=known)

    def test_levels_in_words_and_bins(self):
        rows = [("a", "q", "x", "Bad"), ("b", "q", "x", "Good"), ("b", "q", "y", "Bad"), ("a", "q", "y", "Bad")]
        consensus = DawidSkene().fit(
            Grades.from_rows(rows, levels=["Bad", "Good"]), known={"item": ["x"], "grade": ["Good"]}
        )
        assert consensus.frame().filter(pl.col("item") == "x")["grade"].item() == "Good"
        rng = np.random.default_rng(0)
        many = Grades.from_rows([(a, "q", f"i{k}", float(k) + rng.random()) for k in range(40) for a in "abc"])
        with pytest.raises(ParameterError, match="bins="):
            DawidSkene().fit(many)
        consensus = DawidSkene(bins=4).fit(many, known={"item": ["i0"], "grade": [39.5]})
        assert consensus.grade[consensus.items.code("i0")] == 3


class TestStart:
    def test_one_percent_more_grades_take_a_few_passes(self):
        grades, _, _ = crowd(n_items=4_000, k=5, n_annotators=60)
        order = np.random.default_rng(1).permutation(len(grades))
        table = grades.frame().select("item", "annotator", "grade")
        former = DawidSkene().fit(Grades.from_frame(table[order[: int(0.99 * len(grades))]]))
        scratch, warm = DawidSkene().fit(grades), DawidSkene().fit(grades, start=former)
        assert warm.trace.n_iter <= 0.7 * scratch.trace.n_iter
        assert warm.trace.n_iter <= 20
        np.testing.assert_allclose(warm.scores, scratch.scores, atol=5e-3)
        # the weights of the prior are learned to two per cent
        np.testing.assert_allclose(warm.quality.quality, scratch.quality.quality, atol=1e-3)

    def test_new_items_annotators_and_levels_are_welcome(self):
        grades, _, _ = crowd(n_items=200, k=4, n_annotators=8, cuts=(-0.5, 0.5))
        former = DawidSkene().fit(grades)
        table = grades.frame().select("item", "annotator", "grade")
        more = pl.DataFrame(
            {
                "item": ["new", "new", "i"],
                "annotator": [table["annotator"][0], "somebody", "somebody"],
                "grade": [3, 3, 0],
            }
        )
        both = Grades.from_frame(pl.concat([table, more.cast({"grade": table["grade"].dtype})]))
        consensus = DawidSkene().fit(both, start=former)
        assert consensus.levels == (0, 1, 2, 3)
        assert np.isfinite(consensus.scores).all()
        np.testing.assert_allclose(consensus.scores, DawidSkene().fit(both).scores, atol=0.03)

    def test_from_another_class_method(self):
        grades, _, _ = crowd(n_items=3_000, n_annotators=10)
        consensus = DawidSkene().fit(grades, start=NaiveBayes().fit(grades))
        np.testing.assert_allclose(consensus.scores, DawidSkene().fit(grades).scores, atol=1e-2)

    def test_ordinal_and_without_annotators(self):
        grades, _, _ = crowd(n_items=300)
        tied = DawidSkene(ordinal=True).fit(grades)
        again = DawidSkene(ordinal=True).fit(grades, start=tied)
        assert again.trace.n_iter <= 0.7 * tied.trace.n_iter
        # a start between two rounds learns the weights of the prior a little further
        np.testing.assert_allclose(again.scores, tied.scores, atol=2e-2)
        plain = Grades.from_frame(grades.frame().drop("annotator"))
        first = DawidSkene().fit(plain)
        np.testing.assert_allclose(DawidSkene().fit(plain, start=first).scores, first.scores, atol=0.03)


def test_per_query_fits_each_query_apart():
    truth = simulate.draw_truth(3, 60, cuts=CUTS, seed=1)
    pool = simulate.confusion(0.7, 8.0, n_levels=5, n_annotators=6, seed=2)
    grades = simulate.grades(truth, pool, simulate.PerItem(k=4), seed=3).judgments
    # how sure a fit may be is learned from all queries
    together = DawidSkene(per_query=True, calibrated=False).fit(grades)
    for number, query in enumerate(grades.items.queries):
        alone = Grades.from_frame(grades.frame().filter(pl.col("query") == query), levels=[0, 1, 2, 3, 4])
        own = slice(*grades.items.offsets[number : number + 2])
        np.testing.assert_allclose(together.scores[own], DawidSkene(calibrated=False).fit(alone).scores, atol=1e-6)
    assert together.quality.quality.shape == (6,)
    assert never_falls(together.trace)
    assert np.abs(together.scores - DawidSkene().fit(grades).scores).max() > 1e-3


class TestBadInput:
    def test_a_level_nobody_used_has_probability_0(self):
        rows = [(a, "q", i, g) for a in "abc" for i, g in zip("uvwx", [0, 4, 4, 1], strict=True)]
        consensus = DawidSkene().fit(Grades.from_rows(rows, levels=[0, 1, 2, 3, 4]))
        assert consensus.levels == (0, 1, 2, 3, 4)
        assert consensus.probabilities.shape == (4, 5)
        assert consensus.probabilities[:, [2, 3]].tolist() == [[0, 0]] * 4
        assert consensus.frame().sort("item")["grade"].to_list() == [0, 4, 4, 1]
        assert consensus.quality.parameters["confusion"].shape == (3, 5, 5)
        again = DawidSkene().fit(Grades.from_rows(rows, levels=[0, 1, 2, 3, 4]), start=consensus)
        np.testing.assert_allclose(again.scores, consensus.scores, atol=1e-3)

    def test_perfect_one_sided_and_opposed_annotators_give_numbers(self):
        truth = np.arange(60) % 3
        rows = [("perfect", "q", f"i{k:02d}", int(v)) for k, v in enumerate(truth)]
        rows += [("also", "q", f"i{k:02d}", int(v)) for k, v in enumerate(truth)]
        rows += [("always 1", "q", f"i{k:02d}", 1) for k in range(60)]
        rows += [("opposed", "q", f"i{k:02d}", int(2 - v)) for k, v in enumerate(truth)]
        for method in (
            DawidSkene(),
            DawidSkene(ordinal=True),
            DawidSkene(prior="crowd", alpha=1e-3),
            DawidSkene(prior="none"),
        ):
            consensus = method.fit(Grades.from_rows(rows))
            assert np.isfinite(consensus.probabilities).all()
            assert consensus.grade.tolist() == truth.tolist()
            quality = dict(zip(consensus.quality.annotators, consensus.quality.quality, strict=True))
            assert quality["opposed"] < 0.35 < quality["always 1"] < 0.65 < quality["perfect"]

    def test_a_lone_grade_never_speaks_against_itself(self):
        # two disagree wherever they meet, so that agreement is below chance
        rows = [("a", "q", f"i{k}", k % 2) for k in range(20)] + [("b", "q", f"i{k}", 1 - k % 2) for k in range(20)]
        rows += [("c", "q", "alone", 1)]
        consensus = DawidSkene().fit(Grades.from_rows(rows))
        assert consensus.probabilities[consensus.items.code("alone"), 1] >= 0.5

    def test_an_annotator_below_chance_is_used(self):
        rng = np.random.default_rng(3)
        truth = rng.integers(0, 2, 400)
        rows = [(f"liar{a}", "q", f"i{k}", int(1 - v)) for a in range(1) for k, v in enumerate(truth)]
        for a in range(3):
            right = rng.random(400) < 0.75
            rows += [
                (f"w{a}", "q", f"i{k}", int(v if ok else 1 - v))
                for k, (v, ok) in enumerate(zip(truth, right, strict=True))
            ]
        grades = Grades.from_rows(rows)
        code = np.array([int(item[1:]) for item in grades.items.ids])
        assert (DawidSkene().fit(grades).grade == truth[code]).mean() > 0.95

    def test_all_grades_equal_and_no_grades(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            consensus = DawidSkene().fit(Grades.from_rows([("a", "q", "x", 3), ("b", "q", "x", 3)]))
        assert consensus.scores.tolist() == [3.0]
        none = Grades.from_rows([("a", "q", "x", 3)]).select(np.zeros(1, bool))
        assert DawidSkene().fit(none).scores.tolist() == [0.0]


def test_an_unjudged_item_takes_its_querys_mean():
    rows = {"query": ["q"] * 4, "item": ["x", "x", "y", "y"], "annotator": ["a", "b", "a", "b"], "grade": [2, 2, 0, 0]}
    grades = Grades.from_frame(rows, items={"query": ["q", "q", "q", "other"], "item": ["x", "y", "z", "u"]})
    consensus = DawidSkene().fit(grades)
    frame = consensus.frame()
    assert frame.filter(pl.col("item") == "z")["grade"].to_list() == [None]
    scores = dict(frame.select("item", "score").iter_rows())
    assert scores["z"] == pytest.approx((scores["x"] + scores["y"]) / 2)
    assert np.isfinite(scores["u"])


def test_queries_without_overlap_come_back_as_they_are():
    truth = simulate.draw_truth(2, 60, cuts=(-0.5, 0.5), seed=1)
    pool = simulate.confusion(0.7, 8.0, n_levels=3, n_annotators=6, seed=2)
    table = simulate.grades(truth, pool, simulate.PerItem(k=4), seed=3).judgments.frame().drop("time", strict=False)
    alone = pl.DataFrame(
        {"query": ["alone"] * 3, "item": list("xyz"), "annotator": table["annotator"][:3], "grade": [2, 0, 1]}
    )
    grades = Grades.from_frame(pl.concat([table, alone.cast({"grade": table["grade"].dtype})], how="diagonal"))
    with pytest.warns(DataWarning, match="in 1 of 3 queries no item was graded by two annotators"):
        consensus = DawidSkene(per_query=True).fit(grades)
    frame = consensus.frame().filter(pl.col("query") == "alone").sort("item")
    assert frame["score"].to_list() == [2, 0, 1]


def test_ordinal_matrices_of_each_query_by_itself():
    rng = np.random.default_rng(0)
    rows = [
        (f"a{who}", f"q{query}", f"i{item}", int(np.clip(item % 4 + rng.integers(-1, 2), 0, 3)))
        for query in range(2)
        for item in range(12)
        for who in range(5 if query == 0 else 1)
    ]
    with pytest.warns(DataWarning, match="in 1 of 2 queries no item was graded by two annotators"):
        consensus = DawidSkene(ordinal=True, per_query=True).fit(Grades.from_rows(rows))
    assert np.isfinite(consensus.scores).all()
    for name in ("exactness", "closeness"):
        assert np.isfinite(consensus.quality.parameters[name]).all()
