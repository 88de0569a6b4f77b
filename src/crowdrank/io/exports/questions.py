"""Which question of a file is meant, and answers that name several labels or order several names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import JudgmentError
from ...wording import did_you_mean, first_few, option
from .cells import as_text
from .imported import Collector


def choose_question(
    names: Iterable[str], answer: str | None, *, what: str = "answers to", field: str | None = None
) -> str:
    """Return the question that is meant: the only one, or the one that ``answer`` names.

    Where ``field`` names them in each record, rows may be chosen by it too.
    """
    known = list(dict.fromkeys(names))
    if answer is not None:
        if answer in known:
            return answer
        named = first_few(map(repr, known), shown=12)
        raise JudgmentError(f"there is no {answer!r}; {did_you_mean(answer, known)}the file has {what} {named}")
    if len(known) == 1:
        return known[0]
    if not known:
        if what != "answers to":
            raise JudgmentError(f"the file has no {what.removeprefix('the ')}; write it with them")
        raise JudgmentError("the file has no answers to any question; export it once somebody has answered")
    named = first_few(map(repr, known), shown=12)
    way = option("answer", known[0]) if field is None else option("where", {field: known[0]})
    raise JudgmentError(f"the file has {what} {named}; choose one with {way}")


def add_labels(rows: Collector, answers: Sequence[tuple[Any, str | None, Sequence[str], dict[str, Any]]]) -> None:
    """Add multi-label answers: a query for each label seen, with grade 1 where it was given and 0 where not.

    Each answer is (its record, the item, the labels given, further cells).
    """
    labels = list(dict.fromkeys(label for _, _, given, _ in answers for label in given))
    for record, item, given, cells in answers:
        for label in labels:
            rows.add(record, query=label, item=item, grade=int(label in given), **cells)
    rows.notes.append(label_note(labels))


def label_note(labels: Sequence[str]) -> str:
    """Return what is said of answers that name several labels each."""
    return (
        f"several labels per answer: one query for each of {first_few(map(repr, labels), len(labels))}, the labels "
        "seen in the file; grade 1 where it was given, 0 where not"
    )


def as_labels(value: Any) -> list[str]:
    """Return the labels of an answer that may be one label or a list of them."""
    values = value if isinstance(value, list) else [value]
    return [label for one in values if (label := as_text(one)) is not None]


def add_ranking(rows: Collector, record: Any, names: Sequence[Any], ranks: Sequence[Any] | None, **cells: Any) -> bool:
    """Add one ranking, best first or with its ranks; whether it could be read."""
    items = [as_text(name) for name in names]
    if not items or None in items or len(set(items)) < len(items) or (ranks is not None and len(ranks) != len(items)):
        return False
    for place, item in enumerate(items):
        rows.add(record, item=item, rank=place + 1 if ranks is None else ranks[place], **cells)
    return True
