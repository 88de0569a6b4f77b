"""Rankers to files and back, and files that are not what they should be."""

import contextlib
import io
import json
import zipfile

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.rankers import ListMLE, ListNet, RankSVM


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
    assert card["format"] == 1
    assert card["crowdrank"] == cr.__version__
    assert card["method"] == "list_net"


def changed(path, **parts):
    """The file with some members replaced, those of None left out; the card by a function."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name, new in parts.items():
        name = {"card": "ranker.json"}.get(name, f"{name}.npy")
        members[name] = new if not callable(new) else json.dumps(new(json.loads(members[name]))).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            if data is not None:
                archive.writestr(name, data)


def array(values):
    """An array as npy."""
    memory = io.BytesIO()
    np.save(memory, values, allow_pickle=True)
    return memory.getvalue()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"card": lambda c: c | {"format": 2, "crowdrank": "9.1"}},
            r"by crowdrank 9\.1 in format 2, and this is",
        ),
        ({"card": lambda c: c | {"format": "x"}}, "is damaged"),
        ({"card": lambda c: []}, "is damaged"),
        ({"card": b"{"}, "is damaged"),
        ({"card": None}, "is damaged"),
        ({"card": lambda c: c | {"method": "list_mle"}}, "has no parameter 'solver'"),
        ({"card": lambda c: c | {"method": "new_net"}}, "holds a ranker 'new_net', which this version does not know"),
        ({"card": lambda c: c | {"params": {"ridge": "many"}}}, "not of the right type"),
        ({"card": lambda c: {k: v for k, v in c.items() if k != "facts"}}, "is damaged"),
        ({"weights": None}, "is damaged"),
        ({"weights": array(np.zeros(9))}, "is damaged .*weights for 4 features"),
        ({"weights": array(np.array([object()]))}, "is damaged"),
        ({"weights": b"numbers"}, "is damaged"),
    ],
)
def test_files_that_are_newer_or_damaged_are_refused_in_one_sentence(model, parts, message):
    changed(model, **parts)
    with pytest.raises(JudgmentError, match=message) as caught:
        cr.load_ranker(model)
    assert str(model) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_cut_files_are_noticed_and_flipped_bytes_do_no_harm(model):
    whole = model.read_bytes()
    for place in range(0, len(whole), 97):
        model.write_bytes(whole[:place])
        with pytest.raises(JudgmentError):
            cr.load_ranker(model)
    for place in range(40, len(whole), 61):
        model.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        with contextlib.suppress(JudgmentError):  # some bytes of a zip archive mean nothing
            cr.load_ranker(model)


def test_other_files_are_refused(tmp_path):
    other = tmp_path / "votes.csv"
    other.write_text("query,item\n")
    with pytest.raises(JudgmentError, match="is no saved ranker, or is damaged"):
        cr.load_ranker(other)
    with pytest.raises(JudgmentError, match=r"there is no file .*nowhere; check the path"):
        cr.load_ranker(tmp_path / "nowhere")
    with pytest.raises(JudgmentError, match="is a folder"):
        cr.load_ranker(tmp_path)


def test_what_cannot_be_saved(rows, tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        ListNet().save(tmp_path / "model")
    ranker = ListNet().fit(rows.X, rows.y, qid=rows.qid)
    with pytest.raises(ParameterError, match="its folder does not exist"):
        ranker.save(tmp_path / "nowhere" / "model")

    class Mine(ListNet):
        """A ranker of somebody else."""

    with pytest.raises(ParameterError, match="Mine is not one of crowdrank's own rankers"):
        Mine().fit(rows.X, rows.y, qid=rows.qid).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
