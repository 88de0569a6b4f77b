"""A noisy crowd of Kumar and Lease: its grades, what is made of them and how well a ranker learns from that."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdrank.aggregators import MajorityVote, NaiveBayes, Single
from crowdrank.data.consensus import Consensus
from crowdrank.data.features import Features
from crowdrank.data.index import Items
from crowdrank.data.judgments import Grades
from crowdrank.data.truth import Truth
from crowdrank.datasets import Dataset, Fold
from crowdrank.metrics import average_precision, ndcg
from crowdrank.protocols import Counts, Floats, Ints
from crowdrank.rankers import ListNet
from crowdrank.simulate import OneCoin, RoundRobin, grades, log_normal, normal, uniform

from .kumar_figures import EXTRA, SEED_SIZE

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
    "three grades per item, learned, expected grade",
    "pilot, expected grade",
    "SL given, expected grade",
)

Figures = dict[str, list[float]]
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
        # items of the table stand in the order of the features, so codes are places in ``train``
        known = {"query": query.gather(train), "item": features.items.ids.gather(train), "grade": grade[train]}
        return cls(Truth.from_frame(known), *(Part.of(features, grade, chosen) for chosen in rows))

    def learn(self, item: Any, target: Floats, ranker: ListNet | None = None) -> tuple[float, float]:
        """NDCG@10 and MAP, in per cent, of a ranker that learned these targets, by default by the converged fit."""
        train, vali, test = self.train, self.vali, self.test
        held: dict[str, Any] = {"eval_set": (vali.matrix, vali.grade), "eval_qid": vali.query}
        scores = np.zeros(len(test.grade))
        # a consensus that puts all items on one level teaches nothing, and leaves them tied
        if _contrast(target, train.query[item]):
            held = held if ranker is None else {}
            ranker = ListNet(solver="paper", scale="none") if ranker is None else ranker
            fitted = ranker.fit(train.matrix[item], target, qid=train.query[item], **held)
            scores = np.asarray(fitted.predict(test.matrix), np.float64)
        accuracies = ndcg(test.grade, scores, test.query), average_precision(test.grade, scores, test.query)
        return 100 * float(accuracies[0]), 100 * float(accuracies[1])


def _contrast(target: Floats, query: Ints) -> bool:
    """Whether some query has items of different targets."""
    order = np.argsort(query, kind="stable")
    same = query[order][1:] == query[order][:-1]
    return bool((np.diff(target[order])[same] != 0).any())


def clean(split: Split, seed: int) -> Figures:
    """Return single labelling without noise at every budget."""
    order = np.random.default_rng(seed).permutation(len(split.train.grade))
    figures = {}
    for extra in EXTRA:
        item = order[: SEED_SIZE + extra]
        figures[f"SL|{extra}"] = [*split.learn(item, split.train.grade[item]), 100.0]
    return figures


def noisy(split: Split, noise: str, seed: int, budgets: tuple[int, ...], *, improved: bool = True) -> Figures:
    """Return all methods at every budget with one noise; all see the same annotators and the same first grades."""
    crowd = crowd_of(split, noise, seed)
    figures: Figures = {}
    with warnings.catch_warnings():
        # crowds close to guessing are what is studied
        warnings.simplefilter("ignore")
        for extra in budgets:
            for name, outcome in crowd.outcomes(extra, improved=improved).items():
                figures[f"{name}|{extra}"] = [*split.learn(outcome.item, outcome.target), outcome.right]
    return figures


def crowd_of(split: Split, noise: str, seed: int, *, whole_queries: bool = False) -> Crowd:
    """Return the annotators of one run, who grade items of a random order, or whole queries one after the other."""
    draw, first, second = NOISES[noise]
    return Crowd(split, draw(first, second, n_annotators=POOL, seed=seed), seed, whole_queries)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Items with what a ranker is to learn of them, and the share of right labels in per cent."""

    item: Any
    target: Floats
    right: float


@dataclass(frozen=True, eq=False)
class Crowd:
    """The annotators of one run."""

    split: Split
    pool: OneCoin
    seed: int
    whole_queries: bool = False

    def repeat(self, n_items: int, budget: int) -> Grades:
        """Return this many grades of the first items, each as often as the others."""
        if self.whole_queries:
            return self.buy(WholeQueries(n_items, budget))
        return self.buy(RoundRobin(n_items=n_items, n_judgments=budget, distinct=False))

    def buy(self, design: Any) -> Grades:
        """Grades that a design asks for."""
        bought = grades(self.split.truth, self.pool, design, levels=_LEVELS, seed=self.seed).judgments
        assert isinstance(bought, Grades)
        return bought

    def outcomes(self, extra: int, *, improved: bool) -> Mapping[str, _Outcome]:
        """What each method makes of this many further grades."""
        budget = SEED_SIZE + extra
        single = self.repeat(budget, budget)
        exchanged = Single(adversaries="exchange", seed=self.seed).fit(single, accuracies=self._accuracies(single))
        outcomes = {"SL": self._single(single), FIXED[0]: self._agreed_outcome(exchanged, single)}
        if improved:
            shares = NaiveBayes(prior="estimated", errors="even", seed=self.seed)
            outcomes["SL given, expected grade"] = self._agreed_outcome(
                self._fit_with_accuracies(shares, single), single, expected=True
            )
        if not extra:
            return outcomes
        again = self.repeat(SEED_SIZE, budget)
        vote, bayes = MajorityVote(ties="random", seed=self.seed), NaiveBayes(errors="even", seed=self.seed)
        given, learned = self._fit_with_accuracies(bayes, again), bayes.fit(again)
        fixed = MajorityVote(ties="random", adversaries="exchange", seed=self.seed)
        outcomes |= {
            "MV": self._agreed_outcome(vote.fit(again), again),
            FIXED[1]: self._agreed_outcome(fixed.fit(again, accuracies=self._accuracies(again)), again),
            "NB given": self._agreed_outcome(given, again),
            "NB learned": self._agreed_outcome(learned, again),
        }
        if improved:
            outcomes["NB given, expected grade"] = self._agreed_outcome(given, again, expected=True)
            outcomes["NB learned, expected grade"] = self._agreed_outcome(learned, again, expected=True)
            outcomes |= self._improve(again, budget)
        return outcomes

    def _improve(self, again: Grades, budget: int) -> dict[str, _Outcome]:
        """What can be done without knowing accuracies."""
        shares = NaiveBayes(prior="estimated", errors="even", seed=self.seed)
        learned = shares.fit(again)
        three = self.buy(RoundRobin(n_items=budget // 3, n_judgments=budget, distinct=False))
        pilot = self.buy(_Pilot(budget // 2))
        overlapped = shares.fit(pilot.select(np.arange(budget // 2))).quality
        assert overlapped is not None
        accuracies = dict(zip(pilot.annotators, overlapped.parameters["accuracy"].tolist(), strict=True))
        return {
            "NB learned, shares estimated": self._agreed_outcome(learned, again),
            "NB learned, shares estimated, expected grade": self._agreed_outcome(learned, again, expected=True),
            "three grades per item, learned, expected grade": self._agreed_outcome(
                shares.fit(three), three, expected=True
            ),
            "pilot, expected grade": self._agreed_outcome(
                shares.fit(pilot, accuracies=accuracies), pilot, expected=True
            ),
        }

    def _fit_with_accuracies(self, method: NaiveBayes, bought: Grades) -> Consensus:
        """Naive Bayes that knows the accuracies."""
        consensus: Consensus = method.fit(bought, accuracies=self._accuracies(bought))
        return consensus

    def _accuracies(self, bought: Grades) -> dict[Any, float]:
        """Accuracy of each annotator, as it is."""
        return dict(zip(bought.annotators, self.pool.accuracy.tolist(), strict=True))

    def _single(self, bought: Grades) -> _Outcome:
        """Every grade as it is."""
        return _Outcome(bought.item, bought.grade, self._label_accuracy(bought.grade, bought.item))

    def _agreed_outcome(self, consensus: Consensus, bought: Grades, *, expected: bool = False) -> _Outcome:
        """The most probable grade of each item, or its expected grade."""
        assert consensus.grade is not None
        item = np.flatnonzero(bought.judged_items)
        likeliest = np.array(_LEVELS)[consensus.grade[item]]
        return _Outcome(item, consensus.scores[item] if expected else likeliest, self._label_accuracy(likeliest, item))

    def _label_accuracy(self, grade: Floats, item: Any) -> float:
        """Share of right labels, in per cent."""
        return 100 * float(np.mean(grade == self.split.train.grade[item]))


@dataclass(frozen=True)
class WholeQueries:
    """Grades of the items of whole queries, query after query in a random order, then the same items again."""

    n_items: int
    n_judgments: int

    def rows(self, items: Items, n_annotators: int, *, seed: Any = 0) -> tuple[Ints, Ints]:
        """Return item and annotator of each grade."""
        order_rng, annotator_rng = np.random.default_rng(seed).spawn(2)
        order = query_by_query(items.query, order_rng)[np.arange(self.n_judgments) % self.n_items]
        return order, annotator_rng.integers(0, n_annotators, self.n_judgments).astype(np.int32)


def query_by_query(query: Ints, rng: np.random.Generator) -> Ints:
    """Return the items of all queries, query after query, both in random order."""
    turn, place = rng.permutation(int(query.max()) + 1), rng.permutation(len(query))
    return np.lexsort((place, turn[query])).astype(np.int32)


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
