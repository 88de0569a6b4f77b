"""EM-Elo: EM for the winner of each pair, then Elo on the winners."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Consensus, Quality, Trace, settle_ties
from ...data.judgments import Preferences, expect
from ...data.parted import PartColumns, PartedFit, read_sample, share_of_rows
from ...errors import JudgmentError, ParameterError
from ...fitting import OneBlock, Step, accelerate, iterate, warn_unconverged
from ...pair_counts import PairCounts, count_preferences, warn_apart
from ...protocols import BlockFit, Blocks, Bools, Floats, Ints, StepResult
from ...quality import TRUSTED, held_out_quality, quality_of_sample, trusted_annotators, warn_near_chance
from ...wording import expect_above, expect_at_least, one_of

if TYPE_CHECKING:
    from ...kernels.confusion import PackedGrades

_MODELS = ("one_coin", "confusion")
_EVEN = np.array([0.5, 0.5])
_MIN_DISTANCE_OF_ETA = 1e-4
"""Least distance of a quality from 0 and 1, so two who are sure and disagree do not rule out both winners."""


@dataclass(frozen=True, kw_only=True)
class EMElo:
    r"""EM-Elo: EM for the winner of each pair, then Elo on the winners.

    First, annotator :math:`a` names the better item of any pair with probability :math:`\eta_a`, and both items are
    the better one equally often before anybody is asked, so the probability that :math:`i` is better than
    :math:`j` is

    .. math:: q_{ij} = \frac{\prod_a \eta_a^{w_a} (1 - \eta_a)^{l_a}}
              {\prod_a \eta_a^{w_a} (1 - \eta_a)^{l_a} + \prod_a \eta_a^{l_a} (1 - \eta_a)^{w_a}}

    where :math:`a` found :math:`i` better :math:`w_a` times and :math:`j` better :math:`l_a` times. Qualities and
    probabilities are estimated together by expectation-maximisation, over all queries at once [DawidSkene79]_. Then
    every pair is one preference for the likelier item, which moves both scores by :math:`|2 q_{ij} - 1|` times what it
    would in :class:`~crowdrank.models.pairs.elo.Elo`. Elo passes over the pairs repeatedly, in random orders, and the
    score is the mean over the second half of the passes [Niu15]_.

    With ``model="confusion"`` an annotator has a matrix :math:`C_a(c, l)` in place of :math:`\eta_a`: the probability
    of outcome :math:`l` (left, tie or right) where :math:`c` is true, so side bias and a preference for ties
    are learned too. It is Dawid-Skene on pairs, as in [Bashir13]_. Annotators of a quality below ``min_quality``
    are then left out, and Elo is given the preferences that remain.

    When to use
    -----------
    Use it to reproduce the baseline of [Niu15]_. ``crowd_bt`` models the same annotators and scores in one likelihood
    and is more accurate where pairs were judged once or twice.

    Parameters
    ----------
    model
        ``"one_coin"``: a quality per annotator; ``"confusion"``: a matrix per annotator, ties being an outcome.
    min_quality
        Annotators below this quality have no part in the scores; 0 leaves nobody out, 0.5 those who guess or worse.
    k
        Most that one pair can move a score.
    n_passes
        Number of passes over all pairs.
    a0, b0
        Number of right and of wrong preferences that each annotator starts with; raise both where annotators judged few
        pairs. Keep :math:`a_0 > b_0`, or a crowd may come out reversed.
    initial
        Score before the first pass, the mean of every query, and the score of an unjudged item.
    base, scale
        A lead of ``scale`` multiplies the odds by ``base``.
    tol
        Largest change of a quality in the last pass over the preferences; raise it to stop earlier.
    max_iter
        Largest number of passes over the preferences; raise it where a warning says that the fit did not converge.
    seed
        Seed of the random orders.

    Notes
    -----
    The paper names the two parts, the confusion matrix and the filter, but gives neither prior, threshold nor number of
    passes; these are ours, and ``em-elo-paper`` is the matrix with a threshold of 0.5. Annotators named in
    ``trusted=`` start with 95 right and 5 wrong preferences. The trace is that of the first part, with the
    log-likelihood of the preferences and the prior; :math:`\eta` is the quality's parameter ``eta``.

    Orders are drawn by who won and lost against whom, and whom those met, so neither names nor the order of rows
    matter. Items that cannot be distinguished in this way, as in a cycle of three, have the same score, and pairs
    between the same such items are applied together. After some 20 passes an item that never lost is still rising, so
    its lead grows with how often it won.

    With one coin, ties say nothing about which item is better and are left out; an item with ties only keeps the
    ``initial`` score. With a matrix there are three classes of pairs where there are ties, and the quality ``eta`` is
    the mean probability to name the better item, given that one is. Sides are those that the items were shown on; a
    matrix has :math:`a_0` right preferences beforehand in each row and :math:`b_0` wrong ones among the others. A pair
    counts by the difference of the probabilities of both items to be the better one.

    Every pair counts once, however often it was judged. Without annotators in the data all preferences are by
    one. There are no standard errors; use the bootstrap.

    Examples
    --------
    >>> rows = [(who, "q", "x", "y", "x") for who in ("ann", "bob", "cy")] + [("dan", "q", "x", "y", "y")]
    >>> consensus = EMElo().fit(Preferences.from_rows(rows))
    >>> consensus.order("q"), consensus.quality.parameters["eta"].round(2).tolist()
    (['x', 'y'], [0.82, 0.82, 0.82, 0.73])
    """

    kinds: ClassVar[tuple[str, ...]] = ("preference",)
    precision: ClassVar[float] = 1e-8
    model: str = "one_coin"
    min_quality: float = 0.0
    k: float = 32.0
    n_passes: int = 20
    a0: float = 8.0
    b0: float = 2.0
    initial: float = 1000.0
    base: float = 10.0
    scale: float = 400.0
    tol: float = 1e-6
    max_iter: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        one_of(self.model, _MODELS, "model")
        if not 0 <= self.min_quality < 1:
            raise ParameterError(f"min_quality={self.min_quality} must be at least 0 and below 1")
        expect_above(self, 0, "k", "a0", "b0", "scale")
        expect_above(self, 1, "base", hint="only then does a higher score mean better odds")
        expect_at_least(self, 1, "n_passes", "max_iter")

    def fit(self, preferences: Preferences, *, trusted: Any | None = None) -> Consensus:
        """Return the scores; warns of groups that never met, and of a crowd that agrees hardly more than guessing.

        ``trusted`` names annotators known to be good.
        """
        expect(preferences, self)
        warn_apart(preferences.items, count_preferences(preferences.select(preferences.outcome != 0), "split"))
        block = _EloBlock.of(self, preferences)
        learned = self._learn(OneBlock(block), trusted_annotators(preferences, trusted))
        quality = partial(_quality, self, preferences, learned.eta)
        return Consensus.of(self, preferences, _elo_scores(self, learned, block), trace=learned.trace, quality=quality)

    def over_blocks(self, judged: Any, *, trusted: Any | None = None, **given: Any) -> BlockFit:
        """Return the fit over blocks of preferences: qualities are shared, winners and scores are those of blocks."""
        if judged.by != "query":
            raise ParameterError("em_elo goes pair by pair; pack the judgments by query")
        good = trusted_annotators(judged, trusted)

        def solve(blocks: Blocks) -> PartedFit:
            learned = self._learn(blocks, good)
            # scores that differ only by rounding are made equal
            read = blocks.read(
                lambda block, state: ((settle_ties(self, block.preferences, _elo_scores(self, learned, block)),), None)
            )
            columns = [PartColumns(*scores) for scores in read]
            sample = partial(read_sample, attrgetter("preferences"), learned.given, share_of_rows(judged.rows))
            samples = [part for (part,) in blocks.read(sample)]
            quality = quality_of_sample(self, samples, learned.given, {"eta": learned.eta})
            return PartedFit(columns, learned.trace, quality)

        return BlockFit(partial(_EloBlock.of, self), solve)

    def _learn(self, blocks: Blocks, trusted: Bools) -> _Learned:
        """The first part: qualities or matrices of the annotators, by expectation-maximisation from the prior."""
        trusted = trusted if len(trusted) else np.zeros(1, bool)
        n = len(trusted)

        def numbers(block: _EloBlock, state: Any) -> StepResult:
            """Weight of the preferences of each annotator that the model takes, and of all; ties and decided ones."""
            used, whole = (
                np.bincount(preferences.row_annotator, preferences.weight, n).astype(np.float64)
                for preferences in (block.used, block.preferences)
            )
            n_ties = float((block.used.outcome == 0).sum())
            return (used, whole, n_ties, len(block.used) - n_ties), None

        number, given, n_ties, n_decided = blocks.total(numbers)
        matrices = None
        if self.model == "confusion":
            confusion, shares, trace = _learn_matrices(self, blocks, trusted, tied=bool(n_ties))
            eta, matrices = 0.5 * (confusion[:, 0, 0] + confusion[:, -1, -1]), (confusion, shares)
        else:
            eta, trace = _learn_qualities(self, blocks, trusted, number)
        if n_decided and not trusted.any():
            warn_near_chance("em_elo", eta, number)
        if self.min_quality > 0 and number.any() and not (eta >= self.min_quality)[number > 0].any():
            raise JudgmentError(
                f"em_elo: no annotator has a quality of min_quality={self.min_quality:g} or more, the best has "
                f"{eta.max():.2f}; lower it"
            )
        return _Learned(eta, matrices, bool(n_ties), trace, given)


class _Learned(NamedTuple):
    """What the first part learned: qualities, matrices and shares of classes if the model has them, and the trace.

    ``given`` is the weight of each annotator's preferences, ties included.
    """

    eta: Floats
    matrices: tuple[Floats, Floats] | None
    tied: bool
    trace: Trace
    given: Floats


def _quality(method: EMElo, preferences: Preferences, eta: Floats) -> Quality | None:
    """Held-out quality of the annotators beside what was learned of them."""
    quality = held_out_quality(method, preferences)
    return None if quality is None else quality.with_parameters(eta=eta)


@dataclass(frozen=True, eq=False)
class _EloBlock:
    """The preferences of a block, those that the model takes, and these by pair, when it is known which outcomes count.

    Outcomes are 0 for the lower item of a pair, then a tie if there are any, the last for the higher item; with
    ``sides`` each annotator is two, by where the lower item was.
    """

    preferences: Preferences
    used: Preferences
    sides: bool
    _packed: dict[bool, tuple[PairCounts, Ints, PackedGrades]] = field(default_factory=dict)

    @classmethod
    def of(cls, method: EMElo, preferences: Preferences) -> _EloBlock:
        """Return the block of preferences; with one coin, ties are left out."""
        sides = method.model == "confusion"
        return cls(preferences, preferences if sides else preferences.select(preferences.outcome != 0), sides)

    def outcomes(self, tied: bool) -> tuple[PairCounts, Ints, PackedGrades]:
        """Return the pairs, the number of that of each preference, and outcomes packed; kept from pass to pass."""
        from ...kernels.pairs import pair_numbers

        if tied not in self._packed:
            counts = count_preferences(self.used, "split")
            pair = pair_numbers(self.used.left, self.used.right, counts.starts, counts.second)
            self._packed[tied] = counts, pair, self.pack(tied, counts, pair, slice(None))
        return self._packed[tied]

    def pack(self, tied: bool, counts: PairCounts, pair: Ints, use: Bools | slice) -> PackedGrades:
        """Return the outcomes of some of the preferences packed."""
        from ...kernels.confusion import pack_grades

        used, n = self.used, max(self.used.n_annotators, 1)
        swapped = used.left > used.right
        # 1 where the higher item was named, so that 0, 1 and 2 are the lower one, a tie and the higher one
        named = np.where(swapped, used.outcome, -used.outcome).astype(np.int32) + 1
        owner = (used.row_annotator + (n * swapped if self.sides else 0)).astype(np.int32)
        outcome, weight = named if tied else named // 2, None if used.weight is None else used.weight[use]
        sizes = (len(counts.second), n * (1 + self.sides), 3 if tied else 2)
        return pack_grades(pair[use], owner[use], outcome[use], weight, *sizes)


def _learn_qualities(method: EMElo, blocks: Blocks, trusted: Bools, number: Floats) -> tuple[Floats, Trace]:
    """The quality of each annotator, whose preferences weigh ``number``, and how the passes went."""
    right, wrong = (np.where(trusted, sure, other) for sure, other in zip(TRUSTED, (method.a0, method.b0), strict=True))

    def step(eta: Floats) -> Step:
        log_likelihood, agreed, _ = blocks.total(partial(_expect, False, _one_coin(eta), _EVEN))
        log_prior = float((right * np.log(eta) + wrong * np.log(1.0 - eta)).sum())
        eta = np.clip((right + agreed) / (right + wrong + number), _MIN_DISTANCE_OF_ETA, 1.0 - _MIN_DISTANCE_OF_ETA)
        # the last digits depend on the order of the sums
        return Step(round(float(log_likelihood) + log_prior, 8), eta)

    eta, trace = accelerate(
        step, right / (right + wrong), lower=_MIN_DISTANCE_OF_ETA, upper=1.0 - _MIN_DISTANCE_OF_ETA,
        scale=np.sqrt(number + 1.0), tol=method.tol, max_iter=method.max_iter,
    )  # fmt: skip
    if not trace.converged:
        warn_unconverged("em_elo", method.max_iter, trace.change, method.tol)
    return eta, trace


def _expect(tied: bool, confusion: Floats, shares: Floats, block: _EloBlock, state: Any) -> StepResult:
    """Log-likelihood of the preferences of a block, and expected outcomes by truth and outcome.

    Of one coin these are the number of each annotator that are right; of two sides annotators come twice, last those
    where the lower item was on the right.
    """
    from ...kernels.confusion import confusion_pass

    packed = block.outcomes(tied)[2]
    expected = confusion_pass(packed, confusion, shares, np.full(len(packed.starts) - 1, -1, np.int32))
    return (expected.log_likelihood, np.einsum("ajj->a", expected.counts), expected.counts), None


def _one_coin(eta: Floats) -> Floats:
    """Probability of naming each item for either being the better one, (n_annotators, 2, 2)."""
    return np.where(np.eye(2, dtype=bool), eta[:, None, None], 1.0 - eta[:, None, None])


def _learn_matrices(method: EMElo, blocks: Blocks, trusted: Bools, *, tied: bool) -> tuple[Floats, Floats, Trace]:
    """The matrices of annotators (n_annotators, m, m), the shares of the m classes of pairs, and how passes went."""
    n, m = len(trusted), 3 if tied else 2
    right, wrong = (np.where(trusted, sure, other) for sure, other in zip(TRUSTED, (method.a0, method.b0), strict=True))
    prior = np.where(np.eye(m, dtype=bool), right[:, None, None], wrong[:, None, None] / (m - 1))

    def step(state: Floats) -> Floats:
        confusion = state[: n * m * m].reshape(n, m, m)
        *_, expected = blocks.total(partial(_expect, tied, _both_sides(confusion), state[n * m * m :]))
        # seen from the other side, left and right change places in truth and outcome
        counts = prior + expected[:n] + expected[n:, ::-1, ::-1]
        # neither item of a pair is the better one more often
        of_classes = expected.sum(axis=(0, 2)) + 1.0
        of_classes = 0.5 * (of_classes + of_classes[::-1])
        shares = of_classes / of_classes.sum() if m > 2 else _EVEN
        return np.concatenate([(counts / counts.sum(axis=2, keepdims=True)).ravel(), shares])

    begin = np.concatenate([(prior / prior.sum(axis=2, keepdims=True)).ravel(), np.full(m, 1 / m)])
    state, trace = iterate(step, begin, tol=method.tol, max_iter=method.max_iter, what="em_elo")
    return state[: n * m * m].reshape(n, m, m), state[n * m * m :], trace


def _both_sides(confusion: Floats) -> Floats:
    """Matrices where the lower item was shown on the left, then those where it was on the right."""
    return np.concatenate([confusion, confusion[:, ::-1, ::-1]])


def _elo_scores(method: EMElo, learned: _Learned, block: _EloBlock) -> Floats:
    """The second part: Elo's scores of the items of a block by the likelier winner of each pair."""
    from ...kernels.confusion import fill_probabilities
    from .kernels.elo import arrange_pairs, mean_elo_scores

    counts, pair, packed = block.outcomes(learned.tied)
    if method.min_quality > 0:
        packed = block.pack(learned.tied, counts, pair, (learned.eta >= method.min_quality)[block.used.row_annotator])
    confusion, shares = _one_coin(learned.eta), _EVEN
    if learned.matrices is not None:
        confusion, shares = _both_sides(learned.matrices[0]), learned.matrices[1]
    n = len(counts.second)
    probabilities = np.tile(shares, (n, 1))
    fill_probabilities(packed, np.ascontiguousarray(confusion), shares, np.full(n, -1, np.int32), probabilities)
    # how much likelier the lower item of a pair is the better one than the higher one
    lead = probabilities[:, 0] - probabilities[:, -1]
    decided = arrange_pairs(counts.starts, counts.second, lead, block.used.items.offsets)
    unit = method.scale / float(np.log(method.base))
    salts = np.random.default_rng(method.seed).integers(0, 2**64, method.n_passes, dtype=np.uint64)
    return method.initial + unit * mean_elo_scores(decided, method.k / unit, salts, (method.n_passes + 1) // 2)
