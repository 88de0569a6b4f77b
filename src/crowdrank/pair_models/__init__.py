"""What the models of preferences share: contests counted by pair, warnings about their graph, spread of the scores.

A pair model (Bradley-Terry, Crowd-BT, ...) scores items so that differences of scores explain who won. Its ``fit``
begins with :func:`count_contests`, warns by :func:`warn_unbounded` of what the preferences leave open, and reads
standard errors and covariances out of the curvature at the best scores by :func:`score_spread`.
"""

from __future__ import annotations

from .contests import Contests, count_contests
from .graph import named, warn_unbounded
from .spread import score_spread

__all__ = ["Contests", "count_contests", "named", "score_spread", "warn_unbounded"]
