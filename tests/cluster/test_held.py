"""Judgments in memory have the parts of packed ones, and a file has one form whether it is held, streamed or shared."""

import gc

import numpy as np
import polars as pl
import pytest
from tests.cluster.some_judgments import assert_same_bits, some_grades, some_preferences, some_rankings
from typer.testing import CliRunner

import crowdrank as cr
from crowdrank.api import in_parts, pack_aside
from crowdrank.cli.app import app
from crowdrank.cluster import packing
from crowdrank.cluster.packing import hold_judgments, pack_judgments
from crowdrank.errors import ParameterError
from crowdrank.registry import make

KINDS = {
    "grades": some_grades,
    "preferences": some_preferences,
    "rankings": some_rankings,
    "one query": lambda: some_preferences(n_queries=1),
    "weights": lambda: some_grades().with_weights(np.linspace(0.1, 2.0, 900)),
    "other grades": lambda: some_grades(n_levels=200),
}


def shuffled(judgments):
    return judgments.select(np.random.default_rng(1).permutation(len(judgments)))


def assert_same_judgments(one, other):
    assert type(one) is type(other)
    assert one.items.frame().equals(other.items.frame())
    assert one.annotators.ids.equals(other.annotators.ids)
    for name in ("annotator", "weight", "time", *one.answers):
        first, second = getattr(one, name), getattr(other, name)
        assert (first is None) == (second is None), name
        assert first is None or np.array_equal(first, second), name
    assert getattr(one, "declared", None) == getattr(other, "declared", None)


@pytest.mark.parametrize("name", KINDS)
def test_parts_in_memory_are_those_of_packed_judgments(name, tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "PART_ROWS", 250)
    judgments = KINDS[name]()
    packed, held = pack_judgments([judgments], tmp_path), hold_judgments(shuffled(judgments))
    assert held.n_parts == packed.n_parts
    assert (held.n_parts > 1) == (name != "one query")
    assert (held.rows_of_parts, held.levels, held.by) == (packed.rows_of_parts, packed.levels, packed.by)
    assert repr(held).partition("(")[2] == repr(packed).partition("(")[2]
    for number in range(packed.n_parts):
        assert (held.item_codes(number) == packed.item_codes(number)).all()
        assert_same_judgments(held.part(number), packed.part(number))


@pytest.fixture
def small(monkeypatch):
    """Few judgments count as many, and parts hold few."""
    monkeypatch.setattr(in_parts, "MANY_ROWS", 500)
    monkeypatch.setattr(packing, "PART_ROWS", 250)
    monkeypatch.setattr("crowdrank.data.parted.SAMPLE_ROWS", 700)


FITS = [
    ("preferences", "bradley_terry"),
    ("one query", "bradley_terry"),
    ("weighted", "bradley_terry"),
    ("preferences", "borda"),
    ("preferences", "crowd_bt"),
    ("one query", "crowd_bt"),
    ("grades", "mean_grade"),
    ("grades", "dawid_skene"),
    ("grades", "auto"),
]


def files_of(name, folder):
    """A file of judgments in no order."""
    judgments = KINDS["preferences" if name == "weighted" else name]()
    if name == "weighted":
        judgments = judgments.with_weights(np.random.default_rng(2).uniform(0.1, 2.0, len(judgments)))
    path = folder / "votes.parquet"
    shuffled(judgments).frame().write_parquet(path)
    return path


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(("name", "method"), FITS)
def test_a_file_has_one_form_in_memory_and_streamed(name, method, tmp_path, small):
    path = files_of(name, tmp_path)
    for way in ("--no-stream", "--stream"):
        out = ["-o", tmp_path / f"ranks{way}.csv", "--annotators", tmp_path / f"who{way}.csv"]
        intervals = ["--intervals", 0.9] if method in ("bradley_terry", "crowd_bt") else []
        run("aggregate", path, "-m", method, way, *intervals, *out)
    for kept in ("ranks", "who"):
        one, other = (pl.read_csv(tmp_path / f"{kept}{way}.csv") for way in ("--no-stream", "--stream"))
        assert one.equals(other), kept


@pytest.mark.parametrize("rows", [400, 900])
def test_few_judgments_of_a_file_are_fitted_as_a_whole_wherever_the_fit_runs(rows, tmp_path, small, client):
    grades = shuffled(some_grades(rows))
    path = tmp_path / "votes.parquet"
    grades.frame().write_parquet(path)
    elsewhere = {"cluster": client} if rows == 900 else {"stream": True}
    held, other = cr.aggregate(str(path), "dawid_skene"), cr.aggregate(grades, "dawid_skene", **elsewhere)
    assert_same_bits(held, other)
    assert (held.quality.quality == other.quality.quality).all()
    plain = make("aggregator", "dawid_skene", {}).fit(grades)
    assert rows == 900 or (plain.scores == held.scores).all()


def test_what_cannot_go_in_parts_is_fitted_as_a_whole_in_memory_and_refused_elsewhere(small, tmp_path):
    preferences = some_preferences()
    held = cr.aggregate(preferences, "elo")
    assert (held.scores == make("aggregator", "elo", {}).fit(preferences).scores).all()
    with pytest.raises(ParameterError, match="cannot go over the parts"):
        cr.aggregate(preferences, "elo", stream=True)
    grades = some_grades()
    each = cr.aggregate(grades, "dawid_skene", params={"per_query": True})
    assert len(each.items) == grades.n_items


def test_a_query_larger_than_a_part_is_cut_by_annotator(small, tmp_path, monkeypatch):
    monkeypatch.setattr("crowdrank.cluster.packing.MOST_PART_ROWS", 600)
    preferences = shuffled(some_preferences(n_queries=1))
    held, packed = hold_judgments(preferences), pack_aside(preferences)
    assert held.by == packed.by == "annotator"
    assert held.n_parts == packed.n_parts > 1
    for number in range(packed.n_parts):
        assert_same_judgments(held.part(number), packed.part(number))
    folder = packed.path
    assert_same_bits(cr.aggregate(held, "crowd_bt"), cr.aggregate(packed, "crowd_bt", stream=True))
    del packed
    gc.collect()
    assert not folder.exists()
