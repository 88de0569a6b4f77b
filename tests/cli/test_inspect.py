"""``crowdrank inspect``, and what no command ever shows: e-mails and addresses."""

import json
import shlex

import pytest

VOTES = "worker,task,label,comment\n" + "".join(f"w{i % 3},t{i // 3},{i % 4},\n" for i in range(24))
SURVEY = "email,IPAddress,item,score\n" + "".join(
    f"p{i % 4}@example.org,10.0.0.{i % 4},x{i // 4},{i % 5}\n" for i in range(24)
)
"""Annotators that are e-mails, and where they sat."""


def test_what_each_column_is_taken_for(run, tmp_path):
    (tmp_path / "votes.csv").write_text(VOTES)
    ran = run("inspect votes.csv")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "votes.csv: 24 rows, 4 columns, CSV, UTF-8: a plain table",
        "  grade      label   0 1 2 3 (6, 6, 6, 6 times)",
        "  item       task    8 different, 3 grades each",
        "  annotator  worker  3 different",
        "  not used   comment (blank)",
        "  note       'label' is read as ordered grades 0 to 3; for classes: --nominal",
        "24 grades by 3 annotators on 8 items. Next:",
        "  crowdrank aggregate votes.csv --want grade -o ranks.csv --annotators who.csv",
    ]
    done = run(ran.out.splitlines()[-1].removeprefix("  crowdrank "))
    assert done.code == 0, done.err


def test_what_would_not_be_read_has_its_candidates_and_a_command(run, tmp_path):
    rows = "".join(f"{i // 4},text {i // 4},w{i % 4},{i % 2}\n" for i in range(24))
    (tmp_path / "votes.csv").write_text("orig_id,text,worker,response\n" + rows)
    ran = run("inspect votes.csv")
    assert ran.code == 2
    assert ran.out.splitlines() == [
        "votes.csv: 24 rows, 4 columns, CSV, UTF-8: a plain table; it would not be read:",
        "  columns 'orig_id' and 'text' could both be the item; say which: --column item=orig_id",
        "  grade      response  0 1 (12, 12 times)",
        "  item ?     orig_id   6 different, 4 grades each",
        "       ?     text      6 different, 4 grades each",
        "  annotator  worker    4 different",
        "Next, most likely:",
        "  crowdrank aggregate votes.csv --column item=orig_id",
    ]
    again = run(*shlex.split(ran.out.splitlines()[-1])[1:])
    assert again.code == 0, again.err


def test_several_files_and_json(run, tmp_path):
    (tmp_path / "a.csv").write_text(VOTES)
    (tmp_path / "b.csv").write_text("left,right,winner\nx,y,0\ny,z,1\n")
    ran = run("inspect a.csv b.csv --format json")
    assert ran.code == 2
    good, bad = json.loads(ran.out)
    assert (good["would_read"], good["kind"], good["n_judgments"], good["n_annotators"]) == (True, "grade", 24, 3)
    assert next((role["word"], role["column"]) for role in good["roles"]) == ("grade", "label")
    assert (bad["would_read"], bad["problem"]) == (
        False,
        "'winner' holds 0 and 1; say what they mean: --winner-codes 1=left,0=right or --winner-codes 0=left,1=right",
    )
    assert bad["next"] == "crowdrank aggregate b.csv --winner-codes 1=left,0=right"
    assert run("inspect b.csv --winner-codes 1=left,0=right").code == 0
    assert run("inspect a.csv --format xml").code == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.csv", None, "there is no file none.csv"),
        ("empty.csv", "", "is empty"),
        ("cut.parquet", b"PAR1cut", "damaged Parquet"),
        ("cut.xlsx", b"PK\x03\x04cut", "damaged Excel"),
        ("broken.jsonl", '{"item": ', "broken JSON"),
    ],
)
def test_what_is_no_table_is_said_in_one_line(run, tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    ran = run("inspect", name)
    assert ran.code == 2
    assert said in ran.out
    assert "Traceback" not in ran.out + ran.err


def test_the_options_given_are_in_the_command(run, tmp_path):
    (tmp_path / "v.csv").write_text("a thing,worker,criterion,score\n" + "".join(
        f"t{i // 6},w{i // 2 % 3},{'hc'[i % 2]},{i % 5}\n" for i in range(24)))  # fmt: skip
    ran = run("inspect", "v.csv", "--column", "item=a thing", "--where", "criterion=h")
    last = ran.out.splitlines()[-1].strip()
    assert last.startswith("crowdrank aggregate v.csv --column 'item=a thing' --where criterion=h ")
    assert run(*shlex.split(last)[1:]).code == 0


def personal(text):
    return [word for word in ("example.org", "10.0.0.") if word in text]


@pytest.mark.parametrize(
    "words",
    [
        "inspect s.csv", "inspect s.csv --format json", "inspect s.csv --column item=email",
        "inspect s.csv --column grade=IPAddress", "inspect s.csv --column annotator=IPAddress",
        "aggregate s.csv --column grade=item", "aggregate s.csv --where IPAddress=x",
    ],
)  # fmt: skip
def test_nobody_is_named_by_mail_or_address(run, tmp_path, words):
    (tmp_path / "s.csv").write_text(SURVEY)
    ran = run(words)
    if words.startswith("inspect"):
        assert not personal(ran.out + ran.err)
    else:
        assert "10.0.0." not in ran.out + ran.err


def test_pseudonyms_are_written_for_annotators(run, tmp_path):
    (tmp_path / "s.csv").write_text(SURVEY)
    ran = run(
        "aggregate s.csv --pseudonyms -o ranks.csv --annotators who.csv --report page.html --without p3@example.org"
    )
    assert ran.code == 0, ran.err
    who = (tmp_path / "who.csv").read_text()
    assert [line.split(",")[0] for line in who.splitlines()] in (
        ["annotator", *order] for order in __import__("itertools").permutations(["A1", "A2", "A3"])
    )
    assert not personal(who + (tmp_path / "ranks.csv").read_text() + ran.err)
    assert "10.0.0." not in (tmp_path / "page.html").read_text()
