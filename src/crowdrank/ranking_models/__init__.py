"""What the models of rankings share: annotators who scatter around true rankings, each as widely as estimated.

A method with Mallows' model builds a :class:`MallowsCrowd` with :func:`mallows_crowd`, begins with its ``start`` and
``begin()``, and then takes turns: :meth:`~MallowsCrowd.expect` gives expected distances of the annotators' rankings to
the true ones, exact or sampled, and :meth:`~MallowsCrowd.dispersions` the dispersions that fit these.
"""

from __future__ import annotations

from .crowd import Expected, MallowsCrowd, Sampler, check_parameters, mallows_crowd
from .overlap import shared_pairs, warn_few, warn_unidentified
from .placing import middle_places, place_scores, place_spread, unranked_scores
from .scored import Learned, ScoredTruths

__all__ = [
    "Expected",
    "Learned",
    "MallowsCrowd",
    "Sampler",
    "ScoredTruths",
    "check_parameters",
    "mallows_crowd",
    "middle_places",
    "place_scores",
    "place_spread",
    "shared_pairs",
    "unranked_scores",
    "warn_few",
    "warn_unidentified",
]
