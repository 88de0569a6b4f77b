"""Pools of graders: confusion matrices, and graders who cut a latent relevance that they see with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import ParameterError
from ..protocols import Floats, Ints
from .known import Known, Seed
from .pools import Pool, check_range, positive

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

    draws: ClassVar[tuple[str, ...]] = ("grade",)
    matrices: Floats

    def __post_init__(self) -> None:
        matrices = check_range("a probability of a confusion matrix", self.matrices, 0, 1)
        if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
            raise ParameterError(f"confusion matrices have shape (annotators, levels, levels), not {matrices.shape}")
        off = np.abs(matrices.sum(axis=2) - 1)
        if (off > 1e-6).any():
            annotator, level = np.unravel_index(int(off.argmax()), off.shape)
            total = matrices[annotator, level].sum()
            raise ParameterError(
                f"row {level} of confusion matrix {annotator} sums to {total:g}; each row must sum to 1"
            )
        object.__setattr__(self, "matrices", matrices)

    def __len__(self) -> int:
        return len(self.matrices)

    def parameters(self) -> dict[str, Floats]:
        """Return the mean of the diagonal, and every entry as its own column (true level, then given level)."""
        n_levels = self.matrices.shape[1]
        entries = {f"p_{t}_{g}": self.matrices[:, t, g] for t in range(n_levels) for g in range(n_levels)}
        return {"accuracy": np.einsum("akk->a", self.matrices) / n_levels, **entries}

    def prepare(self, known: Known, rng: np.random.Generator) -> Known:
        """Return the truth, once it is clear that it has as many levels as the matrices."""
        if known.n_levels != self.matrices.shape[1]:
            raise ParameterError(
                f"the confusion matrices are of {self.matrices.shape[1]} levels, the truth of {known.n_levels}; "
                "make them equal or name all levels with levels="
            )
        return known

    def draw_grades(self, known: Known, item: Ints, annotator: Ints, rng: np.random.Generator) -> Ints:
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

    draws: ClassVar[tuple[str, ...]] = ("grade",)
    columns: ClassVar[tuple[str, ...]] = ("bias", "scale", "noise", "noise_top", "raised", "lowered", "jump")
    bias: Floats
    scale: Floats
    noise: Floats
    noise_top: Floats
    raised: Floats
    lowered: Floats
    jump: Floats

    def __post_init__(self) -> None:
        ranges = {"raised": (0.0, 1.0), "lowered": (0.0, 1.0), "bias": (-np.inf, np.inf), "scale": (-np.inf, np.inf)}
        for name in self.columns:
            low, high = ranges.get(name, (1e-9, np.inf))
            object.__setattr__(self, name, check_range(name, getattr(self, name), low, high, len(self.bias)))
        check_range("raised and lowered together", self.raised + self.lowered, 0, 1 + 1e-9)

    def prepare(self, known: Known, rng: np.random.Generator) -> Known:
        """Return the truth with a latent relevance, drawn given the grades where there is none."""
        return known.with_latent(rng)

    def draw_grades(self, known: Known, item: Ints, annotator: Ints, rng: np.random.Generator) -> Ints:
        """Return the level each annotator gives each item."""
        noise_rng, side_rng, jump_rng = rng.spawn(3)
        relevance, cuts = known.latent
        z = relevance[item]
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
        z, values = _support(known), np.stack([getattr(self, name)[annotator] for name in self.columns], axis=1)
        distinct, where = np.unique(values, axis=0, return_inverse=True)
        below = np.stack([_probability_below(cut, z, distinct).mean(axis=2) for cut in known.latent[1]], axis=2)
        edges = np.zeros((len(distinct), known.n_levels, 1))
        return np.asarray(np.diff(np.concatenate([edges, below, edges + 1], axis=2), axis=2)[where.ravel()])


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


def _latent(
    n_annotators: int,
    *,
    bias: Floats | float = 0.0,
    scale: Floats | float = 1.0,
    noise: float = 0.5,
    noise_top: float | None = None,
    raised: float = 0.0,
    lowered: float = 0.0,
    jump: float = 1.0,
) -> LatentGraders:
    """Latent graders whose parameters are one for all, unless an array is given."""
    top = noise if noise_top is None else noise_top
    values = (bias, scale, noise, top, raised, lowered, jump)
    return LatentGraders(*(np.broadcast_to(np.asarray(v, float), positive(n_annotators)) for v in values))


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


def _support(known: Known) -> Floats:
    """Relevances that stand for the items of each level, shape (n_levels, n_support): means of equal parts."""
    relevance, _ = known.latent
    support = np.zeros((known.n_levels, _SUPPORT))
    for level in range(known.n_levels):
        z = np.sort(relevance[known.level == level])
        if len(z) >= _SUPPORT:
            support[level] = [part.mean() for part in np.array_split(z, _SUPPORT)]
        elif len(z):
            support[level] = np.quantile(z, (np.arange(_SUPPORT) + 0.5) / _SUPPORT, method="inverted_cdf")
    return support
