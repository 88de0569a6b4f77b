"""What tells which way round scores are: the crowd itself, trusted annotators, or items whose score is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ...data.frames import to_frame
from ...data.index import Items
from ...data.naming import named
from ...data.truth import Truth
from ...errors import JudgmentError
from ...protocols import Bools, Floats
from ...wording import option
from .annotators import Crowd
from .items import Given
from .responses import Layout
from .rounds import Anchors

_TRUSTED_VARIANCE = 0.04


class Known(NamedTuple):
    """Scores of clamped items, (n_items,), on a scale of their own: ``value = middle + unit * score``."""

    clamped: Bools
    scores: Floats
    middle: float
    unit: float

    @classmethod
    def nothing(cls, n_items: int) -> Known:
        """No item is known."""
        return cls(np.zeros(n_items, bool), np.zeros(n_items), 0.0, 1.0)

    @property
    def tells(self) -> bool:
        """Whether the known items are of different scores."""
        return bool(np.ptp(self.scores[self.clamped]) > 0) if self.clamped.any() else False


def known_scores(items: Items, known: Any | None) -> Known:
    """Return the clamped items from a table of query, item and score, grade or rank, or from a truth.

    Values are brought to mean 0 and standard deviation 1, which is what the model expects of scores.
    """
    if known is None:
        return Known.nothing(len(items))
    truth = known if isinstance(known, Truth) else _read(known)
    if truth.grade is None or truth.nominal:
        raise JudgmentError(
            f"{option('known')} has no numbers for items; give a table of query, item and score or grade"
        )
    codes = items.codes_of(truth.items, "judgments", "known items")
    if (codes < 0).any():
        raise JudgmentError(
            f"known item {named(truth.items, codes < 0)} is not among the judged items; "
            f"leave it out, or list it with {option('items')}"
        )
    clamped, scores = np.zeros(len(items), bool), np.zeros(len(items))
    given = np.isfinite(truth.grade)
    clamped[codes[given]] = True
    middle = float(truth.grade[given].mean()) if given.any() else 0.0
    unit = float(truth.grade[given].std()) if given.any() else 1.0
    unit = unit if unit > 0.0 else 1.0
    scores[codes[given]] = (truth.grade[given] - middle) / unit
    return Known(clamped, scores, middle, unit)


def _read(known: Any) -> Truth:
    """A table of known items; the column with the numbers may be called score."""
    frame = to_frame(known)
    lowered = {str(name).strip().lower(): str(name) for name in frame.columns}
    columns = {"grade": lowered["score"]} if "score" in lowered and "grade" not in lowered else None
    if frame.is_empty():
        frame = frame.clear().cast({name: pl.Float64 for name in frame.columns if frame[name].dtype == pl.Null})
    return Truth.from_frame(frame, columns=columns)


def anchored(layout: Layout, features: Floats, known: Known, trusted: Bools) -> Anchors:
    """Return what a fit rests on.

    Without anchors the crowd's mean discrimination is 1. With trusted annotators theirs is, and with known items of
    different scores these set direction and scale; then nothing is taken for granted of the other annotators, whose
    mean is 0.
    """
    n, fixed = layout.n_annotators, np.full(layout.n_annotators, np.nan)
    mean, chosen = np.ones(n), layout.active
    reliable = trusted & layout.active
    if reliable.any():
        mean, chosen = trusted.astype(np.float64), reliable
        fixed[trusted] = _TRUSTED_VARIANCE
    if known.tells:
        mean = np.where(trusted, 1.0, 0.0) if reliable.any() else np.zeros(n)
    given = Given(features, known.clamped, known.scores)
    return Anchors(
        Crowd(mean, fixed, not known.tells and not reliable.any()),
        None if known.tells or not chosen.any() else chosen,
        given,
    )
