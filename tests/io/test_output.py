"""Writing: whole files or none, and one sentence for what cannot be written."""

import gzip
import io
import json
import os
import sys

import numpy as np
import polars as pl
import pytest

from crowdrank.data.showing import round_floats
from crowdrank.errors import ParameterError
from crowdrank.io import output, read_table, write_table

FRAME = pl.DataFrame({"item": ["a,b", "ü\n"], "score": [1.5, None], "n": [1, 2]})


def message(*args, **options):
    with pytest.raises(ParameterError) as caught:
        write_table(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.json", "a.jsonl", "a.parquet", "a", "a.csv.gz", "a.json.gz"])
def test_nothing_but_the_file_is_left(tmp_path, name):
    write_table(FRAME, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes()[:2] == b"\x1f\x8b" or not name.endswith("gz")
    found = read_table(tmp_path / name)
    assert found.columns == FRAME.columns
    assert found["n"].cast(pl.Int64).to_list() == [1, 2]


def test_the_format_asked_for_wins(tmp_path):
    write_table(FRAME, tmp_path / "a.csv", "json")
    assert json.loads((tmp_path / "a.csv").read_text())[1] == {"item": "ü\n", "score": None, "n": 2}
    assert "format='xml' is not known; did you mean 'xlsx'? choose one of 'csv'" in message(
        FRAME, tmp_path / "a.csv", "xml"
    )


def test_json_is_strict(tmp_path):
    write_table(pl.DataFrame({"x": [float("nan"), float("inf"), 1.0]}), tmp_path / "a.json")
    rows = json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    assert [row["x"] for row in rows] == [None, None, 1.0]


def test_empty_tables_can_be_written(tmp_path):
    for name in ("a.csv", "a.json", "a.jsonl", "a.parquet"):
        write_table(FRAME.head(0), tmp_path / name)
    assert json.loads((tmp_path / "a.json").read_text()) == []
    assert (tmp_path / "a.csv").read_text() == "item,score,n\n"


def test_standard_output(capsysbinary, monkeypatch):
    for target in (None, "-"):
        write_table(FRAME, target)
        assert capsysbinary.readouterr().out.startswith(b"item,score,n\n")
    write_table(FRAME, None, "parquet")
    assert capsysbinary.readouterr().out[:4] == b"PAR1"
    text_only = io.StringIO()
    monkeypatch.setattr(sys, "stdout", text_only)
    write_table(FRAME)
    assert text_only.getvalue().startswith("item,score,n\n")


def test_an_existing_file_is_replaced_whole_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    write_table(FRAME, link)
    assert link.is_symlink()
    assert path.read_text().startswith("item,")
    assert path.stat().st_mode & 0o777 == 0o640


def test_new_files_have_ordinary_permissions(tmp_path):
    write_table(FRAME, tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("")
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "b.csv").stat().st_mode


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), RuntimeError("boom")])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def fail(handle):
        handle.write(b"half of it")
        raise error

    with pytest.raises(ParameterError if isinstance(error, OSError) else type(error)) as caught:
        output.write_with(fail, path)
    if isinstance(error, OSError):
        assert "disk is full" in str(caught.value)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]


def test_what_cannot_be_written_is_said(tmp_path):
    assert "its folder does not exist" in message(FRAME, tmp_path / "none" / "a.csv")
    assert "is a folder" in message(FRAME, tmp_path)
    (tmp_path / "file").write_text("")
    assert "its folder does not exist" in message(FRAME, tmp_path / "file" / "a.csv")
    assert "holds lists" in message(pl.DataFrame({"x": [[1, 2]]}), tmp_path / "a.csv")
    assert "NUL" in message(pl.DataFrame({"x": ["a\0b"]}), tmp_path / "a.csv")
    if os.path.exists("/dev/full"):
        for form in ("csv", "parquet", "json"):
            assert "disk is full" in message(FRAME, "/dev/full", form)


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write everywhere")
def test_folders_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    assert "may not be written" in message(FRAME, tmp_path / "a.csv")


def test_devices_and_pipes_are_written_directly():
    write_table(FRAME, "/dev/null")
    assert not os.path.isfile("/dev/null")


def test_gzip_is_the_same_every_time(tmp_path):
    write_table(FRAME, tmp_path / "a.csv.gz")
    first = (tmp_path / "a.csv.gz").read_bytes()
    write_table(FRAME, tmp_path / "a.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == first
    assert gzip.decompress(first).startswith(b"item,score,n\n")


def test_text_has_six_significant_digits_and_no_rounding_noise(tmp_path):
    numbers = [2 / 3, -8.1e-17, -0.0, 1234567.891, 1e-2 / 3, 123.456789, None, float("inf"), 0.1 + 0.2]
    frame = pl.DataFrame({"item": [str(place) for place in range(len(numbers))], "score": numbers})
    write_table(frame, tmp_path / "a.csv")
    said = [line.split(",")[1] for line in (tmp_path / "a.csv").read_text().splitlines()[1:]]
    assert said == ["0.666667", "0.0", "0.0", "1234568.0", "0.00333333", "123.457", "", "inf", "0.3"]
    write_table(frame, tmp_path / "a.md")
    cells = [line.split(" | ")[1].strip(" |") for line in (tmp_path / "a.md").read_text().splitlines()[2:]]
    assert cells == said
    write_table(frame, tmp_path / "a.tsv", digits=2)
    assert (tmp_path / "a.tsv").read_text().splitlines()[1] == "0\t0.67"


@pytest.mark.parametrize("name", ["a.parquet", "a.json", "a.jsonl", "exact.csv"])
def test_digits_are_not_lost_where_exactness_counts(tmp_path, name):
    numbers = [2 / 3, -8.1e-17, 1234567.891, 0.1 + 0.2]
    write_table(pl.DataFrame({"score": numbers}), tmp_path / name, digits=17 if name == "exact.csv" else None)
    assert read_table(tmp_path / name)["score"].cast(pl.Float64).to_list() == numbers


@pytest.mark.parametrize("digits", [1, 3, 6, 9])
def test_rounded_numbers_are_those_of_printf(digits):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=2000) * 10.0 ** rng.integers(-30, digits, 2000)
    for scale in (1.0, 1e-20):
        # a column of one size, in which nothing is 0 beside the others
        column = pl.DataFrame({"x": np.sign(numbers) * scale * np.abs(numbers) ** 0.05})
        rounded = column.select(round_floats(column.schema, digits))["x"].to_list()
        assert rounded == [float(f"{value:.{digits}g}") for value in column["x"]]
