"""Preferences laid out as votes, with what is known of pairs and of annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.judgments import Preferences
from ...data.naming import named
from ...data.truth import Truth
from ...errors import JudgmentError
from ...protocols import Bools, Counts, Floats, Ints, Outcomes
from ...quality import TRUSTED, trusted_annotators
from ...wording import option
from .votes import CERTAIN, START_FLIP, FlipPrior

if TYPE_CHECKING:
    from .kernels.vote_patterns import VotePatterns


@dataclass(frozen=True, eq=False)
class Ballots:
    """Votes on pairs by annotators and, last of the voters, by whoever tells what is known.

    Parameters
    ----------
    votes
        The votes on each pair; ties are none.
    prior
        Prior of the voters' rates of wrong votes.
    n_annotators
        How many of the voters are annotators; 1 where judgments do not name any.
    sure
        Whether annotators are known to be good, or pairs are known.
    """

    votes: VotePatterns
    prior: FlipPrior
    n_annotators: int
    sure: bool

    @classmethod
    def of(cls, preferences: Preferences, known: Any | None, trusted: Any | None, alpha: float) -> Ballots:
        """Return the votes; annotators begin with ``alpha`` votes, three in ten of them wrong."""
        from .kernels.vote_patterns import find_patterns

        n = max(preferences.n_annotators, 1)
        good = np.append(trusted_annotators(preferences, trusted), np.zeros(n - preferences.n_annotators, bool))
        by = preferences.annotator if preferences.n_annotators else np.zeros(len(preferences), np.int32)
        columns: tuple[Any, ...] = (preferences.left, preferences.right, preferences.outcome, by)
        weight = preferences.weight
        truth = None if known is None else known_pairs(known, preferences)
        if truth is not None:
            more: tuple[Any, ...] = (*truth, np.full(len(truth[0]), n, np.int32))
            columns = tuple(np.concatenate(both) for both in zip(columns, more, strict=True))
            weight = None if weight is None else np.append(weight, np.ones(len(truth[0])))
        n_voters = n + (truth is not None)
        votes = find_patterns(*columns, weight=weight, offsets=preferences.items.offsets, n_voters=n_voters)
        return cls(votes, _prior(good, alpha, n_voters), n, bool(good.any()) or truth is not None)

    @property
    def number(self) -> Floats:
        """How many votes each annotator gave, by their weight."""
        return self.votes.sums(len(self.prior.wrong))[: self.n_annotators]


def _prior(good: Bools, alpha: float, n_voters: int) -> FlipPrior:
    """Prior of the rates of annotators, those known to be good among them, and of what is known."""
    right, wrong = TRUSTED
    more = n_voters - len(good)
    return FlipPrior(
        np.append(np.where(good, wrong, START_FLIP * alpha), np.zeros(more)),
        np.append(np.where(good, right, (1 - START_FLIP) * alpha), np.zeros(more)),
        np.append(np.full(len(good), np.nan), np.full(more, CERTAIN)),
    )


def known_pairs(known: Any, preferences: Preferences) -> tuple[Ints, Ints, Outcomes] | None:
    """Return left, right and outcome of the pairs whose better item is known, each once; ``None`` where there is none.

    ``known`` is a truth, or a table of one: of left, right and winner, or of items with grades or ranks, which then
    tells of the judged pairs. Ties say nothing.
    """
    truth = Truth.from_frame(known)
    if truth.form == "pairs":
        left, right, outcome = truth.align_pairs(preferences.items)
    else:
        grade = truth.align(preferences.items)
        left, right = preferences.left, preferences.right
        gap = grade[left] - grade[right]
        # what is not known is no gap
        outcome = np.where(np.isnan(gap), 0, np.sign(gap)).astype(np.int8)
    decided = outcome != 0
    left, right, outcome = left[decided], right[decided], outcome[decided]
    low, high = np.minimum(left, right), np.maximum(left, right)
    outcome = np.where(left < right, outcome, -outcome).astype(np.int8)
    keys, first, place = np.unique(
        low.astype(np.int64) * len(preferences.items) + high, return_index=True, return_inverse=True
    )
    _refuse_both_ways(preferences, low, high, outcome, outcome[first][place])
    return (low[first], high[first], outcome[first]) if len(keys) else None


def _refuse_both_ways(preferences: Preferences, low: Ints, high: Ints, outcome: Outcomes, former: Outcomes) -> None:
    """Refuse a pair that is known both ways round."""
    wrong: Counts = np.flatnonzero(outcome != former)
    if len(wrong):
        of = np.isin(np.arange(len(preferences.items)), [low[wrong[0]], high[wrong[0]]])
        raise JudgmentError(
            f"{option('known')} has either of the items {named(preferences.items, of)} above the other; "
            "keep one of both rows"
        )
