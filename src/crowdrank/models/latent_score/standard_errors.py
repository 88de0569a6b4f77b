"""Standard errors and covariances of the scores at the end of a fit, with annotators marginalised.

Last, the gradients of single judgments in the scores, for cluster-robust standard errors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...covariate_design import CovariateDesign
from ...data.consensus import COVARIANCE_ITEMS, Consensus
from ...data.judgments import Grades, Rankings
from ...protocols import Bools, Counts, Floats, Ints
from ...standard_errors import ScoreGradients, SharedGradients
from .annotators import annotator_sums, bias_curvature, eliminated_habits
from .control import Eliminated, shared_information
from .feature_weights import weight_uncertainty, weights_covariance
from .items import Curvature, ScorePosterior, ScorePrior, blurred_curvature
from .layout import Kind, Layout, preference_levels, ranking_weights
from .rounds import ScoreFit
from .state import MAX_MEAN_LAPSE, KindState, State, former_state

if TYPE_CHECKING:
    from .kernels.ordinal import AnnotatorSums

_MAX_COVARIANCE_CELLS = 8_000_000
_MAX_BATCH_CELLS = 4_000_000
_N_PROBES = 16
_MAX_ITEMS_ALL_PROBES = 50_000
_PAIR_INFLATION = 1.2
_GRADE_INFLATION = 4.0
_SCALE_INFLATION = 1.5
_MIN_SCALE_CURVATURE = 1e-9
_MIN_PROBABILITY = 1e-12

Blocks = tuple[Floats | None, ...]


class ScoreErrors(NamedTuple):
    """Standard error of each score, covariance of each query's scores, and standard error of their scale.

    That of the scale is a share of the scores; scores and their differences are on the scale of the fit.
    ``of_control`` is the covariance of the crowd's coefficients of covariates, (k, k), and ``of_lapses`` what the
    uncertain probability of a lapse adds to the error of the scale, that of coefficients too.
    """

    std_error: Floats
    covariance: Blocks | None
    of_scale: float
    of_control: Floats
    of_lapses: float


class Marginal(NamedTuple):
    """What standard errors of some of the items need of all judgments.

    ``sums`` are those of the annotators, of each kind, ``inflation`` is a factor on variances, and ``of_lapses`` is as
    :func:`lapse_curvature` returns it.
    """

    sums: list[AnnotatorSums]
    inflation: float
    of_lapses: Floats


class _SharedTerms(NamedTuple):
    """The crowd's coefficients of covariates, annotators marginalised.

    ``cross`` (n_items, k) is their curvature with the scores, ``information`` (k, k) that in themselves.
    """

    cross: Floats
    information: Floats


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
    shared: _SharedTerms


def score_errors(layout: Layout, fit: ScoreFit, marginal: Marginal | None = None) -> ScoreErrors:
    """Return the standard error of each score, and the covariance of each query's scores where it is not too large.

    They come from the curvature in the scores, less its Schur complement in the annotators. All annotators together
    could change the scale of scores; that part is taken out. Where there are only comparisons, the level of a query's
    scores is free, and the errors are those of centred scores. Where the layout has some of the items, ``marginal`` is
    what the rest says, and no covariances are kept.
    """
    whole = marginal is None
    if marginal is None:
        inflation = variance_inflation(layout, *unexplained_shares(layout, fit.state))
        marginal = Marginal(annotator_sums(layout, fit.state), inflation, lapse_curvature(layout, fit.state))
    terms = _terms(layout, fit, marginal.sums)
    inflation, root = marginal.inflation, _feature_root(terms, fit)
    sizes = np.diff(layout.offsets)
    small = sizes <= COVARIANCE_ITEMS
    if whole and (sizes[small].astype(np.float64) ** 2).sum() > _MAX_COVARIANCE_CELLS:
        small[:] = False
    variance = np.zeros(layout.n_items) if small.all() else _probed_variances(terms)
    scale_variance = 0.0
    moved = np.zeros_like(terms.shared.cross)
    blocks: list[Floats | None] = [np.zeros((0, 0)) if size == 0 else None for size in sizes]
    for queries in _query_batches(sizes, small):
        items = layout.offsets[queries][:, None] + np.arange(sizes[queries[0]])
        covariances, removed = _query_covariances(terms, queries)
        scale_variance = max(scale_variance, removed)
        moved[items] = covariances @ terms.shared.cross[items]
        covariances = inflation * (covariances + root[items] @ root[items].transpose(0, 2, 1))
        variance[items] = np.diagonal(covariances, axis1=1, axis2=2)
        for query, covariance in zip(queries, covariances, strict=True) if whole else ():
            blocks[query] = covariance
    large = ~small[layout.query]
    variance[large] = inflation * (variance[large] + (root[large] ** 2).sum(axis=1))
    of_control = np.zeros((0, 0))
    if moved.shape[1]:
        if large.any():
            posterior = ScorePosterior(layout, terms.curvature, terms.prior)
            moved[large] = posterior.solve(terms.shared.cross)[large]
        of_control = _inverse_of_rest(terms.shared.information, terms.shared.cross.T @ moved)
        variance = variance + _add_shift(blocks, moved @ np.linalg.cholesky(of_control), layout.offsets)
    std_error = np.sqrt(np.maximum(variance, 0.0))
    of_lapses = _scale_error_of_lapses(marginal.of_lapses)
    of_scale = float(np.sqrt(_scale_error(fit) ** 2 + scale_variance + of_lapses**2))
    return ScoreErrors(std_error, tuple(blocks) if whole and small.any() else None, of_scale, of_control, of_lapses)


def _inverse_of_rest(information: Floats, explained: Floats) -> Floats:
    """The inverse of what scores leave of the information of shared coefficients, or of all where nothing is left."""
    rest = information - 0.5 * (explained + explained.T)
    if _not_positive_definite(rest[None])[0]:
        rest = information
    inverse = np.asarray(np.linalg.inv(rest), np.float64)
    return 0.5 * (inverse + inverse.T)


def _add_shift(blocks: list[Floats | None], shift: Floats, offsets: Counts) -> Floats:
    """Add to covariances that scores move by ``shift`` (n_items, k) with shared coefficients; return the variances."""
    for query, block in enumerate(blocks):
        if block is not None:
            part = shift[offsets[query] : offsets[query + 1]]
            blocks[query] = block + part @ part.T
    variances: Floats = (shift**2).sum(axis=1)
    return variances


def _terms(layout: Layout, fit: ScoreFit, sums: list[AnnotatorSums]) -> _Terms:
    """Curvature, prior and cross terms at the end of a fit."""
    state, inputs = fit.state, fit.anchors.inputs
    levels_known = any(not kind.about_pairs for kind in layout.kinds) or bool(inputs.clamped.any())
    centred = not (levels_known or inputs.features.shape[1] > 0)
    offset = state.scores - _scale_centres(layout, state, centred)
    curvature, prior = blurred_curvature(layout, state, inputs), ScorePrior(layout, state)
    cross, shared = _cross_terms(layout, state, sums)
    return _Terms(layout, curvature, prior, cross, centred, offset, shared)


def _feature_root(terms: _Terms, fit: ScoreFit) -> Floats:
    """A root of the part of the covariance of scores that is due to feature weights, (n_items, n)."""
    features = fit.anchors.inputs.features
    if not features.shape[1]:
        return np.zeros((terms.layout.n_items, 0))
    posterior = ScorePosterior(terms.layout, terms.curvature, terms.prior)
    covariance = weights_covariance(features, terms.prior, posterior, fit.state)
    return weight_uncertainty(features, terms.prior, posterior, covariance)[1]


def unexplained_shares(layout: Layout, state: State) -> tuple[float, float]:
    """Return the sum over judged items of the posterior variance as a share of the prior's, and their number."""
    shares = state.variance[layout.judged] / (state.variance_of_items + state.variance_of_levels)
    return float(np.minimum(shares, 1.0).sum()), float(len(shares))


def variance_inflation(layout: Layout, shares: float, number: float) -> float:
    """Return the factor on variances where judgments have little information: prior variances are uncertain then.

    ``1 + c g^2 (1 - g)`` where ``g`` is the posterior variance of scores as a share of the prior's, and ``c`` is 1.2,
    or 4 with grades: measured on simulated crowds. ``shares`` is the sum of ``g`` over so many items.
    """
    graded = any(not kind.about_pairs for kind in layout.kinds)
    share = shares / number if number else 1.0
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


def _cross_terms(layout: Layout, state: State, sums: list[AnnotatorSums]) -> tuple[list[Floats], _SharedTerms]:
    """Cross terms of each kind's judgments with their annotators' parameters, and those of shared coefficients."""
    from .kernels.item_systems import cross_terms, shared_cross

    deviation = np.sqrt(state.alpha_variance)
    terms, shared = [], _SharedTerms(np.zeros((layout.n_items, 0)), np.zeros((0, 0)))
    for kind, habits, of in zip(layout.kinds, state.kinds, sums, strict=True):
        adapt = np.zeros((layout.n_annotators, 3))
        adapt[:, 1] = deviation
        if kind.has_bias:
            curvature = bias_curvature(habits, of)
            adapt[:, 0], adapt[:, 2] = of.alpha_bias / curvature, 1.0 / np.sqrt(curvature)
        model = state.response_model(kind, habits)
        rest = eliminated_habits(kind, habits, of)
        root = None if rest is None else _parameter_roots(rest, deviation)
        terms.append(cross_terms(kind.cells, model, *state.gaps(kind), adapt, root))
        if rest is not None and root is not None and habits.control is not None:
            # how the parameters of annotators follow the crowd's coefficients, on the scale of the cross terms
            pulls = root.transpose(0, 2, 1)[:, :, 2:] / habits.control.variances
            information = shared_information(habits.control, rest.covariance(state.alpha_variance))
            shared = _SharedTerms(shared_cross(kind.cells, terms[-1], pulls, layout.n_items), information)
    return terms, shared


def _parameter_roots(rest: Eliminated, deviation: Floats) -> Floats:
    """A root of the covariance of each annotator's discrimination, bias and coefficients, (n_annotators, p, p)."""
    n, p = rest.ratio.shape[0], rest.ratio.shape[1] + 1
    root = np.zeros((n, p, p))
    root[:, 0, 0] = deviation
    root[:, 1:, 0] = -rest.ratio * deviation[:, None]
    root[:, 1:, 1:] = rest.root
    return root


def _query_covariances(terms: _Terms, queries: Counts) -> tuple[Floats, float]:
    """Covariances of equally large queries, and the largest variance of their scale that was taken out.

    Where marginalising annotators leaves no positive definite matrix, they are taken as known.
    """
    from .kernels.item_systems import invert_all, query_matrices, schur_blocks

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
    from ...kernels.laplacian import laplacian_products, probed_diagonal
    from .kernels.item_systems import schur_products

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


class _Responses(NamedTuple):
    """One response per row: the judgment it is from, its items, level, and on which side the first item was shown."""

    judgment: Counts
    first: Ints
    second: Ints | None
    annotator: Ints
    level: Ints
    side: Floats
    weight: Floats
    values: Floats


def latent_score_gradients(
    judgments: Any, layout: Layout, consensus: Consensus, bins: int | None, design: CovariateDesign | None = None
) -> ScoreGradients:
    """Return the gradients of judgments of one kind, annotators and crowd as they were estimated."""
    state, (kind,) = former_state(consensus, judgments, layout), layout.kinds
    own = consensus.estimates.get("difficulty")
    if own is not None:
        item = consensus.items.codes_of(judgments.items, "consensus", "judgments")
        state = replace(state, difficulty=np.where(item >= 0, np.asarray(own)[item], 0.0))
    rows = _responses(judgments, bins, np.empty((len(judgments), 0)) if design is None else design.values)
    slope, curve = _slopes(rows, state, kind, state.kinds[0])
    # scores may be on the scale of known items
    unit = float(consensus.estimates.get("unit", 1.0))
    prior = 1.0 / (unit**2 * state.variance_of_items)
    if rows.second is None:
        return ScoreGradients(rows.judgment, rows.first, slope / unit, prior)
    items, alpha = np.concatenate([rows.first, rows.second]), state.alpha[rows.annotator]
    shared = None
    if rows.values.shape[1]:
        # with the discriminations as they are, all coefficients move together
        bent = (curve * alpha / unit)[:, None] * rows.values
        cross = [np.bincount(items, np.concatenate([column, -column]), layout.n_items) for column in bent.T]
        own = np.divide(slope, alpha, out=np.zeros(len(slope)), where=alpha != 0)[:, None] * rows.values
        curvature = (curve[:, None] * rows.values).T @ rows.values + 1e-3 * np.eye(rows.values.shape[1])
        shared = SharedGradients.of(own, np.column_stack(cross), curvature)
    return ScoreGradients(np.tile(rows.judgment, 2), items, np.concatenate([slope, -slope]) / unit, prior, shared)


def _responses(judgments: Any, bins: int | None, values: Floats) -> _Responses:
    """The responses in the order of the judgments."""
    weight = judgments.row_weight
    if isinstance(judgments, Grades):
        rows, level = np.arange(len(judgments)), judgments.level_codes(bins)[0]
        none = np.empty((len(rows), 0))
        return _Responses(
            rows, judgments.item, None, judgments.row_annotator[rows], level, np.ones(len(rows)), weight, none
        )
    pairs, rows = judgments, np.arange(len(judgments))
    if isinstance(judgments, Rankings):
        pairs, weight = judgments.as_preferences(), ranking_weights(judgments)
        size = np.diff(judgments.offsets)
        rows = np.repeat(rows, size * (size - 1) // 2)
    level = preference_levels(pairs)[0]
    side = 1.0 * pairs.shown
    return _Responses(rows, pairs.left, pairs.right, judgments.row_annotator[rows], level, side, weight, values)


def _slopes(rows: _Responses, state: State, kind: Kind, habits: KindState) -> tuple[Floats, Floats]:
    """Derivative of each response's log-likelihood in the score of its first item; its curvature in the predictor."""
    from scipy.special import expit

    gap = state.scores[rows.first] - (0.0 if rows.second is None else state.scores[rows.second])
    who, top = rows.annotator, kind.n_levels - 1
    eta = state.alpha[who] * gap + rows.side * habits.bias[who]
    if habits.control is not None:
        eta = eta + (rows.values * habits.control.own[who]).sum(axis=1)
    cuts = habits.centre + np.exp(habits.spread[who])[:, None] * habits.cuts
    bounds = np.column_stack([np.full(len(eta), -np.inf), cuts, np.full(len(eta), np.inf)])
    row = np.arange(len(eta))
    clear = np.exp(-state.difficulty[rows.first]) if len(state.difficulty) else np.ones(len(eta))
    upper = expit(clear * (bounds[row, rows.level + 1] - eta))
    lower = expit(clear * (bounds[row, rows.level] - eta))
    share = np.ones(len(eta))
    if kind.has_lapses:
        lapse = habits.lapse[who]
        favoured = habits.favourites[who, rows.level]
        if kind.about_pairs:
            mirrored = habits.favourites[who, top - rows.level]
            favoured = 0.5 * ((1.0 + rows.side) * favoured + (1.0 - rows.side) * mirrored)
        seen = (1.0 - lapse) * np.maximum(upper - lower, 1e-12)
        share = seen / (seen + lapse * favoured)
    slopes: Floats = rows.weight * share * clear * state.alpha[who] * (upper + lower - 1.0)
    curvatures: Floats = rows.weight * share * clear**2 * (upper * (1.0 - upper) + lower * (1.0 - lower))
    return slopes, curvatures


# Lapses: one in every tenth answer, and scores a fifth smaller, predict nearly the same preferences


def lapse_curvature(layout: Layout, state: State) -> Floats:
    """Return the curvature of preferences in the mean probability of a lapse, in it and the log-scale, and in that."""
    total = np.zeros(3)
    for kind, habits in zip(layout.kinds, state.kinds, strict=True):
        if kind.about_pairs and kind.has_lapses and len(kind.cells.level):
            of_lapse, of_scale = _lapse_slopes(kind, habits, state)
            weight = kind.cells.weight if len(kind.cells.weight) else np.ones(len(of_lapse))
            total += [float(weight @ one) for one in (of_lapse**2, of_lapse * of_scale, of_scale**2)]
    return total


def _scale_error_of_lapses(curvature: Floats) -> float:
    """Standard error of the log of scores and coefficients, for all mean probabilities up to the largest alike."""
    of_lapse, between, of_scale = (float(value) for value in curvature)
    ratio = between / max(of_scale, _MIN_SCALE_CURVATURE)
    return float(abs(ratio) / np.sqrt(max(of_lapse - ratio * between, 0.0) + 12.0 / MAX_MEAN_LAPSE**2))


def _lapse_slopes(kind: Kind, habits: KindState, state: State) -> tuple[Floats, Floats]:
    """Derivatives of each log-likelihood in the mean probability of a lapse, and in the log of the scale."""
    from scipy.special import expit

    cells = kind.cells
    who, side = cells.annotator_side >> 2, 1.0 - (cells.annotator_side & 3)
    gap = np.repeat(state.gaps(kind)[0], np.diff(cells.bounds))
    eta = np.exp(habits.log_scale) * state.alpha[who] * gap + side * habits.bias[who]
    if habits.control is not None:
        eta = eta + (cells.values * habits.control.own[who]).sum(axis=1)
    cuts = habits.centre + np.exp(habits.spread[who])[:, None] * habits.cuts
    bounds = np.column_stack([np.full(len(eta), -np.inf), cuts, np.full(len(eta), np.inf)])
    row, level = np.arange(len(eta)), cells.level.astype(np.int64)
    upper, lower = expit(bounds[row, level + 1] - eta), expit(bounds[row, level] - eta)
    seen = np.maximum(upper - lower, _MIN_PROBABILITY)
    mirrored = habits.favourites[who, kind.n_levels - 1 - level]
    usual = 0.5 * ((1.0 + side) * habits.favourites[who, level] + (1.0 - side) * mirrored)
    lapse = habits.lapse[who]
    likely = (1.0 - lapse) * seen + lapse * usual
    of_scale: Floats = (1.0 - lapse) * eta * (lower * (1.0 - lower) - upper * (1.0 - upper)) / likely
    return (usual - seen) / likely, of_scale
