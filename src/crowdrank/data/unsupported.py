"""Answers that are no judgments: boxes, spans, relations, free text and dates; how they look, and what to use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..wording import option

_FIELDS = {
    "regions": (
        {"x", "y", "width"}, {"x", "y", "w"}, {"xmin", "ymin"}, {"x_min", "y_min"}, {"x1", "y1", "x2", "y2"}, {"bbox"},
        {"bounding_box"}, {"left", "top", "width"}, {"points"}, {"polygon"}, {"rle"}, {"mask"}, {"segmentation"},
        {"keypoints"}, {"radiusx"}, {"videorectangle"}, {"rectanglelabels"}, {"polygonlabels"}, {"brushlabels"},
    ),
    "spans": ({"start", "end"}, {"start_offset", "end_offset"}, {"begin", "end"}, {"token_start", "token_end"}),
    "relations": ({"from_id", "to_id"}, {"head", "child"}, {"head", "tail"}),
    "dates": ({"datetime"},),
    "texts": ({"textarea"},),
}  # fmt: skip
"""What an answer is -> fields that only such answers have, in lower case."""

_WORDS = {
    "regions": "boxes or other regions",
    "spans": "spans of text or sound",
    "relations": "relations",
    "dates": "dates",
    "texts": "free text",
}
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d{1,2}[/.]\d{1,2}[/.]\d{4}([, ].*)?")
_FEWEST_WORDS = 3
_MOSTLY = 0.9


def unsupported_kind(values: Iterable[Any]) -> str | None:
    """Return what kind of answers most values are that cannot be aggregated; ``None`` where they are none of these.

    Examples
    --------
    >>> unsupported_kind([[{"x": 1, "y": 2, "width": 3, "label": "car"}]]), unsupported_kind([[[0, 4, "PER"]]])
    ('regions', 'spans')
    >>> unsupported_kind(["2026-01-31"]), unsupported_kind(["it is good", "not so good"]), unsupported_kind(["good"])
    ('dates', 'texts', None)
    """
    filled = [value for value in values if value not in (None, "", [], {})]
    kinds = [_kind(value) for value in filled]
    texts = [value for value in filled if isinstance(value, str)]
    # texts are free where hardly two are the same, and phrases rather than names
    free = len(texts) == len(filled) > 1 and 2 * len(set(texts)) > len(texts)
    if free and sum(len(text.split()) >= _FEWEST_WORDS for text in texts) >= _MOSTLY * len(texts):
        kinds = [kind or "texts" for kind in kinds]
    return next((kind for kind in _WORDS if filled and kinds.count(kind) >= _MOSTLY * len(kinds)), None)


def marked_columns(names: Iterable[str]) -> tuple[str, list[str]] | None:
    """Return what rows of a table mark, with the columns that say so: the corners of a box or the ends of a span.

    Examples
    --------
    >>> marked_columns(["image", "label", "xmin", "ymin", "xmax", "ymax"]), marked_columns(["item", "x", "grade"])
    (('regions', ['xmin', 'ymin']), None)
    """
    known = {name.strip().lower(): name for name in names}
    for kind in ("regions", "spans", "relations"):
        for fields in _FIELDS[kind]:
            if fields <= known.keys():
                return kind, [known[key] for key in known if key in fields]
    return None


def not_supported(what: str, kind: str, *, other: bool = True) -> str:
    """Return the sentence for answers that are not supported, with what to use; ``other`` may be questions to choose.

    Examples
    --------
    >>> not_supported("'when' holds", "dates", other=False)
    "'when' holds dates: not supported, as judgments are grades, classes, preferences and rankings; write a number, such as days since the first, to grade by it"
    """  # noqa: E501
    nominal = option("nominal", True)
    remedies = {
        "regions": "match regions that overlap, then write one row per region and annotator with its label as the "
        f"grade ({nominal})",
        "spans": f"write one row per token and annotator with its label as the grade ({nominal})",
        "relations": f"write one row per pair of things and annotator with the relation as the grade ({nominal})",
        "dates": "write a number, such as days since the first, to grade by it",
        "texts": "let annotators grade the texts or compare two at a time, and read those answers",
    }
    chosen = f"choose a question with grades, choices or rankings ({option('answer')}), or " if other else ""
    return (
        f"{what} {_WORDS[kind]}: not supported, as judgments are grades, classes, preferences and rankings; "
        f"{chosen}{remedies[kind]}"
    )


def _kind(value: Any) -> str | None:
    """What one answer is."""
    if isinstance(value, str):
        if value[:1] in "[{" and len(value) > 1:
            try:
                return _kind(json.loads(value))
            except (ValueError, RecursionError):
                return None
        return "dates" if _DATE.fullmatch(value.strip()) else None
    if isinstance(value, list):
        numbers = [one for one in value if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(value) == 3 and len(numbers) == 2 and isinstance(value[2], str):
            return "spans"
        return next((kind for one in value if isinstance(one, list | Mapping) and (kind := _kind(one))), None)
    if not isinstance(value, Mapping):
        return None
    keys = {str(key).lower() for key, held in value.items() if held is not None}
    return next((kind for kind, forms in _FIELDS.items() if any(fields <= keys for fields in forms)), None)
