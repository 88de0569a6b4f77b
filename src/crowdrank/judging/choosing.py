"""What to ask next: a design that connects all items first, then by information for money; and when to stop.

Where items have features, scores of all of them are learned from preferences between few.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, product, zip_longest
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import minimum_spanning_tree

from ..api import aggregate
from ..api.robust_errors import with_robust_errors
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.judgments import Grades, Preferences, Rankings, together, with_items
from ..data.proposals import Roster
from ..errors import ParameterError
from ..io.notices import collect_notices
from ..protocols import Counts, Floats
from ..registry import make
from ..schemes.information import Goal, Information, preference_discriminations
from ..schemes.situation import OpenRequests, Situation
from .answers import Answers

_SHARE_OF_JUDGES = 0.5
"""Share of the panel that is asked once it is known what each judge is worth; one at least."""

_MIN_ANSWERS_OF_JUDGE = 20
"""All judges are asked about evenly until each gave so many answers."""

_MAX_LISTED_ITEMS = 400
"""Up to so many items all pairs are listed with the queries that are left for them."""

_MIN_QUERIES = 20
"""From so many queries on errors are by query; fewer of them tell too little of how they differ."""

_SHARE_FOR_DESIGN = 0.25
"""Share of the calls that the first design may take; of more items a random part is asked about."""


class Case(NamedTuple):
    """A question to one judge: the query, and the items in the order shown."""

    judge: str
    query: Any
    items: tuple[Any, ...]


@dataclass(frozen=True)
class Certainty:
    """How sure the goal is reached, and how much is still expected to be wrong.

    Parameters
    ----------
    sure
        Of an order: the expected share of pairs in the right order. Of the first places: the probability that they hold
        the right items. The mean over queries.
    wrong, measure
        What is expected to be wrong, and what that is measured in.
    """

    sure: float
    wrong: float
    measure: str

    @classmethod
    def of(cls, consensus: Consensus, goal: Goal) -> Certainty:
        """Return it for a consensus, by draws of its scores."""
        offsets = consensus.items.offsets
        shares, wrong = [], 0.0
        for query in range(consensus.items.n_queries):
            part = slice(int(offsets[query]), int(offsets[query + 1]))
            scores = consensus.scores[part]
            if len(scores) <= max(goal.k, 1):
                continue
            draws = consensus._draws(query)
            if goal.k:
                first = np.argsort(-scores, kind="stable")[: goal.k]
                drawn = np.argpartition(-draws, goal.k - 1, axis=1)[:, : goal.k]
                n_right = np.isin(drawn, first).sum(axis=1)
                shares.append(float((n_right == goal.k).mean()))
                wrong += goal.k - float(n_right.mean())
            else:
                # pairs whose order in the scores is expected to be wrong
                n_wrong, rows = 0.0, draws[:200, np.argsort(-scores, kind="stable")]
                for place in range(len(scores) - 1):
                    n_wrong += float((rows[:, [place]] < rows[:, place + 1 :]).mean(axis=0).sum())
                n_pairs = len(scores) * (len(scores) - 1) / 2
                shares.append(1 - n_wrong / n_pairs)
                wrong += n_wrong
        return cls(float(np.mean(shares)) if shares else 1.0, wrong, goal.measure)


class Chooser:
    """Chooses cases, and knows which were asked.

    Parameters
    ----------
    answers, judges
        What can be asked about, and whom.
    kind, orders, set_size
        Kind of judgment, ``"both"`` orders of a pair or one at ``"random"``, and items of one ranking.
    goal, across
        What the judgments should decide, and whether items are ranked over all queries.
    scheme
        ``"information"``, or ``"k-overlap"`` for all pairs in turn.
    features
        Features of the items, where what is learned of some should tell of the others.
    """

    def __init__(
        self, answers: Answers, judges: Sequence[str], *, kind: str, orders: str, set_size: int, goal: Goal,
        across: bool, scheme: str, seed: int, features: Features | None = None,
        people: Preferences | None = None,
    ) -> None:  # fmt: skip
        self.answers, self.judges, self.kind, self.orders, self.set_size = answers, list(judges), kind, orders, set_size
        self.goal, self.across, self.scheme, self.seed, self.features = goal, across, scheme, seed, features
        self.people, self.each = people, 2 if orders == "both" and kind != "grade" else 1
        self.asked: set[Case] = set()
        self._pairs_asked: set[tuple[str, Any, frozenset[Any]]] = set()
        self._rng = np.random.default_rng(seed)
        self._queries: dict[Any, list[Any]] = {}
        self._members: dict[Any, list[Any]] = {}
        for query, item in zip(answers.query, answers.item, strict=True):
            self._queries.setdefault(item if across else (query, item), []).append(query)
            self._members.setdefault(query, []).append(item)
        self.targets = sorted(self._queries, key=str)
        self._shared: dict[tuple[Any, Any], list[Any]] = {}

    # what is known ----------------------------------------------------------------------------------------------------

    def preferences(self, rows: Sequence[Mapping[str, Any]]) -> Preferences:
        """Return rows of judgments as preferences of all items; grades and rankings are compared within their query."""
        words = {
            "preference": ("query", "left", "right", "winner", "annotator", "strength"),
            "grade": ("query", "item", "grade", "annotator"),
            "ranking": ("query", "item", "rank", "annotator", "ranking"),
        }[self.kind]
        if self.answers.query[0] is None:
            words = words[1:]
        table: dict[str, list[Any]] = {word: [row[word] for row in rows] for word in words}
        with warnings.catch_warnings(), collect_notices():
            warnings.simplefilter("ignore")
            judged: Any
            if self.kind == "preference":
                judged = Preferences.from_frame(table)
            else:
                judged = (Grades if self.kind == "grade" else Rankings).from_frame(table).as_preferences()
            if self.people is not None:
                judged = together([replace(judged, strength=None, strength_levels=None), self.people])
            if self.across and self.answers.query[0] is not None:
                judged = judged.across_queries()
            ranked = {"query": list(self.answers.query), "item": list(self.answers.item)}
            if self.across or self.answers.query[0] is None:
                ranked = {"item": list(dict.fromkeys(self.answers.item))}
            everything: Preferences = with_items(judged, ranked)[0]
        return everything

    def fit(self, preferences: Preferences) -> tuple[Consensus, Consensus]:
        """Return the consensus to choose by, and the one that tells how sure it is.

        Several judges are weighed by what they turn out to be worth. Verdicts may vary less than coins of their
        probability do, as ties, or more, as the two orders of a pair and all that is asked of one query depend on each
        other. What is chosen by has errors as much wider or narrower, once there are enough queries to see it; what is
        told has errors by query where those are wider, since what few verdicts predict well may look surer than it is.
        """
        with warnings.catch_warnings(), collect_notices():
            warnings.simplefilter("ignore")
            if self.features is not None:
                learned = learn_scores(preferences, self.features)
                return learned, learned
            trusted = None if self.people is None else self.people.annotators.ids.to_list()
            name = "latent_score" if preferences.n_annotators > 1 else "bradley_terry"
            model: Consensus = aggregate(preferences, name, trusted=trusted, robust="none", shared="none")
            n_queries = 0 if preferences.block is None else len(np.unique(preferences.block))
            if n_queries < _MIN_QUERIES:
                return model, model
            with suppress(ParameterError):
                told = with_robust_errors(model, make("aggregator", name, model.params), preferences, "query")
                width, chosen_by, n = told.estimates["robust"]["wider"], model, preferences.n_items
                if n_queries >= 2 * n:
                    assert model.std_error is not None
                    square = width**2 * n_queries / (n_queries - n)
                    blocks = tuple(block if block is None else square * block for block in model.covariance or ())
                    estimates = {**model.estimates, "answer_variance": square}
                    errors = square**0.5 * model.std_error
                    chosen_by = replace(model, std_error=errors, covariance=blocks, estimates=estimates)
                return chosen_by, told if width > 1 else model
        return model, model

    # what can be asked ------------------------------------------------------------------------------------------------

    def _queries_of(self, one: Any, other: Any) -> list[Any]:
        """Queries in which both items can be shown, in random order, the same for all judges."""
        if not self.across:
            return [one[0]] if one[0] == other[0] else []
        key = (one, other) if str(one) <= str(other) else (other, one)
        if key not in self._shared:
            second = set(self._queries[other])
            found = [query for query in self._queries[one] if query in second]
            draws = np.random.default_rng([self.seed, len(self._shared)])
            self._shared[key] = [found[place] for place in draws.permutation(len(found))]
        return self._shared[key]

    def _item(self, target: Any) -> Any:
        """The item of something that is ranked."""
        return target if self.across else target[1]

    def _cases(self, one: Any, other: Any, judge: str, scores: Mapping[Any, float] | None = None) -> list[Case]:
        """What to ask a judge about two items next: nothing where all was asked."""
        first, second = self._item(one), self._item(other)
        for query in self._queries_of(one, other):
            if not self._is_left(judge, query, first, second):
                continue
            if self.kind == "grade":
                return [Case(judge, query, (item,)) for item in (first, second)]
            shown = [first, second]
            if self.kind == "ranking":
                # and those of their query that stand nearest to them
                level = dict.fromkeys(self._members[query], 0.0) | dict(scores or {})
                middle = 0.5 * (level[first] + level[second])
                others = [item for item in self._members[query] if item not in shown]
                draws = self._rng.random(len(others)).tolist()
                near = sorted(zip([abs(level[item] - middle) for item in others], draws, others, strict=True))
                shown += [item for _, _, item in near[: self.set_size - 2]]
            shown = [shown[place] for place in self._rng.permutation(len(shown))]
            orders = [shown, shown[::-1]] if self.orders == "both" else [shown]
            return [Case(judge, query, tuple(order)) for order in orders]
        return []

    def _is_left(self, judge: str, query: Any, one: Any, other: Any) -> bool:
        """Whether a judge was not asked about two items of a query yet."""
        if self.kind == "grade":
            return not {Case(judge, query, (one,)), Case(judge, query, (other,))} <= self.asked
        return (judge, query, frozenset((one, other))) not in self._pairs_asked

    @property
    def sizes(self) -> list[int]:
        """Numbers of items that are ranked together."""
        return [len(self.targets)] if self.across else [len(members) for members in self._members.values()]

    @property
    def n_cases(self) -> int:
        """How many questions there are in all: the most that could be asked."""
        sizes = [len(members) for members in self._members.values()]
        if self.kind == "grade":
            return len(self.judges) * sum(sizes)
        return len(self.judges) * self.each * sum(size * (size - 1) // 2 for size in sizes)

    def take(self, cases: Iterable[Case]) -> list[Case]:
        """Return cases that were not asked, and take note that they are."""
        new = [case for case in dict.fromkeys(cases) if case not in self.asked]
        self.asked.update(new)
        for case in new:
            pairs = combinations(case.items, 2)
            self._pairs_asked.update((case.judge, case.query, frozenset(pair)) for pair in pairs)
        return new

    # what to ask ------------------------------------------------------------------------------------------------------

    def design(self, calls: int | None) -> list[Case]:
        """Return what to begin with: rings in which each item stands once on either side, all of them connected."""
        groups: dict[Any, list[Any]] = {}
        for target in self.targets:
            groups.setdefault(None if self.across else target[0], []).append(target)
        rings: list[list[list[Case]]] = []
        number = 0
        for members in groups.values():
            if len(members) < 2:
                continue
            size = len(members) if calls is None else int(_SHARE_FOR_DESIGN * calls / len(groups) / self.each)
            if size < len(members):
                members = [members[place] for place in self._rng.permutation(len(members))[: max(size, 8)]]
            rings.append([])
            order = [members[place] for place in self._rng.permutation(len(members))]
            ring = [(one, other) for one, other in zip(order, [*order[1:], order[0]], strict=True) if one != other]
            pairs = [pair for pair in ring if self._queries_of(*pair)]
            if len(pairs) < len(ring):
                # where neighbours share no query, a random tree connects the items
                weight = 1 + self._rng.random((len(order), len(order)))
                for i, j in combinations(range(len(order)), 2):
                    weight[i, j] *= bool(self._queries_of(order[i], order[j]))
                tree = minimum_spanning_tree(np.triu(weight, 1)).nonzero()
                pairs += [(order[i], order[j]) for i, j in zip(*tree, strict=True)]
            for one, other in pairs:
                rings[-1].append(self.take(self._cases(one, other, self.judges[number % len(self.judges)])))
                number += 1
        # in turn, so that few calls leave no query out
        return [case for turn in zip_longest(*rings, fillvalue=()) for cases in turn for case in cases]

    def other_orders(self) -> list[Case]:
        """Return what a run that was stopped has left of pairs that are shown in both orders."""
        if self.each == 1:
            return []
        return self.take([case._replace(items=case.items[::-1]) for case in sorted(self.asked, key=str)])

    def choose(
        self, preferences: Preferences, consensus: Consensus, number: int, prices: Mapping[str, float],
        open_cases: Iterable[Case] = (),
    ) -> tuple[list[Case], float]:  # fmt: skip
        """Return the next cases, about ``number`` of them, and how much less they are expected to leave wrong."""
        judges = [judge for judge in self.judges if judge in prices]
        if not judges:
            return [], 0.0
        scores = dict(zip(consensus.items.ids.to_list(), consensus.scores.tolist(), strict=True))
        if self.scheme != "information":
            return self._in_turn(number, judges, scores), 0.0
        # what each item code stands for
        items, targets = preferences.items, preferences.items.ids.to_list()
        if not self.across:
            queries = [None] * len(targets) if items.single else items.query_ids().to_list()
            targets = list(zip(queries, targets, strict=True))
        # all judges until each is known by some answers; then the half that is worth most for its price, and more of
        # them where these have said all
        panel = judges
        codes = preferences.annotators.codes(pl.Series(judges))
        answered = np.append(np.bincount(preferences.annotator, minlength=preferences.n_annotators), 0)[codes]
        n_least = len(judges)
        if answered.min() >= _MIN_ANSWERS_OF_JUDGE:
            known = preference_discriminations(consensus)
            alpha, deviation = (values[np.minimum(codes, len(values) - 1)] for values in known)
            worth = (alpha**2 + deviation**2) / [prices[judge] for judge in judges]
            panel = [judges[place] for place in np.argsort(-worth, kind="stable")]
            n_least = max(1, round(_SHARE_OF_JUDGES * len(panel)))
        for size in range(n_least, len(judges) + 1):
            pairs = self._pairs(targets, panel[:size])
            if pairs is None or len(pairs[0]):
                break
        panel = panel[:size]
        roster = Roster.from_frame({"annotator": panel, "price": [prices[judge] * self.each for judge in panel]})
        budget = max(1, -(-number // self.each)) * float(np.median(roster.price))
        # all items may be asked about, or with features those that may be among the first
        askable = np.ones(len(consensus.scores), bool)
        if self.features is not None and self.goal.k and consensus.std_error is not None:
            n_likely = max(6 * self.goal.k, 40)
            askable[np.argsort(-(consensus.scores + consensus.std_error), kind="stable")[n_likely:]] = False
        situation = Situation(
            judgments=preferences, askable=askable, pairs=pairs, roster=roster, budget=budget,
            consensus=consensus, seed=int(self._rng.integers(2**31)), repeats=self.across,
            open=self._open(preferences, open_cases),
        )  # fmt: skip
        if pairs is not None and not len(pairs[0]):
            return [], 0.0
        proposed = Information(goal=self.goal.text, share=1.0).propose(situation)
        cases: list[Case] = []
        who = roster.annotators.ids.to_list()
        left, right = proposed.things["left"].tolist(), proposed.things["right"].tolist()
        for one, other, judge in zip(left, right, proposed.annotator.tolist(), strict=True):
            names = [who[judge], *(name for name in (panel if pairs else judges) if name != who[judge])]
            cases += self._take_first(targets[one], targets[other], names, scores)
            if len(cases) >= number:
                break
        return cases, proposed.expected_gain

    def _take_first(self, one: Any, other: Any, judges: Iterable[str], scores: Mapping[Any, float]) -> list[Case]:
        """The next cases about two items of the first judge who has any left."""
        found = (self.take(self._cases(one, other, judge, scores)) for judge in judges)
        return next((cases for cases in found if cases), [])

    def _in_turn(self, number: int, judges: Sequence[str], scores: Mapping[Any, float]) -> list[Case]:
        """All pairs in turn, those first that were asked about least."""
        often = Counter(
            pair if self.across else frozenset((query, item) for item in pair) for _, query, pair in self._pairs_asked
        )
        pairs = [pair for pair in combinations(self.targets, 2) if self._queries_of(*pair)]
        pairs = [pairs[place] for place in self._rng.permutation(len(pairs))]
        cases: list[Case] = []
        for turn, (one, other) in enumerate(sorted(pairs, key=lambda pair: often[frozenset(pair)])):
            place = turn % len(judges)
            cases += self._take_first(one, other, [*judges[place:], *judges[:place]], scores)
            if len(cases) >= number:
                break
        return cases

    def _pairs(self, targets: Sequence[Any], judges: Sequence[str]) -> Any:
        """Pairs of item codes with a question left, ``None`` for all pairs of a query."""
        if not self.across or len(targets) > _MAX_LISTED_ITEMS:
            return None
        left = []
        for i, j in combinations(range(len(targets)), 2):
            queries, pair = self._queries_of(targets[i], targets[j]), (self._item(targets[i]), self._item(targets[j]))
            if any(self._is_left(judge, query, *pair) for judge in judges for query in queries):
                left.append((i, j))
        codes = np.array(left, np.int32).reshape(-1, 2)
        return np.ascontiguousarray(codes[:, 0]), np.ascontiguousarray(codes[:, 1])

    def _open(self, preferences: Preferences, cases: Iterable[Case]) -> OpenRequests | None:
        """Pairs under way, as the scheme knows them."""
        pairs = [case for case in cases if len(case.items) == 2]
        if not pairs or self.kind != "preference":
            return None
        one, other = (pl.Series([case.items[side] for case in pairs]) for side in (0, 1))
        query = None if preferences.items.single else pl.Series([case.query for case in pairs])
        codes = {side: preferences.items.codes(query, ids) for side, ids in (("left", one), ("right", other))}
        return OpenRequests(codes, None if self.across else pl.Series([case.judge for case in pairs]))


_SHARES = (0.1, 0.5, 0.9)
_SPREADS = (1.0, 3.0, 9.0)
"""Share of the variance of scores that features may explain, and their variance, in squared log-odds."""

_LEAST_PROBABILITY = 1e-3
"""Variances and shares that are less probable than this are left out."""

_STEPS = 30
_TOLERANCE = 1e-6


def learn_scores(preferences: Preferences, features: Features) -> Consensus:
    r"""Return scores of all items, those that nobody compared by what their features tell, by a Gaussian process.

    Scores have a normal prior with covariance :math:`\sigma^2 (\lambda X X^\top + (1 - \lambda) I)` for standardised
    features X, the rows of which have length 1, so that no item is less sure than another before it is compared. Of two
    items that differ by d the first wins with a probability in proportion to :math:`e^{d/2}`, the second to
    :math:`e^{-d/2}`, and a tie to :math:`\nu`, which follows from how many there are: where most comparisons are ties,
    those that are not tell the more. The posterior is taken for normal at its mode, and averaged over a small grid of
    variances and shares that features explain by their evidence.
    """
    rows = features.items.codes(None, preferences.items.ids)
    matrix = np.where(np.isfinite(features.matrix), features.matrix, 0.0)[rows]
    deviation = matrix.std(axis=0)
    matrix = (matrix - matrix.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
    known = np.unique(np.concatenate([preferences.left, preferences.right]))
    place = np.zeros(preferences.n_items, np.int64)
    place[known] = np.arange(len(known))
    left, right = place[preferences.left], place[preferences.right]
    linear, own = matrix[known] @ matrix[known].T, np.eye(len(known))
    grid = list(product(_SHARES, _SPREADS))
    priors = [spread * (share * linear + (1 - share) * own) for share, spread in grid]
    outcome = preferences.outcome.astype(np.float64)
    fits = [_mode(prior, left, right, outcome) for prior in priors]
    evidence = np.array([fit[0] for fit in fits])
    probability = np.exp(evidence - evidence.max())
    probability /= probability.sum()
    scores, squares = np.zeros(preferences.n_items), np.zeros(preferences.n_items)
    for weight, (share, spread), prior, (_, pull, curvature) in zip(probability, grid, priors, fits, strict=True):
        if weight < _LEAST_PROBABILITY:
            continue
        # covariance of each item with those that were compared
        cross = spread * share * (matrix @ matrix[known].T)
        cross[known] = prior
        # (K + W^-1)^-1 = W - W (K^-1 + W)^-1 W, for the curvature W, which is singular
        inner = np.linalg.solve(own + curvature @ prior, curvature)
        before = spread * (share * (matrix**2).sum(axis=1) + (1 - share))
        mean = cross @ pull
        scores += weight * mean
        squares += weight * (before - np.einsum("ij,ij->i", cross @ inner, cross) + mean**2)
    return Consensus(
        items=preferences.items, scores=scores - scores.mean(), method="latent_score",
        std_error=np.sqrt(np.maximum(squares - scores**2, 1e-12)),
        estimates={"share_of_features": float(probability @ [share for share, _ in grid])},
    )  # fmt: skip


def _mode(prior: Floats, left: Counts, right: Counts, outcome: Floats) -> tuple[float, Floats, Floats]:
    """Log evidence, gradient of the log-likelihood and its curvature at the mode of the posterior, by Newton steps."""
    n, n_ties = len(prior), int((outcome == 0).sum())
    scores, pull, curvature = np.zeros(n), np.zeros(n), np.zeros((n, n))
    tie = 2 * n_ties / max(len(outcome) - n_ties, 1)
    for _ in range(_STEPS):
        half = np.clip(scores[left] - scores[right], -500, 500) / 2
        cosh, sinh = np.cosh(half), np.sinh(half)
        whole = 2 * cosh + tie
        slope, weight = 0.5 * outcome - sinh / whole, (0.5 * cosh * whole - sinh**2) / whole**2
        curvature = np.zeros((n, n))
        for one, other, sign in ((left, left, 1), (right, right, 1), (left, right, -1), (right, left, -1)):
            np.add.at(curvature, (one, other), sign * weight)
        gradient = np.bincount(left, slope, n) - np.bincount(right, slope, n)
        target = curvature @ scores + gradient
        # the mode is the prior times a pull, which at the end is the gradient itself
        pull = target - curvature @ np.linalg.solve(np.eye(n) + prior @ curvature, prior @ target)
        change = prior @ pull - scores
        scores = scores + change
        if n_ties:
            tie = n_ties / float((1 / whole).sum())
        if np.abs(change).max() < _TOLERANCE:
            break
    half = np.clip(scores[left] - scores[right], -500, 500) / 2
    likelihood = float((outcome * half - np.log(2 * np.cosh(half) + tie)).sum()) + n_ties * np.log(max(tie, 1e-12))
    factor, lower = cho_factor(prior + 1e-9 * np.trace(prior) / n * np.eye(n))
    fit = -0.5 * float(scores @ cho_solve((factor, lower), scores))
    size = -0.5 * float(np.linalg.slogdet(np.eye(n) + prior @ curvature)[1])
    return likelihood + fit + size, pull, curvature
