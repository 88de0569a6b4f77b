"""Both sides of every threshold beyond which something is sampled, binned or computed in another way.

docs/thresholds.md lists them. Each is set so low here that small judgments lie beyond it, and what comes out is
compared with what comes out below it: equal where only the way differs, and finite with the same items where a sample
is taken.
"""

import functools
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.test_docs import program

import crowdrank as cr
from crowdrank.data.parted import row_numbers_of
from crowdrank.io.letor import read_letor
from crowdrank.metrics.agreement import krippendorff_alpha

ROOT = Path(__file__).parent.parent
PROMISED_ELSEWHERE = {
    "data.intake:LONG": "equal", "data.preferences:LONG": "equal", "standard_errors:COVARIANCE_ITEMS": "sample",
    "models.latent_score.outcomes:COVARIANCE_ITEMS": "sample",
}  # fmt: skip
"""Files that use the threshold of another one."""

TRIED_ELSEWHERE = {
    "data.consensus:COVARIANCE_ITEMS": "test_thresholds.py", "data.grades:MAX_BINS": "data/test_bounds.py",
    "data.grades:MAX_LEVELS": "data/test_judgments.py", "io.letor:_MOST_CELLS": "io/test_letor.py",
    "metrics.significance:_FEW_DISCORDANT": "metrics/test_significance.py",
    "rankers.estimator:MANY_QUERIES": "rankers/test_auto.py", "resampling:MOST_RESAMPLES": "io/test_odd_types.py",
}  # fmt: skip
"""Thresholds whose tests do not name them."""


@functools.cache
def rows(kind):
    """Judgments of three queries by nine annotators, as a frame."""
    rng = np.random.default_rng(11)
    n = 360
    who = rng.integers(0, 9, n)
    query, one = rng.integers(0, 3, n), rng.integers(0, 12, n)
    other = (one + rng.integers(1, 12, n)) % 12
    worth = rng.normal(size=12)
    shared = {"query": [f"q{code}" for code in query], "annotator": [f"w{code}" for code in who]}
    if kind == "grade":
        grade = np.clip(np.round(1.5 + worth[one] + rng.normal(size=n)), 0, 4).astype(int)
        frame = pl.DataFrame({**shared, "item": [f"i{code}" for code in one], "grade": grade})
        return frame.unique(["query", "annotator", "item"], maintain_order=True)
    if kind == "preference":
        won = worth[one] - worth[other] + rng.logistic(size=n) > 0
        names = {"left": [f"i{code}" for code in one], "right": [f"i{code}" for code in other]}
        winner = np.where(rng.random(n) < 0.1, "tie", np.where(won, "left", "right"))
        return pl.DataFrame({**shared, **names, "winner": winner})
    lists = [
        {"query": f"q{q}", "annotator": f"w{a}", "item": f"i{item}", "rank": rank}
        for q in range(3)
        for a in range(9)
        for rank, item in enumerate(np.argsort(-(worth + rng.gumbel(size=12)))[:5], 1)
    ]
    return pl.DataFrame(lists)


def judged(kind):
    """The same, read anew, since reading has thresholds too."""
    return {"grade": cr.Grades, "preference": cr.Preferences, "ranking": cr.Rankings}[kind].from_frame(rows(kind))


def read():
    """Judgments read, with ids in words and in numbers."""
    numbered = rows("grade").with_columns(pl.col("query", "item", "annotator").str.slice(1).cast(pl.Int64))
    tables = [judged(kind).frame() for kind in ("grade", "preference", "ranking")]
    return [*tables, cr.Grades.from_frame(numbered).frame()]


def fitted(kind, *methods):
    """Consensus, intervals and quality of methods."""
    found = []
    for method in methods:
        consensus = cr.aggregate(judged(kind), method)
        found.append(consensus.frame())
        if consensus.uncertainty is not None:
            found.append(consensus.intervals().drop("basis"))
        found.append(consensus.quality.frame().sort("annotator").select("annotator", "quality"))
    return found


BATTERIES = {
    "read": read,
    "grades": lambda: fitted("grade", "dawid_skene", "mean_grade", "latent_score", "mace"),
    "auto": lambda: [cr.aggregate(judged("grade"), want="grade").frame()],
    "preferences": lambda: fitted("preference", "bradley_terry", "crowd_bt", "latent_score", "multinomial_preference"),
    "rankings": lambda: fitted("ranking", "plackett_luce", "mallows", "borda", "latent_score"),
    "diagnose": lambda: [cr.diagnose(judged(kind)).annotators() for kind in ("grade", "preference", "ranking")],
    "bootstrap": lambda: [cr.aggregate(judged("preference"), "borda", bootstrap=20).intervals()],
    "compare": lambda: [cr.compare_methods(judged("preference"), ["borda", "bradley_terry"]).frame()],
    "agreement": lambda: [pl.DataFrame({"alpha": [krippendorff_alpha(judged("grade"))]})],
    "propose": lambda: [cr.propose(judged("preference"), "information", budget=5, seed=1)],
    "classes": lambda: [cr.aggregate(judged("grade")).frame()],
    "files": lambda: files(),
    "fingerprint": lambda: [
        pl.DataFrame({"number": row_numbers_of(judged(kind))}) for kind in ("grade", "preference", "ranking")
    ],
}


def files():
    """Tables read from text."""
    folder = Path(FOLDER[0])
    (folder / "t.csv").write_text(
        "item,grade\n" + "".join(f'"i,{number}",{number}\n' for number in range(50)) + ' x ,"a""b"\n'
    )
    (folder / "f.txt").write_text(
        "".join(f"{number % 3} qid:{number // 5} 1:{number} 2:0.5 #docid = D{number}\n" for number in range(50))
    )
    return [cr.io.read_table(folder / "t.csv"), pl.DataFrame(np.asarray(read_letor(folder / "f.txt").matrix))]


FOLDER = []


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """Where files are."""
    FOLDER[:] = [tmp_path]


BEYOND = [
    ("data.index:LONG", 10, "read"), ("data.index:_MAX_ROWS_SAMPLED", 5, "read"),
    ("data.index:_TABLE_CELLS", 1, "read"), ("data.intake:LONG", 10, "read"),
    ("data.index:_CELLS_PER_ENTRY", 0, "read"),
    ("data.consensus:_DRAW_CELLS", 100, "preferences"), ("data.consensus:_PAIRS_AT_ONCE", 2, "preferences"),
    ("data.consensus:_RIVALS", 2, "preferences"), ("data.consensus:_RIVALS_OF_REPLICATES", 2, "bootstrap"),
    ("data.intake:_MOST_BITS", 1, "read"), ("resampling:_MANY_JUDGMENTS", 2.0, "bootstrap"),
    ("models.latent_score.kernels.item_systems:MAX_BLOCK_ITEMS", 5, "grades"),
    ("models.latent_score.kernels.item_systems:_MAX_BLOCK_CELLS", 1, "grades"),
    ("models.latent_score.kernels.item_systems:_MAX_INVERSION_PRODUCTS", 1.0, "grades"),
    ("models.latent_score.outcomes:_MANY_JUDGMENTS", 10, "grades"),
    ("models.latent_score.outcomes:_MAX_ITEMS_ALL_PROBES", 5, "grades"),
    ("models.pairs.crowd_bt:_MAX_EXACT_ITEMS_OF_DENSE_PAIRS", 5, "preferences"),
    ("standard_errors:_MAX_BLOCK_CELLS", 200, "preferences"), ("review.crowd_agreement:_MOST_CELLS", 20, "classes"),
    ("validation.method_comparison:_PATTERNS", 1, "compare"),
    ("quality:MANY_PREFERENCES", 10, "preferences"), ("quality:_MOST_CELLS", 1, "preferences"),
    ("quality:_MOST_TABLE_ITEMS", 1, "preferences"), ("data.parted:SAMPLE_ROWS", 150, "grades"),
    ("quality:MANY_JUDGMENTS", 150, "grades"),
    ("quality:MAX_FOLDS", 3, "preferences"), ("quality:FEW_PAIRS", 10, "grades"),
    ("resampling:_MANY_UNITS", 10, "bootstrap"),
    ("review.coded_judgments:MOST_JUDGMENTS", 100, "diagnose"), ("review.coded_judgments:_MOST_KEY", 1, "diagnose"),
    ("review.diagnosis:_MOST_FOR_SHARED", 100, "preferences"),
    ("review.habits:GLANCE", 50, "diagnose"), ("data.preferences:LONG", 10, "diagnose"),
    ("data.parted:LONG", 10, "fingerprint"),
    ("review.habits:MOST_WEDGES", 10, "diagnose"), ("review.habits:_MOST_KEY", 1, "diagnose"),
    ("review.dependence:MOST_PAIRS", 5, "diagnose"), ("review.dependence:_MOST_WORK", 10.0, "diagnose"),
    ("review.dependence:_MAX_TABLE_CELLS", 16, "diagnose"), ("review.dependence:_FEW_EVENTS", 1, "diagnose"),
    ("review.dependence:FEW", 10, "diagnose"), ("review.habits:_MAX_SCORES_SAMPLED", 10, "diagnose"),
    ("validation.prediction:MOST_PAIRS", 20, "compare"), ("validation.prediction:_MOST_COPIES", 20, "compare"),
    ("models.classes.class_method:MANY_GRADES", 50, "grades"),
    ("models.classes.coded_grades:MOST_CELLS", 300, "grades"),
    ("models.classes.coded_grades:START_CELLS", 150, "grades"),
    ("validation.prediction:_MAX_CELLS_AT_ONCE", 10, "compare"),
    ("schemes.information:_FEW_PAIRS", 10, "propose"),
    ("schemes.information:_MAX_COVARIANCE_ITEMS", 5, "propose"),
    ("kernels.pairs:_MAX_TABLE_CELLS", 1, "preferences"), ("kernels.pairs:_MAX_ROWS_IN_NUMPY", 1, "preferences"),
    ("kernels.pairs:_ROWS_PER_THREAD", 10, "preferences"), ("kernels.segments:_TABLE_SIZE", 1, "grades"),
    ("models.latent_score.kernels.item_systems:_MAX_STACKED_ITEMS", 2, "preferences"),
    ("kernels.laplacian:_SMALL_ITEMS", 2, "preferences"),
    ("kernels.laplacian:_SMALL_SYSTEM", 0, "preferences"),
    ("models.pairs.kernels.pair_likelihood:_MAX_TABLE_CELLS", 1, "preferences"),
    ("metrics.agreement:_TABLE_CELLS", 1, "agreement"),
    ("models.rankings.plackett_luce:_FEW_STEPS", 1, "rankings"),
    ("models.rankings.plackett_luce:_MOST_CELLS", 1, "rankings"),
    ("models.pairs.crowd_bt:_MIN_PREFERENCES_TO_THIN", 50, "preferences"),
    ("standard_errors:COVARIANCE_ITEMS", 5, "preferences"),
    ("models.latent_score.outcomes:COVARIANCE_ITEMS", 5, "grades"),
    ("models.latent_score.outcomes:_MAX_COVARIANCE_CELLS", 1, "grades"),
    ("models.latent_score.outcomes:_MAX_BATCH_CELLS", 200, "grades"),
    ("models.rankings.mallows_crowd:_LISTED_PAIRS", 1, "rankings"),
    ("models.rankings.mallows_crowd:_MANY_ITEMS", 5, "rankings"),
    ("io.sources:BLOCK", 16, "files"), ("io.delimited:_ROWS_AT_ONCE", 3, "files"),
    ("io.letor:_BYTES_AT_ONCE", 64, "files"), ("fitting:_MANY", 2, "grades"),
]  # fmt: skip


@functools.cache
def usual(battery):
    """What comes out below all thresholds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return BATTERIES[battery]()


@functools.cache
def listed():
    """What is promised beyond each threshold in the code, as the page of thresholds has it."""
    return {constant: promise for constant, (_, promise, _) in program("make").thresholds().items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("constant", "low", "battery"), BEYOND, ids=[one[0] for one in BEYOND])
def test_beyond_the_threshold(monkeypatch, constant, low, battery):
    before = usual(battery)
    module, name = constant.split(":")
    if name in ("_MAX_ROWS_SAMPLED", "_MOST_BITS") or module == "data.index":
        monkeypatch.setattr(f"crowdrank.{module}.LONG", 10)
    monkeypatch.setattr(f"crowdrank.{module}.{name}", low)
    after = BATTERIES[battery]()
    assert len(before) == len(after)
    for one, two in zip(before, after, strict=True):
        assert one.columns == two.columns
        for column, dtype in two.schema.items():
            if dtype.is_float():
                assert two[column].drop_nulls().is_finite().all(), column
        if PROMISED_ELSEWHERE.get(constant, listed().get(constant)) == "equal":
            for column, dtype in one.schema.items():
                if column == "seconds":
                    continue
                if dtype.is_float():
                    missing = one[column].is_null().to_numpy()
                    assert (missing == two[column].is_null().to_numpy()).all(), column
                    left, right = (table[column].fill_null(0.0).to_numpy() for table in (one, two))
                    assert left == pytest.approx(right, rel=1e-3, abs=2e-3), column
                elif not dtype.is_integer():
                    assert one[column].to_list() == two[column].to_list(), column


def test_every_threshold_is_tried():
    """Here, or in a test that names it."""
    elsewhere = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path.name != Path(__file__).name]
    tried = {constant for constant, _, _ in BEYOND} | set(TRIED_ELSEWHERE)
    names = {constant: constant.split(":")[1] for constant in listed() if constant not in tried}
    missing = [constant for constant, name in names.items() if not any(name in text for text in elsewhere)]
    assert missing == []
    assert all((ROOT / "tests" / test).exists() for test in TRIED_ELSEWHERE.values())


def test_every_threshold_that_is_tried_is_in_the_code():
    assert {constant for constant, _, _ in BEYOND} - set(PROMISED_ELSEWHERE) <= set(listed())
