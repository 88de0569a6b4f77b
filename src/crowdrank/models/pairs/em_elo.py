"""EM-Elo: EM for the winner of each pair, then Elo on the winners."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Consensus, Quality, Trace
from ...data.judgments import Preferences, expect
from ...errors import ParameterError
from ...fitting import accelerate, warn_unconverged
from ...pair_counts import PairCounts, count_preferences, warn_apart
from ...protocols import Bools, Floats
from ...quality import TRUSTED, held_out_quality, trusted_annotators, warn_near_chance

if TYPE_CHECKING:
    from ...kernels.confusion import PackedGrades

_MIN_DISTANCE_OF_ETA = 1e-4
"""Least distance of a quality from 0 and 1, so that two who are sure and disagree do not rule out both winners."""


@dataclass(frozen=True, kw_only=True)
class EMElo:
    r"""EM-Elo: EM for the winner of each pair, then Elo on the winners.

    First, annotator :math:`a` names the better item of any pair with probability :math:`\eta_a`, and both items are
    the better one equally often before anybody is asked, so that the probability that :math:`i` is better than
    :math:`j` is

    .. math:: q_{ij} = \frac{\prod_a \eta_a^{w_a} (1 - \eta_a)^{l_a}}
              {\prod_a \eta_a^{w_a} (1 - \eta_a)^{l_a} + \prod_a \eta_a^{l_a} (1 - \eta_a)^{w_a}}

    where :math:`a` found :math:`i` better :math:`w_a` times and :math:`j` better :math:`l_a` times. Qualities and
    probabilities are estimated together by expectation-maximisation, over all queries at once [DawidSkene79]_. Then
    every pair is one preference for the likelier item, which moves both scores by :math:`|2 q_{ij} - 1|` times what it
    would in :class:`~crowdrank.models.pairs.elo.Elo`. Elo passes over the pairs repeatedly, in random orders, and the
    score is the mean over the second half of the passes [Niu15]_.

    When to use
    -----------
    Use it to reproduce the baseline of [Niu15]_. ``crowd_bt`` models the same annotators and scores in one likelihood
    and is more accurate where pairs were judged once or twice.

    Parameters
    ----------
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
        Largest change of a quality in the last pass over the preferences.
    max_iter
        Most passes over the preferences.
    seed
        Start of the random orders.

    Notes
    -----
    The paper names the two parts but gives neither prior nor number of passes; these are ours. Annotators named in
    ``trusted=`` start with 95 right and 5 wrong preferences. The trace is that of the first part, with the
    log-likelihood of the preferences and the prior; :math:`\eta` is the quality's parameter ``eta``.

    Orders are drawn by who won and lost against whom, and whom those met, so that neither names nor the order of rows
    matter. Items that cannot be distinguished in this way, as in a cycle of three, have the same score, and pairs
    between the same such items are applied together. After some 20 passes an item that never lost is still rising, so
    its lead grows with how often it won.

    Ties say nothing about which item is better and are left out; an item with ties only keeps the ``initial`` score.
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
        for name in ("k", "a0", "b0", "scale"):
            if not 0 < getattr(self, name) < np.inf:
                raise ParameterError(f"{name}={getattr(self, name)} must be above 0")
        if not self.base > 1:
            raise ParameterError(f"base={self.base} must be above 1, so that a higher score means better odds")
        for name in ("n_passes", "max_iter"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name}={getattr(self, name)} must be at least 1")

    def fit(self, preferences: Preferences, *, trusted: Any | None = None) -> Consensus:
        """Return the scores; warns of groups that never met, and of a crowd that agrees hardly more than guessing.

        ``trusted`` names annotators known to be good.
        """
        expect(preferences, self)
        sure = trusted_annotators(preferences, trusted)
        decided = preferences.select(preferences.outcome != 0)
        pair_counts = count_preferences(decided, "split")
        warn_apart(preferences.items, pair_counts)
        parts = _fit_both_parts(decided, pair_counts, self, sure if len(sure) else np.zeros(1, bool))
        if len(decided) and not sure.any():
            warn_near_chance("em_elo", parts.eta, parts.n_judgments)
        quality = partial(_quality, self, preferences, parts.eta)
        return Consensus.of(self, preferences, parts.scores, trace=parts.trace, quality=quality)


class _Parts(NamedTuple):
    """Scores (n_items,), qualities and weights of the preferences (n_annotators,), and how the first part went."""

    scores: Floats
    eta: Floats
    n_judgments: Floats
    trace: Trace


class _Pass(NamedTuple):
    """The objective at some qualities, and the qualities that follow from a pass."""

    value: float
    following: Floats


def _quality(method: EMElo, preferences: Preferences, eta: Floats) -> Quality | None:
    """Held-out quality of the annotators beside what was learned of them."""
    quality = held_out_quality(method, preferences)
    return None if quality is None else quality.with_parameters(eta=eta)


def _fit_both_parts(decided: Preferences, pair_counts: PairCounts, method: EMElo, trusted: Bools) -> _Parts:
    """Both parts for preferences without ties."""
    from ...kernels.confusion import pack_grades
    from ...kernels.pairs import pair_numbers
    from .kernels.elo import arrange_pairs, mean_elo_scores

    pair = pair_numbers(decided.left, decided.right, pair_counts.starts, pair_counts.second)
    annotator = decided.annotator if decided.n_annotators else np.zeros(len(decided), np.int32)
    lower = (decided.outcome > 0) == (decided.left < decided.right)
    sizes = (len(pair_counts.second), len(trusted), 2)
    packed = pack_grades(pair, annotator, lower.astype(np.int32), decided.weight, *sizes)
    number = np.bincount(annotator, decided.weight, len(trusted)).astype(np.float64)
    eta, lead, trace = _learn_winners(packed, sizes[0], method, trusted, number)
    decided_pairs = arrange_pairs(pair_counts.starts, pair_counts.second, lead, decided.items.offsets)
    unit = method.scale / float(np.log(method.base))
    salts = np.random.default_rng(method.seed).integers(0, 2**64, method.n_passes, dtype=np.uint64)
    scores = method.initial + unit * mean_elo_scores(decided_pairs, method.k / unit, salts, (method.n_passes + 1) // 2)
    return _Parts(scores, eta, number, trace)


def _learn_winners(
    packed: PackedGrades, n_pairs: int, method: EMElo, trusted: Bools, number: Floats
) -> tuple[Floats, Floats, Trace]:
    """Qualities, what is likelier than not of each pair, (n_pairs,), and how the passes went."""
    from ...kernels.confusion import confusion_pass, fill_probabilities

    right, wrong = (np.where(trusted, sure, other) for sure, other in zip(TRUSTED, (method.a0, method.b0), strict=True))
    unknown, even = np.full(n_pairs, -1, np.int32), np.array([0.5, 0.5])

    def step(eta: Floats) -> _Pass:
        expected = confusion_pass(packed, _confusion(eta), even, unknown)
        log_prior = float((right * np.log(eta) + wrong * np.log(1.0 - eta)).sum())
        agreed = np.einsum("ajj->a", expected.counts)
        eta = np.clip((right + agreed) / (right + wrong + number), _MIN_DISTANCE_OF_ETA, 1.0 - _MIN_DISTANCE_OF_ETA)
        # the last digits depend on the order of the sums
        return _Pass(round(expected.log_likelihood + log_prior, 8), eta)

    eta, trace = accelerate(
        step, right / (right + wrong), lower=_MIN_DISTANCE_OF_ETA, upper=1.0 - _MIN_DISTANCE_OF_ETA,
        scale=np.sqrt(number + 1.0), tol=method.tol, max_iter=method.max_iter,
    )  # fmt: skip
    if not trace.converged:
        warn_unconverged("em_elo", method.max_iter, trace.change, method.tol)
    probabilities = np.full((n_pairs, 2), 0.5)
    fill_probabilities(packed, _confusion(eta), even, unknown, probabilities)
    return eta, probabilities[:, 1] - probabilities[:, 0], trace


def _confusion(eta: Floats) -> Floats:
    """Probability of naming each item for either being the better one, (n_annotators, 2, 2)."""
    return np.where(np.eye(2, dtype=bool), eta[:, None, None], 1.0 - eta[:, None, None])
