"""Where numba keeps what it compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import crowdrank.kernels as kernels

PROGRAM = """
import os
os.access = lambda *_, **__: False
import crowdrank as cr
votes = {"left": ["a", "b"], "right": ["b", "c"], "winner": ["left", "left"], "annotator": ["x", "y"]}
cr.aggregate(votes, "bradley_terry")
import numba
assert numba.config.CACHE_DIR == os.environ["NUMBA_CACHE_DIR"]
kept = [name for _, _, files in os.walk(numba.config.CACHE_DIR) for name in files]
print(numba.config.CACHE_DIR, any(name.endswith(".nbi") for name in kept))
"""


def test_a_fit_works_where_nothing_can_be_written_to_and_leaves_nothing():
    settings = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env=settings)
    assert done.returncode == 0, done.stderr
    folder, is_used = done.stdout.split()
    assert is_used == "True"
    assert not Path(folder).exists()


@pytest.mark.parametrize("given", ["NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME"])
def test_a_place_that_there_is_stays(monkeypatch, tmp_path, given):
    for name in ("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(given, str(tmp_path / "nothing" / "here"))
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "gone" / "kernels.py"))
    assert kernels.keep_compiled_code() is None
