"""From judgments to a consensus, by the name of a method or by the rule that picks one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..cluster.packed import PackedJudgments
from ..data.columns import understand
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.frames import are_rows, to_frame
from ..data.grades import MAX_LEVELS
from ..data.judgments import KINDS, Grades, Judgments, Mixed, Preferences, Rankings, expect, parts_of, together
from ..errors import JudgmentError, ParameterError
from ..io.judgments import read_files, read_judgments
from ..io.notices import say
from ..io.read_options import read_options
from ..protocols import Aggregator, Progress, expect_arguments, expect_parameters, takes_argument
from ..quality import trusted_annotators
from ..registry import label, make, method_class
from ..wording import method_label, one_of, option, recurring_items
from . import in_parts
from .choosing import auto_method, check_want
from .control import names_to_control, read_covariates_of
from .diagnosis import warn_of_sides
from .in_parts import (
    as_packed,
    expect_parts,
    expect_whole,
    first_judgments,
    fit_packed,
    hold_many,
    resample_packed,
    whole_judgments,
)
from .robust_errors import check_robust, with_robust_errors
from .scale import file_advice

if TYPE_CHECKING:
    from ..resampling import Replicates

_MANY_QUERIES = 5
"""Queries, and queries for each id, from which on equal ids are likely to mean one item."""

_FEW_JUDGMENTS = 3
"""Judgments for each item of a query, with fewer of which a ranking of that query alone tells little."""

_MIN_PAIR_NUMBER = 50.0
_MAX_NUMBERING_CHARACTERS = 2
"""Characters of ids that may be mere numbers or letters of the items of a query."""


def aggregate(
    judgments: Any,
    method: str | Aggregator = "auto",
    *,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    want: str = "order",
    across_queries: bool = False,
    start: Consensus | None = None,
    known: Any | None = None,
    trusted: Any | None = None,
    control: str | Sequence[str] | None = None,
    bootstrap: int | None = None,
    resample: str = "judgment",
    robust: str | None = None,
    reweight: str | None = None,
    stream: bool | None = None,
    cluster: Any | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Consensus:
    """Return the consensus of judgments.

    Parameters
    ----------
    judgments
        Grades, preferences or rankings; or a frame, dicts as rows, or a file's path; or a list of them, whose kinds may
        differ; or packed judgments (:func:`crowdrank.scan_judgments`) or their folder.
    method
        Name of an aggregator (``crowdrank methods`` lists them), ``"auto"``, or an aggregator itself.
    params
        Parameters of the named method.
    seed
        Seed of whatever is random in the method.
    want
        ``"order"`` or ``"grade"``: what ``"auto"`` should pick a method for.
    across_queries
        Whether equal ids of different queries are one item, as with models over prompts; the same as giving
        ``judgments.across_queries()``.
    start
        A former consensus to start from, for methods that can.
    known
        Items whose truth is known, for methods that use it.
    trusted
        Annotators known to be good, for methods that use it: ids, ``"human-*"`` for all ids like that,
        ``"group=human"`` for a group, or a file's path with an id per line; several in a list, or with commas between.
    control
        Covariates of preferences to control for, such as ``["length", "bold:log"]``: scores are then those of items
        that are equal in them, and ``estimates["control"]`` has their coefficients. A frame or file has them in columns
        ``length_left`` and ``length_right``; preferences are given them by :meth:`crowdrank.Preferences.from_frame`.
    bootstrap
        Fit this many resamples of the judgments too, for intervals by any method: their scores are the result's
        ``replicates``, their standard deviations its ``std_error``; 200 are enough for intervals of 95 %.
    resample
        What is drawn again with replacement: each ``"judgment"`` by itself; all judgments of an ``"annotator"``, or of
        a ``"group"`` of annotators, where those err in ways of their own; all of a ``"query"`` where equal items of
        different queries are one (``across_queries()``) and another set of queries might give another order.
    robust
        Standard errors that let the judgments of an ``"annotator"``, or of a ``"query"`` after ``across_queries()``,
        depend on each other: a sandwich over the model's covariance. By default ``"annotator"`` where preferences
        depend by construction: made of rankings or grades, or a pair asked of one annotator more than once, unless the
        method has no such errors, which is said; ``"none"`` for the model's own. ``trace.errors`` says what was taken,
        ``estimates["robust"]`` how much wider it is.
    stream
        Read packed judgments anew in every pass, so that they need not fit into memory; the result is the same.
    cluster
        Where the passes over packed judgments run: a Dask client, the address of a scheduler, or ``"local:2"`` for two
        processes here. The result is the same.
    resume
        Directory that keeps finished passes over packed judgments; the same call goes on from there.
    reweight
        ``"pairs"``: preferences weigh 1 / max(n, 50) where n is the number of those of their pair of items, so that
        pairs which were asked more often than others do not decide the scores; errors are then by judgment unless
        ``robust`` says otherwise.
    progress
        Called after each fit of a resample, or some of them, with (resamples done, resamples in all, what they are).

    Examples
    --------
    >>> votes = {"item": ["x", "y", "x", "y"], "annotator": ["ann", "ann", "bob", "bob"], "grade": [3, 1, 2, 1]}
    >>> aggregate(votes).order()
    ['x', 'y']
    """
    check_aggregation(method, params, want=want, bootstrap=bootstrap, resample=resample, robust=robust)
    packed, judged = as_packed(judgments), None
    how = {"stream": stream, "cluster": cluster, "resume": resume}
    if packed is not None and across_queries:
        raise ParameterError(
            "packed judgments keep the queries they were packed with; give across_queries=True to pack in place of "
            "aggregate"
        )
    if packed is None:
        judged, packed = _read_for(judgments, method, bootstrap, control, how, across_queries)
    if trusted is not None:
        # from here on by their ids, which any part or resample of the judgments understands
        source: Any = judged if packed is None else packed
        trusted = source.annotators.ids.filter(pl.Series(trusted_annotators(source, trusted))).to_list()
    if packed is not None and len(packed) >= in_parts.MANY_ROWS:
        at_once = {"control": control, "robust": None if robust == "none" else robust, "reweight": reweight}
        whole_only = [name for name, value in at_once.items() if value is not None]
        if not whole_only:
            extra = {"start": start, "known": known, "trusted": trusted}
            given = {name: value for name, value in extra.items() if value is not None}
            in_pieces: Consensus | None = _aggregate_parts(
                packed, (method, params, seed, want), given, (bootstrap, resample), progress=progress, **how
            )
            if in_pieces is not None:
                return in_pieces
        else:
            expect_whole(packed, whole_only, how)
    if judged is None:
        assert packed is not None
        judged = whole_judgments(packed)
    names = None if control is None else names_to_control(judged, control)
    if reweight is not None:
        judged, robust = reweigh_pairs(judged, reweight), robust or (None if bootstrap else "judgment")
    said = _meant_across(judged)
    if said is not None:
        say(said)
    anchored = known is not None or trusted is not None
    aggregator = chosen_aggregator(
        judged, method, params, seed, want, anchored=anchored, resumed=start is not None, controlled=bool(names)
    )
    _say_outcome_only(judged, aggregator)
    draws = None
    if bootstrap is not None:
        from ..resampling import plan_draws, replicates

        draws = plan_draws(judged, bootstrap, resample, seed)
    extra = {"start": start, "known": known, "trusted": trusted, "control": names}
    given = {name: value for name, value in extra.items() if value is not None}
    fitted = _with_trusted(_fit(aggregator, judged, given), trusted)
    warn_of_sides(fitted, judged)
    for sentence in _control_sentences(fitted):
        say(sentence)
    if draws is None:
        return with_robust_errors(fitted, aggregator, judged, robust)
    return with_replicates(fitted, replicates(aggregator, judged, draws, fitted, extra=given, progress=progress))


def _read_for(
    given: Any, method: Any, bootstrap: int | None, control: Any, how: Mapping[str, Any], across_queries: bool
) -> tuple[Judgments | Mixed | None, PackedJudgments | None]:
    """Judgments that are not packed, and their parts where they are many; for a cluster these are packed on the way."""
    paths = [given] if isinstance(given, str | os.PathLike) else given if isinstance(given, list | tuple) else []
    asked = any(how.values()) and control is None and all(isinstance(one, str | os.PathLike) for one in paths)
    if paths and asked and file_advice(paths) is not None:
        from .packing import pack_aside

        packed = pack_aside(paths, across_queries=across_queries)
        if len(packed) >= in_parts.MANY_ROWS:
            return None, packed
    judged = as_judgments(given, control)
    judged = judged.across_queries() if across_queries else judged
    held = hold_many(judged, method, bootstrap=bootstrap)
    if held is not None and (how["cluster"] or how["resume"]) and control is None:
        from .packing import pack_aside

        return judged, pack_aside(held.whole)
    return judged, held


def _aggregate_parts(
    packed: PackedJudgments, chosen: tuple[Any, Any, int, str], given: Mapping[str, Any],
    again: tuple[int | None, str], **how: Any,
) -> Any:  # fmt: skip
    """The consensus of many judgments in parts, the method chosen by those of the first part, with its resamples.

    ``None`` where judgments in memory are to be fitted as a whole, since the method cannot go in parts.
    """
    from ..cluster.resamples import plan_part_draws

    method, params, seed, want = chosen
    bootstrap, resample = again
    plan = None if bootstrap is None else plan_part_draws(packed, bootstrap, resample, seed)
    anchored, first = "known" in given or "trusted" in given, first_judgments(packed)
    aggregator = chosen_aggregator(first, method, params, seed, want, anchored=anchored, resumed="start" in given)
    _say_outcome_only(first, aggregator)
    if packed.keeps_ranking and not any(how[name] for name in ("stream", "cluster", "resume")):
        try:
            expect_parts(packed, aggregator, given)
        except (ParameterError, JudgmentError):
            # what is wrong with the judgments themselves, the fit as a whole says too
            say(f"{method_label(aggregator)} needs all judgments at once: in memory")
            return None
    fitted = _with_trusted(fit_packed(packed, aggregator, given, **how), given.get("trusted"))
    if plan is None:
        return fitted
    assert isinstance(fitted, Consensus)
    return with_replicates(fitted, resample_packed(packed, aggregator, given, fitted, plan, **how))


def check_aggregation(
    method: Any = "auto",
    params: Mapping[str, Any] | None = None,
    *,
    want: str = "order",
    bootstrap: int | None = None,
    resample: str = "judgment",
    robust: str | None = None,
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
    check_robust(robust, bootstrap)
    if bootstrap is not None:
        from ..resampling import check_draws

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
    resumed: bool = False,
    controlled: bool = False,
    features: Features | None = None,
) -> Any:
    """Return the aggregator that a name stands for, the one that ``"auto"`` picks, or the one given."""
    if not isinstance(method, str):
        if params:
            raise ParameterError(f"{option('params')} goes with the name of a method; give them to the method itself")
        return _fitting(judgments, method)
    if method == "auto":
        choice = auto_method(
            judgments, want, anchored=anchored, resumed=resumed, controlled=controlled, features=features
        )
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
        if not isinstance(part, Grades) or want != "order":
            continue
        from ..review.crowd_agreement import looks_unordered

        reason = looks_unordered(part)
        if reason:
            say(
                f"the grades look like classes without an order: {reason}. Their order was used all the same; for "
                f"classes give {option('nominal', True)}"
            )


def _control_sentences(consensus: Consensus) -> list[str]:
    """What the coefficients of covariates mean, where there are any."""
    if not consensus.estimates.get("control"):
        return []
    from ..review.findings import control_sentences

    return control_sentences(consensus.estimates)


def _say_outcome_only(judgments: Judgments | Mixed, aggregator: Any) -> None:
    """Say where preferences have strengths that the method does not use."""
    graded = any(isinstance(part, Preferences) and part.strength is not None for part in parts_of(judgments))
    if graded and not getattr(aggregator, "uses_strength", False):
        weights = option("strength_weights")
        say(f"{method_label(aggregator)} uses only who won, not by how much; {weights} makes weights of that")


def with_replicates(consensus: Consensus, replicates: Replicates) -> Consensus:
    """Return the consensus with scores of resamples, which say all there is of the spread from now on."""
    return replace(
        consensus, replicates=replicates.scores, std_error=replicates.std_error,
        covariance=None, estimates={**consensus.estimates, "bootstrap": replicates.summary},
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
    if len(items) < _MANY_QUERIES * len(ids) or (ids.str.len_chars() <= _MAX_NUMBERING_CHARACTERS).all():
        return None
    each = sum(_placings(part) for part in parts_of(judgments)) / len(items)
    if each >= _FEW_JUDGMENTS:
        return None
    return recurring_items(len(ids), items.n_queries)


def _placings(judgments: Judgments) -> int:
    """How often items are judged: once by a grade, twice by a preference, each by a ranking."""
    if isinstance(judgments, Rankings):
        return len(judgments.item)
    return len(judgments) * (2 if isinstance(judgments, Preferences) else 1)


def _fit(aggregator: Any, judgments: Judgments | Mixed, extra: dict[str, Any]) -> Consensus:
    """Fit with those further arguments that the method takes."""
    expect_arguments(aggregator, extra, methods_taking)
    expect_parameters(aggregator)
    fitted: Consensus = aggregator.fit(judgments, **extra)
    return fitted


def _with_trusted(fitted: Any, trusted: list[Any] | None) -> Any:
    """The consensus with who was trusted, which findings and further fits go by."""
    if not trusted or not isinstance(fitted, Consensus):
        return fitted
    return replace(fitted, estimates={**fitted.estimates, "trusted": trusted})


def _sample(packed: PackedJudgments) -> Judgments:
    """Packed judgments in memory; of very many a sample, and that is said."""
    from ..cluster.one_pass import sample_of

    sample = sample_of(packed)
    if len(sample) < packed.rows:
        say(f"a sample of {len(sample):,} of {packed.rows:,} {packed.kind}s is used", needed=True)
    return sample


def as_judgments(judgments: Any, control: str | Sequence[str] | None = None) -> Judgments | Mixed:
    """Return judgments from judgments, a frame, rows or a path, or from a list of them.

    ``control`` names covariates of preferences that are to be read too.
    """
    if isinstance(judgments, Grades | Preferences | Rankings | Mixed):
        return judgments
    packed = as_packed(judgments)
    if packed is not None:
        return _sample(packed)
    if isinstance(judgments, str | os.PathLike) and control is not None:
        return read_files([judgments], read_options(**read_covariates_of(control)))
    if isinstance(judgments, str | os.PathLike):
        return read_judgments(judgments)
    judgments = list(judgments) if isinstance(judgments, Iterator) else judgments
    if isinstance(judgments, list | tuple) and not are_rows(judgments):
        return _as_one(judgments, control)
    frame = to_frame(judgments)
    understood = understand(frame)
    if control is not None and understood.kind == "preference":
        wanted = read_covariates_of(control)
        frame = frame if wanted["add_columns"] is None else wanted["add_columns"](frame)
        return Preferences.from_frame(frame, covariates=wanted["covariates"])
    return KINDS[understood.kind].from_frame(understood)


def _as_one(judgments: Sequence[Any], control: str | Sequence[str] | None) -> Judgments | Mixed:
    """Several sets of judgments, frames or paths as one set of judgments."""
    if judgments and all(isinstance(one, str | os.PathLike) for one in judgments):
        if control is not None:
            return read_files(list(judgments), read_options(**read_covariates_of(control)))
        return read_judgments(judgments)
    return together([part for one in judgments for part in parts_of(as_judgments(one, control))])


def reweigh_pairs(judgments: Judgments | Mixed, rule: str) -> Preferences:
    """Return preferences whose weight falls with the number of preferences of their pair, of mean 1."""
    one_of(rule, ("pairs",), "reweight", of_verb=True)
    if not isinstance(judgments, Preferences):
        raise JudgmentError(f"{option('reweight')} applies to preferences, but these are other judgments; leave it out")
    low, high = np.minimum(judgments.left, judgments.right), np.maximum(judgments.left, judgments.right)
    pair = np.unique(low.astype(np.int64) * judgments.n_items + high, return_inverse=True)[1]
    number = np.bincount(pair, judgments.row_weight)[pair] if len(pair) else np.empty(0)
    weight = judgments.row_weight / np.maximum(number, _MIN_PAIR_NUMBER)
    return replace(judgments, weight=weight / weight.mean() if len(weight) else weight)


def settle_swaps(judgments: Judgments | Mixed, rule: str) -> Judgments | Mixed:
    """Return the judgments after a rule for answers that change when sides are exchanged, and say how many did.

    See :meth:`crowdrank.Preferences.settle_swaps`.
    """
    if rule == "keep":
        return judgments
    if not isinstance(judgments, Preferences):
        raise JudgmentError(f"{option('swaps')} applies to preferences, but these are other judgments; leave it out")
    settled = judgments.settle_swaps(rule)
    unstable = judgments.changes_with_side()
    n_tied = int((judgments.outcome[unstable] == 0).sum())
    what = "left out" if rule == "drop" else "made ties" + (f", which {n_tied:,} of them were before" if n_tied else "")
    say(f"{unstable.sum():,} of {len(judgments):,} answers changed when sides were exchanged and were {what}")
    return settled


def expect_one_kind(judgments: Judgments | Mixed, what: str) -> Judgments:
    """Return the judgments if they are of one kind; ``what`` names what cannot do with several."""
    if isinstance(judgments, Mixed):
        each = ", then the ".join(f"{kind}s" for kind in judgments.kinds)
        raise JudgmentError(f"{what} looks at one kind of judgment at a time; give it the {each}")
    return judgments


def methods_taking(argument: str) -> list[str]:
    """Return the names of the aggregators whose ``fit`` takes an argument."""
    from ..registry import names

    return [name for name in names("aggregator") if takes_argument(method_class("aggregator", name), argument)]


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


def display_names(methods: list[str]) -> list[str]:
    """Return the names to show methods by, each once."""
    return list(dict.fromkeys(label("aggregator", name) for name in methods))
