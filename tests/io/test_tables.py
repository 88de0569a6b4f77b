"""Tables in every format and packing, and one clean sentence for each thing that can be wrong with them."""

import gzip
import io
import re
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdrank.errors import JudgmentError
from crowdrank.io import delimited, read_table
from crowdrank.io.sources import Source

ROWS = [("007", "ann", "3"), ("008", "bob", "1")]
FRAME = pl.DataFrame(ROWS, schema=["item", "annotator", "grade"], orient="row")


def put(folder, name, data):
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def message(path, **options):
    with pytest.raises(JudgmentError) as caught:
        read_table(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert "Traceback" not in text
    return text


def as_parquet(frame):
    memory = io.BytesIO()
    frame.write_parquet(memory)
    return memory.getvalue()


CSV = "item,annotator,grade\n007,ann,3\n008,bob,1\n"
FORMS = {
    "votes.csv": CSV,
    "votes.tsv": CSV.replace(",", "\t"),
    "semicolons.csv": CSV.replace(",", ";"),
    "bars.txt": CSV.replace(",", "|"),
    "tabs.csv": CSV.replace(",", "\t"),
    "bom.csv": "\ufeff" + CSV,
    "crlf.csv": CSV.replace("\n", "\r\n"),
    "returns.csv": CSV.replace("\n", "\r"),
    "mixed-ends.csv": "item,annotator,grade\r\n007,ann,3\n008,bob,1\r",
    "spaces.csv": " item , annotator,grade \n 007,  ann , 3\n008 ,bob,1 \n",
    "blank-lines.csv": "\n  \nitem,annotator,grade\n\n007,ann,3\n,,\n008,bob,1\n\n   \n",
    "no-end.csv": CSV.rstrip("\n"),
    "quoted.csv": '"item","annotator","grade"\n"007","ann","3"\n"008","bob","1"\n',
    "quotes-after-space.csv": 'item, annotator, grade\n007, "ann", 3\n008, "bob", "1"\n',
    "votes.jsonl": '{"item": "007", "annotator": "ann", "grade": "3"}\n\n{"item":"008","annotator":"bob","grade":"1"}',
    "bom.jsonl": '\ufeff{"item":"007", "annotator": "ann", "grade": "3"}\n{"item":"008","annotator":"bob","grade":"1"}',
    "votes.json": '[{"item": "007", "annotator": "ann", "grade": "3"},\n {"item":"008","annotator":"bob","grade":"1"}]',
    "no-suffix": CSV,
    "votes.parquet": as_parquet(FRAME),
    "parquet-by-content.bin": as_parquet(FRAME),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_format_reads_the_same(tmp_path, name):
    assert read_table(put(tmp_path, name, FORMS[name])).equals(FRAME)


@pytest.mark.parametrize("name", FORMS)
def test_gzip_is_told_by_content(tmp_path, name):
    data = FORMS[name]
    packed = gzip.compress(data.encode() if isinstance(data, str) else data)
    assert read_table(put(tmp_path, name, packed)).equals(FRAME)
    assert read_table(put(tmp_path, name + ".gz", packed)).equals(FRAME)


@pytest.mark.parametrize("name", ["votes.csv", "votes.tsv", "votes.jsonl", "votes.json", "votes.parquet"])
def test_standard_input_is_sniffed(monkeypatch, name):
    data = FORMS[name]
    raw = data.encode() if isinstance(data, str) else data
    for content in (raw, gzip.compress(raw)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read_table("-").equals(FRAME)


def test_glob_characters_in_a_name_are_plain_characters(tmp_path):
    for kind in ("csv", "parquet", "jsonl"):
        for name in ("votes1", "votes[1]", "votes*", "votes?", "votes{1,2}", "~votes"):
            assert read_table(put(tmp_path, f"{name}.{kind}", FORMS[f"votes.{kind}"])).equals(FRAME)


def test_cells_with_separators_newlines_and_quotes(tmp_path):
    path = put(tmp_path, "a.csv", 'item,text\n1,"a,b"\n2,"line\nbreak"\n3,"say ""hi"""\n4,5" disk\n')
    assert read_table(path)["text"].to_list() == ["a,b", "line\nbreak", 'say "hi"', '5" disk']


def test_unicode_and_ids_of_a_megabyte(tmp_path):
    long = "ä" * (1 << 20)
    for name, text in (("a.csv", f"item,näme\n{long},x\n日本,y\n"), ("q.csv", f'item,näme\n"{long}", "x"\n日本,y\n')):
        frame = read_table(put(tmp_path, name, text))
        assert frame.columns == ["item", "näme"]
        assert frame["item"].to_list() == [long, "日本"]
    lines = put(tmp_path, "a.jsonl", f'{{"item": "{long}"}}\n{{"item": "日本"}}\n')
    assert read_table(lines)["item"].to_list() == [long, "日本"]


def test_numbers_on_request_only(tmp_path):
    path = put(tmp_path, "a.csv", "id,grade,score,note\n01,3,0.5,x\n02,,1e3,\n")
    assert read_table(path).dtypes == [pl.String] * 4
    numbers = read_table(path, text_ids=False)
    assert numbers.dtypes == [pl.Int64, pl.Int64, pl.Float64, pl.String]
    assert numbers["grade"].to_list() == [3, None]


def test_files_without_a_header(tmp_path):
    path = put(tmp_path, "a.tsv", "1\tx\n2\ty\n")
    assert read_table(path, names=["n", "item"]).rows() == [("1", "x"), ("2", "y")]
    assert read_table(put(tmp_path, "b.txt", "1 x\n2 y\n"), names=["n", "item"], separator=" ").rows()[1] == ("2", "y")
    assert "has 2 columns where 3 names were given" in message(path, names=["a", "b", "c"])


def test_columns_without_a_name_get_one(tmp_path):
    assert read_table(put(tmp_path, "a.csv", ",item,\n0,x,\n1,y,z\n")).columns == ["column_1", "item", "column_3"]


def test_json_kinds(tmp_path):
    lines = '{"a": 1, "b": 1.5, "c": true, "d": null, "e": [1, 2]}\n{"a": 2, "b": 2, "c": false, "e": [3], "f": "x"}\n'
    for name, text in (("a.jsonl", lines), ("a.json", "[" + lines.strip().replace("\n", ",") + "]")):
        frame = read_table(put(tmp_path, name, text))
        assert frame.columns == ["a", "b", "c", "d", "e", "f"]
        assert frame.dtypes == [pl.Int64, pl.Float64, pl.Boolean, pl.String, pl.List(pl.Int64), pl.String]


def test_json_columns_of_mixed_kinds_become_text(tmp_path):
    frame = read_table(put(tmp_path, "a.jsonl", '{"a": 1, "b": [1]}\n{"a": "x", "b": {"c": 2}}\n{"a": true}\n'))
    assert frame["a"].to_list() == ["1", "x", "true"]
    assert frame["b"].to_list() == ["[1]", '{"c": 2}', None]


def test_json_integers_of_any_size_keep_their_digits(tmp_path):
    text = '{"id": 123456789012345678901234}\n{"id": 5}\n'
    assert read_table(put(tmp_path, "a.jsonl", text))["id"].to_list() == ["123456789012345678901234", "5"]
    assert read_table(put(tmp_path, "a.json", f"[{text.strip()}]".replace("\n", ",")))["id"][1] == "5"


BROKEN = {
    "empty.csv": (b"", "is empty"),
    "empty.csv.gz": (gzip.compress(b""), "is empty"),
    "blank.csv": (b"\n  \n\r\n", "holds only blank lines"),
    "header.csv": (b"item,grade\n", "has a header but no rows"),
    "header-blank.csv": (b"item,grade\n\n,\n", "has a header but no rows"),
    "doubled.csv": (b"item,grade, item\nx,1,y\n", "column 'item' appears 2 times in the header"),
    "short.csv": (b"item,grade\nx,1\ny\n", "row 2 (line 3) has 1 cells where the header has 2"),
    "long.csv": (b"item,grade\nx,1\n\ny,2,3\n", "row 2 (line 4) has 3 cells where the header has 2"),
    "long-at-end.csv": (b"item,grade\nx,1\ny,2,3", "row 2 (line 3) has 3 cells where the header has 2"),
    "short-quoted.csv": (b'item,grade\n"x\ny",1\n"z"\n', "row 2 (line 4) has 1 cells"),
    "open-quote.csv": (b'item,grade\nx,1\n"y,2\nz,3\n', "row 2 (line 3) has a quote that is not closed"),
    "quote-in-header.csv": (b'item,"gr"ade\nx,1\n', "the first line has a quote"),
    "nul.csv": (b"item,grade\nx,1\ny\0,2\n", "line 3 holds a NUL byte"),
    "cut.csv.gz": (gzip.compress(CSV.encode() * 99)[:-20], "truncated or damaged gzip"),
    "damaged.csv.gz": (gzip.compress(CSV.encode())[:12] + b"\xff" * 30, "truncated or damaged gzip"),
    "sheet.csv": (b"PK\x03\x04rest", "zip archive or a spreadsheet"),
    "packed.csv": (b"BZh91AY", "bzip2"),
    "text.parquet": (CSV.encode(), "is not a Parquet file"),
    "cut.parquet": (as_parquet(FRAME)[:-30], "truncated or damaged Parquet"),
    "cut-start.parquet": (b"PAR1" + as_parquet(FRAME)[60:], "truncated or damaged Parquet"),
    "norows.parquet": (as_parquet(FRAME.head(0)), "holds no rows"),
    "broken.jsonl": (b'{"a": 1}\n{"a": 2\n', "line 2 is broken JSON"),
    "nan.jsonl": (b'{"a": 1}\n\n{"a": NaN}\n', "line 3 is broken JSON (nan is not a json number"),
    "array.jsonl": (b'{"a": 1}\n[2]\n', "line 2 is an array, not an object"),
    "number.jsonl": (b'{"a": 1}\n{"a": 2}\n3\n', "line 3 is a number, not an object"),
    "null.jsonl": (b"null\n", "line 1 is null, not an object"),
    "deep.jsonl": (b'{"a": ' + b"[" * 100_000 + b"\n", "line 1 is broken JSON"),
    "half.jsonl": (b'{"a": "x"}\n{"a": "\\ud800"}\n', "row 2 holds half of a character"),
    "nothing.jsonl": (b"{}\n{}\n", "holds no rows with any column"),
    "broken.json": (b'[{"a": 1},\n {"a": }]', "line 2 is broken JSON"),
    "text.json": (b'"hello"', "holds a string where an array was expected"),
    "numbers.json": (b'[{"a": 1}, 2]', "entry 2 of the array is a number"),
    "deep.json": (b"[" * 100_000, "broken JSON"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path, name):
    data, expected = BROKEN[name]
    text = message(put(tmp_path, name, data))
    assert expected in text
    assert str(tmp_path / name) in text


def test_missing_files_and_folders(tmp_path):
    put(tmp_path, "votes.csv", CSV)
    assert "did you mean 'votes.csv'?" in message(tmp_path / "vote.csv")
    assert "check the path" in message(tmp_path / "none" / "votes.csv")
    assert "is a folder" in message(tmp_path)
    assert "there is no file" in message("") or "is a folder" in message("")
    assert "cannot be opened" in message("a\0b.csv")
    assert "there is no file" in message(tmp_path / "votes.csv" / "x.csv")
    assert "is not a path" in message(3)
    assert "\n" not in message(tmp_path / "a\nb.csv")


def test_a_long_value_is_cut_in_messages(tmp_path):
    name = "x" * 5000
    assert len(message(put(tmp_path, "a.csv", f"{name},{name}\n1,2\n"))) < 400


def test_blank_last_column_is_read_fast_and_short_rows_are_found_in_any_block(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK", 64)
    for quote in ("", '"'):
        good = "item,note\n" + "".join(f"{quote}d{n}{quote},{'x' if n % 3 else ''}\n" for n in range(200))
        source = Source("a.csv", ".csv", good.encode(), None)
        layout = delimited._layout(source, None, None)
        assert layout.plain
        frame = delimited._fast(source, layout)
        assert frame is not None
        assert frame["note"].null_count() == 67
        bad = good.replace(f"{quote}d150{quote},", f"{quote}d150{quote}")
        assert "row 151 (line 152) has 1 cells" in message(put(tmp_path, "bad.csv", bad))


def test_other_encodings_on_request(tmp_path):
    path = put(tmp_path, "a.csv", "item,grade\nCaf\u00e9,1\n".encode("latin-1"))
    assert read_table(path, encoding="latin-1")["item"].to_list() == ["Caf\u00e9"]
    assert "line 2 holds bytes that are not ascii" in message(path, encoding="ascii")
    with pytest.raises(ValueError, match="encoding='klingon' is not known"):
        read_table(path, encoding="klingon")


def test_an_unknown_separator_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a single character"):
        read_table(put(tmp_path, "a.csv", CSV), separator="::")


@given(st.text("a\r\n", max_size=12))
def test_bare_returns_are_found_wherever_a_block_ends(text):
    found = []
    for size in (1, 2, 5, 1 << 24):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delimited, "BLOCK", size)
            found.append(delimited._scan(Source("t.csv", ".csv", text.encode(), None), ",")[2])
    assert found == [re.search(r"\r(?!\n)", text) is not None] * 4
