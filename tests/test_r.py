"""The R on the page about other languages runs, where R and reticulate are, and prints what the page says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crowdrank import Grades
from crowdrank.errors import JudgmentError

PAGE = Path(__file__).parents[1] / "docs" / "integrations.md"


def run(program, folder):
    """What R prints, with this Python and its commands."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    if shutil.which("crowdrank", path=places) is None:
        pytest.skip("the crowdrank command is not installed beside this Python")
    environment = {**os.environ, "RETICULATE_PYTHON": sys.executable, "PATH": places}
    words = ["Rscript", "-e", program]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_the_r_of_the_page_prints_what_it_says(tmp_path):
    if run('quit(status = !requireNamespace("reticulate", quietly = TRUE))', tmp_path).returncode:
        pytest.skip("the R package reticulate is not installed")
    (program,) = re.findall(r"^```r\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr
    expected = [line.removeprefix("#> ") for line in program.splitlines() if line.startswith("#> ")]
    assert done.stdout.splitlines() == expected


def test_a_missing_number_of_r_is_no_grade():
    votes = {"item": ["x", "y"], "annotator": ["ann", "NA"], "grade": [3, -2147483648]}
    with pytest.raises(JudgmentError, match="R's missing number, in row 2"):
        Grades.from_frame(votes)
    with pytest.warns(UserWarning, match="left out 1 of 2 rows"):
        assert len(Grades.from_frame(votes, invalid="drop")) == 1
