"""Annotators whose quality changes with time: windows of their judgments, tied by a random walk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from .data.consensus import Consensus
from .data.index import Index
from .data.judgments import Grades, Mixed, Preferences
from .errors import JudgmentError
from .protocols import Bools, Floats
from .wording import option

DRIFTS = ("none", "halves", "smooth")
_MIN_PER_WINDOW, _MAX_WINDOWS = 20, 8
_HELD_OUT_EVERY = 5
_MIN_GAIN = 3.0
"""Log-likelihood of held-out judgments that quality in windows has to gain: likelier by a factor of twenty."""

_VARIANCES = (0.01, 0.04, 0.16, 0.64, 2.56)
"""Variances of the walk between two windows that are tried, in those of what one judgment tells."""


class Walk(NamedTuple):
    """A random walk over windows: annotator ``a`` in window ``w`` has code ``a * n_windows + w``."""

    n_windows: int
    variance: float

    def carry(self, own: Floats, weight: Floats) -> Floats:
        """Return evidence with that of other windows of the annotator, which loses weight from window to window.

        Evidence of weight n is worth n / (1 + n v) one window on, where v is the variance of the walk: messages of the
        Kalman filter, from both sides. ``own`` is evidence times its weight.
        """
        own, weight = (values.reshape(-1, self.n_windows, *values.shape[1:]) for values in (own, weight))
        total = own.copy()
        for order in (range(self.n_windows - 1), range(self.n_windows - 1, 0, -1)):
            carried, worth = np.zeros_like(own[:, 0]), np.zeros_like(weight[:, 0])
            for window in order:
                carried, worth = carried + own[:, window], worth + weight[:, window]
                kept = 1.0 / (1.0 + self.variance * worth)
                carried, worth = carried * kept, worth * kept
                total[:, window + (1 if order.step > 0 else -1)] += carried
        return total.reshape(-1, *total.shape[2:])

    def pool(self, values: Floats) -> Floats:
        """Return the sum over all windows of the annotator for each of them."""
        total = values.reshape(-1, self.n_windows, *values.shape[1:]).sum(axis=1)
        return np.repeat(total, self.n_windows, axis=0)


class Windows(NamedTuple):
    """Judgments with an annotator for each annotator and window, which are held out to compare, and when each begins.

    ``weight`` is the number of judgments and ``start`` the first time, (n_annotators, n_windows) each.
    """

    judgments: Any
    held_out: Bools
    weight: Floats
    start: Floats


def fit_with_drift(
    method: Any, judgments: Any, constant: Consensus, likelihood: Callable[..., float], fit: Callable[..., Any]
) -> Consensus:
    """Return a consensus in which quality may change, or the constant one where held-out judgments do not ask for it.

    ``likelihood(judgments, out, walk)`` is the log-likelihood of those that are out after a fit to the others, and
    ``fit(windowed, walk)`` gives the consensus and the quality in each window. Qualities of annotators are those over
    the whole time.
    """
    if isinstance(judgments, Mixed) or judgments.time is None or not judgments.n_annotators:
        what = f"{option('drift', method.drift)} needs one kind of judgments with annotators and times"
        raise JudgmentError(f"{what}; add a time column, or leave it out")
    split = _windows(judgments, method.drift)
    out, n = split.held_out, split.weight.shape[1]
    plain = likelihood(judgments, out, None)
    gains = [likelihood(split.judgments, out, Walk(n, variance)) - plain for variance in _VARIANCES]
    best = int(np.argmax(np.round(gains, 6)))
    found: dict[str, Any] = {"kind": method.drift, "n_windows": n, "gain": float(gains[best]), "variance": 0.0}
    consensus = constant
    if gains[best] >= _MIN_GAIN:
        consensus, quality = fit(split.judgments, Walk(n, _VARIANCES[best]))
        cells = np.flatnonzero(split.weight.ravel())
        start, weight = (values.ravel()[cells].tolist() for values in (split.start, split.weight))
        found |= {
            "variance": _VARIANCES[best], "annotator": judgments.annotators.ids.gather(cells // n).to_list(),
            "window": (cells % n).tolist(), "time": start, "n_judgments": weight,
            "quality": np.asarray(quality)[cells].tolist(),
        }  # fmt: skip
    params, estimates = {**constant.params, "drift": method.drift}, {**consensus.estimates, "drift": found}
    same: dict[str, Any] = {"method": constant.method, "quality_source": constant.quality_source, "reread": None}
    return replace(consensus, params=params, estimates=estimates, **same)


def _windows(judgments: Any, drift: str) -> Windows:
    """Windows of equally many judgments of each annotator by time; those of one time stay together."""
    who = judgments.annotator
    time, own = pl.col("time"), pl.DataFrame({"who": who, "time": judgments.time})
    ranks = own.select(place=time.rank("min").over("who") - 1, turn=time.rank("dense").over("who"))
    place, turn = ranks["place"].to_numpy(), ranks["turn"].to_numpy()
    number = np.bincount(who)
    n = 2
    if drift == "smooth":
        n = int(np.clip(float(np.median(number[number > 0])) // _MIN_PER_WINDOW, 2, _MAX_WINDOWS))
    # too few judgments are one window
    window = np.where(number[who] >= 2 * _MIN_PER_WINDOW, place * n // number[who], 0).astype(np.int64)
    code = (who * n + window).astype(np.int32)
    size = judgments.n_annotators * n
    weight = np.bincount(code, judgments.weight, size).astype(np.float64)
    start = np.full(size, np.inf)
    np.minimum.at(start, code, judgments.time)
    windowed = replace(judgments, annotator=code, annotators=Index(pl.Series(range(size))), group=None, groups=None)
    # which are held out follows from the turn of the annotator and how often items were judged, not from names
    if isinstance(judgments, (Grades, Preferences)):
        sides = [getattr(judgments, name) for name in judgments.item_columns]
        often = np.bincount(np.concatenate(sides), minlength=judgments.n_items)
        turn = turn + sum(often[side] for side in sides)
    shape = (-1, n)
    return Windows(windowed, turn % _HELD_OUT_EVERY == 0, weight.reshape(shape), start.reshape(shape))


def drift_sentence(consensus: Consensus) -> str | None:
    """Return what was found of changes with time where these were looked for."""
    found = consensus.estimates.get("drift")
    if found is None:
        return None
    if not found["variance"]:
        return "held-out judgments do not show that quality changes with time: each annotator has one quality"
    windows = f"{found['n_windows']} windows of each annotator (log-likelihood {found['gain']:+.1f})"
    return f"quality changes with time: held-out judgments are likelier with {windows}"
