"""A whole fit: from answers and what is given besides to the state at the end, with its warnings."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...data.index import Items
from ...data.naming import named
from ...errors import DataWarning
from ...fitting import warn_unconverged
from ...protocols import Bools, Floats
from ...wording import option
from .anchors import Known, anchored
from .responses import Layout
from .rounds import ScoreFit, run
from .shared_parameters import LEAST_MEAN
from .state import LARGEST_VARIANCES, State, first_state

_LEAST_TOLD = 12.0
"""Weight of an annotator's rankings, as so many comparisons of equal items, that tells a good one from a reversed one.

Three rankings of four items weigh 11.5, three of twelve 53.
"""


class Options(NamedTuple):
    """When to stop: largest change in the last round, and most rounds."""

    tol: float = 5e-3
    max_iter: int = 300


def fit_scores(
    layout: Layout,
    options: Options,
    *,
    features: Floats | None = None,
    known: Known | None = None,
    trusted: Bools | None = None,
    start: State | None = None,
) -> ScoreFit:
    """Return the state that explains the answers.

    Parameters
    ----------
    layout
        The answers.
    options
        When to stop.
    features
        Features of each item, (n_items, n), columns of mean 0 and standard deviation 1.
    known
        Clamped items.
    trusted
        Annotators known to be good, (n_annotators,).
    start
        The state to go on from, see :func:`~crowdrank.models.latent_score.starts.former_state`.
    """
    features = np.empty((layout.n_items, 0)) if features is None else features
    known = Known.nothing(layout.n_items) if known is None else known
    trusted = np.zeros(layout.n_annotators, bool) if trusted is None else trusted
    anchors = anchored(layout, features, known, trusted)
    state = first_state(layout, anchors.crowd.mean.copy(), features.shape[1]) if start is None else start
    state = _with_known(state, known)
    return run(layout, state, anchors, tol=options.tol, max_iter=options.max_iter)


def _with_known(state: State, known: Known) -> State:
    """The state with the clamped items at their scores."""
    return replace(state, scores=np.where(known.clamped, known.scores, state.scores))


def warn_about(fit: ScoreFit, layout: Layout, items: Items, options: Options, *, depth: int = 3) -> None:
    """Warn of what a fit could not tell."""
    if not fit.trace.converged:
        warn_unconverged("latent_score", options.max_iter, fit.trace.change, options.tol)
    if fit.anchors.chosen is not None and fit.mean_alpha < LEAST_MEAN:
        _warn(
            f"the crowd is not better than chance (mean discrimination {fit.mean_alpha:.2f}), so that which way round "
            f"the scores are cannot be told: name annotators known to be good with {option('trusted')}, or known items",
            depth,
        )
    if fit.state.variance_of_items >= LARGEST_VARIANCES["item"] * (1.0 - 1e-9):
        _warn("the judgments hardly ever contradict each other, so that how far items are apart is a guess", depth)
    if not fit.anchors.given.features.shape[1]:  # features tie what was never compared
        _warn_apart(layout, items, depth)
    _warn_short(fit, layout, depth)


def _warn_short(fit: ScoreFit, layout: Layout, depth: int) -> None:
    """Warn of rankings that are too few and too short to tell who answers the wrong way round."""
    known = fit.anchors.chosen is None or not np.isnan(fit.anchors.crowd.fixed[layout.active]).all()
    if known or [kind.name for kind in layout.kinds] != ["ranking"]:
        return
    told = layout.kinds[0].weight
    if (told > 0).sum() > 1 and told[told > 0].mean() < _LEAST_TOLD:
        _warn(
            "annotators gave few, short rankings, by which those who answer the wrong way round can hardly be told: "
            f"ask for longer or more rankings, or name annotators known to be good with {option('trusted')}",
            depth,
        )


def _warn_apart(layout: Layout, items: Items, depth: int) -> None:
    """Name groups of items of a query that are compared with no other, and not graded either."""
    graded = np.zeros(layout.n_items, bool)
    for kind in layout.kinds:
        if not kind.about_pairs:
            graded[kind.cells.first] = True
    if not len(layout.graph.second):
        return
    tied = np.bincount(layout.group, graded, layout.n_items) > 0
    heads = layout.judged & (layout.group == np.arange(layout.n_items)) & ~tied
    loose = heads & (np.bincount(layout.query, heads, len(layout.offsets) - 1) > 1)[layout.query]
    if loose.any():
        _warn(
            f"{int(loose.sum())} groups of items were never compared with each other, those of {named(items, loose)}; "
            "only the prior ties them: do not compare across groups, or ask for judgments between them",
            depth,
        )


def _warn(message: str, depth: int) -> None:
    """Warn at the caller of fit."""
    warnings.warn(message, DataWarning, stacklevel=depth + 1)
