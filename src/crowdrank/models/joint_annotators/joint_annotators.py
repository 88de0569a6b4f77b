"""JAM and VRJAM: the better item of each pair from preferences and features, with a flip rate per annotator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ...data.consensus import Consensus, Quality
from ...data.features import Features
from ...data.joint_fit import JointFit, PairPosteriors
from ...data.judgments import Preferences, expect
from ...errors import DataWarning, ParameterError
from ...protocols import BlockFit, Bools, Floats, Progress
from ...quality import warn_near_chance
from ...wording import expect_above, expect_at_least, expect_choices
from .expectation_maximisation import JointFitter, JointModel, PairFit, State, overruled_share
from .item_scores import EqualScores, FeatureScores, ItemEffectScores, ItemFeatures, ScoreModel
from .judged_pairs import JudgedPairs

_LOSSES = ("logistic", "hinge")
_CLUSTERINGS = ("folded", "raw")
_START_SPREAD = 2.0


@dataclass(frozen=True, kw_only=True)
class JointAnnotators:
    r"""JAM and VRJAM: EM over the better item of each pair, a linear ranker and a flip rate per annotator.

    Before any preference, item :math:`i` is better than item :math:`j` of the same query with probability

    .. math:: P(z_{ij} = 1) = \sigma(s_i - s_j), \qquad s_i = w \cdot x_i + u_i, \qquad u_i \sim N(0, \tau^2),

    where :math:`x_i` are the features of an item, :math:`w` their weights and :math:`u_i` an effect of the item that
    features do not explain. Annotator :math:`k` reports the better item, or with probability :math:`r_k`, the flip
    rate, the other one. EM over the hidden :math:`z` estimates weights, item effects, their spread :math:`\tau` and
    flip rates together. Without :math:`u` (``item_effects=False``) this is JAM [Gupta16]_. With ``n_clusters`` above 1
    pairs are clustered by :math:`x_i - x_j`, and annotators have a rate :math:`r_k^d` in each cluster: VRJAM.

    Scores are :math:`s`. Items with features but no judgment have :math:`w \cdot x`, which is also how the ranker
    scores any item. The posterior probability of each pair is in ``pairs`` of the result.

    When to use
    -----------
    Use it for preferences on items with features that predict the order. With few preferences per item the features do
    most of the work; where features predict nothing use ``crowd_bt``.

    Parameters
    ----------
    item_effects
        Whether items have an effect of their own besides their features.
    n_clusters
        Number of clusters of pairs; ``None`` finds one between 2 and 16.
    clustering
        ``"folded"``: a difference and its negative are the same; ``"raw"``: as printed in the paper, where the cluster
        depends on which item of a pair comes first.
    loss
        ``"logistic"``: the likelihood of the model; ``"hinge"``: the paper's smoothed hinge for the weights, which
        requires ``item_effects=False``.
    alpha
        Number of judgments in the prior of each flip rate, three in ten of them flipped; raise it where annotators
        judge little.
    cluster_alpha
        Number of judgments that an annotator's overall rate counts for in each cluster; raise it where pairs are few.
    ridge
        Pull of the weights of scaled features towards 0, as precision of a normal prior; raise it where pairs are few
        or features many.
    tol
        Largest change of a flip rate in the last iteration, and largest root of the log-likelihood per pair that is
        still to be gained; raise it to stop earlier.
    max_iter
        Largest number of iterations at one spread; raise it where a warning says that the fit did not converge.
    seed
        Decides where clusters start, and which pairs they are found from if there are more than 30,000.

    Notes
    -----
    Ties count as no preference; a pair that was only tied is decided by its features. Two preferences of an annotator
    on one pair count as two, and a weight of 2 counts the same.

    The paper's formulas are used as they are meant: flip rates are the expected share of flipped preferences (its
    equations 19 and 24 minimise what has to be maximised), and weights have a ridge. Features are standardised within
    queries. The trace has the log-likelihood with priors, which never falls with the logistic loss.

    Reversed scores with reversed flip rates explain preferences equally well. The first E-step is the majority vote,
    and if most preferences come out flipped, everything is reversed. With ``trusted=`` annotators, whose prior is 95
    right preferences and 5 flipped ones, or with ``known=`` pairs, the more likely of the two sides is taken.

    With item effects, spread and flip rates maximise the likelihood of the preferences averaged over the scores, which
    are taken as independent and normal. The spread, between 0.05 and 4, is in ``estimates`` of the consensus. The
    scores are the most probable ones given both, and the trace is theirs.

    A warning is given if scores overrule preferences more often than they would under the model. Of all pairs of
    red wines, judged by six simulated annotators, 0.9997 come out right with item effects and 0.988 without. Of digits
    judged by five weak classifiers, whose errors follow the features, it is 0.819 and 0.813 against 0.823 by majority.

    Without features, or if none of them varies, all items start equal: one-coin Dawid-Skene on pairs
    [DawidSkene79]_. An item's score is then its mean lead in probability over those it was compared with.

    Quality is :math:`1 - r_k`, the mean over judgments where there are clusters; ``flip`` is :math:`r_k` and
    ``cluster_flip`` has a column for each cluster.

    Examples
    --------
    >>> from itertools import combinations
    >>> features = Features.from_frame({"query": ["q"] * 6, "item": list("uvwxyz"), "length": [9, 7, 8, 4, 3, 1]})
    >>> order = {"ann": "uvwxyz", "bob": "uwvxzy", "cy": "zyxwvu"}
    >>> rows = [(who, "q", *pair, "left") for who, items in order.items() for pair in combinations(items, 2)]
    >>> fit = JointAnnotators().fit(Preferences.from_rows(rows), features)
    >>> fit.consensus.order(), fit.quality.quality.round(1).tolist()
    (['u', 'v', 'w', 'x', 'y', 'z'], [1.0, 0.9, 0.0])
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    precision: ClassVar[float] = 1e-8
    item_effects: bool = True
    n_clusters: int | None = 1
    clustering: str = "folded"
    loss: str = "logistic"
    alpha: float = 1.0
    cluster_alpha: float = 50.0
    ridge: float = 1e-3
    tol: float = 1e-4
    max_iter: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        expect_choices(self, loss=_LOSSES, clustering=_CLUSTERINGS)
        if self.loss == "hinge" and self.item_effects:
            raise ParameterError("loss='hinge' has no likelihood to estimate item effects with; set item_effects=False")
        expect_at_least(self, 1, "n_clusters", hint="use None to have their number found")
        expect_at_least(self, 0, "alpha", "cluster_alpha")
        expect_above(self, 0, "ridge", hint="use a small one such as 1e-9 for none")
        expect_at_least(self, 1, "max_iter")

    def fit(
        self,
        judgments: Preferences,
        features: Features | None = None,
        *,
        known: Any | None = None,
        trusted: Any | None = None,
        progress: Progress | None = None,
    ) -> JointFit:
        """Return consensus, quality, probabilities of pairs, and a linear ranker.

        Parameters
        ----------
        judgments
            Preferences; grades and rankings have ``as_preferences()``.
        features
            Features of items, judged or not; ``None`` uses preferences alone.
        known
            Pairs whose better item is certain, as a table of query, left, right and winner, or a truth; or items with
            grades or ranks, by which judged pairs are certain.
        trusted
            Ids of annotators known to be good.
        progress
            Called with the iterations done.
        """
        from ...kernels.threads import one_blas_thread

        expect(judgments, self)
        pairs = JudgedPairs.of(judgments, known, trusted, self.alpha)
        judged = judgments.judged_items
        table = None if features is None or not len(judgments) else ItemFeatures.of(features, judgments)
        centred = None if table is None else table.centre_by_query(judged, judgments.items.offsets)
        with one_blas_thread():
            fit = self.fitter(progress).fit(pairs, self.score_model(judged, centred))
        warn_unidentified(judgments, pairs, fit)
        self.warn_overruled(fit.model, fit.run.state)
        counts = np.bincount(judgments.annotator, judgments.weight, judgments.n_annotators).astype(np.float64)
        consensus = Consensus.of(
            self, judgments, item_scores(fit, judged, centred), trace=fit.run.trace,
            quality=quality_of_fit(judgments, pairs, fit, counts), estimates=estimates_of(fit),
        )  # fmt: skip
        used = judged if table is None else judged & (table.row >= 0)
        first, second = fit.model.pairs.first, fit.model.pairs.second
        return JointFit(
            method="joint_annotators", ranker=ranker_of(features, table, fit), consensus=consensus,
            n_items=int(used.sum()), n_queries=len(np.unique(judgments.items.query[used])),
            n_unjudged=0 if features is None else len(features) - int(used.sum()),
            pairs=PairPosteriors(judgments.items, first, second, fit.probabilities),
        )  # fmt: skip

    def over_blocks(self, judged: Any, **given: Any) -> BlockFit:
        """Return the passes of a fit to preferences in parts; ``given`` are the other arguments of :meth:`fit`."""
        from .joint_passes import JointPasses, refuse_in_parts

        refuse_in_parts(self, judged, given.pop("known", None))
        passes = JointPasses(self, judged, **given)
        return BlockFit(passes.lay_out, passes.solve, passes.merge)

    def fitter(self, progress: Progress | None) -> JointFitter:
        """Return the fitter with these parameters."""

        def report(n: int) -> None:
            if progress is not None:
                progress(n, self.max_iter, "joint_annotators")

        return JointFitter(
            self.n_clusters, self.clustering == "folded", self.seed, self.cluster_alpha, self.tol, self.max_iter,
            "joint_annotators", report,
        )  # fmt: skip

    def score_model(self, judged: Bools, centred: Floats | None) -> ScoreModel:
        """Return where the scores come from."""
        matrix = None if centred is None else np.where(judged[:, None], centred, 0.0)
        if matrix is None or not matrix.any():
            return EqualScores(len(judged))
        if self.item_effects:
            return ItemEffectScores(matrix, self.ridge, _START_SPREAD, judged)
        return FeatureScores(matrix, self.ridge, self.loss == "hinge")

    def warn_overruled(self, model: JointModel, state: State) -> None:
        """Warn where scores overrule preferences more often than under the model."""
        if isinstance(model.items, EqualScores):
            return
        share = overruled_share(model, state, seed=self.seed)
        if share.clear:
            instead = "leave the features out" if self.item_effects else "set item_effects=True, or leave them out"
            warnings.warn(
                f"joint_annotators: the features overrule the preferences on {share.observed:.1%} of the pairs, where "
                f"{share.expected:.1%} would be usual: annotators' errors seem to follow the features; {instead}",
                DataWarning, stacklevel=3,
            )  # fmt: skip


def warn_unidentified(judgments: Any, pairs: JudgedPairs, fit: PairFit) -> None:
    """Warn of annotators whose quality the preferences do not identify."""
    number = pairs.n_preferences
    silent = number == 0
    if judgments.n_annotators and silent.any():
        names = judgments.annotators.ids.filter(pl.Series(silent)).head(5).to_list()
        warnings.warn(
            f"{int(silent.sum()):,} annotators named no better item (ties do not count), so their quality is unknown: "
            f"{', '.join(map(repr, names))}",
            DataWarning, stacklevel=3,
        )  # fmt: skip
    if pairs.side_known or not number.any():
        return
    if int((~silent).sum()) == 1:
        basis = "is estimated from the features alone" if fit.weights.size else "cannot be estimated"
        warnings.warn(
            f"only one annotator: the flip rate {basis}; add judgments of others, or known= pairs",
            DataWarning, stacklevel=3,
        )  # fmt: skip
    else:
        warn_near_chance("joint_annotators", 1.0 - fit.flip_rates(pairs.n_annotators)[0], number)


def item_scores(fit: PairFit, judged: Bools, centred: Floats | None) -> Floats:
    """Return the score of each item, of an unjudged one by its features."""
    if isinstance(fit.model.items, EqualScores) or centred is None:
        return fit.mean_leads()
    return np.where(judged, fit.scores, centred @ fit.weights)


def quality_of_fit(judgments: Any, pairs: JudgedPairs, fit: PairFit, counts: Floats) -> Quality | None:
    """Return how often each annotator names the better item; ``counts`` are the judgments of each."""
    if not judgments.n_annotators:
        return None
    flip, by_cluster = fit.flip_rates(pairs.n_annotators)
    more = {"cluster_flip": by_cluster} if fit.n_clusters > 1 else {}
    return Quality(judgments.annotators, 1.0 - flip, counts, {"flip": flip, **more})


def estimates_of(fit: PairFit) -> dict[str, Any]:
    """Return the spread of the item effects and the number of clusters."""
    spread = {"spread": fit.model.items.spread} if isinstance(fit.model.items, ItemEffectScores) else {}
    return spread if fit.n_clusters == 1 else {**spread, "n_clusters": fit.n_clusters}


def ranker_of(features: Features | None, table: ItemFeatures | None, fit: PairFit) -> Any:
    """Return the weights as a ranker; none without features."""
    if features is None or table is None:
        return None
    from ...rankers.linear import LinearScore

    weights = fit.weights if fit.weights.size else np.zeros(len(features.names))
    return LinearScore.of(features.names, table.scaling, weights, fit.run.trace)
