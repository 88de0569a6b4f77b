"""Standard errors and covariances of the scores at the end of a fit, with annotators free to adapt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.consensus import COVARIANCE_ITEMS
from ...protocols import Bools, Counts, Floats
from .annotators import annotator_sums, bias_bend
from .items import Curve, Posterior, Prior, curve_of, weights_along
from .responses import Layout
from .rounds import ScoreFit
from .state import State

_MOST_CELLS = 8_000_000
_BLOCK_CELLS = 4_000_000
_PROBES = 16
_MANY_ITEMS = 50_000
_WIDER_PAIRS = 1.2
_MORE_SCALE = 1.5
_WIDER_GRADES = 4.0

Blocks = tuple[Floats | None, ...]


class _Ends(NamedTuple):
    """What the spread is computed from: curvature and prior at the end, and each kind's ties to its annotators.

    ``off`` (n_items,) is how far each score is from where the scale stretches them from.
    """

    layout: Layout
    curve: Curve
    prior: Prior
    ties: list[Floats]
    centred: bool
    off: Floats


class ScoreSpread(NamedTuple):
    """Standard error of each score, covariance of each query's scores, and standard error of the scale of all of them.

    That of the scale is a share of the scores; scores and their differences are those on the scale that was found.
    """

    std_error: Floats
    covariance: Blocks | None
    of_scale: float


def score_spread(layout: Layout, fit: ScoreFit) -> ScoreSpread:
    """Return the standard error of each score, and the covariance of each query's scores where it is not too large.

    They come from the curvature in the scores, less what annotators who adapt explain of it; but where all annotators
    adapt together, they change the scale, which is kept. Where nothing but comparisons is known, the level of a query's
    scores is free, and they are those of centred scores.
    """
    state, given = fit.state, fit.anchors.given
    levels_known = any(not kind.about_pairs for kind in layout.kinds) or given.clamped.any()
    levels_known = levels_known or given.features.shape[1] > 0
    curve, prior = curve_of(layout, state, given), Prior(layout, state)
    wider = _widening(layout, state)
    off = state.scores - _middles(layout, state, not levels_known)
    ends = _Ends(layout, curve, prior, _ties(layout, state, fit), not levels_known, off)
    along = root = np.zeros((layout.n_items, 0))
    if given.features.shape[1]:
        posterior = Posterior(layout, curve, prior)
        _, spread, along = weights_along(given.features, prior, posterior, state.scores, state)
        root = along @ np.linalg.cholesky(spread)
    sizes = np.diff(layout.offsets)
    small = sizes <= COVARIANCE_ITEMS
    if (sizes[small].astype(np.float64) ** 2).sum() > _MOST_CELLS:
        small[:] = False
    variance = np.zeros(layout.n_items) if small.all() else _probed(ends)
    less = 0.0
    blocks: list[Floats | None] = [np.zeros((0, 0)) if size == 0 else None for size in sizes]
    for queries in _alike(sizes, small):
        items = layout.offsets[queries][:, None] + np.arange(sizes[queries[0]])
        inverted, of_scale = _inverted(ends, queries)
        less = max(less, of_scale)
        inverses = wider * (inverted + root[items] @ root[items].transpose(0, 2, 1))
        variance[items] = np.diagonal(inverses, axis1=1, axis2=2)
        for query, inverse in zip(queries, inverses, strict=True):
            blocks[query] = inverse
    large = ~small[layout.query]
    variance[large] = wider * (variance[large] + (root[large] ** 2).sum(axis=1))
    std_error = np.sqrt(np.maximum(variance, 0.0))
    of_scale = float(np.hypot(_scale_error(fit, layout), np.sqrt(less)))
    return ScoreSpread(std_error, tuple(blocks) if small.any() else None, of_scale)


def _widening(layout: Layout, state: State) -> float:
    """How much wider to make the spread where judgments tell little, because the crowd's numbers are guesses then.

    ``1 + c g^2 (1 - g)`` where ``g`` is the share of the scores' prior variance that is left, and ``c`` is 1.2, or 4
    with grades: measured on simulated crowds.
    """
    graded = any(not kind.about_pairs for kind in layout.kinds)
    left = state.variance[layout.judged] / (state.variance_of_items + state.variance_of_levels)
    share = float(np.minimum(left, 1.0).mean()) if len(left) else 1.0
    return 1.0 + (_WIDER_GRADES if graded else _WIDER_PAIRS) * share**2 * (1.0 - share)


def _scale_error(fit: ScoreFit, layout: Layout) -> float:
    """Standard error of the scale of all scores: that of the mean discrimination of those who set it, and half more."""
    if fit.anchors.chosen is None:
        return 0.0
    own = fit.anchors.crowd.variance(fit.state.variance_of_alpha)[fit.anchors.chosen]
    return float(np.sqrt(_MORE_SCALE * own.mean() / len(own))) if len(own) > 1 else 0.0


def _middles(layout: Layout, state: State, centred: bool) -> Floats:
    """Where the scale stretches scores from: the middle of each query, or 0 where levels are known."""
    if not centred:
        return np.zeros(layout.n_items)
    sizes = np.maximum(np.diff(layout.offsets), 1)
    means = np.bincount(layout.query, state.scores, len(sizes)) / sizes
    return means[layout.query]


def _alike(sizes: Counts, small: Bools) -> list[Counts]:
    """Groups of queries of the same size, each small enough to be inverted together."""
    found = []
    for size in np.unique(sizes[small & (sizes > 0)]).tolist():
        queries = np.flatnonzero(small & (sizes == size))
        found += np.array_split(queries, -(-len(queries) * size**2 // _BLOCK_CELLS))
    return found


def _ties(layout: Layout, state: State, fit: ScoreFit) -> list[Floats]:
    """How each answer of each kind ties its cell to the discrimination and the bias of its annotator."""
    from .kernels.adaptation import answer_ties

    sums = annotator_sums(layout, state)
    deviation = np.sqrt(state.alpha_variance)
    found = []
    for kind, habits, of in zip(layout.kinds, state.kinds, sums, strict=True):
        adapt = np.zeros((layout.n_annotators, 3))
        adapt[:, 1] = deviation
        if kind.biased:
            bend = bias_bend(habits, of)
            adapt[:, 0], adapt[:, 2] = of.alpha_bias / bend, 1.0 / np.sqrt(bend)
        answering = habits.answering(kind, state.alpha, state.alpha_variance)
        found.append(answer_ties(kind.cells, answering, *state.gaps(layout, kind), adapt))
    return found


def _inverted(ends: _Ends, queries: Counts) -> tuple[Floats, float]:
    """Covariances of equally large queries, and the largest variance of their scale that was taken out.

    Where annotators would explain everything, they are taken as known.
    """
    from .kernels.adaptation import adapted_blocks
    from .kernels.blocks import invert_all, query_matrices

    layout, prior = ends.layout, ends.prior
    firsts = layout.offsets[queries]
    matrices = query_matrices(layout.graph, ends.curve.bend, ends.curve.degree + 1.0 / prior.of_items, queries)
    matrices -= prior.pull[queries][:, None, None]
    less = np.zeros_like(matrices)
    for kind, ties in zip(layout.kinds, ends.ties, strict=True):
        less += adapted_blocks(kind.cells, ties, layout.n_annotators, firsts, matrices.shape[1])
    whole = matrices - less
    indefinite = _indefinite(whole)
    whole[indefinite] = matrices[indefinite]
    off = ends.off[firsts[:, None] + np.arange(matrices.shape[1])]
    of_scale = _variance_of_scale(_forms(off, whole), _forms(off, matrices))
    invert_all(whole)
    whole -= of_scale[:, None, None] * off[:, :, None] * off[:, None, :]
    if ends.centred:
        whole -= whole.mean(axis=1, keepdims=True)
        whole -= whole.mean(axis=2, keepdims=True)
    return whole, float(of_scale.max(initial=0.0))


def _forms(rows: Floats, matrices: Floats) -> Floats:
    """The quadratic form of each row in its matrix."""
    forms: Floats = np.einsum("qi,qij,qj->q", rows, matrices, rows)
    return forms


def _variance_of_scale(adapting: Floats, known: Floats) -> Floats:
    """How much the variance of the scale is larger where annotators adapt than where they are known.

    The arguments are the curvatures along the scores in either case.
    """
    along = np.minimum(adapting, known) > 1e-9
    safe = [np.where(along, curvature, 1.0) for curvature in (adapting, known)]
    return np.where(along, np.maximum(1.0 / safe[0] - 1.0 / safe[1], 0.0), 0.0)


def _indefinite(matrices: Floats) -> Bools:
    """Which of some symmetric matrices are not positive definite, (n,)."""
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return np.array([np.linalg.eigvalsh(matrix)[0] <= 0.0 for matrix in matrices])
    return np.zeros(len(matrices), bool)


def _probed(ends: _Ends) -> Floats:
    """Variance of each score, from products of the matrix with random vectors."""
    from ...kernels.probes import laplacian_products, probed_diagonal
    from .kernels.adaptation import adapted_products

    layout, prior, graph = ends.layout, ends.prior, ends.layout.graph
    diagonal = ends.curve.degree + 1.0 / prior.of_items
    parts = [(kind.cells, ties) for kind, ties in zip(layout.kinds, ends.ties, strict=True)]
    within = laplacian_products(graph.starts, graph.second, ends.curve.bend, diagonal)

    def plain(columns: Floats) -> Floats:
        return within(columns) if len(graph.second) else diagonal[:, None] * columns

    def products(columns: Floats) -> Floats:
        image = plain(columns) - adapted_products(parts, layout.n_annotators, columns)
        if prior.of_levels > 0.0:
            sums = np.stack([prior.sums(column) for column in columns.T], axis=1)
            image -= (prior.pull[:, None] * sums)[layout.query]
        return image

    offsets = layout.offsets if ends.centred else None
    # half as many probes where their columns would fill the memory
    n_probes = _PROBES if layout.n_items <= _MANY_ITEMS else _PROBES // 2
    variance = probed_diagonal(products, diagonal, offsets, n_probes=n_probes, plain=plain)
    off = ends.off[:, None]
    curvatures = [np.array([float((off * form(off)).sum())]) for form in (products, plain)]
    return np.maximum(variance - _variance_of_scale(curvatures[0], curvatures[1]) * ends.off**2, 0.0)
