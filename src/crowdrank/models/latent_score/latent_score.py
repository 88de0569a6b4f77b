"""Latent-score model: one score per item from grades, preferences and rankings together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from ...covariate_design import CovariateDesign, comparable_annotators, covariate_design
from ...data.consensus import Consensus, Trace, settle_ties
from ...data.grades import check_levels
from ...data.index import Items
from ...data.judgments import Preferences, align_judgments, expect, stack_judgments
from ...data.naming import first_ids
from ...data.parted import PartColumns, PartedFit, read_sample, sample_queries, share_of_rows
from ...drift import DRIFTS, Walk, fit_with_drift
from ...errors import DataWarning, JudgmentError, ParameterError
from ...fitting import warn_unconverged
from ...pair_counts import steps_of_strengths, strength_weights
from ...protocols import BlockFit, Blocks, Bools, Counts, Floats, Statistics, add_statistics
from ...quality import LearnedQuality, trusted_annotators
from ...standard_errors import ScoreGradients
from ...wording import expect_above, expect_at_least, first_few, one_of, option
from . import outcomes, steps
from .model import (
    Anchors,
    ItemInputs,
    Kind,
    Layout,
    LevelScale,
    State,
    find_anchors,
    first_state,
    former_habits,
    former_scores,
    former_state,
    known_scores,
    lay_out,
    preference_levels,
)
from .outcomes import Marginal
from .steps import ItemSums, Options, Path, RelativeCoefficients, ScoreFit, VarianceSums

if TYPE_CHECKING:
    from .kernels.ordinal import AnnotatorSums


@dataclass(frozen=True, kw_only=True)
class LatentScore:
    r"""Latent-score model: an ordinal response model with discrimination, bias and lapses per annotator.

    Annotator :math:`a` with discrimination :math:`\alpha_a` (0 is guessing, negative is reversed) and bias
    :math:`b_a` gives a level of at most :math:`k` with probability

    .. math:: P(y \le k) = \sigma(h_{ak} - \eta), \qquad \eta = \lambda \alpha_a d + b_a, \qquad
              h_{ak} = c + e^{r_a} t_k,

    where :math:`d` is the score of a graded item, or the difference of the scores of two compared items (left less
    right). The cuts :math:`c + t_k` between levels are shared by all annotators. A preference has the levels right, tie
    and left, one per strength and side where annotators say by how much, and :math:`b_a` favours the left; with grades
    :math:`b_a` is leniency. The spread :math:`e^{r_a}` is an annotator's use of the extreme levels, or of ties.
    :math:`\lambda` is how closely a kind of judgment follows the scores, 1 for the most frequent kind. A ranking of
    :math:`m` items is all its pairs, each of weight :math:`4 (m - H_m) / (m (m - 1))` with :math:`H_m` the harmonic
    number, which together have the information of the ranking. Where grades of three or more levels speak for it, items
    differ in difficulty: :math:`h` and :math:`\eta` are divided by :math:`e^{z_i}`, :math:`z_i` normal around 0.
    Scores are normal around the level of their query, which only grades can determine. All variances are learned.

    When to use
    -----------
    Use it by default for orders: annotators may be noisy, biased to a side or a level, guessing or reversed, and kinds
    of judgment may be mixed. It needs about five judgments per annotator on average to learn from; below that use
    ``mean_grade``, ``bradley_terry`` or ``borda``. For one class per item use ``dawid_skene``.

    Parameters
    ----------
    lapse
        Whether annotators may lapse: give one of their favourite levels without looking. ``None``: with grades of at
        most seven levels.
    bins
        Cut grades into this many equally wide levels; needed when there are more than 30 distinct grades.
    taste
        Whether annotators who are not ``trusted`` and give ten or more preferences per item may have tastes in which
        they agree with each other and not with those trusted. ``None``: with ``trusted``.
    difficulty
        Whether items may differ in how much grades of three or more levels differ about them; they do where grades
        that were held out speak for it. ``False``: items are equally difficult.
    drift
        Whether the discrimination of annotators may change with time, over ``"halves"`` of their judgments or
        ``"smooth"`` over windows of about twenty or more. It is a random walk over windows whose variance is the one
        under which held-out judgments are likeliest; there is none where they gain too little by it.
    tol
        Largest change in the last round: of a score, in standard deviations of scores, of a parameter of an annotator,
        or of one of the crowd. A fit also ends where the mean log-likelihood stays within 5 % of it over five rounds.
        Raise it to stop earlier.
    max_iter
        Largest number of rounds; raise it where a warning says that the fit did not converge.

    Notes
    -----
    With ``control=`` the predictor of a preference is :math:`\eta = \alpha_a d + b_a + x \cdot (\gamma + u_a)`, where
    :math:`x` has the covariates of left against right in units of their root mean square, :math:`\gamma` the crowd's
    coefficients and :math:`u_a` the annotator's own, normal with a variance that is learned. Scores are then those of
    items of equal :math:`x`. Each annotator's coefficients are parameters of ``quality`` by their names, with standard
    errors such as ``length_sd``. Intervals of :math:`\gamma` are Student's t with one degree of freedom less than there
    are annotators. In simulations of 20 annotators with 30, 100 and 500 preferences each, 90 % intervals of their
    coefficients cover .87, .89 and .91, with ties .92, of 800 items .86. Lapses look much like smaller scores and
    coefficients: with a tenth of them the intervals cover .83 to .85, and what is not known of them is in the errors.

    Several kinds go together: pass a list of judgments to :func:`crowdrank.aggregate`. Annotators are the same in all.

    The fit is variational EM: scores and annotators are normal given the judgments, and Newton steps for each are
    averaged over the uncertainty of the other, so that annotators with few judgments are shrunk to the crowd. How much
    annotators of grades differ is learned from what their grades say with the scores integrated out: the sum of the
    squares of the gradients of single grades.
    Discriminations have mean 1, but for two groups whose shares are learned: reversed annotators, around -1, and
    guessers, around 0. In simulations of short rankings with 30 % of the annotators reversed, the groups raise
    Kendall's tau by .13 to .17, and they cost nothing where nobody is reversed. The trace has the log-likelihood of
    each round.

    A crowd whose majority is reversed looks like a good crowd. Name annotators known to be good with ``trusted=``, or
    items whose score is known with ``known=``: then nothing is assumed of the other annotators. Known items keep their
    scores, and the others are on the same scale.

    With ``trusted`` annotators, others who give ten or more preferences per item see scores :math:`\alpha s + c + d_j`,
    with a common taste :math:`c` and one of their own: however many their answers are, they are few independent
    sources. What the tastes are is integrated over, and ``estimates["taste"]`` has their standard deviations. In
    simulations of 12 items, with 50 or 200 preferences of people and 4,000 of each of one or three programs whose
    tastes have standard deviations of 0 to .6, 95 % intervals of differences cover .91 to 1.00 of them; with five or
    eight programs, .92 to .98. Tastes are learned for up to 700 items.

    Standard errors and covariances come from the curvature with annotators marginalised, given the scores of other
    queries and the scale of all scores, and are a little inflated where judgments are few. The uncertainty of the scale
    is ``scale_error`` of the estimates, a share of the scores. In simulations 87 to 97 % of the 90 % intervals cover
    the truth on that scale. Without grades they are those of centred scores. Queries above 700 items have no
    covariance, and their standard errors are estimated from random probes of the inverse [Bekas07]_.

    Difficulties are looked for once, after the first rounds, by a score test of their variance at 5 %. Where it finds
    some, fits with and without them predict one grade in five from the others, in turn; unless grades are likelier
    with difficulties, the fit is the one without them: lapses look like difficulty. ``estimates["difficulty"]`` has
    :math:`z` of each item and ``estimates["difficulty_sd"]`` its standard deviation; what is not known of it is in the
    standard errors. In simulations of 200 items with 3 to 20 grades each, noise of a spread of .4 to 1 on the log
    scale, 90 % intervals of ranks cover .89 to .92; without difficulties .80 to .92.

    The grade of an item is the level that most annotators would give without noise, weighted by number of judgments and
    quality; with two levels, items are split into two groups by their scores.

    Quality is the model's probability of ordering two random items of a query right, as far as it lies well within the
    bounds ``lower`` and ``upper`` (90 %) of held-out agreement, as in every method: the model alone is too sure of
    annotators whose few judgments moved the scores. No quality is nearer to a bound than a tenth of the way between
    them, unless held-out agreement is. Where one side wins for nearly everybody, or winners and losers were given, no
    favour of a side is learned. Judgments without annotators count as by one annotator.

    Examples
    --------
    >>> from crowdrank import Preferences
    >>> from itertools import combinations
    >>> order = {"ann": "uvxwyz", "bob": "vuwxzy", "cy": "uwvyxz", "dee": "zyxwvu"}
    >>> rows = [(who, "q", *pair, "left") for who, items in order.items() for pair in combinations(items, 2)]
    >>> consensus = LatentScore().fit(Preferences.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["alpha"].round(1).tolist()
    (['u', 'v', 'w', 'x', 'y', 'z'], [1.1, 1.0, 0.9, -1.2])
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade", "preference", "ranking")
    precision: ClassVar[float] = 1e-8
    mixes: ClassVar[bool] = True
    uses_strength: ClassVar[bool] = True
    lapse: bool | None = None
    bins: int | None = None
    taste: bool | None = None
    difficulty: bool = True
    drift: str = "none"
    tol: float = 5e-3
    max_iter: int = 300

    def __post_init__(self) -> None:
        one_of(self.drift, DRIFTS, "drift")
        expect_above(self, 0, "tol")
        expect_at_least(self, 1, "max_iter")

    def fit(
        self,
        judgments: Any,
        *,
        start: Consensus | None = None,
        known: Any | None = None,
        trusted: Any | None = None,
        control: Sequence[str] | None = None,
    ) -> Consensus:
        """Return the scores with their standard errors, and the annotators.

        ``known`` is a table of query, item and score (or grade): items whose score is certain, which then set the
        scale. ``trusted`` has the ids of annotators known to be good. ``start`` is a former consensus of this method.
        ``control`` names covariates of preferences to control for: scores are then those of items that are equal in
        them, and every annotator has coefficients of their own.
        """
        expect(judgments, self)
        clamped = known_scores(judgments.items, known)
        reliable = self._trusted_mask(judgments, trusted)
        if not len(judgments):
            return Consensus.of(self, judgments, clamped.to_user_scale(clamped.known))
        if self.drift != "none":
            if control or self.taste:
                raise ParameterError(f"{option('drift', self.drift)} goes without control and taste; leave one out")
            constant = replace(self, drift="none").fit(judgments, start=start, known=known, trusted=trusted)
            return self._with_drift(judgments, constant, clamped, reliable)
        design = None
        if control:
            if not isinstance(judgments, Preferences):
                kinds = " and ".join(f"{kind}s" for kind in getattr(judgments, "kinds", (judgments.kind,)))
                raise JudgmentError(
                    f"only preferences have covariates to control for, not {kinds}; give preferences alone"
                )
            steps.check_names(control)
            design = covariate_design(judgments, control)
        values = None if design is None else design.values
        layout = lay_out(judgments, bins=self.bins, lapse=self.lapse, values=values)
        state = None if start is None else former_state(start, judgments, layout)
        fit = steps.fit_scores(layout, self._options, known=clamped, trusted=reliable, start=state)
        outcomes.warn_about(fit, layout, judgments.items, self._options)
        consensus = outcomes.latent_consensus(self, judgments, layout, fit, design)
        consensus = replace(
            consensus, reread=outcomes.rereading(self, judgments, layout, fit.state, fit.anchors.inputs)
        )
        if design is not None:
            # for ranks before control, which are to be by the same annotators and around the same known scores
            given = {"trusted": judgments.annotators.ids.filter(pl.Series(reliable)).to_list()}
            exact = judgments.items.frame().with_columns(score=consensus.scores).filter(pl.Series(clamped.clamped))
            given |= {"known": exact.to_dict(as_series=False)} if len(exact) else {}
            consensus = replace(
                consensus, estimates={**consensus.estimates, **{key: one for key, one in given.items() if one}}
            )
        heavy = self._with_tastes(judgments, reliable, known)
        return consensus if heavy is None else self._with_taste_scores(consensus, judgments, heavy, reliable, design)

    def _with_drift(self, judgments: Any, constant: Consensus, known: ItemInputs, trusted: Bools) -> Consensus:
        """The consensus with a discrimination that walks over windows of time, where held-out judgments ask for it."""
        scale = LevelScale.of(judgments)

        def fit_part(part: Any, walk: Walk | None, options: Options) -> tuple[Layout, ScoreFit]:
            layout = replace(lay_out(part, scale=scale, bins=self.bins, lapse=self.lapse), walk=walk)
            mask = np.repeat(trusted, 1 if walk is None else walk.n_windows)
            return layout, steps.fit_scores(layout, options, known=known, trusted=mask)

        def likelihood(judged: Any, out: Bools, walk: Walk | None) -> float:
            state = fit_part(judged.select(~out), walk, steps.trial_options(self._options, difficulty=False))[1].state
            return steps.log_likelihood(
                lay_out(judged.select(out), scale=scale, bins=self.bins, lapse=self.lapse), state
            )

        def fit(judged: Any, walk: Walk) -> tuple[Consensus, Floats]:
            layout, found = fit_part(judged, walk, self._options)
            state = found.state
            quality = outcomes.pair_quality(state, state.alpha, 1.0, state.kinds[0].lapse)
            return outcomes.latent_consensus(self, judged, layout, found), quality

        return fit_with_drift(self, judgments, constant, likelihood, fit)

    def over_blocks(
        self, judged: Any, *, start: Consensus | None = None, trusted: Any | None = None, **given: Any
    ) -> BlockFit:
        """Return the passes of a fit to judgments of one kind in parts."""

        for name in [name for name, value in given.items() if value is not None]:
            raise ParameterError(
                f"latent_score takes no {option(name)} over packed judgments; leave it out, or fit the queries that it "
                "is for as a file of their own"
            )
        if self.drift != "none":
            raise ParameterError("drift is learned from all judgments at once; leave it out for packed ones")
        if judged.by != "query":
            raise ParameterError("latent_score goes query by query; pack the judgments by query, or use crowd_bt")
        mask = self._trusted_mask(judged, trusted)
        if self.taste or (self.taste is None and mask.any() and judged.kind == "preference" and judged.n_queries == 1):
            raise ParameterError(
                "taste is learned from all preferences at once; leave it out with taste=False for packed ones"
            )
        if judged.kind == "grade" and self.bins is None:
            check_levels(judged.levels, judged.declared)
        rounds = _BlockRounds(self, judged, self._options, start, mask)
        return BlockFit(_ScoreBlock, rounds.solve, _merge)

    def _with_tastes(self, judgments: Any, trusted: Bools, known: Any | None) -> Bools | None:
        """Which annotators have tastes; ``None`` where there are none to learn."""
        wanted = bool(self.taste)
        if wanted and not trusted.any():
            raise ParameterError(f"taste is learned against trusted annotators; name them with {option('trusted')}")
        if self.taste is False or not trusted.any():
            return None
        against = None
        if not isinstance(judgments, Preferences) or known is not None:
            against = "taste is learned from preferences without known items"
        elif len(np.unique(judgments.items.query[judgments.judged_items])) > 1 or judgments.n_items > MAX_TASTE_ITEMS:
            against = (
                f"taste is learned for up to {MAX_TASTE_ITEMS} items of one query; take them with across_queries()"
            )
        if against is not None and wanted:
            raise ParameterError(f"{against}; or leave taste out")
        if not isinstance(judgments, Preferences) or (against is not None and judgments.n_items <= MAX_TASTE_ITEMS):
            return None
        heavy = with_tastes(judgments, trusted)
        if against is None:
            return heavy if heavy.any() and not heavy[judgments.annotator].all() else None
        if heavy.any():
            who = first_few(map(repr, judgments.annotators.ids.filter(pl.Series(heavy)).to_list()))
            warnings.warn(
                f"tastes are learned for up to {MAX_TASTE_ITEMS} items, not for {judgments.n_items:,}: every answer of "
                f"{who} counts as independent evidence, so intervals are too narrow",
                DataWarning,
                stacklevel=3,
            )
        return None

    def _with_taste_scores(
        self, consensus: Consensus, judgments: Preferences, heavy: Bools, trusted: Bools, design: CovariateDesign | None
    ) -> Consensus:
        """The consensus with scores in which annotators of many judgments have tastes."""
        people = judgments.select(~heavy[judgments.annotator])
        of_people = None if design is None else design.of_part(people)
        layout = lay_out(people, lapse=False, values=None if of_people is None else of_people.values)
        fit = steps.fit_scores(layout, self._options, trusted=trusted)
        scores, covariance, taste = fit_tastes(judgments, heavy, people, fit, design)
        who = judgments.annotators.ids.filter(pl.Series(heavy)).to_list()
        estimates = {**consensus.estimates, "taste": {**taste, "annotators": who}}
        consensus = replace(consensus, scores=scores, reread=None, estimates=estimates)
        return replace(consensus, std_error=np.sqrt(np.diag(covariance)), covariance=(covariance,))

    def score_gradients(self, judgments: Any, consensus: Consensus) -> ScoreGradients:
        """Return the gradients of the judgments, of one kind, in the scores at the consensus."""
        control = consensus.estimates.get("control")
        design = CovariateDesign.of_estimates(judgments, control) if control else None
        values = None if design is None else design.values
        layout = lay_out(judgments, bins=self.bins, lapse=self.lapse, values=values)
        return outcomes.latent_score_gradients(judgments, layout, consensus, self.bins, design)

    def scores(self, judgments: Any) -> Floats:
        """Return the scores alone, for repeated fits that need no standard errors."""
        expect(judgments, self)
        if not len(judgments):
            return np.zeros(judgments.n_items)
        if self.drift != "none":
            return self.fit(judgments).scores
        return steps.fit_scores(lay_out(judgments, bins=self.bins, lapse=self.lapse), self._options).state.scores

    def relative_coefficients(self, preferences: Preferences, control: Sequence[str]) -> RelativeCoefficients:
        """Return coefficients of annotators against each other, for covariates whose mean the scores may hide.

        Covariates that are confounded with scores have no coefficient of the crowd. How annotators differ shows
        where they judged the same pairs.
        """
        steps.check_names(control)
        design = covariate_design(preferences, control, refuse=False)
        layout = lay_out(preferences, bins=self.bins, lapse=self.lapse, values=design.values)
        state = first_state(layout, np.ones(layout.n_annotators), 0)
        kind = state.kinds[0]
        assert kind.control is not None
        kinds = (replace(kind, control=replace(kind.control, learns_shared=False)),)
        fit = steps.fit_scores(layout, self._options, start=replace(state, kinds=kinds))
        control_state = fit.state.kinds[0].control
        assert control_state is not None
        parameters = steps.control_parameters(design, control_state, np.zeros((len(control), len(control))))
        comparable = comparable_annotators(preferences, design.values)
        for place, name in enumerate(design.names):
            own, some = parameters[name], comparable[:, place]
            parameters[name] = own - (own[some].mean() if some.any() else 0.0)
        return RelativeCoefficients(parameters, design.unit, comparable)

    @property
    def _options(self) -> Options:
        """When to stop."""
        return Options(self.tol, self.max_iter, difficulty=None if self.difficulty else False)

    def _trusted_mask(self, judgments: Any, trusted: Any | None) -> Bools:
        """Which annotators are trusted, at least one entry."""
        mask = trusted_annotators(judgments, trusted)
        return mask if len(mask) else np.zeros(1, bool)


MIN_JUDGMENTS_PER_ITEM = 10.0
"""Judgments per item from which on an annotator who is not trusted has a taste."""

# threshold (refused): items with tastes
MAX_TASTE_ITEMS = 700
"""Items up to which tastes are learned."""

# threshold (sample): items from which tastes are integrated over a coarser grid
_MANY_ITEMS = 100
_GRID = {
    "alpha": np.linspace(0.0, 2.0, 9), "own": np.array([0.0, 0.15, 0.3, 0.5, 0.8, 1.2]),
    "common": np.array([0.0, 0.15, 0.3, 0.5, 0.8, 1.2]), "score": np.array([0.5, 0.67, 0.9, 1.2, 1.6]),
}  # fmt: skip
_COARSE_GRID = {
    "alpha": np.linspace(0.0, 2.0, 6), "own": np.array([0.0, 0.3, 0.6, 1.0]),
    "common": np.array([0.0, 0.4, 0.8]), "score": np.array([0.6, 1.0, 1.6]),
}  # fmt: skip
_RIDGE = 1e-2
_FREE_LEVEL = 100.0
"""Variance of the level of an annotator's scores, which says nothing."""

_MAX_RATIO = 2.0
_MAX_NEWTON_STEPS = 30
_MAX_TASTE_STEP = 2.0
_TASTE_TOLERANCE = 1e-6
_MIN_WEIGHT = 1e-5
_CELLS_AT_ONCE = 4_000_000


class _Seen(NamedTuple):
    """Scores that each annotator of many judgments sees, (n, m), and the inverses of their covariances at a grid."""

    scores: Floats
    covariance: Floats


class _OtherPreferences(NamedTuple):
    """Preferences of the others: slope and offset of the predictor, and the cuts below and above the level."""

    first: Counts
    second: Counts
    slope: Floats
    offset: Floats
    below: Floats
    above: Floats
    weight: Floats


class _TastePrior(NamedTuple):
    """What those with a taste say of the scores at points of the grid: a normal of this precision and pull."""

    precision: Floats
    pull: Floats
    constant: Floats


def with_tastes(judgments: Preferences, trusted: Bools) -> Bools:
    """Return which annotators have tastes: not trusted, and with ten or more judgments per item."""
    n = judgments.n_annotators
    pairs = np.concatenate([judgments.left, judgments.right]).astype(np.int64)
    both = np.unique(np.tile(judgments.annotator.astype(np.int64), 2) * judgments.n_items + pairs)
    n_items = np.bincount(both // max(judgments.n_items, 1), minlength=n)
    number = np.bincount(judgments.annotator, judgments.row_weight, n)
    return (number >= MIN_JUDGMENTS_PER_ITEM * np.maximum(n_items, 2)) & ~trusted


def fit_tastes(
    judgments: Preferences, heavy: Bools, people: Preferences, fit: ScoreFit, design: CovariateDesign | None
) -> tuple[Floats, Floats, dict[str, float]]:
    """Return the scores of trusted annotators' judgments and those with tastes together, and their covariance.

    Both are centred; the estimates are the posterior means of alpha and of the standard deviations.

    ``people`` are the judgments of the others, and ``fit`` is the fit to them, whose annotators are taken as they are.
    """
    seen = _seen_scores(judgments, heavy, design)
    preferences = _other_preferences(people, fit, None if design is None else design.of_part(people))
    grid = _GRID if judgments.n_items <= _MANY_ITEMS else _COARSE_GRID
    common = grid["common"] if len(seen.scores) > 1 else np.zeros(1)
    points = np.stack(np.meshgrid(grid["own"], common, grid["alpha"], grid["score"], indexing="ij"), -1).reshape(-1, 4)
    at_once = max(1, _CELLS_AT_ONCE // max(judgments.n_items**2, len(preferences.first)))
    fits, evidence = [], []
    for part in np.array_split(points, -(-len(points) // at_once)):
        best, value = _laplace(preferences, _taste_prior(seen, part))
        fits.append(best)
        # priors: alpha around 1, half-normal tastes, log-normal spread of scores
        own, shared, alpha, spread = part.T
        prior = -0.5 * ((alpha - 1.0) / 0.5) ** 2 - 0.5 * own**2 - 0.5 * (np.log(spread) / 0.5) ** 2
        evidence.append(value + (prior - 0.5 * shared**2 if len(seen.scores) > 1 else prior))
    scores, log_weight = np.concatenate(fits), np.concatenate(evidence)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    # mean and covariance over the grid
    mean, used = weight @ scores, np.flatnonzero(weight > _MIN_WEIGHT)
    covariance = np.zeros((len(mean), len(mean)))
    for place in used:
        curvature = _taste_slopes(preferences, scores[place : place + 1])[2][0]
        curvature = curvature + _taste_prior(seen, points[[place]]).precision[0]
        off = scores[place] - mean
        covariance += weight[place] * (np.linalg.inv(curvature) + off[:, None] * off)
    covariance /= weight[used].sum()
    covariance -= covariance.mean(axis=0, keepdims=True)
    covariance -= covariance.mean(axis=1, keepdims=True)
    own, shared, alpha, spread = (float(value) for value in weight @ points)
    estimates = {"alpha": alpha, "own_sd": own, "common_sd": shared, "score_sd": spread}
    return mean - mean.mean(), covariance, estimates


# Annotators with tastes


def _seen_scores(judgments: Preferences, heavy: Bools, design: CovariateDesign | None) -> _Seen:
    """Bradley-Terry scores of each annotator alone, all brought to about the same spread."""
    fits = [_own_scores(judgments, judgments.annotator == a, design) for a in np.flatnonzero(heavy)]
    spread = np.array([max(float(s @ s - np.trace(v)) / len(s), 0.05 * float(s @ s) / len(s)) for s, v in fits]) ** 0.5
    spread = np.maximum(spread, 1e-6)
    ratio = np.clip(spread / np.exp(np.log(spread).mean()), 1.0 / _MAX_RATIO, _MAX_RATIO)
    scores = np.stack([s for s, _ in fits]) / ratio[:, None]
    level = np.full(fits[0][1].shape, _FREE_LEVEL / len(fits[0][0]))
    return _Seen(scores, np.stack([v for _, v in fits]) / ratio[:, None, None] ** 2 + level)


def _own_scores(judgments: Preferences, rows: Bools, design: CovariateDesign | None) -> tuple[Floats, Floats]:
    """Scores of one annotator's preferences at equal covariates, and their covariance; ties are half a win of each."""
    from scipy.sparse import coo_array, hstack

    number, n = np.arange(int(rows.sum())), judgments.n_items
    weight, won = judgments.row_weight[rows], 0.5 * (1.0 + judgments.outcome[rows])
    values = judgments.shown[rows].astype(np.float64)[:, None]
    values = values if design is None else np.column_stack([values, design.values[rows]])
    sides = np.concatenate([judgments.left[rows], judgments.right[rows]])
    items = coo_array((np.repeat([1.0, -1.0], len(number)), (np.tile(number, 2), sides)), shape=(len(number), n))
    terms = hstack([items, coo_array(values)]).tocsr()
    point, ridge = np.zeros(terms.shape[1]), _RIDGE * np.eye(terms.shape[1])
    for _ in range(_MAX_NEWTON_STEPS):
        expected = 1.0 / (1.0 + np.exp(-np.clip(terms @ point, -50.0, 50.0)))
        gradient = terms.T @ (weight * (won - expected)) - _RIDGE * point
        bend = weight * expected * (1.0 - expected)
        curvature = (terms.T @ terms.multiply(bend[:, None])).toarray() + ridge
        step = np.linalg.solve(curvature, gradient)
        change = float(np.abs(step).max())
        point = point + step * min(1.0, _MAX_TASTE_STEP / max(change, 1e-300))
        if change < _TASTE_TOLERANCE:
            break
    covariance = np.asarray(np.linalg.inv(curvature)[:n, :n], np.float64)
    covariance = covariance - covariance.mean(axis=0, keepdims=True)
    scores = point[:n] - point[:n].mean()
    return scores, covariance - covariance.mean(axis=1, keepdims=True)


def _taste_prior(seen: _Seen, points: Floats) -> _TastePrior:
    """What those with tastes, and the prior of scores, say at points of own and common taste, alpha and spread.

    The scores they see are normal around ``alpha s``, their covariances are block-diagonal but for the common taste.
    """
    m = seen.scores.shape[1]
    precision, pull = np.empty((len(points), m, m)), np.empty((len(points), m))
    constant, former = np.empty(len(points)), (np.nan, np.nan)
    summed = np.zeros((m, m)), np.zeros(m), 0.0
    for place, (own, common, alpha, spread) in enumerate(points):
        if (own, common) != former:
            summed, former = _taste_sums(seen, float(own), float(common)), (own, common)
        inner, linear, rest = summed
        precision[place] = alpha**2 * inner + np.eye(m) / spread**2
        pull[place] = alpha * linear
        constant[place] = -0.5 * rest - m * np.log(spread)
    return _TastePrior(precision, pull, constant)


def _taste_sums(seen: _Seen, own: float, common: float) -> tuple[Floats, Floats, float]:
    """Precision and pull on what all see, and twice the negative log-density at 0, where tastes are this large."""
    m = seen.scores.shape[1]
    covariance = seen.covariance + own**2 * np.eye(m)
    inverse = np.linalg.inv(covariance)
    total, pulled = inverse.sum(axis=0), np.einsum("jab,jb->a", inverse, seen.scores)
    rest = float(np.einsum("ja,jab,jb->", seen.scores, inverse, seen.scores))
    rest += float(np.linalg.slogdet(covariance)[1].sum())
    if common == 0.0:
        return total, pulled, rest
    shared = np.linalg.inv(np.eye(m) / common**2 + total)
    rest += float(np.linalg.slogdet(np.eye(m) + common**2 * total)[1]) - float(pulled @ shared @ pulled)
    return total - total @ shared @ total, pulled - total @ shared @ pulled, rest


# The others


def _other_preferences(people: Preferences, fit: ScoreFit, design: CovariateDesign | None) -> _OtherPreferences:
    """Preferences of the other annotators, as these were estimated."""
    state = fit.state
    habits, who = state.kinds[0], people.annotator
    bounds = habits.level_bounds(who, preference_levels(people)[0])
    offset = people.shown * habits.bias[who]
    if design is not None and habits.control is not None:
        offset = offset + (design.values * habits.control.own[who]).sum(axis=1)
    return _OtherPreferences(
        people.left.astype(np.int64), people.right.astype(np.int64), state.alpha[who], offset,
        *bounds, np.array(people.row_weight, np.float64),
    )  # fmt: skip


def _taste_slopes(preferences: _OtherPreferences, scores: Floats) -> tuple[Floats, Floats, Floats]:
    """Log-likelihood, gradient and curvature in the scores at points, (n, m)."""
    from scipy.special import expit

    n, m = scores.shape
    eta = preferences.slope * (scores[:, preferences.first] - scores[:, preferences.second]) + preferences.offset
    upper, lower = expit(preferences.above - eta), expit(preferences.below - eta)
    value = np.log(np.maximum(upper - lower, 1e-12)) @ preferences.weight
    slope = preferences.weight * preferences.slope * (upper + lower - 1.0)
    bend = preferences.weight * preferences.slope**2 * (upper * (1.0 - upper) + lower * (1.0 - lower))
    gradient, curvature = np.zeros((n, m)), np.zeros((n, m * m))
    place = preferences.first * m + preferences.second
    for at in range(n):
        gradient[at] = np.bincount(preferences.first, slope[at], m) - np.bincount(preferences.second, slope[at], m)
        curvature[at] = np.bincount(place, bend[at], m * m)
    pair = curvature.reshape(n, m, m)
    pair = -(pair + pair.transpose(0, 2, 1))
    pair[:, np.arange(m), np.arange(m)] = -pair.sum(axis=2)
    return value, gradient, pair


def _laplace(preferences: _OtherPreferences, prior: _TastePrior) -> tuple[Floats, Floats]:
    """The scores where preferences and prior are most likely at each point, and the logarithm of the evidence."""
    scores = np.asarray(np.linalg.solve(prior.precision, prior.pull[:, :, None])[:, :, 0], np.float64)
    for _ in range(_MAX_NEWTON_STEPS):
        _, gradient, curvature = _taste_slopes(preferences, scores)
        gradient += prior.pull - np.einsum("gab,gb->ga", prior.precision, scores)
        step = np.asarray(np.linalg.solve(curvature + prior.precision, gradient[:, :, None])[:, :, 0], np.float64)
        longest = np.abs(step).max(axis=1, keepdims=True)
        scores = scores + step * np.minimum(1.0, _MAX_TASTE_STEP / np.maximum(longest, 1e-300))
        if float(longest.max()) < 1e-4:
            break
    value, _, curvature = _taste_slopes(preferences, scores)
    value = value + prior.constant + (prior.pull * scores).sum(axis=1)
    value -= 0.5 * np.einsum("ga,gab,gb->g", scores, prior.precision, scores)
    value -= 0.5 * np.linalg.slogdet(curvature + prior.precision)[1]
    return scores, np.asarray(value, np.float64)


# Blocks: annotators are shared, and blocks keep the scores of their items. A fit to a sample of queries comes first: it
# says whether items differ in difficulty, and rounds over all blocks begin with its annotators and crowd. A step
# takes the scores of a block one round further and returns the sums that annotators and crowd are learned from. How far
# scores follow a round depends on all of them, so that they do so at the beginning of the next step. That is why
# fit_scores has rounds of its own for judgments in memory: here a last round finds that the one before was enough.


_SAMPLED_TOL_FACTOR, _MIN_SAMPLED_ROUNDS = 8.0, 5
"""Rounds over more judgments than the sample holds end at so many times ``tol``, and may stand still from so many on.

Standard errors of scores are many times that, and what is shared was found on the sample. On 300,000 simulated grades
scores correlate with the truth by .8709 after 10 rounds, by .8712 after 21 and after 50.
"""


class _Common(NamedTuple):
    """What holds for the responses of all blocks: their levels, and once these are counted, their kind."""

    method: LatentScore
    scale: LevelScale
    kind: Kind | None = None
    active: Bools | None = None
    has_query_levels: bool = False


@dataclass(frozen=True, eq=False)
class _ScoreBlock:
    """The judgments of a block, and once the levels of all blocks are known, their responses."""

    judgments: Any
    laid_out: list[Layout] = field(default_factory=list)

    def layout(self, common: _Common) -> Layout:
        """Return the responses; a block keeps them from step to step."""
        if not self.laid_out:
            method = common.method
            self.laid_out.append(lay_out(self.judgments, scale=common.scale, bins=method.bins, lapse=method.lapse))
        (own,) = self.laid_out
        if common.kind is not None and common.active is not None and own.active is not common.active:
            kind = replace(common.kind, cells=own.kinds[0].cells, pair=own.kinds[0].pair)
            own = replace(own, kinds=(kind,), active=common.active, has_query_levels=common.has_query_levels)
            self.laid_out[0] = own
        return own


class _ItemState(NamedTuple):
    """What belongs to the items of a block in the state of a fit.

    ``curvature`` is empty before the first round, ``difficulty`` and its variance are where items do not differ in it.
    """

    scores: Floats
    variance: Floats
    covariance: Floats
    curvature: Floats
    difficulty: Floats
    difficulty_variance: Floats

    @classmethod
    def of(cls, state: State) -> _ItemState:
        """Return that of a state."""
        curvature = state.cell_curvature[0] if state.cell_curvature else np.empty(0)
        own = state.difficulty, state.difficulty_variance
        return cls(state.scores, state.variance, state.covariance, curvature, *own)

    def within(self, state: State) -> State:
        """Return the state of a block, given what is shared."""
        own = self._asdict()
        curvature = own.pop("curvature")
        return replace(state, **own, cell_curvature=(curvature,) if len(curvature) else ())


class _Follow(NamedTuple):
    """How scores follow a round: their standard deviation before and after it, and the factors on them and on steps."""

    before: float
    after: float
    scale: float
    factor: float

    @property
    def of_step(self) -> Floats:
        """The step of the scores in standard deviations, from the step before, their move and where they were, (3,)."""
        return np.array([0.0, self.scale / self.after, self.scale / self.after - 1.0 / self.before])

    def after_round(self, layout: Layout, held: _ItemState, made: _ItemState) -> tuple[_ItemState, Floats]:
        """Return the scores to go on from, and the step of judged items."""
        step = self.scale * made.scores / self.after - held.scores / self.before
        here = made._replace(
            scores=self.after * (held.scores / self.before + np.where(layout.judged, self.factor, 1.0) * step),
            variance=made.variance * self.scale**2,
            covariance=made.covariance * self.scale**2,
            curvature=made.curvature / self.scale**2,
        )
        return here, np.where(layout.judged, step, 0.0)


class _RoundSums(NamedTuple):
    """The statistics of a round: the largest step of a score in the round before, and sums.

    ``products`` (3, 3) are those of the step before, the move, and the scores of judged items. ``items`` are what the
    prior variances are learned from.
    """

    largest: float
    products: Floats
    n_judged: float
    items: ItemSums
    annotators: AnnotatorSums

    @classmethod
    def of(cls, total: Statistics) -> _RoundSums:
        """Return the statistics of a step by their names."""
        from .kernels.ordinal import AnnotatorSums

        largest, products, n_judged, items, levels, difficulties, *rest = total
        # there are no features
        sums = ItemSums(VarianceSums(*items), VarianceSums(*levels), difficulties=VarianceSums(*difficulties))
        return cls(largest, products, n_judged, sums, AnnotatorSums(*rest))


def _merge(first: Statistics, second: Statistics) -> Statistics:
    """The larger of the first entries, and the sums of the others."""
    return max(first[0], second[0]), *add_statistics(first[1:], second[1:])


@dataclass(frozen=True, eq=False)
class _BlockRounds:
    """The fit over blocks of judgments of one kind."""

    method: LatentScore
    judged: Any
    options: Options
    start: Consensus | None
    trusted: Bools

    def solve(self, blocks: Blocks) -> PartedFit:
        """Return the scores of all items and what was learned of the annotators."""
        from .kernels.ordinal import AnnotatorSums

        lows, highs, ties, strengths, weights = zip(*blocks.each(_scale_of), strict=True)
        sizes, place = np.unique(np.concatenate(strengths), return_inverse=True)
        weight = np.bincount(place, np.concatenate(weights), len(sizes)).astype(np.float64)
        scale = LevelScale(min(lows), max(highs), *steps_of_strengths(sizes, weight), bool(max(ties)))
        common, layout, given = self._survey(blocks, _Common(self.method, scale))
        anchors = find_anchors(layout, ItemInputs.nothing(0), self.trusted)
        state, begin, differ = self._begin(blocks, common, layout, anchors, given)
        options = self.options._replace(difficulty=differ)
        if share_of_rows(self.judged.rows) < 1.0:
            options = options._replace(tol=_SAMPLED_TOL_FACTOR * options.tol, min_still_rounds=_MIN_SAMPLED_ROUNDS)
        state, items, trace = replace(self, options=options)._run_rounds(blocks, common, layout, anchors, state, begin)
        variance = steps.widened_variance(layout, state, items)
        widened, state = variance != state.variance_of_items, replace(state, variance_of_items=variance)
        _, shares, number, n_separate, of_lapses, *rest = blocks.total(partial(_finish, common, state, widened))
        fit = steps.finished_fit(layout, state, anchors, trace)
        marginal = Marginal([AnnotatorSums(*rest)], outcomes.variance_inflation(layout, shares, number), of_lapses)
        by_block = list(blocks.read(partial(_read_scores, common, fit, marginal)))
        if not trace.converged:
            warn_unconverged("latent_score", self.options.max_iter, trace.change, self.options.tol)
        names = next((words for *_, words in by_block if words), "")
        outcomes.warn_undetermined(fit, layout, (int(n_separate), names), depth=2)
        columns, kind = [PartColumns(*values[:3]) for values in by_block], layout.kinds[0]
        if kind.name == "grade" and kind.n_levels == 2:
            # all scores together are split into two groups
            chosen = np.concatenate([part.grade for part in columns])
            judged, scores = chosen >= 0, np.concatenate([part.scores for part in columns])
            chosen[judged] = outcomes.two_groups(scores[judged], chosen[judged])
            own = np.split(chosen, np.cumsum([len(part.scores) for part in columns])[:-1])
            columns = [part._replace(grade=grade) for part, grade in zip(columns, own, strict=True)]
        of_scale = max(of_block for *_, of_block, _ in by_block)
        return PartedFit(
            columns,
            trace,
            self._quality(blocks, layout, fit, given),
            kind.levels if kind.name == "grade" else None,
            {**outcomes.estimates(layout, fit.state), "scale_error": of_scale},
        )

    def _survey(self, blocks: Blocks, common: _Common) -> tuple[_Common, Layout, Floats]:
        """What is common to all blocks, the layout of annotators without items, and the weight of their judgments."""
        from .kernels.item_systems import Graph

        _, weight, by_level, n_sided, n_queries, given = blocks.total(partial(_count, common))
        nothing = self.judged.part(0).select(np.empty(0, np.int64))
        empty = lay_out(nothing, scale=common.scale, bins=self.method.bins, lapse=self.method.lapse)
        shares = by_level / max(float(by_level.sum()), 1e-300)
        kind = replace(empty.kinds[0], weight=weight, shares=shares, has_sides=bool(n_sided))
        has_levels = bool(n_queries > 1 and kind.name == "grade" and kind.n_levels > 1)
        common = common._replace(kind=kind, active=weight > 0, has_query_levels=has_levels)
        none: Any = np.empty(0, np.int32)
        graph = Graph(np.zeros(1, np.int64), none, none, np.zeros(1, np.int64))
        layout = Layout((kind,), graph, none, np.empty(0, bool), weight > 0, empty.named, has_levels)
        return common, layout, given

    def _begin(
        self, blocks: Blocks, common: _Common, layout: Layout, anchors: Anchors, given: Floats
    ) -> tuple[State, tuple[Items, Floats] | None, bool]:
        """Annotators and crowd to begin with, items with scores to begin with, and whether items differ in difficulty.

        A fit to a sample of the queries tells. Where the sample holds all judgments, only what it says of difficulties
        is taken, so that rounds are those of a fit in memory.
        """
        share = share_of_rows(self.judged.rows)
        state, begin, former = first_state(layout, anchors.prior.mean.copy(), 0), None, None
        if self.start is not None:
            state = former_habits(self.start, self.judged.annotators, layout)
            begin = (self.start.items, former_scores(self.start))
        if share >= 1.0 and not steps.may_have_difficulties(layout, state, self.options):
            return state, begin, False
        parts = [part for (part,) in blocks.read(partial(read_sample, attrgetter("judgments"), given, share))]
        sample: Any = stack_judgments(align_judgments([part for part in parts if len(part)] or parts[:1]))
        of_sample = lay_out(sample, scale=common.scale, bins=self.method.bins, lapse=self.method.lapse)
        if self.start is not None:
            former = former_state(self.start, sample, of_sample)
        # rounds over all judgments go on from here, so that a sample need not be followed to the end
        options = self.options if share >= 1.0 else steps.coarse_options(self.options)
        found = steps.fit_scores(of_sample, options, trusted=self.trusted, start=former).state
        differ = found.variance_of_difficulty > 0.0
        if share >= 1.0:
            return state, begin, differ
        state = replace(
            state, alpha=found.alpha, alpha_variance=found.alpha_variance, shares=found.shares,
            kinds=tuple(replace(kind, curvature=None) for kind in found.kinds),
            variance_of_items=found.variance_of_items, variance_of_alpha=found.variance_of_alpha,
            variance_of_levels=found.variance_of_levels if layout.has_query_levels else 0.0,
            variance_of_difficulty=found.variance_of_difficulty,
        )  # fmt: skip
        return state, begin or (sample.items, found.scores), differ

    def _run_rounds(
        self, blocks: Blocks, common: _Common, layout: Layout, anchors: Anchors, state: State,
        begin: tuple[Items, Floats] | None,
    ) -> tuple[State, VarianceSums, Trace]:  # fmt: skip
        """The shared state at the end, what the variance of scores follows from there, and how it went."""
        path, values = Path(layout.judged), list[float]()
        follow: _Follow | None = None
        change, of_crowd, squares, converged = np.inf, np.inf, np.inf, False
        may_differ = steps.may_have_difficulties(layout, state, self.options)
        weight, sampled = float(layout.kinds[0].weight.sum()), share_of_rows(self.judged.rows) < 1.0
        while True:
            sums = _RoundSums.of(blocks.total(partial(_run_round, common, state, follow, begin)))
            if follow is not None:
                of_scores = path.change_of_step(steps.typical_change(sums.largest, squares, sums.n_judged))
                change = max(of_crowd, of_scores)
                tol, least = steps.tolerance(layout, self.options.tol), self.options.min_still_rounds
                converged = steps.has_converged(change, values, tol, weight, least)
            if may_differ and steps.has_settled(change, values):
                state, path, may_differ, converged = (
                    steps.with_difficulties(layout, state),
                    Path(layout.judged),
                    False,
                    False,
                )
                sums = _RoundSums.of(blocks.total(partial(_run_round_again, common, state)))
            if converged or len(values) >= self.options.max_iter:
                return state, sums.items.items, Trace(len(values), converged, change, tuple(values))
            settled = sampled or steps.has_settled(change, values)
            following, factor = steps.annotator_round(
                layout, state, sums.items, [sums.annotators], anchors, learn_mean_lapse=settled
            )
            values.append(sums.annotators.log_likelihood)
            follow = _Follow(state.variance_of_items**0.5, following.variance_of_items**0.5, factor, 1.0)
            step, products = follow.of_step, sums.products
            turn, squares = np.array([1.0, 0.0, 0.0]) - step, max(float(step @ products @ step), 0.0)
            elsewhere = (sums.n_judged, float(products[0] @ turn), max(float(turn @ products @ turn), 0.0))
            state, of_crowd = path.follow(state, following, elsewhere)
            follow, begin = follow._replace(factor=path.factor), None

    def _quality(self, blocks: Blocks, layout: Layout, fit: ScoreFit, given: Floats) -> LearnedQuality | None:
        """Quality of the annotators, held out on a sample of the queries where judgments are many."""
        if not layout.named:
            return None
        read = list(blocks.read(partial(_sample, given, share_of_rows(self.judged.rows))))
        sampled = [(part, own) for part, *own in read if len(part)] or [(part, own) for part, *own in read[:1]]
        sample: Any = stack_judgments(align_judgments([part for part, _ in sampled]))
        values = np.zeros((3, sample.n_items))
        for part, own in sampled:
            values[:, sample.items.codes(part.items.query_ids(), part.items.ids)] = own
        state = replace(fit.state, scores=values[0])
        if state.variance_of_difficulty > 0.0:
            state = replace(state, difficulty=values[1], difficulty_variance=values[2])
        fit = fit._replace(state=state, anchors=replace(fit.anchors, inputs=ItemInputs.nothing(sample.n_items)))
        quality = outcomes.annotator_quality(self.method, sample, layout, fit)
        return quality and replace(quality, n_judgments=given)


def _scale_of(block: _ScoreBlock, state: Any) -> tuple[Statistics, Any]:
    """Range of grades, whether there are ties, and the strengths of preferences with their weights."""
    judgments, scale = block.judgments, LevelScale.of(block.judgments)
    strengths = strength_weights(judgments) if judgments.kind == "preference" else (np.empty(0), np.empty(0))
    return (scale.low, scale.high, float(scale.has_ties), *strengths), None


def _count(common: _Common, block: _ScoreBlock, state: Any) -> tuple[Statistics, Any]:
    """Weight of responses by annotator and by level, those that name sides, judged queries, and weight of judgments."""
    judgments, layout = block.judgments, block.layout(common)
    (kind,) = layout.kinds
    given = np.bincount(judgments.row_annotator, judgments.weight, layout.n_annotators).astype(np.float64)
    counts = float(kind.has_sides), float(len(layout.judged_queries)), given
    return (0.0, kind.weight, kind.shares * kind.weight.sum(), *counts), None


def _run_round(
    common: _Common, shared: State, follow: _Follow | None, begin: Any, block: _ScoreBlock, kept: Any
) -> tuple[Statistics, Any]:
    """A round of the scores of a block, after these have followed the round before."""
    layout, items = block.layout(common), block.judgments.items
    if follow is not None:
        held, step = follow.after_round(layout, _ItemState(*kept[:6]), _ItemState(*kept[6:]))
        return _round_from(layout, held.within(shared), step)
    scores, none, some_new = np.zeros(len(items)), np.empty(0), False
    if begin is not None and len(items):
        # 0 for new items
        code = begin[0].codes_of(items, "start", "judgments")
        scores, some_new = np.where(code >= 0, np.append(begin[1], 0.0)[code], 0.0), bool((code < 0).any())
    unknown = shared.variance_of_difficulty
    difficulty = (0.0 * scores, 0.0 * scores + unknown) if unknown > 0.0 else (none, none)
    state = _ItemState(scores, 0.0 * scores, np.zeros(len(layout.graph.second)), none, *difficulty).within(shared)
    if some_new:
        # scores first find their place by the annotators that are known, or these would follow scores of 0
        state = steps.last_scores(layout, state, ItemInputs.nothing(len(items)))
    return _round_from(layout, state, 0.0 * scores)


def _run_round_again(common: _Common, shared: State, block: _ScoreBlock, kept: Any) -> tuple[Statistics, Any]:
    """The last round once more, now with difficulties of items."""
    layout = block.layout(common)
    state = steps.with_difficulties(layout, _ItemState(*kept[:6]).within(shared))
    return _round_from(layout, state, np.zeros(layout.n_items))


def _round_from(layout: Layout, state: State, step: Floats) -> tuple[Statistics, Any]:
    """A round of the scores of a block from a state; ``step`` is that of the round before."""
    inputs = ItemInputs.nothing(layout.n_items)
    following, items, sums = steps.score_round(layout, state, inputs)
    rows = np.stack([step, following.scores - state.scores, state.scores])[:, layout.judged]
    variances = np.array(items.items), np.array(items.levels), np.array(items.difficulties)
    largest = float(np.abs(step).max(initial=0.0))
    statistics = (largest, rows @ rows.T, float(layout.judged.sum()), *variances, *sums[0])
    return statistics, (*_ItemState.of(state), *_ItemState.of(following))


def _finish(common: _Common, shared: State, widened: bool, block: _ScoreBlock, kept: Any) -> tuple[Statistics, Any]:
    """The last scores of a block as its state; sums for standard errors, and the number of groups never compared."""
    layout = block.layout(common)
    state = _ItemState(*kept[:6]).within(shared)
    if widened:
        state = steps.last_scores(layout, state, ItemInputs.nothing(layout.n_items))
    state = replace(state, scores=steps.round_scores(state.scores, state.variance_of_items**0.5))
    separate = outcomes.separate_groups(layout)
    n_separate = 0.0 if separate is None else float(separate.sum())
    of_lapses, sums = outcomes.lapse_curvature(layout, state), steps.annotator_sums(layout, state)[0]
    statistics = (0.0, *outcomes.unexplained_shares(layout, state), n_separate, of_lapses, *sums)
    return statistics, tuple(_ItemState.of(state))


def _read_scores(
    common: _Common, fit: ScoreFit, marginal: Marginal, block: _ScoreBlock, kept: Any
) -> tuple[Statistics, Any]:
    """Scores, errors and levels of the items of a block, the error of their scale, and who was not compared."""
    layout, items = block.layout(common), block.judgments.items
    state = _ItemState(*kept).within(fit.state)
    inputs = ItemInputs.nothing(len(items))
    own = fit._replace(state=state, anchors=replace(fit.anchors, inputs=inputs))
    (kind,), (habits,) = layout.kinds, state.kinds
    grade = outcomes.weighted_mode(layout, state, kind, habits) if kind.name == "grade" else None
    if not len(items):
        return (state.scores, np.empty(0), grade, 0.0, ""), None
    errors, separate = outcomes.score_errors(layout, own, marginal), outcomes.separate_groups(layout)
    names = "" if separate is None or not separate.any() else first_ids(items, separate)
    scores = settle_ties(common.method, block.judgments, state.scores)
    return (scores, errors.std_error, grade, errors.of_scale, names), None


def _sample(given: Floats, share: float, block: _ScoreBlock, kept: Any) -> tuple[Statistics, Any]:
    """The judgments of some queries of a block; scores, difficulties and the variances of these of their items."""
    judgments = block.judgments
    sample = sample_queries(judgments, given, share)
    code = judgments.items.codes(sample.items.query_ids(), sample.items.ids)
    held, none = _ItemState(*kept), np.zeros(len(judgments.items))
    own = (held.scores, *(values if len(values) else none for values in (held.difficulty, held.difficulty_variance)))
    return (sample, *(values[code] for values in own)), None
