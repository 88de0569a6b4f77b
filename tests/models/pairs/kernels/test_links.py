"""Links and their products equal those of a dense matrix."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crowdrank.kernels import threads
from crowdrank.kernels.laplacian import link_product
from crowdrank.models.pairs.kernels.majority_orders import link_pairs


def draw_pairs(rng, n_items, share):
    """Pairs in compressed rows."""
    first, second = np.triu_indices(n_items, 1)
    chosen = rng.random(len(first)) < share
    first, second = first[chosen], second[chosen].astype(np.int32)
    return first, second, np.searchsorted(first, np.arange(n_items + 1))


@given(st.integers(0, 2**32), st.integers(1, 9), st.floats(0, 1), st.sampled_from([1, 1_000_000]))
def test_products_equal_the_dense_ones(seed, n_items, share, per_thread):
    rng = np.random.default_rng(seed)
    first, second, starts = draw_pairs(rng, n_items, share)
    up, down, vector = rng.random(len(first)), rng.random(len(first)), rng.random(n_items)
    matrix = np.zeros((n_items, n_items))
    matrix[first, second], matrix[second, first] = up, down
    before, threads._PAIRS_PER_THREAD = threads._PAIRS_PER_THREAD, per_thread
    try:
        found = link_product(starts, second, up, down)(vector)
    finally:
        threads._PAIRS_PER_THREAD = before
    np.testing.assert_allclose(found, matrix @ vector, atol=1e-12)


@given(st.integers(0, 2**32), st.integers(1, 9), st.floats(0, 1))
def test_links_list_the_rows_of_a_skew_matrix(seed, n_items, share):
    rng = np.random.default_rng(seed)
    first, second, starts = draw_pairs(rng, n_items, share)
    lead = rng.integers(1, 9, len(first))
    matrix = np.zeros((n_items, n_items), int)
    matrix[first, second] = lead
    matrix -= matrix.T
    links = link_pairs(starts, second, lead)
    for i in range(n_items):
        part = slice(links.starts[i], links.starts[i + 1])
        np.testing.assert_array_equal(links.other[part], np.flatnonzero(matrix[i]))
        np.testing.assert_array_equal(links.lead[part], matrix[i][matrix[i] != 0])
