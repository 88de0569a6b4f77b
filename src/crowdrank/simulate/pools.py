"""Pools of annotators: what all have in common, one-coin accuracies, flipped preferences, and spammers mixed in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..errors import ParameterError
from ..protocols import Counts, Floats, Ints, Outcomes
from .known import Known, Seed

HONEST, RANDOM, MALICIOUS = 0, 1, 2
ROLES = ("honest", "random", "malicious")

_CHUNK = 1024


@dataclass(frozen=True, eq=False)
class Lists:
    """Lists of items for annotators to rank: each holds its items in true order, best first.

    Parameters
    ----------
    annotator
        Annotator of each list.
    item
        Item codes, list after list.
    offsets
        Items of list g are ``item[offsets[g]:offsets[g + 1]]``.
    """

    annotator: Ints
    item: Ints
    offsets: Counts

    @cached_property
    def sizes(self) -> Counts:
        """Number of items of each list."""
        return np.diff(self.offsets)

    @cached_property
    def row(self) -> Counts:
        """List of each entry of ``item``."""
        return np.repeat(np.arange(len(self.annotator)), self.sizes)

    @cached_property
    def place(self) -> Counts:
        """Place of each entry in its list, 0 = truly best."""
        return np.arange(len(self.item)) - self.offsets[self.row]


class Pool:
    """Annotators with known parameters; the base of every pool.

    A subclass names the kinds it draws, its parameters (fields with one entry per annotator), and for each kind how to
    draw and what the quality is: the probability of ordering two items of unequal truth correctly, where the annotator
    does order them (as estimates of quality leave ties out).
    """

    draws: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[str, ...]] = ()

    def __len__(self) -> int:
        return len(getattr(self, self.columns[0]))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of judgment these annotators give."""
        return self.draws

    def parameters(self) -> dict[str, Floats]:
        """Return the true parameters, one array per name, one entry per annotator."""
        return {name: getattr(self, name) for name in self.columns}

    def require(self, kind: str) -> None:
        """Refuse a kind of judgment these annotators do not give."""
        if kind not in self.kinds:
            drawn = " or ".join(f"{name}s" for name in self.kinds)
            raise ParameterError(f"{type(self).__name__} annotators give {drawn}, not {kind}s; choose others")

    @property
    def role(self) -> Outcomes:
        """0 honest, 1 random, 2 malicious, for each annotator."""
        return np.zeros(len(self), np.int8)

    def prepare(self, known: Known, rng: np.random.Generator) -> Known:
        """Return the truth with all that drawing needs."""
        del rng
        return known

    def draw_grades(self, known: Known, item: Ints, annotator: Ints, rng: np.random.Generator) -> Ints:
        """Return the level each annotator gives each item."""
        raise NotImplementedError

    def confusions(self, known: Known, annotator: Ints) -> Floats:
        """Return the probability of each given level by true level, shape (n_annotators, n_levels, n_levels)."""
        raise NotImplementedError

    def grade_quality(self, known: Known) -> Floats:
        """Return the quality of each annotator as a grader."""
        chunks = [np.arange(s, min(s + _CHUNK, len(self)), dtype=np.int32) for s in range(0, len(self), _CHUNK)]
        return np.concatenate([confusion_quality(self.confusions(known, chunk), known.level_pairs) for chunk in chunks])

    def draw_preferences(
        self, known: Known, left: Ints, right: Ints, annotator: Ints, rng: np.random.Generator
    ) -> Outcomes:
        """Return the outcome of each comparison."""
        raise NotImplementedError

    def preference_quality(self, known: Known) -> Floats:
        """Return the quality of each annotator at preferences whose sides are drawn by a fair coin."""
        raise NotImplementedError

    def draw_rankings(self, known: Known, lists: Lists, rng: np.random.Generator) -> Counts:
        """Return the place in the true order of what each annotator puts first, second, ..., list after list."""
        raise NotImplementedError

    def ranking_quality(self, known: Known, lists: Lists) -> Floats:
        """Return the quality of each annotator at ranking these lists."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class OneCoin(Pool):
    """Annotators who are right with a probability of their own.

    A wrong grade is any of the other levels with equal probability; a wrong preference is the opposite one.

    Parameters
    ----------
    accuracy
        Probability of the true answer, per annotator.

    Examples
    --------
    >>> len(OneCoin(np.array([0.9, 0.6, 0.5])))
    3
    """

    draws: ClassVar[tuple[str, ...]] = ("grade", "preference")
    columns: ClassVar[tuple[str, ...]] = ("accuracy",)
    accuracy: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "accuracy", check_range("accuracy", self.accuracy, 0, 1))

    def draw_grades(self, known: Known, item: Ints, annotator: Ints, rng: np.random.Generator) -> Ints:
        """Return the level each annotator gives each item."""
        uniform, accuracy, level = rng.random(len(item)), self.accuracy[annotator], known.level[item]
        wrong = uniform >= accuracy
        # what is left of the same uniform number picks one of the other levels
        rest = (uniform[wrong] - accuracy[wrong]) / (1 - accuracy[wrong])
        other = np.minimum((rest * (known.n_levels - 1)).astype(np.int32), known.n_levels - 2)
        given = level.copy()
        given[wrong] = other + (other >= level[wrong])
        return given

    def confusions(self, known: Known, annotator: Ints) -> Floats:
        """Return the probability of each given level by true level."""
        accuracy, n_levels = self.accuracy[annotator][:, None, None], known.n_levels
        return np.where(np.eye(n_levels, dtype=bool), accuracy, (1 - accuracy) / (n_levels - 1))

    def draw_preferences(
        self, known: Known, left: Ints, right: Ints, annotator: Ints, rng: np.random.Generator
    ) -> Outcomes:
        """Return the outcome of each comparison."""
        return _flip_outcomes(known, left, right, rng.random(len(left)), 1 - self.accuracy[annotator])

    def preference_quality(self, known: Known) -> Floats:
        """Return the accuracy."""
        return self.accuracy


@dataclass(frozen=True, eq=False)
class Flips(Pool):
    """Annotators who flip a preference with a probability of their own.

    With probability ``tie`` the answer is a tie; otherwise, with probability ``abs(position_bias)``, the left item
    (the right one if negative) without looking; otherwise the truth, flipped with probability ``flip``. Between items
    of equal truth a fair coin takes the place of the truth.

    Parameters
    ----------
    flip
        Probability of a flipped answer, per annotator.
    tie
        Probability of calling a tie, per annotator or one for all.
    position_bias
        Pull to the left (positive) or right (negative) side, -1 to 1, per annotator or one for all.
    """

    draws: ClassVar[tuple[str, ...]] = ("preference",)
    columns: ClassVar[tuple[str, ...]] = ("flip", "tie", "position_bias")
    flip: Floats
    tie: Floats | float = 0.0
    position_bias: Floats | float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "flip", check_range("flip", self.flip, 0, 1))
        for name, low in (("tie", 0), ("position_bias", -1)):
            object.__setattr__(self, name, check_range(name, getattr(self, name), low, 1, len(self.flip)))

    def draw_preferences(
        self, known: Known, left: Ints, right: Ints, annotator: Ints, rng: np.random.Generator
    ) -> Outcomes:
        """Return the outcome of each comparison."""
        flip_rng, position_rng, tie_rng = rng.spawn(3)
        outcome = _flip_outcomes(known, left, right, flip_rng.random(len(left)), self.flip[annotator])
        bias, tie = np.asarray(self.position_bias), np.asarray(self.tie)
        if bias.any():
            pulled = position_rng.random(len(left)) < np.abs(bias)[annotator]
            outcome[pulled] = np.sign(bias).astype(np.int8)[annotator[pulled]]
        if tie.any():
            outcome[tie_rng.random(len(left)) < tie[annotator]] = 0
        return outcome

    def preference_quality(self, known: Known) -> Floats:
        """Return the probability of a right answer that is no tie; an answer by side is right half the time."""
        bias = np.abs(self.position_bias)
        return np.asarray(bias / 2 + (1 - bias) * (1 - self.flip))


@dataclass(frozen=True, eq=False)
class Crowd(Pool):
    """A pool some of whose annotators are spammers, who answer at random or always the reverse of the truth.

    Parameters
    ----------
    pool
        How the honest annotators answer.
    roles
        0 honest, 1 random, 2 malicious, per annotator.
    """

    pool: Pool
    roles: Outcomes

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of judgment the honest annotators give."""
        return self.pool.kinds

    def __len__(self) -> int:
        return len(self.pool)

    @property
    def role(self) -> Outcomes:
        """0 honest, 1 random, 2 malicious, for each annotator."""
        return self.roles

    def parameters(self) -> dict[str, Floats]:
        """Return the true parameters of the honest annotators, NaN for the spammers."""
        return {name: np.where(self.roles == HONEST, v, np.nan) for name, v in self.pool.parameters().items()}

    def prepare(self, known: Known, rng: np.random.Generator) -> Known:
        """Return the truth with all that drawing needs."""
        return self.pool.prepare(known, rng)

    def draw_grades(self, known: Known, item: Ints, annotator: Ints, rng: np.random.Generator) -> Ints:
        """Return the level each annotator gives each item; spammers any level, or the level mirrored."""
        honest_rng, spam_rng = rng.spawn(2)
        given = self.pool.draw_grades(known, item, annotator, honest_rng)
        role, guess = self.roles[annotator], (spam_rng.random(len(item)) * known.n_levels).astype(np.int32)
        given = np.where(role == RANDOM, guess, given)
        return np.where(role == MALICIOUS, known.n_levels - 1 - known.level[item], given).astype(np.int32)

    def confusions(self, known: Known, annotator: Ints) -> Floats:
        """Return the probability of each given level by true level."""
        shares, role = self.pool.confusions(known, annotator).copy(), self.roles[annotator]
        shares[role == RANDOM] = 1 / known.n_levels
        shares[role == MALICIOUS] = np.eye(known.n_levels)[::-1]
        return shares

    def draw_preferences(
        self, known: Known, left: Ints, right: Ints, annotator: Ints, rng: np.random.Generator
    ) -> Outcomes:
        """Return the outcome of each comparison; spammers toss a coin, or reverse the truth."""
        honest_rng, spam_rng = rng.spawn(2)
        outcome = self.pool.draw_preferences(known, left, right, annotator, honest_rng)
        role = self.roles[annotator]
        spam = np.flatnonzero(role != HONEST)
        flip = np.where(role[spam] == MALICIOUS, 1.0, 0.5)
        outcome[spam] = _flip_outcomes(known, left[spam], right[spam], spam_rng.random(len(role))[spam], flip)
        return outcome

    def preference_quality(self, known: Known) -> Floats:
        """Return the quality; 0.5 for random and 0 for malicious annotators."""
        return self._with_spammers(self.pool.preference_quality(known))

    def draw_rankings(self, known: Known, lists: Lists, rng: np.random.Generator) -> Counts:
        """Return the places drawn; spammers rank at random, or backwards."""
        honest_rng, spam_rng = rng.spawn(2)
        drawn = self.pool.draw_rankings(known, lists, honest_rng)
        role, row = self.roles[lists.annotator][lists.row], lists.row
        shuffled = np.lexsort((spam_rng.random(len(row)), row)) - lists.offsets[row]
        drawn = np.where(role == RANDOM, shuffled, drawn)
        return np.where(role == MALICIOUS, lists.sizes[row] - 1 - lists.place, drawn)

    def ranking_quality(self, known: Known, lists: Lists) -> Floats:
        """Return the quality; 0.5 for random and 0 for malicious annotators."""
        return self._with_spammers(self.pool.ranking_quality(known, lists))

    def _with_spammers(self, quality: Floats) -> Floats:
        """The honest quality, replaced where the annotator is a spammer."""
        return np.select([self.roles == RANDOM, self.roles == MALICIOUS], [0.5, 0.0], quality)


def normal(mean: float, sd: float, *, n_annotators: int, seed: Seed = 0) -> OneCoin:
    """Return one-coin annotators of normal accuracy, clipped to 0..1 [KumarLease11]_.

    Examples
    --------
    >>> pool = normal(0.7, 0.2, n_annotators=1000, seed=1)
    >>> round(float(pool.accuracy.mean()), 2), float(pool.accuracy.max())
    (0.68, 1.0)
    """
    check_range("mean", mean, 0, 1)
    check_range("sd", sd, 0, np.inf)
    return OneCoin(np.clip(np.random.default_rng(seed).normal(mean, sd, positive(n_annotators)), 0, 1))


def log_normal(mean: float, sd: float, *, n_annotators: int, seed: Seed = 0) -> OneCoin:
    r"""Return one-coin annotators of log-normal accuracy, clipped to 0..1.

    ``mean`` and ``sd`` are those of the accuracy itself, so with :math:`s^2 = \log(1 + sd^2 / mean^2)` it is
    :math:`\exp N(\log mean - s^2 / 2, s^2)` before clipping.

    Examples
    --------
    >>> round(float(log_normal(0.4, 0.2, n_annotators=100_000, seed=1).accuracy.mean()), 2)
    0.4
    """
    if not 0 < mean <= 1:
        raise ParameterError(f"mean must lie above 0 and be at most 1, not {mean}")
    check_range("sd", sd, 0, np.inf)
    variance = np.log1p((sd / mean) ** 2)
    logs = np.random.default_rng(seed).normal(np.log(mean) - variance / 2, np.sqrt(variance), positive(n_annotators))
    return OneCoin(np.minimum(np.exp(logs), 1))


def uniform(low: float, high: float, *, n_annotators: int, seed: Seed = 0) -> OneCoin:
    """Return one-coin annotators of uniform accuracy.

    Examples
    --------
    >>> bool((uniform(0.2, 0.6, n_annotators=50).accuracy < 0.6).all())
    True
    """
    check_range("low", low, 0, 1)
    check_range("high", high, 0, 1)
    if low > high:
        raise ParameterError(f"low must not be above high, but {low} > {high}")
    return OneCoin(np.random.default_rng(seed).uniform(low, high, positive(n_annotators)))


def with_spammers(pool: Pool, *, random: float = 0.0, malicious: float = 0.0, seed: Seed = 0) -> Crowd:
    """Return the pool with a share of its annotators, drawn by the seed, made spammers.

    Parameters
    ----------
    random
        Share of annotators who answer at random.
    malicious
        Share of annotators who always answer the reverse of the truth.

    Examples
    --------
    >>> crowd = with_spammers(uniform(0.6, 0.9, n_annotators=20), random=0.1, malicious=0.05)
    >>> np.bincount(crowd.role).tolist()
    [17, 2, 1]
    """
    check_range("random", random, 0, 1)
    check_range("malicious", malicious, 0, 1)
    if random + malicious > 1 + 1e-9:
        raise ParameterError(f"random and malicious are shares of one pool, but {random} + {malicious} is above 1")
    n_random = round(random * len(pool))
    n_malicious = min(round(malicious * len(pool)), len(pool) - n_random)
    roles = np.zeros(len(pool), np.int8)
    roles[:n_random] = RANDOM
    roles[n_random : n_random + n_malicious] = MALICIOUS
    return Crowd(pool, np.random.default_rng(seed).permutation(roles))


def confusion_quality(confusions: Floats, level_pairs: Floats) -> Floats:
    """Return the probability of ordering a pair of unequal items right, once the grades given differ.

    Parameters
    ----------
    confusions
        Probability of each given level by true level, shape (n_annotators, n_levels, n_levels).
    level_pairs
        Weight of each pair of levels, the better one first, shape (n_levels, n_levels).
    """
    above = np.einsum("akg,alg->akl", confusions, np.cumsum(confusions, axis=2) - confusions)
    right = (above * level_pairs).sum(axis=(1, 2))
    wrong = (above * level_pairs.T).sum(axis=(1, 2))
    return np.asarray(np.divide(right, right + wrong, out=np.full(len(right), 0.5), where=right + wrong > 0))


def check_range(name: str, value: Any, low: float, high: float, count: int | None = None) -> Floats:
    """Return the values as floats, one per annotator where ``count`` says so; an error outside ``low`` to ``high``."""
    values = np.asarray(value, float)
    if count is not None:
        values = np.broadcast_to(values, count)
    bad = ~((values >= low) & (values <= high) & np.isfinite(values))
    if bad.any():
        span = f"{low:g} or more" if np.isinf(high) else f"between {low:g} and {high:g}"
        raise ParameterError(f"{name} must be {span}, not {values[bad].flat[0]:g}")
    return values


def positive(n_annotators: int) -> int:
    """Return the number of annotators; an error where there is none."""
    if n_annotators < 1:
        raise ParameterError(f"at least 1 annotator is needed, not {n_annotators}")
    return int(n_annotators)


def _flip_outcomes(known: Known, left: Ints, right: Ints, uniform: Floats, flip: Floats) -> Outcomes:
    """True outcome, flipped with probability ``flip``; a coin between items of equal truth."""
    truth = np.sign(known.grade[left] - known.grade[right]).astype(np.int8)
    outcome = np.where(uniform < flip, -truth, truth)
    return np.where(truth == 0, np.where(uniform < 0.5, 1, -1), outcome).astype(np.int8)
