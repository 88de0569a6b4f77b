"""Pools of annotators: what all have in common, one-coin accuracies, flipped preferences, and spammers mixed in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from ..errors import ParameterError
from ..protocols import Counts, Floats, Ints, Outcomes
from .designs import all_pairs, pair_places
from .known import Known, Seed, check_range, spread_offsets

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
    ranges: ClassVar[dict[str, tuple[float, float]]] = {}
    """Lowest and highest value of each parameter; the first one has an entry per annotator."""

    def __post_init__(self) -> None:
        count = None
        for name, (low, high) in self.ranges.items():
            values = check_range(name, getattr(self, name), low, high, count)
            object.__setattr__(self, name, values)
            count = values.size if count is None else count

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.ranges))))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of judgment these annotators give."""
        return self.draws

    def parameters(self) -> dict[str, Floats]:
        """Return the true parameters, one array per name, one entry per annotator."""
        return {name: getattr(self, name) for name in self.ranges}

    def require(self, kind: str) -> None:
        """Refuse a kind of judgment these annotators do not give."""
        if kind not in self.kinds:
            drawn = " or ".join(f"{name}s" for name in self.kinds)
            raise ParameterError(f"{type(self).__name__} annotators give {drawn}, not {kind}s; choose others")

    @property
    def role(self) -> Outcomes:
        """0 honest, 1 random, 2 malicious, for each annotator."""
        return np.zeros(len(self), np.int8)

    def prepare(self, known: Known, rng: Generator) -> Known:
        """Return the truth with all that drawing needs."""
        del rng
        return known

    def draw_grades(self, known: Known, item: Ints, annotator: Ints, rng: Generator) -> Ints:
        """Return the level each annotator gives each item."""
        raise NotImplementedError

    def confusions(self, known: Known, annotator: Ints) -> Floats:
        """Return the probability of each given level by true level, shape (n_annotators, n_levels, n_levels)."""
        raise NotImplementedError

    def grade_quality(self, known: Known) -> Floats:
        """Return the quality of each annotator as a grader."""
        right, wrong = np.zeros(len(self)), np.zeros(len(self))
        for start in range(0, len(self), _CHUNK):
            shares = self.confusions(known, np.arange(start, min(start + _CHUNK, len(self)), dtype=np.int32))
            # by the true levels of two items, the probability that the first is given the higher grade
            above = np.einsum("akg,alg->akl", shares, np.cumsum(shares, axis=2) - shares)
            right[start : start + _CHUNK] = (above * known.level_pairs).sum(axis=(1, 2))
            wrong[start : start + _CHUNK] = (above * known.level_pairs.T).sum(axis=(1, 2))
        return np.asarray(np.divide(right, right + wrong, out=np.full(len(self), 0.5), where=right + wrong > 0))

    def draw_preferences(self, known: Known, left: Ints, right: Ints, annotator: Ints, rng: Generator) -> Outcomes:
        """Return the outcome of each comparison."""
        raise NotImplementedError

    def preference_quality(self, known: Known) -> Floats:
        """Return the quality of each annotator at preferences whose sides are drawn by a fair coin."""
        raise NotImplementedError

    def draw_rankings(self, known: Known, lists: Lists, rng: Generator) -> Counts:
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

    draws: ClassVar = ("grade", "preference")
    ranges: ClassVar = {"accuracy": (0, 1)}
    accuracy: Floats

    def draw_grades(self, known: Known, item: Ints, annotator: Ints, rng: Generator) -> Ints:
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

    def draw_preferences(self, known: Known, left: Ints, right: Ints, annotator: Ints, rng: Generator) -> Outcomes:
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

    draws: ClassVar = ("preference",)
    ranges: ClassVar = {"flip": (0, 1), "tie": (0, 1), "position_bias": (-1, 1)}
    flip: Floats
    tie: Floats | float = 0.0
    position_bias: Floats | float = 0.0

    def draw_preferences(self, known: Known, left: Ints, right: Ints, annotator: Ints, rng: Generator) -> Outcomes:
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

    def prepare(self, known: Known, rng: Generator) -> Known:
        """Return the truth with all that drawing needs."""
        return self.pool.prepare(known, rng)

    def draw_grades(self, known: Known, item: Ints, annotator: Ints, rng: Generator) -> Ints:
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

    def draw_preferences(self, known: Known, left: Ints, right: Ints, annotator: Ints, rng: Generator) -> Outcomes:
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

    def draw_rankings(self, known: Known, lists: Lists, rng: Generator) -> Counts:
        """Return the places drawn; spammers rank at random, or backwards."""
        honest_rng, spam_rng = rng.spawn(2)
        drawn = self.pool.draw_rankings(known, lists, honest_rng)
        role, row = self.roles[lists.annotator][lists.row], lists.row
        drawn = np.where(role == RANDOM, np.lexsort((spam_rng.random(len(row)), row)) - lists.offsets[row], drawn)
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
    roles = np.zeros(len(pool), np.int8)
    roles[: n_random + round(malicious * len(pool))] = MALICIOUS
    roles[:n_random] = RANDOM
    return Crowd(pool, np.random.default_rng(seed).permutation(roles))


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


_SUPPORT = 64


@dataclass(frozen=True, eq=False)
class Confusions(Pool):
    """Graders with a confusion matrix of their own.

    Parameters
    ----------
    matrices
        Probability of each given level by true level, worst level first, shape (n_annotators, n_levels, n_levels);
        rows sum to 1.

    Examples
    --------
    >>> Confusions(np.array([[[0.8, 0.2], [0.3, 0.7]]])).parameters()["accuracy"]
    array([0.75])
    """

    draws: ClassVar = ("grade",)
    matrices: Floats

    def __post_init__(self) -> None:
        matrices = check_range("a probability of a confusion matrix", self.matrices, 0, 1)
        if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
            raise ParameterError(f"confusion matrices have shape (annotators, levels, levels), not {matrices.shape}")
        off = np.abs(matrices.sum(axis=2) - 1)
        if (off > 1e-6).any():
            annotator, level = np.unravel_index(int(off.argmax()), off.shape)
            row = f"row {level} of confusion matrix {annotator}"
            raise ParameterError(f"{row} sums to {matrices[annotator, level].sum():g}; each row must sum to 1")
        object.__setattr__(self, "matrices", matrices)

    def __len__(self) -> int:
        return len(self.matrices)

    def parameters(self) -> dict[str, Floats]:
        """Return the mean of the diagonal, and every entry as its own column (true level, then given level)."""
        n_levels = self.matrices.shape[1]
        entries = {f"p_{t}_{g}": self.matrices[:, t, g] for t in range(n_levels) for g in range(n_levels)}
        return {"accuracy": np.einsum("akk->a", self.matrices) / n_levels, **entries}

    def prepare(self, known: Known, rng: Generator) -> Known:
        """Return the truth, once it is clear that it has as many levels as the matrices."""
        if known.n_levels != self.matrices.shape[1]:
            odd = f"the confusion matrices are of {self.matrices.shape[1]} levels, the truth of {known.n_levels}"
            raise ParameterError(f"{odd}; make them equal or name all levels with levels=")
        return known

    def draw_grades(self, known: Known, item: Ints, annotator: Ints, rng: Generator) -> Ints:
        """Return the level each annotator gives each item."""
        uniform, bounds = rng.random(len(item)), np.cumsum(self.matrices, axis=2)
        given, level = np.zeros(len(item), np.int32), known.level[item]
        for place in range(known.n_levels - 1):
            given += uniform >= bounds[annotator, level, place]
        return given

    def confusions(self, known: Known, annotator: Ints) -> Floats:
        """Return the matrices."""
        return self.matrices[annotator]


@dataclass(frozen=True, eq=False)
class LatentGraders(Pool):
    r"""Graders who see a latent relevance through noise and cut it where the truth is cut.

    Annotator :math:`a` sees item :math:`i` of relevance :math:`z_i` as

    .. math:: x_{ai} = b_a + c_a z_i + \sigma_a(z_i)\, e + j,

    with bias :math:`b_a`, scale :math:`c_a`, standard normal :math:`e`, and a jump :math:`j` that is exponential:
    upwards with probability ``raised``, downwards with probability ``lowered``, otherwise 0. The noise rises linearly
    from ``noise`` at :math:`z \le -1` to ``noise_top`` at :math:`z \ge 2`.
    A truth without relevances gets normal ones that fit its grades (see `latent_truth`).

    Parameters
    ----------
    bias, scale
        Shift and stretch of the relevance, per annotator.
    noise, noise_top
        Standard deviation of the noise for poor and for excellent items, per annotator.
    raised, lowered
        Probability that an item is seen as much better, or much worse, per annotator.
    jump
        Mean size of such an error, per annotator.
    """

    draws: ClassVar = ("grade",)
    ranges: ClassVar = {
        "bias": (-np.inf, np.inf), "scale": (-np.inf, np.inf), "noise": (1e-9, np.inf), "noise_top": (1e-9, np.inf),
        "raised": (0, 1), "lowered": (0, 1), "jump": (1e-9, np.inf),
    }  # fmt: skip
    bias: Floats
    scale: Floats
    noise: Floats
    noise_top: Floats
    raised: Floats
    lowered: Floats
    jump: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("raised and lowered together", self.raised + self.lowered, 0, 1 + 1e-9)

    def prepare(self, known: Known, rng: Generator) -> Known:
        """Return the truth with a latent relevance, drawn given the grades where there is none."""
        return known.with_latent(rng)

    def draw_grades(self, known: Known, item: Ints, annotator: Ints, rng: Generator) -> Ints:
        """Return the level each annotator gives each item."""
        noise_rng, side_rng, jump_rng = rng.spawn(3)
        z, cuts = known.latent[0][item], known.latent[1]
        noise = _noise(z, self.noise[annotator], self.noise_top[annotator])
        seen = self.bias[annotator] + self.scale[annotator] * z + noise * noise_rng.standard_normal(len(z))
        if self.raised.any() or self.lowered.any():
            side = side_rng.random(len(z))
            size = jump_rng.standard_exponential(len(z)) * self.jump[annotator]
            seen += np.where(side < self.raised[annotator], size, 0)
            seen -= np.where(side >= 1 - self.lowered[annotator], size, 0)
        return np.searchsorted(cuts, seen).astype(np.int32)

    def confusions(self, known: Known, annotator: Ints) -> Floats:
        """Return the probability of each given level by true level, averaged over the items of that level."""
        # relevances that stand for the items of each level, shape (n_levels, n_support): means of equal parts
        relevance, z = known.latent[0], np.zeros((known.n_levels, _SUPPORT))
        for level in range(known.n_levels):
            own = np.sort(relevance[known.level == level])
            if len(own) >= _SUPPORT:
                z[level] = [part.mean() for part in np.array_split(own, _SUPPORT)]
            elif len(own):
                z[level] = np.quantile(own, (np.arange(_SUPPORT) + 0.5) / _SUPPORT, method="inverted_cdf")
        values = np.stack([values[annotator] for values in self.parameters().values()], axis=1)
        distinct, where = np.unique(values, axis=0, return_inverse=True)
        below = np.stack([_probability_below(cut, z, distinct).mean(axis=2) for cut in known.latent[1]], axis=2)
        return np.asarray(np.diff(below, axis=2, prepend=0.0, append=1.0)[where.ravel()])


def confusion(
    accuracy: float, concentration: float = 10.0, *, n_levels: int, n_annotators: int, seed: Seed = 0
) -> Confusions:
    """Return graders whose confusion rows are drawn from Dirichlet distributions.

    Parameters
    ----------
    accuracy
        Mean probability of the true level; the other levels share the rest.
    concentration
        Raise it for annotators that resemble each other.

    Examples
    --------
    >>> pool = confusion(0.7, n_levels=3, n_annotators=500, seed=1)
    >>> round(float(pool.parameters()["accuracy"].mean()), 2)
    0.7
    """
    check_range("accuracy", accuracy, 0.001, 0.999)
    check_range("concentration", concentration, 1e-3, np.inf)
    if n_levels < 2:
        raise ParameterError(f"n_levels must be at least 2, not {n_levels}")
    means = np.full((n_levels, n_levels), (1 - accuracy) / (n_levels - 1))
    np.fill_diagonal(means, accuracy)
    gammas = np.random.default_rng(seed).gamma(concentration * means, size=(positive(n_annotators), n_levels, n_levels))
    gammas = np.maximum(gammas, 1e-300)
    return Confusions(gammas / gammas.sum(axis=2, keepdims=True))


def symmetric(noise: float = 0.7, *, n_annotators: int) -> LatentGraders:
    """Return graders whose errors go up and down alike."""
    return _latent(n_annotators, noise=noise)


def profile(
    bias: float = 0.35,
    scale: float = 0.25,
    noise: float = 0.5,
    shift: float = 0.0,
    *,
    n_annotators: int,
    seed: Seed = 0,
) -> LatentGraders:
    """Return graders with a profile: some are mild, some strict, some use more of the scale than others.

    Parameters
    ----------
    bias
        Standard deviation of the annotators' shifts.
    scale
        Standard deviation of the logarithm of the annotators' stretches.
    noise
        Standard deviation of the noise of each grade.
    shift
        Mean of the annotators' shifts: below 0 they are strict on the whole.

    Examples
    --------
    >>> len(profile(n_annotators=120, seed=1))
    120
    """
    check_range("bias", bias, 0, np.inf)
    check_range("scale", scale, 0, np.inf)
    rng, count = np.random.default_rng(seed), positive(n_annotators)
    return _latent(count, bias=rng.normal(shift, bias, count), scale=np.exp(rng.normal(0, scale, count)), noise=noise)


def false_good(share: float = 0.1, jump: float = 1.3, noise: float = 0.25, *, n_annotators: int) -> LatentGraders:
    """Return graders who now and then take an item for much better than it is."""
    return _latent(n_annotators, raised=share, jump=jump, noise=noise)


def false_bad(share: float = 0.25, jump: float = 1.3, noise: float = 0.25, *, n_annotators: int) -> LatentGraders:
    """Return graders who now and then take an item for much worse than it is."""
    return _latent(n_annotators, lowered=share, jump=jump, noise=noise)


def growing(noise: float = 0.15, noise_top: float = 0.9, *, n_annotators: int) -> LatentGraders:
    """Return graders who disagree the more, the better the item."""
    return _latent(n_annotators, noise=noise, noise_top=noise_top)


def _latent(n_annotators: int, noise: float, *, bias: Floats | float = 0.0, **parameters: Any) -> LatentGraders:
    """Latent graders whose parameters are one for all, unless an array is given; others than these have no effect."""
    usual = {"scale": 1.0, "noise": noise, "noise_top": noise, "raised": 0.0, "lowered": 0.0, "jump": 1.0}
    shift = np.broadcast_to(np.asarray(bias, float), positive(n_annotators))
    return LatentGraders(shift, **{**usual, **parameters})


def _noise(z: Floats, low: Floats, top: Floats) -> Floats:
    """Standard deviation of the noise at each relevance."""
    return low + (top - low) * np.clip((z + 1) / 3, 0, 1)


def _probability_below(cut: float, z: Floats, values: Floats) -> Floats:
    """Probability of seeing items of these relevances at or below the cut, for graders of these parameters."""
    from scipy.special import log_ndtr, ndtr

    bias, scale, low, top, raised, lowered, jump = values.T[:, :, None, None]
    noise = _noise(z[None], low, top)
    # kept finite: a level that the truth does not show has an infinite cut
    gap, rate = np.clip((cut - bias - scale * z[None]) / noise, -50, 50), noise / jump

    def with_jump(gap: Floats) -> Floats:
        """Distribution function of a normal plus an exponential, in units of the noise."""
        return np.asarray(ndtr(gap) - np.exp(rate**2 / 2 - rate * gap + log_ndtr(gap - rate)))

    below = np.asarray((1 - raised - lowered) * ndtr(gap))
    if raised.any():
        below += raised * with_jump(gap)
    if lowered.any():
        below += lowered * (1 - with_jump(-gap))
    return below


_MAX_PAIRS = 1 << 21
_MAX_GROUPS_OF_GAPS = 2048


@dataclass(frozen=True, eq=False)
class PlackettLuce(Pool):
    r"""Annotators who rank by Plackett-Luce, and prefer by Bradley-Terry, on the true grades.

    The next item of a ranking is drawn among those left with probability proportional to
    :math:`\exp(c_a g_i)`; with two items that is a logistic preference.

    Parameters
    ----------
    slope
        :math:`c_a`, change of the log odds per unit of grade, per annotator; 0 is guessing, below 0 reversed.

    Examples
    --------
    >>> len(PlackettLuce(np.full(5, 1.5)))
    5
    """

    draws: ClassVar = ("ranking", "preference")
    ranges: ClassVar = {"slope": (-np.inf, np.inf)}
    slope: Floats

    def draw_preferences(self, known: Known, left: Ints, right: Ints, annotator: Ints, rng: Generator) -> Outcomes:
        """Return the outcome of each comparison."""
        from scipy.special import expit

        chance = expit(self.slope[annotator] * (known.grade[left] - known.grade[right]))
        return np.where(rng.random(len(left)) < chance, 1, -1).astype(np.int8)

    def draw_rankings(self, known: Known, lists: Lists, rng: Generator) -> Counts:
        """Return the places in the true order of what comes first, second, ..."""
        row = lists.row
        # the order of scores plus Gumbel noise is a Plackett-Luce ranking
        key = self.slope[lists.annotator][row] * known.grade[lists.item] + rng.gumbel(size=len(row))
        return np.lexsort((-key, row)) - lists.offsets[row]

    def preference_quality(self, known: Known) -> Floats:
        """Return the mean probability of a right answer over pairs of unequal items, or over 2M of them."""
        from scipy.special import expit

        sizes = np.diff(known.items.offsets)
        possible = sizes * (sizes - 1) // 2
        if possible.sum() <= _MAX_PAIRS:
            query, number = all_pairs(sizes)
        else:
            rng = np.random.default_rng(0)
            query = rng.choice(len(sizes), _MAX_PAIRS, p=possible / possible.sum()).astype(np.int32)
            number = (rng.random(_MAX_PAIRS) * possible[query]).astype(np.int64)
        first, second = (known.grade[known.items.offsets[query] + place] for place in pair_places(number))
        gap = np.abs(first - second)
        gap = np.sort(gap[gap > 0])
        if not len(gap):
            return np.full(len(self), np.nan)
        values, counts = np.unique(gap, return_counts=True)
        if len(values) > _MAX_GROUPS_OF_GAPS:
            parts = np.array_split(gap, _MAX_GROUPS_OF_GAPS)
            values, counts = np.array([part.mean() for part in parts]), np.array([len(part) for part in parts])
        slopes, where = np.unique(self.slope, return_inverse=True)
        return np.array([counts / counts.sum() @ expit(slope * values) for slope in slopes])[where]

    def ranking_quality(self, known: Known, lists: Lists) -> Floats:
        """Return the same as for preferences: the order of two items does not depend on the others."""
        return self.preference_quality(known)


@dataclass(frozen=True, eq=False)
class Mallows(Pool):
    r"""Annotators who rank by Mallows' model with Kendall distance: :math:`P(y) \propto \exp(-\theta_a d(y, truth))`.

    Drawn exactly, by inserting the items in true order. [Wu11]_ writes the same with a negative :math:`\theta`.

    Parameters
    ----------
    concentration
        :math:`\theta_a \ge 0`, per annotator; 0 is guessing, large is perfect.

    Examples
    --------
    >>> float(Mallows(np.array([1.0])).expected_distance(2)[0].round(4))
    0.2689
    """

    draws: ClassVar = ("ranking",)
    ranges: ClassVar = {"concentration": (0, np.inf)}
    concentration: Floats

    def draw_rankings(self, known: Known, lists: Lists, rng: Generator) -> Counts:
        """Return the places in the true order of what comes first, second, ..."""
        from .kernels.sampling import insert_all

        theta, place = self.concentration[lists.annotator][lists.row], lists.place
        uniform = rng.random(len(place))
        steps = uniform * (place + 1)
        sure = theta > 0
        share = -np.expm1(-theta[sure] * (place[sure] + 1))
        steps[sure] = -np.log1p(-uniform[sure] * share) / theta[sure]
        return insert_all(np.minimum(steps.astype(np.int64), place), lists.offsets)

    def ranking_quality(self, known: Known, lists: Lists) -> Floats:
        """Return the probability of keeping the order of two unequal items, averaged over the lists."""
        gaps = _gap_counts(known, lists)
        distance = np.flatnonzero(gaps)
        thetas, where = np.unique(self.concentration, return_inverse=True)
        if not len(distance):
            return np.full(len(self), np.nan)
        return np.array([gaps[distance] @ _keep_probability(theta, distance) for theta in thetas])[where] / gaps.sum()

    def expected_distance(self, n_items: int) -> Floats:
        """Return each annotator's expected Kendall distance to the true ranking of ``n_items`` items."""
        distance = np.arange(1, max(n_items, 1))
        pairs = n_items - distance
        return np.array([pairs @ (1 - _keep_probability(theta, distance)) for theta in self.concentration])


class _ClassFunction(Pool):
    """Rankings whose probability depends only on the cycles of the permutation that makes them of the truth."""

    def eigenvalues(self, n_items: int) -> tuple[Floats, Floats]:
        """Return what is left of the linear and of the other part of the order of two items, per annotator."""
        raise NotImplementedError

    def ranking_quality(self, known: Known, lists: Lists) -> Floats:
        """Return the probability of keeping the order of two unequal items, averaged over the lists.

        The order of the places x < y, as a function on pairs, is the sum of its projection 2 (y - x) / n on functions
        g(y) - g(x) and a rest; drawing multiplies each of the two by a number (the characters of the shapes (n-1, 1)
        and (n-2, 1, 1) of the symmetric group).
        """
        pairs, kept = 0.0, np.zeros(len(self))
        for n_items in np.unique(lists.sizes):
            counts = _gap_counts(known, lists, int(n_items))
            if not counts.any():
                continue
            pairs += counts.sum()
            linear = counts @ (2 * np.arange(len(counts)) / n_items)
            first, second = self.eigenvalues(int(n_items))
            kept += linear * first + (counts.sum() - linear) * second
        return (1 + kept / pairs) / 2 if pairs else np.full(len(self), np.nan)


@dataclass(frozen=True, eq=False)
class CayleyMallows(_ClassFunction):
    r"""Annotators who rank by Mallows' model with Cayley distance, the number of swaps between ranking and truth.

    Parameters
    ----------
    concentration
        :math:`\theta_a \ge 0` of :math:`P(y) \propto \exp(-\theta_a d(y, truth))`, per annotator; 0 is guessing.
    """

    draws: ClassVar = ("ranking",)
    ranges: ClassVar = {"concentration": (0, np.inf)}
    concentration: Floats

    def draw_rankings(self, known: Known, lists: Lists, rng: Generator) -> Counts:
        """Return the places in the true order of what comes first, second, ..."""
        from .kernels.sampling import swap_all

        place = lists.place
        # place j is swapped with each of the j before it with weight exp(-theta), with itself with weight 1
        weight = np.exp(-self.concentration[lists.annotator][lists.row])
        drawn = rng.random(len(place)) * (1 + place * weight) - 1
        other = np.where(drawn < 0, place, np.minimum(drawn / np.where(weight > 0, weight, 1), place).astype(np.int64))
        return swap_all(place, other, lists.offsets, lists.offsets)

    def eigenvalues(self, n_items: int) -> tuple[Floats, Floats]:
        """Return what is left of each part: products of 1 + content * exp(-theta) over the boxes of the shape."""
        weight = np.exp(-self.concentration)
        first = (1 - weight) / (1 + (n_items - 1) * weight)
        return first, first * (1 - 2 * weight) / (1 + (n_items - 2) * weight)


@dataclass(frozen=True, eq=False)
class Swaps(_ClassFunction):
    """Annotators who swap two distinct random places of the true ranking, several times, afresh for each query [Wu11]_.

    Parameters
    ----------
    n_swaps
        Number of swaps, per annotator.
    per_items
        Length of the lists that take this many swaps; others take more or fewer in proportion, rounded. ``None`` makes
        the same number in all, which hardly harms long lists.
    """

    draws: ClassVar = ("ranking",)
    ranges: ClassVar = {"n_swaps": (0, np.inf)}
    n_swaps: Counts
    per_items: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "n_swaps", self.n_swaps.astype(np.int64))
        if self.per_items is not None and self.per_items < 1:
            raise ParameterError(f"per_items must be 1 or more, not {self.per_items}")

    def draw_rankings(self, known: Known, lists: Lists, rng: Generator) -> Counts:
        """Return the places in the true order of what comes first, second, ..."""
        from .kernels.sampling import swap_all

        sizes = lists.sizes
        counts = np.where(sizes > 1, self._counts(self.n_swaps[lists.annotator], sizes), 0)
        size = np.repeat(sizes, counts)
        first = (rng.random(len(size)) * size).astype(np.int64)
        second = (rng.random(len(size)) * (size - 1)).astype(np.int64)
        second += second >= first
        return swap_all(first, second, spread_offsets(counts), lists.offsets)

    def eigenvalues(self, n_items: int) -> tuple[Floats, Floats]:
        """Return what is left of each part after all swaps."""
        if n_items < 2:
            return np.ones(len(self)), np.ones(len(self))
        swaps = self._counts(self.n_swaps, np.array(n_items)).astype(float)
        return ((n_items - 3) / (n_items - 1)) ** swaps, ((n_items - 5) / (n_items - 1)) ** swaps

    def _counts(self, n_swaps: Counts, sizes: Counts) -> Counts:
        """Swaps in lists of the given sizes."""
        return n_swaps if self.per_items is None else np.rint(n_swaps * sizes / self.per_items).astype(np.int64)


def ltrma_swaps(*, n_annotators: int, per_items: int | None = None) -> Swaps:
    """Return the annotators of [Wu11]_: the i-th makes 2 i + 1 swaps, for lists of ``per_items`` where that is given.

    Examples
    --------
    >>> ltrma_swaps(n_annotators=4).n_swaps.tolist()
    [3, 5, 7, 9]
    """
    return Swaps(2 * np.arange(1, positive(n_annotators) + 1) + 1, per_items)


def _keep_probability(theta: float, distance: Counts) -> Floats:
    """Probability that Mallows keeps the order of two items that many places apart."""
    # (d + 1) / (1 - q^(d + 1)) - d / (1 - q^d) with q = exp(-theta), which cancels where theta d is small
    near = theta * distance < 1e-3
    series = 0.5 + theta * (2 * distance + 1) / 12
    if theta == 0:
        return series
    longer = (distance + 1) / -np.expm1(-theta * (distance + 1))
    return np.where(near, series, longer - distance / -np.expm1(-theta * distance))


def _gap_counts(known: Known, lists: Lists, n_items: int | None = None) -> Counts:
    """Number of pairs of unequal items by how many places they are apart, over the lists (of one length)."""
    kept = lists.sizes > 0 if n_items is None else lists.sizes == n_items
    chosen = kept[lists.row]
    grade, row = known.grade[lists.item[chosen]], lists.row[chosen]
    # equal items stand side by side, since lists are in true order
    new = (np.diff(grade, prepend=np.nan) != 0) | (np.diff(row, prepend=-1) != 0)
    runs = np.diff(np.flatnonzero(new), append=len(row))
    longest = int(lists.sizes.max(initial=1))
    return _pairs_apart(lists.sizes[kept], longest) - _pairs_apart(runs, longest)


def _pairs_apart(lengths: Counts, longest: int) -> Counts:
    """Number of pairs 0, 1, 2, ... places apart in stretches of the given lengths; none 0 apart."""
    at_least = np.cumsum(np.bincount(lengths, minlength=longest + 1)[::-1])[::-1]
    # a stretch of length n has n - d pairs d apart
    apart = np.append(np.cumsum(at_least[::-1])[::-1][1:], 0)
    apart[0] = 0
    return apart
