"""Standard streams that are closed, full, gone, narrow or ASCII only, and ``python -O``."""

import json
import os
import pty
import subprocess
import sys

import polars as pl
import pytest

from crowdrank.demo import FILE

COMMAND = f"{sys.executable} -m crowdrank"
RUN = f"aggregate {FILE} --across-queries -m borda"


def shell(line, **environment):
    """What a command line leaves, run by a shell."""
    settings = {**os.environ, **environment}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, env=settings)


@pytest.mark.parametrize("words", [RUN, "methods", "--help"])
def test_closed_output_is_said_in_one_line(words):
    done = shell(f"{COMMAND} {words} >&-")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "crowdrank: standard output is closed; write to a file with --out FILE"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("out", ["r.csv", "r.parquet"])
def test_a_file_is_written_whatever_is_closed(tmp_path, closed, out):
    done = shell(f"{COMMAND} {RUN} -o {tmp_path / out} {'-q' if closed == '2>&-' else ''} {closed}")
    assert done.returncode == 0, done.stderr
    read = {"r.csv": pl.read_csv, "r.parquet": pl.read_parquet}.get(out, lambda path: json.loads(path.read_text()))
    assert len(read(tmp_path / out)) > 5


def test_closed_error_leaves_the_data_alone():
    assert shell(f"{COMMAND} {RUN} 2>&-").stdout == shell(f"{COMMAND} {RUN} -q").stdout
    assert shell(f"{COMMAND} aggregate nothing.csv 2>&-").returncode == 2


def test_closed_input_is_said():
    done = shell(f"{COMMAND} aggregate - <&-")
    assert done.returncode == 2
    assert done.stderr.startswith("crowdrank: standard input")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "settings", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
@pytest.mark.parametrize("words", ["demo", "methods"])
def test_ascii_output(words, settings):
    done = shell(f"{COMMAND} {words}", **settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert done.stdout.count("?") < 5


@pytest.mark.parametrize("words", ["methods", f"{RUN} --format json"])
def test_a_pipe_that_closes_leaves_no_words(words):
    done = shell(f"{COMMAND} {words} 2>err.txt | head -c 1; cat err.txt; rm err.txt")
    assert "Traceback" not in done.stdout
    assert "crowdrank:" not in done.stdout


@pytest.mark.parametrize("columns", ["20", "60"])
def test_a_narrow_terminal_keeps_rank_item_and_score(columns):
    ours, theirs = pty.openpty()
    settings = {**os.environ, "COLUMNS": columns, "TERM": "dumb"}
    words = [sys.executable, "-m", "crowdrank", "aggregate", str(FILE), "--across-queries", "-m", "bt", "-q"]
    with subprocess.Popen(words, stdout=theirs, stderr=theirs, env=settings) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                block = os.read(ours, 65536)
            except OSError:
                break
            if not block:
                break
            shown += block
        assert process.wait() == 0
    os.close(ours)
    lines = shown.decode().splitlines()
    assert lines[0].split()[:3] == ["rank", "item", "score"]
    assert lines[2].split()[0] == "1"
    assert "1.2" in lines[2].split()[2]


@pytest.mark.parametrize(
    ("text", "words", "code"),
    [
        ("item,annotator,grade\nx,a,3\ny,a,1\nx,b,2\ny,b,2\n", "-m majority_vote", 0),
        ("item,annotator,grade\nx,a,3\ny,a,1\nx,b,2\ny,b,2\n", "-m mean_grade --set alpha=1e999", 2),
        ("item,annotator,grade,weight\nx,a,3,1e308\ny,a,1,1e308\n", "-m majority_vote", 2),
        ("item,annotator,grade\nx,a,1e308\ny,a,1\n", "-m mean_grade", 2),
        ("item,annotator,grade\nx,a,nan\ny,a,1\n", "-m mean_grade", 2),
        ("left,right,winner,annotator\na,b,left,x\na,a,left,x\n", "", 2),
        ("left,right,winner,annotator\na,b,left,x\nb,c,left,x\nc,a,tie,y\n", "-m crowd_bt --set ridge=0", 2),
        ("left,right,winner,annotator\na,b,left,x\nb,c,left,x\nc,a,tie,y\n", "-m bradley_terry --intervals 0.9", 0),
        ("item,rank,annotator\na,1,x\nb,2,x\n", "--format json", 0),
    ],
)
def test_without_asserts_all_is_as_with_them(tmp_path, text, words, code):
    votes = tmp_path / "votes.csv"
    votes.write_text(text)
    line = f"-m crowdrank aggregate {votes} -q {words}"
    plain, bare = shell(f"{sys.executable} {line}"), shell(f"{sys.executable} -O {line}")
    assert plain.returncode == bare.returncode == code, bare.stderr
    assert (plain.stdout, plain.stderr) == (bare.stdout, bare.stderr)
    assert "nan" not in bare.stdout.lower()
    assert len(bare.stderr.splitlines()) == (code > 0)
