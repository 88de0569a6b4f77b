"""Latent-score model with features: one score per item from judgments of any kind and from features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...data.features import Features
from ...data.joint_fit import JointFit, takes_missing
from ...data.judgments import Grades, Judgments, Mixed, expect, parts_of, with_described_items
from ...data.parted import has_large_queries, sample_queries
from ...errors import ParameterError, expect_package
from ...protocols import Bools, Counts, Floats, Ints, Progress, method_name
from ...quality import trusted_annotators
from ...rankers.estimator import LinearScore
from ...rankers.training_rows import Scaling
from ...wording import expect_above, expect_at_least
from .model import ItemInputs, Layout, State, first_state, known_scores, lay_out
from .outcomes import latent_consensus, warn_about
from .steps import Options, ScoreFit, fit_scores, product

_DEFAULTS = Options()

# threshold (equal): cells of features from which on latent_score starts from a fit to a part of the queries
MIN_CELLS_TO_START_FROM_A_PART = 1 << 23
"""Cells of features from which on a fit starts from one to a part of the queries."""

_SHARE_OF_PART = 0.125
_OPTIONS_OF_PART = Options(0.02, 60)
"""When the fit to the part stops: the fit to all goes on from there to its own tolerance. The part says whether items
differ in difficulty."""

_MIN_STILL_ROUNDS_AFTER_PART = 5

_BLOCK_ROWS = 4096

_MAX_ALTERNATIONS, _MAX_CHANGE = 2, 0.05
"""A ranker and scores are learned in turn until these change by this share of their standard deviation."""

_N_PARTS = 5
"""Parts of the queries; the mean of an item is by a ranker that learned from the other parts."""

_MIN_DEVIATION = 1e-12
_MIN_RELATIVE_DEVIATION = 1e-12
"""A column whose standard deviation is smaller against its values is constant but for rounding."""


@dataclass(frozen=True, kw_only=True)
class LatentScore:
    r"""Latent-score model with features: a linear score plus an effect per item.

    The model of judgments is that of the aggregator of the same name; the score of item :math:`i` with features
    :math:`x_i`, each of mean 0 and standard deviation 1, is

    .. math:: s_i = w \cdot x_i + q_{\text{query}(i)} + u_i, \qquad u_i \sim N(0, \tau^2), \qquad
              w \sim N(0, \omega^2 I),

    where :math:`w` are the weights of the features, :math:`u_i` is the effect of the item, and :math:`q`, the level of
    a query, is used only with grades of several queries. Both variances are learned: where features predict the
    scores, :math:`\tau` is small, and items with few judgments are shrunk to :math:`w \cdot x_i`; where they do not,
    :math:`\omega` is small, and the scores are those without features. The ranker scores an item without judgments as
    :math:`w \cdot x`.

    When to use
    -----------
    Use it where judgments are few and features predict the order: items nobody judged get a score too. With many
    judgments per item the features change nothing.

    Parameters
    ----------
    ranker
        A ranker, or by its name, whose scores are the mean of items in place of :math:`w \cdot x`, see the notes; it is
        what scores items without judgments then. ``None``: the linear mean above.
    lapse
        Whether annotators may lapse: give one of their favourite levels without looking. ``None``: with grades of at
        most seven levels.
    bins
        Cut grades into this many equally wide levels; needed when there are more than 30 distinct grades.
    tol
        Largest change in the last round, as for the aggregator; raise it to stop earlier.
    max_iter
        Largest number of rounds; raise it where a warning says that the fit did not converge.

    Notes
    -----
    Features are standardised by the items that were judged. An item without features counts as an average one, and only
    its judgments move it; items that nobody judged have the score that their features predict. Missing features are
    refused: fill them in. With more columns than judgments the weights are small: all features
    together give scores no more variance than items have.

    With a ``ranker`` the mean is :math:`a f(x_i)`: scores without features come first; then the ranker :math:`f` learns
    expected scores of judged items (grades, where there are any, averaged along the scores by isotonic regression),
    and scores, annotators and the factor :math:`a` are learned anew given :math:`f`, in turn until scores stay, twice
    at most. So that items are not shrunk towards what was learned from themselves, the mean of a judged item is by
    rankers that learned from the other fifths of the queries (cross-fitting), and the effects :math:`u_i` are shrunk as
    exactly as in the linear form. The ranker that is returned learned from all. Missing features are taken where the
    ranker takes them.

    On 3 % of the preferences of ukpconvarg1 five columns about length and punctuation raise the mean log-likelihood of
    held-out preferences from -.59 to -.55; on all of them they change nothing.

    Examples
    --------
    >>> from crowdrank import Features, Preferences
    >>> votes = Preferences.from_rows([("ann", "q", "x", "y", "left"), ("bob", "q", "x", "y", "left")])
    >>> pages = Features.from_frame({"query": ["q"] * 3, "item": ["x", "y", "z"], "length": [30, 10, 50]})
    >>> fit = LatentScore().fit(votes, pages)
    >>> fit.predict(pages).sort("score")["item"].to_list()
    ['y', 'x', 'z']
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade", "preference", "ranking")
    precision: ClassVar[float] = 1e-8
    mixes: ClassVar[bool] = True
    ranker: Any = None
    lapse: bool | None = None
    bins: int | None = None
    tol: float = _DEFAULTS.tol
    max_iter: int = _DEFAULTS.max_iter

    def __post_init__(self) -> None:
        expect_above(self, 0, "tol")
        expect_at_least(self, 1, "max_iter")

    def fit(
        self,
        judgments: Judgments | Mixed,
        features: Features | None = None,
        *,
        known: Any | None = None,
        trusted: Any | None = None,
        progress: Progress | None = None,
    ) -> JointFit:
        """Return a linear ranker with the consensus and the annotators it was learned with.

        Parameters
        ----------
        judgments
            Grades, preferences, rankings, or several kinds put together.
        features
            Features of items, judged or not; ``None`` for a consensus without a ranker.
        known
            Table of query, item and score: items whose score is certain.
        trusted
            Ids of annotators known to be good.
        progress
            Called after each round, with the mean log-likelihood of a judgment.
        """
        expect(judgments, self)
        if not len(judgments):
            raise ParameterError("there are no judgments to learn from; give some")
        if features is not None:
            features.match(judgments, so="are taken for average ones")
            judgments = with_described_items(judgments, features.items)
        clamped = known_scores(judgments.items, known)
        layout = lay_out(judgments, bins=self.bins, lapse=self.lapse)
        reliable = trusted_annotators(judgments, trusted)
        options = Options(self.tol, self.max_iter)
        run = partial(fit_scores, layout, known=clamped, trusted=reliable if len(reliable) else None, progress=progress)
        if features is not None and self.ranker is not None:
            from ...rankers.foreign_ranker import as_ranker

            template = as_ranker(self.ranker, "LambdaMART")
            rows = features.items.codes_of(judgments.items, "features", "judgments").astype(np.int32)
            features.expect_numbers(rows[rows >= 0], missing=takes_missing(template))
            mean = _RankerMean(template, features, judgments, rows)
            fit = _alternate(mean, partial(run, options))
            warn_about(fit, layout, judgments.items, options)
            ranker = mean.fit_copy(mean.learned_items, mean.targets(fit.state.scores))
            ranker.feature_names_in_ = np.array(features.names, object)
            consensus = latent_consensus(self, judgments, layout, fit)
            return JointFit(
                method=method_name(self), ranker=ranker, consensus=consensus, n_items=len(mean.learned_items),
                n_queries=len(np.unique(judgments.items.query[mean.learned_items])),
                n_unjudged=len(features) - len(mean.learned_items),
            )  # fmt: skip
        scaled = None if features is None else _scale_features(features, judgments)
        if scaled is None:
            fit = run(options)
        else:
            begun = start_from_part(
                judgments, layout, scaled[0], clamped, reliable if len(reliable) else None, bins=self.bins,
                lapse=self.lapse, progress=progress,
            )  # fmt: skip
            start, differ = (None, None) if begun is None else begun
            if start is not None:
                # it may stand still after fewer rounds than one from nothing
                options = options._replace(min_still_rounds=_MIN_STILL_ROUNDS_AFTER_PART, difficulty=differ)
            fit = run(options, features=scaled[0], start=start)
        warn_about(fit, layout, judgments.items, options)
        consensus = latent_consensus(self, judgments, layout, fit)
        learned, ranker, n_unjudged = judgments.judged_items, None, 0
        if features is not None and scaled is not None:
            ranker = LinearScore.of(features.names, scaled[1], fit.state.weights * clamped.unit, consensus.trace)
            learned, n_unjudged = scaled[2] >= 0, len(features) - int((scaled[2] >= 0).sum())
        return JointFit(
            method=method_name(self), ranker=ranker, consensus=consensus, n_items=int(learned.sum()),
            n_queries=len(np.unique(judgments.items.query[learned])), n_unjudged=n_unjudged,
        )  # fmt: skip


def _scale_features(features: Features, judgments: Judgments | Mixed) -> tuple[Floats, Scaling, Ints]:
    """Features of the items, standardised by the judged ones, 0 without; their scaling; rows of judged items, or -1."""
    rows = features.items.codes_of(judgments.items, "features", "judgments")
    judged = np.where(judgments.judged_items, rows, -1).astype(np.int32)
    features.expect_numbers(rows[rows >= 0])
    scaling = _standardisation(features.matrix, np.sort(judged[judged >= 0]))
    matrix = np.zeros((judgments.n_items, features.matrix.shape[1]))
    described = np.flatnonzero(rows >= 0)
    for begin in range(0, len(described), _BLOCK_ROWS):
        items = described[begin : begin + _BLOCK_ROWS]
        block = features.matrix[_stretch(rows[items])] - scaling.centre
        block /= scaling.spread
        matrix[_stretch(items)] = block
    return matrix, scaling, judged


def _stretch(rows: Ints | Counts) -> Any:
    """The rows, as a slice where they follow each other, which needs no copy."""
    follow = len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1 and bool((np.diff(rows) == 1).all())
    return slice(int(rows[0]), int(rows[-1]) + 1) if follow else rows


def _standardisation(matrix: Any, rows: Ints) -> Scaling:
    """Mean and standard deviation of each column over some rows, a block of which is read at a time; 1 if constant."""
    blocks = [rows[begin : begin + _BLOCK_ROWS] for begin in range(0, len(rows), _BLOCK_ROWS)]
    total, largest = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1])
    for block in blocks:
        values = matrix[_stretch(block)].astype(np.float64)
        total, largest = total + values.sum(axis=0), np.maximum(largest, np.abs(values).max(axis=0))
    centre, squares = total / len(rows), np.zeros(matrix.shape[1])
    for block in blocks:
        squares += ((matrix[_stretch(block)] - centre) ** 2).sum(axis=0)
    spread = np.sqrt(squares / len(rows))
    spread[spread <= _MIN_RELATIVE_DEVIATION * largest] = 1.0
    return Scaling("overall", centre, spread)


def start_from_part(
    judgments: Judgments | Mixed, layout: Layout, features: Floats, known: ItemInputs, trusted: Bools | None, *,
    bins: int | None, lapse: bool | None, progress: Progress | None,
) -> tuple[State, bool] | None:  # fmt: skip
    """Return the state in which a fit to all judgments starts, and whether items differ in difficulty.

    ``None``: it starts from nothing.

    Annotators, cuts, variances and weights are those of the part, and items have the scores that the weights predict.
    A fit starts from nothing where cells are few, items known, queries large, or the part lacks a level.
    """
    if (
        features.size < MIN_CELLS_TO_START_FROM_A_PART
        or isinstance(judgments, Mixed)
        or known.clamped.any()
        or has_large_queries(judgments)
    ):
        return None
    n_judgments = np.bincount(judgments.annotator, minlength=judgments.n_annotators).astype(np.float64)
    part = sample_queries(judgments, n_judgments, _SHARE_OF_PART)
    if not len(part):
        return None
    of_part = lay_out(part, bins=bins, lapse=lapse)
    # the levels of all judgments, and levels of queries learned from both
    levels = [[(kind.name, kind.n_levels, kind.levels) for kind in of.kinds] for of in (layout, of_part)]
    if levels[0] != levels[1] or layout.has_query_levels != of_part.has_query_levels:
        return None
    rows = judgments.items.codes_of(part.items, "judgments", "part")
    state = fit_scores(
        of_part, _OPTIONS_OF_PART, features=features[rows], trusted=trusted, progress=_progress_of_part(progress)
    ).state
    first = first_state(layout, state.alpha, features.shape[1])
    kinds = tuple(
        # the centre stays that of all judgments
        replace(habits, centre=new.centre, cuts=habits.cuts + (habits.centre - new.centre), curvature=None)
        for habits, new in zip(state.kinds, first.kinds, strict=True)
    )
    begin = replace(
        state, scores=product(features, state.weights), variance=np.full(layout.n_items, state.variance_of_items),
        covariance=first.covariance, kinds=kinds, cell_curvature=(), feature_variances=None,
        difficulty=first.difficulty, difficulty_variance=first.difficulty_variance, variance_of_difficulty=0.0,
    )  # fmt: skip
    return begin, state.variance_of_difficulty > 0.0


def _progress_of_part(progress: Progress | None) -> Progress | None:
    """Progress of the fit to the part, named as such."""
    if progress is None:
        return None
    return lambda done, total, said: progress(done, total, f"{said}, part of the queries")


def _alternate(mean: _RankerMean, run: Callable[..., ScoreFit]) -> ScoreFit:
    """Scores given the ranker's predictions, and predictions given the scores, in turn until scores stay."""
    fit = run()
    for _ in range(_MAX_ALTERNATIONS):
        before = fit.state.scores[mean.learned_items]
        fit = run(features=mean.column(mean.targets(fit.state.scores)))
        after = fit.state.scores[mean.learned_items]
        if float(np.sqrt(((after - before) ** 2).mean())) <= _MAX_CHANGE * max(float(after.std()), 1e-300):
            break
    return fit


@dataclass(frozen=True, eq=False)
class _RankerMean:
    """A ranker that learns expected scores of judged items and predicts those of all.

    Parameters
    ----------
    ranker
        The ranker; copies of it are fitted.
    features
        Features of items.
    judgments
        What the scores are learned from.
    row
        Row of the features of each item of the judgments, -1 without any.
    """

    ranker: Any
    features: Features
    judgments: Judgments | Mixed
    row: Ints

    @property
    def learned_items(self) -> Counts:
        """Items that were judged and have features."""
        return np.flatnonzero(self.judgments.judged_items & (self.row >= 0))

    def fit_copy(self, items: Counts, target: Floats) -> Any:
        """Return a copy of the ranker that learned the targets of some items."""
        expect_package("sklearn")
        from sklearn.base import clone

        ranker = clone(self.ranker)
        if not self._has_grades and "gain" in ranker.get_params():
            ranker.set_params(gain="linear")
        query = self.judgments.items.query[items]
        ranker.fit(self.features.matrix[self.row[items]], target[items], qid=query)
        return ranker.scorer

    def targets(self, scores: Floats) -> Floats:
        """Return what the ranker learns: expected grades that rise with the scores, or scores above the query's least.

        Grades of judgments are averaged along the scores by isotonic regression.
        """
        for part in parts_of(self.judgments):
            if isinstance(part, Grades):
                from sklearn.isotonic import IsotonicRegression

                curve = IsotonicRegression(out_of_bounds="clip")
                curve.fit(scores[part.item], part.grade, sample_weight=part.row_weight)
                expected: Floats = curve.predict(scores)
                return expected - min(float(expected.min()), 0.0)
        items = self.judgments.items
        lowest = np.full(items.n_queries, np.inf)
        np.minimum.at(lowest, items.query, scores)
        return scores - lowest[items.query]

    def column(self, target: Floats) -> Floats:
        """Return the predicted score of each item, (n_items, 1), by rankers that did not learn from its query.

        Items of queries without judgments have the score of a ranker that learned from all. The column has mean 0 and
        standard deviation 1 over the judged items; items without features have 0.
        """
        items, learned = self.judgments.items, self.learned_items
        described = np.flatnonzero(self.row >= 0)
        part = np.full(len(items), -1)
        part[described] = self._parts(target)[described]
        column = np.zeros(len(items))
        for number in np.unique(part[described]).tolist():
            here = described[part[described] == number]
            others = learned[part[learned] != number]
            ranker = self.fit_copy(others if _has_contrast(target[others], items.query[others]) else learned, target)
            matrix = self.features.matrix[self.row[here]]
            column[here] = ranker.predict(matrix, qid=items.query[here])
        centre, spread = float(column[learned].mean()), float(column[learned].std())
        column[described] = (column[described] - centre) / (spread if spread > _MIN_DEVIATION else 1.0)
        return column[:, None]

    def _parts(self, target: Floats) -> Ints:
        """Part of each item: that of its query, -1 where nobody judged in it; with one query, parts of its items."""
        items, learned = self.judgments.items, self.learned_items
        part = np.full(len(items), -1, np.int32)
        if len(np.unique(items.query[learned])) < 2:
            part[learned[np.argsort(target[learned], kind="stable")]] = np.arange(len(learned)) % _N_PARTS
            return part
        from ...rankers.estimator import query_parts
        from ...rankers.training_rows import Lists, Matrix

        query = items.query[learned]
        lists = Lists.of(len(learned), target[learned], query)
        parts = query_parts(Matrix(self.features.matrix[self.row[learned]]), lists, min(_N_PARTS, lists.n_queries), 0)
        of_query = np.full(items.n_queries, -1, np.int32)
        for number, chosen in enumerate(parts):
            of_query[np.unique(query)[chosen]] = number
        return of_query[items.query]

    @property
    def _has_grades(self) -> bool:
        """Whether some judgments are grades."""
        return any(isinstance(part, Grades) for part in parts_of(self.judgments))


def _has_contrast(target: Floats, query: Ints) -> bool:
    """Whether some query has items of different targets."""
    order = np.lexsort((target, query))
    return bool(((np.diff(target[order]) > 0) & (np.diff(query[order]) == 0)).any())
