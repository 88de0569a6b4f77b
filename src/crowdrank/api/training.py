"""From judgments and features to a ranker, and from a ranker to ranked items."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..data.consensus import Consensus, method_name
from ..data.features import Features
from ..data.index import Index
from ..data.judgments import Grades, Judgments
from ..errors import JudgmentError, ParameterError
from ..io.features import read_features
from ..io.rankers import load_ranker
from ..io.truth import read_truth
from ..joint.two_stage import TwoStage, TwoStageFit, item_scores
from ..protocols import Aggregator, Progress
from ..registry import make
from .aggregation import as_judgments, chosen_aggregator
from .diagnosis import with_diagnostics


def train(
    judgments: Any,
    features: Any,
    ranker: Any = "lambda_mart",
    aggregator: str | Aggregator | None = "auto",
    *,
    params: Mapping[str, Any] | None = None,
    aggregator_params: Mapping[str, Any] | None = None,
    validation: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> TwoStageFit:
    """Return a ranker trained on judgments of items with features; it scores items that nobody judged.

    Parameters
    ----------
    judgments
        Grades, preferences or rankings; a frame, or a file's path; ``None`` for the grades that came with the features.
    features
        Features of the items, with query, item and numbers; a frame, or a file's path.
    ranker
        Name of a ranker (``crowdrank methods`` lists them), or a ranker itself.
    aggregator
        Name of the aggregator whose consensus is learned, ``"auto"``, or an aggregator itself; ``None`` learns from
        every grade by itself.
    params, aggregator_params
        Parameters of the named ranker and aggregator.
    validation
        What the learning curve is measured on, and where rankers with patience stop: a share of the queries, which are
        held out; features with grades, or their file's path; or a pair of features and truth.
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
    known = as_features(features)
    judged = _own_grades(known) if judgments is None else as_judgments(judgments)
    if judgments is None and aggregator == "auto":
        aggregator = None
    method = None if aggregator is None else chosen_aggregator(judged, aggregator, aggregator_params, seed)
    if aggregator is None and aggregator_params:
        raise ParameterError("aggregator_params= goes with the name of an aggregator; leave it out or name one")
    if params and not isinstance(ranker, str):
        raise ParameterError("params= goes with the name of a ranker; give them to the ranker itself")
    chosen = make("ranker", ranker, params, seed=seed) if isinstance(ranker, str) else ranker
    two_stage = TwoStage(aggregator=method, ranker=chosen, gain=(params or {}).get("gain"), seed=seed)
    fit = two_stage.fit(judged, known, validation=_validation(validation), progress=progress)
    if fit.consensus is not None:
        fit = replace(fit, consensus=with_diagnostics(fit.consensus, judged))
    return fit


def rank(ranker: Any, features: Any) -> pl.DataFrame:
    """Return items ranked by a trained ranker: query, item, score, rank, best first in each query.

    Parameters
    ----------
    ranker
        What :func:`train` returned, a fitted ranker, or the path of a saved one.
    features
        Features of the items, with the columns that the ranker was trained on; a frame, or a file's path.
    """
    fitted = load_ranker(ranker) if isinstance(ranker, str | os.PathLike) else getattr(ranker, "ranker", ranker)
    known = as_features(features)
    return Consensus(items=known.items, scores=item_scores(fitted, known), method=method_name(fitted)).frame()


def as_features(features: Any) -> Features:
    """Return features from features, a frame or a path."""
    if isinstance(features, Features):
        return features
    return read_features(features) if isinstance(features, str | os.PathLike) else Features.from_frame(features)


def _own_grades(features: Features) -> Judgments:
    """The grades that came with features, as grades by nobody in particular."""
    if features.grade is None:
        raise JudgmentError("there are neither judgments nor grades in the features; give one of them")
    item = np.flatnonzero(np.isfinite(features.grade)).astype(np.int32)
    nobody = np.empty(0, np.int32)
    return Grades(
        items=features.items, annotators=Index.empty(), annotator=nobody, item=item, grade=features.grade[item]
    )


def _validation(validation: Any) -> float | Features | None:
    """A share of the queries, or features with grades."""
    if validation is None or isinstance(validation, float | int):
        return validation
    if not isinstance(validation, tuple):
        return as_features(validation)
    features, truth = as_features(validation[0]), read_truth(validation[1])
    if truth.grade is None or truth.nominal:
        raise ParameterError("validation takes a truth of grades or ranks of items; this one is about pairs or classes")
    grade = truth.align(features.items)
    # ranks come as negative grades
    lowest = np.nanmin(grade, initial=0.0)
    return replace(features, grade=grade - lowest)
