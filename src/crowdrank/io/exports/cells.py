"""Values of foreign files as ids, numbers and times; nothing here raises, what makes no sense is ``None``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

_MOST_WORDS = 12
_LATEST_SECONDS = 1e11  # a time beyond this, in the year 5138, is one in milliseconds
_ZONES = {"PST": -8, "PDT": -7, "UTC": 0, "GMT": 0}
_MTURK = re.compile(r"\w{3} (\w{3}) +(\d+) (\d+):(\d\d):(\d\d) (\w+) (\d{4})")
_SLASHED = re.compile(
    r"(\d+)[/.-](\d+)[/.-](\d+),? +(\d+):(\d\d)(?::(\d\d))? *(AM|PM|am|pm)?(?: *(?:GMT|UTC)?([+-]\d+)?(?::(\d\d))?)?"
)
_DOTTED = re.compile(r"\d+\.\d+\.")  # dates with points have the day first
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def as_text(value: Any) -> str | None:
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


def as_number(value: Any) -> float | None:
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


def as_truth(value: Any) -> bool | None:
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


def as_person(value: Any) -> str | None:
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


def at_path(record: Any, path: str) -> Any:
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


def each_at_path(record: Any, path: str) -> list[Any]:
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


def message_text(value: Any) -> str | None:
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


def answer_text(value: Any) -> str | None:
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


def as_seconds(value: Any) -> float | None:
    """Return a time as seconds since 1970: a number in seconds or milliseconds, an ISO date, or a platform's own form.

    Examples
    --------
    >>> as_seconds("1970-01-01T00:01:00Z"), as_seconds(60), as_seconds("Thu Jan 1 00:01:00 UTC 1970")
    (60.0, 60.0, 60.0)
    >>> as_seconds("1970/01/01 2:01:00 AM GMT+2"), as_seconds("1/1/1970 00:01:00"), as_seconds("soon")
    (60.0, 60.0, None)
    """
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    number = as_number(value)
    if number is not None:
        return number / 1000 if abs(number) > _LATEST_SECONDS else number
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return _platform_seconds(text)
    return _stamp(when)


def _platform_seconds(text: str) -> float | None:
    """A time as Mechanical Turk, Appen or Google Forms write it."""
    try:
        if match := _MTURK.fullmatch(text):
            month, day, hour, minute, second, zone, year = match.groups()
            when = datetime(int(year), 1 + _MONTHS.index(month), int(day), int(hour), int(minute), int(second))
            return _stamp(when - timedelta(hours=_ZONES[zone]))
        if match := _SLASHED.fullmatch(text):
            first, second_, third, hour, minute, second, half, zone, zone_minutes = match.groups()
            # a year first, else month and day as Americans write them, unless that month cannot be or points are used
            year, month, day = (first, second_, third) if len(first) == 4 else (third, first, second_)
            if int(month) > 12 or (_DOTTED.match(text) and len(first) < 4):
                month, day = day, month
            hours = int(hour) % 12 + (12 if half.lower() == "pm" else 0) if half else int(hour)
            ahead = timedelta(hours=int(zone or 0), minutes=int(zone_minutes or 0))
            return _stamp(datetime(int(year), int(month), int(day), hours, int(minute), int(second or 0)) - ahead)
    except (ValueError, KeyError, OverflowError):
        return None
    return None


def _stamp(when: datetime) -> float | None:
    """Seconds since 1970; a time without a zone counts as UTC."""
    try:
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        return None


def first_text(record: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of some fields that holds something, as an id."""
    return next((text for name in names if (text := as_text(record.get(name)))), None)


def is_scale(values: Sequence[str]) -> bool:
    """Whether answers are numbers or few words, and no free text."""
    return bool(values) and (all(as_number(value) is not None for value in values) or len(set(values)) <= _MOST_WORDS)
