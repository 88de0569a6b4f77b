"""Columns of every type that Parquet and frames know, wherever a column may stand; damaged Parquet; gzip bombs."""

import datetime
import decimal
import gzip
import os
import warnings

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
import crowdrank.io as cio
from crowdrank.errors import CrowdrankError, JudgmentError, ParameterError
from crowdrank.io import sources

DAYS = [datetime.datetime(2020, 1, day, tzinfo=datetime.UTC) for day in (1, 2, 3, 4)]
ODD = {
    "categorical": pl.Series(["a", "b", "a", "b"], dtype=pl.Categorical),
    "numbers as categories": pl.Series(["1", "2", "3", "4"], dtype=pl.Categorical),
    "enum": pl.Series(["a", "b", "a", "b"], dtype=pl.Enum(["a", "b"])),
    "bytes": pl.Series([b"a", b"\xff", b"a", b"b"]),
    "text as bytes": pl.Series([b"1", b"2", b"1", b"2"]),
    "list": pl.Series([[1], [2], [1], [2]]),
    "empty list": pl.Series([[], [], [], []], dtype=pl.List(pl.Int64)),
    "struct": pl.Series([{"a": 1}] * 4),
    "array": pl.Series([[1, 2]] * 4, dtype=pl.Array(pl.Int64, 2)),
    "nested": pl.Series([[{"a": [1]}]] * 4),
    "decimal": pl.Series([decimal.Decimal("1.5"), decimal.Decimal(2), None, decimal.Decimal(7)]),
    "duration": pl.Series([datetime.timedelta(seconds=second) for second in range(4)]),
    "date": pl.Series([day.date() for day in DAYS]),
    "datetime": pl.Series(DAYS),
    "nanoseconds": pl.Series([10**18] * 4).cast(pl.Datetime("ns")),
    "time of day": pl.Series([datetime.time(hour) for hour in range(4)]),
    "nothing": pl.Series([None] * 4, dtype=pl.Null),
    "blank text": pl.Series([None] * 4, dtype=pl.String),
    "truth values": pl.Series([True, False, True, None]),
    "unsigned": pl.Series([2**64 - 1, 1, 2, 3], dtype=pl.UInt64),
    "long integers": pl.Series([2**100, 1, 2, 3], dtype=pl.Int128),
    "not a number": pl.Series([float("nan"), 1, 2, 3]),
    "infinite": pl.Series([float("inf"), 1, 2, 3]),
    "objects": pl.Series([object()] * 4, dtype=pl.Object),
}
SHARED = {"query": ["q"] * 4, "annotator": ["a", "a", "b", "b"], "weight": [1.0, 1.0, 2.0, 2.0], "time": [1, 1, 2, 2]}
PAIRS = {"left": ["x", "y", "x", "y"], "right": ["y", "z", "z", "x"], "winner": ["left", "right", "tie", "left"]}
ITEMS = {"query": ["q"] * 4, "item": ["x", "y", "z", "w"]}
TABLES = {
    "grades": (cio.read_judgments, {**SHARED, "item": ["x", "y", "x", "y"], "grade": [1, 2, 3, 4], "group": ["g"] * 4}),
    "preferences": (cio.read_judgments, {**SHARED, **PAIRS}),
    "rankings": (cio.read_judgments, {**SHARED, "item": list("xyxy"), "rank": [1, 2, 2, 1], "ranking": [1, 1, 2, 2]}),
    "consensus": (
        cio.read_consensus,
        {**ITEMS, "score": [1.0, 2, 3, 4], "rank": [4, 3, 2, 1], "grade": [1, 2, 3, 4], "std_error": [0.1] * 4,
         "confidence": [0.5] * 4},
    ),
    "features": (cio.read_features, {**ITEMS, "f1": [1.0, 2, 3, 4]}),
    "truth": (cio.read_truth, {**ITEMS, "grade": [1.0, 2, 3, 4]}),
    "known pairs": (cio.read_truth, {"query": ["q"] * 4, **PAIRS}),
}  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_every_type_in_every_column(table, tmp_path):
    reader, columns = TABLES[table]
    n_read, said = 0, []
    for column in columns:
        for name, values in ODD.items():
            frame = pl.DataFrame(columns).with_columns(values.alias(column))
            path = tmp_path / "odd.parquet"
            if values.dtype not in (pl.Object, pl.Int128):
                frame.write_parquet(path)
            elif table not in ("consensus", "features"):
                path = frame if reader is not cio.read_judgments else None
            else:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = reader(path) if path is not None else cr.aggregate(frame)
                    n_read += 1
                    for figure in ("grade", "scores", "weight", "time"):
                        numbers = getattr(found, figure, None)
                        assert numbers is None or np.isfinite(numbers).all(), (column, name)
                except CrowdrankError as error:
                    said.append(str(error))
    assert n_read > 20
    assert not any("\n" in text for text in said)


def test_times_as_categories():
    times = pl.Series(["2026-01-31T12:00:00", "2026-01-31T12:00:01"], dtype=pl.Categorical)
    grades = cr.Grades.from_frame({"item": ["x", "y"], "grade": [1, 2], "time": times})
    assert np.diff(grades.time).tolist() == [1.0]


def test_damaged_parquet_prints_nothing_of_polars(tmp_path, capfd):
    whole, path = tmp_path / "whole.parquet", tmp_path / "damaged.parquet"
    frame = pl.DataFrame(
        {"item": [f"i{number}" for number in range(200)], "grade": [number % 5 for number in range(200)]}
    )
    frame.write_parquet(whole)
    data, rng, said = whole.read_bytes(), np.random.default_rng(0), []
    for _ in range(150):
        changed = bytearray(data)
        for place in rng.integers(4, len(data), rng.integers(1, 20)):
            changed[place] = rng.integers(0, 256)
        path.write_bytes(changed)
        for reader in (cio.read_judgments, cio.read_consensus):
            try:
                reader(path)
            except CrowdrankError as error:
                said.append(str(error))
    assert len(said) > 50
    assert not any("\n" in text for text in said)
    assert capfd.readouterr().err == ""


def test_standard_error_is_passed_on_where_nothing_went_wrong(capfd):
    with sources.without_panics():
        os.write(2, b"said meanwhile\n")
    assert capfd.readouterr().err == "said meanwhile\n"


def test_a_gzip_bomb_is_found_on_the_way(tmp_path, monkeypatch):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"item,grade\n" + b"x,1\n" * 5_000_000))
    monkeypatch.setattr(sources, "_LARGE", 1 << 22)
    monkeypatch.setattr(sources, "BLOCK", 1 << 20)
    with pytest.raises(JudgmentError, match=r"unpacks to more than [\d.]+ MB, beyond 300 times its size") as caught:
        cio.read_judgments(path)
    assert "\n" not in str(caught.value)
    monkeypatch.setattr(sources, "_MOST_TIMES", 1e9)
    monkeypatch.setattr(sources, "available_memory", lambda: 1 << 24)
    with pytest.raises(JudgmentError, match=r"beyond a quarter of the free memory \(4\.2 MB\); split it"):
        cio.read_judgments(path)


@pytest.mark.parametrize("block", [7, 1 << 24])
def test_gzip_in_several_members_and_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(sources, "BLOCK", block)
    path = tmp_path / "parts.csv.gz"
    path.write_bytes(gzip.compress(b"item,grade\nx,1\n") + gzip.compress(b"y,2\n") + b"\0\0")
    assert cio.read_table(path).rows() == [("x", "1"), ("y", "2")]
    path.write_bytes(gzip.compress(b"item,grade\nx,1\n")[:-3])
    with pytest.raises(JudgmentError, match="truncated or damaged gzip"):
        cio.read_table(path)


@pytest.mark.parametrize(("n", "said"), [(10**8, "more than any interval needs"), (10**6, "of free memory; use fewer")])
def test_a_bootstrap_that_does_not_fit(monkeypatch, n, said):
    monkeypatch.setattr("crowdrank.data.files.available_memory", lambda: 10**7)
    votes = {"item": ["x", "y", "x", "y"], "grade": [1, 2, 2, 3]}
    with pytest.raises(ParameterError, match=said):
        cr.aggregate(votes, "mean_grade", bootstrap=n)
