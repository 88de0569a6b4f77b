"""Large statistics and parameters go to and from workers in other ways, which change no bit of a fit."""

import numpy as np
import pytest
from tests.cluster.some_judgments import assert_same_bits, fitted, some_grades

import crowdrank as cr
from crowdrank.api import in_parts
from crowdrank.cluster import dask_executor
from crowdrank.cluster.dask_executor import Dask
from crowdrank.cluster.executor import InMemory
from crowdrank.cluster.packing import pack_judgments
from crowdrank.io.notices import collect_notices
from crowdrank.registry import make


@pytest.fixture
def packed(tmp_path):
    return pack_judgments([some_grades()], tmp_path / "packed", part_rows=200)


def test_rows_without_entries_are_not_sent_and_come_back_bit_by_bit(monkeypatch):
    monkeypatch.setattr(dask_executor, "LARGE_STATISTICS", 100)
    sparse, full, small = np.zeros((40, 2, 3)), np.ones((40, 3)), np.zeros(5)
    sparse[[3, 30], 1, 2] = 2.5, -0.0
    cut = dask_executor.without_empty_rows((sparse, full, small, 1.5))
    assert cut[0].row.tolist() == [3, 30]
    assert cut[1] is full
    found = dask_executor.with_empty_rows(cut)
    assert found[0].tobytes() == sparse.tobytes()
    assert found[2:] == (small, 1.5)


def test_large_statistics_and_parameters_change_no_bit_on_dask(packed, client, monkeypatch, tmp_path):
    method = make("aggregator", "dawid_skene", {"calibrated": False, "max_iter": 5})
    here = fitted(method, packed, InMemory())
    client.run(lambda: setattr(dask_executor, "LARGE_STATISTICS", 10))
    monkeypatch.setattr(dask_executor, "LARGE_PARAMETERS", 10)
    written = []
    keep = dask_executor.write_parameters
    monkeypatch.setattr(dask_executor, "write_parameters", lambda *given: written.append(keep(*given)) or written[-1])
    try:
        assert_same_bits(here, fitted(method, packed, Dask(client)))
    finally:
        client.run(lambda: setattr(dask_executor, "LARGE_STATISTICS", 64 << 20))
    assert None not in written
    assert len({path.name for path in written}) > 5


def test_parts_beyond_the_memory_of_workers_are_read_in_every_pass(packed, client, monkeypatch):
    method = make("aggregator", "dawid_skene", {"calibrated": False, "max_iter": 5})
    loads = []
    monkeypatch.setattr(dask_executor, "_BYTES_PER_ROW", 1e9)
    monkeypatch.setattr(dask_executor, "_DaskRun", type("Run", (dask_executor._DaskRun,), {
        "_load": lambda run: (loads.append(run.keeps), super(type(run), run)._load())[1],
    }))  # fmt: skip
    assert_same_bits(fitted(method, packed, InMemory()), fitted(method, packed, Dask(client)))
    assert loads == [False]


def test_one_number_for_each_of_very_many_annotators_is_advised(packed, monkeypatch):
    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)
    monkeypatch.setattr(in_parts, "MANY_ANNOTATORS", 10)
    with collect_notices() as said:
        cr.aggregate(packed, "dawid_skene")
    assert any("learns one number for each" in str(one) for one in said)
