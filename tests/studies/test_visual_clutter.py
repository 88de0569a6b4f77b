"""The study of visual clutter: a quick run, how pages are divided, and what the rankers are given."""

import io
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.features.drawn_pages import write_pages

from crowdrank.cli import main
from crowdrank.errors import DataWarning
from crowdrank.features.page_rendering import rendering_problem
from crowdrank_studies import Work, clutter_pages
from crowdrank_studies.clutter_pages import (
    FIRST_SETS,
    MEASURES,
    SETS,
    SPLITS,
    Pages,
    _measure_folder,
    _Measured,
    divide_pages,
    splits_of,
)
from crowdrank_studies.ltrma.methods import BORDA, ML, PRINTED_D, PRINTED_ML, D
from crowdrank_studies.visual_clutter import ALL, RANDOM


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
    marked = frame.filter(pl.col("place") == "with and without missing_css")
    assert set(marked["pages"]) == {"all 251", "the 152 without"}
    assert set(marked["features"]) == set(SETS)
    said = [note for note in first.outcome.notes if "unstable" in note or "missing_css" in note]
    assert "99 of 251 pages link to style sheets that are missing (missing_css). Tau" in said[0]
    assert "(unstable), so no figure without them can be given" in said[1]


@pytest.fixture(scope="module")
def pages():
    """120 pages of 30 sources whose clutter follows from their texts."""
    rng = np.random.default_rng(3)
    names = sorted({*SETS["rendered"], *SETS["source"]})
    features = {name: rng.normal(size=120) for name in names}
    clutter = {name: features["dom_texts"] + rng.normal(0, 0.1, 120) for name in MEASURES}
    source = tuple(f"from{number % 30}" for number in range(120))
    kind = tuple("documentation" if number % 4 == 0 else "template" for number in range(120))
    marks = {"missing_css": np.arange(120) % 5 == 0, "unstable": np.arange(120) < 20}
    return Pages(tuple(f"page{number:03d}" for number in range(120)), source, kind, features, clutter, marks)


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
    if split.startswith("without "):
        assert not pages.marks.get(split.removeprefix("without "), np.zeros(120, bool))[[*train, *test]].any()


def test_pages_that_are_marked_are_left_out_where_enough_remain(pages):
    assert splits_of(pages, range(2)) == list(SPLITS)
    few = replace(
        pages, marks={"missing_css": np.zeros(120, bool), "unstable": np.arange(120) < 101}, kind=("page",) * 120
    )
    assert splits_of(few, range(2)) == ["pages", "sources"]


@pytest.mark.slow
def test_pages_of_a_folder_are_measured_and_marked(tmp_path):
    if rendering_problem() is not None:
        pytest.skip(rendering_problem())
    pytest.importorskip("skimage")
    write_pages(tmp_path, [4, 30])
    page = tmp_path / "site00" / "index.html"
    script = "<script>setInterval(() => document.body.append(document.createElement('hr')), 40)</script>"
    sheets = "<link rel=stylesheet href=no.css><style>hr { height: 900px }</style>"
    page.write_text(page.read_text().replace("<body>", f"<head>{sheets}{script}</head><body>"))
    (tmp_path / "blank.html").write_text("<p style='color: white'>unseen</p>")
    with pytest.warns(DataWarning, match="blank.html"):
        made = _measure_folder(tmp_path, Work())
    assert made.ids == ("site00/index.html", "site01/index.html")
    assert {mark: found.tolist() for mark, found in made.marks.items()} == {
        "missing_css": [True, False], "unstable": [True, False],
    }  # fmt: skip
    assert set(made.features) >= {
        *SETS["rendered"],
        *SETS["source"],
        *(name for each in FIRST_SETS.values() for name in each),
    }
    assert made.features["dom_texts"] == pytest.approx(made.features["src_texts"])
    assert (np.array(list(made.measures.values()))[:, 1] < np.array(list(made.measures.values()))[:, 0]).all()


def test_a_folder_of_pages_is_reported_with_and_without_marked_ones(monkeypatch, capsys):
    rng, n = np.random.default_rng(5), 24
    names = {*SETS["rendered"], *SETS["source"], *(name for each in FIRST_SETS.values() for name in each)}
    features = {name: rng.normal(size=n) for name in sorted(names)}
    measures = {name: features["dom_texts"] + rng.normal(0, 0.1, n) for name in MEASURES.values()}
    marks = {"missing_css": np.arange(n) < 3, "unstable": np.arange(n) == 5}
    made = _Measured(tuple(f"s{row:02d}/index.html" for row in range(n)), features, measures, marks)
    monkeypatch.setattr(clutter_pages, "_measure_folder", lambda folder, work: made)
    assert main(["study", "visual-clutter", "--pages", "sites", "--quick", "--format", "csv"]) == 0
    heard = capsys.readouterr()
    frame = pl.read_csv(io.StringIO(heard.out), infer_schema_length=None)
    for mark, n_marked in (("missing_css", 3), ("unstable", 1)):
        found = frame.filter(pl.col("place") == f"with and without {mark}")
        assert set(found["pages"]) == {"all 24", f"the {n - n_marked} without"}
        assert f"{n_marked} of 24 pages" in heard.err
    few = made._replace(ids=made.ids[:19])
    monkeypatch.setattr(clutter_pages, "_measure_folder", lambda folder, work: few)
    assert main(["study", "visual-clutter", "--pages", "sites"]) == 2
    assert "sites: 19 pages can be compared" in capsys.readouterr().err


def test_pages_go_with_the_study_of_pages_only(tmp_path, capsys):
    assert main(["study", "crowdagg-trec", "--pages", str(tmp_path)]) == 2
    assert "--pages goes with visual-clutter" in capsys.readouterr().err


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
