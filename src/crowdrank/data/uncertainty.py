"""Intervals and comparisons of scores, from replicates, covariance or standard errors, whichever is at hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..protocols import Floats
from .index import Items

N_DRAWS = 1000
_DRAW_CELLS = 20_000_000


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Scores of items and what is known of their spread."""

    method: str
    items: Items
    scores: Floats
    std_error: Floats | None
    covariance: tuple[Floats | None, ...] | None
    replicates: NDArray[np.float32] | None

    @property
    def basis(self) -> str | None:
        """Name of the best source there is."""
        if self.replicates is not None:
            return "replicates"
        if self.covariance is not None and all(block is not None for block in self.covariance):
            return "covariance"
        if self.covariance is not None and self.std_error is not None:
            return "covariance, std_error in large queries"
        return "std_error" if self.std_error is not None else None

    def intervals(self, level: float) -> dict[str, Floats]:
        """Return lower and upper score and rank of each item, (n_items,) each."""
        self._require()
        tail = (1 - level) / 2
        found = {name: np.empty(len(self.scores)) for name in ("lower", "upper", "rank_lower", "rank_upper")}
        for query in range(self.items.n_queries):
            part = slice(int(self.items.offsets[query]), int(self.items.offsets[query + 1]))
            if part.start == part.stop:
                continue
            draws = self.draws(query)
            ranks = _ranks_of_draws(draws)
            if self.replicates is not None:
                found["lower"][part], found["upper"][part] = np.quantile(draws, [tail, 1 - tail], axis=0)
            else:
                half = _normal_quantile(1 - tail) * self._spread(query)
                found["lower"][part], found["upper"][part] = self.scores[part] - half, self.scores[part] + half
            bounds = np.quantile(ranks, [tail, 1 - tail], axis=0, method="nearest")
            found["rank_lower"][part], found["rank_upper"][part] = bounds
        return {name: values.astype(np.int32) if "rank" in name else values for name, values in found.items()}

    def beats(self, a: int, b: int) -> float:
        """Return the probability that item code ``a`` scores above item code ``b``; ties count half."""
        self._require()
        if a == b:
            raise ParameterError("an item cannot be compared with itself; name two items")
        if self.replicates is not None:
            difference = self.replicates[:, a] - self.replicates[:, b]
            return float(np.mean((difference > 0) + 0.5 * (difference == 0)))
        query = int(self.items.query[a])
        start = int(self.items.offsets[query])
        block = self._block(query)
        if block is not None:
            i, j = a - start, b - start
            variance = float(block[i, i] + block[j, j] - 2 * block[i, j])
        else:
            assert self.std_error is not None
            variance = float(self.std_error[a] ** 2 + self.std_error[b] ** 2)
        gap = float(self.scores[a] - self.scores[b])
        if variance <= 0:
            return 0.5 * (1 + float(np.sign(gap)))
        return _normal_probability(gap / variance**0.5)

    def draws(self, query: int, n_draws: int = N_DRAWS, seed: int = 0) -> Floats:
        """Return plausible scores of the items of a query, (n_draws, items of the query)."""
        part = slice(int(self.items.offsets[query]), int(self.items.offsets[query + 1]))
        if self.replicates is not None:
            return self.replicates[:, part].astype(np.float64)
        rng = np.random.default_rng([seed, query])
        n = part.stop - part.start
        n_draws = max(100, min(n_draws, _DRAW_CELLS // max(n, 1)))
        noise = rng.standard_normal((n_draws, n))
        block = self._block(query)
        if block is None:
            return self.scores[part] + noise * self._spread(query)
        values, vectors = np.linalg.eigh(block)
        correlated: Floats = noise @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        return self.scores[part] + correlated

    def _block(self, query: int) -> Floats | None:
        """Covariance of a query's scores, if there is one."""
        return None if self.covariance is None else self.covariance[query]

    def _spread(self, query: int) -> Floats:
        """Standard error of each item of a query."""
        part = slice(int(self.items.offsets[query]), int(self.items.offsets[query + 1]))
        if self.std_error is not None:
            return self.std_error[part]
        block = self._block(query)
        assert block is not None
        return np.sqrt(np.maximum(np.diag(block), 0.0))

    def _require(self) -> None:
        """Say what to do when nothing is known of the spread."""
        if self.basis is None:
            raise ParameterError(
                f"{self.method} gives no uncertainty; use a method with standard errors, such as bradley_terry"
            )


def _ranks_of_draws(draws: Floats) -> NDArray[np.int32]:
    """Rank of each item in each draw; the draws are continuous, so ties are left to the order of the items."""
    order = np.argsort(-draws, axis=1, kind="stable")
    ranks = np.empty(draws.shape, np.int32)
    np.put_along_axis(ranks, order, np.arange(1, draws.shape[1] + 1, dtype=np.int32)[None, :], axis=1)
    return ranks


def _normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def _normal_probability(value: float) -> float:
    """Distribution function of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().cdf(value)
