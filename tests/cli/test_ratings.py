"""Ratings, answers to both orders of a pair, and tables for pages."""

import csv
import io
import json
import re

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
        ("--rating mean", "queries; rank items over all of them with --across-queries"),
        ("--across-queries -m borda --tiers", "so there are no tiers; give --bootstrap 200"),
        ("--across-queries --win-rate a,b,c", "name two items, as in --win-rate A,B"),
        ("--across-queries -m bradley_terry --win-rate nobody", "there is no item 'nobody'"),
        ("--win-rate larch-pro,maple-3", "with --across-queries"),
        ("--by query --tiers", "--tiers applies to one ranking"),
        ("--across-queries -m borda --rating mean", "not log-odds"),
        ("--swaps mean", "swaps"),
    ):
        ran = run(f"aggregate votes.csv {text} -q")
        assert ran.code == 2
        assert says in ran.err


def test_tiers_and_a_win_rate(run, votes):
    ran = run("aggregate votes.csv --across-queries -m bradley_terry --tiers --win-rate larch-pro,willow-base -q")
    found = list(csv.DictReader(io.StringIO(ran.out)))
    tiers = [int(row["tier"]) for row in found]
    assert tiers == sorted(tiers)
    assert tiers[0] == 1 < tiers[-1]
    assert len(ran.lines) == 1
    assert re.fullmatch(r"larch-pro wins 9\d\.\d % against willow-base \(95 % interval .* to .* %\)", ran.lines[0])
    ran = run("aggregate votes.csv --across-queries -m bradley_terry --win-rate larch-pro --format json -q")
    assert "larch-pro wins" in ran.err
    share = json.loads(ran.out)["estimates"]["win_rate"]
    assert share["item"] == "larch-pro"
    assert share["against"] is None
    assert 0.5 < share["lower"] < share["share"] < share["upper"]
    several = list(csv.DictReader(io.StringIO(run("aggregate votes.csv -m bradley_terry --tiers -q").out)))
    assert {row["tier"] for row in several if row["rank"] == "1"} == {"1"}


def test_answers_that_change_with_the_sides(run, tmp_path):
    lines = ["left,right,annotator,winner", "x,y,ann,left", "y,x,ann,left", "x,y,bob,left", "y,x,bob,right"]
    (tmp_path / "two.csv").write_text("\n".join(lines) + "\n")
    tied = run(f"aggregate {tmp_path / 'two.csv'} -m bradley_terry --swaps tie")
    assert "2 of 4 answers changed when sides were exchanged and were made ties" in tied.err
    dropped = run(f"aggregate {tmp_path / 'two.csv'} -m bradley_terry --swaps drop")
    assert "were left out" in dropped.err
