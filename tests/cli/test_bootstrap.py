"""Intervals of any method from resamples of the votes."""

import csv
import io

import numpy as np

from crowdrank.cli import talk as talking
from crowdrank.io import read_consensus


def rows(text):
    """The rows of CSV text."""
    return list(csv.DictReader(io.StringIO(text)))


def test_a_bootstrap_adds_intervals_to_any_method(run, votes):
    ran = run("aggregate votes.csv --across-queries --method borda --bootstrap 50")
    assert ran.code == 0
    found = rows(ran.out)
    assert list(found[0])[3:] == ["std_error", "lower", "upper", "rank_lower", "rank_upper"]
    for row in found:
        assert float(row["lower"]) <= float(row["score"]) <= float(row["upper"])
        assert int(row["rank_lower"]) <= int(row["rank"]) <= int(row["rank_upper"])
    again = run("aggregate votes.csv --across-queries --method borda --bootstrap 50 -q")
    assert again.out == ran.out
    other = run("aggregate votes.csv --across-queries --method borda --bootstrap 50 -q --seed 1")
    assert other.out != ran.out
    wider = rows(run("aggregate votes.csv --across-queries -m borda --bootstrap 50 --intervals 0.99 -q").out)
    assert float(wider[0]["upper"]) > float(found[0]["upper"])


def test_annotators_and_queries_can_be_drawn(run, votes):
    spread = {}
    for unit in ("judgment", "annotator", "query"):
        ran = run(f"aggregate votes.csv --across-queries -m bradley_terry --bootstrap 100 --resample {unit} -q")
        assert (ran.code, ran.err) == (0, "")
        spread[unit] = np.mean([float(row["std_error"]) for row in rows(ran.out)])
    assert spread["annotator"] > 1.2 * spread["judgment"]


def test_parquet_keeps_the_replicates_and_json_the_standard_errors(run, votes, tmp_path):
    for form in ("parquet", "json"):
        assert run(f"aggregate votes.csv --across-queries --bootstrap 40 -q -o r.{form}").code == 0
    whole, plain = read_consensus(tmp_path / "r.parquet"), read_consensus(tmp_path / "r.json")
    assert whole.replicates.shape == (40, 12)
    assert plain.replicates is None
    np.testing.assert_allclose(plain.std_error, whole.std_error)
    assert plain.estimates["bootstrap"]["resample"] == "judgment"


def test_resamples_that_lack_something_are_spoken_of(run, tmp_path):
    lines = ["a,b,left", "a,b,right"] * 10 + ["c,d,left", "c,d,right"] * 10 + ["b,c,left"]
    (tmp_path / "v.csv").write_text("left,right,winner\n" + "\n".join(lines) + "\n")
    ran = run("aggregate v.csv --bootstrap 60 -q")
    assert ran.code == 0
    assert sum("of 60 resamples broke the comparisons into groups that never met" in line for line in ran.lines) == 1


def test_a_long_bootstrap_shows_that_it_works(run, votes, monkeypatch):
    monkeypatch.setattr(talking, "PATIENCE", 0.0)
    ran = run("aggregate votes.csv --across-queries --method elo --bootstrap 60")
    assert ran.code == 0
    assert "finding the consensus ..." in ran.lines
