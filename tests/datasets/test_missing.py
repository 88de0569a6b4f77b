"""Data sets that are not there, or whose files are damaged."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from crowdrank import datasets
from crowdrank.datasets.catalog import ENTRIES, FOLDERS
from crowdrank.errors import JudgmentError, MissingDataError, UnknownNameError


def put(root: Path, folder: str, **files: str | bytes) -> Path:
    """Write the files of one data set, ``__`` in a name standing for a dot, and return the data folder."""
    place = root / folder
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = place / name.replace("__", ".")
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


@pytest.mark.parametrize("name", ENTRIES)
def test_a_missing_set_says_where_to_get_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingDataError) as caught:
        datasets.load(name, tmp_path)
    message = str(caught.value)
    source = FOLDERS[ENTRIES[name].folder].source
    assert message.startswith(f"data set {name!r} lacks {tmp_path}")
    assert "\n" not in message
    if source.repository:
        assert source.repository in message
        assert source.commit in message
        assert "python tools/prepare_datasets.py" in message
    else:
        assert "measured by this project" in message


def test_derived_files_are_to_be_prepared(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="which is made from public files"):
        datasets.load("llmbar-judges", tmp_path)
    with pytest.raises(MissingDataError, match=r"put data/judgments\.csv there, or run"):
        datasets.load("mirex2005-crowd", tmp_path)


def test_the_first_file_that_is_missing_is_named(tmp_path: Path) -> None:
    root = put(tmp_path, "web-search-relevance5", label__csv="item,worker,label\na,w,1\n")
    with pytest.raises(MissingDataError, match=r"lacks .*truth\.csv"):
        datasets.load("web-search-relevance5", root)


def test_unknown_names_point_to_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'mirex2005-crowd'"):
        datasets.load("mirex-crowd")
    with pytest.raises(UnknownNameError, match="wine-quality/red, wine-quality/white; name one of them"):
        datasets.load("wine-quality")


def test_the_folder_comes_from_the_argument_the_environment_or_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROWDRANK_DATA", str(tmp_path / "named"))
    assert datasets.data_folder("given") == Path("given")
    assert datasets.data_folder() == tmp_path / "named"
    monkeypatch.delenv("CROWDRANK_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert datasets.data_folder() == tmp_path / "cache" / "crowdrank" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert datasets.data_folder() == tmp_path / ".cache" / "crowdrank" / "data"


GOOD = "item,truth\na,1\nb,0\n"


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("item,worker\na,w\n", "its header lacks 'label'"),
        ("item,worker,label\na,w,1\nb,w,good\n", "row 2 has 'good' where a number should stand"),
        ("item,worker,label\na,w,1\nb,w\n", "row 2 has None where a number should stand"),
        ("item,worker,label\na,w,1,2,3\n", "damaged"),
        ("", "damaged"),
        (b"item,worker,label\na,\xff\xfe,1\n", "byte 21 is not utf-8"),
    ],
)
def test_a_damaged_table_names_itself(tmp_path: Path, label: str | bytes, said: str) -> None:
    root = put(tmp_path, "web-search-relevance5", label__csv=label, truth__csv=GOOD)
    with pytest.raises(JudgmentError) as caught:
        datasets.load("web-search-relevance5", root)
    message = str(caught.value)
    assert str(root / "web-search-relevance5" / "label.csv") in message
    assert said in message
    assert "yuan-li/truth-inference-at-scale" in message
    assert "\n" not in message


def test_a_truncated_gzip_names_itself(tmp_path: Path) -> None:
    packed = gzip.compress(b"item,worker,label\n" + b"a,w,1\n" * 1000)
    root = put(tmp_path, "web-search-relevance5", label__csv__gz=packed[:-20], truth__csv=GOOD)
    with pytest.raises(JudgmentError, match=r"label\.csv\.gz is damaged"):
        datasets.load("web-search-relevance5", root)


def test_plain_and_gzipped_files_are_the_same(tmp_path: Path) -> None:
    label = "item,worker,label\na,w,1\nb,v,0\nb,w,2\n"
    plain = put(tmp_path / "plain", "web-search-relevance5", label__csv=label, truth__csv=GOOD)
    packed = put(
        tmp_path / "packed", "web-search-relevance5", label__csv__gz=gzip.compress(label.encode()), truth__csv=GOOD
    )
    first, second = (datasets.load("web-search-relevance5", root).judgments for root in (plain, packed))
    assert first.frame().equals(second.frame())
    assert first.frame()["grade"].to_list() == [1, 0, 2]


def test_damaged_json_names_itself(tmp_path: Path) -> None:
    root = put(tmp_path, "pandalm-testset", **{"testset-v1__json": '[{"idx": 0,'})
    with pytest.raises(JudgmentError, match=r"testset-v1\.json is damaged"):
        datasets.load("pandalm-testset", root)
    root = put(tmp_path, "webis-rag-crowd", study2_responses__jsonl='{"worker": 1}\n{broken\n')
    with pytest.raises(JudgmentError, match=r"study2_responses\.jsonl is damaged"):
        datasets.load("webis-rag-crowd", root)


@pytest.mark.parametrize(
    ("name", "files", "said"),
    [
        ("pandalm-testset", {"testset-v1__json": '[{"idx": 0}]'}, "'cmp_key'"),
        ("webis-rag-crowd", {"study2_responses__jsonl": '{"worker": "w"}\n'}, "query_id"),
        (
            "ukpconvarg1-crowd/pairs",
            {
                "votes__csv": "topic,arg1,arg2,worker,label\nt,a,b,w,a9\n",
                "arguments__csv": "topic,arg,text\n",
                "gold_pairs__csv": "topic,arg1,arg2,label\nt,a,b,a1\n",
            },
            "'a9'",
        ),
    ],
)
def test_contents_that_make_no_sense_name_the_folder(
    tmp_path: Path, name: str, files: dict[str, str], said: str
) -> None:
    root = put(tmp_path, ENTRIES[name].folder, **files)
    with pytest.raises(JudgmentError) as caught:
        datasets.load(name, root)
    message = str(caught.value)
    assert f"a file in {root / ENTRIES[name].folder} is damaged" in message
    assert said in message
    assert "\n" not in message


def test_a_fold_that_names_no_partition(tmp_path: Path) -> None:
    parts = {f"S{n}__txt": f"1 qid:{n} 1:0.5 #docid = d\n" for n in range(1, 6)}
    root = put(tmp_path, "letor-ohsumed", **parts, folds__json='{"Fold1": {"train": ["S9"], "vali": [], "test": []}}')
    with pytest.raises(JudgmentError, match=r"folds\.json is damaged \(no partition 'S9'\)"):
        datasets.load("letor-ohsumed", root)


def test_a_damaged_partition_names_itself(tmp_path: Path) -> None:
    root = put(tmp_path, "letor-ohsumed", S1__txt="relevant qid:1 1:0.5 #docid = d\n")
    with pytest.raises(JudgmentError, match=r"S1\.txt"):
        datasets.load("letor-ohsumed", root)


def test_an_item_without_its_topic(tmp_path: Path) -> None:
    root = put(
        tmp_path,
        "trec-rf10-labels-full",
        label__csv="item,worker,label\n0,0,1\n1,0,2\n",
        truth__csv="item,truth\n0,1\n",
        item_topic__csv="item,topic,exact,doc\n0,20002,1,\n",
    )
    with pytest.raises(JudgmentError, match=r"item_topic\.csv is damaged \(it lacks item '1'\)"):
        datasets.load("trec-rf10-labels-full", root)
