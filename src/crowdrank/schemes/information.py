"""The answers that are expected to decide most for their price."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from ..data.consensus import Consensus
from ..data.features import Features
from ..data.index import Items
from ..data.judgments import Grades, Preferences, expect
from ..data.proposals import UNLIMITED, Requests, Roster
from ..errors import ParameterError
from ..kernels.threads import read_only
from ..protocols import Counts, Floats, Ints
from ..wording import expect_at_least, one_of, option
from .class_probabilities import LIKELIEST, CautiousLevels
from .situation import (
    UNJUDGED,
    JudgedPairs,
    Situation,
    WishList,
    candidate_pairs,
    even_loads,
    falling_order,
    listed_pairs,
    pairs_near,
    past_annotators,
    select_rows,
    separate_ties,
    thing_keys,
    tie_draws,
    tie_draws_over_queries,
    wrong_after,
    wrong_now,
)

if TYPE_CHECKING:
    from .kernels.choosing import Annotators, Edges, Pairs, Scores

_ABOUT_CHOICES = ("auto", "grade", "gain")
_RANKER = "ranker"
_MAX_REQUESTS = 10_000
_NEWCOMER_DEVIATION = 0.5

_SURE_ORDER_PROBABILITY = 0.95
"""A pair whose order is surer than this is asked about for the place of its items, not for its order."""


@dataclass(frozen=True, kw_only=True)
class Information:
    r"""Value of information: the question and annotator that are expected to decide most per unit of money.

    Preferences: an answer by annotator :math:`a` about items :math:`i` and :math:`j` has the weight
    :math:`w = E[\alpha_a^2] P (1 - P)`, where :math:`P` is the predicted probability that :math:`a` prefers :math:`i`.
    It lowers the variance :math:`V_{kl}` of the difference of any two scores of the query by

    .. math:: \Delta V_{kl} = \frac{w}{1 + w V_{ij}} \, \mathrm{Cov}(s_k - s_l, s_i - s_j)^2

    and is worth :math:`\sum_{kl} b_{kl} \, \phi(z_{kl}) \phi(0) \, \Delta V_{kl} / V_{kl}`: the fall of the expected
    number of wrong orders that count. :math:`z_{kl}` is the difference in standard deviations, so pairs whose
    order is open count most, and :math:`b_{kl}` the probability that their order decides the goal: 1 for ``"order"``;
    for ``"top-5"`` that the two, were they equal, would be at the edge of the first five places; for ``"best"`` at that
    of the first. Grades: the mutual information between an item's level :math:`j` and the grade :math:`l` that
    annotator :math:`a` would give,

    .. math:: H\Big(\sum_j p_j \pi_{aj\cdot}\Big) - \sum_j p_j H(\pi_{aj\cdot}),

    or, with ``about="gain"``, the expected fall of the variance of its gain :math:`2^g - 1`; with ``goal="ranker"`` the
    expected growth of nDCG@10 of the order by expected gains, over the answer and over all levels, and so over the
    ideal DCG: a query in which nothing may be relevant has little to gain. With features that
    order is by a linear ranker :math:`w` of the gains, and a grade changes what all queries show: neighbours :math:`k`
    and :math:`l` of the first ten places move apart or pass each other by a standard deviation of
    :math:`|(x_k - x_l)^\top \Sigma x_i| \sqrt{\kappa / (1 + \kappa x_i^\top \Sigma x_i)}`, where :math:`\Sigma` is
    the posterior covariance of :math:`w` and :math:`\kappa` the precision that the grade adds.

    When to use
    -----------
    Use it by default for preferences, and for grades or classes to spend a fixed budget where it helps most.

    Parameters
    ----------
    goal
        Of preferences: what the answers should decide in each query, its ``"order"``, which items are in its first
        places (``"top-5"``), or which is ``"best"``. Of grades ``"ranker"``: what changes the order that is shown,
        and with features what changes the orders that a ranker shows.
    about
        Of grades: ``"grade"`` or ``"gain"``, what the answer should tell of. ``"auto"`` takes the grade, which is what
        the consensus of a class method says; orders by gains come out as good in simulations, and only the error of
        the gains themselves is lower with ``"gain"``.
    share
        Share of the pool that is asked, the best for their price, with about equal loads; others join where capacities
        do not suffice. Raise it where few annotators should not decide everything.
    most
        Most grades of one item asked for in one call; with features one.
    least
        Fewest grades of an item, before any item gets more; with features none, since not every item need be graded.

    Notes
    -----
    Requests of one call are chosen one after the other, each supposing that those before it are answered. An answer
    about a pair shrinks the covariance of all scores of its query (item by item where there is none, or in queries
    above 300 items), so ten thousand requests spread over what is open. Where there are more than 300,000 pairs,
    each item is weighed against the ten next in the order and some at random. Equally good requests are drawn by the
    seed. A pair whose order is sure may still be asked about: it places an item whose score is not.

    Of grades, what a class method estimates of an annotator is weighed against 70 % right answers, which count as 20
    grades of items that others graded too: a grade that nobody repeated is not taken for certain. Until every item has
    its ``least`` grades, those that lack most come first, in random order: a model that knows annotators by few common
    items asks about the wrong ones.

    Of the goal ``"ranker"``, what the answers of one call bring together is drawn from the posterior, and each request
    says its part of it. Of 200 requests in 60 simulated queries it was within 10 % of what they brought.

    Without a pool annotators come as they come: pairs are chosen for one of the crowd's mean discrimination.
    Discriminations are those of ``latent_score``; with another method all annotators count the same.

    Examples
    --------
    >>> import crowdrank
    >>> rows = [(who, "q", a, b, "left") for who in ("ann", "bob") for a, b in ("wx", "xy", "yz", "zw")]
    >>> votes = crowdrank.Preferences.from_rows([*rows, ("cy", "q", "x", "w", "left")])
    >>> consensus = crowdrank.aggregate(votes, "bradley_terry")
    >>> requests = Information().propose(Situation.of(votes, consensus=consensus, budget=2))
    >>> requests.measure, requests.n_judgments
    ('number of pairs in the wrong order', 2)
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade", "preference")
    nominal: ClassVar[bool] = True
    needs: ClassVar[Mapping[str, str]] = {"grade": "dawid_skene", "preference": "latent_score"}
    goal: str = "order"
    about: str = "auto"
    share: float = 0.33
    most: int = 3
    least: int = 2

    def __post_init__(self) -> None:
        if self.goal != _RANKER:
            Goal.parse(self.goal)
        one_of(self.about, _ABOUT_CHOICES, "about")
        if not 0 < self.share <= 1:
            raise ParameterError(f"share={self.share} must be above 0 and at most 1; it is the share of the pool asked")
        expect_at_least(self, 1, "most", hint="it is the most grades of an item in one call")
        expect_at_least(self, 0, "least", hint="it is the fewest grades of an item")

    def propose(self, situation: Situation) -> Requests:
        """Return what to ask next; without a budget as many answers as there are so far, at most 10,000."""
        judgments = expect(situation.judgments, self)
        goal = None if self.goal == _RANKER else Goal.parse(self.goal)
        if not isinstance(judgments, Grades):
            if goal is None:
                raise ParameterError("goal 'ranker' applies to grades, but these are preferences; use top-10 or order")
            note = goal.expect_items(judgments.items)
            proposed = choose_preferences(situation, judgments, goal, self.share).requests(self, situation)
            return proposed if note is None else replace(proposed, notes=(*proposed.notes, note))
        about = _RANKER if goal is None else "gain" if self.about == "gain" else "grade"
        if goal is not None and goal.k:
            raise ParameterError(
                f"goal {goal.text!r} applies to preferences, but these are grades; leave the goal out or use ranker"
            )
        if judgments.nominal and about != "grade":
            named = "goal 'ranker'" if goal is None else "about='gain'"
            raise ParameterError(f"{named} needs an order, and these classes have none; leave it out")
        return choose_graders(situation, judgments, about, self).requests(self, situation)


def preference_discriminations(consensus: Consensus) -> tuple[Floats, Floats]:
    """Return the discrimination of each annotator for preferences and its standard deviation, (n_annotators + 1,) each.

    The last entry is that of an annotator without judgments: the crowd's mean and standard deviation. Where a method
    learns none, discriminations are 1.
    """
    learned, estimates = consensus.learned, consensus.estimates
    if learned is None or "alpha" not in learned[1]:
        size = 1 + (0 if learned is None else len(learned[0]))
        return np.ones(size), np.zeros(size)
    alpha, alpha_sd = learned[1]["alpha"], learned[1]["alpha_sd"]
    scale = float(estimates.get("scale_preference", 1.0))
    mean = float(np.mean(alpha)) if len(alpha) else 1.0
    deviation = float(estimates.get("alpha_sd", _NEWCOMER_DEVIATION))
    return scale * np.append(alpha, mean), scale * np.append(alpha_sd, deviation)


# threshold (sample): pairs of which all are scored for information
_FEW_PAIRS = 300_000
"""Up to this many pairs are all weighed; beyond it, pairs that stand near each other and as many random ones."""

_SAMPLE_PAIRS = 300_000
"""Of more pairs this many random ones tell how much is wrong in all."""

_SPARE_PAIRS_PER_REQUEST, _SPARE_PAIRS = 4, 5_000
"""Of many pairs only this many for each preference wanted, and this many besides, are weighed for every annotator."""

_MIN_INFORMATION = 1e-12
"""Less information than this is none; what is worth its price is seen to when it is bought."""

# threshold (sample): items of a query whose covariance `information` updates
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


def choose_preferences(situation: Situation, judgments: Preferences, goal: Goal, share: float) -> WishList:
    """Return pairs one after the other, each with the annotator whose preference decides most for its price."""
    from .kernels.choosing import choose_pairs, edges_of, set_stakes, spreads, worths

    consensus, roster = situation.expect_consensus("information"), situation.roster
    most = situation.n_to_choose
    if most is None:
        most = min(max(len(judgments), judgments.n_items), _MAX_REQUESTS)
    scores = _scores(consensus)
    edges = edges_of(scores, goal.k)
    set_stakes(scores, edges)
    order, annotators = _annotators(situation, consensus, share, most)
    wrong_in_all = _wrong_in_all(situation, scores, edges, goal.k)
    before = wrong_in_all()
    pairs = _pairs(situation, _candidates(situation, consensus), scores, edges)
    n_weighed = _SPARE_PAIRS_PER_REQUEST * most + _SPARE_PAIRS
    if len(pairs.left) > n_weighed and len(annotators.square):
        # those whose preferences are worth most, in rising order
        worth = separate_ties(worths(pairs, scores, float(annotators.square.max())), pairs.draw)
        keep = np.sort(np.argpartition(-worth, n_weighed)[:n_weighed])
        columns = {name: getattr(pairs, name)[keep] for name in ("left", "right", "query", "link", "draw")}
        pairs = pairs._replace(**columns, starts=pairs.starts[: n_weighed + 1])
    if roster is not None and not situation.repeats:
        things = {"left": pairs.left, "right": pairs.right}
        starts, by = past_annotators(situation, thing_keys(things, judgments.n_items), order)
        pairs = pairs._replace(starts=starts, judged_by=by)
    spread = spreads(pairs, scores)
    money = situation.money_to_choose
    pair, who, worth, weight = choose_pairs(pairs, scores, annotators, money, _MIN_INFORMATION, most)
    gap, information = scores.score[pairs.left[pair]] - scores.score[pairs.right[pair]], weight * spread[pair]
    # the item of the higher score first
    left = np.where(gap < 0, pairs.right[pair], pairs.left[pair])
    right = np.where(gap < 0, pairs.left[pair], pairs.right[pair])
    first, cut = 1 - wrong_now(gap, spread[pair]), information / (1 + information)
    things = {"left": left, "right": right}
    known = JudgedPairs.of(judgments).counts(thing_keys(things, judgments.n_items)) > 0
    assert consensus.std_error is not None
    one, other = consensus.std_error[left], consensus.std_error[right]
    # the order of a pair is open, or an answer places the less sure of its items
    sure, unsure = first > _SURE_ORDER_PROBABILITY, np.where(one >= other, left, right)
    reasons = (
        f"P({{0}} above {{1}}) is {{3:.2f}}{goal.where}; one more answer is expected to cut the variance of their "
        "difference by {4:.0f} %",
        "places {2}, whose score has a standard error of {5:.2f}; P({0} above {1}) is {3:.3f}",
    )
    return WishList(
        things=things,
        # what each lowers the measure by, once those before it are answered
        gain=worth * (max(before - wrong_in_all(scores), 0.0) / max(worth.sum(), _MIN_INFORMATION)),
        annotator=None if roster is None else order[who],
        reason=(2 * ~known + sure).astype(np.int32),
        reasons=(*reasons, *(f"not compared yet; {reason}" for reason in reasons)),
        named=np.stack([left, right, unsure], axis=1),
        detail=np.stack([first, 100 * cut, np.maximum(one, other)], axis=1),
        measure=goal.measure,
        before=before,
    )


def _wrong_in_all(situation: Situation, scores: Scores, edges: Edges, k: int) -> Callable[..., float]:
    """What returns how much of the goal is expected to be wrong, now or once variances are those of scores given.

    It goes by all pairs of items that may be asked about, or by a sample of them.
    """
    from .kernels.choosing import at_edge, spreads

    number, rng = _n_pairs(situation), np.random.default_rng(situation.seed)
    few, listed = number <= _SAMPLE_PAIRS, replace(situation, pairs=None)
    chosen = candidate_pairs(listed, None, 0, rng) if few else _random_pairs(situation, _SAMPLE_PAIRS)
    pairs = _pairs(situation, chosen, scores, None)
    gap = np.abs(scores.score[pairs.left] - scores.score[pairs.right])
    spread, counts = spreads(pairs, scores), at_edge(pairs, scores, edges)
    times = 1.0 if few else number / max(len(gap), 1)

    def total(after: Scores | None = None) -> float:
        wrong = wrong_now(gap, spread) if after is None else wrong_after(gap, spread, spreads(pairs, after))
        if not k:
            return times * float(wrong.sum())
        # pairs at the edge of k places are wrong about independently, and no more than k places can be
        of_queries = times * np.bincount(pairs.query, counts * wrong)
        return float((k * -np.expm1(-of_queries / k)).sum())

    return total


def _n_pairs(situation: Situation) -> int:
    """Number of pairs of askable items of one query."""
    sizes = situation.askable_items()[2]
    return int((sizes * (sizes - 1) // 2).sum())


def _pairs(situation: Situation, candidates: tuple[Ints, Ints], scores: Scores, edges: Edges | None) -> Pairs:
    """Pairs with their queries, what the order of each counts, and the draws between equal ones."""
    from .kernels.choosing import Pairs, links

    left, right = candidates
    query = situation.judgments.items.query[left].astype(np.int32, copy=False)
    draws = tie_draws(situation.seed, len(left))
    starts, nobody = np.zeros(len(left) + 1, np.int64), np.empty(0, np.int32)
    pairs = Pairs(left, right, query, np.zeros(len(left)), draws, starts, nobody)
    return pairs if edges is None else pairs._replace(link=links(pairs, scores, edges))


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
    items, query, sizes = situation.askable_items()
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
    blocks = consensus.covariance or (None,) * consensus.items.n_queries
    small = [None if block is None or len(block) > _MAX_COVARIANCE_ITEMS else np.ravel(block) for block in blocks]
    sizes = np.array([0 if block is None else len(block) for block in small], np.int64)
    start = np.where(sizes > 0, np.cumsum(sizes) - sizes, -1)
    cells = np.concatenate([np.empty(0), *(block for block in small if block is not None)])
    # written to or not, arrays of one sort keep the kernel to one compilation
    variance, pull = consensus.std_error**2, np.zeros(len(consensus.scores))
    scores, totals = np.array(consensus.scores), np.zeros(len(cells))
    return Scores(scores, variance, pull, cells, totals, start, np.array(consensus.items.offsets))


def _annotators(situation: Situation, consensus: Consensus, share: float, most: int) -> tuple[Ints, Annotators]:
    """Roster codes of those who are asked, best for their price first, and what is known of them."""
    from .kernels.choosing import Annotators

    alpha, deviation = preference_discriminations(consensus)
    # where answers are known to vary less than coins of their probability do, as with ties, each tells the more
    square = (alpha**2 + deviation**2) / float(consensus.estimates.get("answer_variance", 1.0))
    if situation.roster is None:
        mean, one = float((square[:-1] if len(square) > 1 else square).mean()), np.ones(1)
        anybody = Annotators(np.sqrt(mean) * one, mean * one, situation.price * one, np.full(1, UNLIMITED), False)
        return np.zeros(1, np.int32), anybody
    roster, known = situation.roster, consensus.learned
    # those of whom nothing is known have the code -1, the last entry
    of = np.full(len(roster), -1, np.int32) if known is None else known[0].codes(roster.annotators.ids)
    alpha, square = alpha[of], square[of]
    order = situation.falling_order(square / roster.price).astype(np.int32)
    capacity = even_loads(roster, order, share, most)
    order = order[capacity[order] > 0]
    return order, Annotators(alpha[order], square[order], roster.price[order], capacity[order], not situation.repeats)


_MEASURE = {
    "grade": "uncertainty of the grades (in nats)",
    "gain": "squared error of the items' gains",
    "ranker": "nDCG@10 that the orders shown lose against the best ones, summed over queries",
}
_DOUBT = {
    "grade": "entropy of its grade",
    "gain": "variance of its gain",
    "ranker": "nDCG@10 that its query may lose by it",
}
_SPARE_PER_GRADE, _SPARE_ITEMS = 2, 2_000
"""Of many items only this many for each grade wanted, and this many besides, are weighed for every annotator."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Items that may be asked about, with what is known of their levels.

    Parameters
    ----------
    item
        Their codes, rising.
    posterior
        Probability of each level, (n_candidates, n_levels).
    gain
        Gain of each level where grades should tell of gains, ``None`` where they should tell of the level itself.
    lacking
        How many grades each lacks of its fewest.
    query
        Query of each, for ties.
    shown
        The order that would be shown, by expected gains or by a ranker, where grades should tell of that.
    """

    item: Ints
    posterior: Floats
    gain: Floats | None
    lacking: Counts
    query: Ints
    shown: ShownOrder | TaughtOrder | None = None

    def expected_information(self, confusions: Floats) -> tuple[Floats, Floats | None]:
        """Return what a grade by annotators of these confusions tells of each item, (n_candidates, n_annotators).

        The second array is what each query could gain, where orders are shown by gains.
        """
        if isinstance(self.shown, ShownOrder):
            return self.shown.change(confusions)[:2]
        value = np.empty((len(self.item), len(confusions)))
        for who, confusion in enumerate(confusions):
            of_one = value_of(self.posterior, confusion, self.gain)
            value[:, who] = of_one if self.shown is None else self.shown.change(np.sqrt(of_one))
        return value, None

    def ceiling(self) -> Floats:
        """Return all that there is to tell of each item."""
        if self.gain is None:
            return _entropy(self.posterior)
        if isinstance(self.shown, ShownOrder):
            return self.shown.change(np.eye(len(self.gain))[None])[0][:, 0]
        variance: Floats = np.maximum(self.posterior @ self.gain**2 - (self.posterior @ self.gain) ** 2, 0.0)
        return variance if self.shown is None else self.shown.change(np.sqrt(variance))

    def marginal_information(self, information: Floats, ceiling: Floats, number: Counts) -> Floats:
        """Return what grade ``number`` (0 the first) of items tells once those before it are there.

        Repeated grades are taken as repeated measurements of a normal quantity: ``n`` grades tell ``log(1 + n x)``
        where one tells ``log(1 + x)``, and leave ``1 / (1 + n x)`` of a variance.
        """
        if self.gain is None:
            x = np.expm1(information)
            return np.log1p((number + 1) * x) - np.log1p(number * x)
        some_is_left = ceiling > information * (1 + 1e-9)
        x = np.divide(information, ceiling - information, out=np.full_like(information, 1e9), where=some_is_left)
        return ceiling * (1 / (1 + number * x) - 1 / (1 + (number + 1) * x))

    def take(self, rows: Counts) -> Candidates:
        """Return some of the items."""
        shown = None if self.shown is None else self.shown.take(rows)
        return select_rows(replace(self, shown=shown), rows, "item", "posterior", "lacking", "query")


def choose_graders(situation: Situation, grades: Grades, about: str, scheme: Information) -> WishList:
    """Return the grades that tell most, one after the other; items without their fewest grades come first."""
    known = CautiousLevels.of(situation, grades, "information")
    levels = grades.level_codes()[2]
    posterior, crowd, gain = known.posterior, known.crowd, None if about == "grade" else np.exp2(levels) - 1
    item = np.flatnonzero(situation.askable).astype(np.int32)
    shown: ShownOrder | TaughtOrder | None = None
    if about == "ranker":
        assert gain is not None
        # the order by expected gains, or with features that of a ranker which learned them
        if situation.features is None:
            shown = ShownOrder.of(grades.items, posterior, gain, situation.seed).take(item)
        else:
            rest = posterior, gain, np.flatnonzero(grades.judged_items), situation.seed
            shown = TaughtOrder.of(grades.items, situation.features, *rest).take(item)
    counts = np.bincount(grades.item, minlength=grades.n_items)
    if isinstance(shown, TaughtOrder):
        # not every item need be graded, and another item teaches more than the same again
        scheme = replace(scheme, most=1, least=0)
    lacking = np.maximum(scheme.least - counts[item], 0)
    items = Candidates(item, posterior[item], gain, lacking, grades.items.query[item], shown)
    if isinstance(shown, TaughtOrder) and situation.n_to_choose is not None:
        fall = value_of(items.posterior, crowd, gain)
        items = replace(items, shown=shown.in_stages(np.sqrt(fall), situation.n_to_choose))
    by_crowd, possible = items.expected_information(crowd[None])
    information = by_crowd[:, 0]
    before = None if possible is None else float(possible.sum())
    if shown is None:
        before = float(items.ceiling().sum())
    elif possible is not None and situation.roster is None:
        # of the others, which tell nothing, the ceiling need not be known
        keep = np.flatnonzero((information > 0) | (lacking > 0))
        items, information = items.take(keep), information[keep]
    if situation.n_to_choose is not None:
        n_weighed = _SPARE_PER_GRADE * situation.n_to_choose + _SPARE_ITEMS
        draws = tie_draws_over_queries(situation.seed, items.query)
        if len(information) > n_weighed:
            value = separate_ties(urgency(information, items.lacking), draws)
            keep = np.sort(np.argpartition(-value, n_weighed)[:n_weighed])
            items, information = items.take(keep), information[keep]
    ceiling = items.ceiling()
    if situation.roster is None:
        n, most = len(items.item), scheme.most
        place, number = np.repeat(np.arange(n), most), np.tile(np.arange(most), n)
        gains = items.marginal_information(information[place], ceiling[place], number)
        draws = tie_draws_over_queries(situation.seed, items.query)[place]
        price, by = np.full(len(place), situation.price), np.zeros(len(place), np.int32)
        wished = Wished(place, gains, items.lacking[place] - number, draws, price, by, crowd[None]).in_order()
    else:
        roster = situation.roster
        # that of the crowd for those nothing is known of
        confusion = np.broadcast_to(crowd, (len(roster), *crowd.shape))
        if grades.n_annotators:
            matrices = np.concatenate([known.confusion, crowd[None]])
            confusion = matrices[grades.annotators.codes(roster.annotators.ids)]
        wished = _by_graders(situation, roster, items, confusion, ceiling, scheme)
    if isinstance(items.shown, ShownOrder):
        assert possible is not None
        wished = wished.together(situation, items, possible)
    place, gains = wished.place, wished.gains
    asked, sure = items.item[place], items.posterior.max(axis=1)[place]
    expected_cut = np.divide(gains, ceiling[place], out=np.zeros_like(gains), where=ceiling[place] > 0)
    cut = f"one more grade is expected to cut the {_DOUBT[about]} by {{:.0f}} %"
    return WishList(
        things={"item": asked},
        gain=gains,
        annotator=None if situation.roster is None else wished.by,
        reason=(counts[asked] > 0).astype(np.int32),
        reasons=(UNJUDGED, f"{LIKELIEST}; {cut}"),
        detail=np.stack([sure, 100 * expected_cut], axis=1),
        measure=_MEASURE[about],
        before=before,
    )


def urgency(value: Floats, lacking: Counts) -> Floats:
    """Return how urgent grades are: by what they tell, after those of items that lack some of their fewest.

    Of the latter all are equally urgent that lack as many: until annotators are known by items that several graded,
    what a model expects an answer to tell is not to be relied on.
    """
    return np.where(lacking > 0, (1.0 + lacking) * max(float(value.max(initial=0.0)), 1.0), value)


def value_of(posterior: Floats, confusion: Floats, gain: Floats | None) -> Floats:
    """Return what a grade by an annotator of that confusion is expected to tell of each item, (n_items,).

    Nats about its level; with gains of the levels, the expected fall of the variance of its gain.
    """
    if gain is None:
        noise: Floats = posterior @ _entropy(confusion)
        return np.maximum(_entropy(posterior @ confusion) - noise, 0.0)
    chance, mean = posterior @ confusion, (posterior * gain) @ confusion
    squares = np.divide(mean**2, chance, out=np.zeros_like(mean), where=chance > 0)
    fall: Floats = squares.sum(axis=1) - (posterior @ gain) ** 2
    return np.maximum(fall, 0.0)


def _entropy(shares: Floats) -> Floats:
    """Entropy of each row in nats."""
    return -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class Wished:
    """Grades that are wished for, the most urgent first.

    Parameters
    ----------
    place, gains
        Place of each among the candidates, and what it tells.
    lacking, draws, price
        How many grades its item then lacks of its fewest, its draw for ties, and its price.
    by, confusions
        Whose it is, and the confusion matrices of all of them.
    """

    place: Counts
    gains: Floats
    lacking: Counts
    draws: Floats
    price: Floats
    by: Ints
    confusions: Floats

    def in_order(self) -> Wished:
        """Return the grades by falling urgency, those that tell nothing left out."""
        urgent = urgency(self.gains / self.price, self.lacking)
        order = falling_order(urgent, self.draws)
        order = order[urgent[order] > 0]
        return select_rows(self, order, "place", "gains", "lacking", "draws", "price", "by")

    def together(self, situation: Situation, items: Candidates, possible: Floats) -> Wished:
        """Return the same with what each adds to the nDCG of its query once those before it are there.

        A grade that alone brings a share of all that its query could gain brings that share of what is left by then.
        What those that are bought bring together is drawn, and all but the first of each query share the difference.
        """
        assert isinstance(items.shown, ShownOrder)
        query = items.query[self.place]
        share = np.divide(self.gains, possible[query], out=np.zeros_like(self.gains), where=possible[query] > 0)
        by_query = np.argsort(query, kind="stable")
        rest = np.log1p(-np.minimum(share[by_query], 1 - 1e-9))
        before = np.cumsum(rest) - rest
        left = np.empty_like(share)
        left[by_query] = np.exp(before - before[np.searchsorted(query[by_query], query[by_query])])
        wished = replace(self, gains=np.minimum(self.gains, possible[query]) * left).in_order()
        query, gains = items.query[wished.place], wished.gains
        bought = np.flatnonzero(gains >= situation.least_gain * wished.price)[: situation.n_to_choose]
        later = np.ones(len(gains), bool)
        later[bought[np.unique(query[bought], return_index=True)[1]]] = False
        bought = bought[np.isin(query[bought], query[bought[later[bought]]])]
        total = float(gains[bought[later[bought]]].sum())
        if total <= 0:
            return wished
        drawn = items.shown.joint_change(items.item[wished.place[bought]], wished.confusions, wished.by[bought])
        factor = (drawn - float(gains[bought[~later[bought]]].sum())) / total
        return replace(wished, gains=np.where(later, gains * np.clip(factor, 0.0, 1.0), gains)).in_order()


def _by_graders(
    situation: Situation, roster: Roster, items: Candidates, confusion: Floats, ceiling: Floats, scheme: Information
) -> Wished:
    """The grades that tell most for their price, and whose they are."""
    from .kernels.assigning import choose_annotators

    most = scheme.most
    # those who tell most for their price, and how much of each
    sample = np.random.default_rng(situation.seed).permutation(items.posterior)[:_SPARE_ITEMS]
    worth = np.array([value_of(sample, matrix, items.gain).sum() for matrix in confusion]) / roster.price
    who = situation.falling_order(worth).astype(np.int32)
    wanted = most * len(items.item)
    if situation.n_to_choose is not None:
        wanted = min(wanted, situation.n_to_choose)
    capacity = even_loads(roster, who, scheme.share, wanted)
    who = who[capacity[who] > 0]
    capacity = capacity[who]
    information = items.expected_information(confusion[who])[0]
    price = roster.price[who]
    draws = tie_draws_over_queries(situation.seed, items.query)
    place, chosen, number = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    if len(who):
        best = (information / price).max(axis=1)[:, None]
        urgent = items.marginal_information(best, ceiling[:, None], np.arange(most))
        urgent = urgency(urgent, items.lacking[:, None] - np.arange(most))
        starts, by = past_annotators(situation, items.item.astype(np.int64), who)
        order = falling_order(urgent.ravel(), np.repeat(draws, most)) // most
        limit = (situation.money_to_choose, most)
        place, chosen, number = choose_annotators(order, information, price, capacity, starts, by, *limit)
    gains = items.marginal_information(information[place, chosen], ceiling[place], number)
    lacking = items.lacking[place] - number
    return Wished(place, gains, lacking, draws[place], price[chosen], who[chosen], confusion).in_order()


# The orders that are shown, for the goal of a ranker

PLACES = 10

_N_DRAWS, _N_DRAW_ROWS = 64, 1024
"""Draws of the levels of a query, and how many items have draws of their own; further ones have them shifted."""

_N_WORLDS, _MIN_WORLDS = 20_000, 16
"""Orders that are drawn to learn what answers bring together, over all queries, and the fewest of each query."""


@dataclass(frozen=True, eq=False)
class ShownOrder:
    r"""The items of each query as a ranker would show them now, by expected gain.

    nDCG@10 of an order is :math:`\sum_j D_{r_j} g_j / I`, with :math:`D_r` the discount of place :math:`r` (0 after the
    tenth), :math:`g_j` the gain of item :math:`j` and :math:`I` the DCG of the best order, and 0 where no item has
    a gain. Gains are uncertain, and so is :math:`I`: expectations are over draws of the levels of all items. An answer
    about item :math:`i` changes the probabilities of its levels, and by them its place and :math:`E[g_j / I]` of all
    items; it is worth the mean over answers of the expected nDCG of the new order, less that of the present one.

    Parameters
    ----------
    items, posterior, gain
        All items, the probability of each level of each, (n_items, n_levels), and the gain of each level.
    order
        Items as they are shown, query after query.
    candidate
        The items that may be asked about.
    seed
        Seed of the draws.
    """

    items: Items
    posterior: Floats
    gain: Floats
    order: Counts
    candidate: Ints
    seed: int

    @classmethod
    def of(cls, items: Items, posterior: Floats, gain: Floats, seed: int) -> ShownOrder:
        """Return the order of all items; equal ones stand as drawn, and gains below 0 count as 0."""
        gain = np.maximum(gain, 0.0)
        order = np.lexsort((tie_draws(seed, len(items)), -(posterior @ gain), items.query))
        return cls(items, posterior, gain, order, np.arange(len(items), dtype=np.int32), seed)

    def take(self, rows: Counts | Ints) -> ShownOrder:
        """Return the order with some of its candidates."""
        return replace(self, candidate=self.candidate[rows])

    def change(self, confusions: Floats) -> tuple[Floats, Floats, Floats]:
        """Return what an answer about each candidate by each annotator adds to the expected nDCG of its query.

        Then what each query could gain if all levels were known, and its expected nDCG now.
        """
        from .kernels.expected_ndcg import expected_changes

        rng = np.random.default_rng([self.seed, 3])
        strata = rng.permuted(np.tile(np.arange(_N_DRAWS), (_N_DRAW_ROWS, 1)), axis=1)
        row = np.full(len(self.items), -1, np.int64)
        row[self.candidate] = np.arange(len(self.candidate))
        return expected_changes(
            self.order.astype(np.int64), self.items.offsets.astype(np.int64), row,
            np.ascontiguousarray(self.posterior), self.gain, np.ascontiguousarray(confusions),
            place_discounts()[:PLACES], (strata + rng.random(strata.shape)) / _N_DRAWS,
        )  # fmt: skip

    def joint_change(self, item: Ints, confusions: Floats, by: Ints) -> float:
        """Return the growth of nDCG, summed over queries, by answers about these items taken together.

        It is the mean over draws of all levels and answers. ``by`` is the annotator of each answer, whose confusion is
        ``confusions[by]``.
        """
        from ..kernels.ranking_measures import AVERAGE, discounted_gain, ideal_gain

        queries, sizes = np.unique(self.items.query[item]), np.diff(self.items.offsets)
        offsets = np.append(0, np.cumsum(sizes[queries]))
        rows = np.arange(offsets[-1]) + np.repeat(self.items.offsets[queries] - offsets[:-1], sizes[queries])
        asked = np.searchsorted(rows, item)
        posterior = self.posterior[rows]
        reach, answers = posterior.cumsum(axis=1)[:, :-1], confusions.cumsum(axis=2)[:, :, :-1]
        with np.errstate(divide="ignore"):  # an impossible level stays impossible
            prior, likelihood = np.log(posterior), np.log(confusions)
        bounds, discount = read_only(offsets.astype(np.int64)), read_only(place_discounts()[:PLACES])
        shown = read_only(posterior @ self.gain)
        rng = np.random.default_rng([self.seed, 4])
        n_worlds, total = max(_MIN_WORLDS, _N_WORLDS // len(queries)), 0.0
        for _ in range(n_worlds):
            level = (rng.random((len(rows), 1)) >= reach).sum(axis=1)
            answer = (rng.random((len(item), 1)) >= answers[by, level[asked]]).sum(axis=1)
            after = prior.copy()
            np.add.at(after, asked, likelihood[by, :, answer])
            after = np.exp(after - after.max(axis=1, keepdims=True))
            mean = (after @ self.gain) / after.sum(axis=1)
            gains = read_only(self.gain[level])
            best = ideal_gain(gains, bounds, PLACES, False, discount)
            growth = discounted_gain(gains, read_only(mean), bounds, PLACES, AVERAGE, False, discount)
            growth = growth - discounted_gain(gains, shown, bounds, PLACES, AVERAGE, False, discount)
            total += float(np.divide(growth, best, out=np.zeros_like(best), where=best > 0).sum())
        return total / n_worlds


def expected_passing(z: Floats) -> Floats:
    """Return by how much a standard normal number passes ``z`` on average, counted 0 where it does not."""
    from scipy.special import ndtr

    passed: Floats = np.exp(-0.5 * np.minimum(z, 38.0) ** 2) / np.sqrt(2 * np.pi) - z * ndtr(-z)
    return np.maximum(passed, 0.0)


def place_discounts() -> Floats:
    """Return the discount of each place, 0 from the eleventh on."""
    places = np.arange(PLACES + 2)
    return np.where(places < PLACES, 1.0 / np.log2(places + 2.0), 0.0)


# threshold (sample): neighbours in shown orders that a grade is weighed by, goal `ranker` with features
MAX_PAIRS = 2_000
"""Neighbouring places of shown orders that are looked at; of more, those of queries drawn by the seed."""

_N_ROUNDS = 30
_N_STAGES = 8
"""Number of stages in which requests are chosen, each supposing that those before it are answered."""

_BLOCK_ITEMS = 1_000
_UNJUDGED_VARIANCE_FACTOR = 1e6
"""Noise of what is known of an item that nobody judged, and prior variance of the mean gain, in variances of gains."""


@dataclass(frozen=True, eq=False)
class TaughtOrder:
    r"""The items of each query as a linear ranker of expected gains shows them, and how grades would change it.

    The gain of item :math:`i` is :math:`w \cdot x_i + u_i` with :math:`w \sim N(0, \omega^2)` and
    :math:`u_i \sim N(0, \tau^2)`; grades measure it with an error, and both variances are learned by
    expectation-maximisation. A grade adds the precision :math:`\kappa_i` to what is known of :math:`w \cdot x_i`. The
    difference of two items shown is then expected to move by a standard deviation of
    :math:`|(x_k - x_l)^\top \Sigma x_i| \sqrt{\kappa_i / (1 + \kappa_i x_i^\top \Sigma x_i)}`, where :math:`\Sigma` is
    the covariance of :math:`w`, and where that changes their order, DCG grows.

    Parameters
    ----------
    rows, variance, error
        Of each candidate: its features, the variance of its gain, and that of the error of what grades say of it.
    covariance, item_variance
        Posterior covariance of the weights, and :math:`\tau^2`.
    pairs, gaps, steps
        Of each two neighbouring places: the difference of their features and of their expected gains, and the
        difference of their discounts, in expected nDCG of the query for each unit of its expected DCG.
    discount
        What is left of each candidate's worth once those chosen before it are answered.
    """

    rows: Floats
    variance: Floats
    error: Floats
    covariance: Floats
    item_variance: float
    pairs: Floats
    gaps: Floats
    steps: Floats
    discount: Floats

    @classmethod
    def of(
        cls, items: Items, features: Features, posterior: Floats, gain: Floats, judged: Counts, seed: int
    ) -> TaughtOrder:
        """Return the orders of all items that have features; ``judged`` are the items with grades."""
        row = features.items.codes_of(items, "features", "judgments")
        features.expect_numbers()
        matrix = features.matrix.astype(np.float64)
        spread = matrix.std(axis=0)
        matrix = (matrix - matrix.mean(axis=0)) / np.where(spread > 1e-12 * np.abs(matrix).max(axis=0), spread, 1.0)
        own = np.where(row[:, None] >= 0, matrix[row], 0.0)
        # shares of the levels before any grade, with mean and variance of their gain, and those of each item
        shares, mean = posterior[judged].mean(axis=0), posterior @ gain
        first = float(shares @ gain)
        first_variance = max(float(shares @ gain**2) - first**2, 1e-9)
        variance = np.maximum(posterior @ gain**2 - mean**2, 1e-9 * first_variance)
        # the gain that grades alone measure, and the variance of its error
        before, now = 1.0 / first_variance, 1.0 / np.maximum(variance, 1e-6 * first_variance)
        precision = np.maximum(now - before, 1.0 / (_UNJUDGED_VARIANCE_FACTOR * first_variance))
        measured, error = (mean * now - first * before) / precision, 1.0 / precision
        weights, covariance, of_items = _regression(own[judged], measured[judged], error[judged], first_variance)
        is_judged = np.isin(np.arange(len(items)), judged)
        error = np.where(is_judged, error, _UNJUDGED_VARIANCE_FACTOR * first_variance)
        neighbours = _neighbours(features.items, matrix, matrix @ weights + first, shares, gain, seed)
        return cls(own, variance, error, covariance, of_items, *neighbours, np.ones(len(items)))

    def take(self, rows: Counts | Ints) -> TaughtOrder:
        """Return the same with some of its candidates."""
        return select_rows(self, rows, "rows", "variance", "error", "discount")

    def change(self, spread: Floats) -> Floats:
        """Return the expected change of nDCG, summed over queries, if each gain moves by that standard deviation."""
        return self.discount * self._value(self._precision(spread), self.covariance)

    def in_stages(self, spread: Floats, number: int) -> TaughtOrder:
        """Return the same with what is left of the candidates' worth if the ``number`` best are asked about."""
        precision, covariance = self._precision(spread), self.covariance
        first = value = self._value(precision, covariance)
        left, order = np.ones(len(first), bool), first.copy()
        size = max(1, -(-min(number, len(first)) // _N_STAGES))
        for _ in range(_N_STAGES):
            chosen = np.argsort(np.where(left, -value, np.inf), kind="stable")[: min(size, int(left.sum()))]
            left[chosen], order[chosen] = False, value[chosen]
            if not left.any():
                break
            rows = self.rows[chosen]
            added = np.linalg.inv(covariance) + (rows * precision[chosen, None]).T @ rows
            covariance = np.linalg.inv(0.5 * (added + added.T)).astype(np.float64, copy=False)
            value = self._value(precision, covariance)
            order[left] = value[left]
        left_share = np.divide(order, first, out=np.ones_like(order), where=first > 0)
        return replace(self, discount=np.minimum(left_share, 1.0))

    def _precision(self, spread: Floats) -> Floats:
        """What a measurement that moves each gain by that deviation adds to the precision of ``w x``."""
        fall = np.minimum(spread**2, (1 - 1e-9) * self.variance)
        of_grade = np.divide(fall, self.variance * (self.variance - fall), out=np.zeros_like(fall), where=fall > 0)
        after = 1.0 / (1.0 / self.error + of_grade)
        return 1.0 / (self.item_variance + after) - 1.0 / (self.item_variance + self.error)

    def _value(self, precision: Floats, covariance: Floats) -> Floats:
        """Expected growth of nDCG by each candidate."""
        value = np.zeros(len(precision))
        for begin in range(0, len(value), _BLOCK_ITEMS):
            block = slice(begin, begin + _BLOCK_ITEMS)
            moved = covariance @ self.rows[block].T
            leverage = np.einsum("ij,ji->i", self.rows[block], moved)
            factor = np.sqrt(precision[block] / (1.0 + precision[block] * leverage))
            spread = np.abs(self.pairs @ moved) * factor
            value[block] = self.steps @ (spread * expected_passing(self.gaps[:, None] / np.maximum(spread, 1e-12)))
        return value


def _regression(rows: Floats, gain: Floats, error: Floats, scale: float) -> tuple[Floats, Floats, float]:
    """Weights with their covariance, and the variance of item effects, learned by expectation-maximisation."""
    n_features = rows.shape[1]
    centre = float(np.average(gain, weights=1.0 / (scale + error)))
    of_items, of_weights = scale, scale / max(n_features, 1)
    weights, covariance = np.zeros(n_features), np.eye(n_features)
    for _ in range(_N_ROUNDS):
        precision = 1.0 / (of_items + error)
        matrix = (rows * precision[:, None]).T @ rows + np.eye(n_features) / of_weights
        covariance = np.linalg.inv(matrix).astype(np.float64, copy=False)
        weights = covariance @ (rows.T @ (precision * (gain - centre)))
        rest = gain - rows @ weights
        centre = float(np.average(rest, weights=precision))
        share = of_items * precision
        of_features = np.einsum("ij,jk,ik->i", rows, covariance, rows)
        squares = (share * (rest - centre)) ** 2 + of_items * (1 - share) + share**2 * of_features
        of_items = max(float(squares.mean()), 1e-6 * scale)
        of_weights = max(float((weights**2 + np.diag(covariance)).mean()), 1e-9 * scale)
    return weights, covariance, of_items


def _neighbours(
    items: Items, matrix: Floats, gain: Floats, shares: Floats, level_gain: Floats, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Differences of features and gains of neighbours in the first places, and of discounts, in nDCG for each gain."""
    rng, first = np.random.default_rng(seed), float(shares @ level_gain)
    # levels with these expected gains: their shares, mixed with one of the ends
    up = gain > first
    end = np.where(up, float(level_gain[-1]), float(level_gain[0]))
    mixed = np.divide(gain - first, end - first, out=np.zeros_like(gain), where=end != first)
    mixed = np.clip(mixed, 0.0, 1.0)[:, None]
    ends = np.zeros((len(gain), len(level_gain)))
    ends[np.arange(len(gain)), np.where(up, len(level_gain) - 1, 0)] = 1.0
    shown = ShownOrder.of(items, (1 - mixed) * shares + mixed * ends, level_gain, seed)
    order = np.lexsort((rng.random(len(gain)), -gain, items.query))
    place = np.arange(len(gain)) - items.offsets[items.query[order]]
    discount = place_discounts()
    expected_gain = shown.posterior[order] @ shown.gain
    worth = np.where(place <= PLACES, discount[np.minimum(place, PLACES)] * expected_gain, 0.0)
    dcg = np.bincount(items.query[order], worth, items.n_queries)
    ndcg = shown.take(np.empty(0, np.int32)).change(np.empty((0, len(level_gain), len(level_gain))))[2]
    # where little is relevant the ideal is mostly 0, and a gain brings at most itself over the ideal of one such item
    per_gain = np.divide(ndcg, dcg, out=np.zeros_like(dcg), where=dcg > 0)
    here = np.flatnonzero((place[1:] > 0) & (place[1:] <= PLACES))
    if len(here) > MAX_PAIRS:
        queries = items.query[order[here]]
        keep = np.isin(queries, rng.permutation(np.unique(queries))[: max(1, MAX_PAIRS // PLACES)])
        here, per_gain = here[keep], per_gain * (len(keep) / keep.sum())
    upper, lower = order[here], order[here + 1]
    steps = (discount[place[here]] - discount[place[here] + 1]) * per_gain[items.query[upper]]
    return matrix[upper] - matrix[lower], gain[upper] - gain[lower], steps
