"""The questions of a request: what each may be answered with, and answers as they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ..errors import ParameterError
from ..wording import did_you_mean, either, one_of

QUESTION_KINDS = ("grade", "choice", "preference", "ranking", "text", "slider")


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of a request.

    Parameters
    ----------
    name, kind, text
        Its name in exports, what kind of answer it takes, and what people read.
    grades, choices, several
        Names of the grades, worst first; classes to choose from, and whether several may be chosen.
    ties, strength
        Whether a preference may be a tie; words for how much better, the weakest first.
    low, high, least, most, step
        Words at the ends of a slider, and its numbers.
    when
        Names of earlier questions and the answers to them, on which this one is asked.
    required, cant_tell
        Whether it has to be answered, and whether "can't tell" is an answer.
    """

    name: str
    kind: str
    text: str
    grades: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    several: bool = False
    ties: bool = True
    strength: tuple[str, ...] = ()
    low: str = ""
    high: str = ""
    least: float = 0.0
    most: float = 100.0
    step: float = 1.0
    when: Mapping[str, Any] = field(default_factory=dict)
    required: bool = True
    cant_tell: bool = False


_LISTS = ("grades", "choices", "strength")


def read_questions(tables: Sequence[Any], kind: str) -> tuple[Question, ...]:
    """Return the questions in the ``[[question]]`` tables of a campaign, everything in them checked."""
    known = {one.name for one in fields(Question)}
    questions: list[Question] = []
    for number, table in enumerate(tables, 1):
        where = f"question {number}"
        if not isinstance(table, dict):
            raise ParameterError(f"{where} must be a table; write [[question]] above its keys")
        for key in table:
            if key not in known:
                hint = did_you_mean(key, known)
                raise ParameterError(f"{where} has an unknown key {key!r}; {hint}known: {either(sorted(known))}")
        for key in ("name", "kind", "text"):
            if not isinstance(table.get(key), str) or not table[key].strip():
                raise ParameterError(f'{where} has no {key}; add a line {key} = "..."')
        one_of(table["kind"], QUESTION_KINDS, f"{where}: kind")
        given: dict[str, Any] = {
            key: tuple(map(str, value)) if key in _LISTS else value for key, value in table.items()
        }
        questions.append(_check_question(Question(**given), f"question {table['name']!r}", questions, kind))
    if not any(one.kind == kind and not one.when and one.required for one in questions):
        raise ParameterError(
            f"kind = {kind!r} needs a required question of kind {kind!r} without a condition, which the scheme goes by"
        )
    return tuple(questions)


def _check_question(one: Question, where: str, before: list[Question], kind: str) -> Question:
    """A question that can be asked of requests of a kind."""
    if one.name in {other.name for other in before} or not one.name.isprintable() or len(one.name) > 60:
        raise ParameterError(f"{where} needs a printable name of its own, of up to 60 characters")
    if one.kind in ("grade", "preference", "ranking") and one.kind != kind:
        raise ParameterError(f"{where} has kind {one.kind!r}, and requests of this campaign are for {kind}s")
    if one.kind == "grade" and not 2 <= len(one.grades) <= 30:
        raise ParameterError(f'{where} needs 2 to 30 grades, worst first, such as grades = ["Bad", "Good"]')
    if one.kind == "choice" and not 2 <= len(set(one.choices)) == len(one.choices) <= 200:
        raise ParameterError(f'{where} needs 2 to 200 different choices, such as choices = ["news", "sport"]')
    if one.kind == "slider" and not (one.least < one.most and one.step > 0):
        raise ParameterError(f"{where} needs least below most, and a step above 0")
    names = {other.name for other in before}
    for name in one.when:
        if name not in names:
            raise ParameterError(
                f"{where} waits for {name!r}, which is no question before it; known: {either(sorted(names)) or 'none'}"
            )
    return one


def holds(question: Question, questions: Sequence[Question], answers: Mapping[str, Any]) -> bool:
    """Return whether a question is asked, by the answers to those before it."""
    kinds = {one.name: one for one in questions}
    for name, wanted in question.when.items():
        value = answers.get(name)
        if value is None or "cant_tell" in value:
            return False
        said: Any = next(iter(value.values()))
        if kinds[name].kind == "grade":
            said = [kinds[name].grades[said], said]
        said = said if isinstance(said, list) else [said]
        if not any(one in said for one in (wanted if isinstance(wanted, list) else [wanted])):
            return False
    return True
