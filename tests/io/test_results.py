"""A consensus goes to JSON, Parquet and CSV and comes back."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdrank import evaluate
from crowdrank.data.consensus import Consensus, Quality, Trace
from crowdrank.data.index import Index, Items
from crowdrank.errors import JudgmentError
from crowdrank.io import from_json, read_consensus, read_truth, to_json, write_consensus
from crowdrank.io.results import json_text

FIELDS = ("scores", "std_error", "replicates", "probabilities", "grade")


def make_items(sizes, integers=False):
    """Items of queries of the given sizes; a size of 0 is a query nobody judged."""
    if sizes is None:
        return Items(Index(pl.Series("id", [""])), np.zeros(3, np.int32), pl.Series("item", ["a", "b", "ü"]))
    names = list(range(10, 10 + len(sizes))) if integers else [f"q{number}" for number in range(len(sizes))]
    ids = [number if integers else f"d{number}" for size in sizes for number in range(size)]
    query = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    dtype = pl.Int64 if integers else pl.String
    return Items(Index(pl.Series("id", names, dtype=dtype)), query, pl.Series("item", ids, dtype=dtype))


def make_consensus(items, seed=0, levels=("Bad", "Fair", "Good"), full=True):
    rng = np.random.default_rng(seed)
    n = len(items)
    extra = {}
    if full:
        blocks = []
        for size in np.diff(items.offsets):
            root = rng.normal(size=(size, size))
            blocks.append(None if size > 4 else root @ root.T)
        probabilities = rng.dirichlet(np.ones(len(levels)), size=n)
        std_error = rng.uniform(size=n)
        std_error[:2] = [np.nan, np.inf]
        grade = rng.integers(-1, len(levels), n).astype(np.int32)
        confusion = rng.uniform(size=(2, 3, 3))
        confusion[0, 0, 0] = np.nan
        quality = Quality(
            Index(pl.Series("id", ["ann", "bob"])),
            np.array([0.75, np.nan]),
            np.array([4.0, 0.0]),
            {"confusion": confusion, "n_pairs": np.array([3, 0]), "prior": 0.5, "trusted": np.array([True, False])},
        )
        extra = {
            "std_error": std_error,
            "covariance": tuple(blocks),
            "replicates": rng.normal(size=(5, n)).astype(np.float32),
            "probabilities": probabilities,
            "levels": tuple(levels),
            "grade": grade,
            "quality_source": lambda: quality,
        }
    return Consensus(
        items=items,
        scores=np.round(rng.normal(size=n), 1),
        method="dawid_skene",
        params={"alpha": 1.0, "tol": float("inf"), "bins": (1, 2), "seed": None, "name": "x"},
        trace=Trace(7, False, 1e-7, (-3.5, -2.25)),
        **extra,
    )


def assert_same(found, wanted, *, large=True):
    assert found.frame().equals(wanted.frame())
    assert found.frame().schema == wanted.frame().schema
    assert found.items.frame().equals(wanted.items.frame())
    assert found.items.queries.ids.to_list() == wanted.items.queries.ids.to_list()
    for name in FIELDS:
        mine, theirs = getattr(found, name), getattr(wanted, name)
        if (name == "replicates" and not large) or theirs is None:
            assert mine is None
        else:
            assert mine.dtype == theirs.dtype
            assert np.array_equal(mine, theirs, equal_nan=name != "grade")
    if large and wanted.covariance is not None:
        for mine, theirs in zip(found.covariance, wanted.covariance, strict=True):
            assert (mine is None and theirs is None) or np.array_equal(mine, theirs)
    assert found.trace == wanted.trace
    assert (found.method, dict(found.params), found.levels) == (wanted.method, dict(wanted.params), wanted.levels)
    if wanted.quality is not None:
        assert found.quality.frame().equals(wanted.quality.frame())
        for name, value in wanted.quality.parameters.items():
            assert np.array_equal(found.quality.parameters[name], value, equal_nan=name == "confusion")


SHAPES = [None, (3,), (2, 0, 6, 3), (1,)]


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("levels", [("Bad", "Fair", "Good"), (0, 1, 2), (0.5, 1.0, 2.0)])
def test_json_and_parquet_give_everything_back(tmp_path, sizes, integers, levels):
    consensus = (
        make_consensus(make_items(sizes, integers), levels=levels)
        if sizes != (1,)
        else make_consensus(make_items(sizes, integers), full=False)
    )
    document = json.loads(json_text(to_json(consensus, replicates=True, covariance=True)), parse_constant=pytest.fail)
    assert_same(from_json(document), consensus)
    for name in ("a.parquet", "a.json"):
        write_consensus(consensus, tmp_path / name)
        assert_same(read_consensus(tmp_path / name), consensus, large=name == "a.parquet")
    assert pl.read_parquet(tmp_path / "a.parquet").columns[-3:] == [
        "probabilities",
        "covariance",
        "replicates",
    ] or sizes == (1,)


@settings(max_examples=50, deadline=None)
@given(sizes=st.lists(st.integers(0, 6), min_size=1, max_size=4).filter(sum), seed=st.integers(0, 99))
def test_any_shape_comes_back(sizes, seed):
    if sum(sizes) < 2:
        return
    consensus = make_consensus(make_items(sizes), seed)
    text = json_text(to_json(consensus, replicates=True, covariance=True))
    assert_same(from_json(json.loads(text)), consensus)


def test_large_parts_are_left_out_of_json_unless_asked_for():
    document = to_json(make_consensus(make_items((2, 3))))
    assert document["format"] == "crowdrank.consensus/1"
    assert "replicates" not in document
    assert "covariance" not in document
    assert list(document["items"][0]) == ["query", "item", "score", "rank", "grade", "confidence", "std_error"]


def test_quality_is_computed_only_when_wanted():
    consensus = Consensus(items=make_items(None), scores=np.arange(3.0), method="x", quality_source=pytest.fail)
    assert to_json(consensus, quality=False)["quality"] is None


def test_csv_gives_the_table_back_as_text(tmp_path):
    consensus = make_consensus(make_items((2, 3)))
    write_consensus(consensus, tmp_path / "a.csv", digits=17)
    back = read_consensus(tmp_path / "a.csv")
    assert np.array_equal(back.scores, consensus.scores)
    assert np.array_equal(back.std_error, consensus.std_error, equal_nan=True)
    assert back.order("q1") == consensus.order("q1")


def test_any_table_with_scores_or_ranks_is_a_consensus(tmp_path):
    (tmp_path / "a.csv").write_text("docid,rank\ny,1\nx,2\n")
    assert read_consensus(tmp_path / "a.csv").order() == ["y", "x"]
    (tmp_path / "b.jsonl").write_text('{"query": 2, "item": "y", "score": 1}\n{"query": 10, "item": "x", "score": 2}\n')
    assert list(read_consensus(tmp_path / "b.jsonl").items.queries) == [2, 10]


def test_a_consensus_can_be_the_truth(tmp_path):
    consensus = make_consensus(make_items((2, 3)))
    write_consensus(consensus, tmp_path / "a.json")
    for given_as in (consensus, tmp_path / "a.json"):
        assert np.array_equal(read_truth(given_as).align(consensus.items), consensus.scores)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("item,score\nx,1\ny,\n", "row 2 has a score or rank that is not a number"),
        ("item,score\nx,1\nx,2\n", "row 2 repeats item 'x'"),
        ("item,score\nx,1\n,2\n", "row 2 has a blank or unknown item"),
        ("item,colour\nx,red\n", "a consensus needs a score or a rank column"),
        ("name,score\nx,1\n", "the table has no item column"),
        ('{"format": "crowdrank.consensus/1", "items": []}', "is incomplete or damaged"),
        ('{"format": "crowdrank.consensus/1", "items": [', "broken JSON"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, expected):
    path = tmp_path / "a.txt"
    path.write_text(text)
    with pytest.raises(JudgmentError) as caught:
        read_consensus(path)
    assert expected in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_other_documents_are_refused():
    for document in ({}, {"format": "crowdrank.consensus/99"}, []):
        with pytest.raises(JudgmentError, match="not a consensus in JSON"):
            from_json(document)


@pytest.mark.parametrize("digits", [2, 6])
def test_rounding_changes_neither_ranks_nor_ties_of_what_is_read_back(tmp_path, digits):
    rng = np.random.default_rng(3)
    scores = np.round(rng.normal(size=400), 2) + 1e-9 * rng.integers(0, 3, 400)
    items = Items(Index(pl.Series(["p", "q"])), np.repeat([0, 1], 200), pl.Series([f"i{n:03}" for n in range(400)]))
    consensus = Consensus(items=items, scores=scores, method="mean_grade")
    write_consensus(consensus, tmp_path / "c.csv", digits=digits)
    back = read_consensus(tmp_path / "c.csv")
    assert back.frame()["rank"].to_list() == consensus.frame()["rank"].to_list()
    assert back.frame()["item"].to_list() == consensus.frame()["item"].to_list()
    truth = pl.DataFrame({"query": items.query_ids(), "item": items.ids, "grade": rng.integers(0, 4, 400)})
    measured = [evaluate(one, truth, ["ndcg@10", "tau"])["value"].to_list() for one in (consensus, back)]
    assert measured[0] == pytest.approx(measured[1])
