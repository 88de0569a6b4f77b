"""qrels and run files, and truth in all its forms."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.io import read_qrels, read_run, read_truth, write_qrels, write_run


def put(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_qrels_with_tabs_and_spaces(tmp_path):
    path = put(tmp_path, "a.qrels", "\ufeff301 0 FBIS3-1 1\r\n301\t0\tFBIS3-2\t-1\n\n0302  0  FBIS3-1  0\n")
    assert read_qrels(path).rows() == [("301", "FBIS3-1", 1.0), ("301", "FBIS3-2", -1.0), ("0302", "FBIS3-1", 0.0)]


def test_run(tmp_path):
    path = put(tmp_path, "a.run", "301 Q0 d1 1 7.5 bm25\n301 Q0 d2 2 -1e-3 bm25\n")
    found = read_run(path)
    assert found.columns == ["run", "query", "item", "rank", "score"]
    assert found.rows() == [("bm25", "301", "d1", 1, 7.5), ("bm25", "301", "d2", 2, -0.001)]


@pytest.mark.parametrize(
    ("reader", "text", "expected"),
    [
        (read_qrels, "1 0 a 1\n1 0 b\n", "line 2 has 3 columns; a line should be 'query iteration item grade'"),
        (read_qrels, "1 0 a 1\n\n1 0 b x\n", "line 3 has the grade 'x'"),
        (read_qrels, "1 0 a 1\n1 0 b inf\n", "line 2 has the grade 'inf'"),
        (read_qrels, "1 0 a 1\n1 0 a 2\n", "line 2 repeats item 'a' of query '1'"),
        (read_qrels, "\n \n", "holds only blank lines"),
        (
            read_run,
            "1 Q0 a 1 2 x\n1 Q0 b 1 x\n",
            "line 2 has 5 columns; a line should be 'query q0 item rank score run'",
        ),
        (read_run, "1 Q0 a 1.5 2 x\n", "line 1 has the rank '1.5'"),
        (read_run, "1 Q0 a 1 nan x\n", "line 1 has the score 'nan'"),
        (read_run, "1 Q0 a 1 2 x\n1 Q0 a 2 1 x\n", "line 2 repeats item 'a'"),
    ],
)
def test_what_is_wrong_names_the_line(tmp_path, reader, text, expected):
    path = put(tmp_path, "a.txt", text)
    with pytest.raises(JudgmentError) as caught:
        reader(path)
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)


words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=6)
keys = st.lists(st.tuples(words, words), min_size=1, max_size=6, unique=True)
finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60, deadline=None)
@given(keys=keys, data=st.data())
def test_written_files_read_back_the_same(tmp_path_factory, keys, data):
    folder = tmp_path_factory.mktemp("trec")
    values = pl.Series(data.draw(st.lists(finite, min_size=len(keys), max_size=len(keys))), dtype=pl.Float64)
    query, item = [key[0] for key in keys], [key[1] for key in keys]
    qrels = pl.DataFrame({"query": query, "item": item, "grade": values})
    write_qrels(qrels, folder / "a.qrels")
    assert read_qrels(folder / "a.qrels").equals(qrels)
    run = pl.DataFrame({"run": ["r"] * len(keys), "query": query, "item": item, "rank": range(1, len(keys) + 1)})
    run = run.with_columns(score=values)
    write_run(run, folder / "a.run")
    assert read_run(folder / "a.run").equals(run)


def test_ids_with_spaces_are_refused(tmp_path):
    frame = pl.DataFrame({"query": ["q"], "item": ["a b"], "grade": [1]})
    with pytest.raises(ParameterError, match="white space"):
        write_qrels(frame, tmp_path / "a.qrels")


def test_truth_from_every_form(tmp_path):
    qrels = read_truth(put(tmp_path, "a.txt", "q 0 x 2\nq 0 y 0\n"))
    table = read_truth(put(tmp_path, "a.csv", "query,item,grade\nq,x,2\nq,y,0\n"))
    tabbed = read_truth(put(tmp_path, "a.tsv", "query\titeration\titem\tgrade\nq\t0\tx\t2\nq\t0\ty\t0\n"))
    for truth in (qrels, table, tabbed):
        assert truth.form == "grade"
        assert truth.grade.tolist() == [2, 0]
        assert truth.items.frame().rows() == [("q", "x"), ("q", "y")]
    assert read_truth(put(tmp_path, "r.csv", "item,rank\nx,1\ny,2\n")).grade.tolist() == [-1, -2]
    pairs = read_truth(put(tmp_path, "p.csv", "query,left,right,winner\nq,x,y,x\n"))
    assert pairs.form == "pairs"
    assert np.array_equal(pairs.outcome, [1])
    assert read_truth(pl.DataFrame({"item": ["x"], "grade": [3]})).grade.tolist() == [3]
    with pytest.raises(JudgmentError, match=r"b\.csv: "):
        read_truth(put(tmp_path, "b.csv", "item,colour\nx,red\n"))
