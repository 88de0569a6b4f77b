"""In and out: what is exported is what was judged, and what comes in comes in once."""

import csv
import io
import json
import tempfile
import uuid
from dataclasses import replace

import polars as pl
import pytest
from tests.web.calling import Called
from tests.web.collecting import ask, campaign, expect_promises

import crowdrank as cr
from crowdrank.web.campaign_file import Item
from crowdrank.web.collection import SqliteStore

ANSWERS = {
    "grade": lambda n: {"grade": n % 4},
    "preference": lambda n: {"winner": ("a", "b", "tie")[n % 3]},
    "ranking": lambda n: {"order": [["b"], ["a", "c"]] if n % 2 else [["c"], ["a"], ["b"]]},
}


@pytest.fixture
def service(tmp_path):
    stores = []

    def make(kind="grade", **keys):
        stores.append(SqliteStore(tmp_path / f"{len(stores)}.db"))
        return Called(
            stores[-1], kind=kind, **{"n_items": 3, "n_queries": 3, "set_size": 3, "scheme": "2-overlap", **keys}
        )

    yield make
    for store in stores:
        store.close()


def fill(called, kind):
    """Two annotators judge everything; one judgment is withdrawn, and one comes too late."""
    for name in ("=ann", "bob"):
        token = called.join(name)
        held = called.post("/requests", token, {"n": 50}).json()["requests"]
        rows = [{"submission": str(uuid.uuid4()), "request": one["id"], "answer": ANSWERS[kind](n), "seconds": 2.5}
                for n, one in enumerate(held)]  # fmt: skip
        answer = called.post("/judgments/batch", token, {"judgments": rows}).json()
        assert {one["status"] for one in answer["results"]} == {200}, answer
    called.post(f"/judgments/{rows[0]['submission']}/withdraw", token)
    return called


def exported(called, format, **keys):
    options = "".join(f"&{key}={value}" for key, value in keys.items())
    response = called.get(f"/export?format={format}{options}", called.owner_token)
    assert response.status_code == 200, response.text
    assert "attachment" in response.headers["content-disposition"]
    return response.content


def imported(called, format, data, **keys):
    options = "".join(f"&{key}={value}" for key, value in keys.items())
    headers = {"authorization": f"Bearer {called.owner_token}"}
    return called.client.post(f"/api/v1/import?format={format}{options}", content=data, headers=headers)


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_native_round_trip_is_exact_and_twice_is_once(service, kind):
    first, second = fill(service(kind), kind), service(kind)
    native = exported(first, "native")
    rows = [json.loads(line) for line in native.splitlines()]
    found = imported(second, "native", native).json()
    assert found["kept"] == len(rows)
    assert imported(second, "native", native).json()["known"] == len(rows)
    again = [json.loads(line) for line in exported(second, "native").splitlines()]
    assert again == rows
    expect_promises(second.collection)


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_aggregate_reads_the_export(service, tmp_path, kind, format):
    called = fill(service(kind), kind)
    path = tmp_path / f"votes.{format}"
    path.write_bytes(exported(called, format))
    judgments = cr.read_judgments(path)
    n_counted = ask(called.collection, "SELECT COUNT(*) AS n FROM judgment WHERE counted = 1 AND withdrawn_at IS NULL")[
        0
    ].n
    assert (judgments.kind, len(judgments)) == (kind, n_counted)
    assert judgments.n_queries == 3
    everything = exported(called, format, which="all")
    assert len(everything) > len(path.read_bytes())


def test_cells_that_look_like_formulas_are_quoted(service):
    text = exported(fill(service(), "grade"), "csv").decode()
    assert "'=ann" in text
    assert ",=ann" not in text


def test_ids_of_all_kinds_come_back_from_a_spreadsheet(tmp_path):
    """Formulas are dead in the file, numbers stay numbers, and what we read is what there was."""
    ids = ["-2", "+3.5e2", "=1+1", "@sum", "-x", "'=y", "'quoted'", "plain"]
    items = tuple(Item(query="=q", item=one, content=one) for one in ids)
    store = SqliteStore(tmp_path / "x.db")
    called = Called(store, replace(campaign(scheme="single"), items=items))
    token = called.join("-ann")
    for _ in ids:
        called.judge(token)
    text = exported(called, "csv").decode()
    cells = {cell for line in csv.reader(text.splitlines()) for cell in line}
    assert {"-2", "+3.5e2", "'=1+1", "'@sum", "'-x", "''=y", "'quoted'"} <= cells
    (tmp_path / "votes.csv").write_text(text)
    rows = cr.read_judgments(tmp_path / "votes.csv").frame().rows(named=True)
    assert {(row["query"], row["item"], row["annotator"]) for row in rows} == {("=q", one, "-ann") for one in ids}
    store.close()


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_is_skipped_is_in_every_export(service, kind):
    called = fill(service(kind, scheme="4-overlap"), kind)
    token = called.join("cy")
    request = called.post("/requests", token).json()["requests"][0]["id"]
    called.post(f"/requests/{request}/skip", token, {"reason": "broken", "text": "does not load"})
    for format in ("native", "jsonl", "csv", "parquet", "label-studio", "argilla"):
        data = exported(called, format, which="all")
        assert b"broken: does not load" in data, format
    rows = [json.loads(line) for line in exported(called, "native").splitlines()]
    assert [(row["annotator"], row["counted"]) for row in rows if row["skipped"]] == [("cy", False)]
    again = service(kind, scheme="4-overlap")
    assert imported(again, "native", exported(called, "native")).json()["kept"] == len(rows) - 1


def test_upto_is_a_cut(service):
    called = fill(service(), "grade")
    rows = [json.loads(line) for line in exported(called, "native", upto=4).splitlines()]
    assert [row["seq"] for row in rows] == [1, 2, 3, 4]
    assert called.get("/export?format=xml", called.owner_token).status_code == 422
    assert called.get("/export?upto=-1", called.owner_token).status_code == 422


@pytest.mark.parametrize(
    ("kind", "format", "columns"),
    [
        ("grade", "label-studio", "&column=item=data.item&column=query=data.query"),
        ("preference", "label-studio", ""),
        ("grade", "argilla", "&column=item=fields.item&column=query=fields.query"),
    ],
)
def test_other_tools_formats_come_back(service, kind, format, columns):
    called, other = fill(service(kind), kind), service(kind)
    data = exported(called, format)
    name = f"export.{'json' if format == 'label-studio' else 'jsonl'}{columns}"
    found = imported(other, format, data, name=name)
    assert found.status_code == 200, found.text
    assert not found.json()["left_out"]

    def answers(service):
        rows = (row for row in lines(service) if row["counted"])
        names = ("query", "item", "left", "right", "annotator", "grade", "winner")
        return {tuple(row.get(name) for name in names) for row in rows}

    assert answers(other) == answers(called)
    assert imported(other, format, data, name=name).json()["kept"] == 0
    expect_promises(other.collection)


def lines(called):
    return [json.loads(line) for line in exported(called, "native").splitlines()]


def test_plain_tables_come_in_with_what_was_left_out(service):
    called = service()
    table = "query,item,annotator,grade\nq0,i0-0,zoe,3\nq0,i0-1,zoe,Good\nq9,i0-0,zoe,1\nq0,i0-0,zoe,3\nq0,i0-2,yan,9\n"
    refused = imported(called, "table", table, name="votes.csv")
    assert refused.status_code == 422
    table = "query,item,annotator,grade\nq0,i0-0,zoe,3\nq0,i0-1,zoe,2\nq9,i0-0,zoe,1\nq0,i0-2,yan,9\n"
    found = imported(called, "table", table, name="votes.csv").json()
    assert found["kept"] == 2
    assert found["left_out"] == {"unknown item": 1, "grade outside the scale": 1}
    assert imported(called, "table", table, name="votes.csv").json()["known"] == 2
    rows = {(row["item"], row["annotator"]): row["grade"] for row in lines(called)}
    assert rows == {("i0-0", "zoe"): 3, ("i0-1", "zoe"): 2}
    words = "query,item,annotator,grade\nq1,i1-0,zoe,Excellent\nq1,i1-1,zoe,Bad\n"
    assert imported(called, "table", words, name="w.csv").json()["kept"] == 2
    expect_promises(called.collection)


@pytest.mark.parametrize(
    ("format", "data"),
    [("native", "{"), ("native", '{"submission": "x"}'), ("table", "item\nx\n"), ("label-studio", "{}"),
     ("nothing", "x"), ("table", "query,item,grade\nq0,i0-0,1\n"), ("native", "")],
)  # fmt: skip
def test_files_that_cannot_be_read_are_one_sentence(service, format, data):
    response = imported(service(), format, data, name="file.csv")
    assert response.status_code in (400, 422), response.text
    assert "\n" not in response.json()["error"]["message"]


def test_qrels_in_and_pairs_out(service):
    called = fill(service("preference"), "preference")
    pairs = [json.loads(line) for line in exported(called, "pairs").splitlines()]
    assert set(pairs[0]) == {"prompt", "chosen", "rejected", "annotator"}
    n_ties = sum(row["winner"] == "tie" for row in lines(called) if row["counted"])
    assert len(pairs) + n_ties == sum(row["counted"] for row in lines(called))
    assert imported(called, "qrels", "q0 0 i0-0 1\nq0 0 i0-1 0\n", name="t.qrels").json()["truths"] == 2
    # the first consensus is being made
    assert called.get("/export?format=qrels", called.owner_token).status_code == 503


def test_parquet_is_a_table(service):
    frame = pl.read_parquet(io.BytesIO(exported(fill(service(), "grade"), "parquet")))
    assert {"query", "item", "grade", "annotator", "time", "submission"} <= set(frame.columns)


@pytest.mark.parametrize(
    "name", ["votes.csv", "../../votes.csv", "..", ".", "%00", "a%0Ab.csv", "%F0%9F%98%80", "x" * 300]
)
def test_an_import_tells_nothing_of_where_the_file_lies_for_a_moment(service, name):
    table = "query,item,annotator,grade\nq0,i0-0,ann,1\nq0,i0-1,ann,2\n"
    kept = imported(service(), "table", table, name=name)
    assert (kept.status_code, kept.json()["kept"]) == (200, 2)
    refused = imported(service(), "table", "item,annotator\nx,y\n", name=name)
    assert refused.status_code == 422
    for answer in (kept, refused):
        assert tempfile.gettempdir() not in answer.text
        assert "tmp" not in answer.text
    if name.endswith("votes.csv"):
        assert any("votes.csv" in note for note in kept.json()["notes"])


@pytest.mark.parametrize(
    "line",
    [
        b"{}", b"\x1f\x8b\x08xxxx", b"[1]", b'{"annotator": ""}', b'{"annotator": "\\ud800"}',
        b'{"annotator": "x", "time": 1e400}', b'{"annotator": "x", "seconds": "long"}', b'{"annotator": ["x"]}',
    ],
)  # fmt: skip
def test_a_native_file_that_is_none_is_refused_in_a_sentence(service, line):
    whole = b'{"submission": "%s", "query": "q0", "item": "i0-0", "grade": 1, ' % str(uuid.uuid4()).encode()
    data = line if not line.startswith(b'{"') else whole + line[1:]
    refused = imported(service(), "native", data)
    assert (refused.status_code, refused.json()["error"]["type"]) == (422, "invalid")
    assert "line 1" in refused.json()["error"]["message"]
