"""Conditions such as ``quality<0.6 or alpha<0.2``, which a pipeline fails on, and the quantities they are about."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..errors import ParameterError, UnknownNameError
from ..protocols import Bools, Floats
from ..wording import did_you_mean, first_few
from .findings import Facts, name
from .fragility import Fragility
from .sentences import BY_QUALITY, MESSAGES, SURE, fill

_COMPARE = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_FORM = "write for example quality<0.6, or alpha<0.2 and n_suspects>3"
_SPLIT = re.compile(r"\s+(and|or)\s+")
_TERM = re.compile(r"\s*([A-Za-z_]\w*)\s*(<=|>=|==|!=|<|>|=)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(%?)\s*")
_MAX_IDS_SHOWN = 3


class Values(NamedTuple):
    """Values of a quantity, one for each annotator, item or query with its id."""

    values: Floats
    ids: pl.Series


def _column(table: pl.DataFrame | None, name: str, whose: str = "annotator", read: Any = np.asarray) -> Values | None:
    """A column of a table of annotators or items, as it is read."""
    known = None if table is None or name not in table.columns else table.drop_nulls(name)
    if known is None or not len(known):
        return None
    return Values(read(known[name].cast(pl.Float64).to_numpy()), known[whose])


def _of(known: Any, read: Callable[[Any], Any]) -> Any:
    """What is read off something, where that is known."""
    return None if known is None else read(known)


def _n_suspects(facts: Facts, *verdicts: str) -> float | None:
    """How many annotators have one of these verdicts."""
    return None if facts.table is None else sum(one.verdict in verdicts for one in facts.suspects)


def _winner(facts: Facts) -> Values | None:
    """Probability of each query that its first item is better than its second."""
    pairs, items = facts.neighbours, facts.consensus.items
    if pairs.probability is None:
        return None
    top = pairs.place == 0
    return Values(pairs.probability[top], items.queries.ids.gather(items.query[pairs.first[top]]))


def _fragility(facts: Facts) -> Values | float | None:
    """Votes that decide the first place of each query where any number does."""
    if facts.fragility is None or isinstance(facts.fragility, Fragility):
        return _of(facts.fragility, lambda found: found.votes.number)
    queries, votes = facts.fragility
    known = votes > 0
    return Values(votes[known].astype(np.float64), facts.consensus.items.queries.ids.gather(queries[known]))


QUANTITIES: dict[str, Callable[[Facts], Values | float | None]] = {
    "quality": lambda facts: _column(facts.table, "quality"),
    "mean_quality": lambda facts: _of(_column(facts.table, "quality"), lambda own: float(own.values.mean())),
    "n_guessing": lambda facts: _n_suspects(facts, "guessing"),
    "n_reversed": lambda facts: _n_suspects(facts, "reversed"),
    "n_suspects": lambda facts: _n_suspects(facts, *BY_QUALITY),
    "share_suspects": lambda facts: _of(facts.table, lambda table: len(facts.suspects) / max(len(table), 1)),
    "position_bias": lambda facts: _column(facts.table, "position_bias", read=np.abs),
    "effective_annotators": lambda facts: _of(facts.diagnostics, lambda odd: odd.effective_annotators),
    "agreement": lambda facts: _of(facts.agreement, lambda one: one.same),
    "alpha": lambda facts: _of(facts.agreement, lambda one: one.alpha),
    "winner_probability": _winner,
    "separated": lambda facts: _of(facts.neighbours.probability, lambda known: float((known >= SURE).mean())),
    "fragility": _fragility,
    "confidence": lambda facts: _column(facts.consensus.frame(), "confidence", "item"),
    "judgments_per_item": lambda facts: _of(facts.per_item, lambda own: Values(own * 1.0, facts.consensus.items.ids)),
    "n_unjudged": lambda facts: _of(facts.is_unjudged, lambda own: int(own.sum())),
    "n_judgments": lambda facts: _of(facts.judgments, lambda judged: judged.n_judgments),
    "n_annotators": lambda facts: _of(facts.judgments, lambda judged: len(np.unique(judged.annotator))),
    "n_items": lambda facts: _of(facts.judgments, lambda judged: judged.n_items),
    "n_queries": lambda facts: _of(facts.judgments, lambda judged: judged.n_queries),
    "converged": lambda facts: facts.consensus.trace.converged,
}
"""What conditions can be about -> how it is read off, ``None`` where it is not known; docs/report.md explains each."""


@dataclass(frozen=True)
class Condition:
    """A comparison of a quantity with a number; of a quantity of several annotators, items or queries, of any one."""

    quantity: str
    compare: str
    number: float

    def __str__(self) -> str:
        return f"{self.quantity}{self.compare}{self.number:g}"


def parse_condition(text: str, quantities: Collection[str] | None = None) -> tuple[tuple[Condition, ...], ...]:
    """Return a condition as alternatives, each of comparisons that hold together; ``and`` binds before ``or``.

    ``quantities`` are those that it may be about, by default those of a consensus.

    Examples
    --------
    >>> [[str(one) for one in both] for both in parse_condition("quality<.6 or alpha<0.2 and n_judgments>=100")]
    [['quality<0.6'], ['alpha<0.2', 'n_judgments>=100']]
    """
    pieces = _SPLIT.split(text)
    known = QUANTITIES if quantities is None else quantities
    alternatives: list[list[Condition]] = [[_comparison(pieces[0], text, known)]]
    for word, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        if word == "or":
            alternatives.append([])
        alternatives[-1].append(_comparison(piece, text, known))
    return tuple(tuple(both) for both in alternatives)


def _comparison(piece: str, whole: str, known: Collection[str]) -> Condition:
    """One comparison, or a sentence that says what is wrong with it."""
    matched = _TERM.fullmatch(piece)
    if matched is None:
        raise ParameterError(f"{piece.strip()!r} in the condition {whole!r} is not a comparison; {_FORM}")
    quantity, compare, number, per_cent = matched.groups()
    if quantity not in known:
        hint = did_you_mean(quantity, known)
        raise UnknownNameError(f"there is no quantity {quantity!r}; {hint}known: {', '.join(known)}")
    return Condition(quantity, "==" if compare == "=" else compare, float(number) / (100 if per_cent else 1))


def check(condition: tuple[tuple[Condition, ...], ...], facts: Facts) -> str:
    """Return the first alternative of a condition that holds, and of what, in words; empty where none does."""
    unknown = fill(MESSAGES["no_quantity"], method=facts.consensus.method)
    return check_values(condition, lambda quantity: QUANTITIES[quantity](facts), unknown)


def check_values(
    condition: tuple[tuple[Condition, ...], ...], read: Callable[[str], Values | float | None], unknown: str
) -> str:
    """Return the same of quantities that are read by name; ``unknown`` says why one is not known."""
    for both in condition:
        sentences = [_holds_of(one, read(one.quantity), unknown) for one in both]
        if all(sentences):
            return " and ".join(sentences)
    return ""


def _holds_of(one: Condition, known: Values | float | None, unknown: str) -> str:
    """What a comparison holds of, in words; empty where it does not hold."""
    if known is None or (not isinstance(known, Values) and not np.isfinite(known)):
        raise ParameterError(f"{one.quantity} is not known here: {unknown}")
    values = known.values if isinstance(known, Values) else np.array([float(known)])
    mask: Bools = getattr(operator, _COMPARE[one.compare])(values, one.number)
    if not mask.any():
        return ""
    if not isinstance(known, Values) or len(values) == 1:
        return f"{one.quantity} is {values[0]:.4g} ({one})"
    where = np.flatnonzero(mask)
    # what is furthest from the number is worst
    where = where[np.argsort(-np.abs(values[where] - one.number), kind="stable")]
    values_of_ids = [f"{name(known.ids[int(w)])} {values[w]:.4g}" for w in where[:_MAX_IDS_SHOWN]]
    which = first_few(values_of_ids, len(where), _MAX_IDS_SHOWN)
    return f"{one} holds of {len(where):,} of {len(mask):,}: {which}"
