"""The demo finds what was planted in it, and its file is the one that the script makes."""

import re

import polars as pl
import pytest
from tools.draw_demo import ANNOTATORS, GUESSING, PROMPTS, REVERSED, STRENGTH, make

from crowdrank.data.judgments import Grades, Preferences, Rankings
from crowdrank.demo import FILE
from crowdrank.io import read_table
from crowdrank.review.crowd_agreement import agreement


@pytest.fixture(scope="module")
def table():
    return read_table(FILE)


def test_the_demo_names_every_planted_annotator_and_nobody_else(run):
    ran = run("demo")
    assert ran.code == 0
    assert ran.err == ""
    named = re.findall(r"^(\w+) +0\.\d\d .*(reversed|guessing|poor)", ran.out, flags=re.MULTILINE)
    assert dict(named) == {**dict.fromkeys(GUESSING, "guessing"), **dict.fromkeys(REVERSED, "reversed")}


def test_the_demo_ranks_all_models_over_all_prompts(run):
    lines = run("demo").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("rank "))
    shown = [line.split()[:2] for line in lines[start + 2 : start + 14]]
    assert [int(rank) for rank, _ in shown] == list(range(1, 13))
    assert {model for _, model in shown} == set(STRENGTH)
    assert shown[0][1] == "larch-pro"
    assert shown[-1][1] == "willow-base"


def test_the_demo_fits_eighty_columns_without_colours(run):
    out = run("demo").out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_the_next_commands_run(run):
    commands = re.findall(r"^  crowdrank (.*)$", run("demo").out, flags=re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        ran = run(*command.split())
        assert ran.code == 0, ran.err
    assert "annotators seems to guess or to be reversed" in ran.err


def test_the_saved_votes_are_those_of_the_demo(run, tmp_path, table):
    ran = run("demo", "--save", "votes.csv")
    assert (tmp_path / "votes.csv").read_bytes() == FILE.read_bytes()
    assert "crowdrank aggregate votes.csv --across-queries" in ran.err


def test_the_file_is_small_and_what_the_script_makes(table):
    assert FILE.stat().st_size < 150_000
    assert make().equals(table)


def test_the_file_holds_what_is_said_of_it(table):
    assert set(table["annotator"]) == set(ANNOTATORS)
    assert set(table["query"]) == set(PROMPTS)
    assert set(table["left"]) | set(table["right"]) == set(STRENGTH)
    assert table["winner"].value_counts().filter(pl.col("winner") == "tie")["count"][0] > 100
    pairs = table.select(
        "query", pl.min_horizontal("left", "right").alias("a"), pl.max_horizontal("left", "right").alias("b")
    )
    assert set(pairs.group_by("query", "a", "b").len()["len"]) == {3}


def test_agreement_by_hand():
    rows = [
        ("ann", "q", "x", "y", "x"),
        ("bob", "q", "y", "x", "y"),
        ("cy", "q", "x", "y", "tie"),
        ("ann", "q", "x", "z", "x"),
    ]
    found = agreement(Preferences.from_rows(rows))
    assert (found.same, found.n_shared) == (0.0, 1)
    rows += [("bob", "q", "z", "x", "x")]
    found = agreement(Preferences.from_rows(rows))
    assert (found.same, found.n_shared) == (0.25, 2)


def test_agreement_does_not_depend_on_the_names_of_items(table):
    turned = table.with_columns(left="right", right="left").with_columns(
        winner=pl.col("winner").replace({"left": "right", "right": "left"}),
        left="z" + pl.col("right").str.reverse(),
        right="z" + pl.col("left").str.reverse(),
    )
    votes, renamed = Preferences.from_frame(table), Preferences.from_frame(turned)
    assert agreement(votes).alpha == pytest.approx(agreement(renamed).alpha, abs=1e-12)
    assert agreement(votes.across_queries()).same == pytest.approx(agreement(votes).same)


def test_agreement_of_grades_and_rankings():
    grades = Grades.from_rows([("ann", "q", "x", 1), ("bob", "q", "x", 1), ("ann", "q", "y", 2), ("bob", "q", "y", 2)])
    assert agreement(grades).alpha == 1.0
    rankings = Rankings.from_rows(
        [("ann", "q", "x", 1), ("ann", "q", "y", 2), ("bob", "q", "x", 2), ("bob", "q", "y", 1)]
    )
    assert agreement(rankings).same == 0.0
    alone = agreement(Grades.from_rows([("ann", "q", "x", 1)]))
    assert alone.n_shared == 0
    assert alone.alpha != alone.alpha


def test_the_next_commands_work_where_the_name_is_not_found(monkeypatch, tmp_path):
    from crowdrank.cli import demo

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", [".venv/bin/crowdrank", "demo"])
    assert demo._next_command("votes.csv").startswith(".venv/bin/crowdrank aggregate votes.csv ")
