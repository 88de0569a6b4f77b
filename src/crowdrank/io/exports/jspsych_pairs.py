"""jsPsych trials that show two things: which they are, and which of them was chosen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...data.columns import what_numbers_mean
from ...errors import JudgmentError
from ...wording import either, first_few, option
from .cells import as_number, as_text
from .imported import Collector
from .pair_columns import pair_columns, side

_MEDIA = re.compile(r"<(?:img|audio|video|source)\b[^>]*?\bsrc\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_OWN = {
    "rt", "stimulus", "response", "responses", "trial_type", "trial_index", "time_elapsed", "internal_node_id",
    "button_pressed", "choices", "plugin_version",
}  # fmt: skip

Trial = Mapping[str, Any]


class Sides(NamedTuple):
    """How trials tell the two things that they show."""

    left: str
    right: str
    pair: Callable[[Trial], tuple[str, str] | None]
    numbered: bool = False
    """Whether the answer is the number of the one that was chosen."""

    def winner(self, trial: Trial, answer: Any) -> str | None:
        """Who was chosen, as far as the file tells it; else the answer as it is."""
        shown = self.pair(trial) or ("", "")
        number = as_number(answer)
        if self.numbered and number in (0, 1):
            return "left" if number == 0 else "right"
        return side(answer, (self.left, self.right), shown) or as_text(answer)


def sides_of(trials: Sequence[Trial], columns: Mapping[str, str]) -> Sides | None:
    """Return how trials of one type tell the two things they show; ``None`` where they show one.

    In this order: the fields that the user names, buttons that are not the same in all trials, two fields such as
    ``left_image`` and ``right_image``, two pictures in the stimulus.
    """
    if not trials or not {"left", "right"}.isdisjoint(columns):
        return _fields(columns.get("left", ""), columns.get("right", "")) if trials else None
    if "item" in columns or "grade" in columns:
        return None
    choices = [_entries(trial.get("choices")) for trial in trials]
    if all(len(one) > 1 for one in choices) and len({tuple(sorted(one)) for one in choices}) > 1:
        if any(len(one) > 2 for one in choices):
            raise JudgmentError(
                "trials offer three or more buttons that are not always the same; only choices between two are read, "
                "so write one row per button and rank"
            )
        return Sides("choices[0]", "choices[1]", lambda trial: _two(_entries(trial.get("choices"))), numbered=True)
    names = dict.fromkeys(name for trial in trials for name in trial if name not in _OWN)
    varied = [name for name in names if len({as_text(trial.get(name)) for trial in trials}) > 1]
    fields = pair_columns(varied)
    if fields is not None:
        return _fields(*fields)
    shown = [_stimuli(trial.get("stimulus")) for trial in trials]
    if all(one is not None for one in shown) and len(set(shown)) > 1:
        return Sides("first of the stimulus", "second of the stimulus", lambda trial: _stimuli(trial.get("stimulus")))
    return None


def add_pair(rows: Collector, trial: Trial, answer: Any, sides: Sides, cells: Mapping[str, Any]) -> None:
    """Add the preference of a trial, or count why there is none."""
    pair = sides.pair(trial)
    if pair is None or as_text(answer) in (None, "null"):
        rows.drop("without two items" if pair is None else "without an answer")
    else:
        rows.add(trial, left=pair[0], right=pair[1], winner=sides.winner(trial, answer), **cells)


def check_winners(
    sides: Sides, answers: Sequence[Any], trials: Sequence[Trial], codes: Mapping[Any, str] | None
) -> None:
    """Refuse answers, such as numbers of buttons, that do not say which of the two was chosen."""
    if codes is not None:
        return
    winners = [sides.winner(trial, answer) for trial, answer in zip(trials, answers, strict=True)]
    unclear = list(dict.fromkeys(winner for winner in winners if winner and winner not in _CLEAR))
    if not unclear:
        return
    values = sorted(unclear, key=lambda value: (as_number(value) or 0.0, value))
    numbers = all(as_number(value) is not None for value in values)
    if len(values) == 2:
        ways = [dict(zip(values, words, strict=True)) for words in (("left", "right"), ("right", "left"))]
        asked = either([option("winner_codes", way) for way in ways])
        buttons = " (buttons are numbered from 0 in the order in which they were shown)" if numbers else ""
        raise JudgmentError(
            f"pairs of {sides.left!r} and {sides.right!r}, and 'response' holds {values[0]} and {values[1]}; say what "
            f"they mean: {asked}{buttons}"
        )
    if numbers:
        raise JudgmentError(what_numbers_mean("response", values, sides.left, sides.right))
    raise JudgmentError(
        f"pairs of {sides.left!r} and {sides.right!r}, but 'response' holds {first_few(map(repr, unclear))}; say what "
        f"each means with {option('winner_codes', dict.fromkeys(unclear[:2], ...))}"
    )


_CLEAR = ("left", "right", "tie")


def _fields(left: str, right: str) -> Sides:
    """Two fields of a trial."""
    return Sides(left, right, lambda trial: _two([as_text(trial.get(left)), as_text(trial.get(right))]))


def _two(values: Sequence[str | None]) -> tuple[str, str] | None:
    """Two values where both are there."""
    if len(values) != 2 or values[0] is None or values[1] is None:
        return None
    return values[0], values[1]


def _entries(value: Any) -> list[str]:
    """The entries of a list, which CSV holds as JSON."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return [text for one in value if (text := as_text(one))] if isinstance(value, list) else []


def _stimuli(value: Any) -> tuple[str, str] | None:
    """The two things that a stimulus shows: entries of a list, or files of the page."""
    return _two(_entries(value) or _MEDIA.findall(as_text(value) or ""))
