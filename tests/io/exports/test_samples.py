"""A small file of every layout: found by its signature, read rightly, and what is left out is said."""

import polars as pl
import pytest
from benchmarks.more_samples import ALL_SAMPLES as SAMPLES

import crowdrank as cr
from crowdrank.errors import CrowdrankError
from crowdrank.io import listen
from crowdrank.io.exports import IMPORTERS, detect, read
from crowdrank.io.read_options import ReadOptions

BY_NAME = {f"{sample.importer}-{sample.name}": sample for sample in SAMPLES}


@pytest.fixture(params=BY_NAME, name="sample")
def _sample(request):
    return BY_NAME[request.param]


@pytest.fixture(name="path")
def _path(sample, tmp_path):
    path = tmp_path / sample.name
    path.write_bytes(sample.data)
    return path


def test_every_importer_has_a_sample():
    assert {sample.importer for sample in SAMPLES} | {"prolific"} == set(IMPORTERS)


def test_found_by_its_signature_alone(sample, path):
    assert detect(path) == sample.importer


@pytest.mark.parametrize("named", [False, True])
def test_read_rightly_with_and_without_its_name(sample, path, named):
    heard = []
    listen(heard.append)
    try:
        judgments = cr.read_judgments(path, source=sample.importer if named else None, **sample.options)
    finally:
        listen(None)
    assert judgments.kind == sample.kind
    assert judgments.n_judgments == sample.n
    assert judgments.n_annotators == sample.annotators
    assert judgments.n_items == sample.items
    assert getattr(judgments, "nominal", False) is sample.nominal
    for reason, count in sample.dropped.items():
        assert any(f"{count} {reason} left out" in line for line in heard)


def test_counts_add_up(sample, path):
    imported = read(path, sample.importer, ReadOptions(**sample.options))
    assert imported.dropped == sample.dropped
    assert (0 if imported.truth is None else imported.truth.height) == sample.truth
    assert set(imported.roles) - {"share"} <= set(imported.frame.columns)
    ids = [name for name in ("query", "item", "left", "right", "annotator") if name in imported.frame.columns]
    assert all(imported.frame.schema[name] == pl.String for name in ids)


def test_cut_off_anywhere_is_an_error_or_fewer_rows(sample, tmp_path):
    path = tmp_path / sample.name
    for end in range(1, len(sample.data), max(1, len(sample.data) // 23)):
        path.write_bytes(sample.data[:end])
        try:
            imported = read(path, sample.importer, ReadOptions(**sample.options))
        except CrowdrankError:
            continue
        # a cut row of a text table may show another status, never another judgment more
        assert imported.n_judgments <= sample.n + sum(sample.dropped.values())


def test_gzip_changes_nothing(sample, path, tmp_path):
    import gzip

    packed = tmp_path / "model_outputs" / f"{sample.name}.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(sample.data))
    assert detect(packed) == sample.importer
    plain, unpacked = (read(one, sample.importer, ReadOptions(**sample.options)).frame for one in (path, packed))
    named = {"jspsych", "lm-eval", "deepeval"}
    shared = [name for name in plain.columns if sample.importer not in named or name != "item"]
    assert plain.select(shared).equals(unpacked.select(shared))
