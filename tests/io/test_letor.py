"""LETOR and svmlight files: real shapes, errors with line numbers, and the way back."""

import gzip

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from crowdrank.data.features import Features
from crowdrank.errors import DataWarning, JudgmentError, ParameterError
from crowdrank.io import letor, read_features, read_letor, write_letor


def put(folder, text, name="train.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def message(path, **options):
    with pytest.raises(JudgmentError) as caught:
        read_letor(path, **options)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_ids_from_comments(tmp_path):
    path = put(
        tmp_path,
        "# a comment line\n"
        "2 qid:10 1:0.5 2:1 #docid = GX1 inc = 1 prob = 0.08\n"
        "\n"
        "0 qid:10 1:0.25 2:2 # GX2 more words\r\n"
        "1  qid:9\t1:3   2:4\n"
        "0 qid:9 1:5 2:6 #\n",
    )
    features = read_letor(path)
    assert features.items.frame().rows() == [("10", "GX1"), ("10", "GX2"), ("9", "1"), ("9", "2")]
    assert features.matrix.tolist() == [[0.5, 1], [0.25, 2], [3, 4], [5, 6]]
    assert features.grade.tolist() == [2, 0, 1, 0]
    assert features.names == ("1", "2")


def test_missing_features_are_zero_but_nan_beside_null(tmp_path):
    assert read_letor(put(tmp_path, "1 qid:1 2:7\n0 qid:1 1:3\n")).matrix.tolist() == [[0, 7], [3, 0]]
    found = read_letor(put(tmp_path, "1 qid:1 1:NULL 2:7\n0 qid:1 1:3\n")).matrix
    assert np.isnan(found).tolist() == [[True, False], [False, True]]


def test_queries_from_group_sizes(tmp_path):
    text = "1 1:0.5\n0 3:0.25\n2 2:1\n"
    path = put(tmp_path, gzip.compress(text.encode()), "rank.train.gz")
    assert read_letor(path).items.single
    put(tmp_path, "2\n1\n", "rank.train.query")
    found = read_letor(path)
    assert found.items.frame().rows() == [("1", "1"), ("1", "2"), ("2", "1")]
    assert found.matrix.tolist() == [[0.5, 0, 0], [0, 0, 0.25], [0, 1, 0]]
    other = put(tmp_path, "3\n1\n", "sizes")
    assert "counts 4 lines" in message(path, groups=other)
    put(tmp_path, "two\n", "sizes")
    with pytest.raises(JudgmentError, match="line 1 holds 'two'"):
        read_letor(path, groups=other)


def test_features_from_zero(tmp_path):
    found = read_letor(put(tmp_path, "1 qid:1 0:4 1:5\n"))
    assert found.names == ("0", "1")
    assert found.matrix.tolist() == [[4, 5]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 qid:1 1:2\nx qid:1 1:2\n", "line 2 starts with 'x' where the grade belongs"),
        ("1 qid:1 1:2\n\nnan qid:1 1:2\n", "line 3 starts with 'nan'"),
        ("1 qid:1 1:2\n1 qid:1 1:two\n", "line 2 has '1:two' where feature:value was expected"),
        ("1 qid:1 1:2\n1 qid:1 2\n", "line 2 has '2' where"),
        ("1 qid:1 a:2\n", "line 1 has 'a:2' where"),
        ("1 qid:1 -1:2\n", "line 1 has '-1:2' where"),
        ("1 qid:1 1:inf\n", "line 1 has '1:inf' where"),
        ("1 qid:1 99999999999:1\n", "line 1 has '99999999999:1' where"),
        ("1 qid:1 1:2\n1 qid:1 3:1 2:5 3:4\n", "line 2 has feature 3 twice"),
        ("1 qid:1 1:2\n1 1:2\n", "line 2 has no qid: while other lines have one"),
        ("# nothing\n", "holds no rows"),
        ("1 qid:1 1:1\n0 qid:1 2147483647:1\n", "line 2 has feature 2147483647, too many"),
        ("1 qid:1 1:2 #docid = x\n1 qid:1 1:2 #docid = x\n", "repeats item 'x'"),
        (b"1 qid:1 1:2\n1 qid:1 1:\xff\n", "line 2 holds bytes that are not UTF-8"),
        (b"1 qid:1 1:2\n1 qid:1 1:\0\n", "line 2 holds a NUL byte"),
    ],
)
def test_what_is_wrong_names_the_line(tmp_path, text, expected):
    assert expected in message(put(tmp_path, text))


def test_line_numbers_run_on_over_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(letor, "_BYTES_AT_ONCE", 40)
    text = "".join(f"{n % 3} qid:{n // 10} 1:{n} 2:0.5 # d{n}\n" for n in range(100))
    found = read_letor(put(tmp_path, text))
    assert len(found) == 100
    assert found.matrix[:, 0].sum() == 4950
    assert "line 101 has" in message(put(tmp_path, text + "1 qid:9 1:x\n"))


def test_agrees_with_scikit_learn(tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for row in range(200):
        chosen = np.sort(rng.choice(np.arange(1, 31), size=rng.integers(1, 30), replace=False))
        cells = " ".join(f"{number}:{rng.normal():.6g}" for number in chosen)
        lines.append(f"{rng.integers(0, 5)} qid:{row // 20:03d} {cells} # d{row:03d}\n")
    path = put(tmp_path, "".join(lines))
    matrix, grade, query = load_svmlight_file(path, query_id=True, n_features=30)
    found = read_letor(path)
    assert np.array_equal(found.matrix, matrix.toarray()[:, : found.matrix.shape[1]])
    assert np.array_equal(found.grade, grade)
    assert np.array_equal(found.items.query_ids().cast(pl.Int64), query)


numbers = st.one_of(st.just(float("nan")), st.floats(allow_nan=False, allow_infinity=False))


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(numbers, numbers, st.integers(0, 4)), min_size=1, max_size=8), single=st.booleans())
def test_written_features_read_back_the_same(tmp_path_factory, rows, single):
    path = tmp_path_factory.mktemp("letor") / "out.txt.gz"
    query = None if single else [f"q{number % 2}" for number in range(len(rows))]
    features = Features.from_arrays(
        query,
        [f"d{number}" for number in range(len(rows))],
        np.array([row[:2] for row in rows]),
        grade=np.array([row[2] for row in rows], float),
    )
    write_letor(features, path)
    back = read_letor(path)
    assert back.names == features.names
    assert np.array_equal(back.matrix, features.matrix, equal_nan=True)
    assert np.array_equal(back.grade, features.grade)
    assert back.items.frame().equals(features.items.frame())


def test_what_letor_cannot_hold_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="white space or '#'"):
        write_letor(Features.from_arrays(None, ["a b"], np.zeros((1, 1))), tmp_path / "out.txt")
    with pytest.raises(ParameterError, match="infinite"):
        write_letor(Features.from_arrays(None, ["a"], np.full((1, 1), np.inf)), tmp_path / "out.txt")
    assert list(tmp_path.iterdir()) == []


def test_features_from_either_kind_of_file(tmp_path):
    lines = read_features(put(tmp_path, "2 qid:10 1:0.5 2:1 #docid = x\n"))
    table = read_features(put(tmp_path, "qid,docid,a,b\n10,x,0.5,1\n", "pages.csv"))
    assert lines.matrix.tolist() == table.matrix.tolist() == [[0.5, 1]]
    assert lines.items.frame().rows() == table.items.frame().rows() == [("10", "x")]
    with pytest.raises(JudgmentError, match=r"bad\.csv: feature 'a' is not a number"):
        read_features(put(tmp_path, "item,a\nx,one\n", "bad.csv"))


def test_features_that_no_line_mentions_are_taken_as_absent(tmp_path):
    path = put(tmp_path, "1 qid:1 1:7\n0 qid:1 2:3\n")
    with pytest.warns(DataWarning, match="mentions feature 3, 4; taken as 0"):
        found = read_features(path, features=["1", "2", "3", "4"])
    assert found.matrix.tolist() == [[7, 0, 0, 0], [0, 3, 0, 0]]
    with pytest.raises(JudgmentError, match="the features lack 'length'"):
        read_features(path, features=["1", "length"])
    gaps = put(tmp_path, "1 qid:1 1:NULL\n0 qid:1 2:3\n")
    with pytest.warns(DataWarning, match="taken as missing"):
        assert np.isnan(read_features(gaps, features=["3"]).matrix).all()
