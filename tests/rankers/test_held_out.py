"""Learning curves, validation on items, patience."""

import numpy as np
import pytest

from crowdrank.errors import JudgmentError
from crowdrank.metrics import ndcg
from crowdrank.rankers.estimator import ItemGain, ValidationRows, Watch, gains
from crowdrank.rankers.training_rows import Lists, Matrix


@pytest.mark.parametrize("k", [1, 3, None])
@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_items_of_one_row_are_measured_as_elsewhere(k, gain, rows):
    scores = np.round(rows.X[:, 0], 1)
    expected = ndcg(rows.y, scores, rows.qid, k=k, gain=gain)
    assert ItemGain(Lists.of(len(scores), rows.y, rows.qid), k, gain).ndcg(scores) == pytest.approx(expected)


def test_copies_of_an_item_are_one_item():
    # three copies of the best item would fill the first three places
    lists = Lists.of(6, [3, 3, 3, 2, 1, 0], item=["a", "a", "a", "b", "c", "d"])
    scores = np.array([4.0, 4, 4, 1, 3, 2])
    assert ItemGain(lists, k=3).ndcg(scores) == pytest.approx(ndcg([3, 2, 1, 0], [4, 1, 3, 2], k=3))


def test_the_gain_of_an_item_is_the_mean_of_its_rows():
    lists = Lists.of(5, [0, 2, 1, 1, 0], item=["a", "a", "b", "c", "c"], sample_weight=[2, 1, 1, 1, 1])
    measure = ItemGain(lists)
    assert measure.gain.tolist() == [1.0, 1.0, 0.5]


def test_gains():
    assert gains(np.array([0.0, 1.5, 3.0]), "exponential").round(3).tolist() == [0, 1.828, 7]
    assert gains(np.array([0.0, 1.5, 3.0]), "given").tolist() == [0, 1.5, 3]
    with pytest.raises(JudgmentError, match=r"y has a negative target \(-1\)"):
        gains(np.array([-1.0, 2.0]), "linear")
    with pytest.raises(JudgmentError, match="too large"):
        gains(np.array([5000.0]), "exponential")


def test_the_best_step_and_the_end_of_patience():
    told = []
    watch = Watch(patience=2, n_steps=9, progress=lambda *step: told.append(step), what="some_ranker")
    notes = [(1, 0.3), (2, 0.5), (3, 0.5), (4, 0.4)]
    assert [watch.note(step, objective=1 / step, valid=value) for step, value in notes] == [True, True, False, False]
    assert watch.is_exhausted
    assert (watch.best_iteration, watch.best) == (2, 0.5)
    assert told == [(1, 9, "some_ranker"), (2, 9, "some_ranker"), (3, 9, "some_ranker"), (4, 9, "some_ranker")]
    curve = watch.curve()
    assert curve.columns == ["iteration", "objective", "train", "valid"]
    assert curve["valid"].to_list() == [0.3, 0.5, 0.5, 0.4]
    assert curve["train"].null_count() == 4


def test_without_validation_rows_the_last_step_is_the_best():
    watch = Watch(patience=1)
    assert all(watch.note(step, objective=1.0) for step in range(5))
    assert not watch.is_exhausted
    assert watch.best_iteration == 4


def test_scores_of_validation_rows_are_measured(rows):
    lists = Lists.of(len(rows.y), rows.y, rows.qid)
    watch = Watch(ValidationRows(Matrix(rows.X), lists), k=5)
    watch.note(1, scores=lists.target)
    graded = np.maximum.reduceat(lists.target, lists.offsets[:-1]) > 0
    assert watch.best == pytest.approx(graded.mean())
