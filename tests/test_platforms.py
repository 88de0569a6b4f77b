"""macOS and Windows: what the system lacks or does otherwise there, with its functions replaced."""

from __future__ import annotations

import ast
import ctypes
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from crowdrank import wording
from crowdrank.cli import main, running
from crowdrank.cli.outputs import check_files
from crowdrank.data import files
from crowdrank.errors import ParameterError

SOURCE = Path(__file__).parents[1] / "src" / "crowdrank"
POSIX_ONLY = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}
GUARDED = {
    "fork", "forkpty", "nice", "getuid", "geteuid", "getgid", "setsid", "killpg", "sched_getaffinity", "uname",
    "mkfifo", "getloadavg", "wait", "chown", "statvfs", "sysconf", "SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1",
}  # fmt: skip


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_no_file_needs_what_only_some_systems_have(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    guards = set(re.findall(r'hasattr\(os, "(\w+)"\)', text)) | ({"sysconf"} if "AttributeError" in text else set())
    for node in ast.walk(tree):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        assert not POSIX_ONLY & set(names), f"{path.name}:{node.lineno} imports {names}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("os", "signal"):
            assert node.attr not in GUARDED - guards, f"{path.name}:{node.lineno} {node.value.id}.{node.attr}"
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
            "open",
            "fdopen",
        ):
            mode = next((one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
                         and re.fullmatch(r"[rwax]\+?t?", one.value)), None)  # fmt: skip
            assert mode is None or any(one.arg == "encoding" for one in node.keywords), f"{path.name}:{node.lineno}"


@pytest.mark.parametrize("system", ["here", "windows"])
def test_a_lock_keeps_a_second_writer_out(tmp_path, monkeypatch, system):
    if system == "windows":
        held: set[tuple[int, int]] = set()

        def locking(number: int, mode: int, size: int) -> None:
            key = os.fstat(number).st_ino, os.lseek(number, 0, os.SEEK_CUR)
            if key in held:
                raise OSError(13, "Permission denied")
            held.add(key)

        monkeypatch.setitem(sys.modules, "fcntl", None)
        monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    with (tmp_path / "lock").open("a+b") as first, (tmp_path / "lock").open("a+b") as second:
        assert files.lock_file(first)
        assert not files.lock_file(second)
        assert first.tell() == second.tell() == 0


def test_no_signal_is_sent_to_ask_whether_a_process_is_there(monkeypatch):
    kernel = SimpleNamespace(
        OpenProcess=lambda access, inherit, number: number == 1, CloseHandle=lambda handle: 1, GetLastError=lambda: 87
    )
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setattr(files.os, "kill", lambda *_: pytest.fail("signal 0 is Ctrl+C on Windows"))
    monkeypatch.setattr(files.os, "name", "nt")
    assert files._alive(1)
    assert not files._alive(2)


def test_memory_that_is_free_is_found_without_proc(monkeypatch):
    def answer(status) -> int:
        assert status[0] == 64
        status[1], status[2] = 16 << 30, 5 << 30
        return 1

    def physical(name: str) -> int:
        if name == "SC_AVPHYS_PAGES":
            raise ValueError(name)
        return 4096 if name == "SC_PAGE_SIZE" else 1 << 22

    monkeypatch.setattr(files, "Path", lambda _: SimpleNamespace(read_text=lambda: (_ for _ in ()).throw(OSError())))
    monkeypatch.setattr(files.os, "sysconf", physical)
    assert files.available_memory() == 8 << 30
    monkeypatch.delattr(files.os, "sysconf")
    assert files.available_memory() == 4 << 30
    kernel = SimpleNamespace(GlobalMemoryStatusEx=answer)
    monkeypatch.setattr(files.ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    assert files.available_memory() == 5 << 30


def test_hints_can_be_pasted_into_either_shell_of_windows(monkeypatch):
    monkeypatch.setattr(wording, "WINDOWS", True)
    words = ["crowdrank", "aggregate", r"C:\my votes\a.csv", r"C:\b.csv", "--fail-if", "quality<0.6"]
    text = r'crowdrank aggregate "C:\my votes\a.csv" C:\b.csv --fail-if "quality<0.6"'
    assert wording.shell_words(words) == text


def test_a_file_in_use_is_not_taken_for_a_reader_that_left(monkeypatch, capsys):
    monkeypatch.setattr(running, "_BROKEN_PIPES", (109, 232))
    assert running._explain(OSError("the process cannot access the file (os error 32)")) == running.MISTAKE
    assert "cannot access the file" in capsys.readouterr().err


def test_names_that_differ_in_case_are_one_file_where_the_system_says_so(tmp_path, monkeypatch):
    for name in ("votes.csv", "Votes.csv"):
        (tmp_path / name).write_text("item,grade\nx,1\n", encoding="utf-8")
    check_files([str(tmp_path / "votes.csv")], [str(tmp_path / "Votes.csv")])
    monkeypatch.setattr(os.path, "samefile", lambda one, other: str(one).lower() == str(other).lower())
    with pytest.raises(ParameterError, match="would be overwritten"):
        check_files([str(tmp_path / "votes.csv")], [str(tmp_path / "Votes.csv")])


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii"])
def test_a_console_of_an_old_code_page_shows_the_demo(monkeypatch, encoding):
    console = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    monkeypatch.setattr(sys, "stdout", console)
    assert main(["demo"]) == 0
    console.flush()
    assert b"larch-pro" in console.buffer.getvalue()


def test_packing_again_leaves_files_that_are_being_read(tmp_path, monkeypatch):
    import crowdrank as cr

    for name, levels in (("old", 5), ("new", 4)):
        rows = "".join(f"w{n % 3},i{n % 4},{n % levels}\n" for n in range(12))
        (tmp_path / f"{name}.csv").write_text(f"annotator,item,grade\n{rows}", encoding="utf-8")
    cr.pack(tmp_path / "old.csv", tmp_path / "packed")
    before = set((tmp_path / "packed").rglob("*.parquet"))
    monkeypatch.setattr(Path, "unlink", _refuse(before, Path.unlink))
    cr.pack(tmp_path / "new.csv", tmp_path / "packed")
    assert before <= set((tmp_path / "packed").rglob("*.parquet"))
    again = cr.aggregate(cr.scan_judgments(tmp_path / "packed"), "mean_grade")
    assert again.order() == cr.aggregate(tmp_path / "new.csv", "mean_grade").order()


def _refuse(paths, unlink):
    def refuse(self, missing_ok=False):
        if self in paths:
            raise PermissionError(13, "being used by another process", str(self))
        unlink(self, missing_ok=missing_ok)

    return refuse


def test_the_wheel_is_pure(tmp_path):
    text = (SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert "ext-modules" not in text
    assert not [path for path in SOURCE.rglob("*") if path.suffix in (".c", ".pyx", ".so", ".pyd")]
    assert subprocess.run([sys.executable, "-c", "import crowdrank"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("call", "extra"),
    [
        ("cr.plot(cr.aggregate(votes))", "plots"),
        ("cr.rankers.ListNet().fit([[1.0], [0.0]], [1, 0], qid=[0, 0])", "rankers"),
        ("cr.rankers.LambdaMART().fit([[1.0], [0.0]], [1, 0], qid=[0, 0])", "rankers"),
        ("cr.train(votes, features, ranker='list_net', aggregator='mean_grade')", "rankers"),
        ("cr.features.texts({'item': list('abcdef'), 'content': ['one two', 'two'] * 3})", "rankers"),
        ("cr.aggregate(votes); cr.write_report(cr.aggregate(votes), votes, 'page.html')", None),
    ],
)
def test_without_the_extras_a_sentence_names_the_one_that_is_missing(tmp_path, call, extra):
    program = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "for name in ('sklearn', 'lightgbm', 'matplotlib', 'joblib'): sys.modules[name] = None\n"
        "import crowdrank as cr\n"
        "votes = cr.Grades.from_frame({'item': list('xyxyxy'), 'annotator': list('aabbcc'), 'grade': [3, 1] * 3})\n"
        "features = {'item': ['x', 'y'], 'length': [1.0, 2.0]}\n"
        f"try:\n    {call}\nexcept cr.errors.MissingExtraError as error:\n    print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert ran.returncode == 0, ran.stderr
    if extra is None:
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "Not drawn here: pictures need" in page
        assert "crowdrank[plots]" in page
    else:
        assert re.fullmatch(
            rf"this needs the package [\w-]+; install it with pip install 'crowdrank\[{extra}\]'", ran.stdout.strip()
        )


def test_the_conda_recipe_needs_what_the_wheel_needs():
    import tomllib

    root = SOURCE.parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (root / "conda/meta.yaml").read_text(encoding="utf-8")
    run = recipe.split("  run:\n")[1].split("  run_constrained:")[0]
    needed = {line.strip("- \n").replace(" ", "") for line in run.strip().splitlines()} - {"python>=3.11"}
    assert needed == set(project["dependencies"])
    version = re.search(r'__version__ = "(.+)"', (SOURCE / "__init__.py").read_text(encoding="utf-8"))[1]
    assert f'version = "{version}"' in recipe
    for workflow in (root / ".github/workflows").glob("*.yml"):
        assert "3.14" in workflow.read_text(encoding="utf-8")
