"""Fits over parts: in memory, streamed and on Dask with the same bits, and near the plain fit."""

import os
import signal
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from tests.cluster.cut_judgments import CutJudgments
from tests.cluster.some_judgments import assert_same_bits, fitted, some_grades, some_preferences

import crowdrank as cr
from crowdrank.api import in_parts
from crowdrank.cluster.dask_executor import Dask
from crowdrank.cluster.executor import InMemory, RunFiles, Streamed
from crowdrank.cluster.packing import pack_judgments
from crowdrank.errors import ParameterError
from crowdrank.registry import make


@pytest.mark.parametrize(("name", "why"), [("elo", "in the order")])
def test_methods_that_cannot_be_cut_say_why_and_what_to_take(name, why, tmp_path, monkeypatch):
    packed = pack_judgments([some_preferences()], tmp_path / "packed", part_rows=300)
    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)
    with pytest.raises(ParameterError, match=f"{why}.*use .*crowd_bt"):
        cr.aggregate(packed, name)


def test_a_sample_of_whole_queries_judges_annotators(monkeypatch):
    monkeypatch.setattr("crowdrank.data.parted.SAMPLE_ROWS", 400)
    grades, method = some_grades(), make("aggregator", "dawid_skene", {"calibrated": False})
    found = fitted(method, CutJudgments(grades, 3), InMemory())
    sample = found.quality_source.measure.judgments
    assert 100 < len(sample) < 800
    assert set(sample.items.query_ids()) < set(grades.items.query_ids())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found.quality.n_judgments.sum() == len(grades)


def test_times_of_grades_are_known_in_parts_too(tmp_path):
    grades, method = some_grades(), make("aggregator", "dawid_skene", {})
    timed = replace(grades, time=np.random.default_rng(3).permutation(len(grades)).astype(float))
    plain, without = (method.fit(given).estimates["calibration"] for given in (timed, grades))
    assert plain != pytest.approx(without, abs=1e-3)
    packed = pack_judgments([timed], tmp_path / "packed", part_rows=300)
    for cut in (CutJudgments(timed, 3), packed):
        assert fitted(method, cut, InMemory()).estimates["calibration"] == pytest.approx(plain, abs=1e-6)


@pytest.mark.parametrize("name", ["crowd_bt", "multinomial_preference"])
def test_many_shared_items_have_passes_for_products(name, monkeypatch):
    method, cut = make("aggregator", name, {"tol": 1e-9}), CutJudgments(some_preferences(n_queries=1), 3, "annotator")
    table = fitted(method, cut, InMemory())
    monkeypatch.setattr("crowdrank.models.pairs.crowd_bt.MAX_TABLE_ITEMS", 5)
    found = fitted(method, cut, InMemory())
    np.testing.assert_allclose(found.scores, table.scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.std_error, table.std_error, rtol=0.25)
    assert_same_bits(found, fitted(method, cut, Streamed()))


def test_judgments_by_annotator_are_of_one_query():
    with pytest.raises(ParameterError, match="takes one query, and there are 20"):
        make("aggregator", "crowd_bt", {}).over_blocks(CutJudgments(some_preferences(), 2, "annotator"))


def test_reversed_crowds_are_turned_as_in_the_plain_fit():
    preferences, method = some_preferences(), make("aggregator", "crowd_bt", {"tol": 1e-9})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = method.fit(preferences, trusted=[0])
        found = fitted(method, CutJudgments(preferences, 4), InMemory(), trusted=[0])
    assert np.corrcoef(found.scores, plain.scores)[0, 1] > 0.99


def test_a_killed_worker_changes_nothing(client, tmp_path):
    grades, method = some_grades(300), make("aggregator", "dawid_skene", {"calibrated": False})
    packed = pack_judgments([grades], tmp_path / "packed", part_rows=40)
    here = fitted(method, packed, InMemory())
    victim = next(iter(client.run(os.getpid).values()))

    def kill():
        time.sleep(0.05)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    assert_same_bits(here, fitted(method, packed, Dask(client, block=1)))
    killer.join()


class StopError(Exception):
    pass


@pytest.mark.parametrize("name", ["dawid_skene", "glad"])
def test_an_interrupted_run_goes_on_with_the_same_bits(name, tmp_path):
    cut, method = CutJudgments(some_grades(300), 4), make("aggregator", name, {"calibrated": False, "max_iter": 8})
    whole = fitted(method, cut, InMemory())
    calls = []

    def stop(done, total, what):
        calls.append(what)
        if len(calls) == 18:
            raise StopError

    files = RunFiles.open(tmp_path / "run", {"method": name})
    with pytest.raises(StopError):
        fitted(method, cut, Streamed(files, stop))
    n_before, calls[:] = len(calls), ["already stopped once"] * 18
    assert_same_bits(whole, fitted(method, cut, Streamed(RunFiles.open(tmp_path / "run", {"method": name}), stop)))
    assert len(calls) > 18
    assert n_before == 18
    with pytest.raises(ParameterError, match="another method"):
        RunFiles.open(tmp_path / "run", {"method": "other"})


def test_many_packed_judgments_go_in_parts_and_few_as_a_whole(tmp_path, monkeypatch):
    grades = some_grades()
    packed = pack_judgments([grades], tmp_path / "packed", part_rows=200)
    few = cr.aggregate(packed, "dawid_skene")
    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)
    many = cr.aggregate(str(tmp_path / "packed"), "dawid_skene", stream=True)
    np.testing.assert_allclose(many.scores, few.scores, rtol=1e-9)
    assert many.frame()["item"].to_list() == few.frame()["item"].to_list()
    with pytest.raises(ParameterError, match="by itself"):
        cr.aggregate(packed, "dawid_skene", params={"per_query": True})
    with pytest.raises(ParameterError, match="exclude each other"):
        cr.aggregate(packed, "dawid_skene", stream=True, cluster="local:2")


def test_a_run_with_other_known_items_is_another_run(tmp_path, monkeypatch):
    packed = pack_judgments([some_grades(200)], tmp_path / "packed", part_rows=80)
    monkeypatch.setattr(in_parts, "MANY_ROWS", 100)
    run = {"params": {"calibrated": False, "max_iter": 4}, "resume": tmp_path / "run"}
    known = {"query": [0], "item": [0], "grade": [1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = cr.aggregate(packed, "dawid_skene", known=known, **run)
        assert (cr.aggregate(packed, "dawid_skene", known=known, **run).scores == first.scores).all()
    with pytest.raises(ParameterError, match="another arguments"):
        cr.aggregate(packed, "dawid_skene", known={**known, "grade": [2]}, **run)
