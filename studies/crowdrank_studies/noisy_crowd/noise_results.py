"""What all runs of the study of noisy crowds found, by noise, method and budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from crowdrank.protocols import Floats

from .kumar_figures import MEAN

MEASURES = ("rank", "MAP", "label")


class Results:
    """Figures of every run; runs stand in the same order everywhere, so methods compare in pairs.

    Parameters
    ----------
    noises
        Kinds of noise.
    budgets
        Further grades L.
    runs
        Noise and what ``crowds`` found, run after run.
    """

    def __init__(
        self, noises: Sequence[str], budgets: Sequence[int], runs: Iterable[tuple[str, Mapping[str, Sequence[float]]]]
    ) -> None:
        self.noises, self.budgets = list(noises), list(budgets)
        self._found: dict[tuple[str, str, str], list[Sequence[float]]] = {}
        for noise, cell in runs:
            for name, figures in cell.items():
                method, _, extra = name.rpartition("|")
                self._found.setdefault((noise, method, extra), []).append(figures)

    def extras(self, method: str) -> list[int]:
        """Return the budgets that a method was run with."""
        return [extra for extra in self.budgets if (self.noises[0], method, str(extra)) in self._found]

    def values(self, noise: str, method: str, extra: str, measure: str) -> tuple[float, ...]:
        """Return the figure of each run, the mean over budgets above 0 where ``extra`` says so."""
        if extra == MEAN:
            several = [self.values(noise, method, str(one), measure) for one in self.budgets if one]
            return tuple(np.mean(several, axis=0).tolist())
        return tuple(run[MEASURES.index(measure)] for run in self._found[noise, method, extra])

    def mean(self, noise: str, method: str, extra: str, measure: str) -> float:
        """Return the mean over runs."""
        return float(np.mean(self.values(noise, method, extra, measure)))

    def difference(
        self, first: str, second: str, *, noise: str | None = None, least: int = 1, measure: str = "rank"
    ) -> Floats:
        """Return first less second for each run, the mean over noises and budgets of at least ``least``."""
        noises = self.noises if noise is None else [noise]
        several = [
            np.subtract(self.values(n, first, str(extra), measure), self.values(n, second, str(extra), measure))
            for n in noises
            for extra in self.budgets
            if extra >= least
        ]
        differences: Floats = np.mean(several, axis=0)
        return differences

    def less_single(self, method: str) -> tuple[float, ...]:
        """Return how much a method ranks better than single labelling in each run, over all noises and budgets."""
        return tuple(self.difference(method, "SL").tolist())

    def points(self, method: str) -> tuple[list[float], list[float]]:
        """Return label and rank accuracy for each noise and budget."""
        cells = [(noise, str(extra)) for noise in self.noises for extra in self.extras(method) if extra]
        labels = [self.mean(noise, method, extra, "label") for noise, extra in cells]
        return labels, [self.mean(noise, method, extra, "rank") for noise, extra in cells]
