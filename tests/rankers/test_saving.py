"""Rankers to files and back, and files that are not what they should be."""

import hashlib
import io
import json
import os
import tracemalloc
import zipfile
from collections import Counter

import numpy as np
import polars as pl
import pytest
from benchmarks.fuzz_models import GOLDEN, make_files, members_of, mutated, outcome, packed

import crowdrank as cr
from crowdrank.errors import DataWarning, JudgmentError, ParameterError
from crowdrank.rankers import ListMLE, ListNet, RankSVM
from crowdrank.rankers.saving import seal


@pytest.fixture
def model(rows, tmp_path):
    """A saved ranker."""
    path = tmp_path / "model"
    ListNet().fit(rows.X, rows.y, qid=rows.qid).save(path)
    return path


@pytest.mark.parametrize("ranker", [ListNet(ridge=0.3), ListMLE(ties="random", seed=4), RankSVM(scale="query")])
def test_a_ranker_comes_back_as_it_was(ranker, rows, tmp_path):
    frame = pl.DataFrame(rows.X, schema=["length", "age", "clicks", "one"])
    ranker.fit(frame, rows.y, qid=rows.qid, eval_set=(frame, rows.y), eval_qid=rows.qid)
    ranker.save(tmp_path / "model")
    again = cr.load_ranker(str(tmp_path / "model"))
    assert type(again) is type(ranker)
    assert again.get_params() == ranker.get_params()
    np.testing.assert_array_equal(again.predict(frame, qid=rows.qid), ranker.predict(frame, qid=rows.qid))
    assert again.importance().equals(ranker.importance())
    assert again.curve_.equals(ranker.curve_)
    assert again.trace_ == ranker.trace_
    assert again.feature_names_in_.tolist() == frame.columns


def test_the_same_ranker_gives_the_same_bytes(model, tmp_path):
    cr.load_ranker(model).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == model.read_bytes()


def test_a_file_holds_numbers_and_json_and_its_version(model):
    with zipfile.ZipFile(model) as archive:
        assert sorted(archive.namelist()) == ["centre.npy", "ranker.json", "spread.npy", "weights.npy"]
        card = json.loads(archive.read("ranker.json"))
        assert np.load(archive.open("weights.npy")).tolist() == cr.load_ranker(model).weights_.tolist()
    assert card["format"] == 2
    assert card["crowdrank"] == cr.__version__
    assert card["method"] == "list_net"
    assert card["numbers"]["weights"] == ["<f8", 4]


def test_a_file_ends_in_its_checksum(model):
    whole = model.read_bytes()
    assert whole[-64:].decode() == hashlib.sha256(whole[:-64]).hexdigest()


def test_files_of_the_format_before_are_read_with_a_warning(tmp_path):
    expected = json.loads((GOLDEN / "format1.json").read_text())
    for name, scores in expected["scores"].items():
        with pytest.warns(DataWarning, match=rf"{name}.format1 was saved by an older version, .*; save it again"):
            ranker = cr.load_ranker(GOLDEN / f"{name}.format1")
        np.testing.assert_allclose(ranker.predict(expected["features"], qid=[0] * 6), scores, rtol=1e-12)
        ranker.save(tmp_path / name)
        again = cr.load_ranker(tmp_path / name)
        np.testing.assert_array_equal(again.predict(expected["features"]), ranker.predict(expected["features"]))
        assert again.importance().equals(ranker.importance())


def changed(path, **parts):
    """The file with some members replaced, those of None left out, the card by a function; its checksum fits."""
    members = members_of(path.read_bytes())
    for name, new in parts.items():
        name = {"card": "ranker.json"}.get(name, name if "/" in name else f"{name}.npy")
        members[name] = new if not callable(new) else json.dumps(new(json.loads(members[name]))).encode()
    path.write_bytes(seal({name: data for name, data in members.items() if data is not None}))


def array(values):
    """An array as npy."""
    memory = io.BytesIO()
    np.save(memory, values, allow_pickle=True)
    return memory.getvalue()


def with_fact(name, value):
    """What sets a fact on a card."""
    return lambda card: card | {"facts": card["facts"] | {name: value}}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"card": lambda c: c | {"format": 3, "crowdrank": "9.1"}}, r"by crowdrank 9\.1 in format 3, and this is"),
        ({"card": lambda c: c | {"format": "x"}}, "is damaged"),
        ({"card": lambda c: c | {"format": 1}}, "its checksum is missing"),
        ({"card": lambda c: []}, "not that of a ranker"),
        ({"card": b"{"}, "is damaged"),
        ({"card": b"[" * 100_000}, "too deep or too long"),
        ({"card": b'{"a":' * 100_000}, "too deep or too long"),
        ({"card": b"[" + b"0," * 5_000_000 + b"0]"}, "too deep or too long"),
        ({"card": lambda c: c | {"format": float("nan")}}, "NaN in its description"),
        ({"card": b"\xff\xfe"}, "is damaged"),
        ({"card": None}, "archive of something else"),
        ({"card": lambda c: c | {"method": "list_mle"}}, "has no parameter '\\w+'"),
        ({"card": lambda c: c | {"method": "new_net"}}, "holds a ranker 'new_net', which this version does not know"),
        ({"card": lambda c: c | {"method": 7}}, "not that of a ranker"),
        ({"card": lambda c: c | {"params": {"ridge": "many"}}}, "not of the right type"),
        ({"card": lambda c: c | {"params": {"ridge": "-" * 9000}}}, "'ridge' is not a number or a short text"),
        ({"card": lambda c: c | {"params": {"ridge": [[[1]]]}}}, "'ridge' is not a number or a short text"),
        ({"card": lambda c: c | {"params": {"ridge": -1.0}}}, r"ridge=-1.0 must be above 0"),
        ({"card": lambda c: {k: v for k, v in c.items() if k != "facts"}}, "is damaged"),
        ({"card": lambda c: c | {"numbers": ["weights"] * 100_000}}, "not listed as they should be"),
        ({"card": lambda c: c | {"numbers": c["numbers"] | {"../up": ["<f8", 4]}}}, "by no name"),
        ({"card": lambda c: c | {"numbers": c["numbers"] | {"weights": ["<f8", 5]}}}, "is not the one described"),
        ({"card": lambda c: c | {"texts": ["trees"]}}, "texts that no ranker has"),
        ({"card": lambda c: c | {"parts": [c]}}, "its part 0/centre.npy is missing"),
        ({"card": with_fact("n_features", 10**14)}, "where \\(100000000000000,\\) is wanted"),
        ({"card": with_fact("n_features", True)}, "whole number from 1 on"),
        ({"card": with_fact("features", ["a", "b"])}, "not 4 names"),
        ({"card": with_fact("features", ["a", "b", "c", "\ud800"])}, "is damaged"),
        ({"card": with_fact("scaling", "tall")}, "scale='tall' is not known"),
        ({"card": with_fact("change", 1e999)}, "Infinity in its description"),
        ({"card": with_fact("curve", {"iteration": [1], "objective": [], "train": [], "valid": []})}, "lengths"),
        ({"weights": None}, "part weights.npy is missing"),
        ({"extra": array(np.zeros(4))}, "part 'extra.npy' that it does not name"),
        ({"0/../../up": b"x"}, "that it does not name"),
        ({"weights": array(np.zeros(9))}, "not the one described"),
        ({"weights": array(np.array([object()]))}, "header of an array is not as numpy writes it"),
        ({"weights": array(np.zeros(4)).replace(b"(4,)", b"(100000000000000,)")}, "header of an array"),
        ({"weights": array(np.zeros(4)).replace(b"False", b"True ")}, "header of an array"),
        ({"weights": array(np.array([1, 2, np.nan, 4]))}, "not numbers \\(NaN\\)"),
        ({"weights": array(np.array([1, 2, np.inf, 4]))}, "weights beyond 1e\\+100"),
        ({"spread": array(np.zeros(4))}, "a scale of 0"),
        ({"weights": b"numbers"}, "is damaged"),
        ({"weights": b""}, "is damaged"),
    ],
)
def test_files_that_are_newer_or_damaged_are_refused_in_one_sentence(model, parts, message):
    changed(model, **parts)
    with pytest.raises(JudgmentError, match=message) as caught:
        cr.load_ranker(model)
    assert str(model) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < len(str(model)) + 400


def test_every_cut_and_every_flipped_byte_is_noticed(model):
    whole = model.read_bytes()
    for place in range(0, len(whole), 17):
        model.write_bytes(whole[:place])
        with pytest.raises(JudgmentError):
            cr.load_ranker(model)
        model.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(JudgmentError, match="save"):
            cr.load_ranker(model)


def test_nothing_is_parsed_before_the_checksum_fits(model, monkeypatch):
    whole = model.read_bytes()
    middle = whole.index(b"list_net")
    model.write_bytes(whole[:middle] + b"lost" + whole[middle + 4 :])
    for parser in ("saving._members", "saving._json", "saving._array"):
        monkeypatch.setattr(f"crowdrank.rankers.{parser}", None)
    with pytest.raises(JudgmentError, match=r"is damaged \(its checksum does not fit\); save the ranker again"):
        cr.load_ranker(model)


def test_compressed_parts_are_bounded_by_the_size_of_the_file(tmp_path):
    path = tmp_path / "model"
    card = {"format": 1, "method": "list_net", "params": {}, "facts": {}, "numbers": ["weights"], "texts": []}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ranker.json", json.dumps(card))
        with archive.open("weights.npy", "w", force_zip64=True) as member:
            for _ in range(400):
                member.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(JudgmentError, match="its parts are larger than"):
        cr.load_ranker(path)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    members = {"ranker.json": b'{"a": [' + b"{}," * 2_000_000 + b"{}]}"}
    path.write_bytes(packed(members, old=True))
    with pytest.raises(JudgmentError, match="too deep or too long"):
        cr.load_ranker(path)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


def test_one_array_named_many_times(model):
    members = members_of(model.read_bytes())
    card = json.loads(members["ranker.json"]) | {"format": 1, "numbers": ["weights"] * 100_000, "texts": []}
    model.write_bytes(packed(members | {"ranker.json": json.dumps(card).encode()}, old=True))
    with pytest.raises(JudgmentError, match="names an array twice"):
        cr.load_ranker(model)


def test_other_files_are_refused(tmp_path, model):
    other = tmp_path / "votes.csv"
    other.write_text("query,item\n")
    with pytest.raises(JudgmentError, match="is not a saved ranker: it does not begin as one; give the file that"):
        cr.load_ranker(other)
    other.write_bytes(b"")
    with pytest.raises(JudgmentError, match="is not a saved ranker: it is empty"):
        cr.load_ranker(other)
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("votes.csv", "query,item\n")
    with pytest.raises(JudgmentError, match="is an archive of something else"):
        cr.load_ranker(other)
    other.write_bytes(locked(packed(members_of(model.read_bytes()), old=True)))
    with pytest.raises(JudgmentError, match=r"is damaged \(it is encrypted\)"):
        cr.load_ranker(other)
    with pytest.raises(JudgmentError, match=r"there is no file .*nowhere; check the path"):
        cr.load_ranker(tmp_path / "nowhere")
    with pytest.raises(JudgmentError, match="is a folder"):
        cr.load_ranker(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(JudgmentError, match="cannot be read: too many levels of symbolic links; check the path"):
        cr.load_ranker(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(JudgmentError, match="is a pipe or a device"):
        cr.load_ranker(tmp_path / "pipe")
    with pytest.raises(JudgmentError, match="null byte"):
        cr.load_ranker("a\0b")


def locked(data):
    """An archive whose members say that they are encrypted."""
    changed = bytearray(data)
    place = data.index(b"PK\1\2")
    while place >= 0:
        changed[place + 8] |= 1
        place = data.find(b"PK\1\2", place + 4)
    return bytes(changed)


def test_damaged_files_of_every_kind_are_read_or_refused(tmp_path):
    files, rng = make_files(), np.random.default_rng(0)
    path = tmp_path / "model"
    for data in files.values():
        path.write_bytes(data)
        assert outcome(path) == "read"
    counts = Counter()
    for _ in range(2500):
        path.write_bytes(mutated(files, rng))
        counts[outcome(path)] += 1
    assert counts["read"] > 50
    assert counts["refused"] > 1500


def test_what_cannot_be_saved(rows, tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ListNet().save(tmp_path / "model")
    ranker = ListNet().fit(rows.X, rows.y, qid=rows.qid)
    with pytest.raises(ParameterError, match="its folder does not exist"):
        ranker.save(tmp_path / "nowhere" / "model")

    class Mine(ListNet):
        """A ranker of somebody else."""

    ranker.weights_ = ranker.weights_ * np.nan
    with pytest.raises(ParameterError, match=r"list_net has weights that are not numbers \(NaN\); fit it again"):
        ranker.save(tmp_path / "model")
    with pytest.raises(ParameterError, match="Mine is not one of crowdrank's own rankers"):
        Mine().fit(rows.X, rows.y, qid=rows.qid).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
