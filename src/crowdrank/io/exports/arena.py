"""Chatbot Arena: battles of two models with a vote, as published with 33, 55, 100 and 140 thousand conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ...data.covariates import parse_covariates
from ...errors import JudgmentError
from ..read_options import ReadOptions
from ..sources import Source
from .answer_style import style_cells
from .cells import as_number, as_text, as_truth
from .detection import look
from .imported import Collector, Imported
from .pair_columns import side
from .streaming import records

_TITLE = "arena battles (model_a, model_b)"
_FIELDS = (
    "id", "question_id", "model_a", "model_b", "winner", "winner_model_a", "winner_model_b", "winner_tie",
    "winner_tie (bothbad)", "winner_tie_bothbad", "judge", "evaluation_session_id", "judge_hash", "user_id", "tstamp",
    "timestamp", "turn", "language", "anony", "category_tag",
)  # fmt: skip
_TEXTS = (("conversation_a", "conversation_b"), ("response_a", "response_b"))
_WHO = ("judge", "judge_hash", "evaluation_session_id", "user_id")
_HOT = (
    ("winner_model_a", "left"), ("winner_model_b", "right"), ("winner_tie", "tie"), ("winner_tie (bothbad)", "tie"),
    ("winner_tie_bothbad", "tie"),
)  # fmt: skip


def read(source: Source, options: ReadOptions) -> Imported:
    """Return one preference for each battle."""
    rows = Collector(source, options, unit="battle")
    turns: list[str | None] = []
    both_bad = 0
    fields = [*_FIELDS, *(path.split(".")[0] for path in (*options.columns.values(), *options.where))]
    if options.covariates:
        # conversations are long, and spared where their style is counted already
        fields += ["conv_metadata"] if look(source).has("conv_metadata") else sum(_TEXTS, ())
        fields += [form.format(name) for name in parse_covariates(options.covariates) for form in ("{}_a", "{}_b")]
    for number, record in enumerate(records(source, fields), 1):
        if not rows.is_wanted(record):
            continue
        rows.n_read += 1
        winner, bad = _winner(record, number)
        left, right = as_text(record.get("model_a")), as_text(record.get("model_b"))
        if winner is None or left is None or right is None or left == right:
            rows.drop("without a winner" if winner is None else "of a model with itself" if left else "without a model")
            continue
        both_bad += bad
        query = as_text(record.get("question_id")) or as_text(record.get("id")) or str(number)
        who = next((annotator for name in _WHO if (annotator := as_text(record.get(name)))), None)
        time = record.get("tstamp", record.get("timestamp"))
        texts = next((pair for pair in _TEXTS if pair[0] in record), _TEXTS[0])
        style = style_cells(options, record, ("a", "b"), (record.get(texts[0]), record.get(texts[1])))
        rows.add(record, query=query, left=left, right=right, winner=winner, annotator=who, time=time, **style)
        turns.append(as_text(record.get("turn")))
    rows.roles |= {
        "left": "model_a", "right": "model_b", "winner": "winner", "query": "question_id or id",
        "annotator": "judge or evaluation_session_id", "time": "tstamp or timestamp",
    }  # fmt: skip
    if both_bad:
        rows.notes.append(f"{both_bad:,} battles with both bad are ties")
    imported = rows.finish("preference", title=_TITLE)
    return _with_turns(imported, turns) if "query" not in options.columns else imported


def _winner(record: Mapping[str, Any], number: int) -> tuple[str | None, bool]:
    """Who won, and whether both were bad."""
    word = as_text(record.get("winner"))
    if word is not None or "winner_model_a" not in record:
        winner = side(word)
        if word is not None and winner is None:
            raise JudgmentError(f"battle {number} has the winner {word!r}, which is none of model_a, model_b and tie")
        return winner, word is not None and "bad" in word.lower()
    flags = [(name, outcome, _flag(record[name])) for name, outcome in _HOT if name in record]
    won = [(name, outcome) for name, outcome, flag in flags if flag]
    if len(won) != 1 or any(flag is None for *_, flag in flags):
        raise JudgmentError(
            f"battle {number} has {len(won)} winners in winner_model_a, winner_model_b and winner_tie; one of them "
            "must be 1 and the others 0"
        )
    return won[0][1], "bad" in won[0][0]


def _flag(value: Any) -> bool | None:
    """Whether a one-hot cell is set."""
    number = as_number(value)
    return as_truth(value) if number is None else {0.0: False, 1.0: True}.get(number)


def _with_turns(imported: Imported, turns: list[str | None]) -> Imported:
    """Queries distinguished by turn, where the same question is judged after several."""
    from dataclasses import replace

    frame = imported.frame.with_columns(turn=pl.Series(turns, dtype=pl.String))
    asked = frame.select("query", "turn").unique()
    if None in turns or asked.height == asked["query"].n_unique():
        return imported
    named = frame.with_columns(query=pl.format("{}, turn {}", "query", "turn")).drop("turn")
    return replace(imported, frame=named, roles={**imported.roles, "query": "question_id, turn"})
