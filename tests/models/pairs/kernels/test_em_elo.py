"""Games in orders that hang on no name: items that look alike share a score, and playing together is fair."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles import pair_orders

from crowdrank.models.pairs.kernels.elo import _BUCKET_SHIFT, arrange_pairs, mean_elo_scores

SALTS = np.random.default_rng(0).integers(0, 2**64, 6, dtype=np.uint64)


def rows_of(n_items, pairs):
    """Compressed rows and leads of (winner, loser, weight) pairs."""
    table = sorted((min(i, j), max(i, j), w if i < j else -w) for i, j, w in pairs)
    first, second, lead = (np.array(part) for part in zip(*table, strict=True))
    return np.searchsorted(first, np.arange(n_items + 1)), second.astype(np.int32), lead.astype(np.float64)


@st.composite
def some_pairs(draw, n_items=7):
    """Different pairs with few weights, so that many look alike."""
    pair = st.tuples(st.integers(0, n_items - 1), st.integers(0, n_items - 1)).filter(lambda p: p[0] != p[1])
    pairs = draw(st.lists(pair, min_size=1, max_size=12, unique_by=lambda p: frozenset(p)))
    return [(i, j, draw(st.sampled_from([0.5, 1.0]))) for i, j in pairs]


@given(some_pairs())
def test_classes_score_as_their_items_would(pairs):
    starts, second, lead = rows_of(7, pairs)
    arranged = arrange_pairs(starts, second, lead, np.array([0, 7]))
    labels = {(i, j): (w, True) for i, j, w in pairs} | {(j, i): (w, False) for i, j, w in pairs}
    kin = pair_orders.colours(labels, 7)
    for i in range(7):
        for j in range(i):
            linked = any(i in g[:2] for g in pairs) or any(j in g[:2] for g in pairs)
            assert (arranged.item_class[i] == arranged.item_class[j]) == (linked and kin[i] == kin[j])
    bounds = arranged.starts if len(arranged.starts) else np.arange(len(pairs) + 1)
    batches = []
    for batch in range(len(arranged.key)):
        sides = {
            (int(arranged.winner[k]), int(arranged.loser[k]), float(arranged.weight[k]))
            for k in range(bounds[batch], bounds[batch + 1])
        }
        batches.append(
            [g for g in pairs if (int(arranged.item_class[g[0]]), int(arranged.item_class[g[1]]), g[2]) in sides]
        )
    assert sorted(g for batch in batches for g in batch) == sorted(pairs)
    drawn = [pair_orders.mixed(int(key) ^ int(SALTS[0])) >> int(_BUCKET_SHIFT) for key in arranged.key]
    order = sorted(range(len(drawn)), key=lambda batch: (drawn[batch], batch))
    expected = pair_orders.play([batches[batch] for batch in order], kin, 7, 0.7)
    np.testing.assert_allclose(mean_elo_scores(arranged, 0.7, SALTS[:1], 1), expected, atol=1e-9)


@given(some_pairs(), st.permutations(range(7)))
def test_neither_names_nor_reversing_matter(pairs, name):
    offsets = np.array([0, 7])
    scores = mean_elo_scores(arrange_pairs(*rows_of(7, pairs), offsets), 0.4, SALTS, 3)
    renamed = [(name[i], name[j], w) for i, j, w in pairs]
    np.testing.assert_allclose(
        mean_elo_scores(arrange_pairs(*rows_of(7, renamed), offsets), 0.4, SALTS, 3)[np.array(name)], scores, atol=1e-9
    )
    turned = [(j, i, w) for i, j, w in pairs]
    np.testing.assert_allclose(
        mean_elo_scores(arrange_pairs(*rows_of(7, turned), offsets), 0.4, SALTS, 3), -scores, atol=1e-9
    )


def test_batches_are_what_all_orders_come_to():
    # one item beat five others that nothing else is known of
    pairs = [(0, j, 1.0) for j in range(1, 6)]
    together = mean_elo_scores(arrange_pairs(*rows_of(6, pairs), np.array([0, 6])), 0.2, SALTS[:1], 1)
    alone = []
    for order in permutations(range(1, 6)):
        scores = np.zeros(6)
        for j in order:
            up = 0.2 / (1 + np.exp(scores[0] - scores[j]))
            scores[0] += up
            scores[j] -= up
        alone.append(scores)
    assert together[1:] == pytest.approx(together[1])
    np.testing.assert_allclose(together, np.mean(alone, axis=0), rtol=0.02)


def test_passes_are_in_different_orders_and_the_last_ones_count():
    rng = np.random.default_rng(5)
    first, second = np.triu_indices(30, 1)
    pairs = [(i, j, 1.0) if rng.random() < 0.6 else (j, i, 1.0) for i, j in zip(first, second, strict=True)]
    arranged = arrange_pairs(*rows_of(30, pairs), np.array([0, 30]))
    assert not len(arranged.starts)
    both = mean_elo_scores(arranged, 0.5, SALTS[:2], 2)
    one, last = mean_elo_scores(arranged, 0.5, SALTS[:1], 1), mean_elo_scores(arranged, 0.5, SALTS[:2], 1)
    np.testing.assert_allclose(both, (one + last) / 2)
    assert not np.allclose(mean_elo_scores(arranged, 0.5, SALTS[1:2], 1), one)


def test_queries_do_not_touch_each_other():
    pairs = [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 0.5)]
    alone = mean_elo_scores(arrange_pairs(*rows_of(3, pairs), np.array([0, 3])), 0.5, SALTS, 3)
    more = pairs + [(i + 3, j + 3, w) for i, j, w in pairs] + [(6 + i, 7 + i, 1.0) for i in range(5)]
    both = mean_elo_scores(arrange_pairs(*rows_of(12, more), np.array([0, 3, 6, 12])), 0.5, SALTS, 3)
    np.testing.assert_allclose(both[:3], alone, atol=1e-12)
    np.testing.assert_allclose(both[3:6], alone, atol=1e-12)


def test_pairs_without_a_lead_are_left_out():
    arranged = arrange_pairs(*rows_of(3, [(0, 1, 1.0), (1, 2, 1e-9)]), np.array([0, 3]))
    assert len(arranged.winner) == 1
    assert mean_elo_scores(arranged, 0.5, SALTS, 3)[2] == 0
