"""Which columns of a table describe items, and which are ids, judgments or a truth, from which nothing is learned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..errors import JudgmentError, ParameterError
from ..wording import did_you_mean
from .columns import EITHER, FOREIGN, plain_name, quote_names, understand_items

_MEASURED = {"score", "value", "result"}
"""Foreign names of judgments that features have too, such as the score of BM25; they are features."""

_TRUTH = {
    "grade", "grades", "label", "labels", "relevance", "rel", "truth", "gold", "target", "judgment", "judgments",
    "judgement", "judgements", "qrel", "qrels",
}  # fmt: skip
"""Words for what is known or was judged of an item."""

_ANSWERS = {"winner", "loser", "rank", "y", "y_true", *FOREIGN["grade"], *FOREIGN["winner"]} - _MEASURED
"""Other names of judgments."""

_SOURCES = {"true", "crowd", "consensus", "human", "expert", "annotator"}
"""Whose judgment it is: with a word such as score this makes the name of a judgment."""

_JUDGED = {"score", "rank", "rating", "value", "vote"}
_QUALIFIERS = {"mean", "avg", "average", "median", "majority", "final", "graded", "binary", "ground"}

_IDS = {
    "id", "uuid", "guid", "index", "row", "row_number", "group", "ranking", *EITHER, *FOREIGN["ranking"], "",
    *(name for word in ("annotator", "query", "item") for name in (word, *FOREIGN[word])),
}  # fmt: skip
_ID_FORMS = re.compile(r".*_(id|uuid|guid)|unnamed:_\d+|_+index_level_\d+_+")
_CAMEL_ID = re.compile(r".*[a-z0-9](Id|ID)")


class FeatureColumns(NamedTuple):
    """What the columns of a table of features were taken for."""

    item: str
    query: str | None
    grade: str | None
    """The grade of each item, where one column is named like it."""
    features: tuple[str, ...]
    judgments: tuple[str, ...]
    """Columns left out because they are named like a judgment or a truth."""
    ids: tuple[str, ...]
    """Columns left out because they are named like an id."""


def understand_features(
    names: Iterable[str], columns: Mapping[str, str] | None = None, features: Sequence[str] | None = None
) -> FeatureColumns:
    """Return the columns of a table of features.

    Parameters
    ----------
    names
        The table's column names.
    columns
        Our word (item, query, grade) -> name of the column, for names that are not understood by themselves.
    features
        The columns to use, whatever they are called; ``None`` takes all that are not named like an id, a judgment or a
        truth.

    Examples
    --------
    >>> understand_features(["qid", "docid", "bm25", "relevance"])[:4]
    ('docid', 'qid', 'relevance', ('bm25',))
    """
    names = [str(name) for name in names]
    understood = understand_items(names, columns)
    given = dict(columns or {})
    used = set(understood.values()) | set(given.values())
    rest = [name for name in names if name not in used]
    judged = [name for name in rest if _like_judgment(name, names)]
    ids = [name for name in rest if name not in judged and _like_id(name)]
    if features is None:
        chosen = [name for name in rest if name not in {*judged, *ids}]
    else:
        chosen = expect_names(features, names)
        judged, ids = [name for name in judged if name not in chosen], []
    grade = given.get("grade") or _grade_among(judged)
    return FeatureColumns(
        understood["item"],
        understood.get("query"),
        grade,
        tuple(chosen),
        tuple(judged) if features is None else (),
        tuple(ids),
    )


def expect_names(wanted: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the wanted names of features if all are there, each once."""
    if isinstance(wanted, str):
        raise ParameterError(f"features={wanted!r} is one text; give a list of names of columns")
    wanted, known, places = [str(name) for name in wanted], set(names), dict[str, int]()
    if not wanted:
        raise ParameterError("features= names no column; name at least one, or leave it out")
    for place, name in enumerate(wanted):
        if name not in known:
            hint, shown = did_you_mean(name, names, cutoff=0.6), quote_names(names)
            raise JudgmentError(f"the features lack {name!r}; {hint}add it or name other columns (there are: {shown})")
        if places.setdefault(name, place) != place:
            raise ParameterError(f"features= names {name!r} twice; keep one of them")
    return wanted


def _like_judgment(name: str, names: Sequence[str]) -> bool:
    """Whether a column is named like a judgment or a truth."""
    plain = plain_name(name)
    if plain == "y":
        return not any(plain_name(other) == "x" for other in names)  # with an x it is a coordinate
    if plain in _TRUTH or plain in _ANSWERS:
        return True
    words = {re.sub(r"\d+$", "", word) for word in plain.split("_")} - {""}
    known = words <= _TRUTH | _SOURCES | _JUDGED | _QUALIFIERS
    return known and bool(words & _TRUTH or (words & _SOURCES and words & _JUDGED))


def _like_id(name: str) -> bool:
    """Whether a column is named like an id."""
    plain = plain_name(name)
    return plain in _IDS or bool(_ID_FORMS.fullmatch(plain) or _CAMEL_ID.fullmatch(name.strip()))


def _grade_among(judged: Sequence[str]) -> str | None:
    """The column that holds the grade: one of the house's own name, or the only one that may."""
    for word in ("grade", "truth"):
        own = [name for name in judged if plain_name(name) == word]
        if len(own) == 1:
            return own[0]
    other = {"winner", "loser", "rank", *FOREIGN["winner"]} - set(FOREIGN["grade"])
    able = [name for name in judged if plain_name(name) not in other]
    return able[0] if len(able) == 1 else None
