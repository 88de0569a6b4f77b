"""The start of a fit with features of many items: what a fit to a part of the queries finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...data.judgments import Judgments, Mixed
from ...data.parted import has_large_queries, sample_queries
from ...protocols import Bools, Floats, Progress
from .feature_weights import product
from .layout import Layout, lay_out
from .rounds import Options, fit_scores
from .state import Known, State, first_state

MIN_CELLS = 1 << 23
"""Cells of features from which on a fit starts from one to a part of the queries."""

_SHARE = 0.125
_OPTIONS = Options(0.02, 60, difficulty=False)
"""When the fit to the part stops: the fit to all goes on from there to its own tolerance."""

_MIN_STILL_ROUNDS = 5


def start_from_part(
    judgments: Judgments | Mixed, layout: Layout, features: Floats, known: Known, trusted: Bools | None, *,
    bins: int | None, lapse: bool | None, progress: Progress | None,
) -> State | None:  # fmt: skip
    """Return the state in which a fit to all judgments starts; ``None``: from nothing.

    Annotators, cuts, variances and weights are those of the part, and items have the scores that the weights predict.
    A fit starts from nothing where cells are few, items known, queries large, or the part lacks a level.
    """
    if features.size < MIN_CELLS or isinstance(judgments, Mixed) or known.clamped.any() or has_large_queries(judgments):
        return None
    n_judgments = np.bincount(judgments.annotator, minlength=judgments.n_annotators).astype(np.float64)
    part = sample_queries(judgments, n_judgments, _SHARE)
    if not len(part):
        return None
    of_part = lay_out(part, bins=bins, lapse=lapse)
    if not _same_scale(layout, of_part):
        return None
    rows = judgments.items.codes_of(part.items, "judgments", "part")
    state = fit_scores(of_part, _OPTIONS, features=features[rows], trusted=trusted, progress=_of_part(progress)).state
    first = first_state(layout, state.alpha, features.shape[1])
    kinds = tuple(
        # the centre stays that of all judgments
        replace(habits, centre=new.centre, cuts=habits.cuts + (habits.centre - new.centre), curvature=None)
        for habits, new in zip(state.kinds, first.kinds, strict=True)
    )
    return replace(
        state, scores=product(features, state.weights), variance=np.full(layout.n_items, state.variance_of_items),
        covariance=first.covariance, kinds=kinds, cell_curvature=(), feature_variances=None,
    )  # fmt: skip


def after_part(options: Options) -> Options:
    """Return when a fit that starts from a part stops: it may stand still after fewer rounds than one from nothing."""
    return options._replace(min_still_rounds=_MIN_STILL_ROUNDS)


def _same_scale(layout: Layout, part: Layout) -> bool:
    """Whether the judgments of a part have the levels of all, and levels of queries are learned from both."""
    levels = [[(kind.name, kind.n_levels, kind.levels) for kind in of.kinds] for of in (layout, part)]
    return levels[0] == levels[1] and layout.has_query_levels == part.has_query_levels


def _of_part(progress: Progress | None) -> Progress | None:
    """What is told of the rounds of the part."""
    if progress is None:
        return None
    return lambda done, total, said: progress(done, total, f"{said}, part of the queries")
