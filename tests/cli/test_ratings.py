"""Ratings, answers to both orders of a pair, and tables for pages."""

import csv
import io
import json

import pytest


def test_ratings_stand_beside_the_scores(run, votes):
    ran = run("aggregate votes.csv --across-queries --method bradley_terry --rating mean -q")
    found = list(csv.DictReader(io.StringIO(ran.out)))
    assert sum(float(row["rating"]) for row in found) / len(found) == pytest.approx(1000)
    anchor = found[1]["item"]
    ran = run(f"aggregate votes.csv --across-queries --method bradley_terry --rating anchor={anchor} --format json -q")
    rows = json.loads(ran.out)["items"]
    assert rows[1]["rating"] == 1000
    assert rows[0]["rating_lower"] <= rows[0]["rating"] <= rows[0]["rating_upper"]
    page = run(f"aggregate votes.csv --across-queries --rating anchor={anchor} --format markdown -q").out
    assert page.splitlines()[0].endswith("| rating | rating_lower | rating_upper | tier |")
    assert [row["tier"] for row in rows] == sorted(row["tier"] for row in rows)


def test_mistakes_are_said(run, votes):
    for text, says in (
        ("--across-queries --rating best", "write --rating anchor=ITEM"),
        ("--across-queries --rating anchor=nobody", "there is no item 'nobody'"),
        ("--rating mean", "queries; name one"),
        ("--across-queries -m borda --rating mean", "not log-odds"),
        ("--swaps mean", "swaps"),
    ):
        ran = run(f"aggregate votes.csv {text} -q")
        assert ran.code == 2
        assert says in ran.err


def test_answers_that_change_with_the_sides(run, tmp_path):
    lines = ["left,right,annotator,winner", "x,y,ann,left", "y,x,ann,left", "x,y,bob,left", "y,x,bob,right"]
    (tmp_path / "two.csv").write_text("\n".join(lines) + "\n")
    tied = run(f"aggregate {tmp_path / 'two.csv'} -m bradley_terry --swaps tie")
    assert "2 of 4 answers changed when sides were exchanged and were made ties" in tied.err
    dropped = run(f"aggregate {tmp_path / 'two.csv'} -m bradley_terry --swaps drop")
    assert "were left out" in dropped.err
