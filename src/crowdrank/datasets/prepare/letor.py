"""Partitions and fold tables of LETOR sets."""

from __future__ import annotations

import json

from ...errors import JudgmentError
from .work import Work

N_PARTS = 5


def from_folds(work: Work) -> None:
    """Write each fold's test file as a partition: the test part of fold 1 is the fifth, that of fold 2 the first."""
    seen: dict[str, int] = {}
    for fold in range(1, N_PARTS + 1):
        part = (fold + 3) % N_PARTS + 1
        names = [f"Fold{fold}/{name}" for name in ("test.txt", "testset.txt", "testset.TXT")]
        inner = [f"{work.terms.source.path}/{name}" for name in names]
        content = work.text(*names, *inner)
        for query in {line.split()[1] for line in content.splitlines() if line.strip()}:
            if seen.setdefault(query, part) != part:
                raise JudgmentError(
                    f"the test files of two folds share {query}; these are not the folds of one LETOR set"
                )
        work.write(f"S{part}.txt", content)
    _write_folds(work, "S")


def from_partitions(work: Work) -> None:
    """Take the five partitions as they are and add the table of folds."""
    for file, origin in work.terms.files.items():
        if origin:
            work.write(file, work.read(origin))
    _write_folds(work, next(iter(work.terms.files))[0])


def _write_folds(work: Work, letter: str) -> None:
    """Three partitions in a row to train on, the next for tuning, the one after it to test, and round again."""
    folds = {}
    for fold in range(N_PARTS):
        parts = [f"{letter}{(fold + step) % N_PARTS + 1}" for step in range(N_PARTS)]
        folds[f"Fold{fold + 1}"] = {"train": parts[:3], "vali": parts[3:4], "test": parts[4:]}
    work.write("folds.json", json.dumps(folds, indent=1))
