"""Collecting overlapping labels at low cost [Yang10]_: who gets a second opinion, and how to train on several."""

from .study import overlap

__all__ = ["overlap"]
