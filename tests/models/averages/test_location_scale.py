"""Sliders: annotators with a scale and an offset of their own, and means that single answers cannot move."""

import numpy as np
import polars as pl
import pytest
from benchmarks.labels_and_numbers import slider_crowd
from scipy.stats import kendalltau

import crowdrank as cr
from crowdrank.errors import ParameterError
from crowdrank.registry import make


def test_those_who_answer_the_same_throughout_do_not_count():
    ours, means = [], []
    for seed in range(3):
        grades, truth = slider_crowd(seed, odd=2)
        found = cr.aggregate(grades)
        assert found.method == "location_scale"
        assert found.estimates["form"] == "scale"
        scale = dict(found.quality.frame().select("annotator", "scale").rows())
        assert max(abs(scale["w0"]), abs(scale["w1"])) < 0.2
        ours.append(kendalltau(found.scores, truth)[0])
        means.append(kendalltau(make("aggregator", "mean_grade").fit(grades).scores, truth)[0])
    assert np.mean(ours) > np.mean(means) + 0.1


@pytest.mark.parametrize(("trim", "expected"), [(0.0, 38.0), (0.2, 10.0), (0.5, 10.0)])
def test_trimmed_means_by_hand(trim, expected):
    grades = cr.Grades.from_rows([(f"w{k}", "q", "x", grade) for k, grade in enumerate([0, 5, 10, 15, 160])])
    assert make("aggregator", "trimmed_mean", {"trim": trim}).fit(grades).scores.tolist() == [expected]
    with pytest.raises(ParameterError, match="between 0 and"):
        make("aggregator", "trimmed_mean", {"trim": 0.7})


def test_the_choice_depends_neither_on_names_nor_on_the_order_of_rows():
    grades, _ = slider_crowd(1, people=30, per_item=4)
    frame = grades.frame()
    other = frame.with_columns(
        item=pl.col("item").str.slice(1).cast(pl.Int64).map_elements(lambda one: f"z{997 * one % 1009:04d}", pl.String),
        annotator=pl.col("annotator").str.reverse(),
    ).sample(fraction=1.0, shuffle=True, seed=3)
    found, again = (cr.aggregate(cr.Grades.from_frame(one), "location_scale") for one in (frame, other))
    assert found.estimates["form"] == again.estimates["form"]
    for name, value in found.estimates["held_out"].items():
        assert again.estimates["held_out"][name] == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(np.sort(found.scores), np.sort(again.scores), rtol=1e-6)
