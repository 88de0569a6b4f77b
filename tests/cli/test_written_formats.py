"""What a name says is what is written, or it is refused; full disks, killed processes, spreadsheets."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import crowdrank.io as cio
from crowdrank.data import files
from crowdrank.errors import ParameterError
from crowdrank.io.output import write_table


@pytest.mark.parametrize(
    "name", ["out.xls", "out.pdf", "out.html", "out.feather", "out.xml", "out.csv.zip", "out.xlsx.gz"]
)
def test_a_name_of_another_format_is_refused_before_any_work(run, votes, name):
    ran = run(f"aggregate {votes} -o {name}")
    assert ran.code == 2
    assert f"{name}: .{name.removesuffix('.gz').rsplit('.')[-1]} cannot be written; use one of .csv, .tsv" in ran.err
    assert not os.path.exists(name)
    assert run(f"aggregate {votes} -m borda -q -o {name} --format csv").code == 0


@pytest.mark.parametrize("name", ["plain", "v1.2", "ranks.txt", "ranks.2026-01-31"])
def test_a_name_that_says_nothing_gets_csv(run, votes, name):
    assert run(f"aggregate {votes} -m borda -q -o {name}").code == 0
    assert Path(name).read_text().startswith("query,item,score")


@pytest.mark.parametrize("option", ["--annotators who.xls", "--report page.pdf", "--report page.docx"])
def test_other_outputs_too(run, votes, option):
    ran = run(f"aggregate {votes} {option}")
    assert ran.code == 2
    assert len(ran.lines) == 1
    assert not os.path.exists(option.split()[1])


def test_runs_and_qrels(run, votes, grades):
    assert run(f"aggregate {votes} -m borda -q -o ours.run").code == 0
    found = cio.read_run("ours.run")
    assert found["run"].unique().to_list() == ["borda"]
    assert found.height == run(f"aggregate {votes} -m borda -q").out.count("\n") - 1
    assert run("aggregate grades.csv -m majority_vote -q -o ours.qrels").code == 0
    assert cio.read_qrels("ours.qrels").sort("item")["grade"].to_list() == [0, 1, 2, 3]
    refused = run(f"aggregate {votes} -m borda -q -o ours2.qrels")
    assert refused.code == 2
    assert "qrels need item and grade, but this table has no grade; a .run holds scores" in refused.err


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "run"])
def test_a_full_disk_is_named(run, votes, format):
    ran = run(f"aggregate {votes} -m borda -q -o /dev/full --format {format}")
    assert ran.code == 2
    assert ran.lines == [
        "crowdrank: /dev/full could not be written because the disk is full; nothing was left behind, free some space"
    ]


def test_what_a_killed_process_left_is_removed(tmp_path):
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom crowdrank.data.files import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as handle:\n    print('open', flush=True)\n    time.sleep(60)"
    )
    target = tmp_path / "ranks.csv"
    with subprocess.Popen([sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"open\n"
        (part,) = os.listdir(tmp_path)
        with files.whole_file(target) as handle:
            handle.write(b"while the other lives")
        assert sorted(os.listdir(tmp_path)) == [part, "ranks.csv"]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert part in os.listdir(tmp_path)
    stranger = tmp_path / ".ranks.csv.note.part"
    stranger.write_text("not ours")
    with files.whole_file(target) as handle:
        handle.write(b"after")
    assert sorted(os.listdir(tmp_path)) == [stranger.name, "ranks.csv"]


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_ids_come_back_as_they_were_unless_a_spreadsheet_is_to_be_safe(tmp_path, format):
    ids = ["=1+1", "+a", "-b", "@c", "\td", "plain", "'e", "-5", None]
    frame = pl.DataFrame({"item": ids, "=score": [-1.5] * 9})
    path = tmp_path / f"t.{format}"
    write_table(frame, path)
    assert [cell and cell.strip() for cell in ids] == cio.read_table(path)["item"].to_list()
    write_table(frame, path, safe=True)
    safe = path.read_text().splitlines()
    assert "=score" not in safe[0].split("," if format == "csv" else "\t")
    # what a spreadsheet would run is quoted, and our reader takes the quote off again
    assert [line[0] for line in safe[1:5]] == ["'"] * 4
    assert cio.read_table(path)["item"].to_list() == ids
    assert all(line.rstrip().endswith("-1.5") for line in safe[1:])


VERBS = "aggregate compare evaluate diagnose rank propose simulate methods datasets demo train"


@pytest.mark.parametrize("verb", VERBS.split())
def test_every_verb_that_writes_tables_has_safe_csv(run, verb):
    assert "--safe-csv" in run(f"{verb} --help").out


def test_safe_csv_ends_with_the_command(run, tmp_path):
    (tmp_path / "v.csv").write_text("item,grade\n=x,1\n-y,2\n")
    assert run("aggregate v.csv -q -m mean_grade --safe-csv").out.splitlines()[1].startswith("'-y")
    assert run("aggregate v.csv -q -m mean_grade").out.splitlines()[1].startswith("-y")


def test_nothing_else_is_written_as_trec():
    with pytest.raises(ParameterError, match="run needs item and rank and score, but this table has no item"):
        write_table(pl.DataFrame({"annotator": ["a"]}), "who.run")


def test_digits_of_text_are_six_or_as_many_as_asked_for(run, votes):
    aggregate = f"aggregate {votes} --across-queries -m bradley_terry -q"

    def digits(text):
        cells = [line.split(",")[1] for line in text.splitlines()[1:]]
        return max(len(cell.lstrip("-0.").replace(".", "")) for cell in cells)

    assert digits(run(aggregate).out) == 6
    assert digits(run(f"{aggregate} --digits 3").out) == 3
    assert digits(run(f"{aggregate} --digits 17").out) > 10
    exact = json.loads(run(f"{aggregate} --format json").out)["items"]
    assert any(len(str(abs(row["score"]))) > 12 for row in exact)
    assert "--digits" in run(f"{aggregate} --digits 0").err
