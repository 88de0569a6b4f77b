"""From judgments to a consensus, by the name of a method or by the rule that picks one."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.columns import understand
from ..data.consensus import Consensus
from ..data.frames import to_frame
from ..data.grades import MAX_LEVELS
from ..data.judgments import KINDS, Grades, Judgments, Preferences, Rankings
from ..errors import ParameterError
from ..io.judgments import read_judgments
from ..io.notices import say
from ..protocols import Aggregator, Progress
from ..registry import label, make
from ..resampling import Replicates, plan_draws, replicates
from .diagnosis import with_diagnostics


@dataclass(frozen=True)
class Choice:
    """What ``method="auto"`` takes, and why."""

    method: str
    reason: str
    params: Mapping[str, Any] = field(default_factory=dict)


AUTO = {
    "grade": Choice("mean_grade", "grades are averaged"),
    "preference": Choice("bradley_terry", "preferences tell the strength of each item"),
    "ranking": Choice("borda", "rankings are averaged by place"),
}
"""Kind -> choice where an order is wanted."""

AUTO_CLASS = {
    "no annotators": Choice("majority_vote", "the grades do not say who gave them, so each counts alike"),
    "no overlap": Choice("majority_vote", "no item was graded by two annotators, so nothing tells them apart"),
    "levels": Choice(
        "dawid_skene", "annotators mix up near levels more than far ones, and by how much is learned", {"ordinal": True}
    ),
    "classes": Choice("dawid_skene", "which classes an annotator mixes up is learned"),
}
"""Case -> choice where one of the grades is wanted, or the grades are classes without an order."""


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
        Grades, preferences or rankings; or a frame, or a file's path.
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
    judged = as_judgments(judgments)
    aggregator = chosen_aggregator(judged, method, params, seed, want)
    if bootstrap is None and resample != "judgment":
        raise ParameterError("resample= says what a bootstrap draws; give bootstrap=200 (--bootstrap 200) too")
    draws = None if bootstrap is None else plan_draws(judged, bootstrap, resample, seed)
    extra = {"start": start, "known": known, "trusted": trusted}
    given = {name: value for name, value in extra.items() if value is not None}
    fitted = with_diagnostics(_fit(aggregator, judged, given), judged)
    if draws is None:
        return fitted
    return with_replicates(fitted, replicates(aggregator, judged, draws, fitted, extra=given, progress=progress))


def chosen_aggregator(
    judgments: Judgments, method: str | Aggregator, params: Mapping[str, Any] | None, seed: int, want: str = "order"
) -> Any:
    """Return the aggregator that a name stands for, the one that ``"auto"`` picks, or the one given."""
    if not isinstance(method, str):
        if params:
            raise ParameterError("params= goes with the name of a method; give them to the method itself")
        return method
    if method == "auto":
        choice = auto_method(judgments, want)
        method, params = choice.method, {**choice.params, **(params or {})}
        settings = "".join(f", {key}={value}" for key, value in choice.params.items())
        say(f"method {method}{settings}, since {choice.reason}")
    return make("aggregator", method, params, seed=seed)


def with_replicates(consensus: Consensus, found: Replicates) -> Consensus:
    """Return the consensus with scores of resamples, which say all there is of the spread from now on."""
    return replace(
        consensus, replicates=found.scores, std_error=found.scores.std(axis=0, ddof=1, dtype=np.float64),
        covariance=None, estimates={**consensus.estimates, "bootstrap": found.summary},
    )  # fmt: skip


def _fit(aggregator: Any, judgments: Judgments, extra: dict[str, Any]) -> Consensus:
    """Fit with those further arguments that the method takes."""
    takes = inspect.signature(aggregator.fit).parameters
    for name in extra:
        if name not in takes:
            raise ParameterError(f"{type(aggregator).__name__} takes no {name}=; leave it out or choose another method")
    fitted: Consensus = aggregator.fit(judgments, **extra)
    return fitted


def auto_method(judgments: Judgments, want: str = "order") -> Choice:
    """Return the method that ``"auto"`` means for these judgments, with its parameters and why."""
    if want not in ("order", "grade"):
        raise ParameterError(f"want={want!r} is neither 'order' nor 'grade'")
    if not isinstance(judgments, Grades):
        if want == "grade":
            raise ParameterError(f"{judgments.kind}s tell no grade; leave want at 'order'")
        return AUTO[judgments.kind]
    if want == "order" and not judgments.nominal:
        return AUTO["grade"]
    if not judgments.n_annotators:
        return AUTO_CLASS["no annotators"]
    if not _overlap(judgments):
        return AUTO_CLASS["no overlap"]
    return AUTO_CLASS["classes" if judgments.nominal or len(judgments.levels) < 3 else "levels"]


def _overlap(grades: Grades) -> bool:
    """Whether some item was graded by two annotators."""
    first = np.full(grades.n_items, -1, np.int32)
    first[grades.item] = grades.annotator
    return bool((first[grades.item] != grades.annotator).any())


def as_judgments(judgments: Any) -> Judgments:
    """Return judgments from judgments, a frame or a path."""
    if isinstance(judgments, Grades | Preferences | Rankings):
        return judgments
    if isinstance(judgments, str | os.PathLike):
        return read_judgments(judgments)
    frame = to_frame(judgments)
    understood = understand(frame.columns)
    return KINDS[understood.kind].from_frame(frame)


def methods_for(judgments: Judgments) -> list[str]:
    """Return the names of the aggregators that take these judgments as they are."""
    from ..registry import card, names

    fitting = [c for c in (card("aggregator", name) for name in names("aggregator")) if judgments.kind in c.kinds]
    if isinstance(judgments, Grades) and judgments.nominal:
        fitting = [c for c in fitting if c.nominal]
    elif isinstance(judgments, Grades) and judgments.declared is None and len(judgments.levels) > MAX_LEVELS:
        say(f"class methods are left out: there are {len(judgments.levels)} distinct grades")
        fitting = [c for c in fitting if not c.nominal]
    return [c.name for c in fitting]


def resolved(methods: list[str]) -> list[str]:
    """Return the names to show methods by, each once."""
    return list(dict.fromkeys(label("aggregator", name) for name in methods))
