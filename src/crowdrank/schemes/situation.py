"""What a scheme goes by: the judgments so far, who and what can be asked about, and the money there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl

from ..data.column_names import understand_items, understand_pairs
from ..data.consensus import Consensus
from ..data.features import Features
from ..data.frames import to_frame
from ..data.judgments import Grades, Judgments
from ..data.proposals import Roster
from ..errors import JudgmentError, ParameterError
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


def open_requests(judgments: Any, table: Any) -> OpenRequests:
    """Return what a table says was asked for: [query,] item (or left, right) [, annotator] [, n_more].

    Examples
    --------
    >>> grades = Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 0)])
    >>> open_requests(grades, {"query": ["q"], "item": ["x"], "n_more": [2]}).things["item"].tolist()
    [0, 0]
    """
    frame = to_frame(table)
    if isinstance(judgments, Grades):
        names = understand_items(frame.columns)
        sides = {"item": names["item"]}
    else:
        columns = understand_pairs(frame.columns)
        if columns is None:
            raise JudgmentError("the open requests name no left and right item; preferences are asked about pairs")
        names, sides = columns, {"left": columns["left"], "right": columns["right"]}
    if not judgments.items.single and "query" not in names:
        raise JudgmentError("the open requests have no query column but the judgments name queries; add it")
    query = frame[names["query"]] if "query" in names and not judgments.items.single else None
    codes = {side: judgments.items.codes(query, frame[name]) for side, name in sides.items()}
    for side, of_side in codes.items():
        if len(of_side) and of_side.min() < 0:
            row = int(np.argmin(of_side))
            raise JudgmentError(
                f"row {row + 1} of the open requests asks about {frame[sides[side]][row]!r}, which is not a known "
                "item; leave it out, or name it in the list of items"
            )
    number = _numbers(frame)
    things: dict[str, Ints] = {side: np.repeat(of_side, number) for side, of_side in codes.items()}
    who = frame["annotator"].gather(np.repeat(np.arange(len(frame)), number)) if "annotator" in frame.columns else None
    return OpenRequests(things, None if who is None or who.dtype == pl.Null else who)


def _numbers(frame: pl.DataFrame) -> Any:
    """How many judgments each row asks for."""
    if "n_more" not in frame.columns:
        return np.ones(len(frame), np.int64)
    number = frame["n_more"].cast(pl.Int64, strict=False)
    bad = number.is_null() | (number < 0)
    if bad.any():
        raise JudgmentError(
            f"row {int(bad.arg_max() or 0) + 1} of the open requests has an n_more that is not a whole number; "
            "correct it"
        )
    return number.to_numpy()
