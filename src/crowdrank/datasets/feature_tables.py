"""Tables of features: with a known grade, for simulated annotators; of web pages; of recordings."""

from __future__ import annotations

import polars as pl

from ..data.features import Features
from ..data.judgments import Grades, Rankings
from ..data.truth import Truth
from .dataset import Dataset, Fold
from .store import Store

WINE = (
    "fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides", "free sulfur dioxide",
    "total sulfur dioxide", "density", "pH", "sulphates", "alcohol",
)  # fmt: skip
COORDINATES = tuple(f"{axis}{point}" for point in range(1, 9) for axis in "xy")
SPLITS = {"train": "pendigits.tra", "test": "pendigits.tes"}
MEASURES = ("feature_congestion", "subband_entropy", "segment_measure")
PAGE_FEATURES = ("texts", "links", "faces", "families", "avg_font", "tables", "bgcolors", "images", "aspect")
_COUNTED = ("texts", "links", "faces", "avg_font", "tables", "bgcolors", "images")
CONTROLS = ("Reference", "Anchor")
BLANK = 3.0
"""Up to this standard deviation of its pixels a screenshot shows nothing."""


def wine(store: Store, *, colour: str) -> Dataset:
    """Wines by eleven measurements; the truth is the quality that tasters gave."""
    columns = {**{name: name for name in WINE}, "grade": "quality"}
    table = store.table(f"winequality-{colour}.csv", columns, numbers=list(columns), separator=";")
    table = table.with_row_index("item", 1).with_columns(pl.col("item").cast(pl.String))
    features = Features.from_arrays(None, table["item"], table.select(WINE).to_numpy(), names=WINE)
    return store.dataset(features=features, truth=Truth.from_frame(table.select("item", "grade")))


def digits(store: Store) -> Dataset:
    """Handwritten digits as eight pen positions; the source's two files are two queries, and the truth is the digit."""
    words = (*COORDINATES, "grade")
    parts = [
        store.table(file, words, numbers=words)
        .with_row_index("item", 1)
        .select(pl.lit(split).alias("query"), pl.col("item").cast(pl.String), *words)
        for split, file in SPLITS.items()
    ]
    table = pl.concat(parts)
    features = Features.from_arrays(
        table["query"], table["item"], table.select(COORDINATES).to_numpy(), names=COORDINATES
    )
    return store.dataset(
        features=features,
        truth=Truth.from_frame(table.select("query", "item", "grade")),
        folds=(Fold("source", ("train",), (), ("test",)),),
    )


def clutter(store: Store) -> Dataset:
    """Web pages ranked by three measures of image clutter, least cluttered first, with cheap features of each page.

    Blank screenshots are left out. ``details`` has the measures themselves, and source and kind of each page.
    """
    names = [f"{how}_{name}" for how in ("dom", "src") for name in PAGE_FEATURES]
    about = ("source", "kind", "bytes", "missing_css")
    numbers = [*names, "bytes", "missing_css"]
    pages = store.table("features.csv", {"item": "page", **{name: name for name in (*about, *names)}}, numbers=numbers)
    sizes = ("page_height", "pixel_sd")
    columns = {"item": "page", **{name: name for name in (*MEASURES, *sizes)}}
    measured = store.table("annotators.csv", columns, numbers=[*MEASURES, *sizes])
    table = store.match(measured, pages, "item", "features.csv")
    shown = table.filter(pl.col("pixel_sd") > BLANK)
    return store.dataset(
        judgments=Rankings.from_frame(_measured_ranks(shown)),
        features=Features.from_arrays(None, shown["item"], shown.select(names).to_numpy(), names=names),
        details=shown.select("item", "source", "kind", *MEASURES, *sizes, "bytes", "missing_css"),
        notes=(f"{len(table) - len(shown)} of {len(table)} pages have a blank screenshot and are left out",),
    )


def first_screens(store: Store) -> Dataset:
    """Pages counted over the whole page and over the first screen, ranked by three measures of clutter.

    Blank screenshots are left out. ``details`` has the measures themselves.
    """
    counted = [f"{where}_{name}" for where in ("whole", "first") for name in PAGE_FEATURES if name in _COUNTED]
    names = ["height", *counted, "edge_share", "colours"]
    columns = {"item": "page", **{name: name for name in ("source", *names, "pixel_sd", *MEASURES)}}
    table = store.table("pages.csv", columns, numbers=[*names, "pixel_sd", *MEASURES])
    shown = table.filter(pl.col("pixel_sd") > BLANK)
    return store.dataset(
        judgments=Rankings.from_frame(_measured_ranks(shown)),
        features=Features.from_arrays(None, shown["item"], shown.select(names).to_numpy(), names=names),
        details=shown.select("item", "source", *MEASURES, "pixel_sd"),
        notes=(f"{len(table) - len(shown)} of {len(table)} pages have a blank screenshot and are left out",),
    )


def _measured_ranks(pages: pl.DataFrame) -> pl.DataFrame:
    """Pages ranked by each measure, least cluttered first."""
    return pl.concat(
        [pages.select("item", rank=pl.col(name).rank("dense"), annotator=pl.lit(name)) for name in MEASURES]
    )


def codecs(store: Store) -> Dataset:
    """Grades of sentences by codec; reference and anchor, which only check the listeners, are left out."""
    columns = {"query": "query", "item": "item", "annotator": "annotator", "grade": "grade"}
    grades = store.table("grades.csv", columns, numbers=["grade"])
    header = store.text("features.csv").split("\n", 1)[0].strip().split(",")
    names = [name for name in header if name not in ("query", "item")]
    words = {name: name for name in ("query", "item", *names)}
    described = store.table("features.csv", words, numbers=names)
    graded, described = (table.filter(~pl.col("item").is_in(CONTROLS)) for table in (grades, described))
    return store.dataset(
        judgments=Grades.from_frame(graded),
        features=Features.from_arrays(
            described["query"], described["item"], described.select(names).to_numpy(), names=names
        ),
        notes=(f"{len(grades) - len(graded)} of {len(grades):,} grades are of reference or anchor and left out",),
    )
