"""Bootstrap: the judgments drawn again with replacement, and the scores that a method finds each time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .data.consensus import score_tolerance
from .data.files import expect_room
from .data.judgments import Judgments, Links, Mixed, Preferences, Rankings, parts_of, weight_of_items, with_levels
from .errors import ConvergenceWarning, ParameterError, warn
from .protocols import Aggregator, Bools, Counts, Floats, Ints, Progress, Resampler, Reweighter, Scorer
from .wording import call, one_of, option, plural

UNITS = ("judgment", "annotator", "query", "group")
"""What can be drawn."""

FEW_UNITS = 10
"""With fewer units than this their spread is hardly known, and intervals come out too narrow."""

# threshold (sample): units that a resample draws one by one
_MANY_UNITS = 20_000

_POOLED_FREEDOM = 4.0
_QUARTILES_APART = 1.3489795003921634
_FEW_COPIES = 40.0
# threshold (sample): judgments of an item from which resamples are not widened
_MANY_JUDGMENTS = 30.0

# threshold (refused): resamples
MOST_RESAMPLES = 1_000_000
_BYTES_A_SCORE = 20


@dataclass(frozen=True, eq=False)
class Draws:
    """Resamples of judgments: in each, every unit has a number of copies, and a judgment as many as its unit.

    Parameters
    ----------
    n
        Number of resamples.
    resample
        What a unit is: a judgment, an annotator, a query or a group of annotators.
    seed
        Seed; each resample has random numbers of its own, whatever is drawn beside it.
    n_units
        Number of units.
    unit
        Unit of each judgment, ``None`` where each is its own.
    weight
        Weight of each judgment that its copies are multiplied with, ``None`` for ones.
    chance
        How often each unit stands for itself, where units differ in that; as many are drawn in all.
    """

    n: int
    resample: str
    seed: int
    n_units: int
    unit: Ints | None = None
    weight: Floats | None = None
    chance: Floats | None = None

    def copies(self, number: int) -> NDArray[Any]:
        """Return the number of copies of each unit in one of the resamples, (n_units,).

        As many judgments are drawn as there are [Efron79]_. Of annotators, queries or groups one less: they may be
        few, and means of all but one scatter as means of this many do, which those of as many fall short of [RaoWu88]_.
        """
        rng = np.random.default_rng([self.seed, number])
        if self.chance is not None:
            total = self.chance.sum()
            return rng.multinomial(int(total), self.chance / total)
        n_drawn = self.n_units - (self.resample != "judgment")
        if n_drawn < self.n_units or self.n_units < _MANY_UNITS:
            return np.bincount(rng.integers(0, self.n_units, n_drawn), minlength=self.n_units)
        from .kernels.pairs import draw_alike

        return draw_alike(self.n_units, rng)

    def counts(self, number: int) -> NDArray[Any]:
        """Return how often each judgment was drawn in one of the resamples, (n_judgments,)."""
        copies = self.copies(number)
        return copies if self.unit is None else copies[self.unit]

    def weights(self, drawn: NDArray[Any]) -> Floats:
        """Return the weight of judgments that were drawn so often, (n_judgments,)."""
        return drawn.astype(np.float64) if self.weight is None else drawn * self.weight

    def take(self, judgments: Judgments | Mixed, drawn: NDArray[Any]) -> Judgments | Mixed:
        """Return the judgments as often as they were drawn; with a weight only where they had one before.

        Most methods are faster on rows without weights than on fewer with them.
        """
        if self.chance is not None:
            return judgments.with_weights(self.weights(drawn))
        return judgments.select(np.repeat(np.arange(len(drawn)), drawn))

    def arrange(self, order: Counts) -> Draws:
        """Return the same with judgments drawn in another order, where they are their own units.

        ``order`` are their row numbers; so the order of the rows, which means nothing, need not matter.
        """
        if self.unit is not None:
            return self
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return replace(self, unit=place, chance=None if self.chance is None else self.chance[order])


def plan_draws(judgments: Judgments | Mixed, n: int, resample: str = "judgment", seed: int = 0) -> Draws:
    """Return how the judgments are to be drawn again ``n`` times, or say why they cannot be.

    Weights that are all whole numbers are numbers of equal judgments, each of which is drawn by itself; other weights
    go along with their judgment.
    """
    check_draws(n, resample, seed)
    expect_room_for_scores(n, judgments.n_items)
    weight, chance = judgments.weight, None
    if resample == "judgment":
        _require_several(judgments.n_judgments, "judgment", "give more of them")
        number = judgment_numbers(judgments)
        if number is not None:
            return Draws(int(n), resample, seed, judgments.n_judgments, number, weight)
        if weight is not None and (weight == np.round(weight)).all():
            weight, chance = None, weight
        return Draws(int(n), resample, seed, len(judgments), None, weight, chance)
    # only units that judged are drawn: one that did not would stand for nothing
    used, unit = np.unique(unit_codes(judgments, resample), return_inverse=True)
    expect_units(len(used), resample)
    return Draws(int(n), resample, seed, len(used), unit.astype(np.int32), weight)


def expect_units(n_units: int, resample: str) -> None:
    """Refuse to draw from fewer than two annotators, queries or groups, and warn of few."""
    _require_several(n_units, resample, f"use {option('resample', 'judgment')}")
    if n_units < FEW_UNITS:
        what = f"there are only {n_units} {plural(resample)} to draw from, too few to show their spread"
        warn(f"{what}: the intervals are probably too narrow")


def expect_room_for_scores(n: int, n_items: int) -> None:
    """Refuse more scores of resamples than memory holds."""
    # the scores as they are kept, and twice as many bytes while their spread is computed
    what = f"{option('bootstrap', n)} of {n_items:,} items"
    expect_room(_BYTES_A_SCORE * n * n_items, what, "use fewer resamples; 200 are enough")


def judgment_numbers(judgments: Judgments | Mixed) -> Ints | None:
    """Return the number of each row's judgment, ``None`` where each is its own; they follow from what the rows say."""
    parts = parts_of(judgments)
    if all(len(part) == part.n_judgments for part in parts):
        return None
    numbers, start = list[Ints](), 0
    for part in parts:
        order = canonical_order(part)
        number = part.judgment if isinstance(part, Preferences) and part.judgment is not None else order
        first, inverse = np.unique(number[order], return_index=True, return_inverse=True)[1:]
        place = np.empty(len(order), np.int32)
        place[order] = np.argsort(np.argsort(first))[inverse] + start
        numbers.append(place)
        start += len(first)
    return np.concatenate(numbers)


def check_draws(n: int, resample: str, seed: int = 0) -> None:
    """Refuse what no judgments can be drawn by."""
    given = option("bootstrap", n)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2:
        raise ParameterError(f"{given} is not a number of resamples; use 2 or more, 200 for intervals")
    if n > MOST_RESAMPLES:
        what = f"{given} is more than any interval needs"
        raise ParameterError(f"{what}; use at most {MOST_RESAMPLES:,}, 200 for intervals")
    if not 0 <= seed < 2**63:
        raise ParameterError(f"{option('seed', seed)} must be a whole number from 0 to {2**63 - 1}")
    one_of(resample, UNITS, "resample", of_verb=True)


def _require_several(n_units: int, resample: str, remedy: str) -> None:
    """Refuse to draw from fewer than two units."""
    if n_units < 2:
        what = "no judgment" if n_units == 0 else f"only one {resample}"
        raise ParameterError(f"there is {what} to draw from, which says nothing about the spread; {remedy}")


def unit_codes(judgments: Judgments | Mixed, resample: str) -> Ints:
    """Return the code of the annotator, query or group that each judgment belongs to."""
    if resample == "query":
        if judgments.block is None:
            several = "items live within their query, so drawing queries would only leave items out"
            why = "there is only one query" if judgments.n_queries == 1 else several
            remedy = f"take equal items of all queries as one with {call('across_queries')} first"
            raise ParameterError(f"queries cannot be drawn: {why}; {remedy}, or use {option('resample', 'judgment')}")
        return judgments.block
    if not judgments.n_annotators:
        why = f"{plural(resample)} cannot be drawn: the judgments do not say who gave them"
        raise ParameterError(f"{why}; use {option('resample', 'judgment')}")
    if resample == "annotator":
        return judgments.annotator
    if judgments.group is None:
        what = "groups cannot be drawn: the judgments name no families of annotators"
        raise ParameterError(f"{what}; add a group column, or use {option('resample', 'annotator')}")
    return judgments.group[judgments.annotator]


class Refitted(NamedTuple):
    """Scores of some resamples, (n, n_items), and what happened in each of them.

    ``n_lost`` is the number of items that lost all their judgments, ``apart`` whether others fell into groups that were
    not compared though all judgments connect them, ``converged`` whether the fit did.
    """

    scores: NDArray[Any]
    n_lost: Counts
    apart: Bools
    converged: Bools


class Replicates(NamedTuple):
    """Scores of all resamples, (n, n_items), standard errors, (n_items,), and what is to be known of them."""

    scores: NDArray[np.float32]
    std_error: Floats
    summary: dict[str, Any]


def replicates(
    method: Aggregator,
    judgments: Judgments | Mixed,
    draws: Draws,
    consensus: Any,
    *,
    extra: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Replicates:
    """Return the scores that the method finds in each resample; warns of resamples that lack something.

    Parameters
    ----------
    method
        An aggregator; one that is a :class:`~crowdrank.protocols.Resampler` fits many resamples at once, on all cores.
    judgments, draws
        What is drawn from, and how.
    consensus
        What the method found for all judgments.
    extra
        Further arguments of the method's ``fit``.
    progress
        Called with (resamples done, resamples in all, ``"resamples"``).
    """
    from .kernels.threads import even_bounds

    quick = method.refits(judgments, draws, consensus) if isinstance(method, Resampler) and not extra else None
    at_once, refit = quick or (1, _one_by_one(method, judgments, draws, extra or {}))
    bounds = [(first, min(first + at_once, draws.n)) for first in range(0, draws.n, at_once)]
    n_threads = 1 if quick is None else len(even_bounds(len(bounds), 1)) - 1
    parts: list[Refitted] = []
    # what is 0 up to rounding would be any number in single precision
    nothing = score_tolerance(method, judgments, consensus.scores)[judgments.items.query]
    with warnings.catch_warnings(), ThreadPoolExecutor(n_threads) as pool:
        # what is wrong with all judgments was said when they were fitted
        warnings.simplefilter("ignore")
        run: Any = map if n_threads == 1 else pool.map
        for part, (_, stop) in zip(run(lambda stretch: refit(*stretch), bounds), bounds, strict=True):
            scores = np.where(np.abs(part.scores) > nothing, part.scores, 0.0)
            parts.append(part._replace(scores=scores.astype(np.float32)))
            if progress:
                progress(stop, draws.n, "resamples")
    return sum_up(parts, draws, partial(weight_of_items, judgments), known="known" in (extra or {}))


_WARNINGS = {
    "with_lost_items": "{with_lost_items} of {n} resamples left items without a judgment, up to {most_lost_items} at "
    "once; there they have the score of an unjudged item, so their intervals lean towards the middle: collect more "
    "judgments of items that have only a few",
    "apart": "{apart} of {n} resamples broke the comparisons into groups that never met; they were kept, with the "
    "groups placed by the method's own rule, so intervals say little about the distance between items that few "
    "comparisons connect",
    "not_converged": "the fits of {not_converged} of {n} resamples did not converge; raise max_iter or tol",
}
"""What is lacking in some resamples, and what that means."""


def sum_up(parts: list[Refitted], draws: Draws, per_item: Callable[[], Floats], *, known: bool) -> Replicates:
    """Return all resamples with the standard errors that they show; warns of those that lack something.

    ``per_item`` gives the weight of the judgments of each item, ``known`` says whether some scores were given.
    """
    scores, n_lost, apart, converged = (np.concatenate(column) for column in zip(*parts, strict=True))
    summary = {
        "n": draws.n, "resample": draws.resample, "seed": draws.seed, "n_units": draws.n_units,
        "with_lost_items": int((n_lost > 0).sum()), "most_lost_items": int(n_lost.max()),
        "apart": int(apart.sum()), "not_converged": int((~converged).sum()),
    }  # fmt: skip
    for name, text in _WARNINGS.items():
        if summary[name]:
            warn(text.format(**summary))
    std_error = scores.std(axis=0, ddof=1, dtype=np.float64)
    if draws.resample == "judgment":
        lacking = lacking_variance(scores, per_item())
        # what is known for certain does not scatter
        lacking[(std_error == 0.0) & known] = 0.0
        std_error = np.sqrt(std_error**2 + lacking)
    return Replicates(scores, std_error, summary)


def lacking_variance(scores: NDArray[np.float32], n_judgments: Floats) -> Floats:
    r"""Return by how much replicates scatter less than scores of few judgments do, as a variance, (n_items,).

    Drawn again, :math:`n` judgments have only :math:`(n - 1) / n` of their variance, and of two that happen to be equal
    nothing is left. So each item's variance is averaged with that of all items, by degrees of freedom, the others
    counting as four [Smyth04]_. From 30 judgments on nothing is lacking.

    Parameters
    ----------
    scores
        Scores of the resamples, (n, n_items).
    n_judgments
        Number of judgments of each item, (n_items,).
    """
    several, few = n_judgments > 1, (n_judgments > 0) & (n_judgments < _MANY_JUDGMENTS)
    if not several.any() or not few.any():
        return np.zeros(len(n_judgments))
    # quartiles, so resamples without a judgment of an item do not count as its scatter
    low, high = np.quantile(scores, [0.25, 0.75], axis=0)
    variance = ((high - low) / _QUARTILES_APART) ** 2
    freedom = np.maximum(n_judgments - 1.0, 0.0)
    # the mean of one over the number of copies that so many judgments have in a resample, where they have any
    copies, number = np.arange(1.0, 2.0 * _FEW_COPIES), np.clip(n_judgments, 1.0, _FEW_COPIES)
    chance = np.exp(copies * np.log(number)[:, None] - number[:, None] - np.cumsum(np.log(copies)))
    mean = (chance / copies).sum(axis=1) / chance.sum(axis=1)
    inverse = np.where(n_judgments > _FEW_COPIES, 1.0 / np.maximum(n_judgments, 1.0), mean)
    of_one = np.where(several, variance * n_judgments / np.where(several, freedom, 1.0) / inverse, 0.0)
    pooled = float(freedom @ of_one) / float(freedom.sum())
    wanted = (freedom * of_one + _POOLED_FREEDOM * pooled) / (freedom + _POOLED_FREEDOM) / np.maximum(n_judgments, 1.0)
    return np.where(few, np.maximum(wanted - variance, 0.0), 0.0)


def _one_by_one(
    method: Aggregator, judgments: Judgments | Mixed, draws: Draws, extra: dict[str, Any]
) -> Callable[[int, int], Refitted]:
    """What fits any method to one resample after the other."""
    # the same rows in another order are to give the same resamples
    draws = draws.arrange(canonical_order(judgments)) if draws.unit is None else draws
    judged, whole = with_levels(judgments), Links.of(judgments)
    scorer = method if isinstance(method, Scorer) and not extra else None
    by_weight = method.scores_by_weight(judged) if isinstance(method, Reweighter) and not extra else None

    def refit(first: int, stop: int) -> Refitted:
        parts = []
        for number in range(first, stop):
            drawn = draws.counts(number)
            if by_weight is not None:
                scores, converged = by_weight(draws.weights(drawn)), True
            else:
                fit = scorer.scores if scorer is not None else lambda part: method.fit(part, **extra).scores
                scores, converged = scores_and_convergence(partial(fit, draws.take(judged, drawn)))
            parts.append((scores, *whole.missing_in(drawn > 0), converged))
        return Refitted(*(np.array(column) for column in zip(*parts, strict=True)))

    return refit


def scores_and_convergence(fit: Callable[[], Floats]) -> tuple[Floats, bool]:
    """Return the scores of a fit, and whether it converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = fit()
    return scores, not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def canonical_order(judgments: Judgments | Mixed) -> Counts:
    """Return row numbers in an order that follows from what the rows say; rankings have theirs from the start."""
    if isinstance(judgments, Mixed):
        starts = zip(judgments.offsets, judgments.parts, strict=False)
        return np.concatenate([start + canonical_order(part) for start, part in starts])
    if isinstance(judgments, Rankings):
        return np.arange(len(judgments))
    names = ("time", "weight", "block", "annotator", *reversed(judgments.answers))
    columns = [getattr(judgments, name) for name in names]
    return np.lexsort([column for column in columns if column is not None and len(column) == len(judgments)])
