"""How few votes, annotators or queries decide an order: found by their influence on a gap, confirmed by refits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings
from ..data.showing import Shown
from ..errors import CrowdrankError, ParameterError
from ..protocols import Bools, Counts, Floats, Ints
from ..quality import fit_quietly, scores_quietly
from ..registry import method_class
from ..standard_errors import ScoreGradients
from ..wording import counted, first_few
from .sentences import MESSAGES, fill

METHODS = ("bradley_terry", "crowd_bt", "latent_score", "mean_grade", "plackett_luce")
"""Methods whose votes have an influence that is known."""

_DIGITS = 9
"""Digits by which influences are ordered: what differs by rounding alone is equal."""

_FIRST_VOTES = 1024
"""Votes that are put in order first; more where these do not suffice."""


_NEAREST = 5
"""Items after the first that are looked at where there is no bound on the influence of a vote, as with covariates."""


class Least(NamedTuple):
    """The least number of votes, annotators or queries whose removal changes an order.

    ``number`` is confirmed by refits, ``by_influence`` is the first guess; either is ``None`` where no number will do.
    ``total`` is how many there are; ``ids`` names annotators and queries.
    """

    number: int | None
    by_influence: int | None
    total: int
    ids: tuple[str | int, ...] = ()


@dataclass(frozen=True, eq=False)
class Fragility(Shown):
    """How few votes, annotators or queries decide between two items; :func:`crowdrank.fragility` makes it.

    Parameters
    ----------
    first, other
        The item ahead, and the one that would be ahead without what is dropped.
    query
        Their query.
    kind
        Kind of judgment.
    votes, annotators, queries
        The least numbers; ``None`` where there are no annotators, or no queries that share these items.
    for_first
        Whether this is about the first place, not about two items that were named.
    """

    first: str | int
    other: str | int
    query: str | int
    kind: str
    votes: Least
    annotators: Least | None
    queries: Least | None
    for_first: bool = True

    def __repr__(self) -> str:
        return f"Fragility({self.sentence})"

    def __len__(self) -> int:
        return len(self.frame())

    @property
    def sentence(self) -> str:
        """What decides, in words."""
        result = f"put {self.other} first" if self.for_first else f"put {self.other} before {self.first}"
        if self.votes.number is None:
            text = fill(MESSAGES["nothing_decides"], kind=self.kind, result=result)
        else:
            share = 100 * self.votes.number / max(self.votes.total, 1)
            numbers = {"number": self.votes.number, "kinds": counted(self.votes.total, self.kind), "share": share}
            text = fill(MESSAGES["decides"], result=result, **numbers)
        without = []
        for least, word in ((self.annotators, "annotator"), (self.queries, "query")):
            if least is not None and least.number is not None:
                names = first_few([str(one) for one in least.ids], least.number)
                without.append(names if word == "annotator" else f"{counted(least.number, word)} ({names})")
        return f"{text}; so would leaving out {' or '.join(without)}" if without else text

    def frame(self) -> pl.DataFrame:
        """Return a table of unit, number, by_influence, total and ids."""
        units = {"vote": self.votes, "annotator": self.annotators, "query": self.queries}
        known = {unit: one for unit, one in units.items() if one is not None}
        rows = [{"unit": unit, **one._asdict(), "ids": list(map(str, one.ids))} for unit, one in known.items()]
        numbers = dict.fromkeys(("number", "by_influence", "total"), pl.Int64)
        return pl.DataFrame(rows, schema={"unit": pl.String, **numbers, "ids": pl.List(pl.String)})


def fragility_of(
    consensus: Consensus,
    judgments: Judgments | Mixed,
    a: Any = None,
    b: Any = None,
    *,
    query: Any = None,
    refit: bool = True,
) -> Fragility:
    """Return how few votes, annotators and queries decide between two items, or the first place.

    Without ``refit`` the numbers are those by influence.
    """
    crowd = _Crowd.of(consensus, judgments)
    items, scores = consensus.items, consensus.scores
    number, part = consensus._one_query(query, "fragility(consensus, judgments, query=...)")
    if part.stop - part.start < 2:
        raise ParameterError("there is only one item, so no other can be put before it; give two or more")
    best = part.start + int(np.argmax(scores[part]))
    named = [items.code(one, query) for one in (a, b) if one is not None]
    if len(named) == 1 and named[0] != best:
        named = [best, named[0]]
    if len(named) == 2 and named[0] == named[1]:
        raise ParameterError(f"{a!r} cannot be put before itself; name two items")
    for_first = len(named) < 2
    if for_first:
        first, (other, votes) = best, crowd.most_fragile(best, np.arange(part.start, part.stop))
    else:
        first, other = sorted(named, key=lambda code: (-scores[code], code))
        votes = crowd.least_votes(first, other)

    def is_turned(scores: Floats) -> bool:
        return bool((scores[part].max() if for_first else scores[other]) > scores[first])

    gap, ids = float(scores[first] - scores[other]), (items.ids[int(first)], items.ids[int(other)])
    units = [votes, *(crowd.least_units(votes.influence, gap, unit) for unit in ("annotator", "query"))]
    least = [None if one is None else one.confirm(crowd, is_turned, refit=refit) for one in units]
    assert least[0] is not None
    return Fragility(*ids, items.queries.ids[number], judgments.kind, least[0], least[1], least[2], for_first)


def votes_by_query(consensus: Consensus, judgments: Judgments | Mixed) -> tuple[Counts, Counts]:
    """Return for each query with two items or more the votes, by influence, that decide its first place.

    Both are (n,): the query, and the number against the second item; 0 where no number will do.
    """
    crowd = _Crowd.of(consensus, judgments)
    items, scores = consensus.items, consensus.scores
    order = np.lexsort((np.arange(len(items)), -scores, items.query))
    queries = np.flatnonzero(np.diff(items.offsets) > 1)
    first, second = order[items.offsets[queries]], order[items.offsets[queries] + 1]
    return queries, crowd.least_votes_each(first, second)


class _Wanted(NamedTuple):
    """Units in the order in which they are dropped, and how many the gap takes by influence; none where all are few.

    ``influence`` is of each judgment, ``unit`` is the unit of each judgment; an ``exact`` number needs no refits.
    """

    order: Counts
    by_influence: int | None
    total: int
    influence: Floats
    unit: Ints | Counts | None = None
    ids: pl.Series | None = None
    exact: bool = False

    def confirm(self, crowd: _Crowd, turned: Callable[[Floats], bool], *, refit: bool) -> Least:
        """Return the least number near that by influence with which a refit turns the order."""

        def changes(number: int) -> bool:
            mask = np.ones(self.total, bool)
            mask[self.order[:number]] = False
            keep = mask if self.unit is None else mask[self.unit]
            return bool(keep.any()) and turned(crowd.scores(keep))

        number = self.by_influence
        if refit and not self.exact:
            # the least number at which something changes, near the guess, if it stays changed from there on
            guess, most = self.by_influence or len(self.order), len(self.order)
            low, number, step = 0, guess, max(1, guess // 8)
            while number is not None and (not 0 < number <= most or not changes(number)):
                low, number = number, None if number >= most or not guess else min(number + step, most)
                step *= 2
            # most often the guess is right or a little too large
            step = max(1, guess // 16)
            while number is not None and number - low > 1:
                middle = max((low + number) // 2, number - step)
                if changes(middle):
                    number, step = middle, 2 * step
                else:
                    low = middle
        ids = [] if number is None or self.ids is None else self.ids.gather(self.order[:number]).to_list()
        return Least(number, self.by_influence, self.total, tuple(ids))


@dataclass(frozen=True, eq=False)
class _Crowd:
    """Judgments with their gradients at a consensus, and the method that fits some of them again."""

    consensus: Consensus
    judgments: Judgments
    method: Any
    gradients: ScoreGradients | None
    covariance: tuple[Floats | None, ...] | None

    @classmethod
    def of(cls, consensus: Consensus, judgments: Judgments | Mixed) -> _Crowd:
        """Return the judgments with what is known of their influence; refuse where nothing is."""
        if isinstance(judgments, Mixed):
            raise ParameterError("how few votes decide is known for one kind of judgment; give one kind")
        if consensus.method not in METHODS:
            known = ", ".join(METHODS)
            raise ParameterError(f"how few votes decide is not known for {consensus.method}; use one of {known}")
        if {"trusted", "known", "taste"} & set(consensus.estimates):
            raise ParameterError("how few votes decide is not known with trusted annotators or known items; leave them")
        method = method_class("aggregator", consensus.method)(**consensus.params)
        if isinstance(judgments, Grades) and consensus.method == "mean_grade":
            return cls(consensus, judgments, method, None, None)
        covariance = consensus.covariance
        if covariance is None or {"robust"} & set(consensus.estimates) or consensus.replicates is not None:
            # those of a bootstrap or of clusters are no curvature
            given = {"control": list(consensus.estimates["control"])} if "control" in consensus.estimates else {}
            covariance = fit_quietly(method, judgments, **given).covariance
        return cls(consensus, judgments, method, method.score_gradients(judgments, consensus), covariance)

    @property
    def unit(self) -> Counts | None:
        """The vote of each row, where several rows are one."""
        if isinstance(self.judgments, Preferences) and self.judgments.judgment is not None:
            return np.unique(self.judgments.judgment, return_inverse=True)[1]
        return None

    def scores(self, keep: Bools) -> Floats:
        """Return the scores of some of the judgments."""
        part = self.judgments.select(keep)
        try:
            if "control" in self.consensus.estimates:
                control = list(self.consensus.estimates["control"])
                return np.asarray(fit_quietly(self.method, part, control=control).scores)
            return scores_quietly(self.method, part)
        except CrowdrankError:
            # what cannot be fitted puts nothing before anything
            return self.consensus.scores

    def lean(self, first: Counts, second: Counts) -> Floats:
        """Return how the gap of each pair, one of a query, leans on the gradient in each score, (n_items,)."""
        offsets, query = self.consensus.items.offsets, self.consensus.items.query
        lean = np.zeros(len(query))
        for one, other in zip(first, second, strict=True):
            begin = offsets[query[one]]
            block = None if self.covariance is None else self.covariance[query[one]]
            if block is not None:
                lean[begin : begin + len(block)] = block[:, one - begin] - block[:, other - begin]
                continue
            # of a query too large for a covariance by the squares of gradients in place of the curvature
            from scipy.sparse import coo_matrix, identity
            from scipy.sparse.linalg import cg

            assert self.gradients is not None
            n, own, wanted = len(query), self.gradients, np.zeros(len(query))
            rows = coo_matrix((own.value, (own.judgment, own.item)), shape=(len(self.judgments), n)).tocsr()
            wanted[one], wanted[other] = 1.0, -1.0
            lean += np.asarray(cg(rows.T @ rows + max(own.prior, 1e-6) * identity(n), wanted, rtol=1e-4)[0])
        return lean

    def influence(self, lean: Floats) -> Floats:
        """Return how much each vote adds to the gap."""
        own = self.gradients
        assert own is not None
        terms = own.value * lean[own.item]
        influence: Floats = np.bincount(own.judgment, terms, len(self.judgments)).astype(np.float64)
        if own.shared is not None:
            influence += own.shared.value @ (own.shared.direction.T @ lean)
        return influence

    def least_votes(self, first: int, other: int) -> _Wanted:
        """Return the votes that put one item before another, those with most influence first."""
        if self.gradients is None:
            return self._least_grades(first, other)
        rows, unit = self.influence(self.lean(np.array([first]), np.array([other]))), self.unit
        influence = rows if unit is None else np.bincount(unit, rows).astype(np.float64)
        gap = float(self.consensus.scores[first] - self.consensus.scores[other])
        order = self._largest(influence, gap)
        return _Wanted(order, _used_up(influence[order], gap), len(influence), rows, unit)

    def _largest(self, influence: Floats, gap: float) -> Counts:
        """Votes for the gap, the largest influence first, equal ones by what they are about; at least what it takes."""
        n_for = int((influence > 0).sum())
        number = min(_FIRST_VOTES, n_for)
        while True:
            top = np.argpartition(-influence, number - 1)[:number] if number else np.empty(0, np.int64)
            if number == n_for or influence[top].sum() >= 2 * gap:
                break
            number = min(8 * number, n_for)
        if number:
            # all that equal the last one belong to them, whatever order the rows have
            scale = 10.0 ** (np.floor(np.log10(float(influence.max()))) + 1 - _DIGITS)
            rounded = np.round(influence / scale)
            top = np.flatnonzero((rounded >= rounded[top].min()) & (influence > 0))
            # columns by which votes of equal influence are put in order
            judged: Any = self.judgments
            columns, whose = [top], [judged.annotator[top]] if judged.n_annotators else []
            if self.unit is None and isinstance(judged, Rankings):
                columns = whose or columns
            elif self.unit is None:
                columns = [*(getattr(judged, name)[top] for name in judged.answers), *whose]
            return top[np.lexsort((*columns, -rounded[top]))]
        return top

    def least_votes_each(self, first: Counts, second: Counts) -> Counts:
        """Return the number of votes by influence for pairs of different queries, 0 where no number will do."""
        if self.gradients is None:
            grades = (self._least_grades(int(one), int(other)) for one, other in zip(first, second, strict=True))
            return np.array([one.by_influence or 0 for one in grades], np.int64)
        items, own = self.consensus.items, self.gradients
        query = np.zeros(len(self.judgments), np.int64)
        query[own.judgment] = items.query[own.item]
        influence = self.influence(self.lean(first, second))
        order = np.lexsort((-influence, query))
        order = order[influence[order] > 0]
        running = np.append(0.0, np.cumsum(influence[order]))
        bounds = np.searchsorted(query[order], np.arange(items.n_queries + 1))
        gap = np.maximum(self.consensus.scores[first] - self.consensus.scores[second], 0.0)
        start, stop = bounds[items.query[first]], bounds[items.query[first] + 1]
        number = np.searchsorted(running, running[start] + gap, side="right") - start
        return np.where(number <= stop - start, number, 0)

    def most_fragile(self, best: int, query: Counts) -> tuple[int, _Wanted]:
        """Return the item that the fewest votes put before the best, and these votes."""
        scores = self.consensus.scores
        rivals = query[query != best]
        rivals = rivals[np.lexsort((rivals, -scores[rivals]))]
        if self.gradients is None:
            each = [(int(one), self._least_grades(best, int(one))) for one in rivals]
        else:
            # no fewer votes than this many can close the gap of the best to each rival
            own, bound = self.gradients, np.where(np.arange(len(rivals)) < _NEAREST, 0.0, np.inf)
            block = None if self.covariance is None else self.covariance[self.consensus.items.query[best]]
            # where that is not known, in the order of the gaps; the nearest are looked at
            if block is not None and own.shared is None and self.unit is None:
                begin = int(self.consensus.items.offsets[self.consensus.items.query[best]])
                lean = block[:, [best - begin]] - block[:, rivals - begin]
                # a vote's gradients sum to zero
                size = np.bincount(own.judgment, np.abs(own.value)).max() / 2
                spread = lean.max(axis=0) - lean.min(axis=0)
                bound = np.floor((scores[best] - scores[rivals]) / np.maximum(size * spread, 1e-300))
            rivals, bound = rivals[np.argsort(bound, kind="stable")], np.sort(bound, kind="stable")
            each, fewest = [], np.inf
            for one, at_least in zip(rivals, bound, strict=True):
                if at_least >= fewest:
                    break
                each.append((int(one), self.least_votes(best, int(one))))
                fewest = min(fewest, each[-1][1].by_influence or np.inf)
        return min(each, key=lambda pair: pair[1].by_influence or np.inf)

    def _least_grades(self, first: int, other: int) -> _Wanted:
        """The grades to drop so that another mean is the larger: the highest of one item, the lowest of the other."""
        grades = self.judgments
        assert isinstance(grades, Grades)
        influence, sides, means = np.zeros(len(grades)), [], []
        for code, sign in ((first, 1.0), (other, -1.0)):
            rows = np.flatnonzero(grades.item == code)
            rows = rows[np.lexsort((grades.row_annotator[rows], -sign * grades.grade[rows]))]
            # the mean of what is left without none, the first, the first two, ...
            left = np.cumsum(grades.grade[rows[::-1]])[::-1] / np.arange(len(rows), 0, -1)
            influence[rows] = sign * (grades.grade[rows] - left[:1]) / max(len(rows) - 1, 1)
            sides.append(rows)
            means.append(left)
        tops, lows = sides
        if self.method.alpha or grades.weight is not None:
            gap = float(self.consensus.scores[first] - self.consensus.scores[other])
            order = self._largest(influence, gap)
            return _Wanted(order, _used_up(influence[order], gap), len(grades), influence)
        # of each number of grades dropped from the first, the fewest from the other
        best: tuple[int, int] | None = None
        for n_tops, mean in enumerate(means[0]):
            n_lows = int(np.searchsorted(means[1], mean + 1e-9 * max(1.0, abs(mean)), side="right"))
            if n_lows < len(lows) and (best is None or n_tops + n_lows < sum(best)):
                best = (n_tops, n_lows)
        order = np.concatenate([tops[: best[0]], lows[: best[1]]]) if best else tops[:0]
        return _Wanted(order, None if best is None else sum(best), len(grades), influence, exact=True)

    def least_units(self, influence: Floats, gap: float, unit: str) -> _Wanted | None:
        """Return the annotators or queries with the most influence on a gap, from that of each judgment."""
        judged = self.judgments
        codes, index = (judged.annotator, judged.annotators) if unit == "annotator" else (judged.block, judged.blocks)
        if codes is None or index is None or not 1 < len(index) < len(codes):
            return None
        own = np.bincount(codes, influence, len(index)).astype(np.float64)
        order = np.lexsort((np.arange(len(own)), -np.round(own / max(float(np.abs(own).max()), 1e-300), _DIGITS)))
        order = order[own[order] > 0]
        return _Wanted(order, _used_up(own[order], gap), len(index), influence, codes, index.ids)


def _used_up(influence: Floats, gap: float) -> int | None:
    """How many, from the largest on, use the gap up; ``None`` where all of them do not."""
    number = int(np.searchsorted(np.cumsum(influence), gap, side="right")) + 1
    return number if number <= len(influence) else None
