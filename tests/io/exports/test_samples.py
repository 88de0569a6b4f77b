"""A small file of every layout: found by its signature, read rightly, and what is left out is said."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from benchmarks.fuzz import places
from benchmarks.more_samples import ALL_SAMPLES as SAMPLES

import crowdrank as cr
from crowdrank.errors import CrowdrankError
from crowdrank.io import listen
from crowdrank.io.exports import EXPORTS, IMPORTERS, Export, detect, read
from crowdrank.io.exports.streaming import Beginning
from crowdrank.io.read_options import ReadOptions

SAID = re.compile(r"rows\.(?:refuse|note)\(\s*\"(\w+)\"")

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
    refused = {name for name, export in EXPORTS.items() if export.refusal}
    assert {sample.importer for sample in SAMPLES} | refused == set(IMPORTERS)


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


NESTED = {
    name: sample for name, sample in BY_NAME.items() if Path(sample.name).suffix in (".json", ".jsonl")
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")
@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("other", [1.5, [1.5], {"a": 1.5}, [None]])
def test_another_kind_of_value_anywhere_is_refused_in_one_sentence_or_left_out(name, other, tmp_path):
    sample, path = NESTED[name], tmp_path / NESTED[name].name
    values = [json.loads(line) for line in (sample.data.splitlines() if path.suffix == ".jsonl" else [sample.data])]
    refusals = []
    # each place of a nested value once, wherever it recurs
    once = {tuple(0 if isinstance(key, int) else key for key in place): place for place in places(values)}
    for *outer, last in (place for place in once.values() if place):
        changed = json.loads(json.dumps(values))
        around = changed
        for key in outer:
            around = around[key]
        if isinstance(around[last], dict | list):
            around[last] = other
            path.write_text("\n".join(map(json.dumps, changed)))
            try:
                cr.read_judgments(path, source=sample.importer, **sample.options)
            except CrowdrankError as error:
                refusals.append(str(error))
    assert not [text for text in refusals if "\n" in text]


def test_a_value_of_another_shape_is_named_with_its_record(tmp_path):
    path = tmp_path / "games.jsonl"
    line = {"question_id": 1, "model": "x", "baseline": "y", "judge": "j", "games": [{"score": "A>B"}]}
    path.write_text("\n".join(map(json.dumps, [line, line | {"games": 1.5}])))
    with pytest.raises(CrowdrankError, match=r"record 2: 'games' holds a number where an array is needed"):
        cr.read_judgments(path)


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


@pytest.mark.parametrize(
    ("record", "sign", "told"),
    [
        ({"eval": {"model": "m", "task": "t"}}, "eval/model, eval/task", True),
        ({"eval": {"model": "m"}}, "eval/model, eval/task", False),
        ({"eval.model": "m", "eval.task": "t"}, "eval/model, eval/task", False),
        ({"data": [{"key": 1, "score": 2}]}, "data[]/key, data[]/score|value", True),
        ({"data": []}, "data[]/key", False),
        ({"model": 1, "games": []}, "model, !games", False),
        ({"q.responses.users": []}, "*.responses.users", True),
    ],
)
def test_fields_of_a_record_tell_its_tool(record, sign, told):
    export = Export("a title", "row", "module.function", signs=(sign,))
    assert export.is_told_by(Beginning(objects=(record,))) is told


def test_columns_of_a_header_tell_its_tool():
    export = Export("a title", "row", "module.function", signs=("INPUT:*, OUTPUT:*",))
    assert export.is_told_by(Beginning(header=("INPUT:x", "OUTPUT:y")))
    assert not export.is_told_by(Beginning(header=("INPUT:x", "y")))
    assert not export.is_told_by(Beginning(objects=({"INPUT:x": 1, "OUTPUT:y": 2},)))


def test_each_sentence_of_an_export_is_said_by_its_reader():
    """By its key, and no reader says what its table lacks."""
    folder = Path(cr.__file__).parent / "io" / "exports"
    said = {path.stem: set(SAID.findall(path.read_text(encoding="utf-8"))) for path in folder.glob("*.py")}
    written = {(export.reader.split(".")[0], key) for export in EXPORTS.values() for key in export.says}
    assert written == {(module, key) for module, keys in said.items() for key in keys}
