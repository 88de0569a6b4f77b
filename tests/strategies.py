"""Hypothesis strategies: small judgments of every kind, ties, weights and odd ids included."""

import polars as pl
from hypothesis import strategies as st

from crowdrank.data.judgments import Grades, Preferences, Rankings

QUERIES = ("q1", "q2")
ITEMS = ("a", "b", "c", "d")
ANNOTATORS = ("ann", "bob", "eve")


@st.composite
def grade_rows(draw, min_size=1, max_size=24):
    """Rows of (annotator, query, item, grade), each annotator at most once on an item."""
    key = st.tuples(st.sampled_from(ANNOTATORS), st.sampled_from(QUERIES), st.sampled_from(ITEMS))
    keys = draw(st.lists(key, min_size=min_size, max_size=max_size, unique=True))
    grades = draw(st.lists(st.integers(0, 4), min_size=len(keys), max_size=len(keys)))
    return [(*k, g) for k, g in zip(keys, grades, strict=True)]


@st.composite
def preference_rows(draw, min_size=1, max_size=24):
    """Rows of (annotator, query, left, right, winner), each annotator at most once on a pair in that order."""
    pair = st.permutations(ITEMS).map(lambda p: tuple(p[:2]))
    key = st.tuples(st.sampled_from(ANNOTATORS), st.sampled_from(QUERIES), pair)
    keys = draw(st.lists(key, min_size=min_size, max_size=max_size, unique=True))
    winners = draw(st.lists(st.sampled_from(("left", "right", "tie")), min_size=len(keys), max_size=len(keys)))
    return [(a, q, *p, w) for (a, q, p), w in zip(keys, winners, strict=True)]


@st.composite
def ranking_rows(draw, max_size=6):
    """Rows of (annotator, query, item, rank) of partial rankings with ties, one for each annotator and query."""
    key = st.tuples(st.sampled_from(ANNOTATORS), st.sampled_from(QUERIES))
    keys = draw(st.lists(key, min_size=1, max_size=max_size, unique=True))
    rows = []
    for annotator, query in keys:
        items = draw(st.lists(st.sampled_from(ITEMS), min_size=1, unique=True))
        ranks = draw(st.lists(st.integers(1, len(items)), min_size=len(items), max_size=len(items)))
        rows += [(annotator, query, item, rank) for item, rank in zip(items, ranks, strict=True)]
    return rows


ROWS = {"grade": grade_rows, "preference": preference_rows, "ranking": ranking_rows}
KINDS = {"grade": Grades, "preference": Preferences, "ranking": Rankings}
COLUMNS = {
    "grade": ("annotator", "query", "item", "grade"),
    "preference": ("annotator", "query", "left", "right", "winner"),
    "ranking": ("annotator", "query", "item", "rank"),
}


def table(kind, rows):
    """A frame of rows of a kind."""
    return pl.DataFrame(rows, schema=list(COLUMNS[kind]), orient="row")


def judgments(kind, rows):
    """Judgments of a kind from its rows."""
    return KINDS[kind].from_frame(table(kind, rows))
