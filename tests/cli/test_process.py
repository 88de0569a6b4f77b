"""The command line as a process of its own: what it imports, pipes that close, terminals, signals."""

import os
import pty
import subprocess
import sys

from crowdrank.demo import FILE

COMMAND = [sys.executable, "-m", "crowdrank"]


def test_help_imports_no_table_or_number_library():
    code = (
        "import sys; from crowdrank.cli import main; main(['--help'])\n"
        "heavy = {'polars', 'numpy', 'numba', 'scipy', 'sklearn', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: crowdrank" in done.stdout


def test_a_reader_that_goes_away_is_no_news(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("item,grade\n" + "".join(f"item-{number},{number % 5}\n" for number in range(30_000)))
    with subprocess.Popen(
        [*COMMAND, "aggregate", str(path), "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"item,score,rank\n"
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_full_disk_is_said_in_one_line():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, "methods"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "crowdrank: standard output cannot be used: no space left on device\n"


def test_a_terminal_gets_a_table_of_the_best_items():
    shown = in_terminal("aggregate", str(FILE))
    assert "95 % interval" in shown
    assert "and 222 more items; --out FILE writes all of them" in shown
    assert "●" in shown
    assert "\x1b[" in shown
    assert "std_error" not in shown


def test_a_terminal_gets_data_when_it_asks_for_them():
    shown = in_terminal("aggregate", str(FILE), "--across-queries", "--format", "csv", "--quiet")
    assert shown.startswith("item,score,rank,std_error")
    assert "a terminal cannot show parquet" in in_terminal("aggregate", str(FILE), "--format", "parquet", "--quiet")


def in_terminal(*words):
    """What a command leaves on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen([*COMMAND, *words], stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                block = os.read(ours, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not block:
                break
            shown += block
        assert process.wait() in (0, 2)
    os.close(ours)
    return shown.decode()


def test_features_by_several_processes_leave_nothing_behind(tmp_path):
    rows = "".join(f"t{number},{'tea ' * number}.\n" for number in range(401))
    (tmp_path / "answers.csv").write_text(f"item,text\n{rows}")
    wanted = [*COMMAND, "features", "answers.csv", "--of", "text", "--words", "0", "--quiet", "--jobs"]
    tables = []
    for jobs in ("1", "2"):
        done = subprocess.run([*wanted, jobs], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        tables.append(done.stdout)
    assert tables[0] == tables[1]
    assert tables[0].count("\n") == 402
