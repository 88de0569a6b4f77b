"""From judgments to a consensus, by the name of a method or by the rule that picks one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ..data.columns import understand
from ..data.consensus import Consensus
from ..data.frames import to_frame
from ..data.grades import MAX_LEVELS
from ..data.judgments import KINDS, Grades, Judgments, Mixed, Preferences, Rankings, expect
from ..data.mixed import parts_of, together
from ..errors import JudgmentError, ParameterError
from ..io.judgments import read_judgments
from ..io.notices import say
from ..protocols import Aggregator, Progress, expect_arguments, expect_parameters
from ..quality import trusted_annotators
from ..registry import label, make, method_class
from ..resampling import Replicates, check_draws, plan_draws, replicates
from ..review.unordered import looks_unordered
from ..wording import call, option
from .choosing import auto_method, check_want
from .diagnosis import warn_of_sides

_MANY_QUERIES = 5
"""Queries, and queries for each id, from which on equal ids are likely to mean one item."""

_FEW_JUDGMENTS = 3
"""Judgments for each item of a query, with fewer of which a ranking of that query alone tells little."""

_COUNTED = 2
"""Characters of ids that may be mere numbers or letters of the items of a query."""


def aggregate(
    judgments: Any,
    method: str | Aggregator = "auto",
    *,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    want: str = "order",
    start: Consensus | None = None,
    known: Any | None = None,
    trusted: Any | None = None,
    bootstrap: int | None = None,
    resample: str = "judgment",
    progress: Progress | None = None,
) -> Consensus:
    """Return the consensus of judgments.

    Parameters
    ----------
    judgments
        Grades, preferences or rankings; or a frame, or a file's path; or a list of them, whose kinds may differ.
    method
        Name of an aggregator (``crowdrank methods`` lists them), ``"auto"``, or an aggregator itself.
    params
        Parameters of the named method.
    seed
        Seed of whatever is random in the method.
    want
        ``"order"`` or ``"grade"``: what ``"auto"`` should pick a method for.
    start
        A former consensus to start from, for methods that can.
    known
        Items whose truth is known, for methods that use it.
    trusted
        Annotators known to be good, for methods that use it.
    bootstrap
        Fit so many resamples of the judgments too, for intervals by any method: their scores are the result's
        ``replicates``, their standard deviations its ``std_error``; 200 are enough for intervals of 95 %.
    resample
        What is drawn again with replacement: each ``"judgment"`` by itself; all judgments of an ``"annotator"``, or of
        a ``"group"`` of annotators, where those err in ways of their own; all of a ``"query"`` where equal items of
        different queries are one (``across_queries()``) and another set of queries might give another order.
    progress
        Called after each fit of a resample, or some of them, with (resamples done, resamples in all, what they are).

    Examples
    --------
    >>> votes = {"item": ["x", "y", "x", "y"], "annotator": ["ann", "ann", "bob", "bob"], "grade": [3, 1, 2, 1]}
    >>> aggregate(votes).order()
    ['x', 'y']
    """
    check_aggregation(method, params, want=want, bootstrap=bootstrap, resample=resample)
    judged = as_judgments(judgments)
    said = _meant_across(judged)
    if said is not None:
        say(said)
    anchored = known is not None or trusted is not None
    aggregator = chosen_aggregator(judged, method, params, seed, want, anchored=anchored)
    trusted_annotators(judged, trusted)
    draws = None if bootstrap is None else plan_draws(judged, bootstrap, resample, seed)
    extra = {"start": start, "known": known, "trusted": trusted}
    given = {name: value for name, value in extra.items() if value is not None}
    fitted = _fit(aggregator, judged, given)
    warn_of_sides(fitted, judged)
    if draws is None:
        return fitted
    return with_replicates(fitted, replicates(aggregator, judged, draws, fitted, extra=given, progress=progress))


def check_aggregation(
    method: Any = "auto",
    params: Mapping[str, Any] | None = None,
    *,
    want: str = "order",
    bootstrap: int | None = None,
    resample: str = "judgment",
) -> None:
    """Refuse what :func:`aggregate` would refuse of any judgments, before they are read.

    Examples
    --------
    >>> check_aggregation("elo", {"speed": 3})
    Traceback (most recent call last):
    ...
    crowdrank.errors.ParameterError: elo has no parameter 'speed'; its parameters: k, initial, base, scale...
    """
    check_want(want)
    if isinstance(method, str) and method != "auto":
        make("aggregator", method, params)
    if bootstrap is not None:
        check_draws(bootstrap, resample)
    elif resample != "judgment":
        raise ParameterError(f"{option('resample')} says what a bootstrap draws; give {option('bootstrap', 200)} too")


def check_level(level: float | None, name: str) -> None:
    """Refuse a level of intervals, the argument called so, that is no probability; percents are named as such.

    Examples
    --------
    >>> check_level(95, "level")
    Traceback (most recent call last):
    ...
    crowdrank.errors.ParameterError: level=95 must lie between 0 and 1; for 95 % write level=0.95
    """
    if level is None or 0 < level < 1:
        return
    remedy = f"; for {level:g} % write {option(name, level / 100)}" if 1 < level < 100 else ", as 0.95 does"
    raise ParameterError(f"{option(name, level)} must lie between 0 and 1{remedy}")


def chosen_aggregator(
    judgments: Judgments | Mixed,
    method: str | Aggregator,
    params: Mapping[str, Any] | None,
    seed: int,
    want: str = "order",
    *,
    anchored: bool = False,
) -> Any:
    """Return the aggregator that a name stands for, the one that ``"auto"`` picks, or the one given."""
    if not isinstance(method, str):
        if params:
            raise ParameterError(f"{option('params')} goes with the name of a method; give them to the method itself")
        return _fitting(judgments, method)
    if method == "auto":
        choice = auto_method(judgments, want, anchored=anchored)
        method, params = choice.method, {**choice.params, **(params or {})}
        settings = "".join(f", {key}={value}" for key, value in choice.params.items())
        say(f"method {method}{settings}, since {choice.reason}")
        _say_unordered(judgments, want)
    return _fitting(judgments, make("aggregator", method, params, seed=seed))


def _fitting(judgments: Judgments | Mixed, aggregator: Any) -> Any:
    """The aggregator if it takes these judgments; otherwise say which do."""
    try:
        expect(judgments, aggregator)
    except JudgmentError:
        expect(judgments, aggregator, instead=methods_for(judgments))
    return aggregator


def _say_unordered(judgments: Judgments | Mixed, want: str) -> None:
    """Say where the order of grades is used that look like classes without one."""
    for part in parts_of(judgments):
        reason = looks_unordered(part) if isinstance(part, Grades) and want == "order" else None
        if reason:
            say(
                f"the grades look like classes without an order: {reason}. Their order was used all the same; for "
                "classes give nominal=True (--nominal)"
            )


def with_replicates(consensus: Consensus, found: Replicates) -> Consensus:
    """Return the consensus with scores of resamples, which say all there is of the spread from now on."""
    return replace(
        consensus, replicates=found.scores, std_error=found.std_error,
        covariance=None, estimates={**consensus.estimates, "bootstrap": found.summary},
    )  # fmt: skip


def _meant_across(judgments: Judgments | Mixed) -> str | None:
    """The hint that equal ids of different queries may be one item, where that is likely; ``None`` elsewhere.

    It is likely where few ids stand in many queries each and hardly judged within any, as models over prompts do. Ids
    that merely count the items of their query, such as 1 to 10, say nothing of it.
    """
    items = judgments.items
    if judgments.block is not None or items.n_queries < _MANY_QUERIES:
        return None
    ids = items.ids.cast(pl.String).unique()
    if len(items) < _MANY_QUERIES * len(ids) or (ids.str.len_chars() <= _COUNTED).all():
        return None
    each = sum(_placings(part) for part in parts_of(judgments)) / len(items)
    if each >= _FEW_JUDGMENTS:
        return None
    return (
        f"{len(ids):,} ids stand in {items.n_queries:,} queries, each judged {each:.1f} times in a query: if equal ids "
        f"mean one item, as models over prompts do, rank them over all queries with {call('across_queries')}"
    )


def _placings(judgments: Judgments) -> int:
    """How often items are judged: once by a grade, twice by a preference, each by a ranking."""
    if isinstance(judgments, Rankings):
        return len(judgments.item)
    return len(judgments) * (2 if isinstance(judgments, Preferences) else 1)


def _fit(aggregator: Any, judgments: Judgments | Mixed, extra: dict[str, Any]) -> Consensus:
    """Fit with those further arguments that the method takes."""
    expect_arguments(aggregator, extra)
    expect_parameters(aggregator)
    fitted: Consensus = aggregator.fit(judgments, **extra)
    return fitted


def as_judgments(judgments: Any) -> Judgments | Mixed:
    """Return judgments from judgments, a frame or a path, or from a list of them."""
    if isinstance(judgments, Grades | Preferences | Rankings | Mixed):
        return judgments
    if isinstance(judgments, str | os.PathLike):
        return read_judgments(judgments)
    if isinstance(judgments, list | tuple):
        return _as_one(judgments)
    frame = to_frame(judgments)
    understood = understand(frame.columns)
    return KINDS[understood.kind].from_frame(frame)


def _as_one(judgments: Sequence[Any]) -> Judgments | Mixed:
    """Several sets of judgments, frames or paths as one set of judgments."""
    if judgments and all(isinstance(one, str | os.PathLike) for one in judgments):
        return read_judgments(judgments)
    return together([part for one in judgments for part in parts_of(as_judgments(one))])


def expect_one_kind(judgments: Judgments | Mixed, what: str) -> Judgments:
    """Return the judgments if they are of one kind; ``what`` names what cannot do with several."""
    if isinstance(judgments, Mixed):
        each = ", then the ".join(f"{kind}s" for kind in judgments.kinds)
        raise JudgmentError(f"{what} looks at one kind of judgment at a time; give it the {each}")
    return judgments


def methods_for(judgments: Judgments | Mixed) -> list[str]:
    """Return the names of the aggregators that take these judgments as they are."""
    from ..registry import card, names

    cards = [card("aggregator", name) for name in names("aggregator")]
    if isinstance(judgments, Mixed):
        return [c.name for c in cards if getattr(method_class("aggregator", c.name), "mixes", False)]
    fitting = [c for c in cards if judgments.kind in c.kinds]
    if isinstance(judgments, Grades) and judgments.nominal:
        fitting = [c for c in fitting if c.nominal]
    elif isinstance(judgments, Grades) and judgments.declared is None and len(judgments.levels) > MAX_LEVELS:
        say(f"class methods are left out: there are {len(judgments.levels)} distinct grades")
        fitting = [c for c in fitting if not c.nominal]
    return [c.name for c in fitting]


def resolved(methods: list[str]) -> list[str]:
    """Return the names to show methods by, each once."""
    return list(dict.fromkeys(label("aggregator", name) for name in methods))
