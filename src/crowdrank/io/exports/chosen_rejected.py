"""Preference data for training: a chosen and a rejected answer each, as text or as a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from ...data.column_names import FOREIGN
from ..read_options import ReadOptions
from ..sources import Source
from .cells import as_text, first_filled, message_text
from .imported import Collector, Imported
from .pair_columns import CONTEXTS
from .streaming import records

_TITLE = "chosen and rejected answers"
_TURN = "\n\nAssistant:"
_FIRST_RECORDS = 1000
_MODELS = (("chosen_model", "rejected_model"), ("chosen-model", "rejected-model"))


def read(source: Source, options: ReadOptions) -> Imported:
    """Return one preference for each pair; who was shown left is not known."""
    rows = Collector(source, options, unit="pair")
    first = list(islice(records(source), _FIRST_RECORDS))
    names = next(
        (pair for pair in _MODELS if first and all(as_text(one.get(name)) for one in first for name in pair)), None
    )
    who = next(
        (name for name in ("annotator", *FOREIGN["annotator"]) if any(as_text(one.get(name)) for one in first)), None
    )
    together = _is_one_query(first)
    for number, record in enumerate(records(source), 1):
        if not rows.is_wanted(record):
            continue
        rows.n_read += 1
        if names is not None:
            pairs = [(as_text(record.get(names[0])), as_text(record.get(names[1])))]
        else:
            pairs = _pairs(record.get("chosen"), record.get("rejected"))
        rows.n_read += len(pairs) - 1
        for winner, loser in pairs:
            if winner is None or loser is None:
                rows.drop("without two answers")
            elif winner == loser:
                rows.drop("of a model with itself" if names else "with the same answer twice")
            else:
                cells = {"annotator": as_text(record.get(who))} if who else {}
                if not together:
                    cells["query"] = _context(record) or str(number)
                rows.add(record, winner=winner, loser=loser, **cells)
    winner, loser = names or ("chosen", "rejected")
    rows.roles |= {"winner": winner, "loser": loser}
    rows.roles |= {"query": "prompt, or what stands before the answer", "annotator": who or ""}
    if together:
        rows.notes.append("no prompt is given and answers recur, so all pairs are taken as one query")
    rows.notes.append("which answer was shown on which side is not known")
    return rows.finish("preference", title=_TITLE)


def _pairs(chosen: Any, rejected: Any) -> list[tuple[str | None, str | None]]:
    """Each chosen with each rejected answer, of which there may be several in a list of texts."""
    both = [value for value in (chosen, rejected) if isinstance(value, list)]
    texts = len(both) == 2 and all(isinstance(one, str) for value in both for one in value)
    if not texts or (len(chosen) == len(rejected) > 1 and chosen[:-1] == rejected[:-1]):
        return [(_answer(chosen), _answer(rejected))]
    return [(as_text(winner), as_text(loser)) for winner in chosen for loser in rejected] or [(None, None)]


def _answer(value: Any) -> str | None:
    """The answer itself: the last message, or what stands behind the last turn of a dialogue in one text."""
    text = message_text(value)
    return text.rsplit(_TURN, 1)[-1].strip() or None if text is not None and _TURN in text else text


def _is_one_query(first: list[dict[str, Any]]) -> bool:
    """Whether no record says what was asked and answers occur in several of them, so that all belong together."""
    if any(_context(record) is not None for record in first):
        return False
    answers = [{text for pair in _pairs(one.get("chosen"), one.get("rejected")) for text in pair} for one in first]
    return sum(map(len, answers)) > len(set().union(*answers))


def _context(record: Mapping[str, Any]) -> str | None:
    """What was asked, or the id of the record; ``None`` where nothing says so."""
    field = first_filled(record, CONTEXTS)
    if field is not None and (text := message_text(field[1])):
        return text
    chosen = record.get("chosen")
    several = len(_pairs(chosen, record.get("rejected"))) > 1
    if isinstance(chosen, list) and len(chosen) > 1 and not several and (text := message_text(chosen[:-1])):
        return text
    if isinstance(chosen, str) and _TURN in chosen:
        return chosen.rsplit(_TURN, 1)[0].strip() or None
    return next((text for name in ("id", "prompt_id") if (text := as_text(record.get(name)))), None)
