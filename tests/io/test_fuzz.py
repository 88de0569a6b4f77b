"""A few hundred changed files of every kind: read, or refused in one sentence; benchmarks/fuzz.py tries many more."""

import pytest
from benchmarks.fuzz import run


@pytest.mark.parametrize("seed", [0, 1])
def test_changed_files_are_read_or_refused(seed):
    counts = run(150, seed)
    assert counts["files"] == 150
    assert counts["read"] > 50
    assert counts["refused"] > 50
