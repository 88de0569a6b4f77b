"""Crowds drawn from the latent-score model, or from one that departs from it, to measure what a fit gives back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Crowd:
    """Judgments with what they were drawn from."""

    judgments: Any
    scores: Any
    alpha: Any


@dataclass(frozen=True)
class Design:
    """How a crowd is drawn.

    ``guessing`` and ``reversed`` are shares of annotators whose discrimination is 0, or of the wrong sign. With
    ``misspecified`` scores have heavy tails, noise is normal with a tenth of it tripled, and the slope differs from
    item to item. ``item_noise`` is the standard deviation of the log of the noise from item to item.
    """

    kind: str = "preference"
    n_queries: int = 5
    n_items: int = 60
    n_annotators: int = 80
    per_annotator: int = 40
    guessing: float = 0.0
    reversed: float = 0.0
    misspecified: bool = False
    item_noise: float = 0.0
    score_sd: float = 1.5
    spread: float = 0.5
    offset: float = 0.3
    cuts: tuple[float, ...] = (-1.5, -0.5, 0.5, 1.5)


def draw(design: Design, seed: int) -> Crowd:
    """Return a crowd with scores ``N(0, score_sd ** 2)`` and discriminations ``N(1, spread ** 2)``."""
    rng = np.random.default_rng(seed)
    n = design.n_queries * design.n_items
    scores = design.score_sd * (rng.standard_t(3, n) / np.sqrt(3) if design.misspecified else rng.normal(size=n))
    alpha = rng.normal(1.0, design.spread, design.n_annotators)
    role = rng.permutation(design.n_annotators)
    alpha[role < design.guessing * design.n_annotators] = 0.0
    turned = role >= (1 - design.reversed) * design.n_annotators
    alpha[turned] = -np.abs(alpha[turned])
    offset = rng.normal(0.0, design.offset, design.n_annotators)
    who = np.repeat(np.arange(design.n_annotators), design.per_annotator)
    query = rng.integers(0, design.n_queries, len(who))
    left = query * design.n_items + rng.integers(0, design.n_items, len(who))
    right = query * design.n_items + (left + rng.integers(1, design.n_items, len(who))) % design.n_items
    gap = scores[left] - scores[right] if design.kind == "preference" else scores[left]
    slope = np.exp(rng.normal(0.0, 0.5, n))[left] if design.misspecified else 1.0
    noise = _noise(rng, len(who), design.misspecified)
    if design.item_noise:
        noise = noise * np.exp(rng.normal(0.0, design.item_noise, n))[left]
    felt = slope * alpha[who] * gap + offset[who] + noise
    ids = [f"i{number:05d}" for number in range(n)]
    names = [f"a{number:04d}" for number in range(design.n_annotators)]
    table = {
        "query": [f"q{number:03d}" for number in query],
        "annotator": [names[code] for code in who],
    }
    with warnings.catch_warnings():
        # an annotator may well be asked the same thing twice here
        warnings.simplefilter("ignore")
        judgments = _judgments(design, table, ids, left, right, felt, n)
    return Crowd(judgments, scores, alpha)


def _noise(rng: Any, n: int, misspecified: bool) -> Any:
    """Noise of the answers: logistic, or normal of the same variance with a tenth tripled."""
    if not misspecified:
        return rng.logistic(size=n)
    return rng.normal(0.0, np.pi / np.sqrt(3), n) * np.where(rng.random(n) < 0.1, 3.0, 1.0)


def _judgments(design: Design, table: dict[str, Any], ids: list[str], left: Any, right: Any, felt: Any, n: int) -> Any:
    """Answers as judgments, with a place for every item."""
    import crowdrank as cr

    items = {"query": [f"q{code // design.n_items:03d}" for code in range(n)], "item": ids}
    if design.kind == "preference":
        answers = {"left": [ids[code] for code in left], "right": [ids[code] for code in right]}
        winner = np.where(felt > 0, "left", "right").tolist()
        return cr.Preferences.from_frame({**table, **answers, "winner": winner}, items=items)
    grade = np.searchsorted(design.cuts, felt)
    return cr.Grades.from_frame({**table, "item": [ids[code] for code in left], "grade": grade}, items=items)
