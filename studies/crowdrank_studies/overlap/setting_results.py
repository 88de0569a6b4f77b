"""What rankers reached, by collection, noise, ranker and setting."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crowdrank.protocols import Floats

from .settings import BASELINE

Key = tuple[str, str, str]
"""Collection, noise and ranker."""


class Results:
    """Figures of every repetition, which stand in the same order everywhere, so settings compare in pairs."""

    def __init__(self) -> None:
        self._found: dict[tuple[Key, str], list[Mapping[str, float]]] = {}

    def add(self, key: Key, setting: str, figures: Mapping[str, float]) -> None:
        """Take in one repetition."""
        self._found.setdefault((key, setting), []).append(figures)

    def __contains__(self, key: object) -> bool:
        return any(key == one for one, _ in self._found)

    @property
    def keys(self) -> list[Key]:
        """Collections, noises and rankers, in the order they were run."""
        return list(dict.fromkeys(key for key, _ in self._found))

    def settings(self, key: Key) -> list[str]:
        """Return the settings that were compared."""
        return [setting for one, setting in self._found if one == key]

    def values(self, key: Key, setting: str, measure: str = "nDCG@3") -> tuple[float, ...]:
        """Return the figure of each repetition."""
        return tuple(figures[measure] for figures in self._found[key, setting])

    def difference(self, key: Key, first: str, second: str = BASELINE, measure: str = "nDCG@3") -> Floats:
        """Return first less second in each repetition."""
        return np.subtract(self.values(key, first, measure), self.values(key, second, measure))

    def gain(self, key: Key, setting: str) -> float:
        """Return the mean nDCG@3 above that of the baseline."""
        return float(np.mean(self.difference(key, setting)))

    def pool(self, keys: list[Key], first: str, second: str = BASELINE) -> Floats:
        """Return first less second in each repetition, the mean over several collections, noises or rankers."""
        differences: Floats = np.mean([self.difference(key, first, second) for key in keys], axis=0)
        return differences
