"""Answers that tell most: pairs of items with a normal posterior, chosen together with whom to ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..data.consensus import Consensus
from ..data.roster import UNLIMITED, Roster
from ..errors import ParameterError
from ..protocols import Counts, Floats, Ints
from .buying import judged_by, thing_keys
from .pairs import candidate_pairs, listed_pairs, pairs_near
from .sharing import even_loads
from .situation import Situation

if TYPE_CHECKING:
    from ..kernels.choosing import Annotators, Pairs, Scores

_FEW_PAIRS = 300_000
"""Up to so many pairs are all weighed; beyond it, pairs that stand near each other and as many random ones."""

_SPARE, _FEWEST = 4, 5_000
"""Of many pairs only so many for each answer wanted, and so many besides, are weighed for every annotator."""

_LEAST = 1e-12
"""Less information than this is none; what is worth its price is seen to when it is bought."""

_BLOCK = 300
"""Queries with more items are updated item by item: their covariances take too long."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Pairs chosen one after the other, whom to ask (a roster code; ``None`` where it is open), and what each tells."""

    left: Ints
    right: Ints
    annotator: Ints | None
    information: Floats


def choose_answers(situation: Situation, crowd: tuple[Floats, Floats], share: float, most: int) -> Chosen:
    """Return up to ``most`` pairs, each with the annotator whose answer tells most for its price.

    ``crowd`` has the mean and the mean square of the discrimination of each annotator of the consensus, and last those
    of somebody not seen before.
    """
    from ..kernels.choosing import choose_pairs

    consensus = situation.expect_consensus("information")
    scores = _scores(consensus)
    order, annotators = _annotators(situation, consensus, crowd, share, most)
    pairs = _promising(_candidates(situation, consensus), scores, annotators, _SPARE * most + _FEWEST)
    left, right = pairs.left, pairs.right
    if situation.roster is not None:
        starts, by = judged_by(situation, thing_keys({"left": left, "right": right}, situation.judgments.n_items))
        pairs = pairs._replace(starts=starts, judged_by=_places(order, len(situation.roster))[by])
    budget = np.inf if situation.budget is None else float(situation.budget)
    pair, who, told = choose_pairs(pairs, scores, annotators, budget, _LEAST, most)
    return Chosen(left[pair], right[pair], None if situation.roster is None else order[who], told)


def _promising(candidates: tuple[Ints, Ints], scores: Scores, annotators: Annotators, number: int) -> Pairs:
    """The ``number`` pairs that one answer tells most of, in rising order."""
    from ..kernels.choosing import Pairs, worths

    left, right = candidates
    query = (np.searchsorted(scores.offsets, left, side="right") - 1).astype(np.int32)
    pairs = Pairs(left, right, query, np.zeros(len(left) + 1, np.int64), np.empty(0, np.int32))
    if len(left) <= number or not len(annotators.square):
        return pairs
    worth = worths(pairs, scores, float(annotators.square.max()))
    keep = np.sort(np.argpartition(-worth, number)[:number])
    return Pairs(left[keep], right[keep], query[keep], np.zeros(number + 1, np.int64), pairs.judged_by)


def _candidates(situation: Situation, consensus: Consensus) -> tuple[Ints, Ints]:
    """Pairs to choose from, in rising order."""
    sizes = np.bincount(consensus.items.query[situation.askable], minlength=consensus.items.n_queries)
    if situation.pairs is not None or (sizes * (sizes - 1) // 2).sum() <= _FEW_PAIRS:
        return candidate_pairs(situation, None, 0, np.random.default_rng(situation.seed))
    near = pairs_near(situation, consensus)
    some = _random_pairs(situation, sizes, len(near[0]) // 5)
    left, right = (np.concatenate(side) for side in zip(near, some, strict=True))
    return listed_pairs((left, right), situation.judgments.n_items)


def _random_pairs(situation: Situation, sizes: Counts, number: int) -> tuple[Ints, Ints]:
    """Random pairs of askable items, each item about equally often."""
    rng = np.random.default_rng(situation.seed)
    items = np.flatnonzero(situation.askable).astype(np.int32)
    query = situation.judgments.items.query[items]
    one = rng.integers(0, len(items), number)
    ends = np.cumsum(sizes)
    start, size = (ends - sizes)[query[one]], sizes[query[one]]
    other = start + (one - start + 1 + (rng.random(number) * (size - 1)).astype(np.int64)) % size
    keep = size > 1
    return items[one[keep]], items[other[keep]]


def _scores(consensus: Consensus) -> Scores:
    """Scores with copies of their variances and covariances, which choosing changes."""
    from ..kernels.choosing import Scores

    if consensus.std_error is None:
        raise ParameterError(
            f"information goes by how sure scores are, which {consensus.method} does not say; "
            "use a consensus of latent_score or bradley_terry"
        )
    offsets = consensus.items.offsets
    blocks = consensus.covariance or (None,) * consensus.items.n_queries
    small = [None if block is None or len(block) > _BLOCK else np.ravel(block) for block in blocks]
    sizes = np.array([0 if block is None else len(block) for block in small], np.int64)
    start = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1)
    cells = np.concatenate([np.empty(0), *(block for block in small if block is not None)])
    # written to or not, arrays of one sort keep the kernel to one compilation
    return Scores(np.array(consensus.scores), consensus.std_error**2, cells, start, np.array(offsets))


def _annotators(
    situation: Situation, consensus: Consensus, crowd: tuple[Floats, Floats], share: float, most: int
) -> tuple[Ints, Annotators]:
    """Roster codes of those who are asked, best for their price first, and what is known of them."""
    from ..kernels.choosing import Annotators

    alpha, square = crowd
    if situation.roster is None:
        mean, one = float((square[:-1] if len(square) > 1 else square).mean()), np.ones(1)
        anybody = Annotators(np.sqrt(mean) * one, mean * one, situation.price * one, np.full(1, UNLIMITED), False)
        return np.zeros(1, np.int32), anybody
    roster = situation.roster
    of = _known(consensus, roster)
    alpha, square = alpha[of], square[of]
    order = np.argsort(-square / roster.price, kind="stable").astype(np.int32)
    capacity = even_loads(roster, order, share, most)
    order = order[capacity[order] > 0]
    return order, Annotators(alpha[order], square[order], roster.price[order], capacity[order], True)


def _known(consensus: Consensus, roster: Roster) -> Ints:
    """Code of each annotator of the roster in the quality of the consensus, -1 for new ones."""
    known = consensus.learned or consensus.quality
    if known is None:
        return np.full(len(roster), -1, np.int32)
    annotators = known[0] if isinstance(known, tuple) else known.annotators
    return annotators.codes(roster.annotators.ids)


def _places(order: Ints, n: int) -> Ints:
    """Place of each annotator of the roster in the order, -1 for those who are not in it."""
    places = np.full(n, -1, np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places
