"""``crowdrank study``: the list, a quick run, going on after a stop, and mistakes."""

import csv
import io
import json
import sys

import pytest

from crowdrank.cli.study import show_tables
from crowdrank_studies import STUDIES, Outcome, Row, Study, Verdict, Work


class Small(Study):
    """A study of two rows that needs no data."""

    def run(self, work):
        work.expect(1, self.name)
        found = work.cell(("one",), lambda: {"values": [0.5 + work.quick, 0.7 + work.quick]})
        return Outcome(
            rows=[
                Row(place="table 1", what={"method": "m", "measure": "tau"}, values=found["values"], paper=0.6),
                Row(place="table 2", what={"method": "m"}, values=(3.0,), over="once"),
            ],
            verdicts=[Verdict("table 1", "reproduced", "It is 0.6."), Verdict("table 2", "not reproduced", "No.")],
            notes=("Two of each.",),
        )


@pytest.fixture
def small(monkeypatch):
    """A study that is in the catalogue for the test."""
    made = Small(name="small", title="A small paper", reference="Niu15", home="nowhere:small", protocol="None.")
    monkeypatch.setitem(STUDIES, "small", made)
    return made


def test_list(run, small, tmp_path):
    ran = run(f"study --folder {tmp_path}")
    assert ran.code == 0
    rows = {row["study"]: row for row in csv.DictReader(io.StringIO(ran.out))}
    assert list(rows) == list(STUDIES)
    assert rows["crowdagg-mirex"]["data"] == "mirex2005-crowd (missing)"
    assert float(rows["crowdagg-mirex"]["minutes"]) > 0
    assert rows["small"]["data"] == ""
    assert json.loads(run("study --format json").out)


def test_table_on_standard_output_and_verdicts_on_standard_error(run, small, tmp_path):
    ran = run("study small --format csv")
    assert ran.code == 0
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert list(rows[0]) == ["place", "method", "measure", "paper", "ours", "spread", "difference", "n", "over"]
    assert [float(rows[0][name]) for name in ("paper", "ours")] == pytest.approx([0.6, 0.6])
    assert rows[1]["paper"] == rows[1]["spread"] == ""
    assert ran.lines[0].startswith("A small paper; took ")
    assert "  + table 1: reproduced. It is 0.6." in ran.lines
    assert "  - table 2: not reproduced. No." in ran.lines
    assert ran.lines[-2:] == ["2 claims: 1 reproduced, 1 not reproduced", "  Two of each."]
    assert " on " in ran.lines[0]
    assert ran.lines[0].split(" on ")[1].endswith(("core", "cores"))
    assert not list(tmp_path.iterdir())


def test_files_and_what_a_former_run_left(run, small, tmp_path):
    ran = run("study small --out results --quick")
    assert ran.code == 0
    assert "a quick run only shows that the study works; it uses too little data for its numbers to count" in ran.lines
    assert "wrote results/small-quick.csv" in ran.lines
    written = sorted(file.name for file in (tmp_path / "results").iterdir())
    assert written == ["small-quick.cells.jsonl", "small-quick.csv", "small-quick.json"]
    again = run("study small --out results --quick")
    assert again.lines[0] == "1 finished parts of a former run were taken over"
    assert again.out == ran.out


@pytest.mark.parametrize(
    ("options", "told"),
    [("", "with --out DIR a stopped run can be continued"), ("-o out", "the same command continues where it stopped")],
)
def test_stopping_says_how_to_go_on(run, small, monkeypatch, options, told):
    def stopped(self, work):
        raise KeyboardInterrupt

    monkeypatch.setattr(Small, "run", stopped)
    ran = run(f"study small {options}")
    assert ran.code == 130
    assert told in ran.lines


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("study smal", "there is no study 'smal'; did you mean 'small'? known: crowdagg-trec, "),
        ("study small --quick --full", "--quick and --full exclude each other; leave one out"),
        ("study small --seeds 0", "--seeds 0 must be at least 1"),
        ("study crowdagg-mirex --quick --folder nowhere", "data set 'mirex2005-crowd' lacks "),
    ],
)
def test_mistakes_in_one_line(run, small, words, told):
    ran = run(words)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.lines) == 1
    assert told in ran.lines[0]


def test_table_for_people(small, capsys):
    show_tables(small.run(Work()).frame())
    shown = capsys.readouterr().out
    assert "table 1 (method m; standard deviation over seeds)" in shown
    assert "0.600 ± 0.141 (0.6)" in shown
    assert "table 2 (measured once)" in shown


def test_quick_runs_and_single_repetitions_decide_nothing(run, small):
    ran = run("study small --quick")
    assert "  = table 1: undecided. A quick run decides nothing. It is 0.6." in ran.lines
    assert "2 claims: 2 undecided" in ran.lines
    once = Outcome(
        rows=[Row(place="table 1", what={"method": "m"}, values=(0.5,))],
        verdicts=[Verdict("a", "reproduced", "Yes."), Verdict("b", "not decidable", "Never published.")],
    )
    assert not once.is_repeated
    assert [one.verdict for one in once.leave_undecided("Once.").verdicts] == ["undecided", "not decidable"]


@pytest.mark.data
def test_quick_run_of_a_paper(run, data_folder):
    ran = run(f"study crowdagg-mirex --quick --folder {data_folder} --format csv")
    assert ran.code == 0
    printed = [row for row in csv.DictReader(io.StringIO(ran.out)) if row["place"] == "table 2 (b)" and row["paper"]]
    assert len(printed) == 8 * 12


def test_without_the_studies_one_sentence_says_how_to_get_them(monkeypatch, run):
    for name in [name for name in sys.modules if name.startswith("crowdrank_studies.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "crowdrank_studies", None)
    for line in ("study", "methods --paper wu"):
        failed = run(line)
        assert failed.code == 2
        assert failed.err.strip().endswith(
            "the studies are a package of their own: `pip install ./studies` in a checkout of crowdrank's source"
        )
