"""Bradley-Terry scores from preferences, with three rules for ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Consensus, Trace
from ...data.index import Items
from ...data.judgments import Preferences, expect
from ...fitting import newton
from ...pair_counts import PairCounts, count_preferences, warn_unbounded
from ...protocols import Bools, Counts, Floats
from ...quality import LearnedQuality, held_out
from ...standard_errors import ScoreGradients, score_standard_errors
from ...wording import expect_above, one_of

if TYPE_CHECKING:
    from ...kernels.laplacian import Product
    from ...resampling import Draws
    from .controlled import Grading
    from .kernels.pair_likelihood import TieModel
    from .resampled_fits import PairRefits

_TIES = ("split", "ignore", "davidson")


@dataclass(frozen=True, kw_only=True)
class BradleyTerry:
    r"""Bradley-Terry: maximum-likelihood scores whose differences are the log odds of winning.

    Item :math:`i` wins against item :math:`j` of the same query with probability

    .. math:: P(i \succ j) = \frac{e^{s_i}}{e^{s_i} + e^{s_j}},

    where :math:`s` are the scores [BradleyTerry52]_. They maximise the log-likelihood of the preferences less
    :math:`\frac{\lambda}{2} \sum_i s_i^2`, :math:`\lambda` being ``ridge``; they sum to zero in every query. With
    ``ties="davidson"`` a tie has the strength :math:`\nu e^{(s_i + s_j)/2}` beside the two items' own, with one
    :math:`\nu` for the whole crowd, estimated along with the scores [Davidson70]_.

    Preferences with strengths of several sizes are ordinal answers: :math:`i` wins by step :math:`y` or more with
    probability

    .. math:: P(Y \ge y) = \frac{1}{1 + e^{c_y - (s_i - s_j)}},

    a cumulative model [Agresti92]_, where the cuts :math:`c_1 < c_2 < \dots` are shared by the whole crowd, hold for
    both sides, and are estimated along with the scores. Without ties :math:`c_1` is 0, and who wins follows the formula
    above; ties, if there are any, lie between :math:`-c_1` and :math:`c_1`.

    When to use
    -----------
    Use it for leaderboards from preferences when annotators are about equally good, or not named: it is fast, has
    standard errors, and corrects for the strength of opponents. Prefer ``crowd_bt`` or ``latent_score`` where some
    annotators guess or are reversed.

    Parameters
    ----------
    ties
        ``"split"``: half a win for each side; ``"ignore"``: as if not asked; ``"davidson"``: a third outcome that says
        the two are close. With strengths of several sizes they are the step in the middle unless ignored.
    ridge
        Pull of the scores towards each other, as precision of a normal prior. It keeps the scores finite of items
        that won or lost every preference, and of groups that were never compared with each other; raise it where
        preferences are few.
    tol
        Largest change of a score in the last step; raise it to stop earlier.
    max_iter
        Largest number of Newton steps; raise it where a warning says that the fit did not converge.

    Notes
    -----
    The default ridge of 0.1 is a prior with standard deviation 3.2, odds of 24 to 1; it weighs as much as 0.4
    preferences between equals, so it hardly matters once an item has some dozens. Use ``ridge=1e-6`` for maximum
    likelihood.

    Preferences are counted by pair once, and Newton steps are taken on the counts with a step-halving line search. The
    steps solve their linear system by conjugate gradients, so memory grows with the number of distinct pairs.

    Standard errors and covariances are those of the scores centred in their query, from the inverse of the
    curvature, prior included; for Davidson's model they include the uncertainty of :math:`\nu`. Both are exact for
    queries of up to 700 items. Larger ones have no covariance, and their standard errors are estimated from seeded
    random probes of the inverse [Bekas07]_: as many as make them exact to half a per cent, but at most 64, which leaves
    some per cent where items have only a handful of opponents.

    A bootstrap fits many resamples at once, each from the scores of all preferences and to a hundredth of a standard
    error; with strengths, one after the other.

    Of ordinal models the cumulative one keeps differences of scores the log odds of winning, so that they compare with
    those of other preferences; a model of adjacent categories measures them in steps, and counts one answer against a
    score as often as it has steps. The log-likelihood is concave in scores and cuts together [Pratt81]_. More than
    seven strengths are cut into seven steps of about equal weight. The ridge is that of the cuts too, standard errors
    include their uncertainty, and ``estimates["cuts"]`` has them from right to left. An item that won everything, but
    not always by the largest step, has a finite score without the ridge too, as long as other preferences hold the
    cuts.

    An unjudged item has score 0, its query's mean, and the standard error of the prior. Annotators are not needed.

    Examples
    --------
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "x", "y", "x"), ("cy", "q", "y", "x", "y")]
    >>> consensus = BradleyTerry().fit(Preferences.from_rows(rows))
    >>> consensus.order("q"), consensus.scores.round(3).tolist()
    (['x', 'y'], [0.323, -0.323])
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    uses_strength: ClassVar[bool] = True
    one_pass: ClassVar[tuple[str, ...]] = ("pairs",)
    precision: ClassVar[float] = 1e-10
    ties: str = "split"
    ridge: float = 0.1
    tol: float = 1e-6
    max_iter: int = 100

    def __post_init__(self) -> None:
        one_of(self.ties, _TIES, "ties")
        expect_above(self, 0, "ridge", hint="use a small one such as 1e-6 for none")

    def fit(self, preferences: Preferences, *, control: Sequence[str] | None = None) -> Consensus:
        """Return scores with standard errors; warns of items and groups that only the ridge keeps finite.

        ``control`` names covariates of the preferences to control for: scores are then those of items that are equal
        in them.
        """
        expect(preferences, self)
        if control or self._grading(preferences):
            return self._fit_controlled(preferences, control or ())
        pair_counts = count_preferences(preferences, self.ties)
        warn_unbounded(preferences.items, pair_counts)
        point, best, trace = self._maximise(pair_counts)
        std_error, covariance = _standard_errors(best, self.ridge, preferences.items.offsets)
        n = preferences.n_items
        estimates = {"tie": float(np.exp(point[n]))} if len(point) > n else {}
        consensus = Consensus.of(
            self, preferences, point[:n], trace=trace, std_error=std_error, covariance=covariance,
            quality=held_out(self, preferences), estimates=estimates,
        )  # fmt: skip
        if preferences.strength is not None:
            return consensus
        reread = partial(_read_again, self, preferences.items, point[:n], estimates.get("tie", 0.0))
        return replace(consensus, reread=reread)

    def _fit_controlled(self, preferences: Preferences, control: Sequence[str]) -> Consensus:
        """Scores at equal covariates, with the coefficients of these, and of steps."""
        from .controlled import Controlled

        grading, given = self._grading(preferences), preferences
        if grading is not None:
            given = given.select(given.outcome != 0) if self.ties == "ignore" else given
            given = grading.decisive(given)
        warn_unbounded(given.items, count_preferences(given, "split" if grading else self.ties), depth=4)
        problem = Controlled.of(preferences, control, self.ties, self.ridge)
        point, best, trace = problem.maximise(problem.start(), self.tol, self.max_iter)
        std_error, covariance, own = problem.standard_errors(best, preferences.items.offsets)

        def scores_of(part: Preferences) -> Floats:
            if not control and self._grading(part) is None:
                return self.scores(part)
            again = problem.with_preferences(part, self.ties)
            start = again.start()
            start = point if len(start) == len(point) else start
            return again.maximise(start, self.tol, self.max_iter)[0][: part.n_items]

        quality = LearnedQuality(preferences, scores_of, {}) if preferences.n_annotators else None
        return Consensus.of(
            self, preferences, point[: preferences.n_items], trace=trace, std_error=std_error, covariance=covariance,
            quality=quality, estimates=problem.estimates(point, own),
        )  # fmt: skip

    def score_gradients(self, preferences: Preferences, consensus: Consensus) -> ScoreGradients:
        """Return the gradients of the preferences in the scores, at the consensus."""
        if "control" in consensus.estimates or "cuts" in consensus.estimates:
            from .controlled import controlled_gradients

            return controlled_gradients(preferences, consensus, self.ties, self.ridge)
        gap = consensus.scores[preferences.left] - consensus.scores[preferences.right]
        tie = consensus.estimates.get("tie", 0.0)
        win = 0.5 * (1.0 + preferences.outcome)
        # wins and half of the ties, less what the model expects of them
        upper, lower = np.exp(-np.maximum(-gap, 0.0)), np.exp(-np.maximum(gap, 0.0))
        middle = tie * np.exp(-0.5 * np.abs(gap))
        rest = preferences.row_weight * (win - (upper + 0.5 * middle) / (upper + lower + middle))
        rest = np.where(preferences.outcome == 0, 0.0, rest) if self.ties == "ignore" else rest
        row = np.arange(len(preferences))
        both = np.concatenate([preferences.left, preferences.right])
        return ScoreGradients(np.tile(row, 2), both, np.concatenate([rest, -rest]), self.ridge)

    def scores(self, preferences: Preferences) -> Floats:
        """Return the scores only, without standard errors, for repeated fits."""
        expect(preferences, self)
        if self._grading(preferences):
            from .controlled import Controlled

            problem = Controlled.of(preferences, (), self.ties, self.ridge)
            return problem.maximise(problem.start(), self.tol, self.max_iter)[0][: preferences.n_items]
        return self._maximise(count_preferences(preferences, self.ties))[0][: preferences.n_items]

    def refits(self, preferences: Preferences, draws: Draws, consensus: Consensus) -> tuple[int, PairRefits] | None:
        """Return what fits many resamples at once, each begun at the scores of all preferences; not with strengths."""
        if "cuts" in consensus.estimates:
            return None
        from .resampled_fits import PairRefits, sort_preferences

        tie = consensus.estimates.get("tie")
        start = np.append(consensus.scores, [] if tie is None else np.log(tie))

        def alone(pair_counts: PairCounts, start: Floats) -> tuple[Floats, bool]:
            point, _, trace = self._maximise(pair_counts, start)
            return point, trace.converged

        rows, draws = sort_preferences(preferences, draws, self.ties)
        pair_counts, offsets = count_preferences(preferences, self.ties), preferences.items.offsets
        fit = PairRefits(rows, draws, pair_counts, offsets, start, self.ties, self.ridge, alone, together=tie is None)
        return fit.at_once, fit

    def _grading(self, preferences: Preferences) -> Grading | None:
        """The steps of preferences with strengths of several sizes."""
        if preferences.strength is None:
            return None
        from .controlled import Grading

        return Grading.of(preferences, self.ties)

    def _maximise(self, pair_counts: PairCounts, start: Floats | None = None) -> tuple[Floats, _Point, Trace]:
        """Where the penalised log-likelihood is largest."""
        evaluate, direction = _objective(pair_counts, self.ridge, self.tol)
        start = _start(pair_counts) if start is None else start
        return newton(evaluate, direction, start, tol=self.tol, max_iter=self.max_iter, what="bradley_terry")


class _Point(NamedTuple):
    """The penalised log-likelihood at one point, and what the next step needs."""

    value: float
    gradient: Floats
    log_likelihood: float
    model: TieModel
    pair_counts: PairCounts


def _start(pair_counts: PairCounts) -> Floats:
    """Log odds of winning, whatever the opponents, which saves the first Newton steps; then an even tie parameter."""
    scores = pair_counts.centre(np.log((pair_counts.wins + 0.5) / (pair_counts.losses + 0.5)))
    return scores if pair_counts.n_ties is None else np.append(scores, 0.0)


def _objective(pair_counts: PairCounts, ridge: float, tol: float) -> tuple[Any, Any]:
    """Functions that evaluate the penalised log-likelihood and give the Newton step from an evaluated point."""
    from ...kernels.laplacian import laplacian_product, newton_step
    from .kernels.pair_likelihood import evaluate_ties

    n = len(pair_counts.wins)
    pairs = (pair_counts.starts, pair_counts.second)

    def evaluate(point: Floats) -> _Point:
        tie = 0.0 if pair_counts.n_ties is None else float(np.exp(point[n]))
        model = evaluate_ties(*pairs, pair_counts.margin, pair_counts.number, point[:n], tie, pair_counts.n_ties or 0.0)
        gradient = model.gradient if pair_counts.n_ties is None else np.append(model.gradient, model.tie_gradient)
        value = model.log_likelihood - 0.5 * ridge * float(np.square(point).sum())
        return _Point(value, gradient - ridge * point, model.log_likelihood, model, pair_counts)

    def direction(here: _Point) -> Floats:
        model, diagonal = here.model, here.model.degree + ridge
        product = laplacian_product(*pairs, model.bend, diagonal)
        if pair_counts.n_ties is not None:
            product, diagonal = _add_tie_row(product, diagonal, model, ridge)
        step = newton_step(product, diagonal, here.gradient, tol=tol)
        # a small ridge would leave the level of a group to rounding
        step[:n] = pair_counts.centre(step[:n])
        return step

    return evaluate, direction


def _add_tie_row(product: Product, diagonal: Floats, model: TieModel, ridge: float) -> tuple[Product, Floats]:
    """Product and diagonal of the curvature with the row and column of the tie parameter's logarithm at its end."""
    corner = model.tie_bend + ridge

    def joint(vector: Floats) -> Floats:
        scores, tie = vector[:-1], float(vector[-1])
        return np.append(product(scores) + tie * model.cross, float((model.cross * scores).sum()) + tie * corner)

    return joint, np.append(diagonal, corner)


def _read_again(
    method: BradleyTerry, items: Items, scores: Floats, tie: float, preferences: Preferences, free: Bools
) -> tuple[Consensus, Bools]:
    """Scores of the free items of preferences, with the others as the fit has them."""
    from .rereading import Rereading

    return Rereading(method, items, scores, tie)(preferences, free)


def _standard_errors(best: _Point, ridge: float, offsets: Counts) -> tuple[Floats, tuple[Floats | None, ...]]:
    """Standard error of each item's centred score, and the covariance of each query."""
    pair_counts, model = best.pair_counts, best.model
    pairs = (pair_counts.starts, pair_counts.second, model.bend, model.degree)
    return score_standard_errors(*pairs, ridge, offsets, _tie_shift(best, ridge))


def _tie_shift(best: _Point, ridge: float) -> Floats:
    """How far each score moves when the tie parameter moves by one standard error."""
    from ...kernels.laplacian import conjugate_gradient, laplacian_product

    model = best.model
    if best.pair_counts.n_ties is None:
        return np.zeros(len(model.degree))
    diagonal = model.degree + ridge
    product = laplacian_product(best.pair_counts.starts, best.pair_counts.second, model.bend, diagonal)
    aside = conjugate_gradient(product, diagonal, model.cross, accuracy=1e-10)
    shift: Floats = aside / np.sqrt(model.tie_bend + ridge - float(model.cross @ aside))
    return shift
