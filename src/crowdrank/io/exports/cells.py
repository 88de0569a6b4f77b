"""Values of foreign files as ids, numbers and times, ``None`` where they make no sense; columns of several items."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ...data.column_names import key_of, listed_sides, name_points, side_pairs
from ...data.words import Code, code_of
from ...errors import JudgmentError
from ...wording import either, option

_MOST_WORDS = 12
_LATEST_SECONDS = 1e11  # a time beyond this, in the year 5138, is one in milliseconds
_ZONES = {"PST": -8, "PDT": -7, "UTC": 0, "GMT": 0}
_MTURK = re.compile(r"\w{3} (\w{3}) +(\d+) (\d+):(\d\d):(\d\d) (\w+) (\d{4})")
_SLASHED = re.compile(
    r"(\d+)[/.-](\d+)[/.-](\d+),? +(\d+):(\d\d)(?::(\d\d))? *(AM|PM|am|pm)?(?: *(?:GMT|UTC)?([+-]\d+)?(?::(\d\d))?)?"
)
_DOTTED = re.compile(r"\d+\.\d+\.")  # dates with points have the day first
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def as_text(value: object) -> str | None:
    """Return a value as an id: text stripped, whole numbers without a point, lists and objects as JSON.

    Examples
    --------
    >>> as_text(7), as_text(7.0), as_text(" x "), as_text(""), as_text(True), as_text(["a", 1])
    ('7', '7', 'x', None, 'true', '["a", 1]')
    """
    if isinstance(value, str):
        return value.strip() or None
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 1 << 4096 else hex(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value).strip() or None


def as_number(value: object) -> float | None:
    """Return a value as a finite number, also one written as text; ``None`` where it is none.

    Examples
    --------
    >>> as_number(3), as_number(" 0.5 "), as_number("good"), as_number(True), as_number(float("nan"))
    (3.0, 0.5, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value) if not isinstance(value, str) or "_" not in value else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_truth(value: object) -> bool | None:
    """Return whether a flag is set, in any of the ways that tables write it; ``None`` where it says neither.

    Examples
    --------
    >>> as_truth("TRUE"), as_truth(0), as_truth("no"), as_truth(None), as_truth("maybe")
    (True, False, False, None, None)
    """
    word = (as_text(value) or "").lower()
    if word in ("true", "1", "yes", "t", "y", "on"):
        return True
    return False if word in ("false", "0", "no", "f", "n", "off") else None


def as_person(value: object) -> str | None:
    """Return who a field names: the value, or of an object its e-mail address, else its name or id.

    Examples
    --------
    >>> as_person(3), as_person({"id": 2, "email": "bob@example.org"}), as_person({"id": 2, "email": ""})
    ('3', 'bob@example.org', '2')
    """
    if isinstance(value, Mapping):
        return first_text(value, "email", "username", "id")
    if isinstance(value, list):
        return as_person(value[0]) if value else None
    return as_text(value)


def at_path(record: object, path: str) -> Any:
    """Return what stands at a path such as ``doc.subject`` or ``judge[0]``; ``None`` where there is nothing.

    Examples
    --------
    >>> at_path({"doc": {"subject": "law"}, "a.b": 1}, "doc.subject"), at_path({"a.b": 1}, "a.b"), at_path({}, "a.b")
    ('law', 1, None)
    """
    if isinstance(record, Mapping):
        if path in record:
            return record[path]
        path = path.replace("[", ".").replace("]", "")
        # a key may hold dots itself, as Q.responses does
        for end in range(len(path) - 1, 0, -1):
            if path[end] == "." and path[:end] in record:
                return at_path(record[path[:end]], path[end + 1 :])
    if isinstance(record, list):
        head, _, rest = path.partition(".")
        if head.isdecimal() and int(head) < len(record):
            return at_path(record[int(head)], rest) if rest else record[int(head)]
    return None


def each_at_path(record: object, path: str) -> list[Any]:
    """Return what stands at a path in each entry of the lists that it leads through, as in ``scores[].name``.

    Examples
    --------
    >>> each_at_path({"scores": [{"name": "x"}, {"name": "y"}]}, "scores[].name"), each_at_path({"a": 1}, "a")
    (['x', 'y'], [1])
    """
    if "[]" not in path:
        return [at_path(record, path)]
    head, _, rest = path.partition("[]")
    listed = at_path(record, head)
    entries = listed if isinstance(listed, list) else []
    return [value for one in entries for value in (each_at_path(one, rest.removeprefix(".")) if rest else [one])]


def message_text(value: object) -> str | None:
    """Return a text, or what the last message of a conversation says."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, list):
        for message in reversed(value):
            content = message.get("content", message.get("value")) if isinstance(message, Mapping) else message
            parts = content if isinstance(content, list) else [content]
            texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
            said = "\n".join(text for text in texts if isinstance(text, str)).strip()
            if said:
                return said
        return None
    if isinstance(value, Mapping):
        return message_text(value.get("content", value.get("messages", value.get("text"))))
    return as_text(value)


def answer_text(value: object) -> str | None:
    """Return what a model says: a text, or its messages of a conversation together.

    Examples
    --------
    >>> answer_text([{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}])
    'So.'
    >>> answer_text('["one", "two"]'), answer_text("plain"), answer_text(None)
    ('one\\n\\ntwo', 'plain', None)
    """
    if isinstance(value, str) and value[:1] == "[" and (held := parse_json(value)) is not None:
        value = held
    if not isinstance(value, list):
        return value if isinstance(value, str) else message_text(value)
    said = [one for one in value if not isinstance(one, Mapping) or one.get("role", "assistant") == "assistant"]
    texts = [text for one in said if (text := message_text([one])) is not None]
    return "\n\n".join(texts) if texts or said else None


def parse_json(text: str, default: Any = None) -> Any:
    """Return what a cell of JSON holds, ``default`` where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


def as_seconds(value: object) -> float | None:
    """Return a time as seconds since 1970: a number in seconds or milliseconds, an ISO date, or a platform's own form.

    Examples
    --------
    >>> as_seconds("1970-01-01T00:01:00Z"), as_seconds(60), as_seconds("Thu Jan 1 00:01:00 UTC 1970")
    (60.0, 60.0, 60.0)
    >>> as_seconds("1970/01/01 2:01:00 AM GMT+2"), as_seconds("1/1/1970 00:01:00"), as_seconds("soon")
    (60.0, 60.0, None)
    """
    number = as_number(value)
    if number is not None:
        return number / 1000 if abs(number) > _LATEST_SECONDS else number
    try:
        when = _moment(value.strip()) if isinstance(value, str) else value
        # a time without a zone counts as UTC
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() if isinstance(when, datetime) else None
    except (ValueError, KeyError, OverflowError):
        return None


def _moment(text: str) -> datetime | None:
    """A time as ISO has it, or as Mechanical Turk, Appen or Google Forms write it."""
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    if match := _MTURK.fullmatch(text):
        date, hour, minute, second, whole_year = map(int, match.group(2, 3, 4, 5, 7))
        behind = timedelta(hours=-_ZONES[match[6]])
        return datetime(whole_year, 1 + _MONTHS.index(match[1]), date, hour, minute, second) + behind
    if match := _SLASHED.fullmatch(text):
        first, middle, third, hours, minutes, seconds, half, zone, zone_minutes = match.groups()
        # a year first, else month and day as Americans write them, unless that month cannot be or points are used
        year, month, day = (first, middle, third) if len(first) == 4 else (third, first, middle)
        if int(month) > 12 or (_DOTTED.match(text) and len(first) < 4):
            month, day = day, month
        of_24 = int(hours) % 12 + (12 if half.lower() == "pm" else 0) if half else int(hours)
        ahead = timedelta(hours=int(zone or 0), minutes=int(zone_minutes or 0))
        return datetime(int(year), int(month), int(day), of_24, int(minutes), int(seconds or 0)) - ahead
    return None


def first_text(record: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of some fields that holds something, as an id."""
    return next((text for name in names if (text := as_text(record.get(name)))), None)


def is_scale(values: Sequence[str]) -> bool:
    """Whether answers are numbers or few words, and no free text."""
    return bool(values) and (all(as_number(value) is not None for value in values) or len(set(values)) <= _MOST_WORDS)


# two sides of a comparison, sets with a best and a worst item, ballots, places ----------------------------------------


Sides = tuple[str | None, str | None]
Codes = Mapping[str, Code]

CONTEXTS = ("prompt", "question", "query", "instruction")
_FIRST = ("model", "system", "item", "id")
_SIDES = {1: "left", -1: "right", 0: "tie"}
_BEST = ("best", "best_item", "best_option", "best_choice", "most", "most_preferred")
_WORST = ("worst", "worst_item", "worst_option", "worst_choice", "least", "least_preferred")
_ORDERS = ("ranking", "order", "ballot", "ranked", "vote", "preference_order")
_ORDER = re.compile(r"[^<>=]+(?:[>=][^<>=]+)+")
_PLACE_COLUMN = re.compile(
    r"(?i)(?:rank(?:ed)?|place|choice|position)[ _]?\d+|\d+(?:st|nd|rd|th)(?:[ _](?:choice|place))?"
)
_RANK_COLUMN = re.compile(r"(?P<stem>[a-z]+)(?P<number>\d+)rank|rank(?P<last>\d+)")
# rows of a question that are places, such as 1, Rank 2 or 3rd choice
_PLACE = re.compile(r"(?i)(?:rank(?:ing)?|place|choice|position|#)?\s*(\d+)(?:st|nd|rd|th|\.)?\s*(?:choice|place)?")


def pair_columns(names: Iterable[str], prefix: str = "") -> tuple[str, str] | None:
    """Return the two names that differ only in a last a/b, 1/2, x/y or left/right; ``None`` where there are none.

    Of several such pairs one of models, systems, items or ids goes first; otherwise it is asked which is meant, with
    ``prefix`` before the names. Three or more names such as img1, img2 and img3 are a list and no pair.

    Examples
    --------
    >>> pair_columns(["prompt", "text1", "text2"]), pair_columns(["text_a", "text_b", "model_a", "model_b"])
    (('text1', 'text2'), ('model_a', 'model_b'))
    """
    pairs_of_names = [one for one in side_pairs(names) if not one[1].endswith("0")]
    for word in _FIRST:
        stems = [re.split(r"[^a-z]+", stem.rstrip("_-. ").removesuffix("s"))[-1] for stem, _, _ in pairs_of_names]
        sure = [one for one, stem in zip(pairs_of_names, stems, strict=True) if stem == word]
        if len(sure) == 1:
            return sure[0][1:]
    if len(pairs_of_names) > 1:
        pairs = either([f"{left!r} and {right!r}" for _, left, right in pairs_of_names])
        named = option("columns", {"left": prefix + pairs_of_names[0][1], "right": prefix + pairs_of_names[0][2]})
        raise JudgmentError(f"the two sides could be {pairs}; say which with {named}")
    return pairs_of_names[0][1:] if pairs_of_names else None


def context_of(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the field that says what two items are compared for, with its value."""
    names = {name.lower(): name for name in record}
    for word in CONTEXTS:
        if word in names and (value := as_text(record[names[word]])) is not None:
            return names[word], value
    return None


def side(answer: Any, names: Sides = ("", ""), items: Sides = (None, None), codes: Codes | None = None) -> str | None:
    """Return left, right or tie for an answer: one of the two items, the name of a column, or a code.

    Examples
    --------
    >>> side("A"), side("[[B]]"), side("LEFT"), side("B>>A"), side("image_b", ("image_a", "image_b")), side("5")
    ('left', 'right', 'left', 'right', 'right', None)
    """
    text = as_text(answer)
    if text is None:
        return None
    if text in items:
        return "left" if text == items[0] else "right"
    for name, which in zip(names, ("left", "right"), strict=True):
        if name and text.lower() == name.lower():
            return which
    code = code_of(text) if codes is None else codes.get(text)
    return None if code is None else _SIDES[code.outcome]


def verdict(text: object) -> tuple[str, float] | None:
    """Return who won and how strongly by a verdict such as ``A>>B``; ``None`` where it is none.

    Examples
    --------
    >>> verdict("A>>B"), verdict("[[B>A]]"), verdict("A=B"), verdict("A<B"), verdict("A>A"), verdict("A")
    (('left', 2.0), ('right', 1.0), ('tie', 0.0), ('right', 1.0), None, None)
    """
    code = code_of(text) if isinstance(text, str) else None
    return None if code is None or code.strength is None else (_SIDES[code.outcome], float(code.strength))


class Layout(NamedTuple):
    """The columns of a table of sets."""

    items: tuple[str, ...]
    best: str | None
    # ``None``, as ``best``, where only the other one was asked for
    worst: str | None

    @property
    def answers(self) -> list[str]:
        """The columns that say the best and the worst."""
        return [name for name in (self.best, self.worst) if name is not None]


def layout_of(names: Iterable[str]) -> Layout | None:
    """Return which columns show items, and which say the best and the worst; ``None`` where it is no such table.

    Examples
    --------
    >>> layout_of(["Annotator", "Item1", "Item2", "Item3", "BestItem", "WorstItem"])
    Layout(items=('Item1', 'Item2', 'Item3'), best='BestItem', worst='WorstItem')
    >>> layout_of(["item1", "item2", "best", "worst"])
    """
    known = list(names)
    keys = {key_of(name): name for name in reversed(known)}
    best, worst = (next((keys[key] for key in wanted if key in keys), None) for wanted in (_BEST, _WORST))
    items = tuple(name for name in listed_sides(known) if name not in (best, worst))
    stems = {key_of(name).rstrip("0123456789abcdefgh_") for name in items}
    return Layout(items, best, worst) if (best or worst) and items and len(stems) == 1 else None


def place_columns(names: Iterable[str]) -> list[str]:
    """Return three or more columns that are called by places, such as 1st, 2nd and 3rd; none where there are fewer.

    Examples
    --------
    >>> place_columns(["voter", "1st choice", "2nd choice", "3rd choice"]), place_columns(["rank1", "rank2"])
    (['1st choice', '2nd choice', '3rd choice'], [])
    """
    known = list(names)
    places = [name for name in known if _PLACE_COLUMN.fullmatch(name.strip())]
    return places if len(places) > 2 and are_places(places) and not ranked_columns(known) else []


def ranked_columns(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return columns of items and of their ranks, three or more of each, such as system1Id with system1rank.

    Examples
    --------
    >>> ranked_columns(["item1", "item2", "item3", "rank1", "rank2", "rank3"])
    [('item1', 'rank1'), ('item2', 'rank2'), ('item3', 'rank3')]
    """
    known = {re.sub(r"[\s_]", "", name).lower(): name for name in names}
    pairs = []
    for squeezed, name in known.items():
        if match := _RANK_COLUMN.fullmatch(squeezed):
            stems = [match["stem"]] if match["stem"] else ["item", "system", "model", "option", "candidate"]
            wanted = [f"{stem}{match['number'] or match['last']}{end}" for stem in stems for end in ("id", "name", "")]
            pairs += [(known[item], name) for item in wanted if item in known][:1]
    return pairs if len(pairs) > 2 else []


def order_column(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str | None:
    """Return the column whose cells are orders such as x>y=z, with a name that says so."""
    if all(any(name_points(side, name) for name in names) for side in ("left", "right")):
        # A>B between two sides says which of them is better
        return None
    for place, name in enumerate(names):
        cells = [row[place] for row in rows if place < len(row) and row[place]]
        if key_of(name) in _ORDERS and cells and all(_ORDER.fullmatch(cell) and ">" in cell for cell in cells):
            return name
    return None


def are_places(names: Sequence[str]) -> bool:
    """Whether names are the places from 1 on, such as Rank 1, 2nd and 3rd choice."""
    numbers = [int(match[1]) for name in names if (match := _PLACE.fullmatch(name.replace("_", " ").strip()))]
    return sorted(numbers) == list(range(1, len(names) + 1))
