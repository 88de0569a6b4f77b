"""What is read out of a fit: the consensus with its warnings, quality, estimates, grades; items between two fits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...covariate_design import CovariateDesign
from ...data.consensus import COVARIANCE_ITEMS, Consensus
from ...data.index import Index, Items
from ...data.judgments import Grades, Rankings, expect
from ...data.naming import first_ids
from ...errors import DataWarning, JudgmentError
from ...fitting import warn_unconverged
from ...protocols import Bools, Counts, Floats, Ints
from ...quality import MAX_FOLDS, LearnedQuality
from ...standard_errors import ScoreGradients, SharedGradients
from ...wording import option
from . import steps
from .model import (
    MAX_MEAN_LAPSE,
    MAX_VARIANCES,
    ItemInputs,
    Kind,
    KindState,
    Layout,
    LevelScale,
    State,
    former_state,
    lay_out,
    preference_levels,
    ranking_weights,
    refit_state,
)
from .steps import Curvature, Options, ScoreFit, ScorePosterior, ScorePrior

if TYPE_CHECKING:
    from .kernels.ordinal import AnnotatorSums


# threshold (sample): judgments from which latent_score measures quality in five parts
_MANY_JUDGMENTS = 20_000
"""From this many judgments on, annotators are left out in five parts, and fits to a part stop earlier."""

_N_FOLDS_MANY = 5
_REFIT_OPTIONS = Options(0.02, 60, difficulty=False)
_REFIT_OPTIONS_MANY = Options(0.05, 6, difficulty=False)
"""When a fit to a part of the judgments stops: agreement with its scores needs no more digits."""

_MIN_RANKING_WEIGHT = 12.0
"""Weight of an annotator's rankings, in comparisons of equal items, at which a reversed one can be detected.

Three rankings of four items weigh 11.5, three of twelve 53.
"""

_N_QUANTILES = 40
_SCORE_PRECISION = 1e-8
_MIN_ITEMS_TWO_GROUPS = 20
_MAX_GROUP_ROUNDS = 500
_GROUP_START_DOUBT = 0.05
"""Probability at the start that an item is in the other group than its grade says."""

_MAX_READING_STEPS = 50
_READING_TOL = 1e-6
"""Steps end where no score moves by more than this share of the standard deviation of scores."""


# threshold (sample): cells of a covariance
_MAX_COVARIANCE_CELLS = 8_000_000
# threshold (equal): cells of covariances computed at once
_MAX_BATCH_CELLS = 4_000_000
_N_PROBES = 16
# threshold (sample): items up to which all probes are used, latent_score
_MAX_ITEMS_ALL_PROBES = 50_000
_PAIR_INFLATION = 1.2
_GRADE_INFLATION = 4.0
_SCALE_INFLATION = 1.5
_MIN_SCALE_CURVATURE = 1e-9
_MIN_PROBABILITY = 1e-12


# Standard errors


class ScoreErrors(NamedTuple):
    """Standard error of each score, covariance of each query's scores, and standard error of their scale.

    That of the scale is a share of the scores; scores and their differences are on the scale of the fit.
    ``of_control`` is the covariance of the crowd's coefficients of covariates, (k, k), and ``of_lapses`` what the
    uncertain probability of a lapse adds to the error of the scale, that of coefficients too.
    """

    std_error: Floats
    covariance: tuple[Floats | None, ...] | None
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


class _Terms(NamedTuple):
    """What the errors are computed from: curvature and prior at the end, and each kind's cross terms with annotators.

    ``offset`` (n_items,) is how far each score is from the centre that a change of scale leaves in place.
    ``shared_cross`` (n_items, k) is the curvature of the crowd's coefficients of covariates with the scores, annotators
    marginalised, and ``shared_information`` (k, k) that in themselves.
    """

    layout: Layout
    curvature: Curvature
    prior: ScorePrior
    cross_terms: list[Floats]
    shared_cross: Floats
    shared_information: Floats
    centred: bool
    offset: Floats


def score_errors(layout: Layout, fit: ScoreFit, marginal: Marginal | None = None) -> ScoreErrors:
    """Return the standard error of each score, and the covariance of each query's scores where it is not too large.

    They come from the curvature in the scores, less its Schur complement in the annotators. All annotators together
    could change the scale of scores; that part is taken out. Where there are only comparisons, the level of a query's
    scores is free, and the errors are those of centred scores. Where the layout has some of the items, ``marginal`` is
    what the rest says, and no covariances are kept.
    """
    state, features, whole = fit.state, fit.anchors.inputs.features, marginal is None
    if marginal is None:
        inflation = variance_inflation(layout, *unexplained_shares(layout, state))
        marginal = Marginal(steps.annotator_sums(layout, state), inflation, lapse_curvature(layout, state))
    terms, inflation = _terms(layout, fit, marginal.sums), marginal.inflation
    # a root of the part of the covariance that is due to feature weights
    root = np.zeros((layout.n_items, 0))
    if features.shape[1]:
        posterior = ScorePosterior(layout, terms.curvature, terms.prior)
        of_weights = steps.weights_covariance(features, posterior, state)
        root = steps.weight_uncertainty(features, posterior, of_weights)[1]
    sizes = np.diff(layout.offsets)
    small = sizes <= COVARIANCE_ITEMS
    if whole and (sizes[small].astype(np.float64) ** 2).sum() > _MAX_COVARIANCE_CELLS:
        small[:] = False
    variance = np.zeros(layout.n_items) if small.all() else _probed_variances(terms)
    scale_variance = 0.0
    moved = np.zeros_like(terms.shared_cross)
    blocks: list[Floats | None] = [np.zeros((0, 0)) if size == 0 else None for size in sizes]
    for size in np.unique(sizes[small & (sizes > 0)]).tolist():
        alike = np.flatnonzero(small & (sizes == size))
        # queries of the same size, few enough to be inverted together
        for queries in np.array_split(alike, -(-len(alike) * size**2 // _MAX_BATCH_CELLS)):
            items = layout.offsets[queries][:, None] + np.arange(size)
            covariances, removed = _query_covariances(terms, queries)
            scale_variance = max(scale_variance, removed)
            moved[items] = covariances @ terms.shared_cross[items]
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
            moved[large] = posterior.solve(terms.shared_cross)[large]
        # what scores leave of the information of shared coefficients, or all where nothing is left
        explained = terms.shared_cross.T @ moved
        left = terms.shared_information - 0.5 * (explained + explained.T)
        inverse = np.linalg.inv(terms.shared_information if _not_positive_definite(left[None])[0] else left)
        of_control = 0.5 * (inverse + inverse.T)
        # scores move with shared coefficients
        shift = moved @ np.linalg.cholesky(of_control)
        variance = variance + (shift**2).sum(axis=1)
        for query, block in enumerate(blocks):
            if block is not None:
                own = shift[layout.offsets[query] : layout.offsets[query + 1]]
                blocks[query] = block + own @ own.T
    std_error = np.sqrt(np.maximum(variance, 0.0))
    # that of the log of scores and coefficients, for all mean probabilities of a lapse up to the largest alike
    of_lapse, between, of_log_scale = (float(value) for value in marginal.of_lapses)
    ratio = between / max(of_log_scale, _MIN_SCALE_CURVATURE)
    of_lapses = float(abs(ratio) / np.sqrt(max(of_lapse - ratio * between, 0.0) + 12.0 / MAX_MEAN_LAPSE**2))
    # that of the mean discrimination of those who set the scale, with 1.5 times the variance
    of_setters, setters = 0.0, fit.anchors.scale_setters
    if setters is not None and int(setters.sum()) > 1:
        own = fit.anchors.prior.variance(state.variance_of_alpha)[setters]
        of_setters = float(np.sqrt(_SCALE_INFLATION * own.mean() / len(own)))
    of_scale = float(np.sqrt(of_setters**2 + scale_variance + of_lapses**2))
    return ScoreErrors(std_error, tuple(blocks) if whole and small.any() else None, of_scale, of_control, of_lapses)


def _terms(layout: Layout, fit: ScoreFit, sums: list[AnnotatorSums]) -> _Terms:
    """Curvature, prior and cross terms of judgments with their annotators' parameters, at the end of a fit."""
    from .kernels.item_systems import cross_terms, shared_cross

    state, inputs, deviation = fit.state, fit.anchors.inputs, np.sqrt(fit.state.alpha_variance)
    cross, of_shared, information = list[Floats](), np.zeros((layout.n_items, 0)), np.zeros((0, 0))
    for kind, habits, of in zip(layout.kinds, state.kinds, sums, strict=True):
        adapt = np.zeros((layout.n_annotators, 3))
        adapt[:, 1] = deviation
        if kind.has_bias:
            curvature = steps.bias_curvature(habits, of)
            adapt[:, 0], adapt[:, 2] = of.alpha_bias / curvature, 1.0 / np.sqrt(curvature)
        rest, root = steps.eliminated_habits(kind, habits, of), None
        if rest is not None:
            # a root of the covariance of each annotator's discrimination, bias and coefficients
            n, p = rest.ratio.shape[0], rest.ratio.shape[1] + 1
            root = np.zeros((n, p, p))
            root[:, 0, 0] = deviation
            root[:, 1:, 0] = -rest.ratio * deviation[:, None]
            root[:, 1:, 1:] = np.linalg.cholesky(rest.inverse)
        cross.append(cross_terms(kind.cells, state.response_model(kind, habits), *state.gaps(kind), adapt, root))
        if rest is not None and root is not None and habits.control is not None:
            # how the parameters of annotators follow the crowd's coefficients, on the scale of the cross terms
            pulls = root.transpose(0, 2, 1)[:, :, 2:] / habits.control.variances
            information = steps.shared_information(habits.control, rest.covariance(state.alpha_variance))
            of_shared = shared_cross(kind.cells, cross[-1], pulls, layout.n_items)
    levels_known = any(not kind.about_pairs for kind in layout.kinds) or bool(inputs.clamped.any())
    centred, offset = not (levels_known or inputs.features.shape[1] > 0), state.scores
    if centred:
        # a change of scale leaves the mean score of each query in place, or 0 where levels are known
        sizes = np.maximum(np.diff(layout.offsets), 1)
        offset = offset - (np.bincount(layout.query, state.scores, len(sizes)) / sizes)[layout.query]
    curvatures, prior = steps.blurred_curvature(layout, state, inputs), ScorePrior(layout, state)
    return _Terms(layout, curvatures, prior, cross, of_shared, information, centred, offset)


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
    # the curvatures along the scores, with annotators marginalised and known
    along = (np.einsum("qi,qij,qj->q", offset, one, offset) for one in (marginal, matrices))
    of_scale = _variance_of_scale(*along)
    invert_all(marginal)
    marginal -= of_scale[:, None, None] * offset[:, :, None] * offset[:, None, :]
    if terms.centred:
        marginal -= marginal.mean(axis=1, keepdims=True)
        marginal -= marginal.mean(axis=2, keepdims=True)
    return marginal, float(of_scale.max(initial=0.0))


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


def latent_score_gradients(
    judgments: Any, layout: Layout, consensus: Consensus, bins: int | None, design: CovariateDesign | None = None
) -> ScoreGradients:
    """Return the gradients of judgments of one kind, annotators and crowd as they were estimated."""
    from scipy.special import expit

    state, (kind,) = former_state(consensus, judgments, layout), layout.kinds
    own, (habits,) = consensus.estimates.get("difficulty"), state.kinds
    if own is not None:
        item = consensus.items.codes_of(judgments.items, "consensus", "judgments")
        state = replace(state, difficulty=np.where(item >= 0, np.asarray(own)[item], 0.0))
    # one response per row, in the order of the judgments
    rows, weight, pairs = np.arange(len(judgments)), judgments.row_weight, judgments
    if isinstance(judgments, Rankings):
        pairs, weight, size = judgments.as_preferences(), ranking_weights(judgments), np.diff(judgments.offsets)
        rows = np.repeat(rows, size * (size - 1) // 2)
    who = judgments.row_annotator[rows]
    if isinstance(judgments, Grades):
        first, level, side = judgments.item, judgments.level_codes(bins)[0], np.ones(len(rows))
        gap = state.scores[first]
    else:
        first, level, side = pairs.left, preference_levels(pairs)[0], 1.0 * pairs.shown
        gap = state.scores[first] - state.scores[pairs.right]
    alpha = state.alpha[who]
    eta = alpha * gap + side * habits.bias[who]
    if design is not None and habits.control is not None:
        eta = eta + (design.values * habits.control.own[who]).sum(axis=1)
    below, above = habits.level_bounds(who, level)
    clear = np.exp(-state.difficulty[first]) if len(state.difficulty) else np.ones(len(eta))
    upper, lower = expit(clear * (above - eta)), expit(clear * (below - eta))
    share = np.ones(len(eta))
    if kind.has_lapses:
        lapse = habits.lapse[who]
        seen = (1.0 - lapse) * np.maximum(upper - lower, _MIN_PROBABILITY)
        share = seen / (seen + lapse * habits.lapse_probabilities(who, level, side))
    # in the score of the first item, and the curvature in the predictor
    slope = weight * share * clear * alpha * (upper + lower - 1.0)
    curve = weight * share * clear**2 * (upper * (1.0 - upper) + lower * (1.0 - lower))
    # scores may be on the scale of known items
    unit = float(consensus.estimates.get("unit", 1.0))
    prior = 1.0 / (unit**2 * state.variance_of_items)
    if isinstance(judgments, Grades):
        return ScoreGradients(rows, first, slope / unit, prior)
    items, shared = np.concatenate([first, pairs.right]), None
    if design is not None:
        # with the discriminations as they are, all coefficients move together
        values = design.values
        bent = (curve * alpha / unit)[:, None] * values
        cross = [np.bincount(items, np.concatenate([column, -column]), layout.n_items) for column in bent.T]
        own = np.divide(slope, alpha, out=np.zeros(len(slope)), where=alpha != 0)[:, None] * values
        curvature = (curve[:, None] * values).T @ values + 1e-3 * np.eye(values.shape[1])
        shared = SharedGradients.of(own, np.column_stack(cross), curvature)
    return ScoreGradients(np.tile(rows, 2), items, np.concatenate([slope, -slope]) / unit, prior, shared)


# Lapses: one in every tenth answer, and scores a fifth smaller, predict nearly the same preferences


def lapse_curvature(layout: Layout, state: State) -> Floats:
    """Return the curvature of preferences in the mean probability of a lapse, in it and the log-scale, and in that."""
    from scipy.special import expit

    total = np.zeros(3)
    for kind, habits in zip(layout.kinds, state.kinds, strict=True):
        cells = kind.cells
        if not (kind.about_pairs and kind.has_lapses and len(cells.level)):
            continue
        who, level = cells.annotator_side >> 2, cells.level.astype(np.int64)
        side: Floats = 1.0 - (cells.annotator_side & 3).astype(np.float64)
        gap = np.repeat(state.gaps(kind)[0], np.diff(cells.bounds))
        eta = np.exp(habits.log_scale) * state.alpha[who] * gap + side * habits.bias[who]
        if habits.control is not None:
            eta = eta + (cells.values * habits.control.own[who]).sum(axis=1)
        lower, upper = (expit(bound - eta) for bound in habits.level_bounds(who, level))
        seen, usual = np.maximum(upper - lower, _MIN_PROBABILITY), habits.lapse_probabilities(who, level, side)
        lapse = habits.lapse[who]
        likely = (1.0 - lapse) * seen + lapse * usual
        # derivatives of each log-likelihood in the mean probability of a lapse, and in the log of the scale
        of_lapse = (usual - seen) / likely
        of_scale = (1.0 - lapse) * eta * (lower * (1.0 - lower) - upper * (1.0 - upper)) / likely
        weight = cells.weight if len(cells.weight) else np.ones(len(of_lapse))
        total += [float(weight @ one) for one in (of_lapse**2, of_lapse * of_scale, of_scale**2)]
    return total


# The consensus


def latent_consensus(
    method: Any, judgments: Any, layout: Layout, fit: ScoreFit, design: CovariateDesign | None = None
) -> Consensus:
    """Return scores with standard errors, quality of annotators and grades; known items have the scores given."""
    known, (std_error, blocks, of_scale, of_control, of_lapses) = fit.anchors.inputs, score_errors(layout, fit)
    if known.unit != 1.0:
        std_error = known.unit * std_error
        blocks = blocks and tuple(None if block is None else known.unit**2 * block for block in blocks)
    graded = read_grades(layout, fit.state)
    quality = annotator_quality(method, judgments, layout, fit, design)
    by_name = estimates(layout, fit.state, known)
    if design is not None:
        control = fit.state.kinds[0].control
        assert control is not None
        of_control = of_control + of_lapses**2 * np.outer(control.shared, control.shared)
        own = steps.control_parameters(design, control, of_control, of_lapses)
        quality = quality and replace(quality, parameters={**quality.parameters, **own})
        by_name["control"] = steps.control_estimates(design, control, of_control, layout.active)
        design.warn(control.shared)
    return Consensus.of(
        method, judgments, known.to_user_scale(fit.state.scores), trace=fit.trace, std_error=std_error,
        covariance=blocks, quality=quality, estimates={**by_name, "scale_error": of_scale},
        grade=None if graded is None else graded[0], levels=None if graded is None else graded[1], unit=known.unit,
    )  # fmt: skip


# Warnings


def warn_about(fit: ScoreFit, layout: Layout, items: Items, options: Options) -> None:
    """Warn the caller of ``fit`` of what the judgments could not determine."""
    if not fit.trace.converged:
        warn_unconverged("latent_score", options.max_iter, fit.trace.change, options.tol)
    # features relate items that were never compared
    separate = None if fit.anchors.inputs.features.shape[1] else separate_groups(layout)
    n_separate = 0 if separate is None else int(separate.sum())
    groups = (n_separate, "" if separate is None or not n_separate else first_ids(items, separate))
    warn_undetermined(fit, layout, groups, depth=4)


def warn_undetermined(fit: ScoreFit, layout: Layout, separate: tuple[int, str], *, depth: int) -> None:
    """Warn of what the judgments could not determine; ``separate`` are the number and names of groups of items."""
    anchors, (n_separate, names), said = fit.anchors, separate, list[str]()
    if anchors.scale_setters is not None and fit.mean_alpha < steps.MIN_MEAN_ALPHA:
        said.append(
            f"the crowd is not better than chance (mean discrimination {fit.mean_alpha:.2f}), so the direction of the "
            f"scores is unknown: name annotators known to be good with {option('trusted')}, or known items"
        )
    if fit.state.variance_of_items >= MAX_VARIANCES["item"] * (1.0 - 1e-9):
        said.append("the judgments hardly ever contradict each other, so the distances between scores are a guess")
    if n_separate:
        said.append(
            f"{n_separate} groups of items were never compared with each other, those of {names}; only the prior "
            "relates them: do not compare across groups, or ask for judgments between them"
        )
    unanchored = anchors.scale_setters is not None and np.isnan(anchors.prior.fixed_variance[layout.active]).all()
    weight = layout.kinds[0].weight
    own = weight[weight > 0]
    ranked_alone = [kind.name for kind in layout.kinds] == ["ranking"]
    if unanchored and ranked_alone and len(own) > 1 and own.mean() < _MIN_RANKING_WEIGHT:
        said.append(
            "annotators gave few, short rankings, so reversed annotators can hardly be detected: ask for longer or "
            f"more rankings, or name annotators known to be good with {option('trusted')}"
        )
    for message in said:
        warnings.warn(message, DataWarning, stacklevel=depth)


def separate_groups(layout: Layout) -> Bools | None:
    """Return the first item of each group of items of a query that are neither compared with others nor graded."""
    graded = np.zeros(layout.n_items, bool)
    for kind in layout.kinds:
        if not kind.about_pairs:
            graded[kind.cells.first] = True
    if not len(layout.graph.second):
        return None
    has_grades = np.bincount(layout.component, graded, layout.n_items) > 0
    heads = layout.judged & (layout.component == np.arange(layout.n_items)) & ~has_grades
    return heads & (np.bincount(layout.query, heads, len(layout.offsets) - 1) > 1)[layout.query]


# Quality of annotators


def _scores_of_part(method: Any, fit: ScoreFit, design: CovariateDesign | None, many: bool, judgments: Any) -> Floats:
    """Scores of a fit to a part of the judgments, begun at the fit to all, with its direction and known items."""
    if not len(judgments):
        return np.zeros(judgments.n_items)
    anchors, values = fit.anchors, None if design is None else design.of_part(judgments).values
    layout = lay_out(judgments, bins=method.bins, lapse=method.lapse, values=values)
    again = partial(
        steps.fit_scores, layout, _REFIT_OPTIONS_MANY if many else _REFIT_OPTIONS, known=anchors.inputs,
        trusted=~np.isnan(anchors.prior.fixed_variance),
    )  # fmt: skip
    # rounds that go on from scores of other judgments may run away where weights are huge; a fresh start does not
    for start in (refit_state(layout, fit.state, with_habits=many), None):
        scores = again(start=start).state.scores
        if np.isfinite(scores).all():
            return scores
    raise JudgmentError("latent_score finds no finite scores for a part of the judgments; use smaller weights")


def pair_quality(state: State, alpha: Floats, scale: Floats | float, lapse: Floats) -> Floats:
    """Return the probability of ordering a random pair of unequal items right, given the discriminations ``alpha``.

    The mean of ``(1 - lapse) sigmoid(scale alpha |d|) + lapse / 2`` over differences ``d`` of items of one query, by a
    sum over 40 quantiles.
    """
    from scipy.special import expit, ndtri

    quantiles = 0.5 + 0.5 * (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES
    total = np.zeros(len(alpha))
    for gap in ndtri(quantiles) * np.sqrt(2.0 * state.variance_of_items):
        total += expit(scale * alpha * gap)
    return (1.0 - lapse) * total / _N_QUANTILES + 0.5 * lapse


def annotator_quality(
    method: Any, judgments: Any, layout: Layout, fit: ScoreFit, design: CovariateDesign | None = None
) -> LearnedQuality | None:
    """Return held-out quality, with the estimates of each annotator; ``None`` where the judgments name no annotators.

    Parameters are ``alpha`` and ``alpha_sd``, and for each kind where it is learned ``bias``, ``spread`` and ``lapse``,
    with the kind's name where there are several kinds, on the scale of the scores that users see.
    """
    if not layout.named:
        return None
    state, unit, many = fit.state, fit.anchors.inputs.unit, len(judgments) > _MANY_JUDGMENTS
    weight, lapse = np.zeros(layout.n_annotators), np.zeros(layout.n_annotators)
    for kind, habits in zip(layout.kinds, state.kinds, strict=True):
        weight, lapse = weight + kind.weight, lapse + kind.weight * habits.lapse
    lapse = np.divide(lapse, weight, out=np.zeros_like(lapse), where=weight > 0)
    parameters: dict[str, Any] = {"alpha": state.alpha / unit, "alpha_sd": np.sqrt(state.alpha_variance) / unit}
    for kind, habits in zip(layout.kinds, state.kinds, strict=True):
        ending = "" if len(layout.kinds) == 1 else f"_{kind.name}"
        if kind.has_bias:
            parameters |= {f"bias{ending}": habits.bias, f"bias_sd{ending}": np.sqrt(habits.bias_variance)}
        if kind.has_spread:
            parameters[f"spread{ending}"] = np.exp(habits.spread)
        if kind.has_lapses:
            parameters |= {f"lapse{ending}": habits.lapse, f"lapse_answers{ending}": habits.favourites}
    learned = pair_quality(state, state.alpha, 1.0, lapse)
    again, n_folds = partial(_scores_of_part, method, fit, design, many), _N_FOLDS_MANY if many else MAX_FOLDS
    return LearnedQuality(judgments, again, parameters, learned, n_folds, precision=_SCORE_PRECISION)


# Estimates of the crowd, and grades


def estimates(layout: Layout, state: State, known: ItemInputs | None = None) -> dict[str, Any]:
    """Return what is learned of the whole crowd; ``middle`` and ``unit`` lead to the user's scale of known items."""
    table: dict[str, Any] = {}
    if known is not None and known.clamped.any():
        table |= {"middle": known.middle, "unit": known.unit}
    table |= {"score_sd": state.variance_of_items**0.5, "alpha_sd": state.variance_of_alpha**0.5}
    if layout.has_query_levels:
        table["query_sd"] = state.variance_of_levels**0.5
    if state.variance_of_difficulty > 0.0:
        table["difficulty_sd"] = state.variance_of_difficulty**0.5
        if len(state.difficulty):
            table["difficulty"] = state.difficulty.tolist()
    for place, (kind, habits) in enumerate(zip(layout.kinds, state.kinds, strict=True)):
        ending = "" if len(layout.kinds) == 1 else f"_{kind.name}"
        if kind.has_bias:
            table |= {f"mean_bias{ending}": habits.mean_bias, f"bias_sd{ending}": habits.variance_of_bias**0.5}
        if kind.has_spread:
            table[f"spread_sd{ending}"] = habits.variance_of_spread**0.5
        if kind.has_cuts:
            table[f"cuts{ending}"] = (habits.centre + habits.cuts).tolist()
            table[f"centre{ending}"] = habits.centre
        if kind.has_lapses:
            table[f"mean_lapse{ending}"] = habits.mean_lapse
        if place != steps.reference_kind(layout):
            table[f"scale{ending}"] = float(np.exp(habits.log_scale))
    return table


def read_grades(layout: Layout, state: State) -> tuple[Ints, tuple[Any, ...]] | None:
    """Return the level of each item, -1 where nobody judged it, and the levels; ``None`` where there are no grades.

    It is the weighted mode of the levels that annotators would give without noise. The weight of an annotator is the
    number of grades times the square of how far the quality is above guessing. Cutting the scores at the crowd's own
    cuts would give too few extremes, since scores are shrunk. A crowd as a whole may favour one of two levels; there
    the items are split into two groups by their scores.
    """
    for kind, habits in zip(layout.kinds, state.kinds, strict=True):
        if kind.name == "grade":
            chosen = weighted_mode(layout, state, kind, habits)
            if kind.n_levels == 2:
                chosen[layout.judged] = two_groups(state.scores[layout.judged], chosen[layout.judged])
            return chosen, kind.levels
    return None


def two_groups(scores: Floats, grade: Ints) -> Ints:
    """Return the group of each score in a mixture of two normal distributions of one variance, by EM from the grades.

    Grades of few items, or that are all the same, stay as they are.
    """
    if len(scores) < _MIN_ITEMS_TWO_GROUPS or np.ptp(grade) == 0:
        return grade
    from scipy.special import expit

    upper = np.clip(grade, _GROUP_START_DOUBT, 1.0 - _GROUP_START_DOUBT)
    for _ in range(_MAX_GROUP_ROUNDS):
        share = float(upper.mean())
        high, low = float(upper @ scores) / upper.sum(), float((1.0 - upper) @ scores) / (1.0 - upper).sum()
        spread = float(upper @ (scores - high) ** 2 + (1.0 - upper) @ (scores - low) ** 2) / len(scores) + 1e-9
        odds = np.log(share / (1.0 - share)) + (high - low) / spread * (scores - 0.5 * (high + low))
        following = np.clip(expit(odds), 1e-9, 1.0 - 1e-9)
        still = float(np.abs(following - upper).max()) < 1e-6
        upper = following
        if still:
            break
    group = (upper > 0.5).astype(np.int32)
    return group if np.ptp(group) > 0 and high > low else grade


def weighted_mode(layout: Layout, state: State, kind: Kind, habits: KindState) -> Ints:
    """Return the level that most annotators, weighted, would give each item without noise."""
    scale = float(np.exp(habits.log_scale))
    quality = pair_quality(state, state.alpha, scale, habits.lapse)
    weight = kind.weight * np.maximum(2.0 * quality - 1.0, 0.0) ** 2
    use = np.flatnonzero(weight > 0)
    if not len(use):
        use, weight = np.flatnonzero(kind.weight > 0), kind.weight
    slope, n_levels = np.maximum(scale * state.alpha[use], 1e-9), kind.n_levels
    # the score at which an annotator's level rises above cut k
    passes = habits.centre + np.exp(habits.spread[use])[:, None] * habits.cuts - habits.bias[use][:, None]
    passes = passes / slope[:, None]
    above = np.zeros((layout.n_items, n_levels + 1))
    above[:, 0] = weight[use].sum()
    for cut in range(n_levels - 1):
        order = np.argsort(passes[:, cut], kind="stable")
        sums = np.append(0.0, np.cumsum(weight[use][order]))
        above[:, cut + 1] = sums[np.searchsorted(passes[order, cut] + _SCORE_PRECISION, state.scores)]
    share = above[:, :-1] - above[:, 1:]
    # of levels with equal weight the lowest
    chosen = np.argmax(share >= share.max(axis=1, keepdims=True) - _SCORE_PRECISION * above[:, :1], axis=1).astype(
        np.int32
    )
    return np.where(layout.judged, chosen, np.int32(-1))


# Items between two fits


def rereading(method: Any, judgments: Any, layout: Layout, state: State, inputs: ItemInputs) -> Rereading | None:
    """Return what reads items anew after a fit; ``None`` with known items, covariates, bins or several kinds."""
    several = len(layout.kinds) != 1 or not layout.named
    if several or inputs.clamped.any() or layout.kinds[0].n_covariates or method.bins is not None:
        return None
    # of how annotators respond, what one round hands to the next is not needed
    state = replace(state, kinds=tuple(replace(kind, curvature=None) for kind in state.kinds))
    prior = ScorePrior(layout, state)
    levels = prior.level_share * prior.sums(state.scores)
    known = judgments.levels if isinstance(judgments, Grades) else ()
    nothing, has_ties = np.empty(0), bool(layout.kinds[0].n_levels % 2)
    paired = LevelScale(0.0, 0.0, nothing, nothing.astype(np.int32), has_ties)
    scale = paired if isinstance(judgments, Rankings) else LevelScale.of(judgments)
    return Rereading(method, judgments.annotators, judgments.items, layout, state, levels, known, scale)


@dataclass(frozen=True, eq=False)
class Rereading:
    """An E-step for some items: annotators, crowd, levels, difficulties and the other items are those of the fit.

    Parameters
    ----------
    method
        The method.
    annotators, items, layout, state
        Those of the fit.
    levels_of_queries
        Level of each of its queries, (n_queries,).
    levels, scale
        Levels of the grades that it knows, and what levels of pairs follow from.
    """

    method: Any
    annotators: Index
    items: Items
    layout: Layout
    state: State
    levels_of_queries: Floats
    levels: tuple[Any, ...]
    scale: LevelScale

    def __call__(self, judgments: Any, free: Bools) -> tuple[Consensus, Bools]:
        """Return the scores of the ``free`` items of these judgments, and which of them they say something of.

        The other items keep the scores of the fit. Judgments by annotators of whom it knows nothing, with levels that
        it does not know, or about items that it does not know and that are not free, do not count.
        """
        expect(judgments, self.method)
        former = self.items.codes_of(judgments.items, "consensus", "judgments")
        rows = self._usable_judgments(judgments, free | (former >= 0))
        free = free & rows.judged_items
        scores = np.where(former >= 0, self.state.scores[former], 0.0)
        if free.any():
            layout = lay_out(rows, scale=self.scale, lapse=self.method.lapse)
            scores = self._solve(layout, former, free, judgments.items)
        return Consensus.of(self.method, judgments, scores), free

    def _usable_judgments(self, judgments: Any, items: Bools) -> Any:
        """The judgments that count, by the annotators and levels of the fit."""
        annotator = self.annotators.codes(judgments.annotators.ids)[judgments.annotator]
        use = annotator >= 0
        if isinstance(judgments, Grades):
            place = {str(level): value for level, value in zip(self.levels, self.layout.kinds[0].values, strict=True)}
            value = np.array([place.get(str(level), np.nan) for level in judgments.levels])[judgments.level_place]
            use &= np.isfinite(value) & items[judgments.item]
            judgments = replace(judgments, grade=np.where(use, value, 0.0), declared=self.levels)
        elif isinstance(judgments, Rankings):
            ranking, n = judgments.ranking, len(judgments)
            tied = np.bincount(ranking[1:], (np.diff(judgments.rank) == 0) & (np.diff(ranking) == 0), n) > 0
            use &= ~(tied & (not self.scale.has_ties)) & (np.bincount(ranking, ~items[judgments.item], n) == 0)
        else:
            use &= (judgments.outcome != 0) | self.scale.has_ties
            use &= items[judgments.left] & items[judgments.right]
            if judgments.strength is not None:
                use &= np.isin(judgments.strength, np.append(self.scale.sizes, 0.0))
        chosen = replace(judgments, annotators=self.annotators, annotator=np.where(use, annotator, 0).astype(np.int32))
        return chosen.select(use)

    def _solve(self, layout: Layout, former: Ints, free: Bools, items: Items) -> Floats:
        """Scores where the free ones gain no more: Newton steps, their variances as in the fit."""
        fitted, new, level = self.state, former < 0, np.zeros(layout.n_items)
        if fitted.variance_of_levels > 0.0:
            query = self.items.queries.codes(items.queries.ids)
            level = np.where(query >= 0, self.levels_of_queries[query], 0.0)[items.query]
        state = replace(
            fitted,
            scores=np.where(new, level, fitted.scores[former]),
            variance=np.where(new, fitted.variance_of_items, fitted.variance[former]),
            covariance=self._covariance(former[layout.graph.first], former[layout.graph.second]),
            variance_of_levels=0.0,
            cell_curvature=(),
            difficulty=np.where(new, 0.0, fitted.difficulty[former]) if len(fitted.difficulty) else fitted.difficulty,
        )
        prior = ScorePrior(layout, state)
        inputs = ItemInputs(np.empty((layout.n_items, 0)), ~free, state.scores)
        unit = state.variance_of_items**0.5
        for _ in range(_MAX_READING_STEPS):
            curvature = steps.score_curvature(layout, state, inputs)
            posterior = ScorePosterior(layout, curvature, prior)
            gradient = np.where(free, curvature.gradient - (state.scores - level) / state.variance_of_items, 0.0)
            step = np.where(free, posterior.solve(gradient[:, None])[:, 0], 0.0)
            longest = float(np.abs(step).max())
            scores = state.scores + step * min(1.0, steps.MAX_SCORE_STEP / max(longest, 1e-300))
            state = replace(state, scores=scores, variance=np.where(new, posterior.variance, state.variance))
            if longest <= _READING_TOL * unit:
                break
        return state.scores

    def _covariance(self, first: Ints, second: Ints) -> Floats:
        """Covariance of pairs of former items; of pairs that did not meet before, the mean of their query's."""
        graph, given, n = self.layout.graph, self.state.covariance, self.layout.n_items
        if not len(given):
            return np.zeros(len(first))
        query, n_queries = self.layout.query, len(self.layout.offsets) - 1
        number = np.bincount(query[graph.first], minlength=n_queries)
        means = np.bincount(query[graph.first], given, n_queries) / np.maximum(number, 1)
        keys, known = graph.first.astype(np.int64) * n + graph.second, (first >= 0) & (second >= 0)
        wanted = np.minimum(first, second).astype(np.int64) * n + np.maximum(first, second)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(known, np.where(keys[place] == wanted, given[place], means[query[first]]), 0.0)
