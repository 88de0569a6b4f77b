"""Random bytes, damaged files and random tables: a table comes back, or one sentence."""

import contextlib
import io
import tempfile
import warnings
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import crowdrank.io as cio
from crowdrank.errors import CrowdrankError, DataWarning
from crowdrank.io import delimited
from crowdrank.io.sources import Source

FOLDER = tempfile.TemporaryDirectory()
SUFFIXES = ["", ".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt", ".soc", ".toi", ".qrels"]
READERS = [
    cio.read_table, cio.read_judgments, cio.read_letor, cio.read_features, cio.read_qrels, cio.read_run, cio.read_truth,
    cio.read_preflib, cio.read_consensus,
]  # fmt: skip

quick = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


def parquet(frame):
    memory = io.BytesIO()
    frame.write_parquet(memory)
    return memory.getvalue()


SEEDS = [
    b"item,annotator,grade\nx,ann,3\ny,ann,1\nx,bob,2\n",
    b'query;left;right;winner\nq;"a";b;left\nq;b;a;tie\n',
    b"query\titem\tannotator\trank\nq\ta\tann\t1\nq\tb\tann\t2\n",
    b'{"item": "x", "annotator": "ann", "grade": 3}\n{"item": "y", "annotator": "ann", "grade": 1.5}\n',
    b'[{"item": "x", "score": 3, "rank": 1}, {"item": "y", "score": null}]',
    b"2 qid:1 1:0.5 3:NULL #docid = D1\n0 qid:1 2:1e-3 #docid = D2\n",
    b"301 0 FBIS3-1 1\n301 0 FBIS3-2 0\n",
    b"301 Q0 FBIS3-1 1 7.25 bm25\n",
    b"# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: a\n2: 1,2,{3}\n1: 2,1\n",
    b"3\n1,a\n2,b\n3,c\n2,2,2\n1,1,2,3\n1,3,{1,2}\n",
    b'{"format": "crowdrank.consensus/1", "items": [{"item": "x", "score": 1.0, "rank": 1}], "queries": null}',
    parquet(pl.DataFrame({"item": ["x", "y"], "annotator": ["a", "a"], "grade": [1.0, 2.0], "rank": [1, 2]})),
]


def survives(reader, data, suffix):
    path = Path(FOLDER.name) / f"input{suffix}"
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            assert reader(path) is not None
        except CrowdrankError as error:
            text = str(error)
            assert text.strip()
            assert "\n" not in text
            assert "Traceback" not in text
            assert len(text) < 1500


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@quick
@given(data=st.binary(max_size=200), suffix=st.sampled_from(SUFFIXES))
def test_random_bytes(reader, data, suffix):
    survives(reader, data, suffix)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@quick
@given(
    seed=st.sampled_from(SEEDS),
    start=st.integers(0, 200),
    length=st.integers(0, 12),
    patch=st.one_of(
        st.binary(max_size=8),
        st.sampled_from([b"\n", b'"', b",", b"\0", b"{", b"}", b"nan", b"-1", b"1e999", b"\xff", b":"]),
    ),
    suffix=st.sampled_from(SUFFIXES),
)
def test_damaged_files(reader, seed, start, length, patch, suffix):
    start = min(start, len(seed))
    survives(reader, seed[:start] + patch + seed[start + length :], suffix)


@quick
@given(text=st.text(alphabet=st.sampled_from('ab",;\t\n\r é'), max_size=30), header=st.booleans())
def test_polars_and_the_careful_reader_agree(text, header):
    """Where polars reads a CSV file, reading it row by row gives the same table."""
    data = (("a,b\n" if header else "") + text).encode()
    if not data:
        return
    with contextlib.suppress(CrowdrankError):
        source = delimited._with_newlines(Source("input", ".csv", data, None))
        layout = delimited._layout(source, None, None)
        fast = delimited._fast(source, layout) if layout.plain else None
        if fast is not None:
            careful = delimited._careful(source, layout)
            assert fast.equals(careful)


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8).map(str.strip)
names = st.lists(cells.filter(bool), min_size=1, max_size=4, unique=True)


@st.composite
def text_tables(draw):
    columns = draw(names)
    n = draw(st.integers(1, 6))
    cell = st.one_of(st.none(), cells.filter(bool))
    frame = pl.DataFrame(
        {name: pl.Series(draw(st.lists(cell, min_size=n, max_size=n)), dtype=pl.String) for name in columns}
    )
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


@st.composite
def typed_tables(draw):
    frame = draw(text_tables())
    n = frame.height
    kinds = {
        "integers": (st.integers(-(2**63), 2**63 - 1), pl.Int64),
        "floats": (st.floats(allow_nan=False, allow_infinity=False), pl.Float64),
        "truths": (st.booleans(), pl.Boolean),
    }
    # JSON tells the kind of a column from its values, so each holds at least one
    for name, (values, dtype) in kinds.items():
        frame = frame.with_columns(pl.Series(name, draw(st.lists(values, min_size=n, max_size=n)), dtype=dtype))
    return frame


@quick
@given(frame=text_tables().filter(lambda frame: frame.height), suffix=st.sampled_from([".csv", ".tsv", ".csv.gz"]))
def test_text_tables_come_back_from_csv(frame, suffix):
    path = Path(FOLDER.name) / f"table{suffix}"
    cio.write_table(frame, path)
    back = cio.read_table(path)
    assert back.columns == frame.columns
    assert back.rows() == [tuple(row) for row in frame.rows()]


@quick
@given(
    frame=typed_tables().filter(lambda frame: frame.height),
    suffix=st.sampled_from([".parquet", ".json", ".jsonl", ".jsonl.gz"]),
)
def test_typed_tables_come_back_with_their_types(frame, suffix):
    path = Path(FOLDER.name) / f"table{suffix}"
    cio.write_table(frame, path)
    assert cio.read_table(path).equals(frame)
    assert cio.read_table(path).schema == frame.schema
