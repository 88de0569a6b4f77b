"""Latent-score model with features: one score per item from judgments of any kind and from features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Consensus
from ...data.features import Features
from ...data.joint_fit import JointFit
from ...data.judgments import Judgments, Mixed, expect
from ...errors import ParameterError
from ...protocols import Floats, Ints, Progress, method_name
from ...quality import trusted_annotators
from ...rankers.linear_score import LinearScore
from ...rankers.scaling import Scaling
from .layout import lay_out
from .outcomes import latent_consensus, warn_about
from .rounds import Options, fit_scores
from .state import known_scores

_DEFAULTS = Options()

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
    lapse
        Whether annotators may lapse: give one of their favourite levels without looking. ``None``: with grades of at
        most seven levels.
    bins
        Cut grades into this many equally wide levels; needed when there are more than 30 distinct grades.
    tol
        Largest change in the last round, as for the aggregator; raise it to stop earlier.
    max_iter
        Largest number of rounds.

    Notes
    -----
    Features are standardised by the items that were judged. An item without features counts as an average one, and only
    its judgments move it; items that were listed but never judged have the score that their features predict. Missing
    features are refused: fill them in.

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
    lapse: bool | None = None
    bins: int | None = None
    tol: float = _DEFAULTS.tol
    max_iter: int = _DEFAULTS.max_iter

    def __post_init__(self) -> None:
        if not self.tol > 0:
            raise ParameterError(f"tol={self.tol} must be above 0")
        if self.max_iter < 1:
            raise ParameterError(f"max_iter={self.max_iter} must be at least 1")

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
            Called once the fit is done.
        """
        expect(judgments, self)
        if not len(judgments):
            raise ParameterError("there are no judgments to learn from; give some")
        clamped = known_scores(judgments.items, known)
        layout = lay_out(judgments, bins=self.bins, lapse=self.lapse)
        reliable = trusted_annotators(judgments, trusted)
        scaled = None if features is None else _scale_features(features, judgments)
        options = Options(self.tol, self.max_iter)
        fit = fit_scores(
            layout, options, features=None if scaled is None else scaled.matrix, known=clamped,
            trusted=reliable if len(reliable) else None,
        )  # fmt: skip
        warn_about(fit, layout, judgments.items, options)
        if progress:
            progress(fit.trace.n_iter, fit.trace.n_iter, "latent_score")
        consensus = latent_consensus(self, judgments, layout, fit, clamped)
        return _joint_fit(self, consensus, features, scaled, fit.state.weights * clamped.unit, judgments)


class _ScaledFeatures(NamedTuple):
    """Standardised features of the judgments' items, zeros where there are none, with their scaling."""

    matrix: Floats
    scaling: Scaling
    judged: Ints


def _scale_features(features: Features, judgments: Judgments | Mixed) -> _ScaledFeatures:
    """The features of each item of the judgments, standardised by mean and standard deviation of the judged items."""
    judged = features.match(judgments, so="are taken for average ones")
    rows = features.items.codes_of(judgments.items, "features", "judgments")
    features.expect_numbers(rows[rows >= 0])
    learned = features.matrix[judged[judged >= 0]].astype(np.float64)
    centre, spread = learned.mean(axis=0), learned.std(axis=0)
    spread[spread <= _MIN_RELATIVE_DEVIATION * np.abs(learned).max(axis=0)] = 1.0
    matrix = np.zeros((judgments.n_items, learned.shape[1]))
    matrix[rows >= 0] = (features.matrix[rows[rows >= 0]] - centre) / spread
    return _ScaledFeatures(matrix, Scaling("overall", centre, spread), judged)


def _joint_fit(
    method: LatentScore,
    consensus: Consensus,
    features: Features | None,
    scaled: _ScaledFeatures | None,
    weights: Floats,
    judgments: Judgments | Mixed,
) -> JointFit:
    """The result, with a ranker where there are features."""
    learned, ranker, n_unjudged = judgments.judged_items, None, 0
    if features is not None and scaled is not None:
        ranker = LinearScore.of(features.names, scaled.scaling, weights, consensus.trace)
        learned, n_unjudged = scaled.judged >= 0, len(features) - int((scaled.judged >= 0).sum())
    return JointFit(
        method=method_name(method), ranker=ranker, consensus=consensus, n_items=int(learned.sum()),
        n_queries=len(np.unique(judgments.items.query[learned])), n_unjudged=n_unjudged,
    )  # fmt: skip
