"""Which item of a pair is the better, from preferences and features together, by annotators who flip some answers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from ...data.consensus import Consensus, Quality
from ...data.features import Features
from ...data.joint_fit import JointFit, PairPosteriors
from ...data.judgments import Preferences, expect
from ...errors import DataWarning, ParameterError
from ...protocols import Bools, Floats, Progress
from ...quality import warn_near_chance
from ...wording import one_of
from .ballots import Ballots
from .item_scores import EqualScores, FeatureScores, ItemScores, ScoreModel
from .prior_check import contradiction
from .vote_fits import VoteFit, VoteFitter

if TYPE_CHECKING:
    from .item_table import ItemTable

_LOSSES = ("logistic", "hinge")
_CLUSTERINGS = ("folded", "raw")
_FIRST_SPREAD = 2.0


@dataclass(frozen=True, kw_only=True)
class JointAnnotators:
    r"""JAM and VRJAM: EM over the better item of each pair, a linear ranker and a flip rate per annotator.

    Item :math:`i` is better than item :math:`j` of the same query with probability

    .. math:: P(z_{ij} = 1) = \sigma(s_i - s_j), \qquad s_i = w \cdot x_i + u_i, \qquad u_i \sim N(0, \tau^2),

    before anybody is asked, :math:`x_i` being the features of an item, :math:`w` their weights and :math:`u_i` what the
    features do not tell of it. Annotator :math:`k` then says so, or with probability :math:`r_k` the reverse. Weights,
    items' own parts, their spread :math:`\tau` and flip rates are learned together, the :math:`z` being hidden, by
    expectation-maximisation. Without :math:`u` (``item_effects=False``) this is JAM [Gupta16]_. With ``n_clusters``
    above 1 pairs are put into clusters by :math:`x_i - x_j`, and annotators have a rate :math:`r_k^d` in each: VRJAM.

    Scores are :math:`s`, those of items with features but no judgment :math:`w \cdot x`, which is how the ranker scores
    any item. The probability of each pair once preferences are known is in ``pairs`` of the result.

    When to use
    -----------
    Use it for preferences on items with features that predict the order. With few preferences per item the features do
    most of the work; where features predict nothing use ``crowd_bt``.

    Parameters
    ----------
    item_effects
        Whether items have a part of their own besides what features say.
    n_clusters
        Number of clusters of pairs; ``None`` finds one between 2 and 16.
    clustering
        ``"folded"``: a difference and its negative are the same; ``"raw"``: as printed in the paper, where the cluster
        depends on which item of a pair comes first.
    loss
        ``"logistic"``: the likelihood of the model; ``"hinge"``: the paper's smoothed hinge for the weights, which goes
        with ``item_effects=False``.
    alpha
        Number of judgments that each flip rate begins with, three in ten of them flipped; raise it where annotators
        judge little.
    cluster_alpha
        Number of judgments that an annotator's overall rate counts for in each cluster; raise it where pairs are few.
    ridge
        Pull of the weights of scaled features towards 0, as precision of a normal prior.
    tol
        Largest change of a flip rate in the last pass; and the root of what the log-likelihood may still gain a pair.
    max_iter
        Most passes over the pairs at one spread.
    seed
        Where clusters begin, and which pairs they are found from if there are more than 30,000.

    Notes
    -----
    Ties are no votes; a pair that was only tied is judged by its features. Two answers of an annotator about one pair
    are two votes, and a weight counts as so many.

    The paper's formulas are used as they are meant: flip rates are the expected share of flipped votes (its equations
    19 and 24 minimise what has to be maximised), and weights have a ridge. Features are standardised within queries.
    The trace has the log-likelihood with priors, which never falls with the logistic loss.

    Scores and rates turned round explain preferences equally well. The first pass goes by the majority, and if most
    votes come out flipped, everything is turned round. With ``trusted=`` annotators, who begin with 95 right votes and
    5 flipped ones, or with ``known=`` pairs, the likelier of both sides is taken.

    With item effects, spread and flip rates are those that preferences make likeliest when all scores they leave
    possible are averaged over, taken as independent and normal; the spread, between 0.05 and 4, is in ``estimates`` of
    the consensus. The scores are the likeliest ones given both, and the trace is theirs.

    A warning is given if scores overrule votes more often than they would votes drawn from the model. Of all pairs of
    red wines, judged by six simulated annotators, 0.9997 come out right with item effects and 0.988 without. Of digits
    as told by five weak classifiers, whose errors follow the features, it is 0.819 and 0.813 against 0.823 by majority.

    Without features, or if none of them varies, all pairs are alike to begin with: one-coin Dawid-Skene on pairs
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
        one_of(self.loss, _LOSSES, "loss")
        one_of(self.clustering, _CLUSTERINGS, "clustering")
        if self.loss == "hinge" and self.item_effects:
            raise ParameterError("loss='hinge' has no likelihood to learn items' own parts by; set item_effects=False")
        if self.n_clusters is not None and self.n_clusters < 1:
            raise ParameterError(f"n_clusters={self.n_clusters} must be at least 1, or None to find it")
        for name in ("alpha", "cluster_alpha"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ParameterError(f"{name}={getattr(self, name)} must be at least 0")
        if not self.ridge > 0:
            raise ParameterError(f"ridge={self.ridge} must be above 0; use a small one such as 1e-9 for none")
        if self.max_iter < 1:
            raise ParameterError(f"max_iter={self.max_iter} must be at least 1")

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
            Preferences; grades and rankings are made such by ``as_preferences()``.
        features
            Features of items, judged or not; ``None`` goes by preferences alone.
        known
            Pairs whose better item is certain, as a table of query, left, right and winner, or a truth; or items with
            grades or ranks, by which judged pairs are certain.
        trusted
            Ids of annotators known to be good.
        progress
            Told of the passes.
        """
        from ...kernels.threads import one_blas_thread

        expect(judgments, self)
        ballots = Ballots.of(judgments, known, trusted, self.alpha)
        judged = judgments.judged_items
        table = None if features is None or not len(judgments) else _table(features, judgments)
        centred = None if table is None else table.within_queries(judged, judgments.items.offsets)
        with one_blas_thread():
            found = self._fitter(progress).fit(ballots, self._items(judged, centred))
        _warn_open(judgments, ballots, found)
        self._warn_contradiction(found)
        scores = _scores(found, judged, centred)
        consensus = Consensus.of(
            self, judgments, scores, trace=found.climb.trace, quality=_quality(judgments, ballots, found),
            estimates=_estimates(found),
        )  # fmt: skip
        votes = found.model.votes
        used = judged if table is None else judged & (table.row >= 0)
        return JointFit(
            method="joint_annotators", ranker=_ranker(features, table, found), consensus=consensus,
            n_items=int(used.sum()), n_queries=len(np.unique(judgments.items.query[used])),
            n_unjudged=0 if features is None else len(features) - int(used.sum()),
            pairs=PairPosteriors(judgments.items, votes.first, votes.second, found.probabilities),
        )  # fmt: skip

    def _fitter(self, progress: Progress | None) -> VoteFitter:
        """What fits votes as the parameters say."""

        def told(n: int) -> None:
            if progress is not None:
                progress(n, self.max_iter, "joint_annotators")

        return VoteFitter(
            self.n_clusters, self.clustering == "folded", self.seed, self.cluster_alpha, self.tol, self.max_iter,
            "joint_annotators", told,
        )  # fmt: skip

    def _items(self, judged: Bools, centred: Floats | None) -> ScoreModel:
        """Where the scores come from."""
        matrix = None if centred is None else np.where(judged[:, None], centred, 0.0)
        if matrix is None or not matrix.any():
            return EqualScores(len(judged))
        if self.item_effects:
            return ItemScores(matrix, self.ridge, _FIRST_SPREAD, judged)
        return FeatureScores(matrix, self.ridge, self.loss == "hinge")

    def _warn_contradiction(self, found: VoteFit) -> None:
        """Warn where scores overrule votes more often than annotators who err by chance would need."""
        if isinstance(found.model.items, EqualScores):
            return
        told = contradiction(found.model, found.climb.state, seed=self.seed)
        if told.clear:
            instead = "leave the features out" if self.item_effects else "set item_effects=True, or leave them out"
            warnings.warn(
                f"joint_annotators: what features say overrules the votes on {told.found:.1%} of the pairs, where "
                f"{told.expected:.1%} would be usual: annotators seem to err by what the features show; {instead}",
                DataWarning, stacklevel=3,
            )  # fmt: skip


def _table(features: Features, judgments: Preferences) -> ItemTable:
    """Scaled features of the items; scikit-learn is loaded for them only."""
    from .item_table import ItemTable

    return ItemTable.of(features, judgments)


def _warn_open(judgments: Preferences, ballots: Ballots, found: VoteFit) -> None:
    """Warn of what the votes leave open."""
    number = ballots.number
    silent = number == 0
    if judgments.n_annotators and silent.any():
        names = judgments.annotators.ids.filter(pl.Series(silent)).head(5).to_list()
        warnings.warn(
            f"{int(silent.sum()):,} annotators named no better item, ties being no votes, so that nothing is known of "
            f"their quality: {', '.join(map(repr, names))}",
            DataWarning, stacklevel=3,
        )  # fmt: skip
    if ballots.sure or not number.any():
        return
    if int((~silent).sum()) == 1:
        told = "features alone tell" if found.weights.size else "nothing tells"
        warnings.warn(
            f"there is but one annotator, of whose flipped votes {told}; give judgments of others, or known= pairs",
            DataWarning, stacklevel=3,
        )  # fmt: skip
    else:
        warn_near_chance("joint_annotators", 1.0 - found.flips(ballots.n_annotators)[0], number)


def _scores(found: VoteFit, judged: Bools, centred: Floats | None) -> Floats:
    """Score of each item, of an unjudged one by its features."""
    if isinstance(found.model.items, EqualScores) or centred is None:
        return found.leads()
    return np.where(judged, found.scores, centred @ found.weights)


def _quality(judgments: Preferences, ballots: Ballots, found: VoteFit) -> Quality | None:
    """How often each annotator names the better item."""
    if not judgments.n_annotators:
        return None
    flip, by_cluster = found.flips(ballots.n_annotators)
    counts = np.bincount(judgments.annotator, judgments.weight, judgments.n_annotators).astype(np.float64)
    more = {"cluster_flip": by_cluster} if found.n_clusters > 1 else {}
    return Quality(judgments.annotators, 1.0 - flip, counts, {"flip": flip, **more})


def _estimates(found: VoteFit) -> dict[str, Any]:
    """The spread of items and the number of clusters."""
    spread = {"spread": found.model.items.spread} if isinstance(found.model.items, ItemScores) else {}
    return spread if found.n_clusters == 1 else {**spread, "n_clusters": found.n_clusters}


def _ranker(features: Features | None, table: ItemTable | None, found: VoteFit) -> Any:
    """The weights as a ranker; none where there are no features."""
    if features is None or table is None:
        return None
    from ...rankers.linear_score import LinearScore

    weights = found.weights if found.weights.size else np.zeros(len(features.names))
    return LinearScore.of(features.names, table.scaling, weights, found.climb.trace)
