"""Who judges what."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdrank import simulate
from crowdrank.data.truth import Truth
from crowdrank.errors import ParameterError
from crowdrank.simulate.designs import all_pairs, pair_places


def items_of(sizes):
    """Items of queries of the given sizes."""
    query = np.repeat(np.arange(len(sizes)), sizes)
    item = np.concatenate([np.arange(n) for n in sizes])
    return Truth.from_frame({"query": query, "item": item, "grade": np.zeros(len(item))}).items


def n_components(n_items, left, right):
    """Connected components, by following edges until nothing changes."""
    label = np.arange(n_items)
    while True:
        low = np.minimum(label[left], label[right])
        new = label.copy()
        np.minimum.at(new, left, low)
        np.minimum.at(new, right, low)
        if (new == label).all():
            return len(np.unique(label))
        label = new


@settings(deadline=None)  # the first call compiles
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), k=st.integers(1, 7), seed=st.integers(0, 99))
def test_every_item_gets_k_distinct_annotators(sizes, k, seed):
    items = items_of(sizes)
    item, annotator = simulate.PerItem(k=k).rows(items, 7, seed=seed)
    assert (np.bincount(item, minlength=len(items)) == k).all()
    assert len(set(zip(item.tolist(), annotator.tolist(), strict=True))) == len(item)
    assert annotator.max() < 7


def test_annotators_are_drawn_evenly():
    _, annotator = simulate.PerItem(k=3).rows(items_of([20_000]), 10, seed=1)
    assert np.bincount(annotator) / 60_000 == pytest.approx(np.full(10, 0.1), abs=0.005)


def test_a_panel_works_on_each_query():
    items = items_of([19] * 200)
    item, annotator = simulate.PerItem(k=11, panel=11).rows(items, 120, seed=1)
    panels = [np.unique(annotator[items.query[item] == query]) for query in range(200)]
    assert all(len(panel) == 11 for panel in panels)
    assert np.bincount(annotator, minlength=120).min() > 0
    item, annotator = simulate.PerItem(k=2, panel=4).rows(items, 120, seed=1)
    assert all(len(np.unique(annotator[items.query[item] == query])) <= 4 for query in range(200))
    left, _, annotator = simulate.RandomPairs(per_item=4, panel=5).rows(items, 120, seed=1)
    assert all(len(np.unique(annotator[items.query[left] == query])) <= 5 for query in range(200))


def test_round_robin_goes_over_the_same_items_again():
    items = items_of([300, 200])
    item, annotator = simulate.RoundRobin(n_items=80, n_judgments=200).rows(items, 30, seed=1)
    assert (item[:80] == item[80:160]).all()
    assert (item[160:] == item[:40]).all()
    assert len(np.unique(item)) == 80
    assert len(set(zip(item.tolist(), annotator.tolist(), strict=True))) == 200


@pytest.mark.parametrize("distinct", [True, False])
def test_round_robin_is_nested(distinct):
    items = items_of([500])

    def rows(n_items, n_judgments):
        design = simulate.RoundRobin(n_items=n_items, n_judgments=n_judgments, distinct=distinct)
        return np.stack(design.rows(items, 100, seed=4))

    small, more, single = rows(80, 80), rows(80, 400), rows(400, 400)
    assert (small == more[:, :80]).all()
    assert (small == single[:, :80]).all()
    assert (rows(80, 240) == more[:, :240]).all()


def test_first_grades_of_a_nested_design_are_the_same():
    truth = {"item": np.arange(500), "grade": np.arange(500) % 3}
    pool = simulate.normal(0.7, 0.2, n_annotators=100, seed=1)

    def first(n_items, n_judgments):
        design = simulate.RoundRobin(n_items=n_items, n_judgments=n_judgments)
        return simulate.grades(truth, pool, design, seed=9).judgments.grade[:80]

    assert (first(80, 80) == first(80, 400)).all()
    assert (first(80, 80) == first(400, 400)).all()


def test_round_robin_may_ask_an_annotator_again():
    item, annotator = simulate.RoundRobin(n_items=50, n_judgments=500, distinct=False).rows(items_of([50]), 5, seed=1)
    assert len(set(zip(item.tolist(), annotator.tolist(), strict=True))) < 500


@given(number=st.integers(0, 2**50))
def test_pairs_are_numbered(number):
    first, second = pair_places(np.array([number]))
    assert 0 <= first[0] < second[0]
    assert second[0] * (second[0] - 1) // 2 + first[0] == number


def test_all_pairs_of_queries():
    query, number = all_pairs(np.array([3, 1, 0, 4]))
    assert np.bincount(query, minlength=4).tolist() == [3, 0, 0, 6]
    first, second = pair_places(number)
    assert len(set(zip(query.tolist(), first.tolist(), second.tolist(), strict=True))) == 9


@settings(deadline=None)  # the first call compiles
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    per_item=st.floats(0.1, 15),
    k=st.integers(1, 2),
    connected=st.booleans(),
    seed=st.integers(0, 99),
)
def test_random_pairs(sizes, per_item, k, connected, seed):
    items = items_of(sizes)
    design = (simulate.ConnectedPairs if connected else simulate.RandomPairs)(per_item=per_item, k=k)
    left, right, annotator = design.rows(items, 40, seed=seed)
    assert (left != right).all()
    assert (items.query[left] == items.query[right]).all()
    asked = np.stack([np.minimum(left, right), np.maximum(left, right), annotator])
    assert len(np.unique(asked, axis=1).T) == len(left)
    counts = np.unique(asked[:2], axis=1, return_counts=True)[1] if len(left) else np.array([k])
    assert counts.min() >= k
    if connected:
        assert n_components(len(items), left, right) == len(sizes)
    judged = np.bincount(items.query[left], minlength=len(sizes))
    for size, count in zip(sizes, judged, strict=True):
        wanted = np.ceil(size * per_item / 2) if size > 1 else 0
        assert wanted <= count <= max(wanted + k, k * max(size - 1, 0) if connected else 0)


def test_pairs_are_asked_once_before_any_is_asked_twice():
    left, right, _ = simulate.RandomPairs(per_item=6).rows(items_of([7]), 10, seed=1)
    assert len(np.unique(np.sort(np.stack([left, right]), axis=0), axis=1).T) == 21
    left, right, _ = simulate.RandomPairs(per_item=9).rows(items_of([7]), 10, seed=1)
    counts = np.unique(np.sort(np.stack([left, right]), axis=0), axis=1, return_counts=True)[1]
    assert len(counts) == 21
    assert set(counts) == {1, 2}


def test_pairs_are_drawn_evenly():
    left, right, _ = simulate.RandomPairs(per_item=2).rows(items_of([6] * 5000), 3, seed=1)
    pair = np.minimum(left % 6, right % 6) * 6 + np.maximum(left % 6, right % 6)
    shares = np.bincount(pair, minlength=36)
    assert shares[shares > 0] / 5000 == pytest.approx(np.full(15, 0.4), abs=0.03)
    assert np.mean(left < right) == pytest.approx(0.5, abs=0.02)


def test_pairs_of_a_huge_query():
    items = items_of([40_000, 5])
    left, right, _ = simulate.ConnectedPairs(per_item=3).rows(items, 3, seed=1)
    assert n_components(40_005, left, right) == 2
    assert len(np.unique(np.sort(np.stack([left, right]), axis=0), axis=1).T) == len(left) == 60_000 + 8


def test_rankings_per_query():
    items = items_of([4, 1, 7])
    query, annotator, place, offsets = simulate.PerQuery(k=3).rows(items, 5, seed=1)
    assert query.tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert len(set(zip(query.tolist(), annotator.tolist(), strict=True))) == 9
    assert np.diff(offsets).tolist() == [4] * 3 + [1] * 3 + [7] * 3
    assert place[offsets[6] :].tolist() == list(range(7)) * 3


@pytest.mark.parametrize(
    ("design", "message"),
    [
        (simulate.PerItem(k=6), "6 annotators per item or pair cannot be drawn from 5"),
        (simulate.PerItem(k=3, panel=2), "3 annotators per item or pair cannot be drawn from 2"),
        (simulate.PerItem(k=3, panel=9), "9 annotators per query cannot be drawn from 5"),
        (simulate.AllPairs(k=6), "cannot be drawn from 5"),
        (simulate.RandomPairs(k=6), "cannot be drawn from 5"),
        (simulate.RandomPairs(per_item=1000), "cannot be drawn from 5"),
        (simulate.PerQuery(k=6), "6 annotators per query cannot be drawn from 5"),
        (simulate.RoundRobin(n_items=99, n_judgments=99), "n_items must be at most 10"),
        (simulate.RoundRobin(n_items=2, n_judgments=99), "cannot be drawn from 5"),
    ],
)
def test_more_than_there_is(design, message):
    with pytest.raises(ParameterError, match=message):
        design.rows(items_of([6, 4]), 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: simulate.PerItem(k=0),
        lambda: simulate.PerItem(k=1.5),
        lambda: simulate.PerItem(k=float("nan")),
        lambda: simulate.AllPairs(k=-1),
        lambda: simulate.RandomPairs(per_item=0),
        lambda: simulate.RandomPairs(per_item=float("nan")),
        lambda: simulate.PerQuery(k=2, length=1),
        lambda: simulate.RoundRobin(n_items=0, n_judgments=4),
    ],
)
def test_bad_numbers(make):
    with pytest.raises(ParameterError, match="must be"):
        make()
