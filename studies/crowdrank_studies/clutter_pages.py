"""Web pages whose clutter three measures rank: those of the data sets, or a folder that is rendered anew."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl

from crowdrank.data.features import Features
from crowdrank.data.files import PathLike
from crowdrank.data.judgments import Rankings
from crowdrank.errors import JudgmentError
from crowdrank.features.extraction import extract
from crowdrank.features.page_features import worth_ranking
from crowdrank.features.raw_items import Run, read_raw_items
from crowdrank.protocols import Bools, Counts, Floats
from crowdrank.wording import counted

from .ltrma.methods import Task
from .work import Work

_DATA, _FIRST_DATA = "visual-clutter", "visual-clutter-first-screen"
MEASURES = {"FC": "feature_congestion", "SE": "subband_entropy", "SM": "segment_measure"}
"""The annotators: feature congestion, subband entropy and segment measuring."""

_COUNTS = ("texts", "links", "faces", "tables", "bgcolors", "images")
FEATURES = (*_COUNTS, "avg_font", "aspect")
SETS = {
    "rendered": tuple(f"dom_{name}" for name in FEATURES),
    "source": tuple(f"src_{name}" for name in FEATURES),
    "html": tuple(f"src_{name}" for name in ("texts", "links", "tables", "images")),
}
"""Features of the rendered page, of html and style sheets, and of html alone."""

WHOLE, FIRST, SCREEN, FIRST_AND_SCREEN = "whole page", "first screen", "screenshot", "first screen and screenshot"
_FIRST_COUNTS = (*_COUNTS, "avg_font")
FIRST_SETS = {
    WHOLE: (*(f"whole_{name}" for name in _FIRST_COUNTS), "height"),
    FIRST: tuple(f"first_{name}" for name in _FIRST_COUNTS),
    SCREEN: ("edge_share", "colours"),
    FIRST_AND_SCREEN: (*(f"first_{name}" for name in _FIRST_COUNTS), "edge_share", "colours"),
}
"""Columns of the pages whose first screen was counted apart; those of the screenshot are numbers of its pixels."""

SUBSET = 10
"""Pages of a query."""

PAGES, SOURCES, NO_DOCUMENTATION = "pages", "sources", "without documentation"
MARKS = {
    "missing_css": "link to style sheets that are missing",
    "unstable": "changed in height while they were read",
}
"""What a page may be marked for, by what is said of such pages; figures are given with and without them."""

WITHOUT = {f"without {mark}": mark for mark in MARKS}
AS_MANY = {f"as many as without {mark}": mark for mark in MARKS}
SPLITS = (PAGES, SOURCES, NO_DOCUMENTATION, *WITHOUT, *AS_MANY)
"""Halves at random, or with no source on both sides; of all pages, of some, or of as many that are drawn."""

_FOLDER_NAMES = {"faces": "fonts", "bgcolors": "colours", "avg_font": "font_size"}


@dataclass(frozen=True, eq=False)
class Pages:
    """Web pages: features by set, clutter by each measure, and what stands in for people's scores.

    Parameters
    ----------
    ids, source, kind
        Of each page.
    features
        Features by name, counts as log(1 + count).
    clutter
        By measure, as standard scores; larger is more.
    marks
        What pages are marked for -> which are; what nobody looked at is not there.
    origin
        What pages these are, as a sentence says it.
    key
        What cells of a study depend on besides the split and the seed.
    """

    ids: tuple[str, ...]
    source: tuple[str, ...]
    kind: tuple[str, ...]
    features: Mapping[str, Floats]
    clutter: Mapping[str, Floats]
    marks: Mapping[str, Bools] = field(default_factory=dict)
    origin: str = "pages"
    key: tuple[str, ...] = ()

    @classmethod
    def of(cls, work: Work) -> Pages:
        """Return the pages of the data set, blank ones left out."""
        stored, table, clutter = _stored_pages(work, _DATA)
        matrix = stored.matrix.astype(np.float64)
        columns = {name: matrix[:, stored.names.index(name)] for name in (*SETS["rendered"], *SETS["source"])}
        logs: dict[str, Floats] = {
            name: np.log1p(values) if name[4:] in _COUNTS else values for name, values in columns.items()
        }
        ids, source, kind = (tuple(table[name].cast(pl.String)) for name in ("item", "source", "kind"))
        marks = {"missing_css": table["missing_css"].to_numpy() > 0}
        return cls(ids, source, kind, logs, clutter, marks, "pages rendered and measured for this data set")

    @classmethod
    def first_screens(cls, work: Work) -> Pages:
        """Return the pages whose first screen was counted apart, one of each site."""
        stored, table, clutter = _stored_pages(work, _FIRST_DATA)
        features = {}
        for place, name in enumerate(stored.names):
            values = stored.matrix[:, place].astype(np.float64)
            values = np.where(np.isnan(values), np.nanmean(values), values)
            features[name] = np.log1p(values) if name.partition("_")[2] in _COUNTS or name == "colours" else values
        ids = tuple(table["item"].cast(pl.String))
        return cls(ids, ids, ("template",) * len(ids), features, clutter, {}, "template pages, one of each site")

    @classmethod
    def in_folder(cls, folder: PathLike, work: Work) -> Pages:
        """Return the pages of a folder, rendered and measured; blank ones and copies are left out."""
        measured = _measure_folder(folder, work)
        if len(measured.ids) < 2 * SUBSET:
            raise JudgmentError(
                f"{folder}: {counted(len(measured.ids), 'page')} can be compared, but the study learns from subsets of "
                f"{SUBSET} pages and tests on others; give a folder of {2 * SUBSET} pages or more"
            )
        features = measured.features
        values = np.column_stack([*features.values(), *measured.measures.values()])
        digest = hashlib.sha256("\0".join(measured.ids).encode() + values.tobytes()).hexdigest()[:16]
        clutter = {short: _standard(measured.measures[name]) for short, name in MEASURES.items()}
        source, kind = tuple(page.split("/")[0] for page in measured.ids), ("page",) * len(measured.ids)
        return cls(measured.ids, source, kind, features, clutter, measured.marks, f"pages of {folder}", (digest,))

    @property
    def calm(self) -> Floats:
        """How little clutter a page has by the mean of the three measures."""
        calm: Floats = -np.mean(list(self.clutter.values()), axis=0)
        return calm

    @property
    def grade(self) -> Floats:
        """From 5, the sixth of the pages with the least clutter, to 0."""
        place = np.argsort(np.argsort(self.calm, kind="stable"), kind="stable")
        return np.floor(6 * place / len(place))

    def task(self, chosen: Sequence[str], train: Counts, test: Counts, annotators: Sequence[str]) -> Task:
        """Return training pages, in subsets that annotators ranked, and test pages, in subsets of ten each."""
        matrix = np.column_stack([self.features[name] for name in chosen])
        spread = np.std(matrix[train], axis=0)
        matrix = (matrix - matrix[train].mean(axis=0)) / np.where(spread > 0, spread, 1)
        learned, held = (
            Features.from_arrays(_subsets(rows), [self.ids[row] for row in rows], matrix[rows], names=chosen)
            for rows in (train, test)
        )
        subset, item = pl.Series(_subsets(train)), pl.Series([self.ids[row] for row in train])
        said = [
            pl.DataFrame({"annotator": name, "query": subset, "item": item, "clutter": self.clutter[name][train]})
            for name in annotators
        ]
        ranks = pl.concat(said).select(
            "annotator", "query", "item", rank=pl.col("clutter").rank("min").over("annotator", "query")
        )
        return Task(Rankings.from_frame(ranks), learned, held, self.calm[self.rows(learned)])

    def rows(self, features: Features) -> Counts:
        """Return the page of each row."""
        place = {page: row for row, page in enumerate(self.ids)}
        return np.array([place[page] for page in features.items.ids.to_list()])


class _Measured(NamedTuple):
    """Pages of a folder: columns by name, clutter by measure, and which are marked for what."""

    ids: tuple[str, ...]
    features: dict[str, Floats]
    measures: dict[str, Floats]
    marks: dict[str, Bools]


def _measure_folder(folder: PathLike, work: Work) -> _Measured:
    """Pages of a folder in source and on the screen, without blank ones and copies."""
    run = Run(n_jobs=-1, cache=work.page_cache, on_error="skip", progress=work.progress)
    raw = read_raw_items(folder, "page")
    params = {"first": True, "fill": "mean", "mode": "screen", "measures": True}
    screen, details = extract("page", raw, params, run)
    assert details.measures is not None
    assert screen.details is not None
    source, _ = extract("page", details.items, {"first": False, "fill": "mean", "mode": "source"}, run)
    shown = worth_ranking(details.items, details.measures)
    place = {item: row for row, item in enumerate(source.items.ids.to_list())}
    names = screen.items.ids.to_list()
    keep = np.array([row for row in np.flatnonzero(shown) if names[row] in place], dtype=np.int64)
    ids = tuple(names[row] for row in keep)
    on_screen = dict(zip(screen.names, screen.matrix[keep].astype(np.float64).T, strict=True))
    in_source = dict(zip(source.names, source.matrix[[place[name] for name in ids]].astype(np.float64).T, strict=True))
    features = {"height": on_screen["aspect"], "edge_share": on_screen["edge_share"]}
    features["colours"] = on_screen["screen_colours"]
    for name in FEATURES:
        column = _FOLDER_NAMES.get(name, name)
        features |= {f"dom_{name}": on_screen[column], f"src_{name}": in_source[column]}
        if name != "aspect":
            features |= {f"whole_{name}": on_screen[column], f"first_{name}": on_screen[f"first_{column}"]}
    measures = {name: details.measures[keep, place] for place, name in enumerate(MEASURES.values())}
    marks = {mark: screen.details[mark].to_numpy()[keep] > 0 for mark in MARKS}
    return _Measured(ids, features, measures, marks)


def _stored_pages(work: Work, name: str) -> tuple[Features, pl.DataFrame, dict[str, Floats]]:
    """The features of a data set of pages, a table with their details, and their clutter as standard scores."""
    data = work.load(name)
    assert data.details is not None
    assert data.features is not None
    table = data.features.items.frame().join(data.details, on="item", how="left", maintain_order="left")
    return data.features, table, {short: _standard(table[of].to_numpy()) for short, of in MEASURES.items()}


def _standard(values: Floats) -> Floats:
    """Standard scores: values minus their mean, divided by their standard deviation."""
    scaled: Floats = (values - values.mean()) / values.std()
    return scaled


def _subsets(rows: Counts) -> list[str]:
    """Subset of each row, ten in each."""
    return [f"s{place // SUBSET:02d}" for place in range(len(rows))]


def divide_pages(pages: Pages, split: str, seed: int) -> tuple[Counts, Counts]:
    """Return training and test pages, in subsets of ten: random halves, or no source on both sides."""
    rng = np.random.default_rng([seed, SPLITS.index(split)])
    rows = np.arange(len(pages.ids))
    if split == NO_DOCUMENTATION:
        rows = np.array([row for row in rows if pages.kind[row] != "documentation"])
    if split in WITHOUT:
        rows = rows[~pages.marks[WITHOUT[split]]]
    if split in AS_MANY:
        rows = rng.choice(rows, int((~pages.marks[AS_MANY[split]]).sum()), replace=False)
    if split == SOURCES:
        names, code = np.unique(pages.source, return_inverse=True)
        order = rng.permutation(len(names))
        total = np.cumsum(np.bincount(code)[order])
        cut = int(np.argmin(np.abs(total - len(rows) / 2))) + 1
        first = np.isin(code, order[:cut])
        # the larger part is learned from
        parts = sorted((rows[first], rows[~first]), key=len, reverse=True)
        halves = [rng.permutation(part) for part in parts]
    else:
        halves = np.array_split(rng.permutation(rows), 2)
    train, test = (part[: len(part) // SUBSET * SUBSET] for part in halves)
    return train, test


def splits_of(pages: Pages, seeds: Sequence[int]) -> list[str]:
    """Return the ways of dividing these pages that say something and leave a subset on both sides."""
    wanted = {PAGES: True, SOURCES: len(set(pages.source)) > 1, NO_DOCUMENTATION: "documentation" in pages.kind}
    for splits in (WITHOUT, AS_MANY):
        wanted |= {split: mark in pages.marks and bool(pages.marks[mark].any()) for split, mark in splits.items()}
    return [
        split
        for split, fits in wanted.items()
        if fits and min(len(part) for seed in seeds for part in divide_pages(pages, split, seed)) >= SUBSET
    ]
