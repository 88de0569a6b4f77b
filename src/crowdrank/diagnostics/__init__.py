"""What is odd about judgments: bad habits of annotators, annotators who are not independent, items held apart.

:func:`diagnose` is all of it; :func:`habits_told` is who has which bad habit, :func:`side_sentences` what
a glance shows, cheap enough for every fit.
"""

from __future__ import annotations

from .diagnosis import diagnose
from .messages import habits_told
from .sides import recorded_sentences, side_sentences

__all__ = ["diagnose", "habits_told", "recorded_sentences", "side_sentences"]
