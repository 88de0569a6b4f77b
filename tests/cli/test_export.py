"""The command export: what it writes and what it refuses."""

import json


def test_qrels_hold_whole_grades_and_refuse_white_space(run, tmp_path):
    (tmp_path / "v.csv").write_text("query,item,annotator,grade\nq1,d1,ann,2\nq1,d1,bob,2\nq1,d2,ann,0\nq1,d2,bob,0\n")
    assert run("aggregate v.csv -q -m majority_vote -o r.csv").code == 0
    assert run("export r.csv --to qrels -q").out == "q1 0 d1 2\nq1 0 d2 0\n"
    assert run("export r.csv --to qrels -q --threshold 1").out == "q1 0 d1 1\nq1 0 d2 0\n"
    assert run("export r.csv --to qrels -o t.qrels -q").code == 0
    assert run("evaluate r.csv t.qrels -q --metrics tau").code == 0
    (tmp_path / "r.csv").write_text("item,score,rank,grade\na b,1.0,1,1\nc,0.0,2,0\n")
    assert "white space" in run("export r.csv --to qrels").err


def test_what_cannot_be_exported_is_said(run, tmp_path):
    (tmp_path / "r.csv").write_text("item,score,rank\na,1.0,1\nc,0.0,2\n")
    (tmp_path / "v.csv").write_text("item,grade\na,1\n")
    assert "--want grade" in run("export r.csv --to qrels").err
    assert "--votes" in run("export r.csv --to label-studio").err
    assert "is a plain table and no export of argilla" in run("export r.csv --to argilla --votes v.csv").err
    assert "did you mean 'argilla'?" in run("export r.csv --to argila").err
    ran = run("export r.csv --to pairs")
    assert ran.code == 2
    assert "--min-confidence 0" in ran.err
    assert json.loads(run("export r.csv --to pairs --min-confidence 0 -q").out)["chosen"] == "a"
