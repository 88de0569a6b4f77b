"""Option values in words: lists, ``key=value`` pairs, and the names that shells complete."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import ParameterError


def split_list(text: str | None) -> list[str] | None:
    """Return the parts between commas, those within brackets left alone; ``None`` stays ``None``.

    Examples
    --------
    >>> split_list("ndcg@5(linear, ties=first), map")
    ['ndcg@5(linear, ties=first)', 'map']
    """
    if text is None:
        return None
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def pairs(texts: Sequence[str] | None, option: str, example: str, *, last: bool = False) -> dict[str, str]:
    """Return the values by key of texts such as ``alpha=2``; what is not of that form is refused with the example.

    A key with an equals sign in it is whole where the ``last`` one counts.

    Examples
    --------
    >>> pairs(["alpha=2"], "--set", "alpha=2")
    {'alpha': '2'}
    >>> pairs(["better (1=a, 7=b)-4=right"], "--strength", "score=left", last=True)
    {'better (1=a, 7=b)-4': 'right'}
    """
    by_key: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = (part.strip() for part in (text.rpartition("=") if last else text.partition("=")))
        if not (key and equals and value):
            raise ParameterError(
                f"{option} {text!r} is not of the form key=value; write for example {option} {example}"
            )
        if key in by_key:
            raise ParameterError(f"{option} names {key!r} twice; keep one of them")
        by_key[key] = value
    return by_key


def complete_method(incomplete: str) -> list[str]:
    """Return the methods whose name starts so, for shells."""
    from ..registry import names

    return [name for name in ["auto", *names("aggregator")] if name.startswith(incomplete)]


def complete_aggregator(incomplete: str) -> list[str]:
    """Return the aggregators that a ranker may learn from whose name starts so, for shells."""
    return [name for name in [*complete_method(incomplete), "none"] if name.startswith(incomplete)]


def complete_ranker(incomplete: str) -> list[str]:
    """Return the rankers whose name starts so, for shells."""
    from ..registry import names

    return [name for name in names("ranker") if name.startswith(incomplete)]


def complete_joint(incomplete: str) -> list[str]:
    """Return the joint methods whose name starts so, for shells."""
    from ..registry import names

    return [name for name in names("joint") if name.startswith(incomplete)]


def complete_scheme(incomplete: str) -> list[str]:
    """Return the schemes whose name starts so, for shells."""
    from ..registry import ALIASES, names

    return [name for name in [*names("scheme"), *ALIASES["scheme"]] if name.startswith(incomplete)]


def complete_any(incomplete: str) -> list[str]:
    """Return the methods of every family whose name starts so, for shells."""
    from ..registry import FAMILIES, names

    known = dict.fromkeys(name for family in FAMILIES for name in names(family))
    return [name for name in known if name.startswith(incomplete)]


def complete_methods(incomplete: str) -> list[str]:
    """Return the lists of methods that can come of a list that starts so, for shells."""
    from ..registry import names

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names("aggregator") if name.startswith(last)]
