"""From judgments to a consensus, by the name of a method or by the rule that picks one."""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..cluster.packed import PackedJudgments
from ..data.column_names import understand_items
from ..data.columns import understand
from ..data.consensus import Consensus
from ..data.covariates import covariate_columns, parse_covariates
from ..data.features import Features
from ..data.frames import are_rows, to_frame
from ..data.grades import MAX_LEVELS
from ..data.judgments import KINDS, Grades, Judgments, Mixed, Preferences, Rankings, expect, parts_of, together
from ..drift import drift_sentence
from ..errors import DataWarning, JudgmentError, ParameterError
from ..io.exports.cells import answer_text
from ..io.judgments import read_files, read_judgments
from ..io.notices import say
from ..io.read_options import read_options
from ..protocols import Aggregator, Progress, expect_arguments, expect_parameters, given_arguments, takes_argument
from ..quality import trusted_annotators
from ..registry import card, make, method_class, name_for_kind, names
from ..wording import call, counted, either, first_few, method_label, one_of, option, recurring_items
from . import in_parts
from .in_parts import Passes, as_packed
from .robust_errors import with_robust_errors, with_shared_error
from .sentences import words_of

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
    shared: str | None = None,
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
    shared
        ``"estimated"`` widens standard errors by the errors that annotators share: what :func:`crowdrank.diagnose`
        finds of copies and models of one family, where at least five annotators overlap, and an allowance for what all
        get wrong alike about a query, where there are twenty queries or more and nobody is ``trusted``. It is the
        default. ``estimates["shared"]`` says how much wider they are; ``"none"`` takes annotators to err independently.
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
    check_aggregation(method, params, want=want, bootstrap=bootstrap, resample=resample, robust=robust, shared=shared)
    passes = Passes(stream, cluster, resume, progress)
    source: Any = as_packed(judgments)
    if source is not None and across_queries:
        remedy = "give across_queries=True to pack in place of aggregate"
        raise ParameterError(f"packed judgments keep the queries they were packed with; {remedy}")
    if source is None and passes.asked and control is None:
        # long files are packed on the way
        files = list(judgments) if isinstance(judgments, list | tuple) else [judgments]
        named = bool(files) and all(isinstance(one, str | os.PathLike) for one in files)
        if named and in_parts.file_advice(files) is not None:
            source = in_parts.pack_aside(files, across_queries=across_queries)
            source = source if len(source) >= in_parts.MANY_ROWS else None
    if source is None:
        whole = as_judgments(judgments, control)
        whole = whole.across_queries() if across_queries else whole
        source = in_parts.hold_many(whole, method, bootstrap=bootstrap)
        if source is not None and (passes.cluster or passes.resume) and control is None:
            source = in_parts.pack_aside(source.whole)
        source = whole if source is None else source
    if trusted is not None:
        # from here on by their ids, which any part or resample of the judgments understands
        trusted = source.annotators.ids.filter(pl.Series(trusted_annotators(source, trusted))).to_list()
    anchored = known is not None or trusted is not None
    choose = partial(chosen_aggregator, method=method, params=params, seed=seed, want=want, anchored=anchored)
    given = given_arguments(start=start, known=known, trusted=trusted)
    packed = isinstance(source, PackedJudgments)
    if packed and len(source) >= in_parts.MANY_ROWS:
        whole_only = {"control": control, "robust": robust, "shared": shared, "reweight": reweight}
        asked = [name for name, value in whole_only.items() if value not in (None, "none")]
        if asked:
            in_parts.expect_whole(source, asked[0], passes)
        else:
            draw = None if bootstrap is None else (bootstrap, resample, seed)
            in_pieces: Consensus | None = _aggregate_parts(source, choose, given, draw, passes)
            if in_pieces is not None:
                return in_pieces
    judged: Any = in_parts.whole_judgments(source) if packed else source
    controlled = None if control is None else names_to_control(judged, control)
    if reweight is not None:
        judged, robust = reweigh_pairs(judged, reweight), robust or (None if bootstrap else "judgment")
    _say_recurring(judged)
    aggregator = choose(judged, controlled=bool(controlled))
    _say_outcome_only(judged, aggregator)
    draws = None
    if bootstrap is not None:
        from ..resampling import plan_draws, replicates

        draws = plan_draws(judged, bootstrap, resample, seed)
    given |= given_arguments(control=controlled)
    expect_arguments(aggregator, given, _methods_taking)
    expect_parameters(aggregator)
    fitted = _with_trusted(aggregator.fit(judged, **given), trusted)
    warn_of_sides(fitted, judged)
    if fitted.estimates.get("control"):
        from ..review.findings import control_sentences

        for sentence in control_sentences(fitted.estimates):
            say(sentence)
    said = drift_sentence(fitted)
    if said is not None:
        say(said)
    if draws is None:
        return with_shared_error(with_robust_errors(fitted, aggregator, judged, robust), judged, shared)
    return with_replicates(fitted, replicates(aggregator, judged, draws, fitted, extra=given, progress=progress))


def _aggregate_parts(
    packed: PackedJudgments, choose: Callable[[Judgments], Any], given: Mapping[str, Any],
    draw: tuple[int, str, int] | None, passes: Passes,
) -> Any:  # fmt: skip
    """The consensus of many judgments in parts, the method chosen by those of the first part, with its resamples.

    ``None`` where judgments in memory are to be fitted as a whole, since the method cannot go in parts.
    """
    from ..cluster.resamples import plan_part_draws

    plan = None if draw is None else plan_part_draws(packed, *draw)
    first = in_parts.first_judgments(packed)
    aggregator = choose(first)
    _say_outcome_only(first, aggregator)
    if packed.keeps_ranking and not passes.asked:
        try:
            in_parts.expect_parts(packed, aggregator, given)
        except (ParameterError, JudgmentError):
            # what is wrong with the judgments themselves, the fit as a whole says too
            say(f"{method_label(aggregator)} needs all judgments at once: in memory")
            return None
    fitted = _with_trusted(in_parts.fit_packed(packed, aggregator, given, passes), given.get("trusted"))
    if plan is None:
        return fitted
    assert isinstance(fitted, Consensus)
    return with_replicates(fitted, in_parts.resample_packed(packed, aggregator, given, fitted, plan, passes))


def check_aggregation(
    method: Any = "auto",
    params: Mapping[str, Any] | None = None,
    *,
    want: str = "order",
    bootstrap: int | None = None,
    resample: str = "judgment",
    robust: str | None = None,
    shared: str | None = None,
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
    choices = {"robust": ("annotator", "query", "judgment", "none"), "shared": ("estimated", "none")}
    for name, value in given_arguments(robust=robust, shared=shared).items():
        one_of(value, choices[name], name, of_verb=True)
        if value != "none" and bootstrap is not None:
            raise ParameterError(words_of("two_errors", name=option(name)))
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
    controlled: bool = False,
    features: Features | None = None,
) -> Any:
    """Return the aggregator that a name stands for, the one that ``"auto"`` picks, or the one given."""
    if not isinstance(method, str):
        if params:
            raise ParameterError(f"{option('params')} goes with the name of a method; give them to the method itself")
        return expect_taken(judgments, method)
    if method == "auto":
        choice = auto_method(judgments, want, anchored=anchored, controlled=controlled, features=features)
        method = choice.method
        say(f"method {method}, since {choice.reason}")
        for part in parts_of(judgments) if want == "order" else ():
            if not isinstance(part, Grades):
                continue
            from ..review.crowd_agreement import looks_unordered

            reason = looks_unordered(part)
            if reason:
                say(words_of("looks_unordered", reason=reason, given=option("nominal", True)))
    return expect_taken(judgments, make("aggregator", name_for_kind(method, judgments.kind), params, seed=seed))


def expect_taken(judgments: Judgments | Mixed, method: Any, *, family: str = "aggregator") -> Any:
    """Return a method if it takes these judgments; otherwise say which do."""
    try:
        expect(judgments, method)
    except JudgmentError:
        if family == "aggregator":
            expect(judgments, method, instead=methods_for(judgments))
        others = [one.replace("_", "-") for one in names(family) if judgments.kind in card(family, one).kinds]
        expect(judgments, method, instead=others, what=family)
    return method


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


def _say_recurring(judgments: Judgments | Mixed) -> None:
    """Say that equal ids of different queries may be one item, where that is likely.

    It is likely where few ids stand in many queries each and hardly judged within any, as models over prompts do. Ids
    that merely count the items of their query, such as 1 to 10, say nothing of it.
    """
    items = judgments.items
    if judgments.block is not None or items.n_queries < _MANY_QUERIES:
        return
    ids = items.ids.cast(pl.String).unique()
    if len(items) < _MANY_QUERIES * len(ids) or (ids.str.len_chars() <= _MAX_NUMBERING_CHARACTERS).all():
        return
    # an item is judged once by a grade, twice by a preference, and each by a ranking
    n_judged = sum(
        len(part.item) if isinstance(part, Rankings) else len(part) * (2 if isinstance(part, Preferences) else 1)
        for part in parts_of(judgments)
    )
    if n_judged < _FEW_JUDGMENTS * len(items):
        say(recurring_items(len(ids), items.n_queries))


def _with_trusted(fitted: Any, trusted: list[Any] | None) -> Any:
    """The consensus with who was trusted, which findings and further fits go by."""
    if not trusted or not isinstance(fitted, Consensus):
        return fitted
    return replace(fitted, estimates={**fitted.estimates, "trusted": trusted})


def as_judgments(judgments: Any, control: str | Sequence[str] | None = None) -> Judgments | Mixed:
    """Return judgments from judgments, a frame, rows or a path, or from a list of them.

    ``control`` names covariates of preferences that are to be read too.
    """
    if isinstance(judgments, Grades | Preferences | Rankings | Mixed):
        return judgments
    packed = as_packed(judgments)
    if packed is not None:
        from ..cluster.results import sample_of

        sample = sample_of(packed)
        if len(sample) < packed.rows:
            say(f"a sample of {len(sample):,} of {packed.rows:,} {packed.kind}s is used", needed=True)
        return sample
    judgments = list(judgments) if isinstance(judgments, Iterator) else judgments
    paths = [judgments] if isinstance(judgments, str | os.PathLike) else judgments
    if isinstance(paths, list | tuple) and paths and all(isinstance(one, str | os.PathLike) for one in paths):
        how = None if control is None else read_options(**read_covariates_of(control))
        return read_judgments(paths) if how is None else read_files(paths, how)
    if isinstance(judgments, list | tuple) and not are_rows(judgments):
        return together([part for one in judgments for part in parts_of(as_judgments(one, control))])
    frame = to_frame(judgments)
    understood = understand(frame)
    if control is not None and understood.kind == "preference":
        wanted = read_covariates_of(control)
        frame = frame if wanted["add_columns"] is None else wanted["add_columns"](frame)
        return Preferences.from_frame(frame, covariates=wanted["covariates"])
    return KINDS[understood.kind].from_frame(understood)


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


def warn_of_sides(consensus: Consensus, judgments: Judgments | Mixed) -> None:
    """Warn at once of annotators who choose one side, and say where the sides are the recorder's."""
    for part in parts_of(judgments):
        if isinstance(part, Preferences) and len(part):
            from ..review.habits import recorded_sentences, side_sentences

            for sentence in side_sentences(part, consensus.scores, glance=True):
                warnings.warn(sentence, DataWarning, stacklevel=3)
            if part.recorded is None:
                # of tables of winners and losers it was said when they were read
                for sentence in recorded_sentences(part, glance=True):
                    say(sentence)


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


def _methods_taking(argument: str) -> list[str]:
    """Names of the aggregators whose ``fit`` takes an argument."""
    return [name for name in names("aggregator") if takes_argument(method_class("aggregator", name), argument)]


def methods_for(judgments: Judgments | Mixed) -> list[str]:
    """Return the names of the aggregators that take these judgments as they are."""
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


FEWEST = 5.0
"""Judgments of an annotator, on average, from which on it pays to learn how far each can be relied on."""


PLAIN = {"grade": "mean_grade", "preference": "bradley_terry", "ranking": "borda"}
"""Kind -> method that takes every annotator for the same."""


@dataclass(frozen=True)
class Choice:
    """What ``method="auto"`` takes, and why."""

    method: str
    reason: str


_CHOICES = tomllib.loads(Path(__file__).with_name("choices.toml").read_text(encoding="utf-8"))
METHODS, SCHEMES = ({case: Choice(**one) for case, one in _CHOICES[part].items()} for part in ("methods", "schemes"))
"""Case -> the aggregator, and the labelling scheme, that ``"auto"`` takes."""

GOOD_FROM = 2.0
"""Grade from which on if-good-3 counts an item as good unless it is told otherwise."""


def auto_method(
    judgments: Judgments | Mixed,
    want: str = "order",
    *,
    anchored: bool = False,
    controlled: bool = False,
    features: Features | None = None,
) -> Choice:
    """Return the method that ``"auto"`` means for these judgments, with its parameters and why.

    ``want`` is what is wanted of it: an ``"order"`` of items, one of the grades (``"grade"``), or a ``"target"`` that a
    ranker learns. ``anchored`` says that annotators known to be good, or known items, are given, ``controlled`` that
    covariates are to be controlled for. With ``features`` that a ranker is to
    learn from, the class method of ``"grade"`` is taken as its target where that pays on held-out queries.

    Examples
    --------
    >>> votes = Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 1)])
    >>> auto_method(votes).method, auto_method(votes).reason
    ('mean_grade', 'only one annotator: quality cannot be estimated')
    """
    check_want(want)
    if controlled:
        if not isinstance(judgments, Preferences):
            kinds = " and ".join(f"{part.kind}s" for part in parts_of(judgments))
            remedy = f"leave {option('control')} out"
            raise JudgmentError(f"only preferences have covariates to control for, not {kinds}; {remedy}")
        against = None if anchored else _against_learning(judgments)
        if against is None:
            return METHODS["controlled"]
        return Choice("bradley_terry", f"it controls for covariates; {against}")
    if isinstance(judgments, Grades) and (want == "grade" or judgments.nominal):
        return METHODS[_case_of_classes(judgments)]
    if want == "grade":
        kinds = "several kinds together" if isinstance(judgments, Mixed) else f"{judgments.kind}s"
        alone = "give the grades alone, or " if isinstance(judgments, Mixed) else ""
        raise ParameterError(f"{kinds} give no grade; {alone}use {option('want', 'order')}")
    if isinstance(judgments, Mixed):
        return METHODS["several"]
    if anchored and want == "order":
        return METHODS["anchored"]
    if want == "target" and isinstance(judgments, Grades):
        return METHODS["target"] if features is None else _of_target(judgments, features)
    against = _against_learning(judgments)
    if against is not None:
        return Choice(PLAIN[judgments.kind], against)
    if isinstance(judgments, Grades) and judgments.declared is None and len(judgments.levels) > MAX_LEVELS:
        return METHODS["numbers"]
    return METHODS["severity" if isinstance(judgments, Grades) and not _overlap(judgments) else "learned"]


def check_want(want: str) -> None:
    """Refuse to choose a method for something that none is chosen for."""
    if want not in ("order", "grade", "target"):
        one_of(want, ("order", "grade"), "want", of_verb=True)


def _against_learning(judgments: Judgments) -> str | None:
    """Why it does not pay, or is not possible, to learn who can be relied on; ``None`` where it does."""
    kind = judgments.kind
    if not judgments.n_annotators:
        return f"the {kind}s do not say who gave them, so all count the same"
    n_annotators, n_answers = len(np.unique(judgments.annotator)), len(judgments)
    if n_annotators == 1:
        return "only one annotator: quality cannot be estimated"
    if isinstance(judgments, Rankings):
        # a ranking of m items is worth m - 1 choices
        n_answers, kind = len(judgments.item) - n_answers, "choice"
    if n_answers >= FEWEST * n_annotators:
        return None
    each = counted(float(f"{n_answers / n_annotators:.2g}"), kind).replace(".0 ", " ")
    return f"annotators gave {each} each, too few to distinguish good from bad ones"


def _case_of_classes(grades: Grades) -> str:
    """The case where one of the grades is wanted."""
    if not grades.n_annotators:
        return "classes_of_nobody"
    return "classes" if _overlap(grades) else "classes_apart"


def _of_target(grades: Grades, features: Features) -> Choice:
    """The choice where a ranker learns from features: the class method if it is better by a standard error."""
    from ..validation.prediction import QueryHalves

    target, n_levels = METHODS["target"], len(grades.levels)
    few_levels = n_levels > 1 and (grades.declared is not None or n_levels <= MAX_LEVELS)
    halves = QueryHalves.of(grades, features) if few_levels else None
    if halves is None:
        return target
    rival = METHODS[_case_of_classes(grades)]
    usual, other = (halves.ndcg(choice.method) for choice in (target, rival))
    if usual is None or other is None:
        return target
    gain = other - usual
    figures = f"(nDCG@10 {other.mean():.3f} against {usual.mean():.3f} on {counted(len(gain), 'query')})"
    # by one standard error, as the ranker itself is chosen: two would keep the mean in most crowds where it costs .02
    if len(gain) > 1 and gain.mean() > gain.std(ddof=1) / len(gain) ** 0.5:
        reason = f"a ranker that learns from it does better on held-out queries than from {target.method} {figures}"
        return Choice(rival.method, reason)
    and_not = f"and one that learns from {rival.method} is not clearly better on held-out queries {figures}"
    return Choice(target.method, f"{target.reason}, {and_not}")


def auto_scheme(judgments: Judgments) -> Choice:
    """Return the labelling scheme that ``"auto"`` means for these judgments, and why.

    Examples
    --------
    >>> auto_scheme(Preferences.from_rows([("ann", "q", "x", "y", "left")])).method
    'information'
    """
    if isinstance(judgments, Grades | Preferences) and not judgments.n_judgments:
        return SCHEMES["nothing_yet"]
    if isinstance(judgments, Preferences):
        return SCHEMES["preferences"]
    if not isinstance(judgments, Grades):
        remedy = f"turn them into preferences with {call('as_preferences')}"
        raise JudgmentError(f"no scheme takes {judgments.kind}s; {remedy}")
    if judgments.nominal:
        return SCHEMES["classes"]
    good = judgments.level_values >= GOOD_FROM
    if good.any() and not good.all():
        return SCHEMES["grades"]
    if judgments.declared is None and len(good) > MAX_LEVELS:
        return SCHEMES["many_levels"]
    return SCHEMES["all_good" if good.any() else "none_good"]


def _overlap(grades: Grades) -> bool:
    """Whether some item was graded by two annotators."""
    first = np.full(grades.n_items, -1, np.int32)
    first[grades.item] = grades.annotator
    return bool((first[grades.item] != grades.annotator).any())


STYLE = ("length", "headers", "bold", "lists")
_TEXTS = (
    "left_text right_text", "text_left text_right", "response_a response_b", "answer_a answer_b", "output_1 output_2",
    "response_1 response_2", "text_a text_b", "conversation_a conversation_b",
)  # fmt: skip


def _control_names(control: str | Sequence[str]) -> dict[str, str]:
    """The covariates that are meant, with the transforms that are named; ``style`` means four of them."""
    transforms: dict[str, str] = {}
    for name, transform in parse_covariates(control).items():
        transforms |= dict.fromkeys(STYLE, transform) if name == "style" else {name: transform}
    return transforms


def names_to_control(judgments: Any, control: str | Sequence[str]) -> list[str]:
    """Return the names of the covariates that are meant, unless the judgments have one of them made in another way."""
    wanted = _control_names(control)
    if isinstance(judgments, Preferences):
        transforms = dict(zip(judgments.covariate_names, judgments.covariate_transforms, strict=True))
        for name, way in wanted.items():
            if way and transforms.get(name, way) != way:
                raise JudgmentError(words_of("other_transform", name=name, known=transforms[name], way=way))
        if "self" in wanted and "self" not in transforms:
            raise JudgmentError(words_of("no_families"))
        # texts without lists, say, or judges of no item's family leave nothing to control for in that part
        none = zero_covariates(judgments, (*STYLE, "self")) if "style" in parse_covariates(control) else []
        if none and set(none) < set(wanted):
            verb = "is" if len(none) == 1 else "are"
            say(f"{either(none, 'and')} {verb} 0 in all preferences and not controlled for")
            return [name for name in wanted if name not in none]
    return list(wanted)


def expect_self(control: str | Sequence[str] | None) -> None:
    """Refuse families that nothing is to be controlled for by."""
    if control is None or "self" not in _control_names(control):
        raise ParameterError(f"families are for {option('control', 'self')}; add that, or leave families out")


def zero_covariates(judgments: Any, control: Sequence[str]) -> list[str]:
    """Return those covariates that are 0 in all of these preferences."""
    if not isinstance(judgments, Preferences) or judgments.covariates is None:
        return []
    some = dict(zip(judgments.covariate_names, (np.abs(judgments.covariates).sum(axis=0) > 0).tolist(), strict=True))
    return [name for name in control if not some.get(name, True)]


def read_covariates_of(control: str | Sequence[str]) -> dict[str, Any]:
    """Return the options of reading that covariates need: their names, and what counts style in texts."""
    wanted = _control_names(control)
    style = [name for name in STYLE if name in wanted]
    covariates = [f"{name}:{way}" if way else name for name, way in wanted.items()]
    return {"covariates": covariates, "add_columns": partial(_with_style, wanted=style) if style else None}


def style_counts(texts: Any) -> pl.DataFrame:
    """Return how long texts are and how they are formatted: length, headers, bold, lists.

    Length is in characters; headers, bold and lists are those of Markdown, code blocks left out.

    Examples
    --------
    >>> style_counts(["# Title", "- one\\n- two"]).rows()
    [(7, 1, 0, 0), (11, 0, 0, 2)]
    """
    from ..features.style import markdown_counts, plain_text

    rows = []
    for text in texts:
        plain = plain_text("" if text is None else str(text)).strip()
        counts = markdown_counts(plain)[0]
        rows.append((len(plain), counts["headings"], counts["bold"], counts["bullets"] + counts["numbered"]))
    return pl.DataFrame(rows, schema=STYLE, orient="row")


def _with_style(table: pl.DataFrame, wanted: Sequence[str]) -> pl.DataFrame:
    """The table with style counted in its texts: ``length_left``, ``length_right``, ...

    What the table has in columns of its own is not counted.
    """
    lacking = [name for name in wanted if not covariate_columns(table, [name])]
    if not lacking:
        return table
    sides = next((pair for pair in map(str.split, _TEXTS) if set(pair) <= set(table.columns)), None)
    if sides is None:
        columns = first_few(map(repr, table.columns), shown=40)
        raise JudgmentError(words_of("no_covariate", lacking=lacking[0], columns=columns))
    for side, name in zip(("left", "right"), sides, strict=True):
        if table.schema[name].is_nested():
            table = table.with_columns(pl.Series(name, [answer_text(one) for one in table[name].to_list()], pl.String))
        # many rows show the same text
        texts = table[name].unique(maintain_order=True)
        counts = style_counts(texts).select(pl.col(style).alias(f"{style}_{side}") for style in lacking)
        table = table.join(counts.with_columns(texts.alias(name)), on=name, how="left", nulls_equal=True)
    return table


def with_families(judgments: Judgments | Mixed, families: Any) -> Preferences:
    """Return preferences with the covariate ``self``: whether left, or right, is of the annotator's own family.

    ``families`` is a table of item and family; the family of an annotator is the group. Then
    ``aggregate(preferences, control=["self"])`` controls for annotators who prefer their own family.

    Examples
    --------
    >>> rows = {"left": ["m1", "m2"], "right": ["m2", "m3"], "winner": ["left", "tie"], "annotator": ["j", "j"],
    ...         "group": ["red", "red"]}
    >>> families = {"item": ["m1", "m2", "m3"], "family": ["red", "blue", "green"]}
    >>> with_families(Preferences.from_frame(rows), families).covariates.tolist()
    [[1.0], [0.0]]
    """
    if not isinstance(judgments, Preferences):
        raise JudgmentError(f"{option('families')} applies to preferences, but these are other judgments; leave it out")
    if judgments.group is None or judgments.groups is None:
        raise JudgmentError("control of own families needs a group column: the family of each annotator")
    table = to_frame(families)
    name = understand_items(table.columns)["item"]
    if "family" not in table.columns:
        raise JudgmentError(f"the table of families has no column family; its columns are {', '.join(table.columns)}")
    known = dict(zip(table[name].cast(pl.String), table["family"].cast(pl.String), strict=True))
    ids = judgments.items.ids.cast(pl.String).to_list()
    missing = sorted({item for item in ids if known.get(item) is None})
    if missing:
        raise JudgmentError(f"the table of families lacks {first_few(map(repr, missing))}; add the family of each")
    code = {group: place for place, group in enumerate(judgments.groups.ids.cast(pl.String).to_list())}
    family = np.array([code.get(known[item], -1) for item in ids])
    own = judgments.group[judgments.annotator]
    keep = [place for place, one in enumerate(judgments.covariate_names) if one != "self"]
    if judgments.covariates is not None and len(keep) < len(judgments.covariate_names):
        # the table given is the better one to go by
        named = (judgments.covariate_names, judgments.covariate_transforms)
        names, transforms = (tuple(each[place] for place in keep) for each in named)
        covariates = judgments.covariates[:, keep]
        judgments = replace(judgments, covariates=covariates, covariate_names=names, covariate_transforms=transforms)
    values = (family[judgments.left] == own).astype(float) - (family[judgments.right] == own)
    return judgments.with_covariate("self", values)
