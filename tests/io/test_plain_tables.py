"""Plain tables: what is read, what stops, and that the command in a stop gives the right reading."""

import contextlib
import io
import json
import os
import re
import shlex
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
import xlsxwriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdrank import inspect, read_judgments
from crowdrank.cli.votes import Reading, values_of
from crowdrank.errors import CrowdrankError, JudgmentError, MissingExtraError, ParameterError
from crowdrank.io import listen, read_truth
from crowdrank.io.judgments import read_files
from crowdrank.options import READING
from crowdrank.wording import on_command_line

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.DataWarning")

SAMPLES = Path(os.environ.get("CROWDRANK_DATA", "nowhere")) / "exports"
KNOWN = json.loads((SAMPLES / "expected.json").read_text()) if (SAMPLES / "expected.json").exists() else {}
FLAGS = {
    "--strength": "strength", "--column": "columns", "--winner-codes": "winner_codes", "--where": "where",
    "--wide": "wide", "--nominal": "nominal", "--header": "header", "--no-annotators": "no_annotators",
    "--levels": "levels", "--duplicates": "duplicates", "--sheet": "sheet", "--encoding": "encoding",
}  # fmt: skip


def reading(words):
    """The options of a command."""
    found, words = {}, list(words)
    while words:
        name = FLAGS[words.pop(0)]
        if name in ("nominal", "no_annotators"):
            found[name] = True
        elif name in ("columns", "where"):
            found.setdefault(name, []).append(words.pop(0))
        else:
            found[name] = words.pop(0)
    return Reading(**values_of(READING, found)).options()


def read(path, words=""):
    """Judgments as the command line reads them, or the message of the stop."""
    with on_command_line():
        try:
            return read_files([path], reading(shlex.split(words) if isinstance(words, str) else words))
        except CrowdrankError as error:
            return str(error)


def figures(found):
    """What a sample's entry says of the judgments."""
    told = {
        "kind": found.kind, "judgments": found.n_judgments, "queries": found.n_queries, "items": found.n_items,
        "annotators": found.n_annotators,
    }  # fmt: skip
    if found.kind == "preference":
        told["winners"] = {
            word: int((found.outcome == n).sum()) for word, n in (("left", 1), ("right", -1), ("tie", 0))
        }
        if found.strength is not None:
            told["strength"] = {f"{value:g}": n for value, n in Counter(found.strength.tolist()).items()}
    if found.kind == "grade":
        told["grades"] = {f"{float(value):g}": n for value, n in Counter(found.frame()["grade"].to_list()).items()}
        told["nominal"] = found.nominal
    return told


def remedy(message):
    """The first option that a message names, as words."""
    return shlex.split(re.search(r"--[a-z-]+( '[^']*'| [^\s;)]+)?", message)[0].rstrip(","))


PLAIN = [name for name in KNOWN if name.startswith("plain/")] or [None]


@pytest.mark.parametrize("name", PLAIN)
def test_samples_are_read_as_known(name):
    if name is None:
        pytest.skip("CROWDRANK_DATA does not name a folder with samples of exports")
    entry, path = KNOWN[name], SAMPLES / name
    if entry["kind"] == "refused":
        assert "--winner-codes" in read(path)
        return
    found = read(path, entry.get("needs", ""))
    told = figures(found)
    wanted = {key: value for key, value in entry.items() if key in told and key != "grades"}
    assert {key: told[key] for key in wanted} == wanted
    if "grades" in entry:
        assert told["grades"] == {f"{float(value):g}": n for value, n in entry["grades"].items()}
    if entry.get("bare", "").startswith("refused"):
        bare = read(path)
        assert isinstance(bare, str)
        again = figures(read(path, remedy(bare)))
        assert {key: again[key] for key in wanted} == wanted, bare


# stops: the sentence, and a command of it that works -----------------------------------------------------------------


def put(folder, text, name="t.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows(header, cells, n=24):
    return "\n".join([header, *(",".join(map(str, cells(i))) for i in range(n))]) + "\n"


RUBRIC = "prompt_id,model,judge"
PAIRS = "model_a,model_b,judge,{}"
STOPS = {
    "two near": (
        rows("orig_id,text,worker,response", lambda i: (i // 4, f"text {i // 4}", f"w{i % 4}", i % 2)),
        "columns 'orig_id' and 'text' could both be the item; say which: --column item=orig_id",
        {"kind": "grade", "items": 6, "annotators": 4},
    ),
    "signed": (
        rows(PAIRS.format("score"), lambda i: (f"a{i % 3}", f"b{i // 3}", f"j{i % 2}", i % 5 - 2)),
        "pairs of 'model_a' and 'model_b', but no winner: 'score' holds -2, -1, 0, 1, 2; if positive means "
        "'model_a' is better: --strength score=left, else --strength score=right",
        {"kind": "preference", "winners": {"left": 9, "right": 10, "tie": 5}},
    ),
    "bare numbers": (
        rows(PAIRS.format("verdict"), lambda i: (f"a{i % 3}", f"b{i // 3}", f"j{i % 2}", i % 2)),
        "'verdict' holds 0 and 1; say what they mean: --winner-codes 1=left,0=right or --winner-codes 0=left,1=right",
        {"kind": "preference", "winners": {"left": 12, "right": 12, "tie": 0}},
    ),
    "a scale of seven": (
        rows(PAIRS.format("preference"), lambda i: (f"a{i % 3}", f"b{i // 3}", f"j{i % 2}", i % 7 + 1), 28),
        "holds 1, 2, 3, 4, 5, 6, 7; if more than 4 means 'model_b' is better: --strength preference-4=right",
        {"kind": "preference", "winners": {"left": 12, "right": 12, "tie": 4}},
    ),
    "like columns": (
        rows(f"{RUBRIC},helpfulness,accuracy", lambda i: (i // 4, f"m{i // 2 % 2}", f"j{i % 2}", i % 5, i % 4)),
        "'helpfulness' and 'accuracy' hold numbers of the same range; which is the grade? --column grade=helpfulness",
        {"kind": "grade", "items": 12, "queries": 6},
    ),
    "split": (
        rows(f"{RUBRIC},criterion,score", lambda i: (i // 8, f"m{i // 4 % 2}", f"j{i // 2 % 2}", "hc"[i % 2], i % 5)),
        "judge 'j0' grades 'm0' of query '0' 2 times; 'criterion' distinguishes them: --where criterion=h (or c), or "
        "--duplicates keep if they are repeats",
        {"kind": "grade", "judgments": 12, "annotators": 2},
    ),
    "nobody named": (
        rows("item,wkr,score", lambda i: (f"x{i // 4}", f"w{i % 4}", i % 5)),
        "each item has 4 grades and no annotator is named; if 'wkr' names the annotator: --column annotator=wkr; "
        "if no column does: --no-annotators",
        {"kind": "grade", "annotators": 4},
    ),
    "metrics below each other": (
        rows("doc,annotation_name,score", lambda i: (f"x{i // 2}", ["fluency", "accuracy"][i % 2], i % 5)),
        "'annotation_name' says what was graded; choose one: --where annotation_name=fluency (or accuracy); a ranking "
        "for each: --column query=annotation_name",
        {"kind": "grade", "annotators": 0, "judgments": 12},
    ),
    "metrics by different judges": (
        rows("doc,key,judge,score", lambda i: (f"x{i // 2}", ["right", "brief"][i % 2], f"j{i % 2}", i % 5)),
        "'key' says what was graded; choose one: --where key=right (or brief); a ranking for each: --column query=key",
        {"kind": "grade", "annotators": 1, "judgments": 12},
    ),
    "a name of whom or what": (
        rows("doc,facet,score", lambda i: (f"x{i // 2}", ["fluent", "right"][i % 2], i % 5)),
        "if 'facet' names the annotator: --column annotator=facet; if it says what was judged: --where facet=fluent; "
        "if no column does: --no-annotators",
        {"kind": "grade", "annotators": 2},
    ),
    "no header": (
        rows("842,79185673,0,0", lambda i: (840 + i % 4, 79185673 + i // 4, i * 7 % 3 % 2, i // 4 % 2)),
        "the first line (842, 79185673, 0, 0) looks like data; name the columns: --header annotator,item,grade,truth",
        {"kind": "grade", "judgments": 25, "annotators": 4, "items": 6},
    ),
    "no header, no number": (
        rows("w0,x0,good", lambda i: (f"w{i % 4}", f"x{i // 4}", ["good", "bad"][i % 2])),
        "the first line (w0, x0, good) looks like data; name the columns: --header annotator,item,grade",
        None,
    ),
    "one column per annotator": (
        rows("id,rater1,rater2", lambda i: (f"x{i}", i % 5, i % 4)),
        "'rater1' and 'rater2' look like one column per annotator; read them so: --wide rater1,rater2",
        {"kind": "grade", "annotators": 2, "items": 24, "judgments": 48},
    ),
    "one column per item": (
        rows("ResponseId,Q1_1,Q1_2", lambda i: (f"R_{i}", i % 5, i % 4)),
        "'Q1_1' and 'Q1_2' may be one column per item, with 'ResponseId' in each row; read them so: --wide Q1_1,Q1_2",
        {"kind": "grade", "annotators": 24, "items": 2, "judgments": 48},
    ),
    "an item that no name tells": (
        rows("what,rater,rating", lambda i: (f"x{i // 4}", f"w{i % 4}", i % 5)),
        "the table lacks item to be read as grades (understood: grade = 'rating', annotator = 'rater'; columns that "
        "could serve: 'what' ('x0')); name the column with --column item=what",
        {"kind": "grade", "annotators": 4, "items": 6},
    ),
    "grades in words": (
        rows("task,performer,label", lambda i: (f"x{i // 4}", f"w{i % 4}", ["cat", "dog"][i % 2])),
        "if 'cat' is the worse one: --levels cat,dog; if 'dog' is the worse one: --levels dog,cat; if they have no "
        "order: --nominal",
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said", "gives"), STOPS.values(), ids=STOPS)
def test_a_stop_says_what_to_type(tmp_path, text, said, gives):
    path = put(tmp_path, text)
    message = read(path)
    assert isinstance(message, str), figures(message)
    assert said in message
    assert "\n" not in message
    found = read(path, remedy(message))
    if gives is not None:
        told = figures(found)
        assert {key: told[key] for key in gives} == gives
    # inspect would not read it either, and offers the same command
    seen = inspect(path)
    assert (seen.would_read, seen.problem) == (False, message.removeprefix(f"{path}: "))
    assert seen.next.startswith(f"crowdrank aggregate {path} --")


NESTED = [
    {
        "id": n,
        "data": {"url": f"u{n // 3}"},
        "response": {"meta": {"quality": n % 5}, "why": "y" * 99},
        "user": f"w{n % 3}",
    }
    for n in range(12)
]


def test_paths_lead_into_objects(tmp_path):
    path = put(tmp_path, "\n".join(map(json.dumps, NESTED)), "n.jsonl")
    message = read(path)
    assert "'response' holds objects; write the path: --column grade=response.meta.quality" in message
    for name in ("n.jsonl", "n.json"):
        path = put(tmp_path, "\n".join(map(json.dumps, NESTED)) if name == "n.jsonl" else json.dumps(NESTED), name)
        found = read(path, "--column item=data.url,grade=response.meta.quality --where data.url=u1")
        assert figures(found)["grades"] == {"3": 1, "4": 1, "0": 1}
    table = pl.DataFrame(
        {"data": [json.dumps(row["data"]) for row in NESTED], "user": [r["user"] for r in NESTED], "score": range(12)}
    )
    table.write_csv(tmp_path / "n.csv")
    assert read(tmp_path / "n.csv", "--column item=data.url").n_items == 4
    assert "but there is nothing at that path" in read(path, "--column item=data.nowhere")
    assert "but the table's columns are 'id', 'data'" in read(path, "--column item=nowhere")


def test_rows_are_chosen_by_value(tmp_path):
    path = put(
        tmp_path, rows("item,annotator,grade,turn", lambda i: (f"x{i // 4}", f"w{i % 2}", i % 5, float(i // 2 % 2)))
    )
    assert len(read(path, "--where turn=1")) == 12
    assert "no row has '7' in 'turn', as --where asks; it holds '0.0' and '1.0'" in read(path, "--where turn=7")
    assert "--where is about 'round', but the table's columns are" in read(path, "--where round=7")


# numbers, encodings, sheets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "separator", "grades", "note"),
    [
        (["1,5", "2", "3,25"], ";", [1.5, 2, 3.25], "2 cells such as '1,5' read as 1.5"),
        (["4/5", "2/5", "5/5"], ",", [4, 2, 5], "3 cells such as '4/5' read as 4"),
        (["4/5", "1/2", "5/5"], ",", [0.8, 0.5, 1], "3 cells such as '4/5' read as 0.8"),
        (["80%", "20 %", "5%"], ",", [80, 20, 5], "3 cells such as '80%' read as 80"),
        (["1 - bad", "2 - ok", "3 - good"], ",", [0, 1, 2], "3 cells such as '1 - bad' read as 1"),
        (["1 (bad)", "3 (ok)", "9 (good)"], ",", [1, 3, 9], "3 cells such as '1 (bad)' read as 1"),
        (["1: bad", "2: ok", "2: ok"], ",", [0, 1, 1], "3 cells such as '1: bad' read as 1"),
        (["1", "2", "3"], ",", [1, 2, 3], None),
    ],
)
def test_numbers_in_other_clothes(tmp_path, cells, separator, grades, note):
    text = "\n".join(
        separator.join(row) for row in [("item", "rater", "rating"), *(("x", f"w{n}", c) for n, c in enumerate(cells))]
    )
    heard = []
    listen(heard.append)
    try:
        found = read(put(tmp_path, text))
    finally:
        listen(None)
    assert found.grade.tolist() == grades
    said = [line for line in heard if "read as" in line and "cells" in line]
    assert [line.partition(": ")[2] for line in said] == ([f"'rating': {note}"] if note else [])


def test_words_of_numbers_are_levels(tmp_path):
    found = read(put(tmp_path, "item,rater,rating\nx,a,1 - bad\nx,b,2 - ok\n"))
    assert found.levels == ("bad", "ok")


@pytest.mark.parametrize("text", ["item;rater;rating\nx;a;1,250\nx;b;3,500\n", "item;rater;rating\nx;a;1,250\nx;b;3\n"])
def test_three_digits_behind_a_comma_may_be_thousands(tmp_path, text):
    assert "'rating' holds '1,250', which may mean 1.25 or 1250" in read(put(tmp_path, text)).replace(
        "3,500", "1,250"
    ).replace("3.5 or 3500", "1.25 or 1250")


def test_blanks_have_many_names(tmp_path):
    table = ["item,rater,rating", *(f"x,w{n},{grade}" for n, grade in enumerate(["NA", *range(1, 20)]))]
    message = read(put(tmp_path, "\n".join(table)))
    assert "the grade is blank in row 1" in message
    assert "--drop-invalid" in message
    pairs = ["left,right,winner,rater", *(f"x,y,{['left', 'N/A'][n == 3]},w{n}" for n in range(20))]
    assert "the winner is blank in row 4" in read(put(tmp_path, "\n".join(pairs)))


TEXT = "item,annotator,rating\nCafé,Zoë,1\nCafé,Jürgen,2\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"]
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json"])
def test_encodings_are_told_apart(tmp_path, encoding, suffix):
    records = pl.read_csv(io.StringIO(TEXT)).to_dicts()
    lines = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    text = {"csv": TEXT, "jsonl": lines, "json": json.dumps(records, ensure_ascii=False)}[suffix]
    path = put(tmp_path, text.encode(encoding), f"t.{suffix}")
    heard = []
    listen(heard.append)
    try:
        found = read_judgments(path)
    finally:
        listen(None)
    assert list(found.annotators) == ["Jürgen", "Zoë"]
    told = [line for line in heard if "Windows-1252" in line]
    assert len(told) == (encoding in ("cp1252", "latin-1"))
    assert not told or "'Café'" in told[0]


def test_an_encoding_may_be_named(tmp_path):
    path = put(tmp_path, TEXT.replace("Zoë", "Ωmega").encode("cp1253", "replace"))
    assert "Ωmega" in list(read_judgments(path, encoding="cp1253").annotators)
    with pytest.raises(ParameterError, match="encoding='no-such' is not known"):
        read_judgments(path, encoding="no-such")


def sheets(folder, merged=None, **pages):
    """An Excel file with some sheets, in the last of which some cells may be one."""
    book = xlsxwriter.Workbook(folder / "t.xlsx")
    for name, lines in pages.items():
        page = book.add_worksheet(name)
        for row, line in enumerate(lines):
            page.write_row(row, 0, line)
    if merged:
        page.merge_range(merged, "x")
    book.close()
    return folder / "t.xlsx"


def test_sheets(tmp_path):
    table = [[], ["item", "annotator", "rating", "seen"], ["007", 1, 3, True], ["007", 2, 2.5, None]]
    path = sheets(tmp_path, votes=table, more=[["item", "grade"], ["x", 1]])
    heard = []
    listen(heard.append)
    try:
        found = read_judgments(path)
    finally:
        listen(None)
    assert (list(found.annotators), found.items.ids.to_list(), found.grade.tolist()) == (["1", "2"], ["007"], [3, 2.5])
    assert any("sheet 'votes' is read; there is also 'more'" in line for line in heard)
    assert len(read_judgments(path, sheet="more")) == 1
    with pytest.raises(JudgmentError, match="has no sheet 'none'; its sheets are 'votes' and 'more'"):
        read_judgments(path, sheet="none")


def test_merged_cells_stop(tmp_path):
    rows = [["item", "annotator", "rating"], ["x", "ann", 1], ["x", "bob", 2]]
    path = sheets(tmp_path, merged="A2:A3", votes=rows)
    with pytest.raises(JudgmentError, match="cells A2:A3 are merged; unmerge them"):
        read_judgments(path)


def test_without_the_extra_a_sheet_is_refused_with_the_remedy(tmp_path, monkeypatch):
    path = put(tmp_path, b"PK\x03\x04", "t.xlsx")
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(
        MissingExtraError, match=r"is an Excel file; pip install 'crowdrank\[excel\]', or save the sheet as CSV"
    ):
        read_judgments(path)


# properties ----------------------------------------------------------------------------------------------------------

ANNOTATORS = (
    "annotator",
    "worker",
    "WorkerId",
    "rater",
    "judge_id",
    "participant",
    "!amt_worker_ids",
    "prolific_pid",
    "email",
)
ITEMS = ("item", "item_id", "document", "docid", "url", "model", "system", "stimulus", "task", "id")
GRADES = ("grade", "label", "rating", "relevance", "score", "answer", "value")
QUERIES = ("query", "qid", "topic", "prompt", "question_id")
EXTRA = {
    "uuid": lambda i: f"u-{i:04d}", "created": lambda i: f"2024-05-{i % 28 + 1:02d} 10:00:{i % 60:02d}",
    "remark": lambda i: f"I thought long about number {i}, and then I chose what seemed right to me that day",
    "batch": lambda i: "one", "gold": lambda i: i % 2, "Unnamed: 0": lambda i: i,
}  # fmt: skip
TRIES = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def graded(draw, query):
    """Rows of (annotator, query, item, grade), every annotator once on every item."""
    n_people, n_items = draw(st.integers(2, 4)), draw(st.integers(2, 5))
    grade = st.lists(st.integers(1, 5), min_size=n_people * n_items, max_size=n_people * n_items)
    cells = [(f"p{a}", f"q{i % 2}" if query else "", f"x{i}") for a in range(n_people) for i in range(n_items)]
    return [(*key, g) for key, g in zip(cells, draw(grade), strict=True)]


@TRIES
@given(data=st.data())
def test_other_names_orders_and_columns_never_give_another_reading(tmp_path, data):
    query = data.draw(st.booleans())
    table = graded(data.draw, query)
    names = [data.draw(st.sampled_from(options)) for options in (ANNOTATORS, QUERIES, ITEMS, GRADES)]
    columns = {name: [row[place] for row in table] for place, name in enumerate(names) if query or place != 1}
    for name in data.draw(st.lists(st.sampled_from(list(EXTRA)), unique=True, max_size=3)):
        columns[name] = [EXTRA[name](i) for i in range(len(table))]
    frame = pl.DataFrame(columns, strict=False).cast(pl.String)
    frame = frame[data.draw(st.permutations(range(len(frame))))].select(data.draw(st.permutations(frame.columns)))
    frame.write_csv(tmp_path / "t.csv")
    found = read(tmp_path / "t.csv")
    if isinstance(found, str):
        return
    shown = found.frame().select(pl.col("annotator", "item").cast(pl.String), pl.col("grade").cast(pl.Float64))
    wanted = pl.DataFrame(
        [(row[0], row[2], float(row[3])) for row in table], schema=["annotator", "item", "grade"], orient="row"
    )
    assert shown.sort(pl.all()).equals(wanted.sort(pl.all())), (frame.columns, found)


@TRIES
@given(data=st.data())
def test_tables_with_two_sides_are_never_grades(tmp_path, data):
    pairs = data.draw(
        st.lists(st.tuples(st.integers(0, 4), st.integers(5, 9), st.integers(-2, 2)), min_size=4, max_size=16)
    )
    left, right = data.draw(
        st.sampled_from([("left", "right"), ("model_a", "model_b"), ("item1", "item2"), ("response_a", "response_b")])
    )
    answer = data.draw(st.sampled_from(["score", "rating", "label", "winner", "preference", "value", "strength"]))
    columns = {
        left: [f"m{a}" for a, _, _ in pairs], right: [f"m{b}" for _, b, _ in pairs], answer: [s for _, _, s in pairs],
        "prompt": [f"p{n}" for n in range(len(pairs))], "judge": [f"j{n % 2}" for n in range(len(pairs))],
    }  # fmt: skip
    pl.DataFrame(columns).select(data.draw(st.permutations(list(columns)))).write_csv(tmp_path / "t.csv")
    found = read(tmp_path / "t.csv")
    assert isinstance(found, str) or found.kind == "preference"


@TRIES
@given(name=st.sampled_from(["wkr", "by", "who_is_it", "person", "source", "x1"]), n=st.integers(2, 5), data=st.data())
def test_a_worker_whose_column_no_name_tells_is_asked_about(tmp_path, name, n, data):
    items = data.draw(st.integers(3, 6))
    cells = [(f"x{i}", f"w{a}", (i + a) % 5) for i in range(items) for a in range(n)]
    pl.DataFrame(cells, schema=["item", name, "score"], orient="row").write_csv(tmp_path / "t.csv")
    heard = []
    listen(heard.append)
    try:
        found = read(tmp_path / "t.csv")
    finally:
        listen(None)
    assert isinstance(found, str) or found.n_annotators == n or any("no annotator is named" in line for line in heard)


CODES = {
    "words": ("left", "right", "tie"), "letters": ("A", "B", "C"), "brackets": ("[[A]]", "[[B]]", "[[C]]"),
    "arrows": ("A>B", "B>A", "A=B"), "models": ("model_a", "model_b", "both_bad"),
    "ones": ("model_1", "model_2", "same"), "ids": (None, None, "tie"),
}  # fmt: skip


@TRIES
@given(code=st.sampled_from(list(CODES)), data=st.data())
def test_exchanged_sides_mirror_the_reading(tmp_path, code, data):
    outcomes = data.draw(
        st.lists(st.sampled_from([1, -1, 0]), min_size=4, max_size=12).filter(lambda found: {1, -1} <= set(found))
    )
    words = dict(zip((1, -1, 0), CODES[code], strict=True))

    def table(turn):
        lines = []
        for n, outcome in enumerate(outcomes):
            sides = [f"m{n % 3}", f"k{n % 4}"][:: -1 if turn else 1]
            won = -outcome if turn else outcome
            winner = (sides[0] if won == 1 else sides[1]) if code == "ids" and won else words[won]
            lines.append((f"q{n}", *sides, winner, f"j{n % 2}"))
        return pl.DataFrame(lines, schema=["query", "model_a", "model_b", "winner", "judge"], orient="row")

    for name, turn in (("a.csv", False), ("b.csv", True)):
        table(turn).write_csv(tmp_path / name)
    one, other = (read(tmp_path / name) for name in ("a.csv", "b.csv"))
    assert one.outcome.tolist() == outcomes
    assert other.outcome.tolist() == [-outcome for outcome in outcomes]


def test_every_format_gives_the_same(tmp_path):
    frame = pl.DataFrame({
        "prompt": ["p 1", "p 1", "p 2", "p 2"], "model": ["x", "y", "x", "y"], "judge": ["7", "7", "8", "8"],
        "rating": [1, 2, 3, 5], "note": ["a, b", 'say "hi"', "line\nbreak", None],
    })  # fmt: skip
    frame.write_csv(tmp_path / "t.csv")
    frame.write_csv(tmp_path / "t.tsv", separator="\t")
    frame.write_csv(tmp_path / "semicolons.csv", separator=";", line_terminator="\r\n", include_bom=True)
    frame.write_ndjson(tmp_path / "t.jsonl")
    (tmp_path / "t.json").write_text(json.dumps(frame.to_dicts()))
    frame.write_parquet(tmp_path / "t.parquet")
    files = sorted(tmp_path.iterdir())
    with contextlib.suppress(pytest.skip.Exception):
        files.append(sheets(tmp_path, votes=[frame.columns, *map(list, frame.rows())]))
    first = read_judgments(files[0]).frame()
    for path in files[1:]:
        assert read_judgments(path).frame().equals(first), path.name


@TRIES
@given(data=st.data())
def test_a_file_cut_anywhere_is_an_error_or_fewer_rows(tmp_path, data):
    form = data.draw(st.sampled_from(["csv", "jsonl", "json", "parquet", "utf16"]))
    frame = pl.DataFrame({"item": ["é", "b", "c"] * 2, "annotator": ["ann"] * 3 + ["bob"] * 3, "grade": [1, 2, 3] * 2})
    if form == "parquet":
        frame.write_parquet(tmp_path / "whole")
        whole = (tmp_path / "whole").read_bytes()
    else:
        text = {"jsonl": frame.write_ndjson(), "json": json.dumps(frame.to_dicts())}.get(form, frame.write_csv())
        whole = text.encode("utf-16" if form == "utf16" else "utf-8")
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    path = put(tmp_path, cut, f"t.{'csv' if form == 'utf16' else form}")
    found = read(path)
    assert isinstance(found, str) or len(found) <= len(frame)


# what else belongs to reading ----------------------------------------------------------------------------------------


def test_one_column_for_each_side(tmp_path):
    cells = lambda i: (f"a{i % 3}", f"b{i % 2}", int(i % 3 == 0), int(i % 3 == 1), int(i % 3 == 2), f"j{i}")  # noqa: E731
    found = read(put(tmp_path, rows("model_a,model_b,a_wins,b_wins,tie,judge", cells)))
    assert figures(found)["winners"] == {"left": 8, "right": 8, "tie": 8}
    wrong = rows(
        "model_a,model_b,winner_a,winner_b,judge", lambda i: (f"a{i % 3}", f"b{i % 2}", 1, int(i == 3), f"j{i}")
    )
    assert "several of 'winner_a' and 'winner_b' is 1 in row 4" in read(put(tmp_path, wrong))


def test_wide_tables(tmp_path):
    path = put(tmp_path, "id,q1,q2\na,1,2\nb,,4\n")
    assert "are the rows of" in read(path, "--wide q1,q2")
    items, people = read(path, "--wide q1,q2 --column item=id"), read(path, "--wide 'q*' --column annotator=id")
    assert (items.n_items, items.n_annotators, len(items)) == (2, 2, 3)
    assert (people.items.ids.to_list(), list(people.annotators)) == (["q1", "q2"], ["a", "b"])
    assert "--wide names 'z*', which is not a column" in read(path, "--wide 'z*'")
    panel = put(tmp_path, "left,right,gpt,kim\nx,y,left,right\ny,z,tie,left\n")
    assert read(panel, "--wide gpt,kim").outcome.tolist() == [1, 0, -1, 1]


def test_the_truth_of_a_plain_table_is_its_gold_column(tmp_path):
    path = put(tmp_path, rows("task,worker,label,gold", lambda i: (f"t{i // 4}", f"w{i % 4}", i % 3, i // 4 % 2)))
    assert read_truth(path).grade.tolist() == [0, 1, 0, 1, 0, 1]
    assert set(figures(read(path))["grades"]) == {"0", "1", "2"}


def test_a_weak_query_that_hangs_on_the_item_is_not_used(tmp_path):
    heard = []
    listen(heard.append)
    try:
        found = read(
            put(
                tmp_path,
                rows(
                    "url,task,worker,rating",
                    lambda i: (f"u{i // 4}", ["one", "two"][i // 4 % 2], f"w{i % 4}", i % 5),
                ),
            )
        )
    finally:
        listen(None)
    assert found.n_queries == 1
    assert any("'task' is the same in all rows of each 'url', so it is not used as the query" in line for line in heard)


@pytest.mark.parametrize(("top", "said"), [(9, True), (1, False), (12, False)])
def test_numbers_without_a_gap_may_be_classes(tmp_path, top, said):
    heard = []
    listen(heard.append)
    try:
        read(put(tmp_path, rows("task,worker,label", lambda i: (f"t{i // 4}", f"w{i % 4}", i % (top + 1)), 52)))
    finally:
        listen(None)
    note = f"'label' is read as ordered grades 0 to {top}; for classes: --nominal"
    assert any(note in line for line in heard) == said


def test_one_row_per_item_is_nothing_to_aggregate(tmp_path):
    heard = []
    listen(heard.append)
    try:
        read(put(tmp_path, rows("topic,docno,rel", lambda i: (f"q{i // 4}", f"d{i}", i % 3))))
    finally:
        listen(None)
    assert any("each item has one grade and no annotator is named" in line for line in heard)


def test_separators_behind_the_last_cell_are_no_cells(tmp_path):
    for text in ("item,annotator,grade\nx,ann,1,\ny,ann,2,,\n", "item,annotator,grade,\nx,ann,1\ny,ann,2\n"):
        assert len(read(put(tmp_path, text))) == 2
    assert "has 4 cells where the header has 3" in read(put(tmp_path, "item,annotator,grade\nx,ann,1,9\n"))


@pytest.mark.parametrize("orient", ["columns", "split", "records", "index", "table", "list"])
def test_json_as_pandas_writes_it(tmp_path, orient):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"item": ["x", "y"] * 2, "rater": ["a", "a", "b", "b"], "rating": [1, 2, 3, 4]})
    text = json.dumps(frame.to_dict("list")) if orient == "list" else frame.to_json(orient=orient, indent=1)
    found = read(put(tmp_path, text, "t.json"))
    assert found.frame().rows() == [("x", 1, "a"), ("y", 2, "a"), ("x", 3, "b"), ("y", 4, "b")]


def test_a_row_that_holds_a_list_is_a_row(tmp_path):
    text = json.dumps({"item": "x", "rater": "a", "rating": 1, "tags": [{"tag": "t"}]})
    assert read(put(tmp_path, text, "t.json")).frame().rows() == [("x", 1, "a")]


def test_lines_and_columns_that_other_programs_add(tmp_path):
    assert len(read(put(tmp_path, "sep=;\nitem;rater;rating\nx;a;1\nx;b;2\n"))) == 2
    indexed = read(put(tmp_path, ",item,rater,rating\n0,x,a,1\n1,x,b,2\n"))
    assert indexed.items.ids.to_list() == ["x"]
    times = read(put(tmp_path, "item,rater,rating,timestamp\nx,a,1,yesterday\nx,b,2,today\n"))
    assert times.time is None
    assert "the time is neither a number nor a date" in read(put(tmp_path, "item,rater,rating,time\nx,a,1,noon\n"))


def test_entries_of_lists_are_chosen_by_a_field(tmp_path):
    path = tmp_path / "traces.jsonl"
    traces = [
        {
            "trace": f"t{n}",
            "scores": [{"name": "help", "value": n, "by": "ann"}, {"name": "tone", "value": 9 - n, "by": "ann"}],
        }
        for n in range(4)
    ]
    path.write_text("\n".join(map(json.dumps, traces)))
    pl.DataFrame(traces).write_parquet(tmp_path / "traces.parquet")
    columns = {"item": "trace", "grade": "scores[].value", "annotator": "scores[].by"}
    for file in (path, tmp_path / "traces.parquet"):
        grades = read_judgments(file, columns=columns, where={"scores[].name": "help"})
        assert grades.grade.tolist() == [0.0, 1.0, 2.0, 3.0]
        with on_command_line(), pytest.raises(JudgmentError, match=re.escape("--where 'scores[].name=help'")):
            read_judgments(file, columns=columns)


def test_the_item_is_named_again_where_one_metric_has_each_once(tmp_path):
    path = put(tmp_path, rows("run_id,key,judge,score", lambda i: (f"x{i // 2}", "rb"[i % 2], f"j{i % 2}", i % 5)))
    assert "choose one: --column item=run_id --where key=r (or b); " in read(path)
    assert read(path, ["--column", "item=run_id", "--where", "key=r"]).n_items == 12


def test_the_name_of_an_annotator_is_no_metric(tmp_path):
    names = ["Ann", "Bob"]
    path = put(tmp_path, rows("doc,judge,name,score", lambda i: (f"x{i // 2}", f"j{i % 2}", names[i % 2], i % 5)))
    assert read(path).n_annotators == 2


def test_a_blank_column_of_numbers_is_no_winner(tmp_path):
    path = tmp_path / "pairs.parquet"
    blank = pl.Series([None, None], dtype=pl.Int8)
    pl.DataFrame({"left": ["a", "b"], "right": ["b", "c"], "x y": blank, "result": blank}).write_parquet(path)
    assert "pairs of 'left' and 'right', but no winner; say which column tells who won" in read(path)
