"""What all runs on OHSUMED found, by kind of swaps, method, measure and number of annotators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crowdrank.protocols import Floats

from ..work import Cell

SWAPS = ("2i+1", "scaled")
MEASURES = ("nDCG@3", "nDCG@5", "MAP")
ERROR, ALIKE, TAU = "error of theta", "correlation of theta", "tau of consensus"


class Results:
    """Figures of every run; runs stand in the same order everywhere, so methods compare in pairs.

    Parameters
    ----------
    sizes
        Numbers of annotators.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = list(sizes)
        self._found: dict[tuple[str, str, str, int], list[float]] = {}

    def add(self, swaps: str, size: int, cell: Cell) -> None:
        """Take over one run."""
        for method, figures in cell.items():
            for measure, value in figures.items():
                self._found.setdefault((swaps, method, measure, size), []).append(value)

    def has(self, method: str, measure: str) -> bool:
        """Return whether a method was measured so."""
        return (SWAPS[0], method, measure, self.sizes[0]) in self._found

    def values(self, swaps: str, method: str, measure: str, size: int | None = None) -> list[float]:
        """Return the figure of each run, the mean over the numbers of annotators unless one is given."""
        if size is None:
            means: list[float] = np.mean(
                [self.values(swaps, method, measure, one) for one in self.sizes], axis=0
            ).tolist()
            return means
        return self._found[swaps, method, measure, size]

    def mean(self, swaps: str, method: str, measure: str, size: int | None = None) -> float:
        """Return the mean over runs."""
        return float(np.mean(self.values(swaps, method, measure, size)))

    def less(self, swaps: str, first: str, second: str, measure: str, size: int | None = None) -> Floats:
        """Return first less second for each run."""
        one, two = (self.values(swaps, method, measure, size) for method in (first, second))
        differences: Floats = np.subtract(one, two)
        return differences
