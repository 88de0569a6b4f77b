"""A linear ranker made of weights: scores, the table of weights, files, and that it refuses to learn."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.data.consensus import Trace
from crowdrank.errors import ParameterError
from crowdrank.rankers.estimator import LinearScore
from crowdrank.rankers.training_rows import Scaling

NAMES = ("length", "age")


@pytest.fixture
def ranker():
    scaling = Scaling("overall", centre=np.array([2.0, 0.0]), spread=np.array([1.0, 5.0]))
    return LinearScore.of(NAMES, scaling, np.array([1.0, -3.0]), Trace(7, False, 0.5, (-3.0, -2.0)))


def test_the_score_is_a_weighted_sum_of_scaled_features(ranker):
    table = pl.DataFrame({"length": [3.0, 2.0, 0.0], "age": [5.0, -5.0, 0.0]})
    np.testing.assert_allclose(ranker.predict(table), [1 - 3, 3, -2])
    assert ranker.importance().rows() == [("age", -3.0), ("length", 1.0)]


def test_a_saved_one_is_read_back(ranker, tmp_path):
    ranker.save(tmp_path / "model")
    again = cr.load_ranker(tmp_path / "model")
    table = pl.DataFrame({"length": [3.0, 2.5], "age": [1.0, 0.0]})
    np.testing.assert_array_equal(again.predict(table), ranker.predict(table))
    assert again.trace_ == ranker.trace_
    assert list(again.feature_names_in_) == list(NAMES)


def test_it_learns_nothing(ranker):
    with pytest.raises(ParameterError, match="fit a ranker such as RankSVM"):
        ranker.fit([[1.0, 0.0], [0.0, 1.0]], [1, 0])
