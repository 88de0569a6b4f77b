"""Running the command line inside the test's own process."""

import io
import shlex
import sys
from dataclasses import dataclass

import pytest

from crowdrank.cli import main, talk
from crowdrank.demo import FILE


@dataclass(frozen=True)
class Ran:
    """What a command left: its exit code, data and talk."""

    code: int
    out: str
    err: str

    @property
    def lines(self):
        """Lines on standard error."""
        return self.err.splitlines()


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command, given as words or as one line, in an empty folder; ``stdin`` is what it can read there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CROWDRANK_TRACEBACK", raising=False)
    # on a busy machine, or while a kernel is compiled, a step may outlast the patience for silence
    monkeypatch.setattr(talk, "PATIENCE", 600.0)

    def command(*words, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(shlex.split(words[0]) if len(words) == 1 else [str(word) for word in words])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return command


@pytest.fixture
def votes(tmp_path):
    """The preferences of the demo, as a file."""
    path = tmp_path / "votes.csv"
    path.write_bytes(FILE.read_bytes())
    return path


@pytest.fixture
def grades(tmp_path):
    """Grades of four items by three annotators, and the truth, as files."""
    rows = [
        (a, item, grade + (a == "bob" and item == "w"))
        for a in ("ann", "bob", "cy")
        for grade, item in enumerate("wxyz")
    ]
    path = tmp_path / "grades.csv"
    path.write_text("annotator,item,grade\n" + "".join(f"{a},{item},{grade}\n" for a, item, grade in rows))
    (tmp_path / "truth.csv").write_text("item,grade\nw,0\nx,1\ny,2\nz,3\n")
    return path
