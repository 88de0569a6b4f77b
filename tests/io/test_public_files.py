"""The readers on public files, counted against what the sources say; skipped where the files are not at hand."""

import os
from pathlib import Path

import numpy as np
import pytest

from crowdrank.io import read_letor, read_preflib, read_table

FOLDER = Path(os.environ.get("CROWDRANK_DATA", "missing"))
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="CROWDRANK_DATA does not name a folder of data sets"),
]


@pytest.mark.parametrize(
    ("name", "n_rows", "n_queries", "n_features", "n_missing"),
    [
        ("letor-ohsumed/S*.txt.gz", 16140, 106, 45, 0),
        ("letor-mq2008/S*.txt.gz", 15211, 784, 46, 0),
        ("letor-mq2008-agg/A*.txt.gz", 15211, 784, 25, 247320),
        ("lightgbm-rank-sample/rank.train.gz", 3005, 201, 300, 0),
        ("lightgbm-rank-sample/rank.test", 768, 50, 300, 0),
    ],
)
def test_letor(name, n_rows, n_queries, n_features, n_missing):
    parts = [read_letor(path) for path in sorted(FOLDER.glob(name))]
    assert sum(len(part) for part in parts) == n_rows
    assert sum(part.items.n_queries for part in parts) == n_queries
    assert {part.matrix.shape[1] for part in parts} == {n_features}
    assert sum(int(np.isnan(part.matrix).sum()) for part in parts) == n_missing


@pytest.mark.parametrize(
    ("name", "n_files", "n_rankings"), [("dots", 4, 3183), ("puzzle", 4, 3180), ("skate", 48, 416)]
)
def test_preflib(name, n_files, n_rankings):
    files = [path for path in (FOLDER / "preflib" / name).iterdir() if path.suffix in (".soc", ".toc")]
    assert len(files) == n_files
    assert sum(read_preflib(path).row_weight.sum() for path in files) == n_rankings


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("llmfao/crowd-comparisons.csv", (8931, 8)),
        ("llmbar-judges/judgments.csv.gz", (80826, 6)),
        ("webis-rag-crowd/study2_responses.jsonl.gz", (6920, 13)),
        ("pandalm-testset/testset-v1.json", (999, 10)),
        ("wine-quality/winequality-red.csv", (1599, 12)),
    ],
)
def test_tables(name, shape):
    assert read_table(FOLDER / name).shape == shape
