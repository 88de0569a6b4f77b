"""Training rows query after query."""

import numpy as np
import polars as pl
import pytest

from crowdrank.errors import JudgmentError
from crowdrank.rankers.training_rows import Lists


def test_rows_of_a_query_side_by_side_stay_where_they_are():
    lists = Lists.of(5, [1, 2, 3, 4, 5], ["b", "b", "a", "c", "c"])
    assert lists.rows is None
    assert lists.offsets.tolist() == [0, 2, 3, 5]
    assert lists.query.tolist() == [0, 0, 1, 2, 2]
    assert lists.n_items.tolist() == [2, 1, 2]


def test_scattered_rows_are_brought_together_in_the_order_of_ids():
    lists = Lists.of(5, [1, 2, 3, 4, 5], pl.Series(["b", "a", "b", "a", "c"]), sample_weight=[1, 2, 3, 4, 5])
    assert lists.rows.tolist() == [1, 3, 0, 2, 4]
    assert lists.target.tolist() == [2, 4, 1, 3, 5]
    assert lists.weight.tolist() == [2, 4, 1, 3, 5]


def test_rows_of_weight_zero_and_queries_without_others_are_left_out():
    lists = Lists.of(5, [1, 2, 3, 4, 5], [1, 1, 2, 3, 3], sample_weight=[1, 1, 0, 1, 0])
    assert lists.rows.tolist() == [0, 1, 3]
    assert lists.offsets.tolist() == [0, 2, 3]
    assert lists.target.tolist() == [1, 2, 4]


def test_items_are_numbered_query_after_query():
    lists = Lists.of(6, [1, 2, 3, 4, 5, 6], [1, 1, 1, 2, 2, 2], item=["x", "y", "x", "x", "x", "z"])
    assert lists.item.tolist() == [0, 1, 0, 2, 2, 3]
    assert lists.n_items.tolist() == [2, 2]
    assert lists.item_offsets.tolist() == [0, 2, 4]
    assert lists.on_items(lists.target).tolist() == [2, 2, 4.5, 6]


def test_items_of_one_row_each_need_no_numbers():
    lists = Lists.of(4, [1, 2, 3, 4], [1, 1, 2, 2], item=["x", "y", "x", "y"])
    assert lists.item is None
    assert lists.on_items(lists.target) is lists.target


def test_weights_of_queries():
    assert Lists.of(5, [1, 2, 3, 4, 5], [1, 1, 2, 2, 2]).query_weights().tolist() == [0.5, 0.5]
    weighted = Lists.of(5, [1, 2, 3, 4, 5], [1, 1, 2, 2, 2], sample_weight=[3, 3, 1, 1, 1])
    assert weighted.query_weights().tolist() == [0.75, 0.25]
    # a row twice is a weight of two
    copies = Lists.of(4, [1, 2, 3, 4], [1, 1, 1, 2], item=["x", "x", "y", "z"])
    assert copies.item_weights().tolist() == [1.5, 1.0]


def test_best_first_and_ties():
    lists = Lists.of(6, [0, 2, 2, 1, 0, 5], [1, 1, 1, 1, 1, 2]).best_first()
    assert lists.rows.tolist() == [1, 2, 3, 0, 4, 5]
    assert lists.tie_starts().tolist() == [0, 0, 2, 3, 3, 5]
    orders = {tuple(Lists.of(3, [1, 1, 1]).best_first(np.random.default_rng(seed)).rows) for seed in range(30)}
    assert len(orders) == 6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": [1, 2]}, "y has 2 entries for 3 rows of X; give one target for each row"),
        ({"y": None}, "y is missing"),
        ({"y": [1, float("nan"), 2]}, "y is NaN in row 2; give that row a target or leave it out"),
        ({"y": [1, 2, float("-inf")]}, "y is -infinity in row 3"),
        ({"y": ["good", "bad", "bad"]}, "y cannot be read as numbers"),
        ({"qid": [1, 1]}, "qid has 2 entries for 3 rows of X; give one id for each row"),
        ({"qid": [1, None, 1]}, "qid is missing in row 2"),
        ({"item": ["a"]}, "item has 1 entries for 3 rows of X"),
        ({"sample_weight": [1, 1]}, "sample_weight has 2 entries for 3 rows of X; give one weight for each row"),
        ({"sample_weight": [1, -2, 1]}, r"sample_weight is negative \(-2\) in row 2; give weights of at least 0"),
        ({"sample_weight": [0, 0, 0]}, "sample_weight is zero in every row"),
        ({"sample_weight": [1, 1, float("inf")]}, "sample_weight is infinity in row 3"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_sentence(given, message):
    given = {"y": [0, 1, 2]} | given
    with pytest.raises(JudgmentError, match=message) as caught:
        Lists.of(3, **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": [1, 1, 2, 2], "qid": [1, 1, 2, 2]}, "equal within each of the 2 queries"),
        ({"y": [1, 2, 3, 4], "qid": [1, 2, 3, 4]}, "equal within each of the 4 queries"),
        ({"y": [3, 3, 3, 3]}, "equal within 1 query"),
        ({"y": [1, 2, 3, 4], "item": ["a"] * 4}, "equal within 1 query"),
    ],
)
def test_nothing_to_learn_is_said(given, message):
    with pytest.raises(JudgmentError, match=f"nothing to learn: the targets y of all items are {message}"):
        Lists.of(4, **given).expect_contrast()


def test_one_row_is_too_few():
    with pytest.raises(JudgmentError, match="nothing to learn from 1 sample"):
        Lists.of(1, [1]).expect_contrast()
