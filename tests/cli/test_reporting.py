"""``aggregate`` with --report, --fail-if and findings in JSON."""

import json

import pytest

from crowdrank.io import read_consensus


def test_a_report_is_written(run, votes, tmp_path):
    ran = run("aggregate", "votes.csv", "--across-queries", "-m", "bt", "-o", "r.csv", "--report", "my report.html")
    assert ran.code == 0
    assert "wrote my report.html" in ran.lines
    page = (tmp_path / "my report.html").read_text()
    assert "1 of 30 annotators answers the wrong way round: olga" in page
    assert "crowdrank aggregate votes.csv --across-queries -m bt -o r.csv --report &#39;my report.html&#39;" in page
    assert "--without olga" in page


def test_a_report_shows_text_and_compared_methods(run, votes, tmp_path):
    (tmp_path / "items.csv").write_text(
        "query,item,title,url\nplan-a-menu,juniper,A <small> model,https://example.org/j\n"
    )
    ran = run(
        "aggregate", "votes.csv", "--across-queries", "-m", "bt", "-q", "-o", "r.csv", "--report", "r.html",
        "--items", "items.csv", "--compare", "borda,elo",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    page = (tmp_path / "r.html").read_text()
    assert "A \\u003csmall\\u003e model" in page
    assert "https://example.org/j" in page
    assert 'id="methods"' in page


def test_findings_are_in_the_json(run, votes, tmp_path):
    document = json.loads(run("aggregate", "votes.csv", "--across-queries", "-m", "bt", "-q", "--format", "json").out)
    found = {one["kind"]: one for one in document["findings"]}
    assert found["guessing"]["ids"] == ["tariq", "bruno", "ines"]
    assert found["guessing"]["severity"] == "problem"
    assert 0 < found["winner"]["numbers"]["probability"] < 1
    (tmp_path / "r.json").write_text(json.dumps(document))
    assert read_consensus(tmp_path / "r.json").order()[0] == "larch-pro"


def test_a_condition_that_holds_fails_with_3_after_all_is_written(run, votes, tmp_path):
    ran = run(
        "aggregate",
        "votes.csv",
        "--across-queries",
        "-m",
        "bt",
        "-o",
        "r.csv",
        "--report",
        "r.html",
        "--fail-if",
        "quality<0.6",
    )
    assert ran.code == 3
    assert ran.lines[-1].startswith("crowdrank: --fail-if: quality<0.6 holds of 4 of 30: olga 0.1")
    assert (tmp_path / "r.csv").exists()
    assert (tmp_path / "r.html").exists()
    quiet = run(
        "aggregate", "votes.csv", "--across-queries", "-m", "bt", "-q", "-o", "r.csv", "--fail-if", "quality<0.6"
    )
    assert quiet.code == 3
    assert len(quiet.lines) == 1


def test_a_condition_that_does_not_hold_passes(run, votes):
    ran = run(
        "aggregate votes.csv --across-queries -m bt -q --fail-if quality<0.05 --fail-if 'alpha<0.1 and n_items>3'"
    )
    assert ran.code == 0
    assert ran.err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--fail-if qualty<0.6", "there is no quantity 'qualty'; did you mean 'quality'?"),
        ("--fail-if quality", "is not a comparison; write for example quality<0.6"),
        ("--report -", "give --report a name, such as report.html"),
        ("--report no/r.html", "its folder does not exist; make the folder first"),
        ("--report .", "is a folder; give the name of a file in it"),
        ("--report votes.csv", "votes.csv is an input and would be overwritten"),
        ("--report r -o r", "two results would be written to r"),
        ("--compare borda", "--compare adds a section to the report; give --report FILE.html too"),
        ("--fail-if confidence<0.5", "confidence is not known here"),
    ],
)
def test_mistakes_are_told_in_a_line(run, votes, tmp_path, words, said):
    ran = run(f"aggregate votes.csv --across-queries -m bt {words}")
    assert ran.code == 2
    assert len(ran.lines) == 1
    assert said in ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["votes.csv"]


def test_small_files_have_reports_too(run, tmp_path):
    (tmp_path / "v.csv").write_text("item,grade\nx,1\n")
    assert run("aggregate v.csv -q --report r.html").code == 0
    assert "x is the only item" in (tmp_path / "r.html").read_text()


def test_votes_may_hold_the_text_of_items(run, tmp_path):
    (tmp_path / "v.csv").write_text(
        "item,annotator,grade,title,link\nx,a,1,The <x>,https://example.org/x\ny,a,2,Why,\n"
    )
    assert run("aggregate v.csv -q --report r.html").code == 0
    page = (tmp_path / "r.html").read_text()
    assert "The \\u003cx\\u003e" in page
    assert "https://example.org/x" in page
