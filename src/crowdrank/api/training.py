"""From judgments and features to a ranker, and from a ranker to ranked items."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import polars as pl

from ..cluster.packed import PackedJudgments
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.files import PathLike
from ..data.frames import to_frame
from ..data.index import Index
from ..data.joint_fit import JointFit, item_scores
from ..data.judgments import Grades, Rankings
from ..errors import JudgmentError, ParameterError
from ..io.features import read_features
from ..io.notices import say
from ..io.results import load_ranker
from ..io.tables import read_table
from ..io.truth import read_truth
from ..models.staged.two_stage import TwoStage
from ..options import COMMANDS
from ..protocols import Aggregator, Progress, expect_arguments, given_arguments, method_name
from ..registry import label, make, method_class, resolve
from ..wording import one_of, option
from . import in_parts
from .aggregation import as_judgments, chosen_aggregator, warn_of_sides
from .in_parts import Passes, as_packed, first_judgments, fit_joint_packed, fit_packed
from .sentences import words_of


def train(
    judgments: Any,
    features: Any,
    ranker: Any = None,
    aggregator: str | Aggregator | None = "auto",
    *,
    params: Mapping[str, Any] | None = None,
    aggregator_params: Mapping[str, Any] | None = None,
    joint: Any = None,
    known: Any | None = None,
    trusted: Any | None = None,
    validation: Any = None,
    stream: bool | None = None,
    cluster: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> JointFit:
    """Return a ranker trained on judgments of items with features; it scores items that nobody judged.

    By default the judgments become a consensus, and a ranker learns it. A joint method learns ranker, consensus and
    annotators together: features help where votes are few, and votes where features are weak.

    Parameters
    ----------
    judgments
        Grades, preferences or rankings; a frame, or a file's path; a list of them; packed judgments or their folder,
        whose consensus is fitted in parts where they are many; ``None`` for the grades that came with the features.
    features
        Features of the items, with query, item and numbers; a frame, or a file's path. Columns named like an id, a
        judgment or a truth are left out, with a warning; ``read_features(path, features=[...])`` names those to use.
    ranker
        Name of a ranker (``crowdrank methods`` lists them), or a ranker itself; ``None`` takes ``"auto"``, the one
        that does best on held-out queries (``fit.reason`` says which and why), ``"lambda_mart"`` where ``params`` has
        settings of trees, or what the joint method has.
    aggregator
        Name of the aggregator whose consensus is learned, or an aggregator itself; ``None`` learns from every grade by
        itself. ``"auto"`` learns grades from their mean, or from the class method that :func:`aggregate` takes for
        ``want="grade"`` where a ranker does clearly better with it on held-out queries.
    params, aggregator_params
        Parameters of the named ranker, or joint method, and of the aggregator.
    joint
        Name of a joint method (``crowdrank methods`` lists them), or one itself, in place of aggregator and ranker;
        those that are composed of such parts take the named ones.
    known
        What is known to be true, for joint methods that use it.
    trusted
        Annotators known to be good, for joint methods and aggregators that use it, named as in :func:`aggregate`.
    validation
        What the learning curve is measured on, and where rankers with patience stop: a share of the queries, which are
        held out and measured against the consensus of their judgments, not against a truth; features with grades, or
        their file's path; or a pair of features and truth.
    stream
        Read packed judgments anew in every pass of the aggregator, as :func:`aggregate` does.
    cluster
        Where the passes over packed judgments and over the rows of linear rankers run, and where the trees of
        ``"lambda_mart"`` are grown: a Dask client, the address of a scheduler, or ``"local:2"`` for two processes here.
        It changes no bit of a linear ranker; two fits of ``"lambda_mart"`` need not give the same trees.
    seed
        Seed of whatever is random.
    progress
        Called with (steps done, steps at most, name of the ranker).

    Examples
    --------
    >>> votes = {"item": ["x", "y", "x", "y"], "annotator": ["ann", "ann", "bob", "bob"], "grade": [3, 1, 2, 1]}
    >>> pages = {"item": ["x", "y", "z"], "length": [30, 10, 50]}
    >>> fit = train(votes, pages, ranker="list_net")
    >>> rank(fit, pages)["item"].to_list()
    ['z', 'x', 'y']
    """
    check_training(
        ranker, aggregator, params=params, aggregator_params=aggregator_params, joint=joint, validation=validation
    )
    two_stage = _is_two_stage(joint)
    # many packed judgments go in parts where the method does
    packed, passes = as_packed(judgments), Passes(stream, cluster, progress=progress)
    joint_class = method_class("joint", joint) if isinstance(joint, str) else joint
    goes_in_parts = aggregator is not None if two_stage else hasattr(joint_class, "over_blocks")
    if packed is not None and (len(packed) < in_parts.MANY_ROWS or not goes_in_parts):
        packed = None
    if two_stage:
        ranker, params = _ranker_of_rows(ranker, params, cluster, seed, packed=packed is not None)
    elif cluster is not None and packed is None:
        raise ParameterError(words_of("cluster_joint", rows=in_parts.MANY_ROWS))
    described = as_features(features)
    judged: Any = packed
    if packed is None and judgments is not None:
        judged = as_judgments(judgments)
    elif packed is None:
        # the grades that came with the features, by nobody in particular
        if described.grade is None:
            raise JudgmentError("there are neither judgments nor grades in the features; give one of them")
        item, nobody = np.flatnonzero(np.isfinite(described.grade)).astype(np.int32), np.empty(0, np.int32)
        judged = Grades(
            items=described.items, annotators=Index.empty(), annotator=nobody, item=item, grade=described.grade[item]
        )
    given = given_arguments(known=known, trusted=trusted)
    if not two_stage:
        method = _joint_method(joint, ranker, aggregator, params, seed)
    else:
        fitted = None
        if aggregator is not None and not (judgments is None and aggregator == "auto"):
            # what is known, and parameters, are for the usual method; otherwise targets are compared by the features
            compared = None if packed is not None or given or aggregator_params else described
            some = judged if packed is None else first_judgments(packed)
            fitted = chosen_aggregator(some, aggregator, aggregator_params, seed, "target", features=compared)
        in_pieces: Any = fitted if packed is None else PackedAggregator(fitted, passes)
        chosen = _chosen_ranker(ranker, params, seed)
        method = TwoStage(aggregator=in_pieces, ranker=chosen, gain=(params or {}).get("gain"), seed=seed)
    if packed is not None and not two_stage:
        fit = fit_joint_packed(packed, method, described, given, passes)
    else:
        held = {} if validation is None else {"validation": _validation(validation, described.names)}
        expect_arguments(method, [*given, *held])
        fit = method.fit(judged, described, **given, **held, progress=progress)
        if fit.reason is not None:
            say(fit.reason)
    if fit.ranker is not None:
        # what its features are made by
        fit.ranker.extractor_ = described.extractor
    if fit.consensus is not None and packed is None:
        warn_of_sides(fit.consensus, judged)
    return fit


@dataclass(frozen=True)
class PackedAggregator:
    """An aggregator whose consensus of packed judgments is fitted in parts."""

    aggregator: Any
    passes: Passes

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of judgments that it takes."""
        return self.aggregator.kinds

    @property
    def scale(self) -> str:
        """What its scores are: grades or gains."""
        return getattr(self.aggregator, "scale", "grade")

    def fit(self, packed: PackedJudgments, *, known: Any | None = None, trusted: Any | None = None) -> Consensus:
        """Return the consensus of packed judgments."""
        fitted = fit_packed(packed, self.aggregator, given_arguments(known=known, trusted=trusted), self.passes)
        if not isinstance(fitted, Consensus):
            remedy = "pack fewer queries and train on those"
            raise JudgmentError(f"{packed.n_items:,} items are more than a ranker learns from at once; {remedy}")
        return fitted


def _joint_method(joint: Any, ranker: Any, aggregator: Any, params: Mapping[str, Any] | None, seed: int) -> Any:
    """A joint method by its name, with those parts that it takes and that were named; or itself."""
    if not isinstance(joint, str):
        if params:
            raise ParameterError("params= goes with the name of a joint method; give them to the method itself")
        return joint
    named = {} if ranker is None else {"ranker": ranker}
    named |= {} if aggregator == "auto" else {"aggregator": aggregator}
    for part in named.keys() - {field.name for field in fields(method_class("joint", joint))}:
        raise ParameterError(f"{resolve('joint', joint)} has no {part} to choose; leave {option(part)} out")
    return make("joint", joint, {**named, **(params or {})}, seed=seed)


def rank(
    ranker: Any,
    features: Any,
    *,
    of: str | None = None,
    query: str | None = None,
    encoding: str = "utf-8",
    n_jobs: int = 1,
    cache: PathLike | None = None,
    on_error: str = "stop",
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Return items ranked by a trained ranker: query, item, score, rank, best first in each query.

    Parameters
    ----------
    ranker
        What :func:`train` returned, a fitted ranker, or the path of a saved one.
    features
        Features of the items, with the columns that the ranker was trained on, which are found by their names; a frame,
        or a file's path. Raw items (texts, pages, recordings), if the ranker learned from such: its columns are made
        of them first.
    of
        ``"text"``, ``"page"`` or ``"speech"``: take the items for raw ones, and refuse a ranker of another kind.
    query, encoding, n_jobs, cache, on_error, progress
        Of raw items, as :func:`crowdrank.features.like` takes them.

    Examples
    --------
    >>> import crowdrank as cr
    >>> votes = {"item": list("xyz"), "grade": [2, 1, 0]}
    >>> features = {"item": list("xyz"), "length": [9.0, 5.0, 1.0]}
    >>> model = cr.train(votes, features, ranker="list_net")
    >>> cr.rank(model, {"item": ["short", "long"], "length": [2.0, 8.0]})["item"].to_list()
    ['long', 'short']
    """
    from ..kernels.segments import join_ties

    given = load_ranker(ranker) if isinstance(ranker, str | os.PathLike) else ranker
    fitted = given.ranker if isinstance(given, JointFit) else given
    learned_from = getattr(fitted, "feature_names_in_", None)
    names = None if learned_from is None else [str(name) for name in learned_from]
    extractor = getattr(fitted, "extractor_", None)
    if of is not None and extractor is None:
        raise ParameterError(words_of("learned_from_table", given=option("of", of)))
    if extractor is not None and not isinstance(features, Features):
        table: Any = read_table("-") if isinstance(features, str) and features == "-" else features
        # a table that has the columns stays, anything else is raw items
        is_file = isinstance(table, str | os.PathLike)
        raw = of is not None or (is_file and os.path.isdir(table))
        if not raw:
            columns = (read_table(table) if is_file else to_frame(table)).columns
            raw = not set(names or ()) <= set(columns)
        if raw:
            from ..features import like

            table = like(
                extractor, table, of=of, query=query, encoding=encoding, n_jobs=n_jobs, cache=cache, on_error=on_error,
                progress=progress,
            )  # fmt: skip
        features = table
    known = as_features(features, names)
    scores = join_ties(item_scores(fitted, known), known.items.offsets)
    return Consensus(items=known.items, scores=scores, method=method_name(fitted)).frame()


def as_features(features: Any, names: Sequence[str] | None = None) -> Features:
    """Return features from features, a frame or a path: those of the names, if given."""
    if isinstance(features, Features):
        return features if names is None else features.select(names)
    if isinstance(features, str | os.PathLike):
        return read_features(features, features=names)
    return Features.from_frame(features, features=names)


def _validation(validation: Any, names: Sequence[str]) -> float | Features:
    """A share of the queries, or features with grades: those of the names that are learned from."""
    if isinstance(validation, float | int):
        return validation
    if not isinstance(validation, tuple):
        return as_features(validation, names)
    features, truth = as_features(validation[0], names), read_truth(validation[1])
    if truth.grade is None or truth.nominal:
        raise ParameterError("validation takes a truth of grades or ranks of items; this one is about pairs or classes")
    grade = truth.align(features.items)
    if not np.isfinite(grade).any():
        raise JudgmentError("the truth covers none of the validation items; make ids of queries and items agree")
    # ranks come as negative grades
    lowest = np.nanmin(grade, initial=0.0)
    return replace(features, grade=grade - lowest)


def check_training(
    ranker: Any = None,
    aggregator: str | Aggregator | None = "auto",
    *,
    params: Mapping[str, Any] | None = None,
    aggregator_params: Mapping[str, Any] | None = None,
    joint: Any = None,
    validation: Any = None,
) -> None:
    """Refuse what :func:`train` would refuse whatever the judgments are: names, parameters and shares."""
    from ..rankers.estimator import Ranker

    if isinstance(validation, float | int) and not 0 < validation < 1:
        raise ParameterError(f"validation={validation} must lie between 0 and 1; it is the share of queries held out")
    if _is_two_stage(joint):
        if aggregator_params and not isinstance(aggregator, str):
            raise ParameterError(words_of("unnamed_aggregator"))
        if isinstance(aggregator, str) and aggregator != "auto":
            make("aggregator", aggregator, aggregator_params)
        learner = _chosen_ranker(ranker, params, 0)
    else:
        learner = getattr(_joint_method(joint, ranker, aggregator, params, 0), "ranker", None)
    if isinstance(learner, Ranker):
        learner.check()


def _is_two_stage(joint: Any) -> bool:
    """Whether a ranker is trained after an aggregator; two_stage by its own name is what is made without one."""
    return joint is None or (isinstance(joint, str) and label("joint", joint) == "two_stage")


def _ranker_of_rows(
    ranker: Any, params: Mapping[str, Any] | None, cluster: Any, seed: int, *, packed: bool
) -> tuple[Any, Mapping[str, Any] | None]:
    """The ranker and its parameters; linear ones go in parts where rows are many, and a cluster grows trees."""
    from ..rankers.linear import LinearRanker

    named = ranker is None or (isinstance(ranker, str) and label("ranker", ranker) == "lambda_mart")
    if cluster is not None and named:
        from ..cluster.ranker import ClusterLambdaMART

        plain = make("ranker", "lambda_mart", params, seed=seed)
        return ClusterLambdaMART(**plain.get_params(deep=False), cluster=cluster), None
    chosen = _chosen_ranker(ranker, params, seed)
    if isinstance(chosen, LinearRanker):
        from ..cluster.ranker import PartedLinear

        return PartedLinear(ranker=chosen, cluster=cluster), None
    if cluster is not None and not packed:
        raise ParameterError(words_of("cluster_rankers"))
    return ranker, params


def _chosen_ranker(ranker: Any, params: Mapping[str, Any] | None, seed: int) -> Any:
    """The ranker of a name with its parameters, or the ranker given."""
    if ranker is None:
        # settings that auto does not have, such as a number of trees, are those of trees
        own = {field.name for field in fields(method_class("ranker", "auto"))}
        ranker = "auto" if set(params or ()) <= own else "lambda_mart"
    if isinstance(ranker, str):
        return make("ranker", ranker, params, seed=seed)
    if params:
        raise ParameterError("params= goes with the name of a ranker; give them to the ranker itself")
    return ranker


_ONLY_FOR = {option.name: option.only for option in COMMANDS["features"] if option.only}
"""Arguments that one kind alone takes."""


def make_features(
    items: Any,
    of: str | None = None,
    *,
    like: Any = None,
    clutter_measures: bool = False,
    query: str | None = None,
    encoding: str = "utf-8",
    n_jobs: int = 1,
    cache: PathLike | None = None,
    on_error: str = "stop",
    progress: Progress | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Features, Rankings | None]:
    """Return features of raw items, and rankings of pages by measures of clutter where they are asked for.

    Parameters
    ----------
    items, query, encoding, n_jobs, cache, on_error, progress
        As ``cr.features.texts``, ``pages`` and ``speech`` take them.
    of
        ``"text"``, ``"page"`` or ``"speech"``; what ``like`` is of by default.
    like
        A fit, model or features whose columns are made; then ``options`` are its own.
    clutter_measures
        Whether pages are ranked by three measures of clutter too.
    options
        What else the function of that kind takes, such as ``words``; ``None`` as a value stands for its own.
    """
    from .. import features as functions

    given = given_arguments(**(options or {}))
    check_extraction(of, like=like, clutter_measures=clutter_measures, options=given)
    given |= {"query": query, "n_jobs": n_jobs, "cache": cache, "on_error": on_error, "progress": progress}
    given |= {"encoding": encoding} if like is not None or of == "text" else {}
    if like is not None:
        return functions.like(like, items, of=of, **given), None
    if clutter_measures:
        return functions.pages_with_measures(items, **given)
    return getattr(functions, {"text": "texts", "page": "pages"}.get(str(of), "speech"))(items, **given), None


def check_extraction(
    of: str | None, *, like: Any = None, clutter_measures: bool = False, options: Mapping[str, Any] | None = None
) -> None:
    """Refuse what :func:`make_features` would refuse whatever the items are."""
    if of is None and like is None:
        raise ParameterError(f"say what the items are: {option('of', 'text')}, page or speech")
    if of is not None:
        one_of(of, ("text", "page", "speech"), "of", of_verb=True)
    given = [*(options or {}), *(["clutter_measures"] if clutter_measures else [])]
    if like is not None and given:
        raise ParameterError(f"{option('like')} makes the columns of that model; leave {option(given[0])} out")
    for name in given:
        if name in _ONLY_FOR and _ONLY_FOR[name] != of:
            raise ParameterError(f"{option(name)} goes with {option('of', _ONLY_FOR[name])}; leave it out")
