"""What goes wrong in fits over parts: each has its sentence, in bounded time, and loses nothing.

Mixed kinds, a second writer and a full disk while packing are in ``test_packing.py``.
"""

import contextlib
import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest
from tests.cluster.test_in_parts import assert_same_bits, fitted, some_grades

import crowdrank as cr
from crowdrank.api import in_parts
from crowdrank.cluster import dask_executor
from crowdrank.cluster.dask_executor import Dask, dask_client
from crowdrank.cluster.executor import InMemory, RunFiles, Streamed
from crowdrank.cluster.packing import pack_judgments
from crowdrank.errors import ClusterError, JudgmentError, ParameterError
from crowdrank.protocols import BlockFit
from crowdrank.registry import make

PARAMS = {"calibrated": False, "max_iter": 6}
HANGS = 240.0
"""Seconds after which something is taken for hanging: a busy machine that compiles first is slow, and not broken."""


@pytest.fixture
def packed(tmp_path):
    return pack_judgments([some_grades(300)], tmp_path / "packed", part_rows=60)


@pytest.fixture(scope="module")
def client():
    with dask_client("local:1") as found:
        yield found


def method():
    return make("aggregator", "dawid_skene", PARAMS)


def test_a_damaged_part_is_named_by_the_worker_that_reads_it(packed, client):
    file = packed.path / packed.manifest["parts"][1]["file"]
    content = file.read_bytes()
    file.write_bytes(content[:-10] + b"0123456789")
    begun = time.monotonic()
    with pytest.raises(JudgmentError, match=f"{file.name} is damaged"):
        fitted(method(), cr.scan_judgments(packed.path), Dask(client, block=1))
    file.unlink()
    with pytest.raises(JudgmentError, match=f"{file.name} is missing"):
        fitted(method(), cr.scan_judgments(packed.path), Streamed())
    assert time.monotonic() - begun < HANGS


def test_a_full_disk_keeps_the_passes_that_are_done(packed, tmp_path, monkeypatch):
    whole = fitted(method(), packed, InMemory())
    calls, sync = [], os.fsync

    def full(handle):
        calls.append(handle)
        if len(calls) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ParameterError, match=r"No space left on device.*nothing was lost: make room and run again"):
        fitted(method(), packed, Streamed(RunFiles.open(tmp_path / "run", {"method": "ds"})))
    assert_same_bits(whole, fitted(method(), packed, Streamed(RunFiles.open(tmp_path / "run", {"method": "ds"}))))


def one_pass(step):
    """A fit of one pass over parts whose judgments do not matter."""
    return BlockFit(lambda part: None, lambda blocks: blocks.total(step))


def find_no_memory(part, state):
    raise MemoryError


def end_the_worker(part, state):
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return (0.0,), None


@pytest.mark.parametrize("step", [find_no_memory, end_the_worker])
def test_workers_without_memory_are_spoken_of(packed, client, step):
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    begun = time.monotonic()
    with pytest.raises(ClusterError, match=r"out of memory: give each more, or pack .* smaller parts .*resume"):
        Dask(client, block=8).run(one_pass(step), packed)
    assert time.monotonic() - begun < HANGS


def test_a_scheduler_that_is_gone_is_spoken_of(packed, monkeypatch):
    from distributed import Client, LocalCluster

    monkeypatch.setattr(dask_executor, "_WAIT_FOR_SCHEDULER", 0.5)
    monkeypatch.setattr(dask_executor, "_POLL", 0.2)
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 .*local:2"):
        in_parts.fit_packed(packed, method(), {}, in_parts.Passes(cluster="tcp://127.0.0.1:9"))
    cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=None, silence_logs=50)
    client = Client(cluster.scheduler_address)

    def sleep(part, state):
        time.sleep(0.5)
        return (0.0,), None

    threading.Timer(1.0, lambda: client.cluster_of_test.close()).start()
    client.cluster_of_test = cluster
    begun = time.monotonic()
    with pytest.raises(ClusterError, match=r"the cluster failed in pass 1 .*resume"):
        Dask(client, block=1).run(one_pass(sleep), packed)
    assert time.monotonic() - begun < HANGS
    with contextlib.suppress(TimeoutError):  # nobody is left to answer
        client.close(timeout=1)


_CALLER = """
import os, signal, sys, warnings
import crowdrank as cr
from crowdrank.api import in_parts
warnings.simplefilter("ignore")
in_parts.MANY_ROWS = 100
calls = []
def progress(done, total, what):
    calls.append(what)
    if len(calls) == 12:
        os.kill(os.getpid(), signal.SIGKILL)
cr.aggregate(sys.argv[1], "dawid_skene", params={"calibrated": False, "max_iter": 6}, stream=True, resume=sys.argv[2],
             progress=progress)
"""


def test_a_caller_that_was_killed_goes_on(packed, tmp_path, monkeypatch):
    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)
    run = tmp_path / "run"
    ended = subprocess.run([sys.executable, "-c", _CALLER, str(packed.path), str(run)], timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL
    kept = sorted(path.name for path in (run / "totals").iterdir())
    assert kept
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cr.aggregate(packed, "dawid_skene", params=PARAMS, resume=run)
    assert_same_bits(fitted(method(), packed, InMemory()), found)
