"""A whole fit: rounds of the item step, the annotator step and the crowd's, until nothing moves.

It is variational expectation-maximisation. Scores and annotators are normal given the judgments, each averaged over the
uncertainty of the other (E); then what all annotators share, and the prior variances, are learned from both (M).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...data.consensus import Trace
from ...kernels.threads import dot
from ...protocols import Bools, Floats, Progress
from .model import (
    MAX_MEAN_LAPSE,
    MAX_REVERSED_SHARE,
    MAX_VARIANCES,
    MIN_CUT_GAP,
    Anchors,
    ItemInputs,
    KindState,
    Known,
    Layout,
    State,
    find_anchors,
    first_state,
    hold_out_grades,
    n_held_out_folds,
    weight_variances,
)
from .steps import (
    ItemSums,
    annotator_step,
    annotator_sums,
    cut_step,
    damp_curvature,
    difficulty_evidence,
    difficulty_step,
    item_step,
    scale_step,
    variance_step,
    widened_variance,
    with_difficulties,
)

if TYPE_CHECKING:
    from .kernels.ordinal import AnnotatorSums

_STILL_SHARE = 0.05
"""Range of the mean log-likelihood over five rounds, as a share of ``tol``, at which a fit stands still."""

_LAPSE_TOL_SHARE = 0.01
"""Share of ``tol`` at which rounds end where lapses in preferences are learned.

In simulations of 20 annotators with 500 preferences each, a tenth of them lapses, rounds that end at ``tol`` find .03.
"""

_MIN_STILL_ROUNDS = 15
_MAX_LONG_CHANGE = 0.1
_MAX_LONG_ROUNDS = 10
"""The first long steps end where the change falls to the first, or after the second number of rounds."""

_N_LAST_ITEM_STEPS = 4
_SCORE_DIGITS = 9
_LIKELIHOOD_DIGITS = 6

_MIN_FACTOR = 0.5
_MAX_MEANS_FACTOR = 2.0
_MAX_SHARED_FACTOR = 3.0
"""Bounds of the factors on steps, of scores and annotators and of what they share."""

_MAX_ROOT_MEAN_SQUARES = 5.0
_MIN_DEVIATION = 0.02
_MIN_COEFFICIENT_DEVIATION = 1e-3
_MIN_POSITIVE = 1e-300


_TRIAL_TOL_FACTOR = 4.0
_MAX_TRIAL_ROUNDS = 60
"""Rounds of the fits that predict held-out grades end at so many times ``tol``, or after this number."""


class Options(NamedTuple):
    """When to stop: largest change in the last round, most rounds, and fewest before a fit may stand still.

    ``difficulty`` says whether items differ in difficulty; ``None``: where held-out grades are predicted better so.
    """

    tol: float = 5e-3
    max_iter: int = 300
    min_still_rounds: int = _MIN_STILL_ROUNDS
    difficulty: bool | None = None


class ScoreFit(NamedTuple):
    """The state at the end, the trace, the anchors, and the mean discrimination of those who set the scale."""

    state: State
    trace: Trace
    anchors: Anchors
    mean_alpha: float


def fit_scores(
    layout: Layout,
    options: Options,
    *,
    features: Floats | None = None,
    known: Known | None = None,
    trusted: Bools | None = None,
    start: State | None = None,
    progress: Progress | None = None,
) -> ScoreFit:
    """Return the estimates of scores, annotators and crowd.

    Parameters
    ----------
    layout
        The responses.
    options
        When to stop.
    features
        Features of each item, (n_items, n), columns of mean 0 and standard deviation 1.
    known
        Clamped items.
    trusted
        Annotators known to be good, (n_annotators,).
    start
        The state to start from, see :func:`~crowdrank.models.latent_score.model.former_state`.
    progress
        Called after each round, with the mean log-likelihood of a judgment.
    """
    features = np.empty((layout.n_items, 0)) if features is None else features
    known = Known.nothing(layout.n_items) if known is None else known
    trusted = np.zeros(layout.n_annotators, bool) if trusted is None else trusted
    anchors = find_anchors(layout, features, known, trusted)
    state = first_state(layout, anchors.prior.mean.copy(), features.shape[1]) if start is None else start
    state = replace(state, scores=np.where(known.clamped, known.scores, state.scores))
    state, trace = _run_rounds(layout, state, anchors, options, progress)
    variance = widened_variance(layout, state, item_step(layout, state, anchors.inputs)[1].items)
    if variance != state.variance_of_items:
        # the annotators stay as they are
        state = last_scores(layout, replace(state, variance_of_items=variance), anchors.inputs)
    return finished_fit(layout, state, anchors, trace)


def _run_rounds(
    layout: Layout, begin: State, anchors: Anchors, options: Options, progress: Progress | None = None
) -> tuple[State, Trace]:
    """The state where rounds no longer change it, or no longer raise the log-likelihood, and how it went.

    That is where no score, in standard deviations, and no number of an annotator or of the crowd changes by more than
    ``tol``, or where over five rounds the mean log-likelihood of a judgment stays within 5 % of that.
    """
    values: list[float] = []
    state, change, path, converged = begin, np.inf, Path(layout.judged), False
    may_differ = may_have_difficulties(layout, state, options)
    total, tol = sum(float(kind.weight.sum()) for kind in layout.kinds), tolerance(layout, options.tol)
    while not converged and len(values) < options.max_iter:
        following, items, sums = score_round(layout, state, anchors.inputs)
        settled = has_settled(change, values)
        following = annotator_round(layout, following, items, sums, anchors, learn_mean_lapse=settled)[0]
        value = float(sum(of.log_likelihood for of in sums))
        values.append(value)
        if progress is not None:
            said = f"latent_score, log-likelihood of a judgment {value / total:.4f}"
            progress(len(values), options.max_iter, said)
        state, change = path.follow(state, following)
        converged = has_converged(change, values, tol, total, options.min_still_rounds)
        if may_differ and has_settled(change, values):
            may_differ = False
            evident = options.difficulty or difficulty_evidence(layout, state).is_enough
            if evident and (options.difficulty or _are_predicted_better(layout, begin, anchors, options)):
                state, path, converged = with_difficulties(layout, state), Path(layout.judged), False
    return state, Trace(len(values), converged, change, tuple(values))


def finished_fit(layout: Layout, state: State, anchors: Anchors, trace: Trace) -> ScoreFit:
    """Return the fit that ends in a state."""
    setters, prior = anchors.scale_setters, anchors.prior
    mean = 1.0
    if setters is not None:
        precision = setters / state.alpha_variance
        mean = float((precision * state.alpha).sum() / precision.sum())
    # annotators without judgments have the prior of those who see
    variance = prior.variance(state.variance_of_alpha)
    state = replace(
        state, alpha=np.where(layout.active, state.alpha, prior.mean),
        alpha_variance=np.where(layout.active, state.alpha_variance, variance),
        scores=round_scores(state.scores, state.variance_of_items**0.5),
    )  # fmt: skip
    return ScoreFit(state, trace, anchors, mean)


def has_settled(change: float, values: list[float]) -> bool:
    """Return whether the first long steps are over, after a change in the last round and these log-likelihoods."""
    return change <= _MAX_LONG_CHANGE or len(values) >= _MAX_LONG_ROUNDS


def may_have_difficulties(layout: Layout, state: State, options: Options) -> bool:
    """Return whether to look, once the first long steps are over, if items differ in difficulty."""
    graded = any(kind.has_difficulty for kind in layout.kinds)
    return options.difficulty is not False and graded and state.variance_of_difficulty == 0.0


def _are_predicted_better(layout: Layout, begin: State, anchors: Anchors, options: Options) -> bool:
    """Whether grades that a fit has not seen are likelier after one with difficulties than after one without.

    Where annotators lapse, or mistakes are at random altogether, grades of some items differ more than those of others
    all the same: difficulties then follow the grades that they are learned from, and mislead about the others.
    """
    likelihoods = {False: 0.0, True: 0.0}
    for fold in range(n_held_out_folds(layout)):
        learned, held = hold_out_grades(layout, fold)
        for difficulty in likelihoods:
            state = _run_rounds(learned, begin, anchors, trial_options(options, difficulty=difficulty))[0]
            likelihoods[difficulty] += log_likelihood(held, state)
    return are_likelier(likelihoods[True], likelihoods[False])


def are_likelier(one: float, other: float) -> bool:
    """Return whether a log-likelihood is above another by more than rounding."""
    return round(one - other, _LIKELIHOOD_DIGITS) > 0.0


def trial_options(options: Options, *, difficulty: bool) -> Options:
    """Return when a fit ends that is to predict held-out grades."""
    tol, rounds = _TRIAL_TOL_FACTOR * options.tol, min(options.max_iter, _MAX_TRIAL_ROUNDS)
    return options._replace(tol=tol, max_iter=rounds, difficulty=difficulty)


def log_likelihood(layout: Layout, state: State) -> float:
    """Return the log-likelihood of judgments, averaged over what is not known of scores and annotators."""
    return float(sum(of.log_likelihood for of in annotator_sums(layout, state)))


def tolerance(layout: Layout, tol: float) -> float:
    """Return the change at which rounds end: less where lapses in preferences are learned.

    These and flatter scores look much alike, so that rounds move slowly long before they end.
    """
    return _LAPSE_TOL_SHARE * tol if any(kind.about_pairs and kind.has_lapses for kind in layout.kinds) else tol


def has_converged(
    change: float, values: list[float], tol: float, weight: float, min_still_rounds: int = _MIN_STILL_ROUNDS
) -> bool:
    """Return whether a fit to judgments of so much weight in all may end."""
    stands_still = max(values[-6:]) - min(values[-6:]) <= _STILL_SHARE * tol * weight
    return change <= tol or (len(values) > min_still_rounds and stands_still)


def score_round(layout: Layout, state: State, inputs: ItemInputs) -> tuple[State, ItemSums, list[AnnotatorSums]]:
    """Return the state with scores given annotators, and the sums that annotators and variances are learned from."""
    following, items = item_step(layout, state, inputs)
    following, difficulties = difficulty_step(layout, following)
    return following, items._replace(difficulties=difficulties), annotator_sums(layout, following)


def annotator_round(
    layout: Layout, state: State, items: ItemSums, sums: list[AnnotatorSums], anchors: Anchors, *,
    learn_mean_lapse: bool,
) -> tuple[State, float]:  # fmt: skip
    """Return the state with annotators and crowd given scores, by sums over judgments, and the factor on scores."""
    sums = damp_curvature(sums, state)
    state, discriminations = annotator_step(layout, state, sums, anchors.prior, learn_mean_lapse=learn_mean_lapse)
    # M: cuts and lambda, prior variances and shares, scale
    state = cut_step(layout, state, sums)
    state = variance_step(layout, state, items, discriminations, anchors.prior)
    if anchors.scale_setters is None:
        return state, 1.0
    return scale_step(state, discriminations, anchors.prior, anchors.scale_setters)


def round_scores(scores: Floats, unit: float) -> Floats:
    """Return scores, equal where they differ by rounding alone, as those of two items with the same judgments."""
    return np.round(scores / unit, _SCORE_DIGITS) * unit + 0.0


def last_scores(layout: Layout, state: State, inputs: ItemInputs) -> State:
    """Return the state with scores of another variance, the annotators unchanged."""
    for _ in range(_N_LAST_ITEM_STEPS):
        state = item_step(layout, state, inputs)[0]
    return state


# Over-relaxation


class Relaxation:
    """A factor on the steps of some numbers, from how the last two steps compare: a secant along them.

    A step in the direction of the last and almost as long means slow convergence, the opposite means oscillation.
    """

    def __init__(self, largest: float) -> None:
        self.largest, self.factor = largest, 1.0
        self.before: Floats | None = None

    def step(self, step: Floats, elsewhere: tuple[float, float] = (0.0, 0.0)) -> Floats:
        """Return the step to take instead of this one.

        ``elsewhere`` has, of numbers that move along but are kept elsewhere, the products of the last step and of its
        difference to this one with that difference.
        """
        if self.before is not None:
            turn = self.before - step
            square = dot(turn, turn) + elsewhere[1]
            along = dot(self.before, turn) + elsewhere[0]
            wanted = self.factor * along / square if square > _MIN_POSITIVE else self.largest
            wanted = min(max(wanted, 0.5 * self.factor), 2.0 * self.factor) if wanted > 0.0 else 2.0 * self.factor
            self.factor = min(max(wanted, _MIN_FACTOR), self.largest)
        self.before = step
        return self.factor * step


class Path:
    """The path of a fit: from a state and what a round makes of it to the next."""

    def __init__(self, judged: Bools) -> None:
        self.means, self.shared = Relaxation(_MAX_MEANS_FACTOR), Relaxation(_MAX_SHARED_FACTOR)
        self.unjudged = np.flatnonzero(~judged)

    def follow(
        self, state: State, following: State, elsewhere: tuple[float, float] = (0.0, 0.0)
    ) -> tuple[State, float]:
        """Return the state to continue from, and the largest change in the round, each number in its own unit.

        ``elsewhere`` is what scores that are not in the state say of the factor on steps.
        """
        step, n = _means(following) - _means(state), len(state.alpha)
        # scores of unjudged items follow the others, and their number changes nothing
        free, step[self.unjudged] = step[self.unjudged], 0.0
        drift = _shared_numbers(following) - _shared_numbers(state)
        n_judged = len(state.scores) - len(self.unjudged)
        change = max(float(np.abs(drift).max(initial=0.0)), _change_of(step[: len(state.scores)], n_judged))
        change = max(change, *(_change_of(part, len(part)) for part in step[len(state.scores) :].reshape(-1, n)))
        step = self.means.step(step, elsewhere)
        step[self.unjudged] = free
        moved = _with_means(following, _means(state) + step)
        return _with_shared_numbers(moved, _shared_numbers(state) + self.shared.step(drift)), change


def _change_of(step: Floats, number: int) -> float:
    """The typical change of some numbers by a step."""
    return typical_change(float(np.abs(step).max(initial=0.0)), dot(step, step), number)


def typical_change(largest: float, squares: float, number: float) -> float:
    """Return the largest change, or five times their root mean square where only a few of thousands still move."""
    return min(largest, _MAX_ROOT_MEAN_SQUARES * float(np.sqrt(squares / max(number, 1))))


def _means(state: State) -> Floats:
    """Scores in standard deviations, discriminations, biases and spreads, one after the other."""
    habits = list[Floats]()
    for kind in state.kinds:
        habits += [kind.bias, kind.spread, *(() if kind.control is None else kind.control.own.T)]
    return np.concatenate([state.scores / state.variance_of_items**0.5, state.alpha, *habits])


def _with_means(state: State, values: Floats) -> State:
    """The state with these means."""
    n_items, n = len(state.scores), len(state.alpha)
    scores, alpha = values[:n_items] * state.variance_of_items**0.5, values[n_items : n_items + n]
    rest, place, kinds = values[n_items + n :].reshape(-1, n), 0, []
    for kind in state.kinds:
        kinds.append(replace(kind, bias=rest[place], spread=rest[place + 1]))
        place += 2
        if kind.control is not None:
            k = len(kind.control.shared)
            kinds[-1] = replace(kinds[-1], control=replace(kind.control, own=rest[place : place + k].T))
            place += k
    return replace(state, scores=scores, alpha=alpha, kinds=tuple(kinds))


def _shared_numbers(state: State) -> Floats:
    """What annotators share: standard deviations, of scores and discriminations as logarithms, shares, scales, cuts."""
    levels = np.log(max(state.variance_of_levels, _MIN_POSITIVE)) / 2.0
    own = [np.log(state.variance_of_items) / 2.0, np.log(state.variance_of_alpha) / 2.0, levels]
    own += [np.log(state.variance_of_weights) / 2.0 if len(state.weights) else 0.0, *state.shares[1:]]
    own += [state.variance_of_difficulty**0.5]
    return np.concatenate([own, *(_shared_habits(kind) for kind in state.kinds)])


def _shared_habits(kind: KindState) -> Floats:
    """The same of one kind."""
    deviations = np.sqrt([kind.variance_of_bias, kind.variance_of_spread])
    own = [] if kind.control is None else [kind.control.shared, np.sqrt(kind.control.variances)]
    return np.concatenate([[kind.mean_bias], deviations, [kind.log_scale, kind.mean_lapse**0.5], kind.cuts, *own])


def _with_shared_numbers(state: State, values: Floats) -> State:
    """The state with these shared numbers, within their bounds; cuts that would not increase stay as they are."""
    most = _log_max_deviations("item", "alpha", "level", "weight")
    most[3] = np.log(weight_variances(len(state.weights))[1]) / 2.0
    items, alpha, levels, weights = np.exp(2.0 * np.minimum(values[:4], most))
    shares = np.clip(values[4:6], 0.0, MAX_REVERSED_SHARE)
    of_difficulty = float(np.clip(values[6], _MIN_DEVIATION, MAX_VARIANCES["difficulty"] ** 0.5)) ** 2
    place, kinds = 7, []
    for kind in state.kinds:
        size = len(_shared_habits(kind))
        kinds.append(_with_shared_habits(kind, values[place : place + size]))
        place += size
    return replace(
        state, variance_of_items=float(items), variance_of_alpha=float(alpha),
        variance_of_levels=float(levels) if state.variance_of_levels > 0.0 else 0.0,
        variance_of_weights=float(weights) if len(state.weights) else state.variance_of_weights,
        shares=np.append(1.0 - shares.sum(), shares), kinds=tuple(kinds),
        variance_of_difficulty=of_difficulty if state.variance_of_difficulty > 0.0 else 0.0,
    )  # fmt: skip


def _with_shared_habits(kind: KindState, values: Floats) -> KindState:
    """The same for one kind."""
    most = np.exp(_log_max_deviations("bias", "spread"))
    of_bias, of_spread = np.clip(values[1:3], _MIN_DEVIATION, most) ** 2
    cuts = values[5 : 5 + len(kind.cuts)]
    control = kind.control
    if control is not None:
        shared, deviations = np.split(values[5 + len(cuts) :], 2)
        control = replace(control, shared=shared, variances=np.maximum(deviations, _MIN_COEFFICIENT_DEVIATION) ** 2)
    return replace(
        kind, mean_bias=float(values[0]), variance_of_bias=float(of_bias), variance_of_spread=float(of_spread),
        log_scale=float(values[3]), mean_lapse=float(np.clip(values[4], 0.0, MAX_MEAN_LAPSE**0.5) ** 2),
        cuts=cuts if np.diff(cuts).min(initial=1.0) >= MIN_CUT_GAP else kind.cuts, control=control,
    )  # fmt: skip


def _log_max_deviations(*names: str) -> Floats:
    """Logarithms of the largest standard deviations."""
    return np.log([MAX_VARIANCES[name] for name in names]) / 2.0
