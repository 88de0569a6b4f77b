"""Rankings laid out by structure: names and order of the rows leave no trace."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import judgments, ranking_rows

from crowdrank.models.rankings.kernels.true_rankings import arrange, query_bounds


def arranged(rankings, seed=0, special=None):
    weight = np.ascontiguousarray(rankings.row_weight)
    special = np.zeros(rankings.n_annotators) if special is None else special
    return arrange(
        rankings.item, rankings.rank, rankings.offsets, rankings.items.query, rankings.n_queries,
        (weight, rankings.annotator, special), seed,
    )  # fmt: skip


def ranks_by_item(found):
    """Lists as sets of (item code, rank), by number of the ranking."""
    lists = found.lists
    query = np.repeat(np.arange(len(lists.sizes)), np.diff(lists.queries))
    rows = {}
    for number in range(len(lists.starts) - 1):
        part = slice(lists.starts[number], lists.starts[number + 1])
        codes = found.item[lists.item[part] + lists.offsets[query[number]]]
        rows[int(found.ranking[number])] = set(zip(codes.tolist(), lists.rank[part].tolist(), strict=True))
    return rows


@given(ranking_rows())
def test_nothing_is_lost_but_what_says_nothing(rows):
    rankings = judgments("ranking", rows)
    expected = {}
    for number in range(len(rankings)):
        part = slice(rankings.offsets[number], rankings.offsets[number + 1])
        if len(set(rankings.rank[part].tolist())) > 1:
            expected[number] = set(zip(rankings.item[part].tolist(), rankings.rank[part].tolist(), strict=True))
    found = arranged(rankings)
    assert ranks_by_item(found) == expected
    assert set(found.item.tolist()) == {item for rows in expected.values() for item, _ in rows}
    for number in range(len(found.ranking)):
        part = slice(found.lists.starts[number], found.lists.starts[number + 1])
        assert (np.diff(found.lists.rank[part]) >= 0).all()


RENAMED = {"ann": "z9", "bob": "y8", "eve": "x7", "q1": "r2", "q2": "r1", "a": "é", "b": "10", "c": "9", "d": "D"}


@given(ranking_rows(), st.randoms())
def test_names_leave_no_trace(rows, random):
    renamed = [tuple(RENAMED.get(cell, cell) for cell in row) for row in rows]
    random.shuffle(renamed)
    one, other = arranged(judgments("ranking", rows)), arranged(judgments("ranking", renamed))
    assert sorted(one.seeds.tolist()) == sorted(other.seeds.tolist())
    turned = np.argsort(other.seeds, kind="stable"), np.argsort(one.seeds, kind="stable")
    sizes = [np.diff(found.lists.offsets)[order] for found, order in zip((other, one), turned, strict=True)]
    assert sizes[0].tolist() == sizes[1].tolist()


def test_the_layout_of_a_query_is_the_same_under_any_name():
    rng = np.random.default_rng(0)
    orders = [rng.permutation(12) for _ in range(4)]
    names = rng.permutation(12)

    def rows(name):
        return [(f"a{k}", "q", f"i{name[i]:02d}", p + 1) for k, order in enumerate(orders) for p, i in enumerate(order)]

    one, other = (arranged(judgments("ranking", rows(name))) for name in (np.arange(12), names))
    for first, second in zip(one.lists, other.lists, strict=True):
        np.testing.assert_array_equal(first, second)
    assert (names[one.item] == other.item).all()
    assert one.seeds == other.seeds


def test_items_that_nothing_tells_apart_are_twins():
    rows = [
        ("ann", "q", "x", 1),
        ("ann", "q", "y", 2),
        ("ann", "q", "z", 2),
        ("bob", "q", "x", 1),
        ("bob", "q", "w", 2),
    ]
    found = arranged(judgments("ranking", rows))
    alike = {int(found.item[place]): int(found.item[twin]) for place, twin in enumerate(found.twin)}
    w, x, y, z = range(4)
    assert alike[y] == alike[z]
    assert len({alike[w], alike[x], alike[y]}) == 3


def test_weights_seeds_and_marked_annotators_count():
    rows = [(who, "q", item, p + 1) for who, order in (("ann", "xyz"), ("bob", "zyx")) for p, item in enumerate(order)]
    rankings = judgments("ranking", rows)
    plain = arranged(rankings)
    # who is who cannot be told, and so neither can the first and the last item
    assert len(np.unique(plain.twin)) == 2
    assert len(np.unique(arranged(rankings, special=np.array([0.0, 1.0])).twin)) == 3
    assert plain.seeds != arranged(rankings, seed=1).seeds


def test_bounds_share_the_work():
    bounds = query_bounds(np.array([5, 5, 90, 0, 0]), 1000)
    assert bounds.tolist() == [0, 5]
    many = query_bounds(np.full(1000, 100), 10)
    assert many[0] == 0
    assert many[-1] == 1000
    assert (np.diff(many) > 0).all()
