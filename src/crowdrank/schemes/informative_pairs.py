"""The most informative preferences: pairs of items with a normal posterior, chosen together with whom to ask."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from ..data.consensus import Consensus
from ..data.index import Items
from ..data.proposals import UNLIMITED, Roster
from ..errors import ParameterError
from ..protocols import Floats, Ints
from ..wording import option
from .buying import even_loads, falling_order, past_annotators, separate_ties, thing_keys, tie_draws
from .candidate_pairs import candidate_pairs, listed_pairs, pairs_near
from .order_probabilities import wrong_after, wrong_now
from .situation import Situation

if TYPE_CHECKING:
    from .kernels.choosing import Annotators, Pairs, Scores
    from .kernels.deciding import Edges

_FEW_PAIRS = 300_000
"""Up to this many pairs are all weighed; beyond it, pairs that stand near each other and as many random ones."""

_SAMPLE_PAIRS = 300_000
"""Of more pairs this many random ones tell how much is wrong in all."""

_SPARE_PAIRS_PER_REQUEST, _SPARE_PAIRS = 4, 5_000
"""Of many pairs only this many for each preference wanted, and this many besides, are weighed for every annotator."""

_MIN_INFORMATION = 1e-12
"""Less information than this is none; what is worth its price is seen to when it is bought."""

_MAX_COVARIANCE_ITEMS = 300
"""Queries with more items are updated item by item: their covariances take too long."""


@dataclass(frozen=True)
class Goal:
    """A goal: ``k`` places whose items should be the right ones, 0 for the whole order."""

    text: str
    k: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the goal that a text names: ``"order"``, ``"best"``, or ``"top-5"`` for the first five places."""
        word = text.strip().lower().replace("_", "-") if isinstance(text, str) else ""
        if word in ("order", "best"):
            return cls(word, int(word == "best"))
        matched = re.fullmatch(r"top-([0-9]{1,9})", word)
        if matched is None or not int(matched[1]):
            raise ParameterError(
                f"{option('goal', text)} is not known; use order, best, top-5 for the first 5 places, or, of grades, "
                "ranker"
            )
        return cls(f"top-{int(matched[1])}", int(matched[1]))

    def expect_items(self, items: Items) -> str | None:
        """Return what to say of queries that have too few items for the goal; if all have, that is an error."""
        sizes = np.diff(items.offsets)
        few = int((sizes <= self.k).sum())
        if not self.k or not few:
            return None
        if few < len(sizes):
            return f"nothing is asked for {self.text} in {few:,} of {len(sizes):,} queries: no more than {self.k} items"
        most = int(sizes.max(initial=0))
        where = f"there are {most} items" if len(sizes) == 1 else f"no query has more than {most} items"
        remedy = f"name at most top-{most - 1}, or use the goal 'order'" if most > 1 else "add items"
        raise ParameterError(f"goal {self.text!r} leaves nothing to decide, as {where}; {remedy}")

    @property
    def measure(self) -> str:
        """What expected gains are measured in."""
        if not self.k:
            return "number of pairs in the wrong order"
        return "number of wrong best items" if self.k == 1 else f"number of items wrongly in the top {self.k}"

    @property
    def where(self) -> str:
        """Where the order of a pair counts, in the words of a reason."""
        if not self.k:
            return ""
        return ", and either may be the best" if self.text == "best" else f", at the edge of the top {self.k}"


@dataclass(frozen=True, eq=False)
class ChosenPairs:
    """Pairs chosen one after the other, and what is known of each.

    Parameters
    ----------
    left, right
        Items of each pair, the one of the higher score first.
    annotator
        Whom to ask, a roster code; ``None`` where it is open.
    gain
        What each is expected to lower the goal's measure by, once those before it are answered.
    first
        Probability that the first item is above the other.
    cut
        Share of the variance of their difference that the answer is expected to take away.
    before
        The goal's measure now.
    """

    left: Ints
    right: Ints
    annotator: Ints | None
    gain: Floats
    first: Floats
    cut: Floats
    before: float


def choose_preferences(
    situation: Situation, crowd: tuple[Floats, Floats], goal: Goal, share: float, most: int
) -> ChosenPairs:
    """Return up to ``most`` pairs, each with the annotator whose preference decides most for its price.

    ``crowd`` has the mean and the mean square of the discrimination of each annotator of the consensus, and last those
    of somebody not seen before.
    """
    from .kernels.choosing import choose_pairs, spreads
    from .kernels.deciding import edges_of, set_stakes

    consensus = situation.expect_consensus("information")
    scores = _scores(consensus)
    edges = edges_of(scores, goal.k)
    set_stakes(scores, edges)
    order, annotators = _annotators(situation, consensus, crowd, share, most)
    wrong = _Wrong.of(situation, scores, edges, goal)
    candidates = _pairs(situation, _candidates(situation, consensus), scores, edges)
    pairs = _most_valuable(candidates, scores, annotators, _SPARE_PAIRS_PER_REQUEST * most + _SPARE_PAIRS)
    if situation.roster is not None:
        things = {"left": pairs.left, "right": pairs.right}
        starts, by = past_annotators(situation, thing_keys(things, situation.judgments.n_items))
        pairs = pairs._replace(starts=starts, judged_by=_places(order, len(situation.roster))[by])
    spread = spreads(pairs, scores)
    money = situation.money_to_choose
    pair, who, worth, weight = choose_pairs(pairs, scores, annotators, money, _MIN_INFORMATION, most)
    gap, information = scores.score[pairs.left[pair]] - scores.score[pairs.right[pair]], weight * spread[pair]
    return ChosenPairs(
        left=np.where(gap < 0, pairs.right[pair], pairs.left[pair]),
        right=np.where(gap < 0, pairs.left[pair], pairs.right[pair]),
        annotator=None if situation.roster is None else order[who],
        gain=worth * (wrong.fall(scores) / max(worth.sum(), _MIN_INFORMATION)),
        first=1 - wrong_now(gap, spread[pair]),
        cut=information / (1 + information),
        before=wrong.before,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Wrong:
    """How much of the goal is wrong, found from pairs of items that stand for ``times`` as many.

    ``counts`` is the probability that the order of each pair decides the goal.
    """

    pairs: Pairs
    counts: Floats
    gap: Floats
    spread: Floats
    times: float
    k: int

    @classmethod
    def of(cls, situation: Situation, scores: Scores, edges: Edges, goal: Goal) -> _Wrong:
        """Return it for all pairs of items that may be asked about."""
        from .kernels.choosing import spreads
        from .kernels.deciding import at_edge

        number = _n_pairs(situation)
        few, rng = number <= _SAMPLE_PAIRS, np.random.default_rng(situation.seed)
        listed = replace(situation, pairs=None)
        chosen = candidate_pairs(listed, None, 0, rng) if few else _random_pairs(situation, _SAMPLE_PAIRS)
        pairs = _pairs(situation, chosen, scores, None)
        gap = np.abs(scores.score[pairs.left] - scores.score[pairs.right])
        times = 1.0 if few else number / max(len(gap), 1)
        return cls(pairs, at_edge(pairs, scores, edges), gap, spreads(pairs, scores), times, goal.k)

    def _total(self, wrong: Floats) -> float:
        """What is wrong in all, from the probability that each pair is.

        Pairs at the edge of k places are wrong about independently, and no more than k places can be.
        """
        if not self.k:
            return self.times * float(wrong.sum())
        of_queries = self.times * np.bincount(self.pairs.query, self.counts * wrong)
        return float((self.k * -np.expm1(-of_queries / self.k)).sum())

    @property
    def before(self) -> float:
        """What is expected to be wrong now."""
        return self._total(wrong_now(self.gap, self.spread))

    def fall(self, scores: Scores) -> float:
        """Return by how much less is expected to be wrong once variances are those of the scores given."""
        from .kernels.choosing import spreads

        return max(self.before - self._total(wrong_after(self.gap, self.spread, spreads(self.pairs, scores))), 0.0)


def _n_pairs(situation: Situation) -> int:
    """Number of pairs of askable items of one query."""
    items = situation.judgments.items
    sizes = np.bincount(items.query[situation.askable], minlength=items.n_queries)
    return int((sizes * (sizes - 1) // 2).sum())


def _pairs(situation: Situation, candidates: tuple[Ints, Ints], scores: Scores, edges: Edges | None) -> Pairs:
    """Pairs with their queries, what the order of each counts, and the draws between equal ones."""
    from .kernels.choosing import Pairs
    from .kernels.deciding import links

    left, right = candidates
    query = situation.judgments.items.query[left].astype(np.int32, copy=False)
    draws = tie_draws(situation.seed, len(left))
    starts, nobody = np.zeros(len(left) + 1, np.int64), np.empty(0, np.int32)
    pairs = Pairs(left, right, query, np.zeros(len(left)), draws, starts, nobody)
    return pairs if edges is None else pairs._replace(link=links(pairs, scores, edges))


def _most_valuable(pairs: Pairs, scores: Scores, annotators: Annotators, number: int) -> Pairs:
    """The ``number`` pairs whose preferences are worth most, in rising order."""
    from .kernels.choosing import worths

    if len(pairs.left) <= number or not len(annotators.square):
        return pairs
    worth = separate_ties(worths(pairs, scores, float(annotators.square.max())), pairs.draw)
    keep = np.sort(np.argpartition(-worth, number)[:number])
    return pairs._replace(
        left=pairs.left[keep], right=pairs.right[keep], query=pairs.query[keep], link=pairs.link[keep],
        draw=pairs.draw[keep], starts=pairs.starts[: number + 1],
    )  # fmt: skip


def _candidates(situation: Situation, consensus: Consensus) -> tuple[Ints, Ints]:
    """Pairs to choose from, in rising order."""
    if situation.pairs is not None or _n_pairs(situation) <= _FEW_PAIRS:
        return candidate_pairs(situation, None, 0, np.random.default_rng(situation.seed))
    near = pairs_near(situation, consensus)
    some = _random_pairs(situation, len(near[0]) // 5)
    left, right = (np.concatenate(side) for side in zip(near, some, strict=True))
    return listed_pairs((left, right), situation.judgments.n_items)


def _random_pairs(situation: Situation, number: int) -> tuple[Ints, Ints]:
    """Random pairs of askable items, each pair with the same probability."""
    rng = np.random.default_rng(situation.seed)
    items = np.flatnonzero(situation.askable).astype(np.int32)
    query = situation.judgments.items.query[items]
    sizes = np.bincount(query, minlength=situation.judgments.n_queries)
    ends = np.cumsum(sizes[query] - 1)
    one = np.searchsorted(ends, rng.random(number) * ends[-1], side="right")
    ends = np.cumsum(sizes)
    start, size = (ends - sizes)[query[one]], sizes[query[one]]
    other = start + (one - start + 1 + (rng.random(number) * (size - 1)).astype(np.int64)) % size
    keep = size > 1
    return items[one[keep]], items[other[keep]]


def _scores(consensus: Consensus) -> Scores:
    """Scores with copies of their variances and covariances, which choosing changes."""
    from .kernels.choosing import Scores

    if consensus.std_error is None:
        raise ParameterError(
            f"information needs standard errors of the scores, which {consensus.method} does not give; "
            "use a consensus of latent_score or bradley_terry"
        )
    offsets = consensus.items.offsets
    blocks = consensus.covariance or (None,) * consensus.items.n_queries
    small = [None if block is None or len(block) > _MAX_COVARIANCE_ITEMS else np.ravel(block) for block in blocks]
    sizes = np.array([0 if block is None else len(block) for block in small], np.int64)
    start = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1)
    cells = np.concatenate([np.empty(0), *(block for block in small if block is not None)])
    # written to or not, arrays of one sort keep the kernel to one compilation
    variance, pull = consensus.std_error**2, np.zeros(len(consensus.scores))
    return Scores(
        np.array(consensus.scores), variance, pull, cells, np.zeros(len(cells)), start, np.array(offsets)
    )  # fmt: skip


def _annotators(
    situation: Situation, consensus: Consensus, crowd: tuple[Floats, Floats], share: float, most: int
) -> tuple[Ints, Annotators]:
    """Roster codes of those who are asked, best for their price first, and what is known of them."""
    from .kernels.choosing import Annotators

    alpha, square = crowd
    if situation.roster is None:
        mean, one = float((square[:-1] if len(square) > 1 else square).mean()), np.ones(1)
        anybody = Annotators(np.sqrt(mean) * one, mean * one, situation.price * one, np.full(1, UNLIMITED), False)
        return np.zeros(1, np.int32), anybody
    roster = situation.roster
    of = _annotator_codes(consensus, roster)
    alpha, square = alpha[of], square[of]
    order = falling_order(square / roster.price, tie_draws(situation.seed, len(roster))).astype(np.int32)
    capacity = even_loads(roster, order, share, most)
    order = order[capacity[order] > 0]
    return order, Annotators(alpha[order], square[order], roster.price[order], capacity[order], True)


def _annotator_codes(consensus: Consensus, roster: Roster) -> Ints:
    """Code of each annotator of the roster in what the consensus learned of them, -1 for those it knows nothing of."""
    known = consensus.learned
    return np.full(len(roster), -1, np.int32) if known is None else known[0].codes(roster.annotators.ids)


def _places(order: Ints, n: int) -> Ints:
    """Place of each annotator of the roster in the order, -1 for those who are not in it."""
    places = np.full(n, -1, np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places
