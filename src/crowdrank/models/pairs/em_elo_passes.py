"""EM-Elo over parts of the preferences: qualities are shared, winners and scores are those of the parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...data.consensus import settle_ties
from ...data.judgments import Preferences
from ...data.parted import PartColumns, PartedFit, read_sample, share_of_rows
from ...protocols import Blocks, Bools, Floats, Statistics
from ...quality import quality_of_sample, warn_near_chance
from .em_elo import (
    PairOutcomes,
    elo_scores,
    expect_good,
    expected_outcomes,
    expected_winners,
    learn_matrices,
    learn_qualities,
    matrix_qualities,
    pair_leads,
)


@dataclass(frozen=True, eq=False)
class _EloPart:
    """The preferences of a part, and those that the model takes, laid out when it is known whether there are ties."""

    preferences: Preferences
    used: Preferences
    n_annotators: int
    _laid_out: dict[tuple[bool, bool], tuple[PairOutcomes, Any]] = field(default_factory=dict)

    def outcomes(self, tied: bool, sides: bool) -> tuple[PairOutcomes, Any]:
        """Return the outcomes by pair, and the same packed; a part keeps them from pass to pass."""
        if (tied, sides) not in self._laid_out:
            pairs = PairOutcomes.of(self.used, self.n_annotators, tied=tied)
            self._laid_out[tied, sides] = pairs, pairs.pack(sides=sides)
        return self._laid_out[tied, sides]


@dataclass(frozen=True, eq=False)
class EMEloPasses:
    """The fit of EM-Elo to preferences in parts."""

    method: Any
    judged: Any
    trusted: Bools

    def lay_out(self, part: Preferences) -> _EloPart:
        """Return the preferences of a part."""
        used = part if self.method.model == "confusion" else part.select(part.outcome != 0)
        return _EloPart(part, used, max(len(self.judged.annotators), 1))

    def solve(self, sums: Blocks) -> PartedFit:
        """Return the scores and the qualities."""
        number, given, n_ties = sums.total(_numbers)
        trusted = self.trusted if len(self.trusted) else np.zeros(1, bool)
        tied = bool(n_ties)
        matrices: tuple[Floats, Floats] | None = None
        if self.method.model == "confusion":
            confusion, shares, trace = learn_matrices(
                lambda *of_classes: sums.total(partial(_count_outcomes, tied, of_classes))[0], self.method, trusted,
                3 if tied else 2,
            )  # fmt: skip
            eta, matrices = matrix_qualities(confusion), (confusion, shares)
        else:
            eta, trace = learn_qualities(partial(_expected_of_all, sums), self.method, trusted, number)
        if number.any() and not trusted.any():
            warn_near_chance("em_elo", eta, number)
        if self.method.min_quality > 0:
            expect_good(self.method, eta, number)
        read = partial(_read_scores, self.method, tied, eta, matrices)
        columns = [PartColumns(*scores) for scores in sums.read(read)]
        sample = partial(read_sample, _preferences, given, share_of_rows(self.judged.rows))
        quality = quality_of_sample(self.method, [part for (part,) in sums.read(sample)], given, {"eta": eta})
        return PartedFit(columns, trace, quality)


def _preferences(part: _EloPart) -> Preferences:
    """All preferences of a part."""
    return part.preferences


def _numbers(part: _EloPart, state: Any) -> tuple[Statistics, Any]:
    """Weight of each annotator's preferences that the model takes, and of all, and the number of ties among those."""
    weights = [_weights(preferences, part.n_annotators) for preferences in (part.used, part.preferences)]
    return (*weights, float((part.used.outcome == 0).sum())), None


def _expected_of_all(sums: Blocks, eta: Floats) -> tuple[float, Floats]:
    """Log-likelihood of all parts, and expected right preferences of each annotator."""
    log_likelihood, agreed = sums.total(partial(_expect, eta))
    return float(log_likelihood), agreed


def _weights(preferences: Preferences, n_annotators: int) -> Floats:
    """Weight of each annotator's preferences."""
    by = preferences.row_annotator
    return np.bincount(by, preferences.weight, n_annotators).astype(np.float64)


def _expect(eta: Floats, part: _EloPart, state: Any) -> tuple[Statistics, Any]:
    """Log-likelihood of a part, and expected right preferences of each annotator."""
    return expected_winners(part.outcomes(False, False)[1], eta), None


def _count_outcomes(tied: bool, of_classes: Any, part: _EloPart, state: Any) -> tuple[Statistics, Any]:
    """Expected outcomes of each annotator in a part."""
    return (expected_outcomes(part.outcomes(tied, True)[1], *of_classes),), None


def _read_scores(
    method: Any, tied: bool, eta: Floats, matrices: Any, part: _EloPart, state: Any
) -> tuple[Statistics, Any]:
    """Scores of the items of a part."""
    pairs = part.outcomes(tied, matrices is not None)[0]
    scores = elo_scores(method, pairs, pair_leads(pairs, method, eta, matrices), part.preferences.items.offsets)
    return (settle_ties(method, part.preferences, scores), None, None, None, None), None
