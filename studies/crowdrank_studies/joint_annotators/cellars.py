"""Wines, and annotators of known flip rates who compare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crowdrank.data.features import Features
from crowdrank.data.index import Items
from crowdrank.data.judgments import Preferences
from crowdrank.metrics import pair_accuracy
from crowdrank.protocols import Counts, Floats, Ints
from crowdrank.simulate import Flips, preferences

from ..work import Work
from .schemes import BORDA, IAM, LEARNED_PAIRS, Pairs, fuse, independent, printed_steps

DECISIVE = ("volatile acidity", "total sulfur dioxide", "sulphates", "alcohol")
"""Measurements by which pairs are put into groups, where annotators' noise depends on the pair."""

VARYING = (0.07, 0.14, 0.21, 0.28, 0.35, 0.42)
"""Flip rates that are dealt out again among annotators in each of these groups."""


@dataclass(frozen=True, eq=False)
class Cellar:
    """Wines of a colour: measurements, quality, and all pairs of unequal quality."""

    features: Features
    grade: Floats

    @classmethod
    def load(cls, work: Work, colour: str) -> Cellar:
        """Return the wines of a colour."""
        data = work.load(f"wine-quality/{colour}")
        assert data.features is not None
        assert data.truth is not None
        return cls(data.features, data.truth.align(data.features.items))

    @cached_property
    def all_pairs(self) -> tuple[Ints, Ints]:
        """Both items of each pair."""
        first, second = np.triu_indices(len(self.grade), 1)
        unequal = self.grade[first] != self.grade[second]
        return first[unequal].astype(np.int32), second[unequal].astype(np.int32)

    @property
    def n_pairs(self) -> int:
        """Number of pairs of unequal quality."""
        counts = np.unique(self.grade, return_counts=True)[1]
        return int((len(self.grade) ** 2 - (counts**2).sum()) // 2)

    def draw_pairs(self, n: int | None, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return this many of the pairs, or all."""
        left, right = self.all_pairs
        if n is None or n >= len(left):
            return left, right
        chosen = np.sort(rng.choice(len(left), n, replace=False))
        return left[chosen], right[chosen]

    def group(self, left: Ints, right: Ints) -> Counts:
        """Return which of four measurements tells the items of each pair apart most."""
        columns = [self.features.names.index(name) for name in DECISIVE]
        scaled = self.features.matrix[:, columns] / self.features.matrix[:, columns].std(axis=0)
        groups: Counts = np.abs(scaled[left] - scaled[right]).argmax(axis=1)
        return groups


@dataclass(frozen=True, eq=False)
class _Everybody:
    """Every one of some pairs is judged by all; a design as those of simulated preferences."""

    left: Ints
    right: Ints

    def rows(self, items: Items, n_annotators: int, *, seed: Any = 0) -> tuple[Ints, Ints, Ints]:
        """Return left item, right item and annotator of each preference."""
        annotator = np.tile(np.arange(n_annotators, dtype=np.int32), len(self.left))
        return np.repeat(self.left, n_annotators), np.repeat(self.right, n_annotators), annotator


@dataclass(frozen=True, eq=False)
class Tasters:
    """Annotators who judge all pairs, or some; drawn when they are first needed.

    Parameters
    ----------
    cellar
        What they judge.
    flips
        Flip rate of each annotator; or ``None``, for rates that depend on the pair.
    n_pairs
        Number of pairs, drawn at random; ``None`` for all.
    seed
        Seed of pairs and answers.
    """

    cellar: Cellar
    flips: Floats | None
    n_pairs: int | None
    seed: int

    @cached_property
    def judgments(self) -> Preferences:
        """What they answer."""
        pair_rng, deal_rng, answer_rng = np.random.default_rng(self.seed).spawn(3)
        left, right = self.cellar.draw_pairs(self.n_pairs, pair_rng)
        if self.flips is not None:
            return self._answers(self.flips, left, right, answer_rng)
        group = self.cellar.group(left, right)
        parts = [
            self._answers(deal_rng.permutation(VARYING), left[group == one], right[group == one], answer_rng)
            for one in range(len(DECISIVE))
        ]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("left", "right", "outcome", "annotator")
        }
        return replace(parts[0], **columns)

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs they judge."""
        return Pairs.of(self.judgments)

    def measure(self, scheme: str) -> Mapping[str, Any]:
        """Return right pairs among the judged ones and right pairs by the scores among all, and flip rates.

        Rankers of single annotators know nothing of votes when they tell pairs, so theirs are all pairs.
        """
        if scheme == IAM:
            order = self._order(independent(self.judgments, self.cellar.features, self.pairs, seed=self.seed))
            return {"pairs": order, "order": order, "flips": None}
        fusion = fuse(scheme, self.judgments, self.cellar.features, self.pairs, seed=self.seed)
        right = None if scheme == BORDA else fusion.accuracy(self.pairs.truth(self.cellar.grade))
        ranked = None if fusion.scores is None else self._order(fusion.scores)
        return {"pairs": right, "order": ranked, "flips": fusion.flips}

    def single_rankers(self) -> Mapping[str, Any]:
        """Return right pairs by the ranker of each annotator alone."""
        everybody = range(self.judgments.n_annotators)
        scores = (independent(self.judgments, self.cellar.features, self.pairs, only=one) for one in everybody)
        return {"pairs": [self._order(own) for own in scores]}

    def printed_steps(self) -> Mapping[str, Any]:
        """Return right pairs by the papers' own optimisers."""
        truth = self.pairs.truth(self.cellar.grade)
        return printed_steps(self.judgments, self.cellar.features, self.pairs, truth, seed=self.seed)

    def fewer(self) -> Tasters:
        """Return tasters of the same kind with no more pairs than rankers learn from."""
        few = self.n_pairs is not None and self.n_pairs <= LEARNED_PAIRS
        return self if few else replace(self, n_pairs=LEARNED_PAIRS)

    def _answers(self, flips: Floats, left: Ints, right: Ints, rng: np.random.Generator) -> Preferences:
        """Answers of annotators with given flip rates to given pairs."""
        design: Any = _Everybody(left, right)
        drawn = preferences((self.cellar.features.items, self.cellar.grade), Flips(flips), design, seed=rng).judgments
        assert isinstance(drawn, Preferences)
        return drawn

    def _order(self, scores: Floats) -> float:
        """Share of all pairs that scores put in the right order, in per cent."""
        return 100 * float(pair_accuracy(self.cellar.grade, scores))


def limits(flips: Floats) -> tuple[float, float]:
    """Return how many pairs a majority tells right, and how many anybody could who knew the flip rates, in per cent.

    Both are exact: every pattern of right and wrong votes is gone through.
    """
    right = (np.arange(2 ** len(flips))[:, None] >> np.arange(len(flips)) & 1).astype(bool)
    chance, mirrored = np.where(right, 1 - flips, flips).prod(axis=1), np.where(right, flips, 1 - flips).prod(axis=1)
    lead = np.sign(2 * right.sum(axis=1) - len(flips))
    return 100 * float(chance @ (1 + lead) / 2), 100 * float(np.maximum(chance, mirrored).sum() / 2)
