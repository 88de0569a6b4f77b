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


FEW_GRADES = (0.1, 0.2, 0.3)
"""Sums of these depend on their order in the last digit, and their means are often equal."""

WEIGHTS = (0.1, 0.3, 0.7, 1.3)


@st.composite
def tied_rows(draw, kind):
    """Rows over two queries in which items often have equal or nearly equal scores: all judge all, with few answers.

    Some items have the answers of another item, from other annotators.
    """
    rows = []
    for query in QUERIES:
        answers = {item: draw(st.lists(st.integers(0, 2), min_size=3, max_size=3)) for item in ITEMS}
        for item, other in zip(ITEMS[1:], ITEMS, strict=False):
            if draw(st.booleans()):
                turn = draw(st.integers(0, 2))
                answers[item] = answers[other][turn:] + answers[other][:turn]
        for number, annotator in enumerate(ANNOTATORS):
            given = {item: answers[item][number] for item in ITEMS}
            if kind == "grade":
                rows += [(annotator, query, item, FEW_GRADES[level]) for item, level in given.items()]
            elif kind == "ranking":
                rows += [(annotator, query, item, 3 - level) for item, level in given.items()]
            else:
                pairs = [(left, right) for left in ITEMS for right in ITEMS if left < right]
                rows += [(annotator, query, *pair, _winner(given[pair[0]] - given[pair[1]])) for pair in pairs]
    return rows


def _winner(gap):
    """Side that a lead of the left item stands for."""
    return "left" if gap > 0 else "right" if gap < 0 else "tie"


def weights(kind, rows):
    """A strategy of unequal weights of rows; of rankings one for each ranking."""
    if kind != "ranking":
        return st.lists(st.sampled_from(WEIGHTS), min_size=len(rows), max_size=len(rows))
    lists = sorted({row[:2] for row in rows})
    each = st.lists(st.sampled_from(WEIGHTS), min_size=len(lists), max_size=len(lists))
    return each.map(lambda drawn: [dict(zip(lists, drawn, strict=True))[row[:2]] for row in rows])


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


def judgments(kind, rows, weight=None):
    """Judgments of a kind from its rows, with weights if there are any."""
    frame = table(kind, rows)
    return KINDS[kind].from_frame(frame if weight is None else frame.with_columns(weight=pl.Series(weight)))
