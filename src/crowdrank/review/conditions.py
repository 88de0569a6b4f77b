"""Conditions such as ``quality<0.6 or alpha<0.2``: what a pipeline fails on."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ParameterError, UnknownNameError
from ..protocols import Bools
from ..wording import did_you_mean, first_few
from .facts import Facts
from .finding import name
from .quantities import QUANTITIES

_COMPARE: dict[str, Callable[[Any, float], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_FORM = "write for example quality<0.6, or alpha<0.2 and n_suspects>3"
_SPLIT = re.compile(r"\s+(and|or)\s+")
_TERM = re.compile(r"\s*([A-Za-z_]\w*)\s*(<=|>=|==|!=|<|>|=)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(%?)\s*")
_SHOWN = 3


@dataclass(frozen=True)
class Condition:
    """A comparison of a quantity with a number; of a quantity of several annotators, items or queries, of any one."""

    quantity: str
    compare: str
    number: float

    def __str__(self) -> str:
        return f"{self.quantity}{self.compare}{self.number:g}"


@dataclass(frozen=True)
class Outcome:
    """Whether a condition holds, and for what."""

    holds: bool
    sentence: str


def parse_condition(text: str) -> tuple[tuple[Condition, ...], ...]:
    """Return a condition as alternatives, each of comparisons that hold together; ``and`` binds before ``or``.

    Examples
    --------
    >>> [[str(one) for one in both] for both in parse_condition("quality<.6 or alpha<0.2 and n_judgments>=100")]
    [['quality<0.6'], ['alpha<0.2', 'n_judgments>=100']]
    """
    pieces = _SPLIT.split(text)
    alternatives: list[list[Condition]] = [[_comparison(pieces[0], text)]]
    for word, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        if word == "or":
            alternatives.append([])
        alternatives[-1].append(_comparison(piece, text))
    return tuple(tuple(both) for both in alternatives)


def _comparison(piece: str, whole: str) -> Condition:
    """One comparison, or a sentence that says what is wrong with it."""
    found = _TERM.fullmatch(piece)
    if found is None:
        raise ParameterError(f"{piece.strip()!r} in the condition {whole!r} is not a comparison; {_FORM}")
    quantity, compare, number, per_cent = found.groups()
    if quantity not in QUANTITIES:
        hint = did_you_mean(quantity, QUANTITIES)
        raise UnknownNameError(f"there is no quantity {quantity!r}; {hint}known: {', '.join(QUANTITIES)}")
    return Condition(quantity, "==" if compare == "=" else compare, float(number) / (100 if per_cent else 1))


def check(condition: tuple[tuple[Condition, ...], ...], facts: Facts) -> Outcome:
    """Return whether a condition holds, and the first alternative that does in words."""
    for both in condition:
        found = [_holds(one, facts) for one in both]
        if all(outcome.holds for outcome in found):
            return Outcome(True, " and ".join(outcome.sentence for outcome in found))
    return Outcome(False, "")


def _holds(one: Condition, facts: Facts) -> Outcome:
    """Whether a comparison holds, of what."""
    found = QUANTITIES[one.quantity].read(facts)
    if found is None:
        raise ParameterError(
            f"{one.quantity} is not known here: {facts.consensus.method} does not give it for these judgments; "
            "put the condition on something else, or add --bootstrap 200 for probabilities"
        )
    mask: Bools = np.asarray(_COMPARE[one.compare](found.values, one.number))
    if not mask.any():
        return Outcome(False, "")
    if found.ids is None or len(found.values) == 1:
        return Outcome(True, f"{one.quantity} is {found.values[0]:.4g} ({one})")
    where = np.flatnonzero(mask)
    # what is furthest from the number is worst
    where = where[np.argsort(-np.abs(found.values[where] - one.number), kind="stable")]
    told = [f"{name(found.ids[int(w)])} {found.values[w]:.4g}" for w in where[:_SHOWN]]
    return Outcome(True, f"{one} holds of {len(where):,} of {len(mask):,}: {first_few(told, len(where), _SHOWN)}")
