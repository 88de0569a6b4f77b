"""Stretches of rows cover everything once, and their results come in order."""

import numpy as np
import pytest

from crowdrank.kernels import threads


@pytest.mark.parametrize("n_threads", [1, 3])
def test_stretches_cover_all_rows_in_order(n_threads, monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: n_threads)
    bounds = threads.even_bounds(100, 1)
    parts = threads.over_bounds(lambda begin, end: list(range(begin, end)), bounds)
    assert len(parts) == n_threads
    assert [row for part in parts for row in part] == list(range(100))


def test_stretches_of_items_have_about_equally_many_pairs(monkeypatch):
    monkeypatch.setattr(threads, "_n_threads", lambda n_rows, smallest: 2)
    starts = np.array([0, 90, 95, 100, 100, 100])
    assert threads.pair_bounds(starts).tolist() == [0, 1, 5]


def test_few_rows_are_not_split():
    assert threads.even_bounds(10, 100).tolist() == [0, 10]
    assert threads.even_bounds(0, 100).tolist() == [0, 0]


def test_read_only_views_leave_the_array_alone():
    array = np.arange(6)[::2]
    view = threads.read_only(array)
    assert array.flags.writeable
    assert not view.flags.writeable
    assert view.flags.c_contiguous
    assert view.tolist() == array.tolist()


def test_total_and_dot():
    assert threads.total([np.arange(3), np.ones(3, np.int64)]).tolist() == [1, 2, 3]
    assert threads.dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 11


def test_linear_algebra_in_one_thread():
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    def counts():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = counts()
    with threads.one_blas_thread():
        assert set(counts()) <= {1}
    assert counts() == before
