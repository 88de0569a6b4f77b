"""A noisy crowd of Kumar and Lease: its grades, what is made of them and how well a ranker learns from that."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...aggregators import MajorityVote, NaiveBayes
from ...data.consensus import Consensus
from ...data.features import Features
from ...data.index import Items
from ...data.judgments import Grades
from ...data.truth import Truth
from ...datasets import Dataset, Fold
from ...metrics import average_precision, ndcg
from ...protocols import Bools, Counts, Floats, Ints
from ...rankers import ListNet
from ...simulate import OneCoin, RoundRobin, grades, log_normal, normal, uniform
from .printed import EXTRA, SEED_SIZE

POOL = 100
_LEVELS = (0.0, 1.0, 2.0)
_PILOT = 5
"""Grades of an item of the pilot."""

NOISES: dict[str, tuple[Callable[..., OneCoin], float, float]] = {
    "N(0.7,0.2)": (normal, 0.7, 0.2),
    "N(0.5,0.2)": (normal, 0.5, 0.2),
    "N(0.4,0.2)": (normal, 0.4, 0.2),
    "lnN(0.4,0.2)": (log_normal, 0.4, 0.2),
    "U(0.2,0.6)": (uniform, 0.2, 0.6),
}
"""How the accuracies of annotators are drawn; mean and standard deviation are those of the accuracy itself."""

PAPER = ("SL", "MV", "NB given", "NB learned")
"""Methods of the paper, which does not say where naive Bayes has the accuracies from."""

FIXED = ("SL, reversed fixed", "MV, reversed fixed")
"""The same after grades by annotators below 1/3 were exchanged for another at random."""

IMPROVED = (
    "NB given, expected grade",
    "NB learned, expected grade",
    "NB learned, shares estimated",
    "NB learned, shares estimated, expected grade",
    "three grades an item, learned, expected grade",
    "pilot, expected grade",
    "SL given, expected grade",
)

Found = dict[str, list[float]]
"""``"method|L"`` -> nDCG@10, MAP and share of right labels, in per cent."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a data set."""

    matrix: Any
    grade: Floats
    query: Ints

    @classmethod
    def of(cls, features: Features, grade: Floats, rows: Counts) -> Part:
        """Return some of the rows."""
        return cls(features.matrix[rows], grade[rows], features.items.query[rows])


@dataclass(frozen=True, eq=False)
class Split:
    """One fold: what the crowd grades, and experts' grades to choose by and to measure on."""

    truth: Truth
    train: Part
    vali: Part
    test: Part

    @classmethod
    def of(cls, data: Dataset, fold: Fold) -> Split:
        """Return a fold of a data set."""
        features = data.features
        assert features is not None
        assert data.truth is not None
        query, grade = features.items.query_ids(), data.truth.align(features.items)
        rows = [np.flatnonzero(query.is_in(list(ids)).to_numpy()) for ids in (fold.train, fold.vali, fold.test)]
        train = rows[0]
        # items of the table stand in the order of the features, so that codes are places in ``train``
        known = {"query": query.gather(train), "item": features.items.ids.gather(train), "grade": grade[train]}
        return cls(Truth.from_frame(known), *(Part.of(features, grade, chosen) for chosen in rows))

    def learned(self, item: Any, target: Floats) -> tuple[float, float]:
        """NDCG@10 and MAP, in per cent, of a ranker that learned these targets."""
        train, vali, test = self.train, self.vali, self.test
        held = {"eval_set": (vali.matrix, vali.grade), "eval_qid": vali.query}
        scores = np.zeros(len(test.grade))
        # a consensus that puts all items on one level teaches nothing, and leaves them tied
        if _contrast(target, train.query[item]):
            ranker = ListNet(solver="paper", scale="none").fit(
                train.matrix[item], target, qid=train.query[item], **held
            )
            scores = ranker.predict(test.matrix)
        found = ndcg(test.grade, scores, test.query), average_precision(test.grade, scores, test.query)
        return 100 * float(found[0]), 100 * float(found[1])


def _contrast(target: Floats, query: Ints) -> bool:
    """Whether some query has items of different targets."""
    order = np.argsort(query, kind="stable")
    same = query[order][1:] == query[order][:-1]
    return bool((np.diff(target[order])[same] != 0).any())


def clean(split: Split, seed: int) -> Found:
    """Return single labelling without noise at every budget."""
    order = np.random.default_rng(seed).permutation(len(split.train.grade))
    found = {}
    for extra in EXTRA:
        item = order[: SEED_SIZE + extra]
        found[f"SL|{extra}"] = [*split.learned(item, split.train.grade[item]), 100.0]
    return found


def noisy(split: Split, noise: str, seed: int, budgets: tuple[int, ...], *, improved: bool = True) -> Found:
    """Return all methods at every budget with one noise; all see the same annotators and the same first grades."""
    draw, first, second = NOISES[noise]
    crowd = _Crowd(split, draw(first, second, n_annotators=POOL, seed=seed), seed)
    found: Found = {}
    with warnings.catch_warnings():
        # crowds close to guessing are what is studied
        warnings.simplefilter("ignore")
        for extra in budgets:
            for name, outcome in crowd.outcomes(extra, improved=improved).items():
                found[f"{name}|{extra}"] = [*split.learned(outcome.item, outcome.target), outcome.right]
    return found


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Items with what a ranker is to learn of them, and the share of right labels in per cent."""

    item: Any
    target: Floats
    right: float


@dataclass(frozen=True, eq=False)
class _Crowd:
    """The annotators of one run."""

    split: Split
    pool: OneCoin
    seed: int

    def bought(self, design: Any) -> Grades:
        """Grades that a design asks for."""
        found = grades(self.split.truth, self.pool, design, levels=_LEVELS, seed=self.seed).judgments
        assert isinstance(found, Grades)
        return found

    def outcomes(self, extra: int, *, improved: bool) -> Mapping[str, _Outcome]:
        """What each method makes of so many further grades."""
        budget = SEED_SIZE + extra
        single = self.bought(RoundRobin(n_items=budget, n_judgments=budget, distinct=False))
        found = {"SL": self._single(single), FIXED[0]: self._single(self._fixed(single))}
        if improved:
            shares = NaiveBayes(prior="estimated", seed=self.seed)
            found["SL given, expected grade"] = self._agreed(self._given(shares, single), single, expected=True)
        if not extra:
            return found
        again = self.bought(RoundRobin(n_items=SEED_SIZE, n_judgments=budget, distinct=False))
        vote, bayes = MajorityVote(ties="random", seed=self.seed), NaiveBayes(seed=self.seed)
        given, learned, fixed = self._given(bayes, again), bayes.fit(again), self._fixed(again)
        found |= {
            "MV": self._agreed(vote.fit(again), again),
            FIXED[1]: self._agreed(vote.fit(fixed), fixed),
            "NB given": self._agreed(given, again),
            "NB learned": self._agreed(learned, again),
        }
        if improved:
            found["NB given, expected grade"] = self._agreed(given, again, expected=True)
            found["NB learned, expected grade"] = self._agreed(learned, again, expected=True)
            found |= self._improved(again, budget)
        return found

    def _improved(self, again: Grades, budget: int) -> dict[str, _Outcome]:
        """What can be done without knowing accuracies."""
        shares = NaiveBayes(prior="estimated", seed=self.seed)
        learned = shares.fit(again)
        three = self.bought(RoundRobin(n_items=budget // 3, n_judgments=budget, distinct=False))
        pilot = self.bought(_Pilot(budget // 2))
        overlapped = shares.fit(pilot.select(np.arange(budget // 2))).quality
        assert overlapped is not None
        accuracies = dict(zip(pilot.annotators, overlapped.parameters["accuracy"].tolist(), strict=True))
        return {
            "NB learned, shares estimated": self._agreed(learned, again),
            "NB learned, shares estimated, expected grade": self._agreed(learned, again, expected=True),
            "three grades an item, learned, expected grade": self._agreed(shares.fit(three), three, expected=True),
            "pilot, expected grade": self._agreed(shares.fit(pilot, accuracies=accuracies), pilot, expected=True),
        }

    def _given(self, method: NaiveBayes, bought: Grades) -> Consensus:
        """Naive Bayes that knows the accuracies."""
        accuracies = dict(zip(bought.annotators, self.pool.accuracy.tolist(), strict=True))
        found: Consensus = method.fit(bought, accuracies=accuracies)
        return found

    def _single(self, bought: Grades) -> _Outcome:
        """Every grade as it is."""
        return _Outcome(bought.item, bought.grade, self._right(bought.grade, bought.item))

    def _agreed(self, consensus: Consensus, bought: Grades, *, expected: bool = False) -> _Outcome:
        """The most probable grade of each item, or its expected grade."""
        assert consensus.grade is not None
        item = np.flatnonzero(bought.judged_items)
        likeliest = np.array(_LEVELS)[consensus.grade[item]]
        return _Outcome(item, consensus.scores[item] if expected else likeliest, self._right(likeliest, item))

    def _right(self, grade: Floats, item: Any) -> float:
        """Share of right labels, in per cent."""
        return 100 * float(np.mean(grade == self.split.train.grade[item]))

    def _fixed(self, bought: Grades) -> Grades:
        """The grades, those of annotators below 1/3 exchanged for one of the others at random."""
        adverse: Bools = self.pool.accuracy < 1 / len(_LEVELS)
        step = np.random.default_rng(self.seed).integers(1, len(_LEVELS), len(bought))
        other = (bought.grade + step) % len(_LEVELS)
        return replace(bought, grade=np.where(adverse[bought.annotator], other, bought.grade))


@dataclass(frozen=True)
class _Pilot:
    """Half of a budget as several grades on few items, to learn accuracies from, half as single grades of others."""

    half: int

    def rows(self, items: Items, n_annotators: int, *, seed: Any = 0) -> tuple[Ints, Ints]:
        """Return item and annotator of each grade, the pilot's first."""
        order_rng, annotator_rng = np.random.default_rng(seed).spawn(2)
        order, n_pilot = order_rng.permutation(len(items)).astype(np.int32), self.half // _PILOT
        item = np.concatenate([order[np.arange(self.half) % n_pilot], order[n_pilot : n_pilot + self.half]])
        return item, annotator_rng.integers(0, n_annotators, len(item)).astype(np.int32)
