"""jsPsych: a row or object for each trial of an experiment, which shows one thing to rate or two to choose from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...data.columns import what_numbers_mean
from ...errors import JudgmentError
from ...wording import counted, either, first_few, option
from ..sources import Source
from ..tables import table_format
from .cells import as_number, as_text, pair_columns, parse_json, side
from .imported import Collector, Imported
from .streaming import Record, json_values, records

# who a trial is by in a file with one list for each participant that does not name them
_LIST = "number of the list"
_MEDIA = re.compile(r"<(?:img|audio|video|source)\b[^>]*?\bsrc\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)

Trial = Mapping[str, Any]


def read(rows: Collector) -> Imported:
    """Return the answers of the commonest kind of rating trial."""
    options = rows.options
    trials = [trial for trial in _trials(rows.source) if rows.is_wanted(trial)]
    rows.n_read = len(trials)
    wanted = options.answer or _commonest(rows, trials)
    who, one_session = _participant(rows, trials)
    alone = Path(rows.source.name).stem if who is None and one_session else None
    chosen = _trials_with_answer(trials, wanted)
    sides = _sides_of(rows, chosen)
    for trial in trials:
        kind = as_text(trial.get("trial_type")) or "without a trial_type"
        if kind != wanted:
            rows.drop(kind)
            continue
        given, milliseconds = _response(trial), as_number(trial.get("rt"))
        answered = as_text(given) not in (None, "null")
        cells = {
            "annotator": as_text(trial.get(who)) if who else alone,
            "duration": None if milliseconds is None else milliseconds / 1000,
        }
        if sides is not None:
            pair = sides.pair(trial)
            if pair is None or not answered:
                rows.drop("without two items" if pair is None else "without an answer")
            else:
                rows.add(trial, left=pair[0], right=pair[1], winner=sides.winner(trial, given), **cells)
            continue
        # the answer is a grade of the stimulus, or the answers are one of each question
        graded = given if isinstance(given, Mapping) else {as_text(trial.get("stimulus")): given} if answered else {}
        filled = {name: value for name, value in graded.items() if as_text(value) is not None}
        if not filled:
            rows.drop("without an answer")
        for name, value in filled.items():
            rows.add(trial, item=name, grade=value, **cells)
    rows.roles |= {"annotator": who} if who else {}
    if sides is not None:
        if options.winner_codes is None:
            _check_winners(rows, sides, chosen)
        rows.roles |= {"left": sides.left, "right": sides.right}
        return rows.finish("preference")
    if "item" not in options.columns:
        _check_stimuli(rows, chosen)
    if "button" in wanted:
        rows.note("buttons", levels=option("levels"))
    return rows.finish("grade")


def _trials(source: Source) -> Iterator[Record]:
    """The trials, also of a file with one list for each participant."""
    if table_format(source) not in ("json", "jsonl"):
        yield from records(source)
        return
    for number, value in enumerate(json_values(source), 1):
        for trial in value if isinstance(value, list) else [value]:
            if isinstance(trial, dict):
                yield {_LIST: str(number)} | trial if isinstance(value, list) else trial


def _response(trial: Trial) -> Any:
    """What was answered; an object where a trial has several questions."""
    given = next((trial[key] for key in ("response", "responses", "button_pressed") if as_text(trial.get(key))), None)
    return parse_json(given) if isinstance(given, str) and given.startswith("{") else given


def _trials_with_answer(trials: list[dict[str, Any]], wanted: str) -> list[dict[str, Any]]:
    """The trials of one type that have an answer."""
    alike = [trial for trial in trials if as_text(trial.get("trial_type")) == wanted]
    return [trial for trial in alike if as_text(_response(trial)) not in (None, "null")]


def _commonest(rows: Collector, trials: list[Record]) -> str:
    """The type of rating trial of which there are most: sliders and scales, buttons with numbers, or pairs."""
    counts, answered = Counter[str](), Counter[str]()
    for trial in trials:
        kind, given = as_text(trial.get("trial_type")) or "", _response(trial)
        rated = "slider" in kind or "likert" in kind or ("button" in kind and as_number(given) is not None)
        counts[kind] += rated and as_text(given) not in (None, "null")
        answered[kind] += bool(as_text(given))
    answered = +answered
    if not +counts:
        for kind, n in answered.items():
            counts[kind] += n if _sides_of(rows, _trials_with_answer(trials, kind)) else 0
    commonest = counts.most_common(1)
    if not commonest or not commonest[0][1]:
        known = [kind for kind, _ in answered.most_common() if kind]
        held = f", only {first_few(map(repr, known))}" if known else ""
        answer = option("answer", (known or ["html-button-response"])[0])
        rows.refuse("no_ratings", trials=counted(len(trials), "trial"), held=held, answer=answer)
    return commonest[0][0]


def _participant(rows: Collector, trials: list[Record]) -> tuple[str | None, bool]:
    """The field that names the participant, and whether the file is of one.

    It is the first under which no trial number occurs twice, else the first; a file of one has each number once.
    """
    numbers = [as_text(trial.get("trial_index")) for trial in trials]
    known = (*rows.export.fields["who"], _LIST)
    named = [name for name in known if any(as_text(trial.get(name)) for trial in trials)]
    for name in named:
        seen = {(as_text(trial.get(name)), number) for trial, number in zip(trials, numbers, strict=True)}
        if len(seen) == len(trials):
            return name, False
    return next(iter(named), None), len(set(numbers)) == len(numbers)


def _check_stimuli(rows: Collector, trials: list[Record]) -> None:
    """Refuse trials that all have the same stimulus where another field differs, which may be what was rated."""
    plain = [trial for trial in trials if not isinstance(_response(trial), Mapping)]
    if len({as_text(trial.get("stimulus")) for trial in plain}) != 1:
        return
    fields = rows.export.fields
    varied = _varying_keys(plain, {*fields["who"], *fields["own"], _LIST})
    if varied:
        stimulus = (as_text(plain[0].get("stimulus")) or "")[:60]
        item, sides = (option("columns", named) for named in ({"item": varied[0]}, {"left": ..., "right": ...}))
        rows.refuse("one_stimulus", n=len(plain), stimulus=stimulus, item=item, sides=sides)


def _varying_keys(trials: Sequence[Trial], aside: set[str]) -> list[str]:
    """The fields that are not the same in all trials."""
    names = dict.fromkeys(name for trial in trials for name in trial if name not in aside)
    return [name for name in names if len({as_text(trial.get(name)) for trial in trials}) > 1]


# trials that show two things -----------------------------------------------------------------------------------------


class _Sides(NamedTuple):
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


def _sides_of(rows: Collector, trials: Sequence[Trial]) -> _Sides | None:
    """How trials of one type tell the two things they show; ``None`` where they show one.

    In this order: the fields that the user names, buttons that are not the same in all trials, two fields such as
    ``left_image`` and ``right_image``, two pictures in the stimulus.
    """
    if not trials:
        return None
    columns = rows.options.columns
    fields = None if {"left", "right"}.isdisjoint(columns) else (columns.get("left", ""), columns.get("right", ""))
    if fields is None:
        if "item" in columns or "grade" in columns:
            return None
        choices = [_entries(trial.get("choices")) for trial in trials]
        if all(len(one) > 1 for one in choices) and len({tuple(sorted(one)) for one in choices}) > 1:
            if any(len(one) > 2 for one in choices):
                rows.refuse("many_buttons")
            return _Sides("choices[0]", "choices[1]", lambda trial: _two(_entries(trial.get("choices"))), numbered=True)
        fields = pair_columns(_varying_keys(trials, {*rows.export.fields["own"], "stimulus", "choices"}))
    if fields is not None:
        left, right = fields
        return _Sides(left, right, lambda trial: _two([as_text(trial.get(left)), as_text(trial.get(right))]))
    shown = [_stimuli(trial.get("stimulus")) for trial in trials]
    if all(one is not None for one in shown) and len(set(shown)) > 1:
        return _Sides("first of the stimulus", "second of the stimulus", lambda trial: _stimuli(trial.get("stimulus")))
    return None


def _check_winners(rows: Collector, sides: _Sides, trials: Sequence[Trial]) -> None:
    """Refuse answers, such as numbers of buttons, that do not say which of the two was chosen."""
    winners = [sides.winner(trial, _response(trial)) for trial in trials]
    unclear = list(dict.fromkeys(one for one in winners if one and one not in ("left", "right", "tie")))
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
    codes = option("winner_codes", dict.fromkeys(unclear[:2], ...))
    rows.refuse("words", left=sides.left, right=sides.right, held=first_few(map(repr, unclear)), codes=codes)


def _two(values: Sequence[str | None]) -> tuple[str, str] | None:
    """Two values where both are there."""
    both = [value for value in values if value is not None]
    return (both[0], both[1]) if len(both) == len(values) == 2 else None


def _entries(value: Any) -> list[str]:
    """The entries of a list, which CSV holds as JSON."""
    if isinstance(value, str) and value.startswith("["):
        value = parse_json(value)
    return [text for one in value if (text := as_text(one))] if isinstance(value, list) else []


def _stimuli(value: Any) -> tuple[str, str] | None:
    """The two things that a stimulus shows: entries of a list, or files of the page."""
    return _two(_entries(value) or _MEDIA.findall(as_text(value) or ""))
