"""Preferences of which each round compares items that stand close to each other by the answers so far."""

import warnings
from typing import NamedTuple

import numpy as np

import crowdrank as cr
from crowdrank.errors import DataWarning


class Campaign(NamedTuple):
    """Preferences in the order in which they were asked, true scores by item code, and each preference's slope."""

    preferences: cr.Preferences
    scores: np.ndarray
    slope: np.ndarray

    def expected_loss(self, found: np.ndarray) -> float:
        """Expected log-loss of fresh answers to the same questions, predicted by these scores on their own scale."""
        left, right = self.preferences.left, self.preferences.right
        chance = 1.0 / (1.0 + np.exp(-self.slope * (self.scores[left] - self.scores[right])))
        gap = found[left] - found[right]
        return float(np.mean(chance * np.logaddexp(0.0, -gap) + (1.0 - chance) * np.logaddexp(0.0, gap)))


def campaign(
    seed: int, *, n_items: int = 168, per_item: int = 14, spread: float = 2.0, n_annotators: int = 9,
    slope_sd: float = 0.3, adaptive: bool = True,
) -> Campaign:  # fmt: skip
    """Simulate ``per_item`` rounds; in each, items are sorted by a running rating, and neighbours meet."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0.0, spread, n_items)
    slopes = rng.normal(1.0, slope_sd, n_annotators)
    standing = np.zeros(n_items)
    rows = []
    for _ in range(per_item):
        order = np.argsort(standing + rng.normal(0.0, 0.5, n_items)) if adaptive else rng.permutation(n_items)
        # neighbours in groups of six, in random pairs
        order = np.concatenate([rng.permutation(order[start : start + 6]) for start in range(0, n_items, 6)])
        for left, right in zip(order[::2].tolist(), order[1::2].tolist(), strict=True):
            who = int(rng.integers(n_annotators))
            won = rng.random() < 1.0 / (1.0 + np.exp(-slopes[who] * (scores[left] - scores[right])))
            rows.append((who, left, right, won))
            # a running rating, as adaptive comparison tools keep one
            lead = 1.0 / (1.0 + np.exp(standing[right] - standing[left]))
            standing[left] += 0.7 * (won - lead)
            standing[right] -= 0.7 * (won - lead)
    table = {
        "left": [f"i{left:04d}" for _, left, _, _ in rows],
        "right": [f"i{right:04d}" for _, _, right, _ in rows],
        "annotator": [f"a{who:03d}" for who, _, _, _ in rows],
        "winner": ["left" if won else "right" for _, _, _, won in rows],
    }
    with warnings.catch_warnings():
        # chance asks one annotator about a pair again
        warnings.simplefilter("ignore", DataWarning)
        preferences = cr.Preferences.from_frame(table)
    codes = np.array([int(str(item)[1:]) for item in preferences.items.ids])
    return Campaign(preferences, scores[codes], slopes[[who for who, _, _, _ in rows]])
