"""Answers as annotators send them, in the letters of the items shown, and as they are kept, by the items themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from .campaign_file import Settings
from .faults import Fault

LABELS = "abcdefghijklmnopqrstuvwxyz"


def kept_answer(settings: Settings, order: Sequence[int], answer: Any) -> dict[str, Any]:
    """Return an answer as it is kept; refuse one that does not fit what was asked.

    Examples
    --------
    >>> settings = Settings(name="x", kind="preference", budget=1)
    >>> kept_answer(settings, [12, 15], {"winner": "b"})
    {'left': 12, 'right': 15, 'winner': 'right'}
    """
    key = {"grade": "grade", "preference": "winner", "ranking": "order"}[settings.kind]
    if not isinstance(answer, dict) or set(answer) != {key}:
        raise Fault("invalid", f"answer must be an object with the one key {key!r}", field="answer")
    value = answer[key]
    if settings.kind == "grade":
        top = len(settings.grades) - 1
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= top:
            raise Fault("invalid", f"answer.grade must be a whole number from 0 to {top}", field="answer.grade")
        return {"grade": value}
    if settings.kind == "preference":
        sides = {"a": "left", "b": "right"} | ({"tie": "tie"} if settings.ties else {})
        if not isinstance(value, str) or value not in sides:
            words = "'a', 'b' or 'tie'" if settings.ties else "'a' or 'b'"
            raise Fault("invalid", f"answer.winner must be {words}", field="answer.winner")
        return {"left": order[0], "right": order[1], "winner": sides[value]}
    return {"order": _kept_order(order, value)}


def shown_answer(settings: Settings, order: Sequence[int], kept: dict[str, Any]) -> dict[str, Any]:
    """Return a kept answer in the letters of the items shown.

    Examples
    --------
    >>> settings = Settings(name="x", kind="ranking", budget=1)
    >>> shown_answer(settings, [12, 15], kept_answer(settings, [12, 15], {"order": [["b"], ["a"]]}))
    {'order': [['b'], ['a']]}
    """
    if settings.kind == "grade":
        return kept
    if settings.kind == "preference":
        if kept["winner"] == "tie":
            return {"winner": "tie"}
        return {"winner": "a" if kept[kept["winner"]] == order[0] else "b"}
    letters = {item: LABELS[place] for place, item in enumerate(order)}
    return {"order": [[letters[item] for item in group] for group in kept["order"]]}


def body_hash(request: Any, answer: Any, seconds: Any) -> str:
    """Return a fingerprint of what was sent, by which a repeat is distinguished from another answer."""
    plain = json.dumps([request, answer, seconds], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def _kept_order(order: Sequence[int], value: Any) -> list[list[int]]:
    """A ranking in groups of tied items, each item once."""
    letters = {LABELS[place]: item for place, item in enumerate(order)}
    groups = value if isinstance(value, list) else []
    flat = [one for group in groups if isinstance(group, list) for one in group]
    whole = all(isinstance(group, list) and group for group in groups)
    if not whole or any(not isinstance(one, str) for one in flat) or sorted(flat) != sorted(letters):
        raise Fault(
            "invalid",
            f"answer.order must hold each of {', '.join(letters)} once, in lists from best to worst, ties in one list",
            field="answer.order",
        )
    return [[letters[one] for one in group] for group in groups]
