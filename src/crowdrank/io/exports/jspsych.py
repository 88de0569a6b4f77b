"""jsPsych: a row or object for each trial of an experiment."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import JudgmentError
from ...wording import counted, first_few, option
from ..read_options import ReadOptions
from ..sources import Source
from ..tables import table_format
from .cells import as_number, as_text
from .imported import Collector, Imported
from .jspsych_pairs import add_pair, check_winners, sides_of
from .streaming import json_values, records

_TITLE = "jsPsych trials (trial_type, trial_index, time_elapsed)"
_WHO = (
    "subject", "subject_id", "subjectId", "participant_id", "participant", "participantId", "PROLIFIC_PID",
    "prolific_pid", "prolific_id", "workerId", "worker_id", "sona_id", "run_id", "session_id",
    "subjectID", "subjID", "pid", "ID", "id",
)  # fmt: skip
_NOT_ITEMS = (
    "rt", "response", "responses", "button_pressed", "trial_type", "trial_index", "time_elapsed", "internal_node_id",
    "plugin_version", "number of the list",
)  # fmt: skip
_LIST = "number of the list"
"""Who a trial is by in a file with one list for each participant that does not name them."""


def read(source: Source, options: ReadOptions) -> Imported:
    """Return the answers of the commonest kind of rating trial."""
    rows = Collector(source, options, unit="trial")
    trials = [trial for trial in _trials(source) if rows.is_wanted(trial)]
    rows.n_read = len(trials)
    wanted = options.answer or _commonest(trials, options)
    who = _participant(trials)
    alone = Path(source.name).stem if who is None and _one_session(trials) else None
    chosen = _trials_with_answer(trials, wanted)
    sides = sides_of(chosen, options.columns)
    for trial in trials:
        kind = as_text(trial.get("trial_type")) or "without a trial_type"
        if kind != wanted:
            rows.drop(kind)
            continue
        cells = {"annotator": as_text(trial.get(who)) if who else alone, "duration": _seconds(trial.get("rt"))}
        if sides is None:
            _add_grades(rows, trial, cells)
        else:
            add_pair(rows, trial, _response(trial), sides, cells)
    rows.roles |= {"duration": "rt (milliseconds)", "annotator": who or "name of the file"}
    if sides is not None:
        check_winners(sides, [_response(trial) for trial in chosen], chosen, options.winner_codes)
        rows.roles |= {"left": sides.left, "right": sides.right, "winner": "response"}
        return rows.finish("preference", title=_TITLE)
    if "item" not in options.columns:
        _check_stimuli(chosen)
    rows.roles |= {"item": "stimulus, or the question of a scale", "grade": "response"}
    if "button" in wanted:
        rows.notes.append(
            f"answers are the numbers of buttons, from 0; give {option('levels')} if the last is not the best"
        )
    return rows.finish("grade", title=_TITLE)


def _trials_with_answer(trials: list[dict[str, Any]], wanted: str) -> list[dict[str, Any]]:
    """The trials of one type that have an answer."""
    return [
        trial
        for trial in trials
        if as_text(trial.get("trial_type")) == wanted and as_text(_response(trial)) not in (None, "null")
    ]


def _add_grades(rows: Collector, trial: dict[str, Any], cells: dict[str, Any]) -> None:
    """Add the answer of a trial as a grade of its stimulus, or the answers of each question as one of that."""
    given = _response(trial)
    if isinstance(given, Mapping):
        filled = {name: value for name, value in given.items() if as_text(value) is not None}
        for name, value in filled.items():
            rows.add(trial, item=name, grade=value, **cells)
        if filled:
            return
    if isinstance(given, Mapping) or as_text(given) in (None, "null"):
        rows.drop("without an answer")
    else:
        rows.add(trial, item=as_text(trial.get("stimulus")), grade=given, **cells)


def _check_stimuli(trials: list[dict[str, Any]]) -> None:
    """Refuse trials that all have the same stimulus where another field differs, which may be what was rated."""
    plain = [trial for trial in trials if not isinstance(_response(trial), Mapping)]
    if len({as_text(trial.get("stimulus")) for trial in plain}) != 1:
        return
    names = dict.fromkeys(name for trial in plain for name in trial if name not in (*_WHO, *_NOT_ITEMS))
    varied = [name for name in names if len({as_text(trial.get(name)) for trial in plain}) > 1]
    if varied:
        raise JudgmentError(
            f"all {len(plain):,} trials have the stimulus {(as_text(plain[0].get('stimulus')) or '')[:60]!r}, so what "
            f"was rated is in another field; name it with {option('columns', {'item': varied[0]})}, or two that were "
            f"compared with {option('columns', {'left': ..., 'right': ...})}"
        )


def _commonest(trials: list[dict[str, Any]], options: ReadOptions) -> str:
    """The type of rating trial of which there are most: sliders and scales, buttons with numbers, or pairs."""
    counts: Counter[str] = Counter()
    for trial in trials:
        kind = as_text(trial.get("trial_type")) or ""
        given = _response(trial)
        rated = "slider" in kind or "likert" in kind or ("button" in kind and as_number(given) is not None)
        counts[kind] += rated and as_text(given) not in (None, "null")
    if not +counts:
        keyed = Counter(as_text(trial.get("trial_type")) or "" for trial in trials if as_text(_response(trial)))
        counts.update(
            {kind: n for kind, n in keyed.items() if sides_of(_trials_with_answer(trials, kind), options.columns)}
        )
    commonest = counts.most_common(1)
    if not commonest or not commonest[0][1]:
        types = Counter(as_text(trial.get("trial_type")) or "" for trial in trials if as_text(_response(trial)))
        known = [kind for kind, _ in types.most_common() if kind]
        held = f", only {first_few(map(repr, known))}" if known else ""
        raise JudgmentError(
            f"{counted(len(trials), 'trial')}, of which none has a slider, a scale or numbered buttons{held}; name the "
            f"trial type that holds the answers with {option('answer', (known or ['html-button-response'])[0])}"
        )
    return commonest[0][0]


def _response(trial: Mapping[str, Any]) -> Any:
    """What was answered; an object where a trial has several questions."""
    given = next((trial[key] for key in ("response", "responses", "button_pressed") if as_text(trial.get(key))), None)
    if isinstance(given, str) and given.startswith("{"):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return None
    return given


def _participant(trials: list[dict[str, Any]]) -> str | None:
    """The field that names the participant: the first under which no trial number occurs twice, else the first."""
    named = [name for name in (*_WHO, _LIST) if any(as_text(trial.get(name)) for trial in trials)]
    for name in named:
        keys = [(as_text(trial.get(name)), as_text(trial.get("trial_index"))) for trial in trials]
        if len(set(keys)) == len(keys):
            return name
    return next(iter(named), None)


def _seconds(milliseconds: Any) -> float | None:
    """A response time in seconds."""
    number = as_number(milliseconds)
    return None if number is None else number / 1000


def _one_session(trials: list[dict[str, Any]]) -> bool:
    """Whether no trial number occurs twice, so that the file is of one participant."""
    numbers = [as_text(trial.get("trial_index")) for trial in trials]
    return len(set(numbers)) == len(numbers)


def _trials(source: Source) -> Iterator[dict[str, Any]]:
    """The trials, also of a file with one list for each participant."""
    if table_format(source) not in ("json", "jsonl"):
        yield from records(source)
        return
    for number, value in enumerate(json_values(source), 1):
        for trial in value if isinstance(value, list) else [value]:
            if isinstance(trial, dict):
                yield {_LIST: str(number)} | trial if isinstance(value, list) else trial
