"""Judgments from files: kinds told from columns, several files together, and errors that name the file."""

import numpy as np
import polars as pl
import pytest

from crowdrank.errors import JudgmentError, ParameterError
from crowdrank.io import listen, read_judgments


def put(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


@pytest.fixture
def heard():
    said = []
    listen(said.append)
    yield said
    listen(None)


def test_kinds_are_told_from_columns_and_said(tmp_path, heard):
    grades = read_judgments(put(tmp_path, "g.csv", "task,worker,label,note\n007,ann,3,x\n008,ann,1,y\n"))
    assert (grades.kind, grades.items.ids.to_list()) == ("grade", ["007", "008"])
    pairs = read_judgments(put(tmp_path, "p.csv", "model_a,model_b,judge,winner\nx,y,ann,model_a\ny,x,bob,tie\n"))
    assert (pairs.kind, pairs.outcome.tolist()) == ("preference", [1, 0])
    ranks = read_judgments(put(tmp_path, "r.tsv", "annotator\titem\trank\nann\tx\t2\nann\ty\t1\n"))
    assert (ranks.kind, ranks.rank.tolist()) == ("ranking", [1, 2])
    assert len(heard) == 3
    assert "g.csv: read as grades: item = 'task', grade = 'label', annotator = 'worker'; not used: 'note'" in heard[0]


def test_the_library_is_silent(tmp_path, capsys):
    read_judgments(put(tmp_path, "g.csv", "item,grade\nx,1\n"))
    assert capsys.readouterr() == ("", "")


def test_options_go_to_their_kind(tmp_path):
    path = put(tmp_path, "g.csv", "item,annotator,grade\nx,ann,Good\ny,ann,Bad\n")
    assert read_judgments(path, levels=["Bad", "Good"]).grade.tolist() == [1, 0]
    assert read_judgments(path, nominal=True).nominal
    codes = put(tmp_path, "p.csv", "left,right,winner\nx,y,1\ny,x,2\n")
    assert read_judgments(codes, winner_codes={1: "left", 2: "right"}).outcome.tolist() == [1, -1]
    with pytest.raises(ParameterError, match="winner_codes= applies to preferences"):
        read_judgments(path, winner_codes={1: "left"})
    with pytest.raises(ParameterError, match="levels= and nominal= apply to grades"):
        read_judgments(codes, levels=["a", "b"], winner_codes={1: "left", 2: "right"})
    ranks = put(tmp_path, "r.csv", "item,rank\nx,1\n")
    with pytest.raises(ParameterError, match="duplicates="):
        read_judgments(ranks, duplicates="first")


def test_known_items_from_a_file(tmp_path):
    items = put(tmp_path, "items.csv", "item\nx\nz\n")
    grades = read_judgments(put(tmp_path, "g.csv", "item,grade\nx,1\n"), items=items)
    assert grades.items.ids.to_list() == ["x", "z"]


def test_parquet_reads_only_the_columns_that_matter(tmp_path, heard, monkeypatch):
    path = tmp_path / "g.parquet"
    pl.DataFrame({"item": ["x", "y"], "grade": [1, 2], "text": ["long", "longer"]}).write_parquet(path)
    seen = []
    original = pl.LazyFrame.collect

    def watched(scan, *args, **options):
        seen.append(scan.explain())
        return original(scan, *args, **options)

    monkeypatch.setattr(pl.LazyFrame, "collect", watched)
    assert read_judgments(path).grade.tolist() == [1, 2]
    assert "PROJECT 2/3 COLUMNS" in seen[-1]
    assert "not used: 'text'" in heard[0]


def test_several_files_belong_together(tmp_path):
    first = put(tmp_path, "a.csv", "query,item,annotator,grade\n1,x,ann,3\n1,y,ann,1\n")
    second = tmp_path / "b.parquet"
    pl.DataFrame({"query": [1.0], "item": ["x"], "worker": ["bob"], "label": [2], "weight": [2.0]}).write_parquet(
        second
    )
    grades = read_judgments([first, second])
    assert grades.frame().height == 3
    assert list(grades.annotators) == ["ann", "bob"]
    assert list(grades.items.queries) == ["1"]
    assert np.array_equal(np.sort(grades.row_weight), [1, 1, 2])


def test_rankings_of_several_files_stay_apart(tmp_path):
    text = "ranking,item,rank\n1,x,1\n1,y,2\n"
    rankings = read_judgments([put(tmp_path, "a.csv", text), put(tmp_path, "b.csv", text)])
    assert len(rankings) == 2


def test_what_is_wrong_names_the_file_and_row(tmp_path):
    good = put(tmp_path, "good.csv", "item,annotator,grade\nx,ann,1\n")
    bad = put(tmp_path, "bad.csv", "item,annotator,grade\nx,ann,1\ny,ann,\n")
    for paths in (bad, [bad], [good, bad]):
        with pytest.raises(JudgmentError) as caught:
            read_judgments(paths)
        text = str(caught.value)
        assert text.startswith(f"{bad}: ")
        assert "row 2" in text
        assert "\n" not in text
    with pytest.raises(JudgmentError, match=r"none\.csv: the table lacks"):
        read_judgments(put(tmp_path, "none.csv", "colour\nred\n"))
    with pytest.raises(JudgmentError, match="the preferences do not say who gave them but the grades do"):
        read_judgments([good, put(tmp_path, "p.csv", "left,right,winner\nx,y,x\n")])
    with pytest.raises(JudgmentError, match="no file of judgments"):
        read_judgments([])


def test_files_of_several_kinds_are_read_together(tmp_path):
    first = put(tmp_path, "a.csv", "item,annotator,grade\n1,ann,low\n")
    pairs = put(tmp_path, "p.csv", "left,right,annotator,winner\n1,2,ann,2\n")
    second = put(tmp_path, "b.csv", "item,annotator,grade\n2,bob,high\n")
    found = read_judgments([first, pairs, second], levels=["low", "high"], winner_codes={1: "left", 2: "right"})
    assert found.kinds == ("grade", "preference")
    assert found.parts[0].grade.tolist() == [0, 1]
    assert found.parts[1].outcome.tolist() == [-1]
    assert (found.n_items, list(found.annotators)) == (2, ["ann", "bob"])


def test_options_about_a_kind_that_no_file_holds_are_refused(tmp_path):
    pairs = put(tmp_path, "p.csv", "left,right,annotator,winner\nx,y,ann,x\n")
    ranks = put(tmp_path, "r.csv", "item,rank,annotator,ranking\nx,1,ann,1\ny,2,ann,1\n")
    with pytest.raises(ParameterError, match="but the files hold preferences and rankings; leave them out"):
        read_judgments([pairs, ranks], levels=["low", "high"])
    assert read_judgments([pairs, ranks], duplicates="first").kinds == ("preference", "ranking")


def test_ids_that_mix_numbers_and_text_are_refused(tmp_path):
    path = put(tmp_path, "a.jsonl", '{"item": 1, "grade": 2, "note": 1}\n{"item": "x1", "grade": 3, "note": "y"}\n')
    with pytest.raises(JudgmentError, match=r"column 'item' mixes numbers and text, first in row 2 \('x1'\)"):
        read_judgments(path)
    good = put(tmp_path, "b.jsonl", '{"item": "1", "grade": 2, "note": 1}\n{"item": "x1", "grade": 3, "note": "y"}\n')
    assert read_judgments(good).grade.tolist() == [2, 3]
