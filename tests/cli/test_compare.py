"""``crowdrank compare``, and the suggestions that ``crowdrank aggregate --annotators`` writes."""

import csv

import pytest


def rows(path):
    """Rows of a CSV file."""
    with path.open() as handle:
        return list(csv.DictReader(handle))


def test_tests_orders_and_a_picture(run, votes, tmp_path):
    ran = run(
        "compare votes.csv --across-queries --methods borda,bt,elo -o t.csv --tests p.csv --orders o.csv --plot m.png"
    )
    assert ran.code == 0, ran.err
    table = rows(tmp_path / "t.csv")
    assert [row["method"] for row in table] == ["borda", "bradley_terry", "elo"]
    assert all(float(row["annotator_log_loss"]) < float(row["log_loss"]) for row in table)
    assert all(float(row["log_loss_error"]) > 0 for row in table)
    assert {row["measure"] for row in rows(tmp_path / "p.csv")} == {"pair_accuracy", "log_loss", "annotator_log_loss"}
    assert [set(row) for row in rows(tmp_path / "o.csv")] == [{"method", "other", "tau"}] * 3
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    assert any(line.startswith("by annotator_log_loss ") for line in ran.lines)
    assert any("differ most (tau" in line for line in ran.lines)


def test_folds_and_quiet(run, votes):
    ran = run("compare votes.csv --across-queries --methods borda --folds 3 -q")
    assert ran.code == 0
    assert ran.err == ""
    assert ran.out.startswith("method,pair_accuracy,pair_accuracy_error,log_loss")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--plot m.bmp", "--plot m.bmp is not the name of a picture; end it in .png"),
        ("--plot nowhere/m.png", "nowhere"),
        ("--folds 1", "folds=1 must be a whole number of at least 2"),
        ("--tests t.csv --orders t.csv", "two results would be written to t.csv"),
    ],
)
def test_mistakes_are_told_in_a_line(run, votes, words, message):
    ran = run(f"compare votes.csv --methods borda {words}")
    assert ran.code == 2
    assert len(ran.lines) == 1
    assert message in ran.lines[0]


def test_the_table_for_people_has_stars():
    from crowdrank.api import compare_methods
    from crowdrank.cli.evaluate import readable_table

    data = {"item": list("xyzw") * 6, "annotator": sorted("abcdef" * 4), "grade": [4, 3, 2, 1] * 5 + [3, 3, 2, 1]}
    shown = readable_table(compare_methods(data, ["mean_grade", "borda", "highest_grade"]))
    assert shown.columns[:2] == ["method", "pair_accuracy"]
    assert "pair_accuracy_error" not in shown.columns
    assert any(cell.endswith("*") for cell in shown["pair_accuracy"])


def test_annotators_are_written_with_what_to_do(run, votes, tmp_path):
    ran = run("aggregate votes.csv --across-queries -m bradley_terry --annotators who.csv -o r.csv")
    assert ran.code == 0, ran.err
    found = {row["annotator"]: row for row in rows(tmp_path / "who.csv")}
    assert found["olga"]["action"] == "drop"
    assert found["olga"]["reason"].startswith("answers the wrong way round (quality 0.1")
    assert {found[name]["action"] for name in ("tariq", "bruno", "ines")} == {"review"}
    assert found["femi"]["action"] == "keep"
    assert "suggested: leave out 1 of 30 annotators and look at 3 more" in ran.lines
    assert any(line.startswith("suggested: without that one the order") for line in ran.lines)
