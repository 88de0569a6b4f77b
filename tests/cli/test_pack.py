"""``crowdrank pack`` and ``aggregate`` of what it wrote."""

import polars as pl
import pytest
from tests.cluster.test_packing import preferences, votes
from typer.testing import CliRunner

from crowdrank.cli.app import app

RUN = CliRunner()


def run(*words):
    return RUN.invoke(app, [str(word) for word in words], catch_exceptions=True)


@pytest.fixture
def files(tmp_path):
    votes().write_csv(tmp_path / "grades.csv")
    preferences().write_parquet(tmp_path / "pairs.parquet")
    return tmp_path


@pytest.mark.parametrize(("name", "method"), [("grades.csv", "mean_grade"), ("pairs.parquet", "bradley_terry")])
def test_packed_votes_are_ranked_as_the_file_is(files, monkeypatch, name, method):
    monkeypatch.setattr("crowdrank.api.in_parts.MANY_ROWS", 100)
    assert run("pack", files / name, "--out", files / "packed", "--part", 300).exit_code == 0
    wanted = run("aggregate", files / name, "-m", method, "-o", files / "whole.csv")
    found = run(
        "aggregate", files / "packed", "-m", method, "-o", files / "parts.csv", "--annotators", files / "who.csv"
    )
    streamed = run("aggregate", files / name, "-m", method, "-o", files / "streamed.csv", "--stream")
    assert wanted.exit_code == found.exit_code == streamed.exit_code == 0, found.output + streamed.output
    whole, parts, other = (pl.read_csv(files / f"{one}.csv") for one in ("whole", "parts", "streamed"))
    # other parts were summed, so the last digits may differ
    assert (other["score"] - parts["score"]).abs().max() < 1e-9
    assert whole["item"].equals(parts["item"])
    assert whole["rank"].equals(parts["rank"])
    assert (whole["score"] - parts["score"]).abs().max() < 1e-9
    assert len(pl.read_csv(files / "who.csv")) == 20


def test_what_was_packed_is_added_to_and_what_does_not_fit_is_refused(files):
    assert run("pack", files / "grades.csv", "--out", files / "packed").exit_code == 0
    added = run("pack", files / "grades.csv", "--out", files / "packed", "--append")
    assert added.exit_code == 0
    assert "6,000 grades" in added.output
    wrong = run("pack", files / "pairs.parquet", "--out", files / "packed", "--append")
    assert wrong.exit_code != 0
    both = run("aggregate", files / "packed", files / "grades.csv")
    assert both.exit_code != 0


def test_packed_votes_are_resampled_rated_and_reported(files, monkeypatch):
    monkeypatch.setattr("crowdrank.api.in_parts.MANY_ROWS", 100)
    monkeypatch.setattr("crowdrank.data.parted.SAMPLE_ROWS", 1000)
    packed, ranks = files / "packed", files / "ranks.csv"
    assert run("pack", files / "pairs.parquet", "--out", packed, "--by", "annotator", "--across-queries").exit_code == 0
    page = files / "page.html"
    words = ("--bootstrap", 5, "--rating", "mean", "--report", page, "--compare", "bradley_terry,borda", "-o", ranks)
    found = run("aggregate", packed, "-m", "bradley_terry", *words)
    assert found.exit_code == 0, found.output
    assert {"rating", "lower", "upper"} <= set(pl.read_csv(ranks).columns)
    assert "Consensus of" in page.read_text()
    assert "a sample" in found.output
    refused = run("aggregate", packed, "-m", "bradley_terry", "--swaps", "tie")
    assert "--no-stream" in str(refused.exception)
    robust = run("aggregate", packed, "-m", "bradley_terry", "--robust", "annotator", "-o", files / "robust.csv")
    assert robust.exit_code == 0, robust.output


def test_other_commands_take_packed_votes_and_rankings_in_parquet(files, monkeypatch):
    monkeypatch.setattr("crowdrank.api.in_parts.MANY_ROWS", 100)
    packed = files / "packed"
    assert run("pack", files / "grades.csv", "--out", packed, "--part", 500).exit_code == 0
    for words in (
        ("compare", packed, "--methods", "mean_grade,borda"),
        ("propose", packed, "-s", "k_overlap", "-b", 5),
    ):
        done = run(*words)
        assert done.exit_code == 0, done.output
    monkeypatch.setattr("crowdrank.cluster.results.MANY_ITEMS", 10)
    stored = run("aggregate", packed, "-m", "mean_grade")
    assert "stays in" in stored.output
    truth = votes().group_by("query", "item").agg(pl.col("grade").mean())
    truth.write_csv(files / "truth.csv")
    found = run("evaluate", packed / "results" / "mean_grade", files / "truth.csv", "--metrics", "tau")
    assert found.exit_code == 0, found.output
    assert "mean_grade" in found.output


@pytest.mark.parametrize(
    "words", [("--without", "a1"), ("--as-preferences",), ("--as-rankings",)], ids=lambda words: words[0]
)
def test_what_changes_all_judgments_is_refused_where_some_rows_are_read_at_a_time(files, words):
    streamed = run("aggregate", files / "grades.csv", "--stream", *words)
    packed = run("pack", files / "grades.csv", "--out", files / "packed", *words)
    assert streamed.exit_code == packed.exit_code == 1
    for said in (str(streamed.exception), str(packed.exception)):
        assert f"{words[0]} needs all judgments at once" in said
    assert "with --no-stream, or leave it out" in str(streamed.exception)


def test_options_about_reading_are_refused_where_judgments_are_packed_already(files):
    assert run("pack", files / "grades.csv", "--out", files / "packed").exit_code == 0
    refused = run("aggregate", files / "packed", "--across-queries")
    assert "--across-queries applies to reading files, but" in str(refused.exception)
    assert run("aggregate", files / "packed", "-o", files / "ranks.csv").exit_code == 0


def test_packed_votes_are_learned_from(files, monkeypatch):
    monkeypatch.setattr("crowdrank.api.in_parts.MANY_ROWS", 100)
    assert run("pack", files / "grades.csv", "--out", files / "packed", "--part", 300).exit_code == 0
    items = votes().select("query", "item").unique(maintain_order=True)
    items.with_columns(length=pl.int_range(pl.len()) % 17).write_csv(files / "features.csv")
    words = ("--ranker", "list_net", "--aggregator", "mean_grade", "--out", files / "model", "--stream")
    learned = run("train", files / "packed", files / "features.csv", *words)
    assert learned.exit_code == 0, learned.output + str(learned.exception)
    assert f"list_net learned from {len(items)} items" in learned.output
