"""Files that released versions wrote are read by this one."""

from pathlib import Path

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
