"""What a click model finds: how relevant each item is, and how much of each position is examined."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ...data.clicks import Clicks
from ...data.index import Index
from ...data.judgments import Grades, Preferences
from ...data.showing import Shown
from ...errors import DataWarning
from ...protocols import Counts, Floats

ANNOTATOR = "clicks"
"""Name of the annotator that clicks stand for beside people."""

_PRIOR = 1.0
"""Examined impressions that the mean of all items counts as."""

_MAX_PAIR_ITEMS = 60

MAX_WEIGHT = 100.0
"""Largest inverse-propensity weight; a position examined once in a hundred pages says next to nothing of its items."""


@dataclass(frozen=True, eq=False)
class ClickFit(Shown):
    """Relevance from clicks, with the examination that it was divided by.

    Parameters
    ----------
    clicks
        The log.
    model
        Name of the model.
    propensity
        Probability that each position is examined, relative to the likeliest; for cascade models the mean over the log.
    examined, clicked
        By item, the expected number of times it was examined, and the clicks that count.
    log_likelihood
        Of the log under the model.
    """

    clicks: Clicks
    model: str
    propensity: Floats
    examined: Floats
    clicked: Floats
    log_likelihood: float

    def __repr__(self) -> str:
        return f"ClickFit({self.model}, {len(self.examined):,} items, {len(self.propensity)} positions)"

    def __len__(self) -> int:
        return len(self.examined)

    @property
    def relevance(self) -> Floats:
        """Probability of a click on each item once it is examined, shrunk towards the mean by one impression."""
        mean = float(self.clicked.sum() / max(self.examined.sum(), 1e-12))
        relevance: Floats = (self.clicked + _PRIOR * mean) / (self.examined + _PRIOR)
        return np.clip(relevance, 0.0, 1.0)

    @property
    def std_error(self) -> Floats:
        """Standard error of each relevance; one that every click confirms is not taken for certain."""
        half = 0.5 / (self.examined + _PRIOR)
        likely = np.clip(self.relevance, half, 1.0 - half)
        error: Floats = np.sqrt(likely * (1.0 - likely) / (self.examined + _PRIOR))
        return error

    def frame(self) -> pl.DataFrame:
        """Return query, item, relevance, std_error, examined, n_clicks and n_shown of each item."""
        shown, clicks = self.clicks.counts()
        return self.clicks.items.frame().with_columns(
            relevance=pl.Series(self.relevance), std_error=pl.Series(self.std_error),
            examined=pl.Series(self.examined), n_clicks=pl.Series(clicks), n_shown=pl.Series(shown),
        )  # fmt: skip

    def propensities(self) -> pl.DataFrame:
        """Return position, propensity and the inverse-propensity weight of a click there, which is 100 at most."""
        places = np.arange(1, len(self.propensity) + 1)
        return pl.DataFrame({"position": places, "propensity": self.propensity, "weight": 1.0 / self.propensity})

    def grades(self) -> Grades:
        """Return the relevance of each shown item as a grade by the annotator ``"clicks"``, weighed by examination.

        The grade of an item is its clicks, each weighed by the inverse of the propensity, in the ratio form
        :math:`\\sum c / \\sum p` [Joachims17]_; its weight is :math:`\\sum p`, how often it was examined. With
        ``cr.train(fit.grades(), features, ranker, aggregator=None)`` every ranker learns from them.
        """
        items = self.clicks.items
        return Grades(
            items=items, annotators=Index(pl.Series([ANNOTATOR])), item=np.arange(len(items), dtype=np.int32),
            annotator=np.zeros(len(items), np.int32), grade=self.relevance,
            weight=np.maximum(self.examined, 1e-3),
        )  # fmt: skip

    def preferences(self) -> Preferences:
        """Return preferences between the items of each query by the annotator ``"clicks"``, to stand beside people's.

        Of two items the more relevant is preferred; the weight is how sure that is, :math:`2 \\Phi(|z|) - 1` for the
        difference :math:`z` in standard errors, divided by half the number of items, since the pairs of a query
        repeat what its items tell. Of queries above 60 items those examined most are compared.
        """
        from scipy.special import ndtr

        items, relevance, error = self.clicks.items, self.relevance, self.std_error
        parts = []
        for query in range(items.n_queries):
            codes = np.arange(items.offsets[query], items.offsets[query + 1])
            if len(codes) > _MAX_PAIR_ITEMS:
                codes = np.sort(codes[np.argsort(-self.examined[codes], kind="stable")[:_MAX_PAIR_ITEMS]])
            first, second = (codes[side] for side in np.triu_indices(len(codes), 1))
            z = (relevance[first] - relevance[second]) / np.maximum(np.hypot(error[first], error[second]), 1e-12)
            weight = 2.0 * (2.0 * ndtr(np.abs(z)) - 1.0) / max(len(codes), 2)
            kept = weight > 1e-3
            parts.append(np.stack([first, second, np.sign(z), weight])[:, kept])
        left, right, outcome, weight = np.concatenate(parts, axis=1)
        return Preferences(
            items=items, annotators=Index(pl.Series([ANNOTATOR])), left=left.astype(np.int32),
            right=right.astype(np.int32), outcome=outcome.astype(np.int8), weight=weight,
            annotator=np.zeros(len(left), np.int32),
        )  # fmt: skip


def bound_propensities(theta: Floats, expected: Floats) -> Floats:
    """Return propensities relative to the largest, bounded below, and say where they are.

    ``expected`` is the number of clicks that each position would have if it were examined as often as the best. Of
    fewer than one click nothing can be told, so that a propensity is at least ``1 / (1 + expected)``; and it is at
    least ``1 / MAX_WEIGHT``.
    """
    theta = theta / theta.max()
    bound = np.maximum(1.0 / (1.0 + expected), 1.0 / MAX_WEIGHT)
    low = (theta < bound) & (bound < 1.0)
    if low.any():
        heaviest = float(1.0 / bound[low].min())
        warnings.warn(
            f"{name_positions(np.flatnonzero(low) + 1)}: users look there so rarely, or clicks are so few, that the "
            f"weight of a click is bounded by {heaviest:.3g}; a longer log tells more", DataWarning, stacklevel=4,
        )  # fmt: skip
    bounded: Floats = np.maximum(theta, np.minimum(bound, 1.0))
    return bounded


def name_positions(places: Sequence[int] | Counts) -> str:
    """Return positions in words.

    Examples
    --------
    >>> name_positions([3]), name_positions([3, 4]), name_positions([1, 2, 3, 7])
    ('position 3', 'positions 3 and 4', 'positions 1 to 3 and 7')
    """
    ordered = np.sort(np.asarray(places))
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    words = [str(one) for run in runs for one in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else run)]
    text = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return f"position{'' if len(places) == 1 else 's'} {text}"
