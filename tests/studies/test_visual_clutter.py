"""The study of visual clutter: a quick run, how pages are divided, and what the rankers are given."""

import numpy as np
import polars as pl
import pytest

from crowdrank.studies.ltrma.methods import BORDA, ML, PRINTED_D, PRINTED_ML, D
from crowdrank.studies.visual_clutter import ALL, MEASURES, RANDOM, SETS, SPLITS, Pages, divide_pages


@pytest.mark.data
def test_measures_stand_above_what_pages_tell(ran):
    first = ran("visual-clutter")
    assert first.outcome.verdicts[0].verdict == "not decidable"
    frame = first.outcome.frame()
    figure = frame.filter(pl.col("place") == "figure 4")
    assert set(figure["measure"]) == {f"nDCG@{k}" for k in range(1, 6)}
    assert set(figure["method"]) == {BORDA, PRINTED_D, PRINTED_ML, D, ML, ALL, RANDOM, *MEASURES}
    mean = dict(figure.filter(pl.col("measure") == "nDCG@3").select("method", "ours").iter_rows())
    assert mean[RANDOM] < mean[BORDA] < min(mean[name] for name in MEASURES)


@pytest.fixture(scope="module")
def pages():
    """120 pages of 30 sources whose clutter follows from their texts."""
    rng = np.random.default_rng(3)
    names = sorted({*SETS["rendered"], *SETS["source"]})
    features = {name: rng.normal(size=120) for name in names}
    clutter = {name: features["dom_texts"] + rng.normal(0, 0.1, 120) for name in MEASURES}
    source = tuple(f"from{number % 30}" for number in range(120))
    kind = tuple("documentation" if number % 4 == 0 else "template" for number in range(120))
    return Pages(tuple(f"page{number:03d}" for number in range(120)), source, kind, features, clutter)


@pytest.mark.parametrize("split", SPLITS)
def test_pages_are_divided(pages, split):
    train, test = divide_pages(pages, split, 0)
    assert len(train) % 10 == len(test) % 10 == 0
    assert min(len(train), len(test)) >= 40
    assert set(train.tolist()).isdisjoint(test.tolist())
    again, other = divide_pages(pages, split, 0)[0], divide_pages(pages, split, 1)[0]
    assert train.tolist() == again.tolist() != other.tolist()
    if split == "sources":
        assert {pages.source[row] for row in train}.isdisjoint(pages.source[row] for row in test)
    if split == "without documentation":
        assert {pages.kind[row] for row in (*train, *test)} == {"template"}


def test_annotators_rank_the_least_cluttered_page_first(pages):
    train, test = divide_pages(pages, "pages", 0)
    task = pages.task(SETS["rendered"], train, test, ["FC", "SM"])
    said = task.rankings.frame().filter(pl.col("annotator") == "FC", pl.col("query") == "s00").sort("rank")
    place = {page: row for row, page in enumerate(pages.ids)}
    clutter = [pages.clutter["FC"][place[page]] for page in said["item"]]
    assert len(clutter) == 10
    assert clutter == sorted(clutter)
    assert task.rankings.n_annotators == 2
    # features are standardised by the training pages
    assert task.train.matrix.mean(axis=0) == pytest.approx(np.zeros(8), abs=1e-12)
    assert task.train.matrix.std(axis=0) == pytest.approx(np.ones(8))
    assert (task.truth == pages.calm[pages.rows(task.train)]).all()


def test_grades_are_sixths_with_the_calmest_first(pages):
    assert np.bincount(pages.grade.astype(int)).tolist() == [20] * 6
    assert pages.grade[np.argmax(pages.calm)] == 5
