"""Files that released versions wrote are read by this one."""

import json
from pathlib import Path

import polars as pl
import pytest

import crowdrank as cr

FOLDER = Path(__file__).parent / "released"
VERSIONS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and path.name[0].isdigit())


def test_there_are_files_of_a_release():
    assert VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_consensus_files_are_read(version, ending):
    consensus = cr.read_consensus(FOLDER / version / f"consensus.{ending}")
    assert consensus.order() == ["x", "y", "z"]
    written = pl.read_csv(FOLDER / version / "consensus.csv")
    assert dict(zip(consensus.frame()["item"], consensus.frame()["score"], strict=True)) == pytest.approx(
        dict(zip(written["item"], written["score"], strict=True))
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_annotators_are_read_with_their_quality(version):
    path = FOLDER / version / "consensus.json"
    quality = cr.read_consensus(path).quality.frame()
    written = {one["annotator"]: one["quality"] for one in json.loads(path.read_text())["quality"]["annotators"]}
    assert len(written) == 3
    assert dict(zip(quality["annotator"], quality["quality"], strict=True)) == pytest.approx(written)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["list_net", "lambda_mart"])
def test_model_files_are_read(version, name):
    ranked = cr.rank(FOLDER / version / f"{name}.model", {"item": ["short", "long"], "length": [2.0, 8.0]})
    assert sorted(ranked["item"]) == ["long", "short"]
    if name == "list_net":
        assert ranked["item"].to_list() == ["long", "short"]


@pytest.mark.parametrize("version", VERSIONS)
def test_packed_judgments_are_read(version):
    packed = cr.scan_judgments(FOLDER / version / "packed")
    assert (packed.kind, packed.rows) == ("grade", 9)
    assert cr.aggregate(packed, method="mean_grade").order()[-1] == "z"
