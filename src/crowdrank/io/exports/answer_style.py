"""How two answers that are compared look: counts that a file holds, or the texts in which style is counted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ...data.covariates import parse_covariates
from ..read_options import ReadOptions
from .cells import as_number, message_text

_COUNTS = {
    "length": ("sum_assistant_{}_tokens", "token_len_{}", "len_{}", "answer_length_{}"),
    "headers": ("header_count_{}",),
    "bold": ("bold_count_{}",),
    "lists": ("list_count_{}",),
}
"""Covariate -> the fields in which arenas count it for each side, as a number or by kind."""

_PLAIN = ("{name}_{side}", "{side}_{name}")
_SHOWN = re.compile(
    r"(?:\[|<\|)The Start of Assistant (?P<side>[AB])'s (?:Answer|Conversation with User)(?:\]|\|>)\n*(?P<text>.*?)\n*"
    r"(?:\[|<\|)The End of Assistant (?P=side)'s (?:Answer|Conversation with User)(?:\]|\|>)",
    re.DOTALL,
)
_TURN = re.compile(r"### (?:User|Assistant [AB]):\n")


def style_cells(
    options: ReadOptions, record: Mapping[str, Any], sides: tuple[str, str], texts: tuple[Any, Any]
) -> dict[str, Any]:
    """Return covariates of two answers that the record counts, and the texts where it does not count them all.

    Nothing is looked for unless covariates are asked for. ``sides`` are the ends of the fields of left and right.
    """
    if not options.covariates:
        return {}
    counted = record.get("conv_metadata")
    counted = _parse_json(counted) if isinstance(counted, str) else counted
    places = [one for one in (counted, record) if isinstance(one, Mapping)]
    cells: dict[str, Any] = {}
    names = parse_covariates(options.covariates)
    for name in names:
        forms = [*_COUNTS.get(name, ()), *(form.replace("{name}", name).replace("{side}", "{}") for form in _PLAIN)]
        for place in places:
            pairs = ([_total(place.get(form.format(side))) for side in sides] for form in forms)
            pair = next((pair for pair in pairs if None not in pair), None)
            if pair is not None:
                cells |= {f"{name}_left": pair[0], f"{name}_right": pair[1]}
                break
    if len(cells) < 2 * len(names):
        cells |= {"left_text": answer_text(texts[0]), "right_text": answer_text(texts[1])}
    return cells


def answer_text(value: Any) -> str | None:
    """Return what a model says: a text, or its messages of a conversation together.

    Examples
    --------
    >>> answer_text([{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}])
    'So.'
    >>> answer_text('["one", "two"]'), answer_text("plain"), answer_text(None)
    ('one\\n\\ntwo', 'plain', None)
    """
    if isinstance(value, str) and value[:1] == "[" and (held := _parse_json(value)) is not None:
        value = held
    if not isinstance(value, list):
        return value if isinstance(value, str) else message_text(value)
    said = [one for one in value if not isinstance(one, Mapping) or one.get("role", "assistant") == "assistant"]
    texts = [text for one in said if (text := message_text([one])) is not None]
    return "\n\n".join(texts) if texts or said else None


def shown_answers(prompt: Any) -> tuple[str | None, str | None]:
    """Return the answers of A and B that a judge was shown, out of the prompt of FastChat or Arena-Hard.

    Examples
    --------
    >>> shown_answers("[The Start of Assistant A's Answer]\\nyes\\n[The End of Assistant A's Answer]")
    ('yes', None)
    """
    answers: dict[str, str] = {}
    for match in _SHOWN.finditer(message_text(prompt) or ""):
        # of a conversation every second part is the assistant's
        parts = _TURN.split(match["text"])
        answers[match["side"]] = "\n\n".join(part.strip() for part in parts[2::2]) if len(parts) > 2 else match["text"]
    return answers.get("A"), answers.get("B")


def _parse_json(text: str) -> Any:
    """What a cell of JSON holds, ``None`` where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _total(value: Any) -> float | None:
    """A count, or the sum of counts by kind, such as ordered and unordered lists."""
    if isinstance(value, Mapping):
        numbers = [number for one in value.values() if (number := as_number(one)) is not None]
        return sum(numbers) if numbers else None
    return as_number(value)
