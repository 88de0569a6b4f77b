"""Measures by name, as the command line takes them: ``"ndcg@10"``, ``"map"``, ``"rbp@0.95"``, ``"ndcg@5(linear)"``."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ParameterError, UnknownNameError
from ..protocols import Floats
from ..wording import did_you_mean
from .queries import Ids

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


class Entry(NamedTuple):
    """What the table says of a measure.

    `at` is the parameter that stands after the @; `needs` is the least truth it takes: grades, the order of items, or
    the winners of pairs.
    """

    function: str
    description: str
    at: str | None = None
    needs: str = "grade"
    larger_is_better: bool = True


MEASURES = {name: Entry(**row) for name, row in _TABLE["measures"].items()}
ALIASES: dict[str, str] = _TABLE["aliases"]
_FIXED = ("truth", "scores", "qid", "per_query", "left_score", "right_score", "outcome", "weight")
_FORM = re.compile(r"(?P<name>[^@()]+?)\s*(?:@\s*(?P<at>[^()]*?)\s*)?(?:\((?P<options>[^()]*)\))?")


@dataclass(frozen=True)
class Measure:
    """A measure with its parameters filled in.

    Parameters
    ----------
    name
        As it was asked for, in lower case.
    function
        The function of :mod:`crowdrank.metrics` behind it.
    needs
        ``"grade"`` for truth about items, ``"pairs"`` for truth about pairs of items, ``"class"`` for classes of items.
    parameters
        Keyword arguments for the function.
    description
        One line for tables and help.
    larger_is_better
        False for distances.
    ranks_suffice
        Whether only the order of the truth counts, so ranks serve as well as grades.
    """

    name: str
    function: Callable[..., Any]
    needs: str
    parameters: dict[str, Any]
    description: str
    larger_is_better: bool = True
    ranks_suffice: bool = False

    def takes(self, parameter: str) -> bool:
        """Return whether the function has a parameter of that name."""
        return parameter in inspect.signature(self.function).parameters

    def __call__(self, truth: ArrayLike, scores: ArrayLike, qid: Ids = None) -> Floats:
        """Return one value per query, in the order of the sorted query ids.

        For a measure that needs pairs, `truth` is the outcome of each pair (1, 0, -1), `scores` a table of pairs x
        (left, right) and `qid` the query of each pair.
        """
        if self.needs == "pairs":
            pairs = np.asarray(scores, dtype=np.float64)
            if pairs.ndim != 2 or pairs.shape[1] != 2:
                raise ParameterError(f"{self.name} is about pairs; give scores as a table of pairs x (left, right)")
            values = self.function(pairs[:, 0], pairs[:, 1], truth, qid, per_query=True, **self.parameters)
        else:
            values = self.function(truth, scores, qid, per_query=True, **self.parameters)
        return np.asarray(values, dtype=np.float64)


def names() -> list[str]:
    """Return the names of all measures; some take a number after @ (``"ndcg@10"``) and options in brackets.

    Examples
    --------
    >>> names()[:3]
    ['ndcg', 'dcg', 'ap']
    """
    return list(MEASURES)


def parse(text: str) -> Measure:
    """Return the measure that a name stands for.

    Parameters
    ----------
    text
        Name, then ``@`` and a number for the cutoff (persistence, for RBP), then options in brackets, as
        ``key=value`` or the value alone: ``"ndcg@10"``, ``"map"``, ``"rbp@0.95"``, ``"ndcg@5(linear, ties=first)"``,
        ``"ap(relevant_from=2)"``. Case does not matter.

    Examples
    --------
    >>> measure = parse("nDCG@5(linear)")
    >>> measure.name, measure.parameters
    ('ndcg@5(linear)', {'k': 5, 'gain': 'linear'})
    >>> measure([1, 0, 2], [0.3, 0.2, 0.9])
    array([1.])
    """
    shown = str(text).strip()
    matched = _FORM.fullmatch(shown.lower())
    if matched is None:
        raise UnknownNameError(f"metric {shown!r} is not of the form name@number(options); for example ndcg@10(linear)")
    name = matched["name"].strip().replace("-", "_").replace(" ", "_")
    name = ALIASES.get(name, name)
    if name not in MEASURES:
        hint = did_you_mean(name, [*MEASURES, *ALIASES])
        raise UnknownNameError(f"there is no metric {shown!r}; {hint}known: {', '.join(MEASURES)}")
    entry, at = MEASURES[name], matched["at"]
    module, _, function_name = entry.function.partition(":")
    function = getattr(import_module(f".{module}", __package__), function_name)
    parameters: dict[str, Any] = {}
    if at is not None:
        value = _value(at)
        if entry.at is None:
            raise ParameterError(f"metric {name!r} takes no number after @; write {name!r} alone")
        if entry.at == "k" and not (isinstance(value, int) and value >= 1):
            needed = f"a whole number of at least 1 after @; for example {name}@10"
            raise ParameterError(f"metric {name}@{at} needs {needed}")
        if entry.at == "p" and not (isinstance(value, float) and 0 < value < 1):
            raise ParameterError(f"metric {name}@{at} needs a number between 0 and 1 after @; for example {name}@0.95")
        parameters[entry.at] = value
    # options in brackets
    known = [name for name in inspect.signature(function).parameters if name not in _FIXED]
    for option in filter(None, (part.strip() for part in (matched["options"] or "").split(","))):
        key, equals, value = (part.strip() for part in option.partition("="))
        if not equals:
            key, value = _TABLE["values"].get(key, key), key
        if key not in known:
            raise ParameterError(f"metric {shown!r} has no option {option!r}; its options are {', '.join(known)}")
        parameters[key] = _value(value)
    needs = "grade" if entry.needs == "order" else entry.needs
    shared = entry.description, entry.larger_is_better
    return Measure(shown.lower(), function, needs, parameters, *shared, ranks_suffice=entry.needs == "order")


def _value(text: str) -> Any:
    """Number, None or text."""
    if text == "none":
        return None
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
