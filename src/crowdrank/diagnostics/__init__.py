"""What is odd about judgments: bad habits of annotators, annotators who are not independent, items held apart.

:func:`diagnose` is all of it; :func:`side_sentences` is what a glance shows, cheap enough for every fit.
"""

from __future__ import annotations

from .diagnosis import diagnose
from .sides import side_sentences

__all__ = ["diagnose", "side_sentences"]
