"""What a fit starts from and works on: what is known beforehand, the state of scores and annotators, and its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from ...data.consensus import Consensus
from ...data.frames import to_frame
from ...data.index import Index, Items
from ...data.naming import first_ids
from ...data.truth import Truth
from ...errors import JudgmentError, ParameterError
from ...protocols import Bools, Floats, Ints
from ...wording import option
from .control import ControlState, first_control, former_control
from .layout import Kind, Layout

if TYPE_CHECKING:
    from .feature_weights import FeatureVariances
    from .kernels.ordinal import ResponseModel

START_LAPSE = 0.02
"""Probability of a lapse before any judgment is seen."""

START_SHARES = (0.75, 0.2, 0.05)
"""Shares of annotators who see, are reversed and guess, before any judgment is seen, in a large crowd."""

START_VARIANCES = {
    "item": 1.0, "alpha": 0.25, "bias": 0.05, "spread": 0.05, "level": 1.0, "weight": 0.1, "difficulty": 0.05,
}  # fmt: skip
"""Prior variances before any judgment is seen; ``level`` is that of queries, ``weight`` that of feature weights."""

MAX_VARIANCES = {
    "item": 36.0, "alpha": 16.0, "bias": 9.0, "spread": 1.0, "level": 36.0, "weight": 36.0, "difficulty": 2.0,
}  # fmt: skip
"""Learned variances stay below these: where judgments hardly contradict each other they would grow without end."""

MAX_FEATURE_VARIANCE = {"start": 1.0, "learned": 36.0}
"""Variance that all features together give to scores at most, at the start and at the end: that of items.

With more columns than judgments any column can explain any judgment, and weights grow until annotators with a judgment
or two follow them, in whichever direction.
"""

MIN_CUT_GAP = 0.01
"""Smallest distance of neighbouring cuts."""

MAX_MEAN_LAPSE = 0.25
"""Largest mean probability of a lapse in the crowd."""

MAX_REVERSED_SHARE = 0.45
"""Largest share of reversed annotators: the majority defines the direction of scores."""

_HALF_SHARE_ANNOTATORS = 10.0
"""Number of annotators at which reversed and guessing ones have half of their start shares."""

_TRUSTED_VARIANCE = 0.04
"""Prior variance of the discrimination of a trusted annotator."""

_MIN_START_LAPSE = 1e-6


# What is known beforehand


class Known(NamedTuple):
    """Scores of clamped items, (n_items,), on the model's scale: the user's value is ``middle + unit * score``."""

    clamped: Bools
    scores: Floats
    middle: float
    unit: float

    @classmethod
    def nothing(cls, n_items: int) -> Known:
        """No item is known."""
        return cls(np.zeros(n_items, bool), np.zeros(n_items), 0.0, 1.0)

    @property
    def sets_direction(self) -> bool:
        """Whether the known items have different scores."""
        return bool(np.ptp(self.scores[self.clamped]) > 0) if self.clamped.any() else False

    def to_user_scale(self, scores: Floats) -> Floats:
        """Return scores on the user's scale, those of known items exactly as given."""
        exact = self.middle + self.unit * self.scores
        return np.where(self.clamped, exact, self.middle + self.unit * scores)


def known_scores(items: Items, known: Any | None) -> Known:
    """Return the clamped items from a table of query, item and score, grade or rank, or from a truth.

    Values are brought to mean 0 and standard deviation 1, the scale that the prior of scores expects.
    """
    if known is None:
        return Known.nothing(len(items))
    truth = known if isinstance(known, Truth) else _known_table(known)
    if truth.grade is None or truth.nominal:
        raise JudgmentError(
            f"{option('known')} has no numbers for items; give a table of query, item and score or grade"
        )
    codes = items.codes_of(truth.items, "judgments", "known items")
    if (codes < 0).any():
        raise JudgmentError(
            f"known item {first_ids(truth.items, codes < 0)} is not among the judged items; "
            f"leave it out, or list it with {option('items')}"
        )
    clamped, scores = np.zeros(len(items), bool), np.zeros(len(items))
    given = np.isfinite(truth.grade)
    clamped[codes[given]] = True
    middle = float(truth.grade[given].mean()) if given.any() else 0.0
    unit = float(truth.grade[given].std()) if given.any() else 1.0
    unit = unit if unit > 0.0 else 1.0
    scores[codes[given]] = (truth.grade[given] - middle) / unit
    return Known(clamped, scores, middle, unit)


def _known_table(known: Any) -> Truth:
    """A table of known items as a truth; the column of numbers may be called score."""
    frame = to_frame(known)
    lowered = {str(name).strip().lower(): str(name) for name in frame.columns}
    columns = {"grade": lowered["score"]} if "score" in lowered and "grade" not in lowered else None
    if frame.is_empty():
        frame = frame.clear().cast({name: pl.Float64 for name in frame.columns if frame[name].dtype == pl.Null})
    return Truth.from_frame(frame, columns=columns)


@dataclass(frozen=True, eq=False)
class DiscriminationPrior:
    """Prior of the discriminations: their mean and, where it is fixed, their variance, (n_annotators,) each.

    ``fixed_variance`` is NaN for annotators whose variance is learned. With ``groups`` it is a mixture: learned shares
    of the crowd are reversed, with minus the mean, or guess, with mean 0.
    """

    mean: Floats
    fixed_variance: Floats
    groups: bool

    def variance(self, learned: float) -> Floats:
        """Prior variance of each annotator's discrimination within its group."""
        return np.where(np.isnan(self.fixed_variance), learned, self.fixed_variance)

    def shares(self, learned: Floats) -> Floats:
        """Prior probability of each group for each annotator, (3, n_annotators)."""
        free = np.isnan(self.fixed_variance) & self.groups
        return np.where(free, learned[:, None], np.array([1.0, 0.0, 0.0])[:, None])


@dataclass(frozen=True, eq=False)
class ItemInputs:
    """What is given of items besides judgments: features (n_items, n), and which are clamped to known scores."""

    features: Floats
    clamped: Bools
    known: Floats


@dataclass(frozen=True, eq=False)
class Anchors:
    """What sets the direction and the scale of scores.

    ``prior`` is that of the discriminations. The mean discrimination of ``scale_setters`` (n_annotators,) is 1; it is
    ``None`` where known items set the scale.
    """

    prior: DiscriminationPrior
    scale_setters: Bools | None
    inputs: ItemInputs


def find_anchors(layout: Layout, features: Floats, known: Known, trusted: Bools) -> Anchors:
    """Return what sets the direction and the scale of scores.

    By default the mean discrimination of the crowd is 1. With trusted annotators it is theirs, and known items of
    different scores set both; in these cases nothing is assumed of the other annotators, whose prior mean is 0.
    """
    n, fixed = layout.n_annotators, np.full(layout.n_annotators, np.nan)
    mean, setters = np.ones(n), layout.active
    reliable = trusted & layout.active
    if reliable.any():
        mean, setters = trusted.astype(np.float64), reliable
        fixed[trusted] = _TRUSTED_VARIANCE
    if known.sets_direction:
        mean = np.where(trusted, 1.0, 0.0) if reliable.any() else np.zeros(n)
    return Anchors(
        DiscriminationPrior(mean, fixed, not known.sets_direction and not reliable.any()),
        None if known.sets_direction or not setters.any() else setters,
        ItemInputs(features, known.clamped, known.scores),
    )


# The state


@dataclass(frozen=True, eq=False)
class KindState:
    """How annotators respond to one kind; arrays are (n_annotators,) unless said otherwise.

    Parameters
    ----------
    bias, bias_variance, covariance
        Bias of each annotator, its variance, and its covariance with the annotator's discrimination.
    mean_bias, variance_of_bias
        Mean and variance of biases in the crowd.
    spread, spread_variance, variance_of_spread
        Log-spread of each annotator, its variance, and the variance of log-spreads in the crowd.
    lapse, favourites, mean_lapse
        Probability of a lapse, the levels then given (n_annotators or 0, K), and the crowd's mean probability.
    centre, cuts
        The cuts between levels are at ``centre + exp(spread) cuts``, (K-1,).
    log_scale
        Logarithm of lambda, the factor of discriminations for this kind.
    curvature
        Curvature of the last round in discrimination, in discrimination and bias, in bias and in spread,
        (4, n_annotators).
    control
        Coefficients of the covariates that are controlled for.
    """

    bias: Floats
    bias_variance: Floats
    covariance: Floats
    mean_bias: float
    variance_of_bias: float
    spread: Floats
    spread_variance: Floats
    variance_of_spread: float
    lapse: Floats
    favourites: Floats
    mean_lapse: float
    centre: float
    cuts: Floats
    log_scale: float
    curvature: Floats | None = None
    control: ControlState | None = None

    def response_model(self, kind: Kind, alpha: Floats, alpha_variance: Floats) -> ResponseModel:
        """What the passes over judgments need."""
        from .kernels.ordinal import ResponseModel, own_rows

        scale = float(np.exp(self.log_scale))
        rows = own_rows(
            scale, alpha, alpha_variance, self.covariance, self.bias, self.bias_variance, self.spread, self.lapse
        )
        model = ResponseModel(rows, self.favourites, self.centre, self.cuts, scale, kind.has_cuts)
        return model if self.control is None else model._replace(shifts=self.control.shifts(kind.cells, scale))


@dataclass(frozen=True, eq=False)
class State:
    """All estimates of a fit.

    Parameters
    ----------
    scores, variance
        Score of each item and its variance, (n_items,).
    covariance
        Covariance of the scores of each compared pair, (n_pairs,).
    alpha, alpha_variance
        Discrimination of each annotator and its variance, (n_annotators,).
    kinds
        How annotators respond to each kind.
    variance_of_items, variance_of_alpha, variance_of_levels, variance_of_weights
        Variances of scores within queries, discriminations, levels of queries and feature weights.
    shares
        Shares of the annotators who see, are reversed, and guess, (3,).
    weights, weights_covariance
        Weights of the features, (n_features,), and their covariance.
    cell_curvature
        Curvature in the scores of each kind's cells, in the last round.
    feature_variances
        What uncertain weights add to the variances of scores, where there are features.
    difficulty, difficulty_variance
        Log of the noise of grades of each item against the usual one and its variance, (n_items or 0,).
    variance_of_difficulty
        Variance of difficulties, 0 where items are taken as equally difficult.
    """

    scores: Floats
    variance: Floats
    covariance: Floats
    alpha: Floats
    alpha_variance: Floats
    kinds: tuple[KindState, ...]
    variance_of_items: float
    variance_of_alpha: float
    shares: Floats
    variance_of_levels: float
    variance_of_weights: float
    weights: Floats
    weights_covariance: Floats
    cell_curvature: tuple[Floats, ...] = ()
    feature_variances: FeatureVariances | None = None
    difficulty: Floats = field(default_factory=lambda: np.empty(0))
    difficulty_variance: Floats = field(default_factory=lambda: np.empty(0))
    variance_of_difficulty: float = 0.0

    def response_model(self, kind: Kind, habits: KindState) -> ResponseModel:
        """What the passes over judgments of a kind need."""
        model = habits.response_model(kind, self.alpha, self.alpha_variance)
        if not kind.has_difficulty or not len(self.difficulty):
            return model
        return model._replace(clarity=np.exp(-self.difficulty[kind.cells.first]))

    def gaps(self, kind: Kind) -> tuple[Floats, Floats]:
        """Score, or difference of scores, of each cell and its variance."""
        first, second = kind.cells.first, kind.cells.second
        if not kind.about_pairs:
            return self.scores[first], self.variance[first]
        between = self.covariance if len(kind.pair) == len(self.covariance) else self.covariance[kind.pair]
        variance = self.variance[first] + self.variance[second] - 2.0 * between
        return self.scores[first] - self.scores[second], np.maximum(variance, 0.0)

    def divide_alpha(self, factor: float) -> State:
        """The same with discriminations divided by a factor."""
        powers = np.array([factor**2, factor, 1.0, 1.0])[:, None]
        kinds = tuple(
            replace(
                kind, covariance=kind.covariance / factor,
                curvature=None if kind.curvature is None else powers * kind.curvature,
                control=None if kind.control is None else kind.control.divide_alpha(factor),
            )
            for kind in self.kinds
        )  # fmt: skip
        return replace(
            self, alpha=self.alpha / factor, alpha_variance=self.alpha_variance / factor**2, kinds=kinds
        )  # fmt: skip

    def rescale(self, factor: float) -> State:
        """The same with scores multiplied and discriminations divided by a factor, which predicts the same."""
        square = factor**2
        return replace(
            self.divide_alpha(factor), scores=self.scores * factor, variance=self.variance * square,
            covariance=self.covariance * square, variance_of_items=self.variance_of_items * square,
            variance_of_levels=self.variance_of_levels * square,
            variance_of_weights=self.variance_of_weights * square, weights=self.weights * factor,
            weights_covariance=self.weights_covariance * square,
            cell_curvature=tuple(curvature / square for curvature in self.cell_curvature), feature_variances=None,
        )  # fmt: skip


# The start


def first_state(layout: Layout, alpha: Floats, n_features: int) -> State:
    """The state before any judgment is seen: equal scores, and these discriminations without bias or spread."""
    variances = START_VARIANCES
    return State(
        scores=np.zeros(layout.n_items), variance=np.zeros(layout.n_items),
        covariance=np.zeros(len(layout.graph.second)), alpha=alpha, alpha_variance=np.zeros(layout.n_annotators),
        kinds=tuple(_first_kind(kind, layout.n_annotators) for kind in layout.kinds),
        variance_of_items=variances["item"], variance_of_alpha=variances["alpha"],
        shares=first_shares(int(layout.active.sum())),
        variance_of_levels=variances["level"] if layout.has_query_levels else 0.0,
        variance_of_weights=weight_variances(n_features)[0],
        weights=np.zeros(n_features), weights_covariance=np.zeros((n_features, n_features)),
    )  # fmt: skip


def weight_variances(n_features: int) -> tuple[float, float]:
    """Return the variance of feature weights before any judgment is seen, and the largest that is learned."""
    n = max(n_features, 1)
    return (
        min(START_VARIANCES["weight"], MAX_FEATURE_VARIANCE["start"] / n),
        min(MAX_VARIANCES["weight"], MAX_FEATURE_VARIANCE["learned"] / n),
    )


def first_shares(n: int) -> Floats:
    """Return the shares of those who see, are reversed, and guess, in a crowd of ``n`` annotators.

    The smaller the crowd, the fewer are reversed or guess.
    """
    others = np.array(START_SHARES[1:]) * n / (n + _HALF_SHARE_ANNOTATORS)
    return np.append(1.0 - others.sum(), others)


def _first_kind(kind: Kind, n: int) -> KindState:
    """Annotators without bias or spread, and cuts from the shares of the levels."""
    zeros = np.zeros(n)
    centre, cuts = first_cuts(kind)
    lapse = START_LAPSE if kind.has_lapses else 0.0
    favourites = np.tile(kind.shares, (n if kind.has_lapses else 0, 1))
    return KindState(
        bias=zeros, bias_variance=zeros, covariance=zeros, mean_bias=0.0, variance_of_bias=START_VARIANCES["bias"],
        spread=zeros, spread_variance=zeros, variance_of_spread=START_VARIANCES["spread"], lapse=np.full(n, lapse),
        favourites=favourites, mean_lapse=lapse, centre=centre, cuts=cuts, log_scale=0.0,
        control=first_control(kind) if kind.n_covariates else None,
    )  # fmt: skip


def first_cuts(kind: Kind) -> tuple[float, Floats]:
    """Return the centre and the cuts that predict the observed shares of levels for items of score 0."""
    counts = kind.shares * kind.weight.sum() + 0.5
    below = np.cumsum(counts)[:-1] / counts.sum()
    cuts = np.log(below / (1.0 - below))
    if kind.about_pairs:
        # either side alike
        below = np.cumsum(counts + counts[::-1])[:-1] / (2.0 * counts.sum())
        cuts = np.log(below / (1.0 - below))
        return 0.0, 0.5 * (cuts - cuts[::-1])
    centre = float(cuts.mean()) if len(cuts) else 0.0
    return centre, cuts - centre


def former_state(start: Consensus, judgments: Any, layout: Layout, n_features: int = 0) -> State:
    """Return the state of a former consensus, new items and annotators as in :func:`first_state`.

    Items and annotators are matched by id. Cuts are taken over where the number of levels is the same.
    """
    state = former_habits(start, judgments.annotators, layout, n_features)
    item = start.items.codes_of(judgments.items, "start", "judgments")
    return replace(state, scores=np.where(item >= 0, former_scores(start)[item], 0.0))


def former_scores(start: Consensus) -> Floats:
    """Return the scores of a former consensus on the scale of the model."""
    unit, middle = float(start.estimates.get("unit", 1.0)), float(start.estimates.get("middle", 0.0))
    return (start.scores - middle) / unit


def former_habits(start: Consensus, annotators: Index, layout: Layout, n_features: int = 0) -> State:
    """Return the state of a former consensus without its scores."""
    learned, estimates = start.learned, start.estimates
    if "score_sd" not in estimates or (layout.named and (learned is None or "alpha" not in learned[1])):
        raise ParameterError(
            f"start= is a consensus of {start.method}, which has no discriminations of annotators; "
            "start from a consensus of latent_score, or leave start= out"
        )
    state = first_state(layout, np.ones(layout.n_annotators), n_features)
    unit = float(estimates.get("unit", 1.0))
    state = replace(
        state, variance_of_items=float(estimates["score_sd"]) ** 2,
        variance_of_alpha=float(estimates["alpha_sd"]) ** 2,
    )  # fmt: skip
    if layout.has_query_levels and "query_sd" in estimates:
        state = replace(state, variance_of_levels=float(estimates["query_sd"]) ** 2)
    former: Ints = np.full(layout.n_annotators, -1, np.int32)
    parameters: Mapping[str, Any] = {}
    if learned is not None and layout.named:
        former, parameters = learned[0].codes(annotators.ids), learned[1]
        state = replace(state, alpha=_former_or_new(parameters["alpha"], former, state.alpha / unit) * unit)
    kinds = zip(layout.kinds, state.kinds, strict=True)
    return replace(state, kinds=tuple(_former_kind(kind, own, parameters, estimates, former) for kind, own in kinds))


def _former_or_new(values: Any, former: Ints, new: Floats) -> Floats:
    """The value of each annotator in the former consensus, by its code there, or the new value without one."""
    return np.where(former >= 0, np.append(values, 0.0)[former], new)


def _former_kind(
    kind: Kind, habits: KindState, parameters: Mapping[str, Any], estimates: Mapping[str, Any], former: Ints
) -> KindState:
    """How annotators respond to one kind, as far as the former consensus has it."""

    def of_kind(table: Mapping[str, Any], name: str) -> Any:
        return table.get(f"{name}_{kind.name}", table.get(name))

    changes: dict[str, Any] = {}
    bias, spread, lapse = (of_kind(parameters, name) for name in ("bias", "spread", "lapse"))
    if bias is not None and kind.has_bias:
        changes["bias"] = _former_or_new(bias, former, habits.bias)
    if spread is not None and kind.has_spread:
        changes["spread"] = _former_or_new(np.log(spread), former, habits.spread)
    if lapse is not None and kind.has_lapses:
        changes["lapse"] = np.maximum(_former_or_new(lapse, former, habits.lapse), _MIN_START_LAPSE)
    cuts = of_kind(estimates, "cuts")
    if cuts is not None and kind.has_cuts and len(cuts) == len(habits.cuts):
        # the centre stays that of these judgments
        changes["cuts"] = np.array(cuts) - habits.centre
    if habits.control is not None:
        changes["control"] = former_control(habits.control, parameters, estimates, former)
    scale = estimates.get(f"scale_{kind.name}")
    return replace(habits, **changes, log_scale=0.0 if scale is None else float(np.log(scale)))


def refit_state(layout: Layout, state: State) -> State:
    """Return the start of a fit to a part of the judgments: scores and discriminations of all, habits anew."""
    first = first_state(layout, state.alpha, len(state.weights))
    if state.kinds and state.kinds[0].control is not None:
        first = replace(first, kinds=(replace(first.kinds[0], control=state.kinds[0].control.forget_curvature()),))
    return replace(
        first, scores=state.scores, variance_of_items=state.variance_of_items,
        variance_of_alpha=state.variance_of_alpha, shares=state.shares, weights=state.weights,
        weights_covariance=state.weights_covariance, variance_of_weights=state.variance_of_weights,
        variance_of_levels=state.variance_of_levels if layout.has_query_levels else 0.0,
        difficulty=state.difficulty, difficulty_variance=state.difficulty_variance,
        variance_of_difficulty=state.variance_of_difficulty,
    )  # fmt: skip
