"""One rule for equal scores: what it joins, what it leaves apart, and who goes by it."""

import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdrank as cr
from crowdrank import metrics
from crowdrank.data.judgments import Grades, Preferences, Rankings
from crowdrank.errors import DataWarning
from crowdrank.kernels import ROUNDING
from crowdrank.kernels.segments import join_ties, sort_order
from crowdrank.registry import make


def joined(*values, tolerance=None):
    """Values of one query after the rule."""
    bounds = np.array([0, len(values)])
    return join_ties(np.array(values), bounds, None if tolerance is None else np.array([tolerance])).tolist()


class TestTheRule:
    def test_the_last_digits_do_not_tell_scores_apart(self):
        assert joined((0.1 + 0.2 + 0.3) / 3, (0.3 + 0.2 + 0.1) / 3) == [(0.3 + 0.2 + 0.1) / 3] * 2
        assert joined(5.000000000000001, 5.0, 5.0) == [5.0] * 3
        assert joined(7e-17, -4e-17, 1.0) == [-4e-17, -4e-17, 1.0]

    def test_real_differences_stay(self):
        for values in ([1.0, 1.0 + 1e-9], [1e9, 1e9 + 1e-3], [1e-200, 2e-200], [0.0, 1e-12, 1.0]):
            assert joined(*values) == values

    def test_infinities_are_equal_to_themselves_only(self):
        values = [-np.inf, -np.inf, 0.0, 1.0, 1.0 + 1e-16, np.inf]
        assert joined(*values) == [-np.inf, -np.inf, 0.0, 1.0, 1.0, np.inf]

    def test_neighbours_join_in_chains_and_never_across_queries(self):
        assert joined(3.0, 1.0, 2.0, 5.0, tolerance=1.0) == [1.0, 1.0, 1.0, 5.0]
        found = join_ties(np.array([1.0, 1.0 + 1e-15, 1.0 + 2e-15]), np.array([0, 1, 1, 3, 3]))
        assert found.tolist() == [1.0, 1.0 + 1e-15, 1.0 + 1e-15]
        assert join_ties(np.empty(0), np.array([0, 0])).tolist() == []

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.randoms())
    def test_again_changes_nothing_and_the_order_does_not_matter(self, values, random):
        bounds, values = np.array([0, len(values)]), np.array(values)
        once = join_ties(values, bounds)
        np.testing.assert_array_equal(join_ties(once, bounds), once)
        order = random.sample(range(len(values)), len(values))
        np.testing.assert_array_equal(join_ties(values[order], bounds), once[order])
        assert (np.abs(once - values) <= len(values) * ROUNDING * np.abs(values).max()).all()


class TestRanks:
    def test_sums_in_another_order(self):
        rows = [(who, "q", item, grade) for item, grades in (("x", (0.1, 0.2, 0.3)), ("y", (0.3, 0.2, 0.1)))
                for who, grade in zip("abc", grades, strict=True)]  # fmt: skip
        consensus = make("aggregator", "mean_grade").fit(Grades.from_rows(rows))
        assert consensus.ranks().tolist() == [1, 1]
        assert consensus.beats("x", "y") == 0.5
        assert consensus.frame()["item"].to_list() == ["x", "y"]

    def test_equal_grades_of_unequal_weights(self):
        rng = np.random.default_rng(0)
        n = 600
        table = {"annotator": np.arange(n) // 50, "item": np.arange(n) % 50, "grade": np.full(n, 5.0)}
        grades = Grades.from_frame(pl.DataFrame({**table, "weight": rng.uniform(0.1, 3, n)}))
        for name in ("mean_grade", "borda", "median_rank", "mean_gain", "majority_vote", "dawid_skene"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                assert set(make("aggregator", name).fit(grades).ranks()) == {1}, name

    def test_many_equal_grades_of_one_item(self):
        items = np.repeat([0, 1, 2], [200_000, 7, 1])
        grades = Grades.from_frame(pl.DataFrame({"item": items, "grade": np.full(len(items), 0.1)}))
        consensus = make("aggregator", "mean_grade").fit(grades)
        assert consensus.ranks().tolist() == [1, 1, 1]

    @pytest.mark.parametrize("scale", [1e-12, 1.0, 1e9])
    def test_the_scale_of_grades_does_not_matter(self, scale):
        rows = [(who, "q", item, scale * grade) for item, grades in
                (("x", (-0.1, 0.2, -0.1)), ("y", (0.1, 0.2, -0.3)), ("z", (0.1, 0.2, -0.2999)))
                for who, grade in zip("abc", grades, strict=True)]  # fmt: skip
        assert make("aggregator", "mean_grade").fit(Grades.from_rows(rows)).ranks().tolist() == [2, 2, 1]

    def test_grades_far_from_zero(self):
        rows = [(who, "q", item, 1e9 + grade) for item, grade in (("x", 1), ("y", 2), ("z", 2)) for who in "abc"]
        for name in ("mean_grade", "borda", "dawid_skene"):
            assert make("aggregator", name).fit(Grades.from_rows(rows)).ranks().tolist() == [3, 1, 1], name

    def test_resamples_in_single_precision(self):
        rng = np.random.default_rng(1)
        rows = [(f"a{who}", "q", item, grade) for who in range(30)
                for item, grade in zip("xyz", rng.permutation([0.1, 0.2, 0.7]), strict=True)]  # fmt: skip
        twins = [(who, query, {"x": "u", "y": "v", "z": "w"}[item], grade) for who, query, item, grade in rows]
        judged = Grades.from_rows(rows + twins).frame()
        consensus = cr.aggregate(judged, "mean_grade", bootstrap=50, resample="annotator", seed=2)
        for one, other in ("xu", "yv", "zw"):
            assert consensus.beats(one, other) == 0.5
        intervals = {row["item"]: (row["rank_lower"], row["rank_upper"]) for row in consensus.intervals().to_dicts()}
        assert all(intervals[one] == intervals[other] for one, other in ("xu", "yv", "zw"))


class TestQualityAndMeasures:
    def test_quality_counts_ties_by_rounding_as_half(self):
        rows = [(who, "q", item, place) for who, order in (("a", "xyz"), ("b", "yzx"), ("c", "zxy"))
                for place, item in enumerate(order, 1)]  # fmt: skip
        rankings = Rankings.from_rows([*rows, *(("d", "q", item, place) for place, item in enumerate("xyz", 1))])
        for name in ("plackett_luce", "borda"):
            quality = make("aggregator", name).fit(rankings).quality.frame()
            # a circle of three leaves no order that d could agree with
            assert quality.filter(annotator="d")["n_pairs"].item() == 3
            assert quality.filter(annotator="d")["quality"].item() == pytest.approx(0.5, abs=0.08)

    def test_a_circle_of_preferences_is_one_rank(self):
        rows = [(who, "q", *pair, "left") for who in "abcd" for pair in ("xy", "yz", "zx", "uv", "vw", "wu")]
        rows += [(who, "q", "x", "u", "tie") for who in "abcd"]
        consensus = make("aggregator", "bradley_terry").fit(Preferences.from_rows(rows))
        assert set(consensus.ranks()) == {1}

    @pytest.mark.parametrize("name", ["ndcg", "average_precision", "reciprocal_rank", "err", "rbp", "kendall_tau",
                                      "spearman", "footrule", "pair_accuracy", "weighted_tau", "tau_ap"])  # fmt: skip
    @pytest.mark.parametrize("n", [6, 90])
    def test_measures_of_scores_that_differ_by_rounding(self, name, n):
        rng = np.random.default_rng(3)
        truth, exact = rng.integers(0, 2, (5, n)), rng.integers(0, 4, (5, n)) / 3
        noisy = exact * (1 + rng.choice([-2e-16, 0, 2e-16], (5, n)))
        assert (noisy != exact).any()
        measure = getattr(metrics, name)
        for options in ({}, {"k": 5}) if name in ("ndcg", "average_precision") else ({},):
            np.testing.assert_allclose(
                measure(truth, noisy, per_query=True, **options), measure(truth, exact, per_query=True, **options)
            )

    @pytest.mark.parametrize("ties", ["first", "worst", "average"])
    @pytest.mark.parametrize("k", [3, 70, None])
    def test_the_order_of_ties_is_that_of_equal_scores(self, ties, k):
        rng = np.random.default_rng(4)
        truth, exact = rng.integers(0, 3, (4, 200)), rng.integers(0, 30, (4, 200)) / 7
        noisy = exact * (1 + rng.choice([-2e-16, 0, 2e-16], exact.shape))
        found = (metrics.ndcg(truth, scores, k=k, ties=ties, per_query=True) for scores in (noisy, exact))
        np.testing.assert_allclose(*found)

    def test_preferences_between_scores_that_differ_by_rounding(self):
        assert metrics.preference_accuracy([0.1 + 0.2, 1.0], [0.3, 0.0], [1, 1]) == 0.75


def test_the_order_of_many_numbers_is_that_of_a_sort_by_comparing():
    rng = np.random.default_rng(3)
    values = np.concatenate(
        [rng.normal(size=5000), rng.integers(-5, 5, 5000) / 3, [np.inf, -np.inf, 0.0, 1e-310, -1e300]]
    )
    np.testing.assert_array_equal(sort_order(values), np.argsort(values, kind="stable"))


def test_many_values_are_joined_as_few_are():
    values = np.random.default_rng(4).integers(0, 50, 40_000) / 7
    noisy = values * (1 + np.random.default_rng(5).integers(-2, 3, 40_000) * 1e-16)
    found = join_ties(noisy, np.array([0, 40_000]))
    assert len(np.unique(found)) == 50
    np.testing.assert_allclose(found, values, rtol=1e-15)
