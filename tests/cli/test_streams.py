"""Standard streams that are closed, full, gone, narrow or ASCII only, and ``python -O``."""

import json
import os
import pty
import subprocess
import sys
import time

import polars as pl
import pytest

from crowdrank.cli import talk
from crowdrank.demo import FILE

COMMAND = f"{sys.executable} -m crowdrank"
RUN = f"aggregate {FILE} --across-queries -m borda"


def shell(line, **environment):
    """What a command line leaves, run by a shell."""
    settings = {**os.environ, **environment}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, env=settings)


@pytest.mark.parametrize("words", [RUN, "study", "--help"])
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


@pytest.mark.parametrize("words", ["study", f"{RUN} --format json"])
def test_a_pipe_that_closes_leaves_no_words(tmp_path, words):
    told = tmp_path / "err.txt"
    done = shell(f"{COMMAND} {words} 2>{told} | head -c 1; cat {told}")
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


WITH_AND_WITHOUT_ASSERTS = [
    ("item,annotator,grade\nx,a,3\ny,a,1\nx,b,2\ny,b,2\n", "-m majority_vote", 0),
    ("item,annotator,grade\nx,a,3\ny,a,1\nx,b,2\ny,b,2\n", "-m mean_grade --set alpha=1e999", 2),
    ("item,annotator,grade,weight\nx,a,3,1e308\ny,a,1,1e308\n", "-m majority_vote", 2),
    ("item,annotator,grade\nx,a,1e308\ny,a,1\n", "-m mean_grade", 2),
    ("item,annotator,grade\nx,a,nan\ny,a,1\n", "-m mean_grade", 2),
    ("left,right,winner,annotator\na,b,left,x\na,a,left,x\n", "", 2),
    ("left,right,winner,annotator\na,b,left,x\nb,c,left,x\nc,a,tie,y\n", "-m crowd_bt --set ridge=0", 2),
    ("left,right,winner,annotator\na,b,left,x\nb,c,left,x\nc,a,tie,y\n", "-m bradley_terry --intervals 0.9", 0),
    ("item,rank,annotator\na,1,x\nb,2,x\n", "--format json", 0),
]
SEVERAL_RUNS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from crowdrank.cli import main

left = []
for words in json.load(sys.stdin):
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(words)
    left.append([code, out.getvalue(), err.getvalue()])
print(json.dumps([__debug__, left]))
"""


def test_without_asserts_all_is_as_with_them(tmp_path):
    lines = []
    for number, (text, words, _) in enumerate(WITH_AND_WITHOUT_ASSERTS):
        (tmp_path / f"votes{number}.csv").write_text(text)
        lines.append(["aggregate", str(tmp_path / f"votes{number}.csv"), "-q", *words.split()])
    runs = [
        subprocess.run(
            [sys.executable, *flag, "-c", SEVERAL_RUNS],
            input=json.dumps(lines),
            capture_output=True,
            text=True,
            check=True,
        )
        for flag in ([], ["-O"])
    ]
    (with_asserts, plain), (without, bare) = (json.loads(run.stdout) for run in runs)
    assert (with_asserts, without) == (True, False)
    assert plain == bare
    for (_, _, code), (returned, out, err) in zip(WITH_AND_WITHOUT_ASSERTS, bare, strict=True):
        assert returned == code, err
        assert "nan" not in out.lower()
        assert len(err.splitlines()) == (code > 0)


def test_compiling_is_said_once_where_it_lasts(capsys, monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(talk, "PATIENCE", 0.0)
    monkeypatch.setattr(talk, "_POLL_SECONDS", 0.01)
    said = "compiling once for this run and later ones ...\n"
    with talk.Talk() as spoken:
        heard, before = "", time.monotonic()
        with spoken.working("finding the consensus"):
            while said not in heard and time.monotonic() < before + 20:
                numba.njit(lambda x: x + 1)(1)
                heard += capsys.readouterr().err
        assert said in heard
        with spoken.working("checking the annotators"):
            numba.njit(lambda x: x + 1)(1)
            time.sleep(0.1)
        assert said not in capsys.readouterr().err
