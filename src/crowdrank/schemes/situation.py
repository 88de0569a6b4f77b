"""What a scheme goes by: the judgments so far, who and what can be asked about, and the money there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.features import Features
from ..data.judgments import Judgments
from ..data.proposals import Roster
from ..errors import ParameterError
from ..protocols import Bools, Ints
from ..wording import option


def check_limits(budget: float | None = None, least_gain: float = 0.0, price: float = 1.0) -> None:
    """Refuse limits under which nothing could be asked."""
    if budget is not None and not budget > 0:
        raise ParameterError(f"{option('budget', budget)} buys nothing; give a budget above 0")
    if not least_gain >= 0:
        raise ParameterError(f"{option('least_gain', least_gain)} must not be below 0")
    if not 0 < price < np.inf:
        raise ParameterError(f"{option('price', price)} must be a number above 0")


@dataclass(frozen=True, eq=False)
class OpenRequests:
    """Judgments that were asked for and have not come in yet, one entry each.

    Parameters
    ----------
    things
        Item codes of what each is about: ``item``, or ``left`` and ``right``.
    annotator
        Ids of those who were asked, blank where that is not known; ``None`` where it is known of none.
    """

    things: dict[str, Ints]
    annotator: pl.Series | None = None

    def __len__(self) -> int:
        return len(next(iter(self.things.values())))


@dataclass(frozen=True, eq=False, kw_only=True)
class Situation:
    """All that a scheme may look at.

    Parameters
    ----------
    judgments
        The judgments so far; their items hold everything that may be asked about.
    askable
        Which items may be asked about.
    pairs
        Left and right items of the pairs that may be asked about; ``None`` for all pairs of askable items of a query.
    roster
        Who can be asked, ``None`` where that is left open.
    budget
        What may be spent, ``None`` for no limit.
    price
        What a judgment costs where there is no roster.
    consensus
        The consensus of the judgments, for schemes that go by one.
    least_gain
        Expected gain for each unit of money below which nothing is bought.
    open
        What was asked for and has not come in yet; it is neither asked for nor paid again.
    features
        Features of items, where grades are bought for the ranker that learns from them.
    seed
        Seed of the random draws, such as between equally urgent things.
    """

    judgments: Judgments
    askable: Bools
    pairs: tuple[Ints, Ints] | None = None
    roster: Roster | None = None
    budget: float | None = None
    price: float = 1.0
    consensus: Consensus | None = None
    least_gain: float = 0.0
    open: OpenRequests | None = None
    features: Features | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_limits(self.budget, self.least_gain, self.price)

    @classmethod
    def of(cls, judgments: Judgments, *, askable: Bools | None = None, **rest: object) -> Self:
        """Return the situation in which everything that was judged may be asked about, unless ``askable`` says."""
        return cls(judgments=judgments, askable=judgments.judged_items if askable is None else askable, **rest)  # type: ignore[arg-type]

    @property
    def n_affordable(self) -> int | None:
        """Judgments that the budget pays for at the lowest price, ``None`` where there is no limit."""
        if self.budget is None:
            return None
        lowest = self.price if self.roster is None else float(self.roster.price.min(initial=np.inf))
        return int(self.budget / lowest * (1 + 1e-12))

    @property
    def n_to_choose(self) -> int | None:
        """Judgments that a scheme should choose so that the budget is used after those open already are left out."""
        number = self.n_affordable
        return number if number is None or self.open is None else number + len(self.open)

    @property
    def money_to_choose(self) -> float:
        """The budget with what such judgments would cost, which are paid already; infinite without a limit."""
        if self.budget is None:
            return float("inf")
        highest = self.price if self.roster is None else float(self.roster.price.max(initial=0.0))
        return self.budget + (0.0 if self.open is None else highest * len(self.open))

    def expect_consensus(self, scheme: str) -> Consensus:
        """Return the consensus, which must be of the items of the judgments."""
        if self.consensus is None:
            raise ParameterError(f"{scheme} needs a consensus; call crowdrank.propose, which computes one, or give one")
        same = self.consensus.items is self.judgments.items
        if not same and not self.consensus.items.frame().equals(self.judgments.items.frame()):
            raise ParameterError(
                "the consensus is of other items than the judgments and the list of items; leave it out"
            )
        return self.consensus
