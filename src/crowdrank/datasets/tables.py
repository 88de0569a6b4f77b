"""Tables of features with a known grade, for simulated annotators, and the clutter of web pages."""

from __future__ import annotations

import polars as pl

from ..data.features import Features
from ..data.judgments import Rankings
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
    ranks = pl.concat(
        [shown.select("item", rank=pl.col(name).rank("dense"), annotator=pl.lit(name)) for name in MEASURES]
    )
    return store.dataset(
        judgments=Rankings.from_frame(ranks),
        features=Features.from_arrays(None, shown["item"], shown.select(names).to_numpy(), names=names),
        details=shown.select("item", "source", "kind", *MEASURES, *sizes, "bytes", "missing_css"),
        notes=(f"{len(table) - len(shown)} of {len(table)} pages have a blank screenshot and are left out",),
    )
