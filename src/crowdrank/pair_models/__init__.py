"""What the models of preferences share: contests counted by pair, warnings about their graph, spread of the scores.

A pair model (Bradley-Terry, Crowd-BT, ...) scores items so that differences of scores explain who won. Its ``fit``
begins with :func:`count_contests`, warns by :func:`warn_unbounded` of what the preferences leave open, and reads
standard errors and covariances out of the curvature at the best scores by :func:`score_spread`.
"""

from __future__ import annotations

from ..data.naming import named
from .contests import Contests, count_contests
from .graph import warn_apart, warn_unbounded
from .places import place_standings
from .resamples import PairRefits, sort_preferences
from .spread import score_spread

__all__ = [
    "Contests", "PairRefits", "count_contests", "named", "place_standings", "score_spread", "sort_preferences",
    "warn_apart", "warn_unbounded",
]  # fmt: skip
