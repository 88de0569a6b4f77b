"""Latent-score model: one score per item from grades, preferences and rankings together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from ...covariate_design import CovariateDesign, comparable_annotators, covariate_design
from ...data.consensus import Consensus
from ...data.grades import check_levels
from ...data.judgments import Preferences, expect
from ...errors import DataWarning, JudgmentError, ParameterError
from ...protocols import BlockFit, Bools, Floats
from ...quality import trusted_annotators
from ...standard_errors import ScoreGradients
from ...wording import expect_above, expect_at_least, first_few, option
from .control import RelativeCoefficients, check_names, control_parameters
from .layout import lay_out
from .outcomes import latent_consensus, rereading, warn_about
from .rounds import Options, fit_scores
from .standard_errors import latent_score_gradients
from .state import first_state, former_state, known_scores
from .taste import MAX_ITEMS, fit_tastes, with_tastes


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
    averaged over the uncertainty of the other, so that annotators with few judgments are shrunk to the crowd.
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
    tol: float = 5e-3
    max_iter: int = 300

    def __post_init__(self) -> None:
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
            return Consensus.of(self, judgments, clamped.to_user_scale(clamped.scores))
        design = self._design(judgments, control) if control else None
        values = None if design is None else design.values
        layout = lay_out(judgments, bins=self.bins, lapse=self.lapse, values=values)
        state = None if start is None else former_state(start, judgments, layout)
        fit = fit_scores(layout, self._options, known=clamped, trusted=reliable, start=state)
        warn_about(fit, layout, judgments.items, self._options)
        consensus = latent_consensus(self, judgments, layout, fit, clamped, design)
        consensus = replace(consensus, reread=rereading(self, judgments, layout, fit.state, fit.anchors.inputs))
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

    def over_blocks(
        self, judged: Any, *, start: Consensus | None = None, trusted: Any | None = None, **given: Any
    ) -> BlockFit:
        """Return the passes of a fit to judgments of one kind in parts."""
        from .latent_score_passes import LatentScorePasses

        for name in [name for name, value in given.items() if value is not None]:
            raise ParameterError(
                f"latent_score takes no {option(name)} over packed judgments; leave it out, or fit the queries that it "
                "is for as a file of their own"
            )
        if judged.by != "query":
            raise ParameterError("latent_score goes query by query; pack the judgments by query, or use crowd_bt")
        mask = self._trusted_mask(judged, trusted)
        if self.taste or (self.taste is None and mask.any() and judged.kind == "preference" and judged.n_queries == 1):
            raise ParameterError(
                "taste is learned from all preferences at once; leave it out with taste=False for packed ones"
            )
        if judged.kind == "grade" and self.bins is None:
            check_levels(judged.levels, judged.declared)
        passes = LatentScorePasses(self, judged, self._options, start, mask)
        return BlockFit(passes.lay_out, passes.solve, passes.merge)

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
        elif len(np.unique(judgments.items.query[judgments.judged_items])) > 1 or judgments.n_items > MAX_ITEMS:
            against = f"taste is learned for up to {MAX_ITEMS} items of one query; take them with across_queries()"
        if against is not None:
            if wanted:
                raise ParameterError(f"{against}; or leave taste out")
            if judgments.n_items > MAX_ITEMS and isinstance(judgments, Preferences):
                self._warn_of_heavy_annotators(judgments, trusted)
            return None
        heavy = with_tastes(judgments, trusted)
        return heavy if heavy.any() and not heavy[judgments.annotator].all() else None

    def _warn_of_heavy_annotators(self, judgments: Preferences, trusted: Bools) -> None:
        """Warn that those who judge much count as much as they judge, where their tastes are not learned."""
        heavy = with_tastes(judgments, trusted)
        if heavy.any():
            who = first_few(map(repr, judgments.annotators.ids.filter(pl.Series(heavy)).to_list()))
            warnings.warn(
                f"tastes are learned for up to {MAX_ITEMS} items, not for {judgments.n_items:,}: every answer of {who} "
                "counts as independent evidence, so intervals are too narrow", DataWarning, stacklevel=4,
            )  # fmt: skip

    def _with_taste_scores(
        self, consensus: Consensus, judgments: Preferences, heavy: Bools, trusted: Bools, design: CovariateDesign | None
    ) -> Consensus:
        """The consensus with scores in which annotators of many judgments have tastes."""
        people = judgments.select(~heavy[judgments.annotator])
        of_people = None if design is None else design.of_part(people)
        layout = lay_out(people, lapse=False, values=None if of_people is None else of_people.values)
        fit = fit_scores(layout, self._options, trusted=trusted)
        taste = fit_tastes(judgments, heavy, people, fit, design)
        who = judgments.annotators.ids.filter(pl.Series(heavy)).to_list()
        return replace(
            consensus, scores=taste.scores, std_error=np.sqrt(np.diag(taste.covariance)),
            covariance=(taste.covariance,), reread=None,
            estimates={**consensus.estimates, "taste": {**taste.estimates, "annotators": who}},
        )  # fmt: skip

    def _design(self, judgments: Any, control: Sequence[str]) -> CovariateDesign:
        """The covariates to control for."""
        if not isinstance(judgments, Preferences):
            kinds = " and ".join(f"{kind}s" for kind in getattr(judgments, "kinds", (judgments.kind,)))
            raise JudgmentError(f"only preferences have covariates to control for, not {kinds}; give preferences alone")
        check_names(control)
        return covariate_design(judgments, control)

    def score_gradients(self, judgments: Any, consensus: Consensus) -> ScoreGradients:
        """Return the gradients of the judgments, of one kind, in the scores at the consensus."""
        control = consensus.estimates.get("control")
        design = CovariateDesign.of_estimates(judgments, control) if control else None
        values = None if design is None else design.values
        layout = lay_out(judgments, bins=self.bins, lapse=self.lapse, values=values)
        return latent_score_gradients(judgments, layout, consensus, self.bins, design)

    def scores(self, judgments: Any) -> Floats:
        """Return the scores alone, for repeated fits that need no standard errors."""
        expect(judgments, self)
        if not len(judgments):
            return np.zeros(judgments.n_items)
        return fit_scores(lay_out(judgments, bins=self.bins, lapse=self.lapse), self._options).state.scores

    def relative_coefficients(self, preferences: Preferences, control: Sequence[str]) -> RelativeCoefficients:
        """Return coefficients of annotators against each other, for covariates whose mean the scores may hide.

        Covariates that are confounded with scores have no coefficient of the crowd. How annotators differ shows
        where they judged the same pairs.
        """
        check_names(control)
        design = covariate_design(preferences, control, refuse=False)
        layout = lay_out(preferences, bins=self.bins, lapse=self.lapse, values=design.values)
        state = first_state(layout, np.ones(layout.n_annotators), 0)
        kind = state.kinds[0]
        assert kind.control is not None
        kinds = (replace(kind, control=replace(kind.control, learns_shared=False)),)
        fit = fit_scores(layout, self._options, start=replace(state, kinds=kinds))
        control_state = fit.state.kinds[0].control
        assert control_state is not None
        parameters = control_parameters(design, control_state, np.zeros((len(control), len(control))))
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
