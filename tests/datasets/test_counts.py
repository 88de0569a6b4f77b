"""The counts that are published for the data sets, for everything that loading returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crowdrank.datasets import Dataset, names

Load = Callable[[str], Dataset]

# name -> (kind, judgments, items, queries, annotators), or None without judgments; (form, size) of the truth; features
COUNTS: dict[str, tuple[tuple[Any, ...] | None, tuple[str, int] | None, tuple[int, int] | None]] = {
    "letor-ohsumed": (None, ("grade", 16140), (16140, 45)),
    "letor2-ohsumed": (None, ("grade", 16140), (16140, 25)),
    "letor-mq2008": (None, ("grade", 15211), (15211, 46)),
    "letor-mq2007-agg": (("ranking", 35341, 69623, 1692, 21), ("grade", 69623), None),
    "letor-mq2008-agg": (("ranking", 17512, 15211, 784, 25), ("grade", 15211), None),
    "lightgbm-rank-sample": (None, ("grade", 3005 + 768), (3005 + 768, 300)),
    "wine-quality/red": (None, ("grade", 1599), (1599, 11)),
    "wine-quality/white": (None, ("grade", 4898), (4898, 11)),
    "pendigits": (None, ("grade", 7494 + 3498), (7494 + 3498, 16)),
    "trec-rf10-labels-full": (("grade", 88385, 19033, 100, 762), ("grade", 3275), None),
    "trec-rf10-labels-full/all": (("grade", 98453, 20232, 100, 766), ("grade", 4460), None),
    "trec-rf10-crowd-gold": (("grade", 19699, 3275, 100, 722), ("grade", 3275), None),
    "trec2011-stage2-labels": (("grade", 88385, 19033, 1, 762), ("grade", 2275), None),
    "trec2011-crowd": (("grade", 17395 + 41081, 3387, 46, 445 + 511), ("grade", 395), None),
    "trec2011-crowd/own": (("grade", 17395, 2165, 20, 445), ("grade", 395), None),
    "trec2011-crowd/others": (("grade", 41081, 3387, 46, 511), ("grade", 395), None),
    "trec2011-crowd-uc3m": (("grade", 2190, 2175, 20, 29), ("grade", 395), None),
    "trec2011-crowd-uc3m/run2": (("grade", 2655, 2175, 20, 86), ("grade", 395), None),
    "trec2011-crowd-uc3m/run3": (("grade", 2240, 2175, 20, 33), ("grade", 395), None),
    "web-search-relevance5": (("grade", 15567, 2665, 1, 177), ("grade", 2653), None),
    "adult-content2": (("grade", 92721, 11040, 1, 825), ("grade", 1517), None),
    "peer-grading": (("grade", 9204, 1341, 19, 219), ("grade", 1341), None),
    "peer-grading/self": (("grade", 3236, 1321, 19, 218), ("grade", 1341), None),
    "crowd-truth-inference/emotion": (("grade", 7000, 700, 1, 38), ("grade", 700), None),
    "crowd-truth-inference/dog": (("grade", 8070, 807, 1, 109), ("grade", 807), None),
    "crowd-truth-inference/face-sentiment": (("grade", 5242, 584, 1, 27), ("grade", 584), None),
    "crowd-truth-inference/duck": (("grade", 4212, 108, 1, 39), ("grade", 108), None),
    "crowd-truth-inference/product": (("grade", 24945, 8315, 1, 176), ("grade", 8315), None),
    "mirex2005-crowd": (("preference", 2810 - 5, 118, 11, 79), ("rank", 118), None),
    "ukpconvarg1-crowd": (("preference", 84445, 1052, 32, 3815), ("grade", 1052), None),
    "ukpconvarg1-crowd/pairs": (("preference", 84445, 1052, 32, 3815), ("pairs", 16081), None),
    "llmfao": (("preference", 8931, 750, 13, 124), None, None),
    "llmfao/judges": (("preference", 2 * 3236, 1133, 19, 2), None, None),
    "llmfao/all": (("preference", 8931 + 2 * 3236, 1133, 19, 126), None, None),
    "pandalm-testset": (("preference", 2997 + 2 * 999 - 25, 779, 170, 5), ("pairs", 999), None),
    "pandalm-testset/humans": (("preference", 2997, 779, 170, 3), ("pairs", 999), None),
    "pandalm-testset/judges": (("preference", 2 * 999 - 25, 779, 170, 2), ("pairs", 999), None),
    "llmbar-judges": (("preference", 80826 - 348, 2 * 1200, 1200, 65), ("pairs", 1200), None),
    "webis-rag-crowd": (("preference", 6920, 390, 65, 420), ("grade", 390), None),
    "webis-rag-crowd/correctness_topical": (("preference", 6920, 390, 65, 420), ("grade", 390), None),
    "webis-rag-crowd/coherence_logical": (("preference", 6920, 390, 65, 420), ("grade", 390), None),
    "webis-rag-crowd/coherence_stylistic": (("preference", 6920, 390, 65, 420), ("grade", 390), None),
    "webis-rag-crowd/coverage_broad": (("preference", 6920, 390, 65, 420), ("grade", 390), None),
    "webis-rag-crowd/coverage_deep": (("preference", 6920, 390, 65, 420), ("grade", 390), None),
    "webis-rag-crowd/consistency_internal": (("preference", 6920, 390, 65, 420), ("grade", 390), None),
    "webis-rag-crowd/judges": (("preference", 2359 - 1, 327, 61, 2), ("grade", 327), None),
    "webis-rag-crowd/pointwise": (("grade", 410, 410, 29, 15), None, None),
    "wmt13-fr-en-rankings": (("ranking", 9996, 20124, 2278, 218), None, None),
    "wmt13-fr-en-rankings/test": (("ranking", 200, 944, 184, 47), None, None),
    "preflib/dots": (("ranking", 96, 16, 4, 0), ("rank", 16), None),
    "preflib/puzzle": (("ranking", 96, 16, 4, 0), ("rank", 16), None),
    "preflib/skate": (("ranking", 414, 1119, 48, 0), None, None),
    "visual-clutter": (("ranking", 3, 251, 1, 3), None, (251, 18)),
    "visual-clutter-first-screen": (("ranking", 3, 119, 1, 3), None, (119, 17)),
    "neural-codec-mushra": (("grade", 1176, 112, 16, 21), None, (112, 76)),
    "visual-clutter/calista": (("preference", 8267 - 219, 100, 1, 276), ("grade", 100), None),
}


def test_every_name_is_counted() -> None:
    assert set(COUNTS) == set(names())


@pytest.mark.data
@pytest.mark.parametrize("name", COUNTS)
def test_counts(loaded: Load, name: str) -> None:
    judgments, truth, features = COUNTS[name]
    dataset = loaded(name)
    found = dataset.judgments
    shape = found and (found.kind, len(found), found.n_items, found.n_queries, found.n_annotators)
    assert shape == judgments
    assert (dataset.truth and (dataset.truth.form, len(dataset.truth))) == truth
    assert (dataset.features and dataset.features.matrix.shape) == features
    assert dataset.name == name
    assert dataset.source
    assert dataset.licence
    assert dataset.description


GRADES = {
    "letor-ohsumed": [11303, 2585, 2252],
    "letor2-ohsumed": [11303, 2585, 2252],
    "letor-mq2008": [12279, 2001, 931],
    "letor-mq2008-agg": [12279, 2001, 931],
    "letor-mq2007-agg": [51632, 14128, 3863],
    # two items with gold have no label but broken link
    "trec-rf10-labels-full": [1501 - 1, 863, 913 - 1],
    "trec-rf10-labels-full/all": [1501, 863, 913, 1183],
    "trec-rf10-crowd-gold": [1500, 1775],
    "trec2011-stage2-labels": [1000, 1275],
    "trec2011-crowd": [128, 135, 132],
}


@pytest.mark.data
@pytest.mark.parametrize("name", GRADES)
def test_grades_of_the_truth(loaded: Load, name: str) -> None:
    truth = loaded(name).truth
    assert np.bincount(truth.grade.astype(int)).tolist() == GRADES[name]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("letor-ohsumed", [21, 21, 21, 21, 22]),
        ("letor2-ohsumed", [21, 21, 21, 21, 22]),
        ("letor-mq2008", [157, 157, 157, 157, 156]),
        ("letor-mq2008-agg", [157, 157, 157, 157, 156]),
    ],
)
def test_folds_of_five_partitions(loaded: Load, name: str, sizes: list[int]) -> None:
    folds = loaded(name).folds
    assert [fold.name for fold in folds] == [f"Fold{number}" for number in range(1, 6)]
    assert [len(fold.test) for fold in folds] == [sizes[-1], *sizes[:-1]]
    for fold, following in zip(folds, [*folds[1:], folds[0]], strict=True):
        assert following.vali == fold.test
        assert len({*fold.train, *fold.vali, *fold.test}) == sum(sizes) == len(fold.train + fold.vali + fold.test)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "train", "test"), [("lightgbm-rank-sample", 201, 50), ("pendigits", 1, 1)], ids=["lightgbm", "pendigits"]
)
def test_folds_of_a_source_with_two_files(loaded: Load, name: str, train: int, test: int) -> None:
    dataset = loaded(name)
    (fold,) = dataset.folds
    assert (len(fold.train), len(fold.vali), len(fold.test)) == (train, 0, test)
    assert set(dataset.features.items.queries) == {*fold.train, *fold.test}
