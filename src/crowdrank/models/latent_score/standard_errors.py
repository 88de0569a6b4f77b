"""Standard errors and covariances of the scores at the end of a fit, with annotators marginalised."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.consensus import COVARIANCE_ITEMS
from ...protocols import Bools, Counts, Floats
from .annotators import annotator_sums, bias_curvature
from .items import Curvature, ScorePosterior, ScorePrior, feature_weights, score_curvature
from .layout import Layout
from .rounds import ScoreFit
from .state import State

_MAX_COVARIANCE_CELLS = 8_000_000
_MAX_BATCH_CELLS = 4_000_000
_N_PROBES = 16
_MAX_ITEMS_ALL_PROBES = 50_000
_PAIR_INFLATION = 1.2
_GRADE_INFLATION = 4.0
_SCALE_INFLATION = 1.5
_MIN_SCALE_CURVATURE = 1e-9

Blocks = tuple[Floats | None, ...]


class ScoreErrors(NamedTuple):
    """Standard error of each score, covariance of each query's scores, and standard error of their scale.

    That of the scale is a share of the scores; scores and their differences are on the scale of the fit.
    """

    std_error: Floats
    covariance: Blocks | None
    of_scale: float


class _Terms(NamedTuple):
    """What the errors are computed from: curvature and prior at the end, and each kind's cross terms with annotators.

    ``offset`` (n_items,) is how far each score is from the centre that a change of scale leaves in place.
    """

    layout: Layout
    curvature: Curvature
    prior: ScorePrior
    cross_terms: list[Floats]
    centred: bool
    offset: Floats


def score_errors(layout: Layout, fit: ScoreFit) -> ScoreErrors:
    """Return the standard error of each score, and the covariance of each query's scores where it is not too large.

    They come from the curvature in the scores, less its Schur complement in the annotators. All annotators together
    could change the scale of scores; that part is taken out. Where there are only comparisons, the level of a query's
    scores is free, and the errors are those of centred scores.
    """
    terms = _terms(layout, fit)
    inflation, root = _variance_inflation(layout, fit.state), _feature_root(terms, fit)
    sizes = np.diff(layout.offsets)
    small = sizes <= COVARIANCE_ITEMS
    if (sizes[small].astype(np.float64) ** 2).sum() > _MAX_COVARIANCE_CELLS:
        small[:] = False
    variance = np.zeros(layout.n_items) if small.all() else _probed_variances(terms)
    scale_variance = 0.0
    blocks: list[Floats | None] = [np.zeros((0, 0)) if size == 0 else None for size in sizes]
    for queries in _query_batches(sizes, small):
        items = layout.offsets[queries][:, None] + np.arange(sizes[queries[0]])
        covariances, removed = _query_covariances(terms, queries)
        scale_variance = max(scale_variance, removed)
        covariances = inflation * (covariances + root[items] @ root[items].transpose(0, 2, 1))
        variance[items] = np.diagonal(covariances, axis1=1, axis2=2)
        for query, covariance in zip(queries, covariances, strict=True):
            blocks[query] = covariance
    large = ~small[layout.query]
    variance[large] = inflation * (variance[large] + (root[large] ** 2).sum(axis=1))
    std_error = np.sqrt(np.maximum(variance, 0.0))
    of_scale = float(np.hypot(_scale_error(fit), np.sqrt(scale_variance)))
    return ScoreErrors(std_error, tuple(blocks) if small.any() else None, of_scale)


def _terms(layout: Layout, fit: ScoreFit) -> _Terms:
    """Curvature, prior and cross terms at the end of a fit."""
    state, inputs = fit.state, fit.anchors.inputs
    levels_known = any(not kind.about_pairs for kind in layout.kinds) or bool(inputs.clamped.any())
    centred = not (levels_known or inputs.features.shape[1] > 0)
    offset = state.scores - _scale_centres(layout, state, centred)
    curvature, prior = score_curvature(layout, state, inputs), ScorePrior(layout, state)
    return _Terms(layout, curvature, prior, _cross_terms(layout, state), centred, offset)


def _feature_root(terms: _Terms, fit: ScoreFit) -> Floats:
    """A root of the part of the covariance of scores that is due to feature weights, (n_items, n_features)."""
    features = fit.anchors.inputs.features
    if not features.shape[1]:
        return np.zeros((terms.layout.n_items, 0))
    posterior = ScorePosterior(terms.layout, terms.curvature, terms.prior)
    _, covariance, effect = feature_weights(features, terms.prior, posterior, fit.state.scores, fit.state)
    root: Floats = effect @ np.linalg.cholesky(covariance)
    return root


def _variance_inflation(layout: Layout, state: State) -> float:
    """Factor on variances where judgments have little information, because the prior variances are uncertain then.

    ``1 + c g^2 (1 - g)`` where ``g`` is the posterior variance of scores as a share of the prior's, and ``c`` is 1.2,
    or 4 with grades: measured on simulated crowds.
    """
    graded = any(not kind.about_pairs for kind in layout.kinds)
    shares = state.variance[layout.judged] / (state.variance_of_items + state.variance_of_levels)
    share = float(np.minimum(shares, 1.0).mean()) if len(shares) else 1.0
    return 1.0 + (_GRADE_INFLATION if graded else _PAIR_INFLATION) * share**2 * (1.0 - share)


def _scale_error(fit: ScoreFit) -> float:
    """Standard error of the scale: that of the mean discrimination of those who set it, with 1.5 times the variance."""
    if fit.anchors.scale_setters is None:
        return 0.0
    own = fit.anchors.prior.variance(fit.state.variance_of_alpha)[fit.anchors.scale_setters]
    return float(np.sqrt(_SCALE_INFLATION * own.mean() / len(own))) if len(own) > 1 else 0.0


def _scale_centres(layout: Layout, state: State, centred: bool) -> Floats:
    """What a change of scale leaves in place: the mean score of each query, or 0 where levels are known."""
    if not centred:
        return np.zeros(layout.n_items)
    sizes = np.maximum(np.diff(layout.offsets), 1)
    means = np.bincount(layout.query, state.scores, len(sizes)) / sizes
    return means[layout.query]


def _query_batches(sizes: Counts, small: Bools) -> list[Counts]:
    """Groups of queries of the same size, each small enough to be inverted together."""
    batches = []
    for size in np.unique(sizes[small & (sizes > 0)]).tolist():
        queries = np.flatnonzero(small & (sizes == size))
        batches += np.array_split(queries, -(-len(queries) * size**2 // _MAX_BATCH_CELLS))
    return batches


def _cross_terms(layout: Layout, state: State) -> list[Floats]:
    """Cross terms of each kind's judgments with the discrimination and the bias of their annotators."""
    from .kernels.schur_complement import cross_terms

    sums = annotator_sums(layout, state)
    deviation = np.sqrt(state.alpha_variance)
    terms = []
    for kind, habits, of in zip(layout.kinds, state.kinds, sums, strict=True):
        adapt = np.zeros((layout.n_annotators, 3))
        adapt[:, 1] = deviation
        if kind.has_bias:
            curvature = bias_curvature(habits, of)
            adapt[:, 0], adapt[:, 2] = of.alpha_bias / curvature, 1.0 / np.sqrt(curvature)
        model = habits.response_model(kind, state.alpha, state.alpha_variance)
        terms.append(cross_terms(kind.cells, model, *state.gaps(kind), adapt))
    return terms


def _query_covariances(terms: _Terms, queries: Counts) -> tuple[Floats, float]:
    """Covariances of equally large queries, and the largest variance of their scale that was taken out.

    Where marginalising annotators leaves no positive definite matrix, they are taken as known.
    """
    from .kernels.blocks import invert_all, query_matrices
    from .kernels.schur_complement import schur_blocks

    layout, prior, curvature = terms.layout, terms.prior, terms.curvature
    firsts = layout.offsets[queries]
    matrices = query_matrices(layout.graph, curvature.pair_weight, curvature.diagonal + 1.0 / prior.of_items, queries)
    matrices -= prior.pull[queries][:, None, None]
    complement = np.zeros_like(matrices)
    for kind, of_kind in zip(layout.kinds, terms.cross_terms, strict=True):
        complement += schur_blocks(kind.cells, of_kind, layout.n_annotators, firsts, matrices.shape[1])
    marginal = matrices - complement
    indefinite = _not_positive_definite(marginal)
    marginal[indefinite] = matrices[indefinite]
    offset = terms.offset[firsts[:, None] + np.arange(matrices.shape[1])]
    of_scale = _variance_of_scale(_quadratic_forms(offset, marginal), _quadratic_forms(offset, matrices))
    invert_all(marginal)
    marginal -= of_scale[:, None, None] * offset[:, :, None] * offset[:, None, :]
    if terms.centred:
        marginal -= marginal.mean(axis=1, keepdims=True)
        marginal -= marginal.mean(axis=2, keepdims=True)
    return marginal, float(of_scale.max(initial=0.0))


def _quadratic_forms(rows: Floats, matrices: Floats) -> Floats:
    """The quadratic form of each row in its matrix."""
    forms: Floats = np.einsum("qi,qij,qj->q", rows, matrices, rows)
    return forms


def _variance_of_scale(marginal: Floats, conditional: Floats) -> Floats:
    """How much marginalising annotators adds to the variance of the scale.

    The arguments are the curvatures along the scores, with annotators marginalised and known.
    """
    usable = np.minimum(marginal, conditional) > _MIN_SCALE_CURVATURE
    safe = [np.where(usable, curvature, 1.0) for curvature in (marginal, conditional)]
    return np.where(usable, np.maximum(1.0 / safe[0] - 1.0 / safe[1], 0.0), 0.0)


def _not_positive_definite(matrices: Floats) -> Bools:
    """Which of some symmetric matrices are not positive definite, (n,)."""
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return np.array([np.linalg.eigvalsh(matrix)[0] <= 0.0 for matrix in matrices])
    return np.zeros(len(matrices), bool)


def _probed_variances(terms: _Terms) -> Floats:
    """Variance of each score, estimated from products of the matrix with random vectors."""
    from ...kernels.probes import laplacian_products, probed_diagonal
    from .kernels.schur_complement import schur_products

    layout, prior, graph = terms.layout, terms.prior, terms.layout.graph
    diagonal = terms.curvature.diagonal + 1.0 / prior.of_items
    parts = [(kind.cells, of_kind) for kind, of_kind in zip(layout.kinds, terms.cross_terms, strict=True)]
    within = laplacian_products(graph.starts, graph.second, terms.curvature.pair_weight, diagonal)

    def conditional(columns: Floats) -> Floats:
        return within(columns) if len(graph.second) else diagonal[:, None] * columns

    def marginal(columns: Floats) -> Floats:
        image = conditional(columns) - schur_products(parts, layout.n_annotators, columns)
        if prior.of_levels > 0.0:
            sums = np.stack([prior.sums(column) for column in columns.T], axis=1)
            image -= (prior.pull[:, None] * sums)[layout.query]
        return image

    offsets = layout.offsets if terms.centred else None
    # half as many probes where their columns would fill the memory
    n_probes = _N_PROBES if layout.n_items <= _MAX_ITEMS_ALL_PROBES else _N_PROBES // 2
    variance = probed_diagonal(marginal, diagonal, offsets, n_probes=n_probes, plain=conditional)
    offset = terms.offset[:, None]
    curvatures = [np.array([float((offset * products(offset)).sum())]) for products in (marginal, conditional)]
    return np.maximum(variance - _variance_of_scale(curvatures[0], curvatures[1]) * terms.offset**2, 0.0)
